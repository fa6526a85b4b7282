"""Cells of other tools' tables: numbers with or without units, what stands for a missing one, and lists of names for people."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable
from os import PathLike

from ncu_roofline.errors import RooflineError

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_MISSING = frozenset({"", "-", "n/a", "na", "nan", "-nan", "<overflow>", "overflow", "no data"})
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([^\d\s].*)?", re.IGNORECASE)


def split_number(text: str) -> tuple[float, str] | None:
    """A cell as number and unit ("61.4us" gives 61.4 and "us"), None where it stands for a missing number.

    Raises ValueError for anything else, negative and infinite numbers included: no tool counts or times less than nothing.
    """
    cell = text.strip()
    if cell.lower() in _MISSING:
        return None
    found = _NUMBER.fullmatch(cell)
    if not found:
        raise ValueError(f"{cell[:40]!r} is no number")
    value = float(found.group(1))
    if value < 0 or math.isinf(value):
        raise ValueError(f"{cell[:40]!r} is no count, rate or time")
    return value, (found.group(2) or "").strip()


def plain_number(text: str) -> float | None:
    """A cell that holds a number without unit, None where it stands for a missing one.  Raises ValueError for anything else."""
    found = split_number(text)
    if found and found[1]:
        raise ValueError(f"{text.strip()[:40]!r} has a unit where a plain number belongs")
    return found[0] if found else None


def row_of(line: str, delimiter: str = ",") -> list[str]:
    """The cells of one line; none for a line that can't be a row (of an application's output, say)."""
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # a NUL, or a cell longer than any tool writes
        return []


def listed(names: Iterable[str], most: int = 6) -> str:
    """Names for a sentence, without repetitions, cut after ``most``: a, b, c and 12 more."""
    unique = list(dict.fromkeys(names))
    more = f" and {len(unique) - most} more" if len(unique) > most else ""
    return ", ".join(unique[:most]) + more


def damaged(
    path: str | PathLike[str], reason: str, next_step: str = "Export it again, and check that it is complete."
) -> RooflineError:
    """The error for a file whose format is known and whose content can't be used."""
    return RooflineError("Cannot read", path, reason, next_step)
