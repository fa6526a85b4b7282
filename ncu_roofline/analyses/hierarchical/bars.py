"""Draws bars of how full the units of the GPU were, with names and verdicts of the kernels, into matplotlib axes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncu_roofline.analyses.hierarchical.looks import level_colour
from ncu_roofline.analyses.hierarchical.usage import SM, TIME, Bars, Usage, percent, unit_label
from ncu_roofline.base.texts import shorten
from ncu_roofline.base.units import format_value
from ncu_roofline.chips.verdict import REACHED
from ncu_roofline.rendering.layout import Measure
from ncu_roofline.rendering.lettering import first_fitting, fitted, halo, put_text
from ncu_roofline.rendering.paper import Paper
from ncu_roofline.rendering.style import Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Points on the default paper: above the first and below the last bar, a bar, between kernels, names, verdicts, a value.
_HEAD, _FOOT, _BAR, _GAP, _LEFT, _RIGHT, _BEYOND = 22.0, 30.0, 4.8, 6.0, 158.0, 142.0, 30.0
_WIDE = 58.0  # times the font: narrower paper has names and verdicts above the bars


@dataclass(frozen=True)
class BarPlan:
    """Where the bars of ``data`` go on a paper, in points."""

    data: Bars
    paper: Paper

    @property
    def wide(self) -> bool:
        """Whether names and verdicts stand beside the bars, else above them."""
        return self.paper.width >= _WIDE * self.paper.font

    @property
    def bars(self) -> float:
        """Height of the bars of a kernel."""
        return len(self.data.units) * _BAR * self.paper.scale

    @property
    def row(self) -> float:
        """From one kernel to the next."""
        scale, text = self.paper.scale, self.paper.key + self.paper.small
        if self.wide:
            return max(1.55 * text, self.bars + _GAP * scale)
        return self.bars + _GAP * scale + 1.5 * self.paper.key

    @property
    def key_lines(self) -> int:
        """Lines above the bars: heading and key are one where both have room."""
        return 1 if self.wide else 2

    @property
    def head(self) -> float:
        """Above the first bar."""
        return _HEAD * self.paper.scale + (self.key_lines - 1) * self.paper.row

    @property
    def foot(self) -> float:
        """Below the last bar."""
        return _FOOT * self.paper.scale

    @property
    def height(self) -> float:
        """All of it; nothing without kernels."""
        return self.head + len(self.data.rows) * self.row + self.foot if self.data.rows else 0.0

    @property
    def left(self) -> float:
        """Where the bars begin."""
        return _LEFT * self.paper.scale if self.wide else 8.0

    @property
    def beyond(self) -> float:
        """Room for a value at the end of a full bar."""
        return _BEYOND * self.paper.scale

    @property
    def verdicts(self) -> float:
        """Where verdicts begin beside the bars."""
        return self.paper.width - _RIGHT * self.paper.scale + self.beyond

    def place(self, bottom: float) -> tuple[float, float, float, float]:
        """Left, bottom, width and height of the axes of bars that stand on ``bottom``."""
        end = self.verdicts if self.wide else self.paper.width
        return self.left, bottom + self.foot, end - self.beyond - self.left, len(self.data.rows) * self.row


def draw_bars(sheet: Axes, axes: Axes, bottom: float, plan: BarPlan, heading: str, colours: Theme, measure: Measure) -> None:
    """Draws the bars into ``axes``, and names and verdicts into ``sheet`` (in points), upwards from ``bottom``."""
    data, paper = plan.data, plan.paper
    _bar_axes(axes, plan, colours, measure)
    top = bottom + plan.height - plan.head
    _key(sheet, top, plan, heading, colours, measure)
    for index, one in enumerate(data.rows):
        start = index * plan.row
        _draw_row(axes, start, one, plan, colours)
        said = ", ".join(filter(None, (one.verdict, one.headroom_text)))
        if plan.wide:
            y, room = top - start - plan.row / 2, plan.left - 14
            name = squeezed(one.marked, paper.key, room, measure)
            put_text(sheet, plan.left - 5, y + 0.15 * paper.key, name, paper.key, colours.text, ha="right", va="bottom")
            time = fitted(_time_text(one), paper.small, room, measure)
            put_text(sheet, plan.left - 5, y - 0.15 * paper.key, time, paper.small, colours.faint, ha="right", va="top")
            text = fitted(said, paper.key, paper.width - plan.verdicts - 6, measure)
            put_text(sheet, plan.verdicts, y, text, paper.key, colours.text, va="center_baseline")
        else:
            y, over = (
                top - start - 0.9 * paper.key,
                {"transform": sheet.transData, "va": "center_baseline", "bbox": halo(colours)},
            )
            text = fitted(said, paper.key, 0.55 * paper.width, measure)
            put_text(axes, paper.width - 6, y, text, paper.key, colours.faint, ha="right", **over)
            room = paper.width - 22 - measure(text, paper.key)[0]
            put_text(axes, 8, y, squeezed(one.marked, paper.key, room, measure), paper.key, colours.text, **over)


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


def _bar_axes(axes: Axes, plan: BarPlan, colours: Theme, measure: Measure) -> None:
    paper = plan.paper
    axes.set_xlim(0, 100)
    axes.set_ylim(len(plan.data.rows) * plan.row, 0)
    axes.set_yticks([])
    axes.set_xticks(range(0, 101, 20 if plan.place(0)[2] > 22 * paper.font else 50))
    axes.tick_params(direction="out", labelsize=paper.key, colors=colours.text, width=0.6, length=3, pad=2)
    limit = f"from {100 * REACHED:.0f} % on (dashed) a unit limits"
    names = ("% of the time",) if plan.data.of_time else (f"% of peak; {limit}", "% of peak")
    name = first_fitting(names, paper.axis, plan.place(0)[2], measure)
    axes.set_xlabel(name, fontsize=paper.axis, color=colours.text, labelpad=2)
    axes.grid(axis="x", color=colours.grid, linewidth=0.5)
    axes.set_axisbelow(True)
    if not plan.data.of_time:  # from here on a unit is what limits
        axes.axvline(100 * REACHED, color=colours.faint, lw=0.6, ls=(0, (4, 3)), zorder=1)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(colours.faint)
        spine.set_linewidth(0.6)


def _draw_row(axes: Axes, start: float, one: Usage, plan: BarPlan, colours: Theme) -> None:
    """The bars of a kernel, the value at the end of the longest; what is unknown leaves a gap."""
    data, paper, thick = plan.data, plan.paper, _BAR * plan.paper.scale
    shares = data.shares(one)
    lead = (plan.row - plan.bars) / 2 if plan.wide else plan.row - plan.bars - _GAP * paper.scale / 2
    first = start + lead + thick / 2
    known = {unit: 100 * shares[unit] for unit in data.units if math.isfinite(shares.get(unit, math.nan))}
    for place, unit in enumerate(data.units):
        if unit in known:
            axes.barh(first + place * thick, min(known[unit], 100), thick * 0.86, color=_colour(unit, colours), lw=0, gid="bar")
    if not known:
        put_text(axes, 1, first + (plan.bars - thick) / 2, "not collected", paper.small, colours.faint, va="center_baseline")
        return
    longest = max(known, key=lambda unit: known[unit])
    end = min(known[longest], 100) + 0.8
    value, y = percent(known[longest] / 100), first + data.units.index(longest) * thick
    put_text(axes, end, y, value, paper.small, colours.text, va="center_baseline", clip_on=False, bbox=halo(colours))


def _colour(unit: str, colours: Theme) -> str:
    return colours.compute if unit in (SM, TIME) else level_colour(unit, colours)


def _key(sheet: Axes, top: float, plan: BarPlan, heading: str, colours: Theme, measure: Measure) -> None:
    """The heading, and what the colours stand for."""
    data, paper = plan.data, plan.paper
    y = top + 11 * paper.scale
    x = plan.left + 4
    for unit in () if data.of_time else data.units:
        sheet.plot([x], [y], "s", ms=4.6 * paper.scale, color=_colour(unit, colours), mew=0)
        put_text(sheet, x + 6 * paper.scale, y, unit_label(unit), paper.key, colours.text, va="center_baseline")
        x += measure(unit_label(unit), paper.key)[0] + 18 * paper.scale
    said = "verdict, headroom"
    if any(row.verdict for row in data.rows):
        left = plan.verdicts if plan.wide else paper.width - 6 - measure(said, paper.key)[0]
        if left > x:
            put_text(sheet, left, y, said, paper.key, colours.faint, va="center_baseline")
    y += (plan.key_lines - 1) * paper.row
    put_text(sheet, 6, y, heading, paper.size(7.6), colours.text, va="center_baseline", weight="bold")
