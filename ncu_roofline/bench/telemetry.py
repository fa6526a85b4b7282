"""What is seen of a device while it works: clocks, power, temperature, why the clock is held back.

A GPU is asked through NVML, by NVIDIA's package nvidia-ml-py (the extra "bench").  It makes no CUDA context, and finds GPUs by
their bus: CUDA_VISIBLE_DEVICES and MIG number them in other ways.
"""

from __future__ import annotations

import itertools
import os
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Any

from ncu_roofline.bench.device import Device

Window = tuple[float, float]
"""Begin and end of a trial by the host's clock."""
Reading = Mapping[str, Any]
"""One look at a device: "time", "memory_clock" (Hz), "power" (W), "temperature" and "memory_temperature" (degrees Celsius),
"reasons" (bits) and "link" (generation and lanes); what the driver does not say is missing or None."""

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
MEMORY_TEMPERATURE, POWER_INSTANT = 82, 186
"""Field numbers of NVML: degrees Celsius; mW, of the GPU alone in scope 0.  Both are unsigned numbers."""
_THOROUGH = 10  # every how many readings a Watch asks for what changes slowly


def names(reasons: int) -> list[str]:
    """Names of the bits."""
    return [name for bit, name in REASONS.items() if reasons & bit]


def scaled(value: float | None, factor: float) -> float | None:
    """A value times a factor, None where it is unknown."""
    return None if value is None else value * factor


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


def open_telemetry(device: Device) -> Telemetry:
    """The driver's view of a GPU, by its PCI bus id; none of a CPU.  Never raises: where there is none it says why."""
    if device.is_cpu:
        return Telemetry()
    try:
        import pynvml
    except ImportError:
        return Telemetry("the package nvidia-ml-py is not installed (pip install 'ncu-roofline[bench]')")
    by, name = ("PciBusId", device.pci_bus_id) if device.pci_bus_id else ("UUID", device.uuid)
    try:
        pynvml.nvmlInit()
        handle = getattr(pynvml, f"nvmlDeviceGetHandleBy{by}")(name)
    except pynvml.NVMLError as error:
        return Telemetry(f"NVML: {error}")
    # Up to GA100 what is called the usage is no average (nvml.h).
    return NvmlTelemetry(pynvml, handle, "instant" if device.compute_capability <= (8, 0) else "average (1 s)")


class Watch:
    """Reads a device from a thread while trials run: ``with Watch(telemetry) as watch: ...; watch.seen_in(windows)``."""

    def __init__(self, telemetry: Telemetry, period: float = 0.01, clock: Callable[[], float] = time.monotonic) -> None:
        self._telemetry, self._period, self._clock = telemetry, period, clock
        self._readings: list[Reading] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="telemetry", daemon=True)

    def __enter__(self) -> Watch:
        if self._telemetry.available:
            self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        if self._thread.ident is not None:  # it was started
            self._thread.join()

    def seen_in(self, windows: Sequence[Window]) -> dict[str, Any]:
        """What was read inside trials, told as begin and end by ``clock`` and in order; ends the reading."""
        self.__exit__()
        return observe(self._readings, windows)

    def _poll(self) -> None:
        slow: Reading = {}
        for number in itertools.count():
            began = self._clock()
            reading = self._telemetry.read(thorough=number % _THOROUGH == 0)
            slow = reading if number % _THOROUGH == 0 else slow
            self._readings.append({**slow, **reading, "time": (began + self._clock()) / 2})
            if self._stop.wait(self._period):
                return


