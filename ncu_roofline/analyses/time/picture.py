"""The time view as png, svg or pdf: complexity plane, time plane, and a 4D chart per precision, for each GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ncu_roofline.analyses.hierarchical.chart import MAX_KERNELS
from ncu_roofline.analyses.hierarchical.drawing import explain
from ncu_roofline.analyses.hierarchical.picture import header
from ncu_roofline.analyses.hierarchical.plan import Label
from ncu_roofline.analyses.hierarchical.style import bounds, precision_label
from ncu_roofline.analyses.hierarchical.usage import percent
from ncu_roofline.analyses.time import captions as time_captions
from ncu_roofline.analyses.time.chart import DeviceChart, TimeChart, TimeFrames, time_chart
from ncu_roofline.analyses.time.planes import Curve, Plane, labels, planes_of
from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.base.units import UNITS, format_value
from ncu_roofline.rendering.layout import Measure
from ncu_roofline.rendering.lettering import drawable, first_fitting, fitted, halo, measurer, put_text, wrapped
from ncu_roofline.rendering.paper import Paper, PaperError, paper_of
from ncu_roofline.rendering.picture import header_height, pictures, put_header, sheet_over
from ncu_roofline.rendering.style import MARKERS, THEMES, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_COLUMNS = 4
FILLED, OPEN = 4.6, 6.6  # marker sizes: at the roofline the open symbol is a ring around the filled one
_NARROW_CHART = 60.0  # less than this from end to end leaves but one power of ten, or none
# On the default paper, points left, right, above and below the axes: of a plane, and of a 4D chart with axes on all sides.
_PLANE = (42.0, 10.0, 17.0, 28.0)
_BOTH = (42.0, 40.0, 40.0, 28.0)
_SHAPE, _WIDE = 0.83, 0.52  # height over width of axes side by side, and of axes as wide as the paper
_LEAST = 9.0  # fonts: lower axes show nothing
_SIDE_BY_SIDE = 26.0  # fonts that a chart needs
_MOST = 4  # 4D charts of a GPU, half of that where there are several
_NOTE_LINES = 6


@dataclass(frozen=True)
class TimeLegend:
    """Entries of the kernels, filled column by column from ``lefts`` (points), and whether some chart shows overhead."""

    entries: tuple[str, ...]
    down: int
    lefts: tuple[float, ...]
    overhead: bool


def legend_of(data: TimeChart, overhead: bool, measure: Measure, paper: Paper) -> TimeLegend:
    """The kernels in as many columns as fit, the longest first."""
    numbered = len(data.kernels) > len(MARKERS)
    texts = tuple(
        f"{f'{index + 1} ' if numbered else ''}{shorten(kernel.label, 40)}"
        f"{f'  {percent(kernel.share)}' if kernel.share > 0 else ''}"
        for index, kernel in enumerate(data.kernels)
    )
    lefts: list[float] = []
    down = 0
    for columns in range(min(_MOST_COLUMNS, len(texts)), 0, -1):
        down = -(-len(texts) // columns)
        parts = [texts[i : i + down] for i in range(0, len(texts), down)]
        widths = [max(measure(text, paper.key)[0] for text in part) + 30 * paper.scale for part in parts]
        lefts = [10 + sum(widths[:i]) for i in range(len(widths))]
        if sum(widths) <= paper.width - 12:
            break
    return TimeLegend(texts, down, tuple(lefts), overhead)


@dataclass(frozen=True)
class _Entry:
    """One entry of the key: its symbol as matplotlib takes it, and its text."""

    text: str
    look: dict[str, Any]


def _entries(data: TimeChart, overhead: bool, colours: Theme, paper: Paper) -> list[_Entry]:
    scale, present = paper.scale, {symbol.bound for symbol in data.symbols}
    found = [
        _Entry(style.label, {"marker": "o", "ms": FILLED * scale, "color": bound_colour(bound, colours), "mew": 0})
        for bound, style in bounds().items()
        if bound in present
    ]
    found.append(_Entry("machine balance", {"lw": 1.2 * scale, "color": colours.compute}))
    if overhead:
        look = {"ls": (0, (4, 2.5)), "lw": 0.8 * scale, "color": bound_colour("overhead", colours)}
        found.append(_Entry("launch overhead", look))
    if any(symbol.step >= 0 for symbol in data.symbols):
        found.append(_Entry("steps of a sweep", {"lw": 0.8 * scale, "color": colours.connector}))
    filled = {"marker": "o", "ms": FILLED * scale, "color": colours.faint, "mew": 0}
    opened = {"marker": "o", "ms": (OPEN - 1) * scale, "mfc": "none", "mec": colours.faint, "mew": 0.9 * scale}
    found.append(_Entry(f"{data.level_label} traffic and operations", filled))
    found.append(_Entry("bandwidth and compute time (upper and right axes)", opened))
    dotted = {"ls": (0, (1, 1.5)), "lw": 0.9 * scale, "color": colours.connector}
    return [*found, _Entry("inefficiency: run time / time at the roofline", dotted)]


@dataclass(frozen=True)
class _Keys:
    """The entries with the line and the left edge (points) of each, and how many lines there are."""

    placed: tuple[tuple[_Entry, int, float], ...]
    lines: int


def _keys(entries: Sequence[_Entry], measure: Measure, paper: Paper) -> _Keys:
    """The entries one behind the other; one that even alone is too long is left out."""
    placed, line, x = [], 0, 10.0
    for entry in entries:
        needed = 24 * paper.scale + measure(entry.text, paper.key)[0]
        if x + needed > paper.width - 6 and x > 10:
            line, x = line + 1, 10.0
        if x + needed <= paper.width - 6:
            placed.append((entry, line, x))
            x += needed + 8 * paper.scale
    return _Keys(tuple(placed), line + 1)


def height_of(legend: TimeLegend, keys: _Keys, paper: Paper) -> float:
    """Points that the key takes: its lines, then the kernels."""
    return paper.row * (keys.lines + legend.down) + 12 * paper.scale if legend.entries else 0.0


def draw_legend(sheet: Axes, foot: float, legend: TimeLegend, keys: _Keys, colours: Theme, paper: Paper) -> None:
    """Draws the key into axes in points, downwards from ``foot``."""
    if not legend.entries:
        return
    top, scale = foot - 6 * paper.scale, paper.scale
    for entry, line, x in keys.placed:
        y = top - line * paper.row
        if "marker" in entry.look:
            sheet.plot([x + 8 * scale], [y], ls="none", **entry.look)
        else:
            sheet.plot([x, x + 16 * scale], [y, y], **entry.look)
        put_text(sheet, x + 20 * scale, y, entry.text, paper.key, colours.text, va="center_baseline")
    for index, text in enumerate(legend.entries):
        x, y = legend.lefts[index // legend.down], top - paper.row * (keys.lines + index % legend.down) - 3 * scale
        sheet.plot([x + 8 * scale], [y], marker=MARKERS[index % len(MARKERS)], ms=4.8 * scale, color=colours.faint, mew=0)
        put_text(sheet, x + 20 * scale, y, text, paper.key, colours.text, va="center_baseline")


def bound_colour(bound: str, colours: Theme) -> str:
    """Colour of what binds a kernel, on the theme's ground."""
    return colours.of(bounds()[bound])


