"""Rules about metrics: derived ones and their inputs, names that a chip does not have."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from ncu_roofline.lint.chips import BASE, SUFFIX, UNKNOWN, chip
from ncu_roofline.lint.content import ROOFLINE, SOURCE, Content, DefinitionField
from ncu_roofline.lint.finding import ERROR, INFO, WARNING, Finding
from ncu_roofline.lint.targets import Target, all_targets, capabilities
from ncu_roofline.sections.definitions import Expression, parse_expression
from ncu_roofline.sections.textformat import Field
from ncu_roofline.sections.textschema import Release, release_text

Targets = Sequence[Target]

_OPERAND = r"(?:[A-Za-z_][\w.:]*|\d+(?:\.\d+)?)"
_ONE_OPERATOR = re.compile(rf"\s*{_OPERAND} +[-+*/] +{_OPERAND}\s*", re.ASCII)
# Parentheses and several operators: the text of their parser is in 2024.1; sections that come with ncu use them from 2025.1 on.
_SINCE_CHAINS, _PROVEN_CHAINS, _SINCE_NAN = (2024, 1), (2025, 1), (2025, 3)
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
    since, proven = (_SINCE_NAN, _SINCE_NAN) if "nan_as_zero" in one.expression else (_SINCE_CHAINS, _PROVEN_CHAINS)
    if release is not None and release >= proven:
        return
    old = f"before {release_text(since)}" if release is None else f"in {release_text(release)}"
    verb = "has" if release is None or release < since else "may have"
    severity = ERROR if release is not None and release < since else WARNING
    message = f"{one.name} {verb} no value {old}: old releases read `operand operator operand` only"
    yield Finding(severity, field.line, field.column, "expression-release", message)


def _inputs(content: Content, one: DefinitionField, expression: Expression, targets: Targets) -> Iterator[Finding]:
    field = one.field.first("Expression") or one.field
    missing: dict[tuple[str, bool], list[Target]] = defaultdict(list)
    derived = {other.name for other in content.definitions}
    for name in sorted(derived.intersection(expression.names)):
        message = f"{one.name} is derived from {name}, which is derived itself: no release is known to compute that"
        yield Finding(WARNING, field.line, field.column, "derived-of-derived", message)
    for target in targets:
        collected = content.collected_on(target.arch)
        if content.defined_on(target.arch).get(one.name) is one:
            for name in expression.names:
                if name not in collected and name not in derived and not name.startswith(_FREE):
                    missing[name, one.name in collected].append(target)
    for (name, used), chips in missing.items():
        message = f"{one.name} needs {name}, which the section does not collect on {capabilities(chips, targets)}"
        then = "; add it to Metrics" if used else ", where nothing shows it"
        yield Finding(ERROR if used else INFO, field.line, field.column, "uncollected-input", message + then)


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
    misspelt = {name for name, verdict in places if verdict != UNKNOWN}
    missing: dict[tuple[str, tuple[Target, ...]], Field] = {}
    for (name, verdict), (field, chips) in places.items():
        if verdict != UNKNOWN:
            yield Finding(ERROR, field.line, field.column, "metric-suffix", _suffix_message(name))
        elif known_anywhere(name):
            missing.setdefault((name.partition(".")[0], tuple(chips)), field)  # once for all suffixes of a counter
        elif name not in misspelt:
            message = f"no chip has a metric {name}{_similar(name, chips[0])}"
            yield Finding(ERROR, field.line, field.column, "unknown-metric", message)
    for (base, without), field in missing.items():
        if base not in misspelt:
            message = f"{base} does not exist on {', '.join(one.chip for one in without)} ({capabilities(without, targets)})"
            yield Finding(WARNING, field.line, field.column, "metric-missing", message)


def _suffix_message(name: str) -> str:
    base, point, suffix = name.partition(".")
    return f"{base} exists, but not with {point}{suffix}" if point else f"{name} lacks a rollup such as .sum or .avg"


def known_anywhere(name: str) -> bool:
    """Whether any chip of any library here has the metric."""
    found = (chip(target.chip) for target in all_targets())
    return any(one.verdict(name) != UNKNOWN for one in found if one)


def _similar(name: str, target: Target) -> str:
    found = chip(target.chip)
    base, point, suffix = name.rpartition(":")[2].partition(".")
    close = difflib.get_close_matches(base, found.names, 1, 0.8) if found else []
    return f"; {close[0]}{point}{suffix} is meant?" if close else ""
