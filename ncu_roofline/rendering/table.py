"""A table for a terminal of some width: columns that matter least go first, then names are cut."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from ncu_roofline.model.names import shorten

_GAP = "  "
_NAME_MIN, _NAME_LAST = 16, 8


def columns_wide(text: str) -> int:
    """Columns that ``text`` takes in a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


@dataclass(frozen=True)
class Cells:
    """Columns as (header, 0 if it has to stay, else its place among those that go, highest first; texts); names come first."""

    columns: tuple[tuple[str, int, list[str]], ...]
    left: tuple[str, ...] = ()


def table_lines(cells: Cells, width: int) -> list[str]:
    """Header, rule and rows, no wider than ``width``."""
    kept = list(cells.columns)
    while _room(kept, width) < min(_NAME_MIN, _wide(kept[0])) and any(spare for _, spare, _ in kept):
        kept.remove(max(kept, key=lambda column: column[1]))
    names = min(_wide(kept[0]), max(_room(kept, width), _NAME_LAST))
    widths = [names, *map(_wide, kept[1:])]
    texts = [[header for header, _, _ in kept], *zip(*(column[2] for column in kept), strict=True)]
    lines = []
    for row in texts:
        parts = [shorten(row[0], names), *row[1:]]
        padded = [
            part + " " * (size - columns_wide(part)) if header in cells.left else " " * (size - columns_wide(part)) + part
            for part, size, (header, _, _) in zip(parts, widths, kept, strict=True)
        ]
        lines.append(_GAP.join(padded).rstrip())
    lines.insert(1, "-" * min(sum(widths) + len(_GAP) * (len(widths) - 1), width))
    return lines


def _wide(column: tuple[str, int, list[str]]) -> int:
    return max(map(columns_wide, [column[0], *column[2]]))


def _room(kept: list[tuple[str, int, list[str]]], width: int) -> int:
    """Characters left for the names."""
    return width - sum(_wide(column) + len(_GAP) for column in kept[1:])
