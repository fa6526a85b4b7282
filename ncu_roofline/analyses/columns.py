"""The columns of analyses, which are data: `data/columns` has a file for each."""

from __future__ import annotations

from typing import Any

from ncu_roofline.chips.fields import DATA, read
from ncu_roofline.rendering.document import Column


def columns_of(file: str) -> dict[str, tuple[Column, ...]]:
    """The columns of a file of `data/columns` by table, in its order.

    A row is ``column = [unit, meaning, what people see of it]``, the last the other fields of a `Column` where some differ; the
    unit of texts is "text", that of whole numbers "integer", and that of texts of numbers, to the right as these, "cell".
    """
    dtypes = {"text": "str", "integer": "int", "cell": "text"}
    return {
        table: tuple(
            Column(name, dtypes.get(unit, "float"), "" if unit in dtypes else unit, meaning, **(seen[0] if seen else {}))
            for name, (unit, meaning, *seen) in rows.items()
        )
        for table, rows in read(DATA / "columns" / f"{file}.toml", dict[str, dict[str, Any]]).items()
    }
