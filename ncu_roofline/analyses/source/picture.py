"""The source view as png, svg or pdf: the roofline of the kernel with its loops, beside the lines that are hottest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncu_roofline.analyses.hierarchical.drawing import draw_axes
from ncu_roofline.analyses.hierarchical.looks import level_colour
from ncu_roofline.analyses.source.frames import SourceRoofline, files_apart
from ncu_roofline.analyses.source.page_chart import chart_of, kinds_of
from ncu_roofline.analyses.source.page_data import counted_of, heads_of, rows_of
from ncu_roofline.rendering import layout
from ncu_roofline.rendering.layout import Box, Measure, Obstacles, View
from ncu_roofline.rendering.lettering import fitted, measurer, put_text, wrapped
from ncu_roofline.rendering.paper import DEFAULT, Paper
from ncu_roofline.rendering.picture import header_height, pictures, put_header, sheet_over
from ncu_roofline.rendering.style import THEMES, Theme
from ncu_roofline.texts import clean, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANEL, _LEFT, _FOOT, _GAP = (196.0, 200.0), 44.0, 30.0, 16.0  # points: axes, and around them
_ROW, _LINES = 11.4, 16  # points of a line in the list; how many there are
_BAR = 34.0
_SMALL, _LABEL = 6.2, 6.2
_PAPER = Paper(font=7.0)
_DOT, _DIAMOND = 5.0, 7.0
_LOOPS = "Diamonds: loops that hold most of the samples, by traffic at L1."
_EXECUTED = {"executed": "warp instructions executed there", "threads": "thread instructions executed there"}


@dataclass(frozen=True)
class _Hottest:
    """What is listed: where, text and share of each row; the only ``file``, "" of several; what the shares are ``of``."""

    file: str
    of: str
    rows: Sequence[tuple[str, str, float]]


def figure(frames: SourceRoofline, *, title: str = "", theme: str = "light", dpi: float | None = None) -> Figure:
    """The launch that took longest as a matplotlib figure of its own, outside pyplot.

    Raises ValueError for an unknown theme.
    """
    if theme not in THEMES:
        raise ValueError(f"theme {theme!r} is not one of {', '.join(THEMES)}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    colours, measure, width = THEMES[theme], measurer(), DEFAULT.width
    heads = heads_of(frames)
    hottest = _hottest(frames, next(iter(heads))) if heads else _Hottest("", "", ())
    rows = rows_of(frames.loop_columns, next(iter(heads))) if heads else []
    loops = [row for row in rows if row["loop"] >= 0 and row["performance"] > 0]
    lines = wrapped(_notes(hottest, len(heads), diamonds=bool(loops)), _SMALL, width - 2 * DEFAULT.edge, 2, measure)
    head, foot = header_height(1, DEFAULT) + 6, 8.0 + 8.6 * len(lines)
    height = head + _PANEL[1] + _FOOT + foot
    made = Figure(figsize=(width / 72, height / 72), dpi=dpi or DEFAULT.dpi, facecolor=colours.ground)
    FigureCanvasAgg(made)  # so that it can be drawn outside pyplot
    sheet = sheet_over(made, width, height)
    key, said = next(iter(heads.items()), (None, {"kernel": "", "facts": ["no launch has counts by instruction"]}))
    about = " \N{MIDDLE DOT} ".join(said["facts"])
    put_header(sheet, clean(title) or f"Source roofline of {said['kernel']}".removesuffix(" of "), about, colours, measure)
    for index, line in enumerate(reversed(lines)):
        put_text(sheet, DEFAULT.edge, 5 + 8.6 * index, line, _SMALL, colours.faint, va="bottom")
    if key is None:
        return made
    chart = chart_of(frames.roofline, key, kinds_of(rows))
    place = (_LEFT / width, (foot + _FOOT) / height, _PANEL[0] / width, _PANEL[1] / height)
    _draw_roofline(made.add_axes(place, facecolor="none"), chart, loops, colours, measure)
    left = _LEFT + _PANEL[0] + _GAP
    _draw_lines(sheet, (left, height - head, width - DEFAULT.edge - left), hottest, colours, measure)
    return made


render_png, render_svg, render_pdf = pictures(figure)


def _notes(hottest: _Hottest, launches: int, *, diamonds: bool) -> list[str]:
    return [
        f"Bars: share of the {hottest.of}." if hottest.rows else "",
        _LOOPS if diamonds else "",
        f"The launch of {launches} that took longest; the page has all." if launches > 1 else "",
    ]


def _hottest(frames: SourceRoofline, key: tuple[str, int, str, str]) -> _Hottest:
    """The lines with most samples, else most instructions, in the order of files and lines; without lines the loops."""
    lines = sorted(
        (row for row in rows_of(frames.line_columns, key) if row["line"] > 0), key=lambda row: (row["file"], row["line"])
    )
    rows = lines or [row for row in rows_of(frames.loop_columns, key) if row["loop"] >= 0]
    sampled = any(row["share_samples"] > 0 for row in rows)
    counted = counted_of(rows)
    total = sum(row[counted] for row in rows if row[counted] > 0)
    shares = [row["share_samples"] if sampled else row[counted] / total if total else 0.0 for row in rows]
    hottest = sorted((place for place, share in enumerate(shares) if share > 0), key=lambda place: -shares[place])[:_LINES]
    kept = [rows[place] for place in sorted(hottest)]
    files = files_apart(row["file"] for row in kept)
    found = zip(kept, (shares[place] for place in sorted(hottest)), strict=True)
    return _Hottest(
        next(iter(files.values())) if len(files) == 1 else "",
        "samples that found warps there" if sampled else _EXECUTED[counted],
        [(_where(row, files), clean(row.get("text", "")), share) for row, share in found],
    )


def _where(row: Mapping[str, Any], files: Mapping[str, str]) -> str:
    """A line, with its file where there are several; a loop by its place in the code."""
    if "line" not in row:
        return f"loop {row['header']:#x} to {row['end']:#x}"
    return f"{files[row['file']]}:{row['line']}" if len(files) > 1 else f"line {row['line']}"


def _draw_lines(sheet: Axes, place: tuple[float, float, float], hottest: _Hottest, colours: Theme, measure: Measure) -> None:
    """``place``: left, top and width in points of the sheet."""
    (left, top, width), found = place, hottest.rows
    put_text(sheet, left, top - 2, fitted(hottest.file, _SMALL, width, measure), _SMALL, colours.text, va="center_baseline")
    top -= _ROW * bool(hottest.file)
    most = max((share for *_, share in found), default=1.0)
    room = min(max((measure(where, _SMALL)[0] for where, *_ in found), default=0.0), 0.4 * width)
    for index, (where, text, share) in enumerate(found):
        y = top - _ROW * (index + 0.5)
        sheet.plot([left, left + _BAR], [y, y], lw=4.2, color=colours.grid, solid_capstyle="butt")
        length = _BAR * share / most
        sheet.plot([left, left + length], [y, y], lw=4.2, color=colours.compute, solid_capstyle="butt", gid="heat")
        percent = f"{100 * share:.0f} %" if share >= 0.0095 else "< 1 %"
        put_text(sheet, left + _BAR + 24, y, percent, _SMALL, colours.text, ha="right", va="center_baseline")
        at = left + _BAR + 30
        put_text(sheet, at, y, fitted(where, _SMALL, room, measure), _SMALL, colours.faint, va="center_baseline")
        rest = left + width - (at + room + 6)
        if text and rest > 20:
            shown = fitted(text, _SMALL, rest, measure)
            put_text(sheet, at + room + 6, y, shown, _SMALL, colours.text, va="center_baseline")


def _draw_roofline(
    axes: Axes, chart: Mapping[str, Any], loops: Sequence[Mapping[str, Any]], colours: Theme, measure: Measure
) -> None:
    roofs = [
        {**roof, "colour": level_colour(roof["level"], colours) if roof["level"] else colours.compute}
        for roof in chart["roofs"]
    ]
    peaks, slopes = ([roof["value"] for roof in roofs if roof["kind"] == kind] for kind in ("compute", "bandwidth"))
    dots = [(dot["intensity"], dot["performance"]) for dot in (*chart["dots"], *loops)]
    view = View(*layout.limits(dots, peaks, slopes), *_PANEL)
    draw_axes(axes, view, chart["unit"], colours, measure, _PAPER)
    obstacles, top, steepest = Obstacles(view), max(peaks, default=view.y1), max(slopes, default=None)
    for roof in roofs:
        if roof["kind"] == "bandwidth":
            ends = layout.diagonal(view, roof["value"], top)
        else:
            span = layout.horizontal(view, roof["value"], steepest)
            ends = ((span[0], roof["value"]), (span[1], roof["value"])) if span else None
        if ends:
            (ax, ay), (bx, by) = ends
            axes.plot([ax, bx], [ay, by], lw=1.2, color=roof["colour"], zorder=3, gid="roof")
            obstacles.add(layout.segment(view.x(ax), view.y(ay), view.x(bx), view.y(by)), 1.2)
    _draw_dots(axes, chart, loops, view, obstacles, colours)
    for roof in roofs:
        _label_roof(axes, roof, view, (top, steepest), obstacles, colours, measure)
    for loop in sorted(loops, key=lambda row: -row["share_samples"])[:4]:
        _label_loop(axes, loop, view, obstacles, colours, measure)


def _draw_dots(
    axes: Axes, chart: Mapping[str, Any], loops: Sequence[Mapping[str, Any]], view: View, obstacles: Obstacles, colours: Theme
) -> None:
    """Diamonds of the loops, then the kernel's dots in the colours of their levels."""
    rows = [(loop, "D", chart["nearest"], _DIAMOND, "loop") for loop in loops]
    rows += [(dot, "o", dot["level"], _DOT, "dot") for dot in chart["dots"]]
    for row, marker, level, size, kind in rows:
        x, y = row["intensity"], row["performance"]
        if not view.holds(x, y):
            continue
        edge = colours.text if kind == "loop" else colours.ground
        hue = level_colour(level, colours)
        axes.plot([x], [y], ls="none", marker=marker, ms=size, mfc=hue, mec=edge, mew=0.7, zorder=6, gid=kind)
        obstacles.add(Box(view.x(x), view.y(y), size + 1, size + 1), 1.0)


