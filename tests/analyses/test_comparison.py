"""`compare()`: what is matched with what, and what is said of it, on reports whose numbers are known."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ncu_roofline import roofline
from ncu_roofline.analyses import render
from ncu_roofline.analyses.compare import columns
from ncu_roofline.analyses.compare.frames import Comparison, Settings, compare
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.report import KernelData
from ncu_roofline.model import Roofline
from tests.factory import A100, H100, NO_WORK, Metrics, complete, flops, kernel, report, timing, traffic

COMPUTE_BOUND: Metrics = {**complete(), **flops("d", fma=3_000_000_000)}
Make = Callable[..., Roofline]
ARROW = "\N{RIGHTWARDS ARROW}"


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """The Roofline of a report with these launches."""
    count = iter(range(100))
    return lambda *kernels, **options: roofline(report(tmp_path / f"r{next(count)}.ncu-rep", *kernels), **options)


def sized(data: KernelData, grid: int, block: int = 128) -> KernelData:
    return replace(data, grid=(grid, 1, 1), block=(block, 1, 1))


def slower(seconds: float, **metrics: float) -> KernelData:
    return kernel(complete(seconds=seconds, **metrics))


def only(comparison: Comparison) -> Any:
    """The one row of the kernels."""
    assert len(comparison.kernels) == 1
    return comparison.kernels.iloc[0]


def at(comparison: Comparison, precision: str, level: str, row: int = 0) -> Any:
    """A row of the levels."""
    levels = comparison.levels
    found = levels[(levels["row"] == row) & (levels["precision"] == precision) & (levels["level"] == level)]
    assert len(found) == 1
    return found.iloc[0]


def test_columns_are_the_declared_ones(make: Make) -> None:
    result = compare(make(slower(1e-3)), make(slower(2e-3)))
    for name in ("kernels", "levels", "summary", "thresholds", "roofs"):
        declared = getattr(columns, f"COMPARISON_{name.upper()}")
        assert list(getattr(result, name)) == [column.name for column in declared]


def test_known_changes_of_time_bytes_and_flops(make: Make) -> None:
    after = {**complete(seconds=2e-3), **flops("d", fma=250_000_000), **traffic(10**9, 500_000_000 // 32, 500_000_000)}
    result = compare(make(slower(1e-3)), make(kernel(after)))
    row = only(result)
    assert (row["outcome"], row["matched"], row["time_basis"]) == ("slower", "configuration", "raw")
    assert (row["seconds_before"], row["seconds"]) == pytest.approx((1e-3, 2e-3))
    assert row["time_change"] == pytest.approx(1.0)
    assert row["seconds_saved"] == pytest.approx(-1e-3)
    assert (row["work_before"], row["work"]) == (1e9, 0.5e9)
    assert (row["cycles_before"], row["cycles"]) == pytest.approx((1.41e6, 2.82e6))
    assert (row["precision_before"], row["precision"], row["binds"]) == ("fp64", "fp64", "dram")
    dram, bytes_alone, flops_alone = at(result, "fp64", "dram"), at(result, "", "dram"), at(result, "fp64", "")
    assert (dram["intensity_before"], dram["intensity"]) == pytest.approx((4.0, 1.0))
    assert (bytes_alone["traffic_before"], bytes_alone["traffic"]) == (250e6, 500e6)
    assert (bytes_alone["bandwidth_before"], bytes_alone["bandwidth"]) == pytest.approx((250e9, 250e9))
    assert (flops_alone["work_before"], flops_alone["work"]) == (1e9, 0.5e9)
    # A100 with 5120 bits at 1215 MHz, twice a cycle: 1555.2 GB/s.  At 4 FLOP/B 6220.8 GFLOP/s are attainable, at 1 1555.2.
    assert (row["fraction_before"], row["fraction"]) == pytest.approx((1e12 / 6220.8e9, 0.25e12 / 1555.2e9))
    assert (dram["fraction_before"], dram["fraction"]) == pytest.approx((row["fraction_before"], row["fraction"]))


def test_the_application(make: Make) -> None:
    others = [kernel(complete(), "void other()"), kernel(complete(seconds=4e-3), "void gone()")]
    result = compare(make(slower(1e-3), *others), make(slower(3e-3), others[0], kernel(complete(), "void fresh()")))
    row = result.summary.iloc[0]
    # What both have, what only one has, and all: three pairs of times, and only the first is compared.
    assert (row["seconds_before"], row["seconds"]) == pytest.approx((2e-3, 4e-3))
    assert (row["seconds_removed"], row["seconds_added"]) == pytest.approx((4e-3, 1e-3))
    assert (row["total_seconds_before"], row["total_seconds"]) == pytest.approx((6e-3, 5e-3))
    assert (row["speedup"], row["time_change"]) == pytest.approx((0.5, 1.0))
    assert row["seconds_saved"] == pytest.approx(-2e-3)
    assert (row["matched"], row["added"], row["removed"], row["relaunched"], row["outcome"]) == (2, 1, 1, 0, "slower")
    # The largest change of time comes first, whichever way it goes.
    assert result.kernels["kernel"].tolist() == ["gone", "kernel", "fresh", "other"]
    assert result.kernels["outcome"].tolist() == ["removed", "slower", "added", "same"]
    assert result.kernels["seconds_saved"].tolist() == pytest.approx([4e-3, -2e-3, -1e-3, 0])
    assert math.isnan(result.kernels["time_change"][0])
    whole = at(result, "", "dram", row=-1)
    assert (whole["traffic_before"], whole["traffic"]) == (500e6, 500e6)


def test_rates_of_launches_are_those_of_a_roofline_by_kernel(make: Make, tmp_path: Path) -> None:
    launches = [slower(1e-3), kernel({**COMPUTE_BOUND, **timing(2e-3)}), slower(4e-3, **{"dram__bytes.sum": 10**9})]
    path = report(tmp_path / "three.ncu-rep", *launches)
    by_kernel = roofline(path, by="kernel").points
    result = compare(roofline(path), make(slower(1e-3)))
    row = only(result)
    assert (row["launches_before"], row["launches"]) == (3, 1)
    for _, point in by_kernel.iterrows():
        mine = at(result, point["precision"], point["level"])
        assert mine["intensity_before"] == pytest.approx(point["intensity"])
        assert mine["performance_before"] == pytest.approx(point["performance"])
        assert mine["fraction_before"] == pytest.approx(point["fraction"])
        assert row["fraction_before"] == pytest.approx(point["binding_fraction"])
        assert row["binds_before"] == point["binds"]


def test_launches_are_compared_one_by_one_and_totals_told_apart(make: Make) -> None:
    """Three launches against one: median, mean and sum are three numbers."""
    before = make(slower(1e-3), slower(2e-3), kernel({**complete(seconds=6e-3), **flops("d", fma=2_000_000_000)}))
    after = make(slower(2e-3, **{"dram__bytes.sum": 500_000_000}))
    result = compare(before, after)
    row, summary = only(result), result.summary.iloc[0]
    assert (row["launches_before"], row["launches"]) == (3, 1)
    assert (row["seconds_before"], row["seconds"]) == pytest.approx((2e-3, 2e-3))
    assert (row["total_seconds_before"], row["total_seconds"]) == pytest.approx((9e-3, 2e-3))
    assert (row["work_before"], row["work"]) == pytest.approx((2e9, 1e9))
    assert (row["total_work_before"], row["total_work"]) == pytest.approx((6e9, 1e9))
    assert row["performance_before"] == pytest.approx(6e9 / 9e-3)
    dram = at(result, "", "dram")
    assert (dram["traffic_before"], dram["traffic"]) == (250e6, 500e6)
    assert (dram["total_traffic_before"], dram["total_traffic"]) == (750e6, 500e6)
    # The application: one launch of 2 ms stands for the baseline's three, 3 medians of 2 ms; its bytes and FLOPs likewise.
    assert (summary["seconds_before"], summary["seconds"]) == pytest.approx((6e-3, 6e-3))
    assert summary["relaunched"] == 1
    assert summary["seconds_saved"] == pytest.approx(0.0, abs=1e-12)
    assert row["seconds_saved"] == pytest.approx(0.0, abs=1e-12)
    assert (summary["total_seconds_before"], summary["total_seconds"]) == pytest.approx((9e-3, 2e-3))
    assert (summary["work_before"], summary["work"]) == pytest.approx((6e9, 3e9))
    whole = at(result, "fp64", "dram", row=-1), at(result, "", "dram", row=-1)
    assert (whole[1]["traffic_before"], whole[1]["traffic"]) == pytest.approx((750e6, 1500e6))
    assert (whole[0]["intensity_before"], whole[0]["intensity"]) == pytest.approx((8.0, 2.0))
    assert "its launches, 3 before and 1 now, are compared per launch" in row["notes"]
    assert "differs in 1 of 1 kernels" in summary["notes"]


COUNTS = {"fewer": ((1e-3,) * 4, (1e-3,)), "more": ((1e-3,), (1e-3,) * 4), "one slower": ((1e-3,) * 2, (1e-3, 1e-3, 3e-3))}


@pytest.mark.parametrize("case", COUNTS)
def test_another_number_of_launches_is_no_change_of_time(make: Make, case: str) -> None:
    before, after = (make(*map(slower, times)) for times in COUNTS[case])
    row = only(compare(before, after))
    assert (row["outcome"], row["time_change"]) == ("same", 0.0)
    # What the median does not show is told: the mean of 1, 1 and 3 ms is 1.67 ms.
    assert ("the mean of its launches changed by +66.7%" in row["notes"]) == (case == "one slower")


def test_one_odd_launch_does_not_make_the_application_faster(make: Make) -> None:
    """1, 1 and 1000 ms against 1 ms: neither kernel nor application changed, the totals and the means did."""
    before, after = make(*map(slower, (1e-3, 1e-3, 1.0))), make(slower(1e-3))
    result = compare(before, after)
    row, summary = only(result), result.summary.iloc[0]
    assert (row["outcome"], summary["outcome"]) == ("same", "same")
    assert (summary["seconds_before"], summary["seconds"], summary["speedup"]) == pytest.approx((3e-3, 3e-3, 1.0))
    assert (summary["total_seconds_before"], summary["total_seconds"]) == pytest.approx((1.002, 1e-3))
    assert "the mean of its launches changed by -99.7%" in row["notes"]
    assert "the medians of their launches are compared" in summary["notes"]
    text = " ".join(render(result, "text", width=200).decode().split())
    assert "times as fast" not in text
    assert f"The same within 2.0 %: 3 ms {ARROW} 3 ms." in text
    # With as many launches nothing is left out of the sum.
    alike = compare(before, make(*[slower(1e-3)] * 3)).summary.iloc[0]
    assert (alike["seconds_before"], alike["seconds"]) == pytest.approx((1.002, 3e-3))


def test_other_numbers_of_launches_at_another_clock(make: Make) -> None:
    before, after = make(clocked(COMPUTE_BOUND, 1e-3, 1.0e9)), make(*[clocked(COMPUTE_BOUND, 1e-3 / 1.4, 1.4e9)] * 3)
    result = compare(before, after)
    row, summary = only(result), result.summary.iloc[0]
    assert (row["outcome"], row["seconds_normalised"]) == ("same", pytest.approx(1e-3))
    assert row["total_seconds_normalised"] == pytest.approx(3e-3)
    assert row["cycles"] == pytest.approx(row["cycles_before"])
    assert (summary["seconds"], summary["seconds_normalised"]) == pytest.approx((1e-3 / 1.4, 1e-3))
    assert (summary["outcome"], summary["seconds_saved"]) == ("same", pytest.approx(0.0, abs=1e-12))


def test_nothing_in_common(make: Make) -> None:
    result = compare(make(kernel(complete(), "void a()")), make(kernel(complete(seconds=0.3), "void b()")))
    summary = result.summary.iloc[0]
    assert (summary["outcome"], summary["matched"], summary["added"], summary["removed"]) == ("nothing in common", 0, 1, 1)
    assert (summary["seconds_removed"], summary["seconds_added"]) == pytest.approx((1e-3, 0.3))
    for column in ("seconds_before", "seconds", "seconds_normalised", "time_change", "speedup", "seconds_saved", "work"):
        assert math.isnan(summary[column]), column
    assert -1 not in set(result.levels["row"])


def test_kernels_without_times_are_not_in_the_sum(make: Make) -> None:
    timeless = {name: value for name, value in complete().items() if not name.startswith("gpu__time")}
    before = make(slower(1e-3), kernel(complete(seconds=5e-3), "void other()"))
    summary = compare(before, make(slower(1e-3), kernel(timeless, "void other()"))).summary.iloc[0]
    assert (summary["seconds_before"], summary["seconds"]) == pytest.approx((1e-3, 1e-3))
    assert summary["outcome"] == "same"
    assert summary["total_seconds_before"] == pytest.approx(6e-3)
    assert "1 of 2 kernels have no run time in one of the reports" in summary["notes"]


def judged(one: Roofline, *verdicts: str) -> Roofline:
    """The Roofline with these verdicts on its kernels."""
    column = np.empty(len(verdicts), dtype=object)
    column[:] = verdicts
    return replace(one, kernel_columns={**one.kernel_columns, "verdict": column})


def test_the_verdict_on_a_group_is_that_of_most_of_its_time(make: Make) -> None:
    before = judged(make(slower(1e-3), slower(3e-3), slower(1e-3)), "latency", "memory: L2", "latency")
    after = judged(make(slower(1e-3)), "compute: FP64 FMA")
    row = only(result := compare(before, after))
    assert (row["verdict_before"], row["verdict"]) == ("memory: L2", "compute: FP64 FMA")
    assert f"memory: L2 {ARROW} compute: FP64 FMA" in render(result, "text", width=200).decode()
    assert "memory: L2 \N{RIGHTWARDS ARROW} compute: FP64 FMA" in render(result, "md").decode()
    alike = judged(make(*[slower(1e-3)] * 3), *["latency"] * 3)
    assert only(compare(alike, alike))["verdict"] == "latency"
    apart = compare(before, judged(make(kernel(complete(), "void other()")), "latency")).kernels
    assert sorted(zip(apart["verdict_before"], apart["verdict"], strict=True)) == [("", "latency"), ("memory: L2", "")]


def test_in_order_each_launch_meets_its_own(make: Make) -> None:
    before, after = make(slower(1e-3), slower(2e-3)), make(slower(1e-3), slower(3e-3), slower(5e-3))
    result = compare(before, after, settings=Settings(in_order=True))
    assert result.kernels["occurrence"].tolist() == [2, 1, 0]
    assert result.kernels["outcome"].tolist() == ["added", "slower", "same"]
    assert compare(before, after).kernels["launches"].tolist() == [3]


NAMES = {
    "same configuration": ("void k(int *)", 8, "void k(int *)", 8, "configuration"),
    "grid changed": ("void k(int *)", 8, "void k(int *)", 16, "name"),
    "parameter added": ("void k<float>(int *)", 8, "void k<float>(int *, int)", 8, "parameters"),
    "line of the source": ("main_34_gpu", 8, "main_39_gpu", 8, "numbers"),
    "tile size": ("void k<16>(int *)", 8, "void k<32>(int *)", 8, "numbers"),
    "another kernel": ("void k(int *)", 8, "void other(int *)", 8, ""),
    "other template": ("void k<float>(int *)", 8, "void k<double>(int *)", 8, ""),
    "numbers and grid": ("main_34_gpu", 8, "main_39_gpu", 16, ""),
    "became a template": ("gemm(float *)", 8, "void gemm<0>(float *)", 8, "template"),
    "ceased to be one": ("void blas::gemm<float, 4>(const float *, int)", 8, "blas::gemm(float *)", 8, "template"),
    "template and grid": ("gemm(float *)", 8, "void gemm<0>(float *)", 16, "template"),
    "template elsewhere": ("blas::gemm(float *)", 8, "void mine::gemm<0>(float *)", 8, ""),
}


@pytest.mark.parametrize("case", NAMES)
def test_how_kernels_are_matched(make: Make, case: str) -> None:
    name, grid, new_name, new_grid, how = NAMES[case]
    before, after = (sized(kernel(complete(), text), size) for text, size in ((name, grid), (new_name, new_grid)))
    result = compare(make(before), make(after)).kernels
    if not how:
        assert sorted(result["outcome"]) == ["added", "removed"]
        return
    assert result["matched"].tolist() == [how]
    assert ("matched" in result["notes"][0]) == (how != "configuration")
    assert ("was grid 8x1x1 block 128x1x1 and is grid 16x1x1" in result["notes"][0]) == (grid != new_grid)
    assert ("before it was" in result["notes"][0]) == (how in ("parameters", "numbers", "template"))
    assert ("matched by the function's name: its template arguments came or went" in result["notes"][0]) == (how == "template")


def test_instances_of_a_template_are_not_guessed(make: Make) -> None:
    """Of two there is no telling which one the function became, also where one of them is found by its own name."""
    plain, zero, one = (
        kernel(complete(), name) for name in ("gemm(float *)", "void gemm<0>(float *)", "void gemm<1>(float *)")
    )
    for before, after in (((plain,), (zero, one)), ((zero, one), (plain,)), ((plain, zero), (zero, one))):
        assert "template" not in set(compare(make(*before), make(*after)).kernels["matched"])


def test_configurations_are_matched_before_names(make: Make) -> None:
    before = make(sized(slower(1e-3), 8), sized(slower(2e-3), 16))
    after = make(sized(slower(2e-3), 16), sized(slower(5e-3), 32))
    result = compare(before, after).kernels
    assert dict(zip(result["grid"], result["matched"], strict=True)) == {"16x1x1": "configuration", "32x1x1": "name"}
    assert dict(zip(result["grid"], result["seconds_before"], strict=True)) == pytest.approx({"16x1x1": 2e-3, "32x1x1": 1e-3})


def test_overloads_are_not_guessed(make: Make) -> None:
    before = make(kernel(complete(), "void k(int *)"), kernel(complete(), "void k(float *)"))
    result = compare(before, make(kernel(complete(), "void k(double *)"))).kernels
    assert sorted(result["outcome"]) == ["added", "removed", "removed"]


# Seconds of the launches before and after, and what they say; the spread is 1.4826 * MAD / median of each.
NOISE = {
    "below the tolerance": ((1e-3,), (1.019e-3,), "same"),
    "above the tolerance": ((1e-3,), (1.021e-3,), "slower"),
    "faster": ((1e-3,), (0.97e-3,), "faster"),
    "as steady as can be": ((1e-3,) * 5, (1.05e-3,) * 5, "slower"),
    "noisy": ((0.9e-3, 1e-3, 1e-3, 1.05e-3, 1.1e-3), (1.05e-3,) * 5, "same"),
    "noisy, yet far": ((0.9e-3, 1e-3, 1e-3, 1.05e-3, 1.1e-3), (1.5e-3,) * 5, "slower"),
}


@pytest.mark.parametrize("case", NOISE)
def test_noise(make: Make, case: str) -> None:
    before, after, verdict = NOISE[case]
    row = only(compare(make(*map(slower, before)), make(*map(slower, after))))
    assert row["outcome"] == verdict


LONG = kernel(complete(seconds=9e-3), "void long()")
# Seconds of a kernel beside one of 9 ms, before and after: what is said of it, and with `small`.
SMALL = {
    "short launches": ((11e-6,), (13e-6,), "not judged", "slower", "launches under 20 \N{MICRO SIGN}s"),
    "many short launches": ((11e-6,) * 999, (13e-6,) * 999, "not judged", "slower", "launches under 20 \N{MICRO SIGN}s"),
    "short and faster": ((13e-6,), (11e-6,), "not judged", "faster", "launches under 20 \N{MICRO SIGN}s"),
    "little time": ((50e-6,), (60e-6,), "not judged", "slower", "under 1 % of the time"),
    "short and the same": ((11e-6,), (11e-6,), "same", "same", "launches under 20 \N{MICRO SIGN}s"),
    "no longer short": ((11e-6,), (500e-6,), "slower", "slower", ""),
    "short by now": ((500e-6,), (11e-6,), "faster", "faster", ""),
    "long enough": ((200e-6,), (240e-6,), "slower", "slower", ""),
}


@pytest.mark.parametrize("case", SMALL)
def test_what_is_small_is_not_judged_unless_asked(make: Make, case: str) -> None:
    before, after, outcome, asked, why = SMALL[case]
    states = [make(LONG, *(kernel(complete(seconds=one), "void brief()") for one in times)) for times in (before, after)]
    for small in (False, True):
        result = compare(*states, settings=Settings(small=small))
        row = result.kernels[result.kernels["kernel"] == "brief"].iloc[0]
        assert (row["outcome"], row["small"]) == ((asked, "") if small else (outcome, why))
        assert (f"not judged without --small: {why}" in row["notes"]) == (row["outcome"] == "not judged")
        # The application has all of it.
        summary = result.summary.iloc[0]
        assert (summary["seconds_before"], summary["seconds"]) == pytest.approx((9e-3 + sum(before), 9e-3 + sum(after)))


def test_an_application_of_20_us_is_too_short_to_judge(make: Make) -> None:
    one, two = make(slower(11e-6)), make(slower(13e-6))
    result = compare(one, two)
    assert (only(result)["outcome"], result.summary["outcome"][0]) == ("not judged", "not judged")
    assert f"Too short to judge: 11 \N{MICRO SIGN}s {ARROW} 13 \N{MICRO SIGN}s." in render(result, "text").decode()
    assert f"### Too short to judge: 11 \N{MICRO SIGN}s {ARROW} 13 \N{MICRO SIGN}s\n" in render(result, "md").decode()
    assert compare(one, two, settings=Settings(small=True)).summary["outcome"][0] == "slower"


def test_a_median_that_the_sum_contradicts_is_not_judged(make: Make) -> None:
    """Two launches a fifth slower and one twice as fast: 12 ms became 7.4 ms, which nobody may call slower."""
    before, after = make(*map(slower, (1e-3, 1e-3, 10e-3))), make(*map(slower, (1.2e-3, 1.2e-3, 5e-3)))
    row = only(result := compare(before, after))
    assert (row["outcome"], row["time_change"], row["seconds_saved"]) == (
        "not judged",
        pytest.approx(0.2),
        pytest.approx(4.6e-3),
    )
    assert "not judged: the mean of its launches changed by -38.3%, their median by +20.0%" in row["notes"]
    assert f"| k | 12 ms {ARROW} 7.4 ms | not judged |" in render(result, "md").decode().replace("| kernel |", "| k |")
    assert result.summary["outcome"][0] == "faster"


def test_times_are_shown_on_the_basis_of_their_change(make: Make) -> None:
    """1.3 times the cycles at 1.4 times the clock: less time as measured, slower at one clock, which the table shows."""
    result = compare(make(clocked(COMPUTE_BOUND, 1e-3, 1.0e9)), make(*[clocked(COMPUTE_BOUND, 1.3e-3 / 1.4, 1.4e9)] * 2))
    (line,) = (
        line for line in render(result, "text", width=200).decode().splitlines() if line.startswith("kernel  ") and "*" in line
    )
    found = re.findall(rf"1 ms {ARROW} [\d.]+ ms\*|\+30.0 %\*", line)
    assert found == [f"1 ms {ARROW} 2.6 ms*", f"1 ms {ARROW} 1.3 ms*", "+30.0 %*"]


def test_no_change_of_time_is_shown_between_gpus(make: Make) -> None:
    h100 = {**H100, "device__attribute_global_memory_bus_width": 10240}
    result = compare(make(kernel(complete(A100))), make(kernel(complete(h100, seconds=2e-3))), settings=Settings(tolerance=0.9))
    assert only(result)["outcome"] == "same"
    assert "+100.0 %" not in render(result, "text", width=200).decode()


def test_the_spread_is_robust_and_adds_in_squares(make: Make) -> None:
    noisy = make(*map(slower, (1e-3, 1.1e-3, 0.9e-3, 1e-3, 1.2e-3)))
    row = only(compare(noisy, noisy))
    assert row["spread"] == pytest.approx(1.4826 * 0.1)  # deviations 0, 0, 0.1, 0.1, 0.2 of a median of 1
    assert row["noise"] == pytest.approx(math.sqrt(2) * 1.4826 * 0.1)
    assert only(compare(noisy, noisy, settings=Settings(tolerance=0.5)))["noise"] == 0.5
    assert math.isnan(only(compare(make(slower(1e-3)), make(slower(1e-3))))["spread"])


def clocked(metrics: Metrics, seconds: float, clock: float) -> KernelData:
    return kernel({**metrics, **timing(seconds, clock)})


CLOCKS = {
    # At 1.4 GHz the same cycles take 1.0/1.4 of the time: no change for what runs at the SM clock.
    "compute-bound": (COMPUTE_BOUND, 1.0, "normalised", "same"),
    "DRAM-bound": (complete(), 1 / 1.4, "normalised", "faster"),
}


@pytest.mark.parametrize("case", CLOCKS)
def test_times_at_one_clock(make: Make, case: str) -> None:
    metrics, scale, basis, verdict = CLOCKS[case]
    before, after = make(clocked(metrics, 1e-3, 1.0e9)), make(clocked(metrics, 1e-3 / 1.4, 1.4e9))
    row = only(compare(before, after))
    assert row["seconds"] == pytest.approx(1e-3 / 1.4)
    assert row["seconds_normalised"] == pytest.approx(1e-3 * scale)
    assert (row["time_basis"], row["outcome"]) == (basis, verdict)
    assert row["cycles"] == pytest.approx(row["cycles_before"])
    assert "clocks differ (1 and 1.4 GHz)" in row["notes"]
    raw = only(compare(before, after, settings=Settings(times="raw")))
    assert (raw["time_basis"], raw["outcome"]) == ("raw", "faster")
    summary = compare(before, after).summary.iloc[0]
    assert summary["seconds_normalised"] == pytest.approx(1e-3 * scale)
    assert "1 of 1 kernels" in summary["notes"]


def test_clocks_that_hardly_differ_are_left_alone(make: Make) -> None:
    before, after = make(clocked(COMPUTE_BOUND, 1e-3, 1.0e9)), make(clocked(COMPUTE_BOUND, 1e-3, 1.009e9))
    assert only(compare(before, after))["time_basis"] == "raw"
    assert only(compare(before, after, settings=Settings(times="normalised")))["time_basis"] == "normalised"


def test_without_work_the_nearest_limit_counts(make: Make) -> None:
    idle = {**A100, **NO_WORK, **traffic(10**9, 10**7, 10**9)}
    row = only(result := compare(make(clocked(idle, 1e-3, 1.0e9)), make(clocked(idle, 1e-3, 1.4e9))))
    assert (row["time_basis"], row["work"], row["binds"], row["limit"]) == ("normalised", 0.0, "", "dram")
    assert row["seconds_normalised"] == pytest.approx(1e-3)
    assert "nearest its DRAM roof, so its time is not scaled" in row["notes"]
    assert at(result, "", "dram")["traffic"] == 1e9  # copies have no points, but bytes


@pytest.mark.parametrize("known", [{}, {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 50.0}])
def test_without_work_and_traffic_nobody_knows_what_limits(make: Make, known: Metrics) -> None:
    """Of the memory system as a whole nobody knows which clock counts."""
    idle = {**A100, **NO_WORK, **known}
    row = only(compare(make(clocked(idle, 1e-3, 1.0e9)), make(clocked(idle, 1e-3, 1.4e9))))
    assert math.isnan(row["seconds_normalised"])
    assert row["time_basis"] == "raw"
    assert "what limits it is unknown" in row["notes"]


ISSUE = {"sm__inst_executed.avg.pct_of_peak_sustained_elapsed": 50.0}
SINGLE = {**A100, **NO_WORK, **flops("f", fma=3_000_000_000), **traffic(10**6, 10**4, 10**6)}
NEAREST = {
    # Latency keeps both: neither roof binds, and which is nearest is said by name.
    "a roof": (SINGLE, "fp32.fma", "nearest its FP32 FMA roof, so its time is scaled", 1.0),
    "memory": (complete(), "dram", "nearest its DRAM roof, so its time is not scaled", 1 / 1.4),
    # Of its work DRAM would bind, at 16 %; issue slots are half full.
    "a unit": ({**complete(), **ISSUE}, "issue", "nearest the limit of its issue slots, so its time is scaled", 1.0),
}


@pytest.mark.parametrize("case", NEAREST)
def test_times_are_normalised_by_the_nearest_limit(make: Make, case: str) -> None:
    metrics, limit, note, scale = NEAREST[case]
    row = only(compare(make(clocked(metrics, 1e-3, 1.0e9)), make(clocked(metrics, 1e-3 / 1.4, 1.4e9))))
    assert (row["verdict"], row["limit_before"], row["limit"]) == ("latency", limit, limit)
    assert note in row["notes"]
    assert "binds" not in row["notes"]
    assert row["seconds_normalised"] == pytest.approx(1e-3 * scale)


def test_zero_is_a_number_and_missing_is_not(make: Make) -> None:
    lacking = {name: value for name, value in complete().items() if "_op_h" not in name}
    result = compare(make(slower(1e-3)), make(kernel(lacking)))
    fp16, fp32 = at(result, "fp16", ""), at(result, "fp32", "")
    assert fp16["work_before"] == 0
    assert math.isnan(fp16["work"])
    assert (fp32["work_before"], fp32["work"]) == (0, 0)


def test_a_sum_lacking_one_launch_is_missing(make: Make) -> None:
    lacking = {name: value for name, value in complete().items() if name != "dram__bytes.sum"}
    result = compare(make(slower(1e-3), kernel(lacking)), make(slower(1e-3)))
    assert math.isnan(at(result, "", "dram")["traffic_before"])
    assert (at(result, "", "l1")["traffic_before"], at(result, "", "l1")["total_traffic_before"]) == (1e9, 2e9)


def test_different_gpus_are_compared_by_their_share_of_the_roof(make: Make) -> None:
    result = compare(make(slower(1e-3)), make(kernel(complete(H100, seconds=1e-4, clock=1.98e9))))
    row, summary = only(result), result.summary.iloc[0]
    assert (row["matched"], row["outcome"]) == ("device", "closer")
    assert math.isnan(row["seconds_normalised"])
    assert math.isnan(summary["speedup"])
    for notes in (row["notes"], summary["notes"]):
        assert "times are not comparable" in notes
    spread = Settings(roof_spreads={"dram": 20.0})
    assert only(compare(make(slower(1e-3)), make(kernel(complete(H100, seconds=1e-4))), settings=spread))["outcome"] == "same"


def test_one_kernel_on_two_gpus(make: Make) -> None:
    both = [kernel(complete(A100)), kernel(complete(H100))]
    result = compare(make(*both), make(*both[::-1])).kernels
    assert result["matched"].tolist() == ["configuration"] * 2
    assert result["outcome"].tolist() == ["same"] * 2


def test_three_reports(make: Make) -> None:
    steps = [make(slower(seconds)) for seconds in (1e-3, 2e-3, 3e-3)]
    result = compare(*steps, labels=["a", "b", "c"])
    found = result.summary[["step", "against", "baseline", "report"]].values.tolist()
    assert found == [[1, "baseline", "a", "b"], [2, "baseline", "a", "c"], [2, "previous", "b", "c"]]
    assert result.kernels["time_change"].tolist() == pytest.approx([1.0, 2.0, 0.5])
    for against, count in (("baseline", 2), ("previous", 2), ("both", 3)):
        assert len(compare(*steps, settings=Settings(against=against)).summary) == count


def test_top_keeps_the_longest_and_the_totals(make: Make) -> None:
    names = [f"void k{'abc'[n]}()" for n in range(3)]
    before = make(*(kernel(complete(seconds=seconds), name) for seconds, name in zip((1e-3, 5e-3, 2e-3), names, strict=True)))
    after = make(*(kernel(complete(seconds=seconds), name) for seconds, name in zip((4e-3, 5e-3, 2e-3), names, strict=True)))
    result = compare(before, after, settings=Settings(top=2))
    assert result.kernels["kernel"].tolist() == ["ka", "kb"]
    assert result.summary["seconds"][0] == pytest.approx(11e-3)
    assert set(result.levels["row"]) == {0, 1, -1}


def test_levels_and_precisions_can_be_chosen(make: Make) -> None:
    result = compare(make(slower(1e-3)), make(slower(1e-3)), settings=Settings(levels=("l2",), precisions=("fp64",)))
    assert set(result.levels["level"]) == {"l2", ""}
    assert set(result.levels["precision"]) == {"fp64", ""}
    assert only(result)["binds"] == "dram"  # what binds is sought among all levels


def test_applications(tmp_path: Path) -> None:
    paths = [report(tmp_path / f"{name}.ncu-rep", slower(1e-3), kernel(complete(), "void b()")) for name in ("x", "y")]
    row = only(compare(*(roofline(path, by="application") for path in paths)))
    assert (row["name"], row["launches"], row["outcome"]) == ("application", 2, "same")
    more = report(tmp_path / "z.ncu-rep", *[slower(1e-3)] * 3, kernel(complete(), "void b()"))
    row = only(compare(*(roofline(path, by="application") for path in (paths[0], more))))
    # One run is compared with one run, whatever it launches.
    assert (row["seconds_before"], row["seconds"]) == pytest.approx((2e-3, 4e-3))
    assert (row["outcome"], row["notes"]) == ("slower", "")


def test_a_short_name_means_one_kernel_in_all_reports(make: Make) -> None:
    result = compare(make(kernel(complete(), "void a::k(int)")), make(kernel(complete(), "void b::k(int)"))).kernels
    assert len(set(result["kernel"])) == 2


@pytest.mark.parametrize("wrong", [{"times": "x"}, {"against": "x"}, {"tolerance": 1.0}, {"tolerance": math.nan}])
def test_wrong_settings(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Settings(**wrong)


def test_wrong_calls(make: Make) -> None:
    one = make(slower(1e-3))
    with pytest.raises(TypeError, match="not an object of type NoneType"):
        compare(None)  # type: ignore[arg-type]
    with pytest.raises(RooflineError, match="/nowhere: there is no such file"):
        compare("/nowhere")
    with pytest.raises(TypeError, match="nothing to compare"):
        compare(one)
    with pytest.raises(ValueError, match="zip"):
        compare(one, one, labels=["a"])


PAIRS = [("a40-ncu2022.1-full-1", "a40-ncu2022.4-full-1"), ("rtx4060-ncu2024.2-custom-1", "rtx4060-ncu2024.2-custom-4")]


@pytest.mark.parametrize("pair", PAIRS)
def test_real_reports(real_reports: dict[str, Path], pair: tuple[str, str]) -> None:
    before, after = (roofline(real_reports[f"{name}.ncu-rep"]) for name in pair)
    result = compare(before, after)
    summary = result.summary.iloc[0]
    assert summary["total_seconds_before"] == pytest.approx(before.kernels["seconds"].sum())
    assert summary["total_seconds"] == pytest.approx(after.kernels["seconds"].sum())
    assert result.kernels["launches_before"].sum() == len(before.kernels)
    assert result.kernels["launches"].sum() == len(after.kernels)
    matched = result.kernels[result.kernels["matched"] != ""]
    if matched.empty:
        assert (summary["outcome"], summary["matched"]) == ("nothing in common", 0)
    else:
        assert matched["seconds_saved"].sum() == pytest.approx(summary["seconds_saved"])


def test_a_report_is_the_same_as_itself(real_reports: dict[str, Path]) -> None:
    one = roofline(real_reports["a100-ncu2022.4-full-1.ncu-rep"])
    result = compare(one, one)
    assert set(result.kernels["outcome"]) == {"same"}
    assert result.summary["speedup"][0] == pytest.approx(1.0)


def test_kernels_numbered_by_source_line(real_reports: dict[str, Path]) -> None:
    """The OpenACC kernel of line 34 is at line 39 in the fourth report, and its second launch has another grid."""
    found = [roofline(real_reports[f"rtx4060-ncu2024.2-custom-{number}.ncu-rep"]) for number in (1, 4)]
    assert compare(*found).kernels["matched"].tolist() == ["numbers", "numbers"]
