"""The time view as png, svg or pdf: complexity plane, time plane, and a 4D chart per precision, for each GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.chart import MAX_KERNELS
from ncu_roofline.analyses.hierarchical.drawing import explain
from ncu_roofline.analyses.hierarchical.plan import Label
from ncu_roofline.analyses.hierarchical.style import bounds, precision_label
from ncu_roofline.analyses.hierarchical.usage import percent
from ncu_roofline.analyses.time import captions as time_captions
from ncu_roofline.analyses.time.chart import DeviceChart, TimeChart, TimeFrames, time_chart
from ncu_roofline.analyses.time.planes import Curve, Plane, labels, planes_of
from ncu_roofline.rendering.layout import Measure
from ncu_roofline.rendering.lettering import DPI, KEY_SIZE, drawable, measurer, put_key, put_text, wrapped
from ncu_roofline.rendering.picture import PAGE_WIDTH, pictures, put_header, sheet_over
from ncu_roofline.rendering.style import MARKERS, THEMES, Theme
from ncu_roofline.texts import clean
from ncu_roofline.units import UNITS, format_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW = 10.2  # points from one row to the next
_MOST_COLUMNS = 4
FILLED, OPEN = 4.6, 6.6  # marker sizes: at the roofline the open symbol is a ring around the filled one
_TICK, _NAME, _CHART_TITLE = 6.4, 7.0, 7.6
_DOWN = 3.4  # digits of ticks are this many points wide
_NARROW_CHART = 60.0  # less than this from end to end leaves but one power of ten, or none
_PLANE = (42.0, 10.0, 15.0, 28.0, 176.0)  # left, right, top, bottom around the axes of a plane, and their height
_BOTH = (42.0, 40.0, 38.0, 28.0, 226.0)  # the same for a 4D chart, which has axes on all sides
_MOST = 4  # 4D charts of a GPU, half of that where there are several
_NARROW = 168.0  # height of 4D charts side by side
_HEAD = 33.0
_NOTE = 6.0  # font size
_NOTE_LINES, _NOTE_STEP = 6, 8.6


@dataclass(frozen=True)
class TimeLegend:
    """Entries of the kernels, filled column by column from ``lefts`` (points), and whether some chart shows overhead."""

    entries: tuple[str, ...]
    down: int
    lefts: tuple[float, ...]
    overhead: bool


def legend_of(data: TimeChart, overhead: bool, measure: Measure, width: float) -> TimeLegend:
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
        widths = [max(measure(text, KEY_SIZE)[0] for text in texts[i : i + down]) + 24 for i in range(0, len(texts), down)]
        lefts = [10 + sum(widths[:i]) for i in range(len(widths))]
        if sum(widths) <= width - 12:
            break
    return TimeLegend(texts, down, tuple(lefts), overhead)


def height_of(legend: TimeLegend) -> float:
    """Points that the key takes: two rows of keys, then the kernels."""
    return (8 + 2 * _ROW + 4 + _ROW * legend.down + 4) if legend.entries else 0.0


def draw_legend(sheet: Axes, foot: float, legend: TimeLegend, data: TimeChart, colours: Theme, measure: Measure) -> None:
    """Draws the key into axes in points, downwards from ``foot``."""
    if not legend.entries:
        return
    y = foot - 6
    _keys(sheet, y, data, legend.overhead, colours, measure)
    for index, text in enumerate(legend.entries):
        x, y = legend.lefts[index // legend.down], foot - 6 - 2 * _ROW - 3 - _ROW * (index % legend.down)
        sheet.plot([x], [y], marker=MARKERS[index % len(MARKERS)], ms=4.8, color=colours.faint, mew=0)
        put_text(sheet, x + 6, y, text, KEY_SIZE, colours.text, va="center_baseline")


def _keys(sheet: Axes, y: float, data: TimeChart, overhead: bool, colours: Theme, measure: Measure) -> None:
    x = 10.0
    present = {symbol.bound for symbol in data.symbols}
    for bound, style in bounds().items():
        if bound in present:
            sheet.plot([x], [y], "o", ms=FILLED, color=bound_colour(bound, colours), mew=0)
            x = put_key(sheet, x + 6, y, style.label, colours, measure)
    lines: list[tuple[str, Any, float, str]] = [("machine balance", "-", 1.2, colours.compute)]
    if overhead:
        lines.append(("launch overhead", (0, (4, 2.5)), 0.8, bound_colour("overhead", colours)))
    if any(symbol.step >= 0 for symbol in data.symbols):
        lines.append(("steps of a sweep", "-", 0.8, colours.connector))
    for name, dashes, width, colour in lines:
        sheet.plot([x - 2, x + 14], [y, y], ls=dashes, lw=width, color=colour)
        x = put_key(sheet, x + 18, y, name, colours, measure)
    heading = "kernels by share of time"
    if x + measure(heading, KEY_SIZE)[0] < sheet.get_xlim()[1] - 8:
        put_text(sheet, sheet.get_xlim()[1] - 8, y, heading, KEY_SIZE, colours.faint, va="center_baseline", ha="right")
    _symbol_keys(sheet, y - _ROW, data, colours, measure)


def _symbol_keys(sheet: Axes, y: float, data: TimeChart, colours: Theme, measure: Measure) -> None:
    """Filled and open symbols, and what the line between them says."""
    sheet.plot([10], [y], "o", ms=FILLED, color=colours.faint, mew=0)
    x = put_key(sheet, 16, y, f"{data.level_label} traffic and operations", colours, measure)
    sheet.plot([x], [y], "o", ms=OPEN - 1, mfc="none", mec=colours.faint, mew=0.9)
    x = put_key(sheet, x + 7, y, "bandwidth and compute time (upper and right axes)", colours, measure)
    sheet.plot([x - 2, x + 14], [y, y], ls=(0, (1, 1.5)), lw=0.9, color=colours.connector)
    put_key(sheet, x + 18, y, "inefficiency: run time / time at the roofline", colours, measure)


def bound_colour(bound: str, colours: Theme) -> str:
    """Colour of what binds a kernel, on the theme's ground."""
    style = bounds()[bound]
    return style.dark if colours.dark else style.light


