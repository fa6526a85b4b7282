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
    "generate --out a-fol": {"a-folder"},
}
for words in ("show", "render x -o", "annotate", "profile --", "portability", "bench merge"):
    CASES[f"{words} a-rep"] = {"a-report.ncu-rep"}
_ASK = """
source ./bash
COMP_WORDS=(ncu-roofline {words}); COMP_CWORD={last}
_shtab_ncu_roofline 2>/dev/null
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def said(*command: str) -> set[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return {line.partition("\t")[0].rstrip("/ ") for line in done.stdout.splitlines()} - {""}


@pytest.mark.parametrize("shell", KNOWN)
def test_scripts(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    """All commands are there, no folder of this machine, and the shell proposes what may stand in a place."""
    monkeypatch.chdir(tmp_path)
    Path("a-report.ncu-rep").touch()
    Path("a-folder").mkdir()
    outcome = run("completion", shell)
    assert (outcome.code, outcome.err) == (0, "")
    assert all(name in outcome.out for name in COMMANDS)
    assert os.fspath(tmp_path) not in outcome.out
    Path(shell).write_text(outcome.out, encoding="utf-8")
    if not shutil.which(shell):
        pytest.skip(f"no {shell}")
    if shell == "zsh":
        subprocess.run(["zsh", "-f", "-n", "zsh"], check=True, timeout=60)
        assert outcome.out.startswith("#compdef ncu-roofline\n")
    for line, proposed in CASES.items() if shell != "zsh" else ():
        words = line.split(" ")
        if shell == "fish":
            assert proposed <= said("fish", "--no-config", "-c", f"source ./fish; complete -C 'ncu-roofline {line}'"), line
            continue
        script = _ASK.format(words=" ".join([*words[:-1], words[-1] or "''"]), last=len(words))
        found = said("bash", "--norc", "-c", script)
        assert proposed <= found, line
        assert all(one.startswith(words[-1]) for one in found), line
    if shell == "bash":  # it looks for files where no command fits
        assert "-o default" in "".join(said("bash", "--norc", "-c", "source ./bash; complete -p ncu-roofline"))


def test_an_older_package(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shtab, "SUPPORTED_SHELLS", ["bash"])
    assert_refused(run("completion", "fish"), "fish")
