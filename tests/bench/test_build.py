"""The runner and the proxy applications build without a GPU, and say what they can say without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench.conftest import ROOT
from tests.sharing import made_once

BENCH = ROOT / "bench"
RULES = json.loads((BENCH / "build.json").read_text(encoding="utf-8"))
LIST = ("list", "--capabilities", "70,72,75,80,86,87,89,90,100,103,110,120,121")
_WITHOUT_GPU = 3


def built(nvcc: str, out: Path, *words: str) -> list[Path]:
    """What bench/build makes for sm_80."""
    command = [sys.executable, str(BENCH / "build"), "--nvcc", nvcc, "--arch", "80", "--out", str(out), "--jobs", "2", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [Path(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def runner(nvcc: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runner, built once; warnings are errors."""
    folder = made_once(tmp_path_factory, "runner", lambda out: built(nvcc, out))
    (program,) = [path for path in folder.iterdir() if path.is_file() and os.access(path, os.X_OK)]
    return program


def call(runner: Path, *words: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit code and lines of the runner."""
    done = subprocess.run([str(runner), *words], capture_output=True, text=True, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_the_rules_name_every_source() -> None:
    found = [path for folder in ("units", "runner", "cpu") for path in (BENCH / folder).iterdir()]
    sources = {str(path.relative_to(BENCH)) for path in found if path.suffix in (".cu", ".cpp")}
    assert sources == set(RULES["sources"])
    apps = {str(path.relative_to(BENCH)) for path in (BENCH / "apps").glob("*.cu")}
    assert apps == set(RULES["apps"].values())
    assert "all-warnings" in RULES["flags"]
    assert any("-Werror" in flag for flag in RULES["flags"])


@pytest.mark.exhaustive
def test_list_tells_every_kernel_and_what_needs_none(runner: Path, table: list[dict[str, Any]]) -> None:
    code, rows = call(runner, *LIST)
    assert code == 0
    assert {row["ceiling"] for row in rows} == {row["ceiling"] for row in table} | {
        "host.h2d",
        "host.d2h",
        "host.bidir",
        "launch.stream",
        "launch.sync",
        "launch.graph",
    }
    assert {row["kernel"] for row in table_rows(rows)} == {row["symbol"] for row in table}
    assert all(row["capabilities"] and row["reason"] in ("", "emulated") for row in rows)
    assert {row["unit"] for row in rows} == {"B/s", "FLOP/s", "OP/s", "s"}


def table_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that are about kernels of the table."""
    return [row for row in rows if row["kernel"] not in ("", "bench_empty")]


@pytest.mark.exhaustive
def test_list_is_of_what_the_program_was_compiled_for_unless_told(runner: Path) -> None:
    assert {tuple(row["capabilities"]) for row in call(runner, "list")[1]} == {("8.0",)}


@pytest.mark.exhaustive
def test_fp8_by_mma_sync_is_listed_as_emulated_where_it_is(runner: Path) -> None:
    rows = [row for row in call(runner, *LIST)[1] if row["ceiling"] == "tensor.fp8.mma"]
    by_reason = {row["reason"]: row["capabilities"] for row in rows}
    assert by_reason == {"": ["8.9", "12.0", "12.1"], "emulated": ["9.0", "10.0", "10.3", "11.0"]}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ((), 2, "the commands are"),
        (("run",), 2, "--ceiling is missing"),
        (("run", "--ceiling"), 2, "expected --name VALUE"),
        (("run", "--ceiling", "dram.read", "--variant", "none"), 2, "there is no ceiling dram.read"),
        (("run", "--ceiling", "l1.read", "--variant", "ldg128_b256_x1", "--device", "x"), 2, "is no number"),
    ],
)
def test_wrong_words_are_explained(runner: Path, words: tuple[str, ...], code: int, says: str) -> None:
    assert call(runner, *words)[0] == code
    assert says in call(runner, *words)[1][-1]["error"]


@pytest.mark.exhaustive
def test_without_a_gpu_it_says_so(runner: Path) -> None:
    code, lines = call(runner, "device", "--device", "0")
    if code == 0:
        pytest.skip("there is a GPU here")
    assert code == _WITHOUT_GPU
    assert "selecting the GPU" in lines[-1]["error"]


@pytest.mark.exhaustive
def test_the_proxy_applications_build(nvcc: str, tmp_path: Path) -> None:
    programs = built(nvcc, tmp_path, "--apps")
    assert [path.name for path in programs] == ["gpp", "gsrb", "lecture"]
    for path in programs:
        done = subprocess.run([str(path), "--unknown", "1"], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "usage:" in done.stderr
