"""The source view as png, svg or pdf: the roofline of the kernel with its loops, beside the lines that are hottest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ncu_roofline.analyses.hierarchical.drawing import draw_axes
from ncu_roofline.analyses.hierarchical.looks import level_colour
from ncu_roofline.analyses.source.chart import chart_of
from ncu_roofline.analyses.source.frames import SourceRoofline
from ncu_roofline.analyses.source.launches import Launch, Row, launches, longest_first
from ncu_roofline.analyses.source.text import line_text, place_text
from ncu_roofline.base.texts import clean, conjoined, listed, shorten
from ncu_roofline.base.units import format_value
from ncu_roofline.chips.thresholds import MOST_OF_TIME
from ncu_roofline.formats.sass.instructions import SIZE
from ncu_roofline.rendering import layout
from ncu_roofline.rendering.layout import Box, Measure, Obstacles, View
from ncu_roofline.rendering.lettering import fitted, measurer, put_text, wrapped
from ncu_roofline.rendering.paper import DEFAULT, Paper
from ncu_roofline.rendering.picture import header_height, pictures, put_header, sheet_over
from ncu_roofline.rendering.style import THEMES, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANEL, _LEFT, _FOOT, _GAP = (196.0, 200.0), 44.0, 30.0, 16.0  # points: axes, and around them
_ROW, _LINES = 11.4, 16  # points of a line in the list; how many there are
_NOTE_LINES = 7
_BAR = 34.0
_SMALL, _LABEL = 6.2, 6.2
_PAPER = Paper(font=7.0)
_DOT, _DIAMOND = 5.0, 7.0
_DEAR = 8.0  # price of covering a dot: names of loops that would are cut to their numbers
_LOOPS = "Diamonds: loops that hold most of the samples, by their traffic at L1"
_NEARLY_ALL = 0.995  # of what is counted: together the bars are told to be that much below it
_FAR = 45.0  # points from a diamond to its name at most
_EXECUTED = {"executed": "warp instructions executed there", "threads": "thread instructions executed there"}


class _Hottest(NamedTuple):
    """What is listed: where, text and share of each row; the only ``file``, "" of several; what the shares are ``of``."""

    file: str = ""
    of: str = ""
    rows: Sequence[tuple[str, str, float]] = ()


def figure(frames: SourceRoofline, *, title: str = "", theme: str = "light", dpi: float | None = None) -> Figure:
    """The launch that took longest as a matplotlib figure of its own, outside pyplot.

    Raises ValueError for an unknown theme.
    """
    if theme not in THEMES:
        raise ValueError(f"theme {theme!r} is not one of {', '.join(THEMES)}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    colours, measure, width = THEMES[theme], measurer(), DEFAULT.width
    found = longest_first(launches(frames))
    launch = found[0] if found else None
    hottest = _hottest(launch) if launch else _Hottest()
    loops = _loops(launch) if launch else []
    chart = chart_of(launch) if launch else {}
    said = [
        *frames.caveats(),
        launch.limit if launch else "",
        *_notes(hottest, len(found), chart, loops),
        *_without_diamonds(launch),
    ]
    lines = wrapped(said, _SMALL, width - 2 * DEFAULT.edge, _NOTE_LINES, measure)
    head, foot = header_height(1, DEFAULT) + 6, 8.0 + 8.6 * len(lines)
    height = head + _PANEL[1] + _FOOT + foot
    made = Figure(figsize=(width / 72, height / 72), dpi=dpi or DEFAULT.dpi, facecolor=colours.ground)
    FigureCanvasAgg(made)  # so that it can be drawn outside pyplot
    sheet = sheet_over(made, width, height)
    about = launch.heading if launch else {"kernel": "", "facts": ["no launch has counts by instruction"]}
    name = clean(title) or f"Source roofline of {about['kernel']}".removesuffix(" of ")
    put_header(sheet, name, " \N{MIDDLE DOT} ".join(about["facts"]), colours, measure)
    for index, line in enumerate(reversed(lines)):
        put_text(sheet, DEFAULT.edge, 5 + 8.6 * index, line, _SMALL, colours.faint, va="bottom")
    if launch is None:
        return made
    place = (_LEFT / width, (foot + _FOOT) / height, _PANEL[0] / width, _PANEL[1] / height)
    _draw_roofline(made.add_axes(place, facecolor="none"), chart, loops, colours, measure)
    left = _LEFT + _PANEL[0] + _GAP
    _draw_lines(sheet, (left, height - head, width - DEFAULT.edge - left), hottest, colours, measure)
    return made


render_png, render_svg, render_pdf = pictures(figure)


def _loops(launch: Launch) -> list[Row]:
    """The loops that have a performance, with the intensity of what it counts."""
    rows = launch.rows("loops")
    pairs = zip(rows, launch.intensities(rows), strict=True)
    return [{**row, "intensity": one} for row, one in pairs if row["loop"] >= 0 and row["performance"] > 0]


def _notes(hottest: _Hottest, launches: int, chart: Mapping[str, Any], loops: Sequence[Row]) -> list[str]:
    speeds = [f"{loop['loop']}: {format_value(loop['performance'], chart['axes'][2], 3)}" for loop in loops]
    levels = [chart["levels"][dot["level"]][0] for dot in chart.get("dots", ())]
    together = math.fsum(share for *_, share in hottest.rows)
    rest = f", together {100 * together:.0f} % of them" if together < _NEARLY_ALL else ""
    return [
        f"Bars: share of the {hottest.of}{rest}." if hottest.rows else "",
        f"{_LOOPS} ({listed(speeds)})." if loops else "",
        f"Round dots: the kernel by its traffic at {conjoined(levels)}, in the colours of these roofs." if levels else "",
        f"The launch of {launches} that took longest; the page has all." if launches > 1 else "",
    ]


def _without_diamonds(launch: Launch | None) -> list[str]:
    """Why loops have no performance: those that hold most of what is counted, or where none has a performance all."""
    rows = [row for row in launch.rows("loops") if row["loop"] >= 0 and row["executed"] != 0] if launch else []
    least = MOST_OF_TIME if any(row["performance"] > 0 for row in rows) else 0.0
    why: dict[str, list[str]] = {}
    for row in rows:
        share = row["share_samples"] if row["share_samples"] >= 0 else row["share_executed"]
        if row["notes"] and not row["performance"] > 0 and share >= least:
            why.setdefault(clean(row["notes"]), []).append(str(row["loop"]))
    return [f"No diamond of loop{'s' if len(loops) > 1 else ''} {listed(loops)}: {note}." for note, loops in why.items()]


def _hottest(launch: Launch) -> _Hottest:
    """The lines with most samples, else most instructions, in the order of files and lines, then code without line.

    A launch without lines has its loops instead.
    """
    if launch.has_lines:
        rows = sorted(launch.rows("lines"), key=lambda row: (row["line"] < 0, row["file"], row["line"]))
    else:
        rows = [row for row in launch.rows("loops") if row["loop"] >= 0]
    sampled = any(row["share_samples"] > 0 for row in rows)
    share = "share_samples" if sampled else "share_executed"
    most = sorted((place for place, row in enumerate(rows) if row[share] > 0), key=lambda place: -rows[place][share])[:_LINES]
    kept = [rows[place] for place in sorted(most)]
    files = {launch.frames.called(row["file"]) for row in kept if row["file"]}
    listed = []
    for row in kept:
        if not launch.has_lines:
            where, text = f"loop {row['loop']}: {row['header']:#x} to {row['end'] - SIZE:#x}", ""
        elif len(files) == 1 and row["line"] > 0:
            where, text = f"line {row['line']}", line_text(row, launch.function_names)
        else:
            where, text = place_text(row["file"], row["line"], launch.frames.called), line_text(row, launch.function_names)
        listed.append((where, text, row[share]))
    of = "samples that found warps there" if sampled else _EXECUTED[launch.counted]
    return _Hottest(files.pop() if len(files) == 1 else "", of, listed)


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


def _draw_roofline(axes: Axes, chart: Mapping[str, Any], loops: Sequence[Row], colours: Theme, measure: Measure) -> None:
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
    # Diamonds of the loops, then the kernel's dots in the colours of their levels.
    marks = [(loop, "D", level_colour(chart["nearest"], colours), colours.text, _DIAMOND, "loop") for loop in loops]
    marks += [(dot, "o", level_colour(dot["level"], colours), colours.ground, _DOT, "dot") for dot in chart["dots"]]
    for row, marker, hue, edge, size, kind in marks:
        x, y = row["intensity"], row["performance"]
        if view.holds(x, y):
            axes.plot([x], [y], ls="none", marker=marker, ms=size, mfc=hue, mec=edge, mew=0.7, zorder=8, gid=kind)
            obstacles.add(Box(view.x(x), view.y(y), size + 1, size + 1), _DEAR)
    for roof in roofs:
        name = shorten(roof["label"], 30)
        for text in (f"{name} {roof['text']}", name):
            if roof["kind"] == "compute":
                places = layout.along_horizontal(view, [roof["value"]], steepest, *measure(text, _LABEL))
            else:
                places = layout.along_diagonal(view, [roof["value"]], top, *measure(text, _LABEL))
            if box := obstacles.place(places):
                _text(axes, text, box, view, roof["colour"], colours)
                break
    for loop in sorted(loops, key=lambda row: -row["share_samples"]):
        if view.holds(loop["intensity"], loop["performance"]):
            _label_loop(axes, loop, view, obstacles, colours, measure)


def _label_loop(axes: Axes, loop: Row, view: View, obstacles: Obstacles, colours: Theme, measure: Measure) -> None:
    """Its number with its lines, or alone where there is no room; a thin line leads to what does not stand beside it."""
    x, y = view.x(loop["intensity"]), view.y(loop["performance"])
    first, last = loop["first_line"], loop["last_line"]
    where = f"lines {first}-{last}" if last > first else f"line {first}"
    name = f"{loop['loop']}: {where if first > 0 else hex(loop['header'])}"
    for text, limit in ((name, _DEAR), (str(loop["loop"]), math.inf)):
        places = layout.callouts(x, y, *measure(text, _LABEL), _DIAMOND, _FAR)
        if box := obstacles.place(places, margin=0.6, limit=limit, dot=(x, y)):
            if ends := layout.leader(x, y, box):
                xs, ys = zip(*((x / view.width, y / view.height) for x, y in ends), strict=True)
                axes.plot(xs, ys, transform=axes.transAxes, lw=0.6, color=colours.faint, zorder=5, gid="leader")
            _text(axes, text, box, view, colours.text, colours)
            return


def _text(axes: Axes, text: str, box: Box, view: View, colour: str, colours: Theme) -> None:
    put_text(
        axes, box.x / view.width, box.y / view.height, text, _LABEL, colour, transform=axes.transAxes, ha="center", va="center",
        rotation=box.angle, rotation_mode="anchor", zorder=7, gid="label",
        bbox={"boxstyle": "square,pad=0.05", "facecolor": colours.ground, "edgecolor": "none", "alpha": 0.75},
    )  # fmt: skip
