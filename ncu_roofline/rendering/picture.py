"""Figures of matplotlib as the bytes of a png, svg or pdf, the same every time, without any window."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.rendering.lettering import Pen, fitted
from ncu_roofline.rendering.paper import DEFAULT, Paper, check_dots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_CSS = 96.0  # pixels per inch
_BETWEEN = " \N{MIDDLE DOT} "  # parts of a subtitle
_SETTINGS: dict[Any, Any] = {
    # Matplotlib brings the first; readers of an svg, whose texts are text, may have to do with the others.
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans", "Bitstream Vera Sans", "Verdana", "Helvetica", "Arial"],
    "text.usetex": False,
    "svg.hashsalt": "ncu-roofline",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "axes.unicode_minus": False,
    "text.hinting": "no_hinting",  # the same widths in png, svg and pdf, and where labels are measured
    "path.simplify": False,
}


def saved(make: Callable[[], Figure], suffix: str) -> bytes:
    """The figure that ``make`` draws as the bytes of a png, svg or pdf, the same every time.

    Raises PaperError for a png of too many dots; nothing that large is made before.
    """
    metadata: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None, "ModDate": None}, "png": {}}
    with settings():
        made = make()
        if suffix == "png":
            width, height = made.get_size_inches()
            check_dots(width, height, made.dpi)
        buffer = io.BytesIO()
        made.savefig(buffer, format=suffix, dpi="figure", facecolor=made.get_facecolor(), metadata=metadata[suffix])
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
    """What makes pngs, svgs (texts are text) and pdfs (TrueType fonts) of the figures of a function.

    They take what the function takes; only a png has dots, elsewhere a pixel is 1/96 inch.
    """

    def render(suffix: str) -> Callable[..., bytes]:
        @wraps(figure)
        def rendered(*frames: Any, **options: Any) -> bytes:
            dots = {} if suffix == "png" else {"dpi": _CSS}
            return saved(lambda: figure(*frames, **{**options, **dots}), suffix)

        return rendered

    return render("png"), render("svg"), render("pdf")


def sheet_over(made: Figure, width: float, height: float) -> Axes:
    """Invisible axes over the whole figure, in points."""
    sheet = made.add_axes((0, 0, 1, 1), facecolor="none", zorder=-1)
    sheet.set_axis_off()
    sheet.set_xlim(0, width)
    sheet.set_ylim(0, height)
    return sheet


def header_height(lines: int, paper: Paper) -> float:
    """Points that a title takes with so many lines below it."""
    return 14 * paper.scale + lines * 1.5 * paper.key + 6 * paper.scale + paper.edge - DEFAULT.edge


def put_header(sheet: Axes, title: str, subtitle: Sequence[str], pen: Pen) -> None:
    """Title and the lines below it at the top of a sheet; of parts between dots the last ones go where all have no room."""
    paper, (width, height) = pen.paper, (sheet.get_xlim()[1], sheet.get_ylim()[1])
    room, top = width - 2 * paper.edge, height - paper.edge + 1
    title = fitted(title, paper.title * 1.25, room, pen.measure)  # bold is wider than what is measured
    pen.put(sheet, paper.edge, top, title, paper.title, va="top", weight="bold")
    top -= 1.65 * paper.title
    for line in subtitle:
        parts = line.split(_BETWEEN)
        while len(parts) > 1 and pen.measure(_BETWEEN.join(parts), paper.key)[0] > room:
            parts.pop()
        pen.put(sheet, paper.edge, top, _BETWEEN.join(parts), paper.key, "faint", room, va="top")
        top -= 1.5 * paper.key
