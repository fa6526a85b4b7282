"""Running a command inside this process: what it printed and wrote, how long it took, and whether it had to be stopped."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import io
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

from ncu_roofline.cli import main

TOO_LONG = 20.0
"""Seconds of processor time after which a run on a small report is stopped; ordinary ones take 0.03 to 2."""
_ASLEEP = 8  # times as long on the clock of the wall: other processes run, too
TOO_MUCH = 600_000
"""kB by which the process may grow in one run; ordinary ones stay below 100 MB."""


_EVENTS = ("socket.connect", "socket.bind", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn")
_PICKLES = ("pickle.find_class",)
_STARTED = "nvdisasm"  # the one program that a report's code is given to, `source --no-disassembly` aside


class _Watch:
    """Python's audit events of the runs, and of nothing between them."""

    def __init__(self) -> None:
        self._active = self._hooked = False
        self._allowed: tuple[str, ...] = ()
        self._seen: list[str] = []

    def start(self, folder: Path) -> None:
        """Note from now on what is written outside of ``folder`` and of the place for temporary files, and `_EVENTS`."""
        if not self._hooked:
            import matplotlib.font_manager  # which looks for fonts with a program, once, and keeps what it found

            sys.addaudithook(self._note)
            self._hooked = True
            self._own = (os.path.realpath(tempfile.gettempdir()), matplotlib.get_cachedir(), os.devnull)
        self._allowed = (os.path.realpath(folder), *self._own)
        self._seen, self._active = [], True

    def stop(self) -> tuple[str, ...]:
        """What was noted."""
        self._active = False
        return tuple(self._seen)

    def _note(self, event: str, about: tuple[Any, ...]) -> None:
        if not self._active:
            return
        if event == "subprocess.Popen" and Path(about[0]).stem == _STARTED:
            return
        if event in _EVENTS or event in _PICKLES:
            self._seen.append(f"{event}: {about!r:.200}")
        elif event == "open" and isinstance(about[0], (str, bytes)) and about[2] & (os.O_WRONLY | os.O_RDWR):
            path = os.path.realpath(os.fsdecode(about[0]))
            if not path.startswith(self._allowed) and "__pycache__" not in path:
                self._seen.append(f"writes {path}")


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
        """Standard error as text."""
        return self.err.decode("utf-8", "replace")


def run(words: list[str], folder: Path, keep: frozenset[str], limit: float = TOO_LONG) -> Outcome:
    """``ncu-roofline WORDS`` in ``folder``.  Files that are there afterwards, but for ``keep``, go into the outcome."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    code: int | None = None
    _watch.start(folder)
    crash, stopped, before, started = "", False, _peak(), time.process_time()
    traced = mock.patch.dict(os.environ, {"NCU_ROOFLINE_TRACEBACK": "1"})  # with the sentence of a bug, where it was
    with contextlib.chdir(folder) if sys.version_info >= (3, 11) else _inside(folder), warnings.catch_warnings(), traced:
        warnings.simplefilter("error", RuntimeWarning)  # numpy, about what is no number: users are told in lines of their own
        try:
            with _time_limit(limit), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main(words)
        except Stopped:
            stopped, crash = True, traceback.format_exc()
        except SystemExit as error:  # argparse
            code = int(error.code or 0)
        except BaseException:
            crash = traceback.format_exc()
    seconds, reached = time.process_time() - started, _watch.stop()
    files = {}
    for path in sorted(folder.iterdir()):
        if path.name not in keep:
            files[path.name] = path.read_bytes()
            path.unlink()
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue())  # type: ignore[attr-defined]
    if crash:
        gc.collect()  # what the traceback held
    return Outcome(code, texts[0], texts[1], seconds, _peak() - before, crash, stopped, files, reached)


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise `Stopped` after so many seconds of processor time, or `_ASLEEP` times that where nothing is done.

    Where nothing can be raised, in a loop inside C, the process ends in the end and says where it was.
    """

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise Stopped

    clocks = {"SIGPROF": "ITIMER_PROF", "SIGALRM": "ITIMER_REAL"} if hasattr(signal, "setitimer") else {}  # not on Windows
    timers = {getattr(signal, name): getattr(signal, timer) for name, timer in clocks.items()}
    before = {number: signal.signal(number, stop) for number in timers}
    faulthandler.dump_traceback_later(2 * _ASLEEP * seconds, exit=True, file=sys.__stderr__ or sys.stderr)
    try:
        for timer in timers.values():
            signal.setitimer(timer, seconds * (_ASLEEP if timer == signal.ITIMER_REAL else 1))
        yield
    finally:
        for number, timer in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])
        faulthandler.cancel_dump_traceback_later()


def _peak() -> int:
    """The most memory that the process ever had, in kB; 0 where the system does not say."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)
