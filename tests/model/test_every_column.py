"""Every column of the frames, recomputed from raw metrics of made-up and real launches by formulas that stand here alone."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import pandas as pd
import pytest

from ncu_roofline import read_report, roofline
from ncu_roofline.model import Roofline, columns
from tests.cli.command import Command
from tests.cli.test_ceilings import ceiling, document, write
from tests.factory import A100, Metrics, kernel, report
from tests.facts.stated import toml
from tests.sectionfile import section_factory as made_section
from tests.sectionfile.section_factory import chart, per_second, point, roof, section

NAN, ELAPSED = math.nan, ".avg.pct_of_peak_sustained_elapsed"
PATCHED = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
OPS = ("add", "mul", "fma")
STATED = toml(Path(__file__).parent / "cases.toml")["columns"]
CORE, LEVELS, SHEETS, UNITS, GAUGES = (STATED[name] for name in ("precisions", "levels", "sheets", "units", "gauges"))
CHAIN = ("l1", "l2", "dram")
A40: Metrics = {**A100, "device__attribute_display_name": "NVIDIA A40", "device__attribute_compute_capability_minor": 6}
DEVICES = {"8.0": A100, "8.6": A40}
TOLD = ("less than 90 % of the maximum clock", "some launches lack the metrics", "above its roof:", "own chart Test")


@dataclass
class Launch:
    """What metrics say of a launch, NaN where they don't; clocks and ``roofs`` (used, theoretical) once its GPU is known."""

    place: int
    name: str
    metrics: Mapping[str, Any]
    seconds: float = NAN
    clock: float = NAN
    work: dict[str, tuple[float, float]] = field(default_factory=dict)  # operations, and those of fused instructions
    traffic: dict[str, float] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)  # the metrics of traffic
    charted: bool = False
    reached: bool = False  # the roof of DRAM by bytes and their share
    weight: float = 1.0  # in means: seconds, where rows are of several launches
    roofs: dict[str, tuple[float, float]] = field(default_factory=dict)
    drawn: dict[str, float] = field(default_factory=dict)  # as measured

    def get(self, name: str) -> float:
        return float(self.metrics.get(name, NAN))

    def attribute(self, name: str) -> float:
        return self.get(f"device__attribute_{name}")

    def counted(self, metric: str) -> float:
        """A count over the launch, from its sum or its rates."""
        counter = metric.removesuffix(".sum")
        cycles = self.get(f"{counter.partition('__')[0]}__cycles_elapsed.avg.per_second")
        forms = ((".sum", 1.0), (".sum.per_second", self.seconds), (".sum.per_cycle_elapsed", self.seconds * cycles))
        return next((self.get(counter + form) * factor for form, factor in forms if counter + form in self.metrics), NAN)

    def read(self) -> Launch:
        self.seconds = self.get("gpu__time_duration.sum") * 1e-9
        self.clock = self.get("sm__cycles_elapsed.avg.per_second")
        for precision, (letter, each) in CORE.items():
            adds, muls, fmas = (self.counted(PATCHED.format(letter + op)) for op in ("add", "mul", "fma"))
            if (operations := each * (adds + muls + 2 * fmas)) == operations:
                self.work[precision] = operations, 2 * each * fmas
        if VENDOR in self.metrics and self.timed:
            self.work["fp64"], self.charted = (self.get(VENDOR) * self.seconds, NAN), True
        for level, (metric, each, _) in LEVELS.items():
            if (moved := each * self.counted(metric)) == moved:
                self.traffic[level] = moved
                self.named[level] = metric if metric in self.metrics else f"{metric}.per_second"
        return self

    @property
    def timed(self) -> bool:
        return self.seconds == self.seconds

    @property
    def label(self) -> str:
        return self.name.partition("<")[0].removeprefix("void ")

    @property
    def chip(self) -> str:
        return f"{self.attribute('compute_capability_major'):.0f}.{self.attribute('compute_capability_minor'):.0f}"

    @property
    def clock_max(self) -> float:
        return self.attribute("max_gpu_frequency_khz") * 1e3

    def pipe(self, precision: str) -> str:
        return "fp32" if (precision, self.chip) == ("fp16", "8.6") else precision

    def slots(self, precision: str) -> float:
        """Operations that would take as long: one that is not fused takes the time of two."""
        work, fused = self.work.get(precision, (0.0, 0.0))
        return 2 * work - fused if fused == fused else work

    def used(self) -> list[str]:
        return [one for one, (work, _) in self.work.items() if work > 0]

    def mix(self) -> None:
        """Work of several precisions together, where the second has a hundredth or more of the first."""
        used, sums = self.used(), sorted((work for work, _ in self.work.values()), reverse=True)
        if len(used) > 1 and sums[1] >= 0.01 * sum(sums):
            both = [sum(sums) / max(self.at(used, way).values()) for way in (0, 1)]
            self.roofs["mixed"], self.work["mixed"] = (both[0], both[1]), (sum(sums), NAN)

    def at(self, used: Sequence[str], way: int = 0) -> dict[str, float]:
        pipes = dict.fromkeys(map(self.pipe, used), 0.0)
        for one in used:
            pipes[self.pipe(one)] += self.work[one][0] / self.roofs[one][way]
        return pipes

    def busiest(self) -> str:
        """Of the fullest pipe the precision that needs most of it."""
        used = [one for one in self.used() if one != "mixed"]
        pipes = self.at(used)
        return max(used, key=lambda one: (pipes[self.pipe(one)], self.work[one][0] / self.roofs[one][0]))


