"""The formats that something can be rendered to: what their files are called and what they hold, one row each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True)
class Format:
    """One format: its suffixes, what it is good for, and the package (of an extra) that it needs."""

    suffixes: tuple[str, ...]
    about: str
    binary: bool = False
    needs: str = ""
    extra: str = ""


FORMATS = {
    "html": Format((".html", ".htm"), "interactive page in one file, works offline"),
    "png": Format((".png",), "chart for screens, 160 dpi", binary=True),
    "svg": Format((".svg",), "chart for the web and for editing"),
    "pdf": Format((".pdf",), "chart for papers, TrueType fonts", binary=True),
    "csv": Format((".csv",), "one table, SI units"),
    "json": Format((".json",), "points, roofs and kernels with their units"),
    "parquet": Format((".parquet", ".pq"), "one table with units as metadata", binary=True, needs="pyarrow", extra="parquet"),
    "md": Format((".md", ".markdown"), "tables for GitHub and GitLab"),
    "text": Format((".txt", ".text"), "the table of `show`"),
    "nersc": Format((), "data file of NERSC's plot_roofline_hierarchical.py, one precision"),
    "junit": Format((), "thresholds for test reports of CI systems"),
}


def format_for(path: str) -> str:
    """The format that the suffix of ``path`` stands for, the longest that fits; "" if none does."""
    name = PurePath(path).name.lower()
    fitting = [(len(suffix), key) for key, row in FORMATS.items() for suffix in row.suffixes if name.endswith(suffix)]
    return max(fitting, default=(0, ""))[1]
