"""Launches whose hardware counters are those of another launch, as application replay can leave them.

Application replay runs the program once for each group of counters and tells the launches of the runs apart by their order;
where that fails, one kernel's hardware counters stand at all kernels.  Instructions are counted twice: by the hardware, and in
the instrumented pass that counts for each source line.  Real reports agree to a few percent: 0.993 to 1.034 in 49 launches.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ncu_roofline.model.measurements import FloatArray, TextArray

Mask = NDArray[np.bool_]

# Warp instructions of the instrumented pass: each is the sum over all opcodes or source lines; best first.
INSTRUMENTED = ("sass__inst_executed_per_opcode_with_modifier_all", "sass__inst_executed_per_opcode", "inst_executed")
HARDWARE = ("smsp__inst_executed.sum", "sm__inst_executed.sum")
REPLAY_METRICS = (*INSTRUMENTED, *HARDWARE)
# Passes of one launch differ by a few percent where its work depends on timing (atomics, spinning); half as much again is
# no such noise.
FACTOR = 1.5
_EQUAL = 1e-3  # two launches with the same hardware count, but for such noise


def foreign_counters(columns: Mapping[str, FloatArray], count: int) -> TextArray:
    """A sentence for each launch of one report whose hardware counters are not its own, "" for the others.

    ``columns``: `REPLAY_METRICS` as far as the report has them, ``count`` values each (NaN where missing).  More instructions
    in the instrumented pass than the hardware saw prove it.  Fewer don't: that pass leaves out functions that the kernel calls
    in other sections of the code.  Those launches are named only if the same hardware count stands at one of another size, too.
    """
    instrumented, hardware = (_first(columns, names, count) for names in (INSTRUMENTED, HARDWARE))
    with np.errstate(invalid="ignore"):
        known = (instrumented > 0) & (hardware >= 0)
        foreign = known & (instrumented > FACTOR * hardware)
        fewer = known & (hardware > FACTOR * instrumented)
        foreign |= fewer & _stands_elsewhere(instrumented, hardware, known)
    result: TextArray = np.full(count, "", dtype=object)
    result[foreign] = [_sentence(*pair) for pair in zip(hardware[foreign], instrumented[foreign], strict=True)]
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


def _sentence(hardware: float, instrumented: float) -> str:
    return (
        f"the hardware counters do not belong to this launch: they saw {hardware:,.0f} warp instructions, and it executed "
        f"{instrumented:,.0f} (application replay can take one kernel's counters for another's; --replay-mode kernel does not)"
    )
