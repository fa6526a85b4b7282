"""The headroom of kernels: its two numbers, what of it is waste, and that nothing is said of what nobody looked at."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline import roofline
from ncu_roofline.analyses import text_table
from ncu_roofline.chips.verdict import ABOVE, BEYOND
from ncu_roofline.model import Roofline
from tests.factory import A100, H100, NO_WORK, V100, Metrics, complete, flops, kernel, report, timing, traffic

ELAPSED, ACTIVE = ".avg.pct_of_peak_sustained_elapsed", ".avg.pct_of_peak_sustained_active"
QUIET: Metrics = {**traffic(10**6, 10**4, 10**6), f"lts__throughput{ELAPSED}": 1.0, f"l1tex__throughput{ELAPSED}": 1.0}
HOPPER_TYPES = "sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active"
TURING: Metrics = {
    **A100,
    "device__attribute_display_name": "Tesla T4",
    "device__attribute_compute_capability_major": 7,
    "device__attribute_compute_capability_minor": 5,
}


def of(path: Path, *metrics: Metrics, **options: Any) -> Roofline:
    return roofline(report(path / "r.ncu-rep", *map(kernel, metrics)), **options)


def only(path: Path, metrics: Metrics) -> dict[str, Any]:
    (row,) = of(path, metrics).kernels.to_dict("records")
    return row


def test_two_numbers_of_a_kernel_under_dram(tmp_path: Path) -> None:
    """1 TFLOP/s of 9.75, by 1.25 TB/s of 1.56: 0.8 FLOP/B, where the ridge is at 6.27."""
    found = only(tmp_path, {**complete(), "dram__bytes.sum": 1_250_000_000})
    assert found["verdict"] == "memory: DRAM"
    assert found["headroom"] == found["speedup"] == pytest.approx(1555.2 / 1250)
    assert found["headroom_compute"] == pytest.approx(9.74592)
    assert found["reason"] == (
        "DRAM-bound at 80 % of its roof: 1.2x at its present traffic, 9.7x to the FP64 FMA roof (0.8 of 6.27 FLOP/B)"
    )


def test_precisions_of_a_pipe_add_up_and_pipes_overlap(tmp_path: Path) -> None:
    """FP64 a tenth of its peak beside FP32 at three tenths of another pipe: the longer one counts."""
    work = {**flops("d", fma=round(0.1 * 32 * 108 * 1.41e6)), **flops("f", fma=round(0.3 * 64 * 108 * 1.41e6))}
    assert only(tmp_path, {**complete(), **work})["headroom_compute"] == pytest.approx(1 / 0.3, rel=1e-6)
    ada = {**A100, "device__attribute_display_name": "NVIDIA A40", "device__attribute_compute_capability_minor": 6}
    halves = {
        **flops("d"),
        **flops("f", fma=round(0.2 * 128 * 108 * 1.41e6)),
        **flops("h", fma=round(0.05 * 128 * 108 * 1.41e6)),  # packed in twos
    }
    assert only(tmp_path, {**complete(ada), **halves})["headroom_compute"] == pytest.approx(1 / 0.3, rel=1e-6)


def test_without_operations_there_is_one_number(tmp_path: Path) -> None:
    found = only(tmp_path, {**complete(), **NO_WORK, "dram__bytes.sum": 1_250_000_000})
    assert (found["headroom"], math.isnan(found["headroom_compute"])) == (pytest.approx(1555.2 / 1250), True)
    assert found["reason"] == "DRAM-bound at 80 % of its roof: 1.2x at its present traffic"


@pytest.mark.reports
def test_a_kernel_that_was_made_faster(real_reports: dict[str, Path]) -> None:
    """miniWeather before and after it divides less often: 1.78 times as fast, where 1.4x was left at its instructions."""
    before, after = (roofline(real_reports[f"v100-ncu2022.2-full-{one}.ncu-rep"]).kernels.set_index("kernel") for one in (1, 2))
    name = "compute_tendencies_x_279_gpu"
    faster = before["seconds"][name] / after["seconds"][name]
    assert faster == pytest.approx(1.78, abs=0.005)
    assert before["headroom"][name] < faster < before["headroom_compute"][name]
    assert before["reason"][name].endswith("1.4x at its present instructions, 1.9x to the FP64 FMA roof")


# Waste ------------------------------------------------------------------------------------------------------------------------

LOCAL = "l1tex__t_sectors_pipe_lsu_mem_local_op_{}.sum"
DATA_PIPE = f"l1tex__data_pipe_lsu_wavefronts{ELAPSED}"


def test_spilled_registers_are_named_with_what_is_left_without_them(tmp_path: Path) -> None:
    """A GEMM that spills: 97 % of what L1 moves is local memory."""
    spilling = {
        **complete(),
        **traffic(15 * 10**9, 10**7, 10**7),
        LOCAL.format("ld"): 0.60 * 15e9 / 32,
        LOCAL.format("st"): 0.37 * 15e9 / 32,
    }
    found = only(tmp_path, spilling)
    assert (found["verdict"], found["waste"]) == ("memory: L1/TEX", "local memory")
    assert found["headroom"] == pytest.approx(19490.4 / 15000, rel=1e-3)
    assert found["headroom_without_waste"] > 8
    assert "; 97 % of its L1 traffic is local memory (spilled registers, arrays indexed at run time): " in found["reason"]
    assert " without that, " in found["reason"]


def test_sectors_beyond_those_that_the_bytes_need(tmp_path: Path) -> None:
    wasted = {"memory_l2_theoretical_sectors_global": 16e9 / 32, "memory_l2_theoretical_sectors_global_ideal": 4e9 / 32}
    found = only(tmp_path, {**complete(), **traffic(16 * 10**9, 10**7, 10**7), **wasted})
    assert (found["verdict"], found["waste"]) == ("memory: L1/TEX", "excess sectors")
    assert "; 75 % of the sectors that it asks of L1 are more than their bytes need: " in found["reason"]


def test_replays_of_the_data_pipe(tmp_path: Path) -> None:
    """A GH200 whose pipe was full of them: banks were read in 3.2 % of the cycles, data went back in 10 %."""
    replaying = {
        DATA_PIPE: 99.6, f"l1tex__data_bank_reads{ELAPSED}": 3.2, f"l1tex__lsu_writeback_active{ELAPSED}": 10.0,
        f"l1tex__lsuin_requests{ELAPSED}": 6.9, f"l1tex__data_bank_writes{ELAPSED}": 0.1,
    }  # fmt: skip
    found = only(tmp_path, {**complete(H100, clock=1.98e9), **replaying})
    assert (found["verdict"], found["waste"]) == ("memory: L1/TEX", "replays")
    assert "L1/TEX-bound at 100 % of peak; 86 % or more of what its data pipe does are replays" in found["reason"]
    assert found["headroom"] == pytest.approx(1 / 0.996)
    assert found["headroom_without_waste"] == pytest.approx(1 / (250 / 1555.2), rel=1e-3)  # then DRAM is the fullest


def test_bank_conflicts(tmp_path: Path) -> None:
    conflicts = {
        f"l1tex__data_pipe_lsu_wavefronts_mem_shared{ELAPSED}": 90.0, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": 4e6,
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": 3e6,
    }  # fmt: skip
    found = only(tmp_path, {**complete(), **conflicts})
    assert (found["verdict"], found["waste"]) == ("memory: Shared memory", "bank conflicts")
    assert "; 75 % of its passes through shared memory are bank conflicts: " in found["reason"]


def test_lanes_that_do_nothing(tmp_path: Path) -> None:
    few = {f"sm__inst_executed{ELAPSED}": 90.0, "smsp__thread_inst_executed_per_inst_executed.ratio": 8.0}
    found = only(tmp_path, {**complete(), **few})
    assert (found["verdict"], found["waste"]) == ("compute: issue slots", "inactive lanes")
    assert "; 8 of 32 lanes are active: " in found["reason"]


def test_parts_that_are_more_than_the_whole_are_no_waste(tmp_path: Path) -> None:
    odd = {**complete(), **traffic(15 * 10**9, 10**7, 10**7), LOCAL.format("ld"): 15e9, LOCAL.format("st"): 0.0}
    assert only(tmp_path, odd)["waste"] == ""


# What keeps a kernel ----------------------------------------------------------------------------------------------------------


def test_idle_sms_are_a_cause_of_their_own(tmp_path: Path) -> None:
    """Attention on an RTX 5090: 1.51 waves of a causal grid, occupancy 15 of 17 % possible, which is not low."""
    attention = {
        **complete(), **QUIET, "sm__cycles_active.avg": 0.68e6, "sm__cycles_elapsed.max": 1e6, "sm__cycles_active.min": 0.5e6,
        "sm__cycles_active.max": 0.99e6, "launch__waves_per_multiprocessor": 1.51,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 15.0, "sm__maximum_warps_per_active_cycle_pct": 17.0,
    }  # fmt: skip
    found = only(tmp_path, attention)
    assert found["verdict"] == "latency"
    assert found["sm_active"] == pytest.approx(0.68)
    assert "SMs are idle in 32 % of the cycles (1 % to 50 % by SM; 1.51 waves), achieved occupancy 15 %" in found["reason"]
    assert "low" not in found["reason"]


def test_causes_stand_by_how_much_they_explain(tmp_path: Path) -> None:
    slow = {**complete(), **QUIET, "sm__cycles_active.avg": 0.8e6, "sm__cycles_elapsed.max": 1e6}
    warps = {"sm__warps_active.avg.pct_of_peak_sustained_active": 10.0, "sm__maximum_warps_per_active_cycle_pct": 100.0}
    reason = only(tmp_path, {**slow, **warps})["reason"]
    assert "low achieved occupancy 10 % (theoretical 100 %), SMs are idle in 20 % of the cycles" in reason


def test_percentages_of_active_cycles_are_of_all_that_elapsed(tmp_path: Path) -> None:
    """63 % of the active cycles, which are 68 % of all."""
    special = {**QUIET, f"sm__inst_executed_pipe_xu{ACTIVE}": 63.0}
    busy = {**complete(), **special, "sm__cycles_active.avg": 0.68e6, "sm__cycles_elapsed.max": 1e6}
    found = only(tmp_path, busy)
    assert (found["verdict"], found["busiest_fraction"]) == ("latency", pytest.approx(0.63 * 0.68))
    alone = only(tmp_path, {**complete(), **special})
    assert "at 63 % of peak in the cycles in which its SM was active" in alone["reason"]


# What was not looked at -------------------------------------------------------------------------------------------------------


def test_what_was_not_collected_is_not_empty(tmp_path: Path) -> None:
    found = only(tmp_path, {**A100, **timing(), f"sm__inst_executed{ELAPSED}": 20.0, f"l1tex__throughput{ELAPSED}": 2.8})
    assert found["verdict"] == "unknown"
    assert math.isnan(found["headroom"])
    assert math.isnan(found["recoverable"])
    assert found["reason"] == "limit unknown: nearest known is issue slots at 20 % of peak; DRAM and L2 were not collected"
    without_dram = {**complete(), "dram__bytes.sum": math.nan}
    assert only(tmp_path, without_dram)["reason"].endswith("; DRAM was not collected")


def test_what_is_full_has_no_headroom_beside_unknown_memory(tmp_path: Path) -> None:
    found = only(tmp_path, {**A100, **timing(), f"sm__inst_executed{ELAPSED}": 90.0})
    assert (found["verdict"], math.isnan(found["headroom"])) == ("compute: issue slots", True)
    assert found["reason"].endswith(": DRAM, L2 and L1 were not collected, so that its headroom is not known")


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ({"dram__bytes_read.sum.pct_of_peak_sustained_elapsed": 79.6}, "DRAM-bound, at least 80 % of"),
        (
            {
                "dram__bytes_read.sum.pct_of_peak_sustained_elapsed": 50,
                "dram__bytes_write.sum.pct_of_peak_sustained_elapsed": 20.0,
            },
            "DRAM-bound at 70 % of",
        ),
        ({"dram__bytes.sum.pct_of_peak_sustained_elapsed": 75.0}, "DRAM-bound at 75 % of"),
        ({"dram__bytes_read.sum": 1_200_000_000}, "DRAM-bound, at least 77 % of"),
        ({f"l1tex__throughput{ELAPSED}": 88.0}, "L1/TEX-bound at 88 % of"),
        ({f"sm__memory_throughput{ELAPSED}": 88.0}, "bound by its memory units of the SM at 88 % of"),
        ({"l1tex__t_bytes_pipe_lsu_mem_global_op_ld.sum": 14 * 10**9}, "L1/TEX-bound, at least 72 % of"),
        ({"lts__t_sectors_srcunit_tex_op_read.sum": 5 * 10**9 / 32}, "L2-bound, at least 69 % of"),
        (
            {f"sm__inst_executed_pipe_alu{ACTIVE}": 80.0, "sm__cycles_active.avg": 1.4e6, "sm__cycles_elapsed.max": 1.41e6},
            "bound by its ALU pipe at 79 % of",
        ),
    ],
)
def test_percentages_and_lower_bounds_that_stand_in_reports_are_read(tmp_path: Path, metrics: Metrics, said: str) -> None:
    assert only(tmp_path, {**A100, **timing(), **metrics})["reason"].startswith(said)


def test_misses_of_l2_are_a_lower_bound_of_dram_where_l2_is_one(tmp_path: Path) -> None:
    """Not on A100, whose halves ask each other: there they were 1.1 to 1.5 times what DRAM read."""
    misses = {"lts__t_sectors_srcunit_tex_aperture_device_op_read_lookup_miss.sum": 0.73 * 1555.2e6 / 32}
    found = only(tmp_path, {**V100, **timing(clock=1.53e9), **misses})
    assert found["reason"].startswith("DRAM-bound, at least 73 % of its roof")
    assert math.isnan(only(tmp_path, {**A100, **timing(), **misses})["fraction_dram"])


def test_percentages_that_end_at_half_on_turing(tmp_path: Path) -> None:
    full = {**TURING, **timing(), DATA_PIPE: 49.98, f"l1tex__m_l1tex2xbar_req_cycles_active{ELAPSED}": 30.0}
    found = only(tmp_path, full)
    assert found["fraction_l1"] == pytest.approx(0.9996)
    assert only(tmp_path, {**A100, **timing(), DATA_PIPE: 49.98})["fraction_l1"] == pytest.approx(0.4998)


def test_the_roof_of_dram_is_bytes_by_percent_where_the_clock_is_missing(tmp_path: Path) -> None:
    """An RTX 4090 whose memory runs at 9.1 GHz of 10.5: 88.8 % of what it can do then, not 77 %."""
    metrics = {
        **complete(),
        "dram__bytes.sum": 1_200_000_000,
        f"dram__throughput{ELAPSED}": 88.8,
        f"gpu__dram_throughput{ELAPSED}": 88.8,
    }
    found = of(tmp_path, metrics)
    assert found.kernels["fraction_dram"][0] == pytest.approx(0.888)
    roof = found.roofs[found.roofs["roof"] == "dram"].iloc[0]
    assert roof["value"] == pytest.approx(1.2e12 / 0.888)
    assert "share of the peak" in roof["notes"] + roof["metrics"] + roof["source"]


def test_nothing_was_collected_is_said_where_nothing_was(tmp_path: Path) -> None:
    nothing = only(tmp_path, {**A100, **timing()})["reason"]
    assert nothing == "limit unknown: neither work nor traffic nor the use of any unit was collected"
    for some in ({f"l1tex__throughput{ELAPSED}": 30.0}, {"dram__bytes_read.sum": 10**6}, flops("d", fma=5)):
        assert "neither work nor traffic" not in only(tmp_path, {**A100, **timing(), **some})["reason"]


@pytest.mark.parametrize("share", [1.01, ABOVE + 0.01, BEYOND + 0.01])
def test_far_above_a_roof_there_is_no_verdict(tmp_path: Path, share: float) -> None:
    found = only(tmp_path, {**complete(), "dram__bytes.sum": round(share * 1555.2e6)})
    assert (found["verdict"] == "unknown") == (share > BEYOND)
    assert math.isnan(found["headroom"]) == (share > BEYOND)
    assert ("can't be" in found["reason"]) == (share > ABOVE)


def test_the_charts_of_a_report_are_held_to_the_same(tmp_path: Path) -> None:
    """A verdict is by the report's counters, whichever points are drawn."""
    far = {**complete(), "dram__bytes.sum": round(1.5 * 1555.2e6)}
    assert list(of(tmp_path, far, source="embedded").kernels["verdict"]) == ["unknown"]


