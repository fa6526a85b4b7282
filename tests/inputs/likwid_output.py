"""LIKWID's CSV as versions 4.0, 4.x and 5.x print it, made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Metrics = Mapping[str, Sequence[object]]
"""Metric -> its value on each thread."""

CPU = "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz"


@dataclass(frozen=True)
class Style:
    """How a version prints: the word for a thread, whether headings name the group, and how the statistics are marked."""

    thread: str = "HWThread"
    named: bool = True
    mark: str = "STAT"


STYLES = {"4.0": Style("Core", named=False, mark="Stat"), "4.3": Style("Core"), "5.2": Style()}


def output(
    groups: Sequence[tuple[str, Metrics]],
    region: str = "",
    style: Style = STYLES["5.2"],
    calls: int = 0,
    cpu_type: str = "Intel Skylake SP processor",
) -> str:
    """One region (or the whole run) with its groups: facts, raw events, metrics, and statistics from two threads on."""
    return "".join(_group(number, *group, region, style, calls, cpu_type) for number, group in enumerate(groups, 1))


def _group(number: int, name: str, metrics: Metrics, region: str, style: Style, calls: int, cpu_type: str) -> str:
    threads = len(next(iter(metrics.values())))
    heads = ",".join(f"{style.thread} {thread}" for thread in range(threads))
    where = f"Region {region}," if region else ""
    group = f"{name}," if style.named else ""
    lines = ["STRUCT,Info,3,,", f"CPU name:,{CPU},,", f"CPU type:,{cpu_type},,", "CPU clock:,2.4 GHz,,"]
    lines.append(f"TABLE,{where}Group {number} Raw,{group}1,,")
    if calls:
        lines += [f"Region Info,{heads}", "RDTSC Runtime [s]" + ",0.5" * threads, "call count" + f",{calls}" * threads]
    lines += [f"Event,Counter,{heads}", "INSTR_RETIRED_ANY,FIXC0" + ",123456" * threads]
    lines += [f"TABLE,{where}Group {number} Metric,{group}{len(metrics)},,", f"Metric,{heads},,"]
    lines += [f"{metric},{','.join(str(value) for value in values)},," for metric, values in metrics.items()]
    if threads > 1:
        lines += statistics(number, name, metrics, region, style)
    return "\n".join(lines) + "\n"


def statistics(number: int, name: str, metrics: Metrics, region: str = "", style: Style = STYLES["5.2"]) -> list[str]:
    """The table of Sum, Min, Max, Avg over the threads."""
    where = f"Region {region}," if region else ""
    group = f"{name}," if style.named else ""
    lines = [f"TABLE,{where}Group {number} Metric {style.mark},{group}{len(metrics)},,", "Metric,Sum,Min,Max,Avg"]
    for metric, values in metrics.items():
        numbers = [float(str(value)) for value in values if str(value) not in ("-", "inf")]
        cells = (sum(numbers), min(numbers), max(numbers), sum(numbers) / len(numbers))
        lines.append(f"{metric} STAT,{','.join(map(repr, cells))}")
    return lines
