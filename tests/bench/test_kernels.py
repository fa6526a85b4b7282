"""Kernels and CPU benchmark without a GPU: machine code, models and counts are as promised; broken ones are noticed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import timeit
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import pack_folder
from ncu_roofline.bench.build import How, build, build_apps, build_host, find_host_compiler
from ncu_roofline.bench.catalogue import UNPROVEN, rows
from ncu_roofline.bench.runner import Job, Runner, Session
from ncu_roofline.formats.ceilings import CPU
from ncu_roofline.plugin.machine.machine import find_nvdisasm
from tests.bench.fakes import H100_LIST, HERE, MACHINES, read_toml, some
from tests.bench.proof import applies, capability_of, disassemble, prove
from tests.golden import assert_golden
from tests.sharing import made_once

Row = dict[str, Any]
Tools = tuple[Path, Path]
BENCH = HERE.parents[1] / "bench"
TOLD = read_toml("kernels.toml")
OWN = ("tests/bench/cpu/*", "tests/bench/proof.py", "tests/bench/test_kernels.py", "tests/bench/kernels.toml")
proved = pytest.mark.proved("bench/*/*", "bench/README.md", "ncu_roofline/bench/build.py", "ncu_roofline/data/arch*/*", *OWN)


def build_model(bench: Path, out: Path, optimise: str = "-O2") -> Path:
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if not compiler:
        pytest.skip("no C++ compiler on this machine (set CXX): the CPU model of the kernels can't be built")
    own = bench.parent / "tests" / "bench" / "cpu"
    sources = [*own.glob("*.cpp"), *(bench / name for name in ("cpu/reference.cpp", "runner/verify.cpp", "runner/trial.cu"))]
    flags = f"-std=c++17 -Wall -Wextra -Werror -Wno-unknown-pragmas -ffp-contract=off {optimise} -I{own} -x c++".split()
    words = [[compiler, *flags, "-c", str(one), "-o", str(out / f"{one.stem}.o")] for one in sources]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda command: subprocess.run(command, check=True), words))
    subprocess.run([compiler, *(command[-1] for command in words), "-o", str(out / "model")], check=True)
    return out / "model"


def ask(program: Path, *words: str, **changed: Any) -> tuple[int, list[Row]]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OMP_")} | changed.pop("env", {})
    told = {"capture_output": True, "text": True, "check": False, "timeout": 300, "env": environment, **changed}
    done = subprocess.run([str(program), *words], **told)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="session")
def nvcc() -> str:
    found = shutil.which(os.environ.get("NVCC", "nvcc"))
    if not found:
        pytest.skip("no nvcc on this machine (set NVCC to its path): the machine code of the kernels stays unproven")
    return found


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "model", lambda folder: build_model(BENCH, folder)) / "model"


@pytest.fixture(scope="session")
def table(model: Path) -> list[Row]:
    return ask(model, "table")[1]


@pytest.fixture(scope="session")
def disassembler() -> Tools:
    """cuobjdump and nvdisasm of a toolkit or of the packages nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm."""
    nvdisasm = find_nvdisasm()
    if not nvdisasm or not nvdisasm.with_name("cuobjdump").is_file():
        pytest.skip("no cuobjdump and nvdisasm (pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm)")
    return nvdisasm.with_name("cuobjdump"), nvdisasm


def compile_unit(nvcc: str, bench: Path, unit: str, target: str, out: Path) -> Path:
    cubin = out / f"{unit}.{target}.cubin"
    words = [nvcc, "-std=c++17", "-O3", "-Werror", "all-warnings", "-cubin", "-o", str(cubin)]
    words += ["-gencode", f"arch=compute_{target},code=sm_{target}", str(bench / "units" / f"{unit}.cu")]
    subprocess.run(words, check=True, capture_output=True)
    return cubin


@proved
@pytest.mark.exhaustive
@pytest.mark.parametrize("target", ["70", "75", "80", "86", "87", "89", "90a", "100a", "103a", "110a", "120a", "121a"])
def test_every_promise_is_kept(target: str, table: list[Row], nvcc: str, disassembler: Tools, tmp_path: Path) -> None:
    words = [nvcc, "--dryrun", "-cubin", "-gencode", f"arch=compute_{target},code=sm_{target}", "-x", "cu", os.devnull]
    if subprocess.run(words, capture_output=True, check=False).returncode:  # --list-gpu-code leaves out targets with an a
        pytest.skip(f"this nvcc does not compile for sm_{target}")
    with ThreadPoolExecutor(2) as pool:
        units = ("vector", "memory", "mma", "wgmma", "tcgen05")
        cubins = list(pool.map(lambda unit: compile_unit(nvcc, BENCH, unit, target, tmp_path), units))
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
    own = capability_of(target)
    declared = {one for one, (row, _) in found.items() if {own, f"{own.partition('.')[0]}.x"} & {*row["emulated"].split()}}
    assert {symbol for symbol, (_, reason) in found.items() if reason == "emulated"} == declared
    if target in ("90a", "100a"):  # its tensor roof is reachable: 16 instructions per trip and 4 at the end
        symbol, opcode = ("wgmma", "HGMMA.64x256x16") if target == "90a" else ("tcgen05", "UTCHMMA")
        assert sum(each.opcode.startswith(opcode) for each in code[f"bench_{symbol}_f16"].instructions) == 20


def test_the_table_is_the_one_that_simulations_measure(table: list[Row]) -> None:
    """table.txt, which UPDATE_GOLDEN renews; a kernel is one row of a list in `bench/kernels`."""
    keys = ("ceiling", "variant", "since", "until", "emulated")
    assert_golden(HERE / "table.txt", "".join(" ".join(str(row[key]) for key in keys).rstrip() + "\n" for row in table))
    assert len({(row["ceiling"], row["variant"], row["since"]) for row in table}) == len(table)
    assert all(row["operations"] or row["bytes"] for row in table)


@proved
@pytest.mark.exhaustive
def test_a_new_kernel_is_one_row(tmp_path: Path) -> None:
    """That of `bench/README.md`, beside the one that it shows, with half as many threads and a name of its own."""
    (row,) = re.findall(r"^X\(dram_read,.*\)$", (BENCH / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    head, new = "#define BENCH_MEMORY_KERNELS(X)", row.replace("dram_read,", "dram_new,").replace("512", "256")
    shutil.copytree(HERE / "cpu", tmp_path / "tests" / "bench" / "cpu")
    model = build_model(mutate(tmp_path, "memory.cuh", [[head, f"{head} {new}"]]), tmp_path)
    added, checked = ({one["symbol"]: one for one in ask(model, word)[1]}["bench_dram_new"] for word in ("table", "check"))
    assert (added["ceiling"], added["variant"], checked["reason"]) == ("dram.read", "ldg128_cs_b256_i8", "")


@proved
@pytest.mark.exhaustive
def test_kernels_do_what_they_promise_on_the_model(model: Path, table: list[Row]) -> None:
    (code, found), keys = ask(model, "check"), ("symbol", "operations", "bytes")
    assert (code, [line for line in found if line["reason"]]) == (0, [])
    assert {tuple(line[key] for key in keys) for line in found} == {tuple(row[key] for key in keys) for row in table}
    assert {(line["reason"], line["trials"]) for line in ask(model, "run")[1]} == {("", 2)}  # the runner, which feeds them


def changed(folder: Path, pattern: str, old: str, new: str) -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in folder.glob(pattern)}
    assert any(old in text for text in texts.values()), (pattern, old)
    for path, text in texts.items():
        path.write_text(text.replace(old, new), encoding="utf-8")


def mutate(folder: Path, file: str, changes: list[list[str]]) -> Path:
    for name in ("kernels", "units", "cpu", "runner"):
        shutil.copytree(BENCH / name, folder / "bench" / name)
    for old, new in changes:
        changed(folder / "bench" / "kernels", file, old, new)
    return folder / "bench"


@proved
@pytest.mark.parametrize("name", some(TOLD["proof"], ("half of the products are missing",)))
def test_the_proof_rejects(name: str, tmp_path: Path, nvcc: str, disassembler: Tools, table: list[Row]) -> None:
    told = TOLD["proof"][name]
    bench, target = mutate(tmp_path, told["file"], told["changes"]), told.get("target", "80")
    functions = disassemble(disassembler, compile_unit(nvcc, bench, told["unit"], target, tmp_path))
    here = [row for row in table if row["symbol"] in functions and applies(row, target)]
    reasons = {row["symbol"]: prove(row, functions[row["symbol"]], target) for row in here}
    assert len([reason for reason in reasons.values() if told["says"] in reason]) >= told["kernels"], reasons


@proved
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", TOLD["model"])
def test_the_model_rejects(name: str, tmp_path: Path) -> None:
    told = TOLD["model"][name]
    bench = mutate(tmp_path, told["file"], told["changes"])
    shutil.copytree(HERE / "cpu", tmp_path / "tests" / "bench" / "cpu")
    words = [str(build_model(bench, tmp_path, optimise="-O1")), told.get("command", "check")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    rejected = {line["symbol"] for line in map(json.loads, done.stdout.splitlines()) if line["reason"]}
    assert set(told["kernels"]) <= rejected
    assert told["kernels"] or (done.returncode != 0 and "out of bounds" in done.stderr)


@proved
@pytest.mark.exhaustive
def test_the_runner_and_the_applications(nvcc: str, table: list[Row], tmp_path: Path) -> None:
    for app in build_apps("8.0", nvcc, How(cache=tmp_path, strict=True)):
        done = subprocess.run([str(app.path), "--unknown", "1"], capture_output=True, text=True, check=False)
        assert (done.returncode, "usage:" in done.stderr) == (2, True)
    runner = build("8.0", nvcc, How(cache=tmp_path, strict=True)).path
    listed = ask(runner, "list", "--capabilities", "70,72,75,80,86,87,89,90,100,103,110,120,121")[1]
    assert {row["ceiling"] for row in listed} == {row["ceiling"] for row in table} | {*MACHINES["runner"]}
    assert {row["kernel"] for row in listed} - {"", "bench_empty"} == {row["symbol"] for row in table}
    assert all(row["capabilities"] and row["reason"] in ("", "emulated") for row in listed)
    assert {row["unit"] for row in listed} == {"B/s", "FLOP/s", "OP/s", "s"}
    emulated = {row["reason"]: row["capabilities"] for row in listed if row["ceiling"] == "tensor.fp8.mma"}
    assert emulated == {"": ["8.9", "12.0", "12.1"], "emulated": ["9.0", "10.0", "10.3", "11.0"]}
    assert {tuple(row["capabilities"]) for row in ask(runner, "list")[1]} == {("8.0",)}  # what it was compiled for
    here, everywhere = ({row["ceiling"]: row for row in rows(Runner(runner).variants(), of)} for of in (("9.0",), ()))
    assert [here[name]["status"] for name in ("fp64.fma", "tensor.fp16.wgmma")] == ["run on 9.0"] * 2
    assert ("tensor.fp16.tcgen05" in here, everywhere["tensor.fp16.tcgen05"]["status"]) == (False, UNPROVEN)
    assert here["dram.read"]["variants"] == list(H100_LIST["dram.read"])


def words_of(ceiling: str, variant: str, trials: int = 1, milliseconds: int = 1) -> tuple[str, ...]:
    words = ["run", "--device", "0", "--ceiling", ceiling, "--variant", variant]
    return (*words, "--trials", str(trials), "--min-time-ms", str(milliseconds))


@pytest.fixture(scope="module")
def cpu_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not sys.platform.startswith("linux"):
        pytest.skip("the benchmark of the CPU is for Linux")
    try:
        find_host_compiler()
    except RooflineError as error:
        pytest.skip(str(error))
    built = build_host(How(cache=made_once(tmp_path_factory, "host-bench", lambda out: build_host(How(cache=out)))))
    assert built.reused
    return built.path


def test_it_knows_the_cpu(cpu_program: Path) -> None:
    facts = ask(cpu_program, "device", "--device", "0")[1][-1]
    assert (facts["kind"], facts["index"], bool(facts["name"])) == ("cpu", 0, True)
    assert 1 <= facts["threads"] <= facts["cores"] <= facts["logical_cpus"] == len(os.sched_getaffinity(0))
    assert re.fullmatch(r"CPU-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", facts["uuid"])
    assert min(facts["sockets"], facts["numa_nodes"], facts["l1_bytes"]) > 0
    assert facts["mem_total_bytes"] <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert ask(cpu_program, "devices")[1] == [facts]
    for settings in ({"OMP_NUM_THREADS": "1"}, {"OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}):  # change nothing
        assert ask(cpu_program, *words_of("l1.read", "u8"), env=settings)[1][-1]["threads"] == facts["threads"]
    first = min(os.sched_getaffinity(0))  # it keeps to the CPUs that it may use
    (alone,) = ask(cpu_program, "device", preexec_fn=lambda: os.sched_setaffinity(0, {first}))[1]
    assert (alone["threads"], alone["cores"], alone["logical_cpus"]) == (1, 1, 1)
    if facts["threads"] > 1:
        code, lines = ask(cpu_program, *words_of("l1.read", "u8"), env={"OMP_THREAD_LIMIT": "1"})
        assert (code, "OMP_THREAD_LIMIT" in lines[-1]["error"]) == (1, True)


def test_every_row_runs_and_its_work_is_what_windows_and_chains_make(cpu_program: Path) -> None:
    """Counted again from the other end: windows and passes for memory, chains, lanes and steps for arithmetic."""
    rows, facts = ask(cpu_program, "list")[1], ask(cpu_program, "device")[1][-1]
    assert {row["ceiling"] for row in rows} == {*TOLD["table"]["cpu"]}
    assert len({(row["ceiling"], row["variant"]) for row in rows}) == len(rows)
    assert all(row["capabilities"] == [] and row["reason"] in ("", "unsupported") for row in rows)
    missing = {row["ceiling"] for row in rows if row["reason"]}
    assert ("l3.read" in missing) == (facts["l3_bytes"] == 0)
    assert not missing & {"dram.read", "dram.triad", "fp64.nofma", "fp32.nofma"}
    jobs = "".join(f"--ceiling {row['ceiling']} --variant {row['variant']} --trials 2 --min-time-ms 1\n" for row in rows)
    code, lines = ask(cpu_program, "serve", "--device", "0", input=f"--ceiling none --variant u8\n\n{jobs}")
    answers = iter(lines)
    assert (code, "error" in next(answers)) == (0, True)  # a server goes on after a job that fails
    width = 64 if "avx512f" in facts["isa"] else 32 if "avx" in facts["isa"] else 16
    for row in rows:
        if row["reason"]:
            assert next(answers) == {"error": f"{row['ceiling']} is unsupported on this CPU"}
            continue
        one, two, done = (next(answers) for _ in range(3))
        assert (one["trial"], two["trial"], done["done"]) == (0, 1, True)
        assert two["begin"] > one["end"]
        window = done.get("window_bytes") or 0
        work = window * done["passes"] if row["unit"] == "B/s" else 0
        if match := re.fullmatch(r"(wide|narrow)_c(\d+)", row["variant"]):
            lanes = width * 8 // int(row["ceiling"][2:4]) // (2 if match[1] == "narrow" else 1)
            work = 2 * 1024 * int(match[2]) * lanes * done["trips"]  # the steps of a chain and trip in arithmetic.hpp
        for trial in (one, two):
            assert (trial["checksum_ok"], trial["work"]) == (True, work * done["threads"]), row
            assert trial["end"] - trial["begin"] == pytest.approx(trial["seconds"], abs=1e-8)
            assert trial["sm_mhz"] is None or 100 < trial["sm_mhz"] < 10_000
        l1, l2, l3 = (facts[f"{level}_bytes"] for level in ("l1", "l2", "l3"))
        ends = {"l1.read": (l1 / 4, l1 / 2), "l2.read": (l1 + 1, l2 / 2), "l3.read": (l2 + 1, l2 + l3 - 1)}
        low, high = ends.get(row["ceiling"], (0, float("inf")))
        assert low <= window <= high, row
        if row["ceiling"].startswith("dram") and not done["note"]:
            assert window * done["threads"] >= max(0.99 * 2**29, 3.9 * l3)
    assert list(answers) == []


def test_words_and_what_is_wrong_with_them(cpu_program: Path) -> None:
    for words, (code, says) in TOLD["words"]["cpu"].items():
        found, lines = ask(cpu_program, *words.split())
        assert (found, says in lines[-1]["error"]) == (code, True), words
    for more in (("--data", "zeros"), ("--seed", "7"), ("--trips", "1")):
        code, lines = ask(cpu_program, *words_of("l1.read", "u8"), *more)
        assert (code, lines[0]["checksum_ok"]) == (0, True)
    assert lines[-1]["passes"] == 1  # trips of a profiled run are whole passes
    assert ask(cpu_program, *words_of("fp64.nofma", "wide_c8"), "--trips", "7")[1][-1]["trips"] == 7
    session, job = Session(Runner(cpu_program, CPU), 0), Job("l1.read", "u8", 40, 0.005)
    try:  # the driver's own process: what is asked for next is done, whenever the word to stop came
        trials = [session.run(job, enough=lambda seen: len(seen) == 3)[0]]
        trials.append(session.run(job._replace(trials=2), enough=lambda seen: len(seen) == 2)[0])  # it has ended by itself
        trials.append(session.run(job._replace(trials=2))[0])
    finally:
        session.renew()
    assert [len(one) for one in trials] == [3, 2, 2]


def test_what_is_called_fused_is_and_the_rest_is_not(cpu_program: Path) -> None:
    if not shutil.which("objdump"):
        pytest.skip("no objdump (binutils) to look at the machine code")
    text = subprocess.run(["objdump", "-dC", str(cpu_program)], capture_output=True, text=True, check=True).stdout
    blocks = re.split(r"\n(?=[0-9a-f]{8,} <)", text)
    fma, apart = r"\tvfn?m(?:add|sub)|\tfn?m(?:add|sub|la|ls)\b", r"\tv?(?:mul|add)p[sd]|\tf(?:mul|add)\b"
    for form, fused in (("Fused", {"fma", "asimd"} & {*ask(cpu_program, "device")[1][-1]["isa"]}), ("Separate", True)):
        kernels = [block for block in blocks if re.match(rf"[0-9a-f]+ <void bench::chains<.*{form}", block)]
        assert (len(kernels) >= 8) == bool(fused)
        assert all(bool(re.search(fma, kernel)) == (form == "Fused") for kernel in kernels)
        assert all(form == "Fused" or re.search(apart, kernel) for kernel in kernels)


@pytest.mark.exhaustive
def test_others_are_told_and_memory_agrees_with_a_copy_by_numpy(cpu_program: Path) -> None:
    """Bytes and seconds are right to a factor: another program's copy, with plain stores and one thread, moves as many."""
    first = {min(os.sched_getaffinity(0))}
    busy = f"import os\nos.sched_setaffinity(0, {first})\nprint(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE) as other:
        assert other.stdout
        assert other.stdout.readline()
        words = words_of("fp64.nofma", "wide_c8", 2, 50)
        done = ask(cpu_program, *words, preexec_fn=lambda: os.sched_setaffinity(0, first))[1][-1]
        other.kill()
    assert (done["disturbed"] > 0.05, done["repeated"] > 0) == (True, True)
    words, source, ratios = (*words_of("dram.triad", "plain_u8", 5, 20), "--threads", "1"), np.ones(2**25), []
    target = np.zeros_like(source)
    for _ in range(5):  # once is enough: a machine that others use may be busy for one of the two only
        own = max(trial["work"] / trial["seconds"] for trial in ask(cpu_program, *words)[1][:-1])
        seconds = min(timeit.repeat(lambda: np.copyto(target, source), number=1, repeat=5))
        ratios.append(own / (2 * source.nbytes / seconds))
    assert any(1 / 3 < ratio < 3 for ratio in ratios)


