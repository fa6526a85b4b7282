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
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path

from ncu_roofline.base.texts import listed
from ncu_roofline.formats.inputs.spelling import precision_of
from ncu_roofline.formats.inputs.tables import ImportedPoint, PointTable
from ncu_roofline.formats.inputs.text import cell_number, damaged, row_of, text_of

HEADING = re.compile(r"^[ \t]*TABLE,(?:Region [^,\n]*,)?Group \d+ (?:Raw|Metric)\b", re.MULTILINE)
_KIND = re.compile(r"Group (\d{1,9}) (Raw|Metric)( STAT)?", re.IGNORECASE)
_STAT = " STAT"
_ANY_NUMBER = 1 << 30  # of rows, where the heading gives none
# The metrics that are read: those that may count operations or bytes, and the time.  Others may be infinite (cycles per
# instruction of an idle thread).
_READ = re.compile(r"FLOP|data volume|Runtime \(RDTSC\)|call count", re.IGNORECASE)
RUNTIME = "Runtime (RDTSC) [s]"
_PREFIXES = ("DP", "SP", "HP", "")
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


@dataclass
class Group:
    """One group of one region: metrics by thread and, in ``statistics``, by Sum, Min, Max, Avg; NaN cells are absent.

    ``run`` counts from 0 where one file holds the output of several runs.  ``incomplete`` metrics lack the cell of some thread,
    so nothing can be said of all.
    """

    region: str
    number: int
    name: str
    run: int = 0
    cpu: str = ""
    cpu_type: str = ""
    calls: int = 1
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    statistics: dict[str, dict[str, float]] = field(default_factory=dict)
    incomplete: set[str] = field(default_factory=set)


class _LikwidReader:
    """Reads line by line; what stands before and between the tables is the application's output."""

    def __init__(self, path: str) -> None:
        self.groups: dict[tuple[int, str, int], Group] = {}
        self._path = path
        self._met: Counter[tuple[str, int, str]] = Counter()
        self._facts: dict[str, str] = {}
        self._group: Group | None = None  # of the table that is read, below its heading
        self._begun = self._rows = self._read = 0
        self._metrics = self._statistics = False
        self._columns: list[str] = []

    def line(self, number: int, cells: list[str]) -> None:
        """One line that holds something."""
        if cells[0] in ("TABLE", "STRUCT"):
            self.finish()
            if cells[0] == "TABLE":
                self._open(number, cells)
        elif cells[0] in ("CPU name:", "CPU type:"):
            self._facts[cells[0]] = ",".join(cells[1:])
        elif self._group is None:
            return
        elif cells[0] in ("Metric", "Event", "Region Info"):
            self._columns = cells[1:]
        elif cells[0] == "call count" and not self._metrics:
            self._group.calls = max(1, int(max(self._numbers(number, "call count", cells).values(), default=1)))
        elif self._metrics and self._columns and self._read < self._rows:
            self._read += 1
            if len(cells) - 1 > len(self._columns):
                raise damaged(self._path, f"line {number} has {len(cells) - 1} values for {len(self._columns)} columns")
            name = cells[0].removesuffix(_STAT)
            if _READ.search(name):
                numbers = self._numbers(number, name, cells)
                (self._group.statistics if self._statistics else self._group.metrics)[name] = numbers
                if len(numbers) < len(self._columns) and not self._statistics:
                    self._group.incomplete.add(name)

    def _open(self, number: int, cells: list[str]) -> None:
        found = next(((place, match) for place, cell in enumerate(cells) if (match := _KIND.fullmatch(cell))), None)
        if found is None:
            raise damaged(self._path, f"line {number} is no heading of a table of events or metrics")
        place, match = found
        region = cells[1].removeprefix("Region ") if place > 1 else ""
        name = next((cell for cell in cells[place + 1 :] if not cell.isdigit()), "")
        same = (region, int(match.group(1)), match.group().lower())
        run = self._met[same]  # a table that was there is the output of another run, appended to the same file
        self._met[same] += 1
        group = self._group = self.groups.setdefault((run, *same[:2]), Group(region, same[1], name, run))
        group.name = group.name or name
        group.cpu = group.cpu or self._facts.get("CPU name:", "")
        group.cpu_type = group.cpu_type or self._facts.get("CPU type:", "")
        self._metrics, self._statistics = match.group(2).lower() == "metric", bool(match.group(3))
        self._rows = next((int(cell) for cell in cells[place + 1 :] if re.fullmatch(r"[0-9]{1,9}", cell)), _ANY_NUMBER)
        self._columns, self._read, self._begun = [], 0, number

    def _numbers(self, line: int, name: str, cells: list[str]) -> dict[str, float]:
        columns = self._columns if self._metrics else map(str, range(len(cells)))
        values = {
            column: cell_number(self._path, f"{name} in line {line}", cell)
            for column, cell in zip(columns, cells[1:], strict=False)
        }
        return {column: value for column, value in values.items() if value is not None}

    def finish(self) -> None:
        """The end of a table.  Raises RooflineError where it has not all of its rows."""
        if self._group and self._metrics and self._read != self._rows != _ANY_NUMBER:
            reason = f"the table in line {self._begun} has {self._read} of its {self._rows} metrics"
            raise damaged(self._path, reason, "Give LIKWID's complete output.")
        self._group = None


