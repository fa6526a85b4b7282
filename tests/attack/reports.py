"""The reports that are attacked, and how they are taken apart: into messages, and these into fields as they are written."""

from __future__ import annotations

import functools
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ncu_roofline.base.files import pack_folder
from ncu_roofline.formats.report.framing import KINDS, file_start, frame, message
from ncu_roofline.formats.sectionfile.section import ROOT, messages
from ncu_roofline.formats.wire import BYTES, VARINT, read_varint, split
from ncu_roofline.plugin.annotate import annotate
from tests.report.factory import blocks_of, from_text, write

COUNTERS = ("sources", "graphs", *(kind.counter for kind in KINDS))  # in the order of their records
RECORDS = {**{kind.counter: kind.view("Result") for kind in KINDS}, "sources": "SourceRecord"}
WRITTEN = json.loads(Path(__file__).with_name("texts.json").read_text("utf-8"))


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
        more = message("CmdlistHead").DESCRIPTOR.fields_by_number if self.owner.name == "CmdlistResult" else {}
        return self.owner.fields_by_number.get(self.number) or more.get(self.number)

    @property
    def name(self) -> str:
        return f"{self.owner.name}.{self.about.name if self.about is not None else self.number}"

    @property
    def text(self) -> bool:
        return self.about is not None and self.inner is None and self.about.type == self.about.TYPE_BYTES

    def encode(self, padding: int = 0, length: int = -1) -> bytes:
        """As bytes; with varints that are longer than needed, or of a length that it has not."""
        tag, size = varint(self.number << 3 | self.wire, padding), varint(len(self.content), padding)
        if length >= 0:
            return varint(self.number << 3 | BYTES) + varint(length) + self.content
        if self.wire == VARINT:
            return tag + varint(read_varint(self.content, 0)[0], padding)
        return tag + (size if self.wire == BYTES else b"") + self.content


def repeated(about: Any) -> bool:
    """Whether a field may be there several times, by the word that this protobuf has for it."""
    return bool(about.is_repeated) if hasattr(about, "is_repeated") else about.label == about.LABEL_REPEATED


Change = Callable[[Field], bytes]
Order = Callable[[int], int] | None


def edited(data: bytes, owner: Any, change: Change, order: Order) -> bytes:
    """A message with ``change`` made of each field, inner ones first; in an ``order`` of their numbers."""
    found = []
    for each in split(data):
        field = Field(owner, each.number, each.wire_type, data[each.content : each.end])
        inner = field.about.message_type if field.about is not None else None
        if named := WRITTEN["inside"].get(f"{owner.name} {each.number}"):  # bytes in which the schema has a message
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
            made = [(kind, message(RECORDS[kind]).FromString(one) if kind in RECORDS else one)
                    for kind, one in zip(kinds, records, strict=True)]  # fmt: skip
            self.parts.append((header, made))

    def encode(self, change: Change | None = None, *, headers: bool = True, order: Order = None) -> bytes:
        """The report, its headers counting what there is, with ``change`` made of all fields of its messages."""

        def new(one: Any) -> bytes:
            data = one if isinstance(one, bytes) else bytes(one.SerializeToString())
            return data if change is None or one is data else edited(data, one.DESCRIPTOR, change, order)

        blocks = [file_start()]
        for header, records in self.parts:
            for name in COUNTERS:
                if (count := sum(kind == name for kind, _ in records)) or header.HasField(name):
                    setattr(header, name, count)
            payload = b"".join(frame(new(one)) for _, one in sorted(records, key=lambda record: COUNTERS.index(record[0])))
            header.payload_size = len(payload)
            # Its counters and size are the last fields, which count.
            kept = {name: getattr(header, name) for name in (*COUNTERS, "payload_size") if header.HasField(name)}
            head = new(header) + type(header)(**kept).SerializeToString() if change and headers else header.SerializeToString()
            blocks.append(frame(head) + payload)
        return b"".join(blocks)

    @property
    def results(self) -> list[Any]:
        """All results in the order in which they are numbered."""
        return [record for _, records in self.parts for kind in KINDS for name, record in records if name == kind.counter]

    def metrics(self, result: Any) -> Iterator[tuple[str, Any]]:
        """With their names; the last one of a name counts."""
        names = [name.decode("utf-8", "replace") for header, _ in self.parts for name in header.strings.strings]
        return ((names[metric.name_id], metric) for metric in result.metrics)

    def numbers(self, result: Any) -> dict[str, float]:
        """The metrics of a result that are numbers, by name."""
        kinds = ("double", "uint64", "float", "uint32")
        found = [(name, one.value, [kind for kind in kinds if one.value.HasField(kind)]) for name, one in self.metrics(result)]
        return {name: float(getattr(value, has[0])) for name, value, has in found if has}

    def put(self, result: Any, name: str, value: float | str | None) -> None:
        """Give a metric of a result this value."""
        for metric in [metric for named, metric in self.metrics(result) if named == name][-1:]:
            metric.value.Clear()
            if value is not None:
                field, value = ("text", value.encode()) if isinstance(value, str) else ("double", value)
                setattr(metric.value, field, value)


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
