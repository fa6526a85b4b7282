"""Opening a report: its bytes, whatever holds them (a file, a pipe, one frame of zstd), and why a file is not a whole report.

Frames of zstd (RFC 8878) are `.ncu-repz`, from 2025.4 on.  ncu itself goes by the suffix of a file; here reading goes by its
first bytes, and writing by its name.  Files are not mapped: where a mapped file is cut short by somebody else, the system ends
the process that looks at what is gone.  What is wrong is one sentence with the likely cause, and what to do next.
"""

from __future__ import annotations

import importlib
import itertools
import os
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from typing import Any, BinaryIO

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import REPORT_SUFFIXES
from ncu_roofline.base.texts import nearest

Path = str | os.PathLike[str]
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
SHORT, _MOST_SHORT = 1024, 100_000
"""Bytes of a record that says next to nothing (the shortest of 1,643 real ones has 16 kB), and so many in one report: every
kernel takes memory and a row, whatever it says."""
PASS_REPORT = "Pass a .ncu-rep or .ncu-repz file as written by 'ncu -o'."
FETCH_AGAIN = "Copy the file again from where it was written, or profile again."
_TRACE = "The trace of a run is read by `ncu-roofline show` and `render`."
_UNPACK = "Unpack it and pass the .ncu-rep file inside."

# First bytes of files that end up under the name of a report, with what they are and what to do.
_SIGNATURES = (
    (b"version https://git-lfs.github.com/spec/", "it is a git-LFS pointer, not the report itself", "Run 'git lfs pull'."),
    (b"\x1f\x8b", "it is compressed with gzip", f"{_UNPACK} {_TRACE}"),
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


class FileBytes:
    """Slices of ``file``, called ``path`` in errors, which is closed by `close` or when nobody refers to them any more.

    Slicing raises RooflineError where the file is not as it was when this was made, or can't be read, and ValueError once it
    is closed.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
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


def copied(path: Path, chunks: Iterable[bytes], how: str = "read into") -> FileBytes:
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


def bounded(path: Path, head: bytes, file: BinaryIO) -> Iterator[bytes]:
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


def _next(path: Path, file: BinaryIO) -> bytes:
    try:
        return file.read(CHUNK)
    except OSError as error:
        raise cannot_open(path, error) from error


def is_compressed(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is a zstd frame."""
    return head.startswith(ZSTD)


def unpacked(path: Path, file: BinaryIO, head: bytes = b"") -> FileBytes:
    """The bytes inside the one frame of ``file``, of which ``head`` was read already, in a nameless temporary file.

    Needs memory for a window (128 MB at most) and two chunks, whatever the frame says.  Raises RooflineError, which calls the
    file ``path``, where it is no whole frame of a report, too large, or can't be read or unpacked.
    """
    return copied(path, _inside(path, file, head), "unpacked to")


def _inside(path: Path, file: BinaryIO, head: bytes) -> Iterator[bytes]:
    """What the frame holds, in chunks of bounded size.  Raises RooflineError if it is no report, not whole or not alone."""
    by_hand = f"Unpack it by hand (`zstd -d -o NAME.ncu-rep {os.path.basename(os.fspath(path))}`) and pass the .ncu-rep."

    def check(size: float, what: str) -> None:
        if size > MOST_BYTES:
            reason = f"{what}, and .ncu-repz files are read up to {MOST_BYTES / 1e9:g} GB"
            raise cannot_read(path, reason, by_hand)

    zstd = _zstd("Cannot read", path)
    data, size = head or _next(path, file), 0
    read = len(data)
    with suppress(zstd.ZstdError):  # the decompressor says why
        stated = zstd.get_frame_info(data).decompressed_size or 0
        check(stated, f"unpacked it has {stated / 1e9:.3g} GB")
    decompressor = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _MOST_WINDOW})
    while not decompressor.eof:
        if decompressor.needs_input and not data:
            reason = f"it is cut off after {read} bytes: its zstd frame goes on"
            raise cannot_read(path, reason, FETCH_AGAIN)
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
        check(size, f"unpacked it has more than {MOST_BYTES / 1e9:g} GB")
        yield chunk
        data = _next(path, file) if decompressor.needs_input and not decompressor.eof else b""
        read += len(data)
        check(
            read, f"it has more than {MOST_BYTES / 1e9:g} GB"
        )  # a frame without end need not hold a byte: blocks may be empty
    if decompressor.unused_data or _next(path, file):
        end = read - len(decompressor.unused_data)
        reason = f"its zstd frame ends at byte {end}, and more follows: files were joined, or it is damaged"
        raise cannot_read(path, reason, "Pass the reports as separate files, or copy the file again.")


