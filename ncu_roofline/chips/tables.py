"""The smaller data files as records: hardware units, instruction roofline, phases, stalls, findings, section sets, bounds.

What the keys of a file mean stands at its beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import translate
from functools import cache, lru_cache
from typing import Annotated, Literal, NamedTuple

from ncu_roofline.base.records import Stated
from ncu_roofline.chips import fields
from ncu_roofline.chips.formulas import ACTIVE, ELAPSED, IN_SM, SHARES, SHARES_ACTIVE
from ncu_roofline.chips.spec import Binding, Spec


class Unit(NamedTuple):
    """A hardware unit: the largest of its ``metrics`` (without suffix), or the sum of ``parts``, says how full it was."""

    id: str
    label: str
    kind: Literal["compute", "memory"]
    metrics: tuple[str, ...]
    level: str = ""
    parts: fields.AllExpanded = ()
    group: bool = False


class Scale(NamedTuple):
    """Metrics (without suffix) of chips on which the unit's percentage, times ``factor``, is the share of what it can do."""

    metrics: tuple[str, ...]
    capabilities: fields.Ranges
    factor: float


class Rate(NamedTuple):
    """Metrics (full names) that give bytes per second as percent of a level's bandwidth roof: their sum, on some chips."""

    metrics: fields.Expanded
    level: str
    capabilities: fields.Ranges = fields.ALL


class Gauge(NamedTuple):
    """A number besides: the first of its ``metrics`` (full names) that is there, times ``scale``; above ``most`` it is none."""

    scale: float
    metrics: tuple[str, ...]
    most: float
    id: str = ""


class TensorActivity(NamedTuple):
    """Metrics (without suffix) of the tensor pipe's activity."""

    whole: fields.AllExpanded
    parts: tuple[str, ...]


class Slices(NamedTuple):
    """Of one of these counters in one of these forms sum over average is the number of L2 slices."""

    counters: tuple[str, ...]
    forms: tuple[str, ...]


class Units(NamedTuple):
    """All of it."""

    units: tuple[Unit, ...]
    rates: tuple[Rate, ...]
    scales: tuple[Scale, ...]
    gauges: tuple[Gauge, ...]
    counts: tuple[Gauge, ...]
    tensor: TensorActivity
    slices: Slices

    def metrics(self) -> Iterator[str]:
        """Full names of all metrics that could tell something."""
        named = [*(unit.metrics for unit in self.units), *(part for unit in self.units for part in unit.parts)]
        for name in (name for names in (*named, *self.tensor.whole, self.tensor.parts) for name in names):
            yield from (name + form for form in SHARES + (SHARES_ACTIVE if name.startswith(IN_SM) else ()))
        yield from (metric for rate in self.rates for metric in rate.metrics)
        yield from (metric for gauge in (*self.gauges, *self.counts) for metric in gauge.metrics)
        yield from (*ELAPSED, *(f"{ACTIVE}.{how}" for how in ("avg", "min", "max")))


load_units = fields.table("units.toml", Units)

EXECUTED = "inst"
"""Id of the kind of instruction that is all executed warp instructions; those of the others begin with it."""


class Kind(NamedTuple):
    """A kind of warp instruction, counted by the first of ``instructions`` that a report has, and its own transactions."""

    id: str
    label: str
    bytes: float
    instructions: tuple[Binding, ...]
    level: str = ""
    transactions: tuple[Binding, ...] = ()


class InstructionWall(NamedTuple):
    """A vertical line at 1 / ``transactions`` warp instructions of a kind per transaction."""

    kind: str
    transactions: float
    label: str
    short: str

    @property
    def id(self) -> str:
        """Roof id."""
        return f"wall.{self.kind.rpartition('.')[2]}.{self.transactions:g}"

    @property
    def intensity(self) -> float:
        """Where it stands, in warp instructions per transaction."""
        return 1 / self.transactions


