"""What the runner lists for an H100 (compute capability 9.0): ceilings with their variants, and rates that it could find."""

from __future__ import annotations

from typing import Any

from ncu_roofline.bench.campaign import Candidate, candidates
from ncu_roofline.bench.catalogue import kinds_of, theory
from ncu_roofline.bench.runner import Variant
from tests.bench.fakes import H200, device, kind

_MEMORY = "ldg128_cs_b512_i8"
_WGMMA = "m64n256k16_ss_w2"
H100 = {
    "dram.read": (_MEMORY, "bulk16k_s5"),
    "dram.write": ("stg128_cs_b512_i8",),
    "dram.copy": (_MEMORY,),
    "dram.triad": (_MEMORY,),
    "l2.read": ("ldg128_na_b256_i8", "bulk16k_s5"),
    "l2.read_far": ("ldg128_na_b256_i8",),
    "l2.write": ("stg128_b256_i8",),
    "l2.copy": ("ldg128_na_b256_i8",),
    "l1.read": ("ldg128_b256_x2",),
    "smem.read": ("lds128_b512_i8",),
    "fp64.fma": ("xxb_c8",),
    "fp64.nofma": ("xx_b_c8",),
    "fp32.fma": ("xxb_c8_u60",),
    "fp32.nofma": ("xx_b_c8",),
    "fp16.fma": ("xxb_c8",),
    "fp16.nofma": ("xx_b_c8",),
    "bf16.fma": ("xxb_c8",),
    "bf16.nofma": ("xx_b_c8",),
    "int32.mad": ("xab_c8",),
    "fp64.div": ("fma8_div1_c4",),
    "fp32.div": ("fma8_div1_c4",),
    "fp16.div": ("fma8_div1_c4",),
    "bf16.div": ("fma8_div1_c4",),
    "tensor.fp16.mma": ("m16n8k16_c8",),
    "tensor.fp16_acc16.mma": ("m16n8k16_c8",),
    "tensor.bf16.mma": ("m16n8k16_c8",),
    "tensor.tf32.mma": ("m16n8k8_c8",),
    "tensor.int8.mma": ("m16n8k32_c8",),
    "tensor.fp64.mma": ("m16n8k16_c4",),
    "tensor.fp16.wgmma": (_WGMMA,),
    "tensor.fp16_acc16.wgmma": (_WGMMA,),
    "tensor.bf16.wgmma": (_WGMMA,),
    "tensor.tf32.wgmma": ("m64n256k8_ss_w2",),
    "tensor.int8.wgmma": ("m64n256k32_ss_w2",),
    "tensor.fp8.wgmma": ("m64n256k32_ss_w2",),
    "host.h2d": ("memcpy_pinned", "zero_copy_ldg128"),
    "host.d2h": ("memcpy_pinned", "zero_copy_stg128"),
    "host.bidir": ("memcpy_pinned",),
    "launch.stream": ("empty_kernel",),
    "launch.sync": ("empty_kernel",),
    "launch.graph": ("graph_1000_nodes",),
}
NO_TABLE_ROW = {"memcpy_pinned", "empty_kernel", "graph_1000_nodes"}
"""Variants without a kernel of the table of kernels."""
GPU = {**H200, "name": "NVIDIA H100 80GB HBM3", "mem_clock_max_mhz": 2619, "bus_bits": 5120}


def wanted(quick: bool) -> list[Candidate]:
    """What the driver makes of the list."""
    variants = [Variant(one, variant, kind(one).unit, ("9.0",), "") for one, names in H100.items() for variant in names]
    return candidates(kinds_of(variants), variants, "9.0", quick)


def machine(noise: float, **changes: dict[str, Any]) -> dict[str, Any]:
    """An H100 as a scenario: 95 % of theory, its second variants behind; ``cv`` of trials; ``fp64_fma={...}`` changes one."""
    ceilings: dict[str, dict[str, Any]] = {}
    for one, names in H100.items():
        variants = {name: 1.0 - 0.02 * place for place, name in enumerate(names)}
        ceilings[one] = {"rate": _rate(one), "noise": noise, "variants": variants}
    for name, change in changes.items():
        ceilings[name.replace("_", ".", 1)].update(change)
    return {"devices": [GPU], "rows": [], "ceilings": ceilings}


def _rate(ceiling: str) -> float:
    one = kind(ceiling)
    peak = theory(one, device(GPU))
    if peak is None:
        return 4e5 if one.unit == "s" else 50e9 if one.domain == "link" else 5e12
    return 0.95 * peak.at({"sm": 1.98e9, "memory": 2.619e9}[one.domain])
