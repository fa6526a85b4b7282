"""`ncu-roofline schema`: what it says of documents is what commands write, and what it promised before."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ncu_roofline
from ncu_roofline.analyses import ANALYSES
from ncu_roofline.base.units import UNITS
from ncu_roofline.cli.schema import documents, schema
from tests.analyses.test_run import TRACES
from tests.cli.command import Command, assert_refused
from tests.schemas import assert_fits

DEMO = Path(ncu_roofline.__file__).parent / "data" / "demo"
V100, ROOFS, SMOOTH = DEMO / "gpp-v100.ncu-rep", DEMO / "gpp-v100-ceilings.json", DEMO / "smooth-made-up.ncu-repz"
H100 = Path(__file__).parents[1] / "bench" / "measured_h100" / "ceilings.json"
BEFORE, AFTER = DEMO / "stencil-before-made-up.ncu-repz", DEMO / "stencil-after-made-up.ncu-repz"
STEPS = tuple(sorted(DEMO.glob("gpp-h100-nw*.ncu-repz")))
PROMISED = Path(__file__).with_name("schemas.json")
# Where these are tested: they need a machine of their own.
ELSEWHERE = {"install", "uninstall", "doctor", "bench-list"}
SHOWN = ("roofline", "time", "instruction", "phases")
WRITTEN: list[tuple[str, tuple[object, ...]]] = [
    *((view, ("show", path, "--view", view, "--json")) for view in SHOWN for path in (V100, SMOOTH)),
    ("roofline", ("show", V100, "--ceilings", ROOFS, "--by", "kernel", "--json")),
    ("roofline", ("show", V100, "--by", "application", "--precision", "int32", "--json")),
    ("roofline", ("show", *STEPS, "--trajectory", "--json")),
    ("roofline", ("show", BEFORE, "--source", "embedded", "--json")),
    ("roofline", ("show", DEMO / "gemm-made-up.ncu-repz", V100, "--full-paths", "--json")),
    ("comparison", ("compare", BEFORE, AFTER, "--fail-if", "time > 0.1 * baseline", "--json")),
    ("comparison", ("compare", *STEPS, "--json")),
    ("source", ("source", SMOOTH, "--json")),
    ("source", ("source", SMOOTH, "--no-disassembly", "--full-paths", "--json")),
    ("ranks", ("ranks", *STEPS, "--rank", r"nw(\d)", "--json")),
    ("portability", ("portability", DEMO / "gpp-platforms.csv", "--json")),
    ("portability", ("portability", f"A={V100}", f"B={STEPS[0]}", "--json")),
    *(("advise", ("advise", path, "--json", "--all-findings")) for path in (V100, SMOOTH, BEFORE)),
    *(("explain", ("explain", path, "--json")) for path in (V100, SMOOTH, DEMO / "basic-set-made-up.ncu-repz")),
    ("check", ("check", "--json")),
    ("check", ("check", "--json", "--passes", "--chip", "GH100")),
    *((name, ("list", name.partition("-")[2], "--json")) for name in documents() if name.startswith("list-")),
    ("bench-theory", ("bench", "theory", "--json")),
    ("bench-verify", ("bench", "verify", ROOFS, "--json")),
    ("bench-compare", ("bench", "compare", ROOFS, ROOFS, H100, "--json")),
    ("ceilings", ("bench", "merge", H100, H100, "--json")),
]


@pytest.mark.parametrize(("name", "words"), WRITTEN, ids=lambda one: one if isinstance(one, str) else "")
def test_what_commands_print(run: Command, name: str, words: tuple[object, ...]) -> None:
    assert_fits(name, run(*words).out)


def test_every_document_is_tried() -> None:
    assert {name for name, _ in WRITTEN} | {"run", "counted", "run-comparison", "budget"} | ELSEWHERE == set(documents())
    assert set(ANALYSES) <= set(documents())


def test_what_render_writes(run: Command, tmp_path: Path) -> None:
    for view in SHOWN:
        assert run("render", V100, "--view", view, "-o", tmp_path / f"{view}.json").code == 0
        assert_fits(view, (tmp_path / f"{view}.json").read_text())


def test_reports_of_several_gpus_and_without_work(run: Command, whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "whole.ncu-rep"
    path.write_bytes(whole)
    for view in SHOWN:
        assert_fits(view, run("show", path, "--view", view, "--json").out)
    assert_fits("source", run("source", path, "--json").out)
    assert_fits("advise", run("advise", path, "--json").out)
    assert_fits("explain", run("explain", path, "--json").out)


def test_runs(run: Command, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    times = {"ph": "X", "ts": 2, "dur": 1, "pid": 1, "tid": 1}
    launch = {**times, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "args": {"correlation": 1}}
    kernel = {**times, "cat": "kernel", "name": "k", "args": {"correlation": 1}}
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [launch, kernel]}))
    assert_fits("run", run("show", trace, "--json").out)
    assert_fits("run", run("show", trace, "--board", "V100 SXM2", "--operators-by", "kernel", "--json").out)


NAMES = sorted(path.name for path in TRACES.glob("*.[!m]*")) or ["none"]


@pytest.mark.parametrize("name", [NAMES[0], *(pytest.param(name, marks=pytest.mark.exhaustive) for name in NAMES[1:])])
def test_real_traces(run: Command, name: str) -> None:
    if not (TRACES / name).exists():
        pytest.skip("no collection of real traces (set NCU_ROOFLINE_TRACES)")
    done = run("show", TRACES / name, "--json")
    if done.code:
        pytest.skip(f"refused: {done.err.strip()[-120:]}")
    assert_fits(json.loads(done.out).get("view", "roofline"), done.out)


@pytest.mark.exhaustive
@pytest.mark.reports
def test_real_reports(run: Command, real_reports: dict[str, Path]) -> None:
    chosen = list(real_reports.values())[::6]
    for path in chosen:
        for view in SHOWN:
            assert_fits(view, run("show", path, "--view", view, "--json").out)
        assert_fits("advise", run("advise", path, "--json").out)
        assert_fits("explain", run("explain", path, "--json").out)
        if (inside := run("source", path, "--json")).code == 0:
            assert_fits("source", inside.out)


def spoilt(document: Any) -> Iterator[Any]:
    """The document with a key too many, one too few, and a value of another type, in its first row and around it."""
    for path in ((), ("kernels", 0)):
        for change in (lambda of: of.update(surplus=1), lambda of: of.popitem(), lambda of: of.update({next(iter(of)): []})):
            wrong = copy.deepcopy(document)
            place = wrong
            for key in path:
                place = place[key]
            change(place)
            yield wrong


def test_a_schema_is_closed(run: Command) -> None:
    document = json.loads(run("show", V100, "--json").out)
    for wrong in spoilt(document):
        with pytest.raises(AssertionError):
            assert_fits("roofline", json.dumps(wrong))
    document["units"]["work"] = "byte"
    with pytest.raises(AssertionError):
        assert_fits("roofline", json.dumps(document))


class TestCommand:
    def test_without_a_name_all_are_listed(self, run: Command) -> None:
        lines = run("schema").out.splitlines()
        assert [line.split()[0] for line in lines[1:]] == list(documents())

    def test_a_schema(self, run: Command) -> None:
        for name in documents():
            done = run("schema", name)
            assert (done.code, done.err) == (0, "")
            found = json.loads(done.out)
            assert found["$schema"] == "https://json-schema.org/draft/2020-12/schema"
            assert found["$id"].startswith(f"urn:ncu-roofline:{name}:")
            assert found == schema(name)
            version = found.get("properties", {}).get("schema_version")
            assert version in (None, {"const": int(found["$id"].rpartition(":")[2])})

    def test_an_unknown_name(self, run: Command) -> None:
        done = run("schema", "rooflines")
        assert_refused(done, "rooflines", 2)
        assert "did you mean roofline?" in done.err

    def test_columns_have_type_unit_and_meaning(self) -> None:
        column = schema("roofline")["properties"]["points"]["items"]["properties"]["traffic"]
        assert (column["type"], column["unit"]) == (["number", "null"], "byte")
        assert column["description"]
        for view in ANALYSES:
            for place, said in flat(schema(view)):
                assert said.partition(" ")[2] in ("", *UNITS) or "." not in place


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
