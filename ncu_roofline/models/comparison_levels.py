"""The rows by precision and level of a comparison: FLOPs, bytes, intensity and share of the roof, before and now."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ncu_roofline.models.comparison_rows import Pair
from ncu_roofline.models.comparison_sides import Side, Totals

_NUMBERS = ("work", "traffic", "total_work", "total_traffic", "bandwidth", "intensity", "performance", "fraction")


def level_rows(
    pair: Pair, kernels: Sequence[Mapping[str, Any]], first: int, precisions: tuple[str, ...], levels: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Rows of each kernel (``group`` says which of the pair), and of the application; ``first`` is the number of the first.

    The application is what both reports have of it, with as many launches as the baseline.
    """
    where = {name: kernels[0][name] for name in ("step", "against", "baseline", "report")} if kernels else pair.where
    keys = [
        (precision, level)
        for precision, level in _keys(pair.before, pair.after)
        if _wanted(precision, precisions) and (not levels or not level or level in levels)
    ]
    result = []
    groups = [(first + number, row["kernel"], row["group"], (pair.old, pair.new)) for number, row in enumerate(kernels)]
    for number, kernel, group, totals in [*groups, (-1, "", 0, _whole(pair))]:
        for precision, level in keys:
            numbers = [_numbers(one, group, precision, level, whole=number < 0) for one in totals]
            if any(not math.isnan(value) for one in numbers for value in one.values()):
                before = {f"{name}_before": numbers[0][name] for name in _NUMBERS}
                row = {"row": number, "kernel": kernel, "precision": precision, "level": level}
                result.append({**where, **row, **before, **numbers[1]})
    return result


def _whole(pair: Pair) -> tuple[Totals, Totals]:
    """The matched kernels of each side as one group, those of the new report as if launched as often as in the baseline."""
    common = np.append(pair.common, False)  # -1, rows of no group, picks the last
    ratio = np.append(pair.launch_ratio, np.nan)
    before, after = (np.where(common[one], 0, -1) for one in (pair.matching.before, pair.matching.after))
    return Totals(pair.before, before, 1), Totals(pair.after, after, 1, ratio[pair.matching.after])


def _wanted(precision: str, chosen: tuple[str, ...]) -> bool:
    return not chosen or not precision or any(precision == one or precision.startswith(f"{one}.") for one in chosen)


def _keys(before: Side, after: Side) -> Iterator[tuple[str, str]]:
    """Precisions alone, levels alone, and those that meet in a point."""
    points = [zip(side.points["precision"], side.points["level"], strict=True) for side in (before, after)]
    pairs = dict.fromkeys(key for side in points for key in side)
    yield from ((name, "") for name in dict.fromkeys([*before.work, *after.work, *(name for name, _ in pairs)]))
    yield from (("", level) for level in dict.fromkeys([*before.traffic, *after.traffic]))
    yield from pairs


def _numbers(totals: Totals, group: int, precision: str, level: str, whole: bool) -> dict[str, float]:
    """The numbers of one group; NaN for what this kind of row does not have, and for what is unknown."""
    result = dict.fromkeys(_NUMBERS, math.nan)
    seconds = float(totals.seconds[group]) or math.nan
    units = 1.0 if whole else float(totals.units[group]) or math.nan
    if precision and precision in totals.work:
        result["total_work"] = float(totals.work[precision][group])
        result["work"] = result["total_work"] / units
        result["performance"] = result["total_work"] / seconds
    if level and level in totals.traffic:
        result["total_traffic"] = float(totals.traffic[level][group])
        result["traffic"] = result["total_traffic"] / units
        result["bandwidth"] = result["total_traffic"] / seconds
    cell, binding = totals.cells.get((precision, level)), totals.bindings.get(precision)
    with np.errstate(all="ignore"):
        if cell is not None:
            result["intensity"] = float(cell.intensity[group])
            result["performance"] = float(cell.performance[group])
            result["fraction"] = float(cell.fraction[group])
        elif binding is not None and not level:
            if math.isnan(result["performance"]):
                result["performance"] = float(binding.performance[group])
            result["fraction"] = float(binding.fraction[group])
    return result
