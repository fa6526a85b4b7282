"""Ctrl-C, SIGTERM and SIGHUP: at most one line, exit code 128 + number, nothing half-written or temporary left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from ncu_roofline import cli
from ncu_roofline.base.errors import Terminated
from ncu_roofline.cli import ended_by_signals, main
from tests.cli.command import assert_no_leftovers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"
REPORT, CEILINGS = str(DEMO / "gpp-v100.ncu-rep"), str(DEMO / "gpp-v100-ceilings.json")
# Stands still in the middle of writing a result, or of running rules from a folder made for them; {more} comes before.
STANDING = """
import os, signal, sys, tempfile, time
from ncu_roofline.base import files
from ncu_roofline.cli import main
from ncu_roofline.plugin.nvrules import runner

def stand(*words):
    print("there", flush=True)
    time.sleep(300)

tempfile.tempdir = os.getcwd()
files.os.replace = runner.load_rules = stand
{more}
sys.exit(main(sys.argv[1:]))
"""
STARTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from ncu_roofline.__main__ import main
print("there", file=sys.stderr, flush=True)
sys.exit(main())
"""
FIRST_MOMENT = """
from unittest.mock import Mock
from ncu_roofline import __main__
__main__.signal.getsignal = Mock(side_effect=KeyboardInterrupt)
__main__.main()
"""
WORDS = {
    "help": ["--help"],
    "show": ["show", REPORT],
    "input": ["show", "-"],
    "html": ["render", REPORT, "-o", "out.html"],
    "advise": ["advise", REPORT, "--ceilings", CEILINGS],
    "annotate": ["annotate", REPORT, "-o", "out.ncu-rep"],
    "ranks": ["ranks", REPORT, "-o", "out.csv"],
}
BY_DEFAULT = (("help", 5), ("input", 1000), ("advise", 400))


@pytest.mark.parametrize(("name", "number"), [("ranks", signal.SIGTERM), ("advise", signal.SIGHUP)])
def test_nothing_is_left(tmp_path: Path, name: str, number: signal.Signals) -> None:
    """Under nohup, which ignores SIGHUP, a closed terminal is nothing."""
    nohup = "signal.signal(signal.SIGHUP, signal.SIG_IGN)" if number == signal.SIGTERM else ""
    words = [sys.executable, "-c", STANDING.replace("{more}", nohup), *WORDS[name]]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert process.stdout
    assert process.stdout.readline() == "there\n", process.communicate()
    assert list(tmp_path.iterdir())
    if nohup:
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (128 + number, "", f"ncu-roofline: ended by {number.name}\n")
    assert_no_leftovers(tmp_path)


def test_handlers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Tidying up is not disturbed, who listens already goes on listening, and other threads have no signals."""
    steps: list[object] = []

    def tidying() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            steps.append("begun")
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGHUP)
            steps.append("ended")

    def load(*_: object) -> None:  # as numpy, whose extension modules forget what kept them from being loaded
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise ImportError("numpy C-extensions failed")

    with pytest.raises(Terminated) as caught, ended_by_signals():
        tidying()
    assert (steps, caught.value.number) == (["begun", "ended"], signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    thread = threading.Thread(target=lambda: steps.append(main(["show", "missing.ncu-rep"])))
    thread.start()
    thread.join()
    before = [signal.signal(signal.SIGTERM, lambda number, _: steps.append(number))]
    before.append(signal.signal(signal.SIGINT, signal.default_int_handler))
    try:
        with ended_by_signals():
            os.kill(os.getpid(), signal.SIGTERM)
        assert steps[2:] == [1, signal.SIGTERM]
        monkeypatch.setattr(cli, "parse", load)
        capsys.readouterr()
        assert (main(["show", REPORT]), signal.getsignal(signal.SIGINT)) == (130, signal.default_int_handler)
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])
    assert capsys.readouterr() == ("", "ncu-roofline: interrupted\n")


def test_the_first_moment() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_MOMENT], capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"ncu-roofline: interrupted\n")


@pytest.mark.parametrize(
    ("name", "milliseconds"),
    [
        pytest.param(
            name,
            moment,
            marks=() if (name, moment) in (("help", 5), ("input", 1000), ("advise", 400)) else pytest.mark.exhaustive,
        )
        for name in WORDS
        for moment in (5, 20, 50, 100, 200, 300, 400, 600, 800, 1000, 1300)
    ],
)
def test_ctrl_c(tmp_path: Path, name: str, milliseconds: int) -> None:
    """Ctrl-C so long after the command began: it is told, or the command was done; what is there is whole."""
    temporary, place = tmp_path / "temporary", tmp_path / "place"
    temporary.mkdir()
    place.mkdir()
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    environment = {**os.environ, "TMPDIR": str(temporary)}
    words = [sys.executable, "-c", STARTED, *WORDS[name]]
    with subprocess.Popen(words, cwd=place, env=environment, **pipes) as process:  # type: ignore[call-overload]
        assert process.stderr.readline() == b"there\n"
        time.sleep(milliseconds * 1e-3)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    done, stopped = b"".join(f"Wrote {path.name}\n".encode() for path in place.iterdir()), b"ncu-roofline: interrupted\n"
    assert (process.returncode, told) in [(130, stopped), (130, done + stopped), (0, done), (-2, done)]
    assert not list(temporary.iterdir())
    for path in place.iterdir():
        assert path.name in WORDS[name]
        assert name != "html" or path.read_bytes().rstrip(b"\n").endswith(b"</html>")
