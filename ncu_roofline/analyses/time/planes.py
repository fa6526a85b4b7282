"""Where everything in the three charts of the time view goes: axes, lines, boxes, symbols and labels, as plain data.

Complexity plane, time plane and 4D chart are those of Wang et al. (2020), section II.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ncu_roofline.analyses.hierarchical.captions import plural
from ncu_roofline.analyses.hierarchical.plan import Label
from ncu_roofline.analyses.hierarchical.style import bounds, precision_label
from ncu_roofline.analyses.time.chart import DeviceChart, MachineLimits, Symbol, TimeChart, drawable
from ncu_roofline.base.units import UNITS, factor, format_value
from ncu_roofline.rendering import layout
from ncu_roofline.rendering.layout import Box, Measure, Obstacles, View
from ncu_roofline.rendering.paper import Paper
from ncu_roofline.rendering.style import MARKERS

_MARKER = 7.0  # the widest filled shape; points
_FACTORS = 12  # up to so many symbols the inefficiency is written at each
_STEPS = 3  # sweeps whose steps are all named; of more only the first and the last are

Candidates = list[tuple[Box, float]]
Text = tuple[str, float, str, Candidates, float]  # text, font size, role, places, highest price to pay
Place = tuple[float, float]
_MIN_DECADES, _MAX_DECADES = 1.3, 10.0
_NEAR = 3.0  # decades that the axes may grow to show the overhead of launches
_DIFFER = 0.05  # peaks closer than this are one machine balance on paper
_MOST_ISO = 9


def labels(plane: Plane, data: TimeChart, measure: Measure, paper: Paper) -> list[Label]:
    """The labels of one chart; a text without room is left out."""
    obstacles = _obstacles(plane)
    found = []
    for text, size, role, places, most in _texts(plane, data, measure, paper):
        if box := obstacles.place(places, margin=0.6, limit=most):
            found.append(Label(text, box, size, role))
    return found


def _texts(plane: Plane, data: TimeChart, measure: Measure, paper: Paper) -> Iterator[Text]:
    size = paper.small
    for (x, y), text in plane.boxes:
        yield text, size, "overhead", _around_box(plane.view, x, y, *measure(text, size)), 9.0
    for curve in plane.curves:
        if curve.role == "balance":
            places = layout.along_diagonal(plane.view, [_slope(curve)], plane.view.y1, *measure(curve.text, size))
            yield curve.text, size, "balance", places, 9.0
    yield from _marks(plane, data, measure, size)
    for side in ("compute", "memory"):
        text = bounds()[side].label
        yield text, size, f"region-{side}", _corner(plane.view, side, *measure(text, size)), 1.2
    for curve in plane.curves:
        if curve.role == "iso":
            extent = measure(curve.text, size)
            bent = len(curve.places) > 2
            places = _on_bend(plane.view, curve, *extent) if bent else _on_diagonal(plane.view, curve, *extent)
            yield curve.text, size, "iso", places, 1.5


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


def _marks(plane: Plane, data: TimeChart, measure: Measure, size: float) -> Iterator[Text]:
    """Steps of sweeps, numbers of kernels beyond the markers, and in the 4D chart the inefficiency of few symbols."""
    view = plane.view
    for mark, text, role in [*_label_steps(plane), *_numbers(plane, data), *_factors(plane)]:
        if view.holds(*mark.place):
            reach = 1 if role == "factor" else 2  # further away it would read as another symbol's
            places = layout.around(
                view.x(mark.place[0]), view.y(mark.place[1]), *measure(text, size), 3.6 if reach > 1 else 5.0, reach
            )
            yield text, size, role, places, 3.5


def _label_steps(plane: Plane) -> Iterator[tuple[Mark, str, str]]:
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
        yield mark, factor(mark.symbol.inefficiency), "factor"


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


@dataclass(frozen=True)
class Curve:
    """A line through ``places``; ``role`` is iso, balance, overhead, gap (filled to open symbol), sweep or sweep-time."""

    places: tuple[Place, ...]
    role: str
    text: str = ""


@dataclass(frozen=True)
class Mark:
    """A symbol on paper: filled for complexity (and in the time plane), open for time in the 4D chart."""

    place: Place
    symbol: Symbol
    filled: bool = True


@dataclass
class Plane:
    """One chart: ``kind`` is complexity, time or both (the 4D chart); ``second`` scales its upper and right axes to seconds."""

    kind: str
    title: str
    device: DeviceChart
    view: View
    units: tuple[str, str]
    curves: list[Curve] = field(default_factory=list)
    boxes: list[tuple[Place, str]] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    second: tuple[float, float] | None = None
    beyond: list[tuple[str, str]] = field(default_factory=list)


def complexity_plane(device: DeviceChart, width: float, height: float) -> Plane:
    """Bytes and operations; diagonals of equal intensity, machine balances, the box of the launch overhead."""
    machine = device.machines[0] if device.machines else None
    corners = _corners(device, machine)
    view = _view([symbol.complexity for symbol in device.symbols], [place for place, _ in corners], width, height)
    plane = Plane("complexity", "Complexity", device, view, ("byte", _work_unit(device)))
    single = [one for one in device.machines if one.precision != "mixed"]  # the sum over pipes has a roof for each kernel
    _complexity_lines(plane, single or device.machines)
    _boxes(plane, corners)
    plane.marks = [Mark(symbol.complexity, symbol) for symbol in device.symbols]
    plane.curves += _sweeps(device.symbols, lambda one: one.complexity, "sweep")
    return plane


def time_plane(device: DeviceChart, width: float, height: float) -> Plane:
    """Bandwidth time and compute time on equal axes: isocurves of run time, the balance diagonal, the launch overhead."""
    symbols = [symbol for symbol in device.symbols if drawable(symbol.time)]
    latency = device.machines[0].latency if device.machines else math.nan
    corners = [((count * latency, count * latency), _launches(count)) for count in device.launches()] if latency > 0 else []
    view = _equal_view([symbol.time for symbol in symbols], [place for place, _ in corners], width, height)
    plane = Plane("time", "Time", device, view, ("second", "second"))
    for value in _steps(max(view.x0, view.y0), min(view.x1, view.y1)):
        places = ((view.x0, value), (value, value), (value, view.y0))
        plane.curves.append(Curve(places, "iso", format_value(value, "second", 3)))
    if ends := layout.diagonal(view, 1.0, view.y1):
        plane.curves.append(Curve(ends, "balance", "compute time = bandwidth time"))
    _boxes(plane, corners)
    plane.marks = [Mark(symbol.time, symbol) for symbol in symbols]
    plane.curves += _sweeps(symbols, lambda one: one.time, "sweep")
    return plane


def both_plane(device: DeviceChart, machine: MachineLimits, width: float, height: float) -> Plane:
    """The 4D chart of the symbols of one precision: complexity filled, time open, on axes that meet at the roofline."""
    symbols = [symbol for symbol in device.symbols if symbol.precision == machine.precision and drawable(symbol.time)]
    places = [place for symbol in symbols for place in (symbol.complexity, symbol.time_at_roofs)]
    mine = DeviceChart(device.device, tuple(symbols), (machine,))
    corners = _corners(mine, machine)
    title = f"Complexity and time, {precision_label(machine.precision)}"
    view = _view(places, [place for place, _ in corners], width, height)
    plane = Plane("both", title, mine, view, ("byte", _work_unit(mine)), second=(1 / machine.bandwidth, 1 / machine.peak))
    _complexity_lines(plane, (machine,))
    _boxes(plane, corners)
    plane.curves += [Curve((symbol.complexity, symbol.time_at_roofs), "gap") for symbol in symbols]
    plane.marks = [Mark(symbol.time_at_roofs, symbol, filled=False) for symbol in symbols]
    plane.marks += [Mark(symbol.complexity, symbol) for symbol in symbols]
    plane.curves += _sweeps(symbols, lambda one: one.complexity, "sweep")
    plane.curves += _sweeps(symbols, lambda one: one.time_at_roofs, "sweep-time")
    return plane


def planes_of(device: DeviceChart, machines: Sequence[MachineLimits], sizes: Sequence[Place]) -> list[Plane]:
    """The two planes of a GPU and a 4D chart for each of ``machines``; ``sizes`` (points) of the planes and the 4D charts."""
    (width, height), (wide, tall) = sizes
    planes = [complexity_plane(device, width, height), time_plane(device, width, height)]
    return planes + [both_plane(device, machine, wide, tall) for machine in machines]


def _launches(count: int) -> str:
    return f"overhead of {plural(count, 'launch')}"


def _corners(device: DeviceChart, machine: MachineLimits | None) -> list[tuple[Place, str]]:
    """Corners of the overhead boxes, for the fewest and the most launches of a symbol."""
    if machine is None or not machine.latency > 0:
        return []
    found = []
    for count in device.launches():
        seconds = count * machine.latency
        place = (seconds * machine.bandwidth, seconds * machine.peak)
        if drawable(place):
            found.append((place, _launches(count)))
    return found


def _complexity_lines(plane: Plane, machines: Sequence[MachineLimits]) -> None:
    """Diagonals: powers of ten of intensity, and the machine balance of each precision."""
    view = plane.view
    for value in _steps(view.y0 / view.x1, view.y1 / view.x0):
        if ends := layout.diagonal(view, value, view.y1):
            plane.curves.append(Curve(ends, "iso", f"{value:g} {UNITS[_per_byte(plane.device)].symbol}"))
    kept: list[list[MachineLimits]] = []
    for machine in sorted((one for one in machines if one.balance > 0), key=lambda one: one.balance):
        if kept and math.isclose(kept[-1][0].balance, machine.balance, rel_tol=_DIFFER):
            kept[-1].append(machine)
        else:
            kept.append([machine])
    for group in kept:
        names = ", ".join(precision_label(one.precision) for one in group)
        text = f"balance {format_value(group[0].balance, _per_byte(plane.device), 3)}"
        if ends := layout.diagonal(view, group[0].balance, view.y1):
            plane.curves.append(Curve(ends, "balance", f"{text} ({names})" if len(kept) > 1 else f"machine {text}"))


def _per_byte(device: DeviceChart) -> str:
    return f"{_work_unit(device)}/byte"


def _work_unit(device: DeviceChart) -> str:
    return "op" if device.units == "OP" else "flop"


def _boxes(plane: Plane, corners: Iterable[tuple[Place, str]]) -> None:
    """Boxes inside the axes; what of those beyond is told in words goes into ``beyond``, a number at a time."""
    for (x, y), text in corners:
        if x > plane.view.x0 and y > plane.view.y0:
            plane.boxes.append(((x, y), text))
        else:
            values = zip((y, x), reversed(plane.units), strict=True)
            plane.beyond += [(text, format_value(value, unit, 3)) for value, unit in values]


def _sweeps(symbols: Sequence[Symbol], place: Callable[[Symbol], Place], role: str) -> list[Curve]:
    """Lines through the steps of each kernel."""
    found: dict[str, list[Symbol]] = {}
    for one in symbols:
        if one.step >= 0 and drawable(place(one)):
            found.setdefault(one.kernel, []).append(one)
    return [
        Curve(tuple(place(one) for one in sorted(steps, key=lambda one: one.step)), role)
        for steps in found.values()
        if len(steps) > 1
    ]


def _range(values: Sequence[float], corners: Sequence[float]) -> tuple[float, float]:
    """Limits in decades around the values, and down to the corners if they are near."""
    logs = [math.log10(value) for value in values] or [0.0]
    low, high = min(logs), max(logs)
    reached = [at for at in (math.log10(value) for value in corners) if low - _NEAR <= at]
    low, high = min([low, *(at - 0.3 for at in reached)]) - 0.35, max([high, *reached]) + 0.35
    lacking = max(_MIN_DECADES - (high - low), 0.0) / 2
    low, high = low - lacking, high + lacking
    return max(low, high - _MAX_DECADES), high


def _view(places: Sequence[Place], corners: Sequence[Place], width: float, height: float) -> View:
    """Axes around the places; corners count together, as one of them alone would show no box."""
    logs = [[math.log10(value) for value in values] for values in zip(*places, strict=True)] or [[0.0], [0.0]]
    near = [
        corner
        for corner in corners
        if all(math.log10(value) >= min(side) - _NEAR for value, side in zip(corner, logs, strict=True))
    ]
    xs, ys = (([place[i] for place in places], [corner[i] for corner in near]) for i in (0, 1))
    x0, x1 = _range(*xs)
    y0, y1 = _range(*ys)
    return View(10**x0, 10**x1, 10**y0, 10**y1, width, height)


def _equal_view(places: Sequence[Place], corners: Sequence[Place], width: float, height: float) -> View:
    """The same for two axes of one quantity: one range for both."""
    low, high = _range([value for place in places for value in place], [value for corner in corners for value in corner])
    return View(10**low, 10**high, 10**low, 10**high, width, height)


def _steps(low: float, high: float) -> list[float]:
    """Round numbers between two values: 1, 2, 5 in a narrow range, else powers of ten, some left out in a wide one."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    digits = (1, 2, 5) if last - first <= 3 else (1,)
    every = max(-(-(last - first) // _MOST_ISO), 1)
    values = [digit * 10.0**exponent for exponent in range(first, last + 1) if exponent % every == 0 for digit in digits]
    return [value for value in values if low < value < high]
