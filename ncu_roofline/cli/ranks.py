"""`ncu-roofline ranks`: reports of many MPI ranks, merged by kernel."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from functools import partial
from typing import TYPE_CHECKING

from ncu_roofline.analyses import ANALYSES, render
from ncu_roofline.cli.options import add_filters, add_output, add_reports, add_roofs, add_width, regex
from ncu_roofline.cli.outputs import check_output, chosen_format, deliver, terminal_width, without_warnings

if TYPE_CHECKING:
    from ncu_roofline.analyses.ranks.parts import RankPart
    from ncu_roofline.model import Selection

_EPILOG = (
    "Without --rank the rank is a number after a word such as rank in every path, else the one number in which all paths "
    "differ, else host and process id, else the file name."
)


def add_options(parser: ArgumentParser) -> None:
    """Which reports of which ranks, and where to tell of them."""
    parser.epilog = _EPILOG
    add_reports(parser)
    about = "tells the rank from a report's path: the first group is the rank, as in 'node\\d+-(\\d+)'"
    parser.add_argument("--rank", metavar="REGEX", type=regex, default="", help=about)
    about = "what one row is (default: %(default)s)"
    parser.add_argument("--by", choices=("kernel", "application"), default="kernel", help=about)
    add_filters(parser)
    add_roofs(parser)
    output = add_output(parser, "write to a file: .csv, .parquet, .json or .txt; - is standard output")
    add_width(output)
    about = "what csv and parquet hold (default: %(default)s)"
    output.add_argument("--table", choices=ANALYSES["ranks"].tables, default="kernels", help=about)


def run(args: Namespace) -> int:
    """Print or write the merged ranks; exit code 1 if some report had to be left out."""
    from ncu_roofline.analyses.ranks.frames import ranks
    from ncu_roofline.cli.ceilings import wanted
    from ncu_roofline.cli.reading import checked_selection, for_each_report, named_files, no_launch
    from ncu_roofline.formats.inputs import open_ceilings

    known = ANALYSES["ranks"].formats
    output_format = chosen_format(args.output, args.format, known, "no format of merged ranks ({})", as_json=args.json)
    if args.output:
        check_output(args.output, args.force, named_files(args))
    select = checked_selection(args, args.by)
    named = wanted(args.ceilings, open_ceilings)
    found, failed = for_each_report(args, partial(_read, select=select, gpu=args.gpu), as_typed=True)
    parts = without_warnings(found)
    if not any(len(part.measurements) for part in parts):
        raise no_launch(args)
    ceilings = named.of(
        key for part in parts for key in zip(part.measurements.device, part.measurements.capability, strict=True)
    )
    result = ranks(parts, ceilings, rank=args.rank, clock=args.clock, by=args.by, select=select)
    width = args.width or terminal_width()
    data = render(result, output_format, table=args.table, width=width)
    deliver(args.output, data, args.force, output_format)
    return 1 if failed else 0


def _read(path: str, name: str, select: Selection, gpu: tuple[int, int] | None) -> tuple[RankPart, tuple[str, ...]]:
    from ncu_roofline.analyses.ranks.parts import rank_part
    from ncu_roofline.cli.reading import opened
    from ncu_roofline.model.plausible import left_out

    with opened(path, gpu) as (report, warnings):
        part = rank_part(report, name, select)
        return part, (*warnings, *left_out(part.measurements))
