"""From the specification's weighted sums to metrics, derived metrics and chart values of one section in one dialect.

A counter with weight 1 is itself; any other weight makes a derived metric of one operator, ``counter * weight``, and sums are
what a chart value does.  So nothing here is derived from something derived.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ncu_roofline.chips import Binding, Level, Precision, Spec
from ncu_roofline.chips.fields import Capability, WeightedSum
from ncu_roofline.chips.spec import ROOF_FACTORS
from ncu_roofline.formats.sectionfile.section import Range, made, made_value, text_of
from ncu_roofline.plugin.generate.dialects import Chips, Choice, Dialect

DERIVED = "derived__rl_"
"""How the names of our derived metrics begin."""

# A counter of every chip whose sustained peak is 1 per SM and cycle (reports of 8.0, 8.6, 8.9, 9.0): figures that are known per
# SM are written as multiples of it.  No peak of l1tex__t_bytes itself is to be trusted, and the interface that returns
# data to registers is as wide as the cache can be read, so a dot of l1tex__t_bytes belongs under that roof.
_ONE_PER_SM = "l1tex__lsu_writeback_active"
# The DRAM clock costs Volta and Turing a replay pass; the nominal one is a device attribute in kHz, of the driver.
_NOMINAL_CLOCK = {"dram": ("device__attribute_max_mem_frequency_khz", 1000.0)}
# Clocks that every chip has: they need no filter.
_CLOCKS_OF_ALL = {f"{unit}__cycles_elapsed.avg.per_second" for unit in ("sm", "smsp", "l1tex", "lts")}
_SECTOR = 32  # bytes


def number(value: float) -> str:
    """A constant of an expression: digits, with a point where it needs one; seven of them count."""
    return str(int(value)) if value.is_integer() else f"{float(f'{value:.7g}'):.12f}".rstrip("0")


def _filter(ranges: Sequence[Range]) -> Any:
    """The message of a filter; None for one that lets everything through."""
    bounds = [made("FilterItem", MinArch=low, MaxArch=high) for low, high in ranges]
    if len(bounds) > 1:
        return made("Filter", Items=bounds)
    return made("Filter", MinArch=ranges[0][0], MaxArch=ranges[0][1]) if ranges[0] != (None, None) else None


def _named(names: Sequence[tuple[str, Any]], label: str = "") -> Any:
    """A metric by its names and filters, the base first."""
    (base, where), *others = names
    options = [made("Option", Name=name, Filter=there) for name, there in others]
    return made("Metric", Name=base, Label=label, Filter=where, Options=options)


def _form(metric: Any) -> tuple[bytes, ...]:
    """Names and filters of a metric, one behind the other."""
    named = (metric, *metric.Options)
    return tuple(part for one in named for part in (one.Name, one.Filter.SerializeToString(deterministic=True)))


class Part(NamedTuple):
    """How a quantity is read on some chips: metrics per cycle with their clock, or one metric per second."""

    chips: Chips
    terms: tuple[str, ...]
    clock: str = ""


class Reading(NamedTuple):
    """A value of a chart and the chips that have it; ``note`` goes behind the label of a roof that it makes."""

    value: Any
    chips: Chips
    note: str = ""


class Lowering:
    """Gathers the derived metrics and the inputs of one section while its charts are made.

    Nsight Compute keeps one filter for each name in a section.  ``ambiguous`` are names that charts need with several: every
    such use gets a derived metric of its own.  ``dense``: sparse products, which cost a replay pass more, are not counted.
    """

    def __init__(self, spec: Spec, dialect: Dialect, ambiguous: frozenset[str] = frozenset(), *, dense: bool = False) -> None:
        self.spec, self.dialect, self._ambiguous = spec, dialect, ambiguous
        self.choice = Choice(spec, dialect, dense=dense)
        self.chips = self.choice.chips
        self._uses: dict[str, list[tuple[tuple[str, Chips], ...]]] = {}
        self._definitions: dict[str, tuple[str, set[Capability]]] = {}
        self._collected: dict[str, set[Capability]] = {}

    # What the section ends up with

    def definitions(self, shown: Iterable[Any]) -> list[Any]:
        """Derived metrics that are ``shown``, restricted to the chips that have their inputs where the dialect can."""
        filtered = self.dialect.definition_filter
        used = {text_of(named.Name) for metric in shown for named in (metric, *metric.Options)}
        return [
            made("Definition", Name=name, Expression=expression, Filter=_filter(self.ranges(chips if filtered else self.chips)))
            for name, (expression, chips) in self._definitions.items()
            if name in used
        ]

    def collected(self, shown: Iterable[Any]) -> list[Any]:
        """Metrics to collect that are not ``shown`` anyway, sorted by name."""
        bases = {text_of(metric.Name) for metric in shown}
        found = sorted(self._collected.items())
        return [_named(self._names(name, chips)) for name, chips in found if name not in bases]

    def conflicts(self, shown: Iterable[Any]) -> frozenset[str]:
        """Names that are asked for with several filters, or on fewer chips than they are collected on."""
        forms: defaultdict[str, set[tuple[bytes, ...]]] = defaultdict(set)
        for metric in shown:
            forms[text_of(metric.Name)].add(_form(metric))
        found = {name for name, several in forms.items() if len(several) > 1}
        for name, chips in self._collected.items():
            needed = _form(_named(self._names(name, chips)))
            for form in forms.get(name, ()):
                if form != (name.encode(), b"") and form[: len(needed)] != needed:
                    found.add(name)
        return frozenset(found)

    def collect(self, name: str, chips: Iterable[Capability] | None = None) -> None:
        """Have a metric collected."""
        self._collected.setdefault(name, set()).update(self.chips if chips is None else chips)

    def ranges(self, chips: Iterable[Capability]) -> tuple[Range, ...]:
        """The dialect's ranges for some chips; empty if its release profiles none of them."""
        return self.dialect.ranges(frozenset(chips), self.chips)

    def metric(self, chips_of: Mapping[str, Chips], label: str = "") -> Any:
        """A metric that is called differently on different chips."""
        form = tuple(chips_of.items())
        names = ((self._alias(name, form) if name in self._ambiguous else name, chips) for name, chips in form)
        return _named([pair for name, chips in names for pair in self._names(name, chips)], label)

    def _names(self, name: str, chips: Iterable[Capability]) -> list[tuple[str, Any]]:
        """A name with filters on some chips; where a filter holds one range only, each range has it on its own."""
        ranges = self.ranges(chips)
        parts = [ranges] if self.dialect.filter_items else [(one,) for one in ranges]
        return [(name, _filter(part)) for part in parts]

    def _alias(self, name: str, form: tuple[tuple[str, Chips], ...]) -> str:
        """A name that is used in one form only, for the same value."""
        uses = self._uses.setdefault(name, [])
        if form not in uses:
            uses.append(form)
        tag = f"use{uses.index(form) + 1}"
        chips = dict(form)[name]
        if name in self._definitions:
            return self.define(f"{name.removeprefix(DERIVED)}_{tag}", self._definitions[name][0], (), chips)
        return self.define(f"{name}_{tag}".replace(".", "_"), f"{name} * 1", [name], chips)

    def define(self, name: str, expression: str, inputs: Iterable[str], chips: Chips | None = None) -> str:
        """A derived metric of our own; its inputs are collected."""
        name = f"{DERIVED}{name}"
        self._definitions.setdefault(name, (expression, set()))[1].update(self.chips if chips is None else chips)
        for one in inputs:
            self.collect(one, chips)
        return name

    def scaled(self, metric: str, weight: float, chips: Chips | None = None) -> str:
        """The name of ``metric * weight``."""
        if weight == 1:
            return metric
        divided = weight < 1 and (1 / weight).is_integer()
        factor = number(1 / weight if divided else weight)
        name = f"{metric}_{'per' if divided else 'x'}{factor}".replace(".", "_")
        if weight == _SECTOR and "sectors" in metric:  # ncu reads units off names
            name = name.removesuffix(f"_x{factor}").replace("sectors", "bytes")
        return self.define(name, f"{metric} {'/' if divided else '*'} {factor}", [metric], chips)

    # Work and traffic, achieved

    def work(self, precision: Precision) -> list[Reading]:
        """Operations per second of a precision."""
        return self._readings(self._rate(sums, 1.0, chips) for sums, chips in self.sums(precision).items())

    def traffic(self, level: Level, scale: float = 1.0) -> list[Reading]:
        """Traffic per second of a level, in bytes times ``scale``; what of it is written is collected, for measured roofs.

        Names of the latest chips stand only where the dialect can name these, and its release them.
        """
        for chip, _ in self._bindings(level):
            ways = self.spec.bindings(level, chip) if self.dialect.exact else level.bindings
            for counter in next((way.writes.counters() for way in ways if way.writes), ()):
                if self.dialect.dram_op or "_op_" not in counter:
                    self.collect(f"{counter}.sum", [chip])
        return self._readings(self._rate(sums, scale, chips) for sums, chips in self.sums(level).items())

    def patched(self, item: Precision | Level) -> bool:
        """Whether instruction patching counts an item, on any chip."""
        return any("__sass_" in counter for sums in self.sums(item) for counter in sums.counters())

    def sums(self, item: Precision | Level) -> dict[WeightedSum, Chips]:
        """What is counted, and where."""
        found: defaultdict[WeightedSum, set[Capability]] = defaultdict(set)
        for chip, binding in self._bindings(item):
            counters = self.choice.dense_work(item, chip) if self.choice.counts_dense(item) else binding.counters
            if counters:
                found[counters].add(chip)
        return {sums: frozenset(chips) for sums, chips in found.items()}

    def _rate(self, sums: WeightedSum, factor: float, chips: Chips) -> Part:
        for counter in sums.counters():
            self.collect(f"{counter}.sum", chips)
        if len(sums) == 1:
            (counter, weight) = sums[0]
            return Part(chips, (self.scaled(f"{counter}.sum.per_second", weight * factor, chips),))
        units = {counter.partition("__")[0] for counter in sums.counters()}
        if len(units) > 1:
            raise ValueError(f"counters of several units can't be summed per cycle: {sums.text()}")
        terms = (self.scaled(f"{counter}.sum.per_cycle_elapsed", weight * factor, chips) for counter, weight in sums)
        return Part(chips, tuple(terms), f"{units.pop()}__cycles_elapsed.avg.per_second")

    # Peaks

    def peak(self, precision: Precision, roof: str, scale: float = 1.0, chips: Chips | None = None) -> list[Reading]:
        """Operations per second of a compute roof, times ``scale``, on all chips or some."""
        share = ROOF_FACTORS.get(roof.rpartition(".")[2], 1.0) if precision.roofs else 1.0
        peaks = []
        for chip, binding in self._bindings(precision, chips):
            architecture = self.spec.architecture(chip)
            if binding.peak:
                terms = [(counter, weight * share * scale) for counter, weight in binding.peak]
                peaks.append((chip, terms, binding.clock))
            elif architecture and (known := architecture.peak(roof)):
                peaks.append((chip, [(_ONE_PER_SM, known * scale)], binding.clock))
        return self._peaks(peaks)

    def bandwidth(self, level: Level, scale: float = 1.0, chips: Chips | None = None) -> list[Reading]:
        """Traffic per second of a level's roof, times ``scale``, on all chips or some; empty where nothing states a peak.

        A chip of which no bytes per SM and cycle are known gets what the newest known has.
        """
        per_sm = {a.compute_capability: a.bandwidth[level.id] for a in self.spec.architectures if level.id in a.bandwidth}
        peaks = []
        for chip, binding in self._bindings(level, chips):
            terms: Sequence[tuple[str, float]] = binding.peak or ()
            if per_sm and not binding.peak:
                amount, unit = per_sm.get(chip) or per_sm[max(per_sm)]
                terms = ((_ONE_PER_SM, amount),) if unit == "sm" else ()
            if binding.clock:
                peaks.append((chip, [(counter, weight * scale) for counter, weight in terms], binding.clock))
        return self._peaks(peaks)

    def _bindings(self, item: Precision | Level, chips: Chips | None = None) -> Iterator[tuple[Capability, Binding]]:
        """How an item is counted on each chip that the dialect's release profiles."""
        for chip in sorted(self.chips if chips is None else chips):
            binding = self.choice.binding(item, chip)
            if binding and self.ranges([chip]):
                yield chip, binding

    def _peaks(self, peaks: Iterable[tuple[Capability, list[tuple[str, float]], str]]) -> list[Reading]:
        """Chips, counters with weights, and the unit at whose clock these are."""
        parts: defaultdict[tuple[tuple[str, ...], str], set[Capability]] = defaultdict(set)
        for chip, peak, unit in peaks:
            architecture = self.spec.architecture(chip)
            clock, factor = f"{unit}__cycles_elapsed.avg.per_second", 1.0
            if architecture and unit in architecture.costly:
                clock, factor = _NOMINAL_CLOCK[unit]
            chips = frozenset([chip])
            terms = tuple(self.scaled(f"{counter}.sum.peak_sustained", weight * factor, chips) for counter, weight in peak)
            for counter, _ in peak:  # raw peaks, too: other tools read them
                self.collect(f"{counter}.sum.peak_sustained", chips)
            if terms:
                parts[terms, clock].add(chip)
        return self._readings(Part(frozenset(where), *key) for key, where in parts.items())

    # Values

    def apart(self, chips_of: Mapping[str, Chips]) -> list[tuple[Any, Chips]]:
        """Metrics of one quantity, in few metrics with alternatives: those that may hold on the same chip stay apart."""
        found = self._readings(Part(chips, (name,)) for name, chips in chips_of.items())
        return [(one.value.Metric, one.chips) for one in found if one.value.HasField("Metric")]

    def _readings(self, parts: Iterable[Part]) -> list[Reading]:
        """Parts of one form on different chips become one value; what may hold on the same chip stays apart."""
        groups: list[list[Part]] = []
        for part in parts:
            for group in groups:
                alike = len(part.terms) == len(group[0].terms) and bool(part.clock) == bool(group[0].clock)
                if alike and not any(self.dialect.meet(self.ranges(part.chips), self.ranges(one.chips)) for one in group):
                    group.append(part)
                    break
            else:
                groups.append([part])
        readings = []
        for group in groups:
            terms = tuple(self._choices((part.terms[i], part.chips) for part in group) for i in range(len(group[0].terms)))
            clocks = {part.clock for part in group}
            value: Any
            if clocks == {""}:
                value = made_value(*terms)
            elif len(clocks) == 1 and clocks <= _CLOCKS_OF_ALL:
                value = made_value(*terms, clock=self.metric(dict.fromkeys(clocks, self.chips)))
            else:
                value = made_value(*terms, clock=self._choices((part.clock, part.chips) for part in group))
            highest = {clock for clock, _ in _NOMINAL_CLOCK.values()}
            nominal = sorted(chip for part in group for chip in part.chips if part.clock in highest)
            which = ", ".join(f"{major}.{minor}" for major, minor in nominal)
            note = f" (on {which} at the maximum memory clock)" if nominal else ""
            readings.append(Reading(value, frozenset().union(*(part.chips for part in group)), note))
        return readings

    def _choices(self, names: Iterable[tuple[str, Chips]]) -> Any:
        chips_of: defaultdict[str, Chips] = defaultdict(frozenset)
        for name, chips in names:
            chips_of[name] |= chips
        return self.metric(chips_of)
