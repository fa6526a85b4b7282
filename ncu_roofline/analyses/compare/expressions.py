"""Threshold expressions such as ``fraction < 0.9 * baseline``: read by a small grammar of our own, never by Python's."""

from __future__ import annotations

import math
import operator
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ncu_roofline.base.errors import UsageError

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
_P, _L, _PL = "PRECISION", "LEVEL", "PRECISION.LEVEL"
MAX_LENGTH, MAX_DEPTH = 500, 40
_LEXEME = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<word>[A-Za-z_]\w*(?:\.\w+)*)|(?P<sign>[<>=!]=|[-+*/<>()]))"
)
_PREFIXES = {"": 1.0, "n": 1e-9, "u": 1e-6, "\N{MICRO SIGN}": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SYMBOLS = {
    "FLOP/s": "flop/s",
    "FLOP/B": "flop/byte",
    "FLOP": "flop",
    "B/s": "byte/s",
    "B": "byte",
    "Hz": "hertz",
    "s": "second",
}
_UNIT = re.compile(rf"\s*(?:(%)|([{''.join(_PREFIXES)}]?)({'|'.join(_SYMBOLS)})(?![\w/]))")


@dataclass(frozen=True)
class NamedQuantity:
    """One name of the expressions; ``parts``: what may follow it after dots (precision, level, both, or nothing)."""

    name: str
    unit: str
    parts: tuple[str, ...]
    meaning: str


QUANTITIES = {
    one.name: one
    for one in (
        NamedQuantity("time", "second", (), "run time of a launch (median), on the basis the comparison uses (see --times)"),
        NamedQuantity("time.raw", "second", (), "run time as measured"),
        NamedQuantity("time.normalised", "second", (), "run time at the baseline's SM clock"),
        NamedQuantity("time.total", "second", (), "run time of all launches, on the same basis as time"),
        NamedQuantity("cycles", "", (), "SM cycles of a launch: time.raw * clock"),
        NamedQuantity("clock", "hertz", (), "SM clock while profiled"),
        NamedQuantity("launches", "", (), "number of launches"),
        NamedQuantity("share", "ratio", (), "share of the report's time, all launches"),
        NamedQuantity("noise", "ratio", (), "change of time up to which it counts as the same"),
        NamedQuantity("flops", "flop", ("", _P), "floating-point operations of a launch (mean), of all precisions or of one"),
        NamedQuantity("flops.total", "flop", ("", _P), "the same of all launches"),
        NamedQuantity("bytes", "byte", (_L,), "bytes of a launch (mean) at a memory level"),
        NamedQuantity("bytes.total", "byte", (_L,), "the same of all launches"),
        NamedQuantity("bandwidth", "byte/s", (_L,), "bytes per second at a memory level"),
        NamedQuantity("intensity", "flop/byte", (_L, _PL), "FLOPs per byte, of the precision with most work or a given one"),
        NamedQuantity("performance", "flop/s", ("", _P), "FLOPs per second, likewise"),
        NamedQuantity(
            "fraction", "ratio", ("", _P, _L, _PL), "share of the attainable performance: the lowest, or at one level"
        ),
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
class Inequality:
    """Two sums compared."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Condition:
    """Comparisons: any of ``alternatives`` of which all are true; ``text`` as the user wrote it."""

    text: str
    alternatives: tuple[tuple[Inequality, ...], ...]

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


def _compared(one: Inequality, value: Callable[[Name], float]) -> bool | None:
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


def parse(text: str) -> Condition:
    """Read a condition.  Raises UsageError that says at which character what is wrong."""
    return _ExpressionReader(text).condition()


def wrong(text: str, position: int, reason: str, next_step: str = "") -> UsageError:
    """The error of an expression: ``position`` counts from 0."""
    rest = text[position : position + 20].split()
    place = f"at character {position + 1} ({rest[0]!r})" if rest else "at its end"
    known = next_step or "`ncu-roofline compare --help` shows how they are written."
    return UsageError("Cannot use threshold", text or "''", f"{place}: {reason}", known)


@dataclass(frozen=True)
class _ExpressionToken:
    kind: str
    text: str
    position: int
    end: int


class _ExpressionReader:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0
        if len(text) > MAX_LENGTH:
            raise wrong(text[:40] + "...", 40, f"it is longer than {MAX_LENGTH} characters")

    def _peek(self) -> _ExpressionToken:
        match = _LEXEME.match(self._text, self._at)
        if match and match.lastgroup:
            return _ExpressionToken(match.lastgroup, match.group(match.lastgroup), match.start(match.lastgroup), match.end())
        position = len(self._text) - len(self._text[self._at :].lstrip())
        if position < len(self._text):
            raise wrong(self._text, position, "this character has no meaning here")
        return _ExpressionToken("end", "", position, position)

    def _take(self, *signs: str) -> str:
        token = self._peek()
        if token.text not in signs:
            return ""
        self._at = token.end
        return token.text

    def condition(self) -> Condition:
        alternatives = [[self._comparison()]]
        while word := self._take("and", "or"):
            if word == "or":
                alternatives.append([])
            alternatives[-1].append(self._comparison())
        token = self._peek()
        if token.kind != "end":
            chained = token.text in COMPARE
            raise wrong(self._text, token.position, "join comparisons with and" if chained else "an operator must stand here")
        return Condition(self._text.strip(), tuple(map(tuple, alternatives)))

    def _comparison(self) -> Inequality:
        start = self._at
        left = self._sum()
        token = self._peek()
        if not (sign := self._take(*COMPARE)):
            raise wrong(self._text, token.position, f"a comparison ({' '.join(COMPARE)}) must stand here")
        return self._resolved(Inequality(sign, left, self._sum()), start)

    def _sum(self) -> Node:
        node = self._product()
        while sign := self._take("+", "-"):
            node = Operation(sign, node, self._product())
        return node

    def _product(self) -> Node:
        node = self._factor()
        while sign := self._take("*", "/"):
            node = Operation(sign, node, self._factor())
        return node

    def _factor(self) -> Node:
        token = self._peek()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise wrong(self._text, token.position, "it is nested too deeply")
        if self._take("-"):
            node: Node = Operation("-", None, self._factor())
        elif self._take("("):
            node = self._sum()
            closing = self._peek()
            if not self._take(")"):
                raise wrong(self._text, closing.position, "a closing bracket must stand here")
        elif token.kind == "number":
            node = self._literal(token)
        elif token.kind == "word" and token.text not in ("and", "or"):
            self._at = token.end
            node = self._name(token)
        else:
            raise wrong(self._text, token.position, "a number or a name must stand here")
        self._depth -= 1
        return node

    def _literal(self, token: _ExpressionToken) -> Number:
        self._at = token.end
        value, unit = float(token.text), ""
        if match := _UNIT.match(self._text, token.end):
            self._at = match.end()
            value = value / 100 if match.group(1) else value * _PREFIXES[match.group(2)]
            unit = "" if match.group(1) else _SYMBOLS[match.group(3)]
        if not math.isfinite(value):
            raise wrong(self._text, token.position, f"no number may be larger than {sys.float_info.max:.2g}")
        return Number(value, unit, token.position)

    def _name(self, token: _ExpressionToken) -> Name:
        words = token.text
        of_baseline = words == BASELINE or words.startswith(f"{BASELINE}.")
        words = words[len(BASELINE) + 1 :] if of_baseline else words
        if of_baseline and not words:
            return Name("", "", True, token.position)
        pieces = words.split(".")
        starts = (".".join(pieces[:length]) for length in range(len(pieces), 0, -1))
        found = next((name for name in starts if name in QUANTITIES), None)
        if found is None:
            raise wrong(self._text, token.position, f"the names known are {', '.join(QUANTITIES)} and {BASELINE}")
        rest, parts = words[len(found) + 1 :], QUANTITIES[found].parts
        if rest and not any(parts):
            raise wrong(self._text, token.position, f"the names known are {', '.join(QUANTITIES)} and {BASELINE}")
        if not rest and parts and "" not in parts:
            raise wrong(self._text, token.position, f"{found} needs a part: {' or '.join(f'{found}.{part}' for part in parts)}")
        return Name(found, rest, of_baseline, token.position)

    def _resolved(self, one: Inequality, start: int) -> Inequality:
        """The comparison with every bare ``baseline`` filled in, its units checked."""
        found = [leaf for side in (one.left, one.right) for leaf in leaves(side)]
        named = {(leaf.quantity, leaf.rest) for leaf in found if isinstance(leaf, Name) and leaf.quantity}
        bare = [leaf for leaf in found if isinstance(leaf, Name) and not leaf.quantity]
        if not named:
            raise wrong(self._text, bare[0].position if bare else start, "the comparison names nothing of the new report")
        if bare and len(named) > 1:
            raise wrong(self._text, bare[0].position, f"say which baseline: {BASELINE}.{'.'.join(filter(None, min(named)))}")
        for part in (*_constants(one.left), *_constants(one.right)):
            if not math.isfinite(_number(part, lambda _: math.nan)):
                raise wrong(self._text, next(leaves(part)).position, "what is worked out here is no finite number")
        units = {QUANTITIES[quantity].unit for quantity, _ in named}
        for leaf in found:
            if isinstance(leaf, Number) and leaf.unit and leaf.unit not in units:
                raise wrong(self._text, leaf.position, "the unit fits none of the names compared")
        return Inequality(one.sign, _filled(one.left, *min(named)), _filled(one.right, *min(named)))


def _constants(node: Node) -> Iterator[Node]:
    """The parts of a sum that name nothing."""
    if not any(isinstance(leaf, Name) for leaf in leaves(node)):
        yield node
    elif isinstance(node, Operation):
        if node.left is not None:
            yield from _constants(node.left)
        yield from _constants(node.right)


def _filled(node: Node, quantity: str, rest: str) -> Node:
    if isinstance(node, Operation):
        left = None if node.left is None else _filled(node.left, quantity, rest)
        return Operation(node.sign, left, _filled(node.right, quantity, rest))
    return Name(quantity, rest, True, node.position) if isinstance(node, Name) and not node.quantity else node
