"""Static proof, without a GPU: the machine code of every kernel does what its table row promises."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bench.h100 import H100, NO_TABLE_ROW
from tests.bench.proof import Finding, applies, capability_of, prove
from tests.bench.sass import Function, Instruction, loads_in_flight, operations, products, width

_TARGETS = ("70", "75", "80", "86", "87", "89", "90a", "100a", "103a", "110", "120", "121")
# Older compilers leave the kernel empty, and the runner refuses to time it.
_COMPILED_SINCE = {"tensor.fp8.mma": (12, 4)}
_NEWEST = (13, 0)  # what the kernels were written against
Kernels = Callable[[str], dict[str, Function]]


def findings(table: list[dict[str, Any]], functions: dict[str, Function], target: str) -> list[tuple[dict[str, Any], Finding]]:
    """The proof of every kernel that exists on a target."""
    return [(row, prove(row, functions[row["symbol"]], target)) for row in table if applies(row, target)]


@pytest.mark.exhaustive
@pytest.mark.parametrize("target", _TARGETS)
def test_every_promise_is_kept(target: str, table: list[dict[str, Any]], kernels: Kernels, nvcc: str) -> None:
    found = findings(table, kernels(target), target)
    # A variant that a compiler spoils does no harm where another of the same ceiling is as promised: the best one counts.
    held = {row["ceiling"] for row, finding in found if not finding.reason}
    held |= {ceiling for ceiling, since in _COMPILED_SINCE.items() if _version(nvcc) < since}
    broken = [finding for row, finding in found if finding.reason and row["ceiling"] not in held]
    assert not broken


@pytest.mark.exhaustive
@pytest.mark.parametrize("target", _TARGETS)
def test_every_variant_keeps_its_promise_with_the_newest_compiler(
    target: str, table: list[dict[str, Any]], kernels: Kernels, nvcc: str
) -> None:
    if _version(nvcc) < _NEWEST:
        pytest.skip(f"nvcc {'.'.join(map(str, _version(nvcc)))} is older than {_NEWEST[0]}.{_NEWEST[1]}")
    assert not [finding for _, finding in findings(table, kernels(target), target) if finding.reason]


def _version(nvcc: str) -> tuple[int, ...]:
    text = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"release (\d+)\.(\d+)", text)
    assert found
    return tuple(map(int, found.groups()))


@pytest.mark.exhaustive
@pytest.mark.parametrize("target", _TARGETS)
def test_emulated_paths_are_found_and_declared(target: str, table: list[dict[str, Any]], kernels: Kernels) -> None:
    found = {row["symbol"] for row, finding in findings(table, kernels(target), target) if finding.emulated}
    major, minor = capability_of(target)
    named = {f"{major}.{minor}", f"{major}.x"}
    declared = {row["symbol"] for row in table if applies(row, target) and named & set(row["emulated"].split())}
    assert found == declared


@pytest.mark.exhaustive
def test_the_table_is_complete(table: list[dict[str, Any]]) -> None:
    ceilings = {row["ceiling"] for row in table}
    memory = {"dram.read", "dram.write", "dram.copy", "dram.triad", "l2.read", "l2.read_far", "l2.write", "l2.copy"}
    vector = {f"{kind}.{mix}" for kind in ("fp64", "fp32", "fp16", "bf16") for mix in ("fma", "nofma", "div")}
    tensor = {f"tensor.{kind}.mma" for kind in ("fp64", "tf32", "bf16", "fp16", "fp16_acc16", "int8", "fp8")}
    hopper = {f"tensor.{kind}.wgmma" for kind in ("tf32", "bf16", "fp16", "fp16_acc16", "int8", "fp8")}
    blackwell = {f"tensor.{kind}.tcgen05" for kind in ("tf32", "bf16", "fp16", "fp16_acc16", "int8", "fp8")}
    host = {"host.h2d", "host.d2h"}
    assert ceilings == memory | vector | tensor | hopper | blackwell | host | {"l1.read", "smem.read", "int32.mad"}
    assert len({(row["ceiling"], row["variant"], row["since"]) for row in table}) == len(table)
    assert all(row["operations"] or row["bytes"] for row in table)


def test_the_simulations_measure_what_the_runner_measures_on_an_h100(table: list[dict[str, Any]]) -> None:
    rows = [row for row in table if applies(row, "90a") and "9.0" not in row["emulated"].split()]
    found = {row["ceiling"]: tuple(one["variant"] for one in rows if one["ceiling"] == row["ceiling"]) for row in rows}
    assert {ceiling: set(variants) for ceiling, variants in found.items()} == {
        ceiling: set(variants) - NO_TABLE_ROW for ceiling, variants in H100.items() if set(variants) - NO_TABLE_ROW
    }


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("target", "opcode", "suffix"), [("90a", r"HGMMA\.64x256x16", "wgmma_f16"), ("100a", r"UTCHMMA", "tcgen05_f16")]
)
def test_the_tensor_roof_of_hopper_and_blackwell_is_reachable(target: str, opcode: str, suffix: str, kernels: Kernels) -> None:
    code = kernels(target)[f"bench_{suffix}"].instructions
    assert sum(bool(re.match(opcode, each.opcode)) for each in code) == 20  # 16 per trip and 4 at the end


@pytest.mark.parametrize(
    ("opcode", "wanted"),
    [
        ("HMMA.16816.F32", 16 * 8 * 16),
        ("HMMA.1688.F32.TF32", 16 * 8 * 8),
        ("IMMA.16832.S8.S8", 16 * 8 * 32),
        ("IMMA.8816.S8.S8", 8 * 8 * 16),
        ("DMMA.884", 8 * 8 * 4),
        ("DMMA.16x8x16", 16 * 8 * 16),
        ("QMMA.16832.F32.E4M3.E4M3", 16 * 8 * 32),
        ("HGMMA.64x256x16.F32", 64 * 256 * 16),
        ("FFMA", 0),
    ],
)
def test_tensor_shapes(opcode: str, wanted: int) -> None:
    assert products(opcode) == wanted


@pytest.mark.parametrize(
    ("opcode", "operands", "kind", "wanted"),
    [
        ("DFMA", "R2, R2, R2, R4", "fp64", 2),
        ("FFMA", "R2, R2, R2, R4", "fp64", 0),
        ("FFMA2", "R2, R2, R2, R4", "fp32", 4),
        ("FADD.FTZ", "R2, R2, R4", "fp32", 1),
        ("HFMA2", "R2, R2, R2, R4", "fp16", 4),
        ("HFMA2.MMA", "R2, R2, R2, -RZ", "fp16", 2),
        ("HFMA2.MMA", "R2, R2, 1, 1, R12.reuse", "fp16", 2),
        ("HFMA2.BF16_V2", "R2, R2, R2, -RZ.H0_H0", "bf16", 2),
        ("HADD2.F32", "R2, -RZ, R4.H0_H0", "fp16", 0),
        ("HMUL2.BF16_V2", "R2, R2, R2", "bf16", 2),
        ("IMAD", "R2, R2, R3, R4", "int32", 2),
        ("IMAD.MOV.U32", "R2, RZ, RZ, R4", "int32", 0),
    ],
)
def test_operations(opcode: str, operands: str, kind: str, wanted: int) -> None:
    assert operations(Instruction("", opcode, operands), kind) == wanted


def test_widths_and_loads_in_flight() -> None:
    assert [width(each) for each in ("LDG.E", "LDG.E.64", "LDS.128", "LDG.E.ENL2.256.STRONG.SM")] == [4, 8, 16, 32]
    loads = [Instruction("", "LDG.E.128", f"R{4 * i}, [R40.64+{i}]") for i in range(1, 4)]
    use = Instruction("", "IADD3", "R0, R4, R8, R12")
    assert loads_in_flight([*loads, use]) == 3
    assert loads_in_flight([loads[0], use, loads[1], use]) == 1


def test_disassembly_needs_no_gpu(disassembler: tuple[Path, Path]) -> None:
    for tool in disassembler:
        assert subprocess.run([str(tool), "--version"], capture_output=True, check=False).returncode == 0
