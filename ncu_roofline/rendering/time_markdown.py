"""The time view as Markdown with GitHub tables."""

from __future__ import annotations

from collections.abc import Sequence

from ncu_roofline.rendering import captions, time_captions
from ncu_roofline.rendering.markdown import escape, table
from ncu_roofline.rendering.time_chart import TimeFrames
from ncu_roofline.rendering.time_table import Texts, absent_columns, count_of, machine_columns, symbol_columns
from ncu_roofline.rendering.usage import tensor_caveat


def render_md(frames: TimeFrames, *, title: str = "") -> bytes:
    """Tables of the time view: kernels, machines, what has no symbol, notes."""
    symbols, machines, absent = symbol_columns(frames), machine_columns(frames), absent_columns(frames)
    blocks = [f"# {escape(title or 'Time-based roofline')}", escape(captions.subtitle(frames))]
    if count_of(symbols):
        blocks.append(_table(symbols))
    else:
        blocks += [escape(line) for line in time_captions.explanation(frames).splitlines()]
    if count_of(machines):
        blocks += ["## Machines", _table(machines)]
    if count_of(absent):
        blocks += ["## Without symbol", _table(absent)]
    notes = [
        tensor_caveat(frames),
        captions.clock_note(frames),
        time_captions.latency_note(frames),
        time_captions.overhead_note(frames),
    ]
    notes = [
        note
        for note in (*notes, captions.roof_note(frames), *captions.kernel_notes(frames), *captions.row_notes(frames, 8))
        if note
    ]
    if notes:
        blocks += ["## Notes", "\n".join(f"- {escape(note)}" for note in notes)]
    return ("\n\n".join(filter(None, blocks)) + "\n").encode("utf-8", "replace")


def _table(columns: Sequence[Texts]) -> str:
    """Texts to the left, then numbers to the right."""
    ordered = sorted(columns, key=lambda one: not one.left)
    lines = list(zip(*([escape(cell) for cell in one.cells] for one in ordered), strict=True))
    return table([one.header for one in ordered], lines, left=sum(one.left for one in ordered))
