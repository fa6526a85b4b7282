"""Work from executed opcodes, and what of counted half-precision work loads constants.

What instruction patching counted, opcode by opcode, is weighed by the table of opcodes.  The counts are instances of two
metrics that every report with source counters has: threads with a true predicate per opcode (CUDA cores), and warp
instructions per opcode (tensor cores).
By HFMA2 R0, -RZ, RZ, x, y compilers put x and y into a register.  Counters take it for four operations, and its name is that of
arithmetic: only its operands tell, in the machine code that a report holds.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips import Binding, OpcodeTable, OpcodeWork, Spec, load_opcodes, load_spec
from ncu_roofline.chips.fields import WeightedSum
from ncu_roofline.chips.source_counters import COUNTED as BY_ADDRESS
from ncu_roofline.chips.source_counters import OPCODE_THREADS, OPCODE_WARPS
from ncu_roofline.chips.verdict import COMPLETE
from ncu_roofline.formats.report import Code, Kernel, Report
from ncu_roofline.model.measurements import Columns, FloatArray, IntArray, Mask, Origin, Quantity

if TYPE_CHECKING:
    from ncu_roofline.formats.sass.cubin import Cubin, Function

THREADS, WARPS = OPCODE_THREADS, OPCODE_WARPS
OPCODES = "opcodes"
TOLD = "by opcodes"
COUNTED = Binding(WeightedSum.of({WARPS: 1.0}), source=OPCODES)
"""Stands for the opcodes where bindings are listed."""
HALF, BRAIN = "fp16", "bf16"
HALVES = (HALF, BRAIN)
"""What one set of counters counts together."""
_LOADS = "loads of constants (HFMA2 R0, -RZ, RZ, x, y)"
NO_ARITHMETIC = f"by the machine code no arithmetic, but {_LOADS} or conversions"
"""The note on work that is 0 although counters or opcodes say otherwise."""
_WITHOUT = f"without {_LOADS}, which the machine code tells"

Instances = Sequence[tuple[object, object]]
_UNPROVEN = "wgmma as a quarter of the warpgroup's operations per warp: unproven on hardware"
_DOUBT = "compilers also load constants by HFMA2, which its name does not tell"
# Asynchronous copies from global to shared memory: bytes per thread by modifier, 4 without one.
_COPY, _COPIED, _COPIED_LEAST = "LDGSTS", {"128": 16, "64": 8}, 4
_LOADS_CONSTANTS = "HFMA2.MMA"
_HALF = ("HADD2", "HMUL2", "HFMA2", "HADD2_32I", "HMUL2_32I", "HFMA2_32I", "HMNMX2", "HSETP2", "HSET2")
_SHARED = ("LDS", "STS", "ATOMS", "LDSM")
_ACCUMULATORS = {"acc16": "fp16", "acc32": "fp32"}
(_THREADS,), _ = BY_ADDRESS["threads"]
_MOST = 2.0**64  # larger numbers count nothing
_LARGEST = 2**23  # bytes of a function's code: half a million instructions, fifty times as many as in recorded kernels
_LAST = 2**63


class ConstantLoads(NamedTuple):
    """What is known of each launch of one chip, by the ids of `HALVES`; empty where nothing is known of any.

    ``idle``: its code has no arithmetic of this precision.  ``operations``: what is counted for its loads of constants, NaN
    where that is not known.
    """

    idle: Mapping[str, Mask] = {}
    operations: Mapping[str, FloatArray] = {}

    def without(self, counted: Quantity, precisions: Sequence[str] = HALVES) -> tuple[Quantity, FloatArray]:
        """Operations of some precisions without those that are no arithmetic, and how many these are, NaN where not known."""
        if not self.operations:
            return counted, np.full(len(counted.values), np.nan)
        idle = np.all([self.idle[one] for one in precisions], axis=0)
        loads = np.sum([self.operations[one] for one in precisions], axis=0)
        with np.errstate(invalid="ignore"):  # more than all are of another launch
            loads = np.where(loads <= (1 + COMPLETE) * counted.values, np.minimum(loads, counted.values), np.nan)
        loads = np.where(idle, counted.values, loads)
        left = Quantity(counted.values - np.nan_to_num(loads), counted.choice, counted.origins)
        some, none = (loads > 0) & (left.values > 0), (loads > 0) & (left.values == 0)
        return left.with_note(some, _WITHOUT).with_note(none, NO_ARITHMETIC), loads


NOTHING_KNOWN = ConstantLoads()


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
        conversions, copied, shared = np.full((3, count), np.nan)
        return cls({}, {}, conversions, copied, shared, np.zeros(count, dtype=bool), np.zeros(count, dtype=bool))

    @property
    def halves(self) -> Mask:
        """Launches that executed what looks like half-precision arithmetic."""
        found = [self.work[one].values > 0 for one in HALVES if one in self.work]
        return np.asarray(np.any([np.zeros_like(self.gaps), *found], axis=0))

    def without(self, loads: ConstantLoads) -> Executed:
        """The same with loads of constants told from arithmetic where that is known, and notes on what is known."""
        work, fused, constants = dict(self.work), dict(self.fused), self.constants
        for one in HALVES:
            if one in work:
                work[one], taken = loads.without(work[one], (one,))
                fused[one] = np.maximum(fused[one] - np.nan_to_num(taken), 0)
                if one == HALF:
                    work[one] = work[one].with_note(np.isnan(taken), _DOUBT)
                    constants = constants & np.isnan(taken)
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
            found.shared[row] = sum(number for one, number in by_thread.items() if one.partition(".")[0] in _SHARED)
            core = weighed(by_thread, "thread") if all("MMA" in one for one in unknown) else None
            # A recorded kernel in double precision executes exactly two HFMA2.MMA for each division of integers.
            halves = [one for one, number in by_thread.items() if number and one.partition(".")[0] in _HALF]
            others = any(number for work, number in core or () if work.precision in load_spec().plain)
            found.constants[row] = bool(halves) and others and all(one.startswith(_LOADS_CONSTANTS) for one in halves)
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
    counts: dict[str, float] = {}
    for opcode, value in instances:
        if not isinstance(opcode, str) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
            return None
        counts[opcode] = counts.get(opcode, 0.0) + float(value)
    return counts or None


def _copied(opcode: str) -> int:
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


# Loads of constants.


def constant_loads(report: Report, index: IntArray, suspects: Mask, capability: tuple[int, int]) -> ConstantLoads:
    """Of the launches ``index`` of a report, by their code; only of the ``suspects`` among them: others cost nothing.

    Code that is damaged tells nothing.
    """
    if not suspects.any():
        return NOTHING_KNOWN
    from ncu_roofline.formats.sass import CodeError
    from ncu_roofline.formats.sass.cubin import read_cubin

    idle = {one: np.zeros(len(index), dtype=bool) for one in HALVES}
    operations = {one: np.full(len(index), np.nan) for one in HALVES}
    modules: dict[object, list[int]] = {}
    for row in np.flatnonzero(suspects).tolist():
        kernel = report.kernels[int(index[row])]
        modules.setdefault((kernel.process, kernel.module), []).append(row)
    for rows in modules.values():  # one after the other: each may be large
        code = report.kernels[int(index[rows[0]])].code
        try:
            cubin = read_cubin(code.cubin) if code and code.cubin else None
        except (RooflineError, CodeError):
            continue
        if code is None or cubin is None or any(len(one.code) > _LARGEST for one in cubin.functions.values()):
            continue
        module = _Module(code, cubin, capability)
        for row in rows:
            none_of, loads = module.launch(report.kernels[int(index[row])])
            for one in HALVES:
                idle[one][row], operations[one][row] = one in none_of, loads.get(one, np.nan)
    return ConstantLoads(idle, operations)


class _Module:
    """The code of a module, of which each function is looked at once."""

    def __init__(self, code: Code, cubin: Cubin, capability: tuple[int, int]) -> None:
        from ncu_roofline.formats.sass.cubin import Reach

        self._code, self._cubin, self._capability = code, cubin, capability
        self._names = frozenset(name for row in load_opcodes().rows if row.precision in HALVES for name, _ in row.opcodes)
        self._reach = Reach(cubin, self._names)
        # Of a function precisions of its arithmetic, loads of constants (offset, precision, operations), and whether it has
        # conversions, and instructions that are not known.
        self._functions: dict[str, tuple[set[str], list[tuple[int, str, float]], bool, bool]] = {}

    def launch(self, kernel: Kernel) -> tuple[Collection[str], Mapping[str, float]]:
        """Precisions of which a launch has no arithmetic, and operations counted for loads of constants, as far as is known.

        Nothing where its code does not explain what was counted.
        """
        names = self._reach.within(kernel.mangled_name) if kernel.mangled_name in self._cubin.functions else None
        found = [self._function(name) for name in names or ()]
        if not found or any(unknown for *_, unknown in found):
            return (), self._counted(kernel)
        if not any(arithmetic or loads or converts for arithmetic, loads, converts, _ in found):
            return (), {}
        idle = set(HALVES).difference(*(arithmetic for arithmetic, *_ in found))
        counts = any(loads for _, loads, *_ in found) and len(idle) < len(HALVES)
        return idle, self._counted(kernel) if counts else dict.fromkeys(HALVES, 0.0)

    def _function(self, name: str) -> tuple[set[str], list[tuple[int, str, float]], bool, bool]:
        if name not in self._functions:
            every = self._reach.instructions(name)
            works = [(one, load_opcodes().work(one.opcode, self._capability)) for one in every if one.name in self._names]
            known = [(one, work) for one, work in works if work]
            arithmetic = {work.precision for one, work in known if work.weight and not one.constant}
            loads = [(one.offset, work.precision, work.weight) for one, work in known if one.constant]
            unknown = any(one.name.startswith("op ") for one in every) or len(known) < len(works)
            self._functions[name] = arithmetic, loads, any(work.conversion for _, work in known), unknown
        return self._functions[name]

    def _counted(self, kernel: Kernel) -> dict[str, float]:
        """Operations that are counted for loads of constants, by precision; empty where nobody counted by instruction."""
        if not kernel.metrics.has_name(_THREADS):
            return {}
        keys, values = (np.array(one) for one in kernel.metrics.by_address(_THREADS))
        if not len(keys) or not np.all((values >= 0) & (values < _MOST)):
            return {}
        counts = dict(zip(keys.tolist(), values.tolist(), strict=True))
        functions = placed(kernel, self._code, self._cubin, sorted(counts))
        if kernel.mangled_name not in {function.name for function, _ in functions}:
            return {}
        result = dict.fromkeys(HALVES, 0.0)
        for function, at in functions:
            for offset, precision, worth in self._function(function.name)[1]:
                result[precision] += worth * counts.get(at + offset, 0.0)
        return result


def placed(kernel: Kernel, code: Code, cubin: Cubin, counted: Sequence[int]) -> list[tuple[Function, int]]:
    """The launch's own function, first, and those in which something was counted, with their addresses in bytes.

    ``code`` and ``cubin`` are of the kernel's module, ``counted`` the addresses with counts, sorted.  What the report places
    nowhere, or on another function, is left out; of several addresses of a function all but one.
    """

    def any_in(address: int, function: Function) -> bool:
        return bisect_left(counted, address) < bisect_left(counted, address + len(function.code))

    addresses: dict[str, int] = {}  # of several addresses of a function the first at which something was counted
    for one in code.functions:
        before, function = addresses.setdefault(one.name, one.address), cubin.functions.get(one.name)
        if function and before != one.address and not any_in(before, function) and any_in(one.address, function):
            addresses[one.name] = one.address
    base = kernel.base_address()
    if base is not None:
        addresses[kernel.mangled_name] = base
    found: list[tuple[Function, int]] = []
    starts: list[int] = []
    ends: list[int] = []  # of what is found, both sorted: no two lie on each other
    for name in dict.fromkeys((kernel.mangled_name, *addresses)):
        address, function = addresses.get(name), cubin.functions.get(name)
        if address is None or function is None or address + len(function.code) >= _LAST:
            continue
        end, place = address + len(function.code), bisect_left(starts, address + len(function.code))
        if (name != kernel.mangled_name and not any_in(address, function)) or (place and ends[place - 1] > address):
            continue
        found.append((function, address))
        if end > address:
            starts.insert(place, address)
            ends.insert(place, end)
    return found
