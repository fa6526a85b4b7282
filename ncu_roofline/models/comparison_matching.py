"""Which launches of one report are which of another: by full name and launch configuration, else by name alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np

from ncu_roofline.model.demangled import parse
from ncu_roofline.model.measurements import IntArray
from ncu_roofline.models.comparison_sides import Side

CONFIGURATION, DEVICE_CHANGED, NAME_ONLY = "configuration", "device", "name"
PARAMETERS, NUMBERS = "parameters", "numbers"
_NUMBER = re.compile(r"\d+")
_NAME_READ = 4_096  # characters of a name that are parsed; longer ones exist only in hostile reports

Key = Callable[[Side, int], tuple[Hashable, ...]]


@dataclass(frozen=True)
class Matching:
    """Groups of rows that are compared: ``before[row]`` and ``after[row]`` are group numbers; ``how[group]``, ``occurrence``.

    ``how`` is configuration, device (the GPU differs), name (the launch configuration differs), parameters (the list of the
    function's parameters differs), numbers (the name differs in whole numbers), or "" for a group that only one side has.
    ``occurrence`` counts launches of one kernel from 0 where they are matched in order, else it is -1.
    """

    before: IntArray
    after: IntArray
    how: tuple[str, ...]
    occurrence: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of groups."""
        return len(self.how)


def _configured(side: Side, row: int) -> tuple[Hashable, ...]:
    return side.names[row], side.kernels["grid"][row], side.kernels["block"][row]


def _on_device(side: Side, row: int) -> tuple[Hashable, ...]:
    return (*_configured(side, row), side.kernels["device"][row])


def _named(side: Side, row: int) -> tuple[Hashable, ...]:
    return (side.names[row],)


def _without_parameters(side: Side, row: int) -> tuple[Hashable, ...]:
    name = side.names[row]
    parsed = parse(name) if len(name) <= _NAME_READ else None
    return (parsed.scopes, parsed.base, parsed.template) if parsed else (name,)


def _without_numbers(side: Side, row: int) -> tuple[Hashable, ...]:
    return (_NUMBER.sub("*", side.names[row]),)


def _and_configured(key: Key) -> Key:
    return lambda side, row: (*key(side, row), side.kernels["grid"][row], side.kernels["block"][row])


_PASSES: tuple[tuple[str, Key], ...] = (
    (CONFIGURATION, _on_device),
    (DEVICE_CHANGED, _configured),
    (NAME_ONLY, _named),
    (PARAMETERS, _and_configured(_without_parameters)),
    (PARAMETERS, _without_parameters),
    (NUMBERS, _and_configured(_without_numbers)),
    (NUMBERS, _without_numbers),  # where the pass before has found the pair of names in another configuration
)
# Of overloads, or of instances of one template, there is no telling which became which: these need one name on each side.
_UNAMBIGUOUS = (PARAMETERS, NUMBERS)


def match(before: Side, after: Side, in_order: bool = False) -> Matching:
    """Match the rows of two sides, the closest agreement first; what is left over stays alone.

    A kernel whose parameters changed keeps its scopes, name and template arguments; compilers of directives number kernels by
    the line of the source, and sizes are template arguments.  Such names are matched where that is unambiguous.

    All rows with one key are one group; with ``in_order``, the n-th row of a key on one side meets the n-th on the other.
    """
    numbers = np.full(len(before), -1), np.full(len(after), -1)
    linked: set[tuple[str, str]] = set()
    how: list[str] = []
    occurrence: list[int] = []
    for name, key in _PASSES:
        left, right = (_keyed(side, key, one, in_order) for side, one in zip((before, after), numbers, strict=True))
        for one in left:
            if one in right and _plausible(name, key, (before, after), (left[one], right[one]), linked):
                numbers[0][left[one]] = numbers[1][right[one]] = len(how)
                how.append(name)
                occurrence.append(one[1])
    for side, taken in zip((before, after), numbers, strict=True):
        places = {rows[0]: number for (_, number), rows in _keyed(side, _on_device, np.full(len(side), -1), in_order).items()}
        for rows in _keyed(side, _on_device, taken, in_order).values():
            taken[rows] = len(how)
            how.append("")
            occurrence.append(places[rows[0]] if in_order else -1)
    return Matching(numbers[0], numbers[1], tuple(how), tuple(occurrence))


def _plausible(
    how: str, key: Key, sides: tuple[Side, Side], rows: tuple[list[int], list[int]], linked: set[tuple[str, str]]
) -> bool:
    """Whether rows with one key may be matched: ``linked`` are the pairs of names known so far that differ in numbers."""
    if how not in _UNAMBIGUOUS:
        return True
    names = [set(side.names[mine]) for side, mine in zip(sides, rows, strict=True)]
    if len(names[0]) > 1 or len(names[1]) > 1:
        return False
    pair = names[0].pop(), names[1].pop()
    if key is _without_numbers:
        return pair in linked
    if how == NUMBERS:
        linked.add(pair)
    return True


def _keyed(side: Side, key: Key, numbers: IntArray, in_order: bool) -> dict[tuple[Hashable, int], list[int]]:
    """Rows without a number, by key and occurrence (-1 where order does not matter)."""
    seen: dict[Hashable, int] = {}
    found: dict[tuple[Hashable, int], list[int]] = {}
    for row in np.flatnonzero(numbers < 0).tolist():
        one = key(side, row)
        count = seen[one] = seen.get(one, -1) + 1
        found.setdefault((one, count if in_order else -1), []).append(row)
    return found
