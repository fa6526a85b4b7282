"""Figures of matplotlib as the bytes of a png, svg or pdf, the same every time, without any window."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ncu_roofline.rendering.lettering import DPI

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    """Matplotlib's own defaults with ours on top, whatever a user's matplotlibrc says."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield
