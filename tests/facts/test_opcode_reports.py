"""The table of opcodes on real reports: every opcode is known, and sums equal NVIDIA's own counters."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ncu_roofline.chips import load_opcodes
from ncu_roofline.formats.report import Kernel, read_report

pytestmark = pytest.mark.reports

THREADS = "sass__thread_inst_executed_true_per_opcode_with_modifier_all"
WARPS = "sass__inst_executed_per_opcode_with_modifier_all"
CLOCK, TIME = "smsp__cycles_elapsed.avg.per_second", "gpu__time_duration.sum"
KINDS = {"add": 1, "mul": 1, "fma": 2}
LETTERS = {"fp64": "d", "fp32": "f"}
WORKING = re.compile(r"U?[A-Z]*MMA|[FDH](ADD|MUL|FMA)|I(ADD|MAD|MUL|MMA)|H(ADD|MUL|FMA)2")


def counted(kernel: Kernel, metric: str = THREADS) -> list[tuple[str, float]]:
    """(opcode, count) of a launch, [] if the report has none."""
    return [(str(name), float(value)) for name, value in kernel.metrics.instances(metric)] if metric in kernel.metrics else []


def operations(kernel: Kernel, precision: str) -> float:
    """Thread instructions x weight."""
    chip, table = kernel.device.compute_capability, load_opcodes()
    found = [(table.work(name, chip), count) for name, count in counted(kernel)]
    return sum(work.weight * count for work, count in found if work and work.precision == precision)


def by_counters(kernel: Kernel, letter: str) -> float | None:
    """What NVIDIA's counters of adds, multiplies and fused ones say, from sums per cycle; None where one is missing."""
    names = {kind: f"smsp__sass_thread_inst_executed_op_{letter}{kind}_pred_on.sum.per_cycle_elapsed" for kind in KINDS}
    if not all(name in kernel.metrics for name in (*names.values(), CLOCK, TIME)):
        return None
    rates = sum(weight * float(kernel.metrics[names[kind]]) for kind, weight in KINDS.items())
    return rates * float(kernel.metrics[CLOCK]) * float(kernel.metrics[TIME]) / 1e9


def launches(paths: dict[str, Path]) -> list[tuple[str, Kernel]]:
    found = [(name, kernel) for name, path in paths.items() for kernel in read_report(path).kernels]
    return [(name, kernel) for name, kernel in found if counted(kernel)]


def test_every_opcode_is_known(real_reports: dict[str, Path]) -> None:
    table = load_opcodes()
    seen = set()
    for name, kernel in launches(real_reports):
        chip = kernel.device.compute_capability
        for opcode, _ in counted(kernel):
            assert not table.unknown(opcode, chip), (name, opcode)
            if WORKING.match(opcode) and not opcode.startswith("IMAD.MOV"):
                assert table.work(opcode, chip) is not None, (name, opcode)
                seen.add(opcode)
    assert {"HMMA.16816.F16", "HMMA.1688.F16", "IMMA.8816.S8.S8.SAT", "HFMA2.MMA", "DFMA", "IMAD.WIDE.U32"} <= seen


def test_sums_equal_the_hardware_counters(real_reports: dict[str, Path]) -> None:
    compared = dict.fromkeys(LETTERS, 0)
    for name, kernel in launches(real_reports):
        for precision, letter in LETTERS.items():
            counters = by_counters(kernel, letter)
            if counters is not None:
                assert operations(kernel, precision) == pytest.approx(counters, rel=1e-6, abs=0), (name, precision)
                compared[precision] += counters > 0
    assert compared["fp64"] >= 20
    assert compared["fp32"] >= 5


def test_tensor_instructions_are_executed_by_whole_warps(real_reports: dict[str, Path]) -> None:
    """So the count by warps is the one that tensor weights are for, and a lane of the count by threads is a 32nd of it."""
    table, seen = load_opcodes(), set()
    for name, kernel in launches(real_reports):
        by_threads = dict(counted(kernel))
        for opcode, count in counted(kernel, WARPS):
            work = table.work(opcode, kernel.device.compute_capability)
            if work is not None and work.per == "warp":
                assert by_threads[opcode] == 32 * count, (name, opcode)
                seen.add(opcode)
    assert seen >= {"IMMA.8816.S8.S8.SAT", "HMMA.1688.F16", "HMMA.16816.F16"}
