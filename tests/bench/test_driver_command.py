"""`ncu-roofline bench` from end to end with a fake program and a fake NVML: no GPU, no nvcc."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.bench import campaign as session_module
from ncu_roofline.bench import measure, telemetry
from ncu_roofline.bench.device import LOCAL_RANKS, RANK_COUNTS, choose, local_rank
from ncu_roofline.bench.measuring import Record, Timing
from ncu_roofline.cli.outputs import Bar
from ncu_roofline.formats.ceilings import read_ceilings
from tests.bench.fakes import H200, MIG, RATES, Machine, device, fake_nvml, kind, make_machine, scenario
from tests.bench.test_cpu_files import EPYC
from tests.bench.test_driver_build import Toolkit
from tests.cli.command import Command, assert_no_leftovers, assert_refused
from tests.schemas import assert_fits

SECOND = {**H200, "uuid": "GPU-22222222-2222-3333-4444-555555555555", "pci_bus_id": "00000000:2B:00.0"}
NO_DRIVER = "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """The fake program, NVML, no waiting, no launcher around, and an empty current folder."""
    for name in (*LOCAL_RANKS, *RANK_COUNTS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(telemetry, "load", fake_nvml)
    monkeypatch.setattr(session_module, "TIMING", Timing(time.monotonic, lambda _seconds: None))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return make_machine(tmp_path, monkeypatch.setenv)


def bench(machine: Machine, *words: object) -> tuple[object, ...]:
    """The words of a short `bench run`."""
    return ("bench", "run", "--runner", machine.program, "--quick", *words)


def load(path: Path) -> dict[str, Any]:
    """A file as it stands."""
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def by_id(path: Path) -> dict[str, Any]:
    """Its ceilings."""
    return {entry["id"]: entry for entry in load(path)["ceilings"]}


def test_run_writes_a_file_and_prints_a_table(run: Command, machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "here" / "h200.json"
    outcome = run(*bench(machine, "-o", path))
    assert outcome.code == 0, outcome.err
    assert "NVIDIA H200 (9.0)" in outcome.out
    assert "33 TFLOP/s" in outcome.out
    assert f"{path}: {len(RATES)} ceilings" in outcome.err
    assert "unproven on hardware" not in outcome.err  # an H100 was measured, of the same compute capability
    content = load(path)
    assert (content["schema"], content["schema_version"]) == ("ert-ceilings", 1)
    assert content["device"]["ecc"] == {"current": True, "pending": True}
    assert content["device"]["driver"] == "580.65.06"
    assert content["device"]["mig"] == {"enabled": False, "profile": None, "sm_fraction": 1.0}
    entries = by_id(path)
    assert entries["tensor.fp8.mma"]["reasons"] == ["emulated"]
    assert entries["tensor.int8.tcgen05"]["reasons"] == ["unsupported"]
    assert entries["fp64.fma"]["throttle"]["reasons"] == ["power cap"]
    read = read_ceilings(path)
    assert set(read.by_id) == set(RATES)
    assert_no_leftovers(path.parent, "h200.json", "h200.svg")


def test_each_ceiling_gets_its_line_as_it_is_found(run: Command, machine: Machine) -> None:
    outcome = run(*bench(machine, "--no-picture"))
    lines = [line.split() for line in outcome.err.splitlines()]
    assert lines[0][:2] == ["ceiling", "value"]
    assert [line[0] for line in lines[1 : 1 + len(RATES)]] == [*RATES]
    assert all(any(word.startswith("ok") for word in line) for line in lines[1 : 1 + len(RATES)])


def test_a_gpu_that_cannot_be_used_is_not_measured(run: Command, machine: Machine, tmp_path: Path) -> None:
    machine.play(scenario({"unusable": "all CUDA-capable devices are busy or unavailable"}, SECOND))
    assert run(*bench(machine, "--device", "all", "--only", "fp64.fma", "--no-picture", "-o", tmp_path / "here")).code == 0
    (path,) = (tmp_path / "here").iterdir()
    assert load(path)["device"]["uuid"] == SECOND["uuid"]
    assert {words["device"] for words in machine.runs()} == {"1"}
    machine.play(scenario({"unusable": "all CUDA-capable devices are busy or unavailable"}))
    assert_refused(run(*bench(machine, "--no-picture")), "a GPU")


def test_the_full_run_has_three_sessions(run: Command, machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "here" / "x.json"
    assert run("bench", "run", "--runner", machine.program, "--only", "fp64.fma", "-o", path).code == 0
    entry = by_id(path)["fp64.fma"]
    assert (entry["sessions"], entry["trials"]) == (3, 45)
    # A warm-up, three sessions and a burst, in three processes.
    assert [words["ceiling"] for words in machine.runs()] == ["fp64.fma"] * 5
    assert len({words["process"] for words in machine.runs()}) == 3


def test_only_and_skip(run: Command, machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "here" / "x.json"
    assert run(*bench(machine, "--only", "dram,fp64,tensor", "--skip", "tensor.fp16.mma", "-o", path)).code == 0
    assert {key for key, entry in by_id(path).items() if entry["accepted"]} == {"dram.read", "fp64.fma", "tensor.fp16.wgmma"}
    assert_refused(run(*bench(machine, "--only", "nonsense")), "nonsense", 2)


def test_json_goes_to_standard_output(run: Command, machine: Machine) -> None:
    outcome = run(*bench(machine, "--only", "fp64.fma", "--json"))
    assert assert_fits("ceilings", outcome.out)["device"]["name"] == "NVIDIA H200"


def test_zeros_are_recorded_and_warned_of(run: Command, machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "here" / "x.json"
    assert "zeros" in run(*bench(machine, "--only", "fp64.fma", "--data", "zeros", "-o", path)).out
    assert by_id(path)["fp64.fma"]["data"] == "zeros"
    assert machine.runs()[0]["data"] == "zeros"


def test_an_existing_file_is_kept_without_force(run: Command, machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "here" / "x.json"
    path.write_text("precious")
    assert_refused(run(*bench(machine, "-o", path)), path)
    assert path.read_text() == "precious"
    assert machine.runs() == []
    assert run(*bench(machine, "--only", "fp64.fma", "--force", "-o", path)).code == 0
    assert read_ceilings(path).device == "NVIDIA H200"


def test_the_picture_never_replaces_the_measurements(run: Command, machine: Machine, tmp_path: Path) -> None:
    here = tmp_path / "here"
    (here / "x.json").symlink_to(here / "x.svg")
    for name in ("a.svg", "a.SVG", "x.json"):
        assert_refused(run(*bench(machine, "--force", "-o", here / name)), here / name, 2)
    assert machine.runs() == []
    path = here / "a.svg"
    assert run(*bench(machine, "--only", "fp64.fma", "--no-picture", "-o", path)).code == 0
    assert set(read_ceilings(path).by_id) == {"fp64.fma"}


def test_standard_output_is_no_file_of_a_run(run: Command, machine: Machine) -> None:
    outcome = run(*bench(machine, "-o", "-"))
    assert_refused(outcome, "-", 2)
    assert "--json" in outcome.err
    assert machine.runs() == []


@pytest.mark.parametrize("option", ["--only", "--skip"])
@pytest.mark.parametrize("text", ["", ",", " "])
def test_a_choice_of_nothing_is_none(run: Command, machine: Machine, option: str, text: str) -> None:
    outcome = run(*bench(machine, option, text))
    assert outcome.code == 2
    assert "names no ceiling" in outcome.err
    assert machine.runs() == []


# Where nothing stands


def test_where_no_ceiling_stands_the_command_fails(run: Command, machine: Machine, tmp_path: Path) -> None:
    machine.play(scenario(fp64_fma={"noise": 0.2}))
    path = tmp_path / "here" / "x.json"
    outcome = run(*bench(machine, "--only", "fp64.fma", "-o", path))
    assert outcome.code == 1
    assert (
        outcome.err.splitlines()[-1] == f"ncu-roofline: {path}: no ceiling was accepted, nothing in it stands, and it says why"
    )
    assert "unstable" in outcome.out
    assert by_id(path)["fp64.fma"]["value"] > 1e12
    assert_no_leftovers(path.parent, "x.json")
    assert run(*bench(machine, "--only", "fp64.fma,fp32.fma", "--force", "-o", path)).code == 0


def test_one_gpu_of_two_that_stands_is_not_enough(run: Command, machine: Machine, tmp_path: Path) -> None:
    machine.play(scenario(H200, SECOND, fp64_fma={"calls": [{}, {}, {"noise": 0.2}]}))
    outcome = run(*bench(machine, "--device", "all", "--only", "fp64.fma", "-o", tmp_path / "here"))
    assert outcome.code == 1
    assert outcome.err.count("no ceiling was accepted") == 1
    assert len(list((tmp_path / "here").glob("*.json"))) == 2


def test_on_a_cpu_the_share_of_others_is_told(run: Command, machine: Machine, tmp_path: Path) -> None:
    calls = [{"noise": 0.5, "launch": {"disturbed": share}} for share in (0.0, 0.521)]
    machine.play(scenario(EPYC, fp64_fma={"rate": 2e12, "calls": calls}))
    path = tmp_path / "here" / "x.json"
    outcome = run(*bench(machine, "--device", "cpu", "--only", "fp64.fma", "-o", path))
    assert outcome.code == 1
    assert outcome.err.splitlines()[-1].endswith("; other programs took up to 52% of the CPU")
    assert "other programs took 52% of the CPU" in by_id(path)["fp64.fma"]["reasons"]


def refused_line(err: str) -> str:
    """The sentence after the lines of the ceilings."""
    return err.splitlines()[-1]


def test_too_little_time_is_told(run: Command, machine: Machine) -> None:
    outcome = run(*bench(machine, "--budget", "0.000001", "--only", "tensor.fp8.mma,fp64.fma"))
    assert outcome.code == 1
    assert "not measured: out of time" in refused_line(outcome.err)
    assert refused_line(outcome.err).endswith("Give it more time with --budget.")


def test_what_does_not_apply_is_no_fault_of_the_driver(run: Command, machine: Machine) -> None:
    outcome = run(*bench(machine, "--only", "tensor.fp8.mma"))
    assert outcome.code == 1
    assert refused_line(outcome.err).endswith("Choose other ceilings.")


def test_a_cpu_that_fails_is_no_matter_of_nvidia_smi(run: Command, machine: Machine) -> None:
    machine.play(scenario(EPYC, fp64_fma={"calls": [{"mode": "crash"}]}))
    outcome = run(*bench(machine, "--device", "cpu", "--only", "fp64.fma"))
    assert outcome.code == 1
    assert "it ended with code 3" in refused_line(outcome.err)
    assert "nvidia-smi" not in outcome.err


def test_the_reason_is_the_one_of_this_run(run: Command, machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "here" / "x.json"
    words = bench(machine, "--only", "fp64.fma", "-o", path)
    machine.play(scenario(fp64_fma={"calls": [{"mode": "crash"}]}))
    assert "illegal memory access" in refused_line(run(*words).err)
    assert_no_leftovers(path.parent)
    machine.play(scenario(fp64_fma={"calls": [{"mode": "error", "text": "out of memory"}]}))
    said = refused_line(run(*words).err)
    assert "out of memory" in said
    assert "illegal memory access" not in said
    machine.play(scenario())
    assert run(*words).code == 0


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (NO_DRIVER, "Install an NVIDIA driver"),
        ("cudaErrorNoDevice: no CUDA-capable device is detected", "CUDA_VISIBLE_DEVICES"),
        ("cudaErrorSystemNotReady: system not yet initialized", "nvidia-smi"),
    ],
)
def test_no_gpu_or_driver(run: Command, machine: Machine, error: str, advice: str) -> None:
    machine.play({**scenario(), "error": error})
    outcome = run(*bench(machine))
    assert_refused(outcome, "a GPU")
    assert error in outcome.err
    assert advice in outcome.err
    assert "bench theory" in outcome.err


def test_no_compiler_no_gpu(run: Command, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    outcome = run("bench", "run")
    assert_refused(outcome, "an NVIDIA GPU")
    assert "bench theory" in outcome.err
    assert machine.runs() == []


def test_measure_for_other_commands(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ncu_roofline.bench import build as build_module

    monkeypatch.setattr(build_module, "build", lambda nvcc="": build_module.describe(machine.program))  # noqa: ARG005
    path = measure("0", True, tmp_path / "out.json")
    assert set(read_ceilings(path).by_id) == set(RATES)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = measure(H200["uuid"], quick=True)
    assert path.parent == tmp_path / "cache" / "ncu-roofline" / "ceilings"
    assert measure(quick=True) == path  # again: overwritten


# Several GPUs, MIG, ranks


def test_all_gpus_one_after_another(run: Command, machine: Machine, tmp_path: Path) -> None:
    machine.play(scenario(H200, SECOND))
    outcome = run(*bench(machine, "--device", "all", "--only", "fp64.fma", "-o", tmp_path / "here"))
    assert outcome.code == 0, outcome.err
    files = sorted((tmp_path / "here").glob("*.json"))
    assert [load(path)["device"]["uuid"] for path in files] == [H200["uuid"], SECOND["uuid"]]
    assert {path.name for path in (tmp_path / "here").glob("*.svg")} == {path.with_suffix(".svg").name for path in files}
    assert {words["device"] for words in machine.runs()} == {"0", "1"}


def test_several_gpus_need_a_folder(run: Command, machine: Machine, tmp_path: Path) -> None:
    machine.play(scenario(H200, SECOND))
    assert_refused(run(*bench(machine, "--device", "all", "-o", tmp_path / "x.json")), tmp_path / "x.json", 2)


@pytest.mark.parametrize("word", ["1", SECOND["uuid"], "GPU-2222", "22222222", SECOND["uuid"].upper(), "00000000:2b:00.0"])
def test_a_gpu_by_index_uuid_or_bus(run: Command, machine: Machine, tmp_path: Path, word: str) -> None:
    machine.play(scenario(H200, SECOND))
    path = tmp_path / "here" / "x.json"
    assert run(*bench(machine, "--device", word, "--only", "fp64.fma", "-o", path)).code == 0
    assert load(path)["device"]["uuid"] == SECOND["uuid"]


@pytest.mark.parametrize("word", ["2", "GPU-3333", "GPU-", "x", ","])
def test_a_gpu_that_is_not_there(run: Command, machine: Machine, word: str) -> None:
    machine.play(scenario(H200, SECOND))
    assert_refused(run(*bench(machine, "--device", word)), word, 2)


def test_a_mig_instance(run: Command, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "load", lambda: fake_nvml(nvmlDeviceGetMigMode=(1, 1)))
    machine.play(scenario(MIG, fp64_fma={"rate": 4.0e12}))
    path = tmp_path / "here" / "x.json"
    outcome = run(*bench(machine, "--only", "fp64.fma,dram.read", "-o", path))
    assert outcome.code == 0, outcome.err
    content, entries = load(path), by_id(path)
    assert content["device"]["mig"] == {"enabled": True, "profile": "1g.18gb", "sm_fraction": None}
    assert entries["fp64.fma"]["theory"]["at_measured_clock"] == pytest.approx(16 * 128 * 1.98e9)
    assert entries["dram.read"]["theory"]["value"] is None
    assert "MIG" in content["warnings"][-1]


def test_an_instance_that_only_the_driver_tells(
    run: Command, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "load", lambda: fake_nvml(nvmlDeviceGetMigMode=(1, 1)))
    path = tmp_path / "here" / "x.json"
    assert run(*bench(machine, "--only", "dram.read", "-o", path)).code == 0
    assert load(path)["device"]["mig"]["enabled"]
    assert by_id(path)["dram.read"]["theory"]["value"] is None


def test_each_rank_takes_its_gpu_and_writes_its_file(
    run: Command, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.play(scenario(H200, SECOND))
    monkeypatch.setenv("SLURM_NTASKS", "4")
    for local in ("0", "1"):
        monkeypatch.setenv("SLURM_LOCALID", local)
        outcome = run(*bench(machine, "--only", "fp64.fma"))
        assert outcome.code == 0, outcome.err
        assert outcome.out == ""
    files = sorted((tmp_path / "here").iterdir())
    assert [load(path)["device"]["uuid"] for path in files] == [H200["uuid"], SECOND["uuid"]]
    monkeypatch.setenv("SLURM_LOCALID", "2")
    assert_refused(run(*bench(machine)), "this node")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"SLURM_LOCALID": "0", "SLURM_NTASKS": "1"}, None),
        ({"SLURM_LOCALID": "3", "SLURM_NTASKS": "8"}, 3),
        (
            {"OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "SLURM_LOCALID": "0", "SLURM_NTASKS": "1"},
            1,
        ),
        ({"PMI_LOCAL_RANK": "2"}, 2),
        ({"MPI_LOCALRANKID": "1", "PMI_SIZE": "4"}, 1),
        ({"SLURM_LOCALID": "none"}, None),
    ],
)
def test_local_ranks(environment: dict[str, str], expected: int | None) -> None:
    assert local_rank(environment) == expected


def test_a_rank_whose_launcher_bound_it_takes_what_it_sees() -> None:
    only = [device()]
    assert choose(only, "auto", 3) == (only[0],)
    with pytest.raises(RooflineError, match="Start 2 ranks per node"):
        choose([device(), device(SECOND, 1)], "auto", 2)
    with pytest.raises(UsageError):
        choose(only, "", None)


def test_two_ranks_on_one_gpu_are_told(run: Command, machine: Machine) -> None:
    with session_module._alone(device()):
        assert_refused(run(*bench(machine)), f"NVIDIA H200 {H200['uuid']}")
    assert run(*bench(machine, "--only", "fp64.fma")).code == 0


# Programs that misbehave


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ({"mode": "crash"}, "ended with code 3 (CUDA error: an illegal memory access was encountered)"),
        ({"mode": "crash", "text": "abort"}, "killed by signal 6"),
        ({"mode": "garbage"}, "it printed no JSON: 'Segmentation fault (core dumped)'"),
        ({"mode": "short"}, "it ended before its last trial"),
        ({"mode": "error", "text": "out of memory"}, "out of memory"),
    ],
)
def test_a_broken_ceiling_does_not_spoil_the_others(
    run: Command, machine: Machine, tmp_path: Path, call: dict[str, str], reason: str
) -> None:
    machine.play(scenario(fp64_fma={"calls": [call]}))
    path = tmp_path / "here" / "x.json"
    outcome = run(*bench(machine, "--only", "fp64,dram.read", "-o", path))
    assert outcome.code == 0, outcome.err
    assert "not accepted: fp64.fma" in outcome.err
    entries = by_id(path)
    assert entries["dram.read"]["accepted"]
    assert entries["fp64.fma"]["value"] is None
    assert reason in entries["fp64.fma"]["reasons"][0]


def test_nothing_but_broken_ceilings_is_an_error(run: Command, machine: Machine, tmp_path: Path) -> None:
    machine.play(scenario(fp64_fma={"calls": [{"mode": "crash"}]}))
    path = tmp_path / "here" / "x.json"
    outcome = run(*bench(machine, "--only", "fp64.fma", "-o", path))
    header, line, refusal = outcome.err.splitlines(keepends=True)
    assert header.startswith("ceiling")
    assert line.startswith("fp64.fma")
    assert "failed" in line
    assert_refused(replace(outcome, err=refusal), f"NVIDIA H200 {H200['uuid']}")
    assert "illegal memory access" in refusal
    assert not path.exists()


def test_a_ceiling_that_hangs(run: Command, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ncu_roofline.bench import measuring

    monkeypatch.setattr(measuring, "QUICK", replace(measuring.QUICK, silence=0.5))
    machine.play(scenario(fp64_fma={"calls": [{"mode": "hang"}]}))
    path = tmp_path / "here" / "x.json"
    assert run(*bench(machine, "--only", "fp64,dram.read,fp32", "-o", path)).code == 0
    entries = by_id(path)
    assert entries["fp64.fma"]["reasons"] == ["the benchmark failed: it said nothing for 0.5 s"]
    assert entries["dram.read"]["accepted"]
    assert sum(words["ceiling"] == "fp64.fma" for words in machine.runs()) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("print('hello')", "printed no JSON"),
        ("import sys; sys.exit(1)", "ended with code 1"),
        ("print('[]')", "printed no JSON"),
        ('print(\'{"ceiling": "x"}\')', "its list of ceilings can't be read"),
        ('print(\'{"ceiling": "x", "variant": "a", "unit": "GB/s"}\')', "its list of ceilings can't be read"),
        ('print(\'{"ceiling": "x", "variant": "a", "unit": "B/s", "capabilities": ["sm_90"]}\')', "can't be read"),
    ],
)
def test_a_program_that_is_none(run: Command, machine: Machine, text: str, reason: str) -> None:
    machine.program.write_text(f"#!{sys.executable} -S\n{text}\n")
    outcome = run("bench", "list", "--runner", machine.program)
    assert_refused(outcome, machine.program)
    assert reason in outcome.err
    assert "bench build --force" in outcome.err


@pytest.mark.parametrize("change", [{"cc": "nine"}, {"uuid": ""}, {"name": None}, {"cc": None}])
def test_a_gpu_that_is_described_wrongly(run: Command, machine: Machine, change: dict[str, object]) -> None:
    machine.play(scenario({**H200, **change}))
    assert_refused(run(*bench(machine)), machine.program)


def test_no_program(run: Command, machine: Machine, tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path, Path(__file__)):
        assert_refused(run("bench", "run", "--runner", path), path)
    machine.program.write_text("no program")
    outcome = run(*bench(machine))
    assert outcome.code == 1
    assert "it can't be started" in outcome.err


# Interruptions


# What a shell starts in the background, and all that it starts, does not listen to Ctrl-C.
LISTENING = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from ncu_roofline.cli import main
sys.exit(main())
"""


