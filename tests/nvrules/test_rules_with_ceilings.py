"""Every rule judges by the measured roofs that it is given, as the tables do, and says so.

The kernels and their theoretical roofs are those of `test_rule_messages`; what was measured is half of theory.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline.formats.ceilings import Ceiling, Ceilings
from ncu_roofline.plugin.generate.rules import render_rules
from ncu_roofline.plugin.nvrules import load_rules
from ncu_roofline.plugin.nvrules.runner import RuleSet
from tests.factory import A100, H100, NO_WORK, Metrics, complete, flops
from tests.nvrules.running import messages
from tests.nvrules.test_rule_messages import MMA16, MMA32, TENSOR_BUSY, WGMMA

_SM = 108 * 1.41e9
_A100 = {
    "fp64.fma": 64 * _SM,
    "fp32.fma": 128 * _SM,
    "tensor.fp64.mma": 128 * _SM,
    "l1.read": 128 * _SM,
    "l2.read": 64 * 80 * 1.41e9,
    "dram.read": 5120 / 4 * 1.215e9,
}
_H100 = {"tensor.fp16.mma": 2730 * 132 * 1.41e9, "tensor.fp16.wgmma": 4096 * 132 * 1.41e9}


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> RuleSet:
    """Our rules with half of all theoretical roofs."""

    def made(device: Metrics, capability: tuple[int, int], roofs: dict[str, float]) -> Ceilings:
        found = {
            name: Ceiling(name, value / 2, "FLOP/s" if value in roofs.values() and "read" not in name else "B/s", 1.41e9, "")
            for name, value in roofs.items()
        }
        return Ceilings("half.json", str(device["device__attribute_display_name"]), "", capability, "2024-01-02", found)

    folder = tmp_path_factory.mktemp("rules")
    for name, text in render_rules(ceilings=[made(A100, (8, 0), _A100), made(H100, (9, 0), _H100)]).items():
        (folder / name).write_text(text, encoding="utf-8")
    return load_rules([folder])


_COPY = {**complete(), **NO_WORK}
_TENSOR = {**complete(H100), WGMMA: 10**11, MMA16: 0, MMA32: 3 * 10**11}


@pytest.mark.parametrize(
    ("rule", "metrics", "theoretical", "measured"),
    [
        ("BoundDouble", complete(), "16 % of the 6.22 TFLOP/s that DRAM", "32 % of the 3.11 TFLOP/s that DRAM"),
        ("BoundDouble", complete(), "allows at 4 FLOP/B.", "allows at 4 FLOP/B (measured)."),
        ("FmaMix", complete(), "9.75 TFLOP/s of 9.75 TFLOP/s.", "4.87 TFLOP/s of 4.87 TFLOP/s (measured)."),
        ("LaunchSize", _COPY, "250 GB/s, 16 % of that roof.", "250 GB/s, 32 % of that roof (measured)."),
        ("Locality", complete(seconds=4e-4), "L2 serves 2x", "DRAM runs at 80 % of its bandwidth (measured)"),
        (
            "Tensor",
            {**complete(seconds=2.5e-4), TENSOR_BUSY: 0},
            "FP64 runs at 41 % of its FMA peak.",
            "FP64 runs at 82 % of its FMA peak (measured).",
        ),
        ("Tensor", _TENSOR, "(67 % of the 762 TFLOP/s of wgmma).", "(67 % of the 381 TFLOP/s of wgmma) (measured)."),
        ("Tensor", _TENSOR, "Tensor FP16 525 us,", "Tensor FP16 1.05 ms (measured),"),
        ("Verdict", complete(seconds=4e-4), "highest: DRAM at 40 % of its roof", "DRAM-bound at 80 % of its roof"),
        (
            "Mixed",
            {**complete(), **flops("f", fma=250_000_000)},
            "is full;",
            "is full (measured);",
        ),
    ],
)
def test_numbers(tmp_path: Path, half: RuleSet, rule: str, metrics: Metrics, theoretical: str, measured: str) -> None:
    assert theoretical in " ".join(said.text for said in messages(tmp_path, metrics, rule))
    assert measured in " ".join(said.text for said in messages(tmp_path, metrics, rule, half))
