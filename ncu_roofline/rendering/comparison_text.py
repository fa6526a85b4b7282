"""A comparison as text for a terminal, and as Markdown."""

from __future__ import annotations

import textwrap

from ncu_roofline.errors import printable
from ncu_roofline.rendering import comparison as facts
from ncu_roofline.rendering.comparison import ComparisonFrames, KernelCells
from ncu_roofline.rendering.markdown import escape
from ncu_roofline.rendering.table_text import Cells, table_lines

_WIDTH_MIN = 60
_LEFT = ("kernel", "grid", "verdict", "outcome")
_ASCII = str.maketrans({"\N{MICRO SIGN}": "u", "\N{INFINITY}": "inf"})


def render_text(comparison: ComparisonFrames, *, width: int = 120, ascii_only: bool = False) -> bytes:
    """The text of `ncu-roofline compare` as UTF-8, for ``width`` characters (60 at least)."""
    width, names = max(width, _WIDTH_MIN), facts.names_of(comparison)
    cells = KernelCells(comparison, facts.level_of(comparison))
    blocks = []
    for one, kernels in facts.pairs(comparison):
        blocks.append(_wrapped(facts.title(one, names), width) + _wrapped(facts.sentence(one, kernels), width))
        if kernels:
            columns = tuple(cells.columns(kernels))
            blocks.append(table_lines(Cells(columns, left=_LEFT), width) + _wrapped(facts.legend(one), width))
        blocks.append([line for note in facts.notes_of(one, kernels) for line in _wrapped(f"- {note}", width)])
    blocks.append([line for text in facts.threshold_lines(comparison) for line in _wrapped(text, width)])
    text = "\n\n".join("\n".join(map(printable, block)) for block in blocks if block) + "\n"
    return text.translate(_ASCII).encode("ascii", "replace") if ascii_only else text.encode("utf-8", "replace")


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False)


def render_md(comparison: ComparisonFrames, *, title: str = "") -> bytes:
    """The same as Markdown with GitHub tables; whatever comes from a report is escaped."""
    names, cells = facts.names_of(comparison), KernelCells(comparison, facts.level_of(comparison))
    blocks = [f"# {escape(title or 'Comparison')}"]
    for one, kernels in facts.pairs(comparison):
        blocks += [f"## {escape(facts.title(one, names))}", escape(facts.sentence(one, kernels))]
        if kernels:
            columns = cells.columns(kernels)
            rule = [":--" if header in _LEFT else "--:" for header, _, _ in columns]
            rows = [[header for header, _, _ in columns], rule]
            rows += [list(map(escape, row)) for row in zip(*(texts for _, _, texts in columns), strict=True)]
            blocks += ["\n".join(f"| {' | '.join(row)} |" for row in rows), escape(facts.legend(one))]
        blocks.append("\n".join(f"- {escape(note)}" for note in facts.notes_of(one, kernels)))
    if lines := facts.threshold_lines(comparison):
        blocks += ["## Thresholds", "\n".join(f"- {escape(line)}" for line in lines)]
    return ("\n\n".join(filter(None, blocks)) + "\n").encode("utf-8", "replace")
