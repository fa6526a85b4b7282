"""Launches with another kernel's hardware counters, as application replay mixes them up: nothing counted of these is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ncu_roofline.chips.thresholds import SHORT_LAUNCH
from ncu_roofline.model.halves import Mask
from ncu_roofline.model.measurements import FloatArray, Measurements, TextArray
from ncu_roofline.model.names import short_names
from ncu_roofline.model.plausible import short_name

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
        foreign |= fewer & _stands_elsewhere(instrumented, hardware, known)
        own = known & (np.abs(instrumented - hardware) <= _OWN * hardware)
    result: TextArray = np.full(len(names), "", dtype=object)
    result[foreign] = [
        f"{FOREIGN}, as they saw {seen:,.0f} warp instructions where {executed:,.0f} were executed: {_WHY}"
        for seen, executed in zip(hardware[foreign], instrumented[foreign], strict=True)
    ]
    pairs: dict[tuple[tuple[str, str], tuple[str, str]], str] = {}
    for first, *others in _alike(columns, names):
        different = [row for row in others if names[row] != names[first]]
        for row in others if own[first] else (first, *others):
            other = row if names[row] != names[first] else different[0]
            pair = names[first], names[other]
            if pair not in pairs:
                short = short_names([name or function for function, name in pair])
                one, two = (f"{row} ({short_name(name)})" for row, name in zip((first, other), short, strict=True))
                pairs[pair] = f"{FOREIGN}, as launches {one} and {two} are different kernels with {_SAME}: {_WHY}"
            result[row] = pairs[pair]
    return result


def _first(columns: Mapping[str, FloatArray], names: tuple[str, ...], count: int) -> FloatArray:
    """The first of some metrics that each launch has."""
    found: FloatArray = np.full(count, np.nan)
    for name in names:
        if name in columns:
            found = np.where(np.isfinite(found), found, columns[name])
    return found


def _stands_elsewhere(instrumented: FloatArray, hardware: FloatArray, known: Mask) -> Mask:
    """Whether some other launch has the same hardware count although it executed another number of instructions."""
    order = np.flatnonzero(known)[np.argsort(hardware[known], kind="stable")]
    counts = hardware[order]
    larger = np.flatnonzero(np.diff(counts) > _EQUAL * counts[1:]) + 1  # equal counts stand side by side in this order
    result = np.zeros(len(hardware), dtype=bool)
    for run in np.split(order, larger):
        executed = instrumented[run]
        result[run] = bool(len(run)) and executed.max() > FACTOR * executed.min()
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
    texts: TextArray = np.full(len(m), "", dtype=object)
    texts[:] = [text.partition("; ")[0] if text.startswith(FOREIGN) else "" for text in m.remarks]
    return texts


def told(m: Measurements) -> tuple[str, ...]:
    """Why the counters of some launches are not believed, each sentence once."""
    return tuple(dict.fromkeys(filter(None, disbelieved(m).tolist())))


def believed(m: Measurements) -> Measurements:
    """The measurements without anything that was counted of launches whose counters are not believed."""
    foreign = disbelieved(m) != ""
    if not foreign.any():
        return m
    kept = np.where(foreign, np.nan, 1.0)
    changed: dict[str, Any] = {name: {key: one.scaled(kept) for key, one in getattr(m, name).items()} for name in _COUNTED}
    changed |= {"seconds": m.seconds * kept, "tensor_active": m.tensor_active * kept, "tensor_gaps": m.tensor_gaps & ~foreign}
    return replace(m, **changed)
