"""The roofline over time inside a kernel: each launch with samples in slices, under the roofs of the ordinary model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ncu_roofline.analyses.phases import columns
from ncu_roofline.analyses.phases.slices import FEWEST, Phases, phases_of
from ncu_roofline.base.texts import conjoined, listed
from ncu_roofline.chips.tables import load_phases
from ncu_roofline.chips.thresholds import REPEATED, SAMPLED_WHOLE, STRETCHED
from ncu_roofline.model import Displayed, Measurements, Roofline, Selection, measurements_of, roofline
from ncu_roofline.model.displayed import seen
from ncu_roofline.model.measurements import FloatArray
from ncu_roofline.model.roofline import CeilingsFile, Columns, Source, frame_of, of_rows
from ncu_roofline.model.selection import group
from ncu_roofline.rendering.document import Column

Table = dict[str, np.ndarray[Any, Any]]
Row = dict[str, Any]
MIXED = "mixed"
ABOVE = (
    "above its roof: work is shared out by the activity of its pipe, which also does other things, and traffic by samples of "
    "another run"
)


@dataclass(frozen=True, repr=False)
class PhaseRoofline(Displayed):
    """Launches over their time, as tables of equally long columns.

    `points`, `bands` and `sampled` are the same as DataFrames (columns: `ncu_roofline.analyses.phases.columns`); `roofs` and
    `kernels` are those of the ordinary model, with a row per launch.
    """

    view: ClassVar[str] = "phases"
    counted: ClassVar[Mapping[str, str]] = {
        "sampled_columns": "kernel",
        "band_columns": "band row",
        "point_columns": "point",
        "roof_columns": "roof",
    }
    glance: ClassVar[tuple[Column, ...]] = seen(
        columns.SAMPLED, "kernel", "launch", "seconds", status="samples", slices="slices", sampled_share="sampled"
    )
    point_columns: Table
    band_columns: Table
    sampled_columns: Table
    roof_columns: Table
    kernel_columns: Columns
    sources: tuple[tuple[str, str], ...] = ()

    points = frame_of("point_columns", "One row per launch, slice, precision and memory level.")
    bands = frame_of("band_columns", "One row per launch, slice and band.")
    sampled = frame_of("sampled_columns", "One row per launch: what was sampled of it.")
    roofs = frame_of("roof_columns", "The roofs of the ordinary model.")
    kernels = frame_of("kernel_columns", "The launches in the ordinary model.")


def phase_roofline(
    report: Source | Measurements | Sequence[Source],
    ceilings: CeilingsFile | Sequence[CeilingsFile] | None = None,
    *,
    clock: str = "profiled",
    by: str = "kernel",
    select: Selection | None = None,
) -> PhaseRoofline:
    """The roofline over time of one or several reports; Measurements must be those of `measurements_of(samples=True)`.

    ``by``: "kernel" for the longest launch with samples of each kernel, "launch" for all; ``ceilings``, ``clock`` and
    ``select`` as of `roofline`.  The work of a slice is the launch's counted work times the slice's share of the activity of
    the pipe that does it, its traffic the counted bytes times the slice's share of the utilisation of the level: exact in
    sum, a model in each slice, as a pipe's activity is not only operations.  Units are SI.
    Raises RooflineError for files that can't be read and for ceilings that fit no GPU of the reports, ValueError for another
    ``by``, TypeError for what is no report.

    >>> phase_roofline("gpp-v100.ncu-rep").sampled["status"].unique().tolist()
    ['no-samples']
    """
    if by not in ("kernel", "launch"):
        raise ValueError(f"by must be kernel or launch, not {by!r}: phases are those of one launch")
    measurements = report if isinstance(report, Measurements) else measurements_of(report, samples=True)
    selected = (select or Selection()).launches(measurements)
    chosen = selected.take(_longest(selected)) if by == "kernel" else selected
    ordinary = roofline(chosen, ceilings, clock=clock, select=select)
    counted = _counted(ordinary)
    found = [_Launch(chosen, ordinary, row, counted) for row in range(len(chosen))]
    return PhaseRoofline(
        of_rows([row for one in found for row in one.points()], columns.POINTS),
        of_rows([row for one in found for row in one.bands()], columns.BANDS),
        of_rows([one.row() for one in found], columns.SAMPLED),
        ordinary.roof_columns,
        ordinary.kernel_columns,
        ordinary.sources,
    )


def _longest(m: Measurements) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Of each kernel its longest launch, of those with samples if there are any, in the order of the report."""
    sampled = [one is not None and bool(one.groups) for one in m.samples]
    seconds = np.nan_to_num(m.seconds).tolist()
    rows: dict[int, int] = {}
    for row, kernel in enumerate(group(m, "kernel").index.tolist()):
        rows[kernel] = max(rows.get(kernel, row), row, key=lambda one: (sampled[one], seconds[one], -one))
    return np.array(sorted(rows.values()), dtype=np.int64)


