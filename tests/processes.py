"""The processes of this machine, where /proc tells."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def parents() -> dict[int, int]:
    """The parent of each process that has not ended."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            state, parent, *_ = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if state not in "ZX":
                found[int(path.parent.name)] = int(parent)
    return found


def descendants(pid: int) -> set[int]:
    """The processes that a process started, and those that they started."""
    known = parents()
    found: set[int] = set()
    while new := {child for child, parent in known.items() if parent in found | {pid}} - found:
        found |= new
    return found
