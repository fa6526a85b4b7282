"""Statistics of repeated measurements: pure functions of lists of numbers.

The median stands for a run, order statistics give its confidence interval (no normal distribution is assumed: trials share a
thermal state, so the interval of a mean would be too narrow), and the median absolute deviation tells outliers.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ncu_roofline.base.forms import known

_MAD_TO_SIGMA = 1.4826
# Least sigma, as a share of the median: trials of an H100 vary by 0.1 % as a rule, and what is 1 % off does no harm.
_RESOLUTION = 2e-3


def median(values: Sequence[float]) -> float:
    """The median; NaN of nothing."""
    return statistics.median(values) if values else math.nan


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` of the values lie, interpolated; NaN of nothing."""
    if not values:
        return math.nan
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    return ordered[low] + (ordered[min(low + 1, len(ordered) - 1)] - ordered[low]) * (place - low)


def median_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Distribution-free confidence interval of the median: two order statistics.

    The number of values below the true median is binomial(n, 1/2).  With fewer than six values no pair reaches 95 %, and
    the whole range is returned.  (NaN, NaN) of nothing.
    """
    if not values:
        return math.nan, math.nan
    ordered, count = sorted(values), len(values)
    tail, rank = 0.0, 0
    while rank < count // 2:
        tail += math.comb(count, rank) / 2.0**count
        if 2 * tail > 1 - confidence:
            break
        rank += 1
    rank = max(rank, 1)
    return ordered[rank - 1], ordered[count - rank]


def outliers(values: Sequence[float], limit: float = 5.0) -> list[bool]:
    """Which values lie more than ``limit`` MAD-sigmas from the median."""
    if not values:
        return []
    middle = median(values)
    sigma = max(_MAD_TO_SIGMA * median([abs(value - middle) for value in values]), _RESOLUTION * abs(middle))
    return [abs(value - middle) > limit * sigma for value in values]


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
        if all(math.isfinite(clock) and clock > 0 for clock in part) and max(part) - min(part) < tolerance * max(part):
            return start
    return None


def summarise(sessions: Sequence[Sequence[float]]) -> dict[str, Any]:
    """What a ceiling's sessions give, as its entry in a ceilings file says it; sessions without values are left out.

    "value" is the median of the session medians; "ci95" reaches from the lowest to the highest end of the sessions' own
    intervals, so that it holds what differs between sessions, too.  "cv" is the largest within a session, outliers left out,
    "between_session_cv" that of the medians; None where too few tell it.  ValueError if no session has values.
    """
    used = [list(values) for values in sessions if values]
    if not used:
        raise ValueError("no values")
    everything = [value for values in used for value in values]
    intervals = [median_interval(values) for values in used]
    medians = [median(values) for values in used]
    return {
        "value": median(medians),
        "ci95": [min(low for low, _ in intervals), max(high for _, high in intervals)],
        "min": min(everything),
        "max": max(everything),
        "p05": quantile(everything, 0.05),
        "p95": quantile(everything, 0.95),
        "cv": known(largest_variation(used)),
        "trials": len(everything),
        "sessions": len(used),
        "between_session_cv": known(variation(medians)),
        "outliers": sum(sum(outliers(values)) for values in used),
    }


def kept(values: Sequence[float]) -> list[float]:
    """The values that are no outliers."""
    return [value for value, out in zip(values, outliers(values), strict=True) if not out]


Window = tuple[float, float]
Sample = tuple[float, float]


def within(time: float, windows: Sequence[Window]) -> bool:
    """Whether a time lies in one of the windows."""
    return any(begin <= time <= end for begin, end in windows)


def duty(windows: Sequence[Window]) -> float | None:
    """Share of the span from the first begin to the last end that was timed, 0 to 1; None without windows or time."""
    span = windows[-1][1] - windows[0][0] if windows else 0.0
    return sum(end - begin for begin, end in windows) / span if span > 0 else None


def mean(samples: Sequence[Sample], windows: Sequence[Window]) -> float | None:
    """Time-weighted mean of the samples in the windows: each stands for the time that it is the nearest sample of its window.

    A window without a sample does not count; None if none has any.
    """
    total = weight = 0.0
    for begin, end in windows:
        inside = [(time, value) for time, value in samples if begin <= time <= end]
        borders = [begin, *((one[0] + next_[0]) / 2 for one, next_ in pairwise(inside)), end]
        for (_, value), (left, right) in zip(inside, pairwise(borders), strict=False):
            total += value * (right - left)
            weight += right - left
    return total / weight if weight > 0 else None


def growth(samples: Sequence[Sample], since: float, until: float) -> float | None:
    """How much a counter that is renewed in ticks grew between two times, on straight lines between the ticks around them.

    None if fewer than two ticks lie between the times, if the counter fell, or if an edge is far from any tick.
    """
    # The first sample is no tick: nobody knows since when the counter stood there.
    ticks = [now for before, now in pairwise(samples) if now[1] != before[1]]
    fell = any(after[1] < before[1] for before, after in pairwise([*samples[:1], *ticks]))
    if fell or sum(since <= time <= until for time, _ in ticks) < 2:
        return None
    # Beyond the outermost ticks the line of the outermost two goes on, and by two ticks at most: a counter that stands still
    # has nothing to say.
    reach = 2 * max(after[0] - before[0] for before, after in pairwise(ticks))
    if since < ticks[0][0] - reach or until > ticks[-1][0] + reach:
        return None

    def at(time: float) -> float:
        (left, low), (right, high) = next((pair for pair in pairwise(ticks) if time <= pair[1][0]), (ticks[-2], ticks[-1]))
        return low + (high - low) * (time - left) / (right - left)

    return at(until) - at(since)
