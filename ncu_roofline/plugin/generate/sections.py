"""The sections of the pack: what charts, headers, tables and the timeline show, written down for a dialect."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.base.units import format_value
from ncu_roofline.chips import Level, Precision, Spec, load_instructions, load_spec, load_units
from ncu_roofline.chips.fields import LAST, WeightedSum, capability_text, table
from ncu_roofline.chips.formulas import covers
from ncu_roofline.chips.ncu import BY_RELEASE
from ncu_roofline.chips.palette import PLAIN, TENSOR, WALL
from ncu_roofline.chips.spec import (
    PHASES_SECTION,
)
from ncu_roofline.chips.tables import counter_of, load_phases
from ncu_roofline.formats.ceilings import CPU, MEASURE_AGAIN, NOT_COMPARABLE, PUBLISHED, Ceiling, Ceilings
from ncu_roofline.formats.sectionfile.section import (
    PER_SECOND,
    made,
    made_options,
    made_point,
    made_roof,
    made_value,
    metrics_of,
    text_of,
)
from ncu_roofline.formats.sectionfile.text import section_text
from ncu_roofline.plugin.generate.files import GENERATED
from ncu_roofline.plugin.generate.lowering import BASE, Chips, Dialect, Lowering, Reading, number

# Beside the stock rooflines, which have 11 and 12; the next stock section has 15.
_ORDER = (11, 12)
SET, LIGHT_SET = "ncu_roofline", "ncu_roofline_light"
_CLOCK, _MAX_KILOHERTZ = "sm__cycles_elapsed.avg.per_second", "device__attribute_max_gpu_frequency_khz"
_SAMPLER_SINCE = (7, 5)  # what the PM sampler runs on
_BODY = ("Table", "RooflineChart", "Timeline")


def drawable(ceilings: Ceilings | None, clock_consistent: bool) -> Ceilings | None:
    """Ceilings to draw, none of a CPU.

    Raises RooflineError for one that its own file disproves, and if the clock-consistent form is wanted and nothing says what
    theory gives.
    """
    if ceilings is None or ceilings.kind == CPU:
        return None
    impossible = next((one for one in ceilings.by_id.values() if one.impossible), None)
    if impossible:
        reason = f"{impossible.id} is {impossible.value / impossible.theory:.3g}x what theory gives at its clock"
        raise RooflineError("Cannot draw the ceilings of", ceilings.path, reason, MEASURE_AGAIN)
    if clock_consistent and not any(math.isfinite(one.share) for one in ceilings.by_id.values()):
        reason = 'no ceiling says what theory gives at its clock ("theory.at_measured_clock")'
        raise RooflineError("Cannot scale the ceilings of", ceilings.path, reason, "Leave out --clock-consistent.")
    return ceilings


class Maker(Lowering):
    """Makes what one section shows.

    Measured ``ceilings`` are drawn, if any, as constants or, ``clock_consistent``, as shares of what theory gives at the clock
    measured at; levels ``aside`` are drawn nevertheless.
    """

    def __init__(
        self,
        spec: Spec,
        dialect: Dialect,
        ceilings: Ceilings | None,
        clock_consistent: bool,
        aside: tuple[str, ...],
        **more: Any,
    ) -> None:
        super().__init__(spec, dialect, **more)
        self.ceilings, self._clock_consistent = ceilings, clock_consistent
        # A dot of a level that hardly matters stands far out, and stretches the axis for all others.
        self.levels = tuple(level for level in spec.levels if not level.on_request or level.id in aside)
        # Levels whose counters are hardware's: patched ones would cost a chart without patched work a replay pass.
        self.unpatched = tuple(level for level in self.levels if not self.patched(level))
        # The precisions of CUDA cores that the library counts together.
        self.counted_together = tuple(precision for precision in spec.precisions if precision.together)

    # Measured roofs

    def _share(self, ceiling: Ceiling) -> float | None:
        """The share of theory to draw; None for a constant: unless asked for, and where theory is not known."""
        return ceiling.share if self._clock_consistent and math.isfinite(ceiling.share) else None

    def measured(self, item: Precision | Level, roof: str = "") -> list[Reading]:
        """The measured form of a level's roof or of a compute ``roof``; empty if it was not measured."""
        if not self.ceilings:
            return []
        found = self.ceilings.bandwidth(item.id) if isinstance(item, Level) else self.ceilings.compute(roof)
        chip = self.ceilings.compute_capability
        if not found or not self.ranges([chip]) or not self.binding(item, chip):
            return []
        share, chips = self._share(found), frozenset([chip])
        if share is None:
            return [Reading(made_value(constant=float(f"{found.value:.7g}")), chips)]
        return self.bandwidth(item, share, chips) if isinstance(item, Level) else self.peak(item, roof, share, chips)

    def source(self, level: str, roof_id: str) -> str:
        """Where and when the ceiling of a roof was measured, at which clock; "" if it was not."""
        if not self.ceilings:
            return ""
        one = (self.ceilings.bandwidth(level) if level else None) or self.ceilings.compute(roof_id)
        clock = f"at {format_value(one.clock, 'hertz')}" if one and math.isfinite(one.clock) else ""
        scaled = "scaled to this run's clock" if one and self._share(one) is not None else ""
        of = self.ceilings.device or "an unnamed GPU"
        said = f"{NOT_COMPARABLE}: {of}" if self.ceilings.status == PUBLISHED else f"measured on {of}"
        return ", ".join(filter(None, (said, self.ceilings.date, clock, scaled)))

    # Roofs and points

    def level_roofs(self, precision: Precision, levels: Iterable[Level], what: str) -> list[Any]:
        """The precision's highest roof with each level's bandwidth, theoretical and measured."""
        roof_id, roofs = precision.roof, list[Any]()
        for level in levels:
            color, lighter = level.color  # what is measured: a lighter tone
            peaks, bandwidths = self.peak(precision, roof_id), self.bandwidth(level)
            roofs += self._pairs(peaks, bandwidths, f"{level.label} bandwidth, {what} peak", color, precision)
            works, traffics = self.measured(precision, roof_id), self.measured(level)
            label = f"{level.label} bandwidth, {what} peak, {self.source(level.id, roof_id)}"
            if works and not traffics and level is self.levels[0]:
                traffics, label = bandwidths, f"{what} peak, {self.source('', roof_id)}"
            roofs += self._pairs(works or peaks, traffics, label, lighter, precision)
        return roofs

    def flat_roofs(self, precision: Precision, roof_id: str, what: str, color: str) -> list[Any]:
        """A compute roof with the innermost level's bandwidth, theoretical and measured."""
        peaks, bandwidths = self.peak(precision, roof_id), self.bandwidth(self.levels[0])
        roofs = self._pairs(peaks, bandwidths, f"{what} peak", color, precision)
        works = self.measured(precision, roof_id)
        traffics = self.measured(self.levels[0]) or bandwidths
        return roofs + self._pairs(works, traffics, f"{what} peak, {self.source('', roof_id)}", color, precision)

    def _pairs(self, works: list[Reading], traffics: list[Reading], label: str, color: str, precision: Precision) -> list[Any]:
        conditions: list[tuple[Any, Chips]] = [(None, self.chips)]
        if self.dialect.show_only_if_not_zero and precision.kind == "tensor" and not precision.standard:
            conditions = [(one.value, one.chips) for one in self.work(precision)]
        return [
            made_roof(work.value, traffic.value, f"{label}{traffic.note}", color, condition)
            for work in works
            for traffic in traffics
            for condition, chips in conditions
            if work.chips & traffic.chips & chips
        ]

    def points(self, precision: Precision, levels: Iterable[Level], color: str = "") -> list[Any]:
        """Dots of a precision in one colour, or each in its level's."""
        return [
            made_point(work.value, traffic.value, f"{precision.label} at {level.label}", color or level.color.light)
            for level in levels
            for work in self.work(precision)
            for traffic in self.traffic(level)
            if work.chips & traffic.chips
        ]

    # Charts

    def core(self, precision: Precision, tensor: Precision | None) -> Any:
        """All roofs and points of a precision of the CUDA cores, and those of its tensor counterpart, if wanted."""
        label = precision.label
        # What comes later is drawn over what came before, and each level's line has to show its colour.
        roofs = self.flat_roofs(precision, precision.roof_ids()[1], f"{label} without FMA", PLAIN.light)
        points = self.points(precision, self.levels)
        if tensor:
            roofs += self.flat_roofs(tensor, tensor.id, tensor.label, TENSOR.light)
            points += self.points(tensor, self.levels, TENSOR.light)
        patched = [level for level in self.levels if level not in self.unpatched]
        return _chart(label, "FLOP", roofs + self.level_roofs(precision, [*patched, *self.unpatched], f"{label} FMA"), points)

    def tensor(self, precisions: Sequence[Precision], label: str = "Tensor") -> Any:
        """Roofs and points of tensor types: each at every level, variants of a type (instruction family, sparse) beside it.

        With several types, dots have the colour of theirs: which level they are of is told by their order, outwards from L1.
        """
        several = len([one for one in precisions if not one.part_of]) > 1
        color = {one.id: one.color for one in precisions}
        roofs, points = list[Any](), list[Any]()
        for precision in sorted(precisions, key=lambda one: not one.part_of):
            own = color.get(precision.part_of, precision.color)
            if precision.part_of:
                roofs += self.flat_roofs(precision, precision.id, precision.label, own.dark)
            else:
                roofs += self.level_roofs(precision, self.unpatched, precision.label)
            if not precision.part_of or (precision.disjoint and self.dialect.exact) or self.stands_in(precision):
                points += self.points(precision, self.unpatched, own.light if several else "")
        return _chart(label, "OP", roofs, points)

    def instructions(self) -> Any:
        """Warp instructions against memory transactions of 32 bytes, and walls for patterns of global loads."""

        def value(name: str, clock: str = "") -> Any:
            metric = self.metric({name: self.chips})
            return made_value(metric, clock=self.metric({clock: self.chips}) if clock else None)

        counted = load_instructions()
        everything, loads = counted.kind("inst"), counted.kind("inst.global_ld")
        (executed,) = everything.instructions[0].counters.counters()
        peak = value(f"{counted.issue_counter}.sum.peak_sustained", _CLOCK)
        work = value(f"{executed}.sum.per_second")
        self.collect(f"{executed}.sum")
        roofs, points = [], []
        for level in self.unpatched:
            color, label = level.color.light, f"{level.label} transactions, instruction issue"
            roofs += [made_roof(peak, one.value, label, color) for one in self.bandwidth(level, 1 / counted.transaction)]
            traffic = self.traffic(level, 1 / counted.transaction)
            points += [made_point(work, one.value, f"All instructions at {level.label}", color) for one in traffic]
        each = [way[0].counters.counters()[0] for way in (loads.instructions, loads.transactions)]
        work, traffic = [value(f"{counter}.sum.per_second") for counter in each]
        points.append(made_point(work, traffic, "Global loads alone, at the sectors they ask for", TENSOR.light))
        walls = []
        for wall in (one for one in counted.walls if one.kind == loads.id):
            options = made_options("PlainOptions", wall.label, WALL.light)
            walls.append(made("Wall", Value=made_value(constant=wall.intensity), Options=options))
        axes = ("Warp instructions per memory transaction of 32 bytes", "Warp instructions per second")
        return _chart("Instruction", "", roofs, points, walls, axes)

    # Rows of headers and tables

    def row(self, name: str, label: str = "") -> Any:
        """A metric of all chips."""
        return self.metric({name: self.chips}, label)

    def time_and_clock(self) -> tuple[Any, ...]:
        """Duration and SM clock."""
        return self.row("gpu__time_duration.sum", "Duration"), self.row(_CLOCK, "SM Frequency")

    def traffic_rows(self, *, patched: bool = True) -> list[Any]:
        """Bytes per second of each level; without ``patched`` only what hardware counts.  ncu shows their unit by itself.

        A level that chips count differently which the dialect can't tell apart has no row: one of two would be empty on each.
        """
        rows = []
        for level in self.spec.levels:
            if patched or not self.patched(level):
                metrics = [one.value.Metric for one in self.traffic(level) if one.value.HasField("Metric")]
                rows += [_labelled(metrics[0], f"{level.label} traffic")] if len(metrics) == 1 else []
        return rows

    def performance(self, precision: Precision) -> list[Any]:
        """Operations per second, thousand millions of them where the dialect's expressions can divide, too.

        Where one operator can't give the sum those of the instruction families that it is of, where they can't either none.
        Rows that stay empty on chips that can't be told apart are left out, but for the type that stands for all: there each
        way of counting has a row that says whose it is.
        """
        found: dict[str, Chips] = {}
        left: Chips = frozenset()
        sums = self.sums(precision)
        giga = self.dialect.nested_expressions or all(len(work) == 1 for work in sums)
        family = {precision.id, precision.part_of, *(p.part_of for p in self.spec.precisions if p.id == precision.part_of)}
        standard = self.spec.standard_tensor.id in family
        for variant, (work, counted) in enumerate(sums.items()):
            chips = counted if standard else self.told(counted)
            name = self._rate_metric(precision, work, chips, variant, giga) if chips else ""
            if name:
                found[name] = chips
            else:
                left |= chips
        unit = f"{'G' if giga else ''}{precision.unit.upper()}/s"
        rows = []
        for position, (metric, chips) in enumerate(self.apart(found)):
            whose = ", ".join(capability_text(chip) for chip in sorted(chips) if chip != LAST)
            rows.append(_labelled(metric, f"{precision.label}{f', compute capability {whose}' * (position > 0)} [{unit}]"))
        for part in self.spec.precisions:
            of_chips = self.stands_in(part) or any(self.binding(part, chip) for chip in left)
            if part.part_of == precision.id and not part.disjoint and of_chips:
                rows += self.performance(part)
        return rows

    def _rate_metric(self, precision: Precision, work: WeightedSum, chips: Chips, variant: int, giga: bool) -> str:
        """A metric of (``giga``: thousand million) operations per second, "" where the dialect's expressions can't say it."""
        kind = "_dense" if self.counts_dense(precision) else ""  # names are global in a report: one sum, one name
        # ncu reads units off names: "per_second" would give operations one of their own, beside that of the label.
        name = f"{precision.id}{kind}_{variant}_{'giga_' if giga else ''}rate".replace(".", "_")
        if self.dialect.nested_expressions:
            return self.define(name, f"({_expression(work)}) / {10**9}", _inputs(work), chips)
        if giga:
            ((counter, weight),) = work
            factor = f"/ {10**9}" if weight == 1 else f"* {number(weight / 10**9)}"
            return self.define(name, f"{counter}.sum.per_second {factor}", _inputs(work), chips)
        work = _together(precision) if precision.together else work
        if len(work) > 2 or any(weight != 1 for _, weight in work):
            return ""
        names = _inputs(work)
        return self.define(name, " + ".join(names) if len(names) > 1 else f"{names[0]} * 1", names, chips)

    def intensities(self, precision: Precision) -> Any:
        """Operations per byte at each level with a roof."""
        rows = []
        for level in (one for one in self.spec.levels if one.bindings[0].clock and not self.patched(one)):
            found: dict[str, Chips] = {}
            for variant, (work, chips) in enumerate(self.sums(precision).items()):
                for sums, here in self.sums(level).items():
                    if chips & here:
                        name, text = (
                            f"{precision.id}_{variant}_per_{sums.counters()[0]}",
                            f"({_expression(work)}) / ({_expression(sums)})",
                        )
                        found[self.define(name, text, _inputs(work) + _inputs(sums), chips & here)] = chips & here
            if found:
                rows.append(self.metric(found, f"{precision.label} intensity at {level.label} [FLOP/byte]"))
        return _table(f"{precision.label} intensity", rows)

    def pipe_table(self) -> Any:
        """Instructions of the tensor pipe, as far as the chip and the dialect tell kinds apart."""
        units = load_units()
        pipe = next(unit for unit in units.units if unit.id == "tensor")
        rows = [self.row(f"{pipe.metrics[0]}.avg.pct_of_peak_sustained_active", "Tensor pipe busy, all kinds [% of cycles]")]
        for kind in units.tensor.instructions:
            chips = frozenset(chip for chip in self.chips if covers(kind.capabilities, chip))
            since, until = kind.releases
            if self.ranges(chips) and since <= self.dialect.metrics <= until:
                rows.append(self.metric({kind.metric: chips}, kind.label))
        return _table("Tensor instructions", rows)

    def timeline(self) -> Any:
        """All bands that are sampled, those of one pass together, and the starts of blocks with the first of them."""
        spec, groups = load_phases(), list[Any]()
        chips = frozenset(chip for chip in self.chips if chip >= _SAMPLER_SINCE)

        def row(label: str, metrics: Iterable[tuple[str, Chips]]) -> list[Any]:
            # As the sampler knows it: without it the profiler would be meant, but where a group of counters is named.
            known = {
                name if counter_of(name) != name else f"pmsampling:{name}": where
                for name, where in metrics
                if self.ranges(where)
            }
            if not known:
                return []
            metric = self.metric(known, label)
            metric.Groups.append(_pass_group(len(groups)).encode())
            return [made("TimelineRow", Label=label, Metrics=[metric])]

        for group in dict.fromkeys(one.group for band in spec.bands for one in band.collect):
            rows = []
            for band in spec.bands:
                collected = [one for one in band.collect if one.group == group]
                where = (frozenset(chip for chip in chips if covers(one.capabilities, chip)) for one in collected)
                rows += row(band.label, zip((one.metric for one in collected), where, strict=True))
            rows += [] if groups else row("Blocks started", [(spec.collected_blocks, chips)])
            groups.append(made("TimelineGroup", Label=group, Expanded=True, MetricRows=rows))
        return made("Timeline", MetricGroups=groups)

    def collect_roofs(self) -> None:
        """Have the peaks collected that the dots of the slices stand under."""
        for precision in self.counted_together:
            self.peak(precision, precision.roof)
        for reading in self.bandwidth(self.spec.level(self.spec.memory)):
            value = reading.value  # the peaks are collected by now
            clock = value.ValueCyclesPerSecondExpression.CyclesPerSecondMetric if value.HasField(PER_SECOND) else value.Metric
            self.collect(text_of(clock.Name), reading.chips)


