"""What the stock section sets of Nsight Compute hold for rooflines, release by release."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from ncu_roofline.chips.fields import DATA, Release, Releases, read

FILE = "sets.toml"


class SectionSet(NamedTuple):
    """A set in some ``releases``, first and last.

    ``gives`` is what it holds, in words; ``work`` (precision ids, "tensor" for all types) and ``traffic`` (level ids) are the
    counters of it, and ``opcodes`` says that it has counts per opcode.  A report with all of ``sections``, and no others than
    ``only`` if that is not empty, was made with it.
    """

    name: str
    releases: Releases
    sections: frozenset[str]
    gives: str
    only: frozenset[str] = frozenset()
    work: tuple[str, ...] = ()
    traffic: tuple[str, ...] = ()
    opcodes: bool = False


class SectionSets(NamedTuple):
    """All sets, the cheapest first."""

    sets: tuple[SectionSet, ...]

    def of(self, release: Release) -> tuple[SectionSet, ...]:
        """Those of a release (year, number)."""
        return tuple(one for one in self.sets if one.releases[0] <= release <= one.releases[1])

    def made(self, release: Release, sections: Iterable[str]) -> SectionSet | None:
        """The largest set whose sections a report has, None if it is none."""
        present = frozenset(sections)
        found = [one for one in self.of(release) if one.sections <= present and (not one.only or present <= one.only)]
        return found[-1] if found else None


@lru_cache(maxsize=1)
def load_sets() -> SectionSets:
    """The description that comes with the package, read once."""
    return read(DATA / FILE, FILE, SectionSets)
