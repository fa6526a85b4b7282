"""`ncu-roofline explain`: which charts a report can give, what is missing, and how to add it."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from functools import partial

from ncu_roofline.analyses.instruction.explained import explain_instructions
from ncu_roofline.cli.instruction_view import counts_instructions
from ncu_roofline.cli.outputs import say, write_text
from ncu_roofline.cli.reading import check_kernels, for_each_report, no_launch, on_gpu, selection
from ncu_roofline.errors import RooflineError, printable
from ncu_roofline.facts.metric_names import compact
from ncu_roofline.inputs import PointTable
from ncu_roofline.model import closing_input, measurements_of
from ncu_roofline.model.explanations import Availability, Explanation, explain
from ncu_roofline.model.selection import Selection


def run(args: argparse.Namespace) -> int:
    """Explain every report; exit code 1 only if one could not be read."""
    explained, failed = for_each_report(
        args, partial(_explain, select=selection(args), gpu=args.gpu, instructions=counts_instructions(args))
    )
    for warning in dict.fromkeys(warning for one in explained for warning in one.warnings):
        say(f"ncu-roofline: {warning}")
    explanations = [one.explanation for one in explained]
    if not any(one.launches for one in explanations):
        raise no_launch(args)
    if args.json:
        write_text(json.dumps([one.as_dict() for one in explanations], indent=2))
    else:
        write_text("\n\n".join(_text(one, counts_instructions(args)) for one in explanations))
    return 1 if failed else 0


@dataclass(frozen=True)
class _Explained:
    """What a worker brings back of one report."""

    explanation: Explanation
    warnings: tuple[str, ...] = ()


def _explain(path: str, name: str, select: Selection, gpu: tuple[int, int] | None, instructions: bool) -> _Explained:
    with closing_input(path) as opened:
        if isinstance(opened, PointTable):
            reason = "it has finished numbers of another tool and no metrics of ncu, so there is none to add"
            raise RooflineError("Cannot explain", path, reason, "`ncu-roofline show` prints its numbers.")
        report, warnings = on_gpu(opened, gpu)
        check_kernels(report)
        measurements = select.launches(measurements_of(report, instructions=instructions, label=name))
        if instructions:
            return _Explained(explain_instructions(report, measurements, select.levels, select.kernel), warnings)
        return _Explained(explain(report, measurements, select.precisions, select.levels, select.kernel), warnings)


def _text(one: Explanation, instructions: bool) -> str:
    devices = ", ".join(f"{name} ({capability or 'unknown capability'})" for name, capability in one.devices) or "no GPU named"
    lines = [f"{one.report}: {one.launches} launches, {devices}, Nsight Compute {one.ncu_version or 'of unknown release'}"]
    for title, rows in (("work", one.precisions), ("traffic", one.levels)):
        lines += [f"  {title:8}{_row(row, one.launches)}" for row in rows]
    lines += [f"  set     {one.sets.sentence}"] if one.sets.sentence else []
    lines += [f"  note    {note}" for note in one.notes]
    gains = [f"add {', '.join(name for name in one.missing if name in one.added)}"] if set(one.missing) & set(one.added) else []
    gains += [f"count all of {', '.join(one.partial)}"] if one.partial else []
    if one.command:
        lines += [f"To {' and '.join(gains)}, run:", f"  {one.command}"]
    elif not one.missing and (one.precisions or one.levels):
        more = "" if instructions else "; --precision tensor or --level shared,system asks for more"
        lines.append(f"Nothing is missing for what was asked{more}.")
    return "\n".join(map(printable, lines))


def _row(row: Availability, launches: int) -> str:
    if not row.launches:
        return f"{row.label:12} missing"
    note = f"; {row.notes}" if row.notes else ""
    return f"{row.label:12} {row.launches} of {launches} launches ({row.source}: {compact(row.metrics)}{note})"
