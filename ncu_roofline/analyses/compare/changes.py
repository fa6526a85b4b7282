"""What of a comparison people look at first: its headline, the kernels that matter, and how a change is said."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

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
from ncu_roofline.analyses.compare.text import (
    ComparisonFrames,
    Row,
    apart,
    causes,
    kernels_of,
    outcomes,
    pair_title,
    pairs,
    ratio_text,
)
from ncu_roofline.analyses.hierarchical.captions import plural
from ncu_roofline.analyses.hierarchical.usage import percent
from ncu_roofline.base.texts import clean
from ncu_roofline.base.units import time_text

ARROW = " \N{RIGHTWARDS ARROW} "
MOST = 10
"""Kernels that matter, at most: what a screen holds."""
Numbered = tuple[int, Row]  # a row of the kernels behind its number in the frame
WORDS = {
    CLOSER: "closer to the roof",
    FURTHER: "further from the roof",
    ADDED: "new",
    REMOVED: "gone",
    UNKNOWN: "not comparable",
}


def main_pair(frames: ComparisonFrames) -> tuple[Row, list[Numbered]] | None:
    """What a picture shows: the last report against the baseline, else against the step before; None of nothing."""
    found = list(pairs(frames))
    return max(found, key=lambda pair: (pair[0]["step"], pair[0]["against"] == "baseline"), default=None)


def same_gpu(one: Row) -> bool:
    """Whether the reports of a pair are of one GPU model: times of two can't be compared."""
    return bool(one["device_before"] == one["device"])


def comparable(row: Row) -> bool:
    """Whether the times of a row's two reports may be compared: of kernels that both have, on one GPU model."""
    return bool(row["matched"] and row["device"] == row["device_before"])


def headline(one: Row, kernels: Sequence[Numbered]) -> str:
    """The answer in a line: ``1.13x faster: 15.5 ms -> 13.7 ms (12 % less time); 2 kernels slower``, with an arrow for ->."""
    rows = [row for _, row in kernels]
    told = one["outcome"] if same_gpu(one) else ""
    words = [word for word in (FASTER, SLOWER, CLOSER, FURTHER, ADDED, REMOVED) if word != told]
    alone = len(rows) == 1 and rows[0]["outcome"] == told
    counts = ((word, kernels_of(row for row in rows if row["outcome"] == word)) for word in words if not alone)
    return "; ".join([_whole(one), *(f"{plural(count, 'kernel')} {WORDS.get(word, word)}" for word, count in counts if count)])


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


def _whole(one: Row) -> str:
    if one["outcome"] == NOTHING:
        return "Nothing in common"
    if not same_gpu(one):
        return "Another GPU: shares of the roof are compared, times are not"
    if math.isnan(one["seconds_saved"]):
        return "No run times to compare"
    now = one["seconds_before"] - one["seconds_saved"]
    spent = time_text(one["seconds_before"]) + ARROW + time_text(now)
    if one["time_basis"] == "normalised":
        spent += " at the clock of the baseline"
    if one["outcome"] == NOT_JUDGED:
        return f"Too short to judge: {spent}"
    if one["outcome"] == SAME:
        return f"The same within {percent(one['noise'])}: {spent}"
    ratio, less = (one["speedup"], "less") if one["outcome"] == FASTER else (1 + one["time_change"], "more")
    return f"{ratio_text(ratio)} {one['outcome']}: {spent} ({percent(abs(one['time_change']))} {less} time)"


def details(one: Row, kernels: Sequence[Numbered]) -> str:
    """What `headline` does not say: where the change comes from, what was measured, what is new or gone, in how many rows."""
    rows, said = [row for _, row in kernels], []
    if same_gpu(one) and one["outcome"] in (FASTER, SLOWER):
        by = causes(one, rows)
        said.append(
            f"{time_text(abs(one['seconds_saved']))} {'saved' if one['outcome'] == FASTER else 'lost'}{by and f', {by}'}."
        )
    if same_gpu(one) and one["time_basis"] == "normalised":
        said.append(f"As measured: {time_text(one['seconds_before'])}{ARROW}{time_text(one['seconds'])}.")
    return " ".join(filter(None, (*said, apart(one, rows, ARROW), outcomes(rows, WORDS))))


