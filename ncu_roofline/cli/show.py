"""`ncu-roofline show` and `render`: one view of reports as a table in the terminal or JSON; as pictures, pages and data."""

from __future__ import annotations

import glob
import os
import shlex
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from ncu_roofline.analyses import ANALYSES, Analysis, analysis_of, render, text_table, views
from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.base.files import REPORT_SUFFIXES, ReportNames, pack_folder
from ncu_roofline.base.texts import listed, plural, printable
from ncu_roofline.chips import load_spec
from ncu_roofline.cli import outputs, reading
from ncu_roofline.cli.options import add_filters, add_looks, add_model, add_reports, add_views, add_width, value
from ncu_roofline.cli.runs import add_traces, chosen, run_beside, run_of_args
from ncu_roofline.formats.inputs import joined
from ncu_roofline.formats.inputs.tables import PointTable
from ncu_roofline.formats.report import Report
from ncu_roofline.rendering.paper import PRESETS, PRESETS_HELP, SIZES, PaperError, paper_of
from ncu_roofline.rendering.table import wrapped

if TYPE_CHECKING:
    from ncu_roofline.analyses.run.frames import Run
    from ncu_roofline.formats.ceilings import Ceilings
    from ncu_roofline.model import Measurements, Selection
    from ncu_roofline.model.explanations import Explanation
    from ncu_roofline.plugin.nvrules.runner import KernelAdvice

# What every report with source counters counts, whatever release wrote it.
EXECUTED_BY_ADDRESS = "inst_executed"
# A page carries advice on the launches that tell most; `advise` prints it for all.
ADVISED_LAUNCHES = 20
_PAPER = ("preset", "width", "height", "font", "dpi", "size", "bare")
# Formats with a row per kernel unless the user says otherwise; the others hold data.
_FOR_PEOPLE = ("html", "png", "svg", "pdf", "md", "text")


def add_show(parser: ArgumentParser) -> None:
    """What to show, and how."""
    add_reports(parser)
    add_filters(parser)
    add_model(parser)
    add_views(parser)
    add_traces(parser)
    about = "all tables of the view as JSON on standard output, a row per launch unless --by says otherwise"
    parser.add_argument("--json", action="store_true", help=about)
    parser.add_argument("--full-paths", action="store_true", help="with --json: full paths of reports, not only their names")
    parser.add_argument("--all", action="store_true", help="all kernels, not only those that could save most")
    about = "also where the numbers come from, and the reasons of all verdicts"
    parser.add_argument("--notes", action="store_true", help=about)
    add_width(parser, "width of the table (default: the terminal's)")
    parser.add_argument("-o", "--output", help=SUPPRESS)  # what newcomers try


def add_render(parser: ArgumentParser) -> None:
    """What to draw, and into which file."""
    parser.epilog = "Formats: see `ncu-roofline list formats`."
    add_reports(parser)
    about = "file to write, may be repeated; its suffix says the format; - is standard output (default: a page called like the "
    about += "first report)"
    parser.add_argument("-o", "--output", metavar="FILE", action="append", default=[], help=about)
    parser.add_argument("--format", metavar="FORMAT", default="", help="format, where the suffix does not say it")
    parser.add_argument("--force", action="store_true", help="overwrite FILE")
    add_looks(parser)
    paper = parser.add_argument_group("pictures (png, svg, pdf)")
    paper.add_argument("--preset", choices=PRESETS, help=f"sizes to begin with: {PRESETS_HELP}")
    length = value("is no length", lambda text: text or None)
    about = "width: 3.3in, 8.4cm, 84mm, 240pt or 800px (default: 7.16in)"
    paper.add_argument("--width", metavar="LENGTH", type=length, help=about)
    paper.add_argument("--height", metavar="LENGTH", type=length, help="height (default: what is needed)")
    about = "size of the letters in points; none is below 6, what has no room is left out (default: 7.2)"
    paper.add_argument("--font", metavar="POINTS", type=float, help=about)
    paper.add_argument("--dpi", metavar="DPI", type=float, help="dots per inch of a png (default: 160)")
    paper.add_argument("--size", choices=SIZES, help="area of a dot: all equal, or its share of the time (default: equal)")
    about = "chart and legend alone; what else it would say is printed, for a caption"
    paper.add_argument("--bare", action="store_true", default=None, help=about)
    about = "what csv and parquet hold: points, roofs or kernels; with --view time points, machines or absent, with --view "
    about += "phases points, bands, sampled or roofs; with --run needs or coverage, too; of a trace operators, chains, runs or "
    about += "roofs (default: points, or kernels where no kernel has any; operators)"
    tables = dict.fromkeys(
        table for view in (*views("render").values(), ANALYSES["run"], ANALYSES["counted"]) for table in view.holds
    )
    parser.add_argument("--table", choices=tables, help=about)
    add_filters(parser)
    add_model(parser)
    add_views(parser)
    add_traces(parser)


