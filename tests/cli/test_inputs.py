"""Which reports a command line means: several, folders, patterns, each once; and what becomes of those that can't be read."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import REPORT_SUFFIXES
from ncu_roofline.cli import executors
from ncu_roofline.cli.reading import expand
from tests.cli.command import Command, assert_refused, launches
from tests.factory import H100, complete, kernel, report

FILES = ("b.ncu-rep", "a.ncu-rep", "x[1].ncu-rep", "deep/er/c.nsight-cuprof-report", "notes.txt", "deep/er/d.ncu-rep.bak")
C = os.path.join("deep", "er", "c.nsight-cuprof-report")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: b, a and [1] in it, c two levels deeper, and things that are no reports."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "deep" / "folder.ncu-rep").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("b.ncu-rep a.ncu-rep", ["b.ncu-rep", "a.ncu-rep"]),
        ("missing.ncu-rep", ["missing.ncu-rep"]),  # the reader says what is wrong with it
        ("notes.txt", ["notes.txt"]),
        (".", ["a.ncu-rep", "b.ncu-rep", C, "x[1].ncu-rep"]),
        ("deep/", [C]),
        ("?.ncu-rep", ["a.ncu-rep", "b.ncu-rep"]),
        ("x[1].ncu-rep", ["x[1].ncu-rep"]),  # a file of that very name comes before the pattern
        ("[ab].ncu-rep", ["a.ncu-rep", "b.ncu-rep"]),
        ("d*", [C]),
        ("**/c*", [C]),
        ("a.ncu-rep . a.ncu-rep", ["a.ncu-rep", "b.ncu-rep", C, "x[1].ncu-rep"]),
        ("./b.ncu-rep b.ncu-rep deep/../b.ncu-rep", ["./b.ncu-rep"]),
    ],
)
def test_expansion(words: str, expected: list[str]) -> None:
    assert expand(words.split()) == [one if one in words.split() else one.replace("/", os.sep) for one in expected]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_and_its_file_are_one_report(here: Path) -> None:
    (here / "link.ncu-rep").symlink_to("a.ncu-rep")
    (here / "loop").symlink_to(".")
    assert expand(["link.ncu-rep", "a.ncu-rep"]) == ["link.ncu-rep"]
    assert len(expand(["."])) == 4


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("", "the name is empty"),
        ("deep/folder.ncu-rep", "the folder holds no report"),
        ("*.nope", "no file matches the pattern"),
        ("deep/f*", "no file matches the pattern"),
    ],
)
def test_words_that_mean_nothing(word: str, reason: str) -> None:
    with pytest.raises(RooflineError, match=reason):
        expand(["a.ncu-rep", word])


def test_suffixes_in_capitals_and_of_compressed_reports_in_natural_order(tmp_path: Path) -> None:
    assert REPORT_SUFFIXES == (".ncu-rep", ".ncu-repz", ".nsight-cuprof-report")
    for name in ("b10.ncu-repz", "b9.ncu-repz", "A.NCU-REPZ", "B.Ncu-Rep", "NCU-REP", "c.ncu-repzz", "d.zst"):
        (tmp_path / name).write_bytes(b"")
    assert {os.path.basename(path) for path in expand([str(tmp_path)])} == {
        "A.NCU-REPZ",
        "B.Ncu-Rep",
        "b9.ncu-repz",
        "b10.ncu-repz",
    }
    assert [os.path.basename(path) for path in expand([str(tmp_path / "b*")])] == ["b9.ncu-repz", "b10.ncu-repz"]


@pytest.fixture
def several(tmp_path: Path) -> Path:
    """A folder with two reports, one of them deeper, and other files."""
    (tmp_path / "in" / "deep").mkdir(parents=True)
    report(tmp_path / "in" / "a.ncu-rep", kernel(complete()))
    report(tmp_path / "in" / "deep" / "b.nsight-cuprof-report", kernel(complete(H100)), kernel(complete()))
    (tmp_path / "in" / "notes.txt").write_text("no report")
    return tmp_path / "in"


def names(document: Any) -> list[str]:
    return [Path(row["report"]).name for row in document["kernels"]]


def test_commands_read_them_in_order_and_once(
    rows: Callable[..., Any], several: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = rows(several / "deep" / "b.nsight-cuprof-report", several / "a.ncu-rep", "--level", "dram")
    assert names(document) == ["b.nsight-cuprof-report"] * 2 + ["a.ncu-rep"]
    assert launches(document) == [0, 1, 0]
    assert len({row["report"] for row in rows(several, source)["kernels"]}) == 3
    monkeypatch.chdir(several)
    document = rows("a.ncu-rep", "./a.ncu-rep", several / "a.ncu-rep", ".", "*.ncu-rep")
    assert names(document) == ["a.ncu-rep"] + ["b.nsight-cuprof-report"] * 2


def test_the_first_that_fails_ends_it(run: Command, several: Path, source: Path) -> None:
    for word in (several / "*.nope", several / "deep" / "x.ncu-rep"):
        assert_refused(run("show", several / "a.ncu-rep", word), word)
    (several / "empty").mkdir()
    outcome = run("show", several / "empty")
    assert_refused(outcome, several / "empty")
    assert ".ncu-rep" in outcome.err
    bad = several / "bad.ncu-rep"
    bad.write_bytes(b"text")
    assert_refused(run("show", source, bad), bad)


def test_keep_going(run: Command, several: Path, source: Path, tmp_path: Path) -> None:
    bad = several / "bad.ncu-rep"
    bad.write_bytes(b"text")
    for words in (("show", "--json"), ("explain",), ("render", "-o", "-", "--format", "csv")):
        outcome = run(*words, several, source, "--keep-going")
        assert (outcome.code, outcome.err.count("\n"), bool(outcome.out)) == (1, 1, True)
        assert f"ncu-roofline: Cannot read {bad}: " in outcome.err
    outcome = run("show", tmp_path / "a", tmp_path / "b", "--keep-going")
    assert (outcome.code, outcome.out) == (1, "")
    assert [line.partition(":")[0] for line in outcome.err.splitlines()] == ["ncu-roofline"] * 3
    assert "none of the reports could be read" in outcome.err


def test_several_processes_give_the_same(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [
        report(tmp_path / f"{number}.ncu-rep", *[kernel(complete(seconds=1e-3 * (number + 1)))] * (number + 1))
        for number in range(4)
    ]
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
