"""`ncu-roofline ranks`: reports of many MPI ranks, merged by kernel."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from ncu_roofline.analyses import ANALYSES, render
from ncu_roofline.cli.options import Command, Filters, Reports, Roofs, flag, option, positive, regex
from ncu_roofline.cli.outputs import check_output, chosen_format, deliver, warn

if TYPE_CHECKING:
    from ncu_roofline.analyses.ranks.parts import RankPart
    from ncu_roofline.model import Selection

MINIMUM_WIDTH = 60
_EPILOG = (
    "Without --rank the rank is a number after a word such as rank in every path, else the one number in which all paths "
    "differ, else host and process id, else the file name."
)


@dataclass(frozen=True, kw_only=True)
class Output:
    """How the ranks are told, and where."""

    TITLE: ClassVar[str] = "output"
    json: bool = flag("all tables as JSON on standard output")
    width: int | None = option(type=positive, metavar="COLUMNS", help="width of the text")
    output: str = option(
        "-o", default="", metavar="FILE", help="write to a file: .csv, .parquet, .json or .txt; - is standard output"
    )
    format: str = option(default="", metavar="FORMAT", help="format of FILE, where the suffix does not say it")
    table: str = option(
        choices=tuple(ANALYSES["ranks"].tables), default="kernels", help="what csv and parquet hold (default: %(default)s)"
    )
    force: bool = flag("overwrite FILE")


@dataclass(frozen=True, kw_only=True)
class Request:
    """Which reports of which ranks."""

    reports: Reports
    rank: str = option(
        type=regex,
        default="",
        metavar="REGEX",
        help="tells the rank from a report's path: the first group is the rank, as in 'node\\d+-(\\d+)'",
    )
    by: str = option(choices=("kernel", "application"), default="kernel", help="what one row is (default: %(default)s)")
    filters: Filters
    roofs: Roofs
    output: Output


@dataclass(frozen=True)
class _Read:
    """What a worker brings back of one report."""

    part: RankPart
    warnings: tuple[str, ...] = ()


def run(request: Request) -> int:
    """Print or write the merged ranks; exit code 1 if some report had to be left out."""
    from ncu_roofline.analyses.ranks.frames import ranks
    from ncu_roofline.cli.reading import checked_selection, for_each_report, no_launch
    from ncu_roofline.inputs import open_ceilings

    how, known = request.output, ANALYSES["ranks"].formats
    output_format = chosen_format(how.output, how.format, known, "no format of merged ranks ({})", as_json=how.json)
    if how.output:
        check_output(how.output, how.force)
    select = checked_selection(request.filters, request.by)
    ceilings = [open_ceilings(path) for path in request.roofs.ceilings]
    found, failed = for_each_report(request.reports, partial(_read, select=select, gpu=request.filters.gpu))
    warn(warning for one in found for warning in one.warnings)
    if not any(len(one.part.measurements) for one in found):
        raise no_launch(request.reports, request.filters.launches)
    parts = [one.part for one in found]
    result = ranks(parts, ceilings, rank=request.rank, clock=request.roofs.clock, by=request.by, select=select)
    width = how.width or max(shutil.get_terminal_size((120, 24)).columns, MINIMUM_WIDTH)
    data = render(result, output_format, table=how.table, width=width)
    deliver(how.output, data, how.force, text=output_format == "text")
    return 1 if failed else 0


def _read(path: str, name: str, select: Selection, gpu: tuple[int, int] | None) -> _Read:
    from ncu_roofline.analyses.ranks.parts import rank_part
    from ncu_roofline.cli.reading import opened

    with opened(path, gpu) as (report, warnings):
        return _Read(rank_part(report, name, select), warnings)


COMMAND = Command(Request, run, epilog=_EPILOG)
