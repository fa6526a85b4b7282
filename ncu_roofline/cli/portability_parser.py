"""Options of `ncu-roofline portability`."""

from __future__ import annotations

import argparse
import math

from ncu_roofline.cli import report_options


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add them to the parser of the command."""
    parser.description = (
        "How much of what each platform can give an application gets, and over all of them: "
        "e = P / min(F, B I) per platform, PP = |H| / sum(1/e), 0 where it does not run everywhere."
    )
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="[PLATFORM=]FILE",
        help="reports, other tools' files and plain tables (CSV, JSON); PLATFORM= says what the machine is called",
    )
    _choices(parser.add_argument_group("what is compared"))
    _runs(parser.add_argument_group("runs"))
    report_options.launch_filters(parser)
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="as JSON on standard output")
    group.add_argument("-o", "--output", default="", metavar="FILE", help="write a .csv, .md, .json or .txt file instead")
    group.add_argument("--format", default="", metavar="FORMAT", help="text, csv, md or json, where the suffix does not say it")
    group.add_argument("--title", default="", metavar="TEXT", help="title of a Markdown file")
    group.add_argument("--force", action="store_true", help="overwrite FILE")


def _choices(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--ceilings",
        action="append",
        type=_assigned,
        default=[],
        metavar="[PLATFORM=]FILE",
        help="measured ceilings of a platform, of any known format; without PLATFORM= they go by the GPU they name; may be "
        "repeated (default: the roofs of the inputs, theoretical ones as the last resort)",
    )
    group.add_argument(
        "--ceiling",
        choices=("fma", "nofma", "divide", "divide_nofma", "mix"),
        default="fma",
        help="compute ceiling; mix is what the share of fused instructions can reach (default: %(default)s)",
    )
    group.add_argument(
        "--flops",
        choices=("executed", "canonical"),
        default="executed",
        help="executed: counted by the hardware; canonical: what the algorithm needs on paper (default: %(default)s)",
    )
    group.add_argument(
        "--canonical-flops",
        action="append",
        type=_operations,
        default=[],
        metavar="[VARIANT=]N",
        help="canonical operations, where no table gives them; may be repeated; implies --flops canonical",
    )
    group.add_argument(
        "--level",
        action="append",
        type=_assigned,
        default=[],
        metavar="[PLATFORM=]LEVEL",
        help="memory level of intensity and bandwidth, or binding for the one that limits most (default: dram)",
    )


def _runs(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--precision", default="", metavar="ID", help="precision of the work (default: the one with the most)")
    group.add_argument(
        "--platforms",
        type=report_options.names,
        default=[],
        metavar="NAME,...",
        help="the platforms that count; one that no input has makes the portability 0 (default: all of the inputs)",
    )
    group.add_argument("--application", default="", metavar="NAME", help="what files that name no application are of")
    group.add_argument(
        "--by",
        choices=("application", "kernel"),
        default="application",
        help="kernel: each kernel is a variant of its own (default: %(default)s)",
    )
    group.add_argument(
        "--label",
        type=_label,
        default="",
        metavar="PATTERN",
        help="variant of a report: a regular expression searched in its path (first group, or the whole match), nvtx for its "
        "NVTX ranges, or nvtx:PATTERN searched in them",
    )
    group.add_argument(
        "--clock",
        choices=("profiled", "max"),
        default="profiled",
        help="clock the theoretical roofs stand at (default: %(default)s)",
    )


def _assigned(text: str) -> tuple[str, str]:
    """(name, value) of NAME=VALUE, ("", value) without a name."""
    name, equals, value = text.partition("=")
    if not equals:
        return "", text
    if not name or not value:
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=VALUE")
    return name, value


def _operations(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{number!r} is no positive number of operations")
    return name, value


def _label(text: str) -> str:
    report_options.regex(text.removeprefix("nvtx:"))
    return text
