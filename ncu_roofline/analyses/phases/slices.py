"""One launch in slices of its time: bands of utilisation, what was sampled of it, and the share of its work per slice."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ncu_roofline.analyses.phases.alignment import Run, runs_of, sampled_until
from ncu_roofline.chips.phases import BandSpec, PhaseSpec
from ncu_roofline.chips.thresholds import SAMPLED_WHOLE
from ncu_roofline.model.measurements import FloatArray
from ncu_roofline.model.samples import Samples, Series

MOST_SLICES, FEWEST = 40, 4


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
    runs = runs_of(samples, seconds)
    drawn = spec.drawn()
    shown = [run for run in runs if any(one.counter in drawn for one in run.group.series)]
    if not shown:
        return Phases("no-run", runs=runs)
    fewest = min(run.samples_inside() for run in shown)
    until = sampled_until(shown, seconds)
    if fewest < FEWEST or not until > 0:
        return Phases("too-few-samples", runs=runs)
    edges = np.linspace(0.0, until, min(fewest, MOST_SLICES) + 1)
    bands = tuple(_bands(shown, edges, seconds, spec))
    return Phases("ok", edges, bands, runs, until / seconds, _blocks(runs, spec))


def _bands(runs: Sequence[Run], edges: FloatArray, seconds: float, spec: PhaseSpec) -> Iterator[Band]:
    for band in spec.bands:
        for way in band.metrics:
            found = _of_way(runs, way)
            if found:
                run, series = found
                values = np.mean([run.averages(one, edges, seconds) for one in series], axis=0) / 100
                yield Band(band, values, tuple(one.metric for one in series))
                break


def _of_way(runs: Sequence[Run], way: tuple[str, ...]) -> tuple[Run, list[Series]] | None:
    """The run that has all metrics of a way, and these."""
    for run in runs:
        by_name = {one.counter: one for one in run.group.series}
        if all(name in by_name for name in way):
            return run, [by_name[name] for name in way]
    return None


def _blocks(runs: Sequence[Run], spec: PhaseSpec) -> int:
    """Blocks whose start was sampled: those of the metric that saw most of them; -1 where none saw any."""
    sums = [float(one.values.sum()) for run in runs for one in run.group.series if one.counter in spec.blocks]
    seen = max(sums, default=0.0)
    return round(seen) if 0 < seen < 2**62 else -1