def draw_plane(
    axes: Axes, plane: Plane, texts: Sequence[Label], data: TimeChart, colours: Theme, measure: Measure, paper: Paper
) -> None:
    """Axes, lines, overhead boxes, symbols and labels of one chart."""
    _axes(axes, plane, data, colours, measure, paper)
    for (x, y), _ in plane.boxes:
        _box(axes, plane, x, y, colours)
    for curve in plane.curves:
        _curve(axes, curve, colours)
    marker = {kernel.label: MARKERS[index % len(MARKERS)] for index, kernel in enumerate(data.kernels)}
    for mark in plane.marks:
        colour = bound_colour(mark.symbol.bound, colours)
        paint: dict[str, Any] = {"mfc": colour, "mec": colours.ground, "mew": 0.4, "ms": FILLED * paper.scale, "zorder": 7}
        if not mark.filled:
            paint = {"mfc": colours.ground, "mec": colour, "mew": 0.9 * paper.scale, "ms": OPEN * paper.scale, "zorder": 6}
        gid = "symbol-filled" if mark.filled else "symbol-open"
        axes.plot([mark.place[0]], [mark.place[1]], ls="none", marker=marker[mark.symbol.kernel], gid=gid, **paint)
    for label in texts:
        _label(axes, label, plane, colours)


