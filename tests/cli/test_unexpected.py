"""Exceptions that nobody foresaw: a sentence each, and under --keep-going they cost the report that they come from."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ncu_roofline.base.errors import TRACEBACK, UnexpectedError, unexpected
from ncu_roofline.cli import executors
from ncu_roofline.formats.report import Report
from tests.cli.command import Command, assert_refused
from tests.factory import complete, kernel, report


class OddError(Exception):
    """What no handler knows; its text is hostile, and it travels badly."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"\x1b[31m{one}\n{other}" + "x" * 5000)


ERRORS = (OverflowError("too large"), RecursionError("too deep"), MemoryError(), KeyError("Type"), OddError(1, 2))
COMMANDS = ("show", "render -o - --format csv", "explain", "advise", "ranks", "compare", "show --json")
CASES = [(error, words) for error in ERRORS for words in COMMANDS]
FEW = [*CASES[:: len(COMMANDS) + 1], CASES[6]]


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    return [report(tmp_path / f"rank{number}.ncu-rep", kernel(complete(seconds=1e-3 * (number + 1)))) for number in range(4)]


@pytest.fixture
def break_one(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception], None]:
    """Makes reading the report of rank 2 fail with an error."""
    monkeypatch.delenv(TRACEBACK, raising=False)
    given = Report.metric_names.fget  # type: ignore[attr-defined]

    def broken(error: Exception) -> None:
        def names(one: Report) -> frozenset[str]:
            if Path(one.path) == paths[2]:
                raise error
            return given(one)  # type: ignore[no-any-return]

        monkeypatch.setattr(Report, "metric_names", property(names))

    return broken


@pytest.mark.parametrize(
    ("error", "words"), [case if case in FEW else pytest.param(*case, marks=pytest.mark.exhaustive) for case in CASES]
)
def test_an_error_of_any_type(
    run: Command, paths: list[Path], break_one: Callable[[Exception], None], error: Exception, words: str
) -> None:
    expected = run(*words.split(), *paths[:2], paths[3])
    assert expected.code == 0
    break_one(error)
    outcome, refused = run(*words.split(), *paths, "--keep-going"), run(*words.split(), *paths)
    assert (outcome.out, refused.out) == (expected.out, "")
    for each in (outcome, refused):
        (line,) = each.err.splitlines()
        assert (each.code, line.startswith(f"ncu-roofline: Cannot read {paths[2]}: "), line.isprintable()) == (1, True, True)
        assert len(line) < 700 + len(str(paths[2]))
        told = (type(error).__name__, "This is a bug: please report this line", f"{TRACEBACK}=1")
        memory = isinstance(error, MemoryError)
        assert all(text in line for text in ((": memory ran out. Free some",) if memory else told))
    assert words != "show --json" or len(json.loads(outcome.out)["kernels"]) == 3


def _overflow(path: str, name: str) -> str:
    if name.endswith("rank2.ncu-rep"):
        raise OddError(1, 2)
    return path


def test_the_traceback_is_there_for_who_asks_also_from_another_process(
    run: Command, paths: list[Path], break_one: Callable[[Exception], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    break_one(OverflowError("too large"))
    monkeypatch.setenv(TRACEBACK, "1")
    first, *rest = run("show", *paths).err.splitlines()
    assert first.startswith(f"ncu-roofline: Cannot read {paths[2]}: ")
    assert (rest[0], rest[-1]) == ("Traceback (most recent call last):", "OverflowError: too large")
    found = list(executors.in_processes(_overflow, list(map(str, paths)), 2))
    assert [isinstance(one, UnexpectedError) for one in found] == [False, False, True, False]
    error = found[2]
    assert isinstance(error, UnexpectedError)
    assert "OddError" in str(error)
    assert "in _overflow" in error.trace


def test_a_command_that_fails_after_reading_or_lacks_a_package(
    run: Command, paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("float division by zero")

    monkeypatch.delenv(TRACEBACK, raising=False)
    with monkeypatch.context() as patch:
        patch.setattr("ncu_roofline.cli.show.render", fail)
        outcome = run("show", "--json", paths[0])
    (line,) = outcome.err.splitlines()
    assert (outcome.code, outcome.out) == (1, "")
    said = f"ncu-roofline: Cannot run ncu-roofline show --json {paths[0]}: ncu-roofline itself failed: Zero"
    assert line.startswith(said)
    monkeypatch.setitem(sys.modules, "ncu_roofline.analyses.hierarchical.text", None)
    outcome = run("show", paths[0])
    assert_refused(outcome, f"ncu-roofline show {paths[0]}")
    assert "a Python package can't be loaded (" in outcome.err
    assert "`ncu-roofline doctor` says what is missing or broken." in outcome.err


def test_an_interrupt_stays_one() -> None:
    """Imports make another error of it."""
    try:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise RuntimeError("Error calling __set_name__") from error
    except RuntimeError as found:
        with pytest.raises(KeyboardInterrupt):
            unexpected("Cannot read", "x", found)
