"""The tables of ``nvprof --csv`` inside the log: nvprof prints them between lines of its own and of the application.

Layouts, told apart by their columns:
- metrics: "Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg" (``--metrics``);
- summary: "Type","Time(%)","Time","Calls","Avg","Min","Max","Name" (``--print-gpu-summary``; before CUDA 9 without "Type");
- trace: "Start","Duration","Grid X",...,"Device","Context","Stream","Name" (``--print-gpu-trace``);
- launches: "Device","Context","Stream","Kernel", then one column per metric (``--print-gpu-trace --metrics``).
Below the heading of summary and trace stands a row of units.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ncu_roofline.importers.cells import SECONDS, damaged, row_of

_LAYOUTS = {
    "metrics": ("Device", "Kernel", "Invocations", "Metric Name", "Avg"),
    "events": ("Device", "Kernel", "Invocations", "Event Name"),
    "summary": ("Time(%)", "Time", "Calls", "Avg", "Name"),
    "trace": ("Start", "Duration", "Device", "Name"),
    "launches": ("Device", "Context", "Stream", "Kernel"),
    "API trace": ("Start", "Duration", "Name"),
}
_TIMED = {"summary": "Time", "trace": "Duration", "API trace": "Duration"}
_OWN_LINE = re.compile(r"={2,}\d*={2,}")
_ROW = re.compile(r'"|[\d.]+,|,')


@dataclass(frozen=True)
class Table:
    """One table of the log: rows as (line number, cells by column), units by column."""

    layout: str
    columns: tuple[str, ...]
    units: dict[str, str]
    rows: list[tuple[int, dict[str, str]]] = field(default_factory=list)


def holds_table(text: str) -> bool:
    """Whether some line is the heading of one of nvprof's tables."""
    return any(_layout(cells) for line in text.splitlines() if '"' in line and (cells := row_of(line)))


def tables_of(text: str, path: str) -> list[Table]:
    """All tables of the log, in order.  Raises RooflineError for rows that are cut off and for times without unit."""
    tables: list[Table] = []
    current: Table | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or _OWN_LINE.match(line):
            current = None if not line.strip() else current
            continue
        cells = row_of(line)
        if layout := _layout(cells):
            current = Table(layout, tuple(cells), {})
            tables.append(current)
        elif current is not None:
            _add(current, number, line, cells, path)
    for table in tables:
        _check_units(table, path)
    return tables


def _add(table: Table, number: int, line: str, cells: list[str], path: str) -> None:
    if len(cells) == len(table.columns):
        row = dict(zip(table.columns, cells, strict=True))
        if not table.rows and not table.units and _is_units(table, row):
            table.units.update({name: unit.strip() for name, unit in row.items() if unit.strip()})
        else:
            table.rows.append((number, row))
    elif _ROW.match(line):
        reason = f"line {number} has {len(cells)} of the {len(table.columns)} columns of its table"
        raise damaged(path, reason, "Give nvprof's complete output (--log-file keeps the application's apart).")


def _is_units(table: Table, row: dict[str, str]) -> bool:
    timed = _TIMED.get(table.layout)
    # A row of units names no kernel; tables of metrics per launch have one where a metric has a unit.
    return row[timed].strip() in SECONDS if timed else table.layout == "launches" and not row["Kernel"].strip()


def _check_units(table: Table, path: str) -> None:
    timed = _TIMED.get(table.layout)
    if table.rows and timed and timed not in table.units:
        reason = f'the row of units is missing below its heading, so the column "{timed}" can\'t be understood'
        raise damaged(path, reason, "Give nvprof's complete output.")


def _layout(cells: list[str]) -> str:
    found = {cell.strip() for cell in cells}
    return next((layout for layout, columns in _LAYOUTS.items() if found.issuperset(columns)), "")
