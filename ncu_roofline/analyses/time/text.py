"""The tables of the time view: for a terminal of any width, and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.chart import kernel_labels
from ncu_roofline.analyses.hierarchical.style import level_style, precision_label
from ncu_roofline.analyses.hierarchical.text import answer_lines
from ncu_roofline.analyses.hierarchical.usage import percent, tensor_caveat
from ncu_roofline.analyses.time import captions as time_captions
from ncu_roofline.analyses.time.captions import WHY, factor_text
from ncu_roofline.analyses.time.chart import Symbol, TimeFrames, time_chart, units
from ncu_roofline.base.texts import clean
from ncu_roofline.base.units import UNITS, format_value
from ncu_roofline.rendering.by_gpu import by_gpu
from ncu_roofline.rendering.frames import rows
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


def symbols_of(frames: TimeFrames) -> list[tuple[str, Symbol]]:
    """All symbols with their GPU, the longest kernel first, its steps in order."""
    count = len(list(rows(frames, "points", "kernel"))) or 1
    data = time_chart(frames, count, count)
    order = {kernel.label: place for place, kernel in enumerate(data.kernels)}
    found = [(device.device, symbol) for device in data.devices for symbol in device.symbols]
    return sorted(found, key=lambda pair: (order[pair[1].kernel], pair[0], pair[1].step, -pair[1].seconds))


def symbol_columns(frames: TimeFrames) -> list[TextColumn]:
    """What the symbols' table holds; columns that say the same in every row of most reports are left out."""
    found = symbols_of(frames)
    all_of = [one for _, one in found]
    columns = [TextColumn("kernel", [one.kernel for one in all_of], left=True)]
    if len({device for device, _ in found}) > 1:
        columns.append(TextColumn("GPU", [device for device, _ in found], left=True, spare=6))
    if any(one.step >= 0 for one in all_of):
        columns.append(TextColumn("step", [one.step_label for one in all_of], left=True))
    if any(one.launch >= 0 for one in all_of):
        columns.append(TextColumn("launch", [str(one.launch) if one.launch >= 0 else "" for one in all_of]))
    if any(one.invocations > 1 for one in all_of):
        columns.append(TextColumn("launches", [str(one.invocations) for one in all_of]))
    level = level_style(frames.level).label
    columns += [
        TextColumn("time", [_time(one.seconds) for one in all_of]),
        TextColumn("share", [percent(one.share) for one in all_of], spare=8),
        TextColumn("precision", [precision_label(one.precision) for one in all_of], left=True, spare=7),
        TextColumn("work", [format_value(one.work, one.unit, 3) for one in all_of], spare=4),
        TextColumn(f"{level} traffic", [format_value(one.traffic, "byte", 3) for one in all_of], spare=5),
        TextColumn(_intensity_header(all_of), [f"{one.work / one.traffic:.3g}" for one in all_of]),
        TextColumn("bound by", [_bound(one.bound) for one in all_of], left=True),
        TextColumn("compute", [_time(one.compute_seconds) for one in all_of], spare=3),
        TextColumn("bandwidth", [_time(one.bandwidth_seconds) for one in all_of], spare=2),
    ]
    if any(one.overhead_seconds > 0 for one in all_of):
        columns.append(TextColumn("overhead", [_time(one.overhead_seconds) for one in all_of], spare=1))
    return [*columns, TextColumn("inefficiency", [factor_text(one.inefficiency) for one in all_of])]


def _intensity_header(symbols: Sequence[Symbol]) -> str:
    """What work over traffic counts: FLOP/B, OP/B or both."""
    return " or ".join(dict.fromkeys(UNITS[f"{symbol.unit}/byte"].symbol for symbol in symbols))


def machine_columns(frames: TimeFrames) -> list[TextColumn]:
    """GPUs with peak, bandwidth, balance and launch latency, per precision, at the level of the view."""
    columns = ("device", "precision", "level", "peak", "peak_origin", "bandwidth", "bandwidth_origin", "balance", "latency")
    found = [row for row in rows(frames, "machines", *columns, "overhead_work", "overhead_traffic") if row[2] == frames.level]
    unit_of = units(frames)
    texts = [
        TextColumn("GPU", [clean(row[0]) for row in found], left=True),
        TextColumn("precision", [precision_label(row[1]) for row in found], left=True),
        TextColumn("peak", [format_value(row[3], f"{unit_of[row[1]]}/s", 3) for row in found]),
        TextColumn("peak origin", [row[4] for row in found], left=True, spare=3),
        TextColumn(level_style(frames.level).label, [format_value(row[5], "byte/s", 3) for row in found]),
        TextColumn(f"{level_style(frames.level).label} origin", [row[6] for row in found], left=True, spare=2),
        TextColumn("balance", [format_value(row[7], f"{unit_of[row[1]]}/byte", 3) for row in found]),
    ]
    if any(row[8] > 0 for row in found):
        texts += [
            TextColumn("latency", [_time(row[8]) for row in found]),
            TextColumn("hidden by", [format_value(row[9], unit_of[row[1]], 3) for row in found], spare=4),
            TextColumn("or", [format_value(row[10], "byte", 3) for row in found], spare=4),
        ]
    return texts


