"""Logs as nvprof prints them, made up: each function gives the text of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests import published

GPU = f"{published.GPU} (0)"
KERNEL = "NumBandNgpown_kernel(int, int, GPUComplex*, double const *)"
OWN = "==4711== NVPROF is profiling process 4711, command: ./gpp 512 2 32768 20\n==4711== Profiling result:\n"


def _quoted(cells: Sequence[object]) -> str:
    return ",".join(f'"{cell}"' for cell in cells)


def metrics(values: Mapping[str, object], kernel: str = KERNEL, launches: int = 1, device: str = GPU) -> str:
    """``nvprof --csv --metrics``: the mean of each metric over the launches."""
    heading = _quoted(("Device", "Kernel", "Invocations", "Metric Name", "Metric Description", "Min", "Max", "Avg"))
    rows = [
        f'"{device}","{kernel}",{launches},"{name}","What {name}, counts",{value},{value},{value}'
        for name, value in values.items()
    ]
    return "\n".join([f"{OWN}==4711== Metric result:", heading, *rows]) + "\n"


def summary(times: Mapping[str, tuple[float, int]]) -> str:
    """``nvprof --csv --print-gpu-summary``: kernel -> (seconds in all, calls)."""
    lines = [OWN + _quoted(("Type", "Time(%)", "Time", "Calls", "Avg", "Min", "Max", "Name")), ",%,us,,us,us,us,"]
    for name, (seconds, calls) in times.items():
        each = seconds / calls * 1e6
        lines.append(f'"GPU activities",50.0,{seconds * 1e6!r},{calls},{each!r},{each!r},{each!r},"{name}"')
    return "\n".join(lines) + "\n"


def gpp_metrics(run: published.Gpp, launches: int = 1) -> dict[str, object]:
    """The published counts of one run as nvprof's metrics, per launch; transactions of 32 byte, so 32 byte are rounded."""
    sectors = {"l1": run.bytes_l1 // 32, "l2": run.bytes_l2 // 32, "dram": run.bytes_dram // 32}
    values = {
        "flop_count_dp": 2 * run.dfma + run.dadd + run.dmul,
        "flop_count_dp_add": run.dadd,
        "flop_count_dp_mul": run.dmul,
        "flop_count_dp_fma": run.dfma,
        "gld_transactions": sectors["l1"] - sectors["l1"] // 5,
        "gst_transactions": sectors["l1"] // 5,
        "l2_read_transactions": sectors["l2"] - sectors["l2"] // 3,
        "l2_write_transactions": sectors["l2"] // 3,
        "dram_read_transactions": sectors["dram"] - sectors["dram"] // 4,
        "dram_write_transactions": sectors["dram"] // 4,
    }
    return {name: value / launches for name, value in values.items()}