class InstructionSpec(NamedTuple):
    """The instruction roofline: ``transaction`` in bytes, ``warp`` in threads, the peak of ``issue`` per SM and cycle."""

    transaction: float
    warp: float
    issue: str
    issue_label: str
    issue_counter: str
    issue_per_sm: float
    lanes: str
    lanes_per_instruction: str
    kinds: tuple[Kind, ...]
    walls: tuple[InstructionWall, ...]

    def kind(self, kind_id: str) -> Kind:
        """The kind of an id; KeyError if there is none."""
        return {kind.id: kind for kind in self.kinds}[kind_id]

    def needs(self, spec: Spec, chip: fields.Capability, levels: tuple[str, ...], *, work: bool = True) -> tuple[str, ...]:
        """What has to be counted for the traffic of these levels and, with ``work``, for all instructions."""
        names = [f"{counter}.sum" for counter in self.kind(EXECUTED).instructions[0].counters.counters()] if work else []
        counted = spec.collect(chip, (), levels)
        return (*names, *(name for name in counted if name.endswith(".sum") and not name.startswith("gpu__time")))

    def collect(self, spec: Spec, capability: fields.Capability, levels: tuple[str, ...]) -> tuple[str, ...]:
        """The list for ``ncu --metrics`` that gives a complete instruction roofline with these levels of memory."""
        names = [*spec.collect(capability, (), levels), f"{self.issue_counter}.sum.peak_sustained"]
        names += [f"{self.lanes_per_instruction}.ratio"]
        first = (way for kind in self.kinds for way in (*kind.instructions[:1], *kind.transactions[:1]))
        return tuple(dict.fromkeys([*names, *(f"{counter}.sum" for way in first for counter in way.counters.counters())]))


load_instructions = fields.table("instruction.toml", InstructionSpec)


def counter_of(metric: str) -> str:
    """The name of a sampled metric without the group of counters in front of it; "" for a name of another form."""
    parts = metric.rpartition(":")[2].split(".")  # "pmsampling:sm__x.sum", "SM_A.TriageSCG.sm__x.sum"
    return ".".join(parts[next((place for place, part in enumerate(parts) if "__" in part), len(parts)) :])


class Collected(NamedTuple):
    metric: str
    capabilities: fields.Ranges
    group: str


def _ways(texts: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(way.split(" + ")) for way in texts)


class BandSpec(NamedTuple):
    """A band of utilisation, and the ``metrics`` that are ways to it, the best first, several of a way averaged."""

    id: str
    label: str
    metrics: Annotated[tuple[tuple[str, ...], ...], Stated(tuple[str, ...], _ways)]
    shapes: tuple[str, ...] = ()
    level: str = ""
    moves: bool = False
    collect: tuple[Collected, ...] = ()

    def shaped(self, precision: str) -> bool:
        """Whether the operations of a precision go with its activity."""
        return any(f"{precision}.".startswith(f"{one}.") for one in self.shapes)


class PhaseSpec(NamedTuple):
    """All bands in the order in which they stand, and metrics that count blocks and tell when SMs are active."""

    bands: tuple[BandSpec, ...]
    blocks: tuple[str, ...]
    activity: tuple[str, ...]
    collected_blocks: str

    def drawn(self) -> frozenset[str]:
        """Every name that a band is made of."""
        return frozenset(name for band in self.bands for way in band.metrics for name in way)

    def counters(self) -> frozenset[str]:
        """Every name that something is made of."""
        return frozenset(self.blocks + self.activity) | self.drawn()


load_phases = fields.table("phases.toml", PhaseSpec)


class Sentence(NamedTuple):
    """A text, the words of `findings.circumstances` that must be shown for it, and those that must not be."""

    text: str
    where: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


class Stall(NamedTuple):
    """A reason why warps wait: ``waits`` completes "warps wait here ..."."""

    id: str
    waits: str
    cause: tuple[Sentence, ...]
    advice: tuple[Sentence, ...] = ()
    caches: bool = False
    issue: bool = False
    unit: str = ""
    limits: tuple[str, ...] = ()
    least: float = 0.1
    least_at_place: float = 0.1


@cache
def load_stalls() -> Mapping[str, Stall]:
    """By reason as ncu names it (long_scoreboard), those that come with the package, read once."""
    return {stall.id: stall for stall in fields.read(fields.DATA / "stalls.toml", dict[str, tuple[Stall, ...]])["stalls"]}


