"""How busy the hardware was, launch by launch: what a report tells of a kernel whose operations nobody counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ncu_roofline.facts import Gauge, Spec, TensorActivity, Unit, Units
from ncu_roofline.facts.hardware import SHARES
from ncu_roofline.facts.thresholds import MOST
from ncu_roofline.facts.verdict import TENSOR_ACTIVE
from ncu_roofline.model.counters import Counters, first_known
from ncu_roofline.model.measurements import FloatArray, Measurements, Origin, Quantity

_PERCENT = 0.01
_CLOCKS = (("lts__", "lts"), ("dram__", "dram"), ("fbpa__", "dram"), ("gpu__dram", "dram"))


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


def units_of(counters: Counters, wanted: Units) -> dict[str, Quantity]:
    """Unit id -> share of its peak (ratio) over the launch, of the units that the report tells anything of."""
    found = {unit.id: _busiest_part(counters, unit) for unit in wanted.units}
    return {name: quantity for name, quantity in found.items() if quantity.origins}


def rates_of(counters: Counters, wanted: Units, capability: tuple[int, int]) -> dict[str, Quantity]:
    """Level id -> bytes per second as a share (ratio) of the level's bandwidth roof at the clock it ran at."""
    found: dict[str, Quantity] = {}
    for rate in wanted.rates:
        if rate.applies(capability) and counters.has(rate.metric):
            share = _share(counters.metric(rate.metric)) * counters.stretch(_clock_of(rate.metric))
            quantity = Quantity.of(share, Origin("derived", rate.metric, "percent of peak"))
            found[rate.level] = found[rate.level].filled(quantity) if rate.level in found else quantity
    return found


def gauges_of(counters: Counters, wanted: Units) -> dict[str, Quantity]:
    """Gauge id -> its value, of those that the report holds."""
    found = {gauge.id: _gauge(counters, gauge) for gauge in wanted.gauges}
    return {name: quantity for name, quantity in found.items() if quantity.origins}


def tensor_activity(counters: Counters, wanted: TensorActivity) -> FloatArray:
    """Share of cycles (ratio) in which the tensor pipe was active; NaN where unknown."""
    whole = [_share(counters.metric(name)) for name in wanted.spellings(wanted.whole) if counters.has(name)]
    parts = [_share(counters.metric(name)) for name in wanted.spellings(wanted.parts) if counters.has(name)]
    largest = np.fmax.reduce(parts) if parts else np.full(len(counters.seconds), np.nan)
    return first_known(*whole, largest)


def _busiest_part(counters: Counters, unit: Unit) -> Quantity:
    """The largest share among a unit's parts; each launch names the metric that gave it."""
    values, origins = [], []
    for metric in _present(counters, unit):
        values.append(_share(counters.metric(metric)) * counters.stretch(_clock_of(metric)))
        origins.append(Origin("binding", metric))
    if not values:
        return Quantity.missing(len(counters.seconds))
    stack = np.nan_to_num(np.vstack(values), nan=-1.0)
    choice = np.argmax(stack, axis=0)
    largest = np.max(stack, axis=0)
    known = largest >= 0
    return Quantity(np.where(known, largest, np.nan), np.where(known, choice, -1).astype(np.int64), tuple(origins))


def _present(counters: Counters, unit: Unit) -> Iterator[str]:
    for name in unit.metrics:
        yield from [name + suffix for suffix in SHARES if counters.has(name + suffix)][:1]


def _clock_of(metric: str) -> str:
    """The clock whose cycles a percentage is of."""
    return next((clock for start, clock in _CLOCKS if metric.startswith(start)), "sm")


def _share(percent: FloatArray) -> FloatArray:
    share = percent * _PERCENT
    return np.where((share >= 0) & (share <= MOST), share, np.nan)


def _gauge(counters: Counters, gauge: Gauge) -> Quantity:
    found = Quantity.missing(len(counters.seconds))
    for metric in gauge.metrics:
        if counters.has(metric):
            values = counters.metric(metric) * gauge.scale
            usable = np.where(np.isfinite(values) & (values >= 0) & (values <= gauge.most), values, np.nan)
            found = found.filled(Quantity.of(usable, Origin("binding", metric)))
    return found


def values_of(quantities: Mapping[str, Quantity], name: str, count: int) -> FloatArray:
    """The values of one of them; NaN for all launches where it is not there."""
    return quantities[name].values if name in quantities else np.full(count, np.nan)
