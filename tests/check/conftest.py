"""A machine without the metric library."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ncu_roofline.plugin.check import chips


@pytest.fixture
def no_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(chips.VARIABLE, "")
    chips.libraries.cache_clear()
    chips.chip.cache_clear()
    yield
    chips.libraries.cache_clear()
    chips.chip.cache_clear()
