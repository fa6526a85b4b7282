"""The bytes of a report, whatever holds them (a file, a pipe, one frame of zstd), and its records in blocks.

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

Frames of zstd (RFC 8878) are `.ncu-repz`, from 2025.4 on.  ncu itself goes by the suffix of a file; here reading goes by its
first bytes, and writing by its name.  Files are not mapped: where a mapped file is cut short by somebody else, the system ends
the process that looks at what is gone.  What is wrong is one sentence with the likely cause, and what to do next.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import os
import re
import stat
import struct
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import REPORT_SUFFIXES, TEMPORARY, open_file, room
from ncu_roofline.base.texts import nearest

AnyPath = str | os.PathLike[str]
MAGIC = b"NVR\0"
FORMAT_VERSION = 7
# The largest reports known have hundreds of MB.  What is longer is refused unless it is an ordinary, plain file: a compressed
# one of a few kB may hold 100 GB, and a pipe or a device may have no end.
MOST_BYTES = 2_000_000_000
CHUNK = 1 << 20
SUFFIX = ".ncu-repz"
ZSTD = b"\x28\xb5\x2f\xfd"
_READ_AT_ONCE = 1 << 20  # most records lie side by side, and a read costs more than a slice
# Binary logarithm of the window in bytes: of the memory for looking back.  128 MB are the limit of `zstd -d`, too.
_MOST_WINDOW = 27
_LEVEL = 3  # zstd's own default
PASS_REPORT = "Pass a .ncu-rep or .ncu-repz file as written by 'ncu -o'."
FETCH_AGAIN = "Copy the file again from where it was written, or profile again."
_TRACE = "The trace of a run is read by `ncu-roofline show` and `render`."

# First bytes of files that end up under the name of a report, with what they are and what to do.
_SIGNATURES = (
    (b"version https://git-lfs.github.com/spec/", "it is a git-LFS pointer, not the report itself", "Run 'git lfs pull'."),
    (b"\x1f\x8b", "it is compressed with gzip", f"Unpack a report. {_TRACE}"),
    ((b"PK\x03\x04", b"BZh", b"\xfd7zXZ\0", b"7z\xbc\xaf"), "it is packed (zip, bzip2, xz or 7z)", "Pass the report inside."),
    (b"SQLite format 3\0", "it is an SQLite database, as Nsight Systems and nvprof write it", f"{PASS_REPORT} {_TRACE}"),
    (b"\x7fELF", "it is an executable", PASS_REPORT),
    (b'"ID","Process ID"', "it is the CSV that 'ncu --csv' printed", "Pass the .ncu-rep file that it was made from."),
)
_LOOKED_AT = 2_000  # files of a folder, for one that is like a misspelt name
_NSYS_SUFFIXES = (".nsys-rep", ".qdrep", ".qdstrm")
# Tags with which a block header can begin: its fields 1 to 10, each with its wire type.
_HEADER_TAGS = b"\x08\x10\x1a\x22\x28\x32\x38\x40\x48\x50"
_TABLE = Path(__file__).resolve().parents[2] / "data" / "report_fields.txt"
_LENGTH = struct.Struct("<I")
_HEAD = 4096  # bytes that tell what a file is
_LONGEST_FILE_HEADER = 1024  # bytes; it has been 2 in every release
# Fields 4 to 7 tell source code (bytes, then numbers) from a kernel's result (a number, then text); before them are numbers.
_SOURCE, _KERNEL = "source code", "the result of a kernel"
_TELLING = re.compile(rb"(?:[\x08\x10\x18][\x80-\xff]*[\x00-\x7f])*(?:([\x22\x28\x30\x38])|[\x20\x2a\x32\x3a])")
_TOLD = 64  # bytes of a record that hold one of these


class RawFile:
    """The bytes of a report as slices, read from ``file`` where they are asked for, and errors that name its ``path``.

    The file is closed by `close` or when nobody refers to it any more.  ``unpacked``: it was compressed, and offsets count the
    bytes inside.  Slicing raises RooflineError where the file is not as it was when this was made, or can't be read, and
    ValueError once it is closed.
    """

    def __init__(self, path: AnyPath, file: BinaryIO, *, unpacked: bool = False) -> None:
        self.path, self.unpacked = os.fspath(path), unpacked
        self._file = file
        self._state = _state(file)
        self._size = self._state[0]
        self._window = (0, b"")
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(self._size)
        stop = max(start, stop)
        first, window = self._window
        if start < first or stop > first + len(window):
            first, window = start, self._read(start, max(stop - start, min(_READ_AT_ONCE, self._size - start)))
            self._window = (first, window)
        return window[start - first : stop - first]

    def _read(self, start: int, size: int) -> bytes:
        if self._file.closed:
            raise ValueError(f"the report {self.path} is closed: read it before, or open it again")
        try:
            with self._lock:
                self._file.seek(start)
                data = self._file.read(size)
                state = _state(self._file)
        except OSError as error:
            raise cannot_open(self.path, error) from error
        if len(data) < size or state != self._state:
            raise changed(self.path)
        return data

    def close(self) -> None:
        """Give the file back; the bytes are gone then."""
        self._window = (0, b"")
        self._file.close()

    __del__ = close

    def parse(self, name: str, offset: int, length: int) -> Any:
        """The ``length`` bytes at ``offset`` as the message ``name`` of the schema.  Raises RooflineError."""
        return self.decode(name, self[offset : offset + length], offset)

    def decode(self, name: str, data: bytes, offset: int) -> Any:
        """``data``, which came from ``offset``, as the message ``name`` of the schema.  Raises RooflineError."""
        form = message(name)
        try:
            return form.FromString(data)
        except MemoryError:
            raise
        except Exception as error:  # the kind depends on protobuf's version and implementation
            raise self.damaged(offset, f"{name} does not parse ({error or type(error).__name__})") from error

    def damaged(self, offset: int, cause: str) -> RooflineError:
        """The error for bytes at ``offset`` that make no sense."""
        return self.broken(f"it is damaged at byte {offset}: {cause}")

    def broken(self, reason: str) -> RooflineError:
        """The error for a reason that names offsets, with what they count."""
        return cannot_read(self.path, f"{reason} (bytes of the unpacked file)" if self.unpacked else reason, FETCH_AGAIN)


def _state(file: BinaryIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def copied(chunks: Iterable[bytes]) -> BinaryIO:
    """The ``chunks`` in a nameless temporary file.  Raises RooflineError where there is no room for it."""
    with room(), ExitStack() as stack:
        target = stack.enter_context(tempfile.TemporaryFile(prefix=TEMPORARY))
        target.writelines(chunks)
        target.flush()
        stack.pop_all()  # stays open
        return target


def bounded(path: AnyPath, head: bytes, file: BinaryIO) -> Iterator[bytes]:
    """``head`` and all that follows in ``file``.  Raises RooflineError if that is more than `MOST_BYTES`, or can't be read."""
    size, chunk = 0, head
    while chunk:
        size += len(chunk)
        if size > MOST_BYTES:
            raise _too_long(path)
        yield chunk
        try:
            chunk = file.read(CHUNK)
        except OSError as error:
            raise cannot_open(path, error) from error


