"""Stand-ins for a machine with GPUs: scenarios for the fake runner, a fake NVML, a clock that tests move."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ncu_roofline.bench.catalogue import CeilingKind
from ncu_roofline.bench.device import Device, parse_device
from ncu_roofline.bench.measuring import Timing
from ncu_roofline.bench.runner import HANGS, SLOW_START, Job, RunnerFailed, Trial
from ncu_roofline.bench.telemetry import Nvml, NvmlError, Reading
from tests.bench import fake_runner

H200: dict[str, Any] = {
    "name": "NVIDIA H200",
    "uuid": "GPU-11111111-2222-3333-4444-555555555555",
    "pci_bus_id": "00000000:1B:00.0",
    "cc": "9.0",
    "sm_count": 132,
    "l2_bytes": 62914560,
    "smem_per_sm_bytes": 233472,
    "mem_total_bytes": 150754820096,
    "sm_clock_max_mhz": 1980,
    "mem_clock_max_mhz": 3201,
    "bus_bits": 6144,
    "driver": "13.0",
    "runtime": "13.0",
}
MIG: dict[str, Any] = {
    **H200,
    "name": "NVIDIA H200 MIG 1g.18gb",
    "uuid": "MIG-99999999-2222-3333-4444-555555555555",
    "sm_count": 16,
}

# Rates of an H200 at 1980 MHz that a good benchmark would find (shares of theory as published for such parts).
RATES = {
    "dram.read": 4.35e12,
    "l2.read": 9.8e12,
    "l1.read": 33.0e12,
    "fp64.fma": 33.0e12,
    "fp32.fma": 66.0e12,
    "tensor.fp16.mma": 680e12,
    "tensor.fp16.wgmma": 980e12,
    "launch.stream": 4e5,
}
UNITS = {"dram": "B/s", "l3": "B/s", "l2": "B/s", "l1": "B/s", "smem": "B/s", "host": "B/s", "launch": "s"}


def row(ceiling: str, variant: str = "best", capabilities: tuple[str, ...] = (), reason: str = "") -> dict[str, Any]:
    """A line of the runner's list."""
    return {
        "ceiling": ceiling,
        "variant": variant,
        "unit": kind(ceiling).unit,
        "capabilities": list(capabilities),
        "reason": reason,
    }


def scenario(*devices: Mapping[str, Any], **ceilings: Mapping[str, Any]) -> dict[str, Any]:
    """A machine with these GPUs (default: one H200) that has all of RATES; ``fp64_fma={...}`` changes one ceiling."""
    known: dict[str, dict[str, Any]] = {name: {"rate": rate} for name, rate in RATES.items()}
    for name, change in ceilings.items():
        known.setdefault(name.replace("_", ".", 1), {"rate": 1e12}).update(change)
    rows = [row(name, variant) for name, one in known.items() for variant in one.get("variants", {"best": 1.0})]
    rows += [row("tensor.int8.tcgen05", capabilities=("10.0",))]
    rows += [row("tensor.fp8.mma", capabilities=("8.9", "12.0")), row("tensor.fp8.mma", "best", ("9.0",), "emulated")]
    return {"devices": [dict(device) for device in devices or (H200,)], "rows": rows, "ceilings": known}


@dataclass
class Machine:
    """A folder with the fake program and its scenario."""

    folder: Path
    program: Path

    def play(self, content: Mapping[str, Any]) -> None:
        """From now on the program plays this scenario."""
        (self.folder / "scenario.json").write_text(
            json.dumps({"calls": str(self.folder / "calls"), **content}), encoding="utf-8"
        )

    def runs(self) -> list[dict[str, Any]]:
        """The runs that the program was asked for, in order."""
        path = self.folder / "calls"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def make_machine(folder: Path, setenv: Callable[[str, str], None]) -> Machine:
    """The fake program in ``folder``, playing `scenario()`."""
    program = folder / "ncu-roofline-bench"
    program.write_text(f"#!{sys.executable} -S\n{Path(fake_runner.__file__).read_text(encoding='utf-8')}", encoding="utf-8")
    program.chmod(0o755)
    setenv("FAKE_RUNNER", str(folder / "scenario.json"))
    machine = Machine(folder, program)
    machine.play(scenario())
    return machine


class Clock:
    """Time that only passes when somebody waits or works; it begins at 1 s."""

    def __init__(self) -> None:
        self.now = 1.0
        self.waits: list[float] = []

    def timing(self) -> Timing:
        """As the driver wants it."""
        return Timing(lambda: self.now, self.sleep)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self.waits.append(seconds)
        self.now += seconds


