"""Launches over their time as a chart of marks: bands of utilisation, and the path of the slices under the roofs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ncu_roofline.analyses.hierarchical.captions import subtitle
from ncu_roofline.analyses.hierarchical.picture import axes_of, plain_roofs
from ncu_roofline.analyses.hierarchical.style import level_style
from ncu_roofline.analyses.phases.frames import PhaseRoofline
from ncu_roofline.analyses.phases.text import Launch, Path, explanation, launches, notes_of
from ncu_roofline.base.units import format_value, percent
from ncu_roofline.chips.spec import Color
from ncu_roofline.rendering.chart import Block, Chart, Line, Mark, Panel, Place, Point, Text, Timeline
from ncu_roofline.rendering.picture import figure_of, pictures

MOST_LAUNCHES = 3
_DOT = 3.6  # points
_PILE = 4  # dots on each other whose number is said
_WIDEST = 2.4  # times a dot: a pile at most
_NEAR = 0.012  # decades: dots that are no further apart lie on each other
_SCALE = "viridis"  # runs from dark to light, so that the order is seen with any colour vision


def phase_chart(frames: PhaseRoofline, top: int = MOST_LAUNCHES, less: int = 0) -> Chart | None:
    """The ``top`` longest launches, ``less`` of them fewer; None where none of them would be left."""
    found = launches(frames)
    count = min(top or len(found), len(found)) - less
    if less and count < 1:
        return None
    shown = found[: max(count, 0)]
    notes = notes_of(frames, shown) if shown else []
    if 0 < count < len(found):
        notes.append(f"The {count} longest of {len(found)} launches with samples are drawn.")
    rows = [_row(launch, shown) for launch in shown]
    return Chart("Roofline over time", (), subtitle(frames), rows, [], {}, notes, "" if rows else explanation(frames))


def _row(launch: Launch, among: Sequence[Launch]) -> list[Block]:
    """The bands of a launch, and its first path; a colour per slice, from the first to the last."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    count = len(launch.edges) - 1
    colours = (to_hex(colormaps[_SCALE](0.95 * index / max(count - 1, 1))) for index in range(count))
    hues = [Color(colour, colour) for colour in colours]
    bands = [
        (band.label, percent(band.mean), level_style(band.level) if band.level else None, band.values) for band in launch.bands
    ]
    timeline = Timeline(launch.heading(among), launch.seconds, launch.edges, bands, hues if launch.paths else ())
    return [timeline, *(_panel(path, hues) for path in launch.paths[:1])]


def _panel(path: Path, hues: Sequence[Color]) -> Panel:
    """A path with the two roofs that it stands under; only dots whose slices follow each other are joined."""
    x, y = axes_of(path.unit)
    level = level_style(path.level).label
    roofs = (
        ("compute", "", path.compute_roof, path.name, f"{path.unit}/s"),
        ("bandwidth", path.level, path.bandwidth_roof, level, "byte/s"),
    )
    marks: list[Mark] = list(
        plain_roofs((kind, at, value, name, format_value(value, unit, 3)) for kind, at, value, name, unit in roofs if value > 0)
    )
    pieces: list[list[Place]] = []
    for position, place in enumerate(path.slices):
        if not position or place != path.slices[position - 1] + 1:
            pieces.append([])
        pieces[-1].append(path.dots[position])
    marks += [Line(role="path", places=tuple(piece)) for piece in pieces]
    upwards = y.names[0].replace("Performance [", f"Performance, {path.name} [")
    across = replace(x, names=(f"{level}: {x.names[0]}", *x.names))
    up = replace(y, names=(upwards, f"{path.name} [{{unit}}]", *y.names))
    return Panel("", across, up, [*marks, *_dots(path, hues)], "roofline")


def _dots(path: Path, hues: Sequence[Color]) -> Iterator[Mark]:
    """Where slices lie on each other rings from the first, outside, to the last, and how many they are."""
    piles: list[tuple[Place, list[int]]] = []
    for position, (x, y) in enumerate(path.dots):
        at = (math.log10(x), math.log10(y))
        pile = next((pile for first, pile in piles if math.dist(first, at) < _NEAR), None)
        if pile is None:
            piles.append((at, [position]))
        else:
            pile.append(position)
    for _, pile in piles:
        widest = _DOT * min(1 + 0.3 * math.sqrt(len(pile) - 1), _WIDEST)
        for index, position in enumerate(pile):
            size = widest - (widest - 0.6 * _DOT) * index / max(len(pile) - 1, 1)
            x, y = path.dots[position]
            yield Point(role="slice", hue=hues[path.slices[position]], x=x, y=y, size=size)
        if len(pile) >= _PILE:
            yield Text(role="pile", labels=(f"{len(pile)} slices",), places=(path.dots[pile[0]],))


def charts(frames: PhaseRoofline, *, top: int = MOST_LAUNCHES) -> Callable[[int], Chart | None]:
    """The charts of the ``top`` longest launches, for `figure_of`."""
    return lambda less: phase_chart(frames, top, less)


figure = figure_of(charts)
render_png, render_svg, render_pdf = pictures(figure)
