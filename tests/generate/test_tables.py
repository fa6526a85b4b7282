"""Rows of headers and tables: what they say of a kernel, and in which words."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from ncu_roofline.chips import load_spec
from ncu_roofline.formats.sectionfile.charts import parse_expression
from ncu_roofline.formats.sectionfile.section import arch_number
from ncu_roofline.model import roofline
from tests import factory
from tests.generate.made import VERSIONS, collected, dialect, kernel_metrics, profiled, section
from tests.generate.test_sections import EACH, IDENTIFIERS, SOME_VERSIONS
from tests.sectionfile import reading

OVERVIEW = "RooflineOverview"
TENSOR = ("HierarchicalTensorRooflineChart", "HierarchicalTensorLightRooflineChart")
# Names of numbers in units of the field; without one: what ncu prints with its own, and counts.
_LABEL = re.compile(
    r"Duration|SM Frequency|Maximum SM Frequency \[kHz\]|.* instructions( \(wgmma\)|, FP64 pipe)?"
    r"|.* fused share of add, multiply and FMA instructions|.* \[(G?FLOP/s|G?OP/s|FLOP/byte|%|% of cycles)\]|.* traffic"
)
# The values of one kernel are the same for many dialects; one of each kind is enough.
CASES = [
    (version, identifier, capability)
    for version in ("base", "2022.3", "2024.2", "2025.4")
    for identifier in IDENTIFIERS
    for capability in profiled(version)
]


def _rows(version: str, identifier: str, capability: tuple[int, int]) -> list[tuple[str, str]]:
    """(label, metric) of all rows of a section on a chip."""
    return reading.rows(section(version, identifier), arch_number(capability))


@SOME_VERSIONS
@EACH
def test_each_row_is_one_number_with_its_unit(version: str, identifier: str) -> None:
    for capability in profiled(version):
        labels = [label for label, _ in _rows(version, identifier, capability)]
        assert [label for label, count in Counter(labels).items() if count > 1] == [], capability
        assert [label for label in labels if not _LABEL.fullmatch(label)] == []


@pytest.mark.sampled
@pytest.mark.parametrize(("version", "identifier", "capability"), CASES)
def test_performance_is_what_the_model_says(version: str, identifier: str, capability: tuple[int, int], tmp_path: Path) -> None:
    made = section(version, identifier)
    metrics = kernel_metrics(collected(made, capability), capability)
    frame = roofline(factory.report(tmp_path / "made.ncu-rep", factory.kernel(metrics))).points
    label_of = {p.id: p.label for p in load_spec().precisions}
    performance = {label_of[one.precision]: one.performance for one in frame.itertuples() if one.precision in label_of}
    intensity = {(label_of.get(one.precision), one.level): one.intensity for one in frame.itertuples()}
    levels = {level.label: level.id for level in load_spec().levels}
    definitions = {name: parse_expression(one) for name, one in reading.definitions(made).items()}
    told = set()
    for label, name in _rows(version, identifier, capability):
        value = definitions[name].evaluate(metrics.get) if name in definitions else metrics.get(name)
        what, _, unit = label.rpartition(" [")
        precision = what.partition(", compute")[0].partition(" intensity at ")[0]
        if unit.endswith("OP/s]") and value is not None:
            told.add(precision)
            if precision in performance:  # of an instruction family that the chip has alone the model has no point of its own
                assert value * (1e9 if unit.startswith("G") else 1) == pytest.approx(performance[precision], rel=1e-9), label
        elif unit == "FLOP/byte]" and value is not None:
            assert value == pytest.approx(intensity[precision, levels[what.partition(" at ")[2]]], rel=1e-9), label
    if identifier in TENSOR and performance and dialect(version).ops_path:
        assert {name.partition(" ")[2].partition(" ")[0] for name in told} >= {"FP16"}, "no row for the standard type"


@pytest.mark.parametrize("version", VERSIONS)
def test_overview_says_what_its_dialect_can(version: str) -> None:
    made, nested = section(version, OVERVIEW), dialect(version).nested_expressions
    labels = {metric.Label.decode() for metric in made.message.Header.Metrics}
    giga = "G" if nested else ""
    assert {f"FP64 [{giga}FLOP/s]", f"FP32 [{giga}FLOP/s]", "L2 traffic", "DRAM traffic"} <= labels
    assert ("FP16 [GFLOP/s]" in labels) == nested  # an addition and a multiplication are more than one operator
    assert (
        [table.Label for table in reading.tables(made)] == [b"FP64 intensity", b"FP32 intensity", b"FP16 intensity"]
    ) == nested
    assert nested or not reading.tables(made)
