"""A markdown_table for a terminal of some width: columns that matter least go first, then names are cut."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ncu_roofline.texts import clean, shorten

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


# Entities rather than backslashes where GitHub's own additions (links, mentions, emoji, formulas, cells) look before escapes.
_ENTITIES = re.compile(r"[<>&@$|`\"]|:(?! )|(?<=www)\.", re.IGNORECASE)


_BACKSLASH = re.compile(r"[\\*_{}\[\]()#!~^]|^[-+=]|^\d+(?=[.)])")


def escape(text: str) -> str:
    """``text`` as Markdown that shows it literally: no markup, no html, no links, mentions or formulas, no line ends."""
    text = _BACKSLASH.sub(lambda found: f"\\{found.group()}" if not found.group().isdigit() else found.group(), clean(text))
    return _ENTITIES.sub(lambda found: f"&#{ord(found.group())};", text)


def markdown_table(headers: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A GitHub markdown_table, the first ``left`` columns to the left, the others to the right."""
    lines = [headers, [":--" if index < left else "--:" for index in range(len(headers))], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
