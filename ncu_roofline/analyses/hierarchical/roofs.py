"""The roofs of a panel of a chart: over which launches and reports they stand, and which go with its precisions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ncu_roofline.analyses.hierarchical.style import apart
from ncu_roofline.base.texts import clean
from ncu_roofline.base.units import format_value
from ncu_roofline.base.units import range_text as range_text
from ncu_roofline.model.columns import UNUSED
from ncu_roofline.rendering.frames import Frames, rows

RoofRow = tuple[Any, ...]  # columns of the frame of roofs
WIDE = 0.01  # clocks jitter by less; what differs by more is drawn and written as a range


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
        from statistics import median

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
    precision: str = ""

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


def covers(roof_precision: str, precisions: set[str]) -> bool:
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


def roof_rows(frames: Frames) -> dict[str, list[RoofRow]]:
    """What the frame of roofs says of each GPU: of thousands of platforms each is one."""
    found: dict[str, list[RoofRow]] = {}
    columns = ("roof", "kind", "level", "precision", "label", "unit", "origin", "value", "value_min", "value_max")
    for device, *row in rows(frames, "roofs", "device", *columns):
        found.setdefault(device, []).append(tuple(row))
    return found


def roofs_of(found: Sequence[RoofRow], precisions: set[str], unit: str) -> list[ChartRoof]:
    """The roofs of one GPU, of its rows, for some precisions, over all of its launches and reports."""
    bands: dict[tuple[str, str], dict[str, Band]] = {}
    about: dict[tuple[str, str], tuple[str, str, str]] = {}
    owners: dict[tuple[str, str], str] = {}
    for roof, kind, level, precision, label, roof_unit, origin, value, low, high in found:
        if not 0 < value < math.inf or origin == UNUSED:
            continue
        if not (
            covers(precision, precisions) and roof_unit == f"{unit}/s"
            if kind == "compute"
            else _goes(kind, precision, precisions)
        ):
            continue
        owners[kind, roof] = precision
        about[kind, roof] = (level, clean(label), roof_unit)
        by_origin = bands.setdefault((kind, roof), {})
        by_origin[origin] = Band.of(value, low, high).joined(by_origin.get(origin))
    result = [_roof(*key, about[key], by_origin, owners[key]) for key, by_origin in bands.items()]
    return tops(result, ()) if "mixed" in precisions else result


def _roof(kind: str, roof: str, about: tuple[str, str, str], bands: Mapping[str, Band], owner: str) -> ChartRoof:
    measured, theoretical = (bands[origin].line if origin in bands else math.nan for origin in ("measured", "theoretical"))
    wide = {origin: band for origin, band in bands.items() if band.wide}
    return ChartRoof(roof, kind, *about, measured, theoretical, wide, owner)


def tops(roofs: Sequence[ChartRoof], bind: Iterable[str]) -> list[ChartRoof]:
    """The roofs, of compute roofs the highest of each precision and those that ``bind``."""
    best: dict[str, ChartRoof] = {}
    for roof in roofs:
        if roof.kind == "compute" and (roof.precision not in best or roof.value > best[roof.precision].value):
            best[roof.precision] = roof
    named = set(bind)
    return [roof for roof in roofs if roof.kind != "compute" or roof in best.values() or roof.id in named]
