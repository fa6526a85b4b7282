"""The reports of the demo's gallery: those measured on an H100, cut down to their numbers, and made-up ones, which say so.

``python -m tests.demo_reports DIR`` writes the files; a test holds the bundled ones against them.  The published GPP figures
are in `published_report`.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ncu_roofline.formats.report import Kernel, KernelData, ReportData, Session, read_report, write_report
from tests.factory import A100, NO_WORK, Metrics, flops, kernel, opcodes, timing, traffic
from tests.made_up_code import smooth

MEASURED = Path(__file__).parent / "bench" / "measured_h100" / "reports.tar.xz"
STEPS = range(1, 7)
_SESSION = Session(ncu_version="2024.1.0.0", command_line="ncu --set full ./made-up")


def measured() -> Iterator[tuple[str, ReportData]]:
    """GPP of `bench/apps` on an H100, 1 to 6 frequencies, as `bench/validate-on-gpu` profiled it; without the machine code."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(MEASURED) as archive:
        for step in STEPS:
            member = next(one for one in archive.getmembers() if one.name.endswith(f"gpp-nw{step}.ncu-rep"))
            path = Path(folder, "r.ncu-rep")
            path.write_bytes(archive.extractfile(member).read())  # type: ignore[union-attr]
            with read_report(path) as opened:
                yield f"gpp-h100-nw{step}.ncu-repz", ReportData([_numbers(one) for one in opened.kernels], opened.session)


def _numbers(one: Kernel) -> KernelData:
    launch = one.launch
    grid, block = launch.grid or (1, 1, 1), launch.block or (1, 1, 1)
    names = {"name": launch.name, "function_name": launch.function_name, "mangled_name": launch.mangled_name}
    return KernelData(
        **names, grid=grid, block=block, metrics=dict(one.metrics), sections=one.sections, clock_locked=launch.clock_locked
    )


def gemm() -> ReportData:
    """Two GEMMs of FP16 with FP32 accumulators whose tensor work is only in counts per opcode: square, and tall and skinny.

    An HMMA.16816 does 16 x 8 x 16 multiply-adds; traffic is that of tiles of 128 x 128 (64 x 64 for the skinny one).
    """
    return ReportData([_gemm("square", 4096, 4096, 4096, 128, 6.2e-4), _gemm("skinny", 4096, 64, 4096, 64, 3.4e-5)], _SESSION)


