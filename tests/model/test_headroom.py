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
PERCENT, UNSAID = "pct_of_peak_sustained_elapsed", "tensor work unknown"
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


# What one launch says: its metrics, columns of its row (None: unknown), and words of its reason.
LOCAL = "l1tex__t_sectors_pipe_lsu_mem_local_op_{}.sum"
DATA_PIPE = f"l1tex__data_pipe_lsu_wavefronts{ELAPSED}"
TENSOR_PIPE, ALL_CYCLES = "sm__pipe_tensor_cycles_active", "sm__cycles_elapsed.max"
BOTH_CYCLES: Metrics = {"sm__cycles_active.avg": 0.68e6, ALL_CYCLES: 1e6}
WARPS_ACTIVE, WARPS_POSSIBLE = "sm__warps_active.avg.pct_of_peak_sustained_active", "sm__maximum_warps_per_active_cycle_pct"
FULL_L1: Metrics = {**complete(), **traffic(15 * 10**9, 10**7, 10**7)}
HOPPER, ONLY_TIME = complete(H100, clock=1.98e9), {**A100, **timing()}
BUSY_DRAM: Metrics = {**complete(), f"{TENSOR_PIPE}{ELAPSED}": 20.0, "dram__bytes.sum": 1_400_000_000}
MISSES: Metrics = {"lts__t_sectors_srcunit_tex_aperture_device_op_read_lookup_miss.sum": 0.73 * 1555.2e6 / 32}
Row = tuple[Metrics, dict[str, Any], tuple[str, ...]]
LAUNCHES: dict[str, Row] = {
    "two numbers under DRAM": (  # 1 TFLOP/s of 9.75, by 1.25 TB/s of 1.56: 0.8 FLOP/B, where the ridge is at 6.27
        {**complete(), "dram__bytes.sum": 1_250_000_000},
        {"verdict": "memory: DRAM", "headroom": 1555.2 / 1250, "speedup": 1555.2 / 1250, "headroom_compute": 9.74592},
        ("DRAM-bound at 80 % of its roof: 1.2x at its present traffic, 9.7x to the FP64 FMA roof (0.8 of 6.27 FLOP/B)$",),
    ),
    "one number without operations": (
        {**complete(), **NO_WORK, "dram__bytes.sum": 1_250_000_000},
        {"headroom": 1555.2 / 1250, "headroom_compute": None},
        ("DRAM-bound at 80 % of its roof: 1.2x at its present traffic$",),
    ),
    "spilled registers": (  # a GEMM: 97 % of what L1 moves is local memory
        {**FULL_L1, LOCAL.format("ld"): 0.60 * 15e9 / 32, LOCAL.format("st"): 0.37 * 15e9 / 32},
        {"verdict": "memory: L1/TEX", "waste": "local memory", "headroom": 19491.84 / 15000, "headroom_without_waste": 9.74592},
        ("; 97 % of its L1 traffic is local memory (spilled registers, arrays indexed at run time): ", " without that, "),
    ),
    "excess sectors": (
        {
            **complete(), **traffic(16 * 10**9, 10**7, 10**7), "memory_l2_theoretical_sectors_global": 16e9 / 32,
            "memory_l2_theoretical_sectors_global_ideal": 4e9 / 32,
        },
        {"verdict": "memory: L1/TEX", "waste": "excess sectors"},
        ("; 75 % of the sectors that it asks of L1 are more than their bytes need: ",),
    ),
    "replays": (  # a GH200: banks were read in 3.2 % of the cycles, data went back in 10 %; then DRAM is the fullest
        {
            **HOPPER, DATA_PIPE: 99.6, f"l1tex__data_bank_reads{ELAPSED}": 3.2, f"l1tex__lsu_writeback_active{ELAPSED}": 10.0,
            f"l1tex__lsuin_requests{ELAPSED}": 6.9, f"l1tex__data_bank_writes{ELAPSED}": 0.1,
        },
        {"verdict": "memory: L1/TEX", "waste": "replays", "headroom": 1 / 0.996, "headroom_without_waste": 1555.2 / 250},
        ("L1/TEX-bound at 100 % of peak; 86 % or more of what its data pipe does are replays",),
    ),
    "stores are no replays": (  # a coalesced copy on an A40: half of the passes store, nothing of them goes back to registers
        {
            **HOPPER, DATA_PIPE: 95.0, f"l1tex__lsu_writeback_active{ELAPSED}": 47.5, f"l1tex__data_bank_reads{ELAPSED}": 23.8,
            f"l1tex__data_bank_writes{ELAPSED}": 23.8, f"l1tex__lsuin_requests{ELAPSED}": 47.5,
        },
        {"verdict": "memory: L1/TEX", "waste": ""},
        (),
    ),
    "bank conflicts": (
        {
            **complete(), f"l1tex__data_pipe_lsu_wavefronts_mem_shared{ELAPSED}": 90.0,
            "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": 4e6,
            "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": 3e6,
        },
        {"verdict": "memory: Shared memory", "waste": "bank conflicts"},
        ("; 75 % of its passes through shared memory are bank conflicts: ",),
    ),
    "inactive lanes": (
        {**complete(), f"sm__inst_executed{ELAPSED}": 90.0, "smsp__thread_inst_executed_per_inst_executed.ratio": 8.0},
        {"verdict": "compute: issue slots", "waste": "inactive lanes"},
        ("; 8 of 32 lanes are active: ",),
    ),
    "parts more than the whole": ({**FULL_L1, LOCAL.format("ld"): 15e9, LOCAL.format("st"): 0.0}, {"waste": ""}, ()),
    "idle SMs": (  # attention on an RTX 5090: a causal grid, occupancy 15 of 17 % possible, which is not low
        {
            **complete(), **QUIET, **BOTH_CYCLES, "sm__cycles_active.min": 0.5e6, "sm__cycles_active.max": 0.99e6,
            "launch__waves_per_multiprocessor": 1.51, WARPS_ACTIVE: 15.0, WARPS_POSSIBLE: 17.0,
        },
        {"verdict": "latency", "sm_active": 0.68},
        ("; SMs are idle in 32 % of the cycles (1 % to 50 % by SM; 1.51 waves), achieved occupancy 15 %",),
    ),
    "causes by how much they explain": (
        {**complete(), **QUIET, "sm__cycles_active.avg": 0.8e6, ALL_CYCLES: 1e6, WARPS_ACTIVE: 10.0, WARPS_POSSIBLE: 100.0},
        {},
        ("low achieved occupancy 10 % (theoretical 100 %), SMs are idle in 20 % of the cycles",),
    ),
    "of active cycles, which are 68 % of all": (
        {**complete(), **QUIET, **BOTH_CYCLES, f"sm__inst_executed_pipe_xu{ACTIVE}": 63.0},
        {"verdict": "latency", "busiest_fraction": 0.63 * 0.68},
        (),
    ),
    "of active cycles alone": (
        {**complete(), **QUIET, f"sm__inst_executed_pipe_xu{ACTIVE}": 63.0},
        {},
        ("at 63 % of peak in the cycles in which its SM was active",),
    ),
    "issue slots of all cycles": (  # of one warp a block three sub-partitions idle: of the active cycles it is another number
        {
            **complete(), **QUIET, f"sm__issue_active{ELAPSED}": 5.6, f"smsp__issue_active{ACTIVE}": 15.2,
            "sm__cycles_active.avg": 0.95 * 1.41e6, ALL_CYCLES: 1.41e6,
        },
        {"issue_fraction": 0.056},
        (),
    ),
    "not collected is not empty": (
        {**ONLY_TIME, f"sm__inst_executed{ELAPSED}": 20.0, f"l1tex__throughput{ELAPSED}": 2.8},
        {"verdict": "unknown", "headroom": None, "recoverable": None},
        ("limit unknown: nearest known is issue slots at 20 % of peak; DRAM and L2 were not collected$",),
    ),
    "DRAM is not a number": ({**complete(), "dram__bytes.sum": math.nan}, {}, ("; DRAM was not collected$",)),
    "full beside unknown memory": (
        {**ONLY_TIME, f"sm__inst_executed{ELAPSED}": 90.0},
        {"verdict": "compute: issue slots", "headroom": None},
        (": DRAM, L2 and L1 were not collected, so that its headroom is not known$",),
    ),
    "nothing collected": (ONLY_TIME, {}, ("limit unknown: neither work nor traffic nor the use of any unit was collected$",)),
    "misses are a lower bound": (
        {**V100, **timing(clock=1.53e9), **MISSES}, {}, ("DRAM-bound, at least 73 % of its roof",)
    ),
    "but not where L2 has halves that ask each other": ({**ONLY_TIME, **MISSES}, {"fraction_dram": None}, ()),
    "Turing's percentages end at half": (
        {**TURING, **timing(), DATA_PIPE: 49.98, f"l1tex__m_l1tex2xbar_req_cycles_active{ELAPSED}": 30.0},
        {"fraction_l1": 0.9996},
        (),
    ),
    "others' don't": ({**ONLY_TIME, DATA_PIPE: 49.98}, {"fraction_l1": 0.4998}, ()),
    "tensor pipe busy": ({**HOPPER, f"{TENSOR_PIPE}{ACTIVE}": 3.0, f"{TENSOR_PIPE}{ELAPSED}": 2.9}, {"verdict": UNSAID}, ()),
    "by HFMA2.MMA": (  # element-wise kernels keep the whole pipe 1.9 to 3.7 % busy, and types of tensor instructions not
        {
            **HOPPER, f"{TENSOR_PIPE}{ACTIVE}": 3.0, f"{TENSOR_PIPE}{ELAPSED}": 2.9, f"{HOPPER_TYPES}{ELAPSED}": 0.005,
            f"sm__pipe_tensor_op_dmma_cycles_active{ELAPSED}": 0.0,
        },
        {"verdict": "latency", "tensor_active": 5e-5},
        (),
    ),
    "tensor pipe beside full DRAM": (  # headroom_compute would be of the counted work only
        BUSY_DRAM, {"verdict": "memory: DRAM", "headroom": 1555.2 / 1400, "headroom_compute": None}, ()
    ),
    "tensor pipe fuller": ({**BUSY_DRAM, f"{TENSOR_PIPE}{ELAPSED}": 95.0}, {"verdict": UNSAID, "headroom": None}, ()),
    "tensor activity of active cycles": ({**complete(), f"{TENSOR_PIPE}{ACTIVE}": 50.0}, {"tensor_active": None}, ()),
    "tensor activity of all": (
        {**complete(), f"{TENSOR_PIPE}{ACTIVE}": 50.0, "sm__cycles_active.avg": 0.5e6, ALL_CYCLES: 1e6},
        {"tensor_active": 0.25},
        (),
    ),
}  # fmt: skip
# Percentages and lower bounds that stand in reports are read.
STANDING: dict[str, Metrics] = {
    "DRAM-bound, at least 80 % of": {f"dram__bytes_read.sum.{PERCENT}": 79.6},
    "DRAM-bound at 70 % of": {f"dram__bytes_read.sum.{PERCENT}": 50, f"dram__bytes_write.sum.{PERCENT}": 20.0},
    "DRAM-bound at 75 % of": {f"dram__bytes.sum.{PERCENT}": 75.0},
    "DRAM-bound, at least 77 % of": {"dram__bytes_read.sum": 1_200_000_000},
    "L1/TEX-bound at 88 % of": {f"l1tex__throughput{ELAPSED}": 88.0},
    "bound by its memory units of the SM at 88 % of": {f"sm__memory_throughput{ELAPSED}": 88.0},
    "L1/TEX-bound, at least 72 % of": {"l1tex__t_bytes_pipe_lsu_mem_global_op_ld.sum": 14 * 10**9},
    "L2-bound, at least 69 % of": {"lts__t_sectors_srcunit_tex_op_read.sum": 5 * 10**9 / 32},
    "bound by its ALU pipe at 79 % of": {
        f"sm__inst_executed_pipe_alu{ACTIVE}": 80.0, "sm__cycles_active.avg": 1.4e6, ALL_CYCLES: 1.41e6,
    },
}  # fmt: skip
SOME: Metrics = {f"l1tex__throughput{ELAPSED}": 30.0, "dram__bytes_read.sum": 10**6}