def draw_plane(axes: Axes, plane: Plane, texts: Sequence[Label], data: TimeChart, colours: Theme) -> None:
    """Axes, lines, overhead boxes, symbols and labels of one chart."""
    _axes(axes, plane, data, colours)
    for (x, y), _ in plane.boxes:
        _box(axes, plane, x, y, colours)
    for curve in plane.curves:
        _curve(axes, curve, colours)
    marker = {kernel.label: MARKERS[index % len(MARKERS)] for index, kernel in enumerate(data.kernels)}
    for mark in plane.marks:
        colour = bound_colour(mark.symbol.bound, colours)
        paint: dict[str, Any] = {"mfc": colour, "mec": colours.ground, "mew": 0.4, "ms": FILLED, "zorder": 7}
        if not mark.filled:
            paint = {"mfc": colours.ground, "mec": colour, "mew": 0.9, "ms": OPEN, "zorder": 6}
        gid = "symbol-filled" if mark.filled else "symbol-open"
        axes.plot([mark.place[0]], [mark.place[1]], ls="none", marker=marker[mark.symbol.kernel], gid=gid, **paint)
    for label in texts:
        _label(axes, label, plane, colours)


def _axes(axes: Axes, plane: Plane, data: TimeChart, colours: Theme) -> None:
    view = plane.view
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(view.x0, view.x1)
    axes.set_ylim(view.y0, view.y1)
    work = plane.device.units
    across, upwards = f"Bandwidth complexity: {data.level_label} traffic [B]", f"Computational complexity [{work}]"
    if plane.kind == "time":
        across, upwards = f"Bandwidth time ({data.level_label})", "Compute time"
    _side(axes.xaxis, plane.units[0], (view.width, view.x1 / view.x0), across, colours)
    _side(axes.yaxis, plane.units[1], (view.height, view.y1 / view.y0), upwards, colours)
    frame: tuple[str, ...] = ("left", "bottom")
    if plane.second is not None:
        frame = ("left", "bottom", "top", "right")
        _second_axes(axes, plane, data, colours)
    for side, spine in axes.spines.items():
        spine.set_visible(side in frame)
        spine.set_color(colours.faint)
        spine.set_linewidth(0.6)
    axes.set_axisbelow(True)
    axes.set_title(drawable(plane.title), fontsize=_CHART_TITLE, color=colours.text, loc="left", pad=3, weight="bold")