def matters(one: Row, kernels: Sequence[Numbered]) -> tuple[list[Numbered], list[Numbered]]:
    """The kernels that changed and matter, MOST at most, and the rest; each in the order of the frame.

    What got worse matters whatever its time; what got better, came, went or has another verdict from 1 % of the time on.
    """
    whole = one["seconds_before"] if one["seconds_before"] > 0 else max(one["total_seconds_before"], one["total_seconds"], 0.0)
    found = {number for number, row in kernels if row["outcome"] in (SLOWER, FURTHER) or _moved(row, whole)}
    worth = sorted((pair for pair in kernels if pair[0] in found), key=lambda pair: -_weight(pair[1]))
    shown = {number for number, _ in worth[:MOST]}
    return [pair for pair in kernels if pair[0] in shown], [pair for pair in kernels if pair[0] not in shown]


def _moved(row: Row, whole: float) -> bool:
    if row["outcome"] in (FASTER, ADDED, REMOVED):
        return not abs(row["seconds_saved"]) < SMALL_SHARE * whole  # of what nobody timed that is not known
    changed = row["outcome"] == CLOSER or row["verdict_before"] != row["verdict"]
    return bool(changed and not row["time_share"] < SMALL_SHARE)


def _weight(row: Row) -> float:
    """What a row is ranked by: the time it saved or lost, between GPUs the time that it takes."""
    saved = abs(row["seconds_saved"]) if row["device"] == row["device_before"] or not row["matched"] else row["total_seconds"]
    return float(saved) if math.isfinite(saved) else 0.0


def labels_of(kernels: Sequence[Numbered]) -> dict[int, str]:
    """Names by number of the row, with grid or place in order where several rows have one name."""
    several = Counter(row["kernel"] for _, row in kernels)
    return {number: clean(_label(row)) if several[row["kernel"]] > 1 else clean(row["kernel"]) for number, row in kernels}


def _label(row: Row) -> str:
    grid = row["grid"] or row["grid_before"]
    place = f" #{row['occurrence'] + 1}" if row["occurrence"] >= 0 else ""
    return f"{row['kernel']}{f' [{grid}]' if grid else ''}{place}"


def times_of(row: Row) -> tuple[float, float]:
    """Run time [s] before and after of as many launches as the baseline has, on the basis of the comparison; NaN for none."""
    if not row["matched"]:
        return row["total_seconds_before"], row["total_seconds"]
    alike = row["launches"] == row["launches_before"] or row["name"] == "application"
    before = row["total_seconds_before"] if alike else row["seconds_before"] * row["launches_before"]
    return before, before - row["seconds_saved"]


def speedup_of(row: Row) -> float:
    """How many times as fast a launch is; NaN where times are not comparable, or say too little."""
    if not comparable(row) or row["outcome"] == NOT_JUDGED or not row["time_change"] > -1:
        return math.nan
    return float(1 / (1 + row["time_change"]))


def said(row: Row) -> str:
    """The change in a few words: 1.78x faster, 1.12x slower, same, new, gone."""
    ratio = {FASTER: speedup_of(row), SLOWER: 1 + row["time_change"]}.get(row["outcome"], math.nan)
    if math.isfinite(ratio):
        return f"{ratio_text(ratio)} {row['outcome']}"
    return str(WORDS.get(row["outcome"], row["outcome"]))


def from_to(before: str, after: str) -> str:
    """Two texts with an arrow between them; one where they are equal, or only one is there."""
    if before == after or not after:
        return before
    return f"{before}{ARROW}{after}" if before else after


def verdicts(row: Row) -> str:
    """What limited it and what limits it now."""
    return from_to(clean(row["verdict_before"]), clean(row["verdict"]))


def share_text(share: float) -> str:
    """A share in per cent, "" where unknown."""
    return percent(share) if math.isfinite(share) else ""


def shares(row: Row) -> str:
    """Share of its roof, before and after."""
    before, after = (share_text(row[name]) for name in ("fraction_before", "fraction"))
    return from_to(before.removesuffix(" %") if before != after and after else before, after)


def times(row: Row) -> str:
    """Run time before and after, of all launches."""
    return from_to(*(time_text(value) if math.isfinite(value) else "" for value in times_of(row)))
