"""What changed between reports of one application: `compare()`, kernel by kernel, level by level, and in total."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ncu_roofline.analyses.compare import columns
from ncu_roofline.analyses.compare.matching import (
    NAME_ONLY,
    NUMBERS,
    PARAMETERS,
    TEMPLATE,
    Matching,
    Side,
    Totals,
    match,
    side_of,
)
from ncu_roofline.base.units import format_value
from ncu_roofline.chips import load_spec, load_units
from ncu_roofline.chips.thresholds import SHORT_LAUNCH
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.model import Displayed, Roofline, roofline_of
from ncu_roofline.model.measurements import FloatArray, TextArray
from ncu_roofline.model.names import short_names
from ncu_roofline.model.roofline import Source, frame_of, of_columns, of_rows, seen
from ncu_roofline.rendering.document import Column

TIMES = ("auto", "raw", "normalised")
AGAINST = ("baseline", "previous", "both")
TOLERANCE = 0.02  # of the run time: what back-to-back runs of one kernel under a profiler's locked clocks differ by
SMALL_SHARE = 0.01  # of the application's time
CLOCK_DIFFERS = 0.01  # of the clock: below it, normalising would add more noise than it takes away
FASTER, SLOWER, SAME, CLOSER, FURTHER = "faster", "slower", "same", "closer", "further"
ADDED, REMOVED, UNKNOWN, NOT_JUDGED = "added", "removed", "unknown", "not judged"
NOTHING = "nothing in common"
_OTHER_GPU = "the GPUs differ: times are not comparable, shares of the roof are"
_HOW = {
    NAME_ONLY: "matched by name only",
    PARAMETERS: "matched without the function's parameters, which changed",
    NUMBERS: "matched by a name in which numbers changed",
    TEMPLATE: "matched by the function's name: its template arguments came or went",
}
_ANY_CLOCK = "memory"  # the whole memory system: which part of it is full is not known
_OF_LEVELS = ("work", "traffic", "total_work", "total_traffic", "bandwidth", "intensity", "performance", "fraction")
Table = dict[str, Any]  # columns by name, a row per group
State = Roofline | Source | Sequence[Source]


@dataclass(frozen=True)
class Settings:
    """How to compare.

    ``tolerance``: changes up to this ratio are none, whatever the measured spread.  ``times``: "normalised" compares times at
    the baseline's SM clock (where what binds runs at that clock), "raw" as measured, "auto" normalised where clocks differ by
    more than 1 %.  ``in_order``: the n-th launch of a kernel and configuration is compared with the n-th, instead of all
    with all.  ``against``: the "baseline", the "previous" step, or "both".  ``top``: only that many kernels, those with the
    most time in either report; the totals keep all.  ``precisions`` and ``levels`` (ids) limit `levels`; empty is all.
    ``roof_spreads``: relative spread of measured roofs by level or roof id, which counts where shares of the roof are compared.
    ``small``: judge also launches under 20 us and kernels under 1 % of the time, whose changes say little.
    """

    tolerance: float = TOLERANCE
    times: str = "auto"
    in_order: bool = False
    against: str = "both"
    top: int = 0
    precisions: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    roof_spreads: Mapping[str, float] = field(default_factory=dict)
    small: bool = False

    def __post_init__(self) -> None:
        if self.times not in TIMES:
            raise ValueError(f"times must be one of {', '.join(TIMES)}, not {self.times!r}")
        if self.against not in AGAINST:
            raise ValueError(f"against must be one of {', '.join(AGAINST)}, not {self.against!r}")
        if not 0 <= self.tolerance < 1:
            raise ValueError(f"tolerance must be a ratio from 0 to 1, not {self.tolerance!r}")


@dataclass(frozen=True, repr=False)
class Comparison(Displayed):
    """Kernels, levels, summary and thresholds as tables of equally long columns; the properties are the same as DataFrames.

    Columns, units and meaning: `ncu_roofline.analyses.compare.columns`, COMPARISON_KERNELS and so on.
    """

    view: ClassVar[str] = "comparison"
    counted: ClassVar[Mapping[str, str]] = {
        "kernel_columns": "kernel",
        "level_columns": "level",
        "summary_columns": "pair",
        "threshold_columns": "threshold",
    }
    glance: ClassVar[tuple[Column, ...]] = seen(
        columns.COMPARISON_KERNELS,
        *("kernel", "outcome"),
        seconds_before="time/launch before",
        seconds="time/launch",
        time_change="change",
        verdict_before="verdict before",
        verdict="verdict",
    )
    kernel_columns: Table
    level_columns: Table
    summary_columns: Table
    roof_columns: Table = field(default_factory=lambda: of_rows([], columns.COMPARISON_ROOFS))
    threshold_columns: Table = field(default_factory=lambda: of_rows([], columns.COMPARISON_THRESHOLDS))

    kernels = frame_of("kernel_columns", "One row per kernel and pair of reports, the largest change of time first.")
    levels = frame_of(
        "level_columns",
        "Per kernel (and for the application) its work by precision, traffic by level, and the roofline of each two.",
    )
    summary = frame_of("summary_columns", "One row per pair of reports: the application.")
    roofs = frame_of("roof_columns", "One row per report, GPU, roof and origin.")
    thresholds = frame_of(
        "threshold_columns", "One row per kernel and threshold, after `ncu_roofline.analyses.compare.thresholds.evaluate`."
    )


class Pair(NamedTuple):
    """Two sides with what was matched, the sums of both over each group, and which groups both have.

    ``ratio``: launches of the baseline over those of the new report; ``where``: the columns that all rows of the pair share.
    """

    where: dict[str, Any]
    before: Side
    after: Side
    matching: Matching
    old: Totals
    new: Totals
    common: Any
    ratio: FloatArray


def compare(baseline: State, *new: State, settings: Settings | None = None, labels: Sequence[str] | None = None) -> Comparison:
    """Compare states of one application with the first of them, and each with the one before.

    A state is a path, an open report, or a list of them (the reports of a run), as `roofline` takes it, or a Roofline made with
    other options: by launch, unfiltered by level, as what binds is sought among the levels they hold.
    Kernels are matched by full name, grid and block, what is left then by name alone.  Launches of one kernel and configuration
    are compared per launch: median of their times, mean of their work and traffic; sums are told apart.
    ``labels``: what to call the reports, the baseline first; default their paths.
    Times are in seconds, work in FLOP, traffic in byte, shares as ratios: one row per kernel, level, or pair of reports.
    Raises RooflineError for files that can't be read, TypeError for what is no state and without a second one, ValueError
    where there is not one label for each.

    >>> changed = compare("gpp-v100.ncu-rep", "gpp-v100.ncu-rep", labels=["before", "after"])
    >>> changed.kernels["outcome"].unique().tolist(), changed.summary["speedup"].tolist()
    (['same'], [1.0])
    """
    settings = settings or Settings()
    if not new:
        roofline_of(baseline)  # what is wrong with it is said first
        raise TypeError("compare() takes two states or more: there is nothing to compare the baseline with")
    names = labels if labels is not None else [""] * (len(new) + 1)
    sides = [side_of(one, label) for one, label in zip(map(roofline_of, (baseline, *new)), names, strict=True)]
    full = [name for side in sides for name in side.names]
    short = dict(zip(full, short_names(full), strict=True))
    kernels: list[Table] = []
    levels: list[Table] = []
    summaries: list[Table] = []
    with np.errstate(all="ignore"):  # counters of odd reports may be any number: what overflows is no number
        for step in range(1, len(sides)):
            for against, reference in (("baseline", 0), ("previous", step - 1)):
                if settings.against not in (against, "both") or (
                    settings.against == "both" and against == "previous" and step == 1
                ):
                    continue
                pair = _pair(step, against, sides[reference], sides[step], settings.in_order)
                found = _kernels(pair, short, settings)
                summaries.append(_summary(pair, found, settings.tolerance))
                found = _longest(found, settings.top)
                levels += _levels(pair, found, sum(len(one["kernel"]) for one in kernels), settings)
                kernels.append({**found, **_repeated(pair.where, len(found["kernel"]))})
        return Comparison(
            of_columns(_joined(kernels), columns.COMPARISON_KERNELS),
            of_columns(_joined(levels), columns.COMPARISON_LEVELS) if levels else of_rows([], columns.COMPARISON_LEVELS),
            of_rows(summaries, columns.COMPARISON_SUMMARY),
            of_rows(_roof_rows(sides), columns.COMPARISON_ROOFS),
        )


def _pair(step: int, against: str, before: Side, after: Side, in_order: bool) -> Pair:
    matching = match(before, after, in_order)
    old, new = (
        Totals(side, groups, len(matching.how)) for side, groups in ((before, matching.before), (after, matching.after))
    )
    where = {"step": step, "against": against, "baseline": before.label, "report": after.label}
    return Pair(where, before, after, matching, old, new, old.present & new.present, old.units / new.units)


def _repeated(values: Mapping[str, Any], count: int) -> Table:
    return {name: np.full(count, value, dtype=object) for name, value in values.items()}


def _joined(tables: Sequence[Table]) -> Table:
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


@cache
def _limit(limit: str) -> tuple[bool, str]:
    """Whether a level, compute roof or hardware unit is faster at a higher SM clock (all but memory behind the caches), and in
    words that a kernel is nearest to it.
    """
    levels, units = {level.id: level for level in load_spec().levels}, {unit.id: unit.label for unit in load_units().units}
    roof = next((precision.roof_label(limit) for precision in load_spec().precisions if limit in precision.roof_ids()), None)
    if limit in levels:
        return not levels[limit].has_own_clock, f"nearest its {levels[limit].label} roof"
    if limit in units:
        return limit != _ANY_CLOCK, f"nearest the limit of its {units[limit]}"
    return roof is not None or "." in limit, f"nearest its {roof or limit} roof"  # roofs of tables: x.peak


def _kernels(pair: Pair, short: Mapping[str, str], settings: Settings) -> Table:
    """The kernels, the largest change of time first; ``group`` is the number in the pair."""
    count, names = len(pair.common), pair.matching.how
    k: Table = {"group": np.arange(count), "occurrence": np.array(pair.matching.occurrence)}
    k["matched"] = np.array(names, dtype=object)
    for suffix, totals in (("_before", pair.old), ("", pair.new)):
        k |= {f"{name}{suffix}": values for name, values in _numbers(totals).items()}
    k["name"] = np.where(pair.new.present, k["name"], k["name_before"])
    k["kernel"] = np.array([short[name] for name in k["name"]], dtype=object)
    one_gpu = k["device"] == k["device_before"]
    _add_times(k, pair, one_gpu, settings.times)
    k["comparable"] = one_gpu & ~np.isnan(k["time_change"])
    spreads = [k["spread_before"], k["spread"]]
    for binds in (k["binds_before"], k["binds"]):  # of measured roofs, where shares of them are compared
        roof = np.array([settings.roof_spreads.get(one, math.nan) for one in binds])
        spreads.append(np.where(k["comparable"], np.nan, roof))
    squares = sum(np.where(np.isfinite(spread), spread, 0.0) ** 2 for spread in spreads)
    k["noise"] = np.maximum(settings.tolerance, np.sqrt(squares))
    shares = [k[name] / np.nansum(k[name]) for name in ("total_seconds_before", "total_seconds")]
    k["time_share"] = np.where(pair.new.present, shares[1], shares[0])
    # What is small has to be so in both reports.
    of_time = np.where(_below(SMALL_SHARE, *shares), f"under {100 * SMALL_SHARE:.0f} % of the time", "")
    brief = _below(SHORT_LAUNCH, k["seconds_before"], k["seconds"])
    small = np.where(brief, f"launches under {format_value(SHORT_LAUNCH, 'second', 3)}", of_time)
    k["small"] = np.where(settings.small, "", small)
    _add_outcome(k, pair)
    k["notes"] = np.array(["; ".join(_notes(pair, k, row, short)) for row in range(count)], dtype=object)
    order = np.argsort(np.where(np.isfinite(k["seconds_saved"]), -np.abs(k["seconds_saved"]), 0.0), kind="stable")
    return {name: values[order] for name, values in k.items()}


def _numbers(totals: Totals) -> Table:
    """What one side has of each group."""
    (seconds, spread), (verdict, limit), (precision, binding) = totals.time(), totals.verdicts(), totals.busiest()
    return {
        "name": np.append(totals.side.names, "")[totals.first],
        **{name: totals.common(name) for name in ("grid", "block", "device")},
        "launches": totals.launches,
        "seconds": seconds,
        "total_seconds": totals.seconds,
        "spread": spread,
        "clock": totals.clock,
        "cycles": seconds * totals.clock,
        "work": totals.flops / totals.units,
        "total_work": totals.flops,
        "precision": precision,
        "performance": binding.performance,
        "fraction": binding.fraction,
        "binds": binding.binds,
        "verdict": verdict,
        "limit": limit,
    }


def _add_times(k: Table, pair: Pair, one_gpu: Any, times: str) -> None:
    """The new time at the clock of the baseline, which of the two times counts, and what was saved.

    "launched": run time of as many launches as the baseline has; where the numbers differ, that many medians, as a row's own
    change: the mean of other launches may be that of one odd launch.
    """
    ratio = k["clock"] / k["clock_before"]
    nearest = (k["limit"] != "") & (k["limit"] != _ANY_CLOCK)
    k["limits"] = np.where(nearest, k["limit"], k["binds"])
    scaled = np.array([_limit(limit)[0] for limit in k["limits"]], dtype=bool)
    known = pair.common & (k["limits"] != "") & one_gpu & np.isfinite(ratio)
    scale = np.where(known, np.where(scaled, ratio, 1.0), np.nan)
    k["clocks_differ"] = np.abs(ratio - 1) > CLOCK_DIFFERS
    use = np.isfinite(scale) & (times != "raw") & ((times == "normalised") | k["clocks_differ"])
    k["time_basis"] = np.where(use, "normalised", "raw")
    change = k["seconds"] * np.where(use, scale, 1.0) / k["seconds_before"] - 1
    k["time_change"] = np.where(pair.common & (k["seconds_before"] > 0), change, np.nan)
    k |= {f"{name}_normalised": k[name] * scale for name in ("seconds", "total_seconds")}
    for suffix in ("_before", "", "_normalised"):
        medians = k[f"seconds{suffix}"] * pair.old.units
        k[f"launched{suffix}"] = np.where(pair.ratio == 1, k[f"total_seconds{suffix}"], medians)
    total, launched = (np.where(use, k[f"{name}_normalised"], k[name]) for name in ("total_seconds", "launched"))
    k["mean_change"] = total * pair.ratio / k["total_seconds_before"] - 1
    # Of kernels that only one report has, all is saved or lost.
    alone = np.where(np.isnan(k["total_seconds_before"]), -k["total_seconds"], k["total_seconds_before"])
    k["seconds_saved"] = np.where(pair.common, k["launched_before"] - launched, alone)


def _below(limit: float, before: Any, after: Any) -> Any:
    """Whether what is known of two numbers is below a limit."""
    known = [np.where(np.isfinite(values), values, np.nan) for values in (before, after)]
    return np.fmax(*known) < limit


def _word(gain: Any, noise: Any, better: str, worse: str) -> Any:
    return np.select([np.isnan(gain), np.abs(gain) <= noise, gain > 0], [UNKNOWN, SAME, better], worse)


def _add_outcome(k: Table, pair: Pair) -> None:
    """The outcome in a word; ``uneven``: the mean of the launches changed otherwise than their median, more than noise does."""
    k["uneven"] = k["comparable"] & (np.abs(k["mean_change"] - k["time_change"]) > k["noise"])
    gain = np.where(k["fraction_before"] > 0, k["fraction"] / k["fraction_before"] - 1, np.nan)
    word = _word(-k["time_change"], k["noise"], FASTER, SLOWER)
    # Of as many launches the sum is what was spent; its median must not say otherwise.
    contradicted = k["uneven"] & (pair.ratio == 1) & (word != _word(-k["mean_change"], k["noise"], FASTER, SLOWER))
    word = np.where(k["comparable"], word, _word(gain, k["noise"], CLOSER, FURTHER))
    undecided = contradicted | ((k["small"] != "") & (word != SAME) & (word != UNKNOWN))
    found = np.select([~pair.old.present, ~pair.new.present, undecided], [ADDED, REMOVED, NOT_JUDGED], word)
    k["outcome"] = found.astype(object)


def _notes(pair: Pair, k: Table, row: int, short: Mapping[str, str]) -> Iterator[str]:
    """What must be known of a kernel that both reports have."""
    if not pair.common[row]:
        return
    one = {name: values[row] for name, values in k.items()}
    if one["matched"] in _HOW:
        yield _HOW[one["matched"]]
        if (before := short.get(one["name_before"], "")) != one["kernel"]:
            yield f"before it was {before}"
        before, now = (_configuration(totals, row) for totals in (pair.old, pair.new))
        if before != now:
            yield f"configuration was {before} and is {now}"
    if one["outcome"] == NOT_JUDGED and one["small"]:
        yield f"not judged without --small: {one['small']}"
    if pair.ratio[row] != 1:
        yield f"its launches, {one['launches_before']:.0f} before and {one['launches']:.0f} now, are compared per launch"
    if one["device"] != one["device_before"]:
        yield _OTHER_GPU
    elif one["time_basis"] == "normalised":
        scaled, nearest = _limit(one["limits"])
        clocks = f"{one['clock_before'] / 1e9:.3g} and {one['clock'] / 1e9:.3g} GHz"
        yield f"clocks differ ({clocks}): {nearest}, so its time is {'scaled' if scaled else 'not scaled'}"
    elif one["clocks_differ"]:
        reason = "as asked for" if one["limits"] else "what limits it is unknown"
        yield f"clocks differ, and its time is not normalised: {reason}"
    if one["precision_before"] and one["precision"] and one["precision_before"] != one["precision"]:
        yield f"most work was {one['precision_before']} and is {one['precision']}"
    if one["uneven"]:
        judged = "not judged: " if one["outcome"] == NOT_JUDGED and not one["small"] else ""
        changed = f"changed by {one['mean_change']:+.1%}, their median by {one['time_change']:+.1%}"
        yield f"{judged}the mean of its launches {changed}: some launches differ from the others"
    if np.isnan(one["seconds"]) or np.isnan(one["seconds_before"]):
        yield "some launch has no run time"


def _configuration(totals: Totals, group: int) -> str:
    """The launch configuration of a group for people."""
    rows, kernels = np.flatnonzero(totals.group == group), totals.side.kernels
    grids = list(dict.fromkeys(zip(kernels["grid"][rows], kernels["block"][rows], strict=True)))
    if len(grids) > 1:
        return f"{len(grids)} of them"
    return f"grid {grids[0][0]} block {grids[0][1]}" if grids[0][0] else "unknown"


def _summary(pair: Pair, k: Table, tolerance: float) -> dict[str, Any]:
    """The application: what both sides have of it, launched as often as in the baseline; the rest apart."""
    devices = [", ".join(dict.fromkeys(side.kernels["device"])) for side in (pair.before, pair.after)]
    matched, one_gpu = k["matched"] != "", devices[0] == devices[1]
    timed = matched & np.isfinite(k["total_seconds_before"]) & np.isfinite(k["total_seconds"])
    ratio = pair.ratio[k["group"]]
    at_clock = np.where(np.isnan(k["launched_normalised"]), k["launched"], k["launched_normalised"])
    old = np.float64(_sum(k["launched_before"][timed]))  # NumPy's: odd reports may divide by zero
    used = old - _sum(k["seconds_saved"][timed]) if one_gpu else math.nan
    seconds = _sum(k["launched"][timed])
    noise = max(tolerance, math.hypot(*(k["noise"] * k["launched_before"])[timed].tolist()) / old)
    word = str(_word((old - used) / old, noise, FASTER, SLOWER)) if matched.any() else NOTHING
    short = bool((k["small"][timed] != "").all() and _below(SHORT_LAUNCH, old, seconds))
    relaunched = int((matched & (ratio != 1)).sum())
    return {
        **pair.where,
        "device_before": devices[0],
        "device": devices[1],
        "launches_before": int(pair.old.launches.sum()),
        "launches": int(pair.new.launches.sum()),
        "seconds_before": old,
        "seconds": seconds,
        "seconds_normalised": _sum(at_clock[timed]) if one_gpu else math.nan,
        "time_basis": "normalised" if (k["time_basis"][timed] == "normalised").any() else "raw",
        "time_change": used / old - 1,
        "speedup": old / used,
        "seconds_saved": old - used,
        "noise": noise,
        "outcome": NOT_JUDGED if short and word in (FASTER, SLOWER) else word,
        "total_seconds_before": _sum(pair.old.seconds),
        "total_seconds": _sum(pair.new.seconds),
        "seconds_removed": _sum(k["total_seconds_before"][k["outcome"] == REMOVED]),
        "seconds_added": _sum(k["total_seconds"][k["outcome"] == ADDED]),
        "work_before": _sum(k["total_work_before"][matched]),
        "work": _sum((k["total_work"] * ratio)[matched]),
        "matched": int(matched.sum()),
        "added": int((k["outcome"] == ADDED).sum()),
        "removed": int((k["outcome"] == REMOVED).sum()),
        "relaunched": relaunched,
        "notes": "; ".join(_summary_notes(k["time_basis"], devices, int(matched.sum()), int(timed.sum()), relaunched)),
    }


def _sum(values: FloatArray) -> float:
    """The sum of the numbers among them; NaN if there is none."""
    known = values[np.isfinite(values)]
    return float(np.sum(known)) if len(known) else math.nan


def _summary_notes(bases: TextArray, devices: list[str], matched: int, timed: int, relaunched: int) -> Iterator[str]:
    """``matched``, ``timed``, ``relaunched``: kernels of both reports, those with times, with other numbers of launches."""
    if devices[0] != devices[1]:
        yield f"{_OTHER_GPU} ({devices[0] or 'unknown'} and {devices[1] or 'unknown'})"
    if relaunched:
        yield (
            f"the number of launches differs in {relaunched} of {matched} kernels that both reports have: the medians of their "
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


def _longest(kernels: Table, top: int) -> Table:
    """The ``top`` kernels with the most time on either side, in the order given; all for 0."""
    most = np.fmax(np.fmax(kernels["total_seconds_before"], kernels["total_seconds"]), 0.0)
    if not 0 < top < len(most):
        return kernels
    kept = np.flatnonzero(most >= np.sort(most)[-top])[:top]
    return {name: values[kept] for name, values in kernels.items()}


def _levels(pair: Pair, kernels: Table, first: int, settings: Settings) -> Iterator[Table]:
    """Columns of each kernel, and last of the application; ``first`` is the number of the first kernel.

    Precisions alone, levels alone, and those that meet in a point.  The application is what both reports have of it, with as
    many launches as the baseline.
    """
    common, ratio = np.append(pair.common, False), np.append(pair.ratio, np.nan)  # -1, rows of no group, picks the last
    before, after = (np.where(common[groups], 0, -1) for groups in (pair.matching.before, pair.matching.after))
    sides = (
        ("_before", pair.old, Totals(pair.before, before, 1)),
        ("", pair.new, Totals(pair.after, after, 1, ratio[pair.matching.after])),
    )
    numbers = np.append(np.arange(first, first + len(kernels["kernel"])), -1)
    names = np.append(kernels["kernel"], "")
    points = [*dict.fromkeys(key for _, totals, _ in sides for key in totals.cells)]
    precisions = dict.fromkeys([*pair.before.work, *pair.after.work, *(name for name, _ in points)])
    levels = dict.fromkeys([*pair.before.traffic, *pair.after.traffic])
    tables: list[Table] = []
    for precision, level in [*((name, "") for name in precisions), *(("", name) for name in levels), *points]:
        chosen = not settings.precisions or not precision
        chosen = chosen or any(f"{precision}.".startswith(f"{one}.") for one in settings.precisions)
        if not chosen or (level and settings.levels and level not in settings.levels):
            continue
        found: Table = {}
        for suffix, totals, whole in sides:
            by_kernel = _level_numbers(totals, precision, level, totals.units)
            in_all = _level_numbers(whole, precision, level, np.ones(1))
            found |= {f"{name}{suffix}": np.append(by_kernel[name][kernels["group"]], in_all[name]) for name in _OF_LEVELS}
        rows = np.flatnonzero(~np.isnan(np.array(list(found.values()))).all(axis=0))
        where = _repeated({**pair.where, "precision": precision, "level": level}, len(rows))
        found = {name: values[rows] for name, values in found.items()}
        tables.append({**where, **found, "row": numbers[rows], "kernel": names[rows], "order": rows})
    if tables:
        joined = _joined(tables)
        order = np.argsort(joined["order"], kind="stable")  # by kernel, and of each by key
        yield {name: values[order] for name, values in joined.items()}


def _level_numbers(totals: Totals, precision: str, level: str, units: FloatArray) -> dict[str, FloatArray]:
    """The numbers of each group; NaN for what this kind of row does not have, and for what is unknown."""
    result = dict.fromkeys(_OF_LEVELS, np.full(totals.count, np.nan))
    seconds, units = (np.where(values == 0, np.nan, values) for values in (totals.seconds, units))
    if precision in totals.work and precision:
        work = totals.work[precision]
        result |= {"total_work": work, "work": work / units, "performance": work / seconds}
    if level in totals.traffic and level:
        traffic = totals.traffic[level]
        result |= {"total_traffic": traffic, "traffic": traffic / units, "bandwidth": traffic / seconds}
    cell, binding = totals.cells.get((precision, level)), totals.bindings.get(precision)
    if cell is not None:
        fraction = cell.performance / cell.attainable
        result |= {"intensity": cell.intensity, "performance": cell.performance, "fraction": fraction}
    elif binding is not None and not level:
        known = result["performance"]
        result |= {"performance": np.where(np.isnan(known), binding.performance, known), "fraction": binding.fraction}
    return result


def _roof_rows(sides: Sequence[Side]) -> list[dict[str, Any]]:
    """The roofs of each side, the highest where its reports differ: clocks jitter."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    names = [column.name for column in columns.COMPARISON_ROOFS if column.name not in ("step", "report")]
    for step, side in enumerate(sides):
        for values in zip(*(side.roofs[name].tolist() for name in names), strict=True):
            row = {"step": step, "report": side.label, **dict(zip(names, values, strict=True))}
            key = step, row["device"], row["kind"], row["roof"], row["origin"]
            if key not in found or row["value"] > found[key]["value"]:
                found[key] = row
    return list(found.values())


def roof_spreads(sides: Iterable[Roofline], ceilings: Sequence[Ceilings]) -> dict[str, float]:
    """Relative spread of the measured roofs by what they can bind as: the largest where several files have one."""
    result: dict[str, float] = {}
    for binds in dict.fromkeys(binds for side in sides for binds in side.point_columns["binds"]):
        measured = [one.bandwidth(binds) or one.compute(binds) for one in ceilings]
        spreads = [ceiling.spread for ceiling in measured if ceiling and math.isfinite(ceiling.spread)]
        if spreads:
            result[binds] = max(spreads)
    return result
