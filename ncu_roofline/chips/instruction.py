"""What the instruction roofline counts, and its walls; Ding, Williams, "An Instruction Roofline Model for GPUs" (2019)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from ncu_roofline.chips.description import Binding, Spec
from ncu_roofline.chips.fields import LAST, Capability, Fields
from ncu_roofline.chips.formula import WeightedSum
from ncu_roofline.chips.loading import SOURCES, read_fields

if TYPE_CHECKING:
    from importlib.abc import Traversable

FILE = "instruction.toml"
EXECUTED = "inst"
"""Id of the kind that is all executed warp instructions; those of the others begin with it."""


@dataclass(frozen=True)
class Kind:
    """A kind of warp instruction, counted by the first of ``instructions`` that a report has.

    ``transactions`` are those of this kind alone at ``level``, ``bytes`` each; empty for all instructions, whose transactions
    are the traffic of every level.
    """

    id: str
    label: str
    level: str
    bytes: float
    instructions: tuple[Binding, ...]
    transactions: tuple[Binding, ...]

    def formulas(self) -> tuple[WeightedSum, ...]:
        """Everything that may be read for it."""
        return tuple(binding.counters for binding in (*self.instructions, *self.transactions))


@dataclass(frozen=True)
class InstructionWall:
    """A vertical line at 1 / ``transactions`` warp instructions of a kind per transaction."""

    kind: str
    transactions: float
    label: str
    short: str

    @property
    def id(self) -> str:
        """Roof id."""
        return f"wall.{self.kind.rpartition('.')[2]}.{self.transactions:g}"

    @property
    def intensity(self) -> float:
        """Where it stands, in warp instructions per transaction."""
        return 1 / self.transactions


@dataclass(frozen=True)
class InstructionSpec:
    """The instruction roofline: ``transaction`` in bytes, ``warp`` in threads, the peak of ``issue`` per SM and cycle."""

    transaction: float
    warp: float
    issue: str
    issue_label: str
    issue_counter: str
    issue_per_sm: float
    lanes: str
    lanes_per_instruction: str
    kinds: tuple[Kind, ...]
    walls: tuple[InstructionWall, ...]

    def kind(self, kind_id: str) -> Kind:
        """The kind of an id; KeyError if there is none."""
        for kind in self.kinds:
            if kind.id == kind_id:
                return kind
        raise KeyError(kind_id)

    def walls_of(self, kind_id: str) -> tuple[InstructionWall, ...]:
        """The walls for one kind."""
        return tuple(wall for wall in self.walls if wall.kind == kind_id)

    def needs(self, spec: Spec, capability: Capability, levels: tuple[str, ...], *, work: bool = True) -> tuple[str, ...]:
        """What has to be counted for the traffic of these levels and, with ``work``, for all instructions."""
        names = [f"{counter}.sum" for counter in self.kind(EXECUTED).instructions[0].counters.counters()] if work else []
        counted = spec.collect(capability, (), levels)
        return (*names, *(name for name in counted if name.endswith(".sum") and not name.startswith("gpu__time")))

    def collect(self, spec: Spec, capability: Capability, levels: tuple[str, ...]) -> tuple[str, ...]:
        """The list for ``ncu --metrics`` that gives a complete instruction roofline with these levels of memory."""
        names = list(spec.collect(capability, (), levels))
        names += [f"{self.issue_counter}.sum.peak_sustained", f"{self.lanes_per_instruction}.ratio"]
        for kind in self.kinds:
            for ways in (kind.instructions, kind.transactions):
                names += [f"{counter}.sum" for counter in (ways[0].counters.counters() if ways else ())]
        return tuple(dict.fromkeys(names))


@lru_cache(maxsize=1)
def load_instructions() -> InstructionSpec:
    """The description that comes with the package, read once."""
    return read_instructions(resources.files("ncu_roofline") / "data")


def read_instructions(folder: Traversable) -> InstructionSpec:
    """Read and check the file in a folder of data files; `SpecError` names the key of the first mistake."""
    fields = read_fields(folder / FILE, FILE)
    issue, lanes = fields.table("issue"), fields.table("lanes")
    found = InstructionSpec(
        transaction=fields.number("transaction"),
        warp=fields.number("warp"),
        issue=issue.text("id"),
        issue_label=issue.text("label"),
        issue_counter=issue.text("counter"),
        issue_per_sm=issue.number("per_sm"),
        lanes=lanes.text("counter"),
        lanes_per_instruction=lanes.text("per_instruction"),
        kinds=tuple(_kind(table) for table in fields.tables("kinds")),
        walls=tuple(_wall(table) for table in fields.tables("walls")),
    )
    for one in (fields, issue, lanes):
        one.finish()
    ids = [kind.id for kind in found.kinds]
    if ids[0] != EXECUTED or len(set(ids)) < len(ids):
        fields.fail("kinds", f"the first must be {EXECUTED!r}, and each id stand once")
    for wall in found.walls:
        if wall.kind not in ids:
            fields.fail("walls", f"there is no kind {wall.kind!r}")
    return found


def _kind(fields: Fields) -> Kind:
    kind = Kind(
        id=fields.text("id"),
        label=fields.text("label"),
        level=fields.text("level", ""),
        bytes=fields.number("bytes"),
        instructions=tuple(_binding(table) for table in fields.tables("instructions")),
        transactions=tuple(_binding(table) for table in fields.tables("transactions", required=False)),
    )
    fields.finish()
    if bool(kind.level) != bool(kind.transactions):
        fields.fail("transactions", "go with a level, and a level with transactions")
    return kind


def _binding(fields: Fields) -> Binding:
    counters = fields.weights("counters", required=True)
    assert counters is not None
    source, note = fields.text("source", "binding", allowed=SOURCES), fields.text("note", "")
    fields.finish()
    return Binding(since=(0, 0), until=LAST, counters=counters, source=source, note=note)


def _wall(fields: Fields) -> InstructionWall:
    wall = InstructionWall(fields.text("kind"), fields.number("transactions"), fields.text("label"), fields.text("short"))
    fields.finish()
    return wall
