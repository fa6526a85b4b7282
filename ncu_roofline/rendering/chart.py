"""What a chart shows, said once: marks in data coordinates under axes, lists and bands over time beside them, and a legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ncu_roofline.rendering.layout import Place as Place
from ncu_roofline.rendering.style import Hue

SEEN, FOLLOWED, ASIDE = 2, 1, 0
"""Whether axes reach to a point: always, where it is near, or not at all."""


@dataclass(frozen=True)
class Axis:
    """One side of a panel: its unit, and its name from complete to terse.

    Numbers carry the prefix of the unit ("tick"), none does ("none"), or all have one that suits the largest, which stands for
    ``{unit}`` in the name ("name").  ``second``: the opposite side shows the values times a number, in another unit.
    """

    unit: str
    names: tuple[str, ...]
    second: tuple[float, str, str] | None = None
    prefix: str = "tick"


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Something in a panel: ``role`` is a key of ROLES, ``labels`` go from complete to terse."""

    role: str
    labels: tuple[str, ...] = ()
    hue: Hue | None = None


@dataclass(frozen=True, kw_only=True)
class Point(Mark):
    """A symbol of the thing ``name``, whose shape it has; the first of a thing (or that of most ``weight``) bears its number.

    ``size`` (points on the default paper) where it is not that of its role; ``of`` is told where it lies beyond the axes.
    """

    x: float
    y: float
    name: str = ""
    fill: str = "full"
    size: float = 0.0
    weight: float = 0.0
    extent: int = SEEN
    of: str = ""


@dataclass(frozen=True, kw_only=True)
class Text(Mark):
    """A label beside one of some places, rather the first.

    Where it has no room, the entries of ``key`` are in the legend, and it is only its ``brief`` label, or left out.
    """

    places: tuple[Place, ...]
    key: str = ""
    brief: str = ""
    weight: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Line(Mark):
    """A line through places; ``beside``: the values that a mix of instructions is of."""

    places: tuple[Place, ...]
    beside: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Roof(Mark):
    """``kind`` bandwidth: y is ``value`` times x until y is ``meets``; compute: y is ``value`` from where ``meets`` times x is
    that much; wall: x is ``value``.

    Its label clears the values ``beside`` it, too; a ``band`` goes from the lowest to the highest of its launches.
    """

    kind: str
    value: float
    meets: float = float("inf")
    beside: tuple[float, ...] = ()
    band: Place | None = None


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
    """Marks under two logarithmic axes: a "roofline", a "plane", or a "square" (both over one range).

    ``reach``: a roofline's axis goes on to so many times the highest intensity; ``seen``: places that its axes reach to;
    ``weight`` (of any block): its part of the width of a row.
    """

    title: str
    x: Axis
    y: Axis
    marks: Sequence[Mark]
    shape: str = "plane"
    reach: float = 5.0
    weight: float = 1.0
    seen: tuple[Place, ...] = ()


@dataclass(frozen=True)
class Key:
    """An entry of the legend, drawn as its role is; none of its own where ``role`` is "".

    ``instead``: only there where texts with this key have no room.
    """

    label: str
    role: str = ""
    hue: Hue | None = None
    fill: str = "full"
    size: float = 0.0
    instead: str = ""


@dataclass(frozen=True)
class Scale:
    """Numbers as parts of 1: bars from 0 on with their hues, or dots before and after; NaN where unknown.

    ``text`` stands at the end of the longest bar, or below the dots.
    """

    bars: Sequence[tuple[float, Hue | None]] = ()
    dots: tuple[float, float] | None = None
    hue: Hue | None = None
    text: str = ""


@dataclass(frozen=True)
class Row:
    """A thing in a list: its name and what goes below that, scales, and what is said at the end; ``name``'s shape if it has."""

    name: str
    scales: Sequence[Scale]
    below: str = ""
    end: str = ""
    hue: Hue | None = None
    shape: str = ""


@dataclass(frozen=True)
class Listing:
    """Things below each other.  ``heads``: of each scale and of what is said at the end; ``limit``: a dashed line.

    ``axis``: names of the axis of percentages below, from complete to terse; ``parts`` of the width are for names and for what
    is said at the end, which stand above the scales where a list is narrower than ``least`` fonts.
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Row]
    keys: Sequence[Key] = ()
    axis: tuple[str, ...] = ()
    limit: float = 0.0
    parts: tuple[float, float] = (0.3, 0.22)
    least: float = 58.0
    weight: float = 1.0


@dataclass(frozen=True)
class Timeline:
    """Bands over time: ``edges`` of its slices in seconds; (label, text, hue, values) of each, NaN where nothing is known.

    Nothing is known beyond the last edge, up to ``seconds``; ``hues`` are those that slices have elsewhere.
    """

    title: str
    seconds: float
    edges: Sequence[float]
    bands: Sequence[tuple[str, str, Hue | None, Sequence[float]]]
    hues: Sequence[Hue] = ()
    weight: float = 1.0


@dataclass(frozen=True)
class Table:
    """Cells beside a panel: rows that stand at y values of its lines, which lead to them, and more rows below.

    Of each column its header, the cells of the upper rows, the header of the lower ones, and their cells; ``hues`` of the rows.
    """

    columns: Sequence[tuple[str, Sequence[str], str, Sequence[str]]]
    at: Sequence[float]
    hues: Sequence[Hue | None]
    weight: float = 1.0


Block = Panel | Listing | Timeline | Table


@dataclass(frozen=True)
class Chart:
    """Rows of blocks, the legend (``inside`` the axes where it covers nothing), and the names of things with shapes.

    ``names``: what the legend says of each thing by its name, the first one first.  ``empty``: why there are no points.
    ``note_lines``: for notes at most.
    """

    title: str
    sentences: Sequence[str]
    facts: str
    rows: Sequence[Sequence[Block]]
    keys: Sequence[Key]
    names: Mapping[str, str]
    notes: Sequence[str]
    empty: str = ""
    inside: bool = False
    note_lines: int = 6
