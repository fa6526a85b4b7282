"""The benchmark program as a child process: it prints JSON lines, we read them with a deadline."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from ncu_roofline.facts import load_spec
from ncu_roofline.facts.fields import capability

_QUICK_CALL = 60.0
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
    """One trial: s, work (operations, bytes or launches), SM clock in Hz (None: not measured), when its line arrived."""

    seconds: float
    work: float
    sm_clock: float | None
    checksum_ok: bool | None
    arrived: float


@dataclass(frozen=True)
class Job:
    """What to run."""

    device: int
    ceiling: str
    variant: str
    trials: int
    min_time: float
    data: str = "random"
    seed: int = 1


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
        rows = list(self._lines(["list", "--capabilities", ",".join(map(str, known))], _QUICK_CALL))
        try:
            return tuple(_variant(row) for row in rows)
        except (KeyError, TypeError, ValueError) as error:
            raise RunnerFailed(f"its list of ceilings can't be read ({error})") from error

    def device(self, index: int) -> dict[str, Any]:
        """What it says about one device.  Raises RunnerFailed if there is none of this index."""
        lines = list(self._lines(["device", "--device", str(index)], _QUICK_CALL))
        if not lines:
            raise RunnerFailed("it said nothing about the device")
        return lines[-1]

    def run(self, job: Job, launch: Launch, timeout: float = 60.0) -> Iterator[Trial]:
        """Trials as they are measured; ``launch`` is filled at the end.

        Raises RunnerFailed, also where the last line is missing or ``timeout`` seconds pass without a line.
        """
        words = ["run", "--device", str(job.device), "--ceiling", job.ceiling, "--variant", job.variant]
        words += ["--trials", str(job.trials), "--min-time-ms", f"{job.min_time * 1e3:g}"]
        words += ["--data", job.data, "--seed", str(job.seed)]
        done = False
        for line in self._lines(words, timeout):
            if line.get("done"):
                launch.facts = {key: value for key, value in line.items() if key != "done"}
                done = True
            elif "trial" in line:
                yield _trial(line)
        if not done:
            raise RunnerFailed("it ended before its last trial")

    def _lines(self, words: list[str], timeout: float) -> Iterator[dict[str, Any]]:
        try:
            process = subprocess.Popen(
                [str(self.path), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as error:
            raise RunnerFailed(f"it can't be started ({error.strerror or error})") from error
        assert process.stdout is not None
        assert process.stderr is not None
        lines: queue.Queue[bytes | None] = queue.Queue()
        complaints: list[bytes] = []
        readers = [_reader(process.stdout, lines), _keeper(process.stderr, complaints)]
        try:
            yield from _parsed(lines, timeout)
            code = process.wait(timeout)
            if code:
                readers[1].join(1.0)
                raise RunnerFailed(_death(code, complaints))
        except subprocess.TimeoutExpired:
            raise RunnerFailed("it does not end") from None
        finally:
            _end(process, readers)


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


def _parsed(lines: queue.Queue[bytes | None], timeout: float) -> Iterator[dict[str, Any]]:
    while True:
        try:
            line = lines.get(timeout=timeout)
        except queue.Empty:
            raise RunnerFailed(f"{HANGS} {timeout:g} s") from None
        if line is None:
            return
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise RunnerFailed(f"it printed no JSON: {line.decode('utf-8', 'replace').strip()[:80]!r}")
        if "error" in value:
            raise RunnerFailed(str(value["error"]).strip().rstrip(".") or "it failed without a reason")
        yield value


def _death(code: int, complaints: list[bytes]) -> str:
    last = next((text for line in reversed(complaints) if (text := line.decode("utf-8", "replace").strip())), "")
    how = f"it was killed by signal {-code}" if code < 0 else f"it ended with code {code}"
    return f"{how} ({last[:200]})" if last else how


def _end(process: subprocess.Popen[bytes], readers: list[threading.Thread]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    for reader in readers:
        reader.join(2.0)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


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
    seconds, work, megahertz = (_number(line.get(key)) for key in ("seconds", "work", "sm_mhz"))
    if not seconds or not work:
        raise RunnerFailed("a trial has no time or no work")
    checksum = line.get("checksum_ok")
    return Trial(
        seconds=seconds,
        work=work,
        sm_clock=megahertz * 1e6 if megahertz else None,
        checksum_ok=checksum if isinstance(checksum, bool) else None,
        arrived=time.monotonic(),
    )


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        return None
    return float(value)
