"""The frame of totals: sums over instructions beside what the kernel's own counters say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ncu_roofline.analyses.source.columns import COUNTS, INT32, WORKS
from ncu_roofline.analyses.source.instructions import Instructions
from ncu_roofline.chips.source_counters import SECTOR
from ncu_roofline.chips.thresholds import COMPLETE
from ncu_roofline.formats.report import Metrics

EXECUTED = ("smsp__inst_executed.sum", "sm__inst_executed.sum")
_PER_INSTRUCTION = {
    "active": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "threads": "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
}
# What is counted by the names of opcodes, by the column that has the same by instruction.
_NAMED = {"executed": "sass__inst_executed_per_opcode", "threads": "sass__thread_inst_executed_true_per_opcode"}
_TOLD = 3  # names that differ
_SUMMED = {
    "requested": (tuple(f"l1tex__t_sectors_pipe_lsu_mem_global_op_{one}.sum" for one in ("ld", "st", "atom", "red")), SECTOR),
    "local": (tuple(f"l1tex__t_sectors_pipe_lsu_mem_local_op_{one}.sum" for one in ("ld", "st")), SECTOR),
    "shared": (tuple(f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{one}.sum" for one in ("ld", "st", "atom")), 1),
    "samples": (("smsp__pcsamp_sample_count",), 1),
}
_BUFFER, _DROPPED = "smsp__pcsamp_buffer_size_bytes", "smsp__pcsamp_dropped_bytes"
_PER_BYTE, _FULL = 7 / 64, 0.99
"""Samples that a byte of the buffer holds: twelve A100 launches of 0.3 to 4 s have 3,669,964 in 33,554,432 bytes, none more."""
_MISCOUNTED = "the report lacks some, or has some twice"
_UNITS = {column.name: column.unit for column in COUNTS}
_LITTLE = 0.01
"""Local traffic that is less than this share of the other is printf's or the driver's, and may differ by any factor."""
_OUT_OF_ALL = 10.0
"""Counters that differ by more than this factor are of another launch."""


class Counter(NamedTuple):
    """What the kernel's counters say of a quantity, NaN if they are not there."""

    value: float = math.nan
    metrics: str = ""


