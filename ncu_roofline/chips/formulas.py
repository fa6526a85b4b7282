"""What the counters of launches say: clocks, sums of counters, peaks and roofs, and how full units were.

One text for two kinds of numbers.  The model calls it with columns, an element per launch (`numbers`); the rule generator puts
its source, without annotations, into the rules, where the same names stand for single numbers and Python may be 3.5: no
f-strings, nothing but the standard library.  What is unknown is NaN.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

from ncu_roofline.chips.verdict import ABOVE, COMPLETE, LEAST_CLOCK, MOST, SHORT_LAUNCH, TELLING, TENSOR_ACTIVE

ATTRIBUTE = "device__attribute_"
DURATION = "gpu__time_duration"
COUNT_FORMS = (".sum", ".sum.per_second", ".sum.per_cycle_elapsed")
SUMS_ALREADY = "sass__"  # counts of ncu itself: one number of that name
PEAK_FORM, SLICE_PEAK_FORM = ".sum.peak_sustained", ".avg.peak_sustained"
# An L2 clock that no cycles counter recorded follows from one counter given both per second and per cycle.
L2_CLOCK_PAIR = ("lts__t_sectors.sum.per_second", "lts__t_sectors.avg.per_cycle_elapsed")
BUS_WIDTH, HIGHEST_MEMORY_CLOCK = ATTRIBUTE + "global_memory_bus_width", ATTRIBUTE + "max_mem_frequency_khz"
# Units that run at the clock of the SMs, by the names that begin their counters, and those that are active when their SM is.
SM_DOMAIN = ("sm", "smsp", "l1tex", "gpc")
IN_SM = ("sm__", "smsp__", "l1tex__", "idc__")
# How a metric is called that gives, in percent, the share of a unit's peak over the whole launch (both have one value), and
# over the cycles in which the unit was active.
SHARES = (".avg.pct_of_peak_sustained_elapsed", ".sum.pct_of_peak_sustained_elapsed")
SHARES_ACTIVE = (".avg.pct_of_peak_sustained_active", ".sum.pct_of_peak_sustained_active")
# Cycles in which SMs were active (.avg, .min, .max over them), and all cycles of which these are a part, best first.
ACTIVE = "sm__cycles_active"
ELAPSED = ("sm__cycles_elapsed.max", "sm__cycles_elapsed.avg", "gpc__cycles_elapsed.max", "gpc__cycles_elapsed.avg")
# A measured roof above this share of theory at the same clock was not measured right: clocks swing by less during one.
MOST_OF_THEORY = 1.05
# Clocks of a kernel and of a measurement that differ by less are the same.
SAME_CLOCK = 0.01
INSTEAD = "theoretical roof used"

SM_FOR_L2 = "L2 clock not recorded, SM clock used"
UNKNOWN_CLOCK = "SM clock not recorded, maximum clock used"
SHORT_CLOCK = "SM clock unknown (no launch from {:.0f} us on), maximum clock used".format(SHORT_LAUNCH * 1e6)
SLICES_OF_ATTRIBUTES = "L2 slices by device attributes, which on some GPUs count more than there are"
OF_ACTIVE = "of active cycles: how many of all these are was not collected"

# A clock in Hz, and a note for the launches where another one stands in.
Clock = namedtuple("Clock", "values stood_in note")
# Operations or bytes of a launch, the metrics that gave them, what to know of them, ids of precisions not to be added besides,
# the part that fused multiply-adds did, None where unknown, and whether it is a lower bound.
Counted = namedtuple("Counted", "total metrics note includes fused lower")
# Work of several precisions together: all of it, and of the precision with the second most; the seconds that the busiest pipe
# needs at its peaks, and which of them asks for most there, by its place.
Together = namedtuple("Together", "work second seconds busiest")


def covers(ranges: Sequence[Any], compute_capability: tuple[int, int]) -> bool:
    return any(since <= compute_capability <= until for since, until in ranges)


def summed(terms: Sequence[tuple[str, float]], value_of: Callable[[str], Any], form: str = "") -> Any:
    """The weighted sum over ``value_of(counter + form)``: numbers, or arrays of one shape.  NaN (missing) stays NaN."""
    values = [value_of(name + form) * weight for name, weight in terms]
    return sum(values[1:], values[0])


def fused_of(terms: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """The part of a weighted sum that fused multiply-adds do, nothing where they are not counted apart.  Counters of adds,
    multiplies and FMAs together (``_ops_``) hold each FMA as one operation; its own counter, the other."""
    together = any("_ops_" in name for name, _ in terms)
    return [(name, weight * 2 if together else weight) for name, weight in terms if "fma" in name and "_ops_" not in name]


def twin(counter: str) -> str | None:
    """The same count under the other unit's name: SASS and pipe counters exist per SM and per partition, sums are equal."""
    unit, _, rest = counter.partition("__")
    if not rest.startswith(("sass_", "inst_executed_pipe_")):
        return None
    return {"sm": "smsp__" + rest, "smsp": "sm__" + rest}.get(unit)


