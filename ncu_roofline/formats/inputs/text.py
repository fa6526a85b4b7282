"""Text files: their lines, the rows of their tables, the numbers in their cells, what is wrong with one; source files."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

from ncu_roofline.base.errors import RooflineError, explained
from ncu_roofline.base.files import open_file, read_file
from ncu_roofline.formats.report.framing import changed, is_compressed

HEAD_BYTES = 65_536
EXPORT_AGAIN = "Export it again, and check that it is complete."
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_CHECK = "Check the name and that you may read the file."
_MOST_BYTES = 2_000_000_000  # more than any profiler prints; a wrong file must not fill the memory
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_MISSING = frozenset({"", "-", "n/a", "na", "nan", "-nan", "<overflow>", "overflow", "no data"})
# Far beyond any count, rate or time in any unit, so that products and quotients of them stay finite numbers.
_SMALLEST, _LARGEST = 1e-30, 1e30
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([^\d\s].*)?", re.IGNORECASE)
_MOST_SOURCE, _MOST_LINES, _DEEPEST = 16 << 20, 1_000_000, 64  # bytes and lines of a source file, parts of a path


def head_of(path: str | os.PathLike[str]) -> str:
    """The first 64 kB as text, "" for binary files.  Raises RooflineError where the file can't be read."""
    with explained("Cannot read", path, _CHECK), open_file(path) as stream:
        data = stream.read(HEAD_BYTES)
    binary = (_encoding(data) != "utf-16" and b"\0" in data) or is_compressed(data)
    return "" if binary else _decoded(data)


def text_of(path: str | os.PathLike[str]) -> str:
    """The whole file as text: UTF-8 (with or without mark) or UTF-16, as Windows shells write it; \\n line ends."""
    with explained("Cannot read", path, _CHECK):
        return _decoded(read_file(path, _MOST_BYTES))


def lines_of(path: str | os.PathLike[str]) -> Generator[str, None, None]:
    """The lines of a file one after the other, ends included, decoded as `text_of` does; for files of any size."""
    with explained("Cannot read", path, _CHECK), open_file(path) as stream:
        before = os.fstat(stream.fileno())
        with io.TextIOWrapper(stream, _encoding(stream.peek(4)[:4]), "replace") as text:
            yield from text
            now = os.fstat(stream.fileno())
    if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise changed(path)


def _decoded(data: bytes) -> str:
    return data.decode(_encoding(data), "replace").replace("\r\n", "\n").replace("\r", "\n")


def _encoding(data: bytes) -> str:
    return next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")


def damaged(path: str | os.PathLike[str], reason: str, next_step: str = EXPORT_AGAIN) -> RooflineError:
    """The error for a file whose format is known and whose content can't be used."""
    return RooflineError("Cannot read", path, reason, next_step)


def countable(value: float) -> bool:
    """Whether a number can be a count, a rate or a time."""
    return value == 0 or _SMALLEST < value < _LARGEST


def split_number(text: str) -> tuple[float, str] | None:
    """A cell as number and unit ("61.4us" gives 61.4 and "us"), None where it stands for a missing number.

    Raises ValueError for anything else, also for negative numbers and those that nothing can have been counted or timed as.
    """
    cell = text.strip()
    if cell.lower() in _MISSING:
        return None
    match = _NUMBER.fullmatch(cell)
    if not match or not countable(float(match[1])):
        raise ValueError(f"{cell[:40]!r} is no {'count, rate or time' if match else 'number'}")
    return float(match[1]), (match[2] or "").strip()


def plain_number(text: str) -> float | None:
    """A cell that holds a number without unit, None where it stands for a missing one.  Raises ValueError for anything else."""
    found = split_number(text)
    if found and found[1]:
        raise ValueError(f"{text.strip()[:40]!r} has a unit where a plain number belongs")
    return found[0] if found else None


def delimiter_of(line: str) -> str:
    """What separates the cells of a heading."""
    return max(",;\t", key=line.count)


def unpadded(line: str, delimiter: str = ",") -> str:
    """A line without the blanks around it that copies out of terminals have; tabs are cells where they separate them."""
    return line.strip(" " if delimiter == "\t" else " \t")


