"""Lists of things with scales, and bands over time, drawn on a sheet in points."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ncu_roofline.rendering.chart import Key, Listing, Row, Scale, Table, Timeline
from ncu_roofline.rendering.layout import Measure, View, spread
from ncu_roofline.rendering.legend import Pen, draw_symbol
from ncu_roofline.rendering.lettering import first_fitting, fitted, halo, put_text, squeezed
from ncu_roofline.rendering.paper import Paper
from ncu_roofline.rendering.style import LOOKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Points on the default paper: a line above the rows, the axis below them, a bar, between rows, a value at the end of a bar.
_HEAD, _FOOT, _BAR, _GAP, _BEYOND = 13.0, 24.0, 4.8, 6.0, 30.0
_BAND, _STRIP = 19.0, 5.0  # of bands over time, and of the colours of time below them
_CELL, _FAN, _APART = 1.45, 22.0, 9.0  # fonts from row to row of a table; points from lines to it, and between columns
_TALL = 45.0  # fonts: so high the lines are at least, which a table explains
_MIDDLE: dict[str, Any] = {"va": "center_baseline"}
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
    left, top, width = place
    wide, scale, row = _wide(block, width, pen.paper), pen.paper.scale, _row(block, width, pen.paper)
    start = left + (block.parts[0] * width if wide else 0.0)
    end = left + width - (block.parts[1] * width if wide and block.parts[1] else 0.0)
    most = max((len(one.scales) for one in block.rows), default=1)
    beyond = _BEYOND * scale if any(one.bars for each in block.rows for one in each.scales) else 12.0 * scale
    step = (end - start) / most
    spans = [(start + step * index, start + step * (index + 1) - beyond) for index in range(most)]
    first = top - _head(block, width, pen.paper)
    bottom = first - row * len(block.rows)
    _draw_head(sheet, (left, top, left + width), (spans, end), block, wide, pen)
    if block.axis:
        _draw_axis(sheet, spans[0], (bottom, first), block, pen)
    for index, one in enumerate(block.rows):
        y = first - row * (index + 0.5)
        if wide:
            _draw_name(sheet, one, (left, y, start - left - 8 * scale), bool(block.axis), pen)
            text = fitted(one.end, pen.paper.key, left + width - end, pen.measure)
            colour = pen.colours.of(one.hue) if one.hue else pen.colours.text
            put_text(sheet, end, y, text, pen.paper.key, colour, weight="bold" if one.hue else "normal", **_MIDDLE)
        else:
            line = first - row * index - 0.9 * pen.paper.key
            text = fitted(one.end, pen.paper.key, 0.55 * width, pen.measure)
            over: dict[str, Any] = {"bbox": halo(pen.colours), **_MIDDLE}
            colour, weight = (pen.colours.of(one.hue), "bold") if one.hue else (pen.colours.faint, "normal")
            put_text(sheet, left + width, line, text, pen.paper.key, colour, ha="right", weight=weight, **over)
            room = width - pen.measure(text, pen.paper.key)[0] * 1.15 - 14  # bold is wider than what is measured
            name = squeezed(one.name, pen.paper.key, room - 10 * scale, pen.measure)
            said = pen.measure(name, pen.paper.key)[0] + 17 * scale
            _draw_name(sheet, replace(one, name=name, below=""), (left, line, room), False, pen)
            if one.below and said + 30 < room:
                below = fitted(one.below, pen.paper.small, room - said, pen.measure)
                put_text(sheet, left + said, line, below, pen.paper.small, pen.colours.faint, **over)
            y -= 0.75 * pen.paper.key
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
    """The title, what the pen.colours stand for, and what each scale has."""
    (left, top, right), (spans, end) = place, where
    y = top - 0.5 * _HEAD * pen.paper.scale
    if block.title:
        put_text(sheet, left, y, block.title, pen.paper.size(7.6), pen.colours.text, weight="bold", **_MIDDLE)
    if block.title and block.keys and not wide:
        y -= _HEAD * pen.paper.scale
    x = spans[0][0] if wide and block.title else left
    for key in block.keys:
        draw_symbol(sheet, x, y, key, pen)
        room = (right - left) / len(block.keys) - 16 * pen.paper.scale
        text = squeezed(key.label, pen.paper.key, room, pen.measure) if len(block.keys) < 3 else key.label
        put_text(sheet, x + 9 * pen.paper.scale, y, text, pen.paper.key, pen.colours.text, **_MIDDLE)
        x += pen.measure(text, pen.paper.key)[0] + 20 * pen.paper.scale
    if any(block.heads[:-1]):
        y -= _HEAD * pen.paper.scale
        for (low, high), text in zip(spans, block.heads, strict=False):
            shown = fitted(text, pen.paper.small, high - low, pen.measure)
            put_text(sheet, low, y, shown, pen.paper.small, pen.colours.faint, **_MIDDLE)
    said = block.heads[-1] if block.heads else ""
    at = end if wide else right - pen.measure(said, pen.paper.key)[0]
    if said and at > x:
        put_text(sheet, at, y, said, pen.paper.key, pen.colours.faint, **_MIDDLE)


def _draw_axis(sheet: Axes, span: tuple[float, float], height: tuple[float, float], block: Listing, pen: Pen) -> None:
    """From 0 to 100 % below the bars."""
    (low, high), (bottom, top) = span, height
    for share in range(0, 101, 20 if high - low > 22 * pen.paper.font else 50):
        x = low + (high - low) * share / 100
        sheet.plot([x, x], [bottom, top], color=pen.colours.faint if share == 0 else pen.colours.grid, lw=0.6, zorder=1)
        put_text(sheet, x, bottom - 3, str(share), pen.paper.key, pen.colours.text, ha="center", va="top")
    sheet.plot([low, high], [bottom, bottom], color=pen.colours.faint, lw=0.6, zorder=1)
    if block.limit:
        x = low + (high - low) * block.limit
        sheet.plot([x, x], [bottom, top], color=pen.colours.faint, lw=0.6, ls=(0, (4, 3)), zorder=1)
    name = first_fitting(block.axis, pen.paper.axis, high - low, pen.measure)
    put_text(
        sheet,
        (low + high) / 2,
        bottom - 5 - 1.25 * pen.paper.key,
        name,
        pen.paper.axis,
        pen.colours.text,
        ha="center",
        va="top",
    )


def _draw_name(sheet: Axes, row: Row, place: tuple[float, float, float], right: bool, pen: Pen) -> None:
    """The shape of a thing, its name and what goes below that, at the left or the right end of some room."""
    left, y, room = place
    if row.shape:
        draw_symbol(sheet, left, y, Key("", "dot", instead=row.shape), pen)
        left, room = left + 9 * pen.paper.scale, room - 9 * pen.paper.scale
    x, side = (left + room, "right") if right else (left, "left")
    name = squeezed(row.name, pen.paper.key, room, pen.measure)
    if not row.below:
        put_text(sheet, x, y, name, pen.paper.key, pen.colours.text, ha=side, bbox=halo(pen.colours), **_MIDDLE)
        return
    put_text(sheet, x, y + 0.15 * pen.paper.key, name, pen.paper.key, pen.colours.text, ha=side, va="bottom")
    put_text(
        sheet,
        x,
        y - 0.15 * pen.paper.key,
        fitted(row.below, pen.paper.small, room, pen.measure),
        pen.paper.small,
        pen.colours.faint,
        ha=side,
        va="top",
    )


def _draw_scale(sheet: Axes, place: tuple[float, float, float], one: Scale, on_axis: bool, pen: Pen) -> None:
    """Bars upon each other with a value at the longest, or a line from a hollow dot to a full one with a text below."""
    from matplotlib.patches import Rectangle

    low, high, y = place
    thick, at = _BAR * pen.paper.scale, y
    top = y + thick * len(one.bars) / 2
    if one.dots or not on_axis:
        y = y + 0.6 * pen.paper.small if one.dots else y
        sheet.plot(
            [low, high],
            [y, y],
            lw=(1.6 if one.dots else 4.2) * pen.paper.scale,
            color=pen.colours.grid,
            zorder=1,
            solid_capstyle="butt",
        )
    longest = low
    for index, (share, hue) in enumerate(one.bars):
        if math.isfinite(share):
            corner, length = (low, top - (index + 0.93) * thick), min(share, 1.0) * (high - low)
            colour = pen.colours.of(hue) if hue else pen.colours.compute
            sheet.add_patch(Rectangle(corner, length, 0.86 * thick, color=colour, lw=0, gid="bar", zorder=2))
            if low + length > longest:
                longest, at = low + length, top - (index + 0.5) * thick
    if one.bars:
        unknown = not any(math.isfinite(share) for share, _ in one.bars)
        x = longest + 3 if on_axis and not unknown else low + 3 if unknown else high + 4
        put_text(
            sheet,
            x,
            at,
            one.text,
            pen.paper.small,
            pen.colours.faint if unknown else pen.colours.text,
            bbox=halo(pen.colours),
            zorder=3,
            **_MIDDLE,
        )
    if one.dots:
        xs = [low + min(value, 1.0) * (high - low) for value in one.dots]
        if all(map(math.isfinite, xs)):
            colour = pen.colours.of(one.hue) if one.hue else pen.colours.connector
            sheet.plot(xs, [y, y], lw=2.2 * pen.paper.scale, color=colour, zorder=2, solid_capstyle="butt")
        for x, new in zip(xs, (False, True), strict=True):
            if math.isfinite(x):
                paint: dict[str, Any] = {
                    "mfc": pen.colours.text if new else pen.colours.ground,
                    "mec": pen.colours.text,
                    "mew": 0.9,
                }
                paint |= {
                    "ms": LOOKS["dot"].size * pen.paper.scale,
                    "zorder": 4 if new else 3,
                    "gid": "after" if new else "before",
                }
                sheet.plot([x], [y], "o", **paint)
        text = fitted(one.text, pen.paper.small, high - low + 8 * pen.paper.scale, pen.measure)
        put_text(sheet, low, y - 1.5 * pen.paper.small, text, pen.paper.small, pen.colours.text, **_MIDDLE)


def draw_timeline(sheet: Axes, place: tuple[float, float, float, float], block: Timeline, pen: Pen) -> None:
    """Bands of bars from 0 to the peak, hatched where nothing is known, above the axis of time; left, bottom, width, height."""
    from matplotlib.patches import Rectangle

    (left, bottom, width, tall), scale = place, pen.paper.scale
    size = pen.paper.size(7.6)
    title = fitted(block.title, size * 1.2, pen.paper.width - 2 * pen.paper.edge, pen.measure)
    put_text(sheet, pen.paper.edge, bottom + tall + 5 * scale, title, size, pen.colours.text, va="bottom", weight="bold")
    xs = [left + width * edge / block.seconds for edge in block.edges]
    spans = list(pairwise([*xs, left + width] if xs[-1] < left + 0.999 * width else xs))
    row = (tall - _STRIP * scale) / max(len(block.bands), 1)
    for index, (name, text, hue, values) in enumerate(block.bands):
        low, high = bottom + tall - (index + 1) * row + 1.5 * scale, row - 3 * scale
        top = max([1.0, *(value for value in values if math.isfinite(value))])
        for (begin, end), value in zip(spans, [*values, *[math.nan] * (len(spans) - len(values))], strict=True):
            known = math.isfinite(value)
            paint: dict[str, Any] = {"color": pen.colours.of(hue) if hue else pen.colours.compute, "lw": 0, "gid": "band"}
            paint = paint if known else {"fc": "none", "ec": pen.colours.faint, "hatch": "////", "lw": 0, "gid": "unknown"}
            sheet.add_patch(Rectangle((begin, low), end - begin, high * value / top if known else high, **paint))
        sheet.add_patch(Rectangle((left, low), width, high, fc="none", ec=pen.colours.grid, lw=0.6))
        label, middle = fitted(name, pen.paper.key, left - pen.paper.edge - 4 * scale, pen.measure), low + high / 2
        put_text(sheet, left - 4 * scale, middle, label, pen.paper.key, pen.colours.text, ha="right", va="center")
        put_text(sheet, left + width + 4 * scale, middle, text, pen.paper.key, pen.colours.faint, va="center")
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
            put_text(sheet, x, bottom - 5, text, pen.paper.key, pen.colours.text, ha="center", va="top")
    name = f"Time [{_TIME_PREFIXES[exponent]}]"
    put_text(
        sheet,
        left + width / 2,
        bottom - 7 - 1.25 * pen.paper.key,
        name,
        pen.paper.axis,
        pen.colours.text,
        ha="center",
        va="top",
    )


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
    colours = [pen.colours.of(hue) if hue else pen.colours.compute for hue in block.hues]
    for colour, end, y in zip(colours, ends, upper, strict=False):
        xs = left - 8, left - 3, left + _FAN - 15, left + _FAN - 11
        sheet.plot(xs, (end, end, y, y), lw=0.5, color=colour, gid="leader")
    x = left + _FAN - 9
    for index, ((head, cells, second, more), width) in enumerate(
        zip(block.columns, _widths(block, pen.measure, pen.paper), strict=True)
    ):
        at, side = (x, "left") if index == 0 else (x + width, "right")
        for title, ys in ((head, upper), (second, lower)):
            if ys:
                put_text(sheet, at, ys[0] + row, title, size, pen.colours.faint, ha=side, **_MIDDLE)
        for cell, y, colour in zip((*cells, *more), (*upper, *lower), colours, strict=True):
            put_text(sheet, at, y, cell, size, colour if index == 0 else pen.colours.text, ha=side, **_MIDDLE)
        x += width + _APART
