"""`ncu-roofline compare`: what changed between reports."""

from __future__ import annotations

import argparse
import math
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ncu_roofline.analyses.compare.expressions import parse
from ncu_roofline.analyses.compare.frames import Comparison, Settings, compare
from ncu_roofline.analyses.compare.thresholds import NOT_EVALUATED, TRIPPED, evaluate
from ncu_roofline.ceilings import Ceilings
from ncu_roofline.cli.inputs import expand
from ncu_roofline.cli.outputs import STANDARD_OUTPUT, check_output, chosen_format, say, write_output
from ncu_roofline.cli.reading import check_kernels, for_each_report, no_launch, on_gpu, selection
from ncu_roofline.errors import RooflineError, UsageError
from ncu_roofline.inputs import PointTable, open_ceilings
from ncu_roofline.model import Measurements, Roofline, closing_input, measurements_of, roofline

MINIMUM_WIDTH = 60


@dataclass(frozen=True)
class _Read:
    """What a worker brings back of one report."""

    path: str
    measurements: Measurements
    warnings: tuple[str, ...]


def run(args: argparse.Namespace) -> int:
    """Print or write the comparison; exit code 1 if a threshold tripped, nothing was in common, or a report was left out."""
    from ncu_roofline.analyses import ANALYSES, render

    output_format = chosen_format(args, [name for name in ANALYSES["comparison"].formats if name != "junit"], "comparisons")
    conditions = [parse(text) for text in args.fail_if]
    _check_outputs(args)
    states = _states(args.reports)
    result, failed = _compared(args, states)
    result = evaluate(result, conditions)
    width = args.width or max(shutil.get_terminal_size((120, 24)).columns, MINIMUM_WIDTH)
    data = render(result, output_format, table=args.table, title=args.title, width=width)
    write_output(args.output or STANDARD_OUTPUT, data, args.force)
    if args.junit:
        write_output(args.junit, render(result, "junit", strict=args.strict), args.force)
    for path in (args.output, args.junit):
        if path and path != STANDARD_OUTPUT:
            say(f"Wrote {path}")
    disjoint = _disjoint(result)
    return 1 if _tripped(result, args.strict, said=output_format == "text") or failed or disjoint else 0


def _check_outputs(args: argparse.Namespace) -> None:
    if args.junit and not args.fail_if:
        raise UsageError("Cannot use --junit", args.junit, "there is nothing to test", "Give thresholds with --fail-if.")
    if args.junit and args.junit == (args.output or STANDARD_OUTPUT):
        raise UsageError("Cannot use --junit", args.junit, "the comparison goes there", "Name another file.")
    for path in (args.output, args.junit):
        if path:
            check_output(path, args.force)


@dataclass(frozen=True)
class _State:
    """One state of the application: its reports, and what to call it."""

    label: str
    paths: tuple[str, ...]


def _states(arguments: Sequence[str]) -> list[_State]:
    """Each argument is a state; a single one that names several reports stands for as many states."""
    found = [_State(argument, tuple(expand([argument]))) for argument in arguments]
    if len(found) == 1:
        found = [_State(path, (path,)) for path in found[0].paths]
    if len(found) < 2:
        raise UsageError("Cannot compare", found[0].label, "there is nothing to compare it with", "Give two reports or more.")
    return [_State(one.paths[0], one.paths) if len(one.paths) == 1 else one for one in found]


