"""Work from opcode counts: tensor types apart, BF16 and conversions out of FP16, and what is said where sources differ."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from ncu_roofline import compare, roofline
from ncu_roofline.model import Selection
from tests.factory import A100, NO_WORK, Metrics, flops, kernel, opcodes, report, timing, traffic

T4: Metrics = {
    **A100,
    "device__attribute_display_name": "Tesla T4",
    "device__attribute_compute_capability_major": 7,
    "device__attribute_compute_capability_minor": 5,
    "device__attribute_multiprocessor_count": 40,
}
RTX5090: Metrics = {
    **A100,
    "device__attribute_display_name": "NVIDIA GeForce RTX 5090",
    "device__attribute_compute_capability_major": 12,
    "device__attribute_compute_capability_minor": 0,
    "device__attribute_multiprocessor_count": 170,
}
B200: Metrics = {
    **A100,
    "device__attribute_display_name": "NVIDIA B200",
    "device__attribute_compute_capability_major": 10,
    "device__attribute_multiprocessor_count": 148,
}
BYTES = traffic(10**9, 500_000_000 // 32, 250_000_000)
BUSY = {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": 40.0}


def drawn(path: Path, metrics: Metrics, executed: dict[str, list[tuple[str, float]]], *precisions: str) -> pd.DataFrame:
    """The points at DRAM of one launch."""
    file = report(path / "r.ncu-rep", kernel(metrics, instances=executed))
    points = roofline(file, select=Selection(precisions=precisions)).points
    return points[points["level"] == "dram"].set_index("precision")


@pytest.mark.parametrize(
    ("device", "opcode", "count", "precision", "operations"),
    [
        # Recorded pairs of opcode counts and sm__ops_path_tensor counters: a T4 and an RTX 5090; a GEMM of 4096^3.
        (T4, "HMMA.1688.F32", 67_108_864, "tensor.fp16", 137_438_953_472),
        (RTX5090, "HMMA.16816.F32.BF16", 2_162_688, "tensor.bf16", 8_858_370_048),
        (A100, "HMMA.16816.F32", 33_554_432, "tensor.fp16", 2 * 4096**3),
        (A100, "DMMA.884", 1_000_000, "tensor.fp64", 512_000_000),
        (A100, "IMMA.16832.S8.S8.SAT", 1_000_000, "tensor.int8", 8_192_000_000),
        (A100, "HMMA.SP.16832.F32", 1_000_000, "tensor.fp16.sparse", 8_192_000_000),
    ],
)
def test_tensor_operations_of_warp_instructions(
    tmp_path: Path, device: Metrics, opcode: str, count: int, precision: str, operations: int
) -> None:
    executed = {
        "sass__inst_executed_per_opcode_with_modifier_all": [(opcode, float(count))],
        "sass__thread_inst_executed_true_per_opcode_with_modifier_all": [(opcode, 32.0 * count)],
    }
    points = drawn(tmp_path, {**device, **timing(), **BYTES, **BUSY}, executed)
    assert points.loc[precision, "work"] == operations
    assert points.loc[precision, "source"] == "opcodes"
    others = [name for name in points.index if not name.startswith(precision) and name != "mixed"]
    assert not others


def test_core_precisions_apart_and_integers_only_on_request(tmp_path: Path) -> None:
    executed = opcodes(
        FFMA=1000, FADD=500, DFMA=100, HFMA2=10, HADD2=10, HFMA2_BF16__V2=20, IMAD=7000, IADD3=3000, IMAD_MOV_U32=9e5
    )
    metrics = {**A100, **timing(), **BYTES}
    points = drawn(tmp_path, metrics, executed)
    work = {name: points.loc[name, "work"] for name in ("fp32", "fp64", "fp16", "bf16")}
    assert work == {"fp32": 32 * 2500, "fp64": 32 * 200, "fp16": 32 * 60, "bf16": 32 * 80}
    assert points.loc["fp32", "fma_share"] == pytest.approx(2 / 3)
    assert "int32" not in points.index
    assert drawn(tmp_path, metrics, executed, "int32").loc["int32", "work"] == 32 * 10_000
    assert math.isnan(drawn(tmp_path, metrics, executed, "int32").loc["int32", "fma_share"])
    alone = drawn(tmp_path, metrics, opcodes(IMAD=7000, IADD3=3000))
    assert alone.loc["int32", "work"] == 32 * 10_000
    assert alone.loc["int32", "unit"] == "op"


def test_counters_come_first_and_a_difference_is_told(tmp_path: Path) -> None:
    metrics = {**A100, **timing(), **NO_WORK, **flops("d", fma=32_000), **BYTES}
    same = drawn(tmp_path, metrics, opcodes(DFMA=1000))
    assert (same.loc["fp64", "source"], same.loc["fp64", "work"]) == ("binding", 64_000)
    assert "opcodes" not in same.loc["fp64", "notes"]
    differs = drawn(tmp_path, metrics, opcodes(DFMA=1100))
    assert differs.loc["fp64", "work"] == 64_000
    assert "by opcodes FP64 is 1.1 of what the counters give" in differs.loc["fp64", "notes"]


def test_opcodes_win_over_counters_that_are_lower_bounds(tmp_path: Path) -> None:
    """Sections before 2025.4 don't collect the counters of packed FP32, which most of cuBLAS' SGEMM on B200 is."""
    metrics = {**B200, **timing(), **BYTES, **flops("f", fma=32_000)}
    packed = drawn(tmp_path, metrics, opcodes(FFMA=1000, FFMA2=9000)).loc["fp32"]
    assert (packed["source"], packed["work"]) == ("opcodes", 32 * (2 * 1000 + 4 * 9000))
    assert packed["fma_share"] == 1
    for exact in (packed, drawn(tmp_path, metrics, opcodes(FFMA=1000)).loc["fp32"]):
        assert "lower bound" not in exact["notes"]
        assert "opcodes" not in exact["notes"]
    bound = drawn(tmp_path, metrics, {}).loc["fp32"]
    assert (bound["work"], bound["source"]) == (64_000, "binding")
    assert "lower bound" in bound["notes"]


def test_a_lower_bound_above_what_opcodes_count_holds(tmp_path: Path) -> None:
    """Opcodes leave out functions in other sections of the code."""
    metrics = {**B200, **timing(), **BYTES, **flops("f", add=1000, fma=32_000)}
    found = drawn(tmp_path, metrics, opcodes(FFMA=100, FADD=100)).loc["fp32"]
    assert (found["work"], found["source"]) == (65_000, "binding")
    assert found["fma_share"] == pytest.approx(32 / 33)  # of the instructions
    assert "lower bound" in found["notes"]
    assert "by opcodes FP32 is 0.15 of what the counters give" in found["notes"]


def test_conversions_that_counters_take_for_additions(tmp_path: Path) -> None:
    """A recorded kernel whose 4,194,304 hadd are all HADD2.F32, half to float, showed FP16 at 292 GFLOP/s."""
    metrics = {**A100, **timing(), **NO_WORK, **flops("h", add=4_194_304), **flops("f", add=1000), **BYTES}
    corrected = drawn(tmp_path, metrics, opcodes(HADD2_F32=131_072, FADD=1000))
    assert "fp16" not in corrected.index
    doubtful = drawn(tmp_path, metrics, {})
    assert doubtful.loc["fp16", "work"] == 2 * 4_194_304
    assert "conversions" in doubtful.loc["fp16", "notes"]
    assert "conversions" not in drawn(tmp_path, {**metrics, **flops("h", fma=10)}, {}).loc["fp16", "notes"]


def test_wgmma_is_marked_unproven_and_tcgen05_never_weighed(tmp_path: Path) -> None:
    h100 = {**A100, "device__attribute_display_name": "NVIDIA H100", "device__attribute_compute_capability_major": 9}
    executed = {name: [("HGMMA.64x128x16.F32", 4000.0)] for name in opcodes()}
    points = drawn(tmp_path, {**h100, **timing(), **BYTES, **BUSY}, executed)
    assert points.loc["tensor.fp16", "work"] == 1000 * 2 * 64 * 128 * 16
    assert points.loc["tensor.fp16.wgmma", "work"] == points.loc["tensor.fp16", "work"]
    assert "unproven" in points.loc["tensor.fp16", "notes"]
    tcgen05 = {name: [("UTCHMMA", 4000.0), ("FFMA", 32.0)] for name in opcodes()}
    file = report(tmp_path / "b.ncu-rep", kernel({**B200, **timing(), **BYTES}, instances=tcgen05))
    result = roofline(file)
    assert result.kernels["verdict"].iloc[0] == "tensor work unknown"
    assert set(result.points["precision"]) == {"fp32"}
    assert set(result.points["binds"]) == {""}


@pytest.mark.parametrize(
    "instances",
    [[("HMMA.16816.F32", float("nan"))], [("HMMA.16816.F32", -1.0)], [(7, 1.0)], [(None, 1.0)], []],
    ids=["nan", "negative", "number", "nameless", "none"],
)
def test_opcodes_that_are_no_counts_are_no_work(tmp_path: Path, instances: list[tuple[object, float]]) -> None:
    file = report(
        tmp_path / "r.ncu-rep",
        kernel({**A100, **timing(), **BYTES, **BUSY}, instances=dict.fromkeys(opcodes(), instances)),  # type: ignore[dict-item]
    )
    result = roofline(file)
    assert result.points.empty
    assert result.kernels["verdict"].iloc[0] == "tensor work unknown"


def test_idle_tensor_pipe_is_no_unknown_work(tmp_path: Path) -> None:
    """Plain HFMA2.MMA runs there on GA100 and GH100: with opcodes it is known to be no tensor work."""
    executed = {name: [("HFMA2.MMA", 1000.0), ("DFMA", 1000.0)] for name in opcodes()}
    metrics = {**A100, **timing(), **BYTES, "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": 3.6}
    without = report(tmp_path / "a.ncu-rep", kernel(metrics))
    assert roofline(without).kernels["verdict"].iloc[0] == "tensor work unknown"
    known = report(tmp_path / "b.ncu-rep", kernel(metrics, instances=executed))
    assert roofline(known).kernels["verdict"].iloc[0] == "latency"


def test_dense_and_sparse_counted_together_are_told_apart_by_opcodes(tmp_path: Path) -> None:
    metrics = {**A100, **timing(), **BYTES, **BUSY, "sm__ops_path_tensor_src_fp16_dst_fp32.sum": 8_192_000_000.0}
    metrics["sm__ops_path_tensor_src_fp16_dst_fp16.sum"] = 0.0
    executed = {name: [("HMMA.SP.16832.F32", 1e6)] for name in opcodes()}
    points = drawn(tmp_path, metrics, executed)
    assert points.loc["tensor.fp16.sparse", "work"] == 8_192_000_000
    assert "tensor.fp16" not in points.index
    assert drawn(tmp_path, metrics, {}).loc["tensor.fp16", "work"] == 8_192_000_000


def test_constants_by_half_precision_instructions_add_to_nothing(tmp_path: Path) -> None:
    """A kernel of an A100 in double precision executes exactly two HFMA2.MMA for each integer division."""
    executed = {name: [("HFMA2.MMA", 3200.0), ("DFMA", 1600.0)] for name in opcodes()}
    file = report(tmp_path / "r.ncu-rep", kernel({**A100, **timing(), **BYTES}, instances=executed))
    result = roofline(file)
    assert set(result.points["precision"]) == {"fp64", "fp16"}
    assert result.kernels["work"].iloc[0] == 2 * 1600
    assert "constants" in result.points.set_index("precision").loc["fp16", "notes"].iloc[0]


def test_counters_of_zero_against_opcodes_are_told_of_the_kernel(tmp_path: Path) -> None:
    file = report(tmp_path / "r.ncu-rep", kernel({**A100, **timing(), **NO_WORK, **BYTES}, instances=opcodes(FFMA=1e6)))
    assert "FP32 is work where the counters give 0" in roofline(file).kernels["notes"].iloc[0]


def test_points_say_that_tensor_work_is_missing(tmp_path: Path) -> None:
    metrics = {**A100, **timing(), **NO_WORK, **flops("f", fma=10**6), **BYTES, **BUSY}
    points = drawn(tmp_path, metrics, {})
    assert "tensor work unknown" in points.loc["fp32", "notes"]
    assert points.loc["fp32", "binds"] == ""
    alone = roofline(report(tmp_path / "a.ncu-rep", kernel({**A100, **timing(), **NO_WORK, **BYTES, **BUSY}))).kernels.iloc[0]
    assert (alone["status"], alone["verdict"]) == ("tensor-unknown", "tensor work unknown")
    assert alone["work"] != alone["work"]


def test_opcodes_too_long_to_exist_are_judged_by_their_name(tmp_path: Path) -> None:
    executed = {name: [("HMMA.16816.F32" + ".A" * 200, 1e6), ("FFMA", 32.0)] for name in opcodes()}
    file = report(tmp_path / "r.ncu-rep", kernel({**A100, **timing(), **BYTES}, instances=executed))
    assert roofline(file).kernels["verdict"].iloc[0] == "tensor work unknown"


@pytest.mark.parametrize(
    ("device", "executed", "share"),
    [
        (A100, {"IMAD": 1.0}, 1.0),  # one of two pipes is full
        (A100, {"IADD3": 1.0}, 1.0),
        (A100, {"IMAD": 0.5, "IADD3": 0.5}, 0.5),  # both are half full
        (A100, {"IMAD": 0.25, "IADD3": 0.75}, 0.75),
        (RTX5090, {"IMAD": 1.0}, 0.5),  # nobody knows the rate of one pipe there: the issue limit alone
    ],
)
def test_how_full_integer_pipes_are(tmp_path: Path, device: Metrics, executed: dict[str, float], share: float) -> None:
    """Half of the issue limit, 64 instructions per SM and cycle, by multiply-adds and other instructions."""
    seconds = 1e-3
    most = 64 * float(device["device__attribute_multiprocessor_count"]) * 1.41e9 * seconds / 32
    file = report(
        tmp_path / "r.ncu-rep",
        kernel({**device, **timing(seconds=seconds), **BYTES}, instances=opcodes(**{k: v * most for k, v in executed.items()})),
    )
    kernels = roofline(file, select=Selection(precisions=("int32",))).kernels
    assert kernels["limit"].iloc[0] == "int32"
    assert kernels["limit_fraction"].iloc[0] == pytest.approx(share, rel=0.01)


INTEGER_BOUND = opcodes(IMAD=0.9 * 64 * 108 * 1.41e9 * 1e-3 / 32, FFMA=1e6)
"""Counts by which multiply-adds of integers fill 90 % of their pipe of an A100 in 1 ms, beside some FP32."""


@pytest.mark.parametrize("by", ["launch", "kernel"])
def test_integers_that_limit_a_kernel_are_drawn_beside_its_other_work(tmp_path: Path, by: str) -> None:
    both = {**A100, **timing(seconds=1e-3), **BYTES}
    other = opcodes(IMAD=1e6, FFMA=1e6)
    file = report(
        tmp_path / "r.ncu-rep", kernel(both, name="full", instances=INTEGER_BOUND), kernel(both, name="other", instances=other)
    )
    found = roofline(file, by=by)
    assert found.kernels["verdict"].iloc[0] == "compute: INT32"
    drawn_of = {name: set(rows["precision"]) for name, rows in found.points.groupby("kernel")}
    assert drawn_of == {"full": {"fp32", "int32"}, "other": {"fp32"}}
    assert "INT32" in set(found.roofs["label"])
    assert set(roofline(file, by=by, select=Selection(precisions=("fp32",))).points["precision"]) == {"fp32"}
    assert set(compare(file, file).kernels["precision"]) == {"fp32"}  # which stands for a kernel doesn't hang on its verdict
