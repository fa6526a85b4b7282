"""What `show` and `render` share: reports on the command line to one view of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ncu_roofline.analyses import ANALYSES
from ncu_roofline.analyses.hierarchical.view import Asked
from ncu_roofline.cli.ceilings import wanted
from ncu_roofline.cli.options import FilterOptions, ModelOptions, ReportOptions, ViewOptions
from ncu_roofline.cli.outputs import warn
from ncu_roofline.cli.reading import for_each_report, no_launch, opened, selection
from ncu_roofline.files import pack_folder
from ncu_roofline.inputs import PointTable, joined, open_ceilings
from ncu_roofline.model import Measurements, Selection, as_trajectory, measurements_of
from ncu_roofline.model.explanations import Explanation
from ncu_roofline.report import Report

# A page carries advice on the launches that matter most; `advise` prints it for all.
ADVISED_LAUNCHES = 20


@dataclass(frozen=True)
class Result:
    """A roofline, what its reports lack, and whether some report had to be left out."""

    roofline: Any
    explanations: tuple[Explanation, ...]
    advice: tuple[dict[str, str], ...]
    exit_code: int


@dataclass(frozen=True)
class ReadReport:
    """What a worker brings back of one report."""

    measurements: Measurements
    explanation: Explanation | None
    advice: tuple[dict[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    table: PointTable | None = None


def read_roofline(
    reports: ReportOptions, filters: FilterOptions, model: ModelOptions, view: ViewOptions, advice: bool = False
) -> Result:
    """Read every report of the command line and build the view it asks for; with ``advice``, what our rules say."""
    sweep, made = view.trajectory or bool(view.label), ANALYSES[view.view].viewer
    by = model.by or made.by
    by = "kernel" if sweep and by == "launch" else by  # the launches of a step are one dot
    select, roofs = selection(filters, by), model.roofs
    asked = Asked(select, by, roofs.clock, model.source, roofs.ceilings, view.launch_latency)
    made.check(asked)
    named = wanted(roofs.ceilings, open_ceilings)
    work = partial(_read, view=view.view, charts=model.source == "embedded", gpu=filters.gpu)
    found, failed = for_each_report(reports, partial(work, advised=select if advice else None))
    read = _completed(found)
    warn(warning for report in read for warning in report.warnings)
    measurements = Measurements.joined([report.measurements for report in read])
    if sweep:
        measurements = as_trajectory(measurements, view.label)
    if not len(select.launches(measurements)):
        raise no_launch(reports, filters.launches)
    ceilings = named.of(zip(measurements.device, measurements.capability, strict=True))
    return Result(
        roofline=made.frames(measurements, ceilings, asked),
        explanations=tuple(report.explanation for report in read if report.explanation),
        advice=tuple(row for report in read for row in report.advice),
        exit_code=1 if failed else 0,
    )


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


def _read(path: str, name: str, view: str, charts: bool, gpu: tuple[int, int] | None, advised: Selection | None) -> ReadReport:
    """A report as a view needs it, ``charts`` for its own; with ``advised``, our rules run on the longest of these launches."""
    made = ANALYSES[view].viewer
    with opened(path, gpu) as (report, warnings):
        if isinstance(report, PointTable):
            return ReadReport(measurements_of(report, label=name), None, warnings=warnings, table=report)
        own = isinstance(report, Report)  # rules and charts read more of a report than its metrics
        measurements = measurements_of(report, charts=charts and own, instructions=made.instructions, label=name)
        advice = _advice(report, measurements, advised) if isinstance(report, Report) and advised else ()
        return ReadReport(measurements, made.explain(report, measurements, Selection()), advice, warnings)


def _advice(report: Report, measurements: Measurements, select: Selection) -> tuple[dict[str, str], ...]:
    from ncu_roofline.nvrules import advice_rows, advise, load_rules, worth_telling

    longest = replace(select, top=min(select.top or ADVISED_LAUNCHES, ADVISED_LAUNCHES), top_by="launch")
    found = advise(report, load_rules((str(pack_folder("rules")),)), longest.launches(measurements))
    kept, _ = worth_telling(found, select.launches(measurements))
    return tuple(row for row in advice_rows(kept) if row["type"] != "ok")
