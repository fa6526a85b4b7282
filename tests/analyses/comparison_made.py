"""Comparisons of made reports, one of each kind that is drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ncu_roofline import roofline
from ncu_roofline.analyses.compare.frames import Comparison, compare
from ncu_roofline.formats.report import KernelData
from tests.factory import A100, H100, complete, flops, kernel, report

Make = Callable[[Path], Comparison]


def compared(folder: Path, *states: tuple[KernelData, ...]) -> Comparison:
    """The comparison of reports with these launches, called before, after, and so on."""
    names = ["before", "after", *(f"after{step}" for step in range(2, len(states)))]
    paths = [report(folder / f"{name}.ncu-rep", *launches) for name, launches in zip(names, states, strict=True)]
    return compare(*map(roofline, paths), labels=[path.name for path in paths])


def ordinary(folder: Path) -> Comparison:
    """One kernel twice as fast and from DRAM to latency, one slower, one the same, one new, one gone."""
    busy = flops("d", fma=4_000_000_000)
    quick = {**complete(seconds=2e-3, **{"dram__bytes.sum": 2e8}), **busy}
    return compared(
        folder,
        (
            kernel({**complete(seconds=4e-3, **{"dram__bytes.sum": 5.6e9}), **busy}, "void solver<double>(double *)"),
            kernel(complete(seconds=400e-6), "void halo(double *)"),
            kernel(complete(seconds=3e-3), "void advance(double *)"),
            kernel(complete(seconds=500e-6), "void pack(double *)"),
        ),
        (
            kernel(quick, "void solver<double>(double *)"),
            kernel(complete(seconds=448e-6), "void halo(double *)"),
            kernel(complete(seconds=3e-3), "void advance(double *)"),
            kernel(complete(seconds=200e-6), "void fused(double *)"),
        ),
    )


def steps(folder: Path) -> Comparison:
    """Four states of one kernel, each faster."""
    return compared(folder, *((kernel(complete(seconds=time), "void solver(int)"),) for time in (4e-3, 3e-3, 2e-3, 1e-3)))


def two_gpus(folder: Path) -> Comparison:
    """The same kernels on an A100 and an H100."""
    names = ("void solver(int)", "void halo(int)")
    return compared(
        folder,
        tuple(kernel(complete(A100, seconds=time), name) for time, name in zip((4e-3, 1e-3), names, strict=True)),
        tuple(kernel(complete(H100, seconds=time), name) for time, name in zip((3e-3, 2e-4), names, strict=True)),
    )


def disjoint(folder: Path) -> Comparison:
    """No kernel of one report is in the other."""
    return compared(folder, (kernel(complete(), "void a()"),), (kernel(complete(), "void b()"),))


def many(folder: Path, count: int = 105) -> Comparison:
    """Kernels enough for more than a screen, each third slower."""
    names = [f"void a_kernel_with_a_long_name_number_{index}<float, 128>(float *)" for index in range(count)]
    return compared(
        folder,
        tuple(kernel(complete(seconds=1e-5 * (index + 1)), name) for index, name in enumerate(names)),
        tuple(
            kernel(complete(seconds=1e-5 * (index + 1) * (1.3 if index % 3 == 0 else 0.8)), name)
            for index, name in enumerate(names)
        ),
    )


MADE: dict[str, Make] = {
    "ordinary": ordinary, "steps": steps, "two GPUs": two_gpus, "disjoint": disjoint, "many": many,
}  # fmt: skip
