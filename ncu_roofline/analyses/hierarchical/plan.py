"""Where everything in one panel goes: lines, ridge points, dots and labels, as plain data for any drawing library."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ncu_roofline.analyses.hierarchical.chart import Band, ChartKernel, ChartRoof, Panel, RooflineChart, Series
from ncu_roofline.analyses.hierarchical.edges import Arrow, arrows
from ncu_roofline.analyses.hierarchical.series import by_verdict
from ncu_roofline.analyses.hierarchical.style import COUNTED
from ncu_roofline.analyses.hierarchical.sweeps import (
    Mix,
    Trajectory,
    around_mark,
    arrow_texts,
    mixes,
    step_names,
    trajectories,
)
from ncu_roofline.analyses.hierarchical.usage import percent
from ncu_roofline.base.texts import shorten
from ncu_roofline.base.units import format_value
from ncu_roofline.rendering import layout
from ncu_roofline.rendering.layout import Box, Measure, Obstacles, View
from ncu_roofline.rendering.paper import Paper
from ncu_roofline.rendering.style import MARKERS

EXPLANATION = Box(0.6, 0.36, 0.72, 0.34)  # where a panel without dots says why, in parts of its size
_LINE, _STRUCK = 1.2, 0.5  # price of covering a roof, and how much more it is where the text is no roof's
_DOT = 3.0  # price of covering a dot, more than any text is worth that could be shorter or elsewhere
_CLEAR = 0.8  # price of a place that covers nothing, beside its dot
_CROWD = 1.9  # price of a place among lines and dots that a text may still pay
_FREE = 0.01  # price of a place that covers nothing at all
_ASIDE = 2.0  # price of a place aside that a name rather takes than one at another of its dots
_NAME_LIMIT = 5.5  # a name further away, or over more, is better read in the legend
_BRIEFLY = 5.6  # the same of its abbreviation
_STEP_LIMIT = 3.2  # a step further away, or over more, is better read there as well
_THEIRS = 0.8  # price of a place beside the dot of another kernel
_FAR = 0.45  # of the height of the axes: so far a name may stand from its dot
_NAME, _BRIEF = 32, 18  # characters
_TIGHT = 0.1  # points around a label that has little room
_STEP = 10.0  # points between places that are tried for the legend
_MARKER, _SMALLEST, _WHOLE = 4.8, 2.8, 13.0  # symbols in points: all alike, or of no and of all the time
_OFF = 1.8  # points from a symbol to its text
ARROW = 4.4  # points
_SAME = 0.01  # roofs closer than this are one line on paper


@dataclass(frozen=True)
class Asked:
    """What a panel should have room for: names of kernels at their dots, a legend in one of these extents (points).

    ``by_time``: the areas of dots are their shares of the time; ``timed``: the times of a sweep's steps stand at their dots.
    """

    names: frozenset[str] = frozenset()
    legends: tuple[tuple[float, float], ...] = ()
    by_time: bool = False
    timed: bool = True


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
    """A text in its box (points); ``role`` is roof, ridge, mix, step, arrow, edge, number or kernel; ``level`` colours it.

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
    """A panel ready to draw; ``told``: all steps of its sweep stand at their dots, each with its time.

    There is no room for the values of ``unlabelled`` roofs, nor for those of ``untold`` dots beyond the axes.
    """

    panel: Panel
    view: View
    data: RooflineChart
    paper: Paper
    by_time: bool = False
    lines: list[PlannedRoof] = field(default_factory=list)
    areas: list[Area] = field(default_factory=list)
    ridges: list[tuple[float, float, str]] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    unlabelled: list[str] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    untold: int = 0
    told: bool = True
    named: set[str] = field(default_factory=set)
    legend: Box | None = None

    def marker(self, one: Series) -> float:
        """Points across the symbols of a series."""
        return marker_size(self.data.share_of(one), self.paper, self.by_time)

    trajectories: list[Trajectory] = field(default_factory=list)
    mixes: list[Mix] = field(default_factory=list)


def marker_size(share: float, paper: Paper, by_time: bool) -> float:
    """Points across the symbol of a dot; ``by_time`` its area is the share of the time, down to what can be seen."""
    return paper.scale * (max(_SMALLEST, _WHOLE * math.sqrt(share) if share > 0 else 0.0) if by_time else _MARKER)


def numbered(data: RooflineChart) -> bool:
    """Whether the kernels are more than there are shapes of symbols, so that numbers tell them apart."""
    return len(data.kernels) > len(MARKERS)


