"""Text of other tools' files: its beginning, its lines, and the cells of its tables."""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Iterable, Iterator
from os import PathLike

from ncu_roofline.errors import RooflineError
from ncu_roofline.files import open_file, read_file
from ncu_roofline.report.compressed import is_compressed
from ncu_roofline.report.diagnose import changed

HEAD_BYTES = 65_536
_MOST_BYTES = 2_000_000_000  # more than any profiler prints; a wrong file must not fill the memory
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_MISSING = frozenset({"", "-", "n/a", "na", "nan", "-nan", "<overflow>", "overflow", "no data"})
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([^\d\s].*)?", re.IGNORECASE)


def head_of(path: str | os.PathLike[str]) -> str:
    """The first 64 kB as text, "" for binary files.  Raises RooflineError where the file can't be read."""
    try:
        with open_file(path) as stream:
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
        data = read_file(path, _MOST_BYTES)
    except OSError as error:
        raise _unreadable(path, error) from error
    return data.decode(_encoding(data), "replace").replace("\r\n", "\n").replace("\r", "\n")


def lines_of(path: str | os.PathLike[str]) -> Iterator[str]:
    """The lines of a file one after the other, ends included, decoded as `text_of` does; for files of any size."""
    try:
        with open_file(path) as stream:
            before = os.fstat(stream.fileno())
            encoding = _encoding(stream.peek(4)[:4])
            with io.TextIOWrapper(stream, encoding, "replace") as text:
                yield from text
                now = os.fstat(stream.fileno())
    except OSError as error:
        raise _unreadable(path, error) from error
    if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise changed(path)


def _encoding(data: bytes) -> str:
    return next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")


def _unreadable(path: str | os.PathLike[str], error: OSError) -> RooflineError:
    return RooflineError("Cannot read", path, error.strerror or str(error), "Check the name and that you may read the file.")


def split_number(text: str) -> tuple[float, str] | None:
    """A cell as number and unit ("61.4us" gives 61.4 and "us"), None where it stands for a missing number.

    Raises ValueError for anything else, negative and infinite numbers included: no tool counts or times less than nothing.
    """
    cell = text.strip()
    if cell.lower() in _MISSING:
        return None
    match = _NUMBER.fullmatch(cell)
    if not match:
        raise ValueError(f"{cell[:40]!r} is no number")
    value = float(match.group(1))
    if value < 0 or math.isinf(value):
        raise ValueError(f"{cell[:40]!r} is no count, rate or time")
    return value, (match.group(2) or "").strip()


def plain_number(text: str) -> float | None:
    """A cell that holds a number without unit, None where it stands for a missing one.  Raises ValueError for anything else."""
    found = split_number(text)
    if found and found[1]:
        raise ValueError(f"{text.strip()[:40]!r} has a unit where a plain number belongs")
    return found[0] if found else None


def row_of(line: str, delimiter: str = ",") -> list[str]:
    """The cells of one line; none for a line that can't be a row (of an application's output, say)."""
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # a NUL, or a cell longer than any tool writes
        return []


def listed(names: Iterable[str], most: int = 6) -> str:
    """Names for a sentence, without repetitions, cut after ``most``: a, b, c and 12 more."""
    unique = list(dict.fromkeys(names))
    more = f" and {len(unique) - most} more" if len(unique) > most else ""
    return ", ".join(unique[:most]) + more


def damaged(
    path: str | PathLike[str], reason: str, next_step: str = "Export it again, and check that it is complete."
) -> RooflineError:
    """The error for a file whose format is known and whose content can't be used."""
    return RooflineError("Cannot read", path, reason, next_step)
