"""`ncu-roofline mcp`: the tools for language models, driven by the SDK's own client."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ncu_roofline
from ncu_roofline.cli import mcp
from tests.cli.command import Command, assert_refused
from tests.factory import complete, kernel, report

DEMO = Path(ncu_roofline.__file__).parent / "data" / "demo"
BEFORE, AFTER = (str(DEMO / f"stencil-{when}-made-up.ncu-repz") for when in ("before", "after"))
GPP = str(DEMO / "gpp-v100.ncu-rep")
needs_sdk = pytest.mark.skipif(not importlib.util.find_spec("mcp"), reason="no SDK of the Model Context Protocol (extra mcp)")


def test_without_the_sdk_one_sentence_says_how_to_get_it(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert_refused(run("mcp"), "mcp")
    assert "pip install 'ncu-roofline[mcp]'" in run("mcp").err


async def _session(folder: Path, calls: list[tuple[str, dict[str, Any]]]) -> tuple[str, list[str], list[tuple[bool, str]]]:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    environment = {**os.environ, "PYTHONPATH": str(Path(ncu_roofline.__file__).parents[1])}
    server = StdioServerParameters(command=sys.executable, args=["-m", "ncu_roofline", "mcp"], env=environment, cwd=folder)
    with Path(os.devnull).open("w") as log:  # the SDK's own messages; pytest's stream is no file
        async with stdio_client(server, errlog=log) as streams, ClientSession(*streams) as session:
            begun = await session.initialize()
            tools = sorted(tool.name for tool in (await session.list_tools()).tools)
            said = []
            for name, arguments in calls:
                result = await session.call_tool(name, arguments)
                wrong = result.is_error if hasattr(result, "is_error") else result.isError
                said.append((wrong, "".join(part.text for part in result.content)))
            return begun.instructions or "", tools, said


@pytest.fixture
def asked(tmp_path: Path) -> Callable[..., tuple[str, list[str], list[tuple[bool, str]]]]:
    return lambda *calls: asyncio.run(_session(tmp_path, list(calls)))


@needs_sdk
def test_tools_answer_in_words_and_in_few_rows_of_the_documents(
    asked: Callable[..., Any], run: Command, tmp_path: Path
) -> None:
    times, by = {"ph": "X", "dur": 9, "pid": 1, "tid": 1}, {"args": {"correlation": 1}}
    events = [
        {**times, "cat": "cpu_op", "name": "aten::mm", "ts": 1},
        {**times, **by, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 2, "dur": 1},
        {**times, **by, "cat": "kernel", "name": "k", "ts": 20, "pid": 0, "tid": 7},
    ]
    (tmp_path / "trace.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    instructions, tools, said = asked(
        ("roofline", {"report": GPP, "top": 2}),
        ("roofline", {"report": GPP, "kernel": "gpu<3>"}),
        ("compare", {"before": BEFORE, "after": AFTER, "top": 1}),
        ("source", {"report": str(DEMO / "smooth-made-up.ncu-repz"), "top": 3}),
        ("explain", {"report": GPP}),
        ("run", {"trace": "trace.json"}),
    )
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]  # nothing is written
    assert (tools, "never zero" in instructions) == (["compare", "explain", "roofline", "run", "source"], True)
    assert [(wrong, len(text) < 60_000) for wrong, text in said] == [(False, True)] * 6
    best, one, change, inside, lacking, whole = (json.loads(text) for _, text in said)

    shown = json.loads(run("show", GPP, "--by", "kernel", "--ceilings", "auto", "--json").out)
    most = sorted(shown["kernels"], key=lambda row: -row["recoverable"])[:2]
    found = best["document"]["kernels"]
    assert [row["kernel"] for row in found] == [row["kernel"] for row in most]
    assert [row["recoverable"] for row in found] == pytest.approx([row["recoverable"] for row in most], rel=1e-4)
    assert {row["kernel"] for row in best["document"]["points"]} == {row["kernel"] for row in most}
    for table in ("kernels", "points"):
        assert len(shown[table]) - len(best["document"][table]) == best["left_out"][table]
    assert best["answer"].startswith("6 kernels, ")
    assert [row["seconds"] for row in one["document"]["kernels"]] == pytest.approx([0.707], abs=5e-4)
    assert one["left_out"].keys() <= {"roofs"}
    assert [row["kernel"] for row in change["document"]["kernels"]] == ["stencil"]
    assert {row["kernel"] for row in change["document"]["levels"]} == {"stencil"}
    assert ("1.38x faster" in change["answer"], len(change["document"]["summary"])) == (True, 1)
    assert (len(inside["document"]["lines"]), bool(inside["document"]["findings"][0]["advice"])) == (3, True)
    assert lacking["document"] == json.loads(run("explain", GPP, "--json").out)
    assert (whole["document"]["operators"][0]["operator"], "schema" in whole["document"]) == ("aten::mm", True)


def test_of_a_row_only_what_holds_nothing_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\n## How not to misread\n" in (DEMO.parents[1] / "guide" / "scripts.md").read_text("utf-8")  # what the server tells
    kept = {"kernel": "k", "report": "r", "change": -1.0, "work": 0.0, "small": False}
    row = {**kept, "share": None, "step": -1, "notes": ""}
    monkeypatch.setattr(mcp, "_said", lambda _: (json.dumps({"kernels": [row]}), []))
    assert mcp.compare("a", "b")["document"]["kernels"] == [kept]


@needs_sdk
def test_what_cannot_be_answered_is_an_error_with_our_sentence(asked: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "text.ncu-rep").write_text("no report")
    (tmp_path / "--output=x.html").write_text("no report")
    report(tmp_path / "r.ncu-rep", kernel(complete()))
    wrong: list[tuple[str, dict[str, Any], str]] = [
        *(("roofline", {"report": name}, f"{name}: ") for name in ("missing.ncu-rep", "text.ncu-rep", "--output=x.html")),
        ("roofline", {"report": "-"}, "/-: "),
        ("roofline", {"report": "r.ncu-rep", "kernel": "("}, "not a regular expression"),
        ("roofline", {"report": "r.ncu-rep", "kernel": "nobody"}, "r.ncu-rep"),
        ("source", {"report": "r.ncu-rep"}, "r.ncu-rep: "),
        ("compare", {"before": "r.ncu-rep", "after": "missing.ncu-rep"}, "missing.ncu-rep: "),
        ("run", {"trace": "missing.json"}, "missing.json: "),
        ("run", {"trace": "text.ncu-rep", "operators_by": "moon"}, "moon"),
    ]
    _, _, said = asked(*((tool, arguments) for tool, arguments, _ in wrong))
    for (tool, arguments, about), (is_error, text) in zip(wrong, said, strict=True):
        assert (is_error, about in text, len(text.splitlines())) == (True, True, 1), (tool, arguments)
        assert "Traceback" not in text