@pytest.mark.parametrize("which", LAUNCHES)
def test_one_launch(tmp_path: Path, which: str) -> None:
    metrics, columns, words = LAUNCHES[which]
    found = only(tmp_path, metrics)
    for name, value in columns.items():
        if value is None:
            assert math.isnan(found[name]), name
        else:
            assert found[name] == (value if isinstance(value, str) else pytest.approx(value)), name
    for text in words:
        assert text in f"{found['reason']}$"


def test_what_stands_in_reports_is_read(tmp_path: Path) -> None:
    for said, metrics in STANDING.items():
        assert only(tmp_path, {**ONLY_TIME, **metrics})["reason"].startswith(said)
    for one in (*({name: value} for name, value in SOME.items()), flops("d", fma=5)):
        assert "neither work nor traffic" not in only(tmp_path, {**ONLY_TIME, **one})["reason"]


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


@pytest.mark.reports
def test_a_kernel_that_was_made_faster(real_reports: dict[str, Path]) -> None:
    """miniWeather before and after it divides less often: 1.78 times as fast, where 1.4x was left at its instructions."""
    before, after = (roofline(real_reports[f"v100-ncu2022.2-full-{one}.ncu-rep"]).kernels.set_index("kernel") for one in (1, 2))
    name = "compute_tendencies_x_279_gpu"
    faster = before["seconds"][name] / after["seconds"][name]
    assert faster == pytest.approx(1.78, abs=0.005)
    assert before["headroom"][name] < faster < before["headroom_compute"][name]
    assert before["reason"][name].endswith("1.4x at its present instructions, 1.9x to the FP64 FMA roof")


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
