"""How charts look: colours per memory level, markers per kernel, themes, and readable names of ids.

Colours are Okabe and Ito's palette (Color Universal Design, 2008), which readers with any colour vision can tell apart; on
dark ground the same hues, lightened.  Levels are also told apart by their place and their label, never by colour alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Level:
    """A memory level: label where the roofs give none, colours on light and dark ground."""

    label: str
    light: str
    dark: str


# Innermost first.
LEVELS = {
    "l1": Level("L1", "#0072B2", "#3FA7E6"),
    "shared": Level("Shared", "#3B9CCB", "#8AD0F7"),
    "l2": Level("L2", "#00875F", "#1FC494"),
    "dram": Level("DRAM", "#C65100", "#FF8642"),
    "system": Level("System", "#B4578C", "#E59ACB"),
}
_OTHER_LEVELS = (Level("", "#8A6D00", "#E6B800"), Level("", "#6B6B6B", "#A8A8A8"), Level("", "#7A4FBF", "#B79BEF"))


@dataclass(frozen=True)
class Theme:
    """Colours of everything that is no level."""

    ground: str
    text: str
    faint: str
    grid: str
    compute: str
    connector: str
    dark: bool


THEMES = {
    "light": Theme("#FFFFFF", "#1A1A1A", "#5C5C5C", "#E7E7E7", "#333333", "#9A9A9A", False),
    "dark": Theme("#14181D", "#ECEFF2", "#A3ABB4", "#2A3038", "#D5DAE0", "#707A85", True),
}

# Shapes that stay apart at 5 points; kernels beyond these get a number too.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "<", ">", "*", "h")

_CORE_ORDER = ("fp64", "fp32", "fp16")


def level_order(levels: set[str]) -> list[str]:
    """Level ids, innermost first, unknown ones last by name."""
    known = list(LEVELS)
    return sorted(levels, key=lambda level: (known.index(level) if level in LEVELS else len(known), level))


def level_style(level: str) -> Level:
    """The style of a level id; unknown ids get a label of their own and a spare colour."""
    if level in LEVELS:
        return LEVELS[level]
    spare = _OTHER_LEVELS[sum(level.encode()) % len(_OTHER_LEVELS)]
    return Level(level, spare.light, spare.dark)


def precision_label(precision: str) -> str:
    """Readable form of a precision id: "tensor.fp16.wgmma" is "Tensor FP16 wgmma"."""
    if precision == "mixed":
        return "All pipes"
    family, *rest = precision.split(".")
    if family != "tensor" or not rest:
        return " ".join([family.upper(), *rest])
    types = re.sub(r"(?<=\d)(?=[a-z])", "/", rest[0]).upper()
    return " ".join(["Tensor", types, *("mma.sync" if part == "mma" else part for part in rest[1:])])


def precision_order(precision: str) -> tuple[int, str]:
    """Sort key: core precisions from wide to narrow, then tensor types, "mixed" last."""
    if precision in _CORE_ORDER:
        return _CORE_ORDER.index(precision), precision
    return (len(_CORE_ORDER) + (precision == "mixed"), precision)
