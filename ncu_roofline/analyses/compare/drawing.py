"""Draws a comparison into matplotlib axes: a roofline with dots before and after, and the list of kernels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ncu_roofline.analyses.compare.chart import Line, Move, MoveChart, MovePanel, Roof
from ncu_roofline.analyses.compare.kernels import CLOSER, FASTER, FURTHER, SLOWER
from ncu_roofline.analyses.hierarchical.drawing import draw_axes
from ncu_roofline.analyses.hierarchical.looks import level_colour
from ncu_roofline.base.texts import shorten
from ncu_roofline.base.units import format_value
from ncu_roofline.chips.palette import GAIN, LOSS
from ncu_roofline.rendering import layout
from ncu_roofline.rendering.layout import Box, Measure, Obstacles, View
from ncu_roofline.rendering.lettering import drawable, fitted, put_text
from ncu_roofline.rendering.paper import Paper
from ncu_roofline.rendering.style import MARKERS, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANEL_HEAD, PANEL_FOOT = 14.0, 30.0  # points above and below the axes of a roofline
LIST_HEAD = 28.0
_LINE, _LINE_VERDICT = 28.0, 8.0  # points that a kernel takes in the list, and its verdict
_TITLE, _LABEL, _NAME, _SMALL = 7.6, 6.2, 6.8, 6.0  # font sizes
_PAPER = Paper(font=7.0)  # for the letters at the axes
_DOT = 5.0
_NEAR = 5.0  # points between two dots; nearer ones are not joined
_NAMED = 34  # characters of a name at a dot
_CROWDED = 4.0  # price of a place for a name that covers too much
_ROOM = 8.0  # the axis goes on to so many times the highest intensity, for names


def colour_of(outcome: str, colours: Theme) -> str:
    """Colour of what changed, on the theme's ground."""
    hue = {FASTER: GAIN, CLOSER: GAIN, SLOWER: LOSS, FURTHER: LOSS}.get(outcome)
    return colours.connector if hue is None else colours.of(hue)


def _markers(data: MoveChart) -> dict[int, str]:
    return {line.number: MARKERS[index % len(MARKERS)] for index, line in enumerate(data.lines)}


def draw_panel(
    axes: Axes, panel: MovePanel, data: MoveChart, size: tuple[float, float], colours: Theme, measure: Measure
) -> None:
    """A roofline of ``size`` points: roofs, hollow dots of the baseline, filled ones of the new report, arrows between them."""
    dots = [(dot.intensity, dot.performance) for move in panel.moves for dot in move.dots]
    compute, bandwidth = panel.of_kind("compute"), panel.of_kind("bandwidth")
    peaks, slopes = [roof.value for roof in compute], [roof.value for roof in bandwidth]
    view = View(*layout.limits(dots, peaks, slopes, beyond=_ROOM), *size)
    draw_axes(axes, view, panel.unit, colours, measure, _PAPER)
    title = fitted(panel.title, _TITLE * 1.25, view.width, measure)  # bold is wider than what is measured
    axes.set_title(drawable(title), fontsize=_TITLE, color=colours.text, loc="left", pad=3, weight="bold")
    obstacles = Obstacles(view)
    top, steepest = max(peaks, default=view.y1), max(slopes, default=None)
    for roof in bandwidth:
        _roof(axes, layout.diagonal(view, roof.value, top), level_colour(roof.level, colours), view, obstacles)
    for roof in compute:
        span = layout.horizontal(view, roof.value, steepest)
        ends = ((span[0], roof.value), (span[1], roof.value)) if span else None
        _roof(axes, ends, colours.compute, view, obstacles)
    _arrows(axes, panel, data, view, obstacles, colours)
    for roof in (*compute, *bandwidth):
        _roof_label(axes, roof, view, (top, steepest), obstacles, colours, measure)
    for move in panel.moves:
        _name(axes, move, view, obstacles, colours, measure)


_Ends = tuple[tuple[float, float], tuple[float, float]]


def _roof(axes: Axes, ends: _Ends | None, colour: str, view: View, obstacles: Obstacles) -> None:
    if ends is None:
        return
    (ax, ay), (bx, by) = ends
    axes.plot([ax, bx], [ay, by], lw=1.2, color=colour, zorder=3, gid="roof")
    obstacles.add(layout.segment(view.x(ax), view.y(ay), view.x(bx), view.y(by)), 1.2)


