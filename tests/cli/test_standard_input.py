"""The report `-` is standard input, in all commands that take reports."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.cli import COMMANDS, main
from ncu_roofline.cli.reading import STANDARD_INPUT_NAME as NAME
from ncu_roofline.formats.report import framing
from tests.cli.command import Command, Outcome, assert_no_leftovers, assert_refused
from tests.factory import complete, kernel, report
from tests.made_up_code import smooth

TAKING = {
    "show": ["show", "-"],
    "nothing": ["-"],
    "json": ["show", "--json", "-"],
    "render": ["render", "-", "-o", "-", "--format", "csv"],
    "explain": ["explain", "-"],
    "advise": ["advise", "-"],
    "compare": ["compare", "-", "{source}"],
    "ranks": ["ranks", "-"],
    "source": ["source", "-"],
    "annotate": ["annotate", "-", "-o", "{folder}/out.ncu-rep"],
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return report(tmp_path / "r.ncu-rep", kernel(complete(), "void compute(int)"), smooth())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def piped(run: Command, place: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Runs a command with bytes on its standard input; nothing temporary is left."""

    def piped_to(data: bytes, *words: object) -> Outcome:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        outcome = run(*words)
        assert_no_leftovers(place)
        return outcome

    return piped_to


def test_every_command(piped: Callable[..., Outcome], source: Path, place: Path, tmp_path: Path) -> None:
    for name, line in TAKING.items():
        outcome = piped(source.read_bytes(), *(word.format(source=source, folder=tmp_path) for word in line))
        assert outcome.code == 0, outcome
        assert NAME in outcome.out or name == "ranks"  # which names outliers only
        assert str(place) not in outcome.out + outcome.err


def test_a_process_reads_its_own(source: Path) -> None:
    words = [sys.executable, "-m", "ncu_roofline", "show", "-"]
    done = subprocess.run(words, input=source.read_bytes(), capture_output=True, check=False, timeout=60)
    assert (done.returncode, b"compute" in done.stdout) == (0, True)


def test_what_takes_reports_is_tried_here() -> None:
    taking = {name for name in COMMANDS if "REPORT" in _usage(name)}
    assert taking == {words[0] for words in TAKING.values()} - {"-"}


def _usage(command: str) -> str:
    from ncu_roofline.cli import command_line

    (commands,) = command_line()._subparsers._group_actions  # type: ignore[union-attr]
    return str(commands.choices[command].format_usage()).replace("[PLATFORM=]", "")  # type: ignore[index, call-overload]


def test_other_tools_files(piped: Callable[..., Outcome]) -> None:
    table = b"kernel,seconds,flops_fp64,bytes_dram\ntriad,0.001,2e9,2.4e10\n"
    outcome = piped(table, "show", "-")
    assert (outcome.code, "triad" in outcome.out) == (0, True)


def test_what_is_no_report(piped: Callable[..., Outcome], source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for data, said in ((b"", "the file is empty"), (b"no report\n", "it is a text file")):
        outcome = piped(data, "show", "-")
        assert_refused(outcome, NAME)
        assert said in outcome.err
    outcome = piped(b"", "show", "--keep-going", "-", source)
    assert (outcome.code, "compute" in outcome.out) == (1, True)
    assert outcome.err.startswith(f"ncu-roofline: Cannot read {NAME}: ")
    monkeypatch.setattr(framing, "MOST_BYTES", 10_000)
    outcome = piped(b"NVR\0" + b"x" * 200_000, "show", "-")
    assert_refused(outcome, NAME)
    assert "it has more than" in outcome.err


def test_usage(run: Command, piped: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read once, workers elsewhere have another, and there may be none."""
    for words in (["show", "-", "-"], ["compare", "-", "-"]):
        assert_refused(piped(b"", *words), NAME, code=2)
    assert_refused(piped(b"", "show", "-", "--dask", "tcp://nowhere:1"), "tcp://nowhere:1", code=2)
    monkeypatch.setattr("sys.stdin", None)
    assert_refused(run("show", "-"), NAME, code=2)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
def test_a_terminal_is_not_waited_for() -> None:
    import pty

    main_end, other_end = pty.openpty()
    words = [sys.executable, "-m", "ncu_roofline", "show", "-"]
    done = subprocess.run(words, stdin=other_end, capture_output=True, text=True, check=False, timeout=60)
    os.close(main_end)
    os.close(other_end)
    assert_refused(Outcome(done.returncode, done.stdout, done.stderr), NAME, code=2)


class _Endless(io.RawIOBase):
    """What `yes` writes."""

    taken = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.taken += len(buffer)
        assert self.taken < 1e6
        buffer[:] = b"y\n" * (len(buffer) // 2) + b"y" * (len(buffer) % 2)
        return len(buffer)


def test_what_nobody_reads_is_refused_by_its_beginning(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(_Endless())))
    outcome = run("show", "-")
    assert_refused(outcome, NAME)
    assert "it is a text file" in outcome.err


@pytest.mark.parametrize("words", [["-"], ["KNL=-"], ["A={report}", "B=-"]])
def test_platforms(piped: Callable[..., Outcome], words: list[str]) -> None:
    demo = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"
    table = (demo / "gpp-platforms.csv").read_text()
    lines = table if words == ["-"] else "\n".join(line for line in table.splitlines() if "V100" not in line)
    outcome = piped(lines.encode(), "portability", *(word.format(report=demo / "gpp-v100.ncu-rep") for word in words))
    assert outcome.code == 0, outcome


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_interrupted_while_it_waits(place: Path) -> None:
    words = [sys.executable, "-m", "ncu_roofline", "show", "-"]
    environment = {**os.environ, "TMPDIR": str(place)}
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        deadline = time.monotonic() + 30
        while not list(place.glob(f"*/{NAME}")) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "ncu-roofline: interrupted\n")
    assert_no_leftovers(place)


def test_a_file_of_that_name_is_a_path(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(source.parent)
    source.rename("-")
    assert main(["show", "./-"]) == 0
