"""Draws planned panels, their key and bars of utilisation into matplotlib axes."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ncu_roofline.analyses.hierarchical.chart import RooflineChart, is_part
from ncu_roofline.analyses.hierarchical.plan import EXPLANATION, Label, PanelPlan, PlannedRoof, joined
from ncu_roofline.analyses.hierarchical.style import COUNTED, level_style, precision_label
from ncu_roofline.analyses.hierarchical.sweeps import Trajectory
from ncu_roofline.analyses.hierarchical.usage import SM, TIME, Bars, Usage, percent, unit_label
from ncu_roofline.facts.verdict import REACHED
from ncu_roofline.rendering.layout import Measure, View
from ncu_roofline.rendering.lettering import KEY_SIZE, drawable, fitted, put_key, put_text
from ncu_roofline.rendering.style import MARKERS, Theme
from ncu_roofline.texts import shorten
from ncu_roofline.units import format_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW = 10.2  # points from one row of kernels to the next
_MIX_DASHES = (0, (2.4, 1.6))
BAND = 0.16  # opacity of the band between the lowest and the highest roof of the launches
_ARROW_FROM = 14.0  # points between two dots; nearer ones leave no room for an arrow head
_HEAD, _FOOT = 22.0, 28.0  # points above the first and below the last bar
_BAR, _GAP, _ROW_MIN = 4.6, 6.0, 19.0
_NAME, _SMALL, _VALUE, _KEY = 6.6, 5.6, 5.2, 6.6  # font sizes
_LEFT, _RIGHT, _BEYOND = 158.0, 142.0, 28.0  # points for names, for verdicts, and for a value at the end of a full bar


def _entries(data: RooflineChart) -> list[str]:
    numbered = len(data.kernels) > len(MARKERS)
    texts = []
    for index, kernel in enumerate(data.kernels):
        number = f"{index + 1} " if numbered else ""
        share = f"  {percent(kernel.share)}" if kernel.share > 0 else ""
        texts.append(f"{number}{kernel.marked}{share}")
    return texts


@dataclass(frozen=True)
class RooflineLegend:
    """Entries of the kernels, filled column by column; ``lefts`` are the places of the columns in points."""

    entries: tuple[str, ...]
    down: int
    lefts: tuple[float, ...]


def legend_of(data: RooflineChart, measure: Measure, direct: bool, width: float) -> RooflineLegend:
    """As many columns as fit, four at most."""
    texts = () if direct else tuple(_entries(data))
    lefts: list[float] = []
    down = 0
    for columns in range(min(4, len(texts)), 0, -1):
        down = -(-len(texts) // columns)
        widths = [max(measure(text, KEY_SIZE)[0] for text in texts[i : i + down]) + 24 for i in range(0, len(texts), down)]
        lefts = [10 + sum(widths[:i]) for i in range(len(widths))]
        if sum(widths) <= width - 12:
            break
    return RooflineLegend(texts, down, tuple(lefts))


def draw_legend(
    sheet: Axes, foot: float, legend: RooflineLegend, data: RooflineChart, colours: Theme, measure: Measure
) -> None:
    """Draws the key into axes in points, downwards from ``foot``."""
    width = sheet.get_xlim()[1]
    y, x = foot - 8, 10.0
    for level in data.levels:
        label = data.level_labels.get(level) or level_style(level).label
        sheet.plot([x], [y], "o", ms=4.8, color=level_colour(level, colours))
        x = put_key(sheet, x + 6, y, label, colours, measure)
    for name, dashes, thickness in _line_keys(data):
        sheet.plot([x - 2, x + 14], [y, y], ls=dashes, lw=thickness, color=colours.compute)
        x = put_key(sheet, x + 18, y, name, colours, measure)
    if any(roof.bands for panel in data.panels for roof in panel.roofs):
        sheet.fill_between([x - 2, x + 14], y - 2.4, y + 2.4, color=colours.compute, alpha=BAND, lw=0)
        x = put_key(sheet, x + 18, y, "range over launches", colours, measure)
    sheet.plot([x], [y], "o", ms=3.2, mfc=colours.ground, mec=colours.faint, mew=0.9)
    x = put_key(sheet, x + 6, y, "ridge point", colours, measure)
    for name in dict.fromkeys(
        precision_label(one.precision) for panel in data.panels for one in panel.series if is_part(one, panel)
    ):
        sheet.plot([x], [y], "o", ms=4.8, mfc=colours.ground, mec=colours.faint, mew=0.9)
        x = put_key(sheet, x + 6, y, f"{name} alone", colours, measure)
    heading = "kernels by share of time"
    if legend.entries and data.kernels[0].share > 0 and x + measure(heading, KEY_SIZE)[0] < width - 8:
        put_text(sheet, width - 8, y, heading, KEY_SIZE, colours.faint, va="center_baseline", ha="right")
    for index, text in enumerate(legend.entries):
        x, y = legend.lefts[index // legend.down], foot - 21 - ROW * (index % legend.down)
        sheet.plot([x], [y], marker=MARKERS[index % len(MARKERS)], ms=4.8, color=colours.faint, mew=0)
        put_text(sheet, x + 6, y, text, KEY_SIZE, colours.text, va="center_baseline")


def _line_keys(data: RooflineChart) -> list[tuple[str, Any, float]]:
    origins = {
        name for panel in data.panels for roof in panel.roofs for name in ("measured", "theoretical") if getattr(roof, name) > 0
    }
    said = {"measured": data.empirical}
    if data.several_origins:
        return [(f"{data.empirical} roof", "-", 1.3), ("theoretical roof", (0, (4, 2.5)), 0.8)]
    return [(f"{said.get(name, name)} roof", "-", 1.3) for name in sorted(origins)]


def level_colour(level: str, colours: Theme) -> str:
    """Colour of a level on the theme's ground."""
    style = level_style(level)
    return style.dark if colours.dark else style.light


