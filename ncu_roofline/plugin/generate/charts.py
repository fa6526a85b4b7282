"""What sections show: which roofs, points and walls the roofline charts have; headers, tables and the timeline."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.units import format_value
from ncu_roofline.chips import Level, Precision, load_instructions, load_units
from ncu_roofline.chips.fields import LAST, WeightedSum, capability_text
from ncu_roofline.chips.formulas import covers
from ncu_roofline.chips.palette import PLAIN, TENSOR, WALL
from ncu_roofline.chips.spec import PHASES_SECTION
from ncu_roofline.chips.tables import counter_of, load_phases
from ncu_roofline.formats.ceilings import CPU, MEASURE_AGAIN, NOT_COMPARABLE, PUBLISHED, Ceiling, Ceilings
from ncu_roofline.formats.sectionfile.section import PER_SECOND, made, made_options, made_point, made_roof, made_value, text_of
from ncu_roofline.plugin.generate.dialects import Chips
from ncu_roofline.plugin.generate.lower import Lowering, Reading, number

_CLOCK = "sm__cycles_elapsed.avg.per_second"
GIGA = 10**9
_MAX_KILOHERTZ = "device__attribute_max_gpu_frequency_khz"
_COLUMN_MAJOR = 1  # order of a table
_SAMPLER_SINCE = (7, 5)  # what the PM sampler runs on


@dataclass(frozen=True)
class Measured:
    """The ceilings to draw, if any; ``clock_consistent``: as shares of what theory gives at the clock measured at."""

    ceilings: Ceilings | None = None
    clock_consistent: bool = False

    def compute(self, lowering: Lowering, precision: Precision, roof_id: str) -> list[Reading]:
        """The measured form of a compute roof; empty if it was not measured."""
        found = self.ceilings.compute(roof_id) if self.ceilings else None
        return self._readings(lowering, precision, found, partial(lowering.peak, precision, roof_id))

    def bandwidth(self, lowering: Lowering, level: Level) -> list[Reading]:
        """The measured form of a bandwidth roof; empty if it was not measured."""
        found = self.ceilings.bandwidth(level.id) if self.ceilings else None
        return self._readings(lowering, level, found, partial(lowering.bandwidth, level))

    def _readings(
        self,
        lowering: Lowering,
        item: Precision | Level,
        found: Ceiling | None,
        theory: Callable[[float, Chips], list[Reading]],
    ) -> list[Reading]:
        if not found or not self.ceilings:
            return []
        chip = self.ceilings.compute_capability
        if not lowering.ranges([chip]) or not lowering.choice.binding(item, chip):
            return []
        share = self._share(found)
        if share is None:
            return [Reading(made_value(constant=float(f"{found.value:.7g}")), frozenset([chip]))]
        return theory(share, frozenset([chip]))

    def _share(self, ceiling: Ceiling) -> float | None:
        """The share of theory to draw; None for a constant: unless asked for, and where theory is not known."""
        return ceiling.share if self.clock_consistent and math.isfinite(ceiling.share) else None

    def label(self, level: str, roof_id: str) -> str:
        """Where and when the ceiling of a roof was measured, at which clock; "" if it was not."""
        if not self.ceilings:
            return ""
        one = (self.ceilings.bandwidth(level) if level else None) or self.ceilings.compute(roof_id)
        clock = f"at {format_value(one.clock, 'hertz')}" if one and math.isfinite(one.clock) else ""
        scaled = "scaled to this run's clock" if one and self._share(one) is not None else ""
        of = self.ceilings.device or "an unnamed GPU"
        said = f"{NOT_COMPARABLE}: {of}" if self.ceilings.status == PUBLISHED else f"measured on {of}"
        parts = (said, self.ceilings.date, clock, scaled)
        return ", ".join(part for part in parts if part)


def measured(ceilings: Ceilings | None, clock_consistent: bool) -> Measured:
    """Ceilings to draw, none of a CPU.

    Raises RooflineError for one that its own file disproves, and if the clock-consistent form is wanted and nothing says what
    theory gives.
    """
    if ceilings is None or ceilings.kind == CPU:
        return Measured()
    impossible = next((one for one in ceilings.by_id.values() if one.impossible), None)
    if impossible:
        reason = f"{impossible.id} is {impossible.value / impossible.theory:.3g}x what theory gives at its clock"
        raise RooflineError("Cannot draw the ceilings of", ceilings.path, reason, MEASURE_AGAIN)
    if clock_consistent and not any(math.isfinite(one.share) for one in ceilings.by_id.values()):
        reason = 'no ceiling says what theory gives at its clock ("theory.at_measured_clock")'
        raise RooflineError("Cannot scale the ceilings of", ceilings.path, reason, "Leave out --clock-consistent.")
    return Measured(ceilings, clock_consistent)


class ChartMaker:
    """Makes the charts of one section."""

    def __init__(self, lowering: Lowering, measured: Measured, aside: Sequence[str] = ()) -> None:
        self.lowering, self.measured = lowering, measured
        # A dot of a level that hardly matters stands far out, and stretches the axis for all others.
        self.levels = tuple(level for level in lowering.spec.levels if not level.on_request or level.id in aside)

    def core(self, precision: Precision, tensor: Precision | None) -> Any:
        """All roofs and points of a precision of the CUDA cores, and those of its tensor counterpart, if wanted."""
        label = precision.label
        # What comes later is drawn over what came before, and each level's line has to show its colour.
        roofs = self._flat_roofs(precision, precision.roof_ids()[1], f"{label} without FMA", PLAIN.light)
        points = self._points(precision, self.levels)
        if tensor:
            roofs += self._flat_roofs(tensor, tensor.id, tensor.label, TENSOR.light)
            points += self._points(tensor, self.levels, TENSOR.light)
        patched = [level for level in self.levels if self.lowering.patched(level)]
        roofs += self._level_roofs(precision, [*patched, *_without_patching(self.lowering, self.levels)], f"{label} FMA")
        return _chart(f"{label} roofline", _axes("FLOP"), roofs, points)

    def tensor(self, precisions: Sequence[Precision], label: str = "Tensor") -> Any:
        """Roofs and points of tensor types: each at every level, variants of a type (instruction family, sparse) beside it.

        With several types, dots have the colour of theirs: which level they are of is told by their order, outwards from L1.
        """
        several = len([one for one in precisions if not one.part_of]) > 1
        color = {one.id: one.color for one in precisions}
        levels = _without_patching(self.lowering, self.levels)
        roofs: list[Any] = []
        points: list[Any] = []
        for precision in sorted(precisions, key=lambda one: not one.part_of):
            if precision.part_of:
                shown = color.get(precision.part_of, precision.color).dark
                roofs += self._flat_roofs(precision, precision.id, precision.label, shown)
            else:
                roofs += self._level_roofs(precision, levels, precision.label)
            told_apart = precision.disjoint and self.lowering.dialect.exact
            if not precision.part_of or told_apart or self.lowering.choice.stands_in(precision):
                own = color.get(precision.part_of, precision.color).light
                points += self._points(precision, levels, own if several else "")
        return _chart(f"{label} roofline", _axes("OP"), roofs, points)

    def instructions(self) -> Any:
        """Warp instructions against memory transactions of 32 bytes, and walls for patterns of global loads."""
        counted = load_instructions()
        everything, global_loads = counted.kind("inst"), counted.kind("inst.global_ld")
        (executed,) = everything.instructions[0].counters.counters()
        peak = self._value(f"{counted.issue_counter}.sum.peak_sustained", "sm__cycles_elapsed.avg.per_second")
        work = Reading(self._value(f"{executed}.sum.per_second"), self.lowering.chips)
        self.lowering.collect(f"{executed}.sum")
        roofs, points = [], []
        for level in _without_patching(self.lowering, self.levels):
            color = level.color.light
            label = f"{level.label} transactions, instruction issue"
            bandwidth = self.lowering.bandwidth(level, 1 / counted.transaction)
            roofs += [made_roof(peak, one.value, label, color) for one in bandwidth]
            traffic = self.lowering.traffic(level, 1 / counted.transaction)
            points += self._cross(work, traffic, f"All instructions at {level.label}", color)
        loads, sectors = (
            self._value(f"{ways[0].counters.counters()[0]}.sum.per_second")
            for ways in (global_loads.instructions, global_loads.transactions)
        )
        points.append(made_point(loads, sectors, "Global loads alone, at the sectors they ask for", TENSOR.light))
        walls = [
            made(
                "Wall", Value=made_value(constant=wall.intensity), Options=made_options("PlainOptions", wall.label, WALL.light)
            )
            for wall in counted.walls
            if wall.kind == global_loads.id
        ]
        axes = ("Warp instructions per memory transaction of 32 bytes", "Warp instructions per second")
        return _chart("Instruction roofline", axes, roofs, points, walls)

    def _value(self, name: str, clock: str = "") -> Any:
        metric = self.lowering.metric({name: self.lowering.chips})
        return made_value(metric, clock=self.lowering.metric({clock: self.lowering.chips}) if clock else None)

    def _level_roofs(self, precision: Precision, levels: Iterable[Level], what: str) -> list[Any]:
        """The precision's highest roof with each level's bandwidth, theoretical and measured."""
        roof_id = precision.roof_ids()[0]
        roofs: list[Any] = []
        for level in levels:
            color, lighter = level.color  # what is measured: a lighter tone
            peaks, bandwidths = self.lowering.peak(precision, roof_id), self.lowering.bandwidth(level)
            roofs += self._pairs(peaks, bandwidths, f"{level.label} bandwidth, {what} peak", color, precision)
            works = self.measured.compute(self.lowering, precision, roof_id)
            traffics = self.measured.bandwidth(self.lowering, level)
            label = f"{level.label} bandwidth, {what} peak, {self.measured.label(level.id, roof_id)}"
            if works and not traffics and level is self.levels[0]:
                traffics, label = bandwidths, f"{what} peak, {self.measured.label('', roof_id)}"
            roofs += self._pairs(works or peaks, traffics, label, lighter, precision)
        return roofs

    def _flat_roofs(self, precision: Precision, roof_id: str, what: str, color: str) -> list[Any]:
        """A compute roof with the innermost level's bandwidth, theoretical and measured."""
        level = self.levels[0]
        peaks, bandwidths = self.lowering.peak(precision, roof_id), self.lowering.bandwidth(level)
        roofs = self._pairs(peaks, bandwidths, f"{what} peak", color, precision)
        works = self.measured.compute(self.lowering, precision, roof_id)
        traffics = self.measured.bandwidth(self.lowering, level) or bandwidths
        roofs += self._pairs(works, traffics, f"{what} peak, {self.measured.label('', roof_id)}", color, precision)
        return roofs

    def _pairs(self, works: list[Reading], traffics: list[Reading], label: str, color: str, precision: Precision) -> list[Any]:
        conditions: list[tuple[Any, Chips]] = [(None, self.lowering.chips)]
        if self.lowering.dialect.show_only_if_not_zero and precision.kind == "tensor" and not precision.standard:
            conditions = [(one.value, one.chips) for one in self.lowering.work(precision)]
        return [
            made_roof(work.value, traffic.value, f"{label}{traffic.note}", color, condition)
            for work in works
            for traffic in traffics
            for condition, chips in conditions
            if work.chips & traffic.chips & chips
        ]

    def _points(self, precision: Precision, levels: Iterable[Level], color: str = "") -> list[Any]:
        """Dots of a precision in one colour, or each in its level's."""
        points: list[Any] = []
        for level in levels:
            for work in self.lowering.work(precision):
                label = f"{precision.label} at {level.label}"
                points += self._cross(work, self.lowering.traffic(level), label, color or level.color.light)
        return points

    @staticmethod
    def _cross(work: Reading, traffics: list[Reading], label: str, color: str) -> list[Any]:
        return [made_point(work.value, traffic.value, label, color) for traffic in traffics if work.chips & traffic.chips]


