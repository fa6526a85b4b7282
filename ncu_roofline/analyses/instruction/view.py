"""How commands with the option --view get the instruction roofline, and what a report lacks for it; its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ncu_roofline.analyses.hierarchical.view import Asked, Viewer
from ncu_roofline.analyses.instruction.frames import InstructionRoofline, instruction_roofline
from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.base.texts import advice
from ncu_roofline.chips import load_instructions, load_spec
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.inputs.tables import MetricTable
from ncu_roofline.formats.report import Report
from ncu_roofline.model import Measurements, Selection
from ncu_roofline.model.columns import KERNELS, POINTS, ROOFS
from ncu_roofline.model.explanations import Explanation, availability, chip_notes, command_of, devices_of
from ncu_roofline.model.extract import UNKNOWN_CAPABILITY
from ncu_roofline.model.plausible import disbelieved, left_out, told
from ncu_roofline.rendering.frames import Column


def _counted(column: Column) -> Column:
    """A column of the model, counted in warp instructions and transactions."""
    unit = column.unit.replace("flop", "inst").replace("byte", "txn")
    return replace(column, unit=unit, meaning="warp instructions executed" if column.name == "work" else column.meaning)


TABLES = {"points": tuple(map(_counted, POINTS)), "roofs": ROOFS, "kernels": tuple(map(_counted, KERNELS))}


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
        """What a report lacks; precisions of the result are kinds of instruction."""
        m, spec, counted = measurements, load_spec(), load_instructions()
        levels, own = select.levels or spec.chain, int((disbelieved(m) == "").sum())  # of other launches nothing is missing
        capabilities = list(dict.fromkeys(m.capability))
        chips = [chip for capability in capabilities if (chip := spec.read_as(capability))]
        reached = [
            availability(level, m.traffic.get(level.id))
            for level in spec.levels
            if own and level.id in levels and any(level.id not in chip.lacks for chip in chips)
        ]
        kinds = [availability(kind, m.instructions.get(kind.id)) for kind in counted.kinds] if chips and own else []
        moved = [availability(kind, m.transactions.get(kind.id)) for kind in counted.kinds if kind.level]
        without = {one.id for one in (*kinds, *moved, *reached) if one.launches < own}
        missing = tuple(one.id for one in (*kinds, *reached) if one.id in without)
        names = dict.fromkeys(name for chip in chips for name in counted.collect(spec, chip.compute_capability, tuple(levels)))
        notes = chip_notes([capability for capability in capabilities if capability != UNKNOWN_CAPABILITY])
        if not chips and not notes:
            notes = ["the report does not say which GPU it was made on, so no counter can be chosen"]
        return Explanation(
            report=str(m.report[0]) if len(m) else str(report.path),
            ncu_version=report.ncu_version,
            devices=devices_of(m),
            launches=len(m),
            precisions=tuple(kinds),
            levels=tuple(reached),
            missing=missing,
            partial=(),
            added=missing,
            command=command_of(report, tuple(names), select.kernel, mixed=own < len(m)) if missing and chips else "",
            notes=(*told(m), *left_out(m), *notes),
        )

    def frames(self, measurements: Measurements, ceilings: Sequence[Ceilings], asked: Asked) -> InstructionRoofline:
        return instruction_roofline(measurements, ceilings, clock=asked.clock, by=asked.by, select=asked.select)


VIEWER = _Instruction()
