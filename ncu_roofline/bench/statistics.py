"""Statistics of repeated measurements: pure functions of lists of numbers.

The median stands for a run, order statistics give its confidence interval (no normal distribution is assumed: trials share a
thermal state, so the interval of a mean would be too narrow), and the median absolute deviation tells outliers.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from ncu_roofline.base.records import known

_MAD_TO_SIGMA = 1.4826
# Least sigma, as a share of the median: trials of an H100 vary by 0.1 % as a rule, and what is 1 % off does no harm.
_RESOLUTION = 2e-3


def median(values: Sequence[float]) -> float:
    """The median; NaN of nothing."""
    return statistics.median(values) if values else math.nan


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` of the values lie, interpolated."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    return ordered[low] + (ordered[min(low + 1, len(ordered) - 1)] - ordered[low]) * (place - low)


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Distribution-free 95 % confidence interval of the median: two order statistics.

    The number of values below the true median is binomial(n, 1/2).  With fewer than six values no pair reaches 95 %, and
    the whole range is returned.
    """
    ordered, count = sorted(values), len(values)
    tail, rank = 0.0, 0
    while rank < count // 2:
        tail += math.comb(count, rank) / 2.0**count
        if 2 * tail > 1 - 0.95:
            break
        rank += 1
    rank = max(rank, 1)
    return ordered[rank - 1], ordered[count - rank]


def outliers(values: Sequence[float]) -> list[bool]:
    """Which values lie more than five MAD-sigmas from the median."""
    middle = median(values)
    sigma = max(_MAD_TO_SIGMA * median([abs(value - middle) for value in values]), _RESOLUTION * abs(middle))
    return [abs(value - middle) > 5.0 * sigma for value in values]


def kept(values: Sequence[float]) -> list[float]:
    """The values that are no outliers."""
    return [value for value, out in zip(values, outliers(values), strict=True) if not out]


def variation(values: Sequence[float]) -> float:
    """Coefficient of variation: standard deviation over mean; NaN of fewer than two values, which tell none."""
    if len(values) < 2:
        return math.nan
    mean = statistics.fmean(values)
    return statistics.stdev(values) / abs(mean) if mean else math.inf


def largest_variation(sessions: Sequence[Sequence[float]]) -> float:
    """The largest variation within a session, outliers left out; NaN where no session tells one."""
    return max((found for values in sessions if not math.isnan(found := variation(kept(values)))), default=math.nan)


def stable_from(clocks: Sequence[float], tolerance: float = 0.005, window: int = 5) -> int | None:
    """First index from which ``window`` successive clocks differ by less than ``tolerance``; None if there is none."""
    for start in range(len(clocks) - window + 1):
        part = clocks[start : start + window]
        if min(part) > 0 and max(part) - min(part) < tolerance * max(part):
            return start
    return None


def summarise(sessions: Sequence[Sequence[float]]) -> dict[str, Any]:
    """What a ceiling's sessions, each with values, give as its entry in a ceilings file says it.

    "value" is the median of the session medians; "ci95" reaches from the lowest to the highest end of the sessions' own
    intervals, so that it holds what differs between sessions, too.  "cv" is the largest within a session, outliers left out,
    "between_session_cv" that of the medians; None where too few tell it.
    """
    everything = [value for values in sessions for value in values]
    intervals, medians = [median_interval(values) for values in sessions], [median(values) for values in sessions]
    return {
        "value": median(medians),
        "ci95": [min(low for low, _ in intervals), max(high for _, high in intervals)],
        "min": min(everything),
        "max": max(everything),
        "p05": quantile(everything, 0.05),
        "p95": quantile(everything, 0.95),
        "cv": known(largest_variation(sessions)),
        "trials": len(everything),
        "sessions": len(sessions),
        "between_session_cv": known(variation(medians)),
        "outliers": sum(sum(outliers(values)) for values in sessions),
    }
