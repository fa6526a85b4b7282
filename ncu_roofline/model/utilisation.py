"""How busy the hardware was, launch by launch: what a report tells of a kernel whose operations nobody counted."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ncu_roofline.chips import Spec
from ncu_roofline.chips.formulas import ACTIVE, Counters, uncounted
from ncu_roofline.model.measurements import FloatArray, Mask, Measurements, Origin, Quantity
from ncu_roofline.model.numbers import Columns

TENSOR_PIPE = "tensor"
"""The gauge of the tensor pipe's activity, of the cycles that elapsed or that were active, as the report has it."""


def uncounted_tensor(m: Measurements, spec: Spec) -> Mask:
    """Launches whose tensor pipe was active although nobody counted what it did."""
    activity = values_of(m.gauges, TENSOR_PIPE, len(m))
    chips = {one: np.array([other == one for other in m.capability]) for one in dict.fromkeys(m.capability)}
    works = []
    for precision in spec.precisions:
        if precision.kind == "tensor" and precision.adds:
            lacking = np.ones(len(m), dtype=bool)
            for chip, mine in chips.items():
                known = spec.read_as(chip)
                if known and spec.bindings(precision, known.compute_capability):
                    lacking &= ~mine
            values = values_of(m.work, precision.id, len(m))
            works.append(np.where(lacking & np.isnan(values), 0.0, values))
    found: Mask = uncounted(Columns, activity, m.tensor_gaps, works)
    return found


def usage_of(counters: Counters) -> dict[str, dict[str, Quantity]]:
    """What of the use of the hardware the report tells anything of, as fields of `Measurements`.

    ``units``: share of the peak over the launch by unit id; ``shares``: bytes per second as a share of the level's roof at the
    clock it ran at; ``gauges``: their values, and the share of active cycles as active_avg, _min and _max.
    """
    hardware, origin = counters.hardware, Origin("derived", f"{ACTIVE} / elapsed cycles")
    gauges = {gauge.id: counters.gauge(gauge) for gauge in (*hardware.gauges, *hardware.counts)}
    gauges |= {f"active_{how}": Quantity.of(counters.active(how), origin) for how in ("avg", "min", "max")}
    found = {
        "units": {unit.id: counters.busy(unit) for unit in hardware.units},
        "gauges": gauges,
    }
    known = {name: {one: q for one, q in of.items() if np.isfinite(q.values).any()} for name, of in found.items()}
    shares = {level: counters.rate_share(level) for level in dict.fromkeys(rate.level for rate in hardware.rates)}
    return {**known, "shares": {level: share for level, share in shares.items() if share.origins}}


def values_of(quantities: Mapping[str, Quantity], name: str, count: int) -> FloatArray:
    """The values of one of them; NaN for all launches where it is not there."""
    return quantities[name].values if name in quantities else np.full(count, np.nan)
