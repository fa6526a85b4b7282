"""The texts around a chart: where it comes from, and what a reader must know before believing it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable

from ncu_roofline.analyses.hierarchical.chart import ZERO, RooflineChart, asked_work, kernel_labels, range_text, statuses
from ncu_roofline.analyses.hierarchical.style import label_of, level_order, level_style, precision_label
from ncu_roofline.analyses.hierarchical.usage import MARK, NAMED, Usage, by_time, percent, tensor_caveat, usages
from ncu_roofline.base.files import ReportNames
from ncu_roofline.base.texts import clean, listed
from ncu_roofline.base.texts import plural as plural
from ncu_roofline.base.units import format_value
from ncu_roofline.chips.roofs import INSTEAD
from ncu_roofline.chips.thresholds import CLOCK_WARNING
from ncu_roofline.formats.ceilings import NOT_COMPARABLE, PUBLISHED
from ncu_roofline.model.above import ABOVE
from ncu_roofline.model.columns import UNUSED
from ncu_roofline.model.opcodes import OPCODES
from ncu_roofline.rendering.frames import Frames, column, optional, rows, view_of

CLOCKS_DIFFER = 0.05  # launches whose clocks differ by more are told as a range beside the mean
_TENSOR = "Tensor cores were busy"  # a note that `tensor_caveat` says in other words
_PRECISION = re.compile(r"\b(?:[fb]p?f?|u?int)(?:4|6|8|16|32|64)\b")  # ids of precisions
_KERNEL_NOTES = 4  # told of single kernels where notes are kept short
_STEPS = 8  # of a sweep, that a note lists
# In notes of rows: clock_note and above_note say it for all, and lanes are a number of each kernel.
_SAID_ELSEWHERE = ("of the maximum clock", "lanes work on average", ABOVE)
# Words of notes that say a number is too low, too high or uncertain; these are never left out.
_DOUBTS = (
    "lower bound",
    "loads only",
    "not counted",
    "count as hits",
    "count more than there are",
    "incomplete",
    "unproven",
    "true of",
    "lack the metrics",
    "disagree",
    "differ",
    "replay",
    "faster than its roof",
    INSTEAD,
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
_WHY_OF_VIEW = {"instruction": {"no-work-metrics": "without metrics of executed instructions"}}
_NAMES = {"instruction": "Instruction roofline"}


def why(frames: Frames, status: str) -> str:
    """Why kernels of this status have no points."""
    if status.endswith("-asked"):
        counted = "without {} (counted, zero)" if status == "zero-asked" else "without metrics of {}"
        return counted.format(asked_work(frames))
    return _WHY_OF_VIEW.get(view_of(frames), WHY).get(status) or WHY.get(status, clean(status))


def kind_of_work(units: Iterable[str]) -> str:
    """The header over precisions, or over kinds of instruction where those are counted."""
    return "instructions" if set(units) == {"inst"} else "precision"


def name_of(frames: Frames) -> str:
    """What the picture of a view is called."""
    return _NAMES.get(view_of(frames), "Roofline")


def _finite(values: list[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]


def _several(names: list[str], what: str) -> str:
    """One or two names, or how many there are."""
    distinct = list(dict.fromkeys(filter(None, map(clean, names))))
    return ", ".join(distinct) if len(distinct) <= 2 else f"{len(distinct)} {what}"


def frequency(values: list[float]) -> str:
    """``1.1 GHz``, or the range where clocks differ; "" without any."""
    known = _finite(values)
    if not known:
        return ""
    low, high = format_value(min(known), "hertz", 3), format_value(max(known), "hertz", 3)
    return high if low == high else f"{low} to {high}"


def time_weighted(frames: Frames, name: str) -> tuple[float, float, float] | None:
    """Mean over the run time of the kernels, lowest and highest value of a column of the kernels; None where none is known."""
    known = [(value, time) for value, time in rows(frames, "kernels", name, "seconds") if math.isfinite(value)]
    if not known:
        return None
    timed = [(value, time) for value, time in known if 0 < time < math.inf] or [(value, 1.0) for value, _ in known]
    mean = sum(value * time for value, time in timed) / sum(time for _, time in timed)
    values = [value for value, _ in known]
    return mean, min(values), max(values)


def differ(low: float, high: float) -> bool:
    """Whether clocks differ by more than the jitter of one clock."""
    return high > (1 + CLOCKS_DIFFER) * low


def profiled_clock(frames: Frames) -> str:
    """The SM clock of the kernels' time, ``1.28 GHz``, with the range in parentheses where launches differ; "" if unknown."""
    clocks = time_weighted(frames, "clock_profiled")
    if clocks is None:
        return ""
    _, low, high = clocks
    between = f" ({range_text(low, high, 'hertz')})" if differ(low, high) else ""
    return f"{_mean_clock(frames)}{between}"


