"""Section files held against rules: the file itself, its metrics, its roofline charts; and what they cost in replay passes."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import read_file
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import Release, release_text
from ncu_roofline.formats.sectionfile.charts import Line, Program
from ncu_roofline.formats.sectionfile.classify import classify
from ncu_roofline.formats.sectionfile.definitions import (
    CHAINS_PROVEN,
    CHAINS_SINCE,
    NAN_AS_ZERO,
    NAN_AS_ZERO_SINCE,
    Expression,
    parse_expression,
)
from ncu_roofline.formats.sectionfile.message import MOST_BYTES
from ncu_roofline.formats.sectionfile.schema import RELEASES
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
from ncu_roofline.plugin.check.content import (
    ERROR,
    INFO,
    ROOFLINE,
    SOURCE,
    WARNING,
    Content,
    Finding,
    PlacedDefinition,
    ShownChart,
)

# Identifiers of the sections that come with Nsight Compute, and the families that grow with every release.
_STOCK = re.compile(
    r"(SpeedOfLight|MemoryWorkloadAnalysis|Nvlink|PmSampling|Tile)(_\w+)?"
    r"|ComputeWorkloadAnalysis|(Instruction|Launch|Scheduler|WarpState|Tile)Stats(_\w+)?|Occupancy|SourceCounters"
    r"|WorkloadDistribution|C2CLink|NumaAffinity|section0"
)
SUFFIX_OF_FILES = ".section"
Targets = Sequence[Target]
_OPERAND = r"(?:[A-Za-z_][\w.:]*|\d+(?:\.\d+)?)"
_ONE_OPERATOR = re.compile(rf"\s*{_OPERAND} +[-+*/] +{_OPERAND}\s*", re.ASCII)
_FREE = ("device__attribute_",)  # in every report, asked for or not
_Places = dict[Field, list[Target]]
# What a counter is one share of: reads and writes of the same traffic belong to one peak.
_SHARE = re.compile(r"_(?:op|pipe|mem)_.+|_(?:read|write)$", re.DOTALL)
# No peak of l1tex__t_bytes is to be trusted; that of the return path is the data sheet's bandwidth of L1, for all its traffic.
_PEAK_OF = {"l1tex__t_bytes": "l1tex__lsu_writeback_active", "l1tex__t_sectors": "l1tex__lsu_writeback_active"}


def _at(severity: str, place: Field | Use | SectionSyntaxError, code: str, message: str, path: str = "") -> Finding:
    return Finding(severity, place.line, place.column, code, message, path)


def _releases(document: Document, release: Release | None) -> Iterator[Finding]:
    """Fields and values that `release`, or some release of the whole range, does not know."""
    if release is not None:
        for use in document.unknown_to(release):
            yield _at(ERROR, use, "release", f"{release_text(release)} {_rejects(use)}")
        return
    seen = set()
    for use in document.uses:
        unknown = [one for one in RELEASES if not use.history.known_to(one)]
        kind = (use.name.partition(" ")[0], use.history)  # one of a field's values stands for all that came with it
        if unknown and kind not in seen:
            seen.add(kind)
            yield _at(WARNING, use, "release", f"{_span(unknown)} {_rejects(use)}")
    if document.uses and not loading_releases(document):
        culprit = next(use for use in document.uses if any(not use.history.known_to(one) for one in RELEASES))
        message = (
            f"no release from {release_text(RELEASES[0])} to {release_text(RELEASES[-1])} knows all fields and values of it"
        )
        yield _at(ERROR, culprit, "no-release", message)


def loading_releases(document: Document) -> tuple[Release, ...]:
    """The releases that load the file."""
    return tuple(release for release in RELEASES if not document.unknown_to(release))


def _rejects(use: Use) -> str:
    span = []
    if use.history.since:
        span.append(f"from {release_text(use.history.since)} on")
    if use.history.until:
        span.append(f"up to {release_text(use.history.until)}")
    return f"drops the whole file because of {use.name}, which is known {' and '.join(span)}"


def _span(releases: Sequence[Release]) -> str:
    first, last = release_text(releases[0]), release_text(releases[-1])
    if len(releases) == 1:
        return first
    gapless = RELEASES.index(releases[-1]) - RELEASES.index(releases[0]) == len(releases) - 1
    return f"each release from {first} to {last}" if gapless else f"each of {', '.join(map(release_text, releases))}"


def _identifier(content: Content) -> Iterator[Finding]:
    """Identifiers that collide with stock ones, or that the command line makes awkward."""
    field = content.root.first("Identifier")
    identifier = content.root.text("Identifier")
    if field is None:
        return
    if not identifier:
        yield _at(ERROR, field, "empty-identifier", "the section has an empty identifier")
    if re.search(r"\s", identifier):
        message = f"identifier {identifier!r} contains a space: `--section` and rules can hardly name it"
        yield _at(WARNING, field, "identifier-space", message)
    if _STOCK.fullmatch(identifier):
        message = f"identifier {identifier} is one of Nsight Compute's own: one of the two hides the other without a word"
        yield _at(WARNING, field, "stock-identifier", message)


def _together(contents: Iterable[Content]) -> Iterator[Finding]:
    """Identifiers and derived metrics that several files have."""
    sections: dict[str, Content] = {}
    expressions: dict[str, tuple[str, Content]] = {}
    for content in contents:
        field = content.root.first("Identifier")
        other = sections.setdefault(content.root.text("Identifier"), content)
        if field is not None and other is not content:
            message = (
                f"identifier {content.root.text('Identifier')} is also that of {other.path}: the last one loaded wins silently"
            )
            yield _at(ERROR, field, "duplicate-identifier", message, content.path)
        for definition in content.definitions:
            key = f"{definition.name} {definition.filter}"
            expression, owner = expressions.setdefault(key, (definition.expression, content))
            if owner is not content and expression.split() != definition.expression.split():
                message = f"{definition.name} is defined otherwise in {owner.path}: names of metrics are global in a report"
                yield _at(WARNING, definition.field, "definition-conflict", message, content.path)


def _definitions(content: Content, targets: Targets, release: Release | None) -> Iterator[Finding]:
    """Expressions: syntax, what old releases make of them, whether their inputs are there."""
    for definition in content.definitions:
        field = definition.field.first("Expression") or definition.field
        try:
            expression = parse_expression(definition.expression)
        except ValueError as error:
            yield _at(ERROR, field, "expression", f"{definition.name}: {error}")
            continue
        yield from _old_releases(definition, field, release)
        yield from _inputs(content, definition, expression, targets)


def _old_releases(one: PlacedDefinition, field: Field, release: Release | None) -> Iterator[Finding]:
    if _ONE_OPERATOR.fullmatch(one.expression):
        return
    since, proven = CHAINS_SINCE, CHAINS_PROVEN
    if NAN_AS_ZERO in one.expression:
        since = proven = NAN_AS_ZERO_SINCE
    if release is not None and release >= proven:
        return
    old = f"before {release_text(since)}" if release is None else f"in {release_text(release)}"
    verb = "has" if release is None or release < since else "may have"
    severity = ERROR if release is not None and release < since else WARNING
    message = f"{one.name} {verb} no value {old}: old releases read `operand operator operand` only"
    yield _at(severity, field, "expression-release", message)


def _inputs(content: Content, one: PlacedDefinition, expression: Expression, targets: Targets) -> Iterator[Finding]:
    field = one.field.first("Expression") or one.field
    missing: dict[tuple[str, bool], list[Target]] = defaultdict(list)
    derived = {other.name for other in content.definitions}
    for name in sorted(derived.intersection(expression.names)):
        message = f"{one.name} is derived from {name}, which is derived itself: no release is known to compute that"
        yield _at(WARNING, field, "derived-of-derived", message)
    for target in targets:
        collected = content.collected_on(target.arch)
        if content.defined_on(target.arch).get(one.name) is one:
            for name in expression.names:
                if name not in collected and name not in derived and not name.startswith(_FREE):
                    missing[name, one.name in collected].append(target)
    for (name, used), chips in missing.items():
        message = f"{one.name} needs {name}, which the section does not collect on {capabilities(chips, targets)}"
        then = "; add it to Metrics" if used else ", where nothing shows it"
        yield _at(ERROR if used else INFO, field, "uncollected-input", message + then)


def _undefined(content: Content, targets: Targets) -> Iterator[Finding]:
    """Derived metrics in charts that the section does not define."""
    undefined: dict[tuple[str, Field], list[Target]] = defaultdict(list)
    for target in targets:
        defined = content.defined_on(target.arch)
        for name, placed in content.collected_on(target.arch).items():
            if name.startswith("derived__") and placed.role == ROOFLINE and name not in defined:
                undefined[name, placed.place(name)].append(target)
    for (name, field), chips in undefined.items():
        message = f"{name} is not defined in this section on {capabilities(chips, targets)}"
        yield _at(WARNING, field, "undefined-derived", message)


def _names(content: Content, targets: Targets) -> Iterator[Finding]:
    """Names that the metric library does not know, on the chips that it knows."""
    places: dict[tuple[str, str], tuple[Field, list[Target]]] = {}
    for target in targets:
        found = chip(target.chip)
        if found is None:
            continue
        for name, placed in content.collected_on(target.arch).items():
            verdict = found.verdict(name)
            if verdict == UNKNOWN or (verdict in (BASE, SUFFIX) and placed.role != SOURCE):
                places.setdefault((name, verdict), (placed.place(name), []))[1].append(target)
    misspelt = {name for name, verdict in places if verdict != UNKNOWN}
    missing: dict[tuple[str, tuple[Target, ...]], Field] = {}
    for (name, verdict), (field, chips) in places.items():
        if verdict != UNKNOWN:
            base, point, suffix = name.partition(".")
            message = f"{base} exists, but not with .{suffix}" if point else f"{name} lacks a rollup such as .sum or .avg"
            yield _at(ERROR, field, "metric-suffix", message)
        elif any(one.verdict(name) != UNKNOWN for target in all_targets() if (one := chip(target.chip))):
            missing.setdefault((name.partition(".")[0], tuple(chips)), field)  # once for all suffixes of a counter
        elif name not in misspelt:
            bare, point, suffix = name.rpartition(":")[2].partition(".")
            found = chip(chips[0].chip)
            close = difflib.get_close_matches(bare, found.names, 1, 0.8) if found else []
            meant = f"; {close[0]}{point}{suffix} is meant?" if close else ""
            yield _at(ERROR, field, "unknown-metric", f"no chip has a metric {name}{meant}")
    for (base, without), field in missing.items():
        if base not in misspelt:
            message = f"{base} does not exist on {', '.join(one.chip for one in without)} ({capabilities(without, targets)})"
            yield _at(WARNING, field, "metric-missing", message)


def _values(content: Content) -> Iterator[Finding]:
    """Values that no release turns into a line: products without a clock, patterns in the place of a metric."""
    for chart in content.chart_fields:
        for field in chart.walk():
            if field.name == "ValueCyclesPerSecondExpression" and not field.first("CyclesPerSecondMetric"):
                message = "without CyclesPerSecondMetric there is no value, and nothing is drawn"
                yield _at(ERROR, field, "no-clock", message)
    for placed in content.metrics:
        name = placed.metric.base.name
        if placed.role == ROOFLINE and ":" in name:
            message = f"{name}: patterns and groups stand in tables and other charts only, not in a roofline"
            yield _at(ERROR, placed.field, "pattern-metric", message)


def _charts(content: Content, targets: Targets) -> Iterator[Finding]:
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
            elif not any(dict(roof.parts)["traffic"].clock for roof in roofs):
                constant[chart.field].append(target)
            if not any(line.kind == "point" for line in _drawn(chart, target)):
                no_dot[chart.field].append(target)
    root = content.chart_fields[0]
    yield from _report({root: unseen} if unseen else {}, targets, "no-chart", "no roofline chart of the section is shown")
    yield from _report(no_roof, targets, "no-roof", "the chart has no roof")
    yield from _report(no_dot, targets, "no-dot", "the chart has no dot")
    text = "no PeakTraffic is a collected ValueCyclesPerSecondExpression, so that ncu-ui 2024 draws nothing; keep one such roof"
    yield from _report(constant, targets, "constant-roofs", text)


def _dots(content: Content, targets: Targets) -> Iterator[Finding]:
    """Dots whose traffic is counted by other counters than the roof of their level, or that have no such roof."""
    mismatched: dict[Field, list[Target]] = defaultdict(list)
    alone: dict[Field, list[Target]] = defaultdict(list)
    texts: dict[Field, str] = {}
    without_peak = {"", *(level.id for level in load_spec().levels if not level.has_roof)}  # "": the names don't tell the level
    for target in targets:
        for chart in content.charts_on(target.arch):
            roofs = [_counters(line, chart.program) for line in _drawn(chart, target) if line.kind == "roof"]
            for line, field in chart.lines:
                counters = _counters(line, chart.program)
                _, level = classify(counters)
                if line.kind != "point" or not _is_drawn(line, chart.program, target) or level in without_peak:
                    continue
                peers = [roof for roof in roofs if classify(roof)[1] == level]
                families = _families(counters)
                peaks = families | {_PEAK_OF[family] for family in families if family in _PEAK_OF}
                if peers and not any(peaks & _families(roof) for roof in peers):
                    mismatched[field].append(target)
                    against = " or ".join(sorted({" + ".join(sorted(_families(roof))) for roof in peers}))
                    texts[field] = f"{' + '.join(sorted(families))} against a roof of {against}"
                elif roofs and all(classify(roof)[1] not in ("", level) for roof in roofs):
                    alone[field].append(target)
    for field, chips in mismatched.items():
        place = field.first("AchievedTraffic") or field
        message = f"traffic counted by {texts[field]}, on {capabilities(chips, targets)}: they do not count the same"
        yield _at(WARNING, place, "counter-family", message)
    yield from _report(alone, targets, "dot-without-roof", "no roof stands for the memory level of this dot")


def _report(places: _Places, targets: Targets, code: str, text: str) -> Iterator[Finding]:
    for field, chips in places.items():
        yield _at(WARNING, field, code, f"{text} on {capabilities(chips, targets)}")


def _drawn(chart: ShownChart, target: Target) -> list[Line]:
    return [line for line, _ in chart.lines if _is_drawn(line, chart.program, target)]


def _is_drawn(line: Line, program: Program, target: Target) -> bool:
    """Whether nothing speaks against it on this chip: filters, and metrics that the library knows to be absent."""
    if any(term.problem for _, term in line.parts):
        return False
    found = chip(target.chip)
    names = [name for _, term in line.parts for name in _expanded(term.all_names, program)]
    return found is None or not any(found.verdict(name) == UNKNOWN for name in names)


def _counters(line: Line, program: Program) -> tuple[str, ...]:
    """The metrics that count the traffic of a roof or point, derived ones replaced by their inputs."""
    return _expanded(dict(line.parts)["traffic"].names, program) if line.kind != "wall" else ()


def _expanded(names: Iterable[str], program: Program) -> tuple[str, ...]:
    result: dict[str, None] = {}
    for name in names:
        expression = program.definitions.get(name)
        result.update(dict.fromkeys(expression.names if expression else (name,)))
    return tuple(result)


def _families(names: Iterable[str]) -> frozenset[str]:
    return frozenset(_SHARE.sub("", name.partition(".")[0]) for name in names)


def metrics_to_collect(content: Content, target: Target) -> tuple[str, ...]:
    """Metrics that a section makes Nsight Compute collect on a chip, in order, derived ones replaced by their inputs."""
    defined = content.defined_on(target.arch)
    result: dict[str, None] = {}
    for name in content.collected_on(target.arch):
        try:
            names = parse_expression(defined[name].expression).names if name in defined else (name,)
        except ValueError:
            names = ()
        result.update(dict.fromkeys(names))
    return tuple(result)


def section_passes(contents: Iterable[Content], target: Target) -> Passes | None:
    """Passes of sections collected together; None where no library knows the chip."""
    names = (name for content in contents for name in metrics_to_collect(content, target))
    return passes(target.chip, dict.fromkeys(names))


@dataclass(frozen=True)
class Checked:
    """A file: what was found, and its content if it parses."""

    path: str
    findings: tuple[Finding, ...]
    content: Content | None


def check_section(
    source: str | PathLike[str], targets: Sequence[Target] | None = None, release: Release | None = None
) -> list[Finding]:
    """What is to be said about one section: a path, or the text itself as `str`.

    `targets` are the chips to check for (default: one for each compute capability), `release` the Nsight Compute to check for
    (default: every one that sections are made for).  Raises RooflineError for a file that can't be read.
    """
    chosen = default_targets() if targets is None else targets
    if isinstance(source, str):
        return list(_check("", source.encode("utf-8", "surrogateescape"), chosen, release).findings)
    return list(check_file(source, chosen, release).findings)


def check_files(
    paths: Iterable[str | PathLike[str]], targets: Sequence[Target] | None = None, release: Release | None = None
) -> list[Checked]:
    """The same for several files, and what they are for each other.  Raises RooflineError for one that can't be read."""
    chosen = default_targets() if targets is None else targets
    results = [check_file(path, chosen, release) for path in paths]
    together = list(_together(result.content for result in results if result.content))
    return [
        replace(result, findings=_sorted((*result.findings, *(found for found in together if found.path == result.path))))
        for result in results
    ]


