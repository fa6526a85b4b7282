"""Frames with declared columns, from any analysis: read column by column, of several GPUs one by one, and written as csv, json
and parquet: SI units, every digit, a missing number empty or null."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ncu_roofline.base.groups import grouped
from ncu_roofline.base.texts import clean
from ncu_roofline.rendering.document import Column as Column
from ncu_roofline.rendering.document import Document, Note

SCHEMA = "ncu-roofline"
SCHEMA_VERSION = 2
Frames = Any  # what renderers draw: the frames of a Roofline or another analysis, columns as in ``data/columns/roofline.toml``
Tables = Mapping[str, tuple[Column, ...]]  # the tables of an analysis by name, with their columns
_PER_KERNEL = ("work", "traffic")  # what frames hold beside their tables, a number per row of the kernels
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_INFINITE = (math.inf, -math.inf)
_TYPES: dict[str, tuple[Any, Any]] = {"str": (str, ""), "float": (float, math.nan), "int": (int, -1)}  # and what is missing


def table(frames: Frames, name: str) -> Any:
    """The ``points``, ``roofs`` or ``kernels`` of a Roofline as a mapping of columns; without pandas where it holds arrays."""
    columns = getattr(frames, f"{name.removesuffix('s')}_columns", None)
    return getattr(frames, name) if columns is None else columns


def column(frames: Frames, name: str, label: str) -> list[Any]:
    """One column of the frame ``name`` as Python values."""
    values: list[Any] = table(frames, name)[label].tolist()
    return values


def optional(frames: Frames, name: str, label: str, missing: Any) -> list[Any]:
    """A column that not every view has: ``missing`` in each row where the frame ``name`` lacks it."""
    columns = table(frames, name)
    return column(frames, name, label) if label in columns else [missing] * len(columns[next(iter(columns))])


def rows(frames: Frames, name: str, *labels: str) -> Iterator[tuple[Any, ...]]:
    """Some columns of the frame ``name``, row by row, as Python values."""
    return zip(*(column(frames, name, label) for label in labels), strict=True)


def records(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a table of columns as Python values by column."""
    return [dict(zip(table, row, strict=True)) for row in zip(*(table[name].tolist() for name in table), strict=True)]


def view_of(frames: object) -> str:
    """The view of what is drawn: "roofline" for frames that name none."""
    return str(getattr(frames, "view", "roofline"))


def by_gpu(frames: Frames) -> dict[str, Frames]:
    """The frames (of several GPUs a dataclass) of each GPU model by its name, that with most time first, with shares of its
    time; the frames themselves where there is one."""
    times: dict[str, list[float]] = grouped(rows(frames, "kernels", "device", "seconds"))
    time = {device: sum(seconds for seconds in known if seconds > 0) for device, known in times.items()}
    if len(time) < 2:
        return dict.fromkeys(time or [""], frames)
    whole = time | {device: seconds for device, _, _, seconds in getattr(frames, "everything", ())}
    found: dict[str, Frames] = {}
    for device in sorted(time, key=lambda name: -time[name]):
        kernels, parts = np.asarray(table(frames, "kernels")["device"]) == device, dict[str, Any]()
        for field in fields(frames):
            value = getattr(frames, field.name)
            if field.name in _PER_KERNEL:
                parts[field.name] = {name: np.asarray(values)[kernels] for name, values in value.items()}
            elif field.name == "sources":
                parts[field.name] = tuple(pair for pair in value if pair[0] == device)
            elif not isinstance(value, (str, tuple)) and "device" in value:
                here = np.asarray(value["device"]) == device
                part = parts[field.name] = {name: np.asarray(value[name])[here] for name in value}
                if "time_share" in part:
                    part["time_share"] = part["seconds"] / whole[device] if whole[device] > 0 else np.full(here.sum(), np.nan)
        found[device] = replace(frames, **parts)
    return found


def each_gpu(frames: Frames, title: str, make: Callable[[Frames, str], Document], notes: Sequence[Note]) -> Document:
    """What is made of some frames and a title: one document with ``notes``, with a part per GPU where there are several."""
    parts = by_gpu(frames)
    if len(parts) == 1:
        return replace(make(frames, title), notes=notes)
    return Document(title, blocks=[make(part, device) for device, part in parts.items()], notes=notes)


def _declared(frames: Frames, tables: Tables, table: str) -> tuple[str, list[tuple[Column, list[Any]]]]:
    """The name of a table, the first one if none is named, and its columns with their values; missing where a view has none."""
    name = table or next(iter(tables))
    if name not in tables:
        raise ValueError(f"table {name!r} is not one of {', '.join(tables)}")
    return name, [(one, _values(frames, name, one)) for one in tables[name]]


