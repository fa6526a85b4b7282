"""The door through which metric values come into the model: what no kernel can have measured is missing there, and told.

Columns of many launches come in by `Gate`, the metrics of one result (embedded charts, rules) by `PlausibleMetrics`, finished
numbers of other tools by `plausible_import`, those of embedded charts by `DrawnGate`.  The report itself keeps what its
file says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.chips.source_counters import adds_up
from ncu_roofline.chips.tables import MOST_COUNT, Bound, load_limits
from ncu_roofline.formats.report import Instances, Value
from ncu_roofline.formats.sectionfile.charts import IMPLAUSIBLE, Chart, Dropped, Point, Roof, Wall
from ncu_roofline.model.counters import as_float, as_floats
from ncu_roofline.model.measurements import FloatArray, Mask, Measurements, Quantity, TextArray

LEFT_OUT = "implausible and left out:"
"""How a note on a value begins that can't be."""
_NAME = 60  # characters of a kernel's name in a note


def left_out(m: Measurements) -> tuple[str, ...]:
    """What is missing in measurements as implausible, a sentence for each metric and report."""
    texts = [text for remark in dict.fromkeys(m.remarks.tolist()) for text in remark.split("; ")]
    return tuple(dict.fromkeys(text for text in texts if text.startswith(LEFT_OUT)))


def short_name(name: str) -> str:
    """A kernel's name for a note, in which "; " would end the sentence."""
    return shorten(clean(name).replace(";", ","), _NAME)


def joined_remarks(first: TextArray, second: TextArray) -> TextArray:
    """Remarks on the same launches, as one remark each."""
    remarks: TextArray = np.array(first, dtype=object)
    rows = np.flatnonzero(second != "")
    remarks[rows] = ["; ".join(filter(None, pair)) for pair in zip(first[rows], second[rows], strict=True)]
    return remarks


def _likewise(others: int, one: str = "launch", several: str = "launches") -> str:
    """How many others a note holds for, as its end."""
    return f", likewise in {others:,} more {several if others > 1 else one}" if others else ""


class Gate:
    """What the launches of one report can have measured, and notes on what they can't.

    ``columns`` hold metrics as the report has them.  ``name`` gives the name of the kernel of a launch.
    """

    def __init__(self, columns: Mapping[str, Sequence[Value | None]], count: int, name: Callable[[int], str]) -> None:
        self._name = name
        self.remarks: TextArray = np.full(count, "", dtype=object)
        """For each launch what of it was left out, "" for nothing: a sentence per metric, the same for all of its launches."""
        self._limits = load_limits()
        self._missing: FloatArray = np.full(count, np.nan)
        self.columns = {metric: self._checked(metric, column) for metric, column in columns.items()}
        """Numbers by metric, NaN where missing, text or implausible."""

    def instances(self, metric: str, column: Sequence[Instances]) -> list[Instances]:
        """The counts by name of each launch, none where one is no count, all together are more than can be, or not the total.

        The total is the metric's own value in `columns`, of which nothing is left there either where they differ.
        """
        bound = self._limits.bound(metric)
        if bound is None:
            return list(column)
        totals = np.array([_total(counts) for counts in column], dtype=np.float64)
        wrong = ~_possible(bound, totals)
        self._tell(metric, wrong, lambda row: f"adds up to {totals[row]:.4g}", bound, totals)
        own = self.columns.get(metric, self._missing)
        sums = zip(column, totals, own, strict=True)
        apart = np.array([bool(counts) and not adds_up(total, whole) for counts, total, whole in sums], dtype=bool) & ~wrong
        self._note(
            metric, apart, lambda row: f"adds up to {totals[row]:.4g}, and to {own[row]:.4g} by what the metric itself says"
        )
        self.columns[metric] = np.where(apart, np.nan, own)
        return [() if bad else counts for bad, counts in zip(wrong | apart, column, strict=True)]  # type: ignore[misc]

    def tell_others(self, others: Mapping[str, Mapping[int, Value]]) -> None:
        """Note metrics that launches have several times: ``others`` than the value that counts, by metric and launch."""
        for metric, values in others.items():
            row, value = next(iter(values.items()))
            what = f"{metric} of launch {row} ({short_name(self._name(row))})"
            note = f"{what} has several values: the last counts, not {short_name(str(value))}{_likewise(len(values) - 1)}"
            rows = np.isin(np.arange(len(self.remarks)), list(values))
            self.remarks = joined_remarks(self.remarks, np.where(rows, note, ""))

    def _checked(self, metric: str, column: Sequence[Value | None]) -> FloatArray:
        values, bound = as_floats(column), self._limits.bound(metric)
        if bound is None:
            return values
        if str in set(map(type, column)):
            texts = np.array([isinstance(value, str) for value in column], dtype=bool)
            self._tell(metric, texts, lambda row: f"is the text {short_name(str(column[row]))!r}", bound, values)
        wrong = ~(_possible(bound, values) | np.isnan(values))
        self._tell(metric, wrong, lambda row: f"is {values[row]:.4g}", bound, values)
        return np.where(wrong, np.nan, values) if wrong.any() else values

    def _tell(self, metric: str, rows: Mask, what: Callable[[int], str], bound: Bound, values: FloatArray) -> None:
        self._note(metric, rows, lambda row: f"{what(row)}, {_why(bound, float(values[row]))}")

    def _note(self, metric: str, rows: Mask, what: Callable[[int], str]) -> None:
        if rows.any():
            row = int(np.flatnonzero(rows)[0])
            more = _likewise(int(rows.sum()) - 1)
            note = f"{LEFT_OUT} {metric} of launch {row} ({short_name(self._name(row))}) {what(row)}{more}"
            self.remarks = joined_remarks(self.remarks, np.where(rows, note, ""))


