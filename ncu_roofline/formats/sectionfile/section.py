"""A section: what is read from its text or from a report, generated, and written.

Text is decoded, enums are numbers, absent text is "".  Filters say which metric, definition, chart or section is meant for
which compute capability.  What they do, as seen in the output of ncu 2024.2 for reports with hand-made sections:

* a range is inclusive at both ends and open where a bound is absent;
* `Items` replace the filter's own bounds: any matching item will do;
* filters inside a filtered section or body item inherit what they leave open: the lower bound, the upper bound, the items;
* an alternative (`Options`) that matches replaces the base metric, even where the base metric's own filter matches, too;
  the first match wins, and an alternative without filter matches wherever its surroundings do.
"""

# ruff: noqa: RUF009 - defaults are immutable, `_at` only adds the place to them
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, field
from typing import Any

# Nsight Compute 2025.1 and 2025.2 called the chip of Thor 10.1; all later releases call the same chip 11.0.
_RENAMED = {101: 110}
PER_SECOND = "ValueCyclesPerSecondExpression"
"""The field of a value that is a sum per cycle times the cycles per second."""


def _at(path: str, kind: Any, default: Any = MISSING) -> Any:
    """A field of the model with its path in the message ("" where its own fields stand in the same message) and its kind.

    A list of a kind is a repeated field.  What is absent has the default.  Sets, and in which body item something stands, are
    not told so.
    """
    return field(default=default, metadata={"path": path, "kind": kind})


def arch_number(compute_capability: tuple[int, int]) -> int:
    """The number that sections use for a compute capability: (8, 6) is 86, (12, 1) is 121; 10.1 is 110."""
    major, minor = compute_capability
    number = 10 * major + minor
    return _RENAMED.get(number, number)


@dataclass(frozen=True)
class ArchRange:
    """Architecture numbers from `low` to `high`, both included; None is open."""

    low: int | None = _at("MinArch", int, None)
    high: int | None = _at("MaxArch", int, None)

    def matches(self, arch: int) -> bool:
        """Whether `arch` (as of `arch_number`) lies inside."""
        low = None if self.low is None else _RENAMED.get(self.low, self.low)
        high = None if self.high is None else _RENAMED.get(self.high, self.high)
        return (low is None or low <= arch) and (high is None or arch <= high)


@dataclass(frozen=True)
class ArchFilter:
    """Bounds, or any of some ranges in their place.  Without either it matches everything."""

    bounds: ArchRange = _at("", ArchRange, ArchRange())
    items: tuple[ArchRange, ...] = _at("Items", [ArchRange], ())

    def matches(self, arch: int) -> bool:
        """Whether `arch` (as of `arch_number`) passes."""
        return any(item.matches(arch) for item in self.items or (self.bounds,))

    def inside(self, outer: ArchFilter) -> ArchFilter:
        """This filter where `outer` surrounds it."""
        low = outer.bounds.low if self.bounds.low is None else self.bounds.low
        high = outer.bounds.high if self.bounds.high is None else self.bounds.high
        return ArchFilter(ArchRange(low, high), self.items or outer.items)


EVERYWHERE = ArchFilter()


@dataclass(frozen=True)
class MetricName:
    """A full ncu metric name with its label, for the architectures of a filter."""

    name: str = _at("Name", str)
    label: str = _at("Label", str, "")
    filter: ArchFilter = _at("Filter", ArchFilter, EVERYWHERE)


@dataclass(frozen=True)
class SectionMetric:
    """A metric of a section: a base name and alternatives for other architectures."""

    base: MetricName = _at("", MetricName)
    options: tuple[MetricName, ...] = _at("Options", [MetricName], ())

    def resolve(self, arch: int, around: ArchFilter = EVERYWHERE) -> MetricName | None:
        """The name that holds on `arch` inside a filter, or None where the section has none for it."""
        for option in self.options:
            if option.filter.inside(around).matches(arch):
                return MetricName(option.name, option.label or self.base.label, option.filter)
        return self.base if self.base.filter.inside(around).matches(arch) else None


@dataclass(frozen=True)
class ConstantValue:
    """A number written in the section: FLOP/s, byte/s or FLOP/byte, depending on where it stands."""

    constant: float = _at("Constant", float)

    @property
    def metrics(self) -> tuple[SectionMetric, ...]:
        """No metric."""
        return ()


@dataclass(frozen=True)
class MetricValue:
    """The value of one metric."""

    metric: SectionMetric = _at("Metric", SectionMetric)

    @property
    def metrics(self) -> tuple[SectionMetric, ...]:
        """The one metric."""
        return (self.metric,)


@dataclass(frozen=True)
class PerSecondValue:
    """The sum of metrics that count per cycle, times the cycles per second that `clock` gives (None: not stated)."""

    per_cycle: tuple[SectionMetric, ...] = _at(f"{PER_SECOND}.ValuePerCycleMetrics", [SectionMetric])
    clock: SectionMetric | None = _at(f"{PER_SECOND}.CyclesPerSecondMetric", SectionMetric, None)

    @property
    def metrics(self) -> tuple[SectionMetric, ...]:
        """All metrics, the clock last."""
        return (*self.per_cycle, self.clock) if self.clock else self.per_cycle


ChartValue = ConstantValue | MetricValue | PerSecondValue | None
_VALUE: Any = ChartValue


