"""How commands with the option --view get the roofline over time inside a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from ncu_roofline.analyses.hierarchical.view import Asked, Viewer
from ncu_roofline.analyses.phases.chart import absent_notes
from ncu_roofline.analyses.phases.frames import PhaseRoofline, phase_roofline
from ncu_roofline.base.errors import UsageError
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.model import Measurements


class _Phases(Viewer):
    name = "phases"
    by = "launch"
    samples = True
    more = " of work and traffic; the notes say what was sampled over time"

    def check(self, asked: Asked) -> None:
        if asked.by == "application":
            reason = "phases are those of one launch"
            raise UsageError("Cannot use --by", asked.by, reason, "Use --by kernel or --by launch.")
        if asked.source == "embedded":
            reason = "charts inside a report give one number per launch, and phases are made from samples over its time"
            raise UsageError("Cannot use --source", "embedded", reason, "Leave out --source or --view phases.")
        super().check(asked)

    def undrawn(self, frames: PhaseRoofline) -> list[str]:
        return absent_notes(frames)

    def frames(self, measurements: Measurements, ceilings: Sequence[Ceilings], asked: Asked) -> PhaseRoofline:
        return phase_roofline(measurements, ceilings, clock=asked.clock, by=asked.by, select=asked.select)


VIEWER = _Phases()
