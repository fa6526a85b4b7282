"""Files of other tools as they arrive: copied from terminals, saved by spreadsheets and editors, cut, merged and edited.

`SAME` keep the meaning of a file, `LESS` take or spoil a part of it, `OTHER` may mean anything.  All are deterministic in the
random generator that they are given, and leave a text alone that they don't fit.
"""

from __future__ import annotations

import codecs
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

HUGE = ("1.5e308", "1e999", "-17", "9" * 300, "9" * 401, "9" * 5000, "1e-320", "0", "0.0")
BAD_CELLS = ("many", "n/a", "", "-", "1,5", "1.234.567,8", "nan", "0x1f", "12 furlong", "1e", "--", "5%", "1,2,3")


@dataclass(frozen=True)
class Original:
    """A file of some tool: its cells are separated by ``delimiter``, "" where it has no tables.

    ``header`` matches the first cells of the heading of a table, as they are written.  The first ``fixed`` columns of a table
    stay where they are; rows may lack the last ``lacking`` cells.
    """

    text: str
    delimiter: str = ","
    header: str = ""
    fixed: int = 0
    lacking: int = 0


Mutation = Callable[[Original, random.Random], bytes]


def records_of(text: str) -> list[str]:
    """The lines, those that a quoted cell goes over as one."""
    result, inside = [], False
    for line in text.split("\n"):
        if inside:
            result[-1] += "\n" + line
        else:
            result.append(line)
        inside ^= line.count('"') % 2 == 1
    return result


def cells_of(record: str, delimiter: str) -> list[str]:
    """The cells as they are written, quotes included."""
    found, inside = [""], False
    for character in record:
        inside ^= character == '"'
        if character == delimiter and not inside:
            found.append("")
        else:
            found[-1] += character
    return found


def tables_of(original: Original) -> Iterator[tuple[int, int]]:
    """First and last record of each table: a heading, and what is as wide below it."""
    records = records_of(original.text)
    wide = [len(cells_of(record, original.delimiter)) for record in records]
    for first, record in enumerate(records):
        if original.header and re.match(original.header, record):
            last = first
            while last + 1 < len(records) and 0 <= wide[first] - wide[last + 1] <= original.lacking:
                if re.match(original.header, records[last + 1]):
                    break
                last += 1
            yield first, last


def _each_cell(original: Original, change: Callable[[int, int, str], str]) -> str:
    """The text with ``change(row of the table, column, cell)`` for every cell of its tables."""
    records = records_of(original.text)
    for first, last in tables_of(original):
        for place in range(first, last + 1):
            cells = cells_of(records[place], original.delimiter)
            records[place] = original.delimiter.join(change(place - first, at, cell) for at, cell in enumerate(cells))
    return "\n".join(records)


def _columns(original: Original, rearrange: Callable[[list[int]], Sequence[int]]) -> str:
    """The text with other columns; ``rearrange`` gets those that may be moved, and says which are written in their place."""
    records = records_of(original.text)
    for first, last in tables_of(original):
        width = len(cells_of(records[first], original.delimiter))
        named = [at for at, cell in enumerate(cells_of(records[first], original.delimiter)) if cell]
        moved = rearrange(named[original.fixed :])
        rest = [at for at in range(width) if at not in named]
        order = [*named[: original.fixed], *moved, *rest]
        for place in range(first, last + 1):
            cells = cells_of(records[place], original.delimiter)
            cells += ['""'] * (width - len(cells))
            records[place] = original.delimiter.join(cells[at] for at in order)
    return "\n".join(records)


