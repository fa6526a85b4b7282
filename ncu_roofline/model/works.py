"""What counts as work: each precision on its own, and the composite of kernels that keep several pipes busy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

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
    """Work per precision, in the spec's order, and the composite last.  ``compute`` has the roofs by roof id."""
    known = precisions_of(m, spec)
    works = [_work(m, precision, quantity, compute) for precision in known if (quantity := m.work.get(precision.id))]
    summands = [_work(m, precision, quantity, compute) for precision in known if (quantity := m.summands.get(precision.id))]
    mixed = _mixed(summands)
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


def _mixed(leaves: list[Work]) -> Work | None:
    """The composite of launches that use several pipes: work summed, under the roof at which the busiest pipe is full.

    If pipe p needs at least work_p / peak_p seconds, the launch needs at least the largest of these, so the roof for the sum
    is sum(work) / max(work_p / peak_p).
    """
    if len(leaves) < 2:
        return None
    stack = np.nan_to_num(np.vstack([work.quantity.values for work in leaves]))
    total = stack.sum(axis=0)
    second = np.sort(stack, axis=0)[-2]
    mixed = (total > 0) & (second >= MIXED_SHARE * total)
    if not mixed.any():
        return None
    values = np.where(mixed, total, np.nan)
    # Which precisions take part differs by launch; the text is built once per combination.
    patterns, inverse = np.unique(stack[:, :] > 0, axis=1, return_inverse=True)
    origins = []
    for pattern in patterns.T:
        used = [work for work, on in zip(leaves, pattern, strict=True) if on]
        metrics = ", ".join(dict.fromkeys(origin.metrics for work in used for origin in work.quantity.origins[:1]))
        origins.append(Origin("binding", metrics, "sum of " + " + ".join(work.precision for work in used)))
    choice = np.where(mixed, np.asarray(inverse).reshape(-1), -1).astype(np.int64)
    roof, busiest = _busiest(stack, leaves, total)
    roof_ids = np.array([work.roof_id[0] for work in leaves], dtype=object)[busiest]
    return Work(MIXED, "flop", Quantity(values, choice, tuple(origins)), roof, roof_ids, np.full(len(total), np.nan))


def _busiest(stack: FloatArray, leaves: list[Work], total: FloatArray) -> tuple[RoofValues, IntArray]:
    with np.errstate(divide="ignore", invalid="ignore"):
        busy = {}
        for basis in ("value", "theoretical"):
            seconds = stack / np.vstack([getattr(work.roof, basis) for work in leaves])
            # A pipe that works without a known roof leaves the composite without one.
            seconds = np.where(stack > 0, seconds, 0.0)
            busy[basis] = seconds
        value = total / busy["value"].max(axis=0)
        theoretical = total / busy["theoretical"].max(axis=0)
    busiest = np.argmax(np.nan_to_num(busy["value"]), axis=0)
    measured = np.vstack([work.roof.measured for work in leaves])[busiest, np.arange(stack.shape[1])]
    clean = [np.where(np.isfinite(one), one, np.nan) for one in (value, theoretical)]
    return RoofValues(clean[0], clean[1], measured), busiest
