"""Installing for, and profiling with, real releases of Nsight Compute, each in a home folder of its own."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ncu_roofline.base.files import HELPER
from ncu_roofline.plugin.machine.install import MANIFEST
from ncu_roofline.plugin.machine.machine import Machine, Ncu, ask_version, expected_folder, list_files
from tests.cli.command import Command, assert_no_leftovers
from tests.machine.fakes import REPORT, program, set_env, tree, with_driver

pytestmark = pytest.mark.ncu
RELEASES = ("2024.2", *(pytest.param(one, marks=pytest.mark.exhaustive) for one in ("2020.3", "2022.3", "2024.1")))


@pytest.fixture(params=RELEASES)
def ncu(request: pytest.FixtureRequest, ncu_releases: dict[str, Path], machine: Machine) -> Ncu:
    """A real ncu, asked."""
    if request.param not in ncu_releases:
        pytest.skip(f"Nsight Compute {request.param} is not here")
    return ask_version(machine, ncu_releases[request.param], "test")


def test_installs_where_it_looks_and_is_removed_without_trace(ncu: Ncu, machine: Machine, run: Command, tmp_path: Path) -> None:
    assert machine.home
    list_files(machine, ncu, "sections")  # what its first start leaves in the home folder
    before = tree(machine.home)
    outcome = run("install", "--ncu", ncu.path)
    assert outcome.code == 0, outcome
    folder = expected_folder(machine, ncu)
    assert folder
    files = json.loads((folder / MANIFEST).read_bytes())["files"]
    listed = (list_files(machine, ncu, what).entries for what in ("sections", "rules"))
    sections, rules = ({Path(file).name: name for name, file in entries} for entries in listed)
    assert sections["HierarchicalDoubleRooflineChart.section"] == "HierarchicalDoubleRooflineChart"
    assert {"LaunchStats", "HierarchicalSingleRooflineChart"} <= set(sections.values())  # stock ones, too
    assert [name for name in files if name.startswith(HELPER)] == sorted({*files} - {*sections} - {*rules})
    installed = tree(machine.home)
    assert "nothing to do" in run("install", "--ncu", ncu.path).out
    assert tree(machine.home) == installed
    assert run("uninstall").code == 0
    assert tree(machine.home) == before
    own = tmp_path / "own" / "pack"
    assert f"--section-folder {own}" in run("install", "--ncu", ncu.path, "--dest", own).out
    assert "HierarchicalTensorRooflineChart" in {name for name, _ in list_files(machine, ncu, "sections", own).entries}
    assert run("uninstall", "--dest", own).code == 0
    assert not own.exists()
    if ncu.release >= (2021, 2):  # before, ncu does not know the variable
        set_env(machine, NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT="1")
        assert f"{(ncu.path.parents[2] / 'sections')}" in run("install", "--ncu", ncu.path, "--dry-run").out


def test_profiling_without_a_driver(ncu: Ncu, machine: Machine, run: Command, tmp_path: Path) -> None:
    """Also where there seems to be one; an old report stays as it was."""
    app = program(tmp_path / "app", "#!/bin/sh\n")
    outcome = run("profile", "--ncu", ncu.path, "--", app)
    assert (outcome.code, "CUDA driver" in outcome.err.splitlines()[-1]) == (1, True)
    assert_no_leftovers(Path())
    with_driver(machine)
    Path("mine.ncu-rep").write_bytes(REPORT.read_bytes())
    os.utime("mine.ncu-rep", (1, 1))
    outcome = run("profile", "--ncu", ncu.path, "-o", "mine", "--force", "--", app)
    reason = "no kernel was profiled" if ncu.release == (2020, 3) else "the application failed with exit code"
    assert (outcome.code, reason in outcome.err.splitlines()[-1], "Wrote" in outcome.err) == (1, True, False)
    outcome = run("profile", "--ncu", ncu.path, "-o", "mine", "--force", "--", "./nope")
    assert (outcome.code, "the application can't be started" in outcome.err.splitlines()[-1]) == (1, True)
    assert Path("mine.ncu-rep").stat().st_mtime == 1
    assert_no_leftovers(Path(), "mine.ncu-rep")
