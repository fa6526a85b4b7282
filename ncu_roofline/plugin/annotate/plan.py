"""What is known of one launch, for its charts: texts (in `ChartPlan`, the same for many launches) and numbers (as metrics).

Nsight Compute guesses units from words in names: "bytes" and ".pct" are welcome; second, cycle and inst would mislead.  It
takes braces out of labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ncu_roofline.base.units import format_value
from ncu_roofline.chips import Level, Precision, Spec, load_spec
from ncu_roofline.chips.fields import WeightedSum
from ncu_roofline.chips.formulas import SAME_CLOCK, twin
from ncu_roofline.chips.ncu import PEAK, PREFIX, TRAFFIC_RATE, WORK_RATE, braced, slug
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.report import Value
from ncu_roofline.model import Measurements, Roofline, Selection, roofline
from ncu_roofline.model.measurements import Origin, Quantity
from ncu_roofline.model.opcodes import OPCODES
from ncu_roofline.model.points import with_levels_that_matter
from ncu_roofline.model.roofs import Roofs
from ncu_roofline.version import __version__

_Writer = Callable[[Spec, Precision | Level, tuple[int, int], Origin], str]
GIGA = 1e9
MARK = f"{PREFIX}annotated_by"
CLOCK = f"{PREFIX}clock"
# Forms of a counter, the longest first, and how each becomes the number of the whole launch or GPU.
_COUNTS = {
    ".sum.per_cycle_elapsed": " x cycles of the run",
    ".sum.per_second": " x run time",
    ".sum": "",
}
_PEAKS = {".sum.peak_sustained": "", ".avg.peak_sustained": " x L2 slices"}
WORK, TRAFFIC, GIGA_RATE = "work_", "bytes_", "performance_"
"""Operations and bytes of the launch, and thousand million operations per second, for people."""
INTENSITY, BOUND_BY, ORIGIN = "intensity_", "bound_by_", "from_"
"""Operations per byte; the roof that binds, as text; how work or traffic was counted, as text."""
_FALLBACK_CLOCK = 1e9  # Hz; where a report knows no clock at all, peaks per cycle are of this one


@dataclass(frozen=True)
class Measured:
    """A measured roof in operations or bytes per second, whose it is, the id of its ceiling, and what its file is."""

    value: float
    provenance: str
    ceiling: str
    file: str


@dataclass(frozen=True)
class RoofPlan:
    """A compute roof or a bandwidth roof: ``theory`` says where the theoretical one comes from, "" if there is none."""

    id: str
    label: str
    theory: str
    measured: Measured | None = None


@dataclass(frozen=True)
class LevelPlan:
    """A memory level: how its traffic was counted ("" if it was not), whether there was any, and its roof."""

    id: str
    label: str
    derivation: str
    moved: bool
    roof: RoofPlan


@dataclass(frozen=True)
class ChartPlan:
    """The chart of one precision."""

    id: str
    label: str
    unit: str
    derivation: str
    roofs: tuple[RoofPlan, ...]
    levels: tuple[LevelPlan, ...]
    placed: bool  # whether the launch has a place under a roof: what binds it and how much of it is attained
    clock: str

    @property
    def drawn(self) -> bool:
        """Whether viewers draw it: they want a dot, and a roof from metrics on both sides."""
        return any(one.moved for one in self.levels) and any(
            roof.theory and level.roof.theory for roof in self.roofs for level in self.levels
        )


@dataclass(frozen=True)
class LaunchPlan:
    """All charts of one launch, precisions and levels that were counted, the metrics that go with it, its GPU's ceilings."""

    charts: tuple[ChartPlan, ...]
    works: tuple[str, ...]
    levels: tuple[LevelPlan, ...]
    metrics: tuple[tuple[str, Value], ...]
    ceilings: Ceilings | None


def plans(m: Measurements, ceilings: Sequence[Ceilings]) -> Iterator[LaunchPlan]:
    """One plan for each launch, in order.  Raises RooflineError for ceilings that fit none of the GPUs."""
    planner = _Planner(with_levels_that_matter(m, load_spec(), Selection()), ceilings, roofline(m, ceilings))
    return (planner.plan(i) for i in range(len(m)))


