"""What a launch gets in a report: numbers as metrics, and sections, an overview and a chart for each precision with work.

`Planner` says what is known of a launch: in texts that are the same for many launches (a `ChartPlan` per precision), which make
its sections, and in numbers.  Only fields that every release since 2020.3 knows: no descriptions of charts or metrics, no
conditions, no filters.  Nsight Compute guesses units from words in names: "bytes" and ".pct" are welcome; second, cycle and
inst would mislead.  It takes braces out of labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ncu_roofline.base.units import format_value
from ncu_roofline.chips import Level, Precision, load_spec
from ncu_roofline.chips.fields import WeightedSum
from ncu_roofline.chips.formulas import SAME_CLOCK, twin
from ncu_roofline.chips.ncu import PEAK, PREFIX, TRAFFIC_RATE, WORK_RATE, braced, slug
from ncu_roofline.chips.palette import PLAIN, Color
from ncu_roofline.chips.spec import LIGHT_TENSOR_SECTION, OVERVIEW_SECTION, TENSOR_SECTION
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.report import Value
from ncu_roofline.formats.sectionfile.section import made, made_point, made_roof, made_value
from ncu_roofline.model import Measurements, Selection, roofline
from ncu_roofline.model.measurements import Origin, Quantity
from ncu_roofline.model.opcodes import OPCODES
from ncu_roofline.model.points import with_levels_that_matter
from ncu_roofline.model.roofs import Roofs
from ncu_roofline.plugin.annotate.append import OWN_IDENTIFIER
from ncu_roofline.version import __version__

OVERVIEW = OWN_IDENTIFIER.decode() + "Overview"
_ORIGIN = "Written by ncu-roofline into a copy of this report; nothing of it was collected."
_FIRST_ORDER = 12  # behind "GPU Speed Of Light" (10) and its own roofline charts
_MOST_ORDERS = 7  # so that all come before the next stock section (20)
_UNITS = {"flop": "FLOP", "op": "OP"}
_GIGA = 1e9
_FALLBACK_CLOCK = 1e9  # Hz; where a report knows no clock at all, peaks per cycle are of this one
_CLOCK = f"{PREFIX}clock"
_WORK, _TRAFFIC, _GIGA_RATE = "work_", "bytes_", "performance_"
"""Operations and bytes of the launch, and thousand million operations per second, for people."""
_INTENSITY, _BOUND_BY, _FROM, _ATTAINED = "intensity_", "bound_by_", "from_", "attained_"
"""Operations per byte; the roof that binds, as text; how work or traffic was counted, as text; in percent of what it allows."""
# Forms of a counter, the longest first, and how each becomes the number of the whole launch or GPU.
_COUNTS = {
    ".sum.per_cycle_elapsed": " x cycles of the run",
    ".sum.per_second": " x run time",
    ".sum": "",
}
_PEAKS = {".sum.peak_sustained": "", ".avg.peak_sustained": " x L2 slices"}


class Measured(NamedTuple):
    """A measured roof in operations or bytes per second, whose it is, the id of its ceiling, and what its file is."""

    value: float
    provenance: str
    ceiling: str
    file: str


class RoofPlan(NamedTuple):
    """A compute roof or a bandwidth roof: ``theory`` says where the theoretical one comes from, "" if there is none."""

    id: str
    label: str
    theory: str
    measured: Measured | None = None


class LevelPlan(NamedTuple):
    """A memory level: how its traffic was counted ("" if it was not), whether there was any, and its roof."""

    id: str
    label: str
    derivation: str
    moved: bool
    roof: RoofPlan


class ChartPlan(NamedTuple):
    """The chart of one precision; ``placed``: the launch has a place under a roof, what binds it and how much it attains."""

    id: str
    label: str
    unit: str
    derivation: str
    roofs: tuple[RoofPlan, ...]
    levels: tuple[LevelPlan, ...]
    placed: bool
    clock: str

    @property
    def drawn(self) -> bool:
        """Whether viewers draw it: they want a dot, and a roof from metrics on both sides."""
        theory = any(roof.theory for roof in self.roofs) and any(level.roof.theory for level in self.levels)
        return theory and any(one.moved for one in self.levels)


class LaunchPlan(NamedTuple):
    """All charts of one launch, precisions and levels that were counted, the metrics that go with it, its GPU's ceilings."""

    charts: tuple[ChartPlan, ...]
    works: tuple[str, ...]
    levels: tuple[LevelPlan, ...]
    metrics: tuple[tuple[str, Value], ...]
    ceilings: Ceilings | None

    @property
    def drawn(self) -> list[ChartPlan]:
        """Its charts that viewers draw."""
        return [chart for chart in self.charts if chart.drawn]

    @property
    def replaced(self) -> frozenset[str]:
        """The identifiers of our collected sections in whose place those of the launch stand."""
        drawn, found = {chart.id for chart in self.drawn}, {OVERVIEW_SECTION}
        for p in (p for p in load_spec().precisions if p.id in drawn):
            found |= {one.section for one in load_spec().precisions if one.section and one.id in (p.id, p.beside)}
            found |= {TENSOR_SECTION, LIGHT_TENSOR_SECTION} if p.kind == "tensor" else set()
        return frozenset(found)

    @property
    def sections(self) -> tuple[bytes, ...]:
        """Its sections, serialized."""
        charts = (_chart_section(chart, min(position, _MOST_ORDERS)) for position, chart in enumerate(self.charts, 1))
        return (_overview(self.works, self.levels), *charts)


