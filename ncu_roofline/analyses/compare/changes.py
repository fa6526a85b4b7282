"""What a comparison says: each pair of reports with its kernels as rows, the answer in a line, and every change in words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from ncu_roofline.analyses.compare.frames import Comparison
from ncu_roofline.analyses.compare.kernels import (
    ADDED,
    CLOSER,
    FASTER,
    FURTHER,
    NOT_JUDGED,
    NOTHING,
    REMOVED,
    SAME,
    SLOWER,
    SMALL_SHARE,
    UNKNOWN,
)
from ncu_roofline.analyses.hierarchical.style import level_order
from ncu_roofline.base.texts import clean, listed, plural
from ncu_roofline.base.units import percent, time_text
from ncu_roofline.chips import load_spec
from ncu_roofline.rendering.frames import records, table

ARROW = " \N{RIGHTWARDS ARROW} "
MOST, MOST_NOTES, NAMED = 10, 12, 3
"""Kernels that matter and notes at most: what a screen holds; kernels that are named in a sentence."""
_SMALL, _EQUAL = 0.02, 0.0005  # of a ratio two decimals show too little; three digits of a percentage show nothing
Row = dict[str, Any]
Numbered = tuple[int, Row]  # a row of the kernels behind its number in the frame
PLAIN = {CLOSER: "closer to the roof", FURTHER: "further from the roof", UNKNOWN: "not comparable"}
WORDS = {**PLAIN, ADDED: "new", REMOVED: "gone"}


def rows_of(frames: Comparison, name: str) -> list[Row]:
    """A table as rows of Python values."""
    return records(table(frames, name))  # type: ignore[arg-type]


def pairs(frames: Comparison) -> Iterator[tuple[Row, list[Numbered]]]:
    """Each pair of reports: its summary, and its kernels with their numbers in the frame."""
    kernels: dict[tuple[int, str], list[Numbered]] = {}
    for number, row in enumerate(rows_of(frames, "kernels")):
        kernels.setdefault((row["step"], row["against"]), []).append((number, row))
    for one in rows_of(frames, "summary"):
        yield one, kernels.get((one["step"], one["against"]), [])


def main_pair(frames: Comparison) -> tuple[Row, list[Numbered]] | None:
    """What a picture shows: the last report against the baseline, else against the step before; None of nothing."""
    return max(pairs(frames), key=lambda pair: (pair[0]["step"], pair[0]["against"] == "baseline"), default=None)


def names_of(frames: Comparison) -> dict[str, str]:
    """Reports by the shortest end of their path that tells them apart."""
    reports = dict.fromkeys(str(row[key]) for row in rows_of(frames, "summary") for key in ("baseline", "report"))
    paths = {report: PurePath(report).parts for report in reports}
    for length in range(1, max((len(parts) for parts in paths.values()), default=0) + 1):
        short = {report: "/".join(parts[-length:]) for report, parts in paths.items()}
        if len(set(short.values())) == len(short):
            return {report: clean(name) for report, name in short.items()}
    return {report: clean(report) for report in reports}


def level_of(frames: Comparison) -> str:
    """The level whose bytes and intensity are shown: DRAM, else the outermost that is known."""
    found = level_order({str(level) for level in set(table(frames, "levels")["level"])} - {""})  # type: ignore[arg-type]
    memory = load_spec().memory
    return memory if memory in found or not found else found[-1]


def ratios_of(frames: Comparison, kernels: Iterable[Numbered]) -> dict[str, list[tuple[float, float]]]:
    """FLOPs of a launch, its bytes at that level, and their ratio before and after; NaN where unknown."""
    columns: Any = table(frames, "levels")  # type: ignore[arg-type]
    here = columns["level"] == level_of(frames)
    cells = {(row["row"], row["precision"]): row for row in records({name: columns[name][here] for name in columns})}
    nothing = dict.fromkeys(("traffic_before", "traffic", "intensity_before", "intensity"), math.nan)
    found: dict[str, list[tuple[float, float]]] = {"FLOP": [], "bytes": [], "FLOP/B": []}
    for number, row in kernels:
        moved = cells.get((number, ""), nothing)
        before, after = (cells.get((number, row[name]), nothing) for name in ("precision_before", "precision"))
        found["FLOP"].append((row["work_before"], row["work"]))
        found["bytes"].append((moved["traffic_before"], moved["traffic"]))
        found["FLOP/B"].append((before["intensity_before"], after["intensity"]))
    return found


def same_gpu(one: Row) -> bool:
    """Whether two reports are of one GPU model, in a row of a pair or of a kernel: times of two can't be compared."""
    return bool(one["device_before"] == one["device"])


