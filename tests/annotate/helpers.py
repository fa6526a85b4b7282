"""What the tests of `annotate` share: annotating into a file, and reading what was added."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ncu_roofline.base.files import write_atomically
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.report import Kernel, RuleResult, Value
from ncu_roofline.formats.report.framing import open_raw, scan
from ncu_roofline.formats.sectionfile.section import Section, parse_section
from ncu_roofline.plugin.annotate import METRIC_PREFIX, OWN_IDENTIFIER, Account, annotate

PREFIX, OWN = METRIC_PREFIX.decode(), OWN_IDENTIFIER.decode()


def annotated(source: Path, target: Path, ceilings: Sequence[Ceilings] = (), rules: Sequence[Path] | None = None) -> Account:
    """Annotate ``source`` into ``target`` with these rules, ours if not said."""
    return annotate(source, lambda chunks: write_atomically(target, chunks, overwrite=True), ceilings, rules)


class Added(NamedTuple):
    """What is ours of a kernel."""

    metrics: dict[str, Value]
    sections: dict[str, Section]
    rules: tuple[RuleResult, ...]


def added(kernel: Kernel) -> Added:
    sections = {one.identifier: one for one in map(parse_section, kernel.sections)}
    return Added(
        {name: value for name, value in kernel.metrics.items() if name.startswith(PREFIX)},
        {name: one for name, one in sections.items() if name.startswith(OWN)},
        tuple(one for one in kernel.rule_results if one.identifier.startswith(OWN)),
    )


def assert_kept(before: Path, after: Path) -> None:
    """Every byte of every record of ``before`` is in its place in ``after``; headers differ in size and names only."""
    (old, old_data), (new, new_data) = ((list(scan(raw)), raw) for raw in map(open_raw, (before, after)))
    names = [name for block in old for name in block.header.strings.strings]
    first = next(number for number, block in enumerate(old) if block.header.strings.strings)
    more = list(new[first].header.strings.strings)  # all, so that a viewer has them when it shows the first result
    assert more[: len(names)] == names
    assert {name[: len(METRIC_PREFIX)] for name in more[len(names) :]} == {METRIC_PREFIX}
    for number, (was, now) in enumerate(zip(old, new, strict=True)):
        assert number == first or not now.header.strings.strings
        results = {offset for _, offset, _ in was.results()}
        for (start, length), (at, new_length) in zip(was.records, now.records, strict=True):
            one, other = old_data[start : start + length], new_data[at : at + new_length]
            assert (other.startswith(one) and len(other) > len(one)) if start in results else other == one
        if not results and not was.header.strings.strings:
            assert old_data[was.start + 4 : was.payload] == new_data[now.start + 4 : now.payload]
