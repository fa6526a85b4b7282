"""The door through which metric values come into the model: what no launch can have measured is missing there, and told.

Columns of many launches come in by `Gate`, the metrics of one result (embedded charts, rules) by `PlausibleMetrics`; of
launches with another kernel's counters `believed` leaves nothing.  The report itself keeps what its file says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ncu_roofline.base.texts import clean, plural, shorten
from ncu_roofline.chips.source_counters import adds_up
from ncu_roofline.chips.tables import MOST_COUNT, load_limits
from ncu_roofline.chips.verdict import SHORT_LAUNCH
from ncu_roofline.formats.report import Instances, Value
from ncu_roofline.model.measurements import FloatArray, Mask, Measurements, TextArray, as_float, as_floats, objects
from ncu_roofline.model.names import short_names

LEFT_OUT = "implausible and left out:"
"""How a note on a value begins that can't be."""


def short_name(name: object) -> str:
    """A kernel's name for a note, in which "; " would end the sentence."""
    return shorten(clean(str(name)).replace(";", ","), 60)


class Remarks:
    """What a reader must know of each launch: ``texts``, of several sentences each."""

    def __init__(self, texts: Sequence[str] | TextArray) -> None:
        self.texts = objects(texts)

    def add(self, rows: Mask, note: Callable[[int], str], noun: str = "launch") -> None:
        """One sentence for all of these rows, made from the first."""
        places = np.flatnonzero(rows).tolist()
        if places:
            more = f", likewise in {plural(len(places) - 1, f'more {noun}')}" if len(places) > 1 else ""
            text = note(places[0]) + more
            self.texts[places] = [f"{before}; {text}" if before else text for before in self.texts[places]]


class Gate(Remarks):
    """What the launches of one report can have measured: numbers in ``columns`` by metric, NaN where missing or implausible.

    Made from metrics as the report has them, and the names of its kernels.
    """

    def __init__(self, columns: Mapping[str, Sequence[Value | None]], names: Sequence[str]) -> None:
        super().__init__([""] * len(names))
        self._names = names
        self.columns = {metric: self._checked(metric, column) for metric, column in columns.items()}

    def instances(self, metric: str, column: Sequence[Instances]) -> list[Instances]:
        """The counts by name of each launch, none where one is no count, all together are more than can be, or not the total.

        The total is the metric's own value in `columns`, of which nothing is left there either where they differ.
        """
        totals = np.array([_total(counts) for counts in column], dtype=np.float64)
        own = self.columns.get(metric, np.full(len(totals), np.nan))
        wrong = ~(totals <= MOST_COUNT)
        self._tell(metric, wrong, lambda row: f"adds up to {totals[row]:.4g}, which no counter can")
        sums = zip(column, totals, own, strict=True)
        apart = ~wrong & np.array([bool(counts) and not adds_up(total, whole) for counts, total, whole in sums], dtype=bool)
        differing = "adds up to {:.4g}, and to {:.4g} by what the metric itself says"
        self._tell(metric, apart, lambda row: differing.format(totals[row], own[row]))
        self.columns[metric] = np.where(apart, np.nan, own)
        return [[] if bad else counts for bad, counts in zip(wrong | apart, column, strict=True)]

    def _checked(self, metric: str, column: Sequence[Value | None]) -> FloatArray:
        values, bound = as_floats(column), load_limits().bound(metric)
        if bound is None:
            return values
        wrong = np.isnan(values)
        if wrong.any():  # NaN is what ncu writes for what it could not collect, None that a launch lacks the metric
            wrong &= np.array([isinstance(value, str) for value in column], dtype=bool)
        wrong |= (values > bound.most) | (values < (-bound.most if bound.signed else 0))
        unit = f" {bound.unit}" if bound.unit else ""
        most = f"{-bound.most if bound.signed else 0:.4g} to {bound.most:.4g}{unit} ({bound.origin})"

        def what(row: int) -> str:
            value = column[row]
            return f"is {repr(short_name(value)) if isinstance(value, str) else f'{values[row]:.4g}'}, and can be {most}"

        self._tell(metric, wrong, what)
        return np.where(wrong, np.nan, values) if wrong.any() else values

    def _tell(self, metric: str, rows: Mask, what: Callable[[int], str]) -> None:
        self.add(rows, lambda row: f"{LEFT_OUT} {metric} of launch {row} ({short_name(self._names[row])}) {what(row)}")


