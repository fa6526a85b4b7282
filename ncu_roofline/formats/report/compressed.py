"""`.ncu-repz`: the bytes of a report in one frame of zstd (RFC 8878), as ncu writes it from 2025.4 on.

ncu itself goes by the suffix of a file; here reading goes by its first bytes, and writing by its name.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any, BinaryIO

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.report import diagnose
from ncu_roofline.formats.report.filebytes import FileBytes
from ncu_roofline.formats.report.schema import MAGIC

# The largest reports known have hundreds of MB.  What is longer is refused unless it is an ordinary, plain file: a compressed
# one of a few kB may hold 100 GB, and a pipe or a device may have no end.
MOST_BYTES = 2_000_000_000
CHUNK = 1 << 20
SUFFIX = ".ncu-repz"
ZSTD = b"\x28\xb5\x2f\xfd"
# Binary logarithm of the window in bytes: of the memory for looking back.  128 MB are the limit of `zstd -d`, too.
_MOST_WINDOW = 27
_LEVEL = 3  # zstd's own default
_UNPACK = "Unpack it by hand (`zstd -d -o NAME.ncu-rep {}`) and pass the .ncu-rep."


def copied(path: str | os.PathLike[str], chunks: Iterable[bytes], how: str) -> FileBytes:
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


def spooled(path: str | os.PathLike[str], head: bytes, file: BinaryIO) -> FileBytes:
    """``head``, which was read of ``file`` already, and all that follows.

    Raises RooflineError if that is more than `MOST_BYTES`, can't be read, or there is no room for it.
    """
    return copied(path, bounded(path, head, file), "read into")


def bounded(path: str | os.PathLike[str], head: bytes, file: BinaryIO) -> Iterator[bytes]:
    """``head`` and all that follows in ``file``, in chunks.  Raises RooflineError as `spooled`."""
    size, chunk = 0, head
    while chunk:
        size += len(chunk)
        if size > MOST_BYTES:
            limit = f"{MOST_BYTES / 1e9:g} GB"
            reason = f"it has more than {limit}, and what is no ordinary file, such as a pipe, is read up to {limit}"
            raise diagnose.cannot_read(path, reason, "Write it to a file and pass that.")
        yield chunk
        try:
            chunk = file.read(CHUNK)
        except OSError as error:
            raise diagnose.cannot_open(path, error) from error


def is_compressed(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is a zstd frame."""
    return head.startswith(ZSTD)


def unpacked(path: str | os.PathLike[str], file: BinaryIO, head: bytes = b"") -> FileBytes:
    """The bytes inside the one frame of ``file``, in a nameless temporary file.

    ``head`` was read of ``file`` already.  Needs memory for a window (128 MB at most) and two chunks, whatever the frame says.
    Raises RooflineError, which calls the file ``path``, where it is no whole frame of a report, too large, or can't be read or
    unpacked.
    """
    return copied(path, _inside(path, file, head), "unpacked to")


def _inside(path: str | os.PathLike[str], file: BinaryIO, head: bytes) -> Iterator[bytes]:
    size = 0
    for chunk in _Frame(path, file, head):
        if size == 0 and not MAGIC.startswith(chunk[: len(MAGIC)]):
            break
        size += len(chunk)
        if size > MOST_BYTES:
            raise _too_large(path, f"unpacked it has more than {MOST_BYTES / 1e9:g} GB")
        yield chunk
    if size == 0:
        reason = "it is compressed with zstd, and what is inside is no Nsight Compute report"
        raise diagnose.cannot_read(path, reason, diagnose.PASS_REPORT)


def as_named(path: str | os.PathLike[str], chunks: Iterable[bytes]) -> Iterable[bytes]:
    """The ``chunks`` of a report as the file ``path`` is to hold them: in a frame for .ncu-repz, in capitals or not."""
    return _packed(path, chunks) if os.fspath(path).lower().endswith(SUFFIX) else chunks


