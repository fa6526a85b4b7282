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
    tells: tuple[str, ...] = ("switch",)

    def samples(self, index: int) -> dict[str, list[tuple[int, float]]]:
        """(nanoseconds, value) of each metric; blocks are counted per sample, the rest is a percentage."""
        origin = ORIGIN + index * 65_000_000
        end = self.before + self.length * self.until + (self.after if self.until == 1.0 else 0.0)
        times = [self.step * (place + 1) for place in range(round(end / self.step))]
        found: dict[str, list[tuple[int, float]]] = {name: [] for name in self.metrics}
        for time in times:
            share = (time - self.step / 2 - self.before) / self.length
            for name, profile in self.metrics.items():
                value = profile(share) if 0 <= share < 1 else 0.0
                found[name].append((origin + round(time * 1e9), value))
        return found

    def moments(self, index: int) -> dict[str, list[tuple[int, float]]]:
        """What the report says of when things were."""
        origin = ORIGIN + index * 65_000_000
        at = {
            f"profiler__pmsampler_ctxsw_{index}": ("switch", self.before - 4e-6),
            f"profiler__timestamp_workload_start_{index}": ("workload", self.before),
            f"profiler__timestamp_workload_end_{index}": ("workload", self.before + self.length),
        }
        return {name: [(origin + round(time * 1e9), 1.0)] for name, (how, time) in at.items() if how in self.tells}


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


def blocks(step: float, length: float = SECONDS, grid: int = GRID) -> Profile:
    """Blocks that start all the time, a sample's worth each."""
    return lambda _: grid * step / length


# Half of the time DRAM, half of the time the FP64 pipe; the second group's run is longer, and its samples are coarser.
TWO_PHASES = (
    Group({SM: steps(20, 60), FP64: steps(10, 90), BLOCKS: blocks(2e-6)}),
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
