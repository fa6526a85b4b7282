"""What is seen of a device while it works: clocks, power, temperature, why the clock is held back.

A GPU is asked through NVML, by NVIDIA's package nvidia-ml-py (the extra "bench").  It makes no CUDA context, and finds GPUs by
their bus: CUDA_VISIBLE_DEVICES and MIG number them in other ways.  Of a CPU Linux shows energy and clocks.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from operator import or_
from pathlib import Path
from typing import Any

from ncu_roofline.base.files import matching
from ncu_roofline.bench.device import Device
from ncu_roofline.bench.statistics import median

Window = tuple[float, float]
"""Begin and end of a trial by the host's clock."""
Sample = tuple[float, float]
"""A time by that clock, and what was read then."""

# Bits of nvmlDeviceGetCurrentClocksEventReasons (nvml.h).
REASONS = {
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x100: "display clocks",
    0x200: "board limit",
    0x400: "reliability",
}
POWER_CAP = 0x4
HARMFUL = 0x8 | 0x20 | 0x40 | 0x80
"""Reasons that spoil a measurement.  The power cap does not: under it the clock settles where the chip can stay."""
# Every how many readings a Watch asks for what changes slowly, and for energy: that call takes 3.4 ms (median, H100, driver
# 580; the others together 0.3 ms), and the counter is renewed every 100 ms there.
_THOROUGH, _ENERGY = 10, 3


Reading = Mapping[str, Any]
"""One look at a device: "time", "memory_clock" (Hz), "power" (W), "temperature" and "memory_temperature" (degrees Celsius),
"reasons" (bits) and "link" (generation and lanes); what the driver does not say is missing or None."""
HeldBack = tuple[float | None, float | None]
"""Seconds spent below the clock for power and for heat, counters that only grow; None where the driver does not say."""


class Telemetry:
    """The view of one device; this one is blind, and says why.  No method raises: what can't be read is None."""

    available = False

    def __init__(self, reason: str = "") -> None:
        self.reason = reason

    def identity(self) -> dict[str, Any]:
        """What stays the same: driver, VBIOS, ECC, MIG, limits, other processes; keys as in a ceilings file."""
        return {}

    def read(self, thorough: bool = True) -> Reading:  # noqa: ARG002
        """Now; temperatures and the link, which change slowly, only where ``thorough``."""
        return {}

    def energy(self) -> float | None:
        """What the device has taken since some time past, in J."""
        return None

    def held_back(self) -> HeldBack:
        """Until now."""
        return None, None


def open_telemetry(device: Device) -> Telemetry:
    """The driver's view of a GPU, by its PCI bus id, or Linux's of the CPU.  Never raises: where there is none it says why."""
    if device.is_cpu:
        return CpuTelemetry.opened()
    try:
        nvml = load()
        by, name = ("PciBusId", device.pci_bus_id) if device.pci_bus_id else ("UUID", device.uuid)
        handle = nvml.ask(f"nvmlDeviceGetHandleBy{by}", name)
    except NvmlError as error:
        return Telemetry(str(error))
    # Up to GA100 what is called the usage is no average (nvml.h).
    return NvmlTelemetry(nvml, handle, INSTANT if device.compute_capability <= (8, 0) else AVERAGE)


def names(reasons: int) -> list[str]:
    """Names of the bits."""
    return [name for bit, name in REASONS.items() if reasons & bit]


# While trials run


