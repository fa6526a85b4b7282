"""The ways to look at launches, one folder and one row each, and `render`: what they give in, bytes out.

Nothing here opens a file; the modules of a folder are imported when they are used.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ncu_roofline.errors import RooflineError
from ncu_roofline.rendering.formats import FORMATS, Format

if TYPE_CHECKING:
    from ncu_roofline.analyses.compare.text import ComparisonFrames
    from ncu_roofline.analyses.hierarchical.view import View
    from ncu_roofline.analyses.ranks.text import RankFrames
    from ncu_roofline.rendering.frames import Column, Frames

__all__ = ["ANALYSES", "Analysis", "analysis_of", "render", "text_table", "views"]


@dataclass(frozen=True)
class Analysis:
    """One analysis: the folder of its code, what its chart shows, and the module of the folder that makes each format.

    A module makes a format by its function ``render_FORMAT``; a name with a dot is a module elsewhere in the package, such as
    the kit's for tables as data, which writes what ``TABLES`` in the folder's ``columns`` declares.  Commands that look at the
    same reports in several ways have the option --view for those that name them; ``VIEW`` in the folder's ``view`` is how.
    ``holds`` is what these can choose of its tables, said here as the model is too much to load for a help text.
    """

    folder: str
    about: str
    makers: Mapping[str, str]
    commands: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()

    @property
    def formats(self) -> dict[str, Format]:
        """Its formats by name, in the order of FORMATS."""
        return {name: row for name, row in FORMATS.items() if name in self.makers}

    @property
    def tables(self) -> Mapping[str, tuple[Column, ...]]:
        """Its tables with their columns; the first is what csv and parquet hold if nobody says which."""
        tables: Mapping[str, tuple[Column, ...]] = self.module("columns").TABLES
        return tables

    @property
    def view(self) -> View:
        """How its ``commands`` get its frames."""
        made: View = self.module("view").VIEW
        return made

    def module(self, name: str) -> Any:
        """A module of its folder, or of another one by its name below the package; imported now."""
        return importlib.import_module(f"ncu_roofline.{name}" if "." in name else f"ncu_roofline.analyses.{self.folder}.{name}")

    def maker(self, format: str) -> Callable[..., bytes]:  # noqa: A002
        """The function that makes a format.  Raises KeyError for one that it does not have."""
        made: Callable[..., bytes] = getattr(self.module(self.makers[format]), f"render_{format}")
        return made

    def takes(self, format: str, option: str) -> bool:  # noqa: A002
        """Whether the maker of a format has a use for an option."""
        return option in inspect.signature(self.maker(format)).parameters


_DATA = dict.fromkeys(("csv", "json", "parquet"), "rendering.data")
_PICTURES = dict.fromkeys(("png", "svg", "pdf"), "picture")
_OWN = {"html": "page", **_PICTURES, **_DATA, "md": "markdown", "text": "text"}
# What another kind of work on the same axes looks like.
_AS_ROOFLINE = {name: made if "." in made else f"analyses.hierarchical.{made}" for name, made in _OWN.items()}
_DRAWN, _EXPLAINED = ("show", "render"), ("show", "render", "explain")
_FRAMES, _TIMES = ("points", "roofs", "kernels"), ("points", "machines", "absent")
# View (``view`` of what is rendered; "roofline" if it names none) -> its analysis.
ANALYSES = {
    "roofline": Analysis("hierarchical", "FLOP/s over FLOPs per byte", {**_OWN, "nersc": "nersc"}, _EXPLAINED, _FRAMES),
    "time": Analysis("time", "run time, complexity and launch overhead", {**_OWN, "md": "text"}, _DRAWN, _TIMES),
    "instruction": Analysis("instruction", "warp instructions over transactions", _AS_ROOFLINE, _EXPLAINED, _FRAMES),
    "ranks": Analysis("ranks", "ranks of a run side by side", {**_DATA, "text": "text"}),
    "comparison": Analysis("compare", "before and after", {**_DATA, "md": "text", "text": "text", "junit": "junit"}),
    "portability": Analysis(
        "portability", "one application on several platforms", dict.fromkeys(("csv", "json", "md", "text"), "text")
    ),
}


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
    analysis = analysis_of(roofline)
    make = analysis.module(analysis.makers["text"]).text_table
    text: str = make(roofline, width=width, color=color, ascii_only=ascii_only)
    return text
