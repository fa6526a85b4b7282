"""Benchmarks: how fast and how small, as ratios to a baseline measured in the same run.

    python -m tests.perf.bench [PART ...] [--kernels 3000] [--ranks 1000] [--repeat 5] [--reports FILE ...]

reading    opening a report and extracting all of its roofline points, against plain protobuf reading every metric
commands   whole commands on a small report, against starting the interpreter and doing nothing
launches   `advise` and `annotate` on 391 launches with the metrics of a full set (or on --reports), against `show`
source     `source`, its JSON and its page of the launch with most instructions (bundled, or of --reports), against `show`
ranks      `ranks` on 1,000 reports of 20 kernels: one process, a pool of two, a local dask cluster with two workers

Reports are made up: 20 kB a kernel (300 metrics, a section and per-instance values, as real ones have).  Seconds are the
median of the wall clock, CPU seconds the least of the runs, memory the highest sum over a command's processes.  No tests:
machines differ.
"""

from __future__ import annotations

import argparse
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import psutil

from ncu_roofline import source_roofline
from ncu_roofline.chips import load_spec
from ncu_roofline.formats.report import KernelData, ReportData, Session, write_report
from ncu_roofline.formats.report.session import Process
from ncu_roofline.formats.wire import build_messages, read_schema
from tests.factory import A100
from tests.published_report import gpp_report

ROOT = Path(__file__).resolve().parents[2]
SMOOTH = ROOT / "ncu_roofline" / "data" / "demo" / "smooth-made-up.ncu-repz"
OURS = [sys.executable, "-m", "ncu_roofline"]
FILLERS, SECTION, INSTANCES = 250, 6000, 700  # metrics, bytes, values by instance that no roofline needs
_LOOKED_AT = {  # what full sets hold besides rooflines, and our rules read
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


def kernels(count: int) -> Iterator[KernelData]:
    """``count`` kernels with complete hierarchical metrics of an A100 among metrics that no roofline needs."""
    wanted = load_spec().collect((8, 0), ["fp64", "fp32", "fp16"], ["l1", "l2", "dram"])
    section = b"\xfa\x7f" + SECTION.to_bytes(2, "little") + os.urandom(SECTION)  # none that we know; never decoded here
    for i in range(count):
        metrics: dict[str, float | int | str] = dict(A100)
        for k, name in enumerate(wanted):
            metrics[name] = 1.0e9 if name.endswith("per_second") else 1.0e6 + 37.0 * (i + 1) * (k + 1)
        metrics |= {f"filler__metric_{k}.avg": float(i * k) for k in range(FILLERS)}
        instances = {"launch__occupancy_per_register_count": [(n, n * i) for n in range(INSTANCES)]}
        name = f"void solver<{i % 40}>(double *, int)"
        yield KernelData(name=name, function_name="solver", metrics=metrics, instances=instances, sections=(section,))


def launches(count: int) -> Iterator[KernelData]:
    """The same with the metrics of a full set and without sections."""
    fillers = {f"breakdown__unit_{k}.pct": 1.5 * k for k in range(400)}
    for one in kernels(count):
        yield replace(one, metrics={**one.metrics, **_LOOKED_AT, **fillers}, sections=())


class Cost(NamedTuple):
    """Of a program: seconds on the wall, of processors, MB at most, and what it printed."""

    wall: float
    cpu: float
    memory: float
    printed: str


def run(words: list[str], watch: bool = False) -> Cost:
    """Run a program to its end; memory only if watched, as looking at it takes time."""
    before, start, peak = os.times(), time.perf_counter(), 0.0
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT, text=True) as process:
        while watch and process.poll() is None:
            with suppress(psutil.Error):
                family = psutil.Process(process.pid)
                held = [one.memory_full_info().pss for one in (family, *family.children(recursive=True))]
                peak = max(peak, sum(held) / 1e6)
            time.sleep(0.05)
        printed = process.stdout.read() if process.stdout else ""
    after = os.times()
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} failed")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(time.perf_counter() - start, cpu, peak, printed)


