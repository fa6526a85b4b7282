"""Launches over their time as plain data for charts, and the words around these: bands per slice, paths under the roofs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from ncu_roofline.analyses.hierarchical.kernels import kernel_labels
from ncu_roofline.analyses.hierarchical.style import level_style, precision_label
from ncu_roofline.base.texts import clean, listed, plural
from ncu_roofline.base.units import format_value
from ncu_roofline.chips.tables import load_phases
from ncu_roofline.rendering.frames import Frames, rows

_WHY = {
    "no-samples": "without samples over time",
    "no-time": "without run time",
    "too-few-samples": "with too few samples",
    "no-run": "of which no sample shows when they ran",
}
_WHY_NO_DOTS = {
    "incomplete": "not all of it was sampled, so its counted work can't be shared out over time",
    "no-traffic": "no memory level has both sampled and counted bytes",
    "no-work": "no pipe was sampled whose operations are counted",
    "gaps": "samples are missing in between",
}
_HOW_TO_COLLECT = (
    "Samples over time come from `ncu --set full` or `ncu --section PmSampling` (2023.3 and later, Turing and later); the "
    "section RooflinePhases (`ncu-roofline install`, or `generate --ncu VERSION`; 2024.1 and later) also samples the pipes "
    "whose work is counted."
)
_CAVEAT_OF_BANDS = "Each pass group was sampled in a run of its own, and all runs are stretched to the kernel's time."
_CAVEAT = (
    f"{_CAVEAT_OF_BANDS} A slice's work is the kernel's counted work by the slice's share of its pipe's activity, its traffic "
    "the counted bytes by its share of the sampled percent: exact in sum, a model in each slice."
)
_NAMED = 2  # notes of launches without slices


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

    @property
    def span(self) -> tuple[float, float, float]:
        """Mean, lowest and highest of its known slices; NaN where none is known."""
        return span(self.values)


def span(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean, lowest and highest of the values that are known; NaN for none."""
    known = [value for value in values if math.isfinite(value)]
    return (sum(known) / len(known), min(known), max(known)) if known else (math.nan, math.nan, math.nan)


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

    def __str__(self) -> str:
        """Where it leads, in a sentence without its end."""
        across, heights = zip(*self.dots, strict=True)
        low, high = (format_value(one(heights), f"{self.unit}/s", 3) for one in (min, max))
        left, right = (format_value(one(across), f"{self.unit}/byte", 3) for one in (min, max))
        return f"{self.name} at {level_style(self.level).label}: {low} to {high}, at {left} to {right}"

    def pieces(self) -> Iterator[list[int]]:
        """Positions of dots whose slices follow each other: only these are joined."""
        piece: list[int] = []
        for position, place in enumerate(self.slices):
            if piece and place != self.slices[piece[-1]] + 1:
                yield piece
                piece = []
            piece.append(position)
        yield piece


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

    def heading(self, among: Sequence[LaunchChart] = ()) -> str:
        """A launch with its time and its slices; with its position, where several of ``among`` are of its kernel."""
        several = sum(other.kernel == self.kernel for other in among) > 1
        where = f", launch {self.launch}" if several else ""
        time, slices = format_value(self.seconds, "second", 3), plural(len(self.edges) - 1, "slice")
        cut = f", the first {format_value(self.sampled_until, 'second', 3)}" if self.cut else ""
        return f"{self.kernel}{where}: {time}{cut} in {slices}"

    @property
    def caveat(self) -> str:
        """What its slices are."""
        return _CAVEAT if self.paths else _CAVEAT_OF_BANDS

    def said(self) -> Iterator[str]:
        """What a reader must know of it."""
        for note in filter(None, self.notes.split("; ")):
            yield f"{note[0].upper()}{note[1:]}."
        if self.dots:
            yield f"No dots: {_WHY_NO_DOTS.get(self.dots, clean(self.dots))}."
        if above := sum(path.above for path in self.paths):
            dots = plural(above, "dot")
            yield f"{dots} above a roof: work is shared out by its pipe's activity, which is not only operations."


