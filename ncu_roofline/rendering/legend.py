"""The key below a chart: levels, kinds of roof, and the kernels with their share of the time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncu_roofline.rendering import captions
from ncu_roofline.rendering.drawing import BAND, level_colour
from ncu_roofline.rendering.lettering import put_text
from ncu_roofline.rendering.panels import Chart, is_part
from ncu_roofline.rendering.plan import Measure
from ncu_roofline.rendering.style import MARKERS, Theme, level_style, precision_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = 6.6  # of the font
ROW = 10.2  # points from one row of kernels to the next


def _entries(data: Chart) -> list[str]:
    numbered = len(data.kernels) > len(MARKERS)
    texts = []
    for index, kernel in enumerate(data.kernels):
        number = f"{index + 1} " if numbered else ""
        share = f"  {captions.percent(kernel.share)}" if kernel.share > 0 else ""
        texts.append(f"{number}{kernel.marked}{share}")
    return texts


@dataclass(frozen=True)
class Legend:
    """Entries of the kernels, filled column by column; ``lefts`` are the places of the columns in points."""

    entries: tuple[str, ...]
    down: int
    lefts: tuple[float, ...]


def legend_of(data: Chart, measure: Measure, direct: bool, width: float) -> Legend:
    """As many columns as fit, four at most."""
    texts = () if direct else tuple(_entries(data))
    lefts: list[float] = []
    down = 0
    for columns in range(min(4, len(texts)), 0, -1):
        down = -(-len(texts) // columns)
        widths = [max(measure(text, _SIZE)[0] for text in texts[i : i + down]) + 24 for i in range(0, len(texts), down)]
        lefts = [10 + sum(widths[:i]) for i in range(len(widths))]
        if sum(widths) <= width - 12:
            break
    return Legend(texts, down, tuple(lefts))


def draw_legend(sheet: Axes, foot: float, legend: Legend, data: Chart, colours: Theme, measure: Measure) -> None:
    """Draws the key into axes in points, downwards from ``foot``."""
    width = sheet.get_xlim()[1]
    y, x = foot - 8, 10.0
    for level in data.levels:
        label = data.level_labels.get(level) or level_style(level).label
        sheet.plot([x], [y], "o", ms=4.8, color=level_colour(level, colours))
        x = _key_text(sheet, x + 6, y, label, colours, measure)
    for name, dashes, thickness in _line_keys(data):
        sheet.plot([x - 2, x + 14], [y, y], ls=dashes, lw=thickness, color=colours.compute)
        x = _key_text(sheet, x + 18, y, name, colours, measure)
    if any(roof.bands for panel in data.panels for roof in panel.roofs):
        sheet.fill_between([x - 2, x + 14], y - 2.4, y + 2.4, color=colours.compute, alpha=BAND, lw=0)
        x = _key_text(sheet, x + 18, y, "range over launches", colours, measure)
    sheet.plot([x], [y], "o", ms=3.2, mfc=colours.ground, mec=colours.faint, mew=0.9)
    x = _key_text(sheet, x + 6, y, "ridge point", colours, measure)
    for name in dict.fromkeys(
        precision_label(one.precision) for panel in data.panels for one in panel.series if is_part(one, panel)
    ):
        sheet.plot([x], [y], "o", ms=4.8, mfc=colours.ground, mec=colours.faint, mew=0.9)
        x = _key_text(sheet, x + 6, y, f"{name} alone", colours, measure)
    heading = "kernels by share of time"
    if legend.entries and data.kernels[0].share > 0 and x + measure(heading, _SIZE)[0] < width - 8:
        put_text(sheet, width - 8, y, heading, _SIZE, colours.faint, va="center_baseline", ha="right")
    for index, text in enumerate(legend.entries):
        x, y = legend.lefts[index // legend.down], foot - 21 - ROW * (index % legend.down)
        sheet.plot([x], [y], marker=MARKERS[index % len(MARKERS)], ms=4.8, color=colours.faint, mew=0)
        put_text(sheet, x + 6, y, text, _SIZE, colours.text, va="center_baseline")


def _key_text(sheet: Axes, x: float, y: float, text: str, colours: Theme, measure: Measure) -> float:
    """Writes one key and returns where the next may begin."""
    put_text(sheet, x, y, text, _SIZE, colours.text, va="center_baseline")
    return x + measure(text, _SIZE)[0] + 14


def _line_keys(data: Chart) -> list[tuple[str, Any, float]]:
    origins = {
        name for panel in data.panels for roof in panel.roofs for name in ("measured", "theoretical") if getattr(roof, name) > 0
    }
    if data.several_origins:
        return [("measured roof", "-", 1.3), ("theoretical roof", (0, (4, 2.5)), 0.8)]
    return [(f"{name} roof", "-", 1.3) for name in sorted(origins)]
