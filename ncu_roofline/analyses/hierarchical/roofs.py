"""The roofs of a chart: over which launches and reports they stand, and which go with its precisions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ncu_roofline.analyses.hierarchical.style import apart
from ncu_roofline.base.texts import clean
from ncu_roofline.base.units import format_value, range_text
from ncu_roofline.model.columns import UNUSED
from ncu_roofline.rendering.frames import Frames, rows

RoofRow = tuple[Any, ...]  # columns of the frame of roofs
WIDE = 0.01  # clocks jitter by less; what differs by more is drawn and written as a range
_COLUMNS = ("roof", "kind", "level", "precision", "label", "unit", "origin", "value", "value_min", "value_max")


class Band(NamedTuple):
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
    def wide(self) -> bool:
        """Whether the launches' roofs differ by more than their clocks' jitter."""
        return self.high > (1 + WIDE) * self.low

    @property
    def line(self) -> float:
        """Where its line goes: the median inside the band, for nothing may have run at its edges."""
        from statistics import median

        return min(max(median(self.typical), self.low), self.high) if self.wide and self.typical else self.high

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


class ChartRoof(NamedTuple):
    """One roof over all launches and reports: ``bands`` by origin, measured and theoretical, as far as these are given.

    Values are in FLOP/s, OP/s, B/s, or FLOP/B for a wall, NaN where an origin is not given; of a band the median.
    """

    id: str
    kind: str
    level: str
    precision: str
    label: str
    unit: str
    bands: Mapping[str, Band]

    def band(self, origin: str) -> Band:
        """The lowest and highest value of an origin; both NaN where it is not given."""
        return self.bands.get(origin) or Band(math.nan, math.nan)

    @property
    def origin(self) -> str:
        """Where the value that counts comes from."""
        return "measured" if "measured" in self.bands else "theoretical"

    @property
    def value(self) -> float:
        """What the hardware was seen to do, else what it should."""
        return self.band(self.origin).line

    @property
    def values(self) -> tuple[float, ...]:
        """All that are given, measured first."""
        return tuple(self.bands[origin].line for origin in ("measured", "theoretical") if origin in self.bands)

    @property
    def highest(self) -> float:
        """What no launch was above: the upper edge of its band."""
        return self.band(self.origin).high


def roof_rows(frames: Frames) -> dict[str, list[RoofRow]]:
    """What the frame of roofs says of each GPU: of thousands of platforms each is one."""
    found: dict[str, list[RoofRow]] = {}
    for device, *row in rows(frames, "roofs", "device", *_COLUMNS):
        found.setdefault(device, []).append(tuple(row))
    return found


def joined_roofs(given: Iterable[RoofRow]) -> list[ChartRoof]:
    """Each roof over all of its launches and reports."""
    found: dict[tuple[str, str], ChartRoof] = {}
    for roof, kind, level, precision, label, unit, origin, *values in given:
        if origin != UNUSED:
            known = found[kind, roof].bands if (kind, roof) in found else {}
            bands = {**known, origin: Band.of(*values).joined(known.get(origin))}
            found[kind, roof] = ChartRoof(roof, kind, level, precision, clean(label), unit, bands)
    return list(found.values())


def roofs_of(given: Iterable[RoofRow], precisions: set[str], unit: str) -> list[ChartRoof]:
    """The roofs of one GPU, of its rows, for some precisions."""

    def wanted(row: RoofRow) -> bool:
        _, kind, _, precision, _, roof_unit, _, value, *_ = row
        if not 0 < value < math.inf:
            return False
        return (
            covers(precision, precisions) and roof_unit == f"{unit}/s"
            if kind == "compute"
            else _goes(kind, precision, precisions)
        )

    found = joined_roofs(filter(wanted, given))
    return tops(found, ()) if "mixed" in precisions else found


def covers(roof_precision: str, precisions: set[str]) -> bool:
    """Whether a compute roof limits one of ``precisions``; the sum over all pipes is limited by every one."""
    related = (
        p == roof_precision or p.startswith(f"{roof_precision}.") or roof_precision.startswith(f"{p}.") for p in precisions
    )
    return "mixed" in precisions or any(related)


def _goes(kind: str, owner: str, precisions: set[str]) -> bool:
    """Whether a bandwidth or wall goes with some precisions; ``owner`` is the only one that it is for, if any."""
    return owner in precisions or (not any(map(apart, precisions)) and (not owner or (kind == "wall" and not apart(owner))))


def tops(roofs: Sequence[ChartRoof], bind: Iterable[str]) -> list[ChartRoof]:
    """The roofs, of compute roofs the highest of each precision and those that ``bind``."""
    best: dict[str, ChartRoof] = {}
    for roof in roofs:
        if roof.kind == "compute" and (roof.precision not in best or roof.value > best[roof.precision].value):
            best[roof.precision] = roof
    named = set(bind)
    return [roof for roof in roofs if roof.kind != "compute" or roof in best.values() or roof.id in named]
