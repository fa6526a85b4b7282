"""What holds of every run on every report, whatever is in it.

An outcome is "ok" or "explained"; everything else is a finding, named by its class.
"""

from __future__ import annotations

import csv
import functools
import io
import json
import math
import re
import unicodedata
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any, NamedTuple

from tests.attack.commands import Line
from tests.attack.running import TOO_MUCH, Outcome

OK, EXPLAINED = "ok", "explained"
WRONG, TRACEBACK, HANG, GREEDY = "silently wrong", "traceback", "hang", "too much memory"
LEAK, HALF, UNEXPLAINED, REACHES = "leak", "half-written", "unexplained", "reaches out"
FINDINGS = (WRONG, TRACEBACK, HANG, GREEDY, LEAK, HALF, UNEXPLAINED, REACHES)

# By unit: the least and the most that a number can be on one GPU, for one launch or all launches of a report.
_SPEED = (0.0, 1e18)
BOUNDS = {
    "second": (0.0, 1e9), "hertz": (0.0, 1e11), "flop/s": _SPEED, "op/s": _SPEED, "byte/s": _SPEED, "inst/s": _SPEED,
    "txn/s": _SPEED, "flop": (0.0, 1e24), "op": (0.0, 1e24), "inst": (0.0, 1e24), "txn": (0.0, 1e24), "byte": (0.0, 1e24),
    "flop/byte": (0.0, 1e24), "inst/txn": (0.0, 1e24), "ratio": (0.0, 1e24),
}  # fmt: skip
# Changes and differences may be negative, and ratios of two reports have no bound.
_SIGNED = re.compile("change|saved|score|gain|delta")
_SHARES = ("fraction", "fraction_theoretical")
_ROUNDING = 1e-9
ABOVE = "above its roof"
"""What the notes of a row say that has a share above 1."""
_SENTENCE = re.compile(r"ncu-roofline: Cannot [\w -]+ \S.*: \S.*[^.]\. \S.*[.?]")


# A bug that is caught, and told, is a bug: here no package is missing, and there is memory.
_BUG = re.compile(r"Traceback \(most recent|itself failed|memory ran out|package can't be loaded")


class Finding(NamedTuple):
    """What is wrong with a run."""

    kind: str
    why: str


def judge(line: Line, outcome: Outcome, result: str) -> Finding:
    """The class of a run: OK, EXPLAINED, or one of FINDINGS.  ``result`` is the name of the file that it may have written."""
    if outcome.stopped:
        return Finding(HANG, f"stopped after {outcome.seconds:.0f} s\n{outcome.crash}")
    if outcome.crash:
        return Finding(TRACEBACK, outcome.crash)
    if outcome.reached:
        return Finding(REACHES, "; ".join(outcome.reached))
    if found := _BUG.search(outcome.said):
        return Finding(TRACEBACK, outcome.said[found.start() - 300 :] if found.start() > 300 else outcome.said)
    if outcome.grown > TOO_MUCH:
        return Finding(GREEDY, f"{outcome.grown / 1e3:.0f} MB more")
    for what, data in (("standard output", outcome.out), ("standard error", outcome.err), *outcome.files.items()):
        problem = leaked(what, data, line)
        if problem:
            return Finding(LEAK, f"{what}: {problem}")
    if files := set(outcome.files) - {result}:
        return Finding(HALF, f"left {sorted(files)}")
    if outcome.code:
        return _refused(line, outcome, result)
    return _done(line, outcome, result)


def _refused(line: Line, outcome: Outcome, result: str) -> Finding:
    lines = outcome.said.splitlines()
    if line.trips and outcome.code == 1 and (outcome.out or outcome.files):
        found = _done(line, outcome, result)
        return Finding(EXPLAINED, "") if found.kind == OK else found
    if outcome.out or outcome.files:
        return Finding(HALF, f"exit code {outcome.code}, and still a result")
    errors = [each for each in lines if each.startswith("ncu-roofline: Cannot ")]
    several = "--keep-going" in line.text  # each report that is left out has its own
    if (
        outcome.code not in (1, 2)
        or not errors
        or (len(errors) > 1 and not several)
        or not all(map(_SENTENCE.fullmatch, errors))
    ):
        return Finding(UNEXPLAINED, f"exit code {outcome.code}: {outcome.said[:500]}")
    return Finding(EXPLAINED, errors[0])


def _done(line: Line, outcome: Outcome, result: str) -> Finding:
    if line.writes and result not in outcome.files and line.command != "compare":
        return Finding(HALF, f"exit code 0, but no {result}")
    for name, data in (("standard output", outcome.out), *outcome.files.items()):
        kind = name.rpartition(".")[2] if name != "standard output" else "json" if "--json" in line.text else ""
        problem = incomplete(kind, data)
        if problem:
            return Finding(HALF, f"{name}: {problem}")
        if kind == "json":
            problem = impossible(json.loads(data))
            if problem:
                return Finding(WRONG, f"{name}: {problem}")
    return Finding(OK, "")


