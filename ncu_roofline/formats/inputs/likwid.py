"""LIKWID's CSV of groups such as FLOPS_DP, MEM_DP, L2 and L3: one point per region of the marker API, or one for the whole run.

Work is the rate of each thread times its own runtime, summed over the threads; traffic is the sum of the data volumes (uncore
volumes stand at one thread of each socket); the time is the longest of any thread.  With statistics only, rates and volumes are
their Sum, and the time is the Max.  Several groups of one run are measured in turns: their rates stand for the whole of it.
LIKWID's GBytes are 1e9 byte, its MFLOP 1e6 FLOP.  It counts no fused operations apart, so there is no FMA share.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from ncu_roofline.base.texts import listed
from ncu_roofline.formats.inputs.spelling import precision_of
from ncu_roofline.formats.inputs.tables import ImportedPoint, PointTable
from ncu_roofline.formats.inputs.text import Table, row_of, text_of

_HEADING = re.compile(r"^[ \t]*TABLE,(?:Region [^,\n]*,)?Group \d+ (?:Raw|Metric)\b", re.MULTILINE)
_KIND = re.compile(r"Group (\d{1,9}) (Raw|Metric)( STAT)?", re.IGNORECASE)
_COUNT = re.compile(r"[0-9]{1,9}")
# The metrics that are read: those that may count operations or bytes, and the time.  Others may be infinite (cycles per
# instruction of an idle thread).
_READ = re.compile(r"FLOP|data volume|Runtime \(RDTSC\)|call count", re.IGNORECASE)
_RUNTIME = "Runtime (RDTSC) [s]"
_PREFIXES = ("DP", "SP", "HP", "")
# "DP [MFLOP/s]" since version 4.2, "DP MFLOP/s" before; some CPUs count vector instructions of unknown width, and LIKWID then
# gives one rate for each width that it might have been: "DP [MFLOP/s] (AVX assumed)".
_WORK = re.compile(r"(?:(DP|SP|HP) )?\[?MFLOPS?/s\]?(?: \((\w+) assumed\))?", re.IGNORECASE)
_VOLUMES = {
    **dict.fromkeys(("L2 data volume", "L1 to/from L2 data volume"), "l2"),
    **dict.fromkeys(("L3 data volume", "L2 to/from L3 data volume"), "l3"),
    **dict.fromkeys(("Memory data volume", "DDR Memory data volume", "DDR data volume"), "dram"),
    **dict.fromkeys(("MCDRAM Memory data volume", "MCDRAM data volume"), "mcdram"),
}
_UNIT = " [GBytes]"
# Parts of the sums above, and rates that say the same as the volumes.
_PART = re.compile(r"(load|evict|read|write|writeback)\b.*data volume|^(AVX\w*|SSE|Packed|Scalar) ", re.IGNORECASE)
_COULD_COUNT = re.compile(r"FLOP|data volume", re.IGNORECASE)


@dataclass
class Group:
    """One group of one region: metrics by thread and, in ``statistics``, by Sum, Min, Max, Avg; NaN cells are absent.

    ``incomplete`` metrics lack the cell of some thread, so nothing can be said of all.
    """

    number: int
    name: str
    cpu: str = ""
    cpu_type: str = ""
    calls: int = 1
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    statistics: dict[str, dict[str, float]] = field(default_factory=dict)
    incomplete: set[str] = field(default_factory=set)

    def seconds(self) -> float:
        """The longest time of any thread, NaN where it is missing."""
        if _RUNTIME in self.incomplete:
            return math.nan
        stated = self.statistics.get(_RUNTIME, {}).get("Max", math.nan)
        return max(self.metrics.get(_RUNTIME, {}).values(), default=stated)

    def operations(self, name: str) -> float:
        """Rate times runtime over all threads, in the rate's unit without the time."""
        if {name, _RUNTIME} & self.incomplete:
            return math.nan
        runtimes = self.metrics.get(_RUNTIME, {})
        products = [rate * runtimes[thread] for thread, rate in self.metrics.get(name, {}).items() if thread in runtimes]
        return math.fsum(products) if products else self.statistics.get(name, {}).get("Sum", math.nan) * self.seconds()

    def total(self, name: str) -> float:
        """A metric summed over all threads."""
        volumes = [] if name in self.incomplete else list(self.metrics.get(name, {}).values())
        stated = math.nan if name in self.incomplete else self.statistics.get(name, {}).get("Sum", math.nan)
        return math.fsum(volumes) if volumes else stated


