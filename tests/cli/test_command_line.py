"""What a command line means where words are missing or misspelt."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import pytest

from ncu_roofline.cli import completed
from tests.cli.command import Command, assert_refused
from tests.factory import complete, kernel, report

OTHER = "void sort_keys(int)"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return report(tmp_path / "r.ncu-rep", kernel(complete(), "void compute_tendencies_x(int)"), kernel(complete(), OTHER))


def test_reports_alone_are_shown(run: Command, source: Path) -> None:
    shown = run("show", source)
    assert shown.code == 0
    assert "compute_tendencies_x" in shown.out
    for words in ((source,), (source.parent,), (source.parent / "*.ncu-rep",), ("--width", 120, source)):
        assert run(*words) == shown


def test_options_before_reports(run: Command, source: Path) -> None:
    assert run("--by", "kernel", "--json", source) == run("show", "--by", "kernel", "--json", source)


@pytest.mark.parametrize("words", ["show x", "--version", "--help x.ncu-rep", "shwo x.ncu-rep", "a-word", "bench run"])
def test_what_is_no_report_stays(words: str) -> None:
    assert completed(words.split()) == words.split()


@pytest.mark.parametrize("word", ["none.ncu-rep", "none.csv", "there/is/none", "*.ncu-rep"])
def test_what_can_only_be_a_report_is_missed_as_one(run: Command, word: str) -> None:
    assert_refused(run(word), word)


def test_a_command_comes_before_a_file_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: Path) -> None:
    monkeypatch.chdir(tmp_path)
    source.rename("doctor")
    assert completed(["doctor"]) == ["doctor"]
    assert completed(["./doctor"]) == ["show", "./doctor"]


def test_no_word_asks_for_help(run: Command) -> None:
    outcome = run()
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome == run("--help")
    assert "COMMAND" in outcome.out


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


@pytest.mark.parametrize("words", ["qqqq", "show r.ncu-rep --qqqq", "show r.ncu-rep --by qqqq", "show r.ncu-rep -q"])
def test_nothing_alike_is_not_guessed(run: Command, words: str) -> None:
    outcome = run(*words.split())
    assert outcome.code == 2
    assert "did you mean" not in outcome.err


def test_a_command_tells_of_its_own_options(run: Command) -> None:
    assert "usage: ncu-roofline show " in run("show", "x", "--no-such-option").err
    assert "usage: ncu-roofline bench run " in run("bench", "run", "one", "too", "many").err


def test_options_may_still_be_shortened(run: Command, source: Path) -> None:
    assert run("show", source, "--prec", "fp64", "--kern=compute").code == 0


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


def test_a_kernel_that_is_there_is_not_proposed(run: Command, source: Path) -> None:
    assert run("show", source, "--kernel", "sort_keys", "--launch", "9").err.rstrip().endswith(" Loosen the filters.")


def test_show_writes_no_file_and_says_what_does(run: Command, source: Path, tmp_path: Path) -> None:
    target = tmp_path / "my page.html"
    outcome = run("show", source, "-o", target)
    assert_refused(outcome, target, code=2)
    command = shlex.split(outcome.err.partition("Write pictures and pages with ")[2].strip("`.\n"))
    assert command[0] == "ncu-roofline"
    assert run(*command[1:]).code == 0
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_thousands_of_long_names_take_no_time(run: Command, tmp_path: Path) -> None:
    kernels = [kernel(complete(), f"void {'ab' * 2_000}_{number}(int)") for number in range(1_500)]
    many = report(tmp_path / "many.ncu-rep", *kernels)
    begun = time.process_time()
    assert run("show", many, "--kernel", "ba" * 5_000 + "c").code == 1
    assert time.process_time() - begun < 20
