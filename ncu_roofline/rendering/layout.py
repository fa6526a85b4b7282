"""Geometry of a chart, without any drawing: limits, lines, ridge points, and labels that touch nothing.

Lengths are points (1/72 inch) inside the axes, x to the right and y upwards; data values are in base units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

_WALL_GAP = 4.2  # from a wall to its label: dots stand upon walls, and their halves go in between
_OFF_LINE = 1.2  # from a line to its label, beside what goes with the size of letters
_LEADER = 0.4  # price of what a leader crosses, in parts of what a text there would cost
_DOTTED = 2.0  # price of covering a leader
_TOUCHING = 1e-9  # boxes whose sides meet share no area
MAX_DECADES = 9.0  # more would leave nothing to see of the roofs
Measure = Callable[[str, float], tuple[float, float]]  # (text, size in points) -> width and height in points


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
        """Place of an intensity."""
        return self.width * math.log(value / self.x0) / math.log(self.x1 / self.x0)

    def y(self, value: float) -> float:
        """Place of a performance."""
        return self.height * math.log(value / self.y0) / math.log(self.y1 / self.y0)

    @property
    def slope(self) -> float:
        """Angle in degrees of a bandwidth roof as it is seen."""
        return math.degrees(math.atan2(self.height / math.log(self.y1 / self.y0), self.width / math.log(self.x1 / self.x0)))

    def holds(self, intensity: float, performance: float) -> bool:
        """Whether a dot lies inside."""
        return self.x0 <= intensity <= self.x1 and self.y0 <= performance <= self.y1


def limits(
    dots: Iterable[tuple[float, float]],
    peaks: Sequence[float],
    bandwidths: Sequence[float],
    walls: Sequence[float] = (),
    beyond: float = 5.0,
) -> tuple[float, float, float, float]:
    """x0, x1, y0, y1 that show all dots (intensity, performance), the ridge points and room for labels above the roofs.

    The axis goes on to ``beyond`` times the highest intensity.  Dots further than MAX_DECADES below the roofs stay outside:
    see ``View.holds``.
    """
    found = list(dots)
    ridges = [peak / bandwidth for peak in peaks for bandwidth in bandwidths]
    top = max([*peaks, *(performance for _, performance in found)], default=1e12)
    xs = [x for x, _ in found] + [max(peaks) / b for b in bandwidths if peaks] + list(walls)
    x1 = max([*xs, *ridges], default=100.0) * beyond
    x0 = min([*xs, *(ridge / 4 for ridge in ridges)], default=0.01) / 3
    x0 = max(x0, x1 / 10**MAX_DECADES)
    lowest = min((performance for _, performance in found), default=top / 100)
    # The slowest roof should rise through most of the chart.
    y0 = min(lowest / 3, top / 16, min(peaks, default=top) / 8)
    y0 = max(y0, top / 10**MAX_DECADES)
    return x0, x1, y0, top * max(2.2, (top / y0) ** 0.08)  # room for a label above the highest roof


def diagonal(view: View, bandwidth: float, top: float) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """Ends (intensity, performance) of a bandwidth roof up to the compute roof ``top``, inside the view; None if outside."""
    start = max(view.x0, view.y0 / bandwidth)
    end = min(view.x1, min(top, view.y1) / bandwidth)
    return ((start, start * bandwidth), (end, end * bandwidth)) if end > start else None


def horizontal(view: View, peak: float, bandwidth: float) -> tuple[float, float] | None:
    """First and last intensity of a compute roof, from the highest bandwidth roof to the right edge; None if outside."""
    if not view.y0 < peak < view.y1:
        return None
    start = max(view.x0, peak / bandwidth)
    return (start, view.x1) if start < view.x1 else None


@dataclass(frozen=True)
class Box:
    """A rectangle: centre, size, and the angle in degrees it is turned by."""

    x: float
    y: float
    width: float
    height: float
    angle: float = 0.0

    def corners(self) -> tuple[tuple[float, float], ...]:
        """The four corners in order."""
        cos, sin = math.cos(math.radians(self.angle)), math.sin(math.radians(self.angle))
        w, h = self.width / 2, self.height / 2
        return tuple((self.x + a * cos - b * sin, self.y + a * sin + b * cos) for a, b in ((-w, -h), (w, -h), (w, h), (-w, h)))

    def bounds(self) -> tuple[float, float, float, float]:
        """Left, bottom, right, top."""
        if self.angle == 0.0:
            return self.x - self.width / 2, self.y - self.height / 2, self.x + self.width / 2, self.y + self.height / 2
        xs, ys = zip(*self.corners(), strict=True)
        return min(xs), min(ys), max(xs), max(ys)

    @property
    def extent(self) -> tuple[float, float]:
        """Width and height."""
        return self.width, self.height

    def grown(self, by: float) -> Box:
        """The same box with a margin."""
        return Box(self.x, self.y, self.width + 2 * by, self.height + 2 * by, self.angle)


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


def segment(x0: float, y0: float, x1: float, y1: float, thickness: float = 1.0) -> Box:
    """A line as a thin box."""
    angle = math.degrees(math.atan2(y1 - y0, x1 - x0))
    return Box((x0 + x1) / 2, (y0 + y1) / 2, math.hypot(x1 - x0, y1 - y0), thickness, angle)


@dataclass
class Obstacles:
    """What is in the axes already.  Labels must not touch each other; dots and lines they avoid at a price."""

    view: View
    _boxes: list[Box] = field(default_factory=list)
    _costs: list[float] = field(default_factory=list)
    _bounds: np.ndarray | None = None
    spent: float = 0.0  # prices of all places that were taken

    def add(self, box: Box, cost: float = math.inf) -> None:
        """Puts an obstacle; touching it costs ``cost``."""
        self._boxes.append(box)
        self._costs.append(cost)
        self._bounds = None

    def copy(self) -> Obstacles:
        """The same ones, to try places with."""
        return Obstacles(self.view, [*self._boxes], [*self._costs], spent=self.spent)

    def take(self, other: Obstacles) -> None:
        """Has what another has, of the same axes."""
        self._boxes, self._costs, self._bounds, self.spent = other._boxes, other._costs, None, other.spent

    def cost(self, box: Box, enough: float = math.inf) -> float:
        """Price of putting a label at ``box``; infinite outside the axes or on another label.  Stops at ``enough``."""
        left, bottom, right, top = box.bounds()
        if left < 1 or bottom < 1 or right > self.view.width - 1 or top > self.view.height - 1:
            return math.inf
        total = 0.0
        for index in self._near(left, bottom, right, top):
            if total < enough and (self._boxes[index].angle == box.angle == 0.0 or overlap(box, self._boxes[index])):
                total += self._costs[index]
        return total

    def _near(self, left: float, bottom: float, right: float, top: float) -> list[int]:
        """Obstacles whose bounds meet these."""
        import numpy as np

        if not self._boxes:
            return []
        if self._bounds is None:
            self._bounds = np.array([box.bounds() for box in self._boxes])
        b = self._bounds
        return [int(i) for i in np.flatnonzero((b[:, 0] < right) & (b[:, 2] > left) & (b[:, 1] < top) & (b[:, 3] > bottom))]

    def place(
        self,
        candidates: Iterable[tuple[Box, float]],
        margin: float = 1.0,
        limit: float = math.inf,
        dot: tuple[float, float] | None = None,
        shy: Obstacles | None = None,
    ) -> Box | None:
        """The cheapest of (box, price of the place), which becomes an obstacle; so does its leader to a ``dot``.

        What needs a leader pays for what it covers of ``shy``, too, as it might seem to belong there.

        None if each touches another label or costs ``limit`` or more.
        """
        best, best_cost = None, limit
        for box, price in candidates:
            if price >= best_cost:
                continue
            cost = price + self.cost(box.grown(margin), best_cost - price)
            if dot and cost < best_cost and (line := leader(*dot, box)):
                cost += _LEADER * self.cost(segment(*line[0], *line[1], 2.0), (best_cost - cost) / _LEADER)
                cost += shy.cost(box) if shy else 0.0
            if cost < best_cost:
                best, best_cost = box, cost
        if best is not None:
            self.spent += best_cost
            self.add(best.grown(margin / 2))
            if dot and (line := leader(*dot, best)):
                self.add(segment(*line[0], *line[1]), _DOTTED)
        return best


def along_diagonal(view: View, bandwidths: Sequence[float], top: float, width: float, height: float) -> list[tuple[Box, float]]:
    """Places for a label of a bandwidth roof, turned with it: above the line, else below, rather in its lower half.

    Of several ``bandwidths`` (measured, theoretical) the label clears all.
    """
    angle, found = math.radians(view.slope), []
    for side, bandwidth, price in ((1, max(bandwidths), 0.0), (-1, min(bandwidths), 0.8)):
        ends = diagonal(view, bandwidth, top)
        if ends is None:
            continue
        (ax, ay), (bx, by) = [(view.x(x), view.y(y)) for x, y in ends]
        length = math.hypot(bx - ax, by - ay)
        away = side * (0.58 * height + _OFF_LINE)
        for step in range(int((length - width - 4) / 4) + 1):
            at = width / 2 + 2 + 4 * step
            x = ax + at * math.cos(angle) - away * math.sin(angle)
            y = ay + at * math.sin(angle) + away * math.cos(angle)
            found.append((Box(x, y, width, height, view.slope), price + abs(at / length - 0.3)))
    return found


def along_horizontal(
    view: View, peaks: Sequence[float], bandwidth: float, width: float, height: float
) -> list[tuple[Box, float]]:
    """Places for a label of a compute roof: above the line at its right end, else below, else further left.

    Of several ``peaks`` (measured, theoretical) the label clears all.
    """
    found = []
    for side, peak, price in ((1, max(peaks), 0.0), (-1, min(peaks), 0.6)):
        span = horizontal(view, peak, bandwidth)
        if span is None:
            continue
        left, right = view.x(span[0]), view.x(span[1]) - 2
        for step in range(int((right - left - width / 2) / 6) + 1):
            centre = right - width / 2 - 6 * step
            found.append(
                (Box(centre, view.y(peak) + side * (0.58 * height + _OFF_LINE), width, height), price + 12 * step / view.width)
            )
    return found


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places (highest first) at least ``gap`` apart, near to where they were, within ``low`` and ``high``.

    Where there is no room for that, the gaps are smaller.
    """
    if len(places) > 1:
        gap = min(gap, (high - low) / (len(places) - 1))
    groups: list[list[float]] = []  # neighbours that push each other stand evenly around the mean of what they wish
    for place in places:
        groups.append([place])
        while len(groups) > 1 and _foot(groups[-2], gap, low, high) < _foot(groups[-1], gap, low, high, top=True) + gap:
            last = groups.pop()
            groups[-1] += last
    return [_foot(group, gap, low, high, top=True) - index * gap for group in groups for index in range(len(group))]


