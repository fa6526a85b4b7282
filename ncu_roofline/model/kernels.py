"""The kernels frame: every launch or group with its time, its use of the hardware and the verdict, also without any chart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from ncu_roofline.chips import Spec, load_units, verdict
from ncu_roofline.chips.formulas import OF_ACTIVE
from ncu_roofline.model.columns import KERNELS, LEVELS_WITH_COLUMNS
from ncu_roofline.model.measurements import Columns, FloatArray, Mask, Measurements, Quantity, TextArray, objects
from ncu_roofline.model.plausible import disbelieved
from ncu_roofline.model.points import LOW_CLOCK, Roofs, above_bandwidths
from ncu_roofline.model.selection import Grouping, kernel_keys, where
from ncu_roofline.model.work import NO_ARITHMETIC, TOLD, Demand, demands, total_flops, uncounted_tensor

Table = dict[str, Any]
Known = tuple[list[Demand], FloatArray, Mask]  # of launches: demands, launch latency, whether tensor work was not counted
_COLUMNS = {column.name for column in KERNELS}
_STATE = ("occupancy", "occupancy_theoretical", "eligible_warps", "waves")
_ACTIVE = ("active_avg", "active_min", "active_max")
_PROVING = ("data_pipe", "writeback", "bank_reads", "bank_writes", "requests", "lanes")
_GROUP_SM = "sm"  # the unit whose share says how busy the inside of the SMs was


class Everything(NamedTuple):
    """What the reports hold of a GPU, selected or not."""

    device: str
    kernels: int
    launches: int
    seconds: float


def everything_of(m: Measurements, selected: Measurements) -> tuple[Everything, ...]:
    """What there is on each GPU, () where everything is selected."""
    if len(selected) == len(m):
        return ()
    kernels, found = set(kernel_keys(m)), []
    seconds = np.where((m.seconds > 0) & ~m.rates, m.seconds, 0.0)
    for device in dict.fromkeys(m.device.tolist()):
        here, members = m.device == device, sum(key[2] == device for key in kernels)
        found.append(Everything(device, members, int(m.invocations[here].sum()), float(seconds[here].sum())))
    return tuple(found)


def kernels_table(
    m: Measurements,
    grouping: Grouping,
    spec: Spec,
    levels: tuple[str, ...],
    verdicts: Verdicts,
    everything: Sequence[Everything] = (),
) -> Table:
    """Columns of the kernels frame (`columns.KERNELS`); shares are of the time of ``everything`` if that is given."""
    first, labels, whole = grouping.first, np.array(grouping.label, dtype=object), grouping.by == "application"
    seconds = np.where(grouping.any(m.rates), np.nan, grouping.sum_known(m.seconds))
    devices = set(m.device)
    total = sum(one.seconds for one in everything if one.device in devices) or np.nansum(seconds)
    clock, clock_max = grouping.mean(m.clock, m.seconds), m.clock_max[first]
    judged, available = verdicts.table(), availability_of(m, grouping, spec, levels, verdicts.uncounted)
    work = grouping.sum_known(np.where(m.rates, np.nan, total_flops(m)))
    work = np.where(verdicts.uncounted & ~(work > 0), np.nan, work)  # zero of what was counted is not zero in all
    launches = grouping.total(m.invocations.astype(np.float64))
    recoverable = judged["judged_seconds"] * (1 - 1 / np.asarray(judged["headroom"], dtype=np.float64))
    shares, rates = ({level: judged[f"{kind}_{level}"] for level in LEVELS_WITH_COLUMNS} for kind in ("fraction", "bandwidth"))
    # A warning where tensor cores worked but nobody counted what: the kernel's performance is then incomplete.
    active = grouping.mean(np.where(verdicts.uncounted_launches, m.tensor_active, np.nan), m.seconds).tolist()
    busy = [f" in {verdict.as_percent(share)} of the cycles" if math.isfinite(share) else "" for share in active]
    text = "tensor cores were busy{} but their FLOPs were not collected: the work is incomplete"
    tensor = [text.format(share) if row else "" for row, share in zip(verdicts.uncounted, busy, strict=True)]
    notes = (
        remarks_of(m, grouping),
        _contradictions(m, grouping, spec),
        above_bandwidths(shares, rates, seconds / launches, clock / clock_max),
        [LOW_CLOCK if one < verdict.CLOCK_WARNING else "" for one in clock / clock_max],
        available.pop("zero_so_far"),
        tensor,
        available.pop("caveats"),
    )
    return {
        **where(m, grouping),
        "name": labels if whole else m.name[first],
        "kind": np.full(len(first), "application", dtype=object) if whole else m.kind[first],
        "launches": launches.astype(np.int64),
        "untimed": grouping.total(np.where(np.isfinite(m.seconds) & ~m.rates, 0.0, m.invocations)).astype(np.int64),
        "grid": grouping.common(m.grid),
        "block": grouping.common(m.block),
        "nvtx": grouping.common(m.nvtx),
        "ncu_version": m.ncu_version[first],
        "seconds": seconds,
        "time_share": seconds / total if total > 0 else np.full(len(first), np.nan),
        "work": work,
        "clock_profiled": clock,
        "clock_max": clock_max,
        "clock_ratio": clock / clock_max,
        **judged,
        "recoverable": np.where(judged["judged_seconds"] > 0, recoverable, np.nan),
        **available,
        "notes": objects(["; ".join(filter(None, texts)) for texts in zip(*notes, strict=True)]),
    }


def remarks_of(m: Measurements, grouping: Grouping) -> list[str]:
    return _each_once(grouping, ((launch, str(m.remarks[launch])) for launch in np.flatnonzero(m.remarks != "").tolist()))


def _each_once(grouping: Grouping, texts: Iterable[tuple[int, str]]) -> list[str]:
    found: list[dict[str, None]] = [{} for _ in range(grouping.count)]
    for launch, text in texts:
        found[grouping.index[launch]][text] = None
    return ["; ".join(filter(None, one)) for one in found]


def _contradictions(m: Measurements, grouping: Grouping, spec: Spec) -> list[str]:
    """Work of 0 where opcodes or counters say something else: no point tells it."""
    found: list[tuple[int, str]] = []
    for precision in m.precisions(spec):
        quantity, told = m.work.get(precision.id, Quantity.missing(0)), []
        for origin in quantity.origins:
            said = next((one for one in origin.note.split("; ") if one.startswith((TOLD, NO_ARITHMETIC))), "")
            told.append(f"{precision.label}: {said}" if said == NO_ARITHMETIC else said)
        if any(told):
            rows = np.flatnonzero((quantity.values == 0) & (quantity.choice >= 0)).tolist()
            found += [(launch, told[quantity.choice[launch]]) for launch in rows]
    return _each_once(grouping, found)


def availability_of(m: Measurements, grouping: Grouping, spec: Spec, levels: tuple[str, ...], uncounted: Mask) -> Table:
    """Which rows have which numbers, from any of their launches: why they have points or none, and what they lack."""
    nothing = np.zeros(grouping.count, dtype=bool)
    chips = m.by_gpu(lambda _, capability: spec.read_as(capability))[grouping.first]
    chip_known = np.array([chip is not None for chip in chips], dtype=bool)
    time = grouping.any(np.isfinite(m.seconds))
    foreign = (disbelieved(m)[grouping.first] != "") & ~time
    works = {name: grouping.any(np.isfinite(quantity.values)) for name, quantity in m.work.items()}
    traffics = {name: grouping.any(np.isfinite(m.traffic[name].values)) for name in levels if name in m.traffic}
    core = {name: works.get(name, nothing) for name in spec.core}
    inner = {name: traffics.get(name, nothing) for name in spec.chain if name in levels}
    idle = ~np.any([nothing, *(grouping.sum_known(quantity.values) > 0 for quantity in m.work.values())], axis=0)
    reasons = {
        "foreign": foreign,
        "unknown-chip": ~chip_known & idle,
        "no-time": ~time,
        "tensor-unknown": idle & uncounted,
        # Zero in the precisions collected is zero work only if all of them were.
        "no-work-metrics": idle & ~(np.all(list(core.values()), axis=0) & chip_known),
        "zero-flop": idle,
        "no-traffic-metrics": ~np.any([nothing, *traffics.values()], axis=0),
    }
    missing, zero_so_far = [], []
    for row, has in enumerate(np.vstack([*core.values(), *inner.values()]).T.tolist()):
        lacking = [name for name, there in zip((*core, *inner), has, strict=True) if not there]
        # Of a chip that nobody knows, and of other tools' files, there is no telling what could be collected; what is not
        # believed was.
        chip = None if foreign[row] else chips[row]
        missing.append(" ".join(name for name in lacking if chip is not None and name not in chip.lacks))
        present = [name for name, there in zip(core, has, strict=False) if there]
        absent = ", ".join(name for name in core if name not in present)
        some = idle[row] and present and absent
        zero_so_far.append(f"no {', '.join(present)} work; {absent} not collected" if some else "")
    return {
        "status": np.select(list(reasons.values()), list(reasons), default="ok").astype(object),
        "missing": objects(missing),
        "zero_so_far": zero_so_far,
        "caveats": [chip.caveat if chip else "" for chip in chips],  # with every number of a chip whose counters are unproven
    }


class Verdicts:
    """What the kernels frame says of the hardware's use, row by row; shares are means over the launches, weighted by time."""

    def __init__(self, m: Measurements, grouping: Grouping, spec: Spec, roofs: Roofs, known: Known | None = None) -> None:
        """``known``: what another one has worked out of the launches already."""
        self._m, self._grouping, self._spec, self._roofs = m, grouping, spec, roofs
        self._units, self._levels, self._time = load_units(), m.levels(spec), np.nan_to_num(m.seconds)
        self._known = known or (demands(m, spec, roofs.compute()), roofs.launch_latency(), uncounted_tensor(m, spec))
        self._demands, latency, self.uncounted_launches = self._known
        nothing, self._joined = np.full(grouping.count, np.nan), len(grouping.index) > grouping.count

        def mean(values: FloatArray) -> FloatArray:
            return grouping.mean(values, m.seconds)

        self._seconds = seconds = grouping.total(self._time)
        self._busy = {unit.id: mean(m.units[unit.id].values) for unit in self._units.units if unit.id in m.units}
        self._gauges = {
            name: mean(m.values(m.gauges, name)) for name in (*(gauge.id for gauge in self._units.gauges), *_ACTIVE)
        }
        self._rate = {}
        for level in (level.id for level in self._levels):  # bytes per second: counted, else a share of the roof
            moved, share = m.values(m.traffic, level), m.values(m.shares, level)
            rate = Columns.first_known(np.where(m.rates, moved, moved / m.seconds), share * m.values(m.bandwidth, level))
            self._rate[level] = mean(rate)
        self._roof = {name: mean(roof.value) for name, roof in roofs.bandwidth().items()}
        self._roof_share = {name: rate / self._roof.get(name, nothing) for name, rate in self._rate.items()}
        self.uncounted = grouping.any(self.uncounted_launches)
        self._tensor = mean(m.tensor_active)
        self._launching = grouping.total(latency * m.invocations) / seconds
        # Seconds of a launch where most of the time of a row is in launches that are too short to be judged, else None.
        short = (m.seconds < verdict.SHORT_LAUNCH * m.invocations) & ~m.rates
        self._short_seconds = grouping.total(np.where(short, self._time, 0.0))
        launches = grouping.total(np.where(np.isfinite(m.seconds), m.invocations, 0.0))
        facts = zip(self._short_seconds > seconds / 2, seconds / launches, strict=True)
        self._short = [float(each) if mostly else None for mostly, each in facts]

    def table(self) -> Table:
        nothing, busy = np.full(self._grouping.count, np.nan), self._busy
        units = [unit for unit in self._units.units if unit.id in busy]
        # A named part of the hardware rather than the group that contains it.
        less = [verdict.GROUP_LESS if unit.group else 0.0 for unit in units]
        shares = np.array([np.nan_to_num(busy[unit.id], nan=-1.0) - part for unit, part in zip(units, less, strict=True)])
        places = enumerate(shares.argmax(axis=0) if units else ())
        busiest = [(units[one].label, float(busy[units[one].id][row])) for row, one in places]
        parts = [busy[unit.id] for unit in units if unit.kind == "compute"]  # where the group's own share is not known
        level_share = {name: self._roof_share.get(name, nothing) for name in LEVELS_WITH_COLUMNS}
        for unit in units:  # by hardware where bytes or roof are unknown
            if unit.level in level_share:
                level_share[unit.level] = Columns.first_known(level_share[unit.level], busy[unit.id])
        said = {name: [getattr(one, name) for one in self._verdicts] for name in verdict.Verdict._fields}
        said |= {"verdict": said["text"], "limit_fraction": said["fraction"], "speedup": said["headroom"]}
        said |= {"headroom_or_less": list(map(int, said["or_less"])), "headroom_without_waste": said["without_waste"]}
        return {
            **said,
            "judged_seconds": self._judged_seconds(),
            "short_seconds": self._short_seconds,
            "busiest_unit": [name if share > 0 else "" for name, share in busiest] or [""] * len(nothing),
            "busiest_fraction": [share for _, share in busiest] or nothing,
            **{f"bandwidth_{name}": self._rate.get(name, nothing) for name in LEVELS_WITH_COLUMNS},
            **{f"fraction_{name}": share for name, share in level_share.items()},
            "fraction_sm": Columns.first_known(busy.get(_GROUP_SM, nothing), np.fmax.reduce(parts) if parts else nothing),
            "issue_fraction": busy.get("issue", nothing),
            "tensor_active": self._tensor,
            "sm_active": self._gauges[_ACTIVE[0]],
            **{name: values for name, values in self._gauges.items() if name in _COLUMNS},
        }

    def bounds(self) -> TextArray:
        """For each launch the id of what limits its row by the verdict, "" if nothing does."""
        return objects(bounds_of((one.text, one.limit) for one in self._verdicts))[self._grouping.index]

    @cached_property
    def _verdicts(self) -> list[verdict.Verdict]:
        """Of a row with several launches the verdict that most of its time has, and the headroom of all that have one."""
        cases = self._cases(self._rows)
        if self._joined:
            speaking, known = self._spread
            said = self._cases(self._rows_of(speaking))
            needed = [verdict.arithmetic_of(row) for row in self._rows_of(np.isfinite(known))]
            parts = self._grouping.total(np.where(speaking, self._time, 0.0)) / self._seconds
            headroom = self._judged_seconds() / self._grouping.total(np.nan_to_num(self._m.seconds / known))
            several = np.bincount(self._grouping.index, minlength=len(cases)) > 1
            for row in np.flatnonzero(several).tolist():
                part = float(parts[row]) if math.isfinite(parts[row]) else 1.0
                case = said[row]._replace(short=cases[row].short, arithmetic=needed[row])
                cases[row] = case._replace(headroom=float(headroom[row]), part=part)
        return [verdict.judge(case) for case in cases]

    @cached_property
    def _spread(self) -> tuple[Mask, FloatArray]:
        """Which launches have the verdict that most of the time of their row has, and the headroom of each (NaN: unknown)."""
        index, launches, times = self._grouping.index, np.arange(len(self._m)), self._time.tolist()
        alone = replace(self._grouping, by="launch", index=launches, first=launches, label=("",) * len(launches))
        verdicts = [verdict.judge(case) for case in self._cases(self._of(alone)._rows)]
        keys = [(one.text, one.limit if ": " in one.text else "") for one in verdicts]
        mostly_short = np.array([short is not None for short in self._short])[index]
        seconds: dict[int, dict[tuple[str, str], float]] = {row: {} for row in range(self._grouping.count)}
        for row, short, key, time in zip(index.tolist(), mostly_short, keys, times, strict=True):
            if short or key[0] != verdict.TOO_SHORT:
                seconds[row][key] = seconds[row].get(key, 0.0) + time
        most = [max(of_row, key=of_row.__getitem__, default=None) for of_row in seconds.values()]
        speaking = mostly_short | np.array([most[row] == key for row, key in zip(index, keys, strict=True)], dtype=bool)
        headroom = np.array([one.headroom for one in verdicts])
        told = self._grouping.any(speaking & np.isfinite(headroom))
        return speaking, np.where(told[index] & ~mostly_short, headroom, np.nan)

    def _judged_seconds(self) -> FloatArray:
        """Run time of the launches that have a headroom, row by row."""
        if not self._joined:
            return np.where([math.isfinite(one.headroom) for one in self._verdicts], self._seconds, 0.0)
        return self._grouping.total(np.where(np.isfinite(self._spread[1]), self._time, 0.0))

    def _rows_of(self, launches: Mask) -> list[verdict.Row]:
        """Rows of these launches alone; one more row, the last, has the others."""
        one = self._grouping
        index = np.where(launches, one.index, one.count)
        return self._of(replace(one, index=index, first=np.append(one.first, 0), label=(*one.label, "")))._rows

    def _of(self, grouping: Grouping) -> Verdicts:
        return Verdicts(self._m, grouping, self._spec, self._roofs, self._known)

    def _cases(self, rows: Sequence[verdict.Row]) -> list[verdict.Case]:
        return [verdict.case_of(row, self._levels, self._units.units) for row in rows]

    @property
    def _rows(self) -> list[verdict.Row]:
        m, grouping = self._m, self._grouping
        foreign = disbelieved(m)[grouping.first]
        known = m.by_gpu(lambda _, capability: self._spec.read_as(capability) is not None)
        gauges = (self._tensor, *(self._gauges[name] for name in _STATE), self._launching)
        states = (*gauges, *(self._gauges[name] for name in _ACTIVE))
        # How busy which unit was in each row; of some launch it may be but a lower bound, or of active cycles.
        shares: list[dict[str, verdict.Share]] = [{} for _ in range(grouping.count)]
        for unit, share in self._busy.items():
            quantity = m.units[unit]
            doubts = (quantity.is_lower_bound(), quantity.has_origin(lambda origin: origin.note == OF_ACTIVE))
            for row, *fact in zip(shares, share.tolist(), *(grouping.any(doubt).tolist() for doubt in doubts), strict=True):
                if math.isfinite(fact[0]):
                    row[unit] = verdict.Share(*fact)
        rows = map(
            verdict.Row,
            self._reached(),
            shares,
            *self._asked(),
            grouping.any(m.known(m.work)).tolist(),
            map(verdict.State, *(one.tolist() for one in states)),
            (partial(self._amounts, row) for row in range(grouping.count)),  # worked out where it is asked for
            self.uncounted.tolist(),
            known[grouping.first],
            np.where(self._seconds > 0, "", np.where(foreign != "", foreign, verdict.NO_TIME)).tolist(),
            self._short,
        )
        return list(rows)

    def _amounts(self, row: int) -> dict[str, float]:
        """What was counted of a row that can prove waste, by name."""
        return {name: float(values[row]) for name, values in self._proofs.items()}

    def _reached(self) -> list[tuple[verdict.Reached, ...]]:
        m, grouping = self._m, self._grouping
        works = [np.isfinite(demand.work) for demand in self._demands if not demand.precision.on_request]
        counted = np.any([np.zeros(len(m), dtype=bool), *works], axis=0) & (self._time > 0)
        columns = []
        for level in self._levels:
            moved = m.traffic.get(level.id, Quantity.missing(len(m)))
            lower = moved.is_lower_bound()
            whole = np.where(counted & ~lower, moved.values, np.nan)
            traffic = np.where(grouping.any(np.isnan(whole) & counted), np.nan, grouping.total(np.nan_to_num(whole)))
            numbers = (self._rate[level.id], self._roof_share[level.id], grouping.any(lower), traffic)
            facts = (*numbers, self._roof.get(level.id, np.full(grouping.count, np.nan)))
            columns.append([verdict.Reached(level, *fact) for fact in zip(*(one.tolist() for one in facts), strict=True)])
        return list(zip(*columns, strict=True))

    def _asked(self) -> tuple[list[list[verdict.Asked]], list[dict[str, float]], list[bool]]:
        m, total, first = self._m, self._grouping.total, self._grouping.first
        rows: list[list[verdict.Asked]] = [[] for _ in first]
        nothing = np.zeros(len(m), dtype=bool)
        counted, lower = {"": nothing}, nothing
        for demand in self._demands:
            precision, known = demand.precision, np.isfinite(demand.work)
            for pipe in dict.fromkeys(demand.pipe):
                counted[pipe] = counted.get(pipe, nothing) | (known & (demand.pipe == pipe))
            if not precision.on_request:
                counted[""] = counted[""] | known
                lower = lower | (m.work[precision.id].is_lower_bound() if precision.id in m.work else nothing)
            roofless = np.where(np.isnan(demand.seconds) & (demand.work > 0), demand.work, 0.0)
            sums = (demand.work, roofless, demand.seconds, demand.mix_seconds)  # where the time is known, as of seconds
            timed = [np.where(self._time > 0, np.nan_to_num(one), 0.0) for one in sums]
            for row, fact in enumerate(zip(*(total(one).tolist() for one in timed), strict=True)):
                if fact[0] > 0:
                    rows[row].append(verdict.Asked(precision, demand.pipe[first[row]], *fact))
        seconds = [total(np.where(here, self._time, 0.0)).tolist() for here in counted.values()]
        by_pipe = [dict(zip(counted, row, strict=True)) for row in zip(*seconds, strict=True)]
        return rows, by_pipe, self._grouping.any(lower).tolist()

    @cached_property
    def _proofs(self) -> Mapping[str, FloatArray]:
        m, grouping, nearest = self._m, self._grouping, self._spec.chain[0]
        counts = {count.id for count in self._units.counts}
        means = {name: m.gauges[name] for name in _PROVING if name in m.gauges and name not in counts}
        found = {name: grouping.mean(one.values, m.seconds) for name, one in means.items()}
        summed = {name: one for name, one in m.gauges.items() if name in counts}
        summed |= {nearest: m.traffic[nearest]} if nearest in m.traffic else {}
        for name, one in summed.items():  # over the launches of each row, NaN where some lack it
            lacking = grouping.any(~np.isfinite(one.values))
            found[name] = np.where(lacking, np.nan, grouping.total(np.nan_to_num(one.values)))
        return found


def bounds_of(verdicts: Iterable[tuple[str, str]]) -> list[str]:
    """The id of what limits each row, "" if nothing does, from text and nearest known limit of its verdict."""
    return [limit if ": " in text else "" for text, limit in verdicts]