def pair_title(one: Row, names: Mapping[str, str]) -> str:
    """Which report is compared with which."""
    what = "baseline" if one["against"] == "baseline" else "the step before"
    return f"{names[one['report']]} against {names[one['baseline']]} ({what})"


def headline(one: Row, kernels: Sequence[Numbered]) -> str:
    """The answer in a line: ``1.13x faster: 15.5 ms -> 13.7 ms (12 % less time); 2 kernels slower``, with an arrow for ->."""
    rows = [row for _, row in kernels]
    told = one["outcome"] if same_gpu(one) else ""
    words = [word for word in (FASTER, SLOWER, CLOSER, FURTHER, ADDED, REMOVED) if word != told]
    alone = len(rows) == 1 and rows[0]["outcome"] == told
    counts = ((word, kernels_of(row for row in rows if row["outcome"] == word)) for word in words if not alone)
    return "; ".join([_whole(one), *(f"{plural(count, 'kernel')} {WORDS.get(word, word)}" for word, count in counts if count)])


def _whole(one: Row) -> str:
    if one["outcome"] == NOTHING:
        return "Nothing in common"
    if not same_gpu(one):
        return "Another GPU: shares of the roof are compared, times are not"
    if math.isnan(one["seconds_saved"]):
        return "No run times to compare"
    spent = time_text(one["seconds_before"]) + ARROW + time_text(one["seconds_before"] - one["seconds_saved"])
    if one["time_basis"] == "normalised":
        spent += " at the clock of the baseline"
    if one["outcome"] == NOT_JUDGED:
        return f"Too short to judge: {spent}"
    if one["outcome"] == SAME:
        return f"The same within {percent(one['noise'])}: {spent}"
    ratio, less = (one["speedup"], "less") if one["outcome"] == FASTER else (1 + one["time_change"], "more")
    return f"{ratio_text(ratio)} {one['outcome']}: {spent} ({percent(abs(one['time_change']))} {less} time)"


def about(one: Row, names: Mapping[str, str], titled: bool = True) -> str:
    """Which reports (if ``titled``), and on which GPUs."""
    devices = from_to(clean(one["device_before"]), clean(one["device"]))
    return ", ".join(filter(None, (pair_title(one, names) if titled else "", devices)))


def legend(one: Row) -> str:
    """What times and words mean."""
    clock = ", at the clock of the baseline where clocks differ" if one["time_basis"] == "normalised" else ""
    launches = " (as many as the baseline has)" if one["relaunched"] else ""
    noise = f"same: within the noise of the kernel, {percent(one['noise'])} for the application"
    return f"time: of all launches{launches}{clock}; {noise}" if same_gpu(one) else noise


def details(one: Row, kernels: Sequence[Numbered]) -> str:
    """What `headline` does not say: where the change comes from, what was measured, what is new or gone, in how many rows."""
    rows, told = [row for _, row in kernels], []
    if same_gpu(one) and one["outcome"] in (FASTER, SLOWER):
        by = causes(one, rows)
        told.append(
            f"{time_text(abs(one['seconds_saved']))} {'saved' if one['outcome'] == FASTER else 'lost'}{by and f', {by}'}."
        )
    if same_gpu(one) and one["time_basis"] == "normalised":
        told.append(f"As measured: {time_text(one['seconds_before'])}{ARROW}{time_text(one['seconds'])}.")
    return " ".join(filter(None, (*told, apart(one, rows, ARROW), outcomes(rows, WORDS))))


def causes(one: Row, rows: Sequence[Row]) -> str:
    """The kernels that most of the change comes from, with their times."""
    least = SMALL_SHARE * one["seconds_before"]
    changed = [row for row in rows if row["outcome"] in (FASTER, SLOWER) and abs(row["seconds_saved"]) >= least]
    by = [
        f"{clean(row['kernel'])} {'-' if row['seconds_saved'] > 0 else '+'}{time_text(abs(row['seconds_saved']))}"
        for row in changed[:NAMED]
    ]
    return f"most by {', '.join(by)}" if by and math.isfinite(one["seconds_saved"]) else ""


