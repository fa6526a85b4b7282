"""Benchmark: merging the reports of many ranks, one after the other, in a pool of processes and on a local dask cluster.

``python tests/perf/ranks.py [--ranks 1000] [--kernels 20] [--workers 2] [--repeat 3] [--folder DIR]`` writes the reports (20 kB
a kernel: 300 metrics, a section and per-instance values, as real ones have; kept in DIR if given) and prints for each way the
best time of all runs, the processor time of all processes in it (what is beyond it was waiting: for other programs, too),
reports per second, the peak of memory over all processes together, and the ratio to one process.
Not a test: machines differ, and so does what else runs on them.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from ncu_roofline.cli import executors
from ncu_roofline.formats.report import ReportData, Session, write_report
from ncu_roofline.formats.report.session import Process
from tests.perf.bench import kernels

WAYS = ("serial", "pool", "dask")
_EVERY = 0.05  # seconds between two looks at memory


def write_reports(folder: Path, ranks: int, count: int) -> None:
    """One report per rank, if it is not there yet."""
    for rank in range(ranks):
        path = folder / f"report.rank{rank}.ncu-rep"
        if not path.exists():
            session = Session(process=Process(1000 + rank, "/home/user/solver", f"node{rank // 4}"), ncu_version="2024.1.0.0")
            write_report(path, ReportData(kernels(count), session))


def _resident(pid: int) -> float:
    """MB that a process holds by itself, with its part of what it shares; 0 when it has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) / 1024


def _family(pid: int) -> list[int]:
    """A process and all that it started."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return [pid]
    return [pid, *(one for child in children for one in _family(child))]


class Watch(threading.Thread):
    """The highest sum of memory of a process and all that it started (Linux only: from /proc)."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid, self._over, self.peak = pid, threading.Event(), 0.0

    def run(self) -> None:
        """Look again and again."""
        while not self._over.wait(_EVERY):
            self.peak = max(self.peak, sum(map(_resident, _family(self._pid))))

    def stop(self) -> float:
        """End it; returns MB."""
        self._over.set()
        self.join()
        return self.peak


@contextmanager
def cluster(workers: int) -> Iterator[str]:
    """A local dask cluster in processes of its own; gives its address."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as found:
        yield found.scheduler_address


def one_run(folder: Path, way: str, workers: int) -> None:
    """Merge, as the command does, and print seconds and memory; a process of its own, so that runs don't share memory."""
    from ncu_roofline.cli import main

    os.cpu_count = lambda: workers if way == "pool" else 1
    executors.PARALLEL_FROM_BYTES = 0
    watch = Watch(os.getpid())
    watch.start()
    words = ["ranks", str(folder), "-o", str(folder / "merged.json"), "--force"]
    if way == "dask":
        with cluster(workers) as address:
            start = time.perf_counter()
            code = main([*words, "--dask", address])
            seconds = time.perf_counter() - start
    else:
        start = time.perf_counter()
        code = main(words)
        seconds = time.perf_counter() - start
    print(code, seconds, watch.stop(), _processor_seconds())


def _processor_seconds() -> float:
    """Of this process and those it started and saw the end of."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def measured(folder: Path, way: str, workers: int) -> tuple[float, float, float]:
    """Seconds, MB and processor seconds of one run."""
    words = [sys.executable, __file__, "--folder", str(folder), "--run", way, "--workers", str(workers)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    code, *figures = done.stdout.split()[-4:]
    if code != "0":
        raise SystemExit("benchmark failed")
    seconds, memory, processor = map(float, figures)
    return seconds, memory, processor


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=1000)
    parser.add_argument("--kernels", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--run", choices=WAYS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        one_run(args.folder, args.run, args.workers)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = args.folder or Path(name)
        folder.mkdir(exist_ok=True)
        write_reports(folder, args.ranks, args.kernels)
        size = sum(path.stat().st_size for path in folder.glob("*.ncu-rep")) / 1e6
        print(f"{args.ranks} reports of {args.kernels} kernels, {size:.0f} MB, {args.workers} workers, best of {args.repeat}")
        print(f"{'way':8}{'seconds':>9}{'CPU s':>8}{'reports/s':>11}{'peak MB':>9}{'speed-up':>10}")
        alone = 0.0
        for way in WAYS:
            runs = [measured(folder, way, args.workers) for _ in range(args.repeat)]
            (seconds, _, processor), memory = min(runs), max(run[1] for run in runs)
            alone = alone or seconds
            print(
                f"{way:8}{seconds:9.1f}{processor:8.1f}{args.ranks / seconds:11.0f}{memory:9.0f}{alone / seconds:10.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
