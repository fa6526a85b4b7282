"""Logs as nvprof prints them, made up: each function gives the text of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests import published

GPU = f"{published.GPU} (0)"
KERNEL = "NumBandNgpown_kernel(int, int, GPUComplex*, double const *)"
OWN = "==4711== NVPROF is profiling process 4711, command: ./gpp 512 2 32768 20\n==4711== Profiling result:\n"
TRACE_COLUMNS = (
    *("Start", "Duration", "Grid X", "Grid Y", "Grid Z", "Block X", "Block Y", "Block Z"),
    *("Registers Per Thread", "Static SMem", "Dynamic SMem", "Size", "Throughput", "Device", "Context", "Stream", "Name"),
)


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


def summary(times: Mapping[str, tuple[float, int]], unit: str = "us", kind: bool = True) -> str:
    """``nvprof --csv --print-gpu-summary``: kernel -> (seconds in all, calls); a copy and API calls stand beside them."""
    scale = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[unit]
    heading = _quoted((*(["Type"] if kind else []), "Time(%)", "Time", "Calls", "Avg", "Min", "Max", "Name"))
    first = '"GPU activities",' if kind else ""
    lines = [f"{OWN}{heading}", f"{',' if kind else ''}%,{unit},,{unit},{unit},{unit},"]
    for name, (seconds, calls) in (*times.items(), ("[CUDA memcpy HtoD]", (1.0, 3))):
        each = seconds / calls * scale
        lines.append(f'{first}50.0,{seconds * scale!r},{calls},{each!r},{each!r},{each!r},"{name}"')
    if kind:
        lines.append(f'"API calls",99.0,{7.0 * scale!r},2,{scale!r},{scale!r},{scale!r},"cudaLaunchKernel"')
    return "\n".join(lines) + "\n"


def trace(
    launches: Sequence[tuple[str, float]], extra: Mapping[str, Sequence[object]] | None = None, numbered: bool = False
) -> str:
    """``nvprof --csv --print-gpu-trace``: (kernel, seconds) of each launch, with metrics as further columns."""
    more = extra or {}
    lines = [OWN + _quoted((*TRACE_COLUMNS, *more)), "ms,us,,,,,,,,KB,B,MB,GB/s,,,," + "," * len(more)]
    lines.append(f'0.1,9.0,,,,,,,,,,1.0,9.1,"{GPU}","1","7","[CUDA memcpy HtoD]"' + "," * len(more))
    for number, (name, seconds) in enumerate(launches):
        suffix = f" [{100 + number}]" if numbered else ""
        values = "".join(f",{column[number]}" for column in more.values())
        lines.append(f'{number},{seconds * 1e6!r},80,1,1,256,1,1,32,0.0,0,,,"{GPU}","1","7","{name}{suffix}"{values}')
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
