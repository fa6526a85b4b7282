"""Rules about roofline charts: what viewers refuse, chips without roof or dot, roofs and dots of different counters."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from ncu_roofline.lint.chips import UNKNOWN, chip
from ncu_roofline.lint.content import ROOFLINE, Content, ShownChart
from ncu_roofline.lint.finding import ERROR, WARNING, Finding
from ncu_roofline.lint.targets import Target, capabilities
from ncu_roofline.sections.classify import classify
from ncu_roofline.sections.compile import Line, Program, Term
from ncu_roofline.sections.textformat import Field

Targets = Sequence[Target]
_Places = dict[Field, list[Target]]

# What a counter is one share of: reads and writes of the same traffic belong to one peak.
_SHARE = re.compile(r"_(?:op|pipe|mem)_\w+$|_(?:read|write)$")

# No peak of l1tex__t_bytes is to be trusted; that of the return path is the data sheet's bandwidth of L1, for all its traffic.
_PEAK_OF = {"l1tex__t_bytes": "l1tex__lsu_writeback_active", "l1tex__t_sectors": "l1tex__lsu_writeback_active"}
_WITHOUT_PEAK = ("", "system")  # levels: not told by the names; links, whose peak no counter gives


def check_values(content: Content) -> Iterator[Finding]:
    """Values that no release turns into a line: products without a clock, patterns in the place of a metric."""
    for chart in content.chart_fields:
        for field in chart.walk():
            if field.name == "ValueCyclesPerSecondExpression" and not field.first("CyclesPerSecondMetric"):
                message = "without CyclesPerSecondMetric there is no value, and nothing is drawn"
                yield Finding(ERROR, field.line, field.column, "no-clock", message)
    for placed in content.metrics:
        name = placed.metric.base.name
        if placed.role == ROOFLINE and ":" in name:
            message = f"{name}: patterns and groups stand in tables and other charts only, not in a roofline"
            yield Finding(ERROR, placed.field.line, placed.field.column, "pattern-metric", message)


def check_charts(content: Content, targets: Targets) -> Iterator[Finding]:
    """Chips on which something of the charts is not there."""
    if not content.chart_fields:
        return
    unseen: list[Target] = []
    no_roof: _Places = defaultdict(list)
    no_dot: _Places = defaultdict(list)
    constant: _Places = defaultdict(list)
    for target in targets:
        charts = content.charts_on(target.arch)
        if not charts:
            unseen.append(target)
        for chart in charts:
            roofs = [line for line in _drawn(chart, target) if line.kind == "roof"]
            if not roofs:
                no_roof[chart.field].append(target)
            elif not any(_part(roof, "traffic").clock for roof in roofs):
                constant[chart.field].append(target)
            if not any(line.kind == "point" for line in _drawn(chart, target)):
                no_dot[chart.field].append(target)
    root = content.chart_fields[0]
    yield from _report({root: unseen} if unseen else {}, targets, "no-chart", "no roofline chart of the section is shown")
    yield from _report(no_roof, targets, "no-roof", "the chart has no roof")
    yield from _report(no_dot, targets, "no-dot", "the chart has no dot")
    text = "no PeakTraffic is a collected ValueCyclesPerSecondExpression, so that ncu-ui 2024 draws nothing; keep one such roof"
    yield from _report(constant, targets, "constant-roofs", text)


def check_families(content: Content, targets: Targets) -> Iterator[Finding]:
    """Dots whose traffic is counted by other counters than the roof of their level, or that have no such roof."""
    mismatched: dict[Field, list[Target]] = defaultdict(list)
    alone: dict[Field, list[Target]] = defaultdict(list)
    texts: dict[Field, str] = {}
    for target in targets:
        for chart in content.charts_on(target.arch):
            roofs = [_counters(line, chart.program) for line in _drawn(chart, target) if line.kind == "roof"]
            for line, field in chart.lines:
                counters = _counters(line, chart.program)
                _, level = classify(counters)
                if line.kind != "point" or not _is_drawn(line, chart.program, target) or level in _WITHOUT_PEAK:
                    continue
                peers = [roof for roof in roofs if classify(roof)[1] == level]
                if peers and not any(_peaks(counters) & _families(roof) for roof in peers):
                    mismatched[field].append(target)
                    texts[field] = f"{' + '.join(sorted(_families(counters)))} against a roof of {_joined(peers)}"
                elif roofs and all(classify(roof)[1] not in ("", level) for roof in roofs):
                    alone[field].append(target)
    for field, chips in mismatched.items():
        place = field.first("AchievedTraffic") or field
        message = f"traffic counted by {texts[field]}, on {capabilities(chips, targets)}: they do not count the same"
        yield Finding(WARNING, place.line, place.column, "counter-family", message)
    yield from _report(alone, targets, "dot-without-roof", "no roof stands for the memory level of this dot")


def _joined(roofs: Iterable[Sequence[str]]) -> str:
    return " or ".join(sorted({" + ".join(sorted(_families(roof))) for roof in roofs}))


def _report(places: _Places, targets: Targets, code: str, text: str) -> Iterator[Finding]:
    for field, chips in places.items():
        yield Finding(WARNING, field.line, field.column, code, f"{text} on {capabilities(chips, targets)}")


def _drawn(chart: ShownChart, target: Target) -> list[Line]:
    return [line for line, _ in chart.lines if _is_drawn(line, chart.program, target)]


def _is_drawn(line: Line, program: Program, target: Target) -> bool:
    """Whether nothing speaks against it on this chip: filters, and metrics that the library knows to be absent."""
    if any(term.problem for _, term in line.parts):
        return False
    found = chip(target.chip)
    names = [name for _, term in line.parts for name in _expanded(term.all_names, program)]
    return found is None or not any(found.verdict(name) == UNKNOWN for name in names)


def _part(line: Line, name: str) -> Term:
    return dict(line.parts)[name]


def _counters(line: Line, program: Program) -> tuple[str, ...]:
    """The metrics that count the traffic of a roof or point, derived ones replaced by their inputs."""
    return _expanded(_part(line, "traffic").names, program) if line.kind != "wall" else ()


def _expanded(names: Iterable[str], program: Program) -> tuple[str, ...]:
    result: dict[str, None] = {}
    for name in names:
        expression = program.definitions.get(name)
        result.update(dict.fromkeys(expression.names if expression else (name,)))
    return tuple(result)


def _peaks(names: Iterable[str]) -> frozenset[str]:
    """The families whose peak is a roof for these counters."""
    families = _families(names)
    return families | {_PEAK_OF[one] for one in families if one in _PEAK_OF}


def _families(names: Iterable[str]) -> frozenset[str]:
    return frozenset(_SHARE.sub("", name.partition(".")[0]) for name in names)
