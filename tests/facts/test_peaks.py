"""Peaks against figures that others published: data sheets, and peaks that recorded reports state."""

from __future__ import annotations

import pytest

from ncu_roofline.chips import load_spec
from ncu_roofline.chips.formulas import board_rule, summed

# name, capability, SMs, GHz; roofs with their TFLOP/s or TOP/s: vendors' dense figures
PUBLISHED = [
    ("Tesla V100-SXM2", (7, 0), 80, 1.53, "fp64.fma 7.83 fp64.nofma 3.92 fp32.fma 15.7 fp16.fma 31.3 tensor.fp16 125"),
    ("Tesla T4", (7, 5), 40, 1.59, "fp64.fma 0.254 fp32.fma 8.1 fp16.fma 16.3 tensor.fp16 65 tensor.int8 130"),
    (
        "NVIDIA A100-SXM4-40GB",
        (8, 0),
        108,
        1.41,
        "fp64.fma 9.75 fp32.fma 19.5 fp16.fma 78 tensor.fp64 19.5 tensor.tf32 156 tensor.bf16 312 tensor.fp16 312 "
        "tensor.int8 624 tensor.int8.sparse 1248 tensor.int4 1248 tensor.int1 4992",
    ),
    (
        "NVIDIA GeForce RTX 3090",
        (8, 6),
        82,
        1.695,
        "fp64.fma 0.56 fp32.fma 35.6 fp16.fma 35.6 tensor.tf32 35.6 tensor.fp16.acc32 71 tensor.fp16 142 tensor.int8 285",
    ),
    ("NVIDIA A40", (8, 6), 84, 1.74, "fp32.fma 37.4 tensor.tf32 74.8 tensor.fp16.acc32 149.7 tensor.int8 299.3"),
    (
        "NVIDIA GeForce RTX 4090",
        (8, 9),
        128,
        2.52,
        "fp64.fma 1.29 fp32.fma 82.6 tensor.fp16.acc32 165 tensor.fp16 330 tensor.int8 661 tensor.fp8 330",
    ),
    ("NVIDIA L40S", (8, 9), 142, 2.52, "fp32.fma 91.6 tensor.tf32 183 tensor.fp16.acc32 366 tensor.fp8 733"),
    ("NVIDIA H100 80GB HBM3", (9, 0), 132, 1.98, "fp64.fma 33.5 fp32.fma 66.9 fp16.fma 134 tensor.fp64 66.9"),
    (
        "NVIDIA H100 80GB HBM3",
        (9, 0),
        132,
        1.83,
        "tensor.tf32 495 tensor.fp16 989 tensor.bf16.wgmma 989 tensor.fp8 1979 tensor.int8 1979 tensor.fp8.sparse 3958",
    ),
    ("NVIDIA H100 PCIe", (9, 0), 114, 1.62, "tensor.tf32 378 tensor.fp16 756 tensor.int8 1513"),
    ("NVIDIA B200", (10, 0), 148, 1.965, "fp64.fma 37.2 fp32.fma 74.4 tensor.fp64 37.2"),
    ("NVIDIA B200", (10, 0), 148, 1.85, "tensor.tf32 1121 tensor.fp16.tcgen05 2243 tensor.fp8fp6fp4 4486 tensor.int8 4486"),
    (
        "NVIDIA GeForce RTX 5090",
        (12, 0),
        170,
        2.407,
        "fp64.fma 1.64 fp32.fma 104.8 tensor.tf32 105 tensor.fp16.acc32 210 tensor.fp16 419 tensor.fp8 419",
    ),
]


def test_data_sheets() -> None:
    for device, capability, sms, ghz, text in PUBLISHED:
        architecture, words = load_spec().architecture(capability), text.split()
        for roof, teraflops in zip(words[::2], map(float, words[1::2]), strict=True):
            assert architecture.peak(roof, device) * sms * ghz / 1000 == pytest.approx(teraflops, rel=0.013), (device, roof)


# What sm__sass_thread_inst_executed_op_*_pred_on.sum.peak_sustained says in recorded reports, per SM and cycle.
REPORTED = {
    (7, 5): {"dfma": 2, "ffma": 64},
    (8, 0): {"dfma": 32, "ffma": 64, "hfma": 128},
    (8, 6): {"dfma": 2, "ffma": 128, "hfma": 64},
    (8, 9): {"dfma": 2},
    (9, 0): {"dfma": 64, "ffma": 128, "hfma": 128},
    (10, 0): {"dfma": 64, "ffma": 128, "hfma": 64},
    (12, 0): {"dfma": 2, "ffma": 128, "hfma": 64},
}


