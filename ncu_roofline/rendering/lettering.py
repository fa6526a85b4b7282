"""Texts on paper: what the font can draw, how wide it is, and how to make it fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ncu_roofline.base.texts import shorten
from ncu_roofline.rendering.layout import Measure
from ncu_roofline.rendering.paper import DEFAULT, Paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ncu_roofline.rendering.style import Hue, Theme


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


def measurer() -> Measure:
    """Extent in points of a text in DejaVu Sans, on a canvas of its own: that of a picture may be too large to be made."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties

    canvas: Any = FigureCanvasAgg(Figure((1, 1), dpi=DEFAULT.dpi))
    renderer, scale = canvas.get_renderer(), 72 / DEFAULT.dpi

    @lru_cache(maxsize=4096)
    def extent(text: str, size: float) -> tuple[float, float]:
        font = FontProperties(family=["DejaVu Sans"], size=size)
        width, height, _ = renderer.get_text_width_height_descent(drawable(text).replace(r"\$", "$"), font, False)
        _, line, _ = renderer.get_text_width_height_descent("lp", font, False)
        return width * scale, max(height, line) * scale

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


def squeezed(text: str, size: float, width: float, measure: Measure) -> str:
    """``text`` cut in its middle to ``width`` points, as names differ at their ends."""
    length = len(text)
    while length > 8 and measure(shorten(text, length), size)[0] > width:
        length -= 1
    return fitted(shorten(text, length), size, width, measure)


def first_fitting(texts: Sequence[str], size: float, width: float, measure: Measure) -> str:
    """The first of ``texts``, from complete to terse, that ``width`` points hold; the last cut where none is so short."""
    return next((text for text in texts if measure(text, size)[0] <= width), fitted(texts[-1], size, width, measure))


def wrapped(notes: Sequence[str], size: float, width: float, most: int, measure: Measure) -> list[str]:
    """Notes as lines of ``width`` points, ``most`` of them at most: what does not fit is left out from the last note on."""
    kept = [note for note in notes if note]
    lines = _lines(kept, size, width, measure)
    while len(lines) > most and len(kept) > 1:
        kept.pop()
        lines = _lines(kept, size, width, measure)
    if len(lines) > most:
        lines[most - 1] = fitted(f"{lines[most - 1]} {lines[most]}", size, width, measure)
    return lines[:most]


def _lines(notes: Sequence[str], size: float, width: float, measure: Measure) -> list[str]:
    lines = [""]
    for word in " ".join(notes).split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and measure(longer, size)[0] > width:
            lines.append(fitted(word, size, width, measure))
        else:
            lines[-1] = fitted(longer, size, width, measure)
    return [line for line in lines if line]


@dataclass(frozen=True)
class Pen:
    """What all of a picture is drawn with; ``shapes`` by the names of things."""

    colours: Theme
    measure: Measure
    paper: Paper
    shapes: Mapping[str, str] = field(default_factory=dict)

    def hue(self, colour: Hue | str | None) -> str:
        """A hue on this ground, or what a theme calls so; that of computing where there is none."""
        return (
            str(getattr(self.colours, colour))
            if isinstance(colour, str)
            else self.colours.of(colour)
            if colour
            else self.hue("compute")
        )

    def put(
        self,
        axes: Axes,
        x: float,
        y: float,
        text: str,
        size: float,
        colour: Hue | str = "text",
        room: float = math.inf,
        ground: bool = False,
        **more: Any,
    ) -> float:
        """Writes a text that is taken literally, cut to some room, on a ``ground`` that keeps lines away; returns its width."""
        shown = fitted(text, size, room, self.measure) if room < math.inf else text
        # Outlined letters instead of a ground would be no text in svg and pdf.
        box = {"boxstyle": "square,pad=0.06", "facecolor": self.colours.ground, "edgecolor": "none", "alpha": 0.75}
        more = {"va": "center_baseline", **({"bbox": box} if ground else {}), **more}
        axes.text(x, y, drawable(shown), fontsize=size, color=self.hue(colour), **more)
        return max(self.measure(line, size)[0] for line in shown.split("\n"))
