"""What prompts and notebooks show of a result: the answer in sentences, for notebooks the chart as an image, and a table."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from typing import Any

from ncu_roofline.analyses import analysis_of, figure_of, render
from ncu_roofline.base.texts import clean, listed, shorten
from ncu_roofline.model import Roofline
from ncu_roofline.model.roofline import as_percent
from ncu_roofline.rendering.document import Document, Section, Table, text_columns
from ncu_roofline.rendering.table import Table as TextTable
from ncu_roofline.rendering.table import TextColumn, wrapped

__all__ = ["as_html", "as_text", "figure_of"]

ROWS = 20
_LINES = 20  # of a prompt at most: its table is as long as the sentences leave room
_WIDTH = 100  # characters of a sentence's line
_ROWS_MIN = 5
_DEVICES = 3
_VARIANTS = 3  # of an application that have a sentence
_PLATFORMS = 100  # characters of their names


def as_text(result: Any) -> str:
    """A result at a prompt: what it has rows of, its GPUs, the sentences, and the first rows of its table."""
    devices = getattr(result, next(iter(result.counted))).get("device", ())
    named = listed((shorten(clean(str(name))) for name in devices if name), _DEVICES)
    sentences, table = said(result)
    whole, *others = sentences or [""]
    lines = [f"<{type(result).__name__}: {', '.join(result.counts())}{named and f'; {named}'}>", *wrapped(whole, _WIDTH)]
    lines += [line for one in others for line in wrapped(one, _WIDTH, "    ", first="  ")]
    columns, more = _glance(result, table, max(_LINES - len(lines) - 2, _ROWS_MIN))  # beside names and what is left
    if columns:
        shown = TextTable(tuple(columns)).fitted(_WIDTH)
        lines += [*shown.head(), *shown.body()]
    return "\n".join([*lines, *([f"... and {more} more"] if more > 0 else [])])


def _glance(result: Any, table: Table | None, most: int) -> tuple[list[TextColumn], int]:
    """The first rows of its table, or of another one that stands for it, as texts; and how many rows more there are."""
    if table is None:
        columns, named = getattr(result, next(iter(result.counted))), [one.name for one in result.glance]
        total, shown = len(next(iter(columns.values()), ())), [name for name in (*named, "unit") if name in columns]
        values = zip(*(columns[name][:most].tolist() for name in shown), strict=True)
        table = Table("", result.glance, [dict(zip(shown, row, strict=True)) for row in values], named)
    else:
        total, table = len(table.rows), replace(table, rows=table.rows[:most])
    return list(text_columns(table).values()) if total else [], total - most


def as_html(result: Any) -> str:
    """A result as html, everything escaped; a Roofline with a row or dot per kernel, as the command line shows it.

    The chart is an image: that can't run what an inline svg could, and its ids can't meet those of other cells.
    """
    shown, chart = result.by_kernel if isinstance(result, Roofline) else result, ""
    told, table = said(result)
    if "svg" in analysis_of(shown).formats:
        picture = base64.b64encode(render(shown, "svg")).decode()
        chart = f'<img alt="chart" style="max-width:100%" src="data:image/svg+xml;base64,{picture}">'
    columns, more = _glance(result, table, ROWS)
    sentences = "".join(f"<p>{escape(text)}</p>" for text in told)
    head = "".join(f"<th>{escape(one.header)}</th>" for one in columns)
    rows = zip(*(one.cells for one in columns), strict=True)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    rest = f"<p>and {more} more</p>" if more > 0 else ""
    return f"{sentences}{chart}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def said(result: Any) -> tuple[list[str], Table | None]:
    """The sentences of a result; of a Roofline also its kernels, those that could save most time first."""
    if not isinstance(result, Roofline):
        return list(_sentences(result)), None
    from ncu_roofline.analyses.hierarchical.kernels import kernels_of, per_kernel, ranked
    from ncu_roofline.analyses.hierarchical.text import about_table

    shown = result.by_kernel
    table = about_table(ranked(per_kernel(kernels_of(shown).values())), used=False)
    return list(_sentences(shown)), replace(table, columns=[replace(column, group=()) for column in table.columns])


def _sentences(shown: Any) -> Iterator[str]:
    """What a result begins with: the sentences of its document, by GPU where there are several."""
    if analysis_of(shown).view == "portability":
        for row in shown.summary_rows[:_VARIANTS]:
            name = " ".join(filter(None, (clean(row["application"]), clean(row["variant"])))) or "All runs"
            lowest = f"; lowest on {clean(row['lowest'])}" if row["lowest"] else ""
            over = f"over {shorten(clean(row['names']), _PLATFORMS)}"
            yield f"{name}: performance portability {as_percent(row['portability'])} {over}{lowest}."
        return
    whole = analysis_of(shown).document(shown)
    parts = [part for part in whole.blocks if isinstance(part, Document)]
    for part in parts or [whole]:
        headings = [block.about for block in part.blocks if isinstance(block, Table) and block.about][:_VARIANTS]
        lines = (
            block if isinstance(block, tuple) else block.lines for block in part.blocks if isinstance(block, (tuple, Section))
        )
        first, *others = part.sentences or headings or next(filter(None, lines), (part.facts,))
        yield f"{part.title}: {first}" if len(parts) > 1 and part.sentences else first
        yield from others
