"""Installing for real releases of Nsight Compute, each in a home folder of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ncu_roofline.base.files import HELPER
from ncu_roofline.plugin.machine.install import MANIFEST
from ncu_roofline.plugin.machine.machine import Machine, Ncu, ask_version, list_files
from tests.cli.command import Command
from tests.machine.fakes import tree

pytestmark = [pytest.mark.ncu, pytest.mark.sampled("2024.2")]
RELEASES = ("2020.3", "2022.3", "2024.1", "2024.2")


@pytest.fixture(params=RELEASES)
def ncu(request: pytest.FixtureRequest, ncu_releases: dict[str, Path], machine: Machine) -> Ncu:
    """A real ncu, asked."""
    if request.param not in ncu_releases:
        pytest.skip(f"Nsight Compute {request.param} is not here")
    return ask_version(machine, ncu_releases[request.param], "test")


def folder_of(machine: Machine, ncu: Ncu) -> Path:
    assert machine.home
    return machine.home / "Documents" / "NVIDIA Nsight Compute" / ncu.folder_name / "Sections"


def test_installs_where_it_looks_and_is_removed_without_trace(ncu: Ncu, machine: Machine, run: Command) -> None:
    assert machine.home
    list_files(machine, ncu, "sections")  # what its first start leaves in the home folder
    before = tree(machine.home)

    outcome = run("install", "--ncu", ncu.path)
    assert outcome.code == 0, outcome
    assert "Theoretical roofs: there is no nvidia-smi" in outcome.out
    folder = folder_of(machine, ncu)
    files = json.loads((folder / MANIFEST).read_bytes())["files"]
    assert "HierarchicalDoubleRooflineChart.section" in files
    assert any(name.endswith(".py") for name in files)
    sections = {Path(file).name: identifier for identifier, file in list_files(machine, ncu, "sections").entries}
    rules = {Path(file).name: identifier for identifier, file in list_files(machine, ncu, "rules").entries}
    assert sections["HierarchicalDoubleRooflineChart.section"] == "HierarchicalDoubleRooflineChart"
    assert [name for name in files if name.startswith(HELPER)] == sorted(set(files) - set(sections) - set(rules))

    assert run("uninstall").code == 0
    assert tree(machine.home) == before


@pytest.mark.exhaustive
def test_first_start_after_ours_still_has_stock_sections(ncu: Ncu, machine: Machine, run: Command) -> None:
    assert run("install", "--ncu", ncu.path).code == 0
    sections = {identifier for identifier, _ in list_files(machine, ncu, "sections").entries}
    assert {"LaunchStats", "HierarchicalSingleRooflineChart"} <= sections


def test_into_a_folder(ncu: Ncu, machine: Machine, run: Command, tmp_path: Path) -> None:
    assert machine.home
    outcome = run("install", "--ncu", ncu.path, "--dest", tmp_path / "own" / "pack")
    assert outcome.code == 0, outcome
    assert f"--section-folder {tmp_path / 'own' / 'pack'}" in outcome.out
    listed = list_files(machine, ncu, "sections", tmp_path / "own" / "pack").entries
    assert "HierarchicalTensorRooflineChart" in {identifier for identifier, _ in listed}
    assert run("uninstall", "--dest", tmp_path / "own" / "pack").code == 0
    assert not (tmp_path / "own" / "pack").exists()


@pytest.mark.exhaustive
def test_reinstalling_changes_nothing(ncu: Ncu, machine: Machine, run: Command) -> None:
    assert machine.home
    assert run("install", "--ncu", ncu.path).code == 0
    before = tree(machine.home)
    outcome = run("install", "--ncu", ncu.path)
    assert "nothing to do" in outcome.out
    assert tree(machine.home) == before


def test_installation_folder_where_deployment_is_off(
    ncu: Ncu, machine: Machine, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    if ncu.release < (2021, 2):
        pytest.skip("this release does not know the variable")
    assert machine.home
    monkeypatch.setitem(machine.environ, "NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT", "1")  # type: ignore[arg-type]
    outcome = run("install", "--ncu", ncu.path, "--dry-run")
    assert f"{(ncu.path.parents[2] / 'sections')}" in outcome.out
    assert tree(machine.home) == {}


@pytest.mark.exhaustive
def test_all_at_once(ncu_releases: dict[str, Path], machine: Machine, run: Command, bin_folder: Path) -> None:
    assert machine.home
    if len(ncu_releases) < 2:
        pytest.skip("one release only")
    paths = []
    for release, path in ncu_releases.items():
        (bin_folder / release).mkdir()
        (bin_folder / release / "ncu").symlink_to(path)
        paths.append(str(bin_folder / release))
    machine.environ["PATH"] = ":".join(paths)  # type: ignore[index]
    assert run("install").code == 0
    folders = list((machine.home / "Documents" / "NVIDIA Nsight Compute").glob("*/Sections"))
    assert len(folders) == len(ncu_releases)
    assert all((folder / MANIFEST).is_file() for folder in folders)
    assert run("uninstall").code == 0
    assert not list(machine.home.rglob(MANIFEST))
