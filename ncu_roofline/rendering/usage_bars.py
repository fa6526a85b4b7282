"""Which utilisation bars a chart or page shows: kernels without dots, and how full SMs and memory levels were."""

from __future__ import annotations

from dataclasses import dataclass

from ncu_roofline.rendering.panels import Frames
from ncu_roofline.rendering.usage import LONGEST, Usage, answers, per_kernel, units_of, without_dots

BESIDE = 8  # kernels in the bars below a chart that has dots
_VISIBLE = 0.001  # a unit that no kernel uses more has no bar to see
TIME = "time"  # in the place of a unit where nothing but times is known


@dataclass(frozen=True)
class Bars:
    """What is drawn: ``units`` from the SMs outwards, the longest kernels, and how many there are."""

    units: tuple[str, ...]
    rows: tuple[Usage, ...]
    total: int

    @property
    def of_time(self) -> bool:
        """Whether the bars are shares of the time, as nothing else is known."""
        return self.units == (TIME,)

    def shares(self, row: Usage) -> dict[str, float]:
        """Shares of a row by unit, as ratios; what is unknown is absent."""
        return {TIME: row.share} if self.of_time else row.fractions


def bars(frames: Frames, most: int) -> Bars:
    """The bars of the ``most`` longest kernels without dots, all launches of a kernel together; none where nothing is known."""
    absent = without_dots(frames)
    if not answers(frames, absent):
        return Bars((), (), 0)
    kernels = per_kernel(absent)
    shown = tuple(kernels[:most])
    units = [unit for unit in units_of(shown) if any(one.fractions.get(unit, 0.0) >= _VISIBLE for one in shown)]
    return Bars(tuple(units or units_of(shown)) or (TIME,), shown, len(kernels))


def bar_notes(data: Bars) -> list[str]:
    """What the bars leave out."""
    notes = [LONGEST] if any(one.longest for one in data.rows) else []
    if len(data.rows) < data.total:
        notes.append(f"Bars of the {len(data.rows)} longest of {data.total} kernels without dots.")
    return notes