def apart(one: Row, rows: Sequence[Row], arrow: str) -> str:
    """What only one of the reports has, and the totals of both where they are not what was compared."""
    parts = []
    for word, outcome, seconds in (("New", ADDED, "seconds_added"), ("Gone", REMOVED, "seconds_removed")):
        if one[outcome]:
            names = listed((clean(row["kernel"]) for row in rows if row["outcome"] == outcome), NAMED)
            parts.append(f"{word}: {time_text(one[seconds])}{names and f' ({names})'}.")
    if parts or one["relaunched"]:
        before, after = (plural(one[f"launches{suffix}"], "launch") for suffix in ("_before", ""))
        times = time_text(one["total_seconds_before"]), time_text(one["total_seconds"])
        parts.append(f"In all: {before}, {times[0]}{arrow}{after}, {times[1]}.")
    return " ".join(parts)


def outcomes(rows: Sequence[Row], words: Mapping[str, str]) -> str:
    """How many rows did what, in ``words`` where an outcome has others."""
    counts = Counter(row["outcome"] for row in rows)
    order = (FASTER, SLOWER, SAME, CLOSER, FURTHER, ADDED, REMOVED, UNKNOWN, NOT_JUDGED)
    told = ", ".join(f"{counts[word]} {words.get(word, word)}" for word in order if counts[word])
    return f"{counted(rows)}: {told or 'none'}."


def kernels_of(rows: Iterable[Row]) -> int:
    """How many kernels some rows are about: one launched in several configurations is one."""
    return len({row["name"] for row in rows})


def counted(rows: Sequence[Row]) -> str:
    """``2 kernels``, or ``4 kernels in 32 configurations``."""
    count = kernels_of(rows)
    return plural(count, "kernel") + (f" in {len(rows):,} configurations" if count < len(rows) else "")


def matters(one: Row, kernels: Sequence[Numbered]) -> tuple[list[Numbered], list[Numbered]]:
    """The kernels that changed and matter, MOST at most, and the rest; each in the order of the frame.

    What got worse matters whatever its time; what got better, came, went or has another verdict from 1 % of the time on.
    """
    whole = one["seconds_before"] if one["seconds_before"] > 0 else max(one["total_seconds_before"], one["total_seconds"], 0.0)

    def moved(row: Row) -> bool:
        if row["outcome"] in (FASTER, ADDED, REMOVED):
            return not abs(row["seconds_saved"]) < SMALL_SHARE * whole  # of what nobody timed that is not known
        changed = row["outcome"] == CLOSER or row["verdict_before"] != row["verdict"]
        return row["outcome"] in (SLOWER, FURTHER) or bool(changed and not row["time_share"] < SMALL_SHARE)

    def weight(row: Row) -> float:
        """The time that it saved or lost, between GPUs that it takes."""
        saved = abs(row["seconds_saved"]) if same_gpu(row) or not row["matched"] else row["total_seconds"]
        return float(saved) if math.isfinite(saved) else 0.0

    worth = sorted((pair for pair in kernels if moved(pair[1])), key=lambda pair: -weight(pair[1]))
    shown = {number for number, _ in worth[:MOST]}
    return [pair for pair in kernels if pair[0] in shown], [pair for pair in kernels if pair[0] not in shown]


def labels_of(kernels: Sequence[Numbered]) -> dict[int, str]:
    """Names by number of the row, with grid or place in order where several rows have one name."""
    several, found = Counter(row["kernel"] for _, row in kernels), {}
    for number, row in kernels:
        grid = row["grid"] or row["grid_before"]
        place = f" #{row['occurrence'] + 1}" if row["occurrence"] >= 0 else ""
        more = f"{f' [{grid}]' if grid else ''}{place}" if several[row["kernel"]] > 1 else ""
        found[number] = clean(f"{row['kernel']}{more}")
    return found


