"""The one verdict function: what limits a kernel, why, and which headroom it has."""

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

DRAM = Limit("memory", "dram", "DRAM", 0.75, True, "", False)
L1 = Limit("memory", "l1", "L1/TEX", 0.99, False, "", False)
FP32 = Limit("compute", "fp32.fma", "FP32 FMA", 0.3, True, "", False)
ALU = Limit("compute", "alu", "ALU pipe", 0.4, False, "", False)
UNKNOWN = State(*[math.nan] * len(State._fields))


def verdict(*limits: Limit, **known: Any) -> Verdict:
    """Of a kernel with these limits, of which nothing else is known but what is given."""
    case = Case(limits, UNKNOWN, NO_ARITHMETIC, dict, (), (), False, "", NOTHING_COLLECTED, None, None, 1.0)
    return judge(case._replace(**known))


def test_the_fullest_limit_binds() -> None:
    found = verdict(FP32, DRAM, ALU)
    assert (found.text, found.limit, found.fraction) == ("memory: DRAM", "dram", 0.75)
    assert found.headroom == pytest.approx(1 / 0.75)
    assert found.reason == "DRAM-bound at 75 % of its roof: 1.3x at its present traffic"


def test_two_numbers_of_headroom_with_the_place_under_the_roof() -> None:
    tensor = Arithmetic(17.0, "Tensor FP16", {"dram": (5.1, 75.0, "FLOP/B")})
    found = verdict(DRAM._replace(fraction=0.86), arithmetic=tensor)
    assert (found.headroom, found.headroom_compute) == (pytest.approx(1 / 0.86), 17.0)
    assert found.reason == (
        "DRAM-bound at 86 % of its roof: 1.2x at its present traffic, 17x to the Tensor FP16 roof (5.1 of 75 FLOP/B)"
    )
    mixed = verdict(FP32._replace(fraction=0.65, detail=of_mix(1.25)), arithmetic=Arithmetic(1.92, "FP32 FMA", {}))
    assert mixed.reason == (
        "FP32 FMA-bound at 65 % of its FMA-mix ceiling (80 % of peak): "
        "1.5x at its present instructions, 1.9x to the FP32 FMA roof"
    )


def test_one_number_where_both_are_the_same() -> None:
    found = verdict(FP32._replace(fraction=0.8), arithmetic=Arithmetic(1.25, "FP32 FMA", {}))
    assert found.reason == "FP32 FMA-bound at 80 % of its roof: 1.2x at its present instructions"


def test_a_hardware_unit_binds_where_no_roof_is_near() -> None:
    found = verdict(FP32, ALU._replace(fraction=0.9))
    assert (found.text, found.limit) == ("compute: ALU pipe", "alu")
    assert found.reason == "bound by its ALU pipe at 90 % of peak: 1.1x at its present instructions"


def test_a_roof_has_the_better_name_but_the_fuller_unit_bounds_the_headroom() -> None:
    found = verdict(FP32._replace(fraction=0.75), ALU._replace(id="fma", label="FMA pipe", fraction=0.8))
    assert found.text == "compute: FP32 FMA"
    assert found.headroom == pytest.approx(1 / 0.8)
    assert found.reason.startswith("FP32 FMA-bound at 75 % of its roof; FMA pipe at 80 % of peak: 1.2x")


def test_below_sixty_percent_it_is_latency_and_what_keeps_it_is_told() -> None:
    state = UNKNOWN._replace(occupancy=0.25, theoretical=0.5, eligible=0.4, waves=0.3)
    found = verdict(FP32, ALU, state=state)
    assert (found.text, found.limit) == ("latency", "alu")
    assert found.headroom == pytest.approx(2.5)
    assert found.reason == (
        "latency-bound, no unit above 60 % (highest: ALU pipe at 40 % of peak); 0.3 waves of blocks, low achieved "
        "occupancy 25 % (theoretical 50 %), 0.4 eligible warps per scheduler and cycle: "
        "2.5x at its present traffic and instructions"
    )
    assert "was not collected" in verdict(FP32).reason


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


@pytest.mark.parametrize(("share", "kind"), [(0.6, "memory: DRAM"), (0.5999, "latency")])
def test_exactly_sixty_percent_binds(share: float, kind: str) -> None:
    assert verdict(DRAM._replace(fraction=share)).text == kind


def test_launch_overhead_bounds_the_headroom() -> None:
    found = verdict(FP32, state=UNKNOWN._replace(launching=0.8))
    assert found.headroom == pytest.approx(1.25)
    assert "launching is 80 % of its time" in found.reason