def test_ctrl_c(machine: Machine, tmp_path: Path) -> None:
    """A real signal to a real process leaves nothing behind."""
    machine.play(scenario(fp32_fma={"calls": [{}, {"mode": "hang"}]}))  # the first is the warm-up
    path = tmp_path / "here" / "x.json"
    words = [sys.executable, "-c", LISTENING, "bench", "run", "--runner", str(machine.program), "--quick"]
    words += ["--only", "dram.read,fp64.fma,fp32.fma", "--no-picture", "-o", str(path)]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment, text=True)
    deadline = time.monotonic() + 60
    while sum(words["ceiling"] == "fp32.fma" for words in machine.runs()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert_no_leftovers(path.parent)


# list, theory, build


def test_list_says_where_ceilings_apply(run: Command, machine: Machine) -> None:
    outcome = run("bench", "list", "--runner", machine.program)
    assert outcome.code == 0
    rows = {line.split()[0]: line for line in outcome.out.splitlines()}
    assert rows["fp64.fma"].endswith("-")  # this program does not say which GPUs it is for
    assert "unproven on hardware" in rows["tensor.int8.tcgen05"]
    assert "8.9, 12.0" in rows["tensor.fp8.mma"]
    listed = {
        row["ceiling"]: row
        for row in assert_fits("bench-list", run("bench", "list", "--runner", machine.program, "--json").out)
    }
    assert listed["tensor.fp8.mma"]["applies to"] == ["8.9", "12.0"]
    assert listed["tensor.fp8.mma"]["emulated on"] == ["9.0"]
    assert listed["fp64.fma"]["applies to"] == ["all"]
    assert "dram.triad" not in listed  # this program has no kernel for it
    elsewhere = json.loads(run("bench", "list", "--runner", machine.program, "--arch", "7.0", "--json").out)
    assert "fp64.fma" in [row["ceiling"] for row in elsewhere]
    assert "tensor.fp8.mma" not in [row["ceiling"] for row in elsewhere]  # neither made nor emulated there
    one = json.loads(run("bench", "list", "--runner", machine.program, "--device", "0", "--json").out)
    here = {row["ceiling"]: row for row in one}
    assert here["fp64.fma"]["applies to"] == ["9.0"]
    assert here["tensor.fp8.mma"]["applies to"] == []


def test_list_without_a_program(run: Command, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert_refused(run("bench", "list"), "an NVIDIA GPU")
    missing = machine.folder / "nvcc"
    assert_refused(run("bench", "list", "--arch", "9.0", "--nvcc", missing), missing)
    assert machine.runs() == []


def test_theory_needs_nothing(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    outcome = run("bench", "theory", "--gpu", "h200")
    assert outcome.code == 0
    row = next(line for line in outcome.out.splitlines() if line.startswith("H200")).split()
    assert row[-2:] == ["4800", "4917"]
    assert "H200 data sheet" in outcome.out
    assert "B200" in run("bench", "theory").out
    facts = json.loads(run("bench", "theory", "--gpu", "h200", "--json").out)[0]
    assert facts["peaks"]["fp64.fma"] == pytest.approx(33.5e12, rel=2e-3)
    assert_refused(run("bench", "theory", "--gpu", "voodoo"), "voodoo", 2)


def test_build_prints_the_path_of_the_program(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ncu_roofline.bench import build as build_module

    toolkit = Toolkit(tmp_path)
    monkeypatch.setattr(build_module, "pack_folder", lambda _name: toolkit.folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(toolkit.cache))
    outcome = run("bench", "build", "--arch", "8.0,9.0", "--nvcc", toolkit.nvcc)
    assert outcome.code == 0, outcome.err
    assert Path(outcome.out.strip()).read_text() == "program"
    assert "built with nvcc 13.0.88 for sm_80,sm_90a" in outcome.err
    assert "built before" in run("bench", "build", "--arch", "8.0,9.0", "--nvcc", toolkit.nvcc).err


def test_the_bar_shows_the_ceiling_and_its_value(capsys: pytest.CaptureFixture[str]) -> None:
    with Bar("NVIDIA H200", shown=True) as bar:
        bar.start(3)
        bar.begin("fp64.fma")
        bar.step("fp64.fma", Record(kind("fp64.fma"), "a", values=[33e12]))
        bar.begin("dram.read")
        bar.step("dram.read", Record(kind("dram.read"), "a", failure="it hangs"))
        bar.step("l1.read", None)
    shown = capsys.readouterr().err
    assert "NVIDIA H200" in shown
    assert "dram.read ..." in shown
    with Bar("", shown=False) as bar:
        bar.start(1)
        bar.begin("x")
        bar.step("x", None)
    assert capsys.readouterr().err == ""


def test_help_names_all_actions(run: Command) -> None:
    text = run("bench", "--help").out
    assert all(action in text for action in ("run", "build", "list", "theory", "merge", "verify"))


@pytest.mark.parametrize("words", [("--trials", "0"), ("--sessions", "x"), ("--budget", "-1"), ("--budget", "nan")])
def test_numbers_that_are_none(run: Command, words: tuple[str, str]) -> None:
    assert run("bench", "run", *words).code == 2
