"""Work by precision: what counts as work, what it asks of the pipes, and which of a report's counts it is taken from.

What instruction patching counted, opcode by opcode, is weighed by the table of opcodes.  The counts are instances of two
metrics that every report with source counters has: threads with a true predicate per opcode (CUDA cores), and warp
instructions per opcode (tensor cores).
By HFMA2 R0, -RZ, RZ, x, y compilers put x and y into a register.  Counters take it for four operations, and its name is that of
arithmetic: only its operands tell, in the machine code that a report holds.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips import Binding, OpcodeRow, OpcodeTable, Precision, Spec, load_opcodes
from ncu_roofline.chips.fields import WeightedSum
from ncu_roofline.chips.formulas import Counters, slots, together, uncounted, whole_of
from ncu_roofline.chips.source_counters import COUNTED as BY_ADDRESS
from ncu_roofline.chips.source_counters import OPCODE_THREADS, OPCODE_WARPS
from ncu_roofline.chips.verdict import COMPLETE, MIXED_SHARE
from ncu_roofline.formats.report import Code, Kernel, Report
from ncu_roofline.model.measurements import (
    Columns,
    FloatArray,
    IntArray,
    Mask,
    Measurements,
    Origin,
    Quantity,
    RoofValues,
    TextArray,
    objects,
)

if TYPE_CHECKING:
    from ncu_roofline.formats.sass.cubin import Cubin, Function

THREADS, WARPS = OPCODE_THREADS, OPCODE_WARPS
MIXED = "mixed"
TENSOR_PIPE = "tensor"
"""The gauge of the tensor pipe's activity, of the cycles that elapsed or that were active, as the report has it."""
OPCODES = "opcodes"
SOURCES = {"binding": "counted by its own counters", OPCODES: "counted from executed opcodes"}  # for people
SOURCES |= {"derived": "derived from other counters", "embedded": "taken from the report's own chart"}
HALF, BRAIN = "fp16", "bf16"
HALVES = (HALF, BRAIN)
"""What one set of counters counts together."""
TOLD = "by opcodes"
_LOADS = "loads of constants (HFMA2 R0, -RZ, RZ, x, y)"
NO_ARITHMETIC = f"by the machine code no arithmetic, but {_LOADS} or conversions"
"""The note on work that is 0 although counters or opcodes say otherwise."""
_WITHOUT = f"without {_LOADS}, which the machine code tells"
_UNPROVEN = "wgmma as a quarter of the warpgroup's operations per warp: unproven on hardware"
_DOUBT = "compilers also load constants by HFMA2, which its name does not tell"
_CONVERSIONS = "additions may be conversions from half to float (HADD2.F32), which this counter holds; opcode counts would tell"
_COUNTED = Binding(WeightedSum.of({WARPS: 1.0}), source=OPCODES)  # stands for the opcodes where bindings are listed
# Asynchronous copies from global to shared memory: bytes per thread by modifier, 4 without one.
_COPY, _COPIED, _COPIED_LEAST = "LDGSTS", {"128": 16, "64": 8}, 4
_LOADS_CONSTANTS = "HFMA2.MMA"
_HALF = ("HADD2", "HMUL2", "HFMA2", "HADD2_32I", "HMUL2_32I", "HFMA2_32I", "HMNMX2", "HSETP2", "HSET2")
_SHARED = ("LDS", "STS", "ATOMS", "LDSM")
_ACCUMULATORS = {"acc16": "fp16", "acc32": "fp32"}
(_BY_INSTRUCTION,), _ = BY_ADDRESS["threads"]
_MOST = 2.0**64  # larger numbers count nothing
_LARGEST = 2**23  # bytes of a function's code: half a million instructions, fifty times as many as in recorded kernels
_LAST = 2**63
_DIFFERENT = 0.01  # opcodes and counters
Counts = Sequence[tuple[object, object]]


class Work(NamedTuple):
    """Work of one precision: operations per launch, the compute roof it stands under, and its id."""

    precision: str
    unit: str
    quantity: Quantity
    roof: RoofValues
    roof_id: TextArray
    fused: FloatArray  # operations by fused multiply-adds, NaN where unknown


