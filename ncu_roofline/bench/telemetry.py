"""What is seen of a device while it works: clocks, power, temperature, why the clock is held back."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

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


class Telemetry:
    """The view of one device, blind unless something sees more.  No method raises: what can't be read is None."""

    available = True

    def identity(self) -> dict[str, Any]:
        """What stays the same: driver, VBIOS, ECC, MIG, limits, other processes; keys as in a ceilings file."""
        return {}

    def read(self, thorough: bool = True) -> Reading:  # noqa: ARG002
        """Now; temperatures and the link, which change slowly, only where ``thorough``."""
        return Reading()

    def energy(self) -> float | None:
        """What the device has taken since some time past, in J."""
        return None

    def counters(self) -> Counters:
        """Now."""
        return Counters()


@dataclass(frozen=True)
class NoTelemetry(Telemetry):
    """Where there is nothing to read, and why."""

    reason: str = ""
    available = False


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
    inside = [reading for reading in readings if within(reading.time, windows)]
    used = inside or readings
    reasons = 0
    for reading in used:
        reasons |= reading.reasons

    def grown(name: str) -> float | None:
        before, after = (getattr(each, name) for each in counters)
        return after - before if before is not None and after is not None and after >= before else None

    clocks = _known(reading.memory_clock for reading in used)
    return Observed(
        memory_clock=median(clocks) if clocks else None,
        power=mean([(r.time, r.power) for r in readings if r.power is not None], windows),
        temperature=max(_known(reading.temperature for reading in used), default=None),
        memory_temperature=max(_known(reading.memory_temperature for reading in used), default=None),
        reasons=reasons,
        link=max((reading.link for reading in used if reading.link is not None), default=None),
        energy=growth(energies, windows[0][0], windows[-1][1]) if windows else None,
        duty=duty(windows),
        power_violation=grown("power_violation"),
        thermal_violation=grown("thermal_violation"),
        samples=len(inside),
    )


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def scaled(value: float | None, factor: float) -> float | None:
    """A value times a factor, None where it is unknown."""
    return None if value is None else value * factor


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

    def __exit__(self, *_error: object) -> None:
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
            slow = reading if number % _THOROUGH == 0 else slow
            seldom: Any = {"temperature": slow.temperature, "memory_temperature": slow.memory_temperature, "link": slow.link}
            self._readings.append(replace(reading, time=middle, **seldom))
            if number % _ENERGY == 0:
                began = self.clock()
                energy = self.telemetry.energy()
                if energy is not None:
                    self._energies.append(((began + self.clock()) / 2, energy))
            if self._stop.wait(self.period):
                return