def _axes(unit: str) -> tuple[str, str]:
    return f"Arithmetic intensity [{unit}/byte]", f"Performance [{unit}/s]"


def _chart(label: str, axes: tuple[str, str], roofs: list[Any], points: list[Any], walls: Sequence[Any] = ()) -> Any:
    intensity, work = (made("RooflineAxis", Label=axis) for axis in axes)
    return made(
        "RooflineChart",
        Label=label,
        AxisIntensity=intensity,
        AxisWork=work,
        Rooflines=roofs,
        AchievedValues=points,
        Walls=walls,
    )


def _without_patching(lowering: Lowering, levels: Iterable[Level]) -> list[Level]:
    """Levels whose counters are hardware's: patched ones would cost a chart without patched work a replay pass."""
    return [level for level in levels if not lowering.patched(level)]


def pipe_table(lowering: Lowering) -> Any:
    """Instructions of the tensor pipe, as far as the chip and the dialect tell kinds apart."""
    units = load_units()
    pipe, tensor = next(unit for unit in units.units if unit.id == "tensor"), units.tensor
    busy = f"{pipe.metrics[0]}.avg.pct_of_peak_sustained_active"
    rows = [lowering.metric({busy: lowering.chips}, "Tensor pipe busy, all kinds [% of cycles]")]
    for kind in tensor.instructions:
        chips = frozenset(chip for chip in lowering.chips if covers(kind.capabilities, chip))
        since, until = kind.releases
        if lowering.ranges(chips) and since <= lowering.dialect.metrics <= until:
            rows.append(lowering.metric({kind.metric: chips}, kind.label))
    return _table("Tensor instructions", rows)


