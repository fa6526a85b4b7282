"""Whatever the input, every command ends in its result or in one sentence: never a traceback, never half a file."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest

from ncu_roofline.errors import RooflineError
from ncu_roofline.report import FocusMetric, RuleMessage, RuleResult, read_report
from ncu_roofline.report.framing import check_file_header, file_start, frame, open_raw, scan
from ncu_roofline.report.schema import MAGIC, message
from tests.cli.command import Command, Outcome, assert_no_leftovers, assert_refused
from tests.factory import A100, H100, NO_WORK, by_address, complete, kernel, report, timing, traffic
from tests.report.frames import SKIPPABLE, by_hand, packed

READING = {
    "show": ("show",),
    "show --json": ("show", "--json"),
    "show --by application": ("show", "--by", "application"),
    "show --view time": ("show", "--view", "time", "--launch-latency", "4us"),
    "show --source embedded": ("show", "--source", "embedded"),
    "show --view instruction": ("show", "--view", "instruction"),
    "show --view phases": ("show", "--view", "phases"),
    "explain": ("explain",),
    "explain --json": ("explain", "--json"),
    "explain --view instruction": ("explain", "--view", "instruction"),
    "advise": ("advise",),
    "advise --json": ("advise", "--json"),
    "portability": ("portability",),
    "portability --json": ("portability", "--json"),
    "ranks": ("ranks",),
    "ranks --json": ("ranks", "--json"),
    "compare": ("compare", "--fail-if", "time > 1.05 * baseline"),
    "compare --json": ("compare", "--json"),
    "compare csv": ("compare", "-o", "-", "--format", "csv"),
    "compare md": ("compare", "-o", "-", "--format", "md"),
}
SUFFIXES = ("html", "png", "svg", "pdf", "csv", "json", "md", "txt", "parquet")
COMMANDS = {**READING, **{f"render {suffix}": ("render", suffix) for suffix in SUFFIXES}}
# These refuse reports without counts by instruction, damaged or not.
SOURCE = {
    "source": ("source",),
    "source --by instruction": ("source", "--by", "instruction"),
    "source --json": ("source", "--json"),
    "source csv": ("source", "-o", "-", "--format", "csv"),
    "source html": ("source", "-o", "-", "--format", "html"),
}
ALL = COMMANDS | SOURCE
# All commands share the readers: by default some of each kind run, every one in the exhaustive run.
SOME_COMMANDS = pytest.mark.sampled("show", "show --json", "explain", "advise", "ranks", "* md", "* csv", "* html", "* svg")
EVERY_COMMAND = pytest.mark.parametrize("name", COMMANDS)
SOURCE_TOO = pytest.mark.parametrize("name", ALL)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A report of three launches on two chips, one of them without floating-point work, one with counts by instruction."""
    path = tmp_path_factory.mktemp("whole") / "whole.ncu-rep"
    idle = {**A100, **timing(), **NO_WORK, **traffic(1, 1, 1)}
    counted = by_address(0x7F0000000000, inst_executed=[1.0] * 8, smsp__pcsamp_sample_count=[2.0] * 8)
    launches = [
        kernel(complete(), nvtx=("outer", "inner"), instances=counted),
        kernel(complete(H100), "void second(float *)"),
        kernel(idle),
    ]
    return report(path, *launches).read_bytes()


def sources(name: str, source: Path) -> tuple[Path, ...]:
    """What a command reads: ``source``, and where it needs two, that once more."""
    return (source, source) if name.startswith("compare") else (source,)


