"""A section's roofline charts, computed from a kernel's metrics the way Nsight Compute draws them.

A roof, point or wall of which anything is missing is not drawn; `Chart.dropped` says so and why.  If only some of the
summands of a sum are missing, the others are drawn, which is a wrong number: `lacking` names those.  Two deliberate
differences from what the windows of ncu-ui 2024.1 and 2024.2 show for hand-made sections:

* a summand whose filter excludes the chip: they draw nothing, here it is left out of the sum, as stock sections need since
  2025.4 (packed FP32, which few chips have);
* a derived metric that the report lacks but the section defines: computed here, and named in `computed`.

Expressions of derived metrics: `operand op operand`, and the longer form that stock sections use since 2025.1.

    expression := term (("+" | "-") term)*          nan_as_zero(expression) since 2025.3
    term       := factor (("*" | "/") factor)*      a factor may be a parenthesised expression since 2025.1
    factor     := ["-"] (number | metric | "(" expression ")" | "nan_as_zero" "(" expression ")")

Values follow the Customization Guide, "Derived Metrics": the left operand decides the kind of the result (unsigned 64-bit
integer or double) and the right one is converted; division by an integer 0 gives the left operand; a text on the left is
returned unchanged.  A missing operand makes the result missing (None).
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from ncu_roofline.formats.sectionfile.section import PER_SECOND, Filter, Section, arch_number, filter_of, name_on, text_of

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

CHAINS_SINCE, CHAINS_PROVEN = (2024, 1), (2025, 1)
"""Several operators: the first release that has the text of their parser, and the first whose own sections use them."""

NAN_AS_ZERO, NAN_AS_ZERO_SINCE = "nan_as_zero", (2025, 3)

Value = float | int | str | None

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)|(?P<call>nan_as_zero\s*\()|(?P<name>[A-Za-z_][\w.:]*)|(?P<mark>[-+*/()])"
    r"|(?P<bad>\S)|$)",
    re.ASCII,
)
_MAX_LENGTH = 10_000
_DEEPEST = 100  # operators and parentheses that wait for their end
_UINT64 = 2**64
_DIGITS = 40  # of whole numbers that are looked at as such: more than those of 64 bits have
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_RANK = {"+": 1, "-": 1, "*": 2, "/": 2, "negate": 3}


@dataclass(frozen=True)
class _Sides:
    """Work and traffic per second, and the metrics that gave them; none for constants.  `computed` names derived metrics that
    the report lacks and that were computed here from the section's definitions; NVIDIA's viewers, which compute them only while
    profiling, draw nothing with these.  `lacking`: summands that the report lacks."""

    label: str
    work: float
    traffic: float
    work_metrics: tuple[str, ...]
    traffic_metrics: tuple[str, ...]
    computed: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """All metrics that gave it."""
        return tuple(dict.fromkeys(self.work_metrics + self.traffic_metrics))


class Roof(_Sides):
    """Peak work (horizontal line) and peak traffic (diagonal line); `model.embedded` makes NaN of a line that can't be."""

    @property
    def is_measured(self) -> bool:
        """Whether the section calls it measured; all others are theoretical."""
        return re.search(r"\bmeasured\b", self.label) is not None


class Point(_Sides):
    """Achieved work and traffic."""

    @property
    def intensity(self) -> float:
        """Work per traffic."""
        return self.work / self.traffic


@dataclass(frozen=True)
class Wall:
    """A vertical line at an intensity, FLOP/byte."""

    label: str
    intensity: float
    metrics: tuple[str, ...] = ()


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
    section: str
    title: str
    label: str
    roofs: tuple[Roof, ...]
    points: tuple[Point, ...]
    walls: tuple[Wall, ...]
    dropped: tuple[Dropped, ...]


class Term(NamedTuple):
    """A value: `constant`, or the sum of `names` times `clock` if there is one; `problem` if it never has a value."""

    names: tuple[str, ...] = ()
    clock: str = ""
    constant: float = math.nan
    problem: str = ""

    @property
    def all_names(self) -> tuple[str, ...]:
        """The metrics it reads, the clock last."""
        return (*self.names, self.clock) if self.clock else self.names


class Line(NamedTuple):
    """A roof, point or wall: its parts by name, and the value that hides it while zero."""

    kind: str
    label: str
    parts: tuple[tuple[str, Term], ...]
    condition: Term | None = None


class Program(NamedTuple):
    """The charts shown on a chip, each with its place among those of the section, and its derived metrics."""

    charts: tuple[tuple[int, tuple[Line, ...]], ...]
    definitions: Mapping[str, Expression]


_PARTS = {
    "roof": ("Rooflines", (("work", "PeakWork"), ("traffic", "PeakTraffic"))),
    "point": ("AchievedValues", (("work", "AchievedWork"), ("traffic", "AchievedTraffic"))),
    "wall": ("Walls", (("value", "Value"),)),
}


