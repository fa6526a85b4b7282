"""The texts around a chart: where it comes from, and what a reader must know before believing it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from ncu_roofline.analyses.hierarchical import kernels, style
from ncu_roofline.analyses.hierarchical.chart import RooflineChart
from ncu_roofline.base.files import ReportNames
from ncu_roofline.base.texts import clean, listed, plural
from ncu_roofline.base.units import format_value, percent, range_text
from ncu_roofline.chips.formulas import INSTEAD
from ncu_roofline.chips.thresholds import CLOCK_WARNING
from ncu_roofline.formats.ceilings import NOT_COMPARABLE, PUBLISHED
from ncu_roofline.model.columns import UNUSED
from ncu_roofline.model.opcodes import OPCODES
from ncu_roofline.model.points import ABOVE
from ncu_roofline.rendering.frames import Frames, column, optional, rows, view_of

_CLOCKS_DIFFER = 0.05  # launches whose clocks differ by more are told as a range beside the mean
_TENSOR = "Tensor cores were busy"  # a note that `tensor_caveat` says in other words
_PRECISION = re.compile(r"\b(?:[fb]p?f?|u?int)(?:4|6|8|16|32|64)\b")  # ids of precisions
_KERNEL_NOTES = 4  # told of single kernels where notes are kept short
_STEPS = 8  # of a sweep, that a note lists
# In notes of rows: clock_note and above_note say it for all, and lanes are a number of each kernel.
_SAID_ELSEWHERE = ("of the maximum clock", "lanes work on average", ABOVE)
# Words of notes that say a number is too low, too high or uncertain; these are never left out.
_DOUBTS = (
    *("lower bound", "loads only", "not counted", "count as hits", "count more than there are", "incomplete", "unproven"),
    *("true of", "lack the metrics", "disagree", "differ", "replay", "faster than its roof", INSTEAD),
)
# Why a kernel has no points, by its status in the frame of kernels.
WHY = {
    "zero-flop": "without floating-point work",
    "tensor-unknown": "with tensor work that nobody counted",
    "no-work-metrics": "without metrics of floating-point work",
    "no-traffic-metrics": "without metrics of memory traffic",
    "no-time": "without a run time",
    "foreign": "with counters that may be another kernel's",
    "unknown-chip": "on a GPU unknown to this version",
    "no-chart": "without a roofline chart in the report",
    "no-instructions": "without executed instructions",
    "unshown": "without a dot of the kinds of work and levels chosen",
}
# What is said of dots by their source, unless that is their own counters.
_SOURCES = {
    "derived": "derived from other counters",
    OPCODES: "counted from executed opcodes",
    "embedded": "taken from the report's own chart",
}


def why(frames: Frames, status: str) -> str:
    """Why kernels of this status have no points."""
    if view_of(frames) == "instruction" and status == "no-work-metrics":
        return "without metrics of executed instructions"
    names = ["tensor" if one == "tensor" else style.precision_label(one) for one in getattr(frames, "asked", ())]
    asked = {"zero-asked": "without {} work (counted, zero)", "uncounted-asked": "without metrics of {} work"}
    return asked[status].format(" or ".join(names)) if status in asked else WHY.get(status, clean(status))


def why_absent(frames: Frames, absent: Iterable[kernels.Kernel], *, lacks: bool = False) -> list[str]:
    """For each reason why kernels have no dots a sentence: how many, their share of the time, and what the report ``lacks``."""
    found: dict[str, list[kernels.Kernel]] = {}
    for one in absent:
        found.setdefault(one.status, []).append(one)
    told = []
    for status, members in found.items():
        missing = lacking(members) if lacks and status not in kernels.ZERO else []
        without = f"; lacks {', '.join(missing)}" if missing else ""
        share = of_the_time(one.time_share for one in members)
        told.append(f"{kernels.counts_text(members)} {why(frames, status)}{share}{without}.")
    return told


def lacking(members: Iterable[kernels.Kernel]) -> list[str]:
    """What the report lacks for some kernels, each once."""
    return [style.label_of(one) for one in dict.fromkeys(" ".join(one.missing for one in members).split())]


def of_the_time(shares: Iterable[float]) -> str:
    """ ", 12 % of the time" for some shares; nothing where none is known."""
    known = [share for share in shares if math.isfinite(share)]
    return f", {percent(sum(known))} of the time" if known else ""


def name_of(frames: Frames) -> str:
    """What the picture of a view is called."""
    return "Instruction roofline" if view_of(frames) == "instruction" else "Roofline"


def empirical_name(frames: Frames) -> str:
    """What the roofs that are not theoretical are called: measured, or what others published, or both where GPUs differ."""
    found = {source == PUBLISHED for origin, source in rows(frames, "roofs", "origin", "source") if origin == "measured"}
    return " or ".join(name for name, known in (("measured", False), ("published", True)) if known in found) or "measured"


def _frequency(values: Iterable[float]) -> str:
    """``1.1 GHz``, or the range where clocks differ; "" without any."""
    known = [value for value in values if math.isfinite(value)]
    low, high = (format_value(end(known, default=math.nan), "hertz", 3) for end in (min, max))
    return "" if not known else high if low == high else f"{low} to {high}"


def _time_weighted(frames: Frames, name: str) -> tuple[float, float, float, bool]:
    """Mean over the run time of the kernels, lowest and highest value of a column of the kernels, and whether these differ by
    more than the jitter of one clock; NaN where none is known.
    """
    known = [(value, time) for value, time in rows(frames, "kernels", name, "seconds") if math.isfinite(value)]
    if not known:
        return math.nan, math.nan, math.nan, False
    timed = [(value, time) for value, time in known if 0 < time < math.inf] or [(value, 1.0) for value, _ in known]
    low, high = (end(value for value, _ in known) for end in (min, max))
    mean = low if low == high else sum(value * time for value, time in timed) / sum(time for _, time in timed)
    return mean, low, high, high > (1 + _CLOCKS_DIFFER) * low


def report_names(frames: Frames) -> dict[str, str]:
    """Report of the frames -> what it is called, those of rows that sum up several reports as well."""
    reports = [report for _, report in getattr(frames, "sources", ())]
    reports = [one for one in reports or column(frames, "kernels", "report") or column(frames, "roofs", "report") if one]
    called = ReportNames.apart(reports)
    return {report: called(report) for report in reports}


def subtitle(frames: Frames) -> str:
    """GPU, report, ncu release and clock."""

    def several(names: Iterable[str], what: str) -> str:
        distinct = list(dict.fromkeys(filter(None, map(clean, names))))
        return ", ".join(distinct) if len(distinct) <= 2 else f"{len(distinct)} {what}"

    of = "roofs" if column(frames, "roofs", "roof") else "kernels"
    devices = dict.fromkeys(rows(frames, of, "device", "compute_capability"))
    mean, low, high, differ = _time_weighted(frames, "clock_profiled")
    between = f" ({range_text(low, high, 'hertz')})" if differ else ""
    highest = _frequency(column(frames, "kernels", "clock_max"))
    facts = (
        several([f"{device} (compute capability {cc})" if cc else device for device, cc in devices], "GPUs"),
        several(report_names(frames).values(), "reports"),
        several([f"ncu {version}" for version in column(frames, "kernels", "ncu_version") if version], "ncu releases"),
        "" if math.isnan(mean) else f"SM clock {format_value(mean, 'hertz', 3)}{between}{f' of {highest}' if highest else ''}",
    )
    return " \N{MIDDLE DOT} ".join(filter(None, facts))


def clock_note(frames: Frames) -> str:
    """A warning where the kernels' time was spent well below the maximum clock, "" otherwise."""
    mean, low, high, differ = _time_weighted(frames, "clock_ratio")
    if not mean < CLOCK_WARNING:
        return ""
    between = f" ({low:.2f} to {high:.2f})" if differ else ""
    return f"Profiled at {mean:.2f}{between} of the maximum SM clock: the application may run faster without the profiler."


