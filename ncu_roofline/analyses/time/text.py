"""What the time view says: sentences, its kernels, the machines they ran on, what has no symbol, and notes."""

from __future__ import annotations

import math
from typing import Any

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.chart import largest
from ncu_roofline.analyses.hierarchical.kernels import answers_of, kernel_labels
from ncu_roofline.analyses.hierarchical.style import level_style
from ncu_roofline.analyses.time import captions as time_captions
from ncu_roofline.analyses.time import columns
from ncu_roofline.analyses.time.captions import TimeFrames, drawable, units
from ncu_roofline.rendering.by_gpu import each_gpu
from ncu_roofline.rendering.document import Document, Note, Table
from ncu_roofline.rendering.frames import records, table


def symbols_table(frames: TimeFrames) -> Table:
    """All symbols, the longest kernel first, its steps in order."""
    labels = kernel_labels(frames)
    rows = [
        {**row, "kernel": labels[row["report"], row["kernel"]]}
        for row in records(table(frames, "points"))
        if drawable((row["traffic"], row["work"]))
    ]
    kernels, _ = largest(frames, "points", labels, {row["kernel"] for row in rows}, len(rows))
    place = {kernel.label: number for number, kernel in enumerate(kernels)}
    rows.sort(key=lambda row: (place[row["kernel"]], row["device"], row["step"], -row["seconds"]))
    return Table("points", columns.TIME_POINTS, rows, columns.POINTS_SHOWN, words=_words(frames))


def machines_table(frames: TimeFrames) -> Table:
    """GPUs with peak, bandwidth, balance and launch latency, per precision, at the level of the view."""
    unit_of = units(frames)
    rows = [{**row, "unit": unit_of[row["precision"]]} for row in records(table(frames, "machines"))]
    rows = [row for row in rows if row["level"] == frames.level]
    return Table("machines", columns.TIME_MACHINES, rows, columns.MACHINES_SHOWN, words=_words(frames))


def absent_table(frames: TimeFrames) -> Table:
    """What has no symbol: why, time and bytes, the longest first."""
    labels = kernel_labels(frames)
    rows: list[dict[str, Any]] = [
        {**row, "kernel": labels.get((row["report"], row["kernel"]), row["kernel"])} for row in records(table(frames, "absent"))
    ]
    rows.sort(key=lambda row: -row["seconds"] if math.isfinite(row["seconds"]) else 0.0)
    return Table("absent", columns.TIME_ABSENT, rows, columns.ABSENT_SHOWN, "Without symbol", _words(frames))


def _words(frames: TimeFrames) -> dict[str, str]:
    return {"level": level_style(frames.level).label}


def document(frames: TimeFrames, *, title: str = "", notes: bool = True) -> Document:
    """The whole, a part per GPU where there are several; without ``notes`` only those that make a number doubtful."""
    about = [*time_captions.about(frames), captions.roof_note(frames)]
    about += [captions.source_note(frames)] if notes else []
    of_kernels = [*captions.kernel_notes(frames), *captions.row_notes(frames, 8)] if notes else captions.doubts_of(frames)
    told = [*(Note(text) for text in about if text), *(Note(text, "kernel") for text in of_kernels)]
    return each_gpu(frames, title or "Time-based roofline", _of_gpu, told)


def _of_gpu(frames: TimeFrames, title: str) -> Document:
    symbols = symbols_table(frames)
    first = symbols if symbols.rows else tuple(time_captions.explanation(frames).splitlines())
    sentences = [text for answer in answers_of(frames) for text in answer.sentences]
    return Document(title, captions.subtitle(frames), sentences, [first, machines_table(frames), absent_table(frames)])
