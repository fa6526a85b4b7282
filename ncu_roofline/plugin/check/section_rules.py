"""Section files held against rules: the file itself, its metrics, its roofline charts; and what they cost in replay passes.

A rule yields what it finds as (severity, place, code, message); `RULES` lists them all.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from operator import attrgetter
from os import PathLike
from typing import Any, NamedTuple

from ncu_roofline.base.errors import explained
from ncu_roofline.base.files import read_file
from ncu_roofline.base.texts import nearest
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import Release, release_text
from ncu_roofline.formats.sectionfile import charts
from ncu_roofline.formats.sectionfile.charts import NAN_AS_ZERO, Line, Program, compile_section, parse_expression
from ncu_roofline.formats.sectionfile.classify import classify
from ncu_roofline.formats.sectionfile.section import EVERYWHERE, MOST_BYTES, RELEASES, Filter, filter_of, name_on
from ncu_roofline.formats.sectionfile.text import Document, Field, SectionSyntaxError, parse_document, read_bytes
from ncu_roofline.formats.wire import ALWAYS
from ncu_roofline.plugin.check.chips import (
    BASE,
    SUFFIX,
    UNKNOWN,
    Passes,
    Target,
    all_targets,
    capabilities,
    chip,
    default_targets,
    passes,
)

ERROR, WARNING = "error", "warning"
"""Severities: Nsight Compute drops something; it may, or the numbers mislead."""
ROOFLINE, SOURCE, OTHER = "roofline", "source", "other"
"""Where a metric stands: inside a roofline chart; for the Source page, where names follow other rules; anywhere else."""
# Identifiers of the sections that come with Nsight Compute, and the families that grow with every release.
_STOCK = (
    r"(SpeedOfLight|MemoryWorkloadAnalysis|Nvlink|PmSampling|Tile)(_\w+)?"
    r"|ComputeWorkloadAnalysis|(Instruction|Launch|Scheduler|WarpState|Tile)Stats(_\w+)?|Occupancy|SourceCounters"
    r"|WorkloadDistribution|C2CLink|NumaAffinity|section0"
)
_OPERAND = r"(?:[A-Za-z_][\w.:]*|\d+(?:\.\d+)?)"
# No peak of l1tex__t_bytes is to be trusted; that of the return path is the data sheet's bandwidth of L1, for all its traffic.
_PEAK_OF = {"l1tex__t_bytes": "l1tex__lsu_writeback_active", "l1tex__t_sectors": "l1tex__lsu_writeback_active"}


class Finding(NamedTuple):
    """One remark: line and column count from 1; `code` names the rule."""

    severity: str
    line: int
    column: int
    code: str
    message: str
    path: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.severity}: {self.message} [{self.code}]"


class Placed(NamedTuple):
    """A metric's message, its place, the filters around it, the outermost first, each as it acts, and what its names end in."""

    metric: Any
    field: Field
    filters: tuple[Filter, ...]
    role: str
    suffix: str = ""

    def place(self, name: str) -> Field:
        """The field that gives a name: the metric's own or that of an alternative."""
        fields = (self.field, *self.field.all("Options"))
        return next((one for one in fields if one.text("Name") + self.suffix == name), self.field)


class PlacedDefinition(NamedTuple):
    """A derived metric with its filter as it acts, and its place."""

    name: str
    expression: str
    filter: Filter
    field: Field


