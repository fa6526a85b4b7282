"""`--version`: the release everywhere, the commit in a checkout."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import ncu_roofline
from ncu_roofline import cli as parser
from tests.cli.command import Command

NEEDS_GIT = pytest.mark.skipif(not shutil.which("git"), reason="no git on this machine")
IDENTITY = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.invalid")


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a commit."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[project]\nname = "ncu-roofline"\n')
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, *IDENTITY, "commit", "-q", "-m", "first")
    return folder


@NEEDS_GIT
def test_commit_of_a_checkout(checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    commit = parser.commit_of(checkout)
    assert len(commit) >= 12
    assert git(checkout, "rev-parse", "HEAD").startswith(commit)
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert parser.commit_of(checkout) == commit
    monkeypatch.setattr(parser, "_CHECKOUT", checkout)
    assert Command(capsys)("--version").out == f"ncu-roofline {ncu_roofline.__version__} (commit {commit})\n"


@NEEDS_GIT
def test_the_commit_of_another_project_says_nothing(checkout: Path, tmp_path: Path) -> None:
    """Installed into an environment inside somebody's repository, or copied into it."""
    inside = checkout / ".venv" / "site-packages"
    inside.mkdir(parents=True)
    assert parser.commit_of(inside) == ""
    (checkout / "pyproject.toml").write_text('[project]\nname = "other"\n')
    assert parser.commit_of(checkout) == ""
    assert parser.commit_of(tmp_path) == ""


@NEEDS_GIT
def test_without_git_or_a_commit(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(checkout / ".git" / "refs")
    assert parser.commit_of(checkout) == ""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert parser.commit_of(checkout) == ""


def test_elsewhere_the_version_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(parser, "_CHECKOUT", tmp_path)
    outcome = Command(capsys)("--version")
    assert (outcome.code, outcome.out) == (0, f"ncu-roofline {ncu_roofline.__version__}\n")