def mean(group: Iterable[Launch], value: Callable[[Launch], float]) -> float:
    """Over launches of which it is known, and their time."""
    known = [(number, one.weight) for one in group if (number := value(one)) == number and one.weight == one.weight]
    return sum(v * s for v, s in known) / sum(s for _, s in known) if known else NAN


def total(group: Iterable[Launch]) -> float:
    """Seconds."""
    return sum(one.seconds for one in group if one.timed)


def stand(launches: Sequence[Launch], measured: Mapping[str, float] | None = None, clock: str = "profiled") -> None:
    """Clocks and roofs of launches on one GPU; launches below 20 us have the clocks of the longer ones."""

    def trusted(name: str) -> list[float]:
        own = [one.get(f"{name}__cycles_elapsed.avg.per_second") for one in launches]
        long = [replace(one, weight=one.seconds) for one in launches if not one.seconds < 20e-6]
        others = mean(long, lambda one: one.get(f"{name}__cycles_elapsed.avg.per_second"))
        return [others if one.seconds < 20e-6 and value == value else value for value, one in zip(own, launches, strict=True)]

    for one, sm, l2, memory in zip(launches, trusted("sm"), trusted("lts"), trusted("dram"), strict=True):
        one.clock, sms = sm, one.attribute("multiprocessor_count")
        core = sm if sm == sm else one.clock_max
        bits, highest = one.attribute("global_memory_bus_width"), one.attribute("max_mem_frequency_khz") * 1e3
        each = {"l2": 80 * (l2 if l2 == l2 else core), "dram": bits * (memory if memory == memory else highest)}
        # Boards run their memory below its highest clock: of long launches bytes and the share of the peak tell the peak.
        busy = one.get(f"dram__cycles_active{ELAPSED}") / 100
        if memory != memory and "dram" in one.traffic and one.seconds >= 20e-6 and busy >= 0.01:
            each["dram"], one.reached = one.traffic["dram"] / one.seconds / busy / SHEETS[one.chip]["dram"], True
        faster = one.clock_max / sm if clock == "max" and sm == sm else 1.0
        for name, per_cycle in SHEETS[one.chip].items():
            peak = one.get(f"sm__sass_thread_inst_executed_op_{CORE.get(name, ('?',))[0]}fma_pred_on.sum.peak_sustained")
            theory = per_cycle * each.get(name, sms * core) if peak != peak else 2 * CORE[name][1] * peak * core
            used = theory = theory if name == "dram" else theory * faster
            if measured and name in measured:  # what is above theory at its clock was not measured right
                one.drawn[name] = measured[name] if name == "dram" or sm != sm else measured[name] / 1.41e9 * sm
                slower = memory / highest if name == "dram" and memory == memory else 1.0 if name == "dram" else faster
                used = one.drawn[name] if one.drawn[name] <= 1.05 * theory / slower else theory
            one.roofs[name] = used, theory
        one.mix()


# Points.


def points(label: str, group: list[Launch], by: str, path: str) -> list[dict[str, Any]]:
    rows = []
    for precision in (*CORE, "mixed"):
        found = {level: numbers(group, precision, level) for level in LEVELS}
        made = [row for row in found.values() if row["work"] > 0 and row["traffic"] > 0]
        for row in made:
            lowest = min(made, key=lambda other: other["attainable"])
            own = lowest["_longest"].busiest() if precision == "mixed" else precision
            row["binds"] = lowest["level"] if lowest["_memory"] else f"{own}.fma"
            row["binding_fraction"] = row["performance"] / lowest["attainable"]
            outer = CHAIN[CHAIN.index(row["level"]) + 1 :] if row["level"] in CHAIN else ()
            to = next((level for level in outer if found[level] in made), "")
            row |= {"locality_to": to, "locality": row["traffic"] / found[to]["traffic"] if to else NAN}
            rows.append({**row, **head(group, by, label, path)})
    return rows


def head(group: list[Launch], by: str, label: str, path: str) -> dict[str, Any]:
    first = group[0]
    device = {"device": first.metrics["device__attribute_display_name"], "compute_capability": first.chip}
    return {"report": path, "launch": first.place if by == "launch" else -1, "kernel": label, **device, "label": "", "step": -1}


