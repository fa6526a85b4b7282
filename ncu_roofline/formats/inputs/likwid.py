"""LIKWID's CSV of groups such as FLOPS_DP, MEM_DP, L2 and L3: one point per region of the marker API, or one for the whole run.

Work is the rate of each thread times its own runtime, summed over the threads; traffic is the sum of the data volumes (uncore
volumes stand at one thread of each socket); the time is the longest of any thread.  Several groups of one run are
measured in turns: their rates stand for the whole of it.  LIKWID's GBytes are 1e9 byte, its MFLOP 1e6 FLOP.  It counts no fused
operations apart, so there is no FMA share.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from os import PathLike

from ncu_roofline.base.texts import listed
from ncu_roofline.formats.inputs.tables import ImportedPoint, PointTable
from ncu_roofline.formats.inputs.text import Table, row_of, text_of
from ncu_roofline.formats.inputs.words import load_words, precision_of

_KIND = re.compile(r"Group (\d{1,9}) (Raw|Metric)( STAT)?", re.IGNORECASE)
_COUNT = re.compile(r"[0-9]{1,9}")
# The metrics that are read: those that may count operations or bytes, and the time.  Others may be infinite (cycles per
# instruction of an idle thread).
_COULD_COUNT = re.compile(r"FLOP|data volume", re.IGNORECASE)
_RUNTIME = "Runtime (RDTSC) [s]"
_CPU = ("CPU name:", "CPU type:")
# "DP [MFLOP/s]" since version 4.2, "DP MFLOP/s" before; not "DP [MFLOP/s] (AVX assumed)", of CPUs that count vector
# instructions of unknown width.
_WORK = re.compile(r"(?:(DP|SP|HP) )?\[?MFLOPS?/s\]?", re.IGNORECASE)
_UNIT = " [GBytes]"
# Parts of volumes that are read, and rates that say the same as the volumes.
_PART = re.compile(r"(load|evict|read|write|writeback)\b.*data volume|^(AVX\w*|SSE|Packed|Scalar) ", re.IGNORECASE)


@dataclass
class _Group:
    """One group of one region: metrics by thread, and those that some thread ``lacks``, of which nothing can be said."""

    number: int
    name: str = ""
    cpu: str = ""
    cpu_type: str = ""
    calls: int = 1
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    lacking: list[str] = field(default_factory=list)


def read(path: str | PathLike[str]) -> PointTable:
    """One point per region.  Raises RooflineError for damaged tables, and where no group counts operations or bytes."""
    table = Table(path)
    regions = _regions(table)
    several = any(run for run, _ in regions)
    points, sentences = [], []
    for (run, region), groups in regions.items():
        point, more = _point(groups, region or table.stem, f"run {run + 1}" if several else "")
        points.append(point)
        sentences += more
    if not any(point.work or point.traffic for point in points):
        names = listed(group.name or f"group {group.number}" for groups in regions.values() for group in groups)
        next_step = "Measure FLOPS_DP, FLOPS_SP, MEM_DP, MEM_SP, L2, L3 or MEM with `likwid-perfctr -g`."
        raise table.damaged(
            f"its groups ({names or 'raw events'}) count neither floating-point operations nor bytes", next_step
        )
    return PointTable(table.path, "likwid", tuple(points), warnings=table.warnings(sentences))


def _regions(table: Table) -> dict[tuple[int, str], list[_Group]]:
    """The groups with metrics by run (several where one file holds the output of several) and region."""
    groups: dict[tuple[int, str, int], _Group] = {}
    met: Counter[tuple[str, int, str]] = Counter()
    facts: dict[str, str] = {}
    printed: list[list[tuple[int, list[str]]]] = []  # what begins with the heading of a table or of facts
    for line, text in enumerate(text_of(table.path).split("\n"), 1):
        cells = row_of(text)
        while cells and not cells[-1]:
            cells.pop()
        if cells and cells[0] in ("TABLE", "STRUCT"):
            printed.append([])
        if cells and printed:
            printed[-1].append((line, cells))
    for (line, heading), *rows in printed:
        if heading[0] == "STRUCT":  # what stands between and above tables is the application's output
            facts |= {cells[0]: ",".join(cells[1:]) for _, cells in rows if cells[0] in _CPU}
            continue
        place, kind = next(((at, match) for at, cell in enumerate(heading) if (match := _KIND.fullmatch(cell))), (0, None))
        if kind is None:
            raise table.damaged(f"line {line} is no heading of a table of events or metrics")
        same = (heading[1].removeprefix("Region ") if place > 1 else "", int(kind[1]), kind[0].lower())
        run = met[same]  # a table that was there is the output of another run, appended to the same file
        met[same] += 1
        group = groups.setdefault((run, *same[:2]), _Group(same[1]))
        rest = heading[place + 1 :]
        group.name = group.name or next((cell for cell in rest if not cell.isdigit()), "")
        group.cpu, group.cpu_type = group.cpu or facts.get(_CPU[0], ""), group.cpu_type or facts.get(_CPU[1], "")
        if kind[2].lower() == "raw":
            calls = [(at, cell) for at, cells in rows if cells[0] == "call count" for cell in cells[1:]]
            group.calls = max([group.calls, *(int(table.number("call count", at, cell) or 0) for at, cell in calls)])
            continue
        count = next((int(cell) for cell in rest if _COUNT.fullmatch(cell)), None)
        begin = next((at for at, (_, cells) in enumerate(rows) if cells[0] == "Metric"), len(rows))
        metrics = rows[begin + 1 :][:count]
        if count is not None and len(metrics) != count:
            reason = f"the table in line {line} has {len(metrics)} of its {count} metrics"
            raise table.damaged(reason, "Give LIKWID's complete output.")
        columns = rows[begin][1][1:] if metrics else []
        for at, (name, *cells) in metrics if not kind[3] else ():  # statistics are of the threads
            if len(cells) > len(columns):
                raise table.damaged(f"line {at} has {len(cells)} values for {len(columns)} columns")
            if name == _RUNTIME or _COULD_COUNT.search(name):
                values = [value for cell in cells if (value := table.number(name, at, cell)) is not None]
                if len(values) == len(columns):
                    group.metrics[name] = dict(zip(columns, values, strict=True))
                else:
                    group.lacking.append(name)
    regions: dict[tuple[int, str], list[_Group]] = {}
    for (run, region, _), group in groups.items():
        if group.metrics or group.lacking:
            regions.setdefault((run, region), []).append(group)
    return regions


def _point(groups: list[_Group], name: str, label: str) -> tuple[ImportedPoint, list[str]]:
    """The groups of one region summed up, and what to warn of, as sentences without full stop."""
    work: dict[str, float] = {}
    traffic: dict[str, float] = {}
    columns, notes, unused, warnings = [], [], [], []
    times = [max(group.metrics.get(_RUNTIME, {}).values(), default=math.nan) for group in groups]
    seconds = math.fsum(times)
    for group, time in zip(groups, times, strict=True):
        scale, runtimes = seconds / time if len(times) > 1 and time > 0 else 1.0, group.metrics.get(_RUNTIME, {})
        warnings += [f'"{metric}" left out: it has no number for some thread' for metric in group.lacking]
        for metric, by_thread in sorted(group.metrics.items(), key=lambda one: not _WORK.fullmatch(one[0])):
            match = _WORK.fullmatch(metric)
            level = load_words().likwid.get(metric.removesuffix(_UNIT), "") if metric.endswith(_UNIT) else ""
            # The groups HBM* name the metric like those of DDR memory do.
            if level == "dram" and group.name.startswith("HBM") and metric.startswith("Memory"):
                level = "mcdram" if "Knights" in group.cpu_type or "Phi" in group.cpu_type + group.cpu else "hbm"
            if match and precision_of(match[1] or "") not in work and by_thread.keys() <= runtimes.keys():
                done = math.fsum(rate * runtimes[thread] for thread, rate in by_thread.items())
                work[precision_of(match[1] or "")] = done * 1e6 * scale
                columns.append(metric)
            elif level and level not in traffic and not math.isnan(scale):
                traffic[level] = math.fsum(by_thread.values()) * 1e9 * scale
                columns.append(metric)
            elif not match and not level and _COULD_COUNT.search(metric) and not _PART.search(metric):
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