def draw_panel(axes: Axes, plan: PanelPlan, data: RooflineChart, colours: Theme) -> None:
    """Axes, roofs, ridge points, dots and labels of a panel."""
    draw_axes(axes, plan.view, plan.panel.unit, colours)
    if len(data.panels) > 1:
        axes.set_title(drawable(plan.panel.title), fontsize=7.6, color=colours.text, loc="left", pad=3, weight="bold")
    for area in plan.areas:
        colour = level_colour(area.level, colours) if area.level else colours.compute
        xs, ys = zip(*area.corners, strict=True)
        axes.fill(xs, ys, color=colour, alpha=BAND, lw=0, zorder=1.5, gid="band")
    for line in plan.lines:
        _draw_line(axes, line, data, colours)
    for intensity, performance, level in plan.ridges:
        axes.plot(
            [intensity], [performance], "o", ms=3.2, mfc=colours.ground, mec=level_colour(level, colours), mew=0.9, zorder=4
        )
    for path in plan.trajectories:
        _draw_trajectory(axes, path, plan, colours)
    for mix in plan.mixes:
        for value in mix.values:
            axes.plot(mix.span, [value] * 2, ls=_MIX_DASHES, lw=1.0, color=colours.compute, zorder=3, gid="mix")
    _draw_dots(axes, plan, data, colours)
    for label in plan.labels:
        draw_label(axes, label, plan.view, colours)


