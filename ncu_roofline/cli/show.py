"""`ncu-roofline show`: the roofline as a table in the terminal, or as JSON."""

from __future__ import annotations

import shlex
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from ncu_roofline.analyses import views
from ncu_roofline.base.errors import UsageError
from ncu_roofline.base.texts import listed, printable
from ncu_roofline.cli.options import add_filters, add_model, add_reports, add_views, add_width
from ncu_roofline.cli.outputs import STANDARD_OUTPUT, coloured, terminal_width, write_output, write_text
from ncu_roofline.cli.standard_input import NAME as STANDARD_INPUT_NAME
from ncu_roofline.rendering.table import wrapped

if TYPE_CHECKING:
    from ncu_roofline.model.explanations import Explanation

_NAMED = 5  # reports that a sentence names


def add_options(parser: ArgumentParser) -> None:
    """What to show, and how."""
    add_reports(parser)
    add_filters(parser)
    add_model(parser)
    add_views(parser)
    about = "all tables of the view as JSON on standard output, a row per launch unless --by says otherwise"
    parser.add_argument("--json", action="store_true", help=about)
    about = "with --json: where the reports lie, not only their names"
    parser.add_argument("--full-paths", action="store_true", help=about)
    parser.add_argument("--all", action="store_true", help="all kernels, not only those that could save most")
    about = "also where the numbers come from, and the reasons of all verdicts"
    parser.add_argument("--notes", action="store_true", help=about)
    add_width(parser, "width of the table (default: the terminal's)")
    parser.add_argument("-o", "--output", help=SUPPRESS)  # what newcomers try


def run(args: Namespace) -> int:
    """Print the table (or JSON); exit code 1 if some report had to be left out."""
    from ncu_roofline.analyses import render, text_table
    from ncu_roofline.analyses.hierarchical.text import TOP
    from ncu_roofline.cli.rooflines import read_roofline

    if args.output:
        words = ["ncu-roofline", "render", *args.reports, "-o", args.output]
        next_step = f"Write pictures and pages with `{shlex.join(words)}`."
        raise UsageError("Cannot write", args.output, "show only prints", next_step)
    if args.full_paths and not args.json:
        raise UsageError("Cannot use", "--full-paths", "tables for people name reports only", "Add --json.")
    result = read_roofline(args, for_people=not args.json, full_paths=args.full_paths)
    if args.json:
        write_output(STANDARD_OUTPUT, render(result.roofline, "json"), force=True)
        return result.exit_code
    width = args.width or terminal_width()
    top = 0 if args.all else TOP
    table = text_table(result.roofline, width=width, color=coloured(sys.stdout), top=top, notes=args.notes)
    said = [*_lacking(result.explanations, args.view), *_where(result.with_source)]
    lines = wrapped(said, width, "  ", whole=True)
    write_text("\n".join([table, *([""] if lines else []), *lines]))
    return result.exit_code


def _where(reports: Sequence[str]) -> Iterator[str]:
    """The command that says where in a kernel its time is, for the first report that can tell and can be read again."""
    for report in [one for one in reports if PurePath(one).name != STANDARD_INPUT_NAME][:1]:
        command = shlex.join(["ncu-roofline", "source", printable(report)])
        yield f"Where in a kernel: `{command}` has loops and instructions, and lines of code that was compiled with -lineinfo."


def _lacking(explanations: Iterable[Explanation], view: str) -> Iterator[str]:
    """What reports lack, and the command that tells how to add it; reports that lack the same in one sentence."""
    from ncu_roofline.analyses.hierarchical.style import label_of
    from ncu_roofline.base.texts import plural

    groups: dict[tuple[str, ...], list[Explanation]] = {}
    for one in explanations:
        if one.missing:
            groups.setdefault(one.missing, []).append(one)
    option = f" --view {view}" if view != "roofline" and view in views("explain") else ""
    for missing, members in groups.items():
        names = listed((printable(one.report) for one in members), _NAMED)
        count = sum(one.launches for one in members)
        where = "its launch" if count == 1 else f"some or all of {plural(count, 'launch')}"
        what = listed(map(label_of, missing), len(missing))
        yield f"{names}: {what} missing in {where}; `ncu-roofline explain{option}` tells how to add them."
