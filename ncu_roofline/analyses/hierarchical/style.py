"""How charts look: colours per memory level, markers per kernel, themes, and readable names of ids.

Colours are Okabe and Ito's palette (Color Universal Design, 2008), which readers with any colour vision can tell apart; on
dark ground the same hues, lightened.  Levels are also told apart by their place and their label, never by colour alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ncu_roofline.units import UNITS


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

# What binds a kernel in the time view; "" where a roof is unknown.  Label and colours as of a memory level.
BOUNDS = {
    "memory": Level("memory-bound", "#C65100", "#FF8642"),
    "compute": Level("compute-bound", "#0072B2", "#3FA7E6"),
    "overhead": Level("overhead-bound", "#B4578C", "#E59ACB"),
    "": Level("roof unknown", "#6B6B6B", "#A8A8A8"),
}


_CORE_ORDER = ("fp64", "fp32", "fp16", "bf16", "int32")


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


# Kinds of instruction, in the place of a precision.
INSTRUCTIONS = {"inst": "Warp instructions", "inst.global_ld": "Global loads", "inst.shared": "Shared loads and stores"}
# What is counted in transactions of another size than the rest needs axes of its own.
APART = ("inst.shared",)


@dataclass(frozen=True)
class Counted:
    """What goes with a unit of work: the name of the intensity and its unit, and what the performance is of."""

    intensity: str
    intensity_unit: str
    performance_of: str = ""

    @property
    def intensity_axis(self) -> str:
        """Name of the axis of intensities."""
        return f"{self.intensity} [{UNITS[self.intensity_unit].symbol}]"

    def performance_axis(self, symbol: str) -> str:
        """Name of the axis of performances in a unit of this symbol."""
        return f"Performance [{self.performance_of}{symbol}]"


COUNTED = {
    "flop": Counted("Arithmetic intensity", "flop/byte"),
    "op": Counted("Arithmetic intensity", "op/byte"),
    "inst": Counted("Warp instructions per transaction", "inst/txn", "warp "),
}


# Unit of work of a view without points.
DEFAULT_UNIT = {"instruction": "inst"}


def precision_label(precision: str) -> str:
    """Readable form of a precision id: "tensor.fp16.wgmma" is "Tensor FP16 wgmma"."""
    if precision in INSTRUCTIONS:
        return INSTRUCTIONS[precision]
    if precision == "mixed":
        return "All pipes"
    family, *rest = precision.split(".")
    if family != "tensor" or not rest:
        return " ".join([family.upper(), *rest])
    types = re.sub(r"(?<=\d)(?=[a-z])", "/", rest[0]).upper()
    return " ".join(["Tensor", types, *("mma.sync" if part == "mma" else part for part in rest[1:])])


def precision_order(precision: str) -> tuple[int, str]:
    """Sort key: core precisions from wide to narrow, integers after them, then tensor types, "mixed" last."""
    if precision in _CORE_ORDER:
        return _CORE_ORDER.index(precision), precision
    return (len(_CORE_ORDER) + (precision == "mixed"), precision)
