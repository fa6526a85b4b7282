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
fp32_tflops = 25.6
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the program with three more data files."""
    made = tmp_path_factory.mktemp("checkout")
    for name in ("ncu_roofline", "sections", "rules", "bench"):
        shutil.copytree(ROOT / name, made / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    for path, text in (("architectures/10.8", CHIP), ("precisions/fp128", PRECISION), ("levels/l3", LEVEL)):
        (made / "ncu_roofline" / "data" / f"{path}.toml").write_text(text, encoding="utf-8")
    return made


def run(folder: Path, *words: str) -> str:
    """What the command of the copy prints."""
    environ = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "ncu_roofline", *words]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def points(folder: Path, metrics: Metrics) -> dict[tuple[str, str], dict[str, Any]]:
    """What `show` says about a report with one launch, by precision and level."""
    path = report(folder / "made.ncu-rep", kernel(metrics))
    return {(row["precision"], row["level"]): row for row in json.loads(run(folder, "show", str(path), "--json"))["points"]}


def test_reports_have_their_points(folder: Path) -> None:
    metrics = {**complete(X108), **PACKED, **QUAD, "l3s__bytes.sum": 3 * 10**8}
    found = points(folder, metrics)
    assert {level for _, level in found} == {"l1", "l2", "l3", "dram"}
    assert found["fp32", "dram"]["work"] == 8 * 10**8
    assert found["fp32", "l1"]["bandwidth_roof"] == pytest.approx(108 * 128 * 1.41e9)
    assert found["fp128", "dram"]["work"] == 4 * 10**8
    assert found["fp64", "dram"]["work"] == 10**9
    assert found["fp64", "l3"]["intensity"] == pytest.approx(10 / 3)


@pytest.mark.exhaustive
def test_everything_lists_generates_and_predicts_them(folder: Path) -> None:
    for what, label in (("architectures", "GX108"), ("precisions", "FP128"), ("levels", "L3 slice")):
        assert label in run(folder, "list", what)
    (theory,) = json.loads(run(folder, "bench", "theory", "--gpu", "X108", "--json"))
    assert theory["peaks"]["tensor.fp16.tcgen05"] == pytest.approx(100 * 8192 * 1e9)
    assert theory["peaks"]["dram.read"] == pytest.approx(1.024e12)
    run(folder, "generate", "--out", "made")
    made = {path.name: path.read_text(encoding="utf-8") for path in (folder / "made").rglob("*.*")}
    assert "FP128 without FMA" in made["HierarchicalQuadRooflineChart.section"]
    assert "L3 slice bandwidth, FP64 FMA peak" in made["HierarchicalDoubleRooflineChart.section"]
    assert "fp128" in made["NcuRooflineBoundQuad.py"]
    (helper,) = (text for name, text in made.items() if name.startswith(HELPER))
    assert "(10, 8)" in helper
    assert "'l3'" in helper
    run(folder, "generate", "--out", "of_2026", "--ncu", "2026.4")
    (tensor,) = (folder / "of_2026").rglob("HierarchicalTensorRooflineChart.section")
    assert "CC_108" in tensor.read_text(encoding="utf-8")
