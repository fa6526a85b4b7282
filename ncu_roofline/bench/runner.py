"""The benchmark program as a child process that takes jobs: it prints JSON lines, we read them with a deadline.

Whatever it does, waiting for it ends and memory stays bounded: lines have a longest length, lists and jobs a largest number
of them, and what it started is killed with it.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from ncu_roofline.base.forms import number
from ncu_roofline.base.texts import shorten
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import capability
from ncu_roofline.formats.ceilings import GPU

TOLD = 200
"""How many characters of a text of the program are told, and how long a name may be."""
_QUICK_CALL = 60.0
_LONGEST_LINE = 1_000_000
_MOST_ROWS = 20_000
_MOST_TRIALS = 4  # times those that were asked for
_WAITING = 64  # lines that nobody has taken yet
# What is read after the program has ended: more only comes where something that it started, and that left its group, lives on.
_GRACE = 2.0
# Numbers beyond are no measurements, and their quotients and sums no numbers.
_LARGEST = 1e30
SLOW_START = 20.0
"""How much longer the first line of a fresh process may take (s): on nodes with many GPUs a context takes that long."""
HANGS = "it said nothing for"


class RunnerFailed(Exception):  # noqa: N818 - it is caught and told as a ceiling's reason, users never see the class
    """The program refused, crashed, hung or spoke nonsense; the text is one sentence without full stop."""


@dataclass(frozen=True)
class Variant:
    """One way to measure a ceiling, as the program lists it; ``capabilities`` empty: on any GPU."""

    ceiling: str
    name: str
    unit: str
    capabilities: tuple[str, ...]
    reason: str

    def on(self, capability_text: str) -> bool:
        """Whether the row is about GPUs of this capability."""
        return not self.capabilities or capability_text in self.capabilities


@dataclass(frozen=True)
class Trial:
    """One trial: s, work (operations, bytes or launches), SM clock in Hz (None: not measured), results right (None: not told).

    ``begin`` and ``end`` of the timed work by the host's monotonic clock (s).
    """

    seconds: float
    work: float
    sm_clock: float | None
    checksum_ok: bool | None
    begin: float
    end: float


@dataclass(frozen=True)
class Job:
    """What to run; times in seconds, ``pause`` before each trial."""

    ceiling: str
    variant: str
    trials: int
    min_time: float
    data: str = "random"
    seed: int = 1
    pause: float = 0.0

    @property
    def line(self) -> str:
        """As the program reads it."""
        words = ["--ceiling", self.ceiling, "--variant", self.variant, "--trials", str(self.trials)]
        words += ["--min-time-ms", f"{self.min_time * 1e3:g}", "--data", self.data, "--seed", str(self.seed)]
        return " ".join([*words, "--pause-ms", f"{self.pause * 1e3:g}"])


@dataclass
class Launch:
    """What the last line of a run says: grid, block and what else there is."""

    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Runner:
    """The program at ``path`` that measures a GPU, or the CPU (``kind``)."""

    path: Path
    kind: str = GPU

    def variants(self) -> tuple[Variant, ...]:
        """All variants it was built with.  Raises RunnerFailed."""
        known = (10 * major + minor for major, minor in (a.compute_capability for a in load_spec().architectures))
        rows = self._ask(["list", "--capabilities", ",".join(map(str, known))])
        try:
            return tuple(_variant(row) for row in rows)
        except (KeyError, TypeError, ValueError) as error:
            raise RunnerFailed(f"its list of ceilings can't be read ({shorten(str(error), TOLD)})") from error

    def devices(self) -> list[dict[str, Any]]:
        """What it says about each device, without a context on any; one it can't use has "unusable".  Raises RunnerFailed."""
        return self._ask(["devices"])

    def _ask(self, words: list[str]) -> list[dict[str, Any]]:
        process, deadline = _Process(self.path, words), time.monotonic() + _QUICK_CALL
        rows: list[dict[str, Any]] = []
        try:
            while (row := process.line(deadline - time.monotonic())) is not None:
                rows.append(row)
                if len(rows) > _MOST_ROWS:
                    raise RunnerFailed(f"its answer to `{words[0]}` has more than {_MOST_ROWS} lines")
            return rows
        finally:
            process.end()