class _Printed(NamedTuple):
    """A table as it stands in the output: its heading, the facts on the CPU above it, its rows, all with their lines."""

    line: int
    heading: list[str]
    facts: dict[str, str]
    rows: list[tuple[int, list[str]]]


def recognises(head: str) -> bool:
    """Text with the heading of a table of events or metrics."""
    return _HEADING.search(head) is not None


def read(path: str | PathLike[str]) -> PointTable:
    """One point per region.  Raises RooflineError for damaged tables, and where no group counts operations or bytes."""
    table = Table(path)
    regions = _regions(table)
    timed = [group for groups in regions.values() for group in groups]
    if not timed:
        next_step = "Measure a performance group, such as `likwid-perfctr -g MEM_DP`."
        raise table.damaged("it holds raw events and no metrics, as of a set of events of one's own", next_step)
    several = any(run for run, _ in regions)
    points, warnings = [], []
    for (run, region), groups in regions.items():
        point, sentences = _point(groups, region or Path(path).stem, f"run {run + 1}" if several else "")
        points.append(point)
        warnings += sentences
    if not any(point.work or point.traffic for point in points):
        names = listed(group.name or f"group {group.number}" for group in timed)
        next_step = "Measure FLOPS_DP, FLOPS_SP, MEM_DP, MEM_SP, L2, L3 or MEM."
        raise table.damaged(f"its groups ({names}) count neither floating-point operations nor bytes", next_step)
    said = tuple(f"{table.path}: {sentence}." for sentence in dict.fromkeys(warnings))
    return PointTable(table.path, "likwid", tuple(points), warnings=said)


def _printed(text: str) -> Iterator[_Printed]:
    """The tables; what stands before and between them is the application's output."""
    facts: dict[str, str] = {}
    table: _Printed | None = None
    for number, line in enumerate(text.split("\n"), 1):
        cells = row_of(line)
        while cells and not cells[-1]:
            cells.pop()
        if not cells:
            continue
        if cells[0] in ("TABLE", "STRUCT"):
            if table:
                yield table
            table = _Printed(number, cells, dict(facts), []) if cells[0] == "TABLE" else None
        elif cells[0] in ("CPU name:", "CPU type:"):
            facts[cells[0]] = ",".join(cells[1:])
        elif table:
            table.rows.append((number, cells))
    if table:
        yield table


def _regions(table: Table) -> dict[tuple[int, str], list[Group]]:
    """The groups with metrics by run (several where one file holds the output of several) and region."""
    groups: dict[tuple[int, str, int], Group] = {}
    met: Counter[tuple[str, int, str]] = Counter()
    for printed in _printed(text_of(table.path)):
        kinds = [(at, match) for at, cell in enumerate(printed.heading) if (match := _KIND.fullmatch(cell))]
        if not kinds:
            raise table.damaged(f"line {printed.line} is no heading of a table of events or metrics")
        place, kind = kinds[0]
        region = printed.heading[1].removeprefix("Region ") if place > 1 else ""
        rest = printed.heading[place + 1 :]
        name = next((cell for cell in rest if not cell.isdigit()), "")
        same = (region, int(kind[1]), kind[0].lower())
        run = met[same]  # a table that was there is the output of another run, appended to the same file
        met[same] += 1
        group = groups.setdefault((run, *same[:2]), Group(same[1], name))
        group.name = group.name or name
        group.cpu = group.cpu or printed.facts.get("CPU name:", "")
        group.cpu_type = group.cpu_type or printed.facts.get("CPU type:", "")
        _fill(table, group, printed, kind, next((int(cell) for cell in rest if _COUNT.fullmatch(cell)), None))
    regions: dict[tuple[int, str], list[Group]] = {}
    for (run, region, _), group in groups.items():
        if group.metrics or group.statistics:
            regions.setdefault((run, region), []).append(group)
    return regions


