"""`ncu-roofline mcp`: what commands say as JSON, as tools of the Model Context Protocol for language models."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import wraps
from importlib import resources
from itertools import takewhile
from pathlib import Path
from typing import Any

from ncu_roofline.base.errors import RooflineError

_DIGITS = 5
_RELATED = 6  # rows per kernel of other tables: levels of memory, of two precisions
_SECONDS = 600.0


class RefusedError(Exception):
    """What a command said instead of an answer."""


def add_mcp(parser: ArgumentParser) -> None:
    """No options: clients say with each call what they want."""
    parser.epilog = "It talks over standard input and output until its input ends, reads files and writes none, and needs an "
    parser.epilog += "extra: pip install 'ncu-roofline[mcp]'.  `ncu-roofline guide scripts` says what clients are told."


def run_mcp(_args: Namespace) -> int:
    """Serve until standard input ends.  Raises RooflineError where the SDK is not installed."""
    try:
        try:
            from mcp.server.mcpserver import MCPServer as Server
            from mcp.server.mcpserver.exceptions import ToolError
        except ImportError:  # before release 2
            from mcp.server.fastmcp import FastMCP as Server
            from mcp.server.fastmcp.exceptions import ToolError
        from mcp.types import ToolAnnotations
    except ImportError:
        next_step = "Install it with pip install 'ncu-roofline[mcp]'."
        raise RooflineError("Cannot serve", "mcp", "no usable package mcp is installed", next_step) from None

    def told(tool: Callable[..., dict[str, Any]]) -> Callable[..., str]:
        @wraps(tool)
        def call(*args: Any, **options: Any) -> str:
            try:
                return json.dumps(tool(*args, **options))  # the SDK's own text of an object is half blanks
            except RefusedError as error:
                raise ToolError(str(error)) from None

        return call

    page = (resources.files("ncu_roofline") / "guide" / "scripts.md").read_text(encoding="utf-8")
    advice = re.search(r"^## How not to misread\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    server = Server("ncu-roofline", instructions=advice[1].strip() if advice else "")
    for tool in (roofline, compare, source, explain, run):
        server.tool(annotations=ToolAnnotations(readOnlyHint=True), structured_output=False)(told(tool))
    server.run()
    return 0


def roofline(report: str, kernel: str = "", ceilings: str = "auto", top: int = 5) -> dict[str, Any]:
    """What takes the time of an Nsight Compute report, what limits each kernel, and its headroom: a row per kernel, with its
    dots per level and precision.  kernel: a regular expression; ceilings: auto, or a file of measured roofs; top: rows."""
    words = ["show", "--by=kernel", f"--ceilings={ceilings if ceilings == 'auto' else os.path.abspath(ceilings)}"]
    return _answer([*words, *([f"--kernel={kernel}"] if kernel else [])], [report], top, "recoverable", "seconds")


def compare(before: str, after: str, top: int = 5) -> dict[str, Any]:
    """What changed between two reports of one application, kernel by kernel: time, FLOPs, bytes and verdict."""
    return _answer(["compare"], [before, after], top, "seconds_saved", "total_seconds", "total_seconds_before")


def source(report: str, kernel: str = "", top: int = 5) -> dict[str, Any]:
    """Where in a kernel its samples, work and traffic are: findings, loops, lines, functions, instructions.  Of the kernel with
    most time, of those that the regular expression finds.  Needs source counters (ncu --set full)."""
    return _answer(["source", *([f"--kernel={kernel}"] if kernel else [])], [report], top, "share_samples", "share_work")


def explain(report: str) -> dict[str, Any]:
    """What a report can show, which metrics it lacks, and the ncu command that adds them."""
    document, messages = _document(["explain", "--json", os.path.abspath(report)])
    return {"messages": messages, "document": document}


def run(trace: str, operators_by: str = "operator", board: str = "", top: int = 5) -> dict[str, Any]:
    """The operators of a whole run from its trace (PyTorch profiler, Nsight Systems SQLite or CSV): their time, what they need
    by their shapes, what of the time could go.  operators_by: operator, annotation or kernel; board: the GPU, if unknown."""
    words = [f"--operators-by={operators_by}", *([f"--board={board}"] if board else [])]
    return _answer(["show", *words], [trace], top)


def _answer(words: list[str], files: list[str], top: int, *ranks: str) -> dict[str, Any]:
    """What a command says of files in sentences, and of its JSON the ``top`` rows of each table: by the first column of
    ``ranks`` that is known of a row, and of other tables than that of kernels what belongs to these."""
    words = [*words, *map(os.path.abspath, files)]  # which no option and no standard input is: that belongs to the protocol
    text, _ = _said([*words, "--width=200"])
    document, messages = _document([*words, "--json"])
    tables = {name: rows for name, rows in document.items() if isinstance(rows, list) and rows and isinstance(rows[0], dict)}
    kernels: dict[tuple[str, str], int] = {}
    left_out: dict[str, int] = {}
    for name in sorted(tables, key=lambda name: name != "kernels"):
        rows = tables[name]
        worth = [next((abs(row[rank]) for rank in ranks if row.get(rank) is not None), 0.0) for row in rows]
        best = [rows[place] for place in sorted(range(len(rows)), key=lambda place: -worth[place])[: max(top, 1)]]
        if kernels and "kernel" in rows[0]:
            related = [row for row in rows if (row["report"], row["kernel"]) in kernels]
            best = sorted(related, key=lambda row: kernels[row["report"], row["kernel"]])[: _RELATED * max(top, 1)]
        elif name == "kernels":
            kernels = {(row["report"], row["kernel"]): place for place, row in enumerate(best)}
        # Cells that hold nothing (a change of -1.0 does), and names of counters, are most of a row.
        empty = {repr(None), repr(""), repr(-1)}
        cells = ([(key, cell) for key, cell in row.items() if key != "metrics"] for row in best)
        document[name] = [{key: cell for key, cell in row if repr(cell) not in empty} for row in cells]
        left_out |= {name: len(rows) - len(best)} if len(best) < len(rows) else {}
    answer = " ".join(" ".join(takewhile(lambda part: "----" not in part, text.split("\n\n"))).split())  # what is above tables
    return {"answer": answer, "left_out": left_out, "messages": messages, "document": document}


def _document(words: list[str]) -> tuple[Any, list[str]]:
    """What a command prints as JSON, its numbers short, and its messages."""
    text, messages = _said(words)
    return json.loads(text, parse_float=lambda digits: float(f"{float(digits):.{_DIGITS}g}")), messages


def _said(words: list[str]) -> tuple[str, list[str]]:
    """What a command prints, and its messages: in a process of its own, whose memory and crashes are not the server's."""
    package = Path(__file__).parents[1]
    command = [sys.executable, "-m", package.name, *words]
    how: dict[str, Any] = {"stdin": subprocess.DEVNULL, "cwd": package.parent, "timeout": _SECONDS, "encoding": "utf-8"}
    try:
        done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "PYTHONUTF8": "1"}, **how)
    except subprocess.TimeoutExpired:
        raise RefusedError(f"Cannot answer: it takes more than {_SECONDS:g} s. Give a smaller file.") from None
    # Where the help of a command line is says nothing to a model.
    lines = [line for line in done.stderr.splitlines() if not line.startswith("`ncu-roofline ")]
    messages = [line.removeprefix("ncu-roofline: ") for line in lines]
    if not done.stdout:
        raise RefusedError((messages or ["Cannot answer: the command ended without a word. Try it in a terminal."])[-1])
    return done.stdout, messages
