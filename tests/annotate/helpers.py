"""What the tests of `annotate` share: annotating into a file, and reading what was added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True)
class Added:
    """What is ours of a kernel."""

    metrics: dict[str, Value]
    sections: dict[str, Section]
    rules: tuple[RuleResult, ...]


def added(kernel: Kernel) -> Added:
    """What is ours of ``kernel``."""
    sections = [parse_section(data) for data in kernel.sections]
    return Added(
        {name: value for name, value in kernel.metrics.items() if name.startswith(PREFIX)},
        {one.identifier: one for one in sections if one.identifier.startswith(OWN)},
        tuple(one for one in kernel.rule_results if one.identifier.startswith(OWN)),
    )


@dataclass(frozen=True)
class Shape:
    """A file down to its records: headers and records of each block, the names, and what of a record is a result."""

    headers: list[bytes]
    records: list[list[bytes]]
    is_result: list[list[bool]]
    strings: list[list[bytes]]


def shape(path: Path) -> Shape:
    """The blocks of a report."""
    raw = open_raw(path)
    blocks = list(scan(raw))
    results = [{offset for _, offset, _ in block.results()} for block in blocks]
    found = Shape(
        [raw.data[block.start + 4 : block.payload] for block in blocks],
        [[raw.data[offset : offset + length] for offset, length in block.records] for block in blocks],
        [[offset in own for offset, _ in block.records] for block, own in zip(blocks, results, strict=True)],
        [list(block.header.strings.strings) for block in blocks],
    )
    raw.close()
    return found


def assert_kept(before: Path, after: Path) -> None:
    """Every byte of every record of ``before`` is in its place in ``after``; headers differ in size and names only."""
    old, new = shape(before), shape(after)
    assert len(old.headers) == len(new.headers)
    grown = [number for number, strings in enumerate(new.strings) if strings != old.strings[number]]
    assert grown == [max(number for number, strings in enumerate(old.strings) if strings)]
    extra = new.strings[grown[0]][len(old.strings[grown[0]]) :]
    assert new.strings[grown[0]] == old.strings[grown[0]] + extra
    assert all(name.startswith(METRIC_PREFIX) for name in extra)
    for number, (was, now) in enumerate(zip(old.records, new.records, strict=True)):
        for one, other, result in zip(was, now, old.is_result[number], strict=True):
            assert other.startswith(one) if result else other == one
            assert not result or len(other) > len(one)
        if was == now and number not in grown:
            assert old.headers[number] == new.headers[number]
