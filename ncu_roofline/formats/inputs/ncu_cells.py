"""The cells of a table that Nsight Compute printed, in the units of a report: numbers of any locale, scaled and rounded."""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from ncu_roofline.base.texts import listed
from ncu_roofline.chips import Level, Precision, load_spec
from ncu_roofline.formats.inputs.tables import MAJOR, MINOR
from ncu_roofline.formats.report import Value

# A value may be followed by those of its instances: "12 (4; 8)".
_INSTANCES = re.compile(r"^(\S+) \(.*\)$", re.DOTALL)
_NUMBER = re.compile(r"[+-]?\d[\d.,'\s]*(?:[eE][+-]?\d+)?")  # \s has the narrow and the fixed blank of some locales
# With each decimal mark: groups end with one of three digits ("1,234", "12,34,567" in India), so "1,5" is none of a point.
_GROUPED = {
    mark: re.compile(
        rf"[+-]?(?:\d{{1,3}}(?:[\s'{group}]\d{{2,3}})*[\s'{group}]\d{{3}}|\d+)(?:{re.escape(mark)}\d*)?(?:[eE][+-]?\d+)?"
    )
    for mark, group in ((".", ","), (",", "."))
}
_NOT_A_NUMBER = re.compile(r"[+-]?(?:nan|1\.#(?:ind|qnan|snan))\b.*", re.IGNORECASE)
_INFINITE = re.compile(r"([+-]?)(?:inf(?:inity)?|1\.#inf\d*)", re.IGNORECASE)
_MISSING = ("", "n/a", "no data", "-")
_MARK = "(!)"  # what ncu of 2019 and 2020 put before values that were not measured
_PREFIXES = {"": 1.0, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "m": 1e-3, "u": 1e-6, "n": 1e-9, "p": 1e-12}
# Things that are counted; the report stores their number.
_COUNTED = (
    "%", "#", "bit", "block", "branch", "branches", "byte", "cluster", "clusters", "cycle", "hz", "inst", "instances", "op",
    "page", "pass", "passes", "pixel", "register", "request", "sample", "sector", "sectors", "sm", "thr", "thread", "threads",
    "tpc", "tag", "wavefront", "warp", "warps",
)  # fmt: skip
_TIME_UNITS = ("s", "second")
_WORD = re.compile(rf"([KkMGTPmunp]?)({'|'.join(map(re.escape, (*_COUNTED, *_TIME_UNITS)))})", re.IGNORECASE)
_NANOSECONDS = 1e9  # in a second
_TIMES = tuple(f"gpu__time_duration.{how}" for how in ("sum", "avg", "max")) + tuple(
    f"{unit}__cycles_elapsed.{how}" for unit in ("sm", "gpc") for how in ("max", "avg")
)
# Facts that are known without measuring.
_NOT_MEASURED = ("device__", "launch__", "profiler__")
_ENOUGH_DIGITS = 3
_COUNT_FORMS = ("sum", "sum.per_second", "sum.per_cycle_elapsed", "avg.per_cycle_elapsed")
_CLOCK_FORMS = ("sum", "avg", "max", "avg.per_second", "max.per_second")
_CLOCKS = ("gpu__time_duration", "sm__cycles_elapsed", "smsp__cycles_elapsed", "gpc__cycles_elapsed", "dram__cycles_elapsed")


def decimal_mark(texts: Iterable[str]) -> str:
    """The decimal point or comma that most of the values that leave no doubt show, "" where none does.

    "9,00" and "1.234,5" have a decimal comma, "0.25" and "1,234.5" a decimal point, "1,234" may be either.
    """
    found = Counter(filter(None, map(mark_of, texts)))
    return found.most_common(1)[0][0] if found else ""


def mark_of(text: str) -> str:
    if "." in text or "," in text:
        value = _plain(text)
        marks = re.findall(r"[.,]", value) if _NUMBER.fullmatch(value) else []
        if len(set(marks)) == 2 and marks.count(marks[-1]) == 1:
            return str(marks[-1])
        if len(marks) == 1:
            before, _, after = value.partition(marks[0])
            if not re.fullmatch(r"\d{3}", after) or before.lstrip("+-0") == "" or len(before.lstrip("+-")) > 3:
                return str(marks[0])
    return ""


def value_of(text: str, mark: str) -> Value | None:
    """A printed value with decimal mark ``mark``: a float, the text itself where it is no number, None where there is none."""
    if mark == ".":
        try:
            number = float(text)
            return None if math.isnan(number) else number
        except ValueError:
            pass
    value = _plain(text)
    if value.lower() in _MISSING or value.startswith(_MARK) or _NOT_A_NUMBER.fullmatch(value):
        return None
    if match := _INFINITE.fullmatch(value):
        return float(f"{match.group(1)}inf")
    if not _GROUPED[mark].fullmatch(value):
        return text.strip().rstrip("\0")
    grouping = "," if mark == "." else "."
    return float(re.sub(rf"[\s'{grouping}]", "", value).replace(mark, "."))


