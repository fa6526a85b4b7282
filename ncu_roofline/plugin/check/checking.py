"""Running the rules over texts and files, and what a file costs in replay passes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import read_file
from ncu_roofline.chips.fields import Release
from ncu_roofline.formats.sectionfile.definitions import parse_expression
from ncu_roofline.formats.sectionfile.message import MOST_BYTES
from ncu_roofline.formats.sectionfile.text import SectionSyntaxError, parse_document, read_bytes
from ncu_roofline.plugin.check.chips import Passes, passes
from ncu_roofline.plugin.check.content import ERROR, WARNING, Content, Finding
from ncu_roofline.plugin.check.section_rules import (
    check_charts,
    check_definitions,
    check_families,
    check_identifier,
    check_names,
    check_releases,
    check_together,
    check_undefined,
    check_values,
)
from ncu_roofline.plugin.check.targets import Target, default_targets

SUFFIX = ".section"


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
    together = list(check_together(result.content for result in results if result.content))
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
    findings = list(_about_bytes(path, data))
    content = None
    try:
        content = Content(path, parse_document(read_bytes(data)))
        findings += _rules(content, targets, release)
    except SectionSyntaxError as error:
        findings.append(Finding(ERROR, error.line, error.column, error.code, error.message))
    return Checked(path, _sorted(replace(finding, path=path) for finding in findings), content)


def _about_bytes(path: str, data: bytes) -> Iterable[Finding]:
    if path and not path.endswith(SUFFIX):
        yield Finding(WARNING, 1, 1, "file-name", f"Nsight Compute only loads files whose names end in {SUFFIX}")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = data.count(b"\n", 0, error.start) + 1, error.start - data.rfind(b"\n", 0, error.start)
        yield Finding(WARNING, line, column, "encoding", f"byte 0x{data[error.start]:02x} is not UTF-8")


def _rules(content: Content, targets: Sequence[Target], release: Release | None) -> Iterable[Finding]:
    yield from check_releases(content.document, release)
    yield from check_identifier(content)
    if not content.root.text("Identifier"):
        return
    try:
        content.section  # noqa: B018 - decodes it
    except ValueError as error:
        yield Finding(ERROR, 1, 1, "syntax", str(error))
        return
    here = [target for target in targets if content.section.filter.matches(target.arch)]
    yield from check_definitions(content, here, release)
    yield from check_undefined(content, here)
    yield from check_names(content, here)
    yield from check_values(content)
    yield from check_charts(content, here)
    yield from check_families(content, here)


def _sorted(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda one: (one.line, one.column, one.code, one.message)))
