"""Attacks on the wire: fields that are something else than the schema says, and others that say the same in another way."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence

from ncu_roofline.formats.report.framing import file_start, frame
from tests.attack.document import Document, Part, bytes_of
from tests.attack.fields import EDGES, FIXED32, FIXED64, RAW, TEXT, VARINT, Field, Site, encode, repeated, sites, tree, varint
from tests.attack.texts import HOSTILE

DOUBLES = (0.0, -0.0, -1.0, 5e-324, 1e308, -1e308, float("nan"), float("inf"), -float("inf"))


def choose(rng: random.Random, found: Sequence[Site]) -> Site:
    """A place: first a field by what it is, so that few fields of a sort are met as often as many."""
    kinds = sorted({(site.message, site.field.number) for site in found})
    kind = rng.choice(kinds)
    return rng.choice([site for site in found if (site.message, site.field.number) == kind])


# What is done to one field; each gives words for it.
def drop(site: Site, _: random.Random) -> str:
    del site.fields[site.index]
    return "left out"


def double(site: Site, rng: random.Random) -> str:
    count = rng.choice((1, 1, 2, 300))
    site.fields[site.index : site.index] = [site.field.copy() for _ in range(count)]
    return f"{count + 1} times"


def swap(site: Site, rng: random.Random) -> str:
    numbers = {field.number for field in site.fields}
    others = [index for index, field in enumerate(site.fields) if len(numbers) == 1 or field.number != site.field.number]
    other = rng.choice(others)
    site.field.number, site.fields[other].number = site.fields[other].number, site.field.number
    return f"swapped with its neighbour {other}"


def renumber(site: Site, rng: random.Random) -> str:
    site.field.number = rng.randrange(1, 30)
    return f"called field {site.field.number}"


def rewire(site: Site, rng: random.Random) -> str:
    wire = rng.choice([each for each in (VARINT, FIXED64, TEXT, FIXED32, 3, 4, 6, 7) if each != site.field.wire])
    body = bytes([rng.randrange(128)]) + rng.randbytes(8)
    data = {VARINT: body[:1], FIXED64: body[:8], FIXED32: body[:4], TEXT: b"\4" + body[:4]}.get(wire, b"")
    site.fields[site.index] = Field(site.field.number, RAW, varint(site.field.number << 3 | wire) + data)
    return f"of wire type {wire}"


def lie(site: Site, rng: random.Random) -> str:
    data = encode([site.field])
    length = max(len(data) + rng.choice((-3, -1, 1, 2, 1000)), 0) if rng.random() < 0.7 else rng.choice(EDGES)
    site.fields[site.index] = Field(site.field.number, RAW, varint(site.field.number << 3 | TEXT) + varint(length) + data)
    return f"{length} bytes long, it says"


def number(site: Site, rng: random.Random) -> str:
    field = site.field
    if field.wire == FIXED64:
        value = rng.choice(DOUBLES)
        field.value = struct.pack("<d", value)
        return f"the number {value}"
    if field.wire == FIXED32:
        value = rng.choice((0.0, -1.0, 3.4e38, float("nan"), float("inf")))
        field.value = struct.pack("<f", value)
        return f"the number {value}"
    field.wire, field.value = VARINT, rng.choice(EDGES)
    return f"the number {field.value}"


def text(site: Site, rng: random.Random) -> str:
    name, said = rng.choice(list(HOSTILE.items()))
    site.field.wire, site.field.value = TEXT, said.encode("utf-8", "replace")
    return f"a text: {name}"


def noise(site: Site, rng: random.Random) -> str:
    site.field.wire, site.field.value = TEXT, rng.randbytes(rng.choice((0, 1, 7, 60)))
    return "noise"


def nest(site: Site, rng: random.Random) -> str:
    depth = rng.choice((3, 90, 300))
    data = encode([site.field])
    for _ in range(depth):
        data = varint(site.field.number << 3 | TEXT) + varint(len(data)) + data
    site.fields[site.index] = Field(site.field.number, RAW, data)
    return f"inside itself {depth} times"


def move(site: Site, rng: random.Random) -> str:
    field = site.fields.pop(site.index)
    messages = [each.value for each in site.fields if isinstance(each.value, list)]
    target = rng.choice(messages) if messages else site.fields
    target.insert(rng.randrange(len(target) + 1), field)
    return "moved into a neighbour"


CHANGES: tuple[Callable[[Site, random.Random], str], ...] = (
    drop, double, swap, renumber, rewire, lie, number, number, text, text, noise, nest, move,
)  # fmt: skip


def damaged(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """A report some of whose fields are something else, and what."""
    document, said = Document.of(data), []
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        part = rng.choice(document.parts)
        places = [index for index, (_, record) in enumerate(part.records) if not isinstance(record, bytes)]
        if places and rng.random() < 0.8:
            index = rng.choice(places)
            counter, record = part.records[index]
            fields, where = tree(record), counter
        else:
            index, fields, where = -1, tree(part.header), "header"
        if not fields:
            continue
        site = choose(rng, list(sites(where, fields)))
        named = site.field.about.name if site.field.about is not None else site.field.number
        said.append(f"{site.message}.{named} {rng.choice(CHANGES)(site, rng)}")
        if index >= 0:
            part.records[index] = (counter, encode(fields))
        else:
            return _with_header(document, document.parts.index(part), encode(fields)), "; ".join(said)
    return document.encode(), "; ".join(said)


def _with_header(document: Document, place: int, header: bytes) -> bytes:
    """The report with the header of one block as given: its counters and size are the last fields, which count."""
    blocks = []
    for index, part in enumerate(document.parts):
        whole = part.encode()
        if index == place:
            payload = b"".join(frame(bytes_of(record)) for _, record in part.records)
            sizes = Part(type(part.header)(), part.records).encode()
            sizes = sizes[4 : 4 + int.from_bytes(sizes[:4], "little")]
            whole = frame(header + sizes) + payload
        blocks.append(whole)
    return file_start() + b"".join(blocks)


# What says the same in another way.
def unknown_fields(fields: list[Field], rng: random.Random) -> None:
    """Fields of later releases."""
    for site in [site for site in sites("", fields) if isinstance(site.field.value, list)]:
        if rng.random() < 0.3:
            site.field.value.append(_later(rng))
    fields.insert(0, _later(rng))


def _later(rng: random.Random) -> Field:
    return rng.choice((Field(1000, VARINT, 7), Field(1001, TEXT, b"new"), Field(1002, FIXED64, bytes(8))))


def reordered(fields: list[Field], rng: random.Random) -> None:
    """Fields of another number change places; those of one number keep their order, which counts."""
    numbers = sorted({field.number for field in fields})
    rng.shuffle(numbers)
    fields.sort(key=lambda field: numbers.index(field.number))
    for field in fields:
        if isinstance(field.value, list):
            reordered(field.value, rng)


def padded(fields: list[Field], rng: random.Random) -> None:
    """Numbers and lengths take more bytes than they need."""
    for site in sites("", fields):
        if rng.random() < 0.3 and site.field.about is not None:
            site.field.padding = 1


def said_twice(fields: list[Field], rng: random.Random) -> None:
    """What is there once at most is there twice, first with another value: the last one counts."""
    for site in reversed(list(sites("", fields))):
        field = site.field
        if field.about is None or repeated(field.about) or isinstance(field.value, list) or rng.random() < 0.8:
            continue
        first = field.copy()
        first.value = 3 if isinstance(field.value, int) else bytes(len(field.value))
        site.fields.insert(site.index, first)


def in_parts(fields: list[Field], rng: random.Random) -> None:
    """A message that is there once at most comes in two parts, which are one."""
    for site in reversed(list(sites("", fields))):
        field = site.field
        if field.about is None or repeated(field.about) or not isinstance(field.value, list) or len(field.value) < 2:
            continue
        half = field.copy()
        cut = rng.randrange(1, len(field.value))
        half.value, field.value = field.value[:cut], field.value[cut:]
        site.fields.insert(site.index, half)


REWRITINGS = {
    "fields of later releases": unknown_fields,
    "fields in another order": reordered,
    "longer varints": padded,
    "fields said twice": said_twice,
    "messages in parts": in_parts,
}


def rewritten(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """A report that says the same, and how it is written."""
    name = rng.choice(list(REWRITINGS))
    document = Document.of(data)
    for part in document.parts:
        for index, (counter, record) in enumerate(part.records):
            if not isinstance(record, bytes) and rng.random() < 0.9:
                fields = tree(record)
                REWRITINGS[name](fields, rng)
                part.records[index] = (counter, encode(fields))
    return document.encode(), name
