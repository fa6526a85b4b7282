"""Launches over their time as a chart of marks: bands of utilisation, and the path of the slices under the roofs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ncu_roofline.analyses.hierarchical.captions import subtitle
from ncu_roofline.analyses.hierarchical.marks import axes_of, plain_roofs
from ncu_roofline.analyses.hierarchical.style import level_style
from ncu_roofline.analyses.phases.chart import LaunchChart, PhaseFrames, Trajectory, charts, explanation, notes_of
from ncu_roofline.base.units import format_value, percent
from ncu_roofline.chips.palette import Color
from ncu_roofline.rendering.chart import Block, Chart, Line, Mark, Panel, Place, Point, Text, Timeline
from ncu_roofline.rendering.chart_picture import chart_figure
from ncu_roofline.rendering.picture import pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_LAUNCHES = 3
_DOT = 3.6  # points
_PILE = 4  # dots on each other whose number is said
_WIDEST = 2.4  # times a dot: a pile at most
_NEAR = 0.012  # decades: dots that are no further apart lie on each other
_SCALE = "viridis"  # runs from dark to light, so that the order is seen with any colour vision


def figure(
    frames: PhaseFrames,
    *,
    title: str = "",
    theme: str = "light",
    top: int = MOST_LAUNCHES,
    width: str | float | None = None,
    height: str | float | None = None,
    font: float | None = None,
    dpi: float | None = None,
    preset: str | None = None,
) -> Figure:
    """The ``top`` longest launches as a matplotlib figure; the paper as `chart_figure` takes it."""
    paper = {"width": width, "height": height, "font": font, "dpi": dpi, "preset": preset}
    return chart_figure(lambda less: phase_chart(frames, top, less), title=title, theme=theme, **paper)  # type: ignore[arg-type]


render_png, render_svg, render_pdf = pictures(figure)


def phase_chart(frames: PhaseFrames, top: int = MOST_LAUNCHES, less: int = 0) -> Chart | None:
    """The ``top`` longest launches, ``less`` of them fewer; None where none of them would be left."""
    found = charts(frames)
    count = min(top or len(found), len(found)) - less
    if less and count < 1:
        return None
    shown = found[: max(count, 0)]
    notes = notes_of(frames, shown) if shown else []
    if 0 < count < len(found):
        notes.append(f"The {count} longest of {len(found)} launches with samples are drawn.")
    rows = [_row(one, shown) for one in shown]
    return Chart("Roofline over time", (), subtitle(frames), rows, [], {}, notes, "" if rows else explanation(frames))


def _row(one: LaunchChart, among: Sequence[LaunchChart]) -> list[Block]:
    """The bands of a launch, and its first path."""
    hues = _hues(len(one.edges) - 1)
    bands = [
        (band.label, percent(band.span[0]), level_style(band.level) if band.level else None, band.values) for band in one.bands
    ]
    timeline = Timeline(one.heading(among), one.seconds, one.edges, bands, hues if one.paths else ())
    return [timeline, _path(one.paths[0], hues)] if one.paths else [timeline]


def _hues(count: int) -> list[Color]:
    """A colour per slice, from the first to the last."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    found = (to_hex(colormaps[_SCALE](0.95 * index / max(count - 1, 1))) for index in range(count))
    return [Color(hue, hue) for hue in found]


def _path(path: Trajectory, hues: Sequence[Color]) -> Panel:
    """A path with the two roofs that it stands under."""
    x, y = axes_of(path.unit)
    level = level_style(path.level).label
    roofs = (
        ("compute", "", path.compute_roof, path.name, f"{path.unit}/s"),
        ("bandwidth", path.level, path.bandwidth_roof, level, "byte/s"),
    )
    marks: list[Mark] = list(
        plain_roofs((kind, at, value, name, format_value(value, unit, 3)) for kind, at, value, name, unit in roofs if value > 0)
    )
    marks += [Line(role="path", places=tuple(path.dots[position] for position in piece)) for piece in path.pieces()]
    upwards = y.names[0].replace("Performance [", f"Performance, {path.name} [")
    names = (f"{level}: {x.names[0]}", *x.names)
    across, up = replace(x, names=names), replace(y, names=(upwards, f"{path.name} [{{unit}}]", *y.names))
    return Panel("", across, up, [*marks, *_dots(path, hues)], "roofline")


def _dots(path: Trajectory, hues: Sequence[Color]) -> Iterator[Mark]:
    """Where slices lie on each other rings from the first, outside, to the last, and how many they are."""
    for pile in piles(path.dots):
        widest = _DOT * min(1 + 0.3 * math.sqrt(len(pile) - 1), _WIDEST)
        for index, at in enumerate(pile):
            size = widest - (widest - 0.6 * _DOT) * index / max(len(pile) - 1, 1)
            x, y = path.dots[at]
            yield Point(role="slice", hue=hues[path.slices[at]], x=x, y=y, size=size)
        if len(pile) >= _PILE:
            yield Text(role="pile", labels=(f"{len(pile)} slices",), places=(path.dots[pile[0]],))


def piles(dots: Sequence[Place]) -> list[list[int]]:
    """Positions of dots that lie on each other, next to the first of them."""
    found: list[tuple[Place, list[int]]] = []
    for position, dot in enumerate(dots):
        at = (math.log10(dot[0]), math.log10(dot[1]))
        pile = next((pile for first, pile in found if math.dist(first, at) < _NEAR), None)
        if pile is None:
            found.append((at, [position]))
        else:
            pile.append(position)
    return [pile for _, pile in found]
