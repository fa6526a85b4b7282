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
TOOLS = ["compare", "explain", "roofline", "run", "source"]
BEFORE, AFTER = DEMO / "stencil-before-made-up.ncu-repz", DEMO / "stencil-after-made-up.ncu-repz"
needs_sdk = pytest.mark.skipif(not importlib.util.find_spec("mcp"), reason="no SDK of the Model Context Protocol (extra mcp)")


def test_without_the_sdk_one_sentence_says_how_to_get_it(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert_refused(run("mcp"), "mcp")
    assert "pip install 'ncu-roofline[mcp]'" in run("mcp").err


async def _session(folder: Path, calls: list[tuple[str, dict[str, Any]]]) -> tuple[str, list[str], list[tuple[bool, str]]]:
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    home = str(Path(ncu_roofline.__file__).parents[1])
    words = ["-m", "ncu_roofline", "mcp"]
    server = StdioServerParameters(command=sys.executable, args=words, env={**os.environ, "PYTHONPATH": home}, cwd=folder)
    with Path(os.devnull).open("w") as log:  # the SDK's own messages; pytest's stream is no file
        return await _talk(stdio_client(server, errlog=log), calls)


async def _talk(client: Any, calls: list[tuple[str, dict[str, Any]]]) -> tuple[str, list[str], list[tuple[bool, str]]]:
    from mcp import ClientSession

    async with client as streams, ClientSession(*streams) as session:
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
    """What a server says of itself, its tools, and whether each call of a tool was an error, with its text."""
    return lambda *calls: asyncio.run(_session(tmp_path, list(calls)))


@needs_sdk
def test_tools_answer_in_words_and_in_few_rows_of_the_documents(
    asked: Callable[..., Any], run: Command, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.json"
    launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 2, "dur": 1, "pid": 1, "tid": 1}
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 9, "pid": 1, "tid": 1},
        {**launch, "args": {"correlation": 1}},
        {"ph": "X", "cat": "kernel", "name": "k", "ts": 20, "dur": 9, "pid": 0, "tid": 7, "args": {"correlation": 1}},
    ]
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    before = set(tmp_path.iterdir())
    instructions, tools, said = asked(
        ("roofline", {"report": str(DEMO / "gpp-v100.ncu-rep"), "top": 2}),
        ("roofline", {"report": str(DEMO / "gpp-v100.ncu-rep"), "kernel": "gpu<3>"}),
        ("compare", {"before": str(BEFORE), "after": str(AFTER), "top": 1}),
        ("source", {"report": str(DEMO / "smooth-made-up.ncu-repz"), "top": 3}),
        ("explain", {"report": str(DEMO / "gpp-v100.ncu-rep")}),
        ("run", {"trace": "trace.json"}),
    )
    assert set(tmp_path.iterdir()) == before
    assert tools == TOOLS
    assert "never zero" in instructions
    assert [wrong for wrong, _ in said] == [False] * 6
    assert all(len(text) < 60_000 for _, text in said)
    best, one, change, inside, lacking, whole = (json.loads(text) for _, text in said)

    shown = json.loads(run("show", DEMO / "gpp-v100.ncu-rep", "--by", "kernel", "--ceilings", "auto", "--json").out)
    most = sorted(shown["kernels"], key=lambda row: -row["recoverable"])[:2]
    assert [row["kernel"] for row in best["document"]["kernels"]] == [row["kernel"] for row in most]
    assert [row["recoverable"] for row in best["document"]["kernels"]] == pytest.approx(
        [row["recoverable"] for row in most], rel=1e-4
    )
    assert {row["kernel"] for row in best["document"]["points"]} == {row["kernel"] for row in most}
    for table in ("kernels", "points"):
        assert len(shown[table]) - len(best["document"][table]) == best["left_out"][table]
    assert best["answer"].startswith("6 kernels, ")
    assert [row["seconds"] for row in one["document"]["kernels"]] == pytest.approx([0.707], abs=5e-4)
    assert one["left_out"].keys() <= {"roofs"}
    assert [row["kernel"] for row in change["document"]["kernels"]] == ["stencil"]
    assert "1.38x faster" in change["answer"]
    assert {row["kernel"] for row in change["document"]["levels"]} == {"stencil"}
    assert len(change["document"]["summary"]) == 1
    assert len(inside["document"]["lines"]) == 3
    assert inside["document"]["findings"][0]["advice"]
    assert lacking["document"] == json.loads(run("explain", DEMO / "gpp-v100.ncu-rep", "--json").out)
    assert whole["document"]["operators"][0]["operator"] == "aten::mm"
    assert "schema" in whole["document"]


def test_of_a_row_only_what_holds_nothing_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"kernel": "k", "report": "r", "change": -1.0, "work": 0.0, "share": None, "step": -1, "notes": "", "small": False}
    monkeypatch.setattr(mcp, "_said", lambda _: (json.dumps({"kernels": [row]}), []))
    assert mcp.compare("a", "b")["document"]["kernels"] == [
        {name: row[name] for name in ("kernel", "report", "change", "work", "small")}
    ]


@needs_sdk
def test_what_cannot_be_answered_is_an_error_with_our_sentence(asked: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "text.ncu-rep").write_text("no report")
    (tmp_path / "--output=x.html").write_text("no report")
    report(tmp_path / "r.ncu-rep", kernel(complete()))
    before = set(tmp_path.iterdir())
    wrong = [
        (("roofline", {"report": "missing.ncu-rep"}), "missing.ncu-rep: "),
        (("roofline", {"report": "text.ncu-rep"}), "text.ncu-rep: "),
        (("roofline", {"report": "--output=x.html"}), "--output=x.html: "),
        (("roofline", {"report": "-"}), "/-: "),
        (("roofline", {"report": "r.ncu-rep", "kernel": "("}), "not a regular expression"),
        (("roofline", {"report": "r.ncu-rep", "kernel": "nobody"}), "r.ncu-rep"),
        (("source", {"report": "r.ncu-rep"}), "r.ncu-rep: "),
        (("compare", {"before": "r.ncu-rep", "after": "missing.ncu-rep"}), "missing.ncu-rep: "),
        (("run", {"trace": "missing.json"}), "missing.json: "),
        (("run", {"trace": "text.ncu-rep", "operators_by": "moon"}), "moon"),
    ]
    _, _, said = asked(*(call for call, _ in wrong))
    for (call, about), (is_error, text) in zip(wrong, said, strict=True):
        assert is_error, call
        assert about in text, call
        assert "Traceback" not in text
        assert len(text.splitlines()) == 1
    assert set(tmp_path.iterdir()) == before
