"""What limits a kernel and what it could gain: the one verdict that tables, pages, comparisons, advice and the rules give.

Plain functions over plain numbers.  The rule generator puts the source of this file, without annotations, into the rules, where
Python may be 3.5: no f-strings, no classes but named tuples, nothing but the standard library.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Sequence

# From this share of a limit on a kernel is bound by it; below, latency keeps it.  Nsight Compute draws the line there, too.
REACHED = 0.6
# A kernel can't be above a roof: from here on the counters of several passes don't fit together.
ABOVE = 1.02
# Where a roof is nearly as full as the busiest unit, it is the same thing seen twice, and the roof has the better name.
SAME = 0.9
# Below this share of cycles the tensor pipe counts as idle: GA100 and GH100 run a few plain FP16 and move instructions on it.
TENSOR_ACTIVE = 0.01
# A speed-up below this is none.
LITTLE = 1.05
# Above this one a number tells no more.
FAR = 100.0
# Below these, occupancy, warps ready to issue and waves of blocks are told as what keeps a kernel from its limits.
LOW_OCCUPANCY, FEW_ELIGIBLE, FEW_WAVES, LAUNCH_SHARE = 0.5, 1.0, 1.0, 0.1
# A possible occupancy from here on keeps nothing back.
NEARLY_ALL = 0.995

# From here on a mix of instructions that are not all fused is told beside the roof that it can't reach.
MIX_TOLD = 1.05

LATENCY = "latency"
TENSOR_UNKNOWN = "tensor work unknown"
UNKNOWN = "unknown"

Limit = namedtuple("Limit", "kind id label fraction roof detail")
"""Something that can be full: ``kind`` memory or compute, ``fraction`` how full (None or NaN unknown), ``roof`` whether it is a
roof of the chart (else the busy share of a hardware unit), ``detail`` what the fraction is of, if not of the roof itself."""

State = namedtuple("State", "tensor_active occupancy occupancy_possible eligible waves launch_share")
"""What else was measured, each None or NaN where not: share of cycles in which the tensor pipe was active, achieved and
possible occupancy (ratios), eligible warps per scheduler and cycle, waves of blocks, launch overhead as a share of the time."""

Verdict = namedtuple("Verdict", "text limit fraction speedup reason")
"""``text`` is "memory: LABEL", "compute: LABEL", LATENCY, TENSOR_UNKNOWN or UNKNOWN; ``limit`` the id of the nearest known
limit, "" if none; ``fraction`` how full it is and ``speedup`` by what the kernel could at most be faster before something is
full (both NaN where unknown); ``reason`` one sentence."""

NO_TIME = "its run time is not known, so no rate is"
UNKNOWN_CHIP = "the counters of its GPU are not known to this version"
ALL_IDLE = "every unit that was looked at was idle"
NO_ROOFS = "no roof of its GPU is known"
NOTHING_COLLECTED = "neither work nor traffic nor the use of any unit was collected"

NOTHING_KNOWN = State(None, None, None, None, None, None)


def is_known(value: float | None) -> bool:
    """Whether a number was measured."""
    return value is not None and value == value and value not in (math.inf, -math.inf)


def as_percent(share: float) -> str:
    """A share for people: 75 %, 4.2 %."""
    return ("{:.0f} %" if 0.0995 <= share < 100 else "{:.2g} %").format(100 * share)


def of_mix(slower: float, peak: str = "FMA peak") -> str:
    """What the fraction of a compute limit is of, where its instructions take ``slower`` times as long as the peak has it."""
    if not slower > MIX_TOLD:
        return ""
    return "of what its mix of instructions can reach, which is {:.0f} % of the {}".format(100 / slower, peak)


def nearest_limit(limits: Sequence[Limit]) -> Limit | None:
    """The limit that is fullest; a roof rather than a unit where both are about as full."""
    known = [limit for limit in limits if is_known(limit.fraction) and limit.fraction > 0]
    if not known:
        return None
    fullest = max(known, key=lambda limit: limit.fraction)
    roofs = [limit for limit in known if limit.roof and limit.fraction >= SAME * fullest.fraction]
    return max(roofs, key=lambda limit: limit.fraction) if roofs else fullest


def judge(
    limits: Sequence[Limit],
    state: State = NOTHING_KNOWN,
    tensor_unknown: bool = False,
    roofless: str = "",
    why: str = NOTHING_COLLECTED,
) -> Verdict:
    """The verdict on a kernel from all that can be full.

    With ``tensor_unknown`` its tensor operations were not counted; ``roofless`` names work that it does without a known roof;
    ``why`` says what is missing where nothing is known to limit it.
    """
    nearest = nearest_limit(limits)
    if roofless and not tensor_unknown and (nearest is None or nearest.fraction < REACHED):
        text = "no roof is known for its {} work".format(roofless)
        if nearest is None:
            return Verdict(UNKNOWN, "", math.nan, math.nan, text)
        text = "{}; {}".format(text, _at(nearest, "the nearest known limit is "))
        return Verdict(UNKNOWN, nearest.id, nearest.fraction, math.nan, text)
    if nearest is None:
        return _without_limits(state, tensor_unknown, why)
    fullest = max([limit for limit in limits if is_known(limit.fraction)], key=lambda limit: limit.fraction)
    speedup = _speedup(fullest, state)
    if tensor_unknown:
        text = "{}; {}".format(_tensor(state), _at(nearest, "the nearest known limit is "))
        return Verdict(TENSOR_UNKNOWN, nearest.id, nearest.fraction, math.nan, text)
    if nearest.fraction > ABOVE:
        reason = "{}, which can't be: clock or cache state differed between the passes, or the counters don't match".format(
            _at(nearest)
        )
        return Verdict(_bound(nearest), nearest.id, nearest.fraction, speedup, reason)
    if nearest.fraction >= REACHED:
        beside = _beside(nearest, fullest) if speedup >= LITTLE else ""
        return Verdict(_bound(nearest), nearest.id, nearest.fraction, speedup, _at(nearest) + beside + _at_most(speedup))
    causes = keeping_back(state)
    why = ", ".join(causes) if causes else "what keeps it was not collected (occupancy, warps, stalls)"
    reason = "nothing is full: {}{}; {}{}".format(
        _at(nearest, "nearest is "), _beside(nearest, fullest), why, _at_most(speedup)
    )
    return Verdict(LATENCY, nearest.id, nearest.fraction, speedup, reason)


def _beside(nearest: Limit, fullest: Limit) -> str:
    """What is fuller than the roof that is named, and says by what the kernel could be faster."""
    return " ({})".format(_at(fullest)) if fullest.fraction > LITTLE * nearest.fraction else ""


def keeping_back(state: State) -> list[str]:
    """What keeps a kernel from its limits, as far as it was measured."""
    causes = []
    if is_known(state.launch_share) and state.launch_share >= LAUNCH_SHARE:
        long = "launching it takes longer than it runs"
        causes.append(long if state.launch_share > 1 else "launching is {} of its time".format(as_percent(state.launch_share)))
    if is_known(state.waves) and state.waves < FEW_WAVES:
        causes.append("its grid is {} of the blocks that fit at once".format(as_percent(state.waves)))
    if is_known(state.occupancy):
        occupancy, possible = state.occupancy, ""
        if is_known(state.occupancy_possible):
            occupancy = min(occupancy, state.occupancy_possible)  # an average over active cycles may be a little above
            possible = " of {} possible".format(as_percent(state.occupancy_possible))
        low = "low " if occupancy < LOW_OCCUPANCY else ""
        causes.append("{}occupancy {}{}".format(low, as_percent(occupancy), possible))
    elif is_known(state.occupancy_possible) and state.occupancy_possible < NEARLY_ALL:
        causes.append("occupancy at most {}".format(as_percent(state.occupancy_possible)))
    if is_known(state.eligible) and state.eligible < FEW_ELIGIBLE:
        causes.append("{:.2g} warps ready to issue per scheduler and cycle".format(state.eligible))
    return causes


def _without_limits(state: State, tensor_unknown: bool, why: str) -> Verdict:
    if tensor_unknown:
        return Verdict(TENSOR_UNKNOWN, "", math.nan, math.nan, _tensor(state))
    causes = keeping_back(state)
    known = "; known is: {}".format(", ".join(causes)) if causes else ""
    return Verdict(UNKNOWN, "", math.nan, math.nan, why + known)


def _speedup(fullest: Limit, state: State) -> float:
    """By what the kernel could be faster before something is full, or nothing but the launch is left."""
    shares = [fullest.fraction] + ([state.launch_share] if is_known(state.launch_share) else [])
    return float(max(1.0, 1.0 / max(shares)))


def _bound(nearest: Limit) -> str:
    return "{}: {}".format(nearest.kind, nearest.label)


def _tensor(state: State) -> str:
    busy = " in {} of the cycles".format(as_percent(state.tensor_active)) if is_known(state.tensor_active) else ""
    return "the tensor pipe was active{} but its operations were not collected".format(busy)


def _at(nearest: Limit, before: str = "") -> str:
    share = as_percent(nearest.fraction)
    if nearest.roof:
        return "{}{} at {} {}".format(before, nearest.label, share, nearest.detail or "of its roof")
    return "{}{}, {} busy".format(before, nearest.label, share)


def _at_most(speedup: float) -> str:
    if speedup < LITTLE:
        return "; nothing to gain short of doing less"
    if speedup > FAR:
        return "; over {:.0f}x away from any limit".format(FAR)
    return ("; at most {:.1f}x faster" if speedup < 10 else "; at most {:.0f}x faster").format(speedup)
