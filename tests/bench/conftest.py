"""The played program, alone and on a user's machine."""

from __future__ import annotations

import platform
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest

from ncu_roofline.bench import campaign, document, runner
from ncu_roofline.bench.device import LOCAL_RANKS, RANK_COUNTS
from tests.bench.fakes import FakeNvml, Look, Program


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    made = Program()
    monkeypatch.setattr(runner, "_Process", made.started)
    monkeypatch.setattr(campaign, "Watch", Look)
    return made


@pytest.fixture
def machine(
    program: Program, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Program:
    """The same where a user works: NVML, no launcher around, a host and a day, an empty current folder and no data."""
    for name in (*LOCAL_RANKS, *RANK_COUNTS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setenv("XDG_DATA_HOME", str(elsewhere / "data"))
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    monkeypatch.setattr(campaign, "CLOCK", program.clock)
    monkeypatch.setattr(platform, "node", lambda: "node0")
    day = datetime(2026, 11, 22, 10, tzinfo=timezone.utc)
    monkeypatch.setattr(document, "datetime", SimpleNamespace(now=lambda _zone: day))
    return program
