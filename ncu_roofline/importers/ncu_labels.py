"""Display labels of the details page that stand for exactly one metric of a roofline.

Compared with `--print-metric-name label-name` of Nsight Compute 2024.2 on reports of releases from 2020.3 to 2024.3: each of
these labels stood for the same metric in all of them.
"""

from __future__ import annotations

_SPEED_OF_LIGHT = "GPU Speed Of Light"  # "GPU Speed Of Light Throughput" since 2021
_LABELS = {
    (_SPEED_OF_LIGHT, "Duration"): "gpu__time_duration.sum",
    (_SPEED_OF_LIGHT, "SM Frequency"): "gpc__cycles_elapsed.avg.per_second",
    (_SPEED_OF_LIGHT, "DRAM Frequency"): "dram__cycles_elapsed.avg.per_second",
    (_SPEED_OF_LIGHT, "Elapsed Cycles"): "gpc__cycles_elapsed.max",
    ("Memory Workload Analysis", "Memory Throughput"): "dram__bytes.sum.per_second",
    ("Instruction Statistics", "Executed Instructions"): "smsp__inst_executed.sum",
}


def metric_of(section: str, label: str) -> str:
    """The metric that a label stands for in a section, "" if that is not known."""
    return _LABELS.get((section.removesuffix(" Throughput"), label), "")
