"""Colours, dashes and fills of what a roofline shows, on the ground of a theme."""

from __future__ import annotations

from typing import Any

from ncu_roofline.analyses.hierarchical.style import level_style
from ncu_roofline.rendering.style import Theme

BAND = 0.16  # opacity of the band between the lowest and the highest roof of the launches
THEORY: Any = (0, (4, 2.5))  # dashes of theoretical roofs where there are measured ones, too
_OUTLINE = 1.0  # points


def level_colour(level: str, colours: Theme) -> str:
    """Colour of a level on the theme's ground."""
    return colours.of(level_style(level))


def face(fill: str, colour: str, colours: Theme) -> dict[str, Any]:
    """A symbol of a colour: full, none (an outline) or half filled (left, bottom, right, top), as matplotlib takes it."""
    if fill == "full":
        return {"mfc": colour, "mec": colours.ground, "mew": 0.4}
    if fill == "none":
        return {"mfc": colours.ground, "mec": colour, "mew": _OUTLINE}
    return {"fillstyle": fill, "mfc": colour, "mfcalt": colours.ground, "mec": colour, "mew": _OUTLINE * 0.7}
