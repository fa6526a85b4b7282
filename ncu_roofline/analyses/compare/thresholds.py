"""Thresholds such as ``fraction < 0.9 * baseline``: a small grammar of our own, never Python's, on columns of a comparison."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ncu_roofline.analyses.compare.columns import COMPARISON_THRESHOLDS, QUANTITIES
from ncu_roofline.analyses.compare.frames import Comparison
from ncu_roofline.analyses.compare.kernels import ADDED, NOT_JUDGED, REMOVED
from ncu_roofline.base.errors import UsageError
from ncu_roofline.base.units import format_value
from ncu_roofline.chips import load_spec
from ncu_roofline.model.measurements import FloatArray
from ncu_roofline.model.roofline import of_rows

PASSED, TRIPPED, NOT_EVALUATED = "passed", "tripped", "not evaluated"  # NOT_JUDGED: it would trip, but the kernel is small
BASELINE = "baseline"
MAX_LENGTH, MAX_DEPTH = 500, 40
MISSING = 0.5  # truth of what lacks a number, between false and true: `and` is the least of two truths, `or` the greatest
_COMPARE: dict[str, Callable[..., Any]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": lambda left, right: left / np.where(right == 0, math.nan, right),
}  # fmt: skip
_NEGATIVE = "negative"
_PREFIXES = {"": 1.0, "n": 1e-9, "u": 1e-6, "\N{MICRO SIGN}": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SYMBOLS = {
    "FLOP/s": "flop/s", "FLOP/B": "flop/byte", "FLOP": "flop", "B/s": "byte/s", "B": "byte", "Hz": "hertz", "s": "second",
}  # fmt: skip
_TOKEN = (
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    rf"(?:\s*(?:(?P<percent>%)|(?P<prefix>[{''.join(_PREFIXES)}]?)(?P<symbol>{'|'.join(_SYMBOLS)})(?![\w/])))?"
    r"|(?P<word>[A-Za-z_]\w*(?:\.\w+)*)|(?P<sign>[<>=!]=|[-+*/<>()])|(?P<odd>\S))"
)


class Number(NamedTuple):
    """A literal in SI units; ``unit`` is a key of `units.UNITS`, "" without one."""

    value: float
    unit: str
    position: int


class Name(NamedTuple):
    """A quantity of the new report or, with ``baseline``, of the reference; quantity "" is yet to be filled in."""

    quantity: str
    rest: str
    baseline: bool
    position: int

    @property
    def text(self) -> str:
        """As it would be written in full."""
        return ".".join(filter(None, (BASELINE if self.baseline else "", self.quantity, self.rest)))


Term = Number | Name | str
Terms = list[Term]
"""A sum in reverse Polish notation: numbers and names, each sign behind what it joins."""
Comparing = tuple[str, Terms, Terms]  # sign, left, right


@dataclass(frozen=True)
class Condition:
    """Comparisons: any of ``alternatives`` of which all are true; ``text`` as the user wrote it."""

    text: str
    alternatives: tuple[tuple[Comparing, ...], ...]

    def names(self) -> list[Name]:
        """Every name, each once, in the order written."""
        terms = [term for group in self.alternatives for _, left, right in group for term in (*left, *right)]
        found = {term.text: term for term in terms if isinstance(term, Name)}
        return sorted(found.values(), key=lambda name: name.position)

    def truth(self, value: Callable[[Name], Any]) -> FloatArray:
        """1 where it is true for these values, 0 where it is false, MISSING where a number that decides is missing (NaN)."""
        with np.errstate(all="ignore"):
            groups = [np.minimum.reduce([_compared(one, value) for one in group]) for group in self.alternatives]
            return np.asarray(np.maximum.reduce(groups), dtype=np.float64)


def _compared(one: Comparing, value: Callable[[Name], Any]) -> FloatArray:
    left, right = (_worked_out(terms, value) for terms in one[1:])
    return np.where(np.isnan(left) | np.isnan(right), MISSING, _COMPARE[one[0]](left, right))


def _worked_out(terms: Terms, value: Callable[[Name], Any]) -> Any:
    stack: list[Any] = []
    for term in terms:
        if term == _NEGATIVE:
            stack.append(-stack.pop())
        elif isinstance(term, str):
            right = stack.pop()
            stack.append(_ARITHMETIC[term](stack.pop(), right))
        else:
            stack.append(np.float64(term.value) if isinstance(term, Number) else value(term))
    return stack.pop()


def wrong(text: str, position: int, reason: str, next_step: str = "") -> UsageError:
    """The error of an expression: ``position`` counts from 0."""
    rest = text[position : position + 20].split()
    place = f"at character {position + 1} ({rest[0]!r})" if rest else "at its end"
    known = next_step or "`ncu-roofline compare --help` shows how they are written."
    return UsageError("Cannot use threshold", text or "''", f"{place}: {reason}", known)


def parse(text: str) -> Condition:
    """Read a condition.  Raises UsageError that says at which character what is wrong."""
    if len(text) > MAX_LENGTH:
        raise wrong(text[:40] + "...", 40, f"it is longer than {MAX_LENGTH} characters")
    return _Reader(text).condition()


class _Reader:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self._text, self._depth = text, 0
        self._literals: list[Number] = []  # of the comparison that is read
        self._tokens = list(re.finditer(_TOKEN, text))

    def _next(self) -> tuple[str, str, int]:
        """Kind, text and position of the next token."""
        if not self._tokens:
            return "end", "", len(self._text)
        token = self._tokens[0]
        kind = next(kind for kind in ("number", "word", "sign", "odd") if token[kind])
        if kind == "odd":
            raise wrong(self._text, token.start(kind), "this character has no meaning here")
        return kind, token[kind], token.start(kind)

    def _take(self, *texts: str) -> str:
        """The next token, "" if it is none of these."""
        text = self._next()[1]
        return text if text in texts and self._tokens.pop(0) else ""

    def condition(self) -> Condition:
        """All of the text."""
        alternatives = [[self._comparison()]]
        while word := self._take("and", "or"):
            if word == "or":
                alternatives.append([])
            alternatives[-1].append(self._comparison())
        kind, text, position = self._next()
        if kind != "end":
            reason = "join comparisons with and" if text in _COMPARE else "an operator must stand here"
            raise wrong(self._text, position, reason)
        return Condition(self._text.strip(), tuple(map(tuple, alternatives)))

    def _comparison(self) -> Comparing:
        start = self._tokens[0].start() if self._tokens else 0
        self._literals = []
        left = self._terms()
        position = self._next()[2]
        if not (sign := self._take(*_COMPARE)):
            raise wrong(self._text, position, f"a comparison ({' '.join(_COMPARE)}) must stand here")
        return sign, *self._filled(left, self._terms(), start)

    def _terms(self, signs: Sequence[tuple[str, str]] = (("+", "-"), ("*", "/"))) -> Terms:
        """A sum, whose parts are products of factors."""
        if not signs:
            return self._factor()
        terms = self._terms(signs[1:])
        while sign := self._take(*signs[0]):
            terms = _joined(sign, terms, self._terms(signs[1:]))
        return terms

    def _factor(self) -> Terms:
        kind, text, position = self._next()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise wrong(self._text, position, "it is nested too deeply")
        if self._take("-"):
            terms = _joined(_NEGATIVE, self._factor())
        elif self._take("("):
            terms = self._terms()
            closing = self._next()[2]
            if not self._take(")"):
                raise wrong(self._text, closing, "a closing bracket must stand here")
        elif kind == "number":
            terms = [self._literal(self._tokens.pop(0), position)]
        elif kind == "word" and text not in ("and", "or"):
            self._tokens.pop(0)
            terms = [self._name(text, position)]
        else:
            raise wrong(self._text, position, "a number or a name must stand here")
        self._depth -= 1
        return terms

    def _literal(self, token: re.Match[str], position: int) -> Number:
        symbol = token["symbol"]
        value = float(token["number"])
        value = value / 100 if token["percent"] else value * _PREFIXES[token["prefix"]] if symbol else value
        if not math.isfinite(value):
            raise wrong(self._text, position, f"no number may be larger than {sys.float_info.max:.2g}")
        self._literals.append(Number(value, _SYMBOLS.get(symbol, ""), position))
        return self._literals[-1]

    def _name(self, words: str, position: int) -> Name:
        baseline = words == BASELINE or words.startswith(f"{BASELINE}.")
        words = words[len(BASELINE) + 1 :] if baseline else words
        if not words:
            return Name("", "", True, position)
        pieces = words.split(".")
        starts = (".".join(pieces[:length]) for length in range(len(pieces), 0, -1))
        found = next((name for name in starts if name in QUANTITIES), "")
        rest, parts = words[len(found) + 1 :], QUANTITIES[found].parts if found else ()
        if not found or (rest and not any(parts)):
            raise wrong(self._text, position, f"the names known are {', '.join(QUANTITIES)} and {BASELINE}")
        if not rest and parts and "" not in parts:
            raise wrong(self._text, position, f"{found} needs a part: {' or '.join(f'{found}.{part}' for part in parts)}")
        return Name(found, rest, baseline, position)

    def _filled(self, left: Terms, right: Terms, start: int) -> tuple[Terms, Terms]:
        """Both sides with every bare ``baseline`` filled in, constants and units checked."""
        names = [term for term in (*left, *right) if isinstance(term, Name)]
        named = {(name.quantity, name.rest) for name in names if name.quantity}
        bare = [name.position for name in names if not name.quantity]
        if not named:
            raise wrong(self._text, bare[0] if bare else start, "the comparison names nothing of the new report")
        quantity, rest = min(named)
        if bare and len(named) > 1:
            raise wrong(self._text, bare[0], f"say which baseline: {BASELINE}.{'.'.join(filter(None, (quantity, rest)))}")
        for term in (*left, *right):
            if isinstance(term, Number) and not math.isfinite(term.value):
                raise wrong(self._text, term.position, "what is worked out here is no finite number")
        units = {"", *(QUANTITIES[name].unit for name, _ in named)}
        for number in self._literals:
            if number.unit not in units:
                raise wrong(self._text, number.position, "the unit fits none of the names compared")

        whole: dict[Term, Term] = {name: Name(quantity, rest, True, name.position) for name in names if not name.quantity}
        return [whole.get(term, term) for term in left], [whole.get(term, term) for term in right]


def _joined(sign: str, *parts: Terms) -> Terms:
    """One or two parts under a sign; numbers are worked out at once."""
    terms = [*(term for part in parts for term in part), sign]
    first = terms[0]
    if isinstance(first, Number) and all(len(part) == 1 and isinstance(part[0], Number) for part in parts):
        with np.errstate(all="ignore"):
            return [Number(float(_worked_out(terms, lambda _: math.nan)), "", first.position)]
    return terms


def evaluate(comparison: Comparison, thresholds: Sequence[str | Condition]) -> Comparison:
    """The comparison with its table `thresholds`: every condition on every kernel, and the numbers that decide.

    Kernels are those compared with the baseline or, where there are no such rows, with the step before.
    Raises UsageError for a condition that can't be read, or that names a precision or level that does not exist.
    """
    conditions = [parse(threshold) if isinstance(threshold, str) else threshold for threshold in thresholds]
    values = _Values(comparison)
    names = {name.text: name for condition in conditions for name in condition.names() if values.checked(condition, name)}
    compared = comparison.kernel_columns["against"].tolist()
    against = "baseline" if "baseline" in compared else "previous"
    numbers = {text: values.of(name) for text, name in names.items()}
    truths = [np.broadcast_to(one.truth(lambda name: numbers[name.text]), len(compared)) for one in conditions]
    outcomes = [
        _outcome(comparison.kernel_columns, row, condition, truth[row], {name.text: numbers[name.text][row] for name in called})
        for row, one in enumerate(compared)
        if one == against
        for condition, truth, called in zip(conditions, truths, map(Condition.names, conditions), strict=True)
    ]
    return replace(comparison, threshold_columns=of_rows(outcomes, COMPARISON_THRESHOLDS))


def _outcome(kernels: Any, row: int, condition: Condition, truth: float, numbers: dict[str, float]) -> dict[str, Any]:
    """A row of the thresholds."""
    kernel = {name: column[row] for name, column in kernels.items()}
    result = NOT_EVALUATED if truth == MISSING else TRIPPED if truth else PASSED
    if result == NOT_EVALUATED:
        why = "the reports give" if kernel["device"] == kernel["device_before"] else "the GPUs differ:"
        why = f"{kernel['outcome']}:" if kernel["outcome"] in (ADDED, REMOVED) else why
        lacking = [text for text, value in numbers.items() if math.isnan(value)]
        reason = f"{why} no {', no '.join(lacking)}" if lacking else "no finite result"
    elif result == TRIPPED and kernel["small"]:
        result, reason = NOT_JUDGED, f"{kernel['small']} (--small judges them)"
    else:
        units = (QUANTITIES[name.quantity].unit for name in condition.names())
        texts = (
            f"{text} = {format_value(value, unit) if unit else f'{value:.6g}'}"
            for (text, value), unit in zip(numbers.items(), units, strict=True)
        )
        reason = ", ".join(texts)
    grid, block = (kernel[name] or kernel[f"{name}_before"] for name in ("grid", "block"))
    return {
        **{name: kernel[name] for name in ("step", "against", "baseline", "report", "kernel", "seconds")},
        "row": row,
        "configuration": f"grid {grid} block {block}" if grid else "",
        "threshold": condition.text,
        "result": result,
        "reason": reason,
    }


class _Values:
    """The numbers that names stand for: columns, NaN where one is missing or would mislead."""

    def __init__(self, comparison: Comparison) -> None:
        self._kernels, self._levels, spec = comparison.kernel_columns, comparison.level_columns, load_spec()
        keys = zip(self._levels["row"].tolist(), self._levels["precision"], self._levels["level"], strict=True)
        self._rows = {key: number for number, key in enumerate(keys)}
        self._level_ids = {level.id for level in spec.levels} | set(self._levels["level"]) - {""}
        self._precision_ids = {one.id for one in spec.precisions} | set(self._levels["precision"]) - {""} | {"mixed"}

    def _split(self, rest: str) -> tuple[str, str]:
        """Precision and level of what stands behind a name; either may be ''."""
        front, _, last = rest.rpartition(".")
        return (front, last) if last in self._level_ids else (rest, "")

    def checked(self, condition: Condition, name: Name) -> bool:
        """True, or UsageError for parts that are no precision and no level, or not of this quantity."""
        if name.baseline and name.quantity in ("share", "noise"):
            raise wrong(condition.text, name.position, f"{name.quantity} belongs to the change, the baseline has none")
        precision, level = self._split(name.rest)
        parts = QUANTITIES[name.quantity].parts
        kind = ".".join(["PRECISION"] * bool(precision) + ["LEVEL"] * bool(level))
        if precision and precision not in self._precision_ids:
            known = "`ncu-roofline list precisions` and `list levels` name them."
            raise wrong(condition.text, name.position, f"{precision} is no precision or level known", known)
        if kind and kind not in parts:
            allowed = " or ".join(f"{name.quantity}.{part}" for part in parts if part)
            raise wrong(condition.text, name.position, f"{name.quantity} takes {allowed}")
        return True

    def of(self, name: Name) -> FloatArray:
        """A number for each kernel, in SI units."""
        kernels, suffix = self._kernels, "_before" if name.baseline else ""
        column = QUANTITIES[name.quantity].column
        outcome = kernels["outcome"]
        there = outcome != (ADDED if name.baseline else REMOVED)
        if name.quantity in ("share", "noise"):
            numbers = kernels[column]
        elif name.quantity in ("time", "time.total", "time.normalised"):
            numbers = kernels[f"{column.removesuffix('_normalised')}{suffix}"]
            if name.baseline:  # of another GPU it has no meaning
                there &= (kernels["device"] == kernels["device_before"]) | (outcome == ADDED) | (outcome == REMOVED)
            else:
                at_clock = (kernels["time_basis"] == "normalised") | (name.quantity == "time.normalised")
                numbers = np.where(at_clock, kernels[f"{column.removesuffix('_normalised')}_normalised"], numbers)
        elif name.rest:
            numbers = self._by_level(name, f"{column}{suffix}", kernels[f"precision{suffix}"])
        else:
            numbers = kernels[f"{column}{suffix}"]
        return np.where(there, np.asarray(numbers, dtype=np.float64), np.nan)

    def _by_level(self, name: Name, column: str, most_work: Any) -> FloatArray:
        precision, level = self._split(name.rest)
        of_most = not precision and name.quantity in ("intensity", "fraction")
        keys = ((row, most if of_most else precision, level) for row, most in enumerate(most_work.tolist()))
        places = [self._rows.get(key, -1) for key in keys]
        return np.append(self._levels[column], np.nan)[places]
