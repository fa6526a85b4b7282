"""What the driver tells about a GPU while it works (through NVML): clocks, power, temperature, why the clock is held back."""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol

from ncu_roofline.bench.device import Device
from ncu_roofline.bench.statistics import median

# Bits of nvmlDeviceGetCurrentClocksEventReasons (nvml.h, checked against nvidia-ml-py).
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
_COMPUTE_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
# Numbers of nvml.h: clock types, sensor, violation policies.
_GRAPHICS, _SM, _MEMORY = 0, 1, 2
_GPU_SENSOR = 0
_POWER_POLICY, _THERMAL_POLICY = 0, 1
_MEMORY_TEMPERATURE_FIELD = 82


@dataclass(frozen=True)
class Reading:
    """One look at the GPU; None where the driver does not say.  Clocks in Hz, W, degrees Celsius."""

    time: float = 0.0
    sm_clock: float | None = None
    memory_clock: float | None = None
    power: float | None = None
    temperature: float | None = None
    memory_temperature: float | None = None
    reasons: int = 0
    link: tuple[int, int] | None = None


@dataclass(frozen=True)
class Counters:
    """Counters that only grow; None where the driver does not say.  J, and s spent below the clock for a cause."""

    energy: float | None = None
    power_violation: float | None = None
    thermal_violation: float | None = None


class Telemetry(Protocol):
    """The driver's view of one GPU.  No method raises: what can't be read is None."""

    @property
    def available(self) -> bool:
        """Whether there is anything to read at all."""

    def identity(self) -> dict[str, Any]:
        """What stays the same: driver, VBIOS, ECC, MIG, limits, other processes; keys as in a ceilings file."""

    def read(self) -> Reading:
        """Now."""

    def counters(self) -> Counters:
        """Now."""