def _axes(axes: Axes, plane: Plane, data: TimeChart, colours: Theme, measure: Measure, paper: Paper) -> None:
    view = plane.view
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(view.x0, view.x1)
    axes.set_ylim(view.y0, view.y1)
    work = plane.device.units
    traffic = f"{data.level_label} traffic [B]"
    across = (f"Bandwidth complexity: {traffic}", traffic)
    upwards = (f"Computational complexity [{work}]", f"Complexity [{work}]", f"[{work}]")
    if plane.kind == "time":
        across, upwards = (f"Bandwidth time ({data.level_label})", "Bandwidth time"), ("Compute time", "Compute", "")
    _side(
        axes.xaxis,
        plane.units[0],
        (view.width, view.x1 / view.x0),
        first_fitting(across, paper.axis, view.width, measure),
        colours,
        paper,
    )
    _side(
        axes.yaxis,
        plane.units[1],
        (view.height, view.y1 / view.y0),
        first_fitting(upwards, paper.axis, view.height, measure),
        colours,
        paper,
    )
    frame: tuple[str, ...] = ("left", "bottom")
    if plane.second is not None:
        frame = ("left", "bottom", "top", "right")
        _second_axes(axes, plane, data, colours, paper)
    for side, spine in axes.spines.items():
        spine.set_visible(side in frame)
        spine.set_color(colours.faint)
        spine.set_linewidth(0.6)
    axes.set_axisbelow(True)
    size = paper.size(7.6)
    title = fitted(plane.title, size * 1.2, plane.view.width, measure)  # bold is wider than what is measured
    axes.set_title(drawable(title), fontsize=size, color=colours.text, loc="left", pad=3, weight="bold")


