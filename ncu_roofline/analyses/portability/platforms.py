"""Reports, other tools' files and plain tables of several platforms, each with its own ceilings, to runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike

import numpy as np

from ncu_roofline.analyses.portability.runs import PlatformRun, runs_of_roofline, runs_of_table
from ncu_roofline.base.errors import RooflineError, unexpected
from ncu_roofline.base.texts import expression, first_found
from ncu_roofline.chips import load_spec
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.inputs import open_ceilings
from ncu_roofline.formats.inputs.opening import recognised
from ncu_roofline.formats.inputs.plain_table import FORMAT as PLAIN
from ncu_roofline.formats.inputs.plain_table import PlainRow, PlainTable, read_rows
from ncu_roofline.model import Measurements, Selection, as_trajectory, closing_input, measurements_of, roofline
from ncu_roofline.model.plausible import left_out

Find = Callable[[str, tuple[int, int] | None], Ceilings | None]
_WHAT = "Cannot compare"


@dataclass(frozen=True)
class Platform:
    """A file with runs; ``platform`` is what its machine is called, "" for what the file says."""

    path: str
    platform: str = ""


@dataclass(frozen=True)
class Reading:
    """How files become runs: ``by`` application or kernel; ``label`` as of `as_trajectory` names the variants of reports."""

    precision: str = ""
    by: str = "application"
    label: str = ""
    clock: str = "profiled"
    application: str = ""
    select: Selection = field(default_factory=Selection)


def read_runs(
    inputs: Sequence[Platform | str | PathLike[str]],
    ceilings: Mapping[str, Ceilings | str | PathLike[str]] | Sequence[Ceilings | str | PathLike[str]] = (),
    reading: Reading | None = None,
    find: Find | None = None,
    leave_out: Callable[[RooflineError], None] | None = None,
) -> tuple[list[PlatformRun], list[str]]:
    """The runs of all inputs, and sentences on what was left out.

    ``ceilings`` maps platforms to the file measured on each; a plain list is matched by the GPU that each file names.
    ``find`` is asked for the ceilings of GPUs (name, and compute capability where known) that none of them is of.
    ``leave_out`` is given the error of each input that can't be read, of whatever type, and the others are done; then ceilings
    may fit no platform.  Raises RooflineError for files that can't be read without it, and for ceilings that fit no platform,
    or that could be of any.
    """
    how = reading or Reading()
    sources = [one if isinstance(one, Platform) else Platform(os.fspath(one)) for one in inputs]
    machines = _Machines(ceilings, find)
    runs: list[PlatformRun] = []
    warnings: list[str] = []
    complete = True
    for source in sources:
        try:
            more, said = _read(source, machines, how)
        except Exception as error:
            if leave_out is None:
                raise
            leave_out(error if isinstance(error, RooflineError) else unexpected("Cannot read", source.path, error))
            complete = False
            continue
        runs += more
        warnings += said
    machines.check(runs, complete)
    if how.application:
        runs = [run if run.application else replace(run, application=how.application) for run in runs]
    return runs, list(dict.fromkeys(warnings))


def _read(source: Platform, machines: _Machines, how: Reading) -> tuple[list[PlatformRun], list[str]]:
    found = recognised(source.path)
    if found is not None and found.id == PLAIN:
        table = _called(read_rows(source.path), source.platform)
        return runs_of_table(table, machines.of_row, how.precision, how.by), list(table.warnings)
    with closing_input(source.path) as opened:
        measurements = how.select.launches(measurements_of(opened, label=source.path))
        warnings = list(opened.warnings)
    implausible = left_out(measurements)
    if not len(measurements):
        raise RooflineError(_WHAT, source.path, "it holds no launch, or none that passes the filters", "Loosen the filters.")
    runs = [run for part in _parts(measurements, source.path, how) for run in _of_part(part, source, machines, how)]
    if not runs:
        reason = f"no launch has work{f' in {how.precision}' if how.precision else ''}, traffic and time"
        reason += f" ({implausible[0]})" if implausible else ""
        raise RooflineError(_WHAT, source.path, reason, "Ask `ncu-roofline explain` what it lacks.")
    return runs, [*warnings, *implausible, *filter(None, (run.left_out for run in runs))]


def _called(table: PlainTable, platform: str) -> PlainTable:
    """The table with its platform renamed.  Raises RooflineError where it has several."""
    known = dict.fromkeys(row.platform for row in table.rows)
    if not platform:
        return table
    if len(known) > 1:
        reason = f"it has {len(known)} platforms of its own, and can't be called {platform}"
        raise RooflineError(_WHAT, table.path, reason, "Give the file without a platform before it.")
    return replace(table, rows=tuple(replace(row, platform=platform) for row in table.rows))


def _parts(measurements: Measurements, path: str, how: Reading) -> list[Measurements]:
    """The variants of a file."""
    if how.label.partition(":")[0] == "nvtx":
        measurements = as_trajectory(measurements, how.label)
    elif how.label and not any(measurements.label):
        text = first_found(expression(how.label), path)
        if not text:
            reason = f"the pattern {how.label!r} finds no variant in its path"
            raise RooflineError(_WHAT, path, reason, "Change --label, or leave the file out.")
        measurements = replace(measurements, label=np.full(len(measurements), text, dtype=object))
    labels = dict.fromkeys(measurements.label)
    parts = [measurements.take(np.flatnonzero(measurements.label == label)) for label in labels]
    for part in parts:
        if how.by == "application" and len(part) > 1 and part.rates.any():
            reason = f"it has {len(part)} kernels with rates and no times, which can't be added up"
            raise RooflineError(_WHAT, path, reason, "Use --by kernel.")
    return parts


def _of_part(part: Measurements, source: Platform, machines: _Machines, how: Reading) -> list[PlatformRun]:
    asked = Selection(precisions=(how.precision,)) if how.precision in load_spec().on_request else None
    result = roofline(part, machines.of_measurements(part, source.platform), clock=how.clock, by=how.by, select=asked)
    name = source.platform or ("" if any(part.device) else os.path.splitext(os.path.basename(source.path))[0])
    runs = runs_of_roofline(result, how.precision, how.by)
    return [replace(run, platform=name or run.platform) for run in runs]


class _Machines:
    """The ceilings of each platform, and which of them found one."""

    def __init__(
        self,
        ceilings: Mapping[str, Ceilings | str | PathLike[str]] | Sequence[Ceilings | str | PathLike[str]],
        find: Find | None,
    ) -> None:
        pairs = list(ceilings.items()) if isinstance(ceilings, Mapping) else [("", ceiling) for ceiling in ceilings]
        opened = [(name, one if isinstance(one, Ceilings) else open_ceilings(one)) for name, one in pairs]
        self._named = {name.lower(): one for name, one in opened if name}
        self._names = [name for name, _ in opened if name]
        self._others = [one for name, one in opened if not name]
        self._used: set[int] = set()
        self._find: Find = find or (lambda _device, _capability: None)

    def of_measurements(self, m: Measurements, platform: str) -> list[Ceilings]:
        """Those for the launches of one file; what is named for a platform is taken to be measured on it."""
        found = []
        for device, capability in dict.fromkeys(zip(m.device, m.capability, strict=True)):
            named = self._named.get((platform or str(device)).lower())
            if named:
                self._used.add(id(named))
                found.append(replace(named, device=str(device), compute_capability=capability))
            fitting = [other for other in self._others if other.applies_to(str(device), capability)]
            self._used.update(id(one) for one in fitting)
            found += fitting
            if not named and not fitting and (more := self._find(str(device), capability)):
                found.append(more)
        return found

    def of_row(self, row: PlainRow) -> Ceilings | None:
        """Those for a row of a plain table: named for its platform or measured on its device."""
        named = self._named.get(row.platform.lower())
        fitting = [other for other in self._others if other.applies_to(row.device, other.compute_capability)]
        found = named or next(iter(fitting), None)
        self._used.update([id(found)] if found else [])
        return found or self._find(row.device, None)

    def check(self, runs: Sequence[PlatformRun], complete: bool) -> None:
        """Raise RooflineError for ceilings of nobody knows which platform, and where runs are ``complete`` of none of them."""
        platforms = list(dict.fromkeys(run.platform for run in runs))
        for one in self._others:
            if not one.device and len(platforms) > 1:
                reason = f"they don't say on which of {len(platforms)} platforms they were measured"
                raise RooflineError("Cannot use ceilings", one.path, reason, f"Give them as --ceilings '{platforms[0]}=FILE'.")
        if not complete:
            return
        for name in self._names:
            if id(self._named[name.lower()]) not in self._used:
                reason = f"there is no platform {name} (there are {', '.join(platforms[:6])})"
                raise RooflineError(
                    "Cannot use ceilings", self._named[name.lower()].path, reason, "Correct the name before the =."
                )
        for one in self._others:
            if id(one) not in self._used:
                reason = f"they were measured on {one.device or 'an unnamed machine'}, which is none of the platforms"
                raise RooflineError("Cannot use ceilings", one.path, reason, "Give them as --ceilings PLATFORM=FILE.")
