"""What newcomers type: help and version as words, names of files with a letter too many."""

from __future__ import annotations

from pathlib import Path

import pytest

import ncu_roofline
from tests.cli.command import Command
from tests.factory import complete, kernel, report


@pytest.mark.parametrize(
    ("words", "meant"),
    [("help", "--help"), ("help show", "show --help"), ("help bench run", "bench run --help"), ("version", "--version")],
)
def test_help_and_version_are_words_too(run: Command, words: str, meant: str) -> None:
    found, expected = run(*words.split()), run(*meant.split())
    assert (found.code, found.out) == (0, expected.out)
    assert found.out


@pytest.mark.parametrize(
    ("name", "question"), [("foward.ncu-rep", "; did you mean {}/forward.ncu-rep?"), ("zzz.ncu-rep", "."), ("a/b.ncu-rep", ".")]
)
def test_a_file_with_a_name_like_it_is_asked_about(run: Command, tmp_path: Path, name: str, question: str) -> None:
    report(tmp_path / "forward.ncu-rep", kernel(complete()))
    done = run("show", tmp_path / name)
    assert done.code == 1
    assert done.err.endswith(f"there is no such file. Check the path{question.format(tmp_path)}\n")


def test_annotate_names_the_report_without_its_folder(run: Command, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    path = report(tmp_path / "secret" / "r.ncu-rep", kernel(complete()))
    done = run("annotate", path, "-o", tmp_path / "out.ncu-rep")
    assert done.code == 0
    assert done.out.startswith("r.ncu-rep: 1 launches")
    assert "secret" not in done.out


def test_one_state_is_not_compared(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="two states or more"):
        ncu_roofline.compare(report(tmp_path / "r.ncu-rep", kernel(complete())))


def test_a_comparison_begins_with_the_headline_and_tells_of_thresholds_behind(run: Command, tmp_path: Path) -> None:
    paths = [report(tmp_path / f"{time}.ncu-rep", kernel(complete(seconds=time))) for time in (1e-3, 2e-3)]
    done = run("compare", *paths, "--fail-if", "time > baseline", "-o", "-", "--format", "md")
    assert done.code == 1
    assert 0 < done.out.index("### ") < done.out.index("**Thresholds") < done.out.index("| kernel")