class Totals:
    """The sums of one launch beside its counters.  ``work``: what the model counted, by kind; ``unit``: what work counts."""

    def __init__(self, found: Instructions, metrics: Metrics, work: Mapping[str, Counter], unit: str) -> None:
        self._found, self._metrics, self._work, self._unit = found, metrics, work, unit
        self.rows = [self._row(quantity, counter) for quantity, counter in self._counters()]
        self.rows += self._opcodes()
        self._ratios = {row["quantity"]: row["ratio"] for row in self.rows}

    def of_all(self) -> dict[str, float]:
        """What was counted of work whose sum is unknown only for what lies outside of the report's code."""
        whole = self._found.whole
        works = [row for row in self.rows if row["quantity"].startswith("work") and not math.isnan(row["sum"])]
        return {row["quantity"]: row["counter"] for row in works if math.isnan(whole[row["quantity"]])}

    def fits(self, quantity: str) -> bool:
        """Whether the sum is known to be what the counters say."""
        return bool(abs(self._ratios.get(quantity, math.nan) - 1) <= COMPLETE)

    @cached_property
    def cut(self) -> bool:
        """Whether samples are of a part of the run only, as there was no room for more."""
        room = self._number(_BUFFER) * _PER_BYTE
        return self._number(_DROPPED) > 0 or self._found.whole["samples"] >= _FULL * room

    @property
    def miscounted(self) -> bool:
        """Whether samples are more or fewer than the kernel's counter of the same samples says."""
        return bool(abs(self._ratios.get("samples", math.nan) - 1) > COMPLETE)

    @property
    def mixed(self) -> bool:
        """Whether the instructions are those of other launches than the counters."""
        ratio = self._ratios.get("executed", math.nan)
        return math.isfinite(ratio) and not 1 / _OUT_OF_ALL < ratio < _OUT_OF_ALL

    def notes(self) -> Iterator[str]:
        """What a reader must know of the launch as a whole."""
        if self.cut:
            yield "the buffer of samples was full before the kernel's end: they tell of its first part only"
        if self.mixed:
            times = f"{self._ratios['executed']:.3g} times what the kernel's counters say"
            yield f"instruction counts are {times}: application replay mixed launches"
        if self.miscounted:
            times = f"{self._ratios['samples']:.3g} times those of the kernel's counter"
            yield f"samples by instruction are {times}: {_MISCOUNTED}"

    def _counters(self) -> Iterator[tuple[str, Counter]]:
        executed = next((self._sum((name,)) for name in EXECUTED if self._metrics.has_name(name)), Counter())
        yield "executed", executed
        for quantity, name in _PER_INSTRUCTION.items():
            ratio = self._number(name)
            yield quantity, Counter(ratio * executed.value, f"{name} x {executed.metrics}" if executed.metrics else "")
        for kind in (*WORKS, INT32):
            yield f"work_{kind}", self._work.get(kind, Counter())
        known = [self._work[kind].value for kind in WORKS if kind in self._work]
        yield "work", Counter(sum(known) if known else math.nan, "the sum over kinds")
        for quantity, (names, worth) in _SUMMED.items():
            yield quantity, self._sum(names, worth)

    def _number(self, name: str) -> float:
        value = self._metrics.get(name)
        return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else math.nan

    def _sum(self, names: tuple[str, ...], worth: float = 1) -> Counter:
        """The sum of the counters that a launch has; NaN if it lacks the first, without which the others say little."""
        there = {name: value for name in names if math.isfinite(value := self._number(name))}
        return Counter(worth * sum(there.values()), " + ".join(there)) if names[0] in there else Counter()

    def _row(self, quantity: str, counter: Counter) -> dict[str, Any]:
        found = self._found
        values = found.counts[quantity]
        unlined = ~found.outside & np.array([not places for places in found.places], dtype=bool)
        inside = quantity.startswith("work")  # nobody knows what code outside of the report's does
        total = float(values[~found.outside].sum() if inside else values.sum())
        ratio = total / counter.value if counter.value else math.nan
        return {
            "quantity": quantity,
            "unit": self._unit if _UNITS[quantity] == "flop" else _UNITS[quantity],
            "sum": total,
            "outside": float(values[found.outside].sum()),
            "unlined": float(values[unlined].sum()),
            "counter": counter.value,
            "ratio": ratio if math.isfinite(ratio) else math.nan,
            "metrics": counter.metrics,
            "notes": self._note(quantity, total, counter.value, ratio),
        }

    def _opcodes(self) -> list[dict[str, Any]]:
        """The row of instructions whose names are those of the kernel's own counts by opcode; none without such counts."""
        found = self._found
        for column, metric in _NAMED.items():
            theirs = _by_name(self._metrics.instances(metric)) if self._metrics.has_name(metric) else {}
            total = sum(theirs.values())
            if not total > 0 or not np.isfinite(found.counts[column]).all():
                continue
            ours = _by_name(zip(found.opcodes, found.counts[column].tolist(), strict=True))
            same = sum(min(ours.get(name, 0.0), count) for name, count in theirs.items())
            values = {"sum": same, "outside": math.nan, "unlined": math.nan, "counter": total, "ratio": same / total}
            about = {"quantity": "opcodes", "unit": _UNITS[column], "metrics": metric, "notes": _apart(ours, theirs, total)}
            return [about | values]
        return []

    def _note(self, quantity: str, total: float, counter: float, ratio: float) -> str:
        found = self._found
        kinds = [quantity.removeprefix("work_")] if quantity != "work" else WORKS
        constants = sum(found.constant_work.get(kind, 0.0) for kind in kinds if kind in self._work)
        differ = self._difference(quantity, total, counter, ratio)
        loads = f"without {constants:.4g} operations that the counter has for loads of constants (HFMA2 R0, -RZ, RZ, x, y)"
        return "; ".join(filter(None, (differ, loads if constants > 0 else "")))

    def _difference(self, quantity: str, total: float, counter: float, ratio: float) -> str:
        found = self._found
        if math.isnan(total) and quantity.startswith("work") and found.unknown:
            return f"operations unknown of {', '.join(found.unknown[:3])}{' and others' * (len(found.unknown) > 3)}"
        if quantity.startswith("work") and counter > 0 and math.isnan(self._found.whole[quantity]):
            return "without what lies outside of the report's code, whose operations nobody knows"
        if not abs(ratio - 1) > COMPLETE:
            return ""
        if quantity == "samples":
            return _MISCOUNTED
        if quantity.startswith("work"):
            return "by opcodes as our tables read the code: these may be wrong, or passes of the kernel did not do the same"
        if quantity in ("requested", "local") and total + counter < _LITTLE * self._found.whole["requested"]:
            return "next to nothing beside what global accesses ask of L1"
        return "counted in passes of the kernel that need not do the same: this one by instrumentation, the counter by hardware"


def _by_name(counts: Iterable[tuple[Any, Any]]) -> dict[str, float]:
    """Counts by opcode as counts by name, without modifiers."""
    result: dict[str, float] = {}
    for opcode, count in counts:
        if isinstance(opcode, str) and isinstance(count, (int, float)) and 0 <= count < math.inf:
            name = opcode.partition(".")[0]
            result[name] = result.get(name, 0.0) + count
    return result


def _apart(ours: Mapping[str, float], theirs: Mapping[str, float], total: float) -> str:
    """By how much two counts by name differ, if they do."""
    apart = {name: ours.get(name, 0.0) - theirs.get(name, 0.0) for name in sorted({*ours, *theirs})}
    off = sum(map(abs, apart.values())) / total
    most = sorted(apart, key=lambda name: -abs(apart[name]))[:_TOLD]
    named = ", ".join(f"{name or 'outside of the code'} {apart[name]:+.3g}" for name in most if apart[name])
    return f"differences by name add up to {100 * off:.3g} % of the counts: {named}" if off > COMPLETE else ""
