"""The roofline over time inside a kernel: each launch with samples in slices, under the roofs of the ordinary model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from ncu_roofline.analyses.hierarchical.view import Asked, Viewer
from ncu_roofline.analyses.phases.slices import FEWEST, Band, Phases, phases_of
from ncu_roofline.base.errors import UsageError
from ncu_roofline.base.texts import clean, conjoined, listed, plural
from ncu_roofline.chips.tables import load_phases
from ncu_roofline.chips.verdict import REPEATED, SAMPLED_WHOLE, STRETCHED
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.model import Displayed, Measurements, Roofline, Selection, columns, measurements_of, roofline
from ncu_roofline.model.roofline import CeilingsFile, Columns, Source, frame_of, of_rows, seen
from ncu_roofline.model.selection import group
from ncu_roofline.rendering.document import Column
from ncu_roofline.rendering.frames import records, rows

Table = dict[str, np.ndarray[Any, Any]]
Row = dict[str, Any]
MIXED = "mixed"
ABOVE = (
    "above its roof: work is shared out by the activity of its pipe, which also does other things, and traffic by samples of "
    "another run"
)
_WHY = {
    "no-samples": "without samples over time",
    "no-time": "without run time",
    "too-few-samples": "with too few samples",
    "no-run": "of which no sample shows when they ran",
}
_HOW_TO_COLLECT = (
    "Samples over time come from `ncu --set full` or `ncu --section PmSampling` (2023.3 and later, Turing and later); the "
    "section RooflinePhases (`ncu-roofline install`, or `generate --ncu VERSION`; 2024.1 and later) also samples the pipes "
    "whose work is counted."
)
_NAMED = 2  # notes of launches without slices
_text, _integer, _number = Column.text, Column.integer, Column.number
WHERE = tuple(column for column in columns.WHERE if column.name != "compute_capability")
_SLICE = (
    _integer("slice", "position of the slice of time, from 0"),
    _number("begin", "second", "when the slice begins, from the launch's beginning"),
    _number("end", "second", "when it ends"),
)
POINTS = (
    *WHERE,
    *_SLICE,
    _text("precision", "precision id"),
    _text("level", "memory level id"),
    _number("work", "flop", "operations of the launch, shared out by the activity of the pipe that does them"),
    _text("unit", "flop or op: what work counts"),
    _number("traffic", "byte", "bytes of the launch, shared out by the utilisation of the level"),
    _number("intensity", "flop/byte", "work / traffic; NaN where nothing moved"),
    _number("performance", "flop/s", "work / (end - begin)"),
    _number("attainable", "flop/s", "min(compute roof, intensity * bandwidth roof)"),
    _number("fraction", "ratio", "performance / attainable"),
    _number("compute_roof", "flop/s", "compute roof of this precision, measured where given"),
    _number("bandwidth_roof", "byte/s", "bandwidth roof of this level, measured where given"),
    _text("source", "where the launch's work and traffic come from, as in the ordinary roofline"),
    _text("metrics", "ncu metrics that gave them, and those that were sampled"),
    _text("notes", "what a reader must know of this row"),
)
BANDS = (
    *WHERE,
    *_SLICE,
    _text("band", "sm, tensor, fma, fp64, fp16, alu, l1, l2 or dram"),
    _text("name", "what the band is called"),
    _number("utilisation", "ratio", "mean share of its peak; NaN where less than half of the slice was sampled"),
    _text("metrics", "sampled metrics that gave it"),
)
SAMPLED = (
    *WHERE,
    _number("seconds", "second", "run time"),
    _text("status", "ok (has slices), no-samples, no-time, too-few-samples or no-run"),
    _text("dots", "why there are no points: the status, incomplete, no-traffic, no-work or gaps; '' where there are"),
    _integer("slices", "slices of its time"),
    _integer("samples", "samples during the launch, of the pass group with fewest"),
    _integer("groups", "pass groups, each sampled in a run of its own"),
    _number("sampled_share", "ratio", "share of the time that was sampled, from the beginning on"),
    _integer("blocks", "thread blocks of the grid; -1 where unknown"),
    _integer("blocks_started", "thread blocks whose start was sampled; -1 where that was not"),
    _number("stretch", "ratio", "run time / the shortest run of a pass group: by what it was stretched"),
    _number("shrink", "ratio", "run time / the longest run of a pass group"),
    _number("scale", "ratio", "counted bytes of DRAM / bytes that its sampled percent and its peak would give"),
    _integer("dropped", "samples that ncu dropped"),
    _integer("merged", "samples that ncu merged"),
    _text("aligned", "how the runs were found, best first"),
    _text("notes", "what a reader must know of this launch, sentences separated by '; '"),
)
TABLES = {"points": POINTS, "bands": BANDS, "sampled": SAMPLED, "roofs": columns.ROOFS}


@dataclass(frozen=True, repr=False)
class PhaseRoofline(Displayed):
    """Launches over their time, as tables of equally long columns.

    `points`, `bands` and `sampled` are the same as DataFrames (columns: `ncu_roofline.analyses.phases.frames`); `roofs` and
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
        SAMPLED, "kernel", "launch", "seconds", status="samples", slices="slices", sampled_share="sampled"
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
    points, bands, sampled = list[Row](), list[Row](), list[Row]()
    for row in range(len(chosen)):
        where = {name: ordinary.kernel_columns[name][row] for name in ("report", "launch", "kernel", "device", "label", "step")}
        phases = phases_of(chosen.samples[row], float(chosen.seconds[row]), load_phases())
        places = [
            {**where, "slice": index, "begin": begin, "end": end}
            for index, (begin, end) in enumerate(pairwise(phases.edges.tolist()))
        ]
        for band in phases.bands:
            about = {"band": band.spec.id, "name": band.spec.label, "metrics": " ".join(band.metrics)}
            bands += [{**at, **about, "utilisation": value} for at, value in zip(places, band.values.tolist(), strict=True)]
        mine = [
            (point, phases.band(precision=str(point["precision"])), phases.band(level=str(point["level"])))
            for point in counted.get((str(chosen.report[row]), int(chosen.launch[row])), ())
        ]
        grid = math.prod(int(part) for part in str(chosen.grid[row]).split("x")) if chosen.grid[row] else 0  # blocks
        no_dots = _why_no_dots(phases, grid, mine)
        points += [slice_ for each in mine if not no_dots for slice_ in _slices_of(places, *each)]
        sampled.append({**where, "dots": no_dots, **_about(chosen, row, phases, grid)})
    return PhaseRoofline(
        of_rows(points, POINTS),
        of_rows(bands, BANDS),
        of_rows(sampled, SAMPLED),
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
    found: dict[tuple[str, int], list[Row]] = {}
    for point in records(ordinary.point_columns):
        if point["precision"] != MIXED:
            found.setdefault((point["report"], point["launch"]), []).append(point)
    return found


_Counted = tuple[Row, Band | None, Band | None]  # a point, and the bands of its pipe and of its level


def _slices_of(places: Sequence[Row], point: Row, pipe: Band | None, moved: Band | None) -> Iterator[Row]:
    """A point with what parts of its work and of its bytes are in each slice."""
    if not pipe or not moved or pipe.shares is None or moved.shares is None:
        return
    metrics = dict.fromkeys((str(point["metrics"]), *pipe.metrics, *moved.metrics))
    same = {name: point[name] for name in ("precision", "level", "unit", "compute_roof", "bandwidth_roof", "source")}
    totals = (pipe.shares * point["work"]).tolist(), (moved.shares * point["traffic"]).tolist()
    for place, work, traffic in zip(places, *totals, strict=True):
        row = {**place, **same, "work": work, "traffic": traffic, "metrics": "; ".join(metrics)}
        row["intensity"] = work / traffic if traffic > 0 else math.nan
        row["performance"] = work / (place["end"] - place["begin"])
        row["attainable"] = min(point["compute_roof"], row["intensity"] * point["bandwidth_roof"])
        row["fraction"] = row["performance"] / row["attainable"] if row["attainable"] > 0 else math.nan
        yield {**row, "notes": ABOVE if row["fraction"] > REPEATED else ""}


def _why_no_dots(phases: Phases, grid: int, counted: Sequence[_Counted]) -> str:
    """Why there are none, "" where there are."""
    if phases.status != "ok":
        return phases.status
    if not phases.complete(grid):
        return "incomplete"
    if not any(moved for *_, moved in counted):
        return "no-traffic"
    both = [(pipe, moved) for _, pipe, moved in counted if pipe and moved]
    if any(pipe.shares is not None and moved.shares is not None for pipe, moved in both):
        return ""
    return "gaps" if any(np.isnan(band.values).any() for pair in both for band in pair) else "no-work"


def _about(m: Measurements, row: int, phases: Phases, grid: int) -> Row:
    """What was sampled of a launch of so many blocks."""
    seconds, groups = float(m.seconds[row]), [run.group for run in phases.runs]
    stretches, scale = [seconds / run.length for run in phases.runs], _scale(m, row, phases, grid)
    return {
        "seconds": seconds,
        "status": phases.status,
        "slices": phases.count,
        "samples": min((run.samples_inside() for run in phases.runs), default=0),
        "groups": len(groups),
        "sampled_share": phases.sampled,
        "blocks": grid or -1,
        "blocks_started": phases.blocks,
        "stretch": max(stretches, default=math.nan),
        "shrink": min(stretches, default=math.nan),
        "scale": scale,
        "dropped": sum(one.dropped for one in groups),
        "merged": sum(one.merged for one in groups),
        "aligned": ", ".join(dict.fromkeys(run.way for run in phases.runs)),
        "notes": "; ".join(_notes(m, row, phases, grid, stretches, scale)),
    }


def _scale(m: Measurements, row: int, phases: Phases, grid: int) -> float:
    """Counted bytes of device memory / those of its sampled percent at the theoretical peak, NaN where one is unknown."""
    for band in phases.bands:
        traffic, roof = m.traffic.get(band.spec.level), m.bandwidth.get(band.spec.level)
        if band.spec.moves and traffic and roof and phases.complete(grid):
            sampled = float(band.values.mean()) * float(m.seconds[row]) * float(roof.values[row])
            return float(traffic.values[row]) / sampled if sampled > 0 else math.nan
    return math.nan


def _notes(m: Measurements, row: int, phases: Phases, grid: int, stretches: Sequence[float], scale: float) -> Iterator[str]:
    samples, groups = m.samples[row], [run.group for run in phases.runs]
    if phases.status == "too-few-samples":
        yield f"fewer than {FEWEST} samples in a pass group: sample at a shorter --pm-sampling-interval"
    if samples is not None and samples.unusable:
        yield f"{samples.unusable:,} values that no sampler can have given were left out"
    if phases.status != "ok":
        return
    if not phases.complete(grid):
        parts = [f"the first {100 * phases.sampled:.3g} % of its time"] if phases.sampled < SAMPLED_WHOLE else []
        if phases.blocks >= 0 and grid > phases.blocks:
            parts.append(f"the start of {phases.blocks:,} of {grid:,} thread blocks")
        lost = sum(one.dropped for one in groups)
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
    if merged := sum(one.merged for one in groups):
        yield f"ncu merged {merged:,} samples"
    if unknown := [band.spec.label for band in phases.bands if np.isnan(band.values).all()]:
        yield f"less than half of each slice was sampled of {conjoined(unknown)}"


def absent_notes(frames: PhaseRoofline) -> list[str]:
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


class _Phases(Viewer):
    """How commands with the option --view get the roofline over time inside a kernel."""

    name = "phases"
    by = "launch"
    samples = True
    more = " of work and traffic; the notes say what was sampled over time"

    def check(self, asked: Asked) -> None:
        if asked.by == "application":
            reason = "phases are those of one launch"
            raise UsageError("Cannot use --by", asked.by, reason, "Use --by kernel or --by launch.")
        if asked.source == "embedded":
            reason = "charts inside a report give one number per launch, and phases are made from samples over its time"
            raise UsageError("Cannot use --source", "embedded", reason, "Leave out --source or --view phases.")
        super().check(asked)

    def undrawn(self, frames: PhaseRoofline) -> list[str]:
        return absent_notes(frames)

    def frames(self, measurements: Measurements, ceilings: Sequence[Ceilings], asked: Asked) -> PhaseRoofline:
        return phase_roofline(measurements, ceilings, clock=asked.clock, by=asked.by, select=asked.select)


VIEWER = _Phases()