class Session:
    """One context on one GPU: a process that takes job after job; one that died is started anew for the next job.

    The first line of a fresh process may take ``start`` s longer than others.
    """

    def __init__(self, runner: Runner, device: int, start: float = SLOW_START) -> None:
        self._runner, self._device, self._start = runner, device, start
        self._process: _Process | None = None

    def run(self, job: Job, launch: Launch, timeout: float = 60.0) -> Iterator[Trial]:
        """Trials as they are measured; ``launch`` is filled at the end.

        Raises RunnerFailed, also where the program ends before its last line, says nothing for ``timeout`` seconds or more
        than was asked for.
        """
        patience = timeout if self._process else timeout + self._start
        process = self._process or _Process(self._runner.path, ["serve", "--device", str(self._device)])
        self._process = None  # until this job has ended well, nobody knows in what state it is
        alive, lines = False, 0
        try:
            process.send(job.line)
            while (line := process.line(patience)) is not None:
                patience, lines = timeout, lines + 1
                if line.get("done"):
                    launch.facts = {key: value for key, value in line.items() if key != "done"}
                    alive = True
                    return
                if lines > _MOST_TRIALS * job.trials:
                    raise RunnerFailed(f"it printed more than {_MOST_TRIALS} times the trials that were asked for")
                if "trial" in line:
                    yield _trial(line)
            raise RunnerFailed("it ended before its last trial")
        except _JobFailed:
            alive = True
            raise
        finally:
            if alive:
                self._process = process
            else:
                process.end()

    def renew(self) -> None:
        """Give up the context: the next job gets a fresh one."""
        if self._process is not None:
            self._process.end()
            self._process = None


class _JobFailed(RunnerFailed):
    """A job failed and the process goes on."""