def _chart(
    what: str, unit: str, roofs: list[Any], points: list[Any], walls: Sequence[Any] = (), axes: tuple[str, ...] = ()
) -> Any:
    axes = axes or (f"Arithmetic intensity [{unit}/byte]", f"Performance [{unit}/s]")
    intensity, work = (made("RooflineAxis", Label=axis) for axis in axes)
    lines = {"Rooflines": roofs, "AchievedValues": points, "Walls": walls}
    return made("RooflineChart", Label=f"{what} roofline", AxisIntensity=intensity, AxisWork=work, **lines)


def _labelled(metric: Any, label: str) -> Any:
    metric.Label = label.encode()
    return metric


def _table(label: str, rows: Sequence[Any]) -> Any:
    return made("Table", Label=label, Columns=2, Order=1, Metrics=rows)  # by columns


def _pass_group(position: int) -> str:
    """What the metrics that are sampled in one pass are marked with."""
    return f"{PHASES_SECTION}_{position}"


def _together(precision: Precision) -> WeightedSum:
    """Adds, multiplies and FMAs, counted together, and the FMAs once more."""
    return next(one.counters for one in precision.bindings if precision.together in one.counters.counters())


def _inputs(sums: WeightedSum) -> list[str]:
    return [f"{counter}.sum.per_second" for counter in sums.counters()]


