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
_INFINITE = (math.inf, -math.inf)
_MISSING: dict[str, Any] = {"str": "", "float": math.nan, "int": -1}


def _declared(tables: Tables, table: str) -> tuple[str, tuple[Column, ...]]:
    """A table with its columns; the first one if none is named."""
    name = table or next(iter(tables))
    if name not in tables:
        raise ValueError(f"table {name!r} is not one of {', '.join(tables)}")
    return name, tables[name]


def _values(frames: Frames, table: str, one: Column) -> list[Any]:
    """A declared column as Python values; a view that has no use for it leaves it missing in every row."""
    made: Any = {"str": str, "float": float, "int": int}[one.dtype]
    return list(map(made, optional(frames, table, one.name, _MISSING[one.dtype])))


def units_of(frames: Any, tables: Tables) -> dict[str, str]:
    """Units by column of a result's tables; where rows count other operations than FLOPs, without those that `unit` tells."""
    units = {one.name: one.unit for declared in tables.values() for one in declared if one.unit}
    for table, declared in tables.items():
        if any(one.name == "unit" for one in declared) and "op" in optional(frames, table, "unit", ""):
            for one in declared:
                if one.unit.startswith("flop"):
                    units.pop(one.name, None)
    return units


def json_rows(frames: Any, table: str, declared: tuple[Column, ...]) -> list[dict[str, Any]]:
    """The rows of a table as JSON knows them: NaN and infinities, which it does not, become null."""
    columns = [_values(frames, table, one) for one in declared]
    known = ([None if value in _INFINITE or value != value else value for value in column] for column in columns)
    return [dict(zip([one.name for one in declared], row, strict=True)) for row in zip(*known, strict=True)]


def render_json(roofline: Frames, *, tables: Tables) -> bytes:
    """All tables of a view as strict JSON, one row per line.

    The keys are schema, schema_version, view (but for the ordinary roofline), notes (a list, of views that have some beside
    those of rows), units ({column: unit}) and the tables: points, roofs and kernels, or what the view has.  Units are keys of
    ``ncu_roofline.base.units.UNITS``; columns without entry have none, or name it in a column ``unit``.
    """
    head: dict[str, Any] = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION}
    if (view := view_of(roofline)) != "roofline":
        head["view"] = view
    if (notes := getattr(roofline, "notes", None)) is not None:
        head["notes"] = list(notes)
    parts = [f'"{name}": {json.dumps(value)}' for name, value in {**head, "units": units_of(roofline, tables)}.items()]
    for table, declared in tables.items():
        body = ",\n".join(f"  {json.dumps(row, allow_nan=False)}" for row in json_rows(roofline, table, declared))
        parts.append(f'"{table}": [\n{body}\n]' if body else f'"{table}": []')
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode("ascii")


def csv_text(value: object) -> str:
    """A text for a cell; one that a spreadsheet would take for a formula gets an apostrophe before it.

    Blanks that it begins with stay: they indent lines of source.
    """
    text = str(value)
    indent, text = text[: len(text) - len(text.lstrip(" "))], clean(text, None)
    return f"'{indent}{text}" if text.startswith(_FORMULA) else f"{indent}{text}" if text else ""


def render_csv(roofline: Frames, *, tables: Tables, table: str = "") -> bytes:
    """One frame as csv: a header of column names, then one line per row, in the units of its columns."""
    table, declared = _declared(tables, table)
    cells: dict[str, Any] = {"str": csv_text, "int": str, "float": lambda value: "" if math.isnan(value) else repr(value)}
    columns = [list(map(cells[one.dtype], _values(roofline, table, one))) for one in declared]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([column.name for column in declared])
    writer.writerows(zip(*columns, strict=True))
    return buffer.getvalue().encode("utf-8", "replace")


def render_parquet(roofline: Frames, *, tables: Tables, table: str = "") -> bytes:
    """One frame as parquet; unit and meaning of a column are metadata of its field.  Needs pyarrow."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}
    fields, arrays = [], []
    table, declared = _declared(tables, table)
    for column in declared:
        values = _values(roofline, table, column)
        if column.dtype == "str":
            values = [value.encode("utf-8", "replace").decode() for value in values]
        elif column.dtype == "float":
            values = [None if math.isnan(value) else value for value in values]
        arrays.append(pa.array(values, type=types[column.dtype]))
        fields.append(pa.field(column.name, types[column.dtype], metadata={"unit": column.unit, "meaning": column.meaning}))
    schema = pa.schema(fields, metadata={"schema": SCHEMA, "schema_version": str(SCHEMA_VERSION), "table": table})
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), buffer)
    return buffer.getvalue()
