"""The words around the charts and tables of the time view."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.captions import of_the_time, plural
from ncu_roofline.analyses.hierarchical.style import precision_label
from ncu_roofline.analyses.hierarchical.usage import percent, tensor_caveat
from ncu_roofline.analyses.time.chart import TimeChart, TimeFrames
from ncu_roofline.base.texts import clean
from ncu_roofline.base.units import format_value
from ncu_roofline.rendering.frames import column, rows

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
_DIFFER = 1.05


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


def peak_notes(data: TimeChart) -> list[str]:
    """Where the peaks of one chart's kernels differ: the axis can stand at one of them only."""
    notes = []
    for device in data.devices:
        for machine in device.machines:
            if machine.peak_max > _DIFFER * machine.peak_min:
                unit = next((symbol.unit for symbol in device.symbols if symbol.precision == machine.precision), "flop")
                span = " to ".join(format_value(value, f"{unit}/s", 3) for value in (machine.peak_min, machine.peak_max))
                at = format_value(machine.peak, f"{unit}/s", 3)
                where = f" on {device.device}" if len(data.devices) > 1 else ""
                name = f"{precision_label(machine.precision)}{where}"
                notes.append(f"{name}: the compute roof differs by kernel, {span}; axes and balance stand at {at}.")
    return notes


def _beyond(entries: Sequence[tuple[str, str]]) -> str:
    """What lies outside the axes, each thing once with all its numbers."""
    found: dict[str, list[str]] = {}
    for text, number in entries:
        if number not in found.setdefault(text, []):
            found[text].append(number)
    parts = [f"{text} ({', '.join(numbers)})" for text, numbers in found.items()]
    return f"Below the axes: {'; '.join(parts)}." if parts else ""


def footnotes(frames: TimeFrames, data: TimeChart, beyond: Sequence[tuple[str, str]] = ()) -> list[str]:
    """Sentences below the charts, the weightiest first; ``beyond`` has what lies outside the axes with its numbers."""
    notes = [tensor_caveat(frames), captions.above_note(frames), captions.clock_note(frames)]
    notes += [latency_note(frames), overhead_note(frames)]
    if len(data.kernels) < data.total:
        share = sum(kernel.share for kernel in data.kernels if math.isfinite(kernel.share))
        part = f" ({percent(share)} of the time)"
        notes.append(f"The {len(data.kernels)} largest of {plural(data.total, 'kernel')} by time are drawn{part}.")
    notes += absent_notes(frames)
    if data.devices_left_out:
        notes.append(f"{plural(data.devices_left_out, 'further GPU')} left out: render its reports apart.")
    notes += [
        _beyond(beyond),
        *peak_notes(data),
        captions.roof_note(frames),
        *captions.kernel_notes(frames),
        *captions.row_notes(frames),
    ]
    return [note for note in notes if note]


def explanation(frames: TimeFrames) -> str:
    """Why there are no charts."""
    if not column(frames, "absent", "kernel"):
        return "No kernels are left to draw."
    return "\n".join(["No kernel can be drawn.", *absent_notes(frames)])
