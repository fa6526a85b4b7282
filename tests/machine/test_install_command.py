"""`install` and `uninstall` with stand-ins for ncu."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.bench.campaign import Progress
from ncu_roofline.plugin.machine.install import MANIFEST, SCHEMA, digest, recorded_folders
from ncu_roofline.plugin.machine.machine import Machine
from tests.cli.command import Command, assert_refused
from tests.machine.fakes import H100, fake_ncu, fake_nvcc, fake_smi, program, tree
from tests.schemas import assert_fits

CEILINGS = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo" / "gpp-v100-ceilings.json"


def sections(machine: Machine, version: str = "2024.2.0") -> Path:
    assert machine.home
    return machine.home / "Documents" / "NVIDIA Nsight Compute" / version / "Sections"


def set_env(machine: Machine, **values: str) -> None:
    machine.environ.update(values)  # type: ignore[attr-defined]


def test_install_and_uninstall(machine: Machine, run: Command, bin_folder: Path) -> None:
    assert machine.home
    fake_ncu(bin_folder)
    outcome = run("install")
    assert outcome.code == 0, outcome
    assert outcome.out.startswith(
        "Theoretical roofs: there is no nvidia-smi on the PATH\nFor Nsight Compute 2024.2.0.0: wrote "
    )
    assert "ncu --section HierarchicalDoubleRooflineChart -o report ./app" in outcome.out
    assert {"Stock.section", "HierarchicalDoubleRooflineChart.section", MANIFEST} <= set(os.listdir(sections(machine)))
    outcome = run("uninstall")
    assert outcome.code == 0
    assert set(os.listdir(sections(machine))) == {"Stock.section", "StockRule.py"}
    assert {path.name for path in machine.home.iterdir()} == {"Documents"}
    assert run("uninstall").out == "Nothing is installed.\n"


def test_without_ncu(machine: Machine, run: Command) -> None:
    assert machine.home
    assert_refused(run("install"), "sections and rules")
    assert tree(machine.home) == {}


def test_without_ncu_into_a_folder(run: Command, tmp_path: Path) -> None:
    outcome = run("install", "--dest", tmp_path / "pack")
    assert outcome.code == 0, outcome
    assert "no ncu here to prove it with" in outcome.out
    assert f"ncu --section-folder {tmp_path / 'pack'} --section" in outcome.out


def test_dry_run_does_nothing(machine: Machine, run: Command, bin_folder: Path, tmp_path: Path) -> None:
    assert machine.home
    fake_ncu(bin_folder)
    fake_smi(bin_folder, [H100])
    for words in ([], ["--dest", tmp_path / "pack"], ["--ceilings", CEILINGS]):
        outcome = run("install", "--dry-run", *words)
        assert outcome.code == 0
        assert "would write" in outcome.out
    assert tree(machine.home) == {}
    assert not (tmp_path / "pack").exists()
    run("install", "--no-bench")
    before = tree(machine.home)
    assert "Would remove" in run("uninstall", "--dry-run").out
    assert tree(machine.home) == before


def test_two_releases_two_folders(machine: Machine, run: Command, bin_folder: Path, tmp_path: Path) -> None:
    fake_ncu(bin_folder, "2022.3.0.0")
    fake_ncu(tmp_path / "root" / "opt" / "nvidia" / "nsight-compute" / "2024.2.0", "2024.2.0.0")
    outcome = run("install", "--json")
    assert outcome.code == 0, outcome
    assert [row["ncu"] for row in assert_fits("install", outcome.out)["installed"]] == ["2024.2.0.0", "2022.3.0.0"]
    assert (sections(machine) / MANIFEST).is_file()
    assert (sections(machine, "2022.3.0") / MANIFEST).is_file()
    removed = assert_fits("uninstall", run("uninstall", "--json").out)["folders"]
    assert [bool(row["removed"]) for row in removed] == [True, True]


def test_two_of_one_release_share_a_folder(run: Command, bin_folder: Path, tmp_path: Path) -> None:
    fake_ncu(bin_folder)
    fake_ncu(tmp_path / "root" / "usr" / "local" / "cuda-12" / "bin")
    rows = json.loads(run("install", "--json").out)["installed"]
    assert [row["proven_with"] for row in rows] == [[str(bin_folder / "ncu")]]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("#!/bin/sh\necho 'error while loading shared libraries' >&2\nexit 127\n", "error while loading shared libraries"),
        ("#!/bin/sh\nexit 3\n", "it ended with exit code 3"),
        ("#!/bin/sh\necho 'Version: the newest'\n", "it does not say its version"),
        ("#!/no/such/interpreter\n", "No such file or directory"),
        ("\x7fELF nonsense", "Exec format error"),
    ],
)
def test_broken_ncu(script: str, reason: str, machine: Machine, run: Command, bin_folder: Path, tmp_path: Path) -> None:
    broken = program(bin_folder / "ncu", script)
    outcome = run("install", "--ncu", broken)
    assert_refused(outcome, broken)
    assert reason in outcome.err
    outcome = run("install")
    assert outcome.code == 1
    assert f"Left out {broken}: {reason}" in outcome.err
    fake_ncu(tmp_path / "root" / "opt" / "nvidia" / "nsight-compute" / "2024.2.0")
    outcome = run("install")
    assert outcome.code == 0
    assert f"Left out {broken}: {reason}" in outcome.err
    assert (sections(machine) / MANIFEST).is_file()


def test_hanging_ncu(run: Command, bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Machine.run, "__defaults__", (0.2,))
    broken = program(bin_folder / "ncu", "#!/bin/sh\nwhile :; do :; done\n")
    outcome = run("install", "--ncu", broken)
    assert_refused(outcome, broken)
    assert "did not answer" in outcome.err


def test_release_before_rooflines(run: Command, bin_folder: Path) -> None:
    outcome = run("install", "--ncu", fake_ncu(bin_folder, "2019.5.0.0"))
    assert_refused(outcome, bin_folder / "ncu")


def test_release_from_the_future(machine: Machine, run: Command, bin_folder: Path) -> None:
    fake_ncu(bin_folder, "2031.1.0.0")
    outcome = run("install")
    assert outcome.code == 0, outcome
    assert "newer than this program" in outcome.err
    assert (sections(machine, "2031.1.0") / MANIFEST).is_file()


def test_ncu_that_refuses_our_sections(machine: Machine, run: Command, bin_folder: Path) -> None:
    assert machine.home
    fake_ncu(bin_folder)
    set_env(machine, FAKE_NCU="reject")
    outcome = run("install")
    assert outcome.code == 1
    assert 'has no field named "Y"' in outcome.err
    assert set(os.listdir(sections(machine))) == {"Stock.section", "StockRule.py"}
    assert {path.name for path in machine.home.iterdir()} == {"Documents"}


def test_installation_folder_where_deployment_is_off(machine: Machine, run: Command, bin_folder: Path) -> None:
    assert machine.home
    fake_ncu(bin_folder)
    set_env(machine, NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT="1")
    assert run("install").code == 0
    assert (bin_folder / "sections" / MANIFEST).is_file()
    assert run("uninstall").code == 0
    assert set(os.listdir(bin_folder / "sections")) == {"Stock.section", "StockRule.py"}
    assert tree(machine.home) == {}


def test_home_that_is_a_file(machine: Machine, run: Command, bin_folder: Path, tmp_path: Path) -> None:
    fake_ncu(bin_folder)
    (tmp_path / "file").write_bytes(b"")
    set_env(machine, HOME=str(tmp_path / "file"))
    outcome = run("install")
    assert outcome.code == 1
    assert outcome.err.count("\n") == 1
    assert "Cannot " in outcome.err


def test_folder_that_cannot_be_made(run: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert_refused(run("install", "--dest", tmp_path / "file" / "pack"), tmp_path / "file" / "pack")


def test_changed_file_is_kept_aloud(machine: Machine, run: Command, bin_folder: Path) -> None:
    fake_ncu(bin_folder)
    run("install")
    file = sections(machine) / "RooflineOverview.section"
    file.write_text("tuned")
    outcome = run("install")
    assert f"Kept {file}: it was changed" in outcome.err
    outcome = run("uninstall")
    assert outcome.code == 0
    assert f"Kept {file}: it was changed" in outcome.err
    assert file.read_text() == "tuned"


def test_ceilings_are_drawn_kept_and_used_again(machine: Machine, run: Command, bin_folder: Path) -> None:
    fake_ncu(bin_folder)
    outcome = run("install", "--ceilings", CEILINGS)
    assert outcome.code == 0, outcome
    assert outcome.out.startswith("Measured roofs: ")
    text = (sections(machine) / "HierarchicalDoubleRooflineChart.section").read_text()
    assert "measured on Tesla V100" in text
    kept = list((machine.data / "ceilings").glob("*.json"))
    assert len(kept) == 1
    v100 = {**H100, "name": "Tesla V100-SXM2-16GB", "uuid": "", "compute_cap": "7.0"}
    fake_smi(bin_folder, [v100])
    outcome = run("install")
    assert "kept from before" in outcome.out
    assert "nothing to do" in outcome.out
    outcome = run("uninstall")
    assert f"Measured ceilings are kept in {machine.data / 'ceilings'}" in outcome.err
    assert run("uninstall", "--forget-ceilings").code == 0
    assert not machine.data.exists()


def test_ceilings_that_cannot_be_drawn_replace_none(machine: Machine, run: Command, bin_folder: Path, tmp_path: Path) -> None:
    fake_ncu(bin_folder)
    assert run("install", "--ceilings", CEILINGS).code == 0
    (kept,) = (machine.data / "ceilings").glob("*.json")
    before, document = kept.read_bytes(), json.loads(CEILINGS.read_bytes())
    document["ceilings"][0]["theory"] = {"value": 1e9, "at_measured_clock": 1e9}
    (tmp_path / "bad.json").write_text(json.dumps(document))
    assert_refused(run("install", "--ceilings", tmp_path / "bad.json"), tmp_path / "bad.json")
    assert kept.read_bytes() == before


def test_ceilings_of_another_gpu_are_used_aloud(run: Command, bin_folder: Path) -> None:
    fake_ncu(bin_folder)
    fake_smi(bin_folder, [H100])
    outcome = run("install", "--ceilings", CEILINGS)
    assert outcome.code == 0
    assert "The ceilings are those of Tesla V100-SXM2-16GB; the GPU here is NVIDIA H100 80GB HBM3" in outcome.err


def test_file_that_holds_no_ceilings(machine: Machine, run: Command, bin_folder: Path) -> None:
    assert machine.home
    fake_ncu(bin_folder)
    assert_refused(run("install", "--ceilings", bin_folder / "ncu"), bin_folder / "ncu")
    assert tree(machine.home) == {}


def test_gpu_without_compiler_gets_theoretical_roofs(run: Command, bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_compiler(*_: object, **__: object) -> Path:
        raise RooflineError("Cannot find", "nvcc", "it is not on the PATH", "Install it.")

    monkeypatch.setattr("ncu_roofline.bench.measure", no_compiler)
    fake_ncu(bin_folder)
    fake_smi(bin_folder, [H100])
    outcome = run("install")
    assert outcome.code == 0
    assert outcome.out.splitlines()[0] == "Theoretical roofs: Cannot find nvcc: it is not on the PATH. Install it."


def test_gpu_and_compiler_measure_once(run: Command, bin_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    measured = json.loads(CEILINGS.read_text())
    measured["device"] |= {"name": H100["name"], "uuid": H100["uuid"], "cc": "9.0"}
    calls: list[str] = []

    def measure(device: str, progress: Progress) -> Path:
        calls.append(device)
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
    assert run("install").out.startswith("Measured roofs: ")
    assert "kept from before" in run("install").out
    assert calls == [H100["uuid"]]


def test_device_that_is_not_there(run: Command, bin_folder: Path) -> None:
    fake_ncu(bin_folder)
    fake_smi(bin_folder, [H100])
    assert_refused(run("install", "--device", "7"), "7")


def test_uninstall_from_a_folder_that_is_not_ours(run: Command, tmp_path: Path) -> None:
    assert_refused(run("uninstall", "--dest", tmp_path), tmp_path)


def strangers(folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    document = {"schema": SCHEMA, "schema_version": 1, "version": "", "ncu": "", "ceilings": ""}
    (folder / MANIFEST).write_text(json.dumps({**document, "files": {name: digest(b"the user's")}}))


@pytest.mark.parametrize("words", [("install",), ("uninstall",), ("uninstall", "--dry-run")], ids=" ".join)
@pytest.mark.parametrize("name", ["../.bashrc", "{home}/.bashrc"])
def test_a_strangers_manifest_is_refused(run: Command, tmp_path: Path, words: tuple[str, ...], name: str) -> None:
    home, dest = tmp_path / "someone", tmp_path / "someone" / "tuned-sections"
    strangers(dest, name.format(home=home))
    (home / ".bashrc").write_bytes(b"the user's")
    before = tree(home)
    outcome = run(*words, "--dest", dest)
    assert (outcome.code, outcome.err.count("ncu-roofline: ")) == (1, 1)
    assert f"Cannot read the manifest {dest / MANIFEST}: " in outcome.err
    assert "it is no manifest of this program" in outcome.err
    assert tree(home) == before


def test_uninstall_everywhere_goes_on_after_a_strangers_manifest(run: Command, machine: Machine, tmp_path: Path) -> None:
    run("install", "--dest", tmp_path / "one")
    run("install", "--dest", tmp_path / "two")
    strangers(tmp_path / "one", "../x")
    (tmp_path / "x").write_bytes(b"the user's")
    outcome = run("uninstall")
    assert (outcome.code, "Cannot read the manifest" in outcome.err, (tmp_path / "two").exists()) == (1, True, False)
    assert ((tmp_path / "x").read_bytes(), recorded_folders(machine)) == (b"the user's", [tmp_path / "one"])


def test_pack_of_several_releases_suits_all(run: Command, bin_folder: Path, tmp_path: Path) -> None:
    fake_ncu(bin_folder, "2020.3.1.0")
    fake_ncu(tmp_path / "root" / "opt" / "nvidia" / "nsight-compute" / "2024.2.0")
    outcome = run("install", "--dest", tmp_path / "pack", "--json")
    row = json.loads(outcome.out)["installed"][0]
    assert row["ncu"] == ""
    assert len(row["proven_with"]) == 2


@pytest.mark.parametrize("words", [(), ("--forget-ceilings",), ("--dry-run",)])
def test_nothing_to_uninstall_where_nothing_can_be_written(machine: Machine, run: Command, words: tuple[str, ...]) -> None:
    set_env(machine, HOME="/dev/null/home")
    outcome = run("uninstall", *words)
    assert (outcome.code, outcome.out, outcome.err) == (0, "Nothing is installed.\n", "")


def test_uninstalling_makes_no_folder(machine: Machine, run: Command) -> None:
    assert run("uninstall").code == 0
    assert not machine.data.parent.exists()


def test_a_folder_is_cleaned_where_the_home_can_not_be_written(machine: Machine, run: Command, tmp_path: Path) -> None:
    assert run("install", "--dest", tmp_path / "own").code == 0
    set_env(machine, HOME="/dev/null/home")
    outcome = run("uninstall", "--dest", tmp_path / "own")
    assert (outcome.code, outcome.err) == (0, "")
    assert not (tmp_path / "own").exists()