def _expression(sums: WeightedSum) -> str:
    return " + ".join(f"{c}.sum.per_second" + (f" * {weight:g}" if weight != 1 else "") for c, weight in sums)


class Recipe(NamedTuple):
    """How a section is made and what it says of itself, as data/sections.toml explains."""

    kind: Literal["overview", "core", "tensor", "light", "instructions", "phases"]
    title: str
    description: str
    sets: tuple[str, ...] = ()
    identifier: str = ""


class _Recipes(NamedTuple):
    traffic: str
    dots: str
    types: str
    sections: tuple[Recipe, ...]


load_recipes = table("sections.toml", _Recipes)

Made = tuple[Mapping[str, str], Sequence[Any], Mapping[str, Sequence[Any]]]
"""What completes the description of a section, the metrics of its header, and by field of a body item what the body shows."""


def _core(maker: Maker, precision: Precision) -> Made:
    tensor = next((other for other in maker.spec.precisions if other.beside == precision.id), None)
    short = ", ".join(map(capability_text, maker.falls_short(precision)))
    left = f" On {short} packed instructions are not counted; `ncu-roofline generate --ncu VERSION` counts them."
    words = {
        "label": precision.label,
        "packed": ", a packed half instruction twice that" if precision.packed else "",
        "left": left if short else "",
        "matrix": "; matrix operations (DMMA) have dots and a roof of their own" if tensor else "",
    }
    chart = maker.core(precision, tensor)
    header = (*maker.time_and_clock(), *maker.performance(precision), *maker.traffic_rows())
    return words, header, {"RooflineChart": [chart]}


