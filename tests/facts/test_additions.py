"""A chip, a precision, a level: each is one new file, and everything that lists, generates, reads and predicts has it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.base.files import HELPER
from tests.factory import A100, Metrics, complete, kernel, report

ROOT = Path(__file__).resolve().parents[2]
BINARIES = ("__pycache__", "*.pyc")

CHIP = """
compute_capability = "10.8"
name = "Scratch"
chips = ["GX108"]
products = ["X108"]
releases = { "10.8" = "2026.4-" }
tensor = "tcgen05"

[peaks]
fp32 = 256
"tensor.fp16" = 8192

[bandwidth]
l1 = { bytes = 128, per = "sm" }
dram = { bytes = 0.25, per = "bus" }

[[gpus]]
id = "X108"
names = ["X108"]
sm_count = 100
core_clock = 1000e6
tensor_clock = 1000e6
bus_bits = 4096
memory_clock = 1000e6
dram = 1024e9
source = "made up"
"""
PRECISION = """
[[precision]]
id = "fp128"
label = "FP128"
kind = "core"
unit = "flop"
order = 99
roofs = ["fma", "nofma"]
section = "HierarchicalQuadRooflineChart"

[[precision.bindings]]
counters = { "smsp__sass_thread_inst_executed_op_q{add,mul}_pred_on" = 1, smsp__sass_thread_inst_executed_op_qfma_pred_on = 2 }
peak = { sm__sass_thread_inst_executed_op_qfma_pred_on = 2 }
"""
LEVEL = """
id = "l3"
label = "L3 slice"
order = 9
clock = "lts"
chain = true
ceilings = ["l3.read"]

[[bindings]]
counters = { l3s__bytes = 1 }
peak = { l3s__bytes = 1 }
"""
QUAD: Metrics = {f"smsp__sass_thread_inst_executed_op_q{op}_pred_on.sum": 10**8 for op in ("add", "mul", "fma")}
X108: Metrics = {
    **A100,
    "device__attribute_display_name": "NVIDIA X108",
    "device__attribute_compute_capability_major": 10,
    "device__attribute_compute_capability_minor": 8,
}
# Two operations in each thread's instruction: only chips of 10.x have the counters.
PACKED: Metrics = {f"smsp__sass_thread_inst_executed_op_f{op}2_pred_on.sum": 10**8 for op in ("add", "mul", "fma")}


class Checkout:
    """A copy of the program to which files are added."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("ncu_roofline", "sections", "rules", "bench"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns(*BINARIES))

    def add(self, path: str, text: str) -> None:
        """A new data file, the one change to the program that there is."""
        (self.folder / "ncu_roofline" / "data" / path).write_text(text, encoding="utf-8")
        assert self.touched() == [f"ncu_roofline/data/{path}"]

    def touched(self) -> list[str]:
        """Files of the program that are new or differ."""
        files = (path for path in self.folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
        names = [str(path.relative_to(self.folder)) for path in files if path.parent != self.folder]
        return [
            name
            for name in names
            if not (ROOT / name).is_file() or (ROOT / name).read_bytes() != (self.folder / name).read_bytes()
        ]

    def run(self, *words: str) -> str:
        """What a command prints."""
        environ = {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "ncu_roofline", *words], cwd=self.folder, env=environ, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def points(self, metrics: Metrics) -> dict[tuple[str, str], dict[str, Any]]:
        """What `show` says about a report with one launch, by precision and level."""
        path = report(self.folder / "made.ncu-rep", kernel(metrics))
        return {(row["precision"], row["level"]): row for row in json.loads(self.run("show", str(path), "--json"))["points"]}

    def generated(self, *words: str) -> dict[str, str]:
        """Sections and rules by file name."""
        self.run("generate", "--out", "made", *words)
        made = {path.name: path.read_text(encoding="utf-8") for path in (self.folder / "made").rglob("*.*")}
        (helper,) = (name for name in made if name.startswith(HELPER))
        return {**made, HELPER: made[helper]}


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.mark.exhaustive
def test_a_chip_is_one_file(checkout: Checkout) -> None:
    checkout.add("architectures/10.8.toml", CHIP)
    assert "GX108" in checkout.run("list", "architectures")
    assert "CC_108" in checkout.generated("--ncu", "2026.4")["HierarchicalTensorRooflineChart.section"]
    assert "(10, 8)" in checkout.generated()[HELPER]
    points = checkout.points({**complete(X108), **PACKED})
    assert {level for _, level in points} == {"l1", "l2", "dram"}
    assert points["fp32", "dram"]["work"] == 8 * 10**8
    assert points["fp32", "l1"]["bandwidth_roof"] == pytest.approx(108 * 128 * 1.41e9)
    (theory,) = json.loads(checkout.run("bench", "theory", "--gpu", "X108", "--json"))
    assert theory["peaks"]["tensor.fp16.tcgen05"] == pytest.approx(100 * 8192 * 1e9)
    assert theory["peaks"]["dram.read"] == pytest.approx(1.024e12)


@pytest.mark.exhaustive
def test_a_precision_is_one_file(checkout: Checkout) -> None:
    checkout.add("precisions/fp128.toml", PRECISION)
    assert "FP128" in checkout.run("list", "precisions")
    made = checkout.generated()
    assert "FP128 without FMA" in made["HierarchicalQuadRooflineChart.section"]
    assert "fp128" in made["NcuRooflineBoundQuad.py"]
    points = checkout.points({**complete(), **QUAD})
    assert points["fp128", "dram"]["work"] == 4 * 10**8
    assert points["fp64", "dram"]["work"] == 10**9


def test_a_level_is_one_file(checkout: Checkout) -> None:
    checkout.add("levels/l3.toml", LEVEL)
    assert "L3 slice" in checkout.run("list", "levels")
    made = checkout.generated()
    assert "L3 slice bandwidth, FP64 FMA peak" in made["HierarchicalDoubleRooflineChart.section"]
    assert "'l3'" in made[HELPER]
    assert checkout.points({**complete(), "l3s__bytes.sum": 3 * 10**8})["fp64", "l3"]["intensity"] == pytest.approx(10 / 3)
