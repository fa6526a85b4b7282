"""The roofline chart as png, svg or pdf, as one would put it in a paper; drawn by matplotlib without any window.

Output is deterministic: the same frames and matplotlib give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.chart import MAX_KERNELS, RooflineChart, chart
from ncu_roofline.analyses.hierarchical.drawing import (
    ROW,
    RooflineLegend,
    bar_place,
    bars_height,
    draw_bars,
    draw_legend,
    draw_panel,
    explain,
    legend_of,
)
from ncu_roofline.analyses.hierarchical.plan import PanelPlan, Sizes, plan_panel, view_of
from ncu_roofline.analyses.hierarchical.usage import BESIDE, MARK, Bars, bar_notes, bars, usages
from ncu_roofline.rendering.frames import Frames
from ncu_roofline.rendering.layout import Measure
from ncu_roofline.rendering.lettering import DPI, measurer, put_text, wrapped
from ncu_roofline.rendering.picture import PAGE_WIDTH, pictures, put_header, sheet_over
from ncu_roofline.rendering.style import THEMES, Theme
from ncu_roofline.texts import clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 8.0, 15.0, 29.0  # around each panel
_HEIGHTS = {1: 268.0, 2: 196.0}  # of the axes, by panels side by side
_NOTE = 6.0  # font size
_DIRECT = 5  # up to so many kernels are named at their dots
_NOTE_LINES = 7
_LINE = 8.6  # points from one note to the next


def figure(roofline: Frames, *, title: str = "", theme: str = "light", top: int = MAX_KERNELS) -> Figure:
    """The chart as a matplotlib figure of its own, outside pyplot.  Raises ValueError for an unknown theme."""
    if theme not in THEMES:
        raise ValueError(f"theme {theme!r} is not one of {', '.join(THEMES)}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    colours, marks = THEMES[theme], {usage.kernel: MARK for usage in usages(roofline).values() if usage.tensor_unknown}
    data = chart(roofline, top, marks)
    beside = any(panel.series for panel in data.panels)
    shown = bars(roofline, min(top, BESIDE) if beside else top)
    if shown.rows and not beside:
        data = replace(data, panels=())
    made = Figure(figsize=(PAGE_WIDTH / 72, 5), dpi=DPI, facecolor=colours.ground)
    measure = measurer(FigureCanvasAgg(made))
    plans, direct = _plans(data, measure) if data.panels else ([], True)
    legend = legend_of(data, measure, direct, PAGE_WIDTH)
    outside = sum(plan.outside for plan in plans)
    said = [*captions.footnotes(roofline, data, outside), *bar_notes(shown), *_unlabelled(plans, direct)]
    notes = wrapped(said, _NOTE, PAGE_WIDTH - 12, _NOTE_LINES, measure)
    page = _page(data, plans, shown, legend, len(notes))
    made.set_size_inches(PAGE_WIDTH / 72, page.height / 72)
    sheet = sheet_over(made, PAGE_WIDTH, page.height)
    name = captions.name_of(roofline) if data.panels else "Utilisation"
    put_header(sheet, _default_title(data, title, name), captions.subtitle(roofline), colours, measure)
    _draw_panels(made, page, plans, data, colours)
    if data.panels and not beside:
        explain(made.axes[-1], captions.explanation(roofline), colours)
    if shown.rows:
        place = bar_place(shown, page.foot, PAGE_WIDTH)
        axes = made.add_axes(_parts(place, page.height), facecolor=colours.ground)
        draw_bars(sheet, axes, page.foot, shown, "Kernels without dots" if beside else "Kernels by time", colours, measure)
    if data.panels:
        draw_legend(sheet, page.foot + bars_height(shown) + page.key, legend, data, colours, measure)
    for index, line in enumerate(notes):
        put_text(sheet, 6, 4 + _LINE * (len(notes) - 1 - index), line, _NOTE, colours.faint, va="bottom")
    return made


render_png, render_svg, render_pdf = pictures(figure)


@dataclass(frozen=True)
class _Page:
    """Heights in points, from the top: ``head`` of the titles, ``down`` rows of panels, ``key``, bars, ``foot`` of notes."""

    height: float
    head: float
    across: int
    down: int
    key: float
    foot: float


def _page(data: RooflineChart, plans: Sequence[PanelPlan], shown: Bars, legend: RooflineLegend, notes: int) -> _Page:
    across = _across(data)
    down = -(-len(plans) // across)  # rounded up
    head = 34.0 if len(plans) > 1 or not plans else 24.0
    key = 18.0 + ROW * legend.down + 3 * bool(legend.down) if plans else 0.0
    foot = _LINE * notes + 6
    height = head + down * (_HEIGHTS[across] + _TOP + _BOTTOM) + key + bars_height(shown) + foot
    return _Page(height, head, across, down, key, foot)


def _draw_panels(made: Figure, page: _Page, plans: Sequence[PanelPlan], data: RooflineChart, colours: Theme) -> None:
    panel_height = _HEIGHTS[page.across] + _TOP + _BOTTOM
    for index, plan in enumerate(plans):
        row, column = divmod(index, page.across)
        left = _LEFT + column * (PAGE_WIDTH / page.across)
        bottom = page.height - page.head - row * panel_height - _TOP - _HEIGHTS[page.across]
        place = _parts((left, bottom, plan.view.width, plan.view.height), page.height)
        draw_panel(made.add_axes(place, facecolor=colours.ground), plan, data, colours)


def _parts(place: tuple[float, float, float, float], height: float) -> tuple[float, float, float, float]:
    """Left, bottom, width and height in points as parts of the figure."""
    left, bottom, width, tall = place
    return left / PAGE_WIDTH, bottom / height, width / PAGE_WIDTH, tall / height


def _across(data: RooflineChart) -> int:
    """Panels side by side."""
    return 1 if len(data.panels) == 1 else 2


def _default_title(data: RooflineChart, title: str, name: str) -> str:
    if title:
        return clean(title)
    panels = {panel.title for panel in data.panels if panel.title}
    if name != "Roofline":
        return name
    return f"{name}, {next(iter(panels))}" if len(data.panels) == 1 and panels else name


def _plans(data: RooflineChart, measure: Measure) -> tuple[list[PanelPlan], bool]:
    """Plans of all panels, and whether kernels are named at their dots: if few and all find room there."""
    across = _across(data)
    width = PAGE_WIDTH / across - _LEFT - _RIGHT
    sizes = Sizes() if across == 1 else Sizes(roof=5.6, number=5.0, marker=4.2)
    few = 0 < len(data.kernels) <= _DIRECT and len(data.panels) == 1
    for direct in (True, False) if few else (False,):
        views = [view_of(panel, width, _HEIGHTS[across], direct) for panel in data.panels]
        plans = [plan_panel(panel, view, data, measure, sizes, direct) for panel, view in zip(data.panels, views, strict=True)]
        if not direct or not any(plan.unlabelled for plan in plans):
            break
    return plans, direct


def _unlabelled(plans: Sequence[PanelPlan], direct: bool) -> list[str]:
    texts = [] if direct else [text for plan in plans for text in plan.unlabelled]
    return [f"Roofs without room for a label: {', '.join(dict.fromkeys(texts))}."] if texts else []
