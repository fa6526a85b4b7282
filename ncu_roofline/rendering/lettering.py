"""Texts on paper: what the font can draw, how wide it is, and how to make it fit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ncu_roofline.rendering.layout import Measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ncu_roofline.rendering.style import Theme

DPI = 160
KEY_SIZE = 6.6  # of the font


@lru_cache(maxsize=1)
def _glyphs() -> frozenset[int]:
    """Code points that DejaVu Sans can draw."""
    from matplotlib.font_manager import findfont
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(findfont("DejaVu Sans")).get_charmap())


def drawable(text: str) -> str:
    """``text`` with what the font lacks replaced, and no dollar sign that starts a formula."""
    known = _glyphs()
    return "".join(char if ord(char) in known or char == "\n" else "\N{REPLACEMENT CHARACTER}" for char in text).replace(
        "$", r"\$"
    )


def measurer(canvas: Any) -> Measure:
    """Extent in points of a text in DejaVu Sans."""
    from matplotlib.font_manager import FontProperties

    renderer = canvas.get_renderer()

    @lru_cache(maxsize=4096)
    def extent(text: str, size: float) -> tuple[float, float]:
        font = FontProperties(family=["DejaVu Sans"], size=size)
        width, height, _ = renderer.get_text_width_height_descent(drawable(text).replace(r"\$", "$"), font, False)
        _, line, _ = renderer.get_text_width_height_descent("lp", font, False)
        return width * 72 / DPI, max(height, line) * 72 / DPI

    return extent


def fitted(text: str, size: float, width: float, measure: Measure) -> str:
    """``text``, cut at its end to ``width`` points."""
    if measure(text, size)[0] <= width:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if measure(text[:middle] + "...", size)[0] <= width else (low, middle - 1)
    return text[:low].rstrip() + "..."


def wrapped(notes: Sequence[str], size: float, width: float, most: int, measure: Measure) -> list[str]:
    """Notes as lines of ``width`` points, ``most`` of them at most."""
    lines = [""]
    for word in " ".join(notes).split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and measure(longer, size)[0] > width:
            if len(lines) == most:
                lines[-1] = fitted(f"{lines[-1]} {word}", size, width, measure)
                break
            lines.append(fitted(word, size, width, measure))
        else:
            lines[-1] = fitted(longer, size, width, measure)
    return [line for line in lines if line]


def put_text(axes: Axes, x: float, y: float, text: str, size: float, colour: str, **more: Any) -> None:
    """Puts a text that is taken literally."""
    axes.text(x, y, drawable(text), fontsize=size, color=colour, **more)


def put_key(sheet: Axes, x: float, y: float, text: str, colours: Theme, measure: Measure) -> float:
    """Writes one entry of a key and returns where the next may begin."""
    put_text(sheet, x, y, text, KEY_SIZE, colours.text, va="center_baseline")
    return x + measure(text, KEY_SIZE)[0] + 14