class Demand(NamedTuple):
    """Of one precision, an element per launch: the ``pipe`` it runs on, seconds at the peak rate of its highest roof.

    ``seconds`` is work / peak; ``mix_seconds`` what its instructions need as they are (`slots`), both 0 where there is no work,
    NaN where there is work without a known roof; ``theoretical``: seconds by theory.
    """

    precision: Precision
    pipe: TextArray
    work: FloatArray
    seconds: FloatArray
    mix_seconds: FloatArray
    theoretical: FloatArray
    measured: Mask


def works_of(m: Measurements, spec: Spec, compute: Mapping[str, RoofValues]) -> list[Work]:
    """Work per precision that has any, in the spec's order, and the composite last.  ``compute`` has the roofs by roof id."""
    works = []
    for precision in m.precisions(spec):
        quantity = m.work.get(precision.id)
        if quantity is not None and (quantity.values > 0).any():
            fused = m.values({} if precision.counts_instructions else m.fused, precision.id)
            roof = compute.get(precision.roof, RoofValues.missing(len(m)))
            ids = np.full(len(m), precision.roof, dtype=object)
            works.append(Work(precision.id, precision.unit, quantity, roof, ids, fused))
    # The composite of launches that use several precisions: work summed, under the roof at which the busiest pipe is full.
    found = [demand for demand in demands(m, spec, compute) if demand.precision.unit == "flop"]
    if len(found) < 2:
        return works
    whole = together(Columns, found)
    mixed = (whole.work > 0) & (whole.second >= MIXED_SHARE * whole.work)
    if not mixed.any():
        return works
    # Which precisions take part differs by launch; the text is built once per combination.
    patterns, inverse = np.unique(np.vstack([demand.work > 0 for demand in found]), axis=1, return_inverse=True)
    origins = []
    for pattern in patterns.T:
        used = [demand.precision for demand, on in zip(found, pattern, strict=True) if on]
        quantities = [m.work[one.id] for one in used if one.id in m.work]
        metrics = ", ".join(dict.fromkeys(origin.metrics for quantity in quantities for origin in quantity.origins[:1]))
        origins.append(Origin("binding", metrics, "sum of " + " + ".join(one.label for one in used)))
    choice = np.where(mixed, np.asarray(inverse).reshape(-1), -1).astype(np.int64)
    quantity = Quantity(np.where(mixed, whole.work, np.nan), choice, tuple(origins))
    by_theory = together(Columns, [demand._replace(seconds=demand.theoretical) for demand in found])
    roofs = [Columns.divided(whole.work, seconds) for seconds in (whole.seconds, by_theory.seconds)]
    value, theoretical = (np.where(np.isfinite(roof), roof, np.nan) for roof in roofs)
    measured = np.vstack([demand.measured for demand in found])[whole.busiest, np.arange(len(m))]
    ids = np.array([demand.precision.roof for demand in found], dtype=object)[whole.busiest]
    return [*works, Work(MIXED, "flop", quantity, RoofValues(value, theoretical, measured), ids, np.full(len(m), np.nan))]


def total_flops(m: Measurements) -> FloatArray:
    """Floating-point operations of each launch over all precisions that are known; NaN where none is."""
    total = sum((np.nan_to_num(quantity.values) for quantity in m.summands.values()), np.zeros(len(m)))
    return np.where(m.known(m.summands), total, np.nan)


def uncounted_tensor(m: Measurements, spec: Spec) -> Mask:
    """Launches whose tensor pipe was active although nobody counted what it did."""
    chips = {chip: spec.read_as(chip) for _, chip in m.gpus}
    works = []
    for precision in (one for one in spec.precisions if one.kind == "tensor" and one.adds):
        wanted = {one: chip for one, chip in chips.items() if chip and precision.id not in chip.left_out}
        has = {one: bool(one in wanted and spec.bindings(precision, wanted[one].compute_capability)) for one in chips}
        lacking = np.array([not has[one] for one in m.capability], dtype=bool)
        values = m.values(m.work, precision.id)
        works.append(np.where(lacking & np.isnan(values), 0.0, values))
    found: Mask = uncounted(Columns, m.values(m.gauges, TENSOR_PIPE), m.tensor_gaps, works)
    return found


