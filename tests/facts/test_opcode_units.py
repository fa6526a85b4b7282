"""Which unit an opcode needs, held against the counters of pipes in real reports."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ncu_roofline.chips.opcodes import load_opcode_units
from ncu_roofline.formats.report import Kernel, read_report
from ncu_roofline.model.work import WARPS

# Instructions of a warp per cycle of an SM that are 100 % of sm__inst_executed_pipe_UNIT, by compute capability.
PEAKS = {
    (7, 0): {"xu": 0.5},
    (8, 0): {"alu": 2, "fma": 2, "fp64": 1, "xu": 0.5},
    (8, 6): {"alu": 2, "fma": 4, "xu": 0.5},
}


@pytest.mark.parametrize(
    ("opcode", "capability", "unit"),
    [
        ("IADD3.X", (8, 0), "alu"),
        ("IMAD.MOV.U32", (8, 0), "fma"),
        ("HFMA2", (7, 0), "fp16"),
        ("HFMA2.MMA", (8, 0), ""),
        ("HFMA2", (8, 6), "fma"),
        ("DMMA.884", (8, 0), "tensor"),
        ("DMMA.884", (8, 6), "fp64"),
        ("IADD3", (12, 0), ""),
        ("UIADD3", (8, 0), ""),
        ("LDG.E", (8, 0), ""),
        ("op 0x1a3", (8, 0), ""),
        ("", (8, 0), ""),
    ],
)
def test_units(opcode: str, capability: tuple[int, int], unit: str) -> None:
    assert load_opcode_units().of(opcode, capability) == unit


def test_sums_are_those_of_the_pipes(real_reports: dict[str, Path]) -> None:
    compared = Counter[str]()
    for name, path in real_reports.items():
        if "full" in name:
            with read_report(path) as report:
                for kernel in report.kernels:
                    compared.update(check(kernel, f"{name} {kernel.function_name}"))
    assert min(compared[unit] for unit in ("alu", "fma", "xu", "fp64")) >= 10


def check(kernel: Kernel, about: str) -> list[str]:
    """Units of which a launch has both counts; warps of some kernels race, so that passes differ by several percent."""
    metrics = kernel.metrics
    chip = tuple(int(metrics.get(f"device__attribute_compute_capability_{part}", 0)) for part in ("major", "minor"))
    cycles, sms = metrics.get("sm__cycles_active.avg"), metrics.get("device__attribute_multiprocessor_count")
    if not metrics.has_name(WARPS) or not cycles or not sms:
        return []
    sums = Counter[str]()
    for opcode, count in metrics.instances(WARPS):
        sums[load_opcode_units().of(str(opcode), (chip[0], chip[1]))] += count
    told = []
    for unit, peak in PEAKS.get((chip[0], chip[1]), {}).items():
        share = metrics.get(f"sm__inst_executed_pipe_{unit}.avg.pct_of_peak_sustained_active")
        if share and sums[unit] > 1e-3 * sum(sums.values()):
            assert sums[unit] == pytest.approx(share / 100 * peak * cycles * sms, rel=0.1), f"{about} {unit}"
            told.append(unit)
    return told
