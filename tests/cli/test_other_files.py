"""Commands that need a report say so of files that other commands read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import Command, assert_refused

TABLE = "kernel,gflop/s,ai_dram,peak_gflops,bandwidth_dram_gbs\ntriad,10,0.1,1000,100\n"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs commands."""
    return Command(capsys)


@pytest.mark.parametrize("command", [["advise"], ["annotate", "-o", "copy.ncu-rep"]], ids=lambda words: words[0])
def test_commands_that_need_a_report(run: Command, tmp_path: Path, command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text(TABLE)
    outcome = run(*command, "table.csv")
    assert_refused(outcome, "table.csv")
    assert "it is a plain table, and " in outcome.err
    assert outcome.err.endswith("Give the report (.ncu-rep) itself.\n")


def test_show_reads_the_same_file(run: Command, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(TABLE)
    outcome = run("show", tmp_path / "table.csv")
    assert outcome.code == 0
    assert "triad" in outcome.out
