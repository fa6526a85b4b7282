"""Parts of nvprof's output put together: the counts of one run with the times of another one of the same application.

nvprof slows an application down while it counts, so the published recipe is two runs: one with ``--metrics``, one with times
only (Yang, Kurth, Williams 2019, section II).  A sweep gives several such pairs with the same kernels.  Each part therefore
joins the first run that has a kernel in common with it and does not have yet what it brings: files in the order of the sweep,
pair by pair or all metrics first, come together as they belong.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Kernel:
    """A kernel, or one launch of it: sums of the metrics over ``launches``, its time (NaN without), in SI units.

    ``tensor_level`` is the mean utilisation of the tensor cores on nvprof's scale from 0 to 10, NaN where not collected.
    """

    name: str
    device: str
    launches: int
    totals: Mapping[str, float] = field(default_factory=dict)
    tensor_level: float = math.nan
    seconds: float = math.nan
    grid: str = ""
    block: str = ""


@dataclass(frozen=True)
class Part:
    """What one table of a log brings: kernels with counts, or kernels with times."""

    path: str
    counted: tuple[Kernel, ...] = ()
    timed: tuple[Kernel, ...] = ()

    @property
    def names(self) -> set[str]:
        """The names of its kernels."""
        return {kernel.name for kernel in (*self.counted, *self.timed)}


Key = tuple[str, str]


@dataclass
class Run:
    """Parts that belong together."""

    parts: list[Part] = field(default_factory=list)
    counted: dict[Key, list[Kernel]] = field(default_factory=dict)
    timed: list[Kernel] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files of its parts, without repetitions."""
        return tuple(dict.fromkeys(part.path for part in self.parts))

    def takes(self, part: Part) -> bool:
        """Whether a part brings what this run lacks for kernels that it has."""
        own = {name for _, name in self.counted} | {kernel.name for kernel in self.timed}
        if own and not own & part.names:
            return False
        if part.timed and self.timed:
            return False
        return not any(
            _brings(kernel) & _brings(mine) for kernel in part.counted for mine in self.counted.get(_key(kernel), ())
        )

    def add(self, part: Part) -> None:
        """Take a part in."""
        self.parts.append(part)
        self.timed += part.timed
        for key, kernels in _by_key(part.counted).items():
            self.counted[key] = self._merged(self.counted[key], kernels) if key in self.counted else kernels

    def _merged(self, mine: list[Kernel], more: list[Kernel]) -> list[Kernel]:
        if len(mine) != len(more):
            mine, more = [summed(mine)], [summed(more)]
        if any(one.launches != other.launches for one, other in zip(mine, more, strict=True)):
            self.warnings.append(
                f"kernel {mine[0].name} was launched {mine[0].launches} times in one file and {more[0].launches} times in "
                "another: the counts of the second were scaled to the launches of the first"
            )
        return [_both(one, other) for one, other in zip(mine, more, strict=True)]


def runs_of(parts: Iterable[Part]) -> list[Run]:
    """The runs that the parts make up, in the order of their first parts."""
    runs: list[Run] = []
    for part in parts:
        run = next((run for run in runs if run.takes(part)), None)
        if run is None:
            run = Run()
            runs.append(run)
        run.add(part)
    return runs


def kernels_of(run: Run) -> list[Kernel]:
    """The kernels of a run with counts and times together; notes on what does not fit are added to its warnings."""
    times = defaultdict(list)
    for kernel in run.timed:
        times[kernel.name].append(kernel)
    result = []
    for (device, name), kernels in run.counted.items():
        found = [kernel for kernel in times[name] if device in (kernel.device, "") or not kernel.device]
        result += _with_times(run, kernels, found)
    counted = {name for _, name in run.counted}
    devices = {device for device, _ in run.counted}
    device = devices.pop() if len(devices) == 1 else ""
    for kernel in run.timed:
        if kernel.name not in counted:
            result.append(kernel if kernel.device else replace(kernel, device=device))
    return result


def _with_times(run: Run, kernels: list[Kernel], times: list[Kernel]) -> list[Kernel]:
    if not times:
        return kernels
    if len(kernels) == len(times) and all(a.launches == b.launches for a, b in zip(kernels, times, strict=True)):
        return [
            replace(kernel, seconds=time.seconds, grid=kernel.grid or time.grid, block=kernel.block or time.block)
            for kernel, time in zip(kernels, times, strict=True)
        ]
    whole = summed(times)
    counted = sum(kernel.launches for kernel in kernels)
    if whole.launches != counted:
        run.warnings.append(
            f"kernel {kernels[0].name} was counted over {counted} launches and timed over {whole.launches}: "
            "its time is the mean of the timed launches times the launches counted"
        )
    each = whole.seconds / whole.launches
    return [
        replace(one, seconds=each * one.launches, grid=one.grid or whole.grid, block=one.block or whole.block)
        for one in kernels
    ]


def summed(kernels: Sequence[Kernel]) -> Kernel:
    """Several launches as one: sums, and the tensor level as the mean over launches."""
    if len(kernels) == 1:
        return kernels[0]
    launches = sum(kernel.launches for kernel in kernels)
    # A metric that one launch lacks has no sum.
    shared = set.intersection(*(set(kernel.totals) for kernel in kernels))
    return replace(
        kernels[0],
        launches=launches,
        totals={name: sum(kernel.totals[name] for kernel in kernels) for name in kernels[0].totals if name in shared},
        tensor_level=sum(kernel.tensor_level * kernel.launches for kernel in kernels) / launches,
        seconds=sum(kernel.seconds for kernel in kernels),
        grid=_common(kernel.grid for kernel in kernels),
        block=_common(kernel.block for kernel in kernels),
    )


def _common(texts: Iterable[str]) -> str:
    found = set(texts)
    return found.pop() if len(found) == 1 else ""


def _both(mine: Kernel, other: Kernel) -> Kernel:
    scale = mine.launches / other.launches
    level = other.tensor_level if math.isnan(mine.tensor_level) else mine.tensor_level
    return replace(mine, totals={**{k: v * scale for k, v in other.totals.items()}, **mine.totals}, tensor_level=level)


def _brings(kernel: Kernel) -> set[str]:
    return set(kernel.totals) | (set() if math.isnan(kernel.tensor_level) else {"tensor level"})


def _by_key(kernels: Iterable[Kernel]) -> dict[Key, list[Kernel]]:
    result: dict[Key, list[Kernel]] = {}
    for kernel in kernels:
        result.setdefault(_key(kernel), []).append(kernel)
    return result


def _key(kernel: Kernel) -> Key:
    return kernel.device, kernel.name
