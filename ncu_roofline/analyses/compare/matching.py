"""The two sides of a comparison: the rows of a Roofline, which of them are compared as one, and their sums and medians."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ncu_roofline.chips import load_spec
from ncu_roofline.model import Roofline
from ncu_roofline.model.measurements import FloatArray, IntArray, TextArray
from ncu_roofline.model.names import CxxName, parse

CONFIGURATION, DEVICE_CHANGED, NAME_ONLY = "configuration", "device", "name"
PARAMETERS, NUMBERS, TEMPLATE = "parameters", "numbers", "template"
_NAME_READ = 4_096  # characters of a name that are parsed; longer ones exist only in hostile reports
_TO_SIGMA = 1.4826  # the median absolute deviation of normal noise is 0.6745 of its standard deviation
_KEY = ("report", "launch", "kernel", "device")
_LAUNCHED = ("grid", "block")
_EXACTLY = (*_LAUNCHED, "device")


@dataclass(frozen=True)
class Side:
    """The kernels of a Roofline as compared: ``index`` of a point is the row of its kernel, -1 where there is none.

    ``units``: how many of what is compared each row stands for: its launches, but an application is one run.
    """

    label: str
    kernels: Mapping[str, Any]
    points: Mapping[str, Any]
    index: IntArray
    names: TextArray
    units: FloatArray
    work: Mapping[str, FloatArray]
    traffic: Mapping[str, FloatArray]
    roofs: Mapping[str, Any]

    @cached_property
    def functions(self) -> Counter[tuple[Hashable, ...]]:
        """How many kernels each function is: overloads and instances of a template are several."""
        return Counter((name.scopes, name.base) for name in map(_parsed, set(self.names)))


def side_of(roofline: Roofline, label: str = "") -> Side:
    """The rows of a Roofline; ``label`` is what to call it, if not by its reports."""
    kernels, points = roofline.kernel_columns, roofline.point_columns
    rows = {key: row for row, key in enumerate(zip(*(kernels[name] for name in _KEY), strict=True))}
    index = np.array([rows.get(key, -1) for key in zip(*(points[name] for name in _KEY), strict=True)], dtype=np.int64)
    whole = kernels["kind"] == "application"
    names = np.where(whole, "application", np.where(kernels["name"] == "", kernels["kernel"], kernels["name"]))
    units = np.where(whole, 1.0, kernels["launches"])

    def of_points(by: str, what: str) -> dict[str, FloatArray]:
        result: dict[str, FloatArray] = {}
        for row, key, value in zip(index, points[by], points[what], strict=True):
            result.setdefault(key, np.full(len(names), np.nan))[row] = value
        return result

    work, traffic = roofline.work or of_points("precision", "work"), roofline.traffic or of_points("level", "traffic")
    label = label or ", ".join(dict.fromkeys(report for report in kernels["report"] if report))
    return Side(label, kernels, points, index, names, units, work, traffic, roofline.roof_columns)


class Matching(NamedTuple):
    """Groups of rows that are compared: ``before[row]`` and ``after[row]`` are their numbers; ``how`` and ``occurrence``.

    ``how`` says what agrees; "" for a group that only one side has.  ``occurrence`` counts launches of one kernel from 0 where
    they are matched in order, else it is -1.
    """

    before: IntArray
    after: IntArray
    how: list[str]
    occurrence: list[int]


def _parsed(name: str) -> CxxName:
    return (parse(name) if len(name) <= _NAME_READ else None) or CxxName((), name, (), ())


def _whole(_side: Side, name: str) -> Hashable:
    return name


def _without_parameters(_side: Side, name: str) -> Hashable:
    parsed = _parsed(name)
    return parsed.scopes, parsed.base, parsed.template


def _without_numbers(_side: Side, name: str) -> Hashable:
    return re.sub(r"\d+", "*", name)


def _function(side: Side, name: str) -> Hashable:
    parsed = _parsed(name)
    function = parsed.scopes, parsed.base
    return function if side.functions[function] == 1 else name


# How rows are matched, the closest agreement first: by what of the name, and by which columns.
_PASSES: tuple[tuple[str, Callable[[Side, str], Hashable], tuple[str, ...]], ...] = (
    (CONFIGURATION, _whole, _EXACTLY),
    (DEVICE_CHANGED, _whole, _LAUNCHED),
    (NAME_ONLY, _whole, ()),
    (PARAMETERS, _without_parameters, _LAUNCHED),
    (PARAMETERS, _without_parameters, ()),
    (NUMBERS, _without_numbers, _LAUNCHED),
    (NUMBERS, _without_numbers, ()),  # where the pass before has found the pair of names in another configuration
    (TEMPLATE, _function, _LAUNCHED),
    (TEMPLATE, _function, ()),
)


def match(before: Side, after: Side, in_order: bool = False) -> Matching:
    """Match the rows of two sides, the closest agreement first; what is left over stays alone.

    A kernel whose parameters changed keeps its scopes, name and template arguments; compilers of directives number kernels by
    the line of the source, and sizes are template arguments; a function may become a template.  Such names are matched where
    that is unambiguous: of overloads, or of instances of one template, there is no telling which became which.

    All rows with one key are one group; with ``in_order``, the n-th row of a key on one side meets the n-th on the other.
    """
    sides, taken = (before, after), (np.full(len(before.names), -1), np.full(len(after.names), -1))
    linked: set[tuple[str, ...]] = set()  # pairs of names that differ in numbers
    how: list[str] = []
    occurrence: list[int] = []
    for word, stem, columns in _PASSES:
        if any((groups >= 0).all() for groups in taken):  # nothing is left to match
            break
        left, right = (_keyed(side, stem, columns, groups < 0, in_order) for side, groups in zip(sides, taken, strict=True))
        for key in filter(right.__contains__, left):
            rows = left[key], right[key]
            if stem is not _whole:  # one name on each side
                pair = tuple(name for side, mine in zip(sides, rows, strict=True) for name in set(side.names[mine]))
                alike = word == TEMPLATE and len({bool(_parsed(name).template) for name in pair}) < 2
                if len(pair) != 2 or alike or (word == NUMBERS and not columns and pair not in linked):
                    continue
                linked |= {pair} if word == NUMBERS else set()
            taken[0][rows[0]] = taken[1][rows[1]] = len(how)
            how.append(word)
            occurrence.append(key[1])
    for side, groups in zip(sides, taken, strict=True):
        alone = _keyed(side, _whole, _EXACTLY, groups < 0, in_order)
        every = _keyed(side, _whole, _EXACTLY, np.ones(len(groups)), in_order=True) if in_order and alone else {}
        places = {rows[0]: place for (_, place), rows in every.items()}
        for mine in alone.values():
            groups[mine] = len(how)
            how.append("")
            occurrence.append(places.get(mine[0], -1))
    return Matching(*taken, how, occurrence)


def _keyed(
    side: Side, stem: Callable[[Side, str], Hashable], columns: Sequence[str], where: Any, in_order: bool
) -> dict[tuple[Hashable, int], list[int]]:
    """Some rows, by key and occurrence (-1 where order does not matter)."""
    rows = np.flatnonzero(where).tolist()
    stems = {name: stem(side, name) for name in set(side.names[rows])}
    seen: Counter[Hashable] = Counter()
    found: dict[tuple[Hashable, int], list[int]] = {}
    for row in rows:
        key = (stems[side.names[row]], *(side.kernels[name][row] for name in columns))
        found.setdefault((key, seen[key] if in_order else -1), []).append(row)
        seen[key] += 1
    return found


class Cell(NamedTuple):
    """Of one precision at one level, by group: FLOP/byte, FLOP/s, its roofs in FLOP/s, and the lower of them."""

    intensity: FloatArray
    performance: FloatArray
    compute_roof: FloatArray
    slope: FloatArray
    attainable: FloatArray


class Binding(NamedTuple):
    """Of one precision by group: performance (FLOP/s), its share of the lowest attainable one, and what binds."""

    performance: FloatArray
    fraction: FloatArray
    binds: TextArray


class Totals:
    """Sums over the rows of each group: ``group[row]`` from 0 to ``count``, -1 for rows of no group.

    A sum of which one row is missing is missing (NaN); roofs are means weighted by time, as in a Roofline by kernel.
    ``weight[row]`` is how often a row counts in the sums; once, if not given.  ``units`` are the launches of each group.
    """

    def __init__(self, side: Side, group: IntArray, count: int, weight: FloatArray | None = None) -> None:
        self.side, self.group, self.count = side, group, count
        self._weight = np.ones(len(side.names)) if weight is None else weight
        self.used = np.flatnonzero(group >= 0)
        self.first = np.full(count, -1)  # row of each group
        self.first[group[self.used[::-1]]] = self.used[::-1]
        self.present = self.first >= 0
        seconds, clock = side.kernels["seconds"] * self._weight, side.kernels["clock_profiled"]
        self.seconds, self.flops = self._total(seconds), self._total(side.kernels["work"] * self._weight)
        self.launches, self.units = self._add(side.kernels["launches"]), self._add(side.units)
        timeless = np.isnan(self.seconds) & self.present
        mean = self._total(clock) / self._add(np.ones(len(clock)))
        self.clock = np.where(timeless, mean, self._total(clock * seconds) / self.seconds)
        self.work = {name: self._total(values * self._weight) for name, values in side.work.items()}
        self.traffic = {name: self._total(values * self._weight) for name, values in side.traffic.items()}

    def _add(self, values: Any) -> FloatArray:
        weights = np.asarray(values, dtype=np.float64)[self.used]
        return np.bincount(self.group[self.used], weights=weights, minlength=self.count).astype(np.float64)

    def _total(self, values: Any) -> FloatArray:
        """Sum over each group; NaN where a row of it lacks the number, and for groups without rows."""
        lacking = self._add(~np.isfinite(values))
        return np.where((lacking > 0) | ~self.present, np.nan, self._add(np.nan_to_num(values)))

    def common(self, name: str) -> TextArray:
        """What all rows of a group have in a column; '' where they differ, and for groups without rows."""
        texts = np.append(self.side.kernels[name], "")
        result: TextArray = texts[self.first]
        group = self.group[self.used]
        result[group[texts[self.used] != result[group]]] = ""
        return result

    def time(self) -> tuple[FloatArray, FloatArray]:
        """Median run time of the launches of a group, and its relative spread: 1.4826 * median absolute deviation / median.

        The median is NaN where a run time is unknown, the spread below two known ones.  A row that is a sum counts with the
        mean of its launches.
        """
        times = self.side.kernels["seconds"] / self.side.units
        middle, known = self._median(times)
        spread = _TO_SIGMA * self._median(np.abs(times - middle[self.group]))[0] / middle
        every = np.bincount(self.group[self.used], minlength=self.count)
        return np.where(known == every, middle, np.nan), np.where((known > 1) & (middle > 0), spread, np.nan)

    def _median(self, values: FloatArray) -> tuple[FloatArray, IntArray]:
        """The median of the finite values of each group, and how many there are."""
        rows = self.used[np.isfinite(values[self.used])]
        ordered = np.append(values[rows][np.lexsort((values[rows], self.group[rows]))], np.nan)
        known = np.bincount(self.group[rows], minlength=self.count)
        start = np.cumsum(known) - known
        low, high = (np.where(known, start + half, -1) for half in ((known - 1) // 2, known // 2))
        return (ordered[low] + ordered[high]) / 2, known

    def verdicts(self) -> tuple[TextArray, TextArray]:
        """What the model says of the launches of each group, that of most of the time, and of these the nearest limit."""
        verdict = self._most("verdict", self.used)
        alike = self.side.kernels["verdict"][self.used] == verdict[self.group[self.used]]
        return verdict, self._most("limit", self.used[alike])

    def _most(self, name: str, rows: IntArray) -> TextArray:
        """The text of most time of each group; of equals that of the first row."""
        result: TextArray = np.full(self.count, "", dtype=object)
        places: dict[str, int] = {}
        codes = np.array([places.setdefault(text, len(places)) for text in self.side.kernels[name][rows]], dtype=np.int64)
        pairs = self.group[rows] * (len(places) + 1) + codes
        both, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
        spent = np.bincount(inverse, weights=np.nan_to_num(self.side.kernels["seconds"][rows]), minlength=len(both))
        owner, code = np.divmod(both, len(places) + 1)
        order = np.lexsort((first, -spent, owner))[::-1]  # of each group the most last, which is kept
        result[owner[order]] = np.array([*places, ""], dtype=object)[code[order]]
        return result

    @cached_property
    def cells(self) -> dict[tuple[str, str], Cell]:
        """By precision and level."""
        points, index = self.side.points, self.side.index
        owner = np.append(self.group, -1)[index]
        # Of files that give rates only, each row counts alike.
        weight = np.where(np.isfinite(points["seconds"]), points["seconds"], 1.0) * np.append(self._weight, 1.0)[index]
        found = {}
        for key in dict.fromkeys(zip(points["precision"], points["level"], strict=True)):
            mine = np.flatnonzero((points["precision"] == key[0]) & (points["level"] == key[1]) & (owner >= 0))
            total = np.bincount(owner[mine], weights=weight[mine], minlength=self.count)
            performance, bandwidth, compute, slope = (
                np.bincount(owner[mine], weights=points[name][mine] * weight[mine], minlength=self.count) / total
                for name in ("performance", "bandwidth", "compute_roof", "bandwidth_roof")
            )
            intensity = performance / bandwidth
            found[key] = Cell(intensity, performance, compute, intensity * slope, np.minimum(compute, intensity * slope))
        return found

    @cached_property
    def bindings(self) -> dict[str, Binding]:
        """By precision: over all levels of the frame, what attains least."""
        points, spec, found = self.side.points, load_spec(), {}
        levels = {level.id for level in spec.levels} | {"", *points["level"]}
        roof_ids = {one.id: one.roof_ids()[0] for one in spec.precisions}
        owner = np.append(self.group, -1)[self.side.index]
        for precision in dict.fromkeys(name for name, _ in self.cells):
            # The compute roof of each group: what its rows name as binding, else the first of this precision.
            roofs: TextArray = np.full(self.count, roof_ids.get(precision, f"{precision}.fma"), dtype=object)
            mine = np.flatnonzero((points["precision"] == precision) & (owner >= 0) & ~np.isin(points["binds"], list(levels)))
            roofs[owner[mine]] = points["binds"][mine]
            lowest, performance = np.full(self.count, np.nan), np.full(self.count, np.nan)
            binds: TextArray = np.full(self.count, "", dtype=object)
            for level, cell in ((level, cell) for (name, level), cell in self.cells.items() if name == precision):
                performance = np.where(np.isnan(performance), cell.performance, performance)
                better = np.isfinite(cell.attainable) & ~(cell.attainable >= lowest)
                binds = np.where(better, np.where(cell.slope < cell.compute_roof, level, roofs), binds)
                lowest = np.where(better, cell.attainable, lowest)
            found[precision] = Binding(performance, performance / lowest, binds)
        return found

    def busiest(self) -> tuple[TextArray, Binding]:
        """The precision that did most of the work of each group (mixed is the sum over pipes), '' without any; what binds it.

        One that is drawn on request stands for groups only that do no other work.
        """
        chosen: TextArray = np.full(self.count, "", dtype=object)
        most = np.full(self.count, -1.0)
        last = load_spec().on_request
        for precision, binding in sorted(self.bindings.items(), key=lambda item: item[0] in last):
            better = np.nan_to_num(binding.performance, nan=-1.0) > most
            if precision in last:
                better &= chosen == ""
            chosen[better] = precision
            most = np.where(better, binding.performance, most)
        numbers = np.full(self.count, np.nan)
        result = Binding(numbers, numbers.copy(), np.full(self.count, "", dtype=object))
        for precision, binding in self.bindings.items():
            for whole, part in zip(result, binding, strict=True):
                whole[chosen == precision] = part[chosen == precision]
        return chosen, result
