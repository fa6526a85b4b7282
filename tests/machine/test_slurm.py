"""The ncu command without an ncu, and as a job of Slurm: both are run here, with stand-ins for srun and ncu."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tests.cli.command import Command, Outcome, assert_no_leftovers, assert_refused

SRUN = """#!/bin/bash
for SLURM_PROCID in 0 1 2; do export SLURM_PROCID; "$@"; done
"""
WRITING = """#!{python}
import json, os, sys
with open("calls", "a") as stream:
    stream.write(json.dumps([os.path.basename(sys.argv[0]), os.environ.get("SLURM_PROCID", ""), *sys.argv[1:]]) + "\\n")
"""
APPLICATION = ["./my app", "it's", "$HOME", "a  b", "*", "\33[31m\nit's \\ \u202eé", "é"]


def planned(run: Command, *words: object) -> Outcome:
    outcome = run("profile", *words)
    assert outcome.code == 0, outcome
    assert_no_leftovers(Path())
    return outcome


def carried_out(line: str, folder: Path) -> list[list[str]]:
    """What a line calls, with stand-ins for all that is not of the shell."""
    programs = folder / "programs"
    programs.mkdir()
    for path, text in [(programs / "srun", SRUN)] + [
        (path, WRITING.format(python=sys.executable)) for path in (programs / "ncu", Path("my app"))
    ]:
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["bash", "-c", line], check=True, timeout=60, env=environment)
    return [json.loads(line) for line in Path("calls").read_text(encoding="utf-8").splitlines()]


def test_without_an_ncu_the_release_is_assumed_aloud(run: Command) -> None:
    outcome = planned(run, "--dry-run", "--", "./app")
    assert shlex.split(outcome.out)[0] == "ncu"
    assert outcome.err.startswith("No ncu works here: the command is for Nsight Compute 20")
    assert "--ncu" in outcome.err


def test_the_release_may_be_named(run: Command) -> None:
    outcome = planned(run, "--dry-run", "--ncu", "2023.2", "--", "./app")
    assert (shlex.split(outcome.out)[0], outcome.err) == ("ncu", "")
    assert_refused(run("profile", "--dry-run", "--ncu", "2023.2", "--clock-control", "boost", "--", "./app"), "boost", code=2)
    assert (
        "--clock-control boost" in planned(run, "--dry-run", "--ncu", "2025.4", "--clock-control", "boost", "--", "./app").out
    )
    assert_refused(run("profile", "--dry-run", "--ncu", "2019.5", "--", "./app"), "2019.5")


def test_a_run_needs_an_ncu(run: Command) -> None:
    assert_refused(run("profile", "--", "./app"), "ncu")
    assert_refused(run("profile", "--ncu", "2023.2", "--", "./app"), "2023.2")


def test_every_task_writes_a_report(run: Command, tmp_path: Path) -> None:
    line = planned(run, "--scheduler", "srun", "-o", "50% done", "--", *APPLICATION).out
    assert len(line.splitlines()) == 1
    called = carried_out(line, tmp_path)
    assert [words[:2] for words in called] == [["ncu", "0"], ["ncu", "1"], ["ncu", "2"]]
    for words in called:
        assert words[words.index("-o") + 1] == "50%% done.rank%q{SLURM_PROCID}"
        assert words[-len(APPLICATION) :] == APPLICATION


def test_one_task_alone(run: Command, tmp_path: Path) -> None:
    line = planned(run, "--scheduler", "srun", "--only-rank", 1, "-o", "my run", "--", *APPLICATION).out
    assert line.replace("\n", "").isprintable()
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", "-s", "bash", "-e", "SC2016", "-"], input=line, text=True, check=True, timeout=60)
    called = carried_out(line, tmp_path)
    assert [words[:2] for words in called] == [["my app", "0"], ["ncu", "1"], ["my app", "2"]]
    assert called[1][called[1].index("-o") + 1] == "my run.rank1"
    assert called[1][-len(APPLICATION) :] == APPLICATION
    assert called[0][2:] == called[2][2:] == APPLICATION[1:]


def test_compressed_reports(run: Command) -> None:
    line = planned(run, "--scheduler", "srun", "--ncu", "2025.4", "-o", "x.ncu-repz", "--", "./app").out
    assert "x.rank%q{SLURM_PROCID}.ncu-repz" in line


def test_a_rank_of_no_job(run: Command) -> None:
    assert_refused(run("profile", "--only-rank", "1", "--", "./app"), "1", code=2)
    assert run("profile", "--scheduler", "sbatch", "--", "./app").code == 2
