"""What code can come to: a function and those that it calls, as far as its calls tell."""

from __future__ import annotations

from collections.abc import Container

from ncu_roofline.formats.sass.cubin import Cubin
from ncu_roofline.formats.sass.instructions import Instruction, decode

_MOST = 100
"""Functions that are followed: more are made to take long."""
_TABLES = ("BRX", "BRXU")
"""Jumps by a table of the function that they are in."""


class Reach:
    """The instructions of some ``names`` in the functions of a cubin, with those that are not known, and with all jumps."""

    def __init__(self, cubin: Cubin, names: Container[str]) -> None:
        self._cubin, self._names = cubin, names
        self._called: dict[str, frozenset[str] | None] = {}

    def instructions(self, name: str) -> tuple[Instruction, ...]:
        """Those of a function, decoded anew.  Raises KeyError for a name that isn't among the cubin's functions."""
        function = self._cubin.functions[name]
        return decode(function.code, function.capability, self._names)

    def within(self, name: str) -> frozenset[str] | None:
        """The functions that a run of the one of this name can come to, itself among them; None if that can't be told.

        Functions of the driver (`vprintf`), which the cubin does not have, are left out.  Raises KeyError as `instructions`.
        """
        found, left = {name}, [name]
        while left:
            called = self._callees(left.pop())
            if called is None or len(found | called) > _MOST:
                return None
            left += called - found
            found |= called
        return frozenset(found)

    def _callees(self, name: str) -> frozenset[str] | None:
        """The functions of other sections that one calls; None if it calls or jumps to where nobody knows."""
        if name not in self._called:
            named = dict(self._cubin.functions[name].calls)
            jumps = [one for one in self.instructions(name) if one.flow in ("branch", "call", "indirect")]
            known = all(one.offset in named or one.target is not None or one.name in _TABLES for one in jumps)
            callees = {named[one.offset] for one in jumps if one.offset in named}
            self._called[name] = frozenset(callees & self._cubin.functions.keys()) if known else None
        return self._called[name]
