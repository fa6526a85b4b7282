"""A comparison as png, svg or pdf: rooflines with dots before and after, and the kernels that matter with times and shares.

Of two GPU models only the shares of the roofs are drawn.  Three reports or more: the last one against the baseline.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncu_roofline.analyses.compare import changes
from ncu_roofline.analyses.compare.changes import names_of, pairs
from ncu_roofline.analyses.compare.chart import MoveChart, move_chart
from ncu_roofline.analyses.compare.drawing import PANEL_FOOT, PANEL_HEAD, draw_list, draw_panel, list_height
from ncu_roofline.analyses.compare.frames import Comparison as ComparisonFrames
from ncu_roofline.analyses.hierarchical.captions import plural
from ncu_roofline.base.texts import clean
from ncu_roofline.rendering.layout import Measure
from ncu_roofline.rendering.lettering import measurer, put_text, wrapped
from ncu_roofline.rendering.paper import DEFAULT
from ncu_roofline.rendering.picture import header_height, put_header, saved, sheet_over
from ncu_roofline.rendering.style import THEMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 7.16 * 72  # points: both columns of a two-column paper
WIDE, NARROW = 700.0, 400.0  # points: from here on the list stands beside the rooflines; below one roofline is a row
_DPI = 160.0
_HEAD_LINES, _BELOW_HEAD = 3, 4.0
_EDGE = 6.0
_PANEL = 200.0  # height of the axes of a roofline
_LEFT = 40.0  # of the axes, for the numbers at them
_GAP = 18.0
_NOTE, _NOTE_ROW, _NOTE_LINES = 6.0, 8.6, 5


@dataclass(frozen=True)
class _Place:
    """A rectangle in points, counted from the left and the top."""

    left: float
    top: float
    width: float
    height: float


def figure(
    comparison: ComparisonFrames,
    *,
    title: str = "",
    theme: str = "light",
    top: int = changes.MOST,
    points: float = WIDTH,
    heading: bool = True,
) -> Figure:
    """The chart as a matplotlib figure of its own, ``points`` wide, outside pyplot; ``heading``: with title and subtitle.

    Raises ValueError for an unknown theme.
    """
    if theme not in THEMES:
        raise ValueError(f"theme {theme!r} is not one of {', '.join(THEMES)}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    colours = THEMES[theme]
    made = Figure(figsize=(points / 72, 3), dpi=_DPI, facecolor=colours.ground)
    FigureCanvasAgg(made)  # so that it can be drawn outside pyplot
    measure = measurer()
    pair = changes.main_pair(comparison)
    if pair is None:
        put_header(sheet_over(made, points, 216), title or "Comparison", "nothing was compared", colours, measure)
        return made
    one, kernels = pair
    data, names = move_chart(comparison, one, kernels, top), names_of(comparison)
    said, _, more = changes.headline(one, kernels).partition("; ")
    about = "; ".join(filter(None, (more, changes.about(one, names))))
    notes = wrapped(_notes(comparison, data, changes.legend(one)), _NOTE, points - 2 * _EDGE, _NOTE_LINES, measure)
    lines = wrapped([f"{said}: {about}" if title else about], DEFAULT.key, points - 2 * _EDGE, _HEAD_LINES, measure)
    head = header_height(max(len(lines), 1), DEFAULT) + _BELOW_HEAD
    panels, listed, foot = _places(data, points, measure, head if heading else 0.0)
    height = foot + _NOTE_ROW * len(notes) + 8
    made.set_size_inches(points / 72, height / 72)
    sheet = sheet_over(made, points, height)
    if heading:
        put_header(sheet, clean(title) or said, lines, colours, measure)
    for panel, place in zip(data.panels, panels, strict=True):
        draw_panel(_axes(made, place, points, height), panel, data, (place.width, place.height), colours, measure)
    states = names[one["baseline"]], names[one["report"]]
    draw_list(sheet, (listed.left, height - listed.top, listed.width), data, states, colours, measure)
    for index, line in enumerate(reversed(notes)):
        put_text(sheet, _EDGE, 4 + _NOTE_ROW * index, line, _NOTE, colours.faint, va="bottom")
    return made


def render_png(comparison: ComparisonFrames, *, title: str = "", theme: str = "light", top: int = changes.MOST) -> bytes:
    """The chart as a png, 160 dots per inch."""
    return saved(lambda: figure(comparison, title=title, theme=theme, top=top), "png")


def render_pdf(comparison: ComparisonFrames, *, title: str = "", theme: str = "light", top: int = changes.MOST) -> bytes:
    """The chart as a pdf with TrueType fonts."""
    return saved(lambda: figure(comparison, title=title, theme=theme, top=top), "pdf")


def render_svg(comparison: ComparisonFrames, *, title: str = "", theme: str = "light", top: int = changes.MOST) -> bytes:
    """The chart as an svg whose texts are text."""
    return as_svg(lambda: figure(comparison, title=title, theme=theme, top=top))


def as_svg(make: Callable[[], Figure]) -> bytes:
    """A figure as an svg whose texts are text."""

    def made() -> Figure:
        import matplotlib

        matplotlib.rcParams["svg.fonttype"] = "none"
        return make()

    return saved(made, "svg")


def _notes(comparison: ComparisonFrames, data: MoveChart, legend: str) -> list[str]:
    found = [f"{legend[:1].upper()}{legend[1:]}."]
    if data.panels:
        found.append(
            "Dots stand at the level that binds in the new report, else at device memory; roofs are those of the new report."
        )
    if data.rest:
        found.append(f"{plural(data.rest, 'row')} of less change or time left out.")
    if data.panels_left_out:
        found.append(f"{plural(data.panels_left_out, 'roofline')} left out for lack of room.")
    steps = len(list(pairs(comparison)))
    if steps > 1:
        found.append(f"One of {steps} pairs of reports; the page and the table have the others.")
    return found


def _places(data: MoveChart, points: float, measure: Measure, head: float) -> tuple[list[_Place], _Place, float]:
    """Where the axes of the rooflines, and the list of kernels, stand, and how far down they reach."""
    inner = points - 2 * _EDGE
    beside = points >= WIDE and data.panels
    area = (inner - _GAP) / 2 if beside else inner
    across = 1 if beside or points < NARROW or len(data.panels) == 1 else 2
    width = (area - (across - 1) * _GAP) / across
    panels = []
    for index in range(len(data.panels)):
        down, column = divmod(index, across)
        left = _EDGE + column * (width + _GAP) + _LEFT
        panels.append(_Place(left, head + PANEL_HEAD + down * (PANEL_HEAD + _PANEL + PANEL_FOOT), width - _LEFT, _PANEL))
    bottom = max((place.top + place.height + PANEL_FOOT for place in panels), default=head)
    tall = list_height(data, area if beside else inner, measure)
    if beside:
        listed = _Place(_EDGE + area + _GAP, head, area, tall)
        return panels, listed, max(bottom, head + tall) + 4
    listed = _Place(_EDGE, bottom + 4, inner, tall)
    return panels, listed, bottom + 4 + tall + 4


def _axes(made: Figure, place: _Place, points: float, height: float) -> Axes:
    parts = place.left / points, 1 - (place.top + place.height) / height, place.width / points, place.height / height
    return made.add_axes(parts, facecolor="none")
