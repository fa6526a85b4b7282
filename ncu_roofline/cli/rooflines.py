"""What `show`, `render` and `demo` share: reports on the command line to one roofline."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

from ncu_roofline.analyses.instruction.frames import instruction_roofline
from ncu_roofline.analyses.time.frames import TimeRoofline
from ncu_roofline.cli.instruction_view import check_instruction_options, counts_instructions
from ncu_roofline.cli.outputs import say
from ncu_roofline.cli.reading import no_launch, read_reports, selection
from ncu_roofline.cli.time_view import check_time_options, time_view
from ncu_roofline.errors import UsageError
from ncu_roofline.inputs import open_ceilings
from ncu_roofline.model import Measurements, Roofline, as_trajectory, roofline
from ncu_roofline.model.explanations import Explanation


@dataclass(frozen=True)
class Result:
    """A roofline, what its reports lack, and whether some report had to be left out."""

    roofline: Roofline | TimeRoofline
    explanations: tuple[Explanation, ...]
    advice: tuple[dict[str, str], ...]
    exit_code: int


def read_roofline(args: argparse.Namespace, advice: bool = False) -> Result:
    """Read every report of the command line and build the roofline it asks for; with ``advice``, what our rules say."""
    sweep = args.trajectory or bool(args.label)
    check_time_options(args)
    check_instruction_options(args)
    by = args.by or ("kernel" if args.view == "time" else "launch")
    by = "kernel" if sweep and by == "launch" else by  # the launches of a step are one dot
    args = argparse.Namespace(**{**vars(args), "by": by})
    select = selection(args)
    ceilings = [open_ceilings(path) for path in args.ceilings]
    if args.source == "embedded" and (args.by != "launch" or args.clock != "profiled" or ceilings):
        reason = "the report's own charts are per launch, at the profiled clock and without measured ceilings"
        raise UsageError("Cannot use --source", "embedded", reason, "Leave out --by, --clock, --ceilings and --trajectory.")
    reports, failed = read_reports(args, select if advice else None)
    for warning in dict.fromkeys(warning for report in reports for warning in report.warnings):
        say(f"ncu-roofline: {warning}")
    measurements = Measurements.joined([report.measurements for report in reports])
    if sweep:
        measurements = as_trajectory(measurements, args.label)
    if not len(select.launches(measurements)):
        raise no_launch(args)
    if args.view == "time":  # its machine has a bandwidth at every level
        select = replace(select, levels=())
    if counts_instructions(args):
        result: Roofline = instruction_roofline(measurements, ceilings, clock=args.clock, by=args.by, select=select)
    else:
        result = roofline(measurements, ceilings, clock=args.clock, by=args.by, select=select, source=args.source)
    return Result(
        roofline=time_view(result, args, ceilings) if args.view == "time" else result,
        explanations=tuple(report.explanation for report in reports if report.explanation),
        advice=tuple(row for report in reports for row in report.advice),
        exit_code=1 if failed else 0,
    )
