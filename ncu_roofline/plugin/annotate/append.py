"""Metrics, sections and rule results appended to the results of a report; all that was there keeps its bytes and its place.

They go to the end of a result's message, where protobuf merges repeated fields, and the names of the metrics behind the last
name that the file has, so that no other name's number changes.  What is replaced (sections and rule results of ours that were
collected) stays under a field number that no reader knows, and `stripped` brings it back.  Of the headers the payload size
is renewed; nothing else of a file differs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ncu_roofline.chips.metric_names import PREFIX
from ncu_roofline.formats.report import RuleResult, Value
from ncu_roofline.formats.report.empty import is_empty
from ncu_roofline.formats.report.framing import Block, RawFile, frame, scan
from ncu_roofline.formats.report.rules import encode_rule
from ncu_roofline.formats.report.schema import KINDS, Kind, message

VARINT, FIXED64, BYTES, GROUP_START, GROUP_END, FIXED32 = range(6)
METRIC_PREFIX = PREFIX.encode()
OWN_IDENTIFIER = b"NcuRooflineAnnotated"
"""Sections and rule results whose identifiers begin so are ours."""
# Field numbers: of the block header, and of its table of names.
_STRINGS, _PAYLOAD_SIZE = 4, 5
_STRING = 1
_IDENTIFIER = 1  # field number in a section and in a rule result
_REPLACED = 1_000_000  # what is added to the number of a field that is replaced


class Field(NamedTuple):
    """One field: its number and wire type, where its tag starts, where its content starts, and where it ends."""

    number: int
    wire_type: int
    start: int
    content: int
    end: int


def split(data: bytes) -> Iterator[Field]:
    """The top-level fields of ``data`` in order, a group as one.  Raises ValueError for bytes that are no message."""
    position, depth, group = 0, 0, Field(0, 0, 0, 0, 0)
    while position < len(data) or depth:
        start = position
        tag, content = _varint(data, start)
        number, wire_type, end = tag >> 3, tag & 7, content
        if wire_type == VARINT:
            end = _varint(data, content)[1]
        elif wire_type == BYTES:
            length, content = _varint(data, content)
            end = content + length
        elif wire_type in (FIXED64, FIXED32):
            end = content + (8 if wire_type == FIXED64 else 4)
        elif wire_type != GROUP_START and (wire_type != GROUP_END or not depth):
            raise ValueError(f"wire type {wire_type} at byte {start}")
        if end > len(data) or not number:
            raise ValueError(f"a field that does not end or has no number at byte {start}")
        position, field = end, Field(number, wire_type, start, content, end)
        if wire_type == GROUP_START:
            group = group if depth else field
            depth += 1
        elif wire_type == GROUP_END:
            depth -= 1
            field = group._replace(end=end)
        if not depth:
            yield field


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data) and shift < 64:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position += 1
        shift += 7
        if byte < 0x80:
            return value, position
    raise ValueError(f"a number that does not end at byte {position}")


def varint(value: int) -> bytes:
    """``value`` in protobuf's variable-length form."""
    result = bytearray()
    while value > 0x7F:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*result, value])


def number_field(number: int, value: int) -> bytes:
    """A serialized unsigned field."""
    return varint(number << 3 | VARINT) + varint(value)


def bytes_field(number: int, content: bytes) -> bytes:
    """A serialized field of bytes, text or a message."""
    return varint(number << 3 | BYTES) + varint(len(content)) + content


def _strings_of(blocks: Iterable[Block]) -> list[bytes]:
    """The table of names, which goes through all blocks."""
    return [string for block in blocks for string in block.header.strings.strings]


def _names_block(blocks: Sequence[Block]) -> Block | None:
    """The last block that brings names: behind these, more get their numbers without changing those of others."""
    return next((block for block in reversed(blocks) if block.header.strings.strings), None)


def _records(raw: RawFile, block: Block) -> Iterator[tuple[Kind | None, int, bytes]]:
    """(kind, None for anything but a result; offset; bytes) of each record."""
    kinds = {offset: KINDS[kind] for kind, offset, _ in block.results()}
    for offset, length in block.records:
        yield kinds.get(offset), offset, raw.data[offset : offset + length]


def _packed(raw: RawFile, block: Block, changed: Sequence[bytes], change_names: Callable[[bytes], bytes] | None) -> bytes:
    """``block`` with these records; ``change_names`` turns the bytes of its table of names into others."""
    payload = b"".join(map(frame, changed))
    header = raw.data[block.start + 4 : block.payload]
    if len(payload) != block.header.payload_size:
        header = _replaced(header, _PAYLOAD_SIZE, lambda _: number_field(_PAYLOAD_SIZE, len(payload)))
    if change_names is not None:
        header = _replaced(header, _STRINGS, lambda table: bytes_field(_STRINGS, change_names(table)))
    return frame(header) + payload


def _replaced(data: bytes, number: int, make: Callable[[bytes], bytes]) -> bytes:
    """``data`` with ``make(content)`` in place of its last field of this number; at the end if there is none."""
    found = [one for one in split(data) if one.number == number]
    if not found:
        return data + make(b"")
    last = found[-1]
    return data[: last.start] + make(data[last.content : last.end]) + data[last.end :]


def is_annotated(raw: RawFile) -> bool:
    """Whether an earlier run has annotated the report.  Raises RooflineError for damaged bytes."""
    return any(name.startswith(METRIC_PREFIX) for name in _strings_of(scan(raw)))


