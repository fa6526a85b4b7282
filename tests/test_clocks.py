"""What a release of Nsight Compute does with the clocks, and who says so; what a report says that is no clock."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from ncu_roofline import roofline
from ncu_roofline.chips.ncu import BY_RELEASE, clocks_text, default_clocks
from ncu_roofline.formats.report import ReportData, Session, read_report, write_report
from ncu_roofline.model import Roofline, measurements_of
from ncu_roofline.model.explanations import explain
from tests.factory import Metrics, complete, kernel, report

ROOT = Path(__file__).resolve().parent.parent


def test_what_a_release_does_unless_told() -> None:
    base = dict.fromkeys(("2020.3.0.0", "2025.4.1.0", "2025.4"), "base")
    boost = dict.fromkeys(("2026.1", "2026.1.0.0 (build 1)", "2026.10.0.0", "2027.1.0.0"), "boost")
    known = base | boost | dict.fromkeys(("", "unknown", "2026", "2026."), "")
    assert {version: default_clocks(version) for version in known} == known
    assert all(word in BY_RELEASE for word in ("2026.1", "base", "boost"))
    for name in ("rules/NcuRooflineClocks.py", "sections/HierarchicalDoubleRooflineChart.section"):
        assert BY_RELEASE in (ROOT / name).read_text(encoding="utf-8")


def test_notes_of_a_report_at_a_low_clock(tmp_path: Path) -> None:
    for version, control, text in (
        ("2024.2.1.0", "", "ncu 2024.2.1.0 locks to the base clock unless told --clock-control none"),
        ("2026.1.0.0", "", "ncu 2026.1.0.0 locks to the boost clock unless told --clock-control none"),
        ("2026.1.0.0", "none", "ncu left the clocks free"),
        ("", "", BY_RELEASE),
    ):
        assert clocks_text(version, control) == text
        path, session = tmp_path / "r.ncu-rep", Session(ncu_version=version, clock_control=control)
        write_report(path, ReportData([kernel(complete(clock=0.7e9))], session), overwrite=True)
        with read_report(path) as opened:
            notes = explain(opened, measurements_of(opened)).notes
        (note,) = [note for note in notes if "of its maximum" in note]
        assert f"({text});" in note
        assert len(roofline(path).points) == 3


@pytest.mark.parametrize("value", [0, 0.0, -1.41e9, 5e-324, 500.0, math.inf])
def test_what_is_no_clock_makes_room_for_the_next(tmp_path: Path, value: float) -> None:
    def found(metrics: Metrics) -> Roofline:
        return roofline(report(tmp_path / "r.ncu-rep", kernel(metrics)))

    for given, hertz in (
        ({"smsp__cycles_elapsed.avg.per_second": 1.3e9}, 1.3e9),
        ({"sm__cycles_elapsed.max.per_second": 1.2e9}, 1.2e9),
        ({"sm__cycles_elapsed.max": 1.1e6}, 1.1e9),  # in a millisecond
        ({"sm__cycles_elapsed.max": 5, "smsp__cycles_elapsed.max": 1.0e6}, 1.0e9),
        ({}, math.nan),
    ):
        odd = found(complete(clock=value, **given))
        assert odd.kernels["clock_profiled"].iloc[0] == pytest.approx(hertz, nan_ok=True)
        right = found(complete(clock=hertz if hertz > 0 else 1.41e9))  # the maximum
        assert odd.roofs["value"].tolist() == pytest.approx(right.roofs["value"].tolist())
    maximum = {f"device__attribute_max_{one}_frequency_khz": value for one in ("gpu", "mem")}
    assert math.isnan(found({**complete(), **maximum}).kernels["clock_max"].iloc[0])
    rated = found({**complete(), **maximum, "device__attribute_clock_rate": 1_400_000})
    assert rated.kernels["clock_max"].iloc[0] == 1.4e9
    assert "dram" not in set(rated.roofs["roof"])  # which is of the memory clock
    others = {f"{unit}__cycles_elapsed.avg.per_second": value for unit in ("lts", "dram")}
    pair = {"lts__t_sectors.sum.per_second": value, "lts__t_sectors.avg.per_cycle_elapsed": 1.0}
    plain = found(complete()).roofs["value"].tolist()  # L2 at the SM clock, DRAM at its maximum
    assert found({**complete(), **others, **pair}).roofs["value"].tolist() == pytest.approx(plain)


def test_cycles_over_no_clock_are_no_time(tmp_path: Path) -> None:
    metrics = {**complete(clock=0.0), "sm__cycles_elapsed.avg": 1e6, "sm__cycles_elapsed.max": 1e6}
    del metrics["gpu__time_duration.sum"]
    made = report(tmp_path / "r.ncu-rep", kernel({**metrics, "sm__cycles_elapsed.max.per_second": 1e9}))
    assert roofline(made).kernels["seconds"].iloc[0] == pytest.approx(1e-3)
