"""`ncu-roofline show`: the roofline as a table in the terminal, or as JSON."""

from __future__ import annotations

import argparse
import shutil
import sys

from ncu_roofline.cli.instruction_view import counts_instructions
from ncu_roofline.cli.outputs import STANDARD_OUTPUT, write_output, write_text
from ncu_roofline.cli.rooflines import read_roofline
from ncu_roofline.errors import printable
from ncu_roofline.rendering.table import wrapped

MINIMUM_WIDTH = 60


def run(args: argparse.Namespace) -> int:
    """Print the table (or JSON); exit code 1 if some report had to be left out."""
    from ncu_roofline.analyses import render, text_table

    result = read_roofline(args)
    if args.json:
        write_output(STANDARD_OUTPUT, render(result.roofline, "json"), force=True)
    else:
        width = args.width or max(shutil.get_terminal_size((120, 24)).columns, MINIMUM_WIDTH)
        blocks = [text_table(result.roofline, width=width, color=sys.stdout is not None and sys.stdout.isatty())]
        explain = "ncu-roofline explain" + (" --view instruction" if counts_instructions(args) else "")
        for one in result.explanations:
            if one.missing:
                said = f"{printable(one.report)}: {one.summary} `{explain}` gives the ncu command that adds it."
                blocks.append("\n".join(wrapped(said, width, whole=True)))
        write_text("\n\n".join(blocks))
    return result.exit_code
