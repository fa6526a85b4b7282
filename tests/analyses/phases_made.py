"""Kernels with made-up samples over their time, as ncu writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ncu_roofline.formats.report import KernelData
from tests.factory import A100, Metrics, complete, kernel

PERCENT = ".avg.pct_of_peak_sustained_elapsed"
DRAM, FP64 = f"pmsampling:dramc__throughput{PERCENT}", f"pmsampling:sm__pipe_fp64_cycles_active{PERCENT}"
SM, BLOCKS = f"SM_A.TriageSCG.sm__inst_executed_realtime{PERCENT}", "pmsampling:sm__ctas_launched.sum"
L2 = f"pmsampling:lts__throughput{PERCENT}"
ORIGIN = 1_698_152_983_377_090_624  # nanoseconds: a GPU's clock in 2023
SECONDS = 1e-3
GRID = 4096
Profile = Callable[[float], float]  # value at a share of the launch's time


@dataclass(frozen=True)
class Group:
    """A pass group: its metrics over the launch's time, how long its run takes, and when samples begin, end and are taken.

    Times are in seconds; ``before`` and ``after`` the run nothing is active; ``until``: share of the run that is sampled.
    ``tells``: which of "switch" (4 us before the run), "workload" the report has.
    """

    metrics: Mapping[str, Profile]
    length: float = SECONDS
    step: float = 2e-6
    before: float = 96e-6
    after: float = 30e-6
    until: float = 1.0
    dropped: int = 0
    tells: Sequence[str] = ("switch",)

    def samples(self, index: int) -> dict[str, list[tuple[int, float]]]:
        """(nanoseconds, value) of each metric; blocks are counted per sample, the rest is a percentage."""
        end = self.before + self.length * self.until + (self.after if self.until == 1.0 else 0.0)
        times = [self.step * (place + 1) for place in range(round(end / self.step))]
        shares = [(time - self.step / 2 - self.before) / self.length for time in times]
        return {
            name: [(_at(index, t), profile(share) if 0 <= share < 1 else 0.0) for t, share in zip(times, shares, strict=True)]
            for name, profile in self.metrics.items()
        }

    def moments(self, index: int) -> dict[str, list[tuple[int, float]]]:
        """What the report says of when things were."""
        switch = {"pmsampler_ctxsw": self.before - 4e-6} if "switch" in self.tells else {}
        workload = {"timestamp_workload_start": self.before, "timestamp_workload_end": self.before + self.length}
        told = switch | (workload if "workload" in self.tells else {})
        return {f"profiler__{name}_{index}": [(_at(index, time), 1.0)] for name, time in told.items()}


def _at(index: int, time: float) -> int:
    return ORIGIN + index * 65_000_000 + round(time * 1e9)


def instances(groups: Sequence[Group]) -> dict[str, list[tuple[Any, Any]]]:
    """All that the sampler leaves in a report."""
    found: dict[str, list[tuple[Any, Any]]] = {}
    for index, group in enumerate(groups):
        found |= {**group.samples(index), **group.moments(index)}
    per_group = {
        "pass_groups": [",".join(group.metrics) for group in groups],
        "interval_time": [round(group.step * 1e9) for group in groups],
        "dropped_samples": [group.dropped for group in groups],
        "merged_samples": [0 for _ in groups],
    }
    return found | {f"profiler__pmsampler_{name}": list(enumerate(values)) for name, values in per_group.items()}


def steps(first: float, second: float) -> Profile:
    """One value in the first half, another in the second."""
    return lambda share: first if share < 0.5 else second


# Half of the time DRAM, half of the time the FP64 pipe, and blocks that start all the time; the second group's run is longer,
# and its samples are coarser.
TWO_PHASES = (
    Group({SM: steps(20, 60), FP64: steps(10, 90), BLOCKS: lambda _: GRID * 2e-6 / SECONDS}),
    Group({DRAM: steps(80, 20), L2: steps(40, 10)}, length=1.05 * SECONDS, step=5e-6, before=150e-6),
)


@dataclass(frozen=True)
class Made:
    """A kernel on an A100: one FP64 GFLOP and a quarter of a GB of DRAM in a millisecond."""

    groups: Sequence[Group] = TWO_PHASES
    device: Metrics = field(default_factory=lambda: A100)
    name: str = "void phased<int>(int *)"
    seconds: float = SECONDS
    metrics: Mapping[str, float] = field(default_factory=dict)

    def kernel(self, **more: Any) -> KernelData:
        """The kernel, ``more`` in its instances."""
        made = kernel(complete(self.device, self.seconds, **self.metrics), self.name)
        return replace(made, grid=(GRID, 1, 1), instances={**instances(self.groups), **more})