class Content:
    """A section file that parses: what it collects, derives and draws on which chip."""

    def __init__(self, path: str, document: Document) -> None:
        self.path, self.document, self.root = path, document, document.root
        self._collected: dict[int, dict[str, Placed]] = {}

    @cached_property
    def definitions(self) -> tuple[PlacedDefinition, ...]:
        """Every derived metric, in order."""
        around = filter_of(self.root.message)
        return tuple(
            PlacedDefinition(one.text("Name"), one.text("Expression"), filter_of(one.message).inside(around), one)
            for owner in self.root.all("MetricDefinitions")
            for one in owner.children
        )

    def defined_on(self, arch: int) -> Mapping[str, PlacedDefinition]:
        """Derived metrics of an architecture; the first of a name counts."""
        return {definition.name: definition for definition in reversed(self.definitions) if definition.filter.matches(arch)}

    def collected_on(self, arch: int) -> Mapping[str, Placed]:
        """Names collected on an architecture, in order, each with its first place."""
        if arch not in self._collected:
            found = self._collected[arch] = {}
            for placed in _placed(self.root, (), OTHER):
                filters = placed.filters
                if all(one.matches(arch) for one in filters):
                    name = name_on(placed.metric, arch, filters[-1] if filters else EVERYWHERE)
                    found.setdefault(f"{name}{placed.suffix}", placed) if name else None
        return self._collected[arch]

    @cached_property
    def chart_fields(self) -> tuple[Field, ...]:
        """Roofline charts in the order of a section's charts."""

        def inside(item: Field) -> Iterator[Field]:
            yield from item.all("RooflineChart")
            for container in item.all("HorizontalContainer"):
                for inner in container.all("Items"):
                    yield from inside(inner)

        return tuple(chart for body in self.root.all("Body") for item in body.all("Items") for chart in inside(item))

    def charts_on(self, arch: int) -> Iterator[tuple[Field, list[tuple[Line, Field]], Program]]:
        """The roofline charts shown on an architecture, and their lines, each with its place."""
        program = compile_section(self.document.section, arch)
        for position, lines in program.charts:
            chart = self.chart_fields[position]
            places = (*chart.all("Rooflines"), *chart.all("AchievedValues"), *chart.all("Walls"))
            yield chart, list(zip(lines, places, strict=True)), program


def _placed(field: Field, filters: tuple[Filter, ...], role: str) -> Iterator[Placed]:
    if field.name == "SuffixTable":  # base names times suffixes
        suffixes = [one.text("Name") for owner in field.all("Suffixes") for one in owner.all("Suffix")]
        places = (place for owner in field.all("BaseNames") for place in owner.all("BaseName"))
        yield from (Placed(place.message, place, filters, OTHER, suffix) for place in places for suffix in suffixes)
        return
    if field.name in ("Metrics", "Metric", "ValuePerCycleMetrics", "CyclesPerSecondMetric") and field.first("Name"):
        if field.text("Name"):
            yield Placed(field.message, field, filters, role)
        return
    if field.name in ("Section", "Items") and field.first("Filter"):
        filters = (*filters, filter_of(field.message).inside(filters[-1] if filters else EVERYWHERE))
    for child in field.children:
        if child.name != "MetricDefinitions":
            yield from _placed(child, filters, {"RooflineChart": ROOFLINE, "SourceMetrics": SOURCE}.get(child.name, role))


class Case(NamedTuple):
    """What a rule looks at: the section, the chips that it is for among those asked for, and the release asked for."""

    content: Content
    targets: Sequence[Target]
    release: Release | None

    def on(self, chips: Iterable[Target]) -> str:
        """These chips for people."""
        return f"on {capabilities(chips, self.targets)}"


Found = tuple[str, Any, str, str]


def loading_releases(document: Document) -> tuple[Release, ...]:
    """The releases that load the file."""
    return tuple(release for release in RELEASES if not document.unknown_to(release))


def _releases(case: Case) -> Iterator[Found]:
    """Fields and values that the release, or some release of the whole range, does not know."""
    document, told = case.content.document, set[object]()
    first, last = release_text(RELEASES[0]), release_text(RELEASES[-1])
    for use in document.unknown_to(case.release) if case.release else document.uses:
        since, until = use.history.since, use.history.until
        unknown = [case.release] if case.release else [one for one in RELEASES if not use.history.known_to(one)]
        kind = (use.name.partition(" ")[0], use.history)  # one of a field's values stands for all that came with it
        if unknown and (case.release or kind not in told):
            told.add(kind)
            ends = dict.fromkeys(release_text(one) for one in (unknown[0], unknown[-1]))
            span = [f"from {release_text(since)} on"] if since > ALWAYS.since else []
            span += [f"up to {release_text(until)}"] if until < ALWAYS.until else []
            message = f"{' to '.join(ends)} drops the whole file because of {use.name}, which is known {' and '.join(span)}"
            yield ERROR if case.release else WARNING, use, "release", message
            if len(told) == 1 and not case.release and not loading_releases(document):
                yield ERROR, use, "no-release", f"no release from {first} to {last} knows all fields and values of it"


