"""The columns of the three frames, which are data: `data/columns/roofline.toml`."""

from __future__ import annotations

from typing import Any

from ncu_roofline.chips.fields import DATA, read
from ncu_roofline.rendering.document import columns_of

_OF = columns_of(read(DATA / "columns" / "roofline.toml", dict[str, Any]))
WHERE, POINTS, ROOFS, KERNELS = map(_OF.__getitem__, ("where", "points", "roofs", "kernels"))

UNUSED = "unused"
"""Origin of a measured roof that launches are not held against: theory judges in its place."""
LEVELS_WITH_COLUMNS = tuple(one.name.removeprefix("bandwidth_") for one in KERNELS if one.name.startswith("bandwidth_"))
"""Levels whose bandwidth and share of the roof have columns of their own in the frame of kernels."""
