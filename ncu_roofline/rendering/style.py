"""How charts look whatever they show: themes, the shapes of things, and each role: how it is drawn, and what its labels pay."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

# Shapes that stay apart at 5 points; things beyond these get a number too.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "<", ">", "*", "h")


class Hue(Protocol):
    """A colour as ``#RRGGBB`` on light ground and on dark ground."""

    @property
    def light(self) -> str: ...
    @property
    def dark(self) -> str: ...


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
        return hue.dark if self.dark else hue.light


THEMES = {
    "light": Theme("#FFFFFF", "#1A1A1A", "#5C5C5C", "#E7E7E7", "#333333", "#9A9A9A", False),
    "dark": Theme("#14181D", "#ECEFF2", "#A3ABB4", "#2A3038", "#D5DAE0", "#707A85", True),
}


@dataclass(frozen=True)
class Role:
    """How marks of a role are drawn, and how their labels find their places.

    ``colour``: a field of Theme, for marks without hue.  Of a line: width, dashes, and whether an ``arrow`` stands in the
    "middle" or at the "end" of each piece.  Of a symbol: its ``size``, the width of its edge if it is open (``ring``), its
    ``shape`` where things have none, the colour of the ``edge`` of a full one ("": its own).
    Labels of the lowest ``rank`` are placed first; ``price``: what covering the role costs others; ``most``: what a place may
    cost.  ``way``: around the place, away from it with a line to it ("callout"), or "below"; ``margin`` around the label,
    ``gap`` beside its symbol, ``reach`` away in lines; ``leader``: whether a line leads to what stands away from its place.
    ``told``: what a label says is told below the chart where it has no room.
    """

    colour: str
    width: float = 0.0
    dashes: Any = "-"
    order: float = 3
    size: float = 0.0
    ring: float = 0.0
    alpha: float = 1.0
    arrow: str = ""
    shape: str = ""
    edge: str = "ground"
    rank: int = 11
    price: float = 0.0
    most: float = math.inf
    way: str = "around"
    margin: float = 0.6
    gap: float = 1.8
    reach: int = 2
    leader: bool = True
    told: bool = False


OF_ROOFS, OF_NAMES = 1, 6  # ranks
_ROOF: dict[str, Any] = {"rank": OF_ROOFS, "price": 1.2, "most": 3.0, "margin": 1.0, "told": True}
_DASHED, _DOTTED = (0, (4, 2.5)), (0, (1, 2))
ROLES = {
    "dot": Role("faint", order=7, size=4.8, price=3.0),
    "ring": Role("faint", order=6, size=6.6, ring=0.9, price=3.0),  # around the dot where both stand at one place
    "ridge": Role(
        "faint", order=4, size=3.2, ring=0.9, shape="o", rank=8, price=1, most=1.2, way="below", margin=1, leader=False
    ),
    "slice": Role("faint", order=7, size=3.6, edge="", price=1.0),
    "loop": Role("faint", order=7, size=7.0, shape="D", edge="text", price=8.0),
    "before": Role("text", size=4.8, ring=0.9, shape="o"),
    "after": Role("text", size=4.8, shape="o", edge=""),
    "bar": Role("compute", size=4.6, shape="s"),
    "edge": Role("faint", 1.1, order=8, rank=0, price=3.0, most=5.0, reach=5),
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
    "balance": Role("compute", 1.2, rank=OF_ROOFS, price=1.2, most=9.0),
    "band": Role("compute", order=1.5, alpha=0.16),
    "mix": Role("compute", 1.0, (0, (2.4, 1.6)), rank=2, price=0.6, most=3.0, margin=1.0, told=True),
    "step": Role("text", rank=3, most=3.2, way="callout", margin=0.4),
    "speedup": Role("text", rank=4, most=1.9, margin=0.4, reach=3),
    "loop-name": Role("text", rank=5, most=8.0, way="callout", gap=2.9),
    "pile": Role("text", rank=5, most=4.0, reach=4, gap=4.0, leader=False),
    "name": Role("text", rank=OF_NAMES, way="callout"),
    "number": Role("text", rank=7, reach=3),
    "factor": Role("faint", rank=7, most=3.5, reach=1, gap=3.0),  # further away it would read as another symbol's
    "corner": Role("text", rank=9, most=1.2),
    "contour": Role("grid", 0.7, order=1.5, rank=10, price=0.1, most=1.5),
    "joined": Role("connector", 0.6, order=4, price=0.25),
    "trajectory": Role("connector", 0.7, order=4, alpha=0.75, arrow="middle", price=0.3),
    "path": Role("connector", 0.7, order=4, price=0.3),
    "move": Role("text", 0.9, order=4, arrow="end", price=1.6),
    "gap": Role("connector", 0.7, (0, (1, 1.5)), 4, price=0.4),
    "sweep": Role("connector", 0.8, order=4, arrow="middle", price=0.6),
    "sweep-time": Role("connector", 0.8, (0, (4, 2)), 4, price=0.6),
}