def slice_pairs(slices: Any) -> list[tuple[str, str]]:
    """Metrics whose quotient is the number of L2 slices: sum and average of a counter."""
    return [(name + ".sum" + form, name + ".avg" + form) for name in slices.counters for form in slices.forms]


def count_forms(counters: Sequence[str]) -> tuple[str, ...]:
    """The forms in which a report may hold these counters."""
    return ("",) if all(name.startswith(SUMS_ALREADY) for name in counters) else COUNT_FORMS


class Counters:
    """Counters, clocks and times of launches on one model of GPU; SI units.  ``get`` gives a metric by its name, ``has`` says
    whether some launch may have it; ``hardware`` are the facts on units; ``chip`` those on the GPU's architecture, None where
    it is unknown.  Clocks of short launches are those of longer ones."""

    # What is done to numbers, from the class for their kind beside this one; a quantity is numbers and where they come from.
    where = known = divided = at_most = any_of = first_known = usual = middle = rounded = None  # type: Any
    origin = quantity = None  # type: Any

    def __init__(
        self,
        get: Callable[[str], Any],
        has: Callable[[str], bool],
        hardware: Any,
        chip: Any,
        capability: tuple[int, int],
        device: str,
        most_slices: float = math.inf,
    ) -> None:
        self.get, self.has, self.hardware = get, has, hardware
        self.chip, self.capability, self.device = chip, capability, device
        self.nothing = get("")
        self.seconds = self.duration()
        self.sm_count = self.attribute("multiprocessor_count")
        self.slices, self.guessed_slices = self.count_slices(most_slices)
        self.clock_max = self.first_known(self.max_clock("max_gpu_frequency_khz"), self.max_clock("clock_rate"))
        self.memory_clock_max = self.max_clock("max_mem_frequency_khz")
        self.clocks: dict[str, Clock] = {}
        self.actives: dict[str, Any] = {}
        self.profiled_clock = self.trusted(self.rate_of(SM_DOMAIN))

    def usable(self, values: Any, condition: Any) -> Any:
        return self.where(self.known(values) & condition, values, math.nan)

    def known_clock(self, values: Any) -> Any:
        """Clocks in Hz, NaN for what can be none, so that another candidate stands in."""
        return self.usable(values, values >= LEAST_CLOCK)

    def as_share(self, percent: Any) -> Any:
        """A percentage as a ratio; one that is far above all is none."""
        share = percent * 0.01
        return self.where((share >= 0) & (share <= MOST), share, math.nan)

    def unknown(self) -> Any:
        return self.quantity(self.nothing, None)

    def attribute(self, name: str) -> Any:
        """A count, width or clock of the GPU; no GPU has 0 of them or less, so such a value is unknown."""
        values = self.get(ATTRIBUTE + name)
        return self.usable(values, values > 0)

    def max_clock(self, name: str) -> Any:
        return self.known_clock(self.attribute(name) * 1e3)

    def duration(self) -> Any:
        times = [self.get(DURATION + form) * 1e-9 for form in (".sum", ".avg", ".max")]
        for form in (".avg", ".max"):
            rate = self.known_clock(self.get("sm__cycles_elapsed" + form + ".per_second"))
            times.append(self.divided(self.get("sm__cycles_elapsed" + form), rate))
        seconds = self.first_known(*times)
        return self.usable(seconds, seconds > 0)

    def count_slices(self, most: float) -> tuple[Any, Any]:
        """L2 slices, and where the number is but the product of device attributes, which on some chips is too high."""
        counted = [self.nothing]
        for total, average in slice_pairs(self.hardware.slices):
            if self.has(total) and self.has(average):
                quotient = self.divided(self.get(total), self.get(average))
                counted.append(self.rounded(self.usable(quotient, (quotient >= 1) & (quotient <= most))))
        model = self.device
        for maker in ("NVIDIA ", "GeForce "):
            model = model[len(maker) :] if model.startswith(maker) else model
        stated = self.chip.slices.get(model.strip(), math.nan) if self.chip is not None else math.nan
        found = self.first_known(*(counted + [self.where(self.known(self.nothing), self.nothing, stated)]))
        found = self.where(self.known(found), found, self.middle(found))  # a GPU has as many in every launch
        guess = self.attribute("fbp_count") * self.attribute("num_l2s_per_fbp")
        return self.first_known(found, guess), (found != found) & self.known(guess)

    def trusted(self, clock: Any) -> Any:
        """A clock with that of longer launches for short ones, whose duration is launching, too; NaN where there are none."""
        short = self.seconds < SHORT_LAUNCH
        if not self.any_of(short):
            return clock
        of_others = self.usual(self.where(short, math.nan, clock), self.seconds)
        return self.where(short, self.where(self.known(clock), of_others, math.nan), clock)

    def rate_of(self, units: Sequence[str]) -> Any:
        """Elapsed cycles of units of one clock per second: as recorded, where cycles and time are of one pass, else by time."""
        cycles = [self.get(unit + "__cycles_elapsed." + how) for unit in units for how in ("avg", "max")]
        found = [self.get(unit + "__cycles_elapsed." + how + ".per_second") for how in ("avg", "max") for unit in units]
        found += [self.divided(number, self.seconds) for number in cycles]
        return self.first_known(*[self.known_clock(clock) for clock in found])

    def clock(self, unit: str) -> Clock:
        """The clock of a unit (sm, l1tex, lts, dram) while profiled; the nearest known one where it was not recorded."""
        if unit in self.clocks:
            return self.clocks[unit]
        if unit in SM_DOMAIN:
            gaps = (self.profiled_clock != self.profiled_clock) & self.known(self.clock_max)
            longer = self.where(self.seconds < SHORT_LAUNCH, False, gaps)
            note = UNKNOWN_CLOCK if self.any_of(longer) or not self.any_of(gaps) else SHORT_CLOCK
            clock = Clock(self.first_known(self.profiled_clock, self.clock_max), gaps, note)
        elif unit == "dram":
            clock = Clock(self.trusted(self.rate_of((unit,))), self.known(self.nothing), "")
        else:
            per_second, per_cycle = [self.get(name) for name in L2_CLOCK_PAIR]
            by_pair = self.known_clock(self.divided(per_second, per_cycle * self.slices))
            found, sm = self.trusted(self.first_known(self.rate_of((unit,)), by_pair)), self.clock("sm").values
            clock = Clock(self.first_known(found, sm), (found != found) & self.known(sm), SM_FOR_L2)
        self.clocks[unit] = clock
        return clock

    # Sums of counters.

    def count(self, terms: Sequence[tuple[str, float]], source: str, note: str = "", lower: bool = False) -> Any:
        """The weighted sum of counters over the launch, in the first form in which the report holds all of them.  The same
        count may be there under the name of another unit."""
        found = self.unknown()
        twins = [(twin(name) or name, weight) for name, weight in terms]
        for own in [terms] if twins == list(terms) else [terms, twins]:
            for form in count_forms([name for name, _ in own]):
                metrics = [name + form for name, _ in own]
                if all(self.has(metric) for metric in metrics):
                    total = summed(own, self.get, form)
                    if form == ".sum.per_second":
                        total = total * self.seconds
                    elif form == ".sum.per_cycle_elapsed":
                        unit = terms[0][0].split("__")[0]  # cycles that elapsed, whatever the clock was
                        total = total * self.first_known(self.rate_of((unit,)), self.clock(unit).values) * self.seconds
                    # A counter that overflowed or was not collected is no number, a difference of several passes below zero.
                    origin = self.origin(source, ", ".join(metrics), note, lower)
                    found = found.filled(self.quantity(self.usable(total, total >= 0), origin))
                if found.complete():
                    return found
        return found

    def peak(self, terms: Sequence[tuple[str, float]], unit: str, source: str) -> Any:
        """Peak per second: the counters' own sustained peaks per cycle, as the report records them, times the unit's clock."""
        found = self.unknown()
        of_slices = all(name.startswith("lts__") for name, _ in terms)  # only of these is the number of instances known
        for form in (PEAK_FORM, SLICE_PEAK_FORM) if of_slices else (PEAK_FORM,):
            metrics = [name + form for name, _ in terms]
            if all(self.has(metric) for metric in metrics):
                clock = self.clock(unit)
                values = summed(terms, self.get, form) * (1.0 if form == PEAK_FORM else self.slices) * clock.values
                peak = self.quantity(self.usable(values, values > 0), self.origin(source, ", ".join(metrics)))
                found = found.filled(peak.with_note(clock.stood_in, clock.note))
        return found

    # Roofs.

    def per_sm(self, per_cycle: float) -> Any:
        """Peak per second of operations or bytes per SM and cycle, a figure of the data sheet."""
        clock = self.clock("sm")
        origin = self.origin("architecture", "{:g} per SM and cycle".format(per_cycle))
        return self.quantity(per_cycle * self.sm_count * clock.values, origin).with_note(clock.stood_in, clock.note)

    def compute_roof(self, roof: str, ways: Sequence[Any]) -> Any:
        """Operations per second of a precision's highest roof: by its counters, else by the data sheet."""
        found = self.unknown()
        for way in ways:
            if way.peak:
                found = found.filled(self.peak(way.peak, way.clock, way.source))
        board = board_rule(self.chip.boards, roof, self.device)
        per_cycle = (board or self.chip).peaks.get(roof)
        if per_cycle is None:
            return found
        sheet = self.per_sm(per_cycle)
        if board is not None:  # sold with a halved rate: whether the counter's peak knows is unproven, the lower one holds
            found = found.where(self.where(sheet.values < found.values, False, True))
        return found.filled(sheet)

    def level(self, level: Any, ways: Sequence[Any]) -> tuple[Any, Any | None, Any]:
        """Bytes of a level of memory, what of them was written (None: no way tells), and bytes per second of its roof.  A
        launch's roof is of the same counters as its bytes."""
        nothing = self.unknown()
        counted = [self.count(way.counters, way.source, way.note, way.lower_bound) for way in ways]
        peaks = [self.peak(way.peak, way.clock, way.source) if way.peak else nothing for way in ways]
        stored = [self.count(way.writes, way.source, way.note) for way in ways if way.writes]
        moved, written = nothing, None
        for one in counted:
            moved = moved.filled(one)
        for one in stored:
            written = one if written is None else written.filled(one)
        if written is not None:
            written = written.where(self.where(moved.is_lower_bound(), False, True))
        sheet = self.sheet(level.id, moved)
        roof, left = nothing, self.where(self.known(self.nothing), False, True)
        for one, peak in zip(counted, peaks):  # noqa: B905
            chosen = left & (one.values == one.values)
            roof, left = roof.filled(peak.filled(sheet).where(chosen)), self.where(chosen, False, left)
        for peak in [*peaks, sheet]:
            roof = roof.filled(peak.where(left))
        return moved, written, roof

    def sheet(self, level: str, moved: Any) -> Any:
        if level not in self.chip.bandwidth:
            return self.unknown()
        per_cycle, per = self.chip.bandwidth[level]
        if per == "sm":
            return self.per_sm(per_cycle)
        if per == "bus":
            return self.bus_roof(per_cycle, moved, self.rate_share(level))
        clock, origin = self.clock("lts"), self.origin("architecture", "{:g} B per L2 slice and cycle".format(per_cycle))
        peak = self.quantity(per_cycle * self.slices * clock.values, origin).with_note(clock.stood_in, clock.note)
        return peak.with_note(self.guessed_slices, SLICES_OF_ATTRIBUTES)

    def bus_roof(self, per_cycle: float, moved: Any, share: Any) -> Any:
        """Peak per second of bytes per bit of the memory bus and cycle, at the memory clock.  Where that was not recorded the
        peak by the bytes ``moved`` and the ``share`` of the roof that they were, else that at the highest clock: boards run
        below it.  The share not of short launches, whose time is launching as well, nor where so little was moved that it has
        few digits. Recorded memory clocks are in the unit of the attribute for the highest one (26 reports, HBM2 to GDDR6X:
        0.96 to 1.07)."""
        highest = self.origin("architecture", HIGHEST_MEMORY_CLOCK + ", " + BUS_WIDTH, "at the maximum memory clock")
        recorded = self.origin("architecture", "dram__cycles_elapsed.avg.per_second, " + BUS_WIDTH)
        roofs = []
        for clock, origin in ((self.clock("dram").values, recorded), (self.memory_clock_max, highest)):
            values = per_cycle * clock * self.attribute("global_memory_bus_width")
            roofs.append(self.quantity(self.where(values > 0, values, math.nan), origin))
        good = (self.seconds >= SHORT_LAUNCH) & (share.values >= TELLING) & self.where(moved.is_lower_bound(), False, True)
        metrics: list[str] = []
        for origin in moved.origins + share.origins:
            metrics += [origin.metrics] if origin.metrics not in metrics else []
        values = self.where(good, self.divided(self.divided(moved.values, self.seconds), share.values), math.nan)
        reached = self.quantity(values, self.origin("derived", ", ".join(metrics), "bytes per second / share of the peak"))
        return roofs[0].filled(reached).filled(roofs[1])

    def rate_share(self, level: str) -> Any:
        """Bytes per second as a share of the level's roof at the clock that it ran at, where percentages tell."""
        found = self.unknown()
        for rate in self.hardware.rates:
            mine = rate.level == level and covers(rate.capabilities, self.capability)
            if mine and all(self.has(name) for name in rate.metrics):
                shares = [self.as_share(self.get(name)) for name in rate.metrics]
                origin = self.origin("derived", ", ".join(rate.metrics), "percent of peak")
                found = found.filled(self.quantity(sum(shares[1:], shares[0]), origin))
        return found

    # How busy units were.

    def active(self, how: str) -> Any:
        """Of the elapsed cycles those in which SMs were active: the mean over them (avg), the least (min) or the most (max)."""
        if how not in self.actives:
            cycles = [self.usable(number, number > 0) for number in map(self.get, ELAPSED)]
            elapsed = self.first_known(*(cycles + [self.profiled_clock * self.seconds]))
            share = self.divided(self.get(ACTIVE + "." + how), elapsed)
            # Cycles of two passes differ by a few; a share that is clearly more than all is none.
            self.actives[how] = self.at_most(self.usable(share, (share >= 0) & (share <= ABOVE)), 1.0)
        return self.actives[how]

    def scale(self, metric: str) -> float:
        name, factor = metric.split(".")[0], 1.0
        for scale in self.hardware.scales:
            factor *= scale.factor if name in scale.metrics and covers(scale.capabilities, self.capability) else 1.0
        return factor

    def share(self, name: str) -> Any:
        """The share of a unit's peak that a metric gives over the launch, or over active cycles if nobody knows these."""
        found = self.unknown()
        for form in SHARES + (SHARES_ACTIVE if name.startswith(IN_SM) else ()):
            metric = name + form
            if not self.has(metric):
                continue
            share = self.as_share(self.get(metric)) * self.scale(metric)
            if form in SHARES_ACTIVE:
                derived = self.origin("derived", metric, "of active cycles, times their share of all")
                found = found.filled(self.quantity(share * self.active("avg"), derived))
                found = found.filled(self.quantity(share, self.origin("derived", metric, OF_ACTIVE)))
            else:
                found = found.filled(self.quantity(share, self.origin("binding", metric)))
        return found

    def largest_share(self, names: Sequence[str]) -> Any:
        """The largest share among metrics; each launch names the one that gave it."""
        shares = [share for share in [self.share(name) for name in names] if share.origins]
        found = shares[0] if shares else self.unknown()
        for share in shares[1:]:
            found = found.where(self.where(share.values > found.values, False, True)).filled(share)
        return found

    def added_shares(self, names: Sequence[str]) -> Any:
        """The sum of shares that add up; a lower bound where some are missing."""
        shares = [self.share(name) for name in names]
        if len(shares) == 1:
            return shares[0]
        whole, some, total = True, False, 0.0  # type: Any, Any, Any
        for share in shares:
            there = self.known(share.values)
            whole, some, total = whole & there, some | there, total + self.where(there, share.values, 0.0)
        metrics = ", ".join([origin.metrics for share in shares for origin in share.origins[:1]])
        found = self.quantity(self.where(whole, total, math.nan), self.origin("derived", metrics, "sum of percentages"))
        lower = self.origin("derived", metrics, "lower bound: percentage of one direction", True)
        return found.filled(self.quantity(self.where(some, total, math.nan), lower))

    def busy(self, unit: Any) -> Any:
        """How full the fullest part of a unit was."""
        found = self.largest_share(unit.metrics)
        for names in unit.parts:
            found = found.filled(self.added_shares(names))
        return found

    def tensor_activity(self) -> Any:
        found = self.unknown()
        for names in self.hardware.tensor.whole:
            found = found.filled(self.largest_share(names).where(self.known(self.share(names[0]).values)))
        return found.filled(self.largest_share(self.hardware.tensor.parts))

    def gauge(self, gauge: Any) -> Any:
        """Occupancy, a count of what proves waste and the like: by the first metric that is there."""
        found = self.unknown()
        for metric in gauge.metrics:
            if self.has(metric):
                values = self.get(metric) * gauge.scale * self.scale(metric)
                origin = self.origin("binding", metric)
                found = found.filled(self.quantity(self.usable(values, (values >= 0) & (values <= gauge.most)), origin))
        return found