class Planner:
    """The plans of launches.  Raises RooflineError for ceilings that fit none of the GPUs."""

    def __init__(self, m: Measurements, ceilings: Sequence[Ceilings]) -> None:
        self._points = roofline(m, ceilings).point_columns
        self._spec, self._ceilings = load_spec(), ceilings
        self._m = m = with_levels_that_matter(m, self._spec, Selection())
        self._roofs = Roofs(m, ceilings, "profiled")
        # A precision's points of one launch differ in level only; what is taken from them here is the same for all.
        pairs = zip(self._points["launch"].tolist(), self._points["precision"].tolist(), strict=True)
        self._point = {pair: row for row, pair in enumerate(pairs)}
        self._labels = {level.id: level.label for level in self._spec.levels}
        self._labels |= {roof: p.roof_label(roof) for p in self._spec.precisions for roof in p.roof_ids()}

    def plan(self, i: int) -> LaunchPlan:
        """The plan of the launch at position ``i``."""
        m, spec = self._m, self._spec
        file = next((one for one in self._ceilings if one.applies_to(m.device[i], m.capability[i])), None)
        clocks = ((m.clock[i], "the profiled SM clock"), (m.clock_max[i], "the maximum SM clock"))
        known = ((float(value), text) for value, text in clocks if math.isfinite(value) and value > 0)
        clock, clock_text = next(known, (_FALLBACK_CLOCK, "a clock of 1 GHz, as the report names none"))
        seconds = float(m.seconds[i])
        levels = tuple(plan for level in spec.levels if (plan := self._level(level, i, file)))
        # Zeros only of what the counters of CUDA cores tell, the others are many.
        works = {p: _value(m.work, p.id, i) for p in spec.precisions if not p.on_request}
        works = {p: value for p, value in works.items() if value > 0 or (value == 0 and p.kind == "core" and not p.opcodes)}
        working = [p for p, value in works.items() if value > 0 and math.isfinite(seconds)]
        charts = tuple(self._chart(p, i, levels, file, clock_text) for p in working)
        metrics: list[tuple[str, Value]] = [(f"{PREFIX}annotated_by", f"ncu-roofline {__version__}")]
        for p, value in works.items():
            rate = value / seconds
            metrics += [(_name(_WORK, p.id), value), (_name(WORK_RATE, p.id), rate), (_name(_GIGA_RATE, p.id), rate / _GIGA)]
        for level in levels:
            value = _value(m.traffic, level.id, i)
            metrics += [(_name(_TRAFFIC, level.id), value), (_name(TRAFFIC_RATE, level.id), value / seconds)]
        metrics += [(_name(_FROM, p.id), _text(p, m, i, _origin(m.work, p.id, i), _COUNTS)) for p in works]
        metrics += [(_name(_FROM, level.id), level.derivation) for level in levels if level.derivation]
        roofs = [roof.id for one in charts for roof in (*one.roofs, *(level.roof for level in one.levels)) if roof.theory]
        metrics += [(_CLOCK, clock)] if roofs else []
        for roof in dict.fromkeys(roofs):
            value = _value(m.compute, roof, i)
            metrics.append((_name(PEAK, roof), (value if math.isfinite(value) else _value(m.bandwidth, roof, i)) / clock))
        for chart in charts:
            moved = [level.id for level in chart.levels if level.moved]
            work = _value(m.work, chart.id, i)
            metrics += [(_name(_INTENSITY, chart.id, level), work / _value(m.traffic, level, i)) for level in moved]
            if chart.placed:
                metrics.append((_name(_BOUND_BY, chart.id), self._labels[self._binds(chart.id, i)]))
                fraction = self._points["binding_fraction"][self._point[i, chart.id]]
                metrics.append((f"{_name(_ATTAINED, chart.id)}.pct", 100 * float(fraction)))
        finite = ((name, value) for name, value in metrics if not isinstance(value, float) or math.isfinite(value))
        return LaunchPlan(charts, tuple(p.id for p in works), levels, tuple(finite), file)

    def _level(self, level: Level, i: int, file: Ceilings | None) -> LevelPlan | None:
        derivation = _text(level, self._m, i, _origin(self._m.traffic, level.id, i), _COUNTS)
        if not derivation and level.id not in self._spec.chain:
            return None
        roof = self._roof(level, level.id, i, file)
        moved = _value(self._m.traffic, level.id, i) > 0
        return LevelPlan(level.id, level.label, derivation, moved, roof) if derivation or roof.theory or roof.measured else None

    def _roof(self, item: Precision | Level, roof: str, i: int, file: Ceilings | None) -> RoofPlan:
        bandwidth = isinstance(item, Level)
        theory = _text(item, self._m, i, _origin(self._m.bandwidth if bandwidth else self._m.compute, roof, i), _PEAKS)
        if theory and roof.endswith(".nofma"):
            theory = f"half of {theory}"
        ceiling = (file.bandwidth(roof) if bandwidth else file.compute(roof)) if file else None
        values, measured = self._roofs.values("bandwidth" if bandwidth else "compute", roof), None
        if ceiling and file and values.measured[i]:
            value = float(values.drawn[i])
            clock = f" at {format_value(ceiling.clock, 'hertz')}" if math.isfinite(ceiling.clock) else ""
            change = value / ceiling.value if ceiling.follows_sm_clock else 1.0
            scaled = ", scaled to this launch's clock" if abs(change - 1) > SAME_CLOCK else ""
            whose = f"{self._roofs.between(file, ceiling, roof, [i]) or ceiling.id} of {file.provenance}{clock}{scaled}"
            measured = Measured(value, whose, ceiling.id, f"{file.status}: {file.provenance}")
        return RoofPlan(roof, self._labels[roof], theory, measured)

    def _chart(self, precision: Precision, i: int, levels: Sequence[LevelPlan], file: Ceilings | None, clock: str) -> ChartPlan:
        roofs = (self._roof(precision, one, i, file) for one in precision.roof_ids())
        return ChartPlan(
            id=precision.id,
            label=precision.label,
            unit=precision.unit,
            derivation=_text(precision, self._m, i, _origin(self._m.work, precision.id, i), _COUNTS),
            roofs=tuple(roof for roof in roofs if roof.theory or roof.measured),
            levels=tuple(level for level in levels if level.moved or level.id in self._spec.chain),
            clock=clock,
            placed=self._binds(precision.id, i) != "",
        )

    def _binds(self, precision: str, i: int) -> str:
        row = self._point.get((i, precision))
        return "" if row is None else str(self._points["binds"][row])


