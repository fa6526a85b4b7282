"""Reports from links, standard input, pipes, devices and sockets, in one process or several; words are in `reading.session`."""

from __future__ import annotations

import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from ncu_roofline import compare
from ncu_roofline.analyses import portability as platforms
from ncu_roofline.base.files import REPORT_SUFFIXES
from ncu_roofline.cli import COMMANDS, executors
from ncu_roofline.cli.reading import STANDARD_INPUT_NAME, expand
from ncu_roofline.formats.report import framing
from tests.cli.command import Command, Outcome, assert_no_leftovers, assert_refused
from tests.factory import complete, kernel, report

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"
REPORT, CEILINGS = DEMO / "gpp-v100.ncu-rep", DEMO / "gpp-v100-ceilings.json"
posix = pytest.mark.skipif(sys.platform == "win32", reason="there is no such thing")


@posix
def test_a_link_and_its_file_are_one_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert REPORT_SUFFIXES == (".ncu-rep", ".ncu-repz", ".nsight-cuprof-report")
    monkeypatch.chdir(tmp_path)
    Path("a.ncu-rep").touch()
    Path("link.ncu-rep").symlink_to("a.ncu-rep")
    Path("loop").symlink_to(".")
    Path("folder.ncu-rep").mkdir()
    assert expand(["link.ncu-rep", "a.ncu-rep"]) == ["link.ncu-rep"]
    assert len(expand(["."])) == 1


def test_several_processes_give_the_same(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = ([1e-3 * (number + 1)] * (number + 1) for number in range(4))
    paths = [report(tmp_path / f"{len(some)}.ncu-rep", *(kernel(complete(seconds=one)) for one in some)) for some in times]
    bad = tmp_path / "2b.ncu-rep"
    bad.write_bytes(b"text")
    one_by_one = run(*(words := ("show", "--json", *paths[:2], bad, *paths[2:], "--keep-going")))
    monkeypatch.setattr(executors, "PARALLEL_FROM_BYTES", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert run(*words) == one_by_one
    assert len(json.loads(one_by_one.out)["kernels"]) == 10


def test_an_error_that_nobody_foresaw_costs_its_input(run: Command, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of portability, whose inputs are of several kinds; a comparison needs two states."""
    read = platforms._read

    def broken(one: platforms.Platform, *rest: object) -> object:
        return 1 / 0 if one.path == str(REPORT) else read(one, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(platforms, "_read", broken)
    assert_refused(run("portability", f"A={source}", f"B={REPORT}"), REPORT)
    outcome = run("portability", f"A={source}", f"B={REPORT}", "--keep-going")
    assert (outcome.code, "A " in outcome.out, "This is a bug" in outcome.err) == (1, True, True)
    with pytest.raises(TypeError, match="two states or more"):
        compare(source)


def test_what_nobody_reads_is_refused(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its beginning, by its size, or as there is none; nothing temporary is left, and its name not told."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(framing, "MOST_BYTES", 10_000)
    endless = io.BytesIO(b"y\n" * 5_000_000)  # as `yes` writes it
    for stream, said, code in (
        (io.BytesIO(b""), "the file is empty", 1),
        (endless, "it is a text file", 1),
        (io.BytesIO(b"NVR\0" + b"x" * 200_000), "it has more than", 1),
        (None, "", 2),
    ):
        monkeypatch.setattr("sys.stdin", stream and io.TextIOWrapper(stream))
        outcome = run("show", "-")
        assert_refused(outcome, STANDARD_INPUT_NAME, code)
        assert (said in outcome.err, str(tmp_path) in outcome.err) == (True, False)
        assert_no_leftovers(tmp_path)
        assert stream is not endless or endless.tell() < 1e6


def test_what_takes_reports_is_in_the_session(run: Command) -> None:
    sessions = (Path(__file__).with_name(f"{name}.session") for name in ("reading", "portability"))
    text = "".join(path.read_text(encoding="utf-8") for path in sessions)
    for command in COMMANDS:
        usage = run(command, "--help").out.partition("\n\n")[0].replace("[PLATFORM=]FILE [", "REPORT [")
        assert " REPORT" not in usage or f"$ ncu-roofline {command} " in text, command


@posix
def test_a_terminal_is_not_waited_for() -> None:
    import pty

    main_end, other_end = pty.openpty()
    words = [sys.executable, "-m", "ncu_roofline", "show", "-"]
    done = subprocess.run(words, stdin=other_end, capture_output=True, text=True, check=False, timeout=60)
    os.close(main_end)
    os.close(other_end)
    assert_refused(Outcome(done.returncode, done.stdout, done.stderr), STANDARD_INPUT_NAME, code=2)


@posix
@pytest.mark.parametrize("kind", ["device", "socket"])
def test_devices_and_sockets(run: Command, tmp_path: Path, kind: str) -> None:
    """One command of each reader: reports, ceilings in three places, and what runs before any reader."""
    path = Path("/dev/zero") if kind == "device" else tmp_path / "socket"
    if kind == "socket":
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(os.fspath(path))
    lines = "show {x}, annotate {x} -o {out}, compare {report} {x}, portability {x}, show {report} --ceilings {x}, check {x}, "
    lines += "generate --ceilings {x} -o {out}, bench merge {x}, install --ceilings {x} --dest {out}"
    for line in lines.split(", "):
        outcome = run(*(word.format(x=path, report=REPORT, out=tmp_path / "out") for word in line.split()))
        assert_refused(outcome, path)
        assert f"it is a {kind}" in outcome.err


def poured(pipe: Path, data: bytes, wait: float = 0.0) -> Path:
    """A pipe into which a thread writes ``data``, some seconds after it opened it."""
    os.mkfifo(pipe)

    def pour() -> None:
        with open(pipe, "wb", buffering=0) as file:
            threading.Event().wait(wait)
            file.write(data)

    threading.Thread(target=pour, daemon=True).start()
    return pipe


@posix
def test_pipes(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who writes ceilings may take his time, but not write without end; a table is read twice, so not from a pipe."""
    pipe = poured(tmp_path / "slow", CEILINGS.read_bytes(), wait=0.5)  # longer than one is waited for who writes
    outcome = run("show", REPORT, "--ceilings", pipe)
    assert (outcome.code, "measured" in outcome.out) == (0, True)
    table = poured(tmp_path / "table", b"name,flops,bytes,seconds\nsaxpy,1e9,1e8,0.1\n")
    assert "Write it to a file and pass that" in run("show", table).err
    monkeypatch.setattr("ncu_roofline.formats.ceilings.MOST_BYTES", 10_000)
    outcome = run("show", REPORT, "--ceilings", pipe := poured(tmp_path / "endless", b" " * 20_000))
    assert_refused(outcome, pipe)
    assert "it has more than 0.01 MB" in outcome.err


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
def test_what_a_shell_substitutes() -> None:
    for line in (
        '"$0" -m ncu_roofline show <(sleep 0.3; cat "$1") --ceilings <(cat "$2")',
        '"$0" -m ncu_roofline show - < "$1"',
    ):
        words = ["bash", "-c", line, sys.executable, str(REPORT), str(CEILINGS)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
        assert (done.returncode, "V100-SXM2-16GB" in done.stdout) == (0, True), done
