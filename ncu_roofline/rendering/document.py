"""What an analysis shows, said once: columns, tables, sentences and notes; and how they become text for people.

A terminal and Markdown are made here, csv, json and parquet of the same columns in ``rendering.data``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ncu_roofline.base.texts import clean
from ncu_roofline.base.units import UNITS, factor, format_value, percent
from ncu_roofline.rendering import table as layout
from ncu_roofline.rendering.kernel_names import told_apart
from ncu_roofline.rendering.table import TextColumn, wrapped

NARROWEST = 60
"""Characters of a line that every terminal has."""
MISSING, ALIKE = "missing", "alike"


@dataclass(frozen=True)
class Column:
    """One column: the schema of csv, json and parquet, and what people see of it.

    ``dtype``: str, int or float; "text" is what people see of numbers, which no file has: to the right as these.
    ``unit`` is a key of UNITS; "flop" stands for what the row's own ``unit`` says, where it has one.
    ``label``: what stands above it, "" for its name.  Where it holds "{unit}" the units stand there and not in the cells; other
    words in braces are those of the table.
    ``priority`` > 0 if it may go where a terminal is narrow, highest first.
    ``form``: a key of FORMS, where the unit does not tell how a ratio is written; "count" of a number with thousands apart.
    ``words``: what people call a value.
    ``to``: the column that holds the other end, where a cell is from one value to another.
    ``missing``: what a missing value reads.  None is no missing value: it does not apply, and the cell is empty.
    ``omit``: left out where all rows have this value; MISSING: where all lack one; ALIKE: where all have the same.
    """

    name: str
    dtype: str
    unit: str
    meaning: str
    label: str = ""
    priority: int = 0
    form: str = ""
    digits: int = 3
    to: str = ""
    words: Callable[[str], str] | None = None
    missing: str | None = None
    omit: object = None


@dataclass(frozen=True)
class Table:
    """Rows under columns, the first of which names them: SI values, in the order in which people read them.

    ``show``: names of the columns that people see, in this order; those that nothing is in are left out.
    ``words``: for what is in braces in labels.  ``legend``: what stands below the table.
    ``tells``: whether it says there which columns had no room.
    """

    name: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]
    show: Sequence[str]
    title: str = ""
    words: Mapping[str, str] = field(default_factory=dict)
    legend: str = ""
    tells: bool = False


@dataclass(frozen=True)
class Note:
    """What must be known of the whole, or of a part of it: then ``subject`` says of which kind, as "kernel"."""

    text: str
    subject: str = ""


Lines = tuple[str, ...]


@dataclass(frozen=True)
class Document:
    """What is said first on the whole and then on single rows, a line of facts, tables, lines of text and parts, and notes.

    A part is a document of its own, as that of one of several GPUs.
    """

    title: str
    facts: str = ""
    sentences: Sequence[str] = ()
    blocks: Sequence[Table | Lines | Document] = ()
    notes: Sequence[Note] = ()


FORMS: Mapping[str, Callable[[float], str]] = {
    "": percent,
    "factor": factor,
    "percent": lambda value: "n/a" if math.isnan(value) else f"{100 * value:.2f} %",  # as the papers print it
    "plain": lambda value: f"{value:.2f}" if math.isfinite(value) else "n/a",
}
"""How a ratio is written."""


def text_of(column: Column, value: Any, unit: str, bare: bool = False) -> str:
    """One value for people; ``bare`` without its unit."""
    if value is None:
        return ""
    if isinstance(value, str):
        text = column.words(value) if column.words and value else clean(value)
        return text or column.missing or ""
    if isinstance(value, int):
        return column.missing or "" if value < 0 else f"{value:,}" if column.form == "count" else str(value)
    if math.isnan(value) and column.missing is not None:
        return column.missing
    if unit == "ratio":
        return FORMS[column.form](value)
    if bare and 1000 <= value < 1e6:
        return f"{value:.0f}"
    text = format_value(value, unit, column.digits)
    return text.removesuffix(UNITS[unit].symbol).rstrip() if bare else text


def _span(low: str, high: str) -> str:
    """From one text to another, once where they are the same, with the unit of both behind the second."""
    unit = high[high.rfind(" ") :] if " " in high else ""
    return high if low == high else f"{low.removesuffix(unit)}-{high}"


def _lacks(value: Any) -> bool:
    return value is None or value in ("", -1) or value != value


def _omitted(column: Column, values: Sequence[Any]) -> bool:
    if column.omit == MISSING:
        return all(map(_lacks, values))
    return len(set(values)) < 2 if column.omit == ALIKE else column.omit is not None and set(values) <= {column.omit}


def text_columns(table: Table) -> list[TextColumn]:
    """What people see of a table, as texts."""
    declared, found = {column.name: column for column in table.columns}, []
    for column in map(declared.__getitem__, table.show):
        values = [row[column.name] for row in table.rows]
        if _omitted(column, values):
            continue
        own = column.unit.startswith("flop")
        units = [f"{row['unit']}{column.unit[4:]}" if own and row.get("unit") else column.unit for row in table.rows]
        label, bare = column.label or column.name, "{unit}" in column.label
        symbols = " or ".join(dict.fromkeys(UNITS[unit].symbol for unit in units)) if bare else ""
        texts = [text_of(column, value, unit, bare) for value, unit in zip(values, units, strict=True)]
        label = label.format(**{**table.words, "unit": symbols})
        if column.to:
            ends = (text_of(column, row[column.to], unit, bare) for row, unit in zip(table.rows, units, strict=True))
            texts = list(map(_span, texts, ends))
        if any(texts):
            found.append(TextColumn(label, texts, left=column.dtype == "str", spare=column.priority))
    return found


def terminal(document: Document, *, width: int = 100, color: bool = False, ascii_only: bool = False, top: int = 0) -> str:
    """A document for a terminal of ``width`` characters (60 at least); ``top``: rows of each table, 0 for all."""
    blocks = _blocks(document, max(width, NARROWEST), color, top, inside=False)
    return layout.blocks_text(blocks, ascii_only)


def _blocks(document: Document, width: int, color: bool, top: int, *, inside: bool) -> Iterator[list[str]]:
    facts = wrapped(document.facts, width)
    said = [line for text in document.sentences[:1] for line in wrapped(text, width)]
    said += [line for text in document.sentences[1:] for line in wrapped(text, width, "    ", first="  ")]
    yield from ([facts, said] if inside else [said, facts])
    for block in document.blocks:
        if isinstance(block, Document):
            yield from _blocks(block, width, color, top, inside=True)
        elif isinstance(block, tuple):
            yield wrapped(block, width, "  ")
        elif block.rows:
            yield _table(block, width, color, top)
    yield wrapped([note.text for note in document.notes if not note.subject], width)
    yield wrapped([f"- {note.text}" for note in document.notes if note.subject], width, "  ")


def _table(table: Table, width: int, color: bool, top: int) -> list[str]:
    more = len(table.rows) - (top or len(table.rows))
    columns = tuple(replace(column, cells=column.cells[: top or None]) for column in text_columns(table))
    shown = told_apart(layout.Table(columns).fitted(width))
    lines = layout.terminal(shown, width, color=color)
    lines = [f"{table.title}:", *lines] if table.title else lines
    lines += [f"and {more:,} more; --all shows them"] if more > 0 else []
    absent = ", ".join(column.header for column in columns if column.header not in [one.header for one in shown.columns])
    if absent and table.tells:
        lines += wrapped(f"No room for {absent}: a wider terminal, csv and json have them.", width)
    return lines + wrapped(table.legend, width)


def markdown(document: Document) -> bytes:
    """A document as GitHub and GitLab know them; whatever comes from a report is escaped."""
    return layout.markdown_document(_markdown(document, "#"))


def _markdown(document: Document, level: str) -> Iterator[str]:
    yield f"{level} {layout.escape(document.title)}"
    yield layout.bullets(document.sentences)
    yield layout.escape(document.facts)
    for place, block in enumerate(document.blocks):
        if isinstance(block, Document):
            yield from _markdown(block, f"{level}#")
        elif isinstance(block, tuple):
            yield layout.bullets(line.removeprefix("- ") for line in block)
        elif block.rows:
            yield f"{level}# {block.title or block.name.capitalize()}" if place else ""
            yield layout.markdown(layout.Table(tuple(sorted(text_columns(block), key=lambda one: not one.left))))
            yield layout.escape(block.legend)
    if document.notes:
        yield f"{level}# Notes"
        yield layout.bullets(note.text for note in document.notes)
