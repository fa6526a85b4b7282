"""Pass groups of one launch on one time axis: each group is another run of it, which begins and ends somewhere in its samples.

A run is found, best first, by what ncu says of when it began and ended (2025.3 and later), by the activity of the SMs, which
rest before and after it, by the switch to its context with the lead and the length that the other groups have from it, and by
where the cumulated work of the group lies.  Runs differ a little in length: each is stretched to the launch's time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ncu_roofline.chips.phases import load_phases
from ncu_roofline.model.measurements import FloatArray
from ncu_roofline.model.samples import PassGroup, Samples, Series

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
        """Samples of its run."""
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
            pieces = np.ravel(np.column_stack([np.zeros(len(widths)), heights * widths]))
            return np.diff(np.interp(at, bounds, np.cumsum(pieces)))

        covered, total = inside(np.ones(len(widths))), inside(series.values)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(covered >= np.diff(at) / 2, total / covered, np.nan)


def runs_of(samples: Samples, seconds: float) -> tuple[Run, ...]:
    """The run of each pass group of a launch that took ``seconds``; groups without anything that could be one are left out."""
    found = [_told(group) or _active(group, seconds) for group in samples.groups]
    whole = [run for run in found if run and not run.cut]
    lengths = [run.length for run in whole] or [seconds]
    leads = [run.begins - run.group.switched for run in found if run and math.isfinite(run.group.switched)] or [0.0]
    lead, length = float(np.median(leads)), float(np.median(lengths))
    every = (
        run or _switched(group, lead, length) or _cumulated(group) for run, group in zip(found, samples.groups, strict=True)
    )
    return tuple(_checked(run) for run in every if run and run.length > 0)


def _told(group: PassGroup) -> Run | None:
    return Run(group, group.begins, group.ends, TOLD) if group.ends > group.begins else None


def _active(group: PassGroup, seconds: float) -> Run | None:
    """From the first to the last sample in which the SMs did anything once the context was active."""
    told = [one for one in group.series if one.counter in load_phases().activity]
    busy = np.sort(np.concatenate([one.times[one.values > 0] for one in told])) if told else np.empty(0)
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
    """Where all but next to nothing of the work is."""
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


def _checked(run: Run) -> Run:
    """The run as cut off where the samples end before it does."""
    return replace(run, cut=True) if run.ends > run.group.last + 2 * run.group.step else run


def sampled_until(runs: Sequence[Run], seconds: float) -> float:
    """Seconds from the launch's beginning until which all groups have samples, at most its ``seconds``."""
    ends = [(run.group.last - run.begins) * seconds / run.length if run.cut else seconds for run in runs]
    return max(min([*ends, seconds]), 0.0)
