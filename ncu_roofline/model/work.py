"""Work by precision: what counts as work, what it asks of the pipes, and which of a report's counts it is taken from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ncu_roofline.chips import Binding, Precision, Spec
from ncu_roofline.chips.fields import WeightedSum
from ncu_roofline.chips.formulas import Counters, slots, together, uncounted, whole_of
from ncu_roofline.chips.verdict import COMPLETE, MIXED_SHARE
from ncu_roofline.model.measurements import Columns, FloatArray, Mask, Measurements, Origin, Quantity, TextArray, objects
from ncu_roofline.model.opcodes import BRAIN, COUNTED, HALF, Executed, told_apart
from ncu_roofline.model.roofs import RoofValues

MIXED = "mixed"
TENSOR_PIPE = "tensor"
"""The gauge of the tensor pipe's activity, of the cycles that elapsed or that were active, as the report has it."""
_CONVERSIONS = "additions may be conversions from half to float (HADD2.F32), which this counter holds; opcode counts would tell"


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
    mixed = _mixed(m, [demand for demand in demands(m, spec, compute) if demand.precision.unit == "flop"])
    return [*works, mixed] if mixed else works


def total_flops(m: Measurements) -> FloatArray:
    """Floating-point operations of each launch over all precisions that are known; NaN where none is."""
    total = sum((np.nan_to_num(quantity.values) for quantity in m.summands.values()), np.zeros(len(m)))
    return np.where(m.known(m.summands), total, np.nan)


def uncounted_tensor(m: Measurements, spec: Spec) -> Mask:
    """Launches whose tensor pipe was active although nobody counted what it did."""
    chips = {chip: spec.read_as(chip) for _, chip in m.gpus}
    works = []
    for precision in (one for one in spec.precisions if one.kind == "tensor" and one.adds):
        has = {one: bool(chip and spec.bindings(precision, chip.compute_capability)) for one, chip in chips.items()}
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


def _mixed(m: Measurements, found: list[Demand]) -> Work | None:
    """The composite of launches that use several precisions: work summed, under the roof at which the busiest pipe is full."""
    if len(found) < 2:
        return None
    whole = together(Columns, found)
    mixed = (whole.work > 0) & (whole.second >= MIXED_SHARE * whole.work)
    if not mixed.any():
        return None
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
    roof_ids = np.array([demand.precision.roof for demand in found], dtype=object)[whole.busiest]
    return Work(MIXED, "flop", quantity, RoofValues(value, theoretical, measured), roof_ids, np.full(len(m), np.nan))


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
        quantity, chosen, by_fused = _counted(counters, opcodes, precision, spec.bindings(precision, capability))
        if quantity.origins:
            found[precision.id], used[precision.id] = quantity, chosen
            if by_fused is not None:
                fused[precision.id] = by_fused
    masks = {p.id: np.full(len(counters.seconds), np.nan) for p in spec.precisions if p.unit == "flop" and p.id in used}
    combinations: dict[tuple[int, ...], list[int]] = {}
    for row, bindings in enumerate(zip(*used.values(), strict=True)):
        combinations.setdefault(tuple(map(id, bindings)), []).append(row)
    for rows in combinations.values():
        here = {name: chosen[rows[0]] for name, chosen in used.items() if chosen[rows[0]] is not None}
        for name in masks.keys() & set(spec.summands(here)):
            masks[name][rows] = 1.0
    summands = {name: found[name].scaled(mask) for name, mask in masks.items()}
    if HALF in summands:  # constants stay visible with their caveat, and add to nothing
        summands[HALF] = summands[HALF].where(~opcodes.constants)
    return found, summands, fused


def _counted(
    counters: Counters, opcodes: Executed, precision: Precision, bindings: tuple[Binding, ...]
) -> tuple[Quantity, TextArray, Quantity | None]:
    """The work of a precision, launch by launch by the first way that the report has; which; the part of fused ones."""
    quantity = nothing = Quantity.missing(len(counters.seconds))
    chosen: TextArray = np.full(len(counters.seconds), None, dtype=object)
    all_fused: Quantity | None = None
    by_opcodes = opcodes.work.get(precision.id, nothing)
    # The opcodes come behind the last binding that counts all operations itself.
    own = [binding for binding in bindings if binding.source == "binding" and not binding.lower_bound]
    for binding in (*own, COUNTED, *(binding for binding in bindings if binding not in own)):
        if binding is COUNTED:
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
    if by_opcodes.origins:  # where opcodes say something else than the counters, a note tells
        by_counters = np.array([one is not None and one is not COUNTED for one in chosen], dtype=bool)
        quantity = told_apart(quantity, by_opcodes.where(by_counters), precision.label)
    return quantity, chosen, all_fused


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
