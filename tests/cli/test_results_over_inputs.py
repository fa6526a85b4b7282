"""No result replaces what its command reads, whatever the two are called: every command that writes, every option it reads."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.cli import COMMANDS, declare
from ncu_roofline.cli.outputs import check_unread
from tests.cli.command import Command, assert_refused
from tests.factory import complete, kernel, report
from tests.machine.fakes import fake_ncu

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"
# How the values of options that name files are called in the help.
_FILES = ("FILE", "REPORT", "CEILINGS", "PATH", "ADDRESS", "APPLICATION")
LINES = Path(__file__).with_suffix("").with_name("results_over_inputs.txt").read_text().splitlines()[1:]
CASES = {(command, given): words for command, given, words in (line.split(": ") for line in LINES)}
# The result as the command has it of the file: a folder of sections two above it, and names without their suffix.
NAMES = {
    "generate": ("sections/InstructionRooflineChart.section", lambda path: path.parent.parent),
    "profile --ceilings": ("x.html", lambda path: path.with_suffix("")),
    "profile": ("x.ncu-rep", lambda path: path.with_suffix("")),
}


def options() -> Iterator[tuple[str, str]]:
    """Each command that writes, with the options that name what it reads."""
    for name in COMMANDS:
        parser = argparse.ArgumentParser()
        declare(parser, name)
        inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        for action, one in inner[0].choices.items() if inner else [("", parser)]:
            told = [option for option in one._actions if option.help != argparse.SUPPRESS]  # others are refused with advice
            named = [option for option in told if any(word in (option.metavar or "") for word in _FILES)]
            begins = ("write", "file to write", "picture to write")
            writes = {"-o" in option.option_strings or (option.help or "").startswith(begins): option for option in told}
            for option in named if True in writes else ():
                if "-o" not in option.option_strings and not (option.help or "").startswith(begins):
                    yield f"{name} {action}".strip(), (option.option_strings or [option.dest])[0]


def test_every_option_is_tried() -> None:
    assert set(options()) == set(CASES)


def spelled(path: Path, _: Path) -> Path:
    return Path(f"{path.parent}{os.sep}.{os.sep}..{os.sep}{path.parent.name}{os.sep}{path.name}")


def linked(path: Path, other: Path) -> Path:
    other.symlink_to(path)
    return other


def hard_linked(path: Path, other: Path) -> Path:
    os.link(path, other)
    return other


ALIASES = {"link": linked, "same": lambda path, _: path, "spelled": spelled, "hard link": hard_linked}


@pytest.mark.parametrize(
    ("case", "alias"),
    [
        pytest.param(case, alias, marks=() if alias == "link" or case == ("render", "reports") else pytest.mark.exhaustive)
        for case in CASES
        for alias in ALIASES
    ],
    ids=lambda one: one if isinstance(one, str) else " ".join(one),
)
def test_refused(run: Command, tmp_path: Path, case: tuple[str, str], alias: str) -> None:
    command, given = case
    name, output = NAMES.get(" ".join(case), NAMES.get(command, ("x.json", lambda path: path)))
    path, other = tmp_path / "a" / name, tmp_path / "b" / name
    path.parent.mkdir(parents=True)
    other.parent.mkdir(parents=True)
    sample, ncu, ceilings = (
        report(tmp_path / "r.ncu-rep", kernel(complete())),
        fake_ncu(tmp_path),
        DEMO / "gpp-v100-ceilings.json",
    )
    reports = dict.fromkeys(("reports", "report", "inputs"), sample)
    shutil.copy2({"--ncu": ncu, "--runner": ncu, **reports}.get(given, ceilings), path)
    before = path.read_bytes()
    places = {"x": path, "out": output(ALIASES[alias](path, other)), "report": sample, "ceilings": ceilings, "ncu": ncu}
    words = CASES[case] if command == "profile" else f"{CASES[case]} --force"
    outcome = run(*(word.format(**places) for word in words.split()))
    assert path.read_bytes() == before
    assert (outcome.code, outcome.err.count("\n")) == (1, 1), outcome
    assert "it is one of the files that the command reads" in outcome.err


def test_what_folders_patterns_and_auto_stand_for(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [report(tmp_path / f"{letter}.ncu-rep", kernel(complete())) for letter in "ab"]
    before = paths[1].read_bytes()
    for named in (tmp_path, tmp_path / "*.ncu-rep"):
        assert_refused(run("render", named, "-o", paths[1], "--format", "csv", "--force"), paths[1])
        assert paths[1].read_bytes() == before
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    kept = tmp_path / "ncu-roofline" / "ceilings" / "v100.json"
    kept.parent.mkdir(parents=True)
    shutil.copy(DEMO / "gpp-v100-ceilings.json", kept)
    assert_refused(run("render", paths[0], "--ceilings", "auto", "-o", kept, "--force"), kept)


def test_what_is_not_there_is_nobodys_input(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.touch()
    for output, inputs in ((tmp_path / "new", [there]), (there, [tmp_path / "missing"]), (there, []), (Path("a\0b"), [there])):
        check_unread(str(output), map(str, inputs))
    with pytest.raises(RooflineError, match=r"it is one of the files that the command reads\. Give the result another name\."):
        check_unread(str(there), [str(there)])