def run_show(args: Namespace) -> int:
    """Print the table (or JSON); exit code 1 if some report had to be left out."""
    from ncu_roofline.analyses.hierarchical.text import TOP

    if args.output:
        words = ["ncu-roofline", "render", *args.reports, "-o", args.output]
        next_step = f"Write pictures and pages with `{shlex.join(words)}`."
        raise UsageError("Cannot write", args.output, "show only prints", next_step)
    if args.full_paths and not args.json:
        raise UsageError("Cannot use", "--full-paths", "printed tables name reports only", "Add --json.")
    if run := run_of_args(args, full_paths=args.full_paths):
        result, top = Result(run, [], [], int(run.left_out), []), {"top": args.top} if args.top else {}
    else:
        result, top = read_roofline(args, for_people=not args.json, full_paths=args.full_paths), {"top": TOP}
    if args.json:
        outputs.write_output(outputs.STANDARD_OUTPUT, render(result.roofline, "json"), force=True)
        return result.exit_code
    width, top = args.width or outputs.terminal_width(), {"top": 0} if args.all else top
    table = text_table(result.roofline, width=width, color=outputs.coloured(sys.stdout), notes=args.notes, **top)
    more = [] if args.of_run else [*_lacking(result.explanations, args.view), *_where(result.with_source)]
    lines = wrapped(more, width, "  ", whole=True)
    outputs.write_text("\n".join([table, *([""] if lines else []), *lines]))
    return result.exit_code


def _where(reports: Sequence[str]) -> Iterator[str]:
    """The command that says where in a kernel its time is, for the first report that can tell and can be read again."""
    for report in [one for one in reports if PurePath(one).name != reading.STANDARD_INPUT_NAME][:1]:
        command = shlex.join(["ncu-roofline", "source", printable(report)])
        yield f"Where in a kernel: `{command}` has loops and instructions, and lines of code that was compiled with -lineinfo."


def _lacking(explanations: Sequence[Explanation], view: str) -> Iterator[str]:
    """What reports lack, and the command that tells how to add it; reports that lack the same in one sentence."""
    from ncu_roofline.analyses.hierarchical.style import label_of

    option = f" --view {view}" if view != "roofline" and view in views("explain") else ""
    for missing in dict.fromkeys(one.missing for one in explanations if one.missing):
        members = [one for one in explanations if one.missing == missing]
        names = listed((printable(one.report) for one in members), 5)
        count = sum(one.launches for one in members)
        where = "its launch" if count == 1 else f"some or all of {plural(count, 'launch')}"
        what = listed(map(label_of, missing), len(missing))
        yield f"{names}: {what} missing in {where}; `ncu-roofline explain{option}` says how to add them."


