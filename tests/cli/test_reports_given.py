"""Which reports a command reads: several, folders, patterns, each once; and what becomes of those that can't be read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.cli import executors
from tests.cli.command import Command, assert_refused, launches
from tests.factory import H100, complete, kernel, report


class TestReports:
    @pytest.fixture
    def several(self, tmp_path: Path) -> Path:
        """A folder with two reports, one of them deeper, and other files."""
        (tmp_path / "in" / "deep").mkdir(parents=True)
        report(tmp_path / "in" / "a.ncu-rep", kernel(complete()))
        report(tmp_path / "in" / "deep" / "b.nsight-cuprof-report", kernel(complete(H100)), kernel(complete()))
        (tmp_path / "in" / "notes.txt").write_text("no report")
        return tmp_path / "in"

    def names(self, document: Any) -> list[str]:
        return [Path(row["report"]).name for row in document["kernels"]]

    def test_several_in_order(self, rows: Callable[..., Any], several: Path, source: Path) -> None:
        document = rows(several / "deep" / "b.nsight-cuprof-report", several / "a.ncu-rep", "--level", "dram")
        assert self.names(document) == ["b.nsight-cuprof-report"] * 2 + ["a.ncu-rep"]
        assert launches(document) == [0, 1, 0]
        assert len({row["report"] for row in rows(several, source)["kernels"]}) == 3

    @pytest.mark.parametrize("pattern", ["", "**", "*.ncu-rep"])
    def test_folders_and_patterns(self, rows: Callable[..., Any], several: Path, pattern: str) -> None:
        where = several / pattern / "*report" if pattern == "**" else several / pattern
        expected = {"": ["a.ncu-rep"] + ["b.nsight-cuprof-report"] * 2, "*.ncu-rep": ["a.ncu-rep"]}
        assert self.names(rows(where)) == expected.get(pattern, ["b.nsight-cuprof-report"] * 2)

    def test_each_once(self, rows: Callable[..., Any], several: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(several)
        document = rows("a.ncu-rep", "./a.ncu-rep", several / "a.ncu-rep", ".", "*.ncu-rep")
        assert [row["report"] for row in document["kernels"]].count("a.ncu-rep") == 1
        assert len(document["kernels"]) == 3

    def test_nothing_there(self, run: Command, several: Path) -> None:
        for word in (several / "*.nope", several / "deep" / "x.ncu-rep"):
            assert_refused(run("show", several / "a.ncu-rep", word), word)
        (several / "empty").mkdir()
        outcome = run("show", several / "empty")
        assert_refused(outcome, several / "empty")
        assert ".ncu-rep" in outcome.err

    def test_the_first_that_fails_ends_it(self, run: Command, several: Path, source: Path) -> None:
        bad = several / "bad.ncu-rep"
        bad.write_bytes(b"text")
        assert_refused(run("show", source, bad), bad)

    @pytest.mark.parametrize("command", [("show",), ("show", "--json"), ("explain",), ("explain", "--json")])
    def test_keep_going(self, run: Command, several: Path, source: Path, command: tuple[str, ...]) -> None:
        bad = several / "bad.ncu-rep"
        bad.write_bytes(b"text")
        outcome = run(*command, several, source, "--keep-going")
        assert outcome.code == 1
        assert outcome.err.count("\n") == 1
        assert f"ncu-roofline: Cannot read {bad}: " in outcome.err
        assert outcome.out

    def test_keep_going_renders_the_others(self, run: Command, several: Path, tmp_path: Path, source: Path) -> None:
        (several / "bad.ncu-rep").write_bytes(b"text")
        outcome = run("render", several, source, "--keep-going", "-o", tmp_path / "out.csv")
        assert outcome.code == 1
        assert (tmp_path / "out.csv").exists()

    def test_keep_going_with_nothing_good(self, run: Command, tmp_path: Path) -> None:
        outcome = run("show", tmp_path / "a", tmp_path / "b", "--keep-going")
        assert outcome.code == 1
        assert outcome.out == ""
        assert [line.partition(":")[0] for line in outcome.err.splitlines()] == ["ncu-roofline"] * 3
        assert "none of the reports could be read" in outcome.err


class TestParallel:
    @pytest.fixture
    def paths(self, tmp_path: Path) -> list[Path]:
        return [
            report(tmp_path / f"{number}.ncu-rep", *(kernel(complete(seconds=1e-3 * (number + 1))) for _ in range(number + 1)))
            for number in range(4)
        ]

    def test_the_same_as_one_after_the_other(
        self, run: Command, paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bad = tmp_path / "2b.ncu-rep"
        bad.write_bytes(b"text")
        words = ("show", "--json", *paths[:2], bad, *paths[2:], "--keep-going")
        one_by_one = run(*words)
        monkeypatch.setattr(executors, "PARALLEL_FROM_BYTES", 0)
        monkeypatch.setattr("os.cpu_count", lambda: 2)
        assert run(*words) == one_by_one
        assert len(json.loads(one_by_one.out)["kernels"]) == 10
        error = run("explain", *paths, bad)
        assert_refused(error, bad)
        assert error.err.strip() == one_by_one.err.strip()
