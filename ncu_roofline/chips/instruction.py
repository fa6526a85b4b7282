"""What the instruction roofline counts, and its walls; Ding, Williams, "An Instruction Roofline Model for GPUs" (2019)."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from ncu_roofline.chips.fields import DATA, Capability, Weights, read
from ncu_roofline.chips.formula import WeightedSum
from ncu_roofline.chips.precisions import Source
from ncu_roofline.chips.spec import Spec

FILE = "instruction.toml"
EXECUTED = "inst"
"""Id of the kind that is all executed warp instructions; those of the others begin with it."""


class Way(NamedTuple):
    """One way to count a kind: its counters, and where they come from."""

    counters: Weights
    source: Source = "binding"
    note: str = ""


class Kind(NamedTuple):
    """A kind of warp instruction, counted by the first of ``instructions`` that a report has.

    ``transactions`` are those of this kind alone at ``level``, ``bytes`` each; empty for all instructions, whose transactions
    are the traffic of every level.
    """

    id: str
    label: str
    bytes: float
    instructions: tuple[Way, ...]
    level: str = ""
    transactions: tuple[Way, ...] = ()

    def formulas(self) -> tuple[WeightedSum, ...]:
        """Everything that may be read for it."""
        return tuple(way.counters for way in (*self.instructions, *self.transactions))


class InstructionWall(NamedTuple):
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


class InstructionSpec(NamedTuple):
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


class _Issue(NamedTuple):
    id: str
    label: str
    counter: str
    per_sm: float


class _Lanes(NamedTuple):
    counter: str
    per_instruction: str


class _File(NamedTuple):
    transaction: float
    warp: float
    issue: _Issue
    lanes: _Lanes
    kinds: tuple[Kind, ...]
    walls: tuple[InstructionWall, ...]


@lru_cache(maxsize=1)
def load_instructions() -> InstructionSpec:
    """The description that comes with the package, read once."""
    file = read(DATA / FILE, FILE, _File)
    return InstructionSpec(file.transaction, file.warp, *file.issue, *file.lanes, file.kinds, file.walls)
