"""The tables of the time view for people, as texts by column: symbols, machines, and what has no symbol."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ncu_roofline.model.names import clean
from ncu_roofline.rendering.captions import percent
from ncu_roofline.rendering.panels import kernel_labels, rows
from ncu_roofline.rendering.style import BOUNDS, level_style, precision_label
from ncu_roofline.rendering.time_captions import WHY, factor_text
from ncu_roofline.rendering.time_chart import Symbol, TimeFrames, time_chart, units
from ncu_roofline.units import UNITS, format_value


@dataclass(frozen=True)
class Texts:
    """One column: header, texts, whether they stand left, and ``spare`` > 0 if it may go for lack of room (highest first)."""

    header: str
    cells: list[str]
    left: bool = False
    spare: int = 0


def symbols_of(frames: TimeFrames) -> list[tuple[str, Symbol]]:
    """All symbols with their GPU, the longest kernel first, its steps in order."""
    count = len(list(rows(frames, "points", "kernel"))) or 1
    data = time_chart(frames, count, count)
    order = {kernel.label: place for place, kernel in enumerate(data.kernels)}
    found = [(device.device, one) for device in data.devices for one in device.symbols]
    return sorted(found, key=lambda pair: (order[pair[1].kernel], pair[0], pair[1].step, -pair[1].seconds))


def symbol_columns(frames: TimeFrames) -> list[Texts]:
    """What the symbols' table holds; columns that say the same in every row of most reports are left out."""
    found = symbols_of(frames)
    all_of = [one for _, one in found]
    columns = [Texts("kernel", [one.kernel for one in all_of], left=True)]
    if len({device for device, _ in found}) > 1:
        columns.append(Texts("GPU", [device for device, _ in found], left=True, spare=6))
    if any(one.step >= 0 for one in all_of):
        columns.append(Texts("step", [one.step_label for one in all_of], left=True))
    if any(one.launch >= 0 for one in all_of):
        columns.append(Texts("launch", [str(one.launch) if one.launch >= 0 else "" for one in all_of]))
    if any(one.invocations > 1 for one in all_of):
        columns.append(Texts("launches", [str(one.invocations) for one in all_of]))
    level = level_style(frames.level).label
    columns += [
        Texts("time", [_time(one.seconds) for one in all_of]),
        Texts("share", [percent(one.share) for one in all_of], spare=8),
        Texts("precision", [precision_label(one.precision) for one in all_of], left=True, spare=7),
        Texts("work", [format_value(one.work, one.unit, 3) for one in all_of], spare=4),
        Texts(f"{level} traffic", [format_value(one.traffic, "byte", 3) for one in all_of], spare=5),
        Texts(_intensity_header(all_of), [f"{one.work / one.traffic:.3g}" for one in all_of]),
        Texts("bound by", [_bound(one.bound) for one in all_of], left=True),
        Texts("compute", [_time(one.compute_seconds) for one in all_of], spare=3),
        Texts("bandwidth", [_time(one.bandwidth_seconds) for one in all_of], spare=2),
    ]
    if any(one.overhead_seconds > 0 for one in all_of):
        columns.append(Texts("overhead", [_time(one.overhead_seconds) for one in all_of], spare=1))
    return [*columns, Texts("inefficiency", [factor_text(one.inefficiency) for one in all_of])]


def _intensity_header(symbols: Sequence[Symbol]) -> str:
    """What work over traffic counts: FLOP/B, OP/B or both."""
    return " or ".join(dict.fromkeys(UNITS[f"{one.unit}/byte"].symbol for one in symbols))


def machine_columns(frames: TimeFrames) -> list[Texts]:
    """GPUs with peak, bandwidth, balance and launch latency, per precision, at the level of the view."""
    columns = ("device", "precision", "level", "peak", "peak_origin", "bandwidth", "bandwidth_origin", "balance", "latency")
    found = [row for row in rows(frames, "machines", *columns, "overhead_work", "overhead_traffic") if row[2] == frames.level]
    unit_of = units(frames)
    texts = [
        Texts("GPU", [clean(row[0]) for row in found], left=True),
        Texts("precision", [precision_label(row[1]) for row in found], left=True),
        Texts("peak", [format_value(row[3], f"{unit_of[row[1]]}/s", 3) for row in found]),
        Texts("peak origin", [row[4] for row in found], left=True, spare=3),
        Texts(level_style(frames.level).label, [format_value(row[5], "byte/s", 3) for row in found]),
        Texts(f"{level_style(frames.level).label} origin", [row[6] for row in found], left=True, spare=2),
        Texts("balance", [format_value(row[7], f"{unit_of[row[1]]}/byte", 3) for row in found]),
    ]
    if any(row[8] > 0 for row in found):
        texts += [
            Texts("latency", [_time(row[8]) for row in found]),
            Texts("hidden by", [format_value(row[9], unit_of[row[1]], 3) for row in found], spare=4),
            Texts("or", [format_value(row[10], "byte", 3) for row in found], spare=4),
        ]
    return texts


def absent_columns(frames: TimeFrames) -> list[Texts]:
    """What has no symbol: why, time and bytes, the longest first."""
    labels = kernel_labels(frames)
    columns = ("report", "kernel", "status", "invocations", "seconds", "time_share", "traffic", "inefficiency", "step", "label")
    found = sorted(rows(frames, "absent", *columns), key=lambda row: -row[4] if math.isfinite(row[4]) else 0.0)
    texts = [
        Texts("kernel", [labels.get((row[0], row[1]), clean(row[1])) for row in found], left=True),
        Texts("why", [WHY.get(row[2], clean(row[2])) for row in found], left=True, spare=3),
        Texts("launches", [str(row[3]) for row in found], spare=2),
        Texts("time", [_time(row[4]) for row in found]),
        Texts("share", [percent(row[5]) for row in found], spare=1),
    ]
    if any(row[8] >= 0 for row in found):
        texts.insert(1, Texts("step", [clean(row[9]) for row in found], left=True))
    if any(math.isfinite(row[6]) for row in found):
        level = level_style(frames.level).label
        texts.append(Texts(f"{level} traffic", [_known(row[6], "byte") for row in found]))
    if any(math.isfinite(row[7]) for row in found):
        texts.append(Texts("inefficiency", [factor_text(row[7]) for row in found]))
    return texts


def _bound(bound: str) -> str:
    return BOUNDS[bound].label.removesuffix("-bound") if bound else "unknown"


def _time(seconds: float) -> str:
    return format_value(seconds, "second", 3)


def _known(value: float, unit: str) -> str:
    return format_value(value, unit, 3) if math.isfinite(value) else ""


def count_of(columns: Sequence[Texts]) -> int:
    """Rows of a table."""
    return len(columns[0].cells)
