"""Places that can't be written: every command says so, and leaves nothing half-written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import Command, Outcome, assert_no_leftovers, assert_refused


@pytest.fixture
def source(tmp_path: Path, whole: bytes) -> Path:
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(whole)
    return path


def test_places_that_cannot_be_written(run: Command, source: Path, tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for place in ("nowhere/out.csv", "r.ncu-rep/out.csv", "folder.csv", f"{'x' * 300}.csv", "nowhere/out.png"):
        target = tmp_path / place
        assert_refused(run("render", source, "-o", target), target)
        assert_refused(run("render", source, "-o", target, "--force"), target)
    assert_no_leftovers(tmp_path, "r.ncu-rep", "folder.csv")


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="the user may write everywhere")
def test_a_folder_without_permission(run: Command, source: Path, folder: Path) -> None:
    folder.chmod(0o500)
    assert_refused(run("render", source, "-o", folder / "out.csv"), folder / "out.csv")
    folder.chmod(0o700)
    assert_no_leftovers(folder)


@pytest.mark.parametrize("suffix", ["csv", "svg"])
def test_an_existing_file_needs_force(run: Command, source: Path, folder: Path, suffix: str) -> None:
    target = folder / f"out.{suffix}"
    target.write_text("precious")
    outcome = run("render", source, "-o", target)
    assert_refused(outcome, target)
    assert "--force" in outcome.err
    assert target.read_text() == "precious"
    assert run("render", source, "-o", target, "--force").code == 0
    assert b"precious" not in target.read_bytes()
    assert_no_leftovers(folder, target.name)


def test_a_refused_report_leaves_an_existing_result_alone(run: Command, tmp_path: Path, folder: Path) -> None:
    bad, target = tmp_path / "bad.ncu-rep", folder / "out.csv"
    bad.write_bytes(b"text")
    target.write_text("precious")
    assert_refused(run("render", bad, "-o", target, "--force"), bad)
    assert target.read_text() == "precious"
    assert_no_leftovers(folder, "out.csv")


def test_a_disk_that_fills_up(run: Command, source: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = folder / "out.csv"

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ncu_roofline.base.files.os.replace", full)
    outcome = run("render", source, "-o", target)
    assert_refused(outcome, target)
    assert "No space left on device" in outcome.err
    assert_no_leftovers(folder)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
@pytest.mark.parametrize(
    ("words", "redirection", "reason"),
    [
        (("show", "{}"), ">/dev/full", "No space left"),
        (("render", "{}", "-o", "-", "--format", "csv"), ">&-", "closed"),
        (("--help",), ">/dev/full", "No space left"),  # what the parser prints
        (("--version",), ">/dev/full", "No space left"),
    ],
)
def test_standard_output_that_is_full_or_closed(source: Path, words: tuple[str, ...], redirection: str, reason: str) -> None:
    shell = shutil.which("sh")
    assert shell
    line = f'"$0" -m ncu_roofline "$@" {redirection}'
    command = [shell, "-c", line, sys.executable, *(word.format(source) for word in words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert_refused(Outcome(done.returncode, done.stdout, done.stderr), "standard output")
    assert reason in done.stderr
