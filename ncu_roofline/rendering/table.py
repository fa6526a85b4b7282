"""A table of texts and its printers, for a terminal of some width and as Markdown, and the texts around tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, groupby, zip_longest
from operator import attrgetter

from ncu_roofline.base.groups import grouped
from ncu_roofline.base.texts import clean, one_line, shorten

BOLD, DIM, GREEN, YELLOW, RED = "\33[1m", "\33[2m", "\33[32m", "\33[33m", "\33[31m"
_RESET = "\33[0m"
_GAP, _CUT, _PARAMETERS = "  ", "...", "..)"
_FIRST_LEAST, _BEGINNING = 8, 5  # characters that the first column keeps, and of a name before what tells it apart
_CODE_LEAST, _CODE_PART, _CODE_MOST = 24, 0.3, 100  # characters of code; the part of a line that numbers leave it
EIGHTHS = "\N{LOWER ONE EIGHTH BLOCK}\u2582\u2583\u2584\u2585\u2586\u2587\N{FULL BLOCK}"
PARTS = " \u258f\u258e\u258d\u258c\u258b\u258a\u2589"
# What Markdown takes for markup, and of that what needs entities rather than backslashes, as GitHub's own additions (links,
# emoji, formulas, cells) look before escapes.
_MARKUP = r"[\\*_{}\[\]()#!~^<>&@$|`\"]|^[-+=]|:(?! )|(?<=[wW]{3})\."
_ENTITIES = '<>&@$|`":.'


def columns_wide(text: str) -> int:
    """Columns that ``text`` takes in a terminal."""
    if text.isascii() or max(text) < "\u0300":  # no letter below takes more than one or none
        return len(text)
    from unicodedata import category, east_asian_width

    marks = ("Mn", "Me", "Cf")  # which stand over others, or nowhere
    return sum(0 if category(one) in marks else 1 + (east_asian_width(one) in "WF") for one in text)


@dataclass(frozen=True)
class TextColumn:
    """A column of a Table: its header and the texts of all rows, of which only what can be printed is kept, each on one
    line."""

    header: str
    cells: Sequence[str]
    left: bool = False
    spare: int = 0  # > 0 if it may go where room is short, highest first
    most: int = 0  # > 0 if longer texts are cut to that
    group: tuple[str, ...] = ()  # what stands over it and its neighbours of the same group, from complete to terse
    colours: Sequence[str] = ()  # one for each row, "" for none
    own: bool = False  # its texts hold no markup and nothing from outside, so that Markdown takes them as they are
    code: bool = False  # the last column, which takes what the others leave; of longer texts the beginning is shown

    def __post_init__(self) -> None:
        object.__setattr__(self, "header", one_line(self.header))
        object.__setattr__(self, "cells", [one_line(cell) for cell in self.cells])

    @cached_property
    def wide(self) -> int:
        """Columns of a terminal that it takes."""
        natural = max(map(columns_wide, [self.header, *self.cells]))
        return min(natural, self.most) if self.most else natural

    def padded(self, texts: Iterable[str], size: int, colours: Sequence[str] = ()) -> Iterator[str]:
        """``texts`` cut and padded to ``size``."""
        for text, colour in zip_longest(texts, colours, fillvalue=""):
            shown = fitted(text, size)
            padding = " " * (size - columns_wide(shown))
            shown = f"{colour}{shown}{_RESET}" if colour else shown
            yield shown + padding if self.left else padding + shown


def fitted(text: str, size: int) -> str:
    """``text`` cut in its middle to ``size`` columns of a terminal; wide characters take two."""
    shown, most = text, size
    while columns_wide(shown) > size:
        shown, most = shorten(text, most), most - 1
    return shown


@dataclass(frozen=True)
class Table:
    """Columns side by side; the first names the rows."""

    columns: tuple[TextColumn, ...]
    steps: tuple[tuple[int, int], ...] = ((16, 1),)  # (least, spare): these go while the first has less than ``least``

    @cached_property
    def widths(self) -> list[int]:
        """Of the columns; the last of a group takes what the shortest name of the group needs beyond them."""
        found: list[int] = []
        for group, members in groupby(self.columns, key=attrgetter("group")):
            sizes = [column.wide for column in members]
            sizes[-1] += max(len(group[-1]) - _total(sizes), 0) if group else 0
            found += sizes
        return found

    @property
    def total(self) -> int:
        """Characters of a line."""
        return _total(self.widths)

    def fitted(self, width: int) -> Table:
        """What of it fits into ``width``: columns that matter least go first, then texts of the first one are cut."""
        *others, last = self.columns
        if last.code and others:
            before = replace(self, columns=tuple(others)).fitted(width - _code_in(last, width) - len(_GAP))
            room = min(max(width - before.total - len(_GAP), len(last.header)), _CODE_MOST)
            cells = []
            for cell in last.cells:
                shown = cell[:room]
                while columns_wide(shown) > room:
                    shown = shown[:-1]
                cells.append(cell if shown == cell else f"{shown[: -len(_CUT)]}{_CUT}")
            return replace(before, columns=(*before.columns, replace(last, cells=cells)))
        table, first = self, self.columns[0]
        for least, cheap in self.steps:
            while width - table.total + table.widths[0] < min(least, first.wide):
                spare = max(table.columns, key=attrgetter("spare"))
                if spare.spare < cheap:
                    break
                table = replace(table, columns=tuple(column for column in table.columns if column is not spare))
        room = max(width - table.total + table.widths[0], _FIRST_LEAST)
        return replace(table, columns=(replace(first, most=min(first.wide, room)), *table.columns[1:]))

    def missing(self, shown: Table) -> tuple[list[str], int]:
        """The headers of the columns that it has no more when it is ``shown``, and the next width that has them all."""
        there = {column.header for column in shown.columns}
        first, *others = (column for column in self.columns if column.header.strip())
        gone = [column.header for column in (first, *others) if column.header not in there]
        code = next((column for column in others if column.code), None)
        numbers = replace(self, columns=tuple(column for column in (first, *others) if column is not code))
        need = numbers.total - first.wide + min(self.steps[0][0], first.wide)
        widths = count(-(-need // 10) * 10, 10)
        return gone, next(width for width in widths if not code or need + len(_GAP) + _code_in(code, width) <= width)

    def head(self, color: bool = False) -> list[str]:
        """The lines of headers, below those of groups if there are any."""
        groups, pairs = [], list(zip(self.columns, self.widths, strict=True))
        for group, members in groupby(pairs, key=lambda pair: pair[0].group):
            total = _total([size for _, size in members])
            groups.append(f"{next((text for text in group if len(text) <= total), ''):>{total}}")
        headers = [next(column.padded([column.header], size)) for column, size in pairs]
        lines = (_GAP.join(parts).rstrip() for parts in (groups, headers))
        return [f"{BOLD}{line}{_RESET}" if color else line for line in lines if line]

    def body(self, color: bool = False) -> list[str]:
        """The lines of its rows."""
        columns = zip(self.columns, self.widths, strict=True)
        padded = (column.padded(column.cells, size, column.colours if color else ()) for column, size in columns)
        return [_GAP.join(parts).rstrip() for parts in zip(*padded, strict=True)]


def _total(sizes: Sequence[int]) -> int:
    return sum(sizes) + len(_GAP) * (len(sizes) - 1)


def _code_in(column: TextColumn, width: int) -> int:
    """Characters that a column of code should have at least."""
    return min(column.wide, max(_CODE_LEAST, int(_CODE_PART * width)))


def terminal(table: Table, width: int, *, color: bool = False) -> list[str]:
    """Headers, rule and rows, no wider than ``width``."""
    shown = table.fitted(width)
    return [*shown.head(color), "-" * min(shown.total, width), *shown.body(color)]


def listing(rows: Sequence[Mapping[str, str]], header: Callable[[str], str] = str.upper) -> list[str]:
    """Rows of any width as lines under their keys, all to the left; [] of none."""
    table = Table(tuple(TextColumn(header(key), [row[key] for row in rows], left=True) for key in (rows[0] if rows else ())))
    return [*table.head(), *table.body()]


def cut_apart(names: Iterable[str], most: int) -> dict[str, str]:
    """Each name in ``most`` characters: their beginning stays, and what tells them apart, else numbers: ``nodeByPoint5(..)
    #1``."""
    found = {name: cut(name, most) for name in names}
    alike = grouped((name[: most // 2], name) for name in found if found[name] != name)
    for members in alike.values():
        if len(members) > 1 and not any("(" in name for name in members):
            places = enumerate(zip(*members, strict=False))
            start = next((place for place, letters in places if len(set(letters)) > 1), min(map(len, members)))
            for name in members:  # its beginning and this end of it
                first = max(_BEGINNING, most - len(_CUT) - len(name) + start)
                apart = f"{name[:first]}{_CUT}{shorten(name[start:], most - len(_CUT) - first)}"
                found[name] = shorten(name, most) if first > start else apart
    for members in grouped((text, name) for name, text in found.items()).values():
        for number, name in enumerate(members if len(members) > 1 else (), 1):
            found[name] = f"{cut(name, most - len(f' #{number}'))} #{number}"
    return found


def cut(name: str, most: int) -> str:
    """A name in ``most`` characters: parameters go first, then the middle of the function's name."""
    function, bracket, parameters = name.partition("(")
    room = most - len(function) - len(_PARAMETERS) - 1
    if len(name) <= most or not function or room < 0:
        return shorten(name if len(name) <= most else function or name, most)
    return f"{function}{bracket}{parameters[:room].partition(_CUT)[0].rstrip(' ,')}{_PARAMETERS}"


def told_apart(table: Table) -> tuple[Table, list[str]]:
    """The table, whose first column has names, with these cut such that they differ; and what the numbered ones are in full."""
    names = table.columns[0]
    short = cut_apart(names.cells, table.widths[0])
    columns = (replace(names, cells=[short[name] for name in names.cells]), *table.columns[1:])
    return replace(table, columns=columns), numbered(short)


def numbered(cuts: Mapping[str, str]) -> list[str]:
    """What the names with numbers are in full, for a line below the table."""
    return [f"{text}: {name}" for name, text in cuts.items() if " #" in text and " #" not in name]


def as_shown(line: str) -> str:
    """``line`` as `one_line`, but for the colours of a table."""
    if line.isprintable():
        return line
    pieces = re.split("(\33\\[(?:[0-2]|3[1-3])m)", line)
    return "".join(piece if place % 2 else one_line(piece) for place, piece in enumerate(pieces))


def wrapped(text: str | Iterable[str], width: int, indent: str = "", *, first: str = "", whole: bool = False) -> list[str]:
    """Lines of at most ``width``: each text behind ``first``, then ``indent``; longer words are cut or stay ``whole``.

    `textwrap` takes nine times the time."""
    lines: list[str] = []
    for part in [text] if isinstance(text, str) else text:
        words, start = " ".join(one_line(part).split()), first
        while words:
            most = max(width - len(start), 1)
            end = len(words) if len(words) <= most else words.rfind(" ", 0, most + 1)
            if words.startswith(" %", end):  # a number and its sign stay together
                end = max(words.rfind(" ", 0, end), 0) or end
            if end < 0:
                end = most if not whole else words.find(" ") if " " in words else len(words)
            lines.append(start + words[:end])
            words, start = words[end:].lstrip(), indent
    return lines


def command_lines(command: str, width: int, first: str = "  ") -> list[str]:
    """A command for a shell behind ``first``, in lines of at most ``width`` that end with a backslash: they can be copied.

    It is broken between words, and longer lists behind their commas: there the next line begins without blanks, as the shell
    joins them.  What is quoted is never broken."""
    lines = [first]
    for word in re.findall(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+""", command):
        pieces = re.findall("[^,]+,?", word) if len(word) > width - 10 and re.fullmatch(r"[\w.,:]+", word) else [word]
        for place, piece in enumerate(pieces):
            blank = " " if not place and lines[-1] != first else ""
            if lines == [first] or len(f"{lines[-1]}{blank}{piece} \\") <= width:
                lines[-1] += blank + piece
            else:
                lines[-1] += f"{blank}\\"
                lines.append(piece if place else f"      {piece}")
    return lines


def blocks_text(blocks: Iterable[Iterable[str]], ascii_only: bool = False) -> str:
    """Blocks of lines with an empty line between those that hold any."""
    text = "\n\n".join("\n".join(map(as_shown, block)) for block in map(list, blocks) if block)
    if not ascii_only:
        return text
    known: dict[str, str | int | None] = {"\N{MIDDLE DOT}": "-", "\N{MICRO SIGN}": "u", "\N{MULTIPLICATION SIGN}": "x"}
    known |= {"\N{INFINITY}": "inf", "\N{RIGHTWARDS ARROW}": "->"}
    known |= dict.fromkeys(PARTS[1:], "#") | dict(zip(EIGHTHS, ".,:-=+*#", strict=True))
    return text.translate(str.maketrans(known)).encode("ascii", "replace").decode()


def escape(text: str) -> str:
    """``text`` as Markdown that shows it literally: no markup, no html, no links, no formulas, no line ends.

    A zero-width space keeps a mention (@name) from being one: GitHub and GitLab look for these after escapes are undone."""
    text = re.sub(r"@(?=\w)", "@\N{ZERO WIDTH SPACE}", clean(text))
    return re.sub(_MARKUP, lambda found: f"&#{ord(found[0])};" if found[0] in _ENTITIES else f"\\{found[0]}", text)


def markdown(table: Table) -> str:
    """The table as GitHub knows them, complete; texts are escaped, headers are not."""
    columns = table.columns
    rows = zip(*(column.cells if column.own else map(escape, column.cells) for column in columns), strict=True)
    lines = [[column.header for column in columns], [":--" if column.left else "--:" for column in columns], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def bullets(texts: Iterable[str]) -> str:
    """A list in Markdown, each text escaped."""
    return "\n".join(f"- {escape(text)}" for text in texts)


def markdown_document(blocks: Iterable[str]) -> bytes:
    """Blocks of Markdown that are not empty as a document."""
    return ("\n\n".join(filter(None, blocks)) + "\n").encode("utf-8", "replace")
