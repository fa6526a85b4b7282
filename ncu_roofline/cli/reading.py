"""The reports and ceilings of a command line: which files they are, which of their launches are meant, and work on each."""

from __future__ import annotations

import glob
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ncu_roofline.analyses import ANALYSES
from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.base.files import REPORT_SUFFIXES, matching, natural_order, room, temporary_folder
from ncu_roofline.base.texts import clean, listed, nearest, shorten
from ncu_roofline.cli.executors import Work, guarded, outcomes_here, outcomes_on
from ncu_roofline.cli.outputs import AUTO, STANDARD_INPUT, at_end, call, progress, say, tell, warn
from ncu_roofline.formats.ceilings import MEASURED, Ceilings, read_ceilings, registry
from ncu_roofline.formats.inputs import open_ceilings, open_input, recognised
from ncu_roofline.formats.inputs.tables import MetricTable, PointTable, names_gpu, with_gpu
from ncu_roofline.formats.inputs.text import HEAD_BYTES
from ncu_roofline.formats.report.framing import MAGIC, bounded, check_content, is_compressed

if TYPE_CHECKING:
    from ncu_roofline.formats.report import Report
    from ncu_roofline.model import Measurements, Selection
    from ncu_roofline.plugin.machine.machine import Machine

T = TypeVar("T")
Capability = tuple[int, int]
Gpu = tuple[str, Capability]
STANDARD_INPUT_NAME = "standard input"
"""What outputs and messages call it."""
_TAKEN: list[str] = []  # the file that stands for it, if it is read


def expand(arguments: Sequence[str]) -> list[str]:
    """Report paths in a stable order (inside folders and patterns nw2 before nw10), each file once, however it was named.

    A folder stands for all reports below it; a pattern for what it matches (shells on Windows leave that to programs).
    Raises RooflineError for an argument that names nothing.
    """
    found: dict[str, str] = {}
    for argument in arguments:
        if not argument:  # an unset variable of a script; as a path it would be the current folder
            raise RooflineError("Cannot read", "''", "the name is empty", "Give the path of a report.")
        paths, reason, next_step = [argument], "", ""
        if os.path.isdir(argument):
            paths = _reports_below(argument) or _traces_below(argument)
            reason, next_step = "the folder holds no report", f"Give a folder with {' or '.join(REPORT_SUFFIXES)} files."
        elif not os.path.exists(argument) and glob.has_magic(argument):
            matches = sorted(glob.glob(argument, recursive=True), key=natural_order)
            paths = [one for match in matches for one in (_reports_below(match) if os.path.isdir(match) else [match])]
            reason, next_step = "no file matches the pattern", "Check the pattern."
        if not paths:
            raise RooflineError("Cannot read", argument, reason, next_step)
        for path in paths:
            found.setdefault(os.path.realpath(path), path)
    return list(found.values())


def _reports_below(folder: str) -> list[str]:
    files = ((where, name) for where, _, found in os.walk(folder) for name in found)
    paths = (os.path.join(where, name) for where, name in files if name.lower().endswith(REPORT_SUFFIXES))
    return sorted(map(os.path.normpath, paths), key=natural_order)  # what is no file there gets its sentence


def _traces_below(folder: str) -> list[str]:
    """What could be a trace of a run, by its name; and is one by its content, if anything there is."""
    from ncu_roofline.formats.traces import SUFFIXES, is_trace

    files = [os.path.join(where, name) for where, _, found in os.walk(folder) for name in found]
    paths = [os.path.normpath(path) for path in files if path.lower().endswith(SUFFIXES)]
    return sorted(paths, key=natural_order) if any(map(is_trace, paths)) else []


def given_report(text: str) -> str:
    """A report of the command line; in the place of `-`, also behind PLATFORM=, a file that holds what standard input does."""
    return f"{text[:-1]}{_standard_input()}" if text == STANDARD_INPUT or text.endswith(f"={STANDARD_INPUT}") else text


