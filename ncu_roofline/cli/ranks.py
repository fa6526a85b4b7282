"""`ncu-roofline ranks`: reports of many MPI ranks, merged by kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from ncu_roofline.analyses import ANALYSES, render
from ncu_roofline.cli.options import FilterOptions, ReportOptions, RoofOptions, choice, flag, option, positive, regex
from ncu_roofline.cli.outputs import check_output, chosen_format, deliver, terminal_width, without_warnings

if TYPE_CHECKING:
    from ncu_roofline.analyses.ranks.parts import RankPart
    from ncu_roofline.model import Selection

_EPILOG = (
    "Without --rank the rank is a number after a word such as rank in every path, else the one number in which all paths "
    "differ, else host and process id, else the file name."
)


@dataclass(frozen=True, kw_only=True)
class RanksOutput:
    """How the ranks are told, and where."""

    TITLE: ClassVar[str] = "output"
    json: bool = flag("all tables as JSON on standard output")
    width: int | None = option("width of the text", "COLUMNS", type=positive, default=None)
    output: str = option("write to a file: .csv, .parquet, .json or .txt; - is standard output", "FILE", short="-o")
    format: str = option("format of FILE, where the suffix does not say it", "FORMAT")
    table: str = choice("what csv and parquet hold (default: %(default)s)", ANALYSES["ranks"].tables, default="kernels")
    force: bool = flag("overwrite FILE")


@dataclass(frozen=True, kw_only=True)
class Request:
    """Which reports of which ranks."""

    EPILOG: ClassVar[str] = _EPILOG
    reports: ReportOptions
    rank: str = option(
        "tells the rank from a report's path: the first group is the rank, as in 'node\\d+-(\\d+)'", "REGEX", type=regex
    )
    by: str = choice("what one row is (default: %(default)s)", ("kernel", "application"))
    filters: FilterOptions
    roofs: RoofOptions
    output: RanksOutput


def run(request: Request) -> int:
    """Print or write the merged ranks; exit code 1 if some report had to be left out."""
    from ncu_roofline.analyses.ranks.frames import ranks
    from ncu_roofline.cli.ceilings import wanted
    from ncu_roofline.cli.reading import checked_selection, for_each_report, named_files, no_launch
    from ncu_roofline.formats.inputs import open_ceilings

    how, known = request.output, ANALYSES["ranks"].formats
    output_format = chosen_format(how.output, how.format, known, "no format of merged ranks ({})", as_json=how.json)
    if how.output:
        check_output(how.output, how.force, named_files(request.reports, request.roofs.ceilings))
    select = checked_selection(request.filters, request.by)
    named = wanted(request.roofs.ceilings, open_ceilings)
    found, failed = for_each_report(request.reports, partial(_read, select=select, gpu=request.filters.gpu), as_typed=True)
    parts = without_warnings(found)
    if not any(len(part.measurements) for part in parts):
        raise no_launch(request.reports, request.filters.launches)
    ceilings = named.of(
        key for part in parts for key in zip(part.measurements.device, part.measurements.capability, strict=True)
    )
    result = ranks(parts, ceilings, rank=request.rank, clock=request.roofs.clock, by=request.by, select=select)
    width = how.width or terminal_width()
    data = render(result, output_format, table=how.table, width=width)
    deliver(how.output, data, how.force, output_format)
    return 1 if failed else 0


def _read(path: str, name: str, select: Selection, gpu: tuple[int, int] | None) -> tuple[RankPart, tuple[str, ...]]:
    from ncu_roofline.analyses.ranks.parts import rank_part
    from ncu_roofline.cli.reading import opened
    from ncu_roofline.model.plausible import left_out

    with opened(path, gpu) as (report, warnings):
        part = rank_part(report, name, select)
        return part, (*warnings, *left_out(part.measurements))