def execute(run: Command, name: str, source: Path, folder: Path) -> tuple[Outcome, bytes]:
    """The outcome of one of COMMANDS on ``source``, and what it printed or wrote."""
    if not name.startswith("render"):
        outcome = run(*ALL[name], *sources(name, source))
        return outcome, outcome.out.encode()
    if name == "render parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    target = folder / f"out.{COMMANDS[name][1]}"
    outcome = run("render", source, "-o", target)
    assert target.exists() == (outcome.code == 0)
    assert_no_leftovers(folder, *([target.name] if target.exists() else []))
    return outcome, target.read_bytes() if target.exists() else b""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder for results."""
    result = tmp_path / "results"
    result.mkdir()
    return result


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


TEMPLATE = "void " + "ns::functor<" * 300 + "float" + ">" * 300 + "(T1 *, T2 const &)"
HOSTILE = {
    "4 kB of templates": TEMPLATE,
    "100 kB of brackets": "<" * 100_000,
    "control characters": "".join(map(chr, range(32))) + "\x7f\x80\x9b31m\u202e\u2028kernel(int)",
    "terminal escapes": "\x1b[2J\x1b]0;title\x07\x1b[31mkernel(int)",
    "html": "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&</script>",
    "json in html": "</script><!--<script>{{7*7}}{% raw %}",
    "markdown": "| a | b |\n# head\n[x](javascript:alert(1)) `code` **bold** <b>",
    "csv formula": '=cmd|" /C calc"!A0',
    "csv separators": 'a,"b"\nc;d\te',
    "math text": "$\\frac{ _x^ $ %d {0} \\",
    "nothing": "",
    "blanks": "   ",
    "emoji and others": "\U0001f525\u00fc\u4e2d\u6587\u0301 k\u200dernel",
    "not text": "\ufffe\uffff\x00kernel",
}


PICTURED = ("4 kB of templates", "control characters", "math text", "emoji and others", "nothing")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("name", "hostile"),
    [(name, one) for name in COMMANDS for one in HOSTILE if name not in ("render png", "render pdf") or one in PICTURED],
)
def test_hostile_kernel_names(run: Command, tmp_path: Path, folder: Path, name: str, hostile: str) -> None:
    text = HOSTILE[hostile]
    device = {**A100, "device__attribute_display_name": f"GPU {text}"}
    launch = kernel(complete(device), nvtx=(text,))
    path = report(tmp_path / "hostile.ncu-rep", launch.__class__(**{**vars(launch), "name": text, "function_name": text}))
    outcome, data = execute(run, name, path, folder)
    assert outcome.code == 0, outcome
    check_harmless(name, data, outcome)


def check_harmless(name: str, data: bytes, outcome: Outcome) -> None:
    """What came from the report reaches no terminal, browser, spreadsheet or parser as anything but text."""
    assert outcome.err.replace("\n", "").isprintable()
    if name.endswith(("png", "pdf", "parquet")):
        return
    text = data.decode("utf-8")
    if name.endswith("json"):
        strict(text)
    elif name.endswith("html"):
        for forbidden in ("<script>alert", "<img src=x", "<!--<script>", "\x1b"):
            assert forbidden not in text
    elif name.endswith("svg"):
        root = ElementTree.fromstring(data)  # as it is ours, and a hostile one would be the finding
        assert not [one for one in root.iter() if one.tag.endswith("script")]
    elif name.endswith("csv"):
        assert not any(cell.startswith(("=", "+", "@")) for line in text.splitlines() for cell in line.split(","))
    else:
        assert all(line.isprintable() for line in text.split("\n"))


def strict(text: str) -> object:
    """``text`` as JSON without NaN and Infinity, which JSON does not have."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.sampled
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1.0, 1e308, 5e-324, 2.0**64])
@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("render svg", "render pdf")])
def test_metrics_that_are_no_counts(run: Command, tmp_path: Path, folder: Path, name: str, value: float) -> None:
    everything = {key: value for key, metric in complete().items() if not isinstance(metric, str)}
    counters = {key: item for key, item in everything.items() if "attribute" not in key}
    traffic_only = {key: item for key, item in everything.items() if "bytes" in key or "sectors" in key}
    launches = [kernel({**complete(), **change}) for change in (everything, counters, traffic_only, {})]
    outcome, data = execute(run, name, report(tmp_path / "odd.ncu-rep", *launches), folder)
    assert outcome.code == 0, outcome
    check_harmless(name, data, outcome)
    if name.startswith("show") and "--json" not in name:
        assert "nan" not in outcome.out.lower()


