"""The one verdict function: what limits a kernel, why, and which headroom it has; all of it in verdicts.txt."""

from __future__ import annotations

import ast
import math
from pathlib import Path
from typing import Any

import pytest

import ncu_roofline
from ncu_roofline.chips.verdict import (
    NO_ARITHMETIC,
    NOTHING_COLLECTED,
    Arithmetic,
    Case,
    Limit,
    State,
    Verdict,
    as_times,
    judge,
    keeping_back,
    of_mix,
)
from tests.golden import assert_golden

DRAM = Limit("memory", "dram", "DRAM", 0.75, True, "", False)
L1 = Limit("memory", "l1", "L1/TEX", 0.99, False, "", False)
SHARED = L1._replace(id="shared", label="Shared memory")
FP32 = Limit("compute", "fp32.fma", "FP32 FMA", 0.3, True, "", False)
ALU = Limit("compute", "alu", "ALU pipe", 0.4, False, "", False)
UNKNOWN = State(*[math.nan] * len(State._fields))
BUSY = UNKNOWN._replace(occupancy=0.25, theoretical=0.5, eligible=0.4, waves=0.3)
FMA = Arithmetic(1.92, "FP32 FMA", {})
TENSOR = Arithmetic(17.0, "Tensor FP16", {"dram": (5.1, 75.0, "FLOP/B")})


def verdict(*limits: Limit, **known: Any) -> Verdict:
    """Of a kernel with these limits, of which nothing else is known but what is given."""
    case = Case(limits, UNKNOWN, NO_ARITHMETIC, dict, (), (), False, "", NOTHING_COLLECTED, None, None, 1.0)
    return judge(case._replace(**known))


def at(limit: Limit, fraction: float | None, **changed: Any) -> Limit:
    return limit._replace(fraction=fraction, **changed)


CASES = {
    "the fullest limit binds": verdict(FP32, DRAM, ALU),
    "two numbers of headroom, with the place under the roof": verdict(at(DRAM, 0.86), arithmetic=TENSOR),
    "a mix of instructions": verdict(at(FP32, 0.65, detail=of_mix(1.25)), arithmetic=FMA),
    "one number where both are the same": verdict(at(FP32, 0.8), arithmetic=FMA._replace(headroom=1.25)),
    "a hardware unit binds where no roof is near": verdict(FP32, at(ALU, 0.9)),
    "a roof has the better name but the fuller unit bounds the headroom": verdict(
        at(FP32, 0.75), at(ALU, 0.8, id="fma", label="FMA pipe")
    ),
    "below sixty percent it is latency, with what keeps it": verdict(FP32, ALU, state=BUSY),
    "latency, and nothing that would say why": verdict(FP32),
    "exactly sixty percent binds": verdict(at(DRAM, 0.6)),
    "a little less does not": verdict(at(DRAM, 0.5999)),
    "launching bounds the headroom": verdict(FP32, state=UNKNOWN._replace(launching=0.8)),
    "what was not looked at is not told to be empty": verdict(at(L1, 0.028), unseen=("DRAM", "L2")),
    "a roof that is missing": verdict(at(DRAM, 0.4), unseen=("the roof of L2",)),
    "a roof that is missing beside a limit": verdict(at(FP32, 0.8), unseen=("the roof of L2",)),
    "a level that is missing beside a limit": verdict(at(FP32, 0.8), unseen=("DRAM",)),
    "a lower bound is called one": verdict(at(DRAM, 0.73, lower=True), partly=("DRAM",)),
    "a low lower bound says nothing": verdict(at(DRAM, 0.2, lower=True), FP32, partly=("DRAM",)),
    "tensor work that was not collected": verdict(
        at(DRAM, 0.5), FP32, state=UNKNOWN._replace(tensor_active=0.4), tensor_unknown=True
    ),
    "nothing but tensor work that was not collected": verdict(state=UNKNOWN._replace(tensor_active=0.4), tensor_unknown=True),
    "another limit is fuller than the tensor cores": verdict(
        at(DRAM, 0.9), state=UNKNOWN._replace(tensor_active=0.03), tensor_unknown=True, arithmetic=FMA
    ),
    "tensor cores are fuller than the nearest limit": verdict(
        DRAM, state=UNKNOWN._replace(tensor_active=0.8), tensor_unknown=True
    ),
    "a short launch is not judged": verdict(
        at(DRAM, 0.98), FP32, short=11.4e-6, state=UNKNOWN._replace(launching=0.4), arithmetic=FMA
    ),
    "nothing known": verdict(),
    "nothing known but what could run": verdict(state=UNKNOWN._replace(theoretical=0.5)),
    "work without a roof": verdict(roofless="FP8"),
    "a little above a roof": verdict(at(DRAM, 1.1), arithmetic=FMA),
    "far above a roof": verdict(at(DRAM, 1.21), FP32, arithmetic=FMA),
}
# What fills a unit: the amounts, its name, and the headroom without it, bounded by the next fullest limit, FP32 at 30 %.
WASTE = (
    (L1, {"local_loads": 60.0, "local_stores": 37.0, "l1": 100.0}, "local memory", 1 / 0.3),
    (L1, {"requested": 80.0, "ideal": 40.0, "l1": 100.0}, "excess sectors", 1 / (0.99 * 0.6)),
    # An H100-class report: the data pipe is full of replays, and what it moves is little.
    (
        L1,
        {"data_pipe": 0.996, "bank_reads": 0.032, "bank_writes": 0.001, "writeback": 0.1, "requests": 0.069},
        "replays",
        1 / 0.3,
    ),
    (SHARED, {"conflicts": 50.0, "shared": 100.0}, "bank conflicts", 1 / 0.495),
    (at(ALU, 0.9), {"lanes": 0.25}, "inactive lanes", 1 / 0.3),
    # Of what fills DRAM nobody counts which part is of local memory: it is named, without a number.
    (DRAM, {"local_loads": 97.0, "l1": 100.0}, "local memory", math.nan),
    (L1, {"local_loads": 5.0, "local_stores": 4.0, "l1": 100.0}, "", math.nan),
    (L1, {"requested": 80.0, "l1": 100.0}, "", math.nan),
    (L1, {"data_pipe": 0.99, "writeback": 0.95}, "", math.nan),
    (DRAM, {"data_pipe": 0.99, "writeback": 0.05}, "", math.nan),
    (at(FP32, 0.9), {"lanes": 0.25}, "", math.nan),  # a roof counts threads, not warps
    (at(ALU, 0.9), {"lanes": 0.8}, "", math.nan),
    (L1, {}, "", math.nan),
)


