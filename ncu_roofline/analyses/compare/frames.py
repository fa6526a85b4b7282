"""What changed between reports of one application: `compare()`, kernel by kernel, level by level, and in total."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ncu_roofline.analyses.compare import columns
from ncu_roofline.analyses.compare.groups import Side, Totals, match, side_of
from ncu_roofline.analyses.compare.kernels import Kernels, Pair, kernels_of_pair, summary_row
from ncu_roofline.model import Displayed, Roofline, roofline_of
from ncu_roofline.model.displayed import seen
from ncu_roofline.model.measurements import FloatArray
from ncu_roofline.model.names import short_names
from ncu_roofline.model.roofline import Source, frame_of, of_columns, of_rows
from ncu_roofline.rendering.document import Column

_NUMBERS = ("work", "traffic", "total_work", "total_traffic", "bandwidth", "intensity", "performance", "fraction")
TIMES = ("auto", "raw", "normalised")
AGAINST = ("baseline", "previous", "both")
TOLERANCE = 0.02  # of the run time: what back-to-back runs of one kernel under a profiler's locked clocks differ by
Table = dict[str, Any]
State = Roofline | Source | Sequence[Source]


def _levels_of_pair(
    pair: Pair, kernels: Kernels, first: int, precisions: tuple[str, ...], levels: tuple[str, ...]
) -> Iterator[Table]:
    """Columns of each kernel, and last of the application; ``first`` is the number of the first kernel.

    The application is what both reports have of it, with as many launches as the baseline.
    """
    common = np.append(pair.common, False)  # -1, rows of no group, picks the last
    ratio = np.append(pair.launch_ratio, np.nan)
    before, after = (np.where(common[groups], 0, -1) for groups in (pair.matching.before, pair.matching.after))
    whole = Totals(pair.before, before, 1), Totals(pair.after, after, 1, ratio[pair.matching.after])
    count = len(kernels["kernel"])
    numbers = np.append(np.arange(first, first + count), -1)
    names = np.append(kernels["kernel"], "")
    found: list[Table] = []
    for precision, level in _keys(pair.before, pair.after):
        chosen = not precisions or not precision or any(f"{precision}.".startswith(f"{one}.") for one in precisions)
        if not chosen or (level and levels and level not in levels):
            continue
        columns: Table = {}
        for suffix, totals, all_in_one in (("_before", pair.old, whole[0]), ("", pair.new, whole[1])):
            by_kernel = _level_numbers(totals, precision, level, totals.units)
            in_all = _level_numbers(all_in_one, precision, level, np.ones(1))
            for name in _NUMBERS:
                columns[f"{name}{suffix}"] = np.append(by_kernel[name][kernels["group"]], in_all[name])
        rows = np.flatnonzero(~np.isnan(np.array(list(columns.values()))).all(axis=0))
        columns = {name: values[rows] for name, values in columns.items()}
        columns |= {"row": numbers[rows], "kernel": names[rows], "order": rows}
        found.append({**_repeated({**pair.where, "precision": precision, "level": level}, len(rows)), **columns})
    if found:
        joined = _joined(found)
        order = np.argsort(joined["order"], kind="stable")  # by kernel, and of each by key
        yield {name: values[order] for name, values in joined.items()}


def _repeated(values: Mapping[str, Any], count: int) -> Table:
    return {name: np.full(count, value, dtype=object) for name, value in values.items()}


def _joined(tables: Sequence[Table]) -> Table:
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def _keys(before: Side, after: Side) -> Iterator[tuple[str, str]]:
    """Precisions alone, levels alone, and those that meet in a point."""
    points = [zip(side.points["precision"], side.points["level"], strict=True) for side in (before, after)]
    pairs = dict.fromkeys(key for side in points for key in side)
    yield from ((name, "") for name in dict.fromkeys([*before.work, *after.work, *(name for name, _ in pairs)]))
    yield from (("", level) for level in dict.fromkeys([*before.traffic, *after.traffic]))
    yield from pairs


def _level_numbers(totals: Totals, precision: str, level: str, units: FloatArray) -> dict[str, FloatArray]:
    """The numbers of each group; NaN for what this kind of row does not have, and for what is unknown."""
    nothing = np.full(totals.count, np.nan)
    result = dict.fromkeys(_NUMBERS, nothing)
    seconds, units = (np.where(values == 0, np.nan, values) for values in (totals.seconds, units))
    if precision and precision in totals.work:
        work = totals.work[precision]
        result |= {"total_work": work, "work": work / units, "performance": work / seconds}
    if level and level in totals.traffic:
        traffic = totals.traffic[level]
        result |= {"total_traffic": traffic, "traffic": traffic / units, "bandwidth": traffic / seconds}
    cell, binding = totals.cells.get((precision, level)), totals.bindings.get(precision)
    if cell is not None:
        fraction = cell.performance / cell.attainable
        result |= {"intensity": cell.intensity, "performance": cell.performance, "fraction": fraction}
    elif binding is not None and not level:
        known = result["performance"]
        result["performance"] = np.where(np.isnan(known), binding.performance, known)
        result["fraction"] = binding.fraction
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
    count = 0
    kernels: list[Table] = []
    levels: list[Table] = []
    summaries: list[Table] = []
    with np.errstate(all="ignore"):  # counters of odd reports may be any number: what overflows is no number
        for step, against, reference in _pairs(len(sides), settings.against):
            before, after = sides[reference], sides[step]
            pair = Pair(step, against, before, after, match(before, after, settings.in_order), short)
            found = kernels_of_pair(pair, settings.tolerance, settings.roof_spreads, settings.times, settings.small)
            summaries.append(summary_row(pair, found, settings.tolerance))
            found = _longest(found, settings.top)
            levels += _levels_of_pair(pair, found, count, settings.precisions, settings.levels)
            kernels.append({**found, **_repeated(pair.where, len(found["kernel"]))})
            count += len(found["kernel"])
        return Comparison(
            of_columns(_joined(kernels), columns.COMPARISON_KERNELS),
            of_columns(_joined(levels), columns.COMPARISON_LEVELS) if levels else of_rows([], columns.COMPARISON_LEVELS),
            of_rows(summaries, columns.COMPARISON_SUMMARY),
            of_rows(_roof_rows(sides), columns.COMPARISON_ROOFS),
        )


def _pairs(sides: int, wanted: str) -> Iterator[tuple[int, str, int]]:
    """Each report with the baseline and with the one before; the first report after the baseline has but one."""
    for step in range(1, sides):
        for against, reference in (("baseline", 0), ("previous", step - 1)):
            same = reference == 0 and against == "previous" and wanted == "both"
            if wanted in (against, "both") and not same:
                yield step, against, reference


def _longest(kernels: Kernels, top: int) -> Kernels:
    """The ``top`` kernels with the most time on either side, in the order given; all for 0."""
    most = np.fmax(np.fmax(kernels["total_seconds_before"], kernels["total_seconds"]), 0.0)
    if not 0 < top < len(most):
        return kernels
    kept = np.flatnonzero(most >= np.sort(most)[-top])[:top]
    return {name: values[kept] for name, values in kernels.items()}


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
