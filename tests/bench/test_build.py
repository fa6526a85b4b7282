"""The runner and the proxy applications build without a GPU, and say what they can say without one."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.bench.build import build, build_apps
from ncu_roofline.bench.catalogue import UNPROVEN, rows
from ncu_roofline.bench.runner import Runner
from tests.bench.conftest import ROOT
from tests.sharing import made_once

BENCH = ROOT / "bench"
RULES = json.loads((BENCH / "build.json").read_text(encoding="utf-8"))
LIST = ("list", "--capabilities", "70,72,75,80,86,87,89,90,100,103,110,120,121")
_WITHOUT_GPU = 3


@pytest.fixture(scope="module")
def runner(nvcc: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runner for sm_80, built once; warnings are errors."""
    folder = made_once(tmp_path_factory, "runner", lambda out: built_in(out, nvcc))
    (program,) = folder.rglob(str(RULES["output"]))
    return program


def built_in(cache: Path, nvcc: str) -> None:
    """Build the runner into a folder."""
    build("8.0", nvcc, cache=cache, strict=True)


def call(runner: Path, *words: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit code and lines of the runner."""
    done = subprocess.run([str(runner), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_the_rules_name_every_source() -> None:
    found = [path for folder in ("units", "runner", "cpu") for path in (BENCH / folder).iterdir()]
    sources = {str(path.relative_to(BENCH)) for path in found if path.suffix in (".cu", ".cpp")}
    assert sources == set(RULES["sources"])
    apps = {str(path.relative_to(BENCH)) for path in (BENCH / "apps").glob("*.cu")}
    assert apps == set(RULES["apps"].values())
    assert not any("-Werror" in flag for flag in RULES["flags"])  # a compiler with new warnings still builds it
    assert any("-Werror" in flag for flag in RULES["strict_flags"])


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
        (("device", "--device", "0"), 2, "the commands are"),
        (("run", "--ceiling"), 2, "expected --name VALUE"),
        (("serve", "ceiling", "dram.read"), 2, "expected --name VALUE"),
        (("run", "--ceiling", "l1.read", "--variant", "ldg128_b256_x2", "--device", "x"), 2, "is no number"),
        (("serve", "--device", ""), 2, "is no number"),
    ],
)
def test_wrong_words_are_explained(runner: Path, words: tuple[str, ...], code: int, says: str) -> None:
    assert call(runner, *words)[0] == code
    assert says in call(runner, *words)[1][-1]["error"]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("words", "doing"),
    [
        (("devices",), "looking for GPUs"),
        (("serve",), "selecting the GPU"),
        (("run", "--device", "0"), "selecting the GPU"),
    ],
)
def test_without_a_gpu_it_says_so(runner: Path, words: tuple[str, ...], doing: str) -> None:
    if call(runner, "devices")[0] == 0:
        pytest.skip("there is a GPU here")
    code, (line,) = call(runner, *words)
    assert code == _WITHOUT_GPU
    assert doing in line["error"]


@pytest.mark.exhaustive
def test_the_proxy_applications_build(nvcc: str, tmp_path: Path) -> None:
    programs = build_apps("8.0", nvcc, cache=tmp_path, strict=True)
    assert [program.path.name for program in programs] == ["gpp", "gsrb", "lecture"]
    for program in programs:
        done = subprocess.run([str(program.path), "--unknown", "1"], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "usage:" in done.stderr


@pytest.mark.exhaustive
def test_the_list_says_what_was_run_on_hardware(runner: Path) -> None:
    listed = {row["ceiling"]: row for row in rows(Runner(runner).variants(), ("9.0",))}
    assert listed["fp64.fma"]["status"] == "run on 9.0"
    assert listed["tensor.fp16.wgmma"]["status"] == "run on 9.0"
    assert "tensor.fp16.tcgen05" not in listed
    everywhere = {row["ceiling"]: row for row in rows(Runner(runner).variants())}
    assert everywhere["tensor.fp16.tcgen05"]["status"] == UNPROVEN
    assert listed["dram.read"]["variants"] == ["ldg128_cs_b512_i8", "bulk16k_s5"]
