"""What a kernel asks of the compute pipes: the seconds that each would need alone, precision by precision.

Precisions that share a pipe (FP16 and FP32 from 8.6 on; all tensor types) add up there.  A precision that was counted by
instruction family as well (`mma.sync` beside `wgmma`, FP16 beside FP32 accumulators) is held against each family's own roof.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ncu_roofline.model.known import precisions_of
from ncu_roofline.model.measurements import FloatArray, Measurements, Quantity, TextArray
from ncu_roofline.model.roofs import RoofValues
from ncu_roofline.spec import Precision, Spec

# Families that make up less or more of the total than this were not all counted.
_COMPLETE = 0.01


@dataclass(frozen=True)
class Demand:
    """Of one precision, an element per launch: the ``pipe`` it runs on, seconds at its ``roof_id``'s peak rate.

    ``seconds`` is work / peak; ``mix_seconds`` what its instructions need as they are, fused or not (Yang, Kurth, Williams
    2019, equation 7); both 0 where there is no work, NaN where there is work without a known roof.
    """

    precision: Precision
    pipe: TextArray
    roof_id: str
    work: FloatArray
    seconds: FloatArray
    mix_seconds: FloatArray
    theoretical: FloatArray
    measured: np.ndarray[tuple[int], np.dtype[np.bool_]]


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
    together = sum((np.nan_to_num(m.work[p.id].values) for p in families), np.zeros(len(m)))
    with np.errstate(invalid="ignore"):
        complete = (whole > 0) & (np.abs(together - whole) <= _COMPLETE * whole)
    split = [_demand(m, p, np.where(complete, m.work[p.id].values, 0.0), compute) for p in families]
    return [_demand(m, precision, np.where(complete, 0.0, whole), compute), *split]


def _demand(m: Measurements, precision: Precision, work: FloatArray, compute: Mapping[str, RoofValues]) -> Demand:
    roof_id = precision.roof_ids()[0]
    roof = compute.get(roof_id, RoofValues.missing(len(m)))
    fused = m.fused[precision.id].values if precision.id in m.fused else work
    # Of the operations F are fused; an instruction that is not fused takes as long as one that does two.
    slots = np.where(np.isnan(fused), work, 2 * work - fused)
    return Demand(
        precision=precision,
        pipe=_pipes(m, precision),
        roof_id=roof_id,
        work=work,
        seconds=_seconds(work, roof.value),
        mix_seconds=_seconds(slots, roof.value),
        theoretical=_seconds(work, roof.theoretical),
        measured=roof.measured,
    )


def _seconds(work: FloatArray, peak: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(work > 0, work / peak, 0.0)


def _pipes(m: Measurements, precision: Precision) -> TextArray:
    known = {one: precision.pipe(one) for one in dict.fromkeys(m.capability)}
    result = np.empty(len(m), dtype=object)
    result[:] = [known[one] for one in m.capability]
    return result


def by_pipe(found: list[Demand], count: int, what: str = "seconds") -> dict[str, FloatArray]:
    """Pipe id -> seconds over all of its precisions (``what``: seconds, mix_seconds or theoretical), per launch."""
    result: dict[str, FloatArray] = {}
    for demand in found:
        values = getattr(demand, what)
        for pipe in dict.fromkeys(demand.pipe):
            mine = np.where(demand.pipe == pipe, values, 0.0)
            result[pipe] = result.get(pipe, np.zeros(count)) + mine
    return result
