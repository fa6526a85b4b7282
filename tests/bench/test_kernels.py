"""Proof without a GPU: machine code and a CPU model of the kernels do what the table promises; broken ones are noticed."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.bench.build import build, build_apps
from ncu_roofline.bench.catalogue import UNPROVEN, rows
from ncu_roofline.bench.runner import Runner
from tests.bench.fakes import H100_LIST, HERE, MACHINES, read_toml
from tests.bench.proof import applies, capability_of, disassemble, prove
from tests.sharing import made_once

Row = dict[str, Any]
Tools = tuple[Path, Path]
BENCH = HERE.parents[1] / "bench"
TOLD = read_toml("kernels.toml")
UNITS = ("vector", "memory", "mma", "wgmma", "tcgen05")
HOST_FLAGS = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-ffp-contract=off"]
CODE_FLAGS = ["-std=c++17", "-O3", "-Werror", "all-warnings", "-cubin"]
TARGETS = ("70", "75", "80", "86", "87", "89", "90a", "100a", "103a", "110", "120", "121")


def build_model(bench: Path, out: Path, optimise: str = "-O2") -> Path:
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if not compiler:
        pytest.skip("no C++ compiler on this machine (set CXX): the CPU model of the kernels can't be built")
    own = bench.parent / "tests" / "bench" / "cpu"
    sources = [own / "model.cpp", own / "checks.cpp", bench / "cpu" / "reference.cpp"]
    words = [[compiler, *HOST_FLAGS, optimise, "-c", str(one), "-o", str(out / f"{one.stem}.o")] for one in sources]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda command: subprocess.run(command, check=True), words))
    subprocess.run([compiler, *(command[-1] for command in words), "-o", str(out / "model")], check=True)
    return out / "model"


def lines_of(program: Path, *words: str) -> list[Row]:
    done = subprocess.run([str(program), *words], capture_output=True, text=True, check=True, timeout=120)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that runs the kernels on the CPU model."""
    return made_once(tmp_path_factory, "model", lambda folder: build_model(BENCH, folder)) / "model"


@pytest.fixture(scope="session")
def table(model: Path) -> list[Row]:
    return lines_of(model, "table")


@pytest.fixture(scope="session")
def disassembler() -> Tools:
    """cuobjdump and nvdisasm of a toolkit or of the packages nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm."""
    places = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        places += sorted(Path(folder).glob("cu*/bin"), reverse=True)
    for place in places:
        if (place / "cuobjdump").is_file() and (place / "nvdisasm").is_file():
            return place / "cuobjdump", place / "nvdisasm"
    pytest.skip("no cuobjdump and nvdisasm (pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm)")


def compile_unit(nvcc: str, bench: Path, unit: str, target: str, out: Path) -> Path:
    cubin = out / f"{unit}.{target}.cubin"
    words = [nvcc, *CODE_FLAGS, "-gencode", f"arch=compute_{target},code=sm_{target}", "-o", str(cubin)]
    subprocess.run([*words, str(bench / "units" / f"{unit}.cu")], check=True, capture_output=True)
    return cubin


@pytest.mark.exhaustive
@pytest.mark.parametrize("target", TARGETS)
def test_every_promise_is_kept(target: str, table: list[Row], nvcc: str, disassembler: Tools, tmp_path: Path) -> None:
    words = [nvcc, "--dryrun", "-cubin", "-gencode", f"arch=compute_{target},code=sm_{target}", "-x", "cu", os.devnull]
    if subprocess.run(words, capture_output=True, check=False).returncode:  # --list-gpu-code leaves out targets with an a
        pytest.skip(f"this nvcc does not compile for sm_{target}")
    with ThreadPoolExecutor(2) as pool:
        cubins = list(pool.map(lambda unit: compile_unit(nvcc, BENCH, unit, target, tmp_path), UNITS))
    code = {name: function for cubin in cubins for name, function in disassemble(disassembler, cubin).items()}
    found = {row["symbol"]: (row, prove(row, code[row["symbol"]], target)) for row in table if applies(row, target)}
    told = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    release = tuple(map(int, re.findall(r"release (\d+)\.(\d+)", told)[0]))
    broken = {symbol: reason for symbol, (_, reason) in found.items() if reason not in ("", "emulated")}
    if release < (13, 0):  # what the kernels were written against; else one that is as promised is enough for each ceiling
        held = {row["ceiling"] for row, reason in found.values() if reason in ("", "emulated")}
        held |= {ceiling for ceiling, since in TOLD["table"]["since"].items() if release < tuple(since)}
        broken = {symbol: reason for symbol, reason in broken.items() if found[symbol][0]["ceiling"] not in held}
    assert broken == {}
    names = {capability_of(target), f"{capability_of(target).partition('.')[0]}.x"}
    declared = {one for one, (row, _) in found.items() if names & set(row["emulated"].split())}
    assert {symbol for symbol, (_, reason) in found.items() if reason == "emulated"} == declared
    for special, opcode, symbol in (("90a", r"HGMMA\.64x256x16", "wgmma"), ("100a", r"UTCHMMA", "tcgen05")):
        if target == special:  # its tensor roof is reachable: 16 per trip and 4 at the end
            instructions = code[f"bench_{symbol}_f16"].instructions
            assert sum(bool(re.match(opcode, each.opcode)) for each in instructions) == 20


