"""Work from executed opcodes: what instruction patching counted, opcode by opcode, weighed by the table of opcodes.

The counts are instances of two metrics that every report with source counters has: threads with a true predicate per opcode
(CUDA cores), and warp instructions per opcode (tensor cores).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ncu_roofline.chips import Binding, OpcodeTable, OpcodeWork, Spec, load_spec
from ncu_roofline.chips.fields import WeightedSum
from ncu_roofline.chips.source_counters import OPCODE_THREADS, OPCODE_WARPS
from ncu_roofline.model.halves import HALF, HALVES, NOTHING_KNOWN, ConstantLoads, Mask
from ncu_roofline.model.measurements import FloatArray, Origin, Quantity
from ncu_roofline.model.numbers import Columns

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
        conversions, copied, shared = (np.full(count, np.nan) for _ in range(3))
        return cls({}, {}, conversions, copied, shared, np.zeros(count, dtype=bool), np.zeros(count, dtype=bool))

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
    found = Executed.nothing(count)
    if not any(threads) and not any(warps):
        return found
    precisions = [one for one in spec.precisions if not one.bindings or spec.bindings(one, capability)]
    values, fused = ({one.id: np.full(count, np.nan) for one in precisions} for _ in range(2))
    proven = {one.id: np.ones(count, dtype=bool) for one in precisions}

    def weighed(counts: Mapping[str, float], per: str) -> list[tuple[OpcodeWork, float]]:
        works = ((table.work(opcode, capability), number) for opcode, number in counts.items())
        return [(work, number) for work, number in works if work is not None and work.per == per]

    for row, (by_thread, by_warp) in enumerate(zip(map(_counts, threads), map(_counts, warps), strict=True)):
        unknown = [one for one, number in (by_thread or by_warp or {}).items() if number and table.unknown(one, capability)]
        found.gaps[row] = any("MMA" in one for one in unknown)
        core, tensor = None, None if by_warp is None or found.gaps[row] else weighed(by_warp, "warp")
        if by_thread is not None:
            found.copied[row] = sum(_copied(one) * number for one, number in by_thread.items())
            found.shared[row] = sum(number for one, number in by_thread.items() if _name(one) in _SHARED)
            core = weighed(by_thread, "thread") if all("MMA" in one for one in unknown) else None
            found.constants[row] = _only_constants(by_thread, core or ())
        if core is not None:
            found.conversions[row] = sum(number for work, number in core if work.conversion)
        for one in precisions:
            works = tensor if one.kind == "tensor" else core
            if works is not None:
                mine = [(work, number) for work, number in works if _is(one.id, work)]
                values[one.id][row] = sum(work.weight * number for work, number in mine)
                proven[one.id][row] = all(work.proven for work, number in mine if number)
                fused[one.id][row] = sum(work.weight * number for work, number in mine if work.fused)
    work = {}
    for one in precisions:
        missing = np.isnan(values[one.id])
        if not missing.all():
            origins = tuple(Origin(OPCODES, WARPS if one.kind == "tensor" else THREADS, note) for note in ("", _UNPROVEN))
            choice = np.where(missing, -1, np.where(proven[one.id], 0, 1)).astype(np.int64)
            work[one.id] = Quantity(values[one.id], choice, origins)
    return replace(
        found, work=work, fused={one.id: fused[one.id] for one in precisions if one.id in work and one.kind == "core"}
    )


def _counts(instances: Instances) -> dict[str, float] | None:
    """Opcode -> count; None where there are none, or something that is no count."""
    counts: dict[str, float] = {}
    for opcode, value in instances:
        if not isinstance(opcode, str) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
            return None
        counts[opcode] = counts.get(opcode, 0.0) + float(value)
    return counts or None


def _only_constants(threads: Mapping[str, float], core: Sequence[tuple[OpcodeWork, float]]) -> bool:
    """Whether half precision is but HFMA2.MMA in a kernel that works in FP64 or FP32.

    A recorded kernel in double precision executes exactly two of them for each division of integers.
    """
    halves = [one for one, number in threads.items() if number and _name(one) in _HALF]
    others = any(number for work, number in core if work.precision in load_spec().plain)
    return bool(halves) and others and all(halve.startswith(_LOADS_CONSTANTS) for halve in halves)


def _name(opcode: str) -> str:
    return opcode.partition(".")[0]


def _copied(opcode: str) -> int:
    """Bytes that one thread copies into shared memory by this instruction."""
    name, *modifiers = opcode.split(".")
    return next((_COPIED[modifier] for modifier in modifiers if modifier in _COPIED), _COPIED_LEAST) if name == _COPY else 0


@lru_cache(maxsize=4096)
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
    ratio = Columns.divided(other.values, counted.values)
    differs = (np.abs(ratio - 1) > tolerance) & np.isfinite(counted.values) & (counted.choice >= 0)
    choice, notes = counted.choice.copy(), dict[Origin, int]()
    for row in np.flatnonzero(differs):
        origin = counted.origins[counted.choice[row]]
        known = math.isfinite(ratio[row])
        told = f"{ratio[row]:.2g} of what the counters give" if known else "work where the counters give 0"
        note = "; ".join(filter(None, (origin.note, f"{TOLD} {label} is {told}")))
        noted = replace(origin, note=note, lower_bound=False)
        choice[row] = notes.setdefault(noted, len(counted.origins) + len(notes))
    return Quantity(counted.values, choice, (*counted.origins, *notes))


def metrics_of(names: Iterable[str]) -> tuple[str, ...]:
    """Which of the two metrics are among ``names``."""
    known = set(names)
    return tuple(one for one in (THREADS, WARPS) if one in known)
