"""Files of other tools, and of ncu itself, that hold what a report would: which importer reads one, told by its beginning."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import REPORT_SUFFIXES, files_of
from ncu_roofline.formats.ceilings import Ceilings, read_ceilings
from ncu_roofline.formats.inputs.tables import MetricTable, PointTable
from ncu_roofline.formats.inputs.text import head_of
from ncu_roofline.formats.inputs.words import load_words
from ncu_roofline.formats.report import Report, read_report

Other = TypeVar("Other")
_HERE = __name__


class InputFormat(NamedTuple):
    """A file format: the module that reads it has ``read(path) -> table``, and ``recognises(head: str) -> bool`` where
    `data/inputs.toml` has no sign of it.

    ``holds`` says what it gives: metrics, points, ceilings (by ``read_ceilings(path)`` alone), or points and ceilings.  Where a
    module reads several formats, ``of`` ends the names of these functions.
    """

    id: str
    module: str
    holds: str
    meaning: str
    of: str = ""

    def call(self, function: str, argument: Any) -> Any:
        """What a function of its module gives."""
        return getattr(importlib.import_module(self.module), function + self.of)(argument)

    def recognises(self, head: str) -> bool:
        """Whether a file begins like one of it."""
        sign = load_words().signs.get(self.id)
        return bool(re.search(sign, head, re.IGNORECASE | re.MULTILINE)) if sign else bool(self.call("recognises", head))


# In this order: the first that recognises a file reads it.
FORMATS: tuple[InputFormat, ...] = (
    InputFormat("ncu-csv", f"{_HERE}.ncu_csv", "metrics", "what ncu --csv prints"),
    InputFormat("ert", f"{_HERE}.roof_files", "ceilings", "a roofline.json of the Empirical Roofline Toolkit", "_ert"),
    InputFormat("roofline-data", f"{_HERE}.roof_files", "points and ceilings", "a data file of plot_roofline.py"),
    InputFormat("nvprof", f"{_HERE}.nvprof", "points", "the output of nvprof --csv"),
    InputFormat("likwid", f"{_HERE}.likwid", "points", "the CSV of likwid-perfctr"),
    InputFormat("advisor", f"{_HERE}.intel", "points", "a survey of Intel Advisor as CSV", "_advisor"),
    InputFormat("advisor-roofs", f"{_HERE}.intel", "ceilings", "the roofs of Intel Advisor as CSV", "_roofs"),
    InputFormat("sde", f"{_HERE}.intel", "points", "an instruction mix of Intel SDE", "_sde"),
    InputFormat("vtune", f"{_HERE}.intel", "points", "a report of Intel VTune as CSV", "_vtune"),
    InputFormat("plain-table", f"{_HERE}.plain_table", "points", "a plain table"),
    InputFormat("profiler-counters", f"{_HERE}.range_profiler", "metrics", "a trace of the PyTorch profiler with counters"),
)
# Modules whose ``joined(tables)`` joins tables that complete each other, and the formats of these.
_JOINING = {f"{_HERE}.nvprof": ("nvprof",), f"{_HERE}.intel": ("sde", "vtune")}


def recognised(path: str | os.PathLike[str]) -> InputFormat | None:
    """The format of a text file, None for reports and for what nobody knows.  Raises RooflineError for unreadable files."""
    if not os.path.isfile(path):
        return None
    head = head_of(path)
    found = next((row for row in FORMATS if row.recognises(head)), None) if head.strip() else None
    if found is None and not os.fspath(path).endswith(REPORT_SUFFIXES):  # often compressed, with counters at its end
        from ncu_roofline.formats.traces import has_counters

        return FORMATS[-1] if has_counters(path) else None
    return found


def open_input(path: str | os.PathLike[str]) -> Report | MetricTable | PointTable:
    """Open a report, or any other file with launches or kernels in it, told apart by content; or passes of one run, as
    `passes.of_one_run` names them together.

    A `Report` has to be closed.  Raises RooflineError, which names the file, what it is instead, and the next step.
    """
    found, paths = recognised(path), files_of(os.fspath(path))
    if len(paths) > 1 and all(map(os.path.isfile, paths)):
        from ncu_roofline.formats.inputs.passes import of_one_run

        merged, why_not = of_one_run(paths, open_input)
        if merged is None:
            reason = why_not.removesuffix(".") or "these are no passes of one run with other metrics each"
            raise RooflineError("Cannot join", path, reason, "Give them one by one.")
        return merged
    if found is None:
        return read_report(path)
    if found.holds == "ceilings":
        reason = f"it is {found.meaning}, which holds ceilings and no kernels"
        raise RooflineError("Cannot read", path, reason, "Give it with --ceilings, beside a report.")
    table: MetricTable | PointTable = found.call("read", path)
    return table


def open_ceilings(path: str | os.PathLike[str]) -> Ceilings:
    """Measured ceilings of any known format: our own JSON, or what other tools wrote.  Raises RooflineError."""
    found = recognised(path)
    if found is None:
        return read_ceilings(path)
    if "ceilings" not in found.holds:
        reason = f"it is {found.meaning}, which holds no ceilings"
        raise RooflineError("Cannot read ceilings", path, reason, "Give the JSON file that `ncu-roofline bench run` wrote.")
    ceilings: Ceilings = found.call("read_ceilings", path)
    return ceilings


def check_report(path: str | os.PathLike[str], why: str) -> None:
    """Raise RooflineError for a file of a known format that is no report; ``why`` is a clause that says what it lacks."""
    found = recognised(path)
    if found is not None:
        raise RooflineError("Cannot use", path, f"it is {found.meaning}, and {why}", "Give the report (.ncu-rep) itself.")


def as_inputs(given: Any, *also: type[Any]) -> list[Any]:
    """One input or several as a list; each is a path, a `Report`, a table, or of a type of ``also``.

    Raises TypeError for what is no input, ValueError for none at all.
    """
    kinds = (Report, MetricTable, PointTable, str, os.PathLike, *also)
    several = isinstance(given, Iterable) and not isinstance(given, (*kinds, bytes, Mapping))
    items = list(given) if several else [given]
    for item in items:
        if not isinstance(item, kinds):
            what = "a report is a path, an open Report or what an importer read (or a list of these)"
            raise TypeError(f"{what}, not an object of type {type(item).__name__}")
    if not items:
        raise ValueError("no reports given")
    return items


def joined(items: Sequence[Other | PointTable]) -> list[Other | PointTable]:
    """The same items, but tables that complete each other as one, at the place of the first of them.

    Items that are no tables, and tables that nothing completes, come back as they are.
    """
    result = list(items)
    for module, formats in _JOINING.items():
        tables = {at: item for at, item in enumerate(result) if isinstance(item, PointTable) and item.format in formats}
        if len(tables) > 1:
            place = {table.path: at for at, table in reversed(tables.items())}
            instead: dict[int, list[Other | PointTable]] = {at: [] for at in tables}
            for table in importlib.import_module(module).joined([tables[at] for at in sorted(place.values())]):
                instead[min(place[part.path] for part in table.parts or [table])].append(table)
            result = [one for at, item in enumerate(result) for one in instead.get(at, [item])]
    return result
