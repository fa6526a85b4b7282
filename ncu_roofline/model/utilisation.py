"""How busy the hardware was, launch by launch: what a report tells of a kernel whose operations nobody counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from ncu_roofline.chips import Gauge, Spec, TensorActivity, Units
from ncu_roofline.chips.thresholds import MOST
from ncu_roofline.chips.units import ACTIVE, ELAPSED, SHARES_ACTIVE, share_names
from ncu_roofline.chips.verdict import ABOVE, TENSOR_ACTIVE
from ncu_roofline.model.counters import Counters, first_known
from ncu_roofline.model.measurements import FloatArray, Measurements, Origin, Quantity

_PERCENT = 0.01
TENSOR_PIPE = "tensor"
"""The gauge of the tensor pipe's activity, of the cycles that elapsed or that were active, as the report has it."""
OF_ACTIVE = "of active cycles: how many of all these are was not collected"
"""The note on a share that may be lower over the whole launch."""


def uncounted_tensor(m: Measurements, spec: Spec) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Launches whose tensor pipe was active although nobody counted what it did.

    Counted is what has operations of some type, or none in all types that the chip has: GA100 and GH100 run a few plain FP16
    instructions (HFMA2.MMA) there, so an active pipe without any operation is no contradiction.
    """
    count = len(m)
    with np.errstate(invalid="ignore"):
        active = (values_of(m.gauges, TENSOR_PIPE, count) >= TENSOR_ACTIVE) | m.tensor_gaps
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


class Shares:
    """Shares of the peak (ratios) that percentages of a report give, by the names of metrics without suffix."""

    def __init__(self, counters: Counters, wanted: Units, capability: tuple[int, int]) -> None:
        self._counters, self._wanted, self._capability = counters, wanted, capability
        cycles = [counters.metric(name) for name in ELAPSED]
        elapsed = first_known(*(np.where(one > 0, one, np.nan) for one in cycles), counters.elapsed_cycles())
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = {how: counters.metric(f"{ACTIVE}.{how}") / elapsed for how in ("avg", "min", "max")}
        # Cycles of two passes differ by a few; a share that is clearly more than all is none.
        self.active = {how: np.where((one >= 0) & (one <= ABOVE), np.minimum(one, 1.0), np.nan) for how, one in shares.items()}
        """Of the elapsed cycles those in which SMs were active: the mean over them, the least and the most."""

    def of(self, name: str) -> Quantity:
        """The share that a metric gives over the launch; of active cycles where nobody knows how many of all these are."""
        found = Quantity.missing(len(self._counters.seconds))
        for metric in filter(self._counters.has, share_names(name)):
            share = _share(self._counters.metric(metric)) * self._wanted.scale(metric, self._capability)
            if metric.endswith(SHARES_ACTIVE):
                derived = Origin("derived", metric, "of active cycles, times their share of all")
                found = found.filled(Quantity.of(share * self.active["avg"], derived))
                found = found.filled(Quantity.of(share, Origin("derived", metric, OF_ACTIVE)))
            else:
                found = found.filled(Quantity.of(share, Origin("binding", metric)))
        return found

    def largest(self, names: Iterable[str]) -> Quantity:
        """The largest share among metrics; each launch names the one that gave it."""
        read = [quantity for quantity in map(self.of, names) if quantity.origins]
        if len(read) < 2:
            return read[0] if read else Quantity.missing(len(self._counters.seconds))
        chosen = np.argmax(np.nan_to_num(np.vstack([quantity.values for quantity in read]), nan=-1.0), axis=0)
        found = Quantity.missing(len(chosen))
        for number, quantity in enumerate(read):
            found = found.filled(quantity.scaled(np.where(chosen == number, 1.0, np.nan)))
        return found

    def added(self, names: Iterable[str]) -> Quantity:
        """The sum of shares that add up; a lower bound where some are missing."""
        read = [self.of(name) for name in names]
        if len(read) == 1:
            return read[0]
        values = np.vstack([quantity.values for quantity in read])
        total = np.where(np.isfinite(values).any(axis=0), np.nansum(values, axis=0), np.nan)
        metrics = ", ".join(origin.metrics for quantity in read for origin in quantity.origins[:1])
        whole = np.where(np.isfinite(values).all(axis=0), total, np.nan)
        found = Quantity.of(whole, Origin("derived", metrics, "sum of percentages"))
        return found.filled(Quantity.of(total, Origin("derived", metrics, "lower bound: percentage of one direction", True)))


def units_of(shares: Shares, wanted: Units) -> dict[str, Quantity]:
    """Unit id -> share of its peak (ratio) over the launch, of the units that the report tells anything of."""
    found = {}
    for unit in wanted.units:
        share = shares.largest(unit.metrics)
        for names in unit.parts:
            share = share.filled(shares.added(names))
        found[unit.id] = share
    return {name: share for name, share in found.items() if np.isfinite(share.values).any()}


def rates_of(counters: Counters, wanted: Units, capability: tuple[int, int]) -> dict[str, Quantity]:
    """Level id -> bytes per second as a share (ratio) of the level's bandwidth roof at the clock it ran at."""
    found: dict[str, Quantity] = {}
    for rate in wanted.rates:
        if rate.applies(capability) and all(map(counters.has, rate.metrics)):
            share = np.sum([_share(counters.metric(name)) for name in rate.metrics], axis=0)
            quantity = Quantity.of(share, Origin("derived", ", ".join(rate.metrics), "percent of peak"))
            found[rate.level] = found[rate.level].filled(quantity) if rate.level in found else quantity
    return found


def gauges_of(counters: Counters, wanted: Units, capability: tuple[int, int], shares: Shares) -> dict[str, Quantity]:
    """Gauge or count id -> its value, of those that the report holds; shares of active cycles as active_avg, _min and _max."""
    found = {gauge.id: _gauge(counters, gauge, wanted, capability) for gauge in (*wanted.gauges, *wanted.counts)}
    origin = Origin("derived", f"{ACTIVE} / elapsed cycles")
    found |= {f"active_{how}": Quantity.of(values, origin) for how, values in shares.active.items()}
    return {name: quantity for name, quantity in found.items() if np.isfinite(quantity.values).any()}


def tensor_activity(shares: Shares, wanted: TensorActivity) -> Quantity:
    """Share of cycles (ratio) in which the tensor pipe was active."""
    found = Quantity.missing(len(shares.active["avg"]))
    for names in wanted.whole:
        found = found.filled(shares.largest(names).scaled(np.where(np.isfinite(shares.of(names[0]).values), 1.0, np.nan)))
    return found.filled(shares.largest(wanted.parts))


def _share(percent: FloatArray) -> FloatArray:
    share = percent * _PERCENT
    return np.where((share >= 0) & (share <= MOST), share, np.nan)


def _gauge(counters: Counters, gauge: Gauge, wanted: Units, capability: tuple[int, int]) -> Quantity:
    found = Quantity.missing(len(counters.seconds))
    for metric in gauge.metrics:
        if counters.has(metric):
            values = counters.metric(metric) * gauge.scale * wanted.scale(metric, capability)
            usable = np.where(np.isfinite(values) & (values >= 0) & (values <= gauge.most), values, np.nan)
            found = found.filled(Quantity.of(usable, Origin("binding", metric)))
    return found


def values_of(quantities: Mapping[str, Quantity], name: str, count: int) -> FloatArray:
    """The values of one of them; NaN for all launches where it is not there."""
    return quantities[name].values if name in quantities else np.full(count, np.nan)
