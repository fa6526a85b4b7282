"""Benchmark: the rules on every launch of a report, by `advise` and `annotate`, as ratios to `show` of the same report.

``python tests/perf/advise.py [--kernels 391] [--repeat 3] [--report FILE]`` makes a report of that many launches with as many
metrics as the full set has (all that our sections ask for, the counters that other rules look at, and fillers), or takes FILE.
Not a test: machines differ.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from ncu_roofline.formats.report import KernelData, ReportData, write_report
from tests.perf.bench import kernels

# What full sets hold besides rooflines and our rules read.
_LOOKED_AT = {
    "gpu__time_duration.sum": 1e6,
    "launch__grid_size": 2000,
    "launch__waves_per_multiprocessor": 3.7,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 9e7,
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 9e6,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": 3e7,
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": 3e6,
    "smsp__thread_inst_executed_per_inst_executed.ratio": 30.0,
    "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio": 28.0,
    "sm__inst_executed_pipe_xu.sum": 1e6,
    "smsp__inst_executed.sum": 1e8,
}
_FILLERS = 400


def launches(count: int) -> Iterator[KernelData]:
    """Launches of the reading benchmark with the metrics of a full set."""
    fillers = {f"breakdown__unit_{k}.pct": 1.5 * k for k in range(_FILLERS)}
    for one in kernels(count):
        yield replace(one, metrics={**one.metrics, **_LOOKED_AT, **fillers}, sections=())  # theirs are filling, not messages


def seconds(repeat: int, *words: str) -> float:
    """The median time of a command."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    command = [sys.executable, "-m", "ncu_roofline", *words]
    times = []
    for _ in range(repeat + 1):  # the first is not counted
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def main() -> None:
    """Time the commands and print one row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=391)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--report", help="time this report instead of a made-up one")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path = args.report or str(Path(name) / "launches.ncu-rep")
        if not args.report:
            write_report(path, ReportData(launches(args.kernels)))
        copy = str(Path(name) / "annotated.ncu-rep")
        commands = {
            "show": ["show", path],
            "advise": ["advise", path],
            "advise --json": ["advise", "--json", path],
            "annotate": ["annotate", path, "-o", copy, "--force"],
        }
        print(f"{'command':16}{'seconds':>9}{'x show':>8}")
        shown = 0.0
        for label, words in commands.items():
            taken = seconds(args.repeat, *words)
            shown = shown or taken
            print(f"{label:16}{taken:9.2f}{taken / shown:8.1f}", flush=True)


if __name__ == "__main__":
    main()
