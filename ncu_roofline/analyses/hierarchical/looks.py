"""Colours of levels on the ground of a theme."""

from __future__ import annotations

from ncu_roofline.analyses.hierarchical.style import level_style
from ncu_roofline.rendering.style import Theme


def level_colour(level: str, colours: Theme) -> str:
    """Colour of a level on the theme's ground."""
    return colours.of(level_style(level))
