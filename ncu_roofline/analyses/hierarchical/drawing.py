"""Draws planned panels into matplotlib axes."""

from __future__ import annotations

import math
import textwrap
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ncu_roofline.analyses.hierarchical.chart import RooflineChart
from ncu_roofline.analyses.hierarchical.looks import BAND, THEORY, face, level_colour
from ncu_roofline.analyses.hierarchical.plan import ARROW, EXPLANATION, Label, PanelPlan, PlannedRoof, joined
from ncu_roofline.analyses.hierarchical.style import COUNTED
from ncu_roofline.analyses.hierarchical.sweeps import Trajectory
from ncu_roofline.base.units import format_value
from ncu_roofline.rendering.layout import View
from ncu_roofline.rendering.lettering import drawable, first_fitting, fitted, halo, put_text
from ncu_roofline.rendering.paper import DEFAULT, Paper
from ncu_roofline.rendering.style import MARKERS, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

    from ncu_roofline.rendering.layout import Measure

_MIX_DASHES = (0, (2.4, 1.6))
_ARROW_FROM = 14.0  # points between two dots; nearer ones leave no room for an arrow head


def draw_panel(axes: Axes, plan: PanelPlan, data: RooflineChart, colours: Theme, measure: Measure, paper: Paper) -> None:
    """Axes, roofs, ridge points, dots and labels of a panel."""
    draw_axes(axes, plan.view, plan.panel.unit, colours, measure, paper)
    if len(data.panels) > 1:
        size = paper.size(7.6)
        title = fitted(plan.panel.title, size * 1.2, plan.view.width, measure)  # bold is wider than what is measured
        axes.set_title(drawable(title), fontsize=size, color=colours.text, loc="left", pad=3, weight="bold")
    for area in plan.areas:
        colour = level_colour(area.level, colours) if area.level else colours.compute
        xs, ys = zip(*area.corners, strict=True)
        axes.fill(xs, ys, color=colour, alpha=BAND, lw=0, zorder=1.5, gid="band")
    for line in plan.lines:
        _draw_line(axes, line, data, colours, paper)
    for intensity, performance, level in plan.ridges:
        axes.plot(
            [intensity],
            [performance],
            "o",
            ms=3.2 * paper.scale,
            mfc=colours.ground,
            mec=level_colour(level, colours),
            mew=0.9,
            zorder=4,
        )
    for path in plan.trajectories:
        _draw_trajectory(axes, path, plan, colours)
    for mix in plan.mixes:
        for value in mix.values:
            axes.plot(mix.span, [value] * 2, ls=_MIX_DASHES, lw=1.0, color=colours.compute, zorder=3, gid="mix")
    _draw_dots(axes, plan, data, colours)
    for arrow in plan.arrows:
        place = [arrow.x / plan.view.width], [arrow.y / plan.view.height]
        colour = level_colour(arrow.level, colours)
        axes.plot(
            *place, ls="none", marker=_shaft(arrow.direction), ms=1.3 * ARROW * paper.scale, mfc="none", mec=colour,
            mew=1.1 * paper.scale, transform=axes.transAxes, zorder=6, clip_on=False, gid="edge",
        )  # fmt: skip
    for label in plan.labels:
        draw_label(axes, label, plan.view, colours)


def _shaft(direction: str) -> Path:
    """An arrow that looks like no symbol of a kernel."""
    from matplotlib.path import Path

    vertices, codes = (
        [(0, -1), (0, 1), (-0.65, 0.3), (0, 1), (0.65, 0.3)],
        [Path.MOVETO, Path.LINETO, Path.MOVETO, *[Path.LINETO] * 2],
    )
    cos, sin = {"^": (1, 0), "<": (0, 1), "v": (-1, 0), ">": (0, -1)}[direction]
    return Path([(x * cos - y * sin, x * sin + y * cos) for x, y in vertices], codes)


