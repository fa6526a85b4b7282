"""What a release of Nsight Compute does with the clocks, and who says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline import roofline
from ncu_roofline.facts.clocks import BY_RELEASE, clocks_text, default_clocks
from ncu_roofline.model import measurements_of
from ncu_roofline.model.explanations import explain
from ncu_roofline.report import ReportData, Session, read_report, write_report
from tests.factory import complete, kernel

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
