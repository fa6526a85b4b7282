"""Plain tables of any tool or paper: one row per platform and run, with units in the names of the columns.

Columns: platform, device, application, kernel, label (or a parameter such as nw), precision, supported, launches; work
(``flops``, ``gflop``) or performance (``gflop/s``, ``performance_gflops``); ``seconds``, ``time_ms``; traffic per level
(``bytes_l2``, ``hbm_gb``) or intensity per level (``ai_l2``, ``intensity_dram``); roofs (``peak_gflops``,
``peak_nofma_gflops``, ``bandwidth_dram_gbs``) or ``attainable_gflops``; ``canonical_flops``; ``fma_share``.
Without a unit a number is in SI units; a column without a level is of the column ``level``, else of DRAM.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.forms import document_of
from ncu_roofline.base.texts import listed
from ncu_roofline.formats.inputs.plain_headers import (
    AmbiguousHeaderError,
    NamedCells,
    Supported,
    columns_of,
    header,
)
from ncu_roofline.formats.inputs.tables import ImportedPoint, ImportedRoof, PointTable
from ncu_roofline.formats.inputs.text import damaged, delimiter_of, row_of, rows_of, text_of

LISTS = ("rows", "points", "kernels", "data")
"""Keys under which a JSON object may hold the list of rows."""
_NEXT = "Give a CSV or JSON table with columns such as platform, flops, bytes_dram and seconds."
_KEY = re.compile(r'"([^"\\\n]{1,80})"\s*:')
# Columns that only the tables of this program have; they hold results, and their bandwidth is no roof.
_OURS = {"roof_origin", "binding_fraction"}

Record = tuple[str, dict[str, Any]]
__all__ = ["PlainRow", "PlainTable", "plain_rows", "read", "read_rows", "recognises"]
FORMAT = "plain-table"
_AGREE = 0.01  # figures printed with three digits agree within this


def recognises(head: str) -> bool:
    """Whether the header line, or the keys of a JSON list, name work or performance, and traffic, intensity or a roof."""
    text = head.lstrip()
    if text.startswith(("[", "{")):
        return '"schema"' not in text and suffices(list(dict.fromkeys(_KEY.findall(text))))
    lines = _content(head)
    return suffices(row_of(lines[0][1], delimiter_of(lines[0][1]))) if lines else False


def suffices(names: Sequence[str]) -> bool:
    """Whether columns of these names can make points."""
    quantities = set()
    for name in names:
        try:
            found = header(name)
        except AmbiguousHeaderError:  # the reader says so; here it is enough that it is one of the two
            quantities.add("work")
            continue
        quantities.add(found.quantity if found else "")
    return (
        bool(quantities & {"work", "performance"})
        and bool(quantities & {"traffic", "intensity", "attainable"})
        and not _OURS & set(names)
    )


def _content(text: str) -> list[tuple[int, str]]:
    lines = enumerate(text.split("\n"), start=1)
    return [(number, line) for number, line in lines if line.strip() and not line.lstrip().startswith("#")]


def _csv_rows(path: str | os.PathLike[str], text: str, warnings: list[str]) -> Iterator[Record]:
    lines = _content(text)
    delimiter = delimiter_of(lines[0][1])
    names = row_of(lines[0][1], delimiter)
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise damaged(path, f"the column {min(repeated)!r} stands there twice", "Give each column a name of its own.")
    for number, row in enumerate(rows_of(path, lines[1:], delimiter, _NEXT), start=1):
        if len(row.cells) != len(names):
            reason = row.swallowed() or f"row {number} has {len(row.cells)} cells, and the header {len(names)}"
            raise damaged(path, reason, "Fill the row up, and quote cells that hold the separator.")
        if row.swallowed():
            warnings.append(f"{path}: {row.swallowed()}")
        yield f"row {number}", dict(zip(names, row.cells, strict=True))


def _json_rows(path: str | os.PathLike[str], text: str) -> Iterator[Record]:
    try:
        document = document_of(text)
    except (ValueError, RecursionError) as error:
        raise damaged(path, str(error), _NEXT) from error
    if isinstance(document, Mapping):
        document = next((document[key] for key in LISTS if isinstance(document.get(key), list)), None)
    if not isinstance(document, list):
        raise damaged(path, f"it is no list of rows, and has none under {', '.join(LISTS)}", _NEXT)
    for number, row in enumerate(document, start=1):
        if not isinstance(row, Mapping):
            raise damaged(path, f"row {number} is no object", _NEXT)
        yield f"row {number}", {str(name): value for name, value in row.items()}


@dataclass(frozen=True)
class PlainRow:
    """One row in SI units; NaN and absent keys are what it does not say.

    ``work`` and ``performance`` by precision id, ``traffic`` and ``intensity`` by level id; ``canonical`` is the work that the
    algorithm needs on paper, beside the executed one; ``attainable`` is stated, not computed.
    """

    platform: str
    application: str
    kernel: str
    label: str
    device: str
    supported: Supported
    work: Mapping[str, float]
    performance: Mapping[str, float]
    seconds: float
    canonical: float
    attainable: float
    fma_share: float
    launches: int
    traffic: Mapping[str, float]
    intensity: Mapping[str, float]
    roofs: tuple[ImportedRoof, ...]
    columns: str
    note: str


@dataclass(frozen=True)
class PlainTable:
    """The rows of a table, and sentences on what was left out."""

    path: str
    rows: tuple[PlainRow, ...]
    warnings: tuple[str, ...] = ()


def read_rows(path: str | os.PathLike[str]) -> PlainTable:
    """The rows of a file.  Raises RooflineError with the row and the column of what can't be understood."""
    text = text_of(path)
    warnings: list[str] = []
    is_json = text.lstrip()[:1] in ("[", "{")
    rows = list(_json_rows(path, text) if is_json else _csv_rows(path, text, warnings))
    if not rows:
        raise damaged(path, "the table has no rows", _NEXT)
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    table = plain_rows(str(path), names, rows, Path(path).stem)
    return replace(table, warnings=(*warnings, *table.warnings))


