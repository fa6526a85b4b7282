"""All that is known of chips, kinds of arithmetic and levels of memory, from the folders of ``data/``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from ncu_roofline.base.records import Stated
from ncu_roofline.chips import fields
from ncu_roofline.chips.formulas import board_rule, covers, fused_of

# Colours, each once: those of the memory levels stand in their files.  Okabe and Ito's palette (Color Universal Design, 2008),
# which readers with any colour vision tell apart, darkened until every hue has a contrast of 3 to 1 on white, as graphics need.


class Color(NamedTuple):
    """A hue as ``#RRGGBB`` on light ground, and lightened for dark ground (or for what is measured, beside theory)."""

    light: str
    dark: str


WALL, TENSOR = Color("#8A6D00", "#E6B800"), Color("#9966FF", "#CDB8FF")
PLAIN = Color("#6B6B6B", "#A8A8A8")  # of what has no hue of its own: roofs without FMA, kernels whose roof is unknown
SPARE = (WALL, PLAIN, TENSOR)  # for levels that no file describes, such as another machine's L3
GAIN, LOSS = Color("#3B4CC0", "#A3B4FF"), Color("#B3261E", "#FF8A80")  # what got faster and slower, which words say as well

ROOF_FACTORS = {"fma": 1.0, "nofma": 0.5}
"""Compute roofs that a precision may have, as a share of its peak: without fused operations a pipe does half."""
ROOF_NAMES = {"fma": "FMA", "nofma": "no FMA"}
"""The same for people."""

TENSOR_SECTION, LIGHT_TENSOR_SECTION = "HierarchicalTensorRooflineChart", "HierarchicalTensorLightRooflineChart"
"""The section of all types of the tensor cores, and that of one type in few passes; precisions of CUDA cores name their own."""
OVERVIEW_SECTION, PHASES_SECTION = "RooflineOverview", "RooflinePhases"
"""The sections with the table of all precisions and levels, and of samples over time."""


class BoardRule(NamedTuple):
    """Where boards of one chip differ: applies to devices whose name contains one of ``names``."""

    names: tuple[str, ...]
    note: str
    peaks: Mapping[str, float] = {}
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """A GPU as its vendor sells it: what turns peaks per SM into TFLOP/s and GB/s.  ``names``: parts of the name that the
    driver reports, the first is what board rules see; ``sm_count`` tells apart cards of like names.  Clocks in Hz: those
    behind the vendor's figures for CUDA cores and for tensor cores (H100, H200, B200 and L40S use two), and the memory's as
    the driver reports it: two bits per pin and cycle.  ``fp32_tflops``: as the vendor prints it, nearly SMs x clock.
    ``dram``: bandwidth as the vendor prints it, B/s.  ``l2_slices``: 0 where unknown."""

    id: str
    names: tuple[str, ...]
    compute_capability: fields.StatedCapability = (0, 0)
    sm_count: int
    core_clock: float
    fp32_tflops: float
    tensor_clock: float
    memory_clock: float
    bus_bits: int
    dram: float
    l2_slices: int = 0
    source: str


class Bandwidth(NamedTuple):
    """Bytes per cycle and one SM, L2 slice or bit of the memory bus."""

    bytes: float
    per: Literal["sm", "slice", "bus"]


class OperationRate(NamedTuple):
    """Operations per SM and cycle; where they are ``uncertain``, a measurement above disproves them."""

    per_sm: float
    uncertain: bool = False


