"""Every real report answers for every launch, and what it says is recomputed from the raw metrics by a second, naive path."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline import read_report
from ncu_roofline.cli import main

pytestmark = pytest.mark.reports

THREADS = "sass__thread_inst_executed_true_per_opcode_with_modifier_all"
WARPS = "sass__inst_executed_per_opcode_with_modifier_all"
LEVELS = ("l1", "shared", "l2", "dram", "system")
PER_THREAD = {
    "DADD": ("fp64", 1),
    "DMUL": ("fp64", 1),
    "DFMA": ("fp64", 2),
    "FADD": ("fp32", 1),
    "FMUL": ("fp32", 1),
    "FFMA": ("fp32", 2),
}
SHAPES = {"884": 512, "1688": 2048, "16816": 4096, "8816": 2048, "16832": 8192}
TENSOR = {"HMMA": "tensor.fp16", "IMMA": "tensor.int8", "DMMA": "tensor.fp64"}


def shown(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["show", str(path), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def by_hand(counts: list[tuple[Any, Any]], warps: list[tuple[Any, Any]]) -> dict[str, float]:
    """Operations by precision from opcode names alone."""
    work: dict[str, float] = defaultdict(float)
    for opcode, number in counts:
        name = opcode.split(".")[0].removesuffix("32I")
        if name in PER_THREAD:
            precision, weight = PER_THREAD[name]
            work[precision] += weight * number
    for opcode, number in warps:
        name, *words = opcode.split(".")
        if name in TENSOR and (shape := next((word for word in words if word in SHAPES), None)):
            assert "BF16" not in words
            assert "TF32" not in words
            work[TENSOR[name]] += SHAPES[shape] * number
    return work


def test_every_launch_of_every_report_answers(real_reports: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    drawn = 0
    for path in real_reports.values():
        data = shown(path, capsys)
        pointed = {row["launch"] for row in data["points"]}
        drawn += bool(pointed)
        for row in data["kernels"]:
            assert re.fullmatch(
                r"(memory|compute): \S.*|latency|tensor work unknown|too short to judge|unknown", row["verdict"]
            ), row
            assert row["reason"], row
            known = [row[f"fraction_{level}"] for level in LEVELS] + [row["busiest_fraction"], row["occupancy_theoretical"]]
            if row["seconds"] is None:  # in one launch every number is NaN
                continue
            assert row["launch"] in pointed or any(value is not None for value in known), (path.name, row)
            if row["verdict"] == "unknown":
                assert re.search("not collected|only a part was counted|of a roof, which no kernel has", row["reason"]), row
            if row["headroom"] is not None:
                assert row["headroom"] >= 1
                assert row["fraction_dram"] is not None, (path.name, row)
                assert row["fraction_l2"] is not None, (path.name, row)
            assert (row["headroom"] is None) or row["verdict"] not in {"unknown", "too short to judge", "tensor work unknown"}
    assert drawn == len([name for name in real_reports if "basic" not in name]) - 2  # one report is all NaN, one has no bytes


def test_work_from_opcodes_by_hand(real_reports: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    compared = 0
    for path in real_reports.values():
        with read_report(path) as report:
            if WARPS not in report.metric_names:
                continue
            points = shown(path, capsys)["points"]
            for kernel in report.kernels:
                if WARPS not in kernel.metrics.names() or not kernel.metrics.instances(WARPS):
                    continue
                expected = by_hand(kernel.metrics.instances(THREADS), kernel.metrics.instances(WARPS))
                mine = [row for row in points if row["launch"] == kernel.index and row["level"] == "dram"]
                for row in mine:
                    if row["source"] == "opcodes" and row["precision"] in (*PER_THREAD.values(), *TENSOR.values()):
                        assert row["work"] == pytest.approx(expected[row["precision"]], rel=1e-12)
                        compared += 1
                    elif row["precision"] in ("fp64", "fp32") and "function" not in row["notes"]:
                        told = "by opcodes" in row["notes"]
                        assert told or row["work"] == pytest.approx(expected[row["precision"]], rel=0.01), (path.name, row)
                        compared += 1
    assert compared >= 20


def test_use_of_the_hardware_by_hand(real_reports: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Launches that are not short: DRAM is percent x bus width x 2 bits per pin x clock; fraction_sm is what ncu has."""
    compared = 0
    for path in real_reports.values():
        rows = shown(path, capsys)["kernels"]
        with read_report(path) as report:
            for kernel, row in zip(report.kernels, rows, strict=True):
                metrics = kernel.metrics
                percent = metrics.get("dram__cycles_active.avg.pct_of_peak_sustained_elapsed", math.nan)
                clock = metrics.get("dram__cycles_elapsed.avg.per_second", math.nan)
                bits = metrics.get("device__attribute_global_memory_bus_width", math.nan)
                expected = float(percent) / 100 * float(bits) / 8 * 2 * float(clock)
                if math.isfinite(expected) and row["seconds"] > 2e-5:
                    assert row["bandwidth_dram"] == pytest.approx(expected, rel=0.02), (path.name, row["launch"])
                    compared += 1
                throughput = metrics.get("sm__throughput.avg.pct_of_peak_sustained_elapsed", math.nan)
                if math.isfinite(float(throughput)) and row["seconds"] > 2e-5:
                    assert row["fraction_sm"] == pytest.approx(float(throughput) / 100, rel=1e-9)
                    assert row["busiest_fraction"] >= 0.999 * row["fraction_sm"]
                    compared += 1
    assert compared > 200
