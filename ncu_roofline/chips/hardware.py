"""How busy hardware units were, occupancy and the like: which metrics tell, from ``ncu_roofline/data/units.toml``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from ncu_roofline.chips.fields import LAST_RELEASE, Capability, Fields, Release, expand
from ncu_roofline.chips.loading import read_fields

if TYPE_CHECKING:
    from importlib.abc import Traversable

FILE = "units.toml"
SHARES = (".avg.pct_of_peak_sustained_elapsed", ".sum.pct_of_peak_sustained_elapsed")
"""How a metric is called that gives, in percent, the share of a unit's peak over the whole launch; both have one value."""
SHARES_ACTIVE = (".avg.pct_of_peak_sustained_active", ".sum.pct_of_peak_sustained_active")
"""The same over the cycles in which the unit was active."""
IN_SM = ("sm__", "smsp__", "l1tex__", "idc__")
"""How metrics of units begin that are active when their SM is."""
ACTIVE = "sm__cycles_active"
ELAPSED = ("sm__cycles_elapsed.max", "sm__cycles_elapsed.avg", "gpc__cycles_elapsed.max", "gpc__cycles_elapsed.avg")
"""Cycles in which SMs were active (.avg, .min, .max over them), and all cycles of which these are a part, best first."""


def share_names(metric: str) -> tuple[str, ...]:
    """The full names of a metric (without suffix) that give a unit's share, best first."""
    return tuple(metric + suffix for suffix in (*SHARES, *(SHARES_ACTIVE if metric.startswith(IN_SM) else ())))


@dataclass(frozen=True)
class Unit:
    """A hardware unit: the largest of its ``metrics`` (without suffix) says how full it was.

    ``kind`` is compute or memory, ``level`` the id of the memory level it stands for or "".  ``group``: it holds named units.
    Where none of the metrics is there, each of ``parts`` gives metrics that add up to its share; fewer of them a lower bound.
    """

    id: str
    label: str
    kind: str
    level: str
    metrics: tuple[str, ...]
    group: bool
    parts: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Scale:
    """Metrics (without suffix) of chips on which the unit's percentage, times ``factor``, is the share of what it can do."""

    metrics: tuple[str, ...]
    ranges: tuple[tuple[Capability, Capability], ...]
    factor: float

    def of(self, metric: str, compute_capability: Capability) -> float:
        """The factor of a metric (full name), 1 where it is another one or another chip."""
        known = metric.partition(".")[0] in self.metrics
        return self.factor if known and any(since <= compute_capability <= until for since, until in self.ranges) else 1.0


@dataclass(frozen=True)
class OnSome:
    """A metric (full name) that only chips of some compute capabilities have, or that means something on them only."""

    metric: str
    ranges: tuple[tuple[Capability, Capability], ...]

    def applies(self, compute_capability: Capability) -> bool:
        """Whether it holds for chips of this compute capability."""
        return any(since <= compute_capability <= until for since, until in self.ranges)


@dataclass(frozen=True)
class Rate:
    """Metrics (full names) that give bytes per second as percent of a level's bandwidth roof: their sum, on some chips."""

    metrics: tuple[str, ...]
    ranges: tuple[tuple[Capability, Capability], ...]
    level: str

    def applies(self, compute_capability: Capability) -> bool:
        """Whether it holds for chips of this compute capability."""
        return any(since <= compute_capability <= until for since, until in self.ranges)


@dataclass(frozen=True)
class TensorInstructions(OnSome):
    """A metric that counts one kind of instruction of the tensor pipe; ``releases`` of Nsight Compute know its name."""

    label: str
    releases: tuple[Release, Release]


@dataclass(frozen=True)
class Gauge:
    """A number besides: the first of its ``metrics`` (full names) that is there, times ``scale``; above ``most`` it is none."""

    id: str
    scale: float
    metrics: tuple[str, ...]
    most: float


@dataclass(frozen=True)
class TensorActivity:
    """Metrics (without suffix) of the tensor pipe's activity.

    The largest of the first row of ``whole`` whose first metric is there, else the largest of ``parts``.  ``instructions``: its
    kinds, and which chips have a counter of each.
    """

    whole: tuple[tuple[str, ...], ...]
    parts: tuple[str, ...]
    instructions: tuple[TensorInstructions, ...]


