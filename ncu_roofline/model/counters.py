"""Counter values of launches on one chip, in whichever of ncu's forms the report holds them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ncu_roofline.chips import load_units
from ncu_roofline.chips.clocks import SM_DOMAIN
from ncu_roofline.chips.formula import WeightedSum, twin
from ncu_roofline.chips.plausible import load_limits
from ncu_roofline.chips.thresholds import LEAST_CLOCK, SHORT_LAUNCH, TELLING
from ncu_roofline.model.measurements import FloatArray, Origin, Quantity, TextArray

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]

NANOSECOND = 1e-9
KILOHERTZ = 1e3

_COUNT_SUFFIXES = (".sum", ".sum.per_second", ".sum.per_cycle_elapsed")
_SUMS_ALREADY = "sass__"  # counts of ncu itself: one number of that name
_PEAK_SUFFIX = ".sum.peak_sustained"
_SLICE_PEAK_SUFFIX = ".avg.peak_sustained"
_CLOCK_UNITS = ("sm", "smsp", "l1tex", "lts", "gpc", "dram")
_TIME = "gpu__time_duration"
_HIGHEST_MEMORY_CLOCK = "at the maximum memory clock"
_ATTRIBUTES = {
    "sm_count": "device__attribute_multiprocessor_count",
    "fbp_count": "device__attribute_fbp_count",
    "l2s_per_fbp": "device__attribute_num_l2s_per_fbp",
    "max_clock": "device__attribute_max_gpu_frequency_khz",
    "clock_rate": "device__attribute_clock_rate",
    "max_memory_clock": "device__attribute_max_mem_frequency_khz",
    "bus_width": "device__attribute_global_memory_bus_width",
}
_SM_FOR_L2 = "L2 clock not recorded, SM clock used"
_UNKNOWN_CLOCK = "SM clock not recorded, maximum clock used"
_SHORT_CLOCK = f"SM clock unknown (no launch from {SHORT_LAUNCH * 1e6:.0f} us on), maximum clock used"
_SLICES_OF_ATTRIBUTES = "L2 slices by device attributes, which on some GPUs count more than there are"
# An L2 clock that no cycles counter recorded follows from one counter given both per second and per cycle.
_L2_CLOCK_PAIR = ("lts__t_sectors.sum.per_second", "lts__t_sectors.avg.per_cycle_elapsed")


def _suffixes(counters: Iterable[str]) -> tuple[str, ...]:
    """The forms in which a report may hold these counters."""
    return ("",) if all(name.startswith(_SUMS_ALREADY) for name in counters) else _COUNT_SUFFIXES


def spellings(sums: Iterable[WeightedSum], peaks: Iterable[WeightedSum]) -> set[str]:
    """Every metric name that could give these sums and peaks, or the times and clocks that go with them."""
    names = {*_ATTRIBUTES.values(), *_L2_CLOCK_PAIR, *(name for pair in load_units().slice_pairs for name in pair)}
    names |= {f"{_TIME}{suffix}" for suffix in (".sum", ".avg", ".max")}
    names |= {
        f"{unit}__cycles_elapsed.{how}{per}" for unit in _CLOCK_UNITS for how in ("avg", "max") for per in ("", ".per_second")
    }
    peaked = {c + suffix for peak in peaks for c in peak.counters() for suffix in (_PEAK_SUFFIX, _SLICE_PEAK_SUFFIX)}
    return names | counted_as(sums) | peaked


def counted_as(sums: Iterable[WeightedSum]) -> set[str]:
    """Every metric name that could be a counter of these sums."""
    counters = {counter for one in sums for counter in one.counters()}
    counters |= {other for counter in counters if (other := twin(counter))}
    return {counter + suffix for counter in counters for suffix in _suffixes([counter])}


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


@dataclass(frozen=True)
class Clock:
    """A clock in Hz, launch by launch, and a note on the launches where another one stands in."""

    values: FloatArray
    stood_in: Mask
    note: str

    def noted(self, peak: Quantity) -> Quantity:
        """What was worked out from the clock, with the note where it belongs."""
        return peak.with_note(self.stood_in, self.note)


class Counters:
    """Values of counters, clocks and times over some launches of one chip; SI units, NaN where the report has none.

    ``devices`` are the names of the GPUs: clocks of short launches are taken from longer ones of the same GPU.  ``slices`` has
    the number of L2 slices of a GPU by its name, where it is known.
    """

    def __init__(
        self,
        columns: Mapping[str, FloatArray],
        count: int,
        devices: TextArray | None = None,
        slices: Mapping[str, int] | None = None,
    ) -> None:
        self._columns = columns
        self._missing = np.full(count, np.nan)
        self._devices = devices if devices is not None else np.full(count, "", dtype=object)
        self.seconds = self._seconds()
        self.sm_count = self._attribute("sm_count")
        self.slices, self._guessed_slices = self._count_slices(slices or {})
        self.clock_max = first_known(*(self._max_clock(key) for key in ("max_clock", "clock_rate")))
        self.memory_clock_max = self._max_clock("max_memory_clock")
        self._clocks: dict[str, Clock] = {}
        self.profiled_clock = self._trusted(self._rate_of(SM_DOMAIN))
        self.memory_clock = self.clock("dram").values / self.memory_clock_max

    def has(self, name: str) -> bool:
        """Whether some launch may have this metric."""
        return name in self._columns

    def metric(self, name: str) -> FloatArray:
        """One metric as the report has it."""
        return self._column(name)

    def _column(self, name: str) -> FloatArray:
        return self._columns.get(name, self._missing)

    def _attribute(self, key: str) -> FloatArray:
        """A count, width or clock of the GPU; no GPU has 0 of them or less, so such a value is unknown."""
        values = self._column(_ATTRIBUTES[key])
        return np.where(np.isfinite(values) & (values > 0), values, np.nan)

    def _max_clock(self, key: str) -> FloatArray:
        return known_clock(self._attribute(key) * KILOHERTZ)

    def _seconds(self) -> FloatArray:
        times = [self._column(_TIME + suffix) * NANOSECOND for suffix in (".sum", ".avg", ".max")]
        for how in ("avg", "max"):
            cycles, rate = self._column(f"sm__cycles_elapsed.{how}"), self._column(f"sm__cycles_elapsed.{how}.per_second")
            times.append(cycles / known_clock(rate))
        found = first_known(*times)
        return np.where(np.isfinite(found) & (found > 0), found, np.nan)

    def _count_slices(self, known: Mapping[str, int]) -> tuple[FloatArray, Mask]:
        """L2 slices, and where the number is but the product of device attributes."""
        counted, most = [], load_limits().slices
        for total, average in load_units().slice_pairs:
            if total in self._columns and average in self._columns:
                with np.errstate(divide="ignore", invalid="ignore"):
                    quotient = self._columns[total] / self._columns[average]
                counted.append(np.where((quotient >= 1) & (quotient <= most), np.round(quotient), np.nan))
        found = first_known(self._missing, *counted, np.array([known.get(_model(str(name)), np.nan) for name in self._devices]))
        for name in dict.fromkeys(self._devices):  # a GPU has as many in every launch
            mine = self._devices == name
            if np.isnan(found[mine]).any() and not np.isnan(found[mine]).all():
                found = np.where(mine & np.isnan(found), np.nanmedian(found[mine]), found)
        attributes = self._attribute("fbp_count") * self._attribute("l2s_per_fbp")
        return first_known(found, attributes), np.isnan(found) & ~np.isnan(attributes)

    def clock(self, unit: str) -> Clock:
        """The clock of a unit (sm, l1tex, lts, dram) while profiled."""
        if unit not in self._clocks:
            self._clocks[unit] = self._find_clock(unit)
        return self._clocks[unit]

    def _trusted(self, clock: FloatArray) -> FloatArray:
        """A clock with that of longer launches of the same GPU for short ones, NaN where there are none."""
        short = self.seconds < SHORT_LAUNCH
        if not short.any():
            return clock
        trusted = np.where(short, np.nan, clock)
        for name in dict.fromkeys(self._devices[short]):
            with np.errstate(invalid="ignore"):  # a launch of unknown time is not known to be longer
                mine = (self._devices == name) & np.isfinite(trusted) & (self.seconds > 0)
            if mine.any():
                usual = np.average(trusted[mine], weights=self.seconds[mine])
                trusted = np.where((self._devices == name) & short & np.isfinite(clock), usual, trusted)
        return trusted

    def _rate_of(self, units: Sequence[str]) -> FloatArray:
        # As the report gives them: cycles and time of one pass; else elapsed cycles / duration, which may be of different ones.
        recorded = [self._column(f"{unit}__cycles_elapsed.{how}.per_second") for how in ("avg", "max") for unit in units]
        quotients = [self._column(f"{unit}__cycles_elapsed.{how}") / self.seconds for unit in units for how in ("avg", "max")]
        return first_known(*map(known_clock, (*recorded, *quotients)))

    def elapsed_cycles(self) -> FloatArray:
        """Cycles of the SM clock in the run time: what stands in where nobody counted them."""
        return self.profiled_clock * self.seconds

    def _find_clock(self, unit: str) -> Clock:
        if unit in SM_DOMAIN:
            gaps = np.isnan(self.profiled_clock) & ~np.isnan(self.clock_max)
            short = gaps & (self.seconds < SHORT_LAUNCH)
            note = _SHORT_CLOCK if gaps.any() and bool(short[gaps].all()) else _UNKNOWN_CLOCK
            return Clock(first_known(self.profiled_clock, self.clock_max), gaps, note)
        own = self._rate_of((unit,))
        if unit == "dram":
            return Clock(self._trusted(own), np.zeros(len(own), dtype=bool), "")
        rate, per_cycle = (self._column(name) for name in _L2_CLOCK_PAIR)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self._trusted(first_known(own, known_clock(rate / (per_cycle * self.slices))))
        sm = self.clock("sm").values
        return Clock(first_known(found, sm), np.isnan(found) & ~np.isnan(sm), _SM_FOR_L2)

    def count(self, formula: WeightedSum, source: str, note: str, lower_bound: bool = False) -> Quantity:
        """The sum of counters over the whole launch; the first form in which the report holds all of its counters."""
        result = Quantity.missing(len(self.seconds))
        for names in (formula.counters(), tuple(twin(counter) or counter for counter in formula.counters())):
            for suffix in _suffixes(names):
                metrics = [name + suffix for name in names]
                if all(metric in self._columns for metric in metrics):
                    origin = Origin(source, ", ".join(metrics), note, lower_bound)
                    result = result.filled(
                        Quantity.of(self._total(formula, dict(zip(formula.counters(), metrics, strict=True)), suffix), origin)
                    )
                if not np.isnan(result.values).any():
                    return result
        return result

    def _total(self, formula: WeightedSum, metric_of: Mapping[str, str], suffix: str) -> FloatArray:
        total = formula.evaluate(lambda counter: self._column(metric_of[counter]))
        if suffix == ".sum.per_second":
            total = total * self.seconds
        elif suffix == ".sum.per_cycle_elapsed":
            unit = formula.counters()[0].partition("__")[0]
            rate = first_known(self._rate_of((unit,)), self.clock(unit).values)  # cycles that elapsed, whatever the clock was
            total = total * rate * self.seconds
        # A counter that overflowed or was not collected comes as NaN or infinity, a multi-pass difference below zero.
        return np.where(np.isfinite(total) & (total >= 0), total, np.nan)

    def peak(self, formula: WeightedSum, clock_unit: str, source: str) -> Quantity:
        """Peak per second: the counters' own sustained peaks per cycle, as the report records them, times the clock."""
        clock = self.clock(clock_unit)
        result = Quantity.missing(len(self.seconds))
        for suffix, instances in ((_PEAK_SUFFIX, 1.0), (_SLICE_PEAK_SUFFIX, self.slices)):
            metrics = [counter + suffix for counter in formula.counters()]
            if suffix == _SLICE_PEAK_SUFFIX and not all(name.startswith("lts__") for name in metrics):
                continue  # only of L2 slices is the number of instances known
            if all(metric in self._columns for metric in metrics):
                per_cycle = formula.evaluate(lambda counter, form=suffix: self._column(counter + form))  # type: ignore[misc]
                values = per_cycle * instances * clock.values
                values = np.where(np.isfinite(values) & (values > 0), values, np.nan)
                result = result.filled(clock.noted(Quantity.of(values, Origin(source, ", ".join(metrics)))))
        return result

    def per_sm(self, per_cycle: float) -> Quantity:
        """Peak per second of ``per_cycle`` operations or bytes per SM and cycle (a data-sheet figure)."""
        clock = self.clock("sm")
        origin = Origin("architecture", f"{per_cycle:g} per SM and cycle")
        return clock.noted(Quantity.of(per_cycle * self.sm_count * clock.values, origin))

    def per_slice(self, per_cycle: float) -> Quantity:
        """Peak per second of ``per_cycle`` bytes per L2 slice and cycle."""
        clock = self.clock("lts")
        origin = Origin("architecture", f"{per_cycle:g} B per L2 slice and cycle")
        found = clock.noted(Quantity.of(per_cycle * self.slices * clock.values, origin))
        return found.with_note(self._guessed_slices, _SLICES_OF_ATTRIBUTES)

    def per_bus_bit(self, per_cycle: float, reached: Quantity) -> Quantity:
        """Peak per second of ``per_cycle`` bytes per bit of the memory bus and cycle, at the memory clock.

        Where that was not recorded the peak that was ``reached`` in part, else that at the highest clock: boards run below it.
        Recorded memory clocks are in the unit of the attribute for the highest one (26 reports, HBM2 to GDDR6X: 0.96 to 1.07).
        """
        bus = self._attribute("bus_width")

        def at(clock: FloatArray, name: str, note: str) -> Quantity:
            values = per_cycle * clock * bus
            origin = Origin("architecture", f"{name}, {_ATTRIBUTES['bus_width']}", note)
            return Quantity.of(np.where(values > 0, values, np.nan), origin)

        recorded = at(self.clock("dram").values, "dram__cycles_elapsed.avg.per_second", "")
        highest = at(self.memory_clock_max, _ATTRIBUTES["max_memory_clock"], _HIGHEST_MEMORY_CLOCK)
        return recorded.filled(reached).filled(highest)

    def peak_reached(self, moved: Quantity, share: Quantity) -> Quantity:
        """Peak bytes per second from the bytes ``moved`` and the ``share`` (a ratio) of the peak that they were.

        Not of short launches, whose time is launching as well, nor where so little was moved that its share has few digits.
        """
        usable = (self.seconds >= SHORT_LAUNCH) & (share.values >= TELLING) & ~moved.is_lower_bound()
        with np.errstate(divide="ignore", invalid="ignore"):
            peak = np.where(usable, moved.values / self.seconds / share.values, np.nan)
        metrics = ", ".join(dict.fromkeys(origin.metrics for origin in (*moved.origins, *share.origins)))
        return Quantity.of(peak, Origin("derived", metrics, "bytes per second / share of the peak"))


def _model(device: str) -> str:
    """The name of a model of GPU as data files write it."""
    return device.removeprefix("NVIDIA ").removeprefix("GeForce ").strip()


def known_clock(values: FloatArray) -> FloatArray:
    """Clocks in Hz, NaN for what can be none, so that another candidate stands in."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(values) & (values >= LEAST_CLOCK), values, np.nan)


def first_known(*candidates: FloatArray) -> FloatArray:
    """Element by element the first candidate that is not NaN."""
    result = candidates[0]
    for candidate in candidates[1:]:
        if not np.isnan(result).any():
            break
        result = np.where(np.isnan(result), candidate, result)
    return result
