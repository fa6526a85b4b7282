"""The source view as a chart of marks: the roofline of the kernel with its loops, beside the lines that are hottest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ncu_roofline.analyses.hierarchical.marks import axes_of, plain_roofs
from ncu_roofline.analyses.hierarchical.style import level_style
from ncu_roofline.analyses.source.chart import chart_of
from ncu_roofline.analyses.source.frames import SourceRoofline
from ncu_roofline.analyses.source.launches import Launch, Row, launches, longest_first
from ncu_roofline.analyses.source.text import line_text, place_text
from ncu_roofline.base.texts import clean, conjoined, listed, shorten
from ncu_roofline.base.units import format_value
from ncu_roofline.chips.thresholds import MOST_OF_TIME
from ncu_roofline.formats.sass.instructions import SIZE
from ncu_roofline.rendering import chart as marks
from ncu_roofline.rendering.chart import Chart, Listing, Panel, Point, Scale, Text
from ncu_roofline.rendering.chart_picture import chart_figure
from ncu_roofline.rendering.picture import pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINES = 16  # lines in the list
_LOOPS = "Diamonds: loops that hold most of the samples, by their traffic at L1"
_NEARLY_ALL = 0.995  # of what is counted: together the bars are told to be that much below it
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
    return chart_figure(lambda less: None if less else source_chart(frames), title=title, theme=theme, dpi=dpi)


render_png, render_svg, render_pdf = pictures(figure)


def source_chart(frames: SourceRoofline) -> Chart:
    """The roofline of the launch that took longest, and its hottest lines."""
    found = longest_first(launches(frames))
    if not found:
        return Chart("Source roofline", (), "no launch has counts by instruction", [], [], {}, frames.caveats())
    launch = found[0]
    hottest, loops, chart = _hottest(launch), _loops(launch), chart_of(launch)
    most = max((share for *_, share in hottest.rows), default=1.0)
    rows = []
    for where, text, share in hottest.rows:
        scale = Scale([(share / most, None)], text=f"{100 * share:.0f} %" if share >= 0.0095 else "< 1 %")
        rows.append(marks.Row(where, [scale], end=text))
    parts = (0.25, 0.52) if any(text for _, text, _ in hottest.rows) else (0.5, 0.0)
    panel = Panel("", *axes_of(chart["unit"]), list(_marks(chart, loops)), "roofline")
    notes = [*frames.caveats(), launch.limit, *_notes(hottest, len(found), chart, loops), *_without_diamonds(launch)]
    about = launch.heading
    return Chart(
        f"Source roofline of {about['kernel']}".removesuffix(" of "),
        (),
        " \N{MIDDLE DOT} ".join(about["facts"]),
        [[panel, Listing(hottest.file, (), rows, parts=parts, least=0.0)]],
        [],
        {},
        [note for note in notes if note],
    )


def _marks(chart: Mapping[str, Any], loops: Sequence[Row]) -> Iterator[marks.Mark]:
    """Roofs, diamonds of the loops with their lines or at least their numbers, the kernel's dots at its levels."""
    yield from plain_roofs(
        [(roof["kind"], roof["level"], roof["value"], shorten(roof["label"], 30), roof["text"]) for roof in chart["roofs"]]
    )
    for dot in chart["dots"]:
        yield Point(role="dot", hue=level_style(dot["level"]), x=dot["intensity"], y=dot["performance"])
    for loop in sorted(loops, key=lambda row: -row["share_samples"]):
        place, first, last = (loop["intensity"], loop["performance"]), loop["first_line"], loop["last_line"]
        where = f"lines {first}-{last}" if last > first else f"line {first}"
        labels = (f"{loop['loop']}: {where if first > 0 else hex(loop['header'])}", str(loop["loop"]))
        yield Point(role="loop", hue=level_style(chart["nearest"]), x=place[0], y=place[1])
        yield Text(role="loop-name", labels=labels, places=(place,))


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
