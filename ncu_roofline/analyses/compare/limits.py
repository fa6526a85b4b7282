"""What limits a compared kernel: its name for people, and whether it gets faster with the SM clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ncu_roofline.chips import load_spec, load_units

_ANY_CLOCK = "memory"  # the whole memory system: which part of it is full is not known


def limit_of(row: Mapping[str, Any]) -> str:
    """Id of what limits the kernel of the new report: its nearest limit, else what binds its work; "" if unknown."""
    limit = str(row["limit"])
    return limit if limit and limit != _ANY_CLOCK else str(row["binds"])


def at_sm_clock(limit: str) -> bool:
    """Whether a level, compute roof or hardware unit is faster at a higher SM clock: all but memory behind the caches."""
    level = next((one for one in load_spec().levels if one.id == limit), None)
    if level:
        return not level.has_own_clock
    units = {unit.id for unit in load_units().units} - {_ANY_CLOCK}
    return limit in units or _precision(limit) is not None or "." in limit  # roofs of tables: x.peak


def described(limit: str) -> str:
    """Where a kernel stands: "nearest its FP32 FMA roof", "nearest the limit of its issue slots"."""
    levels = {level.id: level.label for level in load_spec().levels}
    if limit in levels:
        return f"nearest its {levels[limit]} roof"
    units = {unit.id: unit.label for unit in load_units().units}
    if limit in units:
        return f"nearest the limit of its {units[limit]}"
    return f"nearest its {_precision(limit) or limit} roof"


def _precision(roof: str) -> str | None:
    """The label of a compute roof: FP32 FMA, Tensor FP16; None if it is none of ours."""
    return next((precision.roof_label(roof) for precision in load_spec().precisions if roof in precision.roof_ids()), None)
