"""The reports of a command line: which files they are, which of their launches are meant, and work on each of them."""

from __future__ import annotations

import glob
import os
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ncu_roofline.analyses import ANALYSES
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import REPORT_SUFFIXES, ReportNames, natural_order
from ncu_roofline.base.texts import by_likeness, clean, listed, shorten
from ncu_roofline.cli.ceilings import ceiling_files
from ncu_roofline.cli.executors import Work, guarded, outcomes_here
from ncu_roofline.cli.outputs import progress, tell
from ncu_roofline.formats.inputs.tables import MetricTable, PointTable, names_gpu, with_gpu
from ncu_roofline.formats.report import Report
from ncu_roofline.formats.report.diagnose import check_content
from ncu_roofline.model import Selection, closing_input, measurements_of

T = TypeVar("T")
_ASKED = 8  # reports whose kernels are named where a filter leaves none
_NAME = 60  # characters of such a name
_COMPARED = 5_000  # such names, which takes less than a second


def expand(arguments: Sequence[str]) -> list[str]:
    """Report paths in a stable order (inside folders and patterns nw2 before nw10), each file once, however it was named.

    A folder stands for all reports below it; a pattern for what it matches (shells on Windows leave that to programs).
    Raises RooflineError for an argument that names nothing.
    """
    found: dict[str, str] = {}
    for argument in arguments:
        for path in _expand_one(argument):
            found.setdefault(os.path.realpath(path), path)
    return list(found.values())


def _expand_one(argument: str) -> list[str]:
    if not argument:  # an unset variable of a script; as a path it would be the current folder
        raise RooflineError("Cannot read", "''", "the name is empty", "Give the path of a report.")
    if os.path.isdir(argument):
        inside = _reports_below(argument)
        if not inside:
            raise RooflineError(
                "Cannot read",
                argument,
                "the folder holds no report",
                f"Give a folder with {' or '.join(REPORT_SUFFIXES)} files.",
            )
        return inside
    if not os.path.exists(argument) and glob.has_magic(argument):
        matches = sorted(glob.glob(argument, recursive=True), key=natural_order)
        found = [one for match in matches for one in (_reports_below(match) if os.path.isdir(match) else [match])]
        if not found:
            raise RooflineError("Cannot read", argument, "no file matches the pattern", "Check the pattern.")
        return found
    return [argument]


def _reports_below(folder: str) -> list[str]:
    files = ((where, name) for where, _, found in os.walk(folder) for name in found)
    names = ((where, name) for where, name in files if name.lower().endswith(REPORT_SUFFIXES))
    paths = (os.path.join(where, name) for where, name in names)
    return sorted(map(os.path.normpath, paths), key=natural_order)  # what is no file there gets its sentence


def named_files(args: Namespace) -> list[str]:
    """All files that a command line names to be read.  Raises RooflineError as `expand`."""
    return [*expand(args.reports), *([args.dask] if args.dask else []), *ceiling_files(args.ceilings)]


def launches(args: Namespace) -> Selection:
    """The launches that a command line chooses."""
    return Selection(kernel=args.kernel, nvtx=args.nvtx, launch=args.launch, top=args.top)


def selection(args: Namespace, by: str = "launch") -> Selection:
    """The filters of a command line, of whose names nobody knows yet whether there is such a thing."""
    top_by = "kernel" if by == "kernel" else "launch"
    return replace(launches(args), top_by=top_by, precisions=args.precision, levels=args.level)


def checked_selection(args: Namespace, by: str = "launch", view: str = "roofline") -> Selection:
    """The same; precisions and levels that the view does not know are refused by name."""
    select = selection(args, by)
    ANALYSES[view].viewer.check_names(select)
    return select


@contextmanager
def opened(path: str, gpu: tuple[int, int] | None) -> Iterator[tuple[Report | MetricTable | PointTable, tuple[str, ...]]]:
    """What a file holds, launches that name no GPU as on ``gpu``, and sentences for the user; what is empty is an error."""
    with closing_input(path) as found:
        if isinstance(found, PointTable):
            yield found, found.warnings
            return
        report, warnings = _on_gpu(found, gpu)
        check_kernels(report)
        yield report, warnings


