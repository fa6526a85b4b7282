"""A command run inside this process, and what must hold of every run on every report, whatever is in it."""

from __future__ import annotations

import contextlib
import csv
import faulthandler
import functools
import gc
import io
import json
import math
import os
import re
import resource
import shlex
import signal
import sys
import tempfile
import time
import traceback
import unicodedata
import warnings
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from ncu_roofline.cli import main
from ncu_roofline.rendering.page import plotly_js
from tests.attack.reports import WRITTEN

TOO_LONG = 20.0  # seconds of processor time after which a run on a small report is stopped; ordinary ones take 0.03 to 2
TOO_MUCH = 600_000  # kB by which the process may grow in one run; ordinary ones stay below 100 MB
OK, EXPLAINED = "ok", "explained"
WRONG, TRACEBACK, HANG, GREEDY = "silently wrong", "traceback", "hang", "too much memory"
LEAK, HALF, UNEXPLAINED, REACHES = "leak", "half-written", "unexplained", "reaches out"
_BAD = ("Cc", "Cf", "Cs", "Zl", "Zp")
FINDINGS = (WRONG, TRACEBACK, HANG, GREEDY, LEAK, HALF, UNEXPLAINED, REACHES)


@dataclass(frozen=True)
class Line:
    """A command line; {r} in it is the attacked report, {b} the one it was made of, {o} a result."""

    text: str

    @property
    def result(self) -> str:
        """The name of the file that it writes, "" for none."""
        _, found, behind = self.text.partition("{o}")
        return found and "result" + behind.split(" ")[0]

    def words(self, report: str, base: str) -> list[str]:
        return [word.replace("{r}", report).replace("{b}", base).replace("{o}", "result") for word in shlex.split(self.text)]


_TEXT = Path(__file__).with_name("commands.txt").read_text("utf-8").split("\n\n")[1:]
TABLE_LINES, QUICK_LINES, SLOW_LINES = (tuple(map(Line, part.splitlines()[1:])) for part in _TEXT)

_EVENTS = ("socket.connect", "socket.bind", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn",
           "pickle.find_class")  # fmt: skip
_STARTED = "nvdisasm"  # the one program that a report's code is given to, `source --no-disassembly` aside
_reached, _allowed = list[str](), list[str]()  # what a run did that no report may make it do; where it may write, else nothing


@functools.cache
def _listen() -> tuple[str, ...]:
    """To Python's audit events from now on; where anything may write."""
    import matplotlib.font_manager  # which looks for fonts with a program, once, and keeps what it found

    sys.addaudithook(_note)
    return os.path.realpath(tempfile.gettempdir()), matplotlib.get_cachedir(), os.devnull


def _note(event: str, about: tuple[Any, ...]) -> None:
    if not _allowed or (event == "subprocess.Popen" and Path(about[0]).stem == _STARTED):
        return
    if event in _EVENTS:
        _reached.append(f"{event}: {about!r:.200}")
    elif event == "open" and isinstance(about[0], (str, bytes)) and about[2] & (os.O_WRONLY | os.O_RDWR):
        path = os.path.realpath(os.fsdecode(about[0]))
        if not path.startswith(tuple(_allowed)) and "__pycache__" not in path:
            _reached.append(f"writes {path}")


class Stopped(BaseException):
    """A run took too long.  No Exception, so that nothing takes it for an error of the report."""


def _stop(*_: object) -> None:
    raise Stopped


@dataclass(frozen=True)
class Outcome:
    """What a run left behind; ``code`` is None where it ended in ``crash``, a traceback, or was stopped."""

    code: int | None
    out: bytes
    err: bytes
    seconds: float  # of processor time
    grown: int  # kB by which the process grew
    crash: str
    stopped: bool
    files: dict[str, bytes]
    reached: tuple[str, ...]

    @property
    def said(self) -> str:
        return self.err.decode("utf-8", "replace")


