"""What each rule says in each of its branches, with exact numbers; the kernels are small enough to follow by hand.

`complete()` is an A100 with one FP64 GFLOP (all fused) in a millisecond: 1 TFLOP/s; 1 GB at L1, 0.5 GB at L2, 0.25 GB at DRAM.
Its roofs: FP64 108 x 64 x 1.41 GHz = 9.75 TFLOP/s, L1 108 x 128 x 1.41 = 19.5 TB/s, L2 80 x 64 x 1.41 = 7.22 TB/s, DRAM
5120 / 4 x 1.215 = 1.56 TB/s, which allow 19.5, 14.4 and 6.22 TFLOP/s.
At the end every rule judges by the measured roofs that it is given, which are half of theory.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from ncu_roofline.formats.ceilings import Ceiling, Ceilings
from ncu_roofline.plugin.generate.rules import render_rules
from ncu_roofline.plugin.nvrules.runner import RuleSet, load_rules
from tests.factory import A100, H100, NO_WORK, V100, Metrics, complete, flops, timing, traffic
from tests.nvrules.running import messages, only, our_rules, outcomes
from tests.nvrules.test_access_pattern import LOADS

GFLOP = 10**9
WGMMA = "sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum"
MMA16 = "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp16_sparsity_off.sum"
MMA32 = "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32_sparsity_off.sum"
TENSOR_BUSY = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"


def without(metrics: Metrics, *words: str) -> Metrics:
    """The metrics but those with one of these words in their name."""
    return {name: value for name, value in metrics.items() if not any(word in name for word in words)}


def test_where_a_precision_stands(tmp_path: Path) -> None:
    said = only(tmp_path, complete(), "BoundDouble")
    assert (said.type, said.title, said.speedup) == ("ok", "FP64 at 16 % of its DRAM roof", None)
    assert said.text == (
        "FP64 runs at 1 TFLOP/s, 16 % of the 6.22 TFLOP/s that DRAM allows at 4 FLOP/B. Share of attainable by level: "
        "L1/TEX 10 %, L2 10 %, DRAM 16 %. Next roof: compute, 1.6x higher. See the "
        "@section:HierarchicalDoubleRooflineChart:chart@."
    )
    assert [(metric.name, metric.value, metric.severity) for metric in said.focus] == [("dram__bytes.sum", 250e6, "low")]


def test_under_the_compute_roof(tmp_path: Path) -> None:
    metrics = {**complete(seconds=1e-3 / 9), "dram__bytes.sum": 10**6}
    said = only(tmp_path, metrics, "BoundDouble")
    assert (said.type, said.title, said.speedup) == ("ok", "FP64 at 92 % of its compute roof", None)
    assert "FP64 runs at 9 TFLOP/s, 92 % of its 9.75 TFLOP/s compute roof." in said.text
    assert "Next roof" not in said.text
    assert said.focus[0].name == "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum"


def test_above_its_roof(tmp_path: Path) -> None:
    said = only(tmp_path, complete(seconds=1e-4), "BoundDouble")
    assert (said.type, said.title, said.speedup) == ("warning", "FP64 above its roof", None)
    assert "161 % of the 6.22 TFLOP/s" in said.text


def test_verdict_below_every_limit(tmp_path: Path) -> None:
    """DRAM is at 250 GB/s of 1555 GB/s, 6.2 times as fast is left, 84 % less time; 1 TFLOP/s is a tenth of the peak."""
    known = {"sm__warps_active.avg.pct_of_peak_sustained_active": 25.0, "smsp__warps_eligible.avg.per_cycle_active": 0.2}
    said = only(tmp_path, {**complete(), **known}, "Verdict")
    assert (said.type, said.title) == ("optimization", "latency")
    assert said.text == (
        "Latency-bound, no unit above 60 % (highest: DRAM at 16 % of its roof); achieved occupancy 25 %, 0.2 eligible warps "
        "per scheduler and cycle: 6.2x at its present traffic and instructions, 9.7x to the FP64 FMA roof (4 of 6.27 FLOP/B). "
        "Try more parallelism per SM or per thread, and fewer barriers."
    )
    assert (said.speedup, said.speedup_type) == (pytest.approx(100 * (1 - 250 / 1555.2)), "global")


def test_verdict_memory(tmp_path: Path) -> None:
    said = only(tmp_path, complete(seconds=1e-3 / 4.5), "Verdict")
    assert (said.type, said.title) == ("optimization", "memory: DRAM")
    assert said.text.startswith(
        "DRAM-bound at 72 % of its roof: 1.4x at its present traffic, 2.2x to the FP64 FMA roof (4 of 6.27 FLOP/B). "
        "To go faster, move fewer bytes there"
    )
    near = only(tmp_path, complete(seconds=1e-3 / 5.6), "Verdict")
    assert (near.type, near.title, near.speedup) == ("optimization", "memory: DRAM", pytest.approx(100 * (1 - 1400 / 1555.2)))


def test_verdict_of_a_mix_that_is_not_all_fused(tmp_path: Path) -> None:
    """Half fused: three quarters of the FMA peak can be reached, and 75 % of that is."""
    work = flops("d", add=10**8, fma=10**8)  # 3e8 FLOP in 4e8 slots, of 9.75e12 a second
    metrics = {**complete(seconds=4e8 / 9.74592e12 / 0.75), **work, **traffic(1000, 10, 100)}
    said = only(tmp_path, metrics, "Verdict")
    assert (said.type, said.title) == ("optimization", "compute: FP64 FMA")
    assert said.text.startswith(
        "FP64 FMA-bound at 75 % of its FMA-mix ceiling (75 % of peak): 1.3x at its present instructions, "
        "1.8x to the FP64 FMA roof."
    )
    assert said.speedup == pytest.approx(25)
    others = [message for name in ("BoundDouble", "Mixed") for message in messages(tmp_path, metrics, name)]
    assert [message.speedup for message in others if message.speedup is not None] == []


def test_verdict_issue_slots(tmp_path: Path) -> None:
    metrics = {**complete(), "sm__inst_executed.avg.pct_of_peak_sustained_elapsed": 88.0}
    said = only(tmp_path, metrics, "Verdict")
    assert (said.title, said.text) == (
        "compute: issue slots",
        "Bound by its issue slots at 88 % of peak: 1.1x at its present instructions, 9.7x to the FP64 FMA roof. To go faster, "
        "issue fewer instructions: wider loads and stores, unrolled loops, less address arithmetic.",
    )


def test_integer_arithmetic_is_sent_to_no_other_precision(tmp_path: Path) -> None:
    """LOP3 and SHF have none."""
    said = only(tmp_path, {**complete(), "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_elapsed": 88.0}, "Verdict")
    assert said.title == "compute: ALU pipe"
    assert "To go faster, compute less: keep what is computed again" in said.text
    assert "precision" not in said.text


def test_verdict_tensor_work_unknown(tmp_path: Path) -> None:
    said = only(tmp_path, {**complete(), TENSOR_BUSY: 40.0}, "Verdict")
    assert (said.type, said.title) == ("warning", "tensor work unknown")
    assert said.text.startswith("Limit unknown: the tensor pipe was active but its operations were not collected; ")
    elapsed = {
        **complete(),
        TENSOR_BUSY.replace("_active.avg.pct_of_peak_sustained_active", "_active.avg.pct_of_peak_sustained_elapsed"): 40.0,
    }
    assert "was active in 40 % of the cycles but" in only(tmp_path, elapsed, "Verdict").text
    assert said.text.endswith("@section:HierarchicalTensorRooflineChart:HierarchicalTensorRooflineChart@ to know.")


ISSUED = "sm__inst_executed.avg.pct_of_peak_sustained_elapsed"
LSU = "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed"
MIO = "sm__mio_inst_issued.avg.pct_of_peak_sustained_elapsed"
DATA_PIPE = "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"
SHARED_PIPE = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed"


@pytest.mark.parametrize("unit", [ISSUED, LSU, DATA_PIPE])
def test_no_hint_for_what_does_not_bind(tmp_path: Path, unit: str) -> None:
    """Nearest is not bound: neither with unknown tensor work nor where nothing is full."""
    unknown = only(tmp_path, {**complete(), TENSOR_BUSY: 10.0, unit: 46.0}, "Verdict")
    assert unknown.title == "tensor work unknown"
    assert "at 46 % of peak" in unknown.text
    assert "To go faster" not in unknown.text
    below = only(tmp_path, {**complete(), unit: 46.0}, "Verdict")
    assert (below.title, "To go faster" in below.text) == ("latency", False)


@pytest.mark.parametrize(
    ("unit", "title"),
    [
        (LSU, "memory: load/store unit"),
        (MIO, "memory: memory instruction queue"),
        (DATA_PIPE, "memory: L1/TEX"),
        (SHARED_PIPE, "memory: Shared memory"),
    ],
)
def test_units_full_of_requests_need_fewer_of_them(tmp_path: Path, unit: str, title: str) -> None:
    said = only(tmp_path, {**complete(), unit: 88.0}, "Verdict")
    assert said.title.lower() == title.lower()
    assert said.text.endswith(" To go faster, use wider loads and stores, fewer accesses.")


def test_the_l1_roof_is_about_bytes(tmp_path: Path) -> None:
    """16 GB in a millisecond of 19.5 TB/s: the data pipe is as full, the roof has the better name and its own hint."""
    metrics = {**complete(), **traffic(16 * 10**9, 10**7, 10**7), DATA_PIPE: 85.0}
    said = only(tmp_path, metrics, "Verdict")
    assert said.title == "memory: L1/TEX"
    assert "To go faster, move fewer bytes there" in said.text


def test_verdict_unknown(tmp_path: Path) -> None:
    said = only(tmp_path, {**A100, "gpu__time_duration.sum": 10**6}, "Verdict")
    assert (said.type, said.title) == ("none", "unknown")


@pytest.mark.parametrize(
    ("device", "counters", "slices"),
    [
        ("NVIDIA GeForce RTX 2080 Ti", {}, 44),
        ("NVIDIA GeForce RTX 4090", {}, 36),
        ("NVIDIA Some GPU", {"lts__t_sectors.sum": 4800.0, "lts__t_sectors.avg": 100.0}, 48),
        ("NVIDIA Some GPU", {}, 80),
    ],
)
def test_slices_of_l2(tmp_path: Path, device: str, counters: Metrics, slices: int) -> None:
    """By counters, else as known for the GPU; attributes (10 x 8 here) are the last resort, and the message says so."""
    capability = {"RTX 2080 Ti": (7, 5), "RTX 4090": (8, 9)}.get(device.removeprefix("NVIDIA GeForce "), (8, 0))
    chip: Metrics = {
        **A100,
        "device__attribute_display_name": device,
        "device__attribute_compute_capability_major": capability[0],
        "device__attribute_compute_capability_minor": capability[1],
    }
    metrics = {**complete(chip), **traffic(0, 10**9, 0), **counters}
    said = only(tmp_path, metrics, "BoundDouble")
    expected = slices * (32 if capability == (7, 5) else 64) * 1.41e9 * 1e9 / 32e9
    assert f"of the {expected / 1e9:.3g} GFLOP/s that L2 allows" in said.text
    assert ("L2 slices by device attributes" in said.text) == (slices == 80)


def test_precisions_of_one_pipe_add_up(tmp_path: Path) -> None:
    """From 8.6 on FP16 runs on the FMA pipe: each alone asks for 40 % of it, together they fill 80 %."""
    chip = {**A100, "device__attribute_compute_capability_minor": 6, "device__attribute_display_name": "NVIDIA A40"}
    work = {**flops("d"), **flops("f", fma=4 * 10**8), **flops("h", fma=2 * 10**8)}
    seconds = 8e8 / (108 * 256 * 1.41e9) / 0.4  # FP32 256 and FP16 256 FLOP per SM and cycle
    shared = only(tmp_path, {**complete(chip, seconds), **work, **traffic(1000, 10, 100)}, "Verdict")
    assert shared.title.startswith("compute: FP")
    assert " at 80 % of its roof" in shared.text
    mixed = only(tmp_path, {**complete(chip, seconds), **work, **traffic(1000, 10, 100)}, "Mixed")
    assert "80 % of the " in mixed.text
    assert "(FP32 and FP16 share it)" in mixed.text or "(FP16 and FP32 share it)" in mixed.text


def test_how_it_was_counted_is_said(tmp_path: Path) -> None:
    metrics: Metrics = {
        **without(complete(), "dram__bytes"),
        "dram__sectors_read.sum": 7_000_000,
        "dram__sectors_write.sum": 812_500,
    }
    assert " Counted at DRAM: sectors x 32 B." in only(tmp_path, metrics, "BoundDouble").text


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        (without(complete(), "_op_d"), "Collect smsp__sass_thread_inst_executed_op_dadd_pred_on.sum, smsp__"),
        (without(complete(), "time_duration"), "Collect gpu__time_duration.sum, smsp__sass"),
        (
            without(complete(), "l1tex", "lts", "dram"),
            "Collect l1tex__t_bytes.sum, lts__t_sectors_srcunit_tex.sum, dram__bytes.sum",
        ),
        (
            {**complete(), "device__attribute_compute_capability_major": 6},
            "This rule does not know chips of compute capability 6.0",
        ),
        (without(complete(), "multiprocessor_count"), "FP64 has no roof here"),
    ],
)
def test_what_keeps_it_from_judging(tmp_path: Path, metrics: Metrics, expected: str) -> None:
    said = only(tmp_path, metrics, "BoundDouble")
    assert (said.type, said.text[: len(expected)]) == ("none", expected)


def test_other_precisions_keep_quiet(tmp_path: Path) -> None:
    found = outcomes(tmp_path, complete())
    assert found["NcuRooflineBoundSingle"].messages == ()
    assert found["NcuRooflineMixed"].messages == ()


def test_a_few_operations_of_another_precision_are_noise(tmp_path: Path) -> None:
    metrics = {**complete(), **flops("f", add=10**6)}
    assert messages(tmp_path, metrics, "BoundSingle") == ()
    assert only(tmp_path, metrics, "BoundDouble").title == "FP64 at 16 % of its DRAM roof"


def test_a_mix_of_precisions(tmp_path: Path) -> None:
    metrics = {**complete(), **flops("f", fma=GFLOP // 2)}
    double, single = only(tmp_path, metrics, "BoundDouble"), only(tmp_path, metrics, "BoundSingle")
    assert (double.type, double.title, double.speedup) == ("ok", "FP64 at 16 % of its DRAM roof", None)
    assert "It is 50 % of the kernel's work" in double.text
    assert "It is 50 % of the kernel's work" in single.text
    mixed = only(tmp_path, metrics, "Mixed")
    # Together 2 GFLOP; FP64 alone needs 1 / 9.75 ms = 103 us, so the mix can't beat 19.5 TFLOP/s; DRAM at 8 FLOP/B: 12.4.
    assert mixed.text.startswith(
        "Work is mixed (FP64 50 %, FP32 50 %). Together 2 TFLOP/s, 16 % of the 12.4 TFLOP/s at which DRAM is full; "
        "the FP64 pipe needs at least 103 us of the 1 ms."
    )
    assert (mixed.type, mixed.speedup) == ("ok", None)  # the verdict tells what there is to gain


@pytest.mark.parametrize(
    ("counts", "alpha", "ceiling"),
    [
        (
            (0, 0, 500_000_000),
            "100 % of the arithmetic instructions are fused multiply-adds (alpha 1)",
            "100 % of the FMA peak, 9.75",
        ),
        (
            (200_000_000, 200_000_000, 600_000_000),
            "60 % of the arithmetic instructions are fused multiply-adds (alpha 0.6)",
            "80 %",
        ),
        ((10**9, 0, 0), "0 % of the arithmetic instructions are fused multiply-adds (alpha 0)", "50 % of the FMA peak, 4.87"),
    ],
)
def test_fma_mix(tmp_path: Path, counts: tuple[int, int, int], alpha: str, ceiling: str) -> None:
    said = only(tmp_path, {**complete(), **flops("d", *counts)}, "FmaMix")
    assert said.type == "ok"
    assert said.text.startswith(f"FP64: {alpha}, so this mix can reach {ceiling}")


def test_fma_mix_near_its_ceiling(tmp_path: Path) -> None:
    metrics = {**complete(seconds=1e-3 / 4.5), **flops("d", add=GFLOP)}
    said = only(tmp_path, metrics, "FmaMix")
    assert (said.type, said.title) == ("optimization", "FP64 FMA mix limits the compute roof")
    assert "this mix can reach 50 % of the FMA peak, 4.87 TFLOP/s of 9.75 TFLOP/s. It runs at 4.5 TFLOP/s." in said.text
    # At 92 % of what the mix can reach half of that would be saved, were DRAM not 72 % full.
    assert (said.speedup, said.speedup_type) == (pytest.approx(100 * (1 - 0.25 * 4.5 / 1.5552)), "global")
    assert said.focus[0].info == "alpha = 0, beta = 0.5"


def test_fma_mix_of_packed_instructions(tmp_path: Path) -> None:
    """One HFMA2 to one HADD2 is alpha 0.5, whatever their width; a B200's FFMA2 counts as two FFMA."""
    half = {**complete(), **flops("d"), **flops("h", add=10**8, fma=10**8)}
    assert "(alpha 0.5)" in only(tmp_path, half, "FmaMix").text
    packed = {f"smsp__sass_thread_inst_executed_op_f{op}2_pred_on.sum": 0 for op in ("add", "mul", "fma")}
    blackwell: Metrics = {**complete(), **flops("d"), **flops("f", add=2 * 10**8), **packed}
    blackwell["smsp__sass_thread_inst_executed_op_ffma2_pred_on.sum"] = 10**8
    blackwell["device__attribute_compute_capability_major"] = 10
    assert "(alpha 0.5)" in only(tmp_path, blackwell, "FmaMix").text


