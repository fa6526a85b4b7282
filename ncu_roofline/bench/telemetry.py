"""What the driver tells about a GPU while it works: clocks, power, temperature, and why the clock is held back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol

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
