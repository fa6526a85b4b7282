"""The columns of the tables of a comparison, and what a threshold can name of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from ncu_roofline.chips.fields import DATA, read
from ncu_roofline.rendering.document import columns_of

_OF = columns_of(read(DATA / "columns" / "comparison.toml", dict[str, Any]))
COMPARISON_KERNELS, COMPARISON_LEVELS, COMPARISON_SUMMARY = (
    (*_OF["where"], *_OF[name]) for name in ("kernels", "levels", "summary")
)
RUN_SUMMARY = (*COMPARISON_SUMMARY, *_OF["run"])
COMPARISON_THRESHOLDS, COMPARISON_ROOFS, BUDGET, SEEN = map(_OF.__getitem__, ("thresholds", "roofs", "budget", "seen"))
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


QUANTITIES = read(DATA / "quantities.toml", dict[str, Quantity])