def _arrows(axes: Axes, panel: MovePanel, data: MoveChart, view: View, obstacles: Obstacles, colours: Theme) -> None:
    markers = _markers(data)
    for move in panel.moves:
        colour, places = level_colour(move.level, colours), []
        for dot in move.dots:
            if not view.holds(dot.intensity, dot.performance):
                continue
            new = dot is move.after
            places.append((view.x(dot.intensity), view.y(dot.performance)))
            axes.plot(
                [dot.intensity], [dot.performance], ls="none", marker=markers[move.number], ms=_DOT, zorder=6 if new else 5,
                mfc=colour if new else colours.ground, mec=colour, mew=0.9, gid="after" if new else "before",
            )  # fmt: skip
            obstacles.add(Box(*places[-1], _DOT + 1, _DOT + 1), 1.0)
        if len(places) == 2 and math.dist(*places) > _NEAR + _DOT:
            _arrow(axes, move, colours.text)
            obstacles.add(layout.segment(*places[0], *places[1], 4.0), 1.6)  # as thick as its head


def _arrow(axes: Axes, move: Move, colour: str) -> None:
    assert move.before
    axes.annotate(
        "",
        xy=(move.after.intensity, move.after.performance),
        xytext=(move.before.intensity, move.before.performance),
        arrowprops={
            "arrowstyle": "-|>", "mutation_scale": 7, "lw": 0.9, "color": colour,
            "shrinkA": _DOT / 2 + 0.6, "shrinkB": _DOT / 2 + 1,
        },
        zorder=4,
        gid="arrow",
    )  # fmt: skip


def _roof_label(
    axes: Axes,
    roof: Roof,
    view: View,
    most: tuple[float, float | None],
    obstacles: Obstacles,
    colours: Theme,
    measure: Measure,
) -> None:
    value = format_value(roof.value, roof.unit, 3)
    name = shorten(roof.label, 30)
    for text in (f"{name} {value}{' measured' if roof.origin == 'measured' else ''}", f"{name} {value}", name):
        width, height = measure(text, _LABEL)
        if roof.kind == "compute":
            places = layout.along_horizontal(view, [roof.value], most[1], width, height)
        else:
            places = layout.along_diagonal(view, [roof.value], most[0], width, height)
        if box := obstacles.place(places):
            _text(axes, text, box, view, level_colour(roof.level, colours) if roof.level else colours.compute, colours)
            return


def _name(axes: Axes, move: Move, view: View, obstacles: Obstacles, colours: Theme, measure: Measure) -> None:
    """Name and change at the new dot where there is room; the list below has the symbols of all."""
    dot, text = move.after, f"{shorten(move.label, _NAMED)} {move.said}"
    if not view.holds(dot.intensity, dot.performance):
        return
    x, y = view.x(dot.intensity), view.y(dot.performance)
    box = obstacles.place(layout.around(x, y, *measure(text, _LABEL), 4.5, reach=5), margin=0.6, limit=_CROWDED)
    if box is None:
        return
    if line := layout.leader(x, y, box):
        xs, ys = zip(*((a / view.width, b / view.height) for a, b in line), strict=True)
        axes.plot(xs, ys, transform=axes.transAxes, lw=0.4, color=colours.faint, zorder=4)
    _text(axes, text, box, view, colours.text, colours)


def _text(axes: Axes, text: str, box: Box, view: View, colour: str, colours: Theme) -> None:
    put_text(
        axes, box.x / view.width, box.y / view.height, text, _LABEL, colour, transform=axes.transAxes, ha="center", va="center",
        rotation=box.angle, rotation_mode="anchor", zorder=7, gid="label",
        bbox={"boxstyle": "square,pad=0.05", "facecolor": colours.ground, "edgecolor": "none", "alpha": 0.75},
    )  # fmt: skip


def list_height(data: MoveChart, width: float, measure: Measure) -> float:
    """Points that the list takes."""
    return LIST_HEAD + len(data.lines) * (_LINE + _LINE_VERDICT * _below(data, width, measure))


def _below(data: MoveChart, width: float, measure: Measure) -> bool:
    """Whether verdicts need a line of their own: beside the share of the roof some have no room."""
    columns = _columns(data, 0.0, width)
    if len(columns) == 2 or not _timed(data):
        start, end = columns[-1]
        return any(measure(_beside(line), _SMALL)[0] > end - start for line in data.lines if line.verdict)
    return any(line.verdict for line in data.lines)


def _beside(line: Line) -> str:
    return ", ".join(filter(None, (line.shares_text, line.verdict)))


def _timed(data: MoveChart) -> bool:
    return data.timed and any(time > 0 for line in data.lines for time in line.times)


