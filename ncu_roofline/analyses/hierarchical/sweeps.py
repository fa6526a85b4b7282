"""Sweeps and FMA mixes on paper: lines that join a kernel's dots over the steps, names of the steps, marks of the ceilings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ncu_roofline.analyses.hierarchical.chart import Panel, Series
from ncu_roofline.analyses.hierarchical.style import level_order
from ncu_roofline.base.texts import shorten
from ncu_roofline.base.units import format_value
from ncu_roofline.rendering.layout import Box, View

MAX_MIXES = 3  # marks in a panel; more of them are clutter, and the table has them all
_SAME = 0.01  # ceilings closer than this are one on paper
_NEAR = 0.12  # ceilings closer than this share a mark
_SAME_WORK = 0.02  # work of steps that differs by less is the same
_SHORT = 6.0  # points: what joins two dots that are nearer has no room for a text
_REACH = 18.0  # points that a mark goes beyond the dots it is for
_FEW, _SOME = 3, 8  # up to so many kernels every step is named; up to so many the first and the last
_NAME = 20  # characters of the name of a step
_PIECES = 18  # arrows with a speed-up; more of them are clutter


@dataclass(frozen=True)
class Trajectory:
    """The dots (intensity, performance) of one kernel, precision and level, in the order of the steps."""

    kernel: str
    precision: str
    level: str
    dots: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Mix:
    """The ceiling of one FMA mix, or the lowest and highest of near ones: ``values`` in FLOP/s, over intensities ``span``."""

    text: str
    values: tuple[float, ...]
    span: tuple[float, float]
    brief: str = ""


def sweeps(panel: Panel) -> dict[tuple[str, str], list[Series]]:
    """The series of a sweep by kernel and precision, in the order of their steps; kernels with one step only are left out."""
    found: dict[tuple[str, str], list[Series]] = {}
    for one in panel.series:
        if one.step >= 0:
            found.setdefault((one.kernel, one.precision), []).append(one)
    return {key: sorted(steps, key=lambda one: one.step) for key, steps in found.items() if len(steps) > 1}


def trajectories(panel: Panel) -> list[Trajectory]:
    """What joins the dots of a panel, level by level."""
    found = []
    for (kernel, precision), steps in sweeps(panel).items():
        for level in level_order({level for step in steps for level, _ in step.dots}):
            dots = tuple((intensity, step.performance) for step in steps for at, intensity in step.dots if at == level)
            if len(dots) > 1:
                found.append(Trajectory(kernel, precision, level, dots))
    return found


def step_names(panel: Panel, view: View, every: bool = True) -> list[tuple[str, str, list[tuple[str, float, float]]]]:
    """For each step to name (``every`` or the ends) its label, its time ("" where unknown), and the dots (level, intensity,
    performance) where it may stand, best first: those of the level that limits the last step, else of that whose dots are
    furthest apart.
    """
    found = []
    groups = list(sweeps(panel).values())
    for steps in groups if len(groups) <= _SOME else ():
        levels = _levels(steps, view)
        ends = (steps[0], steps[-1])
        for one in steps if len(groups) <= _FEW and every else ends:
            at = dict(one.dots)
            places = [(level, at[level], one.performance) for level in levels if level in at]
            found.append((shorten(one.step_label, _NAME), time_text(one), places))
    return found


def time_text(one: Series) -> str:
    """The time of a step, "" where it is unknown."""
    return format_value(one.seconds, "second", 3) if one.seconds > 0 else ""


def step_keys(panels: Sequence[Panel]) -> list[str]:
    """``nw1  264 us`` for each step of a sweep of one kernel, which tells the times where dots have no room for them."""
    found = [steps for panel in panels for (kernel, _), steps in sweeps(panel).items()]
    if len({steps[0].kernel for steps in found}) != 1:
        return []
    times = {one.step: (one.step_label, time_text(one)) for steps in found for one in steps}
    return [f"{shorten(label, _NAME)}  {time}".rstrip() for _, (label, time) in sorted(times.items())]


def _levels(steps: Sequence[Series], view: View) -> list[str]:
    """The levels of a sweep, that which limits its last step first, then those whose dots are furthest apart."""
    levels = {level for step in steps for level, _ in step.dots}
    return sorted(levels, key=lambda level: (level != steps[-1].nearest, -_spread(steps, level, view), level))


def arrow_texts(panel: Panel, view: View) -> list[tuple[str, list[tuple[str, float, float]]]]:
    """For each step of a sweep by what it is faster than the one before, and where that may stand, best first.

    The places (level, x, y) are the middles of the arrows, in points.  Nothing where steps are very many, nor where a step has
    more or less work than the one before: a speed-up would mislead, and the times stand at the dots.
    """
    pieces = [(steps, before, after) for steps in sweeps(panel).values() for before, after in pairwise(steps)]
    found = []
    for steps, before, after in pieces if len(pieces) <= _PIECES else ():
        if same_work((before, after)):
            levels = _levels(steps, view)
            found.append((f"{before.seconds / after.seconds:.2g}x", _middles(before, after, levels, view)))
    return found


def same_work(steps: Sequence[Series]) -> bool:
    """Whether steps do the same work, so that their times compare; not where a time is unknown."""
    work = [one.performance * one.seconds for one in steps]
    return min(work) > 0 and max(work) < (1 + _SAME_WORK) * min(work)


def _middles(before: Series, after: Series, levels: Sequence[str], view: View) -> list[tuple[str, float, float]]:
    starts, ends = dict(before.dots), dict(after.dots)
    found = []
    for level in levels:
        if level in starts and level in ends:
            ax, bx = view.x(starts[level]), view.x(ends[level])
            ay, by = view.y(before.performance), view.y(after.performance)
            if math.dist((ax, ay), (bx, by)) > _SHORT:
                found.append((level, (ax + bx) / 2, (ay + by) / 2))
    return found


def _spread(steps: Sequence[Series], level: str, view: View) -> float:
    """Smallest distance in points between dots of consecutive steps at a level; 0 where a step lacks it."""
    places = [(view.x(x), view.y(step.performance)) for step in steps for at, x in step.dots if at == level]
    if len(places) < len(steps):
        return 0.0
    return min(math.dist(a, b) for a, b in pairwise(places))


def mixes(panel: Panel, view: View) -> list[Mix]:
    """The FMA-mix ceilings that limit kernels of a panel, from high to low; none if they are more than MAX_MIXES.

    Near ones are one mark.  No mark for a kernel that its memory limits to less, nor for a ceiling that a compute roof draws
    already (all fused, none fused).
    """
    drawn = [value for roof in panel.of_kind("compute") for value in roof.values]
    groups: list[list[Series]] = []
    for one in sorted((one for one in panel.series if _limits(one, panel)), key=lambda one: -one.mix_roof):
        if _all_or_none(one) or any(math.isclose(one.mix_roof, value, rel_tol=_SAME) for value in drawn):
            continue
        if groups and math.isclose(groups[-1][0].mix_roof, one.mix_roof, rel_tol=_NEAR):
            groups[-1].append(one)
        else:
            groups.append([one])
    return [_mix(members, panel, view) for members in groups] if len(groups) <= MAX_MIXES else []


def _all_or_none(one: Series) -> bool:
    """Whether its mix allows what a compute roof does, at whatever clock."""
    return one.fma_share > 1 - _SAME or one.fma_share < _SAME


def _limits(one: Series, panel: Panel) -> bool:
    """Whether a kernel's mix limits it: its ceiling is known and lies below what its traffic allows at each level."""
    bandwidth = {roof.level: roof.highest for roof in panel.of_kind("bandwidth")}
    return one.mix_roof > 0 and all(one.mix_roof <= x * bandwidth.get(level, math.inf) for level, x in one.dots)


