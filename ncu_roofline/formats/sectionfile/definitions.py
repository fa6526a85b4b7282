"""Expressions of derived metrics: `operand op operand`, and the longer form that stock sections use since 2025.1.

    expression := term (("+" | "-") term)*          nan_as_zero(expression) since 2025.3
    term       := factor (("*" | "/") factor)*      a factor may be a parenthesised expression since 2025.1
    factor     := ["-"] (number | metric | "(" expression ")" | "nan_as_zero" "(" expression ")")

Values follow the Customization Guide, "Derived Metrics": the left operand decides the kind of the result (unsigned 64-bit
integer or double) and the right one is converted; division by an integer 0 gives the left operand; a text on the left is
returned unchanged.  A missing operand makes the result missing (None).
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

CHAINS_SINCE, CHAINS_PROVEN = (2024, 1), (2025, 1)
"""Several operators: the first release that has the text of their parser, and the first whose own sections use them."""

NAN_AS_ZERO, NAN_AS_ZERO_SINCE = "nan_as_zero", (2025, 3)

Value = float | int | str | None

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_][\w.:]*)|(?P<mark>[-+*/()])|(?P<bad>\S)|$)", re.ASCII
)
_MAX_LENGTH = 10_000
_MAX_DEPTH = 50
_UINT64 = 2**64
_DIGITS = 40  # of whole numbers that are looked at as such: more than those of 64 bits have
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_PRECEDENCE = ("+-", "*/")


class Expression(NamedTuple):
    """A parsed expression: the metrics it reads and its steps in postfix order."""

    names: tuple[str, ...]
    steps: tuple[tuple[str, Value], ...]

    def evaluate(self, value_of: Callable[[str], Value]) -> Value:
        """The value, with `value_of(metric)` for each metric; None if any operand is missing or the result has no value."""
        stack: list[Value] = []
        for action, argument in self.steps:
            if action == "number":
                stack.append(argument)
            elif action == "name":
                stack.append(value_of(str(argument)))
            elif action in ("negate", NAN_AS_ZERO):
                stack.append(_unary(action, stack.pop()))
            else:
                right = stack.pop()
                stack.append(_binary(action, stack.pop(), right))
        return stack.pop()


@lru_cache(maxsize=1024)
def parse_expression(text: str) -> Expression:
    """Parse an expression.  Raises ValueError for anything that is not one, or is nested or long beyond reason."""
    if len(text) > _MAX_LENGTH:
        raise ValueError("expression is too long")
    parser = _Parser(text)
    parser.chain(0, 0)
    if parser.kind:
        raise ValueError(f"unexpected {parser.text!r} in expression {text!r}")
    names = dict.fromkeys(str(argument) for action, argument in parser.steps if action == "name")
    return Expression(tuple(names), tuple(parser.steps))


class _Parser:
    """Recursive descent; chains are loops, so only parentheses nest."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = _TOKEN.finditer(source)
        self.steps: list[tuple[str, Value]] = []
        self.kind = self.text = ""
        self.take()

    def take(self) -> tuple[str, str]:
        """Kind and text of the token that is next, "" at the end."""
        taken, match = (self.kind, self.text), next(self.tokens, None)
        self.kind = (match.lastgroup or "") if match else ""
        self.text = match[self.kind] if match and self.kind else ""
        if self.kind == "bad":
            raise ValueError(f"unexpected {self.text!r} in expression {self.source!r}")
        return taken

    def chain(self, rank: int, depth: int) -> None:
        """Operands of one precedence, from left to right."""
        if depth > _MAX_DEPTH:
            raise ValueError("expression is nested too deeply")
        if rank == len(_PRECEDENCE):
            self.factor(depth)
            return
        self.chain(rank + 1, depth)
        while self.text and self.text in _PRECEDENCE[rank]:
            _, action = self.take()
            self.chain(rank + 1, depth)
            self.steps.append((action, None))

    def factor(self, depth: int) -> None:
        kind, text = self.take()
        as_zero = text == NAN_AS_ZERO and self.text == "("
        if kind == "number" or (kind == "name" and not as_zero):
            self.steps.append((kind, _literal(text) if kind == "number" else text))
        elif text == "-":
            self.chain(len(_PRECEDENCE), depth + 1)
            self.steps.append(("negate", None))
        elif text == "(" or as_zero:
            if as_zero:
                self.take()
            self.chain(0, depth + 1)
            if self.text != ")":
                raise ValueError(f"unbalanced parenthesis in expression {self.source!r}")
            self.take()
            self.steps += [(NAN_AS_ZERO, None)] if as_zero else []
        else:
            raise ValueError(f"operand missing in expression {self.source!r}")


def _literal(text: str) -> Value:
    """A whole number of 64 bits, any other as a double, which is infinite where it is too large."""
    whole = int(text) if text.isdigit() and len(text) <= _DIGITS else _UINT64
    return whole if whole < _UINT64 else float(text)


def _unary(action: str, value: Value) -> Value:
    if value is None or isinstance(value, str):
        return value
    if action == "negate":
        return -float(value)  # unsigned integers have no negative
    return 0.0 if math.isnan(value) else value


def _binary(action: str, left: Value, right: Value) -> Value:
    if left is None or right is None:
        return None
    if isinstance(left, str) or (action == "/" and isinstance(right, int) and right == 0):
        return left
    if isinstance(right, str):
        return None
    if isinstance(left, int):  # unsigned 64-bit arithmetic: a result outside the range has no value
        if not math.isfinite(right):
            return None
        if action == "/":
            return left // int(right) if int(right) else left
        result = int(_ARITHMETIC[action](left, int(right)))
        return result if 0 <= result < _UINT64 else None
    # IEEE arithmetic: a division by zero gives infinity or NaN, as on the machine
    right = float(right)
    if action != "/":
        return _ARITHMETIC[action](left, right)
    if right:
        return left / right
    return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1.0, right)
