"""What `show` and `render` share: reports on the command line to one view of them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ncu_roofline.analyses import ANALYSES
from ncu_roofline.analyses.hierarchical.view import VIEWER, Asked
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import ReportNames, pack_folder
from ncu_roofline.cli.ceilings import wanted
from ncu_roofline.cli.outputs import warn
from ncu_roofline.cli.reading import expand, for_each_report, no_launch, opened, selection
from ncu_roofline.formats.inputs import joined, open_ceilings
from ncu_roofline.formats.inputs.tables import PointTable
from ncu_roofline.formats.report import Report
from ncu_roofline.model import Measurements, Selection, as_trajectory, measurements_of
from ncu_roofline.model.explanations import Explanation
from ncu_roofline.model.samples import PASS_GROUPS

if TYPE_CHECKING:
    from ncu_roofline.formats.ceilings import Ceilings
    from ncu_roofline.plugin.nvrules.advice import KernelAdvice

# What every report with source counters counts, whatever release wrote it.
EXECUTED_BY_ADDRESS = "inst_executed"
# A page carries advice on the launches that tell most; `advise` prints it for all.
ADVISED_LAUNCHES = 20


@dataclass(frozen=True)
class Result:
    """A roofline, what its reports lack, and whether some report had to be left out.

    ``with_source`` are reports with counts by instruction, as they were typed.
    """

    roofline: Any
    explanations: tuple[Explanation, ...]
    advice: tuple[dict[str, Any], ...]
    exit_code: int
    with_source: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReadReport:
    """What a worker brings back of one report, which lies at ``path`` as it was typed.

    ``counted``: whether it has counts by instruction; ``sampled``: whether it was sampled over the time of launches.
    """

    measurements: Measurements
    explanation: Explanation | None
    advice: tuple[KernelAdvice, ...] = ()
    warnings: tuple[str, ...] = ()
    table: PointTable | None = None
    path: str = ""
    counted: bool = False
    sampled: bool = False


def read_roofline(args: Namespace, *, for_people: bool = True, advice: bool = False, full_paths: bool = False) -> Result:
    """Read every report of the command line and build the view it asks for; with ``advice``, what our rules say.

    What is ``for_people`` has a row per kernel unless they say otherwise, data one per launch.  Reports go by the shortest
    ends of their paths that tell them apart, or by their ``full_paths``.
    """
    sweep, made = args.trajectory or bool(args.label), ANALYSES[args.view].viewer
    by = args.by or ("kernel" if for_people and args.source != "embedded" else made.by)
    by = "kernel" if sweep and by == "launch" else by  # the launches of a step are one dot
    asked = Asked(selection(args, by), by, args.clock, args.source, tuple(args.ceilings), args.launch_latency)
    made.check(asked)
    measured = wanted(args.ceilings, open_ceilings)
    names = ReportNames(full=True) if full_paths else ReportNames.apart(expand(args.reports))
    work = partial(_read, names=names, view=args.view, charts=args.source == "embedded", gpu=args.gpu)
    found, failed = for_each_report(args, partial(work, advised=asked.select if advice else None), as_typed=True)
    if not args.by and not sweep and any(report.table for report in found):  # rows of other tools are what these say
        asked = replace(asked, by=made.by, select=selection(args, made.by))
    read = _completed(found)
    warn(warning for report in read for warning in report.warnings)
    measurements = Measurements.joined([report.measurements for report in read])
    if sweep:
        measurements = as_trajectory(measurements, args.label)
    measurements = _called(measurements, names)
    selected = asked.select.launches(measurements)
    if not len(selected):
        raise no_launch(args)
    ceilings = measured.of(zip(measurements.device, measurements.capability, strict=True))
    frames = made.frames(measurements, ceilings, asked)
    if for_people and made is VIEWER:
        named = {names(one.measurements.report[0]): one for one in read if one.path}
        frames = _looked_into(frames, selected, named, page=advice)
    return Result(
        roofline=frames,
        explanations=tuple(report.explanation for report in read if report.explanation),
        advice=_rows([one for report in read for one in report.advice], selected, ceilings),
        exit_code=1 if failed else 0,
        with_source=tuple(report.path for report in read if report.counted),
    )


def _looked_into(frames: Any, m: Measurements, reports: Mapping[str, ReadReport], *, page: bool) -> Any:
    """The frames with what reports, by name, tell of the code of the first kernel, and for a page what of its time."""
    if counted := {name: one.path for name, one in reports.items() if one.counted}:
        from ncu_roofline.analyses.source.build import spots

        frames = replace(frames, spots=spots(frames, m, counted))
    if page and (sampled := {name: one.path for name, one in reports.items() if one.sampled}):
        from ncu_roofline.analyses.phases.text import strips

        frames = replace(frames, strips=strips(frames, m, sampled))
    return frames


def _called(m: Measurements, names: ReportNames) -> Measurements:
    """Measurements under the names that their reports have in results."""
    return replace(m, report=np.array([names(report) for report in m.report], dtype=object))


def _completed(reports: list[ReadReport]) -> list[ReadReport]:
    """The reports, those of other tools' files that complete each other as one."""
    own = {id(report.table): report for report in reports if report.table}
    result = []
    for item in joined([report.table or report for report in reports]):
        if isinstance(item, ReadReport):
            result.append(item)
        elif id(item) in own:
            result.append(own[id(item)])
        else:
            result.append(ReadReport(measurements_of(item), None, warnings=item.warnings))
    return result


