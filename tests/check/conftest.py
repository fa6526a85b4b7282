"""Machines with and without the metric library."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ncu_roofline.plugin.check import chips


@pytest.fixture
def no_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without the metric library."""
    monkeypatch.setenv(chips.VARIABLE, "")
    chips.libraries.cache_clear()
    chips.chip.cache_clear()
    yield
    chips.libraries.cache_clear()
    chips.chip.cache_clear()


@pytest.fixture
def library() -> None:
    """Skips aloud where there is no metric library."""
    if not chips.libraries():
        pytest.skip(f"{chips.HOW_TO_GET} (or set {chips.VARIABLE})")