def charts(frames: PhaseFrames) -> list[LaunchChart]:
    """The launches that have slices, the longest first."""
    labels, several = kernel_labels(frames), len({device for (device,) in rows(frames, "sampled", "device")}) > 1
    bands, paths = _bands(frames), _paths(frames)
    found = []
    about = ("report", "launch", "kernel", "device", "seconds", "status", "dots", "notes")
    for report, launch, kernel, device, seconds, status, dots, notes in rows(frames, "sampled", *about):
        key = (report, launch)
        if status == "ok" and key in bands:
            name = f"{labels.get((report, kernel), clean(kernel))}{f' on {clean(device)}' if several else ''}"
            mine = tuple(paths.get(key, ()))
            found.append(LaunchChart(name, launch, clean(device), seconds, *bands[key], mine, clean(dots), clean(notes)))
    return sorted(found, key=lambda one: -one.seconds)


_Key = tuple[str, int]


def _bands(frames: PhaseFrames) -> dict[_Key, tuple[tuple[float, ...], tuple[DrawnBand, ...]]]:
    """Edges and bands of each launch; its rows follow each other, band by band."""
    levels = {band.id: band.level for band in load_phases().bands}
    values: dict[_Key, dict[tuple[str, str], list[float]]] = {}
    edges: dict[_Key, list[float]] = {}
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


def _paths(frames: PhaseFrames) -> dict[_Key, list[Trajectory]]:
    """The trajectories of each launch, that whose precision is nearest to its roof on the whole first."""
    roofs: dict[tuple[_Key, str, str], tuple[str, float, float]] = {}
    points: dict[tuple[_Key, str, str], list[tuple[int, float, float, float]]] = {}
    about = ("slice", "unit", "compute_roof", "bandwidth_roof", "intensity", "performance", "attainable")
    for report, launch, precision, level, place, unit, compute, bandwidth, *dot in rows(
        frames, "points", "report", "launch", "precision", "level", *about
    ):
        path = ((report, launch), precision, level)
        roofs.setdefault(path, (unit, compute, bandwidth))
        if all(0 < value < math.inf for value in dot[:2]):
            points.setdefault(path, []).append((place, dot[0], dot[1], dot[2]))
    found: dict[_Key, list[Trajectory]] = {}
    for (key, precision, level), dots in points.items():
        above = sum(performance > attainable for *_, performance, attainable in dots)
        slices, places = tuple(dot[0] for dot in dots), tuple(dot[1:3] for dot in dots)
        mine = Trajectory(precision, level, *roofs[key, precision, level], slices, places, above)
        found.setdefault(key, []).append(mine)

    def height(path: Trajectory) -> float:
        mean = sum(height for _, height in path.dots) / len(path.dots)
        return mean / path.compute_roof if path.compute_roof > 0 else 0.0

    return {key: sorted(paths, key=height, reverse=True) for key, paths in found.items()}


def notes_of(frames: PhaseFrames, shown: list[LaunchChart]) -> list[str]:
    """What a reader must know of the launches shown, and of those that are not."""
    kernels: dict[str, list[str]] = {}
    for one in shown:
        for note in one.said():
            kernels.setdefault(note, []).append(one.kernel)
    caveats = [_CAVEAT if any(one.paths for one in shown) else _CAVEAT_OF_BANDS] if shown else []
    told = [f"{f'{listed(names, 3)}: ' if len(shown) > 1 else ''}{note}" for note, names in kernels.items()]
    return [*caveats, *told, *absent_notes(frames)]


def absent_notes(frames: PhaseFrames) -> list[str]:
    """Launches that have no slices, and why."""
    absent: dict[str, list[str]] = {}
    for status, notes in rows(frames, "sampled", "status", "notes"):
        if status != "ok":
            absent.setdefault(status, []).append(clean(notes))
    told = []
    for status, notes in absent.items():
        noted = listed(filter(None, notes), _NAMED)
        why = _WHY.get(status, clean(status)) + (f" ({noted})" if noted else "")
        told.append(f"{plural(len(notes), 'launch')} {why}.")
    return [*told, *([_HOW_TO_COLLECT] if "no-samples" in absent else [])]


def explanation(frames: PhaseFrames) -> str:
    """Why there is nothing to draw."""
    if not list(rows(frames, "sampled", "kernel")):
        return "No kernels are left to draw."
    return "\n".join(["No kernel can be drawn over its time.", *absent_notes(frames)])
