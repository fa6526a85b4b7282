"""What the driver tells about a GPU while it works (through NVML): clocks, power, temperature, why the clock is held back."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Protocol

from ncu_roofline.bench import nvml as library
from ncu_roofline.bench.device import Device
from ncu_roofline.bench.nvml import Nvml, NvmlError, or_none
from ncu_roofline.bench.statistics import Sample, Window, duty, growth, mean, median, within

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
INSTANT, AVERAGE = "instant", "average (1 s)"
"""What readings of power can be."""
_THOROUGH, _ENERGY = 10, 3
"""Every how many readings a Watch asks for what changes slowly, and for energy: that call takes 3.4 ms (median, H100, driver
580; the others together 0.3 ms), and the counter is renewed every 100 ms there."""


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
    """Counters that only grow; None where the driver does not say.  In s spent below the clock for a cause."""

    power_violation: float | None = None
    thermal_violation: float | None = None


class Telemetry(Protocol):
    """The driver's view of one GPU.  No method raises: what can't be read is None."""

    @property
    def available(self) -> bool:
        """Whether there is anything to read at all."""

    def identity(self) -> dict[str, Any]:
        """What stays the same: driver, VBIOS, ECC, MIG, limits, other processes; keys as in a ceilings file."""

    def read(self, thorough: bool = True) -> Reading:
        """Now; temperatures and the link, which change slowly, only where ``thorough``."""

    def energy(self) -> float | None:
        """What the GPU has taken since some time past, in J."""

    def counters(self) -> Counters:
        """Now."""


class NoTelemetry:
    """Where NVML is missing."""

    available = False

    def __init__(self, reason: str = "") -> None:
        self.reason = reason

    def identity(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def read(self, thorough: bool = True) -> Reading:  # noqa: ARG002
        """Nothing."""
        return Reading()

    def energy(self) -> float | None:
        """Nothing."""
        return None

    def counters(self) -> Counters:
        """Nothing."""
        return Counters()


@dataclass(frozen=True)
class Observed:
    """What was seen while trials ran; None where unknown.  Units as in Reading and Counters.

    ``power`` is the time-weighted mean inside the trials: times their seconds it is their energy.  (The sensor is renewed every
    100 ms on an H100, so that short trials far apart also see what was before them.)  ``energy`` is that of the
    whole span from the first trial's begin to the last one's end, pauses too; ``duty`` is the share of that span that was
    timed.  ``samples`` is the number of readings inside the trials: with 0 power is unknown, and reasons, temperatures, memory
    clock and link, which outlast a trial, are those of all readings.
    """

    memory_clock: float | None = None
    power: float | None = None
    temperature: float | None = None
    memory_temperature: float | None = None
    reasons: int = 0
    link: tuple[int, int] | None = None
    energy: float | None = None
    duty: float | None = None
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


def observe(
    readings: Sequence[Reading], energies: Sequence[Sample], counters: tuple[Counters, Counters], windows: Sequence[Window]
) -> Observed:
    """Sum up what was read inside the windows, which are in order.

    ``energies`` are the times and values in J of the energy counter, ``counters`` those before and after all reading.
    """
    before, after = counters
    inside = [reading for reading in readings if within(reading.time, windows)]
    used = inside or readings
    reasons = 0
    for reading in used:
        reasons |= reading.reasons
    return Observed(
        memory_clock=_middle([r.memory_clock for r in used]),
        power=mean([(r.time, r.power) for r in readings if r.power is not None], windows),
        temperature=_highest([r.temperature for r in used]),
        memory_temperature=_highest([r.memory_temperature for r in used]),
        reasons=reasons,
        link=max((reading.link for reading in used if reading.link is not None), default=None),
        energy=growth(energies, windows[0][0], windows[-1][1]) if windows else None,
        duty=duty(windows),
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
    """Reads a GPU from a thread while trials run: ``with Watch(telemetry) as watch: ...; watch.seen_in(windows)``."""

    telemetry: Telemetry
    period: float = 0.01
    clock: Callable[[], float] = time.monotonic
    _readings: list[Reading] = field(default_factory=list)
    _energies: list[Sample] = field(default_factory=list)
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

    def seen_in(self, windows: Sequence[Window]) -> Observed:
        """What was read inside trials, told as begin and end by ``clock`` and in order; ends the reading."""
        self._finish()
        return observe(self._readings, self._energies, (self._before, self.telemetry.counters()), windows)

    def _finish(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _poll(self) -> None:
        slow = Reading()
        for number in itertools.count():
            began = self.clock()
            reading = self.telemetry.read(thorough=number % _THOROUGH == 0)
            middle = (began + self.clock()) / 2
            if number % _THOROUGH == 0:
                slow = reading
            self._readings.append(
                replace(
                    reading,
                    time=middle,
                    temperature=slow.temperature,
                    memory_temperature=slow.memory_temperature,
                    link=slow.link,
                )
            )
            if number % _ENERGY == 0:
                self._read_energy()
            if self._stop.wait(self.period):
                return

    def _read_energy(self) -> None:
        began = self.clock()
        energy = self.telemetry.energy()
        if energy is not None:
            self._energies.append(((began + self.clock()) / 2, energy))


def open_telemetry(device: Device) -> Telemetry:
    """Telemetry of a device, found by its PCI bus id: CUDA_VISIBLE_DEVICES and MIG number devices in other ways than NVML.

    Never raises: without NVML the result is a NoTelemetry that says why.
    """
    try:
        nvml = library.load()
        if device.pci_bus_id:
            handle = nvml.ask("nvmlDeviceGetHandleByPciBusId", device.pci_bus_id)
        else:
            handle = nvml.ask("nvmlDeviceGetHandleByUUID", device.uuid)
    except NvmlError as error:
        return NoTelemetry(str(error))
    # Up to GA100 what is called the usage is no average (nvml.h).
    return NvmlTelemetry(nvml, handle, INSTANT if device.compute_capability <= (8, 0) else AVERAGE)


class NvmlTelemetry:
    """One GPU seen through NVML; a MIG instance is seen as the GPU it is part of.

    ``usage`` says what ``nvmlDeviceGetPowerUsage`` means on it; it is asked where the driver lacks the field of instant power.
    """

    available = True

    def __init__(self, nvml: Nvml, handle: Any, usage: str = AVERAGE) -> None:
        self._nvml = nvml
        self._handle = handle
        self._has_instant_power = self._field(library.POWER_INSTANT) is not None
        self._power_source = INSTANT if self._has_instant_power else usage

    def identity(self) -> dict[str, Any]:
        """Facts of the driver and the board, keys as in a ceilings file; ``power_source`` says what readings of power are."""
        ecc = self._ask("nvmlDeviceGetEccMode")
        mig = self._ask("nvmlDeviceGetMigMode")
        mode = self._ask("nvmlDeviceGetComputeMode")
        persistence = self._ask("nvmlDeviceGetPersistenceMode")
        cuda = or_none(self._nvml.ask, "nvmlSystemGetCudaDriverVersion")
        return {
            "driver": or_none(self._nvml.ask, "nvmlSystemGetDriverVersion"),
            "cuda_driver_api": f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda is not None else None,
            "vbios": self._ask("nvmlDeviceGetVbiosVersion"),
            "ecc": {"current": bool(ecc[0]), "pending": bool(ecc[1])} if ecc else None,
            "mig_enabled": bool(mig[0]) if mig else None,
            "compute_mode": library.COMPUTE_MODES.get(mode) if mode is not None else None,
            "persistence": None if persistence is None else bool(persistence),
            "power_limit_w": _scaled(self._ask("nvmlDeviceGetEnforcedPowerLimit"), 1e-3),
            "power_limit_default_w": _scaled(self._ask("nvmlDeviceGetPowerManagementDefaultLimit"), 1e-3),
            "power_source": self._power_source if self._power() is not None else None,
            "app_clocks_mhz": self._ask("nvmlDeviceGetApplicationsClock", library.CLOCK_GRAPHICS),
            "pcie": self._link_limits(),
            "other_processes": other_processes(self._nvml, self._handle),
        }

    def read(self, thorough: bool = True) -> Reading:
        """Clocks, power and reasons; temperatures and the link only where ``thorough``."""
        reading = Reading(
            sm_clock=_scaled(self._ask("nvmlDeviceGetClockInfo", library.CLOCK_SM), 1e6),
            memory_clock=_scaled(self._ask("nvmlDeviceGetClockInfo", library.CLOCK_MEMORY), 1e6),
            power=self._power(),
            reasons=int(self._ask("nvmlDeviceGetCurrentClocksEventReasons") or 0),
        )
        if not thorough:
            return reading
        generation, lanes = self._ask("nvmlDeviceGetCurrPcieLinkGeneration"), self._ask("nvmlDeviceGetCurrPcieLinkWidth")
        return replace(
            reading,
            temperature=_scaled(self._ask("nvmlDeviceGetTemperature", library.GPU_SENSOR), 1.0),
            memory_temperature=_scaled(self._field(library.MEMORY_TEMPERATURE), 1.0),
            link=(generation, lanes) if generation and lanes else None,
        )

    def energy(self) -> float | None:
        """Since the driver was loaded, in J."""
        return _scaled(self._ask("nvmlDeviceGetTotalEnergyConsumption"), 1e-3)

    def counters(self) -> Counters:
        """Time held back."""
        return Counters(
            power_violation=self._violation(library.POWER_POLICY),
            thermal_violation=self._violation(library.THERMAL_POLICY),
        )

    def _ask(self, name: str, *inputs: Any) -> Any:
        return or_none(self._nvml.ask, name, self._handle, *inputs)

    def _field(self, number: int) -> float | None:
        values = or_none(self._nvml.fields, self._handle, [number])
        return values[0] if values else None

    def _power(self) -> float | None:
        milliwatts = self._field(library.POWER_INSTANT) if self._has_instant_power else self._ask("nvmlDeviceGetPowerUsage")
        return _scaled(milliwatts, 1e-3)

    def _violation(self, policy: int) -> float | None:
        status = self._ask("nvmlDeviceGetViolationStatus", policy)
        return None if status is None else _scaled(status.violationTime, 1e-9)

    def _link_limits(self) -> dict[str, Any]:
        calls = {
            "gen": "nvmlDeviceGetCurrPcieLinkGeneration",
            "width": "nvmlDeviceGetCurrPcieLinkWidth",
            "gen_max": "nvmlDeviceGetMaxPcieLinkGeneration",
            "width_max": "nvmlDeviceGetMaxPcieLinkWidth",
        }
        return {key: self._ask(name) for key, name in calls.items()}


def other_processes(nvml: Nvml, handle: Any) -> int | None:
    """How many processes but this one compute on a device; None where NVML does not say."""
    processes = or_none(nvml.processes, handle)
    return None if processes is None else len([process for process in processes if process != os.getpid()])


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
