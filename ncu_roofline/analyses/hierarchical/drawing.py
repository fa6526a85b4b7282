"""Axes of rooflines and labels for pictures that are drawn by hand."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncu_roofline.analyses.hierarchical.looks import level_colour
from ncu_roofline.analyses.hierarchical.style import COUNTED
from ncu_roofline.base.units import format_value
from ncu_roofline.rendering.layout import Box, View
from ncu_roofline.rendering.lettering import first_fitting, halo, put_text
from ncu_roofline.rendering.paper import DEFAULT, Paper
from ncu_roofline.rendering.plan import EXPLANATION
from ncu_roofline.rendering.style import Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ncu_roofline.rendering.layout import Measure


@dataclass(frozen=True)
class Label:
    """A text in its box (points)."""

    text: str
    box: Box
    size: float
    role: str
    level: str = ""
    leader: tuple[tuple[float, float], tuple[float, float]] | None = None


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
