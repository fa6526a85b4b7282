"""Everything about a section's charts that depends on the chip alone: which are shown, which metric names hold.

Done once per section and compute capability, so that evaluating a kernel is look-ups and sums.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ncu_roofline.sections.chart import NO_CLOCK, NO_VALUE, NOT_A_NUMBER, NOT_FOR_THIS_CHIP
from ncu_roofline.sections.definitions import Expression, parse_expression
from ncu_roofline.sections.filters import ArchFilter, SectionMetric
from ncu_roofline.sections.tree import ChartPlan, ChartValue, ConstantValue, MetricValue, PerSecondValue, Section, Style


@dataclass(frozen=True)
class Term:
    """A value: `constant`, or the sum of `names` times `clock` if there is one; `problem` if it never has a value."""

    names: tuple[str, ...] = ()
    clock: str = ""
    constant: float = math.nan
    problem: str = ""

    @property
    def all_names(self) -> tuple[str, ...]:
        """The metrics it reads, the clock last."""
        return (*self.names, self.clock) if self.clock else self.names


@dataclass(frozen=True)
class Line:
    """A roof, point or wall: its parts by name, and the value that hides it while zero."""

    kind: str
    style: Style
    parts: tuple[tuple[str, Term], ...]
    condition: Term | None = None


@dataclass(frozen=True)
class Program:
    """The charts shown on a chip, and its derived metrics."""

    charts: tuple[tuple[ChartPlan, tuple[Line, ...]], ...]
    definitions: Mapping[str, Expression]


@dataclass(frozen=True)
class _Chip:
    """An architecture number, and the filter that surrounds the metrics of a chart."""

    arch: int
    around: ArchFilter

    def resolve(self, metrics: tuple[SectionMetric, ...]) -> tuple[str, ...]:
        """Names that hold here; what has none is left out."""
        found = [metric.resolve(self.arch, self.around) for metric in metrics]
        return tuple(one.name for one in found if one is not None)


@lru_cache(maxsize=1024)
def compile_section(section: Section, arch: int) -> Program:
    """The program of `section` for an architecture number (`filters.arch_number`)."""
    charts = [(plan, around) for plan in section.charts if (around := _surroundings(section, plan, arch)) is not None]
    return Program(tuple((plan, _lines(plan, _Chip(arch, around))) for plan, around in charts), _definitions(section, arch))


def _surroundings(section: Section, plan: ChartPlan, arch: int) -> ArchFilter | None:
    """The filters around a chart as one, or None if one of them hides it."""
    around = section.filter
    for inner in plan.filters:
        around = inner.inside(around)
        if not around.matches(arch):
            return None
    return around


def _lines(plan: ChartPlan, chip: _Chip) -> tuple[Line, ...]:
    lines = []
    for roof in plan.roofs:
        parts = (("work", _term(roof.peak_work, chip)), ("traffic", _term(roof.peak_traffic, chip)))
        condition = _term(roof.show_only_if_not_zero, chip) if roof.show_only_if_not_zero else None
        lines.append(Line("roof", roof.style, parts, condition))
    for point in plan.points:
        parts = (("work", _term(point.work, chip)), ("traffic", _term(point.traffic, chip)))
        lines.append(Line("point", point.style, parts))
    lines += [Line("wall", wall.style, (("value", _term(wall.value, chip)),)) for wall in plan.walls]
    return tuple(lines)


def _term(value: ChartValue, chip: _Chip) -> Term:
    if value is None:
        return Term(problem=NO_VALUE)
    if isinstance(value, ConstantValue):
        return Term(constant=value.constant, problem="" if math.isfinite(value.constant) else NOT_A_NUMBER)
    if isinstance(value, MetricValue):
        names = chip.resolve((value.metric,))
        return Term(names, problem="" if names else NOT_FOR_THIS_CHIP)
    return _product(value, chip)


def _product(value: PerSecondValue, chip: _Chip) -> Term:
    """Summands that the section has not for this chip count as absent from the sum (packed FP32 only exists on 10.0, 10.3)."""
    names = chip.resolve(value.per_cycle)
    if value.clock is None:
        return Term(names, problem=NO_CLOCK)
    if not value.per_cycle:
        return Term(problem=NO_VALUE)
    clock = chip.resolve((value.clock,))
    if not clock or not names:
        return Term(names, problem=NOT_FOR_THIS_CHIP)
    return Term(names, clock[0])


def _definitions(section: Section, arch: int) -> dict[str, Expression]:
    """Definitions that hold on this chip and can be read; the first one of a name counts."""
    result: dict[str, Expression] = {}
    for one in section.definitions:
        if not one.filter.inside(section.filter).matches(arch):
            continue
        try:
            result.setdefault(one.name, parse_expression(one.expression))
        except ValueError:
            continue  # charts that use it then lack the metric, and say so
    return result
