"""Finding programs and folders, on every system."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import matching
from ncu_roofline.plugin.machine.machine import (
    Gpu,
    Machine,
    Ncu,
    choose,
    expected_folder,
    find_gpus,
    find_ncus,
    parse_listing,
    sections_folder,
    this_machine,
)
from tests.machine.fakes import H100, bare_machine, fake_ncu, fake_smi, program

NCU = Ncu(Path("ncu"), "2024.2.1.0", "")


def set_env(machine: Machine, **values: str) -> None:
    machine.environ.update(values)  # type: ignore[attr-defined]


def test_every_place(machine: Machine, bin_folder: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    places = {
        "PATH": bin_folder,
        "CUDA_HOME": tmp_path / "cuda" / "bin",
        "NVHPC_ROOT": tmp_path / "hpc" / "profilers" / "Nsight_Compute",
        "installed": root / "opt" / "nvidia" / "nsight-compute" / "2024.1.1",
    }
    for number, folder in enumerate(places.values()):
        fake_ncu(folder, f"2023.{number + 1}.0.0")
    fake_ncu(root / "usr" / "local" / "cuda-12.4" / "bin", "2024.1.0.0")
    (root / "usr" / "local" / "cuda").symlink_to("cuda-12.4")
    set_env(machine, CUDA_HOME=str(tmp_path / "cuda"), NVHPC_ROOT=str(tmp_path / "hpc"))
    found = find_ncus(machine)
    assert [one.found for one in found] == ["PATH", "CUDA_HOME", "NVHPC_ROOT", "installed", "installed"]
    assert not [one for one in found if one.problem]


def test_one_program_under_two_names_is_one(machine: Machine, bin_folder: Path, tmp_path: Path) -> None:
    real = fake_ncu(tmp_path / "root" / "opt" / "nvidia" / "nsight-compute" / "2024.2.0")
    (bin_folder / "ncu").symlink_to(real)
    assert [one.path for one in find_ncus(machine)] == [bin_folder / "ncu"]


@pytest.mark.parametrize("given", ["{bin}/ncu", "{bin}", "ncu"])
def test_given(given: str, machine: Machine, bin_folder: Path) -> None:
    fake_ncu(bin_folder)
    (found,) = find_ncus(machine, given.format(bin=bin_folder))
    assert (found.path, found.version, found.problem) == (bin_folder / "ncu", "2024.2.0.0", "")


def test_given_that_is_not_there(machine: Machine) -> None:
    (found,) = find_ncus(machine, "/no/such/ncu")
    assert found.problem == "No such file or directory"


def test_folders_by_system(tmp_path: Path) -> None:
    home = tmp_path / "home"
    linux = Machine({"HOME": str(home)}, "linux")
    assert expected_folder(linux, NCU) == home / "Documents" / "NVIDIA Nsight Compute" / "2024.2.1" / "Sections"
    assert linux.data == home / ".local" / "share" / "ncu-roofline"
    assert Machine({"HOME": str(home), "XDG_DATA_HOME": "/data"}, "linux").data == Path("/data/ncu-roofline")
    mac = Machine({"HOME": str(home)}, "darwin")
    assert expected_folder(mac, NCU) == expected_folder(linux, NCU)
    assert mac.data == home / "Library" / "Application Support" / "ncu-roofline"
    windows = Machine({"USERPROFILE": str(home), "LOCALAPPDATA": str(home / "L"), "HOME": "/not/this"}, "windows")
    assert expected_folder(windows, NCU) == expected_folder(linux, NCU)
    assert windows.data == home / "L" / "ncu-roofline"
    nobody = Machine({}, "linux")
    assert expected_folder(nobody, NCU) is None
    assert nobody.data.name == "ncu-roofline"


def test_programs_of_windows(tmp_path: Path) -> None:
    folder = tmp_path / "NVIDIA Corporation" / "Nsight Compute 2024.2.0"
    program(folder / "ncu.bat", "#!/bin/sh\necho 'Version 2024.2.0.0 (build 1)'\n")
    machine = Machine({"PROGRAMFILES": str(tmp_path), "PATH": ""}, "windows", tmp_path / "root")
    assert [(one.path, one.version) for one in find_ncus(machine)] == [(folder / "ncu.bat", "2024.2.0.0")]


@pytest.mark.parametrize(
    ("platform", "system"), [("win32", "windows"), ("darwin", "darwin"), ("linux", "linux"), ("freebsd14", "linux")]
)
def test_this_machine(platform: str, system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert this_machine().system == system


def test_sections_elsewhere_are_believed(machine: Machine, bin_folder: Path) -> None:
    ncu = Ncu(fake_ncu(bin_folder), "2024.2.0.0", "PATH")
    assert sections_folder(machine, ncu) == expected_folder(machine, ncu)
    set_env(machine, NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT="1")
    assert sections_folder(machine, ncu) == bin_folder / "sections"


def test_listing() -> None:
    text = (
        '==WARNING== hello\n"Identifier","Display Name","Enabled","Filename"\n"A","a, ""b""","no","/x/A.section"\n\n'
        '"Filename","Error"\n"/x/B.section","Error: Line=2 Column=0 has no field named "bad".\n"\n'
    )
    listing = parse_listing(text, "more")
    assert listing.entries == (("A", "/x/A.section"),)
    assert listing.errors == {"/x/B.section": 'Line=2 Column=0 has no field named "bad".'}
    assert listing.messages == "==WARNING== hello\nmore"
    assert parse_listing("").entries == ()