@dataclass(frozen=True)
class Architecture:
    """A compute capability: identity, what its chips lack, and vendor peaks.  ``peaks``: roof id -> operations per SM and
    cycle, dense, an FMA counted as two; unknown ones are absent, ``uncertain`` those that no vendor prints; ``rates`` those of
    arithmetic (``bf16``, ``int32.mad``) that no counter tells apart.  ``bandwidth`` by level id.  ``slices``: L2 slices by name
    of the GPU (without maker), where attributes of the device tell too many.  ``launching``: seconds that a launch costs, by a
    part of the GPUs' names.  ``lacks``: level ids without counters of their own.  ``costly``: clocks that cost a replay pass of
    their own, ``left_out`` ids of what our sections don't count as it would, ``tensor_passes`` those that the operations of
    every tensor type add (0: not stated).  ``caveat``: a clause that goes with every number of such a chip, "" where recorded
    reports have proven its counters.  ``releases``: those of Nsight Compute whose sections know it by a number, by the compute
    capability that this is ten times.  ``tensor``: the instruction family of the full tensor rate.  ``targets``: those of nvcc,
    best first, and ``cuda_until`` the last CUDA that has them, 0 for all.  ``coherent``: parts of names of GPUs whose host link
    is NVLink-C2C, so that no PCI Express link carries copies."""

    compute_capability: fields.StatedCapability
    name: str
    chips: tuple[str, ...]
    products: tuple[str, ...]
    lacks: frozenset[str] = frozenset()
    costly: frozenset[str] = frozenset()
    peaks: Mapping[str, float] = field(default_factory=dict, hash=False)
    uncertain: frozenset[str] = frozenset()
    bandwidth: Mapping[str, Bandwidth] = field(default_factory=dict, hash=False)
    boards: tuple[BoardRule, ...] = field(default=(), hash=False)
    notes: tuple[str, ...] = ()
    slices: Mapping[str, int] = field(default_factory=dict, hash=False)
    launching: Mapping[str, float] = field(default_factory=dict, hash=False)
    caveat: str = ""
    tensor_passes: int = 0
    releases: Mapping[fields.StatedCapability, fields.Releases] = field(default_factory=dict, hash=False)
    left_out: frozenset[str] = frozenset()
    tensor: Literal["mma", "wgmma", "tcgen05"] = "mma"
    targets: tuple[str, ...] = ()
    cuda_until: int = 0
    rates: Mapping[str, OperationRate] = field(default_factory=dict, hash=False)
    coherent: tuple[str, ...] = ()
    gpus: tuple[Gpu, ...] = ()

    @property
    def halves(self) -> bool:
        """Whether it issues integer multiply-adds, and all other integer work, at half rate."""
        return "int32.mad" in self.rates

    def number(self, release: fields.Release) -> int | None:
        """The number that sections of a release of Nsight Compute know it by: 90, None if by none."""
        known = (chip for chip, (since, until) in self.releases.items() if since <= release <= until)
        return next((10 * major + minor for major, minor in known), None)

    def peak(self, roof: str, device: str = "") -> float | None:
        """Operations per SM and cycle of a roof on a device of this name; None where unknown or not there."""
        return (board_rule(self.boards, roof, device) or self).peaks.get(roof)


Clock = Literal["sm", "l1tex", "lts", "dram", ""]
Source = Annotated[str, Stated(Literal["binding", "derived", "embedded"], str)]


@dataclass(frozen=True)
class Binding:
    """One way to count the work of a precision or the traffic of a level, for ranges of compute capabilities.  ``counters`` is
    the work in operations or the traffic in bytes (of ``.sum``); ``peak`` the counters whose ``.sum.peak_sustained`` give
    operations or bytes per cycle of the whole GPU, None where none can be trusted (then the architecture's own figure stands);
    ``clock`` the unit at whose ``<clock>__cycles_elapsed.avg.per_second`` it runs, "" where there is no roof.  ``writes`` is
    the part of the traffic that was written, None where this way does not tell it. ``includes`` are ids of precisions whose
    work this count contains although it should not.  ``collect``: it is what ``ncu --metrics`` is asked for.  ``lacking``: it
    is for those chips that lack counters of the level's own."""

    counters: fields.Weights
    capabilities: fields.Ranges = fields.ALL
    peak: fields.Weights | None = None
    clock: Clock = "sm"
    source: Source = "binding"
    note: str = ""
    lower_bound: bool = False
    includes: tuple[str, ...] = ()
    collect: bool = False
    writes: fields.Weights | None = None
    lacking: bool = False

    @property
    def fused(self) -> fields.WeightedSum | None:
        """The part of ``counters`` that fused multiply-adds do, None where they are not counted apart."""
        return fields.WeightedSum(fused_of(self.counters)) or None


