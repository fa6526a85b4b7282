"""`ncu-roofline source`: loops, source lines, functions and instructions of the hottest kernels, from source counters."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from ncu_roofline.analyses import ANALYSES, render
from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.base.texts import clean, listed
from ncu_roofline.cli.options import LaunchFilters, ReportOptions, RoofOptions, choice, flag, option, positive
from ncu_roofline.cli.outputs import (
    check_output,
    chosen_format,
    coloured,
    deliver,
    terminal_width,
    warn,
    without_warnings,
    write_text,
)
from ncu_roofline.cli.source_reports import Read, Reading, Shelf, Whole, read_view

if TYPE_CHECKING:
    from ncu_roofline.analyses.source.build import NotCountedError
    from ncu_roofline.analyses.source.frames import SourceRoofline

    Capability = tuple[int, int]
    Gpu = tuple[str, Capability]
_EPILOG = """\
It needs a report with source counters: `ncu --set full`, or `--section SourceCounters`.  Code that is compiled with
`nvcc -lineinfo` has lines, and `ncu --import-source on` keeps their text.  Machine code comes from the report.

samples    share of the warp samples: of the time of the kernel's warps, not of its run time
work       share of the floating-point and tensor operations
L1 bytes   share of the bytes that accesses to global and local memory ask of L1 (sectors x 32); those of L2 and DRAM are known
           of the kernel only
local bytes
           the part of all these bytes that is local memory's: spilled registers, arrays indexed at run time
excess     share of the kernel's bytes of global memory that accesses to neighbouring addresses would save here
FLOP/B     operations per byte asked of L1, by global and local memory
lanes      threads active per warp instruction, of 32
trips      iterations of a loop each time that a warp enters it
of roof at L1
           performance of a loop over what the roofs of L1 and of its work allow at its intensity; those of L2 and DRAM may
           allow less, and stand against the whole kernel only
executed   how often warps executed an instruction; of executed: its share of all that they executed

Why lines have no performance: warps run side by side, so the samples of one line are no time in which nothing else ran, and
its operations over samples x run time can come out above the peak of the chip.  Shares and intensities don't have this fault.
Kernels do have a performance, and so have loops that hold most of the samples: operations / (share of the samples x run time),
under the roof of their intensity at L1.  Notes say why other loops have none.

