"""What is counted on each chip: plain immutable values, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ncu_roofline.chips.fields import Capability, Release
from ncu_roofline.chips.formula import WeightedSum
from ncu_roofline.chips.palette import TENSOR, WALL, Color

ROOF_FACTORS = {"fma": 1.0, "nofma": 0.5}
"""Compute roofs that a precision may have, as a share of its peak: without fused operations a pipe does half."""
ROOF_NAMES = {"fma": "FMA", "nofma": "no FMA"}
"""The same for people."""

TENSOR_SECTION, LIGHT_TENSOR_SECTION = "HierarchicalTensorRooflineChart", "HierarchicalTensorLightRooflineChart"
"""The section of all types of the tensor cores, and that of one type in few passes; precisions of CUDA cores name their own."""
INSTRUCTION_SECTION = "InstructionRooflineChart"
"""The section of the instruction roofline."""
OVERVIEW_SECTION = "RooflineOverview"
PHASES_SECTION = "RooflinePhases"
"""The section with the table of all precisions and levels."""

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
    where there is no roof.  ``writes`` is the part of the traffic that was written, None where this way does not tell it.
    ``includes`` are ids of precisions whose work this count contains although it should not.
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
    writes: WeightedSum | None = None

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

    ``on_request``: it is drawn where it is asked for by name, limits a launch by its verdict, or is all the work of one.
    ``pipes``: (since, until, id) where the pipe is not its own (core) or the tensor pipe.
    ``part_of`` names the precision it is a view of, "" for none; ``disjoint`` says that its work is nevertheless not
    contained in that precision's (sparse beside dense).  ``roofs`` are keys of `ROOF_FACTORS`; a precision without has one
    roof, of its own id.  ``opcodes``: no counter tells its work, only the opcodes executed do; it has no bindings.
    ``section`` is the identifier of its chart in Nsight Compute, "" for none; ``beside`` the precision of the CUDA cores in
    whose chart it is drawn, too; ``replacements`` are tensor types that could take over its matrix products, closest first.
    ``standard``: the tensor type that stands for all where one has to be chosen.  ``color`` is that of a tensor type among
    others.  ``aliases``: what else people call it.
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
    section: str = ""
    beside: str = ""
    replacements: tuple[str, ...] = ()
    standard: bool = False
    color: Color = TENSOR
    aliases: tuple[str, ...] = ()

    @property
    def together(self) -> str:
        """The counter of its adds, multiplies and FMAs together, "" where there is none."""
        names = (name for binding in self.bindings for name in binding.counters.counters())
        return next((name for name in names if name.startswith("smsp__") and "_ops_" in name), "")

    @property
    def packed(self) -> bool:
        """Whether even an add is several operations: two numbers in a register."""
        return bool(self.roofs and self.bindings) and min(weight for _, weight in self.bindings[0].counters.terms) > 1

    def pipe(self, compute_capability: Capability) -> str:
        """The pipe that does it on such a chip: what precisions of one pipe ask of it adds up."""
        named = (name for since, until, name in self.pipes if since <= compute_capability <= until)
        return next(named, self.kind if self.kind == "tensor" else self.id)

    def roof_ids(self) -> tuple[str, ...]:
        """Ids of its roofs, highest first: ``fp64.fma``, ``fp64.nofma``; ``tensor.fp16``."""
        return tuple(f"{self.id}.{roof}" for roof in self.roofs) or (self.id,)

    @property
    def counts_instructions(self) -> bool:
        """Whether an operation is one instruction of a thread, whatever it does, as for integers."""
        return self.kind == "core" and self.unit == "op"

    def roof_label(self, roof: str = "") -> str:
        """What one of its roofs is called, the highest unless named: FP32 FMA, Tensor FP16."""
        name = (roof or self.roof_ids()[0]).rpartition(".")[2]
        return f"{self.label} {ROOF_NAMES.get(name, name)}" if self.roofs else self.label


@dataclass(frozen=True)
class Level:
    """A level of the memory hierarchy; ``order`` counts outwards from 0.

    ``short`` is its label where room is scarce, ``color`` that of its roofs and dots.  ``chain``: each level of the chain gets
    what the one before it could not serve.  ``domain``: the clock it follows, "sm" the cores' own, "l2" one that moves with
    it, "memory" and "link" others that the profiler leaves alone.  ``ceilings`` are ids of measurements of its bandwidth, best
    first, and ``writes`` the share of its bytes that each of some writes, from the lowest on.  ``aliases``: what else people
    call it.  ``on_request``: it is drawn where it is asked for by name, or where its traffic matters.
    """

    id: str
    label: str
    order: int
    bindings: tuple[Binding, ...]
    on_request: bool = False
    short: str = ""
    color: Color = WALL
    chain: bool = False
    domain: str = "sm"
    ceilings: tuple[str, ...] = ()
    writes: tuple[tuple[str, float], ...] = ()
    aliases: tuple[str, ...] = ()

    @property
    def has_own_clock(self) -> bool:
        """Whether its bandwidth does not depend on the SM clock."""
        return self.domain in ("memory", "link")

    @property
    def has_roof(self) -> bool:
        """Whether counters give it a roof; without one only a measurement can."""
        return any(binding.clock for binding in self.bindings)


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
class Gpu:
    """A GPU as its vendor sells it: what turns peaks per SM into TFLOP/s and GB/s.

    ``names``: parts of the name that the driver reports, the first is what board rules see; ``sm_count`` tells apart cards of
    like names.  Clocks in Hz: those behind the vendor's figures for CUDA cores and for tensor cores (H100, H200, B200 and L40S
    use two), and the memory's as the driver reports it; two bits per pin and cycle, so that ``bus_bits`` / 4 bytes move per
    cycle.  ``dram``: bandwidth as the vendor prints it, in B/s.  ``l2_slices``: 0 where unknown.
    """

    id: str
    names: tuple[str, ...]
    compute_capability: Capability
    sm_count: int
    core_clock: float
    tensor_clock: float
    memory_clock: float
    bus_bits: int
    dram: float
    l2_slices: int
    source: str


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
    ``numbers``: (number in sections, first and last release of Nsight Compute that writes it so); empty: none can name it.
    ``left_out``: ids of what our sections don't count here, as it would cost a replay pass of its own.
    ``tensor``: the instruction family of the full tensor rate.  ``targets``: those of nvcc, best first, and ``cuda_until`` the
    last CUDA that has them, 0 for all.  ``rates``: operations per SM and cycle of arithmetic (``bf16``, ``int32.mad``) that no
    counter tells apart, and whether the figure is uncertain: then a measurement above disproves it.
    ``coherent``: parts of names of GPUs whose host link is NVLink-C2C, so that no PCI Express link carries copies.
    ``gpus``: some as they are sold.
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
    numbers: tuple[tuple[int, Release, Release], ...] = ()
    left_out: frozenset[str] = frozenset()
    tensor: str = "mma"
    targets: tuple[str, ...] = ()
    cuda_until: int = 0
    rates: Mapping[str, tuple[float, bool]] = field(default_factory=dict, hash=False)
    coherent: tuple[str, ...] = ()
    gpus: tuple[Gpu, ...] = ()

    def number(self, release: Release) -> int | None:
        """The number that sections of a release of Nsight Compute know it by: 90, None if by none."""
        return next((number for number, since, until in self.numbers if since <= release <= until), None)

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

    @property
    def chain(self) -> tuple[str, ...]:
        """Ids of the levels of which each serves what the one before it could not: L1, L2, DRAM."""
        return tuple(level.id for level in self.levels if level.chain)

    @property
    def memory(self) -> str:
        """Id of the memory behind all caches, where nobody names a level: DRAM."""
        return self.chain[-1]

    @property
    def core(self) -> tuple[str, ...]:
        """Ids of the precisions of the CUDA cores that every report should tell, those with a chart: FP64, FP32, FP16."""
        return tuple(p.id for p in self.precisions if p.section)

    @property
    def plain(self) -> tuple[str, ...]:
        """Ids of those of them with one number in a register: FP64, FP32."""
        return tuple(p.id for p in self.precisions if p.section and not p.packed)

    @property
    def on_request(self) -> frozenset[str]:
        """Ids of precisions that never stand for a kernel that does other work, unless they are asked for."""
        return frozenset(p.id for p in self.precisions if p.on_request)

    @property
    def sections(self) -> Mapping[str, str]:
        """Identifiers of the charts of our sections, by precision id; "tensor" for all types of the tensor cores."""
        return {**{p.id: p.section for p in self.precisions if p.section}, "tensor": TENSOR_SECTION}

    @property
    def standard_tensor(self) -> Precision:
        """The tensor type that stands for all where one has to be chosen."""
        return next(p for p in self.precisions if p.standard)

    @property
    def standard_type(self) -> str:
        """Its source type: "fp16"."""
        return self.standard_tensor.id.partition(".")[2]

    def level_of_ceiling(self, ceiling: str) -> str:
        """The level that a bandwidth ceiling (``smem.read``) is of, "" if it is of none."""
        head = ceiling.partition(".")[0]
        found = (level.id for level in self.levels if any(one.partition(".")[0] == head for one in level.ceilings))
        return next(found, "")

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
