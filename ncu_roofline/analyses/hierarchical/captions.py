"""The texts around a chart: where it comes from, and what a reader must know before believing it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ncu_roofline.analyses.hierarchical import kernels, style
from ncu_roofline.base.files import ReportNames
from ncu_roofline.base.groups import grouped
from ncu_roofline.base.texts import clean, listed, plural
from ncu_roofline.base.units import format_value, percent, range_text
from ncu_roofline.chips.formulas import INSTEAD
from ncu_roofline.chips.verdict import CLOCK_WARNING, as_percent
from ncu_roofline.formats.ceilings import JUDGES, NOT_COMPARABLE, PUBLISHED
from ncu_roofline.model.columns import UNUSED
from ncu_roofline.model.points import ABOVE
from ncu_roofline.model.work import SOURCES
from ncu_roofline.rendering.frames import Frames, column, optional, rows, view_of

_CLOCKS_DIFFER = 0.05  # launches whose clocks differ by more are told as a range beside the mean
_TENSOR = "Tensor cores were busy"  # a note that `tensor_caveat` says in other words
_PRECISION = re.compile(r"\b(?:[fb]p?f?|u?int)(?:4|6|8|16|32|64)\b")  # ids of precisions
_MOST = 4  # notes, unless a caller asks for more
# In notes of rows: clock_note and above_note say it for all, and lanes are a number of each kernel.
_SAID_ELSEWHERE = ("of the maximum clock", "lanes work on average", ABOVE)
# Words of notes that say a number is too low, too high or uncertain; these are never left out.
_DOUBTS = (
    *("lower bound", "loads only", "not counted", "count as hits", "count more than there are", "incomplete", "unproven"),
    *("true of", "lack the metrics", "disagree", "differ", "replay", "faster than its roof", INSTEAD, JUDGES),
)
# Why a kernel has no points, by its status in the frame of kernels.
WHY = {
    "zero-flop": "without floating-point work",
    "tensor-unknown": "whose tensor FLOPs were not collected",
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
_SOURCES = {source: text for source, text in SOURCES.items() if source != "binding"}


# Kernels without dots


def why(frames: Frames, status: str) -> str:
    if view_of(frames) == "instruction" and status == "no-work-metrics":
        return "without metrics of executed instructions"
    names = " or ".join("tensor" if one == "tensor" else style.precision_label(one) for one in getattr(frames, "asked", ()))
    asked = {"zero-asked": f"without {names} work (counted, zero)", "uncounted-asked": f"without metrics of {names} work"}
    return asked.get(status) or WHY.get(status, clean(status))


def why_absent(frames: Frames, absent: Iterable[kernels.Kernel], *, lacks: bool = False) -> list[str]:
    """For each reason why kernels have no dots a sentence: how many, their share of the time, and what the report ``lacks``."""
    told = []
    for status, members in grouped((one.status, one) for one in absent).items():
        missing = lacking(members) if lacks else []
        without = f"; lacks {', '.join(missing)}" if missing else ""
        share = of_the_time(one.time_share for one in members)
        told.append(f"{kernels.counts_text(members)} {why(frames, status)}{share}{without}.")
    return told


def lacking(members: Iterable[kernels.Kernel]) -> list[str]:
    """What the report lacks for some kernels, each once; nothing of work that was counted and is zero."""
    words = " ".join(one.missing for one in members if one.status not in kernels.ZERO).split()
    return [style.label_of(word) for word in dict.fromkeys(words)]


def of_the_time(shares: Iterable[float]) -> str:
    """ ", 12 % of the time" for some shares; nothing where none is known."""
    known = [share for share in shares if math.isfinite(share)]
    return f", {percent(sum(known))} of the time" if known else ""


def explanation(frames: Frames) -> str:
    absent = kernels.without_dots(frames)
    if not absent:
        return "No kernels are left to draw."
    missing = getattr(frames, "to_collect", ()) or lacking(absent)
    lacks = [f"Missing metrics: {', '.join(missing)}."] if missing else []
    return "\n".join(["No kernel can be drawn.", *why_absent(frames, absent), *lacks, *how_to_add(frames)])


def how_to_add(frames: Frames) -> list[str]:
    """Which command tells how to collect what kernels lack; [] where work was counted and is zero."""
    option = f" --view {view_of(frames)}" if getattr(frames, "to_collect", ()) else ""
    text = f"`ncu-roofline explain{option}` prints the ncu command that adds them."
    return [text] if lacking(kernels.kernels_of(frames).values()) else []


# What a chart is of


def name_of(frames: Frames) -> str:
    return "Instruction roofline" if view_of(frames) == "instruction" else "Roofline"


def empirical_name(frames: Frames) -> str:
    """What the roofs that are not theoretical are called: measured, or what others published, or both where GPUs differ."""
    found = {source == PUBLISHED for origin, source in rows(frames, "roofs", "origin", "source") if origin == "measured"}
    return " or ".join(name for name, known in (("measured", False), ("published", True)) if known in found) or "measured"


def report_names(frames: Frames) -> dict[str, str]:
    """Report of the frames -> what it is called, those of rows that sum up several reports as well."""
    reports = [report for _, report in getattr(frames, "sources", ())]
    reports = [one for one in reports or column(frames, "kernels", "report") or column(frames, "roofs", "report") if one]
    called = ReportNames.apart(reports)
    return {report: called(report) for report in reports}


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


def subtitle(frames: Frames) -> str:
    """GPU, report, ncu release and clock."""
    of = "roofs" if column(frames, "roofs", "roof") else "kernels"
    devices = dict.fromkeys(rows(frames, of, "device", "compute_capability"))
    versions = (f"ncu {version}" for version in column(frames, "kernels", "ncu_version") if version)
    facts = []
    for names, what in (
        ((f"{device} (compute capability {cc})" if cc else device for device, cc in devices), "GPUs"),
        (report_names(frames).values(), "reports"),
        (versions, "ncu releases"),
    ):
        distinct = list(dict.fromkeys(filter(None, map(clean, names))))
        facts.append(", ".join(distinct) if len(distinct) <= 2 else f"{len(distinct)} {what}")
    mean, low, high, differ = _time_weighted(frames, "clock_profiled")
    between = f" ({range_text(low, high, 'hertz')})" if differ else ""
    highest = _frequency(column(frames, "kernels", "clock_max"))
    if not math.isnan(mean):
        facts.append(f"SM clock {format_value(mean, 'hertz', 3)}{between}{f' of {highest}' if highest else ''}")
    return " \N{MIDDLE DOT} ".join(filter(None, facts))


def drawn_note(drawn: Sequence[kernels.Kernel], total: int) -> str:
    """How many of the kernels a picture has, "" where it has all."""
    part = of_the_time(kernel.time_share for kernel in drawn).removeprefix(", ")
    text = f"The {len(drawn)} largest of {plural(total, 'kernel')} by time are drawn{f' ({part})' if part else ''}."
    return text if len(drawn) < total else ""


def main_notes(frames: Frames, mark: str = "") -> list[str]:
    """What makes all numbers doubtful, the weightiest first; ``mark`` as of `tensor_caveat`."""
    notes = kernels.tensor_caveat(frames, mark), above_note(frames), clock_note(frames)
    return [note for note in notes if note]


def clock_note(frames: Frames) -> str:
    """A warning where the kernels' time was spent well below the maximum clock, "" otherwise."""
    mean, low, high, differ = _time_weighted(frames, "clock_ratio")
    between = f" ({as_percent(low)} to {as_percent(high)})" if differ else ""
    text = f"Profiled at {as_percent(mean)}{between} of the maximum SM clock"
    return f"{text}: the application may run faster without the profiler." if mean < CLOCK_WARNING else ""


