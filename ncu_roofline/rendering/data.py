"""The frames of a view as csv, json and parquet: SI units, every digit, a missing number empty or null."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import Any

from ncu_roofline.base.texts import clean
from ncu_roofline.rendering.frames import Column, Frames, Tables, optional, view_of

SCHEMA = "ncu-roofline"
SCHEMA_VERSION = 2
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def _declared(tables: Tables, table: str) -> tuple[str, tuple[Column, ...]]:
    """A table with its columns; the first one if none is named."""
    name = table or next(iter(tables))
    if name not in tables:
        raise ValueError(f"table {name!r} is not one of {', '.join(tables)}")
    return name, tables[name]


def _column(roofline: Frames, table: str, one: Column) -> list[Any]:
    """A declared column; a view that has no use for it leaves it missing in every row."""
    missing: dict[str, Any] = {"str": "", "float": math.nan, "int": -1}
    return optional(roofline, table, one.name, missing[one.dtype])


def _json_values(roofline: Frames, table: str, one: Column) -> list[Any]:
    """A column as JSON knows it: NaN and infinities, which it does not, become null."""
    values = _column(roofline, table, one)
    if one.dtype == "float":
        return [float(value) if math.isfinite(value) else None for value in values]
    return [int(value) for value in values] if one.dtype == "int" else [str(value) for value in values]


def units_of(frames: Any, tables: Tables) -> dict[str, str]:
    """Units by column of a result's tables; where rows count other operations than FLOPs, without those that `unit` tells."""
    units = {one.name: one.unit for declared in tables.values() for one in declared if one.unit}
    for table, declared in tables.items():
        by_row = any(one.name == "unit" for one in declared) and "op" in optional(frames, table, "unit", "")
        for one in declared:
            if by_row and one.unit.startswith("flop"):
                units.pop(one.name, None)
    return units


def json_rows(frames: Any, table: str, declared: tuple[Column, ...]) -> list[dict[str, Any]]:
    """The rows of a table as JSON knows them."""
    values = [_json_values(frames, table, column) for column in declared]
    return [dict(zip([column.name for column in declared], row, strict=True)) for row in zip(*values, strict=True)]


def render_json(roofline: Frames, *, tables: Tables) -> bytes:
    """All tables of a view as strict JSON, one row per line.

    The keys are schema, schema_version, view (but for the ordinary roofline), notes (a list, of views that have some beside
    those of rows), units ({column: unit}) and the tables: points, roofs and kernels, or what the view has.  Units are keys of
    ``ncu_roofline.base.units.UNITS``; columns without entry have none, or name it in a column ``unit``.
    """
    units = units_of(roofline, tables)
    parts = [f'"schema": {json.dumps(SCHEMA)}', f'"schema_version": {SCHEMA_VERSION}', f'"units": {json.dumps(units)}']
    if (view := view_of(roofline)) != "roofline":
        parts.insert(2, f'"view": {json.dumps(view)}')
    if (notes := getattr(roofline, "notes", None)) is not None:
        parts.insert(-1, f'"notes": {json.dumps(list(notes))}')
    for table, declared in tables.items():
        lines = [json.dumps(row, allow_nan=False) for row in json_rows(roofline, table, declared)]
        body = ",\n".join(f"  {line}" for line in lines)
        parts.append(f'"{table}": [\n{body}\n]' if lines else f'"{table}": []')
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode("ascii")


def csv_text(value: object) -> str:
    """A text for a cell; one that a spreadsheet would take for a formula gets an apostrophe before it.

    Blanks that it begins with stay: they indent lines of source.
    """
    text = str(value)
    indent, text = text[: len(text) - len(text.lstrip(" "))], clean(text, None)
    return f"'{indent}{text}" if text.startswith(_FORMULA) else f"{indent}{text}" if text else ""


def _csv_values(roofline: Frames, table: str, one: Column) -> list[str]:
    values = _column(roofline, table, one)
    if one.dtype == "float":
        return ["" if math.isnan(value) else repr(float(value)) for value in values]
    return [str(int(value)) for value in values] if one.dtype == "int" else [csv_text(value) for value in values]


def render_csv(roofline: Frames, *, tables: Tables, table: str = "") -> bytes:
    """One frame as csv: a header of column names, then one line per row, in the units of its columns."""
    table, declared = _declared(tables, table)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([column.name for column in declared])
    writer.writerows(zip(*(_csv_values(roofline, table, column) for column in declared), strict=True))
    return buffer.getvalue().encode("utf-8", "replace")


def render_parquet(roofline: Frames, *, tables: Tables, table: str = "") -> bytes:
    """One frame as parquet; unit and meaning of a column are metadata of its field.  Needs pyarrow."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}
    fields, arrays = [], []
    table, declared = _declared(tables, table)
    for column in declared:
        values = _column(roofline, table, column)
        if column.dtype == "str":
            values = [str(value).encode("utf-8", "replace").decode() for value in values]
        elif column.dtype == "float":
            values = [None if math.isnan(value) else float(value) for value in values]
        arrays.append(pa.array(values, type=types[column.dtype]))
        fields.append(pa.field(column.name, types[column.dtype], metadata={"unit": column.unit, "meaning": column.meaning}))
    schema = pa.schema(fields, metadata={"schema": SCHEMA, "schema_version": str(SCHEMA_VERSION), "table": table})
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), buffer)
    return buffer.getvalue()
