"""How busy the hardware was, launch by launch: what a report tells of a kernel whose operations nobody counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ncu_roofline.model.counters import Counters, first_known
from ncu_roofline.model.measurements import FloatArray, Origin, Quantity
from ncu_roofline.spec import Gauge, TensorActivity, Unit, Units
from ncu_roofline.spec.units import SHARES

_PERCENT = 0.01
_CLOCKS = (("lts__", "lts"), ("dram__", "dram"), ("fbpa__", "dram"), ("gpu__dram", "dram"))
# A share above this is no share: counters of several passes that don't fit together, or overflow.
_MOST = 1.5


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
    return np.where((share >= 0) & (share <= _MOST), share, np.nan)


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
