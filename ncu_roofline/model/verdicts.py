"""The use of the hardware and the verdict on every row of the kernels frame."""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ncu_roofline.chips import Spec, load_units
from ncu_roofline.chips.formulas import OF_ACTIVE, Asked, Reached, Row, Share, arithmetic_of, case_of
from ncu_roofline.chips.thresholds import GROUP_LESS, SHORT_LAUNCH
from ncu_roofline.chips.verdict import NO_TIME, TOO_SHORT, Case, State, Verdict, judge
from ncu_roofline.model.columns import LEVELS_WITH_COLUMNS
from ncu_roofline.model.foreign import disbelieved
from ncu_roofline.model.measurements import FloatArray, Mask, Measurements, Quantity, TextArray, levels_of
from ncu_roofline.model.roofs import Roofs
from ncu_roofline.model.selection import Grouping
from ncu_roofline.model.utilisation import uncounted_tensor, values_of
from ncu_roofline.model.work import demands

_GAUGES = ("occupancy", "occupancy_theoretical", "waves", "eligible_warps", "ipc", "data_pipe")
_STATE = ("occupancy", "occupancy_theoretical", "eligible_warps", "waves")
_ACTIVE = ("active_avg", "active_min", "active_max")
_PROVING = ("data_pipe", "writeback", "bank_reads", "bank_writes", "requests", "lanes")
_GROUP_SM = "sm"  # the unit whose share says how busy the inside of the SMs was

Table = dict[str, Any]