def _plain(text: str) -> str:
    value = text.strip()
    found = _INSTANCES.match(value) if value.endswith(")") else None
    return found.group(1) if found else value


def digits(text: str) -> int | None:
    """Significant digits of a number with decimals; None for whole numbers, which are exact."""
    body = re.findall(r"^[+-]?[\d.,]*", _plain(text))[0]
    return len(re.sub(r"\D", "", body).lstrip("0")) if re.search(r"[.,]", body) else None


@lru_cache(maxsize=1024)
def factor_of(unit: str) -> float | None:
    """What a printed number has to be multiplied with, None for a unit that is not known.

    Rates are stored per second, cycle, block, ...; only a time that stands alone is in nanoseconds.
    """
    above, _, below = unit.strip().partition("/")
    factors = []
    for word in (above, below):
        match = _WORD.fullmatch(word)
        if word in ("", "%") or word.lower() in (*_COUNTED, *_TIME_UNITS):  # "pass", "page": the first letter is no prefix
            factors.append(1.0)
        elif match and match.group(1) in _PREFIXES:
            factors.append(_PREFIXES[match.group(1)])
        else:
            return None
    is_time = not below and (match := _WORD.fullmatch(above)) is not None and match.group(2).lower() in _TIME_UNITS
    return factors[0] / factors[1] * (_NANOSECONDS if is_time else 1.0)


class MetricColumn(NamedTuple):
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
        factor, number = factor_of(unit), math.nan
        value = value_of(text, self._mark)
        if isinstance(value, str):
            self._texts.setdefault(name, {})[launch] = value
        elif factor is None:
            self._unknown.setdefault(unit, {})[name] = None
        elif value is not None:
            number = float(value) * factor
            if _may_be_rough(name, unit):
                # Cut to few digits; of a small unit that nothing is left of, 0.00 may as well be exact.
                left = digits(text)
                if left is not None and left < _ENOUGH_DIGITS and (left > 0 or factor > 1):
                    self._rough[name] = None
        self._number(launch, name, number)

    def columns(
        self, headings: Sequence[tuple[int, str]], units: Sequence[str]
    ) -> tuple[list[MetricColumn], list[MetricColumn]]:
        """Metrics of a wide table, (position, name) each: those that `append` packs, and those whose cells need `put`."""
        plain: list[MetricColumn] = []
        special: list[MetricColumn] = []
        for position, name in {name: (position, name) for position, name in headings}.values():
            factor = factor_of(units[position])
            exact = self._mark == "." and factor is not None and not _may_be_rough(name, units[position])
            packed = self._numbers.setdefault(name, array("d"))
            column = MetricColumn(position, name, units[position], factor if factor is not None else math.nan, packed)
            (plain if exact else special).append(column)
        return plain, special

    def append(self, launch: int, row: Sequence[str], plain: Sequence[MetricColumn], special: Sequence[MetricColumn]) -> None:
        """The cells of a row: the same as `put` for each, at a fifth of the time."""
        for position, name, unit, factor, packed in plain:
            try:
                packed.append(float(row[position]) * factor)
            except ValueError:  # noqa: PERF203 - the fast way for nearly all cells of a table
                self.put(launch, name, unit, row[position])
        for one in special:
            self.put(launch, one.name, one.unit, row[one.position])

    def put_capability(self, launch: int, capability: tuple[int, int]) -> None:
        """The column CC; the GPU's attributes, where they are printed, say the same and are put as any metric."""
        for name, number in zip((MAJOR, MINOR), capability, strict=True):
            self._number(launch, name, float(number))

    def _number(self, launch: int, name: str, value: float) -> None:
        column = self._numbers.get(name)
        if column is None:
            column = self._numbers[name] = array("d")
        if launch >= len(column):
            column.extend([math.nan] * (launch + 1 - len(column)))
        column[launch] = value

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
        known: dict[int, list[float]] = {}
        for name in _TIMES:
            for launch, time in enumerate(self._numbers.get(name, ())):
                if not math.isnan(time):
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
    return frozenset(name for owner in owners for binding in owner.bindings for name in binding.counters.counters())


@lru_cache(maxsize=4096)
def _may_be_rough(name: str, unit: str) -> bool:
    """Whether a roofline reads this metric, and its unit is one in which small numbers lose their digits."""
    counter, _, suffix = name.partition(".")
    read = suffix in _CLOCK_FORMS if counter in _CLOCKS else suffix in _COUNT_FORMS and counter in _counters()
    return read and (factor_of(unit) not in (1.0, None) or unit.endswith("/cycle"))
