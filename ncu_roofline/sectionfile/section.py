"""A section, decoded: what `parse_section` returns.  Text is decoded, enums are numbers, absent text is ""."""

from __future__ import annotations

from dataclasses import dataclass

from ncu_roofline.sectionfile.filters import EVERYWHERE, ArchFilter, SectionMetric


@dataclass(frozen=True)
class ConstantValue:
    """A number written in the section: FLOP/s, byte/s or FLOP/byte, depending on where it stands."""

    constant: float


@dataclass(frozen=True)
class MetricValue:
    """The value of one metric."""

    metric: SectionMetric


@dataclass(frozen=True)
class PerSecondValue:
    """The sum of metrics that count per cycle, times the cycles per second that `clock` gives (None: not stated)."""

    per_cycle: tuple[SectionMetric, ...]
    clock: SectionMetric | None


ChartValue = ConstantValue | MetricValue | PerSecondValue | None


@dataclass(frozen=True)
class Style:
    """Label and colour (0xAARRGGBB, None if the section leaves it to the viewer) of a roof, point or wall."""

    label: str = ""
    color: int | None = None


@dataclass(frozen=True)
class RoofPlan:
    """A pair of a horizontal and a diagonal line."""

    peak_work: ChartValue
    peak_traffic: ChartValue
    style: Style
    show_only_if_not_zero: ChartValue


@dataclass(frozen=True)
class PointPlan:
    """An achieved value."""

    work: ChartValue
    traffic: ChartValue
    style: Style


@dataclass(frozen=True)
class WallPlan:
    """A vertical line at an intensity."""

    value: ChartValue
    style: Style


@dataclass(frozen=True)
class Axis:
    """An axis: label with unit, base of the logarithm and range, None where the section leaves it to the viewer."""

    label: str = ""
    base: float | None = None
    minimum: float | None = None
    maximum: float | None = None


@dataclass(frozen=True)
class ChartPlan:
    """A roofline chart of a section body; `filters` are those of its body items, the outermost first."""

    label: str
    body: str
    filters: tuple[ArchFilter, ...]
    axis_intensity: Axis
    axis_work: Axis
    roofs: tuple[RoofPlan, ...]
    points: tuple[PointPlan, ...]
    walls: tuple[WallPlan, ...]


@dataclass(frozen=True)
class TablePlan:
    """A table of a section body."""

    label: str
    body: str
    filters: tuple[ArchFilter, ...]
    metrics: tuple[SectionMetric, ...]


@dataclass(frozen=True)
class Definition:
    """A derived metric."""

    name: str
    expression: str
    filter: ArchFilter = EVERYWHERE


@dataclass(frozen=True, eq=False)  # compared and hashed by identity: sections are keys of caches, and large
class Section:
    """A ProfilerSection message, as far as rooflines need it."""

    identifier: str
    display_name: str
    order: int
    description: str
    extends: str
    sets: tuple[str, ...]
    filter: ArchFilter
    header: tuple[SectionMetric, ...]
    metrics: tuple[SectionMetric, ...]
    definitions: tuple[Definition, ...]
    tables: tuple[TablePlan, ...]
    charts: tuple[ChartPlan, ...]
