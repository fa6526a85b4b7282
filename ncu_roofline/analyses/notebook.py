"""What prompts and notebooks show of a result: the answer in sentences, for notebooks the chart as an image, and a table."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import escape
from typing import Any

from ncu_roofline.analyses import analysis_of, render
from ncu_roofline.analyses.compare.text import about, headline, pairs
from ncu_roofline.analyses.hierarchical.answer import answers_of, ranked
from ncu_roofline.analyses.hierarchical.text import about_table
from ncu_roofline.analyses.hierarchical.usage import per_kernel, usages
from ncu_roofline.analyses.phases.chart import charts, notes_of
from ncu_roofline.analyses.ranks.text import heading
from ncu_roofline.analyses.source.launches import launches
from ncu_roofline.analyses.source.text import sentences
from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.model import Roofline
from ncu_roofline.model.displayed import Said, as_percent
from ncu_roofline.rendering.document import Table

ROWS = 20
_VARIANTS = 3  # of an application that have a sentence
_PLATFORMS = 100  # characters of their names
_PICTURE = "svg"


def notebook_html(result: Any) -> str:
    """A result as html, everything escaped; a Roofline with a row or dot per kernel, as the command line shows it.

    The chart is an image: that can't run what an inline svg could, and its ids can't meet those of other cells.
    """
    shown = _by_kernel(result)
    sentences = "".join(f"<p>{escape(text)}</p>" for text in _sentences(shown))
    return f"{sentences}{_chart(shown)}{_table(shown)}"


def said(result: Any) -> Said:
    """The sentences of a result; of a Roofline also its kernels, those that could save most time first."""
    shown = _by_kernel(result)
    return Said(_sentences(shown), _ranked(shown) if isinstance(shown, Roofline) else None)


def _by_kernel(result: Any) -> Any:
    return result.by_kernel if isinstance(result, Roofline) else result


def _sentences(shown: Any) -> list[str]:
    return list(_SAID[analysis_of(shown).view](shown))


def _answers(result: Any) -> list[str]:
    answers = answers_of(result)
    said = [(f"{one.device}: {one.sentences[0]}", *one.sentences[1:]) if len(answers) > 1 else one.sentences for one in answers]
    return [sentence for sentences in said for sentence in sentences]


def _changes(result: Any) -> list[str]:
    return [f"{about(pair)}: {headline(pair)}." for pair in pairs(result)]


def _portable(result: Any) -> Iterator[str]:
    for row in result.summary_rows[:_VARIANTS]:
        name = " ".join(filter(None, (clean(row["application"]), clean(row["variant"]))))
        lowest = f"; lowest on {clean(row['lowest'])}" if row["lowest"] else ""
        about = f"{name or 'All runs'}: performance portability {as_percent(row['portability'])}"
        yield f"{about} over {shorten(clean(row['names']), _PLATFORMS)}{lowest}."


def _places(result: Any) -> Iterator[str]:
    for launch in launches(result):
        head, *said = sentences(launch)
        yield f"{head}. {' '.join(said)}"


def _phases(result: Any) -> Iterator[str]:
    drawn = charts(result)
    yield from (one.heading() for one in drawn[:_VARIANTS])
    yield from notes_of(result, drawn)


_SAID: dict[str, Callable[[Any], Any]] = {
    "roofline": _answers,
    "instruction": _answers,
    "time": _answers,
    "phases": _phases,
    "comparison": _changes,
    "ranks": lambda result: [heading(result)],
    "portability": _portable,
    "source": _places,
}


def _chart(result: Any) -> str:
    if _PICTURE not in analysis_of(result).formats:
        return ""
    picture = base64.b64encode(render(result, _PICTURE)).decode()
    return f'<img alt="chart" style="max-width:100%" src="data:image/svg+xml;base64,{picture}">'


def _table(result: Any) -> str:
    """The kernels of a Roofline, those that could save most time first; of other results the rows that stand for them."""
    columns, more = result.glanced(_ranked(result) if isinstance(result, Roofline) else None, ROWS)
    head = "".join(f"<th>{escape(one.header)}</th>" for one in columns)
    rows = zip(*(one.cells for one in columns), strict=True)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    rest = f"<p>and {more} more</p>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _ranked(result: Roofline) -> Table:
    """A row per kernel, those that could save most time first."""
    table = about_table(ranked(per_kernel(usages(result).values())), used=False)
    return replace(table, columns=[replace(column, group=()) for column in table.columns])