def _mean_clock(frames: Frames) -> str:
    """Mean of the SM clock over the kernels' time, which for equal clocks is exactly these."""
    clocks = time_weighted(frames, "clock_profiled")
    if clocks is None:
        return ""
    mean, low, high = clocks
    return format_value(low if low == high else mean, "hertz", 3)


def report_names(frames: Frames) -> dict[str, str]:
    """Report of the frames -> what it is called, those of rows that sum up several reports as well."""
    reports = [report for _, report in getattr(frames, "sources", ())]
    reports = [one for one in reports or column(frames, "kernels", "report") or column(frames, "roofs", "report") if one]
    called = ReportNames.apart(reports)
    return {report: called(report) for report in reports}


def subtitle(frames: Frames) -> str:
    """GPU, report, ncu release and clock."""
    devices = list(
        dict.fromkeys(rows(frames, "roofs" if column(frames, "roofs", "roof") else "kernels", "device", "compute_capability"))
    )
    names = _several([f"{device} (compute capability {cc})" if cc else device for device, cc in devices], "GPUs")
    versions = [f"ncu {version}" for version in column(frames, "kernels", "ncu_version") if version]
    profiled = profiled_clock(frames)
    highest = frequency(column(frames, "kernels", "clock_max"))
    clock = f"SM clock {profiled}{f' of {highest}' if highest else ''}" if profiled else ""
    return " \N{MIDDLE DOT} ".join(
        part
        for part in (
            names,
            _several(list(report_names(frames).values()), "reports"),
            _several(versions, "ncu releases"),
            clock,
        )
        if part
    )


def status_notes(frames: Frames) -> list[str]:
    """What of the time is not in the chart: kernels without floating-point work, kernels without metrics."""
    shares: dict[str, list[float]] = {}
    kernels: dict[str, set[str]] = {}
    for kernel, status, share in zip(
        column(frames, "kernels", "kernel"), statuses(frames), column(frames, "kernels", "time_share"), strict=True
    ):
        if status != "ok":
            kernels.setdefault(status, set()).add(kernel)
            shares.setdefault(status, []).append(share)
    return [
        f"{plural(len(names), 'kernel')} {why(frames, status)}{of_the_time(shares[status])}."
        for status, names in kernels.items()
    ]


def of_the_time(shares: Iterable[float]) -> str:
    """ ", 12 % of the time" for some shares; nothing where none is known."""
    known = [share for share in shares if math.isfinite(share)]
    return f", {percent(sum(known))} of the time" if known else ""


def clock_note(frames: Frames) -> str:
    """A warning where the kernels' time was spent well below the maximum clock, "" otherwise."""
    ratios = time_weighted(frames, "clock_ratio")
    if ratios is None or not ratios[0] < CLOCK_WARNING:
        return ""
    mean, low, high = ratios  # the mean of equal numbers need not be that number
    between = f" ({low:.2f} to {high:.2f})" if differ(low, high) else ""
    return f"Profiled at {mean:.2f}{between} of the maximum SM clock: the application may run faster without the profiler."


def above_note(frames: Frames) -> str:
    """How many dots (and kernels without) stand above a roof, and why that of the highest may be; "" where none does."""
    labels = kernel_labels(frames)
    dots = [
        (height, labels[report, kernel], f"{labels[report, kernel]}, {label_of(clean(precision))}: {_why_above(notes)}")
        for height, (report, kernel, precision, notes) in zip(
            _heights(frames), rows(frames, "points", "report", "kernel", "precision", "notes"), strict=True
        )
        if ABOVE in notes
    ]
    known = {name for _, name, _ in dots}
    others = [(0.0, one.name, f"{one.name}: {_why_above(one.notes)}") for one in usages(frames).values() if ABOVE in one.notes]
    others = [one for one in others if one[1] not in known]
    if not dots and not others:
        return ""
    counted = " and ".join(plural(len(found), noun) for noun, found in (("dot", dots), ("kernel", others)) if found)
    single = len(dots) + len(others) == 1
    _, _, text = max((*dots, *others), key=lambda one: one[0])
    return f"{counted} {'stands' if single else 'stand'} above a roof. {'' if single else 'The highest is '}{text}."


def _heights(frames: Frames) -> list[float]:
    """How far above or below its roof each dot stands; 0 where that is unknown."""
    heights = zip(*(optional(frames, "points", name, math.nan) for name in ("performance", "attainable")), strict=True)
    return [performance / roof if roof > 0 and performance > 0 else 0.0 for performance, roof in heights]