@SOME_COMMANDS
@EVERY_COMMAND
def test_text_where_numbers_belong(run: Command, tmp_path: Path, folder: Path, name: str) -> None:
    metrics = dict.fromkeys(complete(), "many")
    launches = [kernel(metrics), kernel(complete()), kernel({**complete(), "dram__bytes.sum": "n/a"})]
    outcome, data = execute(run, name, report(tmp_path / "text.ncu-rep", *launches), folder)
    assert outcome.code == 0, outcome
    check_harmless(name, data, outcome)


@SOME_COMMANDS
@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="file names are text there")
@EVERY_COMMAND
def test_file_names_that_are_no_text(run: Command, tmp_path: Path, folder: Path, whole: bytes, name: str) -> None:
    path = tmp_path / os.fsdecode(b"r\xff\x1b[31m<b>\n.ncu-rep")
    path.write_bytes(whole)
    outcome, data = execute(run, name, path, folder)
    assert outcome.code == 0, outcome
    check_harmless(name, data, outcome)


@pytest.mark.sampled("csv", "html", "svg")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_places_that_cannot_be_written(run: Command, tmp_path: Path, whole: bytes, suffix: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    source = tmp_path / "r.ncu-rep"
    source.write_bytes(whole)
    (tmp_path / f"folder.{suffix}").mkdir()
    for place in (f"nowhere/out.{suffix}", f"r.ncu-rep/out.{suffix}", f"folder.{suffix}", f"{'x' * 300}.{suffix}"):
        target = tmp_path / place
        assert_refused(run("render", source, "-o", target), target)
        assert_refused(run("render", source, "-o", target, "--force"), target)
    assert_no_leftovers(tmp_path, "r.ncu-rep", f"folder.{suffix}")


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="the user may write everywhere")
def test_a_folder_without_permission(run: Command, tmp_path: Path, folder: Path, whole: bytes) -> None:
    source = tmp_path / "r.ncu-rep"
    source.write_bytes(whole)
    folder.chmod(0o500)
    assert_refused(run("render", source, "-o", folder / "out.csv"), folder / "out.csv")
    folder.chmod(0o700)
    assert_no_leftovers(folder)


