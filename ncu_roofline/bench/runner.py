"""The benchmark program as a child process that takes jobs: it prints JSON lines, we read them with a deadline."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from ncu_roofline.facts import load_spec
from ncu_roofline.facts.fields import capability

_QUICK_CALL = 60.0
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
    """The program ``ncu-roofline-bench`` at ``path``."""

    path: Path

    def variants(self) -> tuple[Variant, ...]:
        """All variants it was built with.  Raises RunnerFailed."""
        known = (10 * major + minor for major, minor in (a.compute_capability for a in load_spec().architectures))
        rows = self._ask(["list", "--capabilities", ",".join(map(str, known))])
        try:
            return tuple(_variant(row) for row in rows)
        except (KeyError, TypeError, ValueError) as error:
            raise RunnerFailed(f"its list of ceilings can't be read ({error})") from error

    def devices(self) -> list[dict[str, Any]]:
        """What it says about each device, without a context on any; one it can't use has "unusable".  Raises RunnerFailed."""
        return self._ask(["devices"])

    def _ask(self, words: list[str]) -> list[dict[str, Any]]:
        process = _Process(self.path, words)
        try:
            return list(iter(lambda: process.line(_QUICK_CALL), None))
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

        Raises RunnerFailed, also where the program ends before its last line or says nothing for ``timeout`` seconds.
        """
        patience = timeout if self._process else timeout + self._start
        process = self._process or _Process(self._runner.path, ["serve", "--device", str(self._device)])
        self._process = None  # until this job has ended well, nobody knows in what state it is
        alive = False
        try:
            process.send(job.line)
            while (line := process.line(patience)) is not None:
                patience = timeout
                if line.get("done"):
                    launch.facts = {key: value for key, value in line.items() if key != "done"}
                    alive = True
                    return
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
    """A running program; its output is read by threads, so that waiting for a line can end."""

    def __init__(self, path: Path, words: list[str]) -> None:
        try:
            self._process = subprocess.Popen(
                [str(path), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as error:
            raise RunnerFailed(f"it can't be started ({error.strerror or error})") from error
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._complaints: list[bytes] = []
        self._readers = [
            _reader(self._process.stdout, self._lines),
            _keeper(self._process.stderr, self._complaints),
        ]

    def send(self, line: str) -> None:
        """Give it a line of input; one that has died will tell when it is read."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def line(self, timeout: float) -> dict[str, Any] | None:
        """The next object it prints, None at its end.  Raises RunnerFailed for silence, nonsense, an error and a bad end."""
        while True:
            try:
                text = self._lines.get(timeout=timeout)
            except queue.Empty:
                raise RunnerFailed(f"{HANGS} {timeout:g} s") from None
            if text is None:
                self._check_end(timeout)
                return None
            if text.strip():
                return _parsed(text)

    def _check_end(self, timeout: float) -> None:
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise RunnerFailed("it does not end") from None
        if code:
            self._readers[1].join(1.0)
            raise RunnerFailed(_death(code, self._complaints))

    def end(self) -> None:
        """Kill it if it runs, and give back what it held."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for reader in self._readers:
            reader.join(2.0)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


def _reader(stream: IO[bytes], lines: queue.Queue[bytes | None]) -> threading.Thread:
    def read() -> None:
        with suppress(OSError, ValueError):
            for line in stream:
                lines.put(line)
        lines.put(None)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread


def _keeper(stream: IO[bytes], kept: list[bytes]) -> threading.Thread:
    def read() -> None:
        with suppress(OSError, ValueError):
            for line in stream:
                kept.append(line)
                del kept[:-20]

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise RunnerFailed(f"it printed no JSON: {line.decode('utf-8', 'replace').strip()[:80]!r}")
    if "error" in value:
        reason = str(value["error"]).strip().rstrip(".") or "it failed without a reason"
        raise RunnerFailed(reason) if value.get("fatal") else _JobFailed(reason)
    return value


def _death(code: int, complaints: list[bytes]) -> str:
    last = next((text for line in reversed(complaints) if (text := line.decode("utf-8", "replace").strip())), "")
    how = f"it was killed by signal {-code}" if code < 0 else f"it ended with code {code}"
    return f"{how} ({last[:200]})" if last else how


def _variant(row: Mapping[str, Any]) -> Variant:
    capabilities = row.get("capabilities") or []
    if not isinstance(capabilities, list) or row["unit"] not in ("B/s", "FLOP/s", "OP/s", "s"):
        raise ValueError(f"row of {row['ceiling']}")
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
    seconds, work, megahertz, begin, end = (_number(line.get(key)) for key in ("seconds", "work", "sm_mhz", "begin", "end"))
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


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        return None
    return float(value)
