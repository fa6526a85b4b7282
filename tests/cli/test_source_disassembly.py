"""When `ncu-roofline source` runs nvdisasm, and what it shows with and without it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.cli import source
from ncu_roofline.formats.report import KernelData
from tests.cli.command import Command, Outcome
from tests.factory import report
from tests.made_up_code import smooth

OWN = "Opcodes are named by our own table"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return report(tmp_path / "smooth.ncu-rep", smooth())


def test_without_nvdisasm_opcodes_are_named_by_our_own_table(run: Command, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "find_nvdisasm", lambda: None)
    outcome = run("source", path, "--by", "instruction", "--width", 200)
    assert OWN in outcome.out
    assert "pip install 'ncu-roofline[sass]'" in outcome.out
    alone = run("source", path, "--by", "instruction", "--width", 200, "--no-disassembly").out
    assert OWN in alone
    assert outcome.out.startswith(alone.rstrip())
    assert "pip install" not in alone


def test_no_nvdisasm_is_recommended_where_there_is_none(run: Command, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "find_nvdisasm", lambda: None)
    monkeypatch.setattr(source.sys, "platform", "darwin")
    assert "pip install" not in run("source", path, "--by", "instruction").out
    monkeypatch.setattr(source.sys, "platform", "linux")
    assert "pip install" in run("source", path, "--by", "instruction").out
    monkeypatch.setattr(source, "_DISASSEMBLED", (9, 0))  # a chip that it does not know
    assert "pip install" not in run("source", path, "--by", "instruction").out


def test_with_it_instructions_are_whole(run: Command, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "find_nvdisasm", lambda: Path("nvdisasm"))
    monkeypatch.setattr(source, "disassemble", lambda *_: [{0x190: "LDG.E R8, [R8.64]", 0x1A0: "\33[2J; DMUL"}])
    text = run("source", path, "--by", "instruction", "--width", 200).out
    assert "LDG.E R8, [R8.64]" in text
    assert OWN not in text


def test_where_it_fails_that_is_told_once(run: Command, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Sequence[Mapping[int, str]]:
        raise RooflineError("Cannot disassemble with", "nvdisasm", "it knows no such chip", "Update it.")

    monkeypatch.setattr(source, "find_nvdisasm", lambda: Path("nvdisasm"))
    monkeypatch.setattr(source, "disassemble", fails)
    outcome = run("source", path, "--by", "instruction")
    assert (outcome.code, outcome.err.count("it knows no such chip")) == (0, 1)
    assert OWN in outcome.out
    assert "pip install" not in outcome.out


def _without_lines() -> KernelData:
    """The same launch, of code that was built without -lineinfo, as another kernel."""
    code = smooth().code
    assert code is not None
    bare = replace(code, cubin=code.cubin.replace(b".debug_line", b".other_line"))
    return replace(smooth(), name="bare", function_name="bare", code=bare)


@pytest.fixture
def marked(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Outcome, int]]:
    """The command with an nvdisasm that says the same of any code, and how often that ran."""
    tool, mark = tmp_path / "bin" / "nvdisasm", tmp_path / "mark"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\necho ran >> {mark}\necho '/*0210*/ FAKE.SAID R1 ;'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")

    def command(*words: object) -> tuple[Outcome, int]:
        mark.unlink(missing_ok=True)
        outcome = run("source", *words)
        assert outcome.code == 0, outcome.err
        return outcome, len(mark.read_text().splitlines()) if mark.exists() else 0

    return command


@pytest.mark.skipif(os.name == "nt", reason="the made-up nvdisasm is a shell script")
class TestRuns:
    @pytest.mark.parametrize(
        "words",
        [
            (),
            ("--by", "line"),
            ("--by", "outer-line"),
            ("--by", "loop"),
            ("--by", "function"),
            ("-o", "x.md"),
            ("-o", "x.csv"),
            ("-o", "x.csv", "--table", "totals"),
            ("-o", "x.svg"),
            ("-o", "x.html", "--no-disassembly"),
            ("--by", "instruction", "--no-disassembly"),
        ],
    )
    def test_not_where_no_instruction_is_shown(
        self,
        marked: Callable[..., tuple[Outcome, int]],
        path: Path,
        words: tuple[str, ...],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert marked(path, *words)[1] == 0

    @pytest.mark.parametrize(
        "words", [("--by", "instruction"), ("-o", "x.md", "--by", "instruction"), ("-o", "x.csv", "--table", "instructions"),
                  ("-o", "x.html"), ("-o", "x.json")],
    )  # fmt: skip
    def test_where_instructions_are_shown_or_written(
        self,
        marked: Callable[..., tuple[Outcome, int]],
        path: Path,
        words: tuple[str, ...],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.chdir(tmp_path)
        outcome, runs = marked(path, *words)
        assert runs == 1
        written = Path(words[1]).read_text() if words[0] == "-o" else outcome.out
        assert "FAKE.SAID" in written

    @pytest.mark.parametrize("words", [(), ("--by", "line"), ("--by", "outer-line")])
    def test_where_they_stand_in_the_place_of_lines(
        self, marked: Callable[..., tuple[Outcome, int]], tmp_path: Path, words: tuple[str, ...]
    ) -> None:
        outcome, runs = marked(report(tmp_path / "x.ncu-rep", _without_lines()), *words)
        assert runs == 1
        assert "no source lines: its instructions stand in their place" in outcome.out
        assert "FAKE.SAID" in outcome.out

    def test_of_two_launches_for_the_one_without_lines(
        self, marked: Callable[..., tuple[Outcome, int]], tmp_path: Path
    ) -> None:
        both = report(tmp_path / "x.ncu-rep", smooth(), _without_lines())
        outcome, runs = marked(both, "--top", 2)
        assert (runs, outcome.out.count("FAKE.SAID")) == (1, 1)
