"""How charts look whatever they show: themes and markers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

# Shapes that stay apart at 5 points; kernels beyond these get a number too.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "<", ">", "*", "h")


class Hue(Protocol):
    """A colour as ``#RRGGBB`` on light ground and on dark ground."""

    @property
    def light(self) -> str: ...
    @property
    def dark(self) -> str: ...


@dataclass(frozen=True)
class Theme:
    """Colours of everything that is no level."""

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


THEMES = {
    "light": Theme("#FFFFFF", "#1A1A1A", "#5C5C5C", "#E7E7E7", "#333333", "#9A9A9A", False),
    "dark": Theme("#14181D", "#ECEFF2", "#A3ABB4", "#2A3038", "#D5DAE0", "#707A85", True),
}
