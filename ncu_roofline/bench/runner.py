"""The benchmark program as a child process that takes jobs: it prints JSON lines, we read them with a deadline."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.records import number
from ncu_roofline.base.texts import shorten
from ncu_roofline.bench.device import Device, parse_device
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import capability
from ncu_roofline.formats.ceilings import CPU, GPU

TOLD = 200
"""How many characters of a text of the program are told."""
_QUICK_CALL = 60.0
_GRACE = 2.0  # s for a program that was killed, or that has closed its output
# Numbers beyond are no measurements, and their quotients and sums no numbers.
_LARGEST = 1e30
SLOW_START = 20.0
"""How much longer the first line of a fresh process may take (s): on nodes with many GPUs a context takes that long."""
HANGS = "it said nothing for"


class RunnerFailed(Exception):  # noqa: N818 - it is caught and told as a ceiling's reason, users never see the class
    """The program refused, crashed, hung or spoke nonsense; the text is one sentence without full stop.

    Where it is not ``fatal`` only a job failed, and the process goes on.
    """

    def __init__(self, text: str, fatal: bool = True) -> None:
        super().__init__(text)
        self.fatal = fatal


class Variant(NamedTuple):
    """One way to measure a ceiling, as the program lists it; ``capabilities`` empty: on any GPU."""

    ceiling: str
    name: str
    unit: str
    capabilities: tuple[str, ...]
    reason: str

    def on(self, capability_text: str) -> bool:
        """Whether the row is about GPUs of this capability."""
        return not self.capabilities or capability_text in self.capabilities


class Trial(NamedTuple):
    """One trial: s, work (operations, bytes or launches), SM clock in Hz (None: not measured), results right (None: not told).

    ``begin`` and ``end`` of the timed work by the host's monotonic clock (s).
    """

    seconds: float
    work: float
    sm_clock: float | None
    checksum_ok: bool | None
    begin: float
    end: float


class Job(NamedTuple):
    """What to run; times in seconds, ``pause`` before each trial."""

    ceiling: str
    variant: str
    trials: int
    min_time: float
    data: str = "random"
    seed: int = 1
    pause: float = 0.0


@dataclass(frozen=True)
class Runner:
    """The program at ``path`` that measures a GPU, or the CPU (``kind``)."""

    path: Path
    kind: str = GPU

    def variants(self) -> tuple[Variant, ...]:
        """All variants it was built with, at least one.  Raises RooflineError."""
        known = (10 * major + minor for major, minor in (a.compute_capability for a in load_spec().architectures))
        found = []
        try:
            for row in self._ask("list", "--capabilities", ",".join(map(str, known))):
                capabilities = tuple(row.get("capabilities") or ())
                if row["unit"] not in ("B/s", "FLOP/s", "OP/s", "s"):
                    raise ValueError(f"row of {row['ceiling']}")
                for text in capabilities:
                    capability(text)
                names = str(row["ceiling"]), str(row["variant"])
                found.append(Variant(*names, row["unit"], capabilities, str(row.get("reason") or "")))
        except RunnerFailed as error:
            raise self._broken(str(error)) from error
        except (KeyError, TypeError, ValueError) as error:
            raise self._broken(f"its list of ceilings can't be read ({shorten(str(error), TOLD)})") from error
        if not found:
            raise self._broken("its list of ceilings is empty")
        return tuple(found)

    def devices(self) -> tuple[Device, ...]:
        """The GPUs that it sees, without a context on any, at least one; or the CPU.

        Raises RooflineError with what to do where there is none.
        """
        on_cpu = self.kind == CPU
        try:
            rows = self._ask("devices")
            if found := tuple(parse_device(row) for row in rows if "unusable" not in row):
                return found
            reason = shorten(str(rows[0]["unusable"]), TOLD) if rows else "there is none"
        except RunnerFailed as error:
            reason = str(error)
        except (ValueError, TypeError) as error:
            what = "the CPU" if on_cpu else "a GPU"
            raise self._broken(f"it describes {what} wrongly ({shorten(str(error), TOLD)})") from error
        if on_cpu:
            raise RooflineError("Cannot measure on", "this CPU", reason, f"See what `{self.path} devices` says.")
        advice = "Check that `nvidia-smi` works here, its compute mode, its MIG instances, and CUDA_VISIBLE_DEVICES"
        if "insufficient" in reason.lower():
            advice = "Install an NVIDIA driver as new as the CUDA toolkit"
        raise RooflineError("Cannot measure on", "a GPU", reason, f"{advice}; `ncu-roofline bench theory` needs no GPU.")

    def _broken(self, reason: str) -> RooflineError:
        next_step = "Build it again with `ncu-roofline bench build --force`."
        if self.kind == CPU:
            next_step = "Remove it, so that the next run builds it again, or name another with --runner."
        return RooflineError("Cannot use", self.path, reason, next_step)

    def _ask(self, *words: str) -> list[dict[str, Any]]:
        process, deadline = _Process(self.path, words), time.monotonic() + _QUICK_CALL
        try:
            return list(iter(lambda: process.line(deadline - time.monotonic()), None))
        finally:
            process.end()


class Session:
    """One context on one GPU: a process that takes job after job; one that died is started anew for the next job.

    The first line of a fresh process may take ``start`` s longer than others.
    """

    def __init__(self, runner: Runner, device: int, start: float = SLOW_START) -> None:
        self._runner, self._device, self._start = runner, device, start
        self._process: _Process | None = None

    def run(
        self, job: Job, timeout: float = 60.0, enough: Callable[[Sequence[Trial]], bool] | None = None
    ) -> tuple[list[Trial], dict[str, Any]]:
        """The trials of a job, and what its last line says: grid, block and what else there is.

        ``enough`` is asked after each trial, and ends the job: the trial that was begun meanwhile is left out.
        Raises RunnerFailed, also where the program ends before its last line or says nothing for ``timeout`` seconds.
        """
        patience = timeout if self._process else timeout + self._start
        process = self._process or _Process(self._runner.path, ("serve", "--device", str(self._device)))
        self._process = None  # until this job has ended well, nobody knows in what state it is
        trials: list[Trial] = []
        stopped = False
        try:
            words = f"--ceiling {job.ceiling} --variant {job.variant} --trials {job.trials} --data {job.data} --seed {job.seed}"
            process.send(f"{words} --min-time-ms {job.min_time * 1e3:g} --pause-ms {job.pause * 1e3:g}")
            while (line := process.line(patience)) is not None:
                patience = timeout
                if line.pop("done", False):
                    self._process = process
                    return trials, line
                if "trial" in line and not stopped:
                    trials.append(_trial(line))
                    stopped = enough is not None and enough(trials)
                    if stopped:
                        process.send("stop")
            raise RunnerFailed("it ended before its last trial")
        except RunnerFailed as error:
            self._process = None if error.fatal else process
            raise
        finally:
            if self._process is None:
                process.end()

    def renew(self) -> None:
        """Give up the context: the next job gets a fresh one."""
        if self._process is not None:
            self._process.end()
            self._process = None


def _trial(line: Mapping[str, Any]) -> Trial:
    found = [number(line.get(key)) for key in ("seconds", "work", "sm_mhz", "begin", "end")]
    seconds, work, megahertz, begin, end = (each if 1 / _LARGEST < each < _LARGEST else None for each in found)
    if seconds is None or work is None:
        raise RunnerFailed("a trial has no time or no work")
    if begin is None or end is None or end < begin:
        raise RunnerFailed("a trial does not say when it was")
    checksum, clock = line.get("checksum_ok"), megahertz * 1e6 if megahertz else None
    return Trial(seconds, work, clock, checksum if isinstance(checksum, bool) else None, begin, end)


class _Process:
    """A running program in a process group of its own; threads read its output, so that waiting for a line can end."""

    def __init__(self, path: Path, words: tuple[str, ...]) -> None:
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen([str(path), *words], stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
        except OSError as error:
            raise RunnerFailed(f"it can't be started ({error.strerror or error})") from error
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._complaints: deque[bytes] = deque(maxlen=20)

        def read(stream: IO[bytes], take: Callable[[bytes], None]) -> None:
            with stream:
                for line in filter(bytes.strip, stream):
                    take(line)
            take(b"")  # its end

        reads = ((self._process.stdout, self._lines.put), (self._process.stderr, self._complaints.append))
        self._readers = [threading.Thread(target=read, args=one, daemon=True) for one in reads]
        for reader in self._readers:
            reader.start()

    def send(self, line: str) -> None:
        """Give it a line of input; one that has died will tell when it is read."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def line(self, timeout: float) -> dict[str, Any] | None:
        """The next object it prints, None at its end.  Raises RunnerFailed for silence, nonsense, an error and a bad end."""
        seconds = max(timeout, 0.0)
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            raise RunnerFailed(f"{HANGS} {seconds:.3g} s") from None
        if not line:
            with suppress(subprocess.TimeoutExpired):  # it has closed its output, and may go on
                self._process.wait(_GRACE)
            if not (code := self._process.returncode):
                return None
            self._readers[1].join(_GRACE)
            last = next(filter(None, reversed(self._complaints)), b"").decode("utf-8", "replace").strip()
            how = f"it was killed by signal {-code}" if code < 0 else f"it ended with code {code}"
            raise RunnerFailed(f"{how} ({shorten(last, TOLD)})" if last else how)
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise RunnerFailed(f"it printed no JSON: {line.decode('utf-8', 'replace').strip()[:80]!r}")
        if "error" in value:
            reason = shorten(str(value["error"]).strip().rstrip("."), TOLD) or "it failed without a reason"
            raise RunnerFailed(reason, fatal=bool(value.get("fatal")))
        return value

    def end(self) -> None:
        """Kill it and what it started, and give back what it held."""
        with suppress(OSError):  # it has ended meanwhile
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        with suppress(subprocess.TimeoutExpired):  # one that hangs in its driver can't be killed
            self._process.wait(_GRACE)
        for reader in self._readers:
            reader.join(_GRACE)
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
