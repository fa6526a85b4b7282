"""Colours: on terminals, unless the environment says otherwise."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from ncu_roofline.cli import main
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


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [*((one, False) for one in PLAIN), *((one, True) for one in COLOURED)], ids=str,
)  # fmt: skip
def test_on_a_terminal(monkeypatch: pytest.MonkeyPatch, source: str, environment: dict[str, str], coloured: bool) -> None:
    for command in ("show",) if coloured else ("show", "advise"):
        text = shown(monkeypatch, Terminal(), environment, command, source)
        assert text
        assert ("\x1b[" in text) == coloured


@pytest.mark.parametrize(("environment", "there"), [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "0"}, False)])
def test_where_nobody_looks(monkeypatch: pytest.MonkeyPatch, source: str, environment: dict[str, str], there: bool) -> None:
    assert ("\x1b[" in shown(monkeypatch, io.StringIO(), environment, "show", source)) == there
