"""Roofs of launches that ran at different clocks: one number where they agree, else the band from the lowest to the highest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from ncu_roofline.units import format_value

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
