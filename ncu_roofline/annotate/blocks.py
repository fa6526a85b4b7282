"""Blocks of a report put together again after their records or names have changed: the other bytes stay what they were."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ncu_roofline.annotate.wirefields import bytes_field, number_field, split
from ncu_roofline.report.framing import Block, RawFile, frame
from ncu_roofline.report.schema import KINDS, Kind

METRIC_PREFIX = b"rl__"
"""Metrics of such names are ours and nobody else's."""

OWN_IDENTIFIER = b"NcuRooflineAnnotated"
"""Sections and rule results whose identifiers begin so are ours."""

# Field numbers: of the block header, and of its table of names.
_STRINGS, _PAYLOAD_SIZE = 4, 5
_STRING = 1


def strings_of(blocks: Iterable[Block]) -> list[bytes]:
    """The table of names, which goes through all blocks."""
    return [string for block in blocks for string in block.header.strings.strings]


def names_block(blocks: Sequence[Block]) -> Block | None:
    """The last block that brings names: behind these, more get their numbers without changing those of others."""
    return next((block for block in reversed(blocks) if block.header.strings.strings), None)


def records(raw: RawFile, block: Block) -> Iterator[tuple[Kind | None, int, bytes]]:
    """(kind, None for anything but a result; offset; bytes) of each record."""
    kinds = {offset: KINDS[kind] for kind, offset, _ in block.results()}
    for offset, length in block.records:
        yield kinds.get(offset), offset, raw.data[offset : offset + length]


def packed(raw: RawFile, block: Block, changed: Sequence[bytes], change_names: Callable[[bytes], bytes] | None = None) -> bytes:
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


def more_names(table: bytes, names: Iterable[bytes]) -> bytes:
    """A table of names with more at its end."""
    return table + b"".join(bytes_field(_STRING, name) for name in names)


def without_last_names(table: bytes, prefix: bytes) -> bytes:
    """A table of names without those at its end that begin with ``prefix``."""
    end = len(table)
    for one in reversed(list(split(table))):
        if one.number != _STRING or not table[one.content : one.end].startswith(prefix):
            break
        end = one.start
    return table[:end]