def as_named(path: Path, chunks: Iterable[bytes]) -> Iterable[bytes]:
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


def _zstd(what: str, path: Path) -> Any:
    """Python's zstd module: part of Python from 3.14 on.  Only .ncu-repz files need it."""
    try:
        return importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    except ImportError as error:
        reason = f"Python's zstd module can't be loaded ({error})"
        own = "Use a Python built with zstd, or unpack the file by hand: zstd -d."
        next_step = own if sys.version_info >= (3, 14) else "Install it: pip install backports.zstd."
        raise RooflineError(what, path, reason, next_step) from error


def cannot_read(path: Path, reason: str, next_step: str) -> RooflineError:
    """The error that every failure to read a report ends in."""
    return RooflineError("Cannot read", path, reason, next_step)


def cannot_open(path: Path, error: OSError | ValueError) -> RooflineError:
    """Why the operating system does not give us the file."""
    if isinstance(error, FileNotFoundError):
        for with_suffix in (f"{os.fspath(path)}{suffix}" for suffix in REPORT_SUFFIXES):
            if os.path.exists(with_suffix):
                return cannot_read(path, "there is no such file", f"Did you mean {with_suffix}?")
        pipe = os.fspath(path) == "-"
        next_step = "Give /dev/stdin to read standard input." if pipe else f"Check the path{_question(path) or '.'}"
        return cannot_read(path, "there is no such file", next_step)
    if isinstance(error, IsADirectoryError):
        return cannot_read(path, "it is a folder", PASS_REPORT)
    if isinstance(error, PermissionError):
        return cannot_read(path, "permission denied", "Check who may read it: what ncu wrote under sudo belongs to root.")
    return cannot_read(path, getattr(error, "strerror", None) or str(error), "Check the path.")


def _question(path: Path) -> str:
    """Whether a file of that folder with a name like this is meant, "" where there is none."""
    folder = os.path.dirname(os.fspath(path))
    try:
        with os.scandir(folder or ".") as found:
            names = sorted(entry.name for entry in itertools.islice(found, _LOOKED_AT) if entry.is_file())
    except (OSError, ValueError):
        return ""
    by_stem = {os.path.splitext(name)[0]: name for name in sorted(names, key=lambda name: name.endswith(REPORT_SUFFIXES))}
    near = nearest(os.path.splitext(os.path.basename(os.fspath(path)))[0], by_stem)  # all have the suffix of reports in common
    return f"; did you mean {os.path.join(folder, by_stem[near])}?" if near else ""


def not_a_report(path: Path, head: bytes, size: int, *, piped: bool = False) -> RooflineError:
    """What a file is whose first bytes (``head``) are not those of a report; ``piped``: it came through a pipe."""
    if size == 0:
        return cannot_read(path, "the file is empty", "Profile again: ncu writes the report when the application ends.")
    if MAGIC.startswith(head[: len(MAGIC)]):
        return cut_off_at_start(path, size)
    if head[1:4] == _SKIPPABLE:
        reason = "it begins with a skippable zstd frame, which ncu does not write"
        return cannot_read(path, reason, "Unpack it with `zstd -d` and pass the .ncu-rep file inside.")
    for signature, reason, next_step in _SIGNATURES:
        if head.startswith(signature):
            return cannot_read(path, reason, next_step)
    if str(path).endswith(_NSYS_SUFFIXES):
        return cannot_read(path, "it is a report of Nsight Systems, not of Nsight Compute", PASS_REPORT)
    start = head.lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return cannot_read(path, "it is a web page", "Download the raw file instead of the page that shows it.")
    if _is_text(head):
        next_step = "Write it to a file and pass that: of what comes through a pipe only reports are read."
        return cannot_read(path, "it is a text file, not an Nsight Compute report", next_step if piped else PASS_REPORT)
    beginning = f"the letters {MAGIC[:3].decode()} and a zero byte"
    return cannot_read(path, f"it does not begin with {beginning}, as every Nsight Compute report does", PASS_REPORT)


