"""Intel Advisor's survey with trip counts and FLOP: one point per loop or function, by what it does itself; and its roofs.

Work is "Self GFLOP"; traffic "Self Memory GB" (all that the cores load and store, level l1: the cache-aware roofline), and
with cache simulation "Self L2 GB", "Self L3 GB" and "Self DRAM GB".  GB and GFLOP are 1e9.  The time is "Self Elapsed Time",
by which Advisor divides as well ("Self GFLOPS" = "Self GFLOP" / "Self Elapsed Time").  A loop is fp64 or fp32 where "Data
Types" names only Float64 or only Float32; else its work has no known precision.  "Total" columns are sums of these and not
used.  Bytes beyond L1 are simulated, not counted.

The roofs that it measured (``advisor --report=roofs --format=csv``) have columns Name, Bandwidth, Type (memory or compute) and
Device, in byte/s and FLOP/s; names such as "DRAM Bandwidth", "DP Vector FMA Peak", "SP Vector Add Peak", "Scalar Add Peak".
Roofs of part of the machine ("DRAM Bandwidth (single node)", "(single-threaded)") are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from os import PathLike

from ncu_roofline.base.texts import listed
from ncu_roofline.formats.ceilings import UNNAMED_CPU, Ceiling, Ceilings
from ncu_roofline.formats.inputs.tables import ANY_PRECISION, ImportedPoint, PointTable
from ncu_roofline.formats.inputs.text import Row, Table, row_of, text_of

_NAME = "function_call_sites_and_loops"
_LOOK_AHEAD = 40  # lines above the heading, at most
_GIGA = 1e9
# Each level's bytes: in one column, or loaded and stored apart.
_TRAFFIC = {
    level: ((f"self_{name}_gb",), (f"self_{apart}loaded_gb", f"self_{apart}stored_gb"))
    for level, name, apart in (("l1", "memory", ""), *((one, one, f"{one}_") for one in ("l2", "l3", "dram", "mcdram")))
}
_USED = {"self_gflop", "self_gflops", *(column for ways in _TRAFFIC.values() for way in ways for column in way)}
_COULD_COUNT = re.compile(r"self_.*(gb|gflop)")
_HEADING = ["name", "bandwidth", "type"]
_ROOFS = {
    **{f"{level} bandwidth": level for level in ("l1", "l2", "l3", "dram", "mcdram")},
    "dp vector fma peak": "fp64.fma",
    "dp vector add peak": "fp64.nofma",
    "sp vector fma peak": "fp32.fma",
    "sp vector add peak": "fp32.nofma",
}


def _plain(column: str) -> str:
    """ "Self GB/s" as self_gb_s."""
    return re.sub(r"[^a-z0-9]+", "_", column.strip().lower()).strip("_")


def _heading(lines: Sequence[str]) -> tuple[int, str] | None:
    """The place of the heading of a survey, and its delimiter, None where there is none."""
    for place, line in enumerate(lines[:_LOOK_AHEAD]):
        for delimiter in (",", "\t", ";") if _NAME in _plain(line) else ():
            cells = [_plain(cell) for cell in row_of(line, delimiter)]
            if _NAME in cells and any(cell.startswith("self_") for cell in cells):
                return place, delimiter
    return None


def recognises(head: str) -> bool:
    """A table with the columns "Function Call Sites and Loops" and some "Self ..."."""
    return _heading(head.split("\n", _LOOK_AHEAD)) is not None


def read(path: str | PathLike[str]) -> PointTable:
    """One point per loop and function.  Raises RooflineError for damaged tables and for those without operations and bytes."""
    lines = text_of(path).split("\n")
    start, delimiter = _heading(lines) or (0, ",")
    survey = _Survey(path, row_of(lines[start], delimiter))
    rows = list(survey.rows(lines, start + 1, delimiter, survey.width))
    if not rows:
        raise survey.damaged("its table has no rows", "Collect again, and check that the application ran.")
    if not _USED & set(survey.columns):
        next_step = "Collect with `advisor --collect=tripcounts --flop`, and report with --show-all-columns."
        raise survey.damaged("its columns hold neither operations nor bytes", next_step)
    points = []
    parent_has_numbers = False
    for row in rows:  # parts of a vectorised loop count only where the loop itself has no numbers
        point = survey.point(row)
        child = point.name.startswith("[child]")
        if not child:
            parent_has_numbers = bool(point.work or point.traffic)
        if not (child and parent_has_numbers):
            points.append(point)
    return PointTable(survey.path, "advisor", tuple(points), warnings=survey.warnings(survey.left_out()))


class _Survey(Table):
    """The columns of a survey under their plain names, its rows as points, and what they leave out."""

    def __init__(self, path: str | PathLike[str], heading: Sequence[str]) -> None:
        super().__init__(path)
        self.width = len(heading)
        self.columns = {_plain(cell): place for place, cell in reversed(list(enumerate(heading)))}
        self._written = {_plain(cell): cell for cell in heading}
        self._short: list[str] = []
        self._sampled: list[str] = []

    def point(self, row: Row) -> ImportedPoint:
        name = self._text(row, _NAME) or self._text(row, "loop_name") or f"line {row.line}"
        gflop, rate = self._number(row, "self_gflop"), self._number(row, "self_gflops")
        seconds = self._time(row, "self_elapsed_time", name)
        if math.isnan(seconds) and gflop is not None and rate:
            seconds = gflop / rate
        elif math.isnan(seconds):
            seconds = self._time(row, "self_time", name)
            self._sampled += [] if math.isnan(seconds) else [name]
        used = ["self_gflop"] if gflop is not None else []
        if gflop is None and rate is not None and not math.isnan(seconds):
            gflop, used = rate * seconds, ["self_gflops"]
        traffic: dict[str, float] = {}
        for level, ways in _TRAFFIC.items():
            for way in ways:
                known = [value for column in way if (value := self._number(row, column)) is not None]
                if level not in traffic and len(known) == len(way):
                    traffic[level] = sum(known) * _GIGA
                    used += way
        floats = set(re.findall(r"float(16|32|64)", self._text(row, "data_types").lower()))
        precision = f"fp{floats.pop()}" if len(floats) == 1 else ANY_PRECISION
        return ImportedPoint(
            name=name,
            device=UNNAMED_CPU,
            seconds=seconds,
            work={} if gflop is None else {precision: gflop * _GIGA},
            traffic=traffic,
            columns=", ".join(self._written[column] for column in used),
            note="bytes beyond L1 are from Advisor's cache simulation" if len(traffic) > 1 else "",
        )

    def left_out(self) -> Iterator[str]:
        """Sentences without full stop."""
        unused = [name for column, name in self._written.items() if _COULD_COUNT.fullmatch(column) and column not in _USED]
        if unused:
            yield f"columns that are not used: {listed(unused)}"
        if self._short:
            yield f'times below the smallest that Advisor writes ("< 0.001s") are no numbers: {listed(self._short, 3)}'
        if self._sampled:
            names = listed(self._sampled, 3)
            yield f'without "Self Elapsed Time" the time is "Self Time", which is summed over the threads, for {names}'

    def _time(self, row: Row, column: str, name: str) -> float:
        text = self._text(row, column)
        if text.startswith("<"):
            self._short.append(name)
            return math.nan
        seconds = self.seconds(f"{self._written.get(column)}", row.line, text)
        return math.nan if seconds is None else seconds

    def _number(self, row: Row, column: str) -> float | None:
        text = self._text(row, column)
        if text.startswith("<"):  # "< 0.001": below what Advisor writes
            return None
        return self.number(f"{self._written.get(column)}", row.line, text.replace("\xa0", ""))

    def _text(self, row: Row, column: str) -> str:
        place = self.columns.get(column)
        return "" if place is None else row.cells[place]


def recognises_roofs(head: str) -> bool:
    """A table with the columns Name, Bandwidth and Type, and one of Advisor's roofs in it."""
    return any(row.cells[0].lower().startswith(tuple(_ROOFS)) for row in _roof_rows(head))


