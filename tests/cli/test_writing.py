"""Where results go: standard output, files and places that can't be written; never half a file, never a traceback."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.cli import main
from ncu_roofline.cli.outputs import STANDARD_OUTPUT, check_output, progress, say, write_output, write_text
from tests.cli.command import Command, Outcome, assert_no_leftovers, assert_refused
from tests.cli.test_command_line import Terminal
from tests.factory import complete, kernel, report
from tests.machine.fakes import fake_ncu
from tests.report.frames import packed

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return report(tmp_path / "r.ncu-rep", kernel(complete()))


class Broken(io.StringIO):
    """A stream that fails when something is written, or when it is flushed."""

    def __init__(self, error: OSError, at_once: bool = False) -> None:
        super().__init__()
        self.error, self.at_once = error, at_once

    def write(self, text: str) -> int:
        if self.at_once:
            raise self.error
        return super().write(text)

    def flush(self) -> None:
        raise self.error


def test_streams(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """Data goes to standard output, messages to standard error; both may be full, closed or broken."""
    write_text("first \u00fc")
    write_output(STANDARD_OUTPUT, b"\x00\xff\n", force=False)
    write_text("last")
    say("to people\x1b[31m")
    captured = capsysbinary.readouterr()
    assert captured.out == "first \u00fc\n".encode() + b"\x00\xff\nlast\n"
    assert captured.err == "to people\ufffd[31m\n".encode()
    full = OSError(28, "No space left on device")
    for stream, told in ((Broken(full), "No space left on device"), (None, "it is closed")):
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(RooflineError, match=f"Cannot write standard output: {told}"):
            write_text("x")
    for stream in (Broken(full, at_once=True), None):
        monkeypatch.setattr(sys, "stderr", stream)
        say("nobody listens")
    assert main(["list", "levels"]) == 1
    monkeypatch.setattr(sys, "stdout", Broken(BrokenPipeError(32, "Broken pipe")))  # a reader that went away is no error
    assert main(["list", "levels"]) == 0


@pytest.mark.parametrize(
    ("stream", "term", "pause", "shown"),
    [
        (Terminal(), "xterm", 1.2, True),
        (Terminal(), "xterm", 0.0, False),  # from one second on
        (Terminal(), "dumb", 1.2, False),  # without a cursor
        (io.StringIO(), "xterm", 1.2, False),
        (None, "xterm", 1.2, False),
    ],
)
def test_who_sees_a_bar(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO | None, term: str, pause: float, shown: bool
) -> None:
    now = 0.0
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr("tqdm.std.time", lambda: now)
    found = []
    for number in progress(range(3), "reading reports", 3):
        now += pause if number == 0 else 0.0
        found.append(number)
    assert found == [0, 1, 2]
    assert stream is None or ("reading reports" in stream.getvalue()) == shown


def test_files(run: Command, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An existing one needs --force, and stays where the report is refused or the disk is full; what can't be is told."""
    target = tmp_path / "out.csv"
    target.write_text("precious")
    for attempt in (lambda: check_output(str(target), False, ()), lambda: write_output(str(target), b"two", force=False)):
        with pytest.raises(RooflineError, match="the file exists"):
            attempt()
    check_output(STANDARD_OUTPUT, False, ())
    check_output(str(target), True, ())
    assert_refused(run("render", source, "-o", target), target)
    assert_refused(run("render", tmp_path / "none.ncu-rep", "-o", target, "--force"), tmp_path / "none.ncu-rep")
    with monkeypatch.context() as patched:
        full = Broken(OSError(28, "No space left on device"), at_once=True)
        patched.setattr("ncu_roofline.base.files.os.replace", lambda *_: full.write(""))
        assert_refused(run("render", source, "-o", target, "--force"), target)
    assert target.read_text() == "precious"
    assert run("render", source, "-o", target, "--force").code == 0
    assert target.read_bytes().startswith(b"report,")
    (tmp_path / "folder.csv").mkdir()
    for place in ("nowhere/out.csv", "r.ncu-rep/out.csv", "folder.csv", f"{'x' * 300}.csv", "nowhere/out.png"):
        for more in ((), ("--force",)):
            assert_refused(run("render", source, "-o", tmp_path / place, *more), tmp_path / place)
    assert_no_leftovers(tmp_path, "r.ncu-rep", "folder.csv", "out.csv")
    if sys.platform != "win32" and os.geteuid():  # the superuser may write everywhere
        (tmp_path / "folder.csv").chmod(0o500)
        assert_refused(run("render", source, "-o", tmp_path / "folder.csv" / "out.csv"), tmp_path / "folder.csv" / "out.csv")
        (tmp_path / "folder.csv").chmod(0o700)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("show {} >/dev/full", "No space left"),
        ("render {} -o - --format csv >&-", "closed"),
        ("--help >/dev/full", "No space left"),
    ],
)
def test_standard_output_that_is_full_or_closed(source: Path, words: str, reason: str) -> None:
    """Also of what the parser prints."""
    command = ["sh", "-c", f'"$0" -m ncu_roofline {words.format(source)}', sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert_refused(Outcome(done.returncode, done.stdout, done.stderr), "standard output")
    assert reason in done.stderr


@pytest.mark.parametrize("somewhere", [True, False], ids=["missing", "none"])
def test_no_place_for_temporary_files(
    run: Command, monkeypatch: pytest.MonkeyPatch, source: Path, tmp_path: Path, somewhere: bool
) -> None:
    """Missing, or none at all: a sentence from every command that needs one; others need none."""
    (tmp_path / "out").mkdir()
    (tmp_path / "r.ncu-repz").write_bytes(packed(source.read_bytes()))
    assert run("annotate", source, "-o", tmp_path / "annotated.ncu-rep").code == 0
    given = {"report": source, "demo": DEMO / "gpp-v100", "tmp": tmp_path, "out": tmp_path / "out", "ncu": fake_ncu(tmp_path)}
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere") if somewhere else None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "nowhere")])
    for line in ("advise {demo}.ncu-rep --ceilings {demo}-ceilings.json", "show {tmp}/r.ncu-repz",
                 "annotate {tmp}/annotated.ncu-rep -o {out}/a.ncu-rep", "profile --ncu {ncu} -o {out}/p -- ./app"):  # fmt: skip
        outcome = run(*(word.format(**given) for word in line.split()))
        assert outcome.code == 1, outcome
        assert outcome.err.splitlines()[-1].endswith("Set TMPDIR to a folder with space that you may write to.")
        assert "Traceback" not in outcome.err
        assert_no_leftovers(given["out"])
    for line in ("show {report}", "render {report} -o {out}/r.csv", "annotate {report} -o {out}/a.ncu-rep"):
        assert run(*(word.format(**given) for word in line.split())).code == 0


def test_no_place_for_matplotlib_either(source: Path, tmp_path: Path) -> None:
    """It is imported anew, with a home that can't be written to."""
    code = (
        "import sys, tempfile\ntempfile._candidate_tempdir_list = lambda: ['/dev/null/tmp']\n"
        "from ncu_roofline.cli import main\nsys.exit(main(sys.argv[1:]))"
    )
    nowhere = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR"), "/dev/null/home")
    words = [sys.executable, "-c", code, "render", str(source), "-o", str(tmp_path / "r.png")]
    done = subprocess.run(words, env={**os.environ, **nowhere}, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        1,
        "ncu-roofline: Cannot draw with matplotlib: it finds no folder that it may write to. "
        "Set MPLCONFIGDIR or TMPDIR to a folder with space that you may write to.",
    )
    assert_no_leftovers(tmp_path, "r.ncu-rep")
