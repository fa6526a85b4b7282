"""What a command line means, help, lists, guide, terminals and colours; `commands.session` has what is printed and refused."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import ncu_roofline
from ncu_roofline.analyses import ANALYSES, views
from ncu_roofline.analyses.compare.columns import QUANTITIES
from ncu_roofline.chips import load_spec
from ncu_roofline.cli import COMMANDS, completed, declare, main, parse
from ncu_roofline.cli.lists import LISTS
from ncu_roofline.cli.options import latency
from ncu_roofline.cli.outputs import PLACES
from ncu_roofline.formats.inputs import FORMATS
from tests.cli.command import Command
from tests.factory import complete, kernel, report

PAGES = {path.stem: path.read_text(encoding="utf-8") for path in (Path(ncu_roofline.__file__).parent / "guide").glob("*.md")}
TOPICS = sorted(set(PAGES) - {"README"})


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return report(tmp_path / "r.ncu-rep", kernel(complete()))


def test_values() -> None:
    words = "show a b --launch 1,3-5 --ceilings c --ceilings d --top 2 --precision FP64,tensor"
    args = parse(words.split())
    assert (args.reports, args.launch, args.top) == (["a", "b"], ((1, 1), (3, 5)), 2)
    assert (args.ceilings, args.by, args.view, args.precision) == (["c", "d"], None, "roofline", ("fp64", "tensor"))
    assert parse(["show", "a"]).ceilings == []
    for text in ("4.2us", "4.2 \N{MICRO SIGN}s", "4200NS", "0.0042ms", "4.2e-6s", "4.2E-6 s", "0.42e1us"):
        assert latency(text) == pytest.approx(4.2e-6)
    for text in ("0us", "1e999s", "1 minute", "1,5us"):
        with pytest.raises(argparse.ArgumentTypeError, match="is no time like"):
            latency(text)
    for line in ("show x", "--version", "--help x.ncu-rep", "shwo x.ncu-rep", "a-word", "bench run"):
        assert completed(line.split()) == line.split()


def place_options(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each command with the options that name a file or a folder."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from place_options(inner, (*words, name))
        elif action.option_strings and action.metavar in PLACES:
            yield words, action.option_strings[-1]


def test_an_empty_name_of_a_place_is_a_usage_error(run: Command) -> None:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers()
    for name in COMMANDS:
        declare(commands.add_parser(name), name)
    options = [*place_options(parser), (("profile",), "--output")]
    wanted = "render compare annotate bench demo portability ranks generate profile"
    assert {words[0] for words, option in options if option in ("--output", "--out")} >= set(wanted.split())
    for words, option in options:
        outcome = run(*words, option, "")
        assert (outcome.code, "the name is empty" in outcome.err) == (2, True), (words, option)


def test_help(run: Command) -> None:
    """Also as a word; it names all commands, quantities and formulas."""
    for command in COMMANDS:
        outcome = run(command, "--help")
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out.startswith(f"usage: ncu-roofline {command}")
        assert all(row.holds == tuple(row.tables) for row in views(command).values())
    assert COMMANDS["list"].endswith(": " + ", ".join(LISTS))
    whole = run("--help")
    assert all(re.search(rf"^ +{command}\b", whole.out, re.MULTILINE) for command in COMMANDS)
    assert run() == run("help") == whole
    assert run("help", "bench", "run") == run("bench", "run", "--help")
    assert run("version") == run("--version")
    assert run("--version").out == f"ncu-roofline {ncu_roofline.__version__}\n"
    text = run("compare", "--help").out
    assert all(f"{name}.{part}".rstrip(".") in text for name, one in QUANTITIES.items() for part in one.parts or ("",))
    assert "PP = |H| / sum(1/e)" in " ".join(run("portability", "--help").out.split())
    assert "usage: ncu-roofline bench run " in run("bench", "run", "one", "too", "many").err


def test_lists(run: Command) -> None:
    """Table and JSON agree, and everything is there."""
    first = {}
    for what in LISTS:
        table, document = run("list", what), json.loads(run("list", what, "--json").out)
        assert len(table.out.splitlines()) == len(document) + 1
        assert all(value in table.out for row in document for value in row.values())
        first[what] = [next(iter(row.values())) for row in document]
    spec = load_spec()
    assert first["precisions"] == [one.id for one in spec.precisions]
    assert first["formats"] == list(ANALYSES["roofline"].formats)
    assert first["inputs"] == ["report", *(one.id for one in FORMATS)]
    assert len(first["architectures"]) == len(spec.architectures)


def test_the_command_that_show_proposes_for_a_file_works(run: Command, source: Path, tmp_path: Path) -> None:
    target = tmp_path / "my page.html"
    proposed = run("show", source, "-o", target).err.partition("Write pictures and pages with ")[2].strip("`.\n")
    assert run(*shlex.split(proposed)[1:]).code == 0
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_hundreds_of_long_names_take_no_time(run: Command, tmp_path: Path) -> None:
    many = report(
        tmp_path / "many.ncu-rep", *(kernel(complete(), f"void {'ab' * 2_000}_{number}(int)") for number in range(300))
    )
    begun = time.process_time()
    assert run("show", many, "--kernel", "ba" * 5_000 + "c").code == 1
    assert time.process_time() - begun < 4
    assert len(run("guide", "x" * 100_000).err) < 2000


# Guide


def words(text: str) -> list[str]:
    """What a page says, whatever its lines and tables look like."""
    plain = re.sub(r"^```\w*$|<!--.*?-->|^[-| :]+$|\[(\w+)\]\(\w+\.md\)", r" \1", text, flags=re.MULTILINE)
    return re.findall(r"\w+", plain)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_pages_are_complete_and_fit(run: Command, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """No line is wider than the terminal but for single words and files; commands can be copied."""
    monkeypatch.setenv("COLUMNS", str(width))
    for topic, page in PAGES.items():
        heads = {word for line in re.findall(r"^\|.*\n(?=\|--)", page, re.MULTILINE) for word in words(line)}
        blocks = re.findall(r"^```(?!sh)\w+\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
        files = {line for block in blocks for line in block.splitlines()}
        done = run("guide", topic.upper())
        assert (done.code, done.err) == (0, "")
        assert not [mark for mark in ("<!--", ".md)", "|---", "```") if mark in done.out], topic
        if topic == "README":
            listed = re.findall(r"^(\w+) {2,}\S", done.out, re.MULTILINE)
            assert width < 200 or sorted(listed) == sorted([*TOPICS, "topic"])
            continue
        assert set(Counter(words(page)) - Counter(words(done.out))) <= heads
        wide = [line for line in done.out.splitlines() if len(line) > width and line not in files]
        assert width != 80 or [line for line in wide if len(line.split()) > 1] == []
    (long,) = re.findall(r"^ncu-roofline compare .* --fail-if .*$", PAGES["compare"].replace(" \\\n    ", " "), re.MULTILINE)
    out = run("guide", "compare").out
    assert max(map(len, re.findall(r"^ +ncu-roofline .*", out, re.MULTILINE))) <= width
    printed = [line for line in out.replace("\\\n", "").splitlines() if "--fail-if" in line and line[0] == " "]
    assert shlex.split(long) in map(shlex.split, printed)


# Terminals


class Terminal(io.StringIO):
    """A stream that somebody looks at."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "coloured"),
    [
        *(
            (Terminal, one, False)
            for one in ("NO_COLOR=1", "NO_COLOR=0", "TERM=dumb", "CLICOLOR=0", "NO_COLOR=1 FORCE_COLOR=1")
        ),
        *((Terminal, one, True) for one in ("", "NO_COLOR=", "CLICOLOR=1", "FORCE_COLOR=1 TERM=dumb")),
        (io.StringIO, "", False),
        (io.StringIO, "FORCE_COLOR=1", True),
        (io.StringIO, "FORCE_COLOR=0", False),
    ],
)
def test_colours(
    monkeypatch: pytest.MonkeyPatch, source: Path, stream: type[io.StringIO], environment: str, coloured: bool
) -> None:
    """On terminals, unless the environment says otherwise."""
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    for word in environment.split():
        monkeypatch.setenv(*word.split("="))
    out = stream()
    monkeypatch.setattr("sys.stdout", out)
    assert main(["show", str(source)]) == 0
    assert ("kernel" in out.getvalue(), "\x1b[" in out.getvalue()) == (True, coloured)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    source = report(tmp_path / "r.ncu-rep", *(kernel(complete(), f"void k{number}(int)") for number in range(100)))
    line = '"$0" -m ncu_roofline show "$1" | head -c 1 >/dev/null; exit ${PIPESTATUS[0]}'
    words = ["bash", "-c", line, sys.executable, str(source)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_consoles_that_cannot_show_every_character(tmp_path: Path) -> None:
    source = report(tmp_path / "r.ncu-rep", kernel(complete(), "void \u4e2d\u6587(int)"))
    words = [sys.executable, "-m", "ncu_roofline", "show", str(source)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(words, capture_output=True, check=False, timeout=60, env=environment)
    assert (done.returncode, done.stderr, b"1 TFLOP/s" in done.stdout) == (0, b"", True)