def _standard_input() -> str:
    """A file that is there until the command ends.  Raises UsageError without anything to read, RooflineError without room."""
    reason, next_step = "", "Write it to a file and name that."
    if _TAKEN:
        reason = "it is named twice and can be read once"
    elif sys.stdin is None:
        reason, next_step = "it is closed", "Leave it open, or name a file."
    elif sys.stdin.isatty():
        reason, next_step = "it is a terminal", "Send a report there: `cat FILE | ncu-roofline show -`."
    if reason:
        raise UsageError("Cannot read", STANDARD_INPUT_NAME, reason, next_step)
    path = at_end.enter_context(temporary_folder()) / STANDARD_INPUT_NAME
    at_end.callback(_TAKEN.clear)
    _TAKEN.append(str(path))
    # Of what nobody reads only the beginning, by which readers refuse it: it may have no end.
    with room(), path.open("wb") as file:
        head = sys.stdin.buffer.read(HEAD_BYTES)
        file.write(head)
        file.flush()
        if head.startswith(MAGIC) or is_compressed(head) or recognised(path):
            file.seek(0)
            file.writelines(bounded(STANDARD_INPUT_NAME, head, sys.stdin.buffer))
    call(str(path), STANDARD_INPUT_NAME)
    return str(path)


def named_files(args: Namespace) -> list[str]:
    """All files that a command line names to be read.  Raises RooflineError as `expand`."""
    others = [*([args.dask] if args.dask else []), *getattr(args, "operators", ())]
    return [*expand(args.reports), *others, *ceiling_files(args.ceilings)]


def launches(args: Namespace) -> Selection:
    """The launches that a command line chooses."""
    from ncu_roofline.model import Selection

    return Selection(kernel=args.kernel, nvtx=args.nvtx, launch=args.launch, top=getattr(args, "top", 0))


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
def opened(path: str, gpu: Capability | None) -> Iterator[tuple[Report | MetricTable | PointTable, tuple[str, ...]]]:
    """What a file holds, launches that name no GPU as on ``gpu``, and sentences for the user; what is empty is an error."""
    from ncu_roofline.model import closing_input

    with closing_input(path) as found:
        warnings = found.warnings
        if isinstance(found, MetricTable):
            found = with_gpu(found, gpu) if gpu else found
            warnings = (*warnings, found.lacks) if found.lacks else warnings
            if not names_gpu(found):
                silent = "does not name its GPU, so no counter can be chosen; --gpu 7.0 names it (a V100)."
                warnings = (*warnings, f"{found.path} {silent}")
        if not isinstance(found, PointTable):
            check_kernels(found)
        yield found, warnings


def check_kernels(report: Report | MetricTable) -> None:
    """Raise RooflineError for a report of which nothing could be drawn or said."""
    check_content("Cannot use", report.path, len(report), len(report.metric_names))


def no_launch(args: Namespace) -> RooflineError:
    """The error where the filters of a command line leave nothing."""
    launch = ",".join(f"{first}-{last}" if first != last else str(first) for first, last in args.launch)
    given = {"kernel": args.kernel, "launch": launch, "nvtx": args.nvtx}
    if not any(given.values()):
        return RooflineError("Cannot use", " ".join(args.reports), "it has no kernels", "Give a file that has one.")
    reason = f"no launch passes the filters ({', '.join(f'--{name} {value}' for name, value in given.items() if value)})"
    next_step = "Loosen the filters."
    if args.kernel and not (args.launch or args.nvtx):  # the names of kernels that are most like the pattern
        read = [guarded(_functions, path, path) for path in expand(args.reports)[:8]]
        names = list(dict.fromkeys(name for found in read if not isinstance(found, RooflineError) for name in found[0]))
        if alike := nearest(args.kernel[:60], names[:5_000]):  # which takes less than a second
            next_step = f"Loosen the filters; did you mean {alike}?"
        elif names:
            next_step = f"Loosen the filters; {'the only kernel is' if len(names) == 1 else 'the kernels are'} {listed(names)}."
    return RooflineError("Cannot use", " ".join(args.reports), reason, next_step)


def _functions(path: str, _typed: str) -> tuple[list[str], tuple[str, ...]]:
    from ncu_roofline.model import measurements_of

    with opened(path, None) as (report, warnings):
        found = measurements_of(report)
        names = [shorten(clean(function or name), 60) for function, name in zip(found.function, found.name, strict=True)]
        return names, warnings


