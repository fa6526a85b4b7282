"""Why launches stand on the instruction roofline or not, and what their reports lack for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ncu_roofline.model.grouping import Grouping
from ncu_roofline.model.measurements import FloatArray, Measurements, Quantity
from ncu_roofline.model.points import CLOCK_WARNING, LOW_CLOCK
from ncu_roofline.spec import load_spec
from ncu_roofline.spec.instruction import EXECUTED

_UNKNOWN_CHIP = "unknown-chip"


class Availability:
    """Which rows have instructions and transactions, from any of their launches."""

    def __init__(self, m: Measurements, grouping: Grouping, traffic: Mapping[str, Quantity], levels: tuple[str, ...]) -> None:
        self._m, self._grouping = m, grouping
        missing = Quantity.missing(len(m))
        self._work = m.instructions.get(EXECUTED, missing).values
        self._levels = {level: traffic.get(level, missing).values for level in levels}
        every = [quantity.values for quantity in traffic.values()]
        self._any_traffic = np.any([np.isfinite(values) for values in (missing.values, *every)], axis=0)

    def status(self) -> Any:
        """Why a row has points or none."""
        known = self._known(self._work)
        executed = self._grouping.total(np.nan_to_num(self._work)) > 0
        together = self._known(np.where(self._any_traffic, self._work, np.nan))
        conditions = [self._unknown(), ~self._known(self._m.seconds), ~known, ~executed, ~together]
        names = [_UNKNOWN_CHIP, "no-time", "no-work-metrics", "no-instructions", "no-traffic-metrics"]
        return np.select(conditions, names, default="ok").astype(object)

    def executed(self) -> FloatArray:
        """Warp instructions of each row, NaN where unknown."""
        return np.where(self._known(self._work), self._grouping.total(np.nan_to_num(self._work)), np.nan)

    def missing(self) -> Any:
        """What no launch of a row has, for chips that could count it: ids of kinds and levels."""
        known = {EXECUTED: self._known(self._work)} | {level: self._known(v) for level, v in self._levels.items()}
        architectures = [load_spec().read_as(one) for one in self._m.capability[self._grouping.first]]
        result = np.empty(self._grouping.count, dtype=object)
        for row, architecture in enumerate(architectures):
            lacks = architecture.lacks if architecture else frozenset()
            result[row] = " ".join(name for name, has in known.items() if not has[row] and name not in lacks)
        return result

    def notes(self) -> Any:
        """Warnings: a low clock, a chip whose counters are unproven."""
        ratio = self._grouping.mean(self._m.clock, self._m.seconds) / self._m.clock_max[self._grouping.first]
        chips = [load_spec().read_as(one) for one in self._m.capability[self._grouping.first]]
        texts = [
            "; ".join(filter(None, (LOW_CLOCK if low else "", chip.caveat if chip else "")))
            for low, chip in zip(ratio < CLOCK_WARNING, chips, strict=True)
        ]
        return np.array(texts, dtype=object)

    def _known(self, values: FloatArray) -> Any:
        return self._grouping.total(np.isfinite(values).astype(np.float64)) > 0

    def _unknown(self) -> Any:
        chips = {one: load_spec().read_as(one) for one in dict.fromkeys(self._m.capability)}
        return np.array([chips[one] is None for one in self._m.capability[self._grouping.first]], dtype=bool) & ~self._known(
            self._work
        )
