"""Finding the table in what Nsight Compute printed, and telling its layouts apart.

`--page raw` prints one row per launch, the second row has the units (wide); everything else prints one row per metric (long).
Around and between the rows of a live run stand lines of ncu (``==PROF==``) and of the application.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

_KERNEL = "Kernel Name"
_METRIC = ("Metric Name", "Metric Value")
_SUMMARY = ("Metric Name", "Minimum", "Maximum", "Average")
_NVTX = re.compile(r"Range:PL_Type")
# Columns that say which launch it is; all others of a wide table are metrics.
FACTS = frozenset({
    "", "ID", "Process ID", "Process Name", "Host Name", _KERNEL, "Kernel Time", "Context", "Stream", "Block Size", "Grid Size",
    "Device", "CC", "Invocations",
})  # fmt: skip
_FULL_NAME = re.compile(r"(?:[A-Za-z]\w*:)*[a-z]\w*(?:\.[a-z]\w*)*")
_LABEL_AND_NAME = re.compile(r".* \(([a-z]\w*__\w+(?:\.\w+)*)\)")
_OWN_LINE = re.compile(r"^==(?:PROF|ERROR|WARNING)==", re.MULTILINE)

LONG, WIDE, SUMMARY = "long", "wide", "summary"


@dataclass(frozen=True)
class Header:
    """The line with the names of the columns; ``quoted`` if they stand in quotation marks, as ncu prints them."""

    columns: tuple[str, ...]
    delimiter: str
    quoted: bool
    layout: str

    @cached_property
    def nvtx(self) -> tuple[int, ...]:
        """Positions of the columns with NVTX ranges: those started and ended first, they are the outer ones."""
        found = [i for i, name in enumerate(self.columns) if _NVTX.search(name)]
        return tuple(sorted(found, key=lambda i: "Start/Stop" not in self.columns[i]))

    def position(self, name: str) -> int | None:
        """Where a column is, None if there is none of that name."""
        return self.columns.index(name) if name in self.columns else None

    def metrics(self) -> list[tuple[int, str]]:
        """Position and heading of each metric of a wide table."""
        return [(i, name) for i, name in enumerate(self.columns) if name not in FACTS and i not in self.nvtx]

    def begins_row(self, line: str) -> bool:
        """Whether a line can be the beginning of a row; applications print what they like between the rows."""
        first = r"\d*" if self.columns[0] in ("ID", "") else r"[^\"]*" if self.quoted else r".*?"
        mark = '"' if self.quoted else '"?'
        return re.match(rf"{mark}{first}{mark}{re.escape(self.delimiter)}", line) is not None and not line.startswith("==")


def header_of(line: str) -> Header | None:
    """The header in a line, None if it is none."""
    if _KERNEL not in line:
        return None
    delimiter = max(",;\t", key=line.count)
    columns = tuple(name.strip() for name in next(csv.reader([line.strip("\r\n")], delimiter=delimiter)))
    if _KERNEL not in columns:
        return None
    layout = ""
    if all(name in columns for name in _METRIC):
        layout = LONG
    elif all(name in columns for name in _SUMMARY):
        layout = SUMMARY
    elif any(full_name(name) and "__" in name for name in columns):
        layout = WIDE
    return Header(columns, delimiter, line.lstrip().startswith('"'), layout) if layout else None


def looks_like_ncu(head: str) -> bool:
    """Whether text begins with a table of ncu, perhaps below other lines, or with the lines that ncu prints above one."""
    return _OWN_LINE.search(head) is not None or any(header_of(line) for line in head.split("\n") if _KERNEL in line)


def full_name(text: str) -> str:
    """The metric that a heading names, "" for display labels; "Duration (gpu__time_duration.sum)" names one."""
    if found := _LABEL_AND_NAME.fullmatch(text):
        return found.group(1)
    return text if _FULL_NAME.fullmatch(text) else ""


def rows_of(lines: Iterable[str], header: Header) -> Iterator[tuple[int, list[str]]]:
    """The rows below a header with the number of the table they are in: a header that comes again begins the next."""
    table = 0
    for row in csv.reader(_table_lines(lines, header), delimiter=header.delimiter):
        if row and row[-1].strip() == header.columns[-1] and tuple(name.strip() for name in row) == header.columns:
            table += 1
        else:
            yield table, row


def _table_lines(lines: Iterable[str], header: Header) -> Iterator[str]:
    inside = False  # a text in quotation marks may go over several lines, as those of rules do
    line = "\n"
    for line in lines:
        if inside or header.begins_row(line) or header_of(line) == header:
            inside ^= line.count('"') % 2 == 1
            yield line.replace("\0", "")
    if inside or (header.quoted and _is_cut(line)):
        raise csv.Error("its last row is not complete")


def _is_cut(last: str) -> bool:
    """Whether the last line ends within a row of quoted cells: ncu ends every line."""
    return re.match(r'"\d*(?:$|".*[^"]$|"$)', last) is not None and not last.endswith("\n")
