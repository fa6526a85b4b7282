"""What the stock section sets of Nsight Compute hold for rooflines, release by release."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from ncu_roofline.chips.fields import LAST_RELEASE, Fields, Release
from ncu_roofline.chips.loading import read_fields

if TYPE_CHECKING:
    from importlib.abc import Traversable

FILE = "sets.toml"
LAST = LAST_RELEASE


@dataclass(frozen=True)
class SectionSet:
    """A set in the releases ``since`` to ``until``, both included.

    ``gives`` is what it holds, in words; ``work`` (precision ids, "tensor" for all types) and ``traffic`` (level ids) are the
    counters of it, and ``opcodes`` says that it has counts per opcode.  A report with all of ``sections``, and no others than
    ``only`` if that is not empty, was made with it.
    """

    name: str
    since: Release
    until: Release
    sections: frozenset[str]
    only: frozenset[str]
    work: tuple[str, ...]
    traffic: tuple[str, ...]
    opcodes: bool
    gives: str

    def made(self, sections: frozenset[str]) -> bool:
        """Whether a report with these sections was made with the set."""
        return self.sections <= sections and (not self.only or sections <= self.only)


@dataclass(frozen=True)
class SectionSets:
    """All sets, the cheapest first."""

    sets: tuple[SectionSet, ...]

    def of(self, release: Release) -> tuple[SectionSet, ...]:
        """Those of a release (year, number)."""
        return tuple(one for one in self.sets if one.since <= release <= one.until)

    def made(self, release: Release, sections: Iterable[str]) -> SectionSet | None:
        """The largest set whose sections a report has, None if it is none."""
        present = frozenset(sections)
        found = [one for one in self.of(release) if one.made(present)]
        return found[-1] if found else None


@lru_cache(maxsize=1)
def load_sets() -> SectionSets:
    """The description that comes with the package, read once."""
    return read_sets(resources.files("ncu_roofline") / "data")


def read_sets(folder: Traversable) -> SectionSets:
    """Read and check the file in a folder of data files; `SpecError` names the key of the first mistake."""
    fields = read_fields(folder / FILE, FILE)
    found = tuple(_set(table) for table in fields.tables("sets"))
    fields.finish()
    return SectionSets(found)


def _set(fields: Fields) -> SectionSet:
    since, until = fields.releases("releases")
    found = SectionSet(
        name=fields.text("name"),
        since=since,
        until=until,
        sections=frozenset(fields.texts("sections")),
        only=frozenset(fields.texts("only", required=False)),
        work=fields.texts("work", required=False),
        traffic=fields.texts("traffic", required=False),
        opcodes=fields.flag("opcodes"),
        gives=fields.text("gives"),
    )
    fields.finish()
    return found