class _Process:
    """A running program in a process group of its own; threads read its output, so that waiting for a line can end."""

    def __init__(self, path: Path, words: list[str]) -> None:
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen([str(path), *words], stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
        except OSError as error:
            raise RunnerFailed(f"it can't be started ({error.strerror or error})") from error
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._lines: queue.Queue[bytes | None] = queue.Queue(_WAITING)
        self._complaints: list[bytes] = []
        self._over = threading.Event()
        self._readers = [
            _thread(self._hand_on, self._process.stdout),
            _thread(self._keep, self._process.stderr),
        ]
        self._watcher = _thread(self._watch, self._readers[0])

    def send(self, line: str) -> None:
        """Give it a line of input; one that has died will tell when it is read."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def line(self, timeout: float) -> dict[str, Any] | None:
        """The next object it prints, None at its end.  Raises RunnerFailed for silence, nonsense, an error and a bad end."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                text = self._lines.get(timeout=max(deadline - time.monotonic(), 0.0))
            except queue.Empty:
                raise RunnerFailed(f"{HANGS} {max(timeout, 0.0):.3g} s") from None
            if text is None:
                self._check_end()
                return None
            if text.strip():
                return _parsed(text)
            if time.monotonic() > deadline:
                raise RunnerFailed(f"{HANGS} {max(timeout, 0.0):.3g} s")

    def _check_end(self) -> None:
        if self._process.returncode:
            self._readers[1].join(_GRACE)
            raise RunnerFailed(_death(self._process.returncode, self._complaints))

    def end(self) -> None:
        """Kill it and what it started, and give back what it held."""
        self._over.set()
        if self._process.poll() is None:
            self._kill()
        self._watcher.join(2 * _GRACE)  # one that hangs in its driver can't be killed
        self._readers[1].join(_GRACE)
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()

    def _kill(self) -> None:
        with suppress(OSError):  # it has ended meanwhile, with all that it started
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()

    def _watch(self, reader: threading.Thread) -> None:
        """At its end: end what it started, which may hold its pipes open, and tell who waits for a line."""
        self._process.wait()
        self._kill()
        reader.join(_GRACE)
        self._hand(None)

    def _hand_on(self, stream: IO[bytes]) -> None:
        for line in _lines(stream):
            if not self._hand(line):
                return

    def _hand(self, line: bytes | None) -> bool:
        """Hand a line to who waits for it; whether anybody still does."""
        while not self._over.is_set():
            with suppress(queue.Full):
                self._lines.put(line, timeout=0.05)
                return True
        return False

    def _keep(self, stream: IO[bytes]) -> None:
        for line in _lines(stream):
            self._complaints.append(line[: 4 * TOLD])
            del self._complaints[:-20]


def _thread(work: Callable[..., None], of: object) -> threading.Thread:
    thread = threading.Thread(target=work, args=(of,), daemon=True)
    thread.start()
    return thread


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Lines of a stream as they come, those beyond the longest in pieces; closes it, which nobody else can while it is read."""
    rest = bytearray()
    with stream, suppress(OSError):
        while piece := os.read(stream.fileno(), 65536):
            rest += piece
            if b"\n" in piece:
                *whole, rest = rest.split(b"\n")
                yield from map(bytes, whole)
            if len(rest) > _LONGEST_LINE:
                yield bytes(rest)
                rest.clear()
        if rest:
            yield bytes(rest)


def _parsed(line: bytes) -> dict[str, Any]:
    if len(line) > _LONGEST_LINE:
        raise RunnerFailed(f"it printed a line of more than {_LONGEST_LINE / 1e6:g} MB")
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise RunnerFailed(f"it printed no JSON: {line.decode('utf-8', 'replace').strip()[:80]!r}")
    if "error" in value:
        reason = shorten(str(value["error"]).strip().rstrip("."), TOLD) or "it failed without a reason"
        raise RunnerFailed(reason) if value.get("fatal") else _JobFailed(reason)
    if not all(map(_plain, value.values())):
        raise RunnerFailed(f"it printed objects within objects: {line.decode('utf-8', 'replace').strip()[:80]!r}")
    return value


def _plain(value: object) -> bool:
    """Whether a value is a text, a number or a list of such."""
    return not any(isinstance(each, (dict, list)) for each in (value if isinstance(value, list) else [value]))


def _death(code: int, complaints: list[bytes]) -> str:
    last = next((text for line in reversed(complaints) if (text := line.decode("utf-8", "replace").strip())), "")
    how = f"it was killed by signal {-code}" if code < 0 else f"it ended with code {code}"
    return f"{how} ({shorten(last, TOLD)})" if last else how


def _variant(row: Mapping[str, Any]) -> Variant:
    capabilities = row.get("capabilities") or []
    if not isinstance(capabilities, list) or row["unit"] not in ("B/s", "FLOP/s", "OP/s", "s"):
        raise ValueError(f"row of {row['ceiling']}")
    if max(len(str(row["ceiling"])), len(str(row["variant"]))) > TOLD:
        raise ValueError(f"a name of more than {TOLD} characters")
    for text in capabilities:
        capability(str(text))
    return Variant(
        ceiling=str(row["ceiling"]),
        name=str(row["variant"]),
        unit=str(row["unit"]),
        capabilities=tuple(map(str, capabilities)),
        reason=str(row.get("reason") or ""),
    )


def _trial(line: Mapping[str, Any]) -> Trial:
    seconds, work, megahertz, begin, end = (_positive(line.get(key)) for key in ("seconds", "work", "sm_mhz", "begin", "end"))
    if not seconds or not work:
        raise RunnerFailed("a trial has no time or no work")
    if begin is None or end is None or end < begin:
        raise RunnerFailed("a trial does not say when it was")
    checksum = line.get("checksum_ok")
    return Trial(
        seconds=seconds,
        work=work,
        sm_clock=megahertz * 1e6 if megahertz else None,
        checksum_ok=checksum if isinstance(checksum, bool) else None,
        begin=begin,
        end=end,
    )


def _positive(value: object) -> float | None:
    found = number(value)
    return found if 1 / _LARGEST < found < _LARGEST else None
