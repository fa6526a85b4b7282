"""The paper a picture is drawn on, and the pen: colours, sizes of letters, what the font can draw, and how texts fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ncu_roofline.base.texts import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ncu_roofline.rendering.chart import Hue

SMALLEST = 6.0  # points: smaller letters are not read in print
_UNITS = {"in": 72.0, "cm": 72 / 2.54, "mm": 72 / 25.4, "pt": 1.0}
_BASE = 7.2  # font of the names of axes, by which all other sizes go
_BOLD = 1.2  # bold letters are wider than those that are measured


class PaperError(ValueError):
    """What is asked for leaves no room to draw, or cannot be read."""


@dataclass(frozen=True)
class Paper:
    """Width and height in points (no height: as high as what is on it), font size in points, dots per inch."""

    width: float = 7.16 * 72  # both columns of a two-column paper
    height: float = 0.0
    font: float = _BASE
    dpi: float = 160.0


DEFAULT = Paper()
SIZES = ("equal", "time")  # what the areas of dots say
PRESETS = {
    "column": Paper(3.3 * 72, font=8.0, dpi=300.0),
    "page": Paper(6.9 * 72, font=9.0, dpi=300.0),
    "slide": Paper(13.333 * 72, 7.5 * 72, font=18.0, dpi=144.0),
}
PRESETS_HELP = "column: 3.3in wide, 8 pt; page: 6.9in, 9 pt; slide: 13.3in x 7.5in, 18 pt"


def length(text: str, dpi: float = 96.0) -> float:
    """A length such as 3.3in, 84mm, 8.4cm, 240pt or 800px (dots at ``dpi``) in points.  Raises PaperError for another text."""
    import re

    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]+)\s*", text.lower(), re.ASCII)
    units = {**_UNITS, "px": 72 / dpi}
    if not found or found[2] not in units:
        raise PaperError(f"{shorten(repr(text), 40)} is not a length such as 3.3in, 84mm, 8.4cm, 240pt or 800px")
    return float(found[1]) * units[found[2]]


def paper_of(
    width: str | float | None = None,
    height: str | float | None = None,
    font: float | None = None,
    dpi: float | None = None,
    preset: str | None = None,
) -> Paper:
    """The paper that is asked for: what is None is that of the preset, or of the default paper; ``width`` and ``height`` are
    lengths with their unit ("84mm"), or inches, ``font`` is in points.  Raises PaperError for an unknown preset, and for sizes
    that nothing can be drawn or read in."""
    if preset is not None and preset not in PRESETS:
        raise PaperError(f"preset {preset!r} is not one of {', '.join(PRESETS)}")
    base = PRESETS[preset] if preset else DEFAULT

    def within(name: str, value: Any, least: float, most: float, unit: str) -> float:
        try:
            number = float(length(value, dots) / 72 if isinstance(value, str) and unit == "inches" else value)
        except PaperError as error:
            raise PaperError(f"{name} {error}") from error
        except OverflowError:  # a whole number of hundreds of digits
            number = math.inf
        except (TypeError, ValueError):
            raise PaperError(f"{name} {shorten(repr(value), 40)} is no number of {unit}") from None
        if not least <= number <= most:
            raise PaperError(f"{name} {number:.7g} is not between {least:g} and {most:g} {unit}")
        return number

    dots = within("dpi", base.dpi if dpi is None else dpi, 36.0, 2400.0, "dots per inch")
    wide = base.width if width is None else 72 * within("width", width, 1.5, 60.0, "inches")
    high = base.height if height is None else 72 * within("height", height, 1.5, 200.0, "inches")
    letters = within("font", base.font if font is None else font, SMALLEST, 72.0, "points")
    if wide < 14 * letters:
        raise PaperError(f"width {wide / 72:.3g}in has no room for letters of {letters:g} points")
    return Paper(wide, high, letters, dots)


@lru_cache(maxsize=1)
def _glyphs() -> frozenset[int]:
    """Code points that DejaVu Sans can draw."""
    from matplotlib.font_manager import findfont
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(findfont("DejaVu Sans")).get_charmap())


def drawable(text: str) -> str:
    """``text`` with what the font lacks replaced, and no dollar sign that starts a formula."""
    known = _glyphs()
    shown = "".join(char if ord(char) in known or char == "\n" else "\N{REPLACEMENT CHARACTER}" for char in text)
    return shown.replace("$", r"\$")


def measurer(dpi: float = DEFAULT.dpi) -> Callable[[str, float], tuple[float, float]]:
    """Width and height (points) of a text, on a canvas of its own: that of a picture may be too large.  With few dots letters
    are wider, as they begin at whole dots."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties

    canvas: Any = FigureCanvasAgg(Figure((1, 1), dpi=dpi))
    renderer, scale = canvas.get_renderer(), 72 / dpi

    @lru_cache(maxsize=4096)
    def extent(text: str, size: float) -> tuple[float, float]:
        font, shown = FontProperties(family=["DejaVu Sans"], size=size), drawable(text).replace(r"\$", "$")
        width, height, _ = renderer.get_text_width_height_descent(shown, font, False)
        return width * scale, max(height * scale, extent("lp", size)[1] if text != "lp" else 0.0)

    return extent


