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
# Stands still in the middle of writing a result, or of running rules from a folder made for them.
STANDING = """
import os, signal, sys, tempfile, time
from ncu_roofline.base import files
from ncu_roofline.cli import main
from ncu_roofline.plugin.nvrules import runner

tempfile.tempdir = os.getcwd()

def stand(*words):
    print("there", flush=True)
    time.sleep(300)

files.os.replace = stand
runner.load_rules = stand
if {ignore}:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
sys.exit(main(sys.argv[1:]))
"""
STANDING_WORDS = {
    "render": ["render", REPORT, "-o", "out.csv"],
    "advise": ["advise", REPORT, "--ceilings", CEILINGS],
}
STARTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the test's own parent ignores it
from ncu_roofline.__main__ import main
print("there", file=sys.stderr, flush=True)
sys.exit(main())
"""
WORDS = {
    "help": ["--help"],
    "show": ["show", REPORT],
    "input": ["show", "-"],
    "png": ["render", REPORT, "-o", "out.png"],
    "html": ["render", REPORT, "-o", "out.html"],
    "advise": ["advise", REPORT, "--ceilings", CEILINGS],
    "annotate": ["annotate", REPORT, "-o", "out.ncu-rep"],
    "ranks": ["ranks", REPORT, "-o", "out.csv"],
}
ENDS = {".png": b"IEND\xaeB`\x82", ".html": b"</html>"}


def standing(folder: Path, words: list[str], ignore: bool = False) -> subprocess.Popen[str]:
    program = [sys.executable, "-c", STANDING.replace("{ignore}", str(ignore)), *words]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)
    assert process.stdout
    assert process.stdout.readline() == "there\n", process.communicate()
    assert list(folder.iterdir())
    return process


@pytest.mark.parametrize(("name", "number"), [("render", signal.SIGTERM), ("advise", signal.SIGHUP)])
def test_nothing_is_left(tmp_path: Path, name: str, number: signal.Signals) -> None:
    process = standing(tmp_path, STANDING_WORDS[name])
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (128 + number, "", f"ncu-roofline: ended by {number.name}\n")
    assert_no_leftovers(tmp_path)


def test_under_nohup_a_closed_terminal_is_nothing(tmp_path: Path) -> None:
    process = standing(tmp_path, STANDING_WORDS["render"], ignore=True)
    process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM


def test_tidying_up_is_not_disturbed() -> None:
    steps = []

    def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            steps.append("begun")
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGHUP)
            steps.append("ended")

    with pytest.raises(Terminated) as caught, ended_by_signals():
        work()
    assert steps == ["begun", "ended"]
    assert caught.value.number == signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_who_listens_already_goes_on_listening() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        with ended_by_signals():
            os.kill(os.getpid(), signal.SIGTERM)
        assert heard == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_commands_of_another_thread() -> None:
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(main(["show", "missing.ncu-rep"])))
    thread.start()
    thread.join()
    assert codes == [1]


def interrupted(folder: Path, name: str, milliseconds: int) -> None:
    """Ctrl-C so long after the command began: it is told, or the command was done; what is there is whole."""
    temporary, place = folder / f"temporary-{milliseconds}", folder / f"place-{milliseconds}"
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
    done = [f"Wrote {path.name}\n".encode() for path in place.iterdir()]
    assert (process.returncode, told) in [(130, b"ncu-roofline: interrupted\n"), *((code, b"".join(done)) for code in (0, -2))]
    assert not list(temporary.iterdir())
    for path in place.iterdir():
        assert path.name in WORDS[name]
        assert path.read_bytes().rstrip(b"\n").endswith(ENDS.get(path.suffix, b""))


@pytest.mark.parametrize(("name", "milliseconds"), [("help", 5), ("show", 200), ("advise", 400)])
def test_ctrl_c(tmp_path: Path, name: str, milliseconds: int) -> None:
    interrupted(tmp_path, name, milliseconds)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", WORDS)
def test_ctrl_c_at_any_moment(tmp_path: Path, name: str) -> None:
    for milliseconds in (5, 20, 50, 100, 200, 300, 400, 600, 800, 1000, 1300):
        interrupted(tmp_path, name, milliseconds)


def test_an_import_that_makes_another_error_of_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """As that of numpy, whose extension modules forget what kept them from being loaded."""

    def load(*_: object) -> None:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise ImportError("numpy C-extensions failed")

    monkeypatch.setattr(cli, "parse", load)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert (cli.main(["show", REPORT]), signal.getsignal(signal.SIGINT)) == (130, signal.default_int_handler)
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr() == ("", "ncu-roofline: interrupted\n")


def test_the_first_moment() -> None:
    program = """
from ncu_roofline import __main__

def interrupted(*_):
    raise KeyboardInterrupt

__main__.signal.getsignal = interrupted
__main__.main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"ncu-roofline: interrupted\n")
