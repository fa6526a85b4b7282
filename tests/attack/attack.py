"""What an attack is: a report, what was done to it, and what must come of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Anything:
    """Nothing is promised but what holds of every report: see `judging`."""


@dataclass(frozen=True)
class Same:
    """The report means what it meant: every output is the same to the last letter."""


@dataclass(frozen=True)
class SameNumbers:
    """Names changed, so every number is what it was, of every launch."""


@dataclass(frozen=True)
class Scaled:
    """Of one launch, counters or time were multiplied: its numbers follow, all others stay.

    ``factors`` are of the columns of its points, with ``level`` or ``precision`` of those at that level or precision alone.
    """

    launch: int
    factors: Mapping[str, float]
    level: str = ""
    precision: str = ""


@dataclass(frozen=True)
class AsWithout:
    """A metric that can't be true is as good as none: the numbers are those of ``other``, a report that lacks it.

    Where it is ``told``, and numbers depend on it, notes or messages say that it was left out.
    """

    other: bytes = field(repr=False)
    told: bool = False


@dataclass(frozen=True)
class Gone:
    """One launch is no longer there: the rows of the others stay, those behind it one launch earlier."""

    launch: int


@dataclass(frozen=True)
class Doubled:
    """One launch is there once more, as the last: the rows of the others stay, and the new ones are those of the original."""

    launch: int


Promise = Anything | Same | SameNumbers | Scaled | AsWithout | Gone | Doubled


@dataclass(frozen=True)
class Attack:
    """A report: the name of the base it was made of, what was done, and what must come of it."""

    base: str
    family: str
    what: str
    data: bytes = field(repr=False)
    promise: Promise = field(default_factory=Anything)
