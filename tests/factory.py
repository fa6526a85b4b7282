"""Small reports from a few words, for tests of everything above the report package."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ncu_roofline.formats.report import KernelData, ReportData, Session, write_report

Metrics = dict[str, float | int | str]

A100: Metrics = {
    "device__attribute_display_name": "NVIDIA A100-SXM4-40GB",
    "device__attribute_compute_capability_major": 8,
    "device__attribute_compute_capability_minor": 0,
    "device__attribute_multiprocessor_count": 108,
    "device__attribute_fbp_count": 10,
    "device__attribute_num_l2s_per_fbp": 8,
    "device__attribute_max_gpu_frequency_khz": 1_410_000,
    "device__attribute_max_mem_frequency_khz": 1_215_000,
    "device__attribute_global_memory_bus_width": 5120,
}
H100: Metrics = {
    **A100,
    "device__attribute_display_name": "NVIDIA H100 80GB HBM3",
    "device__attribute_compute_capability_major": 9,
    "device__attribute_multiprocessor_count": 132,
    "device__attribute_max_gpu_frequency_khz": 1_980_000,
}
V100: Metrics = {
    **A100,
    "device__attribute_display_name": "Tesla V100-SXM2-16GB",
    "device__attribute_compute_capability_major": 7,
    "device__attribute_multiprocessor_count": 80,
    "device__attribute_max_gpu_frequency_khz": 1_530_000,
}


def flops(precision: str, add: int = 0, mul: int = 0, fma: int = 0) -> Metrics:
    """Thread instruction counts of "d", "f" or "h"."""
    counts = {"add": add, "mul": mul, "fma": fma}
    return {f"smsp__sass_thread_inst_executed_op_{precision}{op}_pred_on.sum": count for op, count in counts.items()}


def traffic(l1: int = 0, l2_sectors: int = 0, dram: int = 0) -> Metrics:
    """Bytes at L1 and DRAM, 32-byte sectors at L2."""
    return {"l1tex__t_bytes.sum": l1, "lts__t_sectors_srcunit_tex.sum": l2_sectors, "dram__bytes.sum": dram}


def timing(seconds: float = 1e-3, clock: float = 1.41e9) -> Metrics:
    """Run time and SM clock."""
    return {
        "gpu__time_duration.sum": seconds * 1e9,
        "sm__cycles_elapsed.avg.per_second": clock,
        "lts__cycles_elapsed.avg.per_second": clock,
    }


NO_WORK = {**flops("d"), **flops("f"), **flops("h")}


def complete(device: Metrics = A100, seconds: float = 1e-3, clock: float = 1.41e9, **extra: float) -> Metrics:
    """A kernel with everything: one FP64 GFLOP, 1 GB at L1, 0.5 GB at L2, 0.25 GB at DRAM in a millisecond."""
    return {
        **device,
        **timing(seconds, clock),
        **NO_WORK,
        **flops("d", fma=500_000_000),
        **traffic(10**9, 500_000_000 // 32, 250_000_000),
        **extra,
    }


def kernel(metrics: Metrics, name: str = "void kernel<int>(int *)", **rest: object) -> KernelData:
    """One launch."""
    return KernelData(
        name=name,
        function_name=name.split("(")[0].split("<")[0].split()[-1],
        metrics=metrics,
        grid=(8, 1, 1),
        block=(128, 1, 1),
        **rest,
    )  # type: ignore[arg-type]


def report(path: Path, *kernels: KernelData, ncu_version: str = "2024.1.0.0") -> Path:
    """Write a report; returns its path."""
    write_report(path, ReportData(list(kernels), Session(ncu_version=ncu_version)), overwrite=True)
    return path


THREADS = "sass__thread_inst_executed_true_per_opcode_with_modifier_all"
WARPS = "sass__inst_executed_per_opcode_with_modifier_all"


def opcodes(**warps: float) -> dict[str, list[tuple[str, float]]]:
    """Instances of both opcode metrics from executed warp instructions (full warps); "_" in a keyword is a dot."""
    counts = {name.replace("__", "@").replace("_", ".").replace("@", "_"): float(number) for name, number in warps.items()}
    return {THREADS: [(name, 32 * number) for name, number in counts.items()], WARPS: list(counts.items())}


def by_address(base: int, **counts: Sequence[float]) -> dict[str, list[tuple[int, float]]]:
    """Instances of metrics with a value per instruction, in order from the kernel's first one at address ``base``."""
    listed = {name: [(base + 16 * index, value) for index, value in enumerate(values)] for name, values in counts.items()}
    return {"launch__function_pcs": [(0, base)], **listed}