def loads_constants(m: Measurements) -> Mask:
    """Whether what looks like half-precision arithmetic of a launch loads constants, and adds to no sum."""
    return (m.values(m.work, HALF) > 0) & np.isnan(m.values(m.summands, HALF))


def demands(m: Measurements, spec: Spec, compute: Mapping[str, RoofValues]) -> list[Demand]:
    """The demand of every precision that adds to a launch's work, FLOPs and other operations alike.

    Of one that is counted by family these, in the launches where they make up the whole.
    """

    def demand(precision: Precision, work: FloatArray) -> Demand:
        roof = compute.get(precision.roof, RoofValues.missing(len(m)))
        pipes = {chip: precision.pipe(chip) for _, chip in m.gpus}
        chips = {one: spec.architecture(one) for _, one in m.gpus} if precision.counts_instructions else {}
        halves = np.array([(chip := chips.get(one)) is not None and chip.halves for one in m.capability], dtype=bool)
        mixed = slots(Columns, work, m.values(m.fused, precision.id), halves, precision.counts_instructions)
        works = ((work, roof.value), (mixed, roof.value), (work, roof.theoretical))
        seconds, mix, by_theory = (np.where(done > 0, Columns.divided(done, peak), 0.0) for done, peak in works)
        return Demand(precision, objects([pipes[one] for one in m.capability]), work, seconds, mix, by_theory, roof.measured)

    found = []
    for precision in m.precisions(spec):
        leaf = (m.summands if precision.unit == "flop" else m.work).get(precision.id)
        if leaf is None or not precision.adds or not (leaf.values > 0).any():
            continue
        whole = leaf.values
        families = [p for p in spec.precisions if p.part_of == precision.id and not p.adds and p.id in m.work]
        sums = sum((np.nan_to_num(m.work[p.id].values) for p in families), np.zeros(len(m)))
        complete = whole_of(sums, whole) if families else np.zeros(len(m), dtype=bool)
        found.append(demand(precision, np.where(complete, 0.0, whole)))
        # Work of families is unknown where the whole is.
        found += [demand(p, np.where(complete, m.work[p.id].values, 0.0 * whole)) for p in families]
    return found


def work_of(
    counters: Counters, spec: Spec, capability: tuple[int, int], opcodes: Executed
) -> tuple[dict[str, Quantity], dict[str, Quantity], dict[str, Quantity]]:
    """Work by precision, the part of it that adds up to all work with nothing counted twice, and that of fused instructions.

    A tensor type may be counted in total, by instruction family and by sparsity at once; which of them may be summed depends
    on the bindings that a launch had metrics for.
    """
    found, fused, used = dict[str, Quantity](), dict[str, Quantity](), dict[str, TextArray]()
    for precision in spec.precisions:
        quantity, chosen, by_fused = _work_of(counters, opcodes, precision, spec.bindings(precision, capability))
        if quantity.origins:
            found[precision.id], used[precision.id] = quantity, chosen
            if by_fused is not None:
                fused[precision.id] = by_fused
    including = [chosen for chosen in used.values() if any(one is not None and one.includes for one in chosen)]
    summands = {}
    for precision in (one for one in spec.precisions if one.unit == "flop" and one.id in used):
        counted = np.array([one is not None for one in used[precision.id]], dtype=bool) & precision.adds
        for chosen in including:
            counted &= [one is None or precision.id not in one.includes for one in chosen]
        summands[precision.id] = found[precision.id].where(counted)
    if HALF in summands:  # constants stay visible with their caveat, and add to nothing
        summands[HALF] = summands[HALF].where(~opcodes.constants)
    return found, summands, fused