def _identifier(case: Case) -> Iterator[Found]:
    """Identifiers that are empty or collide with stock ones."""
    field, identifier = case.content.root.first("Identifier"), case.content.root.text("Identifier")
    if not identifier:
        yield ERROR, field, "empty-identifier", "the section has an empty identifier"
    if re.fullmatch(_STOCK, identifier):
        message = f"identifier {identifier} is one of Nsight Compute's own: one of the two hides the other without a word"
        yield WARNING, field, "stock-identifier", message


def _definitions(case: Case) -> Iterator[Found]:
    """Expressions: syntax, what old releases make of them, whether their inputs are there; and what charts show undefined."""
    content, release = case.content, case.release
    derived = {definition.name for definition in content.definitions}
    for definition in content.definitions:
        field, name = definition.field.first("Expression"), definition.name
        try:
            inputs = parse_expression(definition.expression).names
        except ValueError as error:
            yield ERROR, field, "expression", f"{name}: {error}"
            continue
        since, proven = charts.CHAINS_SINCE, charts.CHAINS_PROVEN
        if NAN_AS_ZERO in definition.expression:
            since = proven = charts.NAN_AS_ZERO_SINCE
        plain = re.fullmatch(rf"\s*{_OPERAND} +[-+*/] +{_OPERAND}\s*", definition.expression, re.ASCII)
        if not plain and (release is None or release < proven):
            certain = release is not None and release < since
            message = f"{name} {'has' if certain else 'may have'} no value before {release_text(since)}"
            told = f"{message}: old releases read `operand operator operand` only"
            yield ERROR if certain else WARNING, field, "expression-release", told
        for inner in sorted(derived.intersection(inputs)):
            message = f"{name} is derived from {inner}, which is derived itself: no release is known to compute that"
            yield WARNING, field, "derived-of-derived", message
        missing: defaultdict[str, list[Target]] = defaultdict(list)
        for target in case.targets:
            collected = content.collected_on(target.arch)
            for one in inputs if name in collected and content.defined_on(target.arch).get(name) is definition else ():
                # Attributes of the device are in every report, asked for or not.
                if one not in collected and one not in derived and not one.startswith("device__attribute_"):
                    missing[one].append(target)
        for one, chips in missing.items():
            message = f"{name} needs {one}, which the section does not collect {case.on(chips)}; add it to Metrics"
            yield ERROR, field, "uncollected-input", message
    undefined: defaultdict[tuple[str, Field], list[Target]] = defaultdict(list)
    for target in case.targets:
        defined = content.defined_on(target.arch)
        for name, placed in content.collected_on(target.arch).items():
            if name.startswith("derived__") and placed.role == ROOFLINE and name not in defined:
                undefined[name, placed.place(name)].append(target)
    for (name, place), chips in undefined.items():
        yield WARNING, place, "undefined-derived", f"{name} is not defined in this section {case.on(chips)}"


def _names(case: Case) -> Iterator[Found]:
    """Names that the metric library does not know, on the chips that it knows."""
    places: dict[tuple[str, str], tuple[Field, list[Target]]] = {}
    for target in case.targets:
        known = chip(target.chip)
        for name, placed in case.content.collected_on(target.arch).items() if known else ():
            verdict = known.verdict(name) if known else ""
            if verdict == UNKNOWN or (verdict in (BASE, SUFFIX) and placed.role != SOURCE):
                places.setdefault((name, verdict), (placed.place(name), []))[1].append(target)
    misspelt = {name for name, verdict in places if verdict != UNKNOWN}
    missing: dict[tuple[str, tuple[Target, ...]], Field] = {}
    for (name, verdict), (field, chips) in places.items():
        base, point, suffix = name.partition(".")
        if verdict != UNKNOWN:
            message = f"{base} exists, but not with .{suffix}" if point else f"{name} lacks a rollup such as .sum or .avg"
            yield ERROR, field, "metric-suffix", message
        elif any(one.verdict(name) != UNKNOWN for target in all_targets() if (one := chip(target.chip))):
            missing.setdefault((base, tuple(chips)), field)  # once for all suffixes of a counter
        elif name not in misspelt:
            bare, point, suffix = name.rpartition(":")[2].partition(".")
            known = chip(chips[0].chip)
            close = nearest(bare, known.names) if known else ""
            meant = f"; {close}{point}{suffix} is meant?" if close else ""
            yield ERROR, field, "unknown-metric", f"no chip has a metric {name}{meant}"
    for (base, without), field in missing.items():
        if base not in misspelt:
            message = f"{base} does not exist on {', '.join(one.chip for one in without)}"
            yield WARNING, field, "metric-missing", f"{message} ({capabilities(without, case.targets)})"


