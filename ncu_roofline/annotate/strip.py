"""A report without what an earlier run of `annotate` has appended to it: byte for byte what was annotated then."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ncu_roofline.annotate.blocks import (
    METRIC_PREFIX,
    OWN_IDENTIFIER,
    names_block,
    packed,
    records,
    strings_of,
    without_last_names,
)
from ncu_roofline.annotate.wirefields import BYTES, Field, split
from ncu_roofline.report.framing import RawFile, scan
from ncu_roofline.report.schema import Kind, message

_IDENTIFIER = 1  # field number in a section and in a rule result


def is_annotated(raw: RawFile) -> bool:
    """Whether an earlier run has annotated the report.  Raises RooflineError for damaged bytes."""
    return any(name.startswith(METRIC_PREFIX) for name in strings_of(scan(raw)))


def stripped(raw: RawFile) -> Iterator[bytes]:
    """The bytes of ``raw`` without what was appended.  Raises RooflineError for damaged bytes."""
    blocks = tuple(scan(raw))
    place = names_block(blocks)
    own = {number for number, name in enumerate(strings_of(blocks)) if name.startswith(METRIC_PREFIX)}
    if blocks:
        yield raw.data[: blocks[0].start]
    for block in blocks:
        kept = [_without_own(raw, kind, offset, data, own) if kind else data for kind, offset, data in records(raw, block)]
        has_names = block is place
        yield packed(raw, block, kept, (lambda table: without_last_names(table, METRIC_PREFIX)) if has_names else None)


def _without_own(raw: RawFile, kind: Kind, offset: int, record: bytes, own: set[int]) -> bytes:
    numbers = {one.name: one.number for one in message(kind.result_message).DESCRIPTOR.fields}
    checks: dict[int, Callable[[bytes], bool]] = {
        numbers["metrics"]: lambda data: raw.decode("MetricScalar", data, offset).name_id in own,
        numbers["sections"]: _has_own_identifier,
    }
    if "rules" in numbers:
        checks[numbers["rules"]] = _has_own_identifier
    try:
        return b"".join(record[one.start : one.end] for one in split(record) if not _is_own(record, one, checks))
    except ValueError as error:
        raise raw.damaged(offset, str(error)) from error


def _is_own(record: bytes, one: Field, checks: dict[int, Callable[[bytes], bool]]) -> bool:
    check = checks.get(one.number)
    return check is not None and one.wire_type == BYTES and check(record[one.content : one.end])


def _has_own_identifier(data: bytes) -> bool:
    first = next((one for one in split(data) if one.number == _IDENTIFIER), None)
    return first is not None and data[first.content : first.end].startswith(OWN_IDENTIFIER)
