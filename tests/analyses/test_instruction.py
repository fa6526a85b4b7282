"""The instruction roofline against Ding, Williams, "An Instruction Roofline Model for GPUs" (2019), and its section."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ncu_roofline.analyses.instruction import TABLES, InstructionRoofline, instruction_roofline
from ncu_roofline.base.units import UNITS
from ncu_roofline.chips import load_instructions
from ncu_roofline.formats.ceilings import Ceiling, Ceilings
from ncu_roofline.formats.sectionfile.charts import evaluate_charts
from ncu_roofline.model import measurements_of
from tests import factory
from tests.analyses import makers
from tests.analyses.data import first
from tests.generate.made import VERSIONS, collected, kernel_metrics, profiled, section
from tests.instruction_factory import RELEASES

# Their section II on a V100: 80 SMs, 4 schedulers, 1.53 GHz; measured GB/s of L1, L2 and HBM and the GTXN/s drawn from them.
SMS, CLOCK = 80, 1.53e9
PEAK_GIPS = 489.6
BANDWIDTHS = {"l1": (14000.0, 437.5), "l2": (2996.77, 93.6), "dram": (828.8, 25.9)}
# Their walls: transactions of one global load (section III-B), ways of bank conflict of shared memory (III-C).
GLOBAL_WALLS = {"stride 0": 1, "unit stride, 4 B": 4, "unit stride, 8 B": 8, "stride of 32 B or more": 32}
BANK_CONFLICTS = (1, 2, 4, 8, 16, 32)
LOADS = 1_000_000


def only(frame: pd.DataFrame, **values: str) -> Any:
    """The only row with these values."""
    for name, value in values.items():
        frame = frame[frame[name] == value]
    assert len(frame) == 1, values
    return frame.iloc[0]


def test_published_peak_and_bandwidths(tmp_path: Path) -> None:
    measured = {level: Ceiling(level, value * 1e9, "B/s", CLOCK, "") for level, (value, _) in BANDWIDTHS.items()}
    ceilings = Ceilings("v100.json", "Tesla V100-SXM2-16GB", "", (7, 0), "", measured)
    result = makers.instruction(tmp_path, [{}], ceilings=ceilings)
    issue = only(result.roofs, roof="issue")
    assert (issue["value"], issue["unit"], issue["kind"]) == (pytest.approx(PEAK_GIPS * 1e9), "inst/s", "compute")
    for level, (_, published) in BANDWIDTHS.items():
        roof = only(result.roofs, roof=level, origin="measured")
        assert (roof["value"] / 1e9, roof["unit"]) == (pytest.approx(published, abs=0.06), "txn/s"), level
    dram = only(result.points, precision="inst", level="dram")
    assert dram["attainable"] == pytest.approx(min(PEAK_GIPS, 5.12 * 828.8 / 32) * 1e9)  # 40 million in 0.25 GB / 32


@pytest.mark.parametrize("release", RELEASES)
def test_patterns_stand_at_their_walls(tmp_path: Path, release: str) -> None:
    """Global loads by the transactions of one, shared memory by the ways of its bank conflicts, in each release's words."""
    for pattern, transactions in GLOBAL_WALLS.items():
        loads = {"release": release, "accesses": {"global_ld": (LOADS, transactions * LOADS)}}
        result = makers.instruction(tmp_path, [loads])
        dot = only(result.points, precision="inst.global_ld", level="l1")
        wall = only(result.roofs, roof=f"wall.global_ld.{transactions}")
        assert dot["intensity"] == pytest.approx(1 / transactions) == wall["value"], pattern
        assert (wall["kind"], wall["unit"], wall["precision"]) == ("wall", "inst/txn", "inst.global_ld")
        assert dot["performance"] == pytest.approx(LOADS / 1e-3)
    for ways in BANK_CONFLICTS:
        counts = {"shared_ld": (LOADS, ways * LOADS), "shared_st": (2 * LOADS, ways * 2 * LOADS)}
        result = makers.instruction(tmp_path, [{"release": release, "accesses": counts}])
        dot = only(result.points, precision="inst.shared", level="shared")
        assert dot["intensity"] == pytest.approx(1 / ways) == only(result.roofs, roof=f"wall.shared.{ways}")["value"]
        assert only(result.roofs, roof="shared")["value"] == pytest.approx(SMS * CLOCK)  # a wavefront per SM and cycle
        everything = only(result.points, precision="inst", level="l1")
        assert everything["traffic"] == pytest.approx(1e9 / 32 + 4 * ways * 3 * LOADS)  # a wavefront is 4 transactions


