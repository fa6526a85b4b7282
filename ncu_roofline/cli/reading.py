"""Reports to measurements: several at a time on all cores, with a progress bar on work longer than a second."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from ncu_roofline.cli.inputs import expand
from ncu_roofline.cli.outputs import say
from ncu_roofline.errors import RooflineError
from ncu_roofline.importers import MetricTable, PointTable
from ncu_roofline.model import Measurements, Selection, closing_input, measurements_of
from ncu_roofline.model.explanations import Explanation, explain
from ncu_roofline.report import Report
from ncu_roofline.spec import load_spec

T = TypeVar("T")

# Starting worker processes costs about as much as reading this much; below it one process is faster.
PARALLEL_FROM_BYTES = 40_000_000
# A page carries advice on the launches that matter most; `advise` prints it for all.
ADVISED_LAUNCHES = 20


@dataclass(frozen=True)
class ReadReport:
    """What a worker brings back of one report."""

    measurements: Measurements
    explanation: Explanation | None
    advice: tuple[dict[str, str], ...] = ()
    warnings: tuple[str, ...] = ()


def selection(args: argparse.Namespace) -> Selection:
    """The filters of a command line; unknown precisions and levels are refused by name."""
    spec = load_spec()
    precisions = {"mixed"} | {part for p in spec.precisions for part in _prefixes(p.id)}
    _check_known("--level", args.level, [level.id for level in spec.levels], "levels")
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
    return for_each_report(args, partial(_read_one, charts=args.source == "embedded", advised=advised))


def _read_one(path: str, charts: bool, advised: Selection | None) -> ReadReport:
    with closing_input(path) as report:
        if isinstance(report, PointTable):
            return ReadReport(measurements_of(report, label=path), None, warnings=report.warnings)
        check_kernels(report)
        measurements = measurements_of(report, charts=charts and isinstance(report, Report), label=path)
        if isinstance(report, MetricTable):  # rules and charts read more of a report than its metrics
            return ReadReport(measurements, explain(report, measurements), warnings=report.warnings)
        advice = _advice(report, measurements, advised) if advised else ()
        return ReadReport(measurements, explain(report, measurements), advice)


def _advice(report: Report, measurements: Measurements, select: Selection) -> tuple[dict[str, str], ...]:
    from ncu_roofline import pack
    from ncu_roofline.rules import advice_rows, advise, load_rules

    longest = replace(select, top=min(select.top or ADVISED_LAUNCHES, ADVISED_LAUNCHES), top_by="launch")
    rows = advice_rows(advise(report, load_rules((str(pack.folder("rules")),)), longest.launches(measurements)))
    return tuple(row for row in rows if row["type"] != "ok")


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


def for_each_report(args: argparse.Namespace, work: Callable[[str], T]) -> tuple[list[T], bool]:
    """``work`` on every report of the command line, in its order, and whether some had to be left out (--keep-going).

    ``work`` may run in another process, so it and its result must be picklable.
    """
    from tqdm import tqdm

    paths = expand(args.reports)
    results: list[T] = []
    failed = False
    # On standard error, from one second on, and only where somebody looks.
    progress = tqdm(
        _outcomes(paths, work), "reading reports", len(paths), delay=1.0, leave=False, disable=None, file=sys.stderr
    )
    with progress:
        for outcome in progress:
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


def _outcomes(paths: list[str], work: Callable[[str], T]) -> Iterator[T | RooflineError]:
    workers = min(os.cpu_count() or 1, len(paths))
    if workers < 2 or sum(_size(path) for path in paths) < PARALLEL_FROM_BYTES:
        yield from (_guarded(work, path) for path in paths)
        return
    # Spawned, not forked: the same on every platform, and safe whatever threads the caller has.
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            for future in [pool.submit(_guarded, work, path) for path in paths]:
                yield future.result()
        except BrokenProcessPool as error:
            reason = "a process that read one of them died, perhaps for lack of memory"
            raise RooflineError("Cannot read", " ".join(paths), reason, "Give fewer reports at a time.") from error
        finally:
            pool.shutdown(cancel_futures=True)


def _guarded(work: Callable[[str], T], path: str) -> T | RooflineError:
    try:
        return work(path)
    except RooflineError as error:
        return error


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
