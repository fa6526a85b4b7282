"""One side of a comparison: the rows of a Roofline, and their sums and medians over the launches that are compared as one."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any

import numpy as np

from ncu_roofline.chips import load_spec
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.model import Roofline
from ncu_roofline.model.measurements import FloatArray, IntArray, TextArray
from ncu_roofline.model.names import CxxName, parse

CONFIGURATION, DEVICE_CHANGED, NAME_ONLY = "configuration", "device", "name"
PARAMETERS, NUMBERS, TEMPLATE = "parameters", "numbers", "template"
_NUMBER = re.compile(r"\d+")
_NAME_READ = 4_096  # characters of a name that are parsed; longer ones exist only in hostile reports

Key = Callable[["Side", int], tuple[Hashable, ...]]
# Of overloads, or of instances of one template, there is no telling which became which: these need one name on each side.
_UNAMBIGUOUS = (PARAMETERS, NUMBERS, TEMPLATE)
# A robust estimate of the standard deviation: the median absolute deviation of normal noise is 0.6745 of it.
MAD_TO_SIGMA = 1.4826
_KEY = ("report", "launch", "kernel", "device")


@dataclass(frozen=True)
class Matching:
    """Groups of rows that are compared: ``before[row]`` and ``after[row]`` are group numbers; ``how[group]``, ``occurrence``.

    ``how`` is configuration, device (the GPU differs), name (the launch configuration differs), parameters (the list of the
    function's parameters differs), numbers (the name differs in whole numbers), template (one has template arguments), or ""
    for a group that only one side has.
    ``occurrence`` counts launches of one kernel from 0 where they are matched in order, else it is -1.
    """

    before: IntArray
    after: IntArray
    how: tuple[str, ...]
    occurrence: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of groups."""
        return len(self.how)


def _configured(side: Side, row: int) -> tuple[Hashable, ...]:
    return side.names[row], side.kernels["grid"][row], side.kernels["block"][row]


def _on_device(side: Side, row: int) -> tuple[Hashable, ...]:
    return (*_configured(side, row), side.kernels["device"][row])


def _named(side: Side, row: int) -> tuple[Hashable, ...]:
    return (side.names[row],)


def _parsed(name: str) -> CxxName:
    return (parse(name) if len(name) <= _NAME_READ else None) or CxxName((), name, (), ())


def _without_parameters(side: Side, row: int) -> tuple[Hashable, ...]:
    parsed = _parsed(side.names[row])
    return parsed.scopes, parsed.base, parsed.template


def _without_numbers(side: Side, row: int) -> tuple[Hashable, ...]:
    return (_NUMBER.sub("*", side.names[row]),)


def _function(side: Side, row: int) -> tuple[Hashable, ...]:
    parsed = _parsed(side.names[row])
    function = parsed.scopes, parsed.base
    return function if side.functions[function] == 1 else (side.names[row],)


def _and_configured(key: Key) -> Key:
    return lambda side, row: (*key(side, row), side.kernels["grid"][row], side.kernels["block"][row])


_PASSES: tuple[tuple[str, Key], ...] = (
    (CONFIGURATION, _on_device),
    (DEVICE_CHANGED, _configured),
    (NAME_ONLY, _named),
    (PARAMETERS, _and_configured(_without_parameters)),
    (PARAMETERS, _without_parameters),
    (NUMBERS, _and_configured(_without_numbers)),
    (NUMBERS, _without_numbers),  # where the pass before has found the pair of names in another configuration
    (TEMPLATE, _and_configured(_function)),
    (TEMPLATE, _function),
)


def match(before: Side, after: Side, in_order: bool = False) -> Matching:
    """Match the rows of two sides, the closest agreement first; what is left over stays alone.

    A kernel whose parameters changed keeps its scopes, name and template arguments; compilers of directives number kernels by
    the line of the source, and sizes are template arguments; a function may become a template.  Such names are matched where
    that is unambiguous.

    All rows with one key are one group; with ``in_order``, the n-th row of a key on one side meets the n-th on the other.
    """
    numbers = np.full(len(before), -1), np.full(len(after), -1)
    linked: set[tuple[str, str]] = set()
    how: list[str] = []
    occurrence: list[int] = []
    for name, key in _PASSES:
        left, right = (_keyed(side, key, one, in_order) for side, one in zip((before, after), numbers, strict=True))
        for one in left:
            if one in right and _plausible(name, key, (before, after), (left[one], right[one]), linked):
                numbers[0][left[one]] = numbers[1][right[one]] = len(how)
                how.append(name)
                occurrence.append(one[1])
    for side, taken in zip((before, after), numbers, strict=True):
        places = {rows[0]: number for (_, number), rows in _keyed(side, _on_device, np.full(len(side), -1), in_order).items()}
        for rows in _keyed(side, _on_device, taken, in_order).values():
            taken[rows] = len(how)
            how.append("")
            occurrence.append(places[rows[0]] if in_order else -1)
    return Matching(numbers[0], numbers[1], tuple(how), tuple(occurrence))


def _plausible(
    how: str, key: Key, sides: tuple[Side, Side], rows: tuple[list[int], list[int]], linked: set[tuple[str, str]]
) -> bool:
    """Whether rows with one key may be matched: ``linked`` are the pairs of names known so far that differ in numbers."""
    if how not in _UNAMBIGUOUS:
        return True
    names = [set(side.names[mine]) for side, mine in zip(sides, rows, strict=True)]
    if len(names[0]) > 1 or len(names[1]) > 1:
        return False
    pair = names[0].pop(), names[1].pop()
    if how == TEMPLATE:
        return bool(_parsed(pair[0]).template) != bool(_parsed(pair[1]).template)
    if key is _without_numbers:
        return pair in linked
    if how == NUMBERS:
        linked.add(pair)
    return True


def _keyed(side: Side, key: Key, numbers: IntArray, in_order: bool) -> dict[tuple[Hashable, int], list[int]]:
    """Rows without a number, by key and occurrence (-1 where order does not matter)."""
    seen: dict[Hashable, int] = {}
    found: dict[tuple[Hashable, int], list[int]] = {}
    for row in np.flatnonzero(numbers < 0).tolist():
        one = key(side, row)
        count = seen[one] = seen.get(one, -1) + 1
        found.setdefault((one, count if in_order else -1), []).append(row)
    return found


@dataclass(frozen=True)
class Side:
    """The kernels of a Roofline as compared: ``index`` of a point is the row of its kernel, -1 where there is none."""

    label: str
    kernels: Mapping[str, Any]
    points: Mapping[str, Any]
    index: IntArray
    names: TextArray
    work: Mapping[str, FloatArray]
    traffic: Mapping[str, FloatArray]
    roofs: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def functions(self) -> Counter[tuple[Hashable, ...]]:
        """How many kernels each function is: overloads and instances of a template are several."""
        return Counter((one.scopes, one.base) for one in map(_parsed, set(self.names)))

    @cached_property
    def units(self) -> FloatArray:
        """How many of what is compared each row stands for: its launches, but an application is one run."""
        return np.where(self.kernels["kind"] == "application", 1.0, self.kernels["launches"])


def side_of(roofline: Roofline, label: str = "") -> Side:
    """The rows of a Roofline; ``label`` is what to call it, if not by its reports."""
    kernels, points = roofline.kernel_columns, roofline.point_columns
    rows = {key: row for row, key in enumerate(zip(*(kernels[name] for name in _KEY), strict=True))}
    index = np.array([rows.get(key, -1) for key in zip(*(points[name] for name in _KEY), strict=True)], dtype=np.int64)
    names = np.empty(len(rows), dtype=object)
    names[:] = [
        "application" if kind == "application" else name or kernel
        for name, kernel, kind in zip(kernels["name"], kernels["kernel"], kernels["kind"], strict=True)
    ]
    reports = list(dict.fromkeys(report for report in kernels["report"] if report))
    return Side(
        label=label or ", ".join(reports),
        kernels=kernels,
        points=points,
        index=index,
        names=names,
        work=roofline.work or _of_points(points, index, len(names), "precision", "work"),
        traffic=roofline.traffic or _of_points(points, index, len(names), "level", "traffic"),
        roofs=roofline.roof_columns,
    )


def _of_points(points: Mapping[str, Any], index: IntArray, count: int, by: str, what: str) -> dict[str, FloatArray]:
    result: dict[str, FloatArray] = {}
    for row, key, value in zip(index, points[by], points[what], strict=True):
        result.setdefault(key, np.full(count, np.nan))[row] = value
    return result


@dataclass(frozen=True)
class Cell:
    """Intensity (FLOP/byte), performance (FLOP/s), roofs and attainable performance of one precision at one level, by group."""

    intensity: FloatArray
    performance: FloatArray
    compute_roof: FloatArray
    bandwidth_roof: FloatArray

    @cached_property
    def slope(self) -> FloatArray:
        """What the level lets through at this intensity, FLOP/s."""
        return self.intensity * self.bandwidth_roof

    @cached_property
    def fraction(self) -> FloatArray:
        """Share of what is attainable at this level."""
        return self.performance / self.attainable

    @cached_property
    def attainable(self) -> FloatArray:
        """The lower of compute roof and slope, FLOP/s."""
        return np.minimum(self.compute_roof, self.slope)


@dataclass(frozen=True)
class BindingRoofs:
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
        self._side, self._group, self.count = side, group, count
        self._weight = np.ones(len(side)) if weight is None else weight
        self._used = np.flatnonzero(group >= 0)
        self.present = self._add(np.ones(len(side))) > 0
        clock = side.kernels["clock_profiled"]
        seconds = side.kernels["seconds"] * self._weight
        self.seconds = self.total(seconds)
        self.launches = self._add(side.kernels["launches"])
        self.units = self._add(side.units)
        self.flops = self.total(side.kernels["work"] * self._weight)
        with np.errstate(all="ignore"):
            self.clock = self.total(clock * seconds) / self.seconds
            rates = np.isnan(self.seconds) & self.present
            self.clock = np.where(rates, self.total(clock) / self._add(np.ones(len(side))), self.clock)
        self.work = {name: self.total(values * self._weight) for name, values in side.work.items()}
        self.traffic = {name: self.total(values * self._weight) for name, values in side.traffic.items()}

    def _add(self, values: Any) -> FloatArray:
        weights = np.asarray(values, dtype=np.float64)[self._used]
        return np.bincount(self._group[self._used], weights=weights, minlength=self.count).astype(np.float64)

    def total(self, values: Any) -> FloatArray:
        """Sum over each group; NaN where a row of it lacks the number, and for groups without rows."""
        lacking = self._add(~np.isfinite(np.asarray(values, dtype=np.float64)))
        return np.where((lacking > 0) | ~self.present, np.nan, self._add(np.nan_to_num(values)))

    def rows(self, number: int) -> IntArray:
        """The rows of a group."""
        return self._members[number]

    @cached_property
    def _members(self) -> list[IntArray]:
        order = self._used[np.argsort(self._group[self._used], kind="stable")]
        return np.split(order, np.cumsum(np.bincount(self._group[self._used], minlength=self.count))[:-1])

    def time(self, number: int) -> tuple[float, float]:
        """Median run time of the launches of a group, and its relative spread: 1.4826 * median absolute deviation / median.

        The median is NaN where a run time is unknown, the spread below two known ones.  A row that is a sum counts with the
        mean of its launches.
        """
        rows = self.rows(number)
        times = (self._side.kernels["seconds"][rows] / self._side.units[rows]).tolist()
        known = [time for time in times if math.isfinite(time)]
        middle = median(known) if known else 0.0
        spread = (
            MAD_TO_SIGMA * median(abs(time - middle) for time in known) / middle if len(known) > 1 and middle > 0 else math.nan
        )
        return middle if known and len(known) == len(times) else math.nan, spread

    def verdict(self, number: int) -> str:
        """What the model says of the launches of a group: what all share, else that of most of the time."""
        return self._most(self.rows(number), "verdict")

    def limit(self, number: int) -> str:
        """Id of the nearest limit of the launches with that verdict; of most of their time where they differ."""
        rows = self.rows(number)
        return self._most(rows[self._side.kernels["verdict"][rows] == self.verdict(number)], "limit")

    def _most(self, rows: IntArray, name: str) -> str:
        seconds: dict[str, float] = {}
        kernels = self._side.kernels
        for text, spent in zip(kernels[name][rows], np.nan_to_num(kernels["seconds"][rows]), strict=True):
            seconds[str(text)] = seconds.get(str(text), 0.0) + float(spent)
        return max(seconds, key=lambda one: seconds[one], default="")

    @cached_property
    def cells(self) -> dict[tuple[str, str], Cell]:
        """By precision and level."""
        points, found = self._side.points, {}
        owner = np.where(self._side.index >= 0, self._group[self._side.index], -1) if len(self._side) else self._side.index
        # Of files that give rates only, each row counts alike.
        weight = np.where(np.isfinite(points["seconds"]), points["seconds"], 1.0)
        weight = weight * self._weight[self._side.index] if len(self._side) else weight
        for key in dict.fromkeys(zip(points["precision"], points["level"], strict=True)):
            mine = np.flatnonzero((points["precision"] == key[0]) & (points["level"] == key[1]) & (owner >= 0))
            found[key] = self._cell(mine, owner[mine], weight[mine])
        return found

    def _cell(self, mine: IntArray, owner: IntArray, weight: FloatArray) -> Cell:
        def mean(name: str) -> FloatArray:
            with np.errstate(all="ignore"):
                total = np.bincount(owner, weights=self._side.points[name][mine] * weight, minlength=self.count)
                return np.asarray(total / np.bincount(owner, weights=weight, minlength=self.count), dtype=np.float64)

        performance, bandwidth = mean("performance"), mean("bandwidth")
        with np.errstate(all="ignore"):
            return Cell(performance / bandwidth, performance, mean("compute_roof"), mean("bandwidth_roof"))

    @cached_property
    def bindings(self) -> dict[str, BindingRoofs]:
        """By precision: over all levels of the frame, what attains least."""
        return {precision: self._binding(precision) for precision in dict.fromkeys(name for name, _ in self.cells)}

    def _binding(self, precision: str) -> BindingRoofs:
        lowest, performance = np.full(self.count, np.nan), np.full(self.count, np.nan)
        binds: TextArray = np.full(self.count, "", dtype=object)
        roofs = self._compute_roof_ids(precision)
        for (name, level), cell in self.cells.items():
            if name != precision:
                continue
            performance = np.where(np.isnan(performance), cell.performance, performance)
            with np.errstate(all="ignore"):
                better = np.isfinite(cell.attainable) & ~(cell.attainable >= lowest)
                binds = np.where(better, np.where(cell.slope < cell.compute_roof, level, roofs), binds)
            lowest = np.where(better, cell.attainable, lowest)
        with np.errstate(all="ignore"):
            return BindingRoofs(performance, performance / lowest, binds)

    def _compute_roof_ids(self, precision: str) -> TextArray:
        """The compute roof of each group: what its rows name as binding, else the first of this precision."""
        points, spec = self._side.points, load_spec()
        levels = {level.id for level in spec.levels} | set(points["level"])
        known = {one.id: one.roof_ids()[0] for one in spec.precisions}
        named = [
            (row, roof)
            for row, name, roof in zip(self._side.index, points["precision"], points["binds"], strict=True)
            if name == precision and roof and roof not in levels
        ]
        result: TextArray = np.full(self.count, known.get(precision, f"{precision}.fma"), dtype=object)
        for row, roof in named:
            if row >= 0 and self._group[row] >= 0:
                result[self._group[row]] = roof
        return result

    @cached_property
    def precision(self) -> TextArray:
        """The precision that did most of the work of each group (mixed is the sum over pipes); '' without any.

        One that is drawn on request stands for groups only that do no other work.
        """
        result: TextArray = np.full(self.count, "", dtype=object)
        most = np.full(self.count, -1.0)
        last = load_spec().on_request
        for precision, binding in sorted(self.bindings.items(), key=lambda item: item[0] in last):
            better = np.nan_to_num(binding.performance, nan=-1.0) > most
            if precision in last:
                better &= result == ""
            result[better] = precision
            most = np.where(better, binding.performance, most)
        return result


def roof_spreads(sides: Iterable[Roofline], ceilings: Sequence[Ceilings]) -> dict[str, float]:
    """Relative spread of the measured roofs by what they can bind as: the largest where several files have one."""
    result: dict[str, float] = {}
    for binds in dict.fromkeys(binds for side in sides for binds in side.point_columns["binds"]):
        found = [one.bandwidth(binds) or one.compute(binds) for one in ceilings]
        spreads = [ceiling.spread for ceiling in found if ceiling and math.isfinite(ceiling.spread)]
        if spreads:
            result[binds] = max(spreads)
    return result