def plan_panel(
    panel: Panel, view: View, chart: RooflineChart, measure: Measure, paper: Paper, asked: Asked | None = None
) -> PanelPlan:
    """Plans one panel, with what is ``asked`` for in it; kernels that are not named get numbers where shapes don't suffice."""
    asked = asked or Asked()
    plan = PanelPlan(panel, view, chart, paper, asked.by_time)
    _lines(plan)
    obstacles = Obstacles(view)
    _avoid_lines(plan, obstacles, _LINE)
    _trajectories(plan, obstacles)
    for x, y, size in _visible_dots(plan, obstacles):
        obstacles.add(Box(x, y, size + 1, size + 1), _DOT)
    plan.arrows = arrows(panel, view)
    for arrow in plan.arrows:
        obstacles.add(Box(arrow.x, arrow.y, ARROW + 1, ARROW + 1), _DOT)
    if not panel.series:
        obstacles.add(EXPLANATION.scaled(view.width, view.height))
    _arrow_labels(plan, obstacles, measure, paper)
    _roof_labels(plan, obstacles, measure, paper)
    _avoid_lines(plan, obstacles, _STRUCK)
    _mixes(plan, obstacles, measure, paper)
    _step_labels(plan, obstacles, measure, paper, asked.timed)
    _names(plan, obstacles, asked.names, measure, paper)
    _legend(plan, obstacles, asked.legends)
    if numbered(chart):
        for index, kernel in enumerate(chart.kernels):
            if kernel.label not in plan.named:
                _at_dot(plan, obstacles, _by_work(plan, kernel.label), (str(index + 1), paper.small, "number"), measure)
    _ridge_label(plan, obstacles, measure, paper)
    return plan


def _avoid_lines(plan: PanelPlan, obstacles: Obstacles, cost: float) -> None:
    """Makes it so much dearer to cover a roof."""
    view = plan.view
    for line in plan.lines:
        (ax, ay), (bx, by) = line.ends
        obstacles.add(layout.segment(view.x(ax), view.y(ay), view.x(bx), view.y(by)), cost)


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


def _mixes(plan: PanelPlan, obstacles: Obstacles, measure: Measure, paper: Paper) -> None:
    """Marks of FMA mixes that find room for their text; one without a text would mean nothing."""
    view = plan.view
    for mix in mixes(plan.panel, view):
        left, right, y = view.x(mix.span[0]), view.x(mix.span[1]), view.y(mix.values[-1])
        for text, margin in ((mix.text, 1.0), (mix.brief, 1.0), (mix.brief, _TIGHT)):
            places = around_mark(left, right, y, *measure(text, paper.small))
            if box := obstacles.place(places, margin, limit=_DOT):
                obstacles.add(layout.segment(left, y, right, y), 0.6)
                plan.mixes.append(mix)
                plan.labels.append(Label(text, box, paper.small, "mix"))
                break
        else:
            plan.unlabelled.append(mix.text)


def _step_labels(plan: PanelPlan, obstacles: Obstacles, measure: Measure, paper: Paper, timed: bool) -> None:
    """The steps of a sweep at their dots, with their times where that is asked for, and beside the arrows by what a step is
    faster, if there is room."""
    view = plan.view
    for name, time, dots in reversed(step_names(plan.panel, view, timed)):  # the last step always
        places = [(level, view.x(x), view.y(y)) for level, x, y in dots if view.holds(x, y)][:1]
        text = f"{name}, {time}" if time and timed else name
        if not _at_first(plan, obstacles, (text, paper.small, "step"), places, _callout(view), measure, _STEP_LIMIT):
            plan.told = False
    for text, places in arrow_texts(plan.panel, view):
        inside = [(level, x, y) for level, x, y in places if 0 <= x <= view.width and 0 <= y <= view.height]
        _at_first(plan, obstacles, (text, paper.small, "arrow"), inside, layout.around, measure, _CROWD)


def _callout(view: View) -> Callable[[float, float, float, float, float], list[tuple[Box, float]]]:
    """Places beside a dot and away from it, as far as the axes have room."""
    return lambda x, y, width, height, gap: layout.callouts(x, y, width, height, gap, _FAR * view.height)


def _at_first(
    plan: PanelPlan,
    obstacles: Obstacles,
    what: tuple[str, float, str],
    places: Sequence[tuple[str, float, float]],
    beside: Callable[[float, float, float, float, float], list[tuple[Box, float]]],
    measure: Measure,
    most: float,
) -> bool:
    """Puts a text (with its font size and role) at the first place (level, x, y) that has room beside it; whether one had."""
    text, size, role = what
    for level, x, y in places:
        gap = marker_size(0.0, plan.paper, False) / 2 + _OFF
        if box := obstacles.place(beside(x, y, *measure(text, size), gap), margin=0.4, limit=most, dot=(x, y)):
            plan.labels.append(Label(text, box, size, role, level, layout.leader(x, y, box)))
            return True
    return False