@lru_cache(maxsize=1024)
def compile_section(section: Section, arch: int) -> Program:
    """The program of `section` for an architecture number (`section.arch_number`)."""
    of_section = filter_of(section.message)

    def names_of(metrics: Iterable[Any], around: Filter) -> tuple[str, ...]:
        """Names that hold here; what has none is left out."""
        return tuple(name for metric in metrics if (name := name_on(metric, arch, around)) is not None)

    def term(value: Any, around: Filter) -> Term:
        if value.HasField(PER_SECOND):
            # Summands that the section has not for this chip count as absent from the sum (packed FP32 only is on 10.0, 10.3).
            product = value.ValueCyclesPerSecondExpression
            names, clocked = names_of(product.ValuePerCycleMetrics, around), product.HasField("CyclesPerSecondMetric")
            clock = names_of([product.CyclesPerSecondMetric], around) if clocked else ()
            if names and clock:
                return Term(names, clock[0])
            empty = clocked and not product.ValuePerCycleMetrics
            return Term(names, problem=NO_VALUE if empty else NOT_FOR_THIS_CHIP if clocked else NO_CLOCK)
        if value.HasField("Metric"):
            names = names_of([value.Metric], around)
            return Term(names, problem="" if names else NOT_FOR_THIS_CHIP)
        if value.HasField("Constant"):
            return Term(constant=value.Constant, problem="" if math.isfinite(value.Constant) else NOT_A_NUMBER)
        return Term(problem=NO_VALUE)

    charts = []
    for position, (item, filters) in enumerate(section.charts):
        around, shown, lines = of_section, True, list[Line]()
        for inner in filters:
            around = inner.inside(around)
            shown = shown and around.matches(arch)
        for kind, (field, parts) in _PARTS.items() if shown else ():
            for line in getattr(item.RooflineChart, field):
                terms = tuple((part, term(getattr(line, name), around)) for part, name in parts)
                hiding = kind == "roof" and line.Options.ShowOnlyIfNotZero.ListFields()
                condition = term(line.Options.ShowOnlyIfNotZero, around) if hiding else None
                lines.append(Line(kind, text_of(line.Options.Label), terms, condition))
        charts += [(position, tuple(lines))] if shown else []
    definitions: dict[str, Expression] = {}
    for one in section.message.MetricDefinitions.MetricDefinitions:  # the first one of a name counts
        if filter_of(one).inside(of_section).matches(arch):
            with suppress(ValueError):  # charts that use what can't be read lack the metric, and say so
                definitions.setdefault(text_of(one.Name), parse_expression(text_of(one.Expression)))
    return Program(tuple(charts), definitions)


def evaluate_charts(section: Section, metrics: Metrics, compute_capability: tuple[int, int]) -> list[Chart]:
    """The charts that `section` shows for a kernel with `metrics` (base units: ns, hz, byte/s) on a chip.  A chart without any
    roof or point is returned, too: its `dropped` says what is missing.  Never raises for odd metrics."""
    program = compile_section(section, arch_number(compute_capability))
    reader = _Reader(metrics, program.definitions)
    title, charts = text_of(section.message.DisplayName), []
    for position, lines in program.charts:
        drawn: dict[type, list[Any]] = {kind: [] for kind in (Roof, Point, Wall, Dropped)}
        for line in lines:
            found = reader.drawn(line)
            drawn[type(found)].append(found)
        label = text_of(section.charts[position][0].RooflineChart.Label)
        charts.append(Chart(section.identifier, title, label, *map(tuple, drawn.values())))
    return charts


class _Reader:
    """Values of one kernel, derived metrics included."""

    def __init__(self, metrics: Metrics, definitions: Mapping[str, Expression]) -> None:
        self.metrics, self.definitions = metrics, definitions
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
        """The value, or NaN with the reason; and the metrics at fault, besides a value the summands that it lacks."""
        if term.problem or not term.names:
            return term.constant, term.problem, term.names if term.problem else ()
        values = {name: self.value(name) for name in term.all_names}
        missing = tuple(name for name, value in values.items() if value is None)
        if term.clock in missing or not set(term.names) - set(missing):
            return math.nan, MISSING, missing
        numbers = {name: _number(value) for name, value in values.items()}
        bad = {name: number for name, number in numbers.items() if name not in missing and not math.isfinite(number)}
        if bad:
            no_number = tuple(name for name, number in bad.items() if math.isnan(number))
            return math.nan, NOT_A_NUMBER if no_number else IMPLAUSIBLE, no_number or tuple(bad)
        # summed by position: old sections list a metric twice to count an FMA as two
        total = sum(numbers[name] for name in term.names if name not in missing) * (numbers[term.clock] if term.clock else 1.0)
        return (total, "", missing) if math.isfinite(total) else (math.nan, IMPLAUSIBLE, term.all_names)

    def drawn(self, line: Line) -> Roof | Point | Wall | Dropped:
        label, values, absent = line.label, list[float](), list[str]()
        if line.condition:
            value, reason, culprits = self.term(line.condition)
            if reason or value == 0:
                return Dropped(line.kind, label, "condition", reason or HIDDEN, culprits or line.condition.all_names)
        for part, term in line.parts:
            value, reason, culprits = self.term(term)
            if reason or value <= 0:
                reason = reason or (IMPLAUSIBLE if value < 0 and term.names else NOT_POSITIVE)
                return Dropped(line.kind, label, part, reason, culprits or term.all_names)
            values.append(value)
            absent += culprits
        names = [tuple(name for name in term.all_names if name not in absent) for _, term in line.parts]
        computed = tuple(dict.fromkeys(name for part in names for name in part if name in self.derived))
        rest = (computed, tuple(dict.fromkeys(absent)))
        if line.kind == "wall":
            return Wall(label, values[0], names[0])
        if not 0 < values[0] / values[1] < math.inf:
            return Dropped(line.kind, label, "value", IMPLAUSIBLE, names[0] + names[1])
        return (Roof if line.kind == "roof" else Point)(label, values[0], values[1], names[0], names[1], *rest)