def observe(readings: Sequence[Reading], windows: Sequence[Window]) -> dict[str, Any]:
    """Sum up what was read inside the windows, which are in order; None where unknown.

    "power" is the time-weighted mean inside the trials: each sample stands for the time that it is the nearest one of its
    window.  (The sensor is renewed every 100 ms on an H100, so that short trials far apart also see what was before them.)
    "samples" is the number of readings inside the trials: with 0 power is unknown, and reasons, temperatures, memory clock and
    link, which outlast a trial, are those of all readings.
    """
    inside = [reading for reading in readings if any(begin <= reading["time"] <= end for begin, end in windows)]

    def known(name: str) -> list[Any]:
        return [value for reading in inside or readings if (value := reading.get(name)) is not None]

    powers = [(reading["time"], reading["power"]) for reading in inside if reading.get("power") is not None]
    joules = seconds = 0.0
    for begin, end in windows:
        samples = [sample for sample in powers if begin <= sample[0] <= end]
        borders = [begin, *((one[0] + next_[0]) / 2 for one, next_ in pairwise(samples)), end]
        for (_, power), (left, right) in zip(samples, pairwise(borders), strict=False):
            joules += power * (right - left)
            seconds += right - left
    clocks = known("memory_clock")
    most = {name: max(known(name), default=None) for name in ("temperature", "memory_temperature", "link")}
    power, clock = joules / seconds if seconds > 0 else None, statistics.median(clocks) if clocks else None
    return {"memory_clock": clock, "power": power, **most, "reasons": reduce(or_, known("reasons"), 0), "samples": len(inside)}


class NvmlTelemetry(Telemetry):
    """One GPU seen through NVML, the package of it ready; a MIG instance is seen as the GPU it is part of.

    ``usage`` says what ``nvmlDeviceGetPowerUsage`` means on it; it is asked where the driver lacks the field of instant power.
    """

    available = True

    def __init__(self, nvml: Any, handle: Any, usage: str) -> None:
        super().__init__()
        self._nvml, self._handle = nvml, handle
        self._has_instant_power = self._field(POWER_INSTANT) is not None
        self._power_source = "instant" if self._has_instant_power else usage

    def identity(self) -> dict[str, Any]:
        """Facts of the driver and the board; ``power_source`` says what readings of power are."""
        ecc, mig, processes = self._ask("EccMode"), self._ask("MigMode"), self._ask("ComputeRunningProcesses")
        link = {"gen": "CurrPcieLinkGeneration", "width": "CurrPcieLinkWidth"}
        link |= {"gen_max": "MaxPcieLinkGeneration", "width_max": "MaxPcieLinkWidth"}
        return {
            "driver": self._tell("nvmlSystemGetDriverVersion"),
            "vbios": self._ask("VbiosVersion"),
            "ecc": {"current": bool(ecc[0]), "pending": bool(ecc[1])} if ecc else None,
            "mig_enabled": bool(mig[0]) if mig else None,
            # As the host counts them, also inside a container.
            "other_processes": None if processes is None else sum(process.pid != os.getpid() for process in processes),
            "power_limit_w": scaled(self._ask("EnforcedPowerLimit"), 1e-3),
            "power_limit_default_w": scaled(self._ask("PowerManagementDefaultLimit"), 1e-3),
            "power_source": self._power_source if self._power() is not None else None,
            "pcie": {key: self._ask(name) for key, name in link.items()},
        }

    def read(self, thorough: bool = True) -> Reading:
        """Clock of the memory (NVML's number of it is 2), power and reasons; the rest only where ``thorough``."""
        reasons = self._ask("CurrentClocksEventReasons")
        if reasons is None:  # its name before driver 535
            reasons = self._ask("CurrentClocksThrottleReasons")
        memory_clock = scaled(self._ask("ClockInfo", 2), 1e6)
        found: dict[str, Any] = {"memory_clock": memory_clock, "power": self._power(), "reasons": int(reasons or 0)}
        if thorough:
            link = self._ask("CurrPcieLinkGeneration"), self._ask("CurrPcieLinkWidth")
            found |= {"temperature": scaled(self._ask("Temperature", 0), 1.0), "link": link if all(link) else None}
            found["memory_temperature"] = scaled(self._field(MEMORY_TEMPERATURE), 1.0)
        return found

    def _ask(self, name: str, *inputs: Any) -> Any:
        return self._tell(f"nvmlDeviceGet{name}", self._handle, *inputs)

    def _tell(self, name: str, *inputs: Any) -> Any:
        """None where the driver lacks the call or refuses: not supported, no permission and a lost GPU all mean unknown."""
        try:
            return getattr(self._nvml, name)(*inputs)
        except (AttributeError, self._nvml.NVMLError):
            return None

    def _field(self, number: int) -> float | None:
        found = self._ask("FieldValues", [number])
        return float(found[0].value.uiVal) if found and not found[0].nvmlReturn else None

    def _power(self) -> float | None:
        return scaled(self._field(POWER_INSTANT) if self._has_instant_power else self._ask("PowerUsage"), 1e-3)
