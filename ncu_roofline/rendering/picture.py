"""A chart of marks as a figure of matplotlib, and as the bytes of a png, svg or pdf, the same every time."""

from __future__ import annotations

import inspect
import io
import math
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, wraps
from itertools import cycle, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import clean, plural
from ncu_roofline.base.units import UNITS, format_value
from ncu_roofline.rendering import chart as marks
from ncu_roofline.rendering.chart import ROLES, Axis, Block, Chart, Key, Listing, Panel, Place, Table, Timeline
from ncu_roofline.rendering.paper import DEFAULT, SMALLEST, PaperError, Pen, drawable, measurer, paper_of
from ncu_roofline.rendering.plan import Box, Label, Plan, View, spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STEPS = ((1.0,), (1.0, 2.0, 5.0), (1.0, 3.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0))  # labelled multiples of powers of ten
# On the default paper, points left, right, above and below the axes: of a panel, of one with axes on all sides, and of bands.
_PLAIN, _FRAMED, _BANDS = (44.0, 9.0, 15.0, 28.0), (42.0, 40.0, 40.0, 28.0), (58.0, 34.0, 19.0, 28.0)
_UNTITLED = 3.0  # above axes without a title
_WIDE, _SHAPE, _LOWEST, _HIGHEST = 0.6, 0.9, 18.0, 38.0  # height over width of axes, and their height in fonts
_LEAST = 9.0  # fonts: lower axes show nothing
_SIDE_BY_SIDE = 26.0  # fonts that a panel needs
_NOTE_LINES = 3  # where the height is given
_PASSES = 5
_ARROW_FROM = 14.0  # points between two places; nearer ones leave no room for an arrow head in the middle
_HEADS = 4.6  # points across an arrow head
_CSS = 96.0  # pixels per inch
_MOST_DOTS = 100.0  # million, of a png: four bytes each while it is drawn
_DOT = " \N{MIDDLE DOT} "  # between parts of a subtitle
_STRETCHED = (Panel, Timeline)  # blocks that can be higher or lower
_SYMBOL, _LINE, _APART = 12.0, 22.0, 12.0  # points of a symbol, of a piece of line, between entries, on the default paper
# A line above the rows of a list, the axis below them, a bar, between rows, a value at the end of a bar.
_HEAD, _FOOT, _BAR, _GAP, _BEYOND = 13.0, 24.0, 4.8, 6.0, 30.0
_BAND, _STRIP = 19.0, 5.0  # of bands over time, and of the colours of time below them
_CELL, _FAN, _BETWEEN = 1.45, 22.0, 9.0  # fonts from row to row of a table; points from lines to it, and between columns
_TALL = 45.0  # fonts: so high the lines are at least, which a table explains
_TIME_PREFIXES = {0: "s", -3: "ms", -6: "\N{MICRO SIGN}s", -9: "ns"}
_SETTINGS: dict[Any, Any] = {
    # Matplotlib brings the first; readers of an svg, whose texts are text, may have to do with the others.
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans", "Bitstream Vera Sans", "Verdana", "Helvetica", "Arial"],
    "text.usetex": False,
    "svg.hashsalt": "ncu-roofline",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "axes.unicode_minus": False,
    "text.hinting": "no_hinting",  # the same widths in png, svg and pdf, and where labels are measured
    "path.simplify": False,
}
_METADATA: Mapping[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None, "ModDate": None}, "png": {}}


def saved(make: Callable[[], Figure], suffix: str) -> bytes:
    """The figure that ``make`` draws as the bytes of a png, svg or pdf.  Raises PaperError before a png of too many dots."""
    with settings():
        made = make()
        dots = made.get_figwidth() * made.get_figheight() * made.dpi**2 / 1e6
        if suffix == "png" and dots > _MOST_DOTS:
            raise PaperError(f"dpi {made.dpi:g} makes {dots:.0f} million dots of it, more than {_MOST_DOTS:.0f}")
        buffer = io.BytesIO()
        made.savefig(buffer, format=suffix, dpi="figure", facecolor=made.get_facecolor(), metadata=_METADATA[suffix])
    return buffer.getvalue()


@contextmanager
def settings(*, saves: bool = True) -> Iterator[None]:
    """Matplotlib's own defaults with ours on top, whatever a user's matplotlibrc says; letters are set as that says but
    where the picture is saved here (``saves``).  Raises RooflineError where there is no place for its settings."""
    try:
        import matplotlib
    except OSError as error:
        reason = "it finds no folder that it may write to"
        next_step = "Set MPLCONFIGDIR or TMPDIR to a folder with space that you may write to."
        raise RooflineError("Cannot draw with", "matplotlib", reason, next_step) from error

    hinting = {} if saves else {"text.hinting": matplotlib.rcParams["text.hinting"]}
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS | hinting)
        yield


def pictures(figure: Callable[..., Figure]) -> tuple[Callable[..., bytes], Callable[..., bytes], Callable[..., bytes]]:
    """What makes pngs, svgs (texts are text) and pdfs (TrueType fonts) of the figures of a function, and takes what that takes;
    only a png has dots, elsewhere a pixel is 1/96 inch."""

    def render(suffix: str, **dots: float) -> Callable[..., bytes]:
        def made(*frames: Any, theme: str = "light", **options: Any) -> bytes:
            themes = ("light", "dark") if (suffix, theme) == ("svg", "auto") else (theme,)
            drawn = [saved(partial(figure, *frames, theme=one, **{**options, **dots}), suffix) for one in themes]
            return _themed(*drawn) if len(drawn) > 1 else drawn[0]

        return wraps(figure)(made)

    return render("png"), render("svg", dpi=_CSS), render("pdf", dpi=_CSS)


