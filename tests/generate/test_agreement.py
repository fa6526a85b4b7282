"""The charts, rows and measured roofs of our sections and the offline model say the same about a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline.chips import load_spec
from ncu_roofline.formats.sectionfile.charts import Chart, evaluate_charts, parse_expression
from ncu_roofline.formats.sectionfile.section import Section, arch_number
from ncu_roofline.model import Roofline, roofline
from tests import factory
from tests.generate.made import IDENTIFIERS, collected, dialect, kernel_metrics, profiled, section
from tests.sectionfile import reading

SPEC = load_spec()
LABELS = {one.id: one.label for one in (*SPEC.precisions, *SPEC.levels)}
LEVELS = {level.label: level.id for level in SPEC.levels}
TENSOR, LIGHT = "HierarchicalTensorRooflineChart", "HierarchicalTensorLightRooflineChart"
CHARTS = {
    "HierarchicalDoubleRooflineChart": ("fp64", "tensor.fp64"),
    "HierarchicalSingleRooflineChart": ("fp32",),
    "HierarchicalHalfRooflineChart": ("fp16",),
    "HierarchicalDoubleSingleRooflineChart": ("fp64", "fp32"),
    TENSOR: tuple(p.id for p in SPEC.precisions if p.kind == "tensor"),
}
# The report of a kernel is the same for many dialects: one of each kind; by default each chip in one of them.
_VERSIONS = ("base", "2022.3", "2024.2", "2025.4")
_CASES = [(version, chip) for version in _VERSIONS for chip in profiled(version)]
_DEFAULT = {case[1]: case for number, case in enumerate(_CASES) if number % 3 or case[1] not in profiled("2022.3")}
CASES = [
    pytest.param(
        *case, marks=() if case in _DEFAULT.values() else pytest.mark.exhaustive, id="{}-{}.{}".format(case[0], *case[1])
    )
    for case in _CASES
]


@pytest.mark.parametrize(("version", "capability"), CASES)
def test_sections_say_what_the_model_says(version: str, capability: tuple[int, int], tmp_path: Path) -> None:
    """Of a report with just the metrics that the section collects."""
    for identifier in IDENTIFIERS:
        made = section(version, identifier)
        metrics = kernel_metrics(collected(made, capability), capability)
        model = roofline(factory.report(tmp_path / "made.ncu-rep", factory.kernel(metrics)))
        check_rows(version, made, metrics, capability, model)
        for chart in evaluate_charts(made, metrics, capability):
            if identifier in CHARTS:
                check_chart(chart, CHARTS[identifier], model)
            elif identifier == LIGHT:
                check_light(chart, model)


def check_chart(chart: Chart, precisions: tuple[str, ...], model: Roofline) -> None:
    mine = model.points[model.points["precision"].isin(precisions)].itertuples()
    rows = {f"{LABELS[row.precision]} at {LABELS[row.level]}": row for row in mine}
    for point in chart.points:
        row, drawn_at = rows[point.label], (point.intensity, point.work, point.traffic)
        assert (row.intensity, row.performance, row.bandwidth) == pytest.approx(drawn_at, rel=1e-9)
        derived = any("inst_executed_pipe_tensor" in name or "d_bytes_fill" in name for name in point.metrics)
        assert row.source == ("derived" if derived else "binding")
    drawn = {point.label for point in chart.points}
    parts = {p.id for p in SPEC.precisions if p.part_of and not p.disjoint}
    aside = {level.id for level in SPEC.levels if level.on_request}
    assert {label for label, row in rows.items() if row.precision not in parts and row.level not in aside} <= drawn
    assert not any(label.endswith(LABELS[level]) for label in drawn for level in aside)

    roofs = dict(zip(model.roofs["roof"], model.roofs["value"], strict=True))
    for roof in chart.roofs:
        level = LEVELS.get(roof.label.partition(" bandwidth")[0], "l1")
        if level in roofs:  # of a chip with unknown figures per SM the model draws no roof
            assert roof.traffic == pytest.approx(roofs[level], rel=1e-9), roof.label
    for name, value in roofs.items():
        beside = (name, precisions[-1]) == ("fp64.nofma", "fp32")  # of a precision beside another the highest roof is drawn
        if {name, name.rpartition(".")[0]} & set(precisions) and not beside:
            assert any(value == pytest.approx(roof.work, rel=1e-9) for roof in chart.roofs), name


def check_light(chart: Chart, model: Roofline) -> None:
    """Its dots are the model's, or the one instruction family of chips that its dialect can't tell from others."""
    told = {LABELS[row.precision]: row.performance for row in model.points.itertuples() if row.precision in LABELS}
    standard = told.get("Tensor FP16", 0.0)
    assert bool(chart.points) == bool(standard)
    for point in chart.points:
        if point.lacking:  # a sum of counters that the chip has not all: viewers draw what there is, which is of one family
            assert point.work in (pytest.approx(other, rel=1e-9) for other in told.values()), point.label
            continue
        assert point.work == pytest.approx(told.get(point.label.partition(" at ")[0], standard), rel=1e-9), point.label
    assert not standard or any(point.work == pytest.approx(standard, rel=1e-9) for point in chart.points)


def check_rows(version: str, made: Section, metrics: factory.Metrics, capability: tuple[int, int], model: Roofline) -> None:
    points = [row for row in model.points.itertuples() if row.precision in LABELS]
    performance = {LABELS[row.precision]: row.performance for row in points}
    intensity = {(LABELS[row.precision], row.level): row.intensity for row in points}
    definitions, told = {name: parse_expression(one) for name, one in reading.definitions(made).items()}, set()
    for label, name in reading.rows(made, arch_number(capability)):
        value = definitions[name].evaluate(metrics.get) if name in definitions else metrics.get(name)
        what, _, unit = label.rpartition(" [")
        precision = what.partition(", compute")[0].partition(" intensity at ")[0]
        if unit.endswith("OP/s]") and value is not None:
            told.add(precision)
            if precision in performance:  # of an instruction family that the chip has alone the model has no point of its own
                assert value * (1e9 if unit.startswith("G") else 1) == pytest.approx(performance[precision], rel=1e-9), label
        elif unit == "FLOP/byte]" and value is not None:
            assert value == pytest.approx(intensity[precision, LEVELS[what.partition(" at ")[2]]], rel=1e-9), label
    if made.identifier in (TENSOR, LIGHT) and performance and dialect(version).ops_path:
        assert {name.partition(" ")[2].partition(" ")[0] for name in told} >= {"FP16"}, "no row for the standard type"
