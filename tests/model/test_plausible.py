"""What no kernel can have measured, and counters of another one: missing and told in every command; real reports pass."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ncu_roofline import read_report, roofline
from ncu_roofline.base.files import pack_folder
from ncu_roofline.chips.tables import load_limits
from ncu_roofline.formats.inputs.tables import ImportedPoint, ImportedRoof, PointTable
from ncu_roofline.formats.report import KernelData, ReportData, Session, write_report
from ncu_roofline.model import measurements_of
from ncu_roofline.model.explanations import explain
from ncu_roofline.model.measurements import as_floats
from ncu_roofline.model.plausible import (
    HARDWARE,
    INSTRUMENTED,
    LEFT_OUT,
    REPLAY_METRICS,
    Gate,
    PlausibleMetrics,
    foreign_counters,
    left_out,
)
from ncu_roofline.plugin.annotate import annotate
from ncu_roofline.plugin.nvrules.interface import IAction
from ncu_roofline.plugin.nvrules.runner import advise, load_rules
from tests.annotate.helpers import added, annotated
from tests.cli.command import Command
from tests.factory import A100, THREADS, WARPS, complete, flops, kernel, opcodes, report, timing, traffic
from tests.facts.stated import toml
from tests.inputs.ncu_tables import SUMS, long, text_of, wide
from tests.sectionfile.section_factory import chart, constant, one, point, roof, section

DFMA = "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum"
DRAM, TIME = "dram__bytes.sum", "gpu__time_duration.sum"
CASES = toml(Path(__file__).parent / "cases.toml")


def without(metrics: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in metrics.items() if key != name}


@pytest.mark.parametrize("which", CASES["implausible"])
def test_a_value_that_cannot_be_is_as_good_as_none(tmp_path: Path, which: str) -> None:
    name, value, words = CASES["implausible"][which]
    wrong = report(tmp_path / "r.ncu-rep", kernel({**complete(), name: value}), kernel(complete(), name="other()"))
    with read_report(wrong) as opened:
        assert opened.kernels[0].metrics[name] == value  # the reader returns what the file says
        action, single = IAction(opened.kernels[0]), PlausibleMetrics(opened.kernels[0].metrics)
        assert action.metric_by_name(name) is None
        assert action.metric_by_name("lts__t_sectors_srcunit_tex.sum").value() == 500_000_000 // 32
        assert {other for other in complete() if other not in single} == {name}
    assert len(left_out(measurements_of(wrong))) == 1
    seen = roofline(wrong)
    lacking = roofline(report(tmp_path / "r.ncu-rep", kernel(without(complete(), name)), kernel(complete(), name="other()")))
    assert [seen.points.equals(lacking.points), seen.roofs.equals(lacking.roofs)] == [True, True]
    assert seen.kernels.drop(columns="notes").equals(lacking.kernels.drop(columns="notes"))
    first, second = seen.kernels["notes"]
    assert [text in first for text in (f"{LEFT_OUT} {name} of launch 0 (kernel) is ", words)] == [True, True]
    assert LEFT_OUT not in second


def test_one_note_stands_for_many_launches_and_nothing_is_summed(tmp_path: Path) -> None:
    file = report(tmp_path / "r.ncu-rep", *[kernel({**complete(), DRAM: 1e308 + i}) for i in range(3)], kernel(complete()))
    assert [told.endswith(", likewise in 2 more launches") for told in left_out(measurements_of(file))] == [True]
    dram = roofline(file, by="kernel").points.set_index("level").loc["dram"]
    assert (dram["traffic"], dram["coverage"]) == (250_000_000, 0.25)
    file = report(tmp_path / "r.ncu-rep", kernel({**complete(), DRAM: math.nan}))  # what ncu writes for nothing
    assert left_out(measurements_of(file)) == ()
    assert set(roofline(file).points["level"]) == {"l1", "l2"}
    # A short launch has the clock of longer ones; one of unknown time is none of these.
    file = report(tmp_path / "r.ncu-rep", kernel({**complete(), TIME: 1000.0}), kernel({**complete(), TIME: "=1+1"}))
    assert roofline(file).kernels["seconds"].isna().tolist() == [False, True]


def test_a_column_of_numbers_and_texts_keeps_its_numbers(tmp_path: Path) -> None:
    launches = [{**SUMS, DRAM: ("Gbyte", text)} for text in ("1.50", "n/a", "2.50")]
    for layout in (wide, long):
        path = tmp_path / "r.csv"
        path.write_text(text_of(layout(*launches)), encoding="utf-8")
        points = roofline(path).points
        dram = points[points["level"] == "dram"]
        assert dict(zip(dram["launch"], dram["traffic"], strict=True)) == {0: 1.5e9, 2: 2.5e9}
    column = Gate({DRAM: [1.5e9, "=1+1", -1.0, 2.5e9]}, ["a", "b", "c", "d"])
    assert np.nan_to_num(column.columns[DRAM]).tolist() == [1.5e9, 0, 0, 2.5e9]
    assert [bool(text) for text in column.texts] == [False, True, True, False]
    # Differences of passes may be negative.
    metrics = {"lts__t_sectors_lookup_miss.sum": -3.0, "lts__t_sectors.sum": -3.0, "anyones__count.sum": -3.0, "mine": math.inf}
    assert set(PlausibleMetrics(metrics)) == {*metrics} - {"lts__t_sectors.sum"}


# What the metric itself says, by what instances add up to; whether they are left out.
@pytest.mark.parametrize(("scalar", "told"), [(0.9999999, False), (math.nan, False), (None, False), (10.0, True)])
def test_counts_of_opcodes_are_what_their_metric_says_they_add_up_to(tmp_path: Path, scalar: float | None, told: bool) -> None:
    counted, sums = opcodes(DFMA=1e6, IADD3=1e6), {WARPS: 2e6, THREADS: 64e6}
    metrics = {**without(complete(), DFMA), "smsp__inst_executed.sum": 2e6}
    said = {name: value * scalar for name, value in sums.items()} if scalar else {}
    launch, other = kernel({**metrics, **said}, instances=counted), kernel({**metrics, **sums}, instances=counted)
    m = measurements_of(report(tmp_path / "r.ncu-rep", launch, launch, other))
    assert np.isnan(m.work["fp64"].values).tolist() == [told, told, False]
    notes = left_out(m)
    assert len(notes) == 2 * told
    for name, both in ((WARPS, "2e+06, and to 2e+07"), (THREADS, "6.4e+07, and to 6.4e+08")) if told else ():
        text = f"adds up to {both} by what the metric itself says, likewise in 1 more launch"
        assert [note for note in notes if name in note and text in note]
    assert np.isfinite(m.seconds).all()  # a wrong sum is no proof of another kernel's counters


DERIVED = ("derived__mine_dfma", "derived__peak_dfma", "derived__mine_bytes", "derived__peak_bytes")
HONEST = dict(zip(DERIVED, (1e12, 9.7e12, 1e11, 1.5e12), strict=True))


def own_chart(tmp_path: Path, **metrics: float) -> Path:
    """A report whose chart is made of metrics of which nothing is known, with a lower roof for the same work."""
    work, peak, moved, bandwidth = map(one, DERIVED)
    lines = (roof(peak, bandwidth, "upper"), roof(constant(5e12), bandwidth, "lower"))
    data = section(chart(roofs=lines, points=(point(work, moved, "dot"),)))
    return report(tmp_path / "r.ncu-rep", kernel({**complete(), **HONEST, **metrics}, sections=(data,)))


@pytest.mark.parametrize("which", DERIVED)
def test_charts_show_no_number_beyond_any_gpu(tmp_path: Path, which: str) -> None:
    for value in (2e18, math.inf, -1.0, 1e-300):
        path = own_chart(tmp_path, **{which: value})
        seen = roofline(path, source="embedded")
        assert not [number for number in seen.roofs["value"] if not 1e3 <= number <= 1e18]
        dots, told = seen.points, left_out(measurements_of(path, charts=True))
        assert len(dots) == ("peak" in which)
        assert dots[["fraction", "compute_roof"]].isna().all(axis=None)  # not even of the lower roof
        assert set(dots["binds"]) <= {""}
        assert told
        for text in told:
            assert text.startswith(f"{LEFT_OUT} {'roof' if 'peak' in which else 'point'} ")
            assert text.endswith("no GPU can have")
            assert "in the chart Test, whose" in text
            assert text in seen.kernels["notes"][0]


def test_charts_as_a_source_of_what_counters_lack(tmp_path: Path, run: Command) -> None:
    assert left_out(measurements_of(own_chart(tmp_path), charts=True)) == ()
    data = section(chart(points=(point(one(DERIVED[0]), one(DERIVED[2]), "dot"),)))
    metrics = {key: value for key, value in complete().items() if "sass" not in key}
    kernels = [kernel({**metrics, **HONEST, DERIVED[0]: 1e27 * (1 + i)}, sections=(data,)) for i in range(3)]
    path = report(tmp_path / "r.ncu-rep", *kernels)
    assert len(left_out(measurements_of(path, charts=True))) == 1
    for command in (("show",), ("explain",), ("show", "--source", "embedded")):
        outcome = run(*command, path)
        told = " ".join(f"{outcome.out} {outcome.err}".split())
        assert "point 'dot' in the chart Test, whose work no GPU can have" in told


def test_other_tools_files_pass_a_gate_of_their_own() -> None:
    endless = (ImportedRoof("dram", "bandwidth", "DRAM", 1e300),)
    points = (
        ImportedPoint("good", 1.0, {"fp64": 1e12}, {"dram": 1e11}),
        ImportedPoint("work", 1.0, {"fp64": 1e300, "fp{0}": -1.0}, {"dram": 1e11}),
        ImportedPoint("time", 1e300, {"fp64": 1e12}, {"dram": 1e11}),
        ImportedPoint("roof", 1.0, {"fp64": 1e12}, {"dram": 1e11}, roofs=endless),
    )
    m = measurements_of(PointTable("t.csv", "plain", points))
    assert np.isnan(m.work["fp64"].values).tolist() == [False, True, False, False]
    assert np.isnan(m.seconds).tolist() == [False, False, True, False]
    assert np.isnan(m.bandwidth["dram"].values).all()
    expected = ("the time of time", "work in fp64 of work", "work in fp{0} of work", "the roof dram of roof")
    assert {text.split(" is ")[0] for text in left_out(m)} == {f"{LEFT_OUT} {one}" for one in expected}


def test_an_annotated_copy_keeps_the_bytes_and_draws_nothing_of_it(tmp_path: Path) -> None:
    bad, copy = report(tmp_path / "bad.ncu-rep", kernel({**complete(), DRAM: 1e308})), tmp_path / "copy.ncu-rep"
    account = annotate(bad, lambda chunks: copy.write_bytes(b"".join(chunks)) and None)
    with read_report(copy) as annotated, read_report(bad) as original:
        own = {name: value for name, value in annotated.kernels[0].metrics.items() if name not in original.kernels[0].metrics}
        assert annotated.kernels[0].metrics[DRAM] == 1e308
        assert own
        assert all(value < 1e20 for value in own.values() if isinstance(value, (int, float)))
    assert any(DRAM in note for note in account.explanation.notes)


@pytest.mark.reports
def test_every_metric_of_real_reports_is_plausible(real_reports: Mapping[str, Path]) -> None:
    limits, looked_at = load_limits(), 0
    for path in real_reports.values():
        with read_report(path) as opened:
            for launch in opened.kernels:
                plausible = PlausibleMetrics(launch.metrics)
                assert [name for name in launch.metrics if name not in plausible] == []
                looked_at += sum(limits.bound(name) is not None for name in launch.metrics.names())
    assert looked_at > 10_000


SOURCE, SEEN, MISSING = INSTRUMENTED[-1], HARDWARE[0], math.nan
GEMM, COPY, SCAN = "void gemm<float>(float *)", "copy(int *)", "scan(int *)"
OF_FIRST = CASES["replay"]["of_first"]  # what the first of several kernels counted, which all of them have


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
    for names, counted, changed, accused in CASES["replay"]["alike"]:
        found = {name: np.full(len(names), value) for name, value in OF_FIRST.items()}
        found |= {f"{name}.sum": np.array(values, dtype=float) for name, values in changed.items()}
        found |= {SOURCE: np.array(counted)} if counted else {}
        assert np.flatnonzero(foreign_counters(found, called(*names)) != "").tolist() == accused, (names, counted, changed)
    for source, hardware in product(INSTRUMENTED, HARDWARE):  # any of the metrics will do
        (note,) = foreign_counters({source: np.array([7.95e10]), hardware: np.array([491_622.0])}, called(GEMM))
        assert note.startswith("hardware counters rejected, as they saw 491,622 warp instructions where 79,500,000,000")
        assert not foreign_counters({source: np.array([7.95e10])}, called(GEMM))[0]
    # The pair is named once for all launches of two kernels, in one sentence.
    columns = {name: np.array([value, value, value + 64, value + 64]) for name, value in OF_FIRST.items()}
    (note,) = set(foreign_counters(columns, called(COPY, GEMM, COPY, GEMM)))
    assert "launches 0 (copy) and 1 (gemm)" in note
    assert ("--replay-mode kernel" in note, "; " in note) == (True, False)


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


def mixed_up() -> Iterator[KernelData]:
    """Three kernels with the counters of the first, their own instruction counts, and the work by opcodes of all."""
    metrics = {**A100, **timing(), **flops("f", fma=10**9), **traffic(10**9, 8_335_062, 251_029_920), **OF_FIRST}
    metrics["sm__throughput.avg.pct_of_peak_sustained_elapsed"] = 50.0
    metrics["sm__warps_active.avg.pct_of_peak_sustained_active"] = 40.0
    metrics["sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"] = 30.0
    for name, count in ((COPY, 491_622), (GEMM, 7.95e10), (SCAN, 2e6)):
        yield kernel({**metrics, SOURCE: count}, name)


def test_nothing_of_such_launches_is_believed_and_sentences_stand_instead(tmp_path: Path) -> None:
    file = tmp_path / "r.ncu-rep"
    write_report(file, ReportData(list(mixed_up()), Session(ncu_version="2024.1.0.0", replay="application")))
    m = measurements_of(file, instructions=True)
    counted = {**m.work, **m.traffic, **m.units, **m.gauges, **m.instructions, **m.summands}
    assert len(counted) > 8
    assert [name for name, quantity in counted.items() if np.isfinite(quantity.values[1:]).any()] == []
    assert np.isfinite(m.seconds).tolist() == np.isfinite(m.tensor_active).tolist() == [True, False, False]
    with read_report(file) as opened:
        found = explain(opened, measurements_of(opened), ("fp32", "fp64"))
    assert found.missing == ("fp64",)  # what is missing is asked of believed launches, with another replay
    assert "--replay-mode" not in found.command
    assert found.notes[0].startswith("hardware counters rejected")
    with read_report(file) as opened:
        outcomes = [one.outcomes for one in advise(opened, load_rules([pack_folder("rules")]))]
    assert [bool(one) for one in outcomes] == [True, False, False]
    annotated(file, tmp_path / "annotated.ncu-rep")
    with read_report(tmp_path / "annotated.ncu-rep") as opened:
        assert len(added(opened.kernels[0]).rules) > 1
        for found in map(added, opened.kernels[1:]):
            assert [one.text[:30] for rule in found.rules for one in rule.messages] == ["Hardware counters rejected, as"]
            assert len(found.sections) == 1
            assert not any(isinstance(value, (int, float)) for value in found.metrics.values())
