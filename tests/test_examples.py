"""Examples of Hypothesis: in the default run the same, whatever ran before, and nothing of it lies in the checkout."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st


def examples() -> list[tuple[int, str]]:
    """Those of a property."""
    found = []

    @given(st.integers(), st.text())
    def note(number: int, text: str) -> None:
        found.append((number, text))

    note()
    return found


def test_they_are_the_same_whatever_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = examples()
    (tmp_path / "constants_of_a_module.py").write_text(f"NUMBERS, TEXTS = {list(range(10**6, 10**6 + 50))}, {list('abcdefgh')}")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("constants_of_a_module")
    assert examples() == before
    assert len(set(before)) > 50


def test_what_hypothesis_keeps_lies_with_what_else_is_temporary(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert examples()
    assert list((tmp_path_factory.getbasetemp() / "hypothesis").iterdir())