def run_render(args: Namespace) -> int:
    """Render to files; exit code 1 if some report had to be left out."""
    args.output = args.output or [_page_of(args)]
    try:
        run = run_of_args(args)
        analysis = ANALYSES["run" if run else "counted" if args.of_run else args.view]
        targets = outputs.targets(args, analysis.formats, lambda: reading.named_files(args))
        if args.table and args.table not in analysis.tables:
            what = "a run" if run else "--run" if args.of_run else f"--view {args.view}"
            reason = f"{what} has the tables {', '.join(analysis.tables)}"
            raise UsageError("Cannot use --table", args.table, reason, "Name one of those.")
        options = {**outputs.looks(args), **_paper(args, targets.values(), analysis)}
        return _render_run(args, run, targets, options) if run else _render_reports(args, analysis, targets, options)
    except PaperError as error:
        name, _, reason = str(error).partition(" ")
        raise UsageError("Cannot draw with", f"--{name}", reason, "See `ncu-roofline render --help`.") from error


def _page_of(args: Namespace) -> str:
    """What a page, or what --format asks for, of the first report is called; it stands in the current folder."""
    from ncu_roofline.formats.traces import SUFFIXES

    formats = ANALYSES[args.view].formats
    suffix = formats[args.format].suffixes[0] if args.format in formats and formats[args.format].suffixes else ".html"
    name = PurePath(os.path.realpath(args.reports[0])).name
    if name == reading.STANDARD_INPUT_NAME or glob.has_magic(name):
        name = "roofline"
    ending = next((one for one in (*REPORT_SUFFIXES, *SUFFIXES) if name.lower().endswith(one)), "")
    return f"{name[: len(name) - len(ending)]}{suffix}"


def _render_run(args: Namespace, run: Run, targets: Mapping[str, str], options: dict[str, Any]) -> int:
    analysis = ANALYSES["run"]
    options |= {"table": args.table or next(iter(analysis.tables)), **({"top": args.top} if args.top else {})}
    for output_format in targets.values():
        if args.top and not analysis.takes(output_format, "top"):
            reason = f"a run as {output_format} has all operators"
            raise UsageError("Cannot use", "--top", reason, "Leave it out, or write a picture or text.")
    for path, output_format in targets.items():
        outputs.deliver(path, render(run, output_format, **options), args.force, output_format)
    _captions(args, run, analysis, targets)
    return int(run.left_out)


def _render_reports(args: Namespace, analysis: Analysis, targets: Mapping[str, str], options: dict[str, Any]) -> int:
    # Rules are about the profiler's times.
    advice = not args.of_run and any(analysis.takes(output_format, "advice") for output_format in targets.values())
    results: dict[bool, Result] = {}  # with a row per kernel, or data
    for path, output_format in targets.items():
        for_people = output_format in _FOR_PEOPLE
        if for_people not in results:
            results[for_people] = read_roofline(args, for_people=for_people, advice=advice and for_people)
        result = results[for_people]
        more: dict[str, Any] = {}
        if output_format == "html":
            more = {"explanations": [one.as_dict() for one in result.explanations if one.missing], "advice": result.advice}
        if output_format in ("csv", "parquet"):
            more = {"table": args.table or _table_with_rows(result.roofline, path)}
        outputs.deliver(path, render(result.roofline, output_format, **options, **more), args.force, output_format)
    if True in results:
        _captions(args, results[True].roofline, analysis, targets)
    outputs.warn(text for one in results.values() for text in ANALYSES[args.view].viewer.undrawn(one.roofline))
    return max(one.exit_code for one in results.values())


def _captions(args: Namespace, frames: Any, analysis: Analysis, targets: Mapping[str, str]) -> None:
    """Print what a picture leaves to its caption: all texts of a bare one, facts and notes of one for a column."""
    pictures = [name for name in targets.values() if analysis.takes(name, "bare")]
    if pictures and (args.bare or args.preset == "column") and outputs.STANDARD_OUTPUT not in targets:
        lines = analysis.maker(pictures[0]).caption(frames, bool(args.bare))  # type: ignore[attr-defined]
        outputs.write_text("\n".join(filter(None, lines)))


