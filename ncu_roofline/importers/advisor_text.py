"""Intel Advisor's reports as CSV: where the table begins, its delimiter, and columns under one name each.

``advisor --report=survey --show-all-columns --format=csv`` writes up to six lines (``sep=,``, the copyright in one cell of two
lines, the version) and a heading like "ID","Function Call Sites and Loops",...,"Self GFLOP","Self Memory GB".  The rows of
Advisor's Python interface, saved with pandas, have the same columns as function_call_sites_and_loops, self_gflop,
self_memory_gb.  Both are read, with comma, semicolon or tab between the columns.  Intel documents no more than the meaning of
the columns; the layout is that of versions 2019 to 2023.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ncu_roofline.importers.cells import damaged, row_of

NAME = "function_call_sites_and_loops"
_DELIMITERS = (",", "\t", ";")


@dataclass(frozen=True)
class Survey:
    """The table: columns under their plain names, what the file calls them, rows as (line number, cells)."""

    columns: dict[str, int]
    written: dict[str, str]
    rows: list[tuple[int, list[str]]]


def plain(column: str) -> str:
    """ "Self GB/s" as self_gb_s."""
    return re.sub(r"[^a-z0-9]+", "_", column.strip().lower()).strip("_")


def heading_of(text: str) -> tuple[str, str] | None:
    """The line with the heading of a survey and its delimiter, None where there is none."""
    for line in text.splitlines()[:40]:
        if NAME in plain(line):
            for delimiter in _DELIMITERS:
                cells = [plain(cell) for cell in row_of(line, delimiter)]
                if NAME in cells and any(cell.startswith("self_") for cell in cells):
                    return line, delimiter
    return None


def survey_of(text: str, path: str) -> Survey:
    """The table.  Raises RooflineError where rows are cut off."""
    found = heading_of(text)
    if found is None:
        raise damaged(path, "the heading of its table is damaged")
    line, delimiter = found
    before, _, after = text.partition(line)
    heading = row_of(line, delimiter)
    first = before.count("\n") + 2
    rows = []
    for number, cells in _rows(after.removeprefix("\n"), delimiter, first, path):
        if len(cells) != len(heading):
            raise damaged(path, f"line {number} has {len(cells)} of the {len(heading)} columns of its table")
        rows.append((number, cells))
    written = {plain(cell): cell.strip() for cell in heading}
    return Survey({plain(cell): place for place, cell in reversed(list(enumerate(heading)))}, written, rows)


def _rows(text: str, delimiter: str, first: int, path: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield first + reader.line_num - 1, cells
    except csv.Error as error:
        raise damaged(path, f"line {first + reader.line_num - 1} is no row: {error}") from error
