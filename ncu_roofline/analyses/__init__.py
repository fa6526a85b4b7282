"""A Roofline in, bytes out: pictures, an interactive page, tables and data.

Nothing here opens a file or knows a chip; each format is one row of RENDERERS, imported when it is used.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ncu_roofline.errors import RooflineError

if TYPE_CHECKING:
    from ncu_roofline.analyses.compare.text import ComparisonFrames
    from ncu_roofline.analyses.hierarchical.chart import Frames
    from ncu_roofline.analyses.ranks.text import RankFrames

__all__ = ["RENDERERS", "Renderer", "format_for", "render", "text_table"]


@dataclass(frozen=True)
class Renderer:
    """One format: the function that makes it, its suffixes, and the options the function takes."""

    module: str
    function: str
    suffixes: tuple[str, ...]
    about: str
    options: tuple[str, ...]
    binary: bool = False
    needs: str = ""
    extra: str = ""


_LOOK = ("title", "theme", "top")
RENDERERS = {
    "html": Renderer(
        "ncu_roofline.analyses.hierarchical.page",
        "render_html",
        (".html", ".htm"),
        "interactive page in one file, works offline",
        ("title", "theme", "explanations", "advice"),
    ),
    "png": Renderer(
        "ncu_roofline.analyses.hierarchical.picture", "render_png", (".png",), "chart for screens, 160 dpi", _LOOK, binary=True
    ),
    "svg": Renderer(
        "ncu_roofline.analyses.hierarchical.picture", "render_svg", (".svg",), "chart for the web and for editing", _LOOK
    ),
    "pdf": Renderer(
        "ncu_roofline.analyses.hierarchical.picture",
        "render_pdf",
        (".pdf",),
        "chart for papers, TrueType fonts",
        _LOOK,
        binary=True,
    ),
    "csv": Renderer("ncu_roofline.rendering.data", "render_csv", (".csv",), "one table, SI units", ("table",)),
    "json": Renderer(
        "ncu_roofline.rendering.data", "render_json", (".json",), "points, roofs and kernels with their units", ()
    ),
    "parquet": Renderer(
        "ncu_roofline.rendering.data",
        "render_parquet",
        (".parquet", ".pq"),
        "one table with units as metadata",
        ("table",),
        binary=True,
        needs="pyarrow",
        extra="parquet",
    ),
    "md": Renderer(
        "ncu_roofline.analyses.hierarchical.markdown",
        "render_md",
        (".md", ".markdown"),
        "tables for GitHub and GitLab",
        ("title",),
    ),
    "text": Renderer(
        "ncu_roofline.analyses.hierarchical.text",
        "render_text",
        (".txt", ".text"),
        "the table of `show`",
        ("width", "ascii_only"),
    ),
    "nersc": Renderer(
        "ncu_roofline.analyses.hierarchical.nersc",
        "render_nersc",
        (),
        "data file of NERSC's plot_roofline_hierarchical.py, one precision",
        (),
    ),
}


# Merged ranks are tables: no picture shows them.
_RANKS = {
    **{name: RENDERERS[name] for name in ("csv", "json", "parquet")},
    "text": replace(RENDERERS["text"], module="ncu_roofline.analyses.ranks.text", function="render_ranks"),
}
_TIME_MODULES = {
    "html": "time_page",
    **dict.fromkeys(("png", "svg", "pdf"), "time_picture"),
    "md": "time_markdown",
    "text": "time_text",
}
_TIME = {
    name: replace(RENDERERS[name], module=f"ncu_roofline.analyses.{_TIME_MODULES.get(name, 'data')}")
    for name in (*_TIME_MODULES, "csv", "json", "parquet")
}
_COMPARISON_TEXT = "ncu_roofline.analyses.compare.text"
_COMPARISON = {
    **{name: RENDERERS[name] for name in ("csv", "json", "parquet")},
    "md": replace(RENDERERS["md"], module=_COMPARISON_TEXT),
    "text": replace(RENDERERS["text"], module=_COMPARISON_TEXT, about="the text of `compare`"),
    "junit": Renderer(
        "ncu_roofline.analyses.compare.junit", "render_junit", (), "thresholds for test reports of CI systems", ("strict",)
    ),
}
_PORTABILITY = {
    name: replace(RENDERERS[name], module="ncu_roofline.analyses.portability.text", options=("title",) if name == "md" else ())
    for name in ("text", "csv", "md", "json")
}
_TIME["html"] = replace(_TIME["html"], options=("title", "theme", "explanations"))
# View of what is rendered -> its renderers by format; each view has every format, but for merged ranks and comparisons.
VIEWS: dict[str, dict[str, Renderer]] = {
    "roofline": RENDERERS,
    "instruction": {name: row for name, row in RENDERERS.items() if name != "nersc"},  # that format holds FLOP and bytes only
    "time": _TIME,
    "ranks": _RANKS,
    "comparison": _COMPARISON,
    "portability": _PORTABILITY,
}


def format_for(path: str) -> str:
    """The format that the suffix of ``path`` stands for, "" if none does."""
    suffix = PurePath(path).suffix.lower()
    return next((name for name, row in RENDERERS.items() if suffix in row.suffixes), "")


def renderers_of(frames: object) -> dict[str, Renderer]:
    """The renderers for what is given: those of its view (``view`` of a Roofline is "roofline")."""
    return VIEWS[getattr(frames, "view", "roofline")]


def render(roofline: Frames | RankFrames | ComparisonFrames, format: str, **options: Any) -> bytes:  # noqa: A002
    """A Roofline, or what another model gives, in one of the formats that VIEWS has for it.

    Options a format has no use for are ignored, so that one set goes with all: ``title``, ``theme`` ("light", "dark"; of a page
    also "auto"), ``top`` (kernels in a picture), ``table`` ("points", "roofs", "kernels"), ``width`` (characters) and
    ``ascii_only`` (of text), ``explanations`` and ``advice`` (of a page).
    Raises KeyError for an unknown format, ValueError for an option's wrong value, RooflineError for a package that is missing.
    """
    row = renderers_of(roofline)[format]
    if row.needs and find_spec(row.needs) is None:
        fix = f"pip install 'ncu-roofline[{row.extra}]'"
        raise RooflineError("Cannot render", format, f"the package {row.needs} is not installed", f"Install it with {fix}.")
    function = getattr(importlib.import_module(row.module), row.function)
    result: bytes = function(roofline, **{name: value for name, value in options.items() if name in row.options})
    return result


def text_table(roofline: Frames, *, width: int = 100, color: bool = False, ascii_only: bool = False) -> str:
    """The terminal table of `ncu-roofline show`."""
    make = importlib.import_module(renderers_of(roofline)["text"].module).text_table
    text: str = make(roofline, width=width, color=color, ascii_only=ascii_only)
    return text
