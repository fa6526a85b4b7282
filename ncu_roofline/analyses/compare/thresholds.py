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
from ncu_roofline.base.units import UNITS, format_value
from ncu_roofline.chips import load_spec
from ncu_roofline.model.measurements import FloatArray
from ncu_roofline.model.roofline import of_rows

PASSED, TRIPPED, NOT_EVALUATED = "passed", "tripped", "not evaluated"  # NOT_JUDGED: the kernel is small, whatever is true
BASELINE = "baseline"
OF_CHANGE = ("share", "noise")  # which a baseline does not have
MAX_LENGTH = 500  # and so no deeper than what Python's own recursion takes
MISSING = 0.5  # truth of what lacks a number, between false and true: `and` is the least of two truths, `or` the greatest
_PREFIXES = {"": 1.0, "n": 1e-9, "u": 1e-6, "\N{MICRO SIGN}": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
Kind = dict[str, int] | None  # powers of what is counted, {} of a ratio; None, of a bare number, goes with any
_KINDS: dict[str, Kind] = {
    "FLOP/s": {"flop": 1, "s": -1}, "FLOP/B": {"flop": 1, "byte": -1}, "FLOP": {"flop": 1}, "B/s": {"byte": 1, "s": -1},
    "B": {"byte": 1}, "Hz": {"cycles": 1, "s": -1}, "s": {"s": 1},
}  # fmt: skip
_TOKEN = (
    r"(?<![\w.])(?:(?P<name>[A-Za-z_]\w*(?:\.\w+)*)|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    rf"(?:\s*(?:(?P<percent>%)|(?P<prefix>[{''.join(_PREFIXES)}]?)(?P<symbol>{'|'.join(_KINDS)})(?![\w/])))?(?P<more>[\w.]?))"
)
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


Values = Callable[[Name], Any]


def _product(left: Kind, right: Kind, power: int) -> Kind:
    """Of ``left`` times ``right`` to that power; a number of launches beside another kind only counts that."""
    one, other = left or {}, right or {}
    powers = {base: total for base in one | other if (total := one.get(base, 0) + power * other.get(base, 0))}
    known = {base: total for base, total in powers.items() if base != "launches" or len(powers) == 1}
    return None if left is right is None else known


def wrong(text: str, position: int, reason: str, next_step: str = "") -> UsageError:
    """The error of an expression: ``position`` counts from 0."""
    rest = text[position : position + 20].split()
    place = f"at character {position + 1} ({rest[0]!r})" if rest else "at its end"
    known = next_step or "`ncu-roofline guide compare` shows how they are written."
    return UsageError("Cannot use threshold", text or "''", f"{place}: {reason}", known)


