"""`ncu-roofline source`: loops, source lines, functions and instructions of the hottest kernels, from source counters."""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ncu_roofline.analyses import ANALYSES, render, text_table
from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.base.files import ReportNames
from ncu_roofline.base.texts import clean, listed
from ncu_roofline.cli import outputs, reading
from ncu_roofline.cli.options import add_launches, add_looks, add_output, add_reports, add_roofs, positive
from ncu_roofline.formats.inputs import check_report
from ncu_roofline.formats.report import read_report
from ncu_roofline.plugin.machine.machine import disassemble, find_nvdisasm

if TYPE_CHECKING:
    from ncu_roofline.analyses.source.build import NotCountedError
    from ncu_roofline.analyses.source.code import Disassemble
    from ncu_roofline.analyses.source.frames import SourceRoofline
    from ncu_roofline.formats.ceilings import Ceilings

_EPILOG = """\
It needs a report with source counters: `ncu --set full`, or `--section SourceCounters`.  Code that is compiled with
`nvcc -lineinfo` has lines, and `ncu --import-source on` keeps their text.  Machine code comes from the report.
`ncu-roofline guide source` says what each column is, and why lines have no performance.
"""
_INSTALL = "with nvdisasm there are whole instructions: pip install 'ncu-roofline[sass]'"
_DISASSEMBLED = (7, 5)  # the oldest chip that the nvdisasm of PyPI knows
_ROWS_ALONE = ("csv", "parquet")
_NONE, _UNLINED, _ALL = range(3)
"""Of which launches instructions are shown, and so disassembled, which takes a program of its own: of those without lines."""
_PATIENCE = 120.0  # seconds for all code of a report: of a launch it takes one for 0.5 MB
_LONG = 1_000_000  # bytes of code that take so long that people wonder


def add_source(parser: ArgumentParser) -> None:
    """Which launches of which reports, and what of them."""
    parser.epilog = _EPILOG
    add_reports(parser)
    rows = parser.add_argument_group("rows")
    about = "one table, of rows that are these (default: findings, loops, then lines); outer-line: lines of the kernel "
    about += "itself, with what is inlined there"
    rows.add_argument("--by", choices=("loop", "line", "outer-line", "function", "instruction"), help=about)
    about = "rows of a table; of instructions the hottest stretch of so many"
    rows.add_argument("--rows", metavar="N", type=positive, help=about)
    rows.add_argument("--all", action="store_true", help="all rows")
    about = "what rows are ranked by (default: samples, where there are any); int32: INT32 operations, which are no part of "
    about += "work; traffic: L1 bytes, those of local memory too"
    rows.add_argument("--sort", choices=("samples", "work", "int32", "traffic", "excess", "executed"), help=about)
    add_launches(parser, "the N kernels with most time of each report, each by its longest launch (default: %(default)s)", 1)
    add_roofs(parser)
    about = "folder of source files that the report does not hold; may be repeated"
    parser.add_argument("--source-folder", metavar="DIR", action="append", default=[], help=about)
    about = "names of opcodes by our own table, even where nvdisasm is installed"
    parser.add_argument("--no-disassembly", action="store_true", help=about)
    about = "file to write: .html, .png, .svg, .pdf, .md, .csv, .json, .parquet or .txt; - is standard output"
    output = add_output(parser, about, analysis="source", default="the rows of --by, else lines")
    output.add_argument("--ascii", action="store_true", help="text of plain ASCII characters")
    add_looks(output)
    about = "in json, csv and parquet: full paths of source files, not only their names"
    output.add_argument("--full-paths", action="store_true", help=about)


