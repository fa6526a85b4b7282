"""A Roofline as plain data for charts: panels with series of dots and roofs, the kernels to draw, what is left out and why.

One panel holds one GPU and one group of precisions whose numbers belong on one axis: a core precision, all tensor types of one
unit, or the sum over all pipes.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from statistics import median
from types import MappingProxyType
from typing import Any

from ncu_roofline.analyses.hierarchical.style import (
    DEFAULT_UNIT,
    apart,
    is_instruction,
    level_order,
    on_request,
    precision_label,
    precision_order,
)
from ncu_roofline.ceilings import PUBLISHED
from ncu_roofline.facts.instruction import EXECUTED
from ncu_roofline.facts.verdict import TENSOR_ACTIVE
from ncu_roofline.rendering.frames import Frames, column, optional, rows, view_of
from ncu_roofline.texts import clean
from ncu_roofline.units import format_value

ZERO = frozenset({"zero-flop", "zero-asked"})  # work was counted, and is none: nothing is lacking
_KEY = ("report", "launch", "kernel", "step", "device")
_RoofRow = tuple[Any, ...]  # columns of the frame of roofs
WIDE = 0.01  # clocks jitter by less; what differs by more is drawn and written as a range
MAX_KERNELS = 30
MAX_PANELS = 8


def statuses(frames: Frames) -> list[str]:
    """The status of each row of the kernels; "ok" only of rows with points.

    Beside those of the frame: "zero-asked" (all work asked for was counted and is zero), "uncounted-asked" (it was not
    counted) and "unshown" (it is there, but at none of the levels chosen).
    """
    found = column(frames, "kernels", "status")
    if view_of(frames) not in ("roofline", "instruction"):
        return found
    drawn = set(rows(frames, "points", *_KEY))
    active = optional(frames, "kernels", "tensor_active", math.nan)
    return [
        _without_point(frames, index, active[index]) if status == "ok" and key not in drawn else status
        for index, (status, key) in enumerate(zip(found, rows(frames, "kernels", *_KEY), strict=True))
    ]


def _without_point(frames: Frames, row: int, active: float) -> str:
    asked: tuple[str, ...] = getattr(frames, "asked", ())
    if not asked:
        return "unshown"
    counted = [
        float(values[row])
        for precision, values in getattr(frames, "work", {}).items()
        if any(precision == one or precision.startswith(f"{one}.") for one in asked) and math.isfinite(values[row])
    ]
    if any(work > 0 for work in counted):
        return "unshown"
    tensor = any(one.split(".")[0] == "tensor" for one in asked)
    return "uncounted-asked" if not counted or (tensor and active >= TENSOR_ACTIVE) else "zero-asked"


def asked_work(frames: Frames) -> str:
    """What was asked for, in words: ``tensor or FP32 work``."""
    names = ["tensor" if one == "tensor" else precision_label(one) for one in getattr(frames, "asked", ())]
    return f"{' or '.join(names)} work"


@dataclass(frozen=True)
class Band:
    """A roof over its launches, in its unit: the lowest and the highest; equal where they differ by less than WIDE.

    ``typical`` has what stands for the launches of each report.
    """

    low: float
    high: float
    typical: tuple[float, ...] = ()

    @classmethod
    def of(cls, value: float, low: float, high: float) -> Band:
        """The band of a roof whose typical ``value`` stands for launches from ``low`` to ``high`` (NaN: not given)."""
        found = cls(low if low > 0 else value, high if 0 < high < math.inf else value, (value,))
        return found if found.wide else cls(value, value)

    @property
    def line(self) -> float:
        """Where its line goes: the median inside the band, for nothing may have run at its edges."""
        return min(max(median(self.typical), self.low), self.high) if self.wide and self.typical else self.high

    @property
    def wide(self) -> bool:
        """Whether the launches' roofs differ by more than their clocks' jitter."""
        return self.high > (1 + WIDE) * self.low

    def joined(self, other: Band | None) -> Band:
        """One band over both; small differences between reports are no band, the higher value stands for both."""
        if other is None:
            return self
        typical = tuple(value for band in (other, self) for value in band.typical or (band.high,))
        both = Band(min(self.low, other.low), max(self.high, other.high), typical)
        return both if both.wide else Band(both.high, both.high)

    def text(self, unit: str, digits: int = 3) -> str:
        """The value with its unit, or the range: ``1.91 to 2.10 TFLOP/s``; "" where unknown."""
        if math.isnan(self.high):
            return ""
        return range_text(self.low, self.high, unit, digits) if self.wide else format_value(self.high, unit, digits)


def range_text(low: float, high: float, unit: str, digits: int = 3) -> str:
    """``low`` and ``high`` with the unit, once where both have the same prefix, to as many digits each."""
    small, great = format_value(low, unit, digits), format_value(high, unit, digits)
    (_, _, small_unit), (_, _, great_unit) = small.partition(" "), great.partition(" ")
    if small_unit != great_unit:
        return f"{small} to {great}"
    return " ".join(
        [_padded(small.split(" ")[0], digits), "to", _padded(great.split(" ")[0], digits), *filter(None, [great_unit])]
    )


def _padded(number: str, digits: int) -> str:
    """``2.1`` to three digits: 2.10; what has an exponent stays."""
    whole, _, part = number.partition(".")
    lacking = digits - len(whole.lstrip("-0")) - len(part)
    if "e" in number or lacking <= 0 or not whole.lstrip("-0"):
        return number
    return f"{whole}.{part}{'0' * lacking}"


@dataclass(frozen=True)
class Series:
    """The dots of one launch (or aggregate) and precision: (level id, FLOP/B) each, all at ``performance`` FLOP/s.

    ``step`` is its place in a sweep, -1 outside of sweeps; ``fma_share`` and ``mix_roof`` (FLOP/s) are NaN where unknown.
    """

    kernel: str
    precision: str
    performance: float
    seconds: float
    dots: tuple[tuple[str, float], ...]
    step: int = -1
    step_label: str = ""
    fma_share: float = math.nan
    mix_roof: float = math.nan


@dataclass(frozen=True)
class ChartRoof:
    """One roof of a panel; NaN where that origin is not given.  ``value`` in FLOP/s, OP/s, B/s, or FLOP/B for a wall.

    Where launches ran at clocks that differ, a roof is a band around ``measured`` and ``theoretical``, their medians: ``bands``
    has its edges by origin.
    """

    id: str
    kind: str
    level: str
    label: str
    unit: str
    measured: float
    theoretical: float
    bands: Mapping[str, Band] = field(default_factory=dict)

    @property
    def value(self) -> float:
        """What the hardware was seen to do, else what it should."""
        return self.theoretical if math.isnan(self.measured) else self.measured

    @property
    def values(self) -> tuple[float, ...]:
        """All that are given, measured first."""
        return tuple(value for value in (self.measured, self.theoretical) if not math.isnan(value))

    def band(self, origin: str) -> Band:
        """The lowest and highest value of an origin; both NaN where it is not given."""
        value = getattr(self, origin)
        return self.bands.get(origin) or Band(value, value)

    @property
    def highest(self) -> float:
        """What no launch was above: the upper edge of its band."""
        return self.band("theoretical" if math.isnan(self.measured) else "measured").high


@dataclass(frozen=True)
class Panel:
    """One set of axes."""

    title: str
    unit: str
    series: tuple[Series, ...]
    roofs: tuple[ChartRoof, ...]

    def of_kind(self, kind: str) -> list[ChartRoof]:
        """The roofs of one kind, highest first."""
        return sorted((roof for roof in self.roofs if roof.kind == kind), key=lambda roof: (-roof.value, roof.id))


@dataclass(frozen=True)
class ChartKernel:
    """A kernel in the picture; ``share`` of the time of all rows is NaN where unknown, ``mark`` goes behind its name."""

    label: str
    share: float
    mark: str = ""

    @property
    def marked(self) -> str:
        """The name with its mark."""
        return f"{self.label} {self.mark}".rstrip()


@dataclass(frozen=True)
class RooflineChart:
    """Everything a picture shows; ``total`` counts the kernels that have points, drawn or not."""

    panels: tuple[Panel, ...]
    kernels: tuple[ChartKernel, ...]
    total: int
    panels_left_out: int
    levels: tuple[str, ...]
    level_labels: dict[str, str]
    several_origins: bool
    empirical: str = "measured"


def empirical_name(frames: Frames) -> str:
    """What the roofs that are not theoretical are called: measured, or what others published, or both where GPUs differ."""
    found = {source == PUBLISHED for origin, source in rows(frames, "roofs", "origin", "source") if origin == "measured"}
    return " or ".join(name for name, known in (("measured", False), ("published", True)) if known in found) or "measured"


def chart(frames: Frames, limit: int = MAX_KERNELS, marks: Mapping[str, str] = MappingProxyType({})) -> RooflineChart:
    """The chart of a Roofline: its ``limit`` largest kernels by time, all their precisions and levels.

    ``marks`` by label of a kernel go behind its name.
    """
    series, labels = _series(frames)
    kernels, total = largest(frames, "kernels", labels, {one.kernel for _, _, one in series}, limit)
    kernels = tuple(replace(kernel, mark=marks.get(kernel.label, "")) for kernel in kernels)
    drawn = {kernel.label for kernel in kernels}
    groups: dict[tuple[str, str], list[tuple[str, Series]]] = {}
    for device, unit, one in series:
        if one.kernel in drawn:
            groups.setdefault((device, _group(one.precision, unit)), []).append((unit, one))
    order = sorted(groups, key=lambda key: (key[0], *precision_order(key[1])))
    several = len({device for device, _ in groups}) > 1
    roofs = _roof_rows(frames)
    panels = [_panel(roofs.get(device, []), device, group, groups[device, group], several) for device, group in order]
    kept = tuple(panels[:MAX_PANELS]) or _empty_panels(frames)
    present = {level for panel in kept for one in panel.series for level, _ in one.dots}
    present |= {roof.level for panel in kept for roof in panel.roofs if roof.level}
    level_labels = {level: clean(label) for level, label in rows(frames, "roofs", "level", "label") if level}
    origins = {origin for panel in kept for roof in panel.roofs for origin in _origins(roof)}
    left_out = max(len(panels) - MAX_PANELS, 0)
    several_origins = len(origins) > 1
    shown = tuple(level_order(present))
    return RooflineChart(kept, kernels, total, left_out, shown, level_labels, several_origins, empirical_name(frames))


def _origins(roof: ChartRoof) -> list[str]:
    return [name for name in ("measured", "theoretical") if not math.isnan(getattr(roof, name))]


def _group(precision: str, unit: str) -> str:
    """Panel a precision belongs to: all tensor types of one unit share one."""
    if precision.startswith("tensor"):
        return "tensor" if unit == "flop" else f"tensor.{unit}"
    return unit if unit == "inst" and not apart(precision) else precision


def is_part(one: Series, panel: Panel) -> bool:
    """Whether a series counts a part of what others of its panel count: some kind of instruction alone."""
    return is_instruction(one.precision) and any(one.precision.startswith(f"{other.precision}.") for other in panel.series)


def kernel_labels(frames: Frames) -> dict[tuple[str, str], str]:
    """(report, kernel) -> label: the short name, with the report where several reports have that kernel outside of a sweep."""
    pairs = {row for name in ("kernels", "points") for row in rows(frames, name, "report", "kernel", "step")}
    holders = Counter(kernel for kernel, _ in {(kernel, report) for report, kernel, step in pairs if step < 0})
    swept = {kernel for _, kernel, step in pairs if step >= 0}
    return {
        (report, kernel): clean(kernel)
        if holders[kernel] <= 1 or kernel in swept
        else f"{clean(kernel)} [{clean(PurePath(report).stem)}]"
        for report, kernel, _ in pairs
    }


def _series(frames: Frames) -> tuple[list[tuple[str, str, Series]], dict[tuple[str, str], str]]:
    """(device, unit of work, series) for all points that can stand on a log-log chart, and the labels of the kernels."""
    labels = kernel_labels(frames)
    found: dict[tuple[Any, ...], list[tuple[str, float]]] = {}
    about: dict[tuple[Any, ...], tuple[float, str, float, float]] = {}
    columns = ("device", "unit", "report", "launch", "kernel", "precision", "performance", "step")
    more = ("seconds", "label", "fma_share", "mix_roof", "level", "intensity")
    for *identity, seconds, label, share, mix_roof, level, intensity in rows(frames, "points", *columns, *more):
        if 0 < intensity < math.inf and 0 < identity[6] < math.inf:
            key = tuple(identity)
            found.setdefault(key, []).append((level, intensity))
            about.setdefault(key, (seconds, clean(label), share, mix_roof))
    result = []
    for key, dots in found.items():
        device, unit, report, _, kernel, precision, performance, step = key
        seconds, label, share, mix_roof = about[key]
        order = level_order({level for level, _ in dots})
        placed = tuple(sorted(dots, key=lambda dot: order.index(dot[0])))
        series = Series(labels[report, kernel], precision, performance, seconds, placed, step, label, share, mix_roof)
        result.append((device, unit, series))
    return result, labels


def largest(
    frames: Frames, name: str, labels: dict[tuple[str, str], str], drawable: set[str], limit: int
) -> tuple[tuple[ChartKernel, ...], int]:
    """The kernels that can be drawn, the longest first by the frame ``name``, and how many there are."""
    seconds, share = defaultdict[str, float](float), defaultdict[str, float](float)
    for report, kernel, time, part in rows(frames, name, "report", "kernel", "seconds", "time_share"):
        label = labels[report, kernel]
        seconds[label] += time if math.isfinite(time) else 0.0
        share[label] += part if math.isfinite(part) else 0.0
    order = sorted(drawable, key=lambda label: (-seconds[label], label))
    return tuple(ChartKernel(label, share[label] or math.nan) for label in order[:limit]), len(order)


def _panel(roofs: Sequence[_RoofRow], device: str, group: str, series: list[tuple[str, Series]], several: bool) -> Panel:
    unit = series[0][0]
    precisions = {one.precision for _, one in series}
    levels = {level for _, one in series for level, _ in one.dots}
    title = precision_label(next(iter(precisions))) if len(precisions) == 1 else _group_title(group)
    title = f"{title}, {clean(device)}" if several else title
    # A link to the host is a decade or more slower than the rest: without dots there it would only squeeze the chart.
    wanted = [roof for roof in _roofs(roofs, precisions, unit) if roof.level in levels or not on_request(roof.level)]
    return Panel(title, unit, tuple(one for _, one in series), tuple(wanted))


def _group_title(group: str) -> str:
    return {"tensor": "Tensor", "mixed": "All pipes", EXECUTED: precision_label(EXECUTED)}.get(
        group, "Tensor, integer" if group.startswith("tensor") else group.upper()
    )


def _covers(roof_precision: str, precisions: set[str]) -> bool:
    """Whether a compute roof limits one of ``precisions``; the sum over all pipes is limited by every one."""
    if "mixed" in precisions:
        return True
    return any(
        p == roof_precision or p.startswith(f"{roof_precision}.") or roof_precision.startswith(f"{p}.") for p in precisions
    )


def _goes(kind: str, owner: str, precisions: set[str]) -> bool:
    """Whether a bandwidth or wall goes with some precisions; ``owner`` is the only one that it is for, if any."""
    if any(map(apart, precisions)):
        return owner in precisions
    return owner in precisions or not owner or (kind == "wall" and not apart(owner))


def _roof_rows(frames: Frames) -> dict[str, list[_RoofRow]]:
    """What the frame of roofs says of each GPU: of thousands of platforms each is one."""
    found: dict[str, list[_RoofRow]] = {}
    columns = ("roof", "kind", "level", "precision", "label", "unit", "origin", "value", "value_min", "value_max")
    for device, *row in rows(frames, "roofs", "device", *columns):
        found.setdefault(device, []).append(tuple(row))
    return found


def _roofs(found: Sequence[_RoofRow], precisions: set[str], unit: str) -> list[ChartRoof]:
    """The roofs of one GPU, of its rows, for some precisions, over all of its launches and reports."""
    bands: dict[tuple[str, str], dict[str, Band]] = {}
    about: dict[tuple[str, str], tuple[str, str, str]] = {}
    owners: dict[tuple[str, str], str] = {}
    for roof, kind, level, precision, label, roof_unit, origin, value, low, high in found:
        if not 0 < value < math.inf:
            continue
        if not (
            _covers(precision, precisions) and roof_unit == f"{unit}/s"
            if kind == "compute"
            else _goes(kind, precision, precisions)
        ):
            continue
        owners[kind, roof] = precision
        about[kind, roof] = (level, clean(label), roof_unit)
        by_origin = bands.setdefault((kind, roof), {})
        by_origin[origin] = Band.of(value, low, high).joined(by_origin.get(origin))
    if "mixed" in precisions:
        tops = _tops({key: {origin: band.high for origin, band in found.items()} for key, found in bands.items()}, owners)
        bands = {key: found for key, found in bands.items() if key in tops}
    return [_roof(roof, kind, about[kind, roof], by_origin) for (kind, roof), by_origin in bands.items()]


def _roof(roof: str, kind: str, about: tuple[str, str, str], bands: Mapping[str, Band]) -> ChartRoof:
    measured, theoretical = (bands[origin].line if origin in bands else math.nan for origin in ("measured", "theoretical"))
    wide = {origin: band for origin, band in bands.items() if band.wide}
    return ChartRoof(roof, kind, *about, measured, theoretical, wide)


def _tops(values: dict[tuple[str, str], dict[str, float]], owners: dict[tuple[str, str], str]) -> set[tuple[str, str]]:
    """Roofs without the lower compute roofs of each precision: over all pipes they would be too many lines."""
    best: dict[str, tuple[str, str]] = {}
    for key, by_origin in values.items():
        if key[0] == "compute" and (
            owners[key] not in best or max(by_origin.values()) > max(values[best[owners[key]]].values())
        ):
            best[owners[key]] = key
    return {key for key in values if key[0] != "compute"} | set(best.values())


def _empty_panels(frames: Frames) -> tuple[Panel, ...]:
    """For a Roofline without points: the roofs of its first GPU that count FLOP."""
    unit = DEFAULT_UNIT.get(view_of(frames), "flop")
    wanted = _roofs(next(iter(_roof_rows(frames).values()), []), {"mixed"}, unit)
    return (Panel("", unit, (), tuple(roof for roof in wanted if not on_request(roof.level))),)
