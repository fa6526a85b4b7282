"""The roofline in words: the answer in sentences, then tables, for a terminal of any width and as Markdown for GitHub."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.answer import answers_of, counts_text
from ncu_roofline.analyses.hierarchical.chart import ZERO
from ncu_roofline.analyses.hierarchical.kernel_table import fitted, kernel_columns, names_in_full, repeated, work_columns
from ncu_roofline.analyses.hierarchical.summary import RooflineSummary, intensity_unit, summary
from ncu_roofline.analyses.hierarchical.usage import Usage, answers, reasons, tensor_caveat
from ncu_roofline.model.opcodes import OPCODES
from ncu_roofline.rendering.by_gpu import by_gpu
from ncu_roofline.rendering.frames import Frames
from ncu_roofline.rendering.table import (
    Table,
    TextColumn,
    blocks_text,
    bullets,
    escape,
    markdown,
    markdown_document,
    wrapped,
)

TOP = 20
"""Kernels that a terminal shows unless all are asked for."""
_WIDTH_MIN = 60
_MOST_NOTES = 8


def render_text(roofline: Frames, *, width: int = 120, ascii_only: bool = False) -> bytes:
    """All of a Roofline as UTF-8 text without colours."""
    return (text_table(roofline, width=width, ascii_only=ascii_only) + "\n").encode()


def text_table(
    roofline: Frames, *, width: int = 100, color: bool = False, ascii_only: bool = False, top: int = 0, notes: bool = True
) -> str:
    """A Roofline for a terminal of ``width`` characters (60 at least); what does not fit is cut or left out.

    ``top``: kernels of each GPU in the table, 0 for all.  Without ``notes`` only those that make a number doubtful are told.
    """
    width = max(width, _WIDTH_MIN)
    parts = by_gpu(roofline)
    blocks: list[list[str]] = []
    for frames in parts.values():
        blocks += _of_gpu(frames, width, color, top, notes, len(parts) > 1)
    return blocks_text([*blocks, *_notes(roofline, width, notes)], ascii_only)


def _of_gpu(frames: Frames, width: int, color: bool, top: int, notes: bool, several: bool) -> Iterable[list[str]]:
    """What is said of one GPU: sentences, the table, its roofs."""
    data = summary(frames)
    heading, said = wrapped(data.heading, width), answer_lines(frames, width)
    yield from ([heading, said] if several else [said, heading])
    unknown = not data.dots and not answers(frames, data.absent)
    if unknown:
        yield wrapped(captions.explanation(frames).splitlines()[: None if notes else 1], width)
    if data.rows:
        shown = _longest(data, top)
        yield [*_table(shown, width, color), *_left_out(data, shown)]
    if not (unknown and notes):  # there the explanation says it
        yield wrapped([*why_absent(frames, data.absent, lacks=notes), *_how_to_add(frames, data, notes)], width)
    if notes:
        yield wrapped([f"{name}: {why}" for name, why in _other_reasons(frames, data)], width, "  ")
    yield _roofs(data, width, color)


def answer_lines(frames: Frames, width: int) -> list[str]:
    """The sentences on one GPU, those on its kernels below that on the whole."""
    lines: list[str] = []
    for answer in answers_of(frames):
        whole, *kernels = answer.sentences
        lines += [*wrapped(whole, width), *(line for one in kernels for line in wrapped(one, width, "    ", first="  "))]
    return lines


def _other_reasons(frames: Frames, data: RooflineSummary) -> list[tuple[str, str]]:
    """The reasons for verdicts that no sentence says."""
    said = " ".join(sentence for answer in answers_of(frames) for sentence in answer.sentences)
    return [(name, why) for name, why in reasons(data.usages) if why not in said]


def _longest(data: RooflineSummary, top: int) -> RooflineSummary:
    """The first ``top`` kernels of the table."""
    starts = [place for place, again in enumerate(repeated(data.rows)) if not again]
    return data if not 0 < top < len(starts) else replace(data, rows=data.rows[: starts[top]])


def _left_out(data: RooflineSummary, shown: RooflineSummary) -> list[str]:
    """How many kernels the table does not show, and their share of the time."""
    count = sum(not again for again in repeated(data.rows)) - sum(not again for again in repeated(shown.rows))
    if not count:
        return []
    there = {id(row.usage) for row in shown.rows}
    shares = {id(row.usage): row.share for row in data.rows if id(row.usage) not in there}
    return [f"and {count:,} more{captions.of_the_time(shares.values()).replace(', ', ' (', 1)}); --all shows them"]


def _notes(roofline: Frames, width: int, notes: bool) -> Iterable[list[str]]:
    """What must be known of the numbers, and with ``notes`` where they come from."""
    about = (tensor_caveat, captions.above_note, captions.clock_note, captions.roof_note)
    source = captions.source_note(roofline) if notes else captions.source_note(roofline, [OPCODES])
    yield wrapped(filter(None, [*(note(roofline) for note in about), source]), width)
    told = captions.notes_of(roofline, _MOST_NOTES) if notes else captions.doubts_of(roofline)
    yield wrapped([f"- {note}" for note in told], width, "  ")


def _table(data: RooflineSummary, width: int, color: bool) -> list[str]:
    """Header, rule and rows; what is said of a kernel stands on the first of its rows only."""
    parts, again = fitted(data, width), repeated(data.rows)
    lines = [line for part in parts for line in part.head(color)]
    lines.append("-" * min(max(part.total for part in parts), width))
    for row, same, *texts in zip(data.rows, again, *(part.body(color) for part in parts), strict=True):
        wanted = texts[same and len(parts) > 1 : None if row.precision else 1]
        lines += [line if color else line[:width] for line in wanted]
    return [*lines, *wrapped(names_in_full(data, parts), width, "  ")]


def why_absent(frames: Frames, absent: Sequence[Usage], *, lacks: bool = True) -> list[str]:
    """For each reason why kernels have no dots a sentence: how many, their share of the time, and what the report ``lacks``."""
    found = []
    for status in dict.fromkeys(kernel.status for kernel in absent):
        members = [kernel for kernel in absent if kernel.status == status]
        share = captions.of_the_time(member.share for member in members)
        missing = captions.lacking(member.missing for member in members) if lacks and status not in ZERO else []
        without = f"; lacks {', '.join(missing)}" if missing else ""
        found.append(f"{counts_text(members)} {captions.why(frames, status)}{share}{without}.")
    return found


def _how_to_add(frames: Frames, data: RooflineSummary, told: bool) -> list[str]:
    """The command that tells what to collect, where no kernel has dots and nothing else names it."""
    return list(filter(None, [captions.how_to_add(frames)])) if told and not data.dots and answers(frames, data.absent) else []


def _roofs(data: RooflineSummary, width: int, color: bool) -> list[str]:
    """The roofs of a GPU: measured beside theoretical where both are known."""
    table = Table(tuple(_roof_columns(data))).fitted(width)
    return [*table.head(color), *table.body()] if data.roofs else []


def _roof_columns(data: RooflineSummary) -> list[TextColumn]:
    known = [name for name in ("measured", "theoretical") if any(roof.text(name) for roof in data.roofs)]
    said = {"measured": data.empirical}
    return [
        TextColumn("roof", [roof.label for roof in data.roofs], left=True),
        *(TextColumn(said.get(name, name), [roof.text(name) for roof in data.roofs], own=True) for name in known),
    ]


def render_md(roofline: Frames, *, title: str = "") -> bytes:
    """The answer of each GPU, its table of kernels and its roofs, then notes."""
    parts = by_gpu(roofline)
    blocks = [f"# {escape(title or captions.name_of(roofline))}"]
    for device, frames in parts.items():
        blocks += [f"## {escape(device)}"] if len(parts) > 1 else []
        blocks += _gpu_md(frames)
    data = summary(roofline)
    if said := _other_reasons(roofline, data):
        blocks += ["## Verdicts", bullets(f"{name}: {why}" for name, why in said)]
    if notes := [*data.notes, *captions.notes_of(roofline, _MOST_NOTES)]:
        blocks += ["## Notes", bullets(notes)]
    return markdown_document(blocks)


def _gpu_md(frames: Frames) -> list[str]:
    data = summary(frames)
    blocks = [bullets(sentence) for answer in answers_of(frames) for sentence in [answer.sentences]]
    blocks.append(escape(data.heading))
    if not data.dots and not answers(frames, data.absent):
        blocks += [escape(line) for line in captions.explanation(frames).splitlines()]
    blocks += [_kernels_md(data)] if data.rows else []
    blocks += [bullets([*why_absent(frames, data.absent), *_how_to_add(frames, data, True)])] if data.absent else []
    return [*blocks, *(["### Roofs", markdown(Table(tuple(_roof_columns(data))))] if data.roofs else [])]


def _kernels_md(data: RooflineSummary) -> str:
    """One row per kernel and precision; what is said of a kernel stands on each of its rows."""
    about, work = kernel_columns(data), work_columns(data)
    left = ["kernel", "step", *([work[0].header] if work else []), "launch", "verdict", "at its limit", "bound by", "busiest"]
    columns = [
        replace(one, header=f"{escape(one.header)} [{intensity_unit(data)}]") if one.header in data.level_labels
        else replace(one, header="share of profiled launches") if one.header == "share"
        else replace(one, header="of mix roof") if one.header == "of mix"
        else one
        for one in (*about, *work)
    ]  # fmt: skip
    first = [*left[:5], "headroom", "to compute", "could save"]
    ordered = sorted(columns, key=lambda one: first.index(one.header) if one.header in first else len(first))
    return markdown(Table(tuple(replace(one, left=one.header in left) for one in ordered)))
