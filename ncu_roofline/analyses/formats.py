"""The formats that something can be rendered to: what their files are called and what they hold, one row each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True)
class Format:
    """One format: its suffixes, what it is good for, the module that makes it, and the package (of an extra) that it needs.

    ``module`` is the file of an analysis' folder that has the function ``render_FORMAT``, or, with a dot, a module elsewhere in
    the package.  ``only`` names the views of a format that few have; the others are named by the analyses that have them.
    """

    suffixes: tuple[str, ...]
    about: str
    module: str
    binary: bool = False
    needs: str = ""
    extra: str = ""
    only: tuple[str, ...] = ()


_DATA = "rendering.data"
FORMATS = {
    "html": Format((".html", ".htm"), "interactive page in one file, works offline", "page"),
    "png": Format((".png",), "chart for screens, 160 dpi", "picture", binary=True),
    "svg": Format((".svg",), "chart for the web and for editing", "picture"),
    "pdf": Format((".pdf",), "chart for papers, TrueType fonts", "picture", binary=True),
    "csv": Format((".csv",), "one table, SI units", _DATA),
    "json": Format((".json",), "points, roofs and kernels with their units", _DATA),
    "parquet": Format((".parquet", ".pq"), "one table with units as metadata", _DATA, True, "pyarrow", "parquet"),
    "md": Format((".md", ".markdown"), "tables for GitHub and GitLab", "text"),
    "text": Format((".txt", ".text"), "the table of `show`", "text"),
    "nersc": Format((), "data file of NERSC's plot_roofline_hierarchical.py, one precision", "nersc", only=("roofline",)),
}


def format_for(path: str) -> str:
    """The format that the suffix of ``path`` stands for, the longest that fits; "" if none does."""
    name = PurePath(path).name.lower()
    fitting = [(len(suffix), key) for key, row in FORMATS.items() for suffix in row.suffixes if name.endswith(suffix)]
    return max(fitting, default=(0, ""))[1]
