"""How charts look whatever they show: themes, the shapes of things, and how each role is drawn."""

from __future__ import annotations

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

    def of(self, hue: Hue) -> str:
        """A hue on this ground."""
        return hue.dark if self.dark else hue.light

    def colour(self, role: str, hue: Hue | None) -> str:
        """The hue on this ground, else that of the role."""
        return self.of(hue) if hue else str(getattr(self, LOOKS[role].colour))


THEMES = {
    "light": Theme("#FFFFFF", "#1A1A1A", "#5C5C5C", "#E7E7E7", "#333333", "#9A9A9A", False),
    "dark": Theme("#14181D", "#ECEFF2", "#A3ABB4", "#2A3038", "#D5DAE0", "#707A85", True),
}


@dataclass(frozen=True)
class Look:
    """How a role is drawn: its colour (an attribute of Theme) unless marks have their own, and the line or the symbol.

    ``arrow``: points of a head in the "middle" or at the "end" of each piece of a line.
    """

    colour: str
    width: float = 0.0
    dashes: Any = "-"
    order: float = 3
    size: float = 0.0  # of a symbol
    ring: float = 0.0  # width of the edge of an open one
    alpha: float = 1.0
    italic: bool = False
    arrow: str = ""
    shape: str = ""
    edge: str = "ground"  # of a full symbol; "": its own colour


LOOKS = {
    "dot": Look("faint", order=7, size=4.8),
    "ring": Look("faint", order=6, size=6.6, ring=0.9),  # around the dot where both stand at one place
    "ridge": Look("faint", order=4, size=3.2, ring=0.9, shape="o"),
    "slice": Look("faint", order=7, size=3.6, edge=""),
    "loop": Look("faint", order=7, size=7.0, shape="D", edge="text"),
    "before": Look("text", size=4.8, ring=0.9, shape="o"),
    "after": Look("text", size=4.8, shape="o", edge=""),
    "bar": Look("compute", size=4.6, shape="s"),
    "edge": Look("faint", 1.1, order=8),
    "contour": Look("grid", 0.7, order=1.5),
    "balance": Look("compute", 1.2),
    "roof": Look("compute", 1.3),
    "roof-upon": Look("compute", 1.3, (0, (6, 6))),  # upon another one, which shows through its gaps
    "theory": Look("compute", 0.8, (0, (4, 2.5)), 2),
    "theory-upon": Look("compute", 0.8, (5.0, (4, 2.5)), 2),
    "peak": Look("compute", 0.6, (0, (4, 2.5)), 2, alpha=0.8),
    "burst": Look("compute", 1.3, order=2.5, alpha=0.35),
    "plain": Look("compute", 0.8, order=3.2),
    "flawed": Look("compute", 0.9, (0, (1, 2))),
    "wall": Look("faint", 0.8, (0, (1, 2))),
    "band": Look("compute", order=1.5, alpha=0.16),
    "mix": Look("compute", 1.0, (0, (2.4, 1.6))),
    "joined": Look("connector", 0.6, order=4),
    "trajectory": Look("connector", 0.7, order=4, alpha=0.75, arrow="middle"),
    "path": Look("connector", 0.7, order=4),
    "move": Look("text", 0.9, order=4, arrow="end"),
    "gap": Look("connector", 0.7, (0, (1, 1.5)), 4),
    "sweep": Look("connector", 0.8, order=4, arrow="middle"),
    "sweep-time": Look("connector", 0.8, (0, (4, 2)), 4),
    "overhead": Look("faint", 0.8, (0, (4, 2.5)), 2),
    "corner": Look("text", italic=True),
    "factor": Look("faint"),
    **dict.fromkeys(("name", "number", "step", "speedup", "pile", "loop-name"), Look("text")),
}
