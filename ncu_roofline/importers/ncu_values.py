"""Printed cells to the values of a table: by metric, one per launch, in the units of a report."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ncu_roofline.importers.cells import listed
from ncu_roofline.importers.gpu import MAJOR, MINOR
from ncu_roofline.importers.ncu_numbers import digits, value_of
from ncu_roofline.importers.ncu_units import factor_of
from ncu_roofline.report import Value
from ncu_roofline.spec import Level, Precision, load_spec

_TIMES = tuple(f"gpu__time_duration.{how}" for how in ("sum", "avg", "max")) + tuple(
    f"{unit}__cycles_elapsed.{how}" for unit in ("sm", "gpc") for how in ("max", "avg")
)
# Facts that are known without measuring.
_NOT_MEASURED = ("device__", "launch__", "profiler__")
_ENOUGH_DIGITS = 3
_COUNT_FORMS = ("sum", "sum.per_second", "sum.per_cycle_elapsed", "avg.per_cycle_elapsed")
_CLOCK_FORMS = ("sum", "avg", "max", "avg.per_second", "max.per_second")
_CLOCKS = ("gpu__time_duration", "sm__cycles_elapsed", "smsp__cycles_elapsed", "gpc__cycles_elapsed", "dram__cycles_elapsed")


class Column(NamedTuple):
    """A metric of a wide table: where its cells stand, and where its numbers go."""

    position: int
    name: str
    unit: str
    factor: float
    packed: array[float]


class Values:
    """Values as they arrive, cell by cell; numbers are packed, for a table may have millions of them."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._numbers: dict[str, array[float]] = {}
        self._texts: dict[str, dict[int, str]] = {}
        self._unknown: dict[str, dict[str, None]] = {}
        self._rough: dict[str, None] = {}

    def put(self, launch: int, name: str, unit: str, text: str) -> None:
        """The cell ``text`` of metric ``name`` in row ``launch`` of the result."""
        factor = factor_of(unit)
        value = value_of(text, self._mark)
        if factor is None and not isinstance(value, str):
            self._number(launch, name, math.nan)
            self._unknown.setdefault(unit, {})[name] = None
            return
        if isinstance(value, str):
            self._number(launch, name, math.nan)
            self._texts.setdefault(name, {})[launch] = value
            return
        if value is not None and factor is not None:
            self._number(launch, name, float(value) * factor)
            if _may_be_rough(name, unit) and _is_rough(text, factor):
                self._rough[name] = None
        else:
            self._number(launch, name, math.nan)

    def columns(self, headings: Sequence[tuple[int, str]], units: Sequence[str]) -> tuple[list[Column], list[Column]]:
        """The metrics of a wide table: those that `append` packs, and those whose cells have to go through `put`.

        ``headings`` has position and name of each, ``units`` the cells of the row of units.
        """
        plain: list[Column] = []
        special: list[Column] = []
        for position, name in {name: (position, name) for position, name in headings}.values():
            factor = factor_of(units[position])
            exact = self._mark == "." and factor is not None and not _may_be_rough(name, units[position])
            packed = self._numbers.setdefault(name, array("d"))
            column = Column(position, name, units[position], factor if factor is not None else math.nan, packed)
            (plain if exact else special).append(column)
        return plain, special

    def append(self, launch: int, row: Sequence[str], plain: Sequence[Column]) -> None:
        """The cells of a row: the same as `put` for each, at a fifth of the time."""
        for position, name, unit, factor, packed in plain:
            try:
                packed.append(float(row[position]) * factor)
            except ValueError:  # noqa: PERF203 - the fast way for nearly all cells of a table
                self.put(launch, name, unit, row[position])

    def put_capability(self, launch: int, capability: tuple[int, int]) -> None:
        """The column CC; the GPU's attributes, where they are printed, say the same and are put as any metric."""
        for name, number in zip((MAJOR, MINOR), capability, strict=True):
            self._number(launch, name, float(number))

    def _number(self, launch: int, name: str, value: float) -> None:
        column = self._numbers.get(name)
        if column is None:
            column = self._numbers[name] = array("d")
        if launch < len(column):
            column[launch] = value
            return
        if launch > len(column):
            column.extend([math.nan] * (launch - len(column)))
        column.append(value)

    def finished(self, count: int) -> dict[str, Sequence[Value | None]]:
        """For each metric one value per launch; numbers that are missing are NaN, texts None."""
        for column in self._numbers.values():
            column.extend([math.nan] * (count - len(column)))
        result: dict[str, Sequence[Value | None]] = dict(self._numbers)
        for name, texts in self._texts.items():
            numbers = self._numbers.get(name)
            filled: list[Value | None] = [None] * count if numbers is None else [None if n != n else n for n in numbers]
            for launch, text in texts.items():
                filled[launch] = text
            result[name] = filled
        return result

    def drop_unmeasured(self) -> list[int]:
        """Launches that took no time: they failed, and ncu prints the NaN of all their counters as 0.  These become NaN.

        One time of several that is 0 is only printed in too large a unit.
        """
        times = [self._numbers[name] for name in _TIMES if name in self._numbers]
        known: dict[int, list[float]] = {}
        for column in times:
            for launch, time in enumerate(column):
                if time == time:
                    known.setdefault(launch, []).append(time)
        failed = sorted(launch for launch, found in known.items() if not any(found))
        for name, column in self._numbers.items():
            if not name.startswith(_NOT_MEASURED) and not name.endswith(".peak_sustained"):
                for launch in failed:
                    if launch < len(column):
                        column[launch] = math.nan
        return failed

    def warnings(self, path: str) -> list[str]:
        """Sentences on metrics that were left out, or have few digits."""
        found = [
            f"Metrics of {path} in a unit that is not known, {unit!r}, were left out: {listed(names, 3)}."
            for unit, names in self._unknown.items()
        ]
        if self._rough:
            found.append(
                f"{path} prints fewer than {_ENOUGH_DIGITS} digits of some values of {listed(self._rough, 3)}: what is "
                "computed from them is as rough; the report (.ncu-rep) itself has all digits."
            )
        return found


@lru_cache(maxsize=1)
def _counters() -> frozenset[str]:
    spec = load_spec()
    owners: list[Precision | Level] = [*spec.precisions, *spec.levels]
    bindings = (binding for owner in owners for binding in owner.bindings)
    return frozenset(counter for binding in bindings for counter in binding.counters.counters())


@lru_cache(maxsize=4096)
def _may_be_rough(name: str, unit: str) -> bool:
    """Whether a roofline reads this metric, and its unit is one in which small numbers lose their digits."""
    counter, _, suffix = name.partition(".")
    read = suffix in _CLOCK_FORMS if counter in _CLOCKS else suffix in _COUNT_FORMS and counter in _counters()
    return read and (factor_of(unit) not in (1.0, None) or unit.endswith("/cycle"))


def _is_rough(text: str, factor: float) -> bool:
    """Whether a number was cut to few digits; of a small unit that nothing is left of, 0.00 may as well be exact."""
    found = digits(text)
    return found is not None and found < _ENOUGH_DIGITS and (found > 0 or factor > 1)
