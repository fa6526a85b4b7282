"""Rules about the file itself: which releases load it, its identifier, its name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ncu_roofline.lint.content import Content
from ncu_roofline.lint.finding import ERROR, WARNING, Finding
from ncu_roofline.sections.textformat import Document, Use
from ncu_roofline.sections.textschema import RELEASES, Release, release_text

# Identifiers of the sections that come with Nsight Compute, and the families that grow with every release.
_STOCK = re.compile(
    r"(SpeedOfLight|MemoryWorkloadAnalysis|Nvlink|PmSampling|Tile)(_\w+)?"
    r"|ComputeWorkloadAnalysis|(Instruction|Launch|Scheduler|WarpState|Tile)Stats(_\w+)?|Occupancy|SourceCounters"
    r"|WorkloadDistribution|C2CLink|NumaAffinity|section0"
)


def check_releases(document: Document, release: Release | None) -> Iterator[Finding]:
    """Fields and values that `release`, or some release of the whole range, does not know."""
    if release is not None:
        for use in document.unknown_to(release):
            yield Finding(ERROR, use.line, use.column, "release", f"{release_text(release)} {_rejects(use)}")
        return
    seen = set()
    for use in document.uses:
        unknown = [one for one in RELEASES if not use.history.known_to(one)]
        kind = (use.name.partition(" ")[0], use.history)  # one of a field's values stands for all that came with it
        if unknown and kind not in seen:
            seen.add(kind)
            yield Finding(WARNING, use.line, use.column, "release", f"{_span(unknown)} {_rejects(use)}")
    if document.uses and not loading_releases(document):
        culprit = next(use for use in document.uses if any(not use.history.known_to(one) for one in RELEASES))
        message = (
            f"no release from {release_text(RELEASES[0])} to {release_text(RELEASES[-1])} knows all fields and values of it"
        )
        yield Finding(ERROR, culprit.line, culprit.column, "no-release", message)


def loading_releases(document: Document) -> tuple[Release, ...]:
    """The releases that load the file."""
    return tuple(one for one in RELEASES if not document.unknown_to(one))


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


def check_identifier(content: Content) -> Iterator[Finding]:
    """Identifiers that collide with stock ones, or that the command line makes awkward."""
    field = content.root.first("Identifier")
    identifier = content.root.text("Identifier")
    if field is None:
        return
    if not identifier:
        yield Finding(ERROR, field.line, field.column, "empty-identifier", "the section has an empty identifier")
    if re.search(r"\s", identifier):
        message = f"identifier {identifier!r} contains a space: `--section` and rules can hardly name it"
        yield Finding(WARNING, field.line, field.column, "identifier-space", message)
    if _STOCK.fullmatch(identifier):
        message = f"identifier {identifier} is one of Nsight Compute's own: one of the two hides the other without a word"
        yield Finding(WARNING, field.line, field.column, "stock-identifier", message)


def check_together(contents: Iterable[Content]) -> Iterator[Finding]:
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
            yield Finding(ERROR, field.line, field.column, "duplicate-identifier", message, content.path)
        for one in content.definitions:
            key = f"{one.name} {one.filter}"
            expression, owner = expressions.setdefault(key, (one.expression, content))
            if owner is not content and expression.split() != one.expression.split():
                message = f"{one.name} is defined otherwise in {owner.path}: names of metrics are global in a report"
                yield Finding(WARNING, one.field.line, one.field.column, "definition-conflict", message, content.path)