def test_fma_mix_of_one_counter_for_all_three(tmp_path: Path) -> None:
    """What our overview section collects."""
    counts: Metrics = {
        "smsp__sass_thread_inst_executed_ops_dadd_dmul_dfma_pred_on.sum.per_second": 8e11,
        "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum.per_second": 2e11,
    }
    said = only(tmp_path, {**without(complete(), "_op_d"), **counts}, "FmaMix")
    assert "(alpha 0.25)" in said.text
    assert said.text.endswith("6.09 TFLOP/s of 9.75 TFLOP/s. It runs at 1 TFLOP/s.")


def test_divides_and_transcendentals(tmp_path: Path) -> None:
    metrics = {**complete(), "sm__inst_executed_pipe_xu.sum": 10**6, "smsp__inst_executed.sum": 10**8}
    said = messages(tmp_path, metrics, "FmaMix")[1]
    assert said.title == "Divides and transcendentals"
    assert "ran 1 M warp instructions, 1 % of all, one lane for every 31.2 FLOP." in said.text
    assert "no counter tells how many" in said.text
    assert "__fdividef" in said.text


def test_locality(tmp_path: Path) -> None:
    said = only(tmp_path, complete(), "Locality")
    assert (said.type, said.text) == (
        "ok",
        "Of each byte asked of L1/TEX, 0.25 are asked of DRAM; intensities L1/TEX : L2 : DRAM stand as 1 : 2 : 4. "
        "L1/TEX serves 2x what it takes from L2. L2 serves 2x what it takes from DRAM.",
    )


