"""The tables of the instruction roofline: the frames of the model, counted in warp instructions and transactions."""

from __future__ import annotations

from dataclasses import replace

from ncu_roofline.model.columns import KERNELS, POINTS, ROOFS
from ncu_roofline.rendering.frames import Column

_COUNTED_IN = {"flop": "inst", "byte": "txn"}
_MEANINGS = {"work": "warp instructions executed"}


def _counted(column: Column) -> Column:
    unit = "/".join(_COUNTED_IN.get(word, word) for word in column.unit.split("/"))
    return replace(column, unit=unit, meaning=_MEANINGS.get(column.name, column.meaning))


TABLES = {"points": tuple(map(_counted, POINTS)), "roofs": ROOFS, "kernels": tuple(map(_counted, KERNELS))}
