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
from ncu_roofline.model.plausible import HARDWARE, INSTRUMENTED, REPLAY_METRICS, foreign_counters
from ncu_roofline.plugin.nvrules.runner import advise, load_rules
from tests.annotate.helpers import added, annotated
from tests.cli.command import Command
from tests.factory import A100, complete, flops, kernel, report, timing, traffic
from tests.facts.stated import toml

SOURCE, SEEN, MISSING = INSTRUMENTED[-1], HARDWARE[0], math.nan
GEMM, COPY, SCAN = "void gemm<float>(float *)", "copy(int *)", "scan(int *)"
# What the first of several kernels counted, which all of them have in public reports of application replay.
OF_FIRST = {
    "gpu__time_duration.sum": 1_224_160.0,
    "dram__bytes_read.sum": 251_029_920.0,
    "lts__t_sectors.sum": 8_335_062.0,
    SEEN: 491_622.0,
}
CASES = toml(Path(__file__).parent / "cases.toml")


def called(*names: str) -> list[tuple[str, str]]:
    return [(name.split("(")[0], name) for name in names]


@pytest.mark.parametrize("case", CASES["accused"])
def test_who_is_accused(case: str) -> None:
    counts, accused = CASES["accused"][case]
    executed, seen = (np.array([pair[side] for pair in counts], dtype=np.float64) for side in (0, 1))
    for order in (slice(None), slice(None, None, -1)):
        notes = foreign_counters({SOURCE: executed[order], SEEN: seen[order]}, called(*map(str, range(len(counts)))))
        assert np.flatnonzero(notes[order] != "").tolist() == accused


def test_different_kernels_with_equal_counters() -> None:
    for names, executed, changed, accused in CASES["replay"]["alike"]:
        found = {name: np.full(len(names), value) for name, value in OF_FIRST.items()}
        found |= {f"{name}.sum": np.array(values, dtype=float) for name, values in changed.items()}
        found |= {SOURCE: np.array(executed)} if executed else {}
        assert np.flatnonzero(foreign_counters(found, called(*names)) != "").tolist() == accused, (names, executed, changed)
    for source, hardware in product(INSTRUMENTED, HARDWARE):  # any of the metrics will do
        (note,) = foreign_counters({source: np.array([7.95e10]), hardware: np.array([491_622.0])}, called(GEMM))
        assert note.startswith("hardware counters not believed, as they saw 491,622 warp instructions where 79,500,000,000")
        assert not foreign_counters({source: np.array([7.95e10])}, called(GEMM))[0]
    # The pair is named once for all launches of two kernels, in one sentence.
    columns = {name: np.array([value, value, value + 64, value + 64]) for name, value in OF_FIRST.items()}
    (note,) = set(foreign_counters(columns, called(COPY, GEMM, COPY, GEMM)))
    assert "launches 0 (copy) and 1 (gemm)" in note
    assert "--replay-mode kernel" in note
    assert "; " not in note


def test_no_launch_of_the_real_reports_is_accused(real_reports: dict[str, Path]) -> None:
    ratios: list[float] = []
    for path in real_reports.values():
        with read_report(path) as opened:
            names = [name for name in REPLAY_METRICS if name in opened.metric_names]
            columns = {name: as_floats(values) for name, values in opened.columns(names).items()}
            launches = [(launch.function_name, launch.name) for launch in opened.launches()]
            assert not any(foreign_counters(columns, launches)), path
        if SOURCE in columns and SEEN in columns:
            found = columns[SOURCE] / columns[SEEN]
            ratios += found[np.isfinite(found)].tolist()
    assert len(ratios) > 40
    assert 0.99 < min(ratios) < max(ratios) < 1.04


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
    assert [name for name, quantity in counted.items() if np.isfinite(quantity.values[1:]).any()] == []
    assert np.isfinite(m.seconds).tolist() == np.isfinite(m.tensor_active).tolist() == [True, False, False]
    with read_report(file) as opened:
        found = explain(opened, measurements_of(opened), ("fp32", "fp64"))
    assert found.missing == ("fp64",)  # what is missing is asked of believed launches, with another replay
    assert "--replay-mode" not in found.command
    assert found.notes[0].startswith("hardware counters not believed")


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


def test_the_first_needs_a_proof_and_more_instructions_than_were_seen_are_none(tmp_path: Path) -> None:
    found = roofline(report(tmp_path / "r.ncu-rep", *mixed_up((2e6, 7.95e10, 2e6))))
    assert found.points.empty
    assert found.kernels["seconds"].isna().all()
    assert set(found.kernels["verdict"]) == {"unknown"}
    foreign, own = {**complete(), SOURCE: 7.95e10, SEEN: 491_622.0}, {**complete(), SOURCE: 1e6, SEEN: 1e6}
    path = report(tmp_path / "r.ncu-rep", kernel(foreign), kernel(own, name="other()"))
    found = roofline(path)
    assert set(found.points["launch"]) == {1}
    assert ["hardware counters" in note for note in found.kernels["notes"]] == [True, False]
    assert "hardware counters" in roofline(path, by="kernel").kernels["notes"].iloc[0]


def test_no_rule_looks_at_them_and_sentences_stand_instead(file: Path, run: Command, tmp_path: Path) -> None:
    with read_report(file) as opened:
        outcomes = [one.outcomes for one in advise(opened, load_rules([pack_folder("rules")]))]
    assert [bool(one) for one in outcomes] == [True, False, False]
    words = " ".join(run("advise", file).out.split())
    assert words.count("launches 0 (copy) and 1 (gemm)") == words.count("launches 0 (copy) and 2 (scan)") == 1
    annotated(file, tmp_path / "annotated.ncu-rep")
    with read_report(tmp_path / "annotated.ncu-rep") as opened:
        assert len(added(opened.kernels[0]).rules) > 1
        for found in map(added, opened.kernels[1:]):
            texts = [message.text[:30] for rule in found.rules for message in rule.messages]
            assert texts == ["Hardware counters not believed"]
            assert len(found.sections) == 1
            assert not any(isinstance(value, (int, float)) for value in found.metrics.values())
