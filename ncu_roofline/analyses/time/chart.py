"""A time-based roofline as plain data for charts: symbols per GPU, the machine they run on, what is left out."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from ncu_roofline.analyses.hierarchical.chart import MAX_KERNELS, ChartKernel, kernel_labels, largest
from ncu_roofline.analyses.hierarchical.style import level_style, precision_order
from ncu_roofline.base.texts import clean
from ncu_roofline.rendering.frames import Frames, rows

MAX_DEVICES = 3  # in one picture; a page has them all


class TimeFrames(Frames, Protocol):
    """What renderers of the time view draw, columns as in ``ncu_roofline.analyses.time.columns``: TIME_POINTS and so on."""

    view: ClassVar[str]

    @property
    def level(self) -> str: ...
    @property
    def machines(self) -> Any: ...
    @property
    def absent(self) -> Any: ...


@dataclass(frozen=True)
class Symbol:
    """One kernel (or launch, or application): bytes, operations and seconds in total; NaN where unknown."""

    kernel: str
    precision: str
    unit: str
    bound: str
    invocations: int
    work: float
    traffic: float
    seconds: float
    compute_seconds: float
    bandwidth_seconds: float
    overhead_seconds: float
    inefficiency: float
    compute_roof: float
    bandwidth_roof: float
    share: float = math.nan
    launch: int = -1
    step: int = -1
    step_label: str = ""

    @property
    def complexity(self) -> tuple[float, float]:
        """Bytes and operations: the filled symbol."""
        return self.traffic, self.work

    @property
    def time(self) -> tuple[float, float]:
        """Bandwidth time and compute time in seconds."""
        return self.bandwidth_seconds, self.compute_seconds

    @property
    def time_at_roofs(self) -> tuple[float, float]:
        """The open symbol: bytes and operations its times would do at the roofs; at the roofline the filled one's place."""
        return self.bandwidth_seconds * self.bandwidth_roof, self.compute_seconds * self.compute_roof


@dataclass(frozen=True)
class MachineLimits:
    """Peak (FLOP/s) of a precision, bandwidth (B/s) of the level, launch latency (s, NaN where unknown)."""

    precision: str
    peak: float
    peak_min: float
    peak_max: float
    bandwidth: float
    latency: float

    @property
    def balance(self) -> float:
        """Machine balance in FLOP/B."""
        return self.peak / self.bandwidth if self.bandwidth > 0 else math.nan


@dataclass(frozen=True)
class DeviceChart:
    """All symbols of one GPU; ``machines`` by precision, the one with the most time first."""

    device: str
    symbols: tuple[Symbol, ...]
    machines: tuple[MachineLimits, ...]

    @property
    def balanced(self) -> tuple[MachineLimits, ...]:
        """The machines whose peak and bandwidth are both known: those that a 4D chart can be drawn for."""
        return tuple(machine for machine in self.machines if machine.balance > 0)

    @property
    def units(self) -> str:
        """What work counts here: FLOP, OP or both."""
        return " or ".join(dict.fromkeys({"flop": "FLOP", "op": "OP"}.get(symbol.unit, symbol.unit) for symbol in self.symbols))

    def launches(self) -> tuple[int, ...]:
        """The lowest and the highest number of invocations of a symbol, once if they are equal."""
        counts = [symbol.invocations for symbol in self.symbols]
        return tuple(dict.fromkeys((min(counts), max(counts)))) if counts else ()


@dataclass(frozen=True)
class TimeChart:
    """Everything a picture shows; ``total`` counts the kernels that have symbols, drawn or not."""

    devices: tuple[DeviceChart, ...]
    kernels: tuple[ChartKernel, ...]
    total: int
    devices_left_out: int
    level: str
    level_label: str

    @property
    def symbols(self) -> list[Symbol]:
        """Those of all GPUs."""
        return [symbol for device in self.devices for symbol in device.symbols]


_COLUMNS = (
    "invocations", "work", "traffic", "seconds", "compute_seconds", "bandwidth_seconds", "overhead_seconds", "inefficiency",
    "compute_roof", "bandwidth_roof", "launch", "step",
)  # fmt: skip


def time_chart(frames: TimeFrames, limit: int = MAX_KERNELS, devices: int = MAX_DEVICES) -> TimeChart:
    """The chart of a time-based roofline: its ``limit`` largest kernels by time on its first ``devices`` GPUs."""
    labels = kernel_labels(frames)
    found: dict[str, list[Symbol]] = {}
    texts = ("device", "report", "kernel", "precision", "unit", "bound", "label", "time_share")
    for device, report, kernel, precision, unit, bound, label, share, *values in rows(frames, "points", *texts, *_COLUMNS):
        numbers = dict(zip(_COLUMNS, values, strict=True))
        symbol = Symbol(labels[report, kernel], precision, unit, bound, **numbers, share=share, step_label=clean(label))
        if drawable(symbol.complexity):
            found.setdefault(device, []).append(symbol)
    kernels, total = largest(frames, "points", labels, {one.kernel for symbols in found.values() for one in symbols}, limit)
    drawn = {kernel.label for kernel in kernels}
    charts = []
    for device, symbols in found.items():
        if shown := tuple(one for one in symbols if one.kernel in drawn):
            charts.append(DeviceChart(clean(device), shown, _machines(frames, device, shown)))
    named = {level: clean(label) for level, label in rows(frames, "roofs", "level", "label") if level}
    label = named.get(frames.level) or level_style(frames.level).label
    return TimeChart(tuple(charts[:devices]), kernels, total, max(len(charts) - devices, 0), frames.level, label)


def drawable(place: Iterable[float]) -> bool:
    """Whether a place exists on logarithmic axes."""
    return all(0 < value < math.inf for value in place)


def _machines(frames: TimeFrames, device: str, symbols: Sequence[Symbol]) -> tuple[MachineLimits, ...]:
    seconds = defaultdict[str, float](float)
    for one in symbols:
        seconds[one.precision] += one.seconds
    columns = ("peak", "peak_min", "peak_max", "bandwidth", "latency")
    found = [
        MachineLimits(precision, *values)
        for owner, level, precision, *values in rows(frames, "machines", "device", "level", "precision", *columns)
        if owner == device and level == frames.level and precision in seconds
    ]
    return tuple(sorted(found, key=lambda one: (-seconds[one.precision], precision_order(one.precision))))


def units(frames: TimeFrames) -> defaultdict[str, str]:
    """What the work of a precision counts: op for integers, else flop."""
    return defaultdict(lambda: "flop", rows(frames, "points", "precision", "unit"))
