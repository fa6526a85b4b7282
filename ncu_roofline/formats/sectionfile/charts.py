"""A section's roofline charts, computed from a kernel's metrics the way Nsight Compute draws them.

A roof, point or wall of which anything is missing is not drawn; `Chart.dropped` says so and why.  If only some of the
summands of a sum are missing, the others are drawn, which is a wrong number: `lacking` names those.  Two deliberate
differences from what the windows of ncu-ui 2024.1 and 2024.2 show for hand-made sections:

* a summand whose filter excludes the chip: they draw nothing, here it is left out of the sum, as stock sections need since
  2025.4 (packed FP32, which few chips have);
* a derived metric that the report lacks but the section defines: computed here, and named in `computed`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from ncu_roofline.formats.sectionfile.definitions import Expression, Value, parse_expression
from ncu_roofline.formats.sectionfile.section import (
    ArchFilter,
    Axis,
    ChartValue,
    ConstantValue,
    MetricValue,
    PerSecondValue,
    Section,
    SectionChart,
    SectionMetric,
    Style,
    arch_number,
)

MISSING = "metric is not in the report"
NOT_A_NUMBER = "metric has no number"
NOT_FOR_THIS_CHIP = "the section has no metric for this compute capability"
NO_CLOCK = "the section names no cycles-per-second metric"
NO_VALUE = "the section gives no value"
NOT_POSITIVE = "value is not positive"
HIDDEN = "the section hides it while a metric is zero"
IMPLAUSIBLE = "no GPU can have this value"
"""Why something of a section is not drawn: `Dropped.reason` is one of these."""
Metrics = Mapping[str, float | int | str]
_MAX_DEPTH = 20  # derived metrics of derived metrics
_MEASURED = re.compile(r"\bmeasured\b")


@dataclass(frozen=True)
class Roof:
    """Peak work (horizontal line) and peak traffic (diagonal line); `model.plausible` makes NaN of a line that can't be.

    `computed` names derived metrics that the report lacks and that were computed here from the section's definitions;
    NVIDIA's viewers, which compute them only while profiling, draw no such roof.  `lacking`: summands that the report lacks.
    """

    label: str
    peak_work: float
    peak_traffic: float
    work_metrics: tuple[str, ...]
    traffic_metrics: tuple[str, ...]
    color: int | None = None
    computed: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """All metrics that gave the roof; empty for one made of constants."""
        return tuple(dict.fromkeys(self.work_metrics + self.traffic_metrics))

    @property
    def ridge(self) -> float:
        """Intensity where the two lines meet, FLOP/byte."""
        return self.peak_work / self.peak_traffic

    @property
    def is_measured(self) -> bool:
        """Whether the section calls it measured; all others are theoretical."""
        return _MEASURED.search(self.label) is not None


@dataclass(frozen=True)
class Point:
    """Achieved work and traffic per second, and their quotient."""

    label: str
    work: float
    traffic: float
    intensity: float
    work_metrics: tuple[str, ...]
    traffic_metrics: tuple[str, ...]
    color: int | None = None
    computed: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """All metrics that gave the point."""
        return tuple(dict.fromkeys(self.work_metrics + self.traffic_metrics))


@dataclass(frozen=True)
class Wall:
    """A vertical line at an intensity, FLOP/byte."""

    label: str
    intensity: float
    metrics: tuple[str, ...] = ()
    color: int | None = None
    computed: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dropped:
    """Something the section describes that is not drawn: kind is "roof", "point" or "wall", `part` the side at fault
    ("work", "traffic", "value" or "condition"), `metrics` those that caused it."""

    kind: str
    label: str
    part: str
    reason: str
    metrics: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chart:
    """One roofline chart of one kernel."""

    section: str
    title: str
    label: str
    body: str
    axis_intensity: Axis
    axis_work: Axis
    roofs: tuple[Roof, ...]
    points: tuple[Point, ...]
    walls: tuple[Wall, ...]
    dropped: tuple[Dropped, ...]


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

    charts: tuple[tuple[SectionChart, tuple[Line, ...]], ...]
    definitions: Mapping[str, Expression]


@lru_cache(maxsize=1024)
def compile_section(section: Section, arch: int) -> Program:
    """The program of `section` for an architecture number (`section.arch_number`)."""
    charts = []
    for plan in section.charts:
        around, shown = section.filter, True
        for inner in plan.filters:
            around = inner.inside(around)
            shown = shown and around.matches(arch)
        if shown:
            charts.append((plan, _lines(plan, arch, around)))
    definitions: dict[str, Expression] = {}
    for one in section.definitions:  # the first one of a name counts
        if one.filter.inside(section.filter).matches(arch):
            with suppress(ValueError):  # charts that use what can't be read lack the metric, and say so
                definitions.setdefault(one.name, parse_expression(one.expression))
    return Program(tuple(charts), definitions)


def _lines(plan: SectionChart, arch: int, around: ArchFilter) -> tuple[Line, ...]:
    def names_of(metrics: tuple[SectionMetric, ...]) -> tuple[str, ...]:
        """Names that hold here; what has none is left out."""
        found = (metric.resolve(arch, around) for metric in metrics)
        return tuple(one.name for one in found if one is not None)

    def term(value: ChartValue) -> Term:
        if value is None or (isinstance(value, PerSecondValue) and value.clock and not value.per_cycle):
            return Term(problem=NO_VALUE)
        if isinstance(value, ConstantValue):
            return Term(constant=value.constant, problem="" if math.isfinite(value.constant) else NOT_A_NUMBER)
        if isinstance(value, MetricValue):
            names = names_of((value.metric,))
            return Term(names, problem="" if names else NOT_FOR_THIS_CHIP)
        # Summands that the section has not for this chip count as absent from the sum (packed FP32 only exists on 10.0, 10.3).
        names = names_of(value.per_cycle)
        clock = names_of((value.clock,)) if value.clock else ()
        if not names or not clock:
            return Term(names, problem=NOT_FOR_THIS_CHIP if value.clock else NO_CLOCK)
        return Term(names, clock[0])

    lines = []
    for roof in plan.roofs:
        parts = (("work", term(roof.peak_work)), ("traffic", term(roof.peak_traffic)))
        condition = term(roof.show_only_if_not_zero) if roof.show_only_if_not_zero else None
        lines.append(Line("roof", roof.style, parts, condition))
    lines += [Line("point", one.style, (("work", term(one.work)), ("traffic", term(one.traffic)))) for one in plan.points]
    lines += [Line("wall", wall.style, (("value", term(wall.value)),)) for wall in plan.walls]
    return tuple(lines)


def evaluate_charts(section: Section, metrics: Metrics, compute_capability: tuple[int, int]) -> list[Chart]:
    """The charts that `section` shows for a kernel with `metrics` (base units: ns, hz, byte/s) on a chip.

    A chart without any roof or point is returned, too: its `dropped` says what is missing.  Never raises for odd metrics.
    """
    program = compile_section(section, arch_number(compute_capability))
    reader = _Reader(metrics, program.definitions)
    charts = []
    for plan, lines in program.charts:
        done = [_drawn(line, reader) for line in lines]
        charts.append(
            Chart(
                section=section.identifier,
                title=section.display_name,
                label=plan.label,
                body=plan.body,
                axis_intensity=plan.axis_intensity,
                axis_work=plan.axis_work,
                roofs=tuple(one for one in done if isinstance(one, Roof)),
                points=tuple(one for one in done if isinstance(one, Point)),
                walls=tuple(one for one in done if isinstance(one, Wall)),
                dropped=tuple(one for one in done if isinstance(one, Dropped)),
            )
        )
    return charts


@lru_cache(maxsize=512)
def needed_metrics(section: Section, compute_capability: tuple[int, int]) -> tuple[str, ...]:
    """Every metric that `evaluate_charts` may read on a chip, each once, inputs of derived metrics included."""
    program = compile_section(section, arch_number(compute_capability))
    lines = [line for _, lines in program.charts for line in lines]
    terms = [term for line in lines for _, term in line.parts]
    terms += [line.condition for line in lines if line.condition]
    names = dict.fromkeys(name for term in terms for name in term.all_names)
    pending = list(names)
    while pending:
        expression = program.definitions.get(pending.pop())
        new = [name for name in expression.names if name not in names] if expression else []
        names.update(dict.fromkeys(new))
        pending += new
    return tuple(names)


_Read = tuple[float, str, tuple[str, ...]]
"""What became of a term: its value, why it has none, and the metrics that are at fault."""


class _Reader:
    """Values of one kernel, derived metrics included."""

    def __init__(self, metrics: Metrics, definitions: Mapping[str, Expression]) -> None:
        self.metrics = metrics
        self.definitions = definitions
        self.derived: dict[str, Value] = {}
        self.depth = 0

    def value(self, name: str) -> Value:
        """The report's value, else the value of the section's definition, else None."""
        found = self.metrics.get(name)
        if found is not None or name not in self.definitions:
            return found
        if name not in self.derived and self.depth < _MAX_DEPTH:
            self.derived[name] = None  # a definition that leads back to itself has no value
            self.depth += 1
            self.derived[name] = self.definitions[name].evaluate(self.value)
            self.depth -= 1
        return self.derived.get(name)

    def term(self, term: Term) -> _Read:
        """The value, or NaN with the reason; at fault besides a value are the summands that it lacks."""
        if term.problem or not term.names:
            return term.constant, term.problem, term.names if term.problem else ()
        values = {name: self.value(name) for name in term.all_names}
        missing = tuple(name for name, value in values.items() if value is None)
        if term.clock in missing or not set(term.names) - set(missing):
            return math.nan, MISSING, missing
        numbers = {name: _number(value) for name, value in values.items() if value is not None}
        for wrong, reason in ((math.isnan, NOT_A_NUMBER), (math.isinf, IMPLAUSIBLE)):
            bad = tuple(name for name, number in numbers.items() if wrong(number))
            if bad:
                return math.nan, reason, bad
        # summed by position: old sections list a metric twice to count an FMA as two
        total = sum(numbers[name] for name in term.names if name in numbers) * (numbers[term.clock] if term.clock else 1.0)
        return (total, "", missing) if math.isfinite(total) else (math.nan, IMPLAUSIBLE, term.all_names)


def _number(value: Value) -> float:
    try:
        return math.nan if value is None or isinstance(value, str) else float(value)
    except OverflowError:
        return math.inf


def _drawn(line: Line, reader: _Reader) -> Roof | Point | Wall | Dropped:
    """A line with numbers, or why it is not drawn."""
    label, color = line.style.label, line.style.color
    if line.condition:
        value, reason, culprits = reader.term(line.condition)
        if reason or value == 0:
            return Dropped(line.kind, label, "condition", reason or HIDDEN, culprits or line.condition.all_names)
    values: list[float] = []
    absent: list[str] = []
    for part, term in line.parts:
        value, reason, culprits = reader.term(term)
        if reason or value <= 0:
            reason = reason or (IMPLAUSIBLE if value < 0 and term.names else NOT_POSITIVE)
            return Dropped(line.kind, label, part, reason, culprits or term.all_names)
        values.append(value)
        absent += culprits
    lacking = tuple(dict.fromkeys(absent))
    names = [tuple(name for name in term.all_names if name not in lacking) for _, term in line.parts]
    computed = tuple(dict.fromkeys(name for part in names for name in part if name in reader.derived))
    if line.kind == "wall":
        return Wall(label, values[0], names[0], color, computed, lacking)
    quotient = values[0] / values[1]
    if not 0 < quotient < math.inf:
        return Dropped(line.kind, label, "value", IMPLAUSIBLE, names[0] + names[1])
    if line.kind == "roof":
        return Roof(label, values[0], values[1], names[0], names[1], color, computed, lacking)
    return Point(label, values[0], values[1], quotient, names[0], names[1], color, computed, lacking)
