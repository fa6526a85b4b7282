"""Intel Advisor's survey with trip counts and FLOP: one point per loop or function, by what it does itself.

Work is "Self GFLOP"; traffic "Self Memory GB" (all that the cores load and store, level l1: the cache-aware roofline), and
with cache simulation "Self L2 GB", "Self L3 GB" and "Self DRAM GB".  GB and GFLOP are 1e9.  The time is "Self Elapsed Time",
by which Advisor divides as well ("Self GFLOPS" = "Self GFLOP" / "Self Elapsed Time").  A loop is fp64 or fp32 where "Data
Types" names only Float64 or only Float32; else its work has no known precision.  "Total" columns are sums of these and not
used.  Bytes beyond L1 are simulated, not counted.  Layouts: `advisor_text`; roofs: `advisor_roofs`.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike, fspath

from ncu_roofline.base.texts import listed
from ncu_roofline.formats.ceilings import UNNAMED_CPU
from ncu_roofline.formats.inputs.tables import ANY_PRECISION, ImportedPoint, PointTable
from ncu_roofline.formats.inputs.text import SECONDS, damaged, row_of, rows_of, split_number, text_of

NAME = "function_call_sites_and_loops"
_LOOK_AHEAD = 40  # lines above the heading, at most
_DELIMITERS = (",", "\t", ";")
GIGA = 1e9
# Each level's bytes: in one column, or loaded and stored apart.
_TRAFFIC = {
    "l1": (("self_memory_gb",), ("self_loaded_gb", "self_stored_gb")),
    "l2": (("self_l2_gb",), ("self_l2_loaded_gb", "self_l2_stored_gb")),
    "l3": (("self_l3_gb",), ("self_l3_loaded_gb", "self_l3_stored_gb")),
    "dram": (("self_dram_gb",), ("self_dram_loaded_gb", "self_dram_stored_gb")),
    "mcdram": (("self_mcdram_gb",), ("self_mcdram_loaded_gb", "self_mcdram_stored_gb")),
}
_USED = {column for ways in _TRAFFIC.values() for way in ways for column in way}
_COULD_COUNT = re.compile(r"self_.*(gb|gflop)")


@dataclass(frozen=True)
class Survey:
    """The table: columns under their plain names, what the file calls them, rows as (line number, cells).

    ``swallowed`` says which quotation marks made one row of several lines.
    """

    columns: dict[str, int]
    written: dict[str, str]
    rows: list[tuple[int, list[str]]]
    swallowed: tuple[str, ...] = ()


def plain(column: str) -> str:
    """ "Self GB/s" as self_gb_s."""
    return re.sub(r"[^a-z0-9]+", "_", column.strip().lower()).strip("_")


def heading_of(text: str) -> tuple[int, str] | None:
    """The line with the heading of a survey, from 0, and its delimiter, None where there is none."""
    for number, line in enumerate(text.split("\n", _LOOK_AHEAD)[:_LOOK_AHEAD]):
        if NAME in plain(line):
            for delimiter in _DELIMITERS:
                cells = [plain(cell) for cell in row_of(line, delimiter)]
                if NAME in cells and any(cell.startswith("self_") for cell in cells):
                    return number, delimiter
    return None


def survey_of(text: str, path: str) -> Survey:
    """The table.  Raises RooflineError where rows are cut off."""
    found = heading_of(text)
    if found is None:
        raise damaged(path, "the heading of its table is damaged")
    start, delimiter = found
    lines = text.split("\n")
    heading = row_of(lines[start], delimiter)
    rows, swallowed = [], []
    try:
        for row in rows_of(enumerate(lines[start + 1 :], start + 2), delimiter):
            if not any(row.cells):
                continue
            if len(row.cells) != len(heading):
                reason = row.swallowed() or f"line {row.first} has {len(row.cells)} of the {len(heading)} columns of its table"
                raise damaged(path, reason)
            rows.append((row.first, row.cells))
            swallowed += [row.swallowed()] if row.swallowed() else []
    except csv.Error as error:
        raise damaged(path, str(error)) from error
    written = {plain(cell): cell for cell in heading}
    return Survey({plain(cell): place for place, cell in reversed(list(enumerate(heading)))}, written, rows, tuple(swallowed))


def recognises(head: str) -> bool:
    """A table with the columns "Function Call Sites and Loops" and some "Self ..."."""
    return heading_of(head) is not None


def read(path: str | PathLike[str]) -> PointTable:
    """One point per loop and function.  Raises RooflineError for damaged tables and for those without operations and bytes."""
    name = fspath(path)
    survey = survey_of(text_of(path), name)
    if not survey.rows:
        raise damaged(path, "its table has no rows", "Collect again, and check that the application ran.")
    if "self_gflop" not in survey.columns and "self_gflops" not in survey.columns and not _USED & set(survey.columns):
        next_step = "Collect with `advisor --collect=tripcounts --flop`, and report with --show-all-columns."
        raise damaged(path, "its columns hold neither operations nor bytes", next_step)
    rows = _SurveyRows(survey, name)
    points = tuple(rows.points())
    return PointTable(
        path=name, format="advisor", points=points, warnings=tuple(f"{name}: {text}." for text in rows.warnings())
    )


class _SurveyRows:
    """Rows of a survey as points, and what they leave out."""

    def __init__(self, survey: Survey, path: str) -> None:
        self._survey, self._path = survey, path
        self._short: list[str] = []
        self._sampled: list[str] = []

    def points(self) -> Iterator[ImportedPoint]:
        """A point per row; parts of a vectorised loop only where the loop itself has no numbers."""
        parent_has_numbers = False
        for line, cells in self._survey.rows:
            point = self._point(line, cells)
            child = point.name.startswith("[child]")
            if not child:
                parent_has_numbers = bool(point.work or point.traffic)
            if not (child and parent_has_numbers):
                yield point

    def warnings(self) -> Iterator[str]:
        """Sentences without full stop."""
        yield from self._survey.swallowed
        known = {*_USED, "self_gflop", "self_gflops"}
        unused = [
            written
            for column, written in self._survey.written.items()
            if _COULD_COUNT.fullmatch(column) and column not in known
        ]
        if unused:
            yield f"columns that are not used: {listed(unused)}"
        if self._short:
            yield f'times below the smallest that Advisor writes ("< 0.001s") are no numbers: {listed(self._short, 3)}'
        if self._sampled:
            yield (
                'without "Self Elapsed Time" the time is "Self Time", which is summed over the threads, '
                f"for {listed(self._sampled, 3)}"
            )

    def _point(self, line: int, cells: list[str]) -> ImportedPoint:
        name = self._text(cells, NAME) or self._text(cells, "loop_name") or f"line {line}"
        gflop, rate = self._number(line, cells, "self_gflop"), self._number(line, cells, "self_gflops")
        seconds = self._seconds(line, cells, name, gflop, rate)
        used = [column for column in ("self_gflop",) if gflop is not None]
        if gflop is None and rate is not None and not math.isnan(seconds):
            gflop, used = rate * seconds, ["self_gflops"]
        traffic = {}
        for level, ways in _TRAFFIC.items():
            for way in ways:
                values = [self._number(line, cells, column) for column in way]
                known = [value for value in values if value is not None]
                if level not in traffic and len(known) == len(way):
                    traffic[level] = sum(known) * GIGA
                    used += way
        return ImportedPoint(
            name=name,
            device=UNNAMED_CPU,
            seconds=seconds,
            work={} if gflop is None else {self._precision(cells): gflop * GIGA},
            traffic=traffic,
            columns=", ".join(self._survey.written[column] for column in used),
            note="bytes beyond L1 are from Advisor's cache simulation" if len(traffic) > 1 else "",
        )

    def _seconds(self, line: int, cells: list[str], name: str, gflop: float | None, rate: float | None) -> float:
        elapsed = self._time(line, cells, "self_elapsed_time", name)
        if not math.isnan(elapsed):
            return elapsed
        if gflop is not None and rate:
            return gflop / rate
        sampled = self._time(line, cells, "self_time", name)
        if not math.isnan(sampled):
            self._sampled.append(name)
        return sampled

    def _time(self, line: int, cells: list[str], column: str, name: str) -> float:
        text = self._text(cells, column)
        if text.startswith("<"):
            self._short.append(name)
            return math.nan
        try:
            found = split_number(text)
            return found[0] * SECONDS[found[1] or "s"] if found else math.nan
        except (ValueError, KeyError) as error:
            raise damaged(self._path, f"{self._survey.written[column]} in line {line}: {text[:40]!r} is no time") from error

    def _number(self, line: int, cells: list[str], column: str) -> float | None:
        text = self._text(cells, column)
        if text.startswith("<"):  # "< 0.001": below what Advisor writes
            return None
        try:
            found = split_number(text.replace("\xa0", ""))
        except ValueError as error:
            raise damaged(self._path, f"{self._survey.written[column]} in line {line}: {error}") from error
        if found and found[1]:
            raise damaged(self._path, f"{self._survey.written[column]} in line {line}: {text[:40]!r} has a unit")
        return found[0] if found else None

    def _precision(self, cells: list[str]) -> str:
        floats = set(re.findall(r"float(?:16|32|64)", self._text(cells, "data_types").lower()))
        return f"fp{floats.pop().removeprefix('float')}" if len(floats) == 1 else ANY_PRECISION

    def _text(self, cells: list[str], column: str) -> str:
        place = self._survey.columns.get(column)
        return "" if place is None else cells[place]