def draw_axes(axes: Axes, view: View, unit: str, colours: Theme) -> None:
    """Limits, ticks and names of the axes of a roofline; performance in the prefixed ``unit`` that suits the highest roof."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(view.x0, view.x1)
    axes.set_ylim(view.y0, view.y1)
    scale, symbol = _scaled(view.y1 / 2, f"{unit}/s")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / scale:g}"))
    for axis, length in ((axes.xaxis, view.width / 34), (axes.yaxis, view.height / 16)):
        axis.set_major_locator(LogLocator(base=10, numticks=max(int(length), 3)))
        axis.set_minor_locator(LogLocator(base=10, subs=range(2, 10), numticks=30))
        axis.set_minor_formatter(NullFormatter())
    axes.tick_params(which="both", direction="out", labelsize=6.6, colors=colours.text, width=0.6, length=3, pad=2)
    axes.tick_params(which="minor", length=1.6, width=0.4)
    axes.grid(which="major", color=colours.grid, linewidth=0.5)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(colours.faint)
        spine.set_linewidth(0.6)
    counted = COUNTED[unit]
    _axis_name(axes.set_xlabel, counted.intensity_axis, colours)
    _axis_name(axes.set_ylabel, counted.performance_axis(symbol), colours)


def _axis_name(put: Any, text: str, colours: Theme) -> None:
    put(text, fontsize=7.2, color=colours.text, labelpad=2)


def _scaled(value: float, unit: str) -> tuple[float, str]:
    """Factor and symbol of the prefixed unit that suits ``value``, at most tera as people compare chips in it."""
    exponent = min(max(3 * int(math.log10(value) // 3), 0), 12)
    return 10.0**exponent, format_value(10.0**exponent, unit).split(" ")[-1]


def _draw_line(axes: Axes, line: PlannedRoof, data: RooflineChart, colours: Theme) -> None:
    """Measured roofs solid, theoretical ones dashed where both are shown; a roof upon another one shows through its gaps."""
    compute = line.kind == "compute"
    colour = colours.compute if compute else level_colour(line.level, colours) if line.level else colours.faint
    theory = line.origin == "theoretical" and data.several_origins
    dashes: Any = "-"
    if line.kind == "wall":
        dashes = (0, (1, 2))
    elif theory:
        dashes = (line.twin * 5.0, (4, 2.5))
    elif line.twin:
        dashes = (0, (6, 6))
    (x0, y0), (x1, y1) = line.ends
    axes.plot(
        [x0, x1],
        [y0, y1],
        ls=dashes,
        lw=0.8 if theory or line.kind == "wall" else 1.3,
        color=colour,
        zorder=2 if theory else 3,
        dash_capstyle="butt",
        gid="roof",
    )


def _draw_trajectory(axes: Axes, path: Trajectory, plan: PanelPlan, colours: Theme) -> None:
    """A thin line through the dots of a sweep, an arrow head in the middle of each piece that is long enough for one."""
    xs, ys = zip(*path.dots, strict=True)
    colour = level_colour(path.level, colours)
    axes.plot(xs, ys, ls="-", lw=0.7, color=colour, alpha=0.75, zorder=4, gid="trajectory")
    view = plan.view
    for (ax, ay), (bx, by) in pairwise(path.dots):
        start, end = (view.x(ax), view.y(ay)), (view.x(bx), view.y(by))
        if math.dist(start, end) < _ARROW_FROM:
            continue
        middle = [((a + b) / 2) for a, b in zip(start, end, strict=True)]
        back = [m - (b - a) / 20 for m, a, b in zip(middle, start, end, strict=True)]
        axes.annotate(
            "",
            xy=(middle[0] / view.width, middle[1] / view.height),
            xytext=(back[0] / view.width, back[1] / view.height),
            xycoords="axes fraction",
            textcoords="axes fraction",
            arrowprops={"arrowstyle": "-|>", "mutation_scale": 7, "lw": 0, "color": colour, "shrinkA": 0, "shrinkB": 0},
            annotation_clip=True,
            zorder=4,
        )


def _draw_dots(axes: Axes, plan: PanelPlan, data: RooflineChart, colours: Theme) -> None:
    """Dots in the colour of their level and the shape of their kernel, those of one kernel joined."""
    from matplotlib.collections import LineCollection

    marker = {kernel.label: MARKERS[index % len(MARKERS)] for index, kernel in enumerate(data.kernels)}
    spans = [
        [(min(x for _, x in one.dots), one.performance), (max(x for _, x in one.dots), one.performance)]
        for one in plan.panel.series
        if joined(one)
    ]
    axes.add_collection(LineCollection(spans, colors=colours.connector, linewidths=0.6, zorder=4), autolim=False)
    dots: dict[tuple[str, str, bool], tuple[list[float], list[float]]] = {}
    for one in plan.panel.series:
        for level, intensity in one.dots:
            xs, ys = dots.setdefault((one.kernel, level, is_part(one, plan.panel)), ([], []))
            xs.append(intensity)
            ys.append(one.performance)
    size = 4.8 if len(data.panels) == 1 else 4.3
    for (kernel, level, part), (xs, ys) in dots.items():
        axes.plot(
            xs,
            ys,
            ls="none",
            marker=marker[kernel],
            ms=size,
            mfc=colours.ground if part else level_colour(level, colours),
            mec=level_colour(level, colours) if part else colours.ground,
            mew=0.9 if part else 0.4,
            zorder=5,
        )


def draw_label(axes: Axes, label: Label, view: View, colours: Theme) -> None:
    """A text at its place, with the line to its dot, on a ground that keeps lines away from its letters."""
    from matplotlib.patheffects import withStroke

    box = label.box
    if label.leader:
        xs, ys = zip(*((x / view.width, y / view.height) for x, y in label.leader), strict=True)
        axes.plot(xs, ys, transform=axes.transAxes, lw=0.4, color=colours.faint, zorder=4)
    if label.role in ("kernel", "number", "step"):
        colour = colours.text
    else:
        colour = level_colour(label.level, colours) if label.level else colours.compute
    put_text(
        axes,
        box.x / view.width,
        box.y / view.height,
        label.text,
        label.size,
        colour,
        transform=axes.transAxes,
        ha="center",
        va="center",
        rotation=box.angle,
        rotation_mode="anchor",
        zorder=6,
        path_effects=[withStroke(linewidth=2.0, foreground=colours.ground)],
        gid=f"label-{label.role}",
    )


def explain(axes: Axes, text: str, colours: Theme) -> None:
    """The reason for an empty chart, in its middle."""
    box = {"boxstyle": "round,pad=0.6", "facecolor": colours.ground, "edgecolor": colours.faint, "linewidth": 0.6}
    wrapped = "\n".join(part for line in text.splitlines() for part in textwrap.wrap(line, 80))
    put_text(
        axes,
        EXPLANATION.x,
        EXPLANATION.y,
        wrapped,
        8,
        colours.text,
        transform=axes.transAxes,
        ha="center",
        va="center",
        bbox=box,
        zorder=8,
        linespacing=1.5,
    )


def row_height(data: Bars) -> float:
    """Points from one kernel to the next."""
    return max(_ROW_MIN, len(data.units) * _BAR + _GAP)


def bars_height(data: Bars) -> float:
    """Points that all of it takes."""
    return _HEAD + len(data.rows) * row_height(data) + _FOOT if data.rows else 0.0


def draw_bars(sheet: Axes, axes: Axes, bottom: float, data: Bars, heading: str, colours: Theme, measure: Measure) -> None:
    """Draws the bars into ``axes``, and names and verdicts beside them into ``sheet`` (in points), upwards from ``bottom``."""
    width = sheet.get_xlim()[1]
    _bar_axes(axes, data, colours)
    top = bottom + bars_height(data) - _HEAD
    _key(sheet, top + 11, data, heading, colours, measure)
    for index, one in enumerate(data.rows):
        start = index * row_height(data)
        _draw_row(axes, start, one, data, colours)
        y = top - start - row_height(data) / 2
        name = squeezed(one.marked, _NAME, _LEFT - 14, measure)
        put_text(sheet, _LEFT - 5, y + 4, name, _NAME, colours.text, ha="right", va="center_baseline")
        put_text(sheet, _LEFT - 5, y - 4.4, _time_text(one), _SMALL, colours.faint, ha="right", va="center_baseline")
        said = ", ".join(filter(None, (one.verdict, one.gain)))
        left = width - _RIGHT + _BEYOND
        put_text(sheet, left, y, fitted(said, _NAME, width - left - 6, measure), _NAME, colours.text, va="center_baseline")


def bar_place(data: Bars, bottom: float, width: float) -> tuple[float, float, float, float]:
    """Left, bottom, width and height in points of the axes of the bars that stand on ``bottom``."""
    return _LEFT, bottom + _FOOT, width - _LEFT - _RIGHT, bars_height(data) - _HEAD - _FOOT


def squeezed(text: str, size: float, width: float, measure: Measure) -> str:
    """``text`` cut in its middle to ``width`` points."""
    length = len(text)
    while length > 8 and measure(shorten(text, length), size)[0] > width:
        length -= 1
    return fitted(shorten(text, length), size, width, measure)


def _time_text(one: Usage) -> str:
    parts = [f"{one.launches_text} launches"] if one.launches > 1 else []
    parts += [format_value(one.seconds, "second", 3)] if math.isfinite(one.seconds) else []
    return ", ".join([*parts, percent(one.share)] if math.isfinite(one.share) else parts)


def _bar_axes(axes: Axes, data: Bars, colours: Theme) -> None:
    axes.set_xlim(0, 100)
    axes.set_ylim(len(data.rows) * row_height(data), 0)
    axes.set_yticks([])
    axes.set_xticks(range(0, 101, 20))
    axes.tick_params(direction="out", labelsize=6.6, colors=colours.text, width=0.6, length=3, pad=2)
    peak = f"% of peak; from {100 * REACHED:.0f} % on (dashed) a unit limits"
    axes.set_xlabel("% of the time" if data.of_time else peak, fontsize=7.2, color=colours.text, labelpad=2)
    axes.grid(axis="x", color=colours.grid, linewidth=0.5)
    axes.set_axisbelow(True)
    if not data.of_time:  # from here on a unit is what limits
        axes.axvline(100 * REACHED, color=colours.faint, lw=0.6, ls=(0, (4, 3)), zorder=1)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(colours.faint)
        spine.set_linewidth(0.6)


def _draw_row(axes: Axes, start: float, one: Usage, data: Bars, colours: Theme) -> None:
    """The bars of a kernel, the value at the end of the longest; what is unknown leaves a gap."""
    from matplotlib.patheffects import withStroke

    shares = data.shares(one)
    first = start + (row_height(data) - len(data.units) * _BAR) / 2 + _BAR / 2
    known = {unit: 100 * shares[unit] for unit in data.units if math.isfinite(shares.get(unit, math.nan))}
    for place, unit in enumerate(data.units):
        if unit in known:
            axes.barh(first + place * _BAR, min(known[unit], 100), _BAR * 0.86, color=_colour(unit, colours), lw=0, gid="bar")
    if not known:
        put_text(axes, 1, start + row_height(data) / 2, "not collected", _VALUE, colours.faint, va="center_baseline")
        return
    longest = max(known, key=lambda unit: known[unit])
    place = data.units.index(longest)
    end = min(known[longest], 100) + 0.8
    value = percent(known[longest] / 100)
    halo = [withStroke(linewidth=1.6, foreground=colours.ground)]
    y = first + place * _BAR
    put_text(axes, end, y, value, _VALUE, colours.text, va="center_baseline", clip_on=False, path_effects=halo)


def _colour(unit: str, colours: Theme) -> str:
    return colours.compute if unit in (SM, TIME) else level_colour(unit, colours)


def _key(sheet: Axes, y: float, data: Bars, heading: str, colours: Theme, measure: Measure) -> None:
    """The heading, and what the colours stand for."""
    put_text(sheet, 6, y, heading, 7.6, colours.text, va="center_baseline", weight="bold")
    x = _LEFT + 4
    for unit in () if data.of_time else data.units:
        sheet.plot([x], [y], "s", ms=4.6, color=_colour(unit, colours), mew=0)
        put_text(sheet, x + 6, y, unit_label(unit), _KEY, colours.text, va="center_baseline")
        x += measure(unit_label(unit), _KEY)[0] + 18
    right: Sequence[str] = [row.verdict for row in data.rows if row.verdict]
    if right:
        width = sheet.get_xlim()[1]
        put_text(sheet, width - _RIGHT + _BEYOND, y, "verdict, possible gain", _KEY, colours.faint, va="center_baseline")
