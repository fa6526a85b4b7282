"""Every command in the README runs, and so does its Python."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from pathlib import Path

import pytest

from ncu_roofline.cli import main

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
COMMANDS = [
    line.partition("  #")[0].strip()
    for language, text in BLOCKS
    if language == "sh"
    for line in text.splitlines()
    if line.startswith("ncu-roofline")
]
PYTHON = [text for language, text in BLOCKS if language == "python"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where the demo has run, with its files also under the names that the README's examples use."""
    folder = tmp_path_factory.mktemp("demo")
    assert main(["demo", "--out", str(folder / "ncu-roofline-demo")]) == 0
    for name in ("report.ncu-rep", "after.ncu-rep"):
        shutil.copy(folder / "ncu-roofline-demo" / "gpp-v100.ncu-rep", folder / name)
    for name in ("node.json", "cluster.json"):
        shutil.copy(folder / "ncu-roofline-demo" / "gpp-v100-ceilings.json", folder / name)
    return folder


@pytest.fixture
def demo(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder, the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where the lock is: other tests measure this CPU, too
    return Path(shutil.copytree(made, tmp_path, dirs_exist_ok=True))


def test_there_are_commands_and_python() -> None:
    assert len(COMMANDS) >= 6
    assert PYTHON


@pytest.mark.parametrize("command", COMMANDS)
def test_command(command: str, demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(command)
    for part, compiler in (("bench list", os.environ.get("NVCC", "nvcc")), ("--device cpu", os.environ.get("CXX", "c++"))):
        if part in command and not shutil.which(compiler):
            pytest.skip(f"no {compiler} on this machine: `{command}` is not tried")
    before = set(demo.rglob("*"))
    code, said = main(words[1:]), capsys.readouterr()
    busy = "--device cpu" in command and "no ceiling was accepted" in said.err  # this machine does other work meanwhile
    assert code == (1 if busy else 0)
    if "-o" in words:
        assert (demo / words[words.index("-o") + 1]) in set(demo.rglob("*")) - before
    else:
        assert said.out.strip()


@pytest.mark.parametrize("text", PYTHON)
def test_python(text: str, demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scope: dict[str, object] = {}
    exec(text, scope)
    assert "sigma_gpp_gpu" in capsys.readouterr().out
    assert bytes(scope["svg"]).startswith(b"<?xml")  # type: ignore[call-overload]
    assert demo.is_dir()


@pytest.mark.parametrize("mark", ["demo", "tests"])
def test_set_up_blocks_are_where_continuous_integration_reads_them(mark: str) -> None:
    block = re.search(rf"^<!-- {mark} -->\n```sh\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
    assert block
    assert len(block[1].splitlines()) == 1


def test_commands_of_the_table_exist(capsys: pytest.CaptureFixture[str]) -> None:
    section = README.partition("## Commands")[2].partition("\n## ")[0].partition("A `REPORT` is")[0]
    commands = re.findall(r"^\| `([a-z]+)[ `]", section, flags=re.MULTILINE)
    assert len(commands) >= 12
    for command in commands:
        with pytest.raises(SystemExit) as exit_:
            main([command, "--help"])
        assert exit_.value.code == 0
        assert capsys.readouterr().out
