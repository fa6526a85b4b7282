"""`--ceilings auto` of `install` and `profile`, which go by the GPU of the machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ncu_roofline.formats.ceilings import NOT_COMPARABLE
from ncu_roofline.plugin.machine.machine import Machine
from tests.cli.command import Command
from tests.cli.test_ceilings import ceiling, document
from tests.machine.fakes import H100, fake_ncu, fake_smi, program, with_driver

PCIE = {**H100, "name": "NVIDIA H100 PCIe"}


@pytest.fixture
def ready(machine: Machine, bin_folder: Path) -> Machine:
    """A machine with ncu, driver, and a GPU of which the package has published ceilings."""
    fake_ncu(bin_folder)
    fake_smi(bin_folder, [PCIE])
    return with_driver(machine)


def own(folder: Path) -> Path:
    device = {"name": PCIE["name"], "uuid": "GPU-another", "cc": "9.0"}
    path = folder / "own.json"
    path.write_text(json.dumps(document(ceiling("dram.read", 1.9e12), device=device)))
    return path


@pytest.mark.usefixtures("ready")
def test_install_with_what_comes_with_the_package(machine: Machine, run: Command, tmp_path: Path) -> None:
    outcome = run("install", "--dest", tmp_path / "pack", "--ceilings", "auto")
    assert outcome.code == 0, outcome
    assert outcome.out.startswith(f"Published roofs: h100-pcie.json, NVIDIA H100 PCIe, {NOT_COMPARABLE}\n")
    text = (tmp_path / "pack" / "HierarchicalDoubleRooflineChart.section").read_text()
    assert f"peak, {NOT_COMPARABLE}: NVIDIA H100 PCIe" in text
    assert "measured on" not in text
    assert not (machine.data / "ceilings").exists()  # it is no measurement of this GPU


@pytest.mark.usefixtures("ready")
def test_install_with_the_users_own(run: Command, tmp_path: Path) -> None:
    """Kept for another GPU of the same model."""
    assert run("install", "--dest", tmp_path / "pack", "--ceilings", own(tmp_path)).code == 0
    outcome = run("install", "--dest", tmp_path / "pack", "--ceilings", "auto")
    assert outcome.out.startswith("Measured roofs: H100-PCIe-another.json, NVIDIA H100 PCIe, 2025-03-04\n")


@pytest.mark.usefixtures("ready")
def test_install_where_there_is_none(run: Command, tmp_path: Path, bin_folder: Path) -> None:
    fake_smi(bin_folder, [{**H100, "name": "NVIDIA H100 NVL"}])
    outcome = run("install", "--dest", tmp_path / "pack", "--ceilings", "auto")
    assert (outcome.code, outcome.out.splitlines()[0]) == (0, "Theoretical roofs: there are no ceilings of NVIDIA H100 NVL")


@pytest.mark.usefixtures("ready")
def test_profile(run: Command, tmp_path: Path, bin_folder: Path) -> None:
    app = program(tmp_path / "app", "#!/bin/sh\n")
    outcome = run("profile", "--dry-run", "--ceilings", "auto", "--", app)
    assert f"ceilings of NVIDIA H100 PCIe: h100-pcie.json, NVIDIA H100 PCIe, {NOT_COMPARABLE}" in outcome.err
    assert "--clock-control none" in outcome.out
    (bin_folder / "nvidia-smi").unlink()
    assert "--clock-control none" not in run("profile", "--dry-run", "--ceilings", "auto", "--", app).out
