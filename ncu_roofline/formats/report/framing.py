"""The frame of a report: length-prefixed records in blocks, found without decoding the records themselves.

    file    = MAGIC, record(FileHeader), block ... to the end of the file
    record  = little-endian uint32 length, then one message of that length
    block   = record(BlockHeader), then its records back to back: sources, graphs, results by kind

`scan` visits every length of the file, so that a file that passes is complete; it reads no payload.

The messages are those of `data/report_fields.txt`, as far as this package reads and writes them.  One record is looked at
through several messages, each naming only what its reader needs: what a message does not name is skipped by protobuf at the
speed of memory.  Three of them use that protobuf merges what occurs repeatedly: `NameIds` declares the repeated metric results
as *one* message, which collects all name ids into one list, and `Column` does so for the values of one metric in many kernels,
each serialized on its own and simply joined, `MetricInstances` for the instances of one metric.  The type of a rule's message
is repeated, as `encode_rule` writes two.
"""

from __future__ import annotations

import functools
import os
import re
import stat
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import open_file
from ncu_roofline.formats.report import opening
from ncu_roofline.formats.report.opening import FORMAT_VERSION, MAGIC, FileBytes

_TABLE = Path(__file__).resolve().parents[2] / "data" / "report_fields.txt"

# What the pure Python protobuf raises for damaged bytes, besides DecodeError; the C++ one of 3.20 warns about some of them,
# and fails with a SystemError where warnings are errors.
_DAMAGE = (IndexError, ValueError, RecursionError, struct.error, TypeError, RuntimeWarning, SystemError)
_LENGTH = struct.Struct("<I")
_HEAD = 4096  # bytes that tell what a file is
_LONGEST_FILE_HEADER = 1024  # bytes; it has been 2 in every release
# Fields 4 to 7 tell source code (bytes, then numbers) from a kernel's result (a number, then text); before them are numbers.
_SOURCE, _KERNEL = "source code", "the result of a kernel"
_TELLING = re.compile(rb"(?:[\x08\x10\x18][\x80-\xff]*[\x00-\x7f])*(?:([\x22\x28\x30\x38])|[\x20\x2a\x32\x3a])")
_TOLD = 64  # bytes of a record that hold one of these


class Kind(NamedTuple):
    """A kind of profiled result: its counter in the block header and the messages through which its records are seen.

    Fields ending in ``_message`` are names of messages.
    """

    name: str
    counter: str
    head_message: str
    body_message: str
    ids_message: str
    metrics_message: str
    result_message: str


# In the order in which their records follow each other in a block.
KINDS = (
    Kind("kernel", "kernels", "KernelHead", "KernelBody", "KernelNameIds", "KernelMetrics", "KernelResult"),
    Kind("range", "ranges", "RangeHead", "OtherBody", "OtherNameIds", "OtherMetrics", "RangeResult"),
    Kind("cmdlist", "cmdlists", "CmdlistHead", "CmdlistBody", "OtherNameIds", "OtherMetrics", "CmdlistResult"),
    Kind("graph", "graph_results", "GraphHead", "OtherBody", "OtherNameIds", "OtherMetrics", "GraphResult"),
)
_COUNTERS = ("sources", "graphs", *(kind.counter for kind in KINDS))


@functools.cache
def message(name: str) -> Any:
    """The class of the message ``name``."""
    return messages()[name]


@functools.cache
def messages() -> dict[str, Any]:
    """The classes of all messages by name."""
    from ncu_roofline.formats.wire import build_messages

    return build_messages("ncu_roofline.formats.report", _TABLE.read_text("utf-8"))


@functools.cache
def damage_errors() -> tuple[type[Exception], ...]:
    """What parsing damaged bytes can raise."""
    from google.protobuf.message import DecodeError

    return (DecodeError, *_DAMAGE)


def text(data: bytes) -> str:
    """Text of a report: without the NUL that Windows appends, and with a mark in place of what is not UTF-8."""
    return data.rstrip(b"\0").decode("utf-8", "replace")