def _why_above(notes: str) -> str:
    """The numbers and reasons of the first such note."""
    return clean(notes[notes.index(ABOVE) :].partition("; ")[0].removeprefix(ABOVE))


def roof_note(frames: Frames) -> str:
    """Origin and clock of the roofs."""
    bases: dict[tuple[str, str], list[float]] = {}
    for kind, origin, source, basis, clock in rows(frames, "roofs", "kind", "origin", "source", "clock_basis", "clock"):
        if kind == "wall" or origin == UNUSED:  # a pattern of access has no clock
            continue
        bases.setdefault((NOT_COMPARABLE if source == PUBLISHED else origin, basis), []).append(clock)
    parts = []
    for (origin, basis), clocks in bases.items():
        at = frequency(clocks)
        if basis == "profiled" and at and " to " not in at and at != _mean_clock(frames):
            at = f"(median of the launches {at})"
        clock = {"profiled": "profiled clock", "max": "maximum clock"}.get(basis, "")
        parts.append(f"{origin} at {clock or 'clock'}{f' {at}' if at else ''}" if clock or at else origin)
    between = "; " if NOT_COMPARABLE in parts else ", "
    return f"Roofs: {between.join(dict.fromkeys(parts))}." if parts else ""


def sweep_note(frames: Frames) -> str:
    """The steps of a sweep in the direction of the arrows, "" without one."""
    steps = {step: clean(label) for step, label in rows(frames, "points", "step", "label") if step >= 0}
    names = [steps[step] for step in sorted(steps)]
    if len(names) < 2:
        return ""
    shown = names if len(names) <= _STEPS else [*names[:2], "...", names[-1]]
    return f"Arrows follow {plural(len(names), 'step')}: {', '.join(shown)}."


def row_notes(frames: Frames, most: int = 4) -> list[str]:
    """What single points and roofs say of themselves: all that makes a number doubtful, then the commonest up to ``most``."""
    return [_sentence(subject, note) for note, subject in _row_notes(frames, most)]


def _row_notes(frames: Frames, most: int) -> list[tuple[str, str]]:
    """Notes, each with what it is said of: "L1, L2", or "" where of all."""
    found = Counter[str]()
    about: dict[str, set[tuple[str, str, str]]] = {}
    everything: set[tuple[str, str, str]] = set()
    for notes, *place in (*_places(frames, "points", "level", "precision"), *_places(frames, "roofs", "level", "label")):
        where = (place[0], place[1], place[2])
        everything.add(where)
        for note in filter(None, map(clean, notes.split("; "))):
            if not any(text in note for text in _SAID_ELSEWHERE):
                found[note] += 1
                about.setdefault(note, set()).add(where)
    ranked = [note for note, _ in found.most_common()]
    doubts = [note for note in ranked if any(text in note for text in _DOUBTS)]
    others = [note for note in ranked if note not in doubts]
    return [(note, _subject(about[note], everything)) for note in (*doubts, *others[: max(0, most - len(doubts))])]


def _places(frames: Frames, name: str, *labels: str) -> Iterable[tuple[str, ...]]:
    """The notes of points or roofs, and of what they are."""
    found = zip(column(frames, name, "notes"), *(optional(frames, name, label, "") for label in labels), strict=True)
    return ((notes, name, *map(str, place)) for notes, *place in found)


def _subject(about: Iterable[tuple[str, str, str]], everything: Iterable[tuple[str, str, str]]) -> str:
    """The levels, else the precisions or roofs, of which a note is said, "" where of all of them."""
    mine, all_names = list(about), list(everything)
    kinds = {name for name, _, _ in mine}
    levels = level_order({level for _, level, _ in mine if level})
    among = {level for name, level, _ in all_names if name in kinds and level}
    of_roofs_too = any(name == "roofs" and not level for name, level, _ in mine)
    if levels and set(levels) < among and not of_roofs_too:
        return ", ".join(level_style(level).label for level in levels)
    labels = [label_of(clean(label)) if name == "points" else clean(label) for name, _, label in sorted(mine)]
    others = {(name, label) for name, _, label in all_names if name in kinds}
    return listed(filter(None, labels)) if {(name, label) for name, _, label in mine} < others else ""


def _sentence(subject: str, note: str) -> str:
    if subject and not note.startswith(subject):
        return f"{subject}: {_named(note)}."
    return f"{_begun(note)}."


def _begun(note: str) -> str:
    """A note as a sentence without its stop."""
    found = _named(note)
    return f"{found[0].upper()}{found[1:]}"


def _named(note: str) -> str:
    """A note without its stop, precisions by their names."""
    return _PRECISION.sub(lambda match: precision_label(match[0]), note).rstrip(".")