@dataclass
class Watch:
    """Reads a device from a thread while trials run: ``with Watch(telemetry) as watch: ...; watch.seen_in(windows)``."""

    telemetry: Telemetry
    period: float = 0.01
    clock: Callable[[], float] = time.monotonic
    _readings: list[Reading] = field(default_factory=list)
    _energies: list[Sample] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _before: HeldBack = (None, None)

    def __enter__(self) -> Watch:
        self._before = self.telemetry.held_back()
        if self.telemetry.available:
            self._thread = threading.Thread(target=self._poll, name="telemetry", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def seen_in(self, windows: Sequence[Window]) -> dict[str, Any]:
        """What was read inside trials, told as begin and end by ``clock`` and in order; ends the reading."""
        self.__exit__()
        return observe(self._readings, self._energies, (self._before, self.telemetry.held_back()), windows)

    def _poll(self) -> None:
        slow: Reading = {}
        for number in itertools.count():
            began = self.clock()
            reading = self.telemetry.read(thorough=number % _THOROUGH == 0)
            slow = reading if number % _THOROUGH == 0 else slow
            self._readings.append({**slow, **reading, "time": (began + self.clock()) / 2})
            if number % _ENERGY == 0:
                began, energy = self.clock(), self.telemetry.energy()
                if energy is not None:
                    self._energies.append(((began + self.clock()) / 2, energy))
            if self._stop.wait(self.period):
                return


def observe(
    readings: Sequence[Reading], energies: Sequence[Sample], held_back: tuple[HeldBack, HeldBack], windows: Sequence[Window]
) -> dict[str, Any]:
    """Sum up what was read inside the windows, which are in order; None where unknown.

    ``energies`` are the times and values in J of the energy counter, ``held_back`` those before and after all reading.
    "power" is the time-weighted mean inside the trials: times their seconds it is their energy.  (The sensor is renewed every
    100 ms on an H100, so that short trials far apart also see what was before them.)  "energy" is that of the whole span from
    the first trial's begin to the last one's end, pauses too; "duty" is the share of that span that was timed.  "samples" is
    the number of readings inside the trials: with 0 power is unknown, and reasons, temperatures, memory clock and link, which
    outlast a trial, are those of all readings.
    """
    inside = [reading for reading in readings if any(begin <= reading["time"] <= end for begin, end in windows)]

    def known(name: str) -> list[Any]:
        return [value for reading in inside or readings if (value := reading.get(name)) is not None]

    clocks, span = known("memory_clock"), windows[-1][1] - windows[0][0] if windows else 0.0
    power, thermal = (
        after - before if before is not None and after is not None and after >= before else None
        for before, after in zip(*held_back, strict=True)
    )
    return {
        "memory_clock": median(clocks) if clocks else None,
        "power": mean([(one["time"], one["power"]) for one in readings if one.get("power") is not None], windows),
        "temperature": max(known("temperature"), default=None),
        "memory_temperature": max(known("memory_temperature"), default=None),
        "reasons": reduce(or_, known("reasons"), 0),
        "link": max(known("link"), default=None),
        "energy": growth(energies, windows[0][0], windows[-1][1]) if windows else None,
        "duty": sum(end - begin for begin, end in windows) / span if span > 0 else None,
        "power_violation": power,
        "thermal_violation": thermal,
        "samples": len(inside),
    }


def mean(samples: Sequence[Sample], windows: Sequence[Window]) -> float | None:
    """Time-weighted mean of the samples in the windows: each stands for the time that it is the nearest sample of its window.

    A window without a sample does not count; None if none has any.
    """
    total = weight = 0.0
    for begin, end in windows:
        inside = [(time, value) for time, value in samples if begin <= time <= end]
        borders = [begin, *((one[0] + next_[0]) / 2 for one, next_ in pairwise(inside)), end]
        for (_, value), (left, right) in zip(inside, pairwise(borders), strict=False):
            total += value * (right - left)
            weight += right - left
    return total / weight if weight > 0 else None


def growth(samples: Sequence[Sample], since: float, until: float) -> float | None:
    """How much a counter that is renewed in ticks grew between two times, on straight lines between the ticks around them.

    None if fewer than two ticks lie between the times, if the counter fell, or if an edge is far from any tick.
    """
    # The first sample is no tick: nobody knows since when the counter stood there.
    ticks = [now for before, now in pairwise(samples) if now[1] != before[1]]
    fell = any(after[1] < before[1] for before, after in pairwise([*samples[:1], *ticks]))
    if fell or sum(since <= time <= until for time, _ in ticks) < 2:
        return None
    # Beyond the outermost ticks the line of the outermost two goes on, and by two ticks at most: a counter that stands still
    # has nothing to say.
    reach = 2 * max(after[0] - before[0] for before, after in pairwise(ticks))
    if since < ticks[0][0] - reach or until > ticks[-1][0] + reach:
        return None

    def at(time: float) -> float:
        (left, low), (right, high) = next((pair for pair in pairwise(ticks) if time <= pair[1][0]), (ticks[-2], ticks[-1]))
        return low + (high - low) * (time - left) / (right - left)

    return at(until) - at(since)


# NVML


MEMORY_TEMPERATURE, POWER_INSTANT = 82, 186
"""Field numbers: degrees Celsius; mW, of the GPU alone in scope 0."""
COMPUTE_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
INSTANT, AVERAGE = "instant", "average (1 s)"
"""What readings of power can be."""
_VALUE_TYPES = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
# What older drivers have instead.
_OLDER = {
    "nvmlDeviceGetCurrentClocksEventReasons": "nvmlDeviceGetCurrentClocksThrottleReasons",
    "nvmlDeviceGetComputeRunningProcesses": "nvmlDeviceGetComputeRunningProcesses_v2",
}


class NvmlError(Exception):
    """NVML is not there, or refused a call; says which and why."""


class Nvml:
    """The package, initialised by `load`; a device is a handle."""

    def __init__(self, package: Any) -> None:
        self._package = package

    def ask(self, name: str, *inputs: Any) -> Any:
        """What a function of NVML tells.  NvmlError where the driver does not have it or refuses."""
        try:
            return getattr(self._package, name)(*inputs)
        except (AttributeError, self._package.NVMLError_FunctionNotFound):
            if name in _OLDER:
                return self.ask(_OLDER[name], *inputs)
            raise NvmlError(f"{name}: this driver's NVML does not have it") from None
        except self._package.NVMLError as error:
            raise NvmlError(f"{name}: {error}") from None

    def tell(self, name: str, *inputs: Any) -> Any:
        """The same, None where it refuses: not supported, no permission and a lost GPU all mean unknown."""
        try:
            return self.ask(name, *inputs)
        except NvmlError:
            return None


def load() -> Nvml:
    """NVML, ready to be asked.  NvmlError if the package or the driver is missing."""
    try:
        import pynvml
    except ImportError:
        raise NvmlError("the package nvidia-ml-py is not installed (pip install nvidia-ml-py)") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NvmlError(f"nvmlInit: {error}") from None
    return Nvml(pynvml)


def gpus() -> list[dict[str, Any]]:
    """All GPUs that NVML lists, but those that fell off the bus; none without NVML or a driver.

    "index" is NVML's, in the order of the bus: not the number that CUDA gives.
    """
    try:
        nvml = load()
    except NvmlError:
        return []
    handles = [(index, nvml.tell("nvmlDeviceGetHandleByIndex", index)) for index in range(nvml.tell("nvmlDeviceGetCount") or 0)]
    return [
        {"index": index, "name": nvml.tell("nvmlDeviceGetName", handle), **_state(nvml, handle)}
        for index, handle in handles
        if handle is not None
    ]


def _state(nvml: Nvml, handle: Any) -> dict[str, Any]:
    """What may keep programs off a GPU; its other processes are as the host counts them, also inside a container."""
    mig = nvml.tell("nvmlDeviceGetMigMode", handle)
    processes = nvml.tell("nvmlDeviceGetComputeRunningProcesses", handle)
    return {
        "mig_enabled": bool(mig[0]) if mig else None,
        "compute_mode": COMPUTE_MODES.get(nvml.tell("nvmlDeviceGetComputeMode", handle)),
        "other_processes": None if processes is None else sum(process.pid != os.getpid() for process in processes),
    }


def state_text(facts: Mapping[str, Any]) -> str:
    """The same for people, like "compute mode default, 0 other processes"; what NVML does not say is left out."""
    parts = ["MIG enabled"] if facts.get("mig_enabled") else []
    parts += [f"compute mode {mode}"] if (mode := facts.get("compute_mode")) else []
    others = facts.get("other_processes")
    return ", ".join([*parts, *([] if others is None else [f"{others} other process{'' if others == 1 else 'es'}"])])


class NvmlTelemetry(Telemetry):
    """One GPU seen through NVML; a MIG instance is seen as the GPU it is part of.

    ``usage`` says what ``nvmlDeviceGetPowerUsage`` means on it; it is asked where the driver lacks the field of instant power.
    """

    available = True

    def __init__(self, nvml: Nvml, handle: Any, usage: str = AVERAGE) -> None:
        super().__init__()
        self._nvml, self._handle = nvml, handle
        self._has_instant_power = self._field(POWER_INSTANT) is not None
        self._power_source = INSTANT if self._has_instant_power else usage

    def identity(self) -> dict[str, Any]:
        """Facts of the driver and the board; ``power_source`` says what readings of power are."""
        ecc, persistence = self._ask("EccMode"), self._ask("PersistenceMode")
        cuda = self._nvml.tell("nvmlSystemGetCudaDriverVersion")
        link = {"gen": "CurrPcieLinkGeneration", "width": "CurrPcieLinkWidth"}
        link |= {"gen_max": "MaxPcieLinkGeneration", "width_max": "MaxPcieLinkWidth"}
        return {
            "driver": self._nvml.tell("nvmlSystemGetDriverVersion"),
            "cuda_driver_api": f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda is not None else None,
            "vbios": self._ask("VbiosVersion"),
            "ecc": {"current": bool(ecc[0]), "pending": bool(ecc[1])} if ecc else None,
            **_state(self._nvml, self._handle),
            "persistence": None if persistence is None else bool(persistence),
            "power_limit_w": scaled(self._ask("EnforcedPowerLimit"), 1e-3),
            "power_limit_default_w": scaled(self._ask("PowerManagementDefaultLimit"), 1e-3),
            "power_source": self._power_source if self._power() is not None else None,
            "app_clocks_mhz": self._ask("ApplicationsClock", 0),
            "pcie": {key: self._ask(name) for key, name in link.items()},
        }

    def read(self, thorough: bool = True) -> Reading:
        """Clock of the memory (NVML's number of it is 2), power and reasons; the rest only where ``thorough``."""
        found: dict[str, Any] = {
            "memory_clock": scaled(self._ask("ClockInfo", 2), 1e6),
            "power": self._power(),
            "reasons": int(self._ask("CurrentClocksEventReasons") or 0),
        }
        if thorough:
            link = self._ask("CurrPcieLinkGeneration"), self._ask("CurrPcieLinkWidth")
            found |= {"temperature": scaled(self._ask("Temperature", 0), 1.0), "link": link if all(link) else None}
            found["memory_temperature"] = scaled(self._field(MEMORY_TEMPERATURE), 1.0)
        return found

    def energy(self) -> float | None:
        """Since the driver was loaded, in J."""
        return scaled(self._ask("TotalEnergyConsumption"), 1e-3)

    def held_back(self) -> HeldBack:
        """By the policies of power, 0, and heat, 1."""
        power, thermal = (getattr(self._ask("ViolationStatus", policy), "violationTime", None) for policy in (0, 1))
        return scaled(power, 1e-9), scaled(thermal, 1e-9)

    def _ask(self, name: str, *inputs: Any) -> Any:
        return self._nvml.tell(f"nvmlDeviceGet{name}", self._handle, *inputs)

    def _field(self, number: int) -> float | None:
        found = self._ask("FieldValues", [number])
        if not found or found[0].nvmlReturn or found[0].valueType >= len(_VALUE_TYPES):
            return None
        value: float = getattr(found[0].value, _VALUE_TYPES[found[0].valueType])
        return value

    def _power(self) -> float | None:
        return scaled(self._field(POWER_INSTANT) if self._has_instant_power else self._ask("PowerUsage"), 1e-3)


def scaled(value: float | None, factor: float) -> float | None:
    """A value times a factor, None where it is unknown."""
    return None if value is None else value * factor


# CPUs


class CpuTelemetry(Telemetry):
    """The energy of a CPU's packages, where Linux shows it.  It does not tell how long it held a CPU back.

    ``zones``: counters of microjoules, and the limits at which they begin anew.
    """

    available = True

    def __init__(self, zones: Mapping[Path, int], facts: dict[str, Any]) -> None:
        super().__init__()
        self._limits, self._facts = zones, facts
        self._last, self._total = {path: _number(path) or 0 for path in zones}, 0
        self._before: Sample | None = None
        self._lock = threading.Lock()
        self.clock: Callable[[], float] = time.monotonic

    @staticmethod
    def opened(sysfs: Path = Path("/sys")) -> Telemetry:
        """What ``sysfs`` shows of this machine; without anything to read the result says why."""
        # One zone per package; those inside packages are parts of them, and "psys" is more than the processor.
        packages = [one for one in matching(sysfs / "class/powercap", "intel-rapl:*") if _text(one / "name")[:7] == "package"]
        zones = {one / "energy_uj": _number(one / "max_energy_range_uj") or 0 for one in packages}
        zones = {path: limit for path, limit in zones.items() if limit and _number(path) is not None}
        allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        folders = [sysfs / f"devices/system/cpu/cpu{cpu}/cpufreq" for cpu in allowed]
        clocked = next((folder for folder in folders if _number(folder / "scaling_cur_freq")), None)
        if clocked is None and not zones:
            return Telemetry("Linux shows neither energy (powercap, mostly for root only) nor clocks (cpufreq) of this CPU")
        facts = {f"clock_{name}": _text(clocked / f"scaling_{name}") for name in ("governor", "driver")} if clocked else {}
        return CpuTelemetry(zones, {key: text for key, text in facts.items() if text})

    def identity(self) -> dict[str, Any]:
        """Governor and driver of the clocks, where there are any."""
        return self._facts

    def read(self, thorough: bool = True) -> Reading:  # noqa: ARG002
        """The power since the reading before (None at the first)."""
        before, now, energy = self._before, self.clock(), self.energy()
        self._before = None if energy is None else (now, energy)
        if energy is None or before is None or now <= before[0]:
            return {}
        return {"power": (energy - before[1]) / (now - before[0])}

    def energy(self) -> float | None:
        """J since this was opened; of a counter that can't be read any more its last."""
        with self._lock:  # a thread reads while trials run
            for path, limit in self._limits.items():
                now, last = _number(path), self._last[path]
                if now is not None:
                    self._total += now - last + (limit if now < last else 0)
                    self._last[path] = now
            return self._total * 1e-6 if self._limits else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isdecimal() else None
