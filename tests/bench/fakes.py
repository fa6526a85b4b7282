"""A machine with GPUs inside the test: the benchmark program plays a scenario, NVML has answers, tests move the clock.

A scenario: "devices"; "error", what all but `list` fail with; "rows" of the list; and per ceiling "rate" (work per second),
"clock" (MHz), "noise" (share), "variants" (name -> share of the rate), "rested" (how much higher clock and rate are after
pauses), "longer" (trials than asked for) and "calls", what happens at its first, second, ... run (the last goes on), with any
of "mode" (crash, hang, garbage, error, fatal, short, wrong), "text", "host" and "late" (the host's time over the GPU's, of the
first `late` trials or of all), "scale", "clock", "noise", "drift" (clocks of the first trials without pauses), "outliers" (so
many trials take twice as long), "launch" (what else the last line says).
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ncu_roofline.bench.campaign import Campaign
from ncu_roofline.bench.device import Device, parse_device
from ncu_roofline.bench.measuring import FULL, Settings
from ncu_roofline.bench.runner import HANGS, Runner, RunnerFailed, Session
from ncu_roofline.bench.telemetry import Reading, Telemetry, Watch, Window, observe
from ncu_roofline.formats.ceilings import GPU, Ceiling

HERE = Path(__file__).resolve().parent
UNITS = {"dram": "B/s", "l3": "B/s", "l2": "B/s", "l1": "B/s", "smem": "B/s", "host": "B/s", "launch": "s"}


def read_toml(name: str) -> Any:
    return import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads((HERE / name).read_text(encoding="utf-8"))


def some(names: Iterable[str], first: tuple[str, ...]) -> list[Any]:
    """All names as parameters, but for the first ones for the exhaustive run."""
    return [pytest.param(name, marks=() if name in first else pytest.mark.exhaustive) for name in names]


MACHINES: dict[str, Any] = read_toml("machines.toml")
RATES: dict[str, float] = MACHINES["rates"]
H100_LIST: dict[str, tuple[str, ...]] = {name: (variant,) for name, variant in MACHINES["runner"].items()}
for _line in (HERE / "table.txt").read_text(encoding="utf-8").splitlines():
    _name, _variant, _since, _until, *_emulated = _line.split()
    if int(_since) <= 90 <= (int(_until) or 90) and not {"9.0", "9.x"} & {*_emulated}:
        H100_LIST[_name] = (*H100_LIST.get(_name, ()), _variant)


def facts(name: str, /, **changes: Any) -> dict[str, Any]:
    found = dict(MACHINES["devices"][name])
    return {**(facts(found.pop("like")) if "like" in found else {}), **found, **changes}


H200, SECOND, EPYC = map(facts, ("H200", "SECOND", "EPYC"))


def device(told: Mapping[str, Any] = H200, index: int = 0, **changes: Any) -> Device:
    return parse_device({"index": index, **told, **changes})


def kind(ceiling: str) -> Ceiling:
    unit = "OP/s" if ceiling.partition(".")[2].startswith(("int", "mad")) else "FLOP/s"
    return Ceiling(ceiling, unit=UNITS.get(ceiling.partition(".")[0], unit))


def scenario(ceilings: Mapping[str, Mapping[str, Any]] = {}, devices: Sequence[Mapping[str, Any]] = (H200,)) -> dict[str, Any]:
    """A machine with these GPUs that has all of RATES, changed by what ``ceilings`` says."""
    known: dict[str, dict[str, Any]] = {name: {"rate": rate} for name, rate in RATES.items()}
    for name, change in ceilings.items():
        known.setdefault(name, {"rate": 1e12}).update(change)
    told = [(name, variant, [], "") for name, one in known.items() for variant in one.get("variants", ["best"])]
    keys = ("ceiling", "variant", "capabilities", "reason")
    rows = [{**dict(zip(keys, one, strict=True)), "unit": kind(one[0]).unit} for one in (*told, *MACHINES["elsewhere"]["rows"])]
    return {"devices": devices, "rows": rows, "ceilings": known}


class Program:
    """The benchmark program, played: what starts in place of processes (the fixture ``program`` puts it there).

    Time only passes while it works: a fresh context takes ``start`` s, each job ``set_up`` s and its trials, a hang all of the
    patience.
    """

    def __init__(self) -> None:
        self.play(scenario())

    def play(self, content: Mapping[str, Any], start: float = 0.0, set_up: float = 0.0) -> None:
        self.content, self.start, self.set_up = content, start, set_up
        self.runs: list[dict[str, str]] = []
        self.now, self.contexts, self.granted = 1.0, 0, list[float]()

    def started(self, _path: Path, words: tuple[str, ...]) -> Program:
        """A process of it, one after the other; what it says is a line, a failure, or None at its end."""
        path = Path("scenario.json")  # of a session of a user
        if path.is_file() and (text := path.read_text(encoding="utf-8")) != self.content.get("text"):
            told = json.loads(text)
            names = [facts(one) if isinstance(one, str) else one for one in told.pop("devices", ["H200"])]
            whole = {key: told.pop(key) for key in ("error", "rows") if key in told}
            self.play({**scenario(told, names), **whole, "text": text})
        devices = ({"index": index, **told} for index, told in enumerate(self.content.get("devices", ())))
        answers = {"list": self.content.get("rows"), "devices": devices}.get(words[0], ())
        failed = words[0] != "list" and self.content.get("error")
        self.lines, serves = iter([RunnerFailed(self.content["error"])] if failed else answers), words[0] == "serve"
        self.contexts, self.now = self.contexts + serves, self.now + self.start * serves
        return self

    def send(self, line: str) -> None:
        self.stopped = line == "stop"
        if not self.stopped:
            words = line.split()
            self.lines = self._job({words[i][2:]: words[i + 1] for i in range(0, len(words), 2)})

    def _job(self, words: dict[str, str]) -> Iterator[Any]:
        number = sum(other["ceiling"] == words["ceiling"] for other in self.runs)
        self.runs.append(words)
        self.now += self.set_up
        calls = self.content["ceilings"][words["ceiling"]].get("calls", [{}])
        call = calls[min(number, len(calls) - 1)]
        mode = call.get("mode")
        if mode in MACHINES["failures"]:
            yield RunnerFailed(call.get("text", MACHINES["failures"][mode]), fatal=mode != "error")
        for line in self.trials(words, number, call):
            yield line
            if self.stopped:
                self.now += float(words["pause-ms"]) / 1e3 + line["seconds"]  # the trial that has begun meanwhile
                break
        yield None if mode == "short" else {"done": True, "grid": 528, **call.get("launch", {})}

    def line(self, timeout: float) -> dict[str, Any] | None:
        self.granted.append(timeout)
        found = next(self.lines, None)
        if isinstance(found, RunnerFailed):
            if str(found) != HANGS:
                raise found
            self.now += timeout
            raise RunnerFailed(f"{HANGS} {timeout:.3g} s")
        return found

    def end(self) -> None:
        self.lines = iter(())

    def clock(self) -> float:
        return self.now

    def campaign(self, telemetry: Telemetry, settings: Settings, budget: float = 1e9, kind: str = GPU) -> Campaign:
        """The driver's work with it, ``budget`` in s from now."""
        source = Session(Runner(Path("program")), 0)
        return Campaign(source, telemetry, settings, self.clock, self.now + budget, kind)

    def trials(self, words: Mapping[str, str], number: int, call: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The lines of one run, as the clock goes on; ``number`` counts the runs of this ceiling from 0."""
        one, told = self.content["ceilings"][words["ceiling"]], ("min-time-ms", "pause-ms")
        seconds, pause = (float(words[name]) / 1e3 * one.get("longer", 1.0) ** (name[0] == "m") for name in told)
        rate = one["rate"] * one.get("variants", {}).get(words["variant"], 1.0) * call.get("scale", 1.0)
        clock, noise = call.get("clock", one.get("clock", 1980)), call.get("noise", one.get("noise", 0.0005))
        if pause:
            clock, rate = clock * one.get("rested", 1.0), rate * one.get("rested", 1.0)
        dice = random.Random(f"{words['ceiling']} {words['variant']} {number} {words['seed']}")
        drift, count = [] if pause else call.get("drift", []), int(words["trials"])
        for trial in range(count):
            mhz = drift[trial] if trial < len(drift) else clock
            speed = rate * (mhz / clock if mhz and clock else 1.0) * (1 + noise * dice.uniform(-1, 1))
            speed /= 2 if trial >= count - call.get("outliers", 0) else 1
            begin = self.now + pause
            self.now = begin + seconds * (call.get("host", 1.0) if trial < call.get("late", count) else 1.0)
            told = {"trial": trial, "seconds": seconds, "work": speed * seconds, "sm_mhz": mhz}
            yield {**told, "checksum_ok": call.get("mode") != "wrong", "begin": begin, "end": self.now}


FAST = replace(FULL, warm_up=0.1)


@dataclass
class FakeTelemetry(Telemetry):
    """A driver's view whose ``reasons`` tests set."""

    reasons: int | Callable[[], int] = 0
    reason: str = ""
    available = True

    def read(self, thorough: bool = True) -> Reading:  # noqa: ARG002
        told = self.reasons() if callable(self.reasons) else self.reasons
        return {"memory_clock": 3.201e9, "power": 600.0, "temperature": 55.0, "reasons": told}


class Look(Watch):
    """Reads a played device once, after its trials: no thread, whose looks would come at any time of the play."""

    def __enter__(self) -> Watch:
        return self

    def seen_in(self, windows: Sequence[Window]) -> dict[str, Any]:
        return observe([{**self._telemetry.read(), "time": windows[-1][1]}] if self._telemetry.available else [], windows)


class FakeNvml(SimpleNamespace):
    """The package on an H200 but for some answers; what begins with "!" is refused; of processes 0 is this one."""

    NVMLError = OSError

    def __init__(self, **answers: Any) -> None:
        super().__init__(answers={"Init": None, **MACHINES["nvml"], **answers}, asked=list[tuple[Any, ...]]())

    def __getattr__(self, name: str) -> Any:
        if name.removeprefix("nvml") not in self.answers:
            raise AttributeError(name)
        return partial(self._answer, name.removeprefix("nvml"))

    def _answer(self, name: str, *inputs: Any) -> Any:
        self.asked.append((name, *inputs))
        answer = self.answers[name]
        if str(answer).startswith("!"):
            raise OSError(str(answer)[1:])
        if name.endswith("FieldValues"):
            values = [answer.get(str(number)) for number in inputs[1]]
            return [SimpleNamespace(nvmlReturn=one is None, value=SimpleNamespace(uiVal=one)) for one in values]
        if name.endswith("RunningProcesses"):
            return answer and [SimpleNamespace(pid=one or os.getpid()) for one in answer]
        return answer[str(inputs[-1])] if isinstance(answer, dict) else answer