def core_precisions(lowering: Lowering) -> tuple[Precision, ...]:
    """The precisions of CUDA cores that the library counts together."""
    return tuple(precision for precision in lowering.spec.precisions if precision.together)


def time_and_clock(lowering: Lowering) -> tuple[Any, ...]:
    """Duration and SM clock."""
    rows = (("Duration", "gpu__time_duration.sum"), ("SM Frequency", _CLOCK))
    return tuple(lowering.metric({name: lowering.chips}, label) for label, name in rows)


def clock_share(lowering: Lowering) -> Any:
    """The profiled SM clock as a share of the maximum; one operator can't do that (Hz over kHz), so the maximum itself."""
    if not lowering.dialect.nested_expressions:
        return lowering.metric({_MAX_KILOHERTZ: lowering.chips}, "Maximum SM Frequency [kHz]")
    name = lowering.define("sm_clock_share", f"{_CLOCK} / ({_MAX_KILOHERTZ} * 10)", [_CLOCK, _MAX_KILOHERTZ])
    return lowering.metric({name: lowering.chips}, "SM clock / maximum clock [%]")


def traffic(lowering: Lowering, *, patched: bool = True) -> tuple[Any, ...]:
    """Bytes per second of each level; without ``patched`` only what hardware counts.  ncu shows their unit by itself.

    A level that chips count differently which the dialect can't tell apart has no row: one of two would be empty on each chip.
    """
    levels = [level for level in lowering.spec.levels if patched or not lowering.patched(level)]
    metrics = {level: [one.value.Metric for one in lowering.traffic(level) if one.value.HasField("Metric")] for level in levels}
    return tuple(_labelled(found[0], f"{level.label} traffic") for level, found in metrics.items() if len(found) == 1)


