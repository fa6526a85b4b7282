"""Axes, roofs, sweeps and FMA mixes of a roofline as marks of a chart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from ncu_roofline.analyses.hierarchical.chart import Panel, Series
from ncu_roofline.analyses.hierarchical.roofs import ChartRoof
from ncu_roofline.analyses.hierarchical.style import COUNTED, level_order, level_style
from ncu_roofline.base.texts import shorten
from ncu_roofline.base.units import format_value
from ncu_roofline.rendering.chart import Axis, Line, Mark, Place, Roof, Text

STEPS = "steps"
"""Key of the legend's entries on steps."""
MAX_MIXES = 3  # lines in a panel; more of them are clutter, and the table has them all
_SAME = 0.01  # roofs and ceilings closer than this are one line on paper
_NEAR = 0.12  # ceilings closer than this share a label
_SAME_WORK = 0.02  # work of steps that differs by less is the same
_SHORT = 0.06  # decades: what joins two dots that are nearer has no room for a text
_REACH = 1.5  # so many times the intensity of its dots the line of a mix goes on
_FEW, _SOME = 3, 8  # up to so many kernels every step is named; up to so many the first and the last
_NAME = 20  # characters of the name of a step
_PIECES = 18  # arrows with a speed-up; more of them are clutter


def axes_of(unit: str) -> tuple[Axis, Axis]:
    """Intensity and performance in a unit of work."""
    intensity, of, performance = COUNTED[unit]

    def axis(name: str, unit: str, prefix: str) -> Axis:
        words, _, bracket = name.partition(" [")
        return Axis(unit, (name, f"{words.split()[-1].capitalize()} [{bracket}", f"[{bracket}"), prefix=prefix)

    return axis(intensity, of, "none"), axis(f"Performance [{performance}{{unit}}]", f"{unit}/s", "name")


def plain_roofs(roofs: Iterable[tuple[str, str, float, str, str]], role: str = "roof") -> Iterator[Roof]:
    """Roofs of one origin, of rows (kind, level, value, name, value as text), with their values where there is room.

    Compute roofs come first, then bandwidths from the outermost inwards.
    """
    found = sorted(roofs, key=lambda roof: (roof[0] != "compute", -roof[2] if roof[0] == "compute" else roof[2]))
    top, steepest = (max((roof[2] for roof in found if roof[0] == kind), default=math.inf) for kind in ("compute", "bandwidth"))
    for kind, level, value, name, text in found:
        hue, meets = level_style(level) if level else None, steepest if kind == "compute" else top
        labels = tuple(filter(None, (f"{name} {text}".strip(), name)))
        yield Roof(role=role, labels=labels, hue=hue, kind=kind, value=value, meets=meets)


def twins(roofs: Sequence[ChartRoof]) -> list[list[ChartRoof]]:
    """Roofs, highest first, those of practically the same value together."""
    groups: list[list[ChartRoof]] = []
    for roof in roofs:
        if groups and math.isclose(groups[-1][0].value, roof.value, rel_tol=_SAME):
            groups[-1].append(roof)
        else:
            groups.append([roof])
    return groups


def roof_texts(roofs: Sequence[ChartRoof]) -> tuple[str, ...]:
    """Labels for roofs of the same value, from complete to terse."""
    first = roofs[0]
    names = list(dict.fromkeys(roof.label or roof.id for roof in roofs))
    names = [name for name in names if not any(name.startswith(f"{other}, ") for other in names)]  # a mode as fast as the rest
    name = ", ".join(names)
    name = shorten(name, 36) if len(name) <= 36 else f"{shorten(names[0], 24)} and {len(names) - 1} more"
    if first.kind == "wall":  # its label says where it stands
        return name, name.partition(":")[0]
    value, theory = (first.band(origin).text(first.unit) for origin in (first.origin, "theoretical"))
    both = (f"{name} {value} (theory {theory})",) if len(first.values) == 2 else ()
    return (*both, f"{name} {value}", name)


def roof_marks(panel: Panel, apart: bool) -> Iterator[Roof]:
    """Roofs of both origins, labelled once: compute roofs, the bandwidths from the outermost inwards, walls.

    Bandwidth roofs end at the highest compute roof of their own origin, compute roofs begin at the highest bandwidth roof.
    ``apart``: measured and theoretical ones are both in the picture, and drawn as such.
    """
    compute, bandwidth, walls = map(panel.of_kind, ("compute", "bandwidth", "wall"))
    for group in [*twins(compute), *reversed(twins(bandwidth)), *twins(walls)]:
        labels, beside = roof_texts(group), tuple(value for roof in group for value in roof.values)
        for upon, roof in enumerate(group):
            hue = level_style(roof.level) if roof.level else None
            for origin in ("theoretical", "measured"):
                band = roof.band(origin)
                if math.isnan(band.high):
                    continue
                others = bandwidth if roof.kind == "compute" else compute
                same = [value for other in others if not math.isnan(value := other.band(origin).line)]
                role = "wall" if roof.kind == "wall" else "theory" if origin == "theoretical" and apart else "roof"
                yield Roof(
                    role=f"{role}-upon" if upon and roof.kind == "bandwidth" else role, labels=labels, hue=hue, kind=roof.kind,
                    value=band.line, meets=max(same or [other.value for other in others], default=math.inf), beside=beside,
                    band=(band.low, band.high) if band.wide else None,
                )  # fmt: skip
                labels = ()


