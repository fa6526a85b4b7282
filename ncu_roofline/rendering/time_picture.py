"""The time view as png, svg or pdf: complexity plane, time plane, and a 4D chart per precision, for each GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncu_roofline.model.names import clean
from ncu_roofline.rendering import captions, time_captions
from ncu_roofline.rendering.drawing import explain
from ncu_roofline.rendering.lettering import DPI, fitted, measurer, put_text, wrapped
from ncu_roofline.rendering.panels import MAX_KERNELS
from ncu_roofline.rendering.picture import saved
from ncu_roofline.rendering.plan import Measure
from ncu_roofline.rendering.style import THEMES, Theme, precision_label
from ncu_roofline.rendering.time_chart import DeviceChart, TimeChart, TimeFrames, time_chart
from ncu_roofline.rendering.time_drawing import draw_plane
from ncu_roofline.rendering.time_labels import labels
from ncu_roofline.rendering.time_legend import draw_legend, height_of, legend_of
from ncu_roofline.rendering.time_planes import Plane, planes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH = 7.16 * 72  # points: both columns of a two-column paper
_PLANE = (42.0, 10.0, 15.0, 28.0, 176.0)  # left, right, top, bottom around the axes of a plane, and their height
_BOTH = (42.0, 40.0, 38.0, 28.0, 226.0)  # the same for a 4D chart, which has axes on all sides
_MOST = 4  # 4D charts of a GPU, half of that where there are several
_NARROW = 168.0  # height of 4D charts side by side
_HEAD = 33.0
_TITLE, _SUBTITLE, _NOTE = 10.0, 6.8, 6.0  # font sizes
_NOTE_LINES, _NOTE_STEP = 6, 8.6


@dataclass(frozen=True)
class _Slot:
    """Place of a chart: left and top edge of its axes and their size in points, counted from the left and the top."""

    plane: Plane
    left: float
    top: float


def render_png(frames: TimeFrames, *, title: str = "", theme: str = "light", top: int = MAX_KERNELS) -> bytes:
    """The charts of the time view as png at 160 dots per inch."""
    return _render(frames, "png", title, theme, top)


def render_svg(frames: TimeFrames, *, title: str = "", theme: str = "light", top: int = MAX_KERNELS) -> bytes:
    """The charts of the time view as svg; texts are outlines."""
    return _render(frames, "svg", title, theme, top)


def render_pdf(frames: TimeFrames, *, title: str = "", theme: str = "light", top: int = MAX_KERNELS) -> bytes:
    """The charts of the time view as pdf with TrueType fonts."""
    return _render(frames, "pdf", title, theme, top)


def _render(frames: TimeFrames, suffix: str, title: str, theme: str, top: int) -> bytes:
    return saved(lambda: time_figure(frames, title=title, theme=theme, top=top), suffix)


def time_figure(frames: TimeFrames, *, title: str = "", theme: str = "light", top: int = MAX_KERNELS) -> Figure:
    """The charts as a matplotlib figure of its own, outside pyplot.  Raises ValueError for an unknown theme."""
    if theme not in THEMES:
        raise ValueError(f"theme {theme!r} is not one of {', '.join(THEMES)}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    colours, data = THEMES[theme], time_chart(frames, top)
    made = Figure(figsize=(_WIDTH / 72, 5), dpi=DPI, facecolor=colours.ground)
    measure = measurer(FigureCanvasAgg(made))
    slots, down = _slots(data)
    beyond = [entry for slot in slots for entry in slot.plane.beyond]
    told = filter(None, [*time_captions.footnotes(frames, data, beyond), _left_out(data)])
    notes = wrapped(list(told), _NOTE, _WIDTH - 12, _NOTE_LINES, measure)
    legend = legend_of(data, any(slot.plane.boxes for slot in slots), measure, _WIDTH)
    foot = height_of(legend) + _NOTE_STEP * len(notes) + 6
    height = down + foot
    made.set_size_inches(_WIDTH / 72, height / 72)
    sheet = _sheet(made, height)
    _header(sheet, height, title or _default_title(data), captions.subtitle(frames), colours, measure)
    for slot in slots:
        view = slot.plane.view
        place = (slot.left / _WIDTH, 1 - (slot.top + view.height) / height, view.width / _WIDTH, view.height / height)
        axes = made.add_axes(place, facecolor=colours.ground)
        draw_plane(axes, slot.plane, labels(slot.plane, data, measure), data, colours)
    if not slots:
        explain(_empty(made, height), time_captions.explanation(frames), colours)
    draw_legend(sheet, foot, legend, data, colours, measure)
    for index, line in enumerate(notes):
        put_text(sheet, 6, 4 + _NOTE_STEP * (len(notes) - 1 - index), line, _NOTE, colours.faint, va="bottom")
    return made


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
                slots.append(_Slot(plane, left + column * _WIDTH / (1 if wide else 2), down + above))
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
    planes = (_WIDTH / 2 - left - right, height)
    left, right, _, _, height = _BOTH
    return planes, (_WIDTH - left - right, height) if alone else (_WIDTH / 2 - left - right, _NARROW)


def _titled(planes: list[Plane], device: DeviceChart, data: TimeChart) -> list[Plane]:
    if len(data.devices) > 1:
        planes[0].title += f", {device.device}"
    return planes


def _empty(made: Figure, height: float) -> Axes:
    axes = made.add_axes((0.1, 1 - (_HEAD + _PLANE[4]) / height, 0.8, _PLANE[4] / height), facecolor="none")
    axes.set_axis_off()
    return axes


def _sheet(made: Figure, height: float) -> Axes:
    """Invisible axes over the whole figure, in points."""
    sheet = made.add_axes((0, 0, 1, 1), facecolor="none", zorder=-1)
    sheet.set_axis_off()
    sheet.set_xlim(0, _WIDTH)
    sheet.set_ylim(0, height)
    return sheet


def _header(sheet: Axes, height: float, title: str, subtitle: str, colours: Theme, measure: Measure) -> None:
    title = fitted(clean(title), _TITLE * 1.25, _WIDTH - 12, measure)  # bold is wider than what is measured
    put_text(sheet, 6, height - 7, title, _TITLE, colours.text, va="top", weight="bold")
    put_text(sheet, 6, height - 22, fitted(subtitle, _SUBTITLE, _WIDTH - 12, measure), _SUBTITLE, colours.faint, va="top")
