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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from os import PathLike

from ncu_roofline.base.texts import listed
from ncu_roofline.formats.inputs.spelling import precision_of
from ncu_roofline.formats.inputs.tables import ImportedPoint, PointTable
from ncu_roofline.formats.inputs.text import Row, Table, row_of, text_of

_HEADING = re.compile(r"^[ \t]*TABLE,(?:Region [^,\n]*,)?Group \d+ (?:Raw|Metric)\b", re.MULTILINE)
_KIND = re.compile(r"Group (\d{1,9}) (Raw|Metric)( STAT)?", re.IGNORECASE)
_COUNT = re.compile(r"[0-9]{1,9}")
# The metrics that are read: those that may count operations or bytes, and the time.  Others may be infinite (cycles per
# instruction of an idle thread).
_COULD_COUNT = re.compile(r"FLOP|data volume", re.IGNORECASE)
_RUNTIME = "Runtime (RDTSC) [s]"
_CPU = ("CPU name:", "CPU type:")
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


@dataclass
class _Group:
    """One group of one region: metrics by thread and, in ``statistics``, by Sum, Min, Max, Avg; None where a cell has none."""

    number: int
    name: str = ""
    cpu: str = ""
    cpu_type: str = ""
    calls: int = 1
    metrics: dict[str, dict[str, float | None]] = field(default_factory=dict)
    statistics: dict[str, dict[str, float | None]] = field(default_factory=dict)

    def incomplete(self, name: str) -> bool:
        """Whether some thread has no number, so nothing can be said of all."""
        return None in self.metrics.get(name, {}).values()

    def threads(self, name: str) -> dict[str, float]:
        """A metric by thread, nothing where it is incomplete."""
        values = self.metrics.get(name, {})
        return {} if self.incomplete(name) else {thread: value for thread, value in values.items() if value is not None}

    def overall(self, name: str, how: Callable[[Iterable[float]], float], statistic: str) -> float:
        """What all threads make together, else as it is stated; NaN where it is missing."""
        values, stated = self.threads(name).values(), self.statistics.get(name, {}).get(statistic)
        return how(values) if values else math.nan if stated is None or self.incomplete(name) else stated

    def seconds(self) -> float:
        """The longest time of any thread."""
        return self.overall(_RUNTIME, max, "Max")

    def operations(self, name: str) -> float:
        """Rate times runtime over all threads, in the rate's unit without the time."""
        runtimes = self.threads(_RUNTIME)
        products = [rate * runtimes[thread] for thread, rate in self.threads(name).items() if thread in runtimes]
        return math.fsum(products) if products else self.overall(name, math.fsum, "Sum") * self.seconds()

    def level(self, metric: str) -> str:
        """The level whose bytes a metric counts, "" for others."""
        level = _VOLUMES.get(metric.removesuffix(_UNIT), "") if metric.endswith(_UNIT) else ""
        # The groups HBM* name the metric like those of DDR memory do.
        if level == "dram" and self.name.startswith("HBM") and metric.startswith("Memory"):
            return "mcdram" if "Knights" in self.cpu_type or "Phi" in self.cpu_type + self.cpu else "hbm"
        return level


def recognises(head: str) -> bool:
    """Text with the heading of a table of events or metrics."""
    return _HEADING.search(head) is not None


def read(path: str | PathLike[str]) -> PointTable:
    """One point per region.  Raises RooflineError for damaged tables, and where no group counts operations or bytes."""
    table = Table(path)
    regions = _regions(table)
    if not regions:
        next_step = "Measure a performance group, such as `likwid-perfctr -g MEM_DP`."
        raise table.damaged("it holds raw events and no metrics, as of a set of events of one's own", next_step)
    several = any(run for run, _ in regions)
    points, sentences = [], []
    for (run, region), groups in regions.items():
        point, more = _point(groups, region or table.stem, f"run {run + 1}" if several else "")
        points.append(point)
        sentences += more
    if not any(point.work or point.traffic for point in points):
        names = listed(group.name or f"group {group.number}" for groups in regions.values() for group in groups)
        next_step = "Measure FLOPS_DP, FLOPS_SP, MEM_DP, MEM_SP, L2, L3 or MEM."
        raise table.damaged(f"its groups ({names}) count neither floating-point operations nor bytes", next_step)
    return PointTable(table.path, "likwid", tuple(points), warnings=table.warnings(sentences))


