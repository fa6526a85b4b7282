"""What transcripts of commands can't show: measuring at once, other systems, kinds of failures, jobs of Slurm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.bench.campaign import Progress
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.spec import LIGHT_TENSOR_SECTION
from ncu_roofline.cli import main
from ncu_roofline.plugin.check.chips import Passes
from ncu_roofline.plugin.machine import doctor, profile
from ncu_roofline.plugin.machine import machine as here
from ncu_roofline.plugin.machine.doctor import PROBLEM, examine
from ncu_roofline.plugin.machine.machine import Gpu, Machine, Ncu, expected_folder, find_ncus
from tests.cli.command import Command, assert_no_leftovers, assert_refused
from tests.machine.conftest import rendered_once
from tests.machine.fakes import CEILINGS, H100, REPORT, fake_ncu, fake_nvcc, fake_smi, program, set_env, with_driver
from tests.schemas import assert_fits

NCU = Ncu(Path("/opt/ncu"), "2024.2.1.0", "PATH")


def test_gpu_and_compiler_measure_once(
    machine: Machine, run: Command, bin_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measured, calls = json.loads(CEILINGS.read_text()), list[str]()
    measured["device"] |= {"name": H100["name"], "uuid": H100["uuid"], "cc": "9.0"}

    def measure(device: str, progress: Progress) -> Path:
        calls.append(device)
        if len(calls) == 1:
            raise RooflineError("Cannot find", "nvcc", "it is not on the PATH", "Install it.")
        progress.start(1)
        progress.begin("dram.read")
        progress.step()
        path = tmp_path / "measured.json"
        path.write_text(json.dumps(measured))
        return path

    monkeypatch.setattr("ncu_roofline.bench.measure", measure)
    fake_ncu(bin_folder)
    fake_nvcc(bin_folder)
    fake_smi(bin_folder, [H100])
    first = "Theoretical roofs: Cannot find nvcc: it is not on the PATH. Install it."
    assert run("install").out.splitlines()[0] == first
    assert run("install").out.startswith("Measured roofs: ")
    outcome = run("install", "--json")
    assert assert_fits("install", outcome.out)["installed"]
    assert calls == [H100["uuid"]] * 2  # then kept from before
    rows = {row["topic"]: row for row in assert_fits("doctor", run("doctor", "--json").out)}
    assert (rows["ceilings"]["status"], H100["uuid"][4:10] in rows["ceilings"]["text"]) == ("ok", True)
    assert all(one.advice.endswith(".") for one in examine(machine) if one.status != "ok")
    monkeypatch.setattr(doctor, "__version__", "99.0")
    (line,) = (one for one in examine(machine) if one.topic == "sections")
    assert line.advice == "Run `ncu-roofline install` for version 99.0."


def test_an_ncu_that_does_not_answer(run: Command, bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Machine.run, "__defaults__", (0.2,))
    slow = program(bin_folder / "ncu", "#!/bin/sh\nwhile :; do :; done\n")
    outcome = run("install", "--ncu", slow)
    assert_refused(outcome, slow)
    assert "did not answer" in outcome.err


def test_python_packages(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """zstd, without which no .ncu-repz can be read, is a package up to Python 3.13."""
    for missing, version in (("", (3, 14)), ("backports.zstd", (3, 13)), ("matplotlib", (3, 14))):
        monkeypatch.setattr(doctor, "sys", SimpleNamespace(version_info=version))
        monkeypatch.setattr(doctor, "find_spec", lambda name, missing=missing: None if name == missing else object())
        (line,) = (one for one in examine(machine) if one.topic == "Python")
        expected = (PROBLEM, f"{missing} missing", f"Run `pip install {missing}`.")
        assert line[1:] == expected if missing else "pandas" in line.text


def test_folders_by_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    documents = home / "Documents" / "NVIDIA Nsight Compute" / "2024.2.1" / "Sections"
    for environ, system, data in (
        ({"HOME": str(home)}, "linux", home / ".local" / "share" / "ncu-roofline"),
        ({"HOME": str(home), "XDG_DATA_HOME": "/data"}, "linux", Path("/data/ncu-roofline")),
        ({"HOME": str(home)}, "darwin", home / "Library" / "Application Support" / "ncu-roofline"),
        ({"USERPROFILE": str(home), "LOCALAPPDATA": str(home / "L"), "HOME": "/no"}, "windows", home / "L" / "ncu-roofline"),
    ):
        machine = Machine(environ, system)
        assert (expected_folder(machine, NCU), machine.data) == (documents, data)
    assert expected_folder(Machine({}, "linux"), NCU) is None
    assert Machine({"HOME": "", "TMPDIR": "/t"}, "linux").data.parts[-2:] == ("share", "ncu-roofline")
    folder = tmp_path / "NVIDIA Corporation" / "Nsight Compute 2024.2.0"
    bat = program(folder / "ncu.bat", "#!/bin/sh\necho 'Version 2024.2.0.0 (build 1)'\n")
    windows = Machine({"PROGRAMFILES": str(tmp_path), "PATH": ""}, "windows", tmp_path / "root")
    assert [(one.path, one.version) for one in find_ncus(windows)] == [(bat, "2024.2.0.0")]
    for platform, system in (("win32", "windows"), ("darwin", "darwin"), ("linux", "linux"), ("freebsd14", "linux")):
        monkeypatch.setattr(sys, "platform", platform)
        assert here.this_machine().system == system


def test_folders_that_can_t_be_looked_into_are_passed_over(machine: Machine, tmp_path: Path, bin_folder: Path) -> None:
    """A name that is too long stands for them: whoever runs the tests may be allowed to read everything."""
    ncu = Ncu(fake_ncu(bin_folder), "2024.2.0.0", "PATH")
    assert here.sections_folder(machine, ncu) == expected_folder(machine, ncu)
    set_env(machine, NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT="1")
    assert here.sections_folder(machine, ncu) == bin_folder / "sections"
    odd = tmp_path / ("x" * 300)
    set_env(machine, PATH=str(odd), HOME=str(odd), CUDA_HOME=str(odd))
    assert [ncu for ncu in find_ncus(machine) if ncu.path.is_relative_to(odd)] == []
    assert find_ncus(machine, str(odd / "ncu"))[0].problem


def test_output_passes_through_and_a_link_stays_one(
    machine: Machine, bin_folder: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    fake_ncu(bin_folder)
    with_driver(machine)
    app = program(tmp_path / "app", '#!/bin/sh\necho "out $1"\necho err >&2\n')
    Path("mine.ncu-rep").symlink_to(tmp_path / "there.ncu-rep")
    assert main(["profile", "-o", "mine", "--force", "--", str(app), "a b"]) == 0
    captured = capfd.readouterr()
    assert captured.out == "out a b\n"
    assert "err\n" in captured.err
    assert Path("mine.ncu-rep").is_symlink()
    assert (tmp_path / "there.ncu-rep").read_bytes() == REPORT.read_bytes()
    assert "HierarchicalDoubleRooflineChart.section" in json.loads((bin_folder / "seen").read_text())["folders"][0]


def test_what_can_be_counted(run: Command, bin_folder: Path) -> None:
    fake_ncu(bin_folder)
    names = set(rendered_once("2024.2.0.0").files)
    assert {f"{name}.section" for name in (*load_spec().sections.values(), LIGHT_TENSOR_SECTION)} <= names
    assert_refused(run("profile", "--precision", "int32", "--", "./app"), "int32", code=2)
    assert_refused(run("profile", "--light", "--precision", "tensor.fp3", "--", "./app"), "tensor.fp3", code=2)
    assert run("profile", "--scheduler", "sbatch", "--", "./app").code == 2
    assert profile.as_text(["C:\\x y\\ncu.bat", "a"], "windows") == '"C:\\x y\\ncu.bat" a'
    words = profile.command(NCU, profile.Wanted(("./app",), "50%", ("S",)))
    assert words[words.index("-o") + 1] == "50%%"  # percent signs are macros of ncu


def test_ranks() -> None:
    for rank, environ in (
        ("", {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}),
        ("12", {"PMI_RANK": "12"}),
        ("5", {"SLURM_PROCID": "5"}),
        ("", {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1", "SLURM_NTASKS": "8"}),
        ("1", {"SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "8", "OMPI_COMM_WORLD_RANK": "1"}),
        ("", {"SLURM_PROCID": "two"}),
    ):
        assert profile.rank_of(environ) == rank


def test_passes_are_told_where_a_library_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu, pack = Gpu(0, "H100", "", "", (9, 0)), rendered_once("2024.2.0.0")
    rules = "ncu_roofline.plugin.check.section_rules.section_passes"
    monkeypatch.setattr(rules, lambda contents, _: Passes(len(list(contents)), 1))
    sections = profile.sections_for(["fp64", "fp32"], light=False)
    text = (
        "Each kernel is run 4 times (replay passes): 2 for hardware counters, 1 with instrumented instructions, 1 of ncu's own."
    )
    assert profile.passes_text(pack, sections, gpu) == text
    assert profile.passes_text(pack, sections, gpu, sections[:1]) == f"{text} --light: 3 times."
    assert profile.passes_text(pack, sections, gpu, sections) == text
    monkeypatch.setattr(rules, lambda *_: None)
    assert "no metric library here knows 9.0" in profile.passes_text(pack, sections, gpu)
    assert "no metric library here knows 77.0" in profile.passes_text(pack, sections, Gpu(0, "X", "", "", (77, 0)))


def test_known_failures(machine: Machine) -> None:
    for text, found in {
        "The user does not have permission to access NVIDIA GPU Performance Counters": "permission",
        "==ERROR== Failed to load the driver.": "driver",
        "==ERROR== InterprocessLockFailed": "busy",
        "==ERROR== './app' does not exist or is not an executable. Please": "program",
        "==PROF== Connected to process 3": "killed",
    }.items():
        failure = profile.explain(with_driver(machine), text, -9, "", sys.executable)
        assert failure.id == found
    assert failure.reason == "ncu was ended by signal 9"


SRUN = """#!/bin/bash
for SLURM_PROCID in 0 1 2; do export SLURM_PROCID; "$@"; done
"""
WRITING = """#!{python}
import json, os, sys
with open("calls", "a") as stream:
    stream.write(json.dumps([os.path.basename(sys.argv[0]), os.environ.get("SLURM_PROCID", ""), *sys.argv[1:]]) + "\\n")
