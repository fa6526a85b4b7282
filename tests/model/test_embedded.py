"""The report's own charts: as the viewer draws them, and as a source where our own bindings find nothing."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline import read_report, roofline
from ncu_roofline.formats.sectionfile.charts import evaluate_charts
from ncu_roofline.formats.sectionfile.section import parse_section
from tests.annotate.helpers import annotated
from tests.factory import A100, NO_WORK, V100, Metrics, flops, kernel, report, timing, traffic
from tests.sectionfile.section_factory import chart, one, per_second, point, roof, section


def test_frames_hold_every_dot_and_line_of_the_charts(real_reports: dict[str, Path]) -> None:
    seen = 0
    for path in real_reports.values():
        result = roofline(path, source="embedded")
        expected: list[tuple[int, float, float]] = []
        with read_report(path) as opened:
            for k in opened.kernels:
                device = k.device
                capability = device.compute_capability if device else None
                for data in k.sections:
                    for chart in evaluate_charts(parse_section(data), k.metrics, capability or (0, 0)):
                        expected += [(k.index, point.intensity, point.work) for point in chart.points]
        rows = result.points
        assert list(zip(rows["launch"], rows["intensity"], rows["performance"], strict=True)) == expected, path
        seen += len(expected)
    assert seen > 50


def test_our_numbers_equal_the_charts_where_both_count_the_same(real_reports: dict[str, Path]) -> None:
    """FP64 and FP32 work and DRAM traffic mean the same in stock charts of every release and in ours."""
    compared = 0
    for path in real_reports.values():
        ours, charts = roofline(path).points, roofline(path, source="embedded").points
        keys = ["launch", "precision", "level"]
        both = ours.merge(charts.drop_duplicates(keys), on=keys, suffixes=("", "_chart"))
        both = both[both["precision"].isin(["fp64", "fp32"]) & (both["level"] == "dram")]
        assert both["performance"].tolist() == pytest.approx(both["performance_chart"].tolist(), rel=1e-9), path
        # DRAM bandwidth is per nanosecond of gpu__time_duration in one and per cycle in the other.
        assert both["intensity"].tolist() == pytest.approx(both["intensity_chart"].tolist(), rel=0.02), path
        compared += len(both)
    assert compared > 30


def test_a_third_partys_chart_fills_what_our_bindings_lack(tmp_path: Path) -> None:
    """Its counters carry other suffixes than any form our bindings read, but their names say what they measure."""
    work = "sm__sass_thread_inst_executed_ops_dadd_dmul_dfma_pred_on_x2.sum.per_second"
    dots = point(one(work), one("dram__sectors_vendor.sum.per_second"))
    lines = roof(per_second("sm__peak"), per_second("dram__sectors_vendor.sum.peak_sustained"))
    data = section(chart(points=(dots,), roofs=(lines,)))
    metrics = {**A100, **timing(seconds=2e-3), work: 1e12, "dram__sectors_vendor.sum.per_second": 1e11}
    path = report(tmp_path / "r.ncu-rep", kernel(metrics, sections=(data,)))
    drawn = roofline(path, source="embedded").points.iloc[0]
    assert drawn[["work", "traffic", "seconds"]].tolist() == pytest.approx([2e9, 2e8, 2e-3])  # rates of the chart x 2 ms
    row = roofline(path).points.iloc[0]
    assert (row["traffic"], row["coverage"]) == (pytest.approx(2e8), 1.0)
    assert (row["precision"], row["level"], row["source"]) == ("fp64", "dram", "embedded")
    assert row["intensity"] == pytest.approx(10.0)
    assert row["work"] == pytest.approx(2e9)
    assert "chart Test" in row["notes"]
    annotated(path, tmp_path / "annotated.ncu-rep", rules=[])
    again = roofline(tmp_path / "annotated.ncu-rep").points
    assert again.drop(columns="report").equals(roofline(path).points.drop(columns="report"))
    counted = {**A100, **timing(), **NO_WORK, **flops("d", add=10**9, fma=10**9), **traffic(10**9, 10**7, 10**8)}
    lacking = {name: value for name, value in counted.items() if "sass" not in name}
    for other, seconds, work, share in ((metrics, 3e-3, 5e9, None), (lacking, 1e-3, 3e9, 0.5)):
        rest = {"sections": (data,)} if other is metrics else {}
        both = report(tmp_path / "both.ncu-rep", kernel(counted), kernel(other, **rest))
        dram = roofline(both, by="kernel").points.set_index("level").loc["dram"]
        assert (dram["seconds"], dram["work"]) == pytest.approx((seconds, work))
        assert dram["fma_share"] == pytest.approx(share) if share else math.isnan(dram["fma_share"])  # of a chart unknown


def test_half_precision_is_corrected_in_ours_and_noted_in_the_chart(tmp_path: Path) -> None:
    names = [f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum.per_cycle_elapsed" for op in ("hadd", "hmul", "hfma")]
    derived = "derived__smsp__sass_thread_inst_executed_op_hfma_pred_on_x2"
    clock = "smsp__cycles_elapsed.avg.per_second"
    dots = point(per_second(names[0], names[1], derived, clock=clock), one("dram__bytes.sum.per_second"))
    data = section(chart(points=(dots,)), Identifier=b"SpeedOfLight_HierarchicalHalfRooflineChart")
    metrics = {
        **A100,
        **timing(),
        **dict.fromkeys(names, 1.0),
        derived: 2.0,
        clock: 1.41e9,
        "dram__bytes.sum.per_second": 1e9,
    }
    path = report(tmp_path / "r.ncu-rep", kernel(metrics, sections=(data,)), ncu_version="2024.1.1.0")
    assert roofline(path).points["performance"].tolist() == pytest.approx([8 * 1.41e9])
    row = roofline(path, source="embedded").points.iloc[0]
    assert row["performance"] == pytest.approx(4 * 1.41e9)  # as drawn
    assert "2x too low" in row["notes"]


def test_each_dot_stands_under_the_roof_of_its_own_precision(real_reports: dict[str, Path]) -> None:
    """The stock chart holds FP64 and FP32: on A100 and V100 FP64 has half the peak of FP32."""
    seen = 0
    for path in real_reports.values():
        for _, row in roofline(path, source="embedded").points.iterrows():
            own, half = (f"sm__sass_thread_inst_executed_op_{one}fma_pred_on.sum.peak_sustained" for one in "df")
            with read_report(path) as opened:
                metrics = opened.kernels[row["launch"]].metrics
            name = own if row["precision"] == "fp64" else half
            expected = 2 * metrics[name] * metrics["sm__cycles_elapsed.avg.per_second"]  # type: ignore[operator]
            assert row["compute_roof"] == pytest.approx(expected), path
            assert row["attainable"] == pytest.approx(min(expected, row["intensity"] * row["bandwidth_roof"]))
            seen += row["precision"] == "fp64"
    assert seen > 50


X512 = [f"derived__{unit}__inst_executed_pipe_tensor_x512" for unit in ("sm", "smsp")]


def counted_by_instructions(path: Path, device: Metrics) -> Path:
    """A report with the tensor chart of the releases from 2021.3 to 2024.1, and nothing else that counts work."""
    peak, work = X512
    clock = "smsp__cycles_elapsed.avg.per_second"
    dots = point(per_second(work, clock=clock), one("dram__bytes.sum.per_second"))
    lines = roof(per_second(peak), per_second("dram__bytes.sum.peak_sustained", clock="dram__cycles_elapsed.avg.per_second"))
    data = section(chart(points=(dots,), roofs=(lines,)), Identifier=b"SpeedOfLight_HierarchicalTensorRooflineChart")
    metrics: Metrics = {
        **device,
        **timing(),
        peak: 40960.0,
        work: 4096.0,
        clock: 1.41e9,
        "dram__bytes.sum.per_second": 1e11,
        "dram__bytes.sum.peak_sustained": 1280.0,
        "dram__cycles_elapsed.avg.per_second": 1.2e9,
    }
    return report(path, kernel(metrics, sections=(data,)), ncu_version="2023.1.1.0")


@pytest.mark.parametrize(("device", "right"), [(V100, True), (A100, False)])
def test_tensor_instructions_are_no_operations(tmp_path: Path, device: Metrics, right: bool) -> None:
    """The dot and its roof are drawn as the viewer does, with what is wrong with them; nothing else takes them for work."""
    path = counted_by_instructions(tmp_path / "r.ncu-rep", device)
    result = roofline(path, source="embedded")
    row = result.points.iloc[0]
    assert row["performance"] == pytest.approx(4096 * 1.41e9)
    assert row["fraction"] == pytest.approx(4096 * 1.41e9 / (40960 * 1.41e9))
    caveat = "counts 512 operations per tensor instruction, which holds for V100 only"
    compute = result.roofs[result.roofs["kind"] == "compute"].iloc[0]
    for notes in (row["notes"], compute["notes"]):
        assert (caveat in notes) != right
    assert roofline(path).points.empty


def test_work_counted_by_larger_instructions_stays_unknown(tmp_path: Path) -> None:
    """DMMA x 512 is FP64 work on A100; Hopper has larger instructions, so there nobody knows."""
    work = "derived__sm__inst_executed_pipe_tensor_op_dmma_x512"
    data = section(chart(points=(point(per_second(work), one("dram__bytes.sum.per_second")),)))
    found = {}
    for major in (8, 9):
        metrics: Metrics = {**A100, **timing(), work: 512.0, "dram__bytes.sum.per_second": 1e11}
        metrics["device__attribute_compute_capability_major"] = major
        points = roofline(report(tmp_path / f"{major}.ncu-rep", kernel(metrics, sections=(data,)))).points
        found[major] = points["precision"].tolist()
    assert found == {8: ["tensor.fp64"], 9: []}


def test_the_roof_of_l2_is_that_of_its_slices(real_reports: dict[str, Path]) -> None:
    """Releases of 2023 count what the ports of L1 read; 48 slices of A10G x 32 B x 1.241 GHz are not their 80 x 32 B."""
    path = real_reports["a10g-ncu2023.1-roofline-1.ncu-rep"]
    with read_report(path) as opened:
        clocks = [kernel.metrics["lts__cycles_elapsed.avg.per_second"] for kernel in opened.kernels]
    rows: Any = roofline(path).points
    rows = rows[rows["level"] == "l2"]
    assert rows["bandwidth_roof"].tolist() == pytest.approx([48 * 32 * float(one) for one in clocks])  # type: ignore[arg-type]
    assert rows["bandwidth_roof"].tolist() == pytest.approx([1.91e12] * 4, rel=0.01)
    assert set(rows["source"]) == {"embedded"}
    assert all("loads only (return path)" in notes for notes in rows["notes"])


def test_the_roof_of_l2_is_that_of_its_slices_in_a_made_up_report(tmp_path: Path) -> None:
    read = {"l1tex__m_xbar2l1tex_read_bytes.sum": 10**9, "l1tex__m_xbar2l1tex_read_bytes.sum.peak_sustained": 108 * 64.0}
    metrics: Metrics = {**A100, **timing(clock=1e9), **NO_WORK, **flops("d", fma=10**9), **read}
    rows = roofline(report(tmp_path / "r.ncu-rep", kernel(metrics))).points
    assert rows[rows["level"] == "l2"]["bandwidth_roof"].tolist() == pytest.approx([80 * 64 * 1e9])


def test_options_that_contradict_each_other(tmp_path: Path) -> None:
    path = report(tmp_path / "r.ncu-rep", kernel({**A100, **timing(), **NO_WORK, **flops("d", fma=1), **traffic(1, 1, 1)}))
    with pytest.raises(ValueError, match="per launch"):
        roofline(path, source="embedded", by="kernel")
    with pytest.raises(ValueError, match="source must be"):
        roofline(path, source="elsewhere")


@pytest.mark.parametrize(
    "expression", ["9" * 401, "1e999", f"a__x.sum * {'9' * 401}", f"-{'9' * 5_000}", "a__x.sum / fzero__x.sum"]
)
def test_a_number_that_is_too_large_costs_its_line_only(expression: str, tmp_path: Path) -> None:
    sound = point(one("a__x.sum"), one("dram__bytes.sum.per_second"))
    odd = point(one("derived__odd"), one("dram__bytes.sum.per_second"))
    data = section(chart(points=(sound, odd)), definitions={"derived__odd": expression})
    metrics = {**A100, **timing(), "a__x.sum": 1e12, "fzero__x.sum": 0.0, "dram__bytes.sum.per_second": 1e11}
    path = report(tmp_path / "r.ncu-rep", kernel(metrics, sections=(data,)))
    assert roofline(path, source="embedded").points["intensity"].tolist() == pytest.approx([10.0])
    (drawn,) = evaluate_charts(parse_section(data), metrics, (8, 0))
    assert [(one.part, one.metrics) for one in drawn.dropped] == [("work", ("derived__odd",))]
    assert set(roofline(path).kernels["kernel"]) == {"kernel"}  # the other commands' view, which looks at the chart too