# Tensor cores -----------------------------------------------------------------------------------------------------------------


def test_half_precision_on_the_tensor_pipe_is_no_tensor_work(tmp_path: Path) -> None:
    """Element-wise kernels keep the whole pipe 1.9 to 3.7 % busy (HFMA2.MMA), and types of tensor instructions not."""
    busy = {f"sm__pipe_tensor_cycles_active{ACTIVE}": 3.0, f"sm__pipe_tensor_cycles_active{ELAPSED}": 2.9}
    assert only(tmp_path, {**complete(H100, clock=1.98e9), **busy})["verdict"] == "tensor work unknown"
    typed = {f"{HOPPER_TYPES}{ELAPSED}": 0.005, f"sm__pipe_tensor_op_dmma_cycles_active{ELAPSED}": 0.0}
    found = only(tmp_path, {**complete(H100, clock=1.98e9), **busy, **typed})
    assert (found["verdict"], found["tensor_active"]) == ("latency", pytest.approx(5e-5))


def test_what_is_full_limits_whatever_tensor_cores_did_beside(tmp_path: Path) -> None:
    busy = {f"sm__pipe_tensor_cycles_active{ELAPSED}": 20.0, "dram__bytes.sum": 1_400_000_000}
    found = only(tmp_path, {**complete(), **busy})
    assert (found["verdict"], found["headroom"]) == ("memory: DRAM", pytest.approx(1555.2 / 1400))
    assert math.isnan(found["headroom_compute"])  # of the work that was counted only
    busier = only(tmp_path, {**complete(), **busy, f"sm__pipe_tensor_cycles_active{ELAPSED}": 95.0})
    assert (busier["verdict"], math.isnan(busier["headroom"])) == ("tensor work unknown", True)


