"""Fixtures of the tests of commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.factory import complete, kernel, report


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return report(tmp_path / "r.ncu-rep", kernel(complete()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder for results."""
    result = tmp_path / "results"
    result.mkdir()
    return result
