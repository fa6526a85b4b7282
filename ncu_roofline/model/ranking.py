"""Which kernels come first, in tables, pages, advice and notebooks alike: those that could save most time."""

from __future__ import annotations

import math
from collections.abc import Iterable

WORTH = 0.01
"""What is less of the run time is not worth reading first."""


def at_stake(seconds: float, recoverable: float) -> float:
    """Seconds that a kernel could lose by its headroom: all of its time where nobody knows what could be saved."""
    stake = seconds if math.isnan(recoverable) else recoverable
    return stake if stake > 0 else 0.0


def rank(seconds: float, recoverable: float, share: float) -> tuple[bool, bool, float, float]:
    """Sorts what could save most to the front; behind it what takes next to none of the time, and last what has no time.

    ``seconds`` and ``recoverable`` [s] may be NaN; ``share`` is that of the time of all on the same GPU, a ratio.
    """
    timed = seconds > 0
    return not timed, not share >= WORTH, -at_stake(seconds, recoverable), -seconds if timed else 0.0


def time_by_gpu(kernels: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Seconds of all kernels of each GPU, each given as GPU and its seconds; what is unknown adds nothing."""
    totals: dict[str, float] = {}
    for device, seconds in kernels:
        totals[device] = totals.get(device, 0.0) + (seconds if seconds > 0 else 0.0)
    return totals


def order(kernels: Iterable[tuple[str, float, float]]) -> list[int]:
    """Positions of kernels, each given as GPU, seconds and recoverable seconds, as `rank` sorts them."""
    given = list(kernels)
    totals = time_by_gpu((device, seconds) for device, seconds, _ in given)
    ranks = [
        rank(seconds, recoverable, seconds / totals[device] if totals[device] > 0 else math.nan)
        for device, seconds, recoverable in given
    ]
    return sorted(range(len(given)), key=ranks.__getitem__)
