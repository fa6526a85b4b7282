"""The kernels of a pair of reports as columns, and the row of the application: times on one clock, noise, outcomes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from string import Formatter
from typing import Any

import numpy as np

from ncu_roofline.analyses.compare.groups import NAME_ONLY, NUMBERS, PARAMETERS, TEMPLATE, Matching, Side, Totals
from ncu_roofline.base.units import format_value
from ncu_roofline.chips import load_spec, load_units
from ncu_roofline.chips.thresholds import SHORT_LAUNCH
from ncu_roofline.model.measurements import FloatArray, TextArray

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
_ANY_CLOCK = "memory"  # the whole memory system: which part of it is full is not known
Kernels = dict[str, Any]  # columns by name, a row per group


@dataclass(frozen=True)
class Pair:
    """Two sides with what was matched, and the sums of both over each group."""

    step: int
    against: str
    before: Side
    after: Side
    matching: Matching
    short: Mapping[str, str]

    @cached_property
    def old(self) -> Totals:
        """Sums of the baseline."""
        return Totals(self.before, self.matching.before, len(self.matching.how))

    @cached_property
    def new(self) -> Totals:
        """Sums of the new report."""
        return Totals(self.after, self.matching.after, len(self.matching.how))

    @cached_property
    def common(self) -> Any:
        """Which groups both sides have."""
        return self.old.present & self.new.present

    @cached_property
    def launch_ratio(self) -> FloatArray:
        """Launches of the baseline over those of the new report, of each group."""
        return np.asarray(self.old.units / self.new.units, dtype=np.float64)

    @property
    def where(self) -> dict[str, Any]:
        """The columns that all rows of the pair share."""
        return {"step": self.step, "against": self.against, "baseline": self.before.label, "report": self.after.label}


@cache
def at_sm_clock(limit: str) -> bool:
    """Whether a level, compute roof or hardware unit is faster at a higher SM clock: all but memory behind the caches."""
    level = next((one for one in load_spec().levels if one.id == limit), None)
    if level:
        return not level.has_own_clock
    units = {unit.id for unit in load_units().units} - {_ANY_CLOCK}
    return limit in units or _compute_roof(limit) is not None or "." in limit  # roofs of tables: x.peak


@cache
def described(limit: str) -> str:
    """Where a kernel stands: "nearest its FP32 FMA roof", "nearest the limit of its issue slots"."""
    levels = {level.id: level.label for level in load_spec().levels}
    units = {unit.id: unit.label for unit in load_units().units}
    if limit in units and limit not in levels:
        return f"nearest the limit of its {units[limit]}"
    return f"nearest its {levels.get(limit) or _compute_roof(limit) or limit} roof"


def _compute_roof(roof: str) -> str | None:
    """The label of a compute roof: FP32 FMA, Tensor FP16; None if it is none of ours."""
    return next((precision.roof_label(roof) for precision in load_spec().precisions if roof in precision.roof_ids()), None)


def kernels_of_pair(pair: Pair, tolerance: float, roof_spreads: Mapping[str, float], times: str, small: bool) -> Kernels:
    """The kernels, the largest change of time first; ``group`` is the number in the pair.  ``small``: all are judged."""
    kernels: Kernels = {"group": np.arange(len(pair.common)), "launch_ratio": pair.launch_ratio, "common": pair.common}
    kernels |= {"occurrence": np.array(pair.matching.occurrence), "matched": np.array(pair.matching.how, dtype=object)}
    for suffix, totals in (("_before", pair.old), ("", pair.new)):
        kernels |= {f"{name}{suffix}": values for name, values in _numbers(totals).items()}
    kernels["name"] = np.where(pair.new.present, kernels["name"], kernels["name_before"])
    kernels["kernel"] = np.array([pair.short[name] for name in kernels["name"]], dtype=object)
    kernels["one_gpu"] = kernels["device"] == kernels["device_before"]
    _add_times(kernels, pair, times)
    # Of kernels that only one report has, all is saved or lost.
    alone = np.where(np.isnan(kernels["total_seconds_before"]), -kernels["total_seconds"], kernels["total_seconds_before"])
    kernels["seconds_saved"] = np.where(pair.common, kernels["launched_before"] - kernels["launched_used"], alone)
    kernels["comparable"] = kernels["one_gpu"] & ~np.isnan(kernels["time_change"])
    kernels["noise"] = _noise(kernels, tolerance, roof_spreads)
    kernels["uneven"] = kernels["comparable"] & (np.abs(kernels["mean_change"] - kernels["time_change"]) > kernels["noise"])
    shares = [kernels[name] / np.nansum(kernels[name]) for name in ("total_seconds_before", "total_seconds")]
    kernels["time_share"] = np.where(pair.new.present, shares[1], shares[0])
    # What is small has to be so in both reports.
    of_time = np.where(_below(SMALL_SHARE, *shares), f"under {100 * SMALL_SHARE:.0f} % of the time", "")
    brief = _below(SHORT_LAUNCH, kernels["seconds_before"], kernels["seconds"])
    kernels["small"] = np.where(brief, f"launches under {format_value(SHORT_LAUNCH, 'second', 3)}", of_time)
    kernels["small"] = np.where(small, "", kernels["small"])
    kernels["outcome"] = _outcome(kernels, pair)
    kernels["notes"] = _notes(kernels, pair)
    order = np.argsort(np.where(np.isfinite(kernels["seconds_saved"]), -np.abs(kernels["seconds_saved"]), 0.0), kind="stable")
    return {name: values[order] for name, values in kernels.items()}


def _numbers(totals: Totals) -> Kernels:
    """What one side has of each group."""
    seconds, spread = totals.time
    names = np.append(totals.side.names, "")
    return {
        "name": names[totals.first],
        **{name: totals.common(name) for name in ("grid", "block", "device")},
        "launches": totals.launches,
        "seconds": seconds,
        "total_seconds": totals.seconds,
        "spread": spread,
        "clock": totals.clock,
        "cycles": seconds * totals.clock,
        "work": totals.flops / totals.units,
        "total_work": totals.flops,
        "precision": totals.precision,
        "performance": totals.binding.performance,
        "fraction": totals.binding.fraction,
        "binds": totals.binding.binds,
        "verdict": totals.verdict,
        "limit": totals.limit,
    }


def _add_times(kernels: Kernels, pair: Pair, times: str) -> None:
    """The new time at the clock of the baseline, and which of the two times counts.

    "launched": run time of as many launches as the baseline has; where the numbers differ, that many medians, as a row's own
    change: the mean of other launches may be that of one odd launch.
    """
    ratio = kernels["clock"] / kernels["clock_before"]
    nearest = (kernels["limit"] != "") & (kernels["limit"] != _ANY_CLOCK)
    kernels["limits"] = np.where(nearest, kernels["limit"], kernels["binds"])
    scaled = np.array([at_sm_clock(limit) for limit in kernels["limits"]], dtype=bool)
    known = pair.common & (kernels["limits"] != "") & kernels["one_gpu"] & np.isfinite(ratio)
    scale = np.where(known, np.where(scaled, ratio, 1.0), np.nan)
    kernels["clocks_differ"] = np.abs(ratio - 1) > CLOCK_DIFFERS
    use = np.isfinite(scale) & (times != "raw") & ((times == "normalised") | kernels["clocks_differ"])
    kernels["time_basis"] = np.where(use, "normalised", "raw")
    kernels["time_change"] = kernels["seconds"] * np.where(use, scale, 1.0) / kernels["seconds_before"] - 1
    kernels["time_change"] = np.where(pair.common & (kernels["seconds_before"] > 0), kernels["time_change"], np.nan)
    for suffix in ("_before", "", "_normalised"):
        if suffix == "_normalised":
            kernels |= {f"{name}_normalised": kernels[name] * scale for name in ("seconds", "total_seconds")}
        medians = kernels[f"seconds{suffix}"] * pair.old.units
        kernels[f"launched{suffix}"] = np.where(pair.launch_ratio == 1, kernels[f"total_seconds{suffix}"], medians)
    kernels["launched_used"] = np.where(use, kernels["launched_normalised"], kernels["launched"])
    total = np.where(use, kernels["total_seconds_normalised"], kernels["total_seconds"])
    kernels["mean_change"] = total * pair.launch_ratio / kernels["total_seconds_before"] - 1


def _noise(kernels: Kernels, tolerance: float, roof_spreads: Mapping[str, float]) -> FloatArray:
    """What counts as no change: spread of the times and, where shares of the roof are compared, of the measured roofs."""
    spreads = [kernels["spread_before"], kernels["spread"]]
    for name in ("binds_before", "binds"):
        of_roof = np.array([roof_spreads.get(binds, math.nan) for binds in kernels[name]])
        spreads.append(np.where(kernels["comparable"], np.nan, of_roof))
    squares = sum(np.where(np.isfinite(spread), spread, 0.0) ** 2 for spread in spreads)
    return np.maximum(tolerance, np.sqrt(squares))


def _below(limit: float, before: Any, after: Any) -> Any:
    """Whether what is known of two numbers is below a limit."""
    known = [np.where(np.isfinite(values), values, np.nan) for values in (before, after)]
    return np.fmax(*known) < limit


def _outcome(kernels: Kernels, pair: Pair) -> TextArray:
    gain = np.where(kernels["fraction_before"] > 0, kernels["fraction"] / kernels["fraction_before"] - 1, np.nan)
    word = _word(-kernels["time_change"], kernels["noise"], FASTER, SLOWER)
    # Of as many launches the sum is what was spent; its median must not say otherwise.
    summed = _word(-kernels["mean_change"], kernels["noise"], FASTER, SLOWER)
    contradicted = kernels["uneven"] & (pair.launch_ratio == 1) & (word != summed)
    word = np.where(kernels["comparable"], word, _word(gain, kernels["noise"], CLOSER, FURTHER))
    undecided = contradicted | ((kernels["small"] != "") & (word != SAME) & (word != UNKNOWN))
    found = [~pair.old.present, ~pair.new.present, undecided]
    return np.select(found, [ADDED, REMOVED, NOT_JUDGED], word).astype(object)


def _word(gain: Any, noise: Any, better: str, worse: str) -> Any:
    return np.select([np.isnan(gain), np.abs(gain) <= noise, gain > 0], [UNKNOWN, SAME, better], worse)


def _notes(kernels: Kernels, pair: Pair) -> TextArray:
    """What must be known of each kernel that both reports have: sentences with words of its row."""
    odd, undecided = np.isin(kernels["matched"], list(_HOW)) & pair.common, kernels["outcome"] == NOT_JUDGED
    configured = [_configurations(pair, row) if odd[row] else ("", "") for row in range(len(odd))]
    columns = {
        **kernels,
        "how": np.array([_HOW.get(how, "") for how in kernels["matched"]]),
        "kernel_before": np.array([pair.short.get(name, "") for name in kernels["name_before"]], dtype=object),
        "configured_before": np.array([before for before, _ in configured]),
        "configured": np.array([now for _, now in configured]),
        "ghz_before": kernels["clock_before"] / 1e9,
        "ghz": kernels["clock"] / 1e9,
        "nearest": np.array([described(limit) for limit in kernels["limits"]]),
        "scaled": np.array(["scaled" if at_sm_clock(limit) else "not scaled" for limit in kernels["limits"]]),
        "reason": np.where(kernels["limits"] != "", "as asked for", "what limits it is unknown"),
        "judged": np.where(undecided & (kernels["small"] == ""), "not judged: ", ""),
    }
    normalised, one_gpu = kernels["time_basis"] == "normalised", kernels["one_gpu"]
    precise, precise_before = (kernels[name] != "" for name in ("precision", "precision_before"))
    other_precision = kernels["precision"] != kernels["precision_before"]
    told: list[tuple[Any, str]] = [
        (odd, "{how}"),
        (odd & (columns["kernel_before"] != kernels["kernel"]), "before it was {kernel_before}"),
        (columns["configured"] != columns["configured_before"], "configuration was {configured_before} and is {configured}"),
        (undecided & (kernels["small"] != ""), "not judged without --small: {small}"),
        (
            pair.launch_ratio != 1,
            "its launches, {launches_before:.0f} before and {launches:.0f} now, are compared per launch",
        ),
        (~one_gpu, OTHER_GPU),
        (
            one_gpu & normalised,
            "clocks differ ({ghz_before:.3g} and {ghz:.3g} GHz): {nearest}, so its time is {scaled}",
        ),
        (one_gpu & ~normalised & kernels["clocks_differ"], "clocks differ, and its time is not normalised: {reason}"),
        (other_precision & precise & precise_before, "most work was {precision_before} and is {precision}"),
        (
            kernels["uneven"],
            "{judged}the mean of its launches changed by {mean_change:+.1%}, their median by {time_change:+.1%}: "
            "some launches differ from the others",
        ),
        (np.isnan(kernels["seconds"]) | np.isnan(kernels["seconds_before"]), "some launch has no run time"),
    ]
    notes: list[list[str]] = [[] for _ in odd]
    for where, text in told:
        words = [name for _, name, _, _ in Formatter().parse(text) if name]
        for row in np.flatnonzero(where & pair.common).tolist():
            notes[row].append(text.format(**{name: columns[name][row] for name in words}))
    return np.array(["; ".join(texts) for texts in notes], dtype=object)


def _configurations(pair: Pair, group: int) -> list[str]:
    """The launch configurations of a group before and after, for people."""
    found = []
    for totals in (pair.old, pair.new):
        rows, kernels = totals.rows(group), totals.side.kernels
        grids = list(dict.fromkeys(zip(kernels["grid"][rows], kernels["block"][rows], strict=True)))
        one = f"grid {grids[0][0]} block {grids[0][1]}" if grids[0][0] else "unknown"
        found.append(f"{len(grids)} of them" if len(grids) > 1 else one)
    return found


def summary_row(pair: Pair, kernels: Kernels, tolerance: float) -> dict[str, Any]:
    """The application: what both sides have of it, launched as often as in the baseline; the rest apart."""
    devices = [", ".join(dict.fromkeys(side.kernels["device"])) for side in (pair.before, pair.after)]
    matched = kernels["matched"] != ""
    timed = matched & np.isfinite(kernels["total_seconds_before"]) & np.isfinite(kernels["total_seconds"])
    changed = matched & (kernels["launch_ratio"] != 1)
    one_gpu = devices[0] == devices[1]
    at_clock = np.where(np.isnan(kernels["launched_normalised"]), kernels["launched"], kernels["launched_normalised"])
    old = np.float64(_sum(kernels["launched_before"][timed]))  # NumPy's: odd reports may divide by zero
    used = old - _sum(kernels["seconds_saved"][timed]) if one_gpu else math.nan
    seconds = _sum(kernels["launched"][timed])
    noise = max(tolerance, math.hypot(*(kernels["noise"] * kernels["launched_before"])[timed].tolist()) / old)
    word = str(_word((old - used) / old, noise, FASTER, SLOWER)) if matched.any() else NOTHING
    short = bool((kernels["small"][timed] != "").all() and _below(SHORT_LAUNCH, old, seconds))
    counts = {"matched": int(matched.sum()), "timed": int(timed.sum()), "changed": int(changed.sum())}
    return {
        **pair.where,
        "device_before": devices[0],
        "device": devices[1],
        "launches_before": int(pair.old.launches.sum()),
        "launches": int(pair.new.launches.sum()),
        "seconds_before": old,
        "seconds": seconds,
        "seconds_normalised": _sum(at_clock[timed]) if one_gpu else math.nan,
        "time_basis": "normalised" if (kernels["time_basis"][timed] == "normalised").any() else "raw",
        "time_change": used / old - 1,
        "speedup": old / used,
        "seconds_saved": old - used,
        "noise": noise,
        "outcome": NOT_JUDGED if short and word in (FASTER, SLOWER) else word,
        "total_seconds_before": _sum(pair.old.seconds),
        "total_seconds": _sum(pair.new.seconds),
        "seconds_removed": _sum(kernels["total_seconds_before"][kernels["outcome"] == REMOVED]),
        "seconds_added": _sum(kernels["total_seconds"][kernels["outcome"] == ADDED]),
        "work_before": _sum(kernels["total_work_before"][matched]),
        "work": _sum((kernels["total_work"] * kernels["launch_ratio"])[matched]),
        "matched": counts["matched"],
        "added": int((kernels["outcome"] == ADDED).sum()),
        "removed": int((kernels["outcome"] == REMOVED).sum()),
        "relaunched": counts["changed"],
        "notes": "; ".join(_summary_notes(kernels["time_basis"], devices, **counts)),
    }


def _sum(values: FloatArray) -> float:
    """The sum of the numbers among them; NaN if there is none."""
    known = values[np.isfinite(values)]
    return float(np.sum(known)) if len(known) else math.nan


def _summary_notes(bases: TextArray, devices: list[str], matched: int, timed: int, changed: int) -> Iterator[str]:
    """``matched``, ``timed``, ``changed``: kernels of both reports, those with times, those with other numbers of launches."""
    if devices[0] != devices[1]:
        yield f"{OTHER_GPU} ({devices[0] or 'unknown'} and {devices[1] or 'unknown'})"
    if changed:
        yield (
            f"the number of launches differs in {changed} of {matched} kernels that both reports have: the medians of their "
            "launches are compared, and weighted by the launches of the baseline in the sum"
        )
    scaled = int((bases == "normalised").sum())
    if scaled:
        yield (
            f"clocks differ by more than {CLOCK_DIFFERS:.0%} in {scaled} of {len(bases)} kernels: their times are compared at "
            "the baseline's SM clock, scaled where compute, L1, shared memory or L2 is nearest to its limit and not where "
            "DRAM or system memory is"
        )
    if timed < matched:
        yield f"{matched - timed} of {matched} kernels have no run time in one of the reports and are not in the sum"