def _value(quantities: Mapping[str, Quantity], key: str, i: int) -> float:
    """The number of launch ``i``; NaN where it is missing."""
    return float(quantities[key].values[i]) if key in quantities else math.nan


def _origin(quantities: Mapping[str, Quantity], key: str, i: int) -> Origin | None:
    """Where the number of launch ``i`` comes from; None where it is missing."""
    choice = int(quantities[key].choice[i]) if math.isfinite(_value(quantities, key, i)) else -1
    return quantities[key].origins[choice] if choice >= 0 else None


def _name(kind: str, *identifiers: str) -> str:
    """A metric of a precision, compute roof or level, or of a precision and a level: rl__intensity_fp64_dram."""
    return f"{PREFIX}{kind}{'_'.join(map(slug, identifiers))}"


def _text(item: Precision | Level, m: Measurements, i: int, origin: Origin | None, forms: Mapping[str, str]) -> str:
    return "" if origin is None else _derivation(item.id, isinstance(item, Level), m.capability[i], origin, forms is _PEAKS)


@lru_cache(maxsize=4096)  # launches of one chip count alike, and these texts take longer to write than all else of a plan
def _derivation(name: str, is_level: bool, capability: tuple[int, int], origin: Origin, peak: bool) -> str:
    """How work or traffic was counted: "a__[add|mul].sum + 2 x a__fma.sum (binding)"; where a theoretical roof comes from:
    "2 x a__fma.sum.peak_sustained x sm clock (binding)"."""
    spec = load_spec()
    item = spec.level(name) if is_level else next(p for p in spec.precisions if p.id == name)
    source = f"({origin.source}: {origin.note})" if origin.note else f"({origin.source})"
    if origin.source == OPCODES and not peak:
        return f"{origin.metrics}, each opcode x what it does {source}"
    if origin.source == "architecture" and peak:
        return f"{origin.metrics} {source}"
    metrics = tuple(origin.metrics.split(", "))
    forms = (_PEAKS if peak else _COUNTS).items()
    suffix, how = next(((end, how) for end, how in forms if all(one.endswith(end) for one in metrics)), ("", ""))
    bindings = [binding for binding in spec.bindings(item, capability) if binding.source == origin.source]
    if not peak:
        return f"{_formula(metrics, suffix, [binding.counters for binding in bindings])}{how} {source}"
    sums = [(binding.peak, binding.clock) for binding in bindings if binding.peak]
    counters = {one.partition(".")[0] for one in metrics}
    clock = next((clock for one, clock in sums if set(one.counters()) == counters), "its own")
    return f"{_formula(metrics, suffix, [one for one, _ in sums])}{how} x {clock} clock {source}"


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


