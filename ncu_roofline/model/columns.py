"""The columns of the three frames, declared once, in `data/columns.toml`: name, dtype, unit and meaning."""

from __future__ import annotations

from typing import Any

from ncu_roofline.chips.fields import DATA, read
from ncu_roofline.rendering.document import Column

_DECLARED = read(DATA / "columns.toml", dict[str, Any])


def _columns(rows: list[Any]) -> tuple[Column, ...]:
    found: list[Column] = []
    for row in rows:
        if isinstance(row, str):  # those of another list
            found += _columns(_DECLARED[row])
        else:
            stated: Any = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
            found.append(Column(**({"unit": ""} | stated)))
    return tuple(found)


WHERE, POINTS, ROOFS, KERNELS = (_columns(_DECLARED[name]) for name in ("where", "points", "roofs", "kernels"))

UNUSED = "unused"
"""Origin of a measured roof that launches are not held against: theory judges in its place."""
LEVELS_WITH_COLUMNS = tuple(one.name.removeprefix("bandwidth_") for one in KERNELS if one.name.startswith("bandwidth_"))
"""Levels whose bandwidth and share of the roof have columns of their own in the frame of kernels."""
