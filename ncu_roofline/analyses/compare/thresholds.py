"""Thresholds such as ``fraction < 0.9 * baseline`` on a comparison's kernels: of Python's grammar only what is listed here."""

from __future__ import annotations

import ast
import math
import operator
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from ncu_roofline.analyses.compare.columns import COMPARISON_THRESHOLDS, QUANTITIES
from ncu_roofline.analyses.compare.frames import ADDED, NOT_JUDGED, REMOVED, Comparison
from ncu_roofline.base.errors import UsageError
from ncu_roofline.base.units import format_value
from ncu_roofline.chips import load_spec
from ncu_roofline.model.measurements import FloatArray
from ncu_roofline.model.roofline import of_rows

PASSED, TRIPPED, NOT_EVALUATED = "passed", "tripped", "not evaluated"  # NOT_JUDGED: it would trip, but the kernel is small
BASELINE = "baseline"
MAX_LENGTH = 500  # and so no deeper than what Python's own recursion takes
MISSING = 0.5  # truth of what lacks a number, between false and true: `and` is the least of two truths, `or` the greatest
_PREFIXES = {"": 1.0, "n": 1e-9, "u": 1e-6, "\N{MICRO SIGN}": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SYMBOLS = {
    "FLOP/s": "flop/s", "FLOP/B": "flop/byte", "FLOP": "flop", "B/s": "byte/s", "B": "byte", "Hz": "hertz", "s": "second",
}  # fmt: skip
_NUMBER = (
    r"(?<![\w.])(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    rf"(?:\s*(?:(?P<percent>%)|(?P<prefix>[{''.join(_PREFIXES)}]?)(?P<symbol>{'|'.join(_SYMBOLS)})(?![\w/])))?"
)
_WORD = r"(?<![\w.])[A-Za-z_]\w*(?:\.\w+)*"
_ODD = r"[^\w\s.<>=!+*/()-]"
Values = Callable[["Name"], Any]
Term = Callable[[Values], Any]
_COMPARE: dict[type, Callable[..., Any]] = {
    ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal, ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}  # fmt: skip
_ARITHMETIC: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda left, right: left / np.where(right == 0, math.nan, right),
}
_JOIN: dict[type, Callable[..., Any]] = {ast.And: np.minimum, ast.Or: np.maximum}


class Name(NamedTuple):
    """A quantity of the new report or, with ``baseline``, of the reference; ``rest`` is precision and level behind it."""

    quantity: str
    rest: str
    baseline: bool
    position: int

    @property
    def text(self) -> str:
        """As it would be written in full."""
        return ".".join(filter(None, (BASELINE if self.baseline else "", self.quantity, self.rest)))


