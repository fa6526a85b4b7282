"""Whatever the file, every command ends in its result or in one sentence: never a traceback, never half a file."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.report import FocusMetric, RuleMessage, RuleResult, read_report
from ncu_roofline.formats.report.framing import MAGIC, check_file_header, file_start, frame, message, open_raw, scan
from tests.cli.command import Command, Outcome, assert_refused
from tests.cli.every_command import ALL, EVERY_COMMAND, READING, SOME_COMMANDS, SOURCE, SOURCE_TOO, check_harmless, execute
from tests.factory import complete, kernel, report
from tests.report.frames import SKIPPABLE, by_hand, packed


def first_result(data: bytes, path: Path) -> tuple[int, int, int]:
    """(start of the block, of its payload, of what follows) of the first block with a result."""
    path.write_bytes(data)
    raw = open_raw(path)
    found = next(block for block in scan(raw) if sum(block.counts))
    raw.close()
    return found.start, found.payload, found.end


def with_payload_size(data: bytes, path: Path, change: int) -> bytes:
    start, payload, _ = first_result(data, path)
    header = message("BlockHeader").FromString(data[start + 4 : payload])
    header.payload_size += change
    return data[:start] + frame(header.SerializeToString()) + data[payload:]


def of_version(data: bytes, path: Path, version: int) -> bytes:
    path.write_bytes(data)
    raw = open_raw(path)
    start = check_file_header(raw)
    raw.close()
    return MAGIC + frame(message("FileHeader")(version=version).SerializeToString()) + data[start:]


BAD: dict[str, Callable[[bytes, Path], bytes]] = {
    "empty": lambda *_: b"",
    "text": lambda *_: b"a roofline, they said\n",
    "git-LFS pointer": lambda *_: b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n",
    "wrong magic": lambda data, _: b"NVX\0" + data[4:],
    "zeros": lambda data, _: bytes(len(data)),
    "header only": lambda *_: file_start(),
    "cut off": lambda data, _: data[: len(data) * 2 // 3],
    "trailing garbage": lambda data, _: data + b"garbage behind the last block",
    "trailing zeros": lambda data, _: data + bytes(100),
    "twice in one file": lambda data, _: data + data,
    "payload size too small": lambda data, path: with_payload_size(data, path, -5),
    "payload size much too small": lambda data, path: with_payload_size(data, path, -300),
    "payload size too large": lambda data, path: with_payload_size(data, path, 3),
    "payload size beyond the end": lambda data, path: with_payload_size(data, path, 10**9),
    "future version": lambda data, path: of_version(data, path, 8),
    "far future version": lambda data, path: of_version(data, path, 2**32 - 1),
    "zstd cut off": lambda data, _: packed(data)[:-20],
    "zstd with garbage behind": lambda data, _: packed(data) + b"garbage",
    "zstd twice in one file": lambda data, _: packed(data) * 2,
    "zstd behind a skippable frame": lambda data, _: SKIPPABLE + packed(data),
    "zstd of a report cut off": lambda data, _: packed(data[: len(data) * 2 // 3]),
    "zstd of text": lambda *_: packed(b"a roofline, they said\n"),
    "zstd of 100 GB of zeros": lambda *_: by_hand(bytes(9), 100 * 10**9),
    "zstd of 100 GB, it says": lambda data, _: by_hand(data[:9999], 0, size=100 * 10**9),
    "zstd with a huge window": lambda data, _: by_hand(data[:9999], 0, window_log=31),
}


@pytest.mark.sampled
@pytest.mark.parametrize("bad", BAD)
@SOURCE_TOO
def test_damaged_files(run: Command, tmp_path: Path, folder: Path, whole: bytes, name: str, bad: str) -> None:
    path = tmp_path / "bad.ncu-rep"
    path.write_bytes(BAD[bad](whole, path))
    outcome, _ = execute(run, name, path, folder)
    assert_refused(outcome, path)


@SOME_COMMANDS
@pytest.mark.parametrize("name", READING)
def test_a_compressed_report_says_the_same(run: Command, tmp_path: Path, folder: Path, whole: bytes, name: str) -> None:
    path = tmp_path / "r.ncu-repz"
    path.write_bytes(whole)
    plain, _ = execute(run, name, path, folder)
    path.write_bytes(packed(whole))
    outcome, _ = execute(run, name, path, folder)
    assert outcome == plain
    assert (outcome.code, bool(outcome.out)) == (0, True)


@SOME_COMMANDS
@SOURCE_TOO
def test_missing_and_folder(run: Command, tmp_path: Path, folder: Path, name: str) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for path in (tmp_path / "missing.ncu-rep", tmp_path / "a\nb.ncu-rep", empty, tmp_path / ("x" * 300)):
        outcome, _ = execute(run, name, path, folder)
        assert_refused(outcome, path)


def test_an_empty_name_is_not_the_current_folder(
    run: Command, tmp_path: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here.ncu-rep").write_bytes(whole)
    monkeypatch.chdir(tmp_path)
    assert_refused(run("show", ""), "''")


@SOME_COMMANDS
@SOURCE_TOO
def test_no_kernels_and_no_metrics(run: Command, tmp_path: Path, folder: Path, name: str) -> None:
    for path in (report(tmp_path / "none.ncu-rep"), report(tmp_path / "bare.ncu-rep", kernel({}), kernel({}))):
        outcome, _ = execute(run, name, path, folder)
        assert_refused(outcome, path)


def test_truncated_anywhere(run: Command, tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "cut.ncu-rep"
    path.write_bytes(whole)
    raw = open_raw(path)
    starts = {block.start for block in scan(raw)}  # cut between two blocks, a report is whole, only shorter
    raw.close()
    for number in range(50):
        end = len(whole) * number // 50
        path.write_bytes(whole[: end + 1 if end in starts else end])
        assert_refused(run("show", path), path)


@pytest.mark.parametrize("count", [50, pytest.param(200, marks=pytest.mark.exhaustive)])
def test_bit_flips(run: Command, tmp_path: Path, folder: Path, whole: bytes, count: int) -> None:
    path, generator = tmp_path / "flipped.ncu-rep", random.Random(20)
    names = [name for name in ALL if name not in ("render png", "render pdf", "render svg")]
    refused = 0
    for number in range(count):
        data = bytearray(whole)
        for _ in range(generator.choice((1, 1, 8))):
            data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        path.write_bytes(data)
        for name in ("show", names[number // 4 % len(names)])[: 1 if number % 4 else 2]:
            outcome, _ = execute(run, name, path, folder)
            if outcome.code:
                assert_refused(outcome, path)
            (folder / f"out.{ALL[name][-1]}").unlink(missing_ok=True)
            refused += outcome.code
    assert count / 10 < refused < 1.15 * count  # neither is everything refused nor does everything pass


@pytest.mark.parametrize("name", SOURCE)
def test_source_of_an_intact_report(run: Command, tmp_path: Path, folder: Path, whole: bytes, name: str) -> None:
    path = tmp_path / "whole.ncu-rep"
    path.write_bytes(whole)
    outcome, data = execute(run, name, path, folder)
    assert (outcome.code, bool(data)) == (0, True)
    check_harmless(name, data, outcome)


@SOME_COMMANDS
@EVERY_COMMAND
def test_unknown_fields_and_enums_are_accepted(run: Command, tmp_path: Path, folder: Path, name: str) -> None:
    focus = (FocusMetric("a", severity="77"),)
    rule = RuleResult("R", "rule", messages=(RuleMessage("99", "said", speedup=1.0, speedup_type="55", focus=focus),))
    path = report(tmp_path / "future.ncu-rep", kernel(complete(), rule_results=(rule,)))
    data = path.read_bytes()
    start, payload, end = first_result(data, path)
    unknown = b"\xc0\x3e\x01" + b"\xca\x3e\x03new"  # field 1000 as a number, field 1001 as bytes
    header = message("BlockHeader").FromString(data[start + 4 : payload] + unknown)
    header.payload_size = end - payload + len(unknown)
    record = frame(data[payload + 4 : end] + unknown)
    path.write_bytes(data[:start] + frame(header.SerializeToString()) + record + data[end:])
    outcome, _ = execute(run, name, path, folder)
    assert outcome.code == 0, outcome


@pytest.mark.sampled("words0")
@pytest.mark.parametrize("words", [("show",), ("explain",), ("render", "-o", "-", "--format", "csv")])
def test_the_same_from_outside(tmp_path: Path, words: tuple[str, ...]) -> None:
    bad = tmp_path / "bad.ncu-rep"
    bad.write_bytes(b"text\n")
    done = subprocess.run(
        [sys.executable, "-m", "ncu_roofline", *words, str(bad)], capture_output=True, text=True, check=False, timeout=60
    )
    assert_refused(Outcome(done.returncode, done.stdout, done.stderr), bad)


def test_a_dash_is_told_how_to_read_standard_input() -> None:
    with pytest.raises(RooflineError, match="/dev/stdin"):
        read_report("-")


@pytest.mark.skipif(not os.path.exists("/dev/stdin"), reason="there is no such file")
def test_dev_stdin_reads_a_report(whole: bytes) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ncu_roofline", "show", "/dev/stdin"], input=whole, capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0
    assert b"second" in done.stdout


def test_the_beginning_of_a_report_is_told_in_words(tmp_path: Path, run: Command) -> None:
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(bytes(range(256)))
    outcome = run("show", path)
    assert_refused(outcome, path)
    assert "the letters NVR and a zero byte" in outcome.err


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")
def test_what_is_no_file_in_a_folder_of_reports(tmp_path: Path, run: Command, whole: bytes) -> None:
    inside = tmp_path / "folder.ncu-rep"
    inside.mkdir()
    (inside / "good.ncu-rep").write_bytes(whole)
    bad = tmp_path / "bad.ncu-rep"
    bad.symlink_to(tmp_path / "nothing")
    assert_refused(run("show", tmp_path), bad)
    outcome = run("show", tmp_path, "--keep-going")
    assert outcome.code == 1
    assert str(bad) in outcome.err
    assert "second" in outcome.out
