"""Launches over their time as png, svg or pdf: bands of utilisation, and beside them the path of the slices under the roofs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncu_roofline.analyses.hierarchical.captions import subtitle
from ncu_roofline.analyses.hierarchical.drawing import explain
from ncu_roofline.analyses.hierarchical.looks import level_colour
from ncu_roofline.analyses.hierarchical.usage import percent
from ncu_roofline.analyses.phases import captions
from ncu_roofline.analyses.phases.chart import DrawnBand, LaunchChart, PhaseFrames, charts
from ncu_roofline.analyses.phases.trajectory import draw_path, time_colours
from ncu_roofline.base.texts import clean
from ncu_roofline.rendering.layout import Measure
from ncu_roofline.rendering.lettering import fitted, measurer, put_text, wrapped
from ncu_roofline.rendering.paper import Paper, PaperError, paper_of
from ncu_roofline.rendering.picture import header_height, pictures, put_header, sheet_over
from ncu_roofline.rendering.style import THEMES, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LAUNCHES = 3
# On the default paper, points: what stands left and right of a band, its height, the room above and below a launch.
_LEFT, _RIGHT, _BAND, _ABOVE, _BELOW = 58.0, 34.0, 19.0, 20.0, 30.0
_LEAST_BAND = 9.0
_STRIP = 5.0  # of the colours of time, below the bands
_LEAST_BANDS = 8  # as high as so many bands a launch is at least, for its roofline
_BESIDE = 0.52  # share of the width that bands have beside a roofline
_NARROW = 50.0  # fonts: narrower paper has a roofline below the bands
_SHAPE = 0.7  # height over width of a roofline below them
_NOTE_LINES = 7
_TIME_PREFIXES = {0: "s", -3: "ms", -6: "\N{MICRO SIGN}s", -9: "ns"}


@dataclass(frozen=True)
class _Page:
    """What is on the paper: launches, the lines of notes, the height of a band and of the whole in points."""

    paper: Paper
    launches: tuple[LaunchChart, ...]
    notes: tuple[str, ...]
    band: float
    height: float

    @property
    def foot(self) -> float:
        """Height of the notes."""
        return self.paper.note_row * len(self.notes) + self.paper.edge

    @property
    def beside(self) -> bool:
        """Whether rooflines stand beside the bands."""
        return self.paper.width >= _NARROW * self.paper.font

    def rows(self, one: LaunchChart) -> int:
        """By how many bands of the ordinary height a launch is high."""
        return max(len(one.bands), _LEAST_BANDS if one.paths and self.beside else 0)

    def fixed(self, one: LaunchChart) -> float:
        """Height of what a launch has besides bands."""
        below = _SHAPE * self.paper.width + _BELOW * self.paper.scale if one.paths and not self.beside else 0.0
        return (_STRIP + _ABOVE + _BELOW) * self.paper.scale + below

    def block(self, one: LaunchChart) -> float:
        """Height of a launch."""
        return self.rows(one) * self.band + self.fixed(one)


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
    """The chart as a matplotlib figure of its own, outside pyplot; options as of the ordinary picture.

    Raises ValueError for an unknown theme or preset, and PaperError for a paper that nothing can be drawn or read on.
    """
    if theme not in THEMES:
        raise ValueError(f"theme {theme!r} is not one of {', '.join(THEMES)}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    paper, colours, measure = paper_of(width, height, font, dpi, preset), THEMES[theme], measurer()
    page = _page(frames, top, paper, measure)
    made = Figure(figsize=(paper.width / 72, page.height / 72), dpi=paper.dpi, facecolor=colours.ground)
    FigureCanvasAgg(made)  # so that it can be drawn outside pyplot
    sheet = sheet_over(made, paper.width, page.height)
    put_header(sheet, clean(title) or "Roofline over time", subtitle(frames), colours, measure, paper)
    edge = page.height - header_height(1, paper)
    for one in page.launches:
        edge -= page.block(one)
        _draw_launch(sheet, made, one, page, edge, colours, measure)
    if not page.launches:
        place = (0.05, page.foot / page.height, 0.9, (edge - page.foot) / page.height)
        axes = made.add_axes(place, facecolor="none")
        axes.set_axis_off()
        explain(axes, captions.explanation(frames), colours, measure, paper)
    for index, line in enumerate(page.notes):
        y = paper.edge - 2 + paper.note_row * (len(page.notes) - 1 - index)
        put_text(sheet, paper.edge, y, line, paper.small, colours.faint, va="bottom", gid="note")
    return made


render_png, render_svg, render_pdf = pictures(figure)


def _page(frames: PhaseFrames, top: int, paper: Paper, measure: Measure) -> _Page:
    """What has room; of a height that is asked for launches give way first, then bands get lower, then notes go."""
    found = charts(frames)
    head = header_height(1, paper)
    for count in range(min(top or len(found), len(found)), -1, -1):
        shown = found[:count]
        notes = captions.notes_of(frames, shown) if shown else []
        if shown and count < len(found):
            notes.append(f"The {count} longest of {len(found)} launches with samples are drawn.")
        for most in (_NOTE_LINES, 2, 0):
            lines = tuple(wrapped(notes, paper.small, paper.width - 2 * paper.edge, most, measure)) if most and notes else ()
            page = _Page(paper, tuple(shown), lines, _BAND * paper.scale, 0.0)
            fixed = head + page.foot + sum(map(page.fixed, shown))
            rows = sum(map(page.rows, shown))
            needed = fixed + rows * page.band if shown else head + page.foot + 12 * paper.font
            if not paper.height or (not found and needed <= paper.height):
                return _Page(paper, page.launches, lines, page.band, paper.height or needed)
            band = (paper.height - fixed) / rows if rows else 0.0
            if band >= _LEAST_BAND * paper.scale:
                return _Page(paper, page.launches, lines, band, paper.height)
    raise PaperError(f"height {paper.height / 72:.3g}in has no room for the picture; leave it out, or ask for more")


def _draw_launch(
    sheet: Axes, made: Figure, one: LaunchChart, page: _Page, bottom: float, colours: Theme, measure: Measure
) -> None:
    """A launch in a block of the sheet that begins at ``bottom``: its heading, bands, and its path if there is room."""
    paper, scale = page.paper, page.paper.scale
    beside = bool(one.paths) and page.beside
    room = paper.width * (_BESIDE if beside else 1.0) - (_LEFT + _RIGHT) * scale
    heading = captions.heading(one, sum(other.kernel == one.kernel for other in page.launches) > 1)
    size = paper.size(7.6)
    top = bottom + page.block(one)
    text = fitted(heading, size * 1.2, paper.width - 2 * paper.edge, measure)
    put_text(sheet, paper.edge, top - 6 * scale, text, size, colours.text, va="top", weight="bold")
    left, top = _LEFT * scale, top - _ABOVE * scale
    row = page.rows(one) * page.band / max(len(one.bands), 1)  # beside a roofline bands are as high together as it is
    for index, band in enumerate(one.bands):
        place = (left, top - (index + 1) * row + 1.5 * scale, room, row - 3.0 * scale)
        _draw_band(made.add_axes(_parts(place, page), facecolor=colours.ground), band, one, colours)
        y = place[1] + place[3] / 2
        label = fitted(band.label, paper.key, (_LEFT - 8) * scale, measure)
        put_text(sheet, left - 4 * scale, y, label, paper.key, colours.text, ha="right", va="center")
        mean = percent(captions.span(band.values).mean)
        put_text(sheet, left + room + 4 * scale, y, mean, paper.key, colours.faint, va="center")
    foot = top - page.rows(one) * page.band - _STRIP * scale
    _draw_strip(made.add_axes(_parts((left, foot, room, _STRIP * scale), page)), one, colours, paper)
    if one.paths:
        tall = page.rows(one) * page.band + _STRIP * scale
        start = paper.width * _BESIDE + 46 * scale if beside else 46 * scale
        upper = top if beside else foot - _BELOW * scale
        tall = tall if beside else _SHAPE * paper.width
        place = (start, upper - tall, paper.width - start - 9 * scale, tall)
        axes = made.add_axes(_parts(place, page), facecolor=colours.ground)
        draw_path(axes, one, (place[2], place[3]), colours, paper, measure)


def _draw_band(axes: Axes, band: DrawnBand, one: LaunchChart, colours: Theme) -> None:
    """Bars from 0 to the peak, hatched where nothing was sampled."""
    known = [value for value in band.values if math.isfinite(value)]
    axes.set(xlim=(0, one.seconds), ylim=(0, max([1.0, *known])), xticks=(), yticks=())
    widths = [end - begin for begin, end in zip(one.edges[:-1], one.edges[1:], strict=True)]
    heights = [value if math.isfinite(value) else 0.0 for value in band.values]
    colour = level_colour(band.level, colours) if band.level else colours.compute
    axes.bar(one.edges[:-1], heights, widths, align="edge", color=colour, linewidth=0, gid=f"band-{band.id}")
    for begin, end in unknown(band, one):
        axes.axvspan(begin, end, facecolor="none", edgecolor=colours.faint, hatch="////", linewidth=0, gid="unknown")
    for spine in axes.spines.values():
        spine.set(color=colours.grid, linewidth=0.6)


def unknown(band: DrawnBand, one: LaunchChart) -> list[tuple[float, float]]:
    """Where nothing is known of a band: slices without samples, and what comes after the last one."""
    places = zip(one.edges[:-1], one.edges[1:], band.values, strict=True)
    found = [(begin, end) for begin, end, value in places if not math.isfinite(value)]
    return [*found, *([(one.sampled_until, one.seconds)] if one.cut else [])]


def _draw_strip(axes: Axes, one: LaunchChart, colours: Theme, paper: Paper) -> None:
    """The axis of time, with the colours that the dots of the path have."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    exponent = min(max(3 * math.floor(math.log10(one.seconds) / 3), -9), 0)
    axes.set(xlim=(0, one.seconds), ylim=(0, 1), yticks=())
    if one.paths:
        widths = [end - begin for begin, end in zip(one.edges[:-1], one.edges[1:], strict=True)]
        axes.bar(one.edges[:-1], 1, widths, align="edge", color=time_colours(len(widths)), linewidth=0)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=(1, 2, 2.5, 5, 10)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 10.0**exponent:.4g}"))
    axes.tick_params(labelsize=paper.key, colors=colours.text, width=0.6, length=3, pad=2)
    axes.set_xlabel(f"Time [{_TIME_PREFIXES[exponent]}]", fontsize=paper.axis, color=colours.text, labelpad=2)
    axes.set_facecolor(colours.ground)
    for spine in axes.spines.values():
        spine.set(color=colours.faint, linewidth=0.6)


def _parts(place: Sequence[float], page: _Page) -> tuple[float, float, float, float]:
    """Left, bottom, width and height in points as parts of the figure."""
    left, bottom, width, tall = place
    return left / page.paper.width, bottom / page.height, width / page.paper.width, tall / page.height
