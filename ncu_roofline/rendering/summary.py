"""A Roofline as the rows that people read in a terminal or a document: one per kernel and precision, levels side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ncu_roofline.model.names import clean
from ncu_roofline.rendering import captions
from ncu_roofline.rendering.panels import Frames, column, kernel_labels, rows
from ncu_roofline.rendering.style import level_order, level_style, precision_label, precision_order
from ncu_roofline.units import format_value


@dataclass(frozen=True)
class Row:
    """One kernel and precision; ``intensity`` by level id in ``unit`` per byte, ``performance`` in ``unit`` per second."""

    kernel: str
    launch: int
    launches: int
    seconds: float
    share: float
    precision: str
    intensity: dict[str, float]
    performance: float
    unit: str
    fraction: float
    binds: str


@dataclass(frozen=True)
class Absent:
    """A kernel without points, and why."""

    kernel: str
    launch: int
    seconds: float
    share: float
    status: str
    missing: str


@dataclass(frozen=True)
class RoofLine:
    """A roof by its origins; NaN where not given."""

    device: str
    label: str
    measured: float
    theoretical: float
    unit: str


@dataclass(frozen=True)
class Summary:
    """Everything a table for people shows."""

    heading: str
    levels: tuple[str, ...]
    level_labels: tuple[str, ...]
    rows: tuple[Row, ...]
    absent: tuple[Absent, ...]
    roofs: tuple[RoofLine, ...]
    notes: tuple[str, ...]


def summary(frames: Frames) -> Summary:
    """The rows of a Roofline, longest kernel first, its precisions together."""
    levels = level_order(set(column(frames, "points", "level")))
    return Summary(
        captions.subtitle(frames),
        tuple(levels),
        tuple(level_style(level).label for level in levels),
        tuple(_rows(frames)),
        tuple(_absent(frames)),
        tuple(_roofs(frames)),
        tuple(filter(None, (captions.clock_note(frames), captions.roof_note(frames), captions.source_note(frames)))),
    )


def _shares(frames: Frames) -> dict[tuple[str, int, str], float]:
    return {
        (report, launch, kernel): share
        for report, launch, kernel, share in rows(frames, "kernels", "report", "launch", "kernel", "time_share")
    }


def _rows(frames: Frames) -> list[Row]:
    labels, shares, bound = kernel_labels(frames), _shares(frames), _bound_labels(frames)
    found: dict[tuple[str, int, str, str], Row] = {}
    columns = ("report", "launch", "kernel", "precision", "level", "launches", "seconds", "intensity", "performance")
    for report, launch, kernel, precision, level, launches, seconds, intensity, performance, unit, fraction, binds in rows(
        frames, "points", *columns, "unit", "binding_fraction", "binds"
    ):
        key = (report, launch, kernel, precision)
        row = found.get(key)
        if row is None:
            share = shares.get((report, launch, kernel), math.nan)
            name = labels[report, kernel]
            binding = bound.get(binds, clean(binds))
            row = Row(name, launch, launches, seconds, share, precision, {}, performance, unit, fraction, binding)
            found[key] = row
        row.intensity[level] = intensity
    time = {key: -row.seconds if math.isfinite(row.seconds) else 0.0 for key, row in found.items()}
    return [found[key] for key in sorted(found, key=lambda key: (time[key], key[0], key[1], key[2], precision_order(key[3])))]


def _bound_labels(frames: Frames) -> dict[str, str]:
    """Roof id -> label; levels go by their short label."""
    labels = {roof: clean(label) for roof, label in rows(frames, "roofs", "roof", "label")}
    return {
        roof: level_style(roof).label if roof == level else labels[roof]
        for roof, level in rows(frames, "roofs", "roof", "level")
    }


def _absent(frames: Frames) -> list[Absent]:
    labels = kernel_labels(frames)
    found = [
        Absent(labels[report, kernel], launch, seconds, share, status, clean(missing))
        for report, kernel, launch, seconds, share, status, missing in rows(
            frames, "kernels", "report", "kernel", "launch", "seconds", "time_share", "status", "missing"
        )
        if status != "ok"
    ]
    return sorted(found, key=lambda one: -one.seconds if math.isfinite(one.seconds) else 0.0)


def _roofs(frames: Frames) -> list[RoofLine]:
    """Compute roofs from high to low, then bandwidths; of several reports the highest value."""
    values: dict[tuple[str, str], dict[str, float]] = {}
    about: dict[tuple[str, str], tuple[str, str, str]] = {}
    for device, roof, kind, label, unit, origin, value in rows(
        frames, "roofs", "device", "roof", "kind", "label", "unit", "origin", "value"
    ):
        by_origin = values.setdefault((device, roof), {})
        by_origin[origin] = max(value, by_origin.get(origin, -math.inf))
        about[device, roof] = (kind, clean(label) or roof, unit)
    kinds = ("compute", "bandwidth", "wall")
    order = sorted(
        values, key=lambda k: (k[0], kinds.index(about[k][0]) if about[k][0] in kinds else 9, -max(values[k].values()))
    )
    return [
        RoofLine(
            key[0],
            about[key][1],
            values[key].get("measured", math.nan),
            values[key].get("theoretical", math.nan),
            about[key][2],
        )
        for key in order
    ]


def intensity_text(value: float) -> str:
    """An intensity in three digits, "" for a missing level: 2.58, 0.0913, 3.1e-05."""
    if not math.isfinite(value):
        return ""
    return f"{value:.0f}" if 1000 <= value < 1e6 else f"{value:.3g}"


def intensity_unit(data: Summary) -> str:
    """What intensities count: FLOP/B, OP/B or both."""
    units = {"flop": "FLOP/B", "op": "OP/B"}
    return " or ".join(dict.fromkeys(units.get(row.unit, row.unit) for row in data.rows))


def performance_text(row: Row) -> str:
    """Performance with its unit."""
    return format_value(row.performance, f"{row.unit}/s", 3)


def time_text(seconds: float) -> str:
    """A run time with its unit."""
    return format_value(seconds, "second", 3)


def label_of(row: Row) -> str:
    """Readable precision."""
    return precision_label(row.precision)