class _Planner:
    def __init__(self, m: Measurements, ceilings: Sequence[Ceilings], model: Roofline) -> None:
        self._m, self._ceilings, self._spec = m, ceilings, load_spec()
        self._roofs = Roofs(m, ceilings, "profiled")
        self._points = model.point_columns
        # A precision's points of one launch differ in level only; what is taken from them here is the same for all.
        pairs = zip(self._points["launch"].tolist(), self._points["precision"].tolist(), strict=True)
        self._point = {pair: row for row, pair in enumerate(pairs)}
        self._labels = {level.id: level.label for level in self._spec.levels}
        # Launches of one chip count alike, and their texts take longer to write than all else of a plan.
        self._texts: dict[tuple[object, ...], str] = {}
        self._labels |= {roof: p.roof_label(roof) for p in self._spec.precisions for roof in p.roof_ids()}

    def plan(self, i: int) -> LaunchPlan:
        """The plan of the launch at position ``i``."""
        m, spec = self._m, self._spec
        file = next((one for one in self._ceilings if one.applies_to(m.device[i], m.capability[i])), None)
        clocks = ((m.clock[i], "the profiled SM clock"), (m.clock_max[i], "the maximum SM clock"))
        known = ((float(value), text) for value, text in clocks if math.isfinite(value) and value > 0)
        clock, clock_text = next(known, (_FALLBACK_CLOCK, "a clock of 1 GHz, as the report names none"))
        levels = tuple(plan for level in spec.levels if (plan := self._level(level, i, file)))
        works = [p for p in spec.precisions if self._is_counted(p, i)]
        seconds = float(m.seconds[i])
        with_work = [p for p in works if _value(m.work, p.id, i) > 0] if math.isfinite(seconds) else []
        charts = tuple(self._chart(p, i, levels, file, clock_text) for p in with_work)
        metrics: list[tuple[str, Value]] = [(MARK, f"ncu-roofline {__version__}")]
        for p in works:
            value = _value(m.work, p.id, i)
            metrics.append((own_name(WORK, p.id), value))
            metrics.append((own_name(WORK_RATE, p.id), value / seconds))
            metrics.append((own_name(GIGA_RATE, p.id), value / seconds / GIGA))
        for level in levels:
            value = _value(m.traffic, level.id, i)
            metrics.append((own_name(TRAFFIC, level.id), value))
            metrics.append((own_name(TRAFFIC_RATE, level.id), value / seconds))
        metrics += [(own_name(ORIGIN, p.id), self._derivation(p, m.work, i)) for p in works]
        metrics += [(own_name(ORIGIN, level.id), level.derivation) for level in levels if level.derivation]
        roofs = [roof for one in charts for roof in (*one.roofs, *(level.roof for level in one.levels)) if roof.theory]
        metrics += [(CLOCK, clock)] if roofs else []
        for roof in dict.fromkeys(one.id for one in roofs):
            value = _value(m.compute, roof, i)
            value = value if math.isfinite(value) else _value(m.bandwidth, roof, i)
            metrics.append((own_name(PEAK, roof), value / clock))
        metrics += [pair for chart in charts for pair in self._place(chart, i)]
        finite = ((name, value) for name, value in metrics if not isinstance(value, float) or math.isfinite(value))
        return LaunchPlan(charts, tuple(p.id for p in works), levels, tuple(finite), file)

    def _is_counted(self, precision: Precision, i: int) -> bool:
        """Whether the work of a precision is known; zeros only of what the counters of CUDA cores tell, the others are many."""
        value = _value(self._m.work, precision.id, i)
        plain = precision.kind == "core" and not precision.opcodes
        return not precision.on_request and (value > 0 or (value == 0 and plain))

    def _derivation(self, item: Precision | Level, quantities: Mapping[str, Quantity], i: int) -> str:
        return self._text(count_text, item, i, _origin(quantities, item.id, i))

    def _text(self, write: _Writer, item: Precision | Level, i: int, origin: Origin | None) -> str:
        """What ``write`` says of a count or a roof, written once for all launches of a chip that have it from one origin."""
        if origin is None:
            return ""
        capability = self._m.capability[i]
        key = (write, item.id, capability, origin)
        if key not in self._texts:
            self._texts[key] = write(self._spec, item, capability, origin)
        return self._texts[key]

    def _level(self, level: Level, i: int, file: Ceilings | None) -> LevelPlan | None:
        derivation = self._derivation(level, self._m.traffic, i)
        if not derivation and level.id not in self._spec.chain:
            return None
        roof = self._roof(level, level.id, self._m.bandwidth, i, file)
        moved = _value(self._m.traffic, level.id, i) > 0
        known = derivation or roof.theory or roof.measured
        return LevelPlan(level.id, level.label, derivation, moved, roof) if known else None

    def _roof(
        self, item: Precision | Level, roof: str, quantities: Mapping[str, Quantity], i: int, file: Ceilings | None
    ) -> RoofPlan:
        theory = self._text(roof_text, item, i, _origin(quantities, roof, i))
        if theory and roof.endswith(".nofma"):
            theory = f"half of {theory}"
        ceiling = (file.bandwidth(roof) if isinstance(item, Level) else file.compute(roof)) if file else None
        values = self._roofs.values("bandwidth" if isinstance(item, Level) else "compute", roof)
        measured = None
        if ceiling and file and values.measured[i]:
            value = float(values.drawn[i])
            clock = f" at {format_value(ceiling.clock, 'hertz')}" if math.isfinite(ceiling.clock) else ""
            change = value / ceiling.value if ceiling.follows_sm_clock else 1.0
            scaled = ", scaled to this launch's clock" if abs(change - 1) > SAME_CLOCK else ""
            whose = f"{self._roofs.between(file, ceiling, roof, [i]) or ceiling.id} of {file.provenance}{clock}{scaled}"
            measured = Measured(value, whose, ceiling.id, f"{file.status}: {file.provenance}")
        return RoofPlan(roof, self._labels[roof], theory, measured)

    def _chart(
        self, precision: Precision, i: int, levels: tuple[LevelPlan, ...], file: Ceilings | None, clock: str
    ) -> ChartPlan:
        roofs = (self._roof(precision, one, self._m.compute, i, file) for one in precision.roof_ids())
        return ChartPlan(
            id=precision.id,
            label=precision.label,
            unit=precision.unit,
            derivation=self._derivation(precision, self._m.work, i),
            roofs=tuple(roof for roof in roofs if roof.theory or roof.measured),
            levels=tuple(level for level in levels if level.moved or level.id in self._spec.chain),
            clock=clock,
            placed=self._binds(precision.id, i) != "",
        )

    def _place(self, chart: ChartPlan, i: int) -> Iterator[tuple[str, Value]]:
        """Where the launch stands in its chart: intensities, what binds it, how much of that it attains."""
        work = _value(self._m.work, chart.id, i)
        for level in chart.levels:
            if level.moved:
                yield own_name(INTENSITY, chart.id, level.id), work / _value(self._m.traffic, level.id, i)
        if chart.placed:
            row = self._point[i, chart.id]
            yield own_name(BOUND_BY, chart.id), self._labels[self._binds(chart.id, i)]
            yield attained(chart.id), 100 * float(self._points["binding_fraction"][row])

    def _binds(self, precision: str, i: int) -> str:
        row = self._point.get((i, precision))
        return "" if row is None else str(self._points["binds"][row])


