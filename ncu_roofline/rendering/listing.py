"""Lists of things with scales, and bands over time, drawn on a sheet in points."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ncu_roofline.rendering.chart import Key, Listing, Row, Scale, Table, Timeline
from ncu_roofline.rendering.layout import Measure, View, spread
from ncu_roofline.rendering.legend import draw_symbol, faced
from ncu_roofline.rendering.lettering import Pen, first_fitting, fitted, squeezed
from ncu_roofline.rendering.paper import Paper
from ncu_roofline.rendering.style import LOOKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Points on the default paper: a line above the rows, the axis below them, a bar, between rows, a value at the end of a bar.
_HEAD, _FOOT, _BAR, _GAP, _BEYOND = 13.0, 24.0, 4.8, 6.0, 30.0
_BAND, _STRIP = 19.0, 5.0  # of bands over time, and of the colours of time below them
_CELL, _FAN, _APART = 1.45, 22.0, 9.0  # fonts from row to row of a table; points from lines to it, and between columns
_TALL = 45.0  # fonts: so high the lines are at least, which a table explains
_TIME_PREFIXES = {0: "s", -3: "ms", -6: "\N{MICRO SIGN}s", -9: "ns"}


def height_of(block: Listing | Timeline | Table, width: float, paper: Paper) -> float:
    """Points that it takes between its margins."""
    scale = paper.scale
    if isinstance(block, Table):
        return max((len(block.hues) + 4) * _CELL * paper.key, _TALL * paper.font)
    if isinstance(block, Timeline):
        return (len(block.bands) * _BAND + _STRIP) * scale
    return _head(block, width, paper) + len(block.rows) * _row(block, width, paper) + (_FOOT * scale if block.axis else 0.0)


def _wide(block: Listing, width: float, paper: Paper) -> bool:
    """Whether names and what is said at the end stand beside the scales, else above them."""
    return width >= block.least * paper.font


def _head(block: Listing, width: float, paper: Paper) -> float:
    lines = bool(block.title or block.keys) + (bool(block.title and block.keys) and not _wide(block, width, paper))
    return (lines + any(block.heads[:-1])) * _HEAD * paper.scale


def _row(block: Listing, width: float, paper: Paper) -> float:
    """From one row to the next."""
    bars = max((len(scale.bars) for row in block.rows for scale in row.scales), default=0) * _BAR * paper.scale
    dotted = any(scale.dots for row in block.rows for scale in row.scales)
    scales = max(bars + _GAP * paper.scale, 2.6 * paper.small + _GAP * paper.scale if dotted else 0.0)
    if not _wide(block, width, paper):
        return scales + 1.5 * paper.key
    return max(1.55 * (paper.key + paper.small if any(row.below for row in block.rows) else paper.key), scales)


def draw_listing(sheet: Axes, place: tuple[float, float, float], block: Listing, pen: Pen) -> None:
    """Draws a list from a place on: left, top, and its width."""
    (left, top, width), paper, scale = place, pen.paper, pen.paper.scale
    wide, row = _wide(block, width, paper), _row(block, width, paper)
    start, end = (left + block.parts[0] * width, left + (1 - block.parts[1]) * width) if wide else (left, left + width)
    most = max((len(one.scales) for one in block.rows), default=1)
    beyond = (_BEYOND if any(one.bars for each in block.rows for one in each.scales) else 12.0) * scale
    step, first = (end - start) / most, top - _head(block, width, paper)
    spans = [(start + step * index, start + step * (index + 1) - beyond) for index in range(most)]
    _draw_head(sheet, (left, top, left + width), (spans, end), block, wide, pen)
    if block.axis:
        _draw_axis(sheet, spans[0], (first - row * len(block.rows), first), block, pen)
    for index, one in enumerate(block.rows):
        y, weight = first - row * (index + 0.5), "bold" if one.hue else "normal"
        if wide:
            _draw_name(sheet, one, (left, y, start - left - 8 * scale), bool(block.axis), pen)
            pen.put(sheet, end, y, one.end, paper.key, one.hue or "text", left + width - end, weight=weight)
        else:
            line, colour, over = first - row * index - 0.9 * paper.key, one.hue or "faint", {"ground": True}
            said = pen.put(
                sheet, left + width, line, one.end, paper.key, colour, 0.55 * width, ha="right", weight=weight, **over
            )
            room = width - said * 1.15 - 14  # bold is wider than what is measured
            at = _draw_name(sheet, replace(one, below=""), (left, line, room - 5 * scale), False, pen) + 8 * scale
            if one.below and at - left + 30 < room:
                pen.put(sheet, at, line, one.below, paper.small, "faint", left + room - at, True)
            y -= 0.75 * paper.key
        for (low, high), each in zip(spans, one.scales, strict=False):
            _draw_scale(sheet, (low, high, y), each, bool(block.axis), pen)


def _draw_head(
    sheet: Axes,
    place: tuple[float, float, float],
    where: tuple[list[tuple[float, float]], float],
    block: Listing,
    wide: bool,
    pen: Pen,
) -> None:
    """The title, what the colours stand for, and what each scale has."""
    (left, top, right), (spans, end), paper = place, where, pen.paper
    y, x = top - 0.5 * _HEAD * paper.scale, spans[0][0] if wide and block.title else left
    if block.title:
        pen.put(sheet, left, y, block.title, paper.size(7.6), weight="bold")
        y -= 0.0 if wide or not block.keys else _HEAD * paper.scale
    for key in block.keys:
        draw_symbol(sheet, x, y, key, pen)
        room = (right - left) / len(block.keys) - 16 * paper.scale
        text = squeezed(key.label, paper.key, room, pen.measure) if len(block.keys) < 3 else key.label
        x += pen.put(sheet, x + 9 * paper.scale, y, text, paper.key) + 20 * paper.scale
    if any(block.heads[:-1]):
        y -= _HEAD * paper.scale
        for (low, high), text in zip(spans, block.heads, strict=False):
            pen.put(sheet, low, y, text, paper.small, "faint", high - low)
    said = block.heads[-1] if block.heads else ""
    at = end if wide else right - pen.measure(said, paper.key)[0]
    if said and at > x:
        pen.put(sheet, at, y, said, paper.key, "faint")


def _draw_axis(sheet: Axes, span: tuple[float, float], height: tuple[float, float], block: Listing, pen: Pen) -> None:
    """From 0 to 100 % below the bars."""
    (low, high), (bottom, top), paper = span, height, pen.paper
    for share in range(0, 101, 20 if high - low > 22 * paper.font else 50):
        x = low + (high - low) * share / 100
        sheet.plot([x, x], [bottom, top], color=pen.hue("grid" if share else "faint"), lw=0.6, zorder=1)
        pen.put(sheet, x, bottom - 3, str(share), paper.key, ha="center", va="top")
    sheet.plot([low, high], [bottom, bottom], color=pen.hue("faint"), lw=0.6, zorder=1)
    if block.limit:
        x = low + (high - low) * block.limit
        sheet.plot([x, x], [bottom, top], color=pen.hue("faint"), lw=0.6, ls=(0, (4, 3)), zorder=1)
    name = first_fitting(block.axis, paper.axis, high - low, pen.measure)
    pen.put(sheet, (low + high) / 2, bottom - 5 - 1.25 * paper.key, name, paper.axis, ha="center", va="top")


def _draw_name(sheet: Axes, row: Row, place: tuple[float, float, float], right: bool, pen: Pen) -> float:
    """The shape of a thing, its name and what goes below that, at the left or the right end of some room; where it ends."""
    (left, y, room), paper = place, pen.paper
    if row.shape:
        draw_symbol(sheet, left, y, Key("", "dot", instead=row.shape), pen)
        left, room = left + 9 * paper.scale, room - 9 * paper.scale
    x, side = (left + room, "right") if right else (left, "left")
    name = squeezed(row.name, paper.key, room, pen.measure)
    if not row.below:
        return left + pen.put(sheet, x, y, name, paper.key, ground=True, ha=side)
    pen.put(sheet, x, y - 0.15 * paper.key, row.below, paper.small, "faint", room, ha=side, va="top")
    return left + pen.put(sheet, x, y + 0.15 * paper.key, name, paper.key, ha=side, va="bottom")


def _draw_scale(sheet: Axes, place: tuple[float, float, float], one: Scale, on_axis: bool, pen: Pen) -> None:
    """Bars upon each other with a value at the longest, or a line from a hollow dot to a full one with a text below."""
    (low, high, y), paper, scale = place, pen.paper, pen.paper.scale
    if one.dots:
        _draw_change(sheet, (low, high, y + 0.6 * paper.small), one.dots, one, pen)
        return
    from matplotlib.patches import Rectangle

    thick, longest, at = _BAR * scale, low, y
    if not on_axis:
        sheet.plot([low, high], [y, y], lw=4.2 * scale, color=pen.hue("grid"), zorder=1, solid_capstyle="butt")
    for index, (share, hue) in enumerate(one.bars):
        if math.isfinite(share):
            corner, length = (low, y + (len(one.bars) / 2 - index - 0.93) * thick), min(share, 1.0) * (high - low)
            sheet.add_patch(Rectangle(corner, length, 0.86 * thick, color=pen.hue(hue), lw=0, gid="bar", zorder=2))
            if low + length > longest:
                longest, at = low + length, y + (len(one.bars) / 2 - index - 0.5) * thick
    unknown = not any(math.isfinite(share) for share, _ in one.bars)
    x = low + 3 if unknown else longest + 3 if on_axis else high + 4
    pen.put(sheet, x, at, one.text, paper.small, "faint" if unknown else "text", ground=True, zorder=3)


def _draw_change(sheet: Axes, place: tuple[float, float, float], dots: tuple[float, float], one: Scale, pen: Pen) -> None:
    (low, high, y), paper, scale = place, pen.paper, pen.paper.scale
    xs = [low + min(value, 1.0) * (high - low) for value in dots]
    sheet.plot([low, high], [y, y], lw=1.6 * scale, color=pen.hue("grid"), zorder=1, solid_capstyle="round")
    sheet.plot(xs, [y, y], lw=2.2 * scale, color=pen.hue(one.hue or "connector"), zorder=2, solid_capstyle="butt")
    for x, role in zip(xs, ("before", "after"), strict=True):
        face = faced("full" if role == "after" else "none", pen.hue("text"), pen, LOOKS[role])
        sheet.plot([x], [y], "o", ms=LOOKS[role].size * scale, zorder=4 if role == "after" else 3, gid=role, **face)
    pen.put(sheet, low, y - 1.5 * paper.small, one.text, paper.small, room=high - low + 8 * scale)


def draw_timeline(sheet: Axes, place: tuple[float, float, float, float], block: Timeline, pen: Pen) -> None:
    """Bands of bars from 0 to the peak, hatched where nothing is known, above the axis of time; left, bottom, width, height."""
    from matplotlib.patches import Rectangle

    (left, bottom, width, tall), scale = place, pen.paper.scale
    size = pen.paper.size(7.6)
    title = fitted(block.title, size * 1.2, pen.paper.width - 2 * pen.paper.edge, pen.measure)  # bold is wider
    pen.put(sheet, pen.paper.edge, bottom + tall + 5 * scale, title, size, va="bottom", weight="bold")
    xs = [left + width * edge / block.seconds for edge in block.edges]
    spans = list(pairwise([*xs, left + width] if xs[-1] < left + 0.999 * width else xs))
    row = (tall - _STRIP * scale) / max(len(block.bands), 1)
    for index, (name, text, hue, values) in enumerate(block.bands):
        low, high = bottom + tall - (index + 1) * row + 1.5 * scale, row - 3 * scale
        top = max([1.0, *(value for value in values if math.isfinite(value))])
        for (begin, end), value in zip(spans, [*values, *[math.nan] * (len(spans) - len(values))], strict=True):
            known = math.isfinite(value)
            paint: dict[str, Any] = {"color": pen.hue(hue), "lw": 0, "gid": "band"}
            paint = paint if known else {"fc": "none", "ec": pen.colours.faint, "hatch": "////", "lw": 0, "gid": "unknown"}
            sheet.add_patch(Rectangle((begin, low), end - begin, high * value / top if known else high, **paint))
        sheet.add_patch(Rectangle((left, low), width, high, fc="none", ec=pen.colours.grid, lw=0.6))
        middle, room = low + high / 2, left - pen.paper.edge - 4 * scale
        pen.put(sheet, left - 4 * scale, middle, name, pen.paper.key, room=room, ha="right", va="center")
        pen.put(sheet, left + width + 4 * scale, middle, text, pen.paper.key, "faint", va="center")
    for (begin, end), hue in zip(spans, block.hues, strict=False):
        sheet.add_patch(Rectangle((begin, bottom), end - begin, _STRIP * scale, color=pen.colours.of(hue), lw=0))
    sheet.add_patch(Rectangle((left, bottom), width, _STRIP * scale, fc="none", ec=pen.colours.faint, lw=0.6))
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
            text = f"{at / 10.0**exponent:.4g}"
            pen.put(sheet, x, bottom - 5, text, pen.paper.key, ha="center", va="top")
    name = f"Time [{_TIME_PREFIXES[exponent]}]"
    pen.put(sheet, left + width / 2, bottom - 7 - 1.25 * pen.paper.key, name, pen.paper.axis, ha="center", va="top")


def width_of(block: Table, measure: Measure, paper: Paper) -> float:
    """Points that a table takes, with the lines that lead to it."""
    return _FAN + sum(width + _APART for width in _widths(block, measure, paper))


def _widths(block: Table, measure: Measure, paper: Paper) -> list[float]:
    return [
        max(measure(text, paper.small)[0] for text in (head, second, *upper, *lower))
        for head, upper, second, lower in block.columns
    ]


def draw_table(sheet: Axes, place: tuple[float, float, float], block: Table, beside: View | None, pen: Pen) -> None:
    """Rows beside the lines that they are of, and below those the others; left, bottom and height."""
    (left, bottom, tall), row, size = place, _CELL * pen.paper.key, pen.paper.small
    count = len(block.hues) - len(block.at)
    lower = [bottom + 2 + row * index for index in reversed(range(count))]
    ends = [bottom + min(max(beside.y(value), 0.0), tall) for value in block.at] if beside else []
    upper = spread(ends, row, bottom + row * (count + 2) if count else bottom + 2, bottom + tall - row)
    for hue, end, y in zip(block.hues, ends, upper, strict=False):
        xs = left - 8, left - 3, left + _FAN - 15, left + _FAN - 11
        sheet.plot(xs, (end, end, y, y), lw=0.5, color=pen.hue(hue), gid="leader")
    x = left + _FAN - 9
    for index, ((head, cells, second, more), width) in enumerate(
        zip(block.columns, _widths(block, pen.measure, pen.paper), strict=True)
    ):
        at, side = (x, "left") if index == 0 else (x + width, "right")
        for title, ys in ((head, upper), (second, lower)):
            if ys:
                pen.put(sheet, at, ys[0] + row, title, size, "faint", ha=side)
        for cell, y, hue in zip((*cells, *more), (*upper, *lower), block.hues, strict=True):
            pen.put(sheet, at, y, cell, size, "text" if index else hue or "compute", ha=side)
        x += width + _APART
