"""Ranks under real MPI launchers, where they are installed: each gets a number of its own on this host."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

ASK = "from ncu_roofline.bench.device import local_rank; print(local_rank())"
LAUNCHERS = {"mpirun.openmpi": ["--oversubscribe"], "mpirun.mpich": []}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_each_rank_has_its_own_place(launcher: str) -> None:
    if not shutil.which(launcher):
        pytest.skip(f"no {launcher} on this machine: ranks are proven with made-up environments only")
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    words = [launcher, "-n", "3", *LAUNCHERS[launcher], sys.executable, "-c", ASK]
    done = subprocess.run(words, env={**os.environ, **root}, capture_output=True, text=True, timeout=120, check=True)
    assert sorted(done.stdout.split()) == ["0", "1", "2"]
