"""The words around the charts and tables of the time view."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, ClassVar, Protocol

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.captions import of_the_time
from ncu_roofline.analyses.hierarchical.kernels import tensor_caveat
from ncu_roofline.base.texts import clean, plural
from ncu_roofline.base.units import format_value, percent
from ncu_roofline.rendering.frames import Frames, column, rows

WHY = {
    **captions.WHY,
    "no-level": "without traffic at this memory level",
    "no-precision": "without work in the precisions chosen",
    "no-totals": "of which only rates are known",
}
HOW_TO_LATENCY = (
    "Launch latency unknown, so no launch overhead is shown: give --ceilings from `ncu-roofline bench run` on this GPU, "
    "or --launch-latency TIME."
)


class TimeFrames(Frames, Protocol):
    """What renderers of the time view draw, columns as in ``ncu_roofline.analyses.time.columns``: TIME_POINTS and so on."""

    view: ClassVar[str]

    @property
    def level(self) -> str: ...
    @property
    def machines(self) -> Any: ...
    @property
    def absent(self) -> Any: ...


def drawable(place: Iterable[float]) -> bool:
    """Whether a place exists on logarithmic axes."""
    return all(0 < value < math.inf for value in place)


def units(frames: TimeFrames) -> defaultdict[str, str]:
    """What the work of a precision counts: op for integers, else flop."""
    return defaultdict(lambda: "flop", rows(frames, "points", "precision", "unit"))


def latency_note(frames: TimeFrames) -> str:
    """Each GPU's launch latency and where it comes from, or how to get one."""
    found = dict.fromkeys(rows(frames, "machines", "device", "latency", "latency_origin"))
    if not found:
        return ""
    known = [(device, latency, origin) for device, latency, origin in found if latency > 0]
    if not known:
        return HOW_TO_LATENCY
    several = len({(latency, origin) for _, latency, origin in found}) > 1
    known = known if several else known[:1]
    parts = [
        f"{format_value(latency, 'second', 3)}{f' on {clean(device)}' if several else ''} ({clean(origin)})"
        for device, latency, origin in known
    ]
    lacking = [clean(device) for device in dict.fromkeys(device for device, latency, _ in found if not latency > 0)]
    text = f"Launch latency: {', '.join(parts)}."
    return f"{text} Unknown for {', '.join(lacking)}: no overhead is shown there." if lacking else text


def overhead_note(frames: TimeFrames) -> str:
    """How many kernels do less than their launches cost, and their share of the time."""
    answers = list(rows(frames, "points", "overhead_bound", "time_share"))
    shares = [share for answer, share in answers if answer == "yes"]
    if not shares:
        return ""
    total = sum(share for share in shares if math.isfinite(share))
    return f"{len(shares)} of {plural(len(answers), 'symbol')} bound by launch overhead, {percent(total)} of the time."


def about(frames: TimeFrames) -> list[str]:
    """What must be known of the numbers as a whole, the weightiest first."""
    ordinary = (tensor_caveat, captions.above_note, captions.clock_note)
    return [text for text in (*(note(frames) for note in ordinary), latency_note(frames), overhead_note(frames)) if text]


def absent_notes(frames: TimeFrames) -> list[str]:
    """What has no place on logarithmic axes: how many, why, time and bytes."""
    found: dict[str, list[tuple[float, float]]] = {}
    for status, share, traffic in rows(frames, "absent", "status", "time_share", "traffic"):
        found.setdefault(status, []).append((share, traffic))
    notes = []
    for status, members in found.items():
        time = of_the_time(share for share, _ in members).removeprefix(", ") or "unknown time"
        moved = [traffic for _, traffic in members if math.isfinite(traffic)]
        told = f" and {format_value(sum(moved), 'byte', 3)} of traffic" if moved else ""
        notes.append(f"{plural(len(members), 'row')} {WHY.get(status, clean(status))}: {time}{told}.")
    return notes


def explanation(frames: TimeFrames) -> str:
    """Why there are no charts."""
    if not column(frames, "absent", "kernel"):
        return "No kernels are left to draw."
    return "\n".join(["No kernel can be drawn.", *absent_notes(frames)])
