"""One launch as findings look at it: its instructions as arrays, and the places in the source that have most of something."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from ntpath import basename
from typing import Any

import numpy as np

from ncu_roofline.analyses.source.columns import INSTRUCTIONS, WHERE, WITHIN
from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.chips import load_units
from ncu_roofline.chips.circumstances import explained
from ncu_roofline.chips.libraries import of_library
from ncu_roofline.chips.opcodes import load_opcode_units
from ncu_roofline.chips.source_counters import SECTOR
from ncu_roofline.chips.stalls import ALL_HIT, BUSY, COUNTED, HIT_RATES
from ncu_roofline.chips.thresholds import LEFT_OUT
from ncu_roofline.formats.report import Value
from ncu_roofline.formats.sass.instructions import SIZE

Array = np.ndarray[Any, Any]
_CALLS = 3  # places where a line is inlined that are named
OUTSIDE = ""
_MOST = 2.0**80  # of a count: 64 bits, times bytes or operations
_DTYPES = {"str": object, "float": np.float64, "int": np.int64}


@dataclass(frozen=True)
class Site:
    """Lines of one loop (or of a function's code outside of loops) that have an amount, but for those with little of it.

    ``rows``: their instructions with any, that with most first; ``amount``: the sum; ``place``: what a sentence calls it.
    """

    rows: Array
    amount: float
    place: str


@dataclass(frozen=True)
class Finding:
    """What is wrong at a place; the other columns of the frame follow from ``site`` and the launch."""

    finding: str
    site: Site
    share: float
    of: str
    message: str
    advice: str
    cause: str = ""
    """What it is in a few words, where its kind does not say that."""


@dataclass(frozen=True)
class About:
    """What findings ask of the whole launch, as far as it is known.

    Compute capability, hit rates of caches by name, and by the words of `circumstances` run time and how busy things are.
    ``bound``: id of the roof or unit that limits it by its verdict, "" if none does.
    """

    capability: tuple[int, int] = (0, 0)
    hit_rates: Mapping[str, float] = field(default_factory=dict)
    amounts: Mapping[str, float] = field(default_factory=dict)
    bound: str = ""

    @classmethod
    def of(cls, capability: tuple[int, int], metrics: Mapping[str, Value], seconds: float = math.nan, bound: str = "") -> About:
        """What a report says."""
        amounts = {name: rate for name, names in BUSY for one in reversed(names) if (rate := _rate(metrics, one)) is not None}
        for name, metric in COUNTED:
            value = metrics.get(metric)
            if isinstance(value, (int, float)) and 0 < value <= _MOST:
                amounts[name] = float(value)
        hits = {name: rate for name, metric in HIT_RATES if (rate := _rate(metrics, metric)) is not None}
        return cls(capability, hits, amounts | ({"seconds": seconds} if seconds > 0 else {}), bound)


def _rate(metrics: Mapping[str, Value], metric: str) -> float | None:
    """A metric in percent as a share, None for what is none."""
    value = metrics.get(metric)
    return min(value / 100, 1.0) if isinstance(value, (int, float)) and 0 <= value <= ALL_HIT else None


class Examined:
    """The instructions of one launch (columns of `columns.INSTRUCTIONS`), samples by reason (`columns.STALLS`) and loops."""

    def __init__(
        self, instructions: Mapping[str, Any], stalls: Mapping[str, Any], loops: Mapping[str, Any], about: About
    ) -> None:
        self.about = about
        names = ("loop", "file", "first_line", "last_line", "header", "end")
        self._loop_names = {
            number: _loop(number, *where) for number, *where in zip(*(loops[name] for name in names), strict=True)
        }
        self._parents = dict(zip(loops["loop"], loops["parent"], strict=True))
        self._columns: dict[str, Array] = {}
        for one in (one for one in INSTRUCTIONS if one not in WHERE):
            values = np.asarray(instructions[one.name], dtype=_DTYPES[one.dtype])
            if one.dtype == "float":  # counts that can't be are unknown
                values = np.where((values >= 0) & (values <= _MOST), values, np.nan)
            self._columns[one.name] = values
        self._stalls = stalls
        self.size = len(self["offset"])
        self.inside: Array = self["function"] != OUTSIDE
        self.names: Array = np.array([opcode.partition(".")[0] for opcode in self["opcode"].tolist()], dtype=object)

    def __getitem__(self, column: str) -> Array:
        return self._columns[column]

    @cached_property
    def lanes(self) -> Array:
        """Threads that take part: those whose predicate is true, or all active ones where nobody counted these."""
        return self["active"] if np.isnan(self["threads"]).all() else self["threads"]

    @cached_property
    def gaps(self) -> Array:
        """Bytes that accesses of global memory ask for without need, as gaps between inactive lanes can explain it."""
        columns = (self["executed"], self.lanes, self["requested"] / SECTOR, self["ideal"] / SECTOR)
        counts = zip(*(column.tolist() for column in columns), strict=True)
        return SECTOR * np.array([explained(*one) if one[2] > one[3] else 0.0 for one in counts])

    @cached_property
    def wasted(self) -> Array:
        """Bytes that they ask for without need whatever lanes are active: as addresses of lanes lie apart."""
        return np.asarray(self["requested"] - self["ideal"] - self.gaps)

    def total(self, column: str) -> float:
        """The sum over all instructions; NaN where nobody counted."""
        return float(np.sum(self[column])) if self.size else np.nan

    def among(self, *names: str) -> Array:
        """Which instructions have one of these names."""
        return self._is(self.names, names)

    def of_kind(self, *kinds: str) -> Array:
        """Which instructions are of one of these kinds."""
        return self._is(self["kind"], kinds)

    def units(self) -> Array:
        """The label of the hardware unit that each instruction needs, "" where that is not known."""
        units, capability = load_opcode_units(), self.about.capability
        labels = {unit.id: unit.label for unit in load_units().units}
        known = {opcode: labels.get(units.of(opcode, capability), "") for opcode in set(self["opcode"].tolist())}
        return np.array([known[opcode] for opcode in self["opcode"].tolist()], dtype=object)

    def _is(self, values: Array, wanted: tuple[str, ...]) -> Array:
        return np.fromiter((value in wanted for value in values.tolist()), dtype=bool, count=self.size) & self.inside

    @cached_property
    def samples(self) -> Mapping[str, Array]:
        """Samples of each instruction by reason."""
        rows = {key: row for row, key in enumerate(zip(self["function"].tolist(), self["offset"].tolist(), strict=True))}
        found: dict[str, Array] = {}
        columns = (
            np.asarray(self._stalls[name], dtype=object).tolist() for name in ("function", "offset", "reason", "samples")
        )
        for function, offset, reason, samples in zip(*columns, strict=True):
            row = rows.get((function, offset))
            if row is not None and function != OUTSIDE:
                if reason not in found:
                    found[reason] = np.zeros(self.size)
                found[reason][row] += samples
        return found

    @cached_property
    def keys(self) -> list[tuple[Any, ...]]:
        """The line of each instruction, (file, line); of code without line its loop, ("", function, loop)."""
        columns = (self[name].tolist() for name in ("file", "line", "function", "loop"))
        return [(file, line) if line > 0 else ("", function, loop) for file, line, function, loop in zip(*columns, strict=True)]

    def around(self, loop: int) -> frozenset[int]:
        """A loop and those around it; of the code in none, none."""
        found: list[int] = []
        while loop >= 0:
            found.append(loop)
            loop = int(self._parents[loop])
        return frozenset(found)

    def loops(self) -> list[Array]:
        """The instructions of each innermost loop."""
        found: dict[tuple[str, int], list[int]] = {}
        for row, loop in enumerate(zip(self["function"].tolist(), self["loop"].tolist(), strict=True)):
            if loop[1] >= 0:
                found.setdefault(loop, []).append(row)
        return [np.array(rows) for rows in found.values()]

    @cached_property
    def _numbered(self) -> tuple[Array, Array]:
        """For each instruction a number of its line and one of its loop, from 0."""
        inside = list(zip(self["function"].tolist(), self["loop"].tolist(), strict=True))
        lines, loops = ({key: number for number, key in enumerate(dict.fromkeys(keys))} for keys in (self.keys, inside))
        return np.array([lines[key] for key in self.keys]), np.array([loops[key] for key in inside])

    def sites(self, amount: Array, chosen: Array, least: float) -> list[Site]:
        """Where the chosen instructions have at least so much of an amount, most first; the lines of a loop are one place.

        A line belongs to the loop in which it has most.  Code without lines is taken loop by loop.
        """
        rows = np.flatnonzero(chosen & (amount > 0))
        if not len(rows):
            return []
        lines, loops = (numbers[rows] for numbers in self._numbered)
        several = int(loops.max()) + 1
        pairs, place = np.unique(lines * several + loops, return_inverse=True)
        order = np.argsort(np.bincount(place, weights=amount[rows]), kind="stable")
        home = np.zeros(int(lines.max()) + 1, dtype=np.int64)
        home[pairs[order] // several] = pairs[order] % several  # of several loops of a line the last remains: that with most
        mine = home[lines]
        enough = np.flatnonzero(np.bincount(mine, weights=amount[rows]) >= max(least, np.finfo(float).tiny))
        found = [self.site(rows[mine == loop], amount) for loop in enough.tolist()]
        return sorted((site for site in found if site.amount >= least), key=lambda site: -site.amount)

    def site(self, rows: Array, amount: Array) -> Site:
        """These instructions as one place: the line with most of the amount first, and of it the instruction with most."""
        by_line: dict[tuple[Any, ...], float] = {}
        for row in rows.tolist():
            by_line[self.keys[row]] = by_line.get(self.keys[row], 0.0) + float(amount[row])
        kept: list[tuple[Any, ...]] = []
        total = 0.0
        for key in sorted(by_line, key=lambda key: -by_line[key]):
            if kept and total >= (1 - LEFT_OUT) * sum(by_line.values()):
                break
            kept.append(key)
            total += by_line[key]
        chosen = [row for row in rows.tolist() if self.keys[row] in kept]
        ordered = np.array(sorted(chosen, key=lambda row: (self.keys[row] != kept[0], -amount[row])))
        return Site(ordered, total, self._place(ordered, kept))

    def _place(self, rows: Array, lines: Sequence[tuple[Any, ...]]) -> str:
        top, line, more = int(rows[0]), lines[0], len(lines) - 1
        loop = self._loop_names.get(int(self["loop"][top]), "")
        if len(line) == 2:
            others = f" and {more} more line{'s' if more > 1 else ''}" if more else ""
            inside = f" {'of' if more else 'in'} {loop}" if loop else ""
            own = next((one for one in lines if len(one) == 2 and not of_library(one[0])), line)
            place = _called(f"{line[0]}:{line[1]}", self["inlined"][top])
            if own != line and place.startswith(_file(line[0])):  # nobody knows what calls it
                place, others = f"{_file(own[0])}:{own[1]}", f"{others}, most at {place},"
            return f"{place}{others}{inside}"
        function = self["function"][top]
        other = "" if function == self["function"][0] else f" of {shorten(clean(function))}"
        where = f"{self['opcode'][top]} at offset {int(self['offset'][top]):#x}{other}"
        if loop:
            return f"{loop[0].upper()}{loop[1:]}, most at {where}"
        return where if len(rows) == 1 else f"Code in no loop, most at {where}"


def _called(line: str, inlined: str) -> str:
    """A line and where it is inlined, innermost first; of a library's header the line that uses it, and where that is."""
    chain = [line, *(place for place in inlined.split(WITHIN) if place)]
    first = next((number for number, place in enumerate(chain) if not of_library(place.rpartition(":")[0])), 0)
    inside, places = (list(map(_file, part)) for part in (chain[:first], chain[first + 1 :]))
    if len(places) > _CALLS:
        places = [*places[: _CALLS - 1], "...", places[-1]]
    said = ", ".join([f"in {name}" for name in inside[:1]] + [f"inlined at {' < '.join(places)}"] * bool(places))
    return f"{_file(chain[first])} ({said})" if said else _file(chain[first])


def _loop(number: int, file: str, first: int, last: int, header: int, end: int) -> str:
    """A loop by its number in the tables; "" for the code in none."""
    if number < 0:
        return ""
    lines = f"{_file(file)}:{first}{f'-{last}' if last > first else ''}"
    return f"loop {number} ({lines if first > 0 else f'{header:#x}-{end - SIZE:#x}'})"


def _file(path: str) -> str:
    """The name of a file, without folders, as it may stand in a sentence."""
    return shorten(clean(basename(path)))