def _foot(group: Sequence[float], gap: float, low: float, high: float, top: bool = False) -> float:
    """Where the lowest (or highest) of a group stands."""
    half = gap * (len(group) - 1) / 2
    middle = min(max(sum(group) / len(group), low + half), high - half)
    return middle + half if top else middle - half


def along_wall(view: View, intensity: float, width: float, height: float) -> list[tuple[Box, float]]:
    """Places for a label of a wall, upright: beside the line, from its foot upwards."""
    x, found = view.x(intensity), []
    for step in range(int(view.height / 6)):
        for side, price in ((-1, 0.0), (1, 0.4)):
            away = side * (height / 2 + _WALL_GAP)
            found.append((Box(x + away, 4 + width / 2 + 6 * step, width, height, 90.0), price + 0.02 * step))
    return found


def leader(x: float, y: float, box: Box) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """A line from near the dot at (x, y) to its label, None if the label is so close that it needs none."""
    end = min(max(x, box.x - box.width / 2), box.x + box.width / 2), min(max(y, box.y - box.height / 2), box.y + box.height / 2)
    length = math.hypot(end[0] - x, end[1] - y)
    if length < 6:
        return None
    return (x + (end[0] - x) * 3.2 / length, y + (end[1] - y) * 3.2 / length), end


