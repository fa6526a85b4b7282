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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ncu_roofline.errors import RooflineError
from ncu_roofline.importers.cells import damaged, listed
from ncu_roofline.importers.plain_cells import Cells, Supported, columns_of, precision_in, supported_in
from ncu_roofline.importers.plain_records import recognises, records, suffices
from ncu_roofline.importers.tables import ImportedPoint, ImportedRoof, PointTable

__all__ = ["PlainRow", "PlainTable", "plain_rows", "read", "read_rows", "recognises"]

FORMAT = "plain-table"
_AGREE = 0.01  # figures printed with three digits agree within this


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
    names, rows = records(path)
    return plain_rows(str(path), names, rows, Path(path).stem)


def plain_rows(path: str, names: Sequence[str], rows: Sequence[tuple[str, Mapping[str, Any]]], stem: str = "") -> PlainTable:
    """Rows from records: (place, cells by column name).  ``stem`` is what a kernel without a name is called."""
    columns, unknown = columns_of(path, names)
    if not suffices(names):
        reason = "no column holds work or performance, or none holds traffic, intensity or what is attainable"
        raise damaged(path, reason, "Add columns such as flops, seconds and bytes_dram.")
    warnings = [f"{path}: nothing is known of the columns {listed(unknown)}, which are left out"] if unknown else []
    result = []
    for place, cells in rows:
        row = _row(Cells(path, place, columns, cells), stem)
        warnings += _contradictions(path, place, row)
        result.append(row)
    return PlainTable(path, tuple(result), tuple(warnings))


def _row(cells: Cells, stem: str) -> PlainRow:
    precision = precision_in(cells)
    device = cells.text("device")
    platform = cells.text("platform") or device or stem
    return PlainRow(
        platform=platform,
        application=cells.text("application"),
        kernel=cells.text("kernel"),
        label=cells.label(),
        device=device or platform,
        supported=supported_in(cells),
        work=cells.by_precision("work", precision),
        performance=cells.by_precision("performance", precision),
        seconds=cells.number("seconds"),
        canonical=cells.number("canonical"),
        attainable=cells.number("attainable"),
        fma_share=cells.number("fma_share"),
        launches=cells.whole("launches"),
        traffic=cells.by_level("traffic"),
        intensity=cells.by_level("intensity"),
        roofs=cells.roofs(precision),
        columns=cells.used(),
        note=cells.text("note"),
    )


def _contradictions(path: str, place: str, row: PlainRow) -> list[str]:
    found = []
    for precision, work in row.work.items():
        stated, computed = row.performance.get(precision, math.nan), work / row.seconds
        if abs(computed - stated) > _AGREE * stated:
            found.append(f"{path}: {place} states {stated:.4g} FLOP/s, and its work and time make {computed:.4g}, which counts")
        for level, traffic in row.traffic.items():
            stated, computed = row.intensity.get(level, math.nan), work / traffic
            if abs(computed - stated) > _AGREE * stated:
                found.append(
                    f"{path}: {place} states {stated:.4g} FLOP/B, and its work and bytes make {computed:.4g}, which counts"
                )
    return found


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