def _one_number(original: Original, chance: random.Random, replacement: str) -> str:
    """The text with one cell that holds a number replaced; quotes stay.  Without tables, any number."""
    if not original.delimiter:
        found = list(re.finditer(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", original.text))
        match = chance.choice(found)
        return original.text[: match.start()] + replacement + original.text[match.end() :]
    records = records_of(original.text)
    numeric = re.compile(r'"?(?!\d\.\d"?$)\d[\d.]*(?:e[+-]?\d+)?[a-z%]{0,2}"?')  # 8.0 is a compute capability
    places = [
        (place, at)
        for first, last in tables_of(original)
        for place in range(first + 1, last + 1)
        for at, cell in enumerate(cells_of(records[place], original.delimiter))
        if numeric.fullmatch(cell)
    ]
    place, at = chance.choice(places)
    cells = cells_of(records[place], original.delimiter)
    quoted = cells[at].startswith('"') or original.delimiter in replacement
    cells[at] = f'"{replacement}"' if quoted else replacement
    records[place] = original.delimiter.join(cells)
    return "\n".join(records)


def _padded_lines(text: str, left: str, right: str) -> str:
    return "\n".join(f"{left}{line}{right}" for line in records_of(text))


def _padded_cell(cell: str) -> str:
    if len(cell) > 1 and cell.startswith('"') and cell.endswith('"'):
        return f'" {cell[1:-1]}  "' if cell != '""' else cell
    return f" {cell} " if cell else cell


def _shuffled(chance: random.Random) -> Callable[[list[int]], list[int]]:
    return lambda columns: chance.sample(columns, len(columns))


SAME: dict[str, Mutation] = {
    "Windows line ends": lambda one, _: one.text.replace("\n", "\r\n").encode(),
    "old Macintosh line ends": lambda one, _: one.text.replace("\n", "\r").encode(),
    "byte order mark": lambda one, _: codecs.BOM_UTF8 + one.text.encode(),
    "UTF-16": lambda one, _: codecs.BOM_UTF16_LE + one.text.encode("utf-16-le"),
    "UTF-16, big end first": lambda one, _: codecs.BOM_UTF16_BE + one.text.encode("utf-16-be"),
    "blanks behind lines": lambda one, _: _padded_lines(one.text, "", "    ").encode(),
    "blanks around lines": lambda one, _: _padded_lines(one.text, "  ", "      ").encode(),
    "tabs around lines": lambda one, _: _padded_lines(one.text, "\t" if one.delimiter != "\t" else "", "").encode(),
    "blanks in cells": lambda one, _: _each_cell(one, lambda _row, _at, cell: _padded_cell(cell)).encode(),
    "blanks before cells": lambda one, _: _each_cell(one, lambda _row, at, cell: f" {cell}" if at else cell).encode(),
    "columns in another order": lambda one, chance: _columns(one, _shuffled(chance)).encode(),
    "empty lines at the end": lambda one, _: (one.text + "\n\n\n").encode(),
}


def _without_a_column(one: Original, chance: random.Random) -> bytes:
    seed = chance.random()
    return _columns(one, lambda columns: [at for at in columns if at != columns[int(seed * len(columns))]]).encode()


def _spoilt_cell(one: Original, chance: random.Random) -> bytes:
    return _one_number(one, chance, chance.choice(BAD_CELLS)).encode()


def _short_row(one: Original, chance: random.Random) -> bytes:
    """The last cells of a row are cut off."""
    records = records_of(one.text)
    first, last = chance.choice(list(tables_of(one)))
    place = chance.randint(min(first + 1, last), last)
    cells = cells_of(records[place], one.delimiter)
    records[place] = one.delimiter.join(cells[: chance.randrange(1, len(cells))])
    return "\n".join(records).encode()


def _header_again(one: Original, chance: random.Random) -> bytes:
    records = records_of(one.text)
    first, _ = chance.choice(list(tables_of(one)))
    return "\n".join([*records[: first + 1], records[first], *records[first + 1 :]]).encode()


# What comes out of these is what comes out of the original, or less.
LESS: dict[str, Mutation] = {
    "a column missing": _without_a_column,
    "a cell spoilt": _spoilt_cell,
    "a row cut short": _short_row,
    "the heading twice": _header_again,
}


def _twice_a_column(one: Original, chance: random.Random) -> bytes:
    seed = chance.random()
    return _columns(one, lambda columns: [*columns, *columns[int(seed * len(columns)) :][:1]]).encode()


def _swapped_headings(one: Original, chance: random.Random) -> bytes:
    records = records_of(one.text)
    first, _ = chance.choice(list(tables_of(one)) or [(0, 0)])
    cells = [*cells_of(records[first], one.delimiter or ":"), ""]
    a, b = chance.sample(range(len(cells)), 2)
    cells[a], cells[b] = cells[b], cells[a]
    records[first] = one.delimiter.join(cells)
    return "\n".join(records).encode()


def _doubled_row(one: Original, chance: random.Random) -> bytes:
    lines = one.text.split("\n")
    place = chance.randrange(len(lines))
    return "\n".join([*lines[: place + 1], lines[place], *lines[place + 1 :]]).encode()


def _open_quote(one: Original, chance: random.Random) -> bytes:
    """A quotation mark too many, or one too few."""
    quotes = [match.start() for match in re.finditer('"', one.text)]
    place = chance.choice(quotes) if quotes and chance.random() < 0.5 else chance.randrange(len(one.text))
    return (one.text[:place] + ('"' if one.text[place] != '"' else "") + one.text[place + (one.text[place] == '"') :]).encode()


def _cut(one: Original, chance: random.Random) -> bytes:
    return one.text[: chance.randrange(len(one.text))].encode()


def _huge(one: Original, chance: random.Random) -> bytes:
    return _one_number(one, chance, chance.choice(HUGE)).encode()


def _cut_line(one: Original, chance: random.Random) -> bytes:
    lines = one.text.split("\n")
    place = chance.randrange(len(lines))
    lines[place] = lines[place][: chance.randrange(len(lines[place]) + 1)]
    return "\n".join(lines).encode()


_FOREIGN = (b"", b"\0", b"\xff", b"\xff\xfe", b"\x0c", b"\xe2\x80\xa8")
_WORDS = ("{", "]", "#", "%", "<", "-", ",", "\n", "'", '""', "TABLE,", "==", "AI ", "nan", "inf", "1e308", "1e-320")


def _splinter(one: Original, chance: random.Random) -> bytes:
    data = one.text.encode()
    splinter = chance.choice((*_FOREIGN, *(word.encode() for word in _WORDS)))
    place = chance.randrange(len(data) + 1)
    return data[:place] + splinter + data[place + chance.choice((0, 1, 5, 40)) :]


OTHER: dict[str, Mutation] = {
    "a column twice": _twice_a_column,
    "two headings swapped": _swapped_headings,
    "a row twice": _doubled_row,
    "a quote not closed": _open_quote,
    "cut": _cut,
    "a line cut": _cut_line,
    "a number huge or zero": _huge,
    "bytes of something else": _splinter,
    "half in another encoding": lambda one, _: one.text.encode("utf-16"),
    "UTF-16, an odd byte": lambda one, _: one.text.encode("utf-16") + b"x",
}