def slots(numbers: Any, work: Any, fused: Any, half_rates: Any, counts_instructions: bool) -> Any:
    """The operations that at the peak rate would take as long as this work takes its pipe, as it is mixed.  Of operations some
    are fused; an instruction that is not takes as long as one that does two (Yang, Kurth, Williams 2019, equation 7).  Where
    chips issue integer multiply-adds and all other integer work at half rate, each of two pipes takes an instruction every
    other cycle."""
    if not counts_instructions:
        return numbers.where(numbers.known(fused), 2 * work - fused, work)
    busier = 2 * numbers.where(fused > work - fused, fused, work - fused)
    return numbers.where(half_rates & (busier > work), busier, work)


def whole_of(together: Any, whole: Any) -> Any:
    return (whole > 0) & (abs(together - whole) <= COMPLETE * whole)


def together(numbers: Any, demands: Sequence[Any]) -> Together:
    """Work of several precisions: its roof is that at which the busiest pipe is full.  If a pipe needs sum(work_p / peak_p)
    seconds for the precisions that it does, a launch needs at least the largest of these, so the roof for the sum of work is
    sum(work) / that time; unknown where a pipe works without a known roof."""
    owners: dict[str, Any] = {}
    total, most, second = 0.0, 0.0, 0.0  # type: Any, Any, Any
    for one in demands:  # families of a precision count together
        owner = one.precision.id if one.precision.adds else one.precision.part_of
        work = numbers.where(numbers.known(one.work), one.work, 0.0)
        owners[owner], total = owners.get(owner, 0.0) + work, total + work
    for work in owners.values():
        second = numbers.where(work > most, most, numbers.where(work > second, work, second))
        most = numbers.where(work > most, work, most)
    longest, fullest, largest, busiest = 0.0, -1.0, -1.0, 0  # type: Any, Any, Any, Any
    for place, one in enumerate(demands):
        seconds = sum([numbers.where(other.pipe == one.pipe, other.seconds, 0.0) for other in demands])
        longest = numbers.where((seconds > longest) | (seconds != seconds), seconds, longest)
        of_pipe, own = [numbers.where(numbers.known(number), number, 0.0) for number in (seconds, one.seconds)]
        better = (of_pipe > fullest) | ((of_pipe == fullest) & (own > largest))
        fullest, largest = numbers.where(better, of_pipe, fullest), numbers.where(better, own, largest)
        busiest = numbers.where(better, place, busiest)
    return Together(total, second, longest, busiest)


