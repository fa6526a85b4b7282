"""`install` and `uninstall` with stand-ins for ncu."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.bench.campaign import Progress
from ncu_roofline.formats.ceilings import NOT_COMPARABLE
from ncu_roofline.plugin.machine.install import MANIFEST, SCHEMA, digest, recorded_folders
from ncu_roofline.plugin.machine.machine import Machine
from tests.cli.command import Command, assert_refused
from tests.cli.test_ceilings import ceiling, document
from tests.machine.fakes import CEILINGS, H100, PCIE, V100, fake_ncu, fake_nvcc, fake_smi, program, set_env, tree
from tests.schemas import assert_fits

STOCK = {"Stock.section", "StockRule.py"}


def sections(machine: Machine, version: str = "2024.2.0") -> Path:
    assert machine.home
    return machine.home / "Documents" / "NVIDIA Nsight Compute" / version / "Sections"


def test_install_and_uninstall(machine: Machine, run: Command, bin_folder: Path) -> None:
    assert machine.home
    assert_refused(run("install"), "sections and rules")
    assert run("uninstall").out == "Nothing is installed.\n"
    assert tree(machine.home) == {}
    fake_ncu(bin_folder)
    outcome = run("install", "--dry-run")
    assert (outcome.code, "would write" in outcome.out, tree(machine.home)) == (0, True, {})
    outcome = run("install")
    assert outcome.code == 0, outcome
    roofs = "Theoretical roofs: there is no nvidia-smi on the PATH"
    assert outcome.out.startswith(f"{roofs}\nFor Nsight Compute 2024.2.0.0: wrote ")
    assert "ncu --section HierarchicalDoubleRooflineChart -o report ./app" in outcome.out
    assert {"Stock.section", "HierarchicalDoubleRooflineChart.section", MANIFEST} <= set(os.listdir(sections(machine)))
    before = tree(machine.home)
    assert "nothing to do" in run("install").out
    assert "Would remove" in run("uninstall", "--dry-run").out
    assert tree(machine.home) == before
    file = sections(machine) / "RooflineOverview.section"
    file.write_text("tuned")
    assert f"Kept {file}: it was changed" in run("install").err
    outcome = run("uninstall")
    assert (outcome.code, f"Kept {file}: it was changed" in outcome.err, file.read_text()) == (0, True, "tuned")
    assert set(os.listdir(sections(machine))) == {*STOCK, file.name}
    assert {path.name for path in machine.home.iterdir()} == {"Documents"}


def test_into_a_folder(machine: Machine, run: Command, bin_folder: Path, tmp_path: Path) -> None:
    outcome = run("install", "--dest", tmp_path / "pack")
    assert outcome.code == 0, outcome
    assert "no ncu here to prove it with" in outcome.out
    assert f"ncu --section-folder {tmp_path / 'pack'} --section" in outcome.out
    assert_refused(run("uninstall", "--dest", tmp_path), tmp_path)
    (tmp_path / "file").write_bytes(b"")
    assert_refused(run("install", "--dest", tmp_path / "file" / "pack"), tmp_path / "file" / "pack")
    fake_ncu(bin_folder, "2020.3.1.0")
    fake_ncu(tmp_path / "root" / "opt" / "nvidia" / "nsight-compute" / "2024.2.0")
    (row,) = json.loads(run("install", "--dest", tmp_path / "all", "--json").out)["installed"]
    assert (row["ncu"], len(row["proven_with"])) == ("", 2)  # one that suits both releases
    set_env(machine, HOME="/dev/null/home")  # a folder is cleaned where the home can't be written
    outcome = run("uninstall", "--dest", tmp_path / "pack")
    assert (outcome.code, outcome.err, (tmp_path / "pack").exists()) == (0, "", False)
    for words in ((), ("--forget-ceilings",), ("--dry-run",)):
        outcome = run("uninstall", *words)
        assert (outcome.code, outcome.out, outcome.err) == (0, "Nothing is installed.\n", "")
    set_env(machine, HOME=str(tmp_path / "file"))
    outcome = run("install")
    assert (outcome.code, outcome.err.count("\n"), "Cannot " in outcome.err) == (1, 1, True)


def test_releases(machine: Machine, run: Command, bin_folder: Path, tmp_path: Path) -> None:
    fake_ncu(bin_folder, "2031.1.0.0")
    fake_ncu(tmp_path / "root" / "opt" / "nvidia" / "nsight-compute" / "2024.2.0", "2024.2.0.0")
    fake_ncu(tmp_path / "root" / "usr" / "local" / "cuda-12" / "bin")  # shares the folder
    outcome = run("install", "--json")
    assert outcome.code == 0, outcome
    assert "newer than this program" in outcome.err
    rows = assert_fits("install", outcome.out)["installed"]
    assert sorted((row["ncu"], len(row["proven_with"])) for row in rows) == [("2024.2.0.0", 1), ("2031.1.0.0", 1)]
    assert all((sections(machine, version) / MANIFEST).is_file() for version in ("2024.2.0", "2031.1.0"))
    removed = assert_fits("uninstall", run("uninstall", "--json").out)["folders"]
    assert [bool(row["removed"]) for row in removed] == [True, True]
    old = fake_ncu(tmp_path / "old", "2019.5.0.0")
    assert_refused(run("install", "--ncu", old), old)
    set_env(machine, NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT="1")
    assert run("install", "--ncu", bin_folder).code == 0
    assert (bin_folder / "sections" / MANIFEST).is_file()
    assert run("uninstall").code == 0
    assert set(os.listdir(bin_folder / "sections")) == STOCK


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("#!/bin/sh\necho 'error while loading shared libraries' >&2\nexit 127\n", "error while loading shared libraries"),
        ("#!/bin/sh\nexit 3\n", "it ended with exit code 3"),
        ("#!/bin/sh\necho 'Version: the newest'\n", "it does not say its version"),
        ("#!/no/such/interpreter\n", "No such file or directory"),
        ("\x7fELF nonsense", "Exec format error"),
        ("#!/bin/sh\nwhile :; do :; done\n", "did not answer"),
    ],
)
def test_broken_ncu(script: str, reason: str, run: Command, bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if reason == "did not answer":
        monkeypatch.setattr(Machine.run, "__defaults__", (0.2,))
    broken = program(bin_folder / "ncu", script)
    outcome = run("install", "--ncu", broken)
    assert_refused(outcome, broken)
    assert reason in outcome.err


def test_a_broken_ncu_is_left_out(machine: Machine, run: Command, bin_folder: Path, tmp_path: Path) -> None:
    broken = program(bin_folder / "ncu", "#!/bin/sh\nexit 3\n")
    other = tmp_path / "root" / "opt" / "nvidia" / "nsight-compute" / "2024.2.0"
    for code in (1, 0):
        outcome = run("install")
        assert (outcome.code, f"Left out {broken}: it ended with exit code 3" in outcome.err) == (code, True)
        fake_ncu(other) if code else None
    assert run("uninstall").code == 0
    broken.unlink()
    set_env(machine, FAKE_NCU="reject")  # our sections
    outcome = run("install")
    assert (outcome.code, 'has no field named "Y"' in outcome.err) == (1, True)
    assert set(os.listdir(sections(machine))) == STOCK


def test_ceilings_are_drawn_kept_and_used_again(machine: Machine, run: Command, bin_folder: Path, tmp_path: Path) -> None:
    ncu = fake_ncu(bin_folder)
    assert_refused(run("install", "--ceilings", ncu), ncu)
    outcome = run("install", "--ceilings", CEILINGS)
    assert outcome.out.startswith("Measured roofs: ")
    chart = (sections(machine) / "HierarchicalDoubleRooflineChart.section").read_text()
    assert "measured on Tesla V100" in chart
    (kept,) = (machine.data / "ceilings").glob("*.json")
    before, damaged = kept.read_bytes(), json.loads(CEILINGS.read_bytes())
    damaged["ceilings"][0]["theory"] = {"value": 1e9, "at_measured_clock": 1e9}
    (tmp_path / "bad.json").write_text(json.dumps(damaged))
    assert_refused(run("install", "--ceilings", tmp_path / "bad.json"), tmp_path / "bad.json")
    assert kept.read_bytes() == before
    fake_smi(bin_folder, [V100])
    outcome = run("install")
    assert "kept from before" in outcome.out
    assert "nothing to do" in outcome.out
    fake_smi(bin_folder, [H100])
    outcome = run("install", "--ceilings", CEILINGS)
    assert outcome.code == 0
    assert "The ceilings are those of Tesla V100-SXM2-16GB; the GPU here is NVIDIA H100 80GB HBM3" in outcome.err
    assert_refused(run("install", "--device", "7"), "7")
    assert f"Measured ceilings are kept in {machine.data / 'ceilings'}" in run("uninstall").err
    assert run("uninstall", "--forget-ceilings").code == 0
    assert not machine.data.exists()


def test_gpu_and_compiler_measure_once(run: Command, bin_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    measured = json.loads(CEILINGS.read_text())
    measured["device"] |= {"name": H100["name"], "uuid": H100["uuid"], "cc": "9.0"}
    calls: list[str] = []

    def measure(device: str, progress: Progress) -> Path:
        calls.append(device)
        if len(calls) == 1:
            raise RooflineError("Cannot find", "nvcc", "it is not on the PATH", "Install it.")
        progress.start(1)
        progress.begin("dram.read")
        progress.step("dram.read", None)
        path = tmp_path / "measured.json"
        path.write_text(json.dumps(measured))
        return path

    monkeypatch.setattr("ncu_roofline.bench.measure", measure)
    fake_ncu(bin_folder)
    fake_nvcc(bin_folder)
    fake_smi(bin_folder, [H100])
    assert run("install", "--no-bench").out.startswith("Theoretical roofs: NVIDIA H100 80GB HBM3 was not measured")
    first = "Theoretical roofs: Cannot find nvcc: it is not on the PATH. Install it."
    assert run("install").out.splitlines()[0] == first
    assert run("install").out.startswith("Measured roofs: ")
    assert "kept from before" in run("install").out
    assert calls == [H100["uuid"]] * 2


def test_auto_ceilings(machine: Machine, run: Command, bin_folder: Path, tmp_path: Path) -> None:
    """The user's own of the same model, else those that come with the package."""
    fake_ncu(bin_folder)
    fake_smi(bin_folder, [PCIE])
    auto = ("install", "--dest", tmp_path / "pack", "--ceilings", "auto")
    outcome = run(*auto)
    assert outcome.out.startswith(f"Published roofs: h100-pcie.json, NVIDIA H100 PCIe, {NOT_COMPARABLE}\n"), outcome
    text = (tmp_path / "pack" / "HierarchicalDoubleRooflineChart.section").read_text()
    assert (f"peak, {NOT_COMPARABLE}: NVIDIA H100 PCIe" in text, "measured on" in text) == (True, False)
    assert not (machine.data / "ceilings").exists()  # it is no measurement of this GPU
    device = {"name": PCIE["name"], "uuid": "GPU-another", "cc": "9.0"}
    own = tmp_path / "own.json"
    own.write_text(json.dumps(document(ceiling("dram.read", 1.9e12), device=device)))
    assert run("install", "--dest", tmp_path / "pack", "--ceilings", own).code == 0
    assert run(*auto).out.startswith("Measured roofs: H100-PCIe-another.json, NVIDIA H100 PCIe, 2025-03-04\n")
    fake_smi(bin_folder, [{**H100, "name": "NVIDIA H100 NVL"}])
    assert run(*auto).out.startswith("Theoretical roofs: there are no ceilings of NVIDIA H100 NVL\n")


