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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import REPORT_SUFFIXES, open_file
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
_UNPACK = "Unpack it and pass the .ncu-rep file inside."

# First bytes of files that end up under the name of a report, with what they are and what to do.
_SIGNATURES = (
    (b"version https://git-lfs.github.com/spec/", "it is a git-LFS pointer, not the report itself", "Run 'git lfs pull'."),
    (b"\x1f\x8b", "it is compressed with gzip", f"Unpack a report. {_TRACE}"),
    (b"PK\x03\x04", "it is a zip archive", _UNPACK),
    (b"BZh", "it is compressed with bzip2", _UNPACK),
    (b"\xfd7zXZ\0", "it is compressed with xz", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "it is a 7z archive", _UNPACK),
    (b"SQLite format 3\0", "it is an SQLite database, as Nsight Systems and nvprof write it", f"{PASS_REPORT} {_TRACE}"),
    (b"\x7fELF", "it is an executable", PASS_REPORT),
    (b'"ID","Process ID"', "it is the CSV that 'ncu --csv' printed", "Pass the .ncu-rep file that it was made from."),
)
_SKIPPABLE = b"\x2a\x4d\x18"  # behind a first byte of 0x50 to 0x5f
_LOOKED_AT = 2_000  # files of a folder, for one that is like a misspelt name
_NSYS_SUFFIXES = (".nsys-rep", ".qdrep", ".qdstrm")
# Tags with which a block header can begin: its fields 1 to 10, each with its wire type.
_HEADER_TAGS = b"\x08\x10\x1a\x22\x28\x32\x38\x40\x48\x50"
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


class FileBytes:
    """Slices of ``file``, called ``path`` in errors, which is closed by `close` or when nobody refers to them any more.

    Slicing raises RooflineError where the file is not as it was when this was made, or can't be read, and ValueError once it
    is closed.
    """

    def __init__(self, path: AnyPath, file: BinaryIO) -> None:
        self._path, self._file = path, file
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
            raise ValueError(f"the report {self._path} is closed: read it before, or open it again")
        try:
            with self._lock:
                self._file.seek(start)
                data = self._file.read(size)
                state = _state(self._file)
        except OSError as error:
            raise cannot_open(self._path, error) from error
        if len(data) < size or state != self._state:
            raise changed(self._path)
        return data

    def close(self) -> None:
        """Give the file back."""
        self._window = (0, b"")
        self._file.close()

    __del__ = close


