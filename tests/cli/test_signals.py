"""SIGTERM and SIGHUP: what is temporary goes away, exit code 128 and the signal's number, one line, no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ncu_roofline.base.errors import Terminated
from ncu_roofline.cli import ended_by_signals, main
from tests.cli.command import assert_no_leftovers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"
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
WORDS = {
    "render": ["render", str(DEMO / "gpp-v100.ncu-rep"), "-o", "out.csv"],
    "annotate": ["annotate", str(DEMO / "gpp-v100.ncu-rep"), "-o", "out.ncu-rep", "--no-rules"],
    "advise": ["advise", str(DEMO / "gpp-v100.ncu-rep"), "--ceilings", str(DEMO / "gpp-v100-ceilings.json")],
}


def standing(folder: Path, words: list[str], ignore: bool = False) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", STANDING.replace("{ignore}", str(ignore)), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
    )
    assert process.stdout
    assert process.stdout.readline() == "there\n", process.communicate()
    assert list(folder.iterdir())
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("name", WORDS)
def test_nothing_is_left(tmp_path: Path, name: str, number: signal.Signals) -> None:
    process = standing(tmp_path, WORDS[name])
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (128 + number, "")
    assert err == f"ncu-roofline: ended by {number.name}\n"
    assert_no_leftovers(tmp_path)


def test_under_nohup_a_closed_terminal_is_nothing(tmp_path: Path) -> None:
    process = standing(tmp_path, WORDS["render"], ignore=True)
    process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
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
