"""A chart of marks as a figure of matplotlib: panels in rows on paper of some size, the legend and notes below."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncu_roofline.base.texts import clean
from ncu_roofline.base.units import UNITS, format_value
from ncu_roofline.rendering.chart import BEYOND, Axis, Chart, Key, Label, Line, Panel, Plan, Region, label, plan
from ncu_roofline.rendering.layout import Measure
from ncu_roofline.rendering.lettering import drawable, first_fitting, fitted, halo, measurer, put_text, wrapped
from ncu_roofline.rendering.paper import Paper, PaperError, paper_of
from ncu_roofline.rendering.picture import header_height, put_header, sheet_over
from ncu_roofline.rendering.style import MARKERS, THEMES, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_COLUMNS = 4
_NARROW_CHART = 60.0  # less than this from end to end leaves but one power of ten, or none
# On the default paper, points left, right, above and below the axes: of a panel, and of one with axes on all sides.
_PLAIN = (42.0, 10.0, 17.0, 28.0)
_FRAMED = (42.0, 40.0, 40.0, 28.0)
_SHAPE, _WIDE = 0.83, 0.52  # height over width of axes side by side, and of axes as wide as the paper
_LEAST = 9.0  # fonts: lower axes show nothing
_SIDE_BY_SIDE = 26.0  # fonts that a panel needs
_NOTE_LINES = 6
_ARROWS = ("sweep",)


@dataclass(frozen=True)
class Look:
    """How a role is drawn: its colour (an attribute of Theme) unless marks have their own, and the line or the shape."""

    colour: str
    width: float = 0.0
    dashes: Any = "-"
    order: float = 3
    size: float = 0.0  # of a shape
    ring: bool = False
    italic: bool = False


LOOKS = {
    "dot": Look("faint", order=7, size=4.6),
    "ring": Look("faint", order=6, size=6.6, ring=True),  # around the dot where both stand at one place
    "contour": Look("grid", 0.7, order=1.5),
    "balance": Look("compute", 1.2),
    "gap": Look("connector", 0.7, (0, (1, 1.5)), 4),
    "sweep": Look("connector", 0.8, order=4),
    "sweep-time": Look("connector", 0.8, (0, (4, 2)), 4),
    "overhead": Look("faint", 0.8, (0, (4, 2.5)), 2),
    "corner": Look("text", italic=True),
}
_LABELS = {"contour": "faint", "factor": "faint"}  # colours of labels that are not those of what they label


@dataclass(frozen=True)
class _Slot:
    """A panel, its left and top edge in points, counted from the left and the top."""

    plan: Plan
    left: float
    top: float


@dataclass(frozen=True)
class _Page:
    """What is on the paper, lengths in points: lines of the header, panels, legend and notes; ``foot`` below the panels.

    ``keys`` and ``names``: each text with its line and its left edge; ``lines`` of the legend.
    """

    chart: Chart
    heading: tuple[str, ...]
    slots: Sequence[_Slot]
    keys: Sequence[tuple[Key, int, float]]
    names: Sequence[tuple[str, int, float]]
    lines: int
    notes: Sequence[str]
    foot: float
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
) -> Figure:
    """The first of ``charts`` that the paper has room for, from complete (0) on, as a figure of its own, outside pyplot.

    ``width`` and ``height`` are lengths ("3.3in", "84mm") or inches, ``font`` is in points; ``preset``: column, page or slide.
    Raises ValueError for an unknown theme or preset, and PaperError, which is one, for a paper that nothing can be drawn on.
    """
    if theme not in THEMES:
        raise ValueError(f"theme {theme!r} is not one of {', '.join(THEMES)}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    colours, paper, measure = THEMES[theme], paper_of(width, height, font, dpi, preset), measurer()
    made = Figure(figsize=(paper.width / 72, 5), dpi=paper.dpi, facecolor=colours.ground)
    FigureCanvasAgg(made)  # so that it can be drawn outside pyplot
    page = _page(charts, measure, paper)
    made.set_size_inches(paper.width / 72, page.height / 72)
    sheet = sheet_over(made, paper.width, page.height)
    put_header(sheet, clean(title or page.chart.title), page.heading, colours, measure, paper)
    shapes = {name: MARKERS[place % len(MARKERS)] for place, name in enumerate(page.chart.names)}
    for slot in page.slots:
        view = slot.plan.view
        bottom = page.height - slot.top - view.height
        place = (slot.left / paper.width, bottom / page.height, view.width / paper.width, view.height / page.height)
        label(slot.plan, list(shapes), measure, paper.small)
        _draw(made.add_axes(place, facecolor=colours.ground), slot.plan, shapes, colours, measure, paper)
    if not page.slots:
        room = page.height - page.foot - header_height(len(page.heading), paper)
        axes = made.add_axes((0.1, page.foot / page.height, 0.8, room / page.height), facecolor="none")
        axes.set_axis_off()
        _explain(axes, page.chart.empty, colours, measure, paper)
    _draw_legend(sheet, page, shapes, colours, paper)
    for index, line in enumerate(page.notes):
        y = paper.edge - 2 + paper.note_row * (len(page.notes) - 1 - index)
        put_text(sheet, paper.edge, y, line, paper.small, colours.faint, va="bottom", gid="note")
    return made


def _page(charts: Callable[[int], Chart | None], measure: Measure, paper: Paper) -> _Page:
    """The page; of a height that is asked for first notes and the lines of the header give way, then parts of the chart."""
    less = 0
    while chart := charts(less):
        for lines in (_NOTE_LINES,) if not paper.height else (2, 0):
            if page := _filled(chart, lines, measure, paper):
                return page
        less += 1
    raise PaperError(f"height {paper.height / 72:.3g}in has no room for the picture; leave it out, or ask for more")


def _filled(chart: Chart, lines: int, measure: Measure, paper: Paper) -> _Page | None:
    """A page with so many lines of notes at most; None where its height leaves too little to the axes."""
    room = paper.width - 2 * paper.edge
    heading = (*wrapped(chart.sentences, paper.key, room, 2, measure), chart.facts) if lines else ()
    head, factor = header_height(len(heading), paper), 1.0
    names, name_lines = _name_places(list(chart.names.values()), measure, paper)
    while True:
        slots, down, axes = _slots(chart, head, factor, paper)
        beyond = _beyond([entry for slot in slots for entry in slot.plan.beyond])
        told = [beyond if note == BEYOND else note for note in chart.notes]
        notes = wrapped(told if lines else [], paper.small, room, lines, measure)
        regions = {region.role for slot in slots for region in slot.plan.regions}
        wanted = [key for key in chart.keys if key.role != "overhead" or key.role in regions] if names else []
        keys, key_lines = _key_places(wanted, measure, paper)
        foot = (paper.row * (key_lines + name_lines) + 12 * paper.scale) if names else 0.0
        foot += paper.note_row * len(notes) + paper.edge
        height = down + foot
        whole = not paper.height or abs(height - paper.height) < 0.01
        if whole or factor != 1.0 or not axes:  # after the second time nothing is lost but some of the paper
            if not whole and height >= paper.height + 0.01:
                return None
            return _Page(chart, heading, slots, keys, names, key_lines, notes, foot, height if whole else paper.height)
        factor = 1 + (paper.height - height) / axes
        if factor * min(slot.plan.view.height for slot in slots) < _LEAST * paper.font:
            return None


def _beyond(entries: Sequence[tuple[str, str]]) -> str:
    """What lies outside the axes, each thing once with all its numbers."""
    found: dict[str, list[str]] = {}
    for text, number in entries:
        if number not in found.setdefault(text, []):
            found[text].append(number)
    parts = [f"{text} ({', '.join(numbers)})" for text, numbers in found.items()]
    return f"Below the axes: {'; '.join(parts)}." if parts else ""


def _slots(chart: Chart, head: float, factor: float, paper: Paper) -> tuple[list[_Slot], float, float]:
    """Where the panels go, how far down they reach, and how high the axes of all rows are together.

    Panels of a row stand side by side where the paper is wide enough; ``factor`` makes all axes higher or lower.
    """
    slots: list[_Slot] = []
    down, axes = head, 0.0
    across = 2 if paper.width >= 2 * _SIDE_BY_SIDE * paper.font else 1
    for wished in chart.rows:
        alone = len(wished) == 1 or across == 1
        for start in range(0, len(wished), across):
            row = wished[start : start + across]
            left, right, above, below = (paper.scale * points for points in (_FRAMED if row[0].x.second else _PLAIN))
            each = paper.width / (1 if alone else across)
            shape = _WIDE if alone and across > 1 else _SHAPE
            width = each - (left + right)
            height = factor * max(shape * width, 18 * paper.font)
            for column, panel in enumerate(row):
                slots.append(_Slot(plan(panel, width, height), left + column * each, down + above))
            down += above + height + below
            axes += height
    return slots, down if slots else down + 20 * paper.font, axes


def _name_places(texts: Sequence[str], measure: Measure, paper: Paper) -> tuple[list[tuple[str, int, float]], int]:
    """The names in as many columns as fit, filled column by column, and how many lines they take."""
    lefts: list[float] = []
    down = 1
    for columns in range(min(_MOST_COLUMNS, len(texts)), 0, -1):
        down = -(-len(texts) // columns)
        parts = [texts[i : i + down] for i in range(0, len(texts), down)]
        widths = [max(measure(text, paper.key)[0] for text in part) + 30 * paper.scale for part in parts]
        lefts = [10 + sum(widths[:i]) for i in range(len(widths))]
        if sum(widths) <= paper.width - 12:
            break
    return [(text, index % down, lefts[index // down]) for index, text in enumerate(texts)], down


def _key_places(keys: Sequence[Key], measure: Measure, paper: Paper) -> tuple[list[tuple[Key, int, float]], int]:
    """The entries one behind the other, and how many lines they take; one that even alone is too long is left out."""
    placed, line, x = [], 0, 10.0
    for key in keys:
        needed = 24 * paper.scale + measure(key.label, paper.key)[0]
        if x + needed > paper.width - 6 and x > 10:
            line, x = line + 1, 10.0
        if x + needed <= paper.width - 6:
            placed.append((key, line, x))
            x += needed + 8 * paper.scale
    return placed, line + 1


def _draw_legend(sheet: Axes, page: _Page, shapes: Mapping[str, str], colours: Theme, paper: Paper) -> None:
    """The entries, then the names with their shapes, downwards from the foot of the page."""
    top, scale = page.foot - 6 * paper.scale, paper.scale
    for key, line, x in page.keys:
        look, y = LOOKS[key.role], top - line * paper.row
        colour = colours.of(key.hue) if key.hue else str(getattr(colours, look.colour))
        if look.ring:
            paint: dict[str, Any] = {"ms": (look.size - 1) * scale, "mfc": "none", "mec": colour, "mew": 0.9 * scale}
            sheet.plot([x + 8 * scale], [y], ls="none", marker="o", **paint)
        elif look.size:
            sheet.plot([x + 8 * scale], [y], ls="none", marker="o", ms=look.size * scale, color=colour, mew=0)
        else:
            sheet.plot([x, x + 16 * scale], [y, y], ls=look.dashes, lw=look.width * scale, color=colour)
        put_text(sheet, x + 20 * scale, y, key.label, paper.key, colours.text, va="center_baseline")
    for (text, line, x), shape in zip(page.names, shapes.values(), strict=True):
        y = top - paper.row * (page.lines + line) - 3 * scale
        sheet.plot([x + 8 * scale], [y], marker=shape, ms=4.8 * scale, color=colours.faint, mew=0)
        put_text(sheet, x + 20 * scale, y, text, paper.key, colours.text, va="center_baseline")


def _draw(axes: Axes, found: Plan, shapes: Mapping[str, str], colours: Theme, measure: Measure, paper: Paper) -> None:
    """Axes, lines, regions, shapes and labels of one panel."""
    _draw_axes(axes, found.panel, found, colours, measure, paper)
    for region in found.regions:
        _draw_region(axes, found, region, colours)
    for line in found.lines:
        _draw_line(axes, line, colours)
    for point in found.points:
        look = LOOKS[point.role]
        colour = colours.of(point.hue) if point.hue else str(getattr(colours, look.colour))
        fill, edge, width = (colours.ground, colour, 0.9 * paper.scale) if look.ring else (colour, colours.ground, 0.4)
        axes.plot(
            [point.x], [point.y], ls="none", marker=shapes[point.name], gid=f"point-{point.role}",
            mfc=fill, mec=edge, mew=width, ms=look.size * paper.scale, zorder=look.order,
        )  # fmt: skip
    for one in found.labels:
        _draw_label(axes, found, one, colours, paper)


def _draw_axes(axes: Axes, panel: Panel, found: Plan, colours: Theme, measure: Measure, paper: Paper) -> None:
    view = found.view
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(view.x0, view.x1)
    axes.set_ylim(view.y0, view.y1)
    sides = ((axes.xaxis, panel.x, view.width, view.x1 / view.x0), (axes.yaxis, panel.y, view.height, view.y1 / view.y0))
    for axis, side, length, span in sides:
        _ticks(axis, side.unit, length, span, first_fitting(side.names, paper.axis, length, measure), colours, paper)
    frame = {"left", "bottom"}
    for where, side, limits in (("top", panel.x, (view.x0, view.x1)), ("right", panel.y, (view.y0, view.y1))):
        if side.second:
            frame.add(where)
            _draw_second(axes, where, side, limits, view.width if where == "top" else view.height, colours, paper)
    for name, spine in axes.spines.items():
        spine.set_visible(name in frame)
        spine.set_color(colours.faint)
        spine.set_linewidth(0.6)
    axes.set_axisbelow(True)
    size = paper.size(7.6)
    title = fitted(panel.title, size * 1.2, view.width, measure)  # bold is wider than what is measured
    axes.set_title(drawable(title), fontsize=size, color=colours.text, loc="left", pad=3, weight="bold")


def _ticks(axis: Any, unit: str, length: float, span: float, name: str, colours: Theme, paper: Paper) -> None:
    """Ticks and name of one side, so long (points) and from lowest to highest value such a factor.

    Bytes and operations carry the prefix at the tick and the unit in the name; in a narrow range 2 and 5 have ticks, too.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    symbol = "" if unit == "second" else UNITS[unit].symbol
    room = length / (3 * math.log10(span)) > 5.2 * paper.key
    subs = (1.0, 2.0, 5.0) if span < _NARROW_CHART and room else (1.0,)
    axis.set_major_locator(LogLocator(base=10, subs=subs, numticks=max(int(length / (5.2 * paper.key)), 3)))
    axis.set_minor_locator(LogLocator(base=10, subs=range(2, 10), numticks=30))
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_value(value, unit, 3).removesuffix(symbol).strip()))
    axis.set_minor_formatter(NullFormatter())
    axis.set_tick_params(which="both", direction="out", labelsize=paper.key, colors=colours.text, width=0.6, length=3, pad=2)
    axis.set_tick_params(which="minor", length=1.6, width=0.4)
    axis.set_label_text(drawable(name), fontsize=paper.axis, color=colours.text)
    axis.labelpad = 2