def _visible_dots(plan: PanelPlan, obstacles: Obstacles) -> list[tuple[float, float, float]]:
    """Places and sizes of the dots inside the axes; connectors become obstacles."""
    view, found = plan.view, []
    for one in plan.panel.series:
        inside = [x for _, x in one.dots if view.holds(x, one.performance)]
        found += [(view.x(x), view.y(one.performance), plan.marker(one)) for x in inside]
        if len(one.dots) > 1 and joined(one) and view.y0 <= one.performance <= view.y1:
            y, ends = view.y(one.performance), [min(max(x, view.x0), view.x1) for _, x in one.dots]
            obstacles.add(layout.segment(view.x(min(ends)), y, view.x(max(ends)), y, 1.2), 0.25)
    return found


def _arrow_labels(plan: PanelPlan, obstacles: Obstacles, measure: Measure, paper: Paper) -> None:
    """The values of the dots that arrows at the edges stand for."""
    for arrow in plan.arrows:
        for text in arrow.texts:
            places = layout.around(arrow.x, arrow.y, *measure(text, paper.small), gap=ARROW * paper.scale / 2 + 1.5, reach=5)
            if box := obstacles.place(places, margin=0.6, limit=5.0):
                plan.labels.append(Label(text, box, paper.small, "edge", arrow.level))
                break
        else:
            plan.untold += arrow.count


def _legend(plan: PanelPlan, obstacles: Obstacles, extents: Sequence[tuple[float, float]]) -> None:
    """A place for the legend that covers nothing, rather in a corner."""
    view = plan.view
    candidates = []
    for index, (width, height) in enumerate(extents):
        across, upwards = (range(int(max(room, 0) / _STEP) + 1) for room in (view.width - width - 4, view.height - height - 4))
        for column in across:
            for row in upwards:
                x, y = view.width - 2 - width / 2 - _STEP * column, 2 + height / 2 + _STEP * row
                corner = min(column, len(across) - 1 - column) + min(row, len(upwards) - 1 - row)
                candidates.append((Box(x, y, width, height), index + 0.002 * corner + 0.0001 * (row + column)))
    for box, _ in sorted(candidates, key=lambda one: one[1]):
        if obstacles.cost(box.grown(0.5), _FREE) < _FREE:
            obstacles.add(box)
            plan.legend = box
            return


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
    names = [name for name in names if not any(name.startswith(f"{other}, ") for other in names)]  # a mode as fast as the rest
    name = (
        shorten(", ".join(names), 36) if len(", ".join(names)) <= 36 else f"{shorten(names[0], 24)} and {len(names) - 1} more"
    )
    value = first.band("theoretical" if math.isnan(first.measured) else "measured").text(first.unit)
    if first.kind == "wall":  # its label says where it stands
        return [name, name.partition(":")[0]]
    texts = [f"{name} {value}", name]
    if len(first.values) == 2:
        texts.insert(0, f"{name} {value} (theory {first.band('theoretical').text(first.unit)})")
    return texts


def _roof_labels(plan: PanelPlan, obstacles: Obstacles, measure: Measure, paper: Paper) -> None:
    """Labels of compute roofs, then of the bandwidth roofs from the outermost inwards, then of walls."""
    panel, view = plan.panel, plan.view
    bandwidth = _twins(panel.of_kind("bandwidth"))
    top = max((roof.value for roof in panel.of_kind("compute")), default=view.y1)
    steepest = bandwidth[0][0].value if bandwidth else None
    for group in [*_twins(panel.of_kind("compute")), *reversed(bandwidth), *_twins(panel.of_kind("wall"))]:
        roof = group[0]
        texts = roof_texts(group)
        for text in texts:
            width, height = measure(text, paper.label)
            candidates: list[tuple[Box, float]] = []
            values = [value for one in group for value in one.values]
            if roof.kind == "compute":
                candidates = layout.along_horizontal(view, values, steepest, width, height)
            elif roof.kind == "bandwidth":
                candidates = layout.along_diagonal(view, values, top, width, height)
            elif roof.kind == "wall":
                candidates = layout.along_wall(view, roof.value, width, height)
            box = obstacles.place(candidates, limit=math.inf if text == texts[-1] else _DOT)
            if not box and text == texts[-2]:
                box = obstacles.place(candidates, margin=_TIGHT, limit=_DOT)  # before the value is left out
            if box:
                plan.labels.append(Label(text, box, paper.label, "roof", roof.level))
                break
        if not box or (text == texts[-1] and roof.kind != "wall"):
            plan.unlabelled.append(texts[-2])