@dataclass(frozen=True)
class Units:
    """All of it; of a counter of ``slices`` in any of ``slice_forms`` sum over average is the number of L2 slices."""

    units: tuple[Unit, ...]
    rates: tuple[Rate, ...]
    scales: tuple[Scale, ...]
    gauges: tuple[Gauge, ...]
    counts: tuple[Gauge, ...]
    tensor: TensorActivity
    slices: tuple[str, ...]
    slice_forms: tuple[str, ...]

    @property
    def slice_pairs(self) -> tuple[tuple[str, str], ...]:
        """Metrics whose quotient is the number of L2 slices: sum and average of a counter."""
        return tuple((f"{name}.sum{form}", f"{name}.avg{form}") for name in self.slices for form in self.slice_forms)

    def metrics(self) -> Iterator[str]:
        """Full names of all metrics that could tell something."""
        named = [*(unit.metrics for unit in self.units), *(part for unit in self.units for part in unit.parts)]
        for name in (name for names in (*named, *self.tensor.whole, self.tensor.parts) for name in names):
            yield from share_names(name)
        yield from (metric for rate in self.rates for metric in rate.metrics)
        for gauge in (*self.gauges, *self.counts):
            yield from gauge.metrics
        yield from (*ELAPSED, *(f"{ACTIVE}.{how}" for how in ("avg", "min", "max")))

    def scale(self, metric: str, compute_capability: Capability) -> float:
        """What the percentage of a metric (full name) is to be multiplied by."""
        return math.prod(one.of(metric, compute_capability) for one in self.scales)


@lru_cache(maxsize=1)
def load_units() -> Units:
    """The file that comes with the package, read once."""
    return read_units(resources.files("ncu_roofline") / "data")


def read_units(folder: Traversable) -> Units:
    """Read and check the file in a folder of data files; `SpecError` names the key of the first mistake."""
    file = read_fields(folder / FILE, FILE)
    units = [_unit(fields, group=False) for fields in file.tables("unit")]
    units += [_unit(fields, group=True) for fields in file.tables("group")]
    gauges, counts, tensor, slices = (file.table(key) for key in ("gauges", "counts", "tensor", "slices"))
    found = Units(
        tuple(units),
        tuple(_rate(fields) for fields in file.tables("rate")),
        tuple(_scale(fields) for fields in file.tables("scale")),
        tuple(_gauge(name, gauges.table(name)) for name in gauges.names()),
        tuple(_gauge(name, counts.table(name)) for name in counts.names()),
        TensorActivity(
            tuple(tuple(expand(pattern)) for pattern in tensor.texts("whole")),
            tensor.texts("parts"),
            tuple(_instructions(fields) for fields in tensor.tables("instructions")),
        ),
        slices.texts("counters"),
        slices.texts("forms"),
    )
    for one in (file, tensor, slices):
        one.finish()
    ids = [unit.id for unit in units]
    if len(set(ids)) < len(ids):
        file.fail("unit", "names something twice")
    return found


def _unit(fields: Fields, *, group: bool) -> Unit:
    unit = Unit(
        id=fields.text("id"),
        label=fields.text("label"),
        kind=fields.text("kind", allowed=("compute", "memory")),
        level=fields.text("level", ""),
        metrics=fields.texts("metrics"),
        group=group,
        parts=tuple(tuple(expand(pattern)) for pattern in fields.texts("parts", required=False)),
    )
    fields.finish()
    return unit


def _scale(fields: Fields) -> Scale:
    scale = Scale(fields.texts("metrics"), fields.ranges("capabilities"), fields.number("factor"))
    fields.finish()
    return scale


def _rate(fields: Fields) -> Rate:
    rate = Rate(tuple(expand(fields.text("metric"))), fields.ranges("capabilities"), fields.text("level"))
    fields.finish()
    return rate


def _instructions(fields: Fields) -> TensorInstructions:
    releases = fields.releases("releases") if fields.has("releases") else ((0, 0), LAST_RELEASE)
    kind = TensorInstructions(fields.text("metric"), fields.ranges("capabilities"), fields.text("label"), releases)
    fields.finish()
    return kind


def _gauge(name: str, fields: Fields) -> Gauge:
    gauge = Gauge(name, fields.number("scale"), fields.texts("metrics"), fields.number("most"))
    fields.finish()
    return gauge
