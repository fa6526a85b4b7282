"""Charts of our own sections, read with `source="embedded"`, and the counters behind them: the same dots, roofs and bounds."""

from __future__ import annotations

import zlib
from pathlib import Path

import pandas as pd
import pytest

from ncu_roofline.base.files import pack_folder
from ncu_roofline.chips import load_spec
from ncu_roofline.formats.ceilings import read_ceilings
from ncu_roofline.formats.sectionfile.section import Section
from ncu_roofline.formats.sectionfile.text import parse_document
from ncu_roofline.model import roofline
from tests.annotate.helpers import OWN, annotated
from tests.factory import A100, Metrics, kernel, report
from tests.sectionfile.reading import needed_metrics

CEILINGS = Path(__file__).resolve().parent.parent / "bench" / "measured_h100" / "ceilings.json"
KEYS = ["launch", "precision", "level"]
NUMBERS = ["intensity", "performance", "compute_roof", "bandwidth_roof", "attainable", "fraction", "binding_fraction"]
CHIPS = [one.compute_capability for one in load_spec().architectures if not one.left_out]
FORMS = (".sum.per_second", ".sum.per_cycle_elapsed", ".sum.peak_sustained", ".sum")


def compared(path: Path, *own: str, ceilings: Path | None = None) -> int:
    """How many dots of sections whose identifiers begin so were found equal in both readings of a report."""
    counted, drawn = roofline(path), roofline(path, source="embedded")
    points = drawn.points[drawn.points.notes.str.startswith(own)]
    assert points[KEYS].duplicated().sum() == 0
    assert (points.precision != "").all()
    assert (points.level != "").all()
    both = counted.points.merge(points, on=KEYS, suffixes=("", "_drawn"))
    for name in NUMBERS:
        assert both[f"{name}_drawn"].tolist() == pytest.approx(both[name].tolist(), rel=2e-3, nan_ok=True), (path, name)
    assert both.binds_drawn.tolist() == both.binds.tolist()
    same_roofs(counted.roofs, drawn.roofs[drawn.roofs.notes.str.startswith(own)])
    if ceilings:
        measured = roofline(path, ceilings).roofs
        roofs = drawn.roofs[drawn.roofs.notes.str.startswith(own)]
        assert same_roofs(measured[measured.origin == "measured"], roofs[roofs.origin == "measured"]) > 0
    return len(both)


def same_roofs(counted: pd.DataFrame, drawn: pd.DataFrame) -> int:
    """Lines that both have are called the same and have the same value; the drawn ones are what was measured at each launch."""
    both = counted.merge(drawn, on=["device", "kind", "roof", "origin"], suffixes=("", "_drawn"))
    assert both.value_drawn.tolist() == pytest.approx(both.value.tolist(), rel=0.02)  # medians, not of the same launches
    assert both.label_drawn.tolist() == both.label.tolist()
    assert not drawn.roof.str.endswith(".peak").any()
    return len(both)


@pytest.mark.reports
@pytest.mark.parametrize("names", ["gsrb", "gpp-nw*", "lecture-a", "bench.fp*", "bench.tensor.*"])
def test_reports_that_ncu_made_with_our_sections(names: str, h100_reports: Path) -> None:
    dots = [compared(path, "Hierarchical") for path in sorted(h100_reports.glob(f"{names}.ncu-rep"))]
    assert min(dots) >= 3


def test_half_precision_counters_hold_bfloat16(h100_reports: Path) -> None:
    """In the chart as in the counters; only opcodes tell them apart."""
    path = h100_reports / "bench.bf16.fma.ncu-rep"
    drawn = roofline(path, source="embedded").points
    counted = roofline(path).points.groupby(["launch", "level"]).performance.sum()
    assert set(drawn.precision) == {"fp16"}
    assert drawn.groupby(["launch", "level"]).performance.sum().tolist() == pytest.approx(counted.tolist(), rel=2e-3)


@pytest.mark.reports
@pytest.mark.parametrize(
    "name",
    [
        "a100-ncu2020.3-full-1",
        "a100-ncu2021.2-full-1",
        "a10g-ncu2023.1-roofline-1",
        "rtx4060-ncu2024.2-custom-1",
        "v100-ncu2022.2-full-1",
    ],
)
def test_annotated_reports(name: str, real_reports: dict[str, Path], tmp_path: Path) -> None:
    if f"{name}.ncu-rep" not in real_reports:
        pytest.skip(f"no {name}.ncu-rep in the collection of reports")
    target = tmp_path / "out.ncu-rep"
    annotated(real_reports[f"{name}.ncu-rep"], target, rules=[])
    assert compared(target, OWN) >= 3