def above_note(frames: Frames) -> str:
    """How many dots (and kernels without) stand above a roof, and why that of the highest may be; "" where none does."""
    labels, found = kernels.kernel_labels(frames), list[tuple[float, str, str, str]]()
    heights = zip(*(optional(frames, "points", name, math.nan) for name in ("performance", "attainable")), strict=True)
    about = rows(frames, "points", "report", "kernel", "precision", "notes")
    for (performance, roof), (report, kernel, precision, notes) in zip(heights, about, strict=True):
        if ABOVE in notes:
            name, height = labels[report, kernel], performance / roof if roof > 0 and performance > 0 else 0.0
            found.append((height, name, f"{name}, {style.label_of(clean(precision))}", notes))
    dots, known = len(found), {name for _, name, *_ in found}
    others = [one for one in kernels.kernels_of(frames).values() if ABOVE in one.notes and one.name not in known]
    found += [(0.0, one.name, one.name, one.notes) for one in others]
    if not found:
        return ""
    counted = " and ".join(plural(count, noun) for count, noun in ((dots, "dot"), (len(others), "kernel")) if count)
    stands, first = ("stands", "") if len(found) == 1 else ("stand", "The highest is ")
    *_, name, notes = max(found, key=lambda one: one[0])
    text = notes[notes.index(ABOVE) :].partition("; ")[0].removeprefix(ABOVE)
    return f"{counted} {stands} above a roof. {first}{name}: {clean(text)}."


