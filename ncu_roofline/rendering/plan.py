"""Where all marks of a panel go on paper, as plain numbers: axes, lines, and labels with room.

Lengths are points (1/72 inch) inside the axes, x to the right and y upwards; data values are in base units.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ncu_roofline.base.groups import grouped
from ncu_roofline.base.units import UNITS, format_value, range_text
from ncu_roofline.rendering import chart
from ncu_roofline.rendering.chart import ROLES, Hue, Line, Mark, Panel, Place, Point, Region, Roof, Text
from ncu_roofline.rendering.paper import Pen

if TYPE_CHECKING:
    import numpy as np

_LEFT, _RIGHT, _DOWN, _UP = "\N{LEFTWARDS ARROW}", "\N{RIGHTWARDS ARROW}", "\N{DOWNWARDS ARROW}", "\N{UPWARDS ARROW}"
MAX_DECADES = 9.0  # more would leave nothing to see of the roofs
_MIN_DECADES, _MOST_DECADES = 1.3, 10.0  # of axes without roofs
_NEAR = 3.0  # decades that the axes may grow to show a region
_CLOSE, _MARGIN = 1.6, 1.3  # how far beyond what must be seen other points are followed, and from those to the edge
_LEADER = 0.4  # price of what a leader crosses, in parts of what a text there would cost
_CROSSED = 2.0  # price of covering a leader
_TOUCHING = 1e-9  # boxes whose sides meet share no area
_SHORT = 6.0  # points from a dot: a label that is nearer needs no leader
_AWAY = 0.9  # price of a place that needs one
_OFF_LINE, _OFF_WALL = 1.2, 4.2  # points from a line to its label; dots stand upon walls, and their halves go in between
_STRUCK = 0.5  # price of covering a roof beside its role's, where the text is no roof's
_CLEAR = 0.8  # price of a place that covers nothing, beside its dot
_ASIDE = 2.0  # price of a place aside that a name rather takes than one at another of its dots
_NAME, _BRIEFLY = 5.5, 5.6  # a name or its abbreviation further away, or over more, is better read in the legend
_THEIRS = 0.8  # price of a place beside the dot of another thing
_FAR = 0.45  # of the height of the axes: so far a callout may stand from its dot
_TIGHT = 0.1  # points around a label that has little room
_FREE = 0.01  # price of a place that covers nothing at all


class View(NamedTuple):
    """Logarithmic axes: limits in data values, size in points."""

    x0: float
    x1: float
    y0: float
    y1: float
    width: float
    height: float

    def x(self, value: float) -> float:
        return self.width * math.log(value / self.x0) / math.log(self.x1 / self.x0)

    def y(self, value: float) -> float:
        return self.height * math.log(value / self.y0) / math.log(self.y1 / self.y0)

    def at(self, place: Place) -> Place:
        """A place in data values as points."""
        return self.x(place[0]), self.y(place[1])

    def ends(self, place: Place) -> Place:
        """A place whose 0 and inf are the ends of the axes."""
        limits = (self.x0, self.x1), (self.y0, self.y1)
        x, y = ({0.0: low, math.inf: high}.get(value, value) for value, (low, high) in zip(place, limits, strict=True))
        return x, y

    def holds(self, x: float, y: float) -> bool:
        return self.x0 <= x <= self.x1 and self.y0 <= y <= self.y1


def limits(
    dots: Sequence[Place], peaks: Sequence[float], bandwidths: Sequence[float], walls: Sequence[float] = (), beyond: float = 5.0
) -> tuple[float, float, float, float]:
    """x0, x1, y0, y1 that show all dots (intensity, performance), the ridge points and room for labels above the roofs; the
    axis goes on to ``beyond`` times the highest intensity.  Dots further than MAX_DECADES below the roofs stay outside."""
    ridges = [peak / bandwidth for peak in peaks for bandwidth in bandwidths]
    top = max([*peaks, *(performance for _, performance in dots)], default=1e12)
    xs = [x for x, _ in dots] + [max(peaks) / b for b in bandwidths if peaks] + list(walls)
    x1 = max([*xs, *ridges], default=100.0) * beyond
    x0 = min([*xs, *(ridge / 4 for ridge in ridges)], default=0.01) / 3
    lowest = min((performance for _, performance in dots), default=top / 100)
    # The slowest roof should rise through most of the chart.
    y0 = max(min(lowest / 3, top / 16, min(peaks, default=top) / 8), top / 10**MAX_DECADES)
    return max(x0, x1 / 10**MAX_DECADES), x1, y0, top * max(2.2, (top / y0) ** 0.08)  # room above the highest roof


def roof_ends(view: View, kind: str, value: float, meets: float) -> tuple[Place, Place] | None:
    """Where a roof begins and ends inside the axes, None if it is outside: of bandwidth it ends at the compute roof that it
    ``meets``, of computing it begins at such a bandwidth roof."""
    if kind == "bandwidth":
        start, end = max(view.x0, view.y0 / value), min(view.x1, min(meets, view.y1) / value)
        return ((start, start * value), (end, end * value)) if end > start else None
    if kind == "wall":
        return ((value, view.y0), (value, view.y1)) if view.x0 <= value <= view.x1 else None
    start = max(view.x0, value / meets)
    return ((start, value), (view.x1, value)) if view.y0 < value < view.y1 and start < view.x1 else None


def view_of(panel: Panel, width: float, height: float) -> View:
    """Axes around roofs and points.  Of a roofline those that must be seen, others where they are not far beyond; else with
    regions that are near, but not one side of them: that would show none."""
    points = [mark for mark in panel.marks if isinstance(mark, Point) and mark.role != "ridge"]
    if panel.shape == "roofline":
        values: dict[str, list[float]] = {"compute": [], "bandwidth": [], "wall": []}
        for roof in panel.marks:
            if isinstance(roof, Roof) and roof.role != "mix":  # of kernels, whose dots are below it
                values[roof.kind] += [roof.value, *(roof.band[1:] if roof.band and roof.kind == "compute" else ())]
        seen = [*panel.seen, *((point.x, point.y) for point in points if point.extent == chart.SEEN)]
        x0, x1, y0, y1 = limits(seen, values["compute"], values["bandwidth"], values["wall"], panel.reach)
        followed = [point.x for point in points if point.extent >= chart.FOLLOWED and y0 <= point.y <= y1]
        near = [x for x in followed if x0 / _CLOSE <= x <= x1 * _CLOSE]
        return View(min([x0, *(x / _MARGIN for x in near)]), max([x1, *(x * _MARGIN for x in near)]), y0, y1, width, height)

    def around_all(values: Sequence[float], corners: Sequence[float]) -> Place:
        logs = [math.log10(value) for value in values] or [0.0]
        low, high = min(logs), max(logs)
        reached = [at for at in map(math.log10, corners) if low - _NEAR <= at]
        low, high = min([low, *(at - 0.3 for at in reached)]) - 0.35, max([high, *reached]) + 0.35
        lacking = max(_MIN_DECADES - (high - low), 0.0) / 2
        return 10 ** max(low - lacking, high + lacking - _MOST_DECADES), 10 ** (high + lacking)

    xs, ys = [mark.x for mark in points], [mark.y for mark in points]
    regions = [mark for mark in panel.marks if isinstance(mark, Region)]
    if panel.shape == "square":
        both = around_all(xs + ys, [value for mark in regions for value in (mark.x, mark.y)])
        return View(*both, *both, width, height)
    low_x, low_y = (min(values, default=1.0) / 10**_NEAR for values in (xs, ys))
    regions = [mark for mark in regions if mark.x >= low_x and mark.y >= low_y]
    across, upwards = around_all(xs, [mark.x for mark in regions]), around_all(ys, [mark.y for mark in regions])
    return View(*across, *upwards, width, height)


class Box(NamedTuple):
    """A rectangle: centre, size, and the angle in degrees it is turned by."""

    x: float
    y: float
    width: float
    height: float
    angle: float = 0.0

    def bounds(self) -> tuple[float, float, float, float]:
        """Left, bottom, right, top."""
        w, h = self.width / 2, self.height / 2
        if self.angle:
            cos, sin = abs(math.cos(math.radians(self.angle))), abs(math.sin(math.radians(self.angle)))
            w, h = w * cos + h * sin, w * sin + h * cos
        return self.x - w, self.y - h, self.x + w, self.y + h

    def grown(self, by: float) -> Box:
        """The same box with a margin."""
        return Box(self.x, self.y, self.width + 2 * by, self.height + 2 * by, self.angle)


Candidates = list[tuple[Box, float]]  # where a label may stand, with the price of each place
Segment = tuple[Place, Place]


def overlap(a: Box, b: Box) -> bool:
    """Whether two boxes share area: seen along each of their four sides, centres are nearer than the half extents together."""
    x, y, turn = b.x - a.x, b.y - a.y, math.radians(b.angle - a.angle)
    along, across = abs(math.cos(turn)), abs(math.sin(turn))
    for one, other in ((a, b), (b, a)):
        angle = math.radians(one.angle)
        cos, sin = math.cos(angle), math.sin(angle)
        if abs(x * cos + y * sin) >= (one.width + other.width * along + other.height * across) / 2 - _TOUCHING:
            return False
        if abs(y * cos - x * sin) >= (one.height + other.width * across + other.height * along) / 2 - _TOUCHING:
            return False
    return True


def segment(start: Place, end: Place, thickness: float = 1.0) -> Box:
    """A line as a thin box."""
    angle = math.degrees(math.atan2(end[1] - start[1], end[0] - start[0]))
    return Box((start[0] + end[0]) / 2, (start[1] + end[1]) / 2, math.dist(start, end), thickness, angle)


def leader(dot: Place, box: Box) -> Segment | None:
    """A line from near a dot to its label, None if the label is so close that it needs none."""
    (x, y), w, h = dot, box.width / 2, box.height / 2
    end = min(max(x, box.x - w), box.x + w), min(max(y, box.y - h), box.y + h)
    length = math.dist(dot, end)
    return None if length < _SHORT else ((x + (end[0] - x) * 3.2 / length, y + (end[1] - y) * 3.2 / length), end)


@dataclass
class Obstacles:
    """What is in the axes already.  Labels must not touch each other; dots and lines they avoid at a price; ``spent``: all
    prices of places that were taken."""

    view: View
    boxes: list[Box] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    spent: float = 0.0
    _bounds: np.ndarray | None = None

    def add(self, box: Box, cost: float = math.inf) -> None:
        """Puts an obstacle; touching it costs ``cost``."""
        self.boxes.append(box)
        self.costs.append(cost)
        self._bounds = None

    def cost(self, box: Box, enough: float = math.inf) -> float:
        """Price of putting a label at ``box``; infinite outside the axes or on another label.  Stops at ``enough``."""
        import numpy as np

        left, bottom, right, top = box.bounds()
        if left < 1 or bottom < 1 or right > self.view.width - 1 or top > self.view.height - 1:
            return math.inf
        if self._bounds is None:
            self._bounds = np.array([box.bounds() for box in self.boxes]).reshape(-1, 4)
        b, total = self._bounds, 0.0
        for index in np.flatnonzero((b[:, 0] < right) & (b[:, 2] > left) & (b[:, 1] < top) & (b[:, 3] > bottom)).tolist():
            if total < enough and (self.boxes[index].angle == box.angle == 0.0 or overlap(box, self.boxes[index])):
                total += self.costs[index]
        return total

    def place(
        self,
        candidates: Candidates,
        margin: float = 1.0,
        limit: float = math.inf,
        dot: Place | None = None,
        shy: Obstacles | None = None,
    ) -> tuple[Box, Segment | None] | None:
        """The cheapest of the places, which becomes an obstacle, and so does its leader to a ``dot``; None if each place
        touches another label or costs ``limit``.  What needs a leader pays for what it covers of ``shy``, too, as it might
        belong there."""
        best, lowest = None, limit
        for box, price in candidates:
            if price >= lowest:
                continue
            cost = price + self.cost(box.grown(margin), lowest - price)
            line = leader(dot, box) if dot and cost < lowest else None
            if line:
                cost += _LEADER * self.cost(segment(*line, 2.0), (lowest - cost) / _LEADER) + (shy.cost(box) if shy else 0.0)
            if cost < lowest:
                best, lowest = (box, line), cost
        if best:
            self.spent += lowest
            self.add(best[0].grown(margin / 2))
            if best[1]:
                self.add(segment(*best[1]), _CROSSED)
        return best


def along(
    line: Segment, width: float, height: float, *, off: float = 0.0, near: float = 0.0, per: float = 0.01, price: float = 0.0
) -> Candidates:
    """Places on a line, or so far ``off`` it (> 0: above), turned with it: rather ``near`` a part of its length; a point
    further away costs ``per``, beside the ``price`` of the side."""
    (ax, ay), (bx, by) = line
    length, turn = math.dist(*line), math.atan2(by - ay, bx - ax)
    cos, sin, angle = math.cos(turn), math.sin(turn), math.degrees(turn)
    first = width / 2 + 2
    best, found = min(max(near * length, first), max(length - first, first)), []
    for step in range(int((length - 2 * first) / 5) + 1):
        at = first + 5 * step if near < 0.5 else length - first - 5 * step
        box = Box(ax + at * cos - off * sin, ay + at * sin + off * cos, width, height, angle)
        found.append((box, price + per * abs(at - best)))
    return found


def around(dot: Place, width: float, height: float, gap: float = 3.5, reach: int = 3) -> Candidates:
    """Places for a label of a dot: right of it, left, above, below, at the corners, then further away."""
    (x, y), w, h = dot, width / 2, height / 2
    found = []
    for ring in range(reach):
        d, price = gap + ring * (height + 1), 0.9 * ring
        e = d * 0.75
        for right, up, more in ((d + w, 0.0, 0.0), (0.0, d + h, 0.2), (0.0, -d - h, 0.25), (-d - w, 0.0, 0.3)):
            found.append((Box(x + right, y + up, width, height), price + more))
        corners = ((x + sx * (e + w), y + sy * (e + h), 0.1 * (sx < 0)) for sx in (1, -1) for sy in (1, -1))
        found += [(Box(right, up, width, height), price + 0.15 + more) for right, up, more in corners]
    return found


def callouts(dot: Place, width: float, height: float, gap: float, far: float) -> Candidates:
    """Places for a name of a dot: beside it, else up to ``far`` points away with a leader, rather near."""
    found, step = around(dot, width, height, gap, 1), height + 1.5
    for row in range(-int(far / step), int(far / step) + 1):
        for shift in (1.0, 0.5, 0.0, -0.5, -1.0):
            side = (shift > 0) - (shift < 0)
            for away in (gap, gap + 1.5 * height, gap + 4 * height, gap + 8 * height):
                box = Box(dot[0] + shift * width / 2 + side * away, dot[1] + row * step, width, height)
                line = leader(dot, box)
                if line and (abs(row) > 1 or side):
                    found.append((box, _AWAY + math.dist(*line) / far + 0.1 * (shift < 0)))
    return found


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places (highest first) at least ``gap`` apart (less where there is no room), near to where they were, within limits."""
    gap = min(gap, (high - low) / max(len(places) - 1, 1))

    def top(group: Sequence[float]) -> float:
        half = gap * (len(group) - 1) / 2
        return min(max(sum(group) / len(group), low + half), high - half) + half

    groups: list[list[float]] = []  # neighbours that push each other stand evenly around the mean of what they wish
    for place in places:
        groups.append([place])
        while len(groups) > 1 and top(groups[-2]) - gap * len(groups[-2]) < top(groups[-1]):
            last = groups.pop()
            groups[-1] += last
    return [top(group) - index * gap for group in groups for index in range(len(group))]