"""
APPLICATION = ["./my app", "it's", "$HOME", "a  b", "*", "\33[31m\nit's \\ \u202eé", "é"]


@pytest.mark.parametrize("options", [(), ("--only-rank", 1)], ids=["every task", "one alone"])
def test_a_job_of_slurm_does_what_it_says(run: Command, tmp_path: Path, options: tuple[object, ...]) -> None:
    """bash carries the line out, with stand-ins for srun and ncu."""
    outcome = run("profile", "--scheduler", "srun", *options, "-o", "50% done", "--", *APPLICATION)
    assert outcome.code == 0
    assert outcome.err.startswith("No ncu works here: the command is for Nsight Compute 20")
    assert len(outcome.out.splitlines()) == 1
    assert outcome.out.rstrip("\n").isprintable()
    assert_no_leftovers(Path())
    program(tmp_path / "programs" / "srun", SRUN)
    for path in (tmp_path / "programs" / "ncu", Path("my app")):
        program(path, WRITING.format(python=sys.executable))
    environment = {**os.environ, "PATH": f"{tmp_path / 'programs'}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["bash", "-c", outcome.out], check=True, timeout=60, env=environment)
    called = [json.loads(line) for line in Path("calls").read_text(encoding="utf-8").splitlines()]
    names = ["my app", "ncu", "my app"] if options else ["ncu"] * 3
    assert [words[:2] for words in called] == [[name, str(task)] for task, name in enumerate(names)]
    for name, _, *words in called:
        assert words[-len(APPLICATION) + 1 :] == APPLICATION[1:]
        report = words[words.index("-o") + 1] if name == "ncu" else ""
        assert report == ("" if name == "my app" else "50%% done.rank1" if options else "50%% done.rank%q{SLURM_PROCID}")