@dataclass(frozen=True)
class RawFile:
    """The bytes of a report, read from its file where they are asked for, and errors that name it.

    ``unpacked``: the file is compressed, and offsets count the bytes inside.
    """

    path: str
    data: FileBytes
    unpacked: bool = False

    def close(self) -> None:
        """Give the file back; the bytes are gone then."""
        self.data.close()

    def parse(self, name: str, offset: int, length: int) -> Any:
        """The ``length`` bytes at ``offset`` as the message ``name`` of the schema.  Raises RooflineError."""
        return self.decode(name, self.data[offset : offset + length], offset)

    def decode(self, name: str, data: bytes, offset: int) -> Any:
        """``data``, which came from ``offset``, as the message ``name`` of the schema.  Raises RooflineError."""
        try:
            return message(name).FromString(data)
        except damage_errors() as error:
            raise self.damaged(offset, f"{name} does not parse ({error or type(error).__name__})") from error

    def damaged(self, offset: int, cause: str) -> RooflineError:
        """The error for bytes at ``offset`` that make no sense."""
        return self.told(opening.damaged(self.path, offset, cause))

    def told(self, error: RooflineError) -> RooflineError:
        """An error that names offsets, with what they count."""
        if not self.unpacked:
            return error
        return type(error)(error.what, error.path, f"{error.reason} (bytes of the unpacked file)", error.next_step)


class Block(NamedTuple):
    """One block: byte offsets from the start of the file, and how many records of which sort it has.

    ``records`` has (offset, length) of each record's message; ``counts`` goes with it, in the order of the format: sources,
    graphs, then one number for each of `schema.KINDS`.
    """

    start: int
    payload: int
    end: int
    records: tuple[tuple[int, int], ...]
    counts: tuple[int, ...]
    header: Any

    def results(self) -> Iterator[tuple[int, int, int]]:
        """(index into KINDS, offset, length) of each result."""
        position = self.counts[0] + self.counts[1]
        for kind, count in enumerate(self.counts[2:]):
            if not count:
                continue
            for offset, length in self.records[position : position + count]:
                yield kind, offset, length
            position += count


def open_raw(path: str | os.PathLike[str]) -> RawFile:
    """The bytes of the report ``path``, unpacked; what comes through a pipe is copied.  Raises RooflineError."""
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open_file(path))
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
                return _from_stream(os.fspath(path), file)
            if opening.is_compressed(file.read(len(opening.ZSTD))):
                file.seek(0)
                return RawFile(os.fspath(path), opening.unpacked(path, file), unpacked=True)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise opening.cannot_open(path, error) from error
        stack.pop_all()  # stays open
        return RawFile(os.fspath(path), FileBytes(path, file))


def _from_stream(path: str, file: BinaryIO) -> RawFile:
    """What a pipe gives; it may have no end, so only what begins as a report is read on."""
    head = file.read(_HEAD)
    if opening.is_compressed(head):
        return RawFile(path, opening.unpacked(path, file, head), unpacked=True)
    if not head.startswith(MAGIC):
        raise opening.not_a_report(path, head, len(head), piped=True)
    return RawFile(path, opening.copied(path, opening.bounded(path, head, file)))


def check_file_header(raw: RawFile) -> int:
    """The offset of the first block.  Raises RooflineError if the file is no report of the known format version."""
    head = raw.data[:_HEAD]
    if not head.startswith(MAGIC) or len(head) < len(MAGIC) + 4:
        raise opening.not_a_report(raw.path, head, len(raw.data))
    offset = len(MAGIC) + 4
    length: int = _LENGTH.unpack_from(head, len(MAGIC))[0]
    if length > _LONGEST_FILE_HEADER:
        raise raw.damaged(len(MAGIC), f"a file header of {length} bytes")
    if offset + length >= len(raw.data):
        raise opening.cut_off_at_start(raw.path, len(raw.data))
    header = raw.parse("FileHeader", offset, length)
    if header.version != FORMAT_VERSION:
        raise opening.bad_version(raw.path, header.version)
    return offset + length


