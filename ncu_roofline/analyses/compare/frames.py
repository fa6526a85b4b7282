"""What changed between reports of one application: `compare()`, kernel by kernel, level by level, and in total."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from statistics import median
from typing import Any, ClassVar

import numpy as np

from ncu_roofline.analyses.compare import columns
from ncu_roofline.base.texts import clean
from ncu_roofline.base.units import format_value
from ncu_roofline.chips import load_spec, load_units
from ncu_roofline.chips.verdict import SHORT_LAUNCH, as_percent
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.model import Displayed, Roofline, Selection, roofline_of
from ncu_roofline.model.measurements import FloatArray, IntArray, TextArray
from ncu_roofline.model.names import CxxName, parse, short_names
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
_NAME_READ = 4_096  # characters of a name that are parsed; longer ones exist only in hostile reports
_TO_SIGMA = 1.4826  # the median absolute deviation of normal noise is 0.6745 of its standard deviation
_ANY_CLOCK = "memory"  # the whole memory system: which part of it is full is not known
_KEY, _LAUNCHED = ("report", "launch", "kernel", "device"), ("grid", "block")
_EXACTLY = (*_LAUNCHED, "device")
# How rows are matched, the closest agreement first: what of the name agrees (as `_stem` has it), and which columns do.
_NUMBERS, _PARAMETERS, _TEMPLATE = "numbers", "parameters", "template"
_PASSES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("configuration", _EXACTLY), ("device", _LAUNCHED), ("name", ()), (_PARAMETERS, _LAUNCHED), (_PARAMETERS, ()),
    (_NUMBERS, _LAUNCHED), (_NUMBERS, ()),  # where the pass before has found the pair of names in another configuration
    (_TEMPLATE, _LAUNCHED), (_TEMPLATE, ()),
)  # fmt: skip
_HOW = {
    "name": "matched by name only",
    _PARAMETERS: "matched without the function's parameters, which changed",
    _NUMBERS: "matched by a name in which numbers changed",
    _TEMPLATE: "matched by the function's name: its template arguments were added or removed",
}
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
    of_run: ClassVar[bool] = False  # work and traffic are needed, not counted, and there are no verdicts
    nouns: ClassVar[tuple[str, ...]] = ("kernel", "launch", "launches")  # what rows are, and what of them is counted
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


class _Side:
    """The kernels of a Roofline as compared: ``index`` of a point is the row of its kernel, -1 where there is none.

    ``units``: how many of what is compared each row stands for: its launches, but an application is one run.
    """

    def __init__(self, roofline: Roofline, label: str) -> None:
        self.kernels, self.points, self.roofs = roofline.kernel_columns, roofline.point_columns, roofline.roof_columns
        rows = {key: row for row, key in enumerate(zip(*(self.kernels[name] for name in _KEY), strict=True))}
        keys = zip(*(self.points[name] for name in _KEY), strict=True)
        self.index: IntArray = np.array([rows.get(key, -1) for key in keys], dtype=np.int64)
        whole, named = self.kernels["kind"] == "application", self.kernels["name"]
        self.names: TextArray = np.where(whole, "application", np.where(named == "", self.kernels["kernel"], named))
        self.units: FloatArray = np.where(whole, 1.0, self.kernels["launches"])
        self.operators: Any = self.kernels["kind"] == "operator"  # of a run
        self.label = label or ", ".join(dict.fromkeys(report for report in self.kernels["report"] if report))
        self.work, self.traffic = dict(roofline.work), dict(roofline.traffic)
        for amounts, by, what in ((self.work, "precision", "work"), (self.traffic, "level", "traffic")):
            if not amounts:  # of tables of points
                for row, key, value in zip(self.index, self.points[by], self.points[what], strict=True):
                    amounts.setdefault(key, np.full(len(self.names), np.nan))[row] = value


def _parsed(name: str) -> CxxName:
    return (parse(name) if len(name) <= _NAME_READ else None) or CxxName((), name, (), ())


def _stem(how: str, name: str, several: Mapping[Any, int]) -> Hashable:
    """What of a name has to agree; ``several``: how many kernels a function is, with overloads and instances of a template."""
    if how == _NUMBERS:
        return re.sub(r"\d+", "*", name)
    if how not in (_PARAMETERS, _TEMPLATE):
        return name
    parsed = _parsed(name)
    if how == _PARAMETERS:
        return parsed.scopes, parsed.base, parsed.template
    return (parsed.scopes, parsed.base) if several[parsed.scopes, parsed.base] == 1 else name


def _keyed(side: _Side, how: str, agree: Sequence[str], where: Any, in_order: bool) -> dict[tuple[Hashable, int], list[int]]:
    """Some rows of a side by what has to agree and their occurrence (-1 where order does not matter)."""
    rows = np.flatnonzero(where).tolist()
    names = set(side.names) if how == _TEMPLATE else ()
    several = Counter((parsed.scopes, parsed.base) for parsed in map(_parsed, names))
    stems = {name: _stem(how, name, several) for name in set(side.names[rows])}
    met: Counter[Hashable] = Counter()
    found: dict[tuple[Hashable, int], list[int]] = {}
    for row in rows:
        key = (stems[side.names[row]], *(side.kernels[name][row] for name in agree))
        found.setdefault((key, met[key] if in_order else -1), []).append(row)
        met[key] += 1
    return found


def _match(before: _Side, after: _Side, in_order: bool) -> tuple[IntArray, IntArray, list[str], list[int]]:
    """The numbers of the groups that the rows of two sides are in, and of each group what agrees ("": only one side has it)
    and which of the launches it is, from 0 (-1: all).  The closest agreement first; what is left over stays alone.

    A kernel whose parameters changed keeps its scopes, name and template arguments; compilers of directives number kernels by
    the line of the source, and sizes are template arguments; a function may become a template.  Such names are matched where
    that is unambiguous: of overloads, or of instances of one template, there is no telling which became which.
    All rows with one key are one group; ``in_order``, the n-th row of a key on one side meets the n-th on the other.
    """
    sides = ((before, np.full(len(before.names), -1)), (after, np.full(len(after.names), -1)))
    linked: set[tuple[str, ...]] = set()  # pairs of names that differ in numbers
    how: list[str] = []
    occurrence: list[int] = []
    for word, agree in _PASSES:
        if any((groups >= 0).all() for _, groups in sides):  # nothing is left to match
            break
        exactly = word in (_PARAMETERS, _NUMBERS, _TEMPLATE)  # the sizes in an operator's name make it another one
        left, right = (
            _keyed(side, word, agree, (groups < 0) & ~(side.operators & exactly), in_order) for side, groups in sides
        )
        for key in filter(right.__contains__, left):
            rows = left[key], right[key]
            if exactly:  # one name on each side
                pair = tuple(name for (side, _), mine in zip(sides, rows, strict=True) for name in set(side.names[mine]))
                alike = word == _TEMPLATE and len({bool(_parsed(name).template) for name in pair}) < 2
                if len(pair) != 2 or alike or (word == _NUMBERS and not agree and pair not in linked):
                    continue
                linked |= {pair} if word == _NUMBERS else set()
            for (_, groups), mine in zip(sides, rows, strict=True):
                groups[mine] = len(how)
            how.append(word)
            occurrence.append(key[1])
    for side, groups in sides:
        everything = _keyed(side, "", _EXACTLY, np.ones(len(groups)), in_order)
        for (_, place), mine in everything.items():
            if alone := [row for row in mine if groups[row] < 0]:
                groups[alone] = len(how)
                how.append("")
                occurrence.append(place)
    return sides[0][1], sides[1][1], how, occurrence


class _Sums:
    """Sums over the rows of each group: ``group[row]`` is from 0 to ``count``, the last for rows of no group, and not given.

    A sum of which one row is missing is missing (NaN); roofs are means weighted by time, as in a Roofline by kernel.
    ``weight[row]`` is how often a row counts in the sums.  ``units`` are the launches of each group.
    """

    def __init__(self, side: _Side, group: IntArray, count: int, weight: FloatArray | float = 1.0) -> None:
        self.side, self.group, self.count = side, np.where(group < 0, count, group), count
        self._weight = np.ones(len(side.names)) * weight
        first = np.full(count + 1, -1)
        first[self.group[::-1]] = np.arange(len(group))[::-1]
        self.first, self.present = first[:-1], first[:-1] >= 0
        kernels, clock = side.kernels, side.kernels["clock_profiled"]
        seconds = kernels["seconds"] * self._weight
        self.seconds, self.work_known = self._total(seconds), self._total(kernels["work"] * self._weight)
        self.launches, self.units = self._add(kernels["launches"]), self._add(side.units)
        mean = self._total(clock) / self._add(np.ones(len(clock)))
        self.clock = np.where(np.isnan(self.seconds) & self.present, mean, self._total(clock * seconds) / self.seconds)
        self.work = {name: self._total(values * self._weight) for name, values in side.work.items()}
        self.traffic = {name: self._total(values * self._weight) for name, values in side.traffic.items()}

    def _add(self, values: Any) -> FloatArray:
        return np.bincount(self.group, weights=values, minlength=self.count + 1)[:-1].astype(np.float64)

    def _total(self, values: Any) -> FloatArray:
        """Sum over each group; NaN where a row of it lacks the number, and for groups without rows."""
        lacking = self._add(~np.isfinite(values)) > 0
        return np.where(lacking | ~self.present, np.nan, self._add(np.nan_to_num(values)))

    def common(self, name: str) -> TextArray:
        """What all rows of a group have in a column; '' where they differ, and for groups without rows."""
        texts = np.append(self.side.kernels[name], "")
        result: TextArray = np.append(texts[self.first], "")
        result[self.group[texts[:-1] != result[self.group]]] = ""
        return result[:-1]

    def of_kernels(self) -> Table:
        """What the frame of kernels has of each group: medians over launches, sums, and what the model says of most time."""
        (seconds, spread), (verdict, limit) = self._time(), self._verdicts()
        return {
            "name": np.append(self.side.names, "")[self.first],
            **{name: self.common(name) for name in ("grid", "block", "device")},
            "launches": self.launches,
            "seconds": seconds,
            "total_seconds": self.seconds,
            "spread": spread,
            "clock": self.clock,
            "cycles": seconds * self.clock,
            "work": self.work_known / self.units,
            "total_work": self.work_known,
            **self._busiest(),
            "verdict": verdict,
            "limit": limit,
        }

    def _time(self) -> tuple[FloatArray, FloatArray]:
        """Median run time of the launches of a group, and its relative spread: 1.4826 * median absolute deviation / median.

        The median is NaN where a run time is unknown, the spread below two known ones.  A row that is a sum counts with the
        mean of its launches.
        """
        times: list[list[float]] = [[] for _ in range(self.count + 1)]
        for group, time in zip(self.group.tolist(), (self.side.kernels["seconds"] / self.side.units).tolist(), strict=True):
            times[group].append(time)
        found = []
        for own in times[:-1]:
            known = [time for time in own if math.isfinite(time)]
            middle = median(known) if known else math.nan
            off = median(abs(time - middle) for time in known) if len(known) > 1 and middle > 0 else math.nan
            found.append((middle if len(known) == len(own) else math.nan, _TO_SIGMA * off / middle if middle else math.nan))
        medians, spreads = np.array(found, dtype=np.float64).reshape(-1, 2).T
        return medians, spreads

    def _verdicts(self) -> tuple[TextArray, TextArray]:
        """The verdict of most of the time of each group, and of its launches the nearest limit; of equals the first."""
        spent: list[dict[str, dict[str, float]]] = [{} for _ in range(self.count + 1)]
        facts = (np.nan_to_num(self.side.kernels["seconds"]), self.side.kernels["verdict"], self.side.kernels["limit"])
        for group, seconds, verdict, limit in zip(self.group.tolist(), *(fact.tolist() for fact in facts), strict=True):
            limits = spent[group].setdefault(verdict, {})
            limits[limit] = limits.get(limit, 0.0) + seconds
        most = [max(one, key=lambda name, one=one: sum(one[name].values()), default="") for one in spent[:-1]]  # type: ignore[misc]
        limits_of = [one.get(name, {}) for one, name in zip(spent[:-1], most, strict=True)]
        nearest = [max(limits, key=limits.__getitem__, default="") for limits in limits_of]
        return np.array(most, dtype=object), np.array(nearest, dtype=object)

    @cached_property
    def cells(self) -> dict[tuple[str, str], dict[str, FloatArray]]:
        """By precision and level: intensity (FLOP/byte), performance, roofs and the lower of these (FLOP/s) of each group."""
        points, owner = self.side.points, np.append(self.group, self.count)[self.side.index]
        # Of files that give rates only, each row counts alike.
        weight = np.where(np.isfinite(points["seconds"]), points["seconds"], 1.0)
        weight = weight * np.append(self._weight, 1.0)[self.side.index]
        found = {}
        for precision, level in dict.fromkeys(zip(points["precision"], points["level"], strict=True)):
            mine = np.flatnonzero((points["precision"] == precision) & (points["level"] == level) & (owner < self.count))
            total = np.bincount(owner[mine], weights=weight[mine], minlength=self.count)
            performance, bandwidth, compute, slope = (
                np.bincount(owner[mine], weights=points[name][mine] * weight[mine], minlength=self.count) / total
                for name in ("performance", "bandwidth", "compute_roof", "bandwidth_roof")
            )
            cell = {"intensity": performance / bandwidth, "performance": performance, "compute": compute}
            cell["slope"] = cell["intensity"] * slope
            found[precision, level] = {**cell, "attainable": np.minimum(compute, cell["slope"])}
        return found

    @cached_property
    def bindings(self) -> dict[str, Table]:
        """By precision: performance (FLOP/s), its share of the lowest attainable one over all levels, and what binds."""
        points, spec, found = self.side.points, load_spec(), {}
        levels = {level.id for level in spec.levels} | {"", *points["level"]}
        roof_ids = {one.id: one.roof_ids()[0] for one in spec.precisions}
        owner = np.append(self.group, self.count)[self.side.index]
        of_roof = (owner < self.count) & ~np.isin(points["binds"], list(levels))
        for precision in dict.fromkeys(name for name, _ in self.cells):
            # The compute roof of each group: what its rows name as binding, else the first of this precision.
            roofs: TextArray = np.full(self.count, roof_ids.get(precision, f"{precision}.fma"), dtype=object)
            mine = np.flatnonzero((points["precision"] == precision) & of_roof)
            roofs[owner[mine]] = points["binds"][mine]
            lowest, performance = np.full(self.count, np.nan), np.full(self.count, np.nan)
            binds: TextArray = np.full(self.count, "", dtype=object)
            for level, cell in ((level, cell) for (name, level), cell in self.cells.items() if name == precision):
                performance = np.where(np.isnan(performance), cell["performance"], performance)
                better = np.isfinite(cell["attainable"]) & ~(cell["attainable"] >= lowest)
                binds = np.where(better, np.where(cell["slope"] < cell["compute"], level, roofs), binds)
                lowest = np.where(better, cell["attainable"], lowest)
            found[precision] = {"performance": performance, "fraction": performance / lowest, "binds": binds}
        return found

    def _busiest(self) -> Table:
        """The precision that did most of the work of each group (mixed is the sum over pipes; one drawn on request only where
        there is no other), '' without any; what binds it.
        """
        most, last = np.full(self.count, -1.0), load_spec().on_request
        nothing, empty = np.full(self.count, np.nan), np.full(self.count, "", dtype=object)
        found: Table = {"precision": empty, "performance": nothing, "fraction": nothing, "binds": empty}
        for precision, binding in sorted(self.bindings.items(), key=lambda item: item[0] in last):
            better = np.nan_to_num(binding["performance"], nan=-1.0) > most
            if precision in last:
                better &= found["precision"] == ""
            mine = {"precision": np.full(self.count, precision, dtype=object), **binding}
            found = {name: np.where(better, mine[name], values) for name, values in found.items()}
            most = np.where(better, binding["performance"], most)
        if self.side.operators.any():  # what needs bytes alone has a share of the roof of these
            memory, idle = load_spec().memory, found["precision"] == ""
            least = self._total(self.side.kernels["seconds"] * self.side.kernels[f"fraction_{memory}"])
            found["fraction"] = np.where(idle, least / self.seconds, found["fraction"])
            found["binds"] = np.where(idle & np.isfinite(least), memory, found["binds"])
        return found

    def of_level(self, precision: str, level: str, units: FloatArray) -> dict[str, FloatArray]:
        """The numbers of each group at a level; NaN for what this kind of row does not have, and for what is unknown."""
        result = dict.fromkeys(_OF_LEVELS, np.full(self.count, np.nan))
        seconds, units = (np.where(values == 0, np.nan, values) for values in (self.seconds, units))
        if precision and precision in self.work:
            work = self.work[precision]
            result |= {"total_work": work, "work": work / units, "performance": work / seconds}
        if level and level in self.traffic:
            traffic = self.traffic[level]
            result |= {"total_traffic": traffic, "traffic": traffic / units, "bandwidth": traffic / seconds}
        cell, binding = self.cells.get((precision, level)), self.bindings.get(precision)
        if cell is not None:
            fraction = cell["performance"] / cell["attainable"]
            result |= {"intensity": cell["intensity"], "performance": cell["performance"], "fraction": fraction}
        elif binding is not None and not level:
            known = result["performance"]
            performance = np.where(np.isnan(known), binding["performance"], known)
            result |= {"performance": performance, "fraction": binding["fraction"]}
        return result


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
    sides = [_Side(one, label) for one, label in zip(map(roofline_of, (baseline, *new)), names, strict=True)]
    full = list(dict.fromkeys(name for side in sides for name in side.names))
    short = dict(zip(full, short_names(full), strict=True))
    short |= {name: clean(name) for side in sides for name in side.names[side.operators]}
    kernels: list[Table] = []
    levels: list[Table] = []
    summaries: list[Table] = []
    steps = [("baseline", 0, step) for step in range(1, len(sides))]
    steps += [("previous", step - 1, step) for step in range(1 if settings.against == "previous" else 2, len(sides))]
    with np.errstate(all="ignore"):  # counters of odd reports may be any number: what overflows is no number
        for against, reference, step in sorted(steps, key=lambda one: one[2]):
            if settings.against not in (against, "both"):
                continue
            before, after = sides[reference], sides[step]
            groups, now, how, occurrence = _match(before, after, settings.in_order)
            old, sums = _Sums(before, groups, len(how)), _Sums(after, now, len(how))
            where = {"step": step, "against": against, "baseline": before.label, "report": after.label}
            agreed = {"matched": np.array(how, dtype=object), "occurrence": np.array(occurrence)}
            found = _kernels(old, sums, agreed, short, settings)
            summaries.append({**where, **_summary(old, sums, found, settings.tolerance)})
            most = np.fmax(np.fmax(found["total_seconds_before"], found["total_seconds"]), 0.0)
            if 0 < settings.top < len(most):  # those with the most time on either side
                kept = np.flatnonzero(most >= np.sort(most)[-settings.top])[: settings.top]
                found = {name: values[kept] for name, values in found.items()}
            first = sum(len(one["kernel"]) for one in kernels)
            found_levels = _levels(old, sums, found, first, settings)
            levels += [{**table, **_repeated(where, len(table["kernel"]))} for table in found_levels]
            kernels.append({**found, **_repeated(where, len(found["kernel"]))})
        return Comparison(
            of_columns(_joined(kernels), columns.COMPARISON_KERNELS),
            of_columns(_joined(levels), columns.COMPARISON_LEVELS) if levels else of_rows([], columns.COMPARISON_LEVELS),
            of_rows(summaries, columns.COMPARISON_SUMMARY),
            of_rows(_roof_rows(sides), columns.COMPARISON_ROOFS),
        )


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


def _kernels(old: _Sums, new: _Sums, agreed: Table, short: Mapping[str, str], settings: Settings) -> Table:
    """The kernels, the largest change of time first; ``group`` is the number among the sums.

    "ratio": launches of the baseline over those of the new report; "common": whether both reports have it.

    "launched": run time of as many launches as the baseline has; where the numbers differ, that many medians, as a row's own
    change: the mean of other launches may be that of one odd launch.
    """
    common, ratio = old.present & new.present, old.units / new.units
    k: Table = {"group": np.arange(len(common)), "common": common, "ratio": ratio, **agreed}
    k |= {f"{name}_before": values for name, values in old.of_kernels().items()} | new.of_kernels()
    k["name"] = np.where(new.present, k["name"], k["name_before"])
    k["kernel"] = np.array([short[name] for name in k["name"]], dtype=object)
    one_gpu = k["device"] == k["device_before"]
    # The new time at the clock of the baseline, which of the two times counts, and what was saved.
    clocks = k["clock"] / k["clock_before"]
    k["limits"] = np.where((k["limit"] != "") & (k["limit"] != _ANY_CLOCK), k["limit"], k["binds"])
    scaled = np.array([_limit(limit)[0] for limit in k["limits"]], dtype=bool)
    known = common & (k["limits"] != "") & one_gpu & np.isfinite(clocks)
    scale = np.where(known, np.where(scaled, clocks, 1.0), np.nan)
    k["clocks_differ"] = np.abs(clocks - 1) > CLOCK_DIFFERS
    use = np.isfinite(scale) & (settings.times != "raw") & ((settings.times == "normalised") | k["clocks_differ"])
    k["time_basis"] = np.where(use, "normalised", "raw")
    change = k["seconds"] * np.where(use, scale, 1.0) / k["seconds_before"] - 1
    k["time_change"] = np.where(common & (k["seconds_before"] > 0), change, np.nan)
    k |= {f"{name}_normalised": k[name] * scale for name in ("seconds", "total_seconds")}
    for suffix in ("_before", "", "_normalised"):
        medians = k[f"seconds{suffix}"] * old.units
        k[f"launched{suffix}"] = np.where(ratio == 1, k[f"total_seconds{suffix}"], medians)
    total, launched = (np.where(use, k[f"{name}_normalised"], k[name]) for name in ("total_seconds", "launched"))
    k["mean_change"] = total * ratio / k["total_seconds_before"] - 1
    # Of kernels that only one report has, all is saved or lost.
    alone = np.where(np.isnan(k["total_seconds_before"]), -k["total_seconds"], k["total_seconds_before"])
    k["seconds_saved"] = np.where(common, k["launched_before"] - launched, alone)
    # What is noise, and what is small: that it has to be in both reports.
    comparable = one_gpu & ~np.isnan(k["time_change"])
    spreads = [k["spread_before"], k["spread"]]
    for binds in (k["binds_before"], k["binds"]):  # of measured roofs, where shares of them are compared
        roof = np.array([settings.roof_spreads.get(one, math.nan) for one in binds])
        spreads.append(np.where(comparable, np.nan, roof))
    squares = sum(np.where(np.isfinite(spread), spread, 0.0) ** 2 for spread in spreads)
    k["noise"] = np.maximum(settings.tolerance, np.sqrt(squares))
    shares = [k[name] / np.nansum(k[name]) for name in ("total_seconds_before", "total_seconds")]
    k["time_share"] = np.where(new.present, shares[1], shares[0])
    of_time = np.where(_below(SMALL_SHARE, *shares), f"under {100 * SMALL_SHARE:.0f} % of the time", "")
    of_run = old.side.operators.any()  # whose calls are many and short: their spread is known
    times = (k[f"{'total_' if of_run else ''}seconds{suffix}"] for suffix in ("_before", ""))
    brief = _below(SHORT_LAUNCH, *times)
    small = np.where(brief, f"{'' if of_run else 'launches '}under {format_value(SHORT_LAUNCH, 'second', 3)}", of_time)
    k["small"] = np.where(settings.small, "", small)
    # The outcome in a word.  Uneven: the mean of the launches changed otherwise than their median, more than noise does.
    k["uneven"] = comparable & (np.abs(k["mean_change"] - k["time_change"]) > k["noise"])
    gain = np.where(k["fraction_before"] > 0, k["fraction"] / k["fraction_before"] - 1, np.nan)
    word = _word(-k["time_change"], k["noise"], FASTER, SLOWER)
    # Of as many launches the sum is what was spent; its median must not say otherwise.
    contradicted = k["uneven"] & (ratio == 1) & (word != _word(-k["mean_change"], k["noise"], FASTER, SLOWER))
    word = np.where(comparable, word, _word(gain, k["noise"], CLOSER, FURTHER))
    undecided = contradicted | ((k["small"] != "") & (word != SAME) & (word != UNKNOWN))
    outcome = np.select([~old.present, ~new.present, undecided], [ADDED, REMOVED, NOT_JUDGED], word)
    k["outcome"] = outcome.astype(object)
    notes = ["; ".join(_notes(old, new, k, row, short)) if common[row] else "" for row in range(len(common))]
    k["notes"] = np.array(notes, dtype=object)
    order = np.argsort(np.where(np.isfinite(k["seconds_saved"]), -np.abs(k["seconds_saved"]), 0.0), kind="stable")
    return {name: values[order] for name, values in k.items()}


def _below(limit: float, before: Any, after: Any) -> Any:
    """Whether what is known of two numbers is below a limit."""
    return np.fmax(*(np.where(np.isfinite(values), values, np.nan) for values in (before, after))) < limit


def _word(gain: Any, noise: Any, better: str, worse: str) -> Any:
    return np.select([np.isnan(gain), np.abs(gain) <= noise, gain > 0], [UNKNOWN, SAME, better], worse)


def _notes(old: _Sums, new: _Sums, k: Table, row: int, short: Mapping[str, str]) -> Iterator[str]:
    """What must be known of a kernel that both reports have."""
    one = {name: values[row] for name, values in k.items()}
    if one["matched"] in _HOW:
        yield _HOW[one["matched"]]
        if (before := short.get(one["name_before"], "")) != one["kernel"]:
            yield f"before it was {before}"
        texts = []
        for sums in (old, new):
            rows, kernels = np.flatnonzero(sums.group == row), sums.side.kernels
            (grid, block), *others = dict.fromkeys(zip(kernels["grid"][rows], kernels["block"][rows], strict=True))
            alone = f"grid {grid} block {block}" if grid else "unknown"
            texts.append(f"{len(others) + 1} of them" if others else alone)
        if texts[0] != texts[1]:
            yield f"configuration was {texts[0]} and is {texts[1]}"
    if one["outcome"] == NOT_JUDGED and one["small"]:
        yield f"not judged without --small: {one['small']}"
    if one["ratio"] != 1:
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
        yield f"most work was {one['precision_before']} and is now {one['precision']}"
    if one["uneven"]:
        judged = "not judged: " if one["outcome"] == NOT_JUDGED and not one["small"] else ""
        changed = f"changed by {one['mean_change']:+.1%}, their median by {one['time_change']:+.1%}"
        yield f"{judged}the mean of its launches {changed}: some launches differ from the others"
    if np.isnan(one["seconds"]) or np.isnan(one["seconds_before"]):
        yield "some launch has no run time"


def _sum(values: FloatArray) -> float:
    """The sum of the numbers among them; NaN if there is none."""
    known = values[np.isfinite(values)]
    return float(np.sum(known)) if len(known) else math.nan


def _summary(old: _Sums, new: _Sums, k: Table, tolerance: float) -> dict[str, Any]:
    """The application: what both sides have of it, launched as often as in the baseline; the rest apart."""
    devices = [", ".join(dict.fromkeys(sums.side.kernels["device"])) for sums in (old, new)]
    both, one_gpu = k["matched"] != "", devices[0] == devices[1]
    timed = both & np.isfinite(k["total_seconds_before"]) & np.isfinite(k["total_seconds"])
    at_clock = np.where(np.isnan(k["launched_normalised"]), k["launched"], k["launched_normalised"])
    spent = np.float64(_sum(k["launched_before"][timed]))  # NumPy's: odd reports may divide by zero
    used = spent - _sum(k["seconds_saved"][timed]) if one_gpu else math.nan
    seconds = _sum(k["launched"][timed])
    noise = max(tolerance, math.hypot(*(k["noise"] * k["launched_before"])[timed].tolist()) / spent)
    word = str(_word((spent - used) / spent, noise, FASTER, SLOWER)) if both.any() else NOTHING
    short = bool((k["small"][timed] != "").all() and _below(SHORT_LAUNCH, spent, seconds))
    matched, relaunched, scaled = (
        int(some.sum()) for some in (both, both & (k["ratio"] != 1), k["time_basis"] == "normalised")
    )
    notes = []
    if not one_gpu:
        notes.append(f"{_OTHER_GPU} ({devices[0] or 'unknown'} and {devices[1] or 'unknown'})")
    if relaunched:
        notes.append(
            f"the number of launches differs in {relaunched} of {matched} kernels that both reports have: the medians of their "
            "launches are compared, and weighted by the launches of the baseline in the sum"
        )
    if scaled:
        notes.append(
            f"clocks differ by more than {as_percent(CLOCK_DIFFERS)} in {scaled} of {len(both)} kernels: their times are "
            "compared at the baseline's SM clock, scaled where compute, L1, shared memory or L2 is nearest to its limit and "
            "not where DRAM or system memory is"
        )
    if lacking := matched - int(timed.sum()):
        notes.append(f"{lacking} of {matched} kernels have no run time in one of the reports and are not in the sum")
    return {
        "device_before": devices[0],
        "device": devices[1],
        "launches_before": int(old.launches.sum()),
        "launches": int(new.launches.sum()),
        "seconds_before": spent,
        "seconds": seconds,
        "seconds_normalised": _sum(at_clock[timed]) if one_gpu else math.nan,
        "time_basis": "normalised" if (k["time_basis"][timed] == "normalised").any() else "raw",
        "time_change": used / spent - 1,
        "speedup": spent / used,
        "seconds_saved": spent - used,
        "noise": noise,
        "outcome": NOT_JUDGED if short and word in (FASTER, SLOWER) else word,
        "total_seconds_before": _sum(old.seconds),
        "total_seconds": _sum(new.seconds),
        "seconds_removed": _sum(k["total_seconds_before"][k["outcome"] == REMOVED]),
        "seconds_added": _sum(k["total_seconds"][k["outcome"] == ADDED]),
        "work_before": _sum(k["total_work_before"][both]),
        "work": _sum((k["total_work"] * k["ratio"])[both]),
        "matched": matched,
        "added": int((k["outcome"] == ADDED).sum()),
        "removed": int((k["outcome"] == REMOVED).sum()),
        "relaunched": relaunched,
        "notes": "; ".join(notes),
    }


def _levels(old: _Sums, new: _Sums, kernels: Table, first: int, settings: Settings) -> list[Table]:
    """Columns of each kernel, and last of the application; ``first`` is the number of the first kernel.  [] without any.

    Precisions alone, levels alone, and those that meet in a point.  The application is what both reports have of it, with as
    many launches as the baseline.
    """
    # The last: of rows of no group.
    common, ratio = np.append(old.present & new.present, False), np.append(old.units / new.units, np.nan)
    sides = [
        ("_before", old, _Sums(old.side, np.where(common[old.group], 0, -1), 1)),
        ("", new, _Sums(new.side, np.where(common[new.group], 0, -1), 1, ratio[new.group])),
    ]
    numbers = np.append(np.arange(first, first + len(kernels["kernel"])), -1)
    names = np.append(kernels["kernel"], "")
    points = [*dict.fromkeys(key for _, _, whole in sides for key in whole.cells)]
    precisions = dict.fromkeys([*old.work, *new.work, *(name for name, _ in points)])
    levels = dict.fromkeys([*old.traffic, *new.traffic])
    select = Selection(precisions=settings.precisions, levels=settings.levels)
    tables: list[Table] = []
    for precision, level in [*((name, "") for name in precisions), *(("", name) for name in levels), *points]:
        if not select.wants(precision, level):
            continue
        found: Table = {}
        for suffix, sums, whole in sides:
            by_kernel, in_all = sums.of_level(precision, level, sums.units), whole.of_level(precision, level, np.ones(1))
            found |= {f"{name}{suffix}": np.append(by_kernel[name][kernels["group"]], in_all[name]) for name in _OF_LEVELS}
        rows = np.flatnonzero(~np.isnan(np.array(list(found.values()))).all(axis=0))
        where = _repeated({"precision": precision, "level": level}, len(rows))
        found = {name: values[rows] for name, values in found.items()}
        tables.append({**where, **found, "row": numbers[rows], "kernel": names[rows], "order": rows})
    if not tables:
        return []
    joined = _joined(tables)
    order = np.argsort(joined["order"], kind="stable")  # by kernel, and of each by key
    return [{name: values[order] for name, values in joined.items()}]


def _roof_rows(sides: Sequence[_Side]) -> list[dict[str, Any]]:
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
