"""A command run inside this process, and what must hold of every run on every report, whatever is in it.

An outcome is "ok" or "explained"; everything else is a finding, named by its class.
"""

from __future__ import annotations

import contextlib
import csv
import faulthandler
import functools
import gc
import io
import json
import os
import re
import shlex
import signal
import sys
import tempfile
import time
import traceback
import unicodedata
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from ncu_roofline.cli import main

TOO_LONG = 20.0
"""Seconds of processor time after which a run on a small report is stopped; ordinary ones take 0.03 to 2."""
TOO_MUCH = 600_000
"""kB by which the process may grow in one run; ordinary ones stay below 100 MB."""
_ASLEEP = 8  # times as long on the clock of the wall: other processes run, too
OK, EXPLAINED = "ok", "explained"
WRONG, TRACEBACK, HANG, GREEDY = "silently wrong", "traceback", "hang", "too much memory"
LEAK, HALF, UNEXPLAINED, REACHES = "leak", "half-written", "unexplained", "reaches out"
FINDINGS = (WRONG, TRACEBACK, HANG, GREEDY, LEAK, HALF, UNEXPLAINED, REACHES)


# Command lines.
@dataclass(frozen=True)
class Line:
    """One command line, to be filled in."""

    text: str

    @property
    def command(self) -> str:
        return self.text.split()[0]

    @property
    def result(self) -> str:
        """The name of the file that it writes, "" for none."""
        return next(("result" + word.removeprefix("{o}") for word in self.text.split() if word.startswith("{o}")), "")

    @property
    def trips(self) -> bool:
        """Whether exit code 1 may stand beside a result: a threshold, nothing in common, or a report left out."""
        return self.command == "compare" or "--keep-going" in self.text

    def words(self, report: str, base: str) -> list[str]:
        return [word.replace("{r}", report).replace("{b}", base).replace("{o}", "result") for word in shlex.split(self.text)]


_TEXT = Path(__file__).with_name("commands.txt").read_text("utf-8").split("\n\n")[1:]
TABLE_LINES, QUICK_LINES, SLOW_LINES = (tuple(map(Line, part.splitlines()[1:])) for part in _TEXT)