def test_the_table_is_complete_and_the_simulations_measure_what_is_in_it(table: list[Row]) -> None:
    told = TOLD["table"]
    wanted = {*told["memory"], *told["others"]} | {f"{kind}.{mix}" for kind in told["arithmetic"] for mix in told["mixes"]}
    wanted |= {f"tensor.{kind}.{family}" for family in ("mma", "wgmma", "tcgen05") for kind in told[family]}
    assert {row["ceiling"] for row in table} == wanted
    assert len({(row["ceiling"], row["variant"], row["since"]) for row in table}) == len(table)
    assert all(row["operations"] or row["bytes"] for row in table)
    here = [row for row in table if applies(row, "90a") and "9.0" not in row["emulated"].split()]
    listed = {(name, variant) for name, variants in MACHINES["h100"].items() for variant in variants if variant[-1] != "*"}
    assert {(row["ceiling"], row["variant"]) for row in here} == listed


@pytest.mark.exhaustive
def test_kernels_do_what_they_promise_on_the_model(model: Path, table: list[Row]) -> None:
    found = {line["symbol"]: line for line in lines_of(model, "check")}
    told = ("operations", "bytes")
    assert {name: [line[key] for key in told] for name, line in found.items()} == {
        r["symbol"]: [r[key] for key in told] for r in table
    }
    assert {name: line["reason"] for name, line in found.items() if line["reason"]} == {}


def mutate(folder: Path, file: str, changes: list[list[str]]) -> Path:
    """A copy of the benchmark with changes in one file (all if "" is given); every change must apply."""
    for name in ("kernels", "units", "cpu", "runner"):
        shutil.copytree(BENCH / name, folder / "bench" / name)
    paths = [path for path in sorted((folder / "bench" / "kernels").iterdir()) if path.name == file or not file]
    for old, new in changes:
        texts = {path: path.read_text(encoding="utf-8") for path in paths}
        assert any(old in text for text in texts.values()), old
        for path, text in texts.items():
            path.write_text(text.replace(old, new), encoding="utf-8")
    return folder / "bench"


FIRST = "half of the products are missing"


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one == FIRST else pytest.mark.exhaustive) for one in TOLD["proof"]]
)
def test_the_proof_rejects(name: str, tmp_path: Path, nvcc: str, disassembler: Tools, table: list[Row]) -> None:
    """One architecture is enough."""
    told = TOLD["proof"][name]
    bench = mutate(tmp_path, told["file"], told["changes"])
    functions = disassemble(disassembler, compile_unit(nvcc, bench, told["unit"], "80", tmp_path))
    here = [row for row in table if row["symbol"] in functions and applies(row, "80")]
    reasons = {row["symbol"]: prove(row, functions[row["symbol"]], "80") for row in here}
    assert len([reason for reason in reasons.values() if told["says"] in reason]) >= told["kernels"], reasons


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", TOLD["model"])
def test_the_model_rejects(name: str, tmp_path: Path) -> None:
    told = TOLD["model"][name]
    bench = mutate(tmp_path, told["file"], told["changes"])
    shutil.copytree(HERE / "cpu", tmp_path / "tests" / "bench" / "cpu")
    program = build_model(bench, tmp_path, optimise="-O1")
    done = subprocess.run([str(program), "check"], capture_output=True, text=True, check=False, timeout=120)
    rejected = {line["symbol"] for line in map(json.loads, done.stdout.splitlines()) if line["reason"]}
    assert set(told["kernels"]) <= rejected
    assert told["kernels"] or (done.returncode != 0 and "out of bounds" in done.stderr)


# The runner and the applications


@pytest.mark.exhaustive
def test_the_runner_and_the_applications(nvcc: str, table: list[Row], tmp_path: Path) -> None:
    """Built for sm_80; warnings are errors.  What is listed, and what is said without a GPU."""
    for app in build_apps("8.0", nvcc, cache=tmp_path, strict=True):
        done = subprocess.run([str(app.path), "--unknown", "1"], capture_output=True, text=True, check=False)
        assert (done.returncode, "usage:" in done.stderr) == (2, True)
    runner = build("8.0", nvcc, cache=tmp_path, strict=True).path
    listed = lines_of(runner, "list", "--capabilities", "70,72,75,80,86,87,89,90,100,103,110,120,121")
    without = {"host.bidir", "launch.stream", "launch.sync", "launch.graph"}
    assert {row["ceiling"] for row in listed} == {row["ceiling"] for row in table} | without
    assert {row["kernel"] for row in listed} - {"", "bench_empty"} == {row["symbol"] for row in table}
    assert all(row["capabilities"] and row["reason"] in ("", "emulated") for row in listed)
    assert {row["unit"] for row in listed} == {"B/s", "FLOP/s", "OP/s", "s"}
    emulated = {row["reason"]: row["capabilities"] for row in listed if row["ceiling"] == "tensor.fp8.mma"}
    assert emulated == {"": ["8.9", "12.0", "12.1"], "emulated": ["9.0", "10.0", "10.3", "11.0"]}
    assert {tuple(row["capabilities"]) for row in lines_of(runner, "list")} == {("8.0",)}  # what it was compiled for
    here, everywhere = ({row["ceiling"]: row for row in rows(Runner(runner).variants(), of)} for of in (("9.0",), ()))
    assert [here[name]["status"] for name in ("fp64.fma", "tensor.fp16.wgmma")] == ["run on 9.0"] * 2
    assert ("tensor.fp16.tcgen05" in here, everywhere["tensor.fp16.tcgen05"]["status"]) == (False, UNPROVEN)
    assert here["dram.read"]["variants"] == list(H100_LIST["dram.read"])
    has_gpu = subprocess.run([str(runner), "devices"], capture_output=True, check=False).returncode == 0
    for words, (wanted, says) in TOLD["words"]["gpu"].items():
        done = subprocess.run([str(runner), *words.split()], input="", capture_output=True, text=True, check=False)
        if wanted == 2 or not has_gpu:
            assert (done.returncode, says in json.loads(done.stdout.splitlines()[-1])["error"]) == (wanted, True), words
