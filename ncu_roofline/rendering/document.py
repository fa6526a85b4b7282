"""What an analysis shows, said once: columns, tables, sentences and notes; and how they become text for people.

A terminal and Markdown are made here, csv, json and parquet of the same columns in ``rendering.frames``.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import Any

from ncu_roofline.base.texts import clean
from ncu_roofline.base.units import UNITS, factor, format_value, percent
from ncu_roofline.rendering import table as layout
from ncu_roofline.rendering.table import TextColumn, wrapped

NARROWEST = 60
"""Characters of a line that every terminal has."""
_NARROW, _WIDE = 80, 100  # characters of a line: below, labels are short; from the second on, names of rows are worth more than
_READABLE = ((24, 1),)  # a second line of numbers
_LEAST = 14  # characters of a name beside details
MISSING, ALIKE = "missing", "alike"
_SLICES, _BAR = 26, 8  # marks of a sparkline on a narrow terminal, characters of a whole bar
Lines = tuple[str, ...]


@dataclass(frozen=True)
class Column:
    """One column: the schema of csv, json and parquet, and what people see of it.

    Where a label or group holds "{unit}" the units stand there and not in the cells; other words in braces are the table's.
    ``form``: a key of FORMS, where the unit does not tell how a ratio is written; "count" of a number with thousands apart,
    "hex" of one with these digits, "sparkline" of several ratios, "bar" of one beside the largest of the column.
    """

    name: str
    dtype: str  # str, int or float; "text" is what people see of numbers, which no file has: to the right as these
    unit: str  # a key of UNITS; "flop" stands for what the row's own ``unit`` says, where it has one
    meaning: str
    label: str = ""  # what stands above it, "" for its name
    priority: int = 0  # > 0 if it may go where a terminal is narrow, highest first
    form: str = ""
    digits: int = 3
    to: str = ""  # the column that holds the other end, where a cell is from one value to another
    words: Callable[[str], str] | None = None  # what people call a value
    missing: str | None = None  # what a missing value reads; None is none: it does not apply, and the cell is empty
    omit: object = None  # left out where all rows have this value; MISSING: where all lack one; ALIKE: all have the same
    long: str = ""  # the label in Markdown, if it differs
    short: str = ""  # on a narrow terminal
    group: tuple[str, ...] = ()  # what stands over it and its neighbours of the same group, from complete to terse
    most: tuple[int, int] = (0, 0)  # characters of a cell, on a narrow terminal and on others; 0 for all
    code: bool = False  # the last column, lines of code: it takes what the others leave
    colour: Callable[[Mapping[str, Any]], str] | None = None  # of a cell on a terminal, by its row

    @classmethod
    def text(cls, name: str, meaning: str, label: str = "", priority: int = 0, **more: Any) -> Column:
        return cls(name, "str", "", meaning, label, priority, **more)

    @classmethod
    def integer(cls, name: str, meaning: str, label: str = "", priority: int = 0, **more: Any) -> Column:
        return cls(name, "int", "", meaning, label, priority, **more)

    @classmethod
    def number(cls, name: str, unit: str, meaning: str, label: str = "", priority: int = 0, **more: Any) -> Column:
        return cls(name, "float", unit, meaning, label, priority, **more)


@dataclass(frozen=True)
class Table:
    """Rows under columns, the first of which names them: SI values, in the order in which people read them."""

    name: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]
    show: Sequence[str]  # columns that people see, in this order; those that nothing is in are left out
    title: str = ""
    words: Mapping[str, str] = field(default_factory=dict)  # for what is in braces in labels
    legend: str | Lines = ""  # below it
    tells: str = ""  # what it says there of columns without room: {names}, and the {width} that has them
    detail: Table | None = None  # a table of the parts of rows: side by side with it where there is room
    parts: Sequence[int] = ()  # how many of them each row has, in this order
    weight: str = ""  # the column of the share of the time, for what is said of rows that are left out
    first: Sequence[str] = ()  # columns that Markdown begins with, unless these are all texts
    steps: tuple[tuple[int, int], ...] = ((16, 1),)  # as of `rendering.table.Table`
    about: str = ""  # above it on a terminal, unless that is its title, and in Markdown below the title
    ruled: bool = True  # whether a line stands below its headers


@dataclass(frozen=True)
class Note:
    """What must be known of the whole, or of a part of it: then ``subject`` says of which kind, as "kernel"."""

    text: str
    subject: str = ""


@dataclass(frozen=True)
class Section:
    """Lines, with what stands ``about`` and below them, under a title that only Markdown shows."""

    lines: Sequence[str] = ()
    title: str = ""
    about: str = ""
    legend: Lines = ()
    hanging: bool = True  # whether what a terminal breaks goes on further to the right
    inside: bool = False  # whether lines begin there, too
    late: bool = False  # whether Markdown has them behind everything else


@dataclass(frozen=True)
class Document:
    """What is said first on the whole and then on single rows, a line of facts, tables, lines of text and parts (documents, as
    that of one of several GPUs), and notes."""

    title: str
    facts: str = ""
    sentences: Sequence[str] = ()
    blocks: Sequence[Table | Lines | Section | Document] = ()
    notes: Sequence[Note] = ()


FORMS: Mapping[str, Callable[[float], str]] = {
    "": percent,
    "factor": factor,
    "percent": lambda value: "n/a" if math.isnan(value) else f"{100 * value:.2f} %",  # as the papers print it
    "share": lambda value: "0 %" if value == 0 else percent(value),  # "0 %" is counted, "n/a" is not
    "change": lambda value: f"{'+' * (value > 0)}{percent(value)}",
    "plain": lambda value: f"{value:.2f}" if math.isfinite(value) else "n/a",
}
"""How a ratio is written."""


def columns_of(stated: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[Column, ...]]:
    """The columns of a file of `data/columns`, as read, by table, in its order.

    A row is ``column = [unit, meaning, what people see of it]``, the last the other fields of a `Column` where some differ; the
    unit of texts is "text", that of whole numbers "integer", and that of texts of numbers, to the right as these, "cell".  The
    row of a table's name that holds a text stands for the columns of that table, which is above.
    """
    dtypes = {"text": "str", "integer": "int", "cell": "text"}
    found: dict[str, tuple[Column, ...]] = {}
    for table, rows in stated.items():
        columns: list[Column] = []
        for name, row in rows.items():
            if isinstance(row, str):
                columns += found[name]
                continue
            unit, meaning, *seen = row
            more: dict[str, Any] = {
                key: tuple(value) if isinstance(value, list) else value for one in seen for key, value in one.items()
            }
            columns.append(Column(name, dtypes.get(unit, "float"), "" if unit in dtypes else unit, meaning, **more))
        found[table] = tuple(columns)
    return found


def sparkline(values: Sequence[float], room: int) -> str:
    """A mark per value from 0 to 100 %, "?" where it is unknown; of more values than there is ``room`` the means of some."""
    each, marks = math.ceil(len(values) / max(room, 1)), ""
    for start in range(0, len(values), each):
        known = [value for value in values[start : start + each] if math.isfinite(value)]
        marks += layout.EIGHTHS[min(int(8 * sum(known) / len(known)), 7)] if known else "?"
    return marks


def bars(shares: Sequence[float]) -> list[str]:
    """Bars as long as the shares are, the largest of them whole."""
    largest = max((share for share in shares if share > 0), default=math.nan)
    parts = [math.ceil(8 * _BAR * share / largest) if share > 0 else 0 for share in shares]
    return [f"{layout.EIGHTHS[-1] * (part // 8)}{layout.PARTS[part % 8].strip()}" for part in parts]


def text_of(column: Column, value: Any, unit: str, bare: bool = False) -> str:
    """One value for people; ``bare`` without its unit."""
    if value is None:
        return ""
    if isinstance(value, str):
        text = column.words(value) if column.words and value else clean(value)
        return text or column.missing or ""
    if isinstance(value, int):
        text = f"{value:,}" if column.form == "count" else f"{value:#x}" if column.form == "hex" else str(value)
        return column.missing or "" if value < 0 else text
    if math.isnan(value) and column.missing is not None:
        return column.missing
    if unit == "ratio":
        return FORMS[column.form](value)
    if not unit:
        return f"{value:.{column.digits}g}" if math.isfinite(value) else "n/a"
    if bare and 1000 <= value < 1e6:
        return f"{value:.0f}"
    text = format_value(value, unit, column.digits)
    return text.removesuffix(UNITS[unit].symbol).rstrip() if bare else text


def text_columns(table: Table, *, narrow: bool = False, wide: bool = False, compact: bool = False) -> dict[str, TextColumn]:
    """What people see of a table, as texts by column: for a ``narrow`` terminal, or Markdown, which is ``wide``; ``compact``:
    the units of rates stand above them, as far as they are the same."""
    declared = {column.name: column for column in table.columns}
    found: dict[str, TextColumn] = {}
    for column in map(declared.__getitem__, table.show):
        values = [row[column.name] for row in table.rows]
        if column.omit == MISSING:
            omitted = all(value is None or value in ("", -1) or value != value for value in values)
        else:
            omitted = column.omit is not None and (
                len(set(values)) < 2 if column.omit == ALIKE else set(values) <= {column.omit}
            )
        if omitted:
            continue
        by_row = column.unit.startswith("flop")
        units = [f"{row['unit']}{column.unit[4:]}" if by_row and row.get("unit") else column.unit for row in table.rows]
        label = (column.short if narrow else column.long if wide else "") or column.label or column.name
        bare = any("{unit}" in text for text in (label, *column.group))
        symbols = list(dict.fromkeys(UNITS[unit].symbol for unit in units)) if bare or (compact and by_row) else []
        if compact and by_row and not bare:
            label, bare = symbols[0] if len(symbols) == 1 else "work/s", True
        words = {**table.words, "unit": " or ".join(symbols)}
        label, *group = (text.format(**words) for text in (label, *column.group))
        if wide and group and bare:
            label = f"{layout.escape(label)} [{words['unit']}]"
        if column.form == "sparkline":
            values = [sparkline(value, _SLICES if narrow else len(value)) for value in values]
        values = bars(values) if column.form == "bar" else values
        texts = [text_of(column, value, unit, bare) for value, unit in zip(values, units, strict=True)]
        if column.to:  # from one text to another, once where they are the same, with the unit of both behind the second
            ends = [text_of(column, row[column.to], unit, bare) for row, unit in zip(table.rows, units, strict=True)]
            own = [high[high.rfind(" ") :] if " " in high else "" for high in ends]
            spans = zip(texts, ends, own, strict=True)
            texts = [high if low == high else f"{low.removesuffix(unit)}-{high}" for low, high, unit in spans]
        if any(texts):
            group += ["work/B"] if bare and group and len(symbols) > 1 else []
            colours = [column.colour(row) for row in table.rows] if column.colour else ()
            left, most = column.dtype == "str", column.most[not narrow]
            more: dict[str, Any] = {"colours": colours, "own": not left, "code": column.code}
            found[column.name] = TextColumn(label, texts, left, column.priority, most, tuple(group), **more)
    return found


def _flat(
    table: Table, about: Iterable[TextColumn], work: Iterable[TextColumn], *, again: bool = False
) -> tuple[TextColumn, ...]:
    """A line for each detail: what is said of a row stands on the first of its lines, or ``again`` on each."""
    rows: list[int] = []
    details: list[int] = []
    numbers = count()
    for place, parts in enumerate(table.parts):
        rows += [place, *([place if again else -1] * (parts - 1))]
        details += [next(numbers) for _ in range(parts)] or [-1]

    def spread(column: TextColumn, places: Sequence[int]) -> TextColumn:
        cells, colours = (["" if at < 0 else of[at] for at in places] if of else () for of in (column.cells, column.colours))
        return replace(column, cells=cells, colours=colours)

    return (*(spread(column, rows) for column in about), *(spread(column, details) for column in work))


def _panes(table: Table, width: int) -> list[layout.Table]:
    """A table with a line for each detail, where that has room for as much as one line for a row and one for each detail."""
    narrow = width < _NARROW
    about = tuple(text_columns(table, narrow=narrow).values())
    if not table.detail or not table.detail.rows:
        return [layout.Table(about, table.steps).fitted(width)]
    work, short = (tuple(text_columns(table.detail, narrow=narrow, compact=each).values()) for each in (False, True))
    first = replace(work[0], header=f"  {work[0].header}", cells=[f"  {text}" for text in work[0].cells], spare=0)
    apart = [layout.Table(columns, table.steps).fitted(width) for columns in (about, (first, *work[1:]))]
    for columns in (short,) if narrow else (work, short):
        steps = _READABLE if width >= _WIDE else table.steps
        flat = layout.Table(_flat(table, about, columns), steps).fitted(width)
        whole = flat.total <= width and flat.widths[0] >= min(_LEAST, about[0].wide)
        if whole and len(flat.columns) >= sum(len(pane.columns) for pane in apart):
            return [flat]
    return apart


def terminal(document: Document, *, width: int = 100, color: bool = False, ascii_only: bool = False, top: int = 0) -> str:
    """A document for a terminal of ``width`` characters (60 at least); ``top``: rows of each table, 0 for all."""
    blocks = _blocks(document, max(width, NARROWEST), color, top, inside=False)
    return layout.blocks_text(blocks, ascii_only)


def _blocks(document: Document, width: int, color: bool, top: int, *, inside: bool) -> Iterator[list[str]]:
    facts = wrapped(document.facts, width)
    said = [line for text in document.sentences[:1] for line in wrapped(text, width, "    " * (text == document.title))]
    said += [line for text in document.sentences[1:] for line in wrapped(text, width, "    ", first="  ")]
    yield from ([facts, said] if inside else [said, facts])
    for block in document.blocks:
        if isinstance(block, Document):
            yield from _blocks(block, width, color, top, inside=True)
        elif isinstance(block, tuple):
            yield wrapped(block, width, "  ")
        elif isinstance(block, Section):
            lines = wrapped(block.lines, width, "  " * (block.hanging + block.inside), first="  " * block.inside)
            yield [*wrapped(block.about, width, "  "), *lines, *wrapped(block.legend, width, "  ")]
        elif block.rows:
            yield _table(block, width, color, top)
    yield wrapped([note.text for note in document.notes if not note.subject], width)
    yield wrapped([f"- {note.text}" for note in document.notes if note.subject], width, "  ")


def _table(table: Table, width: int, color: bool, top: int) -> list[str]:
    shown, rest = table, table.rows[top or len(table.rows) :]
    if rest:
        parts = table.parts[:top]
        detail = replace(table.detail, rows=table.detail.rows[: sum(parts)]) if table.detail else None
        shown = replace(table, rows=table.rows[:top], parts=parts, detail=detail)
    panes = _panes(shown, width)
    panes[0], numbered = layout.told_apart(panes[0])
    lines = wrapped(table.about or (f"{table.title}:" if table.title else ""), width, "  ")
    lines += [line for pane in panes for line in pane.head(color)]
    lines += ["-" * min(max(pane.total for pane in panes), width)] if table.ruled else []
    bodies = [iter(pane.body(color)) for pane in panes]
    for below in shown.parts if len(panes) > 1 else [0] * len(panes[0].columns[0].cells):
        lines += [next(bodies[0]), *islice(bodies[-1], below)]
    lines = lines if color else [line[:width] for line in lines]
    lines += wrapped(numbered, width, "  ")
    if rest:
        known = [row[table.weight] for row in rest if math.isfinite(row[table.weight])] if table.weight else []
        share = f" ({percent(sum(known))} of the time)" if known else ""
        lines += [f"and {len(rest):,} more{share}; --all shows them"]
    if table.tells:
        names, enough = layout.Table(tuple(text_columns(shown).values()), table.steps).missing(panes[0])
        lines += wrapped(table.tells.format(names=", ".join(names), width=enough), width, "  ") if names else []
    return lines + wrapped(table.legend, width, "" if isinstance(table.legend, str) else "  ")


def markdown(document: Document) -> bytes:
    """A document as GitHub and GitLab know them; whatever comes from a report is escaped."""
    later: dict[str, list[str]] = {}
    blocks = list(_markdown(document, "#", later))
    if document.notes:
        later["Notes"] = [note.text for note in document.notes]
    blocks += [block for title, lines in later.items() if lines for block in (f"## {title}", layout.bullets(lines))]
    return layout.markdown_document(blocks)


def _markdown(document: Document, level: str, later: dict[str, list[str]]) -> Iterator[str]:
    """What sections with a title say goes into ``later``."""

    def above(text: str) -> str:
        return f"{layout.escape(text[:-1])}:" if text.endswith(":") else layout.escape(text)

    yield f"{level} {layout.escape(document.title)}"
    yield layout.bullets(text for text in document.sentences if text != document.title)
    yield layout.escape(document.facts)
    tables = 0
    for block in document.blocks:
        if isinstance(block, Document):
            yield from _markdown(block, f"{level}#", later)
        elif isinstance(block, tuple):
            yield layout.bullets(line.removeprefix("- ") for line in block)
        elif isinstance(block, Section) and block.late:
            later.setdefault(block.title, []).extend(block.lines)
        elif isinstance(block, Section):
            yield f"### {block.title}" if block.title else ""
            yield from (above(block.about), layout.bullets(block.lines), layout.bullets(block.legend))
        elif isinstance(block, Table) and block.rows:
            yield f"### {layout.escape(block.title or block.name.capitalize())}" if block.title or tables else ""
            tables += 1
            yield above(block.about) if block.about != block.title else ""
            yield _markdown_table(block)
            yield layout.escape(block.legend) if isinstance(block.legend, str) else layout.bullets(block.legend)


def _markdown_table(table: Table) -> str:
    """All of it; a row that has details on each of their lines."""
    columns = text_columns(table, wide=True)
    if table.detail and table.detail.rows:
        work = text_columns(table.detail, wide=True)
        flat = _flat(table, columns.values(), work.values(), again=True)
        columns = dict(zip([*columns, *work], flat, strict=True))
    first = table.first or [name for name, column in columns.items() if column.left]
    ordered = sorted(columns, key=lambda name: first.index(name) if name in first else len(first))
    name, *others = (columns[name] for name in ordered)
    blanks = [len(cell) - len(cell.lstrip()) for cell in name.cells]  # Markdown has none at the beginning of cells
    cells = [f"{'-' * (n // 2)} {cell[n:]}" if n else cell for n, cell in zip(blanks, name.cells, strict=True)]
    return layout.markdown(layout.Table((replace(name, cells=cells), *others)))


def text(document: Document, *, width: int = 120, ascii_only: bool = False) -> bytes:
    """A document for ``width`` characters as UTF-8 without colours."""
    return (terminal(document, width=width, ascii_only=ascii_only) + "\n").encode("utf-8", "replace")


def renderer(make: Callable[..., Document], form: str) -> Callable[..., bytes]:
    """What gives a document that ``make`` makes of frames as "md" or as "text": its options are those of both."""
    write = markdown if form == "md" else text
    own, more = ({**inspect.signature(each).parameters} for each in (make, write))
    of_commands = ("notes", "top", "warnings", *(("title",) if form == "text" else ()))
    own = {name: each for name, each in own.items() if name not in of_commands}
    del more["document"]

    def render(frames: Any, **options: Any) -> bytes:
        document = make(frames, **{name: value for name, value in options.items() if name in own})
        return write(document, **{name: value for name, value in options.items() if name in more})

    render.__signature__ = inspect.Signature([*own.values(), *more.values()])  # type: ignore[attr-defined]
    return render