class Told(NamedTuple):
    """What is told of a kind of finding."""

    kind: str
    title: str
    of: str
    limits: tuple[str, ...]
    said: str
    column: str = ""
    advice: str = ""
    other: str = ""


class LibraryFunction(NamedTuple):
    """What functions whose names this pattern fits do, in a few words as well, and what may be done about it."""

    name: str
    does: str
    cause: str
    advice: str


class Findings(NamedTuple):
    """By kind what is told of it; functions of the compiler's library, the first that fits."""

    kinds: Annotated[Mapping[str, Told], Stated(tuple[Told, ...], lambda rows: {one.kind: one for one in rows})]
    library: tuple[LibraryFunction, ...]


load_findings = fields.table("findings.toml", Findings)


class SectionSet(NamedTuple):
    """A stock set of sections in some ``releases``, first and last."""

    name: str
    releases: fields.Releases
    sections: frozenset[str]
    gives: str
    only: frozenset[str] = frozenset()
    work: tuple[str, ...] = ()
    traffic: tuple[str, ...] = ()
    opcodes: bool = False


class SectionSets(NamedTuple):
    """All sets, the cheapest first."""

    sets: tuple[SectionSet, ...]

    def of(self, release: fields.Release) -> tuple[SectionSet, ...]:
        """Those of a release (year, number)."""
        return tuple(one for one in self.sets if one.releases[0] <= release <= one.releases[1])

    def made(self, release: fields.Release, sections: Iterable[str]) -> SectionSet | None:
        """The largest set whose sections a report has, None if it is none."""
        present = frozenset(sections)
        found = [one for one in self.of(release) if one.sections <= present and (not one.only or present <= one.only)]
        return found[-1] if found else None


load_sets = fields.table("sets.toml", SectionSets)

MOST_COUNT = 2.0**64
"""What a counter of the hardware can hold."""


class Bound(NamedTuple):
    """What some metrics can be: from 0 to ``most``; ``signed``: a difference of counters, which may be as far below 0."""

    id: str
    most: float
    origin: str
    metrics: tuple[str, ...]
    unit: str = ""
    signed: bool = False
    other_than: tuple[str, ...] = ()

    @property
    def least(self) -> float:
        return -self.most if self.signed else 0.0


class Limits(NamedTuple):
    """All bounds.  ``drawn_most`` (operations or bytes per second, operations per byte, bytes per operation): the most that a
    line or dot of a report's own chart can say, and ``drawn_least`` (per second) the least of a roof. ``imported_seconds`` and
    ``imported_rate`` (operations or bytes per second): the most that a file of another tool can say."""

    units: tuple[str, ...]
    quantity: tuple[Bound, ...]
    drawn_most: float
    drawn_least: float
    imported_seconds: float
    imported_rate: float

    @property
    def slices(self) -> float:
        """Of L2, the most that any GPU can have."""
        return next(one.most for one in self.quantity if one.id == "slices")

    def bound(self, name: str) -> Bound | None:
        """The bound of a metric by its full name, None for one of which nothing is known."""
        return _find(name) if len(name) <= 300 else None  # no metric of ncu has 150 characters


load_limits = fields.table("plausible.toml", Limits)


@cache
def _patterns() -> list[tuple[Bound, re.Pattern[str], re.Pattern[str]]]:
    def pattern(wildcards: tuple[str, ...]) -> re.Pattern[str]:
        return re.compile("|".join(map(translate, wildcards)) or r"(?!)")

    return [(bound, pattern(bound.metrics), pattern(bound.other_than)) for bound in load_limits().quantity]


@lru_cache(maxsize=20_000)  # several times the names of any release
def _find(name: str) -> Bound | None:
    units = (*(f"{unit}__" for unit in load_limits().units), "device__attribute_", "launch__", "sass__")
    if "__" in name and not name.startswith(units):
        return None
    found = (bound for bound, mine, others in _patterns() if mine.fullmatch(name) and not others.fullmatch(name))
    return next(found, None)
