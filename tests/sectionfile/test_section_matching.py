"""Each dot of a chart stands under the roof of its own precision, sparsity and level."""

from __future__ import annotations

import math

import pytest

from ncu_roofline.formats.sectionfile.charts import Chart, Point, Roof
from ncu_roofline.formats.sectionfile.classify import peaks_of, tensor_caveat

CLOCK = "sm__cycles_elapsed.avg.per_second"
DRAM_PEAK = ("dram__bytes.sum.peak_sustained", "dram__cycles_elapsed.avg.per_second")
L2_PEAK = ("lts__t_bytes.sum.peak_sustained", "lts__cycles_elapsed.avg.per_second")
L1_PEAK = ("l1tex__t_bytes.sum.peak_sustained", "l1tex__cycles_elapsed.avg.per_second")
DRAM, L2 = ("dram__bytes.sum.per_second",), ("lts__t_bytes.sum.per_second",)


def fma(letter: str, peak: float, traffic: tuple[str, ...] = DRAM_PEAK, speed: float = 1e12) -> Roof:
    name = f"derived__sm__sass_thread_inst_executed_op_{letter}fma_pred_on_x2"
    return Roof(letter, peak, speed, (name, CLOCK), traffic)


def core(letter: str, traffic: tuple[str, ...] = DRAM) -> Point:
    names = [f"smsp__sass_thread_inst_executed_op_{letter}{op}_pred_on.sum.per_cycle_elapsed" for op in ("add", "mul")]
    names.append(f"derived__smsp__sass_thread_inst_executed_op_{letter}fma_pred_on_x2")
    return Point(letter, 1e12, 1e11, 10.0, (*names, "smsp__cycles_elapsed.avg.per_second"), traffic)


def tensor(kind: str, peak: float, traffic: tuple[str, ...] = DRAM_PEAK) -> Roof:
    return Roof(kind, peak, 1e12, (f"sm__ops_path_tensor_{kind}.sum.peak_sustained", CLOCK), traffic)


def tensor_dot(*kinds: str, traffic: tuple[str, ...] = DRAM) -> Point:
    names = tuple(f"sm__ops_path_tensor_{kind}.sum.per_cycle_elapsed" for kind in kinds)
    return Point(kinds[0], 1e12, 1e11, 10.0, (*names, CLOCK), traffic)


def chart(*roofs: Roof) -> Chart:
    return Chart("Test", "", "", roofs, (), (), ())


BF16, FP16 = "src_bf16_dst_fp32", "src_fp16_dst_fp16"
A100 = [tensor(f"{BF16}_sparsity_on", 600e12), tensor(f"{BF16}_sparsity_off", 300e12), tensor(f"{FP16}_sparsity_on", 601e12)]
HMMA = "op_hmma_src_bf16_dst_fp32_sparsity_off"
HOPPER = [
    tensor("op_hgmma_src_bf16_sparsity_on", 2000e12),
    tensor("op_hgmma_src_bf16_sparsity_off", 1000e12),
    tensor(HMMA, 660e12),
]
X512 = Roof("t", 80e12, 1e12, ("derived__sm__inst_executed_pipe_tensor_x512", CLOCK), DRAM_PEAK)
COUNTED = Point("t", 1e12, 1e11, 10.0, ("derived__smsp__inst_executed_pipe_tensor_x512", CLOCK), DRAM)
# Our own charts draw the line of a second precision at one level only.
OURS = [fma("d", 4.8e12, L1_PEAK), fma("d", 9.7e12), fma("d", 9.7e12, L2_PEAK, 5e12), tensor("src_fp64", 19.5e12, L1_PEAK)]

