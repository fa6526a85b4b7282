"""The columns of the tables of a comparison, and what a threshold can name of them."""

from __future__ import annotations

from typing import NamedTuple

from ncu_roofline.model.columns import columns_of

_OF = columns_of("comparison")
COMPARISON_KERNELS, COMPARISON_LEVELS, COMPARISON_SUMMARY = (
    (*_OF["where"], *_OF[name]) for name in ("kernels", "levels", "summary")
)
COMPARISON_THRESHOLDS, COMPARISON_ROOFS = _OF["thresholds"], _OF["roofs"]
TABLES = {
    "kernels": COMPARISON_KERNELS,
    "levels": COMPARISON_LEVELS,
    "summary": COMPARISON_SUMMARY,
    "thresholds": COMPARISON_THRESHOLDS,
    "roofs": COMPARISON_ROOFS,
}


class Quantity(NamedTuple):
    """What a threshold can name: ``column`` of the kernels or, with ``parts`` behind its name, of the levels."""

    column: str
    unit: str
    parts: tuple[str, ...] = ()


_P, _L, _PL = "PRECISION", "LEVEL", "PRECISION.LEVEL"
QUANTITIES = {
    "time": Quantity("seconds", "second"),
    "time.raw": Quantity("seconds", "second"),
    "time.normalised": Quantity("seconds_normalised", "second"),
    "time.total": Quantity("total_seconds", "second"),
    "cycles": Quantity("cycles", ""),
    "clock": Quantity("clock", "hertz"),
    "launches": Quantity("launches", ""),
    "share": Quantity("time_share", "ratio"),
    "noise": Quantity("noise", "ratio"),
    "flops": Quantity("work", "flop", ("", _P)),
    "flops.total": Quantity("total_work", "flop", ("", _P)),
    "bytes": Quantity("traffic", "byte", (_L,)),
    "bytes.total": Quantity("total_traffic", "byte", (_L,)),
    "bandwidth": Quantity("bandwidth", "byte/s", (_L,)),
    "intensity": Quantity("intensity", "flop/byte", (_L, _PL)),
    "performance": Quantity("performance", "flop/s", ("", _P)),
    "fraction": Quantity("fraction", "ratio", ("", _P, _L, _PL)),
}
