"""Bands over time in words: a table per launch with what each band goes like, the paths under the roofs, and notes."""

from __future__ import annotations

from ncu_roofline.analyses.hierarchical.captions import subtitle
from ncu_roofline.analyses.phases.chart import LaunchChart, PhaseFrames, charts, explanation, notes_of
from ncu_roofline.rendering.document import Column, Document, Note, Section, Table

_BANDS = (
    Column("band", "str", "", "what is busy"),
    Column("mean", "float", "ratio", "mean share of its peak"),
    Column("least", "float", "ratio", "lowest share of a slice", priority=1),
    Column("most", "float", "ratio", "highest share of a slice", priority=2),
    Column("values", "str", "", "share of each slice", "over its time, of its peak", form="sparkline"),
)


def document(frames: PhaseFrames, *, title: str = "", notes: bool = True, top: int = 0) -> Document:
    """Each launch that has slices, ``top`` at most (0: all); without ``notes`` only what concerns these is told."""
    found = charts(frames)
    shown = found[: top or None]
    rest = [f"and {len(found) - len(shown):,} more; --all shows them"] if len(shown) < len(found) else []
    rest = rest if found else explanation(frames).splitlines()
    blocks: list[Table | Section] = [_table(one, one.heading(found)) for one in shown]
    blocks.append(Section(rest, hanging=False))
    told = notes_of(frames, shown) if shown else []
    facts = f"Over time: {subtitle(frames)}"
    return Document(title or "Roofline over time", facts, (), blocks, [Note(text, "launch") for text in told[not notes :]])


def _table(one: LaunchChart, heading: str) -> Table:
    """The bands of a launch: mean, lowest and highest, and how they go."""
    names = [column.name for column in _BANDS]
    rows = [dict(zip(names, (band.label, *band.span, band.values), strict=True)) for band in one.bands]
    return Table("bands", _BANDS, rows, names, heading, about=heading, legend=tuple(f"{path}." for path in one.paths))
