"""Ceilings files of CPUs apply to no GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline.bench.device import Device
from ncu_roofline.bench.document import Origin, as_text, document
from ncu_roofline.bench.measuring import FULL, Outcome, Record
from ncu_roofline.formats.ceilings import read_ceilings
from ncu_roofline.plugin.machine.install import render_pack
from tests.bench.fakes import EPYC, H200, device, kind

RATES = {"dram.read": 380e9, "l3.read": 5e12, "fp64.fma": 5.8e12}


def write(path: Path, cpu: Device, scale: float = 1.0) -> Path:
    """A file of one session of three trials per ceiling."""
    records = [
        Record(kind(name), "u8", "session", 0, [rate * scale] * 3, [0.02] * 3, [3.1e9] * 3, 1e9) for name, rate in RATES.items()
    ]
    content = document(cpu, [Outcome(one.kind, (one,)) for one in records], FULL, Origin({"compiler": "g++ 12"}, {}, ""))
    path.write_text(as_text(content), encoding="utf-8")
    return path


def test_a_file_of_a_cpu(tmp_path: Path) -> None:
    path, cpu = tmp_path / "cpu.json", device(EPYC)
    found = read_ceilings(write(path, cpu))
    assert (cpu.kind, cpu.capability_text, cpu.gpu, cpu.is_mig, device().kind) == ("cpu", "", None, False, "gpu")
    for name, capability in ((H200["name"], (9, 0)), (H200["name"], (0, 0)), (EPYC["name"], (9, 0)), ("", (0, 0))):
        assert not found.applies_to(name, capability)
    assert found.applies_to(EPYC["name"], (0, 0))  # in a log of LIKWID, say
    assert render_pack("2025.3", None).files == render_pack("2025.3", found).files  # sections and rules are of GPUs
    with pytest.raises(ValueError, match="compute capability"):
        device(EPYC, kind="npu")
