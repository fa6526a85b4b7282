"""Intel VTune's reports as CSV: bytes of the memory controllers (``-report hw-events``), and the time (``-report summary``).

A count of the controllers (``UNC_M_CAS_COUNT.RD`` and ``.WR``; ``UNC_E_RPQ_INSERTS`` and ``UNC_E_WPQ_INSERTS`` of the memory
on Knights Landing's package) is a line of 64 bytes, by NERSC's "Measuring Arithmetic Intensity".  The time is "Elapsed Time",
which leaves out pauses.  Memory controllers count what all of the machine moves.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from ncu_roofline.base.texts import listed
from ncu_roofline.formats.inputs.intel_run import IntelPart, table_of
from ncu_roofline.formats.inputs.tables import JoinedTable
from ncu_roofline.formats.inputs.text import Row, Table, damaged, delimiter_of, row_of, text_of

FORMAT = "vtune"
LINE = 64.0  # bytes
TIME = "Elapsed Time"
_EVENT = re.compile(r"(?:Uncore Event Count:)?(UNC_\w+(?:\.\w+)*)(?:\[(UNIT\d+)\])?")
_COUNTERS = {
    "dram": (r"UNC_M_CAS_COUNT\.RD|UNC_MC\d_RDCAS_COUNT_FREERUN", r"UNC_M_CAS_COUNT\.WR|UNC_MC\d_WRCAS_COUNT_FREERUN"),
    "mcdram": ("UNC_E_RPQ_INSERTS", "UNC_E_WPQ_INSERTS"),
}
_SUMMARY = ("Metric Name", "Metric Value")
_EVENTS = "Report with `vtune -report hw-events -group-by=package -column=UNC_M_CAS_COUNT -format=csv`."
_TIMES = "Report with `vtune -report summary -format=csv`."


def recognises(head: str) -> bool:
    """Text with the heading of a table of memory controllers' events, or of a summary with the time."""
    return any(_heading(line) for line in head.split("\n"))


def _heading(line: str) -> str:
    """What a line is the heading of: events, summary, or ""."""
    if "UNC_" not in line and _SUMMARY[0] not in line:
        return ""
    cells = row_of(line, delimiter_of(line))
    if any(_EVENT.fullmatch(cell) for cell in cells[1:]):
        return "events"
    return "summary" if tuple(cells[-2:]) == _SUMMARY and len(cells) < 4 else ""


def read(path: str | PathLike[str]) -> JoinedTable:
    """Traffic or time of a run, a point without work.  Raises RooflineError for damaged tables and those with neither."""
    lines = list(enumerate(text_of(path).split("\n"), 1))
    headings = [(number, kind) for number, line in lines if (kind := _heading(line))]
    if len(headings) != 1:
        reason = "the heading of its table is damaged" if not headings else f"line {headings[1][0]} begins a second table"
        raise damaged(path, reason, "Give one report per file.")
    (start, kind), heading = headings[0], lines[headings[0][0] - 1][1]
    table = Table(path, _EVENTS)
    delimiter = delimiter_of(heading)
    columns, rows = row_of(heading, delimiter), table.rows(lines[start:], delimiter)
    return table_of([(_events if kind == "events" else _summary)(table, columns, [row for row in rows if any(row.cells)])])


def _events(table: Table, columns: Sequence[str], rows: Sequence[Row]) -> IntelPart:
    if columns[0].lower() != "package":
        raise table.damaged(f"it is grouped by {columns[0][:40]!r}, so lines of several levels may count the same")
    repeated = [name for name, count in Counter(columns).items() if name and count > 1]
    packages = [name for name, count in Counter(row.cells[0] for row in rows).items() if count > 1]
    if repeated or packages:
        raise table.damaged(f"{(repeated or packages)[0]!r} stands there twice")
    totals: dict[tuple[str, str], float] = {}
    for row in rows:
        if len(row.cells) != len(columns):
            raise table.damaged(f"line {row.line} has {len(row.cells)} of the {len(columns)} columns of its table")
        for column, cell in zip(columns[1:], row.cells[1:], strict=True):
            if match := _EVENT.fullmatch(column):
                event = (match[1], match[2] or "")
                count = table.number(column, row.line, cell)
                if count is None:
                    raise table.damaged(f"{column} in line {row.line} has no number")
                totals[event] = totals.get(event, 0.0) + count
    traffic, used, reading = {}, set(), []
    for level, ways in _COUNTERS.items():
        loads, stores = ([event for event in totals if re.fullmatch(way, event[0])] for way in ways)
        used |= {name for name, _ in (*loads, *stores)}
        if sorted(unit for _, unit in loads) != sorted(unit for _, unit in stores):
            reading.append(f"{level} traffic left out: its reads and its writes were not counted by the same controllers")
        elif loads:
            traffic[level] = LINE * sum(totals[event] for event in (*loads, *stores))
    if not rows or not (traffic or reading):
        raise table.damaged("it holds no count of a memory controller")
    if unused := dict.fromkeys(name for name, _ in totals if name not in used):
        reading.append(f"events that are not used: {listed(unused)}")
    columns_used = tuple(sorted(used)) if traffic else ()
    return IntelPart(table.path, FORMAT, Path(table.path).stem, traffic=traffic, columns=columns_used, reading=tuple(reading))


def _summary(table: Table, columns: Sequence[str], rows: Sequence[Row]) -> IntelPart:
    at, table = columns.index(_SUMMARY[0]), Table(table.path, _TIMES)
    times = [row for row in rows if len(row.cells) > at + 1 and row.cells[at].rstrip(":") == TIME]
    if len(times) != 1:
        raise table.damaged(f'it says "{TIME}" {len(times)} times')
    seconds = table.seconds(TIME, times[0].line, times[0].cells[at + 1])
    if not seconds:
        raise table.damaged(f"{TIME} in line {times[0].line} is no time")
    return IntelPart(table.path, FORMAT, Path(table.path).stem, seconds=seconds, columns=(TIME,))