def _tensor(maker: Maker, _: Precision) -> Made:
    precisions = [p for p in maker.spec.precisions if p.kind == "tensor"]
    sparse = "" if maker.dialect.exact else " Sparse work counts as its dense equivalent, in the same dot."
    chart = maker.tensor(precisions)
    shown = [p for p in precisions if not p.part_of or (p.disjoint and maker.dialect.exact)]
    return {"sparse": sparse}, _tensor_header(maker, shown), {"RooflineChart": [chart]}


def _tensor_header(maker: Maker, precisions: Iterable[Precision]) -> tuple[Any, ...]:
    rows = (row for precision in precisions for row in maker.performance(precision))
    return (*maker.time_and_clock(), *rows, *maker.traffic_rows(patched=False))


def _light(maker: Maker, wanted: Precision) -> Made:
    # Sparse work would cost one more pass.
    shown = [p for p in maker.spec.precisions if p == wanted or (p.part_of == wanted.id and not p.disjoint)]
    chart, header = maker.tensor(shown, wanted.label), _tensor_header(maker, [wanted])
    return {"label": wanted.label}, header, {"RooflineChart": [chart], "Table": [maker.pipe_table()]}


def _instructions(maker: Maker, _: Precision) -> Made:
    chart = maker.instructions()
    return {}, maker.time_and_clock(), {"RooflineChart": [chart]}


