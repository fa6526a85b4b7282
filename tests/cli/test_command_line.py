"""What a command line means and loads, help, lists, guide, colours, completion; `commands.session` has what is printed."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import ncu_roofline
from ncu_roofline.analyses import ANALYSES, views
from ncu_roofline.analyses.compare.columns import QUANTITIES
from ncu_roofline.chips import load_spec
from ncu_roofline.cli import COMMANDS, completed, main, parse
from ncu_roofline.cli.completion import SHELLS
from ncu_roofline.cli.lists import LISTS
from ncu_roofline.cli.options import latency
from ncu_roofline.cli.outputs import PLACES
from ncu_roofline.formats.inputs import FORMATS
from tests.cli.command import Command, assert_refused
from tests.factory import complete, kernel, report

PAGES = {path.stem: path.read_text(encoding="utf-8") for path in (Path(ncu_roofline.__file__).parent / "guide").glob("*.md")}


def test_values() -> None:
    words = "show a b --launch 1,3-5 --ceilings c --ceilings d --top 2 --precision FP64,tensor"
    args = parse(words.split())
    assert (args.reports, args.launch, args.top) == (["a", "b"], ((1, 1), (3, 5)), 2)
    assert (args.ceilings, args.by, args.view, args.precision) == (["c", "d"], None, "roofline", ("fp64", "tensor"))
    assert parse(["show", "a"]).ceilings == []
    texts = ("4.2us", "4.2 \N{MICRO SIGN}s", "4200NS", "0.0042ms", "4.2e-6s", "4.2E-6 s", "0.42e1us")
    assert list(map(latency, texts)) == pytest.approx([4.2e-6] * len(texts))
    for text in ("0us", "1e999s", "1 minute", "1,5us"):
        with pytest.raises(argparse.ArgumentTypeError, match="is no time like"):
            latency(text)
    for line in ("show x", "--version", "--help x.ncu-rep", "shwo x.ncu-rep", "a-word", "bench run"):
        assert completed(line.split()) == line.split()


def test_an_empty_name_of_a_place_is_a_usage_error(run: Command) -> None:
    actions = {one: re.findall(r"^    (\w+) ", run(one, "--help").out, re.MULTILINE) for one in ("bench", "budget")}
    tried = [(("profile",), "--output")]
    for words in [(name,) for name in COMMANDS] + [(name, action) for name, found in actions.items() for action in found]:
        options = re.findall(r"(--[\w-]+) (\S+)", run(*words, "--help").out.partition("\n\n")[2])
        tried += [(words, option) for option, place in options if place in PLACES]
    wanted = "render compare annotate bench demo portability ranks generate budget"
    assert {words[0] for words, option in tried if option in ("--output", "--out")} >= set(wanted.split())
    for words, option in tried:
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
    assert "`ncu-roofline bench run --help`" in run("bench", "run", "one", "too", "many").err


def test_lists(run: Command) -> None:
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


def words(text: str) -> list[str]:
    plain = re.sub(r"^```\w*$|^<.*>$|^[-| :]+$|\[(\w+)\]\(\w+\.md\)", r" \1", text, flags=re.MULTILINE)
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
            assert width < 200 or set(listed) == set(PAGES) - {"README"} | {"topic"}
            continue
        assert set(Counter(words(page)) - Counter(words(done.out))) <= heads
        wide = [line for line in done.out.splitlines() if len(line) > width and line not in files]
        assert width != 80 or [line for line in wide if len(line.split()) > 1] == []
    (long,) = re.findall(r"^ncu-roofline compare .* --fail-if .*$", PAGES["compare"].replace(" \\\n    ", " "), re.MULTILINE)
    out = run("guide", "compare").out
    assert max(map(len, re.findall(r"^ +ncu-roofline .*", out, re.MULTILINE))) <= width
    printed = [line for line in out.replace("\\\n", "").splitlines() if "--fail-if" in line and line[0] == " "]
    assert shlex.split(long) in map(shlex.split, printed)


class Terminal(io.StringIO):
    """A stream that somebody looks at."""

    def isatty(self) -> bool:
        return True


def test_colours(monkeypatch: pytest.MonkeyPatch, source: Path) -> None:
    """On terminals, unless the environment says otherwise; nowhere else, unless it says so."""
    coloured = ("", "NO_COLOR=", "CLICOLOR=1", "FORCE_COLOR=1 TERM=dumb", "off FORCE_COLOR=1")
    plain = ("NO_COLOR=1", "NO_COLOR=0", "TERM=dumb", "CLICOLOR=0", "NO_COLOR=1 FORCE_COLOR=1", "off", "off FORCE_COLOR=0")
    for environment in (*coloured, *plain):
        with monkeypatch.context() as patched:
            for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR"):
                patched.delenv(name, raising=False)
            patched.setenv("TERM", "xterm-256color")
            for word in environment.removeprefix("off").split():
                patched.setenv(*word.split("="))
            out = io.StringIO() if environment.startswith("off") else Terminal()
            patched.setattr("sys.stdout", out)
            assert main(["show", str(source)]) == 0
        assert ("kernel" in out.getvalue(), "\x1b[" in out.getvalue()) == (True, environment in coloured), environment


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_a_reader_that_goes_away_and_a_console_without_every_character(tmp_path: Path) -> None:
    names = ("\u4e2d\u6587", *(f"k{number}" for number in range(100)))
    source = report(tmp_path / "r.ncu-rep", *(kernel(complete(), f"void {name}(int)") for name in names))
    for more in ("", "| head -c 1 >/dev/null"):
        words = ["bash", "-c", f'"$0" -m ncu_roofline show "$1" {more}; exit ${{PIPESTATUS[0]}}', sys.executable, str(source)]
        environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
        done = subprocess.run(words, capture_output=True, check=False, timeout=60, env=environment)
        assert (done.returncode, done.stderr, b"1 TFLOP/s" in done.stdout) == (0, b"", not more)


_ASK = """
source ./bash
COMP_WORDS=(ncu-roofline {words}); COMP_CWORD={last}
_shtab_ncu_roofline 2>/dev/null
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def said(*command: str) -> set[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return {line.partition("\t")[0].rstrip("/ ") for line in done.stdout.splitlines()} - {""}


@pytest.mark.parametrize("shell", SHELLS)
def test_completion(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    """All commands are there, no folder of this machine, and the shell itself proposes what may stand in a place."""
    shtab = pytest.importorskip("shtab")
    with monkeypatch.context() as patched:
        patched.setattr(shtab, "SUPPORTED_SHELLS", ["another"])  # as an older package does
        assert_refused(run("completion", shell), shell)
    if shell not in shtab.SUPPORTED_SHELLS:
        pytest.skip(f"a package without {shell}")
    monkeypatch.chdir(tmp_path)
    Path("a-report.ncu-rep").touch()
    Path("a-folder").mkdir()
    outcome = run("completion", shell)
    assert (outcome.code, outcome.err) == (0, "")
    assert all(name in outcome.out for name in COMMANDS)
    assert os.fspath(tmp_path) not in outcome.out
    assert shell != "zsh" or outcome.out.startswith("#compdef ncu-roofline\n")
    Path(shell).write_text(outcome.out, encoding="utf-8")
    if not shutil.which(shell):
        pytest.skip(f"no {shell}")
    if shell == "zsh":
        subprocess.run(["zsh", "-f", "-n", "zsh"], check=True, timeout=60)
    elif shell == "bash":  # it looks for files where no command fits
        assert "-o default" in "".join(said("bash", "--norc", "-c", "source ./bash; complete -p ncu-roofline"))
    lines = Path(__file__).with_name("completion.txt").read_text(encoding="utf-8").splitlines()[1:]
    for line, _, proposed in (line.rpartition(": ") for line in lines if shell != "zsh"):
        *before, last = line.split(" ")
        if shell == "fish":
            found = said("fish", "--no-config", "-c", f"source ./fish; complete -C 'ncu-roofline {line}'")
        else:
            found = said("bash", "--norc", "-c", _ASK.format(words=" ".join([*before, last or "''"]), last=len(before) + 1))
            assert all(one.startswith(last) for one in found), line
        assert set(proposed.split()) <= found, line


HEAVY = {
    "numpy", "pandas", "matplotlib", "google.protobuf", "jinja2", "rich", "tqdm", "pyarrow", "multiprocessing", "shtab",
}  # fmt: skip
DRAWING = {"pandas", "matplotlib", "jinja2", "pyarrow"}
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(ncu_roofline.__file__).resolve().parents[1])}
AFTER_A_COMMAND = """
import json, sys
from ncu_roofline.cli import main
try:
    code = main(sys.argv[1:])
except SystemExit as error:
    code = error.code or 0
sys.stdout.flush()
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""
AFTER_ALL_HELP = """
import json, sys
from ncu_roofline.cli import COMMANDS, parse
for command in COMMANDS:
    try:
        parse([command, "--help"])
    except SystemExit as error:
        assert error.code == 0, command
    assert not set(json.loads(sys.argv[1])) & set(sys.modules), command