def shown(name: str, found: Verdict) -> str:
    numbers = [f"{one:.4g}" for one in (found.fraction, found.headroom, found.headroom_compute, found.without_waste)]
    return f"{name}\n  {found.text} | {found.limit or '-'} | {' '.join(numbers)} | {found.waste or '-'}\n  {found.reason}\n"


def test_what_is_said_and_how_much_could_go() -> None:
    """Each: its text, its limit; share, headroom, headroom to the compute roofs, headroom without waste; waste; why."""
    wasteful = [verdict(limit, FP32, amounts=lambda amounts=amounts: amounts) for limit, amounts, *_ in WASTE]
    texts = [shown(f"waste: {amounts}", found) for (_, amounts, *_), found in zip(WASTE, wasteful, strict=True)]
    assert_golden(Path(__file__).parent / "verdicts.txt", "".join([*(shown(*case) for case in CASES.items()), *texts]))
    for found, (_, _, cause, without) in zip(wasteful, WASTE, strict=True):
        assert (found.waste, found.without_waste) == (cause, pytest.approx(without, nan_ok=True))
        assert ("without that" in found.reason) == (not math.isnan(without))
    assert CASES["the fullest limit binds"].headroom == pytest.approx(1 / 0.75)
    assert CASES["launching bounds the headroom"].headroom == pytest.approx(1 / 0.8)
    withheld = ("what was not looked at is not told to be empty", "a level that is missing beside a limit", "far above a roof")
    assert all(math.isnan(CASES[name].headroom) for name in withheld)


def test_causes_come_by_how_much_they_explain() -> None:
    """An attention kernel of an RTX 5090: its SMs idle, and its occupancy is near what is possible."""
    state = UNKNOWN._replace(occupancy=0.15, theoretical=0.17, active=169_360 / 248_939, waves=1.51)
    assert keeping_back(state) == [
        "SMs are idle in 32 % of the cycles (1.51 waves)",
        "achieved occupancy 15 % (theoretical 17 %)",
    ]
    uneven = UNKNOWN._replace(active=0.7, least_active=0.1, most_active=0.95, occupancy=0.1, theoretical=1.0)
    assert keeping_back(uneven) == [
        "low achieved occupancy 10 % (theoretical 100 %)",
        "SMs are idle in 30 % of the cycles (5 % to 90 % by SM)",
    ]
    assert keeping_back(UNKNOWN._replace(active=0.97, theoretical=1.0)) == []


def test_what_is_no_share_limits_nothing() -> None:
    assert {verdict(at(DRAM, fraction)).text for fraction in (None, math.nan, math.inf, 0.0, -1.0)} == {"unknown"}


def test_headroom_in_words() -> None:
    texts = {1.0: "1.00x", 1.094: "1.09x", 1.1: "1.1x", 9.94: "9.9x", 39.2: "39x", 2431: "2,400x"}
    assert {ratio: as_times(ratio) for ratio in texts} == texts


def test_its_source_runs_in_old_pythons() -> None:
    """The rules hold the text, without annotations, and Nsight Compute 2020.3 has Python 3.5."""
    tree = ast.parse((Path(ncu_roofline.__file__).parent / "chips" / "verdict.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        assert not isinstance(node, (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.Match, ast.ClassDef)), ast.dump(node)[:80]
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules == {"__future__", "collections", "collections.abc", "typing"}