def uncounted(numbers: Any, activity: Any, gaps: Any, works: Sequence[Any]) -> Any:
    """Whether the tensor pipe was active although nobody counted what it did.  Counted is what has operations of some type, or
    none in all types that the chip has (``works``): GA100 and GH100 run a few plain FP16 instructions (HFMA2.MMA) there, so an
    active pipe without any operation is no contradiction."""
    active = (activity >= TENSOR_ACTIVE) | gaps
    some, every = False, True  # type: Any, Any
    for work in works:
        some, every = some | (work > 0), every & numbers.known(work)
    return active & numbers.where(some | every, False, True)


# Which roof a launch is held against.


def board_rule(boards: Sequence[Any], roof: str, device: str) -> Any:
    """Of the rules for boards that differ from others of their chip the one on a roof of this device, None if there is none."""
    named = [board for board in boards if any(part in device for part in board.names)]
    found = [board for board in named if roof in board.peaks or roof in board.absent]
    return found[0] if found else None


def judges(share: Any, clock_known: bool, at_maximum: Any) -> Any:
    """Whether a measured roof judges a launch; else theory does.  ``share`` is what it is of theory at the clock of the
    launch, NaN where there is none.  Where it is not known at which clock it was measured, it says something only of launches
    ``at_maximum``, the highest clock of their GPU."""
    return (share != share) | ((share <= (MOST_OF_THEORY if clock_known else 1.0)) & (clock_known | at_maximum))


