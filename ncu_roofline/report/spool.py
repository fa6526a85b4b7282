"""Bytes that come one after the other, as from a pipe or out of a compressed file, in a file that can be looked at anywhere."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from ncu_roofline.report import diagnose

# The largest reports known have hundreds of MB.  What is longer is refused unless it is an ordinary, plain file: a compressed
# one of a few kB may hold 100 GB, and a pipe or a device may have no end.
MOST_BYTES = 2_000_000_000
CHUNK = 1 << 20


def mapped(path: str | os.PathLike[str], chunks: Iterable[bytes], how: str) -> mmap.mmap:
    """The ``chunks``, of which there is at least one, in a nameless temporary file that is mapped into memory.

    ``how`` says in an error what could not be done.  Raises RooflineError, which calls the file ``path``.
    """
    try:
        with tempfile.TemporaryFile(prefix="ncu-roofline-") as target:
            for chunk in chunks:
                target.write(chunk)
            target.flush()
            return mmap.mmap(target.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        reason = f"it can't be {how} a temporary file ({error.strerror or error})"
        next_step = "Set TMPDIR to a folder with space that you may write to."
        raise diagnose.cannot_read(path, reason, next_step) from error


def spooled(path: str | os.PathLike[str], head: bytes, file: BinaryIO) -> mmap.mmap:
    """``head``, which was read of ``file`` already, and all that follows.

    Raises RooflineError if that is more than `MOST_BYTES`, can't be read, or there is no room for it.
    """
    return mapped(path, _chunks(path, head, file), "read into")


def _chunks(path: str | os.PathLike[str], head: bytes, file: BinaryIO) -> Iterator[bytes]:
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