@dataclass(frozen=True)
class Precision:
    """A kind of arithmetic.  ``on_request``: it is drawn where it is asked for by name, limits a launch by its verdict, or is
    all the work of one. ``pipes``: id -> chips where the pipe is not its own (core) or the tensor pipe. ``part_of`` names the
    precision it is a view of, "" for none; ``disjoint`` says that its work is nevertheless not contained in that precision's
    (sparse beside dense).  ``roofs`` are keys of `ROOF_FACTORS`; a precision without has one roof, of its own id.
    ``opcodes``: no counter tells its work, only the opcodes executed do; it has no bindings. ``section`` is the identifier of
    its chart in Nsight Compute, "" for none; ``beside`` the precision of the CUDA cores in whose chart it is drawn, too;
    ``replacements`` are tensor types that could take over its matrix products, closest first. ``standard``: the tensor type
    that stands for all where one has to be chosen.  ``color`` is that of a type among others, and ``hue`` what it is called.
    ``aliases``: what else people call it."""

    id: str
    label: str
    kind: Literal["core", "tensor"]
    unit: Annotated[str, Stated(Literal["flop", "op"], str)]
    order: int
    bindings: tuple[Binding, ...] = ()
    roofs: tuple[str, ...] = ()
    part_of: str = ""
    disjoint: bool = False
    pipes: Mapping[str, fields.Ranges] = field(default_factory=dict, hash=False)
    on_request: bool = False
    opcodes: bool = False
    section: str = ""
    beside: str = ""
    replacements: tuple[str, ...] = ()
    standard: bool = False
    color: Color = TENSOR
    hue: str = "violet"
    aliases: tuple[str, ...] = ()

    @property
    def together(self) -> str:
        """The counter of its adds, multiplies and FMAs together, "" where there is none."""
        names = (name for binding in self.bindings for name in binding.counters.counters())
        return next((name for name in names if name.startswith("smsp__") and "_ops_" in name), "")

    @property
    def packed(self) -> bool:
        """Whether even an add is several operations: two numbers in a register."""
        return bool(self.roofs and self.bindings) and min(weight for _, weight in self.bindings[0].counters) > 1

    def pipe(self, compute_capability: fields.Capability) -> str:
        """The pipe that does it on such a chip: what precisions of one pipe ask of it adds up."""
        named = (name for name, ranges in self.pipes.items() if covers(ranges, compute_capability))
        return next(named, self.kind if self.kind == "tensor" else self.id)

    def roof_ids(self) -> tuple[str, ...]:
        """Ids of its roofs, highest first: ``fp64.fma``, ``fp64.nofma``; ``tensor.fp16``."""
        return tuple(f"{self.id}.{roof}" for roof in self.roofs) or (self.id,)

    @cached_property
    def roof(self) -> str:
        """The id of the highest of them."""
        return self.roof_ids()[0]

    @cached_property
    def roof_name(self) -> str:
        return self.roof_label(self.roof)

    @property
    def adds(self) -> bool:
        """Whether it may count towards the total: it is no view of another."""
        return not self.part_of or self.disjoint

    @property
    def counts_instructions(self) -> bool:
        """Whether an operation is one instruction of a thread, whatever it does, as for integers."""
        return self.kind == "core" and self.unit == "op"

    def roof_label(self, roof: str) -> str:
        """What one of its roofs is called: FP32 FMA, Tensor FP16."""
        name = roof.rpartition(".")[2]
        return f"{self.label} {ROOF_NAMES.get(name, name)}" if self.roofs else self.label


