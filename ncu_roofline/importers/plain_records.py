"""Plain tables as records: CSV, TSV and semicolons with a header line, or a JSON list of objects."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ncu_roofline.importers.cells import damaged
from ncu_roofline.importers.table_headers import AmbiguousHeaderError, header
from ncu_roofline.importers.text import text_of

LISTS = ("rows", "points", "kernels", "data")
"""Keys under which a JSON object may hold the list of rows."""
_NEXT = "Give a CSV or JSON table with columns such as platform, flops, bytes_dram and seconds."
_KEY = re.compile(r'"([^"\\\n]{1,80})"\s*:')
# Columns that only the tables of this program have; they hold results, and their bandwidth is no roof.
_OURS = {"roof_origin", "binding_fraction"}

Record = tuple[str, dict[str, Any]]


def recognises(head: str) -> bool:
    """Whether the header line, or the keys of a JSON list, name work or performance, and traffic, intensity or a roof."""
    text = head.lstrip()
    if text.startswith(("[", "{")):
        return '"schema"' not in text and suffices(list(dict.fromkeys(_KEY.findall(text))))
    lines = _content(head)
    try:
        return suffices(_cells(lines[0])) if lines else False
    except csv.Error:
        return False


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


def records(path: str | os.PathLike[str]) -> tuple[list[str], list[Record]]:
    """The names of the columns, and each row by them with the place it stands at.  Raises RooflineError."""
    text = text_of(path)
    rows = list(_json_rows(path, text) if text.lstrip()[:1] in ("[", "{") else _csv_rows(path, text))
    if not rows:
        raise damaged(path, "the table has no rows", _NEXT)
    return list(dict.fromkeys(name for _, row in rows for name in row)), rows


def _content(text: str) -> list[str]:
    """The lines that hold something."""
    return [line for line in re.split(r"\r\n|\r|\n", text) if line.strip() and not line.lstrip().startswith("#")]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line], delimiter=_delimiter(line), skipinitialspace=True))]


def _delimiter(line: str) -> str:
    return max(",;\t", key=line.count)


def _csv_rows(path: str | os.PathLike[str], text: str) -> Iterator[Record]:
    lines = _content(text)
    names = _cells(lines[0])
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise damaged(path, f"the column {min(repeated)!r} stands there twice", "Give each column a name of its own.")
    try:
        for number, cells in enumerate(csv.reader(lines[1:], delimiter=_delimiter(lines[0]), skipinitialspace=True), start=1):
            if len(cells) != len(names):
                reason = f"row {number} has {len(cells)} cells, and the header {len(names)}"
                raise damaged(path, reason, "Fill the row up, and quote cells that hold the separator.")
            yield f"row {number}", dict(zip(names, (cell.strip() for cell in cells), strict=True))
    except csv.Error as error:
        raise damaged(path, str(error), _NEXT) from error


def _json_rows(path: str | os.PathLike[str], text: str) -> Iterator[Record]:
    try:
        document = json.loads(text)
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
