"""The roofline chart as png, svg or pdf, as one would put it in a paper; drawn by matplotlib without any window.

Output is deterministic: the same frames and matplotlib give the same bytes.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ncu_roofline.model.names import clean
from ncu_roofline.render import captions
from ncu_roofline.render.panels import MAX_KERNELS, Chart, Frames, chart
from ncu_roofline.render.plan import EXPLANATION, Label, Measure, PanelPlan, Sizes, plan_panel, view_of
from ncu_roofline.render.style import MARKERS, THEMES, Theme, level_style
from ncu_roofline.units import format_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 160
_WIDTH = 7.16 * 72  # points: both columns of a two-column paper
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 8.0, 15.0, 29.0  # around each panel
_HEIGHTS = {1: 268.0, 2: 196.0}  # of the axes, by panels side by side
_TITLE, _SUBTITLE, _LEGEND, _NOTE = 10.0, 6.8, 6.6, 6.0  # font sizes
_DIRECT = 5  # up to so many kernels are named at their dots
_NOTE_LINES = 4
_SETTINGS: dict[Any, Any] = {
    "font.family": ["DejaVu Sans"],
    "text.usetex": False,
    "svg.hashsalt": "ncu-roofline",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "axes.unicode_minus": False,
    "text.hinting": "no_hinting",  # the same widths in png, svg and pdf, and where labels are measured
    "path.simplify": False,
}


def render_png(roofline: Frames, *, title: str = "", theme: str = "light", top: int = MAX_KERNELS) -> bytes:
    """The chart of a Roofline as png at 160 dots per inch."""
    return _render(roofline, "png", title, theme, top)


def render_svg(roofline: Frames, *, title: str = "", theme: str = "light", top: int = MAX_KERNELS) -> bytes:
    """The chart of a Roofline as svg; texts are outlines, so it looks the same everywhere."""
    return _render(roofline, "svg", title, theme, top)


def render_pdf(roofline: Frames, *, title: str = "", theme: str = "light", top: int = MAX_KERNELS) -> bytes:
    """The chart of a Roofline as pdf with TrueType fonts, as publishers ask for."""
    return _render(roofline, "pdf", title, theme, top)


def _render(roofline: Frames, suffix: str, title: str, theme: str, top: int) -> bytes:
    metadata: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None, "ModDate": None}, "png": {}}
    with settings():
        made = figure(roofline, title=title, theme=theme, top=top)
        buffer = io.BytesIO()
        made.savefig(buffer, format=suffix, dpi=DPI, facecolor=made.get_facecolor(), metadata=metadata[suffix])
    return buffer.getvalue()


@contextmanager
def settings() -> Iterator[None]:
    """Matplotlib's own defaults with ours on top, whatever a user's matplotlibrc says."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def figure(roofline: Frames, *, title: str = "", theme: str = "light", top: int = MAX_KERNELS) -> Figure:
    """The chart as a matplotlib figure of its own, outside pyplot.  Raises ValueError for an unknown theme."""
    if theme not in THEMES:
        raise ValueError(f"theme {theme!r} is not one of {', '.join(THEMES)}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    colours, data = THEMES[theme], chart(roofline, top)
    made = Figure(figsize=(_WIDTH / 72, 5), dpi=DPI, facecolor=colours.ground)
    measure = _measure(FigureCanvasAgg(made))
    across = 1 if len(data.panels) == 1 else 2
    plans, direct = _plans(data, measure, across)
    outside = sum(plan.outside for plan in plans)
    notes = _wrapped(captions.footnotes(roofline, data, outside) + _unlabelled(plans, direct), measure)
    legend = _legend(data, measure, direct)
    down = -(-len(plans) // across)
    panel_height = _HEIGHTS[across] + _TOP + _BOTTOM
    head, foot = 34.0 if len(plans) > 1 else 24.0, 18.0 + 10.2 * legend.down + 3 * bool(legend.down) + 8.6 * len(notes) + 6
    height = head + down * panel_height + foot
    made.set_size_inches(_WIDTH / 72, height / 72)
    sheet = _sheet(made, height)
    _header(sheet, height, _default_title(data, title), captions.subtitle(roofline), colours, measure)
    for index, plan in enumerate(plans):
        row, column = divmod(index, across)
        left = _LEFT + column * (_WIDTH / across)
        bottom = height - head - row * panel_height - _TOP - _HEIGHTS[across]
        axes = made.add_axes(
            (left / _WIDTH, bottom / height, plan.view.width / _WIDTH, plan.view.height / height), facecolor=colours.ground
        )
        _draw_panel(axes, plan, data, colours)
    if not any(plan.panel.series for plan in plans):
        _explain(made.axes[-1], captions.explanation(roofline), colours)
    _draw_legend(sheet, foot, legend, data, colours, measure)
    for index, line in enumerate(notes):
        _text(sheet, 6, 4 + 8.6 * (len(notes) - 1 - index), line, _NOTE, colours.faint, va="bottom")
    return made


def _default_title(data: Chart, title: str) -> str:
    if title:
        return clean(title)
    panels = {panel.title for panel in data.panels if panel.title}
    return f"Roofline, {next(iter(panels))}" if len(data.panels) == 1 and panels else "Roofline"


# -- planning ---------------------------------------------------------------------------------------------------------------


def _plans(data: Chart, measure: Measure, across: int) -> tuple[list[PanelPlan], bool]:
    """Plans of all panels, and whether kernels are named at their dots: if few and all find room there."""
    width = _WIDTH / across - _LEFT - _RIGHT
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


@lru_cache(maxsize=1)
def _glyphs() -> frozenset[int]:
    """Code points that DejaVu Sans can draw."""
    from matplotlib.font_manager import findfont
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(findfont("DejaVu Sans")).get_charmap())


def _drawable(text: str) -> str:
    """``text`` with what the font lacks replaced, and no dollar sign that starts a formula."""
    known = _glyphs()
    return "".join(char if ord(char) in known or char == "\n" else "\N{REPLACEMENT CHARACTER}" for char in text).replace(
        "$", r"\$"
    )


def _measure(canvas: Any) -> Measure:
    """Extent in points of a text in DejaVu Sans."""
    from matplotlib.font_manager import FontProperties

    renderer = canvas.get_renderer()

    @lru_cache(maxsize=4096)
    def extent(text: str, size: float) -> tuple[float, float]:
        font = FontProperties(family=["DejaVu Sans"], size=size)
        width, height, _ = renderer.get_text_width_height_descent(_drawable(text).replace(r"\$", "$"), font, False)
        _, line, _ = renderer.get_text_width_height_descent("lp", font, False)
        return width * 72 / DPI, max(height, line) * 72 / DPI

    return extent


def _fitted(text: str, size: float, width: float, measure: Measure) -> str:
    """``text``, cut at its end to ``width`` points."""
    if measure(text, size)[0] <= width:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if measure(text[:middle] + "...", size)[0] <= width else (low, middle - 1)
    return text[:low].rstrip() + "..."


def _wrapped(notes: Sequence[str], measure: Measure) -> list[str]:
    """Notes as lines of the figure's width, at most _NOTE_LINES."""
    width, lines = _WIDTH - 12, [""]
    for word in " ".join(notes).split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and measure(longer, _NOTE)[0] > width:
            if len(lines) == _NOTE_LINES:
                lines[-1] = _fitted(f"{lines[-1]} {word}", _NOTE, width, measure)
                break
            lines.append(_fitted(word, _NOTE, width, measure))
        else:
            lines[-1] = _fitted(longer, _NOTE, width, measure)
    return [line for line in lines if line]


# -- drawing ----------------------------------------------------------------------------------------------------------------


def _sheet(made: Figure, height: float) -> Axes:
    """Invisible axes over the whole figure, in points."""
    sheet = made.add_axes((0, 0, 1, 1), facecolor="none", zorder=-1)
    sheet.set_axis_off()
    sheet.set_xlim(0, _WIDTH)
    sheet.set_ylim(0, height)
    return sheet


def _text(axes: Axes, x: float, y: float, text: str, size: float, colour: str, **more: Any) -> None:
    axes.text(x, y, _drawable(text), fontsize=size, color=colour, **more)


def _header(sheet: Axes, height: float, title: str, subtitle: str, colours: Theme, measure: Measure) -> None:
    title = _fitted(title, _TITLE * 1.25, _WIDTH - 12, measure)  # bold is wider than what is measured
    _text(sheet, 6, height - 7, title, _TITLE, colours.text, va="top", weight="bold")
    _text(sheet, 6, height - 22, _fitted(subtitle, _SUBTITLE, _WIDTH - 12, measure), _SUBTITLE, colours.faint, va="top")


def _level_colour(level: str, colours: Theme) -> str:
    style = level_style(level)
    return style.dark if colours.dark else style.light


def _draw_panel(axes: Axes, plan: PanelPlan, data: Chart, colours: Theme) -> None:
    _axes(axes, plan, data, colours)
    for line in plan.lines:
        _draw_line(axes, line, data, colours)
    for intensity, performance, level in plan.ridges:
        axes.plot(
            [intensity], [performance], "o", ms=3.2, mfc=colours.ground, mec=_level_colour(level, colours), mew=0.9, zorder=4
        )
    _draw_dots(axes, plan, data, colours)
    for label in plan.labels:
        _draw_label(axes, label, plan, colours)


def _axes(axes: Axes, plan: PanelPlan, data: Chart, colours: Theme) -> None:
    """Limits, ticks and names of the axes; performance in the unit that suits the highest roof."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    view = plan.view
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(view.x0, view.x1)
    axes.set_ylim(view.y0, view.y1)
    scale, symbol = _scaled(view.y1 / 2, f"{plan.panel.unit}/s")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / scale:g}"))
    for axis, length in ((axes.xaxis, view.width / 34), (axes.yaxis, view.height / 16)):
        axis.set_major_locator(LogLocator(base=10, numticks=max(int(length), 3)))
        axis.set_minor_locator(LogLocator(base=10, subs=range(2, 10), numticks=30))
        axis.set_minor_formatter(NullFormatter())
    axes.tick_params(which="both", direction="out", labelsize=6.6, colors=colours.text, width=0.6, length=3, pad=2)
    axes.tick_params(which="minor", length=1.6, width=0.4)
    axes.grid(which="major", color=colours.grid, linewidth=0.5)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(colours.faint)
        spine.set_linewidth(0.6)
    work = "FLOP" if plan.panel.unit == "flop" else "OP"
    _axis_name(axes.set_xlabel, f"Arithmetic intensity [{work}/B]", colours)
    _axis_name(axes.set_ylabel, f"Performance [{symbol}]", colours)
    if len(data.panels) > 1:
        axes.set_title(_drawable(plan.panel.title), fontsize=7.6, color=colours.text, loc="left", pad=3, weight="bold")


def _axis_name(put: Any, text: str, colours: Theme) -> None:
    put(text, fontsize=7.2, color=colours.text, labelpad=2)


def _scaled(value: float, unit: str) -> tuple[float, str]:
    """Factor and symbol of the prefixed unit that suits ``value``, at most tera as people compare chips in it."""
    exponent = min(max(3 * int(math.log10(value) // 3), 0), 12)
    return 10.0**exponent, format_value(10.0**exponent, unit).split(" ")[-1]


def _draw_line(axes: Axes, line: Any, data: Chart, colours: Theme) -> None:
    """Measured roofs solid, theoretical ones dashed where both are shown; a roof upon another one shows through its gaps."""
    compute = line.kind == "compute"
    colour = colours.compute if compute else _level_colour(line.level, colours) if line.level else colours.faint
    theory = line.origin == "theoretical" and data.several_origins
    dashes: Any = "-"
    if line.kind == "wall":
        dashes = (0, (1, 2))
    elif theory:
        dashes = (line.twin * 5.0, (4, 2.5))
    elif line.twin:
        dashes = (0, (6, 6))
    (x0, y0), (x1, y1) = line.ends
    axes.plot(
        [x0, x1], [y0, y1], ls=dashes, lw=0.8 if theory else 1.3, color=colour, zorder=2 if theory else 3, dash_capstyle="butt"
    )


def _draw_dots(axes: Axes, plan: PanelPlan, data: Chart, colours: Theme) -> None:
    """Dots in the colour of their level and the shape of their kernel, those of one kernel joined."""
    from matplotlib.collections import LineCollection

    marker = {kernel.label: MARKERS[index % len(MARKERS)] for index, kernel in enumerate(data.kernels)}
    spans = [
        [(min(x for _, x in one.dots), one.performance), (max(x for _, x in one.dots), one.performance)]
        for one in plan.panel.series
    ]
    axes.add_collection(LineCollection(spans, colors=colours.connector, linewidths=0.6, zorder=4), autolim=False)
    dots: dict[tuple[str, str], tuple[list[float], list[float]]] = {}
    for one in plan.panel.series:
        for level, intensity in one.dots:
            xs, ys = dots.setdefault((one.kernel, level), ([], []))
            xs.append(intensity)
            ys.append(one.performance)
    size = 4.8 if len(data.panels) == 1 else 4.3
    for (kernel, level), (xs, ys) in dots.items():
        axes.plot(
            xs,
            ys,
            ls="none",
            marker=marker[kernel],
            ms=size,
            mfc=_level_colour(level, colours),
            mec=colours.ground,
            mew=0.4,
            zorder=5,
        )


def _draw_label(axes: Axes, label: Label, plan: PanelPlan, colours: Theme) -> None:
    from matplotlib.patheffects import withStroke

    view, box = plan.view, label.box
    if label.leader:
        xs, ys = zip(*((x / view.width, y / view.height) for x, y in label.leader), strict=True)
        axes.plot(xs, ys, transform=axes.transAxes, lw=0.4, color=colours.faint, zorder=4)
    if label.role in ("kernel", "number"):
        colour = colours.text
    else:
        colour = _level_colour(label.level, colours) if label.level else colours.compute
    _text(
        axes,
        box.x / view.width,
        box.y / view.height,
        label.text,
        label.size,
        colour,
        transform=axes.transAxes,
        ha="center",
        va="center",
        rotation=box.angle,
        rotation_mode="anchor",
        zorder=6,
        path_effects=[withStroke(linewidth=2.0, foreground=colours.ground)],
        gid=f"label-{label.role}",
    )


def _explain(axes: Axes, text: str, colours: Theme) -> None:
    """The reason for an empty chart, in its middle."""
    box = {"boxstyle": "round,pad=0.6", "facecolor": colours.ground, "edgecolor": colours.faint, "linewidth": 0.6}
    wrapped = "\n".join(part for line in text.splitlines() for part in textwrap.wrap(line, 80))
    _text(
        axes,
        EXPLANATION.x,
        EXPLANATION.y,
        wrapped,
        8,
        colours.text,
        transform=axes.transAxes,
        ha="center",
        va="center",
        bbox=box,
        zorder=8,
        linespacing=1.5,
    )


# -- legend -----------------------------------------------------------------------------------------------------------------


def _entries(data: Chart) -> list[str]:
    numbered = len(data.kernels) > len(MARKERS)
    texts = []
    for index, kernel in enumerate(data.kernels):
        number = f"{index + 1} " if numbered else ""
        share = f"  {captions.percent(kernel.share)}" if kernel.share > 0 else ""
        texts.append(f"{number}{kernel.label}{share}")
    return texts


@dataclass(frozen=True)
class _Legend:
    """Entries of the kernels, filled column by column; ``lefts`` are the places of the columns in points."""

    entries: tuple[str, ...]
    down: int
    lefts: tuple[float, ...]


def _legend(data: Chart, measure: Measure, direct: bool) -> _Legend:
    """As many columns as fit, four at most."""
    texts = () if direct else tuple(_entries(data))
    lefts: list[float] = []
    down = 0
    for columns in range(min(4, len(texts)), 0, -1):
        down = -(-len(texts) // columns)
        widths = [max(measure(text, _LEGEND)[0] for text in texts[i : i + down]) + 24 for i in range(0, len(texts), down)]
        lefts = [10 + sum(widths[:i]) for i in range(len(widths))]
        if sum(widths) <= _WIDTH - 12:
            break
    return _Legend(texts, down, tuple(lefts))


def _draw_legend(sheet: Axes, foot: float, legend: _Legend, data: Chart, colours: Theme, measure: Measure) -> None:
    y, x = foot - 8, 10.0
    for level in data.levels:
        label = data.level_labels.get(level) or level_style(level).label
        sheet.plot([x], [y], "o", ms=4.8, color=_level_colour(level, colours))
        x = _key_text(sheet, x + 6, y, label, colours, measure)
    for name, dashes, width in _line_keys(data):
        sheet.plot([x - 2, x + 14], [y, y], ls=dashes, lw=width, color=colours.compute)
        x = _key_text(sheet, x + 18, y, name, colours, measure)
    sheet.plot([x], [y], "o", ms=3.2, mfc=colours.ground, mec=colours.faint, mew=0.9)
    x = _key_text(sheet, x + 6, y, "ridge point", colours, measure)
    heading = "kernels by share of time"
    if legend.entries and data.kernels[0].share > 0 and x + measure(heading, _LEGEND)[0] < _WIDTH - 8:
        _text(sheet, _WIDTH - 8, y, heading, _LEGEND, colours.faint, va="center_baseline", ha="right")
    for index, text in enumerate(legend.entries):
        x, y = legend.lefts[index // legend.down], foot - 21 - 10.2 * (index % legend.down)
        sheet.plot([x], [y], marker=MARKERS[index % len(MARKERS)], ms=4.8, color=colours.faint, mew=0)
        _text(sheet, x + 6, y, text, _LEGEND, colours.text, va="center_baseline")


def _key_text(sheet: Axes, x: float, y: float, text: str, colours: Theme, measure: Measure) -> float:
    """Writes one key and returns where the next may begin."""
    _text(sheet, x, y, text, _LEGEND, colours.text, va="center_baseline")
    return x + measure(text, _LEGEND)[0] + 14


def _line_keys(data: Chart) -> list[tuple[str, Any, float]]:
    origins = {
        name for panel in data.panels for roof in panel.roofs for name in ("measured", "theoretical") if getattr(roof, name) > 0
    }
    if data.several_origins:
        return [("measured roof", "-", 1.3), ("theoretical roof", (0, (4, 2.5)), 0.8)]
    return [(f"{name} roof", "-", 1.3) for name in sorted(origins)]
