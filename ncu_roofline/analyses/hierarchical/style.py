"""How levels and precisions look and are called: colours, order, readable names.

Colours are Okabe and Ito's palette (Color Universal Design, 2008), which readers with any colour vision can tell apart; on
dark ground the same hues, lightened.  Levels are also told apart by their place and their label, never by colour alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from ncu_roofline.base.units import UNITS
from ncu_roofline.chips import Level, load_instructions, load_spec
from ncu_roofline.chips.palette import PLAIN, SPARE
from ncu_roofline.chips.tables import EXECUTED, Kind


class Style(NamedTuple):
    """Of a memory level: label where the roofs give none, colours on light and dark ground."""

    label: str
    light: str
    dark: str


class Counted(NamedTuple):
    """What goes with a unit of work: the axis of intensities, their unit, and what the performance is of."""

    intensity_axis: str
    intensity_unit: str
    performance_of: str = ""


COUNTED = {
    "flop": Counted(f"Arithmetic intensity [{UNITS['flop/byte'].symbol}]", "flop/byte"),
    "op": Counted(f"Arithmetic intensity [{UNITS['op/byte'].symbol}]", "op/byte"),
    "inst": Counted(f"Warp instructions per transaction [{UNITS['inst/txn'].symbol}]", "inst/txn", "warp "),
}
# Unit of work of a view without points.
DEFAULT_UNIT = {"instruction": "inst"}


@lru_cache(maxsize=1)
def _levels() -> dict[str, Level]:
    return {level.id: level for level in load_spec().levels}


@lru_cache(maxsize=1)
def _kinds() -> dict[str, Kind]:
    return {kind.id: kind for kind in load_instructions().kinds}


def level_order(levels: Iterable[str]) -> list[str]:
    """Level ids, each once, innermost first, unknown ones last by name."""
    known = list(_levels())
    return sorted(set(levels), key=lambda level: (known.index(level) if level in known else len(known), level))


def level_style(level: str) -> Style:
    """The style of a level id; unknown ids get a label of their own and a spare colour."""
    known = _levels().get(level)
    return Style(known.short, *known.color) if known else Style(level, *SPARE[sum(level.encode()) % len(SPARE)])


def on_request(level: str) -> bool:
    """Whether a level is drawn only where it is asked for or has dots."""
    return level in _levels() and _levels()[level].on_request


def bounds() -> dict[str, Style]:
    """What binds a kernel in the time view; "" where a roof is unknown."""
    spec = load_spec()
    link = next(level for level in spec.levels if level.domain == "link")
    colors = {"memory": spec.level(spec.memory).color, "compute": spec.level(spec.chain[0]).color, "overhead": link.color}
    return {**{name: Style(f"{name}-bound", *color) for name, color in colors.items()}, "": Style("roof unknown", *PLAIN)}


def is_instruction(precision: str) -> bool:
    """Whether it is a kind of instruction, in the place of a precision."""
    return precision.partition(".")[0] == EXECUTED


def apart(precision: str) -> bool:
    """What is counted in transactions of another size than the rest needs axes of its own."""
    return is_instruction(precision) and precision in _kinds() and _kinds()[precision].bytes != load_instructions().transaction


def precision_label(precision: str) -> str:
    """Readable form of a precision id: "tensor.fp16.wgmma" is "Tensor FP16 wgmma"."""
    if is_instruction(precision) and precision in _kinds():
        return _kinds()[precision].label
    if precision == "mixed":
        return "All pipes"
    family, *rest = precision.split(".")
    if family != "tensor":
        return " ".join([family.upper(), *rest])
    types = [re.sub(r"(?<=\d)(?=[a-z])", "/", one).upper() for one in rest[:1]]
    return " ".join(["Tensor", *types, *("mma.sync" if part == "mma" else part for part in rest[1:])])


def precision_order(precision: str) -> tuple[int, str]:
    """Sort key: core precisions from wide to narrow, integers after them, then tensor types, "mixed" last."""
    core = [one.id for one in load_spec().precisions if one.kind == "core"]
    return (core.index(precision) if precision in core else len(core) + (precision == "mixed"), precision)


def label_of(name: str) -> str:
    """What a level or a precision is called."""
    return level_style(name).label if name in _levels() else precision_label(name)