def _gemm(shape: str, m: int, n: int, k: int, tile: int, seconds: float) -> KernelData:
    loads = 2 * k * m * n * 2 // tile  # bytes: each tile of C reads a row of tiles of A and a column of tiles of B
    counts = {
        "HMMA_16816_F32": m * n * k // (16 * 8 * 16),
        "FMUL": m * n // 32,
        "FFMA": m * n // 32,
        "LDSM_16_M88_4": loads // 512,
    }
    metrics: Metrics = {
        **A100,
        **timing(seconds),
        **NO_WORK,
        **flops("f", mul=m * n, fma=m * n),
        **traffic(loads + 2 * m * n, (loads + 2 * m * n) // 32, 2 * (m * k + k * n + m * n)),
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": 100 * 2 * m * n * k / seconds / 312e12,
    }
    name = f"void {shape}_made_up_gemm<__half, float>(const __half *, const __half *, float *)"
    return kernel(metrics, name, instances=opcodes(**counts))


def basic_set() -> ReportData:
    """What `--set basic` gives: run times, how busy units and memory were, occupancy; no operations and no bytes."""
    busy: Mapping[str, tuple[float, Sequence[float]]] = {
        "layer_norm": (8.1e-5, (31.0, 88.2, 41.5, 22.4, 88.0)),
        "encode": (5.4e-5, (82.6, 24.1, 19.0, 16.8, 93.1)),
        "gather_few": (2.2e-5, (6.3, 11.8, 9.4, 7.1, 12.2)),
    }
    return ReportData([_busy(name, seconds, shares) for name, (seconds, shares) in busy.items()], _SESSION)


def _busy(name: str, seconds: float, shares: Sequence[float]) -> KernelData:
    sm, dram, l2, l1, occupancy = shares
    percent = "avg.pct_of_peak_sustained_elapsed"
    metrics: Metrics = {
        **A100,
        **timing(seconds),
        "dram__cycles_elapsed.avg.per_second": 1.215e9,
        f"sm__throughput.{percent}": sm,
        f"sm__pipe_alu_cycles_active.{percent}": sm,
        f"sm__inst_executed.{percent}": sm * 0.7,
        f"sm__issue_active.{percent}": sm * 0.7,
        f"sm__pipe_fp64_cycles_active.{percent}": 0.0,
        f"sm__pipe_tensor_cycles_active.{percent}": 0.0,
        f"gpu__compute_memory_throughput.{percent}": max(dram, l2, l1),
        f"gpu__dram_throughput.{percent}": dram,
        f"lts__throughput.{percent}": l2,
        f"l1tex__throughput.{percent.replace('elapsed', 'active')}": l1,
        "sm__warps_active.avg.pct_of_peak_sustained_active": occupancy,
        "sm__maximum_warps_per_active_cycle_pct": 100.0 if occupancy > 50 else 12.5,
        "launch__waves_per_multiprocessor": 8.0 if occupancy > 50 else 0.3,
    }
    return kernel(metrics, f"void made_up::{name}(const float *, float *, int)")


# Of each kernel launches, seconds, FP64 multiply-adds, bytes at L1, L2 and DRAM.
Step = Mapping[str, tuple[int, float, int, int, int, int]]
BEFORE: Step = {
    "stencil": (8, 4.0e-4, 800_000_000, 2_600_000_000, 900_000_000, 500_000_000),
    "gradient": (8, 1.5e-4, 60_000_000, 600_000_000, 260_000_000, 200_000_000),
    "residual": (8, 3.0e-5, 8_000_000, 70_000_000, 40_000_000, 36_000_000),
    "pack": (8, 2.4e-5, 0, 34_000_000, 30_000_000, 28_000_000),
    "unpack": (8, 2.3e-5, 0, 34_000_000, 30_000_000, 28_000_000),
}
AFTER: Step = {
    "stencil": (8, 2.3e-4, 800_000_000, 2_600_000_000, 560_000_000, 190_000_000),
    "gradient": (8, 1.5e-4, 60_000_000, 600_000_000, 260_000_000, 200_000_000),
    "residual": (8, 3.9e-5, 8_000_000, 70_000_000, 44_000_000, 39_000_000),
    "exchange": (8, 1.9e-5, 0, 24_000_000, 21_000_000, 20_000_000),
}


def state(kernels: Step) -> ReportData:
    """An application before and after its stencil got tiles: less traffic, another limit; a kernel slower, some new or gone."""
    return ReportData([one for name, numbers in kernels.items() for one in _launches(name, *numbers)], _SESSION)


def _launches(name: str, count: int, seconds: float, fma: int, l1: int, l2: int, dram: int) -> Iterator[KernelData]:
    for number in range(count):
        metrics: Metrics = {
            **A100,
            **timing(seconds * (1 + 0.004 * (number % 3 - 1))),
            **NO_WORK,
            **flops("d", fma=fma),
            **traffic(l1, l2 // 32, dram),
        }
        yield kernel(metrics, f"void made_up::{name}(const double *, double *, int)")


def reports() -> dict[str, ReportData]:
    """All of them by file name."""
    return {
        **dict(measured()),
        "gemm-made-up.ncu-repz": gemm(),
        "basic-set-made-up.ncu-repz": basic_set(),
        "stencil-before-made-up.ncu-repz": state(BEFORE),
        "stencil-after-made-up.ncu-repz": state(AFTER),
        "smooth-made-up.ncu-repz": ReportData([smooth()], _SESSION),
        "smooth-after-made-up.ncu-repz": ReportData([smooth(after=True)], _SESSION),
    }


if __name__ == "__main__":
    for file, data in reports().items():
        write_report(Path(sys.argv[1], file), data, overwrite=True)
