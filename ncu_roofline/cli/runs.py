"""What `show` and `render` do with traces: the operators of a run instead of the kernels of reports."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.base.files import REPORT_SUFFIXES
from ncu_roofline.cli.outputs import progress, tell
from ncu_roofline.cli.reading import expand, none_read, wanted

if TYPE_CHECKING:
    from ncu_roofline.analyses.run.frames import Run
    from ncu_roofline.formats.traces import Trace
    from ncu_roofline.model import Roofline


# Options of `show` and `render` that traces have no use for.
_OF_REPORTS = (
    *("kernel", "launch", "nvtx", "precision", "level", "gpu", "by", "source", "view", "clock", "launch_latency"),
    *("trajectory", "label", "dask"),
)


def add_traces(parser: ArgumentParser) -> None:
    """Options that only traces have a use for."""
    group = parser.add_argument_group(
        "traces (PyTorch profiler, Nsight Systems)", "instead of reports: .json, .json.gz, .sqlite, .csv"
    )
    about = "split operators further: by annotations or NVTX ranges around them, modules of torch.nn, their first "
    about += "kernel, or its stream"
    by = ("operator", "annotation", "module", "kernel", "stream")
    group.add_argument("--operators-by", choices=by, default="operator", help=about)
    about = "formulas of more operators (TOML, see `guide run`); repeatable"
    group.add_argument("--operators", metavar="FILE", action="append", default=[], help=about)
    about = "with reports: trace of a run of the same program; kernels then have the time they take in it, beside what "
    about += "its operators need (repeatable)"
    group.add_argument("--run", dest="of_run", metavar="TRACE", action="append", default=[], help=about)
    about = "the GPU, as `list ceilings` and `bench theory` name it, where the trace does not say it"
    group.add_argument("--board", metavar="NAME", default="", help=about)


def traces_among(paths: Sequence[str]) -> list[str]:
    """Those of some files that are traces with times; a pipe, which can be read once, is none."""
    if all(path.endswith(REPORT_SUFFIXES) for path in paths):
        return []
    from ncu_roofline.formats.traces import has_counters, is_trace

    return [path for path in paths if os.path.isfile(path) and is_trace(path) and not has_counters(path)]


def run_of_args(
    args: Namespace, given: Sequence[str] = (), passed: Sequence[str] = (), *, full_paths: bool = False
) -> Run | None:
    """The run that the traces on a command line, or those ``given`` there, are of; None where they are reports.

    ``passed``: options of reports that are for something else here.  Raises RooflineError."""
    paths = expand(given or args.reports)
    traces = traces_among(paths)
    if not traces:
        return None
    if getattr(args, "of_run", None) and given is not args.of_run:
        raise UsageError("Cannot use --run", args.of_run[0], f"{traces[0]} is a trace itself", "Give a report before --run.")
    others = [path for path in paths if path not in traces]
    if others and not args.keep_going:
        raise UsageError("Cannot mix", others[0], "it is no trace with times, and the others are", "Give traces, or reports.")
    for name in _OF_REPORTS:
        if name not in passed and getattr(args, name, None) not in (None, "", (), 0, False, "profiled", "roofline", "auto"):
            option = f"--{name.replace('_', '-')}"
            raise UsageError("Cannot use", option, "it chooses among what a report of ncu has", "Leave it out for a trace.")
    from ncu_roofline.analyses.run.frames import run_of
    from ncu_roofline.chips.spec import gpus, named
    from ncu_roofline.formats.traces import read_trace

    boards = named(args.board) if args.board else ()
    if args.board and len(boards) != 1:
        reason = "several GPUs are called so" if boards else "it is in no table"
        known = ", ".join(gpu.id for gpu in boards or gpus())
        raise UsageError("Cannot use --board", args.board, reason, f"There are: {known}.")
    board = boards[0] if boards else None
    read: list[Trace] = []
    left_out = bool(others)
    for path in others:
        tell(RooflineError("Cannot read trace", path, "it is none", "Give traces, or reports."))
    for path in progress(traces, "reading traces", len(traces)):
        try:
            read.append(read_trace(path))
        except RooflineError as error:  # noqa: PERF203 - few
            if not args.keep_going:
                raise
            left_out = True
            tell(error)
    if not read:
        raise none_read(given or args.reports)
    found = [(gpu.name, gpu.compute_capability) for trace in read for gpu in trace.gpus.values()]
    found = found or ([(board.names[0], board.compute_capability)] if board else [])
    ceilings = wanted(args.ceilings).of(found)
    run = run_of(read, ceilings, by=args.operators_by, operators=args.operators, board=board, full_paths=full_paths)
    return replace(run, left_out=left_out)


def run_beside(args: Namespace, full_paths: bool) -> Run:
    """The run that --run names.  Raises RooflineError, also for what is no trace."""
    run = run_of_args(args, args.of_run, _OF_REPORTS, full_paths=full_paths)
    if run is None:
        raise UsageError(
            "Cannot use --run", args.of_run[0], "it is no trace of a run", "See `ncu-roofline guide run` for those that are."
        )
    return run


def run_state(args: Namespace, paths: Sequence[str]) -> tuple[Roofline, dict[str, float]]:
    """A state of an application for `compare`, from its traces; wall time and busy.  Raises RooflineError."""
    from ncu_roofline.analyses.run.states import state_of, whole_of
    from ncu_roofline.model import Selection

    run = run_of_args(args, paths, ("kernel",))
    assert run is not None
    state = state_of(run, Selection(kernel=args.kernel))
    if not len(state.kernel_columns["kernel"]):
        raise RooflineError("Cannot use", " ".join(paths), f"no operator passes --kernel {args.kernel}", "Loosen the filter.")
    return state, whole_of(run)
