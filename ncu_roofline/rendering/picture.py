"""Figures of matplotlib as the bytes of a png, svg or pdf, the same every time, without any window."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

from ncu_roofline.errors import RooflineError
from ncu_roofline.rendering.layout import Measure
from ncu_roofline.rendering.lettering import DPI, fitted, put_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ncu_roofline.rendering.style import Theme


PAGE_WIDTH = 7.16 * 72  # points: both columns of a two-column paper
_TITLE, _SUBTITLE = 10.0, 6.8  # font sizes
_SETTINGS: dict[Any, Any] = {
    "font.family": ["DejaVu Sans"],
    "text.usetex": False,
    "svg.hashsalt": "ncu-roofline",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "axes.unicode_minus": False,
    "text.hinting": "no_hinting",  # the same widths in png, svg and pdf, and where labels are measured
    "path.simplify": False,
}


def saved(make: Callable[[], Figure], suffix: str) -> bytes:
    """The figure that ``make`` draws as the bytes of a png, svg or pdf, the same every time."""
    metadata: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None, "ModDate": None}, "png": {}}
    with settings():
        made = make()
        buffer = io.BytesIO()
        made.savefig(buffer, format=suffix, dpi=DPI, facecolor=made.get_facecolor(), metadata=metadata[suffix])
    return buffer.getvalue()


@contextmanager
def settings() -> Iterator[None]:
    """Matplotlib's own defaults with ours on top, whatever a user's matplotlibrc says.

    Raises RooflineError where it has no place for its settings, neither in the home folder nor among temporary files.
    """
    try:
        import matplotlib
    except OSError as error:
        reason = "it finds no folder that it may write to"
        next_step = "Set MPLCONFIGDIR or TMPDIR to a folder with space that you may write to."
        raise RooflineError("Cannot draw with", "matplotlib", reason, next_step) from error

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def pictures(figure: Callable[..., Figure]) -> tuple[Callable[..., bytes], Callable[..., bytes], Callable[..., bytes]]:
    """What makes pngs (160 dots per inch), svgs (texts are outlines) and pdfs (TrueType fonts) of the figures of a function.

    They take what the function takes.
    """

    def render(suffix: str) -> Callable[..., bytes]:
        @wraps(figure)
        def rendered(*frames: Any, **options: Any) -> bytes:
            return saved(lambda: figure(*frames, **options), suffix)

        return rendered

    return render("png"), render("svg"), render("pdf")


def sheet_over(made: Figure, width: float, height: float) -> Axes:
    """Invisible axes over the whole figure, in points."""
    sheet = made.add_axes((0, 0, 1, 1), facecolor="none", zorder=-1)
    sheet.set_axis_off()
    sheet.set_xlim(0, width)
    sheet.set_ylim(0, height)
    return sheet


def put_header(sheet: Axes, title: str, subtitle: str, colours: Theme, measure: Measure) -> None:
    """Title and subtitle at the top of a sheet."""
    width, height = sheet.get_xlim()[1], sheet.get_ylim()[1]
    title = fitted(title, _TITLE * 1.25, width - 12, measure)  # bold is wider than what is measured
    put_text(sheet, 6, height - 7, title, _TITLE, colours.text, va="top", weight="bold")
    put_text(sheet, 6, height - 22, fitted(subtitle, _SUBTITLE, width - 12, measure), _SUBTITLE, colours.faint, va="top")
