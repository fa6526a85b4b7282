"""The published GPP figures as a report and a ceilings file: for tests, and the source of the bundled demo.

``python -m tests.published_report DIR`` writes the files; a test holds the bundled ones against it.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

from ncu_roofline.formats.report import KernelData, ReportData, Session, write_report
from tests import published
from tests.analyses import published_portability

REPORT = "gpp-v100.ncu-rep"
CEILINGS = "gpp-v100-ceilings.json"
PLATFORMS = "gpp-platforms.csv"


def gpp_report() -> ReportData:
    """Six launches of GPP, nw = 1 ... 6, with the metrics of the published method."""
    session = Session(ncu_version="2020.1.0.0", command_line="ncu --metrics ... ./gpp 512 2 32768 20 nw", os="Linux")
    return ReportData(kernels=[_kernel(run) for run in published.gpp_runs()], session=session)


def _kernel(run: published.Gpp) -> KernelData:
    cycles = run.seconds * published.SM_CLOCK
    metrics: dict[str, float | int | str] = {
        "device__attribute_display_name": published.GPU,
        "device__attribute_compute_capability_major": published.CAPABILITY[0],
        "device__attribute_compute_capability_minor": published.CAPABILITY[1],
        "device__attribute_architecture": 0x140,  # GV100; without it Nsight Compute does not take the report
        "device__attribute_multiprocessor_count": published.SM_COUNT,
        "device__attribute_max_gpu_frequency_khz": round(published.SM_CLOCK / 1e3),
        "device__attribute_max_mem_frequency_khz": round(published.MEMORY_CLOCK / 1e3),
        "device__attribute_global_memory_bus_width": published.BUS_WIDTH,
        "gpu__time_duration.sum": run.seconds * 1e9,
        "sm__cycles_elapsed.avg": cycles,
        "sm__cycles_elapsed.avg.per_second": published.SM_CLOCK,
        "sm__sass_thread_inst_executed_op_dadd_pred_on.sum": run.dadd,
        "sm__sass_thread_inst_executed_op_dmul_pred_on.sum": run.dmul,
        "sm__sass_thread_inst_executed_op_dfma_pred_on.sum": run.dfma,
        "sm__sass_thread_inst_executed_op_fadd_pred_on.sum": 0,
        "sm__sass_thread_inst_executed_op_fmul_pred_on.sum": 0,
        "sm__sass_thread_inst_executed_op_ffma_pred_on.sum": 0,
        "sm__sass_thread_inst_executed_op_hadd_pred_on.sum": 0,
        "sm__sass_thread_inst_executed_op_hmul_pred_on.sum": 0,
        "sm__sass_thread_inst_executed_op_hfma_pred_on.sum": 0,
        "dram__bytes.sum": run.bytes_dram,
        "lts__t_bytes.sum": run.bytes_l2,
        "l1tex__t_bytes.sum": run.bytes_l1,
    }
    return KernelData(
        name=f"void sigma_gpp_gpu<{run.nw}>(const double2 *, const double2 *, double2 *)",
        function_name="sigma_gpp_gpu",
        grid=(512, 1, 1),
        block=(128, 1, 1),
        metrics=metrics,
        nvtx=(f"nw={run.nw}",),
    )


def gpp_ceilings() -> dict[str, Any]:
    """The published measured ceilings of the V100."""
    values = {
        "fp64.fma": published.FP64_FMA,
        "fp64.nofma": published.FP64_NO_FMA,
        "dram.read": published.DRAM,
        "l2.read": published.L2,
        "launch.stream": published.LAUNCH_LATENCY,
    }
    units = {"fp64": "FLOP/s", "launch": "s"}
    major, minor = published.CAPABILITY
    return {
        "schema": "ert-ceilings",
        "schema_version": 1,
        "host": {"time_utc": "2018-11-16"},
        "device": {"name": published.GPU, "uuid": "", "cc": f"{major}.{minor}", "sm_count": published.SM_COUNT},
        "ceilings": [
            {"id": name, "value": value, "unit": units.get(name.split(".")[0], "B/s"), "accepted": True, "reasons": []}
            for name, value in values.items()
        ],
        "warnings": [
            "published figures: Yang et al. (P3HPC 2018, CCPE 2019), Empirical Roofline Toolkit",
            "launch latency: Wang et al. (2020)",
        ],
    }


def gpp_platforms() -> str:
    """Table III (FMA) of the portability paper as a plain table: what `ncu-roofline portability` reads."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["platform", "application", "nw", "gflop/s", "ai_dram", "peak_gflops", "bandwidth_dram_gbs"])
    table = published_portability.TABLE_3_FMA
    for place, platform in enumerate(("KNL 7250", "V100")):
        for nw, rate, intensity in zip(table.values, table.gflops[place], table.intensity[place], strict=True):
            writer.writerow([platform, "GPP", nw, rate, intensity, table.compute[place], table.bandwidth[place]])
    return buffer.getvalue()


def write(folder: Path) -> None:
    """Write the report, the ceilings file and the table of platforms into ``folder``."""
    write_report(folder / REPORT, gpp_report(), overwrite=True)
    (folder / PLATFORMS).write_text(gpp_platforms(), encoding="utf-8")
    (folder / CEILINGS).write_text(json.dumps(gpp_ceilings(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
