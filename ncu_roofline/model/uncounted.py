"""Launches whose tensor cores did work that nobody counted: no number of theirs may look complete."""

from __future__ import annotations

import numpy as np

from ncu_roofline.model.measurements import Measurements
from ncu_roofline.model.utilisation import values_of
from ncu_roofline.spec import Spec
from ncu_roofline.verdict import TENSOR_ACTIVE


def uncounted_tensor(m: Measurements, spec: Spec) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Launches whose tensor pipe was active although nobody counted what it did.

    Counted is what has operations of some type, or none in all types that the chip has: GA100 and GH100 run a few plain FP16
    instructions (HFMA2.MMA) there, so an active pipe without any operation is no contradiction.
    """
    count = len(m)
    tensor = [p for p in spec.precisions if p.kind == "tensor" and (not p.part_of or p.disjoint)]
    some, every = np.zeros(count, dtype=bool), np.ones(count, dtype=bool)
    for precision in tensor:
        values = values_of(m.work, precision.id, count)
        has = np.array([bool(spec.bindings(precision, one)) for one in m.capability], dtype=bool)
        with np.errstate(invalid="ignore"):
            some |= values > 0
        every &= np.isfinite(values) | ~has
    with np.errstate(invalid="ignore"):
        active = m.tensor_active >= TENSOR_ACTIVE
    return (active | m.tensor_gaps) & ~some & ~every
