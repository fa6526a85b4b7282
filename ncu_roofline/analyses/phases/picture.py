"""Launches over their time as png, svg or pdf: bands of utilisation, and beside them the path of the slices under the roofs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncu_roofline.analyses.hierarchical.captions import subtitle
from ncu_roofline.analyses.hierarchical.drawing import explain
from ncu_roofline.analyses.hierarchical.looks import level_colour
from ncu_roofline.analyses.hierarchical.style import COUNTED, level_style
from ncu_roofline.analyses.hierarchical.usage import percent
from ncu_roofline.analyses.phases.chart import DrawnBand, LaunchChart, PhaseFrames, Trajectory, charts, explanation, notes_of
from ncu_roofline.base.texts import clean
from ncu_roofline.base.units import UNITS, format_value
from ncu_roofline.rendering.layout import Box, Measure, Obstacles, View, around, diagonal, horizontal, limits
from ncu_roofline.rendering.lettering import first_fitting, fitted, halo, measurer, put_text, wrapped
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
_PILE = 4  # dots on each other whose number is said
_WIDEST = 2.4  # times a dot: a pile at most
_SCALE = "viridis"  # runs from dark to light, so that the order is seen with any colour vision
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
        explain(axes, explanation(frames), colours, measure, paper)
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
        notes = notes_of(frames, shown) if shown else []
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
    heading = one.heading(page.launches)
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
        mean = percent(band.span[0])
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
        _draw_path(axes, one, (place[2], place[3]), colours, paper, measure)


def _draw_band(axes: Axes, band: DrawnBand, one: LaunchChart, colours: Theme) -> None:
    """Bars from 0 to the peak, hatched where nothing was sampled."""
    known = [value for value in band.values if math.isfinite(value)]
    axes.set(xlim=(0, one.seconds), ylim=(0, max([1.0, *known])), xticks=(), yticks=())
    widths = [end - begin for begin, end in zip(one.edges[:-1], one.edges[1:], strict=True)]
    heights = [value if math.isfinite(value) else 0.0 for value in band.values]
    colour = level_colour(band.level, colours) if band.level else colours.compute
    axes.bar(one.edges[:-1], heights, widths, align="edge", color=colour, linewidth=0, gid=f"band-{band.id}")
    slices = zip(one.edges[:-1], one.edges[1:], band.values, strict=True)
    unknown = [(begin, end) for begin, end, value in slices if not math.isfinite(value)]
    for begin, end in [*unknown, *([(one.sampled_until, one.seconds)] if one.cut else [])]:
        axes.axvspan(begin, end, facecolor="none", edgecolor=colours.faint, hatch="////", linewidth=0, gid="unknown")
    for spine in axes.spines.values():
        spine.set(color=colours.grid, linewidth=0.6)


def _draw_strip(axes: Axes, one: LaunchChart, colours: Theme, paper: Paper) -> None:
    """The axis of time, with the colours that the dots of the path have."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    exponent = min(max(3 * math.floor(math.log10(one.seconds) / 3), -9), 0)
    axes.set(xlim=(0, one.seconds), ylim=(0, 1), yticks=())
    if one.paths:
        widths = [end - begin for begin, end in zip(one.edges[:-1], one.edges[1:], strict=True)]
        axes.bar(one.edges[:-1], 1, widths, align="edge", color=_time_colours(len(widths)), linewidth=0)
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


def _time_colours(count: int) -> list[str]:
    """A colour per slice, from the first to the last."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(colormaps[_SCALE](0.95 * index / max(count - 1, 1))) for index in range(count)]


def _draw_path(
    axes: Axes, one: LaunchChart, extent: tuple[float, float], colours: Theme, paper: Paper, measure: Measure
) -> None:
    """The first path of a launch with the two roofs that it stands under, on logarithmic axes of ``extent`` points."""
    path = one.paths[0]
    peaks = [path.compute_roof] if path.compute_roof > 0 else []
    bandwidths = [path.bandwidth_roof] if path.bandwidth_roof > 0 else []
    view = View(*limits(path.dots, peaks, bandwidths), *extent)
    _axes(axes, path, view, colours, paper, measure)
    _roofs(axes, path, view, colours, paper, measure)
    hues = _time_colours(len(one.edges) - 1)
    for piece in path.pieces():
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

    rate, symbol = f"{path.unit}/s", UNITS[f"{path.unit}/s"].symbol
    axes.set(xscale="log", yscale="log", xlim=(view.x0, view.x1), ylim=(view.y0, view.y1))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_value(value, rate, 3).removesuffix(symbol).strip()))
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
    upward = f"{path.name} [{symbol}]"
    upwards = first_fitting((f"Performance, {upward}", upward, ""), paper.axis, view.height, measure)
    axes.set_xlabel(across, fontsize=paper.axis, color=colours.text, labelpad=2)
    axes.set_ylabel(upwards, fontsize=paper.axis, color=colours.text, labelpad=2)


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
