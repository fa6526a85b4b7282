"""Precision and level from metric names; the correction for half precision."""

from __future__ import annotations

import pytest

from ncu_roofline.formats.sectionfile.charts import Chart, evaluate_charts
from ncu_roofline.formats.sectionfile.classify import classify, stock_half_factor
from ncu_roofline.formats.sectionfile.section import parse_section
from tests.sectionfile.section_factory import chart, constant, one, per_second, point, roof, section

SASS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        (SASS.format("dadd"), "fp64"),
        (SASS.format("fmul"), "fp32"),
        (SASS.format("ffma2"), "fp32"),
        (SASS.format("hfma"), "fp16"),
        ("derived__sm__sass_thread_inst_executed_op_dfma_pred_on_x2", "fp64"),
        ("derived__smsp__sass_thread_inst_executed_op_hfma_pred_on_x4", "fp16"),
        ("sm__sass_thread_inst_executed_ops_fadd_fmul_ffma_pred_on.sum", "fp32"),
        ("smsp__sass_thread_inst_executed_op_fp16_pred_on.sum", ""),  # not FLOP
        ("derived__sm__inst_executed_pipe_tensor_x512", "tensor"),
        ("smsp__inst_executed_pipe_tensor.sum.per_cycle_elapsed", "tensor"),
        ("sm__inst_executed_pipe_tensor_op_dmma.sum", "tensor.fp64"),
        ("sm__inst_executed_pipe_fp64_op_dmma.sum", "tensor.fp64"),
        ("sm__inst_executed_pipe_fp64.sum", ""),
        ("sm__ops_path_tensor_src_fp64.sum.peak_sustained", "tensor.fp64"),
        ("sm__ops_path_tensor_src_tf32_dst_fp32_sparsity_off.sum.peak_sustained", "tensor.tf32"),
        ("sm__ops_path_tensor_src_fp16_dst_fp32_sparsity_on.sum.peak_sustained", "tensor.fp16.sparse"),
        ("sm__ops_path_tensor_src_fp16_bf16_tf32_dst_fp32.sum", "tensor.fp16"),
        ("sm__ops_path_tensor_src_fp16.sum", "tensor.fp16"),
        ("sm__ops_path_tensor_src_int8.sum", "tensor.int8"),
        ("sm__ops_path_tensor_src_int1.sum", "tensor.int1"),
        ("sm__ops_path_tensor_src_fp8_dst_fp16.sum", "tensor.fp8"),
        ("sm__ops_path_tensor_src_fp4_fp6_fp8_dst_fp32.sum", "tensor.fp8fp6fp4"),
        ("sm__ops_path_tensor_src_fp4_fp6_dst_fp16.sum", "tensor.fp6fp4"),
        ("sm__ops_path_tensor_src_fp4_dst_fp32.sum", "tensor.fp4"),
        ("sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_off.sum", "tensor.bf16.mma"),
        ("sm__ops_path_tensor_op_imma_src_int8_sparsity_on.sum", "tensor.int8.mma.sparse"),
        ("sm__ops_path_tensor_op_qmma_src_fp8_dst_fp32.sum", "tensor.fp8.mma"),
        ("sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum", "tensor.fp16.wgmma"),
        ("sm__ops_path_tensor_op_igmma_src_int8_sparsity_on.sum", "tensor.int8.wgmma.sparse"),
        ("sm__ops_path_tensor_op_bgmma_src_int1.sum", "tensor.int1.wgmma"),
        ("sm__ops_path_tensor_op_utchmma_src_tf32_dst_fp32_sparsity_off.sum", "tensor.tf32.tcgen05"),
        ("sm__ops_path_tensor_op_utcqmma_src_fp4_fp6_fp8_dst_fp32.sum", "tensor.fp8fp6fp4.tcgen05"),
        ("sm__ops_path_tensor_src_future9_dst_fp32.sum", "tensor"),
    ],
)
def test_precision(name: str, precision: str) -> None:
    assert classify((name, "sm__cycles_elapsed.avg.per_second")) == (precision, "")


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("dram__bytes.sum.peak_sustained", "dram"),
        ("fbpa__dram_read_bytes.sum", "dram"),
        ("mcc__dram_data_bytes.sum", "dram"),
        ("lts__d_sectors_fill_device.sum", "dram"),
        ("lts__t_bytes.sum.per_second", "l2"),
        ("lts__t_sectors_srcunit_tex.sum", "l2"),
        ("lts__lts2xbar_cycles_active.sum.per_second", "l2"),
        ("derived__lts__lts2xbar_bytes.sum.peak_sustained", "l2"),
        ("l1tex__m_xbar2l1tex_read_bytes.sum.per_second", "l2"),
        ("l1tex__m_l1tex2xbar_write_bytes.sum", "l2"),
        ("l1tex__t_bytes.sum.per_second", "l1"),
        ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "l1"),
        ("derived__l1tex__lsu_writeback_bytes_mem_lgds.sum.per_second", "l1"),
        ("l1tex__lsu_writeback_active.sum.peak_sustained", "l1"),
        ("smsp__sass_data_bytes_mem_global.sum", "l1"),
        ("smsp__sass_data_bytes_mem_shared.sum", "shared"),
        ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.peak_sustained", "shared"),
        ("lts__t_sectors_aperture_sysmem_op_read.sum", "system"),
        ("lts__d_sectors_fill_sysmem.sum", "system"),
        ("syslts__t_bytes.sum", "system"),
        ("pcie__read_bytes.sum", "system"),
        ("lts__t_sectors_aperture_peer.sum", ""),
        ("nvlrx__bytes.sum", ""),
        ("something__else.sum", ""),
    ],
)
def test_level(name: str, level: str) -> None:
    clocks = [
        "dram__cycles_elapsed.avg.per_second",
        "lts__cycles_elapsed.avg.per_second",
        "l1tex__cycles_elapsed.avg.per_second",
    ]
    assert classify((name, *clocks)) == ("", level)


