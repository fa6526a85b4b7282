"""The benchmark of the CPU: it builds, does the work that it counts, and notices what is wrong.  Skipped without a compiler."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import pack_folder
from ncu_roofline.bench.build import build_host, find_host_compiler
from ncu_roofline.bench.runner import Job, Runner, Session
from ncu_roofline.formats.ceilings import CPU
from tests.sharing import made_once

Lines = list[dict[str, Any]]
SOURCES = pack_folder("bench") / "openmp"
CEILINGS = {
    *("dram.read", "dram.write", "dram.copy", "dram.triad", "l1.read", "l2.read", "l3.read"),
    *("fp64.fma", "fp64.nofma", "fp32.fma", "fp32.nofma"),
}
BINDING = ("OMP_PROC_BIND", "OMP_PLACES", "OMP_NUM_THREADS", "OMP_THREAD_LIMIT")
_STEPS = 1024  # of a chain and trip, as arithmetic.hpp says
_NO_DEVICE, _USAGE = 3, 2

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the benchmark of the CPU is for Linux")


def ask(program: Path, *words: str, **changed: Any) -> tuple[int, Lines]:
    """Exit code and lines of the program."""
    environment = {key: value for key, value in os.environ.items() if key not in BINDING}
    environment.update(changed.pop("env", {}))
    done = subprocess.run([str(program), *words], capture_output=True, text=True, check=False, env=environment, **changed)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, built once."""
    skip_without_compiler()
    return build_host(cache=made_once(tmp_path_factory, "host-bench", lambda out: build_host(cache=out))).path


def skip_without_compiler() -> None:
    """Where there is none, nothing of this can be tried."""
    try:
        find_host_compiler()
    except RooflineError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def rows(program: Path) -> Lines:
    """What it lists."""
    return ask(program, "list")[1]


@pytest.fixture(scope="module")
def facts(program: Path) -> dict[str, Any]:
    """What it says of the CPU."""
    return ask(program, "device", "--device", "0")[1][-1]


@pytest.fixture(scope="module")
def answers(program: Path, rows: Lines) -> dict[tuple[str, str], Lines]:
    """What one process that serves says of a short run of each row."""
    jobs = "".join(f"--ceiling {row['ceiling']} --variant {row['variant']} --trials 2 --min-time-ms 1\n" for row in rows)
    code, lines = ask(program, "serve", "--device", "0", input=jobs)
    assert code == 0
    found, rest = {}, iter(lines)
    for row in rows:
        mine = found[row["ceiling"], row["variant"]] = [next(rest)]
        while not mine[-1].keys() & {"done", "error"}:
            mine.append(next(rest))
    assert not list(rest)
    return found


def test_the_recipe_names_every_source() -> None:
    recipe = json.loads((SOURCES / "build.json").read_text(encoding="utf-8"))
    assert sorted(recipe["sources"]) == sorted(path.name for path in SOURCES.glob("*.cpp"))


def test_it_is_built_once(program: Path) -> None:
    kept = build_host(cache=program.parents[2])
    assert (kept.path, kept.reused) == (program, True)


def test_it_lists_the_ceilings_of_a_cpu(rows: Lines, facts: dict[str, Any]) -> None:
    assert {row["ceiling"] for row in rows} == CEILINGS
    assert len({(row["ceiling"], row["variant"]) for row in rows}) == len(rows)
    assert all(row["capabilities"] == [] and row["reason"] in ("", "unsupported") for row in rows)
    missing = {row["ceiling"] for row in rows if row["reason"] == "unsupported"}
    assert ("l3.read" in missing) == (facts["l3_bytes"] == 0)
    assert {row["ceiling"] for row in rows if not row["reason"]} >= {"dram.read", "dram.triad", "fp64.nofma", "fp32.nofma"}


def test_it_knows_the_cpu(program: Path, facts: dict[str, Any]) -> None:
    allowed = len(os.sched_getaffinity(0))
    assert (facts["kind"], facts["index"]) == ("cpu", 0)
    assert 1 <= facts["threads"] <= facts["cores"] <= facts["logical_cpus"] == allowed
    assert re.fullmatch(r"CPU-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", facts["uuid"])
    assert facts["name"]
    assert min(facts["sockets"], facts["numa_nodes"], facts["l1_bytes"]) > 0
    assert facts["mem_total_bytes"] <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert ask(program, "devices")[1] == [facts]


