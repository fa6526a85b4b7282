"""Where everything in one panel goes: lines, ridge points, dots and labels, as plain data for any drawing library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ncu_roofline.analyses.hierarchical.chart import Band, ChartKernel, ChartRoof, Panel, RooflineChart, Series
from ncu_roofline.analyses.hierarchical.style import COUNTED
from ncu_roofline.analyses.hierarchical.sweeps import Mix, Trajectory, around_mark, mixes, over_dot, step_names, trajectories
from ncu_roofline.analyses.hierarchical.usage import percent
from ncu_roofline.rendering import layout
from ncu_roofline.rendering.layout import Box, Measure, Obstacles, View
from ncu_roofline.texts import shorten
from ncu_roofline.units import format_value

EXPLANATION = Box(0.6, 0.36, 0.72, 0.34)  # where a panel without dots says why, in parts of its size
_CLEAR = 0.9  # price of a place that covers nothing, near its dot
_SAME = 0.01  # roofs closer than this are one line on paper


@dataclass(frozen=True)
class Sizes:
    """Font and marker sizes in points."""

    roof: float = 6.4
    kernel: float = 6.4
    number: float = 5.4
    marker: float = 4.6


@dataclass(frozen=True)
class PlannedRoof:
    """A roof: ends in data values; ``twin`` > 0 for one drawn over another roof of the same value."""

    ends: tuple[tuple[float, float], tuple[float, float]]
    kind: str
    level: str
    origin: str
    twin: int = 0


@dataclass(frozen=True)
class Area:
    """The band of a roof whose launches ran at different clocks: corners in data values."""

    corners: tuple[tuple[float, float], ...]
    level: str


@dataclass(frozen=True)
class Label:
    """A text in its box (points); ``role`` is roof, ridge, mix, step, number or kernel; ``level`` gives its colour.

    ``leader`` is a line to the dot that a label away from it belongs to.
    """

    text: str
    box: Box
    size: float
    role: str
    level: str = ""
    leader: tuple[tuple[float, float], tuple[float, float]] | None = None


@dataclass
class PanelPlan:
    """A panel ready to draw."""

    panel: Panel
    view: View
    lines: list[PlannedRoof] = field(default_factory=list)
    areas: list[Area] = field(default_factory=list)
    ridges: list[tuple[float, float, str]] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    unlabelled: list[str] = field(default_factory=list)
    outside: int = 0
    trajectories: list[Trajectory] = field(default_factory=list)
    mixes: list[Mix] = field(default_factory=list)


def view_of(panel: Panel, width: float, height: float, direct: bool = False) -> View:
    """Axes of a panel that is ``width`` x ``height`` points; with room for names at the dots if ``direct``."""
    dots = [(intensity, one.performance) for one in panel.series for _, intensity in one.dots]
    peaks = [value for roof in panel.of_kind("compute") for value in (*roof.values, roof.highest)]
    bandwidths = [value for roof in panel.of_kind("bandwidth") for value in roof.values]
    walls = [roof.value for roof in panel.of_kind("wall")]
    return View(*layout.limits(dots, peaks, bandwidths, walls, 14.0 if direct else 5.0), width, height)


def plan_panel(panel: Panel, view: View, chart: RooflineChart, measure: Measure, sizes: Sizes, direct: bool) -> PanelPlan:
    """Plans one panel; ``direct`` writes kernel names at their dots, else kernels beyond the markers get numbers."""
    plan = PanelPlan(panel, view)
    _lines(plan)
    obstacles = Obstacles(view)
    for line in plan.lines:
        (ax, ay), (bx, by) = line.ends
        obstacles.add(layout.segment(view.x(ax), view.y(ay), view.x(bx), view.y(by)), 1.2)
    _trajectories(plan, obstacles)
    for x, y in _visible_dots(plan, sizes, obstacles):
        obstacles.add(Box(x, y, sizes.marker + 1, sizes.marker + 1), 1.0)
    if not panel.series:
        obstacles.add(EXPLANATION.scaled(view.width, view.height))
    _roof_labels(plan, obstacles, measure, sizes)
    _mixes(plan, obstacles, measure, sizes)
    _step_labels(plan, obstacles, measure, sizes)
    names = _direct_names(chart.kernels) if direct else _numbers(chart.kernels)
    size, role = (sizes.kernel, "kernel") if direct else (sizes.number, "number")
    for kernel, text in names.items():
        shown = [one for one in panel.series if one.kernel == kernel]
        if shown and not _kernel_label(plan, obstacles, shown, text, measure(text, size), size, role) and direct:
            plan.unlabelled.append(text)
    _ridge_label(plan, obstacles, measure, sizes)
    return plan


def joined(one: Series) -> bool:
    """Whether a line joins the levels of a series; in a sweep lines join the steps instead."""
    return one.step < 0


def _trajectories(plan: PanelPlan, obstacles: Obstacles) -> None:
    view = plan.view
    plan.trajectories = trajectories(plan.panel)
    for path in plan.trajectories:
        places = [(view.x(x), view.y(y)) for x, y in path.dots if view.holds(x, y)]
        for (ax, ay), (bx, by) in pairwise(places):
            obstacles.add(layout.segment(ax, ay, bx, by), 0.3)


def _mixes(plan: PanelPlan, obstacles: Obstacles, measure: Measure, sizes: Sizes) -> None:
    """Marks of FMA mixes that find room for their text; one without a text would mean nothing."""
    view = plan.view
    for mix in mixes(plan.panel, view):
        left, right, y = view.x(mix.span[0]), view.x(mix.span[1]), view.y(mix.values[-1])
        width, height = measure(mix.text, sizes.number)
        if box := obstacles.place(around_mark(left, right, y, width, height), limit=3.0):
            obstacles.add(layout.segment(left, y, right, y), 0.6)
            plan.mixes.append(mix)
            plan.labels.append(Label(mix.text, box, sizes.number, "mix"))


def _step_labels(plan: PanelPlan, obstacles: Obstacles, measure: Measure, sizes: Sizes) -> None:
    """Names of the steps of a sweep, each once, where there is room beside one of its dots."""
    view = plan.view
    for name, dots in step_names(plan.panel, view):
        text = shorten(name, 20)
        width, height = measure(text, sizes.number)
        for level, intensity, performance in dots:
            if not view.holds(intensity, performance):
                continue
            x, y = view.x(intensity), view.y(performance)
            if box := obstacles.place(over_dot(x, y, width, height, 3.2), margin=0.4, limit=1.9):
                plan.labels.append(Label(text, box, sizes.number, "step", level, layout.leader(x, y, box)))
                break


def _visible_dots(plan: PanelPlan, sizes: Sizes, obstacles: Obstacles) -> list[tuple[float, float]]:
    """Places of the dots inside the axes; connectors become obstacles, dots outside are counted."""
    view, found = plan.view, []
    for one in plan.panel.series:
        inside = [x for _, x in one.dots if view.holds(x, one.performance)]
        plan.outside += len(one.dots) - len(inside)
        found += [(view.x(x), view.y(one.performance)) for x in inside]
        if len(inside) > 1 and joined(one):
            y = view.y(one.performance)
            obstacles.add(layout.segment(view.x(min(inside)), y, view.x(max(inside)), y, sizes.marker / 4), 0.25)
    return found


def _twins(roofs: Sequence[ChartRoof]) -> list[list[ChartRoof]]:
    """Roofs, highest first, those of practically the same value together."""
    groups: list[list[ChartRoof]] = []
    for roof in roofs:
        if groups and math.isclose(groups[-1][0].value, roof.value, rel_tol=_SAME):
            groups[-1].append(roof)
        else:
            groups.append([roof])
    return groups


def _lines(plan: PanelPlan) -> None:
    """Fills in lines and ridge points.

    Bandwidth roofs end at the highest compute roof of their own origin, compute roofs begin at the highest bandwidth roof.
    """
    panel, view = plan.panel, plan.view
    compute, bandwidth = panel.of_kind("compute"), panel.of_kind("bandwidth")
    for origin in ("theoretical", "measured"):
        tops = [v for roof in compute if not math.isnan(v := getattr(roof, origin))] or [roof.value for roof in compute]
        slopes = [v for roof in bandwidth if not math.isnan(v := getattr(roof, origin))] or [roof.value for roof in bandwidth]
        top, steepest = max(tops, default=view.y1), max(slopes, default=None)
        for group in _twins(bandwidth):
            for twin, roof in enumerate(group):
                value = getattr(roof, origin)
                ends = None if math.isnan(value) else layout.diagonal(view, value, top)
                if ends:
                    plan.lines.append(PlannedRoof(ends, roof.kind, roof.level, origin, twin))
                    plan.areas += _sloping_area(view, roof.band(origin), roof.level, top)
        for roof in compute:
            value = getattr(roof, origin)
            span = None if math.isnan(value) else layout.horizontal(view, value, steepest)
            if span:
                plan.lines.append(PlannedRoof(((span[0], value), (span[1], value)), roof.kind, "", origin))
                plan.areas += _level_area(view, roof.band(origin), span, steepest)
    for wall in panel.of_kind("wall"):
        plan.lines.append(PlannedRoof(((wall.value, view.y0), (wall.value, view.y1)), "wall", wall.level, "theoretical"))
    if compute:
        top = compute[0].value
        for group in _twins(bandwidth):
            if view.holds(top / group[0].value, top):
                plan.ridges.append((top / group[0].value, top, group[0].level))


def _sloping_area(view: View, band: Band, level: str, top: float) -> list[Area]:
    """The band of a bandwidth roof up to ``top``, if it has one inside the axes."""
    above, below = (layout.diagonal(view, value, top) for value in (band.high, band.low))
    return [Area((*above, *reversed(below)), level)] if band.wide and above and below else []


def _level_area(view: View, band: Band, span: tuple[float, float], steepest: float | None) -> list[Area]:
    """The band of a compute roof whose line spans ``span``, if it has one."""
    if not band.wide:
        return []
    edges = [min(max(value, view.y0), view.y1) for value in (band.high, band.low)]
    (high, left), (low, right) = ((value, (layout.horizontal(view, value, steepest) or span)[0]) for value in edges)
    return [Area(((left, high), (span[1], high), (span[1], low), (right, low)), "")]


def roof_texts(roofs: Sequence[ChartRoof]) -> list[str]:
    """Labels for roofs of the same value, from complete to terse."""
    first = roofs[0]
    names = list(dict.fromkeys(roof.label or roof.id for roof in roofs))
    name = ", ".join(names) if len(", ".join(names)) <= 36 else f"{shorten(names[0], 30)} +{len(names) - 1}"
    name = shorten(name, 36)
    value = first.band("theoretical" if math.isnan(first.measured) else "measured").text(first.unit)
    if first.kind == "wall":  # its label says where it stands
        return [name, name.partition(":")[0]]
    texts = [f"{name} {value}", name]
    if len(first.values) == 2:
        texts.insert(0, f"{name} {value} (theory {first.band('theoretical').text(first.unit)})")
    return texts


def _roof_labels(plan: PanelPlan, obstacles: Obstacles, measure: Measure, sizes: Sizes) -> None:
    """Labels of compute roofs, then of the bandwidth roofs from the outermost inwards, then of walls."""
    panel, view = plan.panel, plan.view
    bandwidth = _twins(panel.of_kind("bandwidth"))
    top = max((roof.value for roof in panel.of_kind("compute")), default=view.y1)
    steepest = bandwidth[0][0].value if bandwidth else None
    for group in [*_twins(panel.of_kind("compute")), *reversed(bandwidth), *_twins(panel.of_kind("wall"))]:
        roof = group[0]
        for text in roof_texts(group):
            width, height = measure(text, sizes.roof)
            candidates: list[tuple[Box, float]] = []
            values = [value for one in group for value in one.values]
            if roof.kind == "compute":
                candidates = layout.along_horizontal(view, values, steepest, width, height)
            elif roof.kind == "bandwidth":
                candidates = layout.along_diagonal(view, values, top, width, height)
            elif roof.kind == "wall":
                candidates = layout.along_wall(view, roof.value, width, height)
            box = obstacles.place(candidates)
            if box:
                plan.labels.append(Label(text, box, sizes.roof, "roof", roof.level))
                break
        else:
            plan.unlabelled.append(roof_texts(group)[-2])


def _direct_names(kernels: Sequence[ChartKernel]) -> dict[str, str]:
    return {
        kernel.label: f"{kernel.marked} ({percent(kernel.share)})" if kernel.share > 0 else kernel.marked for kernel in kernels
    }


def _numbers(kernels: Sequence[ChartKernel]) -> dict[str, str]:
    from ncu_roofline.rendering.style import MARKERS

    return {kernel.label: str(index + 1) for index, kernel in enumerate(kernels)} if len(kernels) > len(MARKERS) else {}


def _kernel_label(
    plan: PanelPlan, obstacles: Obstacles, shown: list[Series], text: str, extent: tuple[float, float], size: float, role: str
) -> bool:
    """Puts a kernel's name or number at the outermost dot of its longest series; whether there was room."""
    places = [
        (level, plan.view.x(intensity), plan.view.y(one.performance))
        for one in sorted(shown, key=lambda series: -series.seconds)
        for level, intensity in reversed(one.dots)
        if plan.view.holds(intensity, one.performance)
    ]
    # In a sweep any step will do, so one where the name covers nothing comes first.
    for limit in (_CLEAR, math.inf) if shown[0].step >= 0 else (math.inf,):
        for level, x, y in places:
            box = obstacles.place(layout.around(x, y, *extent, reach=5), margin=0.6, limit=limit)
            if box:
                plan.labels.append(Label(text, box, size, role, level if role == "number" else "", layout.leader(x, y, box)))
                return True
    return False


def _ridge_label(plan: PanelPlan, obstacles: Obstacles, measure: Measure, sizes: Sizes) -> None:
    """The machine balance of the outermost level, if there is room."""
    if not plan.ridges:
        return
    intensity, performance, level = max(plan.ridges)
    text = f"ridge {format_value(intensity, COUNTED[plan.panel.unit].intensity_unit, 3)}"
    width, height = measure(text, sizes.number)
    x, y = plan.view.x(intensity), plan.view.y(performance)
    candidates = [(box, price) for box, price in layout.around(x, y, width, height, 4.0, 2) if box.y < y]
    if box := obstacles.place(candidates, limit=1.2):
        plan.labels.append(Label(text, box, sizes.number, "ridge", level))