def numbers(group: list[Launch], precision: str, level: str) -> dict[str, Any]:
    known = [one for one in group if precision in one.work and level in one.traffic and one.timed]
    longest = max(reversed(known), key=lambda one: one.seconds, default=group[0])
    work, fused = (sum(one.work[precision][part] for one in known) for part in (0, 1))
    moved, seconds = sum(one.traffic[level] for one in known), total(known)
    if not (work > 0 and moved > 0):
        return {"work": 0.0, "traffic": 0.0}
    peak, theory = (mean(known, lambda one, part=part: one.roofs[precision][part]) for part in (0, 1))
    slope, slope_theory = (mean(known, lambda one, part=part: one.roofs[level][part]) for part in (0, 1))
    intensity, performance = work / moved, work / seconds
    attainable, by_theory = min(peak, intensity * slope), min(theory, intensity * slope_theory)
    # Of instructions: a fused one does two operations.
    alpha = NAN if precision == "mixed" else (fused / 2) / (work - fused / 2)
    clock, memory = mean(known, lambda one: one.clock), intensity * slope < peak
    binding = longest.roofs[level if memory else longest.busiest() if precision == "mixed" else precision]
    coverage = seconds / total(group)
    charted = longest.charted and precision == "fp64"
    of_work = [VENDOR] if charted else [PATCHED.format(CORE.get(precision, "?")[0] + op) for op in OPS]
    above = performance > (1 + 1e-9) * min(one for one in (attainable, (1 + alpha) / 2 * peak, by_theory) if one == one)
    return {
        "precision": precision, "level": level, "launches": len(known), "work": work, "unit": "flop", "traffic": moved,
        "seconds": seconds, "intensity": intensity, "performance": performance, "bandwidth": moved / seconds,
        "attainable": attainable, "fraction": performance / attainable, "compute_roof": peak, "bandwidth_roof": slope,
        "fma_share": alpha, "mix_roof": (1 + alpha) / 2 * peak, "lanes": NAN, "attainable_theoretical": by_theory,
        "fraction_theoretical": performance / by_theory, "clock_profiled": clock, "clock_max": longest.clock_max,
        "clock_ratio": clock / longest.clock_max, "coverage": coverage, "_memory": memory, "_longest": longest,
        "roof_origin": "theoretical" if binding[0] == binding[1] else "measured",
        "source": "embedded" if charted else "binding",
        "metrics": None if precision == "mixed" else f"{', '.join(of_work)}; {longest.named[level]}",
        "notes": (clock < 0.9 * longest.clock_max, coverage < 1 - 1e-9, above, charted),
    }  # fmt: skip


# Kernels.


def limits(group: list[Launch]) -> list[tuple[str, str, str, float, bool]]:
    """All that can be full: kind, id, label, how full, whether it is a roof of the chart."""
    found = []
    for level, (_, _, label) in LEVELS.items():
        found.append(("memory", level, label, rate(group, level) / roof_of(group, level), True))
    for unit in units(group):
        name, label, kind, level = UNITS[unit]
        share = units(group)[unit] - (1e-6 if name == "sm" else 0.0)
        found.append((kind, level or name, LEVELS[level][2] if level else label, share, False))
    timed = [one for one in group if one.timed]
    for pipe in dict.fromkeys(map(group[0].pipe, CORE)):
        of_pipe = [p for p in CORE if group[0].pipe(p) == pipe]
        counted = [one for one in timed if one.work.keys() & set(of_pipe)]
        needs = {p: sum(one.slots(p) / one.roofs[p][0] for one in counted) for p in of_pipe}
        most = max(needs, key=lambda p: needs[p])
        share = sum(needs.values()) / total(counted) if counted else NAN
        found.append(("compute", f"{most}.fma", f"{most.upper()} FMA", share, True))
    return [limit for limit in found if limit[3] > 0]


def units(group: list[Launch]) -> dict[str, float]:
    shares = {unit: mean(group, lambda one, unit=unit: one.get(unit + ELAPSED) / 100) for unit in UNITS}
    return {unit: share for unit, share in shares.items() if share == share}


def rate(group: list[Launch], level: str) -> float:
    """Bytes per second, of DRAM by its share of the roof where nobody counted."""

    def of(one: Launch) -> float:
        by_share = one.get(f"dram__cycles_active{ELAPSED}") / 100 * one.roofs[level][1] if level == "dram" else NAN
        counted = one.traffic.get(level, NAN) / one.seconds
        return counted if counted == counted else by_share

    return mean(group, of)


def roof_of(group: list[Launch], level: str) -> float:
    return mean(group, lambda one: one.roofs[level][0])