@dataclass
class Scripted:
    """The fake runner inside the test: what `Campaign` needs, without processes.

    On its ``clock`` a fresh context takes ``start`` s, each job ``set_up`` s and its trials, a hang all of the patience.
    """

    content: dict[str, Any]
    clock: Clock = field(default_factory=Clock)
    start: float = 0.0
    set_up: float = 0.0
    jobs: list[Job] = field(default_factory=list)
    on_run: Callable[[Job], None] = lambda _job: None
    contexts: int = 0
    _open: bool = False

    def run(
        self, job: Job, timeout: float = 0.0, enough: Callable[[list[Trial]], bool] | None = None
    ) -> tuple[list[Trial], dict[str, Any]]:
        """Trials as the scenario has them."""
        number = sum(other.ceiling == job.ceiling for other in self.jobs)
        self.jobs.append(job)
        self.on_run(job)
        call = fake_runner.call_of(self.content["ceilings"][job.ceiling], number)
        patience = timeout if self._open else timeout + SLOW_START
        self._begin()
        mode = call.get("mode")
        if mode in ("crash", "fatal", "error"):
            self._open = mode == "error"
            raise RunnerFailed(call.get("text", "it ended with code 3"))
        if mode == "hang":
            self._open = False
            self.clock.now += patience
            raise RunnerFailed(f"{HANGS} {patience:g} s")
        words = {"ceiling": job.ceiling, "variant": job.variant, "trials": str(job.trials), "seed": str(job.seed)}
        words |= {"min-time-ms": f"{job.min_time * 1e3:g}", "pause-ms": f"{job.pause * 1e3:g}"}
        trials = []
        for line in fake_runner.trials(self.content, words, number, self.clock.now):
            clock = line["sm_mhz"] * 1e6 if line["sm_mhz"] else None
            self.clock.now = line["end"]
            trials.append(Trial(line["seconds"], line["work"], clock, line["checksum_ok"], line["begin"], line["end"]))
            if enough and enough(trials):
                self.clock.now += job.pause + job.min_time  # the trial that has begun meanwhile
                break
        return trials, {"grid": 528, **call.get("launch", {})}

    def _begin(self) -> None:
        if not self._open:
            self.clock.now += self.start
            self.contexts += 1
        self.clock.now += self.set_up
        self._open = True

    def renew(self) -> None:
        """The next job opens another context."""
        self._open = False


@dataclass
class FakeTelemetry:
    """A driver's view that tests set; ``reasons`` are taken one per run (a Watch has a thread of its own), the last goes on."""

    reasons: list[int] = field(default_factory=lambda: [0])
    facts: dict[str, Any] = field(default_factory=dict)
    available: bool = True
    reason: str = ""
    runs: int = 0
    thread: threading.Thread | None = None
    reads: int = 0

    def identity(self) -> dict[str, Any]:
        """What the test says."""
        return self.facts

    def read(self, thorough: bool = True) -> Reading:  # noqa: ARG002
        """The reasons of the run that is on."""
        self.reads += 1
        if threading.current_thread() is not self.thread:
            self.thread, self.runs = threading.current_thread(), self.runs + 1
        reasons = self.reasons[min(self.runs, len(self.reasons)) - 1]
        return {"memory_clock": 3.201e9, "power": 600.0, "temperature": 55.0, "reasons": reasons}


def kind(ceiling: str) -> CeilingKind:
    """A ceiling with the unit that the runner would give it."""
    unit = "OP/s" if ceiling.partition(".")[2].startswith(("int", "mad")) else "FLOP/s"
    return CeilingKind(ceiling, UNITS.get(ceiling.partition(".")[0], unit))


def device(facts: Mapping[str, Any] = H200, index: int = 0) -> Device:
    """A device as the driver knows it."""
    return parse_device({"index": index, **facts})


class FakeNvml(Nvml):
    """Stands in for Nvml; an answer that is an exception is raised, what has no answer is not in this driver's library."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers = dict(answers)
        self.asked: list[tuple[Any, ...]] = []

    def ask(self, name: str, *inputs: Any) -> Any:
        """The answer, or what it computes from the inputs."""
        self.asked.append((name, *inputs))
        answer = self.answers.get(name, NvmlError(f"{name}: this driver's NVML does not have it"))
        if isinstance(answer, Exception):
            raise answer
        if name == "nvmlDeviceGetFieldValues":
            values = [answer.get(number) for number in inputs[1]]
            return [SimpleNamespace(nvmlReturn=one is None, valueType=1, value=SimpleNamespace(uiVal=one)) for one in values]
        if name == "nvmlDeviceGetComputeRunningProcesses":
            return answer and [SimpleNamespace(pid=one) for one in answer]
        return answer(*inputs) if callable(answer) else answer


def fake_nvml(**answers: Any) -> FakeNvml:
    """The NVML of an H200, with some answers changed."""
    return FakeNvml({**_H200_ANSWERS, **answers})


_H200_ANSWERS: dict[str, Any] = {
    "nvmlDeviceGetHandleByPciBusId": 1,
    "nvmlSystemGetDriverVersion": "580.65.06",
    "nvmlSystemGetCudaDriverVersion": 13000,
    "nvmlDeviceGetVbiosVersion": "96.00.BC.00.01",
    "nvmlDeviceGetEccMode": (1, 1),
    "nvmlDeviceGetMigMode": (0, 0),
    "nvmlDeviceGetComputeMode": 0,
    "nvmlDeviceGetPersistenceMode": 1,
    "nvmlDeviceGetEnforcedPowerLimit": 700_000,
    "nvmlDeviceGetPowerManagementDefaultLimit": 700_000,
    "nvmlDeviceGetApplicationsClock": 1980,
    "nvmlDeviceGetCurrPcieLinkGeneration": 5,
    "nvmlDeviceGetCurrPcieLinkWidth": 16,
    "nvmlDeviceGetMaxPcieLinkGeneration": 5,
    "nvmlDeviceGetMaxPcieLinkWidth": 16,
    "nvmlDeviceGetComputeRunningProcesses": [1],
    "nvmlDeviceGetClockInfo": lambda _device, kind: {1: 1980, 2: 3201}[kind],
    "nvmlDeviceGetPowerUsage": 580_000,
    "nvmlDeviceGetTemperature": 58,
    "nvmlDeviceGetCurrentClocksEventReasons": 0x4,
    "nvmlDeviceGetFieldValues": {82: 71, 186: 612_500},
}
