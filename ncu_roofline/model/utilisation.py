"""How busy the hardware was, launch by launch: what a report tells of a kernel whose operations nobody counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from ncu_roofline.facts import Gauge, Spec, TensorActivity, Unit, Units
from ncu_roofline.facts.hardware import SHARES
from ncu_roofline.facts.thresholds import MOST
from ncu_roofline.facts.verdict import TENSOR_ACTIVE
from ncu_roofline.model.counters import Counters, first_known
from ncu_roofline.model.measurements import FloatArray, Measurements, Origin, Quantity, TextArray

Mask = NDArray[np.bool_]
# Warp instructions of the instrumented pass: each is the sum over all opcodes or source lines; best first.
INSTRUMENTED = ("sass__inst_executed_per_opcode_with_modifier_all", "sass__inst_executed_per_opcode", "inst_executed")
HARDWARE = ("smsp__inst_executed.sum", "sm__inst_executed.sum")
REPLAY_METRICS = (*INSTRUMENTED, *HARDWARE)
# Passes of one launch differ by a few percent where its work depends on timing (atomics, spinning); half as much again is
# no such noise.
FACTOR = 1.5
_EQUAL = 1e-3  # two launches with the same hardware count, but for such noise
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


def foreign_counters(columns: Mapping[str, FloatArray], count: int) -> TextArray:
    """A sentence for each launch of one report whose hardware counters are not its own, "" for the others.

    ``columns``: `REPLAY_METRICS` as far as the report has them, ``count`` values each (NaN where missing).  More instructions
    in the instrumented pass than the hardware saw prove it.  Fewer don't: that pass leaves out functions that the kernel calls
    in other sections of the code.  Those launches are named only if the same hardware count stands at one of another size, too.
    """
    instrumented, hardware = (_first(columns, names, count) for names in (INSTRUMENTED, HARDWARE))
    with np.errstate(invalid="ignore"):
        known = (instrumented > 0) & (hardware >= 0)
        foreign = known & (instrumented > FACTOR * hardware)
        fewer = known & (hardware > FACTOR * instrumented)
        foreign |= fewer & _stands_elsewhere(instrumented, hardware, known)
    result: TextArray = np.full(count, "", dtype=object)
    result[foreign] = [_sentence(*pair) for pair in zip(hardware[foreign], instrumented[foreign], strict=True)]
    return result


def _first(columns: Mapping[str, FloatArray], names: tuple[str, ...], count: int) -> FloatArray:
    """The first of some metrics that each launch has."""
    found: FloatArray = np.full(count, np.nan)
    for name in names:
        if name in columns:
            found = np.where(np.isfinite(found), found, columns[name])
    return found


def _stands_elsewhere(instrumented: FloatArray, hardware: FloatArray, known: Mask) -> Mask:
    """Whether some other launch has the same hardware count although it executed another number of instructions."""
    order = np.flatnonzero(known)[np.argsort(hardware[known], kind="stable")]
    counts = hardware[order]
    larger = np.flatnonzero(np.diff(counts) > _EQUAL * counts[1:]) + 1  # equal counts stand side by side in this order
    result = np.zeros(len(hardware), dtype=bool)
    for run in np.split(order, larger):
        executed = instrumented[run]
        result[run] = bool(len(run)) and executed.max() > FACTOR * executed.min()
    return result


def _sentence(hardware: float, instrumented: float) -> str:
    return (
        f"the hardware counters do not belong to this launch: they saw {hardware:,.0f} warp instructions, and it executed "
        f"{instrumented:,.0f} (application replay can take one kernel's counters for another's; --replay-mode kernel does not)"
    )


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
