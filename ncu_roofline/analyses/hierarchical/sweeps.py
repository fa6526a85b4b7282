"""Sweeps and FMA mixes as marks: lines that join a kernel's dots over the steps, names of the steps, lines of the ceilings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ncu_roofline.analyses.hierarchical.chart import Panel, Series
from ncu_roofline.analyses.hierarchical.style import level_order, level_style
from ncu_roofline.base.texts import shorten
from ncu_roofline.base.units import format_value
from ncu_roofline.rendering.chart import Line, Mark, Place, Text

STEPS = "steps"
"""Key of the legend's entries on steps."""
MAX_MIXES = 3  # lines in a panel; more of them are clutter, and the table has them all
_SAME = 0.01  # ceilings closer than this are one on paper
_NEAR = 0.12  # ceilings closer than this share a line
_SAME_WORK = 0.02  # work of steps that differs by less is the same
_SHORT = 0.06  # decades: what joins two dots that are nearer has no room for a text
_REACH = 1.5  # so many times the intensity of its dots the line of a mix goes on
_FEW, _SOME = 3, 8  # up to so many kernels every step is named; up to so many the first and the last
_NAME = 20  # characters of the name of a step
_PIECES = 18  # arrows with a speed-up; more of them are clutter


def sweeps(panel: Panel) -> dict[tuple[str, str], list[Series]]:
    """The series of a sweep by kernel and precision, in the order of their steps; kernels with one step only are left out."""
    found: dict[tuple[str, str], list[Series]] = {}
    for one in panel.series:
        if one.step >= 0:
            found.setdefault((one.kernel, one.precision), []).append(one)
    return {key: sorted(steps, key=lambda one: one.step) for key, steps in found.items() if len(steps) > 1}


def sweep_marks(panel: Panel, panels: Sequence[Panel]) -> Iterator[Mark]:
    """Lines along each sweep, names and times of its steps, and by what they are faster; lines of FMA mixes."""
    yield from mixes(panel)
    groups, in_legend = list(sweeps(panel).values()), bool(step_keys(panels))
    for steps in groups:
        for level in level_order({level for step in steps for level, _ in step.dots}):
            places = tuple(at for step in steps if (at := _dot(step, level)))
            if len(places) > 1:
                yield Line(role="trajectory", hue=level_style(level), places=places)
    for steps in groups if len(groups) <= _SOME else ():
        levels = _levels(steps)
        for one in reversed(steps):  # the last step always
            last, name, time = one in (steps[0], steps[-1]), shorten(one.step_label, _NAME), _time(one)
            places = tuple(at for level in levels if (at := _dot(one, level)))
            if last or len(groups) <= _FEW:
                text, key = f"{name}, {time}" if time else name, STEPS if in_legend else ""
                yield Text(role="step", labels=(text,), places=places, key=key, brief=name if last else "")
    if sum(len(steps) - 1 for steps in groups) <= _PIECES:
        for steps in groups:
            yield from _speedups(steps)


def _dot(one: Series, level: str) -> Place | None:
    return next(((x, one.performance) for at, x in one.dots if at == level), None)


def _time(one: Series) -> str:
    """The time of a step, "" where it is unknown."""
    return format_value(one.seconds, "second", 3) if one.seconds > 0 else ""


def step_keys(panels: Sequence[Panel]) -> list[str]:
    """``nw1  264 us`` for each step of a sweep of one kernel, which tells the times where dots have no room for them."""
    found = [steps for panel in panels for (kernel, _), steps in sweeps(panel).items()]
    if len({steps[0].kernel for steps in found}) != 1:
        return []
    times = {one.step: (one.step_label, _time(one)) for steps in found for one in steps}
    return [f"{shorten(label, _NAME)}  {time}".rstrip() for _, (label, time) in sorted(times.items())]


