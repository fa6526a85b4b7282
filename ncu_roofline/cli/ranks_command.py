"""`ncu-roofline ranks`: reports of many MPI ranks, merged by kernel."""

from __future__ import annotations

import argparse
import shutil
from dataclasses import dataclass
from functools import partial

from ncu_roofline.analyses.ranks.frames import ranks
from ncu_roofline.analyses.ranks.parts import RankPart, rank_part
from ncu_roofline.cli.outputs import STANDARD_OUTPUT, check_output, chosen_format, say, write_output
from ncu_roofline.cli.reading import check_kernels, for_each_report, no_launch, on_gpu, selection
from ncu_roofline.inputs import PointTable, open_ceilings
from ncu_roofline.model import Selection, closing_input

MINIMUM_WIDTH = 60


@dataclass(frozen=True)
class _Read:
    """What a worker brings back of one report."""

    part: RankPart
    warnings: tuple[str, ...] = ()


def run(args: argparse.Namespace) -> int:
    """Print or write the merged ranks; exit code 1 if some report had to be left out."""
    from ncu_roofline.analyses import ANALYSES, render

    output_format = chosen_format(args, ANALYSES["ranks"].formats, "merged ranks")
    if args.output:
        check_output(args.output, args.force)
    select = selection(args)
    ceilings = [open_ceilings(path) for path in args.ceilings]
    found, failed = for_each_report(args, partial(_read, select=select, gpu=args.gpu))
    for warning in dict.fromkeys(warning for one in found for warning in one.warnings):
        say(f"ncu-roofline: {warning}")
    if not any(len(one.part.measurements) for one in found):
        raise no_launch(args)
    parts = [one.part for one in found]
    result = ranks(parts, ceilings, rank=args.rank, clock=args.clock, by=args.by, select=select)
    width = args.width or max(shutil.get_terminal_size((120, 24)).columns, MINIMUM_WIDTH)
    data = render(result, output_format, table=args.table, width=width)
    write_output(args.output or STANDARD_OUTPUT, data, args.force)
    if args.output and args.output != STANDARD_OUTPUT:
        say(f"Wrote {args.output}")
    return 1 if failed else 0


def _read(path: str, name: str, select: Selection, gpu: tuple[int, int] | None) -> _Read:
    with closing_input(path) as report:
        if isinstance(report, PointTable):
            return _Read(rank_part(report, name, select), report.warnings)
        known, warnings = on_gpu(report, gpu)
        check_kernels(known)
        return _Read(rank_part(known, name, select), warnings)