def _label_roof(
    axes: Axes,
    roof: Mapping[str, Any],
    view: View,
    most: tuple[float, float | None],
    obstacles: Obstacles,
    colours: Theme,
    measure: Measure,
) -> None:
    name = shorten(roof["label"], 30)
    for text in (f"{name} {roof['text']}", name):
        extent = measure(text, _LABEL)
        if roof["kind"] == "compute":
            places = layout.along_horizontal(view, [roof["value"]], most[1], *extent)
        else:
            places = layout.along_diagonal(view, [roof["value"]], most[0], *extent)
        if box := obstacles.place(places):
            _text(axes, text, box, view, roof["colour"], colours)
            return


def _label_loop(
    axes: Axes, loop: Mapping[str, Any], view: View, obstacles: Obstacles, colours: Theme, measure: Measure
) -> None:
    x, y = view.x(loop["intensity"]), view.y(loop["performance"])
    lines = f"lines {loop['first_line']} to {loop['last_line']}" if loop["first_line"] > 0 else f"loop {loop['header']:#x}"
    box = obstacles.place(layout.around(x, y, *measure(lines, _LABEL), 7, reach=4), margin=0.6, limit=4.0)
    if box:
        _text(axes, lines, box, view, colours.text, colours)


def _text(axes: Axes, text: str, box: Box, view: View, colour: str, colours: Theme) -> None:
    put_text(
        axes, box.x / view.width, box.y / view.height, text, _LABEL, colour, transform=axes.transAxes, ha="center", va="center",
        rotation=box.angle, rotation_mode="anchor", zorder=7, gid="label",
        bbox={"boxstyle": "square,pad=0.05", "facecolor": colours.ground, "edgecolor": "none", "alpha": 0.75},
    )  # fmt: skip