def _levels(steps: Sequence[Series]) -> list[str]:
    """The levels of a sweep, that which limits its last step first, then those whose dots are furthest apart."""
    levels = {level for step in steps for level, _ in step.dots}
    return sorted(levels, key=lambda level: (level != steps[-1].nearest, -_spread(steps, level), level))


def _spread(steps: Sequence[Series], level: str) -> float:
    """Smallest distance in decades between dots of consecutive steps at a level; 0 where a step lacks it."""
    places = [at for step in steps if (at := _dot(step, level))]
    return min(_apart(a, b) for a, b in pairwise(places)) if len(places) == len(steps) else 0.0


def _apart(one: Place, other: Place) -> float:
    return math.dist([math.log10(value) for value in one], [math.log10(value) for value in other])


def _speedups(steps: Sequence[Series]) -> Iterator[Text]:
    """By what each step is faster than the one before, in the middle of an arrow.

    Nothing where a step has more or less work than the one before: a speed-up would mislead, and the times stand at the dots.
    """
    levels = _levels(steps)
    for before, after in pairwise(steps):
        work = [one.performance * one.seconds for one in (before, after)]
        if not (min(work) > 0 and max(work) < (1 + _SAME_WORK) * min(work)):
            continue
        ends = [(a, b) for level in levels if (a := _dot(before, level)) and (b := _dot(after, level))]
        places = tuple((math.sqrt(a[0] * b[0]), math.sqrt(a[1] * b[1])) for a, b in ends if _apart(a, b) > _SHORT)
        yield Text(role="speedup", labels=(f"{before.seconds / after.seconds:.2g}x",), places=places)


def mixes(panel: Panel) -> list[Line]:
    """The FMA-mix ceilings that limit kernels of a panel, from high to low; none if they are more than MAX_MIXES.

    Near ones have one label.  None for a kernel that its memory limits to less, nor for a ceiling that a compute roof draws
    already (all fused, none fused).
    """
    drawn = [value for roof in panel.of_kind("compute") for value in roof.values]
    groups: list[list[Series]] = []
    for one in sorted((one for one in panel.series if _limits(one, panel)), key=lambda one: -one.mix_roof):
        if not _SAME <= one.fma_share <= 1 - _SAME or any(math.isclose(one.mix_roof, value, rel_tol=_SAME) for value in drawn):
            continue
        if groups and math.isclose(groups[-1][0].mix_roof, one.mix_roof, rel_tol=_NEAR):
            groups[-1].append(one)
        else:
            groups.append([one])
    return [line for members in groups for line in _mix(members, panel)] if len(groups) <= MAX_MIXES else []


def _limits(one: Series, panel: Panel) -> bool:
    """Whether a kernel's mix limits it: its ceiling is known and lies below what its traffic allows at each level."""
    bandwidth = {roof.level: roof.highest for roof in panel.of_kind("bandwidth")}
    return one.mix_roof > 0 and all(one.mix_roof <= x * bandwidth.get(level, math.inf) for level, x in one.dots)


def _mix(members: Sequence[Series], panel: Panel) -> Iterator[Line]:
    """Over the outermost dots of its kernels, not left of where the steepest bandwidth reaches it; of several two lines."""
    steepest = max((roof.value for roof in panel.of_kind("bandwidth")), default=math.inf)
    xs, high, low = [member.dots[-1][1] for member in members], members[0], members[-1]
    left = max(min(xs) / _REACH, high.mix_roof / steepest)
    right = max(max(xs), left) * _REACH
    same = math.isclose(low.mix_roof, high.mix_roof, rel_tol=_SAME)
    ends = [high] if same else [low, high]
    share = " to ".join(f"{50 * (1 + one.fma_share):.3g}" for one in ends)
    value = " to ".join(format_value(one.mix_roof, f"{panel.unit}/s", 3) for one in ends)
    values = tuple(one.mix_roof for one in ends)
    for at in values:
        labels = (f"FMA mix {share} % {value}", f"mix {value}") if at == values[-1] else ()
        yield Line(role="mix", labels=labels, places=((left, at), (right, at)), beside=values)