def _work_of(
    counters: Counters, opcodes: Executed, precision: Precision, bindings: tuple[Binding, ...]
) -> tuple[Quantity, TextArray, Quantity | None]:
    """The work of a precision, launch by launch by the first way that the report has; which; the part of fused ones."""
    quantity = nothing = Quantity.missing(len(counters.seconds))
    chosen: TextArray = np.full(len(counters.seconds), None, dtype=object)
    all_fused: Quantity | None = None
    by_opcodes = opcodes.work.get(precision.id, nothing)
    # The opcodes come behind the last binding that counts all operations itself.
    own = [binding for binding in bindings if binding.source == "binding" and not binding.lower_bound]
    for binding in (*own, _COUNTED, *(binding for binding in bindings if binding not in own)):
        if binding is _COUNTED:
            candidate, fused = by_opcodes, opcodes.fused.get(precision.id)
        else:
            candidate, fused = _by_counters(counters, opcodes, precision, binding)
        new = np.isnan(quantity.values) & ~np.isnan(candidate.values)
        if binding.lower_bound:  # more than by opcodes, where these leave out functions in other sections of the code
            new |= candidate.values > (1 + COMPLETE) * quantity.values
        if not new.any():
            continue
        chosen[new] = binding
        quantity = quantity.where(~new).filled(candidate)
        if fused is not None:
            part = Quantity.of(np.where(new, fused, np.nan), Origin(binding.source, ""))
            all_fused = all_fused.where(~new).filled(part) if all_fused else part
    if not by_opcodes.origins:
        return quantity, chosen, all_fused
    # Where opcodes say something else than the counters, a note tells.
    by_counters = np.array([one is not None and one is not _COUNTED for one in chosen], dtype=bool)
    ratio = np.where(by_counters, Columns.divided(by_opcodes.values, quantity.values), np.nan)
    differs = (np.abs(ratio - 1) > _DIFFERENT) & np.isfinite(quantity.values) & (quantity.choice >= 0)
    choice, notes = quantity.choice.copy(), dict[Origin, int]()
    for row in np.flatnonzero(differs):
        origin = quantity.origins[quantity.choice[row]]
        told = f"{ratio[row]:.2g} of what the counters give" if math.isfinite(ratio[row]) else "work where the counters give 0"
        note = "; ".join(filter(None, (origin.note, f"{TOLD} {precision.label} is {told}")))
        noted = replace(origin, note=note, lower_bound=False)
        choice[row] = notes.setdefault(noted, len(quantity.origins) + len(notes))
    return Quantity(quantity.values, choice, (*quantity.origins, *notes)), chosen, all_fused


def _by_counters(
    counters: Counters, opcodes: Executed, precision: Precision, binding: Binding
) -> tuple[Quantity, FloatArray | None]:
    """Operations by one way of counting, and the part of fused instructions, None where they are not counted apart."""
    candidate: Quantity = counters.count(binding.counters, binding.source, binding.note, binding.lower_bound)
    loads, nothing = np.zeros(len(candidate.values)), Quantity.missing(len(candidate.values))
    additions = [name for name in binding.counters.counters() if name.endswith("hadd_pred_on")]
    if additions or "hadd" in binding.counters.text():
        # Half-precision counters hold conversions (HADD2.F32) and BF16: opcodes tell, without them the reader is told.
        candidate = candidate.where(~((opcodes.conversions > 0) | (opcodes.work.get(BRAIN, nothing).values > 0)))
        added = counters.count(WeightedSum.of(dict.fromkeys(additions or binding.counters.counters(), 1.0)), "").values
        candidate = candidate.with_note(np.isnan(opcodes.conversions) & (added > 0), _CONVERSIONS)
    if precision.id == HALF:  # and loads of constants
        candidate, loads = opcodes.loads.without(candidate)
    if binding.includes:  # dense and sparse products in one: opcodes tell them apart
        candidate = candidate.where(np.isnan(opcodes.work.get(precision.id, nothing).values))
    if not binding.fused:
        return candidate, None
    return candidate, np.maximum(counters.count(binding.fused, binding.source).values - np.nan_to_num(loads), 0)


