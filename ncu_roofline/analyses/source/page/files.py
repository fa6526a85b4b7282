"""The source files that a page shows: whole ones as long as there is room, else what is near counted lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ncu_roofline.analyses.source.frames import SourceRoofline
from ncu_roofline.base.texts import printable

_ROOM = 1_500_000  # characters of all files together
_MOST = 5_000  # lines of a file that is shown whole
_AROUND = 20  # lines beside counted ones of longer files
_LINE = 400  # characters of a line
_TAB = 4


class Files:
    """Files by their places; "" is the code without a line."""

    def __init__(self, frames: SourceRoofline) -> None:
        self._called, self._texts = frames.called, frames.texts
        self._places: dict[str, int] = {}
        self._counted: dict[str, set[int]] = {}

    def place(self, file: str) -> int:
        """The number of a file."""
        return self._places.setdefault(file, len(self._places))

    def use(self, lines: Iterable[Mapping[str, Any]], instructions: Iterable[Mapping[str, Any]]) -> None:
        """Note which lines have counts: what is near them is shown."""
        for row in (*lines, *instructions):
            if row["line"] > 0:
                self._counted.setdefault(row["file"], set()).add(row["line"])

    def payload(self) -> list[dict[str, Any]]:
        """Per file what it is called, whether all of it is shown, and the parts that are: [first line, texts]."""
        room, found = _ROOM, []
        for name in self._places:
            parts = self._parts(name, room)
            room -= sum(len(line) + 1 for _, texts in parts for line in texts)
            whole = parts == [] or (len(parts) == 1 and len(parts[0][1]) == len(self._texts[name]))
            found.append({"label": self._called(name), "whole": whole, "parts": parts})
        return found

    def _parts(self, name: str, room: int) -> list[tuple[int, list[str]]]:
        texts = self._texts.get(name, ())
        if not texts or not name:
            return []
        if len(texts) <= _MOST and sum(map(len, texts)) <= room:
            return [(1, _shown(texts))]
        near = sorted({at for line in self._counted.get(name, ()) for at in range(line - _AROUND, line + _AROUND + 1)})
        parts: list[tuple[int, list[str]]] = []
        for line in near:
            if not 0 < line <= len(texts):
                continue
            (text,) = _shown(texts[line - 1 : line])
            room -= len(text) + 1
            if room < 0:
                break
            if parts and parts[-1][0] + len(parts[-1][1]) == line:
                parts[-1][1].append(text)
            else:
                parts.append((line, [text]))
        return parts


def _shown(texts: Iterable[str]) -> list[str]:
    """Lines as they are shown: tabs as blanks, nothing that changes directions or looks like nothing, cut where very long."""
    cut = (text[: _LINE + 1].expandtabs(_TAB) for text in texts)
    return [printable(text if len(text) <= _LINE else f"{text[:_LINE]}\N{HORIZONTAL ELLIPSIS}") for text in cut]
