"""`ncu-roofline advise`: what rules say about existing reports, offline."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from functools import partial
from typing import TYPE_CHECKING

from ncu_roofline.base.errors import UsageError
from ncu_roofline.base.files import ReportNames, pack_folder
from ncu_roofline.cli import reading
from ncu_roofline.cli.options import add_ceilings, add_launches, add_reports, positive
from ncu_roofline.cli.outputs import progress, terminal_width, write_text
from ncu_roofline.formats.ceilings import read_ceilings
from ncu_roofline.formats.inputs import check_report
from ncu_roofline.formats.report import read_report

if TYPE_CHECKING:
    from ncu_roofline.plugin.nvrules.findings import ReportAdvice
    from ncu_roofline.plugin.nvrules.runner import RuleSet

    Rules = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]  # folders to read, or name and text of files
_EPILOG = """\
Per kernel: its verdict, and a line for each of the three findings that could save most time.  A finding is printed once per
kernel, rule and title, the largest saving first; savings of the findings on one kernel overlap and do not add up.  Clocks are
reported once per GPU.
Rules are Python programs and run with your rights: name only folders that you trust.
--json: an object with gpus (device, sentences), findings, without_advice, notes and left_out.  A finding has id
(the same for kernel, rule and title in any report), device, kernel, name, rule, type (optimization, warning, ok,
error), title, text, spoken (whose numbers: ranges, longest launch, or empty where all say the same), count and
launches (report, launch), seconds, share (of the GPU's time), recoverable (seconds) and speedup, which is
seconds / (seconds - recoverable); null is unknown."""


def add_advise(parser: ArgumentParser) -> None:
    """Which reports, which rules, and how much of what they say."""
    parser.epilog = _EPILOG
    add_reports(parser)
    group = add_launches(parser, top=None)
    about = "only the N launches with the longest run time, of each report"
    group.add_argument("--longest", metavar="N", type=positive, default=0, help=about)
    about = "folder with rules instead of ours, such as the sections folder of Nsight Compute; may be repeated"
    parser.add_argument("--rules", metavar="DIR", action="append", default=[], help=about)
    parser.add_argument("--top", metavar="N", type=positive, default=0, help="only the N findings that could save most time")
    add_ceilings(parser)
    for name, about in {
        "--all-rules": "also rules of sections that the report was not made with",
        "--verbose": "all findings of a kernel, each with all that is said, not the three that could save most",
        "--all-findings": "also what concerns less than 1 %% of the run time, what is fine, and why a rule is silent",
        "--json": "the same as JSON on standard output",
        "--full-paths": "with --json: full paths of reports, not only their names",
    }.items():
        parser.add_argument(name, action="store_true", help=about)


def run_advise(args: Namespace) -> int:
    """Print the advice; exit code 1 only if a report could not be read."""
    from ncu_roofline.analyses.hierarchical.kernels import answers_of
    from ncu_roofline.model import Measurements
    from ncu_roofline.model.roofline import check_ceilings
    from ncu_roofline.plugin.nvrules.findings import Told, as_json, as_text, findings

    if args.full_paths and not args.json:
        raise UsageError("Cannot use", "--full-paths", "text for people names reports only", "Add --json.")
    named = reading.wanted(args.ceilings, read_ceilings)
    if args.ceilings and args.rules:
        reason = "they are for the rules that come with ncu-roofline"
        raise UsageError("Cannot use --ceilings", args.ceilings[0], reason, "Leave out --rules or --ceilings.")
    # Which GPUs the reports are of is known when they are read, so the rules get the ceilings of all.
    rules: Rules = tuple(map(os.path.abspath, args.rules or [pack_folder("rules")])), ()
    if drawn := [*named.files, *named.others]:
        from ncu_roofline.plugin.generate.rules import render_rules

        rules = (), tuple(render_rules(ceilings=drawn).items())
    _loaded(rules)  # says at once what is wrong with a folder
    paths = reading.expand(args.reports)
    names = ReportNames(full=True) if args.full_paths else ReportNames.apart(paths)
    # A bar over the launches; with several reports there is one over these.
    work = partial(_advise, names=names, args=args, rules=rules, watched=len(paths) == 1 and not args.dask)
    found, failed = reading.for_each_report(args, work)
    if not any(one.kernels for one in found):
        raise reading.no_launch(args)
    devices = [gpu for one in found for gpu in reading.gpus(one.measurements)]
    check_ceilings(named.files, devices)
    launches = Measurements.joined([one.measurements for one in found])
    share = {"share": 0.0} if args.all_findings else {}
    advice = findings((kernel for one in found for kernel in one.kernels), launches, named.of(devices), **share)
    told = Told(found, advice, {answer.device: answer.sentences for answer in answers_of(advice.roofline)}, args.top)
    brief = not (args.verbose or args.all_findings)
    write_text(as_json(told) if args.json else as_text(told, terminal_width(100), brief=brief, whole=args.all_findings))
    return 1 if failed else 0


def _loaded(rules: Rules) -> RuleSet:
    """The rules.  Works on other machines as well, given folders there provided."""
    from ncu_roofline.plugin.nvrules.runner import load_rules, rendered_rules

    folders, rendered = rules
    return rendered_rules(rendered) if rendered else load_rules(folders)


def _advise(
    path: str, typed: str, names: ReportNames, args: Namespace, rules: Rules, watched: bool
) -> tuple[ReportAdvice, list[str]]:
    from ncu_roofline.model import Selection, measurements_of
    from ncu_roofline.model.plausible import left_out, told
    from ncu_roofline.plugin.nvrules.findings import ReportAdvice
    from ncu_roofline.plugin.nvrules.runner import advise

    check_report(path, "rules read more of a report than its metrics")
    name, select = names(typed), Selection(kernel=args.kernel, nvtx=args.nvtx, launch=args.launch, top=args.longest)
    loaded = _loaded(rules)
    with read_report(path) as report:
        reading.check_kernels(report)
        measurements = select.launches(measurements_of(report, label=name))
        watch = partial(progress, what="running rules", total=len(measurements)) if watched else iter
        said = advise(report, loaded, measurements, collected_only=bool(args.rules) and not args.all_rules, watch=watch)
        notes = (*report.warnings, *told(measurements), *left_out(measurements))
        left = [f"Left out {problem.path}: {problem.reason}." for problem in loaded.problems]
        return ReportAdvice(name, report.ncu_version, measurements, said, notes), left
