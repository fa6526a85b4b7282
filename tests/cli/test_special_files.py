"""Devices, sockets and pipes as inputs: whatever a command does with a file, it says in a sentence what they are."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.cli.command import Command, assert_refused

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"
# One command of each reader: reports, ceilings in three places, and what runs before any reader.
READING = {
    "show": "show {x}",
    "annotate": "annotate {x} -o {out}",
    "compare": "compare {report} {x}",
    "portability": "portability {x}",
    "ceilings": "show {report} --ceilings {x}",
    "generate": "generate --ceilings {x} -o {out}",
    "check": "check {x}",
    "bench merge": "bench merge {x}",
    "install": "install --ceilings {x} --dest {out}",
}
WHAT = {"device": "it is a device", "socket": "it is a socket"}


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Path]:
    return {"report": DEMO / "gpp-v100.ncu-rep", "ceilings": DEMO / "gpp-v100-ceilings.json", "out": tmp_path / "out"}


def special(folder: Path, kind: str) -> Path:
    if kind == "device":
        return Path("/dev/zero")
    path = folder / kind
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.fspath(path))
    return path


@pytest.mark.parametrize("kind", WHAT)
def test_refused(run: Command, tmp_path: Path, given: dict[str, Path], kind: str) -> None:
    given["x"] = special(tmp_path, kind)
    for words in READING.values():
        outcome = run(*(word.format(**given) for word in words.split()))
        assert_refused(outcome, given["x"])
        assert WHAT[kind] in outcome.err


def poured(folder: Path, data: bytes, wait: float = 0.0) -> Path:
    """A pipe into which a thread writes ``data``, some seconds after it opened it."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)

    def pour() -> None:
        with open(pipe, "wb", buffering=0) as file:
            threading.Event().wait(wait)
            file.write(data)

    threading.Thread(target=pour, daemon=True).start()
    return pipe


@pytest.mark.parametrize("wait", [0.0, 0.5])  # longer than one is waited for who writes
def test_a_writer_may_take_its_time(run: Command, tmp_path: Path, given: dict[str, Path], wait: float) -> None:
    plain = run("show", given["report"], "--ceilings", given["ceilings"])
    pipe = poured(tmp_path, given["ceilings"].read_bytes(), wait)
    outcome = run("show", given["report"], "--ceilings", pipe)
    assert outcome.code == 0, outcome
    assert outcome.out.replace(str(pipe), "") == plain.out.replace(str(given["ceilings"]), "")


def test_a_table_from_a_pipe(run: Command, tmp_path: Path) -> None:
    pipe = poured(tmp_path, b"name,flops,bytes,seconds\nsaxpy,1e9,1e8,0.1\n")
    outcome = run("show", pipe)
    assert_refused(outcome, pipe)
    assert "Write it to a file and pass that" in outcome.err


def test_a_pipe_without_end_for_ceilings(
    run: Command, tmp_path: Path, given: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ncu_roofline.formats.ceilings.MOST_BYTES", 10_000)
    pipe = poured(tmp_path, b" " * 20_000)
    outcome = run("show", given["report"], "--ceilings", pipe)
    assert_refused(outcome, pipe)
    assert "it has more than 0.01 MB" in outcome.err


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
def test_what_a_shell_substitutes(given: dict[str, Path]) -> None:
    line = '"$0" -m ncu_roofline show <(sleep 0.3; cat "$1") --ceilings <(cat "$2")'
    words = ["bash", "-c", line, sys.executable, str(given["report"]), str(given["ceilings"])]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done
    assert "V100-SXM2-16GB" in done.stdout