def _printed(text: str) -> Iterator[tuple[dict[str, str], Row, list[Row]]]:
    """The tables: facts on the CPU above, heading, rows; what stands before and between them is the application's output."""
    facts: dict[str, str] = {}
    table: tuple[dict[str, str], Row, list[Row]] | None = None
    for number, line in enumerate([*text.split("\n"), "STRUCT"], 1):
        cells = row_of(line)
        while cells and not cells[-1]:
            cells.pop()
        if cells and cells[0] in ("TABLE", "STRUCT"):
            if table:
                yield table
            table = (dict(facts), Row(number, cells), []) if cells[0] == "TABLE" else None
        elif cells and cells[0] in _CPU:
            facts[cells[0]] = ",".join(cells[1:])
        elif cells and table:
            table[2].append(Row(number, cells))


def _regions(table: Table) -> dict[tuple[int, str], list[_Group]]:
    """The groups with metrics by run (several where one file holds the output of several) and region."""
    groups: dict[tuple[int, str, int], _Group] = {}
    met: Counter[tuple[str, int, str]] = Counter()
    for facts, heading, rows in _printed(text_of(table.path)):
        place, kind = next(
            ((at, match) for at, cell in enumerate(heading.cells) if (match := _KIND.fullmatch(cell))), (0, None)
        )
        if kind is None:
            raise table.damaged(f"line {heading.line} is no heading of a table of events or metrics")
        region = heading.cells[1].removeprefix("Region ") if place > 1 else ""
        rest = heading.cells[place + 1 :]
        same = (region, int(kind[1]), kind[0].lower())
        run = met[same]  # a table that was there is the output of another run, appended to the same file
        met[same] += 1
        group = groups.setdefault((run, *same[:2]), _Group(same[1]))
        group.name = group.name or next((cell for cell in rest if not cell.isdigit()), "")
        group.cpu, group.cpu_type = group.cpu or facts.get(_CPU[0], ""), group.cpu_type or facts.get(_CPU[1], "")
        if kind[2].lower() == "raw":
            calls = [row for row in rows if row.cells[0] == "call count"]
            counts = [table.number("call count", row.line, cell) for row in calls for cell in row.cells[1:]]
            group.calls = max([group.calls, *(int(number) for number in counts if number)])
            continue
        count = next((int(cell) for cell in rest if _COUNT.fullmatch(cell)), None)
        begin = next((at for at, row in enumerate(rows) if row.cells[0] == "Metric"), len(rows))
        metrics = rows[begin + 1 :][:count]
        if count is not None and len(metrics) != count:
            reason = f"the table in line {heading.line} has {len(metrics)} of its {count} metrics"
            raise table.damaged(reason, "Give LIKWID's complete output.")
        for row in metrics:
            _take(table, group.statistics if kind[3] else group.metrics, rows[begin].cells[1:], row)
    regions: dict[tuple[int, str], list[_Group]] = {}
    for (run, region, _), group in groups.items():
        if group.metrics or group.statistics:
            regions.setdefault((run, region), []).append(group)
    return regions


def _take(table: Table, metrics: dict[str, dict[str, float | None]], columns: list[str], row: Row) -> None:
    name, cells = row.cells[0].removesuffix(" STAT"), row.cells[1:]
    if len(cells) > len(columns):
        raise table.damaged(f"line {row.line} has {len(cells)} values for {len(columns)} columns")
    if name == _RUNTIME or _COULD_COUNT.search(name):
        values = [table.number(name, row.line, cell) for cell in cells]
        metrics[name] = dict(zip(columns, [*values, *[None] * (len(columns) - len(cells))], strict=True))


def _point(groups: list[_Group], name: str, label: str) -> tuple[ImportedPoint, list[str]]:
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
        warnings += [f'"{metric}" left out: it has no number for some thread' for metric in names if group.incomplete(metric)]
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
            level = group.level(metric)
            if level and level not in traffic:
                keep(traffic, level, metric, group.overall(metric, math.fsum, "Sum") * 1e9 * scale)
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