def judged(group: list[Launch]) -> dict[str, Any]:
    """The verdict on launches, as if they were one, and its numbers."""
    found = {"verdict": "unknown", "limit": "", "limit_fraction": NAN, "headroom": NAN, "headroom_compute": NAN}
    every = limits(group)
    if not every:
        return found | {"headroom_or_less": 0}
    fullest = max(every, key=lambda limit: limit[3])
    # A roof rather than a unit where that is 90 % as full.
    roofs = [limit for limit in every if limit[4] and limit[3] >= 0.9 * fullest[3]]
    nearest = max(roofs or [fullest], key=lambda limit: limit[3])
    full, of_units = nearest[3] >= 0.6, {UNITS[unit][3] for unit in units(group)}
    unseen = {one for one in CHAIN if rate(group, one) != rate(group, one)} - of_units
    if not (any(one.work for one in group) or any(UNITS[unit][2] == "compute" for unit in units(group))):
        unseen |= {"compute"}
    timed = [one for one in group if one.timed]
    short, beyond = bool(timed) and total(timed) / len(timed) < 20e-6, fullest[3] > 1.2
    kind, limit, label, share, _ = fullest if not short and (beyond or not (full or unseen)) else nearest
    found |= {"limit": limit, "limit_fraction": share, "headroom_or_less": 0}
    if short or beyond or (unseen and not full):
        return found | {"verdict": "too short to judge" if short else "unknown"}
    headroom = NAN if {"l2", "dram"} & unseen else max(1.0, 1 / fullest[3])
    found |= {"verdict": f"{kind}: {label}" if full else "latency", "headroom": headroom}
    return found | {"headroom_compute": to_compute_roofs(group), "headroom_or_less": int(bool(unseen) and headroom == headroom)}


def to_compute_roofs(group: list[Launch]) -> float:
    """Seconds of launches with work / seconds that it needs at the peaks of the busiest pipe."""
    working = [one for one in group if one.work.keys() & CORE.keys() and one.timed]
    needed = dict.fromkeys(CORE, 0.0)
    for one in working:
        for p in one.work.keys() & CORE.keys():
            needed[one.pipe(p)] += one.work[p][0] / one.roofs[p][0]
    return total(working) / max(needed.values()) if any(needed.values()) else NAN


def together(group: list[Launch]) -> dict[str, Any]:
    """The verdict that most of the time has, and the headroom of all launches that have one."""
    timed = [one for one in group if one.timed]
    if len(group) == 1 or not timed:
        found = judged(group)
        return found | {"judged_seconds": total(group) if found["headroom"] == found["headroom"] else 0.0}
    if total(one for one in timed if one.seconds < 20e-6) > total(timed) / 2:
        return judged(timed) | {"judged_seconds": 0.0}
    alone = {one.place: judged([replace(one, weight=1.0)]) for one in group}
    keys = {place: (found["verdict"], found["limit"] if ": " in found["verdict"] else "") for place, found in alone.items()}
    judging = [one for one in group if keys[one.place][0] != "too short to judge"]
    times = {keys[one.place]: total(other for other in judging if keys[other.place] == keys[one.place]) for one in judging}
    speaking = [one for one in timed if keys[one.place] == max(times, key=lambda key: times[key])]
    known = [one for one in timed if alone[one.place]["headroom"] == alone[one.place]["headroom"]]
    known = known if any(one in known for one in speaking) else []
    found = judged(speaking)
    if found["headroom"] == found["headroom"]:
        needed = sum(one.seconds / alone[one.place]["headroom"] for one in known)
        found["headroom"] = total(known) / needed if known else NAN
    if found["verdict"] != "unknown":
        found["headroom_compute"] = to_compute_roofs(known)
    return found | {"judged_seconds": total(known)}


def about(group: list[Launch], by: str, label: str, whole: float) -> dict[str, Any]:
    timed, first = [one for one in group if one.timed], group[0]
    seconds = total(timed) if timed else NAN
    works = [sum(work for p, (work, _) in one.work.items() if p != "mixed") for one in group if one.work]
    counted = {p for one in group for p in one.work}
    moved = {level for one in group for level in one.traffic}
    clock, busy = mean(group, lambda one: one.clock), units(group)
    status = "no-time" if not timed else "ok" if any(works) else "zero-flop" if counted >= CORE.keys() else "no-work-metrics"
    status = "no-traffic-metrics" if status == "ok" and not moved else status
    fullest = max(busy, key=lambda unit: busy[unit] - (1e-6 if unit == "sm__throughput" else 0), default=None)
    of_compute = [busy[unit] for unit in busy if UNITS[unit][2] == "compute"]
    found = together(group)
    row = {
        "name": label if by == "application" else first.name,
        "kind": by if by == "application" else "kernel",
        "launches": len(group), "untimed": len(group) - len(timed), "seconds": seconds,
        "time_share": seconds / whole if whole else NAN,
        **{name: one if len({other.place % 2 for other in group}) == 1 else "" for name, one in texts(first.place).items()},
        "ncu_version": "2024.1.0.0", "work": sum(works) if works else NAN, "status": status, "clock_profiled": clock,
        "clock_max": first.clock_max, "clock_ratio": clock / first.clock_max, **found, "speedup": found["headroom"],
        "recoverable": found["judged_seconds"] * (1 - 1 / found["headroom"]) if found["judged_seconds"] else NAN,
        "short_seconds": total(one for one in timed if one.seconds < 20e-6), "waste": "", "headroom_without_waste": NAN,
        "reason": None, "busiest_unit": UNITS[fullest][1] if fullest and busy[fullest] > 0 else "",
        "busiest_fraction": busy[fullest] if fullest else NAN, "bandwidth_system": NAN, "fraction_system": NAN,
        "fraction_sm": busy.get("sm__throughput", max(of_compute, default=NAN)),
        "issue_fraction": busy.get("sm__issue_active", NAN),
        "tensor_active": NAN, "sm_active": mean(group, lambda one: active(one)),
        "missing": " ".join(name for name in (*CORE, *CHAIN) if name not in counted | moved),
        "notes": (clock < 0.9 * first.clock_max, False, None, any(one.charted for one in group) and None),
    }  # fmt: skip
    for name, (metric, times) in GAUGES.items():
        row[name] = mean(group, lambda one, metric=metric, times=times: one.get(metric) * times)
    for level in LEVELS:
        row[f"bandwidth_{level}"] = rate(group, level)
        by_unit = next((busy[unit] for unit in busy if UNITS[unit][3] == level), NAN)
        share = rate(group, level) / roof_of(group, level)
        row[f"fraction_{level}"] = share if share == share else by_unit
    return row