def _side(axis: Any, unit: str, extent: tuple[float, float], name: str, colours: Theme, paper: Paper) -> None:
    """Ticks and name of one side of an extent (points, highest over lowest value).

    Bytes and operations carry the prefix at the tick and the unit in the name; in a narrow range 2 and 5 have ticks, too.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    symbol = "" if unit == "second" else UNITS[unit].symbol
    length, span = extent
    room = length / (3 * math.log10(span)) > 5.2 * paper.key
    subs = (1.0, 2.0, 5.0) if span < _NARROW_CHART and room else (1.0,)
    axis.set_major_locator(LogLocator(base=10, subs=subs, numticks=max(int(length / (5.2 * paper.key)), 3)))
    axis.set_minor_locator(LogLocator(base=10, subs=range(2, 10), numticks=30))
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_value(value, unit, 3).removesuffix(symbol).strip()))
    axis.set_minor_formatter(NullFormatter())
    axis.set_tick_params(which="both", direction="out", labelsize=paper.key, colors=colours.text, width=0.6, length=3, pad=2)
    axis.set_tick_params(which="minor", length=1.6, width=0.4)
    axis.set_label_text(drawable(name), fontsize=paper.axis, color=colours.text)
    axis.labelpad = 2


def _second_axes(axes: Axes, plane: Plane, data: TimeChart, colours: Theme, paper: Paper) -> None:
    """Upper and right axes: the same places as seconds at the roofs."""
    assert plane.second is not None
    view, (per_byte, per_work) = plane.view, plane.second
    upper, right = axes.twiny(), axes.twinx()
    upper.set_xscale("log")
    upper.set_xlim(view.x0 * per_byte, view.x1 * per_byte)
    right.set_yscale("log")
    right.set_ylim(view.y0 * per_work, view.y1 * per_work)
    _side(upper.xaxis, "second", (view.width, view.x1 / view.x0), f"Bandwidth time ({data.level_label})", colours, paper)
    _side(right.yaxis, "second", (view.height, view.y1 / view.y0), "Compute time", colours, paper)
    for twin, idle in ((upper, upper.yaxis), (right, right.xaxis)):
        idle.set_visible(False)
        for spine in twin.spines.values():
            spine.set_visible(False)


def _box(axes: Axes, plane: Plane, x: float, y: float, colours: Theme) -> None:
    """What the launch overhead covers: everything below and left of its corner."""
    from matplotlib.patches import Rectangle

    view, colour = plane.view, bound_colour("overhead", colours)
    corner = (view.x0, view.y0)
    axes.add_patch(Rectangle(corner, x - view.x0, y - view.y0, facecolor=colour, alpha=0.1, lw=0, zorder=1, gid="overhead"))
    axes.plot([view.x0, x, x], [y, y, view.y0], ls=(0, (4, 2.5)), lw=0.8, color=colour, zorder=2)


def _curve(axes: Axes, curve: Curve, colours: Theme) -> None:
    from matplotlib.patches import FancyArrowPatch

    look: dict[str, tuple[str, float, Any, float]] = {
        "iso": (colours.grid, 0.7, "-", 1.5),
        "balance": (colours.compute, 1.2, "-", 3),
        "gap": (colours.connector, 0.7, (0, (1, 1.5)), 4),
        "sweep": (colours.connector, 0.8, "-", 4),
        "sweep-time": (colours.connector, 0.8, (0, (4, 2)), 4),
    }
    colour, width, dashes, order = look[curve.role]
    xs, ys = zip(*curve.places, strict=True)
    axes.plot(xs, ys, ls=dashes, lw=width, color=colour, zorder=order, dash_capstyle="butt", gid=f"line-{curve.role}")
    if curve.role == "sweep":
        for start, end in zip(curve.places, curve.places[1:], strict=False):
            arrow = FancyArrowPatch(
                start, end, arrowstyle="-|>", mutation_scale=5, lw=0, color=colour, shrinkB=2.6, zorder=order
            )
            axes.add_patch(arrow)


def _label(axes: Axes, label: Label, plane: Plane, colours: Theme) -> None:
    view, box = plane.view, label.box
    by_role = {
        "balance": colours.compute,
        "overhead": bound_colour("overhead", colours),
        "iso": colours.faint,
        "factor": colours.faint,
    }
    side = label.role.removeprefix("region-")
    colour = bound_colour(side, colours) if side != label.role else by_role.get(label.role, colours.text)
    put_text(
        axes, box.x / view.width, box.y / view.height, label.text, label.size, colour,
        transform=axes.transAxes, ha="center", va="center", rotation=box.angle, rotation_mode="anchor", zorder=8,
        bbox=halo(colours), gid=f"label-{label.role}",
        style="italic" if side != label.role else "normal",
    )  # fmt: skip


@dataclass(frozen=True)
class _Slot:
    """Place of a chart: left and top edge of its axes and their size in points, counted from the left and the top."""

    plane: Plane
    left: float
    top: float


def time_figure(
    frames: TimeFrames,
    *,
    title: str = "",
    theme: str = "light",
    top: int = MAX_KERNELS,
    width: str | float | None = None,
    height: str | float | None = None,
    font: float | None = None,
    dpi: float | None = None,
    preset: str | None = None,
) -> Figure:
    """The charts as a matplotlib figure of its own, outside pyplot.

    ``width`` and ``height`` are lengths ("3.3in", "84mm") or inches, ``font`` is in points; ``preset``: column, page or slide.
    Raises ValueError for an unknown theme or preset, and PaperError, which is one, for a paper that nothing can be drawn on.
    """
    if theme not in THEMES:
        raise ValueError(f"theme {theme!r} is not one of {', '.join(THEMES)}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    colours, data, paper = THEMES[theme], time_chart(frames, top), paper_of(width, height, font, dpi, preset)
    made = Figure(figsize=(paper.width / 72, 5), dpi=paper.dpi, facecolor=colours.ground)
    FigureCanvasAgg(made)  # so that it can be drawn outside pyplot
    measure = measurer()
    page = _page(frames, data, colours, measure, paper)
    made.set_size_inches(paper.width / 72, page.height / 72)
    sheet = sheet_over(made, paper.width, page.height)
    put_header(sheet, clean(title or _default_title(data)), page.lines, colours, measure, paper)
    for slot in page.slots:
        view = slot.plane.view
        place = (slot.left, page.height - slot.top - view.height, view.width, view.height)
        axes = made.add_axes(_parts(place, page), facecolor=colours.ground)
        draw_plane(axes, slot.plane, labels(slot.plane, data, measure, paper), data, colours, measure, paper)
    if not page.slots:
        axes = made.add_axes((0.1, page.foot / page.height, 0.8, page.empty / page.height), facecolor="none")
        axes.set_axis_off()
        explain(axes, time_captions.explanation(frames), colours, measure, paper)
    draw_legend(sheet, page.foot, page.legend, page.keys, colours, paper)
    for index, line in enumerate(page.notes):
        y = paper.edge - 2 + paper.note_row * (len(page.notes) - 1 - index)
        put_text(sheet, paper.edge, y, line, paper.small, colours.faint, va="bottom", gid="note")
    return made


render_png, render_svg, render_pdf = pictures(time_figure)


def _default_title(data: TimeChart) -> str:
    where = f", {data.devices[0].device}" if len(data.devices) == 1 and data.devices[0].device else ""
    return f"Time-based roofline{where}"


@dataclass(frozen=True)
class _Page:
    """What is on the paper, lengths in points: lines of the header, charts, key and kernels, notes; ``foot`` below charts."""

    paper: Paper
    lines: tuple[str, ...]
    slots: tuple[_Slot, ...]
    keys: _Keys
    legend: TimeLegend
    notes: tuple[str, ...]
    foot: float
    height: float

    @property
    def empty(self) -> float:
        """What is left to say why there are no charts."""
        return self.height - self.foot - header_height(len(self.lines), self.paper)


def _page(frames: TimeFrames, data: TimeChart, colours: Theme, measure: Measure, paper: Paper) -> _Page:
    """The page; of a height that is asked for first notes, then 4D charts, then GPUs give way.

    Raises PaperError where even so nothing would be seen.
    """
    most = _most(data)
    while True:
        for lines in (_NOTE_LINES,) if not paper.height else (2, 0):
            page = _filled(frames, data, most, lines, colours, measure, paper)
            if page:
                return page
        if most:
            most -= 1
        elif len(data.devices) > 1:
            data = replace(data, devices=data.devices[:-1])
        else:
            raise PaperError(f"height {paper.height / 72:.3g}in has no room for the picture; leave it out, or ask for more")


def _filled(
    frames: TimeFrames, data: TimeChart, most: int, lines: int, colours: Theme, measure: Measure, paper: Paper
) -> _Page | None:
    """A page with so many 4D charts per GPU and lines of notes at most; None where its height leaves too little to the axes."""
    heading = header(frames, measure, paper) if lines else ()
    head, factor = header_height(len(heading), paper), 1.0
    while True:
        slots, down, axes = _slots(data, most, head, factor, paper)
        beyond = [entry for slot in slots for entry in slot.plane.beyond]
        told = [*time_captions.footnotes(frames, data, beyond), _left_out(data, most)]
        notes = wrapped(told if lines else [], paper.small, paper.width - 2 * paper.edge, lines, measure)
        overhead = any(slot.plane.boxes for slot in slots)
        legend = legend_of(data, overhead, measure, paper)
        keys = _keys(_entries(data, overhead, colours, paper) if legend.entries else [], measure, paper)
        foot = height_of(legend, keys, paper) + paper.note_row * len(notes) + paper.edge
        height = down + foot
        if not paper.height or abs(height - paper.height) < 0.01:
            return _Page(paper, heading, tuple(slots), keys, legend, tuple(notes), foot, height)
        if factor != 1.0 or not axes:  # all but the axes took other room than before: nothing is lost but some of the paper
            fits = height < paper.height + 0.01
            return _Page(paper, heading, tuple(slots), keys, legend, tuple(notes), foot, paper.height) if fits else None
        factor = 1 + (paper.height - height) / axes
        if factor * min(slot.plane.view.height for slot in slots) < _LEAST * paper.font:
            return None


def _parts(place: tuple[float, float, float, float], page: _Page) -> tuple[float, float, float, float]:
    """Left, bottom, width and height in points as parts of the figure."""
    left, bottom, width, tall = place
    return left / page.paper.width, bottom / page.height, width / page.paper.width, tall / page.height


def _slots(data: TimeChart, most: int, head: float, factor: float, paper: Paper) -> tuple[list[_Slot], float, float]:
    """Where the charts of all GPUs go, how far down they reach, and how high the axes of all rows are together.

    Planes stand side by side where the paper is wide enough, then the 4D charts; ``factor`` makes all axes higher or lower.
    """
    slots: list[_Slot] = []
    down, axes = head, 0.0
    across = 2 if paper.width >= 2 * _SIDE_BY_SIDE * paper.font else 1
    for device in data.devices:
        shown = device.balanced[:most]
        planes = _titled(planes_of(device, shown, _sizes(len(shown) == 1 or across == 1, across, factor, paper)), device, data)
        both = planes[2:]
        rows = [planes[i : min(i + across, 2)] for i in range(0, min(len(planes), 2), across)]
        rows += [both[i : i + across] for i in range(0, len(both), across)]
        for row in rows:
            left, _, above, below = (paper.scale * points for points in (_BOTH if row[0].second else _PLANE))
            alone = len(both) == 1 and row[0].second is not None
            for column, plane in enumerate(row):
                slots.append(_Slot(plane, left + column * paper.width / (1 if alone else across), down + above))
            down += above + row[0].view.height + below
            axes += row[0].view.height
    return slots, down if slots else down + 20 * paper.font, axes


def _most(data: TimeChart) -> int:
    """4D charts of one GPU."""
    return _MOST if len(data.devices) == 1 else _MOST // 2


def _left_out(data: TimeChart, most: int) -> str:
    """A sentence on the precisions without a 4D chart."""
    names = [precision_label(one.precision) for device in data.devices for one in device.balanced[most:]]
    several = f"4D charts left out for lack of room: {', '.join(dict.fromkeys(names))}; choose with --precision."
    return several if names else ""


def _sizes(alone: bool, across: int, factor: float, paper: Paper) -> Sequence[tuple[float, float]]:
    """Axes of planes and of 4D charts: one that is ``alone`` has the whole width."""
    found = []
    for (left, right, _, _), wide in ((_PLANE, across == 1), (_BOTH, alone)):
        width = paper.width / (1 if wide else across) - (left + right) * paper.scale
        shape = _WIDE if wide and across > 1 else _SHAPE
        found.append((width, factor * max(shape * width, 18 * paper.font)))
    return found


def _titled(planes: list[Plane], device: DeviceChart, data: TimeChart) -> list[Plane]:
    if len(data.devices) > 1:
        planes[0].title += f", {device.device}"
    return planes
