"""What a release of Nsight Compute understands in a section: fields, architecture names, metrics.

What differs between releases is in the schema of sections or the file of an architecture; generators ask a `Dialect`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache, lru_cache

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import Capability, Release
from ncu_roofline.chips.metric_names import DRAM_OP_SINCE, OPS_PATH_SINCE
from ncu_roofline.formats.sectionfile.definitions import CHAINS_PROVEN
from ncu_roofline.formats.sectionfile.schema import release_of, schema
from ncu_roofline.formats.sectionfile.section import ArchRange

FIRST_RELEASE: Release = (2020, 3)
"""The first release with derived metrics in sections (``MetricDefinitions``), which every roof here needs."""

SAMPLED_SINCE: Release = (2024, 1)
"""The first release whose sampled metrics are known here (``--query-metrics-collection pmsampling``)."""

EVERYWHERE: tuple[ArchRange, ...] = (ArchRange(),)


@dataclass(frozen=True)
class Dialect:
    """What may be written for a release.

    ``metrics`` is the release whose metric names are known; it is later than ``release`` only for `BASE`, whose fields all
    releases can read while newer ones collect more.
    """

    release: Release
    metrics: Release

    def _has(self, message: str, field: str) -> bool:
        return schema().messages[message][field].history.known_to(self.release)

    @property
    def has_cc_names(self) -> bool:
        """Whether architectures are called CC_80, not GA100; numbers are accepted by all."""
        return all(enum.history.known_to(self.release) for enum in schema().enums["GpuArch"] if enum.name == "CC_80")

    @property
    def filter_items(self) -> bool:
        """Whether a filter may hold several ranges."""
        return self._has("Filter", "Items")

    @property
    def definition_filter(self) -> bool:
        """Whether a derived metric may be restricted to architectures."""
        return self._has("Definition", "Filter")

    @property
    def show_only_if_not_zero(self) -> bool:
        """Whether a roof may be hidden while a metric is zero."""
        return self._has("RooflineOptions", "ShowOnlyIfNotZero")

    @property
    def nested_expressions(self) -> bool:
        """Whether derived metrics may have several operators, and parentheses."""
        return self.release >= CHAINS_PROVEN

    @property
    def samples(self) -> bool:
        """Whether metrics can be sampled over the time of a launch, by names that the release knows."""
        return self._has("BodyItem", "Timeline") and self.release >= SAMPLED_SINCE

    @property
    def ops_path(self) -> bool:
        """Whether tensor operations are counted per type.  Older releases do not know the metrics' names."""
        return self.metrics >= OPS_PATH_SINCE

    @property
    def dram_op(self) -> bool:
        """Whether what DRAM read and what it wrote is counted on all chips that have names of their own for that."""
        return self.metrics >= DRAM_OP_SINCE

    @property
    def exact(self) -> bool:
        """Whether every chip that the release profiles can be named; False only for `BASE`, which newer releases read too."""
        return self.release == self.metrics

    @property
    def architectures(self) -> tuple[int, ...]:
        """Architecture numbers that may be written, in order."""
        return tuple(sorted(_numbers(self.release).values()))

    def number(self, capability: Capability) -> int | None:
        """How a compute capability is written; None if it can't be."""
        return _numbers(self.release).get(capability)

    def ranges(self, wanted: Collection[Capability], among: Iterable[Capability]) -> tuple[ArchRange, ...]:
        """The shortest ranges that hold on the ``wanted`` compute capabilities ``among`` all that there are.

        `BASE` reaches chips that it can't name by an open end only, which then holds on all of them and, if need be, on the
        newest that has a name: such ranges are as wide as necessary.  Other dialects leave out what their release does not
        profile; without any chip left the result is empty.  `EVERYWHERE` where no filter is needed.
        """
        return _ranges(self, frozenset(wanted), frozenset(among))

    def shortest(self, wanted: Collection[Capability], among: Iterable[Capability]) -> tuple[ArchRange, ...]:
        """`ranges`, without its memory."""
        chips = sorted((number, chip in wanted) for chip in among if (number := self.number(chip)) is not None)
        beyond = any(self.number(chip) is None for chip in wanted)
        if all(inside for _, inside in chips) and (self.exact or beyond):
            return EVERYWHERE
        top, top_inside = chips[-1]
        found: list[ArchRange] = []
        start = 0
        for (number, inside), (_, next_inside) in zip(chips, [*chips[1:], (0, False)], strict=True):
            start = start or number
            if not inside:
                start = 0
            elif not next_inside:
                found.append(ArchRange(None if start == chips[0][0] else start, number))
        if beyond and top_inside:
            found[-1] = ArchRange(found[-1].low, None)
        elif beyond and not self.exact:
            found.append(ArchRange(top, None))
        return tuple(found)

    def meet(self, one: Iterable[ArchRange], other: Iterable[ArchRange]) -> bool:
        """Whether two lists of ranges share an architecture."""
        probes = (*self.architectures, 999)
        return any(_holds(one, number) and _holds(other, number) for number in probes)


@lru_cache(maxsize=4096)  # generating asks for the same few some ten thousand times
def _ranges(dialect: Dialect, wanted: frozenset[Capability], among: frozenset[Capability]) -> tuple[ArchRange, ...]:
    return dialect.shortest(wanted, among)


@cache
def _numbers(release: Release) -> dict[Capability, int]:
    named = ((a.compute_capability, a.number(release)) for a in load_spec().architectures)
    return {capability: number for capability, number in named if number is not None}


def _holds(ranges: Iterable[ArchRange], number: int) -> bool:
    return any((r.low is None or r.low <= number) and (r.high is None or number <= r.high) for r in ranges)


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