def _read(
    path: str,
    name: str,
    names: ReportNames,
    view: str,
    charts: bool,
    gpu: tuple[int, int] | None,
    advised: Selection | None,
) -> ReadReport:
    """A report as a view needs it, ``charts`` for its own; with ``advised``, our rules run on some of these launches."""
    made = ANALYSES[view].viewer
    with opened(path, gpu) as (report, warnings):
        if isinstance(report, PointTable):
            return ReadReport(measurements_of(report, label=name), None, warnings=warnings, table=report)
        own = isinstance(report, Report)  # rules and charts read more of a report than its metrics
        measurements = measurements_of(
            report, charts=charts and own, instructions=made.instructions, samples=made.samples, label=name
        )
        called = _called(measurements, names)  # a sweep looks for its steps in what was typed
        advice = _advice(report, called, advised) if isinstance(report, Report) and advised else ()
        explained = made.explain(report, called, Selection())
        if not isinstance(report, Report):
            return ReadReport(measurements, explained, warnings=warnings)
        sampled = PASS_GROUPS in report.metric_names
        return ReadReport(measurements, explained, advice, warnings, None, path, _counts_instructions(report), sampled)


def _counts_instructions(report: Report) -> bool:
    """Whether the first kernel has counts by instruction."""
    if EXECUTED_BY_ADDRESS not in report.metric_names:
        return False
    with suppress(RooflineError, KeyError):
        return bool(len(report.kernels[0].metrics.by_address(EXECUTED_BY_ADDRESS)[0]))
    return False


def _advice(report: Report, measurements: Measurements, select: Selection) -> tuple[KernelAdvice, ...]:
    from ncu_roofline.plugin.nvrules.advice import advise
    from ncu_roofline.plugin.nvrules.findings import most_telling
    from ncu_roofline.plugin.nvrules.runner import load_rules

    chosen = select.launches(measurements)
    return advise(report, load_rules((str(pack_folder("rules")),)), chosen.take(most_telling(chosen, ADVISED_LAUNCHES)))


def _rows(
    advice: Sequence[KernelAdvice], measurements: Measurements, ceilings: Sequence[Ceilings]
) -> tuple[dict[str, Any], ...]:
    """What is worth telling of advice, but for what is fine."""
    if not advice:
        return ()
    from ncu_roofline.plugin.nvrules.findings import advice_rows, findings

    return tuple(row for row in advice_rows(findings(advice, measurements, ceilings).found) if row["type"] != "ok")
