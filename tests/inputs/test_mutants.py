"""Every file of another tool, mutated: the same numbers where the meaning is the same, else fewer of them, or one sentence."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ncu_roofline import render, roofline
from ncu_roofline.analyses.portability import portability, read_runs
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.inputs import open_ceilings, open_input
from ncu_roofline.formats.inputs.tables import MetricTable, PointTable
from ncu_roofline.formats.report import Report
from tests import published
from tests.inputs import intel_output, likwid_output, nvprof_logs, test_advisor, test_likwid, test_ncu_csv
from tests.inputs.mutants import LESS, OTHER, SAME, Original
from tests.inputs.test_ert import CPU, document
from tests.inputs.test_plain_table import JSON_ROWS, PLAIN
from tests.inputs.test_roofline_data import GPP

LIKWID = likwid_output.output([("MEM_DP", test_likwid.MEM_DP)], "triad", calls=3)
NVPROF = nvprof_logs.metrics(nvprof_logs.gpp_metrics(published.gpp_runs()[0]))
FILES = {
    "nvprof metrics": Original(NVPROF, header='"Device'),
    "nvprof summary": Original(nvprof_logs.summary({"k": (1.0, 2), "f(int, int)": (2.0, 1)}), header='"Type'),
    "nvprof summary without types": Original(
        nvprof_logs.summary({"k": (1.0, 2), "f(int)": (2.0, 1)}, kind=False), header='"Time'
    ),
    "nvprof trace": Original(nvprof_logs.trace([("k", 1e-6), ("k", 2e-6)], {"flop_count_dp": (1, 2)}), header='"Start'),
    "likwid": Original(LIKWID, header="Metric,", fixed=1),
    "advisor": Original(test_advisor.survey(test_advisor.TRIAD, {**test_advisor.TRIAD, "name": "other"}), header='"ID"'),
    "advisor, tabs": Original(test_advisor.survey(test_advisor.TRIAD, delimiter="\t"), delimiter="\t", header='"ID"'),
    "advisor roofs": Original(test_advisor.ROOFS, header='"?Name', fixed=3),
    "ncu raw": Original(test_ncu_csv.LAYOUTS["raw"], header='"ID"'),
    "ncu raw of two launches": Original(test_ncu_csv.GOOD, header='"ID"'),
    "ncu live": Original(test_ncu_csv.LAYOUTS["live"], header='"ID"', lacking=1),
    "ncu raw, live": Original(test_ncu_csv.LAYOUTS["live raw"], header='"ID"'),
    "ncu without quotes": Original(test_ncu_csv.LAYOUTS["wide, saved again without quotes"], header="ID,"),
    "ncu, semicolons": Original(test_ncu_csv.LAYOUTS["semicolons"], delimiter=";", header="ID;"),
    "vtune events": Original(intel_output.events(), header="Package", fixed=1),
    "vtune events, tabs": Original(intel_output.events(delimiter="\t"), delimiter="\t", header="Package", fixed=1),
    "vtune summary": Original(intel_output.summary(levels=False), header="Metric Name", fixed=2),
    "sde": Original(intel_output.mix(intel_output.GRAPH, intel_output.GRAPH_CODES), delimiter=""),
    "plain table": Original(PLAIN, header="platform,"),
    "plain table, tabs": Original(PLAIN.replace(",", "\t"), delimiter="\t", header="platform\t"),
    "plain table, json": Original(json.dumps(JSON_ROWS), delimiter=""),
    "roofline data": Original(GPP, delimiter=""),
    "roofline.json": Original(json.dumps(document(CPU, [["GFLOPs", 288.33]]), indent=3), delimiter=""),
}
METRIC = "metric"
Number = tuple[Hashable, ...]


def numbers_of(path: Path) -> dict[Number, float]:
    """All numbers that a file gives, by what they are of.  Raises RooflineError where it gives none."""
    found: dict[Number, float] = {}
    refusal = None
    for use in (open_input, open_ceilings):
        try:
            result = use(path)
        except RooflineError as error:
            refusal = refusal or error
            continue
        found.update(_numbers(result))
    if refusal and not found:
        raise refusal
    return found


def _numbers(result: object) -> Iterator[tuple[Number, float]]:
    if isinstance(result, Report):
        result.close()
    elif isinstance(result, Ceilings):
        yield from ((("ceiling", id_), one.value) for id_, one in result.by_id.items())
    elif isinstance(result, MetricTable):
        names = [one.name for one in result.rows]
        for metric, column in result.values.items():
            yield from (((names[i], i, METRIC, metric), value) for i, value in enumerate(column) if _is(value))
    elif isinstance(result, PointTable):
        names = [point.name for point in result.points]
        for place, point in enumerate(result.points):
            parts = {"work": point.work, "traffic": point.traffic, "share": point.fma_share}
            own = (names[place], names[:place].count(names[place]), point.label, point.device, point.rates)
            yield (*own, "seconds", ""), point.seconds
            yield (*own, "launches", ""), float(point.launches)
            yield from (((*own, part, key), value) for part, values in parts.items() for key, value in values.items())
            yield from (((*own, "roof", roof.id), roof.value) for roof in point.roofs)
        yield from ((("roof", roof.id), roof.value) for roof in result.roofs)


def _is(value: object) -> bool:
    return isinstance(value, (int, float)) and value == value


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


ROUNDS = pytest.mark.parametrize("rounds", [range(3), pytest.param(range(3, 20), marks=pytest.mark.exhaustive)], ids=str)
# Whose thread is missing can't be told.
UNTOLD = {("likwid", "a column missing")}


@ROUNDS
@pytest.mark.parametrize("name", FILES)
def test_what_means_the_same_gives_the_same(tmp_path: Path, name: str, rounds: range) -> None:
    original, path = FILES[name], tmp_path / "file.csv"
    expected = numbers_of(written(path, original.text.encode()))
    assert expected
    for mutation, seed in itertools.product(SAME, rounds):
        found = numbers_of(written(path, SAME[mutation](original, random.Random(seed))))
        assert found.keys() == expected.keys(), (mutation, seed)
        assert all(_agree(value, found[key]) for key, value in expected.items()), (mutation, seed)


@ROUNDS
@pytest.mark.parametrize("name", [name for name, one in FILES.items() if one.header])
def test_what_is_spoilt_is_missing_or_refused(tmp_path: Path, name: str, rounds: range) -> None:
    original, path = FILES[name], tmp_path / "file.csv"
    expected = numbers_of(written(path, original.text.encode()))
    for mutation, seed in itertools.product(LESS, rounds):
        written(path, LESS[mutation](original, random.Random(seed)))
        with told(path):
            found = numbers_of(path)
            assert (name, mutation) in UNTOLD or not _more(found, expected), (mutation, seed)


@pytest.mark.sampled("nvprof summary-*", "ncu live-*", "plain table-*", "vtune events-*")
@ROUNDS
@pytest.mark.parametrize("name", FILES)
def test_a_result_or_one_sentence(tmp_path: Path, name: str, rounds: range) -> None:
    original, path = FILES[name], tmp_path / "file.csv"
    for mutation, seed in itertools.product(OTHER, rounds):
        written(path, OTHER[mutation](original, random.Random(seed)))
        with told(path):
            # What ncu measured is judged by the model, with the reports.
            finished = [value for key, value in numbers_of(path).items() if METRIC not in key]
            assert not any(math.isinf(value) or value < 0 for value in finished), (mutation, seed)
        with told(path):
            render(roofline(path), "json")
        with told(path):
            portability(read_runs([path])[0])


@pytest.mark.parametrize("name", FILES)
def test_two_runs_in_one_log_are_both_there_or_told(tmp_path: Path, name: str) -> None:
    text, path = FILES[name].text, tmp_path / "file.csv"
    expected = numbers_of(written(path, text.encode()))
    written(path, (text + text).encode())
    with told(path):
        found = numbers_of(path)
        assert not _more(found, expected)
        assert len(found) == 2 * len(expected) or list(open_input(path).warnings)


# A unit as it is written, one that is known, how many of the old are one of the new, and one that nobody knows.
UNITS = {
    "nvprof summary": (",us,,us,us,us,", ",ms,,us,us,us,", 1e3, ",ks,,us,us,us,", "seconds"),
    "nvprof trace": ("ms,us,,", "ms,ns,,", 1e-3, "ms,fortnight,,", "seconds"),
    "likwid": ("Memory data volume [GBytes]", "Memory data volume [GBytes]", 1, "Memory data volume [GBits]", "traffic"),
    "advisor": ('"2.000s"', '"2.000ms"', 1e-3, '"2.000min"', "seconds"),
    "ncu raw": ('"msecond"', '"usecond"', 1e-3, '"fortnight"', "gpu__time_duration.sum"),
    "ncu live": ('"msecond"', '"second"', 1e3, '"Xsecond"', "gpu__time_duration.sum"),
    "plain table": ("seconds", "time_ms", 1e-3, "time_fortnights", "seconds"),
}


@pytest.mark.parametrize("name", UNITS)
def test_units_are_converted_or_refused(tmp_path: Path, name: str) -> None:
    written_unit, known, factor, unknown, quantity = UNITS[name]
    text, path = FILES[name].text, tmp_path / "file.csv"
    before = numbers_of(written(path, text.encode()))
    after = numbers_of(written(path, text.replace(written_unit, known).encode()))
    assert before.keys() == after.keys()
    changed = {key for key in before if not _agree(before[key], after[key])}
    assert {_quantity(key) for key in changed} == ({quantity} if factor != 1 else set())
    assert all(after[key] == pytest.approx(factor * before[key]) for key in changed)
    written(path, text.replace(written_unit, unknown).encode())
    with told(path):
        found = numbers_of(path)
        assert not any(_quantity(key) == quantity and not math.isnan(value) for key, value in found.items())


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Takes a refusal for an answer, if it names the file."""
    refusal = ""
    try:
        yield
    except RooflineError as error:
        refusal = str(error)
    assert not refusal or (str(path) in refusal and refusal.isprintable())


def _agree(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-12)


def _more(found: dict[Number, float], expected: dict[Number, float]) -> list[Number]:
    """What the original does not say, of whatever kernel: one may lose its name or its precision with a column."""
    said: dict[Hashable, set[float]] = {}
    for key, value in expected.items():
        said.setdefault(_quantity(key), set()).add(value)
    return [
        key
        for key, value in found.items()
        if not math.isnan(value) and not any(_agree(value, one) for one in said.get(_quantity(key), ()))
    ]


def _quantity(key: Number) -> Hashable:
    return key[-1] if METRIC in key else key[-2]
