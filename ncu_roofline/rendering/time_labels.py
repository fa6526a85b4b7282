"""Texts in the charts of the time view: each where it touches nothing, the weightiest first."""

from __future__ import annotations

from collections.abc import Iterator

from ncu_roofline.rendering import layout
from ncu_roofline.rendering.layout import Box, Obstacles, View
from ncu_roofline.rendering.plan import Label, Measure
from ncu_roofline.rendering.style import BOUNDS, MARKERS
from ncu_roofline.rendering.time_captions import factor_text
from ncu_roofline.rendering.time_chart import TimeChart
from ncu_roofline.rendering.time_planes import Curve, Mark, Plane

LINE, SMALL = 6.0, 5.2  # font sizes
_MARKER = 7.0  # the widest filled shape; points
_FACTORS = 12  # up to so many symbols the inefficiency is written at each
_STEPS = 3  # sweeps whose steps are all named; of more only the first and the last are

Candidates = list[tuple[Box, float]]


def labels(plane: Plane, data: TimeChart, measure: Measure) -> list[Label]:
    """The labels of one chart; a text without room is left out."""
    obstacles = _obstacles(plane)
    found = []
    for text, size, role, places, most in _texts(plane, data, measure):
        if box := obstacles.place(places, margin=0.6, limit=most):
            found.append(Label(text, box, size, role))
    return found


Text = tuple[str, float, str, Candidates, float]  # text, font size, role, places, highest price to pay


def _texts(plane: Plane, data: TimeChart, measure: Measure) -> Iterator[Text]:
    for (x, y), text in plane.boxes:
        yield text, LINE, "overhead", _around_box(plane.view, x, y, *measure(text, LINE)), 9.0
    for curve in plane.curves:
        if curve.role == "balance":
            places = layout.along_diagonal(plane.view, [_slope(curve)], plane.view.y1, *measure(curve.text, LINE))
            yield curve.text, LINE, "balance", places, 9.0
    yield from _marks(plane, data, measure)
    for side in ("compute", "memory"):
        text = BOUNDS[side].label
        yield text, LINE, f"region-{side}", _corner(plane.view, side, *measure(text, LINE)), 1.2
    for curve in plane.curves:
        if curve.role == "iso":
            extent = measure(curve.text, SMALL)
            bent = len(curve.places) > 2
            places = _on_bend(plane.view, curve, *extent) if bent else _on_diagonal(plane.view, curve, *extent)
            yield curve.text, SMALL, "iso", places, 1.5


def _obstacles(plane: Plane) -> Obstacles:
    view, obstacles = plane.view, Obstacles(plane.view)
    for mark in plane.marks:
        if view.holds(*mark.place):
            obstacles.add(Box(view.x(mark.place[0]), view.y(mark.place[1]), _MARKER, _MARKER), 4.0)
    for curve in plane.curves:
        price = {"iso": 0.1, "balance": 1.2, "gap": 0.4}.get(curve.role, 0.6)
        for (ax, ay), (bx, by) in zip(curve.places, curve.places[1:], strict=False):
            obstacles.add(layout.segment(view.x(ax), view.y(ay), view.x(bx), view.y(by)), price)
    for (x, y), _ in plane.boxes:
        right, top = view.x(x), view.y(y)
        obstacles.add(layout.segment(0, top, right, top), 1.0)
        obstacles.add(layout.segment(right, 0, right, top), 1.0)
    return obstacles


def _marks(plane: Plane, data: TimeChart, measure: Measure) -> Iterator[Text]:
    """Steps of sweeps, numbers of kernels beyond the markers, and in the 4D chart the inefficiency of few symbols."""
    view = plane.view
    for mark, text, role in [*_steps(plane), *_numbers(plane, data), *_factors(plane)]:
        if view.holds(*mark.place):
            size = SMALL
            reach = 1 if role == "factor" else 2  # further away it would read as another symbol's
            places = layout.around(
                view.x(mark.place[0]), view.y(mark.place[1]), *measure(text, size), 3.6 if reach > 1 else 5.0, reach
            )
            yield text, size, role, places, 3.5


