"""What counts as work: each precision on its own, and the composite of kernels that keep several pipes busy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ncu_roofline.model.demand import Demand, by_pipe, demands
from ncu_roofline.model.known import precisions_of
from ncu_roofline.model.measurements import FloatArray, IntArray, Measurements, Origin, Quantity, TextArray
from ncu_roofline.model.roofs import RoofValues
from ncu_roofline.spec import Precision, Spec

MIXED = "mixed"
# Below this share of a kernel's work a second pipe is noise (an index computed in floating point, say), not a mixed kernel.
MIXED_SHARE = 0.01


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
    fused = m.fused[precision.id].values if precision.id in m.fused else np.full(len(m), np.nan)
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
        metrics = ", ".join(dict.fromkeys(origin.metrics for one in quantities for origin in one.origins[:1]))
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
