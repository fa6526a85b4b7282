"""No text makes a regular expression of the package slow, and one that a user gives is stopped."""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ncu_roofline import patterns
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.patterns import UserPattern
from ncu_roofline.cli.options import regex
from ncu_roofline.formats.inputs import vtune
from ncu_roofline.model.names import short_names
from ncu_roofline.plugin.machine.profile import FAILURES
from tests.cli.command import Command, assert_refused
from tests.factory import complete, kernel, report
from tests.patterns import Use, faults, uses

# Expressions made of what a function is given: what they then are.  A new one has to be added here, or made a constant.
_MADE = {
    'inputs/ncu_cells.py: f"[\\\\s\'{grouping}]"': ("[\\s'.]",),
    "facts/plausible.py: '|'.join(map(translate, wildcards)) or '(?!)'": (),  # longer names than 300 letters are not looked at
    "inputs/ncu_cells.py: f'{mark}{first}{mark} *{re.escape(self.delimiter)}'": ('"ID" *,', "ID *;"),
    "inputs/ncu_cells.py: f\"[+-]?(?:\\\\d{{1,3}}(?:[\\\\s'{group}]\\\\d{{2,3}})*[\\\\s'{group}]\\\\d{{3}}|\\\\d+)(?:{re.escape(mark)}\\\\d*)?(?:[eE][+-]?\\\\d+)?\"": (  # noqa: E501
        r"[+-]?(?:\d{1,3}(?:[\s',]\d{2,3})*[\s',]\d{3}|\d+)(?:\.\d*)?(?:[eE][+-]?\d+)?",
    ),
    "inputs/vtune.py: way": tuple(way for ways in vtune._COUNTERS.values() for way in ways),
    "inputs/nvprof_tables.py: f'\\\\b{re.escape(product)}\\\\b'": (r"\bV100\b",),
    "machine/profile.py: failure.pattern": tuple(failure.pattern for failure in FAILURES),
    "sectionfile/classify.py: pattern": (),  # its tables are found as they are
}
_SECONDS = 300  # for all of them; they take about 15
_SLOW = r"(\w*)(\w*)(\w*)(\w*)(\w*)\1\2\3\4\5!$"
_NAME = "a" * 60 + "!!"


def _every_use() -> list[Use]:
    found, made = uses()
    assert set(made) == set(_MADE), "an expression that these tests don't see"
    return found + [Use(place, text, 0, "search") for place in made for text in _MADE[place]]


def _report_faults(results: multiprocessing.Queue[str]) -> None:
    for use in _every_use():
        results.put(f"at {use.place} {use.pattern!r}")
        for fault in faults(use):
            results.put(fault)
    results.put("")


def _results(results: multiprocessing.Queue[str]) -> Iterator[str]:
    while text := results.get(timeout=_SECONDS):
        yield text


def test_cost_of_every_expression_is_linear() -> None:
    context = multiprocessing.get_context("spawn")  # of its own, so that one that never ends can be ended
    results: multiprocessing.Queue[str] = context.Queue()
    process = context.Process(target=_report_faults, args=(results,), daemon=True)
    process.start()
    seen: list[str] = []
    try:
        seen.extend(_results(results))
    finally:
        process.kill()
        process.join()
    assert len(seen) > 100
    assert [text for text in seen if not text.startswith("at ")] == []


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"_(?:\d+(?:de|[dce]))*\d+(?:de|[dce])(?:\d+(?:de|[dce])?)*$", "search"),  # stood in the package
        (r"(\w+\s?)+$", "match"),
        (r"\s*\[with (.*)\]$", "search"),
        (r"a*a*b", "fullmatch"),
    ],
)
def test_expressions_known_to_be_slow_are_found(pattern: str, method: str) -> None:
    assert list(faults(Use("here", pattern, 0, method)))


def test_names_made_for_slow_expressions_are_read() -> None:
    names = ["k_1d" + "1" * 4000 + "x", "fused_conv_2d" + "0123456789" * 300 + "_v2", "a" * 4000 + "<", "f [with " * 400]
    assert all(short_names(names))


def test_a_user_s_expression_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "SECONDS", 0.2)
    with pytest.raises(RooflineError, match=r"^Cannot use --kernel .*: it took more than 0.2 seconds, .* of 62 characters\."):
        UserPattern(_SLOW, "--kernel").search(_NAME)


def test_the_time_is_that_of_all_texts_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "SECONDS", 0.5)
    pattern = UserPattern(_SLOW, "--kernel")
    for _ in range(2):  # far from the limit each
        pattern.search("a" * 10 + "!!")
    with pytest.raises(RooflineError):
        list(map(pattern.search, ["a" * 16 + "!!"] * 1_000))


@pytest.mark.parametrize("text", ["(", "[", "*", r"(?P<1>a)", "a{2,1}"])
def test_what_is_no_expression_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="is not a regular expression"):
        UserPattern(text, "--kernel")


@pytest.mark.parametrize("text", [r"^gemm(?!v)", r"(a|b)\1", r"(?i)axpy", r"kernel<\d+, float>", "lambda#1", r"\bk\b.*f$"])
def test_expressions_mean_what_they_mean_in_python(text: str) -> None:
    assert regex(text) == text
    for name in ("gemm_nt", "gemv", "aaa", "abb", "AXPY", "void kernel<3, float>(int)", "main lambda#1", "k\nf"):
        ours, pythons = UserPattern(text, "--kernel").search(name), re.search(text, name)
        assert (ours and ours.span()) == (pythons and pythons.span())


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("show", "--kernel", _SLOW), "--kernel"),
        (("show", "--nvtx", _SLOW), "--nvtx"),
        (("advise", "--kernel", _SLOW), "--kernel"),
        (("compare", "--kernel", _SLOW), "--kernel"),
    ],
)
def test_commands_say_that_an_expression_takes_too_long(
    words: tuple[str, ...], option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Command
) -> None:
    monkeypatch.setattr(patterns, "SECONDS", 0.2)
    file = report(tmp_path / "a.ncu-rep", kernel(complete(), _NAME, nvtx=(_NAME,)))
    outcome = run(words[0], file, *([file] if words[0] == "compare" else []), *words[1:])
    assert outcome.code == 1
    assert f"Cannot use {option} {_SLOW}: it took more than 0.2 seconds" in outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_labels_and_ranks_are_stopped_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Command) -> None:
    monkeypatch.setattr(patterns, "SECONDS", 0.2)
    files = [report(tmp_path / f"{name}{_NAME}", kernel(complete())) for name in "xy"]
    commands = (("show", "--label"), ("ranks", "--rank"), ("portability", "--label"))
    for words in ((command, *files, option, _SLOW) for command, option in commands):
        assert_refused(run(*words), _SLOW)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)