# Running.
_EVENTS = ("socket.connect", "socket.bind", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn")
_STARTED = "nvdisasm"  # the one program that a report's code is given to, `source --no-disassembly` aside


class _Watch:
    """Python's audit events of the runs, and of nothing between them."""

    hooked = active = False
    allowed: tuple[str, ...] = ()
    seen: list[str]

    def start(self, folder: Path) -> None:
        """Note from now on what is written outside of ``folder`` and of the place for temporary files, and `_EVENTS`."""
        if not self.hooked:
            import matplotlib.font_manager  # which looks for fonts with a program, once, and keeps what it found

            sys.addaudithook(self.note)
            self.hooked, self.own = True, (os.path.realpath(tempfile.gettempdir()), matplotlib.get_cachedir(), os.devnull)
        self.seen, self.active, self.allowed = [], True, (os.path.realpath(folder), *self.own)

    def note(self, event: str, about: tuple[Any, ...]) -> None:
        if not self.active or (event == "subprocess.Popen" and Path(about[0]).stem == _STARTED):
            return
        if event in (*_EVENTS, "pickle.find_class"):
            self.seen.append(f"{event}: {about!r:.200}")
        elif event == "open" and isinstance(about[0], (str, bytes)) and about[2] & (os.O_WRONLY | os.O_RDWR):
            path = os.path.realpath(os.fsdecode(about[0]))
            if not path.startswith(self.allowed) and "__pycache__" not in path:
                self.seen.append(f"writes {path}")


_watch = _Watch()


class Stopped(BaseException):
    """A run took too long.  No Exception, so that nothing takes it for an error of the report."""


@dataclass(frozen=True)
class Outcome:
    """What a run left behind: ``seconds`` of processor time, and kB by which it made the process grow.

    ``reached`` has what no report may make a command do: the network, processes, pickles, files elsewhere.
    ``code`` is None where it ended in ``crash``, a traceback, or was stopped.
    """

    code: int | None
    out: bytes
    err: bytes
    seconds: float
    grown: int
    crash: str = ""
    stopped: bool = False
    files: dict[str, bytes] = field(default_factory=dict)
    reached: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        return self.err.decode("utf-8", "replace")


def run(words: list[str], folder: Path, keep: frozenset[str] = frozenset(), limit: float = TOO_LONG) -> Outcome:
    """``ncu-roofline WORDS`` in ``folder``.  Files that are there afterwards, but for ``keep``, go into the outcome."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    code, crash, stopped, where = None, "", False, os.getcwd()
    _watch.start(folder)
    before, started = _peak(), time.process_time()
    traced = mock.patch.dict(os.environ, {"NCU_ROOFLINE_TRACEBACK": "1"})  # with the sentence of a bug, where it was
    os.chdir(folder)
    try:
        with warnings.catch_warnings(), traced, _time_limit(limit):
            warnings.simplefilter("error", RuntimeWarning)  # of numpy: users are told in lines of their own
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main(words)
    except Stopped:
        stopped, crash = True, traceback.format_exc()
    except SystemExit as error:  # argparse
        code = int(error.code or 0)
    except BaseException:
        crash = traceback.format_exc()
        gc.collect()  # what the traceback held
    finally:
        os.chdir(where)
    _watch.active = False
    seconds, files = time.process_time() - started, {}
    for path in sorted(folder.iterdir()):
        if path.name not in keep:
            files[path.name] = path.read_bytes()
            path.unlink()
    for stream in (out, err):
        stream.flush()
    printed = [stream.buffer.getvalue() for stream in (out, err)]  # type: ignore[attr-defined]
    return Outcome(code, *printed, seconds, _peak() - before, crash, stopped, files, tuple(_watch.seen))


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise `Stopped` after so many seconds of processor time, or `_ASLEEP` times that where nothing is done.

    Where nothing can be raised, in a loop inside C, the process ends in the end and says where it was.
    """

    def stop(*_: object) -> None:
        raise Stopped

    timers = {}
    if hasattr(signal, "setitimer"):  # not on Windows
        timers = {signal.SIGPROF: (signal.ITIMER_PROF, seconds), signal.SIGALRM: (signal.ITIMER_REAL, _ASLEEP * seconds)}
    before = {number: signal.signal(number, stop) for number in timers}
    faulthandler.dump_traceback_later(2 * _ASLEEP * seconds, exit=True, file=sys.__stderr__ or sys.stderr)
    try:
        for timer in timers.values():
            signal.setitimer(*timer)
        yield
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])
        faulthandler.cancel_dump_traceback_later()


def _peak() -> int:
    """The most memory that the process ever had, in kB; 0 where the system does not say."""
    with contextlib.suppress(ImportError):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)
    return 0


# Judging.
# By unit: the most that a number can be on one GPU, for one launch or all launches of a report; the least is 0.
BOUNDS = {
    "second": 1e9,
    "hertz": 1e11,
    **dict.fromkeys(("flop/s", "op/s", "byte/s", "inst/s", "txn/s"), 1e18),
    **dict.fromkeys(("flop", "op", "inst", "txn", "byte", "flop/byte", "inst/txn", "ratio"), 1e24),
}
_SIGNED = re.compile("change|saved|score|gain|delta")  # may be negative
ABOVE = "above its roof"
"""What the notes of a row say that has a share above 1."""
_SENTENCE = re.compile(r"ncu-roofline: Cannot [\w -]+ \S.*: \S.*[^.]\. \S.*[.?]")
# A bug that is caught, and told, is a bug: here no package is missing, and there is memory.
_BUG = re.compile(r"Traceback \(most recent|itself failed|memory ran out|package can't be loaded")
_BAD = ("Cc", "Cf", "Cs", "Zl", "Zp")
_ENDS = {"png": b"IEND\xaeB`\x82", "pdf": b"%%EOF", "html": b"</html>", "svg": b"</svg>", "parquet": b"PAR1"}


