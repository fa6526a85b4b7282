"""`ncu-roofline bench` from end to end around a played program, without GPU and nvcc: plays are sessions of a user there."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.bench import build, campaign, measure, telemetry
from ncu_roofline.bench.device import choose, local_rank, parse_device
from ncu_roofline.cli import outputs
from ncu_roofline.cli.outputs import Bar
from ncu_roofline.formats.ceilings import read_ceilings
from ncu_roofline.plugin.machine.install import kept
from ncu_roofline.plugin.machine.machine import this_machine
from tests.bench.fakes import H200, HERE, RATES, SECOND, Program, device, fake_nvml, scenario
from tests.bench.made import FILES
from tests.cli.command import Command
from tests.schemas import assert_fits
from tests.test_sessions import test_session as play


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("path", sorted(HERE.glob("*.play")), ids=lambda path: path.stem)
def test_play(path: Path, run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mig = (1, 1) if path.stem == "instances" else (0, 0)
    monkeypatch.setattr(telemetry, "load", lambda: fake_nvml(DeviceGetMigMode=mig))
    play(path, run, tmp_path, monkeypatch)


@pytest.mark.usefixtures("machine")
def test_documents_fit_their_schemas_and_the_picture_never_replaces_the_measurements(run: Command) -> None:
    FILES["runner"](Path("runner"))
    words = ("--runner", "runner", "--only", "fp64.fma", "--json", "-o", "x.json")
    assert assert_fits("ceilings", run("bench", "run", *words, "--no-picture").out)["device"]["name"] == "NVIDIA H200"
    rows = {row["ceiling"]: row for row in assert_fits("bench-list", run("bench", "list", "--runner", "runner", "--json").out)}
    assert (rows["tensor.fp8.mma"]["applies to"], rows["tensor.fp8.mma"]["emulated on"]) == (["8.9", "12.0"], ["9.0"])
    assert rows["fp64.fma"]["applies to"] == ["all"]
    Path("x.json").unlink()
    Path("x.json").symlink_to("x.svg")
    outcome = run("bench", "run", *words, "--force")
    assert (outcome.code, "the picture of the roofline would replace the measurements" in outcome.err) == (2, True)


@pytest.mark.parametrize("words", ["", "--quick", "--skip dram", "--data zeros", "ranks", "no place"])
def test_a_whole_run_is_kept(run: Command, machine: Program, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    """A part of one, what flatters and ranks are not; ranks write a file each and say nothing."""
    FILES["runner"](Path("runner"))
    Path("out").mkdir()
    machine.content, ranks, options = scenario(devices=[H200, SECOND]), words == "ranks", words.split() if "--" in words else []
    if ranks:
        monkeypatch.setenv("SLURM_NTASKS", "2")
        monkeypatch.setenv("SLURM_LOCALID", "1")
    if words == "no place":
        Path(os.environ["XDG_DATA_HOME"]).write_text("", encoding="utf-8")
    short = ("--trials", "3", "--sessions", "1", "--no-picture", "-o", "out")
    outcome = run("bench", "run", "--runner", "runner", *short, *options)
    assert outcome.code == 0, outcome.err
    (path,) = Path("out").iterdir()
    assert ((outcome.out == ""), read_ceilings(path).uuid) == (ranks, (SECOND if ranks else H200)["uuid"])
    assert ("not kept for --ceilings auto: Cannot " in outcome.err) == (words == "no place")
    assert [Path(one.path).read_bytes() for one in kept(this_machine())] == ([] if words else [path.read_bytes()])


def test_measure_for_other_commands(machine: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FILES["runner"](tmp_path / "runner")
    monkeypatch.setattr(build, "build", lambda nvcc="": build.describe(tmp_path / "runner"))  # noqa: ARG005
    assert set(read_ceilings(measure("0", True, tmp_path / "out.json")).by_id) == set(RATES)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = measure(H200["uuid"], quick=True)
    assert path.parent == tmp_path / "cache" / "ncu-roofline" / "ceilings"
    assert measure(quick=True) == path  # again: overwritten
    with campaign._alone(device()), pytest.raises(RooflineError, match=f"{H200['uuid']}: another .* is measuring it"):
        measure(quick=True)
    assert machine.contexts == 3
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "runner"))
    with pytest.raises(RooflineError, match="Set XDG_CACHE_HOME"):
        measure(quick=True)


def test_which_of_several_gpus() -> None:
    both = [device(), device(SECOND, 1)]
    for word in ("1", SECOND["uuid"], "GPU-2222", "22222222", "2222", SECOND["uuid"].upper(), "00000000:2b:00.0", " 1,1"):
        assert choose(both, word, None) == (both[1],), word
    for word in ("2", "GPU-3333", "GPU-", "x", ",", "", "222"):
        with pytest.raises(UsageError, match="Cannot use --device"):
            choose(both, word, None)
    assert choose(both, "all", 0) == tuple(both)
    assert [choose(both, "auto", rank)[0].index for rank in (None, 0, 1)] == [0, 0, 1]
    assert choose(both[:1], "auto", 3) == (both[0],)  # its launcher bound the rank to it
    with pytest.raises(RooflineError, match=r"rank 2 of this node has no GPU of its own, there are 2\. Start 2 ranks per node"):
        choose(both, "auto", 2)
    for value in (float("inf"), float("nan"), 10**400, "7", True, [], -1):
        assert parse_device({**H200, "sm_count": value, "sm_clock_max_mhz": value}).sm_count == 0
        with pytest.raises(ValueError, match="a device has no index"):
            parse_device({**H200, "index": value})


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ("", None),
        ("SLURM_LOCALID=0 SLURM_NTASKS=1", None),
        ("SLURM_LOCALID=3 SLURM_NTASKS=8", 3),
        ("OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_SIZE=2 SLURM_LOCALID=0 SLURM_NTASKS=1", 1),
        ("PMI_LOCAL_RANK=2", 2),
        ("MPI_LOCALRANKID=1 PMI_SIZE=4", 1),
        ("SLURM_LOCALID=none", None),
    ],
)
def test_local_ranks(environment: str, expected: int | None) -> None:
    assert local_rank(dict(one.split("=") for one in environment.split())) == expected


@pytest.mark.exhaustive
@pytest.mark.parametrize(("launcher", "words"), [("mpirun.openmpi", ["--oversubscribe"]), ("mpirun.mpich", [])])
def test_ranks_under_real_launchers(launcher: str, words: list[str]) -> None:
    if not shutil.which(launcher):
        pytest.skip(f"no {launcher} on this machine: ranks are proven with made-up environments only")
    ask = "from ncu_roofline.bench.device import local_rank; print(local_rank())"
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = [launcher, "-n", "3", *words, sys.executable, "-c", ask]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    assert sorted(done.stdout.split()) == ["0", "1", "2"]


def test_the_bar_and_lines_above_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def shown(title: str, bar_is_shown: bool) -> None:
        with Bar(title, shown=bar_is_shown) as bar:
            bar.start(3)
            bar.begin("fp64.fma")
            bar.step("fp64.fma", None)
            bar.line("fp64.fma\33[31m 33 TFLOP/s")
            bar.begin("dram.read")

    shown("", False)
    assert capsys.readouterr().err == "fp64.fma\ufffd[31m 33 TFLOP/s\n"
    stream: Any = io.StringIO()
    monkeypatch.setattr(outputs.sys, "stderr", stream)
    shown("NVIDIA H200", True)
    assert all(text in stream.getvalue() for text in ("NVIDIA H200", "1/3", "dram.read ...", "\ufffd[31m 33 TFLOP/s\n"))
