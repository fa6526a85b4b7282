"""Cubins and decoded functions: read once for all launches that share them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from ncu_roofline.analyses.source import code
from ncu_roofline.analyses.source.code import Cubins, LaunchCode
from ncu_roofline.formats.report import Code, Report, read_report
from ncu_roofline.formats.report.writer import ReportData, write_report
from ncu_roofline.formats.sass.cubin import Cubin, read_cubin
from tests import factory
from tests.sass import fixtures

BASE, LAUNCHES = 1 << 40, 12
NAME = next(iter(read_cubin(fixtures.cubin("80", "linked")).functions))
MODULES = [fixtures.cubin("80", "linked") + bytes(16 * number) for number in range(2)]


@contextmanager
def alternating(path: Path) -> Iterator[Report]:
    """A report whose launches are of two modules by turns."""
    launches = [
        factory.kernel(
            {},
            instances=factory.by_address(BASE, inst_executed=range(10)),
            code=Code(MODULES[number % 2], (), ()),
            mangled_name=NAME,
        )
        for number in range(LAUNCHES)
    ]
    write_report(path, ReportData(launches))
    with read_report(path) as report:
        yield report


def codes(report: Report, cubins: Cubins) -> list[LaunchCode]:
    addresses = np.arange(BASE, BASE + 160, 16)
    return [cubins.code(one, addresses) for one in report.kernels]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The cubins that were read."""
    found: list[bytes] = []

    def reading(data: bytes) -> Cubin:
        found.append(data)
        return read_cubin(data)

    monkeypatch.setattr(code, "read_cubin", reading)
    return found


def test_launches_of_two_modules_by_turns_read_each_once(tmp_path: Path, read: list[bytes]) -> None:
    with alternating(tmp_path / "made.ncu-rep") as report:
        found = codes(report, Cubins(None))
    assert read == MODULES
    assert len({id(one.bodies[0].instructions) for one in found}) == 2


def test_cubins_are_kept_up_to_a_size(tmp_path: Path, read: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one module fits at a time each is read again, but its functions are not decoded again."""
    monkeypatch.setattr(code, "_ROOM", len(MODULES[0]) + 100)
    with alternating(tmp_path / "made.ncu-rep") as report:
        found = codes(report, Cubins(None))
        assert read == MODULES * (LAUNCHES // 2)
    assert len({id(one.bodies[0].instructions) for one in found}) == 2
