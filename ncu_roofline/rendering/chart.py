"""What a chart shows, said once as marks in data coordinates; and where all of it goes on paper, as plain numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ncu_roofline.base.units import UNITS, format_value
from ncu_roofline.rendering import layout
from ncu_roofline.rendering.layout import Box, Measure, Obstacles, View
from ncu_roofline.rendering.style import MARKERS, Hue

Place = tuple[float, float]
Candidates = list[tuple[Box, float]]
BEYOND = "{beyond}"
"""Among the notes of a chart: where those on what lies beyond its axes stand."""
_MIN_DECADES, _MAX_DECADES = 1.3, 10.0
_NEAR = 3.0  # decades that the axes may grow to show a region
_MOST_CONTOURS = 9
_MARKER = 7.0  # the widest filled shape; points


@dataclass(frozen=True)
class Axis:
    """One side of a panel: its unit, and its name from complete to terse.

    ``second``: the opposite side shows the values times a number, in another unit, under another name.
    """

    unit: str
    names: tuple[str, ...]
    second: tuple[float, str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Something in a panel: ``role`` is a key of ROLES and of what renderers know of looks, ``hue`` its own colour."""

    role: str
    label: str = ""
    hue: Hue | None = None


@dataclass(frozen=True, kw_only=True)
class Point(Mark):
    """A dot or a ring of the thing ``name``, whose shape it has; where names need numbers, that of most ``weight`` has it."""

    x: float
    y: float
    name: str
    weight: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Text(Mark):
    """A label around a place."""

    x: float
    y: float


@dataclass(frozen=True, kw_only=True)
class Line(Mark):
    """A line through places, with its label beside it."""

    places: tuple[Place, ...]


@dataclass(frozen=True, kw_only=True)
class Roof(Mark):
    """All places whose y is ``slope`` times their x."""

    slope: float


@dataclass(frozen=True, kw_only=True)
class Contours(Mark):
    """Lines at round values of "y/x" or "max" (of x and y), which depend on the axes."""

    of: str
    unit: str


@dataclass(frozen=True, kw_only=True)
class Region(Mark):
    """All that is below and left of a corner; the axes reach to one that is near, and another is told in words."""

    x: float
    y: float


@dataclass(frozen=True, kw_only=True)
class Corner(Mark):
    """The name of what is around the "upper left" or "lower right" corner of the axes."""

    where: str


@dataclass(frozen=True)
class Panel:
    """Marks under two logarithmic axes; with ``equal`` over one range."""

    title: str
    x: Axis
    y: Axis
    marks: Sequence[Mark]
    equal: bool = False


@dataclass(frozen=True)
class Key:
    """An entry of the legend: left out where nothing of its role is drawn."""

    label: str
    role: str
    hue: Hue | None = None


@dataclass(frozen=True)
class Chart:
    """Rows of panels (one alone is as wide as the paper), the legend, and the names of things with shapes of their own.

    ``names``: what the legend says of each thing by its name, the first one first.  ``empty``: what stands there else.
    """

    title: str
    sentences: Sequence[str]
    facts: str
    rows: Sequence[Sequence[Panel]]
    keys: Sequence[Key]
    names: Mapping[str, str]
    notes: Sequence[str]
    empty: str = ""


@dataclass(frozen=True)
class Role:
    """How a role takes part in placing labels: who comes first, what covering it costs, what a place may cost at most.

    ``gap`` and ``reach``: how far its labels stand from their place.
    """

    rank: int
    price: float = 0.0
    most: float = 9.0
    gap: float = 3.6
    reach: int = 2


ROLES = {
    "overhead": Role(0, 1.0),
    "balance": Role(1, 1.2),
    "step": Role(2, most=3.5),
    "number": Role(3, most=3.5),
    "factor": Role(4, most=3.5, gap=5.0, reach=1),  # further away it would read as another symbol's
    "corner": Role(5, most=1.2),
    "contour": Role(6, 0.1, 1.5),
    "dot": Role(7, 4.0),
    "ring": Role(7, 4.0),
    "gap": Role(7, 0.4),
    "sweep": Role(7, 0.6),
    "sweep-time": Role(7, 0.6),
}


@dataclass(frozen=True)
class Label:
    """A text in its box (points)."""

    text: str
    box: Box
    mark: Mark