def _steps(plane: Plane) -> Iterator[tuple[Mark, str, str]]:
    sweeps: dict[str, list[Mark]] = {}
    for mark in plane.marks:
        if mark.filled and mark.symbol.step >= 0 and mark.symbol.step_label:
            sweeps.setdefault(mark.symbol.kernel, []).append(mark)
    for marks in sweeps.values():
        marks.sort(key=lambda mark: mark.symbol.step)
        for mark in marks if len(sweeps) <= _STEPS else (marks[0], marks[-1]):
            yield mark, mark.symbol.step_label, "step"


def _numbers(plane: Plane, data: TimeChart) -> Iterator[tuple[Mark, str, str]]:
    """One number per kernel, at its longest symbol."""
    if len(data.kernels) <= len(MARKERS):
        return
    for index, kernel in enumerate(data.kernels):
        mine = [mark for mark in plane.marks if mark.filled and mark.symbol.kernel == kernel.label]
        if mine:
            yield max(mine, key=lambda mark: mark.symbol.seconds), str(index + 1), "number"


def _factors(plane: Plane) -> Iterator[tuple[Mark, str, str]]:
    opened = [mark for mark in plane.marks if not mark.filled]
    for mark in opened if len(opened) <= _FACTORS else ():
        yield mark, factor_text(mark.symbol.inefficiency), "factor"


def _slope(curve: Curve) -> float:
    (x, y), _ = curve.places
    return y / x


def _around_box(view: View, x: float, y: float, width: float, height: float) -> Candidates:
    """Above the upper edge of an overhead box, inside it, or right of it."""
    right, top = view.x(x), view.y(y)
    found = []
    for step in range(int(max(right - width, 0) / 6) + 1):
        centre = max(right - width / 2 - 6 * step, width / 2 + 2)
        found += [
            (Box(centre, top - height / 2 - 1.5, width, height), 0.05 * step),
            (Box(centre, top + height / 2 + 1.5, width, height), 0.3 + 0.05 * step),
        ]
    for down in range(4):
        found.append((Box(right + width / 2 + 2.5, top - height / 2 - down * (height + 1), width, height), 0.2 + 0.2 * down))
    return found


def _corner(view: View, side: str, width: float, height: float) -> Candidates:
    """Region names: compute-bound in the upper left, memory-bound in the lower right corner."""
    found = []
    for step in range(6):
        away = 3 + 9 * step
        if side == "compute":
            found.append((Box(width / 2 + 4, view.height - height / 2 - away, width, height), 0.15 * step))
            found.append((Box(width / 2 + 4 + 3 * away, view.height - height / 2 - 3, width, height), 0.1 + 0.15 * step))
        else:
            found.append((Box(view.width - width / 2 - 4, height / 2 + away, width, height), 0.15 * step))
            found.append((Box(view.width - width / 2 - 4 - 3 * away, height / 2 + 3, width, height), 0.1 + 0.15 * step))
    return found


def _on_diagonal(view: View, curve: Curve, width: float, height: float) -> Candidates:
    """On a line of equal intensity, rather near its upper end, where the axes leave room."""
    (ax, ay), (bx, by) = ((view.x(x), view.y(y)) for x, y in curve.places)
    length = ((bx - ax) ** 2 + (by - ay) ** 2) ** 0.5
    found = []
    for step in range(int((length - width - 8) / 5) + 1):
        part = (length - width / 2 - 4 - 5 * step) / length
        found.append((Box(ax + part * (bx - ax), ay + part * (by - ay), width, height, view.slope), 0.05 * step))
    return found


def _on_bend(view: View, curve: Curve, width: float, height: float) -> Candidates:
    """On the level part of an isocurve of run time, from the left edge on."""
    _, (corner, value), _ = curve.places
    right, y = view.x(corner), view.y(value)
    return [(Box(3 + width / 2 + 6 * step, y, width, height), 0.05 * step) for step in range(int((right - width - 6) / 6) + 1)]
