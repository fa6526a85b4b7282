"""Measured ceilings as roofs: constants, or the same share of the theoretical peak at whatever clock the kernel runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.units import format_value
from ncu_roofline.chips import Level, Precision
from ncu_roofline.formats.ceilings import CPU, MEASURE_AGAIN, NOT_COMPARABLE, PUBLISHED, Ceiling, Ceilings
from ncu_roofline.formats.sectionfile.section import ConstantValue
from ncu_roofline.plugin.generate.choice import Chips
from ncu_roofline.plugin.generate.lower import Lowering, Reading


@dataclass(frozen=True)
class Measured:
    """The ceilings to draw, if any; ``clock_consistent``: as shares of what theory gives at the clock measured at."""

    ceilings: Ceilings | None = None
    clock_consistent: bool = False

    def compute(self, lowering: Lowering, precision: Precision, roof_id: str) -> list[Reading]:
        """The measured form of a compute roof; empty if it was not measured."""
        found = self.ceilings.compute(roof_id) if self.ceilings else None
        return self._readings(lowering, precision, found, lambda *how: lowering.peak(precision, roof_id, *how))

    def bandwidth(self, lowering: Lowering, level: Level) -> list[Reading]:
        """The measured form of a bandwidth roof; empty if it was not measured."""
        found = self.ceilings.bandwidth(level.id) if self.ceilings else None
        return self._readings(lowering, level, found, lambda *how: lowering.bandwidth(level, *how))

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
            return [Reading(ConstantValue(float(f"{found.value:.7g}")), frozenset([chip]))]
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
