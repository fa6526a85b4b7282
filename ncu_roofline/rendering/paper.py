"""The paper a picture is drawn on: its size, the size of its letters, and presets for columns, pages and slides."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from ncu_roofline.base.texts import shorten

SMALLEST = 6.0  # points: smaller letters are not read in print
_UNITS = {"in": 72.0, "cm": 72 / 2.54, "mm": 72 / 25.4, "pt": 1.0}
_LENGTH = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]+)\s*", re.ASCII)
_WIDTHS = (1.5 * 72, 60 * 72.0)
_HEIGHTS = (1.5 * 72, 200 * 72.0)
_FONTS = (SMALLEST, 72.0)
_DOTS = (36.0, 2400.0)
_MOST_DOTS = 100e6  # of a png: four bytes each while it is drawn
_BASE = 7.2  # font of the names of axes, by which all other sizes go


class PaperError(ValueError):
    """What is asked for leaves no room to draw, or cannot be read."""


@dataclass(frozen=True)
class Paper:
    """Width and height in points (no height: as high as what is on it), font size in points, dots per inch."""

    width: float = 7.16 * 72  # both columns of a two-column paper
    height: float = 0.0
    font: float = _BASE
    dpi: float = 160.0

    @property
    def scale(self) -> float:
        """By what lengths that go with the letters are larger than on the default paper."""
        return self.font / _BASE

    @property
    def edge(self) -> float:
        """Points that stay free along the edges."""
        return 6.0 * max(1.0, self.scale)

    def size(self, points: float) -> float:
        """Size of letters that have ``points`` on the default paper, never below what can be read."""
        return max(SMALLEST, points * self.scale)

    @property
    def title(self) -> float:
        """Font size of the title."""
        return self.size(10.0)

    @property
    def axis(self) -> float:
        """Font size of the names of axes."""
        return self.size(7.2)

    @property
    def key(self) -> float:
        """Font size of keys, ticks and subtitles."""
        return self.size(6.6)

    @property
    def label(self) -> float:
        """Font size of labels inside the axes."""
        return self.size(6.4)

    @property
    def small(self) -> float:
        """Font size of notes and numbers."""
        return self.size(6.0)

    @property
    def row(self) -> float:
        """Points from one line of keys to the next."""
        return 1.55 * self.key

    @property
    def note_row(self) -> float:
        """Points from one line of notes to the next."""
        return 1.43 * self.small


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
    found = _LENGTH.fullmatch(text.lower())
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
    """The paper that is asked for: what is None is that of the preset, or of the default paper.

    ``width`` and ``height`` are lengths with their unit ("84mm"), or inches as numbers; ``font`` is in points.
    Raises PaperError for an unknown preset, and for sizes that nothing can be drawn or read in.
    """
    if preset is not None and preset not in PRESETS:
        raise PaperError(f"preset {preset!r} is not one of {', '.join(PRESETS)}")
    base = PRESETS[preset] if preset else DEFAULT
    dots = _within("dpi", base.dpi if dpi is None else dpi, *_DOTS, "dots per inch")
    found = Paper(
        base.width if width is None else _points("width", width, dots, *_WIDTHS),
        base.height if height is None else _points("height", height, dots, *_HEIGHTS),
        _within("font", base.font if font is None else font, *_FONTS, "points"),
        dots,
    )
    if found.width < 14 * found.font:
        raise PaperError(f"width {found.width / 72:.3g}in has no room for letters of {found.font:g} points")
    return found


def _points(name: str, value: str | float, dpi: float, least: float, most: float) -> float:
    if not isinstance(value, str):
        points = 72.0 * _number(name, value, "inches")
    else:
        try:
            points = length(value, dpi)
        except PaperError as error:
            raise PaperError(f"{name} {error}") from error
    _within(name, points / 72, least / 72, most / 72, "inches")
    return points


def _within(name: str, value: float, least: float, most: float, unit: str) -> float:
    number = _number(name, value, unit)
    if not least <= number <= most:
        raise PaperError(f"{name} {number:.7g} is not between {least:g} and {most:g} {unit}")
    return number


def _number(name: str, value: float, unit: str) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return math.inf
    except (TypeError, ValueError):
        raise PaperError(f"{name} {shorten(repr(value), 40)} is no number of {unit}") from None


def check_dots(width: float, height: float, dpi: float) -> None:
    """Raises PaperError where a png of so many inches would be more dots than a machine can hold."""
    dots = width * height * dpi**2
    if dots > _MOST_DOTS:
        raise PaperError(f"dpi {dpi:g} makes {dots / 1e6:.0f} million dots of it, more than {_MOST_DOTS / 1e6:.0f}")
