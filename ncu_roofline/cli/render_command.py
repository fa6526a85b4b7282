"""`ncu-roofline render`: pictures, pages, tables and data."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ncu_roofline.cli.outputs import STANDARD_OUTPUT, check_output, say, write_output
from ncu_roofline.cli.rooflines import read_roofline
from ncu_roofline.errors import UsageError

if TYPE_CHECKING:
    from ncu_roofline.rendering.frames import Frames


def _table_with_rows(roofline: Frames, output: str) -> str:
    """The points, or where there are none the kernels: they say why, and what limits them."""
    from ncu_roofline.analyses import analysis_of
    from ncu_roofline.rendering.frames import column

    if column(roofline, "points", "kernel"):
        return "points"
    table = "kernels" if "kernels" in analysis_of(roofline).tables else "absent"
    verdicts = ", with their verdicts" if table == "kernels" and any(column(roofline, table, "verdict")) else ""
    what = "the standard output" if output == STANDARD_OUTPUT else output
    say(f"No dots: {what} holds the kernels{verdicts}; --table points keeps the header alone.")
    return table


def run(args: argparse.Namespace) -> int:
    """Render to a file; exit code 1 if some report had to be left out."""
    from ncu_roofline.analyses import ANALYSES, render
    from ncu_roofline.analyses.formats import format_for

    output_format = args.format or format_for(args.output)
    analysis = ANALYSES[args.view]
    formats = analysis.formats
    if output_format not in formats:
        known = ", ".join(formats)
        raise UsageError(
            "Cannot render",
            args.output,
            f"{output_format or 'its suffix'} is no format known ({known})",
            "Name one with --format.",
        )
    tables = analysis.tables
    if args.table and args.table not in tables:
        reason = f"--view {args.view} has the tables {', '.join(tables)}"
        raise UsageError("Cannot use --table", args.table, reason, "Name one of those.")
    check_output(args.output, args.force)
    result = read_roofline(args, advice=analysis.takes(output_format, "advice"))
    options: dict[str, object] = {"title": args.title}
    if args.theme:
        options["theme"] = args.theme
    if output_format == "html":
        options["explanations"] = [one.as_dict() for one in result.explanations if one.missing]
        options["advice"] = result.advice
    if output_format in ("csv", "parquet"):
        options["table"] = args.table or _table_with_rows(result.roofline, args.output)
    data = render(result.roofline, output_format, **options)
    write_output(args.output, data, args.force)
    if args.output != STANDARD_OUTPUT:
        say(f"Wrote {args.output}")
    return result.exit_code