def identifier(precision: str) -> str:
    """The identifier of a precision's section: tensor.fp16.wgmma is NcuRooflineAnnotatedTensorFP16Wgmma."""
    words = (word.upper() if word[-1:].isdigit() else word.capitalize() for word in precision.split("."))
    return OWN_IDENTIFIER.decode() + "".join(words)


@lru_cache(maxsize=256)
def _overview(counted: tuple[str, ...], levels: tuple[LevelPlan, ...]) -> bytes:
    works = [precision for precision in load_spec().precisions if precision.id in counted]
    levels = tuple(level for level in levels if level.derivation)
    header = [_metric(_name(_WORK, work.id), f"{work.label} work [{_UNITS[work.unit]}]") for work in works]
    header += [_metric(_name(_TRAFFIC, level.id), f"{level.label} traffic") for level in levels]
    rows = [_metric(_name(_FROM, work.id), f"{work.label} work") for work in works]
    rows += [_metric(_name(_FROM, level.id), f"{level.label} traffic") for level in levels]
    title = "Roofline overview (ncu-roofline, added later)"
    table = made("BodyItem", Table=made("Table", Label="What was counted", Columns=1, Metrics=rows))
    return _encoded(OVERVIEW, title, 0, f"{_ORIGIN} What is not listed could not be derived.", header, title, table)


@lru_cache(maxsize=1024)
def _chart_section(chart: ChartPlan, order: int) -> bytes:
    unit, title = _UNITS[chart.unit], f"{chart.label} roofline"
    header = [_metric(_name(_GIGA_RATE, chart.id), f"{chart.label} performance [G{unit}/s]")]
    if chart.placed:
        header.append(_metric(_name(_BOUND_BY, chart.id), "Bound by"))
        header.append(_metric(f"{_name(_ATTAINED, chart.id)}.pct", "Share of what it allows"))
    moved = [level for level in chart.levels if level.moved]
    header += [_metric(_name(_INTENSITY, chart.id, one.id), f"{one.label} intensity [{unit}/byte]") for one in moved]
    roofs = (*chart.roofs, *(level.roof for level in chart.levels))
    parts = [
        _ORIGIN,
        "Dots and lines say what they are made of when pointed at.",
        f"Theoretical roofs stand at {chart.clock}.",
        *dict.fromkeys(f"Lighter roofs are {one.measured.file}." for one in roofs if one.measured),
    ]
    if missing := [level.label for level in chart.levels if not level.derivation]:
        parts.append(f"No counter of the report gives the traffic of {', '.join(missing)}.")
    if not chart.drawn:
        parts.append("The report does not give a compute roof and a bandwidth roof, so there is no chart.")
    items = [made("BodyItem", RooflineChart=_chart(chart))] if chart.drawn else []
    long = f"{title} (ncu-roofline, added later)"
    return _encoded(identifier(chart.id), long, order, " ".join(parts), header, title, *items)