def _paper(args: Namespace, formats: Collection[str], analysis: Analysis) -> dict[str, Any]:
    """The options of pictures, checked before any report is read.  Raises PaperError."""
    given = {name: found for name in _PAPER if (found := getattr(args, name)) is not None}
    for name in given:
        if not any(analysis.takes(one, "preset") and analysis.takes(one, name) for one in formats):
            view = f"--view {analysis.view}" if analysis.commands else f"a {analysis.view}"
            reason = f"{view} as {' and '.join(formats)} does not take it"
            next_step = "Leave it out" if {"png", "svg", "pdf"} & {*formats} else "Leave it out, or write a .png, .svg or .pdf"
            raise UsageError("Cannot use", f"--{name}", reason, f"{next_step}.")
    paper_of(args.width, args.height, args.font, args.dpi, args.preset)
    return given


def _table_with_rows(roofline: Any, output: str) -> str:
    """The points, or where there are none the kernels: they say why, and what limits them."""
    from ncu_roofline.rendering.frames import column

    if column(roofline, "points", "kernel"):
        return "points"
    instead = analysis_of(roofline).instead
    table = next((name for name in instead if column(roofline, name, "kernel")), instead[-1])
    verdicts = ", with their verdicts" if table == "kernels" and any(column(roofline, table, "verdict")) else ""
    held = "bands" if table == "bands" else "kernels"
    what = "the standard output" if output == outputs.STANDARD_OUTPUT else output
    outputs.say(f"No dots: {what} holds the {held}{verdicts}; --table points keeps the header alone.")
    return table


class Result(NamedTuple):
    """A roofline, what its reports lack, what our rules say, and whether some report had to be left out.

    ``with_source`` are reports with counts by instruction, as they were typed.
    """

    roofline: Any
    explanations: list[Explanation]
    advice: list[dict[str, Any]]
    exit_code: int
    with_source: list[str]


class ReadReport(NamedTuple):
    """What a worker brings back of one report; ``source`` is its path where it has counts by instruction."""

    measurements: Measurements
    explanation: Explanation | None = None
    advice: tuple[KernelAdvice, ...] = ()
    source: str = ""


def read_roofline(args: Namespace, *, for_people: bool = True, advice: bool = False, full_paths: bool = False) -> Result:
    """Read every report of the command line and build the view it asks for; with ``advice``, what our rules say.

    What is ``for_people`` has a row per kernel unless they say otherwise, data one per launch.  Reports go by the shortest
    ends of their paths that tell them apart, or by their ``full_paths``.
    """
    from ncu_roofline.analyses.hierarchical.view import VIEWER, Asked
    from ncu_roofline.model import Measurements, as_trajectory, measurements_of

    sweep, made = args.trajectory or bool(args.label), ANALYSES[args.view].viewer
    by = args.by or ("kernel" if for_people and args.source != "embedded" else made.by)
    by = "kernel" if sweep and by == "launch" else by  # the launches of a step are one dot
    asked = Asked(reading.selection(args, by), by, args.clock, args.source, tuple(args.ceilings), args.launch_latency)
    made.check(asked)
    if args.of_run and (option := chosen(args, ("view", "source", "clock", "trajectory", "label"))):
        reason = "kernels at the time of a run are a roofline of counts at the highest clock"
        raise UsageError("Cannot use --run with", option, reason, "Leave one of them out.")
    measured = reading.wanted(args.ceilings)
    names = ReportNames(full=True) if full_paths else ReportNames.apart(reading.expand(args.reports))
    advised = asked.select if advice else None
    work = partial(_read, names=names, view=args.view, charts=args.source == "embedded", gpu=args.gpu, advised=advised)
    passes = not (sweep or made.samples or args.source == "embedded")
    found, failed = reading.for_each_report(args, work, passes=passes)
    items = joined(found)
    tables = [one for one in items if isinstance(one, PointTable)]
    if not args.by and not sweep and tables:  # rows of other tools are what these say
        asked = replace(asked, by=made.by, select=reading.selection(args, made.by))
    outputs.warn(warning for table in tables for warning in table.warnings)
    read = [ReadReport(measurements_of(one)) if isinstance(one, PointTable) else one for one in items]
    measurements = Measurements.joined([report.measurements for report in read])
    if sweep:
        measurements = as_trajectory(measurements, args.label)
    measurements = _called(measurements, names)
    selected = asked.select.launches(measurements)
    if not len(selected):
        raise reading.no_launch(args)
    ceilings = measured.of(reading.gpus(measurements))
    if args.of_run:
        from ncu_roofline.analyses.run.counted import counted as with_run

        frames: Any = with_run(run_beside(args, full_paths), selected, ceilings, by=by, select=asked.select)
    else:
        frames = made.frames(measurements, ceilings, asked)
    outputs.warn(_idle(selected, measured.files))
    counted = {names(one.measurements.report[0]): one.source for one in read if one.source}
    if for_people and made is VIEWER:
        if counted:
            from ncu_roofline.analyses.source.findings import spots

            frames = replace(frames, spots=spots(frames, selected, counted))
        if advice:  # for a page
            from ncu_roofline.analyses.phases.text import strips

            frames = replace(frames, strips=strips(selected))
    told: list[dict[str, Any]] = []
    if said := [one for report in read for one in report.advice]:
        from ncu_roofline.plugin.nvrules.findings import advice_rows, findings

        told = [row for row in advice_rows(findings(said, selected, ceilings).found) if row["type"] != "ok"]
    explanations = [report.explanation for report in read if report.explanation]
    return Result(frames, explanations, told, int(failed), list(counted.values()))


