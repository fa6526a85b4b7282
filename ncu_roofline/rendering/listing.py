"""What stands beside panels or below them, drawn in points: the legend, lists with scales, bands over time, tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ncu_roofline.rendering.chart import Key, Listing, Row, Scale, Table, Timeline
from ncu_roofline.rendering.layout import View, spread
from ncu_roofline.rendering.paper import Pen
from ncu_roofline.rendering.style import ROLES, Role

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SYMBOL, _LINE, _APART = 12.0, 22.0, 12.0  # points of a symbol, of a piece of line, between entries, on the default paper
# A line above the rows, the axis below them, a bar, between rows, a value at the end of a bar.
_HEAD, _FOOT, _BAR, _GAP, _BEYOND = 13.0, 24.0, 4.8, 6.0, 30.0
_BAND, _STRIP = 19.0, 5.0  # of bands over time, and of the colours of time below them
_CELL, _FAN, _BETWEEN = 1.45, 22.0, 9.0  # fonts from row to row of a table; points from lines to it, and between columns
_TALL = 45.0  # fonts: so high the lines are at least, which a table explains
_TIME_PREFIXES = {0: "s", -3: "ms", -6: "\N{MICRO SIGN}s", -9: "ns"}


class Legend(NamedTuple):
    """Entries with the place of each: left edge and middle in points, from the lower left corner of the block."""

    keys: tuple[tuple[Key, float, float], ...] = ()
    width: float = 0.0
    height: float = 0.0


def _symbol(key: Key, pen: Pen) -> float:
    """Points that its symbol takes."""
    return ((_SYMBOL if ROLES[key.role].size else _LINE) if key.role else 0.0) * pen.scale


def columns(keys: Sequence[Key], number: int, pen: Pen) -> Legend:
    """The entries in so many columns, one below the other."""
    down, gap, x, placed = -(-len(keys) // number), _APART * pen.scale, 4.0, []
    for start in range(0, len(keys), max(down, 1)):
        part = keys[start : start + down]
        placed += [(key, x, pen.row * (down - index - 0.5) + 2) for index, key in enumerate(part)]
        x += max(_symbol(key, pen) + pen.wide(key.label, pen.key) for key in part) + gap
    return Legend(tuple(placed), x - gap + 4, pen.row * down + 4) if keys else Legend()


def below(keys: Sequence[Key], names: Sequence[Key], width: float, pen: Pen) -> Legend:
    """The entries in as many lines as they need, and below them the things with shapes in as many columns as fit."""
    keys, names = (
        [replace(key, label=pen.fitted(key.label, pen.key, width - 8 - _symbol(key, pen))) for key in each]
        for each in (keys, names)
    )
    blocks = (columns(names, number, pen) for number in (4, 3, 2, 1) if number <= max(len(names), 1))
    foot = next((block for block in blocks if block.width <= width), None) or columns(names, 1, pen)
    lines: list[list[tuple[Key, float]]] = []
    x = math.inf
    for key in keys:
        wide = _symbol(key, pen) + pen.wide(key.label, pen.key)
        if x + wide > width:
            lines.append([])
            x = 4.0
        lines[-1].append((key, x))
        x += wide + _APART * pen.scale
    ups = reversed(range(len(lines)))
    placed = [(key, x, foot.height + pen.row * (up + 0.5)) for up, line in zip(ups, lines, strict=True) for key, x in line]
    return Legend((*placed, *foot.keys), width, len(lines) * pen.row + foot.height)


def draw_legend(sheet: Axes, left: float, bottom: float, legend: Legend, pen: Pen) -> None:
    """Draws a legend into axes in points, its lower left corner at a place."""
    for key, x, y in legend.keys:
        draw_symbol(sheet, left + x, bottom + y, key, pen)
        pen.put(sheet, left + x + _symbol(key, pen), bottom + y, key.label, pen.key, gid="key")


def draw_symbol(sheet: Axes, at: float, middle: float, key: Key, pen: Pen) -> None:
    """The symbol of an entry, or a piece of its line or band, from ``at`` on; nothing without a role."""
    if not key.role:
        return
    role, scale = ROLES[key.role], pen.scale
    colour = pen.colours.of(key.hue or role.colour)
    if role.size:
        size = key.size or role.size - (1.0 if role.ring and role.size > 6 else 0.0)
        shape = pen.shapes.get(key.instead) or role.shape or "o"
        sheet.plot([at + 3 * scale], [middle], ls="none", marker=shape, ms=size * scale, **faced(key.fill, colour, pen, role))
        return
    ends, thick = [at, at + (_LINE - 6) * scale], role.width or 4.8
    paint: dict[str, Any] = {"color": colour, "alpha": role.alpha, "solid_capstyle": "butt"}
    sheet.plot(ends, [middle, middle], ls=role.dashes, lw=thick * scale, **paint)


def faced(fill: str, colour: str, pen: Pen, role: Role) -> dict[str, Any]:
    """A symbol of a colour: full, none (an outline) or half filled (left, bottom, right, top), as matplotlib takes it."""
    scale, ground = pen.scale, pen.colours.ground
    if fill == "none" or role.ring:
        return {"mfc": ground, "mec": colour, "mew": (role.ring or 1.0) * scale}
    if fill == "full":
        return {"mfc": colour, "mec": pen.colours.of(role.edge) if role.edge else colour, "mew": 0.4 * scale}
    return {"fillstyle": fill, "mfc": colour, "mfcalt": ground, "mec": colour, "mew": 0.7 * scale}


def height_of(block: Listing | Timeline | Table, width: float, pen: Pen) -> float:
    """Points that it takes between its margins."""
    if isinstance(block, Table):
        return max((len(block.hues) + 4) * _CELL * pen.key, _TALL * pen.paper.font)
    if isinstance(block, Timeline):
        return (len(block.bands) * _BAND + _STRIP) * pen.scale
    head, row = _rows_of(block, width, pen)
    return head + len(block.rows) * row + (_FOOT * pen.scale if block.axis else 0.0)


def _beside(block: Listing, width: float, pen: Pen) -> bool:
    """Whether names and what is said at the end stand beside the scales, else above them."""
    return width >= block.least * pen.paper.font


def _rows_of(block: Listing, width: float, pen: Pen) -> tuple[float, float]:
    """Points above the first row, and from one row to the next."""
    beside, every = _beside(block, width, pen), [scale for row in block.rows for scale in row.scales]
    lines = bool(block.title or block.keys) + (bool(block.title and block.keys) and not beside) + any(block.heads[:-1])
    bars = max((len(scale.bars) for scale in every), default=0) * _BAR * pen.scale
    scales = max(bars, 2.6 * pen.small if any(scale.dots for scale in every) else 0.0) + _GAP * pen.scale
    texts = pen.key + (pen.small if any(row.below for row in block.rows) else 0.0)
    return lines * _HEAD * pen.scale, max(1.55 * texts, scales) if beside else scales + 1.5 * pen.key


def draw_listing(sheet: Axes, place: tuple[float, float, float], block: Listing, pen: Pen) -> None:
    """Draws a list from a place on: left, top, and its width."""
    (left, top, width), scale = place, pen.scale
    beside, (head, step) = _beside(block, width, pen), _rows_of(block, width, pen)
    start, end = (left + block.parts[0] * width, left + (1 - block.parts[1]) * width) if beside else (left, left + width)
    most = max((len(row.scales) for row in block.rows), default=1)
    beyond = (_BEYOND if any(one.bars for row in block.rows for one in row.scales) else 12.0) * scale
    part, first = (end - start) / most, top - head
    spans = [(start + part * index, start + part * (index + 1) - beyond) for index in range(most)]
    _draw_head(sheet, place, spans, end if beside else 0.0, block, pen)
    if block.axis:
        _draw_axis(sheet, spans[0], (first - step * len(block.rows), first), block, pen)
    for index, row in enumerate(block.rows):
        y, weight = first - step * (index + 0.5), "bold" if row.hue else "normal"
        if beside:
            _draw_name(sheet, row, (left, y, start - left - 8 * scale), bool(block.axis), pen)
            pen.put(sheet, end, y, row.end, pen.key, row.hue or "text", left + width - end, weight=weight)
        else:
            line, more = first - step * index - 0.9 * pen.key, {"ha": "right", "weight": weight}
            said = pen.put(sheet, left + width, line, row.end, pen.key, row.hue or "faint", 0.55 * width, True, **more)
            room = width - said - 14
            at = _draw_name(sheet, replace(row, below=""), (left, line, room - 5 * scale), False, pen) + 8 * scale
            if row.below and at - left + 30 < room:
                pen.put(sheet, at, line, row.below, pen.small, "faint", left + room - at, True)
            y -= 0.75 * pen.key
        for (low, high), one in zip(spans, row.scales, strict=False):
            if one.dots:
                _draw_change(sheet, (low, high, y + 0.6 * pen.small), one.dots, one, pen)
            else:
                _draw_bars(sheet, (low, high, y), one, bool(block.axis), pen)


def _draw_head(
    sheet: Axes, place: tuple[float, float, float], spans: list[tuple[float, float]], end: float, block: Listing, pen: Pen
) -> None:
    """The title, what the colours stand for, and what each scale has; ``end``: where what is said at the end begins."""
    left, top, width = place
    y, x = top - 0.5 * _HEAD * pen.scale, spans[0][0] if end and block.title else left
    if block.title:
        pen.put(sheet, left, y, block.title, pen.heading, weight="bold")
        y -= 0.0 if end or not block.keys else _HEAD * pen.scale
    for key in block.keys:
        draw_symbol(sheet, x, y, key, pen)
        room = width / len(block.keys) - 16 * pen.scale if len(block.keys) < 3 else math.inf
        x += pen.put(sheet, x + 9 * pen.scale, y, pen.fitted(key.label, pen.key, room, True), pen.key) + 20 * pen.scale
    if any(block.heads[:-1]):
        y -= _HEAD * pen.scale
        for (low, high), text in zip(spans, block.heads, strict=False):
            pen.put(sheet, low, y, text, pen.small, "faint", high - low)
    said = block.heads[-1] if block.heads else ""
    at = end or left + width - pen.wide(said, pen.key)
    if said and at > x:
        pen.put(sheet, at, y, said, pen.key, "faint")


def _draw_axis(sheet: Axes, span: tuple[float, float], height: tuple[float, float], block: Listing, pen: Pen) -> None:
    """From 0 to 100 % below the bars."""
    (low, high), (bottom, top), colour = span, height, pen.colours.of
    for share in range(0, 101, 20 if high - low > 22 * pen.paper.font else 50):
        x = low + (high - low) * share / 100
        sheet.plot([x, x], [bottom, top], color=colour("grid" if share else "faint"), lw=0.6, zorder=1)
        pen.put(sheet, x, bottom - 3, str(share), pen.key, ha="center", va="top")
    sheet.plot([low, high], [bottom, bottom], color=colour("faint"), lw=0.6, zorder=1)
    if block.limit:
        x = low + (high - low) * block.limit
        sheet.plot([x, x], [bottom, top], color=colour("faint"), lw=0.6, ls=(0, (4, 3)), zorder=1)
    name = pen.first_fitting(block.axis, pen.axis, high - low)
    pen.put(sheet, (low + high) / 2, bottom - 5 - 1.25 * pen.key, name, pen.axis, ha="center", va="top")


def _draw_name(sheet: Axes, row: Row, place: tuple[float, float, float], right: bool, pen: Pen) -> float:
    """The shape of a thing, its name and what goes below that, at the left or the right end of some room; where it ends."""
    left, y, room = place
    if row.shape:
        draw_symbol(sheet, left, y, Key("", "dot", instead=row.shape), pen)
        left, room = left + 9 * pen.scale, room - 9 * pen.scale
    x, side = (left + room, "right") if right else (left, "left")
    name = pen.fitted(row.name, pen.key, room, middle=True)
    if not row.below:
        return left + pen.put(sheet, x, y, name, pen.key, ground=True, ha=side)
    pen.put(sheet, x, y - 0.15 * pen.key, row.below, pen.small, "faint", room, ha=side, va="top")
    return left + pen.put(sheet, x, y + 0.15 * pen.key, name, pen.key, ha=side, va="bottom")


def _draw_bars(sheet: Axes, place: tuple[float, float, float], one: Scale, on_axis: bool, pen: Pen) -> None:
    """Bars upon each other with a value at the longest."""
    from matplotlib.patches import Rectangle

    (low, high, y), thick = place, _BAR * pen.scale
    longest, at, known = low, y, False
    if not on_axis:
        sheet.plot([low, high], [y, y], lw=4.2 * pen.scale, color=pen.colours.grid, zorder=1, solid_capstyle="butt")
    for index, (share, hue) in enumerate(one.bars):
        if math.isfinite(share):
            known, middle = True, y + (len(one.bars) / 2 - index - 0.5) * thick
            size = (min(share, 1.0) * (high - low), 0.86 * thick)
            corner = (low, middle - size[1] / 2)
            sheet.add_patch(Rectangle(corner, *size, color=pen.colours.of(hue), lw=0, gid="bar", zorder=2))
            if low + size[0] > longest:
                longest, at = low + size[0], middle
    x = low + 3 if not known else longest + 3 if on_axis else high + 4
    pen.put(sheet, x, at, one.text, pen.small, "text" if known else "faint", ground=True, zorder=3)


def _draw_change(sheet: Axes, place: tuple[float, float, float], dots: tuple[float, float], one: Scale, pen: Pen) -> None:
    """A line from a hollow dot to a full one with a text below."""
    (low, high, y), scale, colour = place, pen.scale, pen.colours.of
    xs = [low + min(value, 1.0) * (high - low) for value in dots]
    sheet.plot([low, high], [y, y], lw=1.6 * scale, color=colour("grid"), zorder=1, solid_capstyle="round")
    sheet.plot(xs, [y, y], lw=2.2 * scale, color=colour(one.hue or "connector"), zorder=2, solid_capstyle="butt")
    for order, (x, name) in enumerate(zip(xs, ("before", "after"), strict=True), 3):
        role = ROLES[name]
        sheet.plot([x], [y], "o", ms=role.size * scale, zorder=order, gid=name, **faced("full", colour("text"), pen, role))
    pen.put(sheet, low, y - 1.5 * pen.small, one.text, pen.small, room=high - low + 8 * scale)


def draw_timeline(sheet: Axes, place: tuple[float, float, float, float], block: Timeline, pen: Pen) -> None:
    """Bands of bars from 0 to the peak, hatched where nothing is known, above the axis of time; left, bottom, width, height."""
    from matplotlib.patches import Rectangle

    (left, bottom, width, tall), scale, colours = place, pen.scale, pen.colours
    room = pen.paper.width - 2 * pen.edge
    pen.put(sheet, pen.edge, bottom + tall + 5 * scale, block.title, pen.heading, room=room, va="bottom", weight="bold")
    xs = [left + width * edge / block.seconds for edge in block.edges]
    spans = list(pairwise([*xs, left + width] if xs[-1] < left + 0.999 * width else xs))
    row = (tall - _STRIP * scale) / max(len(block.bands), 1)
    for index, (name, text, hue, values) in enumerate(block.bands):
        low, high = bottom + tall - (index + 1) * row + 1.5 * scale, row - 3 * scale
        top = max([1.0, *(value for value in values if math.isfinite(value))])
        for (begin, end), value in zip(spans, [*values, *[math.nan] * (len(spans) - len(values))], strict=True):
            known = math.isfinite(value)
            paint: dict[str, Any] = {"color": colours.of(hue), "lw": 0, "gid": "band"}
            paint = paint if known else {"fc": "none", "ec": colours.faint, "hatch": "////", "lw": 0, "gid": "unknown"}
            sheet.add_patch(Rectangle((begin, low), end - begin, high * value / top if known else high, **paint))
        sheet.add_patch(Rectangle((left, low), width, high, fc="none", ec=colours.grid, lw=0.6))
        middle, room = low + high / 2, left - pen.edge - 4 * scale
        pen.put(sheet, left - 4 * scale, middle, name, pen.key, room=room, ha="right", va="center")
        pen.put(sheet, left + width + 4 * scale, middle, text, pen.key, "faint", va="center")
    for (begin, end), hue in zip(spans, block.hues, strict=False):
        sheet.add_patch(Rectangle((begin, bottom), end - begin, _STRIP * scale, color=colours.of(hue), lw=0))
    sheet.add_patch(Rectangle((left, bottom), width, _STRIP * scale, fc="none", ec=colours.faint, lw=0.6))
    _draw_time(sheet, (left, bottom, width), block.seconds, pen)


def _draw_time(sheet: Axes, place: tuple[float, float, float], seconds: float, pen: Pen) -> None:
    """Ticks and name of the axis of time."""
    from matplotlib.ticker import MaxNLocator

    left, bottom, width = place
    exponent = min(max(3 * math.floor(math.log10(seconds) / 3), -9), 0)
    for at in MaxNLocator(6, steps=(1, 2, 2.5, 5, 10)).tick_values(0, seconds):
        if 0 <= at <= seconds * 1.0001:
            x = left + width * at / seconds
            sheet.plot([x, x], [bottom - 3, bottom], lw=0.6, color=pen.colours.faint)
            pen.put(sheet, x, bottom - 5, f"{at / 10.0**exponent:.4g}", pen.key, ha="center", va="top")
    name = f"Time [{_TIME_PREFIXES[exponent]}]"
    pen.put(sheet, left + width / 2, bottom - 7 - 1.25 * pen.key, name, pen.axis, ha="center", va="top")


def width_of(block: Table, pen: Pen) -> float:
    """Points that a table takes, with the lines that lead to it."""
    return _FAN + sum(width + _BETWEEN for width in _widths(block, pen))


def _widths(block: Table, pen: Pen) -> list[float]:
    texts = ((head, second, *upper, *lower) for head, upper, second, lower in block.columns)
    return [max(pen.wide(text, pen.small) for text in column) for column in texts]


def draw_table(sheet: Axes, place: tuple[float, float, float], block: Table, view: View | None, pen: Pen) -> None:
    """Rows beside the lines of a panel that they are of, and below those the others; left, bottom and height."""
    (left, bottom, tall), row, size = place, _CELL * pen.key, pen.small
    count = len(block.hues) - len(block.at)
    lower = [bottom + 2 + row * index for index in reversed(range(count))]
    ends = [bottom + min(max(view.y(value), 0.0), tall) for value in block.at] if view else []
    upper = spread(ends, row, bottom + row * (count + 2) if count else bottom + 2, bottom + tall - row)
    for hue, end, y in zip(block.hues, ends, upper, strict=False):
        xs = left - 8, left - 3, left + _FAN - 15, left + _FAN - 11
        sheet.plot(xs, (end, end, y, y), lw=0.5, color=pen.colours.of(hue), gid="leader")
    x = left + _FAN - 9
    for index, ((head, cells, second, more), width) in enumerate(zip(block.columns, _widths(block, pen), strict=True)):
        at, side = (x, "left") if index == 0 else (x + width, "right")
        for title, ys in ((head, upper), (second, lower)):
            if ys:
                pen.put(sheet, at, ys[0] + row, title, size, "faint", ha=side)
        for cell, y, hue in zip((*cells, *more), (*upper, *lower), block.hues, strict=True):
            pen.put(sheet, at, y, cell, size, "text" if index else hue, ha=side)
        x += width + _BETWEEN
