"""The use of the hardware and the verdict on every row of the kernels frame."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from itertools import repeat
from typing import Any

import numpy as np

from ncu_roofline.base.units import UNITS
from ncu_roofline.chips import Spec, load_units
from ncu_roofline.chips.formulas import OF_ACTIVE
from ncu_roofline.chips.thresholds import GROUP_LESS, ROOFLESS_SHARE, SHORT_LAUNCH
from ncu_roofline.chips.verdict import (
    ALL_IDLE,
    NO_ARITHMETIC,
    NO_ROOFS,
    NO_TIME,
    NOTHING_COLLECTED,
    PEAK_OF_ACTIVE,
    ROOF_OF,
    TOO_SHORT,
    UNKNOWN_CHIP,
    Arithmetic,
    Case,
    Limit,
    State,
    Verdict,
    judge,
    of_mix,
)
from ncu_roofline.model.columns import LEVELS_WITH_COLUMNS
from ncu_roofline.model.foreign import disbelieved
from ncu_roofline.model.measurements import FloatArray, Measurements, Quantity, TextArray, levels_of
from ncu_roofline.model.roofs import Roofs
from ncu_roofline.model.selection import Grouping
from ncu_roofline.model.utilisation import uncounted_tensor, values_of
from ncu_roofline.model.work import Demand, by_pipe, demands

_GAUGES = ("occupancy", "occupancy_theoretical", "waves", "eligible_warps", "ipc", "data_pipe")
_STATE = ("occupancy", "occupancy_theoretical", "eligible_warps", "waves")
_ACTIVE = ("active_avg", "active_min", "active_max")
_PROVING = ("data_pipe", "writeback", "bank_reads", "bank_writes", "requests", "lanes")
# Units whose shares say how busy the inside of the SMs was, and all of the memory system.
_GROUP_SM, _GROUP_MEMORY = "sm", "memory"

Table = dict[str, Any]
Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


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
        self._rate = {level.id: self._bandwidth_of(level.id) for level in self._levels}
        self._roof_share = {level.id: self._share_of_roof(level.id) for level in self._levels}
        self.uncounted = grouping.total(self._uncounted) > 0
        self._tensor = self._mean(m.tensor_active)
        with np.errstate(divide="ignore", invalid="ignore"):
            self._launching = grouping.total(self._latency * m.invocations) / self._seconds

    def _of(self, grouping: Grouping) -> Verdicts:
        """The same launches in other rows."""
        other = Verdicts.__new__(Verdicts)
        names = ("_m", "_units", "_spec", "_weights", "_levels", "_demands", "_bandwidth", "_latency", "_uncounted", "_short")
        vars(other).update({name: getattr(self, name) for name in names})
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
            needed = self._of(self._only(np.isfinite(known)))._arithmetic()
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
        rows = self._grouping.count
        facts = (
            self._limits(),
            self._states(),
            self._arithmetic(),
            [partial(self._amounts, row) for row in range(rows)],
            *self._looked_at(),
            self.uncounted.tolist(),
            self._without_roof(),
            self._missing(),
            self._too_short(),
        )
        return [Case(*fact) for fact in zip(*facts, repeat(None, rows), repeat(1.0, rows), strict=True)]

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

    def _share_of_roof(self, level: str) -> FloatArray:
        if level not in self._bandwidth:
            return np.full(self._grouping.count, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._rate[level] / self._mean(self._bandwidth[level].value)

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
        """What could be full, row by row; a lower bound only where nothing better is known of the same."""
        rows: list[list[Limit]] = [[] for _ in range(self._grouping.count)]
        for level in self._levels:
            limit = Limit("memory", level.id, level.label, 0.0, True, "", False)
            self._add(rows, limit, self._roof_share[level.id], self._partial(self._m.traffic, level.id))
        levels = {level.id: level.label for level in self._levels}
        for unit in self._units.units:
            if unit.id in self._busy:
                identifier = unit.level if unit.level in levels else unit.id
                limit = Limit(unit.kind, identifier, levels.get(unit.level, unit.label), 0.0, False, "", False)
                share = self._busy[unit.id] - (GROUP_LESS if unit.group else 0.0)
                lower, of_active = self._partial(self._m.units, unit.id), self._of_active(unit.id)
                self._add(rows, limit, np.where(of_active, np.nan, share), lower)
                self._add(rows, limit._replace(detail=PEAK_OF_ACTIVE), np.where(of_active, share, np.nan), lower)
        for pipe in dict.fromkeys(pipe for demand in self._demands for pipe in demand.pipe):
            self._add_pipe(rows, pipe)
        for limits in rows:
            whole = {limit.id for limit in limits if not limit.lower}
            limits[:] = [limit for limit in limits if not (limit.lower and limit.id in whole)]
        return rows

    @staticmethod
    def _add(rows: list[list[Limit]], limit: Limit, shares: FloatArray, lower: Mask) -> None:
        for row in np.flatnonzero(shares > 0):
            rows[row].append(limit._replace(fraction=float(shares[row]), lower=bool(lower[row])))

    def _partial(self, quantities: Mapping[str, Quantity], name: str) -> Mask:
        """Rows of which some launch has but a lower bound of it."""
        quantity = quantities.get(name, Quantity.missing(len(self._m)))
        return self._any(quantity.is_lower_bound())

    def _of_active(self, unit: str) -> Mask:
        """Rows of which some launch has the share of a unit in active cycles only."""
        quantity = self._m.units[unit]
        noted = np.array([origin.note == OF_ACTIVE for origin in quantity.origins] + [False])
        return self._any(noted[quantity.choice])

    def _any(self, launches: Any) -> Mask:
        return self._grouping.total(launches.astype(np.float64)) > 0

    def _looked_at(self) -> tuple[list[list[str]], list[list[str]]]:
        """What of the way to memory, and of the SMs, nobody looked at in each row, and what was counted in part, by label."""
        nothing = np.full(self._grouping.count, np.nan)
        unseen, partly = ([list[str]() for _ in nothing] for _ in range(2))
        memory = np.isfinite(self._busy.get(_GROUP_MEMORY, nothing))
        for level in sorted((level for level in self._levels if level.chain), key=lambda level: -level.order):
            units = [unit.id for unit in self._units.units if unit.level == level.id and unit.id in self._busy]
            shares = [(self._roof_share[level.id], self._partial(self._m.traffic, level.id))]
            shares += [(self._busy[unit], self._partial(self._m.units, unit)) for unit in units]
            some = np.any([np.isfinite(share) for share, _ in shares], axis=0) | memory
            whole = np.any([np.isfinite(share) & ~lower for share, lower in shares], axis=0) | memory
            for row in np.flatnonzero(~whole):
                roofless = ROOF_OF if np.isfinite(self._rate[level.id][row]) and not some[row] else ""
                (partly if some[row] else unseen)[row].append(roofless + (level.short or level.label))
        inside = [np.isfinite(share) for unit, share in self._busy.items() if unit in self._inside]
        counted = [self._any(np.isfinite(quantity.values)) for quantity in self._m.work.values()]
        for row in np.flatnonzero(~np.any([*inside, *counted, np.zeros(len(nothing), dtype=bool)], axis=0)):
            unseen[row].append("compute units")
        return unseen, partly

    @cached_property
    def _inside(self) -> frozenset[str]:
        """Units that compute."""
        return frozenset(unit.id for unit in self._units.units if unit.kind == "compute")

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

    def _arithmetic(self) -> list[Arithmetic]:
        """What the work of each row needs at its compute roofs, without what is drawn on request only, as indices are."""
        m, total = self._m, self._grouping.total
        mine = [demand for demand in self._demands if not demand.precision.on_request]
        if not mine:
            return [NO_ARITHMETIC] * self._grouping.count
        counted = np.any([np.isfinite(demand.work) for demand in mine], axis=0)
        lower = np.any([m.work[name].is_lower_bound() for d in mine if (name := d.precision.id) in m.work], axis=0)
        needed = np.max([total(values) for values in by_pipe(mine, len(m)).values()], axis=0)  # NaN: some work has no roof
        largest = np.argmax([total(np.nan_to_num(demand.seconds)) for demand in mine], axis=0)
        works = np.array([total(np.nan_to_num(demand.work)) for demand in mine])
        units = np.array([demand.precision.unit for demand in mine])
        work = np.array([works[units == units[most], row].sum() for row, most in enumerate(largest)])
        with np.errstate(divide="ignore", invalid="ignore"):
            seconds = total(np.where(counted, np.nan_to_num(m.seconds), 0.0))
            headroom = np.where((work > 0) & ~self._any(lower), seconds / needed, np.nan)
            ridges = {level.id: self._ridge(level.id, counted, work, work / needed) for level in self._levels}
        return [
            Arithmetic(
                float(headroom[row]),
                mine[most].precision.roof_label(),
                {
                    level: (float(here[row]), float(ridge[row]), UNITS[f"{mine[most].precision.unit}/byte"].symbol)
                    for level, (here, ridge) in ridges.items()
                    if here[row] > 0 and ridge[row] > 0
                },
            )
            for row, most in enumerate(largest.tolist())
        ]

    def _ridge(self, level: str, counted: Mask, work: FloatArray, peak: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Intensity of each row at a level, and the ridge point there; NaN where unknown."""
        nothing = np.full(self._grouping.count, np.nan)
        if level not in self._m.traffic or level not in self._bandwidth:
            return nothing, nothing
        moved = self._m.traffic[level]
        traffic = np.where(counted & ~moved.is_lower_bound(), moved.values, np.nan)
        lacking = self._any(np.isnan(traffic) & counted)
        intensity = np.where(lacking, np.nan, work / self._grouping.total(np.nan_to_num(traffic)))
        return intensity, peak / self._mean(self._bandwidth[level].value)

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
                detail = of_mix(float(slower[row]), demand.precision.counts_instructions)
                limit = Limit("compute", demand.roof_id, demand.precision.roof_label(), share, True, detail, False)
                rows[row].append(limit)

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
        gauges = [self._gauges[name] for name in _STATE]
        known = (self._tensor, *gauges, self._launching, *(self._gauges[name] for name in _ACTIVE))
        return [State(*row) for row in zip(*(values.tolist() for values in known), strict=True)]


def bounds_of(verdicts: Iterable[tuple[str, str]]) -> list[str]:
    """The id of what limits each row, "" if nothing does, from text and nearest known limit of its verdict."""
    return [limit if ": " in text else "" for text, limit in verdicts]
