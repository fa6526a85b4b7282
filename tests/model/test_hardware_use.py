"""How busy the hardware was, and the facts of the hardware that roofs stand on: slices, clocks, shared memory, pipes."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from ncu_roofline import roofline
from ncu_roofline.chips import load_units
from ncu_roofline.model import Roofline, Selection
from ncu_roofline.model.columns import KERNELS
from tests.factory import A100, NO_WORK, V100, Metrics, complete, flops, kernel, opcodes, report, timing, traffic

ELAPSED = ".avg.pct_of_peak_sustained_elapsed"
BASIC: Metrics = {
    f"sm__throughput{ELAPSED}": 84.1,
    f"sm__pipe_alu_cycles_active{ELAPSED}": 84.1,
    f"sm__inst_executed_pipe_lsu{ELAPSED}": 77.9,
    f"sm__issue_active{ELAPSED}": 53.6,
    f"gpu__dram_throughput{ELAPSED}": 50.0,
    f"dram__cycles_active{ELAPSED}": 50.0,
    f"lts__throughput{ELAPSED}": 30.0,
    f"l1tex__data_pipe_lsu_wavefronts{ELAPSED}": 39.2,
    "sm__warps_active.avg.pct_of_peak_sustained_active": 32.9,
    "sm__maximum_warps_per_active_cycle_pct": 33.3,
    "launch__waves_per_multiprocessor": 2.5,
    "smsp__warps_eligible.avg.per_cycle_active": 0.8,
    "sm__inst_executed.avg.per_cycle_active": 2.1,
}
GAUGES = {
    "occupancy": 0.329,
    "occupancy_theoretical": 0.333,
    "waves": 2.5,
    "eligible_warps": 0.8,
    "ipc": 2.1,
    "data_pipe": 0.392,
}
"""Columns of gauges for these metrics."""


def of(path: Path, *metrics: Metrics, **options: object) -> Roofline:
    return roofline(report(path / "r.ncu-rep", *map(kernel, metrics)), **options)  # type: ignore[arg-type]


def row(frame: pd.DataFrame, **where: object) -> pd.Series:
    for name, value in where.items():
        frame = frame[frame[name] == value]
    assert len(frame) == 1, frame
    return frame.iloc[0]


def test_a_basic_report_says_how_busy_everything_was(tmp_path: Path) -> None:
    found = of(tmp_path, {**A100, **timing(), **BASIC}).kernels.iloc[0]
    assert found["status"] == "no-work-metrics"
    assert (found["verdict"], found["limit"]) == ("compute: ALU pipe", "alu")
    assert (found["busiest_unit"], found["busiest_fraction"]) == ("ALU pipe", pytest.approx(0.841))
    assert found["speedup"] == pytest.approx(1 / 0.841)
    assert found["fraction_sm"] == pytest.approx(0.841)
    assert found["issue_fraction"] == pytest.approx(0.536)
    assert found["fraction_dram"] == pytest.approx(0.5)
    assert found["bandwidth_dram"] == pytest.approx(0.5 * 1555.2e9)  # at the maximum memory clock: none was recorded
    assert found["fraction_l2"] == pytest.approx(0.3)
    assert found["bandwidth_l2"] != found["bandwidth_l2"]  # the A100's L2 has two halves: a percentage says nothing of bytes
    assert found["fraction_l1"] == pytest.approx(0.392)
    assert found["reason"]


def test_columns_of_gauges(tmp_path: Path) -> None:
    columns = {gauge.id for gauge in load_units().gauges} & {column.name for column in KERNELS}
    assert columns == set(GAUGES), (
        "Give the metric of a new column a value in BASIC, and the column the one expected in GAUGES."
    )
    found = of(tmp_path, {**A100, **timing(), **BASIC}).kernels.iloc[0]
    assert {name: found[name] for name in GAUGES} == pytest.approx(GAUGES)


def test_percent_of_l2_is_bytes_where_it_has_one_part(tmp_path: Path) -> None:
    a40 = {**A100, "device__attribute_display_name": "NVIDIA A40", "device__attribute_compute_capability_minor": 6}
    metrics = {**a40, **timing(), f"lts__t_sectors{ELAPSED}": 30.0}
    found = of(tmp_path, metrics).kernels.iloc[0]
    assert found["bandwidth_l2"] == pytest.approx(0.3 * 32 * 80 * 1.41e9)


def test_rows_of_a_kernel_are_means_over_time(tmp_path: Path) -> None:
    short = {**A100, **timing(1e-3), f"dram__cycles_active{ELAPSED}": 90.0}
    long = {**A100, **timing(3e-3), f"dram__cycles_active{ELAPSED}": 50.0}
    found = row(of(tmp_path, short, long, by="kernel").kernels)
    assert found["fraction_dram"] == pytest.approx(0.6)


def test_every_row_has_a_verdict_and_a_reason(tmp_path: Path) -> None:
    pascal = {**A100, "device__attribute_compute_capability_major": 6, "device__attribute_compute_capability_minor": 1}
    kernels = of(tmp_path, {**A100, **timing()}, complete(), {**pascal, **timing()}, A100).kernels
    assert kernels["verdict"].tolist() == ["unknown", "latency", "unknown", "unknown"]
    assert kernels["reason"].str.len().min() > 20


def test_counted_and_zero_is_no_work_and_not_missing(tmp_path: Path) -> None:
    found = of(tmp_path, {**A100, **timing(), **NO_WORK, **traffic(10**9, 10**7, 10**9)}).kernels.iloc[0]
    assert (found["status"], found["missing"]) == ("zero-flop", "")
    assert found["verdict"] == "memory: DRAM"


# L2 slices -------------------------------------------------------------------------------------------------------------------

ADA: Metrics = {
    **A100,
    "device__attribute_compute_capability_minor": 9,
    "device__attribute_fbp_count": 12,
    "device__attribute_num_l2s_per_fbp": 4,
}
UNKNOWN_ADA = {**ADA, "device__attribute_display_name": "NVIDIA L20"}
RTX4090 = {**ADA, "device__attribute_display_name": "NVIDIA GeForce RTX 4090"}


@pytest.mark.parametrize(
    ("device", "more", "slices"),
    [
        (UNKNOWN_ADA, {"lts__t_sectors.sum": 3600.0, "lts__t_sectors.avg": 100.0}, 36),
        (
            UNKNOWN_ADA,
            {"lts__lts2xbar_cycles_active.sum.peak_sustained": 72.0, "lts__lts2xbar_cycles_active.avg.peak_sustained": 2.0},
            36,
        ),
        (RTX4090, {}, 36),
        (RTX4090, {"lts__cycles_elapsed.sum": 960.0, "lts__cycles_elapsed.avg": 30.0}, 32),
        (UNKNOWN_ADA, {}, 48),
    ],
    ids=["counter", "peak", "data", "counter-before-data", "attributes"],
)
def test_l2_roof_has_the_slices_that_there_are(tmp_path: Path, device: Metrics, more: Metrics, slices: int) -> None:
    """Attributes of the RTX 4090 say 48 slices, of the RTX 5090 96 for 48, of the B200 192 for 184."""
    roof = row(of(tmp_path, {**complete(device), **more}).roofs, roof="l2")
    assert roof["value"] == pytest.approx(64 * slices * 1.41e9)
    assert ("attributes" in roof["notes"]) == (slices == 48)


# Clocks ----------------------------------------------------------------------------------------------------------------------


def test_short_launches_have_the_clock_of_longer_ones(tmp_path: Path) -> None:
    """612 MHz beside 1.29 GHz in one report of a V100: a launch of 10 us is mostly launching."""
    short = {**complete(V100, seconds=1e-5), "sm__cycles_elapsed.avg.per_second": 0.612e9}
    long = complete(V100, seconds=1e-3, clock=1.29e9)
    kernels = of(tmp_path, short, long).kernels
    assert kernels["clock_profiled"].tolist() == pytest.approx([1.29e9, 1.29e9])
    alone = of(tmp_path, short)
    assert alone.kernels["clock_profiled"].isna().all()
    assert row(alone.roofs, roof="fp64.fma")["value"] == pytest.approx(64 * 80 * 1.53e9)
    assert "clock unknown" in row(alone.roofs, roof="fp64.fma")["notes"]
    assert not alone.kernels["notes"].str.contains("maximum clock").any()


def test_counts_per_cycle_keep_the_cycles_that_elapsed(tmp_path: Path) -> None:
    metrics = {
        **complete(seconds=1e-5),
        "sm__cycles_elapsed.avg.per_second": 0.5e9,
        "smsp__cycles_elapsed.avg.per_second": 0.5e9,
    }
    for name in flops("d"):
        metrics[name.replace(".sum", ".sum.per_cycle_elapsed")] = float(metrics.pop(name)) / (0.5e9 * 1e-5)
    points = of(tmp_path, metrics, complete()).points
    assert points["work"].tolist() == pytest.approx([1e9] * 6)


# Shared memory ---------------------------------------------------------------------------------------------------------------

WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
COPIED = 34_359_738_368  # bytes: the same copy by instructions of 4 and of 16 bytes per thread


def wavefronts(ld: float, st: float, atom: float, total: float, percent: float) -> Metrics:
    """What a full report has of shared memory."""
    counts = {f"{WAVEFRONTS}_op_{op}.sum": value for op, value in (("ld", ld), ("st", st), ("atom", atom))}
    return {**counts, f"{WAVEFRONTS}.sum": total, f"{WAVEFRONTS}.sum.pct_of_peak_sustained_elapsed": percent}


def copies(access: float, bypass: float, patched: float) -> Metrics:
    """Its counters of asynchronous copies, the last one the misleading one."""
    return {
        "sm__sass_l1tex_data_bytes_write_pipe_lsu_mem_shared_op_ldgsts_cache_access.sum": access,
        "sm__sass_inst_executed_op_ldgsts_cache_bypass.sum": bypass,
        "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum": patched,
    }


# Three recorded kernels of an A100, and the copies' bytes.
BY_4 = (
    wavefronts(556_138_117, 279_590, 8_556_276, 4_058_937_615, 84.8),
    copies(COPIED, 0, 268_435_456),
    opcodes(LDGSTS_E=268_435_456),
)
BY_16 = (
    wavefronts(539_222_824, 0, 8_579_988, 600_377_355, 25.6),
    copies(0, 67_108_864, 805_306_368),
    opcodes(LDGSTS_E_BYPASS_128=67_108_864),
)


@pytest.mark.parametrize(("case", "percent"), [(BY_4, 0.848), (BY_16, 0.256)], ids=["4 bytes", "16 bytes"])
@pytest.mark.parametrize("by", ["counters", "opcodes"])
def test_asynchronous_copies_are_bytes_and_the_pipe_is_another_thing(
    tmp_path: Path, case: tuple[Metrics, Metrics, dict[str, list[tuple[str, float]]]], percent: float, by: str
) -> None:
    stock, counters, executed = case
    patched = {name: value for name, value in counters.items() if "wavefronts" in name}
    metrics = {**complete(), **stock, **(counters if by == "counters" else patched)}
    file = report(tmp_path / "r.ncu-rep", kernel(metrics, instances=executed if by == "opcodes" else {}))
    result = roofline(file)
    accesses = sum(float(value) for name, value in stock.items() if "_op_" in name)
    point = row(result.points, level="shared", precision="fp64")
    assert point["traffic"] == pytest.approx(128 * accesses + COPIED, rel=1e-9)
    assert "lower bound" not in point["notes"]
    assert row(result.kernels)["data_pipe"] == pytest.approx(percent)


def test_a_full_data_pipe_binds_where_the_bytes_are_few(tmp_path: Path) -> None:
    stock, counters, _ = BY_4
    seconds = (128 * 564_973_983 + COPIED) / (0.17 * 128 * 108 * 1.41e9)  # the bytes are 17 % of the roof
    metrics = {**complete(seconds=seconds), **stock, **counters}
    found = row(of(tmp_path, metrics).kernels)
    assert found["fraction_shared"] == pytest.approx(0.17)
    assert found["verdict"] == "memory: Shared memory"
    assert found["limit_fraction"] == pytest.approx(0.848)
    lighter = row(of(tmp_path, {**metrics, f"{WAVEFRONTS}.sum.pct_of_peak_sustained_elapsed": 30.0}).kernels)
    assert lighter["verdict"] == "latency"


def test_copies_that_nobody_counted_leave_a_lower_bound(tmp_path: Path) -> None:
    stock, counters, _ = BY_16
    patched = {name: value for name, value in counters.items() if "wavefronts" in name}
    point = row(of(tmp_path, {**complete(), **stock, **patched}).points, level="shared", precision="fp64")
    assert point["traffic"] == pytest.approx(128 * (539_222_824 + 8_579_988))
    assert "lower bound" in point["notes"]


def test_loads_of_matrices_on_turing(tmp_path: Path) -> None:
    """A T4: 1.146e9 wavefronts of loads, stores and atomics, 1.689e9 by hardware; 57 % shown, 85 % true."""
    t4 = {
        **A100,
        "device__attribute_display_name": "Tesla T4",
        "device__attribute_compute_capability_major": 7,
        "device__attribute_compute_capability_minor": 5,
        "device__attribute_multiprocessor_count": 40,
    }
    seconds = 1.689e9 * 128 / (0.85 * 64 * 40 * 1.41e9)
    stock = wavefronts(1.0e9, 0.146e9, 0.0, 1.689e9, 85.0)
    metrics = {**complete(t4, seconds=seconds), **stock}
    result = of(tmp_path, metrics)
    assert row(result.points, level="shared", precision="fp64")["traffic"] == pytest.approx(1.689e9 * 128)
    assert row(result.kernels)["fraction_shared"] == pytest.approx(0.85)
    # Where the opcodes show no access to shared memory, the hardware's total counts something else.
    file = report(tmp_path / "n.ncu-rep", kernel(metrics, instances=opcodes(LDG_E=10, DFMA=10)))
    assert "shared" not in set(roofline(file).points["level"])


# Pipes, system memory --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("minor", "expected"), [(0, 0.5), (6, 1.0)])
def test_half_and_single_precision_share_a_pipe_from_8_6_on(tmp_path: Path, minor: int, expected: float) -> None:
    device = {**A100, "device__attribute_compute_capability_minor": minor}
    peaks = {"fp16": {0: 512, 6: 256}[minor], "fp32": {0: 128, 6: 256}[minor]}
    seconds, clock = 1e-3, 1.41e9
    half = round(0.5 * peaks["fp16"] * 108 * clock * seconds / 4)
    single = round(0.5 * peaks["fp32"] * 108 * clock * seconds / 2)
    metrics = {
        **device,
        **timing(),
        **flops("d"),
        **flops("h", fma=half),
        **flops("f", fma=single),
        **traffic(10**6, 10**4, 10**6),
    }
    result = of(tmp_path, metrics)
    mixed = row(result.points, precision="mixed", level="dram")
    assert mixed["performance"] / mixed["compute_roof"] == pytest.approx(expected, rel=1e-3)
    found = row(result.kernels)
    assert found["limit_fraction"] == pytest.approx(expected, rel=1e-3)
    assert found["verdict"] == ("latency" if minor == 0 else found["verdict"])
    assert minor == 0 or found["verdict"].startswith("compute: FP")


def test_the_mix_of_instructions_is_the_nearest_limit_in_one_number(tmp_path: Path) -> None:
    """A kernel at 40 % of the FMA peak of additions that are not fused stands at 80 % of what it can reach today."""
    peak = 64 * 108 * 1.41e9
    adds = round(0.4 * peak * 1e-3)
    found = row(of(tmp_path, {**A100, **timing(), **NO_WORK, **flops("d", add=adds), **traffic(10**6, 10**4, 10**6)}).kernels)
    assert found["verdict"] == "compute: FP64 FMA"
    assert found["limit_fraction"] == pytest.approx(0.8, rel=1e-3)
    assert found["headroom"] == pytest.approx(1.25, rel=1e-3)
    assert found["headroom_compute"] == pytest.approx(2.5, rel=1e-3)
    assert "80 % of its FMA-mix ceiling (50 % of peak)" in found["reason"]


def test_system_memory_is_drawn_where_it_matters_or_is_asked_for(tmp_path: Path) -> None:
    sectors = "lts__t_sectors_srcunit_tex_aperture_sysmem.sum"
    noise, real = {**complete(), sectors: 10}, {**complete(), sectors: 250_000_000 // 32}
    assert "system" not in set(of(tmp_path, noise).points["level"])
    assert "system" in set(of(tmp_path, real).points["level"])
    asked = of(tmp_path, noise, select=Selection(levels=("system", "dram")))
    assert row(asked.points, level="system")["traffic"] == 320


# What a second reading of the numbers found ----------------------------------------------------------------------------------


def test_a_recorded_clock_comes_before_cycles_of_another_pass(tmp_path: Path) -> None:
    """Reports of releases from 2024 on have cycles of the SM, and the clock of the GPC: 1505 MHz were shown for 1395."""
    metrics = complete()
    del metrics["sm__cycles_elapsed.avg.per_second"]
    metrics |= {"sm__cycles_elapsed.avg": 1.505e6, "gpc__cycles_elapsed.avg.per_second": 1.395e9}
    assert of(tmp_path, metrics).kernels["clock_profiled"].iloc[0] == pytest.approx(1.395e9)


def test_short_launches_have_the_l2_clock_of_longer_ones(tmp_path: Path) -> None:
    pair = {"lts__t_sectors.sum.per_second": 80 * 1.2e9, "lts__t_sectors.avg.per_cycle_elapsed": 1.0}
    long, short = complete(), complete(seconds=1e-5)
    for metrics in (long, short):
        del metrics["lts__cycles_elapsed.avg.per_second"]
    result = of(tmp_path, {**long, **pair}, {**short, **pair, "lts__t_sectors.avg.per_cycle_elapsed": 2.0})
    l2 = result.points[result.points["level"] == "l2"]
    assert l2["bandwidth_roof"].tolist() == pytest.approx([64 * 80 * 1.2e9] * 2)


def test_a_percentage_is_the_hardwares_also_where_cycles_and_time_of_a_short_launch_differ(tmp_path: Path) -> None:
    dram = {"dram__cycles_elapsed.avg.per_second": 1.2e9, f"dram__cycles_active{ELAPSED}": 40.0}
    short = {**A100, **timing(1e-5), **dram, "dram__cycles_elapsed.avg.per_second": 0.6e9}
    kernels = of(tmp_path, {**A100, **timing(), **dram}, short).kernels
    assert kernels["fraction_dram"].tolist() == pytest.approx([0.4, 0.4])


def test_a_launch_without_numbers_moves_no_roof(tmp_path: Path) -> None:
    nothing = {name: float("nan") if isinstance(value, float) else value for name, value in complete(clock=1.2e9).items()}
    nothing["gpu__time_duration.sum"] = float("nan")
    roofs = of(tmp_path, complete(clock=1.2e9), nothing).roofs
    assert (roofs["value_min"] == roofs["value_max"]).all()
    assert not roofs["notes"].str.contains("not recorded").any()


def test_a_group_is_judged_by_the_launches_that_were_counted(tmp_path: Path) -> None:
    fast = {**complete(seconds=1e9 / (0.8 * 64 * 108 * 1.41e9)), **traffic(10**6, 10**4, 10**6)}
    uncounted = {name: value for name, value in fast.items() if "sass" not in name}
    result = of(tmp_path, fast, uncounted, by="kernel")
    found = row(result.kernels)
    assert (found["verdict"], found["limit_fraction"]) == ("compute: FP64 FMA", pytest.approx(0.8))


def test_work_without_a_roof_is_no_latency(tmp_path: Path) -> None:
    b300 = {**A100, "device__attribute_compute_capability_major": 13, "device__attribute_display_name": "NVIDIA Z1"}
    found = row(of(tmp_path, {**complete(b300), f"dram__cycles_active{ELAPSED}": 10.0}).kernels)
    assert (found["verdict"], found["limit"]) == ("unknown", "dram")
    assert "no roof is known for its FP64 work" in found["reason"]
    assert found["speedup"] != found["speedup"]


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        ({name: value for name, value in complete().items() if name != "gpu__time_duration.sum"}, "run time"),
        ({**complete(), "device__attribute_compute_capability_major": 6}, "not known to this version"),
        ({**A100, **timing(), f"sm__throughput{ELAPSED}": 0.0}, "idle"),
        ({**A100, **timing()}, "neither work nor traffic"),
    ],
    ids=["time", "chip", "idle", "nothing"],
)
def test_why_nothing_is_known(tmp_path: Path, metrics: Metrics, words: str) -> None:
    found = row(of(tmp_path, metrics).kernels)
    assert found["verdict"] == "unknown"
    assert words in found["reason"]


def test_gauges_that_no_hardware_has_are_none(tmp_path: Path) -> None:
    odd = {"sm__warps_active.avg.pct_of_peak_sustained_active": 250.0, "launch__waves_per_multiprocessor": 1e308}
    found = row(of(tmp_path, {**A100, **timing(), **BASIC, **odd}).kernels)
    assert found["occupancy"] != found["occupancy"]
    assert found["waves"] != found["waves"]
