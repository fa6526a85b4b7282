"""The loops of a launch: natural loops of the control flow, with what inner loops and called functions did in their sums."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from ncu_roofline.analyses.source.code import NOWHERE, OUTSIDE, FloatArray, Instructions, IntArray
from ncu_roofline.base.texts import listed
from ncu_roofline.formats.sass.control_flow import Flow
from ncu_roofline.formats.sass.instructions import SIZE
from ncu_roofline.formats.sass.line_program import Place
from ncu_roofline.model.names import short_names

_DEEPEST = 64  # loops around each other, through calls; people write a few
_ENTERED = ("executed", "threads")
"""Warps that execute a guarded call need not take it; of threads nobody counts at an instruction whose predicate is false."""
_NAMED = 3
_INSIDE = 0.9
"""Share of a loop's instructions that are inlined at one place from which on the loop is one of the function inlined there."""
_REST: dict[str, Any] = {
    **dict.fromkeys(("function", "file", "notes"), ""),
    **dict.fromkeys(("parent", "header", "end", "first_line", "last_line"), -1),
    **dict.fromkeys(("entries", "trips"), math.nan),
    "depth": 0,
}


class Loops:
    """The loops of all functions of a launch, numbered through: outer before inner within a function.

    ``called``: the functions that others call, by position in `Instructions.owners`, with the rows of the calls that were
    executed.  ``home``: for each of the owners the innermost loop that holds all its calls, with which its counts go; NOWHERE
    if none does or not all are known: calls are all known where as many warps (or threads) took them as came to the function's
    first instruction.  ``parents`` and ``depths``: of each loop, those of a called function in its home; ``within`` is the loop
    around it in its own function.
    """

    def __init__(self, found: Instructions) -> None:
        self._found, bodies = found, found.code.bodies
        self._owner = found.owner.tolist()
        self._loops = [(body, loop) for body in bodies for loop in body.flow.loops]
        self.within: list[int] = []
        inside: dict[int, list[int]] = {}  # loops by the function that they are in
        for body, start in zip(bodies, found.starts, strict=False):
            first = len(self.within)
            self.within += [NOWHERE if loop.parent is None else first + loop.parent for loop in body.flow.loops]
            for number, loop in enumerate(body.flow.loops, first):
                inside.setdefault(self._owner[start + loop.header // SIZE], []).append(number)
        self.parents, self.depths = list(self.within), [loop.depth for _, loop in self._loops]
        self.home = [NOWHERE] * len(found.owners)
        calls, entries = self._calls()
        taken = {
            owner: [row for row in rows if any(found.counts[name][row] > 0 for name in _ENTERED)]
            for owner, rows in sorted(calls.items())
        }
        self.called = {owner: rows for owner, rows in taken.items() if rows}
        known = {owner: rows for owner, rows in self.called.items() if owner and self._all_known(owner, rows, entries[owner])}
        self._settle(known, inside)
        self._deepest_first = sorted(range(len(self.parents)), key=lambda loop: -self.depths[loop])
        homes = np.array(self.home, dtype=np.int64)[found.owner]
        self.innermost: IntArray = np.where(found.loop == NOWHERE, homes, found.loop)
        """For each instruction the innermost loop that its counts go with; NOWHERE and OUTSIDE as in `Instructions.loop`."""

    def _calls(self) -> tuple[dict[int, list[int]], dict[int, set[int]]]:
        """By function the rows that go there from others, and the rows that these go to."""
        found, bodies = self._found, self._found.code.bodies
        starts = {body.name: start for body, start in zip(bodies, found.starts, strict=False) if body.instructions}
        calls: dict[int, list[int]] = {}
        entries: dict[int, set[int]] = {}
        for body in bodies:
            first, named = starts.get(body.name, 0), dict(body.function.calls)
            for row, one in enumerate(body.instructions, first):
                if one.target is not None:
                    target = first + one.target // SIZE
                elif one.flow == "call" and (name := named.get(one.offset)) in starts:
                    target = starts[name]
                else:
                    continue
                if self._owner[target] != self._owner[row]:
                    calls.setdefault(self._owner[target], []).append(row)
                    entries.setdefault(self._owner[target], set()).add(target)
        return calls, entries

    def _all_known(self, owner: int, sites: Sequence[int], entries: set[int]) -> bool:
        """Whether what came to a function came by these calls."""
        first = int(np.argmax(self._found.owner == owner))
        came = [(counts[first], counts[sites].sum()) for counts in (self._found.counts[name] for name in _ENTERED)]
        return entries == {first} and any(there > 0 and there == taken for there, taken in came)

    def _settle(self, known: dict[int, list[int]], inside: dict[int, list[int]]) -> None:
        """Find the homes, of callers before what they call; what calls itself, if by others, has none.

        ``known``: functions all of whose calls are known, with these; ``inside``: loops by function.
        """
        order = TopologicalSorter({owner: {self._owner[row] for row in rows} & known.keys() for owner, rows in known.items()})
        with suppress(CycleError):  # then it gives those outside of circles
            order.prepare()
        while ready := order.get_ready():
            for owner in ready:
                home = self._common(known[owner])
                deeper = self.depths[home] if home != NOWHERE else 0
                if deeper < _DEEPEST:
                    self.home[owner] = home
                    for loop in inside.get(owner, ()) if home != NOWHERE else ():
                        self.parents[loop] = home if self.parents[loop] == NOWHERE else self.parents[loop]
                        self.depths[loop] += deeper
            order.done(*ready)

    def _around(self, row: int) -> int:
        """The innermost loop around an instruction, that around its function's calls if it is in none."""
        loop = int(self._found.loop[row])
        return loop if loop >= 0 else self.home[self._owner[row]]

    def _common(self, sites: Sequence[int]) -> int:
        """The innermost loop that is around all of these."""
        home = self._around(sites[0])
        for other in map(self._around, sites[1:]):
            while home != other:
                if NOWHERE in (home, other):
                    return NOWHERE
                if self.depths[home] >= self.depths[other]:
                    home = self.parents[home]
                else:
                    other = self.parents[other]
        return home

    def _up(self, loop: int) -> Iterator[int]:
        """A loop and those around it."""
        while loop != NOWHERE:
            yield loop
            loop = self.parents[loop]

    def _notes(self) -> list[str]:
        """For each loop which functions are counted with it, and which are not although it calls them."""
        names = short_names(list(self._found.owners))
        inside: list[list[str]] = [[] for _ in self.parents]
        apart: list[list[str]] = [[] for _ in self.parents]
        for owner, sites in self.called.items():
            with_it = set(self._up(self.home[owner]))
            for loop in with_it:
                inside[loop].append(names[owner])
            for loop in {loop for site in sites for loop in self._up(self._around(site))} - with_it:
                apart[loop].append(names[owner])
        notes = []
        for here, elsewhere in zip(inside, apart, strict=True):
            own = [f"with what it calls: {listed(here, _NAMED)}"] if here else []
            own += [f"without what is not called from here only: {listed(elsewhere, _NAMED)}"] if elsewhere else []
            notes.append("; ".join(own))
        return notes

    def _with_inner(self, values: FloatArray) -> FloatArray:
        """Sums by `innermost` as sums by loop."""
        result: FloatArray = values.copy()
        for loop in self._deepest_first:
            if self.parents[loop] >= 0:
                result[self.parents[loop]] += result[loop]
        return result

    def columns(self) -> dict[str, Any]:
        """A row per loop: what and where it is, and how often it is entered and goes round."""
        found, counted = self._found, []
        for body, start in zip(found.code.bodies, found.starts, strict=False):
            counted += _entries_and_trips(body.flow, found.counts["executed"][start : start + len(body.instructions)].tolist())
        spans = self._spans()
        sizes = np.bincount(self.innermost[self.innermost >= 0], minlength=len(self.parents)).astype(np.float64)
        return {
            "loop": list(range(len(self.parents))),
            "function": [body.name for body, _ in self._loops],
            "parent": self.parents,
            "depth": self.depths,
            "header": [loop.header for _, loop in self._loops],
            "end": [max(body.flow.blocks[one].end for one in loop.blocks) for body, loop in self._loops],
            "file": [file for file, _, _ in spans],
            "first_line": [first for _, first, _ in spans],
            "last_line": [last for _, _, last in spans],
            "instructions": [int(size) for size in self._with_inner(sizes)],
            "entries": [entries for entries, _ in counted],
            "trips": [trips for _, trips in counted],
            "notes": self._notes(),
        }

    def summed(self, columns: dict[str, Any]) -> dict[str, Any]:
        """``columns`` with counts and shares; behind the loops a row for the code in none, and one for what lies outside."""
        found, size = self._found, len(self.parents)
        rest = [one for one in (NOWHERE, OUTSIDE) if (self.innermost == one).any()]
        tables = [found.sums(np.where(self.innermost == one, 0, -1), 1) for one in rest]
        inner = {name: self._with_inner(values) for name, values in found.sums(np.maximum(self.innermost, -1), size).items()}
        sums = {name: np.concatenate([values, *(table[name] for table in tables)]) for name, values in inner.items()}
        whole = {name: [*values, *[_REST.get(name)] * len(rest)] for name, values in columns.items()}
        whole["loop"][size:] = rest
        whole["instructions"][size:] = [int((self.innermost == one).sum()) for one in rest]
        return whole | found.shown(sums)

    def _spans(self) -> list[tuple[str, int, int]]:
        """For each loop its file, and first and last line there.

        Counted are lines of the function that the loop is written in: what is inlined into it counts where it is inlined.  The
        file is the one that the function begins in, if the loop has lines there, else that of the most instructions.
        """
        found = self._found
        chains: list[Counter[tuple[Place, ...]]] = [Counter() for _ in self.parents]
        for loop, places in zip(found.loop.tolist(), found.places, strict=True):
            if loop >= 0 and places:
                chains[loop][places[::-1]] += 1
        for loop in self._deepest_first:
            if self.within[loop] >= 0:
                chains[self.within[loop]].update(chains[loop])
        begins: list[str] = []
        for body in found.code.bodies:
            file = next((places[-1].file for places in body.places if places), "")
            begins += [file] * len(body.flow.loops)
        return [_span(own, file) for own, file in zip(chains, begins, strict=True)]


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


def _entries_and_trips(flow: Flow, executed: Sequence[float]) -> list[tuple[float, float]]:
    """For each loop how often warps entered it, and iterations per entry; NaN where the executions don't tell.

    ``executed`` counts warps by instruction of the function.  What a block hands to its only successor, and what a block gets
    from its only predecessor, is known; at a branch with several ways a warp may go more than one, so nothing is subtracted
    there.  What arrives at a header comes from outside or by a back edge.
    """
    first = [executed[block.start // SIZE] for block in flow.blocks]
    before: list[list[int]] = [[] for _ in flow.blocks]
    for number, block in enumerate(flow.blocks):
        for after in block.successors:
            before[after].append(number)
    known: dict[tuple[int, int], float] = {}
    for number, block in enumerate(flow.blocks):
        if len(block.successors) == 1:
            known[number, block.successors[0]] = executed[block.end // SIZE - 1]
        for after in block.successors:
            if len(before[after]) == 1 and after:
                known[number, after] = first[after]
    by_offset = {block.start: number for number, block in enumerate(flow.blocks)}
    result = []
    for loop in flow.loops:
        header = by_offset[loop.header]
        back = [(one, header) for one in before[header] if one in loop.blocks]
        into = [(one, header) for one in before[header] if one not in loop.blocks]
        arrived, entered = first[header], math.nan
        if not flow.unresolved:
            if into and header and all(edge in known for edge in into):
                entered = sum(known[edge] for edge in into)
            elif all(edge in known for edge in back):
                entered = arrived - sum(known[edge] for edge in back)
        plausible = 0 <= entered <= arrived
        result.append((entered, arrived / entered if entered > 0 else math.nan) if plausible else (math.nan, math.nan))
    return result