def test_every_row_runs_and_its_result_is_right(rows: Lines, answers: dict[tuple[str, str], Lines]) -> None:
    for row in rows:
        lines = answers[row["ceiling"], row["variant"]]
        if row["reason"]:
            assert lines == [{"error": f"{row['ceiling']} is unsupported on this CPU"}]
            continue
        assert [line.get("trial") for line in lines] == [0, 1, None]
        for trial in lines[:-1]:
            assert trial["checksum_ok"] is True, row
            assert trial["end"] - trial["begin"] == pytest.approx(trial["seconds"], abs=1e-8)
            assert trial["sm_mhz"] is None or 100 < trial["sm_mhz"] < 10_000
        assert lines[1]["begin"] > lines[0]["end"]


def test_the_work_is_what_windows_and_chains_make(
    rows: Lines, answers: dict[tuple[str, str], Lines], facts: dict[str, Any]
) -> None:
    """Counted again from the other end: windows and passes for memory, chains, lanes and steps for arithmetic."""
    width = 64 if "avx512f" in facts["isa"] else 32 if "avx" in facts["isa"] else 16
    for row in rows:
        *trials, done = answers[row["ceiling"], row["variant"]]
        if row["reason"]:
            continue
        if row["unit"] == "B/s":
            work = done["window_bytes"] * done["passes"]
        else:
            form, chains = re.fullmatch(r"(wide|narrow)_c(\d+)", row["variant"]).groups()  # type: ignore[union-attr]
            bits = int(row["ceiling"][2:4])
            lanes = width * 8 // bits // (2 if form == "narrow" else 1)
            work = 2 * _STEPS * int(chains) * lanes * done["trips"]
        assert {trial["work"] for trial in trials} == {work * done["threads"]}, row


def test_windows_fit_their_level(answers: dict[tuple[str, str], Lines], facts: dict[str, Any]) -> None:
    for (ceiling, _), lines in answers.items():
        done = lines[-1]
        if "window_bytes" not in done or not done["window_bytes"]:
            continue
        window, all_threads = done["window_bytes"], done["window_bytes"] * done["threads"]
        if ceiling == "l1.read":
            assert facts["l1_bytes"] / 4 <= window <= facts["l1_bytes"] / 2
        elif ceiling == "l2.read":
            assert facts["l1_bytes"] < window <= facts["l2_bytes"] / 2
        elif ceiling == "l3.read":
            assert facts["l2_bytes"] < window < facts["l2_bytes"] + facts["l3_bytes"]
        elif not done["note"]:
            assert all_threads >= max(0.99 * 2**29, 3.9 * facts["l3_bytes"])


def test_trips_of_a_profiled_run_are_whole_passes(program: Path) -> None:
    code, lines = ask(program, *words_of("fp64.nofma", "wide_c8", 1), "--trips", "7")
    assert (code, lines[-1]["trips"]) == (0, 7)
    code, lines = ask(program, *words_of("l1.read", "u8", 1), "--trips", "1")
    assert (code, lines[-1]["passes"]) == (0, 1)


def words_of(ceiling: str, variant: str, trials: int, milliseconds: int = 1) -> tuple[str, ...]:
    """A run of one row."""
    words = ["run", "--device", "0", "--ceiling", ceiling, "--variant", variant]
    return (*words, "--trials", str(trials), "--min-time-ms", str(milliseconds))


def test_zeros_and_seeds(program: Path) -> None:
    for words in (("--data", "zeros"), ("--seed", "7")):
        code, lines = ask(program, *words_of("l1.read", "u8", 1), *words)
        assert (code, lines[0]["checksum_ok"]) == (0, True)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ((), _USAGE, "the commands are"),
        (("run", "--device"), _USAGE, "expected --name VALUE"),
        (("run", "--variant", "u8"), _USAGE, "--ceiling is missing"),
        (("run", "--ceiling", "l1.read", "--variant", "none"), _USAGE, "there is no ceiling l1.read in variant none"),
        (("device", "--device", "x"), _USAGE, "is no number"),
        (("device", "--device", "1"), _NO_DEVICE, "there is no device 1, the CPU is device 0"),
        (("device", "--threads", "100000"), _USAGE, "this process may use"),
    ],
)
def test_wrong_words_are_explained(program: Path, words: tuple[str, ...], code: int, says: str) -> None:
    found, lines = ask(program, *words)
    assert found == code
    assert says in lines[-1]["error"]


