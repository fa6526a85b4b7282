"""Reports that sessions annotate."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.factory import A100, H100, Metrics, complete, kernel, report

TENSOR = [
    "sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum",
    "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32_sparsity_off.sum",
]
IDLE = {name: 0 if "op_d" in name else value for name, value in complete().items()}


def write_ceilings(
    path: Path, device: str = str(A100["device__attribute_display_name"]), cc: str = "8.0", **values: float
) -> None:
    """A file of measured roofs; "_" in a name is a dot."""
    units = {name: "FLOP/s" if name.startswith("fp") else "B/s" for name in values}
    entries = [{"id": name.replace("_", "."), "value": value, "unit": units[name]} for name, value in values.items()]
    document = {"schema": "ert-ceilings", "schema_version": 1, "device": {"name": device, "cc": cc}, "ceilings": entries}
    path.write_text(json.dumps(document))


def _write(kernels: list[Metrics], path: Path) -> None:
    report(path, *map(kernel, kernels))


FILES: dict[str, Callable[[Path], Any]] = {
    "half.ncu-rep": partial(_write, [complete(), IDLE]),
    "idle.ncu-rep": partial(_write, [IDLE, IDLE]),
    "tensor.ncu-rep": partial(_write, [{**complete(H100), **dict.fromkeys(TENSOR, 10**9)}]),
    "none.ncu-rep": partial(_write, []),
    "bare.ncu-rep": partial(_write, [{}, {}]),
    "measured.json": partial(write_ceilings, fp64_fma=8e12, dram_read=1.2e12),
    "smem.json": partial(write_ceilings, fp64_fma=8e12, fp32_fma=16e12, dram_read=1.2e12, smem_read=1e13),
    "again.json": partial(write_ceilings, fp64_fma=8e12, fp32_fma=16e12, dram_read=1.2e12, smem_read=1e13),
    "h100.json": partial(write_ceilings, device="NVIDIA H100", cc="9.0", fp64_fma=1e12),
}
