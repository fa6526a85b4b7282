"""What of measured ceilings no chart of an annotated report shows, for people."""

from __future__ import annotations

from collections.abc import Sequence

from ncu_roofline.base.texts import listed
from ncu_roofline.chips import load_spec
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.plugin.annotate.plan import LaunchPlan

_NAMED = 4
_NO_ROOFS = ("launch",)  # first words of ceilings that are none of a chart, but of a verdict


class Use:
    """Which of some ceilings the charts of a report's launches show."""

    def __init__(self, ceilings: Sequence[Ceilings]) -> None:
        self._shown: dict[int, set[str]] = {}
        self._ceilings = ceilings

    def add(self, plan: LaunchPlan) -> None:
        """One more launch."""
        if plan.ceilings is None:
            return
        drawn = [chart for chart in plan.charts if chart.drawn]
        roofs = {roof for chart in drawn for roof in (*chart.roofs, *(level.roof for level in chart.levels))}
        shown = self._shown.setdefault(self._ceilings.index(plan.ceilings), set())
        shown |= {_of(roof.measured.ceiling) for roof in roofs if roof.measured}

    def unused(self) -> str:
        """A clause for each file of which no chart shows something: the whole file, or what it is of; "" if there is none."""
        clauses = []
        for number, file in enumerate(self._ceilings):
            if number not in self._shown:
                clauses.append(f"{file.provenance} (other ceilings stand for the GPUs of the report)")
                continue
            measured = dict.fromkeys(_of(name) for name in file.by_id if name.partition(".")[0] not in _NO_ROOFS)
            left = [what for what in measured if what not in self._shown[number]]
            if left:
                clauses.append(f"{listed(left, _NAMED)} of {file.provenance} (in no chart of this report)")
        return "; ".join(clauses)


def _of(ceiling: str) -> str:
    """The level or precision that a ceiling is of, as people call it; the ceiling's id where there is none."""
    spec = load_spec()
    level = spec.level_of_ceiling(ceiling)
    if level:
        return next(one.label for one in spec.levels if one.id == level)
    found = [p for p in spec.precisions if f"{ceiling}.".startswith(f"{p.id}.")]
    return max(found, key=lambda p: len(p.id)).label if found else ceiling