def test_a_server_goes_on_after_a_job_that_fails(program: Path) -> None:
    jobs = "--ceiling none --variant u8\n\n" + " ".join(words_of("l1.read", "u8", 1)[3:]) + "\n"
    code, lines = ask(program, "serve", "--device", "0", input=jobs)
    assert code == 0
    assert ["error" in line for line in lines] == [True, False, False]
    assert lines[-1]["done"] is True


def test_a_job_ends_when_its_trials_are_enough(program: Path) -> None:
    """The driver's own process: what is asked for next is done, whenever the word to stop came."""
    session, job = Session(Runner(program, CPU), 0), Job("l1.read", "u8", 40, 0.005)
    try:
        trials, done = session.run(job, enough=lambda seen: len(seen) == 3)
        last, _ = session.run(job._replace(trials=2), enough=lambda seen: len(seen) == 2)  # it has ended by itself
        again, _ = session.run(job._replace(trials=2))
    finally:
        session.renew()
    assert [len(trials), len(last), len(again)] == [3, 2, 2]
    assert done["threads"] > 0


def test_it_keeps_to_the_cpus_that_it_may_use(program: Path) -> None:
    first = min(os.sched_getaffinity(0))
    lines = ask(program, "device", preexec_fn=lambda: os.sched_setaffinity(0, {first}))[1]
    assert (lines[-1]["threads"], lines[-1]["cores"], lines[-1]["logical_cpus"]) == (1, 1, 1)