def _draw_second(
    axes: Axes, where: str, side: Axis, limits: tuple[float, float], length: float, colours: Theme, paper: Paper
) -> None:
    """The upper or right axis: the same places times a number, in another unit."""
    assert side.second
    by, unit, name = side.second
    low, high = limits
    if where == "top":
        twin = axes.twiny()
        twin.set_xscale("log")
        twin.set_xlim(low * by, high * by)
        axis, idle = twin.xaxis, twin.yaxis
    else:
        twin = axes.twinx()
        twin.set_yscale("log")
        twin.set_ylim(low * by, high * by)
        axis, idle = twin.yaxis, twin.xaxis  # type: ignore[assignment]
    _ticks(axis, unit, length, high / low, name, colours, paper)
    idle.set_visible(False)
    for spine in twin.spines.values():
        spine.set_visible(False)


def _draw_region(axes: Axes, found: Plan, region: Region, colours: Theme) -> None:
    from matplotlib.patches import Rectangle

    view, look = found.view, LOOKS[region.role]
    colour = colours.of(region.hue) if region.hue else str(getattr(colours, look.colour))
    size = (region.x - view.x0, region.y - view.y0)
    axes.add_patch(Rectangle((view.x0, view.y0), *size, facecolor=colour, alpha=0.1, lw=0, zorder=1, gid=region.role))
    edge = ([view.x0, region.x, region.x], [region.y, region.y, view.y0])
    axes.plot(*edge, ls=look.dashes, lw=look.width, color=colour, zorder=look.order)