def cut_off_at_start(path: Path, size: int) -> RooflineError:
    """A report that ends before its first block."""
    return cannot_read(path, f"it is cut off after {size} bytes, before anything that was profiled", FETCH_AGAIN)


def _is_text(head: bytes) -> bool:
    decoded = head.decode("utf-8", "surrogateescape").rstrip("".join(map(chr, range(0xDC80, 0xDD00))))  # a letter cut in two
    return all(c.isprintable() or c in "\t\r\n\f" for c in decoded)


def changed(path: Path) -> RooflineError:
    """A file that somebody wrote to, or cut short, since it was opened."""
    return cannot_read(path, "it changed while it was read", "Wait until nothing writes to it, then run the command again.")


def bad_version(path: Path, version: int) -> RooflineError:
    """A file header of another format version than the one known."""
    if version > FORMAT_VERSION:
        reason = f"its format version {version} is newer than version {FORMAT_VERSION}, which this program knows"
        return cannot_read(path, reason, "Update ncu-roofline.")
    reason = f"its format version {version} is older than version {FORMAT_VERSION}, which this program knows, or it is damaged"
    return cannot_read(path, reason, FETCH_AGAIN)


def damaged(path: Path, offset: int, cause: str) -> RooflineError:
    """Bytes inside the file that make no sense."""
    return cannot_read(path, f"it is damaged at byte {offset}: {cause}", FETCH_AGAIN)


def broken_block(path: Path, size: int, start: int, begun: bytes, end: int, reason: str, whole: int) -> RooflineError:
    """No block can be read at ``start``, behind ``whole`` complete results: cut off, or followed by something else.

    ``begun`` are the first bytes there, ``end`` is where the block says that it ends; ``reason`` is a clause for damage.
    """
    if begun.startswith(MAGIC):
        reason = f"a second report begins at byte {start}: two files were joined"
        return cannot_read(path, reason, "Pass the reports as separate files.")
    before = f"{whole} whole kernel{'' if whole == 1 else 's'} before it"
    plausible = begun[4:5] in _HEADER_TAGS and begun[:4] not in (b"", bytes(4))
    if end > size and plausible:
        return cannot_read(path, f"it is cut off at byte {size}, in the block at byte {start} ({before})", FETCH_AGAIN)
    return damaged(path, start, f"{reason} ({before})")


def check_short(path: Path, short: int) -> None:
    """Raise RooflineError for a report with more ``short`` records (of up to `SHORT` bytes) than any profiler writes."""
    if short > _MOST_SHORT:
        reason = f"over {_MOST_SHORT:,} of its records of kernels have no more than {SHORT:,} bytes, real ones 16,000 or more"
        raise cannot_read(path, f"{reason}: it is damaged or made up", "Profile again.")


def check_content(what: str, path: Path, launches: int, metrics: int) -> None:
    """Raise RooflineError, beginning with ``what``, for a report with so few that nothing could be drawn or said."""
    if not launches:
        next_step = "Profile again, and check that ncu's filters let some kernel pass."
        raise RooflineError(what, path, "it holds no profiled kernel", next_step)
    if not metrics:
        next_step = "Profile again with metrics, for instance with `ncu --set full`."
        raise RooflineError(what, path, "its kernels carry no metrics", next_step)
