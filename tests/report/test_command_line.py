"""The recorded command line of ncu: options, and the application behind them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from ncu_roofline.formats.report.session import _KNOWN, _SHORT, _SWITCHES, CommandLine, Session, read_command_line


def kept(line: CommandLine) -> list[str]:
    return [word for option in line.options if not option.replaced for word in option.words]


@pytest.mark.parametrize(
    ("line", "words", "application"),
    [
        ("", [], ()),
        (
            "ncu -f -o x -k regex:[Bb]ench --kernel-name-base demangled ./a -k",
            ["-k", "regex:[Bb]ench", "--kernel-name-base", "demangled"],
            ("./a", "-k"),
        ),
        (
            "ncu --set full --launch-skip 29 --launch-count 5 --print-summary per-kernel mpiexec -n 1 ./a",
            ["--launch-skip", "29", "--launch-count", "5"],
            ("mpiexec", "-n", "1", "./a"),
        ),
        ("ncu --section A --metrics a,b -c10 --clock-control=none ./a", ["-c10", "--clock-control=none"], ("./a",)),
        ("ncu --nvtx --nvtx-include A@B/ --csv --page raw ./a", ["--nvtx", "--nvtx-include", "A@B/"], ("./a",)),
        ("ncu --apply-rules no --section-folder d --rule X --list-metrics --query-metrics-mode all ./a", [], ("./a",)),
        # Beginnings of names stand for them where no other name begins so.
        ("ncu --launch-c 5 --forc --exp x ./a", ["--launch-c", "5"], ("./a",)),
        # Options of later releases: a value of their own, none before another option.
        ("ncu --communicator shmem --lockstep --new=1 ./a", ["--communicator", "shmem", "--lockstep", "--new=1"], ("./a",)),
        # The path of the profiler may hold blanks, and a backslash is no escape: the shell was there before.
        (r"C:\Program Files\Nsight Compute 2024.1\ncu.exe -k regex:a\d+ C:\a.exe", ["-k", r"regex:a\d+"], (r"C:\a.exe",)),
        (
            r'"C:\Program Files\Nsight Compute 2024.1\ncu.exe" -k "regex:a b" "C:\my files\a.exe"',
            ["-k", "regex:a b"],
            (r"C:\my files\a.exe",),
        ),
        # Quotes inside words and open ones are part of what ncu got.
        ('ncu --set full -o x python t.py --cfg {"lr":0.1}', [], ("python", "t.py", "--cfg", '{"lr":0.1}')),
        ("""ncu ./a {"x":"y z"} "b", 'c'd""", [], ("./a", '{"x":"y', 'z"}', '"b",', "'c'd")),
        ("ncu --kernel-name regex:it's ./app 'x", ["--kernel-name", "regex:it's"], ("./app", "'x")),
        ("ncu ./app 'x \"y z", [], ("./app", "'x", '"y', "z")),
        ("ncu -c 3 -- ./app -o result.txt -c 3", ["-c", "3"], ("./app", "-o", "result.txt", "-c", "3")),
        ("ncu --new -- -app --", ["--new"], ("-app", "--")),
        ("ncu -o", [], ()),
    ],
)
def test_options_that_stay(line: str, words: list[str], application: tuple[str, ...]) -> None:
    read = read_command_line(line)
    assert (kept(read), read.application) == (words, application)


@pytest.mark.parametrize("words", ["--clock-control none", "--clock-control=none", "--clock-cont none"])
def test_value_of_an_option(words: str) -> None:
    line = read_command_line(f"ncu -c5 {words} ./a --clock-control base")
    assert (line.value("--clock-control"), line.value("--launch-count"), line.value("--nvtx")) == ("none", "5", "")


def test_read_once() -> None:
    session = Session(command_line="ncu -c 5 ./read-once")
    misses = read_command_line.cache_info().misses
    assert session.application == session.command.application == ("./read-once",)
    assert session.command is session.command
    assert read_command_line.cache_info().misses == misses + 1


@pytest.mark.exhaustive
@pytest.mark.ncu
def test_options_of_real_releases(ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    for release, binary in ncu_releases.items():
        done = subprocess.run(
            [binary, "--help"], capture_output=True, text=True, env={**os.environ, "HOME": str(tmp_path)}, check=False
        )
        found = re.findall(r"^  (?:(-\w) \[ )?(--[\w-]+)(?: \])?( arg)?", done.stdout, re.MULTILINE)
        assert len(found) > 50, release
        for short, name, value in found:
            assert not short or _SHORT[short] in (name, "--kernel-name"), (release, short)  # 2020.3: --kernel-regex
            assert name in _KNOWN, (release, name)
            assert (name in _SWITCHES) == (not value), (release, name)