def scan(raw: RawFile) -> Iterator[Block]:
    """All blocks of the file.  Raises RooflineError where the file is not complete to its last byte."""
    start = check_file_header(raw)
    whole = 0
    while start < len(raw.data):
        block = _block(raw, start, whole)
        yield block
        whole += sum(block.counts[2:])
        start = block.end


def block_at(raw: RawFile, start: int) -> Block:
    """The block at an offset that `scan` has found.  Raises RooflineError if it can't be read any more."""
    return _block(raw, start, 0)


def _block(raw: RawFile, start: int, whole: int) -> Block:
    data, size = raw.data, len(raw.data)
    begun = data[start : start + 5]
    length = _LENGTH.unpack(begun[:4])[0] if len(begun) >= 4 else 0
    payload = start + 4 + length

    def broken(end: int, reason: str, more: int = 0) -> RooflineError:
        return raw.told(opening.broken_block(raw.path, size, start, begun, end, reason, whole + more))

    if length == 0 or payload > size:  # a header is never empty: zeros behind the last block are none
        raise broken(max(payload, start + 5), "what follows is no block of a report")
    try:
        header = message("BlockHeader").FromString(data[start + 4 : payload])
    except damage_errors() as error:
        raise broken(0, "what follows is no block of a report") from error
    counts = tuple([getattr(header, counter) for counter in _COUNTERS])
    end, counted = payload + header.payload_size, sum(counts)
    records, position = _records(data, payload, min(end, size), counted)
    if len(records) < counted or position != end:
        reason = (
            f"its block says that it holds {counted} records in {header.payload_size} bytes, but {len(records)} of them take "
        )
        whole_ones = max(len(records) - counts[0] - counts[1], 0)
        raise broken(end, f"{reason}{position - payload}", whole_ones)
    if counts[0]:
        _check(raw, records[counts[0] - 1], _SOURCE)
    if counts[2]:
        _check(raw, records[counts[0] + counts[1]], _KERNEL)
    return Block(start, payload, end, records, counts, header)


def _check(raw: RawFile, record: tuple[int, int], counted: str) -> None:
    """Raise RooflineError for a record, the last or the first of its sort in a block, that is counted as the wrong one."""
    offset, length = record
    found = _TELLING.match(raw.data[offset : offset + min(length, _TOLD)])
    if found and counted != (_SOURCE if found[1] else _KERNEL):
        other = _SOURCE if counted == _KERNEL else _KERNEL
        raise raw.damaged(
            offset, f"the header of its block counts the record there as {counted}, and its fields are of {other}"
        )


def _records(data: FileBytes, position: int, end: int, count: int) -> tuple[tuple[tuple[int, int], ...], int]:
    """(offset, length) of up to ``count`` records that lie whole between ``position`` and ``end``, and where the last ends."""
    records: list[tuple[int, int]] = []
    while len(records) < count and position + 4 <= end:
        length = _LENGTH.unpack(data[position : position + 4])[0]
        if position + 4 + length > end:
            break
        records.append((position + 4, length))
        position += 4 + length
    return tuple(records), position


def frame(data: bytes) -> bytes:
    """``data`` as a record: with its length in front."""
    return _LENGTH.pack(len(data)) + data


def file_start() -> bytes:
    """What every report begins with."""
    return MAGIC + frame(message("FileHeader")(version=FORMAT_VERSION).SerializeToString())


def pack_block(header: Any, records: list[bytes]) -> bytes:
    """A block of serialized ``records``; ``header`` is a BlockHeader that counts them, its payload size is set here."""
    payload = b"".join(map(frame, records))
    header.payload_size = len(payload)
    return frame(header.SerializeToString()) + payload