def _draw_line(axes: Axes, line: Line, colours: Theme) -> None:
    from matplotlib.patches import FancyArrowPatch

    look = LOOKS[line.role]
    colour, order = colours.of(line.hue) if line.hue else str(getattr(colours, look.colour)), look.order
    xs, ys = zip(*line.places, strict=True)
    dashes: dict[str, Any] = {"ls": look.dashes, "dash_capstyle": "butt"}
    axes.plot(xs, ys, lw=look.width, color=colour, zorder=order, gid=f"line-{line.role}", **dashes)
    if line.role in _ARROWS:
        for start, end in zip(line.places, line.places[1:], strict=False):
            shape: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 5, "lw": 0, "shrinkB": 2.6}
            axes.add_patch(FancyArrowPatch(start, end, color=colour, zorder=order, **shape))


def _draw_label(axes: Axes, found: Plan, one: Label, colours: Theme, paper: Paper) -> None:
    view, box, role = found.view, one.box, one.mark.role
    look = LOOKS.get(role, Look("text"))
    colour = colours.of(one.mark.hue) if one.mark.hue else str(getattr(colours, _LABELS.get(role, look.colour)))
    put_text(
        axes, box.x / view.width, box.y / view.height, one.text, paper.small, colour,
        transform=axes.transAxes, ha="center", va="center", rotation=box.angle, rotation_mode="anchor", zorder=8,
        bbox=halo(colours), gid=f"label-{role}", style="italic" if look.italic else "normal",
    )  # fmt: skip


def _explain(axes: Axes, text: str, colours: Theme, measure: Measure, paper: Paper) -> None:
    """The reason for an empty chart, in its middle."""
    box = {"boxstyle": "round,pad=0.6", "facecolor": colours.ground, "edgecolor": colours.faint, "linewidth": 0.6}
    letters = int(min(80, 0.8 * paper.width / measure("n", paper.axis)[0]))
    lines = "\n".join(part for line in text.splitlines() for part in textwrap.wrap(line, letters))
    put_text(
        axes, 0.6, 0.36, lines, paper.axis, colours.text,
        transform=axes.transAxes, ha="center", va="center", bbox=box, zorder=8, linespacing=1.5,
    )  # fmt: skip
