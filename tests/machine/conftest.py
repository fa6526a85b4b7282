"""A machine of its own for every test: empty home, nothing on the PATH but stand-ins."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.plugin.machine.install import Pack, render_pack
from ncu_roofline.plugin.machine.machine import Machine
from tests.cli.command import Command
from tests.machine.fakes import bare_machine

_packs: dict[tuple[str, str, str], Pack] = {}


def rendered_once(version: str, ceilings: Ceilings | None = None, *, tensor: str = "") -> Pack:
    """What `render_pack` gives; rendering takes longer than the rest of a test."""
    key = (version, ceilings.provenance if ceilings else "", tensor)
    if key not in _packs:
        _packs[key] = render_pack(version, ceilings, tensor=tensor)
    return _packs[key]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """The machine that all commands see; its environment can be changed in place."""
    made = bare_machine(tmp_path)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    for name in ("install", "profile"):
        monkeypatch.setattr(f"ncu_roofline.cli.{name}.this_machine", lambda: made)
        monkeypatch.setattr(f"ncu_roofline.cli.{name}.render_pack", rendered_once)
    return made


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], machine: Machine) -> Command:
    """Runs commands on `machine`."""
    assert machine.home
    return Command(capsys)


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """The folder on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder
