"""Files that are given together and complete each other: the counts of one run, the times of another.

Only nvprof needs that so far: it can't count and time in one run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ncu_roofline.importers import nvprof
from ncu_roofline.importers.tables import PointTable

Other = TypeVar("Other")


def joined(items: Sequence[Other | PointTable]) -> list[Other | PointTable]:
    """The same items, but tables that complete each other as one, at the place of the first of them.

    Items that are no tables, and tables that nothing completes, come back as they are.
    """
    tables = [item for item in items if isinstance(item, nvprof.NvprofTable)]
    if len(tables) < 2:
        return list(items)
    made = nvprof.joined(tables)
    place = {table.path: number for number, table in reversed(list(enumerate(tables)))}
    first: dict[int, list[Other | PointTable]] = {}
    for table in made:
        first.setdefault(min(place[path] for path in table.paths), []).append(table)
    result: list[Other | PointTable] = []
    number = 0
    for item in items:
        if isinstance(item, nvprof.NvprofTable):
            result += first.get(number, [])
            number += 1
        else:
            result.append(item)
    return result