def _total(counts: Instances) -> float:
    """The sum of counts, NaN where one is no count."""
    numbers = [value for _, value in counts]
    if not all(isinstance(value, (int, float)) and value >= 0 for value in numbers):
        return math.nan
    return math.fsum(min(as_float(value), MOST_COUNT * 2) for value in numbers)


def _possible(bound: Bound, values: FloatArray) -> Mask:
    size = np.abs(values) if bound.signed else values
    return np.asarray((size >= 0) & (size <= bound.most))


def _why(bound: Bound, value: float) -> str:
    """What is wrong with a value, with the bound."""
    if math.isnan(value):
        return "which is no number"
    if value < 0 and not bound.signed:
        return "less than 0"
    return f"more than {bound.most:.4g}{f' {bound.unit}' if bound.unit else ''} ({bound.origin})"


class PlausibleMetrics(Mapping[str, Value]):
    """The metrics of one result without those that can't be, by the same bounds as for columns; each is decoded once."""

    def __init__(self, metrics: Mapping[str, Value]) -> None:
        self._metrics = metrics
        self._limits = load_limits()
        self._read: dict[str, Value | None] = {}

    def __getitem__(self, name: str) -> Value:
        value = self.recorded(name)
        if value is None or not self.allows(name, value):
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._metrics if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def recorded(self, name: str) -> Value | None:
        """What the report has, plausible or not; None if it has no scalar."""
        if name not in self._read:
            self._read[name] = self._metrics.get(name)
        return self._read[name]

    def allows(self, name: str, value: Value) -> bool:
        """Whether a metric can have this value; NaN is what ncu writes for one that it could not collect."""
        bound = self._limits.bound(name)
        if bound is None:
            return True
        if isinstance(value, str):
            return False
        size = -value if bound.signed and value < 0 else value
        return 0 <= size <= bound.most or size != size


def plausible_import(m: Measurements) -> Measurements:
    """What a file of another tool says, without numbers that can't be; remarks tell which."""
    limits, remarks = load_limits(), m.remarks

    def checked(what: str, values: FloatArray, most: FloatArray | float, unit: str) -> FloatArray:
        nonlocal remarks
        wrong = ~np.isnan(values) & ~((values >= 0) & (values <= most))
        if not wrong.any():
            return values
        row = int(np.flatnonzero(wrong)[0])
        of, more = short_name(str(m.name[row])), _likewise(int(wrong.sum()) - 1, "row", "rows")
        note = f"{LEFT_OUT} {what} of {of} is {values[row]:.4g} {unit}, which no machine can{more}"
        remarks = joined_remarks(remarks, np.where(wrong, note, ""))
        return np.where(wrong, np.nan, values)

    def all_checked(found: Mapping[str, Quantity], what: str, most: FloatArray | float, unit: str) -> dict[str, Quantity]:
        return {key: replace(one, values=checked(f"{what} {key}", one.values, most, unit)) for key, one in found.items()}

    seconds = checked("the time", m.seconds, limits.imported_seconds, "s")
    total = limits.imported_rate * np.where(seconds > 0, seconds, limits.imported_seconds)
    work = all_checked(m.work, "work in", total, "operations")
    return replace(
        m,
        seconds=seconds,
        work=work,
        summands=work,
        traffic=all_checked(m.traffic, "traffic at", total, "byte"),
        compute=all_checked(m.compute, "the roof", limits.imported_rate, "operations per second"),
        bandwidth=all_checked(m.bandwidth, "the roof", limits.imported_rate, "byte per second"),
        remarks=remarks,
    )


