"""Work by precision: what counts as work, what it asks of the pipes, and which of a report's counts it is taken from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ncu_roofline.chips import Binding, Precision, Spec, load_spec
from ncu_roofline.chips.formula import WeightedSum
from ncu_roofline.chips.formulas import Counters, slots, whole_of
from ncu_roofline.chips.thresholds import COMPLETE, MIXED_SHARE
from ncu_roofline.model.halves import BRAIN, HALF
from ncu_roofline.model.measurements import (
    FloatArray,
    IntArray,
    Measurements,
    Origin,
    Quantity,
    TextArray,
    objects,
    precisions_of,
)
from ncu_roofline.model.numbers import Columns
from ncu_roofline.model.opcodes import COUNTED, Executed, told_apart
from ncu_roofline.model.roofs import RoofValues

MIXED = "mixed"
_CONVERSIONS = "additions may be conversions from half to float (HADD2.F32), which this counter holds; opcode counts would tell"
_MULTIPLY_ADDS = "int32.mad"


@dataclass(frozen=True)
class Work:
    """Work of one precision: operations per launch, the compute roof it stands under, and its id."""

    precision: str
    unit: str
    quantity: Quantity
    roof: RoofValues
    roof_id: TextArray
    fused: FloatArray  # operations by fused multiply-adds, NaN where unknown


def works_of(m: Measurements, spec: Spec, compute: Mapping[str, RoofValues]) -> list[Work]:
    """Work per precision that has any, in the spec's order, and the composite last.  ``compute`` has the roofs by roof id."""
    some = [
        precision for precision in precisions_of(m, spec) if precision.id in m.work and (m.work[precision.id].values > 0).any()
    ]
    works = [_work(m, precision, m.work[precision.id], compute) for precision in some]
    mixed = _mixed(m, [demand for demand in demands(m, spec, compute) if demand.precision.unit == "flop"])
    return [*works, mixed] if mixed else works


def _work(m: Measurements, precision: Precision, quantity: Quantity, compute: Mapping[str, RoofValues]) -> Work:
    roof_id = precision.roof_ids()[0]
    ids = np.full(len(m), roof_id, dtype=object)
    known = precision.id in m.fused and not precision.counts_instructions
    fused = m.fused[precision.id].values if known else np.full(len(m), np.nan)
    return Work(precision.id, precision.unit, quantity, compute.get(roof_id, RoofValues.missing(len(m))), ids, fused)


def total_flops(m: Measurements) -> FloatArray:
    """Floating-point operations of each launch over all precisions that are known; NaN where none is."""
    if not m.summands:
        return np.full(len(m), np.nan)
    stack = np.vstack([quantity.values for quantity in m.summands.values()])
    known = ~np.isnan(stack).all(axis=0)
    return np.where(known, np.nansum(stack, axis=0), np.nan)


def _mixed(m: Measurements, found: list[Demand]) -> Work | None:
    """The composite of launches that use several precisions: work summed, under the roof at which the busiest pipe is full.

    If a pipe needs sum(work_p / peak_p) seconds for the precisions that it does, the launch needs at least the largest of
    these, so the roof for the sum of work is sum(work) / that time.
    """
    if len(found) < 2:
        return None
    stack = np.nan_to_num(np.vstack([demand.work for demand in found]))
    total = stack.sum(axis=0)
    mixed = (total > 0) & (_second_largest(m, found) >= MIXED_SHARE * total)
    if not mixed.any():
        return None
    values = np.where(mixed, total, np.nan)
    # Which precisions take part differs by launch; the text is built once per combination.
    patterns, inverse = np.unique(stack > 0, axis=1, return_inverse=True)
    origins = []
    for pattern in patterns.T:
        used = [demand.precision for demand, on in zip(found, pattern, strict=True) if on]
        quantities = [m.work[one.id] for one in used if one.id in m.work]
        metrics = ", ".join(dict.fromkeys(origin.metrics for quantity in quantities for origin in quantity.origins[:1]))
        origins.append(Origin("binding", metrics, "sum of " + " + ".join(one.label for one in used)))
    choice = np.where(mixed, np.asarray(inverse).reshape(-1), -1).astype(np.int64)
    roof, busiest = _busiest(stack, found, total)
    roof_ids = np.array([demand.roof_id for demand in found], dtype=object)[busiest]
    return Work(MIXED, "flop", Quantity(values, choice, tuple(origins)), roof, roof_ids, np.full(len(total), np.nan))


