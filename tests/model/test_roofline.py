"""Points, roofs and kernels from small made-up reports: every rule of the model, one test each."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from ncu_roofline import roofline
from ncu_roofline.model import columns
from ncu_roofline.model.plausible import LEFT_OUT
from ncu_roofline.model.selection import Selection
from tests.factory import A100, H100, NO_WORK, V100, complete, flops, kernel, report, timing, traffic


def one(frame: pd.DataFrame, **where: object) -> pd.Series:
    """The only row with these values."""
    for name, value in where.items():
        frame = frame[frame[name] == value]
    assert len(frame) == 1, frame
    return frame.iloc[0]


def test_columns_are_the_declared_ones(tmp_path: Path) -> None:
    result = roofline(report(tmp_path / "r.ncu-rep", kernel(complete())))
    for frame, declared in ((result.points, columns.POINTS), (result.roofs, columns.ROOFS), (result.kernels, columns.KERNELS)):
        assert list(frame.columns) == [column.name for column in declared]
        kinds = {"str": "O", "int": "i", "float": "f"}
        for column in declared:
            assert frame[column.name].to_numpy().dtype.kind == kinds[column.dtype], column.name


def test_numbers_of_a_complete_kernel(tmp_path: Path) -> None:
    points = roofline(report(tmp_path / "r.ncu-rep", kernel(complete()))).points
    assert list(zip(points["precision"], points["level"], strict=True)) == [("fp64", "l1"), ("fp64", "l2"), ("fp64", "dram")]
    dram = one(points, level="dram")
    assert dram["work"] == 1e9
    assert dram["traffic"] == 2.5e8
    assert dram["seconds"] == pytest.approx(1e-3)
    assert dram["intensity"] == pytest.approx(4.0)
    assert dram["performance"] == pytest.approx(1e12)
    assert dram["bandwidth"] == pytest.approx(2.5e11)
    # 2 x 1.215 GHz x 5120 bit / 8 = 1555.2 GB/s, below the ridge point: 6.2208 TFLOP/s
    assert dram["attainable"] == pytest.approx(4.0 * 1555.2e9)
    assert dram["fraction"] == pytest.approx(1e12 / (4.0 * 1555.2e9))
    assert dram["locality"] != dram["locality"]
    assert one(points, level="l1")["locality"] == pytest.approx(2.0)
    assert one(points, level="l1")["locality_to"] == "l2"


def test_peak_of_the_data_sheet_stands_in_for_a_missing_one(tmp_path: Path) -> None:
    roofs = roofline(report(tmp_path / "r.ncu-rep", kernel(complete()))).roofs
    fma = one(roofs, roof="fp64.fma")
    assert fma["value"] == pytest.approx(64 * 108 * 1.41e9)  # 9.75 TFLOP/s, the vendor's figure
    assert fma["source"] == "architecture"
    assert one(roofs, roof="fp64.nofma")["value"] == pytest.approx(fma["value"] / 2)


def test_recorded_peak_comes_before_the_data_sheet(tmp_path: Path) -> None:
    recorded = {"sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained": 3456.0}
    roofs = roofline(report(tmp_path / "r.ncu-rep", kernel(complete(**recorded)))).roofs
    fma = one(roofs, roof="fp64.fma")
    assert fma["value"] == pytest.approx(2 * 3456 * 1.41e9)
    assert fma["source"] == "binding"


@pytest.mark.parametrize("form", [".sum.per_second", ".sum.per_cycle_elapsed"])
def test_rates_give_the_same_work(tmp_path: Path, form: str) -> None:
    metrics = complete(seconds=2e-3)
    counts = {name: metrics.pop(name) for name in list(metrics) if "_dfma_" in name or "_dadd_" in name or "_dmul_" in name}
    scale = {".sum.per_second": 1 / 2e-3, ".sum.per_cycle_elapsed": 1 / (2e-3 * 1.41e9)}[form]
    metrics["smsp__cycles_elapsed.avg.per_second"] = 1.41e9
    metrics |= {name.replace(".sum", form): float(value) * scale for name, value in counts.items()}
    points = roofline(report(tmp_path / "r.ncu-rep", kernel(metrics))).points
    assert one(points, level="dram")["work"] == pytest.approx(1e9, rel=1e-12)


def test_packed_half_counts_two_lanes_whatever_the_release(tmp_path: Path) -> None:
    metrics = {**A100, **timing(), **NO_WORK, **flops("h", add=10, mul=10, fma=10), **traffic(100, 100, 100)}
    for version in ("2022.3.0.0", "2024.2.1.0", "2025.1.0.0"):
        points = roofline(report(tmp_path / "r.ncu-rep", kernel(metrics), ncu_version=version)).points
        assert set(points["work"]) == {10 * 2 + 10 * 2 + 10 * 4}


def test_missing_is_never_zero(tmp_path: Path) -> None:
    metrics = complete()
    del metrics["smsp__sass_thread_inst_executed_op_dadd_pred_on.sum"]
    result = roofline(report(tmp_path / "r.ncu-rep", kernel(metrics)))
    assert result.points.empty  # DFMA alone is not FP64 work
    row = result.kernels.iloc[0]
    assert "fp64" in row["missing"].split()
    assert row["status"] == "no-work-metrics"


def test_zero_flop_kernels_are_listed_with_their_time(tmp_path: Path) -> None:
    idle = {**A100, **timing(seconds=3e-3), **NO_WORK, **traffic(100, 100, 100)}
    result = roofline(report(tmp_path / "r.ncu-rep", kernel(idle, "void copy(int *)"), kernel(complete())))
    row = one(result.kernels, launch=0)
    assert row["status"] == "zero-flop"
    assert row["time_share"] == pytest.approx(0.75)
    assert row["work"] == 0
    assert set(result.points["launch"]) == {1}


def test_zero_of_some_precisions_is_not_zero_flop(tmp_path: Path) -> None:
    partly = {**A100, **timing(), **flops("d"), **flops("f"), **traffic(100, 100, 100)}
    row = roofline(report(tmp_path / "r.ncu-rep", kernel(partly))).kernels.iloc[0]
    assert row["status"] == "no-work-metrics"
    assert "fp16 not collected" in row["notes"]


def test_sectors_stand_in_for_l1_bytes(tmp_path: Path) -> None:
    metrics = complete()
    del metrics["l1tex__t_bytes.sum"]
    for space in ("global", "local"):
        for op in ("ld", "st") + (("atom", "red") if space == "global" else ()):
            metrics[f"l1tex__t_sectors_pipe_lsu_mem_{space}_op_{op}.sum"] = 1000
    row = one(roofline(report(tmp_path / "r.ncu-rep", kernel(metrics))).points, level="l1")
    assert row["traffic"] == 6 * 1000 * 32
    assert row["source"] == "derived"


def test_fabric_traffic_is_not_l2_traffic(tmp_path: Path) -> None:
    metrics = complete(**{"lts__t_bytes.sum": 9e9})
    row = one(roofline(report(tmp_path / "r.ncu-rep", kernel(metrics))).points, level="l2")
    assert row["traffic"] == 500_000_000 // 32 * 32
    assert "lts__t_sectors_srcunit_tex.sum" in row["metrics"]


def test_clock_warning_below_nine_tenths(tmp_path: Path) -> None:
    slow, fast = kernel(complete(clock=1.2e9)), kernel(complete(clock=1.40e9))
    result = roofline(report(tmp_path / "r.ncu-rep", slow, fast))
    notes = result.points.groupby("launch")["notes"].first()
    assert "maximum clock" in notes[0]
    assert notes[1] == ""
    assert result.kernels["clock_ratio"].tolist() == pytest.approx([1.2 / 1.41, 1.40 / 1.41])


def test_roofs_at_the_maximum_clock(tmp_path: Path) -> None:
    path = report(tmp_path / "r.ncu-rep", kernel(complete(clock=0.705e9)))
    profiled, highest = roofline(path).roofs, roofline(path, clock="max").roofs
    for roof, factor in (("fp64.fma", 2), ("l1", 2), ("l2", 2), ("dram", 1)):
        assert one(highest, roof=roof)["value"] == pytest.approx(factor * one(profiled, roof=roof)["value"])
    assert one(highest, roof="fp64.fma")["clock_basis"] == "max"


def test_v100_tensor_instructions_are_512_operations(tmp_path: Path) -> None:
    metrics = {**V100, **timing(), **NO_WORK, **traffic(100, 100, 100), "sm__inst_executed_pipe_tensor.sum": 1000}
    row = one(roofline(report(tmp_path / "r.ncu-rep", kernel(metrics))).points, precision="tensor.fp16", level="dram")
    assert row["work"] == 512_000
    assert row["source"] == "derived"


def test_other_chips_tensor_instructions_say_nothing(tmp_path: Path) -> None:
    metrics = {
        **A100,
        **timing(),
        **NO_WORK,
        **traffic(100, 100, 100),
        "sm__inst_executed_pipe_tensor.sum": 1000,
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 40.0,
    }
    result = roofline(report(tmp_path / "r.ncu-rep", kernel(metrics)))
    assert result.points.empty
    assert "tensor cores were busy" in result.kernels["notes"][0]


def test_hopper_families_have_their_own_roofs(tmp_path: Path) -> None:
    families = {
        "sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum": 4 * 10**9,
        "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp16_sparsity_off.sum": 0,
        "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32_sparsity_off.sum": 10**9,
    }
    result = roofline(report(tmp_path / "r.ncu-rep", kernel(complete(H100, clock=1.98e9, **families))))
    assert one(result.points, precision="tensor.fp16.wgmma", level="dram")["work"] == 4e9
    assert one(result.points, precision="tensor.fp16.mma", level="dram")["work"] == 1e9
    wgmma, mma = one(result.roofs, roof="tensor.fp16.wgmma")["value"], one(result.roofs, roof="tensor.fp16.mma")["value"]
    assert wgmma == pytest.approx(132 * 4096 * 1.98e9)
    assert 0.6 < mma / wgmma < 0.7  # 2730.7 of 4096 operations per SM and cycle
    # The work of both families and of the FP64 pipe is in the sum once.
    assert result.kernels["work"][0] == pytest.approx(1e9 + 5e9)


def test_mixed_kernel_stands_under_its_busiest_pipe(tmp_path: Path) -> None:
    metrics = complete(**{str(k): float(v) for k, v in flops("f", fma=500_000_000).items()})
    result = roofline(report(tmp_path / "r.ncu-rep", kernel(metrics)))
    row = one(result.points, precision="mixed", level="l1")
    assert row["work"] == 2e9
    fp64, fp32 = 64 * 108 * 1.41e9, 128 * 108 * 1.41e9
    # FP64 is busy for 1e9 / fp64 seconds, FP32 for half of that: the sum can't be faster than FP64 allows.
    l1 = row["intensity"] * 128 * 108 * 1.41e9
    assert row["attainable"] == pytest.approx(min(2e9 / max(1e9 / fp64, 1e9 / fp32), l1))
    assert row["notes"].startswith("sum of FP64 + FP32")


def test_a_trace_of_another_precision_makes_no_mixed_kernel(tmp_path: Path) -> None:
    metrics = complete(**{str(k): float(v) for k, v in flops("f", fma=1000).items()})
    assert "mixed" not in set(roofline(report(tmp_path / "r.ncu-rep", kernel(metrics))).points["precision"])


def test_by_kernel_sums_and_weights_by_time(tmp_path: Path) -> None:
    path = report(
        tmp_path / "r.ncu-rep",
        kernel(complete(seconds=1e-3)),
        kernel(complete(seconds=3e-3)),
        kernel(complete(), "void b(int)"),
    )
    result = roofline(path, by="kernel")
    row = one(result.points[result.points["level"] == "dram"], launches=2)
    assert row["work"] == 2e9
    assert row["seconds"] == pytest.approx(4e-3)
    assert row["performance"] == pytest.approx(2e9 / 4e-3)
    assert row["intensity"] == pytest.approx(4.0)
    assert row["launch"] == -1
    assert result.kernels["launches"].tolist() == [2, 1]


def test_by_application_counts_the_time_and_bytes_of_zero_flop_kernels(tmp_path: Path) -> None:
    idle = {**A100, **timing(seconds=1e-3), **NO_WORK, **traffic(10**9, 10, 250_000_000)}
    path = report(tmp_path / "r.ncu-rep", kernel(complete()), kernel(idle, "void copy(int *)"))
    row = one(roofline(path, by="application").points, level="dram")
    assert row["seconds"] == pytest.approx(2e-3)
    assert row["intensity"] == pytest.approx(2.0)
    assert row["coverage"] == 1.0
    assert "some launches lack the metrics" not in row["notes"]


def test_coverage_tells_what_an_aggregate_leaves_out(tmp_path: Path) -> None:
    unknown = {**A100, **timing(seconds=3e-3)}
    path = report(tmp_path / "r.ncu-rep", kernel(complete()), kernel(unknown))
    row = one(roofline(path, by="kernel").points, level="dram")
    assert row["coverage"] == pytest.approx(0.25)
    assert "some launches lack the metrics" in row["notes"]


def test_unknown_chip_and_missing_time_are_named(tmp_path: Path) -> None:
    pascal = {**complete(), "device__attribute_compute_capability_major": 6}
    timeless = {k: v for k, v in complete().items() if "time" not in k and "cycles" not in k}
    result = roofline(report(tmp_path / "r.ncu-rep", kernel(pascal), kernel(timeless), kernel(complete())))
    assert result.kernels["status"].tolist() == ["unknown-chip", "no-time", "ok"]
    assert set(result.points["launch"]) == {2}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -5.0])
def test_counters_that_are_no_counts_are_missing(tmp_path: Path, value: float) -> None:
    points = roofline(report(tmp_path / "r.ncu-rep", kernel(complete(**{"dram__bytes.sum": value})))).points
    assert set(points["level"]) == {"l1", "l2"}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("value", [0, -5.0, math.inf])
@pytest.mark.parametrize(
    "names",
    [
        ("multiprocessor_count",),
        ("max_gpu_frequency_khz",),
        ("max_mem_frequency_khz", "global_memory_bus_width"),
        ("fbp_count", "num_l2s_per_fbp"),
    ],
)
@pytest.mark.parametrize("clock", ["profiled", "max"])
def test_attributes_that_no_gpu_has_are_missing(tmp_path: Path, names: tuple[str, ...], value: float, clock: str) -> None:
    keys = [f"device__attribute_{name}" for name in names]
    metrics = {k: v for k, v in complete().items() if k not in keys}
    missing = roofline(report(tmp_path / "r.ncu-rep", kernel(metrics)), clock=clock)
    wrong = roofline(report(tmp_path / "r.ncu-rep", kernel({**metrics, **dict.fromkeys(keys, value)})), clock=clock)
    assert wrong.roofs.equals(missing.roofs)
    assert wrong.kernels.drop(columns="notes").equals(missing.kernels.drop(columns="notes"))
    assert (LEFT_OUT in wrong.kernels["notes"].iloc[0]) == (value != 0)
    assert wrong.points.equals(missing.points)


def test_time_from_cycles_where_there_is_no_duration(tmp_path: Path) -> None:
    metrics = {k: v for k, v in complete().items() if k != "gpu__time_duration.sum"} | {"sm__cycles_elapsed.avg": 1.41e6}
    assert roofline(report(tmp_path / "r.ncu-rep", kernel(metrics))).points["seconds"].tolist() == pytest.approx([1e-3] * 3)


def test_several_devices_in_one_report(tmp_path: Path) -> None:
    result = roofline(
        report(tmp_path / "r.ncu-rep", kernel(complete()), kernel(complete(H100, clock=1.98e9)), kernel(complete()))
    )
    assert result.kernels["compute_capability"].tolist() == ["8.0", "9.0", "8.0"]
    assert result.kernels["launch"].tolist() == [0, 1, 2]
    values = result.roofs[result.roofs["roof"] == "fp64.fma"].set_index("compute_capability")["value"]
    assert values["9.0"] == pytest.approx(132 * 128 * 1.98e9)
    assert values["8.0"] == pytest.approx(108 * 64 * 1.41e9)


def test_filters(tmp_path: Path) -> None:
    path = report(
        tmp_path / "r.ncu-rep",
        kernel(complete(seconds=1e-3), "void first(int)", nvtx=("setup",)),
        kernel(complete(seconds=2e-3), "void second(int)", nvtx=("solve", "inner")),
        kernel(complete(seconds=3e-3), "void third(int)"),
    )

    def launches(**filters: object) -> list[int]:
        return roofline(path, select=Selection(**filters)).kernels["launch"].tolist()  # type: ignore[arg-type]

    assert launches(kernel="^void s") == [1]
    assert launches(nvtx="inner") == [1]
    assert launches(launch=((0, 0), (2, 5))) == [0, 2]
    assert launches(top=2) == [1, 2]
    levels = roofline(path, select=Selection(levels=("dram",)))
    assert set(levels.points["level"]) == {"dram"}
    assert set(levels.roofs["level"]) == {"", "dram"}
    assert roofline(path, select=Selection(precisions=("fp32",))).points.empty
