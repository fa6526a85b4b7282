"""Source files of kernels, looked for in folders that the user names; never where a report says that they were compiled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path

from ncu_roofline.base.files import read_file

_MOST = 16 << 20  # bytes of a source file
_MOST_LINES = 1_000_000
_DEEPEST = 64  # parts of a path that are looked at
_SEPARATOR = re.compile(r"[\\/]+")


def find_source(name: str, folders: Sequence[str]) -> tuple[str, ...] | None:
    """The lines of the file whose path ends most like ``name``, in the first folder that has one; None if none can be read."""
    parts = [part for part in _parts(name) if "\0" not in part]
    for folder in folders:
        for start in range(len(parts)):
            path = Path(folder, *parts[start:])
            try:
                if path.is_file():
                    return lines_of_source(read_file(path, _MOST).decode("utf-8", "replace"))
            except (OSError, ValueError):  # too long a name, no permission, larger than any source
                continue
    return None


def most_alike(name: str, others: Iterable[str]) -> str | None:
    """The path that ends most like ``name``, at least with the same file; None without such a one, or with several."""
    mine, ends = _parts(name), {}
    for other in others:
        pairs = zip(reversed(mine), reversed(_parts(other)), strict=False)
        ends[other] = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    longest = max(ends.values(), default=0)
    found = [other for other, end in ends.items() if end == longest]
    return found[0] if longest and len(found) == 1 else None


def last_part(path: str) -> str:
    """The name of the file itself; "" of none."""
    return _parts(path)[-1] if _parts(path) else ""


def _parts(path: str) -> list[str]:
    return [part for part in _SEPARATOR.split(path) if part not in ("", ".", "..")][-_DEEPEST:]


def lines_of_source(text: str) -> tuple[str, ...]:
    """The lines of a source file, as compilers count them: the first million of them, which no source has."""
    return tuple(text.replace("\r\n", "\n").split("\n", _MOST_LINES)[:_MOST_LINES])
