"""Bands over time as lines of blocks: for a terminal of any width, and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ncu_roofline.analyses.hierarchical.captions import subtitle
from ncu_roofline.analyses.hierarchical.usage import percent
from ncu_roofline.analyses.phases.chart import LaunchChart, PhaseFrames, charts, explanation, notes_of, span
from ncu_roofline.rendering.table import (
    Table,
    TextColumn,
    blocks_text,
    bullets,
    escape,
    markdown,
    markdown_document,
    terminal,
    wrapped,
)

_WIDTH_MIN = 60
_BESIDE = 34  # characters of a line beside the blocks
_BLOCKS, _PLAIN = "\N{LOWER ONE EIGHTH BLOCK}\u2582\u2583\u2584\u2585\u2586\u2587\N{FULL BLOCK}", ".:-=+*#@"
_UNKNOWN = "?"


def _sparkline(values: Sequence[float], room: int, marks: str) -> str:
    """A mark per slice from 0 to 100 %, "?" where it is unknown; of more slices than there is ``room`` the means of some."""
    each = math.ceil(len(values) / max(room, 1))
    means = [span(values[start : start + each])[0] for start in range(0, len(values), each)]
    top = len(marks) - 1
    return "".join(_UNKNOWN if math.isnan(one) else marks[min(int(one * len(marks)), top)] for one in means)


def _band_table(one: LaunchChart, room: int, marks: str = _BLOCKS) -> Table:
    """The bands of a launch: mean, lowest and highest, and how they go."""
    means, least, most = (
        [percent(value) for value in values] for values in zip(*(band.span for band in one.bands), strict=True)
    )
    return Table(
        (
            TextColumn("band", [band.label for band in one.bands], left=True),
            TextColumn("mean", means),
            TextColumn("least", least, spare=1),
            TextColumn("most", most, spare=2),
            TextColumn("over its time, of its peak", [_sparkline(band.values, room, marks) for band in one.bands], left=True),
        )
    )


def text_table(
    frames: PhaseFrames, *, width: int = 100, color: bool = False, ascii_only: bool = False, top: int = 0, notes: bool = True
) -> str:
    """What `show` prints, in lines of ``width`` characters (60 at least).

    ``top``: launches, 0 for all.  Without ``notes`` only what concerns the launches shown is told.
    """
    width, found = max(width, _WIDTH_MIN), charts(frames)
    shown = found[: top or None]
    marks = _PLAIN if ascii_only else _BLOCKS
    blocks = [wrapped(f"Over time: {subtitle(frames)}", width)]
    for one in shown:
        table = terminal(_band_table(one, width - _BESIDE, marks), width, color=color)
        paths = wrapped((f"{path}." for path in one.paths), width, "  ")
        blocks.append([*wrapped(one.heading(found), width), *table, *paths])
    if not found:
        blocks.append(wrapped(explanation(frames).splitlines(), width))
    elif len(shown) < len(found):
        blocks.append([f"and {len(found) - len(shown):,} more; --all shows them"])
    told = notes_of(frames, shown) if shown else []
    blocks.append(wrapped([f"- {note}" for note in (told if notes else told[1:])], width, "  "))
    return blocks_text(blocks, ascii_only)


def render_md(frames: PhaseFrames, *, title: str = "") -> bytes:
    """A table of bands per launch, and notes."""
    found = charts(frames)
    blocks = [f"# {escape(title or 'Roofline over time')}", escape(subtitle(frames))]
    for one in found:
        blocks += [f"## {escape(one.heading(found))}", markdown(_band_table(one, len(one.edges)))]
        blocks.append(bullets(f"{path}." for path in one.paths))
    if not found:
        blocks += [escape(line) for line in explanation(frames).splitlines()]
    blocks.append(bullets(notes_of(frames, found)))
    return markdown_document(blocks)


def render_text(frames: PhaseFrames, *, width: int = 120, ascii_only: bool = False) -> bytes:
    """The table of `show`, complete."""
    return (text_table(frames, width=width, ascii_only=ascii_only) + "\n").encode("utf-8", "replace")
