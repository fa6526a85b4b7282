"""Hardware counters that are another launch's: told where times, bytes and instruction counts prove it, and not believed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from ncu_roofline import read_report, roofline
from ncu_roofline.base.files import pack_folder
from ncu_roofline.formats.report import KernelData, ReportData, Session, write_report
from ncu_roofline.model import measurements_of
from ncu_roofline.model.explanations import explain
from ncu_roofline.model.measurements import as_floats
from ncu_roofline.model.plausible import FACTOR, HARDWARE, INSTRUMENTED, REPLAY_METRICS, foreign_counters
from ncu_roofline.plugin.nvrules.runner import advise, load_rules
from tests.annotate.helpers import added, annotated
from tests.cli.command import Command
from tests.factory import A100, complete, flops, kernel, report, timing, traffic

SOURCE, SEEN = INSTRUMENTED[-1], HARDWARE[0]
MISSING = math.nan
GEMM, COPY, SCAN = "void gemm<float>(float *)", "copy(int *)", "scan(int *)"
# What the first of several kernels counted, which all of them have in public reports of application replay.
OF_FIRST = {
    "gpu__time_duration.sum": 1_224_160.0,
    "dram__bytes_read.sum": 251_029_920.0,
    "lts__t_sectors.sum": 8_335_062.0,
    SEEN: 491_622.0,
}

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


def called(*names: str) -> list[tuple[str, str]]:
    return [(name.split("(")[0], name) for name in names]


@pytest.mark.parametrize("case", CASES)
def test_who_is_accused(case: str) -> None:
    counts, accused = CASES[case]
    executed, seen = (np.array([pair[side] for pair in counts], dtype=np.float64) for side in (0, 1))
    for order in (slice(None), slice(None, None, -1)):
        notes = foreign_counters({SOURCE: executed[order], SEEN: seen[order]}, called(*map(str, range(len(counts)))))
        assert [bool(note) for note in notes] == accused[order]


def test_any_of_the_metrics_will_do() -> None:
    for source, hardware in product(INSTRUMENTED, HARDWARE):
        (note,) = foreign_counters({source: np.array([7.95e10]), hardware: np.array([491_622.0])}, called(GEMM))
        assert note.startswith("hardware counters not believed, as they saw 491,622 warp instructions where 79,500,000,000")
        assert not foreign_counters({source: np.array([7.95e10])}, called(GEMM))[0]
    assert not foreign_counters({}, called(GEMM))[0]


def accused(names: list[str], executed: list[float] | None = None, **changed: list[float]) -> list[int]:
    """Which launches of these kernels are accused; all have the counters of the first, but for what is ``changed``."""
    columns = {name: np.full(len(names), value) for name, value in OF_FIRST.items()}
    columns |= {f"{name}.sum": np.array(values) for name, values in changed.items()}
    if executed:
        columns[SOURCE] = np.array(executed)
    return np.flatnonzero(foreign_counters(columns, called(*names)) != "").tolist()


def test_different_kernels_with_equal_counters() -> None:
    assert accused([COPY, GEMM]) == [0, 1]
    assert accused([COPY, GEMM], [491_622, 7.95e10]) == [1]  # the first one's own code proves them
    assert accused([COPY, GEMM], [491_622, 491_000]) == [1]
    assert accused([COPY, GEMM], [650_000, 491_622]) == [0, 1]
    assert accused([COPY, COPY, GEMM, SCAN], [491_622, 491_622, 9e9, MISSING]) == [1, 2, 3]
    assert accused(["void gemm<1>(int)", "void gemm<2>(int)"]) == [0, 1]  # another kernel by its full name
    assert accused([COPY, COPY, COPY]) == []
    assert accused([COPY, GEMM], gpu__time_duration=[1_224_160, 1_224_192]) == []
    assert accused([COPY, GEMM], gpu__time_duration=[19_968, 19_968]) == []  # launches so short are often alike
    assert accused([COPY, GEMM], dram__bytes_read=[251_029_920, 251_029_952]) == []
    assert accused([COPY, GEMM], dram__bytes_write=[5, 6]) == []
    assert accused([COPY, GEMM], lts__t_sectors=[8_335_062, 8_335_063]) == []
    assert accused([COPY, GEMM], smsp__inst_executed=[491_622, 491_623]) == []
    assert accused([COPY, GEMM], smsp__inst_executed=[MISSING, MISSING]) == []


def test_the_pair_is_named_once_for_all_launches_of_two_kernels() -> None:
    columns = {name: np.array([value, value, value + 64, value + 64]) for name, value in OF_FIRST.items()}
    notes = foreign_counters(columns, called(COPY, GEMM, COPY, GEMM))
    (note,) = set(notes)
    assert "launches 0 (copy) and 1 (gemm)" in note
    assert "--replay-mode kernel" in note
    assert "; " not in note  # which would end it


def test_no_launch_of_the_real_reports_is_accused(real_reports: dict[str, Path]) -> None:
    ratios: list[float] = []
    for path in real_reports.values():
        with read_report(path) as report:
            names = [name for name in REPLAY_METRICS if name in report.metric_names]
            columns = {name: as_floats(values) for name, values in report.columns(names).items()}
            launches = [(launch.function_name, launch.name) for launch in report.launches()]
            assert not any(foreign_counters(columns, launches)), path
        if SOURCE in columns and SEEN in columns:
            found = columns[SOURCE] / columns[SEEN]
            ratios += found[np.isfinite(found)].tolist()
    assert len(ratios) > 40
    assert min(ratios) > 0.99
    assert max(ratios) < 1.04


def mixed_up(executed: tuple[float, float, float] = (491_622, 7.95e10, 2e6)) -> Iterator[KernelData]:
    """Three kernels with the counters of the first, their own instruction counts, and the work by opcodes of all."""
    metrics = {**A100, **timing(), **flops("f", fma=10**9), **traffic(10**9, 8_335_062, 251_029_920), **OF_FIRST}
    metrics["sm__throughput.avg.pct_of_peak_sustained_elapsed"] = 50.0
    metrics["sm__warps_active.avg.pct_of_peak_sustained_active"] = 40.0
    metrics["sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"] = 30.0
    for name, count in zip((COPY, GEMM, SCAN), executed, strict=True):
        yield kernel({**metrics, SOURCE: count}, name)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "r.ncu-rep"
    write_report(path, ReportData(list(mixed_up()), Session(ncu_version="2024.1.0.0", replay="application")))
    return path


def test_nothing_of_such_launches_is_believed(file: Path) -> None:
    m = measurements_of(file, instructions=True)
    counted = {**m.work, **m.traffic, **m.units, **m.gauges, **m.instructions, **m.summands}
    assert len(counted) > 8
    for name, quantity in counted.items():
        assert np.isfinite(quantity.values[1:]).sum() == 0, name
    assert np.isfinite(m.seconds).tolist() == [True, False, False]
    assert np.isfinite(m.tensor_active).tolist() == [True, False, False]


@pytest.mark.parametrize("by", ["launch", "kernel", "application"])
def test_no_points_no_share_no_verdict(file: Path, by: str) -> None:
    found = roofline(file, by=by)
    assert set(found.points["kernel"]) == set(found.kernels["kernel"][:1])
    assert found.kernels["seconds"].sum() == pytest.approx(1.224160e-3)
    first, *others = found.kernels.to_dict("records")
    assert first["time_share"] == 1
    assert first["verdict"] not in ("unknown", "")
    for row, name in zip(others, ("gemm", "scan"), strict=False):
        assert (row["verdict"], row["status"], row["limit"], row["missing"]) == ("unknown", "foreign", "", "")
        assert not math.isfinite(row["headroom"])
        assert not math.isfinite(row["time_share"])
        assert name in row["reason"]
        assert "--replay-mode kernel" in row["reason"]
        assert row["notes"].startswith(row["reason"].removeprefix("limit unknown: "))
    assert roofline(file, source="embedded").points.empty


def test_the_first_needs_a_proof(tmp_path: Path) -> None:
    found = roofline(report(tmp_path / "r.ncu-rep", *mixed_up((2e6, 7.95e10, 2e6))))
    assert found.points.empty
    assert found.kernels["seconds"].isna().all()
    assert set(found.kernels["verdict"]) == {"unknown"}


def test_more_instructions_than_the_hardware_saw_are_not_believed_either(tmp_path: Path) -> None:
    foreign = {**complete(), SOURCE: 7.95e10, SEEN: 491_622.0}
    own = {**complete(), SOURCE: 1e6, SEEN: 1e6}
    path = report(tmp_path / "r.ncu-rep", kernel(foreign), kernel(own, name="other()"))
    found = roofline(path)
    assert set(found.points["launch"]) == {1}
    assert found.kernels["verdict"].iloc[0] == "unknown"
    first, second = found.kernels["notes"]
    assert "hardware counters" in first
    assert "hardware counters" not in second
    assert "hardware counters" in roofline(path, by="kernel").kernels["notes"].iloc[0]


def test_no_rule_looks_at_them_and_the_sentence_stands_once(file: Path, run: Command) -> None:
    with read_report(file) as opened:
        outcomes = [one.outcomes for one in advise(opened, load_rules([pack_folder("rules")]))]
    assert [bool(one) for one in outcomes] == [True, False, False]
    words = " ".join(run("advise", file).out.split())
    assert words.count("launches 0 (copy) and 1 (gemm)") == words.count("launches 0 (copy) and 2 (scan)") == 1


def test_an_annotated_report_says_it_instead_of_numbers(file: Path, tmp_path: Path) -> None:
    annotated(file, tmp_path / "annotated.ncu-rep")
    with read_report(tmp_path / "annotated.ncu-rep") as opened:
        assert len(added(opened.kernels[0]).rules) > 1
        for kernel in opened.kernels[1:]:
            found = added(kernel)
            assert [message.text[:30] for rule in found.rules for message in rule.messages] == [
                "Hardware counters not believed"
            ]
            assert len(found.sections) == 1
            assert not any(isinstance(value, (int, float)) for value in found.metrics.values())


def test_what_is_missing_is_asked_of_believed_launches_with_another_replay(file: Path) -> None:
    with read_report(file) as opened:
        found = explain(opened, measurements_of(opened), ("fp32", "fp64"))
    assert found.missing == ("fp64",)
    assert "--replay-mode" not in found.command
    assert found.notes[0].startswith("hardware counters not believed")