def test_tensor_activity_is_of_elapsed_cycles(tmp_path: Path) -> None:
    active = {f"sm__pipe_tensor_cycles_active{ACTIVE}": 50.0}
    assert math.isnan(only(tmp_path, {**complete(), **active})["tensor_active"])
    known = {**active, "sm__cycles_active.avg": 0.5e6, "sm__cycles_elapsed.max": 1e6}
    assert only(tmp_path, {**complete(), **known})["tensor_active"] == pytest.approx(0.25)


def test_no_sentence_promises_a_bound(tmp_path: Path) -> None:
    for more in ({}, {"dram__bytes.sum": 1_500_000_000}, {f"sm__inst_executed{ELAPSED}": 97.0}, NO_WORK, {DATA_PIPE: 100.0}):
        reason = only(tmp_path, {**complete(), **more})["reason"]
        assert not re.search("at most|nothing to gain|all together|faster", reason), reason


# Several launches of a kernel ------------------------------------------------------------------------------------------------


def busy(share: float, seconds: float = 1e-3, unit: str = "dram__cycles_active") -> Metrics:
    """A launch without work whose nearest limit is this full."""
    known = {f"lts__throughput{ELAPSED}": 1.0, f"l1tex__throughput{ELAPSED}": 1.0, f"dram__cycles_active{ELAPSED}": 1.0}
    return {**complete(seconds=seconds), **NO_WORK, **QUIET, **known, "dram__bytes.sum": 10**6, f"{unit}{ELAPSED}": 100 * share}