def above_note(frames: Frames) -> str:
    """How many dots (and kernels without) stand above a roof, and why that of the highest may be; "" where none does."""

    def told(name: str, notes: str) -> str:
        return f"{name}: {clean(notes[notes.index(ABOVE) :].partition('; ')[0].removeprefix(ABOVE))}"

    labels, dots = kernels.kernel_labels(frames), []
    heights = zip(*(optional(frames, "points", name, math.nan) for name in ("performance", "attainable")), strict=True)
    about = rows(frames, "points", "report", "kernel", "precision", "notes")
    for (performance, roof), (report, kernel, precision, notes) in zip(heights, about, strict=True):
        if ABOVE in notes:
            name, height = labels[report, kernel], performance / roof if roof > 0 and performance > 0 else 0.0
            dots.append((height, name, told(f"{name}, {style.label_of(clean(precision))}", notes)))
    known = {name for _, name, _ in dots}
    others = [one for one in kernels.kernels_of(frames).values() if ABOVE in one.notes and one.name not in known]
    if not dots and not others:
        return ""
    counted = " and ".join(plural(len(found), noun) for noun, found in (("dot", dots), ("kernel", others)) if found)
    single = len(dots) + len(others) == 1
    _, _, text = max((*dots, *((0.0, one.name, told(one.name, one.notes)) for one in others)), key=lambda one: one[0])
    return f"{counted} {'stands' if single else 'stand'} above a roof. {'' if single else 'The highest is '}{text}."


