"""Traffic of all instructions in memory transactions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ncu_roofline.model.measurements import Measurements, Origin, Quantity
from ncu_roofline.spec import InstructionSpec

SHARED_KIND, L1, SHARED = "inst.shared", "l1", "shared"
WITHOUT_SHARED = "L1 transactions are sectors of 32 B, shared memory is not among them"


def in_transactions(m: Measurements, counted: InstructionSpec) -> dict[str, Quantity]:
    """Transactions of 32 bytes by level id.

    L1 contains shared memory as in Ding and Williams (2019): 4 transactions of 32 bytes for a wavefront of up to 128 bytes.
    Where the report has no wavefronts, or its L1 traffic is what a stock chart counts, L1 stays as it is; notes say which.
    """
    scale = np.full(len(m), 1 / counted.transaction)
    traffic = {level: quantity.scaled(scale) for level, quantity in m.traffic.items() if level != SHARED}
    if L1 in traffic:
        weight = counted.kind(SHARED_KIND).bytes / counted.transaction
        traffic[L1] = _with_shared(traffic[L1], m.transactions.get(SHARED_KIND, Quantity.missing(len(m))), weight)
    return traffic


def _with_shared(l1: Quantity, wavefronts: Quantity, weight: float) -> Quantity:
    """The sum, with an origin for every pair of origins that there is."""
    own = np.array([origin.source != "embedded" for origin in l1.origins] + [False])
    added = own[l1.choice] & np.isfinite(wavefronts.values)
    width = len(wavefronts.origins) + 1
    text = f"L1 transactions are sectors of 32 B and {weight:g} for each wavefront of shared loads and stores"
    origins = []
    for origin in l1.origins:
        alone = origin.note if origin.source == "embedded" else WITHOUT_SHARED
        origins.append(_noted(origin, alone))
        origins += [_noted(replace(origin, metrics=f"{origin.metrics}, {other.metrics}"), text) for other in wavefronts.origins]
    pairs = l1.choice * width + np.where(added, wavefronts.choice + 1, 0)
    values = np.where(added, l1.values + weight * wavefronts.values, l1.values)
    return Quantity(values, np.where(np.isnan(values), -1, pairs), tuple(origins))


def _noted(origin: Origin, note: str) -> Origin:
    return replace(origin, note="; ".join(dict.fromkeys(part for part in (origin.note, note) if part)))
