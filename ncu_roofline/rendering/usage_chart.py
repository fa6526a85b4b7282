"""Utilisation bars in pictures: for each kernel without dots how full SMs and memory levels were, in percent of their peaks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ncu_roofline.model.names import shorten
from ncu_roofline.rendering.drawing import level_colour
from ncu_roofline.rendering.lettering import fitted, put_text
from ncu_roofline.rendering.plan import Measure
from ncu_roofline.rendering.style import Theme
from ncu_roofline.rendering.usage import SM, Usage, percent, unit_label
from ncu_roofline.rendering.usage_bars import TIME, Bars
from ncu_roofline.units import format_value
from ncu_roofline.verdict import REACHED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEAD, _FOOT = 22.0, 28.0  # points above the first and below the last bar
_BAR, _GAP, _ROW_MIN = 4.6, 6.0, 19.0
_NAME, _SMALL, _VALUE, _KEY = 6.6, 5.6, 5.2, 6.6  # font sizes
_LEFT, _RIGHT, _BEYOND = 158.0, 142.0, 28.0  # points for names, for verdicts, and for a value at the end of a full bar


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
    right: Sequence[str] = [one.verdict for one in data.rows if one.verdict]
    if right:
        width = sheet.get_xlim()[1]
        put_text(sheet, width - _RIGHT + _BEYOND, y, "verdict, possible gain", _KEY, colours.faint, va="center_baseline")
