"""`ncu-roofline portability`: performance portability over platforms."""

from __future__ import annotations

import argparse
import os

from ncu_roofline.analyses.portability.frames import Choices, portability
from ncu_roofline.analyses.portability.platforms import Platform, Reading, read_runs
from ncu_roofline.cli.inputs import expand
from ncu_roofline.cli.outputs import STANDARD_OUTPUT, check_output, say, write_output, write_text
from ncu_roofline.errors import UsageError
from ncu_roofline.facts import load_spec
from ncu_roofline.model import Selection


def run(args: argparse.Namespace) -> int:
    """Print the table (or JSON), or write a file."""
    from ncu_roofline.analyses import ANALYSES, render

    output_format = "json" if args.json else args.format or _format_for(args.output)
    if output_format not in ANALYSES["portability"].formats:
        known = ", ".join(ANALYSES["portability"].formats)
        what = args.output or output_format
        raise UsageError(
            "Cannot render", what, f"{output_format or 'its suffix'} is none of {known}", "Name one with --format."
        )
    output = args.output or STANDARD_OUTPUT
    check_output(output, args.force)
    ceilings = _ceilings(args)
    select = Selection(kernel=args.kernel, nvtx=args.nvtx, launch=args.launch, top=args.top)
    how = Reading(args.precision, args.by, args.label, args.clock, args.application, select)
    runs, warnings = read_runs(_inputs(args), ceilings, how)
    result = portability(runs, _choices(args))
    for warning in dict.fromkeys((*warnings, *result.warnings)):
        say(f"ncu-roofline: {warning}")
    data = render(result, output_format, title=args.title)  # type: ignore[arg-type]
    if output == STANDARD_OUTPUT and output_format == "text":
        write_text(data.decode().rstrip("\n"))
    else:
        write_output(output, data, args.force)
    if output != STANDARD_OUTPUT:
        say(f"Wrote {output}")
    return 0


def _format_for(path: str) -> str:
    """The format of an output, text for none."""
    from ncu_roofline.analyses.formats import format_for

    return format_for(path) if path else "text"


def _inputs(args: argparse.Namespace) -> list[Platform]:
    """The files, with what was written before them; a file whose name has an = in it is a file."""
    found = []
    for text in args.inputs:
        name, equals, path = text.partition("=")
        if not equals or not name or os.path.exists(text):
            name, path = "", text
        found += [Platform(one, name) for one in expand([path])]
    return found


def _ceilings(args: argparse.Namespace) -> dict[str, str] | list[str]:
    named = {name: path for name, path in args.ceilings if name}
    plain = [path for name, path in args.ceilings if not name]
    if named and plain:
        reason = "some ceilings say of which platform they are, and this one does not"
        raise UsageError("Cannot use ceilings", plain[0], reason, "Write PLATFORM= before each.")
    if len(named) < len(args.ceilings) and named:
        raise UsageError("Cannot use --ceilings", next(iter(named)), "it is given twice", "Give one file for each platform.")
    return named or plain


def _choices(args: argparse.Namespace) -> Choices:
    levels = {name: level.lower() for name, level in args.level}
    return Choices(
        flops="canonical" if args.canonical_flops else args.flops,
        ceiling=args.ceiling,
        level=levels.pop("", load_spec().memory),
        levels=levels,
        canonical=dict(args.canonical_flops),
        platforms=tuple(args.platforms),
    )
