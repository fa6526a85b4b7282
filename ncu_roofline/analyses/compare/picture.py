"""A comparison as a chart (rooflines with dots before and after, the kernels that matter with times and shares) and as a page.

The page is one self-contained html file, its chart drawn here, without plotly and without any network.  Of two GPU models only
the shares of the roofs are drawn.  Three reports or more: the last one against the baseline.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ncu_roofline.analyses.compare import frames
from ncu_roofline.analyses.compare import text as said
from ncu_roofline.analyses.compare.frames import Comparison
from ncu_roofline.analyses.compare.text import Pair, Row
from ncu_roofline.analyses.hierarchical.picture import axes_of, plain_roofs
from ncu_roofline.analyses.hierarchical.style import covers, level_style, precision_label, precision_order
from ncu_roofline.base.texts import clean, one_line, plural, shorten
from ncu_roofline.base.units import format_value, percent, time_text
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.spec import GAIN, LOSS
from ncu_roofline.model.columns import UNUSED
from ncu_roofline.rendering import chart as marks
from ncu_roofline.rendering.chart import THEMES, Block, Chart, Key, Listing, Panel, Place, Scale
from ncu_roofline.rendering.frames import records
from ncu_roofline.rendering.page import number, self_contained
from ncu_roofline.rendering.picture import chart_figure, pictures, saved

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 7.16 * 72  # points: both columns of a two-column paper
WIDE = 700.0  # points: from here on the list stands beside a roofline
MAX_PANELS = 4
_NAMED, _BRIEF = 34, 18  # characters of a name at a dot
_ROOM = 8.0  # the axis goes on to so many times the highest intensity, for names
_CHANGED = {frames.FASTER: GAIN, frames.CLOSER: GAIN, frames.SLOWER: LOSS, frames.FURTHER: LOSS}
WIDTHS = {"wide": 800.0, "medium": 515.0, "narrow": 240.0}
"""Points that the chart is wide, by what the page shows it for: screens, windows and paper, phones."""
_NAME = 400  # characters of a full name


def figure(
    comparison: Comparison,
    *,
    title: str = "",
    theme: str = "light",
    top: int = said.MOST,
    points: float = WIDTH,
    heading: bool = True,
    dpi: float | None = None,
) -> Figure:
    """The chart as a matplotlib figure of its own, ``points`` wide, outside pyplot; ``heading``: with title and subtitle.

    Raises ValueError for an unknown theme.
    """
    chart = comparison_chart(comparison, top, points >= WIDE, clean(title))
    return chart_figure(chart, theme=theme, bare=not heading, width=points / 72, dpi=dpi)


def _alone(comparison: Comparison, *, title: str = "", theme: str = "light", top: int = said.MOST, dpi: Any = None) -> Figure:
    return figure(comparison, title=title, theme=theme, top=top, dpi=dpi)


render_png, render_svg, render_pdf = pictures(_alone)


def comparison_chart(comparison: Comparison, top: int = said.MOST, wide: bool = False, title: str = "") -> Chart:
    """``top`` kernels of the pair that is shown, first those that matter, then those of most time."""
    all_pairs = said.pairs(comparison)
    pair = said.main_pair(all_pairs)
    if pair is None:
        return Chart(title or "Comparison", (), "nothing was compared", [], [], {}, [])
    shown, rest = said.matters(pair)
    longest = sorted((row for row in rest if row["time_share"] >= frames.SMALL_SHARE), key=lambda row: -row["time_share"])
    kept = {row["number"] for row in [*shown, *longest][:top]}
    chosen = [row for row in pair.rows if row["number"] in kept] or pair.rows[:1]
    answer, _, more = said.headline(pair).partition("; ")
    about = "; ".join(filter(None, (more, said.about(pair))))
    panels = _panels(comparison, pair, chosen) if pair.same_gpu else []
    drawn, listing = panels[:MAX_PANELS], _listing(pair, chosen, said.names_of(comparison))
    blocks: list[Sequence[Block]] = [*(drawn[at : at + 2] for at in range(0, len(drawn), 2)), [listing]]
    if wide and len(drawn) == 1:
        blocks = [[*drawn, listing]]
    legend = said.legend(pair)
    notes = [f"{legend[:1].upper()}{legend[1:]}."]
    if panels:
        where = "Dots stand at the level that binds in the new report, else at device memory"
        notes.append(f"{where}; roofs are those of the new report.")
    notes += [f"{note}." for note in pair.said]
    if len(pair.rows) > len(chosen):
        notes.append(f"{plural(len(pair.rows) - len(chosen), 'row')} of less change or time left out.")
    if len(panels) > MAX_PANELS:
        notes.append(f"{plural(len(panels) - MAX_PANELS, 'roofline')} left out for lack of room.")
    if len(all_pairs) > 1:
        notes.append(f"One of {len(all_pairs)} pairs of reports; the page and the table have the others.")
    sentences = [f"{answer}: {about}" if title else about]
    return Chart(title or answer, sentences, "", blocks, [], {str(row["number"]): "" for row in chosen}, notes)


def _listing(pair: Pair, chosen: Sequence[Row], names: Mapping[str, str]) -> Listing:
    """Run times of all launches and shares of the roof as dots before and after, where they may be compared and are known."""
    longest = max((time for row in chosen for time in (row["before"], row["after"]) if math.isfinite(time)), default=0.0)
    timed = pair.same_gpu and longest > 0
    shared = not timed or any(math.isfinite(row[name]) for row in chosen for name in ("fraction_before", "fraction"))
    rows = []
    for row in chosen:
        hue, scales = _CHANGED.get(row["outcome"]), []
        if timed:
            scales.append(Scale(dots=(row["before"] / longest, row["after"] / longest), hue=hue, text=row["time"]))
        if shared:
            dots = (row["fraction_before"], row["fraction"])
            scales.append(Scale(dots=dots, hue=None if timed else hue, text=row["share"]))
        rows.append(marks.Row(row["label"], scales, row["limits"], row["change"], hue, str(row["number"])))
    heads = [f"run time, 0 to {format_value(longest, 'second', 3)}"] * timed + ["share of its roof, 0 to 100 %"] * shared
    keys = [Key(names[pair.whole["baseline"]], "before"), Key(names[pair.whole["report"]], "after")]
    return Listing("", (*heads, ""), rows, keys)


def _panels(comparison: Comparison, pair: Pair, chosen: Sequence[Row]) -> list[Panel]:
    """A roofline of each GPU and group of precisions, with the kernels that both reports have: a hollow dot before and a full
    one after, each of the precision with most work in its report, and an arrow between.

    Precisions of tensor cores are a group, the others of floating-point numbers another one; what counts other operations has
    axes of its own.
    """
    cells = {(row["row"], row["precision"], row["level"]): row for row in records(comparison.level_columns)}
    memory, levels = said.level_of(comparison), {level.id for level in load_spec().levels}
    groups: dict[tuple[str, str], list[tuple[Row, str, Place, Place | None]]] = {}
    for row in [row for row in chosen if row["time_share"] >= frames.SMALL_SHARE] or chosen:
        level = row["binds"] if row["binds"] in levels else memory
        places: list[Place | None] = []
        for suffix in ("_before", ""):  # a place on logarithmic axes
            cell = cells.get((row["number"], row[f"precision{suffix}"], level))
            x, y = (cell[f"{name}{suffix}"] if cell else 0.0 for name in ("intensity", "performance"))
            places.append((x, y) if 0 < x < math.inf and 0 < y < math.inf else None)
        before, after = places
        if row["matched"] and after:
            precision = row["precision"]
            alike = _unit(precision) == _unit(row["precision_before"])  # else the dots are not of one axis
            group = precision if _unit(precision) != "flop" else "tensor" if precision.startswith("tensor") else ""
            groups.setdefault((clean(row["device"]), group), []).append((row, level, after, before if alike else None))
    roofs = [row for row in records(comparison.roof_columns) if row["step"] == pair.whole["step"]]
    panels = []
    for (device, group), moves in sorted(groups.items(), key=lambda item: item[0]):
        named = {row["precision"] for row, *_ in moves}
        numbers = {row["number"] for row, *_ in moves}
        precisions = {precision for number, precision, _ in cells if number in numbers} - {""} if "mixed" in named else named
        mine = [row for row in roofs if clean(row["device"]) == device]
        bandwidths = {level for _, level, *_ in moves} | {memory}
        drawn: list[marks.Mark] = [*plain_roofs(_roofs(mine, precisions, bandwidths, _unit(group)))]
        for row, level, after, before in moves:
            name, hue = str(row["number"]), level_style(level)
            texts = tuple(f"{shorten(row['label'], length)} {row['change']}" for length in (_NAMED, _BRIEF))
            drawn.append(marks.Text(role="name", labels=texts, places=(after,), key=name))
            drawn.append(marks.Point(role="dot", hue=hue, x=after[0], y=after[1], name=name))
            if before:
                drawn.append(marks.Point(role="dot", hue=hue, x=before[0], y=before[1], name=name, fill="none"))
                drawn.append(marks.Line(role="move", places=(before, after)))
        title = ", ".join(precision_label(precision) for precision in sorted(named, key=precision_order))
        title += f"; {device}" if len({device for device, _ in groups}) > 1 else ""
        panels.append(Panel(title, *axes_of(_unit(group)), drawn, "roofline", _ROOM))
    return panels


def _unit(precision: str) -> str:
    known = {one.id: one.unit for one in load_spec().precisions}
    return next((unit for name, unit in known.items() if precision == name or precision.startswith(f"{name}.")), "flop")


def _roofs(rows: Iterable[Row], precisions: set[str], levels: set[str], unit: str) -> list[tuple[str, str, float, str, str]]:
    """The roofs of some precisions and levels, the one that counts of each; of several precisions the highest of each."""
    best: dict[tuple[str, str], Row] = {}
    for row in rows:
        compute = row["kind"] == "compute" and row["unit"] == f"{unit}/s" and covers(row["precision"], precisions - {"mixed"})
        drawn = compute or (row["kind"] == "bandwidth" and row["level"] in levels)
        if drawn and 0 < row["value"] < math.inf and row["origin"] != UNUSED:
            key = row["kind"], row["precision"] if compute and len(precisions) > 1 else row["roof"]
            best[key] = max(best.get(key, row), row, key=lambda one: (one["origin"] == "measured", one["value"]))
    texts = (
        f"{format_value(one['value'], one['unit'], 3)}{' measured' * (one['origin'] == 'measured')}" for one in best.values()
    )
    facts = zip(best.values(), texts, strict=True)
    return [(row["kind"], row["level"], row["value"], shorten(clean(row["label"]), 30), text) for row, text in facts]


def render_html(comparison: Comparison, *, title: str = "", theme: str = "auto") -> bytes:
    """The page as UTF-8 bytes; of three reports or more chart and table show the last against the baseline.

    Nothing of the frames is trusted: it reaches the page escaped or as JSON.  Raises ValueError for an unknown theme.
    """
    pairs, lines = said.pairs(comparison), said.threshold_lines(comparison)
    pair = said.main_pair(pairs) or Pair({}, "", [])
    heading = one_line(title) or pair.title or "Comparison"
    values: dict[str, Any] = dict.fromkeys(("subtitle", "said", "legend"), "")
    values |= {"headline": "Nothing was compared", "charts": {}, "notes": []}
    # Colours of the light chart and what stands for them on dark ground; its ground is that of the card it stands on.
    light, dark = THEMES["light"], THEMES["dark"]
    roles = ("ground", "text", "faint", "grid", "compute", "connector")
    pairs_of_hues = [(getattr(light, role), getattr(dark, role)) for role in roles]
    styles: list[Any] = [GAIN, LOSS, *(level_style(level.id) for level in load_spec().levels)]
    themed = {one.lower(): other for one, other in [*pairs_of_hues, *((hue.light, hue.dark) for hue in styles)]}
    if pairs:
        values = {
            "headline": said.headline(pair),
            "subtitle": said.about(pair, titled=heading != pair.title),
            "said": one_line(said.details(pair)),
            "legend": said.legend(pair),
            "charts": {name: _chart(comparison, name, themed) for name in WIDTHS},
            "notes": list(map(one_line, said.notes_of(pair))),
        }
    themed[light.ground.lower()] = "var(--card)"
    return self_contained(
        __package__,
        ("page.js",),
        _table(comparison, pair) if pairs else {"columns": []},
        styles=("page.css", "compare.css"),
        bundle=False,
        title=heading,
        theme=theme,
        **values,
        hues=[(f"--hue-{one[1:]}", other if other == "var(--card)" else one, other) for one, other in themed.items()],
        steps=[(each.title, said.headline(each)) for each in pairs],
        tripped=any(line.startswith("tripped: ") for line in lines),
        thresholds=list(map(one_line, lines)),
        reports=list(said.names_of(comparison).values()),
        row=comparison.nouns[0],
        counted=comparison.nouns[2],
        of_run=comparison.of_run,
    )


def _table(comparison: Comparison, pair: Pair) -> dict[str, Any]:
    """The table of a pair of reports: columns with the texts and values of all rows, and what its filters look at."""
    rows, columns = pair.rows, []

    def add(label: str, heading: str, texts: list[str], values: list[float] | None = None) -> None:
        """``heading``: in its file, with the unit; ``values`` where texts are not these."""
        numbers = None if values is None else list(map(number, values))
        if any(texts):
            columns.append({"label": label, "heading": heading, "texts": texts, "values": numbers})

    def add_number(label: str, heading: str, values: list[float], text: Callable[[float], str] = time_text) -> None:
        add(label, heading, [text(value) if math.isfinite(value) else "" for value in values], values)

    for label, name in ((pair.nouns[0].capitalize(), "label"), ("Change", "change"), ("Verdict", "limits")):
        add(label, label.lower(), [row[name] for row in rows])
    add_number("Time before", "Time before [s]", [row["before"] for row in rows])
    # Between GPUs as measured: nobody compares it.
    add_number("Time after", "Time after [s]", [row["after" if pair.same_gpu else "total_seconds"] for row in rows])
    saved = [row["seconds_saved"] if row["device"] == row["device_before"] or not row["matched"] else math.nan for row in rows]
    add_number("Saved", "saved [s]", saved, lambda value: "\N{MINUS SIGN}" * (value < 0) + time_text(abs(value)))
    add_number("Speed-up", "speed-up", [row["speedup"] for row in rows], said.ratio_text)
    add_number("Share of roof before", "share of roof before", [row["fraction_before"] for row in rows], percent)
    add_number("after", "share of roof after", [row["fraction"] for row in rows], percent)
    level = said.level_of(comparison)
    bytes_of = f"{level_style(level).label if level else ''} bytes"
    needed = "needed " if comparison.of_run else ""
    for name, label in (("FLOP", f"{needed}FLOP"), ("bytes", f"{needed}{bytes_of}"), ("FLOP/B", f"{needed}FLOP/B")):
        changes = [after / before - 1 if before else math.nan for before, after in (row["ratios"][name] for row in rows)]
        add(label, f"change of {label}", [row[name] if row[name] != "n/a" else "" for row in rows], changes)
    if {row["count"] for row in rows} - {"1"}:
        add(pair.nouns[2].capitalize(), pair.nouns[2], [row["count"] for row in rows])
    quiet = (frames.SAME, frames.NOT_JUDGED)
    return {
        "columns": columns,
        "names": [clean(row["name"] or row["name_before"])[:_NAME] for row in rows],
        "outcomes": [row["outcome"] for row in rows],
        "changed": [row["outcome"] not in quiet or row["verdict_before"] != row["verdict"] for row in rows],
    }


def _chart(comparison: Comparison, name: str, hues: Iterable[str]) -> str:
    """The chart of a width as svg inside html: its texts are texts, and its colours those of the page's theme."""
    drawn = saved(partial(figure, comparison, points=WIDTHS[name], heading=False), "svg").decode()
    box = re.search(r'viewBox="([^"]*)"', drawn)
    # Descriptions and rules of its own would be those of the page; nobody needs the ids of groups, and others are of the page.
    svg = re.sub(r"(?s)^.*?<svg[^>]*>|<metadata.*?</metadata>|<style.*?</style>", "", drawn)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r'( id="|url\(#|xlink:href="#)', rf"\g<1>{name}-", svg)
    for hue in hues:
        svg = svg.replace(f": {hue}", f": var(--hue-{hue[1:]})")
    return f'<svg viewBox="{box[1] if box else ""}">{svg}'
