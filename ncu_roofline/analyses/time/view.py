"""How commands with the option --view get the time-based roofline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ncu_roofline.analyses.hierarchical.view import Asked, Viewer
from ncu_roofline.analyses.time.frames import TimeRoofline, time_roofline
from ncu_roofline.base.errors import UsageError
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.model import Measurements


class _Time(Viewer):
    name = "time"
    by = "kernel"

    def check(self, asked: Asked) -> None:
        if len(asked.select.levels) > 1:
            reason = "the time view shows the traffic of one memory level"
            raise UsageError("Cannot use --level", ",".join(asked.select.levels), reason, "Name one level.")
        if asked.source == "embedded":
            reason = "charts inside a report give rates, and the time view needs operations, bytes and seconds"
            raise UsageError("Cannot use --source", "embedded", reason, "Leave out --source or --view time.")
        super().check(replace(asked, launch_latency=None))

    def frames(self, measurements: Measurements, ceilings: Sequence[Ceilings], asked: Asked) -> TimeRoofline:
        level, *_ = (*asked.select.levels, "")
        everywhere = replace(asked, select=replace(asked.select, levels=()))  # its machine has a bandwidth at every level
        ordinary = super().frames(measurements, ceilings, everywhere)
        return time_roofline(ordinary, level=level, launch_latency=asked.launch_latency, ceilings=ceilings)


VIEWER = _Time()
