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
    with np.errstate(invalid="ignore"):
        active = (m.tensor_active >= TENSOR_ACTIVE) | m.tensor_gaps
    if not active.any():
        return active
    some, every = np.zeros(count, dtype=bool), np.ones(count, dtype=bool)
    chips = {one: np.array([other == one for other in m.capability]) for one in dict.fromkeys(m.capability)}
    for precision in spec.precisions:
        if precision.kind != "tensor" or (precision.part_of and not precision.disjoint):
            continue
        values = values_of(m.work, precision.id, count)
        with np.errstate(invalid="ignore"):
            some |= values > 0
        for chip, mine in chips.items():
            known = spec.read_as(chip)
            if known and spec.bindings(precision, known.compute_capability):
                every &= np.isfinite(values) | ~mine
    return active & ~some & ~every