def _on_gpu(report: Report | MetricTable, gpu: tuple[int, int] | None) -> tuple[Report | MetricTable, tuple[str, ...]]:
    """A table of metrics whose launches name no GPU as one on ``gpu`` (--gpu), and sentences for the user."""
    if isinstance(report, Report):
        return report, report.warnings
    table = with_gpu(report, gpu) if gpu else report
    if names_gpu(table):
        return table, table.warnings
    silent = f"{table.path} does not say on which GPU it was made, so no counter can be chosen; --gpu 7.0 says it (a V100)."
    return table, (*table.warnings, silent)


def check_kernels(report: Report | MetricTable) -> None:
    """Raise RooflineError for a report of which nothing could be drawn or said."""
    check_content("Cannot use", report.path, len(report), len(report.metric_names))


def no_launch(args: Any, filters: Any = None) -> RooflineError:
    """The error where filters leave nothing: those of the command line, or ``filters``."""
    chosen = filters or args
    launch = ",".join(f"{first}-{last}" if first != last else str(first) for first, last in chosen.launch)
    given = {"kernel": chosen.kernel, "launch": launch, "nvtx": chosen.nvtx}
    reason = f"no launch passes the filters ({', '.join(f'--{name} {value}' for name, value in given.items() if value)})"
    alone = chosen.kernel and not (chosen.launch or chosen.nvtx)
    next_step = (_other_kernels(args.reports, chosen.kernel) if alone else "") or "Loosen the filters."
    return RooflineError("Cannot use", " ".join(args.reports), reason, next_step)


def _other_kernels(reports: Sequence[str], kernel: str) -> str:
    """The names of kernels that are most like a pattern that matched none, "" where no report can be read here."""
    read = [guarded(_functions, path, path) for path in expand(reports)[:_ASKED]]
    names = list(dict.fromkeys(name for found in read if not isinstance(found, RooflineError) for name in found))
    alike = by_likeness(kernel[:_NAME], names[:_COMPARED])
    if alike:
        return f"Loosen the filters; did you mean {listed(alike, 3)}?"
    said = "the only kernel is" if len(names) == 1 else "the kernels are"
    return f"Loosen the filters; {said} {listed(names)}." if names else ""


def _functions(path: str, _name: str) -> list[str]:
    with opened(path, None) as (report, _):
        found = measurements_of(report)
        return [shorten(clean(function or name), _NAME) for function, name in zip(found.function, found.name, strict=True)]


@dataclass(frozen=True)
class _Calling:
    """Work that calls each report as results do."""

    work: Work[Any]
    names: ReportNames

    def __call__(self, path: str, name: str) -> Any:
        return self.work(path, self.names(name))


def for_each_report(reports: Any, work: Work[T], *, as_typed: bool = False) -> tuple[list[T], bool]:
    """``work`` on every report of the command line, in its order, and whether some had to be left out (--keep-going).

    ``work`` takes the path to open and the name to call the report by: that of ReportNames, or the path ``as_typed`` for
    work that looks for something in it.  It may run in another process, or with --dask on another machine, so it and its
    result must be picklable.
    """
    paths = expand(reports.reports)
    work = work if as_typed else _Calling(work, ReportNames.apart(paths))
    results: list[T] = []
    failed = False
    if reports.dask:
        from ncu_roofline.cli.cluster import outcomes_on

        found = outcomes_on(reports.dask, work, paths)
    else:
        found = outcomes_here(work, paths)
    with closing(found) as outcomes:
        for outcome in progress(outcomes, "reading reports", len(paths)):
            if not isinstance(outcome, RooflineError):
                results.append(outcome)
            elif reports.keep_going:
                tell(outcome)
                failed = True
            else:
                raise outcome
    if not results:
        named = " ".join(reports.reports)
        raise RooflineError("Cannot read", named, "none of the reports could be read", "See the messages above.")
    return results, failed
