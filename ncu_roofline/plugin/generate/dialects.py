"""What a release of Nsight Compute understands in a section (fields, architecture names, metrics), and what is counted then.

What differs between releases is in the schema of sections or the file of an architecture; generators ask a `Dialect`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache, lru_cache
from typing import NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips import Binding, Level, Precision, Spec, load_spec
from ncu_roofline.chips.fields import LAST, Capability, Release, WeightedSum
from ncu_roofline.chips.ncu import DRAM_OP_SINCE, OPS_PATH_SINCE
from ncu_roofline.formats.sectionfile.charts import CHAINS_PROVEN
from ncu_roofline.formats.sectionfile.section import Range, release_of, schema

FIRST_RELEASE: Release = (2020, 3)
"""The first release with derived metrics in sections (``MetricDefinitions``), which every roof here needs."""

SAMPLED_SINCE: Release = (2024, 1)
"""The first release whose sampled metrics are known here (``--query-metrics-collection pmsampling``)."""

Chips = frozenset[Capability]
EVERYWHERE: tuple[Range, ...] = ((None, None),)


class Dialect(NamedTuple):
    """What may be written for a release; ``metrics`` is the release whose metric names are known.

    It is later than ``release`` only for `BASE`, whose fields all releases can read while newer ones collect more.
    """

    release: Release
    metrics: Release
    # architectures are called CC_80, not GA100; numbers are accepted by all
    has_cc_names: bool
    # a filter may hold several ranges; a derived metric may be restricted to architectures; a roof hidden while a metric is 0
    filter_items: bool
    definition_filter: bool
    show_only_if_not_zero: bool
    # derived metrics may have several operators, and parentheses
    nested_expressions: bool
    # metrics can be sampled over the time of a launch, by names that the release knows
    samples: bool
    # tensor operations are counted per type; what DRAM read and wrote on all chips that have names of their own for it
    ops_path: bool
    dram_op: bool
    # every chip that the release profiles can be named; False only for `BASE`, which newer releases read too
    exact: bool

    @property
    def architectures(self) -> tuple[int, ...]:
        """Architecture numbers that may be written, in order."""
        return tuple(sorted(_numbers(self.release).values()))

    def number(self, capability: Capability) -> int | None:
        """How a compute capability is written; None if it can't be."""
        return _numbers(self.release).get(capability)

    def ranges(self, wanted: Collection[Capability], among: Iterable[Capability]) -> tuple[Range, ...]:
        """The shortest ranges that hold on the ``wanted`` compute capabilities ``among`` all that there are.

        `BASE` reaches chips that it can't name by an open end only, which then holds on all of them and, if need be, on the
        newest that has a name: such ranges are as wide as necessary.  Other dialects leave out what their release does not
        profile; without any chip left the result is empty.  `EVERYWHERE` where no filter is needed.
        """
        return _ranges(self, frozenset(wanted), frozenset(among))

    def meet(self, one: Iterable[Range], other: Iterable[Range]) -> bool:
        """Whether two lists of ranges share an architecture."""

        def holds(ranges: Iterable[Range], number: int) -> bool:
            return any((low is None or low <= number) and (high is None or number <= high) for low, high in ranges)

        return any(holds(one, number) and holds(other, number) for number in (*self.architectures, 999))


@lru_cache(maxsize=4096)  # generating asks for the same few some ten thousand times
def _ranges(dialect: Dialect, wanted: frozenset[Capability], among: frozenset[Capability]) -> tuple[Range, ...]:
    chips = sorted((number, chip in wanted) for chip in among if (number := dialect.number(chip)) is not None)
    beyond = any(dialect.number(chip) is None for chip in wanted)
    if all(inside for _, inside in chips) and (dialect.exact or beyond):
        return EVERYWHERE
    top, top_inside = chips[-1]
    found: list[Range] = []
    start = 0
    for (number, inside), (_, next_inside) in zip(chips, [*chips[1:], (0, False)], strict=True):
        start = start or number
        if not inside:
            start = 0
        elif not next_inside:
            found.append((None if start == chips[0][0] else start, number))
    if beyond and top_inside:
        found[-1] = (found[-1][0], None)
    elif beyond and not dialect.exact:
        found.append((top, None))
    return tuple(found)


@cache
def _numbers(release: Release) -> dict[Capability, int]:
    named = ((a.compute_capability, a.number(release)) for a in load_spec().architectures)
    return {capability: number for capability, number in named if number is not None}


