"""Which reports a command line means."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import REPORT_SUFFIXES
from ncu_roofline.cli.reading import expand


def test_suffixes_in_capitals(tmp_path: Path) -> None:
    for name in ("A.NCU-REPZ", "B.Ncu-Rep", "NCU-REP"):
        (tmp_path / name).write_bytes(b"")
    assert expand([str(tmp_path)]) == [str(tmp_path / "A.NCU-REPZ"), str(tmp_path / "B.Ncu-Rep")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: b, a and [1] in it, c two levels deeper, and things that are no reports."""
    for name in (
        "b.ncu-rep",
        "a.ncu-rep",
        "x[1].ncu-rep",
        "deep/er/c.nsight-cuprof-report",
        "notes.txt",
        "deep/er/d.ncu-rep.bak",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "deep" / "folder.ncu-rep").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


C = os.path.join("deep", "er", "c.nsight-cuprof-report")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["b.ncu-rep", "a.ncu-rep"], ["b.ncu-rep", "a.ncu-rep"]),
        (["missing.ncu-rep"], ["missing.ncu-rep"]),  # the reader says what is wrong with it
        (["notes.txt"], ["notes.txt"]),
        (["."], ["a.ncu-rep", "b.ncu-rep", C, "x[1].ncu-rep"]),
        (["deep"], [C]),
        (["deep/"], [C]),
        (["?.ncu-rep"], ["a.ncu-rep", "b.ncu-rep"]),
        (["*.ncu-rep"], ["a.ncu-rep", "b.ncu-rep", "x[1].ncu-rep"]),
        (["x[1].ncu-rep"], ["x[1].ncu-rep"]),  # a file of that very name comes before the pattern
        (["[ab].ncu-rep"], ["a.ncu-rep", "b.ncu-rep"]),
        (["d*"], [C]),
        (["**/c*"], [C]),
        (["a.ncu-rep", ".", "a.ncu-rep"], ["a.ncu-rep", "b.ncu-rep", C, "x[1].ncu-rep"]),
        (["./b.ncu-rep", "b.ncu-rep", "deep/../b.ncu-rep"], ["./b.ncu-rep"]),
    ],
)
def test_expansion(folder: Path, words: list[str], expected: list[str]) -> None:
    assert expand(words) == [one.replace("/", os.sep) if one not in words else one for one in expected]
    assert folder.is_dir()


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_and_its_file_are_one_report(folder: Path) -> None:
    (folder / "link.ncu-rep").symlink_to("a.ncu-rep")
    (folder / "loop").symlink_to(".")
    assert expand(["link.ncu-rep", "a.ncu-rep"]) == ["link.ncu-rep"]
    assert len(expand(["."])) == 4


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("", "the name is empty"),
        ("deep/folder.ncu-rep", "the folder holds no report"),
        ("*.nope", "no file matches the pattern"),
        ("deep/f*", "no file matches the pattern"),
    ],
)
def test_words_that_mean_nothing(folder: Path, word: str, reason: str) -> None:
    with pytest.raises(RooflineError, match=reason):
        expand(["a.ncu-rep", word])
    assert folder.is_dir()


def test_suffixes() -> None:
    assert REPORT_SUFFIXES == (".ncu-rep", ".ncu-repz", ".nsight-cuprof-report")


def test_compressed_reports_are_found(tmp_path: Path) -> None:
    for name in ("b10.ncu-repz", "b9.ncu-repz", "a.ncu-rep", "c.ncu-repzz", "d.zst"):
        (tmp_path / name).write_bytes(b"")
    found = [os.path.basename(path) for path in expand([str(tmp_path)])]
    assert found == ["a.ncu-rep", "b9.ncu-repz", "b10.ncu-repz"]
    assert [os.path.basename(path) for path in expand([str(tmp_path / "b*")])] == ["b9.ncu-repz", "b10.ncu-repz"]