def active(launch: Launch) -> float:
    names = [f"{unit}__cycles_elapsed.{how}" for unit in ("sm", "gpc") for how in ("max", "avg")]
    elapsed = next((launch.get(name) for name in names if name in launch.metrics), launch.clock * launch.seconds)
    share = launch.get("sm__cycles_active.avg") / elapsed
    return min(share, 1.0) if share == share else NAN


def texts(place: int) -> dict[str, str]:
    """Of every other launch the same."""
    return {"grid": f"{8 + place % 2}x2x1", "block": f"{128 >> place % 2}x1x1", "nvtx": f"outer/step{place % 2}"}


# Roofs.


def roofs(
    launches: list[Launch], drawn: pd.DataFrame, clock: str, measured: Mapping[str, float], path: str
) -> list[dict[str, Any]]:
    rows = []
    timed = [one for one in launches if one.timed] or launches
    core = {*drawn["precision"]} - {"mixed"} or {"fp64", "fp32"}
    unknown = all(one.clock != one.clock for one in timed)
    basis = "max" if unknown or clock == "max" else "profiled"
    clocks = [value for one in timed if (value := one.clock_max if basis == "max" else one.clock) == value]
    for name in (*CORE, *LEVELS):
        compute = name in CORE
        if name not in (core if compute else {*CHAIN, *drawn["level"]}):
            continue
        for which, factor in (("fma", 1.0), ("nofma", 0.5)) if compute else (("", 1.0),):
            of = f"{name.upper()} {'FMA' if which == 'fma' else 'no FMA'}" if compute else LEVELS[name][2]
            row = {
                **head(timed, "", "", path), "roof": f"{name}.{which}" if compute else name,
                "kind": "compute" if compute else "bandwidth",
                "precision": name if compute else "", "level": "" if compute else name, "label": of,
                "unit": "flop/s" if compute else "byte/s", "clock": NAN if name in ("l2", "dram") else median(clocks),
                "clock_basis": basis, **spread([factor * one.roofs[name][1] for one in timed]), "origin": "theoretical",
                "source": origin(timed, name), "metrics": None, "notes": None,
            }  # fmt: skip
            rows.append(row)
            for judges in (True, False) if name in measured and which != "nofma" else ():
                if mine := [one for one in timed if (one.roofs[name][0] == one.drawn[name]) == judges]:
                    at = [one.clock if abs(one.drawn[name] / measured[name] - 1) > 0.01 else 1.41e9 for one in mine]
                    of = {"origin": "measured" if judges else "unused", "clock_basis": "measured", "source": "ceilings"}
                    stands = {"clock": NAN if name == "dram" else median(at)}
                    rows.append({**row, **of, **stands, **spread([one.drawn[name] for one in mine])})
    return rows


def origin(timed: list[Launch], roof: str) -> str | None:
    """None where launches differ."""
    derived, otherwise = {roof == "dram" and one.reached for one in timed}, ("architecture", "binding")
    own = otherwise[roof == "fp64" and PEAK in timed[0].metrics]
    return None if len(derived) > 1 else "derived" if True in derived else own


def spread(values: list[float]) -> dict[str, float]:
    return {"value": median(values), "value_min": min(values), "value_max": max(values)}


# Made-up reports.

VENDOR = "sm__sass_thread_inst_executed_ops_dadd_dmul_dfma_pred_on_x2.sum.per_second"
PEAK = "sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained"
DOT = made_section.point(*map(made_section.one, (VENDOR, "dram__bytes.sum.per_second")))
CHART = made_section.section(made_section.chart(points=(DOT,)))
SHARES = (0.0, 0.004, 0.03, 0.2, 0.35, 0.5, 0.62, 0.75, 0.9)


