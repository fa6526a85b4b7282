"""What is counted on each chip: plain immutable values, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ncu_roofline.facts.fields import Capability
from ncu_roofline.facts.formula import WeightedSum

ROOF_FACTORS = {"fma": 1.0, "nofma": 0.5}
"""Compute roofs that a precision may have, as a share of its peak: without fused operations a pipe does half."""

_UNKNOWN = "compute capability {}.{} is not known to this version and was read with the counters of {}.{}: unproven"

UNITS_PER = {
    "sm": ("device__attribute_multiprocessor_count",),
    "slice": ("device__attribute_fbp_count", "device__attribute_num_l2s_per_fbp"),
    "bus": ("device__attribute_global_memory_bus_width",),
}
"""Device attributes whose product is the number of units that a bandwidth of an architecture is stated for."""


@dataclass(frozen=True)
class Binding:
    """One way to count the work of a precision or the traffic of a level, for a range of compute capabilities.

    ``counters`` is the work in operations or the traffic in bytes (of ``.sum``); ``peak`` the counters whose
    ``.sum.peak_sustained`` give operations or bytes per cycle of the whole GPU, None where none can be trusted (then the
    architecture's own figure stands); ``clock`` the unit at whose ``<clock>__cycles_elapsed.avg.per_second`` it runs, ""
    where there is no roof.  ``includes`` are ids of precisions whose work this count contains although it should not.
    """

    since: Capability
    until: Capability
    counters: WeightedSum
    peak: WeightedSum | None = None
    clock: str = "sm"
    source: str = "binding"
    note: str = ""
    lower_bound: bool = False
    includes: tuple[str, ...] = ()
    collect: bool = False

    @property
    def fused(self) -> WeightedSum | None:
        """The part of ``counters`` that fused multiply-adds do, None where they are not counted apart.

        Counters of adds, multiplies and FMAs together (``_ops_``) hold each FMA as one operation; its own counter, the other.
        """
        together = any("_ops_" in name for name in self.counters.counters())
        terms = [(n, w * 2 if together else w) for n, w in self.counters.terms if "fma" in n and "_ops_" not in n]
        return WeightedSum(tuple(terms)) if terms else None

    def applies(self, compute_capability: Capability) -> bool:
        """Whether the binding is for chips of this compute capability."""
        return self.since <= compute_capability <= self.until


@dataclass(frozen=True)
class Precision:
    """A kind of arithmetic.

    ``on_request``: it is drawn where it is asked for by name, or where a launch has no other work.
    ``pipes``: (since, until, id) where the pipe is not its own (core) or the tensor pipe.
    ``part_of`` names the precision it is a view of, "" for none; ``disjoint`` says that its work is nevertheless not
    contained in that precision's (sparse beside dense).  ``roofs`` are keys of `ROOF_FACTORS`; a precision without has one
    roof, of its own id.  ``opcodes``: no counter tells its work, only the opcodes executed do; it has no bindings.
    """

    id: str
    label: str
    kind: str
    unit: str
    order: int
    bindings: tuple[Binding, ...]
    roofs: tuple[str, ...] = ()
    part_of: str = ""
    disjoint: bool = False
    pipes: tuple[tuple[Capability, Capability, str], ...] = ()
    on_request: bool = False
    opcodes: bool = False

    def pipe(self, compute_capability: Capability) -> str:
        """The pipe that does it on such a chip: what precisions of one pipe ask of it adds up."""
        named = (name for since, until, name in self.pipes if since <= compute_capability <= until)
        return next(named, self.kind if self.kind == "tensor" else self.id)

    def roof_ids(self) -> tuple[str, ...]:
        """Ids of its roofs, highest first: ``fp64.fma``, ``fp64.nofma``; ``tensor.fp16``."""
        return tuple(f"{self.id}.{roof}" for roof in self.roofs) or (self.id,)


@dataclass(frozen=True)
class Level:
    """A level of the memory hierarchy; ``order`` counts outwards from 0.

    ``on_request``: it is drawn where it is asked for by name, or where its traffic matters.
    """

    id: str
    label: str
    order: int
    bindings: tuple[Binding, ...]
    on_request: bool = False


Item = TypeVar("Item", Precision, Level)


@dataclass(frozen=True)
class BoardRule:
    """Where boards of one chip differ: applies to devices whose name contains one of ``names``."""

    names: tuple[str, ...]
    peaks: Mapping[str, float] = field(hash=False)
    absent: tuple[str, ...] = ()
    note: str = ""

    def applies(self, device: str) -> bool:
        """Whether the rule is for a device of this name."""
        return any(name in device for name in self.names)


@dataclass(frozen=True)
class Architecture:
    """A compute capability: identity, what its chips lack, and vendor peaks.

    ``peaks``: roof id -> operations per SM and cycle, dense, an FMA counted as two; unknown ones are absent.
    ``bandwidth``: level id -> (bytes per cycle, per what): "sm", L2 "slice", or bit of the memory "bus" and DRAM cycle.
    ``slices``: L2 slices by name of the GPU (without maker), where attributes of the device tell too many.
    ``launching``: seconds that a launch costs, by a part of the name of the GPUs that it was measured on and published for.
    ``lacks``: level ids without counters of their own.  ``costly``: clocks that cost a replay pass of their own.
    ``caveat``: a clause that goes with every number of such a chip, "" where recorded reports have proven its counters.
    ``tensor_passes``: replay passes that the operations of every tensor type add to those of all else, 0 where not stated.
    """

    compute_capability: Capability
    name: str
    chips: tuple[str, ...]
    products: tuple[str, ...]
    lacks: frozenset[str]
    costly: frozenset[str]
    peaks: Mapping[str, float] = field(hash=False)
    bandwidth: Mapping[str, tuple[float, str]] = field(hash=False)
    boards: tuple[BoardRule, ...] = ()
    notes: tuple[str, ...] = ()
    slices: Mapping[str, int] = field(default_factory=dict, hash=False)
    launching: Mapping[str, float] = field(default_factory=dict, hash=False)
    caveat: str = ""
    tensor_passes: int = 0

    def board_rule(self, roof: str, device: str) -> BoardRule | None:
        """The rule that changes this roof on a device of this name, if any."""
        rules = (rule for rule in self.boards if rule.applies(device))
        return next((rule for rule in rules if roof in rule.peaks or roof in rule.absent), None)

    def peak(self, roof: str, device: str = "") -> float | None:
        """Operations per SM and cycle of a roof on a device of this name; None where unknown or not there."""
        rule = self.board_rule(roof, device)
        return rule.peaks.get(roof) if rule else self.peaks.get(roof)

    def bytes_per_cycle(self, level: str, attributes: Mapping[str, object]) -> float | None:
        """Bytes per cycle of the whole GPU from the report's device attributes (full metric names); None where unknown."""
        if level not in self.bandwidth:
            return None
        product, per = self.bandwidth[level]
        for name in UNITS_PER[per]:
            count = attributes.get(name)
            if not isinstance(count, (int, float)) or not count > 0:
                return None
            product *= count
        return product


@dataclass(frozen=True)
class Spec:
    """Everything known: architectures by capability, precisions and levels in display order."""

    architectures: tuple[Architecture, ...]
    precisions: tuple[Precision, ...]
    levels: tuple[Level, ...]

    def architecture(self, compute_capability: Capability) -> Architecture | None:
        """The architecture of a compute capability, None if unknown."""
        found = (a for a in self.architectures if a.compute_capability == compute_capability)
        return next(found, None)

    def stand_in(self, compute_capability: Capability) -> Architecture | None:
        """What a chip is read as that nobody knows yet: the nearest older one with all counters, None if none is older.

        It has the counters of that chip and none of its peaks: a roof then is one that the report's own counters state.
        Systems on a chip stand for no other, as they lack counters that their neighbours have.
        """
        older = [a for a in self.architectures if a.compute_capability < compute_capability and not a.lacks]
        if not older:
            return None
        nearest = max(older, key=lambda a: a.compute_capability)
        caveat = _UNKNOWN.format(*compute_capability, *nearest.compute_capability)
        return replace(nearest, peaks={}, bandwidth={}, boards=(), notes=(), slices={}, launching={}, caveat=caveat)

    def read_as(self, compute_capability: Capability) -> Architecture | None:
        """The architecture whose bindings read a chip: its own, else that which stands in for it."""
        return self.architecture(compute_capability) or self.stand_in(compute_capability)

    def precision(self, precision_id: str) -> Precision:
        """The precision of an id; KeyError if there is none."""
        return self._find(self.precisions, precision_id)

    def level(self, level_id: str) -> Level:
        """The level of an id; KeyError if there is none."""
        return self._find(self.levels, level_id)

    @staticmethod
    def bindings(item: Precision | Level, compute_capability: Capability) -> tuple[Binding, ...]:
        """The bindings that apply to a compute capability, best first."""
        return tuple(binding for binding in item.bindings if binding.applies(compute_capability))

    def summands(self, used: Mapping[str, Binding]) -> tuple[str, ...]:
        """Of the precisions counted (id -> binding used), those whose work may be added without counting any twice."""
        included = {contained for binding in used.values() for contained in binding.includes}
        free = (p.id for p in self.precisions if not p.part_of or p.disjoint)
        return tuple(name for name in free if name in used and name not in included)

    def collect(
        self, compute_capability: Capability, precisions: Iterable[str], levels: Iterable[str], *, lacking: bool = False
    ) -> tuple[str, ...]:
        """The shortest list for ``ncu --metrics`` that gives complete rooflines of these precisions and levels.

        Unknown ids raise KeyError; what the chip does not have is left out.  With ``lacking`` levels without counters of
        their own are estimated from others, which costs replay passes.
        """
        items: list[Precision | Level] = [*map(self.precision, precisions), *map(self.level, levels)]
        architecture = self.architecture(compute_capability)
        lacks, costly = (architecture.lacks, architecture.costly) if architecture else (frozenset(), frozenset())
        wanted = [item for item in items if lacking or item.id not in lacks]
        chosen = [binding for item in wanted if (binding := self._to_collect(item, compute_capability))]
        clocks = [clock for clock in dict.fromkeys(("sm", *(b.clock for b in chosen))) if clock and clock not in costly]
        names = ["gpu__time_duration.sum", *(f"{clock}__cycles_elapsed.avg.per_second" for clock in clocks)]
        names += [f"{counter}.sum" for b in chosen for counter in b.counters.counters()]
        names += [f"{counter}.sum.peak_sustained" for b in chosen if b.peak for counter in b.peak.counters()]
        return tuple(dict.fromkeys(names))

    def _to_collect(self, item: Precision | Level, compute_capability: Capability) -> Binding | None:
        bindings = self.bindings(item, compute_capability)
        marked = (binding for binding in bindings if binding.collect)
        return next(marked, bindings[0] if bindings else None)

    @staticmethod
    def _find(items: Iterable[Item], wanted: str) -> Item:
        for item in items:
            if item.id == wanted:
                return item
        raise KeyError(wanted)
