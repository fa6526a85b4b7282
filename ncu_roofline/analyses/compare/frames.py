"""What changed between reports of one application: `compare()`, kernel by kernel, level by level, and in total."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ncu_roofline.analyses.compare import columns
from ncu_roofline.analyses.compare.rows import Noise, Pair, kernel_rows, summary_row
from ncu_roofline.analyses.compare.sides import Side, Totals, match, side_of
from ncu_roofline.model import Displayed, Roofline, roofline_of
from ncu_roofline.model.displayed import KERNEL, VERDICT, Shown, as_change, as_time
from ncu_roofline.model.names import short_names
from ncu_roofline.model.roofline import Source, frame_of, of_rows

_NUMBERS = ("work", "traffic", "total_work", "total_traffic", "bandwidth", "intensity", "performance", "fraction")
TIMES = ("auto", "raw", "normalised")
AGAINST = ("baseline", "previous", "both")
TOLERANCE = 0.02  # of the run time: what back-to-back runs of one kernel under a profiler's locked clocks differ by
Table = Mapping[str, Any]
State = Roofline | Source | Sequence[Source]


def level_rows(
    pair: Pair, kernels: Sequence[Mapping[str, Any]], first: int, precisions: tuple[str, ...], levels: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Rows of each kernel (``group`` says which of the pair), and of the application; ``first`` is the number of the first.

    The application is what both reports have of it, with as many launches as the baseline.
    """
    where = {name: kernels[0][name] for name in ("step", "against", "baseline", "report")} if kernels else pair.where
    keys = [
        (precision, level)
        for precision, level in _keys(pair.before, pair.after)
        if _wanted(precision, precisions) and (not levels or not level or level in levels)
    ]
    result = []
    groups = [(first + number, row["kernel"], row["group"], (pair.old, pair.new)) for number, row in enumerate(kernels)]
    for number, kernel, group, totals in [*groups, (-1, "", 0, _whole(pair))]:
        for precision, level in keys:
            numbers = [_numbers(total, group, precision, level, whole=number < 0) for total in totals]
            if any(not math.isnan(value) for one in numbers for value in one.values()):
                before = {f"{name}_before": numbers[0][name] for name in _NUMBERS}
                row = {"row": number, "kernel": kernel, "precision": precision, "level": level}
                result.append({**where, **row, **before, **numbers[1]})
    return result


def _whole(pair: Pair) -> tuple[Totals, Totals]:
    """The matched kernels of each side as one group, those of the new report as if launched as often as in the baseline."""
    common = np.append(pair.common, False)  # -1, rows of no group, picks the last
    ratio = np.append(pair.launch_ratio, np.nan)
    before, after = (np.where(common[one], 0, -1) for one in (pair.matching.before, pair.matching.after))
    return Totals(pair.before, before, 1), Totals(pair.after, after, 1, ratio[pair.matching.after])


def _wanted(precision: str, chosen: tuple[str, ...]) -> bool:
    return not chosen or not precision or any(precision == one or precision.startswith(f"{one}.") for one in chosen)


def _keys(before: Side, after: Side) -> Iterator[tuple[str, str]]:
    """Precisions alone, levels alone, and those that meet in a point."""
    points = [zip(side.points["precision"], side.points["level"], strict=True) for side in (before, after)]
    pairs = dict.fromkeys(key for side in points for key in side)
    yield from ((name, "") for name in dict.fromkeys([*before.work, *after.work, *(name for name, _ in pairs)]))
    yield from (("", level) for level in dict.fromkeys([*before.traffic, *after.traffic]))
    yield from pairs


def _numbers(totals: Totals, group: int, precision: str, level: str, whole: bool) -> dict[str, float]:
    """The numbers of one group; NaN for what this kind of row does not have, and for what is unknown."""
    result = dict.fromkeys(_NUMBERS, math.nan)
    seconds = float(totals.seconds[group]) or math.nan
    units = 1.0 if whole else float(totals.units[group]) or math.nan
    if precision and precision in totals.work:
        result["total_work"] = float(totals.work[precision][group])
        result["work"] = result["total_work"] / units
        result["performance"] = result["total_work"] / seconds
    if level and level in totals.traffic:
        result["total_traffic"] = float(totals.traffic[level][group])
        result["traffic"] = result["total_traffic"] / units
        result["bandwidth"] = result["total_traffic"] / seconds
    cell, binding = totals.cells.get((precision, level)), totals.bindings.get(precision)
    with np.errstate(all="ignore"):
        if cell is not None:
            result["intensity"] = float(cell.intensity[group])
            result["performance"] = float(cell.performance[group])
            result["fraction"] = float(cell.fraction[group])
        elif binding is not None and not level:
            if math.isnan(result["performance"]):
                result["performance"] = float(binding.performance[group])
            result["fraction"] = float(binding.fraction[group])
    return result


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
    glance: ClassVar[tuple[Shown, ...]] = (
        KERNEL,
        Shown("outcome", "outcome", left=True),
        Shown("seconds_before", "time/launch before", as_time),
        Shown("seconds", "time/launch", as_time),
        Shown("time_change", "change", as_change),
        Shown("verdict_before", "verdict before", left=True),
        VERDICT,
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
    kernels: list[dict[str, Any]] = []
    levels: list[dict[str, Any]] = []
    summaries: list[dict[str, Any]] = []
    with np.errstate(all="ignore"):  # counters of odd reports may be any number: what overflows is no number
        for pair in _pairs(sides, settings, short):
            rows = kernel_rows(pair, Noise(settings.tolerance, settings.roof_spreads), settings.times, settings.small)
            summaries.append(summary_row(pair, rows, settings.tolerance))
            kept = _longest(rows, settings.top)
            levels += level_rows(pair, kept, len(kernels), settings.precisions, settings.levels)
            kernels += kept
        return Comparison(
            of_rows(kernels, columns.COMPARISON_KERNELS),
            of_rows(levels, columns.COMPARISON_LEVELS),
            of_rows(summaries, columns.COMPARISON_SUMMARY),
            of_rows(_roof_rows(sides), columns.COMPARISON_ROOFS),
        )


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


def _pairs(sides: Sequence[Side], settings: Settings, short: Mapping[str, str]) -> list[Pair]:
    """Each report with the baseline and with the one before; the first report after the baseline has but one."""
    result = []
    for step in range(1, len(sides)):
        for against, reference in (("baseline", 0), ("previous", step - 1)):
            same = reference == 0 and against == "previous" and settings.against == "both"
            if settings.against in (against, "both") and not same:
                before, after = sides[reference], sides[step]
                found = match(before, after, settings.in_order)
                totals = Totals(before, found.before, found.count), Totals(after, found.after, found.count)
                result.append(Pair(step, against, before, after, found, *totals, short))
    return result


def _longest(rows: list[dict[str, Any]], top: int) -> list[dict[str, Any]]:
    """The ``top`` rows with the most time on either side, in the order given; all for 0."""
    if not top:
        return rows

    def most(row: dict[str, Any]) -> float:
        return float(np.nanmax([row["total_seconds_before"], row["total_seconds"], 0.0]))

    least = sorted(map(most, rows), reverse=True)[:top][-1:] or [0.0]
    return [row for row in rows if most(row) >= least[0]][:top]
