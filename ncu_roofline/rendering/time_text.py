"""The time view as tables for a terminal of any width."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ncu_roofline.rendering import captions, time_captions
from ncu_roofline.rendering.table_text import Cells, table_lines
from ncu_roofline.rendering.text import ASCII
from ncu_roofline.rendering.time_chart import TimeFrames
from ncu_roofline.rendering.time_table import Texts, absent_columns, count_of, machine_columns, symbol_columns
from ncu_roofline.rendering.usage import tensor_caveat

_WIDTH_MIN = 60
_ABSENT_MOST = 20
_BOLD, _RESET = "\33[1m", "\33[0m"


def render_text(frames: TimeFrames, *, width: int = 120, ascii_only: bool = False) -> bytes:
    """The tables of the time view as UTF-8 text without colours."""
    return (text_table(frames, width=width, ascii_only=ascii_only) + "\n").encode()


def text_table(frames: TimeFrames, *, width: int = 100, color: bool = False, ascii_only: bool = False) -> str:
    """The tables of the time view for a terminal of ``width`` characters (60 at least); what does not fit is left out."""
    width = max(width, _WIDTH_MIN)
    symbols, machines, absent = symbol_columns(frames), machine_columns(frames), absent_columns(frames)
    blocks = [_wrapped(captions.subtitle(frames), width)]
    if count_of(symbols):
        blocks += [_table(symbols, width, color), _table(machines, width, color)]
    else:
        blocks.append([line for part in time_captions.explanation(frames).splitlines() for line in _wrapped(part, width)])
    if count_of(absent):
        blocks.append(_absent(absent, width, color))
    notes = [
        tensor_caveat(frames),
        captions.clock_note(frames),
        time_captions.latency_note(frames),
        time_captions.overhead_note(frames),
    ]
    notes += [captions.roof_note(frames), captions.source_note(frames)]
    blocks.append([line for note in notes for line in _wrapped(note, width)])
    blocks.append(
        [
            line
            for note in [*captions.kernel_notes(frames), *captions.row_notes(frames, 8)]
            for line in _wrapped(f"- {note}", width, "  ")
        ]
    )
    text = "\n\n".join("\n".join(block) for block in blocks if block)
    return text.translate(ASCII).encode("ascii", "replace").decode() if ascii_only else text


def _table(columns: Sequence[Texts], width: int, color: bool) -> list[str]:
    cells = tuple((one.header, one.spare, one.cells) for one in columns)
    lines = table_lines(Cells(cells, tuple(one.header for one in columns if one.left)), width)
    return [f"{_BOLD}{lines[0]}{_RESET}" if color else lines[0], *lines[1:]]


def _absent(columns: Sequence[Texts], width: int, color: bool) -> list[str]:
    """Rows without symbol, the longest of many."""
    count = count_of(columns)
    shown = [Texts(one.header, one.cells[:_ABSENT_MOST], one.left, one.spare) for one in columns]
    lines = ["Without symbol:", *_table(shown, width, color)]
    return [*lines, f"and {count - _ABSENT_MOST} more"] if count > _ABSENT_MOST else lines


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False)