def _state(file: BinaryIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def copied(path: AnyPath, chunks: Iterable[bytes], how: str = "read into") -> FileBytes:
    """The ``chunks`` in a nameless temporary file.

    ``how`` says in an error what could not be done.  Raises RooflineError, which calls the file ``path``.
    """
    try:
        with ExitStack() as stack:
            target = stack.enter_context(tempfile.TemporaryFile(prefix="ncu-roofline-"))
            target.writelines(chunks)
            target.flush()
            stack.pop_all()  # stays open
            return FileBytes(path, target)
    except OSError as error:
        reason = f"it can't be {how} a temporary file ({error.strerror or error})"
        next_step = "Set TMPDIR to a folder with space that you may write to."
        raise cannot_read(path, reason, next_step) from error


def bounded(path: AnyPath, head: bytes, file: BinaryIO) -> Iterator[bytes]:
    """``head`` and all that follows in ``file``.  Raises RooflineError if that is more than `MOST_BYTES`, or can't be read."""
    size, chunk = 0, head
    while chunk:
        size += len(chunk)
        if size > MOST_BYTES:
            limit = f"{MOST_BYTES / 1e9:g} GB"
            reason = f"it has more than {limit}, and what is no ordinary file, such as a pipe, is read up to {limit}"
            raise cannot_read(path, reason, "Write it to a file and pass that.")
        yield chunk
        chunk = _next(path, file)


def _next(path: AnyPath, file: BinaryIO) -> bytes:
    try:
        return file.read(CHUNK)
    except OSError as error:
        raise cannot_open(path, error) from error


def is_compressed(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is a zstd frame."""
    return head.startswith(ZSTD)


def _inside(path: AnyPath, file: BinaryIO, head: bytes = b"") -> Iterator[bytes]:
    """What the one frame of ``file``, of which ``head`` was read already, holds, in chunks of bounded size.

    Needs memory for a window (128 MB at most) and two chunks, whatever the frame says.  Raises RooflineError if it is no
    report, not whole or not alone, too large, or can't be unpacked.
    """
    by_hand = f"Unpack it by hand (`zstd -d -o NAME.ncu-rep {os.path.basename(os.fspath(path))}`) and pass the .ncu-rep."
    limit = f"{MOST_BYTES / 1e9:g} GB"
    zstd = _zstd("Cannot read", path)
    data, size = head or _next(path, file), 0
    read = len(data)
    with suppress(zstd.ZstdError):  # the decompressor says why
        stated = zstd.get_frame_info(data).decompressed_size or 0
        if stated > MOST_BYTES:
            reason = f"unpacked it has {stated / 1e9:.3g} GB, and .ncu-repz files are read up to {limit}"
            raise cannot_read(path, reason, by_hand)
    decompressor = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _MOST_WINDOW})
    while not decompressor.eof:
        if decompressor.needs_input and not data:
            raise cannot_read(path, f"it is cut off after {read} bytes: its zstd frame goes on", FETCH_AGAIN)
        try:
            chunk = decompressor.decompress(data, CHUNK)
        except zstd.ZstdError as error:
            reason, next_step = str(error).rpartition(": ")[2], FETCH_AGAIN
            if "too much memory" in reason:
                reason, next_step = f"it wants a window of more than {2**_MOST_WINDOW >> 20} MB of memory", by_hand
            raise cannot_read(path, f"its zstd frame is damaged before byte {read} ({reason})", next_step) from error
        if (size == 0 and chunk and not MAGIC.startswith(chunk[: len(MAGIC)])) or (decompressor.eof and not size and not chunk):
            reason = "it is compressed with zstd, and what is inside is no Nsight Compute report"
            raise cannot_read(path, reason, PASS_REPORT)
        size += len(chunk)
        # A frame without end need not hold a byte: blocks may be empty.
        if max(size, read) > MOST_BYTES:
            what = "unpacked it has" if size > MOST_BYTES else "it has"
            raise cannot_read(path, f"{what} more than {limit}, and .ncu-repz files are read up to {limit}", by_hand)
        yield chunk
        data = _next(path, file) if decompressor.needs_input and not decompressor.eof else b""
        read += len(data)
    if decompressor.unused_data or _next(path, file):
        end = read - len(decompressor.unused_data)
        reason = f"its zstd frame ends at byte {end}, and more follows: files were joined, or it is damaged"
        raise cannot_read(path, reason, "Pass the reports as separate files, or copy the file again.")


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
        own = "Use a Python built with zstd, or unpack the file by hand: zstd -d."
        next_step = own if sys.version_info >= (3, 14) else "Install it: pip install backports.zstd."
        raise RooflineError(what, path, reason, next_step) from error


def cannot_read(path: AnyPath, reason: str, next_step: str) -> RooflineError:
    """The error that every failure to read a report ends in."""
    return RooflineError("Cannot read", path, reason, next_step)


def cannot_open(path: AnyPath, error: OSError | ValueError) -> RooflineError:
    """Why the operating system does not give us the file."""
    given = os.fspath(path)
    if isinstance(error, FileNotFoundError):
        reason = "there is no such file"
        for with_suffix in (f"{given}{suffix}" for suffix in REPORT_SUFFIXES):
            if os.path.exists(with_suffix):
                return cannot_read(path, reason, f"Did you mean {with_suffix}?")
        if given == "-":
            return cannot_read(path, reason, "Give /dev/stdin to read standard input.")
        folder, names = os.path.dirname(given), list[str]()
        with suppress(OSError, ValueError), os.scandir(folder or ".") as found:
            names = sorted(entry.name for entry in itertools.islice(found, _LOOKED_AT) if entry.is_file())
        by_stem = {os.path.splitext(name)[0]: name for name in sorted(names, key=lambda name: name.endswith(REPORT_SUFFIXES))}
        near = nearest(os.path.splitext(os.path.basename(given))[0], by_stem)  # all have the suffix of reports in common
        return cannot_read(
            path, reason, f"Check the path; did you mean {os.path.join(folder, by_stem[near])}?" if near else "Check the path."
        )
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
    if head[1:4] == _SKIPPABLE:
        reason = "it begins with a skippable zstd frame, which ncu does not write"
        return cannot_read(path, reason, "Unpack it with `zstd -d` and pass the .ncu-rep file inside.")
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
def messages() -> dict[str, Any]:
    """The classes of all messages by name."""
    from ncu_roofline.formats.wire import build_messages

    return build_messages("ncu_roofline.formats.report", _TABLE.read_text("utf-8"))


@functools.cache
def message(name: str) -> Any:
    """The class of the message ``name``."""
    return messages()[name]


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
        return self.broken(f"it is damaged at byte {offset}: {cause}")

    def broken(self, reason: str) -> RooflineError:
        """The error for a reason that names offsets, with what they count."""
        return cannot_read(self.path, f"{reason} (bytes of the unpacked file)" if self.unpacked else reason, FETCH_AGAIN)


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

    def results(self) -> Iterator[tuple[int, int, int]]:
        """(index into KINDS, offset, length) of each result."""
        kinds = itertools.chain.from_iterable(itertools.repeat(kind, count) for kind, count in enumerate(self.counts[2:]))
        for kind, (offset, length) in zip(kinds, self.records[self.counts[0] + self.counts[1] :], strict=False):
            yield kind, offset, length


def open_raw(path: AnyPath) -> RawFile:
    """The bytes of the report ``path``, unpacked; what comes through a pipe is copied.  Raises RooflineError."""
    name = os.fspath(path)
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open_file(path))
            status = os.fstat(file.fileno())
            ordinary = stat.S_ISREG(status.st_mode) and status.st_size > 0
            head = file.read(_HEAD)
            if is_compressed(head):
                return RawFile(name, copied(path, _inside(path, file, head), "unpacked to"), unpacked=True)
            if not ordinary:  # it may have no end, so only what begins as a report is read on
                if not head.startswith(MAGIC):
                    raise not_a_report(path, head, len(head), piped=True)
                return RawFile(name, copied(path, bounded(path, head, file)))
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise cannot_open(path, error) from error
        stack.pop_all()  # stays open
        return RawFile(name, FileBytes(path, file))


def check_file_header(raw: RawFile) -> int:
    """The offset of the first block.  Raises RooflineError if the file is no report of the known format version."""
    head, size = raw.data[:_HEAD], len(raw.data)
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
        new = version > FORMAT_VERSION
        known = f"{'newer' if new else 'older'} than version {FORMAT_VERSION}, which this program knows"
        reason = f"its format version {version} is {known}{'' if new else ', or it is damaged'}"
        raise cannot_read(raw.path, reason, "Update ncu-roofline." if new else FETCH_AGAIN)
    return offset + length


def scan(raw: RawFile) -> Iterator[Block]:
    """All blocks of the file.  Raises RooflineError where the file is not complete to its last byte."""
    start, whole = check_file_header(raw), 0
    while start < len(raw.data):
        block = block_at(raw, start, whole)
        yield block
        whole += sum(block.counts[2:])
        start = block.end


def block_at(raw: RawFile, start: int, whole: int = 0) -> Block:
    """The block at an offset, behind ``whole`` complete results.

    Raises RooflineError where there is none: the file is cut off, followed by something else, or damaged.
    """
    data, size = raw.data, len(raw.data)
    begun = data[start : start + 5]
    length = _LENGTH.unpack(begun[:4])[0] if len(begun) >= 4 else 0
    payload = start + 4 + length

    def broken(end: int, reason: str, more: int = 0) -> RooflineError:
        """The error where the block says that it ends at ``end``; ``reason`` is a clause for damage."""
        if begun.startswith(MAGIC):
            joined = f"a second report begins at byte {start}: two files were joined"
            return cannot_read(raw.path, joined, "Pass the reports as separate files.")
        before = f"{whole + more} whole kernel{'' if whole + more == 1 else 's'} before it"
        if end > size and begun[4:5] in _HEADER_TAGS and begun[:4] not in (b"", bytes(4)):
            return raw.broken(f"it is cut off at byte {size}, in the block at byte {start} ({before})")
        return raw.damaged(start, f"{reason} ({before})")

    if length == 0 or payload > size:  # a header is never empty: zeros behind the last block are none
        raise broken(max(payload, start + 5), "what follows is no block of a report")
    try:
        header = message("BlockHeader").FromString(data[start + 4 : payload])
    except damage_errors() as error:
        raise broken(0, "what follows is no block of a report") from error
    counts = tuple([getattr(header, counter) for counter in _COUNTERS])
    end, counted, position = payload + header.payload_size, sum(counts), payload
    records: list[tuple[int, int]] = []
    last = min(end, size)
    while len(records) < counted and position + 4 <= last:
        length = _LENGTH.unpack(data[position : position + 4])[0]
        if position + 4 + length > last:
            break
        records.append((position + 4, length))
        position += 4 + length
    if len(records) < counted or position != end:
        says = f"its block says that it holds {counted} records in {header.payload_size} bytes"
        reason = f"{says}, but {len(records)} of them take {position - payload}"
        raise broken(end, reason, max(len(records) - counts[0] - counts[1], 0))
    # The last source and the first kernel of a block may be counted as the wrong sort.
    for at, sort in ((counts[0] - 1, _SOURCE), (counts[0] + counts[1], _KERNEL)):
        if counts[0 if sort == _SOURCE else 2]:
            offset, length = records[at]
            found = _TELLING.match(data[offset : offset + min(length, _TOLD)])
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
