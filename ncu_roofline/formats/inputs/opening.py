"""Which importer reads a file: a table of formats, each with a test of the file's beginning; files that complete each other."""

from __future__ import annotations

import importlib
import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.ceilings import Ceilings, read_ceilings
from ncu_roofline.formats.inputs import intel_run, nvprof
from ncu_roofline.formats.inputs.tables import MetricTable, PointTable
from ncu_roofline.formats.inputs.text import head_of
from ncu_roofline.formats.report import Report, Value, read_report

MAJOR = "device__attribute_compute_capability_major"
MINOR = "device__attribute_compute_capability_minor"
Other = TypeVar("Other")
# Tables of tools whose files complete each other, and what joins them.
_JOINED: tuple[tuple[type[Any], Callable[[Any], Any]], ...] = (
    (nvprof.NvprofTable, nvprof.joined),
    (intel_run.IntelTable, intel_run.joined),
)


def names_gpu(table: MetricTable) -> bool:
    """Whether every launch says its compute capability; without it no counter can be chosen."""
    return all(isinstance(column, (int, float)) and column > 0 for column in table.columns([MAJOR])[MAJOR])


def with_gpu(table: MetricTable, capability: tuple[int, int]) -> MetricTable:
    """The same launches, those that name no GPU on one of this compute capability: (7, 0) for a V100."""
    columns = table.columns([MAJOR, MINOR])
    silent = [not isinstance(column, (int, float)) or not column > 0 for column in columns[MAJOR]]
    filled: dict[str, Sequence[Value | None]] = {
        name: [number if lacks else one for one, lacks in zip(columns[name], silent, strict=True)]
        for name, number in zip((MAJOR, MINOR), capability, strict=True)
    }
    return replace(table, values={**table.values, **filled})


def joined(items: Sequence[Other | PointTable]) -> list[Other | PointTable]:
    """The same items, but tables that complete each other as one, at the place of the first of them.

    Items that are no tables, and tables that nothing completes, come back as they are.
    """
    result = list(items)
    for kind, join in _JOINED:
        tables = [item for item in result if isinstance(item, kind)]
        if len(tables) < 2:
            continue
        place = {table.path: number for number, table in reversed(list(enumerate(tables)))}
        first: dict[int, list[Other | PointTable]] = {}
        for table in join(tables):
            first.setdefault(min(place[path] for path in table.paths), []).append(table)
        numbers = itertools.count()
        result = [one for item in result for one in (first.get(next(numbers), []) if isinstance(item, kind) else [item])]
    return result


@dataclass(frozen=True)
class InputFormat:
    """A file format: the module that reads it has ``recognises(head: str) -> bool`` and ``read(path) -> table``.

    ``holds`` says what it gives: metrics, points, ceilings, or points and ceilings.
    """

    id: str
    module: str
    holds: str
    meaning: str


_HERE = __package__
# In this order: the first that recognises a file reads it.
FORMATS: tuple[InputFormat, ...] = (
    InputFormat("ncu-csv", f"{_HERE}.ncu_csv", "metrics", "what ncu --csv prints"),
    InputFormat("ert", f"{_HERE}.ert", "ceilings", "a roofline.json of the Empirical Roofline Toolkit"),
    InputFormat("roofline-data", f"{_HERE}.roofline_data", "points and ceilings", "a data file of plot_roofline.py"),
    InputFormat("nvprof", f"{_HERE}.nvprof", "points", "the output of nvprof --csv"),
    InputFormat("likwid", f"{_HERE}.likwid", "points", "the CSV of likwid-perfctr"),
    InputFormat("advisor", f"{_HERE}.advisor", "points", "a survey of Intel Advisor as CSV"),
    InputFormat("advisor-roofs", f"{_HERE}.advisor_roofs", "ceilings", "the roofs of Intel Advisor as CSV"),
    InputFormat("sde", f"{_HERE}.sde", "points", "an instruction mix of Intel SDE"),
    InputFormat("vtune", f"{_HERE}.vtune", "points", "a report of Intel VTune as CSV"),
    InputFormat("plain-table", f"{_HERE}.plain_table", "points", "a plain table"),
)


def open_input(path: str | os.PathLike[str]) -> Report | MetricTable | PointTable:
    """Open a report, or any other file with launches or kernels in it, told apart by content.

    A `Report` has to be closed.  Raises RooflineError, which names the file, what it is instead, and the next step.
    """
    found = recognised(path)
    if found is None:
        return read_report(path)
    table: MetricTable | PointTable = _module(found).read(path)
    return table


def as_inputs(given: Any, *also: type[Any]) -> list[Any]:
    """One input or several as a list; each is a path, a `Report`, a table, or of a type of ``also``.

    Raises TypeError for what is no input, ValueError for none at all.
    """
    kinds = (Report, MetricTable, PointTable, str, os.PathLike, *also)
    several = isinstance(given, Iterable) and not isinstance(given, (*kinds, bytes, Mapping))
    found = list(given) if several else [given]
    for one in found:
        if not isinstance(one, kinds):
            what = "a report is a path, an open Report or what an importer read (or a list of these)"
            raise TypeError(f"{what}, not an object of type {type(one).__name__}")
    if not found:
        raise ValueError("no reports given")
    return found


def check_report(path: str | os.PathLike[str], why: str) -> None:
    """Raise RooflineError for a file of a known format that is no report; ``why`` is a clause that says what it lacks."""
    found = recognised(path)
    if found is not None:
        raise RooflineError("Cannot use", path, f"it is {found.meaning}, and {why}", "Give the report (.ncu-rep) itself.")


def open_ceilings(path: str | os.PathLike[str]) -> Ceilings:
    """Measured ceilings of any known format: our own JSON, or what other tools wrote.  Raises RooflineError."""
    if os.path.isfile(path):
        found = recognised(path)
        if found is not None and "ceilings" in found.holds:
            ceilings: Ceilings = _module(found).read_ceilings(path)
            return ceilings
        if found is not None:
            reason = f"it is {found.meaning}, which holds no ceilings"
            raise RooflineError("Cannot read ceilings", path, reason, "Give the JSON file that `ncu-roofline bench run` wrote.")
    return read_ceilings(path)


def recognised(path: str | os.PathLike[str]) -> InputFormat | None:
    """The format of a text file, None for reports and for what nobody knows.  Raises RooflineError for unreadable files."""
    if not os.path.isfile(path):
        return None
    head = head_of(path)
    return next((row for row in FORMATS if _module(row).recognises(head)), None) if head.strip() else None


def _module(row: InputFormat) -> Any:
    return importlib.import_module(row.module)