def draw_list(
    sheet: Axes,
    place: tuple[float, float, float],
    data: MoveChart,
    states: tuple[str, str],
    colours: Theme,
    measure: Measure,
) -> None:
    """The kernels below each other: name and change, times and shares of the roof as dots before and after on their scales.

    ``place``: left, top and width in points of the sheet.
    """
    left, top, width = place
    _states(sheet, left, top - 6, width, states, colours, measure)
    longest = max((time for line in data.lines for time in line.times if math.isfinite(time)), default=0.0)
    columns, timed, below = _columns(data, left, width), _timed(data), _below(data, width, measure)
    heads = [f"run time, 0 to {format_value(longest, 'second', 3)}"] * timed + ["share of its roof, 0 to 100 %"]
    for (start, end), head in zip(columns, heads, strict=False):
        put_text(
            sheet, start, top - 20, fitted(head, _SMALL, end - start, measure), _SMALL, colours.faint, va="center_baseline"
        )
    for index, line in enumerate(data.lines):
        y = top - LIST_HEAD - (_LINE + _LINE_VERDICT * below) * index
        _head(sheet, line, _markers(data)[line.number], (left, y - 5, width), colours, measure)
        scales = [(line.times[0] / longest, line.times[1] / longest)] if timed else []
        texts = [line.times_text] * timed + [line.shares_text if below else _beside(line)]
        scales.append((min(line.shares[0], 1.0), min(line.shares[1], 1.0)))
        hues = [colour_of(line.outcome, colours), colours.connector]  # of the outcome, which shares have only without times
        for (start, end), values, text, hue in zip(columns, scales, texts, hues, strict=False):
            _dumbbell(sheet, (start, end, y - 13), values, hue, colours)
            shown = fitted(text, _SMALL, end - start, measure)
            put_text(sheet, start, y - 20, shown, _SMALL, colours.text, va="center_baseline")
        if below:
            verdict = fitted(line.verdict, _SMALL, width - 4, measure)
            put_text(sheet, left + 4, y - 28, verdict, _SMALL, colours.faint, va="center_baseline")


def _columns(data: MoveChart, left: float, width: float) -> list[tuple[float, float]]:
    """From where to where each scale goes: run times, shares of the roof where any is known."""
    shared = any(math.isfinite(share) for line in data.lines for share in line.shares)
    if not _timed(data) or not shared:
        return [(left + 4, left + width - 4)]
    middle = left + 0.5 * width
    return [(left + 4, middle - 10), (middle + 4, left + width - 4)]


def _squeezed(name: str, room: float, measure: Measure) -> str:
    """A name cut in its middle to ``room`` points: names differ at their ends."""
    lengths = range(len(name), 8, -1)
    return next((text for length in lengths if measure(text := shorten(name, length), _NAME)[0] <= room), shorten(name, 8))


def _states(sheet: Axes, x: float, y: float, width: float, states: tuple[str, str], colours: Theme, measure: Measure) -> None:
    """What hollow and filled dots stand for."""
    for name, new in zip(states, (False, True), strict=True):
        paint = colours.text if new else colours.ground
        sheet.plot([x + 4], [y], "o", ms=_DOT - 0.4, mfc=paint, mec=colours.text, mew=0.9)
        text = _squeezed(name, width / 2 - 16, measure)
        put_text(sheet, x + 10, y, text, _NAME, colours.text, va="center_baseline")
        x += measure(text, _NAME)[0] + 22


def _head(sheet: Axes, line: Line, marker: str, place: tuple[float, float, float], colours: Theme, measure: Measure) -> None:
    left, y, width = place
    said = measure(line.said, _NAME)[0]
    sheet.plot([left + 4], [y], marker=marker, ms=_DOT - 0.6, color=colours.faint, mew=0)
    name = _squeezed(line.label, width - said * 1.1 - 22, measure)  # bold is wider than what is measured
    put_text(sheet, left + 10, y, name, _NAME, colours.text, va="center_baseline")
    colour = colour_of(line.outcome, colours)
    put_text(
        sheet, left + width, y, line.said, _NAME, colours.faint if colour == colours.connector else colour,
        ha="right", va="center_baseline", weight="bold",
    )  # fmt: skip


def _dumbbell(sheet: Axes, place: tuple[float, float, float], values: tuple[float, float], hue: str, colours: Theme) -> None:
    """Hollow before, filled after, on a scale from 0 to 1; what is unknown has no dot."""
    start, end, y = place
    sheet.plot([start, end], [y, y], lw=1.6, color=colours.grid, zorder=1, solid_capstyle="round")
    xs = [start + value * (end - start) for value in values]
    if all(map(math.isfinite, xs)):
        sheet.plot(xs, [y, y], lw=2.2, color=hue, zorder=2, solid_capstyle="butt")
    for x, new in zip(xs, (False, True), strict=True):
        if math.isfinite(x):
            paint: dict[str, Any] = {"mfc": colours.text if new else colours.ground, "mec": colours.text, "mew": 0.9}
            sheet.plot([x], [y], "o", ms=_DOT - 0.4, zorder=4 if new else 3, gid="after" if new else "before", **paint)