def strangers(folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    manifest = {"schema": SCHEMA, "schema_version": 1, "version": "", "ncu": "", "ceilings": ""}
    (folder / MANIFEST).write_text(json.dumps({**manifest, "files": {name: digest(b"the user's")}}))


def test_a_strangers_manifest_is_refused(machine: Machine, run: Command, tmp_path: Path) -> None:
    home, dest = tmp_path / "someone", tmp_path / "someone" / "tuned-sections"
    for name in ("../.bashrc", str(home / ".bashrc")):
        strangers(dest, name)
        (home / ".bashrc").write_bytes(b"the user's")
        before = tree(home)
        for words in (("install",), ("uninstall",), ("uninstall", "--dry-run")):
            outcome = run(*words, "--dest", dest)
            assert (outcome.code, outcome.err.count("ncu-roofline: ")) == (1, 1)
            assert f"Cannot read the manifest {dest / MANIFEST}: it is no manifest of this program" in outcome.err
            assert tree(home) == before
    for folder in ("one", "two"):
        run("install", "--dest", tmp_path / folder)
    strangers(tmp_path / "one", "../x")
    (tmp_path / "x").write_bytes(b"the user's")
    outcome = run("uninstall")  # which goes on to the others
    assert (outcome.code, "Cannot read the manifest" in outcome.err, (tmp_path / "two").exists()) == (1, True, False)
    assert ((tmp_path / "x").read_bytes(), recorded_folders(machine)) == (b"the user's", [tmp_path / "one"])
