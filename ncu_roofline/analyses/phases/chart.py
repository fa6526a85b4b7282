"""Launches over their time as plain data for charts: bands per slice, and the path of a kernel under its roofs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from ncu_roofline.analyses.hierarchical.chart import kernel_labels
from ncu_roofline.analyses.hierarchical.style import precision_label
from ncu_roofline.base.texts import clean
from ncu_roofline.chips.phases import load_phases
from ncu_roofline.rendering.frames import Frames, rows


class PhaseFrames(Frames, Protocol):
    """What renderers of this view draw, columns as in ``ncu_roofline.analyses.phases.columns``."""

    view: ClassVar[str]

    @property
    def bands(self) -> Any: ...
    @property
    def sampled(self) -> Any: ...


@dataclass(frozen=True)
class DrawnBand:
    """Share of its peak per slice (NaN where unknown); ``level`` is the memory level it belongs to, or ""."""

    id: str
    label: str
    level: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Trajectory:
    """The slices of a launch under a compute roof (op/s) and a bandwidth roof (byte/s).

    ``dots`` are (intensity, performance) of the ``slices`` that have both; ``above`` of these are higher than a roof.
    """

    precision: str
    level: str
    unit: str
    compute_roof: float
    bandwidth_roof: float
    slices: tuple[int, ...]
    dots: tuple[tuple[float, float], ...]
    above: int

    @property
    def name(self) -> str:
        """What its dots are of."""
        return precision_label(self.precision)


@dataclass(frozen=True)
class LaunchChart:
    """One launch that has slices: ``edges`` (s), bands, and paths, the one that is nearest to its roof first."""

    kernel: str
    launch: int
    device: str
    seconds: float
    edges: tuple[float, ...]
    bands: tuple[DrawnBand, ...]
    paths: tuple[Trajectory, ...]
    dots: str
    notes: str

    @property
    def sampled_until(self) -> float:
        """Seconds until which there are samples."""
        return self.edges[-1]

    @property
    def cut(self) -> bool:
        """Whether its end was not sampled."""
        return self.sampled_until < 0.999 * self.seconds


def charts(frames: PhaseFrames) -> list[LaunchChart]:
    """The launches that have slices, the longest first."""
    labels, several = kernel_labels(frames), len({device for (device,) in rows(frames, "sampled", "device")}) > 1
    bands, paths = _bands(frames), _paths(frames)
    found = []
    about = ("report", "launch", "kernel", "device", "seconds", "status", "dots", "notes")
    for report, launch, kernel, device, seconds, status, dots, notes in rows(frames, "sampled", *about):
        key = (report, launch)
        if status == "ok" and key in bands:
            edges, drawn = bands[key]
            name = f"{labels.get((report, kernel), clean(kernel))}{f' on {clean(device)}' if several else ''}"
            found.append(
                LaunchChart(
                    name, launch, clean(device), seconds, edges, drawn, tuple(paths.get(key, ())), clean(dots), clean(notes)
                )
            )
    return sorted(found, key=lambda one: -one.seconds)


Key = tuple[str, int]


def _bands(frames: PhaseFrames) -> dict[Key, tuple[tuple[float, ...], tuple[DrawnBand, ...]]]:
    """Edges and bands of each launch; its rows follow each other, band by band."""
    levels = {band.id: band.level for band in load_phases().bands}
    values: dict[Key, dict[tuple[str, str], list[float]]] = {}
    edges: dict[Key, list[float]] = {}
    about = ("report", "launch", "slice", "begin", "end", "band", "name", "utilisation")
    for report, launch, place, begin, end, band, name, value in rows(frames, "bands", *about):
        key = (report, launch)
        values.setdefault(key, {}).setdefault((band, name), []).append(value)
        known = edges.setdefault(key, [begin])
        if place == len(known) - 1:
            known.append(end)
    return {
        key: (
            tuple(edges[key]),
            tuple(DrawnBand(band, clean(name), levels.get(band, ""), tuple(found)) for (band, name), found in bands.items()),
        )
        for key, bands in values.items()
    }


def _paths(frames: PhaseFrames) -> dict[Key, list[Trajectory]]:
    """The trajectories of each launch, that whose precision is nearest to its roof on the whole first."""
    found: dict[Key, dict[tuple[str, str], list[tuple[Any, ...]]]] = {}
    about = ("slice", "unit", "compute_roof", "bandwidth_roof", "intensity", "performance", "attainable")
    for report, launch, precision, level, *point in rows(frames, "points", "report", "launch", "precision", "level", *about):
        found.setdefault((report, launch), {}).setdefault((precision, level), []).append(tuple(point))
    result: dict[Key, list[Trajectory]] = {}
    for key, pairs in found.items():
        paths = filter(None, (_path(precision, level, points) for (precision, level), points in pairs.items()))
        result[key] = sorted(paths, key=lambda one: -_height(one))
    return result


def _path(precision: str, level: str, points: list[tuple[Any, ...]]) -> Trajectory | None:
    _, unit, compute, bandwidth, *_ = points[0]
    drawn = [point for point in points if _drawable(point[4], point[5])]
    if not drawn:
        return None
    above = sum(1 for *_, performance, attainable in drawn if performance > attainable)
    slices, dots = tuple(point[0] for point in drawn), tuple((point[4], point[5]) for point in drawn)
    return Trajectory(precision, level, unit, compute, bandwidth, slices, dots, above)


def _drawable(*values: float) -> bool:
    return all(0 < value < math.inf for value in values)


def _height(path: Trajectory) -> float:
    """How near to the compute roof the path is in the mean; 0 where that is unknown."""
    mean = sum(height for _, height in path.dots) / len(path.dots)
    return mean / path.compute_roof if path.compute_roof > 0 else 0.0


def pieces(path: Trajectory) -> Iterator[list[int]]:
    """Positions of dots whose slices follow each other: only these are joined."""
    piece: list[int] = []
    for position, place in enumerate(path.slices):
        if piece and place != path.slices[piece[-1]] + 1:
            yield piece
            piece = []
        piece.append(position)
    yield piece