"""
AFTER_IMPORTING_EVERYTHING = """
import importlib, json, os, pkgutil, sys, threading
environment, here = dict(os.environ), os.getcwd()
import ncu_roofline
for module in pkgutil.walk_packages(ncu_roofline.__path__, "ncu_roofline."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
assert dict(os.environ) == environment and os.getcwd() == here
assert threading.active_count() == 1
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
AFTER_READING = """
import sys, ncu_roofline
opened = ncu_roofline.read_report(sys.argv[1])
opened.columns(opened.metric_names)
assert [dict(one.metrics) for one in opened.kernels] and "numpy" not in sys.modules
assert not hasattr(ncu_roofline, "nope")
assert not [name for name in ncu_roofline.__all__ if getattr(ncu_roofline, name) is None]
"""


def python(folder: Path, program: str, *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", program, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, cwd=folder, env=ENVIRONMENT)


def loaded_by(folder: Path, *words: object) -> set[str]:
    done = python(folder, AFTER_A_COMMAND, *words)
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    return set(modules)


def test_help_and_lists_load_nothing_heavy(tmp_path: Path) -> None:
    loaded = loaded_by(tmp_path, "--help")
    assert not loaded & HEAVY
    assert {one for one in loaded if one.startswith("ncu_roofline.cli.")} == {"ncu_roofline.cli.outputs"}  # no command
    python(tmp_path, AFTER_ALL_HELP, json.dumps(sorted(HEAVY)))
    assert not loaded_by(tmp_path, "list", "formats") & {"numpy", "pandas", "matplotlib", "google.protobuf"}


@pytest.mark.parametrize(
    ("words", "without"),
    [
        ("show", DRAWING | {"ncu_roofline.analyses.source.build"}),  # nothing was counted by instruction
        ("render -o out.csv", DRAWING),
        ("render -o out.svg", {"jinja2", "pandas"}),
        ("render -o out.html", {"matplotlib"}),
    ],
)
def test_commands_load_what_they_need(source: Path, tmp_path: Path, words: str, without: set[str]) -> None:
    assert not loaded_by(tmp_path, *words.split(), source) & without


def test_importing_has_no_effect(tmp_path: Path) -> None:
    done = python(tmp_path, AFTER_IMPORTING_EVERYTHING)
    assert (done.stdout, len(done.stderr.splitlines())) == ("", 1)
    assert not set(json.loads(done.stderr)) & {*DRAWING, "tqdm"}
    assert not list(tmp_path.iterdir())
    python(tmp_path, AFTER_READING, report(tmp_path / "r.ncu-rep", kernel(complete())))
