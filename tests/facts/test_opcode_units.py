"""Opcodes in real reports: every one is known, and sums equal NVIDIA's own counters of work and of units."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from ncu_roofline.chips import load_opcodes
from ncu_roofline.chips.opcodes import load_opcode_units
from ncu_roofline.formats.report import Kernel, read_report
from ncu_roofline.model.work import WARPS

THREADS = "sass__thread_inst_executed_true_per_opcode_with_modifier_all"
CLOCK, TIME = "smsp__cycles_elapsed.avg.per_second", "gpu__time_duration.sum"
KINDS = {"add": 1, "mul": 1, "fma": 2}
LETTERS = {"fp64": "d", "fp32": "f"}
WORKING = re.compile(r"U?[A-Z]*MMA|[FDH](ADD|MUL|FMA)|I(ADD|MAD|MUL|MMA)|H(ADD|MUL|FMA)2")
# Instructions of a warp per cycle of an SM that are 100 % of sm__inst_executed_pipe_UNIT, by compute capability.
PEAKS = {
    (7, 0): {"xu": 0.5},
    (8, 0): {"alu": 2, "fma": 2, "fp64": 1, "xu": 0.5},
    (8, 6): {"alu": 2, "fma": 4, "xu": 0.5},
}
UNITS = {
    (7, 0): {"HFMA2": "fp16"},
    (8, 0): {"IADD3.X": "alu", "IMAD.MOV.U32": "fma", "HFMA2.MMA": "", "DMMA.884": "tensor", "UIADD3": "", "LDG.E": ""},
    (8, 6): {"HFMA2": "fma", "DMMA.884": "fp64", "op 0x1a3": "", "": ""},
    (12, 0): {"IADD3": ""},
}


def test_units() -> None:
    table = load_opcode_units()
    assert {chip: {opcode: table.of(opcode, chip) for opcode in opcodes} for chip, opcodes in UNITS.items()} == UNITS


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
