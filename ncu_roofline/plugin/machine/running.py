"""Running ncu: what the application writes is passed on as it comes, what ncu says is kept, and whatever ends us ends both."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ncu_roofline.base.errors import Terminated
from ncu_roofline.base.temporary import temporary_folder
from ncu_roofline.plugin.machine.machine import Machine

_TAIL_SECONDS = 0.2
_END_SECONDS = 5.0
"""How long ncu may take to end when asked: it gives the clocks of the GPU back."""
_LOOK_SECONDS = 0.02
_LAST_SECONDS = 2.0
"""How long output is waited for after ncu's end; what the application left running may hold the outputs open."""
_OUT, _ERR = 1, 2
_SAID = (b"==ERROR==", b"==WARNING==")
_MOST_LINES, _LONGEST = 200, 4096


@dataclass(frozen=True)
class Run:
    """How it went: the exit code of ncu, what it said in its log and beside it, and whether the user ended it."""

    code: int
    log: str
    interrupted: bool = False


def run(machine: Machine, words: Sequence[str], say: Callable[[str], None]) -> Run:
    """Run ncu with the application's input left alone; what ncu itself says goes line by line to ``say``.

    Some failures ncu tells on standard output and error instead of in its log, so these pass through here.  Ctrl-C is for ncu
    and the application to answer; a second one, and any other exception, ends both.  Raises OSError where ncu can't
    be started, RooflineError where there is no place for its log.
    """
    with temporary_folder() as folder:
        log = folder / "ncu.log"
        with _passed_on() as (streams, said):
            process = subprocess.Popen(
                [words[0], "--log-file", str(log), *words[1:]], env=dict(machine.environ), stdout=streams[0], stderr=streams[1]
            )
            tail = _Tail(log, say)
            try:
                interrupted = _waited(process, tail)
            except BaseException:
                end(process)
                raise
            finally:
                tail.read(whole=True)
        return Run(process.returncode, "\n".join([tail.text, *said]), interrupted)


def _waited(process: subprocess.Popen[bytes], tail: _Tail) -> bool:
    """Whether it was interrupted before its end."""
    try:
        _wait(process, tail)
    except Terminated:
        raise
    except KeyboardInterrupt:
        if not _in_foreground():
            process.send_signal(signal.SIGINT)
        _wait(process, tail)
        return True
    return False


def _wait(process: subprocess.Popen[bytes], tail: _Tail) -> None:
    while process.poll() is None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_TAIL_SECONDS)
        tail.read()


def _in_foreground() -> bool:
    """Whether Ctrl-C in a terminal reaches all that we started as well; else it came as a signal to this process only."""
    if os.name != "posix":
        return True
    try:
        with open("/dev/tty", "rb") as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started: they are asked first, and killed if that takes long."""
    tree = descendants(process.pid)
    process.terminate()
    for pid in tree:
        _send(pid, signal.SIGTERM)
    try:
        _gone(process, tree)
    finally:
        for pid in tree & _parents().keys():
            _send(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        process.kill()
        _gone(process, tree)


def _gone(process: subprocess.Popen[bytes], tree: set[int]) -> None:
    """Wait until they are, but not for long."""
    deadline = time.monotonic() + _END_SECONDS
    while time.monotonic() < deadline and (process.poll() is None or not tree.isdisjoint(_parents())):
        time.sleep(_LOOK_SECONDS)


def descendants(pid: int) -> set[int]:
    """The processes that a process started, and those that they started; where the system does not tell (no /proc), none."""
    parents = _parents()
    found: set[int] = set()
    while new := {child for child, parent in parents.items() if parent in found | {pid}} - found:
        found |= new
    return found


def _parents() -> dict[int, int]:
    """The parent of each process that has not ended."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            state, parent, *_ = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if state not in "ZX":
                found[int(path.parent.name)] = int(parent)
    return found


def _send(pid: int, number: int) -> None:
    with suppress(OSError):  # it has ended meanwhile
        os.kill(pid, number)


@contextmanager
def _passed_on() -> Iterator[tuple[tuple[int | None, int | None], list[str]]]:
    """What a child takes for standard output and error, and the lines of ncu's own among what it writes there."""
    said: list[str] = []
    if sys.stdout is not None:
        sys.stdout.flush()
    with ExitStack() as stack:
        out = stack.enter_context(_channel(_OUT, said))
        err = out if _same(_OUT, _ERR) else stack.enter_context(_channel(_ERR, said))
        yield (out, err), said


def _same(one: int, other: int) -> bool:
    try:
        return os.path.sameopenfile(one, other)
    except OSError:
        return False


@contextmanager
def _channel(target: int, said: list[str]) -> Iterator[int | None]:
    """A terminal if ``target`` is one, else a pipe, whose content goes to ``target``; None where that is closed."""
    try:
        source, given = _terminal(target) if os.isatty(target) else os.pipe()
        os.fstat(target)
    except OSError:
        yield None
        return
    thread = threading.Thread(target=_pass_on, args=(source, target, said), daemon=True)
    thread.start()
    try:
        yield given
    finally:
        os.close(given)
        thread.join(_LAST_SECONDS)


def _terminal(target: int) -> tuple[int, int]:
    """A terminal of the size of ``target`` that leaves everything as it is: programs write lines at once, with colours."""
    try:
        import fcntl
        import pty
        import termios
    except ImportError:
        return os.pipe()
    source, given = pty.openpty()
    attributes = termios.tcgetattr(given)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(given, termios.TCSANOW, attributes)
    with suppress(OSError):
        fcntl.ioctl(given, termios.TIOCSWINSZ, fcntl.ioctl(target, termios.TIOCGWINSZ, bytes(8)))
    return source, given


def _pass_on(source: int, target: int, said: list[str]) -> None:
    rest = b""
    with suppress(OSError):  # how a terminal tells its end
        while data := os.read(source, 65536):
            _write(target, data)
            *lines, rest = (rest + data).split(b"\n")
            said += [_text(line) for line in lines if line.startswith(_SAID)][: _MOST_LINES - len(said)]
            rest = rest[:_LONGEST]
    if rest.startswith(_SAID):
        said.append(_text(rest))
    os.close(source)


def _write(target: int, data: bytes) -> None:
    """All of it; what nobody takes any more is lost, and not the application with it."""
    with suppress(OSError):
        while data:
            with suppress(BlockingIOError):
                data = data[os.write(target, data) :]
                continue
            time.sleep(0.01)


def _text(line: bytes) -> str:
    return line[:_LONGEST].decode("utf-8", errors="replace").rstrip("\r")


class _Tail:
    """Follows a growing file."""

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        self._path, self._say = path, say
        self._place, self._rest = 0, ""
        self.text = ""

    def read(self, *, whole: bool = False) -> None:
        """Say the lines that were added; with ``whole`` also one without an end."""
        try:
            with self._path.open("rb") as stream:
                stream.seek(self._place)
                data = stream.read()
        except OSError:
            data = b""
        self._place += len(data)
        added = data.decode("utf-8", errors="replace")
        self.text += added
        *lines, self._rest = f"{self._rest}{added}".split("\n")
        for line in [*lines, self._rest] if whole else lines:
            if line.strip():
                self._say(line.rstrip("\r"))