def for_each_report(args: Namespace, work: Work[tuple[T, Sequence[str]]], *, passes: bool = False) -> tuple[list[T], bool]:
    """``work`` on every report of the command line, in its order, and whether some had to be left out (--keep-going).

    ``work`` takes the path to open and the report as it was typed, and gives its result and sentences for the user, which are
    said when all are read.  It may run in another process, or with --dask on another machine, so it and its result must be
    picklable.  With ``passes``, files that are passes of one run are one report.
    """
    paths = expand(args.reports)
    if passes and len(paths) > 1 and not args.dask:
        from ncu_roofline.formats.inputs.passes import of_one_run

        with suppress(RooflineError):  # what can't be read is told below
            merged, why_not = of_one_run(paths, open_input)
            paths = [merged.path] if merged else paths
            warn([why_not] if why_not else [])
    results: list[T] = []
    warnings: list[str] = []
    failed = False
    if args.dask and _TAKEN:
        reason = "standard input is on this machine, not where its workers are"
        raise UsageError("Cannot use --dask", args.dask, reason, "Write it to a file that they see and name that.")
    found = outcomes_on(args.dask, work, paths) if args.dask else outcomes_here(work, paths)
    with closing(found) as outcomes:
        for outcome in progress(outcomes, "reading reports", len(paths)):
            if not isinstance(outcome, RooflineError):
                results.append(outcome[0])
                warnings += outcome[1]
            elif args.keep_going:
                tell(outcome)
                failed = True
            else:
                raise outcome
    if not results:
        raise none_read(args.reports)
    warn(warnings)
    return results, failed


def none_read(reports: Sequence[str]) -> RooflineError:
    """The error where every report was left out."""
    return RooflineError("Cannot read", " ".join(reports), "none of the reports could be read", "See the messages above.")


def gpus(measurements: Measurements) -> list[Gpu]:
    """Name and compute capability of the GPUs of launches."""
    return list(dict.fromkeys(zip(measurements.device, measurements.capability, strict=True)))


class Shelf:
    """The ceilings to choose from: ``files``, and with ``auto`` the best there are for GPUs that no file is of; said once."""

    def __init__(self, machine: Machine | None = None, files: Sequence[Ceilings] = (), *, auto: bool = True) -> None:
        self.files, self.auto, self._machine = tuple(files), auto, machine
        self._told: set[str] = set()

    @cached_property
    def others(self) -> tuple[Ceilings, ...]:
        """First choice first: the user's own, the newest before others, then the package's; published ones behind measured."""
        own = []  # what `install` and `bench run` kept, and what `ncu_roofline.bench.measure` left in the cache
        for path in _own_files(self._machine) if self.auto else ():
            try:
                own.append(read_ceilings(path))
            except RooflineError as error:  # noqa: PERF203 - few
                say(f"ncu-roofline: left out: {error}")
        own.sort(key=lambda one: one.date, reverse=True)
        return tuple(sorted([*own, *registry()], key=lambda one: one.status != MEASURED) if self.auto else own)

    def find(self, device: str, capability: Capability | None = None) -> Ceilings | None:
        """The first choice for a model of GPU, by its name alone where its capability is unknown; None if there is none."""
        fitting = (one for one in self.others if device and one.applies_to(device, capability or one.compute_capability))
        found = next(fitting, None)
        if found is not None:
            own = "" if found in registry() else f"{Path(found.path).parent}: "
            text = f"ceilings of {device}: {own}{found.provenance}"
        else:
            chip = " ({}.{})".format(*capability) if capability else ""
            of = f"{device}{chip}" if device else "a report that names no GPU"
            text = f"no ceilings of {of}: none was measured here and none comes with ncu-roofline, "
            text += "so its roofs are theoretical; `ncu-roofline bench run` measures a GPU"
        warn({text} - self._told)
        self._told.add(text)
        return found

    def of(self, devices: Iterable[Gpu]) -> list[Ceilings]:
        """The ceilings for reports from these GPUs."""
        found = {one.path: one for one in self.files}
        for device, capability in dict.fromkeys(devices) if self.auto else ():
            if not any(one.applies_to(device, capability) for one in self.files):
                chosen = self.find(str(device), capability)
                found.update({chosen.path: chosen} if chosen else {})
        return list(found.values())


def _own_files(machine: Machine | None = None) -> list[Path]:
    from ncu_roofline.bench.build import cache_folder
    from ncu_roofline.plugin.machine.install import folder
    from ncu_roofline.plugin.machine.machine import this_machine

    machine = machine or this_machine()
    places = (folder(machine), cache_folder(machine.environ) / "ceilings")
    return [path for place in places for path in matching(place, "*.json")]


def ceiling_files(given: Sequence[str]) -> list[str]:
    """The files that values of `--ceilings` have a command read, with `auto` all of the user's own."""
    return [*(path for path in given if path != AUTO), *(map(str, _own_files()) if AUTO in given else ())]


def wanted(given: Sequence[str], read: Callable[[str], Ceilings] = open_ceilings) -> Shelf:
    """What the values of `--ceilings` ask for: files of any known format.  Raises RooflineError for one that can't be read."""
    return Shelf(files=[read(path) for path in given if path != AUTO], auto=AUTO in given)
