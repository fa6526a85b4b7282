"""Every real report answers for every launch, and what it says is recomputed from its opcodes by a second, naive path."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline import read_report
from tests.cli.command import Command
from tests.factory import THREADS, WARPS

pytestmark = pytest.mark.reports

LEVELS = ("l1", "shared", "l2", "dram", "system")
PER_THREAD = {"DADD": ("fp64", 1), "DMUL": ("fp64", 1), "DFMA": ("fp64", 2), "FADD": ("fp32", 1), "FMUL": ("fp32", 1)}
PER_THREAD["FFMA"] = ("fp32", 2)
SHAPES = {"884": 512, "1688": 2048, "16816": 4096, "8816": 2048, "16832": 8192}
TENSOR = {"HMMA": "tensor.fp16", "IMMA": "tensor.int8", "DMMA": "tensor.fp64"}
VERDICT = re.compile(r"(memory|compute): \S.*|latency|tensor work unknown|too short to judge|unknown")
UNKNOWN = re.compile("not collected|only a part was counted|of a roof, which no kernel has")


def by_hand(counts: list[tuple[Any, Any]], warps: list[tuple[Any, Any]]) -> dict[str, float]:
    """Operations by precision from opcode names alone."""
    work: dict[str, float] = defaultdict(float)
    for opcode, number in counts:
        precision, weight = PER_THREAD.get(opcode.split(".")[0].removesuffix("32I"), ("", 0))
        work[precision] += weight * number
    for opcode, number in warps:
        name, *words = opcode.split(".")
        if name in TENSOR and (shape := next((word for word in words if word in SHAPES), None)):
            assert not {"BF16", "TF32"} & set(words)
            work[TENSOR[name]] += SHAPES[shape] * number
    return work


def test_every_launch_answers_and_its_work_is_that_of_its_opcodes(real_reports: dict[str, Path], run: Command) -> None:
    drawn = compared = 0
    for path in real_reports.values():
        data = json.loads(run("show", path, "--json").out)
        drawn += bool(data["points"])
        for row in data["kernels"]:
            assert VERDICT.fullmatch(row["verdict"]), row
            assert row["reason"], row
            if row["seconds"] is None:  # in one launch every number is NaN
                continue
            known = [row[f"fraction_{level}"] for level in LEVELS] + [row["busiest_fraction"], row["occupancy_theoretical"]]
            pointed = any(one["launch"] == row["launch"] for one in data["points"])
            assert pointed or any(value is not None for value in known), (path.name, row)
            assert row["verdict"] != "unknown" or UNKNOWN.search(row["reason"]), row
            if row["headroom"] is not None:
                assert row["headroom"] >= 1
                assert None not in (row["fraction_dram"], row["fraction_l2"]), (path.name, row)
                assert row["verdict"] not in {"unknown", "too short to judge", "tensor work unknown"}
        with read_report(path) as opened:
            for kernel in opened.kernels if WARPS in opened.metric_names else ():
                if WARPS not in kernel.metrics.names() or not kernel.metrics.instances(WARPS):
                    continue
                expected = by_hand(kernel.metrics.instances(THREADS), kernel.metrics.instances(WARPS))
                named = ("fp64", "fp32", *expected)
                rows = [row for row in data["points"] if row["launch"] == kernel.index and row["level"] == "dram"]
                for row in (row for row in rows if row["precision"] in named):
                    exact = row["source"] == "opcodes"
                    if exact or not ("function" in row["notes"] or "by opcodes" in row["notes"]):
                        rel = 1e-12 if exact else 0.01
                        assert row["work"] == pytest.approx(expected[row["precision"]], rel=rel), (path.name, row)
                        compared += 1
    assert compared >= 20
    assert drawn == len([name for name in real_reports if "basic" not in name]) - 2  # one report is all NaN, one has no bytes