class Pen:
    """What all of a picture is drawn with: colours, ``shapes`` by the names of things, and lengths in points: sizes of letters
    of the title, of headings of blocks, of names of axes, of keys (ticks and subtitles too), of labels inside the axes, of
    small notes; from one line of keys or notes to the next; what stays free along the edges.  ``scale``: by how much lengths
    that go with the letters are larger than on the default paper."""

    def __init__(self, theme: str = "light", paper: Paper = DEFAULT) -> None:
        from ncu_roofline.rendering.chart import THEMES  # not where only sizes are asked for: commands start with these

        self.colours, self.paper, self.measure = THEMES[theme], paper, measurer()
        self.shapes: dict[str, str] = {}
        self.scale = paper.font / _BASE
        sizes = (max(SMALLEST, points * self.scale) for points in (10.0, 7.6, 7.2, 6.6, 6.4, 6.0))
        self.title, self.heading, self.axis, self.key, self.label, self.small = sizes
        self.row, self.note_row, self.edge = 1.55 * self.key, 1.43 * self.small, 6.0 * max(1.0, self.scale)

    def wide(self, text: str, size: float) -> float:
        """Points that a text takes."""
        return self.measure(text, size)[0]

    def fitted(self, text: str, size: float, room: float, middle: bool = False) -> str:
        """``text``, cut at its end to some room; or in its ``middle``, as names differ at their ends."""
        if self.wide(text, size) <= room:
            return text
        low, high = 0, len(text)
        while low < high:
            most = (low + high + 1) // 2
            shown = shorten(text, most) if middle else text[:most] + "..."
            low, high = (most, high) if self.wide(shown, size) <= room else (low, most - 1)
        return shorten(text, low) if middle and low > 7 else text[:low].rstrip() + "..."

    def first_fitting(self, texts: Sequence[str], size: float, room: float) -> str:
        """The first of ``texts``, from complete to terse, that has room; the last cut where none is so short."""
        return next((text for text in texts if self.wide(text, size) <= room), self.fitted(texts[-1], size, room))

    def wrapped(self, notes: Sequence[str], size: float, room: float, most: int) -> list[str]:
        """Notes as lines, ``most`` of them at most: what does not fit is left out from the last note on."""
        kept = [note for note in notes if note]
        while True:
            lines: list[str] = []
            for word in " ".join(kept).split():
                longer = f"{lines[-1]} {word}" if lines else word
                if lines and self.wide(longer, size) > room:
                    lines.append(self.fitted(word, size, room))
                else:
                    lines[-1:] = [self.fitted(longer, size, room)]
            if len(lines) <= most or len(kept) < 2:
                break
            kept.pop()
        if len(lines) > most:
            lines[most - 1 :] = [self.fitted(f"{lines[most - 1]} {lines[most]}", size, room)] if most else []
        return lines

    def put(
        self,
        axes: Axes,
        x: float,
        y: float,
        text: str,
        size: float,
        colour: Hue | str | None = "text",
        room: float = math.inf,
        ground: bool = False,
        **more: Any,
    ) -> float:
        """Writes a text that is taken literally, cut to some room, on a ``ground`` that keeps lines away; returns its width."""
        wider = _BOLD if more.get("weight") == "bold" else 1.0
        shown = self.fitted(text, size * wider, room) if room < math.inf else text
        # Outlined letters instead of a ground would be no text in svg and pdf.
        box = {"boxstyle": "square,pad=0.06", "facecolor": self.colours.ground, "edgecolor": "none", "alpha": 0.75}
        more = {"va": "center_baseline", **({"bbox": box} if ground else {}), **more}
        axes.text(x, y, drawable(shown), fontsize=size, color=self.colours.of(colour), **more)
        return max(self.wide(line, size * wider) for line in shown.split("\n"))
