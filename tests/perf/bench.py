"""Benchmarks: how fast and how small, as ratios to a baseline measured in the same run.

``python tests/perf/bench.py [--kernels 3000] [--repeat 5]`` makes a report of that many kernels (20 kB each: 300 metrics, a
section and per-instance values, as real reports have) and prints one row per benchmark.  Not a test: machines differ.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from ncu_roofline.chips import load_spec
from ncu_roofline.formats.report import KernelData, ReportData, write_report
from tests.published_report import gpp_report

CHIP = (8, 0)
FILLERS = 250
SECTION = 6000  # bytes
INSTANCES = 700


def kernels(count: int) -> Iterator[KernelData]:
    """``count`` kernels with complete hierarchical metrics of an A100 among metrics that no roofline needs."""
    wanted = load_spec().collect(CHIP, ["fp64", "fp32", "fp16"], ["l1", "l2", "dram"])
    device = {
        "device__attribute_display_name": "NVIDIA A100-SXM4-40GB",
        "device__attribute_compute_capability_major": CHIP[0],
        "device__attribute_compute_capability_minor": CHIP[1],
        "device__attribute_multiprocessor_count": 108,
        "device__attribute_fbp_count": 10,
        "device__attribute_num_l2s_per_fbp": 8,
        "device__attribute_max_gpu_frequency_khz": 1_410_000,
        "device__attribute_max_mem_frequency_khz": 1_215_000,
        "device__attribute_global_memory_bus_width": 5120,
    }
    section = os.urandom(SECTION)
    section = b"\xfa\x7f" + len(section).to_bytes(2, "little") + section  # not a section we know; never decoded here
    for i in range(count):
        metrics: dict[str, float | int | str] = dict(device)
        for k, name in enumerate(wanted):
            metrics[name] = 1.0e9 if name.endswith("per_second") else 1.0e6 + 37.0 * (i + 1) * (k + 1)
        for k in range(FILLERS):
            metrics[f"filler__metric_{k}.avg"] = float(i * k)
        instances = {"launch__occupancy_per_register_count": [(n, n * i) for n in range(INSTANCES)]}
        yield KernelData(
            name=f"void solver<{i % 40}>(double *, int)",
            function_name="solver",
            metrics=metrics,
            instances=instances,
            sections=(section,),
        )


# Each prints the seconds its own work took, imports and what is loaded once (data files, message classes) excluded, so that
# MB/s is of the work; memory is of the whole process.
EXTRACT = """
import sys, time
from ncu_roofline.model import roofline
roofline(sys.argv[2]).points
start = time.perf_counter()
result = roofline(sys.argv[1])
points = len(result.points)
print(time.perf_counter() - start, points)
"""
PLAIN_PROTOBUF = """
import sys, time
from tests.perf.plain import every_metric
start = time.perf_counter()
count = every_metric(sys.argv[1])
print(time.perf_counter() - start, count)
"""


def measured(code: str, path: Path, *more: Path) -> tuple[float, float]:
    """Seconds of the work itself and peak memory in MB of the whole process."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path), *map(str, more)], stdout=subprocess.PIPE, env=environment
    )
    assert process.stdout
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit("benchmark failed")
    return float(output.split()[0]), usage.ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024)


def median_of(repeat: int, one: Callable[[], tuple[float, float]]) -> tuple[float, float]:
    """Medians over ``repeat`` runs after one that is not counted."""
    one()
    runs = [one() for _ in range(repeat)]
    return statistics.median(run[0] for run in runs), statistics.median(run[1] for run in runs)


def reading(folder: Path, count: int, repeat: int) -> None:
    """Opening a report and extracting all of its roofline points, against a plain protobuf parse of every metric."""
    warm = folder / "warm.ncu-rep"
    write_report(warm, gpp_report())
    print(f"{'report':28}{'MB':>7}{'ours s':>9}{'MB/s':>8}{'peak MB':>9}{'x file':>8}{'plain s':>9}{'ratio':>7}")
    for kernels_ in (count // 3, count, count * 10 // 3):
        path = folder / f"{kernels_}.ncu-rep"
        write_report(path, ReportData(kernels(kernels_)))
        size = path.stat().st_size / 1e6
        ours, memory = median_of(repeat, lambda path=path: measured(EXTRACT, path, warm))
        plain, _ = median_of(1, lambda path=path: measured(PLAIN_PROTOBUF, path))
        figures = f"{size:7.1f}{ours:9.3f}{size / ours:8.0f}{memory:9.0f}{memory / size:8.2f}{plain:9.2f}{plain / ours:7.1f}"
        print(f"{f'{kernels_} kernels':28}{figures}")


def commands(folder: Path, repeat: int) -> None:
    """Whole commands, against starting the interpreter and doing nothing."""
    report = folder / "small.ncu-rep"
    write_report(report, gpp_report())
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    base = [sys.executable, "-c", "pass"]
    ours = [sys.executable, "-m", "ncu_roofline"]
    rows = {
        "python -c pass": base,
        "ncu-roofline --help": [*ours, "--help"],
        "ncu-roofline show": [*ours, "show", str(report)],
        "ncu-roofline render .png": [*ours, "render", str(report), "-o", str(folder / "small.png"), "--force"],
        "ncu-roofline render .html": [*ours, "render", str(report), "-o", str(folder / "small.html"), "--force"],
    }
    print(f"\n{'command':28}{'seconds':>9}{'ratio':>8}")
    nothing = 0.0
    for name, command in rows.items():

        def once(command: list[str] = command) -> tuple[float, float]:
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
            return time.perf_counter() - start, 0.0

        seconds, _ = median_of(repeat, once)
        nothing = nothing or seconds
        print(f"{name:28}{seconds:9.3f}{seconds / nothing:8.1f}")


def main() -> None:
    """Run all benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=3000)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        reading(Path(name), args.kernels, args.repeat)
        commands(Path(name), args.repeat)


if __name__ == "__main__":
    main()