def roof_note(frames: Frames) -> str:
    given = rows(frames, "roofs", "kind", "origin", "source", "clock_basis", "clock")
    bases = grouped(
        ((NOT_COMPARABLE if source == PUBLISHED else origin, basis), clock)
        for kind, origin, source, basis, clock in given
        if kind != "wall" and origin != UNUSED  # a pattern of access has no clock
    )
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


def source_note(frames: Frames, among: Iterable[str] = tuple(_SOURCES)) -> str:
    """How many dots come from other sources than their own counters, of those ``among``."""
    every = column(frames, "points", "source")
    sources, total = Counter(source for source in every if source in among), plural(len(every), "dot")
    return " ".join(f"{count} of {total} {_SOURCES[source]}." for source, count in sources.most_common())


# Notes on kernels, points and roofs


def _told(notes: str) -> list[str]:
    """The notes of a row that nothing else says."""
    found = filter(None, map(clean, notes.split("; ")))
    return [note for note in found if not any(text in note for text in _SAID_ELSEWHERE)]


def _sentence(note: str, subject: str = "") -> str:
    text = _PRECISION.sub(lambda match: style.precision_label(match[0]), note).rstrip(".")
    return f"{subject}: {text}." if subject and not note.startswith(subject) else f"{text[0].upper()}{text[1:]}."


def row_notes(frames: Frames, most: int = _MOST, known: Sequence[str] = ()) -> list[str]:
    """What single points and roofs say of themselves: all that makes a number doubtful, then the commonest up to ``most``.

    Sentences that are ``known``, with or without names behind them, are not said again.  What is not true of all is said with
    its levels, else with its precisions or roofs.
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
    found = []
    for note in (*doubts, *[note for note in ranked if note not in doubts][: max(0, most - len(doubts))]):
        if any(one == _sentence(note) or one.startswith(f"{_sentence(note)[:-1]} (") for one in known):
            continue
        mine = set(about[note])
        kinds = {name for name, _, _ in mine}
        among = [one for one in everything if one[0] in kinds]
        levels = style.level_order(level for _, level, _ in mine if level)
        of_roofs_too = any(name == "roofs" and not level for name, level, _ in mine)
        if levels and set(levels) < {level for _, level, _ in among if level} and not of_roofs_too:
            subject = ", ".join(style.level_style(level).label for level in levels)
        elif {(name, label) for name, _, label in mine} >= {(name, label) for name, _, label in among}:
            subject = ""
        else:
            texts = (style.label_of(clean(text)) if name == "points" else clean(text) for name, _, text in sorted(mine))
            subject = listed(filter(None, texts))
        found.append(_sentence(note, subject))
    return found


def kernel_notes(frames: Frames, most: int = _MOST) -> list[str]:
    """What must be known of single kernels, those of the most time first; with their names where it is not said of all."""
    every = kernels.by_time(kernels.kernels_of(frames).values())
    found = grouped((note, one.name) for one in every for note in _told(one.notes))
    sentences = [
        f"{_sentence(note)[:-1]} ({listed(names, kernels.NAMED)})." if len(names) < len(every) else _sentence(note)
        for note, names in found.items()
    ]
    more = [f"And {plural(len(sentences) - most, 'more note')} on kernels: see csv or json."] if len(sentences) > most else []
    return [*sentences[:most], *more]


def notes_of(frames: Frames, most: int = _MOST, *, doubts: bool = False) -> list[str]:
    """Notes of kernels, then those of points and roofs that no kernel's note says already; up to ``most`` of each.

    ``doubts``: of points and roofs only what makes a number doubtful, beside unknown tensor work.
    """
    found = kernel_notes(frames, most)
    found += row_notes(frames, 0 if doubts else most, found)
    return [note for note in found if not doubts or not note.startswith(_TENSOR)]