def _encoded(name: str, title: str, order: int, description: str, header: Sequence[Any], body: str, *items: Any) -> bytes:
    section = made(
        "Section",
        Identifier=name,
        DisplayName=title,
        Order=_FIRST_ORDER + order,
        Description=description,
        Header=made("Header", Rows=(len(header) + 1) // 2, Metrics=header),
        Body=[made("Body", DisplayName=body, Items=items)] if items else [],
    )
    data: bytes = section.SerializeToString()
    return data


def _chart(chart: ChartPlan) -> Any:
    unit = _UNITS[chart.unit]
    work = made_value(_metric(_name(WORK_RATE, chart.id)))
    points = [
        made_point(
            work,
            made_value(_metric(_name(TRAFFIC_RATE, level.id))),
            f"{level.label}: bytes = {level.derivation}; work = {chart.derivation}",
            _color(level).light,
        )
        for level in chart.levels
        if level.moved
    ]
    return made(
        "RooflineChart",
        Label=f"{chart.label} roofline, derived from the report",
        AxisIntensity=made("RooflineAxis", Label=f"Intensity [{unit}/byte]", Base=10.0),
        AxisWork=made("RooflineAxis", Label=f"Performance [{unit}/s]", Base=10.0),
        Rooflines=list(_rooflines(chart)),
        AchievedValues=points,
    )


def _rooflines(chart: ChartPlan) -> Iterator[Any]:
    """Theoretical roofs; then measured ones as constants, lighter; where one of two lines was not measured, the theoretical."""
    levels = [one for one in chart.levels if one.roof.theory]
    for roof, level, color in _pairs([one for one in chart.roofs if one.theory], levels):
        label = f"{level.label} and {roof.label} roof at {chart.clock}: {level.roof.theory}; {roof.theory}"
        yield made_roof(_per_second(roof), _per_second(level.roof), label, color.light)
    levels = [one for one in chart.levels if one.roof.measured or one.roof.theory]
    for roof, level, color in _pairs(chart.roofs, levels):
        if roof.measured is None and level.roof.measured is None:
            continue
        if level.roof.measured is None and any(one.roof.measured for one in levels):
            continue  # the compute roof is there with a level that was measured
        traffic, traffic_text = _line(level.roof, "byte/s")
        work, work_text = _line(roof, f"{chart.unit}/s")
        yield made_roof(work, traffic, f"measured: {traffic_text}; {work_text}", color.dark)


def _pairs(roofs: Sequence[RoofPlan], levels: Sequence[LevelPlan]) -> list[tuple[RoofPlan, LevelPlan, Color]]:
    """What is drawn together, in which colour: each level with the highest compute roof, the other compute roofs with the
    outermost level, and these first, as viewers draw later ones over them; then levels beside the chain (shared memory)."""
    if not roofs or not levels:
        return []
    others = [(roof, levels[-1], PLAIN) for roof in roofs[1:]]
    in_order = sorted(levels, key=lambda level: level.id in load_spec().chain)
    return others + [(roofs[0], level, _color(level)) for level in in_order]


def _line(roof: RoofPlan, unit: str) -> tuple[Any, str]:
    """The measured form of a roof, else the theoretical one, and which it is."""
    if roof.measured is None:
        return _per_second(roof), f"{roof.label} theoretical"
    text = f"{roof.label} {format_value(roof.measured.value, unit)}, {roof.measured.provenance}"
    return made_value(constant=roof.measured.value), text


def _per_second(roof: RoofPlan) -> Any:
    """A peak per cycle times the clock: the form that viewers want at least one roof in."""
    return made_value(_metric(_name(PEAK, roof.id)), clock=_metric(_CLOCK))


def _color(level: LevelPlan) -> Color:
    return load_spec().level(level.id).color


def _metric(name: str, label: str = "") -> Any:
    return made("Metric", Name=name, Label=label)
