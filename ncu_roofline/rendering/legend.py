"""What the symbols and lines of a chart stand for: a block inside its axes, or lines below them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ncu_roofline.rendering.chart import Key
from ncu_roofline.rendering.lettering import Pen, fitted
from ncu_roofline.rendering.style import LOOKS, Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SYMBOL, _LINE = 12.0, 22.0  # points that a symbol and a piece of line take, on the default paper
_GAP = 12.0  # between entries
_MOST_COLUMNS = 4


@dataclass(frozen=True)
class Legend:
    """Entries with the place of each: left edge and middle in points, from the lower left corner of the block."""

    keys: tuple[tuple[Key, float, float], ...] = ()
    width: float = 0.0
    height: float = 0.0


def _symbol(key: Key, pen: Pen) -> float:
    """Points that its symbol takes."""
    return ((_SYMBOL if LOOKS[key.role].size else _LINE) if key.role else 0.0) * pen.paper.scale


def _width(key: Key, pen: Pen) -> float:
    return _symbol(key, pen) + pen.measure(key.label, pen.paper.key)[0]


def columns(keys: Sequence[Key], number: int, pen: Pen) -> Legend:
    """The entries in so many columns, one below the other."""
    row, gap, down = pen.paper.row, _GAP * pen.paper.scale, -(-len(keys) // number)
    placed, x = [], 4.0
    for start in range(0, len(keys), max(down, 1)):
        part = keys[start : start + down]
        placed += [(key, x, row * (down - index - 0.5) + 2) for index, key in enumerate(part)]
        x += max(_width(key, pen) for key in part) + gap
    return Legend(tuple(placed), x - gap + 4, row * down + 4) if keys else Legend()


def below(keys: Sequence[Key], names: Sequence[Key], width: float, pen: Pen) -> Legend:
    """The entries in as many lines as they need, and below them the things with shapes in as many columns as fit."""
    keys, names = ([_cut(key, width - 8, pen) for key in each] for each in (keys, names))
    foot, x, line = Legend(), 4.0, 0
    for number in range(min(_MOST_COLUMNS, len(names)), 0, -1):
        foot = columns(names, number, pen)
        if foot.width <= width:
            break
    placed = []
    for key in keys:
        if x > 4.0 and x + _width(key, pen) > width:
            x, line = 4.0, line + 1
        placed.append((key, x, line))
        x += _width(key, pen) + _GAP * pen.paper.scale
    lines, row = (line + 1 if keys else 0), pen.paper.row
    head = tuple((key, x, foot.height + row * (lines - line - 0.5)) for key, x, line in placed)
    return Legend((*head, *foot.keys), width, lines * row + foot.height)


def _cut(key: Key, width: float, pen: Pen) -> Key:
    """An entry that is no wider than that."""
    return replace(key, label=fitted(key.label, pen.paper.key, width - _symbol(key, pen), pen.measure))


def draw_legend(sheet: Axes, left: float, bottom: float, legend: Legend, pen: Pen) -> None:
    """Draws a legend into axes in points, its lower left corner at a place."""
    for key, x, y in legend.keys:
        draw_symbol(sheet, left + x, bottom + y, key, pen)
        pen.put(sheet, left + x + _symbol(key, pen), bottom + y, key.label, pen.paper.key, gid="key")


def draw_symbol(sheet: Axes, at: float, middle: float, key: Key, pen: Pen) -> None:
    """The symbol of an entry, or a piece of its line or band, from ``at`` on; nothing without a role."""
    if not key.role:
        return
    look, colour, scale = LOOKS[key.role], pen.colours.colour(key.role, key.hue), pen.paper.scale
    if look.size:
        size = key.size or look.size - (1.0 if look.ring and look.size > 6 else 0.0)
        shape = pen.shapes.get(key.instead) or look.shape or "o"
        face = faced(key.fill if not look.ring else "none", colour, pen, look)
        sheet.plot([at + 3 * scale], [middle], ls="none", marker=shape, ms=size * scale, **face)
        return
    paint: dict[str, Any] = {"ls": look.dashes, "lw": look.width * scale} if look.width else {"lw": 4.8 * scale}
    ends = [at, at + (_LINE - 6) * scale]
    sheet.plot(ends, [middle, middle], color=colour, alpha=look.alpha, solid_capstyle="butt", **paint)


def faced(fill: str, colour: str, pen: Pen, look: Look) -> dict[str, Any]:
    """A symbol of a colour: full, none (an outline) or half filled (left, bottom, right, top), as matplotlib takes it."""
    scale, ground = pen.paper.scale, pen.colours.ground
    if fill == "full":
        return {"mfc": colour, "mec": pen.hue(look.edge) if look.edge else colour, "mew": 0.4 * scale}
    if fill == "none":
        return {"mfc": ground, "mec": colour, "mew": (look.ring or 1.0) * scale}
    return {"fillstyle": fill, "mfc": colour, "mfcalt": ground, "mec": colour, "mew": 0.7 * scale}
