"""Comparisons of made reports, one of each kind that is drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ncu_roofline import roofline
from ncu_roofline.analyses.compare.frames import Comparison, compare
from ncu_roofline.formats.report import KernelData
from tests.analyses.makers import launches
from tests.factory import complete, kernel, report

Make = Callable[[Path], Comparison]
BUSY, QUICK = {"fp64": 4e9, "dram": 5.6e9}, {"fp64": 4e9, "dram": 2e8}


def compared(folder: Path, *states: tuple[KernelData, ...]) -> Comparison:
    """The comparison of reports with these launches, called before, after, and so on."""
    names = ["before", "after", *(f"after{step}" for step in range(2, len(states)))]
    paths = [report(folder / f"{name}.ncu-rep", *kernels) for name, kernels in zip(names, states, strict=True)]
    return compare(*map(roofline, paths), labels=[path.name for path in paths])


def kernels(times: dict[str, float], **more: Any) -> tuple[KernelData, ...]:
    """A kernel for each time (ms)."""
    return tuple(launches([{"name": f"void {name}", "ms": ms, **more.get(name, {})} for name, ms in times.items()]))


def ordinary(folder: Path) -> Comparison:
    """One kernel twice as fast and from DRAM to latency, one slower, one the same, one new, one gone."""
    solver, halo, advance = "solver<double>(double *)", "halo(double *)", "advance(double *)"
    before = kernels({solver: 4, halo: 0.4, advance: 3, "pack(double *)": 0.5}, **{solver: BUSY})
    return compared(folder, before, kernels({solver: 2, halo: 0.448, advance: 3, "fused(double *)": 0.2}, **{solver: QUICK}))


def steps(folder: Path) -> Comparison:
    """Four states of one kernel, each faster."""
    return compared(folder, *(kernels({"solver(int)": ms}) for ms in (4, 3, 2, 1)))


def two_gpus(folder: Path) -> Comparison:
    """The same kernels on an A100 and an H100."""
    names, other = ("solver(int)", "halo(int)"), {"gpu": "H100"}
    after = kernels(dict(zip(names, (3, 0.2), strict=True)), **dict.fromkeys(names, other))
    return compared(folder, kernels(dict(zip(names, (4, 1), strict=True))), after)


def disjoint(folder: Path) -> Comparison:
    """No kernel of one report is in the other."""
    return compared(folder, kernels({"a()": 1}), kernels({"b()": 1}))


def many(folder: Path, count: int = 105) -> Comparison:
    """Kernels enough for more than a screen, each third slower."""
    names = [f"a_kernel_with_a_long_name_number_{index}<float, 128>(float *)" for index in range(count)]

    def state(factors: list[float]) -> tuple[KernelData, ...]:
        times = [1e-5 * (index + 1) * factor for index, factor in enumerate(factors)]
        return tuple(kernel(complete(seconds=time), f"void {name}") for time, name in zip(times, names, strict=True))

    return compared(folder, state([1.0] * count), state([1.3 if index % 3 == 0 else 0.8 for index in range(count)]))


MADE: dict[str, Make] = {
    "ordinary": ordinary, "steps": steps, "two GPUs": two_gpus, "disjoint": disjoint, "many": many,
}  # fmt: skip
