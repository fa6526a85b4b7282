"""What a command line means: values of options, words that are missing or misspelt, files that another command reads."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ncu_roofline.cli import COMMANDS, completed, declare, parse
from ncu_roofline.cli.outputs import PLACES
from tests.cli.command import Command, assert_refused
from tests.factory import complete, kernel, report

OTHER = "void sort_keys(int)"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return report(tmp_path / "r.ncu-rep", kernel(complete(), "void compute_tendencies_x(int)"), kernel(complete(), OTHER))


def test_values() -> None:
    words = "show a b --launch 1,3-5 --ceilings c --ceilings d --top 2 --precision FP64,tensor"
    args = parse(words.split())
    assert (args.reports, args.launch, args.top) == (["a", "b"], ((1, 1), (3, 5)), 2)
    assert (args.ceilings, args.by, args.view, args.precision) == (["c", "d"], None, "roofline", ("fp64", "tensor"))
    assert parse(["show", "a"]).ceilings == []


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
    options = list(place_options(parser))
    assert {words[0] for words, option in options if option in ("--output", "--out")} >= {
        "render", "compare", "annotate", "bench", "demo", "portability", "ranks", "generate",
    }  # fmt: skip
    for words, option in [*options, (("profile",), "--output")]:
        outcome = run(*words, option, "")
        assert (outcome.code, "the name is empty" in outcome.err) == (2, True), (words, option)


def test_reports_alone_are_shown(run: Command, source: Path) -> None:
    shown = run("show", source)
    assert shown.code == 0
    assert "compute_tendencies_x" in shown.out
    for words in ((source,), (source.parent,), (source.parent / "*.ncu-rep",), ("--width", 120, source)):
        assert run(*words) == shown
    assert run("--by", "kernel", "--json", source) == run("show", "--by", "kernel", "--json", source)


def test_what_is_no_report_stays_and_what_can_only_be_one_is_missed(run: Command) -> None:
    for words in ("show x", "--version", "--help x.ncu-rep", "shwo x.ncu-rep", "a-word", "bench run"):
        assert completed(words.split()) == words.split()
    for word in ("none.ncu-rep", "none.csv", "there/is/none", "*.ncu-rep"):
        assert_refused(run(word), word)


def test_a_command_comes_before_a_file_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: Path) -> None:
    monkeypatch.chdir(tmp_path)
    source.rename("doctor")
    assert completed(["doctor"]) == ["doctor"]
    assert completed(["./doctor"]) == ["show", "./doctor"]


@pytest.mark.parametrize(
    ("words", "meant"),
    [("", "--help"), ("help", "--help"), ("help show", "show --help"), ("help bench run", "bench run --help"),
     ("version", "--version")],
)  # fmt: skip
def test_help_and_version_are_words_too(run: Command, words: str, meant: str) -> None:
    found = run(*words.split())
    assert found == run(*meant.split())
    assert (found.code, found.err) == (0, "")
    assert found.out


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("shwo r.ncu-rep", "show"),
        ("compair a b", "compare"),
        ("bench rnu", "run"),
        ("list lvels", "levels"),
        ("show r.ncu-rep --precison fp64", "--precision"),
        ("render r.ncu-rep --ouptut=x.png", "--output"),
        ("show r.ncu-rep --by kernal", "kernel"),
        ("--vresion", "--version"),
    ],
)
def test_did_you_mean(run: Command, words: str, meant: str) -> None:
    outcome = run(*words.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.rstrip().endswith(f"; did you mean {meant}?")


def test_nothing_alike_is_not_guessed_and_a_command_tells_of_its_own_options(run: Command, source: Path) -> None:
    for words in ("qqqq", "show r.ncu-rep --qqqq", "show r.ncu-rep --by qqqq", "show r.ncu-rep -q"):
        outcome = run(*words.split())
        assert (outcome.code, "did you mean" in outcome.err) == (2, False)
    assert "usage: ncu-roofline show " in run("show", "x", "--no-such-option").err
    assert "usage: ncu-roofline bench run " in run("bench", "run", "one", "too", "many").err
    assert run("show", source, "--prec", "fp64", "--kern=compute").code == 0  # options may still be shortened


@pytest.mark.parametrize(
    ("words", "code", "meant"),
    [
        ("show {} --precision fp46", 1, "fp64"),
        ("explain {} --level drma", 1, "dram"),
        ("show {} --view instruction --precision inst.shred", 1, "inst.shared"),
        ("render {} -o out.htlm", 2, "html"),
        ("render {} -o out --format pgn", 2, "png"),
        ("show {} --kernel compute_tendecies", 1, "compute_tendencies_x"),
        ("compare {} {} --kernel sort_kyes", 1, "sort_keys"),
        ("advise {} --kernel ^Compute_Tendencies$", 1, "compute_tendencies_x"),
    ],
)
def test_names_inside_reports_and_tables(run: Command, source: Path, words: str, code: int, meant: str) -> None:
    outcome = run(*words.format(source, source).split())
    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.err.rstrip().endswith(f"did you mean {meant}?")
    assert len(outcome.err.splitlines()) == 1


def test_kernels_are_named_where_none_is_alike(run: Command, source: Path) -> None:
    outcome = run("ranks", source, "--kernel", "qqqq")
    assert_refused(outcome, source)
    assert outcome.err.rstrip().endswith("; the kernels are compute_tendencies_x, sort_keys.")
    assert run("show", source, "--kernel", "sort_keys", "--launch", "9").err.rstrip().endswith(" Loosen the filters.")


@pytest.mark.parametrize(
    ("name", "question"), [("foward.ncu-rep", "; did you mean {}/forward.ncu-rep?"), ("zzz.ncu-rep", "."), ("a/b.ncu-rep", ".")]
)
def test_a_file_with_a_name_like_it_is_asked_about(run: Command, tmp_path: Path, name: str, question: str) -> None:
    report(tmp_path / "forward.ncu-rep", kernel(complete()))
    done = run("show", tmp_path / name)
    assert done.code == 1
    assert done.err.endswith(f"there is no such file. Check the path{question.format(tmp_path)}\n")


def test_commands_that_need_a_report_say_so_of_other_files(run: Command, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("kernel,gflop/s,ai_dram,peak_gflops,bandwidth_dram_gbs\ntriad,10,0.1,1000,100\n")
    for words in (("advise", table), ("annotate", table, "-o", tmp_path / "copy.ncu-rep")):
        outcome = run(*words)
        assert_refused(outcome, table)
        assert "it is a plain table, and " in outcome.err
        assert outcome.err.endswith("Give the report (.ncu-rep) itself.\n")
    assert "triad" in run("show", table).out


def test_show_writes_no_file_and_says_what_does(run: Command, source: Path, tmp_path: Path) -> None:
    target = tmp_path / "my page.html"
    outcome = run("show", source, "-o", target)
    assert_refused(outcome, target, code=2)
    command = shlex.split(outcome.err.partition("Write pictures and pages with ")[2].strip("`.\n"))
    assert command[0] == "ncu-roofline"
    assert run(*command[1:]).code == 0
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_hundreds_of_long_names_take_no_time(run: Command, tmp_path: Path) -> None:
    kernels = [kernel(complete(), f"void {'ab' * 2_000}_{number}(int)") for number in range(300)]
    many = report(tmp_path / "many.ncu-rep", *kernels)
    begun = time.process_time()
    assert run("show", many, "--kernel", "ba" * 5_000 + "c").code == 1
    assert time.process_time() - begun < 4
