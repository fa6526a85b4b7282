"""`ncu-roofline annotate`: a copy of a report that shows our charts and advice in Nsight Compute."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import ReportNames, write_atomically
from ncu_roofline.base.texts import printable
from ncu_roofline.chips.ncu import compact
from ncu_roofline.cli.options import add_ceilings
from ncu_roofline.cli.outputs import REPORT, check_output, progress, say, write_text
from ncu_roofline.cli.reading import ceiling_files, given_report, gpus, wanted
from ncu_roofline.formats.ceilings import read_ceilings
from ncu_roofline.formats.inputs import check_report

if TYPE_CHECKING:
    from ncu_roofline.plugin.annotate import Account


def add_annotate(parser: ArgumentParser) -> None:
    """What to copy, to where, and what goes in."""
    about = "report file (.ncu-rep, .ncu-repz), - is standard input; it is not changed"
    parser.add_argument("report", metavar=REPORT, type=given_report, help=about)
    about = "the copy to write, a .ncu-rep; .ncu-repz is compressed"
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help=about)
    add_ceilings(parser)
    parser.add_argument("--no-rules", action="store_true", help="charts only, no advice")
    parser.add_argument("--force", action="store_true", help="overwrite FILE")


def run_annotate(args: Namespace) -> int:
    """Write the copy and list what could be derived."""
    from ncu_roofline.formats.report.framing import as_named
    from ncu_roofline.model import measurements_of
    from ncu_roofline.plugin.annotate import annotate

    report, output = args.report, args.output
    if not report:
        raise RooflineError("Cannot read", "''", "the name is empty", "Give the path of a report.")
    check_output(output, args.force, [report, *ceiling_files(args.ceilings)])
    check_report(report, "only a report can be annotated")
    named = wanted(args.ceilings, read_ceilings)
    ceilings = named.of(gpus(measurements_of(report))) if named.auto else named.files
    account = annotate(
        report,
        lambda chunks: write_atomically(output, as_named(output, chunks), overwrite=args.force),
        ceilings,
        [] if args.no_rules else None,
        lambda kernels, total: progress(kernels, "annotating launches", total),
    )
    say(f"Wrote {output}")
    write_text(_text(report, account))
    return 0


def _text(path: str, account: Account) -> str:
    one, launches, none = account.explanation, account.explanation.launches, "not derived: the report has no counters for it"
    lines = [one.heading(ReportNames()(path))]
    for row in one.precisions:
        worked, charts = account.worked[row.id], account.charts[row.id]
        less = f"; {worked - charts} more with work, but without traffic or a roof" if worked > charts else ""
        text = f"chart in {charts} of {launches} launches{less}" if worked else "no work"
        lines.append(f"  {row.label:14} {f'{text} ({row.origin}: {compact(row.metrics)})' if row.launches else none}")
    for row in one.levels:
        text = f"dots in {account.dots[row.id]} of {launches} launches, {row.launches} {row.origin}: {compact(row.metrics)}"
        lines.append(f"  {row.label:14} {text if row.launches else none}")
    lines.append(f"  {'advice':14} {sum(account.messages.values())} messages of {len(account.messages)} rules")
    if account.unused:
        lines.append(f"  {'ceilings':14} not used: {account.unused}")
    lines += [f"  {'note':14} {note}" for note in one.notes]
    if one.missing or one.partial:
        lines.append("`ncu-roofline explain` gives the ncu command that counts what could not be derived.")
    return "\n".join(map(printable, lines))