def run_source(args: Namespace) -> int:
    """Print or write the view; exit code 1 if some report had to be left out."""
    from ncu_roofline.analyses.source.build import NotCountedError
    from ncu_roofline.analyses.source.frames import SourceRoofline
    from ncu_roofline.analyses.source.text import launches
    from ncu_roofline.model.roofline import check_ceilings

    for folder in args.source_folder:
        if not os.path.isdir(folder):
            raise UsageError("Cannot use --source-folder", folder, "there is no such folder", "Name one that holds sources.")
    targets = outputs.targets(args, ANALYSES["source"].formats, lambda: reading.named_files(args))
    table = args.table or f"{args.by or 'line'}s".replace("-", "_")  # what csv and parquet hold
    for output_format in targets.values():
        _check_options(args, output_format)
    of_code = {one: _NONE if args.no_disassembly else _instructions(one, table, args.by) for one in targets.values()}
    whole = max(of_code.values())
    named = reading.wanted(args.ceilings)
    names = ReportNames.apart(reading.expand(args.reports))
    read = partial(_read, names=names, args=args, given=named.files, others=named.others, whole=whole)
    every, failed = reading.for_each_report(args, read)
    kept = [one for one in every if one]
    lacking = [one for one in kept if isinstance(one, NotCountedError)]
    found = [one for one in kept if not isinstance(one, NotCountedError)]
    if not found and len(lacking) > 1:
        reason = f"none of {len(lacking)} reports has counts by instruction"
        raise RooflineError(lacking[0].what, " ".join(args.reports), reason, lacking[0].next_step)
    if not found:
        raise lacking[0] if lacking else reading.no_launch(args)
    outputs.warn(f"{one.path} is left out: {one.reason}." for one in lacking)
    gpus = [gpu for _, some, _ in found for gpu in some]
    check_ceilings(named.files, gpus)
    named.of(gpus)  # says which were chosen
    frames = SourceRoofline.joined([one for one, _, _ in found])
    frames = frames if args.full_paths else frames.without_folders()
    about_code = [*dict.fromkeys(text for _, _, undone in found for text in undone)]
    # Where the nvdisasm that can be installed is not there, and knows one of the chips.
    if sys.platform != "darwin" and any(chip >= _DISASSEMBLED for _, chip in gpus) and not find_nvdisasm():
        about_code.append(_INSTALL)
    least = _ALL if all(one.has_lines for one in launches(frames)) else _UNLINED
    with_code = replace(frames, notes=(*frames.notes, *about_code))
    found_for = {one: with_code if shown >= least else frames for one, shown in of_code.items()}
    lines = zip(*(frames.line_columns[name].tolist() for name in ("file", "line")), strict=True)
    files = {file for file, line in lines if line > 0}
    absent = sorted(frames.called(file) for file in files - set(frames.texts))
    if args.source_folder and absent:
        where = f"{len(absent)} of {len(files)} source files are in no --source-folder"
        outputs.warn([f"{where}: {listed(map(clean, absent), 3)}. Name a folder that holds them, or above it."])
    shown: dict[str, Any] = {"by": args.by or "", "rows": 0 if args.all else args.rows, "sort": args.sort or ""}
    text = {**shown, "width": args.width or outputs.terminal_width(), "ascii_only": args.ascii}
    # Rows alone have no room for notes.
    outputs.warn(text for one in _ROWS_ALONE if one in found_for for text in found_for[one].caveats())
    for path, output_format in targets.items():
        if output_format == "text" and not path:
            outputs.write_text(text_table(found_for[output_format], color=outputs.coloured(sys.stdout), **text))
        else:
            options = {"table": table, **outputs.looks(args), **(text if output_format == "text" else shown)}
            outputs.deliver(path, render(found_for[output_format], output_format, **options), args.force, output_format)
    return 1 if failed else 0


def _instructions(output_format: str, table: str, by: str | None) -> int:
    """Of which launches a format shows instructions."""
    if output_format in ("text", "md"):
        return {"instruction": _ALL, "loop": _NONE, "function": _NONE}.get(by or "", _UNLINED)
    return _ALL if output_format in ("html", "json") or (output_format in _ROWS_ALONE and table == "instructions") else _NONE