def test_reported_peaks_times_weight() -> None:
    spec = load_spec()
    for capability, reported in REPORTED.items():
        for instruction, per_sm in reported.items():
            precision = {"dfma": "fp64", "ffma": "fp32", "hfma": "fp16"}[instruction]
            counter = f"sm__sass_thread_inst_executed_op_{instruction}_pred_on"
            for binding in spec.bindings(spec.precision(precision), capability):
                peak = summed(binding.peak, {counter: per_sm}.__getitem__)
                assert peak == spec.architecture(capability).peak(f"{precision}.fma"), (capability, precision)


def test_tensor_peaks_that_reports_state() -> None:
    """Operations per SM and cycle: dense, sparse, and Hopper's two instruction families."""
    a100 = load_spec().architecture((8, 0))
    h100 = load_spec().architecture((9, 0))
    expected = {
        "tf32": (1024, 1365.3, 2048),
        "fp16": (2048, 2730.7, 4096),
        "bf16": (2048, 2730.7, 4096),
        "int8": (4096, 5461.3, 8192),
    }
    for name, (ampere, mma, wgmma) in expected.items():
        assert a100.peak(f"tensor.{name}") == ampere
        assert a100.peak(f"tensor.{name}.sparse") == 2 * ampere
        assert h100.peak(f"tensor.{name}.mma") == pytest.approx(mma, abs=0.05)
        assert h100.peak(f"tensor.{name}.mma.sparse") == wgmma
        assert h100.peak(f"tensor.{name}.wgmma") == h100.peak(f"tensor.{name}") == wgmma
        assert h100.peak(f"tensor.{name}.wgmma.sparse") == h100.peak(f"tensor.{name}.sparse") == 2 * wgmma
    assert (a100.peak("tensor.fp64"), h100.peak("tensor.fp64")) == (128, 256)
    assert (h100.peak("tensor.int1.mma"), h100.peak("tensor.int1.wgmma")) == (pytest.approx(43690.7, abs=0.05), 65536)


def test_boards_differ() -> None:
    ampere = load_spec().architecture((8, 6))
    assert ampere.peak("tensor.tf32") == ampere.peak("tensor.tf32", "NVIDIA A10G") == 512
    assert ampere.peak("tensor.tf32", "NVIDIA GeForce RTX 3060") == 256
    assert board_rule(ampere.boards, "tensor.tf32", "NVIDIA GeForce RTX 3060").note
    assert board_rule(ampere.boards, "fp32.fma", "NVIDIA GeForce RTX 3060") is None
    turing = load_spec().architecture((7, 5))
    assert turing.peak("tensor.fp16", "NVIDIA GeForce GTX 1660 Ti") is None
    assert turing.peak("fp16.fma", "NVIDIA GeForce GTX 1660 Ti") == 256


def test_unknown_peaks_are_absent() -> None:
    for capability in ((7, 2), (8, 7), (11, 0), (12, 1)):
        assert load_spec().architecture(capability).peaks == {"int32": 128}  # the issue limit of any SM
    assert load_spec().architecture((10, 3)).peak("fp16.fma") is None


def test_bandwidth_of_an_a100() -> None:
    """Of 108 SMs at 1.41 GHz, 80 slices and 5120 bits at 1.215 GHz, in GB/s."""
    found = load_spec().architecture((8, 0)).bandwidth
    assert found["l1"] == (pytest.approx(19500 / 1.41 / 108, rel=0.01), "sm")
    assert found["l2"] == (5120 / 80, "slice")
    assert found["dram"] == (1280 / 5120, "bus")  # dram__bytes.sum.peak_sustained of its reports
    assert found["dram"].bytes * 5120 * 1.215 == pytest.approx(1555, rel=0.001)
    assert "system" not in found


# Chip, bits of the bus, GHz, GB/s
MEMORIES = [
    ((7, 0), 4096, 0.877, 898),
    ((8, 0), 5120, 1.593, 2039),
    ((8, 6), 384, 9.751, 936),
    ((8, 9), 384, 10.501, 1008),
    ((9, 0), 6144, 3.201, 4917),
    ((10, 0), 7680, 3.996, 7672),
]


def test_memory_bandwidth() -> None:
    for capability, bits, ghz, gigabytes in MEMORIES:
        product, per = load_spec().architecture(capability).bandwidth["dram"]
        assert (product * bits * ghz, per) == (pytest.approx(gigabytes, rel=0.001), "bus"), capability
