"""Colours and bars: on terminals, unless the environment says otherwise."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from ncu_roofline.cli import main
from ncu_roofline.cli.outputs import progress
from tests.factory import complete, kernel, report

PLAIN = [{"NO_COLOR": "1"}, {"NO_COLOR": "0"}, {"TERM": "dumb"}, {"CLICOLOR": "0"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}]
COLOURED = [{}, {"NO_COLOR": ""}, {"CLICOLOR": "1"}, {"FORCE_COLOR": "1", "TERM": "dumb"}]


class Terminal(io.StringIO):
    """A stream that somebody looks at."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def shown(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, environment: dict[str, str], *words: str) -> str:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout", stream)
    assert main(words) == 0
    return stream.getvalue()


@pytest.fixture
def source(tmp_path: Path) -> str:
    return str(report(tmp_path / "r.ncu-rep", kernel(complete())))


@pytest.mark.parametrize("environment", PLAIN, ids=str)
@pytest.mark.parametrize("command", ["show", "advise"])
def test_no_colours(monkeypatch: pytest.MonkeyPatch, source: str, environment: dict[str, str], command: str) -> None:
    text = shown(monkeypatch, Terminal(), environment, command, source)
    assert text
    assert "\x1b" not in text


@pytest.mark.parametrize("environment", COLOURED, ids=str)
def test_colours(monkeypatch: pytest.MonkeyPatch, source: str, environment: dict[str, str]) -> None:
    assert "\x1b[" in shown(monkeypatch, Terminal(), environment, "show", source)


@pytest.mark.parametrize(("environment", "there"), [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "0"}, False)])
def test_colours_where_nobody_looks(
    monkeypatch: pytest.MonkeyPatch, source: str, environment: dict[str, str], there: bool
) -> None:
    assert ("\x1b[" in shown(monkeypatch, io.StringIO(), environment, "show", source)) == there


@pytest.mark.parametrize(("term", "bar"), [("xterm", True), ("dumb", False)])
def test_a_terminal_without_a_cursor_has_no_bars(monkeypatch: pytest.MonkeyPatch, term: str, bar: bool) -> None:
    monkeypatch.setenv("TERM", term)
    error, now = Terminal(), 0.0
    monkeypatch.setattr("sys.stderr", error)
    monkeypatch.setattr("tqdm.std.time", lambda: now)
    for _ in progress(range(2), "reading reports", 2):
        now += 1.2
    assert ("reading reports" in error.getvalue()) == bar
