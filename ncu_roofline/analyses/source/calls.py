"""Calls within the code of a launch: the loops that hold all calls of a function, with which its counts go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ncu_roofline.analyses.source.counts import IntArray
from ncu_roofline.analyses.source.instructions import NOWHERE, Instructions
from ncu_roofline.base.texts import listed
from ncu_roofline.formats.sass.instructions import SIZE
from ncu_roofline.model.names import short_names

_DEEPEST = 64  # loops around each other, through calls; people write a few
_ENTERED = ("executed", "threads")
"""Warps that execute a guarded call need not take it; of threads nobody counts at an instruction whose predicate is false."""
_NAMED = 3


@dataclass(frozen=True)
class Called:
    """A function that others call: its position in `Instructions.owners`, and the rows of the calls that were executed."""

    owner: int
    sites: tuple[int, ...]


class Calls:
    """The calls of a launch.

    ``home``: for each of `Instructions.owners` the innermost loop that holds all its calls, NOWHERE if none does or not all are
    known: calls are all known where as many warps (or threads) took them as came to the function's first instruction.
    ``parents`` and ``depths``: of each loop, those of a called function in its home.
    """

    def __init__(self, found: Instructions) -> None:
        self._found = found
        self._owner = found.owner.tolist()
        self.parents: list[int] = []
        self.depths: list[int] = []
        self._loop_owner: list[int] = []
        firsts = zip(found.code.bodies, found.starts.tolist(), found.first_loops.tolist(), strict=False)
        for body, start, first in firsts:
            self.parents += [NOWHERE if loop.parent is None else first + loop.parent for loop in body.flow.loops]
            self.depths += [loop.depth for loop in body.flow.loops]
            self._loop_owner += [self._owner[start + loop.header // SIZE] for loop in body.flow.loops]
        self.home = [NOWHERE] * len(found.owners)
        calls, entries = self._calls()
        self.called: list[Called] = []
        self._known: set[int] = set()
        for owner, rows in sorted(calls.items()):
            sites = [row for row in rows if any(found.counts[name][row] > 0 for name in _ENTERED)]
            if sites:
                self.called.append(Called(owner, tuple(sites)))
                if owner and self._all_known(owner, sites, entries[owner]):
                    self._known.add(owner)
        self._settle()

    def _all_known(self, owner: int, sites: Sequence[int], entries: set[int]) -> bool:
        """Whether what came to a function came by these calls."""
        first = int(np.argmax(self._found.owner == owner))
        for name in _ENTERED:
            counts = self._found.counts[name]
            if entries == {first} and counts[first] > 0 and counts[list(sites)].sum() == counts[first]:
                return True
        return False

    def _calls(self) -> tuple[dict[int, list[int]], dict[int, set[int]]]:
        """By function the rows that go there from others, and the rows that these go to."""
        found, bodies = self._found, self._found.code.bodies
        starts = {body.name: start for body, start in zip(bodies, found.starts.tolist(), strict=False) if body.instructions}
        calls: dict[int, list[int]] = {}
        entries: dict[int, set[int]] = {}
        for body in bodies:
            first, named = starts.get(body.name, 0), dict(body.code.function.calls)
            for index, one in enumerate(body.instructions):
                if one.target is not None:
                    target = first + one.target // SIZE
                elif one.flow == "call" and (name := named.get(one.offset)) in starts:
                    target = starts[name]
                else:
                    continue
                if self._owner[target] != self._owner[first + index]:
                    calls.setdefault(self._owner[target], []).append(first + index)
                    entries.setdefault(self._owner[target], set()).add(target)
        return calls, entries

    def _settle(self) -> None:
        """Find the homes, of callers before what they call; what calls itself, if by others, has none."""
        callers = {one.owner: {self._owner[row] for row in one.sites} & self._known for one in self.called}
        calls: dict[int, list[int]] = {}
        for owner, mine in callers.items():
            for caller in mine:
                calls.setdefault(caller, []).append(owner)
        sites = {one.owner: one.sites for one in self.called if one.owner in self._known}
        left = {owner: len(callers[owner]) for owner in sites}
        ready = [owner for owner, count in left.items() if not count]
        inside: dict[int, list[int]] = {}
        for loop, owner in enumerate(self._loop_owner):
            inside.setdefault(owner, []).append(loop)
        while ready:
            owner = ready.pop()
            home = self._common(sites[owner])
            deeper = self.depths[home] if home != NOWHERE else 0
            if deeper < _DEEPEST:
                self.home[owner] = home
                for loop in inside.get(owner, ()) if home != NOWHERE else ():
                    self.parents[loop] = home if self.parents[loop] == NOWHERE else self.parents[loop]
                    self.depths[loop] += deeper
            for other in calls.get(owner, ()):
                if other in left:
                    left[other] -= 1
                    ready += [other] if not left[other] else []

    def _around(self, row: int) -> int:
        """The innermost loop around an instruction, that around its function's calls if it is in none."""
        loop = int(self._found.loop[row])
        return loop if loop >= 0 else self.home[self._owner[row]]

    def _common(self, sites: Sequence[int]) -> int:
        """The innermost loop that is around all of these."""
        home = self._around(sites[0])
        for site in sites[1:]:
            other = self._around(site)
            while home != other:
                if NOWHERE in (home, other):
                    return NOWHERE
                if self.depths[home] >= self.depths[other]:
                    home = self.parents[home]
                else:
                    other = self.parents[other]
        return home

    def loops_of(self, row: int) -> Iterator[int]:
        """The loops around an instruction, innermost first, those around its function's calls, too."""
        loop = self._around(row)
        while loop != NOWHERE:
            yield loop
            loop = self.parents[loop]

    @property
    def innermost(self) -> IntArray:
        """For each instruction the innermost loop that its counts go with; NOWHERE and OUTSIDE as in `Instructions.loop`."""
        homes = np.array(self.home, dtype=np.int64)[self._found.owner]
        return np.where(self._found.loop == NOWHERE, homes, self._found.loop)

    def notes(self) -> list[str]:
        """For each loop which functions are counted with it, and which are not although it calls them."""
        names = short_names(list(self._found.owners))
        inside: list[list[str]] = [[] for _ in self.parents]
        apart: list[list[str]] = [[] for _ in self.parents]
        for one in self.called:
            with_it = set(self._up(self.home[one.owner]))
            for loop in with_it:
                inside[loop].append(names[one.owner])
            for loop in {loop for site in one.sites for loop in self.loops_of(site)} - with_it:
                apart[loop].append(names[one.owner])
        return [
            "; ".join(
                f"{said}: {listed(mine, _NAMED)}"
                for said, mine in (
                    ("with what it calls", inside[loop]),
                    ("without what is not called from here only", apart[loop]),
                )
                if mine
            )
            for loop in range(len(self.parents))
        ]

    def _up(self, loop: int) -> Iterator[int]:
        while loop != NOWHERE:
            yield loop
            loop = self.parents[loop]
