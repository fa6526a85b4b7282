"""What a release of Nsight Compute does with the clocks, and who says so."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from ncu_roofline import roofline
from ncu_roofline.chips.ncu import BY_RELEASE, clocks_text, default_clocks
from ncu_roofline.formats.report import ReportData, Session, read_report, write_report
from ncu_roofline.model import measurements_of
from ncu_roofline.model.explanations import explain
from tests.factory import complete, kernel, report

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    ("version", "clocks"),
    [
        ("2020.3.0.0", "base"),
        ("2025.4.1.0", "base"),
        ("2025.4", "base"),
        ("2026.1", "boost"),
        ("2026.1.0.0 (build 1)", "boost"),
        ("2026.10.0.0", "boost"),
        ("2027.1.0.0", "boost"),
        ("", ""),
        ("unknown", ""),
        ("2026", ""),
        ("2026.", ""),
    ],
)
def test_default_clocks(version: str, clocks: str) -> None:
    assert default_clocks(version) == clocks


@pytest.mark.parametrize(
    ("version", "control", "text"),
    [
        ("2024.2.1.0", "", "ncu 2024.2.1.0 locks to the base clock unless told --clock-control none"),
        ("2026.1.0.0", "", "ncu 2026.1.0.0 locks to the boost clock unless told --clock-control none"),
        ("2026.1.0.0", "none", "ncu left the clocks free"),
        ("2024.1.0.0", "none", "ncu left the clocks free"),
        ("", "", BY_RELEASE),
    ],
)
def test_notes_of_a_report_at_a_low_clock(tmp_path: Path, version: str, control: str, text: str) -> None:
    assert clocks_text(version, control) == text
    path = tmp_path / "r.ncu-rep"
    write_report(path, ReportData([kernel(complete(clock=0.7e9))], Session(ncu_version=version, clock_control=control)))
    with read_report(path) as report:
        notes = explain(report, measurements_of(report)).notes
    (note,) = [note for note in notes if "of its maximum" in note]
    assert f"({text});" in note
    assert len(roofline(path).points) == 3


def test_texts_that_know_no_release_name_both() -> None:
    assert "2026.1" in BY_RELEASE
    assert "base" in BY_RELEASE
    assert "boost" in BY_RELEASE
    for name in ("rules/NcuRooflineClocks.py", "sections/HierarchicalDoubleRooflineChart.section"):
        assert BY_RELEASE in (ROOT / name).read_text(encoding="utf-8")


NO_CLOCKS = (0, 0.0, -1.41e9, 5e-324, 500.0, math.inf)


@pytest.mark.parametrize("value", NO_CLOCKS)
@pytest.mark.parametrize(
    ("given", "hertz"),
    [
        ({"smsp__cycles_elapsed.avg.per_second": 1.3e9}, 1.3e9),
        ({"sm__cycles_elapsed.max.per_second": 1.2e9}, 1.2e9),
        ({"sm__cycles_elapsed.max": 1.1e6}, 1.1e9),  # in a millisecond
        ({"sm__cycles_elapsed.max": 5, "smsp__cycles_elapsed.max": 1.0e6}, 1.0e9),
        ({}, math.nan),
    ],
)
def test_what_is_no_clock_makes_room_for_the_next(tmp_path: Path, value: float, given: dict[str, float], hertz: float) -> None:
    metrics = complete(clock=value, **given)
    found = roofline(report(tmp_path / "r.ncu-rep", kernel(metrics)))
    assert found.kernels["clock_profiled"].iloc[0] == pytest.approx(hertz, nan_ok=True)
    right = complete(clock=hertz if hertz > 0 else 1.41e9)  # the maximum
    roofs = roofline(report(tmp_path / "right.ncu-rep", kernel(right))).roofs
    assert found.roofs["value"].tolist() == pytest.approx(roofs["value"].tolist())


@pytest.mark.parametrize("value", NO_CLOCKS)
def test_maximum_clocks_that_are_none(tmp_path: Path, value: float) -> None:
    maximum = {"device__attribute_max_gpu_frequency_khz": value, "device__attribute_max_mem_frequency_khz": value}
    metrics = {**complete(), **maximum}
    assert math.isnan(roofline(report(tmp_path / "none.ncu-rep", kernel(metrics))).kernels["clock_max"].iloc[0])
    found = roofline(report(tmp_path / "r.ncu-rep", kernel({**metrics, "device__attribute_clock_rate": 1_400_000})))
    assert found.kernels["clock_max"].iloc[0] == 1.4e9
    assert "dram" not in set(found.roofs["roof"])  # which is of the memory clock


@pytest.mark.parametrize("value", NO_CLOCKS)
def test_other_clocks_that_are_none(tmp_path: Path, value: float) -> None:
    others = {f"{unit}__cycles_elapsed.avg.per_second": value for unit in ("lts", "dram")}
    pair = {"lts__t_sectors.sum.per_second": value, "lts__t_sectors.avg.per_cycle_elapsed": 1.0}
    found = roofline(report(tmp_path / "r.ncu-rep", kernel({**complete(), **others, **pair}))).roofs
    plain = roofline(report(tmp_path / "plain.ncu-rep", kernel(complete()))).roofs
    assert found["value"].tolist() == pytest.approx(plain["value"].tolist())  # L2 at the SM clock, DRAM at its maximum


def test_cycles_over_no_clock_are_no_time(tmp_path: Path) -> None:
    metrics = {**complete(clock=0.0), "sm__cycles_elapsed.avg": 1e6, "sm__cycles_elapsed.max": 1e6}
    del metrics["gpu__time_duration.sum"]
    found = roofline(report(tmp_path / "r.ncu-rep", kernel({**metrics, "sm__cycles_elapsed.max.per_second": 1e9})))
    assert found.kernels["seconds"].iloc[0] == pytest.approx(1e-3)
