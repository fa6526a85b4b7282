"""Metrics, sections and rule results appended to the results of a report; all that was there keeps its bytes and its place.

They go to the end of a result's message, where protobuf merges repeated fields, and the names of the metrics behind the last
name that the file has, so that no other name's number changes.  What is replaced (sections and rule results of ours that were
collected) stays under a field number that no reader knows, and `stripped` brings it back.  Of the headers the payload size
is renewed; nothing else of a file differs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from ncu_roofline.chips.ncu import PREFIX
from ncu_roofline.formats.report import RuleResult, Value
from ncu_roofline.formats.report.framing import KINDS, Kind, RawFile, frame, message, scan
from ncu_roofline.formats.report.reader import encode_rule
from ncu_roofline.formats.wire import BYTES, Field, bytes_field, number_field, read_varint, split, varint

METRIC_PREFIX = PREFIX.encode()
OWN_IDENTIFIER = b"NcuRooflineAnnotated"
"""Sections and rule results whose identifiers begin so are ours."""
_STRINGS, _PAYLOAD_SIZE = 4, 5  # field numbers of the block header
_STRING, _IDENTIFIER = 1, 1  # of its table of names; of a section and a rule result
_REPLACED = 1_000_000  # what is added to the number of a field that is replaced


class Addition(NamedTuple):
    """What one result gets (sections are serialized), and the identifiers of sections and rule results that this replaces."""

    metrics: Sequence[tuple[str, Value]] = ()
    sections: Sequence[bytes] = ()
    rules: Sequence[RuleResult] = ()
    replaced_sections: Collection[str] = ()
    replaced_rules: Collection[str] = ()


class _Layout:
    """The blocks of a report, its names, and the last block that brings names: behind these, more get their numbers without
    changing those of others."""

    def __init__(self, raw: RawFile) -> None:
        self.raw = raw
        self.blocks = tuple(scan(raw))
        self.names = [name for block in self.blocks for name in block.header.strings.strings]
        self.place = next((block for block in reversed(self.blocks) if block.header.strings.strings), None)
        self.own = {number: name for number, name in enumerate(self.names) if name.startswith(METRIC_PREFIX)}

    def written(self, changed: Callable[[Kind, int, bytes], bytes], change_names: Callable[[bytes], bytes]) -> Iterator[bytes]:
        """The bytes of the report with each result ``changed``, given its kind, place and bytes, and more or fewer names."""
        if self.blocks:
            yield self.raw.data[: self.blocks[0].start]
        for block in self.blocks:
            kinds = {offset: KINDS[kind] for kind, offset, _ in block.results()}
            records = [(kinds.get(offset), offset, self.raw.data[offset : offset + length]) for offset, length in block.records]
            payload = b"".join(frame(changed(kind, offset, data) if kind else data) for kind, offset, data in records)
            header = self.raw.data[block.start + 4 : block.payload]
            if len(payload) != block.header.payload_size:
                start, _, end = _last(header, _PAYLOAD_SIZE)
                header = header[:start] + number_field(_PAYLOAD_SIZE, len(payload)) + header[end:]
            if block is self.place:
                start, content, end = _last(header, _STRINGS)
                header = header[:start] + bytes_field(_STRINGS, change_names(header[content:end])) + header[end:]
            yield frame(header) + payload


def _last(data: bytes, number: int) -> tuple[int, int, int]:
    """Where the last field of this number starts, its content starts, and it ends; the end of ``data`` if there is none."""
    found = [one for one in split(data) if one.number == number]
    return found[-1][2:] if found else (len(data), len(data), len(data))


def _renumbered(raw: RawFile, offset: int, record: bytes, number_of: Callable[[Field, bytes], int | None]) -> bytes:
    """A record with other numbers for its fields, without those that get None."""
    kept = []
    try:
        for one in split(record):
            number = number_of(one, record[one.content : one.end])
            if number == one.number:
                kept.append(record[one.start : one.end])
            elif number is not None:
                kept.append(varint(number << 3 | one.wire_type) + record[read_varint(record, one.start)[1] : one.end])
    except ValueError as error:
        raise raw.damaged(offset, str(error)) from error
    return b"".join(kept)


def _numbers(kind: Kind) -> dict[str, int]:
    return {field.name: field.number for field in message(kind.result_message).DESCRIPTOR.fields}


def _identifier(data: bytes) -> bytes:
    """The identifier of a section or a rule result."""
    first = next((one for one in split(data) if one.number == _IDENTIFIER), None)
    return b"" if first is None else data[first.content : first.end]


def is_annotated(raw: RawFile) -> bool:
    """Whether an earlier run has annotated the report.  Raises RooflineError for damaged bytes."""
    return bool(_Layout(raw).own)


def stripped(raw: RawFile) -> Iterator[bytes]:
    """The bytes of ``raw`` without what was appended.  Raises RooflineError for damaged bytes."""
    layout = _Layout(raw)

    def without_own_names(table: bytes) -> bytes:
        """Those at the end only: others have numbers behind them."""
        end = len(table)
        for one in reversed(list(split(table))):
            if one.number != _STRING or not table[one.content : one.end].startswith(METRIC_PREFIX):
                break
            end = one.start
        return table[:end]

    def without_own(kind: Kind, offset: int, record: bytes) -> bytes:
        numbers = _numbers(kind)
        named = {numbers[name] for name in ("sections", "rules") if name in numbers}

        def number_of(one: Field, content: bytes) -> int | None:
            if one.wire_type == BYTES and one.number == numbers["metrics"]:
                own = raw.decode("MetricScalar", content, offset).name_id in layout.own
            else:
                own = one.wire_type == BYTES and one.number in named and _identifier(content).startswith(OWN_IDENTIFIER)
            former = one.number - _REPLACED
            return None if own else former if former in named else one.number

        return _renumbered(raw, offset, record, number_of)

    return layout.written(without_own, without_own_names)


def appended(raw: RawFile, names: Sequence[str], additions: Iterable[Addition]) -> Iterator[bytes]:
    """The bytes of ``raw`` with ``additions``, one for each of its results in order.

    ``names`` are those of all metrics that are added.  Raises RooflineError for damaged bytes, and for a report without names.
    """
    layout = _Layout(raw)
    if layout.place is None:
        raise raw.damaged(0, "there is no table of metric names")
    ids = {name.decode("utf-8", "replace"): number for number, name in layout.own.items()}
    new = [name for name in dict.fromkeys(names) if name not in ids]
    ids.update((name, len(layout.names) + i) for i, name in enumerate(new))
    more = b"".join(bytes_field(_STRING, name.encode()) for name in new)
    remaining = iter(additions)

    def with_addition(kind: Kind, offset: int, record: bytes) -> bytes:
        addition, numbers = next(remaining), _numbers(kind)
        given = {"sections": addition.replaced_sections, "rules": addition.replaced_rules}
        replaced = {numbers[name]: {one.encode() for one in given[name]} for name in given if given[name] and name in numbers}

        def number_of(one: Field, content: bytes) -> int:
            goes = one.wire_type == BYTES and one.number in replaced and _identifier(content) in replaced[one.number]
            return one.number + _REPLACED if goes else one.number

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
        if "rules" in numbers:  # else the format has no place for them in results of this kind
            result.rules.extend(map(encode_rule, addition.rules))
        encoded: bytes = result.SerializeToString()
        # Where nothing is replaced, the fields are not looked at: they are many.
        return (_renumbered(raw, offset, record, number_of) if replaced else record) + encoded

    return layout.written(with_addition, lambda table: table + more)
