"""`profile` with a stand-in for ncu: what it runs, what it passes through, what it explains."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from ncu_roofline.chips import load_spec
from ncu_roofline.chips.spec import LIGHT_TENSOR_SECTION
from ncu_roofline.formats.report.framing import ZSTD
from ncu_roofline.plugin.machine import profile
from ncu_roofline.plugin.machine.install import MANIFEST
from ncu_roofline.plugin.machine.machine import Machine, Ncu
from ncu_roofline.plugin.machine.profile import explain, find_failure, passes_text
from tests.cli.command import Command, assert_no_leftovers, assert_refused
from tests.machine.conftest import rendered_once
from tests.machine.fakes import H100, REPORT, fake_ncu, fake_smi, program, with_driver

CEILINGS = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo" / "gpp-v100-ceilings.json"
NCU = Ncu(Path("/opt/ncu"), "2024.2.0.0", "PATH")


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """An application that writes to both outputs, reads its input and ends as told."""
    text = "import sys\nprint('out', sys.argv[2:])\nprint('err', file=sys.stderr)\nsys.exit(int(sys.argv[1]))\n"
    return program(tmp_path / "app", f"#!{sys.executable}\n{text}")


@pytest.fixture
def ready(machine: Machine, bin_folder: Path) -> Machine:
    """A machine with ncu and driver."""
    fake_ncu(bin_folder)
    return with_driver(machine)


def set_env(machine: Machine, **values: str) -> None:
    machine.environ.update(values)  # type: ignore[attr-defined]


def calls(bin_folder: Path) -> list[list[str]]:
    return [json.loads(line) for line in (bin_folder / "calls").read_text().splitlines()]


@pytest.mark.usefixtures("ready")
def test_report_and_page(app: Path, run: Command, bin_folder: Path) -> None:
    outcome = run("profile", "--", app, "0", "-o", "x", "--", "--help")
    assert outcome.code == 0, outcome
    assert_no_leftovers(Path(), "app-roofline.ncu-rep", "app-roofline.html")
    assert Path("app-roofline.html").read_bytes().startswith(b"<!DOCTYPE html>")
    words = calls(bin_folder)[-1]
    apart = Path(words[words.index("-o") + 1])
    assert (apart.name, apart.parent.parent, apart.parent.exists()) == ("app-roofline", Path().resolve(), False)
    assert words[words.index("--target-processes") + 1] == "all"
    assert words[-6:] == [str(app), "0", "-o", "x", "--", "--help"]
    assert "--clock-control" not in words
    assert "Each kernel is run several times" in outcome.err
    assert "Clocks are locked to base" in outcome.err
    assert "==PROF== Profiling" in outcome.err
    assert "Wrote app-roofline.ncu-rep (1 kernels)" in outcome.err
    seen = json.loads((bin_folder / "seen").read_text())
    assert "HierarchicalDoubleRooflineChart.section" in seen["folders"][0]
    folder = words[words.index("--section-folder") + 1]
    assert not os.path.exists(folder)


def test_output_of_the_application_passes_through(ready: Machine, app: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert ready.home
    from ncu_roofline.cli import main

    assert main(["profile", "--", str(app), "0", "a b"]) == 0
    captured = capfd.readouterr()
    assert captured.out == "out ['a b']\n"
    assert "err\n" in captured.err


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize("code", [1, 7, 139])
def test_application_that_fails(app: Path, run: Command, code: int) -> None:
    outcome = run("profile", "--", app, str(code))
    assert outcome.code == code
    assert f"the application failed with exit code {code}" in outcome.err
    assert_no_leftovers(Path())


def test_application_that_fails_late_is_rendered(ready: Machine, app: Path, run: Command) -> None:
    set_env(ready, FAKE_NCU="crash late")
    outcome = run("profile", "--", app, "7")
    assert outcome.code == 7
    assert "the report holds what ran before" in outcome.err
    assert_no_leftovers(Path(), "app-roofline.ncu-rep", "app-roofline.html")


@pytest.mark.parametrize(
    ("scenario", "reason", "advice"),
    [
        ("permission", "ERR_NVGPUCTRPERM", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("no kernel", "no kernel was profiled: the application launched none", "runs on the GPU"),
        ("busy", "something else holds the performance counters", "dcgmi"),
        ("mystery", "The moon is in the wrong house", "ncu-roofline doctor"),
    ],
)
def test_failures_are_explained(scenario: str, reason: str, advice: str, ready: Machine, app: Path, run: Command) -> None:
    set_env(ready, FAKE_NCU=scenario)
    outcome = run("profile", "--", app, "0")
    assert outcome.code == 1
    last = outcome.err.splitlines()[-1]
    assert last.startswith(f"ncu-roofline: Cannot profile {app}: ")
    assert reason in last
    assert advice in last
    assert_no_leftovers(Path())


def test_no_kernel_matches(ready: Machine, app: Path, run: Command, bin_folder: Path) -> None:
    set_env(ready, FAKE_NCU="no kernel")
    outcome = run("profile", "--kernel", "^gemm", "--", app, "0")
    assert outcome.code == 1
    assert "none has a name that matches ^gemm" in outcome.err
    words = calls(bin_folder)[-1]
    assert words[words.index("--kernel-name") + 1] == "regex:^gemm"


def test_no_driver(machine: Machine, bin_folder: Path, app: Path, run: Command) -> None:
    fake_ncu(bin_folder)
    set_env(machine, FAKE_NCU="no driver")
    outcome = run("profile", "--", app, "0")
    assert outcome.code == 1
    assert "there is no CUDA driver on this machine" in outcome.err


def test_no_ncu(app: Path, run: Command, bin_folder: Path) -> None:
    assert_refused(run("profile", "--", app, "0"), "ncu")
    broken = program(bin_folder / "broken", "#!/bin/sh\nexit 4\n")
    assert_refused(run("profile", "--ncu", broken, "--", app, "0"), broken)


@pytest.mark.usefixtures("ready")
def test_what_the_application_says_is_no_failure_of_ncu(tmp_path: Path, run: Command) -> None:
    text = "echo ==PROF== ==ERROR== ERR_NVGPUCTRPERM; echo Failed to load the driver >&2; exit 3"
    outcome = run("profile", "--", program(tmp_path / "app", f"#!/bin/sh\n{text}\n"))
    assert outcome.code == 3
    assert "the application failed with exit code 3" in outcome.err.splitlines()[-1]


@pytest.mark.usefixtures("ready")
def test_nothing_is_overwritten(app: Path, run: Command, bin_folder: Path) -> None:
    for name in ("mine.html", "mine.ncu-rep"):
        Path(name).write_text("mine")
        assert_refused(run("profile", "-o", "mine", "--", app, "0"), name)
        assert Path(name).read_text() == "mine"
    assert run("profile", "-o", "mine", "--force", "--", app, "0").code == 0
    assert "-f" not in calls(bin_folder)[-1]  # there is nothing where it writes
    assert Path("mine.html").stat().st_size > 1000


@pytest.mark.sampled("2024.2.0.0-mine-*", "2026.3.0.0-*", "2025.4.0.0-mine.ncu-repz-*")
@pytest.mark.parametrize(
    ("version", "named", "written"),
    [
        ("2024.2.0.0", "mine", "mine.ncu-rep"),
        ("2024.2.0.0", "mine.ncu-rep", "mine.ncu-rep"),
        ("2025.4.0.0", "mine", "mine.ncu-rep"),
        ("2025.4.0.0", "mine.ncu-repz", "mine.ncu-repz"),
        ("2026.3.0.0", "mine", "mine.ncu-repz"),
        ("2026.3.1.0", "mine.ncu-rep", "mine.ncu-rep"),
        ("2026.3.1.0", "mine.ncu-repz", "mine.ncu-repz"),
    ],
)
def test_either_suffix(
    version: str, named: str, written: str, machine: Machine, bin_folder: Path, app: Path, run: Command
) -> None:
    fake_ncu(bin_folder, version)
    with_driver(machine)
    outcome = run("profile", "-o", named, "--", app, "0")
    assert outcome.code == 0, outcome
    assert f"Wrote {written} (1 kernels)" in outcome.err
    assert_no_leftovers(Path(), written, "mine.html")
    assert Path(written).read_bytes().startswith(ZSTD) == written.endswith("z")
    assert_refused(run("profile", "-o", named, "--", app, "0"), written)


@pytest.mark.usefixtures("ready")
def test_a_release_that_does_not_compress(app: Path, run: Command) -> None:
    outcome = run("profile", "-o", "mine.ncu-repz", "--", app, "0")
    assert_refused(outcome, "mine.ncu-repz", code=2)
    assert "2024.2.0.0 does not compress reports, as releases from 2025.4 on do" in outcome.err
    Path("mine.ncu-repz").write_text("of another ncu, and not in the way")
    assert run("profile", "-o", "mine", "--", app, "0").code == 0


def test_the_report_of_an_earlier_run_is_not_this_one(ready: Machine, app: Path, run: Command) -> None:
    assert run("profile", "-o", "mine", "--", app, "0").code == 0
    page = Path("mine.html").read_bytes()
    set_env(ready, FAKE_NCU="no kernel")
    outcome = run("profile", "-o", "mine", "--force", "--", app, "0")
    assert outcome.code == 1
    assert "no kernel was profiled" in outcome.err
    assert "Wrote" not in outcome.err
    assert Path("mine.html").read_bytes() == page


@pytest.mark.usefixtures("ready")
def test_a_report_that_ncu_did_not_write_is_not_its_own(tmp_path: Path, run: Command) -> None:
    """The application changes the old one, and ncu fails."""
    Path("mine.ncu-rep").write_bytes(REPORT.read_bytes())
    changing = program(tmp_path / "app", "#!/bin/sh\necho more >> mine.ncu-rep\nexit 1\n")
    outcome = run("profile", "-o", "mine", "--force", "--", changing)
    assert outcome.code == 1
    assert "Wrote" not in outcome.err
    assert_no_leftovers(Path(), "mine.ncu-rep")


@pytest.mark.usefixtures("ready")
def test_what_appears_meanwhile_stays(tmp_path: Path, run: Command) -> None:
    outcome = run("profile", "-o", "mine", "--", program(tmp_path / "app", "#!/bin/sh\necho theirs > mine.ncu-rep\n"))
    assert outcome.code == 0
    assert Path("mine.ncu-rep").read_text() == "theirs\n"
    assert_no_leftovers(Path(), "mine.ncu-rep", "mine.2.ncu-rep", "mine.2.html")


@pytest.mark.usefixtures("ready")
def test_a_link_stays_a_link(app: Path, run: Command, tmp_path: Path) -> None:
    Path("mine.ncu-rep").symlink_to(tmp_path / "there.ncu-rep")
    assert run("profile", "-o", "mine", "--force", "--", app, "0").code == 0
    assert Path("mine.ncu-rep").is_symlink()
    assert (tmp_path / "there.ncu-rep").read_bytes() == REPORT.read_bytes()


def test_a_report_in_the_other_form_is_not_this_one(machine: Machine, bin_folder: Path, app: Path, run: Command) -> None:
    fake_ncu(bin_folder, "2026.3.0.0")
    with_driver(machine)
    Path("mine.ncu-rep").write_text("an old one")
    assert_refused(run("profile", "-o", "mine", "--", app, "0"), "mine.ncu-rep")
    outcome = run("profile", "-o", "mine", "--force", "--", app, "0")
    assert (outcome.code, "Wrote mine.ncu-repz" in outcome.err) == (0, True)


@pytest.mark.sampled("2024.2.0.0-*", "2026.1.0.0-base-*")
@pytest.mark.parametrize(
    ("version", "control", "passed", "said"),
    [
        ("2024.2.0.0", None, None, "locked to base, as ncu 2024.2.0.0 does"),
        ("2025.4.0.0", None, None, "locked to base, as ncu 2025.4.0.0 does"),
        ("2025.4.0.0", "boost", "boost", "locked to boost, not left free"),
        ("2026.1.0.0", None, None, "locked to boost, as ncu 2026.1.0.0 does"),
        ("2026.1.0.0", "base", "base", "locked to base, not left free"),
        ("2026.1.0.0", "none", "none", "left free"),
    ],
)
def test_clocks_by_release(
    version: str,
    control: str | None,
    passed: str | None,
    said: str,
    machine: Machine,
    bin_folder: Path,
    app: Path,
    run: Command,
) -> None:
    fake_ncu(bin_folder, version)
    with_driver(machine)
    options = ("--clock-control", control) if control else ()
    outcome = run("profile", *options, "--", app, "0")
    assert outcome.code == 0, outcome
    assert said in outcome.err
    words = calls(bin_folder)[-1]
    assert (words[words.index("--clock-control") + 1] if "--clock-control" in words else None) == passed


@pytest.mark.usefixtures("ready")
def test_a_release_without_boost(app: Path, run: Command) -> None:
    outcome = run("profile", "--clock-control", "boost", "--", app, "0")
    assert_refused(outcome, "boost", code=2)
    assert "2024.2.0.0 does not know it, as releases from 2025.4 on do" in outcome.err


@pytest.mark.usefixtures("ready")
def test_folder_that_is_not_there(app: Path, run: Command) -> None:
    assert_refused(run("profile", "-o", "no/such/name", "--", app, "0"), "no/such/name.ncu-rep")


@pytest.mark.sampled("environ1-*", "environ5-")
@pytest.mark.parametrize(
    ("environ", "suffix"),
    [
        ({}, ""),
        ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}, ".rank3"),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}, ""),
        ({"PMI_RANK": "12"}, ".rank12"),
        ({"SLURM_PROCID": "5"}, ".rank5"),
        ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1", "SLURM_NTASKS": "8"}, ""),
        ({"SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "8", "OMPI_COMM_WORLD_RANK": "1"}, ".rank1"),
        ({"SLURM_PROCID": "two"}, ""),
    ],
)
def test_reports_of_ranks(environ: dict[str, str], suffix: str, ready: Machine, app: Path, run: Command) -> None:
    set_env(ready, **environ)
    assert run("profile", "-o", "x.ncu-rep", "--", app, "0").code == 0
    assert_no_leftovers(Path(), f"x{suffix}.ncu-rep", f"x{suffix}.html")


def test_dry_run_prints_a_command_for_the_shell(bin_folder: Path, run: Command) -> None:
    fake_ncu(bin_folder)
    outcome = run("profile", "--dry-run", "--kernel", "a b", "--", "./no such app", "x")
    assert (outcome.code, outcome.err) == (0, "")
    words = shlex.split(outcome.out)
    assert words[0] == str(bin_folder / "ncu")
    assert words[-2:] == ["./no such app", "x"]
    assert "regex:a b" in words
    assert all(Path(words[n + 1]).is_dir() for n, word in enumerate(words) if word == "--section-folder")
    assert_no_leftovers(Path())


def test_installed_sections_are_used(ready: Machine, app: Path, run: Command, bin_folder: Path) -> None:
    run("install")
    outcome = run("profile", "--dry-run", "--", app)
    assert "--section-folder" not in outcome.out
    assert run("profile", "--", app, "0").code == 0
    assert "--section-folder" not in calls(bin_folder)[-1]
    assert "--section-folder" in run("profile", "--dry-run", "--light", "--precision", "tensor.bf16", "--", app).out
    (manifest,) = (ready.documents or app).glob(f"*/*/Sections/{MANIFEST}")
    whole = manifest.read_text()
    manifest.write_text(json.dumps({**json.loads(whole), "version": "0.0"}))  # an old one
    assert "--section-folder" in run("profile", "--dry-run", "--", app).out
    manifest.write_text(whole)
    set_env(ready, NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT="1")
    assert "--section-folder" in run("profile", "--dry-run", "--", app).out


@pytest.mark.usefixtures("ready")
def test_measured_ceilings_leave_the_clocks_free(app: Path, run: Command, bin_folder: Path) -> None:
    outcome = run("profile", "--ceilings", CEILINGS, "--", app, "0")
    assert outcome.code == 0, outcome
    words = calls(bin_folder)[-1]
    assert words[words.index("--clock-control") + 1] == "none"
    assert "as those the ceilings were measured at" in outcome.err
    outcome = run("profile", "--ceilings", CEILINGS, "--clock-control", "base", "--force", "--", app, "0")
    assert "--clock-control" not in calls(bin_folder)[-1]
    assert "can't be reached" in outcome.err


@pytest.mark.usefixtures("ready")
def test_kept_ceilings_are_found(app: Path, run: Command, bin_folder: Path) -> None:
    run("install", "--ceilings", CEILINGS)
    fake_smi(bin_folder, [{**H100, "name": "Tesla V100-SXM2-16GB", "uuid": "", "compute_cap": "7.0"}])
    assert "--clock-control none" in run("profile", "--dry-run", "--", app).out
    fake_smi(bin_folder, [H100])
    assert "--clock-control none" not in run("profile", "--dry-run", "--", app).out


@pytest.mark.parametrize(
    ("options", "sections"),
    [
        ([], ["Double", "Single", "Half", "Tensor"]),
        (["--light"], ["Double", "Single", "Half", "TensorLight"]),
        (["--precision", "fp64"], ["Double"]),
        (["--precision", "tensor.bf16,fp32"], ["Tensor", "Single"]),
        (["--precision", "tensor.bf16", "--light"], ["TensorLight"]),
    ],
)
@pytest.mark.usefixtures("ready")
def test_sections(options: list[str], sections: list[str], run: Command) -> None:
    words = shlex.split(run("profile", "--dry-run", *options, "--", "./app").out)
    found = [words[n + 1] for n, word in enumerate(words) if word == "--section"]
    assert found == [f"Hierarchical{name}RooflineChart" for name in sections]


def test_sections_exist_in_the_pack() -> None:
    names = set(rendered_once("2024.2.0.0").files)
    assert {f"{name}.section" for name in (*load_spec().sections.values(), LIGHT_TENSOR_SECTION)} <= names


@pytest.mark.usefixtures("ready")
def test_precision_without_a_section(run: Command) -> None:
    assert_refused(run("profile", "--precision", "int32", "--", "./app"), "int32", code=2)
    assert_refused(run("profile", "--light", "--precision", "tensor.fp3", "--", "./app"), "tensor.fp3", code=2)


def test_passes_are_told_where_a_library_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    from ncu_roofline.plugin.check.chips import Passes
    from ncu_roofline.plugin.machine.machine import Gpu

    gpu = Gpu(0, "H100", "", "", (9, 0))
    pack = rendered_once("2024.2.0.0")
    monkeypatch.setattr(
        "ncu_roofline.plugin.check.section_rules.section_passes", lambda contents, _: Passes(len(list(contents)), 1)
    )
    sections = profile.sections_for(["fp64", "fp32"], light=False)
    text = (
        "Each kernel is run 4 times (replay passes): 2 for hardware counters, 1 with instrumented instructions, 1 of ncu's own."
    )
    assert passes_text(pack, sections, gpu) == text
    assert passes_text(pack, sections, gpu, sections[:1]) == f"{text} --light: 3 times."
    assert passes_text(pack, sections, gpu, sections) == text
    monkeypatch.setattr("ncu_roofline.plugin.check.section_rules.section_passes", lambda *_: None)
    assert "no metric library here knows 9.0" in passes_text(pack, sections, gpu)
    assert "no metric library here knows 77.0" in passes_text(pack, sections, Gpu(0, "X", "", "", (77, 0)))


def test_percent_signs_are_not_macros_of_ncu() -> None:
    words = profile.command(NCU, profile.Wanted(("./app",), "50%", ("S",)))
    assert words[words.index("-o") + 1] == "50%%"


def test_command_for_windows() -> None:
    assert profile.as_text(["C:\\x y\\ncu.bat", "a"], "windows") == '"C:\\x y\\ncu.bat" a'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters",
            "permission",
        ),
        ("==ERROR== Failed to load the driver.", "driver"),
        ("==ERROR== InterprocessLockFailed", "busy"),
        ("==ERROR== './app' does not exist or is not an executable. Please", "program"),
        ("==PROF== Connected to process 3", None),
    ],
)
def test_known_failures(text: str, found: str | None) -> None:
    failure = find_failure(text)
    assert (failure.id if failure else None) == found


def test_ncu_that_was_killed(machine: Machine) -> None:
    assert explain(with_driver(machine), "", -9, "", sys.executable).reason == "ncu was ended by signal 9"


@pytest.fixture(params=["2020.3", "2022.3", "2024.1", "2024.2"])
def real(request: pytest.FixtureRequest, ncu_releases: dict[str, Path]) -> tuple[str, Path]:
    """A real release, and its ncu."""
    if request.param not in ncu_releases:
        pytest.skip(f"Nsight Compute {request.param} is not here")
    return request.param, ncu_releases[request.param]


@pytest.mark.sampled("2024.2")
@pytest.mark.ncu
def test_real_ncu_without_a_driver(real: tuple[str, Path], app: Path, run: Command) -> None:
    outcome = run("profile", "--ncu", real[1], "--", app, "0")
    assert outcome.code == 1
    assert "CUDA driver" in outcome.err.splitlines()[-1]
    assert_no_leftovers(Path())


@pytest.mark.sampled("2024.2")
@pytest.mark.ncu
def test_what_real_ncu_says_beside_its_log(real: tuple[str, Path], machine: Machine, app: Path, run: Command) -> None:
    """Where there seems to be a driver; an old report stays as it was."""
    with_driver(machine)
    Path("mine.ncu-rep").write_bytes(REPORT.read_bytes())
    os.utime("mine.ncu-rep", (1, 1))
    outcome = run("profile", "--ncu", real[1], "-o", "mine", "--force", "--", app, "0")
    reason = "no kernel was profiled" if real[0] == "2020.3" else "the application failed with exit code"
    assert (outcome.code, reason in outcome.err.splitlines()[-1], "Wrote" in outcome.err) == (1, True, False)
    outcome = run("profile", "--ncu", real[1], "-o", "mine", "--force", "--", "./nope")
    assert outcome.code == 1
    assert "the application can't be started" in outcome.err.splitlines()[-1]
    assert Path("mine.ncu-rep").stat().st_mtime == 1
    assert_no_leftovers(Path(), "mine.ncu-rep")