def _counted(ordinary: Roofline) -> dict[tuple[str, int], list[Row]]:
    """The points of each launch, those of single precisions."""
    points = {name: column.tolist() for name, column in ordinary.point_columns.items()}
    found: dict[tuple[str, int], list[Row]] = {}
    for values in zip(*points.values(), strict=True):
        point = dict(zip(points, values, strict=True))
        if point["precision"] != MIXED:
            found.setdefault((point["report"], point["launch"]), []).append(point)
    return found


class _Launch:
    """The rows of one launch."""

    def __init__(self, m: Measurements, ordinary: Roofline, row: int, counted: Mapping[tuple[str, int], Sequence[Row]]) -> None:
        self._m, self._row = m, row
        self._seconds = float(m.seconds[row])
        self._phases: Phases = phases_of(m.samples[row], self._seconds, load_phases())
        grid = str(m.grid[row])
        self._grid = math.prod(int(part) for part in grid.split("x")) if grid else 0  # blocks
        self._where = {
            name: ordinary.kernel_columns[name][row] for name in ("report", "launch", "kernel", "device", "label", "step")
        }
        edges = self._phases.edges.tolist()
        self._slices = [
            {**self._where, "slice": index, "begin": edges[index], "end": edges[index + 1]}
            for index in range(self._phases.count)
        ]
        band = self._phases.band
        self._counted = [
            (point, band(precision=str(point["precision"])), band(level=str(point["level"])))
            for point in counted.get((str(m.report[row]), int(m.launch[row])), ())
        ]
        self._no_dots = self._why_no_dots()

    def bands(self) -> Iterator[Row]:
        """A row per slice and band."""
        for band in self._phases.bands:
            about = {"band": band.spec.id, "name": band.spec.label, "metrics": " ".join(band.metrics)}
            for place, value in zip(self._slices, band.values.tolist(), strict=True):
                yield {**place, **about, "utilisation": value}

    def points(self) -> Iterator[Row]:
        """A row per slice, precision and level."""
        for point, pipe, moved in () if self._no_dots else self._counted:
            if pipe and moved and pipe.shares is not None and moved.shares is not None:
                yield from self._of_point(point, pipe.shares, moved.shares, dict.fromkeys(pipe.metrics + moved.metrics))

    def _of_point(self, point: Row, work: FloatArray, traffic: FloatArray, metrics: Iterable[str]) -> Iterator[Row]:
        """A point with what parts of its work and of its bytes are in each slice."""
        same = ("precision", "level", "unit", "compute_roof", "bandwidth_roof", "source")
        totals = (work * point["work"]).tolist(), (traffic * point["traffic"]).tolist()
        for place, done, moved in zip(self._slices, *totals, strict=True):
            intensity = done / moved if moved > 0 else math.nan
            performance = done / (place["end"] - place["begin"])
            attainable = min(point["compute_roof"], intensity * point["bandwidth_roof"])
            fraction = performance / attainable if attainable > 0 else math.nan
            yield {
                **place,
                **{name: point[name] for name in same},
                "work": done,
                "traffic": moved,
                "intensity": intensity,
                "performance": performance,
                "attainable": attainable,
                "fraction": fraction,
                "metrics": "; ".join([str(point["metrics"]), *metrics]),
                "notes": ABOVE if fraction > REPEATED else "",
            }

    def _why_no_dots(self) -> str:
        """Why there are none, "" where there are."""
        if self._phases.status != "ok":
            return self._phases.status
        if not self._phases.complete(self._grid):
            return "incomplete"
        if not any(moved for *_, moved in self._counted):
            return "no-traffic"
        both = [(pipe, moved) for _, pipe, moved in self._counted if pipe and moved]
        if any(pipe.shares is not None and moved.shares is not None for pipe, moved in both):
            return ""
        return "gaps" if any(np.isnan(band.values).any() for pair in both for band in pair) else "no-work"

    def row(self) -> Row:
        """What was sampled of the launch."""
        phases, groups = self._phases, [run.group for run in self._phases.runs]
        stretches = [self._seconds / run.length for run in phases.runs]
        scale = self._scale()
        return {
            **self._where,
            "seconds": self._seconds,
            "status": phases.status,
            "dots": self._no_dots,
            "slices": phases.count,
            "samples": min((run.samples_inside() for run in phases.runs), default=0),
            "groups": len(groups),
            "sampled_share": phases.sampled,
            "blocks": self._grid or -1,
            "blocks_started": phases.blocks,
            "stretch": max(stretches, default=math.nan),
            "shrink": min(stretches, default=math.nan),
            "scale": scale,
            "dropped": sum(one.dropped for one in groups),
            "merged": sum(one.merged for one in groups),
            "aligned": ", ".join(dict.fromkeys(run.way for run in phases.runs)),
            "notes": "; ".join(self._notes(stretches, scale)),
        }

    def _scale(self) -> float:
        """Counted bytes of device memory / those of its sampled percent at the theoretical peak, NaN where one is unknown."""
        for band in self._phases.bands:
            traffic, roof = self._m.traffic.get(band.spec.level), self._m.bandwidth.get(band.spec.level)
            if band.spec.moves and traffic and roof and self._phases.complete(self._grid):
                sampled = float(band.values.mean()) * self._seconds * float(roof.values[self._row])
                return float(traffic.values[self._row]) / sampled if sampled > 0 else math.nan
        return math.nan

    def _notes(self, stretches: Sequence[float], scale: float) -> Iterator[str]:
        phases, samples = self._phases, self._m.samples[self._row]
        if phases.status == "too-few-samples":
            yield f"fewer than {FEWEST} samples in a pass group: sample at a shorter --pm-sampling-interval"
        if samples is not None and samples.unusable:
            yield f"{samples.unusable:,} values that no sampler can have given were left out"
        if phases.status != "ok":
            return
        if not phases.complete(self._grid):
            parts = [f"the first {100 * phases.sampled:.3g} % of its time"] if phases.sampled < SAMPLED_WHOLE else []
            if phases.blocks >= 0 and self._grid > phases.blocks:
                parts.append(f"the start of {phases.blocks:,} of {self._grid:,} thread blocks")
            lost = sum(run.group.dropped for run in phases.runs)
            yield (
                f"not all of it was sampled{f' ({listed(parts)})' if parts else ''}"
                f"{f', and ncu dropped {lost:,} samples' if lost else ''}: the rest is unknown, not idle; "
                "a longer --pm-sampling-interval or a larger --pm-sampling-buffer-size of ncu holds more"
            )
        least, most = min(stretches), max(stretches)
        if most > STRETCHED or least < 1 / STRETCHED:
            yield f"the runs of its pass groups differ in length: they were stretched by {least:.2f} to {most:.2f}"
        if math.isfinite(scale):
            yield f"the percent of DRAM is scaled by {scale:.2f} to the bytes that were counted"
        if merged := sum(run.group.merged for run in phases.runs):
            yield f"ncu merged {merged:,} samples"
        if unknown := [band.spec.label for band in phases.bands if np.isnan(band.values).all()]:
            yield f"less than half of each slice was sampled of {conjoined(unknown)}"
