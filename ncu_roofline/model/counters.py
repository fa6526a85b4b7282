"""Counters of a report as columns, and which metrics may hold them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ncu_roofline.chips import Architecture, load_units
from ncu_roofline.chips.fields import WeightedSum
from ncu_roofline.chips.formulas import (
    ATTRIBUTE,
    DURATION,
    L2_CLOCK_PAIR,
    PEAK_FORM,
    SLICE_PEAK_FORM,
    Counters,
    count_forms,
    slice_pairs,
    twin,
)
from ncu_roofline.chips.tables import load_limits
from ncu_roofline.model.numbers import Columns, FloatArray

_CLOCK_UNITS = ("sm", "smsp", "l1tex", "lts", "gpc", "dram")
_ATTRIBUTES = (
    *("multiprocessor_count", "fbp_count", "num_l2s_per_fbp", "max_gpu_frequency_khz", "clock_rate", "max_mem_frequency_khz"),
    "global_memory_bus_width",
)


class ColumnCounters(Columns, Counters):
    """Counters of many launches."""


def counters_of(
    columns: Mapping[str, FloatArray], count: int, architecture: Architecture | None, capability: tuple[int, int], device: str
) -> Counters:
    """The counters of ``count`` launches on one model of GPU, of which the architecture may be that of another chip."""
    nothing = np.full(count, np.nan)
    return ColumnCounters(
        lambda name: columns.get(name, nothing),
        columns.__contains__,
        load_units(),
        architecture,
        capability,
        device,
        load_limits().slices,
    )


def spellings(sums: Iterable[WeightedSum], peaks: Iterable[WeightedSum]) -> set[str]:
    """Every metric name that could give these sums and peaks, or the times and clocks that go with them."""
    names = {*L2_CLOCK_PAIR, *(name for pair in slice_pairs(load_units().slices) for name in pair)}
    names |= {ATTRIBUTE + name for name in _ATTRIBUTES} | {DURATION + form for form in (".sum", ".avg", ".max")}
    names |= {
        f"{unit}__cycles_elapsed.{how}{per}" for unit in _CLOCK_UNITS for how in ("avg", "max") for per in ("", ".per_second")
    }
    peaked = {c + form for peak in peaks for c in peak.counters() for form in (PEAK_FORM, SLICE_PEAK_FORM)}
    return names | counted_as(sums) | peaked


def counted_as(sums: Iterable[WeightedSum]) -> set[str]:
    """Every metric name that could be a counter of these sums."""
    counters = {counter for one in sums for counter in one.counters()}
    counters |= {other for counter in counters if (other := twin(counter))}
    return {counter + form for counter in counters for form in count_forms([counter])}


def as_floats(column: Sequence[object]) -> FloatArray:
    """A metric's values as floats; missing ones and text are NaN, integers beyond the range of a float infinite."""
    try:
        if str not in set(map(type, column)):  # NumPy would read a text of digits as a number
            return np.array(column, dtype=np.float64)  # None becomes NaN
    except (TypeError, ValueError, OverflowError):
        pass
    return np.array([as_float(value) for value in column], dtype=np.float64)


def as_float(value: object) -> float:
    """One value, as `as_floats` reads a column of them."""
    if not isinstance(value, (int, float)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)
