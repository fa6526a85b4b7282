"""What a release of Nsight Compute understands in a section, and the specification's weighted sums as metrics and values of it.

What differs between releases is in the schema of sections or the file of an architecture; generators ask a `Dialect`.
A counter with weight 1 is itself; any other weight makes a derived metric of one operator, ``counter * weight``, and sums are
what a chart value does.  So nothing here is derived from something derived.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Any, NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips import Binding, Level, Precision, Spec, load_spec
from ncu_roofline.chips.fields import LAST, Capability, Release, WeightedSum, capability_text
from ncu_roofline.chips.ncu import DRAM_OP_SINCE, OPS_PATH_SINCE
from ncu_roofline.chips.spec import ROOF_FACTORS
from ncu_roofline.formats.sectionfile.charts import CHAINS_PROVEN
from ncu_roofline.formats.sectionfile.section import Range, made, made_value, release_of, schema, text_of

FIRST_RELEASE: Release = (2020, 3)
"""The first release with derived metrics in sections (``MetricDefinitions``), which every roof here needs."""
SAMPLED_SINCE: Release = (2024, 1)
"""The first release whose sampled metrics are known here (``--query-metrics-collection pmsampling``)."""
DERIVED = "derived__rl_"
"""How the names of our derived metrics begin."""
EVERYWHERE: tuple[Range, ...] = ((None, None),)
Chips = frozenset[Capability]

# A counter of every chip whose sustained peak is 1 per SM and cycle (reports of 8.0, 8.6, 8.9, 9.0): figures that are known per
# SM are written as multiples of it.  No peak of l1tex__t_bytes itself is to be trusted, and the interface that returns
# data to registers is as wide as the cache can be read, so a dot of l1tex__t_bytes belongs under that roof.
_ONE_PER_SM = "l1tex__lsu_writeback_active"
# The DRAM clock costs Volta and Turing a replay pass; the nominal one is a device attribute in kHz, of the driver.
_NOMINAL_CLOCK = {"dram": ("device__attribute_max_mem_frequency_khz", 1000.0)}
# Clocks that every chip has: they need no filter.
_CLOCKS_OF_ALL = {f"{unit}__cycles_elapsed.avg.per_second" for unit in ("sm", "smsp", "l1tex", "lts")}


class Dialect:
    """What may be written for a release; ``metrics`` is the release whose metric names are known.  It is later than
    ``release`` only for `BASE`, whose fields all releases can read while newer ones collect more; others are ``exact``: every
    chip that the release profiles can be named."""

    def __init__(self, release: Release, metrics: Release) -> None:
        def has(message: str, field: str) -> bool:
            return schema().messages[message][field].history.known_to(release)

        self.release, self.metrics, self.exact = release, metrics, release == metrics
        # Architectures are called CC_80, not GA100; numbers are accepted by all.
        self.has_cc_names = all(one.history.known_to(release) for one in schema().enums["GpuArch"] if one.name == "CC_80")
        # Filters may hold several ranges; derived metrics may be restricted to architectures; roofs hidden while a metric is 0.
        self.filter_items, self.definition_filter = has("Filter", "Items"), has("Definition", "Filter")
        self.show_only_if_not_zero = has("RooflineOptions", "ShowOnlyIfNotZero")
        # Derived metrics may have several operators, and parentheses.
        self.nested_expressions = release >= CHAINS_PROVEN
        # Metrics can be sampled over the time of a launch, by names that the release knows.
        self.samples = has("BodyItem", "Timeline") and release >= SAMPLED_SINCE
        # Tensor operations are counted per type; what DRAM read and wrote on all chips that have names of their own for it.
        self.ops_path, self.dram_op = metrics >= OPS_PATH_SINCE, metrics >= DRAM_OP_SINCE

    @cached_property
    def numbers(self) -> dict[Capability, int]:
        """How compute capabilities are written, those that can be."""
        found = {one.compute_capability: one.number(self.release) for one in load_spec().architectures}
        return {chip: number for chip, number in found.items() if number is not None}

    @lru_cache(maxsize=4096)  # noqa: B019  generating asks for the same few some ten thousand times
    def ranges(self, wanted: Collection[Capability], among: Iterable[Capability]) -> tuple[Range, ...]:
        """The shortest ranges that hold on the ``wanted`` compute capabilities (frozen) ``among`` all that there are.  `BASE`
        reaches chips that it can't name by an open end only, which then holds on all of them and, if need be, on the newest
        that has a name: such ranges are as wide as necessary.  Other dialects leave out what their release does not profile;
        without any chip left the result is empty.  `EVERYWHERE` where no filter is needed."""
        chips = sorted((self.numbers[chip], chip in wanted) for chip in among if chip in self.numbers)
        beyond = any(chip not in self.numbers for chip in wanted)
        if all(inside for _, inside in chips) and (self.exact or beyond):
            return EVERYWHERE
        runs = [[number for number, _ in run] for inside, run in groupby(chips, key=lambda one: one[1]) if inside]
        found: list[Range] = [(None if run[0] == chips[0][0] else run[0], run[-1]) for run in runs]
        if beyond and chips[-1][1]:
            found[-1] = (found[-1][0], None)
        elif beyond and not self.exact:
            found.append((chips[-1][0], None))
        return tuple(found)

    def meet(self, one: Iterable[Range], other: Iterable[Range]) -> bool:
        numbers = (*self.numbers.values(), 999)
        mine, others = ({n for n in numbers for low, high in some if (low or 0) <= n <= (high or 999)} for some in (one, other))
        return not mine.isdisjoint(others)


BASE = Dialect(FIRST_RELEASE, (9999, 0))
"""What every release from 2020.3 on loads: the dialect of the committed files."""


def dialect_of(version: str) -> Dialect:
    """The dialect of an Nsight Compute version ("2024.2", "2024.2.1.0").  Raises RooflineError if it has no rooflines."""
    try:
        release = release_of(version)
    except ValueError:
        message = ("Cannot generate for Nsight Compute", version, "it is no version", "Give one like 2024.2.")
        raise RooflineError(*message) from None
    if release < FIRST_RELEASE:
        reason = "its sections have no derived metrics, which the roofs are made of"
        raise RooflineError("Cannot generate for Nsight Compute", version, reason, "Use release 2020.3 or later.")
    return Dialect(release, release)


def number(value: float) -> str:
    """A constant of an expression: digits, with a point where it needs one; seven of them count."""
    return str(int(value)) if value.is_integer() else f"{float(f'{value:.7g}'):.12f}".rstrip("0")


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
    """Chooses bindings by chip, and gathers derived metrics and inputs of one section while its charts are made.  Nsight
    Compute keeps one filter for each name in a section.  ``ambiguous`` are names that charts need with several: every such use
    gets a derived metric of its own.  ``dense``: sparse products, which cost a replay pass more, are not counted."""

    def __init__(self, spec: Spec, dialect: Dialect, ambiguous: frozenset[str] = frozenset(), *, dense: bool = False) -> None:
        self.spec, self.dialect, self._ambiguous, self._dense = spec, dialect, ambiguous, dense
        self.chips: Chips = frozenset([*(a.compute_capability for a in spec.architectures), LAST])
        self._nameless = frozenset(chip for chip in self.chips if chip not in dialect.numbers)
        self._chosen: dict[tuple[str, Capability], Binding | None] = {}
        self._uses: dict[str, list[tuple[tuple[str, Chips], ...]]] = {}
        self._definitions: dict[str, tuple[str, set[Capability]]] = {}
        self._collected: dict[str, set[Capability]] = {}

    # What is counted on each chip

    def binding(self, item: Precision | Level, chip: Capability) -> Binding | None:
        """How an item is counted on a chip in this dialect; None if it is not, or only at a price."""
        key = (item.id, chip)
        if key not in self._chosen:
            bindings = self._usable(item, chip)
            if not self.dialect.exact:
                # Chips that can't be told apart count what they have in common; sparse and dense work then come together.
                common = {one.counters for one in self._usable(item, LAST)} if chip in self._nameless else set()
                bindings = sorted(bindings, key=lambda one: (not one.includes, one.counters not in common))
            self._chosen[key] = next((one for one in bindings if one.collect), bindings[0] if bindings else None)
        return self._chosen[key]

    def _usable(self, item: Precision | Level, chip: Capability) -> list[Binding]:
        def left_out(name: str, where: Capability) -> bool:  # it would cost a replay pass of its own (asked of the library)
            known = self.spec.architecture(where)
            return known is not None and name in known.left_out

        architecture = self.spec.architecture(chip)
        lacking = architecture is not None and item.id in architecture.lacks and not self.dialect.exact
        alike = self._nameless if chip in self._nameless else (chip,)
        return [
            binding
            for binding in (() if lacking or left_out(item.id, chip) else self.spec.bindings(item, chip))
            if binding.source != "embedded"
            and not any(left_out(part, one) for part in binding.includes for one in alike)
            and (self.dialect.ops_path or "sm__ops_path_tensor_" not in binding.counters.text())
        ]

    def told(self, chips: Chips) -> Chips:
        """Those of some chips whose filter lets no other chip through: all, if they are all that the dialect can't name."""
        return chips if self.dialect.exact or self._nameless <= chips else chips - self._nameless

    # Sparse work, which `BASE` counts where chips can't be told apart, left out

    def counts_dense(self, item: Precision | Level) -> bool:
        """Whether dense work alone is what counts instead of `binding`, which has it where every chip has a name."""
        return self._dense and not self.dialect.exact and isinstance(item, Precision) and item.kind == "tensor"

    def stands_in(self, part: Precision) -> bool:
        """Whether some chip does all work of a type in this part of it, and can't be told from chips that have more parts."""
        if not part.part_of or not self.counts_dense(part):
            return False
        work, confused = self._dense_work(self.spec.precision(part.part_of))
        mine, _ = self._dense_work(part)
        return not {work[chip] for chip in confused}.isdisjoint(mine.values())

    def _dense_work(self, item: Precision | Level) -> tuple[dict[Capability, WeightedSum], set[Capability]]:
        """Counters by chip, and the chips whose counters some that can't be told from them have as well, but need others."""
        ways = {chip: [one.counters for one in self._usable(item, chip) if not one.includes] for chip in self.chips}
        work = {chip: counters[0] for chip, counters in ways.items() if counters}
        names = {chip: set(work[chip].counters()) for chip in work.keys() & self._nameless}
        return work, {chip for chip, mine in names.items() if any(mine < others for others in names.values())}

    def sums(self, item: Precision | Level) -> dict[WeightedSum, Chips]:
        found: defaultdict[WeightedSum, set[Capability]] = defaultdict(set)
        dense, confused = self._dense_work(item) if self.counts_dense(item) else ({}, set[Capability]())
        for chip, binding in self.bindings(item):
            if not self.counts_dense(item):
                found[binding.counters].add(chip)
            elif chip in dense and chip not in confused:
                found[dense[chip]].add(chip)
        return {sums: frozenset(chips) for sums, chips in found.items()}

    def bindings(self, item: Precision | Level, chips: Chips | None = None) -> Iterator[tuple[Capability, Binding]]:
        """How an item is counted on each chip that the dialect's release profiles."""
        for chip in sorted(self.chips if chips is None else chips):
            binding = self.binding(item, chip)
            if binding and self.ranges([chip]):
                yield chip, binding

    def patched(self, item: Precision | Level) -> bool:
        return any("__sass_" in counter for sums in self.sums(item) for counter in sums.counters())

    # What the section ends up with

    def definitions(self, shown: Iterable[Any]) -> list[Any]:
        """Derived metrics that are ``shown``, restricted to the chips that have their inputs where the dialect can."""
        used = {text_of(named.Name) for metric in shown for named in (metric, *metric.Options)}
        return [
            made("Definition", Name=name, Expression=expression, Filter=_filter(self.ranges(where)))
            for name, (expression, chips) in self._definitions.items()
            for where in [chips if self.dialect.definition_filter else self.chips]
            if name in used
        ]

    def collected(self, shown: Iterable[Any]) -> list[Any]:
        """Metrics to collect that are not ``shown`` anyway, sorted by name."""
        bases = {text_of(metric.Name) for metric in shown}
        found = sorted(self._collected.items())
        return [_named(self._names(name, chips)) for name, chips in found if name not in bases]

    def conflicts(self, shown: Iterable[Any]) -> frozenset[str]:
        """Names that are asked for with several filters, or on fewer chips than they are collected on."""

        def form_of(metric: Any) -> tuple[bytes, ...]:
            named = (metric, *metric.Options)
            return tuple(part for one in named for part in (one.Name, one.Filter.SerializeToString(deterministic=True)))

        forms: defaultdict[str, set[tuple[bytes, ...]]] = defaultdict(set)
        for metric in shown:
            forms[text_of(metric.Name)].add(form_of(metric))
        found = {name for name, several in forms.items() if len(several) > 1}
        for name, chips in self._collected.items():
            needed = form_of(_named(self._names(name, chips)))
            if any(form != (name.encode(), b"") and form[: len(needed)] != needed for form in forms.get(name, ())):
                found.add(name)
        return frozenset(found)

    def collect(self, name: str, chips: Iterable[Capability] | None = None) -> None:
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
        return [(name, _filter(part)) for part in ([ranges] if self.dialect.filter_items else [(one,) for one in ranges])]

    def _alias(self, name: str, form: tuple[tuple[str, Chips], ...]) -> str:
        """A name that is used in one form only, for the same value."""
        uses = self._uses.setdefault(name, [])
        if form not in uses:
            uses.append(form)
        tag, chips = f"use{uses.index(form) + 1}", dict(form)[name]
        if name in self._definitions:
            return self.define(f"{name.removeprefix(DERIVED)}_{tag}", self._definitions[name][0], (), chips)
        return self.define(f"{name}_{tag}".replace(".", "_"), f"{name} * 1", [name], chips)

    def define(self, name: str, expression: str, inputs: Iterable[str], chips: Chips | None = None) -> str:
        """A derived metric of our own; its inputs are collected."""
        self._definitions.setdefault(DERIVED + name, (expression, set()))[1].update(self.chips if chips is None else chips)
        for one in inputs:
            self.collect(one, chips)
        return DERIVED + name

    def scaled(self, metric: str, weight: float, chips: Chips | None = None) -> str:
        """The name of ``metric * weight``."""
        if weight == 1:
            return metric
        divided = weight < 1 and (1 / weight).is_integer()
        factor = number(1 / weight if divided else weight)
        name = f"{metric}_{'per' if divided else 'x'}{factor}".replace(".", "_")
        if weight == 32 and "sectors" in metric:  # bytes of a sector; ncu reads units off names
            name = name.removesuffix(f"_x{factor}").replace("sectors", "bytes")
        return self.define(name, f"{metric} {'/' if divided else '*'} {factor}", [metric], chips)

    # Work, traffic and peaks as values of charts

    def work(self, precision: Precision) -> list[Reading]:
        return self._readings(self._rate(sums, 1.0, chips) for sums, chips in self.sums(precision).items())

    def traffic(self, level: Level, scale: float = 1.0) -> list[Reading]:
        """Traffic per second of a level, in bytes times ``scale``; what of it is written is collected, for measured roofs.
        Names of the latest chips stand only where the dialect can name these, and its release them."""
        for chip, _ in self.bindings(level):
            ways = self.spec.bindings(level, chip) if self.dialect.exact else level.bindings
            for counter in next((way.writes.counters() for way in ways if way.writes), ()):
                if self.dialect.dram_op or "_op_" not in counter:
                    self.collect(f"{counter}.sum", [chip])
        return self._readings(self._rate(sums, scale, chips) for sums, chips in self.sums(level).items())

    def _rate(self, sums: WeightedSum, factor: float, chips: Chips) -> Part:
        for counter in sums.counters():
            self.collect(f"{counter}.sum", chips)
        if len(sums) == 1:
            ((counter, weight),) = sums
            return Part(chips, (self.scaled(f"{counter}.sum.per_second", weight * factor, chips),))
        units = {counter.partition("__")[0] for counter in sums.counters()}
        if len(units) > 1:
            raise ValueError(f"counters of several units can't be summed per cycle: {sums.text()}")
        terms = (self.scaled(f"{counter}.sum.per_cycle_elapsed", weight * factor, chips) for counter, weight in sums)
        return Part(chips, tuple(terms), f"{units.pop()}__cycles_elapsed.avg.per_second")

    def peak(self, precision: Precision, roof: str, scale: float = 1.0, chips: Chips | None = None) -> list[Reading]:
        """Operations per second of a compute roof, times ``scale``, on all chips or some."""
        share = ROOF_FACTORS.get(roof.rpartition(".")[2], 1.0) if precision.roofs else 1.0
        peaks = []
        for chip, binding in self.bindings(precision, chips):
            architecture = self.spec.architecture(chip)
            if binding.peak:
                terms = [(counter, weight * share * scale) for counter, weight in binding.peak]
                peaks.append((chip, terms, binding.clock))
            elif architecture and (known := architecture.peak(roof)):
                peaks.append((chip, [(_ONE_PER_SM, known * scale)], binding.clock))
        return self._peaks(peaks)

    def bandwidth(self, level: Level, scale: float = 1.0, chips: Chips | None = None) -> list[Reading]:
        """Traffic per second of a level's roof, times ``scale``, on all chips or some; empty where nothing states a peak.  A
        chip of which no bytes per SM and cycle are known gets what the newest known has."""
        per_sm = {a.compute_capability: a.bandwidth[level.id] for a in self.spec.architectures if level.id in a.bandwidth}
        peaks = []
        for chip, binding in self.bindings(level, chips):
            terms: Sequence[tuple[str, float]] = binding.peak or ()
            if per_sm and not terms:
                amount, unit = per_sm.get(chip) or per_sm[max(per_sm)]
                terms = ((_ONE_PER_SM, amount),) if unit == "sm" else ()
            if binding.clock:
                peaks.append((chip, [(counter, weight * scale) for counter, weight in terms], binding.clock))
        return self._peaks(peaks)

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

        def choices(names: Iterable[tuple[str, Chips]]) -> Any:
            chips_of: defaultdict[str, Chips] = defaultdict(frozenset)
            for name, chips in names:
                chips_of[name] |= chips
            return self.metric(chips_of)

        readings, highest = [], {name for name, _ in _NOMINAL_CLOCK.values()}
        for group in groups:
            terms = [choices((part.terms[i], part.chips) for part in group) for i in range(len(group[0].terms))]
            clocks, clock = {part.clock for part in group}, None
            if len(clocks) == 1 and clocks <= _CLOCKS_OF_ALL:
                clock = self.metric(dict.fromkeys(clocks, self.chips))
            elif clocks != {""}:
                clock = choices((part.clock, part.chips) for part in group)
            nominal = sorted(chip for part in group for chip in part.chips if part.clock in highest)
            note = f" (on {', '.join(map(capability_text, nominal))} at the maximum memory clock)" if nominal else ""
            chips = frozenset[Capability]().union(*(part.chips for part in group))
            readings.append(Reading(made_value(*terms, clock=clock), chips, note))
        return readings


def _filter(ranges: Sequence[Range]) -> Any:
    if len(ranges) > 1:
        return made("Filter", Items=[made("FilterItem", MinArch=low, MaxArch=high) for low, high in ranges])
    return made("Filter", MinArch=ranges[0][0], MaxArch=ranges[0][1]) if ranges[0] != (None, None) else None


def _named(names: Sequence[tuple[str, Any]], label: str = "") -> Any:
    """A metric by its names and filters, the base first."""
    (base, where), *others = names
    options = [made("Option", Name=name, Filter=there) for name, there in others]
    return made("Metric", Name=base, Label=label, Filter=where, Options=options)
