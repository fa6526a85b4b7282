"""Which hardware unit an arithmetic instruction needs, by its opcode."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from ncu_roofline.chips.fields import Capability
from ncu_roofline.chips.hardware import load_units
from ncu_roofline.chips.loading import read_fields

if TYPE_CHECKING:
    from importlib.abc import Traversable

FILE = "opcode_units.toml"


@dataclass(frozen=True)
class OpcodeUnits:
    """Rows in the order in which they are tried: ranges of compute capability, names of opcodes, and their unit."""

    rows: tuple[tuple[tuple[tuple[Capability, Capability], ...], frozenset[str], str], ...]

    def of(self, opcode: str, capability: Capability) -> str:
        """The id of the unit; "" where it is not known."""
        name = opcode.partition(".")[0]
        found = (unit for ranges, names, unit in self.rows if name in names and _covers(ranges, capability))
        return next(found, "")


def _covers(ranges: tuple[tuple[Capability, Capability], ...], capability: Capability) -> bool:
    return any(since <= capability <= until for since, until in ranges)


@lru_cache(maxsize=1)
def load_opcode_units() -> OpcodeUnits:
    """The table that comes with the package, read once."""
    return read_opcode_units(resources.files("ncu_roofline") / "data" / FILE)


def read_opcode_units(path: Traversable) -> OpcodeUnits:
    """Read and check a table.  `SpecError` names file and key of the first mistake."""
    file = read_fields(path, FILE)
    known = tuple(unit.id for unit in load_units().units)
    rows = []
    for fields in file.tables("rows"):
        unit = fields.text("unit", allowed=known)
        rows.append((fields.ranges("capabilities"), frozenset(fields.texts("names")), unit))
        fields.finish()
    file.finish()
    return OpcodeUnits(tuple(rows))
