"""The rows by kernel of a comparison, and the row of the application: times per launch on one clock, noise, outcomes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ncu_roofline.analyses.compare.limits import at_sm_clock, described, limit_of
from ncu_roofline.analyses.compare.sides import NAME_ONLY, NUMBERS, PARAMETERS, TEMPLATE, Matching, Side, Totals
from ncu_roofline.base.units import format_value
from ncu_roofline.chips.thresholds import SHORT_LAUNCH
from ncu_roofline.model.measurements import FloatArray

SMALL_SHARE = 0.01  # of the application's time
CLOCK_DIFFERS = 0.01  # of the clock: below it, normalising would add more noise than it takes away
FASTER, SLOWER, SAME, CLOSER, FURTHER = "faster", "slower", "same", "closer", "further"
ADDED, REMOVED, UNKNOWN, NOT_JUDGED = "added", "removed", "unknown", "not judged"
NOTHING = "nothing in common"
OTHER_GPU = "the GPUs differ: times are not comparable, shares of the roof are"
_HOW = {
    NAME_ONLY: "matched by name only",
    PARAMETERS: "matched without the function's parameters, which changed",
    NUMBERS: "matched by a name in which numbers changed",
    TEMPLATE: "matched by the function's name: its template arguments came or went",
}


@dataclass(frozen=True)
class Pair:
    """Two sides with what was matched, and the sums of both over each group."""

    step: int
    against: str
    before: Side
    after: Side
    matching: Matching
    old: Totals
    new: Totals
    short: Mapping[str, str]

    @cached_property
    def common(self) -> Any:
        """Which groups both sides have."""
        return self.old.present & self.new.present

    @cached_property
    def launch_ratio(self) -> FloatArray:
        """Launches of the baseline over those of the new report, of each group."""
        with np.errstate(all="ignore"):
            return np.asarray(self.old.units / self.new.units, dtype=np.float64)

    @property
    def where(self) -> dict[str, Any]:
        """The columns that all rows of the pair share."""
        return {"step": self.step, "against": self.against, "baseline": self.before.label, "report": self.after.label}


@dataclass(frozen=True)
class Noise:
    """What counts as no change: ``tolerance``, and the relative spread of measured roofs by what binds (level or roof id)."""

    tolerance: float
    roofs: Mapping[str, float]

    def of(self, row: Mapping[str, Any]) -> float:
        """Of a kernel: spread of its times and, where shares of the roof are compared, of the roofs."""
        spreads = [row["spread_before"], row["spread"]]
        if not _comparable(row):
            spreads += [self.roofs.get(row[name], math.nan) for name in ("binds_before", "binds")]
        return max(self.tolerance, math.hypot(*filter(math.isfinite, spreads)))


def kernel_rows(pair: Pair, noise: Noise, times: str, small: bool) -> list[dict[str, Any]]:
    """One row per group, the largest change of time first; ``group`` is its number in the pair.  ``small``: all are judged."""
    total = [np.nansum(totals.seconds) for totals in (pair.old, pair.new)]
    rows = []
    for group in range(pair.matching.count):
        row = {**pair.where, "group": group, **_who(pair, group), **_numbers(pair, group)}
        row |= _times(row, times, bool(pair.common[group]))
        row["mean_change"] = row[f"total_seconds{_basis(row)}"] * pair.launch_ratio[group] / row["total_seconds_before"] - 1
        row["seconds_saved"] = _saved(pair, row)
        row["noise"] = noise.of(row)
        shares = row["total_seconds_before"] / total[0], row["total_seconds"] / total[1]
        row["time_share"] = shares[bool(pair.new.present[group])]
        row["small"] = "" if small else _small(row, shares)
        row["outcome"] = _outcome(pair, group, row)
        row["notes"] = "; ".join(filter(None, _notes(pair, group, row)))
        rows.append(row)
    return sorted(rows, key=lambda row: -abs(row["seconds_saved"]) if math.isfinite(row["seconds_saved"]) else 0.0)


def _common(side: Side, rows: Any, name: str) -> str:
    values = dict.fromkeys(side.kernels[name][rows])
    return str(next(iter(values))) if len(values) == 1 else ""


def _who(pair: Pair, group: int) -> dict[str, Any]:
    before, after = pair.old.rows(group), pair.new.rows(group)
    was = pair.before.names[before[0]] if len(before) else ""
    name = pair.after.names[after[0]] if len(after) else was
    result = {"kernel": pair.short[name], "name_before": was, "name": name}
    for column in ("grid", "block", "device"):
        result[f"{column}_before"] = _common(pair.before, before, column)
        result[column] = _common(pair.after, after, column)
    return {**result, "occurrence": pair.matching.occurrence[group], "matched": pair.matching.how[group]}


def _numbers(pair: Pair, group: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for suffix, totals in (("_before", pair.old), ("", pair.new)):
        precision = totals.precision[group]
        binding = totals.bindings.get(precision)
        middle, spread = totals.time(group)
        seconds, clock = np.float64(middle), totals.clock[group]  # NumPy's: odd reports may divide by zero
        result |= {
            f"launches{suffix}": int(totals.launches[group]),
            f"seconds{suffix}": seconds,
            f"total_seconds{suffix}": totals.seconds[group],
            f"spread{suffix}": spread,
            f"clock{suffix}": clock,
            f"cycles{suffix}": seconds * clock,
            f"work{suffix}": float(totals.flops[group] / totals.units[group]),
            f"total_work{suffix}": float(totals.flops[group]),
            f"precision{suffix}": precision,
            f"performance{suffix}": float(binding.performance[group]) if binding else math.nan,
            f"fraction{suffix}": float(binding.fraction[group]) if binding else math.nan,
            f"binds{suffix}": str(binding.binds[group]) if binding else "",
            f"verdict{suffix}": totals.verdict(group),
            f"limit{suffix}": totals.limit(group),
        }
    return result


def _times(row: Mapping[str, Any], times: str, both: bool) -> dict[str, Any]:
    """The new time at the clock of the baseline, and which of the two times counts."""
    before, after, ratio = row["seconds_before"], row["seconds"], row["clock"] / row["clock_before"]
    scale = math.nan
    limit = limit_of(row)
    if both and limit and row["device"] == row["device_before"] and math.isfinite(ratio):
        scale = ratio if at_sm_clock(limit) else 1.0
    differs = abs(ratio - 1) > CLOCK_DIFFERS
    use = math.isfinite(scale) and (times == "normalised" or (times == "auto" and differs))
    basis = scale if use else 1.0
    return {
        "seconds_normalised": after * scale,
        "total_seconds_normalised": row["total_seconds"] * scale,
        "time_basis": "normalised" if use else "raw",
        "time_change": after * basis / before - 1 if both and before > 0 else math.nan,
    }


def _launched(pair: Pair, row: Mapping[str, Any], suffix: str) -> float:
    """Run time of as many launches as the baseline has: all, or that many medians where the reports have other numbers.

    The median, as a row's own change: the mean of other launches may be that of one odd launch.
    """
    if pair.launch_ratio[row["group"]] == 1:
        return float(row[f"total_seconds{suffix}"])
    return float(row[f"seconds{suffix}"] * pair.old.units[row["group"]])


def _basis(row: Mapping[str, Any]) -> str:
    """Suffix of the new times that count."""
    return "_normalised" if row["time_basis"] == "normalised" else ""


def _saved(pair: Pair, row: Mapping[str, Any]) -> float:
    """What the launches of the baseline save; of kernels that only one report has, all."""
    if pair.common[row["group"]]:
        return _launched(pair, row, "_before") - _launched(pair, row, _basis(row))
    was, now = float(row["total_seconds_before"]), float(row["total_seconds"])
    return -now if math.isnan(was) else was


def _comparable(row: Mapping[str, Any]) -> bool:
    """Whether times say something: the same GPU model, and both known."""
    return row["device"] == row["device_before"] and not math.isnan(row["time_change"])


def _below(limit: float, values: Iterable[float]) -> bool:
    known = [value for value in values if math.isfinite(value)]
    return bool(known) and max(known) < limit


def _small(row: Mapping[str, Any], shares: Iterable[float]) -> str:
    """Why a change of it says nothing, "" if it does: it has to be small in both reports."""
    if _below(SHORT_LAUNCH, (row["seconds_before"], row["seconds"])):
        return f"launches under {format_value(SHORT_LAUNCH, 'second', 3)}"
    return f"under {100 * SMALL_SHARE:.0f} % of the time" if _below(SMALL_SHARE, shares) else ""


def _uneven(row: Mapping[str, Any]) -> bool:
    """Whether the mean of the launches changed otherwise than their median."""
    return _comparable(row) and abs(row["mean_change"] - row["time_change"]) > row["noise"]  # NaN compares as no


def _outcome(pair: Pair, group: int, row: Mapping[str, Any]) -> str:
    if not pair.old.present[group]:
        return ADDED
    if not pair.new.present[group]:
        return REMOVED
    if not _comparable(row):
        gain = row["fraction"] / row["fraction_before"] - 1 if row["fraction_before"] > 0 else math.nan
        word = _word(gain, row["noise"], CLOSER, FURTHER)
    else:
        word, summed = (_word(-float(row[name]), row["noise"], FASTER, SLOWER) for name in ("time_change", "mean_change"))
        # Of as many launches the sum is what was spent; its median must not say otherwise.
        if pair.launch_ratio[group] == 1 and _uneven(row) and word != summed:
            return NOT_JUDGED
    return NOT_JUDGED if row["small"] and word not in (SAME, UNKNOWN) else word


def _word(gain: float, noise: float, better: str, worse: str) -> str:
    if math.isnan(gain):
        return UNKNOWN
    return SAME if abs(gain) <= noise else better if gain > 0 else worse


def _notes(pair: Pair, group: int, row: Mapping[str, Any]) -> Iterable[str]:
    if not pair.common[group]:
        return
    if how := _HOW.get(pair.matching.how[group], ""):
        yield how
        was, now = (side.names[totals.rows(group)[0]] for side, totals in ((pair.before, pair.old), (pair.after, pair.new)))
        if pair.short[was] != pair.short[now]:
            yield f"before it was {pair.short[was]}"
        before, after = (_configurations(*one, group) for one in ((pair.before, pair.old), (pair.after, pair.new)))
        if before != after:
            yield f"configuration was {before} and is {after}"
    if row["outcome"] == NOT_JUDGED and row["small"]:
        yield f"not judged without --small: {row['small']}"
    if pair.launch_ratio[group] != 1:
        yield f"its launches, {row['launches_before']} before and {row['launches']} now, are compared per launch"
    if row["device"] != row["device_before"]:
        yield OTHER_GPU
    elif row["time_basis"] == "normalised":
        limit = limit_of(row)
        scaled = f"{described(limit)}, so its time is {'scaled' if at_sm_clock(limit) else 'not scaled'}"
        yield f"clocks differ ({row['clock_before'] / 1e9:.3g} and {row['clock'] / 1e9:.3g} GHz): {scaled}"
    elif abs(row["clock"] / row["clock_before"] - 1) > CLOCK_DIFFERS:
        reason = "as asked for" if limit_of(row) else "what limits it is unknown"
        yield f"clocks differ, and its time is not normalised: {reason}"
    if row["precision"] != row["precision_before"] and row["precision"] and row["precision_before"]:
        yield f"most work was {row['precision_before']} and is {row['precision']}"
    if _uneven(row):
        judged = "not judged: " if row["outcome"] == NOT_JUDGED and not row["small"] else ""
        told = f"the mean of its launches changed by {row['mean_change']:+.1%}, their median by {row['time_change']:+.1%}"
        yield f"{judged}{told}: some launches differ from the others"
    if math.isnan(row["seconds"]) or math.isnan(row["seconds_before"]):
        yield "some launch has no run time"


def _configurations(side: Side, totals: Totals, group: int) -> str:
    """The launch configuration of a group, for people."""
    rows = totals.rows(group)
    found = list(dict.fromkeys(zip(side.kernels["grid"][rows], side.kernels["block"][rows], strict=True)))
    grid, block = found[0]
    return f"{len(found)} of them" if len(found) > 1 else f"grid {grid} block {block}" if grid else "unknown"


def summary_row(pair: Pair, rows: Sequence[Mapping[str, Any]], tolerance: float) -> dict[str, Any]:
    """The application: what both sides have of it, launched as often as in the baseline; the rest apart."""
    devices = [", ".join(dict.fromkeys(side.kernels["device"])) for side in (pair.before, pair.after)]
    outcomes = [row["outcome"] for row in rows]
    matched = [row for row in rows if row["matched"]]
    timed = [row for row in matched if math.isfinite(row["total_seconds_before"]) and math.isfinite(row["total_seconds"])]
    changed = [row for row in matched if pair.launch_ratio[row["group"]] != 1]
    found = _summed_times(pair, timed, comparable=devices[0] == devices[1])
    noisy = (row["noise"] * _launched(pair, row, "_before") for row in timed)
    noise = max(tolerance, math.hypot(*noisy) / found["seconds_before"])
    word = _word(found["seconds_saved"] / found["seconds_before"], noise, FASTER, SLOWER) if matched else NOTHING
    short = all(row["small"] for row in timed) and _below(SHORT_LAUNCH, (found["seconds_before"], found["seconds"]))
    return {
        **pair.where,
        "device_before": devices[0],
        "device": devices[1],
        "launches_before": int(pair.old.launches.sum()),
        "launches": int(pair.new.launches.sum()),
        **found,
        "noise": noise,
        "outcome": NOT_JUDGED if short and word in (FASTER, SLOWER) else word,
        "total_seconds_before": _sum(pair.old.seconds),
        "total_seconds": _sum(pair.new.seconds),
        "seconds_removed": _sum(row["total_seconds_before"] for row in rows if row["outcome"] == REMOVED),
        "seconds_added": _sum(row["total_seconds"] for row in rows if row["outcome"] == ADDED),
        "work_before": _sum(row["total_work_before"] for row in matched),
        "work": _sum(row["total_work"] * pair.launch_ratio[row["group"]] for row in matched),
        "matched": len(matched),
        "added": outcomes.count(ADDED),
        "removed": outcomes.count(REMOVED),
        "relaunched": len(changed),
        "notes": "; ".join(_summary_notes(rows, devices, len(matched), len(timed), len(changed))),
    }


def _summed_times(pair: Pair, rows: Sequence[Mapping[str, Any]], comparable: bool) -> dict[str, Any]:
    """Run time of these kernels in the baseline and, for as many launches, in the new report."""

    def at_clock(row: Mapping[str, Any]) -> float:
        scaled = _launched(pair, row, "_normalised")
        return _launched(pair, row, "") if math.isnan(scaled) else scaled

    nothing = math.nan
    old = np.float64(_sum(_launched(pair, row, "_before") for row in rows))  # NumPy's: odd reports may divide by zero
    used = old - _sum(row["seconds_saved"] for row in rows) if comparable else nothing
    return {
        "seconds_before": old,
        "seconds": _sum(_launched(pair, row, "") for row in rows),
        "seconds_normalised": _sum(map(at_clock, rows)) if comparable else nothing,
        "time_basis": "normalised" if any(row["time_basis"] == "normalised" for row in rows) else "raw",
        "time_change": used / old - 1,
        "speedup": old / used,
        "seconds_saved": old - used,
    }


def _sum(values: Iterable[float]) -> float:
    """The sum of the numbers among them; NaN if there is none."""
    known = [value for value in values if math.isfinite(value)]
    return float(np.sum(known)) if known else math.nan


def _summary_notes(
    rows: Sequence[Mapping[str, Any]], devices: Sequence[str], matched: int, timed: int, changed: int
) -> Iterable[str]:
    """``matched``, ``timed``, ``changed``: kernels of both reports, those with times, those with other numbers of launches."""
    if devices[0] != devices[1]:
        yield f"{OTHER_GPU} ({devices[0] or 'unknown'} and {devices[1] or 'unknown'})"
    if changed:
        yield (
            f"the number of launches differs in {changed} of {matched} kernels that both reports have: the medians of their "
            "launches are compared, and weighted by the launches of the baseline in the sum"
        )
    scaled = sum(1 for row in rows if row["time_basis"] == "normalised")
    if scaled:
        yield (
            f"clocks differ by more than {CLOCK_DIFFERS:.0%} in {scaled} of {len(rows)} kernels: their times are compared at "
            "the baseline's SM clock, scaled where compute, L1, shared memory or L2 is nearest to its limit and not where "
            "DRAM or system memory is"
        )
    if timed < matched:
        yield f"{matched - timed} of {matched} kernels have no run time in one of the reports and are not in the sum"