def _themed(light: bytes, dark: bytes) -> bytes:
    """An svg that is dark where its reader's system is: the same drawing on both grounds, which differ in its colours alone."""
    of_light, of_dark = (re.findall(rb"(fill|stroke): (#\w+)", drawn) for drawn in (light, dark))
    pairs = dict.fromkeys(zip(of_light, of_dark, strict=True))
    rules = b"".join(b'[style*="%b: %b"]{%b:%b!important}' % (*one, *other) for one, other in pairs if one != other)
    return light.replace(b"</style>", b"@media (prefers-color-scheme: dark){%b}</style>" % rules, 1)


def figure_of(chart: Callable[..., Chart]) -> Callable[..., Figure]:
    """What draws the chart that a function makes of frames: with its keywords, and the options of `chart_figure`.

    Its attribute ``caption`` gives lines for the caption of a figure in a paper: all of its text, or facts and notes alone.
    """
    frames, *own = inspect.signature(chart).parameters.values()
    paper = [each for name, each in inspect.signature(chart_figure).parameters.items() if name != "chart"]

    def figure(frames: Any, **options: Any) -> Figure:
        mine = {each.name: options.pop(each.name) for each in own if each.name in options}
        return chart_figure(chart(frames, **mine), **options)

    def caption(frames: Any, whole: bool) -> list[str]:
        made = chart(frames)
        symbols = [f"{name} ({symbol})" for name, symbol in zip(made.names, marks.MARKERS.values(), strict=False)]
        drawn = [f"Kernels: {', '.join(symbols)}."] if whole and 1 < len(made.names) == len(symbols) else []
        return [*(f"{made.title}.", *made.sentences) * whole, made.facts, *drawn, *made.notes]

    def onto(frames: Any, axes: Axes, **options: Any) -> None:
        draw_onto(axes, chart(frames), **options)

    figure.__signature__ = inspect.Signature([frames, *own, *paper])  # type: ignore[attr-defined]
    figure.caption, figure.onto = caption, onto  # type: ignore[attr-defined]
    return figure


class _Legend(NamedTuple):
    keys: tuple[tuple[Key, float, float], ...] = ()  # with left edge and middle of each, from its lower left corner
    width: float = 0.0
    height: float = 0.0


class _Slot(NamedTuple):
    """A block, and the place of its axes or of all of a list: points, counted from the left and the top; the end of its row."""

    block: Block
    left: float
    top: float
    width: float
    height: float
    end: float
    plan: Plan | None = None


class _Page(NamedTuple):
    chart: Chart
    heading: Sequence[str]
    slots: Sequence[_Slot]
    inside: _Legend  # of one of these
    legend: _Legend  # below their ``end``
    notes: Sequence[str]
    foot: float
    end: float
    height: float