def _side(axis: Any, unit: str, extent: tuple[float, float], name: str, colours: Theme) -> None:
    """Ticks and name of one side of an extent (points, highest over lowest value).

    Bytes and operations carry the prefix at the tick and the unit in the name; in a narrow range 2 and 5 have ticks, too.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    symbol = "" if unit == "second" else UNITS[unit].symbol
    length, span = extent
    subs = (1.0, 2.0, 5.0) if span < _NARROW_CHART else (1.0,)
    axis.set_major_locator(LogLocator(base=10, subs=subs, numticks=max(int(length / (10 * _DOWN)), 3)))
    axis.set_minor_locator(LogLocator(base=10, subs=range(2, 10), numticks=30))
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_value(value, unit, 3).removesuffix(symbol).strip()))
    axis.set_minor_formatter(NullFormatter())
    axis.set_tick_params(which="both", direction="out", labelsize=_TICK, colors=colours.text, width=0.6, length=3, pad=2)
    axis.set_tick_params(which="minor", length=1.6, width=0.4)
    axis.set_label_text(drawable(name), fontsize=_NAME, color=colours.text)
    axis.labelpad = 2


def _second_axes(axes: Axes, plane: Plane, data: TimeChart, colours: Theme) -> None:
    """Upper and right axes: the same places as seconds at the roofs."""
    assert plane.second is not None
    view, (per_byte, per_work) = plane.view, plane.second
    upper, right = axes.twiny(), axes.twinx()
    upper.set_xscale("log")
    upper.set_xlim(view.x0 * per_byte, view.x1 * per_byte)
    right.set_yscale("log")
    right.set_ylim(view.y0 * per_work, view.y1 * per_work)
    _side(upper.xaxis, "second", (view.width, view.x1 / view.x0), f"Bandwidth time ({data.level_label})", colours)
    _side(right.yaxis, "second", (view.height, view.y1 / view.y0), "Compute time", colours)
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
    from matplotlib.patheffects import withStroke

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
        path_effects=[withStroke(linewidth=2.0, foreground=colours.ground)], gid=f"label-{label.role}",
        style="italic" if side != label.role else "normal",
    )  # fmt: skip


@dataclass(frozen=True)
class _Slot:
    """Place of a chart: left and top edge of its axes and their size in points, counted from the left and the top."""

    plane: Plane
    left: float
    top: float


def time_figure(frames: TimeFrames, *, title: str = "", theme: str = "light", top: int = MAX_KERNELS) -> Figure:
    """The charts as a matplotlib figure of its own, outside pyplot.  Raises ValueError for an unknown theme."""
    if theme not in THEMES:
        raise ValueError(f"theme {theme!r} is not one of {', '.join(THEMES)}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    colours, data = THEMES[theme], time_chart(frames, top)
    made = Figure(figsize=(PAGE_WIDTH / 72, 5), dpi=DPI, facecolor=colours.ground)
    measure = measurer(FigureCanvasAgg(made))
    slots, down = _slots(data)
    beyond = [entry for slot in slots for entry in slot.plane.beyond]
    told = filter(None, [*time_captions.footnotes(frames, data, beyond), _left_out(data)])
    notes = wrapped(list(told), _NOTE, PAGE_WIDTH - 12, _NOTE_LINES, measure)
    legend = legend_of(data, any(slot.plane.boxes for slot in slots), measure, PAGE_WIDTH)
    foot = height_of(legend) + _NOTE_STEP * len(notes) + 6
    height = down + foot
    made.set_size_inches(PAGE_WIDTH / 72, height / 72)
    sheet = sheet_over(made, PAGE_WIDTH, height)
    put_header(sheet, clean(title or _default_title(data)), captions.subtitle(frames), colours, measure)
    for slot in slots:
        view = slot.plane.view
        place = (slot.left / PAGE_WIDTH, 1 - (slot.top + view.height) / height, view.width / PAGE_WIDTH, view.height / height)
        axes = made.add_axes(place, facecolor=colours.ground)
        draw_plane(axes, slot.plane, labels(slot.plane, data, measure), data, colours)
    if not slots:
        explain(_empty(made, height), time_captions.explanation(frames), colours)
    draw_legend(sheet, foot, legend, data, colours, measure)
    for index, line in enumerate(notes):
        put_text(sheet, 6, 4 + _NOTE_STEP * (len(notes) - 1 - index), line, _NOTE, colours.faint, va="bottom")
    return made


render_png, render_svg, render_pdf = pictures(time_figure)


def _default_title(data: TimeChart) -> str:
    where = f", {data.devices[0].device}" if len(data.devices) == 1 and data.devices[0].device else ""
    return f"Time-based roofline{where}"


def _slots(data: TimeChart) -> tuple[list[_Slot], float]:
    """Where the charts of all GPUs go, and how far down they reach: planes side by side, then the 4D charts."""
    slots: list[_Slot] = []
    down = _HEAD
    for device in data.devices:
        shown = device.balanced[: _most(data)]
        planes = _titled(planes_of(device, shown, _sizes(len(shown) == 1)), device, data)
        for row in (planes[:2], *(planes[i : i + 2] for i in range(2, len(planes), 2))):
            left, _, above, below, _ = _BOTH if row[0].second else _PLANE
            wide = len(planes) == 3 and row[0].second is not None
            for column, plane in enumerate(row):
                slots.append(_Slot(plane, left + column * PAGE_WIDTH / (1 if wide else 2), down + above))
            down += above + row[0].view.height + below
    return slots, down if slots else down + _PLANE[4]


def _most(data: TimeChart) -> int:
    """4D charts of one GPU."""
    return _MOST if len(data.devices) == 1 else _MOST // 2


def _left_out(data: TimeChart) -> str:
    """A sentence on the precisions without a 4D chart."""
    names = [precision_label(one.precision) for device in data.devices for one in device.balanced[_most(data) :]]
    several = f"4D charts left out for lack of room: {', '.join(dict.fromkeys(names))}; choose with --precision."
    return several if names else ""


def _sizes(alone: bool) -> Sequence[tuple[float, float]]:
    """Axes of planes and of 4D charts: one that is ``alone`` has the whole width."""
    left, right, _, _, height = _PLANE
    planes = (PAGE_WIDTH / 2 - left - right, height)
    left, right, _, _, height = _BOTH
    return planes, (PAGE_WIDTH - left - right, height) if alone else (PAGE_WIDTH / 2 - left - right, _NARROW)


def _titled(planes: list[Plane], device: DeviceChart, data: TimeChart) -> list[Plane]:
    if len(data.devices) > 1:
        planes[0].title += f", {device.device}"
    return planes


def _empty(made: Figure, height: float) -> Axes:
    axes = made.add_axes((0.1, 1 - (_HEAD + _PLANE[4]) / height, 0.8, _PLANE[4] / height), facecolor="none")
    axes.set_axis_off()
    return axes