def _total(counts: Instances) -> float:
    numbers = [value for _, value in counts]
    if not all(isinstance(value, (int, float)) and value >= 0 for value in numbers):
        return math.nan
    return math.fsum(min(as_float(value), MOST_COUNT * 2) for value in numbers)


class PlausibleMetrics(Mapping[str, Value]):
    """The metrics of one result without those that can't be, by the same bounds as for columns; each is decoded once."""

    def __init__(self, metrics: Mapping[str, Value]) -> None:
        self._metrics, self._read = metrics, dict[str, Value | None]()

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
        if name not in self._read:
            self._read[name] = self._metrics.get(name)
        return self._read[name]

    @staticmethod
    def allows(name: str, value: Value) -> bool:
        """Whether a metric can have this value; NaN is what ncu writes for one that it could not collect."""
        bound = load_limits().bound(name)
        if bound is None or isinstance(value, str):
            return bound is None
        size = -value if bound.signed and value < 0 else value
        return 0 <= size <= bound.most or size != size


def left_out(m: Measurements) -> tuple[str, ...]:
    """What is missing in measurements as implausible, a sentence for each metric and report."""
    texts = [text for remark in dict.fromkeys(m.remarks.tolist()) for text in remark.split("; ")]
    return tuple(dict.fromkeys(text for text in texts if text.startswith(LEFT_OUT)))


# Launches with another kernel's hardware counters, as application replay mixes them up: nothing counted of these is used.

# Warp instructions of the instrumented pass: each is the sum over all opcodes or source lines; best first.
INSTRUMENTED = ("sass__inst_executed_per_opcode_with_modifier_all", "sass__inst_executed_per_opcode", "inst_executed")
HARDWARE = ("smsp__inst_executed.sum", "sm__inst_executed.sum")
_TIME = ("gpu__time_duration.sum", "gpu__time_duration.avg", "gpu__time_duration.max")
_DRAM = tuple(f"dram__bytes{one}.sum" for one in ("", "_read", "_write", "_op_read", "_op_write"))
_L2 = ("lts__t_sectors.sum", "lts__t_sectors_srcunit_tex.sum", "lts__t_bytes.sum")
REPLAY_METRICS = (*INSTRUMENTED, *HARDWARE, *_TIME, *_DRAM, *_L2)
# Passes of one launch differ by a few percent where its work depends on timing (atomics, spinning); half as much again is
# no such noise.
FACTOR = 1.5
_EQUAL = 1e-3  # two launches with the same hardware count, but for such noise
_OWN = 0.05  # recorded counts of one launch by both ways are 1 % apart downwards, 4 % upwards
FOREIGN = "hardware counters not believed"
"""How a remark begins on a launch of which no count is used."""
_SAME = "the same time, DRAM and L2 traffic and instructions to the last digit"
_WHY = "application replay mixes kernels up, --replay-mode kernel does not"
# What was counted of a launch, by the names of the measurements; roofs and clocks are its GPU's, whichever kernel ran.
_COUNTED = ("work", "summands", "fused", "traffic", "instructions", "transactions", "units", "shares", "gauges")