def times_of(row: Row) -> tuple[float, float]:
    """Run time [s] before and after of as many launches as the baseline has, on the basis of the comparison; NaN for none."""
    if not row["matched"]:
        return row["total_seconds_before"], row["total_seconds"]
    alike = row["launches"] == row["launches_before"] or row["name"] == "application"
    before = row["total_seconds_before"] if alike else row["seconds_before"] * row["launches_before"]
    return before, before - row["seconds_saved"]


def speedup_of(row: Row) -> float:
    """How many times as fast a launch is; NaN where times are not comparable, or say too little."""
    comparable = row["matched"] and same_gpu(row) and row["outcome"] != NOT_JUDGED and row["time_change"] > -1
    return float(1 / (1 + row["time_change"])) if comparable else math.nan


def said(row: Row) -> str:
    """The change in a few words: 1.78x faster, 1.12x slower, same, new, gone."""
    ratio = {FASTER: speedup_of(row), SLOWER: 1 + row["time_change"]}.get(row["outcome"], math.nan)
    if math.isfinite(ratio):
        return f"{ratio_text(ratio)} {row['outcome']}"
    return str(WORDS.get(row["outcome"], row["outcome"]))


def ratio_text(ratio: float) -> str:
    """How many times as fast or as slow: 1.38x, 12.3x; "" where unknown."""
    if not math.isfinite(ratio):
        return ""
    if ratio >= 10:
        return f"{ratio:.3g}x"
    return f"{ratio:.4g}x" if abs(ratio - 1) < _SMALL else f"{ratio:.2f}x"


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


def from_to(before: str, after: str, arrow: str = ARROW) -> str:
    """Two texts with an arrow between them; one where they are equal, or only one is there."""
    if before == after or not after:
        return before
    return f"{before}{arrow}{after}" if before else after


def verdicts(row: Row, arrow: str = ARROW) -> str:
    """What limited it and what limits it now."""
    return from_to(clean(row["verdict_before"]), clean(row["verdict"]), arrow)


def launches(row: Row, arrow: str = ARROW) -> str:
    """How many there are."""
    return from_to(str(row["launches_before"] or ""), str(row["launches"] or ""), arrow)


def shares(row: Row, arrow: str = ARROW) -> str:
    """Share of its roof, before and after."""
    before, after = (known(row[name], percent) for name in ("fraction_before", "fraction"))
    return from_to(before.removesuffix(" %") if before != after and after else before, after, arrow)


def times(row: Row) -> str:
    """Run time before and after, of all launches."""
    return from_to(*(known(value, time_text) for value in times_of(row)))


def known(value: float, text: Any) -> str:
    """A number as ``text`` writes it, "" where it is unknown."""
    return str(text(value)) if math.isfinite(value) else ""


def notes_of(one: Row, kernels: Sequence[Numbered]) -> list[str]:
    """Notes on the application, then those on kernels, each with the kernels that it is about."""
    of: dict[str, list[str]] = {}
    for _, row in kernels:
        for note in filter(None, row["notes"].split("; ")):
            of.setdefault(note, []).append(clean(row["kernel"]))
    notes = [note for note in one["notes"].split("; ") if note]
    notes += [f"{listed(names, NAMED)}: {note}" for note, names in list(of.items())[:MOST_NOTES]]
    return notes + ([f"and {len(of) - MOST_NOTES} more notes, see csv or json"] if len(of) > MOST_NOTES else [])


def threshold_lines(frames: Comparison) -> list[str]:
    """What tripped, what was not judged or evaluated and why, and how many passed."""
    rows, names = rows_of(frames, "thresholds"), names_of(frames)
    lines = []
    undecided: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        kernel, threshold = clean(row["kernel"]), clean(row["threshold"])
        if row["result"] == "tripped":
            where = f" ({clean(row['configuration'])})" if row["configuration"] else ""
            lines.append(f"tripped: {threshold}: {kernel}{where} in {names[row['report']]}: {row['reason']}")
        elif row["result"] != "passed":
            undecided.setdefault((row["result"], threshold, row["reason"]), []).append(kernel)
    lines += [f"{what}: {threshold}: {listed(kernels, NAMED)}: {why}" for (what, threshold, why), kernels in undecided.items()]
    counts = Counter(row["result"] for row in rows)
    told = (f"{counts[word]} {word}" for word in ("tripped", "passed", "not judged", "not evaluated") if counts[word])
    return [*lines, f"Thresholds: {', '.join(told)}."] if rows else lines
