"""Colours, each once: those of the memory levels stand in their files, here is what goes with them.

Okabe and Ito's palette (Color Universal Design, 2008), which readers with any colour vision can tell apart, darkened until
every hue has a contrast of 3 to 1 on white, as graphics need.
"""

from __future__ import annotations

from typing import NamedTuple


class Color(NamedTuple):
    """A hue as ``#RRGGBB`` on light ground, and lightened for dark ground (or for what is measured, beside theory)."""

    light: str
    dark: str


WALL = Color("#8A6D00", "#E6B800")
PLAIN = Color("#6B6B6B", "#A8A8A8")
"""Of what has no hue of its own: roofs without FMA, kernels whose roof is unknown."""
TENSOR = Color("#9966FF", "#CDB8FF")
SPARE = (WALL, PLAIN, TENSOR)
"""For levels that no file describes, such as another machine's L3."""
GAIN, LOSS = Color("#3B4CC0", "#A3B4FF"), Color("#B3261E", "#FF8A80")
"""Of what got faster and slower; both are also said in words."""
