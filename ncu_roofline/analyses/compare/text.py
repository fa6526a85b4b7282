"""A comparison in words, as text for a terminal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Protocol

from ncu_roofline.analyses.compare.kernels import SMALL_SHARE
from ncu_roofline.analyses.hierarchical.captions import plural
from ncu_roofline.analyses.hierarchical.style import level_order
from ncu_roofline.analyses.hierarchical.usage import percent
from ncu_roofline.base.texts import clean, listed
from ncu_roofline.base.units import time_text
from ncu_roofline.chips import load_spec
from ncu_roofline.rendering.document import Column, Document, Note, Table, terminal
from ncu_roofline.rendering.frames import records, table

if TYPE_CHECKING:
    import pandas as pd

ARROW = " -> "
MOST_NOTES = 12
_NAMED = 3
_SMALL = 0.02  # changes of a ratio of which two decimals show too little
_EQUAL = 0.0005  # changes that three digits of a percentage do not show
_OUTCOMES = ("faster", "slower", "same", "closer", "further", "added", "removed", "unknown", "not judged")
NOTHING = "no kernel of one report is in the other"
_WORDS = {"closer": "closer to the roof", "further": "further from the roof", "unknown": "not comparable"}

Row = dict[str, Any]


class ComparisonFrames(Protocol):
    """What is drawn: the tables of a comparison, columns as in ``ncu_roofline.analyses.compare.columns``."""

    @property
    def kernels(self) -> pd.DataFrame: ...
    @property
    def levels(self) -> pd.DataFrame: ...
    @property
    def summary(self) -> pd.DataFrame: ...
    @property
    def thresholds(self) -> pd.DataFrame: ...


def rows_of(frames: ComparisonFrames, name: str) -> list[Row]:
    """A table as rows of Python values."""
    return records(table(frames, name))  # type: ignore[arg-type]


def pairs(frames: ComparisonFrames) -> Iterator[tuple[Row, list[tuple[int, Row]]]]:
    """Each pair of reports: its summary, and its kernels with their numbers in the frame."""
    kernels = list(enumerate(rows_of(frames, "kernels")))
    for one in rows_of(frames, "summary"):
        key = one["step"], one["against"]
        yield one, [(number, row) for number, row in kernels if (row["step"], row["against"]) == key]


def names_of(frames: ComparisonFrames) -> dict[str, str]:
    """Reports by the shortest end of their path that tells them apart."""
    reports = dict.fromkeys(str(row[key]) for row in rows_of(frames, "summary") for key in ("baseline", "report"))
    paths = {report: PurePath(report).parts for report in reports}
    for length in range(1, max((len(parts) for parts in paths.values()), default=0) + 1):
        short = {report: "/".join(parts[-length:]) for report, parts in paths.items()}
        if len(set(short.values())) == len(short):
            return {report: clean(name) for report, name in short.items()}
    return {report: clean(report) for report in reports}


def pair_title(one: Row, names: Mapping[str, str]) -> str:
    """Which report is compared with which."""
    what = "baseline" if one["against"] == "baseline" else "the step before"
    return f"{names[one['report']]} against {names[one['baseline']]} ({what})"


def sentence(one: Row, kernels: list[tuple[int, Row]]) -> str:
    """How the kernels that both reports have changed, and by which; what is new or gone; totals; how many did what."""
    rows = [row for _, row in kernels]
    return " ".join(filter(None, (_common(one, rows), apart(one, rows, ARROW), outcomes(rows, _WORDS))))


def outcomes(rows: Sequence[Row], words: Mapping[str, str]) -> str:
    """How many rows did what, in ``words`` where an outcome has others."""
    counts = Counter(row["outcome"] for row in rows)
    said = ", ".join(f"{counts[word]} {words.get(word, word)}" for word in _OUTCOMES if counts[word])
    return f"{counted(rows)}: {said or 'none'}."


def ratio_text(ratio: float) -> str:
    """How many times as fast or as slow: 1.38x, 12.3x; "" where unknown."""
    if not math.isfinite(ratio):
        return ""
    if ratio >= 10:
        return f"{ratio:.3g}x"
    return f"{ratio:.4g}x" if abs(ratio - 1) < _SMALL else f"{ratio:.2f}x"


def _common(one: Row, rows: list[Row]) -> str:
    """How the kernels changed that both reports have."""
    if not one["matched"]:
        return f"nothing in common: {NOTHING}."
    spent = time_text(one["seconds_before"]) + ARROW + time_text(one["seconds"])
    if one["time_basis"] == "normalised" and math.isfinite(one["seconds_normalised"]):
        at_clock = time_text(one["seconds_before"] - one["seconds_saved"])
        spent += f" as measured, {at_clock} at the clock of the baseline"
    if one["relaunched"]:
        spent += ", per launch (medians where their number differs) and weighted by the launches of the baseline"
    saved, by = abs(one["seconds_saved"]), causes(one, rows)
    text = {
        "faster": f"{ratio_text(one['speedup'])} faster, {time_text(saved)} saved: {spent}",
        "slower": f"{ratio_text(1 + one['time_change'])} slower, {time_text(saved)} lost: {spent}",
        "same": f"the same within {percent(one['noise'])}: {spent}",
        "not judged": f"too short to judge: {spent}",
    }.get(one["outcome"], f"times not compared: {spent}")
    return f"{text}{f' ({by})' if by else ''}."


def causes(one: Row, rows: Sequence[Row]) -> str:
    """The kernels that most of the change comes from, with their times."""
    by = ", ".join([_share(row) for row in rows if _matters(row, one)][:_NAMED])
    return f"most by {by}" if by else ""


def apart(one: Row, rows: Sequence[Row], arrow: str) -> str:
    """What only one of the reports has, and the totals of both where they are not what was compared."""
    parts = []
    for word, outcome, seconds in (("New", "added", "seconds_added"), ("Gone", "removed", "seconds_removed")):
        if one[outcome]:
            names = [clean(row["kernel"]) for row in rows if row["outcome"] == outcome]
            parts.append(f"{word}: {time_text(one[seconds])}{f' ({listed(names, _NAMED)})' if names else ''}.")
    if parts or one["relaunched"]:
        before, after = (plural(one[f"launches{suffix}"], "launch") for suffix in ("_before", ""))
        times = time_text(one["total_seconds_before"]), time_text(one["total_seconds"])
        parts.append(f"In all: {before}, {times[0]}{arrow}{after}, {times[1]}.")
    return " ".join(parts)


def _matters(row: Row, one: Row) -> bool:
    named = row["outcome"] in ("faster", "slower")
    return bool(
        named and math.isfinite(one["seconds_saved"]) and abs(row["seconds_saved"]) >= SMALL_SHARE * one["seconds_before"]
    )


def _share(row: Row) -> str:
    return f"{clean(row['kernel'])} {'-' if row['seconds_saved'] > 0 else '+'}{time_text(abs(row['seconds_saved']))}"


def kernels_of(rows: Iterable[Row]) -> int:
    """How many kernels some rows are about: one launched in several configurations is one."""
    return len({row["name"] for row in rows})


def counted(rows: Sequence[Row]) -> str:
    """``2 kernels``, or ``4 kernels in 32 configurations``."""
    count = kernels_of(rows)
    return plural(count, "kernel") + (f" in {len(rows):,} configurations" if count < len(rows) else "")


def change(before: float, after: float) -> str:
    """A change as text: "+12 %", "=" for none, "x 12" for a large one, "n/a" where a number is missing."""
    if not (math.isfinite(before) and math.isfinite(after)):
        return "n/a"
    if before == after or abs(after - before) < _EQUAL * abs(before):
        return "="
    if before == 0:
        return "from 0"
    ratio = after / before
    return f"x {ratio:.3g}" if ratio >= 10 else f"{100 * (ratio - 1):+.1f} %"


def level_of(frames: ComparisonFrames) -> str:
    """The level whose bytes and intensity the table shows: DRAM, else the outermost that is known."""
    found = level_order({str(level) for level in table(frames, "levels")["level"].tolist()} - {""})  # type: ignore[arg-type]
    memory = load_spec().memory
    return memory if memory in found or not found else found[-1]


_COLUMNS = (
    Column("kernel", "str", "", ""),
    Column("grid", "str", "", "", priority=5),
    Column("launches", "text", "", "", priority=3),
    Column("total time", "text", "", "", priority=8),
    Column("time", "text", "", "", "{time}"),
    Column("change", "text", "", ""),
    Column("FLOP", "text", "", "", priority=7),
    Column("bytes", "text", "", "", "{level} B", 6),
    Column("FLOP/B", "text", "", "", priority=9),
    Column("of roof", "text", "", ""),
    Column("verdict", "str", "", "", priority=4),
    Column("outcome", "str", "", ""),
)


def kernels_table(frames: ComparisonFrames, one: Row, kernels: Sequence[tuple[int, Row]]) -> Table:
    """What changed in each of these kernels; of launches that are one of several, for each."""
    memory = level_of(frames)
    levels = {(row["row"], row["precision"], row["level"]): row for row in rows_of(frames, "levels")}
    alike = len({row["name"] for _, row in kernels}) < len(kernels)
    several = any(row["launches_before"] > 1 or row["launches"] > 1 for _, row in kernels)
    rows = []
    for number, row in kernels:
        traffic = levels.get((number, "", memory), {})
        before, after = (levels.get((number, row[f"precision{when}"], memory), {}) for when in ("_before", ""))
        rows.append(
            {
                "kernel": row["kernel"],
                "grid": _before_after(row, "grid") if alike else "",
                "launches": _either(str(row["launches_before"] or ""), str(row["launches"] or "")) if several else "",
                "total time": _times(row, "total_seconds") if several else "",
                "time": _times(row, "seconds"),
                "change": _time_change(row),
                "FLOP": change(row["work_before"], row["work"]),
                "bytes": change(traffic.get("traffic_before", math.nan), traffic.get("traffic", math.nan)),
                "FLOP/B": change(before.get("intensity_before", math.nan), after.get("intensity", math.nan)),
                "of roof": _fractions(row),
                "verdict": _before_after(row, "verdict"),
                "outcome": row["outcome"],
            }
        )
    words = {"time": "time/launch" if several else "time", "level": memory.upper()}
    return Table("kernels", _COLUMNS, rows, tuple(column.name for column in _COLUMNS), words=words, legend=legend(one))


def _either(before: str, after: str) -> str:
    """One text for two: once where they are equal, or one is empty."""
    return before if before == after else ARROW.join(filter(None, (before, after)))


def _before_after(row: Row, name: str) -> str:
    return _either(clean(row[f"{name}_before"]), clean(row[name]))


def _times(row: Row, name: str) -> str:
    """Times that are compared: a change and the times beside it are on one basis."""
    if row["outcome"] in ("added", "removed"):
        return time_text(row[name if row["outcome"] == "added" else f"{name}_before"])
    after = time_text(row[f"{name}_normalised"]) + "*" if row["time_basis"] == "normalised" else time_text(row[name])
    return time_text(row[f"{name}_before"]) + ARROW + after


def _time_change(row: Row) -> str:
    if row["device"] != row["device_before"]:
        return ""
    return change(1.0, 1.0 + row["time_change"]) + ("*" if row["time_basis"] == "normalised" else "")


def _fractions(row: Row) -> str:
    before, after = (percent(row[name]) if math.isfinite(row[name]) else "" for name in ("fraction_before", "fraction"))
    return _either(before.removesuffix(" %") if after else before, after) if before != after else before


def legend(one: Row) -> str:
    """What the table's marks mean."""
    star = "*: at the clock of the baseline. " if one["time_basis"] == "normalised" else ""
    return f"{star}same: within the noise of the kernel, {percent(one['noise'])} for the application; =: no change."


