"""The frame of loops: natural loops of the control flow, with what inner loops and called functions did in their sums."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np

from ncu_roofline.analyses.source.calls import Calls
from ncu_roofline.analyses.source.counts import FloatArray
from ncu_roofline.analyses.source.instructions import NOWHERE, OUTSIDE, Instructions
from ncu_roofline.analyses.source.sums import Sums
from ncu_roofline.analyses.source.trips import entries_and_trips
from ncu_roofline.formats.sass.lines import Place

_INSIDE = 0.9
"""Share of a loop's instructions that are inlined at one place from which on the loop is one of the function inlined there."""


def loop_columns(sums: Sums, calls: Calls) -> dict[str, Any]:
    """A row per loop, then the code in none, then what lies outside of the code; without the columns of performance."""
    found = sums.instructions
    tree, innermost = LoopTree(found, calls), calls.innermost
    rest = [one for one in (NOWHERE, OUTSIDE) if (innermost == one).any()]
    index, size = np.where(innermost >= 0, innermost, -1), len(tree)
    inner = {name: tree.with_inner(values) for name, values in sums.by(index, size).items()}
    stalls = {name: tree.with_inner(values) for name, values in sums.stalls_by(index, size).items()}
    for one in rest:
        alone = np.where(innermost == one, 0, -1)
        inner = {name: np.append(values, sums.over(found.counts[name], alone, 1)) for name, values in inner.items()}
        stalls = {name: np.append(values, sums.over(sums.stalls[name], alone, 1)) for name, values in stalls.items()}
    return {
        **{name: [*values, *[_REST[name]] * len(rest)] for name, values in tree.columns().items()},
        "loop": [*range(size), *rest],
        "instructions": [*tree.sizes(), *(int((innermost == one).sum()) for one in rest)],
        **sums.table(inner, stalls),
    }


_REST: dict[str, Any] = {
    "function": "",
    "parent": -1,
    "depth": 0,
    "header": -1,
    "end": -1,
    "file": "",
    "first_line": -1,
    "last_line": -1,
    "entries": math.nan,
    "trips": math.nan,
    "notes": "",
}


class LoopTree:
    """The loops of all functions of a launch, numbered through: outer before inner within a function."""

    def __init__(self, found: Instructions, calls: Calls) -> None:
        self._found, self._calls = found, calls
        self._bodies = found.code.bodies
        self.parents, self._depths = calls.parents, calls.depths
        self._deepest_first = sorted(range(len(self.parents)), key=lambda loop: -self._depths[loop])

    def __len__(self) -> int:
        return len(self.parents)

    def with_inner(self, values: FloatArray) -> FloatArray:
        """Sums by `Calls.innermost` as sums by loop."""
        result: FloatArray = values.copy()
        for loop in self._deepest_first:
            if self.parents[loop] >= 0:
                result[self.parents[loop]] += result[loop]
        return result

    def sizes(self) -> list[int]:
        """Instructions of each loop."""
        mine = self._calls.innermost[self._calls.innermost >= 0]
        return [int(size) for size in self.with_inner(np.bincount(mine, minlength=len(self)).astype(np.float64))]

    def columns(self) -> dict[str, list[Any]]:
        """What and where each loop is, and how often it is entered and goes round."""
        files = self._lines()
        ends: list[int] = []
        counted: list[tuple[float, float]] = []
        for number, body in enumerate(self._bodies):
            ends += [max(body.flow.blocks[one].end for one in loop.blocks) for loop in body.flow.loops]
            start = int(self._found.starts[number])
            executed = self._found.counts["executed"][start : start + len(body.instructions)]
            counted += entries_and_trips(body.flow, executed.tolist())
        loops = [(body.name, loop) for body in self._bodies for loop in body.flow.loops]
        return {
            "function": [name for name, _ in loops],
            "parent": self.parents,
            "depth": self._depths,
            "header": [loop.header for _, loop in loops],
            "end": ends,
            "file": [file for file, _, _ in files],
            "first_line": [first for _, first, _ in files],
            "last_line": [last for _, _, last in files],
            "entries": [entries for entries, _ in counted],
            "trips": [trips for _, trips in counted],
            "notes": self._calls.notes(),
        }

    def _lines(self) -> list[tuple[str, int, int]]:
        """For each loop its file, and first and last line there.

        Counted are lines of the function that the loop is written in: what is inlined into it counts where it is inlined.  The
        file is the one that the function begins in, if the loop has lines there, else that of the most instructions.
        """
        chains: list[Counter[tuple[Place, ...]]] = [Counter() for _ in self.parents]
        for loop, places in zip(self._found.loop.tolist(), self._found.places, strict=True):
            if loop >= 0 and places:
                chains[loop][places[::-1]] += 1
        within = [
            -1 if loop.parent is None else first + loop.parent
            for body, first in zip(self._bodies, self._found.first_loops.tolist(), strict=False)
            for loop in body.flow.loops
        ]
        for loop in self._deepest_first:
            if within[loop] >= 0:
                chains[within[loop]].update(chains[loop])
        files = [file for body, file in zip(self._bodies, self._files(), strict=True) for _ in body.flow.loops]
        return [_span(mine, file) for mine, file in zip(chains, files, strict=True)]

    def _files(self) -> list[str]:
        """The file that each function begins in; "" without line table."""
        starts = self._found.starts.tolist()
        return [
            next((places[-1].file for places in self._found.places[first:last] if places), "")
            for first, last in pairwise(starts)
        ]


def _span(chains: Counter[tuple[Place, ...]], begin: str) -> tuple[str, int, int]:
    """File, first and last line of what has these places, outermost first, so often; ``begin`` if there are lines of this."""
    total, level = chains.total(), 0
    while True:
        here: Counter[Place] = Counter()
        for places, count in chains.items():
            if len(places) > level + 1:
                here[places[level]] += count
        place, most = here.most_common(1)[0] if here else (None, 0)
        if not here or most < _INSIDE * total:
            break
        chains = Counter({places: count for places, count in chains.items() if len(places) > level and places[level] == place})
        level += 1
    lines: dict[str, Counter[int]] = {}
    for places, count in chains.items():
        lines.setdefault(places[level].file, Counter())[places[level].line] += count
    file, found = max(lines.items(), key=lambda item: (item[0] == begin, item[1].total()), default=("", Counter({-1: 0})))
    return file, min(found), max(found)
