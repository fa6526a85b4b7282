"""The ways to look at launches, one folder and one row each, and `render`: what they give in, bytes out.

`render` opens no file; the modules of a folder are imported when they are used.
"""

from __future__ import annotations

import base64
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ncu_roofline.analyses.formats import FORMATS, Format
from ncu_roofline.errors import RooflineError

if TYPE_CHECKING:
    from ncu_roofline.analyses.compare.text import ComparisonFrames
    from ncu_roofline.analyses.hierarchical.view import Viewer
    from ncu_roofline.analyses.ranks.text import RankFrames
    from ncu_roofline.rendering.frames import Column, Frames

__all__ = ["ANALYSES", "Analysis", "analysis_of", "render", "text_table", "views"]


@dataclass(frozen=True)
class Analysis:
    """One analysis: its view, the folder of its code, what its chart shows, and the formats that it has.

    Which module makes a format is said in FORMATS; ``elsewhere`` names those that are made by another one, and ``drawn_by`` the
    folder that makes all of them for an analysis whose frames look like those of another.  ``commands`` are those whose --view
    names it, ``holds`` what their --table does: the columns with the model behind them are too much to load for a help text.
    """

    view: str
    folder: str
    about: str
    has: tuple[str, ...]
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    drawn_by: str = ""
    commands: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()

    @property
    def formats(self) -> dict[str, Format]:
        """Its formats by name, in the order of FORMATS."""
        return {name: row for name, row in FORMATS.items() if name in (*self.has, *self.elsewhere) or self.view in row.only}

    @property
    def tables(self) -> Mapping[str, tuple[Column, ...]]:
        """Its tables with their columns; the first is what csv and parquet hold if nobody says which."""
        tables: Mapping[str, tuple[Column, ...]] = importlib.import_module(
            f"ncu_roofline.analyses.{self.folder}.columns"
        ).TABLES
        return tables

    @property
    def viewer(self) -> Viewer:
        """How its ``commands`` get its frames."""
        made: Viewer = importlib.import_module(f"ncu_roofline.analyses.{self.folder}.view").VIEWER
        return made

    def module(self, format: str) -> Any:  # noqa: A002
        """The module that makes a format, imported now.  Raises KeyError for a format that it does not have."""
        name = self.elsewhere.get(format, self.formats[format].module)
        return importlib.import_module(
            f"ncu_roofline.{name if '.' in name else f'analyses.{self.drawn_by or self.folder}.{name}'}"
        )

    def maker(self, format: str) -> Callable[..., bytes]:  # noqa: A002
        """The function that makes a format."""
        made: Callable[..., bytes] = getattr(self.module(format), f"render_{format}")
        return made

    def takes(self, format: str, option: str) -> bool:  # noqa: A002
        """Whether the maker of a format has a use for an option."""
        return option in inspect.signature(self.maker(format)).parameters


_TABLES = ("csv", "json", "parquet", "text")
_CHART = (*_TABLES, "html", "png", "svg", "pdf", "md")
_DRAWN, _EXPLAINED = ("show", "render"), ("show", "render", "explain")
_FRAMES, _TIMES = ("points", "roofs", "kernels"), ("points", "machines", "absent")
_ROWS = (
    Analysis("roofline", "hierarchical", "FLOP/s over FLOPs per byte", _CHART, commands=_EXPLAINED, holds=_FRAMES),
    Analysis("time", "time", "run time, complexity and launch overhead", _CHART, commands=_DRAWN, holds=_TIMES),
    Analysis(
        "instruction",
        "instruction",
        "warp instructions over transactions",
        _CHART,
        drawn_by="hierarchical",
        commands=_EXPLAINED,
        holds=_FRAMES,
    ),
    Analysis("ranks", "ranks", "ranks of a run side by side", _TABLES),
    Analysis("comparison", "compare", "before and after", (*_TABLES, "md")),
    Analysis("portability", "portability", "one application on several platforms", ("csv", "text", "md"), {"json": "text"}),
)
ANALYSES = {row.view: row for row in _ROWS}


def analysis_of(frames: object) -> Analysis:
    """The analysis that frames come from, by their ``view``."""
    return ANALYSES[getattr(frames, "view", "roofline")]


def views(command: str) -> dict[str, Analysis]:
    """The analyses that --view of a command names."""
    return {name: row for name, row in ANALYSES.items() if command in row.commands}


def render(roofline: Frames | RankFrames | ComparisonFrames, format: str, **options: Any) -> bytes:  # noqa: A002
    """A Roofline, or what another analysis gives, in one of the formats that ANALYSES has for it.

    Options a format has no use for are ignored, so that one set goes with all: ``title``, ``theme`` ("light", "dark"; of a page
    also "auto"), ``top`` (kernels in a picture), ``table`` ("points", "roofs", "kernels"), ``width`` (characters) and
    ``ascii_only`` (of text), ``explanations`` and ``advice`` (of a page).
    Raises KeyError for an unknown format, ValueError for an option's wrong value, RooflineError for a package that is missing.
    """
    analysis = analysis_of(roofline)
    row = analysis.formats[format]
    if row.needs and find_spec(row.needs) is None:
        fix = f"pip install 'ncu-roofline[{row.extra}]'"
        raise RooflineError("Cannot render", format, f"the package {row.needs} is not installed", f"Install it with {fix}.")
    make = analysis.maker(format)
    taken = inspect.signature(make).parameters
    given = {**options, "tables": analysis.tables} if "tables" in taken else options
    return make(roofline, **{name: value for name, value in given.items() if name in taken})


def text_table(roofline: Frames, *, width: int = 100, color: bool = False, ascii_only: bool = False) -> str:
    """The terminal table of `ncu-roofline show`."""
    make = analysis_of(roofline).module("text").text_table
    text: str = make(roofline, width=width, color=color, ascii_only=ascii_only)
    return text


def notebook_html(result: Any) -> str:
    """The svg chart of a Roofline or another view as an image, with its text table folded below; else the table; escaped.

    An image can't run what an inline svg could, and its ids can't meet those of other cells.
    """
    table = f"<pre>{escape(render(result, 'text').decode())}</pre>"
    if "svg" not in analysis_of(result).formats:
        return table
    picture = base64.b64encode(render(result, "svg")).decode()
    image = f'<img alt="roofline chart" style="max-width:100%" src="data:image/svg+xml;base64,{picture}">'
    return f"{image}<details><summary>table</summary>{table}</details>"