def costs(words: list[str], repeat: int, watch: bool = False) -> Cost:
    """Over ``repeat`` runs after one that is not counted."""
    runs = [run(words, watch) for _ in range(repeat + 1)][1:]
    middle = statistics.median(one.wall for one in runs)
    return Cost(middle, min(one.cpu for one in runs), max(one.memory for one in runs), runs[-1].printed)


def table(rows: dict[str, list[str]], repeat: int) -> None:
    """A row per program, as ratios to the first."""
    print(f"\n{'':34}{'seconds':>9}{'ratio':>8}{'CPU s':>9}{'ratio':>8}")
    first = None
    for name, words in rows.items():
        cost = costs(words, repeat)
        first = first or cost
        ratios = f"{cost.wall:9.3f}{cost.wall / first.wall:8.1f}{cost.cpu:9.3f}{cost.cpu / first.cpu:8.1f}"
        print(f"{name:34}{ratios}", flush=True)


# Each prints the seconds its own work took, imports and what is loaded once (data files, message classes) excluded.
EXTRACT = """
import resource, sys, time
from ncu_roofline.model import roofline
roofline(sys.argv[2]).points
start = time.perf_counter()
points = len(roofline(sys.argv[1]).points)
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
PLAIN = """
import sys, time
from tests.perf.bench import every_metric
start = time.perf_counter()
every_metric(sys.argv[1])
print(time.perf_counter() - start, 0)
"""


def every_metric(path: str) -> list[dict[str, object]]:
    """All scalar metrics of a report through plain protobuf messages, as a script would read them."""
    messages = build_messages(
        "plain",
        read_schema(
            "Value: text=1 bytes, single=2 float, number=3 double, small=4 uint32, count=5 uint64\n\n"
            "Element: id=1 Value, value=2 Value\n\nMetric: name=1 uint32, value=2 Value, list=3 Element*\n\n"
            "Result: metrics=13 Metric*\n\nStrings: strings=1 bytes*\n\n"
            "Header: sources=1 uint32, results=2 uint32, strings=4 Strings\n"
        ),
    )
    data, position, strings, results = Path(path).read_bytes(), 4, list[str](), list[bytes]()

    def record() -> bytes:
        nonlocal position
        (length,) = struct.unpack_from("<I", data, position)
        begin, position = position + 4, position + 4 + length
        return data[begin:position]

    record()
    while position < len(data):
        header = messages["Header"].FromString(record())
        strings += [one.decode() for one in header.strings.strings]
        for _ in range(header.sources):
            record()
        results += [record() for _ in range(header.results)]
    found = []
    for result in results:
        values = {}
        for metric in messages["Result"].FromString(result).metrics:
            for field in ("number", "count", "text", "single", "small"):
                if metric.value.HasField(field):
                    values[strings[metric.name]] = getattr(metric.value, field)
                    break
        found.append(values)
    return found


def reading(folder: Path, args: argparse.Namespace) -> None:
    """Reports of three sizes."""
    warm = folder / "warm.ncu-rep"
    write_report(warm, gpp_report())
    print(f"{'report':28}{'MB':>7}{'ours s':>9}{'MB/s':>8}{'peak MB':>9}{'x file':>8}{'plain s':>9}{'ratio':>7}")
    for count in (args.kernels // 3, args.kernels, args.kernels * 10 // 3):
        path = folder / f"{count}.ncu-rep"
        write_report(path, ReportData(kernels(count)))
        size, found = path.stat().st_size / 1e6, {}
        for name, code in (("ours", EXTRACT), ("plain", PLAIN)):
            runs = [run([sys.executable, "-c", code, str(path), str(warm)]).printed.split() for _ in range(args.repeat + 1)]
            found[name] = [statistics.median(map(float, figures)) for figures in zip(*runs[1:], strict=True)]
        (ours, memory), (plain, _) = found["ours"], found["plain"]
        figures = f"{size:7.1f}{ours:9.3f}{size / ours:8.0f}{memory:9.0f}{memory / size:8.2f}{plain:9.2f}{plain / ours:7.1f}"
        print(f"{f'{count} kernels':28}{figures}", flush=True)


def commands(folder: Path, args: argparse.Namespace) -> None:
    """On a small report."""
    report = folder / "small.ncu-rep"
    write_report(report, gpp_report())
    rows = {"python -c pass": [sys.executable, "-c", "pass"], "--help": [*OURS, "--help"], "show": [*OURS, "show", str(report)]}
    for suffix in ("png", "html"):
        rows[f"render .{suffix}"] = [*OURS, "render", str(report), "-o", str(folder / f"small.{suffix}"), "--force"]
    table(rows, args.repeat)


def rules(folder: Path, args: argparse.Namespace) -> None:
    """On every launch of reports."""
    made = folder / "launches.ncu-rep"
    if not args.reports:
        write_report(made, ReportData(launches(391)))
    for report in args.reports or [str(made)]:
        more = {"advise": ("advise",), "advise --json": ("advise", "--json")}
        more["annotate"] = ("annotate", "-o", str(folder / "annotated.ncu-rep"), "--force")
        rows = {f"show {Path(report).name}": [*OURS, "show", report]}
        table(rows | {name: [*OURS, *words, report] for name, words in more.items()}, args.repeat)


def source(_: Path, args: argparse.Namespace) -> None:
    """On the launch with most instructions."""
    for report in args.reports or [str(SMOOTH)]:
        named = source_roofline(report, top=1_000).instruction_columns["launch"].tolist()
        launch = max(set(named), key=named.count)
        print(f"\n{Path(report).name}: {named.count(launch):,} instructions")
        words = [*OURS, "source", "--launch", str(launch), report]
        more = {"source": words, "source --json": [*words, "--json"], "page": [*words, "--format", "html", "-o", "-"]}
        table({"show": [*OURS, "show", report], **more}, args.repeat)


MERGE = """
import os, sys
os.cpu_count = lambda: int(sys.argv[1])
from ncu_roofline.cli import executors, main
executors.PARALLEL_FROM_BYTES = 0
sys.exit(main(["ranks", *sys.argv[2:]]))
"""


def ranks(folder: Path, args: argparse.Namespace) -> None:
    """One report per rank."""
    reports = folder / "ranks"
    reports.mkdir()
    for rank in range(args.ranks):
        session = Session(process=Process(1000 + rank, "/home/user/solver", f"node{rank // 4}"), ncu_version="2024.1.0.0")
        write_report(reports / f"report.rank{rank}.ncu-rep", ReportData(kernels(20), session))
    print(f"\n{'way':34}{'seconds':>9}{'CPU s':>9}{'peak MB':>9}{'speed-up':>10}")
    alone = 0.0
    for way, workers in (("one process", 1), ("pool of 2", 2), ("dask, 2 workers", 1)):
        with nullcontext() if "dask" not in way else _cluster() as cluster:
            more = ["--dask", cluster.scheduler_address] if cluster else []
            words = [
                sys.executable,
                "-c",
                MERGE,
                str(workers),
                str(reports),
                "-o",
                str(folder / "merged.json"),
                "--force",
                *more,
            ]
            cost = costs(words, args.repeat, watch=True)
        alone = alone or cost.wall
        print(f"{way:34}{cost.wall:9.1f}{cost.cpu:9.1f}{cost.memory:9.0f}{alone / cost.wall:10.2f}", flush=True)


def _cluster():  # type: ignore[no-untyped-def]
    from distributed import LocalCluster

    return LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)


PARTS = {"reading": reading, "commands": commands, "launches": rules, "source": source, "ranks": ranks}


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"default: reading commands; of {' '.join(PARTS)}")
    parser.add_argument("--kernels", type=int, default=3000)
    parser.add_argument("--ranks", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--reports", nargs="*", default=[])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for part in args.parts or ["reading", "commands"]:
            PARTS[part](Path(name), args)


if __name__ == "__main__":
    main()
