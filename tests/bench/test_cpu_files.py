"""Ceilings files of CPUs: written, read, merged, verified and shown as those of GPUs are, and applied to no GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.bench.catalogue import CeilingKind
from ncu_roofline.bench.device import Device, parse_device
from ncu_roofline.bench.document import Origin, as_text, document
from ncu_roofline.bench.files import measured, merge, open_file, verify
from ncu_roofline.bench.measuring import FULL, Outcome, Record
from ncu_roofline.formats.ceilings import CPU, read_ceilings
from ncu_roofline.plugin.machine.install import render_pack
from tests.bench.fakes import H200, device

EPYC: dict[str, Any] = {
    "kind": "cpu",
    "index": 0,
    "name": "AMD EPYC 9754",
    "uuid": "CPU-11111111-2222-3333-4444-555555555555",
    "cores": 128,
    "logical_cpus": 256,
    "threads": 128,
    "sockets": 1,
    "numa_nodes": 1,
    "l1_bytes": 32768,
    "l2_bytes": 1048576,
    "l3_bytes": 16777216,
    "mem_total_bytes": 412316860416,
    "isa": ["avx2", "fma"],
}
RATES = {"dram.read": (380e9, "B/s"), "l3.read": (5e12, "B/s"), "fp64.fma": (5.8e12, "FLOP/s")}


def write(path: Path, cpu: Device, scale: float = 1.0) -> Path:
    """A file of one session of three trials per ceiling."""
    outcomes = []
    for name, (rate, unit) in RATES.items():
        kind, value = CeilingKind(name, unit), rate * scale
        record = Record(kind, "u8", "session", 0, [value] * 3, [0.02] * 3, [3.1e9] * 3, value * 0.02)
        outcomes.append(Outcome(kind, (record,)))
    origin = Origin({"compiler": "g++ 12"}, {"clock_governor": "performance"}, "")
    path.write_text(as_text(document(cpu, outcomes, FULL, origin)), encoding="utf-8")
    return path


@pytest.fixture
def cpu() -> Device:
    """A CPU as the benchmark describes it."""
    return parse_device(EPYC)


@pytest.fixture
def file(tmp_path: Path, cpu: Device) -> Path:
    """Its ceilings."""
    return write(tmp_path / "cpu.json", cpu)


def test_a_cpu_has_no_compute_capability(cpu: Device) -> None:
    assert (cpu.kind, cpu.capability_text, cpu.gpu, cpu.is_mig) == ("cpu", "", None, False)
    assert device().kind == "gpu"
    with pytest.raises(ValueError, match="compute capability"):
        parse_device({**EPYC, "kind": "npu"})


def test_what_the_file_says(file: Path) -> None:
    content = json.loads(file.read_text(encoding="utf-8"))
    assert content["device"] == {**EPYC, "clock_governor": "performance"}
    assert {entry["id"]: (entry["value"], entry["accepted"], entry["verdict"]) for entry in content["ceilings"]} == {
        name: (rate, True, "ok") for name, (rate, _) in RATES.items()
    }
    for entry in content["ceilings"]:
        assert set(entry["theory"].values()) == {None}
        assert (entry["clock"]["sm_mhz_mean"], entry["clock"]["method"]) == (3100.0, "dependent additions")
        assert entry["per_sm_and_cycle"] is None
    assert any(text.startswith("no theory") for text in content["warnings"])


def test_it_is_read_and_applies_to_no_gpu(file: Path) -> None:
    ceilings = read_ceilings(file)
    assert (ceilings.kind, ceilings.device, ceilings.compute_capability) == (CPU, EPYC["name"], (0, 0))
    assert {name: one.value for name, one in ceilings.by_id.items()} == {name: rate for name, (rate, _) in RATES.items()}
    for name, capability in ((H200["name"], (9, 0)), (H200["name"], (0, 0)), (EPYC["name"], (9, 0)), ("", (0, 0))):
        assert not ceilings.applies_to(name, capability)
    assert ceilings.applies_to(EPYC["name"], (0, 0))  # in a log of LIKWID, say


def test_sections_and_rules_are_made_without_them(file: Path) -> None:
    plain, given = (render_pack("2025.3", ceilings).files for ceilings in (None, read_ceilings(file)))
    assert plain == given


def test_it_is_verified_and_shown(file: Path) -> None:
    assert {finding.severity for finding in verify(str(file))} == {"note"}
    assert not any("not described" in finding.text for finding in verify(str(file)))
    text = measured(json.loads(file.read_text(encoding="utf-8")))
    assert "AMD EPYC 9754 (128 threads on 128 cores)" in text
    assert "l3.read" in text


def test_cpus_of_one_model_are_merged(tmp_path: Path, file: Path) -> None:
    other = parse_device({**EPYC, "uuid": "CPU-2"})
    content = merge([open_file(str(path)) for path in (file, write(tmp_path / "b.json", other, 1.1))])
    assert content["device"]["kind"] == "cpu"
    assert {entry["id"]: entry["value"] for entry in content["ceilings"]}["dram.read"] == pytest.approx(1.05 * 380e9)
    merged = tmp_path / "merged.json"
    merged.write_text(as_text(content), encoding="utf-8")
    assert read_ceilings(merged).kind == CPU
    assert "l3.read" in measured(content)
    smaller = write(tmp_path / "c.json", parse_device({**EPYC, "uuid": "CPU-3", "cores": 64}))
    with pytest.raises(RooflineError, match="AMD EPYC 9754, 64 is not cpu, AMD EPYC 9754, 128 of"):
        merge([open_file(str(path)) for path in (file, smaller)])