@dataclass
class Plan:
    """A panel on axes: contours and roofs as lines, what is drawn and what of it lies beyond the axes, and the labels."""

    panel: Panel
    view: View
    lines: list[Line] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    beyond: list[tuple[str, str]] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)


def plan(panel: Panel, width: float, height: float) -> Plan:
    """All but the labels of a panel whose axes are so wide and high (points)."""
    view = _view(panel, width, height)
    found = Plan(panel, view)
    for mark in panel.marks:
        if isinstance(mark, Point):
            found.points.append(mark)
        elif isinstance(mark, Line):
            found.lines.append(mark)
        elif isinstance(mark, Roof):
            if ends := layout.diagonal(view, mark.slope, view.y1):
                found.lines.append(Line(role=mark.role, label=mark.label, hue=mark.hue, places=ends))
        elif isinstance(mark, Contours):
            found.lines += _contours(view, mark)
        elif isinstance(mark, Region) and mark.x > view.x0 and mark.y > view.y0:
            found.regions.append(mark)
        elif isinstance(mark, Region):
            sides = ((mark.y, panel.y.unit), (mark.x, panel.x.unit))
            found.beyond += [(mark.label, format_value(value, unit, 3)) for value, unit in sides]
    return found


def label(found: Plan, names: Sequence[str], measure: Measure, size: float) -> None:
    """Places the labels of a panel, those of the first rank first; a text without room is left out."""
    view, obstacles = found.view, Obstacles(found.view)
    for point in found.points:
        if view.holds(point.x, point.y):
            obstacles.add(Box(view.x(point.x), view.y(point.y), _MARKER, _MARKER), ROLES[point.role].price)
    for line in found.lines:
        for (ax, ay), (bx, by) in zip(line.places, line.places[1:], strict=False):
            obstacles.add(layout.segment(view.x(ax), view.y(ay), view.x(bx), view.y(by)), ROLES[line.role].price)
    for region in found.regions:
        right, top = view.x(region.x), view.y(region.y)
        obstacles.add(layout.segment(0, top, right, top), ROLES[region.role].price)
        obstacles.add(layout.segment(right, 0, right, top), ROLES[region.role].price)
    others = [mark for mark in found.panel.marks if isinstance(mark, (Text, Corner))]
    marks: list[Mark] = [*found.regions, *found.lines, *others, *_numbers(found, names)]
    for mark in sorted((mark for mark in marks if mark.label), key=lambda mark: ROLES[mark.role].rank):
        places = _places(view, mark, *measure(mark.label, size))
        if box := obstacles.place(places, margin=0.6, limit=ROLES[mark.role].most):
            found.labels.append(Label(mark.label, box, mark))


def _numbers(found: Plan, names: Sequence[str]) -> Iterator[Text]:
    """One number per name where there are more names than shapes."""
    for number, name in enumerate(names if len(names) > len(MARKERS) else (), 1):
        mine = [point for point in found.points if point.role == "dot" and point.name == name]
        if mine:
            heaviest = max(mine, key=lambda point: point.weight)
            yield Text(role="number", label=str(number), x=heaviest.x, y=heaviest.y)


def _places(view: View, mark: Mark, width: float, height: float) -> Candidates:
    """Where the label of a mark may stand, with the price of each place."""
    if isinstance(mark, Text):
        role = ROLES[mark.role]
        here = view.holds(mark.x, mark.y)
        return layout.around(view.x(mark.x), view.y(mark.y), width, height, role.gap, role.reach) if here else []
    if isinstance(mark, Region):
        return _around_region(view.x(mark.x), view.y(mark.y), width, height)
    if isinstance(mark, Corner):
        return _in_corner(view, mark.where, width, height)
    assert isinstance(mark, Line)
    if mark.role != "contour":
        (x, y), *_ = mark.places
        return layout.along_diagonal(view, [y / x], view.y1, width, height)
    if len(mark.places) > 2:  # on the level part of a bend, from the left edge on
        right, y = view.x(mark.places[1][0]), view.y(mark.places[1][1])
        count = int((right - width - 6) / 6) + 1
        return [(Box(3 + width / 2 + 6 * step, y, width, height), 0.05 * step) for step in range(count)]
    (ax, ay), (bx, by) = ((view.x(x), view.y(y)) for x, y in mark.places)  # on the line, rather near its upper end
    length = math.hypot(bx - ax, by - ay)
    found = []
    for step in range(int((length - width - 8) / 5) + 1):
        part = (length - width / 2 - 4 - 5 * step) / length
        found.append((Box(ax + part * (bx - ax), ay + part * (by - ay), width, height, view.slope), 0.05 * step))
    return found


