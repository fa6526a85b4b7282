"""How levels, precisions and roofs look and are called, and which roofs go with a chart.

Colours are Okabe and Ito's palette (Color Universal Design, 2008), which readers with any colour vision can tell apart; on
dark ground the same hues, lightened.  Levels are also told apart by their place and their label, never by colour alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from ncu_roofline.base.groups import grouped
from ncu_roofline.base.texts import clean
from ncu_roofline.base.units import UNITS, format_value, range_text
from ncu_roofline.chips import Level, load_instructions, load_spec
from ncu_roofline.chips.spec import PLAIN, SPARE
from ncu_roofline.chips.tables import EXECUTED
from ncu_roofline.model.columns import UNUSED
from ncu_roofline.model.work import MIXED
from ncu_roofline.rendering.frames import Frames, rows, view_of

WIDE = 0.01  # clocks jitter by less; roofs that differ by more are drawn and written as a range


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


def default_unit(frames: Frames) -> str:
    """Unit of work of a view without points."""
    return "inst" if view_of(frames) == "instruction" else "flop"


@cache
def _levels() -> dict[str, Level]:
    return {level.id: level for level in load_spec().levels}


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


def apart(precision: str) -> bool:
    """What is counted in transactions of another size than the rest needs axes of its own."""
    counted = load_instructions()
    return any(kind.id == precision and kind.bytes != counted.transaction for kind in counted.kinds)


def precision_label(precision: str) -> str:
    """Readable form of an id of a precision or kind of instruction: "tensor.fp16.wgmma" is "Tensor FP16 wgmma"."""
    family, *rest = precision.split(".")
    if family == EXECUTED:
        return next((kind.label for kind in load_instructions().kinds if kind.id == precision), precision)
    if precision == MIXED:
        return "All pipes"
    if family != "tensor":
        return " ".join([family.upper(), *rest])
    types = [re.sub(r"(?<=\d)(?=[a-z])", "/", one).upper() for one in rest[:1]]
    return " ".join(["Tensor", *types, *("mma.sync" if part == "mma" else part for part in rest[1:])])


def precision_order(precision: str) -> tuple[int, str]:
    """Sort key: core precisions from wide to narrow, integers after them, then tensor types, "mixed" last."""
    core = [one.id for one in load_spec().precisions if one.kind == "core"]
    return (core.index(precision) if precision in core else len(core) + (precision == MIXED), precision)


def label_of(name: str) -> str:
    return level_style(name).label if name in _levels() else precision_label(name)


class Band(NamedTuple):
    """A roof over its launches, in its unit: the lowest and the highest, which are one but where they differ by more than WIDE.

    ``line`` is where it is drawn: the median inside the band, for nothing may have run at its edges.
    """

    low: float
    high: float
    line: float

    @classmethod
    def of(cls, spans: Sequence[Sequence[float]]) -> Band:
        """Of typical values, each with the lowest and the highest of its launches (NaN: not given)."""
        from statistics import median

        ends = []
        for value, low, high in spans:
            low, high = low if low > 0 else value, high if 0 < high < math.inf else value
            ends.append((low, high) if high > (1 + WIDE) * low else (value, value))
        low, high = min(low for low, _ in ends), max(high for _, high in ends)
        if not high > (1 + WIDE) * low:  # small differences between reports are no band
            return cls(high, high, high)
        return cls(low, high, min(max(median(value for value, *_ in spans), low), high))

    @property
    def wide(self) -> bool:
        return self.high > self.low

    def text(self, unit: str, digits: int = 3) -> str:
        """The value with its unit, or the range: ``1.91 to 2.10 TFLOP/s``."""
        return range_text(self.low, self.high, unit, digits) if self.wide else format_value(self.high, unit, digits)


class ChartRoof(NamedTuple):
    """One roof over all launches and reports: ``bands`` by origin, measured and theoretical, as far as these are given.

    Values are in FLOP/s, OP/s, B/s, or FLOP/B for a wall; of a band the median.
    """

    id: str
    kind: str
    level: str
    precision: str
    label: str
    unit: str
    bands: Mapping[str, Band]

    @property
    def best(self) -> Band:
        """What the hardware was seen to do, else what it should."""
        return self.bands.get("measured") or self.bands["theoretical"]

    @property
    def value(self) -> float:
        return self.best.line

    @property
    def values(self) -> tuple[float, ...]:
        """All that are given, measured first."""
        return tuple(self.bands[origin].line for origin in ("measured", "theoretical") if origin in self.bands)


RoofRow = tuple[Any, ...]  # id, kind, level, precision, label, unit, origin, value, lowest and highest


def roof_rows(frames: Frames) -> dict[str, list[RoofRow]]:
    """What the frame of roofs says of each GPU: of thousands of platforms each is one."""
    columns = ("roof", "kind", "level", "precision", "label", "unit", "origin", "value", "value_min", "value_max")
    return grouped((device, tuple(row)) for device, *row in rows(frames, "roofs", "device", *columns))


def joined_roofs(given: Iterable[RoofRow]) -> list[ChartRoof]:
    found = []
    for (roof, kind), members in grouped((row[:2], row) for row in given if row[6] != UNUSED).items():
        _, _, level, precision, label, unit, *_ = members[-1]
        spans = grouped((row[6], row[7:]) for row in members)
        bands = {origin: Band.of(of_origin) for origin, of_origin in spans.items()}
        found.append(ChartRoof(roof, kind, level, precision, clean(label), unit, bands))
    return found


def covers(roof_precision: str, precisions: set[str]) -> bool:
    """Whether a compute roof limits one of ``precisions``; the sum over all pipes is limited by every one."""
    return MIXED in precisions or any(
        p == roof_precision or p.startswith(f"{roof_precision}.") or roof_precision.startswith(f"{p}.") for p in precisions
    )


def roofs_of(given: Iterable[RoofRow], precisions: set[str], unit: str) -> list[ChartRoof]:
    """The roofs of one GPU, of its rows, for some precisions."""
    plain = not any(map(apart, precisions))

    def goes(row: RoofRow) -> bool:
        _, kind, _, owner, _, roof_unit, _, value, *_ = row
        if not 0 < value < math.inf:
            return False
        if kind == "compute":
            return covers(owner, precisions) and bool(roof_unit == f"{unit}/s")
        # Of a bandwidth or wall the owner is the only kind of instruction that it is for, if any.
        return owner in precisions or (plain and (not owner or (kind == "wall" and not apart(owner))))

    found = joined_roofs(filter(goes, given))
    return tops(found, ()) if MIXED in precisions else found


def tops(roofs: Sequence[ChartRoof], bind: Iterable[str]) -> list[ChartRoof]:
    """The roofs, of compute roofs the highest of each precision and those that ``bind``."""
    best: dict[str, ChartRoof] = {}
    for roof in roofs:
        if roof.kind == "compute" and (roof.precision not in best or roof.value > best[roof.precision].value):
            best[roof.precision] = roof
    named = set(bind)
    return [roof for roof in roofs if roof.kind != "compute" or roof in best.values() or roof.id in named]
