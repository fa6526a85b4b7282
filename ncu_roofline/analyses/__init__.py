"""The ways to look at launches, one folder and one row each, and `render`: what they give in, bytes out.

The modules of a folder are imported when they are used.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import ReportNames

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ncu_roofline.analyses.hierarchical.view import Viewer
    from ncu_roofline.model.roofline import Source
    from ncu_roofline.rendering.document import Document
    from ncu_roofline.rendering.frames import Column

    Result = Any  # what an analysis gives: its `view` is a key of ANALYSES

__all__ = ["ANALYSES", "FORMATS", "Analysis", "analysis_of", "format_for", "render", "text_table", "views"]


class Format(NamedTuple):
    """What its files are called and hold, and the package that it needs, which the extra of its name brings."""

    suffixes: tuple[str, ...]
    about: str
    needs: str = ""


FORMATS = {
    "html": Format((".html", ".htm"), "interactive page in one file, works offline"),
    "png": Format((".png",), "chart for screens, 160 dpi"),
    "svg": Format((".svg",), "chart for the web and for editing"),
    "pdf": Format((".pdf",), "chart for papers, TrueType fonts"),
    "csv": Format((".csv",), "one table, SI units"),
    "json": Format((".json",), "points, roofs and kernels with their units"),
    "parquet": Format((".parquet", ".pq"), "one table with units as metadata", "pyarrow"),
    "md": Format((".md", ".markdown"), "tables for GitHub and GitLab"),
    "text": Format((".txt", ".text"), "the table of `show`"),
    "nersc": Format((), "data file of NERSC's plot_roofline_hierarchical.py, one precision"),
}


def format_for(path: str) -> str:
    """The format that the suffix of ``path`` stands for, the longest that fits; "" if none does."""
    fitting = [(len(suffix), key) for key, row in FORMATS.items() for suffix in row.suffixes if path.lower().endswith(suffix)]
    return max(fitting, default=(0, ""))[1]


class Analysis(NamedTuple):
    """One analysis: its view, what its chart shows, and the modules of this package that make what it has.

    ``home`` has its TABLES, and where commands have a --view its VIEWER.  ``made`` says by format which module has a function
    ``render_FORMAT``, or a ``document`` for text and Markdown.  ``commands`` are those whose --view names it, ``holds`` what
    their --table does: the columns with the model behind them are too much to load for a help text.  ``instead`` are the tables
    that a file holds for the first of them where no kernel has any: the first that has rows.
    """

    view: str
    about: str
    home: str
    made: Mapping[str, str]
    commands: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    instead: tuple[str, ...] = ("kernels",)

    @property
    def formats(self) -> dict[str, Format]:
        return {name: row for name, row in FORMATS.items() if name in self.made}

    @property
    def tables(self) -> Mapping[str, tuple[Column, ...]]:
        """Its tables with their columns; the first is what csv and parquet hold if nobody says which."""
        tables: Mapping[str, tuple[Column, ...]] = _module(self.home).TABLES
        return tables

    @property
    def head(self) -> Mapping[str, Any]:
        """What its JSON begins with: schema, version, view."""
        head: Mapping[str, Any] = getattr(_module(self.home), "HEAD", None) or _module(_DATA).head_of(self.view)
        return head

    @property
    def viewer(self) -> Viewer:
        made: Viewer = _module(self.home).VIEWER
        return made

    def maker(self, format: str) -> Callable[..., bytes]:  # noqa: A002
        """The function that makes a format.  Raises KeyError for a format that it does not have."""
        module = _module(self.made[format])
        made: Callable[..., bytes] | None = getattr(module, f"render_{format}", None)
        if made is None:
            from ncu_roofline.rendering.document import renderer

            made = renderer(module.document, format)
        return made

    @property
    def document(self) -> Callable[..., Document]:
        made: Callable[..., Document] = _module(self.made["text"]).document
        return made

    def takes(self, format: str, option: str) -> bool:  # noqa: A002
        """Whether the maker of a format has a use for an option."""
        return option in inspect.signature(self.maker(format)).parameters


def _module(name: str) -> Any:
    return importlib.import_module(f"ncu_roofline.{name}" if name == _DATA else f"{__name__}.{name}")


def _all(folder: str, page: str = "page") -> dict[str, str]:
    pictures, texts = dict.fromkeys(("png", "svg", "pdf"), f"{folder}.picture"), dict.fromkeys(("md", "text"), f"{folder}.text")
    return {"html": f"{folder}.{page}", **pictures, **_AS_DATA, **texts}


_DATA = "rendering.frames"
_AS_DATA = dict.fromkeys(("csv", "json", "parquet"), _DATA)
_DRAWN, _EXPLAINED, _FRAMES = ("show", "render"), ("show", "render", "explain"), ("points", "roofs", "kernels")
_INSIDE = ("lines", "outer_lines", "loops", "functions", "instructions", "stalls", "totals", "findings")
_LIMITED = {**_AS_DATA, "md": "compare.budget", "text": "compare.budget"}
_PHASES, _PORTABLE = ("points", "bands", "sampled", "roofs"), dict.fromkeys(("json", "text", "md"), "portability")
_ROOFLINE = {
    **_all("hierarchical"),
    "nersc": "hierarchical.text",
}
_COUNTED = {**_all("hierarchical"), **dict.fromkeys(("md", "text"), "run.counted")}
_ROWS = (
    Analysis("roofline", "FLOP/s over FLOPs per byte", "hierarchical.view", _ROOFLINE, _EXPLAINED, _FRAMES),
    Analysis(
        "time", "run time, complexity and launch overhead", "time.frames", _all("time", "text"), _DRAWN,
        ("points", "machines", "absent"), ("absent",),
    ),
    Analysis("instruction", "warp instructions over transactions", "instruction", _all("hierarchical"), _EXPLAINED, _FRAMES),
    Analysis(
        "phases", "the roofline over time inside a kernel", "phases.frames", _all("phases", "text"), _EXPLAINED, _PHASES,
        ("bands", "sampled"),
    ),
    Analysis(
        "ranks", "ranks of a run side by side", "ranks", {**_AS_DATA, "text": "ranks"},
        holds=("kernels", "ranks", "points"),
    ),
    Analysis("comparison", "before and after", "compare.columns", _all("compare", "picture")),
    Analysis("budget", "limits and what is over them", "compare.budget", _LIMITED, holds=("limits",)),
    Analysis("run-comparison", "operators of a run before and after", "compare.runs", _all("compare", "picture")),
    Analysis("source", "lines, loops and functions inside a kernel", "source.frames", _all("source"), holds=_INSIDE),
    Analysis(
        "run", "operators of a whole run", "run.frames", _all("run"),
        holds=("operators", "chains", "runs", "roofs"),
    ),
    Analysis(
        "counted", "a run with the counts of reports", "run.counted", _COUNTED,
        holds=(*_FRAMES, "needs", "coverage"),
    ),
    Analysis("portability", "one application on several platforms", "portability", {"csv": _DATA, **_PORTABLE}),
)  # fmt: skip
ANALYSES = {row.view: row for row in _ROWS}


def analysis_of(frames: object) -> Analysis:
    return ANALYSES[getattr(frames, "view", "roofline")]


def views(command: str) -> dict[str, Analysis]:
    """The analyses that --view of a command names."""
    return {name: row for name, row in ANALYSES.items() if command in row.commands}


OPTIONS = {
    "title": "of a page, a picture, Markdown",
    "theme": '"light" or "dark", of a page and an svg also "auto"',
    "top": "kernels in a picture",
    "table": "of csv and parquet: a key of the view's `tables`",
    "width": "of text, in characters; of a picture a length as 3.3in",
    "height": "of a picture",
    "font": "of a picture, in points",
    "dpi": "of a png",
    "preset": "of a picture: sizes to begin with",
    "size": "of a picture: what the area of a dot says",
    "bare": "of a picture: chart and legend alone",
    "ascii_only": "of text",
    "explanations": "of a page: what is missing",
    "advice": "of a page: what rules found",
    "by": "of the source view as text: loop, line, outer-line, function or instruction",
    "rows": "of its tables as text, 0 for all",
    "sort": "what these are ranked by: samples, work, traffic, excess or executed",
}
"""What `render` can be told besides the format, and of what."""


def render(
    roofline: Result | Source | Sequence[Source],
    format: str,  # noqa: A002
    **options: Any,
) -> bytes:
    """A Roofline, or what another analysis gives, in one of the formats that ANALYSES has for it, as the bytes of a file.

    Reports (paths, open ones, or a list, as the function `roofline` takes them) are drawn as the Roofline of their launches,
    under their base names.  Options a format has no use for are ignored, so that one set goes with all: `OPTIONS` has them.
    Raises ValueError for a format that there is not and for an option's wrong value, TypeError for an unknown option and for
    what can't be rendered, RooflineError for files that can't be read and for a package that is missing.

    >>> render("gpp-v100.ncu-rep", "svg", title="GPP")[:5]
    b'<?xml'
    """
    unknown = ", ".join(name for name in options if name not in OPTIONS)
    if unknown:
        raise TypeError(f"render() has no option {unknown}: it has {', '.join(OPTIONS)}")
    title = options.get("title")
    if not isinstance(title, str | None):
        raise TypeError(f"the title is text, not an object of type {type(title).__name__}")
    frames: Any = roofline
    if not hasattr(roofline, "view") and not all(hasattr(roofline, name) for name in ("points", "roofs", "kernels")):
        from dataclasses import replace

        from ncu_roofline import model

        measured = model.measurements_of(frames)
        named, called = measured.report.tolist(), measured.report.copy()
        called[:] = list(map(ReportNames.apart(named), named))  # results are passed on
        frames = model.roofline(replace(measured, report=called))
    analysis = analysis_of(frames)
    if format not in analysis.formats:
        raise ValueError(f"format must be one of {', '.join(analysis.formats)}, not {format!r}")
    row = analysis.formats[format]
    if row.needs and find_spec(row.needs) is None:
        fix = f"pip install 'ncu-roofline[{format}]'"
        raise RooflineError("Cannot render", format, f"the package {row.needs} is not installed", f"Install it with {fix}.")
    make = analysis.maker(format)
    taken = inspect.signature(make).parameters
    given = {**options, "tables": analysis.tables} if "tables" in taken else options
    return make(frames, **{name: value for name, value in given.items() if name in taken})


def figure_of(result: Result, *, onto: Axes | None = None, **options: Any) -> Figure | None:
    """A result as a matplotlib figure, or the first chart of it on the axes ``onto``; ``options`` as `render` has for pictures.

    Raises TypeError for a result that no picture is made of, ValueError for an option's wrong value.
    """
    from ncu_roofline.rendering.picture import settings

    analysis = analysis_of(result)
    if "png" not in analysis.formats:
        raise TypeError(f"there is no picture of a {type(result).__name__}")
    make: Any = analysis.maker("png")
    with settings(saves=onto is None):
        if onto is None:
            made: Figure = make.__wrapped__(result, **options)
            return made
        if not hasattr(make, "onto"):
            raise TypeError(f"a {type(result).__name__} is more than one chart: use its figure()")
        make.onto(result, onto, **options)
    return None


def text_table(roofline: Any, **options: Any) -> str:
    """What `ncu-roofline show` prints: options are those of the view's document and of a terminal (width, color, top ...)."""
    from ncu_roofline.rendering.document import terminal

    make = analysis_of(roofline).document
    own = {name: options.pop(name) for name in inspect.signature(make).parameters if name in options}
    return terminal(make(roofline, **own), **options)
