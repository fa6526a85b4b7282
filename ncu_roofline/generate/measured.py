"""Measured ceilings as roofs: constants, or the same share of the theoretical peak at whatever clock the kernel runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ncu_roofline.ceilings import CPU, NOT_COMPARABLE, PUBLISHED, Ceiling, Ceilings, read_document
from ncu_roofline.errors import RooflineError
from ncu_roofline.facts import Level, Precision
from ncu_roofline.generate.choice import Chips
from ncu_roofline.generate.lower import Lowering, Reading
from ncu_roofline.sectionfile.section import ConstantValue
from ncu_roofline.units import format_value


@dataclass(frozen=True)
class Measured:
    """The ceilings to draw, if any.

    ``shares``, for the clock-consistent form: ceiling id -> measured value / theoretical value at the clock measured at.
    """

    ceilings: Ceilings | None = None
    shares: Mapping[str, float] | None = field(default=None, hash=False)

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
        share = (self.shares or {}).get(ceiling.id, math.nan)
        return share if math.isfinite(share) else None

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

    Raises RooflineError if the clock-consistent form is wanted and the file, which is read again, has no theory beside them.
    """
    if ceilings is not None and ceilings.kind == CPU:
        return Measured()
    if ceilings is None or not clock_consistent:
        return Measured(ceilings)
    document = read_document(ceilings.path)
    shares = {entry["id"]: _share(entry) for entry in document["ceilings"] if entry.get("id") in ceilings.by_id}
    if not any(math.isfinite(share) for share in shares.values()):
        reason = 'no ceiling says what theory gives at its clock ("theory.at_measured_clock")'
        raise RooflineError("Cannot scale the ceilings of", ceilings.path, reason, "Leave out --clock-consistent.")
    return Measured(ceilings, shares)


def _share(entry: Mapping[str, object]) -> float:
    theory = entry.get("theory")
    at_clock = theory.get("at_measured_clock") if isinstance(theory, dict) else None
    value = entry.get("value")
    if not isinstance(at_clock, (int, float)) or not isinstance(value, (int, float)) or not at_clock > 0:
        return math.nan
    return value / at_clock
