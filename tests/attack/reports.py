"""The reports that are attacked, and how they are taken apart: into messages, and these into fields as they are written."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ncu_roofline.base.files import pack_folder
from ncu_roofline.formats.report.framing import KINDS, file_start, frame, message, pack_block
from ncu_roofline.formats.sectionfile.section import ROOT, messages
from ncu_roofline.formats.wire import BYTES, VARINT, read_varint, split
from ncu_roofline.plugin.annotate import annotate
from tests.report.factory import blocks_of, from_text, write

COUNTERS = ("sources", "graphs", *(kind.counter for kind in KINDS))  # in the order of their records
MESSAGES = {kind.counter: kind.result_message for kind in KINDS}
RECORDS = {**MESSAGES, "sources": "SourceRecord"}
NUMBERS = ("double", "uint64", "float", "uint32")  # the fields of a value that are numbers
# Bytes in which the schema has a message, by the message and field that hold them; and more names of the same bytes.
_INSIDE = {
    ("BlockHeader", 3): "Session",
    ("BlockHeader", 6): "Process",
    ("FileTable", 1): "ImportedFile",
    ("FunctionTable", 1): "CodeFunction",
    ("KernelResult", 17): ROOT,
    ("RangeResult", 7): ROOT,
    ("GraphResult", 7): ROOT,
    ("CmdlistResult", 7): ROOT,
    ("KernelResult", 19): "RuleResult",
    ("CmdlistResult", 21): "RuleResult",
}
_MORE = {"CmdlistResult": "CmdlistHead"}


def varint(number: int, padding: int = 0) -> bytes:
    """``number`` as protobuf writes it, with so many bytes more than needed."""
    size = max(1, -(-number.bit_length() // 7)) + padding
    return bytes(number >> 7 * place & 127 | (place < size - 1) << 7 for place in range(size))


class Field(NamedTuple):
    """A field as it is written: ``owner`` and ``inner`` are descriptors of the message that it is in, and of that in it."""

    owner: Any
    number: int
    wire: int
    content: bytes
    inner: Any = None

    @property
    def about(self) -> Any:
        """Its descriptor, None where the schema has none."""
        found = self.owner.fields_by_number.get(self.number)
        if found is None and self.owner.name in _MORE:
            return message(_MORE[self.owner.name]).DESCRIPTOR.fields_by_number.get(self.number)
        return found

    @property
    def name(self) -> str:
        return f"{self.owner.name}.{self.about.name if self.about is not None else self.number}"

    @property
    def text(self) -> bool:
        return self.about is not None and self.inner is None and self.about.type == self.about.TYPE_BYTES

    def encode(self, padding: int = 0) -> bytes:
        tag, length = varint(self.number << 3 | self.wire, padding), varint(len(self.content), padding)
        if self.wire == VARINT:
            return tag + varint(read_varint(self.content, 0)[0], padding)
        return tag + (length if self.wire == BYTES else b"") + self.content


def repeated(about: Any) -> bool:
    """Whether a field may be there several times; by the word that this protobuf has for it."""
    return bool(about.is_repeated) if hasattr(about, "is_repeated") else about.label == about.LABEL_REPEATED


Change = Callable[[Field], bytes]
Order = Callable[[int], int] | None


def edited(data: bytes, owner: Any, change: Change, order: Order = None) -> bytes:
    """A message with ``change`` made of each field, inner ones first; in an ``order`` of their numbers."""
    found = []
    for each in split(data):
        field = Field(owner, each.number, each.wire_type, data[each.content : each.end])
        inner, named = (field.about.message_type if field.about is not None else None), _INSIDE.get((owner.name, each.number))
        if named is not None:
            inner = (messages()[ROOT] if named == ROOT else message(named)).DESCRIPTOR
        if inner is not None:
            field = field._replace(content=edited(field.content, inner, change, order), inner=inner)
        found.append((each.number, change(field)))
    return b"".join(one for _, one in (sorted(found, key=lambda pair: order(pair[0])) if order else found))


class Document:
    """A report that can be changed at will: headers, and records as (counter of the header, message or bytes)."""

    def __init__(self, data: bytes) -> None:
        self.parts: list[tuple[Any, list[tuple[str, Any]]]] = []
        for header, records in blocks_of(data):
            kinds = [name for name in COUNTERS for _ in range(getattr(header, name))]
            made = (
                message(RECORDS[kind]).FromString(one) if kind in RECORDS else one
                for kind, one in zip(kinds, records, strict=True)
            )
            self.parts.append((header, list(zip(kinds, made, strict=True))))

    def encode(self) -> bytes:
        """The report, its headers counting what there is."""
        return file_start() + b"".join(pack_block(*self.counted(*part)) for part in self.parts)

    def counted(self, header: Any, records: list[tuple[str, Any]]) -> tuple[Any, list[bytes]]:
        for name in COUNTERS:
            if (count := sum(kind == name for kind, _ in records)) or header.HasField(name):
                setattr(header, name, count)
        ordered = sorted(records, key=lambda record: COUNTERS.index(record[0]))
        return header, [one if isinstance(one, bytes) else one.SerializeToString() for _, one in ordered]

    def edit(
        self, change: Callable[[Field], bytes], *, headers: bool = True, order: Callable[[int], int] | None = None
    ) -> bytes:
        """The report with ``change`` made of all fields of its messages."""
        blocks = []
        for header, records in self.parts:
            new = [(kind, one if isinstance(one, bytes) else edited(one.SerializeToString(), one.DESCRIPTOR, change, order))
                   for kind, one in records]  # fmt: skip
            counted, whole = self.counted(header, new)
            payload = b"".join(map(frame, whole))
            counted.payload_size = len(payload)
            head = counted.SerializeToString()
            # Its counters and size are the last fields, which count.
            kept = {name: getattr(counted, name) for name in (*COUNTERS, "payload_size") if counted.HasField(name)}
            sizes = type(counted)(**kept).SerializeToString()
            head = edited(head, header.DESCRIPTOR, change, order) + sizes if headers else head
            blocks.append(frame(head) + payload)
        return file_start() + b"".join(blocks)

    @property
    def results(self) -> list[Any]:
        """All results in the order in which they are numbered."""
        return [record for _, records in self.parts for kind in MESSAGES for found, record in records if found == kind]

    @property
    def names(self) -> list[str]:
        """The table of names."""
        return [name.decode("utf-8", "replace") for header, _ in self.parts for name in header.strings.strings]

    def metrics(self, result: Any, name: str) -> list[Any]:
        """The metrics of that name of a result; the last one counts."""
        names = self.names
        return [metric for metric in result.metrics if names[metric.name_id] == name]

    def numbers(self, result: Any) -> dict[str, float]:
        """The metrics of a result that are numbers, by name."""
        names, found = self.names, {}
        for metric in result.metrics:
            kind = next((name for name in NUMBERS if metric.value.HasField(name)), None)
            if kind is not None:
                found[names[metric.name_id]] = float(getattr(metric.value, kind))
        return found

    def put(self, result: Any, name: str, value: float | str | None) -> None:
        """Give a metric of a result this value."""
        for metric in self.metrics(result, name)[-1:]:
            metric.value.Clear()
            if isinstance(value, str):
                metric.value.text = value.encode("utf-8", "replace")
            elif value is not None:
                metric.value.double = value

    def remove(self, result: Any, name: str) -> None:
        """Take a metric of a result away."""
        for metric in self.metrics(result, name):
            result.metrics.remove(metric)


@functools.cache
def made() -> Mapping[str, bytes]:
    """The made reports by name: those of `bases.txt`, and one that the rules annotated."""
    text = Path(__file__).with_name("bases.txt").read_text("utf-8")
    found = {name: from_text(lines) for name, *lines in (part.splitlines() for part in text.split("=== ")[1:])}
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        chunks = list[bytes]()
        annotate(str(write(Path(folder), found["several"])), chunks.extend, (), [pack_folder("rules")])
    return found | {"annotated": b"".join(chunks)}


def real(largest: int = 3_000_000) -> Mapping[str, bytes]:
    """The smaller ones of the real reports by file name; none where there are none."""
    root = Path(__file__).resolve().parents[2]
    folder = Path(os.environ.get("NCU_ROOFLINE_REPORTS", root.parent / "shared" / "data" / "reports"))
    found = [path for path in sorted(folder.glob("*.ncu-rep")) if path.stat().st_size <= largest]
    return {path.name: path.read_bytes() for path in found}