def run(words: list[str], folder: Path, keep: frozenset[str] = frozenset(), limit: float = TOO_LONG) -> Outcome:
    """``ncu-roofline WORDS`` in ``folder``.  Files that are there afterwards, but for ``keep``, go into the outcome."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    code, crash, stopped, where = None, "", False, os.getcwd()
    _reached.clear()
    _allowed.extend((*_listen(), os.path.realpath(folder)))
    before, started, peak = signal.signal(signal.SIGPROF, _stop), time.process_time(), resource.getrusage(resource.RUSAGE_SELF)
    # Where nothing can be raised, asleep or in a loop inside C, the process ends in the end and says where it was.
    faulthandler.dump_traceback_later(16 * limit, exit=True, file=sys.__stderr__ or sys.stderr)
    traced = mock.patch.dict(os.environ, {"NCU_ROOFLINE_TRACEBACK": "1"})  # with the sentence of a bug, where it was
    os.chdir(folder)
    try:
        signal.setitimer(signal.ITIMER_PROF, limit)
        with warnings.catch_warnings(), traced, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            warnings.simplefilter("error", RuntimeWarning)  # of numpy: users are told in lines of their own
            code = main(words)
    except SystemExit as error:  # argparse
        code = int(error.code or 0)
    except BaseException as error:
        stopped, crash = isinstance(error, Stopped), traceback.format_exc()
        gc.collect()  # what the traceback held
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        faulthandler.cancel_dump_traceback_later()
        os.chdir(where)
        _allowed.clear()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak.ru_maxrss
    seconds, left = time.process_time() - started, [path for path in sorted(folder.iterdir()) if path.name not in keep]
    files = {path.name: path.read_bytes() for path in left}
    for path in left:
        path.unlink()
    for stream in (out, err):
        stream.flush()
    printed = [stream.buffer.getvalue() for stream in (out, err)]  # type: ignore[attr-defined]
    grown //= 1024 if sys.platform == "darwin" else 1
    return Outcome(code, *printed, seconds, grown, crash, stopped, files, tuple(_reached))


BOUNDS = WRITTEN["bounds"]  # by unit: the most that a number can be on one GPU, for all launches of a report; the least is 0
_LIBRARY = plotly_js()  # inside pages; it has control characters of its own
_ACTIVE = {"iframe", "object", "embed", "base", "img", "foreignobject", "handler"}
_SIGNED = re.compile("change|saved|score|gain|delta")  # may be negative
ABOVE = "above its roof"  # say the notes of a row that has a share above 1
_SENTENCE = re.compile(r"ncu-roofline: Cannot [\w -]+ \S.*: \S.*[^.]\. \S.*[.?]")
# A bug that is caught, and told, is a bug: here no package is missing, and there is memory.
_BUG = re.compile(r"Traceback \(most recent|itself failed|memory ran out|package can't be loaded")
_ENDS = {"png": b"IEND\xaeB`\x82", "pdf": b"%%EOF", "html": b"</html>", "svg": b"</svg>", "parquet": b"PAR1"}


class Finding(NamedTuple):
    kind: str
    why: str


def judge(line: Line, outcome: Outcome) -> Finding:
    """The class of a run: OK, EXPLAINED, or one of FINDINGS."""
    if outcome.stopped:
        return Finding(HANG, f"stopped after {outcome.seconds:.0f} s\n{outcome.crash}")
    if outcome.crash or _BUG.search(outcome.said):
        return Finding(TRACEBACK, outcome.crash or outcome.said)
    if outcome.reached:
        return Finding(REACHES, "; ".join(outcome.reached))
    if outcome.grown > TOO_MUCH:
        return Finding(GREEDY, f"{outcome.grown / 1e3:.0f} MB more")
    results = {"standard output": outcome.out, **outcome.files}
    for what, data in {"standard error": outcome.err, **results}.items():
        if problem := leaked(what, data, line):
            return Finding(LEAK, f"{what}: {problem}")
    if files := set(outcome.files) - {line.result}:
        return Finding(HALF, f"left {sorted(files)}")
    several, result = "--keep-going" in line.text, outcome.out or outcome.files
    # Beside a result there may be a threshold, nothing in common, or a report left out.
    if not outcome.code or (outcome.code == 1 and result and (several or line.text.startswith("compare"))):
        if line.result and not outcome.files and not line.text.startswith("compare"):
            return Finding(HALF, f"exit code 0, but no {line.result}")
        for what, data in results.items():
            kind = what.rpartition(".")[2] if what in outcome.files else "json" if "--json" in line.text else ""
            if problem := incomplete(kind, data):
                return Finding(HALF, f"{what}: {problem}")
            if kind == "json" and (problem := impossible(json.loads(data))):
                return Finding(WRONG, f"{what}: {problem}")
        return Finding(EXPLAINED if outcome.code else OK, "")
    if result:
        return Finding(HALF, f"exit code {outcome.code}, and still a result")
    errors = [each for each in outcome.said.splitlines() if each.startswith("ncu-roofline: Cannot ")]
    # Each report that is left out has its own.
    if outcome.code not in (1, 2) or not errors or (errors[1:] and not several) or not all(map(_SENTENCE.fullmatch, errors)):
        return Finding(UNEXPLAINED, f"exit code {outcome.code}: {outcome.said[:500]}")
    return Finding(EXPLAINED, errors[0])


def leaked(what: str, data: bytes, line: Line) -> str:
    """What a terminal, browser or spreadsheet would take for more than text; "" for nothing."""
    kind = what.rpartition(".")[2]
    if kind in ("png", "pdf", "parquet", "ncu-rep", "ncu-repz"):
        return ""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"no UTF-8 at {error.start}"
    if kind == "html":
        text = text.replace(_LIBRARY, "")
    fine = "\n\r\t\u200b" if kind == "md" else "\n\r\t"  # Markdown breaks references by spaces without width
    odd = set() if text.isprintable() else {c for c in set(text).difference(fine) if unicodedata.category(c) in _BAD}
    if odd:
        at = min(map(text.index, odd))
        return f"a character of {odd!r}: {text[max(at - 60, 0) : at + 20]!r}"
    if (what == "standard error" or (what == "standard output" and "csv" not in line.text)) and set("\r\t") & set(text):
        return "a tab or carriage return"
    if kind == "html" and "Content-Security-Policy" not in text:
        return "no Content-Security-Policy"
    if kind in ("html", "svg"):
        (page := _Page()).feed(text)
        return ", ".join(page.found & (_ACTIVE if kind == "html" else {*_ACTIVE, "script"}))
    if kind == "csv":
        before = csv.field_size_limit(10**9)
        cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
        csv.field_size_limit(before)
        return next((f"the cell {cell[:60]!r}" for cell in cells if cell.startswith(("=", "+", "@", "\t", "\r"))), "")
    return ""


class _Page(HTMLParser):
    """Its elements, and "handler" where an attribute does something."""

    found: frozenset[str] = frozenset()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        does = any(name.startswith("on") or (value or "").startswith("javascript:") for name, value in attributes)
        self.found |= {tag, "handler"} if does else {tag}


def incomplete(kind: str, data: bytes) -> str:
    """Why a result is none: its end lacks, or it does not parse; "" for nothing."""
    if not data.rstrip().endswith(_ENDS.get(kind, b"")) or (kind == "csv" and not data.endswith(b"\n")):
        return "its end is missing"
    try:
        if kind == "json":
            json.loads(data.decode(), parse_constant=int)  # which raises for what JSON has not
        if kind == "svg":
            ElementTree.fromstring(data)
    except (ValueError, ElementTree.ParseError) as error:
        return f"{error}"
    widths = {len(row) for row in csv.reader(io.StringIO(data.decode()))} if kind == "csv" else ()
    return f"rows of {sorted(widths)} cells" if len(widths) > 1 else ""


def impossible(found: Any) -> str:
    """A number of some tables that no GPU could have made, or a share above 100 % of which nothing is said; "" for nothing."""
    if not isinstance(found, dict) or not isinstance(units := found.get("units"), dict):
        return ""
    for name, table in found.items():
        for row in (row for row in (table if isinstance(table, list) else ()) if isinstance(row, dict)):
            for column, value in row.items():
                most = BOUNDS.get(units.get(column, ""), math.inf) if isinstance(value, (int, float)) else math.inf
                if most < math.inf and not _SIGNED.search(column) and not 0 <= value <= most:
                    return f"{name}: {column} is {value} {units[column]}"
    for row in found.get("points", ()):
        above = [column for column in ("fraction", "fraction_theoretical") if (row.get(column) or 0) > 1 + 1e-9]
        if above and ABOVE not in row["notes"]:
            return f"{above[0]} of {row['precision']} at {row['level']} is {row[above[0]]:.3g}, and no note says why"
    return ""
