"""The roofline over time inside a kernel: each launch with samples in slices, under the roofs of the ordinary model.

Each pass group is another run of the launch, which begins and ends somewhere in its samples.  A run is found, best first, by
what ncu says of when it began and ended (2025.3 and later), by the activity of the SMs, which rest before and after it, by the
switch to its context with the lead and the length that the other groups have from it, and by where the cumulated work of the
group lies.  Runs differ a little in length: each is stretched to the launch's time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ncu_roofline.analyses.hierarchical.view import Asked, Viewer
from ncu_roofline.base.errors import UsageError
from ncu_roofline.base.groups import grouped
from ncu_roofline.base.texts import clean, conjoined, listed, plural
from ncu_roofline.chips.tables import BandSpec, load_phases
from ncu_roofline.chips.verdict import REPEATED, SAMPLED_WHOLE, STRETCHED, as_percent
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.model import Displayed, Measurements, Selection, columns, measurements_of, roofline
from ncu_roofline.model.extract import PassGroup, Samples, Series
from ncu_roofline.model.measurements import FloatArray
from ncu_roofline.model.roofline import CeilingsFile, Columns, Source, frame_of, of_rows, seen
from ncu_roofline.model.selection import group
from ncu_roofline.rendering.document import Column
from ncu_roofline.rendering.frames import records, rows

MOST_SLICES, FEWEST = 40, 4
TOLD, ACTIVE, SWITCHED, CUMULATED = "reported by ncu", "activity of the SMs", "context switch", "cumulated work"
_ENDS_WITHIN = 1.05  # of a launch's time; a run that is sampled to its last sample and is shorter was cut off
_WORK_OUTSIDE = 0.005  # of a group's cumulated work that may lie before, and behind its run
_LONGER = 1.25  # times the length of other runs: what goes on longer is no part of it
_GAP = 1.5  # steps: what lies further from its sample was not sampled
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
    "no-run": "whose run no sample shows",
}
_HOW_TO_COLLECT = (
    "Samples over time come from `ncu --set full` or `ncu --section PmSampling` (2023.3 and later, Turing and later); the "
    "section RooflinePhases (`ncu-roofline install`, or `generate --ncu VERSION`; 2024.1 and later) also samples the pipes "
    "whose work is counted."
)
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
    m = (select or Selection()).launches(measurements)
    if by == "kernel":  # of each its longest launch, of those with samples if there are any, in the order of the report
        sampled = [one is not None and bool(one.groups) for one in m.samples]
        longest, seconds = dict[int, int](), np.nan_to_num(m.seconds).tolist()
        for row, kernel in enumerate(group(m, "kernel").index.tolist()):
            longest[kernel] = max(longest.get(kernel, row), row, key=lambda one: (sampled[one], seconds[one], -one))
        m = m.take(np.array(sorted(longest.values()), dtype=np.int64))
    ordinary = roofline(m, ceilings, clock=clock, select=select)
    # Points of each launch, those of single precisions.
    single = (point for point in records(ordinary.point_columns) if point["precision"] != MIXED)
    counted = grouped(((point["report"], point["launch"]), point) for point in single)
    points, bands, about = list[Row](), list[Row](), list[Row]()
    for row in range(len(m)):
        where = {name: ordinary.kernel_columns[name][row] for name in ("report", "launch", "kernel", "device", "label", "step")}
        phases = _phases_of(m.samples[row], float(m.seconds[row]))
        edges = enumerate(pairwise(phases.edges.tolist()))
        places = [{**where, "slice": index, "begin": begin, "end": end} for index, (begin, end) in edges]
        for band in phases.bands:
            of_band = {"band": band.spec.id, "name": band.spec.label, "metrics": " ".join(band.metrics)}
            bands += [{**at, **of_band, "utilisation": value} for at, value in zip(places, band.values.tolist(), strict=True)]
        grid = math.prod(int(part) for part in str(m.grid[row]).split("x")) if m.grid[row] else 0  # blocks
        # All of the launch was sampled, as far as is known: to its end, and the start of every block of the grid.
        whole = phases.blocks < 0 or grid <= 0 or phases.blocks >= SAMPLED_WHOLE * grid
        whole = whole and phases.sampled >= SAMPLED_WHOLE and not any(run.group.dropped for run in phases.runs)
        dots, why = _dots(places, phases.bands, counted.get((str(m.report[row]), int(m.launch[row])), ()))
        why = phases.status if phases.status != "ok" else why if whole else "incomplete"
        points += dots if not why else ()
        about.append({**where, "dots": why, **_about(m, row, phases, grid, whole)})
    return PhaseRoofline(
        of_rows(points, POINTS),
        of_rows(bands, BANDS),
        of_rows(about, SAMPLED),
        ordinary.roof_columns,
        ordinary.kernel_columns,
        ordinary.sources,
    )


# The slices of a launch


class _Run(NamedTuple):
    """A pass group with its run: ``begins``, ``ends`` (s, in the time of its samples), found by ``way``; ``cut`` if the
    samples end before the run does, which then is as long as the launch."""

    group: PassGroup
    begins: float
    ends: float
    way: str
    cut: bool = False

    @property
    def length(self) -> float:
        return self.ends - self.begins

    def samples_inside(self) -> int:
        times = self.group.series[0].times
        return int(np.count_nonzero((times > self.begins) & (times <= self.ends + self.group.step / 2)))

    def averages(self, series: Series, edges: FloatArray, seconds: float) -> FloatArray:
        """Means of a series in the slices between ``edges`` (s, from the launch's beginning, of its ``seconds``).

        NaN where less than half of a slice was sampled.
        """
        at = self.begins + edges * (self.length / seconds)
        step = max(self.group.step, 1e-12)
        starts = np.maximum(np.concatenate([[series.times[0] - step], series.times[:-1]]), series.times - _GAP * step)
        widths = series.times - starts
        bounds = np.ravel(np.column_stack([starts, series.times]))

        def inside(heights: FloatArray) -> FloatArray:
            parts = np.ravel(np.column_stack([np.zeros(len(widths)), heights * widths]))
            return np.diff(np.interp(at, bounds, np.cumsum(parts)))

        covered, total = inside(np.ones(len(widths))), inside(series.values)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(covered >= np.diff(at) / 2, total / covered, np.nan)


class _Band(NamedTuple):
    """The mean share of the peak per slice (NaN where unknown), and the metrics that gave it.

    ``shares``: what part of all its activity is in each slice; None where a slice is unknown or nothing was active.
    """

    spec: BandSpec
    values: FloatArray
    metrics: tuple[str, ...]
    shares: FloatArray | None


class _Phases(NamedTuple):
    """A launch over its time: ``edges`` (s) of its slices, one more than there are, and its bands.

    ``blocks`` whose start was sampled, -1 if none was; ``sampled``: share of the time of which there are samples.
    """

    status: str
    edges: FloatArray = np.empty(0)
    bands: Sequence[_Band] = ()
    runs: Sequence[_Run] = ()
    sampled: float = math.nan
    blocks: int = -1


def _phases_of(samples: Samples | None, seconds: float) -> _Phases:
    """The slices of a launch that took ``seconds``: as many as its coarsest pass group has samples, 40 at most."""
    if samples is None or not samples.groups:
        return _Phases("no-samples")
    if not 0 < seconds < math.inf:
        return _Phases("no-time")
    spec = load_phases()
    runs = _runs(samples, seconds)
    shown = [run for run in runs if any(one.counter in spec.drawn() for one in run.group.series)]
    if not shown:
        return _Phases("no-run", runs=runs)
    fewest = min(run.samples_inside() for run in shown)
    # All groups have samples until then, in seconds from the launch's beginning.
    ends = [(run.group.last - run.begins) * seconds / run.length if run.cut else seconds for run in shown]
    until = max(min([*ends, seconds]), 0.0)
    if fewest < FEWEST or not until > 0:
        return _Phases("too-few-samples", runs=runs)
    edges, bands = np.linspace(0.0, until, min(fewest, MOST_SLICES) + 1), []
    named = [(run, {one.counter: one for one in run.group.series}) for run in shown]
    for band in spec.bands:  # each by the first of its ways all of whose metrics one run has
        ways = [(way, run, series) for way in band.metrics for run, series in named if series.keys() >= set(way)]
        for way, run, series in ways[:1]:
            values = np.mean([run.averages(series[name], edges, seconds) for name in way], axis=0) / 100
            total = float(values.sum())
            metrics = tuple(series[name].metric for name in way)
            bands.append(_Band(band, values, metrics, values / total if total > 0 else None))
    # Blocks whose start was sampled: those of the metric that saw most of them.
    sums = [float(one.values.sum()) for run in runs for one in run.group.series if one.counter in spec.blocks]
    blocks = round(max(sums)) if sums and 0 < max(sums) < 2**62 else -1
    return _Phases("ok", edges, bands, runs, until / seconds, blocks)


def _runs(samples: Samples, seconds: float) -> list[_Run]:
    """The run of each pass group of a launch that took ``seconds``; groups without anything that could be one are left out."""
    certain: list[_Run | None] = []
    for one in samples.groups:
        if one.ends > one.begins:
            certain.append(_Run(one, one.begins, one.ends, TOLD))
            continue
        # From the first to the last sample in which the SMs did anything once the context was active.
        activity = [series for series in one.series if series.counter in load_phases().activity]
        busy = np.sort(np.concatenate([series.times[series.values > 0] for series in activity])) if activity else np.empty(0)
        busy = busy[busy >= one.switched] if math.isfinite(one.switched) else busy
        if not len(busy):
            certain.append(None)
            continue
        begins, ends = float(busy[0]) - one.step, float(busy[-1])
        cut = ends >= one.last and (ends - begins) * _ENDS_WITHIN < seconds
        certain.append(_Run(one, begins, begins + seconds if cut else ends, ACTIVE, cut))
    length = float(np.median([run.length for run in certain if run and not run.cut] or [seconds]))
    leads = [run.begins - run.group.switched for run in certain if run and math.isfinite(run.group.switched)]
    lead, runs = float(np.median(leads or [0.0])), []
    for run, one in zip(certain, samples.groups, strict=True):
        if not run and math.isfinite(one.switched):  # as long as others; longer where its work went on: not all take as long
            begins = one.switched + lead
            _, done = _worked(one, begins)
            run = _Run(one, begins, done if length < done - begins <= _LONGER * length else begins + length, SWITCHED)
        run = run or _Run(one, *_worked(one, -math.inf), CUMULATED)
        if run.length > 0:
            runs.append(run._replace(cut=True) if run.ends > one.last + 2 * one.step else run)
    return runs


def _worked(group: PassGroup, since: float) -> tuple[float, float]:
    """When the work from ``since`` on began and was done, but for next to nothing, by the metric with most; NaN for none."""
    series = max(group.series, key=lambda one: float(one.values.sum()))
    values, times = series.values[series.times > since], series.times[series.times > since]
    total = float(values.sum())
    if not total > 0:
        return math.nan, math.nan
    share = np.cumsum(values) / total
    first, last = (min(int(np.searchsorted(share, part)), len(share) - 1) for part in (_WORK_OUTSIDE, 1 - _WORK_OUTSIDE))
    return float(times[first]) - group.step, float(times[last])


def _dots(places: Sequence[Row], bands: Sequence[_Band], counted: Sequence[Row]) -> tuple[list[Row], str]:
    """What parts of a launch's work and bytes are in each slice, or why that can't be told."""
    found, pairs, traffic = list[Row](), [], False
    for point in counted:
        pipe = next((one for one in bands if one.spec.shaped(str(point["precision"]))), None)
        moved = next((one for one in bands if one.spec.moves and one.spec.level == point["level"]), None)
        traffic = traffic or bool(moved)
        if not pipe or not moved:
            continue
        pairs += [pipe, moved]
        if pipe.shares is None or moved.shares is None:
            continue
        metrics = dict.fromkeys((str(point["metrics"]), *pipe.metrics, *moved.metrics))
        same = {name: point[name] for name in ("precision", "level", "unit", "compute_roof", "bandwidth_roof", "source")}
        totals = (pipe.shares * point["work"]).tolist(), (moved.shares * point["traffic"]).tolist()
        for place, work, moves in zip(places, *totals, strict=True):
            row = {**place, **same, "work": work, "traffic": moves, "metrics": "; ".join(metrics)}
            row["intensity"] = work / moves if moves > 0 else math.nan
            row["performance"] = work / (place["end"] - place["begin"])
            row["attainable"] = min(point["compute_roof"], row["intensity"] * point["bandwidth_roof"])
            row["fraction"] = row["performance"] / row["attainable"] if row["attainable"] > 0 else math.nan
            found.append({**row, "notes": ABOVE if row["fraction"] > REPEATED else ""})
    unknown = any(np.isnan(band.values).any() for band in pairs)
    return found, "no-traffic" if not traffic else "" if found else "gaps" if unknown else "no-work"


def _about(m: Measurements, row: int, phases: _Phases, grid: int, whole: bool) -> Row:
    """What was sampled of a launch of so many blocks; ``whole``: all of it, as far as is known."""
    seconds, groups, samples = float(m.seconds[row]), [run.group for run in phases.runs], m.samples[row]
    stretches = [seconds / run.length for run in phases.runs]
    scale, notes, dropped = math.nan, [], sum(one.dropped for one in groups)
    # Counted bytes of device memory / those of its sampled percent at the theoretical peak.
    for band in phases.bands if whole else ():
        traffic, roof = m.traffic.get(band.spec.level), m.bandwidth.get(band.spec.level)
        if band.spec.moves and traffic and roof and math.isnan(scale):
            sampled = float(band.values.mean()) * seconds * float(roof.values[row])
            scale = float(traffic.values[row]) / sampled if sampled > 0 else math.nan
    if phases.status == "too-few-samples":
        notes.append(f"fewer than {FEWEST} samples in a pass group: sample at a shorter --pm-sampling-interval")
    if samples is not None and samples.unusable:
        notes.append(f"{samples.unusable:,} values that no sampler can have given were left out")
    if phases.status == "ok" and not whole:
        parts = [f"the first {as_percent(phases.sampled)} of its time"] if phases.sampled < SAMPLED_WHOLE else []
        if phases.blocks >= 0 and grid > phases.blocks:
            parts.append(f"the start of {phases.blocks:,} of {grid:,} thread blocks")
        lost = f", and ncu dropped {dropped:,} samples" if dropped else ""
        notes.append(
            f"not all of it was sampled{f' ({listed(parts)})' if parts else ''}{lost}: the rest is unknown, not idle; "
            "a longer --pm-sampling-interval or a larger --pm-sampling-buffer-size of ncu holds more"
        )
    if stretches and phases.status == "ok" and (max(stretches) > STRETCHED or min(stretches) < 1 / STRETCHED):
        span = f"{min(stretches):.2f} to {max(stretches):.2f}"
        notes.append(f"the runs of its pass groups differ in length: they were stretched by {span}")
    if math.isfinite(scale):
        notes.append(f"the percent of DRAM is scaled by {scale:.2f} to the bytes that were counted")
    if unknown := [band.spec.label for band in phases.bands if np.isnan(band.values).all()]:
        notes.append(f"less than half of each slice was sampled of {conjoined(unknown)}")
    return {
        "seconds": seconds,
        "status": phases.status,
        "slices": max(len(phases.edges) - 1, 0),
        "samples": min((run.samples_inside() for run in phases.runs), default=0),
        "groups": len(groups),
        "sampled_share": phases.sampled,
        "blocks": grid or -1,
        "blocks_started": phases.blocks,
        "stretch": max(stretches, default=math.nan),
        "shrink": min(stretches, default=math.nan),
        "scale": scale,
        "dropped": dropped,
        "merged": sum(one.merged for one in groups),
        "aligned": ", ".join(dict.fromkeys(run.way for run in phases.runs)),
        "notes": "; ".join(notes),
    }


def absent_notes(frames: PhaseRoofline) -> list[str]:
    given = rows(frames, "sampled", "status", "notes")
    absent, told = grouped((status, clean(notes)) for status, notes in given if status != "ok"), []
    for status, notes in absent.items():
        noted = listed(filter(None, notes), 2)
        why = _WHY.get(status, clean(status)) + (f" ({noted})" if noted else "")
        told.append(f"{plural(len(notes), 'launch')} {why}.")
    return [*told, *([_HOW_TO_COLLECT] if "no-samples" in absent else [])]


class _PhasesViewer(Viewer):
    name = "phases"
    by = "launch"
    samples = True
    embedded = "charts inside a report give one number per launch, and phases are made from samples over its time"
    more = " of work and traffic; the notes say what was sampled over time"

    def check(self, asked: Asked) -> None:
        if asked.by == "application":
            raise UsageError("Cannot use --by", asked.by, "phases are those of one launch", "Use --by kernel or --by launch.")
        super().check(asked)

    def undrawn(self, frames: PhaseRoofline) -> list[str]:
        return absent_notes(frames)

    def frames(self, measurements: Measurements, ceilings: Sequence[Ceilings], asked: Asked) -> PhaseRoofline:
        return phase_roofline(measurements, ceilings, clock=asked.clock, by=asked.by, select=asked.select)


VIEWER = _PhasesViewer()
