"""The frame of functions: the kernel, the functions that it calls, those that are inlined into these, and what lies outside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from ncu_roofline.analyses.source.counts import IntArray
from ncu_roofline.analyses.source.instructions import Instructions
from ncu_roofline.analyses.source.sums import Sums
from ncu_roofline.model.names import short_names

KERNEL, CALLED, INLINED, ELSEWHERE = "kernel", "called", "inlined", "outside"


@dataclass(frozen=True)
class _Row:
    """A function with the rows of the instructions that belong to it."""

    name: str
    role: str
    rows: IntArray


def function_columns(sums: Sums, kernel: str) -> dict[str, Any]:
    """The kernel (``kernel`` is its mangled name) and what it calls, which add up to all; then, of these, what is inlined."""
    found = sums.instructions
    own = [
        _Row(name, (KERNEL if name == kernel else CALLED) if name else ELSEWHERE, np.flatnonzero(found.owner == number))
        for number, name in enumerate(found.owners)
    ]
    chosen = [*(one for one in own if len(one.rows)), *_inlined(found)]
    index = np.concatenate([*(one.rows for one in chosen), np.empty(0, dtype=np.int64)])
    groups = np.repeat(np.arange(len(chosen)), [len(one.rows) for one in chosen])
    count = len(chosen)
    counts = {name: sums.over(values[index], groups, count) for name, values in found.counts.items()}
    stalls = {name: sums.over(values[index], groups, count) for name, values in sums.stalls.items()}
    places = [_first_place(found, one) for one in chosen]
    return {
        "function": [one.name for one in chosen],
        "name": short_names([one.name for one in chosen]),
        "role": [one.role for one in chosen],
        "file": [file for file, _ in places],
        "line": [line for _, line in places],
        "instructions": [len(one.rows) for one in chosen],
        **sums.table(counts, stalls),
    }


def _inlined(found: Instructions) -> Iterator[_Row]:
    rows: dict[str, list[int]] = {}
    for row, places in enumerate(found.places):
        for name in {place.function for place in places if place.function}:
            rows.setdefault(name, []).append(row)
    for name in sorted(rows):
        yield _Row(name, INLINED, np.array(rows[name], dtype=np.int64))


def _first_place(found: Instructions, one: _Row) -> tuple[str, int]:
    """File and the lowest line of a function: of its own code, not of what is inlined into it."""
    wanted = one.name if one.role == INLINED else ""
    lines: dict[str, int] = {}
    chains = {id(places): places for places in map(found.places.__getitem__, one.rows.tolist())}
    for file, line, function in chain.from_iterable(chains.values()):
        if function == wanted and (file not in lines or line < lines[file]):
            lines[file] = line
    return next(iter(lines.items()), ("", -1))
