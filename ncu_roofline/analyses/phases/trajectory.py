"""The slices of a launch under its roofs: dots in the colours of their time, joined where they follow each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ncu_roofline.analyses.hierarchical.looks import level_colour
from ncu_roofline.analyses.hierarchical.style import COUNTED, level_style
from ncu_roofline.analyses.phases.chart import LaunchChart, Trajectory, pieces
from ncu_roofline.base.units import UNITS, format_value
from ncu_roofline.rendering.layout import Box, Measure, Obstacles, View, around, diagonal, horizontal, limits
from ncu_roofline.rendering.lettering import first_fitting, halo, put_text
from ncu_roofline.rendering.paper import Paper
from ncu_roofline.rendering.style import Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PILE = 4  # dots on each other whose number is said
_WIDEST = 2.4  # times a dot: a pile at most
_SCALE = "viridis"  # runs from dark to light, so that the order is seen with any colour vision


@lru_cache(maxsize=64)
def time_colours(count: int) -> list[str]:
    """A colour per slice, from the first to the last."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(colormaps[_SCALE](0.95 * index / max(count - 1, 1))) for index in range(count)]


def draw_path(
    axes: Axes, one: LaunchChart, extent: tuple[float, float], colours: Theme, paper: Paper, measure: Measure
) -> None:
    """The first path of a launch with the two roofs that it stands under, on logarithmic axes of ``extent`` points."""
    path = one.paths[0]
    peaks = [path.compute_roof] if path.compute_roof > 0 else []
    bandwidths = [path.bandwidth_roof] if path.bandwidth_roof > 0 else []
    view = View(*limits(path.dots, peaks, bandwidths), *extent)
    _axes(axes, path, view, colours, paper, measure)
    _roofs(axes, path, view, colours, paper, measure)
    hues = time_colours(len(one.edges) - 1)
    for piece in pieces(path):
        xs, ys = zip(*(path.dots[position] for position in piece), strict=True)
        axes.plot(xs, ys, lw=0.7 * paper.scale, color=colours.connector, zorder=4, gid="path")
    _dots(axes, path, view, hues, colours, paper, measure)


def piles(dots: Sequence[tuple[float, float]], view: View, near: float) -> list[list[int]]:
    """Positions of dots that lie on each other, less than ``near`` points from the first of them."""
    found: list[tuple[float, float, list[int]]] = []
    for position, dot in enumerate(dots):
        x, y = view.x(dot[0]), view.y(dot[1])
        pile = next((pile for left, low, pile in found if math.hypot(left - x, low - y) < near), None)
        if pile is None:
            found.append((x, y, [position]))
        else:
            pile.append(position)
    return [pile for *_, pile in found]


def _dots(
    axes: Axes, path: Trajectory, view: View, hues: Sequence[str], colours: Theme, paper: Paper, measure: Measure
) -> None:
    """Where slices lie on each other rings from the first, outside, to the last, and how many they are."""
    size, obstacles, labels = 3.6 * paper.scale, Obstacles(view), []
    sizes, edges = [0.0] * len(path.dots), ["none"] * len(path.dots)
    for pile in piles(path.dots, view, 0.4 * size):
        widest = size * min(1 + 0.3 * math.sqrt(len(pile) - 1), _WIDEST)
        for index, at in enumerate(pile):
            sizes[at] = widest - (widest - 0.6 * size) * index / max(len(pile) - 1, 1)
        edges[pile[0]] = colours.faint
        x, y = view.x(path.dots[pile[0]][0]), view.y(path.dots[pile[0]][1])
        obstacles.add(Box(x, y, widest, widest), 1.0)
        labels += [(x, y, widest, f"{len(pile)} slices")] if len(pile) >= _PILE else []
    axes.scatter(
        [x for x, _ in path.dots],
        [y for _, y in path.dots],
        s=[one**2 for one in sizes],
        c=[hues[place] for place in path.slices],
        edgecolors=edges,
        linewidths=0.4,
        zorder=5,
        gid="slices",
    )
    for x, y, widest, text in labels:
        box = obstacles.place(around(x, y, *measure(text, paper.key), widest / 2 + 2, reach=4), margin=0.6, limit=4.0)
        if box:
            put_text(
                axes, box.x / view.width, box.y / view.height, text, paper.key, colours.text, transform=axes.transAxes,
                ha="center", va="center", zorder=6, gid="pile", bbox=halo(colours),
            )  # fmt: skip