def _around_region(right: float, top: float, width: float, height: float) -> Candidates:
    """Below the upper edge of a region, above it, or right of it."""
    found = []
    for step in range(int(max(right - width, 0) / 6) + 1):
        centre = max(right - width / 2 - 6 * step, width / 2 + 2)
        found.append((Box(centre, top - height / 2 - 1.5, width, height), 0.05 * step))
        found.append((Box(centre, top + height / 2 + 1.5, width, height), 0.3 + 0.05 * step))
    beside = [(Box(right + width / 2 + 2.5, top - height / 2 - down * (height + 1), width, height), down) for down in range(4)]
    return found + [(box, 0.2 + 0.2 * down) for box, down in beside]


def _in_corner(view: View, where: str, width: float, height: float) -> Candidates:
    found = []
    upper = where == "upper left"
    for step in range(6):
        away = 3 + 9 * step
        for x, y, price in ((4.0, float(away), 0.0), (4.0 + 3 * away, 3.0, 0.1)):
            right, top = x + width / 2, y + height / 2
            across, up = (right, view.height - top) if upper else (view.width - right, top)
            found.append((Box(across, up, width, height), price + 0.15 * step))
    return found


def _contours(view: View, mark: Contours) -> Iterator[Line]:
    if mark.of == "max":
        for value in _steps(max(view.x0, view.y0), min(view.x1, view.y1)):
            bend = ((view.x0, value), (value, value), (value, view.y0))
            yield Line(role=mark.role, label=format_value(value, mark.unit, 3), places=bend)
        return
    for value in _steps(view.y0 / view.x1, view.y1 / view.x0):
        if ends := layout.diagonal(view, value, view.y1):
            yield Line(role=mark.role, label=f"{value:g} {UNITS[mark.unit].symbol}", places=ends)


def _view(panel: Panel, width: float, height: float) -> View:
    """Axes around the points; regions that are near count, too, but not one side of them: that would show none."""
    points = [(mark.x, mark.y) for mark in panel.marks if isinstance(mark, Point)]
    regions = [(mark.x, mark.y) for mark in panel.marks if isinstance(mark, Region)]
    if panel.equal:
        low, high = _range([value for place in points for value in place], [value for place in regions for value in place])
        return View(10**low, 10**high, 10**low, 10**high, width, height)
    least = [min((math.log10(place[side]) for place in points), default=0.0) - _NEAR for side in (0, 1)]
    near = [place for place in regions if all(math.log10(value) >= low for value, low in zip(place, least, strict=True))]
    (x0, x1), (y0, y1) = (_range([place[side] for place in points], [place[side] for place in near]) for side in (0, 1))
    return View(10**x0, 10**x1, 10**y0, 10**y1, width, height)


def _range(values: Sequence[float], corners: Sequence[float]) -> Place:
    """Limits in decades around the values, and down to the corners if they are near."""
    logs = [math.log10(value) for value in values] or [0.0]
    low, high = min(logs), max(logs)
    reached = [at for at in (math.log10(value) for value in corners) if low - _NEAR <= at]
    low, high = min([low, *(at - 0.3 for at in reached)]) - 0.35, max([high, *reached]) + 0.35
    lacking = max(_MIN_DECADES - (high - low), 0.0) / 2
    low, high = low - lacking, high + lacking
    return max(low, high - _MAX_DECADES), high


def _steps(low: float, high: float) -> list[float]:
    """Round numbers between two values: 1, 2, 5 in a narrow range, else powers of ten, some left out in a wide one."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    digits = (1, 2, 5) if last - first <= 3 else (1,)
    every = max(-(-(last - first) // _MOST_CONTOURS), 1)
    values = [digit * 10.0**exponent for exponent in range(first, last + 1) if exponent % every == 0 for digit in digits]
    return [value for value in values if low < value < high]
