"""The answer in sentences: what takes the time on each GPU, what limits it, and which headroom it has."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ncu_roofline.analyses.hierarchical.usage import KEY, Usage, per_kernel, usages
from ncu_roofline.base.texts import clean, plural
from ncu_roofline.base.units import format_value, percent
from ncu_roofline.chips.verdict import TOO_SHORT, as_percent, as_times
from ncu_roofline.model import Measurements, Roofline
from ncu_roofline.model.kernels import Everything
from ncu_roofline.model.ranking import WORTH, at_stake, order
from ncu_roofline.rendering.frames import Frames

KERNELS = 3
"""Kernels that have a sentence, at most."""
_TOLD = 0.005  # a part of the time below this is not told
_ALL, _MOST = 0.99, 0.5  # from these shares of a time on something is known of all of it, and is worth telling


@dataclass(frozen=True)
class Answer:
    """What is to be said of one GPU: ``sentences`` on the whole and then on the kernels that could save most time."""

    device: str
    sentences: tuple[str, ...]


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
    spots = getattr(frames, "spots", {})
    return tuple(_answer(device, judged[device], everything.get(device), spots) for device in longest)


def leading(roofline: Roofline, m: Measurements, reports: Container[str]) -> Iterator[tuple[Usage, Measurements]]:
    """The kernel that comes first on each GPU, and its longest launch in some ``reports``; ``roofline`` is that of ``m``."""
    found = usages(roofline)
    columns = (roofline.kernel_columns[name].tolist() for name in (*KEY, "name"))
    rows = [(found[tuple(key)], name) for *key, name in zip(*columns, strict=True)]  # two of one name and place are one usage
    for device in dict.fromkeys(one.device for one, _ in rows):
        first = ranked(per_kernel(one for one, _ in rows if one.device == device))[0]
        names = {name for one, name in rows if (one.device, one.kernel) == (device, first.kernel)}
        longest = np.argsort(-np.nan_to_num(m.seconds)).tolist()
        launches = [row for row in longest if m.name[row] in names and m.report[row] in reports]
        if launches:
            yield first, m.take(np.array(launches[:1]))


def ranked(found: Iterable[Usage]) -> list[Usage]:
    """What could save most time first; what takes next to none of the time of its GPU comes behind it (see `ranking`)."""
    given = list(found)
    return [given[place] for place in order((one.device, one.seconds, one.recoverable) for one in given)]


def _seconds(found: Iterable[Usage]) -> float:
    return sum(one.seconds for one in found if one.seconds > 0)


def _answer(device: str, found: Sequence[Usage], everything: Everything | None, spots: Mapping[tuple[str, str], str]) -> Answer:
    last = max(one.step for one in found)
    judged = [one for one in found if one.step == last]
    rows = ranked(per_kernel(judged))
    total, headroom = _seconds(rows), _headroom(judged)
    first = f"{_counts(rows, everything if last < 0 else None)}{_time(rows)}: {headroom}"
    if last >= 0:
        first = f"{_steps(found, last)}; at {rows[0].step_label or 'the last'} {headroom}"
    more = [one for one in rows[1:KERNELS] if at_stake(one.seconds, one.recoverable) >= WORTH * total > 0]
    time = everything.seconds if everything and last < 0 else total
    said = [_of_kernel(one, len(rows) > 1, time, spots.get((device, one.kernel), "")) for one in (*rows[:1], *more)]
    return Answer(device, (f"{first}.", *(f"{sentence}." for sentence in said)))


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


def _headroom(rows: Sequence[Usage]) -> str:
    """Headroom of all launches that have one together, and of which part of the time it is not known."""
    timed = [one for one in rows if one.seconds > 0]
    known = [one for one in timed if math.isfinite(one.recoverable)]
    if not timed:
        return "the run time is not known"
    if not known:
        return TOO_SHORT if all(one.verdict == TOO_SHORT for one in timed) else "its headroom is not known"
    total, whole, saved = _seconds(timed), sum(one.judged_seconds for one in known), sum(one.recoverable for one in known)
    or_less = " or less" if any(one.headroom_or_less == 1 for one in known) else ""
    said = f"headroom {_times(whole / (whole - saved), len(known) > 1)}{or_less} at present traffic and instructions"
    computing = [one for one in known if math.isfinite(one.headroom_compute)]
    counted = sum(one.judged_seconds for one in computing)
    if counted >= _MOST * whole:
        needed = sum(one.judged_seconds / one.headroom_compute for one in computing)
        part = "" if counted >= _ALL * whole else f" for {percent(counted / total)} of the time"
        said += f", {_times(counted / needed, len(known) > 1)} to the compute roofs{part}"
    short = sum(one.short_seconds for one in timed) / total
    unknown = 1 - whole / total - short
    rest = [f"unknown for {percent(unknown)} of the time"] if unknown >= _TOLD else []
    rest += [f"{percent(short)} of the time is in launches {TOO_SHORT}"] if short >= _TOLD else []
    return "; ".join([said, *rest])


def _times(headroom: float, several: bool) -> str:
    """A headroom; that of several launches together is small where one of them has much."""
    return f"{headroom:.2f}x" if several and headroom < 2 else as_times(headroom)


def _of_kernel(one: Usage, several: bool, total: float, spot: str) -> str:
    """Share of the time, what limits it and how full that is, its headroom, and the place that matters most."""
    share = [f"{as_percent(one.seconds / total)} of the time"] if several and one.seconds > 0 else []
    launch = ["in its longest launch"] if one.longest else []
    said = f"{one.name}: {', '.join([*share, *launch, one.reason or one.verdict])}"
    return "; ".join(filter(None, (said, spot)))


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
