"""What the PM sampler of ncu recorded of one launch: values over the GPU's time, one run of the launch per pass group."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ncu_roofline.chips.tables import counter_of, load_phases
from ncu_roofline.chips.verdict import MOST
from ncu_roofline.formats.report import Report
from ncu_roofline.formats.report.metrics import Instances, Metrics
from ncu_roofline.model.measurements import FloatArray, Measurements, objects

PASS_GROUPS = "profiler__pmsampler_pass_groups"
"""What every report has that was sampled over the time of its launches."""
_INTERVAL = "profiler__pmsampler_interval_time"
_DROPPED, _MERGED = "profiler__pmsampler_dropped_samples", "profiler__pmsampler_merged_samples"
_SWITCHES = "profiler__pmsampler_ctxsw_{}"
_STARTS, _ENDS = "profiler__timestamp_workload_start_{}", "profiler__timestamp_workload_end_{}"
_LATEST = 2**62  # nanoseconds: later than any clock of a GPU
_MOST_GROUPS = 1_000
_NANO = 1e-9
_MOST_PERCENT, _MOST_COUNT = 100 * MOST, 2.0**62
Stamped = Sequence[tuple[int, float]]


class Series(NamedTuple):
    """One metric of a pass group: ``times`` (s, ascending, from the group's first sample on) and ``values``, equally many."""

    metric: str
    times: FloatArray
    values: FloatArray

    @property
    def counter(self) -> str:
        """The metric without the group of counters in front of its name."""
        return counter_of(self.metric)


class PassGroup(NamedTuple):
    """What was sampled in one run of the launch.

    Times are in seconds from the group's first sample on, NaN where the report does not tell: ``begins`` and ``ends`` of the
    launch, ``switched`` when its context became active.  ``interval`` is in seconds, NaN where it was given in cycles.
    """

    series: tuple[Series, ...]
    begins: float
    ends: float
    switched: float
    interval: float
    dropped: int
    merged: int

    @property
    def last(self) -> float:
        return max((float(one.times[-1]) for one in self.series), default=math.nan)

    @property
    def step(self) -> float:
        """Seconds from a sample to the next, as most of them are; the interval where there is one sample."""
        steps = np.concatenate([np.diff(one.times) for one in self.series])
        steps = steps[steps > 0]
        return float(np.median(steps)) if len(steps) else self.interval


class Samples(NamedTuple):
    """The pass groups of a launch that hold something of use; ``unusable`` counts values that no sampler can have given."""

    groups: tuple[PassGroup, ...]
    unusable: int = 0


def with_samples(report: Report, m: Measurements) -> Measurements:
    return replace(m, samples=objects([samples_of(report.kernels[launch].metrics) for launch in m.launch.tolist()]))


def samples_of(metrics: Metrics) -> Samples | None:
    """What was sampled of the metrics that bands are made of, None without any.  Raises RooflineError for damaged bytes.

    There are no groups where every value is unusable.
    """
    candidates = _candidates(metrics.names())
    if not candidates:
        return None
    listed: dict[str, int] = {}  # the pass group of each metric, as far as the report tells
    for index, text in _instances(metrics, PASS_GROUPS)[:_MOST_GROUPS]:
        if isinstance(index, int) and isinstance(text, str):
            listed |= dict.fromkeys(text.split(","), index)
    unusable = 0
    # Metrics of which the report does not tell the group are together if they have the same first sample.
    groups: dict[tuple[int, int], dict[str, Stamped]] = {}
    for name in candidates:
        if counter_of(name) == name and name not in listed:
            continue  # the profiler's own metrics have the same names without anything in front
        samples, bad = _stamped(metrics, name)
        unusable += bad
        if samples:
            key = (listed[name], 0) if name in listed else (-1, samples[0][0])
            groups.setdefault(key, {})[name] = samples
    found = tuple(_pass_group(metrics, key[0], groups[key]) for key in sorted(groups))
    return Samples(found, unusable) if found or unusable else None


@lru_cache(maxsize=64)
def _candidates(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names that something is made of; thousands of launches have the same."""
    wanted = load_phases().counters()
    return tuple(name for name in names if counter_of(name) in wanted)


def _stamped(metrics: Metrics, name: str) -> tuple[Stamped, int]:
    """(nanoseconds, value) of each sample in the order of time, and how many could be none."""
    instances, most = metrics.instances(name), _MOST_PERCENT if "pct_of_peak" in name else _MOST_COUNT
    good = [
        (time, float(value))
        for time, value in instances
        if isinstance(time, int) and 0 <= time < _LATEST and isinstance(value, (int, float)) and 0 <= value <= most
    ]
    return sorted(good, key=lambda sample: sample[0]), len(instances) - len(good)


def _pass_group(metrics: Metrics, index: int, members: Mapping[str, Stamped]) -> PassGroup:
    origin = min(samples[0][0] for samples in members.values())

    def first(name: str, *, on: bool = False) -> float:
        """The time of a metric's first instance, which is its correlation id; ``on``: of the first that is not 0."""
        instances = _instances(metrics, name.format(index))
        times = [time for time, value in instances if isinstance(time, int) and (value or not on)]
        return (times[0] - origin) * _NANO if times else math.nan

    def of_group(name: str) -> float:
        found = [value for group, value in _instances(metrics, name) if group == index]
        return float(found[0]) if found and isinstance(found[0], (int, float)) else math.nan

    interval, lost = of_group(_INTERVAL), map(of_group, (_DROPPED, _MERGED))
    series = []
    for name, samples in members.items():
        times = np.array([(time - origin) * _NANO for time, _ in samples], dtype=np.float64)
        series.append(Series(name, times, np.array([value for _, value in samples], dtype=np.float64)))
    return PassGroup(
        tuple(series),
        first(_STARTS),
        first(_ENDS),
        first(_SWITCHES, on=True),
        interval * _NANO if interval > 0 else math.nan,
        *(int(count) if 0 < count < _LATEST else 0 for count in lost),
    )


def _instances(metrics: Metrics, name: str) -> Instances:
    return metrics.instances(name) if metrics.has_name(name) else []