def absent_columns(frames: TimeFrames) -> list[TextColumn]:
    """What has no symbol: why, time and bytes, the longest first."""
    labels = kernel_labels(frames)
    columns = ("report", "kernel", "status", "invocations", "seconds", "time_share", "traffic", "inefficiency", "step", "label")
    found = sorted(rows(frames, "absent", *columns), key=lambda row: -row[4] if math.isfinite(row[4]) else 0.0)
    texts = [
        TextColumn("kernel", [labels.get((row[0], row[1]), clean(row[1])) for row in found], left=True),
        TextColumn("why", [WHY.get(row[2], clean(row[2])) for row in found], left=True, spare=3),
        TextColumn("launches", [str(row[3]) for row in found], spare=2),
        TextColumn("time", [_time(row[4]) for row in found]),
        TextColumn("share", [percent(row[5]) for row in found], spare=1),
    ]
    if any(row[8] >= 0 for row in found):
        texts.insert(1, TextColumn("step", [clean(row[9]) for row in found], left=True))
    if any(math.isfinite(row[6]) for row in found):
        level = level_style(frames.level).label
        texts.append(TextColumn(f"{level} traffic", [_known(row[6], "byte") for row in found]))
    if any(math.isfinite(row[7]) for row in found):
        texts.append(TextColumn("inefficiency", [factor_text(row[7]) for row in found]))
    return texts


def _bound(bound: str) -> str:
    return bound or "unknown"


def _time(seconds: float) -> str:
    return format_value(seconds, "second", 3)


def _known(value: float, unit: str) -> str:
    return format_value(value, unit, 3) if math.isfinite(value) else ""


def count_of(columns: Sequence[TextColumn]) -> int:
    """Rows of a table."""
    return len(columns[0].cells)


def render_md(frames: TimeFrames, *, title: str = "") -> bytes:
    """Tables of the time view: kernels, machines, what has no symbol, notes."""
    symbols, machines, absent = symbol_columns(frames), machine_columns(frames), absent_columns(frames)
    blocks = [f"# {escape(title or 'Time-based roofline')}", escape(captions.subtitle(frames))]
    if count_of(symbols):
        blocks.append(_markdown_table(symbols))
    else:
        blocks += [escape(line) for line in time_captions.explanation(frames).splitlines()]
    if count_of(machines):
        blocks += ["## Machines", _markdown_table(machines)]
    if count_of(absent):
        blocks += ["## Without symbol", _markdown_table(absent)]
    notes = [*_notes(frames), *captions.kernel_notes(frames), *captions.row_notes(frames, 8)]
    if notes:
        blocks += ["## Notes", bullets(notes)]
    return markdown_document(blocks)


def _notes(frames: TimeFrames) -> list[str]:
    """On the view as a whole."""
    notes = [
        tensor_caveat(frames),
        captions.above_note(frames),
        captions.clock_note(frames),
        time_captions.latency_note(frames),
    ]
    return [note for note in (*notes, time_captions.overhead_note(frames), captions.roof_note(frames)) if note]


def _markdown_table(columns: Sequence[TextColumn]) -> str:
    """Texts to the left, then numbers to the right."""
    return markdown(Table(tuple(sorted(columns, key=lambda one: not one.left))))


def render_text(frames: TimeFrames, *, width: int = 120, ascii_only: bool = False) -> bytes:
    """The tables of the time view as UTF-8 text without colours."""
    return (text_table(frames, width=width, ascii_only=ascii_only) + "\n").encode()


def text_table(
    frames: TimeFrames, *, width: int = 100, color: bool = False, ascii_only: bool = False, top: int = 0, notes: bool = True
) -> str:
    """The time view for a terminal of ``width`` characters (60 at least); what does not fit is left out.

    ``top``: rows of each table, 0 for all.  Without ``notes`` only those that make a number doubtful are told.
    """
    width = max(width, _WIDTH_MIN)
    parts = by_gpu(frames)
    blocks = [block for part in parts.values() for block in _of_gpu(part, width, color, top, len(parts) > 1)]
    blocks.append(wrapped([*_notes(frames), *([captions.source_note(frames)] if notes else [])], width))
    told = [*captions.kernel_notes(frames), *captions.row_notes(frames, 8)] if notes else captions.doubts_of(frames)
    blocks.append(wrapped([f"- {note}" for note in told], width, "  "))
    return blocks_text(blocks, ascii_only)


def _of_gpu(frames: TimeFrames, width: int, color: bool, top: int, several: bool) -> Iterator[list[str]]:
    """What is said of one GPU: sentences, the tables of symbols and of the machine, what has no symbol."""
    symbols, machines, absent = symbol_columns(frames), machine_columns(frames), absent_columns(frames)
    heading, said = wrapped(captions.subtitle(frames), width), answer_lines(frames, width)
    yield from ([heading, said] if several else [said, heading])
    if count_of(symbols):
        yield _shown(symbols, width, color, top)
        yield terminal(Table(tuple(machines)), width, color=color)
    else:
        yield wrapped(time_captions.explanation(frames).splitlines(), width)
    if count_of(absent):
        yield ["Without symbol:", *_shown(absent, width, color, top)]


def _shown(columns: Sequence[TextColumn], width: int, color: bool, top: int) -> list[str]:
    """The first ``top`` rows of a table, or all."""
    more = count_of(columns) - (top or count_of(columns))
    table = Table(tuple(replace(column, cells=column.cells[: top or None]) for column in columns))
    return [*terminal(table, width, color=color), *([f"and {more:,} more; --all shows them"] if more > 0 else [])]