def test_the_walls_are_the_published_ones() -> None:
    counted = load_instructions()
    assert [wall.transactions for wall in counted.walls if wall.kind == "inst.global_ld"] == list(GLOBAL_WALLS.values())
    assert [wall.transactions for wall in counted.walls if wall.kind == "inst.shared"] == list(BANK_CONFLICTS)
    assert counted.issue_per_sm * SMS * CLOCK == pytest.approx(PEAK_GIPS * 1e9)
    units = {column.name: column.unit for column in TABLES["points"] if column.unit in UNITS}
    assert (units["work"], units["intensity"], units["performance"]) == ("inst", "inst/txn", "inst/s")
    assert (units["traffic"], units["bandwidth"], units["bandwidth_roof"]) == ("txn", "txn/s", "txn/s")


def test_what_is_read_and_what_is_to_collect(tmp_path: Path) -> None:
    path = makers.written(tmp_path, "r", [{"gpu": "V100", "inst": 40e6}])
    assert (bool(measurements_of(path).instructions), "issue" in measurements_of(path).compute) == (False, False)
    assert instruction_roofline(measurements_of(path, instructions=True)).points["work"].tolist() == [40e6] * 3
    demo = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo" / "gpp-v100.ncu-rep"
    assert instruction_roofline(demo).to_collect == ("smsp__inst_executed.sum",)


SECTION_CASES = [(v, one) for v in VERSIONS if v in ("2025.4", "2024.2", "2020.3", "base") for one in profiled(v)][::-1]
LABELS = {"l1": "L1/TEX", "l2": "L2", "dram": "DRAM", "system": "System memory"}


@pytest.mark.parametrize(("version", "capability"), first(SECTION_CASES))
def test_agrees_with_the_section(version: str, capability: tuple[int, int], tmp_path: Path) -> None:
    """The chart of InstructionRooflineChart and the model say the same of a report with what the section collects."""
    drawn = section(version, "InstructionRooflineChart")
    metrics = kernel_metrics(collected(drawn, capability), capability)
    (chart,) = evaluate_charts(drawn, metrics, capability)
    result: InstructionRoofline = instruction_roofline(factory.report(tmp_path / "r.ncu-rep", factory.kernel(metrics)))
    alone = "Global loads alone, at the sectors they ask for"
    rows = {
        alone if row.precision != "inst" else f"All instructions at {LABELS[row.level]}": (row.intensity, row.performance)
        for row in result.points.itertuples()
    }
    found = {point.label: (point.intensity, point.work) for point in chart.points}
    assert found.keys() == rows.keys()
    assert all(found[label] == pytest.approx(rows[label], rel=1e-9) for label in rows)
    roofs = dict(zip(result.roofs["roof"], result.roofs["value"], strict=True))
    for roof in chart.roofs:
        assert roof.work == pytest.approx(roofs["issue"], rel=1e-9)
        level = next(level for level, label in LABELS.items() if roof.label.startswith(label))
        if level in roofs:  # of a chip with unknown figures per SM the model draws no roof
            assert roof.traffic == pytest.approx(roofs[level], rel=1e-9), roof.label
    walls = result.roofs[result.roofs["kind"] == "wall"]
    assert [wall.intensity for wall in chart.walls] == pytest.approx(walls["value"].tolist())


REAL = {
    # A kernel that loads 16 bytes per thread: 16 sectors for each load, shared memory without conflict.
    ("a40-ncu2022.1-full-1", 1): {"inst.global_ld": 1 / 15.99, "inst.shared": 1.0},
    ("a40-ncu2022.4-full-1", 4): {"inst.global_ld": 1 / 16.14, "inst.shared": 0.9977},
    # Neighbour searches: between one address for all threads and unit stride.
    ("a100-ncu2020.3-full-1", 0): {"inst.global_ld": 0.9956},
    ("a100-ncu2021.2-full-1", 0): {"inst.global_ld": 0.4048},
    ("a100-ncu2022.4-full-1", 0): {"inst.global_ld": 0.3300},
}


@pytest.mark.reports
def test_real_reports(real_reports: dict[str, Path]) -> None:
    for (name, launch), expected in REAL.items():
        result = instruction_roofline(real_reports[f"{name}.ncu-rep"])
        dots = result.points[result.points["launch"] == launch]
        parts = dots[dots["precision"] != "inst"].set_index("precision")["intensity"].to_dict()
        assert parts == pytest.approx(expected, rel=1e-3)
        assert {"l1", "l2", "dram"} <= set(dots[dots["precision"] == "inst"]["level"])
        assert (dots["fraction"] <= 1.02).all()
        with_dots = set(result.points["launch"])
        assert all((row.launch in with_dots) == (row.status == "ok") for row in result.kernels.itertuples())
