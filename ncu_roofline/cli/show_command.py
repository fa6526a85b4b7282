"""`ncu-roofline show`: the roofline as a table in the terminal, or as JSON."""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap

from ncu_roofline.cli.instruction_view import counts_instructions
from ncu_roofline.cli.outputs import STANDARD_OUTPUT, write_output, write_text
from ncu_roofline.cli.rooflines import read_roofline
from ncu_roofline.errors import printable

MINIMUM_WIDTH = 60


def _wrapped(text: str, width: int) -> str:
    """Lines of ``width`` characters; a path that is longer stays whole."""
    return "\n".join(textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False))


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
        blocks += [
            _wrapped(f"{printable(one.report)}: {one.summary} `{explain}` gives the ncu command that adds it.", width)
            for one in result.explanations
            if one.missing
        ]
        write_text("\n\n".join(blocks))
    return result.exit_code
