"""The report's own charts: as the viewer draws them, as a source of what we find nowhere else, and beside our own numbers."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from ncu_roofline import read_report, roofline
from ncu_roofline.base.files import pack_folder
from ncu_roofline.chips import load_spec
from ncu_roofline.formats.ceilings import read_ceilings
from ncu_roofline.formats.sectionfile.charts import evaluate_charts
from ncu_roofline.formats.sectionfile.section import Section, parse_section
from ncu_roofline.formats.sectionfile.text import parse_document
from tests.annotate.helpers import OWN, annotated
from tests.factory import A100, NO_WORK, V100, Metrics, flops, kernel, report, timing, traffic
from tests.sectionfile.reading import needed_metrics
from tests.sectionfile.section_factory import chart, one, per_second, point, roof, section

KEYS = ["launch", "precision", "level"]
NUMBERS = ["intensity", "performance", "compute_roof", "bandwidth_roof", "attainable", "fraction", "binding_fraction"]
CHIPS = [one.compute_capability for one in load_spec().architectures if not one.left_out]
FORMS = (".sum.per_second", ".sum.per_cycle_elapsed", ".sum.peak_sustained", ".sum")
CYCLES = "smsp__cycles_elapsed.avg.per_second"
AT_DRAM = one("dram__bytes.sum.per_second")


def test_frames_hold_every_dot_of_real_charts_under_its_roof(real_reports: dict[str, Path]) -> None:
    """FP64 and FP32 work and DRAM traffic mean the same in stock charts of every release and in ours."""
    seen = compared = 0
    for path in real_reports.values():
        drawn, expected = roofline(path, source="embedded").points, list[tuple[int, float, float]]()
        peaks = []
        with read_report(path) as opened:
            for k in opened.kernels:
                capability = (k.device.compute_capability if k.device else None) or (0, 0)
                charts = [one for data in k.sections for one in evaluate_charts(parse_section(data), k.metrics, capability)]
                expected += [(k.index, dot.intensity, dot.work) for chart in charts for dot in chart.points]
            for row in drawn.itertuples():
                metrics, letter = opened.kernels[row.launch].metrics, "d" if row.precision == "fp64" else "f"
                per_cycle = metrics[f"sm__sass_thread_inst_executed_op_{letter}fma_pred_on.sum.peak_sustained"]
                peaks.append(2 * float(per_cycle) * float(metrics["sm__cycles_elapsed.avg.per_second"]))
        assert list(zip(drawn["launch"], drawn["intensity"], drawn["performance"], strict=True)) == expected, path
        assert drawn["compute_roof"].tolist() == pytest.approx(peaks), path
        both = roofline(path).points.merge(drawn.drop_duplicates(KEYS), on=KEYS, suffixes=("", "_chart"))
        both = both[both["precision"].isin(["fp64", "fp32"]) & (both["level"] == "dram")]
        assert both["performance"].tolist() == pytest.approx(both["performance_chart"].tolist(), rel=1e-9), path
        # DRAM bandwidth is per nanosecond of gpu__time_duration in one and per cycle in the other.
        assert both["intensity"].tolist() == pytest.approx(both["intensity_chart"].tolist(), rel=0.02), path
        seen, compared = seen + len(expected), compared + len(both)
    assert seen > 50
    assert compared > 30


def test_a_third_partys_chart_fills_what_our_bindings_lack(tmp_path: Path) -> None:
    """Its counters carry other suffixes than any form our bindings read, but their names say what they measure."""
    work, moved = (
        "sm__sass_thread_inst_executed_ops_dadd_dmul_dfma_pred_on_x2.sum.per_second",
        "dram__sectors_vendor.sum.per_second",
    )
    data = section(chart(points=(point(one(work), one(moved)),)))
    metrics = {**A100, **timing(seconds=2e-3), work: 1e12, moved: 1e11}
    path = report(tmp_path / "r.ncu-rep", kernel(metrics, sections=(data,)))
    found = roofline(path).points
    row = found.iloc[0]
    assert (row["precision"], row["level"], row["source"], row["coverage"]) == ("fp64", "dram", "embedded", 1.0)
    assert row[["work", "traffic", "intensity"]].tolist() == pytest.approx([2e9, 2e8, 10.0])  # rates of the chart x 2 ms
    assert "chart Test" in row["notes"]
    annotated(path, tmp_path / "annotated.ncu-rep", rules=[])
    again = roofline(tmp_path / "annotated.ncu-rep").points
    assert again.drop(columns="report").equals(found.drop(columns="report"))
    # By kernel beside a launch that was counted, or one that lacks the counts: of a chart the share of FMAs is unknown.
    counted = {**A100, **timing(), **NO_WORK, **flops("d", add=10**9, fma=10**9), **traffic(10**9, 10**7, 10**8)}
    lacking = {name: value for name, value in counted.items() if "sass" not in name}
    for other, expected in ((metrics, [3e-3, 5e9, float("nan")]), (lacking, [1e-3, 3e9, 0.5])):
        second = kernel(other, sections=(data,) if other is metrics else ())
        dram = (
            roofline(report(tmp_path / "both.ncu-rep", kernel(counted), second), by="kernel")
            .points.set_index("level")
            .loc["dram"]
        )
        assert dram[["seconds", "work", "fma_share"]].tolist() == pytest.approx(expected, nan_ok=True)


def test_half_precision_is_corrected_in_ours_and_noted_in_the_chart(tmp_path: Path) -> None:
    names = [f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum.per_cycle_elapsed" for op in ("hadd", "hmul", "hfma")]
    derived = "derived__smsp__sass_thread_inst_executed_op_hfma_pred_on_x2"
    dots = point(per_second(names[0], names[1], derived, clock=CYCLES), AT_DRAM)
    data = section(chart(points=(dots,)), Identifier=b"SpeedOfLight_HierarchicalHalfRooflineChart")
    rates = {derived: 2.0, CYCLES: 1.41e9, "dram__bytes.sum.per_second": 1e9}
    metrics = {**A100, **timing(), **dict.fromkeys(names, 1.0), **rates}
    path = report(tmp_path / "r.ncu-rep", kernel(metrics, sections=(data,)), ncu_version="2024.1.1.0")
    assert roofline(path).points["performance"].tolist() == pytest.approx([8 * 1.41e9])
    row = roofline(path, source="embedded").points.iloc[0]
    assert row["performance"] == pytest.approx(4 * 1.41e9)  # as drawn
    assert "2x too low" in row["notes"]


@pytest.mark.parametrize(("device", "right"), [(V100, True), (A100, False)])
def test_tensor_instructions_are_no_operations(tmp_path: Path, device: Metrics, right: bool) -> None:
    """The chart of 2021.3 to 2024.1 is drawn as the viewer does, with what is wrong; nothing else takes its dots for work."""
    peak, work = (f"derived__{unit}__inst_executed_pipe_tensor_x512" for unit in ("sm", "smsp"))
    lines = roof(per_second(peak), per_second("dram__bytes.sum.peak_sustained", clock="dram__cycles_elapsed.avg.per_second"))
    dots = point(per_second(work, clock=CYCLES), AT_DRAM)
    data = section(chart(points=(dots,), roofs=(lines,)), Identifier=b"SpeedOfLight_HierarchicalTensorRooflineChart")
    metrics: Metrics = {**device, **timing(), peak: 40960.0, work: 4096.0, CYCLES: 1.41e9, "dram__bytes.sum.per_second": 1e11}
    metrics |= {"dram__bytes.sum.peak_sustained": 1280.0, "dram__cycles_elapsed.avg.per_second": 1.2e9}
    path = report(tmp_path / "r.ncu-rep", kernel(metrics, sections=(data,)), ncu_version="2023.1.1.0")
    result = roofline(path, source="embedded")
    row, compute = result.points.iloc[0], result.roofs[result.roofs["kind"] == "compute"].iloc[0]
    assert (row["performance"], row["fraction"]) == pytest.approx((4096 * 1.41e9, 0.1))
    for notes in (row["notes"], compute["notes"]):
        assert ("counts 512 operations per tensor instruction, which holds for V100 only" in notes) != right
    assert roofline(path).points.empty
    # DMMA x 512 is FP64 work on A100; Hopper has larger instructions, so there nobody knows.
    for major, expected in ((8, ["tensor.fp64"]), (9, [])):
        work = "derived__sm__inst_executed_pipe_tensor_op_dmma_x512"
        metrics = {**A100, **timing(), work: 512.0, "dram__bytes.sum.per_second": 1e11}
        metrics["device__attribute_compute_capability_major"] = major
        data = section(chart(points=(point(per_second(work), AT_DRAM),)))
        points = roofline(report(tmp_path / f"{major}.ncu-rep", kernel(metrics, sections=(data,)))).points
        assert points["precision"].tolist() == expected


@pytest.mark.parametrize("expression", ["1e999", f"a__x.sum * {'9' * 401}", f"-{'9' * 5_000}", "a__x.sum / fzero__x.sum"])
def test_a_number_that_is_too_large_costs_its_line_only(expression: str, tmp_path: Path) -> None:
    dots = (point(one("a__x.sum"), AT_DRAM), point(one("derived__odd"), AT_DRAM))
    data = section(chart(points=dots), definitions={"derived__odd": expression})
    metrics = {**A100, **timing(), "a__x.sum": 1e12, "fzero__x.sum": 0.0, "dram__bytes.sum.per_second": 1e11}
    path = report(tmp_path / "r.ncu-rep", kernel(metrics, sections=(data,)))
    assert roofline(path, source="embedded").points["intensity"].tolist() == pytest.approx([10.0])
    (drawn,) = evaluate_charts(parse_section(data), metrics, (8, 0))
    assert [(one.part, one.metrics) for one in drawn.dropped] == [("work", ("derived__odd",))]
    assert set(roofline(path).kernels["kernel"]) == {"kernel"}  # the other commands' view, which looks at the chart too


# Charts of our own sections, and the counters behind them: the same dots, roofs and bounds.


def compared(path: Path, *own: str) -> int:
    """How many dots of sections whose identifiers begin so were found equal in both readings of a report."""
    counted, drawn = roofline(path), roofline(path, source="embedded")
    points, roofs = (frame[frame.notes.str.startswith(own)] for frame in (drawn.points, drawn.roofs))
    assert points[KEYS].duplicated().sum() == 0
    assert (points[["precision", "level"]] != "").all(axis=None)
    both = counted.points.merge(points, on=KEYS, suffixes=("", "_drawn"))
    for name in NUMBERS:
        assert both[f"{name}_drawn"].tolist() == pytest.approx(both[name].tolist(), rel=2e-3, nan_ok=True), (path, name)
    assert both.binds_drawn.tolist() == both.binds.tolist()
    # Lines that both have are called the same and have the same value: medians, not of the same launches.
    lines = counted.roofs.merge(roofs, on=["device", "kind", "roof", "origin"], suffixes=("", "_drawn"))
    assert lines.value_drawn.tolist() == pytest.approx(lines.value.tolist(), rel=0.02)
    assert lines.label_drawn.tolist() == lines.label.tolist()
    assert not roofs.roof.str.endswith(".peak").any()
    return len(both)


@pytest.mark.reports
def test_reports_that_ncu_made_with_our_sections(h100_reports: Path, tmp_path: Path) -> None:
    for names in ("gsrb", "gpp-nw3", "lecture-a", "bench.fp*", "bench.tensor.tf32.wgmma"):
        assert min(compared(path, "Hierarchical") for path in sorted(h100_reports.glob(f"{names}.ncu-rep"))) >= 3
    ceilings = read_ceilings(Path(__file__).parents[1] / "bench" / "measured_h100" / "ceilings.json")
    annotated(h100_reports / "gpp-nw3.ncu-rep", tmp_path / "out.ncu-rep", [ceilings], rules=[])
    roofs = roofline(tmp_path / "out.ncu-rep", source="embedded").roofs.query("origin == 'measured'")
    assert compared(tmp_path / "out.ncu-rep", OWN) >= 3 <= len({"fp64.fma", "l1", "l2", "dram"} & set(roofs["roof"]))
    # Half-precision counters hold bfloat16, in the chart as well; only opcodes tell them apart.
    path = h100_reports / "bench.bf16.fma.ncu-rep"
    drawn, counted = roofline(path, source="embedded").points, roofline(path).points
    assert set(drawn.precision) == {"fp16"}
    sums = [frame.groupby(["launch", "level"]).performance.sum().tolist() for frame in (drawn, counted)]
    assert sums[0] == pytest.approx(sums[1], rel=2e-3)


def committed(name: str) -> Section:
    """A section as it is in `sections/`."""
    return parse_document((pack_folder("sections") / f"{name}.section").read_text(encoding="utf-8")).section


def counters(section: Section, capability: tuple[int, int]) -> Metrics:
    """A number for each counter that the section reads on a chip, the same in all of its forms; all clocks are 1.4 GHz."""
    seconds, clock, (major, minor) = 1e-3, 1.4e9, capability
    metrics: Metrics = {**A100, "gpu__time_duration.sum": 1e9 * seconds}
    metrics |= {"device__attribute_compute_capability_major": major, "device__attribute_compute_capability_minor": minor}
    for name in needed_metrics(section, capability):
        counter = next((name.removesuffix(form) for form in FORMS if name.endswith(form)), "")
        if name.endswith("__cycles_elapsed.avg.per_second"):
            metrics[name] = clock
        elif counter and not name.startswith("derived__"):
            count = 1e6 * (1 + zlib.crc32(counter.encode()) % 1000)
            rates = (count / seconds, count / seconds / clock, 1e3 * (1 + count / 1e9), count)
            found = {f"{counter}{form}": value for form, value in zip(FORMS, rates, strict=True)}
            metrics |= {one: value for one, value in found.items() if one == name or one == f"{counter}.sum"}
    return metrics


FEW = [((8, 0), "Half"), ((9, 0), "Double"), ((10, 0), "Single")]


@pytest.mark.parametrize(
    ("chip", "name"),
    [
        pytest.param(chip, name, marks=() if (chip, name) in FEW else pytest.mark.exhaustive)
        for chip in CHIPS
        for name in ("Double", "Single", "Half")
    ],
)
def test_charts_of_every_chip(tmp_path: Path, chip: tuple[int, int], name: str) -> None:
    """Work, traffic and the compute roof that a dot stands under."""
    section = committed(f"Hierarchical{name}RooflineChart")
    launch = kernel(counters(section, chip), sections=(section.message.SerializeToString(),))
    path = report(tmp_path / "r.ncu-rep", launch, ncu_version="2025.3.1.0")
    drawn = roofline(path, source="embedded").points
    drawn = drawn[drawn.level != "system"]  # all of its counters have a number here, and each has a dot
    both = roofline(path).points.merge(drawn, on=KEYS, suffixes=("", "_drawn"))
    assert len(both) >= 2
    for number in ("intensity", "performance", "compute_roof"):
        assert both[f"{number}_drawn"].tolist() == pytest.approx(both[number].tolist(), rel=1e-9, nan_ok=True), number


def test_the_instruction_chart_is_no_flops(tmp_path: Path) -> None:
    """It is left out, and said to be; the other charts of the report stay."""
    double, instructions = committed("HierarchicalDoubleRooflineChart"), committed("InstructionRooflineChart")
    metrics = {**counters(double, (8, 0)), **counters(instructions, (8, 0))}
    for sections, dots in (((double, instructions), True), ((instructions,), False)):
        launch = kernel(metrics, sections=tuple(one.message.SerializeToString() for one in sections))
        result = roofline(report(tmp_path / "r.ncu-rep", launch), source="embedded")
        frames = (result.points, result.roofs)
        assert not any(frame.notes.str.contains("InstructionRooflineChart").any() for frame in frames)
        assert bool(len(result.points)) == bool(len(result.roofs)) == dots
        text = "the report's chart InstructionRooflineChart counts instructions: --view instruction draws these"
        assert text in result.kernels.notes[0]
        assert result.kernels.status[0] == ("ok" if dots else "no-chart")


def test_half_precision_from_fma_alone(tmp_path: Path) -> None:
    """Drawn as the viewer does, and said to be too low; as a count of work it is not taken."""
    section = committed("HierarchicalHalfRooflineChart")
    metrics, data = counters(section, (8, 0)), (section.message.SerializeToString(),)
    whole = roofline(report(tmp_path / "r.ncu-rep", kernel(metrics, sections=data)), source="embedded").points
    for lost in (["hadd", "hmul"], ["hmul"]):
        kept = {name: value for name, value in metrics.items() if not any(f"_op_{one}_" in name for one in lost)}
        path = report(tmp_path / "r.ncu-rep", kernel(kept, sections=data))
        drawn = roofline(path, source="embedded").points
        assert drawn.level.tolist() == whole.level.tolist()
        assert ((drawn.performance > 0) & (drawn.performance < whole.performance)).all()
        assert drawn.notes.str.contains("drawn too low, as the viewer does: the report lacks derived__rl_smsp__sass").all()
        assert roofline(path).points.empty
