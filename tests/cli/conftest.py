"""Fixtures of the tests of commands: reports, and what `show --json` prints of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command
from tests.factory import A100, H100, NO_WORK, by_address, complete, kernel, report, timing, traffic


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Four launches of three kernels, six milliseconds in all."""
    return report(
        tmp_path / "r.ncu-rep",
        kernel(complete(seconds=1e-3), "void first(int)", nvtx=("setup",)),
        kernel(complete(seconds=2e-3), "void second(int)", nvtx=("solve", "inner")),
        kernel(complete(seconds=2e-3, clock=0.705e9), "void second(int)", nvtx=("solve",)),
        kernel({**A100, **timing(1e-3), **NO_WORK, **traffic(1, 1, 1)}, "void copy(int)"),
    )


@pytest.fixture
def rows(run: Command) -> Callable[..., Any]:
    """The document that ``show --json`` prints for some words."""

    def show(*words: object) -> Any:
        outcome = run("show", "--json", *words)
        assert (outcome.code, outcome.err) == (0, "")
        return json.loads(outcome.out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))

    return show


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