@pytest.mark.sampled("csv", "html", "svg")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_existing_file_needs_force(run: Command, tmp_path: Path, folder: Path, whole: bytes, suffix: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    source, target = tmp_path / "r.ncu-rep", folder / f"out.{suffix}"
    source.write_bytes(whole)
    target.write_text("precious")
    outcome = run("render", source, "-o", target)
    assert_refused(outcome, target)
    assert "--force" in outcome.err
    assert target.read_text() == "precious"
    assert run("render", source, "-o", target, "--force").code == 0
    assert b"precious" not in target.read_bytes()
    assert_no_leftovers(folder, target.name)


def test_a_refused_report_leaves_an_existing_result_alone(run: Command, tmp_path: Path, folder: Path) -> None:
    bad, target = tmp_path / "bad.ncu-rep", folder / "out.csv"
    bad.write_bytes(b"text")
    target.write_text("precious")
    assert_refused(run("render", bad, "-o", target, "--force"), bad)
    assert target.read_text() == "precious"
    assert_no_leftovers(folder, "out.csv")


def test_a_disk_that_fills_up(
    run: Command, tmp_path: Path, folder: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "r.ncu-rep", folder / "out.csv"
    source.write_bytes(whole)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ncu_roofline.files.os.link", full)
    outcome = run("render", source, "-o", target)
    assert_refused(outcome, target)
    assert "No space left on device" in outcome.err
    assert_no_leftovers(folder)


CEILINGS = {
    "missing": None,
    "folder": None,
    "empty": b"",
    "no JSON": b"{",
    "not UTF-8": b"\xff\xfe\x00{",
    "another JSON": b"[]",
    "deep": b"[" * 100_000,
    "huge number": b"1" * 10_000,
    "report": MAGIC,
}


@pytest.mark.sampled
@pytest.mark.parametrize("bad", CEILINGS)
@pytest.mark.parametrize("name", [name for name in COMMANDS if not name.startswith("explain") and "embedded" not in name])
def test_ceilings_that_are_none(run: Command, tmp_path: Path, folder: Path, whole: bytes, name: str, bad: str) -> None:
    source, ceilings = tmp_path / "r.ncu-rep", tmp_path / "c.json"
    source.write_bytes(whole)
    content = CEILINGS[bad]
    if content is not None:
        ceilings.write_bytes(content)
    elif bad == "folder":
        ceilings.mkdir()
    words = COMMANDS[name] if not name.startswith("render") else ("render", "-o", folder / f"out.{COMMANDS[name][1]}")
    assert_refused(run(*words, *sources(name, source), "--ceilings", ceilings), ceilings)
    assert_no_leftovers(folder)


@pytest.mark.sampled("words0")
@pytest.mark.parametrize("words", [("show",), ("explain",), ("render", "-o", "-", "--format", "csv")])
def test_the_same_from_outside(tmp_path: Path, words: tuple[str, ...]) -> None:
    bad = tmp_path / "bad.ncu-rep"
    bad.write_bytes(b"text\n")
    done = subprocess.run(
        [sys.executable, "-m", "ncu_roofline", *words, str(bad)], capture_output=True, text=True, check=False, timeout=60
    )
    assert_refused(Outcome(done.returncode, done.stdout, done.stderr), bad)


@pytest.mark.sampled("words0")
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
@pytest.mark.parametrize("words", [("show",), ("show", "--json"), ("explain",), ("render", "-o", "-", "--format", "csv")])
def test_standard_output_that_is_full_or_closed(tmp_path: Path, whole: bytes, words: tuple[str, ...]) -> None:
    source = tmp_path / "r.ncu-rep"
    source.write_bytes(whole)
    shell = shutil.which("sh")
    assert shell
    for redirection, reason in ((">/dev/full", "No space left"), (">&-", "closed")):
        line = f'"$0" -m ncu_roofline "$@" {redirection}'
        command = [shell, "-c", line, sys.executable, *words, str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert_refused(Outcome(done.returncode, done.stdout, done.stderr), "standard output")
        assert reason in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
@pytest.mark.parametrize("words", [("--version",), ("--help",), ("show", "--help")])
def test_standard_output_that_is_full_of_what_the_parser_prints(words: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ncu_roofline", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert_refused(Outcome(done.returncode, "", done.stderr), "standard output")


def test_a_number_of_too_many_digits(tmp_path: Path, run: Command) -> None:
    ceilings = tmp_path / "c.json"
    ceilings.write_text('{"schema": "ncu-roofline-ceilings", "schema_version": ' + "9" * 5000 + "}")
    outcome = run("bench", "merge", ceilings)
    assert_refused(outcome, ceilings)
    assert "too many digits" in outcome.err
    assert "sys." not in outcome.err


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
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_is_no_file_in_a_folder_of_reports(
    tmp_path: Path, run: Command, whole: bytes, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ncu_roofline.files._PIPE_SECONDS", 0.1)
    inside = tmp_path / "folder.ncu-rep"
    inside.mkdir()
    (inside / "good.ncu-rep").write_bytes(whole)
    bad = tmp_path / "bad.ncu-rep"
    if kind == "link":
        bad.symlink_to(tmp_path / "nothing")
    else:
        os.mkfifo(bad)
    assert_refused(run("show", tmp_path), bad)
    outcome = run("show", tmp_path, "--keep-going")
    assert outcome.code == 1
    assert str(bad) in outcome.err
    assert "second" in outcome.out