def _check_options(args: Namespace, output_format: str) -> None:
    """Raise UsageError for options that nothing would come of."""

    rows_alone, takes = output_format in _ROWS_ALONE, ANALYSES["source"].takes
    if args.table and not rows_alone:
        raise UsageError("Cannot use --table", args.table, f"{output_format} has all tables", "Write a .csv or .parquet.")
    if args.full_paths and output_format not in ("json", *_ROWS_ALONE):
        raise UsageError("Cannot use", "--full-paths", "other formats name files only", "Write json, csv or parquet.")
    called = {"all": "rows", "ascii": "ascii_only"}  # by the makers of formats
    for name in ("by", "rows", "all", "sort", "width", "ascii", "title", "theme"):
        useless = not takes(output_format, called.get(name, name))
        if name == "by" and rows_alone:
            useless = bool(args.table)  # which says the same
        if getattr(args, name) and (useless or (name == "rows" and args.all)):
            reason = "--all shows all of them" if not useless else f"{output_format} does not take it"
            raise UsageError("Cannot use", f"--{name}", reason, "Leave it out.")


def _read(
    path: str,
    typed: str,
    names: ReportNames,
    args: Namespace,
    given: Sequence[Ceilings],
    others: Sequence[Ceilings],
    whole: int,
) -> tuple[tuple[SourceRoofline, tuple[reading.Gpu, ...], tuple[str, ...]] | NotCountedError | None, tuple[str, ...]]:
    """The view of a report, its GPUs and why instructions are not whole, or why it has none (None if no launch passes the
    filters); and sentences.

    Its ceilings are those ``given``, and for GPUs that none of them is of the first that fits of the ``others``.
    """
    from ncu_roofline.analyses.source.build import NotCountedError, source_roofline
    from ncu_roofline.model import Selection, measurements_of

    check_report(path, "source counters are in reports only")
    select = Selection(kernel=args.kernel, nvtx=args.nvtx, launch=args.launch)
    undone: list[str] = []
    with read_report(path) as report:
        reading.check_kernels(report)
        if select != Selection() and not len(select.positions(measurements_of(report))):
            return None, report.warnings
        gpus = tuple((device.name, device.compute_capability or (0, 0)) for device in report.devices)
        ceilings: dict[str, Ceilings] = {}
        for gpu in gpus:
            mine = [one for one in given if one.applies_to(*gpu)] or [one for one in others if one.applies_to(*gpu)][:1]
            ceilings |= {one.path: one for one in mine}
        try:
            frames = source_roofline(
                report,
                list(ceilings.values()),
                select=select,
                top=args.top,
                clock=args.clock,
                disassemble=_disassembler(undone) if whole else None,
                only_unlined=whole == _UNLINED,
                folders=tuple(args.source_folder),
                label=names(typed),
            )
        except NotCountedError as error:
            return error, report.warnings
        return (frames, gpus, tuple(undone)), report.warnings


def _disassembler(undone: list[str]) -> Disassemble | None:
    """Whole instructions of functions by offset, None where nvdisasm is not installed.

    Once it failed, which ``undone`` tells, there are no more.
    """
    tool, deadline = find_nvdisasm(), time.monotonic() + _PATIENCE

    def texts(codes: Sequence[bytes], capability: reading.Capability) -> Sequence[Mapping[int, str]]:
        size = sum(map(len, codes))
        if not undone and size > _LONG and outputs.has_cursor(sys.stderr):
            outputs.say(f"nvdisasm reads {size / 1e6:.1f} MB of code (--no-disassembly leaves that out) ...")
        try:
            return (
                [{}] * len(codes) if undone or not tool else disassemble(codes, capability, tool, deadline - time.monotonic())
            )
        except RooflineError as error:
            why = f"nvdisasm failed: {error.reason.rstrip('.')}"
            undone.append(f"opcodes are shown without operands, as {why}; one that knows the chip shows them")
            return [{}] * len(codes)

    return texts if tool else None
