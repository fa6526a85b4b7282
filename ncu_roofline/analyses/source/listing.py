"""Which instructions of a launch a listing shows: the stretch of its hottest function that holds most of what is asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from ncu_roofline.analyses.source.launches import MEASURES, Launch, Row

_EQUAL = 1e-9  # sums that differ by less of the whole do so by rounding


@dataclass(frozen=True)
class Listing:
    """Neighbouring instructions of one function, and how many of it stand before and behind them."""

    function: str
    rows: tuple[Row, ...]
    before: int
    behind: int


def listing(launch: Launch, measure: str, most: int) -> Listing:
    """The listing of a launch, of at most so many instructions; 0 is all of the function's.

    The hottest function is the one with most of the measure, of executed instructions where that is not known.
    """
    share = MEASURES[measure].share
    rows = launch.rows("instructions")
    weights: dict[str, float] = {}
    for row in rows:
        weights[row["function"]] = weights.get(row["function"], 0.0) + _weight(row[share])
    if not weights:
        return Listing("", (), 0, 0)
    function = max(weights, key=lambda name: (weights[name], bool(name)))
    mine = sorted((row for row in rows if row["function"] == function), key=lambda row: int(row["address"]))
    start, end = _hottest([_weight(row[share]) for row in mine], most)
    return Listing(function, tuple(mine[start:end]), start, len(mine) - end)


def _weight(share: float) -> float:
    return share if math.isfinite(share) else 0.0


def _hottest(weights: Sequence[float], most: int) -> tuple[int, int]:
    """Where the ``most`` neighbours with the largest sum begin and end; of equal ones where the heaviest is in the middle."""
    if not 0 < most < len(weights):
        return 0, len(weights)
    sums = [0.0, *accumulate(weights)]
    found = [sums[start + most] - sums[start] for start in range(len(weights) - most + 1)]
    least = max(found) - _EQUAL * sums[-1]
    equal = [one for one, total in enumerate(found) if total >= least]
    heaviest = max(range(equal[0], equal[0] + most), key=weights.__getitem__)
    start = min(equal, key=lambda one: abs(one + (most - 1) // 2 - heaviest))
    return start, start + most
