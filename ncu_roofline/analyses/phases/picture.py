"""Launches over their time as a chart of marks: bands of utilisation, and the path of the slices under the roofs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ncu_roofline.analyses.hierarchical.captions import subtitle
from ncu_roofline.analyses.hierarchical.picture import axes_of, plain_roofs
from ncu_roofline.analyses.hierarchical.style import level_style
from ncu_roofline.analyses.phases.frames import PhaseRoofline
from ncu_roofline.analyses.phases.text import Path, explanation, launches, notes_of
from ncu_roofline.base.units import format_value, percent
from ncu_roofline.chips.spec import Color
from ncu_roofline.rendering.chart import Block, Chart, Line, Mark, Panel, Place, Point, Timeline
from ncu_roofline.rendering.picture import figure_of, pictures

MOST_LAUNCHES = 3
_SCALE = "viridis"  # runs from dark to light, so that the order is seen with any colour vision


def phase_chart(frames: PhaseRoofline, *, top: int = MOST_LAUNCHES) -> Chart:
    """The bands of the ``top`` longest launches, 0 for all, and their first paths.

    A colour per slice, from the first to the last.
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    found = launches(frames)
    shown, blocks = found[: top or None], list[Sequence[Block]]()
    notes = notes_of(frames, shown) if shown else []
    if len(shown) < len(found):
        notes.append(f"The {len(shown)} longest of {len(found)} launches with samples are drawn.")
    for launch in shown:
        slices = len(launch.edges) - 1
        colours = [to_hex(colormaps[_SCALE](0.95 * index / max(slices - 1, 1))) for index in range(slices)]
        hues = [Color(colour, colour) for colour in colours]
        bands = [
            (one.label, percent(one.mean), level_style(one.level) if one.level else None, one.values) for one in launch.bands
        ]
        timeline = Timeline(launch.heading(shown), launch.seconds, launch.edges, bands, hues if launch.paths else ())
        blocks.append([timeline, *(_panel(path, hues) for path in launch.paths[:1])])
    return Chart("Roofline over time", (), subtitle(frames), blocks, [], {}, notes, "" if blocks else explanation(frames))


def _panel(path: Path, hues: Sequence[Color]) -> Panel:
    """A path with the two roofs that it stands under; only dots whose slices follow each other are joined."""
    level = level_style(path.level).label
    compute = "compute", "", path.compute_roof, path.name, format_value(path.compute_roof, f"{path.unit}/s", 3)
    memory = "bandwidth", path.level, path.bandwidth_roof, level, format_value(path.bandwidth_roof, "byte/s", 3)
    marks: list[Mark] = [*plain_roofs(roof for roof in (compute, memory) if roof[2] > 0)]
    pieces: list[list[Place]] = []
    for position, place in enumerate(path.slices):
        if not position or place != path.slices[position - 1] + 1:
            pieces.append([])
        pieces[-1].append(path.dots[position])
    marks += [Line(role="path", places=tuple(piece)) for piece in pieces]
    marks += [Point(role="slice", hue=hues[at], x=x, y=y) for at, (x, y) in zip(path.slices, path.dots, strict=True)]
    across, up = axes_of(path.unit)
    upwards = up.names[0].replace("Performance [", f"Performance, {path.name} [")
    across = replace(across, names=(f"{level}: {across.names[0]}", *across.names))
    up = replace(up, names=(upwards, f"{path.name} [{{unit}}]", *up.names))
    return Panel("", across, up, marks, "roofline")


figure = figure_of(phase_chart)
render_png, render_svg, render_pdf = pictures(figure)
