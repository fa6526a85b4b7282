"""One launch in slices of its time: the runs of its pass groups on one axis, and the mean of each band per slice.

Each pass group is another run of the launch, which begins and ends somewhere in its samples.  A run is found, best first, by
what ncu says of when it began and ended (2025.3 and later), by the activity of the SMs, which rest before and after it, by the
switch to its context with the lead and the length that the other groups have from it, and by where the cumulated work of the
group lies.  Runs differ a little in length: each is stretched to the launch's time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ncu_roofline.chips.tables import BandSpec, PhaseSpec, load_phases
from ncu_roofline.chips.verdict import SAMPLED_WHOLE
from ncu_roofline.model.extract import PassGroup, Samples, Series
from ncu_roofline.model.measurements import FloatArray

MOST_SLICES, FEWEST = 40, 4
TOLD, ACTIVE, SWITCHED, CUMULATED = "told by ncu", "activity of the SMs", "context switch", "cumulated work"
_ENDS_WITHIN = 1.05  # of a launch's time; a run that is sampled to its last sample and is shorter was cut off
_WORK_OUTSIDE = 0.005  # of a group's cumulated work that may lie before, and behind its run
_LONGER = 1.25  # times the length of other runs: what goes on longer is no part of it
_GAP = 1.5  # steps: what lies further from its sample was not sampled


@dataclass(frozen=True)
class Run:
    """A pass group with its run: ``begins``, ``ends`` (s, in the time of its samples), found by ``way``; ``cut`` if the
    samples end before the run does."""

    group: PassGroup
    begins: float
    ends: float
    way: str
    cut: bool = False

    @property
    def length(self) -> float:
        """Seconds that the run took; of one that was cut off as long as the launch."""
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


def _runs(samples: Samples, seconds: float) -> tuple[Run, ...]:
    """The run of each pass group of a launch that took ``seconds``; groups without anything that could be one are left out."""
    certain = [_told(group) or _active(group, seconds) for group in samples.groups]
    lengths = [run.length for run in certain if run and not run.cut] or [seconds]
    leads = [run.begins - run.group.switched for run in certain if run and math.isfinite(run.group.switched)] or [0.0]
    lead, length = float(np.median(leads)), float(np.median(lengths))
    runs = []
    for run, group in zip(certain, samples.groups, strict=True):
        run = run or _switched(group, lead, length) or _cumulated(group)
        if run and run.length > 0:
            runs.append(replace(run, cut=True) if run.ends > group.last + 2 * group.step else run)
    return tuple(runs)


def _told(group: PassGroup) -> Run | None:
    return Run(group, group.begins, group.ends, TOLD) if group.ends > group.begins else None


def _active(group: PassGroup, seconds: float) -> Run | None:
    """From the first to the last sample in which the SMs did anything once the context was active."""
    activity = [one for one in group.series if one.counter in load_phases().activity]
    busy = np.sort(np.concatenate([one.times[one.values > 0] for one in activity])) if activity else np.empty(0)
    if math.isfinite(group.switched):
        busy = busy[busy >= group.switched]
    if not len(busy):
        return None
    begins, ends = float(busy[0]) - group.step, float(busy[-1])
    if ends >= group.last and (ends - begins) * _ENDS_WITHIN < seconds:
        return Run(group, begins, begins + seconds, ACTIVE, cut=True)
    return Run(group, begins, ends, ACTIVE)


def _switched(group: PassGroup, lead: float, length: float) -> Run | None:
    """As long as other runs; longer where its work went on beyond that: a run of another length than most."""
    begins = group.switched + lead
    if not math.isfinite(begins):
        return None
    _, done = _worked(group, begins)
    longer = length < done - begins <= _LONGER * length
    return Run(group, begins, done if longer else begins + length, SWITCHED)


def _cumulated(group: PassGroup) -> Run | None:
    begins, ends = _worked(group, -math.inf)
    return Run(group, begins, ends, CUMULATED) if ends > begins else None


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


@dataclass(frozen=True)
class Band:
    """A band of a launch: the mean share of the peak per slice (NaN where unknown), and the metrics that gave it."""

    spec: BandSpec
    values: FloatArray
    metrics: tuple[str, ...]

    @property
    def shares(self) -> FloatArray | None:
        """What part of all its activity is in each slice; None where a slice is unknown or nothing was active."""
        total = float(self.values.sum())
        return self.values / total if total > 0 else None


@dataclass(frozen=True)
class Phases:
    """A launch over its time: ``edges`` (s) of its slices, one more than there are, and its bands.

    ``blocks`` whose start was sampled, -1 if none was; ``sampled``: share of the time of which there are samples.
    """

    status: str
    edges: FloatArray = field(default_factory=lambda: np.empty(0))
    bands: tuple[Band, ...] = ()
    runs: tuple[Run, ...] = ()
    sampled: float = math.nan
    blocks: int = -1

    @property
    def count(self) -> int:
        """Number of slices."""
        return max(len(self.edges) - 1, 0)

    def complete(self, grid: int) -> bool:
        """Whether all of the launch was sampled, as far as is known: to its end, and the start of every block of the grid."""
        whole = self.blocks < 0 or grid <= 0 or self.blocks >= SAMPLED_WHOLE * grid
        return whole and self.sampled >= SAMPLED_WHOLE and not any(run.group.dropped for run in self.runs)

    def band(self, precision: str = "", level: str = "") -> Band | None:
        """The band that the operations of a precision go with, or the bytes of a level."""
        for one in self.bands:
            if one.spec.shaped(precision) if precision else one.spec.moves and one.spec.level == level:
                return one
        return None


def phases_of(samples: Samples | None, seconds: float, spec: PhaseSpec) -> Phases:
    """The slices of a launch that took ``seconds``: as many as its coarsest pass group has samples, 40 at most."""
    if samples is None or not samples.groups:
        return Phases("no-samples")
    if not 0 < seconds < math.inf:
        return Phases("no-time")
    runs = _runs(samples, seconds)
    drawn = spec.drawn()
    shown = [run for run in runs if any(one.counter in drawn for one in run.group.series)]
    if not shown:
        return Phases("no-run", runs=runs)
    fewest = min(run.samples_inside() for run in shown)
    # All groups have samples until then, in seconds from the launch's beginning.
    ends = [(run.group.last - run.begins) * seconds / run.length if run.cut else seconds for run in shown]
    until = max(min([*ends, seconds]), 0.0)
    if fewest < FEWEST or not until > 0:
        return Phases("too-few-samples", runs=runs)
    edges = np.linspace(0.0, until, min(fewest, MOST_SLICES) + 1)
    # Blocks whose start was sampled: those of the metric that saw most of them.
    sums = [float(one.values.sum()) for run in runs for one in run.group.series if one.counter in spec.blocks]
    seen = max(sums, default=0.0)
    blocks = round(seen) if 0 < seen < 2**62 else -1
    return Phases("ok", edges, tuple(_bands(shown, edges, seconds, spec)), runs, until / seconds, blocks)


def _bands(runs: Sequence[Run], edges: FloatArray, seconds: float, spec: PhaseSpec) -> Iterator[Band]:
    """Each by the first of its ways all of whose metrics one run has."""
    series = [(run, {one.counter: one for one in run.group.series}) for run in runs]
    for band in spec.bands:
        for way in band.metrics:
            run, named = next(((run, named) for run, named in series if named.keys() >= set(way)), (None, {}))
            if run:
                means = [run.averages(named[name], edges, seconds) for name in way]
                yield Band(band, np.mean(means, axis=0) / 100, tuple(named[name].metric for name in way))
                break
