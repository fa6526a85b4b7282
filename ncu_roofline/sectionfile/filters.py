"""Architecture filters of sections: which metric, definition, chart or section is meant for which compute capability.

What they do, as seen in the output of ncu 2024.2 for reports with hand-made sections:

* a range is inclusive at both ends and open where a bound is absent;
* `Items` replace the filter's own bounds: any matching item will do;
* filters inside a filtered section or body item inherit what they leave open: the lower bound, the upper bound, the items;
* an alternative (`Options`) that matches replaces the base metric, even where the base metric's own filter matches, too;
  the first match wins, and an alternative without filter matches wherever its surroundings do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Nsight Compute 2025.1 and 2025.2 called the chip of Thor 10.1; all later releases call the same chip 11.0.
_RENAMED = {101: 110}


def arch_number(compute_capability: tuple[int, int]) -> int:
    """The number that sections use for a compute capability: (8, 6) is 86, (12, 1) is 121; 10.1 is 110."""
    major, minor = compute_capability
    number = 10 * major + minor
    return _RENAMED.get(number, number)


@dataclass(frozen=True)
class ArchRange:
    """Architecture numbers from `low` to `high`, both included; None is open."""

    low: int | None = None
    high: int | None = None

    def matches(self, arch: int) -> bool:
        """Whether `arch` (as of `arch_number`) lies inside."""
        low = None if self.low is None else _RENAMED.get(self.low, self.low)
        high = None if self.high is None else _RENAMED.get(self.high, self.high)
        return (low is None or low <= arch) and (high is None or arch <= high)


@dataclass(frozen=True)
class ArchFilter:
    """Bounds, or any of some ranges in their place.  Without either it matches everything."""

    bounds: ArchRange = ArchRange()
    items: tuple[ArchRange, ...] = ()

    def matches(self, arch: int) -> bool:
        """Whether `arch` (as of `arch_number`) passes."""
        return any(one.matches(arch) for one in self.items or (self.bounds,))

    def inside(self, outer: ArchFilter) -> ArchFilter:
        """This filter where `outer` surrounds it."""
        low = outer.bounds.low if self.bounds.low is None else self.bounds.low
        high = outer.bounds.high if self.bounds.high is None else self.bounds.high
        return ArchFilter(ArchRange(low, high), self.items or outer.items)


EVERYWHERE = ArchFilter()


@dataclass(frozen=True)
class MetricName:
    """A full ncu metric name with its label, for the architectures of a filter."""

    name: str
    label: str = ""
    filter: ArchFilter = EVERYWHERE


@dataclass(frozen=True)
class SectionMetric:
    """A metric of a section: a base name and alternatives for other architectures."""

    base: MetricName
    options: Sequence[MetricName] = ()

    def resolve(self, arch: int, around: ArchFilter = EVERYWHERE) -> MetricName | None:
        """The name that holds on `arch` inside a filter, or None where the section has none for it."""
        for option in self.options:
            if option.filter.inside(around).matches(arch):
                return MetricName(option.name, option.label or self.base.label, option.filter)
        return self.base if self.base.filter.inside(around).matches(arch) else None