def stripped(raw: RawFile) -> Iterator[bytes]:
    """The bytes of ``raw`` without what was appended.  Raises RooflineError for damaged bytes."""

    def without_own_names(table: bytes) -> bytes:
        """Those at the end only: others have numbers behind them."""
        end = len(table)
        for one in reversed(list(split(table))):
            if one.number != _STRING or not table[one.content : one.end].startswith(METRIC_PREFIX):
                break
            end = one.start
        return table[:end]

    blocks = tuple(scan(raw))
    place = _names_block(blocks)
    own = {number for number, name in enumerate(_strings_of(blocks)) if name.startswith(METRIC_PREFIX)}
    if blocks:
        yield raw.data[: blocks[0].start]
    for block in blocks:
        kept = [_without_own(raw, kind, offset, data, own) if kind else data for kind, offset, data in _records(raw, block)]
        yield _packed(raw, block, kept, without_own_names if block is place else None)


def _without_own(raw: RawFile, kind: Kind, offset: int, record: bytes, own: set[int]) -> bytes:
    numbers = _numbers(kind)
    named = {numbers[name] for name in ("sections", "rules") if name in numbers}
    kept = []
    try:
        for one in split(record):
            content = record[one.content : one.end]
            is_metric = one.number == numbers["metrics"] and one.wire_type == BYTES
            if is_metric and raw.decode("MetricScalar", content, offset).name_id in own:
                continue
            if one.number in named and one.wire_type == BYTES and _identifier(content).startswith(OWN_IDENTIFIER):
                continue
            former = one.number - _REPLACED
            kept.append(_renumbered(record, one, former if former in named else one.number))
    except ValueError as error:
        raise raw.damaged(offset, str(error)) from error
    return b"".join(kept)


def _numbers(kind: Kind) -> dict[str, int]:
    return {field.name: field.number for field in message(kind.result_message).DESCRIPTOR.fields}


def _renumbered(record: bytes, one: Field, number: int) -> bytes:
    """The bytes of a field under another number."""
    if number == one.number:
        return record[one.start : one.end]
    return varint(number << 3 | one.wire_type) + record[_varint(record, one.start)[1] : one.end]


def _identifier(data: bytes) -> bytes:
    """The identifier of a section or a rule result."""
    first = next((one for one in split(data) if one.number == _IDENTIFIER), None)
    return b"" if first is None else data[first.content : first.end]


@dataclass(frozen=True)
class Addition:
    """What one result gets, and the identifiers of sections and of rule results that this replaces.

    ``sections`` are serialized ProfilerSection messages.
    """

    metrics: Sequence[tuple[str, Value]] = ()
    sections: Sequence[bytes] = ()
    rules: Sequence[RuleResult] = ()
    replaced_sections: Collection[str] = ()
    replaced_rules: Collection[str] = ()


def appended(raw: RawFile, names: Sequence[str], additions: Iterable[Addition]) -> Iterator[bytes]:
    """The bytes of ``raw`` with ``additions``, one for each of its results in order, empty ones left out.

    ``names`` are those of all metrics that are added.  Raises RooflineError for damaged bytes, and for a report without names.
    """
    blocks = tuple(scan(raw))
    place = _names_block(blocks)
    if place is None:
        raise raw.damaged(0, "there is no table of metric names")
    strings = _strings_of(blocks)
    ids = {name.decode("utf-8", "replace"): i for i, name in enumerate(strings) if name.startswith(METRIC_PREFIX)}
    new = [name for name in dict.fromkeys(names) if name not in ids]
    ids.update((name, len(strings) + i) for i, name in enumerate(new))
    more = b"".join(bytes_field(_STRING, name.encode()) for name in new)
    remaining = iter(additions)
    yield raw.data[: blocks[0].start]
    for block in blocks:
        changed = [
            _without_replaced(raw, kind, offset, data, addition := next(remaining)) + _encoded(kind, addition, ids)
            if kind and not is_empty(raw, kind, offset, len(data))
            else data
            for kind, offset, data in _records(raw, block)
        ]
        yield _packed(raw, block, changed, (lambda table: table + more) if block is place and new else None)


def _without_replaced(raw: RawFile, kind: Kind, offset: int, record: bytes, addition: Addition) -> bytes:
    numbers = _numbers(kind)
    given = {"sections": addition.replaced_sections, "rules": addition.replaced_rules}
    replaced = {numbers[name]: {one.encode() for one in given[name]} for name in given if given[name] and name in numbers}
    if not replaced:
        return record  # its fields are many
    changed = []
    try:
        for one in split(record):
            wanted = replaced.get(one.number, ()) if one.wire_type == BYTES else ()
            goes = wanted and _identifier(record[one.content : one.end]) in wanted
            changed.append(_renumbered(record, one, one.number + _REPLACED if goes else one.number))
    except ValueError as error:
        raise raw.damaged(offset, str(error)) from error
    return b"".join(changed)


def early_results(raw: RawFile) -> int:
    """Results in blocks before the names of added metrics: `ncu --import` looks these up, ncu-ui shows n/a."""
    blocks = tuple(scan(raw))
    place = _names_block(blocks)
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
    if "rules" in _numbers(kind):  # else the format has no place for them in results of this kind
        result.rules.extend(map(encode_rule, addition.rules))
    encoded: bytes = result.SerializeToString()
    return encoded