def _compared(args: argparse.Namespace, states: Sequence[_State]) -> tuple[Comparison, bool]:
    """The comparison, and whether some report had to be left out (--keep-going)."""
    # What binds is sought among all levels, and the longest kernels are chosen of those matched.
    select = selection(args)
    ceilings = [open_ceilings(path) for path in args.ceilings]
    paths = [path for state in states for path in state.paths]
    found, failed = for_each_report(argparse.Namespace(**{**vars(args), "reports": paths}), partial(_read, gpu=args.gpu))
    for warning in dict.fromkeys(warning for one in found for warning in one.warnings):
        say(f"ncu-roofline: {warning}")
    measurements = Measurements.joined([one.measurements for one in found])
    launches = replace(select, top=0, precisions=(), levels=())
    if not len(launches.launches(measurements)):
        raise no_launch(args)
    whole = roofline(measurements, ceilings, clock=args.clock, select=launches)
    names = {os.path.realpath(one.path): set(one.measurements.report) for one in found}
    kept = [(state, reports) for state in states if (reports := _reports(state, names))]
    if kept[0][0] is not states[0]:
        raise RooflineError("Cannot compare", states[0].label, "the baseline could not be read", "See the messages above.")
    if len(kept) < 2:
        reason = "nothing else could be read to compare with it"
        raise RooflineError("Cannot compare", states[0].label, reason, "See the messages above.")
    settings = Settings(
        tolerance=args.tolerance,
        times=args.times,
        in_order=args.match == "order",
        against=args.against,
        top=args.top,
        precisions=select.precisions,
        levels=select.levels,
        roof_spreads=_roof_spreads(whole, ceilings),
    )
    labels = [state.label for state, _ in kept]
    return compare(*(_part(whole, reports) for _, reports in kept), settings=settings, labels=labels), failed


def _roof_spreads(whole: Roofline, ceilings: Sequence[Ceilings]) -> dict[str, float]:
    """Relative spread of the measured roofs by what they can bind as: the largest where several files have one."""
    result: dict[str, float] = {}
    for binds in dict.fromkeys(whole.point_columns["binds"]):
        found = [one.bandwidth(binds) or one.compute(binds) for one in ceilings]
        spreads = [ceiling.spread for ceiling in found if ceiling and math.isfinite(ceiling.spread)]
        if spreads:
            result[binds] = max(spreads)
    return result


def _read(path: str, name: str, gpu: tuple[int, int] | None) -> _Read:
    with closing_input(path) as report:
        if isinstance(report, PointTable):
            return _Read(name, measurements_of(report, label=name), report.warnings)
        known, warnings = on_gpu(report, gpu)
        check_kernels(known)
        return _Read(name, measurements_of(known, label=name), warnings)


def _reports(state: _State, names: Mapping[str, set[str]]) -> set[str]:
    """What the frames call the reports of a state; none if they could not be read."""
    return {name for path in state.paths for name in names.get(os.path.realpath(path), ())}


def _part(whole: Roofline, reports: set[str]) -> Roofline:
    """The rows of some reports."""
    kernels = [report in reports for report in whole.kernel_columns["report"]]
    points = [report in reports for report in whole.point_columns["report"]]
    return Roofline(
        {name: values[points] for name, values in whole.point_columns.items()},
        whole.roof_columns,
        {name: values[kernels] for name, values in whole.kernel_columns.items()},
        traffic={name: values[kernels] for name, values in whole.traffic.items()},
        work={name: values[kernels] for name, values in whole.work.items()},
    )


def _disjoint(result: Comparison) -> bool:
    """Whether some pair of reports has no kernel in common: told, and an error, for no threshold can trip then."""
    summary = result.summary_columns
    nothing = False
    for report, baseline, matched in zip(summary["report"], summary["baseline"], summary["matched"], strict=True):
        if not matched:
            nothing = True
            reason = f"it has nothing in common with {baseline}: no kernel of one is in the other"
            advice = "Compare reports of one application, or choose other kernels."
            say(f"ncu-roofline: {RooflineError('Cannot compare', report, reason, advice)}")
    return nothing


def _tripped(result: Comparison, strict: bool, said: bool) -> bool:
    """Whether thresholds fail the command; what the output does not say in words is told here."""
    from ncu_roofline.analyses.compare.text import threshold_lines

    bad = {TRIPPED, NOT_EVALUATED} if strict else {TRIPPED}
    if not said:
        for line in threshold_lines(result):
            say(f"ncu-roofline: {line}")
    return any(one in bad for one in result.threshold_columns["result"])
