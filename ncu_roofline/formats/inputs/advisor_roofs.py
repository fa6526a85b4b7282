"""The roofs that Intel Advisor measured: ``advisor --report=roofs --format=csv``, in byte/s and FLOP/s.

Columns Name, Bandwidth, Type (memory or compute) and Device; names such as "DRAM Bandwidth", "DP Vector FMA Peak", "SP Vector
Add Peak", "Scalar Add Peak".  Roofs of part of the machine ("DRAM Bandwidth (single node)", "(single-threaded)") are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from os import PathLike

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.ceilings import Ceiling, Ceilings
from ncu_roofline.formats.inputs.tables import PointTable
from ncu_roofline.formats.inputs.text import Table, row_of, text_of

_HEADING = ("name", "bandwidth", "type")
_ROOFS = {
    **{f"{level} bandwidth": level for level in ("l1", "l2", "l3", "dram", "mcdram")},
    "dp vector fma peak": "fp64.fma",
    "dp vector add peak": "fp64.nofma",
    "sp vector fma peak": "fp32.fma",
    "sp vector add peak": "fp32.nofma",
}


def recognises(head: str) -> bool:
    """A table with the columns Name, Bandwidth and Type, and one of Advisor's roofs in it."""
    lines = head.split("\n")
    first = _heading(lines)
    return first is not None and any(name in line.lower() for line in lines[first + 1 :] for name in _ROOFS)


def _heading(lines: Sequence[str]) -> int | None:
    return next((at for at, line in enumerate(lines) if tuple(cell.lower() for cell in row_of(line)[:3]) == _HEADING), None)


def read(path: str | PathLike[str]) -> PointTable:
    """Raises RooflineError: there are roofs in it and nothing that ran under them."""
    raise RooflineError("Cannot read", path, "it holds Intel Advisor's roofs and no kernels", "Give it with --ceilings.")


def read_ceilings(path: str | PathLike[str]) -> Ceilings:
    """The roofs of a CPU that the file does not name.  Raises RooflineError for damaged files and for those without a roof."""
    table, lines = Table(path), text_of(path).split("\n")
    first = _heading(lines)
    if first is None:
        raise table.damaged("the heading of its table is damaged")
    by_id: dict[str, Ceiling] = {}
    for number, line in enumerate(lines[first + 1 :], first + 2):
        cells = row_of(line)
        if not any(cells):
            continue
        if len(cells) < 3:
            raise table.damaged(f"line {number} has {len(cells)} of its 3 or more columns")
        value, roof = table.number(cells[0], number, cells[1]), _ROOFS.get(cells[0].lower())
        if value and roof:
            unit = "FLOP/s" if "." in roof else "B/s"
            by_id.setdefault(roof, Ceiling(roof, value, unit, math.nan, "", source=f"Intel Advisor's {cells[0]}"))
    if not by_id:
        raise table.damaged("none of its roofs is known here", "Give the report that `advisor --report=roofs` wrote.")
    return Ceilings(table.path, "", "", (0, 0), "", by_id)