def _names(plan: PanelPlan, obstacles: Obstacles, names: frozenset[str], measure: Measure, paper: Paper) -> None:
    """The names of kernels, in the order that finds room for most: those that could save most first, or from one side."""
    ranked = sorted(plan.data.kernels, key=lambda one: -one.recoverable if one.recoverable > 0 else 0.0)
    ranked = [one for one in ranked if one.label in names]
    across = sorted(ranked, key=lambda one: max((x for s in _by_work(plan, one.label)[:1] for _, x in s.dots), default=0.0))
    best: tuple[tuple[float, float], list[Label], list[str], Obstacles] | None = None
    for first, order in ((True, ranked), (False, ranked), (False, across), (False, across[::-1])):
        trial, into = replace(plan, labels=[], named=set()), obstacles.copy()
        for passes in ((_CLEAR,), (_ASIDE, _NAME_LIMIT, _BRIEFLY)) if first else ((_CLEAR, _ASIDE, _NAME_LIMIT, _BRIEFLY),):
            for kernel in order:
                if kernel.label not in trial.named:
                    _name(trial, into, kernel, measure, paper, passes)
        missed = sum(1 + (one.share if one.share > 0 else 0.0) for one in ranked if one.label not in trial.named)
        if best is None or (missed, into.spent) < best[0]:
            best = (missed, into.spent), trial.labels, sorted(trial.named), into
        if (not missed and first) or numbered(plan.data):  # where numbers name the rest no order is worth its time
            break
    if best:
        plan.labels += best[1]
        plan.named.update(best[2])
        obstacles.take(best[3])


def _name(
    plan: PanelPlan, obstacles: Obstacles, kernel: ChartKernel, measure: Measure, paper: Paper, passes: Sequence[float]
) -> None:
    """Puts a kernel's name and share at a dot of the precision that limits it, if one of ``passes`` (prices) finds room."""
    shown = _by_work(plan, kernel.label)
    main = [one for one in shown if one.precision == shown[0].precision]
    others = _beside_others(plan, kernel.label, measure("n", paper.label)[1])
    mark, share = f" {kernel.mark}" if kernel.mark else "", f" {percent(kernel.share)}" if kernel.share > 0 else ""
    for most in passes:
        text = f"{shorten(kernel.label, _BRIEF if most == _BRIEFLY else _NAME)}{mark}{share}"
        if _at_dot(plan, obstacles, main, (text, paper.label, "kernel"), measure, most, _callout(plan.view), others):
            plan.named.add(kernel.label)
            return


def _beside_others(plan: PanelPlan, kernel: str, height: float) -> Obstacles:
    """The places beside the dots of other kernels, where a name would be taken for theirs."""
    found, view = Obstacles(plan.view), plan.view
    for one in plan.panel.series:
        if one.kernel != kernel:
            for _, x in one.dots:
                if view.holds(x, one.performance):
                    found.add(Box(view.x(x), view.y(one.performance), 6 * height, 2 * height), _THEIRS)
    return found


def _by_work(plan: PanelPlan, kernel: str) -> list[Series]:
    """The series of a kernel, those of its last step, its longest launch and the precision nearest to its roof first."""
    shown = [one for one in plan.panel.series if one.kernel == kernel]
    return sorted(shown, key=by_verdict)


def _at_dot(
    plan: PanelPlan,
    obstacles: Obstacles,
    shown: Sequence[Series],
    what: tuple[str, float, str],
    measure: Measure,
    most: float = math.inf,
    beside: Callable[[float, float, float, float, float], list[tuple[Box, float]]] = layout.around,
    others: Obstacles | None = None,
) -> bool:
    """Puts a text (with its font size and role) at the first dot, outermost first, that has room; whether one had."""
    text, size, role = what
    extent = measure(text, size)
    for one in shown:
        for level, intensity in reversed(one.dots):
            if not plan.view.holds(intensity, one.performance):
                continue
            x, y = plan.view.x(intensity), plan.view.y(one.performance)
            places = beside(x, y, *extent, plan.marker(one) / 2 + _OFF)
            if box := obstacles.place(places, margin=0.6, limit=most, dot=(x, y), shy=others):
                plan.labels.append(Label(text, box, size, role, level if role == "number" else "", layout.leader(x, y, box)))
                return True
    return False


def _ridge_label(plan: PanelPlan, obstacles: Obstacles, measure: Measure, paper: Paper) -> None:
    """The machine balance of the outermost level, if there is room."""
    if not plan.ridges:
        return
    intensity, performance, level = max(plan.ridges)
    text = f"ridge {format_value(intensity, COUNTED[plan.panel.unit].intensity_unit, 3)}"
    width, height = measure(text, paper.small)
    x, y = plan.view.x(intensity), plan.view.y(performance)
    candidates = [(box, price) for box, price in layout.around(x, y, width, height, 4.0, 2) if box.y < y]
    if box := obstacles.place(candidates, limit=1.2):
        plan.labels.append(Label(text, box, paper.small, "ridge", level))
