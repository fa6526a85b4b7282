"""What the specification gains appears in the sections without a change of code."""

from __future__ import annotations

from dataclasses import replace

from ncu_roofline.chips import Binding, Level, Precision, load_spec
from ncu_roofline.chips.fields import LAST
from ncu_roofline.chips.formula import WeightedSum
from ncu_roofline.formats.sectionfile.text import parse_document
from ncu_roofline.plugin.generate import BASE, dialect_of, render_sections

SPEC = load_spec()


def test_a_level() -> None:
    counters = WeightedSum.of({"tmem__bytes_read": 1, "tmem__bytes_write": 1})
    peak = WeightedSum.of({"tmem__bytes_read": 2})
    level = Level("tmem", "Tensor memory", 9, (Binding(counters, (((10, 0), LAST),), peak, "l1tex"),))
    files = render_sections(dialect_of("2025.4"), spec=replace(SPEC, levels=(*SPEC.levels, level)))
    text = files["HierarchicalSingleRooflineChart.section"]
    assert "tmem__bytes_read.sum.per_cycle_elapsed" in text
    assert 'Expression: "tmem__bytes_read.sum.peak_sustained * 2"' in text
    assert "Tensor memory bandwidth, FP32 FMA peak" in text
    assert parse_document(text).section.charts


def test_a_tensor_precision() -> None:
    counters = WeightedSum.of({"sm__ops_path_tensor_src_fp2": 1})
    precision = Precision("tensor.fp2", "Tensor FP2", "tensor", "flop", 99, (Binding(counters, (((12, 0), LAST),), counters),))
    spec = replace(SPEC, precisions=(*SPEC.precisions, precision))
    for dialect in (BASE, dialect_of("2025.4")):
        text = render_sections(dialect, spec=spec)["HierarchicalTensorRooflineChart.section"]
        assert "Tensor FP2 at L2" in text
        assert "sm__ops_path_tensor_src_fp2.sum.peak_sustained" in text
    assert (
        "Tensor FP2 at L2" in render_sections(BASE, spec=spec, light_type="fp2")["HierarchicalTensorLightRooflineChart.section"]
    )


def test_an_architecture() -> None:
    newest = replace(SPEC.architectures[-1], compute_capability=(13, 0), bandwidth={"l1": (256.0, "sm")})
    text = render_sections(BASE, spec=replace(SPEC, architectures=(*SPEC.architectures, newest)))[
        "InstructionRooflineChart.section"
    ]
    assert 'Expression: "l1tex__lsu_writeback_active.sum.peak_sustained * 8"' in text
