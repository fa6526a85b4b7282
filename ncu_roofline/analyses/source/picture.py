"""The source view as a chart of marks: the roofline of the kernel with its loops, beside the lines that are hottest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ncu_roofline.analyses.hierarchical.picture import axes_of, plain_roofs
from ncu_roofline.analyses.hierarchical.style import (
    COUNTED,
    level_order,
    level_style,
    precision_label,
    roof_rows,
    roofs_of,
    tops,
)
from ncu_roofline.analyses.source.code import INT32, INTEGERS, WORKS
from ncu_roofline.analyses.source.frames import SourceRoofline
from ncu_roofline.analyses.source.text import Launch, launches, line_text, place_text
from ncu_roofline.base.texts import clean, conjoined, listed, shorten
from ncu_roofline.base.units import format_value
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.verdict import MOST_OF_TIME
from ncu_roofline.formats.sass.instructions import SIZE
from ncu_roofline.model.work import MIXED
from ncu_roofline.rendering import chart as marks
from ncu_roofline.rendering.chart import Chart, Listing, Panel, Point, Scale, Text
from ncu_roofline.rendering.frames import rows as rows_of
from ncu_roofline.rendering.page import number
from ncu_roofline.rendering.picture import chart_figure, pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINES = 16  # lines in the list
_NEARLY_ALL = 0.995  # of what is counted: together the bars are told to be that much below it
_FLOP, _OP = "flop", "op"


def figure(frames: SourceRoofline, *, title: str | None = None, theme: str = "light", dpi: float | None = None) -> Figure:
    """The launch that took longest as a matplotlib figure of its own, outside pyplot.

    Raises ValueError for an unknown theme.
    """
    return chart_figure(source_chart(frames), title=title, theme=theme, dpi=dpi)


render_png, render_svg, render_pdf = pictures(figure)


def chart_of(launch: Launch) -> dict[str, Any]:
    """Dots and roofs of a launch; the dots are those of the precision with most work, of what performance counts.

    What its loops do has roofs even where the kernel has no dot, and what they don't has none: counters of the kernel take some
    loads of constants for work.
    """
    roofline, integers, loops = launch.frames.roofline, launch.works == INTEGERS, launch.rows("loops")
    counts = (INT32,) if integers else WORKS
    done = {kind for loop in loops for kind in counts if loop[f"work_{kind}"] > 0}
    none = {kind for kind in counts if loops and all(loop[f"work_{kind}"] == 0 for loop in loops)}
    alone = len(none) >= len(WORKS) - 1 and "tensor" in none  # then nothing is mixed; tensor types may be among themselves
    never = {*WORKS, MIXED} if integers else none | {INT32} | ({MIXED} if alone else set())
    about = ("precision", "level", "unit", "work", "intensity", "performance", "attainable", "fraction")
    every = rows_of(roofline, "points", "report", "launch", "kernel", "device", *about)
    points = [dict(zip(about, row[4:], strict=True)) for row in every if row[:4] == launch.key and _kind(row[4]) not in never]
    drawn = [point for point in points if all(0 < point[name] < math.inf for name in ("intensity", "performance"))]
    # Floating-point work before integers.
    most = max(drawn, key=lambda point: (point["unit"] == _FLOP, point["work"]), default=None)
    unit = most["unit"] if most else _OP if integers else _FLOP
    precisions = {point["precision"] for point in points if point["unit"] == unit} or done
    # Of a row of roofs the fourth is the precision.
    given = [row for row in roof_rows(roofline).get(launch.key[3], ()) if _kind(row[3]) not in never]
    nearest, counted = load_spec().chain[0], COUNTED.get(unit, COUNTED[_FLOP])
    numbers = ("intensity", "performance", "attainable", "fraction")
    roofs = []
    for roof in tops(roofs_of(given, precisions, unit), ()):  # of compute roofs the highest of each precision
        if roof.kind != "wall":
            shown = {name: getattr(roof, name) for name in ("kind", "level", "label", "unit")}
            shown["hues"] = _hues(roof.level) if roof.kind == "bandwidth" else None
            shown["origin"] = "measured" if "measured" in roof.bands else "theoretical"
            roofs.append({**shown, "value": number(roof.best.high), "text": roof.best.text(roof.unit)})
    return {
        "unit": unit,
        "label": precision_label(most["precision"]) if most else "",
        "axes": [counted.intensity_axis, counted.intensity_unit, f"{unit}/s"],
        "dots": [
            {"level": point["level"], **{name: number(point[name]) for name in numbers}}
            for point in drawn
            if most and point["precision"] == most["precision"]
        ],
        "roofs": roofs,
        "levels": {level: _hues(level) for level in level_order({point["level"] for point in points} | {nearest})},
        "nearest": nearest,
    }


def _kind(precision: str) -> str:
    return precision.partition(".")[0]


def _hues(level: str) -> list[str]:
    style = level_style(level)
    return [style.label, style.light, style.dark]


def source_chart(frames: SourceRoofline) -> Chart:
    """The roofline of the launch that took longest, and its hottest lines: roofs, diamonds of the loops with their lines or at
    least their numbers, the kernel's dots at its levels.
    """
    found = launches(frames)
    if not found:
        return Chart("Source roofline", (), "no launch has counts by instruction", [], [], {}, frames.caveats())
    launch, chart = found[0], chart_of(found[0])
    every = [row for row in launch.rows("loops") if row["loop"] >= 0]
    loops = [row for row in every if row["performance"] > 0]
    named = ((roof["kind"], roof["level"], roof["value"], shorten(roof["label"], 30), roof["text"]) for roof in chart["roofs"])
    shown: list[marks.Mark] = [*plain_roofs(list(named))]
    shown += (
        Point(role="dot", hue=level_style(dot["level"]), x=dot["intensity"], y=dot["performance"]) for dot in chart["dots"]
    )
    for loop in sorted(loops, key=lambda row: -row["share_samples"]):
        place, first, last = (loop["intensity"], loop["performance"]), loop["first_line"], loop["last_line"]
        where = f"lines {first}-{last}" if last > first else f"line {first}"
        labels = (f"{loop['loop']}: {where if first > 0 else hex(loop['header'])}", str(loop["loop"]))
        shown.append(Point(role="loop", hue=level_style(chart["nearest"]), x=place[0], y=place[1]))
        shown.append(Text(role="loop-name", labels=labels, places=(place,)))
    panel = Panel("", *axes_of(chart["unit"]), shown, "roofline")
    listing, bars = _hottest(launch)
    speeds = [f"{loop['loop']}: {format_value(loop['performance'], chart['axes'][2], 3)}" for loop in loops]
    diamonds = "Diamonds: loops that hold most of the samples, by their traffic at L1"
    levels = [chart["levels"][dot["level"]][0] for dot in chart["dots"]]
    # Why loops have no performance: those that hold most of what is counted, or where none has a performance all.
    why: dict[str, list[str]] = {}
    for row in every:
        share = row["share_samples"] if row["share_samples"] >= 0 else row["share_executed"]
        enough = not loops or share >= MOST_OF_TIME
        if row["executed"] != 0 and row["notes"] and not row["performance"] > 0 and share >= 0 and enough:
            why.setdefault(clean(row["notes"]), []).append(str(row["loop"]))
    notes = [
        *frames.caveats(),
        launch.limit,
        bars,
        f"{diamonds} ({listed(speeds)})." if loops else "",
        f"Round dots: the kernel by its traffic at {conjoined(levels)}, in the colours of these roofs." if levels else "",
        f"The launch of {len(found)} that took longest; the page has all." if len(found) > 1 else "",
        *(f"No diamond of loop{'s' if len(some) > 1 else ''} {listed(some)}: {note}." for note, some in why.items()),
    ]
    title = f"Source roofline of {launch.kernel}".removesuffix(" of ")
    facts = " \N{MIDDLE DOT} ".join(launch.heading["facts"])
    return Chart(title, (), facts, [[panel, listing]], [], {}, [note for note in notes if note])


def _hottest(launch: Launch) -> tuple[Listing, str]:
    """The lines with most samples, else most instructions, in the order of files and lines, then code without line.

    A launch without lines has its loops instead.  And what the bars are, "" without any.
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
    longest, bars = max((row[share] for row in kept), default=1.0), []
    for row in kept:
        where, text = f"line {row.get('line')}", line_text(row, launch.names) if launch.has_lines else ""
        if not launch.has_lines:
            where = f"loop {row['loop']}: {row['header']:#x} to {row['end'] - SIZE:#x}"
        elif len(files) > 1 or row["line"] <= 0:
            where = place_text(row["file"], row["line"], launch.frames.called)
        percent = f"{100 * row[share]:.0f} %" if row[share] >= 0.0095 else "< 1 %"
        bars.append(marks.Row(where, [Scale([(row[share] / longest, None)], text=percent)], text))
    listing = Listing(files.pop() if len(files) == 1 else "", (), bars)
    of = (
        "samples that found warps"
        if sampled
        else f"{'warp' if launch.counted == 'executed' else 'thread'} instructions executed"
    )
    together = math.fsum(row[share] for row in kept)
    rest = f", together {100 * together:.0f} % of them" if together < _NEARLY_ALL else ""
    return listing, f"Bars: share of the {of} there{rest}." if bars else ""
