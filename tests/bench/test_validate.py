"""validate-on-gpu on a machine that is made up: an honest one passes, and each of its lies is told by name."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import factory
from tests.bench.fake_gpu_machine import launch, make_gpu_machine, scenario
from tests.bench.fakes import H200, Machine, device
from tests.bench.validate import SCRIPT
from tests.bench.validate import script as validate_on_gpu
from tests.sharing import made_once

LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
LEAST, PROFILED, Check, Listed, absent = (
    getattr(validate_on_gpu, name) for name in ("LEAST", "PROFILED", "Check", "Listed", "absent")
)
OPTIONS = {"device": "0", "ncu": "ncu", "nvcc": "", "quick": False, "budget": 0.0, "no_profiles": False}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """An honest machine."""
    (tmp_path / "machine").mkdir()
    return make_gpu_machine(tmp_path / "machine", monkeypatch.setenv)


@pytest.fixture(scope="session")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a whole run on an honest machine leaves, with its exit code and its table."""

    def make(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            (folder / "machine").mkdir()
            make_gpu_machine(folder / "machine", patch.setenv)
            done = validate(folder / "found")
        (folder / "code").write_text(str(done.returncode), encoding="utf-8")
        (folder / "stdout").write_text(done.stdout, encoding="utf-8")

    return made_once(tmp_path_factory, "validated", make)


def validate(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The script as users run it."""
    return subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), *words], capture_output=True, text=True, timeout=120, check=False
    )


def results(folder: Path) -> dict[str, dict[str, Any]]:
    """The checks of a run by step and name."""
    content = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert content["finished"]
    return {f"{check['step']} {check['name']}": check for check in content["checks"]}


def failed(folder: Path) -> dict[str, str]:
    """The reasons of what failed, by step and name."""
    return {name: check["reason"] for name, check in results(folder).items() if check["state"] == "FAIL"}


@pytest.mark.exhaustive
def test_an_honest_machine_passes(honest: Path) -> None:
    found = results(honest / "found")
    assert (honest / "code").read_text(encoding="utf-8") == "0", failed(honest / "found")
    assert {name for name in LEAST if found[f"ceilings {name}"]["state"] == "ok"} == set(LEAST)
    for name in PROFILED:
        assert found[f"profiles {name} counters / promise"]["value"] == pytest.approx(1, abs=1e-6)
        assert found[f"profiles {name} dot / measured roof"]["value"] == pytest.approx(1, abs=1e-6)
    assert found["ceilings l2.read / theory"]["reason"] == "no theory is known of NVIDIA H200"
    assert found["ceilings tensor.fp8.mma"]["state"] == "skip"


@pytest.mark.exhaustive
def test_what_a_run_leaves_is_flat_and_tells_everything(honest: Path) -> None:
    folder = honest / "found"
    left = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {path for path in left if path.count("/") > 1} == set()
    assert {
        "ceilings.json",
        "results.json",
        "summary.md",
        "log.txt",
        "proxies.html",
        "proxies.svg",
        "proxies.png",
        "bench.html",
    } <= left
    assert sum(path.startswith("reports/bench.") for path in left) == len(PROFILED)
    assert (folder / "summary.md").read_text(encoding="utf-8") in (honest / "stdout").read_text(encoding="utf-8")
    log = (folder / "log.txt").read_text(encoding="utf-8")
    assert "ncu_roofline bench run" in log
    assert log.count("[exit code 0, ") > 50


Lie = Callable[[dict[str, Any], Machine], None]


def entry(name: str, **change: Any) -> Lie:
    """A ceilings file in which one entry says something else; a value as a mapping changes what is inside."""

    def lie(content: dict[str, Any], _machine: Machine) -> None:
        found = next(one for one in content["ceilings"] if one["id"] == name)
        for key, value in change.items():
            found[key] = {**found[key], **value} if isinstance(value, dict) else value

    return lie


def without(name: str) -> Lie:
    """A ceilings file that lacks one."""

    def lie(content: dict[str, Any], _machine: Machine) -> None:
        content["ceilings"] = [one for one in content["ceilings"] if one["id"] != name]

    return lie


def elsewhere(content: dict[str, Any], _machine: Machine) -> None:
    """A ceilings file of another GPU."""
    content["device"]["uuid"] = "GPU-2"


def report(**change: Any) -> Lie:
    """A report of FP64 FMA that is not what was launched."""

    def lie(_content: dict[str, Any], machine: Machine) -> None:
        factory.report(machine.folder / "reports" / "bench.fp64.fma.ncu-rep", launch("fp64.fma", **change))

    return lie


def ncu(text: str) -> Lie:
    """An ncu that does this before one application runs."""

    def lie(_content: dict[str, Any], machine: Machine) -> None:
        (machine.folder / "lie").write_text(f'case "$out" in *bench.fp64.fma) {text} ;; esac\n', encoding="utf-8")

    return lie


def runner(**change: Any) -> Lie:
    """A runner that plays something else from now on."""

    def lie(_content: dict[str, Any], machine: Machine) -> None:
        machine.play(scenario(**change))

    return lie


COUNTERS, DOT = "profiles fp64.fma counters / promise", "profiles fp64.fma dot / measured roof"
LIES: dict[str, tuple[Lie, dict[str, str]]] = {
    "not accepted": (entry("fp32.fma", accepted=False, reasons=["unstable"]), {"ceilings fp32.fma": "not accepted: unstable"}),
    "above theory": (
        entry("fp32.fma", value=1.0e14, per_sm_and_cycle=382.6),
        {"ceilings fp32.fma": "149.5% of theory: the work is miscounted"},
    ),
    "above theory, but not per cycle": (
        entry("fp32.fma", value=1.0e14),
        {"ceilings fp32.fma": "1e+14 at 1980 MHz is not 250.9 per SM and cycle"},
    ),
    "far below theory": (entry("dram.read", value=2e12), {"ceilings dram.read": "% of theory is too low"}),
    "clock that the GPU can't have": (
        entry("l1.read", clock={"sm_mhz_mean": 2400}),
        {"ceilings l1.read": "above the GPU's highest"},
    ),
    "no clock": (entry("l1.read", clock={"sm_mhz_mean": None}), {"ceilings l1.read": "its clock was not measured"}),
    "one session": (entry("fp32.fma", sessions=1), {"ceilings fp32.fma": "1 sessions, not 2 or more"}),
    "wrong result": (entry("fp32.fma", verified={"checksum": False}), {"ceilings fp32.fma": "not verified"}),
    "result never looked at": (entry("fp32.fma", verified={"checksum": None}), {"ceilings fp32.fma": "not verified"}),
    "sessions 5 % apart": (
        entry("fp32.fma", between_session_cv=0.05, between_session_cv_per_cycle=0.05),
        {"ceilings fp32.fma": "sessions differ by 5.00%"},
    ),
    "sessions 5 % apart in bytes per second": (
        entry("dram.read", between_session_cv=0.05),
        {"ceilings dram.read": "sessions differ by 5.00%"},
    ),
    "left out of the file": (without("fp32.fma"), {"ceilings fp32.fma": "missing: the file has no entry"}),
    "no value": (
        entry("fp32.fma", value=None, reasons=["not measured: out of time"]),
        {"ceilings fp32.fma": "missing: the file has no value (not measured: out of time)"},
    ),
    "other ceiling not accepted": (
        entry("launch.sync", accepted=False, reasons=["throttled"]),
        {"ceilings launch.sync": "throttled"},
    ),
    "another GPU": (elsewhere, {"ceilings the GPU of the file": "it is GPU-2"}),
    "left out of the runner": (runner(fp32_fma=None), {"ceilings fp32.fma": "the runner lists no kernel of it"}),
    "profiled roof not accepted": (
        entry("fp64.fma", accepted=False, reasons=["unstable"]),
        {"ceilings fp64.fma": "not accepted", DOT: "its ceiling does not stand"},
    ),
    "ncu writes nothing": (ncu("exit 0"), {"profiles fp64.fma": "ncu wrote no report bench.fp64.fma.ncu-rep"}),
    "ncu fails": (ncu("echo '==ERROR== boom' >&2; exit 9"), {"profiles fp64.fma": "exit code 9: ==ERROR== boom"}),
    "application fails under ncu": (
        ncu("echo '==ERROR== The application returned an error code (4).'"),
        {"profiles fp64.fma": "the application ended with exit code 4 under ncu"},
    ),
    "ncu hangs": (ncu("sleep 60"), {"profiles fp64.fma": "did not end within 1 s and was killed"}),
    "ncu without rights": (
        lambda _content, machine: (machine.folder / "lie").write_text("echo '==ERROR== ERR_NVGPUCTRPERM - no' ; exit 1\n"),
        {"preflight ncu": "counters not permitted", "profiles anything": "nothing was proven of profiles"},
    ),
    "5 % more counted": (report(counted=1.05), {COUNTERS: "counted", DOT: "per cycle"}),
    "dot 10 % above the roof": (report(speed=1.1), {DOT: "per cycle, roof"}),
    "dot 10 % below the roof": (report(speed=0.9), {DOT: "per cycle, roof"}),
    "another kernel": (report(name="bench_other"), {"profiles fp64.fma": "the report holds bench_other, not bench_fp64_fma"}),
    "another launch": (report(grid=2), {"profiles fp64.fma": "no launch of 528 blocks of 256 threads"}),
    "nothing counted": (report(counted=0.0), {"profiles fp64.fma": "the report has no point of fp64"}),
    "other work promised": (
        lambda _content, machine: machine.play(scenario(fp64_fma={"calls": [{"scale": 1.2}]})),
        {COUNTERS: "promised"},
    ),
    "runner computes something else": (
        runner(fp64_fma={"calls": [{"mode": "wrong"}]}),
        {"profiles fp64.fma": "no trial with a right result"},
    ),
    "runner crashes": (runner(fp64_fma={"calls": [{"mode": "crash"}]}), {"profiles fp64.fma": "illegal memory access"}),
    "runner is out of memory": (runner(fp64_fma={"calls": [{"mode": "error"}]}), {"profiles fp64.fma": "out of memory"}),
}


@pytest.fixture
def script() -> Iterator[Any]:
    """The script as a module; it blocks the alarm between its steps."""
    yield validate_on_gpu
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])


def judged(script: Any, machine: Machine, honest: Path, folder: Path, lie: Lie | None, limit: float = 20.0) -> int:
    """The exit code of the steps after the benchmark, with what the honest run measured and two profiles."""
    script.prepare(folder)
    content = json.loads((honest / "found" / "ceilings.json").read_text(encoding="utf-8"))
    if lie:
        lie(content, machine)
    (folder / "ceilings.json").write_text(json.dumps(content), encoding="utf-8")
    run = script.Validation(argparse.Namespace(folder=folder, limit=100.0, program_limit=limit, **OPTIONS))
    run.runner = machine.program
    run.attempt("build", "runner", run.ask_runner)
    run.attempt("ceilings", "ceilings.json", run.judge)
    run.attempt("preflight", "ncu", run.preflight)
    for name in ("fp64.nofma", "fp64.fma"):
        run.with_ncu("profiles", name, lambda name=name: run.profile_bench(name))
    code: int = run.finish()
    return code


@pytest.mark.exhaustive
def test_the_judging_steps_pass_without_a_lie(script: Any, machine: Machine, honest: Path, tmp_path: Path) -> None:
    assert judged(script, machine, honest, tmp_path / "out", None) == 0
    assert failed(tmp_path / "out") == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_told_by_name(name: str, script: Any, machine: Machine, honest: Path, tmp_path: Path) -> None:
    lie, told = LIES[name]
    assert judged(script, machine, honest, tmp_path / "out", lie, 1.0 if "hangs" in name else 20.0) == 1
    found = failed(tmp_path / "out")
    assert found.keys() == told.keys()
    assert all(reason in found[check] for check, reason in told.items()), found


@pytest.mark.exhaustive
def test_ceilings_of_an_earlier_run_are_not_judged(machine: Machine, honest: Path, tmp_path: Path) -> None:
    shutil.copytree(honest / "found", tmp_path / "out")
    machine.play({**scenario(), "error": "no CUDA-capable device is detected"})
    assert validate(tmp_path / "out", "--no-profiles").returncode == 1
    assert "ceilings.json was not written" in failed(tmp_path / "out")["ceilings ceilings.json"]
    assert not (tmp_path / "out" / "ceilings.json").exists()
    assert not list((tmp_path / "out" / "reports").iterdir())


def contents(folder: Path) -> dict[str, bytes | None]:
    """Everything in a folder, files with their bytes."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


MINE = {
    "names as of a run": ("ceilings.json", "log.txt", "reports/mine.ncu-rep"),
    "one report": ("reports/gpp-nw1.ncu-rep",),
    "a mark of somebody else": (".validate-on-gpu", "ceilings.json"),
    "something else": ("mine.txt",),
}


@pytest.mark.parametrize("name", MINE)
def test_a_folder_of_somebody_else_is_refused_and_left_as_it_was(name: str, tmp_path: Path) -> None:
    for one in MINE[name]:
        (tmp_path / one).parent.mkdir(exist_ok=True)
        (tmp_path / one).write_text("mine", encoding="utf-8")
    before = contents(tmp_path)
    done = validate(tmp_path)
    assert (done.returncode, done.stdout, contents(tmp_path)) == (2, "", before)
    reason = "it is not empty, and no earlier run wrote it: it has no .validate-on-gpu"
    assert done.stderr == f"Cannot use {tmp_path}: {reason}. Name another folder.\n"


@pytest.mark.parametrize("one", ["mine.txt", "reports/mine.ncu-rep", "reports/mine/report.ncu-rep"])
def test_what_was_put_into_the_folder_of_a_run_is_kept(one: str, script: Any, tmp_path: Path) -> None:
    assert script.prepare(tmp_path / "out") == ""
    (tmp_path / "out" / one).parent.mkdir(exist_ok=True)
    for name in (one, "ceilings.json"):
        (tmp_path / "out" / name).write_text("mine", encoding="utf-8")
    before = contents(tmp_path)
    told = "mine.txt" if one == "mine.txt" else "reports/mine"
    assert script.prepare(tmp_path / "out").startswith(f"it holds what this program did not write: {told}")
    assert contents(tmp_path) == before


def test_links_are_not_followed(script: Any, tmp_path: Path) -> None:
    assert script.prepare(tmp_path / "out") == ""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out" / "reports").rmdir()
    (tmp_path / "out" / "reports").symlink_to(tmp_path / "elsewhere")
    assert script.prepare(tmp_path / "out").endswith("did not write: reports")


def test_places_that_are_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for place in (tmp_path / "file", Path("/dev/full"), Path("/proc/x"), tmp_path / "file" / "below"):
        done = validate(place)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"Cannot use {place}: ")
        assert done.stderr.count("\n") == 1
    assert contents(tmp_path) == {"file": b"mine"}


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(("room", "left"), [(0, set()), (200, {".validate-on-gpu", "reports"})])
def test_a_full_disk(room: int, left: set[str], tmp_path: Path) -> None:
    """A limit on the size of files is met as a full disk is: a write fails in the middle."""
    words = [sys.executable, "-c", LIMITED, str(room), str(SCRIPT), str(tmp_path / "out"), "--no-profiles"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith("Cannot ")
    assert "Traceback" not in done.stderr
    assert contents(tmp_path / "out").keys() - {"log.txt"} == left


@pytest.mark.exhaustive
@pytest.mark.usefixtures("machine")
def test_without_pandas_the_ceilings_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("numpy", "pandas", "matplotlib"):
        (tmp_path / "broken" / name).mkdir(parents=True)
        (tmp_path / "broken" / name / "__init__.py").write_text(f"raise ImportError('no {name} here')", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "broken"))
    assert validate(tmp_path / "out", "--quick").returncode == 1
    found = results(tmp_path / "out")
    measured = {name for name in LEAST if found[f"ceilings {name}"]["state"] == "ok"}
    assert len(measured) > 10
    assert "ceilings" not in {name.split()[0] for name in failed(tmp_path / "out")}
    assert all("no numpy here" in found[f"profiles {name}"]["reason"] for name in measured & {*PROFILED})


@pytest.mark.usefixtures("machine")
def test_steps_that_no_longer_fit_say_so(tmp_path: Path) -> None:
    assert validate(tmp_path / "out", "--limit", "0.5").returncode == 1
    assert failed(tmp_path / "out")["tools annotate"] == "out of time: the run may take 0.5 s"


@pytest.mark.usefixtures("machine")
def test_a_quick_run_says_that_it_proves_less(tmp_path: Path) -> None:
    assert validate(tmp_path / "out", "--quick", "--no-profiles").returncode == 0, failed(tmp_path / "out")
    found = results(tmp_path / "out")
    assert {found[f"ceilings {name}"]["state"] for name in ("fp64.fma sessions", "dram.triad")} == {"skip"}
    assert found["ceilings fp64.fma"]["value"] == pytest.approx(0.98)
    assert found["profiles fp64.fma"]["reason"] == "--no-profiles was given"
    assert "it proves less" in (tmp_path / "out" / "summary.md").read_text(encoding="utf-8")


@pytest.mark.exhaustive
def test_an_unknown_gpu_has_no_theory_and_says_so(script: Any, machine: Machine, honest: Path, tmp_path: Path) -> None:
    content = scenario()
    unknown = {**content["devices"][0], "name": "NVIDIA X1", "cc": "99.0"}
    machine.play({**content, "devices": [unknown], "rows": [{**row, "capabilities": []} for row in content["rows"]]})
    judged(script, machine, honest, tmp_path / "out", None)
    found = results(tmp_path / "out")["ceilings fp64.fma / theory"]
    assert (found["state"], found["reason"]) == ("skip", "no theory is known of NVIDIA X1")


def test_nothing_proven_is_a_failure(script: Any, machine: Machine, tmp_path: Path) -> None:
    script.prepare(tmp_path)
    run = script.Validation(argparse.Namespace(folder=tmp_path, limit=100.0, program_limit=1.0, **OPTIONS))
    run.attempt("preflight", "ncu", lambda: iter([Check("preflight", "ncu", "ok")]))
    assert run.finish() == 1
    assert failed(tmp_path).keys() == {"ceilings anything", "profiles anything"}
    assert machine.runs() == []


@pytest.mark.exhaustive
def test_a_run_ends_in_time_whatever_hangs(machine: Machine, tmp_path: Path) -> None:
    machine.play(scenario(fp32_fma={"calls": [{"mode": "hang"}]}))
    began = time.monotonic()
    assert validate(tmp_path / "out", "--no-profiles", "--limit", "3").returncode == 1
    assert time.monotonic() - began < 50  # what hangs does so for 60
    assert "time" in failed(tmp_path / "out")["measuring bench run"]
    assert failed(tmp_path / "out")["ceilings ceilings.json"].startswith("out of time")


@pytest.mark.parametrize(
    ("capability", "name", "reason"),
    [
        ("9.0", "tensor.fp8.mma", "the runner lists it as emulated on this GPU"),
        ("8.0", "tensor.fp16.wgmma", "no kernel and no known peak on compute capability 8.0"),
    ],
)
def test_what_a_gpu_lacks_is_skipped_aloud(capability: str, name: str, reason: str) -> None:
    listed = [Listed("tensor.fp8.mma", "best", "bench_tensor_fp8_mma", "emulated")]
    found = absent(name, listed, device({**H200, "name": "a GPU", "cc": capability}))
    assert found is not None
    assert (found.state, found.reason) == ("skip", reason)
    missing = absent("fp64.fma", listed, device({**H200, "name": "a GPU", "cc": capability}))
    assert missing is not None
    assert missing.state == "FAIL"