def made(dice: Random, chip: str) -> Metrics:
    """A launch: of each thing that can be full a share, or nothing at all."""
    sheet, one_of = SHEETS[chip], dice.choice
    seconds, sm, lts, memory = one_of((5e-6, 1e-4, 1e-3, 3e-3)), one_of((0.9e9, 1.2e9, 1.41e9)), one_of((1e9, 1.3e9)), 1.1e9
    metrics: Metrics = {
        **DEVICES[chip],
        "sm__cycles_elapsed.avg.per_second": sm,
        "lts__cycles_elapsed.avg.per_second": lts,
        **({"gpu__time_duration.sum": seconds * 1e9} if dice.random() < 0.93 else {}),
        **({"dram__cycles_elapsed.avg.per_second": memory} if dice.random() < 0.5 else {}),
    }
    full = {"l2": 80 * lts, "dram": 5120 * memory}
    for precision, (letter, each) in CORE.items():
        operations = one_of(SHARES) * sheet[precision] * 108 * sm * seconds / 4
        parts = one_of(((0, 0, 1), (1, 0, 0), (0.25, 0.25, 0.5), (0.1, 0.7, 0.2)))
        if dice.random() < 0.8:
            counts = [round(operations / each * part / (1 + (op == 2))) for op, part in enumerate(parts)]
            metrics |= {PATCHED.format(letter + op): count for op, count in zip(OPS, counts, strict=True)}
    if not any("sass_thread" in name for name in metrics) or dice.random() < 0.1:
        metrics = {name: value for name, value in metrics.items() if "sass_thread" not in name}
        metrics |= {VENDOR: one_of((1e11, 2e12))} if dice.random() < 0.7 else {}
    for level, (metric, each, _) in LEVELS.items():
        if dice.random() < 0.85:
            metrics[metric] = round(one_of(SHARES) * sheet[level] * full.get(level, 108 * sm) * seconds / each)
    if VENDOR in metrics:
        metrics["dram__bytes.sum.per_second"] = (metrics.pop("dram__bytes.sum", 0) or 3e8) / seconds
    metrics |= {unit + ELAPSED: 100 * one_of(SHARES) for unit in UNITS if dice.random() < 0.4}
    if metrics.get(LEVELS["dram"][0]) == 0:
        metrics.pop(f"dram__cycles_active{ELAPSED}", None)
    gauges = [(metric, one_of((7.0, 23.0, 41.0))) for metric, _ in GAUGES.values() if not metric.startswith("l1tex")]
    metrics |= {metric: value for metric, value in gauges if dice.random() < 0.5}
    cycles = {"sm__cycles_active.avg": one_of((0.5e6, 1.01e6)), "sm__cycles_elapsed.max": 1e6}
    return metrics | (cycles if dice.random() < 0.5 else {})


@pytest.mark.parametrize("by", ["launch", "kernel", "application"])
def test_made_up_reports(by: str, tmp_path: Path) -> None:
    for seed in range(20):
        one_made_up_report(Random(seed), by, tmp_path)


def one_made_up_report(dice: Random, by: str, folder: Path) -> None:
    chip, clock = dice.choice(("8.0", "8.6")), dice.choice(("profiled", "profiled", "max"))
    every = [made(dice, chip) for _ in range(dice.randint(1, 5))]
    if dice.random() < 0.3:
        every = [{**metrics, PEAK: 108.0 * 25} for metrics in every]
    measured = {"fp64": 0.9 * 50 * 108 * 1.41e9, "dram": 1.1e12} if chip == "8.0" and dice.random() < 0.5 else {}
    names = [f"void {'ab'[place % 2]}<1>(int)" for place in range(len(every))]
    launches = []
    for place, (name, metrics) in enumerate(zip(names, every, strict=True)):
        shape = texts(place)
        grid, block = (tuple(map(int, shape[key].split("x"))) for key in ("grid", "block"))
        launch = kernel(metrics, name, nvtx=tuple(shape["nvtx"].split("/")), sections=(CHART,) if VENDOR in metrics else ())
        launches.append(replace(launch, grid=grid, block=block))
    path = report(folder / "r.ncu-rep", *launches)
    entries = (
        ceiling("fp64.fma", measured.get("fp64"), clock={"sm_mhz_mean": 1410}),
        ceiling("dram.read", measured.get("dram")),
    )
    found = roofline(path, write(folder, document(*entries)) if measured else None, by=by, clock=clock)
    raw = [Launch(place, name, metrics).read() for place, (name, metrics) in enumerate(zip(names, every, strict=True))]
    check(found, raw, by, clock, measured, str(path))


