"""The door through which metric values come into the model: what no launch can have measured is missing there, and told.

Columns of many launches come in by `Gate`, the metrics of one result (embedded charts, rules) by `PlausibleMetrics`; of
launches with another kernel's counters `believed` leaves nothing.  The report itself keeps what its file says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ncu_roofline.base.texts import clean, conjoined, plural, shorten
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


def remark(texts: TextArray, rows: Mask, note: Callable[[int], str], noun: str = "launch") -> None:
    """One sentence more for all of these rows, made from the first."""
    places = np.flatnonzero(rows).tolist()
    if places:
        more = f", likewise in {plural(len(places) - 1, f'more {noun}')}" if len(places) > 1 else ""
        text = f"{LEFT_OUT} {note(places[0])}{more}"
        texts[places] = [f"{before}; {text}" if before else text for before in texts[places]]


class Gate:
    """What the launches of one report, of kernels of these names, can have measured.

    ``columns``: numbers by metric, NaN where missing or implausible; ``texts``: what to know of each launch.
    """

    def __init__(self, columns: Mapping[str, Sequence[Value | None]], names: Sequence[str]) -> None:
        self._names, self.texts, self.columns = names, objects([""] * len(names)), dict[str, FloatArray]()
        for metric, column in columns.items():
            self.columns[metric] = values = as_floats(column)
            if (bound := load_limits().bound(metric)) is None:
                continue
            wrong = (values > bound.most) | (values < bound.least)
            if np.isnan(values).any():  # NaN is what ncu writes for what it could not collect, None that a launch lacks it
                wrong |= np.array([isinstance(value, str) for value in column], dtype=bool)
            if wrong.any():
                can = f"can be {bound.least:.4g} to {bound.most:.4g}{bound.unit and f' {bound.unit}'} ({bound.origin})"
                shown = [repr(short_name(one)) if isinstance(one, str) else f"{as_float(one):.4g}" for one in column]
                self._tell(metric, wrong, [f"is {one}, and {can}" for one in shown])
                self.columns[metric] = np.where(wrong, np.nan, values)

    def instances(self, metric: str, column: Sequence[Instances]) -> list[Instances]:
        """The counts by name of each launch, none where one is no count, all together are more than can be, or not the total.

        The total is the metric's own value in `columns`, of which nothing is left there either where they differ.
        """
        own = self.columns.get(metric, np.full(len(column), np.nan))
        rows = np.repeat(np.arange(len(column)), list(map(len, column)))
        numbers = as_floats([value for counts in column for _, value in counts])
        total = np.bincount(rows, np.where(numbers >= 0, np.minimum(numbers, MOST_COUNT * 2), np.nan), len(column))
        wrong = ~(total <= MOST_COUNT)
        added = [adds_up(*both) for both in zip(total.tolist(), own.tolist(), strict=True)]
        apart = ~wrong & ~np.array(added, dtype=bool) & np.array(list(map(bool, column)), dtype=bool)
        ends = [f"and to {one:.4g} by what the metric itself says" for one in own]
        ends = ["which no counter can" if bad else end for bad, end in zip(wrong, ends, strict=True)]
        texts = [f"adds up to {one:.4g}, {end}" for one, end in zip(total, ends, strict=True)]
        self._tell(metric, wrong, texts)
        self._tell(metric, apart, texts)
        self.columns[metric] = np.where(apart, np.nan, own)
        return [[] if bad else counts for bad, counts in zip(wrong | apart, column, strict=True)]

    def _tell(self, metric: str, rows: Mask, what: Sequence[str]) -> None:
        remark(self.texts, rows, lambda row: f"{metric} of launch {row} ({short_name(self._names[row])}) {what[row]}")


class PlausibleMetrics(Mapping[str, Value]):
    """The metrics of one result without those that can't be, by the same bounds as for columns; each is decoded once."""

    def __init__(self, metrics: Mapping[str, Value]) -> None:
        self._metrics, self._read = metrics, dict[str, Value | None]()

    def __getitem__(self, name: str) -> Value:
        if name not in self._read:
            value = self._metrics.get(name)
            if value is not None and (bound := load_limits().bound(name)) is not None:
                # NaN is what ncu writes for what it could not collect
                value = None if isinstance(value, str) or value > bound.most or value < bound.least else value
            self._read[name] = value
        if (found := self._read[name]) is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._metrics if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


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
FOREIGN = "hardware counters rejected"
"""How a remark begins on a launch of which no count is used."""
_MOST_NAMED = 6  # kernels with the same counters
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

    def first(metrics: Sequence[str]) -> FloatArray:
        found = np.full(len(names), np.nan)
        for metric in metrics:
            found = np.where(np.isfinite(found), found, columns.get(metric, np.nan))
        return found

    instrumented, hardware = first(INSTRUMENTED), first(HARDWARE)
    with np.errstate(invalid="ignore"):
        known = (instrumented > 0) & (hardware >= 0)
        foreign = known & (instrumented > FACTOR * hardware)
        fewer = known & (hardware > FACTOR * instrumented)
        own = known & (np.abs(instrumented - hardware) <= _OWN * hardware)
    if fewer.any():  # equal hardware counts stand side by side in this order
        order = np.flatnonzero(known)[np.argsort(hardware[known], kind="stable")]
        for run in np.split(order, np.flatnonzero(np.diff(hardware[order]) > _EQUAL * hardware[order][1:]) + 1):
            if instrumented[run].max() > FACTOR * instrumented[run].min():
                foreign[run] |= fewer[run]
    result = objects([""] * len(names))
    result[foreign] = [
        f"{FOREIGN}, as they saw {seen:,.0f} warp instructions where {executed:,.0f} were executed: {_WHY}"
        for seen, executed in zip(hardware[foreign], instrumented[foreign], strict=True)
    ]
    # Launches with the same time (of no short launch), DRAM and L2 traffic and instruction count.  Of 265 public reports ten
    # have such launches of several kernels, all of one application; a time alone is a multiple of 32 ns and may be equal.
    kinds = [[columns[name] for name in kind if name in columns] for kind in (_TIME, _DRAM, _L2, HARDWARE)]
    same: dict[bytes, list[int]] = {}
    if all(kinds):
        complete = np.all([np.any(np.isfinite(kind), axis=0) for kind in kinds], axis=0)
        with np.errstate(invalid="ignore"):
            rows = np.flatnonzero(complete & (first(_TIME) >= SHORT_LAUNCH * 1e9))
        for row, values in zip(rows.tolist(), np.array([one[rows] for kind in kinds for one in kind]).T, strict=True):
            same.setdefault(values.tobytes(), []).append(row)
    sentences: dict[frozenset[tuple[str, str]], str] = {}  # one for all launches of the same kernels
    for alike in same.values():
        kernels = {names[row]: row for row in reversed(alike)}  # the first launch of each
        if len(kernels) > 1:
            if (key := frozenset(kernels)) not in sentences:
                firsts = sorted(kernels.values())[:_MOST_NAMED]
                short = short_names([name or function for function, name in map(names.__getitem__, firsts)])
                some = conjoined([f"{row} ({short_name(name)})" for row, name in zip(firsts, short, strict=True)])
                sentences[key] = f"{FOREIGN}, as launches {some} are different kernels with {_SAME}: {_WHY}"
            result[alike[1:] if own[alike[0]] else alike] = sentences[key]
    return result


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