def test_launches_that_differ_have_the_verdict_of_most_of_the_time_and_the_headroom_of_all(tmp_path: Path) -> None:
    """70 % full of one thing and 80 % of another is not 60 % full of nothing."""
    launches = (busy(0.70, 3e-3, "sm__pipe_alu_cycles_active"), busy(0.80, 1e-3))
    (found,) = of(tmp_path, *launches, by="kernel").kernels.to_dict("records")
    assert (found["verdict"], found["limit_fraction"]) == ("compute: ALU pipe", pytest.approx(0.70))
    assert found["headroom"] == pytest.approx(4 / (3 * 0.70 + 1 * 0.80))
    assert found["recoverable"] == pytest.approx(3e-3 * 0.30 + 1e-3 * 0.20)
    assert found["reason"].startswith("in 75 % of its time bound by its ALU pipe at 70 % of peak: 1.4x at its present traffic")
    first = text_table(of(tmp_path, *launches, by="kernel")).splitlines()[0]
    assert first.startswith("1 kernel, 2 launches, 4 ms: headroom 1.4x at present traffic and instructions")


def test_short_launches_enter_neither_the_row_of_their_kernel_nor_the_first_sentence(tmp_path: Path) -> None:
    launches = (busy(0.9, 1e-4), busy(0.2, 1e-5), busy(0.2, 1e-5))
    (found,) = of(tmp_path, *launches, by="kernel").kernels.to_dict("records")
    assert (found["verdict"], found["headroom"]) == ("memory: DRAM", pytest.approx(1 / 0.9))
    assert (found["judged_seconds"], found["short_seconds"]) == (pytest.approx(1e-4), pytest.approx(2e-5))
    assert found["reason"].startswith("in 83 % of its time DRAM-bound at 90 % of its roof")
    first = " ".join(text_table(of(tmp_path, *launches, by="kernel")).split("\n  ")[0].split())
    assert first.endswith(
        "headroom 1.1x at present traffic and instructions; 16.7 % of the time is in launches too short to judge."
    )