def has_lost(chart: Chart, *kinds: str) -> bool:
    """Whether a "roof" or "point" can't be and was left out: what remains says nothing of the roof of a dot, or the lowest."""
    return any(one.reason == IMPLAUSIBLE and one.kind in kinds for one in chart.dropped)


class _Wrong(NamedTuple):
    """A number that can't be: which ``part`` of what it is, and in words how much and why not."""

    kind: str
    label: str
    part: str
    is_what: str
    line: Roof | Point | Wall | None = None


class DrawnGate:
    """Charts of launches without what can't be; `remarks` tells it."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str, str], dict[int, str]] = {}

    def checked(self, row: int, chart: Chart) -> Chart:
        """The chart of the launch in a row of the measurements, without dots and walls that can't be, lines of roofs as NaN."""
        # The chart has not drawn itself what is no number.
        lost = [one for one in chart.dropped if one.reason == IMPLAUSIBLE]
        wrong = [_Wrong(one.kind, one.label, one.part, "negative, not finite or too small to tell") for one in lost]
        wrong += _outside_bounds(chart)
        for one in wrong:
            self._found.setdefault((chart.section, one.kind, one.label, one.part), {}).setdefault(row, one.is_what)
        parts = {(id(one.line), one.part) for one in wrong if one.line}
        if not parts:
            return chart
        gone = {line for line, _ in parts}

        def left(roof: Roof) -> Roof:
            work, traffic = ((id(roof), part) in parts for part in ("work", "traffic"))
            return replace(
                roof, peak_work=np.nan if work else roof.peak_work, peak_traffic=np.nan if traffic else roof.peak_traffic
            )

        dropped = [Dropped(one.kind, one.label, one.part, IMPLAUSIBLE, one.line.metrics) for one in wrong if one.line]
        return replace(
            chart,
            roofs=tuple(map(left, chart.roofs)),
            points=tuple(point for point in chart.points if id(point) not in gone),
            walls=tuple(wall for wall in chart.walls if id(wall) not in gone),
            dropped=(*chart.dropped, *dropped),
        )

    def remarks(self, m: Measurements) -> TextArray:
        """The remarks of measurements, with a sentence for each line and dot that was left out."""
        remarks = m.remarks
        for (section, kind, label, part), values in self._found.items():
            row, is_what = next(iter(values.items()))
            what = {"traffic": "bandwidth", "value": "intensity"}.get(part, part)
            of = f"launch {m.launch[row]} ({short_name(str(m.function[row]))})"
            note = (
                f"{LEFT_OUT} {kind} {short_name(label)!r} in the chart {short_name(section)} of {of}, "
                f"whose {what} is {is_what}{_likewise(len(values) - 1)}"
            )
            rows = np.isin(np.arange(len(m)), list(values))
            remarks = joined_remarks(remarks, np.where(rows, note, ""))
        return remarks


def _outside_bounds(chart: Chart) -> Iterator[_Wrong]:
    limits = load_limits()
    most = limits.drawn_most
    for roof in chart.roofs:
        for part, value in (("work", roof.peak_work), ("traffic", roof.peak_traffic)):
            yield from _outside(roof, part, value, limits.drawn_least, most)
    for point in chart.points:
        rates = (("work", point.work), ("traffic", point.traffic))
        found = [one for part, value in rates for one in _outside(point, part, value, 1 / limits.seconds, most)]
        yield from found or _outside(point, "value", point.intensity, 1 / most, most)
    for wall in chart.walls:
        yield from _outside(wall, "value", wall.intensity, 1 / most, most)


def _outside(line: Roof | Point | Wall, part: str, value: float, least: float, most: float) -> Iterator[_Wrong]:
    if not least <= value <= most:
        unit = {"work": "operations per second", "traffic": "byte per second"}.get(part, "operations per byte")
        why = f"less than the {least:.3g}" if value < least else f"more than the {most:.3g}"
        yield _Wrong(type(line).__name__.lower(), line.label, part, f"{value:.4g} {unit}, {why} that a GPU can", line)
