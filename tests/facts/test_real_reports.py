"""Bindings against each other on real reports: where two of them can be evaluated, they must agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import WeightedSum
from ncu_roofline.chips.formulas import summed
from ncu_roofline.formats.report import read_report

pytestmark = pytest.mark.reports

A100 = "a100-ncu2022.4-full-1.ncu-rep"
A40 = "a40-ncu2022.1-full-1.ncu-rep"


def counted(path: Path, launch: int, counters: WeightedSum) -> float | None:
    """The sum over ``.sum`` metrics of a launch, None if one is missing."""
    metrics = read_report(path).kernels[launch].metrics
    names = [f"{name}.sum" for name in counters.counters()]
    if not all(name in metrics for name in names):
        return None
    return summed(counters, metrics.__getitem__, ".sum")


@pytest.mark.parametrize("launch", [0, 1, 2])
def test_l2_seen_from_both_sides(real_reports: dict[str, Path], launch: int) -> None:
    """Requests that arrive at L2 against bytes that L1 reads and writes."""
    spec = load_spec()
    bindings = spec.bindings(spec.level("l2"), (8, 0))
    from_l2 = counted(real_reports[A100], launch, bindings[0].counters)
    from_l1 = next(b for b in bindings if "l1tex__m_l1tex2xbar_write_bytes" in b.counters.counters())
    assert counted(real_reports[A100], launch, from_l1.counters) == pytest.approx(from_l2, rel=0.05)


def test_total_l2_counters_hold_more_on_an_a100(real_reports: dict[str, Path]) -> None:
    total = counted(real_reports[A100], 0, WeightedSum.of({"lts__t_sectors": 32}))
    from_sms = counted(real_reports[A100], 0, WeightedSum.of({"lts__t_sectors_srcunit_tex": 32}))
    between_halves = counted(real_reports[A100], 0, WeightedSum.of({"lts__t_sectors_srcunit_ltcfabric": 32}))
    assert total > 1.3 * from_sms
    assert from_sms + between_halves == pytest.approx(total, rel=0.01)


@pytest.mark.parametrize("name", [A100, A40])
def test_dram_bytes_and_sectors(real_reports: dict[str, Path], name: str) -> None:
    by_bytes = counted(real_reports[name], 0, WeightedSum.of({"dram__bytes_read": 1, "dram__bytes_write": 1}))
    by_sectors = counted(real_reports[name], 0, WeightedSum.of({"dram__sectors_read": 32, "dram__sectors_write": 32}))
    assert by_bytes == pytest.approx(by_sectors, rel=0.01)


def test_shared_wavefronts_by_operation_are_the_instructions_own(real_reports: dict[str, Path]) -> None:
    """The total exceeds the sum over operations, and is not zero in a kernel without shared memory."""
    spec = load_spec()
    first = next(one for one in spec.bindings(spec.level("shared"), (8, 6)) if "cache_bypass" in one.counters.text())
    total = WeightedSum.of({"l1tex__data_pipe_lsu_wavefronts_mem_shared": 128})
    metrics = read_report(real_reports[A40]).kernels[1].metrics
    assert counted(real_reports[A40], 1, first.counters) == 128 * metrics["memory_l1_wavefronts_shared"]
    assert counted(real_reports[A40], 1, total) > counted(real_reports[A40], 1, first.counters)
    assert counted(real_reports[A40], 0, first.counters) == 0
    assert counted(real_reports[A40], 0, total) > 0


def test_l1_of_stores_only(real_reports: dict[str, Path]) -> None:
    """The sum over operations sees a kernel that only stores; 4 sectors of 32 B for each warp."""
    spec = load_spec()
    bindings = spec.bindings(spec.level("l1"), (8, 6))
    values = [value for b in bindings if (value := counted(real_reports[A40], 0, b.counters)) is not None]
    l2 = counted(real_reports[A40], 0, WeightedSum.of({"lts__t_sectors_srcunit_tex": 32}))
    assert values[0] == pytest.approx(l2, rel=0.01)


@pytest.mark.parametrize(
    ("name", "precision", "metric", "per_sm"),
    [
        (A100, "fp64", "sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained", 64),
        (A100, "fp32", "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained", 128),
        (A40, "fp64", "sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained", 4),
        (A40, "fp32", "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained", 256),
    ],
)
def test_recorded_peaks_are_the_architecture_s(
    real_reports: dict[str, Path], name: str, precision: str, metric: str, per_sm: float
) -> None:
    metrics = read_report(real_reports[name]).kernels[0].metrics
    capability = (8, 0) if name == A100 else (8, 6)
    binding = load_spec().bindings(load_spec().precision(precision), capability)[0]
    peak = summed(binding.peak, metrics.__getitem__, ".sum.peak_sustained")
    assert metric.startswith(binding.peak.counters()[0])
    assert peak / metrics["device__attribute_multiprocessor_count"] == per_sm
    assert load_spec().architecture(capability).peak(f"{precision}.fma") == per_sm


@pytest.mark.parametrize("name", [A100, A40])
def test_recorded_bandwidths_are_the_architecture_s(real_reports: dict[str, Path], name: str) -> None:
    metrics = read_report(real_reports[name]).kernels[0].metrics
    architecture = load_spec().architecture((8, 0) if name == A100 else (8, 6))
    per_bit, _ = architecture.bandwidth["dram"]
    assert per_bit * metrics["device__attribute_global_memory_bus_width"] == metrics["dram__bytes.sum.peak_sustained"]
    per_slice, _ = architecture.bandwidth["l2"]
    assert per_slice == 32 * metrics["lts__t_sectors_srcunit_tex.avg.peak_sustained"]
