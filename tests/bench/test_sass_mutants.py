"""Broken benchmarks must be noticed: dead code, contraction, spills, lost fences.  One architecture is enough."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.bench.conftest import ROOT, compile_unit
from tests.bench.proof import applies, prove
from tests.bench.sass import disassemble

_TARGET = "80"


@dataclass(frozen=True)
class Mutant:
    """A change of a source, what the proof must say, and of how many kernels at least."""

    unit: str
    file: str
    changes: tuple[tuple[str, str], ...]
    says: str
    kernels: int


_MUTANTS = {
    "all chains but one are dead": Mutant(
        "vector",
        "vector.cuh",
        (("store_chain(args.out, i, x[i]);", "if (i == 0) store_chain(args.out, i, x[i]);"),),
        "operations per trip",
        13,
    ),
    "no-FMA code is contracted": Mutant(
        "vector",
        "ops_gpu.cuh",
        (
            ("__dadd_rn(x, y)", "x + y"),
            ("__dmul_rn(x, y)", "x * y"),
            ("__fadd_rn(x, y)", "x + y"),
            ("__fmul_rn(x, y)", "x * y"),
        ),
        "fused multiply-adds where none was meant",
        2,
    ),
    "FP64 is FP32": Mutant(
        "vector", "ops_gpu.cuh", (("__fma_rn(x, y, z)", "__fmaf_rn(float(x), float(y), float(z))"),), "no loop holds", 1
    ),
    "loops are unrolled twice": Mutant("vector", "base.cuh", (('"unroll 1"', '"unroll 2"'),), "operations per trip", 13),
    "registers spill": Mutant(
        "mma", "mma.cuh", (("F16K16, 8,", "F16K16, 96,"), ("Bf16K16, 8,", "Bf16K16, 96,")), "local memory", 2
    ),
    "half of the products are missing": Mutant(
        "mma", "mma.cuh", (("mma<Tag>(c[j], a, other);", "if (j % 2) mma<Tag>(c[j], a, other);"),), "operations per trip", 6
    ),
    "loads wait for each other": Mutant(
        "memory",
        "memory.cuh",
        (("load<P>(v[i], p + i * Threads);", "load<P>(v[i], p + i * Threads + (i ? sum(v[i - (i > 0)]) == 977 : 0));"),),
        "loads in flight",
        5,
    ),
    "half of the loads are dead": Mutant(
        "memory",
        "",
        (
            ("      odd += sum(v[i + 1]);\n", ""),
            ('asm volatile("ld.', 'asm("ld.'),
            ('asm volatile("mov.u64 %0, %%clock64', 'asm("mov.u64 %0, %%clock64'),
        ),
        "bytes per trip",
        6,
    ),
    "arithmetic binds before memory": Mutant(
        "memory",
        "memory.cuh",
        (("even += sum(v[i]);", "even = ((even ^ sum(v[i])) % 977 * 31 + sum(v[i]) % 1009) % 4093;"),),
        "binds",
        1,
    ),
}


def mutate(folder: Path, file: str, changes: tuple[tuple[str, str], ...]) -> Path:
    """A copy of the benchmark with changes in one file (all if "" is given); every change must apply."""
    bench = folder / "bench"
    for name in ("kernels", "units", "cpu", "runner"):
        shutil.copytree(ROOT / "bench" / name, bench / name)
    paths = [path for path in sorted((bench / "kernels").iterdir()) if path.name == file or not file]
    for old, new in changes:
        texts = {path: path.read_text(encoding="utf-8") for path in paths}
        assert any(old in text for text in texts.values()), old
        for path, text in texts.items():
            path.write_text(text.replace(old, new), encoding="utf-8")
    return bench


@pytest.mark.sampled("half of the products are missing")
@pytest.mark.parametrize("name", _MUTANTS)
def test_the_proof_rejects(
    name: str, tmp_path: Path, nvcc: str, disassembler: tuple[Path, Path], table: list[dict[str, Any]]
) -> None:
    mutant = _MUTANTS[name]
    bench = mutate(tmp_path, mutant.file, mutant.changes)
    functions = disassemble(disassembler, compile_unit(nvcc, bench, mutant.unit, _TARGET, tmp_path))
    rows = [row for row in table if row["symbol"] in functions and applies(row, _TARGET)]
    reasons = {row["symbol"]: prove(row, functions[row["symbol"]], _TARGET).reason for row in rows}
    rejected = [symbol for symbol, reason in reasons.items() if mutant.says in reason]
    assert len(rejected) >= mutant.kernels, reasons