def notes_of(one: Row, kernels: list[tuple[int, Row]]) -> list[str]:
    """Notes on the application, then those on kernels, each with the kernels that it is about."""
    about: dict[str, list[str]] = {}
    for _, row in kernels:
        for note in filter(None, row["notes"].split("; ")):
            about.setdefault(note, []).append(clean(row["kernel"]))
    notes = [note for note in one["notes"].split("; ") if note]
    for note, names in list(about.items())[:MOST_NOTES]:
        notes.append(f"{listed(names, _NAMED)}: {note}")
    if len(about) > MOST_NOTES:
        notes.append(f"and {len(about) - MOST_NOTES} more notes, see csv or json")
    return notes


def threshold_lines(frames: ComparisonFrames) -> list[str]:
    """What tripped, what was not judged or evaluated and why, and how many passed."""
    rows, names = rows_of(frames, "thresholds"), names_of(frames)
    lines = [
        f"tripped: {clean(row['threshold'])}: {clean(row['kernel'])}"
        f"{' (' + clean(row['configuration']) + ')' if row['configuration'] else ''} in {names[row['report']]}: {row['reason']}"
        for row in rows
        if row["result"] == "tripped"
    ]
    undecided: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        if row["result"] in ("not judged", "not evaluated"):
            undecided.setdefault((row["result"], clean(row["threshold"]), row["reason"]), []).append(clean(row["kernel"]))
    lines += [f"{what}: {threshold}: {listed(names, _NAMED)}: {why}" for (what, threshold, why), names in undecided.items()]
    counts = Counter(row["result"] for row in rows)
    if rows:
        said = ", ".join(
            f"{counts[word]} {word}" for word in ("tripped", "passed", "not judged", "not evaluated") if counts[word]
        )
        lines.append(f"Thresholds: {said}.")
    return lines


def document(comparison: ComparisonFrames) -> Document:
    """Each pair of reports: what changed in a sentence, kernel by kernel, and what must be known of it; then the thresholds."""
    names, parts = names_of(comparison), []
    for one, kernels in pairs(comparison):
        title = pair_title(one, names)
        table = kernels_table(comparison, one, kernels)
        notes = [Note(note, "kernel") for note in notes_of(one, kernels)]
        parts.append(Document(title, blocks=[(title, sentence(one, kernels)), table], notes=notes))
    return Document("Comparison", blocks=[*parts, tuple(threshold_lines(comparison))])


def render_text(comparison: ComparisonFrames, *, width: int = 120, ascii_only: bool = False) -> bytes:
    """The text of `ncu-roofline compare` as UTF-8, for ``width`` characters (60 at least)."""
    return (terminal(document(comparison), width=width, ascii_only=ascii_only) + "\n").encode("utf-8", "replace")