class Condition:
    """``text`` as the user wrote it, and its names, each once.  Raises UsageError that says at which character it is wrong."""

    def __init__(self, text: str, of: str = BASELINE) -> None:
        self.text, self._of = text.strip(), of
        self.names: list[Name] = []
        self._words: dict[int, str] = {}  # names by where they stand, and numbers with their units
        self._numbers: dict[int, tuple[np.float64, str]] = {}
        # Python reads the text with a letter or a digit in their place, so that all else stands where it stood.
        self._plain = re.sub(r"\s", " ", re.sub(_TOKEN, self._placed, self.text))
        if odd := re.search(r"[^\w\s.<>=!+*/()-]", self._plain, re.ASCII):
            raise self._wrong(odd.start(), "this character is not part of an expression")
        try:
            self._node = ast.parse(self._plain, mode="eval").body
        except (SyntaxError, RecursionError, MemoryError) as error:
            offset = getattr(error, "offset", None) or len(self._plain) + 1
            raise self._wrong(offset - 1, "the expression is incomplete or malformed here") from None
        met: dict[str, Name] = {}
        with np.errstate(all="ignore"):  # with any numbers: all of it is looked at
            self._truth(self._node, lambda name: np.float64(met.setdefault(name.text, name).position))
        self.names = sorted(met.values(), key=lambda name: name.position)

    def truth(self, value: Values) -> FloatArray:
        """1 where it is true for these values, 0 where it is false, MISSING where a number that decides is missing (NaN)."""
        with np.errstate(all="ignore"):
            return np.asarray(self._truth(self._node, value), dtype=np.float64)

    def _placed(self, token: re.Match[str]) -> str:
        place, width = token.start(), len(token[0])
        if token["name"]:
            self._words[place] = token["name"]
            return token["name"] if token["name"] in ("and", "or") else "n".ljust(width)
        value = float(token["number"])
        value = value / 100 if token["percent"] else value * _PREFIXES[token["prefix"] or ""]
        if not math.isfinite(value):
            raise wrong(self.text, place, f"no number may be larger than {sys.float_info.max:.2g}")
        if token["more"]:
            raise wrong(self.text, token.end("more") - 1, "the expression is malformed here")
        self._numbers[place] = np.float64(value), token["percent"] or token["symbol"] or ""
        return "1".ljust(width)

    def _wrong(self, place: int | None, reason: str) -> UsageError:
        return wrong(self.text, len(self._plain) - len(self._plain[place:].lstrip()), reason)

    def _truth(self, node: ast.expr, value: Values) -> Any:
        if isinstance(node, ast.BoolOp):
            join = np.minimum if isinstance(node.op, ast.And) else np.maximum
            return reduce(join, [self._truth(part, value) for part in node.values])
        if not isinstance(node, ast.Compare) or type(node.ops[0]) not in _COMPARE:
            raise self._wrong(node.end_col_offset, "a comparison (< <= > >= == !=) is expected here")
        if len(node.ops) > 1:
            raise self._wrong(node.comparators[0].end_col_offset, "join comparisons with and")
        # What a bare `baseline` stands for; names and units of a comparison are checked.
        here = range(node.col_offset, node.end_col_offset or 0)
        names = {place: self._name(place) for place in here if place in self._words}
        named = sorted({(name.quantity, name.rest) for name in names.values() if name.quantity})
        bare = [place for place, name in names.items() if not name.quantity]
        if not named:
            raise self._wrong(bare[0] if bare else here.start, "the comparison names nothing of the new report")
        named = [name for name in named if name[0] not in OF_CHANGE] or named
        if bare and len(named) > 1:
            raise self._wrong(bare[0], f"say which baseline: {BASELINE}.{'.'.join(filter(None, named[0]))}")
        names |= {place: Name(*named[0], True, place) for place in bare}
        sides = [(part, *self._number(part, names, value)) for part in (node.left, node.comparators[0])]
        self._alike(sides, names)
        left, right = (number for _, number, _ in sides)
        return np.where(np.isnan(left) | np.isnan(right), MISSING, _COMPARE[type(node.ops[0])](left, right))

    def _number(self, node: ast.expr, names: dict[int, Name], value: Values) -> tuple[Any, Kind]:
        place = node.col_offset
        if isinstance(node, ast.Constant) and place in self._numbers:
            number, symbol = self._numbers[place]
            return number, _KINDS.get(symbol, {}) if symbol else None
        if isinstance(node, ast.Name) and place in names:
            name, unit = names[place], QUANTITIES[names[place].quantity].unit
            return value(name), _KINDS.get(UNITS[unit].symbol, {}) if unit else {name.quantity: 1}
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            number, kind = self._number(node.operand, names, value)
            return -number, kind
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            sides = [(part, *self._number(part, names, value)) for part in (node.left, node.right)]
            (_, left, one), (_, right, other) = sides
            alike = isinstance(node.op, ast.Add | ast.Sub)
            kind = self._alike(sides, names) if alike else _product(one, other, 1 if isinstance(node.op, ast.Mult) else -1)
            return _ARITHMETIC[type(node.op)](left, right), kind
        raise self._wrong(place, "a number or a name is expected here")

    def _alike(self, sides: list[tuple[ast.expr, Any, Kind]], names: dict[int, Name]) -> Kind:
        """The kind of what is compared, added or subtracted.  Raises UsageError where there are two."""
        (first, _, one), (second, _, other) = sides
        if one is None or other is None or one == other:
            return other if one is None else one
        ratio = second if one else first
        here = range(ratio.col_offset, 0 if one and other else ratio.end_col_offset or 0)
        of = [name._replace(baseline=False).text for name in names.values() if QUANTITIES[name.quantity].unit != "ratio"]
        for place, (part, symbol) in self._numbers.items():
            if symbol == "%" and place in here and of:
                less = f" for more, `{of[0]} < {1 - part:.6g} * {self._of}` for less" if part < 1 else ""
                raise self._wrong(place, f"{100 * part:.6g} % of what? Write `{of[0]} > {1 + part:.6g} * {self._of}`{less}")
        more = "; a ratio multiplies, as in (1 + noise) * baseline" if here else ""
        raise self._wrong(second.col_offset, f"this has another unit than what stands before it{more}")

    def _name(self, place: int) -> Name:
        """The name that begins there: the longest quantity that fits, and what stands behind that; "" for bare ``baseline``."""
        baseline = f"{self._words[place]}.".startswith(f"{BASELINE}.")
        words = self._words[place][len(BASELINE) + 1 :] if baseline else self._words[place]
        if not words:
            return Name("", "", True, place)
        found = max((name for name in QUANTITIES if f"{words}.".startswith(f"{name}.")), key=len, default="")
        rest, parts = words[len(found) + 1 :], QUANTITIES[found].parts if found else ()
        if not found or (rest and not any(parts)):
            raise self._wrong(place, f"the names known are {', '.join(QUANTITIES)} and {BASELINE}")
        if not rest and parts and "" not in parts:
            raise self._wrong(place, f"{found} needs a part: {' or '.join(f'{found}.{part}' for part in parts)}")
        return Name(found, rest, baseline, place)


