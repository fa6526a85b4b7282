"""The bytes of a report, whatever holds them: a file, a pipe, or one frame of zstd (RFC 8878: `.ncu-repz`, from 2025.4 on).

ncu itself goes by the suffix of a file; here reading goes by its first bytes, and writing by its name.  Files are not mapped:
where a mapped file is cut short by somebody else, the system ends the process that looks at what is gone.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from typing import Any, BinaryIO

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.report import diagnose
from ncu_roofline.formats.report.schema import MAGIC

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
Path = str | os.PathLike[str]


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
            raise diagnose.cannot_open(self._path, error) from error
        if len(data) < size or state != self._state:
            raise diagnose.changed(self._path)
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
        raise diagnose.cannot_read(path, reason, next_step) from error


def bounded(path: Path, head: bytes, file: BinaryIO) -> Iterator[bytes]:
    """``head`` and all that follows in ``file``.  Raises RooflineError if that is more than `MOST_BYTES`, or can't be read."""
    size, chunk = 0, head
    while chunk:
        size += len(chunk)
        if size > MOST_BYTES:
            limit = f"{MOST_BYTES / 1e9:g} GB"
            reason = f"it has more than {limit}, and what is no ordinary file, such as a pipe, is read up to {limit}"
            raise diagnose.cannot_read(path, reason, "Write it to a file and pass that.")
        yield chunk
        chunk = _next(path, file)


def _next(path: Path, file: BinaryIO) -> bytes:
    try:
        return file.read(CHUNK)
    except OSError as error:
        raise diagnose.cannot_open(path, error) from error


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
            raise diagnose.cannot_read(path, reason, by_hand)

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
            raise diagnose.cannot_read(path, reason, diagnose.FETCH_AGAIN)
        try:
            chunk = decompressor.decompress(data, CHUNK)
        except zstd.ZstdError as error:
            reason, next_step = str(error).rpartition(": ")[2], diagnose.FETCH_AGAIN
            if "too much memory" in reason:
                reason, next_step = f"it wants a window of more than {2**_MOST_WINDOW >> 20} MB of memory", by_hand
            raise diagnose.cannot_read(path, f"its zstd frame is damaged before byte {read} ({reason})", next_step) from error
        if (size == 0 and chunk and not MAGIC.startswith(chunk[: len(MAGIC)])) or (decompressor.eof and not size and not chunk):
            reason = "it is compressed with zstd, and what is inside is no Nsight Compute report"
            raise diagnose.cannot_read(path, reason, diagnose.PASS_REPORT)
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
        raise diagnose.cannot_read(path, reason, "Pass the reports as separate files, or copy the file again.")


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
