"""With which section set of Nsight Compute a report was made, and which one would have held what it lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ncu_roofline.importers import MetricTable
from ncu_roofline.model.collecting import release_of
from ncu_roofline.model.measurements import Measurements
from ncu_roofline.report import Report
from ncu_roofline.sections import parse_section
from ncu_roofline.spec.sets import LAST, SectionSet, load_sets

# Answers about cost and completeness: a set that only counts opcodes lacks time, the basic one all counts.
_OFFERED = ("roofline", "detailed", "full")


@dataclass(frozen=True)
class UsedSets:
    """The set that a report was made with and what that gives, and the cheapest set that gives most of what is missing.

    "" where the report was not made with a stock set, or its release is unknown; ``other`` is "" too where nothing is missing
    or no set gives more.
    """

    made_with: str = ""
    gives: str = ""
    other: str = ""
    other_gives: str = ""

    @property
    def sentence(self) -> str:
        """Both in one sentence, "" where neither is known."""
        made = f"the report was made with --set {self.made_with}: {self.gives}" if self.made_with else ""
        other = f"a command with --set {self.other} would give {self.other_gives}" if self.other else ""
        return "; ".join(part for part in (made, other) if part)


def sets_of(report: Report | MetricTable, m: Measurements, missing: Sequence[str]) -> UsedSets:
    """The sets of a report whose launches ``m`` lack the precisions and levels ``missing``."""
    release = release_of(report.ncu_version)
    if release == LAST or not len(m) or isinstance(report, MetricTable):
        return UsedSets()
    sections = report.kernels[int(m.launch[0])].sections
    made = load_sets().made(release, filter(None, map(_identifier, sections)))
    offered = [one for one in load_sets().of(release) if one.name in _OFFERED and one is not made]
    best = max(offered, key=lambda one: _given(one, missing), default=None)
    if best is None or _given(best, missing) <= (_given(made, missing) if made else 0):
        best = None
    return UsedSets(
        made.name if made else "", made.gives if made else "", best.name if best else "", best.gives if best else ""
    )


def _given(one: SectionSet, missing: Sequence[str]) -> int:
    """How much of what is missing a set holds."""
    return sum(name in one.traffic or name.partition(".")[0] in one.work or _by_opcodes(one, name) for name in missing)


def _by_opcodes(one: SectionSet, name: str) -> bool:
    return one.opcodes and name.partition(".")[0] in ("fp64", "fp32", "fp16", "tensor")


def _identifier(data: bytes) -> str:
    try:
        return parse_section(data).identifier
    except ValueError:
        return ""