@dataclass(frozen=True)
class Style:
    """Label and colour (0xAARRGGBB, None if the section leaves it to the viewer) of a roof, point or wall."""

    label: str = _at("Options.Label", str, "")
    color: int | None = _at("Options.Color.ColorValue", int, None)


@dataclass(frozen=True)
class SectionRoof:
    """A pair of a horizontal and a diagonal line."""

    peak_work: ChartValue = _at("PeakWork", _VALUE, None)
    peak_traffic: ChartValue = _at("PeakTraffic", _VALUE, None)
    style: Style = _at("", Style, Style())
    show_only_if_not_zero: ChartValue = _at("Options.ShowOnlyIfNotZero", _VALUE, None)


@dataclass(frozen=True)
class SectionPoint:
    """An achieved value."""

    work: ChartValue = _at("AchievedWork", _VALUE, None)
    traffic: ChartValue = _at("AchievedTraffic", _VALUE, None)
    style: Style = _at("", Style, Style())


@dataclass(frozen=True)
class SectionWall:
    """A vertical line at an intensity."""

    value: ChartValue = _at("Value", _VALUE, None)
    style: Style = _at("", Style, Style())


@dataclass(frozen=True)
class Axis:
    """An axis: label with unit, base of the logarithm and range, None where the section leaves it to the viewer."""

    label: str = _at("Label", str, "")
    base: float | None = _at("Base", float, None)
    minimum: float | None = _at("Min", float, None)
    maximum: float | None = _at("Max", float, None)


@dataclass(frozen=True)
class SectionChart:
    """A roofline chart of a section body; `filters` are those of its body items, the outermost first."""

    label: str = _at("Label", str)
    axis_intensity: Axis = _at("AxisIntensity", Axis, Axis())
    axis_work: Axis = _at("AxisWork", Axis, Axis())
    roofs: tuple[SectionRoof, ...] = _at("Rooflines", [SectionRoof], ())
    points: tuple[SectionPoint, ...] = _at("AchievedValues", [SectionPoint], ())
    walls: tuple[SectionWall, ...] = _at("Walls", [SectionWall], ())
    body: str = ""
    filters: tuple[ArchFilter, ...] = (EVERYWHERE,)

    def metrics(self) -> Iterator[SectionMetric]:
        """Every metric of its roofs, points and walls."""
        values = [value for roof in self.roofs for value in (roof.peak_work, roof.peak_traffic, roof.show_only_if_not_zero)]
        values += [value for point in self.points for value in (point.work, point.traffic)]
        for value in (*values, *(wall.value for wall in self.walls)):
            yield from value.metrics if value else ()


@dataclass(frozen=True)
class SectionTable:
    """A table of a section body."""

    label: str = _at("Label", str)
    metrics: tuple[SectionMetric, ...] = _at("Metrics", [SectionMetric])
    columns: int = _at("Columns", int, 2)
    body: str = ""
    filters: tuple[ArchFilter, ...] = (EVERYWHERE,)


@dataclass(frozen=True)
class TimelineRow:
    """What is drawn over each other along the time."""

    label: str = _at("Label", str)
    metrics: tuple[SectionMetric, ...] = _at("Metrics", [SectionMetric])


@dataclass(frozen=True)
class TimelineGroup:
    """Rows under one heading."""

    label: str = _at("Label", str)
    rows: tuple[TimelineRow, ...] = _at("MetricRows", [TimelineRow])


@dataclass(frozen=True)
class SectionTimeline:
    """Metrics of a section body that are sampled over the time of a launch (2023.3 and later)."""

    groups: tuple[TimelineGroup, ...] = _at("MetricGroups", [TimelineGroup])
    body: str = ""
    filters: tuple[ArchFilter, ...] = (EVERYWHERE,)


@dataclass(frozen=True)
class Definition:
    """A derived metric."""

    name: str = _at("Name", str)
    expression: str = _at("Expression", str)
    filter: ArchFilter = _at("Filter", ArchFilter, EVERYWHERE)


@dataclass(frozen=True, eq=False)  # compared and hashed by identity: sections are keys of caches, and large
class Section:
    """A ProfilerSection message, as far as rooflines need it; `metrics` are collected without being shown.

    Tables stand above the charts of their body, timelines below, and containers of body items are known by their filters only.
    """

    identifier: str = _at("Identifier", str)
    display_name: str = _at("DisplayName", str)
    order: int = _at("Order", int, 0)
    description: str = _at("Description", str, "")
    extends: str = _at("Extends", str, "")
    sets: tuple[str, ...] = ()
    filter: ArchFilter = _at("Filter", ArchFilter, EVERYWHERE)
    header: tuple[SectionMetric, ...] = _at("Header.Metrics", [SectionMetric], ())
    header_rows: int | None = _at("Header.Rows", int, None)
    metrics: tuple[SectionMetric, ...] = _at("Metrics.Metrics", [SectionMetric], ())
    definitions: tuple[Definition, ...] = _at("MetricDefinitions.MetricDefinitions", [Definition], ())
    tables: tuple[SectionTable, ...] = ()
    charts: tuple[SectionChart, ...] = ()
    timelines: tuple[SectionTimeline, ...] = ()

    def shown(self) -> Iterator[SectionMetric]:
        """Every metric of header, tables, charts and timelines."""
        yield from self.header
        for table in self.tables:
            yield from table.metrics
        for chart in self.charts:
            yield from chart.metrics()
        for timeline in self.timelines:
            for group in timeline.groups:
                for row in group.rows:
                    yield from row.metrics
