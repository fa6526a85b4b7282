"""`ncu-roofline check` as users call it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from ncu_roofline.chips import load_spec
from ncu_roofline.cli import main
from ncu_roofline.formats.sectionfile.section import MOST_BYTES, made, parse_section, release_of
from ncu_roofline.plugin.check import chips
from ncu_roofline.plugin.check.section_rules import ERROR, check_files

FIXTURES = Path(__file__).parent / "fixtures"
GOOD = 'Identifier: "{}"\nDisplayName: "good"\nMetrics {{ Metrics {{ Name: "gpu__time_duration.sum" }} }}\n'


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.section"
    path.write_text(GOOD.format("Good"))
    return path


def test_a_file_in_order(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(good), "--chip", "A100,9.0"]) == 0
    out = capsys.readouterr().out
    assert out == "1 file checked for 2 chips and Nsight Compute 2020.3 to 2025.4: 0 errors, 0 warnings\n"


def test_an_error_is_exit_code_1_with_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    path = FIXTURES / "unknown-field.section"
    assert main(["check", str(path)]) == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first == f"{path}:6:5: error: no release knows a field Metrics.Metrics.Lable; Label is meant? [unknown-field]"
    assert last.endswith("1 error, 0 warnings")


@pytest.mark.usefixtures("no_library")
def test_a_warning_is_exit_code_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(FIXTURES / "no-dot.section")]) == 0
    captured = capsys.readouterr()
    assert "[no-dot]" in captured.out
    assert captured.err == f"ncu-roofline: {chips.HOW_TO_GET}\n"
    assert "pip install nvidia-cuda-cupti" in captured.err


def test_release(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(FIXTURES / "release.section")
    assert main(["check", path, "--ncu", "2022.3"]) == 1
    assert "2022.3 drops the whole file because of Body.SetDefault, which is known from 2023.3 on" in capsys.readouterr().out
    assert main(["check", path, "--ncu", "2024.2.1"]) == 0
    assert "Nsight Compute 2024.2: 0 errors, 0 warnings" in capsys.readouterr().out


def test_folders_and_patterns(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (good.parent / "other.section").write_text(GOOD.format("Other"))
    (good.parent / "ignored.txt").write_text("nonsense")
    (good.parent / "below").mkdir()
    (good.parent / "below" / "bad.section").write_text("nonsense")
    for arguments in ([str(good.parent)], [str(good.parent / "*.section")], [str(good), str(good.parent)]):
        assert main(["check", *arguments]) == 0
        assert capsys.readouterr().out.startswith("2 files checked")


def test_json(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = FIXTURES / "unknown-field.section"
    assert main(["check", str(good), str(bad), "--json", "--chip", "GH100", "--passes"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["files"][0] == {
        "path": str(good),
        "identifier": "Good",
        "releases": [*document["files"][0]["releases"]],
    }
    assert document["files"][0]["releases"][0] == "2020.3"
    assert document["files"][0]["releases"][-1] == "2025.4"
    assert document["files"][1] == {"path": str(bad), "identifier": None, "releases": []}
    (found,) = document["findings"]
    assert (found["severity"], found["path"], found["line"], found["column"], found["code"]) == (
        *("error", str(bad), 6, 5, "unknown-field"),
    )
    assert document["chips"] == ["GH100"]
    row = document["passes"][str(good)]
    assert row == ({"GH100": {"total": 1, "hardware": 1, "sass": 0}} if document["libraries"] else {"GH100": None})


@pytest.mark.usefixtures("library")
def test_table_of_passes(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum"
    (good.parent / "sass.section").write_text(GOOD.format("Sass").replace("gpu__time_duration.sum", name))
    assert main(["check", str(good.parent), "--passes", "--chip", "GH100,GV11B"]) == 0
    lines = [line.split("  ") for line in capsys.readouterr().out.splitlines()]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert cells[2:] == [
        ["Replay passes"],
        ["GH100", "GV11B"],
        ["good.section", "1 (1+0)", "-"],
        ["sass.section", "1 (0+1)", "-"],
        ["all together", "2 (1+1)", "-"],
        ["total (hardware + patching); - unknown.", "Nsight Compute itself reports one more."],
    ]


@pytest.mark.usefixtures("no_library")
def test_passes_are_unknown_without_library(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(good), "--passes", "--chip", "GH100"]) == 0
    assert "good.section  -" in capsys.readouterr().out


def test_our_own_sections_are_the_default(
    good: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def folder(name: str) -> Path:
        asked.append(name)
        return good.parent

    monkeypatch.setattr("ncu_roofline.cli.check.pack_folder", folder)
    assert main(["check"]) == 0
    assert set(asked) == {"sections"}
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"1 file checked for {len(load_spec().architectures)} chips")
    assert second == f"They are the sections that come with ncu-roofline, in {good.parent}: good"


def test_our_own_sections_without_their_remarks(capsys: pytest.CaptureFixture[str]) -> None:
    """They are for many chips at once, which is known; whoever wants to read it is told how."""
    assert main(["check"]) == 0
    said = capsys.readouterr().out
    assert "HierarchicalDoubleRooflineChart" in said
    assert ": warning: " not in said
    command = shlex.split(said.splitlines()[-1])
    assert main(command[1:]) == 0
    listed = capsys.readouterr().out
    assert listed.count(": warning: ") == int(re.findall(r"(\d+) warnings", said)[0]) > 0


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["{}/absent.section"], 1, "Cannot read {}/absent.section: No such file or directory."),
        (["{}/empty"], 1, "Cannot check {}/empty: the folder holds no section."),
        (["{}/*.nothing"], 1, "Cannot check {}/*.nothing: no file matches the pattern."),
        ([""], 1, "Cannot check '': the name is empty."),
        (["{}/empty", "--chip", "H1000"], 1, "Cannot use --chip H1000:"),
        (["{}/empty", "--ncu", "new"], 2, "Cannot use --ncu new:"),
        (["{}/empty", "--ncu", "2019.5"], 2, "Cannot use --ncu 2019.5: sections are checked for 2020.3 and later."),
    ],
)
def test_bad_command_lines(
    arguments: list[str], code: int, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["check", *(one.replace("{}", str(tmp_path)) for one in arguments)]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"ncu-roofline: {text}".replace("{}", str(tmp_path)))
    assert captured.err.count("\n") == 1


def test_a_folder_that_may_not_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: str) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.listdir", refuse)
    assert main(["check", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith(f"ncu-roofline: Cannot check {tmp_path}: Permission denied.")


@pytest.mark.parametrize(
    "data",
    [b"", b"plain text", b"\0" * 50, b"\xff\xfe\x00", b"NVR\0" + b"x" * 500, b"version https://git-lfs.github.com/spec/v1\n"],
)
def test_files_that_are_no_section(data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.section"
    path.write_bytes(data)
    assert main(["check", str(path)]) == 1
    captured = capsys.readouterr()
    assert f"{path}:1:" in captured.out
    assert ": error: " in captured.out
    assert captured.out.isprintable() or captured.out.replace("\n", "").isprintable()


# NVIDIA's own mistake: this name is in no metric list of any chip, that of 2024.2 itself included.
WRONG_IN_STOCK = {("2024.2", "mcc__dram_data_bytes")}


@pytest.mark.ncu
def test_stock_sections_have_no_errors_in_their_release(ncu_releases: dict[str, Path]) -> None:
    for release, binary in ncu_releases.items():
        paths = sorted((binary.parents[2] / "sections").glob("*.section"))
        assert paths
        errors = [
            one for file in check_files(paths, release=release_of(release)) for one in file.findings if one.severity == ERROR
        ]
        wrong = [name for version, name in WRONG_IN_STOCK if version == release]
        assert not [str(one) for one in errors if not any(name in one.message for name in wrong)]


def test_a_section_file_beyond_any_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "large.section"
    path.write_text(GOOD.format("x" * MOST_BYTES))
    assert main(["check", str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert (
        captured.err == f"ncu-roofline: Cannot read {path}: it has more than 2 MB. Give a section file, or a folder of them.\n"
    )


def test_an_embedded_section_beyond_any_size_is_as_a_damaged_one() -> None:
    with pytest.raises(ValueError, match="more than 2 MB"):
        parse_section(made("Section", Identifier="x" * MOST_BYTES, DisplayName="x").SerializeToString())
