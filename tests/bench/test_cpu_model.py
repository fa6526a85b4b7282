"""Functional proof, without a GPU: the same kernel sources on a CPU model that counts what they do."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.bench.conftest import ROOT, build_model
from tests.bench.test_sass_mutants import mutate


@cache
def checks(program: Path) -> dict[str, dict[str, Any]]:
    """What the model says of every kernel."""
    done = subprocess.run([str(program), "check"], capture_output=True, text=True, check=True, timeout=120)
    return {line["symbol"]: line for line in map(json.loads, done.stdout.splitlines())}


@pytest.mark.exhaustive
def test_kernels_do_what_they_promise(model: Path, table: list[dict[str, Any]]) -> None:
    found = checks(model)
    assert found.keys() == {row["symbol"] for row in table}
    for row in table:
        assert found[row["symbol"]]["operations"] == row["operations"], row
        assert found[row["symbol"]]["bytes"] == row["bytes"], row


@pytest.mark.exhaustive
def test_results_are_right(model: Path) -> None:
    assert {symbol: each["reason"] for symbol, each in checks(model).items() if each["reason"]} == {}


_MUTANTS = {
    "accumulators run away": (
        "mma.cuh",
        (("mma<Tag>(c[j], a, other);", "mma<Tag>(c[j], a, (void(other), b));"),),
        {"bench_mma_f16", "bench_mma_f64", "bench_mma_e4m3"},
    ),
    "a descriptor points elsewhere": (
        "wgmma.cuh",
        (("uint64_t{kGroupStride >> 4} << 32", "uint64_t{kHalfStride >> 4} << 32"),),
        {"bench_wgmma_f16", "bench_wgmma_e4m3", "bench_wgmma_s8"},
    ),
    "a tile is read twice": (
        "memory.cuh",
        (("  return tile >= args.tiles ? tile - args.tiles : tile;", "  return tile >= args.tiles ? 0 : tile / 2 * 2;"),),
        {"bench_l2_read", "bench_l2_copy"},
    ),
}


def mutated_model(folder: Path, file: str, changes: tuple[tuple[str, str], ...]) -> Path:
    """The model program of changed kernels."""
    bench = mutate(folder, file, changes)
    shutil.copytree(ROOT / "tests" / "bench" / "cpu", folder / "tests" / "bench" / "cpu")
    return build_model(bench, folder, optimise="-O1")


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", _MUTANTS)
def test_the_model_rejects(name: str, tmp_path: Path) -> None:
    file, changes, kernels = _MUTANTS[name]
    found = checks(mutated_model(tmp_path, file, changes))
    assert kernels <= {symbol for symbol, each in found.items() if each["reason"]}


@pytest.mark.exhaustive
def test_the_model_stops_at_accesses_out_of_bounds(tmp_path: Path) -> None:
    program = mutated_model(tmp_path, "memory.cuh", (("p + i * Threads);", "p + (i + 1) * Threads);"),))
    done = subprocess.run([str(program), "check"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "out of bounds" in done.stderr