class Finding(NamedTuple):
    """What is wrong with a run, if anything."""

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
    for what, data in (("standard output", outcome.out), ("standard error", outcome.err), *outcome.files.items()):
        if problem := leaked(what, data, line):
            return Finding(LEAK, f"{what}: {problem}")
    if files := set(outcome.files) - {line.result}:
        return Finding(HALF, f"left {sorted(files)}")
    if not outcome.code or (line.trips and outcome.code == 1 and (outcome.out or outcome.files)):
        found = _done(line, outcome)
        return Finding(EXPLAINED, "") if outcome.code and found.kind == OK else found
    if outcome.out or outcome.files:
        return Finding(HALF, f"exit code {outcome.code}, and still a result")
    errors = [each for each in outcome.said.splitlines() if each.startswith("ncu-roofline: Cannot ")]
    several = "--keep-going" in line.text  # each report that is left out has its own
    if outcome.code not in (1, 2) or not errors or (errors[1:] and not several) or not all(map(_SENTENCE.fullmatch, errors)):
        return Finding(UNEXPLAINED, f"exit code {outcome.code}: {outcome.said[:500]}")
    return Finding(EXPLAINED, errors[0])


def _done(line: Line, outcome: Outcome) -> Finding:
    if line.result and line.result not in outcome.files and line.command != "compare":
        return Finding(HALF, f"exit code 0, but no {line.result}")
    for name, data in (("standard output", outcome.out), *outcome.files.items()):
        kind = name.rpartition(".")[2] if name != "standard output" else "json" if "--json" in line.text else ""
        if problem := incomplete(kind, data):
            return Finding(HALF, f"{name}: {problem}")
        if kind == "json" and (problem := impossible(json.loads(data))):
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
    if what.endswith(".md") and raw == "\u200b":  # Markdown breaks references by spaces without width
        return leaked(what, text.replace(raw, "").encode(), line)
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
        csv.field_size_limit(10**9)
        cells = (cell for row in csv.reader(io.StringIO(text)) for cell in row)
        return next((f"the cell {cell[:60]!r}" for cell in cells if cell[:1] in "=+@\t\r" and cell), "")
    return ""


@functools.cache
def _library() -> str:
    """The drawing library inside pages, which has control characters of its own."""
    from ncu_roofline.rendering.page import plotly_js

    return plotly_js()


class _Page(HTMLParser):
    """Elements that load or do something."""

    found = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = {name for name, value in attributes if name.startswith("on") or (value or "").startswith("javascript:")}
        if tag in ("iframe", "object", "embed", "base", "img") or named:
            self.found = f"the active element <{tag} {' '.join(sorted(named))}>"


def _active(text: str) -> str:
    page = _Page()
    page.feed(text)
    return page.found or ("" if "Content-Security-Policy" in text else "no Content-Security-Policy")


def incomplete(kind: str, data: bytes) -> str:
    """Why a result is none: its end lacks, or it does not parse; "" for nothing."""
    if kind in _ENDS and not data.rstrip().endswith(_ENDS[kind]):
        return "its end is missing"
    try:
        if kind == "json":
            json.loads(data.decode(), parse_constant=int)  # which raises for what JSON has not
        if kind == "svg":
            ElementTree.fromstring(data)
        if kind == "csv":
            widths = {len(row) for row in csv.reader(io.StringIO(data.decode()))}
            return f"rows of {sorted(widths)} cells" if len(widths) > 1 or not data.endswith(b"\n") else ""
    except (ValueError, ElementTree.ParseError) as error:
        return f"{error}"
    return ""


def impossible(found: Any) -> str:
    """A number of some tables that no GPU could have made, or a share above 100 % of which nothing is said; "" for nothing."""
    if not isinstance(found, dict) or not isinstance(units := found.get("units"), dict):
        return ""
    rows = [(name, row) for name, table in found.items() if isinstance(table, list) for row in table if isinstance(row, dict)]
    for name, row in rows:
        for column, value in row.items():
            most = BOUNDS.get(units.get(column, ""))
            if most is not None and isinstance(value, (int, float)) and not _SIGNED.search(column) and not 0 <= value <= most:
                return f"{name}: {column} is {value} {units[column]}"
    for row in found.get("points", ()):
        above = [column for column in ("fraction", "fraction_theoretical") if (row.get(column) or 0) > 1 + 1e-9]
        if above and ABOVE not in row["notes"]:
            return f"{above[0]} of {row['precision']} at {row['level']} is {row[above[0]]:.3g}, and no note says why"
    return ""
