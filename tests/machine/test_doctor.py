"""`doctor`: every line in its states."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from ncu_roofline.plugin.machine import doctor
from ncu_roofline.plugin.machine.doctor import ABSENT, OK, PROBLEM, Line, examine
from ncu_roofline.plugin.machine.install import MANIFEST
from ncu_roofline.plugin.machine.machine import Machine
from tests.cli.command import Command
from tests.machine.fakes import H100, fake_ncu, fake_nvcc, fake_smi, program, with_driver
from tests.schemas import assert_fits

CEILINGS = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo" / "gpp-v100-ceilings.json"


def lines(machine: Machine, topic: str) -> list[Line]:
    return [line for line in examine(machine) if line.topic == topic]


def line(machine: Machine, topic: str) -> Line:
    found = lines(machine, topic)
    assert len(found) == 1, found
    return found[0]


def test_nothing_here_is_no_problem(machine: Machine, run: Command) -> None:
    outcome = run("doctor")
    assert outcome.code == 0
    assert {one.status for one in examine(machine)} == {OK, ABSENT}
    assert "reports can be read and rendered here" in outcome.out
    topics = {one.topic for one in examine(machine) if one.status == ABSENT}
    assert topics == {"GPU", "driver", "nvcc", "ncu"}


def test_everything_here(machine: Machine, bin_folder: Path, run: Command) -> None:
    with_driver(machine)
    fake_ncu(bin_folder)
    fake_nvcc(bin_folder)
    fake_smi(bin_folder, [H100])
    run("install", "--no-bench")
    outcome = run("doctor", "--json")
    assert outcome.code == 0
    rows = assert_fits("doctor", outcome.out)
    assert [row["topic"] for row in rows] == [
        "GPU", "driver", "counters", "nvcc", "ncu", "sections", "ceilings", "Python",
    ]  # fmt: skip
    assert [row["status"] for row in rows] == [OK] * 6 + [ABSENT, OK]
    texts = {row["topic"]: row["text"] for row in rows}
    assert texts["GPU"] == f"0: NVIDIA H100 80GB HBM3, compute capability 9.0, {H100['uuid']}"
    assert texts["nvcc"].startswith("12.4.131, ")
    assert texts["ncu"] == f"2024.2.0.0, {bin_folder / 'ncu'} (PATH)"
    assert "theoretical roofs" in texts["sections"]


def test_every_line_that_is_not_ok_says_what_to_do(machine: Machine) -> None:
    assert all(one.advice.endswith(".") for one in examine(machine) if one.status != OK)


@pytest.mark.parametrize(
    ("admin_only", "capabilities", "status"),
    [("0", "0000000000000000", OK), ("1", "0000000000000000", PROBLEM), ("1", "000001ffffffffff", OK), ("1", "", PROBLEM)],
)
def test_counter_permission(machine: Machine, admin_only: str, capabilities: str, status: str) -> None:
    with_driver(machine, admin_only)
    folder = machine.path("/proc/self")
    folder.mkdir()
    (folder / "status").write_text(f"Name:\tx\nCapEff:\t{capabilities}\n")
    found = line(machine, "counters")
    assert found.status == status
    assert ("NVreg_RestrictProfilingToAdminUsers=0" in found.advice) == (status == PROBLEM)


def test_driver_that_says_nothing_about_permission(machine: Machine) -> None:
    with_driver(machine).path("/proc/driver/nvidia/params").unlink()
    assert line(machine, "counters").status == OK


def test_driver_does_not_answer(machine: Machine, bin_folder: Path, run: Command) -> None:
    with_driver(machine)
    program(
        bin_folder / "nvidia-smi", "#!/bin/sh\necho 'Failed to initialize NVML: Driver/library version mismatch'\nexit 18\n"
    )
    found = line(machine, "GPU")
    assert found.status == PROBLEM
    assert "version mismatch" in found.text
    outcome = run("doctor")
    assert outcome.code == 1
    assert "1 problem;" in outcome.out


def test_gpu_without_a_driver(machine: Machine) -> None:
    folder = machine.path("/sys/bus/pci/devices/0000:01:00.0")
    folder.mkdir(parents=True)
    (folder / "vendor").write_text("0x10de\n")
    (folder / "class").write_text("0x040300\n")
    assert line(machine, "GPU").status == ABSENT  # its sound device
    (folder / "class").write_text("0x030200\n")
    assert line(machine, "GPU").status == PROBLEM


def test_mig(machine: Machine, bin_folder: Path) -> None:
    fake_smi(bin_folder, [{**H100, "mig.mode.current": "Enabled"}, {**H100, "index": "1"}])
    assert "GPU 0 is split by MIG" in line(machine, "MIG").text


@pytest.mark.parametrize(
    ("release", "code", "status"), [("12.4", 0, OK), ("11.8", 0, OK), ("11.7", 0, PROBLEM), ("12.4", 1, PROBLEM)]
)
def test_compilers(machine: Machine, bin_folder: Path, release: str, code: int, status: str) -> None:
    fake_nvcc(bin_folder, release, code)
    assert line(machine, "nvcc").status == status


def test_compiler_of_cuda_home(machine: Machine, tmp_path: Path) -> None:
    fake_nvcc(tmp_path / "cuda" / "bin")
    machine.environ["CUDA_HOME"] = str(tmp_path / "cuda")  # type: ignore[index]
    assert line(machine, "nvcc").status == OK


def test_ncus(machine: Machine, bin_folder: Path, tmp_path: Path) -> None:
    program(bin_folder / "ncu", "#!/bin/sh\nexit 5\n")
    fake_ncu(tmp_path / "root" / "opt" / "nvidia" / "nsight-compute" / "2019.5.0", "2019.5.0.0")
    assert [one.status for one in lines(machine, "ncu")] == [PROBLEM, ABSENT]


def test_sections(machine: Machine, bin_folder: Path, run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.home
    fake_ncu(bin_folder)
    assert line(machine, "sections").status == ABSENT
    run("install", "--ceilings", CEILINGS)
    assert "roofs of" in line(machine, "sections").text
    folder = machine.home / "Documents" / "NVIDIA Nsight Compute" / "2024.2.0" / "Sections"
    with monkeypatch.context() as patch:
        patch.setattr(doctor, "__version__", "99.0")
        assert "for version 99.0" in line(machine, "sections").advice
    (folder / "RooflineOverview.section").unlink()
    assert "RooflineOverview.section is missing" in line(machine, "sections").text
    (folder / MANIFEST).write_text("{")
    assert line(machine, "sections").status == PROBLEM
    machine.environ["NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT"] = "1"  # type: ignore[index]
    assert "reads the sections of its installation" in lines(machine, "sections")[0].text


def test_sections_without_an_ncu(machine: Machine, bin_folder: Path, run: Command, tmp_path: Path) -> None:
    """Ours, where, and their state: ncu may be in a module that is not loaded, and ncu-ui needs none."""
    ncu = fake_ncu(bin_folder)
    run("install", "--ceilings", CEILINGS)
    run("install", "--dest", tmp_path / "pack")
    ncu.unlink()
    assert line(machine, "ncu").status == ABSENT
    first, second = sorted(lines(machine, "sections"), key=lambda one: one.text)
    assert first.text.startswith("2024.2.0: ")
    assert (first.status, "roofs of" in first.text, str(machine.documents) in first.text) == (OK, True, True)
    assert second.text.startswith(f"elsewhere: {tmp_path / 'pack'}, ")
    (tmp_path / "pack" / "RooflineOverview.section").unlink()
    assert run("doctor").code == 1


def test_ceilings(machine: Machine, bin_folder: Path, run: Command, tmp_path: Path) -> None:
    assert lines(machine, "ceilings") == []
    document = json.loads(CEILINGS.read_text())
    document["device"] |= {"name": H100["name"], "uuid": H100["uuid"], "cc": "9.0"}
    document["host"]["time_utc"] = "2026-01-31"
    (tmp_path / "c.json").write_text(json.dumps(document))
    assert run("install", "--dest", tmp_path / "pack", "--ceilings", tmp_path / "c.json").code == 0
    fake_smi(bin_folder, [H100])
    assert line(machine, "ceilings").text.endswith(", of 2026-01-31")
    os.unlink(bin_folder / "nvidia-smi")
    assert "another machine's NVIDIA H100" in line(machine, "ceilings").text


def test_python_packages(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "pandas" in line(machine, "Python").text
    monkeypatch.setitem(doctor._PACKAGES, "no_such_package", "no-such-package")
    found = line(machine, "Python")
    assert (found.status, found.text) == (PROBLEM, "no-such-package missing")
    assert found.advice == "Run `pip install no-such-package`."


@pytest.mark.parametrize("version", [(3, 10), (3, 13)])
def test_zstd_is_a_package_up_to_python_3_13(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, version: tuple[int, int]
) -> None:
    """Without it no .ncu-repz can be read."""
    monkeypatch.setattr(doctor, "sys", SimpleNamespace(version_info=version))
    monkeypatch.setattr(doctor, "find_spec", lambda name: None if name == "backports.zstd" else object())
    found = line(machine, "Python")
    assert (found.status, found.text) == (PROBLEM, "backports.zstd missing")
    assert found.advice == "Run `pip install backports.zstd`."
