"""The man page: what .ci/man makes of the options, taken by the programs that show man pages, in the wheel."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ncu_roofline.cli.parser import COMMANDS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "ncu_roofline" / "data" / "man" / "ncu-roofline.1"


def test_it_is_up_to_date() -> None:
    words = [sys.executable, str(ROOT / ".ci" / "man"), "--check"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_every_command_is_there() -> None:
    text = PAGE.read_text(encoding="ascii").replace("\\-", "-")
    assert all(f'.SS "ncu-roofline {name}' in text for name in COMMANDS)
    assert "\\fB--precision\\fR" in text


@pytest.mark.parametrize(
    "words", [("groff", "-ww", "-man", "-Tutf8"), ("man", "--warnings", "-l"), ("mandoc", "-Tlint", "-Werror")]
)
def test_programs_take_it(words: tuple[str, ...]) -> None:
    if not shutil.which(words[0]):
        pytest.skip(f"no {words[0]}")
    done = subprocess.run([*words, str(PAGE)], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "ncu-roofline" in done.stdout or words[0] == "mandoc"


def test_the_wheel_has_it() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        shared = tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert {ROOT / source: place for source, place in shared.items()} == {PAGE: "share/man/man1/ncu-roofline.1"}
