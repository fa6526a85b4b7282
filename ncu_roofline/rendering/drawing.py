"""Draws one planned panel into matplotlib axes."""

from __future__ import annotations

import math
import textwrap
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ncu_roofline.rendering.lettering import drawable, put_text
from ncu_roofline.rendering.panels import Chart, is_part
from ncu_roofline.rendering.plan import EXPLANATION, Label, Line, PanelPlan, joined
from ncu_roofline.rendering.style import COUNTED, MARKERS, Theme, level_style
from ncu_roofline.rendering.sweeps import Trajectory
from ncu_roofline.units import format_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_MIX_DASHES = (0, (2.4, 1.6))
BAND = 0.16  # opacity of the band between the lowest and the highest roof of the launches
_ARROW_FROM = 14.0  # points between two dots; nearer ones leave no room for an arrow head


def level_colour(level: str, colours: Theme) -> str:
    """Colour of a level on the theme's ground."""
    style = level_style(level)
    return style.dark if colours.dark else style.light


def draw_panel(axes: Axes, plan: PanelPlan, data: Chart, colours: Theme) -> None:
    """Axes, roofs, ridge points, dots and labels of a panel."""
    _axes(axes, plan, data, colours)
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
        _draw_label(axes, label, plan, colours)


def _axes(axes: Axes, plan: PanelPlan, data: Chart, colours: Theme) -> None:
    """Limits, ticks and names of the axes; performance in the unit that suits the highest roof."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    view = plan.view
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(view.x0, view.x1)
    axes.set_ylim(view.y0, view.y1)
    scale, symbol = _scaled(view.y1 / 2, f"{plan.panel.unit}/s")
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
    counted = COUNTED[plan.panel.unit]
    _axis_name(axes.set_xlabel, counted.intensity_axis, colours)
    _axis_name(axes.set_ylabel, counted.performance_axis(symbol), colours)
    if len(data.panels) > 1:
        axes.set_title(drawable(plan.panel.title), fontsize=7.6, color=colours.text, loc="left", pad=3, weight="bold")


def _axis_name(put: Any, text: str, colours: Theme) -> None:
    put(text, fontsize=7.2, color=colours.text, labelpad=2)


def _scaled(value: float, unit: str) -> tuple[float, str]:
    """Factor and symbol of the prefixed unit that suits ``value``, at most tera as people compare chips in it."""
    exponent = min(max(3 * int(math.log10(value) // 3), 0), 12)
    return 10.0**exponent, format_value(10.0**exponent, unit).split(" ")[-1]


def _draw_line(axes: Axes, line: Line, data: Chart, colours: Theme) -> None:
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


def _draw_dots(axes: Axes, plan: PanelPlan, data: Chart, colours: Theme) -> None:
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


def _draw_label(axes: Axes, label: Label, plan: PanelPlan, colours: Theme) -> None:
    from matplotlib.patheffects import withStroke

    view, box = plan.view, label.box
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
