"""The roofline charts: which roofs, points and walls they have."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.units import format_value
from ncu_roofline.chips import Level, Precision, load_instructions
from ncu_roofline.chips.palette import PLAIN, TENSOR, WALL
from ncu_roofline.formats.ceilings import CPU, MEASURE_AGAIN, NOT_COMPARABLE, PUBLISHED, Ceiling, Ceilings
from ncu_roofline.formats.sectionfile.section import made, made_options, made_point, made_roof, made_value
from ncu_roofline.plugin.generate.dialects import Chips
from ncu_roofline.plugin.generate.lower import Lowering, Reading


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
            for wall in counted.walls_of(global_loads.id)
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
