"""`ncu-roofline portability`: performance portability over platforms."""

from __future__ import annotations

import argparse
import os

from ncu_roofline.analyses import ANALYSES
from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.chips import load_spec
from ncu_roofline.cli import options, outputs
from ncu_roofline.cli.reading import Shelf, ceiling_files, expand, given_report, launches, none_read

_count = options.number("is no positive number of operations", lambda found: 0 < found < float("inf"))


def _assigned(text: str) -> tuple[str, str]:
    """(name, value) of NAME=VALUE, ("", value) without a name."""
    name, equals, found = text.partition("=")
    if equals and not (name and found):
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=VALUE")
    return (name, found) if equals else ("", text)


def _operations(text: str) -> tuple[str, float]:
    name, _, operations = text.rpartition("=")
    return name, _count(operations)


def add_portability(parser: argparse.ArgumentParser) -> None:
    """Which files of which platforms, and how they are compared."""
    parser.description = "Efficiency of an application on each platform, and its performance portability over all of them: "
    parser.description += "e = P / min(F, B I) per platform, PP = |H| / sum(1/e), 0 where it does not run everywhere."
    about = "reports, other tools' files and plain tables (CSV, JSON), - is standard input; PLATFORM= says what the machine is "
    about += "called"
    parser.add_argument("inputs", metavar=outputs.PLATFORM_FILE, nargs="+", type=given_report, help=about)
    parser.add_argument("--keep-going", action="store_true", help=options.KEEP_GOING)
    how = parser.add_argument_group("what is compared")
    about = "measured ceilings of a platform, of any known format; without PLATFORM= they go by the GPU they name (default: "
    about += "the roofs of the inputs, theoretical ones as the last resort)"
    options.add_ceilings(how, about, metavar="[PLATFORM=]FILE|auto", type=_assigned)
    about = "compute ceiling; mix is what the share of fused instructions can reach (default: %(default)s)"
    how.add_argument("--ceiling", choices=("fma", "nofma", "divide", "divide_nofma", "mix"), default="fma", help=about)
    about = "executed: counted by the hardware; canonical: what the algorithm needs on paper (default: %(default)s)"
    how.add_argument("--flops", choices=("executed", "canonical"), default="executed", help=about)
    about = "canonical operations, where no table gives them; may be repeated; implies --flops canonical"
    how.add_argument("--canonical-flops", metavar="[VARIANT=]N", action="append", type=_operations, default=[], help=about)
    about = "memory level of intensity and bandwidth, or binding for the one that limits most (default: dram)"
    how.add_argument("--level", metavar="[PLATFORM=]LEVEL", action="append", type=_assigned, default=[], help=about)
    runs = parser.add_argument_group("runs")
    runs.add_argument("--precision", metavar="ID", default="", help="precision of the work (default: the one with the most)")
    about = "the platforms that count; one that no input has makes the portability 0 (default: all of the inputs)"
    runs.add_argument("--platforms", metavar="NAME,...", type=options.names, default=(), help=about)
    runs.add_argument("--application", metavar="NAME", default="", help="application of files that name none")
    about = "kernel: each kernel is a variant of its own (default: %(default)s)"
    runs.add_argument("--by", choices=("application", "kernel"), default="application", help=about)
    about = "variant of a report: a regular expression searched in its path (first group, or the whole match), nvtx for its "
    about += "NVTX ranges, or nvtx:PATTERN searched in them"
    runs.add_argument("--label", metavar="PATTERN", type=options.step_label, default="", help=about)
    options.add_clock(runs)
    options.add_launches(parser)
    output = options.add_output(parser, "write a .csv, .md, .json or .txt file instead", "as JSON on standard output")
    output.add_argument("--title", metavar="TEXT", help="title of a Markdown file")


def run_portability(args: argparse.Namespace) -> int:
    """Print the table (or JSON), or write a file."""
    from ncu_roofline.analyses.portability import Choices, Platform, Reading, portability, read_runs

    known = ANALYSES["portability"].formats
    inputs = []
    for text in args.inputs:  # a file whose name has an = in it is a file
        name, equals, path = text.partition("=")
        name, path = (name, path) if equals and name and not os.path.exists(text) else ("", text)
        inputs += [Platform(one, name) for one in expand([path])]
    named = [path for _, path in args.ceilings]
    results = outputs.targets(args, known, lambda: [*(one.path for one in inputs), *ceiling_files(named)])
    given = [pair for pair in args.ceilings if pair != ("", outputs.AUTO)]
    find = Shelf().find if len(given) < len(args.ceilings) else None
    by_platform, plain = {name: path for name, path in given if name}, [path for name, path in given if not name]
    if by_platform and len(by_platform) < len(given):
        reason, next_step = "some of them name a platform; this one none, or one again", "Write PLATFORM= before each, once."
        raise UsageError("Cannot use ceilings", [*plain, *by_platform.values()][0], reason, next_step)
    called = load_spec().called  # what people say for ids
    precision = called.get(args.precision.lower(), args.precision)
    reading = Reading(precision, args.by, args.label, args.clock, args.application, launches(args))
    unread: list[RooflineError] = []

    def leave_out(error: RooflineError) -> None:
        if not args.keep_going or isinstance(error, UsageError):
            raise error
        outputs.tell(error)
        unread.append(error)

    runs, warnings = read_runs(inputs, by_platform or plain, reading, find, leave_out)
    if unread and not runs:
        raise none_read(args.inputs)
    levels = {name: called.get(level.lower(), level.lower()) for name, level in args.level}
    choices = Choices(
        flops="canonical" if args.canonical_flops else args.flops,
        ceiling=args.ceiling,
        level=levels.pop("", load_spec().memory),
        levels=levels,
        canonical=dict(args.canonical_flops),
        platforms=args.platforms,
        incomplete=bool(unread),
    )
    result = portability(runs, choices)
    outputs.warn((*warnings, *result.warnings))
    outputs.write_results(result, results, args)
    return 1 if unread else 0