def _values(frames: Frames, table: str, one: Column) -> list[Any]:
    made, missing = _TYPES[one.dtype]
    return list(map(made, optional(frames, table, one.name, missing)))


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


def head_of(view: str) -> dict[str, Any]:
    """What the JSON of a view begins with."""
    return {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, **({"view": view} if view != "roofline" else {})}


def render_json(roofline: Frames, *, tables: Tables) -> bytes:
    """All tables of a view as strict JSON, one row per line.

    The keys are schema, schema_version, view (but for the ordinary roofline), notes (a list, of views that have some beside
    those of rows), units ({column: key of UNITS}, without columns that have none or name it in a column ``unit``) and the
    tables: points, roofs and kernels, or what the view has."""
    head = head_of(view_of(roofline))
    if (notes := getattr(roofline, "notes", None)) is not None:
        head["notes"] = list(notes)
    parts = [f'"{name}": {json.dumps(value)}' for name, value in {**head, "units": units_of(roofline, tables)}.items()]
    for table, declared in tables.items():
        body = ",\n".join(f"  {json.dumps(row, allow_nan=False)}" for row in json_rows(roofline, table, declared))
        parts.append(f'"{table}": [\n{body}\n]' if body else f'"{table}": []')
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode("ascii")


_TEXTS = {"type": "array", "items": {"type": "string"}}
_JSON_TYPES = {"str": "string", "int": "integer", "float": ["number", "null"]}


def json_schema(tables: Tables, head: Mapping[str, Any]) -> dict[str, Any]:
    """What `render_json` writes of some tables behind a head, as a JSON Schema: all keys and columns there are."""

    def closed(properties: Mapping[str, Any], *absent: str) -> dict[str, Any]:
        required = [name for name in properties if name not in absent]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def cell(one: Column) -> dict[str, Any]:
        return {"type": _JSON_TYPES[one.dtype], **({"unit": one.unit} if one.unit else {}), "description": one.meaning}

    units = {one.name: {"const": one.unit} for declared in tables.values() for one in declared if one.unit}
    rows = {
        name: {"type": "array", "items": closed({one.name: cell(one) for one in declared})} for name, declared in tables.items()
    }
    fixed = {name: {"const": value} for name, value in head.items()}
    about = (
        "Unknown, or not applying: null, of whole numbers -1, of texts ''. Units are SI; where a row has a column \"unit\", "
    )
    about += 'it says what "flop" in the units of its columns stands for.'
    properties = {**fixed, "notes": _TEXTS, "units": closed(units, *units), **rows, "warnings": _TEXTS}
    return {"description": about, **closed(properties, "notes", "warnings")}


def csv_text(value: object) -> str:
    """A text for a cell, with the blanks it begins with; what a spreadsheet took for a formula stands behind an apostrophe."""
    text = str(value)
    indent, text = text[: len(text) - len(text.lstrip(" "))], clean(text, None)
    return f"'{indent}{text}" if text.startswith(_FORMULA) else f"{indent}{text}" if text else ""


def render_csv(roofline: Frames, *, tables: Tables, table: str = "") -> bytes:
    """One frame as csv: a header of column names, then one line per row, in the units of its columns."""
    import csv

    cells: dict[str, Any] = {"str": csv_text, "int": str, "float": lambda value: "" if math.isnan(value) else repr(value)}
    _, columns = _declared(roofline, tables, table)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([one.name for one, _ in columns])
    writer.writerows(zip(*(map(cells[one.dtype], values) for one, values in columns), strict=True))
    return buffer.getvalue().encode("utf-8", "replace")


def render_parquet(roofline: Frames, *, tables: Tables, table: str = "") -> bytes:
    """One frame as parquet; unit and meaning of a column are metadata of its field.  Needs pyarrow."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}
    fields, arrays = [], []
    table, columns = _declared(roofline, tables, table)
    for one, values in columns:
        if one.dtype == "str":
            values = [value.encode("utf-8", "replace").decode() for value in values]
        elif one.dtype == "float":
            values = [None if math.isnan(value) else value for value in values]
        arrays.append(pa.array(values, type=types[one.dtype]))
        fields.append(pa.field(one.name, types[one.dtype], metadata={"unit": one.unit, "meaning": one.meaning}))
    schema = pa.schema(fields, metadata={"schema": SCHEMA, "schema_version": str(SCHEMA_VERSION), "table": table})
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), buffer)
    return buffer.getvalue()
