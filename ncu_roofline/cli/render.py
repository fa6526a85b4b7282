"""`ncu-roofline render`: pictures, pages, tables and data."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, ClassVar

from ncu_roofline.analyses import ANALYSES, analysis_of, render, views
from ncu_roofline.base.errors import UsageError
from ncu_roofline.cli.options import FilterOptions, ModelOptions, ReportOptions, ViewOptions, choice, flag, option
from ncu_roofline.cli.outputs import STANDARD_OUTPUT, check_output, chosen_format, deliver, say, warn
from ncu_roofline.rendering.frames import column
from ncu_roofline.rendering.paper import PRESETS, PRESETS_HELP, SIZES, PaperError, paper_of

if TYPE_CHECKING:
    from ncu_roofline.rendering.frames import Frames


# Formats with a row per kernel unless the user says otherwise; the others hold data.
_FOR_PEOPLE = ("html", "png", "svg", "pdf", "md", "text")


def _length(text: str) -> str:
    if not text:  # an unset variable of a script
        raise argparse.ArgumentTypeError("the length is empty")
    return text


@dataclass(frozen=True, kw_only=True)
class PaperOptions:
    """How large a picture is, with its letters."""

    TITLE: ClassVar[str] = "pictures (png, svg, pdf)"
    preset: str | None = choice(f"sizes to begin with: {PRESETS_HELP}", PRESETS, default=None)
    width: str = option("width: 3.3in, 8.4cm, 84mm, 240pt or 800px (default: 7.16in)", "LENGTH", type=_length)
    height: str = option("height (default: what is needed)", "LENGTH", type=_length)
    font: float | None = option(
        "size of the letters in points; none is below 6, what has no room is left out (default: 7.2)",
        "POINTS", type=float, default=None,
    )  # fmt: skip
    dpi: float | None = option("dots per inch of a png (default: 160)", "DPI", type=float, default=None)
    size: str | None = choice("area of a dot: all equal, or its share of the time (default: equal)", SIZES, default=None)

    def given(self) -> dict[str, object]:
        """What is given, as `render` takes it."""
        return {item.name: value for item in fields(self) if (value := getattr(self, item.name)) not in (None, "")}


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to draw, and into which file."""

    EPILOG: ClassVar[str] = "Formats: see `ncu-roofline list formats`."
    reports: ReportOptions
    output: str = option("file to write; its suffix says the format; - is standard output", "FILE", short="-o", required=True)
    format: str = option("format, where the suffix does not say it", "FORMAT")
    force: bool = flag("overwrite FILE")
    title: str = option("title of the picture or page", "TEXT")
    theme: str | None = choice("colours (default: light; a page follows the reader's system)", ("light", "dark"), default=None)
    paper: PaperOptions = field(default_factory=lambda: PaperOptions())
    table: str | None = choice(
        "what csv and parquet hold: points, roofs or kernels; with --view time points, machines or absent, with --view phases "
        "points, bands, sampled or roofs (default: points, or kernels where no kernel has any)",
        dict.fromkeys(table for view in views("render").values() for table in view.holds),
        default=None,
    )
    filters: FilterOptions = field(default_factory=FilterOptions)
    model: ModelOptions = field(default_factory=ModelOptions)
    view: ViewOptions = field(default_factory=ViewOptions)


def run(request: Request) -> int:
    """Render to a file; exit code 1 if some report had to be left out."""
    from ncu_roofline.cli.reading import named_files
    from ncu_roofline.cli.rooflines import read_roofline

    analysis = ANALYSES[request.view.view]
    output_format = chosen_format(request.output, request.format, analysis.formats, "no format known ({})")
    tables = analysis.tables
    if request.table and request.table not in tables:
        reason = f"--view {request.view.view} has the tables {', '.join(tables)}"
        raise UsageError("Cannot use --table", request.table, reason, "Name one of those.")
    paper = _paper(request, output_format)
    check_output(request.output, request.force, named_files(request.reports, request.model.roofs.ceilings))
    advice = analysis.takes(output_format, "advice")
    people = output_format in _FOR_PEOPLE
    result = read_roofline(request.reports, request.filters, request.model, request.view, for_people=people, advice=advice)
    options: dict[str, object] = {"title": request.title, **paper}
    if request.theme:
        options["theme"] = request.theme
    if output_format == "html":
        options["explanations"] = [explanation.as_dict() for explanation in result.explanations if explanation.missing]
        options["advice"] = result.advice
    if output_format in ("csv", "parquet"):
        options["table"] = request.table or _table_with_rows(result.roofline, request.output)
    try:
        rendered = render(result.roofline, output_format, **options)
    except PaperError as error:
        raise _refused(error) from error
    deliver(request.output, rendered, request.force, output_format)
    warn(analysis.viewer.undrawn(result.roofline))
    return result.exit_code


def _paper(request: Request, output_format: str) -> dict[str, object]:
    """The options of a picture, checked before any report is read."""
    given, analysis = request.paper.given(), ANALYSES[request.view.view]
    for name in given:
        if name == "dpi" and output_format != "png":
            raise UsageError("Cannot use", "--dpi", "only a png has dots", "Leave it out, or write a .png.")
        if not analysis.takes(output_format, "preset") or not analysis.takes(output_format, name):
            reason = f"--view {request.view.view} as {output_format} has no use for it"
            raise UsageError("Cannot use", f"--{name}", reason, "Leave it out, or write a .png, .svg or .pdf.")
    try:
        asked = request.paper
        paper_of(asked.width or None, asked.height or None, asked.font, asked.dpi, asked.preset)
    except PaperError as error:
        raise _refused(error) from error
    return given


def _refused(error: PaperError) -> UsageError:
    name, _, reason = str(error).partition(" ")
    return UsageError("Cannot draw with", f"--{name}", reason, "See `ncu-roofline render --help`.")


def _table_with_rows(roofline: Frames, output: str) -> str:
    """The points, or where there are none the kernels: they say why, and what limits them."""
    if column(roofline, "points", "kernel"):
        return "points"
    instead = analysis_of(roofline).instead
    table = next((name for name in instead if column(roofline, name, "kernel")), instead[-1])
    verdicts = ", with their verdicts" if table == "kernels" and any(column(roofline, table, "verdict")) else ""
    held = "bands" if table == "bands" else "kernels"
    what = "the standard output" if output == STANDARD_OUTPUT else output
    say(f"No dots: {what} holds the {held}{verdicts}; --table points keeps the header alone.")
    return table
