"""Where all marks of a panel go on paper, as plain numbers: axes, lines, arrows to what lies beyond, and labels with room."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from ncu_roofline.base.units import UNITS, format_value, range_text
from ncu_roofline.rendering import layout
from ncu_roofline.rendering.chart import FOLLOWED, SEEN, Contours, Corner, Line, Mark, Panel, Place, Point, Region, Roof, Text
from ncu_roofline.rendering.layout import Box, Candidates, Obstacles, Segment, View, along
from ncu_roofline.rendering.paper import Pen
from ncu_roofline.rendering.style import MARKERS, OF_NAMES, OF_ROOFS, ROLES, Hue

ARROW = 4.4  # points
_MIN_DECADES, _MAX_DECADES = 1.3, 10.0
_NEAR = 3.0  # decades that the axes may grow to show a region
_CLOSE, _MARGIN = 1.6, 1.3  # how far beyond what must be seen other points are followed, and from those to the edge
_OFF_LINE, _OFF_WALL = 1.2, 4.2  # points from a line to its label; dots stand upon walls, and their halves go in between
_STRUCK = 0.5  # price of covering a roof beside its role's, where the text is no roof's
_CLEAR = 0.8  # price of a place that covers nothing, beside its dot
_ASIDE = 2.0  # price of a place aside that a name rather takes than one at another of its dots
_NAME, _BRIEFLY = 5.5, 5.6  # a name or its abbreviation further away, or over more, is better read in the legend
_THEIRS = 0.8  # price of a place beside the dot of another thing
_FAR = 0.45  # of the height of the axes: so far a callout may stand from its dot
_TIGHT = 0.1  # points around a label that has little room
_FREE, _STEP = 0.01, 10.0  # price of a place that covers nothing at all; points between places that are tried for the legend
_MERGED = {"<": 9.0, ">": 9.0, "v": 28.0, "^": 28.0}  # points: arrows that are nearer are one, as their texts would meet
_INSET = 3.2  # points from the edge to the middle of its arrow


class Label(NamedTuple):
    """A text in its box (points); ``leader`` is a line to the place that a label away from it belongs to."""

    text: str
    box: Box
    size: float
    mark: Mark
    leader: Segment | None = None


class Arrow(NamedTuple):
    """An arrow at an edge, its middle in points: where it points (<, >, v or ^), for how many points it stands, and their
    values from complete to terse."""

    place: Place
    direction: str
    hue: Hue | None
    number: int
    texts: tuple[str, ...]


class Plan:
    """A panel on axes that are so wide and high (points): what is drawn where, and what has no room.

    Of things in ``names`` those that are ``listed`` are in the legend; that finds its place, too, if one of its extents
    (``legends``) has room.  What is ``taken`` has no room for labels.

    ``beyond``: regions outside of the axes with their numbers; ``outside``: how many points are there without their value;
    ``untold``: labels without room; ``missing``: the keys of texts without room, which are for the legend.
    """

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
        self.view = view_of(panel, width, height)
        self.lines: list[Line] = []
        self.areas: list[tuple[Hue | None, tuple[Place, ...]]] = []
        self.regions: list[Region] = []
        self.points: list[Point] = []
        self.beyond: list[tuple[str, str]] = []
        self.labels: list[Label] = []
        self.untold: list[str] = []
        self.missing: set[str] = set()
        self.outside = 0
        for mark in panel.marks:
            self._add(mark)
        self.arrows = [_arrow(panel, self.view, members) for members in _beyond(self.view, self.points)]
        self.obstacles = Obstacles(self.view)
        self._block()
        for box in taken:
            self.obstacles.add(box)
        self._label(legends)

    def size_of(self, mark: Point) -> float:
        """Points across its symbol."""
        return self.pen.scale * (mark.size or ROLES[mark.role].size)

    def _add(self, mark: Mark) -> None:
        view = self.view
        if isinstance(mark, Point):
            if mark.role != "ridge" or view.holds(mark.x, mark.y):
                self.points.append(mark)
        elif isinstance(mark, Line):
            self.lines.append(mark)
        elif isinstance(mark, Roof):
            self._add_roof(mark)
        elif isinstance(mark, Contours):
            self.lines += _contours(view, mark)
        elif isinstance(mark, Region) and mark.x > view.x0 and mark.y > view.y0:
            edge = ((view.x0, mark.y), (mark.x, mark.y), (mark.x, view.y0))
            self.regions.append(mark)
            self.areas.append((mark.hue, (*edge, (view.x0, view.y0))))
            self.lines.append(Line(role=mark.role, hue=mark.hue, places=edge))
        elif isinstance(mark, Region):
            sides = ((mark.y, self.panel.y.unit), (mark.x, self.panel.x.unit))
            self.beyond += [(mark.labels[0], format_value(value, unit, 3)) for value, unit in sides]

    def _add_roof(self, mark: Roof) -> None:
        """Its line and its band; a roof outside of the axes keeps its label, for which there will be no room."""
        view = self.view
        ends = layout.roof_ends(view, mark.kind, mark.value, mark.meets)
        if not ends:
            return
        self.lines.append(Line(role=mark.role, hue=mark.hue, places=ends))
        if mark.band and mark.kind == "compute":
            low, high = (min(max(value, view.y0), view.y1) for value in mark.band)
            starts = (min(max(value / mark.meets, view.x0), view.x1) for value in (high, low))
            (top, bottom), end = starts, view.x1
            self.areas.append((mark.hue, ((top, high), (end, high), (end, low), (bottom, low))))
        elif mark.band:
            edges = [layout.roof_ends(view, mark.kind, value, mark.meets) for value in mark.band]
            if edges[0] and edges[1]:
                self.areas.append((mark.hue, (*edges[1], *reversed(edges[0]))))

    def _block(self) -> None:
        """What is drawn already costs labels that cover it."""
        view, add = self.view, self.obstacles.add
        for line in self.lines:
            self._avoid(line.places, ROLES[line.role].price)
        for point in self.points:
            if point.role != "ridge" and view.holds(point.x, point.y):
                size = self.size_of(point) + 1
                add(Box(*view.at((point.x, point.y)), size, size), ROLES[point.role].price)
        for arrow in self.arrows:
            add(Box(*arrow.place, ARROW + 1, ARROW + 1), ROLES["edge"].price)

    def _avoid(self, places: Sequence[Place], price: float) -> None:
        """Makes it so much dearer to cover a line."""
        for start, end in pairwise(map(self.view.at, places if price else ())):
            self.obstacles.add(layout.segment(start, end), price)

    def _label(self, legends: Sequence[Place]) -> None:
        """Labels those of the lowest rank first, and between them the legend."""
        for arrow in self.arrows:
            edge, gap = Text(role="edge", hue=arrow.hue, places=()), ARROW * self.pen.scale / 2 + 1.5
            for text in arrow.texts:
                extent = self.pen.measure(text, self.pen.small)
                if self._put(edge, text, layout.around(arrow.place, *extent, gap, ROLES["edge"].reach)):
                    break
            else:
                self.outside += arrow.number
        lines = [line for line in self.lines if line.labels]
        others = [mark for mark in self.panel.marks if isinstance(mark, (Text, Corner, Roof)) and mark.labels]
        asked: list[Mark] = sorted([*self.regions, *lines, *others], key=lambda mark: ROLES[mark.role].rank)
        for mark in asked:
            if ROLES[mark.role].rank <= OF_ROOFS:
                self._mark(mark)
        for line in self.lines:
            if ROLES[line.role].rank == OF_ROOFS:
                self._avoid(line.places, _STRUCK)
        for mark in asked:
            if OF_ROOFS < ROLES[mark.role].rank < OF_NAMES:
                self._mark(mark)
        names = [mark for mark in asked if isinstance(mark, Text) and mark.role == "name"]
        self._put_names([mark for mark in names if mark.key not in self.listed])
        self.legend = self._room(legends)
        for mark in (*self._numbers(), *asked):
            if ROLES[mark.role].rank > OF_NAMES:
                self._mark(mark)

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
        if not put and isinstance(mark, Line) and mark.role == "mix":  # without a text it would mean nothing
            self.lines = [line for line in self.lines if line.role != "mix" or line.beside != mark.beside]

    def _put_text(self, mark: Text, label: str, most: float | None = None, shy: Obstacles | None = None) -> bool:
        """Puts a text beside the first of its places that has room."""
        role, (width, height) = ROLES[mark.role], self.pen.measure(label, self._letters(mark))
        gap = self.pen.scale * ROLES["dot"].size / 2 + role.gap
        for place in mark.places:
            if self.view.holds(*place):
                dot = self.view.at(place)
                if role.way == "callout":
                    places = layout.callouts(dot, width, height, gap, _FAR * self.view.height)
                else:
                    places = layout.around(dot, width, height, gap, role.reach)
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
        if isinstance(mark, Corner):
            upper, ups = mark.where == "upper left", [3 + height / 2 + 9 * step for step in range(6)]
            lines = [((0.0, y), (view.width, y)) for y in ([view.height - up for up in ups] if upper else ups)]
            places = (along(line, width, height, near=not upper, price=0.15 * step) for step, line in enumerate(lines))
            return [*chain.from_iterable(places)]
        if isinstance(mark, Region):  # below its upper edge or above it, else right of it
            corner = view.at((mark.x, mark.y))
            edge = ((0.0, corner[1]), (max(corner[0], width + 4), corner[1]))
            upon = [along(edge, width, height, off=side * off, near=1, price=0.15 + 0.15 * side) for side in (-1, 1)]
            x, y = corner[0] + width / 2 + 2.5, corner[1] - height / 2
            beside = [(Box(x, y - down * (height + 1), width, height), 0.2 * (down + 1)) for down in range(4)]
            return [*upon[0], *upon[1], *beside]
        assert isinstance(mark, Line)
        ends = [view.at((min(max(x, view.x0), view.x1), y)) for x, y in mark.places]
        if mark.role == "mix":
            (left, y), (right, _) = ends
            beside = [(Box(right + 3 + width / 2, y, width, height), 0.0), (Box(left - 3 - width / 2, y, width, height), 0.5)]
            centres = (right - width / 2, right + width / 2, left + width / 2, left - width / 2)
            return beside + [(Box(x, y + side * off, width, height), 0.15 - 0.05 * side) for side in (1, -1) for x in centres]
        if len(ends) > 2:  # the level part of a bend, from the left edge on
            return along((ends[0], ends[1]), width, height)
        return along((ends[0], ends[1]), width, height, near=1)

    def _beside_roof(self, mark: Roof, width: float, height: float, off: float) -> Candidates:
        """Above a roof, else below, clear of all values beside it: of bandwidth rather in its lower half, of computing at its
        right end; upright beside a wall."""
        view, found = self.view, []
        values = mark.beside or (mark.value,)
        if mark.kind == "wall":
            off += _OFF_WALL - _OFF_LINE
            sides = [(off, mark.value, 0.0), (-off, mark.value, 0.4)]
        else:
            sides = [(off, max(values), 0.0), (-off, min(values), 0.8 if mark.kind == "bandwidth" else 0.6)]
        for away, value, price in sides:
            ends = layout.roof_ends(view, mark.kind, value, mark.meets)
            if not ends:
                continue
            start, end = map(view.at, ends)
            if mark.kind == "bandwidth":
                per = 1 / max(math.dist(start, end), 1.0)
                found += along((start, end), width, height, off=away, near=0.3, per=per, price=price)
            elif mark.kind == "compute":  # a label may begin before its roof
                start = (max(start[0] - width / 2, 0.0), start[1])
                found += along((start, end), width, height, off=away, near=1, per=2 / view.width, price=price)
            else:
                found += along((start, end), width, height, off=away, per=0.003, price=price)
        return found

    def _put_names(self, names: Sequence[Text]) -> None:
        """Names in the order that finds room for most: that of the marks first, or from one side."""
        beside = {mark.key: self._of_others(mark.key) for mark in names}
        across = sorted(names, key=lambda mark: mark.places[0][0])
        start, labels, best = self.obstacles, self.labels, None
        for first, order in ((True, names), (False, names), (False, across), (False, across[::-1])):
            self.labels, self.obstacles, done = [], start.copy(), set[str]()
            for passes in ((_CLEAR,), (_ASIDE, _NAME, _BRIEFLY)) if first else ((_CLEAR, _ASIDE, _NAME, _BRIEFLY),):
                for mark in order:
                    texts = ((mark.labels[-1] if most == _BRIEFLY else mark.labels[0], most) for most in passes)
                    if mark.key not in done and any(self._put_text(mark, *text, beside[mark.key]) for text in texts):
                        done.add(mark.key)
            missed = sum(1 + mark.weight for mark in names if mark.key not in done)
            if best is None or (missed, self.obstacles.spent) < best[:2]:
                best = missed, self.obstacles.spent, self.labels, done, self.obstacles
            if (not missed and first) or len(self.names) > len(MARKERS):  # where numbers name the rest no order is worth it
                break
        assert best
        self.labels, self.obstacles = labels + best[2], best[4]
        self.missing |= {mark.key for mark in names} - best[3]

    def _of_others(self, name: str) -> Obstacles:
        """The places beside the dots of other things, where a name would be taken for theirs."""
        found, height = Obstacles(self.view), self.pen.measure("n", self.pen.label)[1]
        for point in self.points:
            if point.name != name and point.role == "dot" and self.view.holds(point.x, point.y):
                found.add(Box(*self.view.at((point.x, point.y)), 6 * height, 2 * height), _THEIRS)
        return found

    def _numbers(self) -> Iterator[Text]:
        """One number for each thing without its name where there are more things than shapes."""
        named = {label.mark.key for label in self.labels if label.mark.role == "name" and isinstance(label.mark, Text)}
        for number, name in enumerate(self.names if len(self.names) > len(MARKERS) else (), 1):
            mine = [point for point in self.points if point.role == "dot" and point.name == name]
            if mine and name not in named:
                places = tuple((point.x, point.y) for point in sorted(mine, key=lambda point: -point.weight))
                yield Text(role="number", labels=(str(number),), places=places)

    def _room(self, extents: Sequence[Place]) -> Box | None:
        """A place for the legend that covers nothing, rather in a corner."""
        view, candidates = self.view, []
        for index, (width, height) in enumerate(extents):
            rooms = (view.width - width - 4, view.height - height - 4)
            across, upwards = (range(int(max(room, 0) / _STEP) + 1) for room in rooms)
            for column in across:
                for row in upwards:
                    x, y = view.width - 2 - width / 2 - _STEP * column, 2 + height / 2 + _STEP * row
                    corner = min(column, len(across) - 1 - column) + min(row, len(upwards) - 1 - row)
                    candidates.append((index + 0.002 * corner + 0.0001 * (row + column), Box(x, y, width, height)))
        for _, box in sorted(candidates, key=lambda each: each[0]):
            if self.obstacles.cost(box.grown(0.5), _FREE) < _FREE:
                self.obstacles.add(box)
                return box
        return None


def view_of(panel: Panel, width: float, height: float) -> View:
    """Axes around the points; regions that are near count, too, but not one side of them: that would show none."""
    points = [mark for mark in panel.marks if isinstance(mark, Point) and mark.role != "ridge"]
    if panel.shape == "roofline":
        return _roofline_view(panel, points, width, height)
    xs, ys = [mark.x for mark in points], [mark.y for mark in points]
    regions = [mark for mark in panel.marks if isinstance(mark, Region)]
    if panel.shape == "square":
        both = _range(xs + ys, [value for mark in regions for value in (mark.x, mark.y)])
        return View(*both, *both, width, height)
    low_x, low_y = (min(values, default=1.0) / 10**_NEAR for values in (xs, ys))
    near = [mark for mark in regions if mark.x >= low_x and mark.y >= low_y]
    return View(*_range(xs, [mark.x for mark in near]), *_range(ys, [mark.y for mark in near]), width, height)


def _roofline_view(panel: Panel, points: Sequence[Point], width: float, height: float) -> View:
    """Axes that show the roofs and the points that must be seen; others only where they are not far beyond."""
    values: dict[str, list[float]] = {"compute": [], "bandwidth": [], "wall": []}
    for roof in panel.marks:
        if isinstance(roof, Roof):
            values[roof.kind] += [roof.value, *(roof.band[1:] if roof.band and roof.kind == "compute" else ())]
    seen = [*panel.seen, *((point.x, point.y) for point in points if point.extent == SEEN)]
    x0, x1, y0, y1 = layout.limits(seen, values["compute"], values["bandwidth"], values["wall"], panel.reach)
    followed = [point.x for point in points if point.extent >= FOLLOWED and y0 <= point.y <= y1]
    near = [x for x in followed if x0 / _CLOSE <= x <= x1 * _CLOSE]
    return View(min([x0, *(x / _MARGIN for x in near)]), max([x1, *(x * _MARGIN for x in near)]), y0, y1, width, height)


def _range(values: Sequence[float], corners: Sequence[float]) -> Place:
    """Limits around the values, and down to the corners if they are near."""
    logs = [math.log10(value) for value in values] or [0.0]
    low, high = min(logs), max(logs)
    reached = [at for at in map(math.log10, corners) if low - _NEAR <= at]
    low, high = min([low, *(at - 0.3 for at in reached)]) - 0.35, max([high, *reached]) + 0.35
    lacking = max(_MIN_DECADES - (high - low), 0.0) / 2
    return 10 ** max(low - lacking, high + lacking - _MAX_DECADES), 10 ** (high + lacking)


def _contours(view: View, mark: Contours) -> Iterator[Line]:
    if mark.of == "max":
        for value in layout.round_steps(max(view.x0, view.y0), min(view.x1, view.y1)):
            bend = ((view.x0, value), (value, value), (value, view.y0))
            yield Line(role=mark.role, labels=(format_value(value, mark.unit, 3),), places=bend)
        return
    for value in layout.round_steps(view.y0 / view.x1, view.y1 / view.x0):
        if ends := layout.roof_ends(view, "bandwidth", value, view.y1):
            yield Line(role=mark.role, labels=(f"{value:g} {UNITS[mark.unit].symbol}",), places=ends)


_Beyond = tuple[str, float, float, Point]  # where a point is beyond, its place along that edge (points), its value there


def _beyond(view: View, points: Sequence[Point]) -> list[list[_Beyond]]:
    """The points outside of the axes, neighbours together."""
    outside: list[_Beyond] = []
    for point in points:
        if not view.x0 <= point.x <= view.x1:
            side = "<" if point.x < view.x0 else ">"
            outside.append((side, min(max(view.y(point.y), 0.0), view.height), point.x, point))
        elif not view.y0 <= point.y <= view.y1:
            outside.append(("v" if point.y < view.y0 else "^", view.x(point.x), point.y, point))
    groups: list[list[_Beyond]] = []
    for each in sorted(outside, key=lambda each: each[:2]):
        if groups and groups[-1][-1][0] == each[0] and each[1] - groups[-1][-1][1] < _MERGED[each[0]]:
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


def _arrow(panel: Panel, view: View, members: Sequence[_Beyond]) -> Arrow:
    direction, first = members[0][0], members[0][3]
    level = direction in "<>"
    values = [value for _, _, value, _ in members]
    low, high = min(values), max(values)
    if level:  # an intensity has no prefix
        text = " to ".join(map(_plain, (low, high) if high > 1.05 * low else (high,))) + f" {UNITS[panel.x.unit].symbol}"
    else:
        text = range_text(low, high, panel.y.unit) if high > 1.05 * low else format_value(high, panel.y.unit, 3)
    across, up = (view.width, view.height) if level else (view.height, view.width)
    edge = across - _INSET if direction in ">^" else _INSET
    along_it = min(max(sum(at for _, at, _, _ in members) / len(members), _INSET), up - _INSET)
    counted = f"{len(members)} dots, {text}" if len(members) > 1 else text
    named = f"{first.of} {counted}".strip() if len({point.of for *_, point in members}) == 1 else counted
    place = (edge, along_it) if level else (along_it, edge)
    return Arrow(place, direction, first.hue, len(members), (named, counted, text))


def _plain(value: float) -> str:
    """Two digits: 0.0012, 130, 3.3e7."""
    text = f"{value:.2g}"
    return f"{float(text):.0f}" if 99 < value < 1e5 else text.replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")
