"""Geometry of a chart, without any drawing: axes, lines, boxes, and what a label pays for its place.

Lengths are points (1/72 inch) inside the axes, x to the right and y upwards; data values are in base units.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

Place = tuple[float, float]
MAX_DECADES = 9.0  # more would leave nothing to see of the roofs
_LEADER = 0.4  # price of what a leader crosses, in parts of what a text there would cost
_CROSSED = 2.0  # price of covering a leader
_TOUCHING = 1e-9  # boxes whose sides meet share no area
_SHORT = 6.0  # points from a dot: a label that is nearer needs no leader
_AWAY = 0.9  # price of a place that needs one


@dataclass(frozen=True)
class View:
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

    def holds(self, x: float, y: float) -> bool:
        return self.x0 <= x <= self.x1 and self.y0 <= y <= self.y1


def limits(
    dots: Sequence[Place], peaks: Sequence[float], bandwidths: Sequence[float], walls: Sequence[float] = (), beyond: float = 5.0
) -> tuple[float, float, float, float]:
    """x0, x1, y0, y1 that show all dots (intensity, performance), the ridge points and room for labels above the roofs.

    The axis goes on to ``beyond`` times the highest intensity.  Dots further than MAX_DECADES below the roofs stay outside.
    """
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
    """Where a roof begins and ends inside the axes; None if it is outside.

    A bandwidth roof ends at the compute roof that it ``meets``, a compute roof begins at such a bandwidth roof.
    """
    if kind == "bandwidth":
        start, end = max(view.x0, view.y0 / value), min(view.x1, min(meets, view.y1) / value)
        return ((start, start * value), (end, end * value)) if end > start else None
    if kind == "wall":
        return ((value, view.y0), (value, view.y1)) if view.x0 <= value <= view.x1 else None
    start = max(view.x0, value / meets)
    return ((start, value), (view.x1, value)) if view.y0 < value < view.y1 and start < view.x1 else None


@dataclass(frozen=True)
class Box:
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


@dataclass
class Obstacles:
    """What is in the axes already.  Labels must not touch each other; dots and lines they avoid at a price.

    ``spent``: the prices of all places that were taken.
    """

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

    def copy(self) -> Obstacles:
        """The same ones, to try places with."""
        return Obstacles(self.view, [*self.boxes], [*self.costs], self.spent)

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
        """The cheapest of the places, which becomes an obstacle, and so does its leader to a ``dot``.

        What needs a leader pays for what it covers of ``shy``, too, as it might seem to belong there.  None if each place
        touches another label or costs ``limit`` or more.
        """
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


def leader(dot: Place, box: Box) -> Segment | None:
    """A line from near a dot to its label, None if the label is so close that it needs none."""
    (x, y), w, h = dot, box.width / 2, box.height / 2
    end = min(max(x, box.x - w), box.x + w), min(max(y, box.y - h), box.y + h)
    length = math.dist(dot, end)
    return None if length < _SHORT else ((x + (end[0] - x) * 3.2 / length, y + (end[1] - y) * 3.2 / length), end)


def along(
    line: Segment, width: float, height: float, *, off: float = 0.0, near: float = 0.0, per: float = 0.01, price: float = 0.0
) -> Candidates:
    """Places on a line, or so far ``off`` it (> 0: above), turned with it: rather ``near`` a part of its length.

    ``per``: what a point further away costs, beside the ``price`` of the side.
    """
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
    """Places (highest first) at least ``gap`` apart, near to where they were, within ``low`` and ``high``.

    Where there is no room for that, the gaps are smaller.
    """
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


def round_steps(low: float, high: float, most: int = 9) -> Iterable[float]:
    """Round numbers between two values: 1, 2, 5 in a narrow range, else powers of ten, some left out in a wide one."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    digits = (1, 2, 5) if last - first <= 3 else (1,)
    every = max(-(-(last - first) // most), 1)
    values = (digit * 10.0**exponent for exponent in range(first, last + 1) if exponent % every == 0 for digit in digits)
    return [value for value in values if low < value < high]