def draw_axes(axes: Axes, view: View, unit: str, colours: Theme, measure: Measure, paper: Paper = DEFAULT) -> None:
    """Limits, ticks and names of the axes of a roofline; performance in the prefixed ``unit`` that suits the highest roof."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(view.x0, view.x1)
    axes.set_ylim(view.y0, view.y1)
    scale, symbol = _scaled(view.y1 / 2, f"{unit}/s")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / scale:g}"))
    for axis, length in ((axes.xaxis, view.width / (5 * paper.key)), (axes.yaxis, view.height / (2.4 * paper.key))):
        axis.set_major_locator(LogLocator(base=10, numticks=max(int(length), 3)))
        axis.set_minor_locator(LogLocator(base=10, subs=range(2, 10), numticks=30))
        axis.set_minor_formatter(NullFormatter())
    axes.tick_params(which="both", direction="out", labelsize=paper.key, colors=colours.text, width=0.6, length=3, pad=2)
    axes.tick_params(which="minor", length=1.6, width=0.4)
    axes.grid(which="major", color=colours.grid, linewidth=0.5)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(colours.faint)
        spine.set_linewidth(0.6)
    counted = COUNTED[unit]
    for put, name, room in (
        (axes.set_xlabel, counted.intensity_axis, view.width),
        (axes.set_ylabel, counted.performance_axis(symbol), view.height),
    ):
        words, _, bracket = name.partition(" [")
        text = first_fitting((name, f"{words.split()[-1].capitalize()} [{bracket}", f"[{bracket}"), paper.axis, room, measure)
        put(text, fontsize=paper.axis, color=colours.text, labelpad=2)


def _scaled(value: float, unit: str) -> tuple[float, str]:
    """Factor and symbol of the prefixed unit that suits ``value``, at most tera as people compare chips in it."""
    exponent = min(max(3 * int(math.log10(value) // 3), 0), 12)
    return 10.0**exponent, format_value(10.0**exponent, unit).split(" ")[-1]


def _draw_line(axes: Axes, line: PlannedRoof, data: RooflineChart, colours: Theme, paper: Paper) -> None:
    """Measured roofs solid, theoretical ones dashed where both are shown; a roof upon another one shows through its gaps."""
    compute = line.kind == "compute"
    colour = colours.compute if compute else level_colour(line.level, colours) if line.level else colours.faint
    theory = line.origin == "theoretical" and data.several_origins
    dashes: Any = "-"
    if line.kind == "wall":
        dashes = (0, (1, 2))
    elif theory:
        dashes = (line.twin * 5.0, THEORY[1])
    elif line.twin:
        dashes = (0, (6, 6))
    (x0, y0), (x1, y1) = line.ends
    axes.plot(
        [x0, x1],
        [y0, y1],
        ls=dashes,
        lw=paper.scale * (0.8 if theory or line.kind == "wall" else 1.3),
        color=colour,
        zorder=2 if theory else 3,
        dash_capstyle="butt",
        gid="roof",
    )


def _draw_trajectory(axes: Axes, path: Trajectory, plan: PanelPlan, colours: Theme) -> None:
    """A thin line through the dots of a sweep, an arrow head in the middle of each piece that is long enough for one."""
    xs, ys = zip(*path.dots, strict=True)
    colour = level_colour(path.level, colours)
    axes.plot(xs, ys, ls="-", lw=0.7 * plan.paper.scale, color=colour, alpha=0.75, zorder=4, gid="trajectory")
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
            arrowprops={
                "arrowstyle": "-|>",
                "mutation_scale": 7 * plan.paper.scale,
                "lw": 0,
                "color": colour,
                "shrinkA": 0,
                "shrinkB": 0,
            },
            annotation_clip=True,
            zorder=4,
        )


def _draw_dots(axes: Axes, plan: PanelPlan, data: RooflineChart, colours: Theme) -> None:
    """Dots in the colour of their level, the shape of their kernel, the fill of their precision; those of a series joined."""
    from matplotlib.collections import LineCollection

    marker = {kernel.label: MARKERS[index % len(MARKERS)] for index, kernel in enumerate(data.kernels)}
    spans = [
        [(min(x for _, x in one.dots), one.performance), (max(x for _, x in one.dots), one.performance)]
        for one in plan.panel.series
        if joined(one)
    ]
    axes.add_collection(
        LineCollection(spans, colors=colours.connector, linewidths=0.6 * plan.paper.scale, zorder=4), autolim=False
    )
    dots: dict[tuple[str, str, str, float], tuple[list[float], list[float]]] = {}
    for one in plan.panel.series:
        size = plan.marker(one)
        for level, intensity in one.dots:
            xs, ys = dots.setdefault((one.kernel, level, data.fills[one.precision], size), ([], []))
            xs.append(intensity)
            ys.append(one.performance)
    # Large ones first, so that none hides another.
    for (kernel, level, fill, size), (xs, ys) in sorted(dots.items(), key=lambda item: -item[0][3]):
        look = face(fill, level_colour(level, colours), colours)
        axes.plot(xs, ys, ls="none", marker=marker[kernel], ms=size, zorder=5, gid=f"dots-{fill}", **look)


def draw_label(axes: Axes, label: Label, view: View, colours: Theme) -> None:
    """A text at its place, with the line to its dot, on a ground that keeps lines away from its letters."""
    box = label.box
    if label.leader:
        xs, ys = zip(*((x / view.width, y / view.height) for x, y in label.leader), strict=True)
        axes.plot(xs, ys, transform=axes.transAxes, lw=0.4, color=colours.faint, zorder=4)
    if label.role in ("kernel", "number", "step", "arrow"):
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
        bbox=halo(colours),
        gid=f"label-{label.role}",
    )


def explain(axes: Axes, text: str, colours: Theme, measure: Measure, paper: Paper = DEFAULT) -> None:
    """The reason for an empty chart, in its middle."""
    box = {"boxstyle": "round,pad=0.6", "facecolor": colours.ground, "edgecolor": colours.faint, "linewidth": 0.6}
    size = paper.axis
    letters = int(min(80, 0.8 * paper.width / measure("n", size)[0]))
    wrapped = "\n".join(part for line in text.splitlines() for part in textwrap.wrap(line, letters))
    put_text(
        axes, EXPLANATION.x, EXPLANATION.y, wrapped, size, colours.text,
        transform=axes.transAxes, ha="center", va="center", bbox=box, zorder=8, linespacing=1.5,
    )  # fmt: skip