Lines and loops are those of the machine code: what the compiler moved or unrolled stands where it put it.  Counts are of an
instrumented pass of the same launch; the last lines say how well their sums fit the kernel's own counters.
"""

_INSTALL = "with nvdisasm there are whole instructions: pip install 'ncu-roofline[sass]'"
_DISASSEMBLED = (7, 5)  # the oldest chip that the nvdisasm of PyPI knows
_ROWS_ALONE = ("csv", "parquet")
_DATA = ("json", *_ROWS_ALONE)
_TAKEN = {"all": "rows", "ascii": "ascii_only"}  # what the makers of formats call options


@dataclass(frozen=True, kw_only=True)
class Launches(LaunchFilters):
    """Which launches: of each report the kernels that take most time."""

    top: int = option(
        "the N kernels with most time of each report, each by its longest launch (default: %(default)s)",
        "N",
        type=positive,
        default=1,
    )


@dataclass(frozen=True, kw_only=True)
class Rows:
    """What the tables show."""

    TITLE: ClassVar[str] = "rows"
    by: str | None = choice(
        "one table, of rows that are these (default: findings, loops, then lines); outer-line: lines of the kernel itself, "
        "with what is inlined there",
        ("loop", "line", "outer-line", "function", "instruction"),
        default=None,
    )
    rows: int | None = option(
        "rows of a table; of instructions the hottest stretch of so many", "N", type=positive, default=None
    )
    all: bool = flag("all rows")
    sort: str | None = choice(
        "what rows are ranked by (default: samples, where there are any); int32: INT32 operations, which are no part of work; "
        "traffic: L1 bytes, those of local memory too",
        ("samples", "work", "int32", "traffic", "excess", "executed"),
        default=None,
    )


@dataclass(frozen=True, kw_only=True)
class SourceOutput:
    """How it is told, and where."""

    TITLE: ClassVar[str] = "output"
    json: bool = flag("all tables as JSON on standard output")
    width: int | None = option("width of the text", "COLUMNS", type=positive, default=None)
    ascii: bool = flag("text of plain ASCII characters")
    output: str = option(
        "file to write: .html, .png, .svg, .pdf, .md, .csv, .json, .parquet or .txt; - is standard output", "FILE", short="-o"
    )
    format: str = option("format of FILE, where the suffix does not say it", "FORMAT")
    table: str | None = choice(
        "what csv and parquet hold (default: the rows of --by, else lines)", ANALYSES["source"].tables, default=None
    )
    title: str = option("title of the page, picture or Markdown", "TEXT")
    theme: str | None = choice("colours (default: light; a page follows the reader's system)", ("light", "dark"), default=None)
    full_paths: bool = flag("in json, csv and parquet: where source files lie, not only what tells their names apart")
    force: bool = flag("overwrite FILE")


@dataclass(frozen=True, kw_only=True)
class Request:
    """Which launches of which reports, and what of them."""

    EPILOG: ClassVar[str] = _EPILOG
    reports: ReportOptions
    rows: Rows
    launches: Launches
    roofs: RoofOptions
    source_folder: tuple[str, ...] = option(
        "where source files lie that the report does not hold; may be repeated", "DIR", action="append"
    )
    no_disassembly: bool = flag("names of opcodes by our own table, even where nvdisasm is installed")
    output: SourceOutput = field(default_factory=SourceOutput)


def run(request: Request) -> int:
    """Print or write the view; exit code 1 if some report had to be left out."""
    from ncu_roofline.analyses.source.frames import SourceRoofline
    from ncu_roofline.cli.ceilings import wanted
    from ncu_roofline.cli.reading import for_each_report, named_files, no_launch
    from ncu_roofline.formats.inputs import open_ceilings
    from ncu_roofline.model.roofline import check_ceilings

    how, known = request.output, ANALYSES["source"].formats
    _check_folders(request.source_folder)
    output_format = chosen_format(how.output, how.format, known, "no format of the source view ({})", as_json=how.json)
    if how.table and output_format not in _ROWS_ALONE:
        raise UsageError("Cannot use --table", how.table, f"{output_format} has all tables", "Write a .csv or .parquet.")
    _check_options(request, output_format)
    if how.output:
        check_output(how.output, how.force, named_files(request.reports, request.roofs.ceilings))
    named = wanted(request.roofs.ceilings, open_ceilings)
    shelf = Shelf(named.files, tuple(named.shelf.all) if named.auto else ())
    whole = Whole.NONE if request.no_disassembly else _shown_whole(request, output_format)
    reading = Reading(request.launches, request.launches.top, request.roofs.clock, request.source_folder, shelf, whole)
    found, failed = for_each_report(request.reports, partial(read_view, how=reading))
    kept = [one for one in without_warnings(found) if one]
    read = [one for one in kept if isinstance(one, Read)]
    lacking = [one for one in kept if not isinstance(one, Read)]
    if not read:
        raise _none_counted(lacking, request.reports) if lacking else no_launch(request.reports, request.launches)
    warn(map(_without_step, lacking))
    gpus = [gpu for one in read for gpu in one.gpus]
    check_ceilings(named.files, gpus)
    named.of(gpus)  # says which were chosen
    frames = SourceRoofline.joined([one.frames for one in read])
    if not how.full_paths:
        frames = frames.without_folders()
    warn(text for one in read for text in one.undone)
    if _shows_instructions(whole, frames) and _would_help(gpus):
        frames = replace(frames, notes=(*frames.notes, _INSTALL))
    warn(_not_found(frames, request.source_folder))
    _deliver(frames, request, output_format)
    return 1 if failed else 0


def _none_counted(lacking: Sequence[NotCountedError], reports: ReportOptions) -> RooflineError:
    """The error where no report has counts by instruction."""
    first = lacking[0]
    if len(lacking) == 1:
        return first
    named = " ".join(reports.reports)
    return RooflineError(first.what, named, f"none of {len(lacking)} reports has counts by instruction", first.next_step)


def _without_step(error: NotCountedError) -> str:
    """A report that is left out beside others, as a warning."""
    return f"{error.path} is left out: {error.reason}."


def _check_folders(folders: Iterable[str]) -> None:
    for folder in folders:
        if not os.path.isdir(folder):
            raise UsageError("Cannot use --source-folder", folder, "there is no such folder", "Name one that holds sources.")


def _not_found(frames: SourceRoofline, folders: Sequence[str]) -> Iterator[str]:
    """Which source files are in none of the folders that were named for them."""
    columns = frames.line_columns
    files = {file for file, line in zip(columns["file"].tolist(), columns["line"].tolist(), strict=True) if line > 0}
    lacking = sorted(frames.called(file) for file in files - set(frames.texts))
    if folders and lacking:
        where = f"{len(lacking)} of {len(files)} source files are in no --source-folder"
        yield f"{where}: {listed(map(clean, lacking), 3)}. Name a folder that holds them, or above it."


def _check_options(request: Request, output_format: str) -> None:
    """Raise UsageError for options that nothing would come of."""
    how, rows = request.output, request.rows
    if rows.all and rows.rows is not None:
        raise UsageError("Cannot use", "--rows", "--all shows all of them", "Leave out one of the two.")
    given = {
        "by": rows.by,
        "rows": rows.rows,
        "all": rows.all,
        "sort": rows.sort,
        "width": how.width,
        "ascii": how.ascii,
        "title": how.title,
        "theme": how.theme,
    }
    if how.full_paths and output_format not in _DATA:
        raise UsageError("Cannot use", "--full-paths", "what people look at names files only", "Write json, csv or parquet.")
    for name, value in given.items():
        taken = ANALYSES["source"].takes(output_format, _TAKEN.get(name, name))
        chooses = name == "by" and output_format in _ROWS_ALONE
        if value and not taken and not chooses:
            raise UsageError("Cannot use", f"--{name}", f"{output_format} has no use for it", "Leave it out.")
    if rows.by and how.table:
        raise UsageError("Cannot use", "--by", "--table says what the file holds", "Leave out one of the two.")


def _would_help(gpus: Iterable[Gpu]) -> bool:
    """Whether the nvdisasm that can be installed is not there, and knows one of the chips."""
    from ncu_roofline.plugin.machine.disassembly import find_nvdisasm

    return sys.platform != "darwin" and any(chip >= _DISASSEMBLED for _, chip in gpus) and not find_nvdisasm()


def _shown_whole(request: Request, output_format: str) -> Whole:
    """Of which launches what is asked for has instructions in it."""
    if output_format in _ROWS_ALONE:
        return Whole.ALL if _table(request) == "instructions" else Whole.NONE
    if output_format in ("text", "md"):
        return {"instruction": Whole.ALL, "loop": Whole.NONE, "function": Whole.NONE}.get(request.rows.by or "", Whole.UNLINED)
    return Whole.ALL if output_format in ("html", "json") else Whole.NONE


def _shows_instructions(whole: Whole, frames: SourceRoofline) -> bool:
    from ncu_roofline.analyses.source.launches import launches

    return whole is Whole.ALL or (whole is Whole.UNLINED and not all(one.has_lines for one in launches(frames)))


def _table(request: Request) -> str:
    """What csv and parquet hold."""
    return request.output.table or f"{request.rows.by or 'line'}s".replace("-", "_")


def _deliver(frames: SourceRoofline, request: Request, output_format: str) -> None:
    """Print or write what was asked for; what has no room for notes gets them beside it."""
    from ncu_roofline.analyses.source.text import text_table

    how, rows = request.output, request.rows
    shown: dict[str, Any] = {"by": rows.by or "", "rows": 0 if rows.all else rows.rows, "sort": rows.sort or ""}
    if output_format == "text":
        shown |= {"width": how.width or terminal_width(), "ascii_only": how.ascii}
    if output_format == "text" and not how.output:
        write_text(text_table(frames, color=coloured(sys.stdout), **shown))
        return
    if output_format in _ROWS_ALONE:
        warn(frames.caveats())
    theme = {"theme": how.theme} if how.theme else {}
    deliver(
        how.output,
        render(frames, output_format, table=_table(request), title=how.title, **theme, **shown),
        how.force,
        output_format,
    )
