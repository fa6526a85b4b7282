"""A machine with GPUs inside the test: the benchmark program plays a scenario, NVML has answers, tests move the clock.

A scenario: "devices"; "error", what all but `list` fail with; "rows" of the list; and per ceiling "rate" (work per second),
"clock" (MHz), "noise" (share), "variants" (name -> share of the rate), "rested" (how much higher clock and rate are after
pauses) and "calls", what happens at its first, second, ... run (the last goes on), with any of "mode" (crash, hang, garbage,
error, fatal, short, wrong), "text", "host" and "late" (the host's time over the GPU's, of the first `late` trials or of all),
"scale", "clock", "noise", "drift" (clocks of the first trials), "outliers" (so many trials take twice as long), "launch" (what
else the last line says).
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ncu_roofline.bench.campaign import Campaign, Candidate
from ncu_roofline.bench.catalogue import CeilingKind
from ncu_roofline.bench.device import Device, parse_device
from ncu_roofline.bench.measuring import FULL, Settings, Timing
from ncu_roofline.bench.runner import HANGS, Runner, RunnerFailed, Session
from ncu_roofline.bench.telemetry import Nvml, NvmlError, Reading, Telemetry
from ncu_roofline.formats.ceilings import GPU

HERE = Path(__file__).resolve().parent
UNITS = {"dram": "B/s", "l3": "B/s", "l2": "B/s", "l1": "B/s", "smem": "B/s", "host": "B/s", "launch": "s"}


def read_toml(name: str) -> Any:
    return import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads((HERE / name).read_text(encoding="utf-8"))


def some(names: Iterable[str], first: tuple[str, ...]) -> list[Any]:
    """All names as parameters, but for the first ones for the exhaustive run."""
    return [pytest.param(name, marks=() if name in first else pytest.mark.exhaustive) for name in names]


MACHINES: dict[str, Any] = read_toml("machines.toml")
RATES: dict[str, float] = MACHINES["rates"]
H100_LIST = {name: tuple(one.rstrip("*") for one in variants) for name, variants in MACHINES["h100"].items()}


def facts(name: str, /, **changes: Any) -> dict[str, Any]:
    """What the runner says of a device of `machines.toml`."""
    found = dict(MACHINES["devices"][name])
    return {**(facts(found.pop("like")) if "like" in found else {}), **found, **changes}


H200, SECOND, MIG, EPYC = map(facts, ("H200", "SECOND", "MIG", "EPYC"))


def device(told: Mapping[str, Any] = H200, index: int = 0, **changes: Any) -> Device:
    return parse_device({"index": index, **told, **changes})


def kind(ceiling: str) -> CeilingKind:
    """A ceiling with the unit that the runner would give it."""
    unit = "OP/s" if ceiling.partition(".")[2].startswith(("int", "mad")) else "FLOP/s"
    return CeilingKind(ceiling, UNITS.get(ceiling.partition(".")[0], unit))


def scenario(ceilings: Mapping[str, Mapping[str, Any]] = {}, devices: Sequence[Mapping[str, Any]] = (H200,)) -> dict[str, Any]:
    """A machine with these GPUs that has all of RATES, changed by what ``ceilings`` says."""
    known: dict[str, dict[str, Any]] = {name: {"rate": rate} for name, rate in RATES.items()}
    for name, change in ceilings.items():
        known.setdefault(name, {"rate": 1e12}).update(change)
    told = [(name, variant, [], "") for name, one in known.items() for variant in one.get("variants", ["best"])]
    told += [("tensor.int8.tcgen05", "best", ["10.0"], ""), ("tensor.fp8.mma", "best", ["8.9", "12.0"], "")]
    told += [("tensor.fp8.mma", "best", ["9.0"], "emulated")]
    keys = ("ceiling", "variant", "capabilities", "reason")
    rows = [{**dict(zip(keys, one, strict=True)), "unit": kind(one[0]).unit} for one in told]
    return {"devices": devices, "rows": rows, "ceilings": known}


def candidate(ceiling: str, *variants: str) -> Candidate:
    return Candidate(kind(ceiling), variants or ("best",))


class Program:
    """The benchmark program, played: what starts in place of processes (the fixture ``program`` puts it there).

    Time only passes while it works: a fresh context takes ``start`` s, each job ``set_up`` s and its trials, a hang all of the
    patience.
    """

    def __init__(self) -> None:
        self.play(scenario())
        self.timing = Timing(lambda: self.now, lambda _seconds: None)

    def play(self, content: Mapping[str, Any], start: float = 0.0, set_up: float = 0.0) -> None:
        """From now on, as if nothing had run."""
        self.content, self.start, self.set_up = content, start, set_up
        self.runs: list[dict[str, str]] = []
        self.now, self.contexts, self.granted = 1.0, 0, list[float]()

    def started(self, _path: Path, words: tuple[str, ...]) -> Process:
        path = Path("scenario.json")  # of a session of a user
        if path.is_file() and (text := path.read_text(encoding="utf-8")) != self.content.get("text"):
            told = json.loads(text)
            names = [facts(one) if isinstance(one, str) else one for one in told.pop("devices", ["H200"])]
            whole = {key: told.pop(key) for key in ("error", "rows") if key in told}
            self.play({**scenario(told, names), **whole, "text": text})
        return Process(self, words)

    def campaign(self, telemetry: Telemetry, settings: Settings, budget: float = 1e9, kind: str = GPU) -> Campaign:
        """The driver's work with it, ``budget`` in s from now."""
        source = Session(Runner(Path("program")), 0)
        return Campaign(source, telemetry, settings, self.timing, self.now + budget, kind)

    def trials(self, words: Mapping[str, str], number: int, call: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The lines of one run, as the clock goes on; ``number`` counts the runs of this ceiling from 0."""
        one, seconds, pause = (
            self.content["ceilings"][words["ceiling"]],
            *(float(words[f"{w}-ms"]) / 1e3 for w in ("min-time", "pause")),
        )
        rate = one["rate"] * one.get("variants", {}).get(words["variant"], 1.0) * call.get("scale", 1.0)
        clock, noise = call.get("clock", one.get("clock", 1980)), call.get("noise", one.get("noise", 0.0005))
        if pause:
            clock, rate = clock * one.get("rested", 1.0), rate * one.get("rested", 1.0)
        dice = random.Random(f"{words['ceiling']} {words['variant']} {number} {words['seed']}")
        drift, count = call.get("drift", []), int(words["trials"])
        for trial in range(count):
            mhz = drift[trial] if trial < len(drift) else clock
            speed = rate * (mhz / clock if mhz and clock else 1.0) * (1 + noise * dice.uniform(-1, 1))
            speed /= 2 if trial >= count - call.get("outliers", 0) else 1
            begin = self.now + pause
            self.now = begin + seconds * (call.get("host", 1.0) if trial < call.get("late", count) else 1.0)
            told = {"trial": trial, "seconds": seconds, "work": speed * seconds, "sm_mhz": mhz}
            yield {**told, "checksum_ok": call.get("mode") != "wrong", "begin": begin, "end": self.now}


class Process:
    """One process of a played program; what it says is a line, a failure, or None at its end."""

    def __init__(self, program: Program, words: tuple[str, ...]) -> None:
        self.program, self.stopped, self.lines = program, False, iter(self._answers(words[0]))
        if words[0] == "serve":
            program.contexts += 1
            program.now += program.start

    def _answers(self, command: str) -> Iterator[Any]:
        content = self.program.content
        if command == "list":
            yield from content["rows"]
        elif content.get("error"):
            yield RunnerFailed(content["error"])
        elif command == "devices":
            yield from ({"index": index, **told} for index, told in enumerate(content["devices"]))

    def send(self, line: str) -> None:
        self.stopped = line == "stop"
        if not self.stopped:
            words = line.split()
            self.lines = self._play({words[i][2:]: words[i + 1] for i in range(0, len(words), 2)})

    def _play(self, words: dict[str, str]) -> Iterator[Any]:
        program = self.program
        number = sum(other["ceiling"] == words["ceiling"] for other in program.runs)
        program.runs.append({**words, "context": str(program.contexts)})
        program.now += program.set_up
        calls = program.content["ceilings"][words["ceiling"]].get("calls", [{}])
        call = calls[min(number, len(calls) - 1)]
        mode, text = call.get("mode"), call.get("text")
        failures = {
            "crash": text or "it ended with code 3 (CUDA error: an illegal memory access was encountered)",
            "fatal": text or "an illegal memory access was encountered",
            "garbage": "it printed no JSON: 'Segmentation fault (core dumped)'",
            "error": text or "out of memory",
            "hang": HANGS,
        }
        if mode in failures:
            yield RunnerFailed(failures[mode], fatal=mode != "error")
        for line in program.trials(words, number, call):
            yield line
            if self.stopped:
                program.now += float(words["pause-ms"]) / 1e3 + line["seconds"]  # the trial that has begun meanwhile
                break
        yield None if mode == "short" else {"done": True, "grid": 528, **call.get("launch", {})}

    def line(self, timeout: float) -> dict[str, Any] | None:
        self.program.granted.append(timeout)
        found = next(self.lines, None)
        if isinstance(found, RunnerFailed):
            if str(found) != HANGS:
                raise found
            self.program.now += timeout
            raise RunnerFailed(f"{HANGS} {timeout:.3g} s")
        return found

    def end(self) -> None:
        self.lines = iter(())


FAST = replace(FULL, warm_up=0.1)


@dataclass
class FakeTelemetry(Telemetry):
    """A driver's view whose ``reasons`` tests set."""

    reasons: int | Callable[[], int] = 0
    reason: str = ""
    reads: int = 0
    available = True

    def read(self, thorough: bool = True) -> Reading:  # noqa: ARG002
        self.reads += 1
        told = self.reasons() if callable(self.reasons) else self.reasons
        return {"memory_clock": 3.201e9, "power": 600.0, "temperature": 55.0, "reasons": told}


class FakeNvml(Nvml):
    """Stands in for Nvml; an answer that is an exception is raised, what has no answer is not in this driver's library."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers = dict(answers)
        self.asked: list[tuple[Any, ...]] = []

    def ask(self, name: str, *inputs: Any) -> Any:
        self.asked.append((name.removeprefix("nvml"), *inputs))
        answer = self.answers.get(name.removeprefix("nvml"), NvmlError(f"{name}: this driver's NVML does not have it"))
        if isinstance(answer, Exception):
            raise answer
        if name.endswith("FieldValues"):
            values = [answer.get(str(number)) for number in inputs[1]]
            return [SimpleNamespace(nvmlReturn=one is None, value=SimpleNamespace(uiVal=one)) for one in values]
        if name.endswith("RunningProcesses"):
            return answer and [SimpleNamespace(pid=one) for one in answer]
        return answer[str(inputs[-1])] if isinstance(answer, dict) else answer


def fake_nvml(**answers: Any) -> FakeNvml:
    return FakeNvml({**MACHINES["nvml"], **answers})