def test_settings_of_openmp_change_nothing(program: Path, facts: dict[str, Any]) -> None:
    for settings in ({"OMP_NUM_THREADS": "1"}, {"OMP_PROC_BIND": "true"}, {"OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}):
        assert ask(program, "device", env=settings)[1] == [facts]
        assert ask(program, *words_of("l1.read", "u8", 1), env=settings)[1][-1]["threads"] == facts["threads"]


def test_threads_that_openmp_refuses_are_told(program: Path, facts: dict[str, Any]) -> None:
    if facts["threads"] < 2:
        pytest.skip("one CPU only")
    code, lines = ask(program, *words_of("l1.read", "u8", 1), env={"OMP_THREAD_LIMIT": "1"})
    assert code == 1
    assert "OMP_THREAD_LIMIT" in lines[-1]["error"]


@pytest.mark.exhaustive
def test_a_cpu_that_others_use_is_told(program: Path) -> None:
    first = {min(os.sched_getaffinity(0))}
    busy = f"import os\nos.sched_setaffinity(0, {first})\nprint(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE) as other:
        assert other.stdout
        assert other.stdout.readline()
        words = words_of("fp64.nofma", "wide_c8", 2, 50)
        done = ask(program, *words, preexec_fn=lambda: os.sched_setaffinity(0, first))[1][-1]
        other.kill()
    assert done["disturbed"] > 0.05
    assert done["repeated"] > 0


@pytest.mark.exhaustive
def test_memory_agrees_with_a_copy_by_numpy(program: Path) -> None:
    """Bytes and seconds are right to a factor: another program's copy, with plain stores and one thread, moves as many."""
    words = [*words_of("dram.triad", "plain_u8", 5, 20), "--threads", "1"]
    source = np.ones(2**25)
    target = np.zeros_like(source)

    def ratio() -> float:
        own = max(trial["work"] / trial["seconds"] for trial in ask(program, *words)[1][:-1])
        seconds = min(_seconds(lambda: np.copyto(target, source)) for _ in range(5))
        return float(own / (2 * source.nbytes / seconds))

    # Once is enough: a machine that others use may be busy for one of the two only.
    assert any(1 / 3 < ratio() < 3 for _ in range(5))


def _seconds(call: Callable[[], None]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


_FUSED = re.compile(r"\tvfn?m(?:add|sub)|\tfn?m(?:add|sub|la|ls)\b")
_ARITHMETIC = re.compile(r"\tv?(?:mul|add)p[sd]|\tf(?:mul|add)\b")


def test_what_is_called_fused_is_and_the_rest_is_not(program: Path, facts: dict[str, Any]) -> None:
    if not shutil.which("objdump"):
        pytest.skip("no objdump (binutils) to look at the machine code")
    text = subprocess.run(["objdump", "-dC", str(program)], capture_output=True, text=True, check=True).stdout
    blocks = re.split(r"\n(?=[0-9a-f]{8,} <)", text)
    for form, fused in (("Fused", True), ("Separate", False)):
        kernels = [block for block in blocks if re.match(rf"[0-9a-f]+ <void bench::chains<.*{form}", block)]
        if form == "Fused" and "fma" not in facts["isa"] and "asimd" not in facts["isa"]:
            assert not kernels
            continue
        assert len(kernels) >= 8
        for kernel in kernels:
            assert bool(_FUSED.search(kernel)) == fused
            assert fused or _ARITHMETIC.search(kernel)


_SKIPPING = "trip = 1; trip < work.trips_per_pass; ++trip, "
_ALL = "trip = 0; trip < work.trips_per_pass; ++trip, "
# One mistake per row; all are in one program.
MUTANTS = (
    ("l1.read", "u16", "memory.cpp", f"{_ALL}from += ", f"{_SKIPPING}from += "),
    (
        "dram.write",
        "plain_u8",
        "memory.cpp",
        f"{_ALL}to += Unroll * sizeof(Words)) ",
        f"{_SKIPPING}to += Unroll * sizeof(Words)) ",
    ),
    ("dram.copy", "plain_u8", "memory.cpp", "load<Words>(from + i * sizeof(Words))", "load<Words>(from)"),
    ("dram.triad", "plain_u8", "memory.cpp", "+ factor * load", "+ load"),
    (
        "fp64.nofma",
        "wide_c12",
        "separate.cpp",
        "return x * x + b;\n  }\n  template <class T>",
        "return x * x - b;\n  }\n  template <class T>",
    ),
    ("fp64.fma", "wide_c12", "fused.cpp", "fast", "off"),
)


@pytest.mark.exhaustive
def test_mistakes_are_noticed(tmp_path: Path) -> None:
    """Work that is left out or repeated, a wrong factor or sign, and two roundings where one is meant."""
    skip_without_compiler()
    folder = tmp_path / "openmp"
    shutil.copytree(SOURCES, folder)
    for _, _, name, old, new in MUTANTS:
        text = (folder / name).read_text(encoding="utf-8")
        assert old in text, (name, old)
        (folder / name).write_text(text.replace(old, new), encoding="utf-8")
    program = build_host(folder=folder, cache=tmp_path / "cache").path
    reasons = {(row["ceiling"], row["variant"]): row["reason"] for row in ask(program, "list")[1]}
    for ceiling, variant, *_ in MUTANTS:
        if not reasons[ceiling, variant]:
            checks = [trial["checksum_ok"] for trial in ask(program, *words_of(ceiling, variant, 2))[1][:-1]]
            assert checks == [False, False], ceiling


@pytest.mark.exhaustive
def test_it_compiles_without_warnings(tmp_path: Path) -> None:
    skip_without_compiler()
    folder = tmp_path / "openmp"
    shutil.copytree(SOURCES, folder)
    recipe = json.loads((folder / "build.json").read_text(encoding="utf-8"))
    flags = [flag for flag in recipe["flags"] if flag != "-O3"]
    (folder / "build.json").write_text(json.dumps({**recipe, "flags": [*flags, "-Werror"]}), encoding="utf-8")
    assert not build_host(folder=folder, cache=tmp_path / "cache").reused


def test_sources_that_do_not_compile_are_told(tmp_path: Path) -> None:
    skip_without_compiler()
    (tmp_path / "build.json").write_text('{"output": "x", "sources": ["x.cpp"], "flags": []}', encoding="utf-8")
    (tmp_path / "x.cpp").write_text("int main() { return wrong; }\n", encoding="utf-8")
    with pytest.raises(RooflineError, match=r"Cannot compile x\.cpp: .*error.*Install GCC or Clang"):
        build_host(folder=tmp_path, cache=tmp_path / "cache")


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(RooflineError, match=r"Cannot find a C\+\+ compiler: there is none of .*\. Install GCC or Clang"):
        find_host_compiler()
    monkeypatch.setenv("CXX", "no-such-compiler -O2")
    with pytest.raises(RooflineError, match="Cannot find no-such-compiler: CXX names it, and there is no such program"):
        find_host_compiler()


def test_a_compiler_without_openmp_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    scripts = {"c++": "case $* in *-fopenmp*) exit 1;; esac; echo old 1.0", "g++": "echo new 2.0"}
    for name, script in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert find_host_compiler().text == "new 2.0"
    (tmp_path / "g++").unlink()
    with pytest.raises(RooflineError, match="it does not compile and link with -fopenmp"):
        find_host_compiler()


def test_elsewhere_than_on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(RooflineError, match="Cannot measure on this CPU"):
        build_host()
