"""What the PM sampler records over the time of a launch, as ``data/phases.toml`` has it."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, NamedTuple

from ncu_roofline.base.records import Stated
from ncu_roofline.chips.fields import DATA, Capability, Ranges, covers, read

FILE = "phases.toml"
Ways = Annotated[
    tuple[tuple[str, ...], ...], Stated(tuple[str, ...], lambda ways: tuple(tuple(way.split(" + ")) for way in ways))
]


def counter_of(metric: str) -> str:
    """The name of a sampled metric without the group of counters in front of it; "" for a name of another form."""
    parts = metric.rpartition(":")[2].split(".")  # "pmsampling:sm__x.sum", "SM_A.TriageSCG.sm__x.sum"
    return ".".join(parts[next((place for place, part in enumerate(parts) if "__" in part), len(parts)) :])


class Collected(NamedTuple):
    """A metric that our section samples on some chips, in a pass with its ``group``.

    It may have the group of counters in front of it that the sampler takes it from.
    """

    metric: str
    capabilities: Ranges
    group: str

    def applies(self, chip: Capability) -> bool:
        """Whether it is sampled on a chip."""
        return covers(self.capabilities, chip)


class BandSpec(NamedTuple):
    """A band of utilisation: ``metrics`` has the ways to it, each a name or several that are averaged, the best first.

    ``shapes``: ids of precisions, or their first parts, whose operations go with the band's activity.  ``level``: the memory
    level that it belongs to, or "", and ``moves`` whether it says how many bytes moved.
    """

    id: str
    label: str
    metrics: Ways
    shapes: tuple[str, ...] = ()
    level: str = ""
    moves: bool = False
    collect: tuple[Collected, ...] = ()

    def shaped(self, precision: str) -> bool:
        """Whether the operations of a precision go with its activity."""
        return any(precision == one or precision.startswith(f"{one}.") for one in self.shapes)


class PhaseSpec(NamedTuple):
    """All bands in the order in which they stand; metrics that count blocks as they start, of them that of our section; and
    those that tell when SMs are active.
    """

    bands: tuple[BandSpec, ...]
    blocks: tuple[str, ...]
    activity: tuple[str, ...]
    collected_blocks: str

    def drawn(self) -> frozenset[str]:
        """Every name that a band is made of."""
        return frozenset(name for band in self.bands for way in band.metrics for name in way)

    def counters(self) -> frozenset[str]:
        """Every name that something is made of."""
        return frozenset(self.blocks + self.activity) | self.drawn()


@lru_cache(maxsize=1)
def load_phases() -> PhaseSpec:
    """The description that comes with the package, read once."""
    return read(DATA / FILE, FILE, PhaseSpec)
