"""What limits a kernel and what headroom it has: the one verdict that tables, pages, comparisons, advice and the rules give.

Plain functions over plain numbers.  The rule generator puts the source of this file, without annotations, into the rules, where
Python may be 3.5: no f-strings, no classes but named tuples, nothing but the standard library.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import Any

# From where on a measured number means something: each limit once.  Those of findings stand with them.

# Below this share of a kernel's work a second pipe is noise (an index computed in floating point), not a mixed kernel.
MIXED_SHARE = 0.01
# Work without a roof that is less than this share of all says nothing against the verdict.
ROOFLESS_SHARE = 0.01
# Share of the maximum clock below which a profiled clock is warned of.
CLOCK_WARNING = 0.9
# Seconds below which a duration is launching as much as running, and cycles / duration is no clock: 612 MHz stood beside 1.29
# GHz of longer launches in one report (V100), for the memory likewise.
SHORT_LAUNCH = 20e-6
# Hz below which a value is no clock: GPUs idle at tens of MHz and more, and short launches, whose duration is mostly launching,
# still give hundreds.
LEAST_CLOCK = 1e6
# A smaller share of a peak, in percent as ncu writes it, has too few digits to work out the peak from.
TELLING = 0.01
# A level drawn on request shows from this share of DRAM's traffic on, or if it takes this share of the time over a PCIe 4.0
# link of 16 lanes (31.5 GB/s each way).
MATTERS, PCIE = 0.01, 31.5e9
# Instruction families that make up less or more of a total than this share were not all counted.
COMPLETE = 0.01
# Up to this share of a measured roof two honest measurements may differ: table III of Yang et al. (2018) has 100.64 %.
REPEATED = 1.02
# Share of the grid whose starts must have been sampled, and of the time, or a part of the launch is unknown.
SAMPLED_WHOLE = 0.99
# Runs of pass groups that differ more than this in length did not do the same at the same time.
STRETCHED = 1.1
# A larger share of a peak is none: counters of several passes that don't fit together, or overflow.
MOST = 1.5
# A named part that is as busy as its group, but for this share, has the better name.
GROUP_LESS = 1e-6
# Share of a kernel's samples from which on a loop's performance is told.  Warps run side by side, so samples of different code
# overlap in time: a line of one A100 kernel with 43.8 % of the samples and all 2.199 TFLOP would stand at 325 TFLOP/s, above
# the chip's 312.
MOST_OF_TIME = 0.5

# From this share of a limit on a kernel is bound by it; below, latency keeps it.  Nsight Compute draws the line there, too.
REACHED = 0.6
# A kernel can't be above a roof: from here on the counters of several passes don't fit together, and from the second share on
# they don't belong together, so that nothing is judged by them.
ABOVE, BEYOND = 1.02, 1.2
# Where a roof is nearly as full as the busiest unit, it is the same thing seen twice, and the roof has the better name.
SAME = 0.9
# Below this share of cycles the tensor pipe counts as idle: GA100 and GH100 run a few plain FP16 and move instructions on it.
TENSOR_ACTIVE = 0.01
# Below these, occupancy, eligible warps, waves of blocks and active SMs are told as what keeps a kernel from its limits;
# achieved occupancy is low where it is this share of the theoretical one or less.
LOW_OCCUPANCY, OF_THEORETICAL, FEW_ELIGIBLE, FEW_WAVES, LAUNCH_SHARE, IDLE = 0.5, 0.8, 1.0, 1.0, 0.1, 0.05
# Of a unit's use less is no waste to be named; of another unit's use than that of the one that is full; of lanes.
WASTE, WASTE_ELSEWHERE, WASTE_OF_LANES = 0.1, 0.3, 0.25
# Two numbers of headroom that differ less are one.
SAME_HEADROOM = 1.02
# Of several launches those with the verdict of most of the time are told to be a part below this share.
PART_TOLD = 0.995
# From here on a mix of instructions that are not all fused is told beside the roof that it can't reach.
MIX_TOLD = 1.05

LATENCY = "latency"
TENSOR_UNKNOWN = "tensor work unknown"
UNKNOWN = "unknown"
TOO_SHORT = "too short to judge"

# Something that can be full: ``kind`` memory or compute, ``fraction`` how full (None or NaN unknown), ``roof`` whether it is a
# roof of the chart (else the busy share of a hardware unit), ``detail`` what the fraction is of, if not of the roof itself,
# ``lower`` whether the fraction is a lower bound.
Limit = namedtuple("Limit", "kind id label fraction roof detail lower")

# What else was measured, each None or NaN where not: share of cycles in which the tensor pipe was active, achieved and
# theoretical occupancy (ratios), eligible warps per scheduler and cycle, waves of blocks, launch overhead as a share of the
# time, and the share of the cycles in which the SMs were active: the mean, the least and the most of them.
State = namedtuple("State", "tensor_active occupancy theoretical eligible waves launching active least_active most_active")

# What the arithmetic of a kernel needs: ``headroom``, by which its time exceeds that of its work at the compute roofs,
# ``label`` of the roof that needs most of it, and by level id the (intensity, ridge point, unit) there.
Arithmetic = namedtuple("Arithmetic", "headroom label ridges")
NO_ARITHMETIC = Arithmetic(math.nan, "", {})

# A part of what fills a unit that the work does not need: ``share`` of the use of those limits whose ids are in ``units`` (None
# where that can't be worked out), and what it is.
Waste = namedtuple("Waste", "cause share units text")

# All that is known of a kernel.  ``amounts`` gives, when called, by name the counts that prove waste; ``unseen`` are labels of
# what was not looked at, ``partly`` of what was counted in part only; with ``tensor_unknown`` its tensor operations were not
# counted; ``roofless`` names work that it does without a known roof; ``why`` says what is missing where nothing is known to
# limit it; ``short`` are the seconds of launches too short, else None.  Where several launches are one kernel, the case is
# that of ``part`` of their time, and ``headroom`` that of all together (None: of one launch, as its limits have it).
Case = namedtuple("Case", "limits state arithmetic amounts unseen partly tensor_unknown roofless why short headroom part")

# ``text`` is "memory: LABEL", "compute: LABEL", LATENCY, TENSOR_UNKNOWN, TOO_SHORT or UNKNOWN; ``limit`` the id of the nearest
# known limit, "" if none; ``fraction`` how full it is.  ``headroom`` is by what the kernel could be faster at its present
# traffic and instructions, ``without_waste`` if its ``waste`` were not, ``headroom_compute`` to the compute roofs of its work
# (NaN where unknown); ``or_less``: something was counted in part or not at all, so that the headroom is that or less;
# ``reason`` says it in one sentence.
Verdict = namedtuple("Verdict", "text limit fraction headroom or_less headroom_compute without_waste waste reason")

# How busy a unit was: a share of its peak, whether that is a lower bound, and whether it is of active cycles, of an unknown
# share of all.
Share = namedtuple("Share", "value lower of_active")
# What a precision asks of its pipe: operations, and those without a known roof; seconds that they take at its peak, and that
# its instructions need, fused or not, both as far as there is a roof.
Asked = namedtuple("Asked", "precision pipe work roofless seconds mix")
# A level of memory: bytes per second, their share of its roof and whether that is a lower bound; bytes of launches with work,
# and bytes per second of the roof.  NaN where unknown.
Reached = namedtuple("Reached", "level rate share lower traffic bandwidth")
# What the verdict on launches is made of.  ``busy`` has a Share by unit id; ``counted_seconds`` by pipe the run time of
# launches whose work on it was counted, of any pipe by ""; ``lower``: some work is a lower bound; ``counted``: some work
# is known; ``no_time`` says why no run time is known, if so, ``short`` the seconds of launches too short, else None.
Row = namedtuple("Row", "levels busy asked counted_seconds lower counted state amounts tensor_unknown chip_known no_time short")

NO_TIME = "its run time was not collected, so no rate is known"
UNKNOWN_CHIP = "the counters of its GPU are not known to this version"
ALL_IDLE = "every unit that was collected was idle"
NO_ROOFS = "no roof of its GPU is known"
NOTHING_COLLECTED = "neither work nor traffic nor the utilization of any unit was collected"

PEAK_OF_ACTIVE = "peak in active cycles"
MISFIT = "clock or cache state differed between the passes, or the counters don't match"
# Limits that are sums over others, and those of the way through L1, by their ids.
GROUPS = ("sm", "memory", "sm-memory")
L1_UNITS, PIPES, MEMORIES = ("l1", "l1-l2"), ("l1", "shared"), ("l1", "shared", "l2", "dram", "system")
# Without the traffic of these, by their labels, nobody can tell a headroom; without others, or a roof, it is one limit less.
OUTER = ("L2", "DRAM")
ROOF_OF = "the roof of "


def is_known(value: float | None) -> bool:
    return value is not None and value == value and value not in (math.inf, -math.inf)


def as_percent(share: float) -> str:
    """A share for people: 75 %, 4.2 %."""
    return ("{:.0f} %" if 0.0995 <= share < 100 else "{:.2g} %").format(100 * share)


def as_times(ratio: float) -> str:
    """A headroom for people: 1.02x, 1.4x, 39x, 2,400x."""
    if ratio < 1.095:
        return "{:.2f}x".format(ratio)
    return "{:.1f}x".format(ratio) if ratio < 9.95 else "{:,.0f}x".format(float("{:.2g}".format(ratio)))


def in_words(texts: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join([", ".join(texts[:-1])] * (len(texts) > 1) + list(texts[-1:]))


def of_mix(slower: float, instructions: bool = False) -> str:
    """What the fraction of a compute limit is of, where its instructions take ``slower`` times as long as the peak has it.
    The peak is that of multiply-adds, or where the roof counts ``instructions`` the issue limit."""
    if not slower > MIX_TOLD:
        return ""
    mix, peak = ("instruction-mix", "the issue limit") if instructions else ("FMA-mix", "peak")
    return "its {} ceiling ({:.0f} % of {})".format(mix, 100 / slower, peak)


def nearest_limit(limits: Sequence[Limit]) -> Limit | None:
    """The limit that is fullest; a roof rather than a unit where both are about as full."""
    known = [limit for limit in limits if is_known(limit.fraction) and limit.fraction > 0]
    if not known:
        return None
    fullest = max(known, key=lambda limit: limit.fraction)
    roofs = [limit for limit in known if limit.roof and limit.fraction >= SAME * fullest.fraction]
    return max(roofs, key=lambda limit: limit.fraction) if roofs else fullest


def judge(case: Case) -> Verdict:
    """The verdict on a kernel from all that can be full.  Without a verdict there is no headroom either."""
    nearest, state = nearest_limit(case.limits), case.state
    if case.short is not None:
        text = "{}: {:.2g} us per launch".format(TOO_SHORT, 1e6 * case.short)
        limit, share = (nearest.id, nearest.fraction) if nearest is not None else ("", math.nan)
        text += "; highest: {}".format(_named(nearest)) if nearest is not None else ""
        return Verdict(TOO_SHORT, limit, share, math.nan, False, math.nan, math.nan, "", text)
    busy = " in {} of the cycles".format(as_percent(state.tensor_active)) if is_known(state.tensor_active) else ""
    tensor = "the tensor pipe was active{} but its operations were not collected".format(busy)
    causes = ", ".join(keeping_back(state))
    if nearest is None:
        why = "no roof is known for its {} work".format(case.roofless) if case.roofless else str(case.why)
        known = "; known: {}".format(causes) if causes and not case.roofless else ""
        return _unknown(nearest, case, tensor if case.tensor_unknown else why + known)
    fullest = max([limit for limit in case.limits if is_known(limit.fraction)], key=lambda limit: limit.fraction)
    if fullest.fraction > BEYOND:
        return _unknown(fullest, case, "{}, which is impossible: {}".format(_named(fullest), MISFIT))
    full, named = nearest.fraction >= REACHED, _named(nearest)
    if case.tensor_unknown and not (full and is_known(state.tensor_active) and state.tensor_active < nearest.fraction):
        return _unknown(nearest, case, "{}; the highest known limit is {}".format(tensor, named))
    if case.roofless and not full:
        text = "no roof is known for its {} work; the highest known limit is {}".format(case.roofless, named)
        return _unknown(nearest, case, text)
    if (case.unseen or case.partly) and not full:
        return _unknown(nearest, case, "highest known: {}; {}".format(named, _not_seen(case)))
    if full:
        return _bound(nearest, fullest, case)
    why = causes or "its cause was not collected (occupancy, warps, stalls)"
    text = "latency-bound, no unit above {} (highest: {}); {}".format(as_percent(REACHED), _named(fullest), why)
    headrooms, at = (_headroom([fullest], case), math.nan), "at its present traffic and instructions"
    return _verdict(LATENCY, fullest, case, headrooms, (text, at, ""))


def _bound(nearest: Limit, fullest: Limit, case: Case) -> Verdict:
    waste = wasted(nearest, case.amounts())
    headroom = math.nan if set(OUTER) & set(case.unseen) else _headroom([fullest], case)
    without = math.nan
    if waste is not None and waste.share is not None and not case.unseen and case.headroom is None:
        parts = [limit for limit in case.limits if is_known(limit.fraction) and limit.id not in GROUPS]
        less = [part._replace(fraction=part.fraction * (1 - waste.share * (part.id in waste.units))) for part in parts]
        without = _headroom(less, case)
    name = "{}-bound" if nearest.roof or nearest.id in MEMORIES else "bound by its {}"
    text = name.format(nearest.label) + _full(nearest)
    text += "; {}".format(_named(fullest)) if fullest.fraction > MIX_TOLD * nearest.fraction else ""
    text += ", which is impossible: {}".format(MISFIT) if nearest.fraction > ABOVE else ""
    text += "; {}".format(waste.text) if waste is not None else ""
    mine = "traffic" if nearest.kind == "memory" else "instructions"
    at = "at its present {}".format(mine if case.part >= PART_TOLD else "traffic and instructions")
    cause = waste.cause if waste is not None else ""
    return _verdict("{}: {}".format(nearest.kind, nearest.label), nearest, case, (headroom, without), (text, at, cause))


def _verdict(name: str, nearest: Limit, case: Case, headrooms: Sequence[float], words: Sequence[str]) -> Verdict:
    (headroom, without), (text, at, cause) = headrooms, words
    arithmetic = NO_ARITHMETIC if case.tensor_unknown or case.roofless else case.arithmetic
    compute = arithmetic.headroom
    same = nearest.roof and nearest.label == arithmetic.label and compute <= SAME_HEADROOM * headroom
    place = arithmetic.ridges.get(nearest.id) if nearest.kind == "memory" else None
    numbers = []
    in_part = case.unseen or case.partly
    or_less = is_known(headroom) and bool(in_part or nearest.lower)
    if is_known(headroom):
        why = " (or less: {})".format(_not_seen(case) if in_part else "more was not counted") if or_less else ""
        numbers.append("headroom {} {}{}".format(as_times(headroom), at, why))
    elif in_part:
        numbers.append("{}, so that its headroom is not known".format(_not_seen(case)))
    if is_known(without):
        numbers.append("{} without that".format(as_times(without)))
    if is_known(compute) and not same:
        there = " (intensity {:.3g}, ridge point {:.3g} {})".format(*place) if place else ""
        numbers.append("{} to the {} roof{}".format(as_times(compute), arithmetic.label, there))
    part = "in {} of its time ".format(as_percent(case.part)) if case.part < PART_TOLD else ""
    reason = part + ("{}: {}".format(text, ", ".join(numbers)) if numbers else text)
    return Verdict(name, nearest.id, nearest.fraction, headroom, or_less, compute, without, cause, reason)


def _unknown(nearest: Limit | None, case: Case, why: str) -> Verdict:
    limit, fraction = (nearest.id, nearest.fraction) if nearest is not None else ("", math.nan)
    text = TENSOR_UNKNOWN if case.tensor_unknown else UNKNOWN
    return Verdict(text, limit, fraction, math.nan, False, math.nan, math.nan, "", "limit unknown: {}".format(why))


def _not_seen(case: Case) -> str:
    said = []
    if case.unseen:
        said.append("{} {} not collected".format(in_words(case.unseen), "were" if len(case.unseen) > 1 else "was"))
    if case.partly:
        said.append("{} counted in part only".format(in_words(case.partly)))
    return ", ".join(said)


def _headroom(limits: Sequence[Limit], case: Case) -> float:
    """By what a kernel could be faster before something is full, or nothing but the launch is left."""
    if case.headroom is not None:
        return float(case.headroom)
    shares = [limit.fraction for limit in limits] + ([case.state.launching] if is_known(case.state.launching) else [])
    return float(max(1.0, 1.0 / max(shares)))


def _named(limit: Limit) -> str:
    """DRAM at 75 % of its roof; ALU pipe at 40 % of peak; L2, at least 20 % of its roof."""
    return str(limit.label) + _full(limit)


def _full(limit: Limit) -> str:
    share, of = as_percent(limit.fraction), limit.detail or ("its roof" if limit.roof else "peak")
    return "{} {} of {}".format(", at least" if limit.lower else " at", share, of)


def wasted(limit: Limit, amounts: Mapping[str, float]) -> Waste | None:
    """The largest part of a full unit's use that counts prove to be waste; None if none is.  ``amounts``, as far as known:
    bytes of local_loads, local_stores and all of l1; bytes requested of L1 for global memory, and the ideal; shares of the
    data pipe (data_pipe), its banks (bank_reads, bank_writes), the ways back (writeback) and in (requests); conflicts and
    wavefronts of shared memory (shared); active lanes, a ratio."""

    def share(part: float | None, whole: float | None) -> float:
        found = part / whole if is_known(part) and is_known(whole) and whole > 0 else 0.0  # type: ignore[operator]
        return min(found, 1.0) if found <= ABOVE else 0.0  # a part of more than all is of another pass

    def known(*names: str) -> list[float]:
        return [amounts[name] for name in names if is_known(amounts.get(name))]

    found = []
    if limit.kind == "memory" and limit.id != "shared":
        local = share(sum(known("local_loads", "local_stores")), amounts.get("l1"))
        text = "{} of its L1 traffic is local memory (register spills, arrays indexed at run time)"
        found.append(Waste("local memory", local, L1_UNITS, text.format(as_percent(local))))
        excess = share(amounts.get("requested"), amounts.get("l1")) - share(amounts.get("ideal"), amounts.get("l1"))
        excess = excess if is_known(amounts.get("ideal")) else 0.0
        text = "{} of the sectors it requests from L1 are excess (uncoalesced accesses)"
        found.append(Waste("excess sectors", excess, ("l1",), text.format(as_percent(excess))))
    if limit.id in PIPES and not limit.roof and known("data_pipe"):
        useful = useful_passes(*[amounts.get(name) for name in ("writeback", "bank_reads", "bank_writes", "requests")])
        replays = max(1 - useful / amounts["data_pipe"], 0.0) if is_known(useful) else 0.0
        text = "{} or more of its L1 data-pipe cycles are replays (bank conflicts, scattered addresses)"
        found.append(Waste("replays", replays, PIPES, text.format(as_percent(replays))))
    if limit.id in PIPES:
        conflicts = share(amounts.get("conflicts"), amounts.get("shared"))
        text = "{} of its shared-memory wavefronts are bank conflicts"
        found.append(Waste("bank conflicts", conflicts, ("shared",), text.format(as_percent(conflicts))))
    for lanes in known("lanes") if limit.kind == "compute" and not limit.roof else []:
        lost = 1 - lanes if 1 - lanes >= WASTE_OF_LANES else 0.0
        found.append(Waste("inactive lanes", lost, (limit.id,), "{:.2g} of 32 lanes are active".format(32 * lanes)))
    found = [waste for waste in found if waste.share >= (WASTE if limit.id in waste.units else WASTE_ELSEWHERE)]
    worst = max(found, key=lambda waste: waste.share) if found else None
    return worst._replace(share=None) if worst is not None and limit.id not in worst.units else worst


def useful_passes(
    writeback: float | None, bank_reads: float | None, bank_writes: float | None, requests: float | None
) -> float:
    """The most of the data pipe's use that may be no replays, a share of its peak as all of these are; NaN where unknown.
    What is read goes back to registers.  What is stored does not: it writes banks, of which a pass of coalesced stores keeps a
    half busy, or two thirds (A40, V100), a quarter where percentages of the pipe end at 50 %.  Atomics may do neither: a
    request of 8 bytes a lane takes two passes."""
    read = max([value for value in (writeback, bank_reads) if value is not None and is_known(value)] or [math.nan])
    if bank_writes is None or requests is None or not is_known(read + bank_writes + requests):
        return math.nan
    return max(read + 4 * bank_writes, 2 * requests)


def keeping_back(state: State) -> list[str]:
    """What keeps a kernel from its limits, as far as it was measured: what explains most of it first, eligible warps last."""
    causes = []
    if is_known(state.launching) and state.launching >= LAUNCH_SHARE:
        long = "its launch overhead exceeds its run time"
        text = long if state.launching > 1 else "launch overhead is {} of its time".format(as_percent(state.launching))
        causes.append((1 / max(1 - state.launching, 0.01), text))
    if is_known(state.active) and state.active < 1 - IDLE:
        about = []
        if is_known(state.least_active) and is_known(state.most_active):
            about.append("{} to {} by SM".format(*[as_percent(1 - one) for one in (state.most_active, state.least_active)]))
        if is_known(state.waves) and state.waves >= FEW_WAVES:
            about.append("{:.3g} waves".format(state.waves))
        text = "SMs are idle in {} of the cycles".format(as_percent(1 - state.active))
        text += " ({})".format("; ".join(about)) if about else ""
        causes.append((1 / max(state.active, 0.01), text))
    if is_known(state.waves) and 0 < state.waves < FEW_WAVES:
        causes.append((1 / state.waves, "{:.2g} waves".format(state.waves)))
    if is_known(state.occupancy):
        low, theoretical, gap = "", "", 1.0
        if is_known(state.theoretical):
            gap = state.theoretical / max(state.occupancy, 0.001)
            theoretical = " (theoretical {})".format(as_percent(state.theoretical))
            low = "low " if state.occupancy < OF_THEORETICAL * state.theoretical else ""
        # An average over active cycles may be a little above what is possible.
        achieved = min(state.occupancy, state.theoretical) if theoretical else state.occupancy
        text = "achieved occupancy {}{}".format(as_percent(achieved), theoretical)
        causes.append((gap, (low if achieved < LOW_OCCUPANCY else "") + text))
    elif is_known(state.theoretical) and state.theoretical < 1:
        causes.append((1.0, "theoretical occupancy {}".format(as_percent(state.theoretical))))
    texts = [text for _, text in sorted(causes, key=lambda cause: -cause[0])]
    if is_known(state.eligible) and state.eligible < FEW_ELIGIBLE:
        texts.append("{:.2g} eligible warps per scheduler and cycle".format(state.eligible))
    return texts


# The verdict on a row: launches of one kernel, or a single one.


def case_of(row: Row, levels: Sequence[Any], units: Sequence[Any]) -> Case:
    unseen, partly = looked_at(row, units)
    mine = [one for one in row.asked if not one.precision.on_request]  # without what is drawn on request only, as indices are
    total = sum([one.work for one in mine])
    roofless = " and ".join([one.precision.label for one in mine if one.roofless > ROOFLESS_SHARE * total])
    something = row.counted or any(is_known(one.rate) for one in row.levels)
    why = ALL_IDLE if row.busy else UNKNOWN_CHIP if not row.chip_known else NO_ROOFS if something else NOTHING_COLLECTED
    facts = (limits_of(row, levels, units), row.state, arithmetic_of(row), row.amounts, unseen, partly, row.tensor_unknown)
    return Case(*(facts + (roofless, row.no_time or why, row.short, None, 1.0)))


def limits_of(row: Row, levels: Sequence[Any], units: Sequence[Any]) -> list[Limit]:
    """All that can be full: roofs of the levels, hardware units, and pipes by what the work asks of them.  A lower bound only
    where nothing better is known of the same."""
    reached = [one for one in row.levels if one.share > 0]
    limits = [Limit("memory", one.level.id, one.level.label, one.share, True, "", one.lower) for one in reached]
    labels = {level.id: level.label for level in levels}
    for unit in units:
        if unit.id not in row.busy:
            continue
        share = row.busy[unit.id]
        value = share.value - (GROUP_LESS if unit.group else 0.0)
        if value > 0:
            name = unit.level if unit.level in labels else unit.id
            detail = PEAK_OF_ACTIVE if share.of_active else ""
            limits.append(Limit(unit.kind, name, labels.get(unit.level, unit.label), value, False, detail, share.lower))
    for pipe, asked in by_pipe(row.asked):
        mixed, seconds = sum([one.mix for one in asked]), row.counted_seconds.get(pipe, math.nan)
        if mixed > 0 and seconds > 0:
            precision = max(asked, key=lambda one: one.mix).precision
            detail = of_mix(mixed / sum([one.seconds for one in asked]), precision.counts_instructions)
            limits.append(Limit("compute", precision.roof, precision.roof_name, mixed / seconds, True, detail, False))
    whole = {limit.id for limit in limits if not limit.lower}
    return [limit for limit in limits if not (limit.lower and limit.id in whole)]


def by_pipe(asked: Sequence[Asked]) -> list[tuple[str, list[Asked]]]:
    pipes = [one.pipe for one in asked]
    every = [pipe for place, pipe in enumerate(pipes) if pipe not in pipes[:place]]
    return [(pipe, [one for one in asked if one.pipe == pipe]) for pipe in every]


def looked_at(row: Row, units: Sequence[Any]) -> tuple[list[str], list[str]]:
    """What nobody looked at of the way to memory and of the SMs, and what was counted in part, by label."""
    unseen, partly = [], []  # type: list[str], list[str]
    memory = "memory" in row.busy
    for one in sorted([one for one in row.levels if one.level.chain], key=lambda one: -one.level.order):
        lower = [row.busy[unit.id].lower for unit in units if unit.level == one.level.id and unit.id in row.busy]
        lower += [one.lower] if is_known(one.share) else []
        if not memory and all(lower):
            roofless = ROOF_OF if is_known(one.rate) and not lower else ""
            (partly if lower else unseen).append(roofless + (one.level.short or one.level.label))
    if not row.counted and not any(unit.kind == "compute" and unit.id in row.busy for unit in units):
        unseen.append("compute units")
    return unseen, partly


def arithmetic_of(row: Row) -> Arithmetic:
    """What the work needs at its compute roofs, but for what is drawn on request only."""
    mine = [one for one in row.asked if not one.precision.on_request]
    if row.lower or not mine or any(one.roofless > 0 for one in mine):
        return NO_ARITHMETIC
    needed = max([sum([one.seconds for one in asked]) for _, asked in by_pipe(mine)])
    most = max(mine, key=lambda one: one.seconds).precision
    work = sum([one.work for one in mine if one.precision.unit == most.unit])
    if not (needed > 0 and work > 0):
        return NO_ARITHMETIC
    ridges = {}
    for one in row.levels:
        if one.traffic > 0 and one.bandwidth > 0:
            unit = {"flop": "FLOP/B", "op": "OP/B"}[most.unit]
            ridges[one.level.id] = (work / one.traffic, work / needed / one.bandwidth, unit)
    return Arithmetic(row.counted_seconds[""] / needed, most.roof_name, ridges)
