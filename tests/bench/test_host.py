"""The benchmark of the CPU: it builds, does the work that it counts, and notices what is wrong.  Skipped without a compiler."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import timeit
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import pack_folder
from ncu_roofline.bench.build import build_host, find_host_compiler
from ncu_roofline.bench.runner import Job, Runner, Session
from ncu_roofline.formats.ceilings import CPU
from tests.bench.fakes import read_toml
from tests.sharing import made_once

Lines = list[dict[str, Any]]
SOURCES = pack_folder("bench") / "openmp"
CEILINGS = {f"fp{bits}.{mix}" for bits in (32, 64) for mix in ("fma", "nofma")}
CEILINGS |= {"dram.read", "dram.write", "dram.copy", "dram.triad", "l1.read", "l2.read", "l3.read"}
STEPS = 1024  # of a chain and trip, as arithmetic.hpp says
MUTANTS = read_toml("kernels.toml")["host"]
FUSED, APART = re.compile(r"\tvfn?m(?:add|sub)|\tfn?m(?:add|sub|la|ls)\b"), re.compile(r"\tv?(?:mul|add)p[sd]|\tf(?:mul|add)\b")

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the benchmark of the CPU is for Linux")


def ask(program: Path, *words: str, **changed: Any) -> tuple[int, Lines]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OMP_")} | changed.pop("env", {})
    done = subprocess.run([str(program), *words], capture_output=True, text=True, check=False, env=environment, **changed)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def words_of(ceiling: str, variant: str, trials: int = 1, milliseconds: int = 1) -> tuple[str, ...]:
    words = ["run", "--device", "0", "--ceiling", ceiling, "--variant", variant]
    return (*words, "--trials", str(trials), "--min-time-ms", str(milliseconds))


def changed(folder: Path, name: str, old: str, new: str) -> None:
    text = (folder / name).read_text(encoding="utf-8")
    assert old in text, (name, old)
    (folder / name).write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        find_host_compiler()
    except RooflineError as error:
        pytest.skip(str(error))
    built = build_host(cache=made_once(tmp_path_factory, "host-bench", lambda out: build_host(cache=out)))
    assert built.reused
    return built.path


def test_it_knows_the_cpu(program: Path) -> None:
    facts = ask(program, "device", "--device", "0")[1][-1]
    assert (facts["kind"], facts["index"], bool(facts["name"])) == ("cpu", 0, True)
    assert 1 <= facts["threads"] <= facts["cores"] <= facts["logical_cpus"] == len(os.sched_getaffinity(0))
    assert re.fullmatch(r"CPU-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", facts["uuid"])
    assert min(facts["sockets"], facts["numa_nodes"], facts["l1_bytes"]) > 0
    assert facts["mem_total_bytes"] <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert ask(program, "devices")[1] == [facts]
    for settings in ({"OMP_NUM_THREADS": "1"}, {"OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}):  # change nothing
        assert ask(program, *words_of("l1.read", "u8"), env=settings)[1][-1]["threads"] == facts["threads"]
    first = min(os.sched_getaffinity(0))  # it keeps to the CPUs that it may use
    (alone,) = ask(program, "device", preexec_fn=lambda: os.sched_setaffinity(0, {first}))[1]
    assert (alone["threads"], alone["cores"], alone["logical_cpus"]) == (1, 1, 1)
    if facts["threads"] > 1:
        code, lines = ask(program, *words_of("l1.read", "u8"), env={"OMP_THREAD_LIMIT": "1"})
        assert (code, "OMP_THREAD_LIMIT" in lines[-1]["error"]) == (1, True)


def test_every_row_runs_and_its_work_is_what_windows_and_chains_make(program: Path) -> None:
    """Counted again from the other end: windows and passes for memory, chains, lanes and steps for arithmetic."""
    rows, facts = ask(program, "list")[1], ask(program, "device")[1][-1]
    assert {row["ceiling"] for row in rows} == CEILINGS
    assert len({(row["ceiling"], row["variant"]) for row in rows}) == len(rows)
    assert all(row["capabilities"] == [] and row["reason"] in ("", "unsupported") for row in rows)
    missing = {row["ceiling"] for row in rows if row["reason"]}
    assert ("l3.read" in missing) == (facts["l3_bytes"] == 0)
    assert not missing & {"dram.read", "dram.triad", "fp64.nofma", "fp32.nofma"}
    jobs = "".join(f"--ceiling {row['ceiling']} --variant {row['variant']} --trials 2 --min-time-ms 1\n" for row in rows)
    code, lines = ask(program, "serve", "--device", "0", input=f"--ceiling none --variant u8\n\n{jobs}")
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
            work = 2 * STEPS * int(match[2]) * lanes * done["trips"]
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


def test_words_and_what_is_wrong_with_them(program: Path) -> None:
    for words, (code, says) in read_toml("kernels.toml")["words"]["cpu"].items():
        found, lines = ask(program, *words.split())
        assert (found, says in lines[-1]["error"]) == (code, True), words
    for more in (("--data", "zeros"), ("--seed", "7"), ("--trips", "1")):
        code, lines = ask(program, *words_of("l1.read", "u8"), *more)
        assert (code, lines[0]["checksum_ok"]) == (0, True)
    assert lines[-1]["passes"] == 1  # trips of a profiled run are whole passes
    assert ask(program, *words_of("fp64.nofma", "wide_c8"), "--trips", "7")[1][-1]["trips"] == 7
    session, job = Session(Runner(program, CPU), 0), Job("l1.read", "u8", 40, 0.005)
    try:  # the driver's own process: what is asked for next is done, whenever the word to stop came
        trials = [session.run(job, enough=lambda seen: len(seen) == 3)[0]]
        trials.append(session.run(job._replace(trials=2), enough=lambda seen: len(seen) == 2)[0])  # it has ended by itself
        trials.append(session.run(job._replace(trials=2))[0])
    finally:
        session.renew()
    assert [len(one) for one in trials] == [3, 2, 2]


def test_what_is_called_fused_is_and_the_rest_is_not(program: Path) -> None:
    if not shutil.which("objdump"):
        pytest.skip("no objdump (binutils) to look at the machine code")
    text = subprocess.run(["objdump", "-dC", str(program)], capture_output=True, text=True, check=True).stdout
    blocks = re.split(r"\n(?=[0-9a-f]{8,} <)", text)
    for form, fused in (("Fused", {"fma", "asimd"} & {*ask(program, "device")[1][-1]["isa"]}), ("Separate", True)):
        kernels = [block for block in blocks if re.match(rf"[0-9a-f]+ <void bench::chains<.*{form}", block)]
        assert (len(kernels) >= 8) == bool(fused)
        assert all(bool(FUSED.search(kernel)) == (form == "Fused") for kernel in kernels)
        assert all(form == "Fused" or APART.search(kernel) for kernel in kernels)


@pytest.mark.exhaustive
def test_others_are_told_and_memory_agrees_with_a_copy_by_numpy(program: Path) -> None:
    """Bytes and seconds are right to a factor: another program's copy, with plain stores and one thread, moves as many."""
    first = {min(os.sched_getaffinity(0))}
    busy = f"import os\nos.sched_setaffinity(0, {first})\nprint(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE) as other:
        assert other.stdout
        assert other.stdout.readline()
        words = words_of("fp64.nofma", "wide_c8", 2, 50)
        done = ask(program, *words, preexec_fn=lambda: os.sched_setaffinity(0, first))[1][-1]
        other.kill()
    assert (done["disturbed"] > 0.05, done["repeated"] > 0) == (True, True)
    words, source, ratios = (*words_of("dram.triad", "plain_u8", 5, 20), "--threads", "1"), np.ones(2**25), []
    target = np.zeros_like(source)
    for _ in range(5):  # once is enough: a machine that others use may be busy for one of the two only
        own = max(trial["work"] / trial["seconds"] for trial in ask(program, *words)[1][:-1])
        seconds = min(timeit.repeat(lambda: np.copyto(target, source), number=1, repeat=5))
        ratios.append(own / (2 * source.nbytes / seconds))
    assert any(1 / 3 < ratio < 3 for ratio in ratios)


