"""What is known of one launch, for its charts: texts (in `ChartPlan`, the same for many launches) and numbers (as metrics)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ncu_roofline.base.units import format_value
from ncu_roofline.chips import Level, Precision, Spec, load_spec
from ncu_roofline.chips.roofs import SAME_CLOCK
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.report import Value
from ncu_roofline.model import Measurements, Roofline, Selection, roofline
from ncu_roofline.model.measurements import Origin, Quantity
from ncu_roofline.model.points import with_levels_that_matter
from ncu_roofline.model.roofs import Roofs
from ncu_roofline.plugin.annotate import naming
from ncu_roofline.version import __version__

_Writer = Callable[[Spec, Precision | Level, tuple[int, int], Origin], str]
GIGA = 1e9
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
class WorkPlan:
    """A precision whose work was counted, and how."""

    id: str
    label: str
    unit: str
    derivation: str


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
    """All charts of one launch, the levels and works that were counted, the metrics that go with it, and its GPU's ceilings."""

    charts: tuple[ChartPlan, ...]
    works: tuple[WorkPlan, ...]
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
        clock, clock_text = self._clock(i)
        file = next(
            (ceiling for ceiling in self._ceilings if ceiling.applies_to(self._m.device[i], self._m.capability[i])), None
        )
        levels = tuple(plan for level in self._spec.levels if (plan := self._level(level, i, file)))
        works = tuple(p for p in self._spec.precisions if self._counted(p, i))
        charts = tuple(self._chart(p, i, levels, file, clock_text) for p in works if self._has_chart(p, i))
        roofs = [roof for one in charts for roof in (*one.roofs, *(level.roof for level in one.levels)) if roof.theory]
        metrics: list[tuple[str, Value]] = [(naming.MARK, f"ncu-roofline {__version__}")]
        for p in works:
            metrics += self._work_metrics(p.id, i)
        for level in levels:
            metrics += self._traffic_metrics(level, i)
        metrics += [(naming.origin(p.id), self._derivation(p, self._m.work, i)) for p in works]
        metrics += [(naming.origin(level.id), level.derivation) for level in levels if level.derivation]
        metrics += [(naming.CLOCK, clock)] if roofs else []
        metrics += [(naming.peak(roof), self._roof_value(roof, i) / clock) for roof in dict.fromkeys(one.id for one in roofs)]
        metrics += [pair for chart in charts for pair in self._place(chart, i)]
        return LaunchPlan(
            charts=charts,
            works=tuple(WorkPlan(p.id, p.label, p.unit, self._derivation(p, self._m.work, i)) for p in works),
            levels=levels,
            metrics=tuple((name, value) for name, value in metrics if not isinstance(value, float) or math.isfinite(value)),
            ceilings=file,
        )

    def _clock(self, i: int) -> tuple[float, str]:
        candidates = ((self._m.clock[i], "the profiled SM clock"), (self._m.clock_max[i], "the maximum SM clock"))
        known = ((float(value), text) for value, text in candidates if math.isfinite(value) and value > 0)
        return next(known, (_FALLBACK_CLOCK, "a clock of 1 GHz, as the report names none"))

    def _counted(self, precision: Precision, i: int) -> bool:
        """Whether the work of a precision is known; zeros only of what the counters of CUDA cores tell, the others are many."""
        value = _value(self._m.work, precision.id, i)
        plain = precision.kind == "core" and not precision.opcodes
        return not precision.on_request and (value > 0 or (value == 0 and plain))

    def _has_chart(self, precision: Precision, i: int) -> bool:
        return _value(self._m.work, precision.id, i) > 0 and math.isfinite(self._m.seconds[i])

    def _derivation(self, item: Precision | Level, quantities: Mapping[str, Quantity], i: int) -> str:
        origin = _origin(quantities, item.id, i)
        return self._text(naming.count_text, item, i, origin) if origin else ""

    def _text(self, write: _Writer, item: Precision | Level, i: int, origin: Origin) -> str:
        """What ``write`` says of a count or a roof, written once for all launches of a chip that have it from one origin."""
        capability = self._m.capability[i]
        key = (write, item.id, capability, origin)
        if key not in self._texts:
            self._texts[key] = write(self._spec, item, capability, origin)
        return self._texts[key]

    def _roof_value(self, roof: str, i: int) -> float:
        value = _value(self._m.compute, roof, i)
        return value if math.isfinite(value) else _value(self._m.bandwidth, roof, i)

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
        origin = _origin(quantities, roof, i)
        theory = self._text(naming.roof_text, item, i, origin) if origin else ""
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

    def _work_metrics(self, precision: str, i: int) -> list[tuple[str, Value]]:
        value = _value(self._m.work, precision, i)
        rate = value / float(self._m.seconds[i])
        return [
            (naming.work(precision), value),
            (naming.work_rate(precision), rate),
            (naming.giga_rate(precision), rate / GIGA),
        ]

    def _traffic_metrics(self, level: LevelPlan, i: int) -> list[tuple[str, Value]]:
        value = _value(self._m.traffic, level.id, i)
        return [(naming.traffic(level.id), value), (naming.traffic_rate(level.id), value / float(self._m.seconds[i]))]

    def _place(self, chart: ChartPlan, i: int) -> Iterator[tuple[str, Value]]:
        """Where the launch stands in its chart: intensities, what binds it, how much of that it attains."""
        work = _value(self._m.work, chart.id, i)
        for level in chart.levels:
            if level.moved:
                yield naming.intensity(chart.id, level.id), work / _value(self._m.traffic, level.id, i)
        if chart.placed:
            row = self._point[i, chart.id]
            yield naming.bound_by(chart.id), self._labels[self._binds(chart.id, i)]
            yield naming.attained(chart.id), 100 * float(self._points["binding_fraction"][row])

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