class Condition(NamedTuple):
    """``text`` as the user wrote it, its names, each once, and its truth as a function of their values."""

    text: str
    names: list[Name]
    term: Term

    def truth(self, value: Values) -> FloatArray:
        """1 where it is true for these values, 0 where it is false, MISSING where a number that decides is missing (NaN)."""
        with np.errstate(all="ignore"):
            return np.asarray(self.term(value), dtype=np.float64)


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
    """A text as Python reads it: numbers are SI values behind which no unit stands.

    ``places`` are those of the characters of ``plain`` in the text, ``units`` those of numbers by where they begin in it.
    """

    def __init__(self, text: str) -> None:
        self.text, self.plain, end = text, "", len(text) - len(text.lstrip())
        self.places: list[int] = []
        self.units: dict[int, str] = {}
        self.names: dict[str, Name] = {}
        for number in (*re.finditer(_NUMBER, text), None):
            part = text[end : number.start() if number else None]
            if odd := re.search(_ODD, part, re.ASCII):
                raise wrong(text, end + odd.start(), "this character has no meaning here")
            self.plain += re.sub(r"\s", " ", part)
            self.places += range(end, end + len(part))
            if number:
                value = float(number["number"])
                value = value / 100 if number["percent"] else value * _PREFIXES[number["prefix"] or ""]
                if not math.isfinite(value):
                    raise wrong(text, number.start(), f"no number may be larger than {sys.float_info.max:.2g}")
                self.units[len(self.plain)] = _SYMBOLS.get(number["symbol"], "")
                self.plain += f"{value!r} "
                self.places += [number.start()] * (len(self.plain) - len(self.places))
                end = number.end()

    def condition(self) -> Condition:
        try:
            term = self._truth(ast.parse(self.plain, mode="eval").body)
        except (SyntaxError, RecursionError, MemoryError) as error:
            offset = getattr(error, "offset", None) or len(self.plain) + 1
            raise self._wrong(offset - 1, "an expression can't go on like this") from None
        return Condition(self.text.strip(), sorted(self.names.values(), key=lambda name: name.position), term)

    def _wrong(self, column: int, reason: str) -> UsageError:
        column = len(self.plain) - len(self.plain[column:].lstrip())
        return wrong(self.text, [*self.places, len(self.text)][min(column, len(self.places))], reason)

    def _truth(self, node: ast.expr) -> Term:
        if isinstance(node, ast.BoolOp):
            join, parts = _JOIN[type(node.op)], [self._truth(part) for part in node.values]
            return lambda value: reduce(join, (part(value) for part in parts))
        if not isinstance(node, ast.Compare) or type(node.ops[0]) not in _COMPARE:
            raise self._wrong(node.end_col_offset or 0, "a comparison (< <= > >= == !=) must stand here")
        if len(node.ops) > 1:
            raise self._wrong(node.comparators[0].end_col_offset or 0, "join comparisons with and")
        compare, bare = _COMPARE[type(node.ops[0])], self._compared(node)
        left, right = (self._number(part, bare) for part in (node.left, node.comparators[0]))

        def truth(value: Values) -> Any:
            before, behind = left(value), right(value)
            return np.where(np.isnan(before) | np.isnan(behind), MISSING, compare(before, behind))

        return truth

    def _compared(self, node: ast.Compare) -> Name:
        """What a bare ``baseline`` stands for; names and units of a comparison are checked."""
        start, end = node.col_offset, node.end_col_offset or 0
        places = [start + word.start() for word in re.finditer(_WORD, self.plain[start:end])]
        names = [self._name(place) for place in places]
        named = sorted({(name.quantity, name.rest) for name in names if name.quantity})
        bare = [place for name, place in zip(names, places, strict=True) if not name.quantity]
        if not named:
            raise self._wrong(bare[0] if bare else start, "the comparison names nothing of the new report")
        if bare and len(named) > 1:
            raise self._wrong(bare[0], f"say which baseline: {BASELINE}.{'.'.join(filter(None, named[0]))}")
        units = {"", *(QUANTITIES[quantity].unit for quantity, _ in named)}
        if odd := [place for place, unit in self.units.items() if start <= place < end and unit not in units]:
            raise self._wrong(odd[0], "the unit fits none of the names compared")
        return Name(*named[0], True, self.places[bare[0]] if bare else 0)

    def _number(self, node: ast.expr, bare: Name) -> Term:
        if isinstance(node, ast.Constant) and node.col_offset in self.units:
            number = np.float64(node.value)  # type: ignore[arg-type]
            return lambda _: number
        if isinstance(node, (ast.Name, ast.Attribute)) and self.plain.startswith(ast.unparse(node), node.col_offset):
            name = self._name(node.col_offset)
            name = name if name.quantity else bare
            self.names.setdefault(name.text, name)
            return lambda value: value(name)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            part = self._number(node.operand, bare)
            return lambda value: -part(value)
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            work, left, right = _ARITHMETIC[type(node.op)], self._number(node.left, bare), self._number(node.right, bare)
            return lambda value: work(left(value), right(value))
        raise self._wrong(node.col_offset, "a number or a name must stand here")

    def _name(self, place: int) -> Name:
        """The name that begins there: the longest quantity that fits, and what stands behind that; "" for bare ``baseline``."""
        words = re.match(_WORD, self.plain[place:])[0]  # type: ignore[index]
        baseline = words == BASELINE or words.startswith(f"{BASELINE}.")
        words = words[len(BASELINE) + 1 :] if baseline else words
        if not words:
            return Name("", "", True, self.places[place])
        found = max((name for name in QUANTITIES if f"{words}.".startswith(f"{name}.")), key=len, default="")
        rest, parts = words[len(found) + 1 :], QUANTITIES[found].parts if found else ()
        if not found or (rest and not any(parts)):
            raise self._wrong(place, f"the names known are {', '.join(QUANTITIES)} and {BASELINE}")
        if not rest and parts and "" not in parts:
            raise self._wrong(place, f"{found} needs a part: {' or '.join(f'{found}.{part}' for part in parts)}")
        return Name(found, rest, baseline, self.places[place])


def evaluate(comparison: Comparison, thresholds: Sequence[str | Condition]) -> Comparison:
    """The comparison with its table `thresholds`: every condition on every kernel, and the numbers that decide.

    Kernels are those compared with the baseline or, where there are no such rows, with the step before.
    Raises UsageError for a condition that can't be read, or that names a precision or level that does not exist.
    """
    conditions = [parse(threshold) if isinstance(threshold, str) else threshold for threshold in thresholds]
    values = _values(comparison, conditions)
    compared = comparison.kernel_columns["against"].tolist()
    against = "baseline" if "baseline" in compared else "previous"
    truths = [np.broadcast_to(one.truth(lambda name: values[name.text]), len(compared)) for one in conditions]
    rows = []
    for row in (row for row, pair in enumerate(compared) if pair == against):
        for condition, truth in zip(conditions, truths, strict=True):
            numbers = {name: float(values[name.text][row]) for name in condition.names}
            rows.append(_judged(comparison.kernel_columns, row, condition, truth[row], numbers))
    return replace(comparison, threshold_columns=of_rows(rows, COMPARISON_THRESHOLDS))