def leaked(what: str, data: bytes, line: Line) -> str:
    """What a terminal, browser or spreadsheet would take for more than text; "" for nothing."""
    if what.endswith((".png", ".pdf", ".parquet", ".ncu-rep", ".ncu-repz")):
        return ""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"no UTF-8 at {error.start}"
    if what.endswith(".html"):
        text = text.replace(_library(), "")
    raw = "" if text.isprintable() else next((c for c in text if unicodedata.category(c) in _BAD and c not in "\n\r\t"), "")
    if raw:
        return f"the character {raw!r}: {text[max(text.index(raw) - 60, 0) : text.index(raw) + 20]!r}"
    if (what == "standard error" or (what == "standard output" and "csv" not in line.text)) and set("\r\t") & set(text):
        return "a tab or carriage return"
    if what.endswith(".html"):
        return _active(text)
    if what.endswith(".svg"):
        markup = "".join(re.findall("<[^>]*>", text))  # its texts are text, whatever they say
        return next(iter(re.findall(r"<(?:script|foreignObject)\b|\bon\w+=|javascript:", markup)), "")
    if what.endswith(".csv"):
        return next((f"the cell {cell[:60]!r}" for cell in _cells(text) if cell[:1] in "=+@\t\r" and cell), "")
    return ""


_BAD = ("Cc", "Cf", "Cs")


@functools.cache
def _library() -> str:
    """The drawing library inside pages, which has control characters of its own."""
    from ncu_roofline.rendering.page import plotly_js

    return plotly_js()


def _cells(text: str) -> Iterator[str]:
    csv.field_size_limit(10**9)
    for row in csv.reader(io.StringIO(text)):
        yield from row


class _Tags(HTMLParser):
    """The scripts of a page that run, and elements that load or do something."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """See HTMLParser."""
        named = {name for name, value in attributes if name.startswith("on") or (value or "").startswith("javascript:")}
        if tag in ("iframe", "object", "embed", "base", "img") or named:
            self.found.append(f"<{tag} {' '.join(sorted(named))}>")


def _active(text: str) -> str:
    tags = _Tags()
    tags.feed(text)
    if tags.found:
        return f"active elements: {tags.found[:3]}"
    return "" if "Content-Security-Policy" in text else "no Content-Security-Policy"


_ENDS = {"png": b"IEND\xaeB`\x82", "pdf": b"%%EOF", "html": b"</html>", "svg": b"</svg>", "parquet": b"PAR1"}


def incomplete(kind: str, data: bytes) -> str:
    """Why a result is none: its end lacks, or it does not parse; "" for nothing."""
    if kind in _ENDS and not data.rstrip().endswith(_ENDS[kind]):
        return "its end is missing"
    if kind == "json":
        try:
            strict(data.decode())
        except ValueError as error:
            return str(error)
    if kind == "csv":
        if not data.endswith(b"\n"):
            return "its end is missing"
        widths = {len(row) for row in csv.reader(io.StringIO(data.decode()))}
        return f"rows of {sorted(widths)} cells" if len(widths) > 1 else ""
    if kind in ("xml", "svg"):
        try:
            ElementTree.fromstring(data)
        except ElementTree.ParseError as error:
            return str(error)
    return ""


def strict(text: str) -> Any:
    """JSON, without NaN and Infinity, which JSON does not have.  Raises ValueError."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


def impossible(found: Any) -> str:
    """A number of some tables that no GPU could have made, or a share above 100 % of which nothing is said; "" for nothing."""
    if not isinstance(found, dict) or not isinstance(units := found.get("units"), dict):
        return ""
    for name, table in found.items():
        for row in table if isinstance(table, list) else ():
            for column, value in row.items() if isinstance(row, dict) else ():
                bounds = BOUNDS.get(units.get(column, ""))
                if bounds is None or not isinstance(value, (int, float)) or _SIGNED.search(column):
                    continue
                if not bounds[0] <= value <= bounds[1] or not math.isfinite(value):
                    return f"{name}: {column} is {value} {units[column]}"
    return _unexplained_share(found)


def _unexplained_share(found: dict[str, Any]) -> str:
    for row in found.get("points", ()):
        above = [column for column in _SHARES if (row.get(column) or 0) > 1 + _ROUNDING]
        if above and ABOVE not in row["notes"]:
            return f"{above[0]} of {row['precision']} at {row['level']} is {row[above[0]]:.3g}, and no note says why"
    return ""