def kernel_notes(frames: Frames, most: int = 4) -> list[str]:
    """What must be known of single kernels, those of the most time first; with their names where it is not said of all."""
    found: dict[str, list[Usage]] = {}
    every = by_time(usages(frames).values())
    for one in every:
        for note in filter(None, map(clean, one.notes.split("; "))):
            if not any(text in note for text in _SAID_ELSEWHERE):
                found.setdefault(note, []).append(one)
    sentences = []
    for note, members in found.items():
        names = f" ({listed((member.name for member in members), NAMED)})" if len(members) < len(every) else ""
        sentences.append(f"{_begun(note)}{names}.")
    more = [f"And {plural(len(sentences) - most, 'more note')} on kernels: see csv or json."] if len(sentences) > most else []
    return [*sentences[:most], *more]


def notes_of(frames: Frames, most: int = 4) -> list[str]:
    """Notes of kernels, then those of points and roofs that no kernel's note says already; up to ``most`` of each."""
    return _with_kernels(frames, most, most)


def _with_kernels(frames: Frames, of_rows: int, of_kernels: int) -> list[str]:
    found = kernel_notes(frames, of_kernels)
    others = _row_notes(frames, of_rows)
    said = [
        _sentence(subject, note) for note, subject in others if not any(_same_note(_sentence("", note), one) for one in found)
    ]
    return [*found, *said]


def doubts_of(frames: Frames) -> list[str]:
    """What makes numbers doubtful, beside unknown tensor work: notes of kernels, then those of points and roofs that say so."""
    return [note for note in _with_kernels(frames, 0, _KERNEL_NOTES) if not note.startswith(_TENSOR)]


def _same_note(note: str, of_kernels: str) -> bool:
    """Whether a kernel's note is this one, with or without names of kernels behind it."""
    stem = note.removesuffix(".")
    return of_kernels == note or of_kernels.startswith(f"{stem} (")


def source_note(frames: Frames, among: Iterable[str] = tuple(_SOURCES)) -> str:
    """How many dots come from other sources than their own counters, of those ``among``."""
    names = {source: _SOURCES[source] for source in among}
    sources = Counter(source for source in column(frames, "points", "source") if source in names)
    total = len(column(frames, "points", "source"))
    return " ".join(f"{count} of {plural(total, 'dot')} {names[source]}." for source, count in sources.most_common())


def footnotes(frames: Frames, chart: RooflineChart) -> list[str]:
    """Sentences below a chart, the weightiest first.

    Of notes on kernels and rows only those that make a number doubtful: where numbers come from is told in tables and data.
    Kernels whose tensor work is unknown bear a mark in pictures, and so does the sentence on them.
    """
    notes = [tensor_caveat(frames, MARK), above_note(frames), clock_note(frames)]
    if len(chart.kernels) < chart.total:
        shares = _finite([kernel.share for kernel in chart.kernels])
        part = f" ({percent(sum(shares))} of the time)" if shares else ""
        notes.append(f"The {len(chart.kernels)} largest of {plural(chart.total, 'kernel')} by time are drawn{part}.")
    notes += [sweep_note(frames), *status_notes(frames)]
    if chart.panels_left_out:
        notes.append(f"{plural(chart.panels_left_out, 'further panel')} left out: choose with --precision.")
    return [note for note in (*notes, roof_note(frames), *doubts_of(frames)) if note]


def explanation(frames: Frames) -> str:
    """Why a chart has no dots."""
    if not column(frames, "kernels", "kernel"):
        return "No kernels are left to draw."
    lines = ["No kernel can be drawn.", *status_notes(frames)]
    if missing := getattr(frames, "to_collect", ()) or _lacking_of(frames):
        lines.append(f"Missing metrics: {', '.join(missing)}.")
    return "\n".join([*lines, *filter(None, [how_to_add(frames)])])


def how_to_add(frames: Frames) -> str:
    """Which command tells how to collect what kernels without dots lack; "" where work was counted and is zero."""
    if not _lacking_of(frames):
        return ""
    option = f" --view {view_of(frames)}" if getattr(frames, "to_collect", ()) else ""
    return f"The command ncu-roofline explain{option} prints the ncu command that adds them."


def _lacking_of(frames: Frames) -> list[str]:
    return lacking(
        missing
        for status, missing in zip(statuses(frames), column(frames, "kernels", "missing"), strict=True)
        if status not in ZERO
    )


def lacking(missing: Iterable[str]) -> list[str]:
    """What the ids in columns ``missing`` are called, each once."""
    ids = dict.fromkeys(map(clean, " ".join(missing).split()))
    return [label_of(one) for one in ids]
