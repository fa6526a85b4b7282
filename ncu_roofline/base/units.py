"""The unit table: how SI values are written for people.

Everything inside the program is SI (FLOP, byte, second, Hz and their quotients); only this module scales.
"""

from __future__ import annotations

import math
from typing import NamedTuple

_PREFIXES = {-12: "p", -9: "n", -6: "\N{MICRO SIGN}", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}


class Unit(NamedTuple):
    """A unit: its symbol and whether SI prefixes (decimal, powers of 1000) go with it."""

    symbol: str
    prefixed: bool = True


UNITS = {
    "flop": Unit("FLOP"),
    "flop/s": Unit("FLOP/s"),
    "op": Unit("OP"),
    "op/s": Unit("OP/s"),
    "byte": Unit("B"),
    "byte/s": Unit("B/s"),
    "flop/byte": Unit("FLOP/B", prefixed=False),
    "op/byte": Unit("OP/B", prefixed=False),
    "inst": Unit("inst"),  # warp instructions
    "thread_inst": Unit("thread inst"),
    "inst/s": Unit("IPS"),
    "txn": Unit("TXN"),  # memory transactions
    "txn/s": Unit("TXN/s"),
    "inst/txn": Unit("inst/TXN", prefixed=False),
    "second": Unit("s"),
    "hertz": Unit("Hz"),
    "percent": Unit("%", prefixed=False),
    "ratio": Unit("", prefixed=False),
}


def format_value(value: float, unit: str, digits: int = 4) -> str:
    """``value`` in base units of ``unit`` (a key of UNITS) with SI prefix: ``format_value(2.5e12, "flop/s")`` is "2.5 TFLOP/s".

    NaN is written as "n/a": a missing value never looks like a number.  Raises KeyError for an unknown unit.
    """
    entry = UNITS[unit]
    if math.isnan(value):
        return "n/a"
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}\N{INFINITY} {entry.symbol}".rstrip()
    exponent = 0
    if entry.prefixed and value != 0:
        exponent = min(max(3 * math.floor(math.log10(abs(value)) / 3), min(_PREFIXES)), max(_PREFIXES))
        if f"{abs(value) / 10.0**exponent:.{digits}g}" == f"{1000:.{digits}g}":  # 999.99 k reads 1 M
            exponent = min(exponent + 3, max(_PREFIXES))
            if abs(value) < 10.0**exponent:  # rounded up to the next prefix, and not down again there
                value = math.copysign(10.0**exponent, value)
    return f"{value / 10.0**exponent:.{digits}g} {_PREFIXES[exponent]}{entry.symbol}".rstrip()


def time_text(seconds: float) -> str:
    """A run time with its unit."""
    return format_value(seconds, "second", 3)


def intensity_text(value: float) -> str:
    """An intensity in three digits, "" for a missing level: 2.58, 0.0913, 3.1e-05."""
    if not math.isfinite(value):
        return ""
    return f"{value:.0f}" if 1000 <= value < 1e6 else f"{value:.3g}"


def range_text(low: float, high: float, unit: str, digits: int = 3) -> str:
    """``low`` and ``high`` with the unit, once where both have the same prefix, to as many digits each."""
    texts = [format_value(value, unit, digits).partition(" ") for value in (low, high)]
    if texts[0][2] != texts[1][2]:
        return " to ".join(map("".join, texts))
    numbers = []
    for number, _, _ in texts:  # 2.1 to three digits: 2.10; what has an exponent stays
        whole, _, part = number.partition(".")
        figures = whole.lstrip("-0")
        lacking = digits - len(figures) - len(part)
        numbers.append(f"{whole}.{part}{'0' * lacking}" if "e" not in number and figures and lacking > 0 else number)
    return f"{' to '.join(numbers)} {texts[0][2]}".rstrip()


def percent(share: float) -> str:
    """A ratio as a percentage of three digits at most, "n/a" for a missing one; what is not zero never reads 0."""
    if not math.isfinite(share):
        return "n/a"
    if 0 < share < 0.0005:
        return "<0.1 %"
    return f"{100 * share:.0f} %" if share >= 0.995 else f"{100 * share:.1f} %"


def factor(ratio: float) -> str:
    """How many times as long or as much: 1.03x, 41.5x, 2,400x, "n/a" for a missing one."""
    if not math.isfinite(ratio):
        return "n/a"
    return f"{ratio:,.{2 if ratio < 9.995 else 1 if ratio < 99.95 else 0}f}x"