def foreign_counters(columns: Mapping[str, FloatArray], names: Sequence[tuple[str, str]]) -> TextArray:
    """A sentence for each launch of one report whose hardware counters are not known to be its own, "" for the others.

    ``columns``: `REPLAY_METRICS` as far as the report has them, NaN where missing; ``names``: function and full name of each
    launch.  Different kernels that agree in time, bytes and instructions to the last digit have one kernel's counters: the
    first one's, if its own code says so.  More instructions in the instrumented pass than the hardware saw prove it as well.
    Fewer don't: that pass leaves out functions that the kernel calls in other sections of the code.  Those launches are named
    only if the same hardware count stands at one of another size, too.
    """
    instrumented, hardware = (_first(columns, metrics, len(names)) for metrics in (INSTRUMENTED, HARDWARE))
    with np.errstate(invalid="ignore"):
        known = (instrumented > 0) & (hardware >= 0)
        foreign = known & (instrumented > FACTOR * hardware)
        fewer = known & (hardware > FACTOR * instrumented)
        own = known & (np.abs(instrumented - hardware) <= _OWN * hardware)
    if fewer.any():
        foreign |= fewer & _stands_elsewhere(instrumented, hardware, known)
    result = objects([""] * len(names))
    result[foreign] = [
        f"{FOREIGN}, as they saw {seen:,.0f} warp instructions where {executed:,.0f} were executed: {_WHY}"
        for seen, executed in zip(hardware[foreign], instrumented[foreign], strict=True)
    ]
    pairs: dict[tuple[tuple[str, str], tuple[str, str]], str] = {}
    for first, *others in _alike(columns, names):
        different = next(row for row in others if names[row] != names[first])
        for row in others if own[first] else (first, *others):
            other = row if names[row] != names[first] else different
            pair = names[first], names[other]
            if pair not in pairs:
                short = short_names([name or function for function, name in pair])
                one, two = (f"{row} ({short_name(name)})" for row, name in zip((first, other), short, strict=True))
                pairs[pair] = f"{FOREIGN}, as launches {one} and {two} are different kernels with {_SAME}: {_WHY}"
            result[row] = pairs[pair]
    return result


def _first(columns: Mapping[str, FloatArray], names: tuple[str, ...], count: int) -> FloatArray:
    found = np.full(count, np.nan)
    for name in names:
        found = np.where(np.isfinite(found), found, columns.get(name, np.nan))
    return found


def _stands_elsewhere(instrumented: FloatArray, hardware: FloatArray, known: Mask) -> Mask:
    """Whether some other launch has the same hardware count although it executed another number of instructions."""
    order = np.flatnonzero(known)[np.argsort(hardware[known], kind="stable")]
    counts = hardware[order]
    larger = np.flatnonzero(np.diff(counts) > _EQUAL * counts[1:]) + 1  # equal counts stand side by side in this order
    result = np.zeros(len(hardware), dtype=bool)
    for run in np.split(order, larger):
        executed = instrumented[run]
        result[run] = executed.max() > FACTOR * executed.min()
    return result


def _alike(columns: Mapping[str, FloatArray], names: Sequence[tuple[str, str]]) -> list[list[int]]:
    """Launches of several kernels with the same time (of no short launch), DRAM and L2 traffic and instruction count.

    Of 265 public reports ten have such kernels, all of one application; a time alone is a multiple of 32 ns and may be equal.
    """
    kinds = [[columns[name] for name in kind if name in columns] for kind in (_TIME, _DRAM, _L2, HARDWARE)]
    if not all(kinds):
        return []
    complete = np.all([np.any(np.isfinite(kind), axis=0) for kind in kinds], axis=0)
    with np.errstate(invalid="ignore"):
        rows = np.flatnonzero(complete & (_first(columns, _TIME, len(names)) >= SHORT_LAUNCH * 1e9))
    found: dict[bytes, list[int]] = {}
    for row, values in zip(rows.tolist(), np.array([one[rows] for kind in kinds for one in kind]).T, strict=True):
        found.setdefault(values.tobytes(), []).append(row)
    return [alike for alike in found.values() if len({names[row] for row in alike}) > 1]


def disbelieved(m: Measurements) -> TextArray:
    """For each launch why its counters are not believed, "" where they are."""
    return objects([text.partition("; ")[0] if text.startswith(FOREIGN) else "" for text in m.remarks])


def told(m: Measurements) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, disbelieved(m).tolist())))


def believed(m: Measurements) -> Measurements:
    """The measurements without anything that was counted of launches whose counters are not believed."""
    foreign = disbelieved(m) != ""
    if not foreign.any():
        return m
    changed: dict[str, Any] = {name: {key: one.where(~foreign) for key, one in getattr(m, name).items()} for name in _COUNTED}
    changed |= {"seconds": np.where(foreign, np.nan, m.seconds), "tensor_active": np.where(foreign, np.nan, m.tensor_active)}
    return replace(m, **changed, tensor_gaps=m.tensor_gaps & ~foreign)