def why_not(share: float, clock_known: bool, status: str) -> str:
    """Why a roof, measured or published as its file says (``status``), that is ``share`` of theory does not judge."""
    amount = "{:.3g}x" if share < 100 else "{:.0f}x"
    launch = "the clock of the launch, and its own clock is not known"
    text = "{}: the {} roof is {} as high at {}"
    return text.format(INSTEAD, status, amount.format(share), "the same clock" if clock_known else launch)


def by_writes(roofs: Any, writes: Any) -> Any:
    """The bandwidth of memory of whose bytes the share ``writes`` is written, between measured ones, (share, bandwidth)."""
    last, value = roofs[0]
    reached = value
    for share, bandwidth in roofs[1:]:
        part = (writes - last) / (share - last)
        value = value + (bandwidth - reached) * (part * (part > 0) * (part < 1) + (part >= 1))
        last, reached = share, bandwidth
    return value


def measured_roof(numbers: Any, ceiling: Any, by_share: Any, theory: Any, launch: Any) -> Any:
    """A measured roof for launches, what it is of theory at the same clock, and whether it judges them.  ``launch``: their SM
    clock (Hz), what the clock of a level is of that of a measurement, whether the SM clock is the highest, and the share of
    the bytes that is written.  The same work per cycle; as measured where a clock is unknown: profilers lock clocks below
    those of the measurement, and under its power limit a GPU sustains less than a launch of a few milliseconds reaches at a
    higher clock.  Memory that was measured for several shares of writes (``by_share``) is judged by these."""
    clock, slower, at_maximum, writes = launch
    other = by_writes(by_share, writes) if by_share else ceiling.per_cycle * clock
    usable = numbers.known(writes) if by_share else numbers.known(other) & ceiling.follows_sm_clock
    value = numbers.where(usable, other, ceiling.value)
    share = numbers.divided(value, theory / slower)
    share = numbers.where(share == share, share, ceiling.value / ceiling.theory)
    return value, share, judges(share, ceiling.clock_known, at_maximum)
