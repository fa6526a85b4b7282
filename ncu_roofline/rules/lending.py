"""What the model knows of a launch from the whole report, lent to our rules, which by themselves see one launch's counters.

So their numbers are those of the tables also where a report tells more: clocks of short launches by longer ones, work by opcode
counts, conversions taken off, charts of other sections.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ncu_roofline.model.measurements import Measurements, Quantity
from ncu_roofline.spec import load_spec, load_units

Known = dict[object, object]
"""By (name of a rule's method, id or None): what it would work out."""


@dataclass(frozen=True)
class Counted:
    """Operations or bytes, the metrics that gave them, a note on them, ids not to be added besides, and the part of FMAs."""

    total: float
    metrics: tuple[str, ...]
    note: str = ""
    includes: tuple[str, ...] = ()
    fused: float | None = None


class Lender:
    """The numbers of all launches of some measurements, taken apart once."""

    def __init__(self, m: Measurements) -> None:
        spec = load_spec()
        self._counted = {("work", p.id): _Column(m.work.get(p.id)) for p in spec.precisions}
        self._counted |= {("traffic", level.id): _Column(m.traffic.get(level.id)) for level in spec.levels}
        self._fused = {name: _known(quantity) for name, quantity in m.fused.items()}
        self._adding = {name: _known(quantity) for name, quantity in m.summands.items()}
        self._flops = [p.id for p in spec.precisions if p.unit == "flop" and (not p.part_of or p.disjoint)]
        self._roofs = {("compute_roof", p.id): _known(m.compute.get(p.roof_ids()[0])) for p in spec.precisions}
        self._roofs |= {("bandwidth_roof", level.id): _known(m.bandwidth.get(level.id)) for level in spec.levels}
        self._busy = {("busy", unit.id): _known(m.units.get(unit.id)) for unit in load_units().units}
        self._busy |= {("rate_share", level.id): _known(m.shares.get(level.id)) for level in spec.levels}
        self._gaps = m.tensor_gaps.tolist()
        self._active = [share if math.isfinite(share) else None for share in m.tensor_active.tolist()]

    def of(self, row: int) -> Known:
        """What is known of the launch at position ``row``, None for what is missing; a new dictionary."""
        known: Known = {key: _at(values, row) for key, values in (*self._roofs.items(), *self._busy.items())}
        twice = tuple(name for name in self._flops if _at(self._adding.get(name, ()), row) is None)
        for key, column in self._counted.items():
            is_work = key[0] == "work"
            fused = _at(self._fused.get(key[1], ()), row) if is_work else None
            known[key] = column.at(row, twice if is_work else (), fused)
        known["tensor_gap", None], known["tensor_active", None] = self._gaps[row], self._active[row]
        return known


class _Column:
    """One quantity of all launches."""

    def __init__(self, quantity: Quantity | None) -> None:
        self._values = _known(quantity)
        self._choice = quantity.choice.tolist() if quantity else []
        self._origins = [(tuple(one.metrics.split(", ")), one.note) for one in quantity.origins] if quantity else []

    def at(self, row: int, twice: tuple[str, ...], fused: float | None) -> Counted | None:
        value = _at(self._values, row)
        if value is None or self._choice[row] < 0:
            return None
        metrics, note = self._origins[self._choice[row]]
        return Counted(value, metrics, note, twice, fused)


def _known(quantity: Quantity | None) -> tuple[float | None, ...]:
    """The values, None where unknown."""
    if quantity is None:
        return ()
    return tuple(value if math.isfinite(value) else None for value in quantity.values.tolist())


def _at(values: tuple[float | None, ...], row: int) -> float | None:
    return values[row] if values else None