@proved
@pytest.mark.exhaustive
@pytest.mark.usefixtures("cpu_program")
def test_mistakes_are_noticed(tmp_path: Path) -> None:
    """Work that is left out or repeated, a wrong factor or sign, and two roundings where one is meant: all in one program."""
    sources = pack_folder("bench") / "openmp"
    shutil.copytree(sources, tmp_path / "openmp")
    for told in TOLD["host"].values():
        changed(tmp_path / "openmp", told["file"], *told["changes"])
    wrong = build_host(How(tmp_path / "openmp", tmp_path / "cache")).path
    reasons = {(row["ceiling"], row["variant"]): row["reason"] for row in ask(wrong, "list")[1]}
    for ceiling, told in TOLD["host"].items():
        if not reasons[ceiling, told["variant"]]:
            checks = [trial["checksum_ok"] for trial in ask(wrong, *words_of(ceiling, told["variant"], 2))[1][:-1]]
            assert checks == [False, False], ceiling
    shutil.copytree(sources, tmp_path / "strict")
    changed(tmp_path / "strict", "build.json", '"-O3"', '"-Werror"')
    assert not build_host(How(tmp_path / "strict", tmp_path / "cache")).reused
    changed(tmp_path / "strict", "row.hpp", "#pragma once", "#pragma once\nint main() { return wrong; }")
    with pytest.raises(RooflineError, match=r"Cannot compile \w+\.cpp: .*error.*Install GCC or Clang"):
        build_host(How(tmp_path / "strict", tmp_path / "cache"))
