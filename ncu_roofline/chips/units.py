"""How busy hardware units were, occupancy and the like: which metrics tell, from ``ncu_roofline/data/units.toml``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Literal, NamedTuple

from ncu_roofline.chips.fields import (
    ALL,
    DATA,
    LAST_RELEASE,
    AllExpanded,
    Capability,
    Expanded,
    Ranges,
    Releases,
    covers,
    read,
)

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


class Unit(NamedTuple):
    """A hardware unit: the largest of its ``metrics`` (without suffix) says how full it was.

    ``kind`` is compute or memory, ``level`` the id of the memory level it stands for or "".  ``group``: it holds named units.
    Where none of the metrics is there, each of ``parts`` gives metrics that add up to its share; fewer of them a lower bound.
    """

    id: str
    label: str
    kind: Literal["compute", "memory"]
    metrics: tuple[str, ...]
    level: str = ""
    parts: AllExpanded = ()
    group: bool = False


class Scale(NamedTuple):
    """Metrics (without suffix) of chips on which the unit's percentage, times ``factor``, is the share of what it can do."""

    metrics: tuple[str, ...]
    capabilities: Ranges
    factor: float


class Rate(NamedTuple):
    """Metrics (full names) that give bytes per second as percent of a level's bandwidth roof: their sum, on some chips."""

    metrics: Expanded
    level: str
    capabilities: Ranges = ALL


class TensorInstructions(NamedTuple):
    """A metric that counts one kind of instruction of the tensor pipe; ``releases`` of Nsight Compute know its name."""

    metric: str
    label: str
    capabilities: Ranges
    releases: Releases = ((0, 0), LAST_RELEASE)

    def applies(self, compute_capability: Capability) -> bool:
        """Whether chips of this compute capability have it."""
        return covers(self.capabilities, compute_capability)


class Gauge(NamedTuple):
    """A number besides: the first of its ``metrics`` (full names) that is there, times ``scale``; above ``most`` it is none."""

    scale: float
    metrics: tuple[str, ...]
    most: float
    id: str = ""


class TensorActivity(NamedTuple):
    """Metrics (without suffix) of the tensor pipe's activity.

    The largest of the first row of ``whole`` whose first metric is there, else the largest of ``parts``.  ``instructions``: its
    kinds, and which chips have a counter of each.
    """

    whole: AllExpanded
    parts: tuple[str, ...]
    instructions: tuple[TensorInstructions, ...]


class Slices(NamedTuple):
    """Of one of these counters in one of these forms sum over average is the number of L2 slices."""

    counters: tuple[str, ...]
    forms: tuple[str, ...]


class _File(NamedTuple):
    unit: tuple[Unit, ...]
    group: tuple[Unit, ...]
    rate: tuple[Rate, ...]
    scale: tuple[Scale, ...]
    gauges: Mapping[str, Gauge]
    counts: Mapping[str, Gauge]
    tensor: TensorActivity
    slices: Slices


class Units(NamedTuple):
    """All of it."""

    units: tuple[Unit, ...]
    rates: tuple[Rate, ...]
    scales: tuple[Scale, ...]
    gauges: tuple[Gauge, ...]
    counts: tuple[Gauge, ...]
    tensor: TensorActivity
    slices: Slices

    def metrics(self) -> Iterator[str]:
        """Full names of all metrics that could tell something."""
        named = [*(unit.metrics for unit in self.units), *(part for unit in self.units for part in unit.parts)]
        for name in (name for names in (*named, *self.tensor.whole, self.tensor.parts) for name in names):
            yield from (name + form for form in SHARES + (SHARES_ACTIVE if name.startswith(IN_SM) else ()))
        yield from (metric for rate in self.rates for metric in rate.metrics)
        for gauge in (*self.gauges, *self.counts):
            yield from gauge.metrics
        yield from (*ELAPSED, *(f"{ACTIVE}.{how}" for how in ("avg", "min", "max")))


@lru_cache(maxsize=1)
def load_units() -> Units:
    """The file that comes with the package, read once."""
    file = read(DATA / FILE, FILE, _File)
    units = (*file.unit, *(unit._replace(group=True) for unit in file.group))
    gauges, counts = (tuple(one._replace(id=name) for name, one in table.items()) for table in (file.gauges, file.counts))
    return Units(units, file.rate, file.scale, gauges, counts, file.tensor, file.slices)
