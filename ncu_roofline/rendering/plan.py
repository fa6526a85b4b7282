"""Where all marks of a panel go on paper, as plain numbers: axes, lines, arrows to what lies beyond, and labels with room."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ncu_roofline.base.units import UNITS, format_value, range_text
from ncu_roofline.rendering import layout
from ncu_roofline.rendering.chart import (
    FOLLOWED,
    SEEN,
    Contours,
    Corner,
    Line,
    Mark,
    Panel,
    Place,
    Point,
    Region,
    Roof,
    Text,
)
from ncu_roofline.rendering.layout import Box, Measure, Obstacles, View
from ncu_roofline.rendering.paper import Paper
from ncu_roofline.rendering.style import LOOKS, MARKERS, Hue

Candidates = list[tuple[Box, float]]
ARROW = 4.4  # points
_OFF = 1.8  # points from a symbol to its text
_MIN_DECADES, _MAX_DECADES = 1.3, 10.0
_NEAR = 3.0  # decades that the axes may grow to show a region
_CLOSE, _MARGIN = 1.6, 1.3  # how far beyond what must be seen other points are followed, and from those to the edge
_MOST_CONTOURS = 9
_STRUCK = 0.5  # price of covering a roof beside its role's, where the text is no roof's
_CLEAR = 0.8  # price of a place that covers nothing, beside its dot
_ASIDE = 2.0  # price of a place aside that a name rather takes than one at another of its dots
_NAME, _BRIEFLY = 5.5, 5.6  # a name or its abbreviation further away, or over more, is better read in the legend
_THEIRS = 0.8  # price of a place beside the dot of another thing
_FAR = 0.45  # of the height of the axes: so far a callout may stand from its dot
_TIGHT = 0.1  # points around a label that has little room
_FREE = 0.01  # price of a place that covers nothing at all
_STEP = 10.0  # points between places that are tried for the legend
_MERGED = {"<": 9.0, ">": 9.0, "v": 28.0, "^": 28.0}  # points: arrows that are nearer are one, as their texts would meet
_INSET = 3.2  # points from the edge to the middle of its arrow


@dataclass(frozen=True)
class Role:
    """How a role takes part in placing labels: who comes first, what covering it costs, what a place may cost at most.

    ``way``: around its place, away from it with a line to it ("callout"), or below it; ``margin`` around it, ``gap`` beside its
    symbol, ``reach`` away in lines.  ``told``: what it says is told where it has no room for it; ``leader``: a line leads to
    what stands away from its place.
    """

    rank: int
    price: float = 0.0
    most: float = math.inf
    way: str = "around"
    margin: float = 0.6
    gap: float = _OFF
    reach: int = 2
    told: bool = False
    leader: bool = True


_ROOFS, _NAMES = 1, 6  # ranks
ROLES = {
    "edge": Role(0, 3.0, 5.0, reach=5),
    "overhead": Role(0, 1.0, 9.0),
    "roof": Role(1, 1.2, 3.0, margin=1.0, told=True),
    "theory": Role(1, 1.2, 3.0, margin=1.0, told=True),
    **dict.fromkeys(("burst", "peak"), Role(1)),
    "wall": Role(1, 1.2, 3.0, margin=1.0, told=True),
    **dict.fromkeys(("roof-upon", "theory-upon", "plain", "flawed"), Role(1, 1.2, 3.0, margin=1.0, told=True)),
    "balance": Role(1, 1.2, 9.0),
    "mix": Role(2, 0.6, 3.0, margin=1.0, told=True),
    "step": Role(3, 0.0, 3.2, "callout", 0.4),
    "speedup": Role(4, 0.0, 1.9, margin=0.4, reach=3),
    "loop-name": Role(5, 0.0, 8.0, "callout", gap=2.9),
    "pile": Role(5, 0.0, 4.0, reach=4, gap=4.0, leader=False),
    "name": Role(_NAMES, way="callout"),
    "number": Role(7, reach=3),
    "factor": Role(7, most=3.5, reach=1, gap=3.0),  # further away it would read as another symbol's
    "ridge": Role(8, 1.0, 1.2, "below", 1.0, leader=False),
    "corner": Role(9, most=1.2),
    "contour": Role(10, 0.1, 1.5),
    "dot": Role(11, 3.0),
    "loop": Role(11, 8.0),
    "slice": Role(11, 1.0),
    "ring": Role(11, 3.0),
    "gap": Role(11, 0.4),
    "joined": Role(11, 0.25),
    "sweep": Role(11, 0.6),
    "sweep-time": Role(11, 0.6),
    "trajectory": Role(11, 0.3),
    "move": Role(11, 1.6),
    "path": Role(11, 0.3),
}


@dataclass(frozen=True)
class Label:
    """A text in its box (points); ``leader`` is a line to the place that a label away from it belongs to."""

    text: str
    box: Box
    size: float
    mark: Mark
    leader: tuple[Place, Place] | None = None


@dataclass(frozen=True)
class Arrow:
    """An arrow at an edge, its middle in points: where it points (<, >, v or ^), for how many points it stands, and their
    values from complete to terse."""

    x: float
    y: float
    direction: str
    hue: Hue | None
    count: int
    texts: tuple[str, ...]


@dataclass
class Plan:
    """A panel on axes: what is drawn where, and what has no room.

    ``beyond``: regions outside of the axes with their numbers; ``outside``: how many points are there without their value;
    ``untold``: labels without room; ``missing``: the keys of texts without room, which are for the legend.
    """

    panel: Panel
    view: View
    lines: list[Line] = field(default_factory=list)
    areas: list[tuple[Hue | None, tuple[Place, ...]]] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    beyond: list[tuple[str, str]] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)
    outside: int = 0
    legend: Box | None = None


def plan(panel: Panel, width: float, height: float) -> Plan:
    """All but the labels of a panel whose axes are so wide and high (points)."""
    view = _view(panel, width, height)
    found = Plan(panel, view)
    for mark in panel.marks:
        if isinstance(mark, Point):
            if mark.role != "ridge" or view.holds(mark.x, mark.y):
                found.points.append(mark)
        elif isinstance(mark, Line):
            found.lines.append(mark)
        elif isinstance(mark, Roof):
            _roof(found, mark)
        elif isinstance(mark, Contours):
            found.lines += _contours(view, mark)
        elif isinstance(mark, Region) and mark.x > view.x0 and mark.y > view.y0:
            found.regions.append(mark)
        elif isinstance(mark, Region):
            sides = ((mark.y, panel.y.unit), (mark.x, panel.x.unit))
            found.beyond += [(mark.labels[0], format_value(value, unit, 3)) for value, unit in sides]
    found.arrows = _arrows(found)
    return found


def size_of(mark: Point, paper: Paper) -> float:
    """Points across its symbol."""
    return paper.scale * (mark.size or LOOKS[mark.role].size)


def _ends(view: View, mark: Roof, value: float) -> tuple[Place, Place] | None:
    """Where a roof of this value begins and ends inside the axes."""
    if mark.kind == "bandwidth":
        return layout.diagonal(view, value, mark.meets)
    if mark.kind == "wall":
        return ((value, view.y0), (value, view.y1)) if view.x0 <= value <= view.x1 else None
    span = layout.horizontal(view, value, mark.meets)
    return ((span[0], value), (span[1], value)) if span else None


def _roof(found: Plan, mark: Roof) -> None:
    """Its line and its band; a roof outside of the axes keeps its label, for which there will be no room."""
    view = found.view
    ends = _ends(view, mark, mark.value)
    if not ends:
        return
    found.lines.append(Line(role=mark.role, hue=mark.hue, places=ends))
    if mark.band:
        low, high = (
            _ends(view, mark, min(max(value, view.y0), view.y1) if mark.kind == "compute" else value) for value in mark.band
        )
        if mark.kind == "compute":
            low, high = low or (ends[0], (ends[1][0], view.y0)), high or (ends[0], (ends[1][0], view.y1))
        if low and high:
            found.areas.append((mark.hue, (*high, *reversed(low))))


def _view(panel: Panel, width: float, height: float) -> View:
    """Axes around the points; regions that are near count, too, but not one side of them: that would show none."""
    marks = [mark for mark in panel.marks if isinstance(mark, Point) and mark.role != "ridge"]
    if panel.shape == "roofline":
        return _roofline_view(panel, marks, width, height)
    points = [(mark.x, mark.y) for mark in marks]
    regions = [(mark.x, mark.y) for mark in panel.marks if isinstance(mark, Region)]
    if panel.shape == "square":
        low, high = _range([value for place in points for value in place], [value for place in regions for value in place])
        return View(10**low, 10**high, 10**low, 10**high, width, height)
    least = [min((math.log10(place[side]) for place in points), default=0.0) - _NEAR for side in (0, 1)]
    near = [place for place in regions if all(math.log10(value) >= low for value, low in zip(place, least, strict=True))]
    (x0, x1), (y0, y1) = (_range([place[side] for place in points], [place[side] for place in near]) for side in (0, 1))
    return View(10**x0, 10**x1, 10**y0, 10**y1, width, height)


def _roofline_view(panel: Panel, points: Sequence[Point], width: float, height: float) -> View:
    """Axes that show the roofs and the points that must be seen; others only where they are not far beyond."""
    roofs = [mark for mark in panel.marks if isinstance(mark, Roof)]
    peaks = [value for roof in roofs if roof.kind == "compute" for value in (roof.value, *(roof.band or ())[1:])]
    slopes, walls = ([roof.value for roof in roofs if roof.kind == kind] for kind in ("bandwidth", "wall"))
    seen = [*panel.seen, *((point.x, point.y) for point in points if point.extent == SEEN)]
    x0, x1, y0, y1 = layout.limits(seen, peaks, slopes, walls, panel.reach)
    followed = [point for point in points if point.extent >= FOLLOWED and y0 <= point.y <= y1]
    near = [point.x for point in followed if x0 / _CLOSE <= point.x <= x1 * _CLOSE]
    return View(min([x0, *(x / _MARGIN for x in near)]), max([x1, *(x * _MARGIN for x in near)]), y0, y1, width, height)


def _range(values: Sequence[float], corners: Sequence[float]) -> Place:
    """Limits in decades around the values, and down to the corners if they are near."""
    logs = [math.log10(value) for value in values] or [0.0]
    low, high = min(logs), max(logs)
    reached = [at for at in (math.log10(value) for value in corners) if low - _NEAR <= at]
    low, high = min([low, *(at - 0.3 for at in reached)]) - 0.35, max([high, *reached]) + 0.35
    lacking = max(_MIN_DECADES - (high - low), 0.0) / 2
    low, high = low - lacking, high + lacking
    return max(low, high - _MAX_DECADES), high


def _contours(view: View, mark: Contours) -> Iterator[Line]:
    if mark.of == "max":
        for value in _steps(max(view.x0, view.y0), min(view.x1, view.y1)):
            bend = ((view.x0, value), (value, value), (value, view.y0))
            yield Line(role=mark.role, labels=(format_value(value, mark.unit, 3),), places=bend)
        return
    for value in _steps(view.y0 / view.x1, view.y1 / view.x0):
        if ends := layout.diagonal(view, value, view.y1):
            yield Line(role=mark.role, labels=(f"{value:g} {UNITS[mark.unit].symbol}",), places=ends)


def _steps(low: float, high: float) -> list[float]:
    """Round numbers between two values: 1, 2, 5 in a narrow range, else powers of ten, some left out in a wide one."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    digits = (1, 2, 5) if last - first <= 3 else (1,)
    every = max(-(-(last - first) // _MOST_CONTOURS), 1)
    values = [digit * 10.0**exponent for exponent in range(first, last + 1) if exponent % every == 0 for digit in digits]
    return [value for value in values if low < value < high]


def _arrows(found: Plan) -> list[Arrow]:
    """The arrows of the points outside the axes; those of neighbours are one."""
    view, outside = found.view, list[tuple[str, float, float, Point]]()
    for point in found.points:
        if view.holds(point.x, point.y):
            continue
        if not view.x0 <= point.x <= view.x1:
            along = min(max(view.y(point.y), 0.0), view.height)
            outside.append(("<" if point.x < view.x0 else ">", along, point.x, point))
        else:
            outside.append(("v" if point.y < view.y0 else "^", view.x(point.x), point.y, point))
    groups: list[list[tuple[str, float, float, Point]]] = []
    for one in sorted(outside, key=lambda one: one[:2]):
        if groups and groups[-1][-1][0] == one[0] and one[1] - groups[-1][-1][1] < _MERGED[one[0]]:
            groups[-1].append(one)
        else:
            groups.append([one])
    return [_arrow(found, members) for members in groups]


def _arrow(found: Plan, members: Sequence[tuple[str, float, float, Point]]) -> Arrow:
    view, direction, first = found.view, members[0][0], members[0][3]
    values = sorted(value for _, _, value, _ in members)
    low, high = values[0], values[-1]
    if direction in "<>":  # an intensity has no prefix
        symbol = UNITS[found.panel.x.unit].symbol
        text = f"{_plain(low)} to {_plain(high)} {symbol}" if high > 1.05 * low else f"{_plain(high)} {symbol}"
    else:
        unit = found.panel.y.unit
        text = range_text(low, high, unit) if high > 1.05 * low else format_value(high, unit, 3)
    edge = (view.width if direction == ">" else view.height) - _INSET if direction in ">^" else _INSET
    along = sum(along for _, along, _, _ in members) / len(members)
    along = min(max(along, _INSET), (view.height if direction in "<>" else view.width) - _INSET)
    place = (edge, along) if direction in "<>" else (along, edge)
    of = {point.of for *_, point in members}
    counted = f"{len(members)} dots, {text}" if len(members) > 1 else text
    named = f"{first.of} {counted}".strip() if len(of) == 1 else counted
    return Arrow(*place, direction, first.hue, len(members), (named, counted, text))


def _plain(value: float) -> str:
    """Two digits: 0.0012, 130, 3.3e7."""
    text = f"{value:.2g}"
    return f"{float(text):.0f}" if 99 < value < 1e5 else text.replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")


@dataclass
class _Placer:
    """Finds room for the labels of a panel; ``names``: of all things with shapes, ``listed``: keys that the legend has."""

    found: Plan
    names: Sequence[str]
    listed: Collection[str]
    measure: Measure
    paper: Paper
    obstacles: Obstacles
    beside: dict[str, Obstacles] = field(default_factory=dict)  # the dots of others, by name

    def put(self, mark: Mark, text: str, places: Candidates, most: float, margin: float, dot: Place | None = None) -> bool:
        """Puts a text at the cheapest of some places, if one is worth it."""
        shy = self.others(mark.key) if mark.role == "name" and isinstance(mark, Text) else None
        box = self.obstacles.place(places, margin, most, dot, shy)
        if box:
            leader = layout.leader(*dot, box) if dot else None
            self.found.labels.append(Label(text, box, self.size(mark), mark, leader))
        return box is not None

    def size(self, mark: Mark) -> float:
        """Of its letters."""
        return self.paper.label if isinstance(mark, Roof) or mark.role == "name" else self.paper.small

    def others(self, name: str) -> Obstacles:
        """The places beside the dots of other things, where a name would be taken for theirs."""
        if name in self.beside:
            return self.beside[name]
        found, view = Obstacles(self.found.view), self.found.view
        height = self.measure("n", self.paper.label)[1]
        for point in self.found.points:
            if point.name != name and point.role == "dot" and view.holds(point.x, point.y):
                found.add(Box(view.x(point.x), view.y(point.y), 6 * height, 2 * height), _THEIRS)
        self.beside[name] = found
        return found

    def text(self, mark: Text, label: str, most: float) -> bool:
        """Puts a text beside the first of its places that has room."""
        role, view = ROLES[mark.role], self.found.view
        width, height = self.measure(label, self.size(mark))
        gap = self.paper.scale * LOOKS["dot"].size / 2 + role.gap
        for x, y in mark.places:
            if not view.holds(x, y):
                continue
            x, y = view.x(x), view.y(y)
            if role.way == "callout":
                places = layout.callouts(x, y, width, height, gap, _FAR * view.height)
            else:
                places = layout.around(x, y, width, height, gap, role.reach)
                places = [(box, price) for box, price in places if box.y < y or role.way != "below"]
            if self.put(mark, label, places, most, role.margin, (x, y) if role.leader else None):
                return True
            if mark.role == "step":  # elsewhere it would be another step's
                break
        return False

    def mark(self, mark: Mark) -> None:
        """Puts the label of a mark, as long a one as has room."""
        role = ROLES[mark.role]
        if isinstance(mark, Text):
            labels = mark.labels if mark.key not in self.listed else (mark.brief,)
            if not any(label and self.text(mark, label, role.most) for label in labels) and mark.key:
                self.found.missing.add(mark.key)
            return
        for index, label in enumerate(mark.labels):
            last = index == len(mark.labels) - 1
            places = self.places(mark, *self.measure(label, self.size(mark)))
            if isinstance(mark, Roof):
                put = self.put(mark, label, places, math.inf if last else role.most, role.margin)
                put = put or (index == len(mark.labels) - 2 and self.put(mark, label, places, role.most, _TIGHT))
            else:
                put = self.put(mark, label, places, role.most, role.margin)
                put = put or (last and role.told and self.put(mark, label, places, role.most, _TIGHT))
            if put:
                break
        terse = isinstance(mark, Roof) and mark.kind != "wall" and last and index
        if role.told and (not put or terse):
            self.found.untold.append(mark.labels[max(len(mark.labels) - 2, 0) if isinstance(mark, Roof) else 0])
        if not put and isinstance(mark, Line) and mark.role == "mix":  # without a text it would mean nothing
            self.found.lines = [line for line in self.found.lines if line.role != "mix" or line.beside != mark.beside]

    def places(self, mark: Mark, width: float, height: float) -> Candidates:
        """Where the label of a mark may stand, with the price of each place."""
        view = self.found.view
        if isinstance(mark, Roof):
            values = mark.beside or (mark.value,)
            if mark.kind == "bandwidth":
                return layout.along_diagonal(view, values, mark.meets, width, height)
            if mark.kind == "compute":
                return layout.along_horizontal(view, values, mark.meets, width, height)
            return layout.along_wall(view, mark.value, width, height) if view.x0 <= mark.value <= view.x1 else []
        if isinstance(mark, Region):
            return _around_region(view.x(mark.x), view.y(mark.y), width, height)
        if isinstance(mark, Corner):
            return _in_corner(view, mark.where, width, height)
        assert isinstance(mark, Line)
        if mark.role == "mix":
            (left, y), (right, _) = mark.places
            return _around_mark(view.x(max(left, view.x0)), view.x(min(right, view.x1)), view.y(y), width, height)
        return _along_contour(view, mark, width, height)

    def in_order(self, names: Sequence[Text]) -> None:
        """Names in the order that finds room for most: that of the marks first, or from one side."""
        across = sorted(names, key=lambda mark: mark.places[0][0])
        start, best = self.obstacles, None
        for first, order in ((True, names), (False, names), (False, across), (False, across[::-1])):
            trial, self.obstacles = replace(self.found, labels=[]), start.copy()
            into, done = replace(self, found=trial, obstacles=self.obstacles), set[str]()
            for passes in ((_CLEAR,), (_ASIDE, _NAME, _BRIEFLY)) if first else ((_CLEAR, _ASIDE, _NAME, _BRIEFLY),):
                for mark in order:
                    texts = ((mark.labels[-1] if most == _BRIEFLY else mark.labels[0], most) for most in passes)
                    if mark.key not in done and any(into.text(mark, text, most) for text, most in texts):
                        done.add(mark.key)
            missed = sum(1 + mark.weight for mark in names if mark.key not in done)
            if best is None or (missed, self.obstacles.spent) < best[0]:
                best = (missed, self.obstacles.spent), trial.labels, done, self.obstacles
            if (not missed and first) or len(self.names) > len(MARKERS):  # where numbers name the rest no order is worth it
                break
        if best:
            self.found.labels += best[1]
            self.found.missing |= {mark.key for mark in names} - best[2]
            self.obstacles = best[3]

    def numbers(self) -> Iterator[Text]:
        """One number for each thing without its name where there are more things than shapes."""
        named = {label.mark.key for label in self.found.labels if label.mark.role == "name" and isinstance(label.mark, Text)}
        for number, name in enumerate(self.names if len(self.names) > len(MARKERS) else (), 1):
            mine = [point for point in self.found.points if point.role == "dot" and point.name == name]
            if mine and name not in named:
                places = tuple((point.x, point.y) for point in sorted(mine, key=lambda point: -point.weight))
                yield Text(role="number", labels=(str(number),), places=places)


def label(
    found: Plan,
    names: Sequence[str],
    measure: Measure,
    paper: Paper,
    listed: Collection[str] = (),
    legends: Sequence[Place] = (),
    taken: Sequence[Box] = (),
) -> None:
    """Places the labels of a panel, those of the first rank first, and the legend, if one of its extents (points) has room.

    What is ``taken`` has no room for them.
    """
    view, obstacles, marks = found.view, Obstacles(found.view), found.panel.marks
    for line in found.lines:
        _avoid(obstacles, line, ROLES[line.role].price)
    for region in found.regions:
        right, top = view.x(region.x), view.y(region.y)
        obstacles.add(layout.segment(0, top, right, top), ROLES[region.role].price)
        obstacles.add(layout.segment(right, 0, right, top), ROLES[region.role].price)
    for point in found.points:
        if point.role != "ridge" and view.holds(point.x, point.y):
            size = size_of(point, paper) + 1
            obstacles.add(Box(view.x(point.x), view.y(point.y), size, size), ROLES[point.role].price)
    for arrow in found.arrows:
        obstacles.add(Box(arrow.x, arrow.y, ARROW + 1, ARROW + 1), ROLES["edge"].price)
    for box in taken:
        obstacles.add(box)
    placer = _Placer(found, names, listed, measure, paper, obstacles)
    for arrow in found.arrows:
        mark, role, gap = Text(role="edge", hue=arrow.hue, places=()), ROLES["edge"], ARROW * paper.scale / 2 + 1.5
        extents = ((text, measure(text, paper.small)) for text in arrow.texts)
        around = ((text, layout.around(arrow.x, arrow.y, *extent, gap, role.reach)) for text, extent in extents)
        if not any(placer.put(mark, text, places, role.most, role.margin) for text, places in around):
            found.outside += arrow.count
    lines = [line for line in found.lines if line.labels]
    others = [mark for mark in marks if isinstance(mark, (Text, Corner, Roof)) and mark.labels]
    asked = sorted([*found.regions, *lines, *others], key=lambda mark: ROLES[mark.role].rank)
    for each in asked:
        if ROLES[each.role].rank <= _ROOFS:
            placer.mark(each)
    for line in found.lines:
        if ROLES[line.role].rank == _ROOFS:
            _avoid(obstacles, line, _STRUCK)
    for each in asked:
        if _ROOFS < ROLES[each.role].rank < _NAMES:
            placer.mark(each)
    placer.in_order([each for each in asked if each.role == "name" and isinstance(each, Text) and each.key not in listed])
    found.legend = _room(placer.obstacles, view, legends)
    for each in [*placer.numbers(), *asked]:
        if ROLES[each.role].rank > _NAMES:
            placer.mark(each)


def _avoid(obstacles: Obstacles, line: Line, price: float) -> None:
    """Makes it so much dearer to cover a line."""
    view = obstacles.view
    inside = [(view.x(x), view.y(y)) for x, y in line.places] if price else []
    for (ax, ay), (bx, by) in pairwise(inside):
        obstacles.add(layout.segment(ax, ay, bx, by), price)


def _room(obstacles: Obstacles, view: View, extents: Sequence[Place]) -> Box | None:
    """A place for the legend that covers nothing, rather in a corner."""
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
            return box
    return None


def _along_contour(view: View, mark: Line, width: float, height: float) -> Candidates:
    """On the level part of a bend, from the left edge on; on a line rather near its upper end."""
    if len(mark.places) > 2:
        right, y = view.x(mark.places[1][0]), view.y(mark.places[1][1])
        count = int((right - width - 6) / 6) + 1
        return [(Box(3 + width / 2 + 6 * step, y, width, height), 0.05 * step) for step in range(count)]
    (ax, ay), (bx, by) = ((view.x(x), view.y(y)) for x, y in mark.places)
    length = math.hypot(bx - ax, by - ay)
    found = []
    for step in range(int((length - width - 8) / 5) + 1):
        part = (length - width / 2 - 4 - 5 * step) / length
        found.append((Box(ax + part * (bx - ax), ay + part * (by - ay), width, height, view.slope), 0.05 * step))
    return found


def _around_mark(left: float, right: float, y: float, width: float, height: float) -> Candidates:
    """Right of a short level line, above and below its ends, left of it."""
    away = height / 2 + 1.4
    places = [(right + 3 + width / 2, y, 0.0), (left - 3 - width / 2, y, 0.5)]
    for side, price in ((1, 0.1), (-1, 0.2)):
        ends = (right - width / 2, right + width / 2, left + width / 2, left - width / 2)
        places += [(x, y + side * away, price) for x in ends]
    return [(Box(x, at, width, height), price) for x, at, price in places]


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
