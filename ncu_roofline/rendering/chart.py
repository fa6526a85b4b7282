"""What a chart shows, said once: marks in data coordinates under axes, lists and bands over time beside them, and a legend;
and how marks look, whatever they show: themes, the shapes of things, and roles with the prices of their labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SEEN, FOLLOWED, ASIDE = 2, 1, 0
"""Whether axes reach to a point: always, where it is near, or not at all."""
# Shapes that stay apart at 5 points; things beyond these get a number too.
_SYMBOLS = (
    "o circle, s square, ^ triangle, D diamond, v triangle down, P plus, X cross, p pentagon, < triangle left, > triangle right"
)
MARKERS = dict(one.split(" ", 1) for one in f"{_SYMBOLS}, * star, h hexagon".split(", "))  # matplotlib's name, and a caption's
Place = tuple[float, float]
Hue = Any  # a colour: its ``light`` and ``dark`` are #RRGGBB on light ground and on dark ground


@dataclass(frozen=True)
class Theme:
    """Colours of everything that has no hue of its own."""

    ground: str
    text: str
    faint: str
    grid: str
    compute: str
    connector: str
    dark: bool

    def of(self, hue: Hue | str | None) -> str:
        """A hue on this ground, or what the theme calls so; that of computing where there is none."""
        if hue is None or isinstance(hue, str):
            return str(getattr(self, hue or "compute"))
        return str(hue.dark if self.dark else hue.light)


THEMES = {
    "light": Theme("#FFFFFF", "#1A1A1A", "#5C5C5C", "#E7E7E7", "#333333", "#9A9A9A", False),
    "dark": Theme("#14181D", "#ECEFF2", "#A3ABB4", "#2A3038", "#D5DAE0", "#707A85", True),
}


@dataclass(frozen=True)
class Role:
    """How marks of a role are drawn, and how their labels find their places."""

    colour: str  # a field of Theme, for marks without hue
    width: float = 0.0  # of a line
    dashes: Any = "-"
    order: float = 3
    size: float = 0.0  # of a symbol
    ring: float = 0.0  # width of its edge if it is open
    alpha: float = 1.0
    arrow: str = ""  # of a line: in the "middle" or at the "end" of each piece
    shape: str = ""  # of a symbol where things have none
    edge: str = "ground"  # colour of a full symbol's, "" its own
    rank: int = 11  # labels of the lowest are placed first
    price: float = 0.0  # what covering it costs others
    most: float = math.inf  # what a place of its label may cost
    way: str = "around"  # the place, away from it with a line to it ("callout"), "below", or along the "edge" that it is at
    margin: float = 0.6  # around the label
    gap: float = 1.8  # beside its symbol
    reach: int = 2  # away, in lines
    leader: bool = True  # whether a line leads to what stands away from its place
    told: bool = False  # below the chart where the label has no room


OF_ROOFS, OF_NAMES = 1, 6  # ranks
_ROOF: dict[str, Any] = {"rank": OF_ROOFS, "price": 1.2, "most": 3.0, "margin": 1.0, "told": True}
_RIDGE: dict[str, Any] = {"rank": 8, "price": 1, "most": 1.2, "way": "below", "margin": 1, "leader": False}
_DASHED, _DOTTED = (0, (4, 2.5)), (0, (1, 2))
ROLES = {
    "dot": Role("faint", order=7, size=4.8, price=3.0),
    "ring": Role("faint", order=6, size=6.6, ring=0.9, price=3.0),  # around the dot where both stand at one place
    "ridge": Role("faint", order=4, size=3.2, ring=0.9, shape="o", **_RIDGE),
    "slice": Role("faint", order=7, size=3.6, edge="", price=1.0),
    "loop": Role("faint", order=7, size=7.0, shape="D", edge="text", price=8.0),
    "before": Role("text", size=4.8, ring=0.9, shape="o"),
    "after": Role("text", size=4.8, shape="o", edge=""),
    "bar": Role("compute", size=4.6, shape="s"),
    "edge": Role("faint", rank=0, most=5.0, reach=5, leader=False),
    "overhead": Role("faint", 0.8, _DASHED, 2, rank=0, price=1.0, most=9.0),
    "roof": Role("compute", 1.3, **_ROOF),
    "roof-upon": Role("compute", 1.3, (0, (6, 6)), **_ROOF),  # upon another one, which shows through its gaps
    "theory": Role("compute", 0.8, _DASHED, 2, **_ROOF),
    "theory-upon": Role("compute", 0.8, (5.0, (4, 2.5)), 2, **_ROOF),
    "plain": Role("compute", 0.8, order=3.2, **_ROOF),
    "flawed": Role("compute", 0.9, _DOTTED, **_ROOF),
    "wall": Role("faint", 0.8, _DOTTED, **_ROOF),
    "peak": Role("compute", 0.6, _DASHED, 2, alpha=0.8, rank=OF_ROOFS),
    "burst": Role("compute", 1.3, order=2.5, alpha=0.35, rank=OF_ROOFS),
    "limit": Role("compute", 1.0, _DOTTED, order=2.5, alpha=0.8, rank=OF_ROOFS),
    "balance": Role("compute", 1.2, rank=OF_ROOFS, price=1.2, most=9.0),
    "band": Role("compute", order=1.5, alpha=0.16),
    "mix": Role("compute", 1.0, (0, (2.4, 1.6)), rank=2, price=0.3, most=3.0, margin=1.0, told=True),
    "step": Role("text", rank=3, most=3.2, way="callout", margin=0.4),
    "loop-name": Role("text", rank=5, most=8.0, way="callout", gap=2.9),
    "name": Role("text", rank=OF_NAMES, way="callout"),
    "number": Role("text", rank=7, reach=3),
    "factor": Role("faint", rank=7, most=3.5, reach=1, gap=3.0),  # further away it would read as another symbol's
    "corner": Role("text", rank=9, most=1.2, way="edge", reach=6, leader=False),
    "contour": Role("grid", 0.7, order=1.5, rank=10, price=0.1, most=1.5),
    "joined": Role("connector", 0.6, order=4, price=0.25),
    "trajectory": Role("connector", 0.7, order=4, alpha=0.75, arrow="middle", price=0.3),
    "path": Role("connector", 0.7, order=4, price=0.3),
    "move": Role("text", 0.9, order=4, arrow="end", price=1.6),
    "gap": Role("connector", 0.7, (0, (1, 1.5)), 4, price=0.4),
    "sweep": Role("connector", 0.8, order=4, arrow="middle", price=0.6),
    "sweep-time": Role("connector", 0.8, (0, (4, 2)), 4, price=0.6),
}


@dataclass(frozen=True)
class Axis:
    """One side of a panel: its unit, its name from complete to terse; ``second``: the opposite side has so many times the
    values in another unit.  Numbers carry the ``prefix`` of the unit, none does, or the name has one (as ``{unit}``) for
    all."""

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
    """A symbol of the thing ``name``, whose shape it has; the one of most ``weight`` bears its number.  ``size`` (points) where
    it is not that of its role."""

    x: float
    y: float
    name: str = ""
    fill: str = "full"
    size: float = 0.0
    weight: float = 0.0
    extent: int = SEEN


@dataclass(frozen=True, kw_only=True)
class Text(Mark):
    """A label beside one of some places (0 and inf: the ends of the axes), rather the first; without room the entries of
    ``key`` are in the legend, and it is its ``brief`` label or left out."""

    places: tuple[Place, ...]
    key: str = ""
    brief: str = ""
    weight: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Line(Mark):
    """A line through places; ``name``: the thing that it is of."""

    places: tuple[Place, ...]
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class Roof(Mark):
    """``kind`` bandwidth: y is ``value`` times x until y is ``meets``; compute: y is ``value`` from where ``meets`` times x is
    that much; wall: x is ``value``.  Its label clears the values ``beside`` it, too; ``band``: lowest and highest launch."""

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
    """All that is below and left of a corner; the axes reach to one that is near, others are left out."""

    x: float
    y: float


@dataclass(frozen=True)
class Panel:
    """Marks under two logarithmic axes: a "roofline", a "plane", or a "square" (both over one range); ``weight`` (of any
    block): its part of the width of a row.  A roofline's axis goes on to ``reach`` times the highest intensity, and to what is
    ``seen``."""

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
    """An entry of the legend, drawn as its role is if it has one; ``instead``: only for texts of this key without room."""

    label: str
    role: str = ""
    hue: Hue | None = None
    fill: str = "full"
    size: float = 0.0
    instead: str = ""


@dataclass(frozen=True)
class Scale:
    """Numbers as parts of 1, NaN where unknown: bars from 0 on (``stacked``: each from the end of the one before) with their
    hues and a text at the end of the longest, or dots before and after with a text below."""

    bars: Sequence[tuple[float, Hue | str | None]] = ()
    stacked: bool = False
    dots: tuple[float, float] | None = None
    hue: Hue | None = None
    text: str = ""


@dataclass(frozen=True)
class Row:
    """A thing in a list: its name and what stands beside that, scales, and what is said at the end; its ``shape`` if it has."""

    name: str
    scales: Sequence[Scale]
    more: str = ""
    end: str = ""
    hue: Hue | None = None
    shape: str = ""


@dataclass(frozen=True)
class Listing:
    """Things below each other, each a line of texts above its scales.  ``heads``: of each scale and of what is said at the
    end; ``axis``: names of the axis of percentages below, with a ``limit``."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Row]
    keys: Sequence[Key] = ()
    axis: tuple[str, ...] = ()
    limit: float = 0.0
    weight: float = 1.0


@dataclass(frozen=True)
class Timeline:
    """Bands over time: ``edges`` of its slices in seconds, the last before ``seconds`` where nothing more is known; (label,
    text, hue, values) of each band, NaN where nothing is known; ``hues`` are those that slices have elsewhere."""

    title: str
    seconds: float
    edges: Sequence[float]
    bands: Sequence[tuple[str, str, Hue | None, Sequence[float]]]
    hues: Sequence[Hue] = ()
    weight: float = 1.0


@dataclass(frozen=True)
class Table:
    """Cells beside a panel: rows at y values of its lines, which lead to them, and more rows below.  Of each column its header,
    the cells of the upper rows, the header of the lower ones, and their cells; ``hues`` of the rows."""

    columns: Sequence[tuple[str, Sequence[str], str, Sequence[str]]]
    at: Sequence[float]
    hues: Sequence[Hue | None]
    weight: float = 1.0


Block = Panel | Listing | Timeline | Table


@dataclass(frozen=True)
class Chart:
    """Rows of blocks, the legend (``inside`` the axes where it covers nothing), what it says of each thing by its name, why
    there are no points (``empty``), and notes in so many lines at most."""

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