def check_file(path: str | PathLike[str], targets: Sequence[Target], release: Release | None) -> Checked:
    """One file.  Raises RooflineError if it can't be read."""
    try:
        data = read_file(path, MOST_BYTES)
    except OSError as error:
        raise RooflineError(
            "Cannot read", path, error.strerror or str(error), "Give a section file, or a folder of them."
        ) from error
    return _check(str(path), data, targets, release)


def _check(path: str, data: bytes, targets: Sequence[Target], release: Release | None) -> Checked:
    findings = []
    if path and not path.endswith(SUFFIX_OF_FILES):
        text = f"Nsight Compute only loads files whose names end in {SUFFIX_OF_FILES}"
        findings.append(Finding(WARNING, 1, 1, "file-name", text))
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = data.count(b"\n", 0, error.start) + 1, error.start - data.rfind(b"\n", 0, error.start)
        findings.append(Finding(WARNING, line, column, "encoding", f"byte 0x{data[error.start]:02x} is not UTF-8"))
    content = None
    try:
        content = Content(path, parse_document(read_bytes(data)))
        findings += _rules(content, targets, release)
    except SectionSyntaxError as error:
        findings.append(_at(ERROR, error, error.code, error.message))
    return Checked(path, _sorted(replace(finding, path=path) for finding in findings), content)


def _rules(content: Content, targets: Sequence[Target], release: Release | None) -> Iterable[Finding]:
    yield from _releases(content.document, release)
    yield from _identifier(content)
    if not content.root.text("Identifier"):
        return
    try:
        content.section  # noqa: B018 - decodes it
    except ValueError as error:
        yield Finding(ERROR, 1, 1, "syntax", str(error))
        return
    here = [target for target in targets if content.section.filter.matches(target.arch)]
    yield from _definitions(content, here, release)
    yield from _undefined(content, here)
    yield from _names(content, here)
    yield from _values(content)
    yield from _charts(content, here)
    yield from _dots(content, here)


def _sorted(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda one: (one.line, one.column, one.code, one.message)))