def _roof_rows(text: str) -> list[Row]:
    rows = [Row(number, cells) for number, line in enumerate(text.split("\n"), 1) if any(cells := row_of(line))]
    heading = next((at for at, row in enumerate(rows) if [cell.lower() for cell in row.cells[:3]] == _HEADING), len(rows))
    return rows[heading + 1 :]


def read_ceilings_roofs(path: str | PathLike[str]) -> Ceilings:
    """The roofs of a CPU that the file does not name.  Raises RooflineError for damaged files and for those without a roof."""
    table = Table(path)
    by_id: dict[str, Ceiling] = {}
    for row in _roof_rows(text_of(path)):
        if len(row.cells) < 3:
            raise table.damaged(f"line {row.line} has {len(row.cells)} of its 3 or more columns")
        value, roof = table.number(row.cells[0], row.line, row.cells[1]), _ROOFS.get(row.cells[0].lower())
        if value and roof:
            unit = "FLOP/s" if "." in roof else "B/s"
            by_id.setdefault(roof, Ceiling(roof, value, unit, math.nan, "", source=f"Intel Advisor's {row.cells[0]}"))
    if not by_id:
        raise table.damaged("none of its roofs is known here", "Give the report that `advisor --report=roofs` wrote.")
    return Ceilings(table.path, "", "", (0, 0), "", by_id)
