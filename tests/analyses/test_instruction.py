"""The instruction roofline against Ding, Williams, "An Instruction Roofline Model for GPUs" (2019), and on made reports."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ncu_roofline.analyses.instruction import TABLES, InstructionRoofline, instruction_roofline
from ncu_roofline.base.units import UNITS
from ncu_roofline.chips import load_instructions
from ncu_roofline.formats.ceilings import Ceiling, Ceilings
from ncu_roofline.formats.sectionfile.charts import evaluate_charts
from ncu_roofline.model import Selection, columns, measurements_of
from tests import factory
from tests.generate.made import VERSIONS, collected, kernel_metrics, profiled, section
from tests.instruction_factory import RELEASES, accesses, executed

# Their section II on a V100: 80 SMs, 4 schedulers, 1.53 GHz; measured GB/s of L1, L2 and HBM and the GTXN/s drawn from them.
SMS, CLOCK = 80, 1.53e9
PEAK_GIPS = 489.6
BANDWIDTHS = {"l1": (14000.0, 437.5), "l2": (2996.77, 93.6), "dram": (828.8, 25.9)}
# Their walls: transactions of one global load (section III-B), ways of bank conflict of shared memory (III-C).
GLOBAL_WALLS = {"stride 0": 1, "unit stride, 4 B": 4, "unit stride, 8 B": 8, "stride of 32 B or more": 32}
BANK_CONFLICTS = (1, 2, 4, 8, 16, 32)

LOADS = 1_000_000
V100_CEILINGS = Ceilings(
    "v100.json",
    "Tesla V100-SXM2-16GB",
    "",
    (7, 0),
    "",
    {level: Ceiling(level, value * 1e9, "B/s", CLOCK, "") for level, (value, _) in BANDWIDTHS.items()},
)


def made(folder: Path, *kernels: factory.Metrics, **options: Any) -> InstructionRoofline:
    """The instruction roofline of a made report."""
    path = factory.report(folder / "made.ncu-rep", *(factory.kernel(one) for one in kernels))
    return instruction_roofline(path, **options)


def v100(**more: float) -> factory.Metrics:
    """A millisecond on a V100 at 1.53 GHz with 1 GB, 0.5 GB and 0.25 GB of traffic, and 40 million warp instructions."""
    counted = factory.complete(factory.V100, clock=CLOCK)
    return {**counted, **executed(40_000_000), **more}


def only(frame: pd.DataFrame, **values: str) -> Any:
    """The only row with these values."""
    for name, value in values.items():
        frame = frame[frame[name] == value]
    assert len(frame) == 1, values
    return frame.iloc[0]


def test_published_peak_and_bandwidths(tmp_path: Path) -> None:
    result = made(tmp_path, v100(), ceilings=V100_CEILINGS)
    issue = only(result.roofs, roof="issue")
    assert issue["value"] == pytest.approx(PEAK_GIPS * 1e9)
    assert (issue["unit"], issue["kind"], issue["source"]) == ("inst/s", "compute", "architecture")
    for level, (_, published) in BANDWIDTHS.items():
        roof = only(result.roofs, roof=level, origin="measured")
        assert roof["value"] / 1e9 == pytest.approx(published, abs=0.06), level
        assert roof["unit"] == "txn/s"
    dots = result.points[result.points["precision"] == "inst"].set_index("level")
    assert dots.loc["dram", "compute_roof"] == pytest.approx(PEAK_GIPS * 1e9)
    assert dots.loc["dram", "attainable"] == pytest.approx(min(PEAK_GIPS, 5.12 * 828.8 / 32) * 1e9)


def test_recorded_peak_comes_before_the_architecture(tmp_path: Path) -> None:
    issue = only(made(tmp_path, v100(**{"sm__inst_issued.sum.peak_sustained": 300})).roofs, roof="issue")
    assert (issue["value"], issue["source"]) == (pytest.approx(300 * CLOCK), "binding")


def test_all_instructions_against_each_level(tmp_path: Path) -> None:
    result = made(tmp_path, v100())
    dots = result.points.set_index("level")
    assert dots["work"].tolist() == [40e6] * 3
    assert dots["traffic"].to_dict() == {"l1": 1e9 / 32, "l2": pytest.approx(0.5e9 / 32), "dram": 0.25e9 / 32}
    assert dots.loc["l1", "intensity"] == pytest.approx(40e6 / (1e9 / 32))
    assert dots["performance"].tolist() == pytest.approx([40e9] * 3)
    assert set(dots["unit"]) == {"inst"}
    assert "shared memory is not among them" in dots.loc["l1", "notes"]
    assert result.kernels["work"].tolist() == [40e6]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(("pattern", "transactions"), GLOBAL_WALLS.items())
def test_global_loads_stand_at_their_wall(tmp_path: Path, release: str, pattern: str, transactions: int) -> None:
    result = made(tmp_path, v100(**accesses(release, global_ld=(LOADS, transactions * LOADS))))  # type: ignore[arg-type]
    dot = only(result.points, precision="inst.global_ld", level="l1")
    wall = only(result.roofs, roof=f"wall.global_ld.{transactions}")
    assert dot["intensity"] == pytest.approx(1 / transactions) == wall["value"], pattern
    assert (wall["kind"], wall["unit"], wall["precision"]) == ("wall", "inst/txn", "inst.global_ld")
    assert dot["performance"] == pytest.approx(LOADS / 1e-3)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("ways", BANK_CONFLICTS)
def test_shared_memory_stands_at_its_bank_conflicts(tmp_path: Path, release: str, ways: int) -> None:
    counts = accesses(release, shared_ld=(LOADS, ways * LOADS), shared_st=(2 * LOADS, ways * 2 * LOADS))
    result = made(tmp_path, v100(**counts))  # type: ignore[arg-type]
    dot = only(result.points, precision="inst.shared", level="shared")
    assert dot["intensity"] == pytest.approx(1 / ways) == only(result.roofs, roof=f"wall.shared.{ways}")["value"]
    # One wavefront of 128 bytes per SM and cycle.
    assert only(result.roofs, roof="shared")["value"] == pytest.approx(SMS * CLOCK)
    # Ding and Williams: a wavefront is four transactions of 32 bytes in L1.
    everything = only(result.points, precision="inst", level="l1")
    assert everything["traffic"] == pytest.approx(1e9 / 32 + 4 * ways * 3 * LOADS)
    assert "4 for each wavefront of shared loads and stores" in everything["notes"]


def test_the_walls_are_the_published_ones() -> None:
    counted = load_instructions()
    assert [wall.transactions for wall in counted.walls if wall.kind == "inst.global_ld"] == list(GLOBAL_WALLS.values())
    assert [wall.transactions for wall in counted.walls if wall.kind == "inst.shared"] == list(BANK_CONFLICTS)
    assert counted.issue_per_sm * SMS * CLOCK == pytest.approx(PEAK_GIPS * 1e9)


def test_requests_stand_in_for_load_instructions(tmp_path: Path) -> None:
    counts = {
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": LOADS,
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 8 * LOADS,
    }
    dot = only(made(tmp_path, v100(**counts)).points, precision="inst.global_ld")
    assert (dot["intensity"], dot["source"]) == (0.125, "derived")
    assert "requests to L1 instead of load instructions" in dot["notes"]


@pytest.mark.parametrize(
    ("lanes", "noted"), [(32.0, ""), (23.0, ""), (12.0, "12 of 32 lanes work on average")], ids=["all", "most", "few"]
)
def test_lanes_lost_to_predication(tmp_path: Path, lanes: float, noted: str) -> None:
    dots = made(tmp_path, v100(**executed(40_000_000, lanes))).points  # type: ignore[arg-type]
    assert dots["lanes"].tolist() == pytest.approx([lanes / 32] * 3)
    assert all(("lanes work" in text) == bool(noted) and noted in text for text in dots["notes"])


def test_lanes_of_a_kernel_weigh_instructions(tmp_path: Path) -> None:
    kernels = [v100(**executed(30_000_000, 32)), v100(**executed(10_000_000, 8))]  # type: ignore[arg-type]
    dots = made(tmp_path, *kernels, by="kernel").points
    assert dots["lanes"].tolist() == pytest.approx([(30 * 32 + 10 * 8) / 40 / 32] * 3)
    assert dots["work"].tolist() == [40e6] * 3


def without(name: str, *names: str) -> factory.Metrics:
    """A complete kernel without some metrics."""
    return {key: value for key, value in v100().items() if key not in (name, *names)}


L1_L2_DRAM = ("l1tex__t_bytes.sum", "lts__t_sectors_srcunit_tex.sum", "dram__bytes.sum")
UNKNOWN = {**v100(), "device__attribute_compute_capability_major": 6}


@pytest.mark.parametrize(
    ("metrics", "status", "missing"),
    [
        (v100(), "ok", ""),
        (without("smsp__inst_executed.sum"), "no-work-metrics", "inst"),
        (without("dram__bytes.sum"), "ok", "dram"),
        (without(*L1_L2_DRAM), "no-traffic-metrics", "l1 l2 dram"),
        (without("gpu__time_duration.sum"), "no-time", ""),
        ({**v100(), "smsp__inst_executed.sum": 0}, "no-instructions", ""),
        (UNKNOWN, "unknown-chip", "inst l1 l2 dram"),
    ],
    ids=["complete", "no instructions", "no DRAM", "no traffic", "no time", "zero", "unknown chip"],
)
def test_every_launch_is_listed_with_a_reason(tmp_path: Path, metrics: factory.Metrics, status: str, missing: str) -> None:
    result = made(tmp_path, metrics)
    assert result.kernels[["status", "missing"]].to_numpy().tolist() == [[status, missing]]
    assert (len(result.points) > 0) == (status == "ok")
    assert not (result.points["performance"] == 0).any()
    counters = dict(zip(("inst", "l1", "l2", "dram"), ("smsp__inst_executed.sum", *L1_L2_DRAM), strict=True))
    lacking = [] if status == "unknown-chip" else missing.split()
    assert result.to_collect == tuple(counters[name] for name in lacking)


def test_only_metrics_that_some_launch_lacks_are_to_be_collected(tmp_path: Path) -> None:
    """A level that another counter tells lacks nothing (the demo's L2 counts the requests of all units)."""
    other = {**without("smsp__inst_executed.sum", "lts__t_sectors_srcunit_tex.sum"), "lts__t_bytes.sum": 1e9}
    assert made(tmp_path, other).to_collect == ("smsp__inst_executed.sum",)
    demo = resources.files("ncu_roofline") / "data" / "demo" / "gpp-v100.ncu-rep"
    assert instruction_roofline(str(demo)).to_collect == ("smsp__inst_executed.sum",)


def test_filters(tmp_path: Path) -> None:
    counts = v100(**accesses(global_ld=(LOADS, 4 * LOADS), shared_ld=(1, 1), shared_st=(1, 1)))  # type: ignore[arg-type]
    loads = made(tmp_path, counts, select=Selection(precisions=("inst.global_ld",)))
    assert loads.points["precision"].tolist() == ["inst.global_ld"]
    assert set(loads.roofs["roof"]) >= {"issue", "l1", "wall.global_ld.4"}
    dram = made(tmp_path, counts, select=Selection(levels=("dram",)))
    assert dram.points["level"].tolist() == ["dram"]
    assert set(dram.roofs[dram.roofs["kind"] == "bandwidth"]["roof"]) == {"dram"}


@pytest.mark.parametrize("by", ["launch", "kernel"])
def test_launches_that_are_chosen(tmp_path: Path, by: str) -> None:
    names = ("void one(int)", "void other(int)", "void other(int)")
    counts = (v100(), {**v100(), **executed(20_000_000)}, {**v100(), **factory.timing(2e-3, CLOCK)})
    launches = (factory.kernel(one, name) for one, name in zip(counts, names, strict=True))
    path = factory.report(tmp_path / "made.ncu-rep", *launches)
    found = instruction_roofline(path, by=by, select=Selection(kernel="other")).kernels
    assert set(found["kernel"]) == {"other"}
    assert found["work"].sum() == 60_000_000
    assert found["time_share"].sum() == pytest.approx(3 / 4)


def test_columns_units_and_order(tmp_path: Path) -> None:
    result = made(tmp_path, v100())
    assert result.view == "instruction"
    assert list(result.points.columns) == [column.name for column in columns.POINTS]
    units = {column.name: column.unit for column in TABLES["points"]}
    assert {name: units[name] for name in ("work", "traffic", "intensity", "performance", "bandwidth", "bandwidth_roof")} == {
        "work": "inst",
        "traffic": "txn",
        "intensity": "inst/txn",
        "performance": "inst/s",
        "bandwidth": "txn/s",
        "bandwidth_roof": "txn/s",
    }
    assert {unit for unit in units.values() if unit} | set(result.roofs["unit"]) <= set(UNITS)


def test_instructions_are_read_only_where_asked_for(tmp_path: Path) -> None:
    path = factory.report(tmp_path / "made.ncu-rep", factory.kernel(v100()))
    plain, counted = measurements_of(path), measurements_of(path, instructions=True)
    assert not plain.instructions
    assert "issue" not in plain.compute
    assert set(counted.instructions) == {"inst", "lanes"}
    assert instruction_roofline(counted).points["work"].tolist() == [40e6] * 3


SECTION_CASES = [(v, one) for v in VERSIONS if v in ("base", "2020.3", "2024.2", "2025.4") for one in profiled(v)]


@pytest.mark.sampled
@pytest.mark.parametrize(("version", "capability"), SECTION_CASES)
def test_agrees_with_the_section(version: str, capability: tuple[int, int], tmp_path: Path) -> None:
    """The chart of InstructionRooflineChart and the model say the same of a report with what the section collects."""
    drawn = section(version, "InstructionRooflineChart")
    metrics = kernel_metrics(collected(drawn, capability), capability)
    (chart,) = evaluate_charts(drawn, metrics, capability)
    result = made(tmp_path, metrics)
    labels = {"l1": "L1/TEX", "l2": "L2", "dram": "DRAM", "system": "System memory"}
    rows = {
        "Global loads alone, at the sectors they ask for"
        if row.precision != "inst"
        else f"All instructions at {labels[row.level]}": row
        for row in result.points.itertuples()
    }
    assert {point.label for point in chart.points} == set(rows)
    for point in chart.points:
        row = rows[point.label]
        assert row.intensity == pytest.approx(point.intensity, rel=1e-9), point.label
        assert row.performance == pytest.approx(point.work, rel=1e-9), point.label
    roofs = dict(zip(result.roofs["roof"], result.roofs["value"], strict=True))
    for roof in chart.roofs:
        assert roof.peak_work == pytest.approx(roofs["issue"], rel=1e-9)
        level = next(level for level, label in labels.items() if roof.label.startswith(label))
        if level in roofs:  # of a chip with unknown figures per SM the model draws no roof
            assert roof.peak_traffic == pytest.approx(roofs[level], rel=1e-9), roof.label
    walls = result.roofs[result.roofs["kind"] == "wall"]
    assert [wall.intensity for wall in chart.walls] == pytest.approx(walls["value"].tolist())


@pytest.mark.reports
@pytest.mark.parametrize(
    ("name", "launch", "expected"),
    [
        # A kernel that loads 16 bytes per thread: 16 sectors for each load, shared memory without conflict.
        ("a40-ncu2022.1-full-1.ncu-rep", 1, {"inst.global_ld": 1 / 15.99, "inst.shared": 1.0}),
        ("a40-ncu2022.4-full-1.ncu-rep", 4, {"inst.global_ld": 1 / 16.14, "inst.shared": 0.9977}),
        # Neighbour searches: between one address for all threads and unit stride.
        ("a100-ncu2020.3-full-1.ncu-rep", 0, {"inst.global_ld": 0.9956}),
        ("a100-ncu2021.2-full-1.ncu-rep", 0, {"inst.global_ld": 0.4048}),
        ("a100-ncu2022.4-full-1.ncu-rep", 0, {"inst.global_ld": 0.3300}),
    ],
)
def test_real_reports(real_reports: dict[str, Path], name: str, launch: int, expected: dict[str, float]) -> None:
    dots = instruction_roofline(real_reports[name]).points
    dots = dots[dots["launch"] == launch]
    parts = dots[dots["precision"] != "inst"].set_index("precision")["intensity"].to_dict()
    assert parts == {kind: pytest.approx(value, rel=1e-3) for kind, value in expected.items()}
    assert {"l1", "l2", "dram"} <= set(dots[dots["precision"] == "inst"]["level"])
    assert (dots["fraction"] <= 1.02).all()


@pytest.mark.reports
def test_every_real_report_lists_its_launches(real_reports: dict[str, Path]) -> None:
    for path in real_reports.values():
        result = instruction_roofline(path)
        with_dots = set(zip(result.points["report"], result.points["launch"], strict=True))
        for row in result.kernels.itertuples():
            assert ((row.report, row.launch) in with_dots) == (row.status == "ok"), path.name
