"""Readings against the time in which trials ran: what share of it they took, mean power, energy.

A window is the begin and end of a trial in s; windows are in order and do not overlap.  A sample is a time in s and a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

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
    if any(after[1] < before[1] for before, after in pairwise([*samples[:1], *ticks])):
        return None
    if sum(since <= time <= until for time, _ in ticks) < 2:
        return None
    # Beyond the outermost ticks the line of the outermost two goes on, and by two ticks at most: a counter that stands still
    # has nothing to say.
    reach = 2 * max(after[0] - before[0] for before, after in pairwise(ticks))
    if since < ticks[0][0] - reach or until > ticks[-1][0] + reach:
        return None
    return _at(ticks, until) - _at(ticks, since)


def _at(ticks: Sequence[Sample], time: float) -> float:
    (left, low), (right, high) = next((pair for pair in pairwise(ticks) if time <= pair[1][0]), (ticks[-2], ticks[-1]))
    return low + (high - low) * (time - left) / (right - left)
