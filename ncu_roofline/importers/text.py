"""The beginning of a file as text, to tell what it is, and the whole of it, within limits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ncu_roofline.errors import RooflineError
from ncu_roofline.report.compressed import is_compressed

HEAD_BYTES = 65_536
_MOST_BYTES = 2_000_000_000  # more than any profiler prints; a wrong file must not fill the memory
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


def head_of(path: str | os.PathLike[str]) -> str:
    """The first 64 kB as text, "" for binary files.  Raises RooflineError where the file can't be read."""
    try:
        with open(path, "rb") as stream:
            data = stream.read(HEAD_BYTES)
    except OSError as error:
        raise _unreadable(path, error) from error
    encoding = _encoding(data)
    if (encoding != "utf-16" and b"\0" in data) or is_compressed(data):
        return ""
    return data.decode(encoding, "replace")


def text_of(path: str | os.PathLike[str]) -> str:
    """The whole file as text: UTF-8 (with or without mark) or UTF-16, as Windows shells write it; \\n line ends."""
    try:
        if os.path.getsize(path) > _MOST_BYTES:
            reason = f"it has {os.path.getsize(path) / 1e9:.1f} GB, and text is read up to {_MOST_BYTES / 1e9:.0f} GB"
            raise RooflineError("Cannot read", path, reason, "Split it, or give the report it was made from.")
        data = Path(path).read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error
    return data.decode(_encoding(data), "replace").replace("\r\n", "\n").replace("\r", "\n")


def lines_of(path: str | os.PathLike[str]) -> Iterator[str]:
    """The lines of a file one after the other, ends included, decoded as `text_of` does; for files of any size."""
    try:
        with open(path, "rb") as stream:
            encoding = _encoding(stream.read(4))
        with open(path, encoding=encoding, errors="replace") as text:
            yield from text
    except OSError as error:
        raise _unreadable(path, error) from error


def _encoding(data: bytes) -> str:
    return next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")


def _unreadable(path: str | os.PathLike[str], error: OSError) -> RooflineError:
    return RooflineError("Cannot read", path, error.strerror or str(error), "Check the name and that you may read the file.")
