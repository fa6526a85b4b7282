"""What threshold expressions such as ``fraction < 0.9 * baseline`` are made of, and what they say of given numbers.

A missing number makes a comparison, and what depends on it, neither true nor false.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass

COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul}
BASELINE = "baseline"


@dataclass(frozen=True)
class Quantity:
    """One name of the expressions; ``parts``: what may follow it after dots (precision, level, both, or nothing)."""

    name: str
    unit: str
    parts: tuple[str, ...]
    meaning: str


_P, _L, _PL = "PRECISION", "LEVEL", "PRECISION.LEVEL"
QUANTITIES = {
    one.name: one
    for one in (
        Quantity("time", "second", (), "run time of a launch (median), on the basis the comparison uses (see --times)"),
        Quantity("time.raw", "second", (), "run time as measured"),
        Quantity("time.normalised", "second", (), "run time at the baseline's SM clock"),
        Quantity("time.total", "second", (), "run time of all launches, on the same basis as time"),
        Quantity("cycles", "", (), "SM cycles of a launch: time.raw * clock"),
        Quantity("clock", "hertz", (), "SM clock while profiled"),
        Quantity("launches", "", (), "number of launches"),
        Quantity("share", "ratio", (), "share of the report's time, all launches"),
        Quantity("noise", "ratio", (), "change of time up to which it counts as the same"),
        Quantity("flops", "flop", ("", _P), "floating-point operations of a launch (mean), of all precisions or of one"),
        Quantity("flops.total", "flop", ("", _P), "the same of all launches"),
        Quantity("bytes", "byte", (_L,), "bytes of a launch (mean) at a memory level"),
        Quantity("bytes.total", "byte", (_L,), "the same of all launches"),
        Quantity("bandwidth", "byte/s", (_L,), "bytes per second at a memory level"),
        Quantity("intensity", "flop/byte", (_L, _PL), "FLOPs per byte, of the precision with most work or a given one"),
        Quantity("performance", "flop/s", ("", _P), "FLOPs per second, likewise"),
        Quantity("fraction", "ratio", ("", _P, _L, _PL), "share of the attainable performance: the lowest, or at one level"),
    )
}


@dataclass(frozen=True)
class Number:
    """A literal in SI units; ``unit`` is a key of `units.UNITS`, "" without one."""

    value: float
    unit: str
    position: int


@dataclass(frozen=True)
class Name:
    """A quantity of the new report or, with ``baseline``, of the reference; quantity "" is yet to be filled in."""

    quantity: str
    rest: str
    baseline: bool
    position: int

    @property
    def text(self) -> str:
        """As it would be written in full."""
        name = f"{self.quantity}.{self.rest}" if self.rest else self.quantity
        return f"{BASELINE}.{name}" if self.baseline else name


@dataclass(frozen=True)
class Operation:
    """Arithmetic; the negative of ``right`` where ``left`` is None."""

    sign: str
    left: Node | None
    right: Node


Node = Number | Name | Operation


@dataclass(frozen=True)
class Comparison:
    """Two sums compared."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Condition:
    """Comparisons: any of ``alternatives`` of which all are true; ``text`` as the user wrote it."""

    text: str
    alternatives: tuple[tuple[Comparison, ...], ...]

    def names(self) -> list[Name]:
        """Every name, each once, in the order written."""
        sides = [side for group in self.alternatives for one in group for side in (one.left, one.right)]
        found = {leaf.text: leaf for side in sides for leaf in leaves(side) if isinstance(leaf, Name)}
        return sorted(found.values(), key=lambda name: name.position)

    def holds(self, value: Callable[[Name], float]) -> bool | None:
        """Whether it is true for these values; None where a number that decides is missing (NaN)."""
        return _either([_both([_compared(one, value) for one in group]) for group in self.alternatives])


def leaves(node: Node) -> Iterator[Number | Name]:
    """The numbers and names of a sum."""
    if isinstance(node, Operation):
        if node.left is not None:
            yield from leaves(node.left)
        yield from leaves(node.right)
    else:
        yield node


def _both(values: list[bool | None]) -> bool | None:
    return False if False in values else None if None in values else True


def _either(values: list[bool | None]) -> bool | None:
    return True if True in values else None if None in values else False


def _compared(one: Comparison, value: Callable[[Name], float]) -> bool | None:
    left, right = _number(one.left, value), _number(one.right, value)
    return None if math.isnan(left) or math.isnan(right) else COMPARE[one.sign](left, right)


def _number(node: Node, value: Callable[[Name], float]) -> float:
    if isinstance(node, Number):
        return node.value
    if isinstance(node, Name):
        return value(node)
    right = _number(node.right, value)
    if node.left is None:
        return -right
    left = _number(node.left, value)
    if node.sign == "/":
        return left / right if right else math.nan
    return float(_ARITHMETIC[node.sign](left, right))