def _number(value: Value) -> float:
    try:
        return float(value) if isinstance(value, (int, float)) else math.nan
    except OverflowError:
        return math.inf


class Expression(NamedTuple):
    """A parsed expression: the metrics it reads and its steps in postfix order."""

    names: tuple[str, ...]
    steps: tuple[tuple[str, Value], ...]

    def evaluate(self, value_of: Callable[[str], Value]) -> Value:
        """The value, with `value_of(metric)` for each metric; None if any operand is missing or the result has no value."""
        stack: list[Value] = []
        for action, argument in self.steps:
            if action in ("number", "name"):
                stack.append(argument if action == "number" else value_of(str(argument)))
            elif action not in ("negate", NAN_AS_ZERO):
                right = stack.pop()
                stack.append(_calculated(action, stack.pop(), right))
            elif isinstance(stack[-1], (int, float)):
                value = stack.pop()
                # unsigned integers have no negative
                stack.append(-float(value) if action == "negate" else 0.0 if math.isnan(value) else value)  # type: ignore[arg-type]
        return stack.pop()


@lru_cache(maxsize=1024)
def parse_expression(text: str) -> Expression:
    """Parse an expression.  Raises ValueError for anything that is not one, or is nested or long beyond reason."""
    steps: list[tuple[str, Value]] = []
    waiting: list[str] = []  # operators and parentheses, the innermost last
    operand = True  # is what comes next

    def refuse(what: str) -> ValueError:
        return ValueError(f"{what} in expression {text[:200]!r}")

    if len(text) > _MAX_LENGTH:
        raise refuse("too much")
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        word = match[kind] if kind else ""
        if operand and kind in ("number", "name"):
            # a whole number of 64 bits, any other as a double, which is infinite where it is too large
            whole = int(word) if word.isdigit() and len(word) <= _DIGITS else _UINT64
            value: Value = word if kind == "name" else whole if whole < _UINT64 else float(word)
            steps.append((kind, value))
            operand = False
        elif operand and (kind == "call" or word in ("(", "-")):
            waiting.append(NAN_AS_ZERO if kind == "call" else "negate" if word == "-" else "(")
            if len(waiting) > _DEEPEST:
                raise refuse("too much nested")
        elif operand:
            raise refuse("operand missing")
        elif word and word not in _RANK and word != ")":
            raise refuse(f"unexpected {word!r}")
        else:
            while waiting and waiting[-1] in _RANK and _RANK[waiting[-1]] >= _RANK.get(word, 0):
                steps.append((waiting.pop(), None))
            if word in _RANK:
                waiting.append(word)
                operand = True
            elif bool(word) != bool(waiting):
                raise refuse("unbalanced parenthesis")
            elif word and waiting.pop() == NAN_AS_ZERO:
                steps.append((NAN_AS_ZERO, None))
            elif not word:
                break
    return Expression(tuple(dict.fromkeys(str(name) for kind, name in steps if kind == "name")), tuple(steps))


def _calculated(action: str, left: Value, right: Value) -> Value:
    if left is None or right is None:
        return None
    if isinstance(left, str) or (action == "/" and isinstance(right, int) and right == 0):
        return left
    if isinstance(right, str):
        return None
    if isinstance(left, int):  # unsigned 64-bit arithmetic: a result outside the range has no value
        if not math.isfinite(right):
            return None
        if action == "/":
            return left // int(right) if int(right) else left
        result = int(_ARITHMETIC[action](left, int(right)))
        return result if 0 <= result < _UINT64 else None
    # IEEE arithmetic: a division by zero gives infinity or NaN, as on the machine
    right = float(right)
    if action != "/":
        return _ARITHMETIC[action](left, right)
    if right:
        return left / right
    return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1.0, right)