def roof_note(frames: Frames) -> str:
    """Origin and clock of the roofs."""
    bases: dict[tuple[str, str], list[float]] = {}
    for kind, origin, source, basis, clock in rows(frames, "roofs", "kind", "origin", "source", "clock_basis", "clock"):
        if kind != "wall" and origin != UNUSED:  # a pattern of access has no clock
            bases.setdefault((NOT_COMPARABLE if source == PUBLISHED else origin, basis), []).append(clock)
    mean = _time_weighted(frames, "clock_profiled")[0]
    parts = []
    for (origin, basis), clocks in bases.items():
        at = _frequency(clocks)
        if basis == "profiled" and at and " to " not in at and at != format_value(mean, "hertz", 3):
            at = f"(median of the launches {at})"
        clock = {"profiled": "profiled clock", "max": "maximum clock"}.get(basis, "")
        parts.append(f"{origin} at {clock or 'clock'}{f' {at}' if at else ''}" if clock or at else origin)
    between = "; " if NOT_COMPARABLE in parts else ", "
    return f"Roofs: {between.join(dict.fromkeys(parts))}." if parts else ""


def sweep_note(frames: Frames) -> str:
    """The steps of a sweep in the direction of the arrows, "" without one."""
    steps = {step: clean(label) for step, label in rows(frames, "points", "step", "label") if step >= 0}
    names = [steps[step] for step in sorted(steps)]
    shown = names if len(names) <= _STEPS else [*names[:2], "...", names[-1]]
    return f"Arrows follow {plural(len(names), 'step')}: {', '.join(shown)}." if len(names) > 1 else ""


def source_note(frames: Frames, among: Iterable[str] = tuple(_SOURCES)) -> str:
    """How many dots come from other sources than their own counters, of those ``among``."""
    every = column(frames, "points", "source")
    sources, total = Counter(source for source in every if source in among), plural(len(every), "dot")
    return " ".join(f"{count} of {total} {_SOURCES[source]}." for source, count in sources.most_common())


def _told(notes: str) -> list[str]:
    """The notes of a row that nothing else says."""
    found = filter(None, map(clean, notes.split("; ")))
    return [note for note in found if not any(text in note for text in _SAID_ELSEWHERE)]


def _sentence(note: str, subject: str = "") -> str:
    """A note as a sentence, precisions by their names."""
    text = _PRECISION.sub(lambda match: style.precision_label(match[0]), note).rstrip(".")
    return f"{subject}: {text}." if subject and not note.startswith(subject) else f"{text[0].upper()}{text[1:]}."


def row_notes(frames: Frames, most: int = 4, known: Sequence[str] = ()) -> list[str]:
    """What single points and roofs say of themselves: all that makes a number doubtful, then the commonest up to ``most``.

    Sentences that are ``known``, with or without names behind them, are not said again.
    """
    about: dict[str, list[tuple[str, str, str]]] = {}
    everything: set[tuple[str, str, str]] = set()
    for name, label in (("points", "precision"), ("roofs", "label")):
        places = (optional(frames, name, one, "") for one in ("level", label))
        for notes, level, text in zip(column(frames, name, "notes"), *places, strict=True):
            everything.add((name, level, text))
            for note in _told(notes):
                about.setdefault(note, []).append((name, level, text))
    ranked = sorted(about, key=lambda note: -len(about[note]))
    doubts = [note for note in ranked if any(text in note for text in _DOUBTS)]
    others = [note for note in ranked if note not in doubts][: max(0, most - len(doubts))]
    return [
        _sentence(note, _subject(set(about[note]), everything))
        for note in (*doubts, *others)
        if not any(one == _sentence(note) or one.startswith(f"{_sentence(note)[:-1]} (") for one in known)
    ]


