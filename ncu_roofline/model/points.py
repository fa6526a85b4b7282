"""Measurements to rows of the points frame: one per launch (or group), precision and level."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ncu_roofline.chips import Spec
from ncu_roofline.chips.thresholds import CLOCK_WARNING, MATTERS, PCIE
from ncu_roofline.model.above import with_reasons
from ncu_roofline.model.measurements import FloatArray, Measurements, Quantity, TextArray
from ncu_roofline.model.opcodes import OPCODES
from ncu_roofline.model.roofs import RoofValues
from ncu_roofline.model.selection import Grouping, Selection, reports_of
from ncu_roofline.model.utilisation import uncounted_tensor, values_of
from ncu_roofline.model.work import Work, works_of

_PARTIAL = "some launches lack the metrics"
_UNCOUNTED = "tensor work unknown: the tensor pipe was active but its operations were not collected, so what binds is not told"
LOW_CLOCK = f"profiled at less than {CLOCK_WARNING:.0%} of the maximum clock"

Table = dict[str, Any]


def points_table(
    m: Measurements,
    grouping: Grouping,
    spec: Spec,
    compute: Mapping[str, RoofValues],
    bandwidth: Mapping[str, RoofValues],
    select: Selection,
    levels: tuple[str, ...],
    bounds: Callable[[], TextArray] | None = None,
) -> list[Table]:
    """Column tables, one per precision and level, to be concatenated; rows without work, traffic or time are absent.

    ``bounds``: gives for each launch the id of what limits it; asked for only where that decides what is drawn.
    What binds is left open ("") where the tensor pipe did work that nobody counted.
    """
    tables = []
    m = with_levels_that_matter(m, spec, select)
    uncounted = grouping.total(uncounted_tensor(m, spec).astype(np.float64)) > 0
    for work in works_of(m, spec, compute):
        if not select.wants(work.precision):
            continue
        work = _if_it_counts(m, spec, work, select, bounds)
        rows = [_Rows(m, grouping, work, level, m.traffic[level], bandwidth.get(level)) for level in m.traffic]
        _add_binding(rows, grouping, uncounted)
        for row in rows:
            row.uncounted = uncounted
        tables += [row.table(rows, spec.chain) for row in rows if row.level in levels]
    return [table for table in tables if len(table["launch"])]


def with_levels_that_matter(m: Measurements, spec: Spec, select: Selection) -> Measurements:
    """The same without the traffic of levels that are drawn on request only, where it is next to nothing."""
    return replace(m, traffic={name: _if_it_matters(m, spec, name, select) for name in m.traffic})


def _if_it_matters(m: Measurements, spec: Spec, level: str, select: Selection) -> Quantity:
    """The traffic of a level, missing where the level is drawn on request only and is next to nothing."""
    quantity = m.traffic[level]
    if level in select.levels or not any(one.id == level and one.on_request for one in spec.levels):
        return quantity
    least = MATTERS * np.fmin(values_of(m.traffic, spec.memory, len(m)), PCIE * m.seconds)
    with np.errstate(invalid="ignore"):
        return quantity.scaled(np.where(quantity.values > least, 1.0, np.nan))


def _if_it_counts(m: Measurements, spec: Spec, work: Work, select: Selection, bounds: Callable[[], TextArray] | None) -> Work:
    """The work of a precision, missing where it is drawn on request only and other work of the launch is not bound by it."""
    if work.precision in select.precisions or work.precision not in spec.on_request:
        return work
    others = [m.work[p.id].values for p in spec.precisions if not p.on_request and p.id in m.work]
    busy = np.nansum(np.vstack(others), axis=0) > 0 if others else np.zeros(len(m), dtype=bool)
    if bounds and (busy & (work.quantity.values > 0)).any():
        busy &= bounds() != work.roof_id
    return work._replace(quantity=work.quantity.where(~busy))


class _Rows:
    """The rows of one precision at one level."""

    def __init__(
        self, m: Measurements, grouping: Grouping, work: Work, level: str, traffic: Quantity, bandwidth: RoofValues | None
    ) -> None:
        self.m, self.grouping, self.work_of, self.level, self.traffic_of = m, grouping, work, level, traffic
        bandwidth = bandwidth or RoofValues.missing(len(m))
        known = np.isfinite(work.quantity.values) & np.isfinite(traffic.values) & np.isfinite(m.seconds)
        self.known = known

        def total(values: FloatArray) -> FloatArray:
            return grouping.total(np.where(known, values, 0.0))

        self.work, self.traffic, self.seconds = total(work.quantity.values), total(traffic.values), total(m.seconds)
        self.launches = grouping.total(np.where(known, m.invocations, 0.0))
        self.rates = grouping.total(np.where(known & m.rates, 1.0, 0.0)) > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            self.coverage = np.minimum(self.seconds / grouping.total(np.nan_to_num(m.seconds)), 1.0)
            self.intensity = self.work / self.traffic
            self.performance = self.work / self.seconds
        self.present = (self.work > 0) & (self.traffic > 0) & (self.seconds > 0)
        self.present &= np.isfinite(self.intensity) & np.isfinite(self.performance)
        weights = np.where(known, m.seconds, np.nan)
        self.peak = grouping.mean(work.roof.value, weights)
        self.peak_theoretical = grouping.mean(work.roof.theoretical, weights)
        with np.errstate(invalid="ignore"):
            self.bandwidth_roof = grouping.mean(bandwidth.value, weights)
            self.slope = self.intensity * self.bandwidth_roof
            self.slope_theoretical = self.intensity * grouping.mean(bandwidth.theoretical, weights)
        self.fma_share = self._fma_share(total(work.fused))
        self.attainable = np.minimum(self.peak, self.slope)
        self.attainable_theoretical = np.minimum(self.peak_theoretical, self.slope_theoretical)
        self.memory_binds = self.slope < self.peak
        self.representative = self._representative()
        self.measured = np.where(
            self.memory_binds, bandwidth.measured[self.representative], work.roof.measured[self.representative]
        )
        self.binds = np.full(grouping.count, "", dtype=object)
        self.lowest = np.full(grouping.count, np.nan)
        self.uncounted = np.zeros(grouping.count, dtype=bool)

    def _representative(self) -> Any:
        """For each row the launch that lends it its texts: the longest with the numbers, else the first."""
        if self.grouping.by == "launch":
            return np.arange(len(self.m))
        order = np.argsort(np.where(self.known, np.nan_to_num(self.m.seconds), -1.0), kind="stable")
        chosen = self.grouping.first.copy()
        chosen[self.grouping.index[order]] = order  # the last one assigned is the longest
        return chosen

    def _fma_share(self, fused: FloatArray) -> FloatArray:
        """Alpha of Yang, Kurth, Williams (2019), equation 6: of instructions, so a fused one counts half its operations."""
        lacking = self.grouping.total(np.where(self.known & np.isnan(self.work_of.fused), 1.0, 0.0)) > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (fused / 2) / (self.work - fused / 2)
        return np.where(lacking | ~(self.work > 0), np.nan, np.clip(share, 0.0, 1.0))

    def table(self, siblings: list[_Rows], chain: tuple[str, ...]) -> Table:
        """The columns of the present rows; each level of the chain gets what the one before it could not serve."""
        keep = np.flatnonzero(self.present)
        who = self.representative[keep]
        first = self.grouping.first[keep]
        m, single = self.m, self.grouping.by == "launch"
        locality, outward = self._locality(siblings, chain)
        weights = np.where(self.known, m.seconds, np.nan)
        clock = self.grouping.mean(m.clock, weights)[keep]
        clock_max = m.clock_max[who]
        ratio = clock / clock_max
        with np.errstate(divide="ignore", invalid="ignore"):
            fractions = self.performance / self.attainable, self.performance / self.attainable_theoretical
            binding = self.performance / self.lowest
        source, metrics, notes = self._texts(who, ratio)
        hidden = self.rates[keep]  # a file that gives rates says nothing of totals and times
        labels = np.array(self.grouping.label, dtype=object)
        table = {
            "report": reports_of(m, self.grouping)[keep],
            "launch": m.launch[first] if single else np.full(len(keep), -1, dtype=np.int64),
            "kernel": labels[keep],
            "device": m.device[first],
            "compute_capability": m.capability_text[first],
            "label": self.grouping.common(m.label)[keep],
            "step": m.step[first],
            "precision": np.full(len(keep), self.work_of.precision, dtype=object),
            "level": np.full(len(keep), self.level, dtype=object),
            "launches": self.launches[keep].astype(np.int64),
            "work": np.where(hidden, np.nan, self.work[keep]),
            "unit": np.full(len(keep), self.work_of.unit, dtype=object),
            "traffic": np.where(hidden, np.nan, self.traffic[keep]),
            "seconds": np.where(hidden, np.nan, self.seconds[keep]),
            "intensity": self.intensity[keep],
            "performance": self.performance[keep],
            "bandwidth": self.traffic[keep] / self.seconds[keep],
            "attainable": self.attainable[keep],
            "fraction": fractions[0][keep],
            "compute_roof": self.peak[keep],
            "bandwidth_roof": self.bandwidth_roof[keep],
            "fma_share": self.fma_share[keep],
            "mix_roof": ((1 + self.fma_share) / 2 * self.peak)[keep],
            "lanes": np.full(len(keep), np.nan),
            "attainable_theoretical": self.attainable_theoretical[keep],
            "fraction_theoretical": fractions[1][keep],
            "roof_origin": np.where(self.measured[keep], "measured", "theoretical").astype(object),
            "binds": self.binds[keep],
            "binding_fraction": binding[keep],
            "locality": locality[keep],
            "locality_to": outward[keep],
            "clock_profiled": clock,
            "clock_max": clock_max,
            "clock_ratio": ratio,
            "coverage": self.coverage[keep],
            "source": source,
            "metrics": metrics,
            "notes": notes,
            "_row": keep,
        }
        return {**table, "notes": with_reasons(table)}

    def _locality(self, siblings: list[_Rows], chain: tuple[str, ...]) -> tuple[FloatArray, Any]:
        ratio = np.full(self.grouping.count, np.nan)
        to = np.full(self.grouping.count, "", dtype=object)
        if self.level in chain:
            by_level = {rows.level: rows for rows in siblings}
            for outer in chain[chain.index(self.level) + 1 :]:
                if outer in by_level:
                    usable = np.isnan(ratio) & by_level[outer].present & self.present
                    with np.errstate(divide="ignore", invalid="ignore"):
                        ratio = np.where(usable, self.traffic / by_level[outer].traffic, ratio)
                    to[usable] = outer
        return ratio, to

    def _texts(self, who: Any, ratio: FloatArray) -> tuple[Any, Any, Any]:
        """Source, metrics and notes per row: few distinct combinations, built once each."""
        work, traffic = self.work_of.quantity, self.traffic_of
        low_clock = ratio < CLOCK_WARNING
        tensor = self.uncounted[np.flatnonzero(self.present)]
        partial = self.coverage[np.flatnonzero(self.present)] < 1.0 - 1e-9
        # One small number per combination, so that counting finds the few that occur (choices begin at -1).
        width = len(traffic.origins) + 1
        code = ((work.choice[who] + 1) * width + traffic.choice[who] + 1) * 8 + low_clock * 4 + partial * 2 + tensor
        texts = np.empty((int(code.max(initial=0)) + 1, 3), dtype=object)
        for one in np.flatnonzero(np.bincount(code)).tolist():
            choices, flags = divmod(one, 8)
            more = [note for bit, note in ((4, LOW_CLOCK), (2, _PARTIAL), (1, _UNCOUNTED)) if flags & bit]
            texts[one] = self._text(choices // width - 1, choices % width - 1, more)
        rows = texts[code]
        return rows[:, 0], rows[:, 1], rows[:, 2]

    def _text(self, work_choice: int, traffic_choice: int, more: list[str]) -> tuple[str, str, str]:
        origins = [self.work_of.quantity.origins[work_choice], self.traffic_of.origins[traffic_choice]]
        rank = ("binding", "embedded", "derived")
        source = (
            OPCODES
            if origins[0].source == OPCODES
            else max((origin.source for origin in origins), key=lambda one: rank.index(one) if one in rank else len(rank))
        )
        notes = [origin.note for origin in origins if origin.note]
        return source, "; ".join(origin.metrics for origin in origins), "; ".join(dict.fromkeys([*notes, *more]))


def _add_binding(rows: list[_Rows], grouping: Grouping, uncounted: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
    """What binds over all levels: the level whose slope is lowest, or the compute roof if that is lower still."""
    if not rows:
        return
    lowest = np.full(grouping.count, np.nan)
    binds = np.full(grouping.count, "", dtype=object)
    for one in rows:
        with np.errstate(invalid="ignore"):
            better = one.present & np.isfinite(one.attainable) & ~(one.attainable >= lowest)
        lowest = np.where(better, one.attainable, lowest)
        binds = np.where(better, np.where(one.memory_binds, one.level, one.work_of.roof_id[one.representative]), binds)
    for one in rows:
        one.lowest, one.binds = np.where(uncounted, np.nan, lowest), np.where(uncounted, "", binds)
