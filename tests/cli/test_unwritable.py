"""Places that can't be written: every command says so, and leaves nothing half-written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import Command, Outcome, assert_no_leftovers, assert_refused
from tests.cli.every_command import SUFFIXES


@pytest.mark.sampled("csv", "html", "svg")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_places_that_cannot_be_written(run: Command, tmp_path: Path, whole: bytes, suffix: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    source = tmp_path / "r.ncu-rep"
    source.write_bytes(whole)
    (tmp_path / f"folder.{suffix}").mkdir()
    for place in (f"nowhere/out.{suffix}", f"r.ncu-rep/out.{suffix}", f"folder.{suffix}", f"{'x' * 300}.{suffix}"):
        target = tmp_path / place
        assert_refused(run("render", source, "-o", target), target)
        assert_refused(run("render", source, "-o", target, "--force"), target)
    assert_no_leftovers(tmp_path, "r.ncu-rep", f"folder.{suffix}")


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="the user may write everywhere")
def test_a_folder_without_permission(run: Command, tmp_path: Path, folder: Path, whole: bytes) -> None:
    source = tmp_path / "r.ncu-rep"
    source.write_bytes(whole)
    folder.chmod(0o500)
    assert_refused(run("render", source, "-o", folder / "out.csv"), folder / "out.csv")
    folder.chmod(0o700)
    assert_no_leftovers(folder)


@pytest.mark.sampled("csv", "html", "svg")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_existing_file_needs_force(run: Command, tmp_path: Path, folder: Path, whole: bytes, suffix: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    source, target = tmp_path / "r.ncu-rep", folder / f"out.{suffix}"
    source.write_bytes(whole)
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


def test_a_disk_that_fills_up(
    run: Command, tmp_path: Path, folder: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "r.ncu-rep", folder / "out.csv"
    source.write_bytes(whole)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ncu_roofline.base.files.os.replace", full)
    outcome = run("render", source, "-o", target)
    assert_refused(outcome, target)
    assert "No space left on device" in outcome.err
    assert_no_leftovers(folder)


@pytest.mark.sampled("words0")
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
@pytest.mark.parametrize("words", [("show",), ("show", "--json"), ("explain",), ("render", "-o", "-", "--format", "csv")])
def test_standard_output_that_is_full_or_closed(tmp_path: Path, whole: bytes, words: tuple[str, ...]) -> None:
    source = tmp_path / "r.ncu-rep"
    source.write_bytes(whole)
    shell = shutil.which("sh")
    assert shell
    for redirection, reason in ((">/dev/full", "No space left"), (">&-", "closed")):
        line = f'"$0" -m ncu_roofline "$@" {redirection}'
        command = [shell, "-c", line, sys.executable, *words, str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert_refused(Outcome(done.returncode, done.stdout, done.stderr), "standard output")
        assert reason in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
@pytest.mark.parametrize("words", [("--version",), ("--help",), ("show", "--help")])
def test_standard_output_that_is_full_of_what_the_parser_prints(words: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ncu_roofline", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert_refused(Outcome(done.returncode, "", done.stderr), "standard output")
