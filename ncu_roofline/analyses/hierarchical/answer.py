"""The answer in sentences: what takes the time on each GPU, what limits it, and what is at most to be gained."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ncu_roofline.analyses.hierarchical.captions import plural
from ncu_roofline.analyses.hierarchical.usage import Usage, gain_text, per_kernel, percent, usages
from ncu_roofline.facts.thresholds import SHORT_LAUNCH
from ncu_roofline.facts.verdict import FAR, LATENCY, LITTLE, as_percent
from ncu_roofline.model.kernels import Everything
from ncu_roofline.model.ranking import WORTH, at_stake, order
from ncu_roofline.rendering.frames import Frames
from ncu_roofline.texts import clean
from ncu_roofline.units import format_value

KERNELS = 3
"""Kernels that have a sentence, at most."""
_TOLD = 0.005  # a part of the time below this is not told
_TOO_SHORT = " (too short to tell: launching alone takes a few \N{MICRO SIGN}s)"


@dataclass(frozen=True)
class Answer:
    """What is to be said of one GPU: ``sentences`` on the whole and then on the kernels with most to gain.

    ``whole`` is by what all rows together could at most be faster, NaN where that is not known of all of their time.
    """

    device: str
    sentences: tuple[str, ...]
    whole: float


def answers_of(frames: Frames) -> tuple[Answer, ...]:
    """One per GPU, that with most time first; none for frames without verdicts.

    Of a sweep only the last step is judged, as its steps are the same work done again.
    """
    devices: dict[str, list[Usage]] = {}
    for one in usages(frames).values():
        devices.setdefault(one.device, []).append(one)
    judged = {device: members for device, members in devices.items() if any(one.verdict for one in members)}
    longest = sorted(judged, key=lambda device: -_seconds(judged[device]))
    everything = {clean(one.device): one for one in getattr(frames, "everything", ())}
    return tuple(_answer(device, judged[device], everything.get(device)) for device in longest)


def ranked(found: Iterable[Usage]) -> list[Usage]:
    """What could save most time first; what takes next to none of the time of its GPU comes behind it (see `ranking`)."""
    given = list(found)
    return [given[place] for place in order((one.device, one.seconds, one.recoverable) for one in given)]


def _seconds(found: Iterable[Usage]) -> float:
    return sum(one.seconds for one in found if one.seconds > 0)


def _answer(device: str, found: Sequence[Usage], everything: Everything | None) -> Answer:
    last = max(one.step for one in found)
    rows = ranked(per_kernel(one for one in found if one.step == last))
    total, whole = _seconds(rows), _whole(rows)
    first = f"{_counts(rows, everything if last < 0 else None)}{_time(rows)}: {_gain_of(rows, whole)}"
    if last >= 0:
        first = f"{_steps(found, last)}; at {rows[0].step_label or 'the last'} {_gain_of(rows, whole)}"
    more = [one for one in rows[1:KERNELS] if at_stake(one.seconds, one.recoverable) >= WORTH * total > 0]
    time = everything.seconds if everything and last < 0 else total
    return Answer(device, (f"{first}.", *(f"{_of_kernel(one, len(rows) > 1, time)}." for one in (*rows[:1], *more))), whole)


def _whole(rows: Sequence[Usage]) -> float:
    """By what rows could at most be faster together, NaN where that is not known of all of their time."""
    total, saved = _seconds(rows), sum(one.recoverable for one in rows if one.seconds > 0)
    return total / (total - saved) if total > 0 and saved < total else math.nan


def _counts(rows: Sequence[Usage], everything: Everything | None) -> str:
    """``3 kernels, 105 launches``; where a selection leaves some out ``2 of 6 kernels, 4 of 9 launches, 46 % of the time``."""
    launches = sum(one.launches for one in rows)
    if not everything or launches >= everything.launches or any(one.kind == "application" for one in rows):
        return counts_text(rows)
    pairs = [(len({one.kernel for one in rows}), everything.kernels, "kernel"), (launches, everything.launches, "launch")]
    pairs = pairs[: 1 if pairs[0][:2] == pairs[1][:2] else None]
    parts = [f"{count:,} of {plural(among, noun)}" if count < among else plural(count, noun) for count, among, noun in pairs]
    share = _seconds(rows) / everything.seconds if everything.seconds > 0 else 0.0
    return ", ".join([*parts, *([f"{as_percent(share)} of the time"] if share > 0 else [])])


def counts_text(rows: Sequence[Usage]) -> str:
    """``3 kernels, 105 launches``, or ``3 kernels`` where each was launched once."""
    count, launches = len({(one.device, one.kernel) for one in rows}), sum(one.launches for one in rows)
    noun = "application" if rows and all(one.kind == "application" for one in rows) else "kernel"
    kernels = f"{count:,} {noun}{'' if count == 1 else 's'}"
    return kernels if launches == count else f"{kernels}, {launches:,} launches"


def _time(rows: Sequence[Usage]) -> str:
    if not any(one.seconds > 0 for one in rows):
        return ""
    untimed = sum(one.untimed if one.seconds > 0 else one.launches for one in rows)
    without = f" ({untimed:,} launch{'' if untimed == 1 else 'es'} without a run time)" if untimed else ""
    return f", {format_value(_seconds(rows), 'second', 3)}{without}"


def _gain_of(rows: Sequence[Usage], whole: float) -> str:
    """What is to be gained in all, as far as that is known."""
    if whole < LITTLE:
        return f"nothing to gain{' all together' if len(rows) > 1 else ''} short of doing less"
    if math.isfinite(whole):
        return _times(whole, len(rows) > 1) + (_TOO_SHORT if all(map(too_short, rows)) else "")
    timed = [one for one in rows if one.seconds > 0]
    known = [one for one in timed if math.isfinite(one.recoverable)]
    if not timed:
        return "the run time is not known"
    if not known:
        return f"what limits {'them' if len(rows) > 1 else 'it'} is not known"
    unknown = 1 - _seconds(known) / _seconds(timed)
    rest = f"; of {percent(unknown)} of the time the limit is not known" if unknown >= _TOLD else ""
    gain = _seconds(timed) / (_seconds(timed) - sum(one.recoverable for one in known))
    return f"{_times(gain, False)} by the kernels whose limit is known{rest}"


def _times(gain: float, several: bool) -> str:
    """A speed-up; that of several kernels together is small where one of them gains much."""
    if gain >= FAR:
        return f"over {FAR:.0f}x away from any limit"
    number = f"{gain:.2f}x" if several and gain < 2 else gain_text(gain)
    return f"at most {number} faster{' all together' if several else ''}"


def _of_kernel(one: Usage, several: bool, total: float) -> str:
    """Share of the time, what limits it and how full that is, and the gain."""
    share = [f"{as_percent(one.seconds / total)} of the time"] if several and one.seconds > 0 else []
    launch = ["in its longest launch"] if one.longest else []
    short = _TOO_SHORT if several and too_short(one) else ""
    return f"{one.name}: {', '.join([*share, *launch, limited(one)])}{short}"


def too_short(one: Usage) -> bool:
    """Whether its launches are so short that launching, of unknown latency, may be most of what it could gain."""
    return one.verdict == LATENCY and "launching" not in one.reason and 0 < one.seconds < SHORT_LAUNCH * one.launches


def limited(one: Usage) -> str:
    """The verdict and its reason: memory-bound by DRAM at 74 % of its roof; at most 1.4x faster."""
    kind, _, label = one.verdict.partition(": ")
    if one.verdict == LATENCY:
        return ", as ".join(filter(None, ("latency-limited", one.reason)))
    if label:
        return f"{kind}-bound by {one.reason or label}"
    return ": ".join(filter(None, ("limit unknown", one.reason)))


def _steps(found: Sequence[Usage], last: int) -> str:
    """From where to where the time of a sweep went."""
    steps = sorted({one.step for one in found})
    first, final = ([one for one in found if one.step == step] for step in (steps[0], last))
    before, after = _seconds(first), _seconds(final)
    name = f"{first[0].step_label or 'the first'} to {final[0].step_label or 'the last'}"
    if not before > 0 or not after > 0:
        return f"{len(steps)} steps, {name}"
    change = f"{before / after:.3g}x as fast" if after <= before else f"{after / before:.3g}x as long"
    times = " to ".join(format_value(seconds, "second", 3) for seconds in (before, after))
    return f"{len(steps)} steps, {name}: {times}, {change}"