class Label(NamedTuple):
    """A text in its box (points); ``leader`` is a line to the place that a label away from it belongs to."""

    text: str
    box: Box
    size: float
    mark: Mark
    leader: Segment | None = None


class Plan:
    """A panel on axes that are so wide and high (points): what is drawn where, and what has no room.

    Of things in ``names`` those that are ``listed`` are in the legend; that finds its place, too, if one of its extents
    (``legends``) has room.  What is ``taken`` has no room for labels.  ``outside``: how many points beyond the axes are without
    their value; ``untold``: labels without room; ``missing``: the keys of texts without room, which are for the legend."""

    def __init__(
        self,
        panel: Panel,
        width: float,
        height: float,
        pen: Pen,
        names: Sequence[str] = (),
        listed: Collection[str] = (),
        legends: Sequence[Place] = (),
        taken: Sequence[Box] = (),
    ) -> None:
        self.panel, self.pen, self.names, self.listed = panel, pen, names, listed
        self.view = view = view_of(panel, width, height)
        self.lines: list[Line] = []
        self.areas: list[tuple[Hue | None, tuple[Place, ...]]] = []
        self.regions: list[Region] = []
        self.labels: list[Label] = []
        self.untold: list[str] = []
        self.missing: set[str] = set()
        self.outside = 0
        self.points = [
            mark for mark in panel.marks if isinstance(mark, Point) and (mark.role != "ridge" or view.holds(mark.x, mark.y))
        ]
        for mark in panel.marks:
            self._add(mark)
        self.obstacles = Obstacles(view)
        for line in self.lines:
            self._avoid(line.places, ROLES[line.role].price)
        for point in self.points:
            if point.role != "ridge" and view.holds(point.x, point.y):
                size = self.size_of(point) + 1
                self.obstacles.add(Box(*view.at((point.x, point.y)), size, size), ROLES[point.role].price)
        for box in taken:
            self.obstacles.add(box)
        self._label(legends)

    def size_of(self, mark: Point) -> float:
        """Points across its symbol."""
        return self.pen.scale * (mark.size or ROLES[mark.role].size)

    def _add(self, mark: Mark) -> None:
        """Lines and areas.  A roof outside of the axes keeps its label, for which there will be no room."""
        view = self.view
        if isinstance(mark, Line):
            self.lines.append(mark)
        elif isinstance(mark, chart.Contours):
            self.lines += _contours(view, mark)
        elif isinstance(mark, Region) and mark.x > view.x0 and mark.y > view.y0:
            edge = ((view.x0, mark.y), (mark.x, mark.y), (mark.x, view.y0))
            self.regions.append(mark)
            self.areas.append((mark.hue, (*edge, (view.x0, view.y0))))
            self.lines.append(Line(role=mark.role, hue=mark.hue, places=edge))
        elif isinstance(mark, Roof) and (ends := roof_ends(view, mark.kind, mark.value, mark.meets)):
            self.lines.append(Line(role=mark.role, hue=mark.hue, places=ends))
            if mark.band and mark.kind == "compute":
                low, high = (min(max(value, view.y0), view.y1) for value in mark.band)
                top, bottom = (min(max(value / mark.meets, view.x0), view.x1) for value in (high, low))
                self.areas.append((mark.hue, ((top, high), (view.x1, high), (view.x1, low), (bottom, low))))
            elif mark.band:
                edges = [roof_ends(view, mark.kind, value, mark.meets) for value in mark.band]
                if edges[0] and edges[1]:
                    self.areas.append((mark.hue, (*edges[1], *reversed(edges[0]))))

    def _avoid(self, places: Sequence[Place], price: float) -> None:
        """Makes it so much dearer to cover a line."""
        for start, end in pairwise(map(self.view.at, places if price else ())):
            self.obstacles.add(segment(start, end), price)

    def _label(self, legends: Sequence[Place]) -> None:
        """Labels those of the lowest rank first, and between them the legend."""
        for text, number in _beyond(self.panel, self.view, self.points):
            if not any(self._put_text(text, label) for label in text.labels):
                self.outside += number
        lines = [line for line in self.lines if line.labels]
        others = [mark for mark in self.panel.marks if isinstance(mark, (Text, Roof)) and mark.labels]
        asked: list[Mark] = sorted([*self.regions, *lines, *others], key=lambda mark: ROLES[mark.role].rank)

        def put(above: int, below: float) -> None:
            for mark in asked:
                if above < ROLES[mark.role].rank < below:
                    self._mark(mark)

        put(-1, chart.OF_ROOFS + 1)
        for line in self.lines:
            if ROLES[line.role].rank == chart.OF_ROOFS:
                self._avoid(line.places, _STRUCK)
        put(chart.OF_ROOFS, chart.OF_NAMES)
        self._put_names([m for m in asked if isinstance(m, Text) and m.role == "name" and m.key not in self.listed])
        self.legend = self._room(legends)
        # One number for each thing without its name where there are more things than shapes.
        named = {label.mark.key for label in self.labels if isinstance(label.mark, Text) and label.mark.role == "name"}
        for number, name in enumerate(self.names if len(self.names) > len(chart.MARKERS) else (), 1):
            mine = [point for point in self.points if point.role == "dot" and point.name == name]
            if mine and name not in named:
                places = tuple((point.x, point.y) for point in sorted(mine, key=lambda point: -point.weight))
                self._mark(Text(role="number", labels=(str(number),), places=places))
        put(chart.OF_NAMES, math.inf)

    def _put(
        self,
        mark: Mark,
        text: str,
        places: Candidates,
        most: float | None = None,
        margin: float | None = None,
        dot: Place | None = None,
        shy: Obstacles | None = None,
    ) -> bool:
        """Puts a text at the cheapest of some places, if one is worth it."""
        role = ROLES[mark.role]
        margin, most = role.margin if margin is None else margin, role.most if most is None else most
        found = self.obstacles.place(places, margin, most, dot, shy)
        if found:
            self.labels.append(Label(text, found[0], self._letters(mark), mark, found[1]))
        return bool(found)

    def _letters(self, mark: Mark) -> float:
        return self.pen.label if isinstance(mark, Roof) or mark.role == "name" else self.pen.small

    def _mark(self, mark: Mark) -> None:
        """Puts the label of a mark, as long a one as has room."""
        role, put, labels = ROLES[mark.role], False, mark.labels
        if isinstance(mark, Text):
            labels = labels if mark.key not in self.listed else (mark.brief,)
            if not any(label and self._put_text(mark, label) for label in labels) and mark.key:
                self.missing.add(mark.key)
            return
        last = len(labels) - 1
        complete = max(last - 1, 0) if isinstance(mark, Roof) else 0  # the tersest label of a roof has no value
        for index, label in enumerate(labels):
            places = self._places(mark, *self.pen.measure(label, self._letters(mark)))
            put = self._put(mark, label, places, math.inf if isinstance(mark, Roof) and index == last else None)
            if not put and role.told and index == complete:
                put = self._put(mark, label, places, margin=_TIGHT)
            if put:
                break
        terse = isinstance(mark, Roof) and mark.kind != "wall" and 0 < last == index
        if role.told and (not put or terse):
            self.untold.append(labels[complete])

    def _put_text(self, mark: Text, label: str, most: float | None = None, shy: Obstacles | None = None) -> bool:
        """Puts a text beside the first of its places that has room."""
        role, (width, height) = ROLES[mark.role], self.pen.measure(label, self._letters(mark))
        gap = self.pen.scale * ROLES["dot"].size / 2 + role.gap
        for place in map(self.view.ends, mark.places):
            if self.view.holds(*place):
                dot = self.view.at(place)
                if role.way == "callout":
                    places = callouts(dot, width, height, gap, _FAR * self.view.height)
                elif role.way == "edge":  # along the upper or the lower one, rather at this end
                    inwards, right = (-1 if dot[1] else 1), float(dot[0] > 0)
                    heights = [dot[1] + inwards * (3 + height / 2 + 9 * step) for step in range(role.reach)]
                    lines = [((0.0, y), (self.view.width, y)) for y in heights]
                    of_lines = (along(line, width, height, near=right, price=0.15 * step) for step, line in enumerate(lines))
                    places = [place for of_line in of_lines for place in of_line]
                else:
                    places = around(dot, width, height, gap, role.reach)
                    places = [(box, price) for box, price in places if role.way != "below" or box.y < dot[1]]
                if self._put(mark, label, places, most, dot=dot if role.leader else None, shy=shy):
                    return True
                if mark.role == "step":  # elsewhere it would be another step's
                    break
        return False

    def _places(self, mark: Mark, width: float, height: float) -> Candidates:
        """Where the label of a mark may stand, with the price of each place."""
        view, off = self.view, 0.58 * height + _OFF_LINE
        if isinstance(mark, Roof):
            return self._beside_roof(mark, width, height, off)
        if isinstance(mark, Region):  # below its upper edge or above it, else right of it
            corner = view.at((mark.x, mark.y))
            edge = ((0.0, corner[1]), (max(corner[0], width + 4), corner[1]))
            upon = [along(edge, width, height, off=side * off, near=1, price=0.15 + 0.15 * side) for side in (-1, 1)]
            x, y = corner[0] + width / 2 + 2.5, corner[1] - height / 2
            beside = [(Box(x, y - down * (height + 1), width, height), 0.2 * (down + 1)) for down in range(4)]
            return [*upon[0], *upon[1], *beside]
        assert isinstance(mark, Line)
        ends = [view.at((min(max(x, view.x0), view.x1), y)) for x, y in mark.places]
        # Of a bend on its level part, from the left edge on.
        return along((ends[0], ends[1]), width, height, near=len(ends) == 2)

    def _beside_roof(self, mark: Roof, width: float, height: float, off: float) -> Candidates:
        """Above a roof, else below, clear of all values beside it: of bandwidth rather in its lower half, of computing at its
        right end, of a mix at the left one; upright beside a wall."""
        view, found = self.view, []
        values = mark.beside or (mark.value,)
        if mark.kind == "wall":
            off += _OFF_WALL - _OFF_LINE
            sides = [(off, mark.value, 0.0), (-off, mark.value, 0.4)]
        else:
            sides = [(off, max(values), 0.0), (-off, min(values), 0.8 if mark.kind == "bandwidth" else 0.6)]
        for away, value, price in sides:
            ends = roof_ends(view, mark.kind, value, mark.meets)
            if not ends:
                continue
            start, end = map(view.at, ends)
            if mark.kind == "bandwidth":
                per = 1 / max(math.dist(start, end), 1.0)
                found += along((start, end), width, height, off=away, near=0.3, per=per, price=price)
            elif mark.kind == "compute":  # a label may begin before its roof
                start, near = (max(start[0] - width / 2, 0.0), start[1]), 0 if mark.role == "mix" else 1
                found += along((start, end), width, height, off=away, near=near, per=2 / view.width, price=price)
            else:
                found += along((start, end), width, height, off=away, per=0.003, price=price)
        return found

    def _put_names(self, names: Sequence[Text]) -> None:
        """Names in the order that finds room for most: that of the marks first, or from one side.  A name pays for a place
        beside the dots of others, where it would be taken for theirs."""
        high, beside = self.pen.measure("n", self.pen.label)[1], dict[str, Obstacles]()
        dots = [point for point in self.points if point.role == "dot" and self.view.holds(point.x, point.y)]
        for mark in names:
            shy = beside[mark.key] = Obstacles(self.view)
            for point in dots:
                if point.name != mark.key:
                    shy.add(Box(*self.view.at((point.x, point.y)), 6 * high, 2 * high), _THEIRS)
        across = sorted(names, key=lambda mark: mark.places[0][0])
        start, labels, best = self.obstacles, self.labels, None
        for first, order in ((True, names), (False, names), (False, across), (False, across[::-1])):
            self.labels, done = [], set[str]()
            self.obstacles = Obstacles(self.view, [*start.boxes], [*start.costs], start.spent)
            for passes in ((_CLEAR,), (_ASIDE, _NAME, _BRIEFLY)) if first else ((_CLEAR, _ASIDE, _NAME, _BRIEFLY),):
                for mark in order:
                    texts = ((mark.labels[-1] if most == _BRIEFLY else mark.labels[0], most) for most in passes)
                    if mark.key not in done and any(self._put_text(mark, *text, beside[mark.key]) for text in texts):
                        done.add(mark.key)
            missed = sum(1 + mark.weight for mark in names if mark.key not in done)
            if best is None or (missed, self.obstacles.spent) < best[:2]:
                best = missed, self.obstacles.spent, self.labels, done, self.obstacles
            if (not missed and first) or len(self.names) > len(chart.MARKERS):  # numbers name the rest
                break
        assert best
        self.labels, self.obstacles = labels + best[2], best[4]
        self.missing |= {mark.key for mark in names} - best[3]

    def _room(self, extents: Sequence[Place]) -> Box | None:
        """A corner where the legend covers nothing."""
        for width, height in extents:
            right, top = self.view.width - 2 - width / 2, self.view.height - 2 - height / 2
            left, bottom = 2 + width / 2, 2 + height / 2
            for x, y in ((right, bottom), (left, top), (left, bottom), (right, top)):
                box = Box(x, y, width, height)
                if self.obstacles.cost(box.grown(0.5), _FREE) < _FREE:
                    self.obstacles.add(box)
                    return box
        return None


