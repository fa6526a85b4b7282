"""The bar over long work: on a terminal, from one second on, and nowhere else."""

from __future__ import annotations

import io

import pytest

from ncu_roofline.cli.outputs import progress


class Terminal(io.StringIO):
    """Standard error where somebody looks."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "pause", "shown"), [(Terminal, 1.2, True), (Terminal, 0.0, False), (io.StringIO, 1.2, False)]
)
def test_who_sees_a_bar(monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO], pause: float, shown: bool) -> None:
    error, now = stream(), 0.0
    monkeypatch.setattr("sys.stderr", error)
    monkeypatch.setattr("tqdm.std.time", lambda: now)
    found = []
    for number in progress(range(3), "reading reports", 3):
        now += pause if number == 0 else 0.0
        found.append(number)
    assert found == [0, 1, 2]
    assert ("reading reports" in error.getvalue()) == shown


def test_without_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    assert list(progress(iter("ab"), "reading", 2)) == ["a", "b"]
