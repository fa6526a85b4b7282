"""`ncu-roofline render`: pictures, pages, tables and data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from ncu_roofline.analyses import ANALYSES, analysis_of, render, views
from ncu_roofline.cli.options import FilterOptions, ModelOptions, ReportOptions, ViewOptions, choice, flag, option
from ncu_roofline.cli.outputs import STANDARD_OUTPUT, check_output, chosen_format, deliver, say
from ncu_roofline.errors import UsageError
from ncu_roofline.rendering.frames import column

if TYPE_CHECKING:
    from ncu_roofline.rendering.frames import Frames


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
    table: str | None = choice(
        "what csv and parquet hold: points, roofs or kernels; with --view time points, machines or absent "
        "(default: points, or kernels where no kernel has any)",
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
    check_output(request.output, request.force, named_files(request.reports, request.model.roofs.ceilings))
    advice = analysis.takes(output_format, "advice")
    result = read_roofline(request.reports, request.filters, request.model, request.view, advice)
    options: dict[str, object] = {"title": request.title}
    if request.theme:
        options["theme"] = request.theme
    if output_format == "html":
        options["explanations"] = [explanation.as_dict() for explanation in result.explanations if explanation.missing]
        options["advice"] = result.advice
    if output_format in ("csv", "parquet"):
        options["table"] = request.table or _table_with_rows(result.roofline, request.output)
    deliver(request.output, render(result.roofline, output_format, **options), request.force, output_format)
    return result.exit_code


def _table_with_rows(roofline: Frames, output: str) -> str:
    """The points, or where there are none the kernels: they say why, and what limits them."""
    if column(roofline, "points", "kernel"):
        return "points"
    table = "kernels" if "kernels" in analysis_of(roofline).tables else "absent"
    verdicts = ", with their verdicts" if table == "kernels" and any(column(roofline, table, "verdict")) else ""
    what = "the standard output" if output == STANDARD_OUTPUT else output
    say(f"No dots: {what} holds the kernels{verdicts}; --table points keeps the header alone.")
    return table
