"""Exceptions that nobody foresaw: a sentence each, and under --keep-going they cost the report that they come from."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ncu_roofline.base.errors import TRACEBACK, UnexpectedError, unexpected
from ncu_roofline.cli import executors
from ncu_roofline.formats.report import Report
from tests.cli.command import Command, Outcome, assert_refused
from tests.factory import complete, kernel, report

COMMANDS = (
    ("show",),
    ("render", "-o", "-", "--format", "csv"),
    ("explain",),
    ("advise",),
    ("ranks",),
    ("compare",),
)


class OddError(Exception):
    """What no handler knows; its text is hostile, and it travels badly."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"\x1b[31m{one}\n{other}" + "x" * 5000)


ERRORS = (
    OverflowError("integer division result too large for a float"),
    RecursionError("maximum recursion depth exceeded"),
    MemoryError(),
    KeyError("Type"),
    OddError(1, 2),
)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.delenv(TRACEBACK, raising=False)
    return Command(capsys)


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    return [report(tmp_path / f"rank{number}.ncu-rep", kernel(complete(seconds=1e-3 * (number + 1)))) for number in range(4)]


@pytest.fixture
def break_one(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> type:
    """Makes reading the report of rank 2 fail with an error."""
    given = Report.metric_names.fget  # type: ignore[attr-defined]

    class Break:
        def __init__(self, error: Exception) -> None:
            def names(one: Report) -> frozenset[str]:
                if Path(one.path) == paths[2]:
                    raise error
                return given(one)  # type: ignore[no-any-return]

            monkeypatch.setattr(Report, "metric_names", property(names))

    return Break


def assert_sentence(outcome: Outcome, path: Path, error: Exception) -> None:
    (line,) = outcome.err.splitlines()
    assert outcome.code == 1
    assert line.startswith(f"ncu-roofline: Cannot read {path}: ")
    assert line.isprintable()
    assert len(line) < 700 + len(str(path))
    if isinstance(error, MemoryError):
        assert ": memory ran out. Free some" in line
    else:
        assert type(error).__name__ in line
        assert "This is a bug: please report this line" in line
        assert f"{TRACEBACK}=1" in line


@pytest.mark.sampled("OverflowError-*", "OddError-show")
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_of_any_type(
    run: Command, paths: list[Path], break_one: type, words: tuple[str, ...], error: Exception
) -> None:
    expected = run(*words, *paths[:2], paths[3])
    assert expected.code == 0
    break_one(error)
    outcome = run(*words, *paths, "--keep-going")
    assert_sentence(outcome, paths[2], error)
    assert outcome.out == expected.out
    refused = run(*words, *paths)
    assert_sentence(refused, paths[2], error)
    assert refused.out == ""


def test_the_traceback_is_there_for_who_asks(
    run: Command, paths: list[Path], break_one: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_one(OverflowError("too large"))
    monkeypatch.setenv(TRACEBACK, "1")
    first, *rest = run("show", *paths).err.splitlines()
    assert first.startswith(f"ncu-roofline: Cannot read {paths[2]}: ")
    assert rest[0] == "Traceback (most recent call last):"
    assert rest[-1] == "OverflowError: too large"


def _overflow(path: str, name: str) -> str:
    if name.endswith("rank2.ncu-rep"):
        raise OddError(1, 2)
    return path


def test_in_another_process(paths: list[Path]) -> None:
    """The error travels as its sentence."""
    found = list(executors.in_processes(_overflow, list(map(str, paths)), 2))
    assert [isinstance(one, UnexpectedError) for one in found] == [False, False, True, False]
    error = found[2]
    assert isinstance(error, UnexpectedError)
    assert "OddError" in str(error)
    assert "in _overflow" in error.trace


def test_a_command_that_fails_after_reading(run: Command, paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("float division by zero")

    monkeypatch.setattr("ncu_roofline.cli.show.render", fail)
    outcome = run("show", "--json", paths[0])
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(
        f"ncu-roofline: Cannot run ncu-roofline show --json {paths[0]}: ncu-roofline itself failed: Zero"
    )
    assert len(outcome.err.splitlines()) == 1


def test_a_package_that_is_missing(run: Command, paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_other_reports_are_whole(run: Command, paths: list[Path], break_one: type) -> None:
    break_one(OverflowError("too large"))
    outcome = run("show", "--json", *paths, "--keep-going")
    assert len(json.loads(outcome.out)["kernels"]) == 3