def grouped(launches: list[Launch], by: str, path: str) -> list[tuple[str, list[Launch]]]:
    """Rows with what they are called."""
    groups: dict[object, tuple[str, list[Launch]]] = {}
    for one in launches:
        one.weight = 1.0 if by == "launch" else one.seconds
        key = {"launch": one.place, "kernel": one.name, "application": path}[by]
        label = path if by == "application" else one.label
        groups.setdefault(key, (label, []))[1].append(one)
    return list(groups.values())


def check(found: Roofline, launches: list[Launch], by: str, clock: str, measured: Mapping[str, float], path: str) -> None:
    rows = grouped(launches, by, path)
    stand(launches, measured, clock)
    same(found.points, [row for label, group in rows for row in points(label, group, by, path)], columns.POINTS)
    whole = total(launches)
    same(found.kernels, [{**about(g, by, label, whole), **head(g, by, label, path)} for label, g in rows], columns.KERNELS)
    same(found.roofs, roofs(launches, found.points, clock, measured, path), columns.ROOFS)


def same(frame: pd.DataFrame, rows: list[dict[str, Any]], declared: Sequence[Any]) -> None:
    """Every declared column, None aside; of notes which sentences are there."""
    kinds = [(one.name, {"str": "O", "int": "i", "float": "f"}[one.dtype]) for one in declared]
    assert [(name, frame[name].to_numpy().dtype.kind) for name in [*frame][: len(declared)]] == kinds  # behind them other names
    unknown = [column.name for column in declared if rows and column.name not in rows[0]]
    assert unknown == [], "Recompute a new column here; a gauge by its metric, and what it is times, in `gauges` of cases.toml."
    assert len(frame) == len(rows), (declared[-2].name, len(frame), len(rows))
    for column in declared:
        values = [row[column.name] for row in rows]
        for place, (value, given_) in enumerate(zip(values, frame[column.name], strict=True)):
            if column.name == "notes" and value is not None:
                told = tuple(text in given_ for text in TOLD)
                assert all(want is None or want == got for want, got in zip(value, told, strict=True)), (place, value, given_)
            elif isinstance(value, float):
                assert given_ == pytest.approx(value, rel=1e-9, nan_ok=True), (place, column.name, value, given_)
            elif value is not None:
                assert given_ == value, (place, column.name, value, given_)


REAL = ("launches", "seconds", "clock_profiled", "clock_max", "clock_ratio")
OF_POINTS = (*REAL, "work", "traffic", "intensity", "performance", "bandwidth", "fma_share", "coverage")
OF_KERNELS = (*REAL, "untimed", "time_share", "sm_active", "short_seconds", *(name for name in GAUGES if name != "data_pipe"))


@pytest.mark.reports
@pytest.mark.parametrize("by", ["launch", "kernel"])
def test_real_reports(by: str, real_reports: dict[str, Path]) -> None:
    """What is counted in FP64 and FP32, and moved at DRAM; times, clocks and gauges."""
    compared = 0
    for path in real_reports.values():
        with read_report(path) as opened:
            launches = [Launch(one.index, one.name, dict(one.metrics)).read() for one in opened.kernels]
        if not {one.chip for one in launches} <= SHEETS.keys() or any(one.clock != one.clock for one in launches):
            continue
        found, rows = roofline(path, by=by), grouped(launches, by, str(path))
        stand(launches)
        for (label, group), row in zip(rows, found.kernels.to_dict("records"), strict=True):
            expected = about(group, by, label, total(launches))
            mine = found.points[(found.points["launch"] == row["launch"]) & (found.points["kernel"] == row["kernel"])]
            pairs = [(row, {name: expected[name] for name in OF_KERNELS})]
            for dot in mine[(mine["level"] == "dram") & (mine["source"] == "binding")].to_dict("records"):
                if dot["precision"] in ("fp64", "fp32"):
                    of_dot = numbers(group, dot["precision"], "dram")
                    pairs.append((dot, {name: of_dot[name] for name in OF_POINTS}))
            for got, want in pairs:
                assert {name: got[name] for name in want} == pytest.approx(want, rel=1e-9, nan_ok=True), (path.name, label)
                compared += len(want)
    assert compared > 200


# Charts of reports, as they are drawn.

