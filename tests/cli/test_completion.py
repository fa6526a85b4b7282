"""Scripts for shells: what they propose is asked of the shells themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ncu_roofline.cli import COMMANDS
from ncu_roofline.cli.completion import SHELLS
from tests.cli.command import Command, assert_refused

shtab = pytest.importorskip("shtab")
KNOWN = [shell for shell in SHELLS if shell in shtab.SUPPORTED_SHELLS]
CASES = {
    "sho": {"show"},
    "bench r": {"run"},
    "render --prec": {"--precision"},
    "show --precision tensor.t": {"tensor.tf32"},
    "explain --level d": {"dram"},
    "render x --format p": {"png", "pdf", "parquet"},
    "show x --view ": {"roofline", "time", "instruction", "phases"},
    "list l": {"levels"},
    "show a-rep": {"a-report.ncu-rep"},
    "render x -o a-rep": {"a-report.ncu-rep"},
    "annotate a-rep": {"a-report.ncu-rep"},
    "profile -- a-rep": {"a-report.ncu-rep"},
    "portability a-rep": {"a-report.ncu-rep"},
    "bench merge a-rep": {"a-report.ncu-rep"},
    "generate --out a-fol": {"a-folder"},
}
_ASK = """
source ./script
COMP_WORDS=(ncu-roofline {words}); COMP_CWORD={last}
_shtab_ncu_roofline 2>/dev/null
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a report, a folder, and the scripts of all shells."""
    monkeypatch.chdir(tmp_path)
    Path("a-report.ncu-rep").touch()
    Path("a-folder").mkdir()
    for shell in KNOWN:
        outcome = Command(capsys)("completion", shell)
        assert (outcome.code, outcome.err) == (0, "")
        Path("script" if shell == "bash" else shell).write_text(outcome.out, encoding="utf-8")
    return tmp_path


def said(*command: str) -> set[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return {line.partition("\t")[0].rstrip("/ ") for line in done.stdout.splitlines()} - {""}


@pytest.mark.usefixtures("place")
@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
def test_bash() -> None:
    for line, proposed in CASES.items():
        words = line.split(" ")
        script = _ASK.format(words=" ".join([*words[:-1], words[-1] or "''"]), last=len(words))
        found = said("bash", "--norc", "-c", script)
        assert proposed <= found, line
        assert all(one.startswith(words[-1]) for one in found), line


@pytest.mark.usefixtures("place")
@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
def test_bash_looks_for_files_where_no_command_fits() -> None:
    assert "-o default" in "".join(said("bash", "--norc", "-c", "source ./script; complete -p ncu-roofline"))


@pytest.mark.usefixtures("place")
@pytest.mark.skipif("fish" not in KNOWN or not shutil.which("fish"), reason="no fish")
def test_fish() -> None:
    for line, proposed in CASES.items():
        assert proposed <= said("fish", "--no-config", "-c", f"source ./fish; complete -C 'ncu-roofline {line}'"), line


@pytest.mark.usefixtures("place")
@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh")
def test_zsh_takes_it() -> None:
    subprocess.run(["zsh", "-f", "-n", "zsh"], check=True, timeout=60)
    assert Path("zsh").read_text(encoding="utf-8").startswith("#compdef ncu-roofline\n")


def test_all_commands_are_there(place: Path) -> None:
    for shell in KNOWN:
        text = (place / ("script" if shell == "bash" else shell)).read_text(encoding="utf-8")
        assert all(name in text for name in COMMANDS)
        assert os.fspath(place) not in text


def test_an_older_package(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(shtab, "SUPPORTED_SHELLS", ["bash"])
    assert_refused(Command(capsys)("completion", "fish"), "fish")
