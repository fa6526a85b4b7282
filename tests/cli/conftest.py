"""Fixtures of the tests of commands: reports, and what `show --json` prints of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.factory import A100, H100, NO_WORK, by_address, complete, kernel, report, timing, traffic


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return report(tmp_path / "r.ncu-rep", kernel(complete()))


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A report of three launches on two chips, one of them without floating-point work, one with counts by instruction."""
    path = tmp_path_factory.mktemp("whole") / "whole.ncu-rep"
    idle = {**A100, **timing(), **NO_WORK, **traffic(1, 1, 1)}
    counted = by_address(0x7F0000000000, inst_executed=[1.0] * 8, smsp__pcsamp_sample_count=[2.0] * 8)
    launches = [
        kernel(complete(), nvtx=("outer", "inner"), instances=counted),
        kernel(complete(H100), "void second(float *)"),
        kernel(idle),
    ]
    return report(path, *launches).read_bytes()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder for results."""
    result = tmp_path / "results"
    result.mkdir()
    return result