@pytest.mark.exhaustive
def test_mistakes_are_noticed(tmp_path: Path) -> None:
    """Work that is left out or repeated, a wrong factor or sign, and two roundings where one is meant: all in one program."""
    shutil.copytree(SOURCES, tmp_path / "openmp")
    for told in MUTANTS.values():
        changed(tmp_path / "openmp", told["file"], *told["changes"])
    wrong = build_host(folder=tmp_path / "openmp", cache=tmp_path / "cache").path
    reasons = {(row["ceiling"], row["variant"]): row["reason"] for row in ask(wrong, "list")[1]}
    for ceiling, told in MUTANTS.items():
        if not reasons[ceiling, told["variant"]]:
            checks = [trial["checksum_ok"] for trial in ask(wrong, *words_of(ceiling, told["variant"], 2))[1][:-1]]
            assert checks == [False, False], ceiling
    shutil.copytree(SOURCES, tmp_path / "strict")
    changed(tmp_path / "strict", "build.json", '"-O3"', '"-Werror"')
    assert not build_host(folder=tmp_path / "strict", cache=tmp_path / "cache").reused
    changed(tmp_path / "strict", "row.hpp", "#pragma once", "#pragma once\nint main() { return wrong; }")
    with pytest.raises(RooflineError, match=r"Cannot compile \w+\.cpp: .*error.*Install GCC or Clang"):
        build_host(folder=tmp_path / "strict", cache=tmp_path / "cache")
