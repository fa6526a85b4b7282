"""Metrics, sections and rule results appended to the results of a report; all that was there keeps its bytes and its place.

They go to the end of a result's message, where protobuf merges repeated fields, and the names of the metrics behind the last
name that the file has, so that no other name's number changes.  Of the headers the payload size is renewed; nothing else of a
file differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ncu_roofline.annotate.blocks import METRIC_PREFIX, more_names, names_block, packed, records, strings_of
from ncu_roofline.report import RuleResult, Value
from ncu_roofline.report.framing import RawFile, scan
from ncu_roofline.report.rules import encode_rule
from ncu_roofline.report.schema import Kind, message


@dataclass(frozen=True)
class Addition:
    """What one result gets; ``sections`` are serialized ProfilerSection messages."""

    metrics: Sequence[tuple[str, Value]] = ()
    sections: Sequence[bytes] = ()
    rules: Sequence[RuleResult] = ()


def appended(raw: RawFile, names: Sequence[str], additions: Iterable[Addition]) -> Iterator[bytes]:
    """The bytes of ``raw`` with ``additions``, one for each of its results in order.

    ``names`` are those of all metrics that are added.  Raises RooflineError for damaged bytes, and for a report without names.
    """
    blocks = tuple(scan(raw))
    ids, new = _numbered(strings_of(blocks), names)
    place = names_block(blocks)
    if place is None:
        raise raw.damaged(0, "there is no table of metric names")
    remaining = iter(additions)
    yield raw.data[: blocks[0].start]
    for block in blocks:
        changed = [data + _encoded(kind, next(remaining), ids) if kind else data for kind, _offset, data in records(raw, block)]
        yield packed(raw, block, changed, (lambda table: more_names(table, new)) if block is place and new else None)


def _numbered(strings: Sequence[bytes], names: Iterable[str]) -> tuple[dict[str, int], list[bytes]]:
    """The numbers of ``names``, and those of them that the file does not have."""
    ids = {name.decode("utf-8", "replace"): i for i, name in enumerate(strings) if name.startswith(METRIC_PREFIX)}
    new = [name for name in dict.fromkeys(names) if name not in ids]
    ids.update((name, len(strings) + i) for i, name in enumerate(new))
    return ids, [name.encode() for name in new]


def early_results(raw: RawFile) -> int:
    """Results in blocks before the names of added metrics: `ncu --import` looks these up, ncu-ui shows n/a."""
    blocks = tuple(scan(raw))
    place = names_block(blocks)
    return sum(sum(block.counts[2:]) for block in blocks if place and block.start < place.start)


def _encoded(kind: Kind, addition: Addition, ids: Mapping[str, int]) -> bytes:
    result = message(kind.result_message)()
    for name, value in addition.metrics:
        metric = result.metrics.add(name_id=ids[name])
        if isinstance(value, str):
            metric.value.text = value.encode()
        elif isinstance(value, int):
            metric.value.uint64 = value
        else:
            metric.value.double = value
    result.sections.extend(addition.sections)
    if has_rules(kind):
        result.rules.extend(map(encode_rule, addition.rules))
    encoded: bytes = result.SerializeToString()
    return encoded


def has_rules(kind: Kind) -> bool:
    """Whether the format has a place for rule results in results of this kind."""
    return "rules" in message(kind.result_message).DESCRIPTOR.fields_by_name
