"""Which roof a launch is held against: plain functions over numbers or arrays of them, which the model and the rules share.

The rule generator puts the source of this file into the rules, where Python may be 3.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# A measured roof above this share of theory at the same clock was not measured right: clocks swing by less during one.
MOST_OF_THEORY = 1.05
# Clocks of a kernel and of a measurement that differ by less are the same.
SAME_CLOCK = 0.01
INSTEAD = "theory judges"


def board_rule(boards: Sequence[Any], roof: str, device: str) -> Any:
    """Of the rules for boards that differ from others of their chip the one on a roof of this device, None if there is none."""
    named = [board for board in boards if any(part in device for part in board.names)]
    found = [board for board in named if roof in board.peaks or roof in board.absent]
    return found[0] if found else None


def judges(share: Any, clock_known: bool, at_maximum: Any) -> Any:
    """Whether a measured roof judges a launch; else theory does.

    ``share`` is what it is of theory at the clock of the launch, NaN where there is none.  Where it is not known at which clock
    it was measured, it says something only of launches ``at_maximum``, the highest clock of their GPU.
    """
    return (share != share) | ((share <= (MOST_OF_THEORY if clock_known else 1.0)) & (clock_known | at_maximum))


def why_not(share: float, clock_known: bool) -> str:
    """Why a measured roof that is ``share`` of theory does not judge."""
    amount = "{:.3g}x" if share < 100 else "{:.0f}x"
    launch = "the clock of the launch, and its own clock is not known"
    text = "{}: the measured roof is {} as high at {}"
    return text.format(INSTEAD, amount.format(share), "the same clock" if clock_known else launch)


def by_writes(roofs: Any, writes: Any) -> Any:
    """The bandwidth of memory of whose bytes the share ``writes`` is written, between measured ones, (share, bandwidth)."""
    last, value = roofs[0]
    reached = value
    for share, bandwidth in roofs[1:]:
        part = (writes - last) / (share - last)
        value = value + (bandwidth - reached) * (part * (part > 0) * (part < 1) + (part >= 1))
        last, reached = share, bandwidth
    return value


def measured_roof(numbers: Any, ceiling: Any, by_share: Any, theory: Any, launch: Any) -> Any:
    """A measured roof for launches, what it is of theory at the same clock, and whether it judges them.

    ``launch``: their SM clock (Hz), what the clock of a level is of that of a measurement, whether the SM clock is the highest,
    and the share of the bytes that is written.  The same work per cycle; as measured where a clock is unknown: profilers lock
    clocks below those of the measurement, and under its power limit a GPU sustains less than a launch of a few milliseconds
    reaches at a higher clock.  Memory that was measured for several shares of writes (``by_share``) is judged by these.
    """
    clock, slower, at_maximum, writes = launch
    other = by_writes(by_share, writes) if by_share else ceiling.per_cycle * clock
    usable = numbers.known(writes) if by_share else numbers.known(other) & ceiling.follows_sm_clock
    value = numbers.where(usable, other, ceiling.value)
    share = numbers.divided(value, theory / slower)
    share = numbers.where(share == share, share, ceiling.value / ceiling.theory)
    return value, share, judges(share, ceiling.clock_known, at_maximum)
