"""`ncu-roofline show`: the roofline as a table in the terminal, or as JSON."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from ncu_roofline.analyses import views
from ncu_roofline.cli.options import FilterOptions, ModelOptions, ReportOptions, ViewOptions, flag, option, positive
from ncu_roofline.cli.outputs import STANDARD_OUTPUT, terminal_width, write_output, write_text
from ncu_roofline.rendering.table import wrapped
from ncu_roofline.texts import printable


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to show, and how."""

    reports: ReportOptions
    filters: FilterOptions
    model: ModelOptions
    view: ViewOptions
    json: bool = flag("all tables of the view as JSON on standard output")
    width: int | None = option("width of the table (default: the terminal's)", "COLUMNS", type=positive, default=None)


def run(request: Request) -> int:
    """Print the table (or JSON); exit code 1 if some report had to be left out."""
    from ncu_roofline.analyses import render, text_table
    from ncu_roofline.cli.rooflines import read_roofline

    result = read_roofline(request.reports, request.filters, request.model, request.view)
    if request.json:
        write_output(STANDARD_OUTPUT, render(result.roofline, "json"), force=True)
        return result.exit_code
    width = request.width or terminal_width()
    blocks = [text_table(result.roofline, width=width, color=sys.stdout is not None and sys.stdout.isatty())]
    view = request.view.view
    explain = "ncu-roofline explain" + (f" --view {view}" if view != "roofline" and view in views("explain") else "")
    for explanation in result.explanations:
        if explanation.missing:
            said = f"{printable(explanation.report)}: {explanation.summary} `{explain}` gives the ncu command that adds it."
            blocks.append("\n".join(wrapped(said, width, whole=True)))
    write_text("\n\n".join(blocks))
    return result.exit_code
