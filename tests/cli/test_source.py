"""`ncu-roofline source`: when nvdisasm runs, and real reports; what is printed is in `source.session`."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ncu_roofline.analyses.source.text import BY
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.cli import source
from ncu_roofline.formats.report import read_report
from ncu_roofline.rendering.table import columns_wide
from tests.cli.command import Command, assert_refused
from tests.factory import report
from tests.made_up_code import smooth

OWN = "Opcodes are named by our own table"
WORDS = ("--by", "instruction", "--width", 200)


def test_instructions(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without nvdisasm our own table names opcodes, and it is recommended where there is one for the system and the chip."""
    path = report(tmp_path / "smooth.ncu-rep", smooth())
    monkeypatch.setattr(source, "find_nvdisasm", lambda: None)
    for platform, oldest, recommended in (("linux", (8, 0), True), ("darwin", (8, 0), False), ("linux", (9, 0), False)):
        monkeypatch.setattr(source.sys, "platform", platform)
        monkeypatch.setattr(source, "_DISASSEMBLED", oldest)  # that it knows; the report's is 8.0
        out = run("source", path, *WORDS).out
        assert (OWN in out, "pip install 'ncu-roofline[sass]'" in out) == (True, recommended), (platform, oldest)
    monkeypatch.setattr(source, "find_nvdisasm", lambda: Path("nvdisasm"))
    monkeypatch.setattr(source, "disassemble", lambda *_: [{0x190: "LDG.E R8, [R8.64]", 0x1A0: "\33[2J; DMUL"}])
    text = run("source", path, *WORDS).out
    assert ("LDG.E R8, [R8.64]" in text, OWN in text) == (True, False)

    def fails(*_: object) -> None:
        raise RooflineError("Cannot disassemble with", "nvdisasm", "it knows no such chip", "Update it.")

    monkeypatch.setattr(source, "disassemble", fails)
    outcome = run("source", path, *WORDS)
    assert (outcome.code, outcome.err.count("it knows no such chip")) == (0, 1)  # told once
    assert (OWN in outcome.out, "pip install" in outcome.out) == (True, False)


@pytest.mark.skipif(os.name == "nt", reason="the made-up nvdisasm is a shell script")
def test_it_runs_where_instructions_are_shown_and_only_there(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for several kernels; also where code without -lineinfo has its instructions in place of lines."""
    tool, mark = tmp_path / "bin" / "nvdisasm", tmp_path / "mark"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\necho ran >> {mark}\necho '/*0210*/ FAKE.SAID R1 ;'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    code = smooth().code
    assert code is not None
    unlined = replace(code, cubin=code.cubin.replace(b".debug_line", b".other_line"))
    bare = replace(smooth(), name="bare", function_name="bare", code=unlined)
    report(tmp_path / "smooth.ncu-rep", smooth())
    report(tmp_path / "bare.ncu-rep", bare)
    report(tmp_path / "both.ncu-rep", smooth(), bare)
    nowhere = ("", "--by outer-line", "--by loop", "-o x.md", "-o x.csv --table totals", "-o x.html --no-disassembly")
    shown = ("--by instruction", "-o x.md --by instruction", "-o x.csv --table instructions", "-o x.html", "-o x.json")
    for name, lines, runs in (
        ("smooth", nowhere, 0),
        ("smooth", shown, 1),
        ("bare", ("", "--by line", "--by outer-line"), 1),
        ("both", ("--top 2",), 1),
    ):
        for line in lines:
            mark.unlink(missing_ok=True)
            words = line.split()
            outcome = run("source", f"{name}.ncu-rep", *words, *(("--force",) if "-o" in words else ()))
            assert outcome.code == 0, outcome.err
            text = Path(words[1]).read_text() if "-o" in words else outcome.out
            ran = len(mark.read_text().splitlines()) if mark.exists() else 0
            assert (ran, text.count("FAKE.SAID") > 0) == (runs, runs > 0), (name, line)
            assert ("no source lines: its instructions stand in their place" in text) == (name != "smooth")


@pytest.mark.reports
def test_real_reports(run: Command, real_reports: dict[str, Path]) -> None:
    """Those without source counters are refused; of the others every table fits every terminal."""
    check_real(run, real_reports["a100-ncu2020.3-full-1.ncu-rep"])
    lost = real_reports["a100-ncu2022.4-full-2.ncu-rep"]  # its rules say, too, that metrics of the section were not found
    outcome = run("source", lost)
    assert_refused(outcome, lost)
    assert "although it was collected with section SourceCounters: ncu got none of its metrics" in outcome.err
    said = " ".join(run("show", real_reports["v100-ncu2022.2-full-1.ncu-rep"]).out.split())
    assert "1.9x to the FP64 FMA roof; miniWeather_mpi_openacc.F90:288: FP64 divisions, 29 % of samples. " in said


@pytest.mark.exhaustive
@pytest.mark.reports
def test_all_real_reports(run: Command, real_reports: dict[str, Path]) -> None:
    for name, path in real_reports.items():
        if "full" in name or (name.startswith("a100") and "custom" in name):
            check_real(run, path)


def check_real(run: Command, path: Path) -> None:
    with read_report(path) as opened:
        counted = any("inst_executed" in one.metrics.names() for one in opened.kernels)
    if not counted:
        assert_refused(run("source", path), path)
        return
    for words in ((), *(("--by", by) for by in BY)):
        for width in (60, 80, 120, 200):
            started = time.process_time()
            outcome = run("source", path, "--no-disassembly", *words, "--width", width)
            assert outcome.code == 0, outcome.err
            assert time.process_time() - started < 20
            assert [line for line in outcome.out.splitlines() if columns_wide(line) > width] == []
