"""The words around the charts and tables of the view of phases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.style import level_style, precision_label
from ncu_roofline.analyses.phases.chart import LaunchChart, PhaseFrames, Trajectory
from ncu_roofline.base.texts import clean, listed
from ncu_roofline.base.units import format_value
from ncu_roofline.rendering.frames import rows

WHY = {
    "no-samples": "without samples over time",
    "no-time": "without run time",
    "too-few-samples": "with too few samples",
    "no-run": "of which no sample shows when they ran",
}
WHY_NO_DOTS = {
    "incomplete": "not all of it was sampled, so its counted work can't be shared out over time",
    "no-traffic": "no memory level has both sampled and counted bytes",
    "no-work": "no pipe was sampled whose operations are counted",
    "gaps": "samples are missing in between",
}
HOW_TO_COLLECT = (
    "Samples over time come from `ncu --set full` or `ncu --section PmSampling` (2023.3 and later, Turing and later); the "
    "section RooflinePhases (`ncu-roofline install`, or `generate --ncu VERSION`; 2024.1 and later) also samples the pipes "
    "whose work is counted."
)
CAVEAT = (
    "Each pass group was sampled in a run of its own, and all runs are stretched to the kernel's time. A slice's work is the "
    "kernel's counted work by the slice's share of its pipe's activity, its traffic the counted bytes by its share of the "
    "sampled percent: exact in sum, a model in each slice."
)
_NAMED = 2  # notes of launches without slices
CAVEAT_OF_BANDS = "Each pass group was sampled in a run of its own, and all runs are stretched to the kernel's time."


@dataclass(frozen=True)
class Span:
    """Mean, lowest and highest of a band's known slices."""

    mean: float
    low: float
    high: float


def span(values: tuple[float, ...]) -> Span:
    """Of equally long slices; NaN where none is known."""
    known = [value for value in values if math.isfinite(value)]
    return Span(sum(known) / len(known), min(known), max(known)) if known else Span(math.nan, math.nan, math.nan)


def heading(one: LaunchChart, several: bool = False) -> str:
    """A launch with its time and its slices; ``several``: with its position, where a kernel may have several."""
    where = f", launch {one.launch}" if several else ""
    time, slices = format_value(one.seconds, "second", 3), captions.plural(len(one.edges) - 1, "slice")
    cut = f", the first {format_value(one.sampled_until, 'second', 3)}" if one.cut else ""
    return f"{one.kernel}{where}: {time}{cut} in {slices}"


def path_text(path: Trajectory) -> str:
    """Where a trajectory leads, in a sentence."""
    heights = [height for _, height in path.dots]
    across = [intensity for intensity, _ in path.dots]
    low, high = (format_value(one(heights), f"{path.unit}/s", 3) for one in (min, max))
    left, right = (format_value(one(across), f"{path.unit}/byte", 3) for one in (min, max))
    where = f"{precision_label(path.precision)} at {level_style(path.level).label}"
    return f"{where}: {low} to {high}, at {left} to {right}"


def launch_notes(one: LaunchChart) -> Iterator[str]:
    """What a reader must know of one launch."""
    for note in filter(None, one.notes.split("; ")):
        yield f"{note[0].upper()}{note[1:]}."
    if one.dots:
        yield f"No dots: {WHY_NO_DOTS.get(one.dots, clean(one.dots))}."
    above = sum(path.above for path in one.paths)
    if above:
        dots = captions.plural(above, "dot")
        yield f"{dots} above a roof: work is shared out by its pipe's activity, which is not only operations."


def notes_of(frames: PhaseFrames, shown: list[LaunchChart]) -> list[str]:
    """What a reader must know of the launches shown, and of those that are not."""
    named = len(shown) > 1
    found: dict[str, list[str]] = {}
    for one in shown:
        for note in launch_notes(one):
            found.setdefault(note, []).append(one.kernel)
    notes = [f"{f'{listed(kernels, 3)}: ' if named else ''}{note}" for note, kernels in found.items()]
    if shown:
        notes.insert(0, CAVEAT if any(one.paths for one in shown) else CAVEAT_OF_BANDS)
    return [*notes, *absent_notes(frames)]


def absent_notes(frames: PhaseFrames) -> list[str]:
    """Launches that have no slices, and why."""
    absent: dict[str, list[str]] = {}
    for status, notes in rows(frames, "sampled", "status", "notes"):
        if status != "ok":
            absent.setdefault(status, []).append(clean(notes))
    told = [f"{captions.plural(len(notes), 'launch')} {_why(status, notes)}." for status, notes in absent.items()]
    return [*told, *([HOW_TO_COLLECT] if "no-samples" in absent else [])]


def _why(status: str, notes: Sequence[str]) -> str:
    """Why launches have no slices, with what is noted of them."""
    said = listed(filter(None, notes), _NAMED)
    return WHY.get(status, clean(status)) + (f" ({said})" if said else "")


def explanation(frames: PhaseFrames) -> str:
    """Why there is nothing to draw."""
    if not list(rows(frames, "sampled", "kernel")):
        return "No kernels are left to draw."
    return "\n".join(["No kernel can be drawn over its time.", *absent_notes(frames)])
