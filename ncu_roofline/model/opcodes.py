"""Work from executed opcodes: what instruction patching counted, opcode by opcode, weighed by the table of opcodes.

The counts are instances of two metrics that every report with source counters has: threads with a true predicate per opcode
(CUDA cores), and warp instructions per opcode (tensor cores).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ncu_roofline.chips import Binding, OpcodeTable, OpcodeWork, Precision, Spec, load_spec
from ncu_roofline.chips.formula import WeightedSum
from ncu_roofline.chips.source_counters import OPCODE_THREADS, OPCODE_WARPS
from ncu_roofline.model.halves import HALF, HALVES, NOTHING_KNOWN, ConstantLoads, Mask
from ncu_roofline.model.measurements import FloatArray, Origin, Quantity

THREADS, WARPS = OPCODE_THREADS, OPCODE_WARPS
OPCODES = "opcodes"
TOLD = "by opcodes"
COUNTED = Binding(WeightedSum.of({WARPS: 1.0}), source=OPCODES)
"""Stands for the opcodes where bindings are listed."""

Instances = Sequence[tuple[object, object]]
_UNPROVEN = "wgmma as a quarter of the warpgroup's operations per warp: unproven on hardware"
_DOUBT = "compilers also load constants by HFMA2, which its name does not tell"
# Asynchronous copies from global to shared memory: bytes per thread by modifier, 4 without one.
_COPY, _COPIED, _COPIED_LEAST = "LDGSTS", {"128": 16, "64": 8}, 4
_LOADS_CONSTANTS = "HFMA2.MMA"
_HALF = ("HADD2", "HMUL2", "HFMA2", "HADD2_32I", "HMUL2_32I", "HFMA2_32I", "HMNMX2", "HSETP2", "HSET2")
_SHARED = ("LDS", "STS", "ATOMS", "LDSM")
_ACCUMULATORS = {"acc16": "fp16", "acc32": "fp32"}


@dataclass(frozen=True)
class Executed:
    """What the opcodes of some launches of one chip did; NaN for launches whose opcodes nobody counted.

    ``work`` and ``fused`` by precision id: operations, and those by multiply-adds; ``conversions``: instructions that the
    counters of FP16 take for additions; ``copied``: bytes of asynchronous copies into shared memory; ``shared``: instructions
    that access shared memory; ``gaps``: tensor instructions whose operations no opcode tells; ``constants``: launches whose
    only half-precision arithmetic is HFMA2.MMA beside that of other precisions: so compilers load constants.  ``loads``: what
    the code tells of such loads, which `without` has taken out of ``work`` and ``fused``.
    """

    work: Mapping[str, Quantity]
    fused: Mapping[str, FloatArray]
    conversions: FloatArray
    copied: FloatArray
    shared: FloatArray
    gaps: Mask
    constants: Mask
    loads: ConstantLoads = NOTHING_KNOWN

    @classmethod
    def nothing(cls, count: int) -> Executed:
        """No opcodes were counted."""
        missing = np.full(count, np.nan)
        return cls({}, {}, missing, missing, missing, np.zeros(count, dtype=bool), np.zeros(count, dtype=bool))

    @property
    def halves(self) -> Mask:
        """Launches that executed what looks like half-precision arithmetic."""
        found: Mask = np.zeros(len(self.gaps), dtype=bool)
        for one in HALVES:
            found |= self.work[one].values > 0 if one in self.work else False
        return found

    def without(self, loads: ConstantLoads) -> Executed:
        """The same with loads of constants told from arithmetic where that is known, and notes on what is known."""
        work, fused, constants = dict(self.work), dict(self.fused), self.constants
        for one in HALVES:
            if one in work:
                left, taken = loads.without(work[one], (one,))
                fused[one] = np.maximum(fused[one] - np.nan_to_num(taken), 0)
                work[one] = left.with_note(np.isnan(taken), _DOUBT) if one == HALF else left
                constants = constants & np.isnan(taken) if one == HALF else constants
        return replace(self, work=work, fused=fused, constants=constants, loads=loads)


def executed(
    threads: Sequence[Instances], warps: Sequence[Instances], spec: Spec, table: OpcodeTable, capability: tuple[int, int]
) -> Executed:
    """From the instances of both metrics, launch by launch."""
    count = len(threads)
    if not any(threads) and not any(warps):
        return Executed.nothing(count)
    tallies = [_tally(_counts(a), _counts(b), table, capability) for a, b in zip(threads, warps, strict=True)]
    work, fused = {}, {}
    for precision in spec.precisions:
        if precision.bindings and not spec.bindings(precision, capability):
            continue
        found = [tally.of(precision) for tally in tallies]
        values = np.array([value for value, _ in found])
        if np.isnan(values).all():
            continue
        metric = WARPS if precision.kind == "tensor" else THREADS
        choice = np.array([-1 if math.isnan(value) else int(unproven) for value, unproven in found], dtype=np.int64)
        work[precision.id] = Quantity(values, choice, tuple(Origin(OPCODES, metric, note) for note in ("", _UNPROVEN)))
        if precision.kind == "core":
            fused[precision.id] = np.array([tally.fused(precision) for tally in tallies])
    return Executed(
        work,
        fused,
        np.array([tally.conversions for tally in tallies]),
        np.array([tally.copied for tally in tallies]),
        np.array([tally.shared for tally in tallies]),
        np.array([tally.tensor_gap for tally in tallies], dtype=bool),
        np.array([tally.only_constants for tally in tallies], dtype=bool),
    )


def _counts(instances: Instances) -> dict[str, float] | None:
    """Opcode -> count; None where there are none, or something that is no count."""
    counts: dict[str, float] = {}
    for opcode, value in instances:
        if not isinstance(opcode, str) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
            return None
        counts[opcode] = counts.get(opcode, 0.0) + float(value)
    return counts or None


@dataclass(frozen=True)
class _Tally:
    """One launch: (what one execution does, executions), None where not counted."""

    core: tuple[tuple[OpcodeWork, float], ...] | None
    tensor: tuple[tuple[OpcodeWork, float], ...] | None
    copied: float
    shared: float
    tensor_gap: bool
    only_constants: bool

    @property
    def conversions(self) -> float:
        """Thread instructions that counters take for arithmetic."""
        return math.nan if self.core is None else sum(number for work, number in self.core if work.conversion)

    def of(self, precision: Precision) -> tuple[float, bool]:
        """Operations (NaN where unknown), and whether an unproven weight is in them."""
        pairs = self.tensor if precision.kind == "tensor" else self.core
        if pairs is None:
            return math.nan, False
        mine = [(work, number) for work, number in pairs if _is(precision.id, work)]
        return sum(work.weight * number for work, number in mine), not all(work.proven for work, number in mine if number)

    def fused(self, precision: Precision) -> float:
        """Operations by multiply-adds."""
        if self.core is None:
            return math.nan
        return sum(work.weight * number for work, number in self.core if work.fused and work.precision == precision.id)


def _tally(
    threads: dict[str, float] | None, warps: dict[str, float] | None, table: OpcodeTable, capability: tuple[int, int]
) -> _Tally:
    gaps = [one for one, number in (threads or warps or {}).items() if number and table.unknown(one, capability)]
    tensor_gap = any("MMA" in gap for gap in gaps)
    core = (
        None
        if threads is None or any("MMA" not in gap for gap in gaps)
        else tuple(_weigh(threads, "thread", table, capability))
    )
    tensor = None if warps is None or tensor_gap else tuple(_weigh(warps, "warp", table, capability))
    return _Tally(
        core=core,
        tensor=tensor,
        copied=math.nan if threads is None else sum(_copied(one) * number for one, number in threads.items()),
        shared=math.nan if threads is None else sum(number for one, number in threads.items() if _name(one) in _SHARED),
        tensor_gap=tensor_gap,
        only_constants=_only_constants(threads or {}, core or ()),
    )


def _only_constants(threads: Mapping[str, float], core: Sequence[tuple[OpcodeWork, float]]) -> bool:
    """Whether half precision is but HFMA2.MMA in a kernel that works in FP64 or FP32.

    A recorded kernel in double precision executes exactly two of them for each division of integers.
    """
    halves = [one for one, number in threads.items() if number and _name(one) in _HALF]
    others = any(number for work, number in core if work.precision in load_spec().plain)
    return bool(halves) and others and all(halve.startswith(_LOADS_CONSTANTS) for halve in halves)


def _weigh(
    counts: Mapping[str, float], per: str, table: OpcodeTable, capability: tuple[int, int]
) -> Iterator[tuple[OpcodeWork, float]]:
    for opcode, number in counts.items():
        work = table.work(opcode, capability)
        if work is not None and work.per == per:
            yield work, number


def _name(opcode: str) -> str:
    return opcode.partition(".")[0]


def _copied(opcode: str) -> int:
    """Bytes that one thread copies into shared memory by this instruction."""
    name, *modifiers = opcode.split(".")
    return next((_COPIED[modifier] for modifier in modifiers if modifier in _COPIED), _COPIED_LEAST) if name == _COPY else 0


def _is(precision: str, work: OpcodeWork) -> bool:
    """Whether work belongs to a precision id: tensor.fp16, tensor.fp16.mma.sparse, tensor.fp16.acc16, fp64."""
    if work.per == "thread":
        return work.precision == precision
    kind, type_, *rest = precision.split(".")
    families = [one for one in rest if one != "sparse" and one not in _ACCUMULATORS]
    accumulators = [_ACCUMULATORS[one] for one in rest if one in _ACCUMULATORS]
    return (
        work.precision == f"{kind}.{type_}"
        and work.sparse == ("sparse" in rest)
        and work.family in (families or [work.family])
        and work.accumulator in (accumulators or [work.accumulator])
    )


def told_apart(counted: Quantity, other: Quantity, label: str, tolerance: float = 0.01) -> Quantity:
    """``counted``, the work of the precision ``label``, with a note where opcode counts give another number, and which."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = other.values / counted.values
        differs = np.abs(ratio - 1) > tolerance
    differs &= np.isfinite(counted.values) & (counted.choice >= 0)
    choice = counted.choice.copy()
    origins, place = list(counted.origins), dict[Origin, int]()
    for row in np.flatnonzero(differs):
        origin = counted.origins[counted.choice[row]]
        told = f"{ratio[row]:.2g} of what" if math.isfinite(ratio[row]) else "work where"
        gives = "the counters give" if math.isfinite(ratio[row]) else "the counters give 0"
        note = "; ".join(filter(None, (origin.note, f"{TOLD} {label} is {told} {gives}")))
        noted = Origin(origin.source, origin.metrics, note)
        if noted not in place:
            place[noted] = len(origins)
            origins.append(noted)
        choice[row] = place[noted]
    return Quantity(counted.values, choice, tuple(origins))


def metrics_of(names: Iterable[str]) -> tuple[str, ...]:
    """Which of the two metrics are among ``names``."""
    known = set(names)
    return tuple(one for one in (THREADS, WARPS) if one in known)