def test_work_of_a_kernel_is_the_same_beside_reports_of_other_gpus(tmp_path: Path) -> None:
    """A launch of which no operations were counted is no launch without any, whatever another GPU's tensor cores do."""
    counted, not_counted = {**complete(), **traffic()}, {**A100, **timing(), **traffic()}
    kinds = (f"hmma_src_fp16_dst_{kind}" for kind in ("fp16", "fp32"))
    tensor = {f"sm__ops_path_tensor_op_{kind}_sparsity_off.sum": 1e9 for kind in (*kinds, "hgmma_src_fp16")}
    mine = report(tmp_path / "mine.ncu-rep", kernel(counted), kernel(not_counted))
    other = report(tmp_path / "other.ncu-rep", kernel({**complete(H100), **tensor}, "void other(int)"))
    alone, beside = (roofline(files, by="kernel").kernels.iloc[0] for files in ([mine], [mine, other]))
    assert alone["headroom_compute"] == beside["headroom_compute"] > 1


def test_issue_slots_by_what_was_recorded_of_all_cycles(tmp_path: Path) -> None:
    """Of one warp a block three sub-partitions idle: of the active cycles of those that don't is another number."""
    shares = {f"sm__issue_active{ELAPSED}": 5.6, f"smsp__issue_active{ACTIVE}": 15.2, "sm__cycles_active.avg": 0.95 * 1.41e6}
    found = only(tmp_path, {**complete(), **QUIET, **shares, "sm__cycles_elapsed.max": 1.41e6})
    assert found["issue_fraction"] == pytest.approx(0.056)


