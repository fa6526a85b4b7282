"""Reports of a few kernels, for what is said of all of a report together."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from ncu_roofline.formats.report import KernelData
from tests.factory import H100, NO_WORK, Metrics, by_address, complete, kernel, report

FEW_LANES: Metrics = {"smsp__thread_inst_executed_per_inst_executed.ratio": 8.0}
"""Makes advice without a number, "Lanes without work", of a kernel that nothing limits."""


def slow(seconds: float = 1e-3, share: float = 0.5, **extra: float) -> Metrics:
    """A kernel of so many seconds that uses a share of the bandwidth of DRAM."""
    return {**complete(seconds=seconds), "dram__bytes.sum": int(share * 1.555e12 * seconds), **extra}


def launch(name: str, metrics: Metrics) -> KernelData:
    """A launch of a function of this name."""
    return kernel(metrics, f"void {name}(int)")


def waiting() -> KernelData:
    """A kernel with four hints beside its verdict."""
    stalled = "smsp__pcsamp_warps_issue_stalled_"
    samples = {"barrier": [0.0, 300.0], "membar": [0.0, 250.0], "selected": [450.0, 0.0]}
    instances = by_address(0x7000, **{f"{stalled}{name}": counts for name, counts in samples.items()})
    sums: Metrics = {f"{stalled}{name}": sum(counts) for name, counts in samples.items()}
    metrics = {**complete(), **FEW_LANES, **sums, "launch__waves_per_multiprocessor": 1.2}
    return kernel(metrics, "void some(int)", instances=instances)


REPLAYS = {"data_pipe_lsu_wavefronts": 99.6, "lsu_writeback_active": 10.0, "data_bank_writes": 0.1, "lsuin_requests": 6.9}
_REPLAYING: Metrics = {f"l1tex__{name}.avg.pct_of_peak_sustained_elapsed": share for name, share in REPLAYS.items()}
_BUSY: Metrics = {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 60.0}
_LONG, _LITTLE = launch("long", complete(seconds=1.0)), launch("little", {**complete(seconds=0.005), **FEW_LANES})
_TIMELESS = {name: value for name, value in complete().items() if "time_duration" not in name and "elapsed" not in name}
LAUNCHES: dict[str, list[KernelData]] = {
    "three.ncu-rep": [
        kernel(complete(), "void first(int)", nvtx=("setup",)),
        kernel(complete(seconds=4e-6), "void second(int)", nvtx=("solve",)),
        launch("copy", {**complete(), **NO_WORK}),
    ],
    "longer.ncu-rep": [launch("first", complete(seconds=2e-3))],
    "h100.ncu-rep": [launch("first", complete(H100, seconds=3e-3))],
    "waits.ncu-rep": [waiting()],
    "clocks.ncu-rep": [
        launch("one", complete(seconds=3e-3, clock=0.7e9)),
        launch("two", complete(seconds=3e-3, clock=0.8e9)),
        launch("tiny", complete(seconds=2.1e-5, clock=0.5e9)),
        launch("other", complete(H100)),
    ],
    "minor.ncu-rep": [_LONG, _LITTLE],
    "often.ncu-rep": [_LONG, *[_LITTLE] * 3],
    "ranges.ncu-rep": [launch("often", slow(share=share)) for share in (0.2, 0.4, 0.3)],
    "differ.ncu-rep": [
        launch("often", slow(1e-3, **{"sm__warps_active.avg.pct_of_peak_sustained_active": 20.0})),
        launch("often", slow(3e-3, 0.3)),
    ],
    "verdicts.ncu-rep": [
        launch("some", {**slow(5e-3, 0.7), **FEW_LANES}),
        launch("some", {**slow(5e-3, 0.3), **FEW_LANES}),
        launch("tiny", {**slow(5e-5), **FEW_LANES}),
    ],
    "both.ncu-rep": [launch("both", slow(1e-3, 0.95)), launch("both", {**slow(1e-3, 0.1), **FEW_LANES})],
    "order.ncu-rep": [
        launch("half", slow(4e-3, 0.5)),
        launch("full", slow(6e-3, 0.97)),
        launch("tenth", slow(5e-3, 0.1)),
    ],
    "little-97.ncu-rep": [launch("little", slow(11e-6, 0.01)), launch("long", slow(10.0, 0.97))],
    "little-100.ncu-rep": [launch("little", slow(11e-6, 0.01)), launch("long", slow(10.0, 1.0))],
    "promised.ncu-rep": [launch("some", slow(1e-3)), launch("some", slow(2e-3)), launch("rest", slow(7e-3))],
    "tensor.ncu-rep": [launch("known", slow(2e-3, 0.4)), launch("tensor", {**slow(3e-3, 0.9), **_BUSY})],
    "hint.ncu-rep": [
        launch("some", slow(5e-3, 0.3)),
        launch("some", slow(1e-3, 0.97)),
        launch("some", {**slow(1e-3, 0.3), **FEW_LANES}),
    ],
    "timeless.ncu-rep": [launch("timeless", _TIMELESS), launch("timed", slow())],
    "replaying.ncu-rep": [launch("replaying", {**slow(1e-2, 0.1), **_REPLAYING})],
    # The roof of a short launch stands at the clock of the longer one.
    "short.ncu-rep": [
        kernel(complete(clock=1.2e9)),
        launch("short", {**complete(seconds=1e-5, clock=0.5e9), "dram__bytes.sum": 10**5}),
    ],
}


def _write(launches: list[KernelData], path: Path) -> None:
    report(path, *launches)


FILES: dict[str, Callable[[Path], None]] = {name: partial(_write, launches) for name, launches in LAUNCHES.items()}