def test_no_powers_of_ten(tmp_path: Path) -> None:
    """Pythons differ in how they write them, and nobody likes to read them."""
    said = only(tmp_path, {**complete(), **traffic(10**9, 10**9 // 32, 1000)}, "Locality")
    assert "stand as 1 : 1 : 1000000. " in said.text
    assert "1.0e-06 are asked of DRAM" in said.text


@pytest.mark.parametrize(
    ("moved", "seconds", "title", "text"),
    [
        (
            traffic(2 * 10**9, 19 * 10**8 // 32, 95 * 10**7),
            0.7e-3,
            "Little reuse between L2 and DRAM",
            "DRAM runs at 87 % of its bandwidth, so there saved bytes are saved time: shrink",
        ),
        (  # one to one: streaming, nothing to catch
            traffic(10**9, 10**9 // 32, 95 * 10**7),
            0.7e-3,
            "Streaming",
            "DRAM moves what L2 is asked for: there is no reuse for it to catch.",
        ),
        (  # stores whose lanes lie apart: L1 is asked for twice the bytes
            traffic(2 * 10**9, 10**9 // 32, 95 * 10**7),
            0.7e-3,
            "Streaming",
            "Fusing kernels or smaller types save bytes.",
        ),
        (traffic(2 * 10**9, 19 * 10**8 // 32, 95 * 10**7), 1.4e-3, "Reuse in the caches", "L2 serves 2x"),  # DRAM is not full
        (traffic(4 * 10**9, 4 * 10**9 // 32, 10**8), 0.6e-3, "Little reuse between L1/TEX and L2", "tile into shared memory"),
        (
            traffic(10**9, 10**9 // 32, 2 * 10**9),
            1.5e-3,
            "Little reuse between L2 and DRAM",
            "DRAM moves more than L2 asks for (2x)",
        ),
        (traffic(10**10, 10**10 // 32, 10**9), 0.7e-2, "Reuse in the caches", "L2 serves 10x"),
    ],
)
def test_where_reuse_is_lost(tmp_path: Path, moved: Metrics, seconds: float, title: str, text: str) -> None:
    said = only(tmp_path, {**complete(seconds=seconds), **moved}, "Locality")
    assert said.title == title
    assert said.type == ("optimization" if title.startswith("Little reuse") else "ok")
    assert text in said.text
    assert ("blocking" in said.text) <= (title == "Little reuse between L2 and DRAM")


def test_locality_needs_two_levels(tmp_path: Path) -> None:
    said = only(tmp_path, without(complete(), "l1tex", "lts__t"), "Locality")
    assert said.text == "Collect l1tex__t_bytes.sum, lts__t_sectors_srcunit_tex.sum to see which cache level catches reuse."


def test_older_tensor_instructions(tmp_path: Path) -> None:
    metrics = {**complete(H100), WGMMA: 10**11, MMA16: 0, MMA32: 3 * 10**11}
    older, used = messages(tmp_path, metrics, "Tensor")
    assert (older.type, older.title) == ("optimization", "Older tensor instructions")
    assert "75 % of the Tensor FP16 work ran through mma.sync" in older.text
    assert "(67 % of the 762 TFLOP/s of wgmma)" in older.text
    full = (10**11 / 762.3 + 3 * 10**11 / 508.2) * 1e-9  # of the millisecond, at the roofs in TFLOP/s
    assert (older.speedup, older.speedup_type) == (pytest.approx(25 * full, rel=1e-3), "global")
    assert (used.type, used.title) == ("ok", "Tensor cores in use")
    slow, _ = messages(tmp_path, {**metrics, **timing(2e-3)}, "Tensor")
    assert (slow.type, slow.title, slow.speedup) == ("ok", "Older tensor instructions", None)


def test_cuda_cores_hold_tensor_cores_up(tmp_path: Path) -> None:
    metrics = {**complete(H100, seconds=6e-5), **traffic(10**6, 10**4, 10**5), WGMMA: 10**10, MMA16: 0, MMA32: 0}
    said = only(tmp_path, metrics, "Tensor")
    assert (said.type, said.title) == ("optimization", "Tensor cores wait for CUDA cores")
    assert said.text.startswith("At their peaks the pipes would need: FP64 42 us, Tensor FP16 13.1 us; the kernel took 60 us.")
    assert only(tmp_path, {**metrics, **timing(1e-3)}, "Tensor").type == "ok"  # neither limits it


def test_eligible_work(tmp_path: Path) -> None:
    busy = {**complete(), **flops("d"), **flops("f", fma=7 * GFLOP), TENSOR_BUSY: 0.0}
    said = only(tmp_path, busy, "Tensor")
    assert (said.type, said.title) == ("optimization", "Tensor cores idle")
    assert said.text.startswith("Tensor cores were idle; FP32 runs at 72 % of its FMA peak.")
    assert said.text.endswith("Tensor TF32 (8x), Tensor BF16 (16x), Tensor FP16 (16x).")
    idle = only(tmp_path, {**busy, **timing(1.0)}, "Tensor")
    assert (idle.type, idle.text) == ("ok", "Tensor cores were idle; FP32 runs at 0.072 % of its FMA peak.")


@pytest.mark.parametrize(
    ("metrics", "kind", "title"),
    [
        ({**complete(), TENSOR_BUSY: 40.0}, "warning", "Tensor work not counted"),
        (complete(), "none", "Metrics missing"),
    ],
)
def test_tensor_work_without_counters(tmp_path: Path, metrics: Metrics, kind: str, title: str) -> None:
    said = only(tmp_path, metrics, "Tensor")
    assert (said.type, said.title) == (kind, title)


@pytest.mark.parametrize(("device", "has"), [("NVIDIA GeForce GTX 1660 Ti", False), ("Tesla T4", True)])
@pytest.mark.parametrize("seconds", [timing(), {}])
def test_boards_without_tensor_cores_are_not_asked_for_their_work(
    tmp_path: Path, device: str, has: bool, seconds: Metrics
) -> None:
    """TU116 and TU117 are compute capability 7.5 as well."""
    chip = {**A100, "device__attribute_display_name": device, "device__attribute_compute_capability_major": 7}
    chip |= {"device__attribute_compute_capability_minor": 5}
    found = outcomes(tmp_path, {**chip, **seconds})
    asked = [message.text for one in found.values() for message in one.messages if "ollect " in message.text]
    assert any("ops_path_tensor" in text or "pipe_tensor" in text for text in asked) == has
    (tensor,), (bound,) = found["NcuRooflineTensor"].messages, found["NcuRooflineBoundTensor"].messages
    if not has:
        assert (tensor.type, tensor.text) == ("none", "NVIDIA GeForce GTX 1660 Ti has no tensor cores.")
        assert bound.text.startswith("NVIDIA GeForce GTX 1660 Ti has no units for work of this kind (Tensor FP16")
    assert any("smsp__sass_thread_inst_executed_op_ffma" in text for text in asked)


def test_clocks(tmp_path: Path) -> None:
    said = only(tmp_path, complete(), "Clocks")
    assert (said.type, said.text) == ("ok", "Profiled at 1.41 GHz SM clock, 100 % of the GPU's maximum 1.41 GHz.")
    low = only(tmp_path, complete(clock=0.705e9), "Clocks")
    assert (low.type, low.title) == ("warning", "Profiled below the maximum clock")
    assert "at the maximum they are 2x higher, and the DRAM ridge point moves, of FP64 from 3.13 to 6.27 FLOP/B." in low.text
    assert only(tmp_path, without(complete(), "cycles_elapsed"), "Clocks").title == "Metrics missing"


def test_memory_clock(tmp_path: Path) -> None:
    metrics = {**complete(), "dram__cycles_elapsed.avg.per_second": 0.6e9}
    assert [said.title for said in messages(tmp_path, metrics, "Clocks")] == ["Clocks", "Memory below its maximum clock"]
    short = {**metrics, **timing(5e-5)}  # in real reports memory clocks of short kernels are measured too low
    assert [said.title for said in messages(tmp_path, short, "Clocks")] == ["Clocks"]


def test_no_clock_is_blamed_for_short_launches(tmp_path: Path) -> None:
    """Cycles over duration is 0.6 GHz there because launching is in the duration."""
    assert messages(tmp_path, complete(seconds=1.9e-5, clock=0.6e9), "Clocks") == ()
    assert len(messages(tmp_path, complete(seconds=2.1e-5, clock=0.6e9), "Clocks")) == 1


@pytest.mark.parametrize(("clock", "warned"), [(1.0e9, True), (1.5e9, False)])
def test_measured_roofs_at_another_clock(tmp_path: Path, clock: float, warned: bool) -> None:
    measured = {"dram.read": Ceiling("dram.read", 8e11, "B/s", 1.53e9, "")}
    ceilings = Ceilings("v100.json", "Tesla V100-SXM2-16GB", "", (7, 0), "2024-01-02", measured)
    rules = tmp_path / "rules"
    rules.mkdir()
    for name, text in render_rules(ceilings=[ceilings]).items():
        (rules / name).write_text(text)
    found = messages(tmp_path, complete(V100, clock=clock), "Clocks", load_rules([rules]))
    assert ("Measured roofs at another clock" in [said.title for said in found]) == warned
    if warned:
        start = (
            "The measured roofs (v100.json, Tesla V100-SXM2-16GB, 2024-01-02) were taken at 1.53 GHz, the kernel ran at 1 GHz"
        )
        assert found[-1].text.startswith(start)
    bound = only(tmp_path, complete(V100, clock=clock), "BoundDouble", load_rules([rules]))
    assert "of the 3.2 TFLOP/s that DRAM allows at 4 FLOP/B (measured)" in bound.text


@pytest.mark.parametrize(
    ("metrics", "titles"),
    [
        (complete(), []),
        (complete(V100), ["Launch size"]),
        (complete(seconds=4.2e-6), []),  # what a launch costs on an A100 nobody measured here
        (complete(V100, seconds=4.2e-6), ["Launch overhead counts"]),
        ({**complete(), "launch__waves_per_multiprocessor": 1.25}, ["Tail of the last wave"]),
        ({**complete(), "launch__waves_per_multiprocessor": 7.9}, []),
        ({**complete(), "launch__waves_per_multiprocessor": 0.5, "launch__grid_size": 216}, ["Less than one wave"]),
        ({**complete(), "launch__waves_per_multiprocessor": 0.1, "launch__grid_size": 54}, ["Fewer blocks than SMs"]),
        ({**complete(), **NO_WORK}, ["No FLOPs"]),
        (without({**complete(), **NO_WORK}, "l1tex", "lts__t", "dram__b"), ["No FLOPs"]),
        (without({**complete(), **NO_WORK}, "_op_h"), []),
        (without(complete(), "time_duration"), ["Metrics missing"]),
    ],
)
def test_launch_size(tmp_path: Path, metrics: Metrics, titles: list[str]) -> None:
    assert [said.title for said in messages(tmp_path, metrics, "LaunchSize")] == titles


def test_numbers_of_launch_size(tmp_path: Path) -> None:
    short = only(tmp_path, complete(V100, seconds=4.2e-6), "LaunchSize")
    assert short.text.startswith("The kernel took 4.2 us; a launch alone costs about 4.2 us, so it is 50 % of both together.")
    tail = only(tmp_path, {**complete(), "launch__waves_per_multiprocessor": 1.25}, "LaunchSize")
    assert tail.text.startswith("1.25 waves: in the last one 75 % of the GPU idles, up to 38 % of the run time")
    assert (tail.speedup, tail.speedup_type) == (pytest.approx(37.5), "global")
    waves = {**complete(), "launch__waves_per_multiprocessor": 1.25}
    half = only(tmp_path, {**waves, "lts__t_sectors.avg.pct_of_peak_sustained_elapsed": 80.0}, "LaunchSize")
    assert (half.type, half.speedup) == ("ok", None)  # L2 is full meanwhile
    assert "(verdict: memory: L2)." in half.text
    unknown = only(tmp_path, {**waves, TENSOR_BUSY: 40.0}, "LaunchSize")
    assert (unknown.type, unknown.speedup) == ("optimization", None)  # nobody knows what tensor cores were full of
    few = only(tmp_path, {**complete(), "launch__waves_per_multiprocessor": 0.1, "launch__grid_size": 54}, "LaunchSize")
    assert few.text.startswith("54 blocks leave 50 % of the 108 SMs without work. Use smaller blocks or")
    alone: Metrics = {"launch__waves_per_multiprocessor": 0.1, "launch__grid_size": 1, "launch__block_size": 1}
    one = only(tmp_path, {**complete(), **alone}, "LaunchSize")
    assert one.text.startswith("One block leaves 99 % of the 108 SMs without work. Split the problem further.")
    copy = only(tmp_path, {**complete(), **NO_WORK}, "LaunchSize")
    assert "By its bytes it is nearest to DRAM: 250 GB/s, 16 % of that roof." in copy.text
    assert copy.speedup is None
    measured = {"launch.stream": Ceiling("launch.stream", 2.5e-6, "s", math.nan, "")}
    ceilings = Ceilings("a100.json", "NVIDIA A100-SXM4-40GB", "", (8, 0), "2024-01-02", measured)
    rules = tmp_path / "rules"
    rules.mkdir()
    for name, text in render_rules(ceilings=[ceilings]).items():
        (rules / name).write_text(text)
    short = only(tmp_path, complete(seconds=5e-6), "LaunchSize", load_rules([rules]))
    assert short.text.startswith("The kernel took 5 us; a launch alone costs about 2.5 us, so it is 33 % of both together.")


@pytest.mark.parametrize("metrics", [{}, {"gpu__time_duration.sum": 5}, dict(A100), {"device__attribute_display_name": 5}])
def test_no_rule_fails_for_lack_of_metrics(tmp_path: Path, metrics: Metrics) -> None:
    found = outcomes(tmp_path, metrics)
    assert {outcome.status for outcome in found.values()} == {"done"}
    assert {message.type for outcome in found.values() for message in outcome.messages} <= {"none", "ok", "optimization"}


def test_odd_values_break_nothing(tmp_path: Path) -> None:
    """Every metric that a rule reads as NaN, infinite, zero, negative, huge, or text."""
    names = [
        *complete(),
        LOADS.format("sectors"),
        LOADS.format("requests"),
        "launch__waves_per_multiprocessor",
        TENSOR_BUSY,
    ]
    for odd in (float("nan"), float("inf"), 0, 0.0, -1.0, 1e300, 2**63, "text"):
        everything: Metrics = dict.fromkeys(names, odd)
        for metrics in (
            everything,
            {**everything, **A100},
            {**complete(), **dict.fromkeys(NO_WORK, odd)},
            {**complete(), **dict.fromkeys(traffic(), odd)},
        ):
            found = outcomes(tmp_path, metrics)
            assert [outcome for outcome in found.values() if outcome.status != "done"] == []


def test_our_rules_are_all_tried_here() -> None:
    tried = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    for rule in our_rules().rules:
        short = rule.identifier.removeprefix("NcuRoofline")
        assert f'"{short}"' in tried or short in ("BoundHalf", "BoundTensor")


_SM = 108 * 1.41e9
_A100 = {
    "fp64.fma": 64 * _SM,
    "fp32.fma": 128 * _SM,
    "tensor.fp64.mma": 128 * _SM,
    "l1.read": 128 * _SM,
    "l2.read": 64 * 80 * 1.41e9,
    "dram.read": 5120 / 4 * 1.215e9,
}
_H100 = {"tensor.fp16.mma": 2730 * 132 * 1.41e9, "tensor.fp16.wgmma": 4096 * 132 * 1.41e9}


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> RuleSet:
    """Our rules with half of all theoretical roofs."""

    def made(device: Metrics, capability: tuple[int, int], roofs: dict[str, float]) -> Ceilings:
        found = {
            name: Ceiling(name, value / 2, "FLOP/s" if value in roofs.values() and "read" not in name else "B/s", 1.41e9, "")
            for name, value in roofs.items()
        }
        return Ceilings("half.json", str(device["device__attribute_display_name"]), "", capability, "2024-01-02", found)

    folder = tmp_path_factory.mktemp("rules")
    for name, text in render_rules(ceilings=[made(A100, (8, 0), _A100), made(H100, (9, 0), _H100)]).items():
        (folder / name).write_text(text, encoding="utf-8")
    return load_rules([folder])


_COPY = {**complete(), **NO_WORK}
_TENSOR = {**complete(H100), WGMMA: 10**11, MMA16: 0, MMA32: 3 * 10**11}


@pytest.mark.parametrize(
    ("rule", "metrics", "theoretical", "measured"),
    [
        ("BoundDouble", complete(), "16 % of the 6.22 TFLOP/s that DRAM", "32 % of the 3.11 TFLOP/s that DRAM"),
        ("BoundDouble", complete(), "allows at 4 FLOP/B.", "allows at 4 FLOP/B (measured)."),
        ("FmaMix", complete(), "9.75 TFLOP/s of 9.75 TFLOP/s.", "4.87 TFLOP/s of 4.87 TFLOP/s (measured)."),
        ("LaunchSize", _COPY, "250 GB/s, 16 % of that roof.", "250 GB/s, 32 % of that roof (measured)."),
        ("Locality", complete(seconds=4e-4), "L2 serves 2x", "DRAM runs at 80 % of its bandwidth (measured)"),
        (
            "Tensor",
            {**complete(seconds=2.5e-4), TENSOR_BUSY: 0},
            "FP64 runs at 41 % of its FMA peak.",
            "FP64 runs at 82 % of its FMA peak (measured).",
        ),
        ("Tensor", _TENSOR, "(67 % of the 762 TFLOP/s of wgmma).", "(67 % of the 381 TFLOP/s of wgmma) (measured)."),
        ("Tensor", _TENSOR, "Tensor FP16 525 us,", "Tensor FP16 1.05 ms (measured),"),
        ("Verdict", complete(seconds=4e-4), "highest: DRAM at 40 % of its roof", "DRAM-bound at 80 % of its roof"),
        (
            "Mixed",
            {**complete(), **flops("f", fma=250_000_000)},
            "is full;",
            "is full (measured);",
        ),
    ],
)
def test_numbers(tmp_path: Path, half: RuleSet, rule: str, metrics: Metrics, theoretical: str, measured: str) -> None:
    assert theoretical in " ".join(said.text for said in messages(tmp_path, metrics, rule))
    assert measured in " ".join(said.text for said in messages(tmp_path, metrics, rule, half))