def test_stores_are_no_replays(tmp_path: Path) -> None:
    """A coalesced copy, as an A40 counted it: half of the passes store, and nothing of them goes back to registers."""
    copying = {
        DATA_PIPE: 95.0, f"l1tex__lsu_writeback_active{ELAPSED}": 47.5, f"l1tex__data_bank_reads{ELAPSED}": 23.8,
        f"l1tex__data_bank_writes{ELAPSED}": 23.8, f"l1tex__lsuin_requests{ELAPSED}": 47.5,
    }  # fmt: skip
    found = only(tmp_path, {**complete(H100, clock=1.98e9), **copying})
    assert (found["verdict"], found["waste"]) == ("memory: L1/TEX", "")


def test_of_a_latency_bound_kernel_limit_and_headroom_are_of_one_unit(tmp_path: Path) -> None:
    found = only(
        tmp_path,
        {**complete(), **QUIET, f"sm__inst_executed{ELAPSED}": 40.0, **flops("d", fma=round(0.37 * 32 * 108 * 1.41e6))},
    )
    assert (found["verdict"], found["limit"]) == ("latency", "issue")
    assert found["headroom"] == pytest.approx(1 / found["limit_fraction"])


def test_a_headroom_that_may_be_less_says_so_wherever_it_stands(tmp_path: Path) -> None:
    without = {name: value for name, value in complete().items() if not name.startswith(("l1tex", "smsp__sass_l1tex"))}
    found = of(tmp_path, {**without, "dram__bytes.sum": 1_250_000_000}, by="kernel")
    assert found.kernels.iloc[0]["headroom_or_less"] == 1
    text = text_table(found)
    assert "headroom 1.2x or less at present traffic" in text
    assert "1.2x at its present traffic (or less: L1 was not collected)" in " ".join(text.split())
    assert " \N{LESS-THAN OR EQUAL TO}1.2x " in text


def test_the_roof_of_dram_by_its_bytes_and_percentages_of_both_directions(tmp_path: Path) -> None:
    """An RTX 4090 without a memory clock: 89 % busy at 500 GB/s is a roof of 563 GB/s."""
    percent = {
        f"dram__bytes_{way}.sum.pct_of_peak_sustained_elapsed": share for way, share in (("read", 71.0), ("write", 17.8))
    }
    launch = {**complete(), **NO_WORK, **percent, "dram__bytes.sum": 500_000_000}
    roofs = of(tmp_path, {name: value for name, value in launch.items() if not name.startswith("dram__cycles")}).roofs
    assert roofs.set_index("level")["value"]["dram"] == pytest.approx(500e9 / 0.888)
