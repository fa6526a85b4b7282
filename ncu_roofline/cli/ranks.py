"""`ncu-roofline ranks`: reports of many MPI ranks, merged by kernel."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from functools import partial
from typing import TYPE_CHECKING

from ncu_roofline.analyses import ANALYSES
from ncu_roofline.cli import reading
from ncu_roofline.cli.options import add_filters, add_output, add_reports, add_roofs, regex
from ncu_roofline.cli.outputs import targets, write_results

if TYPE_CHECKING:
    from ncu_roofline.analyses.ranks import RankPart
    from ncu_roofline.model import Selection


def add_ranks(parser: ArgumentParser) -> None:
    """Which reports of which ranks, and where to tell of them."""
    parser.epilog = "Without --rank the rank is a number after a word such as rank in every path, else the one number in which "
    parser.epilog += "all paths differ, else host and process id, else the file name."
    add_reports(parser)
    about = "finds the rank in a report's path: the first group is the rank, as in 'node\\d+-(\\d+)'"
    parser.add_argument("--rank", metavar="REGEX", type=regex, default="", help=about)
    about = "what one row is (default: %(default)s)"
    parser.add_argument("--by", choices=("kernel", "application"), default="kernel", help=about)
    add_filters(parser)
    add_roofs(parser)
    add_output(parser, "write to a file: .csv, .parquet, .json or .txt; - is standard output", analysis="ranks")


def run_ranks(args: Namespace) -> int:
    """Print or write the merged ranks; exit code 1 if some report had to be left out."""
    from ncu_roofline.analyses.ranks import ranks

    outputs = targets(args, ANALYSES["ranks"].formats, lambda: reading.named_files(args))
    select = reading.checked_selection(args, args.by)
    named = reading.wanted(args.ceilings)
    parts, failed = reading.for_each_report(args, partial(_read, select=select, gpu=args.gpu))
    if not any(len(part.measurements) for part in parts):
        raise reading.no_launch(args)
    ceilings = named.of(gpu for part in parts for gpu in reading.gpus(part.measurements))
    write_results(ranks(parts, ceilings, rank=args.rank, clock=args.clock, by=args.by, select=select), outputs, args)
    return 1 if failed else 0


def _read(path: str, name: str, select: Selection, gpu: tuple[int, int] | None) -> tuple[RankPart, tuple[str, ...]]:
    from ncu_roofline.analyses.ranks import rank_part
    from ncu_roofline.model.plausible import left_out

    with reading.opened(path, gpu) as (report, warnings):
        part = rank_part(report, name, select)
        return part, (*warnings, *left_out(part.measurements))