def _value(quantities: Mapping[str, Quantity], key: str, i: int) -> float:
    """The number of launch ``i``; NaN where it is missing."""
    return float(quantities[key].values[i]) if key in quantities else math.nan


def _origin(quantities: Mapping[str, Quantity], key: str, i: int) -> Origin | None:
    """Where the number of launch ``i`` comes from; None where it is missing."""
    if key not in quantities:
        return None
    choice = int(quantities[key].choice[i]) if math.isfinite(quantities[key].values[i]) else -1
    return quantities[key].origins[choice] if choice >= 0 else None


def own_name(kind: str, *identifiers: str) -> str:
    """A metric of a precision, compute roof or level, or of a precision and a level: rl__intensity_fp64_dram."""
    return f"{PREFIX}{kind}{'_'.join(map(slug, identifiers))}"


def attained(precision: str) -> str:
    """Performance in percent of what the lowest roof allows."""
    return f"{own_name('attained_', precision)}.pct"


def count_text(spec: Spec, item: Precision | Level, capability: tuple[int, int], origin: Origin) -> str:
    """How work or traffic was counted: "a__[add|mul].sum + 2 x a__fma.sum (binding)"."""
    if origin.source == OPCODES:
        return f"{origin.metrics}, each opcode x what it does ({_source(origin)})"
    metrics = tuple(origin.metrics.split(", "))
    suffix, how = _form(metrics, _COUNTS)
    sums = [binding.counters for binding in spec.bindings(item, capability) if binding.source == origin.source]
    return f"{_formula(metrics, suffix, sums)}{how} ({_source(origin)})"


def roof_text(spec: Spec, item: Precision | Level, capability: tuple[int, int], origin: Origin) -> str:
    """Where a theoretical roof comes from: "2 x a__fma.sum.peak_sustained x sm clock (binding)"."""
    if origin.source == "architecture":
        return f"{origin.metrics} ({_source(origin)})"
    metrics = tuple(origin.metrics.split(", "))
    suffix, how = _form(metrics, _PEAKS)
    bindings = [binding for binding in spec.bindings(item, capability) if binding.peak and binding.source == origin.source]
    formula = _formula(metrics, suffix, [binding.peak for binding in bindings if binding.peak])
    counters = {name.partition(".")[0] for name in metrics}
    clocks = (binding.clock for binding in bindings if binding.peak and set(binding.peak.counters()) == counters)
    return f"{formula}{how} x {next(clocks, 'its own')} clock ({_source(origin)})"


def _form(metrics: Sequence[str], forms: dict[str, str]) -> tuple[str, str]:
    return next(((suffix, how) for suffix, how in forms.items() if all(name.endswith(suffix) for name in metrics)), ("", ""))


def _formula(metrics: Sequence[str], suffix: str, sums: Sequence[WeightedSum]) -> str:
    """The metrics with the weights that the spec gives them; terms of one weight together."""
    counters = tuple(name.removesuffix(suffix) for name in metrics)
    found = (one for one in sums if counters in (one.counters(), tuple(twin(name) or name for name in one.counters())))
    weights = next((tuple(weight for _, weight in one) for one in found), None)
    if weights is None:
        return " + ".join(metrics)
    groups: dict[float, list[str]] = {}
    for name, weight in zip(metrics, weights, strict=True):
        groups.setdefault(weight, []).append(name)
    texts = []
    for weight, names in groups.items():
        text = braced(names, ("[", "|", "]"))
        if ", " in text:  # nothing in common
            text = f"({' + '.join(names)})" if weight != 1 else " + ".join(names)
        texts.append(text if weight == 1 else f"{weight:g} x {text}")
    return " + ".join(texts)


def _source(origin: Origin) -> str:
    return f"{origin.source}: {origin.note}" if origin.note else origin.source
