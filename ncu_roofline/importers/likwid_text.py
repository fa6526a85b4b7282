"""The tables of LIKWID's CSV (``likwid-perfctr -O``, or ``-o FILE.csv``): performance groups, regions, metrics per thread.

For each group (and each region of the marker API) stand a block of facts (``STRUCT,Info``, ``CPU name:``) and up to four
tables: raw events, their statistics over the threads, metrics, and their statistics.  The heading of a table is
``TABLE,Group 1 Metric,MEM_DP,17`` or ``TABLE,Region triad,Group 1 Metric,MEM_DP,17``; LIKWID 4.0 leaves out the group's name.
The number counts the rows.  A row of names follows (``Metric,HWThread 0,HWThread 1``; Core for HWThread before version 5; Sum,
Min, Max, Avg in statistics, where " STAT" is added to each metric).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ncu_roofline.importers.cells import damaged, plain_number, row_of

HEADING = re.compile(r"^TABLE,(?:Region [^,\n]*,)?Group \d+ (?:Raw|Metric)\b", re.MULTILINE)
_KIND = re.compile(r"Group (\d+) (Raw|Metric)( STAT)?", re.IGNORECASE)
_STAT = " STAT"
_ANY_NUMBER = 1 << 30  # of rows, where the heading gives none
# The metrics that are read: those that may count operations or bytes, and the time.  Others may be infinite (cycles per
# instruction of an idle thread).
_READ = re.compile(r"FLOP|data volume|Runtime \(RDTSC\)|call count", re.IGNORECASE)


@dataclass
class Group:
    """One group of one region: metrics by thread and, in ``statistics``, by Sum, Min, Max, Avg; NaN cells are absent."""

    region: str
    number: int
    name: str
    cpu: str = ""
    cpu_type: str = ""
    calls: int = 1
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    statistics: dict[str, dict[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Heading:
    line: int
    group: Group
    metrics: bool
    statistics: bool
    rows: int


def groups_of(text: str, path: str) -> list[Group]:
    """All groups of the file, in order.  Raises RooflineError for tables that are cut off and for cells that are no numbers."""
    return _Reader(path).read(text)


class _Reader:
    """Reads line by line; what stands before and between the tables is the application's output."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._groups: dict[tuple[str, int], Group] = {}
        self._facts: dict[str, str] = {}
        self._heading: _Heading | None = None
        self._columns: list[str] = []
        self._read = 0

    def read(self, text: str) -> list[Group]:
        for number, line in enumerate(text.split("\n"), 1):
            cells = [cell.strip() for cell in row_of(line)]
            while cells and not cells[-1]:
                cells.pop()
            if cells:
                self._line(number, cells)
        self._finish()
        return list(self._groups.values())

    def _line(self, number: int, cells: list[str]) -> None:
        if cells[0] == "TABLE":
            self._finish()
            self._open(number, cells)
        elif cells[0] == "STRUCT":
            self._finish()
        elif cells[0] in ("CPU name:", "CPU type:"):
            self._facts[cells[0]] = ",".join(cells[1:])
        elif self._heading is not None:
            self._row(number, cells)

    def _open(self, number: int, cells: list[str]) -> None:
        found = next(((place, match) for place, cell in enumerate(cells) if (match := _KIND.fullmatch(cell))), None)
        if found is None:
            raise damaged(self._path, f"line {number} is no heading of a table of events or metrics")
        place, match = found
        region = cells[1].removeprefix("Region ") if place > 1 else ""
        rows = next((int(cell) for cell in cells[place + 1 :] if cell.isdigit()), _ANY_NUMBER)
        name = next((cell for cell in cells[place + 1 :] if not cell.isdigit()), "")
        key = (region, int(match.group(1)))
        group = self._groups.setdefault(key, Group(region, key[1], name))
        group.name = group.name or name
        group.cpu = group.cpu or self._facts.get("CPU name:", "")
        group.cpu_type = group.cpu_type or self._facts.get("CPU type:", "")
        self._heading = _Heading(number, group, match.group(2).lower() == "metric", bool(match.group(3)), rows)
        self._columns, self._read = [], 0

    def _row(self, number: int, cells: list[str]) -> None:
        heading = self._heading
        assert heading is not None
        if cells[0] in ("Metric", "Event", "Region Info"):
            self._columns = cells[1:]
        elif cells[0] == "call count" and not heading.metrics:
            counts = [value for cell in cells[1:] if (value := self._number(number, "call count", cell)) is not None]
            heading.group.calls = max(1, int(max(counts, default=1)))
        elif heading.metrics and self._columns and self._read < heading.rows:
            self._read += 1
            self._metric(number, cells)

    def _metric(self, number: int, cells: list[str]) -> None:
        heading = self._heading
        assert heading is not None
        if len(cells) - 1 > len(self._columns):
            raise damaged(self._path, f"line {number} has {len(cells) - 1} values for {len(self._columns)} columns")
        name = cells[0].removesuffix(_STAT)
        if not _READ.search(name):
            return
        numbers = {
            column: value
            for column, cell in zip(self._columns, cells[1:], strict=False)
            if (value := self._number(number, name, cell)) is not None
        }
        (heading.group.statistics if heading.statistics else heading.group.metrics)[name] = numbers

    def _number(self, line: int, name: str, cell: str) -> float | None:
        try:
            return plain_number(cell)
        except ValueError as error:
            raise damaged(self._path, f"{name} in line {line}: {error}") from error

    def _finish(self) -> None:
        heading = self._heading
        if heading and heading.metrics and self._read != heading.rows != _ANY_NUMBER:
            reason = f"the table in line {heading.line} has {self._read} of its {heading.rows} metrics"
            raise damaged(self._path, reason, "Give LIKWID's complete output.")
        self._heading = None