def performance(lowering: Lowering, precision: Precision) -> tuple[Any, ...]:
    """Operations per second, thousand millions of them where the dialect's expressions can divide, too.

    Where one operator can't give the sum those of the instruction families that it is of, where they can't either none.  Rows
    that stay empty on chips that can't be told apart are left out, but for the type that stands for all: there each way of
    counting has a row that says whose it is.
    """
    found: dict[str, Chips] = {}
    left: Chips = frozenset()
    sums = lowering.sums(precision)
    giga = lowering.dialect.nested_expressions or all(len(work) == 1 for work in sums)
    for variant, (work, counted) in enumerate(sums.items()):
        chips = counted if _standard(lowering, precision) else lowering.choice.told(counted)
        name = _rate(lowering, precision, work, chips, variant, giga) if chips else ""
        if name:
            found[name] = chips
        else:
            left |= chips
    unit = f"{'G' if giga else ''}{precision.unit.upper()}/s"
    rows = []
    for position, (metric, chips) in enumerate(lowering.apart(found)):
        capabilities = ", ".join(capability_text(chip) for chip in sorted(chips) if chip != LAST)
        whose = f", compute capability {capabilities}" if position else ""
        rows.append(_labelled(metric, f"{precision.label}{whose} [{unit}]"))
    parts = [part for part in lowering.spec.precisions if part.part_of == precision.id and not part.disjoint]
    choice = lowering.choice
    families = [part for part in parts if choice.stands_in(part) or any(choice.binding(part, chip) for chip in left)]
    return (*rows, *(row for part in families for row in performance(lowering, part)))


def _standard(lowering: Lowering, precision: Precision) -> bool:
    return precision.standard or (bool(precision.part_of) and _standard(lowering, lowering.spec.precision(precision.part_of)))


def _labelled(metric: Any, label: str) -> Any:
    metric.Label = label.encode()
    return metric


def _table(label: str, rows: Sequence[Any]) -> Any:
    return made("Table", Label=label, Columns=2, Order=_COLUMN_MAJOR, Metrics=rows)


def _rate(lowering: Lowering, precision: Precision, work: WeightedSum, chips: Chips, variant: int, giga: bool) -> str:
    """A metric of (``giga``: thousand million) operations per second, "" where the dialect's expressions can't say it."""
    kind = "_dense" if lowering.choice.counts_dense(precision) else ""  # names are global in a report: one sum, one name
    # ncu reads units off names: "per_second" would give operations one of their own, beside that of the label.
    name = f"{precision.id}{kind}_{variant}_{'giga_' if giga else ''}rate".replace(".", "_")
    if lowering.dialect.nested_expressions:
        return lowering.define(name, f"({_expression(work)}) / {GIGA}", _inputs(work), chips)
    if giga:
        ((counter, weight),) = work
        factor = f"/ {GIGA}" if weight == 1 else f"* {number(weight / GIGA)}"
        return lowering.define(name, f"{counter}.sum.per_second {factor}", _inputs(work), chips)
    work = _together(precision) if precision.together else work
    if len(work) > 2 or any(weight != 1 for _, weight in work):
        return ""
    names = _inputs(work)
    return lowering.define(name, " + ".join(names) if len(names) > 1 else f"{names[0]} * 1", names, chips)


