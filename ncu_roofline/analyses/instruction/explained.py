"""What a report lacks for the instruction roofline, and the ncu command that adds it."""

from __future__ import annotations

from collections.abc import Sequence

from ncu_roofline.chips import load_instructions, load_spec
from ncu_roofline.formats.inputs import MetricTable
from ncu_roofline.formats.report import Report
from ncu_roofline.model.explanations import Explanation, availability, chip_notes, command_of, devices_of
from ncu_roofline.model.extract import UNKNOWN_CAPABILITY
from ncu_roofline.model.foreign import disbelieved, told
from ncu_roofline.model.measurements import Measurements
from ncu_roofline.model.plausible import left_out


def explain_instructions(
    report: Report | MetricTable, m: Measurements, levels: Sequence[str] = (), kernel: str = ""
) -> Explanation:
    """Explain a report from its measurements, made with instructions.

    The precisions of the result are kinds of instruction; ``levels`` and ``kernel`` as of `explain`.
    """
    spec, counted = load_spec(), load_instructions()
    levels, own = levels or spec.chain, int((disbelieved(m) == "").sum())  # of the other launches nothing is missing
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
    missing = [one.id for one in (*kinds, *reached) if one.id in without]
    names = (name for chip in chips for name in counted.collect(spec, chip.compute_capability, tuple(levels)))
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
        missing=tuple(missing),
        partial=(),
        added=tuple(missing),
        command=command_of(report, tuple(dict.fromkeys(names)), kernel, mixed=own < len(m)) if missing and chips else "",
        notes=(*told(m), *left_out(m), *notes),
    )