def test_what_was_not_looked_at_is_not_told_to_be_empty() -> None:
    found = verdict(L1._replace(fraction=0.028), unseen=("DRAM", "L2"))
    assert (found.text, found.limit) == ("unknown", "l1")
    assert math.isnan(found.headroom)
    assert found.reason == "limit unknown: nearest known is L1/TEX at 2.8 % of peak; DRAM and L2 were not collected"
    roofless = verdict(DRAM._replace(fraction=0.4), unseen=("the roof of L2",))
    assert roofless.reason == "limit unknown: nearest known is DRAM at 40 % of its roof; the roof of L2 was not collected"
    bound = verdict(FP32._replace(fraction=0.8), unseen=("the roof of L2",))
    assert bound.reason == (
        "FP32 FMA-bound at 80 % of its roof: 1.2x at its present instructions (or less: the roof of L2 was not collected)"
    )
    full = verdict(FP32._replace(fraction=0.8), unseen=("DRAM",))
    assert full.text == "compute: FP32 FMA"
    assert math.isnan(full.headroom)
    assert full.reason == "FP32 FMA-bound at 80 % of its roof: DRAM was not collected, so that its headroom is not known"


def test_a_lower_bound_is_called_one() -> None:
    found = verdict(DRAM._replace(fraction=0.73, lower=True), partly=("DRAM",))
    assert found.text == "memory: DRAM"
    assert found.reason == (
        "DRAM-bound, at least 73 % of its roof: 1.4x at its present traffic (or less: of DRAM only a part was counted)"
    )
    low = verdict(DRAM._replace(fraction=0.2, lower=True), FP32, partly=("DRAM",))
    assert (low.text, low.reason) == (
        "unknown",
        "limit unknown: nearest known is FP32 FMA at 30 % of its roof; of DRAM only a part was counted",
    )


@pytest.mark.parametrize(
    ("limit", "amounts", "cause", "without", "text"),
    [
        (
            L1,
            {"local_loads": 60.0, "local_stores": 37.0, "l1": 100.0},
            "local memory",
            1 / 0.3,
            "97 % of its L1 traffic is local memory (spilled registers, arrays indexed at run time)",
        ),
        (
            L1,
            {"requested": 80.0, "ideal": 40.0, "l1": 100.0},
            "excess sectors",
            1 / (0.99 * 0.6),
            "40 % of the sectors that it asks of L1 are more than their bytes need",
        ),
        # An H100-class report: the data pipe is full of replays, and what it moves is little.
        (
            L1,
            {"data_pipe": 0.996, "bank_reads": 0.032, "bank_writes": 0.001, "writeback": 0.1, "requests": 0.069},
            "replays",
            1 / 0.3,
            "86 % or more of what its data pipe does are replays (bank conflicts, scattered addresses)",
        ),
        (
            L1._replace(id="shared", label="Shared memory"),
            {"conflicts": 50.0, "shared": 100.0},
            "bank conflicts",
            1 / 0.495,
            "50 % of its passes through shared memory are bank conflicts",
        ),
        (ALU._replace(fraction=0.9), {"lanes": 0.25}, "inactive lanes", 1 / 0.3, "8 of 32 lanes are active"),
        # Of what fills DRAM nobody counts which part is of local memory: it is named, without a number.
        (
            DRAM,
            {"local_loads": 97.0, "l1": 100.0},
            "local memory",
            math.nan,
            "97 % of its L1 traffic is local memory (spilled registers, arrays indexed at run time)",
        ),
    ],
)
def test_waste_that_fills_a_unit(limit: Limit, amounts: dict[str, float], cause: str, without: float, text: str) -> None:
    """What is left of the headroom is bounded by the next fullest limit, FP32 at 30 %."""
    found = verdict(limit, FP32, amounts=lambda: amounts)
    assert (found.waste, found.without_waste) == (cause, pytest.approx(without, nan_ok=True))
    assert f"; {text}: " in found.reason
    assert math.isnan(without) or f"{as_times(without)} without that" in found.reason


