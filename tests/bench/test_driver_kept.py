"""A whole `bench run` is kept among the user's data, where `--ceilings auto` and `install` find it; a partial one is not."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

import jsonschema
import pytest

import ncu_roofline
from ncu_roofline.bench import campaign as session_module
from ncu_roofline.bench import telemetry
from ncu_roofline.bench.device import LOCAL_RANKS, RANK_COUNTS
from ncu_roofline.bench.measuring import Timing
from ncu_roofline.plugin.machine.install import kept
from ncu_roofline.plugin.machine.machine import this_machine
from tests.bench.fakes import Machine, fake_nvml, make_machine
from tests.bench.scrubbing import scrubbed
from tests.cli.command import Command

WHOLE = ("--trials", "3", "--sessions", "1")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """The fake program and NVML, no launcher around, empty folders of the user."""
    for name in (*LOCAL_RANKS, *RANK_COUNTS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(telemetry, "load", fake_nvml)
    monkeypatch.setattr(session_module, "TIMING", Timing(time.monotonic, lambda _seconds: None))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return make_machine(tmp_path, monkeypatch.setenv)


def test_a_whole_run_is_kept(run: Command, machine: Machine, tmp_path: Path) -> None:
    outcome = run("bench", "run", "--runner", machine.program, *WHOLE, "-o", tmp_path / "x.json")
    assert outcome.code == 0, outcome.err
    assert "kept for --ceilings auto" in outcome.err
    (one,) = kept(this_machine())
    schema = json.loads((Path(ncu_roofline.__file__).parent / "data" / "ceilings.schema.json").read_text())
    for content in (measured := json.loads((tmp_path / "x.json").read_text()), scrubbed(measured)):
        jsonschema.validate(content, schema)
    assert (one.device, Path(one.path).read_bytes()) == ("NVIDIA H200", (tmp_path / "x.json").read_bytes())


@pytest.mark.parametrize("words", [("--quick",), ("--only", "fp64.fma"), ("--skip", "dram"), ("--data", "zeros")])
def test_a_part_is_not(run: Command, machine: Machine, tmp_path: Path, words: tuple[str, ...]) -> None:
    outcome = run("bench", "run", "--runner", machine.program, *WHOLE, *words, "-o", tmp_path / "x.json")
    assert outcome.code == 0, outcome.err
    assert kept(this_machine()) == []


def test_ranks_keep_nothing(run: Command, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_LOCALID", "0")
    monkeypatch.setenv("SLURM_NTASKS", "2")
    (tmp_path / "out").mkdir()
    assert run("bench", "run", "--runner", machine.program, *WHOLE, "-o", tmp_path / "out").code == 0
    assert kept(this_machine()) == []


def test_no_place_to_keep_it_is_told(run: Command, machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    outcome = run("bench", "run", "--runner", machine.program, *WHOLE, "-o", tmp_path / "x.json")
    assert outcome.code == 0
    assert "not kept for --ceilings auto: Cannot " in outcome.err