def _idle(m: Measurements, files: Sequence[Ceilings]) -> Iterator[str]:
    """Notes on files that have no roof of what launches counted."""
    roofs = [roof for one in m.precisions(load_spec()) if (m.values(m.work, one.id) > 0).any() for roof in one.roof_ids()]
    for file in files:
        if not (file.launch_latency() or any(map(file.compute, roofs)) or any(map(file.bandwidth, m.traffic))):
            yield f"{file.path}: none of its ceilings is a roof of what was counted"


def _called(m: Measurements, names: ReportNames) -> Measurements:
    """Measurements under the names that their reports have in results."""
    import numpy as np

    called = {report: names(report) for report in set(m.report)}  # of thousands of launches a few
    return replace(m, report=np.array([called[report] for report in m.report], dtype=object))


def _read(
    path: str,
    typed: str,
    names: ReportNames,
    view: str,
    charts: bool,
    gpu: reading.Capability | None,
    advised: Selection | None,
) -> tuple[ReadReport | PointTable, tuple[str, ...]]:
    """A report as a view needs it, ``charts`` for its own; with ``advised``, our rules run on some of these launches."""
    from ncu_roofline.model import Selection, measurements_of

    made = ANALYSES[view].viewer
    samples = made.samples or advised is not None  # a page has both
    with reading.opened(path, gpu) as (report, warnings):
        if isinstance(report, PointTable):  # others may complete it, and then say other things
            return report, ()
        own = isinstance(report, Report)  # rules and charts read more of a report than its metrics
        measurements = measurements_of(
            report, charts=charts and own, instructions=made.instructions, samples=samples, label=typed
        )
        called = _called(measurements, names)  # a sweep looks for its steps in what was typed
        explanation = made.explain(report, called, Selection())
        if not isinstance(report, Report):
            return ReadReport(measurements, explanation), warnings
        advice = _advice(report, called, advised) if advised else ()
        return ReadReport(measurements, explanation, advice, path if _counts_instructions(report) else ""), warnings


def _counts_instructions(report: Report) -> bool:
    """Whether the first kernel has counts by instruction."""
    with suppress(RooflineError, KeyError):
        found = EXECUTED_BY_ADDRESS in report.metric_names
        return found and bool(len(report.kernels[0].metrics.by_address(EXECUTED_BY_ADDRESS)[0]))
    return False


def _advice(report: Report, measurements: Measurements, select: Selection) -> tuple[KernelAdvice, ...]:
    from ncu_roofline.plugin.nvrules.findings import most_telling
    from ncu_roofline.plugin.nvrules.runner import advise, load_rules

    chosen = select.launches(measurements)
    return advise(report, load_rules((str(pack_folder("rules")),)), chosen.take(most_telling(chosen, ADVISED_LAUNCHES)))
