"""Where results go: streams, places that can't be written, never over what a command reads, and never half a file."""

from __future__ import annotations

import argparse
import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path
from unittest.mock import Mock

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.cli import COMMANDS, declare, main
from ncu_roofline.cli.outputs import STANDARD_OUTPUT, check_output, check_unread, progress, say, write_output, write_text
from tests.cli.command import Command, Outcome, assert_no_leftovers, assert_refused
from tests.cli.test_command_line import Terminal
from tests.machine.fakes import fake_ncu
from tests.report.frames import packed

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"


def broken(error: OSError) -> Mock:
    return Mock(io.StringIO(), **{"write.side_effect": error, "flush.side_effect": error, "fileno.side_effect": ValueError})


FULL = OSError(28, "No space left on device")


def test_streams(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """Data goes to standard output, messages to standard error; both may be full, closed or broken."""
    write_text("first \u00fc")
    write_output(STANDARD_OUTPUT, b"\x00\xff\n", force=False)
    write_text("last")
    say("to people\x1b[31m")
    captured = capsysbinary.readouterr()
    assert captured.out == "first \u00fc\n".encode() + b"\x00\xff\nlast\n"
    assert captured.err == "to people\ufffd[31m\n".encode()
    for stream, told in ((broken(FULL), "No space left on device"), (None, "it is closed")):
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(RooflineError, match=f"Cannot write standard output: {told}"):
            write_text("x")
    for stream in (broken(FULL), None):
        monkeypatch.setattr(sys, "stderr", stream)
        say("nobody listens")
    assert main(["list", "levels"]) == 1
    monkeypatch.setattr(sys, "stdout", broken(BrokenPipeError(32, "Broken pipe")))  # a reader that went away is no error
    assert main(["list", "levels"]) == 0


def test_who_sees_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who looks at a terminal with a cursor, from one second on."""
    for stream, term, pause, shown in (
        (Terminal(), "xterm", 1.2, True),
        (Terminal(), "xterm", 0.0, False),
        (Terminal(), "dumb", 1.2, False),
        (io.StringIO(), "xterm", 1.2, False),
        (None, "xterm", 1.2, False),
    ):
        times = chain([0.0] * 3, repeat(pause))
        monkeypatch.setenv("TERM", term)
        monkeypatch.setattr("sys.stderr", stream)
        monkeypatch.setattr("tqdm.std.time", times.__next__)
        assert list(progress(range(3), "reading reports", 3)) == [0, 1, 2]
        assert stream is None or ("reading reports" in stream.getvalue()) == shown


def test_files(run: Command, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An existing one needs --force, and stays where the report is refused or the disk is full; what can't be is told."""
    target = tmp_path / "out.csv"
    target.write_text("precious")
    for attempt in (lambda: check_output(str(target), False, ()), lambda: write_output(str(target), b"two", force=False)):
        with pytest.raises(RooflineError, match="the file exists"):
            attempt()
    check_output(STANDARD_OUTPUT, False, ())
    assert_refused(run("render", source, "-o", target), target)
    assert_refused(run("render", tmp_path / "none.ncu-rep", "-o", target, "--force"), tmp_path / "none.ncu-rep")
    with monkeypatch.context() as patched:
        patched.setattr("ncu_roofline.base.files.os.replace", Mock(side_effect=FULL))
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
        (place := tmp_path / "folder.csv").chmod(0o500)
        assert_refused(run("render", source, "-o", place / "out.csv"), place / "out.csv")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
def test_standard_output_that_is_full_or_closed(source: Path) -> None:
    reasons = {"show {} >/dev/full": "No space", "render {} -o - --format csv >&-": "closed", "--help >/dev/full": "No space"}
    for words, reason in reasons.items():
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
    code = "import sys, tempfile; tempfile._candidate_tempdir_list = lambda: ['/dev/null/tmp']; "
    code += "from ncu_roofline.cli import main; sys.exit(main(sys.argv[1:]))"
    nowhere = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR"), "/dev/null/home")
    words = [sys.executable, "-c", code, "render", str(source), "-o", str(tmp_path / "r.png")]
    done = subprocess.run(words, env={**os.environ, **nowhere}, capture_output=True, text=True, check=False, timeout=120)
    told = "Cannot draw with matplotlib: it finds no folder that it may write to. Set MPLCONFIGDIR or TMPDIR to a folder with "
    assert (done.returncode, told in done.stderr.splitlines()[-1]) == (1, True)
    assert_no_leftovers(tmp_path, "r.ncu-rep")


def options() -> Iterator[tuple[str, str]]:
    """Each command that writes, with the options that name what it reads, "" for what it reads without one; by its help."""
    called = ("FILE", "REPORT", "CEILINGS", "PATH", "ADDRESS", "APPLICATION")
    writes = ("write", "file to write", "picture to write")
    for name in COMMANDS:
        parser = argparse.ArgumentParser()
        declare(parser, name)
        inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        for action, one in inner[0].choices.items() if inner else [("", parser)]:
            told = [option for option in one._actions if option.help != argparse.SUPPRESS]  # others are refused with advice
            reads = [option for option in told if any(word in (option.metavar or "") for word in called)]
            reads = [option for option in reads if not (option.help or "").startswith(writes) and option.dest != "output"]
            if len(reads) < len(told) and any("-o" in option.option_strings for option in told):
                yield from ((f"{name} {action}".strip(), (option.option_strings or [""])[0]) for option in reads)


def meets(line: str, option: str) -> bool:
    """Whether the result of a command line is what it reads by an option, or without one."""
    words = line.split()
    out = words[words.index("-o") + 1]
    read = [place for place, word in enumerate(words) if word.rpartition("=")[2].removeprefix("./").startswith(out)]
    return any(words[one - 1] == option if option else words[one - 1][:1] != "-" for one in read)


def test_no_result_replaces_what_is_read(run: Command, source: Path, tmp_path: Path) -> None:
    """The session has each command with each option; the file is the same whatever the two are called."""
    lines = Path(__file__).with_name("results_over_inputs.session").read_text(encoding="utf-8").splitlines()
    for command, option in options():
        assert any(line.startswith(f"$ ncu-roofline {command} ") and meets(line, option) for line in lines), (command, option)
    before = source.read_bytes()
    for name, link in (("link", Path.symlink_to), ("hard link", Path.hardlink_to)):
        link(tmp_path / name, source)
    for name in ("r.ncu-rep", "link", "hard link", f"../{tmp_path.name}/r.ncu-rep"):
        outcome = run("render", source, "-o", tmp_path / name, "--format", "json", "--force")
        assert_refused(outcome, tmp_path / name)
        assert "it is one of the files that the command reads" in outcome.err
    assert source.read_bytes() == before


def test_ceilings_that_auto_may_choose(run: Command, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    kept = tmp_path / "ncu-roofline" / "ceilings" / "v100.json"
    kept.parent.mkdir(parents=True)
    shutil.copy(DEMO / "gpp-v100-ceilings.json", kept)
    assert_refused(run("render", source, "--ceilings", "auto", "-o", kept, "--force"), kept)


def test_what_is_not_there_is_nobodys_input(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.touch()
    for output, inputs in ((tmp_path / "new", [there]), (there, [tmp_path / "missing"]), (there, []), (Path("a\0b"), [there])):
        check_unread(str(output), map(str, inputs))
