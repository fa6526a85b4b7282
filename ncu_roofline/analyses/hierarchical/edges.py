"""How far the axes of a panel reach, and the arrows at their edges for the dots beyond them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ncu_roofline.analyses.hierarchical.chart import Panel, range_text
from ncu_roofline.analyses.hierarchical.style import COUNTED, precision_label
from ncu_roofline.base.units import UNITS, format_value
from ncu_roofline.rendering import layout
from ncu_roofline.rendering.layout import View

_NEAR = 1.6  # so many times beyond what matters the axes still follow the other dots of the same kernels
_MARGIN = 1.3  # from those to the edge
_BEYOND = 5.0  # room right of the highest intensity for the labels of compute roofs
_MERGED = {"<": 9.0, ">": 9.0, "v": 28.0, "^": 28.0}  # points: arrows that are nearer are one, as their texts would meet
_INSET = 3.2  # points from the edge to the middle of its arrow


@dataclass(frozen=True)
class Arrow:
    """An arrow at an edge, its middle in points: where it points (<, >, v or ^), how many dots it stands for; what they
    are and their values, from complete to terse."""

    x: float
    y: float
    direction: str
    level: str
    count: int
    texts: tuple[str, ...]


def view_of(panel: Panel, width: float, height: float, matter: Collection[str] = ()) -> View:
    """Axes of a panel that is ``width`` x ``height`` points.

    They show the roofs and the dots that carry a verdict, of the kernels that ``matter`` (none named: of all); other dots only
    where those of the same kernels are not far beyond.
    """
    series = [one for one in panel.series if not one.side and (not matter or one.kernel in matter)] or panel.series
    dots = [(x, one.performance) for one in series for x in one.verdict_dots]
    peaks = [value for roof in panel.of_kind("compute") for value in (*roof.values, roof.highest)]
    bandwidths = [value for roof in panel.of_kind("bandwidth") for value in roof.values]
    walls = [roof.value for roof in panel.of_kind("wall")]
    x0, x1, y0, y1 = layout.limits(dots, peaks, bandwidths, walls, _BEYOND)
    near = [x for one in series for _, x in one.dots if x0 / _NEAR <= x <= x1 * _NEAR and y0 <= one.performance <= y1]
    x0, x1 = min([x0, *(x / _MARGIN for x in near)]), max([x1, *(x * _MARGIN for x in near)])
    return View(x0, x1, y0, y1, width, height)


def arrows(panel: Panel, view: View) -> list[Arrow]:
    """The arrows of the dots outside the axes; those of neighbours are one."""
    groups: dict[str, list[list[_Outside]]] = {}
    for one in sorted(_outside(panel, view), key=lambda one: one.along):
        found = groups.setdefault(one.direction, [])
        if found and one.along - found[-1][-1].along < _MERGED[one.direction]:
            found[-1].append(one)
        else:
            found.append([one])
    return [_arrow(members, panel, view) for found in groups.values() for members in found]


@dataclass(frozen=True)
class _Outside:
    direction: str
    along: float  # place along its edge
    level: str
    value: float
    precision: str


def _outside(panel: Panel, view: View) -> Iterator[_Outside]:
    for one in panel.series:
        for level, intensity in one.dots:
            if view.holds(intensity, one.performance):
                continue
            y = min(max(view.y(one.performance), 0.0), view.height)
            if not view.x0 <= intensity <= view.x1:
                yield _Outside("<" if intensity < view.x0 else ">", y, level, intensity, one.precision)
            else:
                yield _Outside(
                    "v" if one.performance < view.y0 else "^", view.x(intensity), level, one.performance, one.precision
                )


def _arrow(members: list[_Outside], panel: Panel, view: View) -> Arrow:
    direction, along = members[0].direction, sum(one.along for one in members) / len(members)
    sideways = direction in "<>"
    unit = COUNTED[panel.unit].intensity_unit if sideways else f"{panel.unit}/s"
    values = sorted(one.value for one in members)
    low, high = values[0], values[-1]
    if sideways:  # an intensity has no prefix
        symbol = UNITS[unit].symbol
        text = f"{_plain(low)} to {_plain(high)} {symbol}" if high > 1.05 * low else f"{_plain(high)} {symbol}"
    else:
        text = range_text(low, high, unit) if high > 1.05 * low else format_value(high, unit, 3)
    far = view.width if direction == ">" else view.height
    edge = far - _INSET if direction in ">^" else _INSET
    along = min(max(along, _INSET), (view.height if sideways else view.width) - _INSET)
    place = (edge, along) if sideways else (along, edge)
    precisions = {one.precision for one in members}
    named = f"{precision_label(members[0].precision)} " if len(precisions) == 1 < len(panel.precisions) else ""
    counted = f"{len(members)} dots, {text}" if len(members) > 1 else text
    return Arrow(*place, direction, members[0].level, len(members), (f"{named}{counted}", counted, text))


def _plain(value: float) -> str:
    """Two digits: 0.0012, 130, 3.3e7."""
    text = f"{value:.2g}"
    return f"{float(text):.0f}" if 99 < value < 1e5 else text.replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")
