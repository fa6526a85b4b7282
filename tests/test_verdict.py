"""The one verdict function: what limits a kernel, why, and by how much it could be faster."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import pytest

import ncu_roofline
from ncu_roofline.facts.verdict import NOTHING_KNOWN, Limit, State, judge

DRAM = Limit("memory", "dram", "DRAM", 0.75, True, "")
FP32 = Limit("compute", "fp32.fma", "FP32 FMA", 0.3, True, "")
ALU = Limit("compute", "alu", "ALU pipe", 0.4, False, "")


def test_the_fullest_limit_binds() -> None:
    found = judge([FP32, DRAM, ALU])
    assert (found.text, found.limit, found.fraction) == ("memory: DRAM", "dram", 0.75)
    assert found.speedup == pytest.approx(1 / 0.75)
    assert found.reason == "DRAM at 75 % of its roof; at most 1.3x faster"


def test_a_hardware_unit_binds_where_no_roof_is_near() -> None:
    found = judge([FP32, ALU._replace(fraction=0.9)])
    assert (found.text, found.limit) == ("compute: ALU pipe", "alu")
    assert found.reason == "ALU pipe, 90 % busy; at most 1.1x faster"


def test_a_roof_has_the_better_name_but_the_fuller_unit_bounds_the_gain() -> None:
    found = judge([FP32._replace(fraction=0.75), ALU._replace(id="fma", label="FMA pipe", fraction=0.8)])
    assert found.text == "compute: FP32 FMA"
    assert found.speedup == pytest.approx(1 / 0.8)
    assert found.reason == "FP32 FMA at 75 % of its roof (FMA pipe, 80 % busy); at most 1.2x faster"


def test_below_sixty_percent_it_is_latency_and_what_keeps_it_is_told() -> None:
    state = State(0.0, 0.25, 0.5, 0.4, 0.3, math.nan)
    found = judge([FP32, ALU], state)
    assert (found.text, found.limit) == ("latency", "alu")
    assert found.speedup == pytest.approx(2.5)
    for words in (
        "ALU pipe, 40 % busy",
        "occupancy 25 % of 50 % possible",
        "30 % of the blocks that fit at once",
        "0.4 warps ready",
        "2.5x",
    ):
        assert words in found.reason
    assert "was not collected" in judge([FP32]).reason
    assert "occupancy at most" not in judge([FP32], NOTHING_KNOWN._replace(occupancy_possible=1.0)).reason
    assert "was not collected" not in found.reason


def test_what_bounds_the_gain_is_named_beside_the_nearest_roof() -> None:
    found = judge([FP32._replace(fraction=0.36), ALU._replace(label="issue slots", fraction=0.395)])
    assert found.reason.startswith("nothing is full: nearest is FP32 FMA at 36 % of its roof (issue slots, 40 % busy); ")
    assert found.speedup == pytest.approx(1 / 0.395)
    assert "(ALU" not in judge([FP32._replace(fraction=0.39), ALU]).reason


def test_exactly_sixty_percent_binds() -> None:
    assert judge([DRAM._replace(fraction=0.6)]).text == "memory: DRAM"
    assert judge([DRAM._replace(fraction=0.5999)]).text == "latency"


def test_launch_overhead_bounds_the_gain() -> None:
    state = NOTHING_KNOWN._replace(launch_share=0.8)
    found = judge([FP32], state)
    assert found.speedup == pytest.approx(1.25)
    assert "launching is 80 % of its time" in found.reason


def test_unknown_tensor_work_withholds_the_verdict_but_not_what_is_known() -> None:
    found = judge([DRAM, FP32], NOTHING_KNOWN._replace(tensor_active=0.4), tensor_unknown=True)
    assert (found.text, found.limit) == ("tensor work unknown", "dram")
    assert math.isnan(found.speedup)
    assert "40 % of the cycles" in found.reason
    assert "DRAM at 75 %" in found.reason
    alone = judge([], NOTHING_KNOWN._replace(tensor_active=0.4), tensor_unknown=True)
    assert (alone.text, alone.limit) == ("tensor work unknown", "")


def test_nothing_known() -> None:
    found = judge([])
    assert (found.text, found.limit) == ("unknown", "")
    assert math.isnan(found.speedup)
    assert found.reason
    assert "occupancy at most 50 %" in judge([], NOTHING_KNOWN._replace(occupancy_possible=0.5)).reason


@pytest.mark.parametrize("fraction", [None, math.nan, math.inf, 0.0, -1.0])
def test_what_is_no_share_limits_nothing(fraction: float | None) -> None:
    assert judge([DRAM._replace(fraction=fraction)]).text == "unknown"


def test_above_a_roof_is_explained() -> None:
    found = judge([DRAM._replace(fraction=1.3)])
    assert found.text == "memory: DRAM"
    assert found.speedup == 1.0
    assert "can't be" in found.reason


def test_its_source_runs_in_old_pythons() -> None:
    """The rules hold the text, without annotations, and Nsight Compute 2020.3 has Python 3.5."""
    tree = ast.parse((Path(ncu_roofline.__file__).parent / "facts" / "verdict.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        assert not isinstance(node, (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.Match, ast.ClassDef)), ast.dump(node)[:80]
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules == {"__future__", "collections", "collections.abc"}
