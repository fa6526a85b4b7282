"""Messages as trees of fields, by the schema: what the wire says, so that it can be made to say something else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ncu_roofline.formats.report.framing import message
from ncu_roofline.formats.sectionfile.section import ROOT, messages

VARINT, FIXED64, TEXT, FIXED32, RAW = 0, 1, 2, 5, -1
EDGES = (0, 1, 2, 127, 128, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63, 2**64 - 1)
"""Numbers at which something may go over."""
# Bytes in which the schema has a message, by the message and field that hold them.
_INSIDE = {
    ("BlockHeader", 3): "Session",
    ("BlockHeader", 6): "Process",
    ("FileTable", 1): "ImportedFile",
    ("FunctionTable", 1): "CodeFunction",
    ("KernelResult", 17): ROOT,
    ("KernelResult", 19): "RuleResult",
    ("CmdlistResult", 7): ROOT,
    ("CmdlistResult", 21): "RuleResult",
}


# Messages that name more fields of the same bytes.
_MORE = {"CmdlistResult": "CmdlistHead"}


@dataclass
class Field:
    """One field: ``value`` is a number, bytes, or the fields of a message; with the wire type RAW, bytes as they are written.

    ``about`` is its descriptor, None where the schema does not name it; ``message`` the name of the message inside.
    ``padding``: bytes more than a varint needs.
    """

    number: int
    wire: int
    value: int | bytes | list[Field]
    about: Any = None
    message: str = ""
    padding: int = 0

    def copy(self) -> Field:
        """The same again, with fields of its own."""
        value = [field.copy() for field in self.value] if isinstance(self.value, list) else self.value
        return Field(self.number, self.wire, value, self.about, self.message, self.padding)


@dataclass(frozen=True)
class Site:
    """Where a field is: in ``fields``, the fields of a message called ``message``, at ``index``."""

    message: str
    fields: list[Field]
    index: int

    @property
    def field(self) -> Field:
        """The field itself."""
        return self.fields[self.index]


def repeated(about: Any) -> bool:
    """Whether a field may be there several times; by the word that this protobuf has for it."""
    return bool(about.is_repeated) if hasattr(about, "is_repeated") else about.label == about.LABEL_REPEATED


def varint(number: int, padding: int = 0) -> bytes:
    """``number`` as protobuf writes it, with so many bytes more than needed."""
    result = bytearray()
    while number >= 0x80:
        result.append(number & 0x7F | 0x80)
        number >>= 7
    result.append(number)
    if padding:
        result[-1] |= 0x80
        result += b"\x80" * (padding - 1) + b"\0"
    return bytes(result)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return number, at
        shift += 7


def parse(data: bytes, descriptor: Any) -> list[Field]:
    """The fields of a whole message."""
    at, found = 0, []
    while at < len(data):
        key, at = _read_varint(data, at)
        number, wire = key >> 3, key & 7
        about = _about(descriptor, number)
        value: int | bytes | list[Field]
        if wire == VARINT:
            value, at = _read_varint(data, at)
        else:
            length, at = _read_varint(data, at) if wire == TEXT else ({FIXED64: 8, FIXED32: 4}[wire], at)
            value, at = data[at : at + length], at + length
            inner = _inside(descriptor, number, about) if wire == TEXT else None
            if inner is not None:
                found.append(Field(number, wire, parse(value, inner), about, inner.name))
                continue
        found.append(Field(number, wire, value, about))
    return found


def _about(descriptor: Any, number: int) -> Any:
    found = descriptor.fields_by_number.get(number) if descriptor else None
    if found is None and descriptor is not None and descriptor.name in _MORE:
        return message(_MORE[descriptor.name]).DESCRIPTOR.fields_by_number.get(number)
    return found


def _inside(descriptor: Any, number: int, about: Any) -> Any:
    if about is not None and about.message_type is not None:
        return about.message_type
    named = _INSIDE.get((descriptor.name, number)) if descriptor else None
    if named is None:
        return None
    return (messages()[ROOT] if named == ROOT else message(named)).DESCRIPTOR


def tree(record: Any) -> list[Field]:
    """The fields of a message."""
    return parse(bytes(record.SerializeToString()), record.DESCRIPTOR)


def encode(fields: Sequence[Field]) -> bytes:
    """The fields as they are written."""
    return b"".join(map(_encode, fields))


def _encode(field: Field) -> bytes:
    if field.wire == RAW:
        assert isinstance(field.value, bytes)
        return field.value
    key = varint(field.number << 3 | field.wire, field.padding)
    if isinstance(field.value, int):
        return key + varint(field.value, field.padding)
    data = encode(field.value) if isinstance(field.value, list) else field.value
    return key + (varint(len(data), field.padding) if field.wire == TEXT else b"") + data


def sites(name: str, fields: list[Field]) -> Iterator[Site]:
    """All places of a tree whose root is a message called ``name``."""
    for index, field in enumerate(fields):
        yield Site(name, fields, index)
        if isinstance(field.value, list):
            yield from sites(field.message, field.value)