def test_gpus_of_an_old_driver(machine: Machine, bin_folder: Path) -> None:
    fake_smi(bin_folder, [H100], ["index", "name", "uuid", "driver_version"])
    (gpu,), reason = find_gpus(machine)
    assert (gpu.name, gpu.compute_capability, reason) == (H100["name"], None, "")


def test_values_that_a_gpu_does_not_have(machine: Machine, bin_folder: Path) -> None:
    fake_smi(bin_folder, [{**H100, "mig.mode.current": "[N/A]", "uuid": "[Not Supported]", "compute_cap": "N/A"}])
    (gpu,), _ = find_gpus(machine)
    assert (gpu.mig, gpu.uuid, gpu.compute_capability) == (False, "", None)


def test_no_gpus(machine: Machine, bin_folder: Path) -> None:
    assert find_gpus(machine) == ([], "there is no nvidia-smi on the PATH")
    fake_smi(bin_folder, [])
    assert find_gpus(machine) == ([], "nvidia-smi lists none")


def test_choosing() -> None:
    gpus = [Gpu(0, "A", "GPU-aaaa", ""), Gpu(1, "B", "GPU-aabb", "")]
    assert choose(gpus, "") == gpus[0]
    assert choose(gpus, "1") == choose(gpus, "GPU-aabb") == choose(gpus, "GPU-aab") == gpus[1]
    assert choose([], "") is None
    with pytest.raises(RooflineError, match="several"):
        choose(gpus, "GPU-aa")
    with pytest.raises(RooflineError, match=r"0 \(A, GPU-aaaa\)"):
        choose(gpus, "2")


def test_machine_needs_no_home(tmp_path: Path) -> None:
    machine = bare_machine(tmp_path)
    set_env(machine, HOME="", TMPDIR=str(tmp_path))
    assert machine.data == tmp_path / ".local" / "share" / "ncu-roofline"


def test_folders_that_can_t_be_looked_into_are_passed_over(machine: Machine, tmp_path: Path) -> None:
    """A name that is too long stands for them: whoever runs the tests may be allowed to read everything."""
    odd = tmp_path / ("x" * 300)
    set_env(machine, PATH=str(odd), HOME=str(odd), CUDA_HOME=str(odd))
    assert [ncu for ncu in find_ncus(machine) if ncu.path.is_relative_to(odd)] == []
    assert find_ncus(machine, str(odd / "ncu"))[0].problem
    assert matching(odd, "*.json") == []