@pytest.mark.parametrize(
    ("limit", "amounts"),
    [
        (L1, {"local_loads": 5.0, "local_stores": 4.0, "l1": 100.0}),
        (L1, {"requested": 80.0, "l1": 100.0}),
        (L1, {"data_pipe": 0.99, "writeback": 0.95}),
        (DRAM, {"data_pipe": 0.99, "writeback": 0.05}),
        (FP32._replace(fraction=0.9), {"lanes": 0.25}),  # a roof counts threads, not warps
        (ALU._replace(fraction=0.9), {"lanes": 0.8}),
        (L1, {}),
    ],
)
def test_no_waste_where_none_is_proven(limit: Limit, amounts: dict[str, float]) -> None:
    found = verdict(limit, amounts=lambda: amounts)
    assert (found.waste, math.isnan(found.without_waste)) == ("", True)
    assert "without that" not in found.reason


def test_unknown_tensor_work_withholds_the_verdict_but_not_what_is_known() -> None:
    active = UNKNOWN._replace(tensor_active=0.4)
    found = verdict(DRAM._replace(fraction=0.5), FP32, state=active, tensor_unknown=True)
    assert (found.text, found.limit) == ("tensor work unknown", "dram")
    assert math.isnan(found.headroom)
    assert found.reason == (
        "limit unknown: the tensor pipe was active in 40 % of the cycles but its operations were not collected; "
        "the nearest known limit is DRAM at 50 % of its roof"
    )
    alone = verdict(state=active, tensor_unknown=True)
    assert (alone.text, alone.limit) == ("tensor work unknown", "")


def test_another_full_limit_binds_whatever_tensor_cores_did_below_it() -> None:
    work = Arithmetic(5.0, "FP32 FMA", {})
    found = verdict(
        DRAM._replace(fraction=0.9), state=UNKNOWN._replace(tensor_active=0.03), tensor_unknown=True, arithmetic=work
    )
    assert (found.text, found.headroom) == ("memory: DRAM", pytest.approx(1 / 0.9))
    assert math.isnan(found.headroom_compute)  # of the work that nobody counted nothing is known
    busier = verdict(DRAM, state=UNKNOWN._replace(tensor_active=0.8), tensor_unknown=True)
    assert busier.text == "tensor work unknown"


def test_a_short_launch_is_not_judged() -> None:
    found = verdict(DRAM._replace(fraction=0.98), FP32, short=11.4e-6, state=UNKNOWN._replace(launching=0.4))
    assert (found.text, found.limit) == ("too short to judge", "dram")
    assert math.isnan(found.headroom)
    assert math.isnan(found.headroom_compute)
    assert found.reason == "too short to judge: 11 us a launch; highest is DRAM at 98 % of its roof"


def test_nothing_known() -> None:
    found = verdict()
    assert (found.text, found.limit) == ("unknown", "")
    assert math.isnan(found.headroom)
    assert found.reason == f"limit unknown: {NOTHING_COLLECTED}"
    assert "known is: theoretical occupancy 50 %" in verdict(state=UNKNOWN._replace(theoretical=0.5)).reason
    assert verdict(roofless="FP8").reason == "limit unknown: no roof is known for its FP8 work"


@pytest.mark.parametrize("fraction", [None, math.nan, math.inf, 0.0, -1.0])
def test_what_is_no_share_limits_nothing(fraction: float | None) -> None:
    assert verdict(DRAM._replace(fraction=fraction)).text == "unknown"


def test_a_little_above_a_roof_is_explained_and_far_above_it_nothing_is_judged() -> None:
    found = verdict(DRAM._replace(fraction=1.1), arithmetic=Arithmetic(3.0, "FP32 FMA", {}))
    assert (found.text, found.headroom) == ("memory: DRAM", 1.0)
    assert "which can't be" in found.reason
    far = verdict(DRAM._replace(fraction=1.21), FP32, arithmetic=Arithmetic(3.0, "FP32 FMA", {}))
    assert (far.text, far.limit) == ("unknown", "dram")
    assert math.isnan(far.headroom)
    assert math.isnan(far.headroom_compute)


@pytest.mark.parametrize(
    ("ratio", "text"), [(1.0, "1.00x"), (1.094, "1.09x"), (1.1, "1.1x"), (9.94, "9.9x"), (39.2, "39x"), (2431, "2,400x")]
)
def test_headroom_in_words(ratio: float, text: str) -> None:
    assert as_times(ratio) == text


def test_its_source_runs_in_old_pythons() -> None:
    """The rules hold the text, without annotations, and Nsight Compute 2020.3 has Python 3.5."""
    tree = ast.parse((Path(ncu_roofline.__file__).parent / "chips" / "verdict.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        assert not isinstance(node, (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.Match, ast.ClassDef)), ast.dump(node)[:80]
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules == {"__future__", "collections", "collections.abc", "typing"}