def _packed(path: str | os.PathLike[str], chunks: Iterable[bytes]) -> Iterator[bytes]:
    zstd = _zstd("Cannot write", path)
    parameter = zstd.CompressionParameter
    compressor = zstd.ZstdCompressor(options={parameter.compression_level: _LEVEL, parameter.checksum_flag: 1})
    for chunk in chunks:
        yield compressor.compress(chunk)
    yield compressor.flush()


class _Frame:
    """What a frame holds, in chunks of bounded size; iterating raises RooflineError if it is not whole or not alone."""

    def __init__(self, path: str | os.PathLike[str], file: BinaryIO, head: bytes) -> None:
        self._path, self._file, self._head = path, file, head
        self._read = 0
        self._zstd = _zstd("Cannot read", path)

    def __iter__(self) -> Iterator[bytes]:
        data = self._next()
        self._check_size(data)
        options = {self._zstd.DecompressionParameter.window_log_max: _MOST_WINDOW}
        decompressor = self._zstd.ZstdDecompressor(options=options)
        while not decompressor.eof:
            if decompressor.needs_input and not data:
                reason = f"it is cut off after {self._read} bytes: its zstd frame goes on"
                raise diagnose.cannot_read(self._path, reason, diagnose.FETCH_AGAIN)
            try:
                chunk = decompressor.decompress(data, CHUNK)
            except self._zstd.ZstdError as error:
                raise self._damaged(str(error)) from error
            if chunk:
                yield chunk
            data = self._next() if decompressor.needs_input and not decompressor.eof else b""
        self._check_end(decompressor.unused_data)

    def _next(self) -> bytes:
        try:
            data, self._head = self._head or self._file.read(CHUNK), b""
        except OSError as error:
            raise diagnose.cannot_open(self._path, error) from error
        self._read += len(data)
        if self._read > MOST_BYTES:  # a frame without end need not hold a byte: blocks may be empty
            raise _too_large(self._path, f"it has more than {MOST_BYTES / 1e9:g} GB")
        return data

    def _check_size(self, head: bytes) -> None:
        """Refuse at once what says itself that it is too large."""
        try:
            said = self._zstd.get_frame_info(head).decompressed_size
        except self._zstd.ZstdError:  # the decompressor says why
            return
        if said is not None and said > MOST_BYTES:
            raise _too_large(self._path, f"unpacked it has {said / 1e9:.3g} GB")

    def _check_end(self, behind: bytes) -> None:
        size = self._read - len(behind)
        behind = behind or self._next()
        if behind:
            reason = f"its zstd frame ends at byte {size}, and more follows: files were joined, or it is damaged"
            raise diagnose.cannot_read(self._path, reason, "Pass the reports as separate files, or copy the file again.")

    def _damaged(self, said: str) -> RooflineError:
        if "too much memory" in said:
            reason = f"its zstd frame wants a window of more than {2**_MOST_WINDOW >> 20} MB of memory"
            return diagnose.cannot_read(self._path, reason, _UNPACK.format(os.path.basename(os.fspath(self._path))))
        reason = f"its zstd frame is damaged before byte {self._read} ({said.rpartition(': ')[2]})"
        return diagnose.cannot_read(self._path, reason, diagnose.FETCH_AGAIN)


def _too_large(path: str | os.PathLike[str], what: str) -> RooflineError:
    reason = f"{what}, and .ncu-repz files are read up to {MOST_BYTES / 1e9:g} GB"
    return diagnose.cannot_read(path, reason, _UNPACK.format(os.path.basename(os.fspath(path))))


def _zstd(what: str, path: str | os.PathLike[str]) -> Any:
    """Python's zstd module: part of Python from 3.14 on.  Only .ncu-repz files need it."""
    try:
        return importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    except ImportError as error:
        reason = f"Python's zstd module can't be loaded ({error})"
        own = "Use a Python built with zstd, or unpack the file by hand: zstd -d."
        next_step = own if sys.version_info >= (3, 14) else "Install it: pip install backports.zstd."
        raise RooflineError(what, path, reason, next_step) from error
