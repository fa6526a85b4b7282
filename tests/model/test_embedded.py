"""The report's own charts: as the viewer draws them, and as a source where our own bindings find nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline import read_report, roofline
from ncu_roofline.sections import evaluate_charts, parse_section
from tests.factory import A100, NO_WORK, flops, kernel, report, timing, traffic
from tests.sections.section_factory import chart, one, per_second, point, roof, section


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
    row = roofline(path).points.iloc[0]
    assert (row["precision"], row["level"], row["source"]) == ("fp64", "dram", "embedded")
    assert row["intensity"] == pytest.approx(10.0)
    assert row["work"] == pytest.approx(2e9)
    assert "chart Test" in row["notes"]


def test_half_precision_is_corrected_in_ours_and_noted_in_the_chart(tmp_path: Path) -> None:
    names = [f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum.per_cycle_elapsed" for op in ("hadd", "hmul", "hfma")]
    derived = "derived__smsp__sass_thread_inst_executed_op_hfma_pred_on_x2"
    clock = "smsp__cycles_elapsed.avg.per_second"
    dots = point(per_second(names[0], names[1], derived, clock=clock), one("dram__bytes.sum.per_second"))
    data = section(chart(points=(dots,)), identifier=b"SpeedOfLight_HierarchicalHalfRooflineChart")
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


def test_options_that_contradict_each_other(tmp_path: Path) -> None:
    path = report(tmp_path / "r.ncu-rep", kernel({**A100, **timing(), **NO_WORK, **flops("d", fma=1), **traffic(1, 1, 1)}))
    with pytest.raises(ValueError, match="per launch"):
        roofline(path, source="embedded", by="kernel")
    with pytest.raises(ValueError, match="source must be"):
        roofline(path, source="elsewhere")
