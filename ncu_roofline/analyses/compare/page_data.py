"""The table of a comparison's page: its columns, and the cells of each kernel as texts with the values behind them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ncu_roofline.analyses.compare import changes
from ncu_roofline.analyses.compare.changes import Numbered
from ncu_roofline.analyses.compare.kernels import NOT_JUDGED, SAME
from ncu_roofline.analyses.compare.text import ComparisonFrames, Row, change, level_of, pairs, ratio_text, rows_of
from ncu_roofline.analyses.hierarchical.style import level_style
from ncu_roofline.base.texts import clean
from ncu_roofline.base.units import time_text
from ncu_roofline.rendering.page import number

_Key = tuple[str, str, str, str, int]  # a kernel of the baseline: name, grid, block, GPU, place in order


@dataclass(frozen=True)
class TableColumn:
    """A column: its heading, that of its file (with the unit), the texts of all rows, and the values behind them.

    ``values`` None: the texts are the values.  ``between``: of a state that is neither the first nor the last.
    """

    label: str
    heading: str
    texts: Sequence[str]
    values: Sequence[float] | None = None
    between: bool = False

    @property
    def empty(self) -> bool:
        """Whether no row says anything."""
        return not any(self.texts)

    def payload(self) -> dict[str, Any]:
        """As JSON for the page."""
        values = None if self.values is None else [number(value) for value in self.values]
        texts = list(self.texts)
        return {"label": self.label, "heading": self.heading, "texts": texts, "values": values, "between": self.between}


def payload(frames: ComparisonFrames, one: Row, kernels: Sequence[Numbered], names: Mapping[str, str]) -> dict[str, Any]:
    """The table of a pair of reports, the states between them with a time each."""
    return {
        "columns": [column.payload() for column in _columns(frames, one, kernels, names) if not column.empty],
        "names": [clean(row["name"] or row["name_before"])[:400] for _, row in kernels],
        "outcomes": [row["outcome"] for _, row in kernels],
        "changed": [row["outcome"] not in (SAME, NOT_JUDGED) or row["verdict_before"] != row["verdict"] for _, row in kernels],
    }


def _columns(frames: ComparisonFrames, one: Row, kernels: Sequence[Numbered], names: Mapping[str, str]) -> list[TableColumn]:
    rows, labels, memory = [row for _, row in kernels], changes.labels_of(kernels), level_of(frames)
    levels = {(row["row"], row["precision"], row["level"]): row for row in rows_of(frames, "levels")}
    traffic = [levels.get((place, "", memory), {}) for place, _ in kernels]
    points = [
        (levels.get((place, row["precision_before"], memory), {}), levels.get((place, row["precision"], memory), {}))
        for place, row in kernels
    ]
    name = level_style(memory).label if memory else ""
    saved = [row["seconds_saved"] if changes.comparable(row) or not row["matched"] else math.nan for row in rows]
    speedups = [changes.speedup_of(row) for row in rows]
    return [
        TableColumn("Kernel", "kernel", [labels[place] for place, _ in kernels]),
        TableColumn("Change", "change", [changes.said(row) for row in rows]),
        TableColumn("Verdict", "verdict", [changes.verdicts(row) for row in rows]),
        *_times(frames, one, kernels, names),
        TableColumn("Saved", "saved [s]", [_saved(value) for value in saved], saved),
        TableColumn("Speed-up", "speed-up", list(map(ratio_text, speedups)), speedups),
        _shares("Share of roof before", rows, "fraction_before"),
        _shares("after", rows, "fraction"),
        _ratio("FLOP", [(row["work_before"], row["work"]) for row in rows]),
        _ratio(f"{name} bytes", [(row.get("traffic_before", math.nan), row.get("traffic", math.nan)) for row in traffic]),
        _ratio("FLOP/B", [(a.get("intensity_before", math.nan), b.get("intensity", math.nan)) for a, b in points]),
        _launches(rows),
    ]


def _times(frames: ComparisonFrames, one: Row, kernels: Sequence[Numbered], names: Mapping[str, str]) -> list[TableColumn]:
    """Run times before and after and, where all reports are compared with the baseline, of the states between."""
    rows = [row for _, row in kernels]
    before, after = zip(*(changes.times_of(row) for row in rows), strict=True) if rows else ((), ())
    if not changes.same_gpu(one):
        after = tuple(row["total_seconds"] for row in rows)  # as measured; nobody compares it
    between = []
    for other, others in pairs(frames):
        if other["against"] == one["against"] == "baseline" and other["step"] != one["step"]:
            found = {_key(row): changes.times_of(row)[1] for _, row in others if row["name_before"]}
            times = [found.get(_key(row), math.nan) if row["name_before"] else math.nan for row in rows]
            label = names[other["report"]].removesuffix(".ncu-rep")
            between.append(_time(label, f"{label} [s]", times, between=True))
    return [_time("Time before", "Time before [s]", before), *between, _time("Time after", "Time after [s]", after)]


def _time(label: str, heading: str, times: Sequence[float], between: bool = False) -> TableColumn:
    return TableColumn(label, heading, [time_text(value) if math.isfinite(value) else "" for value in times], times, between)


def _key(row: Row) -> _Key:
    return row["name_before"], row["grid_before"], row["block_before"], row["device_before"], row["occurrence"]


def _saved(seconds: float) -> str:
    if not math.isfinite(seconds):
        return ""
    return ("\N{MINUS SIGN}" if seconds < 0 else "") + time_text(abs(seconds))


def _shares(label: str, rows: Sequence[Row], name: str) -> TableColumn:
    values = [row[name] for row in rows]
    heading = f"share of roof {'before' if name.endswith('_before') else 'after'}"
    return TableColumn(label, heading, list(map(changes.share_text, values)), values)


def _ratio(label: str, values: Sequence[tuple[float, float]]) -> TableColumn:
    """Changes of a number: after / before - 1."""
    texts = [_changed(*pair) for pair in values]
    ratios = [after / before - 1 if before else math.nan for before, after in values]
    return TableColumn(label, f"change of {label}", texts, ratios)


def _changed(before: float, after: float) -> str:
    text = change(before, after)
    return "" if text == "n/a" else text


def _launches(rows: Sequence[Row]) -> TableColumn:
    texts = [changes.from_to(str(row["launches_before"] or ""), str(row["launches"] or "")) for row in rows]
    return TableColumn("Launches", "launches", texts if set(texts) - {"1"} else [""] * len(texts))
