"""Rules about metrics: derived ones and their inputs, names that a chip does not have."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from ncu_roofline.lint.chips import BASE, OK, SUFFIX, UNKNOWN, chip
from ncu_roofline.lint.content import ROOFLINE, SOURCE, Content, DefinitionField
from ncu_roofline.lint.finding import ERROR, WARNING, Finding
from ncu_roofline.lint.targets import Target, all_targets, capabilities
from ncu_roofline.sections.definitions import Expression, parse_expression
from ncu_roofline.sections.textformat import Field
from ncu_roofline.sections.textschema import RELEASES, Release, release_text

Targets = Sequence[Target]

_OPERAND = r"(?:[A-Za-z_][\w.:]*|\d+(?:\.\d+)?)"
_ONE_OPERATOR = re.compile(rf"\s*{_OPERAND} +[-+*/] +{_OPERAND}\s*", re.ASCII)
_SINCE_CHAINS, _SINCE_NAN = (2024, 1), (2025, 3)
_FREE = ("device__attribute_",)  # in every report, asked for or not


def check_definitions(content: Content, targets: Targets, release: Release | None) -> Iterator[Finding]:
    """Expressions: syntax, what old releases make of them, whether their inputs are there."""
    for one in content.definitions:
        field = one.field.first("Expression") or one.field
        try:
            expression = parse_expression(one.expression)
        except ValueError as error:
            yield Finding(ERROR, field.line, field.column, "expression", f"{one.name}: {error}")
            continue
        yield from _old_releases(one, field, release)
        yield from _inputs(content, one, expression, targets)


def _old_releases(one: DefinitionField, field: Field, release: Release | None) -> Iterator[Finding]:
    if _ONE_OPERATOR.fullmatch(one.expression):
        return
    since = _SINCE_NAN if "nan_as_zero" in one.expression else _SINCE_CHAINS
    if release is None and since > RELEASES[0]:
        message = f"{one.name} has no value before {release_text(since)}: older releases read `operand operator operand` only"
        yield Finding(WARNING, field.line, field.column, "expression-release", message)
    elif release is not None and release < since:
        message = f"{one.name} has no value in {release_text(release)}, which reads `operand operator operand` only"
        yield Finding(ERROR, field.line, field.column, "expression-release", message)


def _inputs(content: Content, one: DefinitionField, expression: Expression, targets: Targets) -> Iterator[Finding]:
    field = one.field.first("Expression") or one.field
    missing: dict[str, list[Target]] = defaultdict(list)
    nested = set()
    for target in targets:
        if content.defined_on(target.arch).get(one.name) is not one:
            continue
        collected = content.collected_on(target.arch)
        for name in expression.names:
            if any(name == other.name for other in content.definitions):
                nested.add(name)
            elif name not in collected and not name.startswith(_FREE):
                missing[name].append(target)
    for name in sorted(nested):
        message = f"{one.name} is derived from {name}, which is derived itself: no release is known to compute that"
        yield Finding(WARNING, field.line, field.column, "derived-of-derived", message)
    for name, chips in missing.items():
        message = (
            f"{one.name} needs {name}, which the section does not collect on {capabilities(chips, targets)}; add it to Metrics"
        )
        yield Finding(ERROR, field.line, field.column, "uncollected-input", message)


def check_undefined(content: Content, targets: Targets) -> Iterator[Finding]:
    """Derived metrics in charts that the section does not define."""
    undefined: dict[tuple[str, int, int], list[Target]] = defaultdict(list)
    for target in targets:
        defined = content.defined_on(target.arch)
        for name, placed in content.collected_on(target.arch).items():
            if name.startswith("derived__") and placed.role == ROOFLINE and name not in defined:
                undefined[name, placed.place(name).line, placed.place(name).column].append(target)
    for (name, line, column), chips in undefined.items():
        message = f"{name} is not defined in this section on {capabilities(chips, targets)}"
        yield Finding(WARNING, line, column, "undefined-derived", message)


def check_names(content: Content, targets: Targets) -> Iterator[Finding]:
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
    for (name, verdict), (field, chips) in places.items():
        yield _name_finding(name, verdict, field, chips, targets)


def _name_finding(name: str, verdict: str, field: Field, missing: Targets, targets: Targets) -> Finding:
    if verdict == BASE:
        message = f"{name} lacks a rollup such as .sum or .avg"
        return Finding(ERROR, field.line, field.column, "metric-suffix", message)
    if verdict == SUFFIX:
        message = f"{name.partition('.')[0]} exists, but not with {name[name.index('.') :]}"
        return Finding(ERROR, field.line, field.column, "metric-suffix", message)
    if known_anywhere(name):
        chips = ", ".join(one.chip for one in missing)
        message = f"{name} does not exist on {chips} ({capabilities(missing, targets)})"
        return Finding(WARNING, field.line, field.column, "metric-missing", message)
    return Finding(
        ERROR, field.line, field.column, "unknown-metric", f"no chip has a metric {name}{_similar(name, missing[0])}"
    )


def known_anywhere(name: str) -> bool:
    """Whether any chip of any library here has the metric."""
    found = (chip(target.chip) for target in all_targets())
    return any(one.verdict(name) == OK for one in found if one)


def _similar(name: str, target: Target) -> str:
    found = chip(target.chip)
    base, point, suffix = name.rpartition(":")[2].partition(".")
    close = difflib.get_close_matches(base, found.names, 1, 0.8) if found else []
    return f"; {close[0]}{point}{suffix} is meant?" if close else ""
