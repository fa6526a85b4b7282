"""Reports to measurements: several at a time where that is faster, with a progress bar on work longer than a second."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from ncu_roofline.analyses.instruction.explained import explain_instructions
from ncu_roofline.cli.executors import Work, executor_for
from ncu_roofline.cli.inputs import expand
from ncu_roofline.cli.instruction_view import check_kinds, counts_instructions
from ncu_roofline.cli.outputs import say
from ncu_roofline.cli.progress import progress
from ncu_roofline.errors import RooflineError
from ncu_roofline.facts import load_spec
from ncu_roofline.inputs import MetricTable, PointTable, joined, names_gpu, with_gpu
from ncu_roofline.model import Measurements, Selection, closing_input, measurements_of
from ncu_roofline.model.explanations import Explanation, explain
from ncu_roofline.report import Report

T = TypeVar("T")

# A page carries advice on the launches that matter most; `advise` prints it for all.
ADVISED_LAUNCHES = 20


@dataclass(frozen=True)
class ReadReport:
    """What a worker brings back of one report."""

    measurements: Measurements
    explanation: Explanation | None
    advice: tuple[dict[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    table: PointTable | None = None


@dataclass(frozen=True)
class _Wanted:
    """What to read of a report: its own charts, its instructions, what our rules say on launches; and the GPU it ran on."""

    charts: bool
    instructions: bool
    advised: Selection | None
    gpu: tuple[int, int] | None


def selection(args: argparse.Namespace) -> Selection:
    """The filters of a command line; unknown precisions and levels are refused by name."""
    spec = load_spec()
    precisions = {"mixed"} | {part for p in spec.precisions for part in _prefixes(p.id)}
    _check_known("--level", args.level, [level.id for level in spec.levels], "levels")
    if counts_instructions(args):
        check_kinds(args.precision)
    else:
        _check_known("--precision", args.precision, sorted(precisions), "precisions")
    return Selection(
        kernel=args.kernel,
        nvtx=args.nvtx,
        launch=args.launch,
        top=args.top,
        top_by="kernel" if getattr(args, "by", "launch") == "kernel" else "launch",
        precisions=args.precision,
        levels=args.level,
    )


def _prefixes(identifier: str) -> list[str]:
    parts = identifier.split(".")
    return [".".join(parts[: n + 1]) for n in range(len(parts))]


def _check_known(option: str, given: tuple[str, ...], known: Sequence[str], what: str) -> None:
    for one in given:
        if one not in known:
            raise RooflineError(
                f"Cannot use {option}", one, f"it is none of the {what} known", f"See `ncu-roofline list {what}`."
            )


def read_reports(args: argparse.Namespace, advised: Selection | None = None) -> tuple[list[ReadReport], bool]:
    """Every report of the command line, and whether some had to be left out (--keep-going).

    With ``advised``, our rules are run on the longest launches it selects.
    """
    wanted = _Wanted(args.source == "embedded", counts_instructions(args), advised, args.gpu)
    reports, failed = for_each_report(args, partial(_read_one, wanted=wanted))
    return _completed(reports), failed


def _completed(reports: list[ReadReport]) -> list[ReadReport]:
    """The reports, those of other tools' files that complete each other as one."""
    own = {id(report.table): report for report in reports if report.table}
    result = []
    for item in joined([report.table or report for report in reports]):
        if isinstance(item, ReadReport):
            result.append(item)
        elif id(item) in own:
            result.append(own[id(item)])
        else:
            result.append(ReadReport(measurements_of(item), None, warnings=item.warnings))
    return result


def _read_one(path: str, name: str, wanted: _Wanted) -> ReadReport:
    with closing_input(path) as opened:
        if isinstance(opened, PointTable):
            return ReadReport(measurements_of(opened, label=name), None, warnings=opened.warnings, table=opened)
        report, warnings = on_gpu(opened, wanted.gpu)
        check_kernels(report)
        charts = wanted.charts and isinstance(report, Report)
        measurements = measurements_of(report, charts=charts, instructions=wanted.instructions, label=name)
        explained = explain_instructions(report, measurements) if wanted.instructions else explain(report, measurements)
        if isinstance(report, MetricTable):  # rules and charts read more of a report than its metrics
            return ReadReport(measurements, explained, warnings=warnings)
        advice = _advice(report, measurements, wanted.advised) if wanted.advised else ()
        return ReadReport(measurements, explained, advice)


def _advice(report: Report, measurements: Measurements, select: Selection) -> tuple[dict[str, str], ...]:
    from ncu_roofline import files as pack
    from ncu_roofline.nvrules import advice_rows, advise, load_rules, worth_telling

    longest = replace(select, top=min(select.top or ADVISED_LAUNCHES, ADVISED_LAUNCHES), top_by="launch")
    found = advise(report, load_rules((str(pack.folder("rules")),)), longest.launches(measurements))
    kept, _ = worth_telling(found, select.launches(measurements))
    return tuple(row for row in advice_rows(kept) if row["type"] != "ok")


def on_gpu(report: Report | MetricTable, gpu: tuple[int, int] | None) -> tuple[Report | MetricTable, tuple[str, ...]]:
    """A table of metrics whose launches name no GPU as one on ``gpu`` (--gpu), and sentences for the user."""
    if isinstance(report, Report):
        return report, ()
    table = with_gpu(report, gpu) if gpu else report
    if names_gpu(table):
        return table, table.warnings
    silent = f"{table.path} does not say on which GPU it was made, so no counter can be chosen; --gpu 7.0 says it (a V100)."
    return table, (*table.warnings, silent)


def check_kernels(report: Report | MetricTable) -> None:
    """Raise RooflineError for a report of which nothing could be drawn or said."""
    if not len(report):
        next_step = "Profile again, and check that ncu's filters let some kernel pass."
        raise RooflineError("Cannot use", report.path, "it holds no profiled kernel", next_step)
    if not report.metric_names:
        next_step = "Profile again with metrics, for instance with `ncu --set full`."
        raise RooflineError("Cannot use", report.path, "its kernels carry no metrics", next_step)


def no_launch(args: argparse.Namespace) -> RooflineError:
    """The error where filters leave nothing."""
    launches = ",".join(f"{first}-{last}" if first != last else str(first) for first, last in args.launch)
    given = {"kernel": args.kernel, "launch": launches, "nvtx": args.nvtx}
    filters = ", ".join(f"--{name} {value}" for name, value in given.items() if value)
    return RooflineError(
        "Cannot use", " ".join(args.reports), f"no launch passes the filters ({filters})", "Loosen the filters."
    )


def for_each_report(args: argparse.Namespace, work: Work[T]) -> tuple[list[T], bool]:
    """``work`` on every report of the command line, in its order, and whether some had to be left out (--keep-going).

    ``work`` takes the path to open and the name to call the report by.  It may run in another process, or with --dask on
    another machine, so it and its result must be picklable.
    """
    paths = expand(args.reports)
    results: list[T] = []
    failed = False
    with closing(executor_for(paths, args.dask).outcomes(work, paths)) as outcomes:
        for outcome in progress(outcomes, "reading reports", len(paths)):
            if not isinstance(outcome, RooflineError):
                results.append(outcome)
            elif args.keep_going:
                say(f"ncu-roofline: {outcome}")
                failed = True
            else:
                raise outcome
    if not results:
        raise RooflineError(
            "Cannot read", " ".join(args.reports), "none of the reports could be read", "See the messages above."
        )
    return results, failed
