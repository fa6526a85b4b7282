"""`ncu-roofline render`: pictures, pages, tables and data."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ncu_roofline.analyses import ANALYSES, analysis_of, render, views
from ncu_roofline.base.errors import UsageError
from ncu_roofline.cli.options import add_filters, add_looks, add_model, add_reports, add_views
from ncu_roofline.cli.outputs import STANDARD_OUTPUT, check_output, chosen_format, deliver, say, warn
from ncu_roofline.rendering.frames import column
from ncu_roofline.rendering.paper import PRESETS, PRESETS_HELP, SIZES, PaperError, paper_of

if TYPE_CHECKING:
    from ncu_roofline.rendering.frames import Frames


_PAPER = ("preset", "width", "height", "font", "dpi", "size")
# Formats with a row per kernel unless the user says otherwise; the others hold data.
_FOR_PEOPLE = ("html", "png", "svg", "pdf", "md", "text")


def _length(text: str) -> str:
    if not text:  # an unset variable of a script
        raise argparse.ArgumentTypeError("the length is empty")
    return text


def add_options(parser: argparse.ArgumentParser) -> None:
    """What to draw, and into which file."""
    parser.epilog = "Formats: see `ncu-roofline list formats`."
    add_reports(parser)
    about = "file to write; its suffix says the format; - is standard output"
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help=about)
    parser.add_argument("--format", metavar="FORMAT", default="", help="format, where the suffix does not say it")
    parser.add_argument("--force", action="store_true", help="overwrite FILE")
    add_looks(parser)
    paper = parser.add_argument_group("pictures (png, svg, pdf)")
    paper.add_argument("--preset", choices=PRESETS, help=f"sizes to begin with: {PRESETS_HELP}")
    about = "width: 3.3in, 8.4cm, 84mm, 240pt or 800px (default: 7.16in)"
    paper.add_argument("--width", metavar="LENGTH", type=_length, help=about)
    paper.add_argument("--height", metavar="LENGTH", type=_length, help="height (default: what is needed)")
    about = "size of the letters in points; none is below 6, what has no room is left out (default: 7.2)"
    paper.add_argument("--font", metavar="POINTS", type=float, help=about)
    paper.add_argument("--dpi", metavar="DPI", type=float, help="dots per inch of a png (default: 160)")
    about = "area of a dot: all equal, or its share of the time (default: equal)"
    paper.add_argument("--size", choices=SIZES, help=about)
    parser.add_argument(
        "--table",
        choices=dict.fromkeys(table for view in views("render").values() for table in view.holds),
        help="what csv and parquet hold: points, roofs or kernels; with --view time points, machines or absent, with --view "
        "phases points, bands, sampled or roofs (default: points, or kernels where no kernel has any)",
    )
    add_filters(parser)
    add_model(parser)
    add_views(parser)


def run(args: argparse.Namespace) -> int:
    """Render to a file; exit code 1 if some report had to be left out."""
    from ncu_roofline.cli.reading import named_files
    from ncu_roofline.cli.rooflines import read_roofline

    analysis = ANALYSES[args.view]
    output_format = chosen_format(args.output, args.format, analysis.formats, "no format known ({})")
    tables = analysis.tables
    if args.table and args.table not in tables:
        reason = f"--view {args.view} has the tables {', '.join(tables)}"
        raise UsageError("Cannot use --table", args.table, reason, "Name one of those.")
    paper = _paper(args, output_format)
    check_output(args.output, args.force, named_files(args))
    advice = analysis.takes(output_format, "advice")
    people = output_format in _FOR_PEOPLE
    result = read_roofline(args, for_people=people, advice=advice)
    options: dict[str, object] = {"title": args.title, **paper}
    if args.theme:
        options["theme"] = args.theme
    if output_format == "html":
        options["explanations"] = [explanation.as_dict() for explanation in result.explanations if explanation.missing]
        options["advice"] = result.advice
    if output_format in ("csv", "parquet"):
        options["table"] = args.table or _table_with_rows(result.roofline, args.output)
    try:
        rendered = render(result.roofline, output_format, **options)
    except PaperError as error:
        raise _refused(error) from error
    deliver(args.output, rendered, args.force, output_format)
    warn(analysis.viewer.undrawn(result.roofline))
    return result.exit_code


def _paper(args: argparse.Namespace, output_format: str) -> dict[str, object]:
    """The options of a picture, checked before any report is read."""
    analysis = ANALYSES[args.view]
    given = {name: value for name in _PAPER if (value := getattr(args, name)) is not None}
    for name in given:
        if name == "dpi" and output_format != "png":
            raise UsageError("Cannot use", "--dpi", "only a png has dots", "Leave it out, or write a .png.")
        if not analysis.takes(output_format, "preset") or not analysis.takes(output_format, name):
            reason = f"--view {args.view} as {output_format} has no use for it"
            raise UsageError("Cannot use", f"--{name}", reason, "Leave it out, or write a .png, .svg or .pdf.")
    try:
        paper_of(args.width, args.height, args.font, args.dpi, args.preset)
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
