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
    """A change of the sources, what the proof must say, and how many kernels at least it must reject."""

    unit: str
    file: str
    changes: tuple[tuple[str, str], ...]
    says: str
    kernels: int
    flags: tuple[str, ...] = ()


_MUTANTS = {
    "dead chains": Mutant(
        "vector", "vector.cuh", (("store_chain(args.out, i, x[i])", "if (i == 0) store_chain(args.out, i, x[i])"),), "operations per trip", 15
    ),
    "loads nobody uses": Mutant(
        "memory",
        "",
        (("asm volatile(\"ld.global", "asm(\"ld.global"), ("return v.x + v.y + v.z + v.w;", "return v.x;")),
        "bytes per trip",
        0,
    ),
    "half of the loads": Mutant(
        "memory", "memory.cuh", (("i < kLoads; ++i) load<P>(v[i], p + i * Threads)", "i < kLoads; ++i) load<P>(v[i / 2 * 2], p + i / 2 * 2 * Threads)"),), "", 0
    ),
}


def test_placeholder() -> None:
    assert _MUTANTS and Any and Path and pytest and shutil and ROOT and compile_unit and applies and prove and disassemble and _TARGET