ADDED = [f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum.per_cycle_elapsed" for op in ("dadd", "dmul")]
FUSED, FULL = (f"derived__{of}_thread_inst_executed_op_dfma_pred_on_x2" for of in ("smsp__sass", "sm__sass"))
RATES, CYCLES = ("lts__t_bytes.sum.per_second", "dram__bytes.sum.per_second"), "smsp__cycles_elapsed.avg.per_second"
SLOPE, SM = (
    {"dram__bytes.sum.peak_sustained": 1280.0, "dram__cycles_elapsed.avg.per_second": 1.1e9},
    CYCLES.replace("smsp", "sm"),
)


def test_charts_as_they_are_drawn(tmp_path: Path) -> None:
    """FP64 with dots at L2 and DRAM, and a line of DRAM alone."""
    dice, rows, slope = Random(7), list[dict[str, Any]](), 1280 * 1.1e9
    dots = [point(per_second(*ADDED, FUSED, clock=CYCLES), made_section.one(name), name) for name in RATES]
    lines = roof(per_second(FULL), per_second(*list(SLOPE)[:1], clock=list(SLOPE)[1]), "line")
    data = section(chart(points=tuple(dots), roofs=(lines,)))
    every = [
        {**A100, **SLOPE, FULL: 6912.0, "gpu__time_duration.sum": dice.uniform(1e5, 1e6)}
        | {name: dice.uniform(10, 100) for name in (*ADDED, FUSED)}
        | {name: dice.uniform(1e10, 1e12) for name in RATES}
        | {clock: dice.uniform(1.2e9, 1.4e9) for clock in (CYCLES, SM)}
        for _ in range(5)
    ]
    path = report(tmp_path / "r.ncu-rep", *(kernel(metrics, "void a(int)", sections=(data,)) for metrics in every))
    for place, metrics in enumerate(every):
        launch = Launch(place, "void a(int)", metrics).read()
        work, peak = sum(map(launch.get, (*ADDED, FUSED))) * launch.get(CYCLES), launch.get(FULL) * launch.clock
        lowest = min(work / launch.get(RATES[1]) * slope, peak)
        for level, name in zip(("l2", "dram"), RATES, strict=True):
            bandwidth, of_level = launch.get(name), slope if level == "dram" else NAN
            attainable = min(work / bandwidth * slope, peak) if level == "dram" else NAN
            rows.append({
                **head([launch], "launch", "a", str(path)), "precision": "fp64", "level": level, "launches": 1, "unit": "flop",
                "work": work * launch.seconds, "traffic": bandwidth * launch.seconds, "seconds": launch.seconds,
                "intensity": work / bandwidth, "performance": work, "bandwidth": bandwidth, "attainable": attainable,
                "fraction": work / attainable, "compute_roof": peak, "bandwidth_roof": of_level,
                "attainable_theoretical": attainable, "fraction_theoretical": work / attainable, "locality_to": "",
                **dict.fromkeys(("fma_share", "mix_roof", "lanes", "locality"), NAN), "roof_origin": "theoretical",
                "binds": "dram" if lowest < peak else "fp64.fma", "binding_fraction": work / lowest,
                "clock_profiled": launch.clock, "clock_max": launch.clock_max, "clock_ratio": launch.clock / launch.clock_max,
                "coverage": 1, "source": "embedded", "metrics": f"{', '.join([*ADDED, FUSED, CYCLES])}; {name}", "notes": None,
            })  # fmt: skip
    found = roofline(path, source="embedded")
    same(found.points, rows, columns.POINTS)
    assert found.points["notes"].tolist() == [f"Test: {name}" for _ in every for name in RATES]
    drawn, peaks = found.roofs.set_index("roof"), [metrics[FULL] * metrics[SM] for metrics in every]
    for name, values in {"fp64.fma": peaks, "dram": [slope]}.items():
        assert drawn.loc[name, ["value", "value_min", "value_max"]].to_dict() == pytest.approx(spread(values)), name
    assert drawn[["unit", "kind", "source"]].to_numpy().tolist() == [
        ["flop/s", "compute", "embedded"],
        ["byte/s", "bandwidth", "embedded"],
    ]
    assert drawn["clock"].tolist() == pytest.approx([median(metrics[SM] for metrics in every)] * 2)


VERDICT = re.compile(r"(memory|compute): \S.*|latency|tensor work unknown|too short to judge|unknown")
UNKNOWN = re.compile("not collected|counted in part only|of a roof, which no kernel has")


@pytest.mark.reports
def test_every_launch_of_real_reports_answers(real_reports: dict[str, Path], run: Command) -> None:
    drawn = 0
    for path in real_reports.values():
        data = json.loads(run("show", path, "--json").out)
        drawn += bool(data["points"])
        for row in data["kernels"]:
            assert VERDICT.fullmatch(row["verdict"]), row
            assert row["reason"], row
            if row["seconds"] is None:  # in one launch every number is NaN
                continue
            named = (*(f"fraction_{level}" for level in (*LEVELS, "system")), "busiest_fraction", "occupancy_theoretical")
            pointed = any(one["launch"] == row["launch"] for one in data["points"])
            assert pointed or any(row[name] is not None for name in named), (path.name, row)
            assert row["verdict"] != "unknown" or UNKNOWN.search(row["reason"]), row
            if row["headroom"] is not None:
                assert row["headroom"] >= 1
                assert None not in (row["fraction_dram"], row["fraction_l2"]), (path.name, row)
                assert row["verdict"] not in {"unknown", "too short to judge", "tensor work unknown"}
    assert drawn == len([name for name in real_reports if "basic" not in name]) - 2  # one report is all NaN, one has no bytes