def _second_largest(m: Measurements, found: list[Demand]) -> FloatArray:
    """Work of the precision with the second most, families of one counted together."""
    owners: dict[str, FloatArray] = {}
    for demand in found:
        one = demand.precision
        owner = one.part_of if one.part_of and not one.disjoint else one.id
        owners[owner] = owners.get(owner, np.zeros(len(m))) + np.nan_to_num(demand.work)
    if len(owners) < 2:
        return np.zeros(len(m))
    second: FloatArray = np.sort(np.vstack(list(owners.values())), axis=0)[-2]
    return second


def _busiest(stack: FloatArray, found: list[Demand], total: FloatArray) -> tuple[RoofValues, IntArray]:
    """The roof of the sum, and for each launch which demand is the largest on the busiest pipe."""
    count = len(total)
    # A pipe that works without a known roof leaves the composite without one.
    busy = {basis: np.vstack(list(by_pipe(found, count, basis).values())).max(axis=0) for basis in ("seconds", "theoretical")}
    with np.errstate(divide="ignore", invalid="ignore"):
        value, theoretical = total / busy["seconds"], total / busy["theoretical"]
    per_pipe = by_pipe(found, count)
    names = np.array(list(per_pipe), dtype=object)
    fullest = names[np.argmax(np.nan_to_num(np.vstack(list(per_pipe.values()))), axis=0)]
    mine = np.vstack([np.where(demand.pipe == fullest, np.nan_to_num(demand.seconds), -1.0) for demand in found])
    busiest: IntArray = np.argmax(mine, axis=0)
    measured = np.vstack([demand.measured for demand in found])[busiest, np.arange(stack.shape[1])]
    clean = [np.where(np.isfinite(one), one, np.nan) for one in (value, theoretical)]
    return RoofValues(clean[0], clean[1], measured), busiest


@dataclass(frozen=True)
class Demand:
    """Of one precision, an element per launch: the ``pipe`` it runs on, seconds at its ``roof_id``'s peak rate.

    ``seconds`` is work / peak; ``mix_seconds`` what its instructions need as they are, fused or not (Yang, Kurth, Williams
    2019, equation 7), or on the pipes that they need; both 0 where there is no work, NaN where there is work without a known
    roof.
    """

    precision: Precision
    pipe: TextArray
    roof_id: str
    work: FloatArray
    seconds: FloatArray
    mix_seconds: FloatArray
    theoretical: FloatArray
    measured: np.ndarray[tuple[int], np.dtype[np.bool_]]


def loads_constants(m: Measurements) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether what looks like half-precision arithmetic of a launch loads constants, and adds to no sum."""
    missing = np.full(len(m), np.nan)
    counted, summed = (of[HALF].values if HALF in of else missing for of in (m.work, m.summands))
    with np.errstate(invalid="ignore"):
        return (counted > 0) & np.isnan(summed)


def demands(m: Measurements, spec: Spec, compute: Mapping[str, RoofValues]) -> list[Demand]:
    """The demand of every precision that adds to a launch's work, FLOPs and other operations alike."""
    leaves = {**m.summands, **{name: q for name, q in m.work.items() if _other_operations(spec, name)}}
    result = []
    for precision in precisions_of(m, spec):
        if precision.id in leaves and (leaves[precision.id].values > 0).any():
            result += _by_family(m, spec, compute, precision, leaves[precision.id])
    return result


def _other_operations(spec: Spec, name: str) -> bool:
    """Whether a precision counts operations that are no FLOPs and is no view of another."""
    found = next((p for p in spec.precisions if p.id == name), None)
    return found is not None and found.unit == "op" and (not found.part_of or found.disjoint)