class NoTelemetry:
    """Where NVML or its Python package is missing."""

    available = False

    def __init__(self, reason: str = "") -> None:
        self.reason = reason

    def identity(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def read(self) -> Reading:
        """Nothing."""
        return Reading()

    def counters(self) -> Counters:
        """Nothing."""
        return Counters()


@dataclass(frozen=True)
class Observed:
    """What was seen while trials ran: means and extremes; None where unknown.  Units as in Reading and Counters."""

    memory_clock: float | None = None
    power: float | None = None
    temperature: float | None = None
    memory_temperature: float | None = None
    reasons: int = 0
    link: tuple[int, int] | None = None
    energy: float | None = None
    power_violation: float | None = None
    thermal_violation: float | None = None
    samples: int = 0

    @property
    def harmful(self) -> list[str]:
        """Names of the reasons that spoil a measurement."""
        return names(self.reasons & HARMFUL)


def names(reasons: int) -> list[str]:
    """Names of the bits."""
    return [name for bit, name in REASONS.items() if reasons & bit]


def observe(readings: Sequence[Reading], before: Counters, after: Counters, since: float, until: float) -> Observed:
    """Sum up the readings between two times (all of them, if none falls between)."""
    inside = [reading for reading in readings if since <= reading.time <= until] or list(readings)
    reasons = 0
    for reading in inside:
        reasons |= reading.reasons
    links = [reading.link for reading in inside if reading.link is not None]
    return Observed(
        memory_clock=_middle([r.memory_clock for r in inside]),
        power=_middle([r.power for r in inside]),
        temperature=_highest([r.temperature for r in inside]),
        memory_temperature=_highest([r.memory_temperature for r in inside]),
        reasons=reasons,
        link=max(links, default=None),
        energy=_grown(before.energy, after.energy),
        power_violation=_grown(before.power_violation, after.power_violation),
        thermal_violation=_grown(before.thermal_violation, after.thermal_violation),
        samples=len(inside),
    )


def _middle(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _highest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _grown(before: float | None, after: float | None) -> float | None:
    return after - before if before is not None and after is not None and after >= before else None


@dataclass
class Watch:
    """Reads a GPU from a thread while trials run: ``with Watch(telemetry) as watch: ...; watch.seen(since, until)``."""

    telemetry: Telemetry
    period: float = 0.03
    clock: Callable[[], float] = time.monotonic
    _readings: list[Reading] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _before: Counters = field(default_factory=Counters)

    def __enter__(self) -> Watch:
        self._before = self.telemetry.counters()
        if self.telemetry.available:
            self._thread = threading.Thread(target=self._poll, name="telemetry", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._finish()

    def seen(self, since: float, until: float) -> Observed:
        """What was read between two times of ``clock``; ends the reading."""
        self._finish()
        return observe(self._readings, self._before, self.telemetry.counters(), since, until)

    def _finish(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _poll(self) -> None:
        while not self._stop.is_set():
            reading = self.telemetry.read()
            self._readings.append(
                Reading(
                    self.clock(),
                    reading.sm_clock,
                    reading.memory_clock,
                    reading.power,
                    reading.temperature,
                    reading.memory_temperature,
                    reading.reasons,
                    reading.link,
                )
            )
            self._stop.wait(self.period)


def open_telemetry(device: Device, module: Any = None) -> Telemetry:
    """Telemetry of a device, found by its PCI bus id: CUDA_VISIBLE_DEVICES and MIG number devices in other ways than NVML.

    ``module`` stands in for ``pynvml``.  Never raises: without NVML the result is a NoTelemetry that says why.
    """
    try:
        nvml = module or importlib.import_module("pynvml")
    except ImportError:
        return NoTelemetry("the Python package nvidia-ml-py is not installed (pip install 'ncu-roofline[bench]')")
    try:
        nvml.nvmlInit()
        handle = _handle(nvml, device)
    except Exception as error:  # the package raises a class of its own per code, and others for a broken library
        return NoTelemetry(f"NVML: {error}")
    return NvmlTelemetry(nvml, handle)


def _handle(nvml: Any, device: Device) -> Any:
    if device.pci_bus_id:
        return nvml.nvmlDeviceGetHandleByPciBusId(device.pci_bus_id)
    return nvml.nvmlDeviceGetHandleByUUID(device.uuid)


class NvmlTelemetry:
    """One GPU seen through a ``pynvml`` module; a MIG instance is seen as the GPU it is part of."""

    available = True

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle

    def identity(self) -> dict[str, Any]:
        """Facts of the driver and the board, keys as in a ceilings file."""
        ecc = self._ask("nvmlDeviceGetEccMode")
        mig = self._ask("nvmlDeviceGetMigMode")
        mode = self._ask("nvmlDeviceGetComputeMode")
        persistence = self._ask("nvmlDeviceGetPersistenceMode")
        cuda = self._call("nvmlSystemGetCudaDriverVersion")
        return {
            "driver": _text(self._call("nvmlSystemGetDriverVersion")),
            "cuda_driver_api": f"{cuda // 1000}.{cuda % 1000 // 10}" if isinstance(cuda, int) else None,
            "vbios": _text(self._ask("nvmlDeviceGetVbiosVersion")),
            "ecc": {"current": bool(ecc[0]), "pending": bool(ecc[1])} if ecc else None,
            "mig_enabled": bool(mig[0]) if mig else None,
            "compute_mode": _COMPUTE_MODES.get(mode) if mode is not None else None,
            "persistence": None if persistence is None else bool(persistence),
            "power_limit_w": _scaled(self._ask("nvmlDeviceGetEnforcedPowerLimit"), 1e-3),
            "power_limit_default_w": _scaled(self._ask("nvmlDeviceGetPowerManagementDefaultLimit"), 1e-3),
            "app_clocks_mhz": self._ask("nvmlDeviceGetApplicationsClock", _GRAPHICS),
            "pcie": self._link_limits(),
            "other_processes": self._other_processes(),
        }

    def read(self) -> Reading:
        """Clocks, power, temperature, reasons, link."""
        generation, lanes = self._ask("nvmlDeviceGetCurrPcieLinkGeneration"), self._ask("nvmlDeviceGetCurrPcieLinkWidth")
        reasons = self._ask("nvmlDeviceGetCurrentClocksEventReasons")
        if reasons is None:  # its name before driver 535
            reasons = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons")
        return Reading(
            sm_clock=_scaled(self._ask("nvmlDeviceGetClockInfo", _SM), 1e6),
            memory_clock=_scaled(self._ask("nvmlDeviceGetClockInfo", _MEMORY), 1e6),
            power=_scaled(self._ask("nvmlDeviceGetPowerUsage"), 1e-3),
            temperature=_scaled(self._ask("nvmlDeviceGetTemperature", _GPU_SENSOR), 1.0),
            memory_temperature=self._memory_temperature(),
            reasons=int(reasons or 0),
            link=(generation, lanes) if generation and lanes else None,
        )

    def counters(self) -> Counters:
        """Energy and time held back."""
        return Counters(
            energy=_scaled(self._ask("nvmlDeviceGetTotalEnergyConsumption"), 1e-3),
            power_violation=self._violation(_POWER_POLICY),
            thermal_violation=self._violation(_THERMAL_POLICY),
        )

    def _ask(self, name: str, *arguments: Any) -> Any:
        return self._call(name, self._handle, *arguments)

    def _call(self, name: str, *arguments: Any) -> Any:
        function: Callable[..., Any] | None = getattr(self._nvml, name, None)
        if function is None:
            return None
        try:
            return function(*arguments)
        except Exception:  # NVMLError has a subclass per code; not supported, no permission and lost GPU all mean: unknown
            return None

    def _violation(self, policy: int) -> float | None:
        status = self._ask("nvmlDeviceGetViolationStatus", policy)
        return _scaled(getattr(status, "violationTime", None), 1e-9)

    def _memory_temperature(self) -> float | None:
        values = self._ask("nvmlDeviceGetFieldValues", [_MEMORY_TEMPERATURE_FIELD])
        if not values or getattr(values[0], "nvmlReturn", 1) != 0:
            return None
        return _scaled(getattr(values[0].value, "uiVal", None), 1.0)

    def _link_limits(self) -> dict[str, Any]:
        calls = {
            "gen": "nvmlDeviceGetCurrPcieLinkGeneration",
            "width": "nvmlDeviceGetCurrPcieLinkWidth",
            "gen_max": "nvmlDeviceGetMaxPcieLinkGeneration",
            "width_max": "nvmlDeviceGetMaxPcieLinkWidth",
        }
        return {key: self._ask(name) for key, name in calls.items()}

    def _other_processes(self) -> int | None:
        processes = self._ask("nvmlDeviceGetComputeRunningProcesses")
        if processes is None:
            return None
        return len([process for process in processes if getattr(process, "pid", None) != os.getpid()])


def _scaled(value: object, factor: float) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value * factor


def _text(value: object) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else None