def _axes(axes: Axes, path: Trajectory, view: View, colours: Theme, paper: Paper, measure: Measure) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set(xscale="log", yscale="log", xlim=(view.x0, view.x1), ylim=(view.y0, view.y1))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _short(value, path.unit)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(base=10, numticks=8))
        axis.set_minor_formatter(NullFormatter())
    axes.tick_params(which="both", labelsize=paper.key, colors=colours.text, width=0.6, length=3, pad=2)
    axes.tick_params(which="minor", length=1.6, width=0.4)
    axes.grid(which="major", color=colours.grid, linewidth=0.5)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set(color=colours.faint, linewidth=0.6)
    level = level_style(path.level).label
    counted = COUNTED[path.unit]
    intensity = counted.intensity_axis
    names = (f"{level}: {intensity}", intensity, f"[{UNITS[counted.intensity_unit].symbol}]")
    across = first_fitting(names, paper.axis, view.width, measure)
    upward = f"{path.name} [{UNITS[f'{path.unit}/s'].symbol}]"
    upwards = first_fitting((f"Performance, {upward}", upward, ""), paper.axis, view.height, measure)
    axes.set_xlabel(across, fontsize=paper.axis, color=colours.text, labelpad=2)
    axes.set_ylabel(upwards, fontsize=paper.axis, color=colours.text, labelpad=2)


def _short(value: float, unit: str) -> str:
    """A number with its prefix: 100 G."""
    symbol = UNITS[f"{unit}/s"].symbol
    return format_value(value, f"{unit}/s", 3).removesuffix(symbol).strip()


def _roofs(axes: Axes, path: Trajectory, view: View, colours: Theme, paper: Paper, measure: Measure) -> None:
    """The bandwidth roof up to the compute roof, with their values."""
    bandwidth = path.bandwidth_roof if path.bandwidth_roof > 0 else None
    top = path.compute_roof if path.compute_roof > 0 else view.y1
    if bandwidth and (ends := diagonal(view, bandwidth, top)):
        colour = level_colour(path.level, colours)
        axes.plot(*zip(*ends, strict=True), lw=1.3 * paper.scale, color=colour, zorder=3, gid="roof")
        text = f"{level_style(path.level).label} {format_value(bandwidth, 'byte/s', 3)}"
        (x0, y0), (x1, y1) = ((view.x(x), view.y(y)) for x, y in ends)
        if measure(text, paper.label)[0] < 0.8 * ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5:
            where: dict[str, Any] = {
                "rotation": view.slope,
                "rotation_mode": "anchor",
                "transform": axes.transAxes,
                "ha": "center",
            }
            at = ((x0 + x1) / 2 / view.width, (y0 + y1) / 2 / view.height + 4 * paper.scale / view.height)
            put_text(axes, *at, text, paper.label, colour, va="bottom", zorder=6, bbox=halo(colours), **where)
    if ends_of := horizontal(view, path.compute_roof, bandwidth) if path.compute_roof > 0 else None:
        axes.plot(ends_of, [path.compute_roof] * 2, lw=1.3 * paper.scale, color=colours.compute, zorder=3, gid="roof")
        text = f"{path.name} {format_value(path.compute_roof, f'{path.unit}/s', 3)}"
        if measure(text, paper.label)[0] < 0.7 * view.width:
            y = view.y(path.compute_roof) / view.height + 3 * paper.scale / view.height
            where = {"transform": axes.transAxes, "ha": "right", "va": "bottom"}
            put_text(axes, 0.995, y, text, paper.label, colours.compute, zorder=6, bbox=halo(colours), **where)