# Work from executed opcodes.


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
    loads: ConstantLoads

    @classmethod
    def nothing(cls, count: int) -> Executed:
        conversions, copied, shared = np.full((3, count), np.nan)
        gaps, constants = np.zeros((2, count), dtype=bool)
        return cls({}, {}, conversions, copied, shared, gaps, constants, ConstantLoads())

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
    threads: Sequence[Counts], warps: Sequence[Counts], spec: Spec, table: OpcodeTable, capability: tuple[int, int]
) -> Executed:
    """From the instances of both metrics, launch by launch: numbers, and all opcodes of a launch at once."""
    count = len(threads)
    found = Executed.nothing(count)
    if not any(threads) and not any(warps):
        return found
    known: dict[str, int] = {}  # opcodes by their place in what is said of each, below

    def flat(launches: Sequence[Counts]) -> tuple[IntArray, IntArray, FloatArray]:
        """Launch, opcode and count of every instance, of launches whose instances all are of opcodes."""
        launches = [counts if all(isinstance(opcode, str) for opcode, _ in counts) else () for counts in launches]
        rows = np.repeat(np.arange(count), list(map(len, launches)))
        ids = [known.setdefault(str(opcode), len(known)) for counts in launches for opcode, _ in counts]
        return rows, np.array(ids, dtype=np.int64), np.array([value for counts in launches for _, value in counts], dtype=float)

    thread, warp = flat(threads), flat(warps)
    works = [table.work(opcode, capability) for opcode in known]
    names = [opcode.partition(".")[0] for opcode in known]
    tensor_name = np.array(["MMA" in opcode for opcode in known], dtype=bool)
    unknown = np.array([table.unknown(opcode, capability) for opcode in known], dtype=bool)

    def total(counts: tuple[IntArray, IntArray, FloatArray], each: Sequence[float] | FloatArray) -> FloatArray:
        """By launch the counts times what each opcode stands for."""
        rows, ids, values = counts
        return np.bincount(rows, np.asarray(each, dtype=float)[ids] * values, count).astype(np.float64)

    def some(counts: tuple[IntArray, IntArray, FloatArray], which: Sequence[bool] | Mask) -> Mask:
        """Launches that executed one of these opcodes."""
        rows, ids, values = counts
        return np.asarray(np.bincount(rows[np.asarray(which, dtype=bool)[ids] & (values > 0)], minlength=count) > 0)

    by_thread, by_warp = (np.bincount(rows, minlength=count) > 0 for rows, _, _ in (thread, warp))
    gaps = np.where(by_thread, some(thread, unknown & tensor_name), some(warp, unknown & tensor_name))
    core, tensor = by_thread & ~some(thread, unknown & ~tensor_name), by_warp & ~gaps
    copied = [next((_COPIED[one] for one in opcode.split(".")[1:] if one in _COPIED), _COPIED_LEAST) for opcode in known]
    copied = [size * (name == _COPY) for size, name in zip(copied, names, strict=True)]
    halves = np.array([name in _HALF for name in names], dtype=bool)
    constants = np.array([opcode.startswith(_LOADS_CONSTANTS) for opcode in known], dtype=bool)
    plain = [work is not None and work.does != "products" and work.precision in spec.plain for work in works]
    # A recorded kernel in double precision executes exactly two HFMA2.MMA for each division of integers.
    only = core & some(thread, halves) & some(thread, plain) & ~some(thread, halves & ~constants)
    conversions = total(thread, [work is not None and work.does == "conversion" for work in works])
    work, fused = {}, {}
    for one in spec.precisions:
        if one.bindings and not spec.bindings(one, capability):
            continue
        counts, there = (warp, tensor) if one.kind == "tensor" else (thread, core)
        if not there.any():
            continue
        mine = [work if work is not None and _is(one.id, work) else None for work in works]
        values = total(counts, [work.weight if work else 0.0 for work in mine])
        unproven = some(counts, [work is not None and work.family == "wgmma" for work in mine])
        origins = tuple(Origin(OPCODES, WARPS if one.kind == "tensor" else THREADS, note) for note in ("", _UNPROVEN))
        choice = np.where(there, unproven, -1).astype(np.int64)
        work[one.id] = Quantity(np.where(there, values, np.nan), choice, origins)
        if one.kind == "core":
            fused[one.id] = np.where(
                there, total(counts, [work.weight if work and work.fused else 0.0 for work in mine]), np.nan
            )
    return Executed(
        work,
        fused,
        np.where(core, conversions, np.nan),
        np.where(by_thread, total(thread, copied), np.nan),
        np.where(by_thread, total(thread, [name in _SHARED for name in names]), np.nan),
        gaps,
        only,
        ConstantLoads(),
    )


@lru_cache(maxsize=4096)
def _is(precision: str, work: OpcodeRow) -> bool:
    """Whether work belongs to a precision id: tensor.fp16, tensor.fp16.mma.sparse, tensor.fp16.acc16, fp64."""
    if work.does != "products" or "." not in precision:
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