class Verdicts:
    """What the kernels frame says of the hardware's use, row by row; shares are means over the launches, weighted by time."""

    def __init__(self, m: Measurements, grouping: Grouping, spec: Spec, roofs: Roofs) -> None:
        compute = roofs.compute()
        self._m, self._units, self._spec = m, load_units(), spec
        self._weights = np.where(np.isfinite(m.seconds), m.seconds, np.nan)
        self._levels = levels_of(m, spec)
        self._demands = demands(m, spec, compute)
        self._bandwidth, self._latency = roofs.bandwidth(), roofs.launch_latency()
        self._uncounted = uncounted_tensor(m, spec).astype(np.float64)
        self._short = (m.seconds < SHORT_LAUNCH * m.invocations) & ~m.rates
        self._group(grouping)

    def _group(self, grouping: Grouping) -> None:
        """Sums and means over the launches of each row."""
        m = self._m
        self._grouping = grouping
        self._seconds = grouping.total(np.nan_to_num(m.seconds))
        units = [unit.id for unit in self._units.units if unit.id in m.units]
        self._busy = {unit: self._mean(values_of(m.units, unit, len(m))) for unit in units}
        self._gauges = {name: self._mean(values_of(m.gauges, name, len(m))) for name in (*_GAUGES, *_ACTIVE)}
        nothing = np.full(grouping.count, np.nan)
        self._rate = {level.id: self._bandwidth_of(level.id) for level in self._levels}
        self._roof = {name: self._mean(roof.value) for name, roof in self._bandwidth.items()}
        with np.errstate(divide="ignore", invalid="ignore"):
            self._roof_share = {name: rate / self._roof.get(name, nothing) for name, rate in self._rate.items()}
        self.uncounted = grouping.total(self._uncounted) > 0
        self._tensor = self._mean(m.tensor_active)
        with np.errstate(divide="ignore", invalid="ignore"):
            self._launching = grouping.total(self._latency * m.invocations) / self._seconds

    def _of(self, grouping: Grouping) -> Verdicts:
        """The same launches in other rows."""
        other = copy(self)
        for name in ("_verdicts", "_spread", "_proofs"):
            vars(other).pop(name, None)
        other._group(grouping)
        return other

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
            "headroom": [verdict.headroom for verdict in verdicts],
            "headroom_or_less": [int(verdict.or_less) for verdict in verdicts],
            "headroom_compute": [verdict.headroom_compute for verdict in verdicts],
            "waste": [verdict.waste for verdict in verdicts],
            "headroom_without_waste": [verdict.without_waste for verdict in verdicts],
            "speedup": [verdict.headroom for verdict in verdicts],
            "judged_seconds": self._judged_seconds(),
            "short_seconds": self._short_seconds(),
            "reason": [verdict.reason for verdict in verdicts],
            "busiest_unit": [name for name, _ in busiest],
            "busiest_fraction": [share for _, share in busiest],
            **{f"bandwidth_{name}": self._rate.get(name, nothing) for name in LEVELS_WITH_COLUMNS},
            **{f"fraction_{name}": level_share[name] for name in LEVELS_WITH_COLUMNS},
            "fraction_sm": self._of_sm(),
            "issue_fraction": self._busy.get("issue", nothing),
            "tensor_active": self._tensor,
            "sm_active": self._gauges[_ACTIVE[0]],
            **{name: self._gauges[name] for name in _GAUGES},
        }

    def bounds(self) -> TextArray:
        """For each launch the id of what limits its row by the verdict, "" if nothing does."""
        of_rows = bounds_of((verdict.text, verdict.limit) for verdict in self._verdicts)
        found: TextArray = np.array(of_rows, dtype=object)[self._grouping.index]
        return found

    @cached_property
    def _verdicts(self) -> list[Verdict]:
        """Of a row with several launches the verdict that most of its time has, and the headroom of all that have one."""
        cases = self._cases
        if self._joined:
            speaking, known = self._spread
            said = self._of(self._only(speaking))._cases
            needed = [arithmetic_of(row) for row in self._of(self._only(np.isfinite(known)))._rows]
            parts = self._share_of_time(speaking)
            with np.errstate(divide="ignore", invalid="ignore"):
                headroom = self._judged_seconds() / self._grouping.total(np.nan_to_num(self._m.seconds / known))
            several = np.bincount(self._grouping.index, minlength=len(cases)) > 1
            for row in np.flatnonzero(several).tolist():
                case = said[row]._replace(short=cases[row].short, arithmetic=needed[row])
                cases[row] = case._replace(headroom=float(headroom[row]), part=float(parts[row]))
        return [judge(case) for case in cases]

    @cached_property
    def _spread(self) -> tuple[Mask, FloatArray]:
        """Which launches have the verdict that most of the time of their row has, and the headroom of each (NaN: unknown)."""
        index, launches = self._grouping.index.tolist(), np.arange(len(self._m))
        alone = replace(self._grouping, by="launch", index=launches, first=launches, label=("",) * len(launches))
        verdicts = [judge(case) for case in self._of(alone)._cases]
        keys = [(one.text, one.limit if ": " in one.text else "") for one in verdicts]
        seconds: dict[int, dict[tuple[str, str], float]] = {}
        mostly_short = [short is not None for short in self._too_short()]
        for row, key, time in zip(index, keys, np.nan_to_num(self._m.seconds).tolist(), strict=True):
            if mostly_short[row] or key[0] != TOO_SHORT:
                found = seconds.setdefault(row, {})
                found[key] = found.get(key, 0.0) + time
        most = {row: max(found, key=lambda key: found[key]) for row, found in seconds.items()}
        speaking = np.array([mostly_short[row] or most[row] == key for row, key in zip(index, keys, strict=True)], dtype=bool)
        headroom = np.array([one.headroom for one in verdicts])
        told = self._grouping.total((speaking & np.isfinite(headroom)) * 1.0) > 0
        return speaking, np.where(told[self._grouping.index] & ~np.array(mostly_short)[self._grouping.index], headroom, np.nan)

    def _judged_seconds(self) -> FloatArray:
        """Run time of the launches that have a headroom, row by row."""
        if not self._joined:
            return np.where([math.isfinite(verdict.headroom) for verdict in self._verdicts], self._seconds, 0.0)
        return self._grouping.total(np.where(np.isfinite(self._spread[1]), np.nan_to_num(self._m.seconds), 0.0))

    @property
    def _joined(self) -> bool:
        """Whether some row has several launches."""
        return len(self._grouping.index) > self._grouping.count

    def _only(self, launches: Mask) -> Grouping:
        """Rows of these launches alone; one more row, the last, has the others."""
        one = self._grouping
        index = np.where(launches, one.index, one.count)
        return replace(one, index=index, first=np.append(one.first, 0), label=(*one.label, ""))

    def _share_of_time(self, launches: Mask) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            share = self._grouping.total(np.where(launches, np.nan_to_num(self._m.seconds), 0.0)) / self._seconds
        return np.where(np.isfinite(share), share, 1.0)

    @property
    def _cases(self) -> list[Case]:
        return [case_of(row, self._levels, self._units.units) for row in self._rows]

    @property
    def _rows(self) -> list[Row]:
        m, total = self._m, self._grouping.total
        counted = np.any([np.isfinite(one.values) for one in m.work.values()] or [np.zeros(len(m), dtype=bool)], axis=0)
        foreign = disbelieved(m)[self._grouping.first]
        known = {chip: self._spec.read_as(chip) is not None for chip in dict.fromkeys(m.capability)}
        asked, seconds, lower = self._asked()
        gauges = (self._tensor, *(self._gauges[name] for name in _STATE), self._launching)
        states = zip(*(one.tolist() for one in (*gauges, *(self._gauges[name] for name in _ACTIVE))), strict=True)
        rows = zip(
            self._reached(),
            self._shares(),
            asked,
            seconds,
            lower,
            (total(counted * 1.0) > 0).tolist(),
            (State(*state) for state in states),
            (partial(self._amounts, row) for row in range(self._grouping.count)),
            self.uncounted.tolist(),
            (known[m.capability[launch]] for launch in self._grouping.first),
            np.where(self._seconds > 0, "", np.where(foreign != "", foreign, NO_TIME)).tolist(),
            self._too_short(),
            strict=True,
        )
        return [Row(*row) for row in rows]

    def _shares(self) -> list[dict[str, Share]]:
        """How busy which unit was in each row."""
        rows: list[dict[str, Share]] = [{} for _ in range(self._grouping.count)]
        for unit, share in self._busy.items():
            quantity = self._m.units[unit]
            noted = np.array([origin.note == OF_ACTIVE for origin in quantity.origins] + [False])
            # Of some launch it may be but a lower bound, or of active cycles.
            facts = (share.tolist(), self._any(quantity.is_lower_bound()).tolist(), self._any(noted[quantity.choice]).tolist())
            for row, fact in enumerate(zip(*facts, strict=True)):
                if math.isfinite(fact[0]):
                    rows[row][unit] = Share(*fact)
        return rows

    def _reached(self) -> list[tuple[Reached, ...]]:
        """What each row reached at each level."""
        m, total = self._m, self._grouping.total
        nothing = np.full(self._grouping.count, np.nan)
        mine = [demand for demand in self._demands if not demand.precision.on_request]
        counted = np.any([np.isfinite(demand.work) for demand in mine] or [np.zeros(len(m), dtype=bool)], axis=0)
        columns = []
        for level in self._levels:
            moved = m.traffic.get(level.id, Quantity.missing(len(m)))
            lower = moved.is_lower_bound()
            whole = np.where(counted & ~lower, moved.values, np.nan)
            traffic = np.where(self._any(np.isnan(whole) & counted), np.nan, total(np.nan_to_num(whole)))
            numbers = (self._rate[level.id], self._roof_share[level.id], self._any(lower), traffic)
            facts = [one.tolist() for one in (*numbers, self._roof.get(level.id, nothing))]
            columns.append([Reached(level, *fact) for fact in zip(*facts, strict=True)])
        return list(zip(*columns, strict=True))

    def _asked(self) -> tuple[list[list[Asked]], list[dict[str, float]], list[bool]]:
        """What the work of each row asks of the pipes, seconds of launches whose work is known, and if it is a lower bound."""
        m, total, first = self._m, self._grouping.total, self._grouping.first
        rows: list[list[Asked]] = [[] for _ in first]
        nothing = np.zeros(len(m), dtype=bool)
        counted: dict[str, Any] = {"": nothing}
        lower = nothing
        for demand in self._demands:
            precision, known = demand.precision, np.isfinite(demand.work)
            for pipe in dict.fromkeys(demand.pipe):
                counted[pipe] = counted.get(pipe, nothing) | (known & (demand.pipe == pipe))
            if not precision.on_request:
                counted[""] = counted[""] | known
                lower = lower | (m.work[precision.id].is_lower_bound() if precision.id in m.work else nothing)
            roofless = np.where(np.isnan(demand.seconds) & (demand.work > 0), demand.work, 0.0)
            sums = (demand.work, roofless, demand.seconds, demand.mix_seconds)
            facts = [total(np.nan_to_num(one)).tolist() for one in sums]
            for row, fact in enumerate(zip(*facts, strict=True)):
                if fact[0] > 0:
                    rows[row].append(Asked(precision, demand.pipe[first[row]], *fact))
        seconds = [total(np.where(here, np.nan_to_num(m.seconds), 0.0)).tolist() for here in counted.values()]
        by_pipe = [dict(zip(counted, row, strict=True)) for row in zip(*seconds, strict=True)]
        return rows, by_pipe, self._any(lower).tolist()

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

    def _any(self, launches: Any) -> Mask:
        return self._grouping.total(launches.astype(np.float64)) > 0

    def _too_short(self) -> list[float | None]:
        """Seconds of a launch where most of the time of a row is in launches that are too short to be judged, else None."""
        m, total = self._m, self._grouping.total
        launches = total(np.where(np.isfinite(m.seconds), m.invocations, 0.0))
        mostly = self._short_seconds() > self._seconds / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            each = self._seconds / launches
        return [float(seconds) if here else None for here, seconds in zip(mostly, each, strict=True)]

    def _short_seconds(self) -> FloatArray:
        return self._grouping.total(np.where(self._short, np.nan_to_num(self._m.seconds), 0.0))

    def _amounts(self, row: int) -> dict[str, float]:
        """What was counted of a row that can prove waste, by name."""
        return {name: float(values[row]) for name, values in self._proofs.items()}

    @cached_property
    def _proofs(self) -> dict[str, FloatArray]:
        m, counts = self._m, {count.id for count in self._units.counts}
        known = {name: quantity for name, quantity in m.gauges.items() if name in counts or name in _PROVING}
        totals = {name: self._sum_known(quantity) for name, quantity in known.items() if name in counts}
        means = {name: self._mean(quantity.values) for name, quantity in known.items() if name not in counts}
        nearest = self._spec.chain[0]
        return {**totals, **means, **({nearest: self._sum_known(m.traffic[nearest])} if nearest in m.traffic else {})}

    def _sum_known(self, quantity: Quantity) -> FloatArray:
        """Over the launches of each row, NaN where some lack it."""
        return np.where(self._any(~np.isfinite(quantity.values)), np.nan, self._grouping.total(np.nan_to_num(quantity.values)))


def bounds_of(verdicts: Iterable[tuple[str, str]]) -> list[str]:
    """The id of what limits each row, "" if nothing does, from text and nearest known limit of its verdict."""
    return [limit if ": " in text else "" for text, limit in verdicts]