def parse(text: str, of: str = BASELINE) -> Condition:
    """Read a condition.  Raises UsageError that says at which character what is wrong; a percentage is ``of`` that."""
    if len(text) > MAX_LENGTH:
        raise wrong(text[:40] + "...", 40, f"it is longer than {MAX_LENGTH} characters")
    return Condition(text, of)


def evaluate(
    comparison: Comparison, thresholds: Sequence[str | Condition], limits: Mapping[int, Sequence[Condition]] | None = None
) -> Comparison:
    """The comparison with its table `thresholds`: every condition on every kernel, and the numbers that decide; ``limits``:
    conditions of single rows of the kernels.

    Kernels are those compared with the baseline or, where there are no such rows, with the step before.
    Raises UsageError for a condition that can't be read, or that names a precision or level that does not exist.
    """
    conditions = [parse(threshold) if isinstance(threshold, str) else threshold for threshold in thresholds]
    own = limits or {}
    every = [*conditions, *(one for some in own.values() for one in some)]
    named = {name.text: (one.text, name) for one in every for name in one.names}
    values = {text: _values(comparison, *each) for text, each in named.items()}
    kernels = comparison.kernel_columns
    compared = kernels["against"].tolist()
    against = "baseline" if "baseline" in compared else "previous"
    truths = [np.broadcast_to(one.truth(lambda name: values[name.text]), len(compared)) for one in conditions]
    rows = []
    for row in (row for row, pair in enumerate(compared) if pair == against):
        kernel = {name: column[row] for name, column in kernels.items()}
        grid, block = (kernel[name] or kernel[f"{name}_before"] for name in ("grid", "block"))
        about = {name: kernel[name] for name in ("step", "against", "baseline", "report", "kernel", "seconds")}
        about |= {"row": row, "configuration": f"grid {grid} block {block}" if grid else ""}
        tests = [(one, truth[row]) for one, truth in zip(conditions, truths, strict=True)]
        tests += [(one, one.truth(lambda name, row=row: values[name.text][row])) for one in own.get(row, ())]  # type: ignore[misc]
        for condition, truth in tests:
            result = NOT_EVALUATED if truth == MISSING else TRIPPED if truth else PASSED
            numbers = [(one.text, float(values[one.text][row]), QUANTITIES[one.quantity].unit) for one in condition.names]
            texts = ((text, format_value(number, unit) if unit else f"{number:.6g}") for text, number, unit in numbers)
            reason = ", ".join(f"{text} = {number}" for text, number in texts)
            if result == NOT_EVALUATED:
                why = "the reports give" if kernel["device"] == kernel["device_before"] else "the GPUs differ:"
                why = f"{kernel['outcome']}:" if kernel["outcome"] in (ADDED, REMOVED) else why
                lacking = [text for text, number, _ in numbers if math.isnan(number)]
                reason = f"{why} no {', no '.join(lacking)}" if lacking else "no finite result"
            elif kernel["small"]:
                result, reason = NOT_JUDGED, f"{'true, but ' * (result == TRIPPED)}{kernel['small']} (--small judges them)"
            rows.append({**about, "threshold": condition.text, "result": result, "reason": reason})
    return replace(comparison, threshold_columns=of_rows(rows, COMPARISON_THRESHOLDS))