def callouts(x: float, y: float, width: float, height: float, gap: float, far: float) -> list[tuple[Box, float]]:
    """Places for a name of a dot at (x, y): beside it, else up to ``far`` points away with a leader, rather near."""
    found = around(x, y, width, height, gap, 1)
    step = height + 1.5
    for row in range(-int(far / step), int(far / step) + 1):
        for shift in (1.0, 0.5, 0.0, -0.5, -1.0):
            for away in (gap, gap + 1.5 * height, gap + 4 * height, gap + 8 * height):
                side = (shift > 0) - (shift < 0)
                box = Box(x + shift * width / 2 + side * away, y + row * step, width, height)
                line = leader(x, y, box)
                if line and (abs(row) > 1 or side):
                    found.append((box, _AWAY + math.dist(*line) / far + 0.1 * (shift < 0)))
    return found


_AWAY = 0.9  # price of a place that needs a leader


def around(x: float, y: float, width: float, height: float, gap: float = 3.5, reach: int = 3) -> list[tuple[Box, float]]:
    """Places for a label of a dot at (x, y): right of it, left, above, below, at the corners, then further away."""
    w, h = width / 2, height / 2
    found = []
    for ring in range(reach):
        d = gap + ring * (height + 1)
        price = 0.9 * ring
        found += [
            (Box(x + d + w, y, width, height), price),
            (Box(x, y + d + h, width, height), price + 0.2),
            (Box(x, y - d - h, width, height), price + 0.25),
            (Box(x - d - w, y, width, height), price + 0.3),
        ]
        e = d * 0.75
        for sx in (1, -1):
            for sy in (1, -1):
                found.append((Box(x + sx * (e + w), y + sy * (e + h), width, height), price + 0.15 + 0.1 * (sx < 0)))
    return found
