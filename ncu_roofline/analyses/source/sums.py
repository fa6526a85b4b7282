"""Sums over instructions, and what follows from them: shares of the kernel, intensity, lanes, the reason for most stalls."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ncu_roofline.analyses.source.columns import COUNTS, INTEGERS, INTENSITIES
from ncu_roofline.analyses.source.counts import SELECTED, FloatArray, IntArray
from ncu_roofline.analyses.source.instructions import INTEGER, Instructions, issued_by

COUNTED = tuple(column.name for column in COUNTS)


class Sums:
    """Sums of the counts of one launch.  ``of_all``: what shares of some counts are of, if not of their sums."""

    def __init__(self, instructions: Instructions, of_all: Mapping[str, float] = MappingProxyType({})) -> None:
        self.instructions = instructions
        self.whole = {name: float(values.sum()) for name, values in instructions.counts.items()} | dict(of_all)
        """What shares are of."""
        self.lanes = "threads" if np.isnan(instructions.counts["active"]).all() else "active"
        """What lanes are counted by: threads with a true predicate where those that are active were not counted."""
        self.stalls = {reason: every for reason, (every, _) in instructions.stalls.items() if reason != SELECTED}

    def by(self, index: IntArray, groups: int) -> dict[str, FloatArray]:
        """Sums of all counts over the rows of each group; rows of a negative ``index`` belong to none."""
        return {name: self.over(values, index, groups) for name, values in self.instructions.counts.items()}

    def stalls_by(self, index: IntArray, groups: int) -> dict[str, FloatArray]:
        """Samples by reason over the rows of each group."""
        return {reason: self.over(values, index, groups) for reason, values in self.stalls.items()}

    @staticmethod
    def over(values: FloatArray, index: IntArray, groups: int) -> FloatArray:
        """Sums of ``values`` over the rows of each group."""
        chosen = index >= 0
        return np.bincount(index[chosen], weights=values[chosen], minlength=groups).astype(np.float64)

    def table(self, counts: Mapping[str, FloatArray], stalls: Mapping[str, FloatArray]) -> dict[str, Any]:
        """The columns of counts and shares."""
        whole, asked = self.whole, counts["requested"] + counts["local"]
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = {
                "share_samples": counts["samples"] / whole["samples"],
                "share_work": counts["work"] / whole["work"],
                "share_int32": counts[INTEGERS] / whole[INTEGERS],
                "share_requested": counts["requested"] / whole["requested"],
                "share_excess": np.maximum(counts["requested"] - counts["ideal"], 0) / whole["requested"],
                **{name: counts[work] / asked for work, name in INTENSITIES.items()},
                "share_integer": counts[INTEGER] / counts[issued_by(self.instructions.counts)],
                "lanes": counts[self.lanes] / counts["executed"],
            }
        finite = {name: np.where(np.isfinite(values), values, np.nan) for name, values in shares.items()}
        return {name: counts[name] for name in COUNTED} | finite | _hottest(stalls, counts["samples"])


def _hottest(stalls: Mapping[str, FloatArray], samples: FloatArray) -> dict[str, Any]:
    """The reason for most stalls in each row, and its share of the samples."""
    if not stalls:
        return {"stall": np.full(len(samples), "", dtype=object), "share_stall": np.full(len(samples), np.nan)}
    names, table = np.array(list(stalls), dtype=object), np.vstack(list(stalls.values()))
    most = np.max(table, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where((most > 0) & (samples > 0), most / samples, np.nan)
    return {"stall": np.where(most > 0, names[np.argmax(table, axis=0)], ""), "share_stall": share}