def test_mixtures() -> None:
    assert classify((SASS.format("dadd"), SASS.format("fadd"), "dram__bytes.sum", "lts__t_bytes.sum")) == ("", "")
    ops = "sm__ops_path_tensor_op_{}.sum"
    assert classify((ops.format("hmma_src_fp16_dst_fp32"), ops.format("hgmma_src_fp16")))[0] == "tensor.fp16"
    assert classify((ops.format("hmma_src_fp16_dst_fp32"), ops.format("imma_src_int8")))[0] == "tensor"
    on, off = "_src_fp16_sparsity_on", "_src_fp16_sparsity_off"
    assert classify((ops.format(f"hmma{on}"), ops.format(f"hgmma{on}")))[0] == "tensor.fp16.sparse"
    assert classify((ops.format(f"hgmma{on}"), ops.format(f"hgmma{off}")))[0] == "tensor.fp16.wgmma"
    assert classify((ops.format(f"hmma{on}"), ops.format("imma_src_int8_sparsity_on")))[0] == "tensor"
    assert classify(()) == ("", "")


def _chart(peak: str, *work: str, identifier: bytes = b"SpeedOfLight_HierarchicalHalfRooflineChart") -> Chart:
    item = chart(roofs=(roof(per_second(peak), constant(1.0)),), points=(point(per_second(*work), one("bytes")),))
    names = {"bytes": 1.0, "sm__cycles_elapsed.avg.per_second": 1.0, peak: 1.0, **dict.fromkeys(work, 1.0)}
    (got,) = evaluate_charts(parse_section(section(item, Identifier=identifier)), names, (8, 0))
    assert got.roofs
    assert got.points
    return got


DERIVED = "derived__{}__sass_thread_inst_executed_op_{}_pred_on_x{}"
OLD = (DERIVED.format("sm", "hfma", 2), SASS.format("hadd"), DERIVED.format("smsp", "hfma", 2))
NEW = (DERIVED.format("sm", "hfma", 4), DERIVED.format("smsp", "hadd", 2), DERIVED.format("smsp", "hfma", 4))
PLAIN = ("sm__sass_thread_inst_executed_op_hfma_pred_on.sum.peak_sustained", SASS.format("hadd"))


@pytest.mark.parametrize(
    ("names", "identifier", "version", "factor"),
    [
        (OLD, b"SpeedOfLight_HierarchicalHalfRooflineChart", "2024.2.1.0", 2.0),
        (OLD, b"SpeedOfLight_HierarchicalHalfRooflineChart", "", 2.0),
        (OLD, b"Own", "2025.3.1.0", 2.0),
        (NEW, b"SpeedOfLight_HierarchicalHalfRooflineChart", "2025.1.0.0", 1.0),
        (NEW, b"SpeedOfLight_HierarchicalHalfRooflineChart", "2024.3.0.0", 1.0),
        (PLAIN, b"SpeedOfLight_HierarchicalHalfRooflineChart", "2020.2.1.0", 2.0),
        (PLAIN, b"SpeedOfLight_HierarchicalHalfRooflineChart", "2025.1.0.0", 1.0),
        (PLAIN, b"SpeedOfLight_HierarchicalHalfRooflineChart", "", 1.0),
        (PLAIN, b"Own", "2020.2.1.0", 1.0),
        (tuple(name.replace("_h", "_f") for name in OLD), b"SpeedOfLight_RooflineChart", "2024.2.1.0", 1.0),
    ],
)
def test_half_precision_factor(names: tuple[str, ...], identifier: bytes, version: str, factor: float) -> None:
    got = stock_half_factor(_chart(*names, identifier=identifier), version)
    assert (got.roof, got.point) == (factor, factor)
    assert bool(got.sentence) == (factor != 1)
