"""LIKWID's CSV as version 5 prints it, made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Metrics = Mapping[str, Sequence[object]]
"""Metric -> its value on each thread."""


def output(groups: Sequence[tuple[str, Metrics]], region: str = "", cpu_type: str = "Intel Skylake SP processor") -> str:
    """One region (or the whole run) with its groups: facts, raw events and metrics."""
    lines = []
    for number, (name, metrics) in enumerate(groups, 1):
        heads = ",".join(f"HWThread {thread}" for thread in range(len(next(iter(metrics.values())))))
        where = f"Region {region},Group {number}" if region else f"Group {number}"
        lines += ["STRUCT,Info,3,,", "CPU name:,Intel(R) Xeon(R) Gold 6148,,", f"CPU type:,{cpu_type},,"]
        lines += [f"TABLE,{where} Raw,{name},1,,", f"Event,Counter,{heads}", f"TABLE,{where} Metric,{name},{len(metrics)},,"]
        lines += [f"Metric,{heads},,", *(f"{metric},{','.join(map(str, values))},," for metric, values in metrics.items())]
    return "\n".join([*lines, ""])
