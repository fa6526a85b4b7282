"""The columns of frames, which are data: `data/columns` has a file for each analysis; the model has `roofline.toml`."""

from __future__ import annotations

from typing import Any

from ncu_roofline.chips.fields import DATA, read
from ncu_roofline.rendering.document import Column


def columns_of(file: str) -> dict[str, tuple[Column, ...]]:
    """The columns of a file of `data/columns` by table, in its order.

    A row is ``column = [unit, meaning, what people see of it]``, the last the other fields of a `Column` where some differ; the
    unit of texts is "text", that of whole numbers "integer", and that of texts of numbers, to the right as these, "cell".  The
    row of a table's name that holds a text stands for the columns of that table, which is above.
    """
    dtypes = {"text": "str", "integer": "int", "cell": "text"}
    found: dict[str, tuple[Column, ...]] = {}
    for table, rows in read(DATA / "columns" / f"{file}.toml", dict[str, dict[str, Any]]).items():
        columns: list[Column] = []
        for name, row in rows.items():
            if isinstance(row, str):
                columns += found[name]
                continue
            unit, meaning, *seen = row
            more = {key: tuple(value) if isinstance(value, list) else value for one in seen for key, value in one.items()}
            columns.append(Column(name, dtypes.get(unit, "float"), "" if unit in dtypes else unit, meaning, **more))
        found[table] = tuple(columns)
    return found


WHERE, POINTS, ROOFS, KERNELS = map(columns_of("roofline").__getitem__, ("where", "points", "roofs", "kernels"))

UNUSED = "unused"
"""Origin of a measured roof that launches are not held against: theory judges in its place."""
LEVELS_WITH_COLUMNS = tuple(one.name.removeprefix("bandwidth_") for one in KERNELS if one.name.startswith("bandwidth_"))
"""Levels whose bandwidth and share of the roof have columns of their own in the frame of kernels."""
