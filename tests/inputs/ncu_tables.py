"""Tables as Nsight Compute prints them, made of made-up numbers: one kernel on an A100, or as many as asked for."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

# Metric -> (unit, printed value) of one launch: 2 ms, 1.5 GHz, 3e9 FLOP in double precision, 1.5 GB from DRAM.
SUMS: dict[str, tuple[str, str]] = {
    "gpu__time_duration.sum": ("msecond", "2.00"),
    "sm__cycles_elapsed.avg": ("cycle", "3000000"),
    "sm__cycles_elapsed.avg.per_second": ("cycle/nsecond", "1.50"),
    "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum": ("inst", "500000000"),
    "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum": ("inst", "500000000"),
    "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum": ("inst", "1000000000"),
    "dram__bytes.sum": ("Gbyte", "1.50"),
    "lts__t_sectors_srcunit_tex.sum": ("sector", "93750000"),
    "l1tex__t_bytes.sum": ("Gbyte", "6.00"),
}
IDENTITY = {
    "ID": "0",
    "Process ID": "4711",
    "Process Name": "app",
    "Host Name": "node1",
    "Kernel Name": "void ns::axpy<double>(double *, int)",
    "Context": "1",
    "Stream": "7",
    "Block Size": "(256, 1, 1)",
    "Grid Size": "(108, 2, 1)",
    "Device": "0",
    "CC": "8.0",
}
# Releases before 2023 print the time of day instead of size, device and capability.
OLD_IDENTITY = {
    **{name: IDENTITY[name] for name in ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name")},
    "Kernel Time": "2021-Mar-01 12:00:00",
    "Context": "1",
    "Stream": "7",
}

Metrics = Mapping[str, tuple[str, str]]


def text_of(rows: Sequence[Sequence[str]]) -> str:
    """Rows as CSV."""
    stream = io.StringIO()
    csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def wide(*launches: Metrics, identity: Mapping[str, str] = IDENTITY) -> list[list[str]]:
    """`--page raw`: a row of names, a row of units, and one row per launch."""
    names = list(dict.fromkeys(name for launch in launches for name in launch))
    units = {name: unit for launch in launches for name, (unit, _) in launch.items()}
    rows = [[*identity, *names], [*("" for _ in identity), *(units[name] for name in names)]]
    for number, launch in enumerate(launches):
        facts = {**identity, "ID": str(number)}
        rows.append([*facts.values(), *(launch.get(name, ("", ""))[1] for name in names)])
    return rows


def long(
    *launches: Metrics, identity: Mapping[str, str] = IDENTITY, section: str = "Command line profiler metrics"
) -> list[list[str]]:
    """What live output and `--page details` print: one row per metric, and one for a rule, which alone is complete."""
    rows = [[*identity, "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name", "Rule Description"]]
    for number, launch in enumerate(launches):
        facts = [*{**identity, "ID": str(number)}.values()]
        rows += [[*facts, section, name, unit, value, ""] for name, (unit, value) in launch.items()]
        rows.append([*facts, "SpeedOfLight", "", "", "", "Bottleneck", 'Look at "that",\nsaid in two lines'])
    return rows