def _mix(members: Sequence[Series], panel: Panel, view: View) -> Mix:
    """One mark: over the outermost dots of its kernels, not left of where the steepest bandwidth reaches it."""
    steepest = max((roof.value for roof in panel.of_kind("bandwidth")), default=math.inf)
    factor = (view.x1 / view.x0) ** (_REACH / view.width)
    xs = [member.dots[-1][1] for member in members]
    high, low = members[0], members[-1]
    left = max(min(xs) / factor, high.mix_roof / steepest, view.x0)
    right = min(max(max(xs), left) * factor, view.x1)
    shares = [f"{50 * (1 + one.fma_share):.3g}" for one in (low, high)]
    values = [format_value(one.mix_roof, f"{panel.unit}/s", 3) for one in (low, high)]
    if math.isclose(low.mix_roof, high.mix_roof, rel_tol=_SAME):
        return Mix(f"FMA mix {shares[1]} % {values[1]}", (high.mix_roof,), (left, right), f"mix {values[1]}")
    between = f"{values[0]} to {values[1]}"
    text = f"FMA mix {shares[0]} to {shares[1]} % {between}"
    return Mix(text, (low.mix_roof, high.mix_roof), (left, right), f"mix {between}")


def around_mark(left: float, right: float, y: float, width: float, height: float) -> list[tuple[Box, float]]:
    """Places for the text of a mark, a short horizontal line: right of it, above and below its ends, left of it."""
    away = height / 2 + 1.4
    places = [(right + 3 + width / 2, y, 0.0), (left - 3 - width / 2, y, 0.5)]
    for side, price in ((1, 0.1), (-1, 0.2)):
        places += [
            (x, y + side * away, price) for x in (right - width / 2, right + width / 2, left + width / 2, left - width / 2)
        ]
    return [(Box(x, at, width, height), price) for x, at, price in places]
