"""Colours, each once: those of the memory levels stand in their files, here is what goes with them.

Okabe and Ito's palette (Color Universal Design, 2008), which readers with any colour vision can tell apart, darkened until
every hue has a contrast of 3 to 1 on white, as graphics need.
"""

from __future__ import annotations

import re
from typing import Annotated, NamedTuple

from ncu_roofline.base.records import Stated


def _hue(text: str) -> str:
    if not re.fullmatch("#[0-9A-F]{6}", text):
        raise ValueError(f"must be like #0072B2, not {text!r}")
    return text


Hue = Annotated[str, Stated(str, _hue)]


class Color(NamedTuple):
    """A hue as ``#RRGGBB`` on light ground, and lightened for dark ground (or for what is measured, beside theory)."""

    light: Hue
    dark: Hue


WALL, TENSOR = Color("#8A6D00", "#E6B800"), Color("#9966FF", "#CDB8FF")
PLAIN = Color("#6B6B6B", "#A8A8A8")  # of what has no hue of its own: roofs without FMA, kernels whose roof is unknown
SPARE = (WALL, PLAIN, TENSOR)  # for levels that no file describes, such as another machine's L3
GAIN, LOSS = Color("#3B4CC0", "#A3B4FF"), Color("#B3261E", "#FF8A80")  # what got faster and slower, which words say as well
