"""`ncu-roofline compare`: what changed between reports, or between traces of runs."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ncu_roofline.analyses import ANALYSES
from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.base.files import ReportNames
from ncu_roofline.cli import reading
from ncu_roofline.cli.options import add_filters, add_looks, add_output, add_reports, add_roofs, ratio
from ncu_roofline.cli.outputs import targets, tell, warn, write_results
from ncu_roofline.cli.runs import add_traces, run_state, traces_among

if TYPE_CHECKING:
    from ncu_roofline.analyses.compare.frames import Comparison, Settings
    from ncu_roofline.formats.ceilings import Ceilings
    from ncu_roofline.model import Measurements, Roofline, Selection

_EPILOG = """\
REPORT: each is one state of the application, the first the baseline; traces of a run are compared by operator.
A folder or quoted pattern stands for all its reports together; if it is the only argument, each of its reports is a state.

`ncu-roofline guide compare` says how kernels are matched, what is noise, what is too small to judge, and how an EXPRESSION is
written, as in --fail-if 'time > 1.05 * baseline and share > 5 %'.

Exit code: 0; 1 if a threshold trips (or with --strict can't be evaluated), a report can't be read, or reports have no kernel in
common; 2 for wrong options.
"""


def add_compare(parser: ArgumentParser) -> None:
    """Which states of an application, how they are compared, and what fails the command."""
    parser.epilog = _EPILOG
    add_reports(parser)
    how = parser.add_argument_group("comparison")
    about = "of three reports or more, what each is compared with (default: %(default)s)"
    how.add_argument("--against", choices=("baseline", "previous", "both"), default="both", help=about)
    about = "launches of one kernel and configuration: all with all, or the n-th with the n-th (default: %(default)s)"
    how.add_argument("--match", choices=("aggregate", "order"), default="aggregate", help=about)
    about = "times as measured, or at the baseline's SM clock: scaled where compute, L1, shared memory or L2 bind, not where "
    about += "DRAM or system memory do; auto: normalised where clocks differ by more than 1 %% (default: %(default)s)"
    how.add_argument("--times", choices=("auto", "raw", "normalised"), default="auto", help=about)
    about = "changes of time up to this are none (default: 2%%)"
    how.add_argument("--tolerance", metavar="RATIO", type=ratio, default=0.02, help=about)
    how.add_argument("--small", action="store_true", help="judge launches under 20 us and kernels under 1 %% of the time, too")
    thresholds = parser.add_argument_group("thresholds")
    about = "exit code 1 if it is true of a kernel against the baseline; may be repeated"
    thresholds.add_argument("--fail-if", metavar="EXPRESSION", action="append", default=[], help=about)
    thresholds.add_argument("--strict", action="store_true", help="also if a number it needs is missing")
    add_filters(parser)
    add_roofs(parser)
    add_traces(parser)
    files = ".html, .png, .svg, .pdf, .md (fit for a comment), .csv, .json, .parquet or .txt"
    add_looks(add_output(parser, f"file to write: {files}; - is standard output", analysis="comparison"))


def run_compare(args: Namespace) -> int:
    """Print or write the comparison; exit code 1 if a threshold tripped, nothing was in common, or a report was left out."""
    from ncu_roofline.analyses.compare.text import threshold_lines
    from ncu_roofline.analyses.compare.thresholds import evaluate, parse

    conditions = [parse(text) for text in args.fail_if]
    outputs = targets(args, ANALYSES["comparison"].formats, lambda: reading.named_files(args))
    result, failed = _compared(args)
    result = evaluate(result, conditions) if conditions else result
    write_results(result, outputs, args)
    summary = result.summary_columns
    for report, baseline, matched in zip(summary["report"], summary["baseline"], summary["matched"], strict=True):
        if not matched:  # told, and an error, for no threshold can trip then
            kernel = result.nouns[0]
            reason = f"it has nothing in common with {baseline}: no {kernel} of one is in the other"
            machines = "" if result.of_run else " Machines whose kernels have other names: `ncu-roofline portability`."
            next_step = (
                f"Compare {'traces' if result.of_run else 'reports'} of one application, or choose other {kernel}s.{machines}"
            )
            tell(RooflineError("Cannot compare", report, reason, next_step))
    if "text" not in outputs.values():  # which has them in words
        warn(threshold_lines(result))
    bad = ("tripped", "not evaluated") if args.strict else ("tripped",)
    tripped = any(outcome in bad for outcome in result.threshold_columns["result"])
    return 1 if tripped or failed or not all(summary["matched"]) else 0


def _compared(args: Namespace) -> tuple[Comparison, bool]:
    """The comparison, and whether some report had to be left out (--keep-going)."""
    from ncu_roofline.analyses.compare.frames import compare
    from ncu_roofline.analyses.compare.runs import of_runs

    states = [(argument, reading.expand([argument])) for argument in args.reports]
    if len(states) == 1:  # a single argument stands for as many as it names
        states = [(path, [path]) for path in states[0][1]]
    if len(states) < 2:
        raise UsageError("Cannot compare", states[0][0], "there is nothing to compare it with", "Give two reports or more.")
    read = sides_of(args, states)
    if len(read.sides) < 2:
        reason = "nothing else could be read to compare with it"
        raise RooflineError("Cannot compare", states[0][0], reason, "See the messages above.")
    compared = compare(*read.sides, settings=read.settings, labels=read.labels)
    return of_runs(compared, read.wholes) if read.wholes else compared, read.failed


class Sides(NamedTuple):
    """States of an application as `compare` takes them, of runs with wall time and busy; and whether a report was left out."""

    sides: Sequence[Roofline]
    labels: Sequence[str]
    settings: Settings
    wholes: Sequence[Mapping[str, float]]
    failed: bool


def sides_of(args: Namespace, states: Sequence[tuple[str, list[str]]]) -> Sides:
    """Traces or reports of a command line, each state what it is called and its files.  Raises RooflineError."""
    from ncu_roofline.analyses.compare.frames import Settings, roof_spreads

    select = reading.checked_selection(args)
    paths = [path for _, some in states for path in some]
    traces, wholes, failed = traces_among(paths), list[Mapping[str, float]](), False
    if not traces:
        sides, labels, ceilings, failed = _of_reports(args, states, select)
    elif other := [path for path in paths if path not in traces]:
        reason = f"it is no trace, and {traces[0]} is one: operators are not compared with kernels under ncu"
        reason = reason if os.path.exists(other[0]) else "there is no such file"
        raise RooflineError("Cannot compare", other[0], reason, "Give traces, or reports.")
    elif getattr(args, "match", "") == "order":
        raise UsageError(
            "Cannot use", "--match order", "calls of operators are compared all with all", "Leave it out for traces."
        )
    else:
        sides, wholes = map(list, zip(*(run_state(args, some) for _, some in states), strict=True))
        labels, ceilings = [some[0] if len(some) == 1 else label for label, some in states], []
    settings = Settings(
        **{name: getattr(args, name) for name in ("tolerance", "times", "against", "small") if hasattr(args, name)},
        **{name: getattr(select, name) for name in ("top", "precisions", "levels")},
        in_order=getattr(args, "match", "") == "order",
        roof_spreads=roof_spreads(sides, ceilings),
    )
    return Sides(sides, list(map(ReportNames.apart(labels), labels)), settings, wholes, failed)


def _of_reports(
    args: Namespace, states: Sequence[tuple[str, list[str]]], select: Selection
) -> tuple[list[Roofline], list[str], list[Ceilings], bool]:
    from ncu_roofline.model import Measurements, roofline

    named = reading.wanted(args.ceilings)
    reports = Namespace(**{**vars(args), "reports": [path for _, paths in states for path in paths]})
    read, failed = reading.for_each_report(reports, partial(_read, gpu=args.gpu))
    m = Measurements.joined([one for _, one in read])
    if not len(select.launches(m)):
        raise reading.no_launch(args)
    ceilings = named.of(reading.gpus(m))
    by_file = {os.path.realpath(path): one for path, one in read}
    # What binds is sought among all levels, and the longest kernels are chosen of those matched.
    launches = replace(select, top=0, precisions=(), levels=())
    labels: list[str] = []
    sides: list[Roofline] = []
    for label, paths in states:
        own = [by_file[file] for file in map(os.path.realpath, paths) if file in by_file]
        if own:  # a Roofline with roofs of its own: clocks differ
            mine = Measurements.joined(own)
            fitting = [one for one in ceilings if any(one.applies_to(*gpu) for gpu in reading.gpus(mine))]
            sides.append(roofline(mine, fitting, clock=args.clock, select=launches))
            labels.append(paths[0] if len(paths) == 1 else label)
        elif not sides:
            raise RooflineError("Cannot compare", label, "the baseline could not be read", "See the messages above.")
    return sides, labels, ceilings, failed


def _read(path: str, name: str, gpu: tuple[int, int] | None) -> tuple[tuple[str, Measurements], tuple[str, ...]]:
    from ncu_roofline.model import measurements_of
    from ncu_roofline.model.plausible import left_out

    with reading.opened(path, gpu) as (report, warnings):
        measurements = measurements_of(report, label=name)
        return (name, measurements), (*warnings, *left_out(measurements))