# Roofs, dot, peak work and peak traffic that it stands under.
CASES = {
    "FP64 beside FP32": ([fma("f", 19e12), fma("d", 9.7e12)], core("d"), 9.7e12, 1e12),
    "FP32 beside FP64": ([fma("f", 19e12), fma("d", 9.7e12)], core("f"), 19e12, 1e12),
    "dense beside sparse": (A100, tensor_dot(f"{BF16}_sparsity_off"), 300e12, 1e12),
    "sparse beside dense": (A100, tensor_dot(f"{BF16}_sparsity_on"), 600e12, 1e12),
    "dense and sparse together are dense": (A100, tensor_dot(BF16), 300e12, 1e12),
    "no roof of this type": (A100, tensor_dot("src_int8_sparsity_off"), math.nan, 1e12),
    "a family": (HOPPER, tensor_dot(HMMA), 660e12, 1e12),
    "two families": (HOPPER, tensor_dot(HMMA, "op_hgmma_src_bf16_sparsity_off"), 1000e12, 1e12),
    "all families": (HOPPER, tensor_dot("src_bf16"), 1000e12, 1e12),
    "two accumulators": (
        [tensor("src_fp16_dst_fp16_sparsity_off", 284e12), tensor("src_fp16_dst_fp32_sparsity_off", 142e12)],
        tensor_dot("src_fp16_dst_fp32_sparsity_off"),
        142e12,
        1e12,
    ),
    "tensor instructions": ([X512], COUNTED, 80e12, 1e12),
    "a level of its own": ([fma("d", 9.7e12), fma("d", 9.7e12, L2_PEAK, 5e12)], core("d", L2), 9.7e12, 5e12),
    "a line drawn at another level": (OURS, tensor_dot("src_fp64", traffic=L2), 19.5e12, 5e12),
    "the other dots of that chart": (OURS, core("d", L2), 9.7e12, 5e12),
    "the higher of two lines": (OURS, core("d", ("l1tex__t_bytes.sum.per_second",)), 9.7e12, 1e12),
    "no roof of this level": ([fma("d", 9.7e12)], core("d", L2), 9.7e12, math.nan),
    "a constant": ([Roof("c", 5e12, 1e12, (), DRAM_PEAK)], core("d"), 5e12, 1e12),
    "two constants": ([Roof("c", one, 1e12, (), DRAM_PEAK) for one in (5e12, 6e12)], core("d"), math.nan, 1e12),
    "a dot of unknown work": ([fma("d", 9.7e12)], Point("p", 1.0, 1.0, 1.0, ("vendor__ops",), DRAM), 9.7e12, 1e12),
    "a dot of unknown work, two roofs": (
        [fma("f", 19e12), fma("d", 9.7e12)],
        Point("p", 1.0, 1.0, 1.0, ("vendor__ops",), DRAM),
        math.nan,
        1e12,
    ),
    "only a roof of another precision": ([fma("f", 19e12)], core("d"), math.nan, 1e12),
    "no roofs": ([], core("d"), math.nan, math.nan),
}


@pytest.mark.parametrize("case", CASES)
def test_a_dot_stands_under_its_own_roof(case: str) -> None:
    roofs, dot, work, traffic = CASES[case]
    expected = pytest.approx((work, traffic), nan_ok=True)
    assert peaks_of(chart(*roofs), dot) == expected
    assert peaks_of(chart(*roofs[::-1]), dot) == expected


X512_NAME, DMMA = "derived__smsp__inst_executed_pipe_tensor_x512", "derived__sm__inst_executed_pipe_tensor_op_dmma_x512"
REPEATED = ("sm__inst_executed_pipe_tensor.sum.per_cycle_elapsed",) * 512
CAVEATS = {
    "V100": ((X512_NAME,), (7, 0), ""),
    "Xavier": ((X512_NAME,), (7, 2), "512 operations per tensor instruction, which holds for V100 only"),
    "A10G": ((X512_NAME, CLOCK), (8, 6), "512 operations per tensor instruction, which holds for V100 only"),
    "repeated": (REPEATED, (8, 0), "512 operations per tensor instruction, which holds for V100 only"),
    "repeated on V100": (REPEATED, (7, 0), ""),
    "another weight": (("derived__sm__inst_executed_pipe_tensor_x4096",), (8, 0), "4096 operations per tensor instruction"),
    "no weight": (("sm__inst_executed_pipe_tensor_op_hmma.sum.per_second",), (7, 0), "counts 1 operation per tensor"),
    "DMMA": ((DMMA,), (8, 0), ""),
    "DMMA of the FP64 pipe": (("derived__sm__inst_executed_pipe_fp64_op_dmma_x512",), (8, 6), ""),
    "DMMA on Hopper": ((DMMA,), (9, 0), "512 operations per tensor instruction whatever its shape"),
    "operations": (("sm__ops_path_tensor_src_fp64.sum.per_second",), (9, 0), ""),
    "FP64": (core("d").work_metrics, (8, 0), ""),
}


@pytest.mark.parametrize("case", CAVEATS)
def test_instructions_are_not_operations(case: str) -> None:
    metrics, capability, said = CAVEATS[case]
    caveat = tensor_caveat(metrics, capability)
    assert said in caveat
    assert bool(caveat) == bool(said)
    assert not caveat or caveat.endswith("here the real work differs by shape and type")