def _subject(mine: Collection[tuple[str, str, str]], everything: Collection[tuple[str, str, str]]) -> str:
    """The levels, else the precisions or roofs, of which a note is said, "" where of all of them."""
    kinds = {name for name, _, _ in mine}
    among = [one for one in everything if one[0] in kinds]
    levels = style.level_order(level for _, level, _ in mine if level)
    of_roofs_too = any(name == "roofs" and not level for name, level, _ in mine)
    if levels and set(levels) < {level for _, level, _ in among if level} and not of_roofs_too:
        return ", ".join(style.level_style(level).label for level in levels)
    if {(name, label) for name, _, label in mine} >= {(name, label) for name, _, label in among}:
        return ""
    return listed(
        filter(None, (style.label_of(clean(text)) if name == "points" else clean(text) for name, _, text in sorted(mine)))
    )


def kernel_notes(frames: Frames, most: int = 4) -> list[str]:
    """What must be known of single kernels, those of the most time first; with their names where it is not said of all."""
    found: dict[str, list[str]] = {}
    every = kernels.by_time(kernels.kernels_of(frames).values())
    for one in every:
        for note in _told(one.notes):
            found.setdefault(note, []).append(one.name)
    sentences = [
        f"{_sentence(note)[:-1]} ({listed(names, kernels.NAMED)})." if len(names) < len(every) else _sentence(note)
        for note, names in found.items()
    ]
    more = [f"And {plural(len(sentences) - most, 'more note')} on kernels: see csv or json."] if len(sentences) > most else []
    return [*sentences[:most], *more]


def notes_of(frames: Frames, most: int = 4) -> list[str]:
    """Notes of kernels, then those of points and roofs that no kernel's note says already; up to ``most`` of each."""
    found = kernel_notes(frames, most)
    return [*found, *row_notes(frames, most, found)]


def doubts_of(frames: Frames) -> list[str]:
    """What makes numbers doubtful, beside unknown tensor work: notes of kernels, then those of points and roofs that say so."""
    found = kernel_notes(frames, _KERNEL_NOTES)
    return [note for note in (*found, *row_notes(frames, 0, found)) if not note.startswith(_TENSOR)]


def footnotes(frames: Frames, chart: RooflineChart) -> list[str]:
    """Sentences below a chart, the weightiest first.

    Of notes on kernels and rows only those that make a number doubtful: where numbers come from is told in tables and data.
    Kernels whose tensor work is unknown bear a mark in pictures, and so does the sentence on them.
    """
    notes = [kernels.tensor_caveat(frames, kernels.MARK), above_note(frames), clock_note(frames)]
    if len(chart.kernels) < chart.total:
        part = of_the_time(kernel.share for kernel in chart.kernels).replace(", ", " (", 1)
        drawn = f"The {len(chart.kernels)} largest of {plural(chart.total, 'kernel')} by time are drawn"
        notes.append(f"{drawn}{f'{part})' if part else ''}.")
    notes += [sweep_note(frames), *why_absent(frames, kernels.without_dots(frames))]
    if chart.panels_left_out:
        notes.append(f"{plural(chart.panels_left_out, 'further panel')} left out: choose with --precision.")
    return [note for note in (*notes, roof_note(frames), *doubts_of(frames)) if note]


def explanation(frames: Frames) -> str:
    """Why a chart has no dots."""
    absent = kernels.without_dots(frames)
    if not absent:
        return "No kernels are left to draw."
    missing = getattr(frames, "to_collect", ()) or lacking(one for one in absent if one.status not in kernels.ZERO)
    lacks = [f"Missing metrics: {', '.join(missing)}."] if missing else []
    return "\n".join(["No kernel can be drawn.", *why_absent(frames, absent), *lacks, *how_to_add(frames)])


def how_to_add(frames: Frames) -> list[str]:
    """Which command tells how to collect what kernels lack; [] where work was counted and is zero."""
    option = f" --view {view_of(frames)}" if getattr(frames, "to_collect", ()) else ""
    lacks = any(one.missing for one in kernels.kernels_of(frames).values() if one.status not in kernels.ZERO)
    return [f"The command ncu-roofline explain{option} prints the ncu command that adds them."] if lacks else []
