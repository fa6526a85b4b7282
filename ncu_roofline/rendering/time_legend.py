"""The key below the charts of the time view: what binds, kinds of symbols and lines, and the kernels with their time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncu_roofline.rendering.captions import percent
from ncu_roofline.rendering.lettering import put_text
from ncu_roofline.rendering.plan import Measure
from ncu_roofline.rendering.style import BOUNDS, MARKERS, Theme
from ncu_roofline.rendering.time_chart import TimeChart
from ncu_roofline.rendering.time_drawing import FILLED, OPEN, bound_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE, _ROW = 6.6, 10.2  # font size; points from one row to the next
_MOST_COLUMNS = 4


@dataclass(frozen=True)
class Legend:
    """Entries of the kernels, filled column by column from ``lefts`` (points), and whether some chart shows overhead."""

    entries: tuple[str, ...]
    down: int
    lefts: tuple[float, ...]
    overhead: bool


def legend_of(data: TimeChart, overhead: bool, measure: Measure, width: float) -> Legend:
    """The kernels in as many columns as fit, the longest first."""
    numbered = len(data.kernels) > len(MARKERS)
    texts = tuple(
        f"{f'{index + 1} ' if numbered else ''}{kernel.label}{f'  {percent(kernel.share)}' if kernel.share > 0 else ''}"
        for index, kernel in enumerate(data.kernels)
    )
    lefts: list[float] = []
    down = 0
    for columns in range(min(_MOST_COLUMNS, len(texts)), 0, -1):
        down = -(-len(texts) // columns)
        widths = [max(measure(text, _SIZE)[0] for text in texts[i : i + down]) + 24 for i in range(0, len(texts), down)]
        lefts = [10 + sum(widths[:i]) for i in range(len(widths))]
        if sum(widths) <= width - 12:
            break
    return Legend(texts, down, tuple(lefts), overhead)


def height_of(legend: Legend) -> float:
    """Points that the key takes: two rows of keys, then the kernels."""
    return (8 + 2 * _ROW + 4 + _ROW * legend.down + 4) if legend.entries else 0.0


def draw_legend(sheet: Axes, foot: float, legend: Legend, data: TimeChart, colours: Theme, measure: Measure) -> None:
    """Draws the key into axes in points, downwards from ``foot``."""
    if not legend.entries:
        return
    y = foot - 6
    _keys(sheet, y, data, legend.overhead, colours, measure)
    for index, text in enumerate(legend.entries):
        x, y = legend.lefts[index // legend.down], foot - 6 - 2 * _ROW - 3 - _ROW * (index % legend.down)
        sheet.plot([x], [y], marker=MARKERS[index % len(MARKERS)], ms=4.8, color=colours.faint, mew=0)
        put_text(sheet, x + 6, y, text, _SIZE, colours.text, va="center_baseline")


def _keys(sheet: Axes, y: float, data: TimeChart, overhead: bool, colours: Theme, measure: Measure) -> None:
    x = 10.0
    present = {one.bound for one in data.symbols}
    for bound, style in BOUNDS.items():
        if bound in present:
            sheet.plot([x], [y], "o", ms=FILLED, color=bound_colour(bound, colours), mew=0)
            x = _text(sheet, x + 6, y, style.label, colours, measure)
    lines: list[tuple[str, Any, float, str]] = [("machine balance", "-", 1.2, colours.compute)]
    if overhead:
        lines.append(("launch overhead", (0, (4, 2.5)), 0.8, bound_colour("overhead", colours)))
    if any(one.step >= 0 for one in data.symbols):
        lines.append(("steps of a sweep", "-", 0.8, colours.connector))
    for name, dashes, width, colour in lines:
        sheet.plot([x - 2, x + 14], [y, y], ls=dashes, lw=width, color=colour)
        x = _text(sheet, x + 18, y, name, colours, measure)
    heading = "kernels by share of time"
    if x + measure(heading, _SIZE)[0] < sheet.get_xlim()[1] - 8:
        put_text(sheet, sheet.get_xlim()[1] - 8, y, heading, _SIZE, colours.faint, va="center_baseline", ha="right")
    _symbol_keys(sheet, y - _ROW, data, colours, measure)


def _symbol_keys(sheet: Axes, y: float, data: TimeChart, colours: Theme, measure: Measure) -> None:
    """Filled and open symbols, and what the line between them says."""
    sheet.plot([10], [y], "o", ms=FILLED, color=colours.faint, mew=0)
    x = _text(sheet, 16, y, f"{data.level_label} traffic and operations", colours, measure)
    sheet.plot([x], [y], "o", ms=OPEN - 1, mfc="none", mec=colours.faint, mew=0.9)
    x = _text(sheet, x + 7, y, "bandwidth and compute time (upper and right axes)", colours, measure)
    sheet.plot([x - 2, x + 14], [y, y], ls=(0, (1, 1.5)), lw=0.9, color=colours.connector)
    _text(sheet, x + 18, y, "inefficiency: run time / time at the roofline", colours, measure)


def _text(sheet: Axes, x: float, y: float, text: str, colours: Theme, measure: Measure) -> float:
    """Writes one key and returns where the next may begin."""
    put_text(sheet, x, y, text, _SIZE, colours.text, va="center_baseline")
    return x + measure(text, _SIZE)[0] + 14