def _fill(table: Table, group: Group, printed: _Printed, kind: re.Match[str], count: int | None) -> None:
    """Take the rows of a table, ``count`` of them where its heading says so.  Raises RooflineError where it has others."""
    metrics, statistics = kind[2].lower() == "metric", bool(kind[3])
    columns: list[str] = []
    rows = 0
    for line, cells in printed.rows:
        if cells[0] in ("Metric", "Event", "Region Info"):
            columns = cells[1:]
        elif cells[0] == "call count" and not metrics:
            calls = (table.number("call count", line, cell) for cell in cells[1:])
            group.calls = max(1, int(max((number for number in calls if number is not None), default=1)))
        elif metrics and columns and rows != count:
            rows += 1
            if len(cells) - 1 > len(columns):
                raise table.damaged(f"line {line} has {len(cells) - 1} values for {len(columns)} columns")
            name = cells[0].removesuffix(" STAT")
            if _READ.search(name):
                values = {column: table.number(name, line, cell) for column, cell in zip(columns, cells[1:], strict=False)}
                known = {column: value for column, value in values.items() if value is not None}
                (group.statistics if statistics else group.metrics)[name] = known
                if len(known) < len(columns) and not statistics:
                    group.incomplete.add(name)
    if metrics and count is not None and rows != count:
        reason = f"the table in line {printed.line} has {rows} of its {count} metrics"
        raise table.damaged(reason, "Give LIKWID's complete output.")


def _point(groups: list[Group], name: str, label: str) -> tuple[ImportedPoint, list[str]]:
    """The groups of one region summed up, and what to warn of, as sentences without full stop."""
    work: dict[str, float] = {}
    traffic: dict[str, float] = {}
    columns: list[str] = []
    notes: list[str] = []
    unused: list[str] = []
    warnings: list[str] = []
    times = [group.seconds() for group in groups]
    seconds = math.fsum(times)

    def keep(target: dict[str, float], key: str, metric: str, value: float) -> None:
        if not math.isnan(value):
            target[key] = value
            columns.append(metric)

    for group, time in zip(groups, times, strict=True):
        scale = seconds / time if len(times) > 1 and time > 0 else 1.0
        names = list(dict.fromkeys((*group.metrics, *group.statistics)))
        warnings += [f'"{metric}" left out: it has no number for some thread' for metric in names if metric in group.incomplete]
        rates = [(metric, match) for metric in names if (match := _WORK.fullmatch(metric))]
        for prefix in _PREFIXES:
            precision = precision_of(prefix)
            found = [(metric, match[2]) for metric, match in rates if (match[1] or "").upper() == prefix]
            if len(found) > 1:
                guesses = listed(f'"{metric}"' for metric, _ in found)
                warnings.append(f"{precision} work left out: this CPU counts no operations, and LIKWID gives {guesses} instead")
            elif found and precision not in work:
                metric, assumed = found[0]
                keep(work, precision, metric, group.operations(metric) * 1e6 * scale)
                if assumed:
                    notes.append(f"{precision} work counts every vector instruction as {assumed}, as LIKWID assumes")
        for metric in names:
            level = _level(group, metric)
            if level and level not in traffic:
                keep(traffic, level, metric, group.total(metric) * 1e9 * scale)
            elif not _WORK.fullmatch(metric) and not level and _COULD_COUNT.search(metric) and not _PART.search(metric):
                unused.append(metric)
    if len(groups) > 1:
        notes.append("its groups were measured in turns, and each stands for the whole run")
    if unused:
        warnings.append(f"metrics that are not used: {listed(unused)}")
    if math.isnan(seconds):
        warnings.append(f'"{_RUNTIME}" is missing for {name}')
    point = ImportedPoint(
        name=name,
        label=label,
        seconds=seconds,
        work=work,
        traffic=traffic,
        device=groups[0].cpu or groups[0].cpu_type,
        launches=max(group.calls for group in groups),
        columns=", ".join(dict.fromkeys(columns)),
        note="; ".join(notes),
    )
    return point, warnings


def _level(group: Group, metric: str) -> str:
    level = _VOLUMES.get(metric.removesuffix(_UNIT), "") if metric.endswith(_UNIT) else ""
    # The groups HBM* name the metric like those of DDR memory do.
    if level == "dram" and group.name.startswith("HBM") and metric.startswith("Memory"):
        return "mcdram" if "Knights" in group.cpu_type or "Phi" in group.cpu_type + group.cpu else "hbm"
    return level