def fused_share(lowering: Lowering, precision: Precision) -> Any:
    """Fused multiply-adds as a share of add, multiply and fused instructions."""
    together, fused = _inputs(_together(precision))
    name = lowering.define(f"{precision.id}_fma_share", f"{fused} / {together}", [fused, together])
    return lowering.metric({name: lowering.chips}, f"{precision.label} fused share of add, multiply and FMA instructions")


def intensities(lowering: Lowering, precision: Precision) -> tuple[Any, ...]:
    """Operations per byte at each level with a roof; no table where expressions have one operator, which can't say it."""
    if not lowering.dialect.nested_expressions:
        return ()
    rows = []
    for level in (one for one in lowering.spec.levels if one.bindings[0].clock and not lowering.patched(one)):
        found: dict[str, Chips] = {}
        for variant, (work, chips) in enumerate(lowering.sums(precision).items()):
            for sums, here in lowering.sums(level).items():
                if chips & here:
                    name = f"{precision.id}_{variant}_per_{sums.counters()[0]}"
                    text = f"({_expression(work)}) / ({_expression(sums)})"
                    found[lowering.define(name, text, _inputs(work) + _inputs(sums), chips & here)] = chips & here
        if found:
            rows.append(lowering.metric(found, f"{precision.label} intensity at {level.label} [FLOP/byte]"))
    return (_table(f"{precision.label} intensity", rows),)


def _together(precision: Precision) -> WeightedSum:
    """Adds, multiplies and FMAs, counted together, and the FMAs once more."""
    return next(one.counters for one in precision.bindings if precision.together in one.counters.counters())


def _inputs(sums: WeightedSum) -> list[str]:
    return [f"{counter}.sum.per_second" for counter in sums.counters()]


def _expression(sums: WeightedSum) -> str:
    return " + ".join(f"{c}.sum.per_second" + (f" * {weight:g}" if weight != 1 else "") for c, weight in sums)


def timeline(lowering: Lowering) -> Any:
    """All bands that are sampled, those of one pass together, and the starts of blocks with the first of them."""
    spec = load_phases()
    chips = frozenset(chip for chip in lowering.chips if chip >= _SAMPLER_SINCE)

    def sampled(metric: str) -> str:
        """As the sampler knows it: without it the profiler would be meant, but where a group of counters is named."""
        return metric if counter_of(metric) != metric else f"pmsampling:{metric}"

    groups: list[Any] = []
    for group in dict.fromkeys(one.group for band in spec.bands for one in band.collect):
        metrics = []
        for band in spec.bands:
            collected = [one for one in band.collect if one.group == group]
            chips_of = {
                sampled(one.metric): frozenset(chip for chip in chips if covers(one.capabilities, chip)) for one in collected
            }
            known = {name: where for name, where in chips_of.items() if lowering.ranges(where)}
            if known:
                metrics.append((band.label, known))
        if not groups:
            metrics.append(("Blocks started", {sampled(spec.collected_blocks): chips}))
        rows = []
        for label, names in metrics:
            metric = lowering.metric(names, label)
            metric.Groups.append(pass_group(len(groups)).encode())
            rows.append(made("TimelineRow", Label=label, Metrics=[metric]))
        groups.append(made("TimelineGroup", Label=group, Expanded=True, MetricRows=rows))
    return made("Timeline", MetricGroups=groups)


def pass_group(position: int) -> str:
    """What the metrics that are sampled in one pass are marked with."""
    return f"{PHASES_SECTION}_{position}"


def collect_roofs(lowering: Lowering, precisions: Iterable[Precision]) -> None:
    """Have the peaks collected that the dots of the slices stand under."""
    for precision in precisions:
        lowering.peak(precision, precision.roof_ids()[0])
    for reading in lowering.bandwidth(lowering.spec.level(lowering.spec.memory)):
        value = reading.value  # the peaks are collected by now
        clock = value.ValueCyclesPerSecondExpression.CyclesPerSecondMetric if value.HasField(PER_SECOND) else value.Metric
        lowering.collect(text_of(clock.Name), reading.chips)
