"""The texts around a chart: where it comes from, and what a reader must know before believing it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import PurePath

from ncu_roofline.analyses.hierarchical.chart import ZERO, RooflineChart, asked_work, kernel_labels, range_text, statuses
from ncu_roofline.analyses.hierarchical.style import label_of
from ncu_roofline.analyses.hierarchical.usage import MARK, NAMED, Usage, by_time, percent, tensor_caveat, usages
from ncu_roofline.ceilings import NOT_COMPARABLE, PUBLISHED
from ncu_roofline.facts.thresholds import CLOCK_WARNING
from ncu_roofline.model.above import ABOVE
from ncu_roofline.rendering.frames import Frames, column, optional, rows, view_of
from ncu_roofline.texts import clean, listed
from ncu_roofline.units import format_value

CLOCKS_DIFFER = 0.05  # launches whose clocks differ by more are told as a range beside the mean
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
)
# Why a kernel has no points, by its status in the frame of kernels.
WHY = {
    "zero-flop": "without floating-point work",
    "tensor-unknown": "with tensor work that nobody counted",
    "no-work-metrics": "without metrics of floating-point work",
    "no-traffic-metrics": "without metrics of memory traffic",
    "no-time": "without a run time",
    "unknown-chip": "on a GPU unknown to this version",
    "no-chart": "without a roofline chart in the report",
    "no-instructions": "without executed instructions",
    "unshown": "without a dot of the kinds of work and levels chosen",
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


def plural(count: int, noun: str) -> str:
    """``1 kernel``, ``2 kernels``."""
    return f"{count:,} {noun}{'' if count == 1 else 'es' if noun.endswith('ch') else 's'}"


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
    mean, low, high = clocks
    between = f" ({range_text(low, high, 'hertz')})" if differ(low, high) else ""
    return f"{format_value(low if low == high else mean, 'hertz', 3)}{between}"


def subtitle(frames: Frames) -> str:
    """GPU, report, ncu release and clock."""
    devices = list(
        dict.fromkeys(rows(frames, "roofs" if column(frames, "roofs", "roof") else "kernels", "device", "compute_capability"))
    )
    names = _several([f"{device} (compute capability {cc})" if cc else device for device, cc in devices], "GPUs")
    reports = [PurePath(report).name for report in column(frames, "kernels", "report") or column(frames, "roofs", "report")]
    versions = [f"ncu {version}" for version in column(frames, "kernels", "ncu_version") if version]
    profiled = profiled_clock(frames)
    highest = frequency(column(frames, "kernels", "clock_max"))
    clock = f"SM clock {profiled}{f' of {highest}' if highest else ''}" if profiled else ""
    return " \N{MIDDLE DOT} ".join(
        part for part in (names, _several(reports, "reports"), _several(versions, "ncu releases"), clock) if part
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
        if kind == "wall":  # a pattern of access has no clock
            continue
        bases.setdefault((NOT_COMPARABLE if source == PUBLISHED else origin, basis), []).append(clock)
    parts = []
    for (origin, basis), clocks in bases.items():
        at = frequency(clocks)
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
    found = Counter[str]()
    for name in ("points", "roofs"):
        for notes, count in Counter(column(frames, name, "notes")).items():
            for note in filter(None, map(clean, notes.split("; "))):
                if not any(text in note for text in _SAID_ELSEWHERE):
                    found[note] += count
    ranked = [note for note, _ in found.most_common()]
    doubts = [note for note in ranked if any(text in note for text in _DOUBTS)]
    others = [note for note in ranked if note not in doubts]
    return [f"{note[0].upper()}{note[1:].rstrip('.')}." for note in (*doubts, *others[: max(0, most - len(doubts))])]


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
        sentences.append(f"{note[0].upper()}{note[1:].rstrip('.')}{names}.")
    more = [f"And {plural(len(sentences) - most, 'more note')} on kernels: see csv or json."] if len(sentences) > most else []
    return [*sentences[:most], *more]


def notes_of(frames: Frames, most: int = 4) -> list[str]:
    """Notes of kernels, then those of points and roofs that no kernel's note says already; up to ``most`` of each."""
    found = kernel_notes(frames, most)
    return [*found, *(note for note in row_notes(frames, most) if not any(_same_note(note, one) for one in found))]


def _same_note(note: str, of_kernels: str) -> bool:
    """Whether a kernel's note is this one, with or without names of kernels behind it."""
    stem = note.removesuffix(".")
    return of_kernels == note or of_kernels.startswith(f"{stem} (")


def source_note(frames: Frames) -> str:
    names = {
        "derived": "derived from other counters",
        "opcodes": "counted from executed opcodes",
        "embedded": "taken from the report's own chart",
    }
    sources = Counter(source for source in column(frames, "points", "source") if source in names)
    total = len(column(frames, "points", "source"))
    return " ".join(f"{count} of {plural(total, 'dot')} {names[source]}." for source, count in sources.most_common())


def footnotes(frames: Frames, chart: RooflineChart, outside: int = 0) -> list[str]:
    """Sentences below a chart, the weightiest first; ``outside`` dots lie beyond its axes.

    Kernels whose tensor work is unknown bear a mark in pictures, and so does the sentence on them.
    """
    notes = [tensor_caveat(frames, MARK), above_note(frames), clock_note(frames)]
    if len(chart.kernels) < chart.total:
        shares = _finite([kernel.share for kernel in chart.kernels])
        part = f" ({percent(sum(shares))} of the time)" if shares else ""
        notes.append(f"The {len(chart.kernels)} largest of {plural(chart.total, 'kernel')} by time are drawn{part}.")
    notes += [sweep_note(frames), *status_notes(frames)]
    if outside:
        notes.append(f"{plural(outside, 'dot')} beyond the axes.")
    if chart.panels_left_out:
        notes.append(f"{plural(chart.panels_left_out, 'further panel')} left out: choose with --precision.")
    notes += [roof_note(frames), source_note(frames), *notes_of(frames)]
    return [note for note in notes if note]


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