def _overview(maker: Maker, _: Precision) -> Made:
    header, nested = [*maker.time_and_clock()], maker.dialect.nested_expressions
    # One operator can't give the clock as a share of the maximum (Hz over kHz): then the maximum itself.
    name, label = _MAX_KILOHERTZ, "Maximum SM Frequency [kHz]"
    if nested:
        name = maker.define("sm_clock_share", f"{_CLOCK} / ({_MAX_KILOHERTZ} * 10)", [_CLOCK, _MAX_KILOHERTZ])
        label = "SM clock / maximum clock [%]"
    header.append(maker.row(name, label))
    for precision in maker.counted_together:
        header += maker.performance(precision)
        together, fused = _inputs(_together(precision))
        name = maker.define(f"{precision.id}_fma_share", f"{fused} / {together}", [fused, together])
        header.append(maker.row(name, f"{precision.label} fused share of add, multiply and FMA instructions"))
    # Where expressions have one operator, they can't say intensities.
    tables = [maker.intensities(precision) for precision in maker.counted_together if nested]
    return {}, (*header, *maker.traffic_rows()), {"Table": tables}


def _phases(maker: Maker, _: Precision) -> Made:
    header = [*maker.time_and_clock(), *(row for one in maker.counted_together for row in maker.performance(one))]
    maker.collect_roofs()
    return {}, (*header, *maker.traffic_rows()), {"Timeline": [maker.timeline()]}