def chart_figure(
    chart: Chart,
    *,
    title: str | None = None,
    theme: str = "light",
    width: str | float | None = None,
    height: str | float | None = None,
    font: float | None = None,
    dpi: float | None = None,
    preset: str | None = None,
    bare: bool = False,
) -> Figure:
    """A chart as a figure of its own, outside pyplot; as much of it as the paper has room for.

    ``bare``: chart and legend alone, for a paper whose caption says the rest; nor has a column notes below the chart.

    ``width`` and ``height`` are lengths ("3.3in", "84mm") or inches, ``font`` is in points; ``preset``: column, page or slide.
    Raises ValueError for an unknown theme or preset, and PaperError, which is one, for a paper that nothing can be drawn on.
    """
    if theme not in marks.THEMES:
        raise ValueError(f"theme {theme!r} is not one of {', '.join(marks.THEMES)}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    pen = Pen(theme, paper_of(width, height, font, dpi, preset))
    untitled = 1.65 * pen.title if title == "" else 0.0  # what a title would take
    page = _page(chart, pen, 0.0 if bare else _header_height(0, pen) - untitled, bare or preset == "column")
    wide, high, chart = pen.paper.width, page.height, page.chart
    pen.shapes = dict(zip(chart.names, cycle(marks.MARKERS), strict=False))
    made = Figure(figsize=(wide / 72, high / 72), dpi=pen.paper.dpi, facecolor=pen.colours.ground)
    FigureCanvasAgg(made)  # so that it can be drawn outside pyplot

    def axes_at(left: float, bottom: float, width: float, height: float, **more: Any) -> Axes:
        return made.add_axes((left / wide, bottom / high, width / wide, height / high), **more)

    sheet = axes_at(0, 0, wide, high, facecolor="none", zorder=-1)  # over all of it, in points
    sheet.set(xlim=(0, wide), ylim=(0, high))
    sheet.set_axis_off()
    if not bare:
        room, top = wide - 2 * pen.edge, high - pen.edge + 1 + untitled
        named = chart.title if title is None else title
        pen.put(sheet, pen.edge, top, clean(named), pen.title, room=room, va="top", weight="bold")
        for place, line in enumerate(page.heading):
            parts, at = line.split(_DOT), top - 1.65 * pen.title - 1.5 * pen.key * place
            shorter = [_DOT.join(parts[:number]) for number in range(len(parts), 0, -1)]
            pen.put(sheet, pen.edge, at, pen.first_fitting(shorter, pen.key, room), pen.key, "faint", va="top")
    axes, view = None, None
    for slot in page.slots:
        block, bottom = slot.block, high - slot.top - slot.height
        if isinstance(block, Listing):
            _draw_listing(sheet, (slot.left, high - slot.top, slot.width), block, pen)
        elif isinstance(block, Timeline):
            _draw_timeline(sheet, (slot.left, bottom, slot.width, slot.height), block, pen)
        elif isinstance(block, Table):
            _draw_table(sheet, (slot.left, bottom, slot.height), block, view, pen)
        elif slot.plan:
            axes, view = axes_at(slot.left, bottom, slot.width, slot.height, facecolor=pen.colours.ground), slot.plan.view
            _draw(axes, slot.plan, page.inside, pen)
    if chart.empty:
        if not (axes and view):
            view = View(1, 2, 1, 2, 0.8 * wide, high - page.foot - _header_height(len(page.heading), pen))
            axes = axes_at(0.1 * wide, page.foot, view.width, view.height, facecolor="none")
            axes.set_axis_off()
        lines, box = _explanation(chart.empty, view.width, view.height, pen)
        look = {"boxstyle": "round,pad=0.6", "facecolor": pen.colours.ground, "edgecolor": pen.colours.faint, "linewidth": 0.6}
        more: dict[str, Any] = {"ha": "center", "va": "center", "bbox": look, "zorder": 9, "linespacing": 1.5}
        pen.put(axes, box.x / view.width, box.y / view.height, lines, pen.axis, transform=axes.transAxes, **more)
    _draw_legend(sheet, 4, high - page.end - page.legend.height, page.legend, pen)
    for up, line in zip(reversed(range(len(page.notes))), page.notes, strict=True):
        pen.put(sheet, pen.edge, pen.edge - 2 + pen.note_row * up, line, pen.small, "faint", va="bottom", gid="note")
    return made


def draw_onto(axes: Axes, chart: Chart, theme: str = "light") -> None:
    """The first panel of a chart on somebody's axes, for their present size; with a legend inside where there is room."""
    panel = next(block for row in chart.rows for block in row if isinstance(block, Panel))
    inches = axes.get_window_extent().transformed(axes.figure.dpi_scale_trans.inverted())
    wide, high = 72 * inches.width, 72 * inches.height
    pen = Pen(theme, paper_of(max(inches.width, 1.5), font=SMALLEST if wide < 14 * DEFAULT.font else None))
    pen.measure = measurer(axes.figure.dpi)
    pen.shapes = dict(zip(chart.names, cycle(marks.MARKERS), strict=False))
    (slot,), inside, _ = _planned(replace(chart, rows=[[panel]]), [_Slot(panel, 0, 0, wide, high, high)], pen)
    assert slot.plan is not None
    _draw(axes, slot.plan, inside, pen)


def _header_height(lines: int, pen: Pen) -> float:
    """Points that a title takes with so many lines below it."""
    return 20 * pen.scale + lines * 1.5 * pen.key + pen.edge - 6.0


def _explanation(text: str, width: float, height: float, pen: Pen) -> tuple[str, Box]:
    """The reason for an empty chart in lines, and its box in axes of this size (points), rather low and to the right."""
    size = pen.axis
    letters = int(min(80, max(0.97 * width / pen.wide("n", size), 20)))
    lines = [part for line in text.splitlines() for part in textwrap.wrap(line, letters, break_long_words=False)]
    wide = max(pen.wide(line, size) for line in lines) + 2.4 * size
    tall = 1.5 * size * len(lines) + 1.5 * size
    place = (max(min(0.6 * width, width - wide / 2 - 2), wide / 2), max(0.36 * height, tall / 2))
    return "\n".join(lines), Box(*place, wide, tall)


def _page(whole: Chart, pen: Pen, header: float, noteless: bool) -> _Page:
    """The page; of a height that is asked for first notes and the lines of the header give way, then parts of the chart."""
    chart: Chart | None = whole
    while chart:
        for lines in (_NOTE_LINES, 0) if pen.paper.height else (chart.note_lines,):
            if page := _filled(chart, lines, pen, header, noteless):
                return page
        chart = _shorter(chart, whole)
    raise PaperError(f"height {pen.paper.height / 72:.3g}in has no room for the picture; leave it out, or ask for more")


def _shorter(chart: Chart, whole: Chart) -> Chart | None:
    """A chart with fewer rows in its longest list, else without its last block, else with half of its things, and a note of
    what it lacks of the ``whole``; None where that would be all."""

    def parts(of: Chart) -> int:
        return sum(len(block.rows) if isinstance(block, Listing) else 1 for row in of.rows for block in row)

    lists = [block for row in chart.rows for block in row if isinstance(block, Listing)]
    longest = max(lists, key=lambda block: len(block.rows), default=None)
    if longest and len(longest.rows) > 1:
        fewer = replace(longest, rows=longest.rows[: len(longest.rows) * 3 // 4])
        rows = [[fewer if block is longest else block for block in row] for row in chart.rows]
    elif sum(map(len, chart.rows)) > 1:
        rows = list(filter(None, [*map(list, chart.rows[:-1]), list(chart.rows[-1][:-1])]))
    elif len(chart.names) > 1 and chart.rows and isinstance(panel := chart.rows[0][0], Panel):
        gone = set(list(chart.names)[len(chart.names) // 2 :])
        things = ({getattr(mark, field, "") for field in ("name", "key")} for mark in panel.marks)
        rows = [[replace(panel, marks=[mark for mark, of in zip(panel.marks, things, strict=True) if gone.isdisjoint(of)])]]
    else:
        return None
    marked = [mark for row in rows for block in row if isinstance(block, Panel) for mark in block.marks]
    names = {mark.name for mark in marked if isinstance(mark, marks.Point)}
    made = replace(chart, rows=rows, names={name: text for name, text in chart.names.items() if name in names})
    lacking = (parts(whole) - parts(made), "part"), (len(whole.names) - len(made.names), "name")
    told = ", ".join(plural(number, noun) for number, noun in lacking if number)
    return replace(made, notes=[*whole.notes, f"Left out for lack of room: {told}."])


def _filled(chart: Chart, lines: int, pen: Pen, header: float, noteless: bool) -> _Page | None:
    """A page with so many lines of notes at most, and room for a title if it has a header; None where its height leaves too
    little to the axes."""
    high, room = pen.paper.height, pen.paper.width - 2 * pen.edge
    texts = (*pen.wrapped(chart.sentences, pen.key, room, 2), *filter(None, [chart.facts])) if lines else ()
    head = header + len(texts) * 1.5 * pen.key if header else 4.0
    reserved, factor, page = 0.0, 1.0, None
    for _ in range(_PASSES):  # what the axes leave to legend and notes depends on what they hold of them
        bare, down, stretching = _slots(chart, head, factor, pen)
        slots, inside, legend = _planned(chart, bare, pen)
        notes = pen.wrapped(_notes(chart, slots), pen.small, room, lines) if lines and not noteless else []
        foot, lower = pen.note_row * len(notes) + pen.edge, legend.height + 6 if legend.keys else 0.0
        needed = foot + lower
        if not high or down + needed <= high + 0.01:
            end = max((slot.end for slot in slots if slot.plan), default=down)
            slots = [slot._replace(top=slot.top + lower) if slot.top > end else slot for slot in slots]  # lists stand lower
            page = _Page(chart, texts, slots, inside, legend, notes, foot, end, high or down + needed)
        if not high or not stretching or (page and abs(needed - reserved) < 1):
            break
        lowest, reserved = min(slot.height for slot in bare if isinstance(slot.block, _STRETCHED)) / factor, needed
        factor = (high - reserved - (down - factor * stretching)) / stretching
        if factor * lowest < _LEAST * pen.paper.font:
            break
    return page


def _slots(chart: Chart, head: float, factor: float, pen: Pen) -> tuple[list[_Slot], float, float]:
    """Where the blocks go, how far down they reach, and how high those that can be higher or lower (by a ``factor``) are
    together.  Blocks of a row stand side by side where the paper is wide enough."""
    slots, down, stretching, paper = list[_Slot](), head, 0.0, pen.paper
    across = 2 if paper.width >= 2 * _SIDE_BY_SIDE * paper.font else 1
    titled = any(isinstance(block, Panel) and block.title for row in chart.rows for block in row)
    for row in (blocks[start : start + across] for blocks in chart.rows for start in range(0, len(blocks), across)):
        margins = [_margins(block, titled, pen) for block in row]
        above, under = max(each[2] for each in margins), max(each[3] for each in margins)
        cells = [paper.width * block.weight / sum(other.weight for other in row) for block in row]
        widths = [cell - left - right for cell, (left, right, *_) in zip(cells, margins, strict=True)]
        heights = []
        for block, width in zip(row, widths, strict=True):
            shape = _WIDE if len(row) == 1 and not (isinstance(block, Panel) and block.shape == "square") else _SHAPE
            if isinstance(block, Panel):
                high = min(max(shape * width, _LOWEST * paper.font), _HIGHEST * paper.font)
            elif isinstance(block, Table):
                high = max((len(block.hues) + 4) * _CELL * pen.key, _TALL * paper.font)
            elif isinstance(block, Timeline):
                high = (len(block.bands) * _BAND + _STRIP) * pen.scale
            else:
                top, step = _rows_of(block, pen)
                high = top + len(block.rows) * step + (_FOOT * pen.scale if block.axis else 0.0)
            heights.append(high * factor if isinstance(block, _STRETCHED) else high)
        highest, at = max(heights), 0.0
        for block, cell, (left, *_), width, high in zip(row, cells, margins, widths, heights, strict=True):
            tall = high if isinstance(block, Listing) else highest
            slots.append(_Slot(block, at + left, down + above, width, tall, down + above + highest + under))
            at += cell
        down += above + highest + under
        own = [high for block, high in zip(row, heights, strict=True) if isinstance(block, _STRETCHED)]
        stretching += highest / factor if highest in own else 0.0  # beside a longer list nothing is won
    return slots, down if slots else down + 14 * paper.font, stretching


def _margins(block: Block, titled: bool, pen: Pen) -> tuple[float, ...]:
    """Points left, right, above and below the axes of a block."""
    if isinstance(block, Table):
        return (0.0, 0.0, 0.0, 0.0)
    if isinstance(block, Listing):
        return (pen.edge, pen.edge, 6.0 * pen.scale, 6.0 * pen.scale)
    left, right, above, under = _BANDS if isinstance(block, Timeline) else _FRAMED if block.x.second else _PLAIN
    above = _UNTITLED if not titled and above == _PLAIN[2] else above
    return tuple(points * pen.scale for points in (left, right, above, under))


def _planned(chart: Chart, slots: Sequence[_Slot], pen: Pen) -> tuple[list[_Slot], _Legend, _Legend]:
    """The blocks with their plans, the legend inside one of them, and what stands below them instead.  Things that find no room
    for their name are in the legend, which takes room from names in turn."""
    drawn = [mark for slot in slots if isinstance(slot.block, Panel) for mark in slot.block.marks]
    named = {mark.key for mark in drawn if isinstance(mark, marks.Text)}
    listed = [name for name in chart.names if name not in named]
    while True:
        keys = [key for key in chart.keys if not key.instead or key.instead in listed]
        names = [Key(text, "dot", instead=name) for name, text in chart.names.items() if text and name in listed]
        blocks = [_columns([*keys, *names], number, pen) for number in (1, 2, 3)] if chart.inside and (keys or names) else []
        inside, missing, planned = _Legend(), dict[str, None](), []
        for slot in slots:
            if isinstance(slot.block, Panel):
                taken = [_explanation(chart.empty, slot.width, slot.height, pen)[1]] if chart.empty else []
                room = [] if inside.keys else [(block.width, block.height) for block in blocks]
                plan = Plan(slot.block, slot.width, slot.height, pen, list(chart.names), listed, room, taken)
                missing |= dict.fromkeys(sorted(plan.missing - set(listed)))
                if box := plan.legend:
                    inside = next(block for block in blocks if (block.width, block.height) == (box.width, box.height))
                slot = slot._replace(plan=plan)
            planned.append(slot)
        if not missing:
            break
        listed += missing
    regions = {mark.role for slot in planned if slot.plan for mark in slot.plan.regions}
    keys = [key for key in keys if key.role != "overhead" or key.role in regions] if slots else []
    return planned, inside, _Legend() if inside.keys else _below(keys, names, pen.paper.width - 8, pen)


def _notes(chart: Chart, slots: Sequence[_Slot]) -> list[str]:
    """What of the marks has no room or lies beyond the axes, then the notes of the chart."""
    plans = [slot.plan for slot in slots if slot.plan]
    untold = dict.fromkeys(text for plan in plans for text in plan.untold)
    outside = sum(plan.outside for plan in plans)
    found = [f"Roofs without room for their value: {', '.join(untold)}."] if untold else []
    found += [f"{outside} dot{'s' if outside > 1 else ''} beyond the axes."] if outside else []
    return [*found, *chart.notes]


def _draw(axes: Axes, plan: Plan, legend: _Legend, pen: Pen) -> None:
    """Axes, lines, regions, symbols and labels of one panel, and the legend if it is inside this one."""
    from matplotlib.collections import LineCollection

    view, colour = plan.view, pen.colours.of
    _draw_axes(axes, plan.panel, view, pen)
    for hue, corners in plan.areas:
        role = ROLES["band"]
        axes.fill(*zip(*corners, strict=True), color=colour(hue), alpha=role.alpha, lw=0, zorder=role.order, gid="band")
    for line in plan.lines:
        if line.role != "joined":
            _draw_line(axes, view, line, pen)
    if joined := [line.places for line in plan.lines if line.role == "joined"]:
        role = ROLES["joined"]
        paint: dict[str, Any] = {"colors": colour(role.colour), "linewidths": role.width * pen.scale, "zorder": role.order}
        axes.add_collection(LineCollection(joined, **paint), autolim=False)
    # Symbols that look alike at once; large ones first, so that none hides another, and the first of all last.
    groups: dict[tuple[Any, ...], list[marks.Point]] = {}
    for point in plan.points:
        role = ROLES[point.role]
        looks = pen.colours.of(point.hue or role.colour), pen.shapes.get(point.name) or role.shape or "o"
        groups.setdefault((role.order, -plan.size_of(point), point.role, point.fill, *looks), []).append(point)
    backwards = list(groups.items())[::-1]
    for (order, size, name, fill, hue, shape), alike in sorted(backwards, key=lambda item: item[0][:2]):
        xs, ys = [point.x for point in alike], [point.y for point in alike]
        gid = f"dots-{fill}" if name == "dot" else f"point-{name}"
        look = _faced(fill, hue, pen, ROLES[name])
        axes.plot(xs, ys, ls="none", marker=shape, ms=-size, zorder=order, gid=gid, **look)
    for label in plan.labels:
        _draw_label(axes, view, label, pen)
    if box := plan.legend:
        left, bottom, _, _ = box.bounds()
        corner = left / view.width, bottom / view.height
        frame = axes.inset_axes((*corner, box.width / view.width, box.height / view.height), zorder=10)
        frame.set(xlim=(0, box.width), ylim=(0, box.height), xticks=(), yticks=(), facecolor=pen.colours.ground)
        for spine in frame.spines.values():
            spine.set(color=pen.colours.grid, linewidth=0.6)
        _draw_legend(frame, 0, 0, legend, pen)


def _draw_axes(axes: Axes, panel: Panel, view: View, pen: Pen) -> None:
    axes.set(xscale="log", yscale="log", xlim=(view.x0, view.x1), ylim=(view.y0, view.y1))
    _ticks(axes.xaxis, panel.x, (view.x0, view.x1), view.width, 5.2, pen)
    _ticks(axes.yaxis, panel.y, (view.y0, view.y1), view.height, 2.4, pen)
    frame = {"left", "bottom"}
    across, upwards = ("top", "x", view.x0, view.x1, view.width, 5.2), ("right", "y", view.y0, view.y1, view.height, 2.4)
    for side, (where, name, low, high, length, apart) in ((panel.x, across), (panel.y, upwards)):
        if side.second:  # the same places times a number, in another unit
            by, unit, title = side.second
            twin = axes.twiny() if name == "x" else axes.twinx()
            twin.set(**{f"{name}scale": "log", f"{name}lim": (low * by, high * by)})
            own, other = (twin.xaxis, twin.yaxis) if name == "x" else (twin.yaxis, twin.xaxis)
            other.set_visible(False)
            _ticks(own, Axis(unit, (title,)), (low * by, high * by), length, apart, pen)
            for spine in twin.spines.values():
                spine.set_visible(False)
            frame.add(where)
    for name, spine in axes.spines.items():
        spine.set(visible=name in frame, color=pen.colours.faint, linewidth=0.6)
    if panel.shape == "roofline":
        axes.grid(which="major", color=pen.colours.grid, linewidth=0.5)
    axes.set_axisbelow(True)
    title = drawable(pen.fitted(panel.title, pen.heading * 1.2, view.width))  # bold is wider than what is measured
    axes.set_title(title, fontsize=pen.heading, color=pen.colours.text, loc="left", pad=3, weight="bold")


def _ticks(axis: Any, side: Axis, limits: Place, length: float, apart: float, pen: Pen) -> None:
    """Ticks and name of one side, so long (points), with numbers so many letters apart: three at least, where there is room."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    unit, most = side.unit, length / (apart * pen.key)
    symbol = "" if unit == "second" else UNITS[unit].symbol
    scale, prefixed = 1.0, symbol
    if side.prefix == "name":  # of the largest, at most tera as people compare chips in it
        scale = 10.0 ** min(max(3 * int(math.log10(limits[1] / 2) // 3), 0), 12)
        prefixed = format_value(scale, unit).split(" ")[-1]
    every = [(steps, LogLocator(subs=steps, numticks=99).tick_values(*limits)) for steps in _STEPS]
    subs = next((steps for steps, ticks in every if 3 <= sum(limits[0] <= tick <= limits[1] for tick in ticks) <= most), (1.0,))
    axis.set_major_locator(LogLocator(base=10, subs=subs, numticks=max(int(most), 3)))
    axis.set_minor_locator(LogLocator(base=10, subs=range(2, 10), numticks=30))

    def shown(value: float, _: int) -> str:
        return format_value(value, unit, 3).removesuffix(symbol).strip() if side.prefix == "tick" else f"{value / scale:g}"

    axis.set_major_formatter(FuncFormatter(shown))
    axis.set_minor_formatter(NullFormatter())
    axis.set_tick_params(which="both", direction="out", labelsize=pen.key, colors=pen.colours.text, width=0.6, length=3, pad=2)
    axis.set_tick_params(which="minor", length=1.6, width=0.4)
    name = pen.first_fitting([text.replace("{unit}", prefixed) for text in side.names], pen.axis, length)
    axis.set_label_text(drawable(name), fontsize=pen.axis, color=pen.colours.text)
    axis.labelpad = 2


def _draw_line(axes: Axes, view: View, line: marks.Line, pen: Pen) -> None:
    """A line, with arrow heads in the middle of pieces that are long enough for one, or at their ends."""
    role = ROLES[line.role]
    paint: dict[str, Any] = {"color": pen.colours.of(line.hue or role.colour), "alpha": role.alpha, "zorder": role.order}
    xs, ys = zip(*line.places, strict=True)
    axes.plot(xs, ys, ls=role.dashes, lw=role.width * pen.scale, dash_capstyle="butt", gid=line.role, **paint)
    off = pen.scale * (ROLES["dot"].size / 2 + _HEADS / 2)
    for (ax, ay), (bx, by) in pairwise(map(view.at, line.places if role.arrow else ())):
        length = math.hypot(bx - ax, by - ay)
        if length >= (2 * off if role.arrow == "end" else _ARROW_FROM):
            part = 1 - off / length if role.arrow == "end" else 0.5
            at = (ax + part * (bx - ax)) / view.width, (ay + part * (by - ay)) / view.height
            head = (3, 0, math.degrees(math.atan2(by - ay, bx - ax)) - 90)
            look: dict[str, Any] = {
                "marker": head,
                "ms": _HEADS * pen.scale,
                "mew": 0,
                "transform": axes.transAxes,
                "gid": "arrow",
            }
            axes.plot(*([value] for value in at), ls="none", **look, **paint)


def _draw_label(axes: Axes, view: View, label: Label, pen: Pen) -> None:
    """A text at its place, with the line to its dot, on a ground that keeps lines away from its letters."""
    box, mark = label.box, label.mark
    if label.leader:
        xs, ys = zip(*((x / view.width, y / view.height) for x, y in label.leader), strict=True)
        axes.plot(xs, ys, transform=axes.transAxes, lw=0.4 * pen.scale, color=pen.colours.faint, zorder=4, gid="leader")
    hue = "faint" if mark.role == "contour" else mark.hue or ROLES[mark.role].colour
    gid = f"label-{'roof' if isinstance(mark, marks.Roof) else mark.role}"
    more: dict[str, Any] = {"ha": "center", "va": "center", "rotation": box.angle, "rotation_mode": "anchor", "zorder": 8}
    more |= {"gid": gid, "style": "italic" if mark.role == "corner" else "normal"}
    x, y = box.x / view.width, box.y / view.height
    pen.put(axes, x, y, label.text, label.size, hue, ground=True, transform=axes.transAxes, **more)


def _symbol(key: Key, pen: Pen) -> float:
    """Points that the symbol of an entry takes."""
    return ((_SYMBOL if ROLES[key.role].size else _LINE) if key.role else 0.0) * pen.scale


def _columns(keys: Sequence[Key], number: int, pen: Pen) -> _Legend:
    """The entries in so many columns, one below the other."""
    down, gap, x, placed = -(-len(keys) // number), _APART * pen.scale, 4.0, []
    for start in range(0, len(keys), max(down, 1)):
        part = keys[start : start + down]
        placed += [(key, x, pen.row * (down - index - 0.5) + 2) for index, key in enumerate(part)]
        x += max(_symbol(key, pen) + pen.wide(key.label, pen.key) for key in part) + gap
    return _Legend(tuple(placed), x - gap + 4, pen.row * down + 4) if keys else _Legend()


def _below(keys: Sequence[Key], names: Sequence[Key], width: float, pen: Pen) -> _Legend:
    """The entries in as many lines as they need, and below them the things with shapes, one below the other."""
    placed, down = list[tuple[Key, float, float]](), 0
    for group in (keys, names):
        cut = [replace(key, label=pen.fitted(key.label, pen.key, width - 8 - _symbol(key, pen))) for key in group]
        widths, x = [_symbol(key, pen) + pen.wide(key.label, pen.key) for key in cut], math.inf
        for key, own in zip(cut, widths, strict=True):
            wide = max(widths) if group is names else own
            if x + wide > width:
                x, down = 4.0, down + 1
            placed.append((key, x, -pen.row * (down - 0.5)))
            x += wide + _APART * pen.scale
    height = pen.row * down + (2 if names else 0)
    return _Legend(tuple((key, x, height + y) for key, x, y in placed), width, height)


def _draw_legend(sheet: Axes, left: float, bottom: float, legend: _Legend, pen: Pen) -> None:
    for key, x, y in legend.keys:
        _draw_symbol(sheet, left + x, bottom + y, key, pen)
        pen.put(sheet, left + x + _symbol(key, pen), bottom + y, key.label, pen.key, gid="key")


def _draw_symbol(sheet: Axes, at: float, middle: float, key: Key, pen: Pen) -> None:
    """The symbol of an entry, or a piece of its line or band, from ``at`` on; nothing without a role."""
    if not key.role:
        return
    role, scale = ROLES[key.role], pen.scale
    colour = pen.colours.of(key.hue or role.colour)
    if role.size:
        size = key.size or role.size - (1.0 if role.ring and role.size > 6 else 0.0)
        shape = pen.shapes.get(key.instead) or role.shape or "o"
        sheet.plot([at + 3 * scale], [middle], ls="none", marker=shape, ms=size * scale, **_faced(key.fill, colour, pen, role))
        return
    ends, thick = [at, at + (_LINE - 6) * scale], role.width or 4.8
    paint: dict[str, Any] = {"color": colour, "alpha": role.alpha, "solid_capstyle": "butt"}
    sheet.plot(ends, [middle, middle], ls=role.dashes, lw=thick * scale, **paint)


def _faced(fill: str, colour: str, pen: Pen, role: marks.Role) -> dict[str, Any]:
    """A symbol of a colour: full, none (an outline) or half filled (left, bottom, right, top), as matplotlib takes it."""
    scale, ground = pen.scale, pen.colours.ground
    if fill == "none" or role.ring:
        return {"mfc": ground, "mec": colour, "mew": (role.ring or 1.0) * scale}
    if fill == "full":
        return {"mfc": colour, "mec": pen.colours.of(role.edge) if role.edge else colour, "mew": 0.4 * scale}
    return {"fillstyle": fill, "mfc": colour, "mfcalt": ground, "mec": colour, "mew": 0.7 * scale}


def _rows_of(block: Listing, pen: Pen) -> tuple[float, float]:
    """Points above the first row, and to the next one: a line of texts above its scales."""
    every = [scale for row in block.rows for scale in row.scales]
    lines = bool(block.title) + bool(block.keys) + any(block.heads[:-1])
    bars = max((1 if scale.stacked else len(scale.bars) for scale in every), default=0) * _BAR * pen.scale
    scales = max(bars, 2.6 * pen.small if any(scale.dots for scale in every) else 0.0)
    return lines * _HEAD * pen.scale, scales + _GAP * pen.scale + 1.5 * pen.key


def _draw_listing(sheet: Axes, place: tuple[float, float, float], block: Listing, pen: Pen) -> None:
    """Draws a list from a place on: left, top, and its width.  First its title, the keys and the heads of scales."""
    (left, top, width), scale = place, pen.scale
    head, step = _rows_of(block, pen)
    most = max((len(row.scales) for row in block.rows), default=1)
    beyond = (_BEYOND if any(one.bars for row in block.rows for one in row.scales) else 12.0) * scale
    part, first = width / most, top - head
    spans = [(left + part * index, left + part * (index + 1) - beyond) for index in range(most)]
    y, x = top - 0.5 * _HEAD * scale, left
    if block.title:
        pen.put(sheet, left, y, block.title, pen.heading, weight="bold")
        y -= _HEAD * scale if block.keys else 0.0
    for key in block.keys:
        _draw_symbol(sheet, x, y, key, pen)
        room = width / len(block.keys) - 16 * scale if len(block.keys) < 3 else math.inf
        x += pen.put(sheet, x + 9 * scale, y, pen.fitted(key.label, pen.key, room, True), pen.key) + 20 * scale
    if any(block.heads[:-1]):
        y -= _HEAD * scale
        for (low, high), text in zip(spans, block.heads, strict=False):
            pen.put(sheet, low, y, text, pen.small, "faint", high - low)
    said = block.heads[-1] if block.heads else ""
    if said and (at := left + width - pen.wide(said, pen.key)) > x:
        pen.put(sheet, at, y, said, pen.key, "faint")
    if block.axis:  # from 0 to 100 % below the bars
        (low, high), bottom, faint = spans[0], first - step * len(block.rows), pen.colours.faint
        for share in range(0, 101, 20 if high - low > 22 * pen.paper.font else 50):
            x = low + (high - low) * share / 100
            sheet.plot([x, x], [bottom, first], color=pen.colours.grid if share else faint, lw=0.6, zorder=1)
            pen.put(sheet, x, bottom - 3, str(share), pen.key, ha="center", va="top")
        sheet.plot([low, high], [bottom, bottom], color=faint, lw=0.6, zorder=1)
        if block.limit:
            x = low + (high - low) * block.limit
            sheet.plot([x, x], [bottom, first], color=faint, lw=0.6, ls=(0, (4, 3)), zorder=1)
        name = pen.first_fitting(block.axis, pen.axis, high - low)
        pen.put(sheet, (low + high) / 2, bottom - 5 - 1.25 * pen.key, name, pen.axis, ha="center", va="top")
    for index, row in enumerate(block.rows):
        line, more = first - step * index - 0.9 * pen.key, {"ha": "right", "weight": "bold" if row.hue else "normal"}
        room = width - 14 - pen.put(sheet, left + width, line, row.end, pen.key, row.hue or "faint", 0.55 * width, True, **more)
        at = left
        if row.shape:
            _draw_symbol(sheet, left, line, Key("", "dot", instead=row.shape), pen)
            at += 9 * scale
        name = pen.fitted(row.name, pen.key, left + room - 5 * scale - at, middle=True)
        at += pen.put(sheet, at, line, name, pen.key, ground=True) + 8 * scale
        if row.more and at - left + 30 < room:
            pen.put(sheet, at, line, row.more, pen.small, "faint", left + room - at, True)
        for span, one in zip(spans, row.scales, strict=False):
            _draw_scale(sheet, span, first - step * (index + 0.5) - 0.75 * pen.key, one, bool(block.axis), pen)


def _draw_scale(sheet: Axes, span: tuple[float, float], y: float, one: marks.Scale, on_axis: bool, pen: Pen) -> None:
    """Bars upon each other with a value at the longest, or a line from a hollow dot to a full one with a text below."""
    from matplotlib.patches import Rectangle

    (low, high), scale, colour = span, pen.scale, pen.colours.of
    if one.dots:
        y += 0.6 * pen.small
        xs = [low + min(value, 1.0) * (high - low) for value in one.dots]
        sheet.plot([low, high], [y, y], lw=1.6 * scale, color=colour("grid"), zorder=1, solid_capstyle="round")
        sheet.plot(xs, [y, y], lw=2.2 * scale, color=colour(one.hue or "connector"), zorder=2, solid_capstyle="butt")
        for order, (x, name) in enumerate(zip(xs, ("before", "after"), strict=True), 3):
            look = _faced("full", colour("text"), pen, ROLES[name])
            sheet.plot([x], [y], "o", ms=ROLES[name].size * scale, zorder=order, gid=name, **look)
        pen.put(sheet, low, y - 1.5 * pen.small, one.text, pen.small, room=high - low + 8 * scale)
        return
    longest, at, known, thick = low, y, False, _BAR * scale
    if not on_axis:
        sheet.plot([low, high], [y, y], lw=4.2 * scale, color=colour("grid"), zorder=1, solid_capstyle="butt")
    start = low
    for index, (share, hue) in enumerate(one.bars):
        if math.isfinite(share):
            known, middle = True, y if one.stacked else y + (len(one.bars) / 2 - index - 0.5) * thick
            size = (min(share, 1.0) * (high - low), 0.86 * thick)
            corner = (start, middle - size[1] / 2)
            start += size[0] if one.stacked else 0.0
            sheet.add_patch(Rectangle(corner, *size, color=colour(hue), lw=0, gid="bar", zorder=2))
            if low + size[0] > longest:
                longest, at = low + size[0], middle
    x = low + 3 if not known else longest + 3 if on_axis else high + 4
    pen.put(sheet, x, at, one.text, pen.small, "text" if known else "faint", ground=True, zorder=3)


def _draw_timeline(sheet: Axes, place: tuple[float, float, float, float], block: Timeline, pen: Pen) -> None:
    """Bands of bars from 0 to the peak, hatched where nothing is known, above the axis of time; left, bottom, width, height."""
    from matplotlib.patches import Rectangle
    from matplotlib.ticker import MaxNLocator

    (left, bottom, width, tall), scale, colours = place, pen.scale, pen.colours
    room = pen.paper.width - 2 * pen.edge
    pen.put(sheet, pen.edge, bottom + tall + 5 * scale, block.title, pen.heading, room=room, va="bottom", weight="bold")
    xs = [left + width * edge / block.seconds for edge in block.edges]
    spans = list(pairwise([*xs, left + width] if xs[-1] < left + 0.999 * width else xs))
    row = (tall - _STRIP * scale) / max(len(block.bands), 1)
    for index, (name, text, hue, values) in enumerate(block.bands):
        low, high = bottom + tall - (index + 1) * row + 1.5 * scale, row - 3 * scale
        top = max([1.0, *(value for value in values if math.isfinite(value))])
        for (begin, end), value in zip(spans, [*values, *[math.nan] * (len(spans) - len(values))], strict=True):
            known = math.isfinite(value)
            paint: dict[str, Any] = {"color": colours.of(hue), "lw": 0, "gid": "band"}
            paint = paint if known else {"fc": "none", "ec": colours.faint, "hatch": "////", "lw": 0, "gid": "unknown"}
            sheet.add_patch(Rectangle((begin, low), end - begin, high * value / top if known else high, **paint))
        sheet.add_patch(Rectangle((left, low), width, high, fc="none", ec=colours.grid, lw=0.6))
        middle, room = low + high / 2, left - pen.edge - 4 * scale
        pen.put(sheet, left - 4 * scale, middle, name, pen.key, room=room, ha="right", va="center")
        pen.put(sheet, left + width + 4 * scale, middle, text, pen.key, "faint", va="center")
    for (begin, end), hue in zip(spans, block.hues, strict=False):
        sheet.add_patch(Rectangle((begin, bottom), end - begin, _STRIP * scale, color=colours.of(hue), lw=0))
    sheet.add_patch(Rectangle((left, bottom), width, _STRIP * scale, fc="none", ec=colours.faint, lw=0.6))
    exponent = min(max(3 * math.floor(math.log10(block.seconds) / 3), -9), 0)
    for at in MaxNLocator(6, steps=(1, 2, 2.5, 5, 10)).tick_values(0, block.seconds):
        if 0 <= at <= block.seconds * 1.0001:
            x = left + width * at / block.seconds
            sheet.plot([x, x], [bottom - 3, bottom], lw=0.6, color=colours.faint)
            pen.put(sheet, x, bottom - 5, f"{at / 10.0**exponent:.4g}", pen.key, ha="center", va="top")
    name = f"Time [{_TIME_PREFIXES[exponent]}]"
    pen.put(sheet, left + width / 2, bottom - 7 - 1.25 * pen.key, name, pen.axis, ha="center", va="top")


def table_widths(block: Table, pen: Pen) -> list[float]:
    """Points that a table takes: first the lines that lead to it, then each column with the gap behind it."""
    texts = ((head, second, *upper, *lower) for head, upper, second, lower in block.columns)
    return [_FAN, *(max(pen.wide(text, pen.small) for text in column) + _BETWEEN for column in texts)]


def _draw_table(sheet: Axes, place: tuple[float, float, float], block: Table, view: View | None, pen: Pen) -> None:
    """Rows beside the lines of a panel that they are of, and below those the others; left, bottom and height."""
    (left, bottom, tall), row, size = place, _CELL * pen.key, pen.small
    count = len(block.hues) - len(block.at)
    lower = [bottom + 2 + row * index for index in reversed(range(count))]
    ends = [bottom + min(max(view.y(value), 0.0), tall) for value in block.at] if view else []
    upper = spread(ends, row, bottom + row * (count + 2) if count else bottom + 2, bottom + tall - row)
    for hue, end, y in zip(block.hues, ends, upper, strict=False):
        xs = left - 8, left - 3, left + _FAN - 15, left + _FAN - 11
        sheet.plot(xs, (end, end, y, y), lw=0.5, color=pen.colours.of(hue), gid="leader")
    x = left + _FAN - 9
    for index, ((head, cells, second, more), width) in enumerate(zip(block.columns, table_widths(block, pen)[1:], strict=True)):
        at, side = (x, "left") if index == 0 else (x + width - _BETWEEN, "right")
        for title, ys in ((head, upper), (second, lower)):
            if ys:
                pen.put(sheet, at, ys[0] + row, title, size, "faint", ha=side)
        for cell, y, hue in zip((*cells, *more), (*upper, *lower), block.hues, strict=True):
            pen.put(sheet, at, y, cell, size, "text" if index else hue, ha=side)
        x += width
