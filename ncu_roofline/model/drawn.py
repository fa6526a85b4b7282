"""What no GPU can reach of a report's own charts is left out of them, and told.

Lines and dots may be made of any metrics, so that the gate of single metrics may say nothing of them: here are the finished
numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ncu_roofline.chips.plausible import load_limits
from ncu_roofline.formats.sectionfile import IMPLAUSIBLE, Chart, Dropped, Point, Roof, Wall
from ncu_roofline.model.measurements import Measurements, TextArray
from ncu_roofline.model.plausible import LEFT_OUT, joined_remarks, likewise, short_name

_PER_SECOND = {"work": "operations per second", "traffic": "byte per second"}
_QUOTIENT = "operations per byte"


def has_lost(chart: Chart, *kinds: str) -> bool:
    """Whether a "roof" or "point" can't be and was left out: what remains says nothing of the roof of a dot, or the lowest."""
    return any(one.reason == IMPLAUSIBLE and one.kind in kinds for one in chart.dropped)


@dataclass(frozen=True)
class _Wrong:
    """A number that can't be: which ``part`` of what it is, and in words how much and why not."""

    kind: str
    label: str
    part: str
    is_what: str
    line: Roof | Point | Wall | None = None


@dataclass
class DrawnGate:
    """Charts of launches without what can't be; `remarks` tells it."""

    _found: dict[tuple[str, str, str, str], dict[int, _Wrong]] = field(default_factory=dict)

    def checked(self, row: int, chart: Chart) -> Chart:
        """The chart of the launch in a row of the measurements, without dots and walls that can't be, lines of roofs as NaN."""
        wrong = [*_infinite(chart), *_outside_bounds(chart)]
        if not wrong:
            return chart
        for one in wrong:
            self._found.setdefault((chart.section, one.kind, one.label, one.part), {}).setdefault(row, one)
        gone = {id(one.line) for one in wrong}
        parts = {(id(one.line), one.part) for one in wrong}
        return replace(
            chart,
            roofs=tuple(
                replace(
                    roof,
                    peak_work=np.nan if (id(roof), "work") in parts else roof.peak_work,
                    peak_traffic=np.nan if (id(roof), "traffic") in parts else roof.peak_traffic,
                )
                for roof in chart.roofs
            ),
            points=tuple(point for point in chart.points if id(point) not in gone),
            walls=tuple(wall for wall in chart.walls if id(wall) not in gone),
            dropped=(
                *chart.dropped,
                *(Dropped(one.kind, one.label, one.part, IMPLAUSIBLE, one.line.metrics) for one in wrong if one.line),
            ),
        )

    def remarks(self, m: Measurements) -> TextArray:
        """The remarks of measurements, with a sentence for each line and dot that was left out."""
        remarks = m.remarks
        for (section, kind, label, part), values in self._found.items():
            row, first = next(iter(values.items()))
            what = {"traffic": "bandwidth", "value": "intensity"}.get(part, part)
            note = (
                f"{LEFT_OUT} {kind} {short_name(label)!r} in the chart {short_name(section)} of launch {m.launch[row]} "
                f"({short_name(str(m.function[row]))}), whose {what} is {first.is_what}{likewise(len(values) - 1)}"
            )
            told: TextArray = np.full(len(m), "", dtype=object)
            told[list(values)] = note
            remarks = joined_remarks(remarks, told)
        return remarks


def _infinite(chart: Chart) -> Iterator[_Wrong]:
    """What the chart has not drawn itself, as its number is none."""
    for one in chart.dropped:
        if one.reason == IMPLAUSIBLE:
            yield _Wrong(one.kind, one.label, one.part, "negative, not finite or too small to tell")


def _outside_bounds(chart: Chart) -> Iterator[_Wrong]:
    limits = load_limits()
    most = limits.drawn_most
    for roof in chart.roofs:
        for part, value in (("work", roof.peak_work), ("traffic", roof.peak_traffic)):
            yield from _outside(roof, part, value, (limits.drawn_least, most))
    for point in chart.points:
        rates = (("work", point.work), ("traffic", point.traffic))
        found = [one for part, value in rates for one in _outside(point, part, value, (1 / limits.seconds, most))]
        yield from found or _outside(point, "value", point.intensity, (1 / most, most))
    for wall in chart.walls:
        yield from _outside(wall, "value", wall.intensity, (1 / most, most))


def _outside(line: Roof | Point | Wall, part: str, value: float, bounds: Sequence[float]) -> Iterator[_Wrong]:
    least, most = bounds
    if not least <= value <= most:
        why = f"less than the {least:.3g}" if value < least else f"more than the {most:.3g}"
        is_what = f"{value:.4g} {_PER_SECOND.get(part, _QUOTIENT)}, {why} that a GPU can"
        yield _Wrong(type(line).__name__.lower(), line.label, part, is_what, line)