def sweeps(panel: Panel) -> list[list[Series]]:
    """The series of each kernel and precision that has several steps, in their order."""
    found: dict[tuple[str, str], list[Series]] = {}
    for one in panel.series:
        if one.step >= 0:
            found.setdefault((one.kernel, one.precision), []).append(one)
    return [sorted(steps, key=lambda one: one.step) for steps in found.values() if len(steps) > 1]


def step_keys(panels: Sequence[Panel]) -> list[str]:
    """``nw1  264 us`` for each step of a sweep of one kernel, which tells the times where dots have no room for them."""
    found = [steps for panel in panels for steps in sweeps(panel)]
    if len({steps[0].kernel for steps in found}) != 1:
        return []
    times = {one.step: f"{shorten(one.step_label, _NAME)}  {_time(one)}".rstrip() for steps in found for one in steps}
    return [text for _, text in sorted(times.items())]


def sweep_marks(panel: Panel, panels: Sequence[Panel]) -> Iterator[Mark]:
    """Lines along each sweep, names and times of its steps, and by what they are faster; lines of FMA mixes."""
    yield from mixes(panel)
    groups, in_legend = sweeps(panel), bool(step_keys(panels))
    for steps in groups:
        for level in level_order(level for step in steps for level, _ in step.dots):
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
    return format_value(one.seconds, "second", 3) if one.seconds > 0 else ""


def _levels(steps: Sequence[Series]) -> list[str]:
    """The levels of a sweep, that which limits its last step first, then those whose dots are furthest apart."""

    def spread(level: str) -> float:  # smallest distance between dots of consecutive steps; 0 where a step lacks it
        places = [at for step in steps if (at := _dot(step, level))]
        return min(_apart(a, b) for a, b in pairwise(places)) if len(places) == len(steps) else 0.0

    levels = {level for step in steps for level, _ in step.dots}
    return sorted(levels, key=lambda level: (level != steps[-1].nearest, -spread(level), level))


def _apart(one: Place, other: Place) -> float:
    """Distance in decades."""
    return math.dist([math.log10(value) for value in one], [math.log10(value) for value in other])


def _speedups(steps: Sequence[Series]) -> Iterator[Text]:
    """By what each step is faster than the one before, in the middle of an arrow.

    Nothing where a step has more or less work than the one before: a speed-up would mislead, and the times stand at the dots.
    """
    levels = _levels(steps)
    for before, after in pairwise(steps):
        work = [one.performance * one.seconds for one in (before, after)]
        if min(work) > 0 and max(work) < (1 + _SAME_WORK) * min(work):
            ends = [(a, b) for level in levels if (a := _dot(before, level)) and (b := _dot(after, level))]
            places = tuple((math.sqrt(a[0] * b[0]), math.sqrt(a[1] * b[1])) for a, b in ends if _apart(a, b) > _SHORT)
            yield Text(role="speedup", labels=(f"{before.seconds / after.seconds:.2g}x",), places=places)


def mixes(panel: Panel) -> list[Line]:
    """The FMA-mix ceilings that limit kernels of a panel, from high to low; none if they are more than MAX_MIXES.

    Near ones have one label.  None for a kernel that its memory limits to less, nor for a ceiling that a compute roof draws
    already (all fused, none fused).
    """
    drawn = [value for roof in panel.of_kind("compute") for value in roof.values]
    bandwidth = {roof.level: roof.highest for roof in panel.of_kind("bandwidth")}
    groups: list[list[Series]] = []
    for one in sorted((one for one in panel.series if one.mix_roof > 0), key=lambda one: -one.mix_roof):
        if any(one.mix_roof > x * bandwidth.get(level, math.inf) for level, x in one.dots):
            continue
        if not _SAME <= one.fma_share <= 1 - _SAME or any(math.isclose(one.mix_roof, value, rel_tol=_SAME) for value in drawn):
            continue
        if groups and math.isclose(groups[-1][0].mix_roof, one.mix_roof, rel_tol=_NEAR):
            groups[-1].append(one)
        else:
            groups.append([one])
    return [line for members in groups for line in _mix(members, panel)] if len(groups) <= MAX_MIXES else []


def _mix(members: Sequence[Series], panel: Panel) -> Iterator[Line]:
    """Over the outermost dots of its kernels, not left of where the steepest bandwidth reaches it; of several two lines."""
    steepest = max((roof.value for roof in panel.of_kind("bandwidth")), default=math.inf)
    xs, high, low = [member.dots[-1][1] for member in members], members[0], members[-1]
    left = max(min(xs) / _REACH, high.mix_roof / steepest)
    right = max(max(xs), left) * _REACH
    ends = [high] if math.isclose(low.mix_roof, high.mix_roof, rel_tol=_SAME) else [low, high]
    share = " to ".join(f"{50 * (1 + one.fma_share):.3g}" for one in ends)
    value = " to ".join(format_value(one.mix_roof, f"{panel.unit}/s", 3) for one in ends)
    values = tuple(one.mix_roof for one in ends)
    for at in values:
        labels = (f"FMA mix {share} % {value}", f"mix {value}") if at == values[-1] else ()
        yield Line(role="mix", labels=labels, places=((left, at), (right, at)), beside=values)
