"""`ncu-roofline budget`: limits for kernels or operators in a file, and a gate that a new report or trace has to pass."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ncu_roofline.analyses import ANALYSES
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.cli import reading
from ncu_roofline.cli.compare import Sides, sides_of
from ncu_roofline.cli.options import add_launches, add_output, add_reports, add_roofs
from ncu_roofline.cli.outputs import check_output, deliver, targets, write_results
from ncu_roofline.cli.runs import add_traces

if TYPE_CHECKING:
    from ncu_roofline.analyses.compare.budget import Checked


def add_budget(parser: ArgumentParser) -> None:
    """An action, and its own options."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    told = {"init": ("write a budget of what kernels take now", _init), "check": ("say what is over its budget", _check)}
    for name, (about, act) in told.items():
        one = actions.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
        one.set_defaults(act=act, precision=(), level=(), gpu=None)
        add_reports(one)
        add_launches(one, top=None)
        add_roofs(one)
        add_traces(one)
        if name == "init":
            about = "limit times of launches under 20 us and of what takes under 1 %% of the time, too"
            one.add_argument("--small", action="store_true", help=about)
            one.add_argument("-o", "--output", metavar="FILE", default="-", help="file to write (default: standard output)")
            one.add_argument("--force", action="store_true", help="overwrite FILE")
        else:
            one.epilog = "Exit code: 1 if something is over its budget (or with --strict missing), or nothing could be checked."
            one.add_argument("--budget", metavar="FILE", required=True, help="the limits (TOML)")
            about = "exit code 1 also where the reports lack a kernel, or a number that a limit needs"
            one.add_argument("--strict", action="store_true", help=about)
            group = add_output(
                one,
                "file to write: .md (fit for a comment), .csv, .json, .parquet or .txt; - is standard output",
                analysis="budget",
                default="limits",
            )
            group.add_argument("--title", metavar="TEXT", help="title of Markdown")


def run_budget(args: Namespace) -> int:
    """Write a budget, or check one."""
    return int(args.act(args))


def _init(args: Namespace) -> int:
    from ncu_roofline.analyses.compare.budget import budget_text

    check_output(args.output, args.force, reading.named_files(args))
    read = _read(args)
    source = ", ".join(read.labels)
    deliver(args.output, budget_text(read.sides[0], read.settings, source, bool(read.wholes)).encode(), args.force)
    return int(read.failed)


def _check(args: Namespace) -> int:
    outputs = targets(args, ANALYSES["budget"].formats, lambda: [*reading.named_files(args), args.budget])
    checked, failed = checked_of(args)
    write_results(checked, outputs, args)
    return int(failed)


def checked_of(args: Namespace) -> tuple[Checked, bool]:
    """What `budget check` finds, and whether that fails it.  Raises RooflineError."""
    from ncu_roofline.analyses.compare.budget import check, read_budget

    budget = read_budget(args.budget)
    read = _read(args)
    rows = "operators" if read.wholes else "kernels"
    if rows != budget.rows:
        reason = f"it limits {budget.rows}, and {args.reports[0]} has {rows}"
        raise RooflineError("Cannot use budget", args.budget, reason, "Give a trace for operators, a report for kernels.")
    checked = check(read.sides[0], budget, read.settings, args.kernel)
    return checked, read.failed or checked.failed(args.strict)


def _read(args: Namespace) -> Sides:
    """What is given, as one state."""
    return sides_of(args, [(args.reports[0], reading.expand(args.reports))])