_MAKERS = {
    "overview": _overview,
    "core": _core,
    "tensor": _tensor,
    "light": _light,
    "instructions": _instructions,
    "phases": _phases,
}


def recipes(spec: Spec, dialect: Dialect, light_type: str) -> Iterator[tuple[Recipe, Precision]]:
    """All sections of a dialect, in the order in which they stand, and the precision that each is of, if of one."""
    light = spec.precision(f"tensor.{light_type}")
    for one in load_recipes().sections:
        core = [p for p in spec.precisions if p.section and one.kind == "core"]
        yield from ((one._replace(identifier=p.section, title=one.title.format(label=p.label)), p) for p in core)
        if one.kind != "core" and (one.kind != "phases" or dialect.samples):
            yield one, light


def render_sections(
    dialect: Dialect = BASE,
    ceilings: Ceilings | None = None,
    *,
    clock_consistent: bool = False,
    light_type: str = "",
    aside: tuple[str, ...] = (),
    spec: Spec | None = None,
) -> dict[str, str]:
    """The text of every section file by file name.

    With ``ceilings`` measured roofs stand beside the theoretical ones, as constants or, ``clock_consistent``, as the measured
    share of the theoretical peak.  ``light_type`` is the source type of the tensor section with few passes, "" for the one that
    every chip has; ``aside`` are levels to draw that stand aside otherwise (``system``).  Raises RooflineError for ceilings
    that can't be used so, an unknown type, and broken templates.
    """
    spec = spec or load_spec()
    light_type = light_type or spec.standard_type
    known = [p.id.removeprefix("tensor.") for p in spec.precisions if p.kind == "tensor" and not p.part_of]
    if light_type not in known:
        raise UsageError("Cannot count the tensor type", light_type, "it is unknown", f"Choose one of {', '.join(known)}.")
    ceilings = drawable(ceilings, clock_consistent)
    loads = f"Nsight Compute {'{}.{}'.format(*dialect.release)}{'' if dialect.exact else ' and later'}"
    header = [f"{GENERATED} from the specification in ncu_roofline/data for {loads}.", "Edit that, not this file."]
    if ceilings:
        header.append(f"{ceilings.status.capitalize()} roofs: {ceilings.provenance}.  Not for other GPUs.")
    head = "".join(f"# {''.join(c if c.isprintable() else ' ' for c in line)}\n" for line in header)
    texts = {}
    for position, (recipe, precision) in enumerate(recipes(spec, dialect, light_type)):
        maker = partial(Maker, spec, dialect, ceilings, clock_consistent, aside, dense=SET not in recipe.sets)
        section = _section(recipe, precision, _ORDER[position > 0], maker)
        texts[f"{recipe.identifier}.section"] = head + section_text(section, cc_names=dialect.has_cc_names)
    return texts


