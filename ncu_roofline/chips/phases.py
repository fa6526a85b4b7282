"""What the PM sampler records over the time of a launch, as ``data/phases.toml`` has it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from ncu_roofline.chips.fields import Capability, Fields
from ncu_roofline.chips.loading import read_fields

if TYPE_CHECKING:
    from importlib.abc import Traversable

FILE = "phases.toml"
_BOTH = " + "


def counter_of(metric: str) -> str:
    """The name of a sampled metric without the group of counters in front of it; "" for a name of another form."""
    parts = metric.rpartition(":")[2].split(".")  # "pmsampling:sm__x.sum", "SM_A.TriageSCG.sm__x.sum"
    return ".".join(parts[next((place for place, part in enumerate(parts) if "__" in part), len(parts)) :])


@dataclass(frozen=True)
class Collected:
    """A metric that our section samples on chips in ``ranges`` (both ends included), in a pass with its ``group``.

    It may have the group of counters in front of it that the sampler takes it from.
    """

    metric: str
    ranges: tuple[tuple[Capability, Capability], ...]
    group: str

    def applies(self, chip: Capability) -> bool:
        """Whether it is sampled on a chip."""
        return any(low <= chip <= high for low, high in self.ranges)


@dataclass(frozen=True)
class BandSpec:
    """A band of utilisation: ``ways`` to it, each a name or several that are averaged, the best first.

    ``shapes``: ids of precisions, or their first parts, whose operations go with the band's activity.  ``level``: the memory
    level that it belongs to, or "", and ``moves`` whether it says how many bytes moved.
    """

    id: str
    label: str
    ways: tuple[tuple[str, ...], ...]
    shapes: tuple[str, ...] = ()
    level: str = ""
    moves: bool = False
    collect: tuple[Collected, ...] = ()

    def shaped(self, precision: str) -> bool:
        """Whether the operations of a precision go with its activity."""
        return any(precision == one or precision.startswith(f"{one}.") for one in self.shapes)


@dataclass(frozen=True)
class PhaseSpec:
    """All bands in the order in which they stand; metrics that count blocks as they start, of them that of our section; and
    those that tell when SMs are active.
    """

    bands: tuple[BandSpec, ...]
    blocks: tuple[str, ...]
    activity: tuple[str, ...]
    collected_blocks: str

    def drawn(self) -> frozenset[str]:
        """Every name that a band is made of."""
        return frozenset(name for band in self.bands for way in band.ways for name in way)

    def counters(self) -> frozenset[str]:
        """Every name that something is made of."""
        return frozenset(self.blocks + self.activity) | self.drawn()


@lru_cache(maxsize=1)
def load_phases() -> PhaseSpec:
    """The description that comes with the package, read once."""
    return read_phases(resources.files("ncu_roofline") / "data")


def read_phases(folder: Traversable) -> PhaseSpec:
    """Read and check the file in a folder of data files; `SpecError` names the key of the first mistake."""
    fields = read_fields(folder / FILE, FILE)
    bands = []
    for table in fields.tables("bands"):
        bands.append(
            BandSpec(
                id=table.text("id"),
                label=table.text("label"),
                ways=tuple(tuple(way.split(_BOTH)) for way in table.texts("metrics")),
                shapes=table.texts("shapes", required=False),
                level=table.text("level", ""),
                moves=table.flag("moves"),
                collect=tuple(map(_collected, table.tables("collect", required=False))),
            )
        )
        table.finish()
    found = PhaseSpec(tuple(bands), fields.texts("blocks"), fields.texts("activity"), fields.text("collected_blocks"))
    fields.finish()
    return found


def _collected(fields: Fields) -> Collected:
    found = Collected(fields.text("metric"), fields.ranges("capabilities"), fields.text("group"))
    fields.finish()
    return found