_LACKING = {  # what a chart may lack
    "no-chart": "no roofline chart of the section is shown",
    "no-roof": "the chart has no roof",
    "no-dot": "the chart has no dot",
    "constant-roofs": "no PeakTraffic is a collected ValueCyclesPerSecondExpression, so that ncu-ui 2024 draws nothing; "
    "keep one such roof",
}


def _charts(case: Case) -> Iterator[Found]:
    """Chips on which something of the charts is not there, and dots whose traffic is counted by other counters than the roof
    of their level."""
    lacking: defaultdict[tuple[str, Field], list[Target]] = defaultdict(list)
    mismatched: dict[Field, tuple[str, list[Target]]] = {}
    for target in case.targets if case.content.chart_fields else ():
        shown, known = list(case.content.charts_on(target.arch)), chip(target.chip)
        if not shown:
            lacking["no-chart", case.content.chart_fields[0]].append(target)
        for chart, lines, program in shown:

            def inputs(names: Iterable[str], program: Program = program) -> tuple[str, ...]:  # of derived metrics theirs
                found = (program.definitions[name].names if name in program.definitions else (name,) for name in names)
                return tuple(dict.fromkeys(name for several in found for name in several))

            drawn = []  # nothing speaks against it here: filters, and metrics that the library knows to be absent
            for line, field in lines:
                names = [name for _, term in line.parts for name in inputs(term.all_names)]
                absent = known is not None and any(known.verdict(name) == UNKNOWN for name in names)
                if not absent and not any(term.problem for _, term in line.parts):
                    drawn.append((line, field, dict(line.parts).get("traffic")))
            roofs = [traffic for line, _, traffic in drawn if line.kind == "roof" and traffic]
            dots = [(field, traffic) for line, field, traffic in drawn if line.kind == "point" and traffic]
            if not roofs:
                lacking["no-roof", chart].append(target)
            elif not any(traffic.clock for traffic in roofs):
                lacking["constant-roofs", chart].append(target)
            if not dots:
                lacking["no-dot", chart].append(target)
            counted = [inputs(traffic.names) for traffic in roofs]
            for field, traffic in dots:
                if text := _against_roofs(inputs(traffic.names), counted):
                    mismatched.setdefault(field, (text, []))[1].append(target)
    for (code, field), chips in lacking.items():
        yield WARNING, field, code, f"{_LACKING[code]} {case.on(chips)}"
    for field, (text, chips) in mismatched.items():
        message = f"traffic counted by {text}, {case.on(chips)}: they do not count the same"
        yield WARNING, field.first("AchievedTraffic") or field, "counter-family", message


def _against_roofs(counters: tuple[str, ...], roofs: Sequence[tuple[str, ...]]) -> str:
    """Which counters of the traffic of a dot stand against which others of the roofs of its level; "" where they are alike."""

    def families(names: Iterable[str]) -> frozenset[str]:  # reads and writes of the same traffic belong to one peak
        return frozenset(re.sub(r"(?s)_(?:op|pipe|mem)_.+|_(?:read|write)$", "", name.partition(".")[0]) for name in names)

    level = classify(counters)[1]
    peers = [families(roof) for roof in roofs if classify(roof)[1] == level]
    mine = families(counters)
    peaks = mine | {_PEAK_OF[family] for family in mine if family in _PEAK_OF}
    has_roof = any(one.id == level and way.clock for one in load_spec().levels for way in one.bindings)
    if not has_roof or not peers or any(peaks & peer for peer in peers):  # or the names don't tell the level
        return ""
    against = " or ".join(sorted({" + ".join(sorted(peer)) for peer in peers}))
    return f"{' + '.join(sorted(mine))} against a roof of {against}"


