"""A section as it will be written: what the template walks through.  Names are final, filters are a dialect's ranges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ncu_roofline.generate.dialects import EVERYWHERE, Dialect, Range


@dataclass(frozen=True)
class Choice:
    """A metric name and the architectures it is for."""

    name: str
    ranges: tuple[Range, ...] = EVERYWHERE


@dataclass(frozen=True)
class Metric:
    """A metric that may have another name on other architectures; no two choices share one."""

    choices: tuple[Choice, ...]
    label: str = ""

    def written(self, dialect: Dialect) -> tuple[Choice, ...]:
        """The choices as they are written: where a filter holds one range only, each range is a choice of its own."""
        if dialect.filter_items:
            return self.choices
        return tuple(Choice(one.name, (part,)) for one in self.choices for part in one.ranges)


@dataclass(frozen=True)
class Value:
    """A constant in SI units, or the sum of metrics, times the cycles per second of ``clock`` if they count per cycle."""

    metrics: tuple[Metric, ...] = ()
    clock: Metric | None = None
    constant: float | None = None


@dataclass(frozen=True)
class Roof:
    """Peak work and peak traffic; shown only while ``condition`` is not zero, if there is one."""

    work: Value
    traffic: Value
    label: str
    color: str
    condition: Value | None = None


@dataclass(frozen=True)
class Point:
    """Achieved work and traffic."""

    work: Value
    traffic: Value
    label: str
    color: str


@dataclass(frozen=True)
class Wall:
    """A vertical line."""

    value: float
    label: str
    color: str


@dataclass(frozen=True)
class Chart:
    """A roofline chart with the units of its axes."""

    label: str
    intensity: str
    work: str
    roofs: tuple[Roof, ...]
    points: tuple[Point, ...]
    walls: tuple[Wall, ...] = ()

    def values(self) -> Iterator[Value]:
        """Every value of its roofs and points."""
        for roof in self.roofs:
            yield from (roof.work, roof.traffic)
            if roof.condition:
                yield roof.condition
        for point in self.points:
            yield from (point.work, point.traffic)


@dataclass(frozen=True)
class Table:
    """A table of ``columns`` columns."""

    label: str
    metrics: tuple[Metric, ...]
    columns: int = 2


@dataclass(frozen=True)
class Definition:
    """A derived metric."""

    name: str
    expression: str
    ranges: tuple[Range, ...] = EVERYWHERE


@dataclass(frozen=True)
class Document:
    """A section file.  ``metrics`` are collected without being shown: inputs of derived metrics, totals for other tools."""

    identifier: str
    title: str
    order: int
    description: str
    header: tuple[Metric, ...]
    metrics: tuple[Metric, ...] = ()
    definitions: tuple[Definition, ...] = ()
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()

    @property
    def file(self) -> str:
        """Name of its file."""
        return f"{self.identifier}.section"

    def shown(self) -> Iterator[Metric]:
        """Every metric of header, tables and charts."""
        yield from self.header
        for table in self.tables:
            yield from table.metrics
        for chart in self.charts:
            for value in chart.values():
                yield from value.metrics
                if value.clock:
                    yield value.clock
