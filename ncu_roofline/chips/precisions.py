"""Kinds of arithmetic, levels of memory and how each is counted on each chip: ``data/precisions``, ``data/levels``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Literal

from ncu_roofline.base.records import Stated
from ncu_roofline.chips.fields import ALL, Capability, Ranges, Weights, covers
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


Clock = Literal["sm", "l1tex", "lts", "dram", ""]
Source = Annotated[str, Stated(Literal["binding", "derived", "embedded"], str)]


@dataclass(frozen=True)
class Binding:
    """One way to count the work of a precision or the traffic of a level, for ranges of compute capabilities.

    ``counters`` is the work in operations or the traffic in bytes (of ``.sum``); ``peak`` the counters whose
    ``.sum.peak_sustained`` give operations or bytes per cycle of the whole GPU, None where none can be trusted (then the
    architecture's own figure stands); ``clock`` the unit at whose ``<clock>__cycles_elapsed.avg.per_second`` it runs, ""
    where there is no roof.  ``writes`` is the part of the traffic that was written, None where this way does not tell it.
    ``includes`` are ids of precisions whose work this count contains although it should not.  ``collect``: it is what
    ``ncu --metrics`` is asked for.  ``lacking``: it is for those chips that lack counters of the level's own.
    """

    counters: Weights
    capabilities: Ranges = ALL
    peak: Weights | None = None
    clock: Clock = "sm"
    source: Source = "binding"
    note: str = ""
    lower_bound: bool = False
    includes: tuple[str, ...] = ()
    collect: bool = False
    writes: Weights | None = None
    lacking: bool = False

    @property
    def fused(self) -> WeightedSum | None:
        """The part of ``counters`` that fused multiply-adds do, None where they are not counted apart.

        Counters of adds, multiplies and FMAs together (``_ops_``) hold each FMA as one operation; its own counter, the other.
        """
        together = any("_ops_" in name for name in self.counters.counters())
        terms = [(n, w * 2 if together else w) for n, w in self.counters if "fma" in n and "_ops_" not in n]
        return WeightedSum(tuple(terms)) if terms else None

    def applies(self, compute_capability: Capability) -> bool:
        """Whether the binding is for chips of this compute capability."""
        return covers(self.capabilities, compute_capability)


FlopOrOp = Annotated[str, Stated(Literal["flop", "op"], str)]


def _roofs(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in ROOF_FACTORS:
            raise ValueError(f"{name!r} is none of {', '.join(ROOF_FACTORS)}")
    return names


Roofs = Annotated[tuple[str, ...], Stated(tuple[str, ...], _roofs)]


@dataclass(frozen=True)
class Precision:
    """A kind of arithmetic.

    ``on_request``: it is drawn where it is asked for by name, limits a launch by its verdict, or is all the work of one.
    ``pipes``: id -> chips where the pipe is not its own (core) or the tensor pipe.
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
    kind: Literal["core", "tensor"]
    unit: FlopOrOp
    order: int
    bindings: tuple[Binding, ...] = ()
    roofs: Roofs = ()
    part_of: str = ""
    disjoint: bool = False
    pipes: Mapping[str, Ranges] = field(default_factory=dict, hash=False)
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
        return bool(self.roofs and self.bindings) and min(weight for _, weight in self.bindings[0].counters) > 1

    def pipe(self, compute_capability: Capability) -> str:
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
        """What people call that."""
        return self.roof_label()

    @property
    def adds(self) -> bool:
        """Whether it may count towards the total: it is no view of another."""
        return not self.part_of or self.disjoint

    @property
    def counts_instructions(self) -> bool:
        """Whether an operation is one instruction of a thread, whatever it does, as for integers."""
        return self.kind == "core" and self.unit == "op"

    def roof_label(self, roof: str = "") -> str:
        """What one of its roofs is called, the highest unless named: FP32 FMA, Tensor FP16."""
        name = (roof or self.roof_ids()[0]).rpartition(".")[2]
        return f"{self.label} {ROOF_NAMES.get(name, name)}" if self.roofs else self.label


Writes = Annotated[tuple[tuple[str, float], ...], Stated(dict[str, float], lambda table: tuple(table.items()))]


@dataclass(frozen=True)
class Level:
    """A level of the memory hierarchy; ``order`` counts outwards from 0.

    ``short`` is its label where room is scarce, ``color`` that of its roofs and dots.  ``chain``: each level of the chain gets
    what the one before it could not serve.  ``domain``: the clock it follows, "sm" the cores' own, "l2" one that moves with
    it, "memory" and "link" others that the profiler leaves alone.  ``ceilings`` are ids of measurements of its bandwidth, best
    first, and ``writes`` the share of its bytes that each of some writes, from the lowest on.  ``aliases``: what else people
    call it.  ``on_request``: it is drawn where it is asked for by name, or where its traffic matters.  ``clock``: that of its
    bindings, unless they state another.
    """

    id: str
    label: str
    order: int
    bindings: tuple[Binding, ...]
    on_request: bool = False
    short: str = ""
    color: Color = WALL
    chain: bool = False
    domain: Literal["sm", "l2", "memory", "link"] = "sm"
    ceilings: tuple[str, ...] = ()
    writes: Writes = ()
    aliases: tuple[str, ...] = ()
    clock: Clock = ""

    @property
    def has_own_clock(self) -> bool:
        """Whether its bandwidth does not depend on the SM clock."""
        return self.domain in ("memory", "link")

    @property
    def has_roof(self) -> bool:
        """Whether counters give it a roof; without one only a measurement can."""
        return any(binding.clock for binding in self.bindings)