def _section(recipe: Recipe, precision: Precision, order: int, maker_of: Callable[..., Maker]) -> Any:
    """A section in which every name has one filter."""
    ambiguous = frozenset[str]()
    while True:
        maker = maker_of(ambiguous=ambiguous)
        words, header, body = _MAKERS[recipe.kind](maker, precision)
        items = [made("BodyItem", **{kind: one}) for kind in _BODY for one in body.get(kind, ())]
        shown = [*header, *(metric for item in items for metric in metrics_of(item))]
        found = maker.conflicts(shown) - ambiguous
        if not found:
            break
        ambiguous |= found
    definitions = maker.definitions(shown)
    passes = len(items[0].Timeline.MetricGroups) if items else 0
    return made(
        "Section",
        Identifier=recipe.identifier,
        DisplayName=recipe.title,
        Description=recipe.description.format(**load_recipes()._asdict(), clocks=BY_RELEASE, **words),
        Order=order,
        Sets=[made("Set", Identifier=name) for name in recipe.sets],
        Header=made("Header", Metrics=header),
        Metrics=made("Metrics", Metrics=maker.collected(shown)),
        MetricDefinitions=made("Definitions", MetricDefinitions=definitions) if definitions else None,
        Group=[made("Group", Name=_pass_group(position)) for position in range(passes)],
        Body=[made("Body", DisplayName=recipe.title, Items=items)] if items else [],
    )