def _by_family(
    m: Measurements, spec: Spec, compute: Mapping[str, RoofValues], precision: Precision, quantity: Quantity
) -> list[Demand]:
    """One demand, or one per family in the launches where they make up the whole."""
    families = [p for p in spec.precisions if p.part_of == precision.id and not p.disjoint and p.id in m.work]
    whole = quantity.values
    if not families:
        return [_demand(m, precision, whole, compute)]
    complete = whole_of(sum((np.nan_to_num(m.work[p.id].values) for p in families), np.zeros(len(m))), whole)
    none = 0.0 * whole  # unknown where that is
    split = [_demand(m, p, np.where(complete, m.work[p.id].values, none), compute) for p in families]
    return [_demand(m, precision, np.where(complete, 0.0, whole), compute), *split]


def _demand(m: Measurements, precision: Precision, work: FloatArray, compute: Mapping[str, RoofValues]) -> Demand:
    pipes = {one: precision.pipe(one) for one in dict.fromkeys(m.capability)}
    roof_id = precision.roof_ids()[0]
    roof = compute.get(roof_id, RoofValues.missing(len(m)))
    return Demand(
        precision=precision,
        pipe=objects([pipes[one] for one in m.capability]),
        roof_id=roof_id,
        work=work,
        seconds=_seconds(work, roof.value),
        mix_seconds=_seconds(slots_of(m, precision, work), roof.value),
        theoretical=_seconds(work, roof.theoretical),
        measured=roof.measured,
    )


def slots_of(m: Measurements, precision: Precision, work: FloatArray) -> FloatArray:
    """The operations that at the peak rate would take as long as the ``work`` of a precision takes its pipe, as it is mixed."""
    fused = m.fused[precision.id].values if precision.id in m.fused else np.full(len(m), np.nan)
    found: FloatArray = slots(Columns, work, fused, _half_rates(m), precision.counts_instructions)
    return found


def _half_rates(m: Measurements) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether each launch's chip is known to issue integer multiply-adds, and all other integer work, at half rate."""
    spec = load_spec()
    chips = {one: spec.architecture(one) for one in dict.fromkeys(m.capability)}
    half = {one: chip is not None and _MULTIPLY_ADDS in chip.rates for one, chip in chips.items()}
    return np.array([half[one] for one in m.capability], dtype=bool)