def _contours(view: View, mark: chart.Contours) -> Iterator[Line]:
    """At 1, 2, 5 in a narrow range, else at powers of ten, some left out in a wide one."""
    bends = mark.of == "max"
    low, high = (max(view.x0, view.y0), min(view.x1, view.y1)) if bends else (view.y0 / view.x1, view.y1 / view.x0)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    digits, every = (1, 2, 5) if last - first <= 3 else (1,), max(-(-(last - first) // 9), 1)
    for value in (digit * 10.0**exponent for exponent in range(first, last + 1) if exponent % every == 0 for digit in digits):
        if low < value < high and bends:
            bend = ((view.x0, value), (value, value), (value, view.y0))
            yield Line(role=mark.role, labels=(format_value(value, mark.unit, 3),), places=bend)
        elif low < value < high and (ends := roof_ends(view, "bandwidth", value, view.y1)):
            yield Line(role=mark.role, labels=(f"{value:g} {UNITS[mark.unit].symbol}",), places=ends)


def _beyond(panel: Panel, view: View, points: Sequence[Point]) -> Iterator[tuple[Text, int]]:
    """What is said at an edge of the points beyond it, and how many these are."""

    def arrow_to(point: Point) -> str:
        left, down, up = point.x < view.x0, point.y < view.y0, point.y > view.y1
        return _LEFT if left else _RIGHT if point.x > view.x1 else _DOWN if down else _UP if up else ""

    for arrow, members in grouped((arrow, point) for point in points if (arrow := arrow_to(point))).items():
        level = arrow in (_LEFT, _RIGHT)
        low, high = (end(point.x if level else point.y for point in members) for end in (min, max))
        if level:  # an intensity has no prefix
            text = " to ".join(map(_plain, (low, high) if high > 1.05 * low else (high,))) + f" {UNITS[panel.x.unit].symbol}"
        else:
            text = range_text(low, high, panel.y.unit) if high > 1.05 * low else format_value(high, panel.y.unit, 3)
        labels = (f"{arrow} {len(members)} dots, {text}", f"{arrow} {text}") if len(members) > 1 else (f"{arrow} {text}",)
        hues, first = {id(point.hue): point.hue for point in members}, members[0]
        place = min(max(first.x, view.x0), view.x1), min(max(first.y, view.y0), view.y1)
        yield Text(role="edge", labels=labels, hue=first.hue if len(hues) == 1 else None, places=(place,)), len(members)


def _plain(value: float) -> str:
    """Two digits: 0.0012, 130, 3.3e7."""
    text = f"{value:.2g}"
    return f"{float(text):.0f}" if 99 < value < 1e5 else text.replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")
