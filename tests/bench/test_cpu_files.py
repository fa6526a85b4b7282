"""Ceilings files of CPUs are read, merged, verified and shown as those of GPUs are, and apply to no GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline.bench.device import Device
from ncu_roofline.bench.document import Origin, as_text, document
from ncu_roofline.bench.files import measured, merge, open_file, verify
from ncu_roofline.bench.measuring import FULL, Outcome, Record
from ncu_roofline.formats.ceilings import CPU, read_ceilings
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
    assert (found.kind, found.device, found.compute_capability) == (CPU, EPYC["name"], (0, 0))
    assert {name: one.value for name, one in found.by_id.items()} == RATES
    for name, capability in ((H200["name"], (9, 0)), (H200["name"], (0, 0)), (EPYC["name"], (9, 0)), ("", (0, 0))):
        assert not found.applies_to(name, capability)
    assert found.applies_to(EPYC["name"], (0, 0))  # in a log of LIKWID, say
    assert render_pack("2025.3", None).files == render_pack("2025.3", found).files  # sections and rules are of GPUs
    assert [finding.text.partition(":")[0] for finding in verify(str(path))] == ["no theory"]
    merged = merge([open_file(str(one)) for one in (path, write(tmp_path / "b.json", device(EPYC, uuid="CPU-2"), 1.1))])
    assert {entry["id"]: entry["value"] for entry in merged["ceilings"]}["dram.read"] == pytest.approx(1.05 * 380e9)
    path.write_text(as_text(merged), encoding="utf-8")
    assert (read_ceilings(path).kind, "l3.read" in measured(merged)) == (CPU, True)
    with pytest.raises(ValueError, match="compute capability"):
        device(EPYC, kind="npu")
