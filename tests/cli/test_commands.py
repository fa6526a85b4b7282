"""What all commands have: help, usage errors, lists, consoles, readers that go away."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ncu_roofline
from ncu_roofline.analyses import ANALYSES, views
from ncu_roofline.chips import load_spec
from ncu_roofline.cli import COMMANDS
from ncu_roofline.cli.lists import LISTS
from ncu_roofline.formats.inputs import FORMATS
from tests.cli.command import Command
from tests.factory import complete, kernel, report

WRONG = """
nope; show; render r; list; list nope; show r --by nope; show r --clock fast; show r --source x; show r --nope;
show r --top 0; show r --top -1; show r --top many; show r --width 0; show r --launch x; show r --launch 1-;
show r --launch -1; show r --launch 1,,2; show r --kernel (; show r --nvtx [; explain r --by kernel;
render r -o x.html --theme pink; render r -o x.csv --table rows
"""


class TestList:
    @pytest.mark.parametrize("what", LISTS)
    def test_table_and_json_agree(self, run: Command, what: str) -> None:
        table = run("list", what)
        document = json.loads(run("list", what, "--json").out)
        assert (table.code, table.err) == (0, "")
        assert len(table.out.splitlines()) == len(document) + 1
        assert all(value in table.out for row in document for value in row.values())

    def test_everything_is_there(self, run: Command) -> None:
        def first(what: str) -> list[str]:
            return [next(iter(row.values())) for row in json.loads(run("list", what, "--json").out)]

        spec = load_spec()
        assert first("precisions") == [one.id for one in spec.precisions]
        assert first("levels") == [one.id for one in spec.levels]
        assert first("formats") == list(ANALYSES["roofline"].formats)
        assert first("inputs") == ["report", *(one.id for one in FORMATS)]
        assert len(first("architectures")) == len(spec.architectures)


class TestUsage:
    def test_help(self, run: Command) -> None:
        for command in COMMANDS:
            outcome = run(command, "--help")
            assert (outcome.code, outcome.err) == (0, "")
            assert outcome.out.startswith(f"usage: ncu-roofline {command}")
        assert COMMANDS["list"].endswith(": " + ", ".join(LISTS))
        assert all(row.holds == tuple(row.tables) for command in COMMANDS for row in views(command).values())

    def test_program(self, run: Command) -> None:
        assert run("--version").out == f"ncu-roofline {ncu_roofline.__version__}\n"
        outcome = run("--help")
        assert outcome.code == 0
        assert all(re.search(rf"^ +{command}\b", outcome.out, re.MULTILINE) for command in COMMANDS)

    @pytest.mark.parametrize("words", [words.strip() for words in WRONG.split(";")])
    def test_usage_errors(self, run: Command, words: str) -> None:
        outcome = run(*words.split())
        assert outcome.code == 2
        assert outcome.out == ""
        assert "ncu-roofline" in outcome.err
        assert "error: " in outcome.err
        assert "Traceback" not in outcome.err


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
@pytest.mark.parametrize("words", ["show", "render -o - --format csv"])
def test_a_reader_that_goes_away(tmp_path: Path, words: str) -> None:
    many = [kernel(complete(), f"void k{number}(int)") for number in range(100)]
    source = report(tmp_path / "r.ncu-rep", *many)
    line = f'"$0" -m ncu_roofline {words} "$1" | head -c 1 >/dev/null; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(
        ["bash", "-c", line, sys.executable, str(source)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_consoles_that_cannot_show_every_character(tmp_path: Path) -> None:
    source = report(tmp_path / "r.ncu-rep", kernel(complete(), "void \u4e2d\u6587(int)"))
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "ncu_roofline", "show", str(source)],
        capture_output=True,
        check=False,
        timeout=60,
        env=environment,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"1 TFLOP/s" in done.stdout
