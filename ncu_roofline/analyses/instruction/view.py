"""How commands with the option --view get the instruction roofline."""

from __future__ import annotations

from collections.abc import Sequence

from ncu_roofline.analyses.hierarchical.view import Asked, Viewer
from ncu_roofline.analyses.instruction.explained import explain_instructions
from ncu_roofline.analyses.instruction.frames import InstructionRoofline, instruction_roofline
from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.base.suggestions import advice
from ncu_roofline.chips import load_instructions
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.inputs import MetricTable
from ncu_roofline.formats.report import Report
from ncu_roofline.model import Measurements, Selection
from ncu_roofline.model.explanations import Explanation


class _Instruction(Viewer):
    name = "instruction"
    instructions = True
    more = ""

    def check(self, asked: Asked) -> None:
        if asked.source == "embedded":
            reason = "the instruction roofline is made from counters, not from charts inside the report"
            raise UsageError("Cannot use --source", "embedded", reason, "Leave out --source or --view instruction.")
        super().check(asked)

    def check_precisions(self, given: Sequence[str]) -> None:
        kinds = [kind.id for kind in load_instructions().kinds]
        for one in given:
            if one not in kinds:
                next_step = advice(f"With --view instruction name {', '.join(kinds)}", one, kinds)
                raise RooflineError("Cannot use --precision", one, "it is no kind of instruction", next_step)

    def explain(self, report: Report | MetricTable, measurements: Measurements, select: Selection) -> Explanation:
        return explain_instructions(report, measurements, select.levels, select.kernel)

    def frames(self, measurements: Measurements, ceilings: Sequence[Ceilings], asked: Asked) -> InstructionRoofline:
        return instruction_roofline(measurements, ceilings, clock=asked.clock, by=asked.by, select=asked.select)


VIEWER = _Instruction()