def _together(contents: Iterable[Content]) -> Iterator[Finding]:
    """Identifiers and derived metrics that several files have."""
    sections: dict[str, Content] = {}
    expressions: dict[object, tuple[str, Content]] = {}
    for content in contents:
        field, identifier = content.root.first("Identifier"), content.root.text("Identifier")
        other = sections.setdefault(identifier, content)
        if field is not None and other is not content:
            message = f"identifier {identifier} is also that of {other.path}: the last one loaded wins silently"
            yield Finding(ERROR, field.line, field.column, "duplicate-identifier", message, content.path)
        for one in content.definitions:
            expression, owner = expressions.setdefault((one.name, one.filter), (one.expression, content))
            if owner is not content and expression.split() != one.expression.split():
                message = f"{one.name} is defined otherwise in {owner.path}: names of metrics are global in a report"
                yield Finding(WARNING, one.field.line, one.field.column, "definition-conflict", message, content.path)


RULES = (_releases, _identifier, _definitions, _names, _charts)


def _found(content: Content, targets: Sequence[Target], release: Release | None) -> Iterator[Found]:
    """All that the rules find; of a section that is none, what is wrong with the file alone."""
    case, rules = Case(content, targets, release), list(RULES)
    try:
        where = filter_of(content.document.section.message)
        case = case._replace(targets=[target for target in targets if where.matches(target.arch)])
    except ValueError as error:
        rules = rules[:2]
        if content.root.text("Identifier"):
            yield ERROR, SectionSyntaxError(1, 1, ""), "syntax", str(error)
    for rule in rules:
        yield from rule(case)


def metrics_to_collect(content: Content, target: Target) -> tuple[str, ...]:
    """Metrics that a section makes Nsight Compute collect on a chip, in order, derived ones replaced by their inputs."""
    defined, result = content.defined_on(target.arch), list[str]()
    for name in content.collected_on(target.arch):
        with suppress(ValueError):
            result += parse_expression(defined[name].expression).names if name in defined else (name,)
    return tuple(dict.fromkeys(result))


def section_passes(contents: Iterable[Content], target: Target) -> Passes | None:
    """Passes of sections collected together, in whatever order; None where no library knows the chip."""
    return passes(target.chip, sorted({name for content in contents for name in metrics_to_collect(content, target)}))


class Checked(NamedTuple):
    """A file: what was found, and its content if it parses."""

    path: str
    findings: tuple[Finding, ...]
    content: Content | None


def check_files(
    paths: Iterable[str | PathLike[str]], targets: Sequence[Target] | None = None, release: Release | None = None
) -> list[Checked]:
    """What is to be said about each of some files, and what they are for each other: for the chips `targets` (default: one for
    each compute capability) and a release (default: every one that sections are made for).  Raises RooflineError for a file
    that can't be read."""
    chosen = default_targets() if targets is None else targets
    results = []
    for path in map(str, paths):
        with explained("Cannot read", path, "Give a section file, or a folder of them."):
            data = read_file(path, MOST_BYTES)
        findings, content = [], None
        try:
            content = Content(path, parse_document(read_bytes(data)))
            for severity, place, code, text in _found(content, chosen, release):
                findings.append(Finding(severity, place.line, place.column, code, text, path))
        except SectionSyntaxError as error:
            findings.append(Finding(ERROR, error.line, error.column, error.code, error.message, path))
        results.append((path, findings, content))
    for one in _together(content for _, _, content in results if content):
        next(findings for path, findings, _ in results if path == one.path).append(one)
    order = attrgetter("line", "column", "code", "message")
    return [Checked(path, tuple(sorted(findings, key=order)), content) for path, findings, content in results]