def plain_rows(path: str, names: Sequence[str], rows: Sequence[tuple[str, Mapping[str, Any]]], stem: str = "") -> PlainTable:
    """Rows from records: (place, cells by column name).  ``stem`` is what a kernel without a name is called."""
    columns, unknown = columns_of(path, names)
    if not suffices(names):
        reason = "no column holds work or performance, or none holds traffic, intensity or what is attainable"
        raise damaged(path, reason, "Add columns such as flops, seconds and bytes_dram.")
    warnings = [f"{path}: nothing is known of the columns {listed(unknown)}, which are left out"] if unknown else []
    result = []
    for place, cells in rows:
        row = _row(NamedCells(path, place, columns, cells), stem)
        warnings += _contradictions(f"{path}: {place}", row)
        result.append(row)
    return PlainTable(path, tuple(result), tuple(warnings))


def _row(cells: NamedCells, stem: str) -> PlainRow:
    precision, device, launches = cells.precision(), cells.text("device"), cells.number("launches")
    platform = cells.text("platform") or device or stem
    return PlainRow(
        platform=platform,
        application=cells.text("application"),
        kernel=cells.text("kernel"),
        label=cells.label(),
        device=device or platform,
        supported=cells.supported(),
        work=cells.by_precision("work", precision),
        performance=cells.by_precision("performance", precision),
        seconds=cells.number("seconds"),
        canonical=cells.number("canonical"),
        attainable=cells.number("attainable"),
        fma_share=cells.number("fma_share"),
        launches=int(launches) if launches >= 1 else 1,
        traffic=cells.by_level("traffic"),
        intensity=cells.by_level("intensity"),
        roofs=cells.roofs(precision),
        columns=cells.used(),
        note=cells.text("note"),
    )


def _contradictions(place: str, row: PlainRow) -> list[str]:
    stated = []
    for precision, work in row.work.items():
        stated.append((row.performance.get(precision, math.nan), work / row.seconds, "FLOP/s", "time"))
        stated += [
            (row.intensity.get(level, math.nan), work / moved, "FLOP/B", "bytes") for level, moved in row.traffic.items()
        ]
    return [
        f"{place} states {said:.4g} {unit}, and its work and {other} make {computed:.4g}, which counts"
        for said, computed, unit, other in stated
        if abs(computed - said) > _AGREE * said
    ]


def read(path: str | os.PathLike[str]) -> PointTable:
    """The rows that can stand on a roofline.  Raises RooflineError where there is none."""
    table = read_rows(path)
    points = [point for row in table.rows if (point := point_of(row, Path(path).stem)) is not None]
    if not points:
        reason = "no row has both a rate (work and time, or performance) and traffic or intensity"
        raise RooflineError("Cannot read", path, reason, "Add columns such as flops, seconds and bytes_dram.")
    left_out = len(table.rows) - len(points)
    warnings = [*table.warnings, *([f"{path}: {left_out} rows lack what a point needs, and are left out"] if left_out else [])]
    return PointTable(str(path), FORMAT, tuple(points), (), tuple(warnings))


def point_of(row: PlainRow, stem: str) -> ImportedPoint | None:
    """A row as a point of a roofline, None where it has no rate or no traffic."""
    work, seconds, rates = dict(row.work), row.seconds, False
    if not work and row.performance:
        rates = math.isnan(seconds)
        seconds = 1.0 if rates else seconds
        work = {precision: rate * seconds for precision, rate in row.performance.items()}
    elif work and math.isnan(seconds):
        seconds = next((work[p] / rate for p, rate in row.performance.items() if p in work), math.nan)
    total = sum(work.values())
    traffic = {level: total / intensity for level, intensity in row.intensity.items()}
    traffic.update({} if rates else row.traffic)
    if row.supported != "yes" or not work or not traffic or math.isnan(seconds):
        return None
    return ImportedPoint(
        name=row.kernel or row.application or stem,
        label=row.label,
        seconds=seconds,
        work=work,
        traffic=traffic,
        fma_share={} if math.isnan(row.fma_share) else dict.fromkeys(work, row.fma_share),
        device=row.device,
        launches=row.launches,
        rates=rates,
        columns=row.columns,
        note=row.note,
        roofs=row.roofs,
    )
