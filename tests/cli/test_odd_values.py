"""Names, numbers and ceilings that nobody expects: every command ends in a result in which they are harmless, or a sentence."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path

import pytest

from ncu_roofline.formats.report.framing import MAGIC
from tests.cli.command import Command, assert_no_leftovers, assert_refused
from tests.cli.every_command import COMMANDS, EVERY_COMMAND, SOME_COMMANDS, check_harmless, execute, sources
from tests.factory import A100, complete, kernel, report

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


def test_a_number_of_too_many_digits(tmp_path: Path, run: Command) -> None:
    ceilings = tmp_path / "c.json"
    ceilings.write_text('{"schema": "ncu-roofline-ceilings", "schema_version": ' + "9" * 5000 + "}")
    outcome = run("bench", "merge", ceilings)
    assert_refused(outcome, ceilings)
    assert "too many digits" in outcome.err
    assert "sys." not in outcome.err