def _seconds(work: FloatArray, peak: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(work > 0, work / peak, 0.0)


def by_pipe(found: list[Demand], count: int, what: str = "seconds") -> dict[str, FloatArray]:
    """Pipe id -> seconds over all of its precisions (``what``: seconds, mix_seconds or theoretical), per launch."""
    result: dict[str, FloatArray] = {}
    for demand in found:
        values = getattr(demand, what)
        for pipe in dict.fromkeys(demand.pipe):
            mine = np.where(demand.pipe == pipe, values, 0.0)
            result[pipe] = result.get(pipe, np.zeros(count)) + mine
    return result


def work_of(
    counters: Counters, spec: Spec, capability: tuple[int, int], opcodes: Executed
) -> tuple[dict[str, Quantity], dict[str, Quantity], dict[str, Quantity]]:
    """Work by precision, the part of it that adds up to all work with nothing counted twice, and that of fused instructions.

    A tensor type may be counted in total, by instruction family and by sparsity at once; which of them may be summed depends
    on the bindings that a launch had metrics for.
    """
    found: dict[str, Quantity] = {}
    used: dict[str, TextArray] = {}
    fused: dict[str, Quantity] = {}
    for precision in spec.precisions:
        one = _Counted(counters, opcodes, precision)
        for binding in _ways(spec.bindings(precision, capability)):
            one.fill(binding)
        if one.quantity.origins:
            found[precision.id], used[precision.id] = one.finished(), one.chosen
            if one.fused is not None:
                fused[precision.id] = one.fused
    summands = _summands(spec, found, used)
    if HALF in summands:  # constants stay visible with their caveat, and add to nothing
        summands[HALF] = summands[HALF].scaled(np.where(opcodes.constants, np.nan, 1.0))
    return found, summands, fused


def _ways(bindings: Sequence[Binding]) -> list[Binding]:
    """The bindings, and the opcodes behind the last that counts all operations themselves."""
    own = [binding for binding in bindings if binding.source == "binding" and not binding.lower_bound]
    return [*own, COUNTED, *(binding for binding in bindings if binding not in own)]


class _Counted:
    """The work of one precision, launch by launch the first way that the report has."""

    def __init__(self, counters: Counters, opcodes: Executed, precision: Precision) -> None:
        count = len(counters.seconds)
        self._counters, self._opcodes, self._id, self._label = counters, opcodes, precision.id, precision.label
        self._by_opcodes = opcodes.work.get(precision.id, Quantity.missing(count))
        self.quantity = Quantity.missing(count)
        self.chosen: TextArray = np.full(count, None, dtype=object)
        self.fused: Quantity | None = None

    def fill(self, binding: Binding) -> None:
        """The gaps from one more way."""
        if binding is COUNTED:
            candidate, fused = self._by_opcodes, self._opcodes.fused.get(self._id)
        else:
            candidate = self._counters.count(binding.counters, binding.source, binding.note, binding.lower_bound)
            candidate, loads = self._without_loads(self._without_conversions(candidate, binding))
            if binding.includes:  # dense and sparse products in one: opcodes tell them apart
                candidate = candidate.scaled(np.where(np.isfinite(self._by_opcodes.values), np.nan, 1.0))
            fused = self._counters.count(binding.fused, binding.source, "").values if binding.fused else None
            fused = fused if fused is None else np.maximum(fused - loads, 0)
        new = np.isnan(self.quantity.values) & ~np.isnan(candidate.values)
        if binding.lower_bound:  # more than by opcodes, where these leave out functions in other sections of the code
            new |= candidate.values > (1 + COMPLETE) * self.quantity.values
        if not new.any():
            return
        self.chosen[new] = binding
        others = np.where(new, np.nan, 1.0)
        self.quantity = self.quantity.scaled(others).filled(candidate)
        if fused is not None:
            part = Quantity.of(np.where(new, fused, np.nan), Origin(binding.source, ""))
            self.fused = self.fused.scaled(others).filled(part) if self.fused else part

    def _without_conversions(self, candidate: Quantity, binding: Binding) -> Quantity:
        """Half-precision counters hold conversions (HADD2.F32) and BF16: opcodes tell, without them the reader is told."""
        additions = [name for name, _ in binding.counters.terms if name.endswith("hadd_pred_on")]
        if not additions and "hadd" not in binding.counters.text():
            return candidate
        conversions, bf16 = self._opcodes.conversions, self._opcodes.work.get(BRAIN)
        with np.errstate(invalid="ignore"):
            wrong = (conversions > 0) | (bf16.values > 0 if bf16 else False)
        candidate = candidate.scaled(np.where(wrong, np.nan, 1.0))
        added = self._counters.count(
            WeightedSum.of(dict.fromkeys(additions or binding.counters.counters(), 1.0)), "", ""
        ).values
        with np.errstate(invalid="ignore"):
            doubtful = np.isnan(conversions) & (added > 0)
        return candidate.with_note(doubtful, _CONVERSIONS)

    def _without_loads(self, candidate: Quantity) -> tuple[Quantity, FloatArray]:
        """Half-precision counters without what they count for loads of constants, and how much that is."""
        if self._id != HALF:
            return candidate, np.zeros(len(candidate.values))
        left, loads = self._opcodes.loads.without(candidate)
        return left, np.nan_to_num(loads)

    def finished(self) -> Quantity:
        """All of it; where opcodes say something else than the counters, a note."""
        by_counters = np.array([one is not None and one is not COUNTED for one in self.chosen], dtype=bool)
        other = self._by_opcodes.scaled(np.where(by_counters, 1.0, np.nan))
        return told_apart(self.quantity, other, self._label) if self._by_opcodes.origins else self.quantity


def _summands(spec: Spec, found: dict[str, Quantity], used: dict[str, TextArray]) -> dict[str, Quantity]:
    flops = {p.id for p in spec.precisions if p.unit == "flop"}
    masks = {name: np.full(len(chosen), np.nan) for name, chosen in used.items() if name in flops}
    combinations: dict[tuple[int, ...], list[int]] = {}
    for row, bindings in enumerate(zip(*used.values(), strict=True)):
        combinations.setdefault(tuple(map(id, bindings)), []).append(row)
    for rows in combinations.values():
        here = {name: chosen[rows[0]] for name, chosen in used.items() if chosen[rows[0]] is not None}
        for name in spec.summands(here):
            if name in masks:
                masks[name][rows] = 1.0
    return {name: found[name].scaled(mask) for name, mask in masks.items()}
