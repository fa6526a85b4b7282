"""What commands write as data: what `ncu-roofline schema` says and promised of it, and tables that are those of JSON."""

from __future__ import annotations

import copy
import csv
import io
import json
import os
import shlex
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import ncu_roofline
from ncu_roofline.analyses import ANALYSES
from ncu_roofline.base.units import UNITS
from ncu_roofline.cli.schema import documents, schema
from ncu_roofline.rendering.table import columns_wide
from tests.cli import made
from tests.cli.command import Command
from tests.schemas import assert_fits

DEMO = Path(ncu_roofline.__file__).parent / "data" / "demo"
TRACES = Path(os.environ.get("NCU_ROOFLINE_TRACES", Path(__file__).parents[3] / "shared" / "data" / "traces"))
H100 = Path(__file__).parents[1] / "bench" / "measured_h100" / "ceilings.json"
PROMISED = Path(__file__).with_name("schemas.json")
# Where these are tested: they need a machine, or traces, of their own.
ELSEWHERE = {"install", "uninstall", "doctor", "bench-list", "counted", "run-comparison", "budget"}
SHOWN = ("roofline", "time", "instruction", "phases")
WRITTEN = defaultdict[str, list[str]](list)
for line in Path(__file__).with_name("documents.txt").read_text(encoding="utf-8").splitlines()[1:]:
    WRITTEN[line.partition(": ")[0]].append(line.partition(": ")[2])


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Reports of several GPUs, without work, with counts of all kinds; a trace; ceilings."""
    times = {"ph": "X", "ts": 2, "dur": 1, "pid": 1, "tid": 1, "args": {"correlation": 1}}
    events = [{**times, "cat": "cuda_runtime", "name": "cudaLaunchKernel"}, {**times, "cat": "kernel", "name": "k"}]
    found = {"trace": tmp_path / "trace.json", "h100": H100, "ranks": tmp_path / "sixteen-ranks", "out": tmp_path / "out"}
    found["trace"].write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    found |= {name: tmp_path / f"{name}.ncu-rep" for name in ("two-gpus", "counted", "phases", "many", "before", "after")}
    for path in found.values():
        made.FILES.get(path.name, lambda _: None)(path)
    monkeypatch.chdir(DEMO)
    return {**found, "whole": found["two-gpus"]}


def words_of(line: str, places: dict[str, Path]) -> list[str]:
    return [word.format(**places) for word in shlex.split(line)]


@pytest.mark.parametrize("name", WRITTEN)
def test_what_commands_print(run: Command, places: dict[str, Path], name: str) -> None:
    """Also what render writes; tables of CSV and Parquet are those of JSON."""
    for line in WRITTEN[name]:
        assert_fits(name, run(*words_of(line, places)).out)
    if name in SHOWN:
        assert run("render", "gpp-v100.ncu-rep", "--view", name, "-o", places["out"], "--format", "json").code == 0
        assert_fits(name, places["out"].read_text())
    if name not in {*SHOWN, "comparison", "source", "ranks"}:
        return
    words = words_of(WRITTEN[name][0], places)
    document = json.loads(run(*words).out)
    writes = ["render" if word == "show" else word for word in words if word not in ("--json", "--full-paths")]
    for table, declared in ANALYSES[name].tables.items():
        names = [one.name for one in declared]
        printed = run(*writes, "-o", "-", "--format", "csv", "--table", table).out
        rows = list(csv.DictReader(io.StringIO(printed)))
        assert (printed.splitlines()[0].split(","), len(rows)) == (names, len(document[table])), table
        assert all(list(row) == names for row in document[table])
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    run(*writes, "-o", places["out"], "--format", "parquet", "--table", table, "--force")
    found = parquet.read_table(places["out"])
    assert found.to_pylist() == document[table] or "--full-paths" in words
    assert [one.metadata[b"unit"].decode() for one in found.schema] == [one.unit for one in declared]


def test_every_document_is_tried(run: Command) -> None:
    assert {*WRITTEN, *ELSEWHERE} == set(documents()) >= set(ANALYSES)
    for name in documents():
        found = json.loads(run("schema", name).out)
        assert found == schema(name)
        assert found["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        assert found["$id"].startswith(f"urn:ncu-roofline:{name}:")
        version = found.get("properties", {}).get("schema_version")
        assert version in (None, {"const": int(found["$id"].rpartition(":")[2])})


@pytest.mark.parametrize("most", [1, pytest.param(None, marks=pytest.mark.exhaustive)])
@pytest.mark.skipif(not TRACES.is_dir(), reason="no collection of real traces (set NCU_ROOFLINE_TRACES)")
def test_real_traces(run: Command, most: int | None) -> None:
    outcomes = (run("show", path, "--json") for path in sorted(TRACES.glob("*.[!m]*")))
    for done in islice((done for done in outcomes if done.code == 0), most):
        assert_fits(json.loads(done.out).get("view", "roofline"), done.out)


@pytest.mark.exhaustive
@pytest.mark.reports
def test_real_reports(run: Command, real_reports: dict[str, Path]) -> None:
    for path in list(real_reports.values())[::6]:
        for name in (*SHOWN, "advise", "explain", "source"):
            outcome = run(*(("show", "--view", name) if name in SHOWN else (name,)), path, "--json")
            if outcome.code == 0 or name != "source":
                assert_fits(name, outcome.out)


def test_a_schema_is_closed(run: Command) -> None:
    """Against a key too many, one too few, a value of another type, and another unit; columns have type, unit and meaning."""
    document = json.loads(run("show", DEMO / "gpp-v100.ncu-rep", "--json").out)
    for change in (
        *(lambda of: of.update(surplus=1), lambda of: of.popitem(), lambda of: of.update(points=1)),
        *(lambda of: of["kernels"][0].update(surplus=1), lambda of: of["kernels"][0].popitem()),
        *(lambda of: of["kernels"][0].update(report=1), lambda of: of["units"].update(work="byte")),
    ):
        change(wrong := copy.deepcopy(document))
        with pytest.raises(AssertionError):
            assert_fits("roofline", json.dumps(wrong))
    column = schema("roofline")["properties"]["points"]["items"]["properties"]["traffic"]
    assert (column["type"], column["unit"], bool(column["description"])) == (["number", "null"], "byte", True)
    for view in ANALYSES:
        assert {said.partition(" ")[2] for place, said in flat(schema(view)) if "." in place} <= {"", *UNITS}


def flat(form: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """What a schema says of each place in a document: its type, or the words that may stand there, and its unit."""
    if "anyOf" in form and "type" not in form:
        form = form["anyOf"][0]
    if form.get("type") == "array":
        yield from flat(form["items"], f"{place}[]")
    elif "properties" in form or isinstance(form.get("additionalProperties"), dict):
        for key, inner in {**form.get("properties", {}), "*": form.get("additionalProperties") or {}}.items():
            yield from flat(inner, f"{place}.{key}")
    elif form:
        kind = form.get("type", form.get("enum", form.get("const", "")))
        yield place, f"{'|'.join(kind) if isinstance(kind, list) else kind} {form.get('unit', '')}".strip()


def test_within_a_version_nothing_goes_and_nothing_changes() -> None:
    """Keys and words may be added: UPDATE_GOLDEN=1 notes them.  For anything else the version of the schema has to grow."""
    now = {schema(name)["$id"]: dict(flat(schema(name))) for name in documents() if name != "ceilings"}
    before = json.loads(PROMISED.read_text())
    for name in set(now) & set(before):
        for place, said in before[name].items():
            found = now[name].get(place, "nothing")
            assert found == said or set(said.split("|")) < set(found.split("|")), f"{name}{place}: {said}, now {found}"
    if os.environ.get("UPDATE_GOLDEN"):
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(places)}" for name, places in now.items())
        PROMISED.write_text(f"{{\n{lines}\n}}\n")
    assert json.loads(PROMISED.read_text()) == now, "note what is new: UPDATE_GOLDEN=1"


def test_parquet_without_pyarrow(run: Command, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ncu_roofline.analyses.find_spec", lambda _: None)
    outcome = run("render", source, "-o", source.with_suffix(".parquet"))
    assert (outcome.code, "pip install 'ncu-roofline[parquet]'" in outcome.err) == (1, True)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_text_fits(run: Command, places: dict[str, Path], width: int) -> None:
    lines = "show {many}, compare {before} {after} {many} --fail-if time>baseline, ranks {ranks}, "
    lines += "source smooth-made-up.ncu-repz --no-disassembly, show {counted} --view instruction --notes"
    for line in lines.split(", "):
        outcome = run(*words_of(line, places), "--width", width)
        assert (outcome.out != "", "\x1b" in outcome.out) == (True, False)
        assert [line for line in outcome.out.splitlines() if columns_wide(line) > width] == [], line


def test_a_png_of_the_width_and_dots_asked_for(run: Command, source: Path, tmp_path: Path) -> None:
    """84 x 70 mm at 200 dots per inch; a preset gives a column of a paper its width."""
    asked = ("--width", "84mm", "--height", "7cm", "--font", "7", "--dpi", "200", "--size", "time")
    assert run("render", source, "-o", tmp_path / "x.png", *asked).code == 0
    data = (tmp_path / "x.png").read_bytes()
    assert [int.from_bytes(data[place : place + 4], "big") for place in (16, 20)] == [661, 551]
    assert run("render", source, "-o", tmp_path / "x.svg", "--view", "time", "--preset", "column").code == 0
    assert b'width="237.6pt"' in (tmp_path / "x.svg").read_bytes()
