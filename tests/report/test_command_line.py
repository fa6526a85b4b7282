"""The recorded command line of ncu: options, and the application behind them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from ncu_roofline.formats.report.session import Session, ncu_options, read_command_line
from tests.golden import assert_golden

LINES = Path(__file__).with_name("golden") / "command_lines.txt"


def test_options_that_stay_and_the_application() -> None:
    """Below each line of the file that begins with "$", the options that another command keeps, and the application."""
    text = ""
    for line in LINES.read_text("utf-8").splitlines():
        if not line.startswith("  "):
            text += f"{line}\n"
        if line.startswith("$"):
            session = Session(command_line=line[2:])
            kept = [word for option in session.command.options if not option.replaced for word in option.words]
            text += f"  {kept} {list(session.application)}\n"
            assert session.application == session.command.application
    assert_golden(LINES, text)


@pytest.mark.parametrize("words", ["--clock-control none", "--clock-control=none", "--clock-cont none"])
def test_value_of_an_option(words: str) -> None:
    line = read_command_line(f"ncu -c5 {words} ./a --clock-control base")
    assert (line.value("--clock-control"), line.value("--launch-count"), line.value("--nvtx")) == ("none", "5", "")
    assert read_command_line(f"ncu -c5 {words} ./a --clock-control base") is line


@pytest.mark.exhaustive
@pytest.mark.ncu
def test_options_of_real_releases(ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    switches, values, _, short_names = ncu_options()
    for release, binary in ncu_releases.items():
        words, home = [binary, "--help"], {**os.environ, "HOME": str(tmp_path)}
        done = subprocess.run(words, capture_output=True, text=True, env=home, check=False)
        found = re.findall(r"^  (?:(-\w) \[ )?(--[\w-]+)(?: \])?( arg)?", done.stdout, re.MULTILINE)
        assert len(found) > 50, release
        for short, name, value in found:
            assert not short or short_names[short] in (name, "--kernel-name"), (release, short)  # 2020.3: --kernel-regex
            assert name in switches | values, (release, name)
            assert (name in switches) == (not value), (release, name)
