"""Thresholds on a comparison: for each kernel and condition, whether it trips, and with which numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ncu_roofline.analyses.compare import columns
from ncu_roofline.analyses.compare.expressions import QUANTITIES, Condition, Name, parse, wrong
from ncu_roofline.analyses.compare.frames import Comparison
from ncu_roofline.analyses.compare.rows import NOT_JUDGED
from ncu_roofline.base.units import format_value
from ncu_roofline.chips import load_spec
from ncu_roofline.model.roofline import of_rows

PASSED, TRIPPED, NOT_EVALUATED = "passed", "tripped", "not evaluated"  # NOT_JUDGED: it would trip, but the kernel is small
# Names that are columns of the frame of kernels; others are looked up by precision and level.
_COLUMNS = {
    "time.raw": "seconds",
    "time.normalised": "seconds_normalised",
    "cycles": "cycles",
    "clock": "clock",
    "launches": "launches",
    "flops": "work",
    "flops.total": "total_work",
    "performance": "performance",
    "fraction": "fraction",
}
_BY_LEVEL = {"flops": "work", "flops.total": "total_work", "bytes": "traffic", "bytes.total": "total_traffic"}


def evaluate(comparison: Comparison, thresholds: Sequence[str | Condition]) -> Comparison:
    """The comparison with its table `thresholds`: every condition on every kernel, and the numbers that decide.

    Kernels are those compared with the baseline or, where there are no such rows, with the step before.
    Raises UsageError for a condition that can't be read, or that names a precision or level that does not exist.
    """
    conditions = [parse(threshold) if isinstance(threshold, str) else threshold for threshold in thresholds]
    values = _Values(comparison)
    for condition in conditions:
        for name in condition.names():
            values.check(condition, name)
    compared = comparison.kernel_columns["against"].tolist()
    against = "baseline" if "baseline" in compared else "previous"
    rows = [row for row, one in enumerate(compared) if one == against]
    outcomes = [_outcome(values, condition, row) for row in rows for condition in conditions]
    return replace(comparison, threshold_columns=of_rows(outcomes, columns.COMPARISON_THRESHOLDS))


def _outcome(values: _Values, condition: Condition, row: int) -> dict[str, Any]:
    """A row of the thresholds."""
    numbers = {name.text: values.value(name, row) for name in condition.names()}
    holds = condition.holds(lambda name: numbers[name.text])
    if holds is None:
        lacking = [text for text, value in numbers.items() if math.isnan(value)]
        reason = f"{values.why(row)} no {', no '.join(lacking)}" if lacking else "no finite result"
    else:
        reason = ", ".join(f"{name.text} = {_shown(name, numbers[name.text])}" for name in condition.names())
    kernel = {name: column[row] for name, column in values.kernels.items()}
    result = NOT_EVALUATED if holds is None else TRIPPED if holds else PASSED
    if result == TRIPPED and kernel["small"]:
        result, reason = NOT_JUDGED, f"{kernel['small']} (--small judges them)"
    grid, block = (kernel[name] or kernel[f"{name}_before"] for name in ("grid", "block"))
    return {
        **{name: kernel[name] for name in ("step", "against", "baseline", "report", "kernel", "seconds")},
        "row": row,
        "configuration": f"grid {grid} block {block}" if grid else "",
        "threshold": condition.text,
        "result": result,
        "reason": reason,
    }


def _shown(name: Name, value: float) -> str:
    unit = QUANTITIES[name.quantity].unit
    return format_value(value, unit) if unit else f"{value:.6g}"


class _Values:
    """The numbers that names stand for, row by row."""

    def __init__(self, comparison: Comparison) -> None:
        self.kernels: Mapping[str, Any] = comparison.kernel_columns
        levels = comparison.level_columns
        self._levels = levels
        keys = zip(levels["row"].tolist(), levels["precision"], levels["level"], strict=True)
        self._rows = {key: number for number, key in enumerate(keys)}
        spec = load_spec()
        self._level_ids = {level.id for level in spec.levels} | set(levels["level"]) - {""}
        self._precision_ids = {precision.id for precision in spec.precisions} | set(levels["precision"]) - {""} | {"mixed"}

    def check(self, condition: Condition, name: Name) -> None:
        """Raise UsageError for parts that are no precision and no level, or not of this quantity."""
        if name.baseline and name.quantity in ("share", "noise"):
            raise wrong(condition.text, name.position, f"{name.quantity} belongs to the change, the baseline has none")
        if not name.rest:
            return
        precision, level = self._split(name.rest)
        parts = QUANTITIES[name.quantity].parts
        kind = ".".join(["PRECISION"] * bool(precision) + ["LEVEL"] * bool(level))
        if precision and precision not in self._precision_ids:
            known = "`ncu-roofline list precisions` and `list levels` name them."
            raise wrong(condition.text, name.position, f"{precision} is no precision or level known", known)
        if kind not in parts:
            allowed = " or ".join(f"{name.quantity}.{part}" for part in parts if part)
            raise wrong(condition.text, name.position, f"{name.quantity} takes {allowed}")

    def _split(self, rest: str) -> tuple[str, str]:
        """Precision and level of what stands behind a name; either may be ''."""
        front, _, last = rest.rpartition(".")
        return (front, last) if last in self._level_ids else (rest, "")

    def why(self, row: int) -> str:
        """What explains a missing number, as the start of a sentence."""
        outcome = self.kernels["outcome"][row]
        if outcome in ("added", "removed"):
            return f"{outcome}:"
        return "the reports give" if self.kernels["device"][row] == self.kernels["device_before"][row] else "the GPUs differ:"

    def value(self, name: Name, row: int) -> float:
        """The number of one name for one kernel, in SI units; NaN where it is missing or would mislead."""
        if not self._exists(row, name.baseline):
            return math.nan
        suffix = "_before" if name.baseline else ""
        if name.quantity in ("share", "noise"):
            return float(self.kernels["time_share" if name.quantity == "share" else "noise"][row])
        if name.quantity in ("time", "time.total", "time.normalised"):
            return self._time(name, row)
        if not name.rest:
            return float(self.kernels[f"{_COLUMNS[name.quantity]}{suffix}"][row])
        precision, level = self._split(name.rest)
        if not precision and name.quantity in ("intensity", "fraction"):
            precision = str(self.kernels[f"precision{suffix}"][row])
        found = self._rows.get((row, precision, level))
        column = _BY_LEVEL.get(name.quantity, name.quantity)
        return math.nan if found is None else float(self._levels[f"{column}{suffix}"][found])

    def _exists(self, row: int, baseline: bool) -> bool:
        return bool(self.kernels["outcome"][row] != ("added" if baseline else "removed"))

    def _time(self, name: Name, row: int) -> float:
        """Times; the baseline's is missing where the GPUs differ: one has no meaning for the other."""
        kernel = self.kernels
        both = kernel["outcome"][row] not in ("added", "removed")
        if name.baseline and both and kernel["device"][row] != kernel["device_before"][row]:
            return math.nan
        normalised = name.quantity == "time.normalised" or kernel["time_basis"][row] == "normalised"
        column = "seconds_before" if name.baseline else "seconds_normalised" if normalised else "seconds"
        return float(kernel[f"total_{column}" if name.quantity == "time.total" else column][row])
