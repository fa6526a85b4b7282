"""Draws one chart of the time view into matplotlib axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ncu_roofline.rendering.lettering import drawable, put_text
from ncu_roofline.rendering.plan import Label
from ncu_roofline.rendering.style import BOUNDS, MARKERS, Theme
from ncu_roofline.rendering.time_chart import TimeChart
from ncu_roofline.rendering.time_planes import Curve, Plane
from ncu_roofline.units import UNITS, format_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FILLED, OPEN = 4.6, 6.6  # marker sizes: at the roofline the open symbol is a ring around the filled one
_TICK, _NAME, _TITLE = 6.4, 7.0, 7.6
_DOWN = 3.4  # digits of ticks are this many points wide
_NARROW = 60.0  # less than this from end to end leaves but one power of ten, or none


def bound_colour(bound: str, colours: Theme) -> str:
    """Colour of what binds a kernel, on the theme's ground."""
    style = BOUNDS[bound]
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
    axes.set_title(drawable(plane.title), fontsize=_TITLE, color=colours.text, loc="left", pad=3, weight="bold")


def _side(axis: Any, unit: str, extent: tuple[float, float], name: str, colours: Theme) -> None:
    """Ticks and name of one side of an extent (points, highest over lowest value).

    Bytes and operations carry the prefix at the tick and the unit in the name; in a narrow range 2 and 5 have ticks, too.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    symbol = "" if unit == "second" else UNITS[unit].symbol
    length, span = extent
    subs = (1.0, 2.0, 5.0) if span < _NARROW else (1.0,)
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