def _too_long(path: AnyPath) -> RooflineError:
    limit = f"{MOST_BYTES / 1e9:g} GB"
    reason = f"it has more than {limit}, and what is compressed or comes through a pipe is read up to {limit}"
    return cannot_read(path, reason, "Write it to a file, unpacked by `zstd -d` if it is compressed, and pass that.")


def is_compressed(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is zstd: a frame, or one that its readers skip (RFC 8878)."""
    return head.startswith(ZSTD) or (head[1:4] == b"*M\x18" and 0x50 <= head[0] <= 0x5F)


def _inside(path: AnyPath, file: BinaryIO) -> Iterator[bytes]:
    """What the frames of ``file`` hold, in chunks of bounded size; a window takes 128 MB of memory at most, whatever they say.

    Raises RooflineError if that is no report or too large, or can't be unpacked.
    """
    zstd = _zstd("Cannot read", path)
    file.seek(0)
    try:
        with zstd.ZstdFile(file, options={zstd.DecompressionParameter.window_log_max: _MOST_WINDOW}) as frames:
            head = frames.read(len(MAGIC))
            if not head or not MAGIC.startswith(head):
                reason = "it is compressed with zstd, and what is inside is no Nsight Compute report"
                raise cannot_read(path, reason, PASS_REPORT)
            yield from bounded(path, head, frames)
    except EOFError as error:
        raise cannot_read(path, "it is cut off: its zstd frame goes on", FETCH_AGAIN) from error
    except zstd.ZstdError as error:
        reason = f"its zstd frame is damaged, or none that ncu writes ({str(error).rpartition(': ')[2]})"
        raise cannot_read(path, reason, FETCH_AGAIN) from error


def as_named(path: AnyPath, chunks: Iterable[bytes]) -> Iterable[bytes]:
    """The ``chunks`` of a report as the file ``path`` is to hold them: in a frame for .ncu-repz, in capitals or not."""
    if not os.fspath(path).lower().endswith(SUFFIX):
        yield from chunks
        return
    zstd = _zstd("Cannot write", path)
    parameter = zstd.CompressionParameter
    compressor = zstd.ZstdCompressor(options={parameter.compression_level: _LEVEL, parameter.checksum_flag: 1})
    for chunk in chunks:
        yield compressor.compress(chunk)
    yield compressor.flush()


def _zstd(what: str, path: AnyPath) -> Any:
    """Python's zstd module: part of Python from 3.14 on.  Only .ncu-repz files need it."""
    try:
        return importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    except ImportError as error:
        reason = f"Python's zstd module can't be loaded ({error})"
        next_step = "Run `pip install backports.zstd`, or unpack the file by hand: `zstd -d`."
        raise RooflineError(what, path, reason, next_step) from error


def cannot_read(path: AnyPath, reason: str, next_step: str) -> RooflineError:
    """The error that every failure to read a report ends in."""
    return RooflineError("Cannot read", path, reason, next_step)


def cannot_open(path: AnyPath, error: OSError | ValueError) -> RooflineError:
    """Why the operating system does not give us the file."""
    if isinstance(error, FileNotFoundError):
        folder, name = os.path.split(os.fspath(path))
        names = list[str]()
        with suppress(OSError, ValueError), os.scandir(folder or ".") as found:
            names = [entry.name for entry in itertools.islice(found, _LOOKED_AT) if entry.is_file()]
        names.sort(key=lambda name: (name.endswith(REPORT_SUFFIXES), name))  # of files with one stem the report is meant
        by_stem = {os.path.splitext(name)[0]: name for name in names}
        near = nearest(name if name in by_stem else os.path.splitext(name)[0], by_stem)
        meant = f"; did you mean {os.path.join(folder, by_stem[near])}?" if near else "."
        return cannot_read(path, "there is no such file", f"Check the path{meant}")
    if isinstance(error, IsADirectoryError):
        return cannot_read(path, "it is a folder", PASS_REPORT)
    if isinstance(error, PermissionError):
        return cannot_read(path, "permission denied", "Check who may read it: what ncu wrote under sudo belongs to root.")
    return cannot_read(path, getattr(error, "strerror", None) or str(error), "Check the path.")


def not_a_report(path: AnyPath, head: bytes, size: int, *, piped: bool = False) -> RooflineError:
    """What a file is whose first bytes (``head``) are not those of a report; ``piped``: it came through a pipe."""
    if size == 0:
        return cannot_read(path, "the file is empty", "Profile again: ncu writes the report when the application ends.")
    if MAGIC.startswith(head[: len(MAGIC)]):
        return cannot_read(path, f"it is cut off after {size} bytes, before anything that was profiled", FETCH_AGAIN)
    for signature, reason, next_step in _SIGNATURES:
        if head.startswith(signature):
            return cannot_read(path, reason, next_step)
    if str(path).endswith(_NSYS_SUFFIXES):
        return cannot_read(path, "it is a report of Nsight Systems, not of Nsight Compute", PASS_REPORT)
    if head.lstrip().lower().startswith((b"<!doctype html", b"<html")):
        return cannot_read(path, "it is a web page", "Download the raw file instead of the page that shows it.")
    decoded = head.decode("utf-8", "surrogateescape").rstrip("".join(map(chr, range(0xDC80, 0xDD00))))  # a letter cut in two
    if all(c.isprintable() or c in "\t\r\n\f" for c in decoded):
        next_step = "Write it to a file and pass that: of what comes through a pipe only reports are read."
        return cannot_read(path, "it is a text file, not an Nsight Compute report", next_step if piped else PASS_REPORT)
    beginning = f"the letters {MAGIC[:3].decode()} and a zero byte"
    return cannot_read(path, f"it does not begin with {beginning}, as every Nsight Compute report does", PASS_REPORT)


def changed(path: AnyPath) -> RooflineError:
    """A file that somebody wrote to, or cut short, since it was opened."""
    return cannot_read(path, "it changed while it was read", "Wait until nothing writes to it, then run the command again.")


def check_content(what: str, path: AnyPath, launches: int, metrics: int) -> None:
    """Raise RooflineError, beginning with ``what``, for a report with so few that nothing could be drawn or said."""
    if not launches:
        next_step = "Profile again, and check that ncu's filters let some kernel pass."
        raise RooflineError(what, path, "it holds no profiled kernel", next_step)
    if not metrics:
        next_step = "Profile again with metrics, for instance with `ncu --set full`."
        raise RooflineError(what, path, "its kernels carry no metrics", next_step)


class Kind(NamedTuple):
    """A kind of profiled result, and its counter in the block header."""

    name: str
    counter: str

    def view(self, view: str) -> str:
        """The message through which records of this kind are seen: Head, Body, NameIds, Metrics or, as a whole, Result."""
        return f"{self.name.capitalize()}{view}"


# In the order in which their records follow each other in a block.
KINDS = (Kind("kernel", "kernels"), Kind("range", "ranges"), Kind("cmdlist", "cmdlists"), Kind("graph", "graph_results"))
_COUNTERS = ("sources", "graphs", *(kind.counter for kind in KINDS))


@functools.cache
def messages() -> dict[str, Any]:
    """The classes of all messages by name."""
    from ncu_roofline.formats.wire import build_messages, read_schema

    return build_messages("ncu_roofline.formats.report", read_schema(_TABLE.read_text("utf-8")))


@functools.cache
def message(name: str) -> Any:
    """The class of the message ``name``."""
    return messages()[name]


def text(data: bytes) -> str:
    """Text of a report: without the NUL that Windows appends, and with a mark in place of what is not UTF-8."""
    return data.rstrip(b"\0").decode("utf-8", "replace")


def stated(said: Any) -> dict[str, Any]:
    """The numbers and texts that a message states, by the names of its fields; those that repeat are left out."""
    single = ((field.name, value) for field, value in said.ListFields() if isinstance(value, (bytes, int, float)))
    return {name: text(value) if isinstance(value, bytes) else value for name, value in single}


def made(name: str, /, **fields: Any) -> Any:
    """The message ``name`` of the schema with these fields, texts as UTF-8; what is None is not stated."""
    given = {key: value.encode() if isinstance(value, str) else value for key, value in fields.items() if value is not None}
    return message(name)(**given)


class Block(NamedTuple):
    """One block: byte offsets from the start of the file, and how many records of which sort it has.

    ``records`` has (offset, length) of each record's message; ``counts`` goes with it, in the order of the format: sources,
    graphs, then one number for each of `KINDS`.
    """

    start: int
    payload: int
    end: int
    records: tuple[tuple[int, int], ...]
    counts: tuple[int, ...]
    header: Any

    def results(self) -> Iterator[tuple[Kind, int, int]]:
        """(kind, offset, length) of each result."""
        places = iter(self.records[self.counts[0] + self.counts[1] :])
        for kind, count in zip(KINDS, self.counts[2:], strict=True):
            for offset, length in itertools.islice(places, count):
                yield kind, offset, length


def open_raw(path: AnyPath) -> RawFile:
    """The bytes of the report ``path``, unpacked; what comes through a pipe is copied.  Raises RooflineError."""
    try:
        with ExitStack() as done:
            file: BinaryIO = done.enter_context(open_file(path))
            status = os.fstat(file.fileno())
            ordinary = stat.S_ISREG(status.st_mode) and status.st_size > 0
            head = file.read(_HEAD)
            packed = is_compressed(head)
            if not ordinary:  # it may have no end, so only what begins as a report is read on
                if not packed and not head.startswith(MAGIC):
                    raise not_a_report(path, head, len(head), piped=True)
                file = copied(bounded(path, head, file))
            if packed and status.st_size > MOST_BYTES:  # a frame without end need not hold a byte
                raise _too_long(path)
            if packed:
                file = copied(_inside(path, done.enter_context(file)))
            elif ordinary:
                done.pop_all()  # stays open
            return RawFile(path, file, unpacked=packed)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise cannot_open(path, error) from error


def check_file_header(raw: RawFile) -> int:
    """The offset of the first block.  Raises RooflineError if the file is no report of the known format version."""
    head, size = raw[:_HEAD], len(raw)
    if not head.startswith(MAGIC) or len(head) < len(MAGIC) + 4:
        raise not_a_report(raw.path, head, size)
    offset = len(MAGIC) + 4
    length: int = _LENGTH.unpack_from(head, len(MAGIC))[0]
    if length > _LONGEST_FILE_HEADER:
        raise raw.damaged(len(MAGIC), f"a file header of {length} bytes")
    if offset + length >= size:
        raise not_a_report(raw.path, MAGIC, size)
    version = raw.parse("FileHeader", offset, length).version
    if version != FORMAT_VERSION:
        reason = f"its format version is {version}, this program knows version {FORMAT_VERSION}"
        raise cannot_read(raw.path, reason, "Update ncu-roofline; or copy the file again, if it is damaged.")
    return offset + length


def scan(raw: RawFile) -> Iterator[Block]:
    """All blocks of the file.  Raises RooflineError where the file is not complete to its last byte."""
    start, whole = check_file_header(raw), 0
    while start < len(raw):
        block = _block_at(raw, start, whole)
        yield block
        whole += sum(block.counts[2:])
        start = block.end


def _block_at(raw: RawFile, start: int, whole: int) -> Block:
    """The block at an offset, behind ``whole`` complete results.

    Raises RooflineError where there is none: the file is cut off, followed by something else, or damaged.
    """
    size = len(raw)
    begun = raw[start : start + 5]
    length = _LENGTH.unpack(begun[:4])[0] if len(begun) >= 4 else 0
    payload = start + 4 + length

    def broken(end: int, more: int = 0) -> RooflineError:
        """The error where the block says that it ends at ``end``, behind ``more`` whole results."""
        if begun.startswith(MAGIC):
            joined = f"a second report begins at byte {start}: two files were joined"
            return cannot_read(raw.path, joined, "Pass the reports as separate files.")
        before = f"{whole + more} whole kernel{'' if whole + more == 1 else 's'} before it"
        if end > size and begun[4:5] in _HEADER_TAGS and begun[:4] not in (b"", bytes(4)):
            return raw.broken(f"it is cut off at byte {size}, in the block at byte {start} ({before})")
        return raw.damaged(start, f"what follows is no whole block of a report ({before})")

    if length == 0 or payload > size:  # a header is never empty: zeros behind the last block are none
        raise broken(max(payload, start + 5))
    data = raw[start + 4 : payload]
    try:
        header = raw.decode("BlockHeader", data, start)
    except RooflineError as error:
        raise broken(0) from error
    counts = tuple([getattr(header, counter) for counter in _COUNTERS])
    end, counted, position = payload + header.payload_size, sum(counts), payload
    records: list[tuple[int, int]] = []
    last = min(end, size)
    while len(records) < counted and position + 4 <= last:
        length = _LENGTH.unpack(raw[position : position + 4])[0]
        if position + 4 + length > last:
            break
        records.append((position + 4, length))
        position += 4 + length
    if len(records) < counted or position != end:
        raise broken(end, max(len(records) - counts[0] - counts[1], 0))
    # The last source and the first kernel of a block may be counted as the wrong sort.
    for at, sort in ((counts[0] - 1, _SOURCE), (counts[0] + counts[1], _KERNEL)):
        if counts[0 if sort == _SOURCE else 2]:
            offset, length = records[at]
            found = _TELLING.match(raw[offset : offset + min(length, _TOLD)])
            other = _SOURCE if found and found[1] else _KERNEL
            if found and other != sort:
                cause = f"the header of its block counts the record there as {sort}, and its fields are of {other}"
                raise raw.damaged(offset, cause)
    return Block(start, payload, end, tuple(records), counts, header)


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