def _judged(kernels: Any, row: int, condition: Condition, truth: float, values: Mapping[Name, float]) -> dict[str, Any]:
    """A row of the thresholds: one condition on one kernel, with the values of its names."""
    kernel = {name: column[row] for name, column in kernels.items()}
    result = NOT_EVALUATED if truth == MISSING else TRIPPED if truth else PASSED
    units = [QUANTITIES[name.quantity].unit for name in values]
    reason = ", ".join(
        f"{name.text} = {format_value(value, unit) if unit else f'{value:.6g}'}"
        for (name, value), unit in zip(values.items(), units, strict=True)
    )
    if result == NOT_EVALUATED:
        why = "the reports give" if kernel["device"] == kernel["device_before"] else "the GPUs differ:"
        why = f"{kernel['outcome']}:" if kernel["outcome"] in (ADDED, REMOVED) else why
        lacking = [name.text for name, value in values.items() if math.isnan(value)]
        reason = f"{why} no {', no '.join(lacking)}" if lacking else "no finite result"
    elif result == TRIPPED and kernel["small"]:
        result, reason = NOT_JUDGED, f"{kernel['small']} (--small judges them)"
    grid, block = (kernel[name] or kernel[f"{name}_before"] for name in ("grid", "block"))
    configuration = f"grid {grid} block {block}" if grid else ""
    found = {"row": row, "configuration": configuration, "threshold": condition.text, "result": result, "reason": reason}
    return {**found, **{name: kernel[name] for name in ("step", "against", "baseline", "report", "kernel", "seconds")}}


def _values(comparison: Comparison, conditions: Sequence[Condition]) -> dict[str, FloatArray]:
    """What all names stand for: a number for each kernel in SI units, NaN where one is missing or would mislead."""
    kernels, levels, spec = comparison.kernel_columns, comparison.level_columns, load_spec()
    keys = zip(levels["row"].tolist(), levels["precision"], levels["level"], strict=True)
    places = {key: number for number, key in enumerate(keys)}
    level_ids = {level.id for level in spec.levels} | set(levels["level"]) - {""}
    precision_ids = {one.id for one in spec.precisions} | set(levels["precision"]) - {""} | {"mixed"}
    found: dict[str, FloatArray] = {}
    for text, name in ((condition.text, name) for condition in conditions for name in condition.names):
        front, _, last = name.rest.rpartition(".")
        precision, level = (front, last) if last in level_ids else (name.rest, "")
        kind, parts = ".".join(["PRECISION"] * bool(precision) + ["LEVEL"] * bool(level)), QUANTITIES[name.quantity].parts
        if precision and precision not in precision_ids:
            known = "`ncu-roofline list precisions` and `list levels` name them."
            raise wrong(text, name.position, f"{precision} is no precision or level known", known)
        if kind and kind not in parts:
            allowed = " or ".join(f"{name.quantity}.{part}" for part in parts if part)
            raise wrong(text, name.position, f"{name.quantity} takes {allowed}")
        if name.baseline and name.quantity in ("share", "noise"):
            raise wrong(text, name.position, f"{name.quantity} belongs to the change, the baseline has none")
        numbers = np.asarray(_of_kernels(kernels, name), dtype=np.float64) if not kind else None
        if numbers is None:
            suffix = "_before" if name.baseline else ""
            of_most = not precision and name.quantity in ("intensity", "fraction")
            most_work = kernels[f"precision{suffix}"].tolist()
            wanted = [places.get((row, most if of_most else precision, level), -1) for row, most in enumerate(most_work)]
            numbers = np.append(levels[f"{QUANTITIES[name.quantity].column}{suffix}"], np.nan)[wanted]
        there = kernels["outcome"] != (ADDED if name.baseline else REMOVED)
        found[name.text] = np.where(there, numbers, np.nan)
    return found


def _of_kernels(kernels: Any, name: Name) -> Any:
    """A column of the kernels; times of another GPU have no meaning beside those of this one."""
    column, suffix = QUANTITIES[name.quantity].column, "_before" if name.baseline else ""
    if name.quantity not in ("time", "time.total", "time.normalised"):
        return kernels[column if name.quantity in ("share", "noise") else f"{column}{suffix}"]
    plain = column.removesuffix("_normalised")
    if name.baseline:
        alike = (kernels["device"] == kernels["device_before"]) | np.isin(kernels["outcome"], (ADDED, REMOVED))
        return np.where(alike, kernels[f"{plain}_before"], np.nan)
    at_clock = (kernels["time_basis"] == "normalised") | (name.quantity == "time.normalised")
    return np.where(at_clock, kernels[f"{plain}_normalised"], kernels[plain])