def _values(comparison: Comparison, text: str, name: Name) -> FloatArray:
    """What a name stands for: a number for each kernel in SI units, NaN where one is missing or would mislead."""
    kernels, levels, spec = comparison.kernel_columns, comparison.level_columns, load_spec()
    level_ids = {level.id for level in spec.levels} | set(levels["level"]) - {""}
    precision_ids = {one.id for one in spec.precisions} | set(levels["precision"]) - {""} | {"mixed"}
    column, _, parts = QUANTITIES[name.quantity]
    front, _, last = name.rest.rpartition(".")
    precision, level = (front, last) if last in level_ids else (name.rest, "")
    kind = ".".join(["PRECISION"] * bool(precision) + ["LEVEL"] * bool(level))
    if precision and precision not in precision_ids:
        known = "`ncu-roofline list precisions` and `list levels` name them."
        raise wrong(text, name.position, f"{precision} is no precision or level known", known)
    if kind and kind not in parts:
        allowed = " or ".join(f"{name.quantity}.{part}" for part in parts if part)
        raise wrong(text, name.position, f"{name.quantity} takes {allowed}")
    if name.baseline and name.quantity in OF_CHANGE:
        raise wrong(text, name.position, f"{name.quantity} belongs to the change, the baseline has none")
    suffix = "_before" if name.baseline else ""
    numbers: Any
    if kind:
        keys = zip(levels["row"].tolist(), levels["precision"], levels["level"], strict=True)
        places = {key: number for number, key in enumerate(keys)}
        of_most = not precision and name.quantity in ("intensity", "fraction")
        most_work = enumerate(kernels[f"precision{suffix}"].tolist())
        rows = [places.get((row, most if of_most else precision, level), -1) for row, most in most_work]
        numbers = np.append(levels[f"{column}{suffix}"], np.nan)[rows]
    elif name.quantity not in ("time", "time.total", "time.normalised"):
        numbers = kernels[f"{column}{suffix}"]
    else:  # times of another GPU have no meaning beside those of this one
        plain = column.removesuffix("_normalised")
        alike = (kernels["device"] == kernels["device_before"]) | np.isin(kernels["outcome"], (ADDED, REMOVED))
        at_clock = (kernels["time_basis"] == "normalised") | (name.quantity == "time.normalised")
        now = np.where(at_clock, kernels[f"{plain}_normalised"], kernels[plain])
        numbers = np.where(alike, kernels[f"{plain}_before"], np.nan) if name.baseline else now
    there = kernels["outcome"] != (ADDED if name.baseline else REMOVED)
    return np.where(there, np.asarray(numbers, dtype=np.float64), np.nan)
