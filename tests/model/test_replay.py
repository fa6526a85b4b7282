"""Hardware counters that are another launch's: told where the instruction counts prove it, and nowhere else."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from ncu_roofline import read_report, roofline
from ncu_roofline.model.counters import as_floats
from ncu_roofline.model.utilisation import FACTOR, HARDWARE, INSTRUMENTED, REPLAY_METRICS, foreign_counters
from tests.factory import complete, kernel, report

SOURCE, SEEN = INSTRUMENTED[-1], HARDWARE[0]
MISSING = math.nan

# Warp instructions of each launch: of the instrumented pass, by the hardware; and whether the launch is accused.
CASES = {
    "as in a real report": ([(7.95e10, 491_622)], [True]),
    "equal": ([(125_952, 125_952), (1_378_276_906, 1_378_276_906)], [False, False]),
    "as in real reports at worst": ([(0.99276e9, 1e9), (1.03353e9, 1e9)], [False, False]),
    "just below the factor": ([(FACTOR * 1e6, 1e6)], [False]),
    "just above the factor": ([(FACTOR * 1e6 + 1, 1e6)], [True]),
    "nothing seen": ([(1e6, 0)], [True]),
    "functions in other sections": ([(1e6, 5e6)], [False]),
    "such functions, launched twice": ([(1e6, 5e6), (1e6, 5e6), (2e6, 1e7)], [False] * 3),
    "one kernel's counters at all": ([(5e6, 5e6), (1e6, 5e6), (9e6, 5e6), (5e6, 5_001_000)], [False, True, True, False]),
    "the same count at one of the same size": ([(1e6, 5e6), (1.1e6, 5e6), (8e6, 8e6)], [False] * 3),
    "not collected": ([(1e6, MISSING), (MISSING, 1e6), (MISSING, MISSING)], [False] * 3),
    "no launches": ([], []),
}


@pytest.mark.parametrize("case", CASES)
def test_who_is_accused(case: str) -> None:
    counts, accused = CASES[case]
    executed, seen = (np.array([pair[side] for pair in counts], dtype=np.float64) for side in (0, 1))
    for order in (slice(None), slice(None, None, -1)):
        notes = foreign_counters({SOURCE: executed[order], SEEN: seen[order]}, len(counts))
        assert [bool(note) for note in notes] == accused[order]


@pytest.mark.parametrize("source", INSTRUMENTED)
@pytest.mark.parametrize("hardware", HARDWARE)
def test_any_of_the_metrics_will_do(source: str, hardware: str) -> None:
    (note,) = foreign_counters({source: np.array([7.95e10]), hardware: np.array([491_622.0])}, 1)
    assert note.startswith("the hardware counters do not belong to this launch: they saw 491,622 warp instructions")
    assert "79,500,000,000" in note
    assert not foreign_counters({source: np.array([7.95e10])}, 1)[0]
    assert not foreign_counters({}, 1)[0]


def test_no_launch_of_the_real_reports_is_accused(real_reports: dict[str, Path]) -> None:
    ratios: list[float] = []
    for path in real_reports.values():
        with read_report(path) as report:
            names = [name for name in REPLAY_METRICS if name in report.metric_names]
            columns = {name: as_floats(values) for name, values in report.columns(names).items()}
            assert not any(foreign_counters(columns, len(report))), path
        if SOURCE in columns and SEEN in columns:
            found = columns[SOURCE] / columns[SEEN]
            ratios += found[np.isfinite(found)].tolist()
    assert len(ratios) > 40
    assert min(ratios) > 0.99
    assert max(ratios) < 1.04


def test_the_kernels_frame_tells_it(tmp_path: Path) -> None:
    foreign = {**complete(), "inst_executed": 7.95e10, "smsp__inst_executed.sum": 491_622.0}
    own = {**complete(), "inst_executed": 1e6, "smsp__inst_executed.sum": 1e6}
    file = report(tmp_path / "r.ncu-rep", kernel(foreign), kernel(own, name="other()"))
    first, second = roofline(file).kernels["notes"]
    assert "hardware counters" in first
    assert "hardware counters" not in second
    assert "hardware counters" in roofline(file, by="kernel").kernels["notes"].iloc[0]
