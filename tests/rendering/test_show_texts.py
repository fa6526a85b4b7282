"""What `show` prints of eight kinds of reports at four widths, as files under golden/show; UPDATE_GOLDEN=1 rewrites them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ncu_roofline.cli import main
from ncu_roofline.rendering.table import columns_wide
from tests.factory import A100, H100, NO_WORK, V100, Metrics, complete, flops, kernel, opcodes, report, timing, traffic
from tests.inputs.ncu_tables import SUMS, text_of, wide

GOLDEN = Path(__file__).parent / "golden" / "show"
DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"
WIDTHS = (60, 80, 120, 200)
ELAPSED = ".avg.pct_of_peak_sustained_elapsed"
TENSOR_BUSY = {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 41.0}
SMOOTH = "void smooth_kernel<Box<double>, 3>(level_type, int, int, double, double)"
RESTRICT = "void restriction_kernel<Box<double>, 3>(level_type, int, level_type, int)"
NORM = "void max_abs_kernel<double>(level_type, int, double *)"


def busy(seconds: float, sm: float, dram: float, l2: float, occupancy: float, waves: float) -> Metrics:
    """What `--set basic` tells: percentages, no counts."""
    return {
        **A100, **timing(seconds),
        f"sm__throughput{ELAPSED}": sm, f"sm__issue_active{ELAPSED}": sm,
        f"gpu__dram_throughput{ELAPSED}": dram, f"dram__cycles_active{ELAPSED}": dram, f"lts__throughput{ELAPSED}": l2,
        "sm__warps_active.avg.pct_of_peak_sustained_active": occupancy,
        "sm__maximum_warps_per_active_cycle_pct": 62.5, "launch__waves_per_multiprocessor": waves,
    }  # fmt: skip


def sweep(_: Path) -> list[object]:
    """GPP on a V100, a step for each number of frequencies."""
    return [DEMO / "gpp-v100.ncu-rep", "--label", "nvtx"]


def tensor(folder: Path) -> list[object]:
    """A matrix product whose operations were counted by opcodes, with what runs before and after."""
    gemm = {**A100, **timing(2.1e-3), **NO_WORK, **TENSOR_BUSY, **traffic(4 * 10**10, 10**9 // 4, 10**9)}
    product = kernel(gemm, "void cutlass::Kernel<cutlass_80_tensorop_s16816gemm_f16_256x128_32x3_nn_align8>(Params)",
                     instances=opcodes(HMMA_16816_F32=67_108_864, FFMA=2_000_000, FADD=1_000_000))  # fmt: skip
    scale = {**complete(seconds=4e-4), **flops("f", mul=50_000_000), **flops("d"), "dram__bytes.sum": 540_000_000}
    return [report(folder / "gemm.ncu-rep", product, kernel(scale, "scale_rows(float *, float const *, int)"))]


def basic(folder: Path) -> list[object]:
    """Percentages only, so no dot."""
    return [
        report(
            folder / "basic.ncu-rep",
            kernel(busy(3.2e-3, 35.0, 88.0, 52.0, 57.0, 12.4), "void spmv_csr<int, double>(int const *, double *)"),
            kernel(busy(2.7e-3, 81.0, 12.0, 30.0, 60.1, 8.0), "nbody_forces(float4 *, float4 *, int)"),
            kernel(busy(4.1e-5, 2.0, 3.5, 4.0, 9.0, 0.05), "void cub::DeviceScanInitKernel<int>(int *, int)"),
        )
    ]


def gpus(folder: Path) -> list[object]:
    """One application on two GPUs, two reports of each."""
    for place, (gpu, seconds) in enumerate(((V100, 2.2e-3), (A100, 1e-3))):
        for step in (1, 2):
            (folder / f"node{step}").mkdir(exist_ok=True)
            half = complete(gpu, seconds / 2 * step)
            report(folder / f"node{step}" / f"run{place}.ncu-rep", kernel(complete(gpu, seconds), SMOOTH), kernel(half, NORM))
    return [folder]


def launches(folder: Path) -> list[object]:
    """Three kernels in 105 launches."""
    once = [kernel(complete(seconds=(3 + place % 3) * 1e-4), SMOOTH) for place in range(60)]
    once += [kernel(complete(seconds=2e-4), RESTRICT) for _ in range(40)]
    zero = {**A100, **timing(8e-6), **NO_WORK, **traffic(10**6, 10**5 // 32, 10**5)}
    return [report(folder / "multigrid.ncu-rep", *once, *(kernel(zero, "fill_zero(double *, int)") for _ in range(5)))]


def uncounted(folder: Path) -> list[object]:
    """Tensor cores that worked, and nobody counted what."""
    attention = {**complete(H100, 5e-3), **TENSOR_BUSY}
    return [report(folder / "attention.ncu-rep", kernel(attention, "void flash_fwd_kernel<Traits<128, 64>>(Flash_fwd_params)"),
                   kernel(complete(H100, 1e-3), "softmax_rescale(float *, float *)"))]  # fmt: skip


def integers(folder: Path) -> list[object]:
    """A sort: no floating-point work, integers known from opcodes, and one kernel that shows nothing."""
    sort = {**A100, **timing(6e-4), **NO_WORK, **traffic(10**9, 600_000_000 // 32, 500_000_000)}
    scan = {**A100, **timing(1e-4), **NO_WORK, **traffic(10**7, 10**6 // 32, 10**6)}
    return [
        report(
            folder / "sort.ncu-rep",
            kernel(sort, "void radix_sort_onesweep<unsigned int>(int *)", instances=opcodes(IMAD=2_000_000, IADD3=4_000_000)),
            kernel(scan, "void exclusive_scan<unsigned int>(int *)", instances=opcodes(IADD3=300_000)),
            kernel({**A100, **timing()}, "unmeasured(int *)"),
        )
    ]


def csv(folder: Path) -> list[object]:
    """What `ncu --csv --page raw` printed."""
    path = folder / "axpy.csv"
    path.write_text(text_of(wide(SUMS, SUMS)))
    return [path]


KINDS: tuple[Callable[[Path], list[object]], ...] = (sweep, tensor, basic, gpus, launches, uncounted, integers, csv)


@pytest.mark.parametrize("kind", KINDS, ids=lambda one: one.__name__)
def test_golden_texts(kind: Callable[[Path], list[object]], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = list(map(str, kind(tmp_path)))
    for width in WIDTHS:
        assert main(["show", *inputs, "--width", str(width)]) == 0
        text = capsys.readouterr().out
        assert max(map(columns_wide, text.splitlines())) <= width
        assert str(tmp_path) not in text
        path = GOLDEN / f"{kind.__name__}-{width}.txt"
        if os.environ.get("UPDATE_GOLDEN"):
            path.write_bytes(text.encode())
        assert path.read_bytes().decode().replace("\r\n", "\n") == text
