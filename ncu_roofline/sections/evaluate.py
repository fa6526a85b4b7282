"""A section's roofline charts, computed from a kernel's metrics the way Nsight Compute draws them.

A roof, point or wall of which anything is missing is not drawn; `Chart.dropped` says so and why.  Three deliberate differences
from what the windows of ncu-ui 2024.1 and 2024.2 show for hand-made sections:

* a summand of a sum that the report lacks: they draw the sum of the others, which is a wrong number; here it is dropped;
* a summand whose filter excludes the chip: they draw nothing, here it is left out of the sum, as stock sections need since
  2025.4 (packed FP32, which few chips have);
* a derived metric that the report lacks but the section defines: computed here, and named in `computed`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

from ncu_roofline.sections.chart import HIDDEN, MISSING, NOT_A_NUMBER, NOT_POSITIVE, Chart, Dropped, Point, Roof, Wall
from ncu_roofline.sections.compile import Line, Term, compile_section
from ncu_roofline.sections.definitions import Expression, Value
from ncu_roofline.sections.filters import arch_number
from ncu_roofline.sections.tree import ChartPlan, Section

Metrics = Mapping[str, float | int | str]
_MAX_DEPTH = 20  # derived metrics of derived metrics


def evaluate_charts(section: Section, metrics: Metrics, compute_capability: tuple[int, int]) -> list[Chart]:
    """The charts that `section` shows for a kernel with `metrics` (base units: ns, hz, byte/s) on a chip.

    A chart without any roof or point is returned, too: its `dropped` says what is missing.  Never raises for odd metrics.
    """
    program = compile_section(section, arch_number(compute_capability))
    reader = _Reader(metrics, program.definitions)
    return [_chart(section, plan, lines, reader) for plan, lines in program.charts]


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

    def term(self, term: Term) -> tuple[float, str, tuple[str, ...]]:
        """The value, or NaN with the reason and the metrics at fault."""
        if term.problem or not term.names:
            return term.constant, term.problem, term.names
        values = {name: self.value(name) for name in term.all_names}
        missing = tuple(name for name, value in values.items() if value is None)
        if missing:
            return math.nan, MISSING, missing
        numbers = {name: _number(value) for name, value in values.items()}
        bad = tuple(name for name, number in numbers.items() if not math.isfinite(number))
        if bad:
            return math.nan, NOT_A_NUMBER, bad
        # summed by position: old sections list a metric twice to count an FMA as two
        total = sum(numbers[name] for name in term.names) * (numbers[term.clock] if term.clock else 1.0)
        return (total, "", ()) if math.isfinite(total) else (math.nan, NOT_A_NUMBER, term.all_names)


def _number(value: Value) -> float:
    try:
        return math.nan if value is None or isinstance(value, str) else float(value)
    except OverflowError:
        return math.inf


def _chart(section: Section, plan: ChartPlan, lines: tuple[Line, ...], reader: _Reader) -> Chart:
    done = [_draw(line, reader) for line in lines]
    return Chart(
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


def _draw(line: Line, reader: _Reader) -> Roof | Point | Wall | Dropped:
    """A line with numbers, or why it is not drawn."""
    if line.condition:
        value, reason, culprits = reader.term(line.condition)
        if reason or value == 0:
            return Dropped(line.kind, line.style.label, "condition", reason or HIDDEN, culprits or line.condition.all_names)
    values = []
    for part, term in line.parts:
        value, reason, culprits = reader.term(term)
        if reason or value <= 0:
            return Dropped(line.kind, line.style.label, part, reason or NOT_POSITIVE, culprits or term.all_names)
        values.append(value)
    return _drawn(line, values, reader)


def _drawn(line: Line, values: list[float], reader: _Reader) -> Roof | Point | Wall | Dropped:
    label, color = line.style.label, line.style.color
    names = [term.all_names for _, term in line.parts]
    computed = tuple(dict.fromkeys(name for part in names for name in part if name in reader.derived))
    if line.kind == "wall":
        return Wall(label, values[0], names[0], color, computed)
    quotient = values[0] / values[1]
    if not 0 < quotient < math.inf:
        return Dropped(line.kind, label, "value", NOT_A_NUMBER, names[0] + names[1])
    if line.kind == "roof":
        return Roof(label, values[0], values[1], names[0], names[1], color, computed)
    return Point(label, values[0], values[1], quotient, names[0], names[1], color, computed)
