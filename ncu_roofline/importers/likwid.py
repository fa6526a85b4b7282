"""LIKWID's CSV of groups such as FLOPS_DP, MEM_DP, L2 and L3: one point per region of the marker API, or one for the whole run.

Work is the rate of each thread times its own runtime, summed over the threads; traffic is the sum of the data volumes (uncore
volumes stand at one thread of each socket); the time is the longest of any thread.  With statistics only, rates and volumes are
their Sum, and the time is the Max.  Several groups of one run are measured in turns: their rates stand for the whole of it.
LIKWID's GBytes are 1e9 byte, its MFLOP 1e6 FLOP.  It counts no fused operations apart, so there is no FMA share.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path

from ncu_roofline.importers.cells import damaged, listed
from ncu_roofline.importers.likwid_text import HEADING, Group, groups_of
from ncu_roofline.importers.tables import ANY_PRECISION, ImportedPoint, PointTable
from ncu_roofline.importers.text import text_of

RUNTIME = "Runtime (RDTSC) [s]"
_PRECISIONS = {"DP": "fp64", "SP": "fp32", "HP": "fp16", "": ANY_PRECISION}
# "DP [MFLOP/s]" since version 4.2, "DP MFLOP/s" before; some CPUs count vector instructions of unknown width, and LIKWID then
# gives one rate for each width that it might have been: "DP [MFLOP/s] (AVX assumed)".
_WORK = re.compile(r"(?:(DP|SP|HP) )?\[?MFLOPS?/s\]?(?: \((\w+) assumed\))?", re.IGNORECASE)
_VOLUMES = {
    "L2 data volume": "l2",
    "L1 to/from L2 data volume": "l2",
    "L3 data volume": "l3",
    "L2 to/from L3 data volume": "l3",
    "Memory data volume": "dram",
    "DDR Memory data volume": "dram",
    "DDR data volume": "dram",
    "MCDRAM Memory data volume": "mcdram",
    "MCDRAM data volume": "mcdram",
}
_UNIT = " [GBytes]"
# Parts of the sums above, and rates that say the same as the volumes.
_PART = re.compile(r"(load|evict|read|write|writeback)\b.*data volume|^(AVX\w*|SSE|Packed|Scalar) ", re.IGNORECASE)
_COULD_COUNT = re.compile(r"FLOP|data volume", re.IGNORECASE)


def recognises(head: str) -> bool:
    """Text with the heading of a table of events or metrics."""
    return HEADING.search(head) is not None


def read(path: str | PathLike[str]) -> PointTable:
    """One point per region.  Raises RooflineError for damaged tables, and where no group counts operations or bytes."""
    name = fspath(path)
    groups = groups_of(text_of(path), name)
    timed = [group for group in groups if group.metrics or group.statistics]
    if not timed:
        next_step = "Measure a performance group, such as `likwid-perfctr -g MEM_DP`."
        raise damaged(path, "it holds raw events and no metrics, as of a set of events of one's own", next_step)
    regions: dict[str, list[Group]] = {}
    for group in timed:
        regions.setdefault(group.region, []).append(group)
    results = [_Region(groups).point(region or Path(name).stem) for region, groups in regions.items()]
    if not any(point.work or point.traffic for point, _ in results):
        found = listed(group.name or f"group {group.number}" for group in timed)
        next_step = "Measure FLOPS_DP, FLOPS_SP, MEM_DP, MEM_SP, L2, L3 or MEM."
        raise damaged(path, f"its groups ({found}) count neither floating-point operations nor bytes", next_step)
    warnings = dict.fromkeys(sentence for _, sentences in results for sentence in sentences)
    return PointTable(
        path=name,
        format="likwid",
        points=tuple(point for point, _ in results),
        warnings=tuple(f"{name}: {sentence}." for sentence in warnings),
    )


@dataclass
class _Region:
    """The groups of one region, summed up."""

    groups: Sequence[Group]
    work: dict[str, float] = field(default_factory=dict)
    traffic: dict[str, float] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def point(self, name: str) -> tuple[ImportedPoint, list[str]]:
        """The point, and what to warn of, as sentences without full stop."""
        times = [_runtime(group) for group in self.groups]
        seconds = math.fsum(times)
        for group, time in zip(self.groups, times, strict=True):
            self._take(group, seconds / time if len(times) > 1 and time > 0 else 1.0)
        if len(self.groups) > 1:
            self.notes.append("its groups were measured in turns, and each stands for the whole run")
        sentences = [*self.left_out]
        if self.unused:
            sentences.append(f"metrics that are not used: {listed(self.unused)}")
        if math.isnan(seconds):
            sentences.append(f'"{RUNTIME}" is missing for {name}')
        first = self.groups[0]
        point = ImportedPoint(
            name=name,
            seconds=seconds,
            work=self.work,
            traffic=self.traffic,
            device=first.cpu or first.cpu_type,
            launches=max(group.calls for group in self.groups),
            columns=", ".join(dict.fromkeys(self.columns)),
            note="; ".join(self.notes),
        )
        return point, sentences

    def _take(self, group: Group, scale: float) -> None:
        names = list(dict.fromkeys((*group.metrics, *group.statistics)))
        rates = [(name, match) for name in names if (match := _WORK.fullmatch(name))]
        for prefix, precision in _PRECISIONS.items():
            found = [(name, match.group(2)) for name, match in rates if (match.group(1) or "").upper() == prefix]
            self._take_work(group, precision, found, scale)
        for name in names:
            level = _level(name, group)
            if level and level not in self.traffic:
                self._keep(self.traffic, level, name, _total(group, name) * 1e9 * scale)
            elif not _WORK.fullmatch(name) and not level and _COULD_COUNT.search(name) and not _PART.search(name):
                self.unused.append(name)

    def _take_work(self, group: Group, precision: str, found: list[tuple[str, str | None]], scale: float) -> None:
        if len(found) > 1:
            guesses = listed(f'"{name}"' for name, _ in found)
            self.left_out.append(
                f"{precision} work left out: this CPU counts no operations, and LIKWID gives {guesses} instead"
            )
        elif found and precision not in self.work:
            name, assumed = found[0]
            self._keep(self.work, precision, name, _operations(group, name) * 1e6 * scale)
            if assumed:
                self.notes.append(f"{precision} work counts every vector instruction as {assumed}, as LIKWID assumes")

    def _keep(self, target: dict[str, float], key: str, name: str, value: float) -> None:
        if not math.isnan(value):
            target[key] = value
            self.columns.append(name)


def _level(name: str, group: Group) -> str:
    level = _VOLUMES.get(name.removesuffix(_UNIT), "") if name.endswith(_UNIT) else ""
    # The groups HBM* name the metric like those of DDR memory do.
    if level == "dram" and group.name.startswith("HBM") and name.startswith("Memory"):
        return "mcdram" if "Knights" in group.cpu_type or "Phi" in group.cpu_type + group.cpu else "hbm"
    return level


def _runtime(group: Group) -> float:
    """The longest time of any thread in seconds, NaN where it is missing."""
    return max(group.metrics.get(RUNTIME, {}).values(), default=group.statistics.get(RUNTIME, {}).get("Max", math.nan))


def _operations(group: Group, name: str) -> float:
    """Rate times runtime over all threads, in the rate's unit without the time."""
    runtimes = group.metrics.get(RUNTIME, {})
    products = [rate * runtimes[thread] for thread, rate in group.metrics.get(name, {}).items() if thread in runtimes]
    if products:
        return math.fsum(products)
    return group.statistics.get(name, {}).get("Sum", math.nan) * _runtime(group)


def _total(group: Group, name: str) -> float:
    volumes = list(group.metrics.get(name, {}).values())
    return math.fsum(volumes) if volumes else group.statistics.get(name, {}).get("Sum", math.nan)
