"""How commands with the option --view get a roofline: what goes together, what is read, built and explained; its tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.base.texts import advice
from ncu_roofline.chips import load_spec
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.inputs.tables import MetricTable
from ncu_roofline.formats.report import Report
from ncu_roofline.model import Measurements, Selection, roofline
from ncu_roofline.model.columns import KERNELS, POINTS, ROOFS
from ncu_roofline.model.explanations import Explanation, explain

TABLES = {"points": POINTS, "roofs": ROOFS, "kernels": KERNELS}


@dataclass(frozen=True)
class Asked:
    """What a user asks of a view; ``ceilings`` are the paths of files, ``launch_latency`` is in seconds."""

    select: Selection
    by: str
    clock: str
    source: str
    ceilings: Sequence[str]
    launch_latency: float | None


class Viewer:
    """The hierarchical roofline; other views say where they differ."""

    name = "roofline"
    by = "launch"  # what one row is unless the user says it
    instructions = False  # whether the instructions of a report are read
    samples = False  # whether what was sampled over the time of its launches is
    embedded = ""  # why the charts inside a report are of no use to it
    more = "; --precision tensor or --level shared,system asks for more"  # where an explanation finds nothing missing

    def check(self, asked: Asked) -> None:
        """Raise RooflineError for options that don't go together, or name what is not known."""
        if asked.launch_latency is not None:
            reason = "launch overhead is part of the time view only"
            raise UsageError("Cannot use --launch-latency", f"{asked.launch_latency:g} s", reason, "Add --view time.")
        self.check_names(asked.select)
        if asked.source == "embedded" and self.embedded:
            next_step = f"Leave out --source or --view {self.name}."
            raise UsageError("Cannot use --source", "embedded", self.embedded, next_step)
        if asked.source == "embedded" and (asked.by != "launch" or asked.clock != "profiled" or asked.ceilings):
            reason = "the report's own charts are per launch, at the profiled clock and without measured ceilings"
            raise UsageError("Cannot use --source", "embedded", reason, "Leave out --by, --clock, --ceilings and --trajectory.")

    def check_names(self, select: Selection) -> None:
        """Raise RooflineError for levels and precisions that are not known; of a precision the first parts are enough."""
        check_known("--level", select.levels, {level.id for level in load_spec().levels}, "levels")
        parts = [precision.id.split(".") for precision in load_spec().precisions]
        known = {".".join(words[: count + 1]) for words in parts for count in range(len(words))}
        check_known("--precision", select.precisions, {"mixed", *known}, "precisions")

    def explain(self, report: Report | MetricTable, measurements: Measurements, select: Selection) -> Explanation:
        """What a report can show of what is selected, and what it lacks."""
        return explain(report, measurements, select.precisions, select.levels, select.kernel)

    def undrawn(self, frames: Any) -> Sequence[str]:  # noqa: ARG002
        """Sentences on launches that a picture or a page can have nothing of, and how to collect what they lack."""
        return ()

    def frames(self, measurements: Measurements, ceilings: Sequence[Ceilings], asked: Asked) -> Any:
        return roofline(measurements, ceilings, clock=asked.clock, by=asked.by, source=asked.source, select=asked.select)


def check_known(option: str, given: Sequence[str], known: Collection[str], what: str) -> None:
    """Raise RooflineError for a name that is not known."""
    for one in given:
        if one not in known:
            next_step = advice(f"See `ncu-roofline list {what}`", one, known)
            raise RooflineError(f"Cannot use {option}", one, f"there is no such {what[:-1]}", next_step)


VIEWER = Viewer()
