"""Every command that reads reports, and how a test runs each of them on one."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.cli.command import Command, Outcome, assert_no_leftovers

READING = {
    "show": ("show",),
    "show --json": ("show", "--json"),
    "show --by application": ("show", "--by", "application"),
    "show --view time": ("show", "--view", "time", "--launch-latency", "4us"),
    "show --source embedded": ("show", "--source", "embedded"),
    "show --view instruction": ("show", "--view", "instruction"),
    "show --view phases": ("show", "--view", "phases"),
    "explain": ("explain",),
    "explain --json": ("explain", "--json"),
    "explain --view instruction": ("explain", "--view", "instruction"),
    "advise": ("advise",),
    "advise --json": ("advise", "--json"),
    "portability": ("portability",),
    "portability --json": ("portability", "--json"),
    "ranks": ("ranks",),
    "ranks --json": ("ranks", "--json"),
    "compare": ("compare", "--fail-if", "time > 1.05 * baseline"),
    "compare --json": ("compare", "--json"),
    "compare csv": ("compare", "-o", "-", "--format", "csv"),
    "compare md": ("compare", "-o", "-", "--format", "md"),
}
SUFFIXES = ("html", "png", "svg", "pdf", "csv", "json", "md", "txt", "parquet")
COMMANDS = {**READING, **{f"render {suffix}": ("render", suffix) for suffix in SUFFIXES}}
# These refuse reports without counts by instruction, damaged or not.
SOURCE = {
    "source": ("source",),
    "source --by instruction": ("source", "--by", "instruction"),
    "source --json": ("source", "--json"),
    "source csv": ("source", "-o", "-", "--format", "csv"),
    "source html": ("source", "-o", "-", "--format", "html"),
}
ALL = COMMANDS | SOURCE
# All commands share the readers: by default some of each kind run, every one in the exhaustive run.
SOME_COMMANDS = pytest.mark.sampled("show", "show --json", "explain", "advise", "ranks", "* md", "* csv", "* html", "* svg")
EVERY_COMMAND = pytest.mark.parametrize("name", COMMANDS)
SOURCE_TOO = pytest.mark.parametrize("name", ALL)


def sources(name: str, source: Path) -> tuple[Path, ...]:
    """What a command reads: ``source``, and where it needs two, that once more."""
    return (source, source) if name.startswith("compare") else (source,)


def execute(run: Command, name: str, source: Path, folder: Path) -> tuple[Outcome, bytes]:
    """The outcome of one of COMMANDS on ``source``, and what it printed or wrote."""
    if not name.startswith("render"):
        outcome = run(*ALL[name], *sources(name, source))
        return outcome, outcome.out.encode()
    if name == "render parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    target = folder / f"out.{COMMANDS[name][1]}"
    outcome = run("render", source, "-o", target)
    assert target.exists() == (outcome.code == 0)
    assert_no_leftovers(folder, *([target.name] if target.exists() else []))
    return outcome, target.read_bytes() if target.exists() else b""


def check_harmless(name: str, data: bytes, outcome: Outcome) -> None:
    """What came from the report reaches no terminal, browser, spreadsheet or parser as anything but text."""
    assert outcome.err.replace("\n", "").isprintable()
    if name.endswith(("png", "pdf", "parquet")):
        return
    text = data.decode("utf-8")
    if name.endswith("json"):
        strict(text)
    elif name.endswith("html"):
        for forbidden in ("<script>alert", "<img src=x", "<!--<script>", "\x1b"):
            assert forbidden not in text
    elif name.endswith("svg"):
        root = ElementTree.fromstring(data)  # as it is ours, and a hostile one would be the finding
        assert not [one for one in root.iter() if one.tag.endswith("script")]
    elif name.endswith("csv"):
        assert not any(cell.startswith(("=", "+", "@")) for line in text.splitlines() for cell in line.split(","))
    else:  # Markdown breaks references by spaces without width
        assert all(line.isprintable() for line in (text.replace("\u200b", "") if name.endswith("md") else text).split("\n"))


def strict(text: str) -> object:
    """``text`` as JSON without NaN and Infinity, which JSON does not have."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)