# Loads of constants.


def constant_loads(report: Report, index: IntArray, suspects: Mask, capability: tuple[int, int]) -> ConstantLoads:
    """Of the launches ``index`` of a report, by their code; only of the ``suspects`` among them: others cost nothing.

    Code that is damaged tells nothing.
    """
    if not suspects.any():
        return ConstantLoads()
    from ncu_roofline.formats.sass import CodeError
    from ncu_roofline.formats.sass.cubin import Cubin

    idle = {one: np.zeros(len(index), dtype=bool) for one in HALVES}
    operations = {one: np.full(len(index), np.nan) for one in HALVES}
    modules: dict[object, list[int]] = {}
    for row in np.flatnonzero(suspects).tolist():
        kernel = report.kernels[int(index[row])]
        modules.setdefault((kernel.process, kernel.module), []).append(row)
    for rows in modules.values():  # one after the other: each may be large
        code = report.kernels[int(index[rows[0]])].code
        try:
            cubin = Cubin(code.cubin) if code and code.cubin else None
        except (RooflineError, CodeError):
            continue
        if code is None or cubin is None or any(len(one.code) > _LARGEST for one in cubin.functions.values()):
            continue
        of_launch = _loads_of(code, cubin, capability)
        for row in rows:
            none_of, loads = of_launch(report.kernels[int(index[row])])
            for one in HALVES:
                idle[one][row], operations[one][row] = one in none_of, loads.get(one, np.nan)
    return ConstantLoads(idle, operations)


def _loads_of(code: Code, cubin: Cubin, capability: tuple[int, int]) -> Callable[[Kernel], tuple[set[str], dict[str, float]]]:
    """Of a launch of a module: precisions of which it has no arithmetic, and operations counted for loads of constants.

    Nothing where its code does not explain what was counted.
    """
    from ncu_roofline.formats.sass.cubin import Reach

    names = frozenset(name for row in load_opcodes().rows if row.precision in HALVES for name, _ in row.opcodes)
    reach = Reach(cubin, names)

    @cache
    def of_function(name: str) -> tuple[set[str], list[tuple[int, str, float]], bool, bool]:
        """Precisions of its arithmetic, loads (offset, precision, operations), whether it converts, holds unknown ones."""
        every = reach.instructions(name)
        works = [(one, load_opcodes().work(one.opcode, capability)) for one in every if one.name in names]
        known = [(one, work) for one, work in works if work]
        arithmetic = {work.precision for one, work in known if work.weight and not one.constant}
        loads = [(one.offset, work.precision, work.weight) for one, work in known if one.constant]
        unknown = any(one.name.startswith("op ") for one in every) or len(known) < len(works)
        return arithmetic, loads, any(work.does == "conversion" for _, work in known), unknown

    def of_launch(kernel: Kernel) -> tuple[set[str], dict[str, float]]:
        within = reach.within(kernel.mangled_name) if kernel.mangled_name in cubin.functions else None
        found, idle = [of_function(name) for name in within or ()], set[str]()
        if found and not any(unknown for *_, unknown in found):
            if not any(arithmetic or loads or converts for arithmetic, loads, converts, _ in found):
                return set(), {}
            idle = set(HALVES).difference(*(arithmetic for arithmetic, *_ in found))
            if len(idle) == len(HALVES) or not any(loads for _, loads, *_ in found):
                return idle, dict.fromkeys(HALVES, 0.0)
        if not kernel.metrics.has_name(_BY_INSTRUCTION):  # nobody counted by instruction
            return idle, {}
        keys, values = (np.array(one) for one in kernel.metrics.by_address(_BY_INSTRUCTION))
        if not len(keys) or not np.all((values >= 0) & (values < _MOST)):
            return idle, {}
        counts = dict(zip(keys.tolist(), values.tolist(), strict=True))
        functions = placed(kernel, code, cubin, sorted(counts))
        if kernel.mangled_name not in {function.name for function, _ in functions}:
            return idle, {}
        result = dict.fromkeys(HALVES, 0.0)
        for function, at in functions:
            for offset, precision, worth in of_function(function.name)[1]:
                result[precision] += worth * counts.get(at + offset, 0.0)
        return idle, result

    return of_launch


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
