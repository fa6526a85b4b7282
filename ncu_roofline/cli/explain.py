"""`ncu-roofline explain`: which charts a report can give, what is missing, and how to add it."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ncu_roofline.analyses import ANALYSES
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import ReportNames
from ncu_roofline.base.texts import one_line, plural
from ncu_roofline.chips.ncu import compact
from ncu_roofline.cli import reading
from ncu_roofline.cli.options import add_filters, add_reports, add_view
from ncu_roofline.cli.outputs import terminal_width, write_text
from ncu_roofline.formats.inputs.tables import PointTable
from ncu_roofline.formats.report import Report
from ncu_roofline.rendering.table import command_lines, wrapped

if TYPE_CHECKING:
    from ncu_roofline.model import Selection
    from ncu_roofline.model.explanations import Explanation


def add_explain(parser: ArgumentParser) -> None:
    """What to explain, and of which view."""
    add_reports(parser)
    add_filters(parser)
    add_view(parser, "explain")
    parser.add_argument("--json", action="store_true", help="the same as JSON on standard output")


def run_explain(args: Namespace) -> int:
    """Explain every report; exit code 1 only if one could not be read."""
    select = reading.checked_selection(args, view=args.view)
    names = ReportNames.apart(reading.expand(args.reports))
    work = partial(_explain, names=names, select=select, gpu=args.gpu, view=args.view)
    explanations, failed = reading.for_each_report(args, work, passes=not ANALYSES[args.view].viewer.samples)
    if not any(explanation.launches for explanation in explanations):
        raise reading.no_launch(args)
    if args.json:
        write_text(json.dumps([explanation.as_dict() for explanation in explanations], indent=2))
    else:
        more, width = ANALYSES[args.view].viewer.more, terminal_width()
        write_text("\n\n".join("\n".join(_lines(explanation, more, width)) for explanation in explanations))
    return 1 if failed else 0


def _explain(
    path: str, typed: str, names: ReportNames, select: Selection, gpu: tuple[int, int] | None, view: str
) -> tuple[Explanation, tuple[str, ...]]:
    from ncu_roofline.model import Selection, measurements_of

    made = ANALYSES[view].viewer
    with reading.opened(path, gpu) as (report, warnings):
        if isinstance(report, PointTable):
            reason = "it has finished numbers of another tool and no metrics of ncu, so there is none to add"
            raise RooflineError("Cannot explain", path, reason, "`ncu-roofline show` prints its numbers.")
        every = measurements_of(report, instructions=made.instructions, samples=made.samples, label=names(typed))
        measurements = select.launches(every)
        explained = made.explain(report, measurements, select)
        notes = [*explained.notes]
        if isinstance(report, Report):  # whether `source` can look into the kernels, and what to collect where it can't
            from ncu_roofline.analyses.source.code import counted

            count = sum(counted(report.names(int(launch))) for launch in measurements.launch)
            has = f"counts by instruction in {count} of {plural(len(measurements), 'launch')}, which"
            none = "no launch has counts by instruction, which --section SourceCounters collects for `ncu-roofline source`"
            notes.append(f"{has} `ncu-roofline source` sums to loops and lines" if count else none)
        if made.samples:  # which launches have samples over their time
            from ncu_roofline.analyses.hierarchical.view import Asked

            frames = made.frames(measurements, (), Asked(Selection(), made.by, "profiled", "", (), None))
            absent = made.undrawn(frames)
            notes += [text.removesuffix(".") for text in absent] or ["all launches have samples over their time"]
        return replace(explained, notes=tuple(notes)), warnings


def _lines(one: Explanation, more: str, width: int) -> Iterator[str]:
    yield from wrapped(one.heading(one.report), width, "  ", whole=True)
    told = []
    for title, row in [*(("work", row) for row in one.precisions), *(("traffic", row) for row in one.levels)]:
        has = f"{row.launches} of {plural(one.launches, 'launch')}, {row.origin}" if row.launches else "missing"
        told.append((f"{title:8}{row.label:12} ", has))
        for names in filter(None, row.metrics.split("; ")):
            short = compact(names)
            told += [(" " * 10, name) for name in ([short] if len(short) <= width - 12 else names.split(", "))]
    told += [("set     ", one.of_sets), *(("note    ", note) for note in one.notes)]
    for first, text in told:
        yield from wrapped(text, width, " " * 10, first=f"  {first}", whole=True)
    added = one.labels([name for name in one.missing if name in one.added])
    gains = [f"add {', '.join(added)}"] if added else []
    gains += [f"count all of {', '.join(one.labels(one.partial))}"] if one.partial else []
    if one.command:
        yield from wrapped(f"To {' and '.join(gains)}, run:", width)
        yield from command_lines(one_line(one.command), width)
    elif not one.missing and (one.precisions or one.levels):
        yield from wrapped(f"Nothing is missing for what was asked{more}.", width)
