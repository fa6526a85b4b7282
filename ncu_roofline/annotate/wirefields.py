"""The top-level fields of a serialized message as byte ranges: what is not touched stays byte for byte what it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

VARINT, FIXED64, BYTES, GROUP_START, GROUP_END, FIXED32 = range(6)
_FIXED = {FIXED64: 8, FIXED32: 4}


class Field(NamedTuple):
    """One field: its number and wire type, where its tag starts, where its content starts, and where it ends."""

    number: int
    wire_type: int
    start: int
    content: int
    end: int


def split(data: bytes) -> Iterator[Field]:
    """The top-level fields of ``data`` in order.  Raises ValueError for bytes that are no message."""
    position = 0
    while position < len(data):
        field = _field(data, position)
        yield field
        position = field.end


def _field(data: bytes, start: int) -> Field:
    tag, content = _varint(data, start)
    wire_type = tag & 7
    end = content
    if wire_type == VARINT:
        end = _varint(data, content)[1]
    elif wire_type == BYTES:
        length, content = _varint(data, content)
        end = content + length
    elif wire_type in _FIXED:
        end = content + _FIXED[wire_type]
    elif wire_type == GROUP_START:
        end = _group_end(data, content)
    else:
        raise ValueError(f"wire type {wire_type} at byte {start}")
    if end > len(data) or not tag >> 3:
        raise ValueError(f"a field that does not end or has no number at byte {start}")
    return Field(tag >> 3, wire_type, start, content, end)


def _group_end(data: bytes, position: int) -> int:
    depth = 1
    while depth:
        tag, after = _varint(data, position)
        if tag & 7 in (GROUP_START, GROUP_END):
            depth += 1 if tag & 7 == GROUP_START else -1
            position = after
        else:
            position = _field(data, position).end
    return position


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data) or shift > 63:
            raise ValueError(f"a number that does not end at byte {position}")
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position += 1
        shift += 7
        if byte < 0x80:
            return value, position


def varint(value: int) -> bytes:
    """``value`` in protobuf's variable-length form."""
    result = bytearray()
    while value > 0x7F:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)


def number_field(number: int, value: int) -> bytes:
    """A serialized unsigned field."""
    return varint(number << 3 | VARINT) + varint(value)


def bytes_field(number: int, content: bytes) -> bytes:
    """A serialized field of bytes, text or a message."""
    return varint(number << 3 | BYTES) + varint(len(content)) + content