def _dialect(release: Release, metrics: Release) -> Dialect:
    def has(message: str, field: str) -> bool:
        return schema().messages[message][field].history.known_to(release)

    return Dialect(
        release,
        metrics,
        has_cc_names=all(one.history.known_to(release) for one in schema().enums["GpuArch"] if one.name == "CC_80"),
        filter_items=has("Filter", "Items"),
        definition_filter=has("Definition", "Filter"),
        show_only_if_not_zero=has("RooflineOptions", "ShowOnlyIfNotZero"),
        nested_expressions=release >= CHAINS_PROVEN,
        samples=has("BodyItem", "Timeline") and release >= SAMPLED_SINCE,
        ops_path=metrics >= OPS_PATH_SINCE,
        dram_op=metrics >= DRAM_OP_SINCE,
        exact=release == metrics,
    )


BASE = _dialect(FIRST_RELEASE, (9999, 0))
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
    return _dialect(release, release)


class Choice:
    """Bindings by chip.  ``dense``: of tensor work, sparse products, which cost a replay pass more, are not counted."""

    def __init__(self, spec: Spec, dialect: Dialect, *, dense: bool = False) -> None:
        self.spec, self.dialect, self._dense = spec, dialect, dense
        self.chips: Chips = frozenset([*(a.compute_capability for a in spec.architectures), LAST])
        self._nameless = frozenset(chip for chip in self.chips if not dialect.number(chip))
        self._chosen: dict[tuple[str, Capability], Binding | None] = {}

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

    def told(self, chips: Chips) -> Chips:
        """Those of some chips whose filter lets no other chip through: all, if they are all that the dialect can't name."""
        return chips if self.dialect.exact or self._nameless <= chips else chips - self._nameless

    def falls_short(self, item: Precision | Level) -> tuple[Capability, ...]:
        """The chips on which an item has more counters than those used, as its dialect can't tell them from chips without."""
        short = []
        for chip in sorted(self.chips - {LAST}):
            used = self.binding(item, chip)
            best = next((one for one in self.spec.bindings(item, chip) if one.source == "binding"), None)
            if used and best and set(used.counters.counters()) < set(best.counters.counters()):
                short.append(chip)
        return tuple(short)

    # Sparse work, which `BASE` counts where chips can't be told apart, left out

    def counts_dense(self, item: Precision | Level) -> bool:
        """Whether `dense_work` is what counts instead of `binding`, which has dense work where every chip has a name."""
        return self._dense and not self.dialect.exact and isinstance(item, Precision) and item.kind == "tensor"

    def dense_work(self, item: Precision | Level, chip: Capability) -> WeightedSum | None:
        """The dense work of a type; None if there is none, or if a chip that can't be told from this one has more of it."""
        work = self._dense_counters(item, chip)
        return None if work and self._confused(item, chip, work) else work

    def stands_in(self, part: Precision) -> bool:
        """Whether some chip does all work of a type in this part of it, and can't be told from chips that have more parts."""
        if not part.part_of or not self.counts_dense(part):
            return False
        whole = self.spec.precision(part.part_of)
        work = {chip: self._dense_counters(whole, chip) for chip in self.chips}
        left_out = {one for chip, one in work.items() if one and self._confused(whole, chip, one)}
        return any(self._dense_counters(part, chip) in left_out for chip in self.chips)

    def _dense_counters(self, item: Precision | Level, chip: Capability) -> WeightedSum | None:
        return next((one.counters for one in self._usable(item, chip) if not one.includes), None)

    def _confused(self, item: Precision | Level, chip: Capability, work: WeightedSum) -> bool:
        """Whether a chip that can't be told from this one has the counters of this work as well, but needs others."""
        alike = self._nameless if chip in self._nameless else ()
        others = (self._dense_counters(item, one) for one in alike)
        return any(set(work.counters()) < set(other.counters()) for other in others if other)

    def _usable(self, item: Precision | Level, chip: Capability) -> list[Binding]:
        architecture = self.spec.architecture(chip)
        lacking = architecture is not None and item.id in architecture.lacks
        if self._left_out(item.id, chip) or (lacking and not self.dialect.exact):
            return []
        alike = self._nameless if chip in self._nameless else (chip,)
        return [
            binding
            for binding in self.spec.bindings(item, chip)
            if binding.source != "embedded"
            and not any(self._left_out(part, one) for part in binding.includes for one in alike)
            and (self.dialect.ops_path or not any("sm__ops_path_tensor_" in name for name in binding.counters.counters()))
        ]

    def _left_out(self, item: str, chip: Capability) -> bool:
        """Whether counting it would cost a replay pass of its own (asked of the metric library)."""
        architecture = self.spec.architecture(chip)
        return architecture is not None and item in architecture.left_out
