"""What must hold between the numbers of two reports when the difference between them is known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from tests.attack.attack import Anything, AsWithout, Doubled, Gone, Promise, Same, SameNumbers, Scaled

Row = Mapping[str, Any]
Tables = Mapping[str, Any]

# What a row says of itself besides numbers and what it stands for; "kernel" is made unique among the names there are.
_SAID = {"notes", "reason", "missing", "metrics", "name", "kernel", "nvtx", "report", "label", "step", "ncu_version"}
_OF_THE_WHOLE = {"time_share", "launch"}
_KEY = ("launch", "precision", "level")
_EXACT = 1e-9


def compare(promise: Promise, before: Tables, after: Tables) -> str:
    """What of the promise does not hold of the tables of two reports; "" for nothing."""
    if isinstance(promise, Scaled):
        return _scaled(promise, before, after)
    if isinstance(promise, (Same, SameNumbers, AsWithout)):
        return _all_rows(before, after, _SAID)
    if isinstance(promise, Gone):
        kept = {index: index - (index > promise.launch) for index in range(_launches(before)) if index != promise.launch}
        return _some_rows(before, after, kept) or _count(after, len(kept))
    if isinstance(promise, Doubled):
        count = _launches(before)
        return (
            _some_rows(before, after, {index: index for index in range(count)})
            or _some_rows(before, after, {promise.launch: count})
            or _count(after, count + 1)
        )
    assert isinstance(promise, Anything)
    return ""


def _launches(found: Tables) -> int:
    return len(found["kernels"])


def _count(found: Tables, expected: int) -> str:
    return "" if _launches(found) == expected else f"{_launches(found)} kernels, not {expected}"


def _all_rows(before: Tables, after: Tables, leave: set[str]) -> str:
    for name in [key for key, value in before.items() if isinstance(value, list)]:
        if len(before[name]) != len(after[name]):
            return f"{len(after[name])} {name} instead of {len(before[name])}: {_lost(before[name], after[name])}"
        for one, other in zip(before[name], after[name], strict=True):
            problem = _row(name, one, other, leave)
            if problem:
                return problem
    return ""


def _lost(before: Iterable[Row], after: Iterable[Row]) -> str:
    first, second = ({tuple(row.get(k, row.get("roof")) for k in _KEY) for row in rows} for rows in (before, after))
    return f"lost {sorted(map(str, first - second))[:4]}, new {sorted(map(str, second - first))[:4]}"


def _some_rows(before: Tables, after: Tables, numbers: Mapping[int, int]) -> str:
    """Whether all rows of some launches are those of launches with other numbers in another report."""
    for name in ("points", "kernels"):
        for launch, new in numbers.items():
            ours = [row for row in before[name] if row["launch"] == launch]
            theirs = [row for row in after[name] if row["launch"] == new]
            if len(ours) != len(theirs):
                return f"launch {launch} had {len(ours)} {name}, now {len(theirs)}"
            for one, other in zip(ours, theirs, strict=True):
                problem = _row(name, one, other, _OF_THE_WHOLE)
                if problem:
                    return problem
    return ""


def _row(name: str, one: Row, other: Row, leave: set[str]) -> str:
    for column, value in one.items():
        if column not in leave and not same(value, other[column]):
            where = ", ".join(str(one[key]) for key in (*_KEY, "roof") if key in one)
            return f"{name} ({where}): {column} was {value!r}, is {other[column]!r}"
    return ""


def same(one: Any, other: Any, factor: float = 1.0) -> bool:
    """Whether two cells say the same, the other times ``factor``."""
    if isinstance(one, float) and isinstance(other, (int, float)) and not isinstance(other, bool):
        return math.isclose(one * factor, other, rel_tol=_EXACT, abs_tol=0.0)
    return bool(one == other)


def _scaled(promise: Scaled, before: Tables, after: Tables) -> str:
    others = {index: index for index in range(_launches(before)) if index != promise.launch}
    problem = _some_rows(before, after, others)
    if problem:
        return problem
    mine = [[row for row in found["points"] if row["launch"] == promise.launch] for found in (before, after)]
    if len(mine[0]) != len(mine[1]):
        return f"launch {promise.launch} had {len(mine[0])} points, now {len(mine[1])}"
    for one, other in zip(*mine, strict=True):
        if promise.precision and one["precision"] == "mixed":
            continue  # a sum with work that did not change
        here = promise.level in ("", one["level"]) and promise.precision in ("", one["precision"])
        for column, factor in promise.factors.items():
            if not same(one[column], other[column], factor if here else 1.0):
                at = f"{one['precision']} at {one['level']}"
                return f"{at}: {column} was {one[column]!r}, is {other[column]!r}, not {factor if here else 1} times that"
    return ""