def recognises(head: str) -> bool:
    """Text with the heading of a table of events or metrics."""
    return HEADING.search(head) is not None


def read(path: str | PathLike[str]) -> PointTable:
    """One point per region.  Raises RooflineError for damaged tables, and where no group counts operations or bytes."""
    name = fspath(path)
    reader = _LikwidReader(name)
    for number, line in enumerate(text_of(path).split("\n"), 1):
        cells = row_of(line)
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            reader.line(number, cells)
    reader.finish()
    timed = [group for group in reader.groups.values() if group.metrics or group.statistics]
    if not timed:
        next_step = "Measure a performance group, such as `likwid-perfctr -g MEM_DP`."
        raise damaged(path, "it holds raw events and no metrics, as of a set of events of one's own", next_step)
    regions: dict[tuple[int, str], list[Group]] = {}
    for group in timed:
        regions.setdefault((group.run, group.region), []).append(group)
    several = any(run for run, _ in regions)
    points, warnings = [], []
    for (run, region), groups in regions.items():
        point, sentences = _Region(groups).point(region or Path(name).stem, f"run {run + 1}" if several else "")
        points.append(point)
        warnings += sentences
    if not any(point.work or point.traffic for point in points):
        found = listed(group.name or f"group {group.number}" for group in timed)
        next_step = "Measure FLOPS_DP, FLOPS_SP, MEM_DP, MEM_SP, L2, L3 or MEM."
        raise damaged(path, f"its groups ({found}) count neither floating-point operations nor bytes", next_step)
    said = tuple(f"{name}: {sentence}." for sentence in dict.fromkeys(warnings))
    return PointTable(path=name, format="likwid", points=tuple(points), warnings=said)


class _Region:
    """The groups of one region, summed up."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups = groups
        self.work: dict[str, float] = {}
        self.traffic: dict[str, float] = {}
        self.columns: list[str] = []
        self.notes: list[str] = []
        self.unused: list[str] = []
        self.left_out: list[str] = []

    def point(self, name: str, label: str) -> tuple[ImportedPoint, list[str]]:
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
            label=label,
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
        self.left_out += [f'"{name}" left out: it has no number for some thread' for name in names if name in group.incomplete]
        rates = [(name, match) for name in names if (match := _WORK.fullmatch(name))]
        for prefix in _PREFIXES:
            precision = precision_of(prefix)
            found = [(name, match.group(2)) for name, match in rates if (match.group(1) or "").upper() == prefix]
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
        for name in names:
            level = _VOLUMES.get(name.removesuffix(_UNIT), "") if name.endswith(_UNIT) else ""
            # The groups HBM* name the metric like those of DDR memory do.
            if level == "dram" and group.name.startswith("HBM") and name.startswith("Memory"):
                level = "mcdram" if "Knights" in group.cpu_type or "Phi" in group.cpu_type + group.cpu else "hbm"
            if level and level not in self.traffic:
                self._keep(self.traffic, level, name, _total(group, name) * 1e9 * scale)
            elif not _WORK.fullmatch(name) and not level and _COULD_COUNT.search(name) and not _PART.search(name):
                self.unused.append(name)

    def _keep(self, target: dict[str, float], key: str, name: str, value: float) -> None:
        if not math.isnan(value):
            target[key] = value
            self.columns.append(name)


def _runtime(group: Group) -> float:
    """The longest time of any thread in seconds, NaN where it is missing."""
    if RUNTIME in group.incomplete:
        return math.nan
    return max(group.metrics.get(RUNTIME, {}).values(), default=group.statistics.get(RUNTIME, {}).get("Max", math.nan))


def _operations(group: Group, name: str) -> float:
    """Rate times runtime over all threads, in the rate's unit without the time."""
    if {name, RUNTIME} & group.incomplete:
        return math.nan
    runtimes = group.metrics.get(RUNTIME, {})
    products = [rate * runtimes[thread] for thread, rate in group.metrics.get(name, {}).items() if thread in runtimes]
    if products:
        return math.fsum(products)
    return group.statistics.get(name, {}).get("Sum", math.nan) * _runtime(group)


def _total(group: Group, name: str) -> float:
    if name in group.incomplete:
        return math.nan
    volumes = list(group.metrics.get(name, {}).values())
    return math.fsum(volumes) if volumes else group.statistics.get(name, {}).get("Sum", math.nan)