@dataclass(frozen=True)
class Level:
    """A level of the memory hierarchy; ``order`` counts outwards from 0.  ``short`` is its label where room is scarce,
    ``color`` that of its roofs and dots, called ``hue``.  ``chain``: each level of the chain gets what the one before it could
    not serve.  ``domain``: the clock it follows, "sm" the cores' own, "l2" one that moves with it, "memory" and "link" others
    that the profiler leaves alone.  ``ceilings`` are ids of measurements of its bandwidth, best first, and ``writes`` the share
    of its bytes that each of some writes, from the lowest on.  ``aliases``: what else people call it.  ``on_request``: it is
    drawn where it is asked for by name, or where its traffic matters.  ``clock``: that of its bindings, unless they state
    another."""

    id: str
    label: str
    order: int
    bindings: tuple[Binding, ...]
    on_request: bool = False
    short: str = ""
    color: Color = WALL
    hue: str = "gold"
    chain: bool = False
    domain: Literal["sm", "l2", "memory", "link"] = "sm"
    ceilings: tuple[str, ...] = ()
    writes: Annotated[tuple[tuple[str, float], ...], Stated(dict[str, float], lambda table: tuple(table.items()))] = ()
    aliases: tuple[str, ...] = ()
    clock: Clock = ""

    @property
    def has_own_clock(self) -> bool:
        """Whether its bandwidth does not depend on the SM clock."""
        return self.domain in ("memory", "link")


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

    @cached_property
    def called(self) -> Mapping[str, str]:
        """Ids of levels and precisions by what else people call them: HBM, double."""
        named: tuple[Level | Precision, ...] = (*self.levels, *self.precisions)
        return {alias: one.id for one in named for alias in one.aliases}

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
        return self.standard_tensor.id.partition(".")[2]

    def level_of_ceiling(self, ceiling: str) -> str:
        """The level that a bandwidth ceiling (``smem.read``) is of, "" if it is of none."""
        head = ceiling.partition(".")[0]
        found = (level.id for level in self.levels if any(one.partition(".")[0] == head for one in level.ceilings))
        return next(found, "")

    def architecture(self, compute_capability: fields.Capability) -> Architecture | None:
        """The architecture of a compute capability, None if unknown."""
        return next((a for a in self.architectures if a.compute_capability == compute_capability), None)

    def read_as(self, compute_capability: fields.Capability) -> Architecture | None:
        """The architecture whose bindings read a chip: its own, else the nearest older one with all counters, None if none is.
        Of that only the counters are taken and no peaks: a roof then is one that the report's own counters state.  Systems on
        a chip stand for no other, as they lack counters that their neighbours have."""
        known = self.architecture(compute_capability)
        older = [a for a in self.architectures if a.compute_capability < compute_capability and not a.lacks]
        if known or not older:
            return known
        near, text = older[-1], "is not known to this version and was read with the counters of"
        caveat = "compute capability {}.{} {} {}.{}: unproven".format(*compute_capability, text, *near.compute_capability)
        return replace(near, peaks={}, bandwidth={}, boards=(), notes=(), slices={}, launching={}, caveat=caveat)

    def precision(self, precision_id: str) -> Precision:
        """The precision of an id; KeyError if there is none."""
        return {one.id: one for one in self.precisions}[precision_id]

    def level(self, level_id: str) -> Level:
        """The level of an id; KeyError if there is none."""
        return {one.id: one for one in self.levels}[level_id]

    def bindings(self, item: Precision | Level, compute_capability: fields.Capability) -> tuple[Binding, ...]:
        """The bindings that apply to a compute capability, best first; an unknown one lacks what the chip before it does."""
        before = [one for one in self.architectures if one.compute_capability <= compute_capability]
        lacking = bool(before) and item.id in before[-1].lacks
        ways = (way for way in item.bindings if way.lacking == lacking)
        return tuple(way for way in ways if covers(way.capabilities, compute_capability))

    def collect(
        self, compute_capability: fields.Capability, precisions: Iterable[str], levels: Iterable[str], *, lacking: bool = False
    ) -> tuple[str, ...]:
        """The shortest list for ``ncu --metrics`` that gives complete rooflines of these items; KeyError for unknown ids.
        What the chip does not have is left out; with ``lacking`` it is estimated from other levels, which costs replay
        passes."""
        items: list[Precision | Level] = [*map(self.precision, precisions), *map(self.level, levels)]
        architecture = self.architecture(compute_capability)
        lacks, costly = (architecture.lacks, architecture.costly) if architecture else (frozenset(), frozenset())
        ways = [self.bindings(item, compute_capability) for item in items if lacking or item.id not in lacks]
        chosen = [next((way for way in several if way.collect), several[0]) for several in ways if several]
        clocks = [clock for clock in dict.fromkeys(("sm", *(way.clock for way in chosen))) if clock and clock not in costly]
        names = ["gpu__time_duration.sum", *(f"{clock}__cycles_elapsed.avg.per_second" for clock in clocks)]
        names += [f"{counter}.sum" for way in chosen for counter in way.counters.counters()]
        names += [f"{counter}.sum.peak_sustained" for way in chosen if way.peak for counter in way.peak.counters()]
        return tuple(dict.fromkeys(names))


