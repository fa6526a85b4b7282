"""The use of the hardware and the verdict on every row of the kernels frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from ncu_roofline.facts import Level, Spec, load_units
from ncu_roofline.facts.thresholds import GROUP_LESS, ROOFLESS_SHARE
from ncu_roofline.facts.verdict import (
    ALL_IDLE,
    LATENCY,
    NO_ROOFS,
    NO_TIME,
    NOTHING_COLLECTED,
    TENSOR_UNKNOWN,
    UNKNOWN,
    UNKNOWN_CHIP,
    Limit,
    State,
    Verdict,
    judge,
    of_mix,
)
from ncu_roofline.model.columns import LEVELS_WITH_COLUMNS
from ncu_roofline.model.foreign import disbelieved
from ncu_roofline.model.measurements import FloatArray, Measurements, TextArray, levels_of
from ncu_roofline.model.roofs import Roofs, RoofValues
from ncu_roofline.model.selection import Grouping
from ncu_roofline.model.utilisation import uncounted_tensor, values_of
from ncu_roofline.model.work import Demand, demands

_GAUGES = ("occupancy", "occupancy_theoretical", "waves", "eligible_warps", "ipc", "data_pipe")
# Units whose shares say how busy the inside of the SMs was.
_GROUP_SM = "sm"

Table = dict[str, Any]


class Verdicts:
    """What the kernels frame says of the hardware's use, row by row; shares are means over the launches, weighted by time."""

    def __init__(
        self,
        m: Measurements,
        grouping: Grouping,
        spec: Spec,
        roofs: Roofs,
    ) -> None:
        compute, bandwidth, latency = roofs.compute(), roofs.bandwidth(), roofs.launch_latency()
        self._m, self._grouping, self._units, self._spec = m, grouping, load_units(), spec
        units = self._units
        self._weights = np.where(np.isfinite(m.seconds), m.seconds, np.nan)
        self._seconds = grouping.total(np.nan_to_num(m.seconds))
        self._busy = {unit.id: self._mean(values_of(m.units, unit.id, len(m))) for unit in units.units if unit.id in m.units}
        self._gauges = {name: self._mean(values_of(m.gauges, name, len(m))) for name in _GAUGES}
        self._levels = levels_of(m, spec)
        self._rate = {level.id: self._bandwidth_of(level.id) for level in self._levels}
        self._roof_share = {level.id: self._share_of_roof(level.id, bandwidth) for level in self._levels}
        self._demands = demands(m, spec, compute)
        uncounted = grouping.total(uncounted_tensor(m, spec).astype(np.float64)) > 0
        self.uncounted = uncounted
        self._tensor = self._mean(m.tensor_active)
        with np.errstate(divide="ignore", invalid="ignore"):
            self._launching = grouping.total(latency * m.invocations) / self._seconds

    def table(self) -> Table:
        """The columns."""
        busiest = self._busiest()
        verdicts = self._verdicts
        nothing = np.full(self._grouping.count, np.nan)
        level_share = {name: self._level_share(name) for name in LEVELS_WITH_COLUMNS}
        return {
            "verdict": [verdict.text for verdict in verdicts],
            "limit": [verdict.limit for verdict in verdicts],
            "limit_fraction": [verdict.fraction for verdict in verdicts],
            "speedup": [verdict.speedup for verdict in verdicts],
            "reason": [verdict.reason for verdict in verdicts],
            "busiest_unit": [name for name, _ in busiest],
            "busiest_fraction": [share for _, share in busiest],
            **{f"bandwidth_{name}": self._rate.get(name, nothing) for name in LEVELS_WITH_COLUMNS},
            **{f"fraction_{name}": level_share[name] for name in LEVELS_WITH_COLUMNS},
            "fraction_sm": self._of_sm(),
            "issue_fraction": self._busy.get("issue", nothing),
            "tensor_active": self._tensor,
            **self._gauges,
        }

    def bounds(self) -> TextArray:
        """For each launch the id of what limits its row by the verdict, "" if nothing does."""
        of_rows = bounds_of((verdict.text, verdict.limit) for verdict in self._verdicts)
        found: TextArray = np.array(of_rows, dtype=object)[self._grouping.index]
        return found

    @cached_property
    def _verdicts(self) -> list[Verdict]:
        facts = zip(self._limits(), self._states(), self.uncounted.tolist(), self._without_roof(), self._missing(), strict=True)
        return [judge(*fact) for fact in facts]

    def _mean(self, values: FloatArray) -> FloatArray:
        return self._grouping.mean(values, self._weights)

    def _bandwidth_of(self, level: str) -> FloatArray:
        """Bytes per second: counted, else a share of the roof that the level had at the clock it ran at."""
        m = self._m
        count = len(m)
        with np.errstate(divide="ignore", invalid="ignore"):
            counted = np.where(m.rates, values_of(m.traffic, level, count), values_of(m.traffic, level, count) / m.seconds)
            derived = values_of(m.shares, level, count) * values_of(m.bandwidth, level, count)
        return self._mean(np.where(np.isnan(counted), derived, counted))

    def _share_of_roof(self, level: str, bandwidth: Mapping[str, RoofValues]) -> FloatArray:
        if level not in bandwidth:
            return np.full(self._grouping.count, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._rate[level] / self._mean(bandwidth[level].value)

    def _level_share(self, level: str) -> FloatArray:
        """Of the roof; by hardware where bytes or roof are unknown."""
        share = self._roof_share.get(level, np.full(self._grouping.count, np.nan))
        for unit in self._units.units:
            if unit.level == level and unit.id in self._busy:
                share = np.where(np.isnan(share), self._busy[unit.id], share)
        return share

    def _of_sm(self) -> FloatArray:
        """The group's own share, or the largest of its parts."""
        if _GROUP_SM in self._busy:
            return self._busy[_GROUP_SM]
        parts = [self._busy[unit.id] for unit in self._units.units if unit.kind == "compute" and unit.id in self._busy]
        return np.fmax.reduce(parts) if parts else np.full(self._grouping.count, np.nan)

    def _busiest(self) -> list[tuple[str, float]]:
        """Label and share of the busiest unit of each row; a named part rather than the group that contains it."""
        units = [unit for unit in self._units.units if unit.id in self._busy]
        if not units:
            return [("", np.nan)] * self._grouping.count
        stack = np.vstack(
            [np.nan_to_num(self._busy[unit.id], nan=-1.0) - (GROUP_LESS if unit.group else 0.0) for unit in units]
        )
        chosen = np.argmax(stack, axis=0)
        shares = [float(self._busy[units[one].id][row]) for row, one in enumerate(chosen)]
        names = [units[one].label for one in chosen]
        return [(name if share > 0 else "", share) for name, share in zip(names, shares, strict=True)]

    def _limits(self) -> list[list[Limit]]:
        """What could be full, row by row."""
        rows: list[list[Limit]] = [[] for _ in range(self._grouping.count)]
        for level in self._levels:
            self._add(rows, "memory", level.id, level.label, self._roof_share[level.id], roof=True)
        for unit in self._units.units:
            if unit.id in self._busy:
                label, identifier = self._unit_name(unit.level, unit.label, unit.id)
                share = self._busy[unit.id] - (GROUP_LESS if unit.group else 0.0)
                self._add(rows, unit.kind, identifier, label, share, roof=False)
        for pipe in dict.fromkeys(pipe for demand in self._demands for pipe in demand.pipe):
            self._add_pipe(rows, pipe)
        return rows

    def _unit_name(self, level: str, label: str, identifier: str) -> tuple[str, str]:
        """A unit that stands for a level goes by the level's name."""
        found: Level | None = next((one for one in self._levels if one.id == level), None)
        return (found.label, found.id) if found else (label, identifier)

    @staticmethod
    def _add(rows: list[list[Limit]], kind: str, identifier: str, label: str, shares: FloatArray, *, roof: bool) -> None:
        for row, share in enumerate(shares.tolist()):
            if share > 0:
                rows[row].append(Limit(kind, identifier, label, share, roof, ""))

    def _add_pipe(self, rows: list[list[Limit]], pipe: str) -> None:
        """One limit per row: all that one pipe was asked for, by the name of the precision that asked for most."""
        mine = [demand for demand in self._demands if (demand.pipe == pipe).any()]
        counted = np.any([np.isfinite(demand.work) & (demand.pipe == pipe) for demand in mine], axis=0)
        counted_seconds = self._grouping.total(np.where(counted, np.nan_to_num(self._m.seconds), 0.0))
        seconds = [self._total(demand, pipe, demand.seconds) for demand in mine]
        mixes = [self._total(demand, pipe, demand.mix_seconds) for demand in mine]
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.sum(mixes, axis=0) / counted_seconds
            slower = np.sum(mixes, axis=0) / np.sum(seconds, axis=0)
        largest = np.argmax(np.vstack(mixes), axis=0)
        for row, share in enumerate(shares.tolist()):
            if share > 0:
                demand = mine[largest[row]]
                rows[row].append(
                    Limit(
                        "compute",
                        demand.roof_id,
                        demand.precision.roof_label(),
                        share,
                        True,
                        _of_mix(demand, float(slower[row])),
                    )
                )

    def _total(self, demand: Demand, pipe: str, seconds: FloatArray) -> FloatArray:
        """Seconds of each row on this pipe, as far as there is a roof."""
        return self._grouping.total(np.where(demand.pipe == pipe, np.nan_to_num(seconds), 0.0))

    def _without_roof(self) -> list[str]:
        """What counts of each row's work without a known roof, by label."""
        total = np.zeros(self._grouping.count)
        lacking: list[tuple[str, FloatArray]] = []
        for demand in self._demands:
            if demand.precision.on_request:
                continue
            total += self._grouping.total(np.nan_to_num(demand.work))
            without = np.isnan(demand.seconds) & (demand.work > 0)
            if without.any():
                lacking.append((demand.precision.label, self._grouping.total(np.where(without, demand.work, 0.0))))
        texts: list[list[str]] = [[] for _ in total]
        for label, work in lacking:
            for row in np.flatnonzero(work > ROOFLESS_SHARE * total):
                texts[row].append(label)
        return [" and ".join(labels) for labels in texts]

    def _missing(self) -> list[str]:
        """Why nothing may be known to limit a row."""
        m, grouping = self._m, self._grouping
        counted = [q.values for q in (*m.work.values(), *m.traffic.values())]
        some = grouping.total(np.any([np.isfinite(one) for one in counted] or [np.zeros(len(m), dtype=bool)], axis=0) * 1.0) > 0
        looked_at = np.any([np.isfinite(one) for one in self._busy.values()] or [np.zeros(grouping.count, dtype=bool)], axis=0)
        known = {chip: self._spec.read_as(chip) is not None for chip in dict.fromkeys(m.capability)}
        chips = np.array([known[m.capability[launch]] for launch in grouping.first], dtype=bool)
        foreign = disbelieved(m)[grouping.first]
        conditions = [~(self._seconds > 0), looked_at, ~chips, some]
        texts: list[Any] = [np.where(foreign != "", foreign, NO_TIME), ALL_IDLE, UNKNOWN_CHIP, NO_ROOFS]
        found: list[str] = np.select(conditions, texts, default=NOTHING_COLLECTED).tolist()
        return found

    def _states(self) -> list[State]:
        gauges = [self._gauges[name] for name in ("occupancy", "occupancy_theoretical", "eligible_warps", "waves")]
        return [State(*row) for row in zip(*(one.tolist() for one in (self._tensor, *gauges, self._launching)), strict=True)]


def bounds_of(verdicts: Iterable[tuple[str, str]]) -> list[str]:
    """The id of what limits each row, "" if nothing does, from text and nearest known limit of its verdict."""
    return ["" if text in (LATENCY, TENSOR_UNKNOWN, UNKNOWN) else limit for text, limit in verdicts]


def _of_mix(demand: Demand, slower: float) -> str:
    return of_mix(slower, "issue limit") if demand.precision.counts_instructions else of_mix(slower)
