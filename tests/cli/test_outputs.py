"""Data goes to standard output or a file, messages go to standard error, and neither ends in a traceback."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.cli import main
from ncu_roofline.cli.outputs import STANDARD_OUTPUT, check_output, progress, say, write_output, write_text


class Broken(io.StringIO):
    """A stream that fails when it is flushed."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def flush(self) -> None:
        raise self.error


def test_standard_output(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    write_text("first \u00fc")
    write_output(STANDARD_OUTPUT, b"\x00\xff\n", force=False)
    write_text("last")
    say("to people\x1b[31m")
    captured = capsysbinary.readouterr()
    assert captured.out == "first \u00fc\n".encode() + b"\x00\xff\nlast\n"
    assert captured.err == "to people\ufffd[31m\n".encode()


def test_files(tmp_path: Path) -> None:
    target = str(tmp_path / "out")
    check_output(target, False, ())
    write_output(target, b"one", force=False)
    for attempt in (lambda: check_output(target, False, ()), lambda: write_output(target, b"two", force=False)):
        with pytest.raises(RooflineError, match="the file exists"):
            attempt()
    check_output(target, True, ())
    write_output(target, b"two", force=True)
    assert (tmp_path / "out").read_bytes() == b"two"
    check_output(STANDARD_OUTPUT, False, ())


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Broken(OSError(28, "No space left on device")))
    with pytest.raises(RooflineError, match="Cannot write standard output: No space left on device"):
        write_text("x")


def test_a_reader_that_went_away_is_no_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdout", Broken(BrokenPipeError(32, "Broken pipe")))
    assert main(["list", "levels"]) == 0
    monkeypatch.undo()
    assert capsys.readouterr().err == ""


def test_no_standard_output_and_no_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(RooflineError, match="Cannot write standard output: it is closed"):
        write_text("x")
    monkeypatch.setattr(sys, "stderr", None)
    say("nobody listens")
    assert main(["list", "levels"]) == 1


def test_a_standard_error_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stderr", Full())
    say("nobody listens")


class Terminal(io.StringIO):
    """Standard error where somebody looks."""

    def isatty(self) -> bool:
        return True


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