@pytest.mark.reports
@pytest.mark.parametrize("name", ["gpp-nw3", "bench.tensor.tf32.wgmma"])
def test_measured_roofs_in_annotated_reports(name: str, h100_reports: Path, tmp_path: Path) -> None:
    annotated(h100_reports / f"{name}.ncu-rep", tmp_path / "out.ncu-rep", [read_ceilings(CEILINGS)], rules=[])
    assert compared(tmp_path / "out.ncu-rep", OWN, ceilings=CEILINGS) >= 3


def committed(name: str) -> Section:
    """A section as it is in `sections/`."""
    return parse_document((pack_folder("sections") / f"{name}.section").read_text(encoding="utf-8")).section


def counters(section: Section, capability: tuple[int, int]) -> Metrics:
    """A number for each counter that the section reads on a chip, the same in all of its forms; all clocks are 1.4 GHz."""
    seconds, clock = 1e-3, 1.4e9
    metrics: Metrics = {
        **A100,
        "gpu__time_duration.sum": 1e9 * seconds,
        "device__attribute_compute_capability_major": capability[0],
        "device__attribute_compute_capability_minor": capability[1],
    }
    for name in needed_metrics(section, capability):
        counter = next((name.removesuffix(form) for form in FORMS if name.endswith(form)), "")
        if name.endswith("__cycles_elapsed.avg.per_second"):
            metrics[name] = clock
        elif counter and not name.startswith("derived__"):
            count = 1e6 * (1 + zlib.crc32(counter.encode()) % 1000)
            rates = (count / seconds, count / seconds / clock, 1e3 * (1 + count / 1e9), count)
            metrics |= {
                f"{counter}{form}": value for form, value in zip(FORMS, rates, strict=True) if form in name or form == ".sum"
            }
    return metrics


FEW = [((9, 0), "Double"), ((10, 0), "Single"), ((7, 0), "Half")]


@pytest.mark.parametrize(
    ("chip", "name"),
    [
        pytest.param(chip, name, marks=() if chip == (8, 0) or (chip, name) in FEW else pytest.mark.exhaustive)
        for chip in CHIPS
        for name in ("Double", "Single", "Half")
    ],
)
def test_charts_of_every_chip(tmp_path: Path, chip: tuple[int, int], name: str) -> None:
    """Work, traffic and the compute roof that a dot stands under; what binds is the lowest roof that is drawn."""
    section = committed(f"Hierarchical{name}RooflineChart")
    launch = kernel(counters(section, chip), sections=(section.message.SerializeToString(),))
    path = report(tmp_path / "r.ncu-rep", launch, ncu_version="2025.3.1.0")
    drawn = roofline(path, source="embedded").points
    drawn = drawn[drawn.level != "system"]  # all of its counters have a number here, and each has a dot
    both = roofline(path).points.merge(drawn, on=KEYS, suffixes=("", "_drawn"))
    assert len(both) >= 2
    for number in ("intensity", "performance", "compute_roof"):
        assert both[f"{number}_drawn"].tolist() == pytest.approx(both[number].tolist(), rel=1e-9, nan_ok=True), number
    for precision, rows in drawn.groupby("precision"):
        lowest = rows.loc[rows.attainable.idxmin()]
        memory = lowest.intensity * lowest.bandwidth_roof < lowest.compute_roof
        assert set(rows.binds) == {lowest.level if memory else load_spec().precision(precision).roof_ids()[0]}
        assert rows.binding_fraction.tolist() == pytest.approx((rows.performance / lowest.attainable).tolist())


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


@pytest.mark.parametrize("lost", [["hadd", "hmul"], ["hmul"]])
def test_half_precision_from_fma_alone(tmp_path: Path, lost: list[str]) -> None:
    """Drawn as the viewer does, and said to be too low; as a count of work it is not taken."""
    section = committed("HierarchicalHalfRooflineChart")
    metrics = counters(section, (8, 0))
    data = (section.message.SerializeToString(),)
    whole = roofline(report(tmp_path / "r.ncu-rep", kernel(metrics, sections=data)), source="embedded")
    metrics = {name: value for name, value in metrics.items() if not any(f"_op_{one}_" in name for one in lost)}
    path = report(tmp_path / "r.ncu-rep", kernel(metrics, sections=data))
    drawn = roofline(path, source="embedded").points
    assert drawn.level.tolist() == whole.points.level.tolist()
    assert (drawn.performance > 0).all()
    assert (drawn.performance < whole.points.performance).all()
    assert drawn.notes.str.contains("drawn too low, as the viewer does: the report lacks derived__rl_smsp__sass").all()
    assert roofline(path).points.empty
