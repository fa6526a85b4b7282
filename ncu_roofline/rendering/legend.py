"""What the symbols and lines of a chart stand for: a block inside its axes, or lines below them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ncu_roofline.rendering.chart import Key
from ncu_roofline.rendering.layout import Measure
from ncu_roofline.rendering.lettering import fitted, put_text
from ncu_roofline.rendering.paper import Paper
from ncu_roofline.rendering.style import LOOKS, Look, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SYMBOL, _LINE = 12.0, 22.0  # points that a symbol and a piece of line take, on the default paper
_GAP = 12.0  # between entries
_MOST_COLUMNS = 4


@dataclass(frozen=True)
class Pen:
    """What all of a picture is drawn with; ``shapes`` by the names of things."""

    colours: Theme
    measure: Measure
    paper: Paper
    shapes: Mapping[str, str]


@dataclass(frozen=True)
class Legend:
    """Entries with the place of each: left edge and middle in points, from the lower left corner of the block."""

    keys: tuple[tuple[Key, float, float], ...] = ()
    width: float = 0.0
    height: float = 0.0


def _symbol(key: Key, paper: Paper) -> float:
    """Points that its symbol takes."""
    return ((_SYMBOL if LOOKS[key.role].size else _LINE) if key.role else 0.0) * paper.scale


def _width(key: Key, measure: Measure, paper: Paper) -> float:
    return _symbol(key, paper) + measure(key.label, paper.key)[0]


def _cut(key: Key, width: float, measure: Measure, paper: Paper) -> Key:
    """An entry that is no wider than that."""
    return replace(key, label=fitted(key.label, paper.key, width - _symbol(key, paper), measure))


def columns(keys: Sequence[Key], number: int, measure: Measure, paper: Paper) -> Legend:
    """The entries in so many columns, one below the other."""
    if not keys:
        return Legend()
    down = -(-len(keys) // number)
    placed, x = [], 4.0
    for start in range(0, len(keys), down):
        part = keys[start : start + down]
        placed += [(key, x, paper.row * (down - row - 0.5) + 2) for row, key in enumerate(part)]
        x += max(_width(key, measure, paper) for key in part) + _GAP * paper.scale
    return Legend(tuple(placed), x - _GAP * paper.scale + 4, paper.row * down + 4)


def _lines(keys: Sequence[Key], width: float, measure: Measure, paper: Paper) -> Legend:
    """The entries one behind the other, in as many lines as they need."""
    rows: list[list[tuple[Key, float]]] = []
    x = width
    for key in keys:
        needed = _width(key, measure, paper)
        if x + needed > width and not (rows and x == 4.0):
            rows.append([])
            x = 4.0
        rows[-1].append((key, x))
        x += needed + _GAP * paper.scale
    placed = tuple((key, x, paper.row * (len(rows) - row - 0.5)) for row, part in enumerate(rows) for key, x in part)
    return Legend(placed, width, paper.row * len(rows))


def below(keys: Sequence[Key], names: Sequence[Key], width: float, measure: Measure, paper: Paper) -> Legend:
    """The entries in lines, and below them the things with shapes in as many columns as fit."""
    keys, names = ([_cut(key, width - 8, measure, paper) for key in each] for each in (keys, names))
    head, foot = _lines(keys, width, measure, paper), Legend()
    for number in range(min(_MOST_COLUMNS, len(names)), 0, -1):
        foot = columns(names, number, measure, paper)
        if foot.width <= width:
            break
    raised = tuple((key, x, y + foot.height) for key, x, y in head.keys)
    return Legend((*raised, *foot.keys), width, head.height + foot.height)


def draw_legend(sheet: Axes, left: float, bottom: float, legend: Legend, pen: Pen) -> None:
    """Draws a legend into axes in points, its lower left corner at a place."""
    for key, x, y in legend.keys:
        at, middle = left + x, bottom + y
        if key.role:
            draw_symbol(sheet, at, middle, key, pen)
        put_text(
            sheet,
            at + _symbol(key, pen.paper),
            middle,
            key.label,
            pen.paper.key,
            pen.colours.text,
            va="center_baseline",
            gid="key",
        )


def draw_symbol(sheet: Axes, at: float, middle: float, key: Key, pen: Pen) -> None:
    """The symbol of an entry, or a piece of its line or band, from ``at`` on."""
    look, colour, end = LOOKS[key.role], pen.colours.colour(key.role, key.hue), at + (_LINE - 6) * pen.paper.scale
    if look.size:
        size = key.size or look.size - (1.0 if look.ring and look.size > 6 else 0.0)
        shape = pen.shapes.get(key.instead) or look.shape or "o"
        face = faced(key.fill if not look.ring else "none", colour, pen, look)
        sheet.plot([at + 3 * pen.paper.scale], [middle], ls="none", marker=shape, ms=size * pen.paper.scale, **face)
    elif look.width:
        sheet.plot([at, end], [middle, middle], ls=look.dashes, lw=look.width * pen.paper.scale, color=colour, alpha=look.alpha)
    else:
        half = 2.4 * pen.paper.scale
        sheet.fill_between([at, end], middle - half, middle + half, lw=0, color=colour, alpha=look.alpha)


def faced(fill: str, colour: str, pen: Pen, look: Look) -> dict[str, Any]:
    """A symbol of a colour: full, none (an outline) or half filled (left, bottom, right, top), as matplotlib takes it."""
    scale, ground = pen.paper.scale, pen.colours.ground
    if fill == "full":
        return {
            "mfc": colour,
            "mec": getattr(pen.colours, look.edge) if look.edge else colour,
            "mew": 0.4 * scale if look.edge == "ground" else 0.7 * scale,
        }
    if fill == "none":
        return {"mfc": ground, "mec": colour, "mew": (look.ring or 1.0) * scale}
    return {"fillstyle": fill, "mfc": colour, "mfcalt": ground, "mec": colour, "mew": 0.7 * scale}