def row_of(line: str, delimiter: str = ",") -> list[str]:
    """The cells of one line, without blanks around them; none for a line that can't be a row (an application's output, say)."""
    try:
        cells = next(csv.reader([unpadded(line, delimiter)], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:  # a NUL, or a cell longer than any tool writes
        return []
    return [cell.strip() for cell in cells]


class Table:
    """A file whose tables are read: what is wrong in one is an error with its place, and ``next_step`` for the user."""

    def __init__(self, path: str | os.PathLike[str], next_step: str = EXPORT_AGAIN) -> None:
        self.path, self.stem = os.fspath(path), Path(path).stem
        self._next_step = next_step

    def damaged(self, reason: str, next_step: str = "") -> RooflineError:
        """The error for a reason."""
        return damaged(self.path, reason, next_step or self._next_step)

    def warnings(self, sentences: Iterable[str]) -> tuple[str, ...]:
        """Sentences without full stop, for the user, each once."""
        return tuple(f"{self.path}: {sentence}." for sentence in dict.fromkeys(sentences))

    def rows(self, lines: Sequence[str], start: int, delimiter: str, width: int = 0) -> Iterator[tuple[int, list[str]]]:
        """Line and cells (without blanks around them) of the rows in the lines from ``start`` (0 is the first) on.

        Raises RooflineError for what can't be a row, and for those that have not ``width`` cells.
        """
        for number, line in enumerate(lines[start:], start + 1):
            reader = csv.reader([f"{unpadded(line, delimiter)}\n", ""], delimiter=delimiter, skipinitialspace=True)
            try:
                cells = [cell.strip() for cell in next(reader)]
            except csv.Error as error:
                raise self.damaged(f"line {number} is no row, {error}") from error
            if reader.line_num > 1:
                raise self.damaged(f"the quotation mark that opens in line {number} is not closed on it")
            if any(cells):
                if width and len(cells) != width:
                    raise self.damaged(f"line {number} has {len(cells)} of the {width} columns of its table")
                yield number, cells

    def number(self, name: str, line: int, text: str) -> float | None:
        """The number of a cell, None for a missing one.  Raises RooflineError for what is none."""
        try:
            return plain_number(text)
        except ValueError as error:
            raise self.damaged(f"{name} in line {line}: {error}") from error

    def seconds(self, name: str, line: int, text: str) -> float | None:
        """The time of a cell, in seconds where it has no unit ("61.4us"); None for a missing one.  Raises RooflineError."""
        try:
            found = split_number(text)
            return found[0] * SECONDS[found[1] or "s"] if found else None
        except (ValueError, KeyError) as error:
            raise self.damaged(f"{name} in line {line}: {text[:40]!r} is no time") from error


def find_source(name: str, folders: Sequence[str]) -> tuple[str, ...] | None:
    """The lines of the source file whose path ends most like ``name``, in the first folder that has one; None for none.

    It is looked for in folders that the user names, never where a report says that it was compiled.
    """
    parts = [part for part in _parts(name) if "\0" not in part]
    for path in (Path(folder, *parts[start:]) for folder in folders for start in range(len(parts))):
        with suppress(OSError, ValueError):  # too long a name, no permission, larger than any source
            if path.is_file():
                return lines_of_source(read_file(path, _MOST_SOURCE).decode("utf-8", "replace"))
    return None


def most_alike(name: str, others: Iterable[str]) -> str | None:
    """The path that ends most like ``name``, at least with the same file; None without such a one, or with several."""
    mine, ends = _parts(name), {}
    for other in others:
        pairs = zip(reversed(mine), reversed(_parts(other)), strict=False)
        ends[other] = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    longest = max(ends.values(), default=0)
    found = [other for other, end in ends.items() if end == longest]
    return found[0] if longest and len(found) == 1 else None


def last_part(path: str) -> str:
    """The name of the file itself; "" of none."""
    return "".join(_parts(path)[-1:])


def _parts(path: str) -> list[str]:
    return [part for part in re.split(r"[\\/]+", path) if part not in ("", ".", "..")][-_DEEPEST:]


def lines_of_source(text: str) -> tuple[str, ...]:
    """The lines of a source file, as compilers count them: the first million of them, which no source has."""
    return tuple(text.replace("\r\n", "\n").split("\n", _MOST_LINES)[:_MOST_LINES])