@cache
def load_spec() -> Spec:
    return read_spec(fields.DATA)


def read_spec(folder: Path) -> Spec:
    """Read the three folders of data files.  `SpecError` names file and key of the first mistake; whether what they say is true
    and agrees with each other is for the tests."""

    def every(kind: str, form: Any) -> list[Any]:
        return [fields.read(path, form) for path in sorted((folder / kind).glob("*.toml"))]

    chips = sorted(every("architectures", Architecture), key=lambda one: one.compute_capability)
    files = every("precisions", dict[str, tuple[Precision, ...]])
    precisions: list[Precision] = [one for file in files for group in file.values() for one in group]
    levels: list[Level] = []
    for one in every("levels", Level):
        bindings = tuple(replace(way, clock=one.clock) if way.clock == "sm" else way for way in one.bindings)
        shares = dict(one.writes)  # ceilings that are in no table of those that write only read
        writes = sorted(((name, shares.get(name, 0.0)) for name in one.ceilings if shares), key=lambda pair: pair[1])
        levels.append(replace(one, short=one.short or one.label, bindings=bindings, writes=tuple(writes)))
    # A peak stated for a precision with several roofs is that of its first; the others follow by their factors.
    roofs = {p.id: {f"{p.id}.{name}": ROOF_FACTORS[name] for name in p.roofs} for p in precisions if p.roofs}

    def peaks(stated: Mapping[str, float]) -> dict[str, float]:
        every_roof = ((value, roofs.get(name, {name: 1.0})) for name, value in stated.items())
        return {roof: factor * value for value, factors in every_roof for roof, factor in factors.items()}

    architectures = (
        replace(
            one,
            peaks=peaks(one.peaks),
            boards=tuple(board._replace(peaks=peaks(board.peaks)) for board in one.boards),
            targets=one.targets or ("{}{}".format(*one.compute_capability),),
            gpus=tuple(replace(gpu, compute_capability=one.compute_capability) for gpu in one.gpus),
        )
        for one in chips
    )
    precisions.sort(key=lambda one: one.order)
    levels.sort(key=lambda one: one.order)
    return Spec(tuple(architectures), tuple(precisions), tuple(levels))


def gpus() -> tuple[Gpu, ...]:
    return tuple(gpu for architecture in load_spec().architectures for gpu in architecture.gpus)


def named(word: str) -> tuple[Gpu, ...]:
    """GPUs whose id contains ``word``, whatever its case."""
    return tuple(gpu for gpu in gpus() if word.lower() in gpu.id.lower())


def find_gpu(name: str, sm_count: int | None = None) -> Gpu | None:
    """The GPU whose name the driver reports as ``name``; None if it is in no table or has another number of SMs."""
    # Whole words, of which the last may go on behind a hyphen: "V100-PCIE" is in "Tesla V100-PCIE-16GB".
    found = [gpu for gpu in gpus() if any(re.search(rf"(?:^| ){re.escape(part)}(?:[- ]|$)", name) for part in gpu.names)]
    return next((gpu for gpu in found if sm_count is None or gpu.sm_count == sm_count), None)


@cache
def link_rates() -> Mapping[int, float]:
    """Bytes per second and lane of each PCI Express generation, one way."""
    links = fields.read(fields.DATA / "gpus" / "rates.toml", dict[str, tuple[dict[str, float], ...]])["link"]
    return {int(link["generation"]): link["rate"] * link["code"] / 8 for link in links}
