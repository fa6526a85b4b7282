"""A parsed section file as the rules need it, and `Finding`, what they report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from ncu_roofline.formats.sectionfile.charts import Line, Program, compile_section
from ncu_roofline.formats.sectionfile.section import EVERYWHERE, Filter, Section, filter_of, name_on
from ncu_roofline.formats.sectionfile.text import Document, Field

ERROR, WARNING, INFO = "error", "warning", "info"
"""Severities: Nsight Compute drops something; it may, or the numbers mislead; good to know."""

_METRICS = ("Metrics", "Metric", "ValuePerCycleMetrics", "CyclesPerSecondMetric")
_OWN_FILTER = ("Section", "Items")
ROOFLINE, SOURCE, OTHER = "roofline", "source", "other"
"""Where a metric stands: inside a roofline chart; for the Source page, where names follow other rules; anywhere else."""


@dataclass(frozen=True)
class Finding:
    """One remark: line and column count from 1; `code` names the rule; `path` is "" for a text without file."""

    severity: str
    line: int
    column: int
    code: str
    message: str
    path: str = ""

    def as_dict(self) -> dict[str, str | int]:
        """For JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.path or 'section'}:{self.line}:{self.column}: {self.severity}: {self.message} [{self.code}]"


class Placed(NamedTuple):
    """A metric's message, its place, the filters around it, the outermost first, each as it acts, and what its names end in."""

    metric: Any
    field: Field
    filters: tuple[Filter, ...]
    role: str
    suffix: str = ""

    def on(self, arch: int) -> str:
        """The name that is collected on an architecture, "" for none."""
        if not all(one.matches(arch) for one in self.filters):
            return ""
        name = name_on(self.metric, arch, self.filters[-1] if self.filters else EVERYWHERE)
        return f"{name}{self.suffix}" if name else ""

    def place(self, name: str) -> Field:
        """The field that gives a name: the metric's own or that of an alternative."""
        alternatives = (one for one in self.field.all("Options") if one.text("Name") + self.suffix == name)
        own = self.field.text("Name") + self.suffix == name
        return self.field if own else next(alternatives, self.field)


class PlacedDefinition(NamedTuple):
    """A derived metric with its filter as it acts, and its place."""

    name: str
    expression: str
    filter: Filter
    field: Field


class ShownChart(NamedTuple):
    """A roofline chart on one chip: its lines, each with its place."""

    field: Field
    lines: tuple[tuple[Line, Field], ...]
    program: Program


@dataclass(frozen=True, eq=False)
class Content:
    """A section file that parses."""

    path: str
    document: Document
    _collected: dict[int, dict[str, Placed]] = field(default_factory=dict, init=False)

    @property
    def section(self) -> Section:
        """The section as charts are computed from it.  Raises ValueError for one without identifier."""
        return self.document.section

    @property
    def root(self) -> Field:
        """All fields."""
        return self.document.root

    @cached_property
    def metrics(self) -> tuple[Placed, ...]:
        """Every metric with a name, in order."""
        return tuple(_placed(self.root, (), OTHER))

    @cached_property
    def definitions(self) -> tuple[PlacedDefinition, ...]:
        """Every derived metric, in order."""
        around = filter_of(self.root.message)
        fields = (field for owner in self.root.all("MetricDefinitions") for field in owner.children)
        return tuple(
            PlacedDefinition(one.text("Name"), one.text("Expression"), filter_of(one.message).inside(around), one)
            for one in fields
        )

    def defined_on(self, arch: int) -> Mapping[str, PlacedDefinition]:
        """Derived metrics of an architecture; the first of a name counts."""
        return {definition.name: definition for definition in reversed(self.definitions) if definition.filter.matches(arch)}

    def collected_on(self, arch: int) -> Mapping[str, Placed]:
        """Names collected on an architecture, in order, each with its first place."""
        found = self._collected.get(arch)
        if found is None:
            found = self._collected[arch] = {}
            for placed in self.metrics:
                if name := placed.on(arch):
                    found.setdefault(name, placed)
        return found

    @cached_property
    def chart_fields(self) -> tuple[Field, ...]:
        """Roofline charts in the order of `section.charts`."""
        return tuple(chart for body in self.root.all("Body") for item in body.all("Items") for chart in _charts(item))

    def charts_on(self, arch: int) -> Iterator[ShownChart]:
        """The charts shown on an architecture."""
        program = compile_section(self.section, arch)
        for position, lines in program.charts:
            chart = self.chart_fields[position]
            places = (*chart.all("Rooflines"), *chart.all("AchievedValues"), *chart.all("Walls"))
            yield ShownChart(chart, tuple(zip(lines, places, strict=True)), program)


def _placed(field: Field, filters: tuple[Filter, ...], role: str) -> Iterator[Placed]:
    if field.name == "SuffixTable":  # base names times suffixes
        suffixes = [one.text("Name") for owner in field.all("Suffixes") for one in owner.all("Suffix")]
        places = (place for owner in field.all("BaseNames") for place in owner.all("BaseName"))
        yield from (Placed(place.message, place, filters, OTHER, suffix) for place in places for suffix in suffixes)
        return
    if field.name in _METRICS and field.first("Name"):
        if field.text("Name"):
            yield Placed(field.message, field, filters, role)
        return
    if field.name in _OWN_FILTER and field.first("Filter"):
        filters = (*filters, filter_of(field.message).inside(filters[-1] if filters else EVERYWHERE))
    for child in field.children:
        if child.name != "MetricDefinitions":
            yield from _placed(child, filters, {"RooflineChart": ROOFLINE, "SourceMetrics": SOURCE}.get(child.name, role))


def _charts(item: Field) -> Iterator[Field]:
    yield from item.all("RooflineChart")
    for container in item.all("HorizontalContainer"):
        for inner in container.all("Items"):
            yield from _charts(inner)
