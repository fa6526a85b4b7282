"""`profile` while it runs: what the application writes comes at once, and whatever ends the program ends ncu."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.plugin.machine import profile
from tests.cli.command import assert_no_leftovers
from tests.machine.fakes import bare_machine, fake_ncu, program
from tests.processes import descendants, parents

ROOT = Path(__file__).resolve().parents[2]
# Ends by SIGTERM with an exception, as anything may.
PROGRAM = """
import signal, sys
from ncu_roofline.__main__ import main
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
sys.exit(main())
"""
SLOW = """#!{python}
import os, pathlib, sys, time
print("first", sys.stdout.isatty(), sys.stderr.isatty(), end="", flush=True)
pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))
time.sleep(60)
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")


class Profiling:
    """The program with a stand-in for ncu and an application that does not end."""

    def __init__(self, folder: Path, **options: Any) -> None:
        fake_ncu(folder / "bin")
        self.places = [folder / name for name in ("work", "temporary", "home")]
        for place in self.places:
            place.mkdir()
        app, begun = program(folder / "app", SLOW.format(python=sys.executable)), folder / "begun"
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
        environ |= {"HOME": str(folder / "home"), "TMPDIR": str(folder / "temporary")}
        words = [sys.executable, "-c", PROGRAM, "profile", "-o", "x", "--", str(app), str(begun)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        self.process = subprocess.Popen(words, cwd=folder / "work", env=environ, start_new_session=True, **pipes)
        deadline = time.monotonic() + 60
        while not begun.exists() or not begun.read_text():
            assert self.process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        self.tree, self.app = descendants(self.process.pid), int(begun.read_text())
        assert self.app in self.tree

    def assert_nothing_is_left(self) -> None:
        deadline = time.monotonic() + 60
        while alive := self.tree & parents().keys():
            assert time.monotonic() < deadline, alive
            time.sleep(0.02)
        for place in self.places[:2]:
            assert_no_leftovers(place)


def test_output_comes_at_once_and_sigterm_ends_ncu(tmp_path: Path) -> None:
    profiling = Profiling(tmp_path)
    assert profiling.process.stdout
    assert os.read(profiling.process.stdout.fileno(), 100) == b"first False False"  # which is no line yet
    profiling.process.terminate()
    profiling.process.wait(60)
    assert profiling.process.returncode == 143
    os.kill(profiling.app, signal.SIGKILL)  # that is for ncu to end, and the stand-in doesn't
    profiling.process.communicate(timeout=60)
    profiling.assert_nothing_is_left()


@pytest.mark.parametrize("to_all", [pytest.param(True, marks=pytest.mark.exhaustive), False])
def test_a_terminal_stays_one_and_an_interrupt_is_called_one(tmp_path: Path, to_all: bool) -> None:
    pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")
    ends = pty.openpty()
    profiling = Profiling(tmp_path, stdout=ends[1])
    assert b"first True False" in os.read(ends[0], 1000)
    pid = profiling.process.pid
    os.killpg(pid, signal.SIGINT) if to_all else os.kill(pid, signal.SIGINT)
    _, told = profiling.process.communicate(timeout=60)
    assert profiling.process.returncode == 130
    assert told.decode().splitlines()[-1] == "ncu-roofline: interrupted"
    assert b"memory" not in told
    profiling.assert_nothing_is_left()
    for handle in ends:
        os.close(handle)


def test_what_does_not_end_when_asked_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "_END_SECONDS", 0.3)
    stubborn = program(tmp_path / "ncu", "#!/bin/sh\ntrap '' TERM\necho begun > \"$2\"\nwhile :; do :; done\n")

    def fail(_: str) -> None:
        raise ValueError("no room to say it")

    others = descendants(os.getpid())  # of tests before: browsers and the like
    with pytest.raises(ValueError, match="no room"):
        profile.run(bare_machine(tmp_path, PATH=os.environ["PATH"]), [str(stubborn)], fail)
    assert descendants(os.getpid()) <= others
