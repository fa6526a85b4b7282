"""How busy hardware units were, occupancy and the like: which metrics tell, from ``ncu_roofline/data/units.toml``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from ncu_roofline.facts.fields import LAST_RELEASE, Capability, Fields, Release
from ncu_roofline.facts.loading import read_fields

if TYPE_CHECKING:
    from importlib.abc import Traversable

FILE = "units.toml"
SHARES = (".avg.pct_of_peak_sustained_elapsed", ".sum.pct_of_peak_sustained_elapsed")
"""How a metric is called that gives, in percent, the share of a unit's peak over the whole launch; both have one value."""


_OF = ("active", "elapsed")


@dataclass(frozen=True)
class Unit:
    """A hardware unit: the largest of its ``metrics`` (without suffix) says how full it was.

    ``kind`` is compute or memory, ``level`` the id of the memory level it stands for or "".  ``group``: a sum over named units.
    """

    id: str
    label: str
    kind: str
    level: str
    metrics: tuple[str, ...]
    group: bool


@dataclass(frozen=True)
class OnSome:
    """A metric (full name) that only chips of some compute capabilities have, or that means something on them only."""

    metric: str
    ranges: tuple[tuple[Capability, Capability], ...]

    def applies(self, compute_capability: Capability) -> bool:
        """Whether it holds for chips of this compute capability."""
        return any(since <= compute_capability <= until for since, until in self.ranges)


@dataclass(frozen=True)
class Rate(OnSome):
    """A metric that gives bytes per second as percent of a level's bandwidth roof."""

    level: str


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
    """Metrics (without suffix) of the tensor pipe's activity: the first of ``whole`` that is there, else the largest part.

    ``instructions``: its kinds, and which chips have a counter of each.  The first of ``whole`` is on every chip.
    """

    whole: tuple[str, ...]
    parts: tuple[str, ...]
    instructions: tuple[TensorInstructions, ...]

    def spellings(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Full names, best first: shares of elapsed cycles or, where those are not there, of active ones."""
        return tuple(f"{name}.{how}.pct_of_peak_sustained_{of}" for name in names for of in _OF for how in ("avg", "sum"))


@dataclass(frozen=True)
class Units:
    """All of it; of a counter of ``slices`` in any of ``slice_forms`` sum over average is the number of L2 slices."""

    units: tuple[Unit, ...]
    rates: tuple[Rate, ...]
    gauges: tuple[Gauge, ...]
    tensor: TensorActivity
    slices: tuple[str, ...]
    slice_forms: tuple[str, ...]

    @property
    def slice_pairs(self) -> tuple[tuple[str, str], ...]:
        """Metrics whose quotient is the number of L2 slices: sum and average of a counter."""
        return tuple((f"{name}.sum{form}", f"{name}.avg{form}") for name in self.slices for form in self.slice_forms)

    def metrics(self) -> Iterator[str]:
        """Full names of all metrics that could tell something."""
        for unit in self.units:
            yield from (name + suffix for name in unit.metrics for suffix in SHARES)
        yield from (rate.metric for rate in self.rates)
        for gauge in self.gauges:
            yield from gauge.metrics
        yield from self.tensor.spellings(self.tensor.whole + self.tensor.parts)


@lru_cache(maxsize=1)
def load_units() -> Units:
    """The file that comes with the package, read once."""
    return read_units(resources.files("ncu_roofline") / "data")


def read_units(folder: Traversable) -> Units:
    """Read and check the file in a folder of data files; `SpecError` names the key of the first mistake."""
    file = read_fields(folder / FILE, FILE)
    units = [_unit(fields, group=False) for fields in file.tables("unit")]
    units += [_unit(fields, group=True) for fields in file.tables("group")]
    gauges, tensor, slices = (file.table(key) for key in ("gauges", "tensor", "slices"))
    pipe = next(unit for unit in units if unit.id == "tensor")
    found = Units(
        tuple(units),
        tuple(_rate(fields) for fields in file.tables("rate")),
        tuple(_gauge(name, gauges.table(name)) for name in gauges.names()),
        TensorActivity(
            (*pipe.metrics, *tensor.texts("besides")),
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
    )
    fields.finish()
    return unit


def _rate(fields: Fields) -> Rate:
    rate = Rate(fields.text("metric"), fields.ranges("capabilities"), fields.text("level"))
    fields.finish()
    return rate


def _instructions(fields: Fields) -> TensorInstructions:
    releases = fields.releases("releases") if fields.has("releases") else ((0, 0), LAST_RELEASE)
    kind = TensorInstructions(fields.text("metric"), fields.ranges("capabilities"), fields.text("label"), releases)
    fields.finish()
    return kind


def _gauge(name: str, fields: Fields) -> Gauge:
    most = fields.number("most") if fields.has("most") else math.inf
    gauge = Gauge(name, fields.number("scale"), fields.texts("metrics"), most)
    fields.finish()
    return gauge
