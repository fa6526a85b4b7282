"""A comparison as a chart of marks: rooflines with dots before and after, and the kernels that matter with times and shares.

Of two GPU models only the shares of the roofs are drawn.  Three reports or more: the last one against the baseline.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ncu_roofline.analyses.compare import changes
from ncu_roofline.analyses.compare.changes import Numbered, Row, level_of, names_of, pairs, rows_of
from ncu_roofline.analyses.compare.frames import Comparison as ComparisonFrames
from ncu_roofline.analyses.compare.kernels import CLOSER, FASTER, FURTHER, SLOWER, SMALL_SHARE
from ncu_roofline.analyses.hierarchical.marks import axes_of, plain_roofs
from ncu_roofline.analyses.hierarchical.roofs import covers
from ncu_roofline.analyses.hierarchical.style import level_style, precision_label, precision_order
from ncu_roofline.base.texts import clean, plural, shorten
from ncu_roofline.base.units import format_value
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.palette import GAIN, LOSS
from ncu_roofline.model.columns import UNUSED
from ncu_roofline.rendering import chart as marks
from ncu_roofline.rendering.chart import Block, Chart, Key, Line, Listing, Panel, Place, Point, Scale, Text
from ncu_roofline.rendering.chart_picture import chart_figure
from ncu_roofline.rendering.picture import pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 7.16 * 72  # points: both columns of a two-column paper
WIDE = 700.0  # points: from here on the list stands beside a roofline
MAX_PANELS = 4
_NAMED, _BRIEF = 34, 18  # characters of a name at a dot
_ROOM = 8.0  # the axis goes on to so many times the highest intensity, for names
_CORE = ""  # the group of all precisions outside of tensor cores
_HUES = {FASTER: GAIN, CLOSER: GAIN, SLOWER: LOSS, FURTHER: LOSS}
_Key = tuple[int, str, str]  # row of the kernels, precision, level


def figure(
    comparison: ComparisonFrames,
    *,
    title: str = "",
    theme: str = "light",
    top: int = changes.MOST,
    points: float = WIDTH,
    heading: bool = True,
    dpi: float | None = None,
) -> Figure:
    """The chart as a matplotlib figure of its own, ``points`` wide, outside pyplot; ``heading``: with title and subtitle.

    Raises ValueError for an unknown theme.
    """
    chart = comparison_chart(comparison, top, points >= WIDE, clean(title))
    paper: dict[str, Any] = {"width": points / 72, "dpi": dpi}
    return chart_figure(lambda less: None if less else chart, theme=theme, heading=heading, **paper)


def _alone(
    comparison: ComparisonFrames, *, title: str = "", theme: str = "light", top: int = changes.MOST, dpi: float | None = None
) -> Figure:
    return figure(comparison, title=title, theme=theme, top=top, dpi=dpi)


render_png, render_svg, render_pdf = pictures(_alone)


def comparison_chart(comparison: ComparisonFrames, top: int = changes.MOST, wide: bool = False, title: str = "") -> Chart:
    """``top`` kernels of the pair that is shown, first those that matter, then those of most time."""
    pair = changes.main_pair(comparison)
    if pair is None:
        return Chart(title or "Comparison", (), "nothing was compared", [], [], {}, [])
    one, kernels = pair
    names, chosen, labels = names_of(comparison), _chosen(one, kernels, top), changes.labels_of(kernels)
    said, _, more = changes.headline(one, kernels).partition("; ")
    about = "; ".join(filter(None, (more, changes.about(one, names))))
    panels = _panels(comparison, one, chosen, labels) if changes.same_gpu(one) else []
    listing = _listing(chosen, labels, changes.same_gpu(one), (names[one["baseline"]], names[one["report"]]))
    legend = changes.legend(one)
    notes = [f"{legend[:1].upper()}{legend[1:]}."]
    if panels:
        where = "Dots stand at the level that binds in the new report, else at device memory"
        notes.append(f"{where}; roofs are those of the new report.")
    if len(kernels) > len(chosen):
        notes.append(f"{plural(len(kernels) - len(chosen), 'row')} of less change or time left out.")
    if len(panels) > MAX_PANELS:
        notes.append(f"{plural(len(panels) - MAX_PANELS, 'roofline')} left out for lack of room.")
    if (steps := len(list(pairs(comparison)))) > 1:
        notes.append(f"One of {steps} pairs of reports; the page and the table have the others.")
    shown = panels[:MAX_PANELS]
    rows: list[Sequence[Block]] = [shown[at : at + 2] for at in range(0, len(shown), 2)]
    rows = [[*shown, listing]] if wide and len(shown) == 1 else [*rows, [listing]]
    sentences = [f"{said}: {about}" if title else about]
    return Chart(title or said, sentences, "", rows, [], {str(number): "" for number, _ in chosen}, notes)


def _chosen(one: Row, kernels: Sequence[Numbered], top: int) -> list[Numbered]:
    """Those that matter, then the longest that are worth a look; if there is none, the first."""
    shown, rest = changes.matters(one, kernels)
    longest = sorted((pair for pair in rest if _long(pair[1])), key=lambda pair: -pair[1]["time_share"])
    kept = {number for number, _ in [*shown, *longest][:top]}
    return [pair for pair in kernels if pair[0] in kept] or list(kernels[:1])


def _long(row: Row) -> bool:
    return bool(row["time_share"] >= SMALL_SHARE)


def _listing(chosen: Sequence[Numbered], labels: Mapping[int, str], same: bool, states: tuple[str, str]) -> Listing:
    """Run times of all launches and shares of the roof as dots before and after, where they may be compared and are known."""
    times = {number: changes.times_of(row) for number, row in chosen}
    longest = max((time for pair in times.values() for time in pair if math.isfinite(time)), default=0.0)
    timed = same and longest > 0
    shared = any(math.isfinite(row[name]) for _, row in chosen for name in ("fraction_before", "fraction"))
    rows = []
    for number, row in chosen:
        hue, before, after = _HUES.get(row["outcome"]), *times[number]
        scales = [Scale(dots=(before / longest, after / longest), hue=hue, text=changes.times(row))] if timed else []
        if shared or not timed:
            dots = (row["fraction_before"], row["fraction"])
            scales.append(Scale(dots=dots, hue=None if timed else hue, text=changes.shares(row)))
        rows.append(marks.Row(labels[number], scales, changes.verdicts(row), changes.said(row), hue, str(number)))
    heads = [f"run time, 0 to {format_value(longest, 'second', 3)}"] if timed else []
    heads += ["share of its roof, 0 to 100 %"] if shared or not timed else []
    keys = [Key(name, role) for name, role in zip(states, ("before", "after"), strict=True)]
    return Listing("", (*heads, ""), rows, keys, least=math.inf)


def _panels(frames: ComparisonFrames, one: Row, kernels: Sequence[Numbered], labels: Mapping[int, str]) -> list[Panel]:
    """A roofline of each GPU and group of precisions, with the kernels that both reports have."""
    cells: dict[_Key, Row] = {(row["row"], row["precision"], row["level"]): row for row in rows_of(frames, "levels")}
    memory, levels = level_of(frames), {level.id for level in load_spec().levels}
    kernels = [pair for pair in kernels if _long(pair[1])] or kernels
    groups: dict[tuple[str, str], list[tuple[int, Row, str]]] = {}
    for number, row in kernels:
        level = row["binds"] if row["binds"] in levels else memory
        if row["matched"] and _place(cells.get((number, row["precision"], level)), ""):
            groups.setdefault((clean(row["device"]), _group(row["precision"])), []).append((number, row, level))
    several = len({device for device, _ in groups}) > 1
    roofs = [row for row in rows_of(frames, "roofs") if row["step"] == one["step"]]
    worked: dict[int, set[str]] = {}
    for number, precision, _ in cells:
        worked.setdefault(number, set()).add(precision)
    found = []
    for device, group in sorted(groups, key=lambda key: (key[0], key[1] != _CORE, key[1])):
        moves = groups[device, group]
        named = {row["precision"] for _, row, _ in moves}
        precisions = set().union(*(worked[number] for number, _, _ in moves)) if "mixed" in named else named
        mine = [row for row in roofs if clean(row["device"]) == device]
        shown = _roofs(mine, precisions - {""}, {level for *_, level in moves} | {memory}, _unit(group), len(precisions) > 1)
        title = ", ".join(precision_label(precision) for precision in sorted(named, key=precision_order))
        drawn = [*plain_roofs(shown), *(mark for move in moves for mark in _move(*move, labels, cells))]
        axes = axes_of(_unit(group))
        found.append(Panel(f"{title}; {device}" if several else title, *axes, drawn, "roofline", _ROOM))
    return found


def _move(number: int, row: Row, level: str, labels: Mapping[int, str], cells: Mapping[_Key, Row]) -> Iterator[marks.Mark]:
    """A hollow dot before and a full one after, each of the precision with most work in its report, and an arrow between."""
    after = _place(cells.get((number, row["precision"], level)), "")
    before = _place(cells.get((number, row["precision_before"], level)), "_before")
    if _unit(row["precision"]) != _unit(row["precision_before"]):
        before = None  # operations on integers and on floating-point numbers are not one axis
    assert after
    texts = tuple(f"{shorten(labels[number], length)} {changes.said(row)}" for length in (_NAMED, _BRIEF))
    yield Text(role="name", labels=texts, places=(after,), key=str(number))
    yield Point(role="dot", hue=level_style(level), x=after[0], y=after[1], name=str(number))
    if before:
        yield Point(role="dot", hue=level_style(level), x=before[0], y=before[1], name=str(number), fill="none")
        yield Line(role="move", places=(before, after))


def _place(cell: Row | None, suffix: str) -> Place | None:
    """A place on logarithmic axes."""
    if cell is None:
        return None
    x, y = cell[f"intensity{suffix}"], cell[f"performance{suffix}"]
    return (x, y) if 0 < x < math.inf and 0 < y < math.inf else None


def _group(precision: str) -> str:
    """Panel that a precision belongs to: those of tensor cores, and the others, that count one unit of work."""
    unit = _unit(precision)
    family = "tensor" if precision.startswith("tensor") else _CORE
    return family if unit == "flop" else precision


def _unit(precision: str) -> str:
    known = {one.id: one.unit for one in load_spec().precisions}
    return next((unit for name, unit in known.items() if precision == name or precision.startswith(f"{name}.")), "flop")


def _roofs(
    rows: Sequence[Row], precisions: set[str], levels: set[str], unit: str, tops: bool
) -> Iterator[tuple[str, str, float, str, str]]:
    """The roofs of some precisions and levels, the one that counts of each; with ``tops`` the highest of each precision."""
    best: dict[tuple[str, str], Row] = {}
    for row in rows:
        compute = row["kind"] == "compute" and row["unit"] == f"{unit}/s" and covers(row["precision"], precisions - {"mixed"})
        drawn = compute or (row["kind"] == "bandwidth" and row["level"] in levels)
        if not 0 < row["value"] < math.inf or not drawn or row["origin"] == UNUSED:
            continue
        key = row["kind"], row["precision"] if compute and tops else row["roof"]
        best[key] = max(best.get(key, row), row, key=lambda one: (one["origin"] == "measured", one["value"]))
    for row in best.values():
        text = f"{format_value(row['value'], row['unit'], 3)}{' measured' if row['origin'] == 'measured' else ''}"
        yield row["kind"], row["level"], row["value"], shorten(clean(row["label"]), 30), text
