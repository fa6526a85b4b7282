"""A chart of marks as a figure of matplotlib: blocks in rows on paper of some size, the legend and notes below."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ncu_roofline.base.texts import clean
from ncu_roofline.base.units import UNITS, format_value
from ncu_roofline.rendering.chart import (
    Axis,
    Block,
    Chart,
    Key,
    Line,
    Listing,
    Panel,
    Point,
    Region,
    Roof,
    Table,
    Text,
    Timeline,
)
from ncu_roofline.rendering.layout import Box, View
from ncu_roofline.rendering.legend import Legend, below, columns, draw_legend, faced
from ncu_roofline.rendering.lettering import Pen, drawable, first_fitting, fitted, measurer, wrapped
from ncu_roofline.rendering.listing import draw_listing, draw_table, draw_timeline, height_of
from ncu_roofline.rendering.paper import Paper, PaperError, paper_of
from ncu_roofline.rendering.picture import header_height, put_header, sheet_over
from ncu_roofline.rendering.plan import ARROW, Arrow, Label, Plan, label, plan, size_of
from ncu_roofline.rendering.style import LOOKS, MARKERS, THEMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.path import Path

_NARROW_CHART = 60.0  # less than this from end to end leaves but one power of ten, or none
# On the default paper, points left, right, above and below the axes: of a panel, of one with axes on all sides, and of bands.
_PLAIN, _FRAMED, _BANDS = (44.0, 9.0, 15.0, 28.0), (42.0, 40.0, 40.0, 28.0), (58.0, 34.0, 19.0, 28.0)
_UNTITLED = 3.0  # above axes without a title
_WIDE, _SHAPE, _LOWEST, _HIGHEST = 0.6, 0.9, 18.0, 38.0  # height over width of axes, and their height in fonts
_LEAST = 9.0  # fonts: lower axes show nothing
_SIDE_BY_SIDE = 26.0  # fonts that a panel needs
_NOTE_LINES = 3  # where the height is given
_PASSES = 5
_ARROW_FROM = 14.0  # points between two places; nearer ones leave no room for an arrow head in the middle


@dataclass(frozen=True)
class _Slot:
    """A block, and the place of its axes or of all of a list: points, counted from the left and the top; the end of its row."""

    block: Block
    left: float
    top: float
    width: float
    height: float
    end: float
    plan: Plan | None = None


@dataclass(frozen=True)
class _Page:
    """What is on the paper, lengths in points: header, blocks, the legend in one of these or below their ``end``, notes."""

    chart: Chart
    heading: tuple[str, ...]
    slots: Sequence[_Slot]
    inside: Legend
    legend: Legend
    notes: Sequence[str]
    foot: float
    end: float
    height: float


def chart_figure(
    charts: Callable[[int], Chart | None],
    *,
    title: str = "",
    theme: str = "light",
    width: str | float | None = None,
    height: str | float | None = None,
    font: float | None = None,
    dpi: float | None = None,
    preset: str | None = None,
    heading: bool = True,
) -> Figure:
    """The first of ``charts`` that the paper has room for, from complete (0) on, as a figure of its own, outside pyplot.

    ``width`` and ``height`` are lengths ("3.3in", "84mm") or inches, ``font`` is in points; ``preset``: column, page or slide.
    Raises ValueError for an unknown theme or preset, and PaperError, which is one, for a paper that nothing can be drawn on.
    """
    if theme not in THEMES:
        raise ValueError(f"theme {theme!r} is not one of {', '.join(THEMES)}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    paper = paper_of(width, height, font, dpi, preset)
    pen = Pen(THEMES[theme], measurer(), paper)
    page = _page(charts, pen, heading)
    made = Figure(figsize=(paper.width / 72, page.height / 72), dpi=paper.dpi, facecolor=pen.colours.ground)
    FigureCanvasAgg(made)  # so that it can be drawn outside pyplot
    sheet = sheet_over(made, paper.width, page.height)
    if heading:
        put_header(sheet, clean(title or page.chart.title), page.heading, pen)
    pen = replace(pen, shapes={name: MARKERS[place % len(MARKERS)] for place, name in enumerate(page.chart.names)})

    def axes_at(left: float, bottom: float, width: float, height: float, **more: Any) -> Axes:
        parts = left / paper.width, bottom / page.height, width / paper.width, height / page.height
        return made.add_axes(parts, **more)

    axes, beside = None, None
    for slot in page.slots:
        bottom = page.height - slot.top - slot.height
        if isinstance(slot.block, Listing):
            draw_listing(sheet, (slot.left, page.height - slot.top, slot.width), slot.block, pen)
        elif isinstance(slot.block, Timeline):
            draw_timeline(sheet, (slot.left, bottom, slot.width, slot.height), slot.block, pen)
        elif isinstance(slot.block, Table):
            draw_table(sheet, (slot.left, bottom, slot.height), slot.block, beside, pen)
        elif slot.plan:
            beside = slot.plan.view
            axes = axes_at(slot.left, bottom, slot.width, slot.height, facecolor=pen.colours.ground)
            _draw(axes, slot.plan, pen)
            if box := slot.plan.legend:
                corner = (slot.left + box.x - box.width / 2, bottom + box.y - box.height / 2)
                frame = axes_at(*corner, box.width, box.height, facecolor=pen.colours.ground, zorder=3)
                frame.set(xlim=(0, box.width), ylim=(0, box.height), xticks=(), yticks=())
                for spine in frame.spines.values():
                    spine.set(color=pen.colours.grid, linewidth=0.6)
                draw_legend(frame, 0, 0, page.inside, pen)
    if page.chart.empty:
        room = (0.8 * paper.width, page.height - page.foot - header_height(len(page.heading), paper))
        if not axes:
            axes = axes_at(0.1 * paper.width, page.foot, *room, facecolor="none")
            axes.set_axis_off()
        _explain(axes, page.chart.empty, *((beside.width, beside.height) if beside else room), pen)
    draw_legend(sheet, 4, page.height - page.end - page.legend.height, page.legend, pen)
    for index, line in enumerate(page.notes):
        y = paper.edge - 2 + paper.note_row * (len(page.notes) - 1 - index)
        pen.put(sheet, paper.edge, y, line, paper.small, "faint", va="bottom", gid="note")
    return made


def _page(charts: Callable[[int], Chart | None], pen: Pen, heading: bool) -> _Page:
    """The page; of a height that is asked for first notes and the lines of the header give way, then parts of the chart."""
    less = 0
    while chart := charts(less):
        for lines in (chart.note_lines,) if not pen.paper.height else (_NOTE_LINES, 0):
            if page := _filled(chart, lines, pen, heading):
                return page
        less += 1
    raise PaperError(f"height {pen.paper.height / 72:.3g}in has no room for the picture; leave it out, or ask for more")


def _filled(chart: Chart, lines: int, pen: Pen, heading: bool) -> _Page | None:
    """A page with so many lines of notes at most; None where its height leaves too little to the axes."""
    paper, measure = pen.paper, pen.measure
    room = paper.width - 2 * paper.edge
    texts = (*wrapped(chart.sentences, paper.key, room, 2, measure), *filter(None, [chart.facts])) if lines else ()
    head = header_height(len(texts), paper) if heading else 4.0
    reserved, factor, page = 0.0, 1.0, None
    for _ in range(_PASSES):  # what the axes leave to legend and notes depends on what they hold of them
        bare, down, stretching = _slots(chart, head, factor, paper)
        slots, inside, legend = _planned(chart, bare, pen)
        notes = wrapped(_notes(chart, slots) if lines else [], paper.small, room, lines, measure)
        foot = paper.note_row * len(notes) + paper.edge
        needed = foot + (legend.height + 6 if legend.keys else 0)
        if not paper.height or down + needed <= paper.height + 0.01:
            end = max((slot.end for slot in slots if slot.plan), default=down)
            lower = legend.height + 6 if legend.keys else 0.0  # lists stand below the legend
            slots = [replace(slot, top=slot.top + (lower if slot.top > end else 0.0)) for slot in slots]
            page = _Page(chart, texts, slots, inside, legend, notes, foot, end, paper.height or down + needed)
        if not paper.height or not stretching or (page and abs(needed - reserved) < 1):
            break
        lowest, reserved = min(slot.height for slot in bare if _stretches(slot.block)) / factor, needed
        factor = (paper.height - reserved - (down - factor * stretching)) / stretching
        if factor * lowest < _LEAST * paper.font:
            return page
    return page


def _stretches(block: Block) -> bool:
    return isinstance(block, (Panel, Timeline))


def _slots(chart: Chart, head: float, factor: float, paper: Paper) -> tuple[list[_Slot], float, float]:
    """Where the blocks go, how far down they reach, and how high those that can be higher or lower are together.

    Blocks of a row stand side by side where the paper is wide enough; ``factor`` makes axes higher or lower.
    """
    slots: list[_Slot] = []
    down, stretching = head, 0.0
    across = 2 if paper.width >= 2 * _SIDE_BY_SIDE * paper.font else 1
    titled = any(isinstance(block, Panel) and block.title for row in chart.rows for block in row)
    for row in (wished[start : start + across] for wished in chart.rows for start in range(0, len(wished), across)):
        margins = [_margins(block, titled, paper) for block in row]
        above, below_ = max(each[2] for each in margins), max(each[3] for each in margins)
        cells = [paper.width * block.weight / sum(other.weight for other in row) for block in row]
        widths = [cell - left - right for cell, (left, right, *_) in zip(cells, margins, strict=True)]
        heights = [_natural(block, width, len(row) == 1, paper) for block, width in zip(row, widths, strict=True)]
        heights = [high * factor if _stretches(block) else high for block, high in zip(row, heights, strict=True)]
        highest, at = max(heights), 0.0
        for block, cell, (left, *_), width, high in zip(row, cells, margins, widths, heights, strict=True):
            own = high if isinstance(block, Listing) else highest
            slots.append(_Slot(block, at + left, down + above, width, own, down + above + highest + below_))
            at += cell
        down += above + highest + below_
        stretching += highest / factor if any(map(_stretches, row)) else 0.0
    return slots, down if slots else down + 14 * paper.font, stretching


def _natural(block: Block, width: float, alone: bool, paper: Paper) -> float:
    """How high a block of this width is where no height is asked for."""
    if not isinstance(block, Panel):
        return height_of(block, width, paper)
    shape = _WIDE if alone and block.shape != "square" else _SHAPE
    return min(max(shape * width, _LOWEST * paper.font), _HIGHEST * paper.font)


def _margins(block: Block, titled: bool, paper: Paper) -> tuple[float, ...]:
    """Points left, right, above and below the axes of a block."""
    if isinstance(block, Table):
        return (0.0, 0.0, 0.0, 0.0)
    if isinstance(block, Listing):
        return (paper.edge, paper.edge, 6.0 * paper.scale, 6.0 * paper.scale)
    margins = _BANDS if isinstance(block, Timeline) else _FRAMED if block.x.second else _PLAIN
    above = margins[2] if titled or margins is not _PLAIN else _UNTITLED
    return tuple(points * paper.scale for points in (*margins[:2], above, margins[3]))


def _planned(chart: Chart, slots: Sequence[_Slot], pen: Pen) -> tuple[list[_Slot], Legend, Legend]:
    """The blocks with their plans, the legend inside one of them, and what stands below them instead.

    Things that find no room for their name are in the legend, which takes room from names in turn.
    """
    named = {mark.key for slot in slots if isinstance(slot.block, Panel) for mark in slot.block.marks if isinstance(mark, Text)}
    listed = [name for name in chart.names if name not in named]
    while True:
        regions = {mark.role for slot in slots if slot.plan for mark in slot.plan.regions}
        keys = [key for key in chart.keys if not key.instead or key.instead in listed]
        names = [Key(text, "dot", instead=name) for name, text in chart.names.items() if text and name in listed]
        blocks = [columns([*keys, *names], number, pen) for number in (1, 2, 3)] if chart.inside else []
        extents = [(block.width, block.height) for block in blocks if block.keys]
        inside, missing, found = Legend(), dict[str, None](), []
        for slot in slots:
            planned = None
            if isinstance(slot.block, Panel):
                planned = plan(slot.block, slot.width, slot.height)
                taken = [_explanation(chart.empty, slot.width, slot.height, pen)[1]] if chart.empty else []
                room = () if inside.keys else extents
                label(planned, list(chart.names), pen.measure, pen.paper, listed, room, taken)
                missing |= dict.fromkeys(sorted(planned.missing - set(listed)))
                if planned.legend:
                    inside = next(block for block in blocks if (block.width, block.height) == planned.legend.extent)
            found.append(replace(slot, plan=planned))
        if not missing:
            break
        listed += missing
    regions = {mark.role for slot in found if slot.plan for mark in slot.plan.regions}
    keys = [key for key in keys if key.role != "overhead" or key.role in regions] if slots else []
    return found, inside, Legend() if inside.keys else below(keys, names, pen.paper.width - 8, pen)


def _notes(chart: Chart, slots: Sequence[_Slot]) -> list[str]:
    """What of the marks has no room or lies beyond the axes, then the notes of the chart."""
    plans = [slot.plan for slot in slots if slot.plan]
    untold = dict.fromkeys(text for one in plans for text in one.untold)
    beyond: dict[str, dict[str, None]] = {}
    for text, number in (entry for one in plans for entry in one.beyond):
        beyond.setdefault(text, {})[number] = None
    parts = [f"{text} ({', '.join(numbers)})" for text, numbers in beyond.items()]
    outside = sum(one.outside for one in plans)
    return [
        *([f"Roofs without room for their value: {', '.join(untold)}."] if untold else ()),
        *([f"{outside} dot{'s' if outside > 1 else ''} beyond the axes."] if outside else ()),
        *([f"Below the axes: {'; '.join(parts)}."] if parts else ()),
        *chart.notes,
    ]


def _draw(axes: Axes, found: Plan, pen: Pen) -> None:
    """Axes, lines, regions, symbols and labels of one panel."""
    view = found.view
    _draw_axes(axes, found.panel, view, pen)
    for hue, corners in found.areas:
        xs, ys = zip(*corners, strict=True)
        look = LOOKS["band"]
        axes.fill(xs, ys, color=pen.colours.colour("band", hue), alpha=look.alpha, lw=0, zorder=look.order, gid="band")
    for region in found.regions:
        _draw_region(axes, view, region, pen)
    joined = [line for line in found.lines if line.role == "joined"]
    for line in (line for line in found.lines if line.role != "joined"):
        _draw_line(axes, view, line, pen)
    if joined:
        from matplotlib.collections import LineCollection

        look = LOOKS["joined"]
        paint: dict[str, Any] = {
            "colors": pen.colours.connector,
            "linewidths": look.width * pen.paper.scale,
            "zorder": look.order,
        }
        axes.add_collection(LineCollection([line.places for line in joined], **paint), autolim=False)
    _draw_points(axes, found.points, pen)
    for arrow in found.arrows:
        _draw_arrow(axes, view, arrow, pen)
    for one in found.labels:
        _draw_label(axes, view, one, pen)


def _draw_points(axes: Axes, points: Iterable[Point], pen: Pen) -> None:
    """The symbols, those that look alike at once; large ones first, so that none hides another, and the first of all last."""
    groups: dict[tuple[Any, ...], list[Point]] = {}
    for point in points:
        look = LOOKS[point.role]
        shape = pen.shapes.get(point.name) or look.shape or "o"
        key = (look.order, -size_of(point, pen.paper), point.role, point.fill, pen.colours.colour(point.role, point.hue), shape)
        groups.setdefault(key, []).append(point)
    backwards = list(groups.items())[::-1]
    for (order, size, role, fill, colour, shape), alike in sorted(backwards, key=lambda item: item[0][:2]):
        look = LOOKS[role]
        face = faced("none" if look.ring else fill, colour, pen, look)
        xs, ys = [point.x for point in alike], [point.y for point in alike]
        gid = f"dots-{fill}" if role == "dot" else f"point-{role}"
        axes.plot(xs, ys, ls="none", marker=shape, ms=-size, zorder=order, gid=gid, **face)


def _draw_axes(axes: Axes, panel: Panel, view: View, pen: Pen) -> None:
    axes.set(xscale="log", yscale="log", xlim=(view.x0, view.x1), ylim=(view.y0, view.y1))
    _ticks(axes.xaxis, panel.x, (view.x0, view.x1), view.width, 5.2, pen)
    _ticks(axes.yaxis, panel.y, (view.y0, view.y1), view.height, 2.4, pen)
    frame = {"left", "bottom"}
    for where, side, limits in (("top", panel.x, (view.x0, view.x1)), ("right", panel.y, (view.y0, view.y1))):
        if side.second:
            frame.add(where)
            _draw_second(axes, where, side, limits, view, pen)
    for name, spine in axes.spines.items():
        spine.set_visible(name in frame)
        spine.set(color=pen.colours.faint, linewidth=0.6)
    if panel.shape == "roofline":
        axes.grid(which="major", color=pen.colours.grid, linewidth=0.5)
    axes.set_axisbelow(True)
    size = pen.paper.size(7.6)
    title = fitted(panel.title, size * 1.2, view.width, pen.measure)  # bold is wider than what is measured
    axes.set_title(drawable(title), fontsize=size, color=pen.colours.text, loc="left", pad=3, weight="bold")


def _ticks(axis: Any, side: Axis, limits: tuple[float, float], length: float, apart: float, pen: Pen) -> None:
    """Ticks and name of one side, so long (points), with numbers so many letters apart; in a narrow range of 2 and 5, too."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    span, unit = limits[1] / limits[0], side.unit
    symbol = "" if unit == "second" else UNITS[unit].symbol
    scale, prefixed = 1.0, symbol
    if side.prefix == "name":  # of the largest, at most tera as people compare chips in it
        scale = 10.0 ** min(max(3 * int(math.log10(limits[1] / 2) // 3), 0), 12)
        prefixed = format_value(scale, unit).split(" ")[-1]
    room = length / (3 * math.log10(span)) > apart * pen.paper.key
    subs = (1.0, 2.0, 5.0) if span < _NARROW_CHART and room else (1.0,)
    axis.set_major_locator(LogLocator(base=10, subs=subs, numticks=max(int(length / (apart * pen.paper.key)), 3)))
    axis.set_minor_locator(LogLocator(base=10, subs=range(2, 10), numticks=30))
    if side.prefix == "tick":
        axis.set_major_formatter(FuncFormatter(lambda value, _: format_value(value, unit, 3).removesuffix(symbol).strip()))
    else:
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / scale:g}"))
    axis.set_minor_formatter(NullFormatter())
    axis.set_tick_params(
        which="both", direction="out", labelsize=pen.paper.key, colors=pen.colours.text, width=0.6, length=3, pad=2
    )
    axis.set_tick_params(which="minor", length=1.6, width=0.4)
    name = first_fitting([text.replace("{unit}", prefixed) for text in side.names], pen.paper.axis, length, pen.measure)
    axis.set_label_text(drawable(name), fontsize=pen.paper.axis, color=pen.colours.text)
    axis.labelpad = 2


def _draw_second(axes: Axes, where: str, side: Axis, limits: tuple[float, float], view: View, pen: Pen) -> None:
    """The upper or right axis: the same places times a number, in another unit."""
    assert side.second
    by, unit, name = side.second
    low, high = limits[0] * by, limits[1] * by
    if where == "top":
        twin = axes.twiny()
        twin.set(xscale="log", xlim=(low, high))
        twin.yaxis.set_visible(False)
        _ticks(twin.xaxis, Axis(unit, (name,)), (low, high), view.width, 5.2, pen)
    else:
        twin = axes.twinx()
        twin.set(yscale="log", ylim=(low, high))
        twin.xaxis.set_visible(False)
        _ticks(twin.yaxis, Axis(unit, (name,)), (low, high), view.height, 2.4, pen)
    for spine in twin.spines.values():
        spine.set_visible(False)


def _draw_region(axes: Axes, view: View, region: Region, pen: Pen) -> None:
    from matplotlib.patches import Rectangle

    look, colour = LOOKS[region.role], pen.colours.colour(region.role, region.hue)
    size = (region.x - view.x0, region.y - view.y0)
    axes.add_patch(Rectangle((view.x0, view.y0), *size, facecolor=colour, alpha=0.1, lw=0, zorder=1, gid=region.role))
    edge = ([view.x0, region.x, region.x], [region.y, region.y, view.y0])
    axes.plot(*edge, ls=look.dashes, lw=look.width * pen.paper.scale, color=colour, zorder=look.order)


def _draw_line(axes: Axes, view: View, line: Line, pen: Pen) -> None:
    """A line, with arrow heads in the middle of pieces that are long enough for one, or at their ends."""
    look, colour = LOOKS[line.role], pen.colours.colour(line.role, line.hue)
    xs, ys = zip(*line.places, strict=True)
    paint: dict[str, Any] = {"ls": look.dashes, "lw": look.width * pen.paper.scale, "alpha": look.alpha, "zorder": look.order}
    if look.arrow != "end":
        axes.plot(xs, ys, color=colour, dash_capstyle="butt", gid=line.role, **paint)
    for (ax, ay), (bx, by) in pairwise(line.places if look.arrow else ()):
        start, end = (view.x(ax), view.y(ay)), (view.x(bx), view.y(by))
        style: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 7 * pen.paper.scale, "color": colour}
        style |= {"lw": 0, "shrinkA": 0, "shrinkB": 0}
        off = pen.paper.scale * LOOKS["dot"].size / 2 + 1
        if look.arrow == "end" and math.dist(start, end) < 4 * off:
            continue
        if look.arrow == "end":
            style |= {"lw": look.width * pen.paper.scale, "shrinkA": off, "shrinkB": off}
            tail, tip = start, end
        elif math.dist(start, end) < _ARROW_FROM:
            continue
        else:
            tip = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
            tail = (tip[0] - (end[0] - start[0]) / 20, tip[1] - (end[1] - start[1]) / 20)
        (tail_x, tail_y), (tip_x, tip_y) = tail, tip
        axes.annotate(
            "", xy=(tip_x / view.width, tip_y / view.height), xytext=(tail_x / view.width, tail_y / view.height),
            xycoords="axes fraction", textcoords="axes fraction", arrowprops=style, annotation_clip=True, zorder=look.order,
            gid="arrow",
        )  # fmt: skip


def _draw_arrow(axes: Axes, view: View, arrow: Arrow, pen: Pen) -> None:
    look, colour = LOOKS["edge"], pen.colours.colour("edge", arrow.hue)
    axes.plot(
        [arrow.x / view.width], [arrow.y / view.height], ls="none", marker=_shaft(arrow.direction),
        ms=1.3 * ARROW * pen.paper.scale,
        mfc="none", mec=colour, mew=look.width * pen.paper.scale, transform=axes.transAxes, zorder=look.order, clip_on=False,
        gid="edge",
    )  # fmt: skip


def _shaft(direction: str) -> Path:
    """An arrow that looks like no symbol of a thing."""
    from matplotlib.path import Path

    vertices = [(0, -1), (0, 1), (-0.65, 0.3), (0, 1), (0.65, 0.3)]
    cos, sin = {"^": (1, 0), "<": (0, 1), "v": (-1, 0), ">": (0, -1)}[direction]
    codes = [Path.MOVETO, Path.LINETO, Path.MOVETO, Path.LINETO, Path.LINETO]
    return Path([(x * cos - y * sin, x * sin + y * cos) for x, y in vertices], codes)


def _draw_label(axes: Axes, view: View, one: Label, pen: Pen) -> None:
    """A text at its place, with the line to its dot, on a ground that keeps lines away from its letters."""
    box, role = one.box, one.mark.role
    gid = f"label-{'roof' if isinstance(one.mark, Roof) else role}"
    if one.leader:
        xs, ys = zip(*((x / view.width, y / view.height) for x, y in one.leader), strict=True)
        axes.plot(xs, ys, transform=axes.transAxes, lw=0.4 * pen.paper.scale, color=pen.colours.faint, zorder=4, gid="leader")
    colour = "faint" if role == "contour" else one.mark.hue or LOOKS[role].colour
    style = "italic" if LOOKS[role].italic else "normal"
    pen.put(
        axes, box.x / view.width, box.y / view.height, one.text, one.size, colour, ground=True, transform=axes.transAxes,
        ha="center", va="center", rotation=box.angle, rotation_mode="anchor", zorder=8, gid=gid, style=style,
    )  # fmt: skip


def _explanation(text: str, width: float, height: float, pen: Pen) -> tuple[str, Box]:
    """The reason for an empty chart in lines, and its box in axes of this size (points), rather low and to the right."""
    size = pen.paper.axis
    letters = int(min(80, max(0.97 * width / pen.measure("n", size)[0], 20)))
    lines = [part for line in text.splitlines() for part in textwrap.wrap(line, letters, break_long_words=False)]
    wide = max(pen.measure(line, size)[0] for line in lines) + 2.4 * size
    tall = 1.5 * size * len(lines) + 1.5 * size
    place = (max(min(0.6 * width, width - wide / 2 - 2), wide / 2), max(0.36 * height, tall / 2))
    return "\n".join(lines), Box(*place, wide, tall)


def _explain(axes: Axes, text: str, width: float, height: float, pen: Pen) -> None:
    lines, box = _explanation(text, width, height, pen)
    around = {"boxstyle": "round,pad=0.6", "facecolor": pen.colours.ground, "edgecolor": pen.colours.faint, "linewidth": 0.6}
    pen.put(
        axes, box.x / width, box.y / height, lines, pen.paper.axis, transform=axes.transAxes, ha="center", va="center",
        bbox=around, zorder=9, linespacing=1.5,
    )  # fmt: skip
