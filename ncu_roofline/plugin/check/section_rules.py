"""Section files held against rules: the file itself, its metrics, its roofline charts; and what they cost in replay passes.

A rule yields what it finds as (severity, place, code, message); `RULES` lists them all.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from os import PathLike
from typing import Any, NamedTuple

from ncu_roofline.base.errors import explained
from ncu_roofline.base.files import read_file
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import Release, release_text
from ncu_roofline.formats.sectionfile import charts
from ncu_roofline.formats.sectionfile.charts import NAN_AS_ZERO, Line, Program, compile_section, parse_expression
from ncu_roofline.formats.sectionfile.classify import classify
from ncu_roofline.formats.sectionfile.section import ALWAYS, EVERYWHERE, MOST_BYTES, RELEASES, Filter, filter_of, name_on
from ncu_roofline.formats.sectionfile.text import Document, Field, SectionSyntaxError, Use, parse_document, read_bytes
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

ERROR, WARNING, INFO = "error", "warning", "info"
"""Severities: Nsight Compute drops something; it may, or the numbers mislead; good to know."""
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

    def on(self, arch: int) -> str:
        """The name that is collected on an architecture, "" for none."""
        if not all(one.matches(arch) for one in self.filters):
            return ""
        name = name_on(self.metric, arch, self.filters[-1] if self.filters else EVERYWHERE)
        return f"{name}{self.suffix}" if name else ""

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
    def metrics(self) -> tuple[Placed, ...]:
        """Every metric with a name, in order."""
        return tuple(_placed(self.root, (), OTHER))

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
            for placed in self.metrics:
                if name := placed.on(arch):
                    found.setdefault(name, placed)
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


def _releases(case: Case) -> Iterator[Found]:
    """Fields and values that the release, or some release of the whole range, does not know."""
    document, release = case.content.document, case.release
    if release is not None:
        for use in document.unknown_to(release):
            yield ERROR, use, "release", f"{release_text(release)} {_rejects(use)}"
        return
    told: dict[object, Use] = {}
    for use in document.uses:
        unknown = [one for one in RELEASES if not use.history.known_to(one)]
        kind = (use.name.partition(" ")[0], use.history)  # one of a field's values stands for all that came with it
        if unknown and kind not in told:
            told[kind] = use
            yield WARNING, use, "release", f"{_span(unknown)} {_rejects(use)}"
    if document.uses and not loading_releases(document):
        span = f"{release_text(RELEASES[0])} to {release_text(RELEASES[-1])}"
        yield ERROR, next(iter(told.values())), "no-release", f"no release from {span} knows all fields and values of it"


def loading_releases(document: Document) -> tuple[Release, ...]:
    """The releases that load the file."""
    return tuple(release for release in RELEASES if not document.unknown_to(release))


def _rejects(use: Use) -> str:
    since, until = use.history.since, use.history.until
    span = [f"from {release_text(since)} on"] if since > ALWAYS.since else []
    span += [f"up to {release_text(until)}"] if until < ALWAYS.until else []
    return f"drops the whole file because of {use.name}, which is known {' and '.join(span)}"


def _span(releases: Sequence[Release]) -> str:
    first, last = release_text(releases[0]), release_text(releases[-1])
    if len(releases) == 1:
        return first
    gapless = RELEASES.index(releases[-1]) - RELEASES.index(releases[0]) == len(releases) - 1
    return f"each release from {first} to {last}" if gapless else f"each of {', '.join(map(release_text, releases))}"


def _identifier(case: Case) -> Iterator[Found]:
    """Identifiers that collide with stock ones, or that the command line makes awkward."""
    field, identifier = case.content.root.first("Identifier"), case.content.root.text("Identifier")
    if not identifier:
        yield ERROR, field, "empty-identifier", "the section has an empty identifier"
    if re.search(r"\s", identifier):
        message = f"identifier {identifier!r} contains a space: `--section` and rules can hardly name it"
        yield WARNING, field, "identifier-space", message
    if re.fullmatch(_STOCK, identifier):
        message = f"identifier {identifier} is one of Nsight Compute's own: one of the two hides the other without a word"
        yield WARNING, field, "stock-identifier", message


def _definitions(case: Case) -> Iterator[Found]:
    """Expressions: syntax, what old releases make of them, whether their inputs are there."""
    derived = {definition.name for definition in case.content.definitions}
    for definition in case.content.definitions:
        field, name = definition.field.first("Expression"), definition.name
        try:
            inputs = parse_expression(definition.expression).names
        except ValueError as error:
            yield ERROR, field, "expression", f"{name}: {error}"
            continue
        if not re.fullmatch(rf"\s*{_OPERAND} +[-+*/] +{_OPERAND}\s*", definition.expression, re.ASCII):
            yield from ((severity, field, "expression-release", text) for severity, text in _chained(definition, case.release))
        for inner in sorted(derived.intersection(inputs)):
            message = f"{name} is derived from {inner}, which is derived itself: no release is known to compute that"
            yield WARNING, field, "derived-of-derived", message
        missing: defaultdict[tuple[str, bool], list[Target]] = defaultdict(list)
        for target in case.targets:
            collected = case.content.collected_on(target.arch)
            for one in inputs if case.content.defined_on(target.arch).get(name) is definition else ():
                # Attributes of the device are in every report, asked for or not.
                if one not in collected and one not in derived and not one.startswith("device__attribute_"):
                    missing[one, name in collected].append(target)
        for (one, used), chips in missing.items():
            message = f"{name} needs {one}, which the section does not collect {case.on(chips)}"
            then = "; add it to Metrics" if used else ", where nothing shows it"
            yield ERROR if used else INFO, field, "uncollected-input", message + then


def _chained(definition: PlacedDefinition, release: Release | None) -> Iterator[tuple[str, str]]:
    """That old releases know expressions of one operator only."""
    since, proven = charts.CHAINS_SINCE, charts.CHAINS_PROVEN
    if NAN_AS_ZERO in definition.expression:
        since = proven = charts.NAN_AS_ZERO_SINCE
    if release is None or release < proven:
        old = f"before {release_text(since)}" if release is None else f"in {release_text(release)}"
        verb = "has" if release is None or release < since else "may have"
        severity = ERROR if release is not None and release < since else WARNING
        yield severity, f"{definition.name} {verb} no value {old}: old releases read `operand operator operand` only"


def _undefined(case: Case) -> Iterator[Found]:
    """Derived metrics in charts that the section does not define."""
    undefined: defaultdict[tuple[str, Field], list[Target]] = defaultdict(list)
    for target in case.targets:
        defined = case.content.defined_on(target.arch)
        for name, placed in case.content.collected_on(target.arch).items():
            if name.startswith("derived__") and placed.role == ROOFLINE and name not in defined:
                undefined[name, placed.place(name)].append(target)
    for (name, field), chips in undefined.items():
        yield WARNING, field, "undefined-derived", f"{name} is not defined in this section {case.on(chips)}"


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
            close = difflib.get_close_matches(bare, known.names, 1, 0.8) if known else []
            meant = f"; {close[0]}{point}{suffix} is meant?" if close else ""
            yield ERROR, field, "unknown-metric", f"no chip has a metric {name}{meant}"
    for (base, without), field in missing.items():
        if base not in misspelt:
            message = f"{base} does not exist on {', '.join(one.chip for one in without)}"
            yield WARNING, field, "metric-missing", f"{message} ({capabilities(without, case.targets)})"


def _values(case: Case) -> Iterator[Found]:
    """Values that no release turns into a line: products without a clock, patterns in the place of a metric."""
    for chart in case.content.chart_fields:
        for field in chart.walk():
            if field.name == "ValueCyclesPerSecondExpression" and not field.first("CyclesPerSecondMetric"):
                yield ERROR, field, "no-clock", "without CyclesPerSecondMetric there is no value, and nothing is drawn"
    for placed in case.content.metrics:
        name = placed.field.text("Name")
        if placed.role == ROOFLINE and ":" in name:
            message = f"{name}: patterns and groups stand in tables and other charts only, not in a roofline"
            yield ERROR, placed.field, "pattern-metric", message


# What a chart may lack: the code, and what is said of it.
_LACKING = {
    "no-chart": "no roofline chart of the section is shown",
    "no-roof": "the chart has no roof",
    "no-dot": "the chart has no dot",
    "constant-roofs": "no PeakTraffic is a collected ValueCyclesPerSecondExpression, so that ncu-ui 2024 draws nothing; "
    "keep one such roof",
    "dot-without-roof": "no roof stands for the memory level of this dot",
}


def _charts(case: Case) -> Iterator[Found]:
    """Chips on which something of the charts is not there, and dots whose traffic is counted by other counters than the roof
    of their level, or that have no such roof."""
    lacking: defaultdict[tuple[str, Field], list[Target]] = defaultdict(list)
    mismatched: dict[Field, tuple[str, list[Target]]] = {}
    for target in case.targets if case.content.chart_fields else ():
        shown = list(case.content.charts_on(target.arch))
        if not shown:
            lacking["no-chart", case.content.chart_fields[0]].append(target)
        for chart, lines, program in shown:
            drawn = [(line, field) for line, field in lines if _is_drawn(line, program, target)]
            roofs = [line for line, _ in drawn if line.kind == "roof"]
            dots = [(line, field) for line, field in drawn if line.kind == "point"]
            if not roofs:
                lacking["no-roof", chart].append(target)
            elif not any(dict(roof.parts)["traffic"].clock for roof in roofs):
                lacking["constant-roofs", chart].append(target)
            if not dots:
                lacking["no-dot", chart].append(target)
            counted = [_counters(roof, program) for roof in roofs]
            for dot, field in dots:
                what, text = _against_roofs(_counters(dot, program), counted)
                if what == "counter-family":
                    mismatched[field] = text, [*mismatched.get(field, ("", []))[1], target]
                elif what:
                    lacking[what, field].append(target)
    for (code, field), chips in lacking.items():
        yield WARNING, field, code, f"{_LACKING[code]} {case.on(chips)}"
    for field, (text, chips) in mismatched.items():
        message = f"traffic counted by {text}, {case.on(chips)}: they do not count the same"
        yield WARNING, field.first("AchievedTraffic") or field, "counter-family", message


def _against_roofs(counters: tuple[str, ...], roofs: Sequence[tuple[str, ...]]) -> tuple[str, str]:
    """What is wrong with the traffic of a dot, given what counts that of the roofs: the code, and which counters."""

    def families(names: Iterable[str]) -> frozenset[str]:  # reads and writes of the same traffic belong to one peak
        return frozenset(re.sub(r"(?s)_(?:op|pipe|mem)_.+|_(?:read|write)$", "", name.partition(".")[0]) for name in names)

    level, has_roof = classify(counters)[1], [one.id for one in load_spec().levels if any(way.clock for way in one.bindings)]
    if level not in has_roof:  # or the names don't tell the level
        return "", ""
    peers = [roof for roof in roofs if classify(roof)[1] == level]
    mine = families(counters)
    peaks = mine | {_PEAK_OF[family] for family in mine if family in _PEAK_OF}
    if peers and not any(peaks & families(roof) for roof in peers):
        against = " or ".join(sorted({" + ".join(sorted(families(roof))) for roof in peers}))
        return "counter-family", f"{' + '.join(sorted(mine))} against a roof of {against}"
    alone = roofs and all(classify(roof)[1] not in ("", level) for roof in roofs)
    return ("dot-without-roof" if alone else ""), ""


def _is_drawn(line: Line, program: Program, target: Target) -> bool:
    """Whether nothing speaks against it on this chip: filters, and metrics that the library knows to be absent."""
    if any(term.problem for _, term in line.parts):
        return False
    known = chip(target.chip)
    names = [name for _, term in line.parts for name in _expanded(term.all_names, program)]
    return known is None or not any(known.verdict(name) == UNKNOWN for name in names)


def _counters(line: Line, program: Program) -> tuple[str, ...]:
    """The metrics that count the traffic of a roof or dot, derived ones replaced by their inputs."""
    return _expanded(dict(line.parts)["traffic"].names, program)


def _expanded(names: Iterable[str], program: Program) -> tuple[str, ...]:
    inputs = (program.definitions[name].names if name in program.definitions else (name,) for name in names)
    return tuple(dict.fromkeys(name for several in inputs for name in several))


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


RULES = (_releases, _identifier, _definitions, _undefined, _names, _values, _charts)


def _found(content: Content, targets: Sequence[Target], release: Release | None) -> Iterator[Found]:
    """All that the rules find; of a section that is none, what is wrong with the file alone."""
    case, rules = Case(content, targets, release), list(RULES)
    try:
        where = content.document.section.message
    except ValueError as error:
        rules = [_releases, _identifier]
        if content.root.text("Identifier"):
            yield ERROR, SectionSyntaxError(1, 1, ""), "syntax", str(error)
    else:
        case = case._replace(targets=[target for target in targets if filter_of(where).matches(target.arch)])
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
    """Passes of sections collected together; None where no library knows the chip."""
    names = (name for content in contents for name in metrics_to_collect(content, target))
    return passes(target.chip, dict.fromkeys(names))


class Checked(NamedTuple):
    """A file: what was found, and its content if it parses."""

    path: str
    findings: tuple[Finding, ...]
    content: Content | None


def check_files(
    paths: Iterable[str | PathLike[str]], targets: Sequence[Target] | None = None, release: Release | None = None
) -> list[Checked]:
    """What is to be said about each of some files, and what they are for each other.

    `targets` are the chips to check for (default: one for each compute capability), `release` the Nsight Compute to check for
    (default: every one that sections are made for).  Raises RooflineError for a file that can't be read.
    """
    chosen = default_targets() if targets is None else targets
    results = []
    for path in paths:
        with explained("Cannot read", path, "Give a section file, or a folder of them."):
            data = read_file(path, MOST_BYTES)
        results.append(_checked(str(path), data, chosen, release))
    several = list(_together(one.content for one in results if one.content))
    return [one._replace(findings=_sorted((*one.findings, *(f for f in several if f.path == one.path)))) for one in results]


def _checked(path: str, data: bytes, targets: Sequence[Target], release: Release | None) -> Checked:
    findings, content = [], None
    if not path.endswith(".section"):
        text = "Nsight Compute only loads files whose names end in .section"
        findings.append(Finding(WARNING, 1, 1, "file-name", text, path))
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = data.count(b"\n", 0, error.start) + 1, error.start - data.rfind(b"\n", 0, error.start)
        findings.append(Finding(WARNING, line, column, "encoding", f"byte 0x{data[error.start]:02x} is not UTF-8", path))
    try:
        content = Content(path, parse_document(read_bytes(data)))
        rules = _found(content, targets, release)
        findings += [Finding(severity, place.line, place.column, code, text, path) for severity, place, code, text in rules]
    except SectionSyntaxError as error:
        findings.append(Finding(ERROR, error.line, error.column, error.code, error.message, path))
    return Checked(path, _sorted(findings), content)


def _sorted(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda one: (one.line, one.column, one.code, one.message)))
