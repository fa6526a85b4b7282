"""The charts of our sections and the offline model say the same about a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline.chips import load_spec
from ncu_roofline.formats.sectionfile.charts import Chart, evaluate_charts
from ncu_roofline.model import Roofline, roofline
from tests import factory
from tests.generate.made import VERSIONS, collected, kernel_metrics, profiled, section

CHARTS = {
    "HierarchicalDoubleRooflineChart": ("fp64", "tensor.fp64"),
    "HierarchicalSingleRooflineChart": ("fp32",),
    "HierarchicalHalfRooflineChart": ("fp16",),
    "HierarchicalTensorRooflineChart": tuple(p.id for p in load_spec().precisions if p.kind == "tensor"),
}
CASES = [(v, identifier, capability) for v in VERSIONS for identifier in CHARTS for capability in profiled(v)]
# The report of a kernel is the same for many dialects; one of each kind is enough for the long list of tensor types.
CASES = [case for case in CASES if case[0] in ("base", "2022.3", "2024.2", "2025.4")]


def both(version: str, identifier: str, capability: tuple[int, int], folder: Path) -> tuple[Chart, Roofline]:
    """The chart as ncu draws it, and the model's view of a report with just the metrics that the section collects."""
    made = section(version, identifier)
    metrics = kernel_metrics(collected(made, capability), capability)
    (chart,) = evaluate_charts(made, metrics, capability)
    return chart, roofline(factory.report(folder / "made.ncu-rep", factory.kernel(metrics)))


@pytest.mark.sampled
@pytest.mark.parametrize(("version", "identifier", "capability"), CASES)
def test_points(version: str, identifier: str, capability: tuple[int, int], tmp_path: Path) -> None:
    chart, model = both(version, identifier, capability, tmp_path)
    spec = load_spec()
    labels = {p.id: p.label for p in spec.precisions}, {level.id: level.label for level in spec.levels}
    rows = model.points[model.points["precision"].isin(CHARTS[identifier])]
    rows = rows.assign(
        label=[f"{labels[0][p]} at {labels[1][m]}" for p, m in zip(rows["precision"], rows["level"], strict=True)]
    )
    for point in chart.points:
        match = rows[rows["label"] == point.label]
        assert len(match) == 1, point.label
        row = match.iloc[0]
        assert row["intensity"] == pytest.approx(point.intensity, rel=1e-9)
        assert row["performance"] == pytest.approx(point.work, rel=1e-9)
        assert row["bandwidth"] == pytest.approx(point.traffic, rel=1e-9)
        assert row["source"] == ("derived" if _derived(point.metrics) else "binding")
    drawn = {point.label for point in chart.points}
    parts = {p.id for p in spec.precisions if p.part_of and not p.disjoint}
    aside = {level.id for level in spec.levels if level.on_request}
    assert {row.label for row in rows.itertuples() if row.precision not in parts and row.level not in aside} <= drawn
    assert not any(label.endswith(spec.level(level).label) for label in drawn for level in aside)


@pytest.mark.sampled
@pytest.mark.parametrize(("version", "capability"), [(v, c) for v in ("base", "2024.2", "2025.4") for c in profiled(v)])
def test_the_light_tensor_section(version: str, capability: tuple[int, int], tmp_path: Path) -> None:
    """Its dots are the model's, or the one instruction family of chips that its dialect can't tell from others."""
    chart, model = both(version, "HierarchicalTensorLightRooflineChart", capability, tmp_path)
    label = {p.id: p.label for p in load_spec().precisions}
    told = {label[row.precision]: row.performance for row in model.points.itertuples() if row.precision in label}
    standard = told.get("Tensor FP16", 0.0)
    assert bool(chart.points) == bool(standard)
    for point in chart.points:
        if point.lacking:  # a sum of counters that the chip has not all: viewers draw what there is, which is of one family
            assert point.work in (pytest.approx(other, rel=1e-9) for other in told.values()), point.label
            continue
        assert point.work == pytest.approx(told.get(point.label.partition(" at ")[0], standard), rel=1e-9), point.label
    assert not standard or any(point.work == pytest.approx(standard, rel=1e-9) for point in chart.points)


def _derived(names: tuple[str, ...]) -> bool:
    return any("inst_executed_pipe_tensor" in name or "d_bytes_fill" in name for name in names)


@pytest.mark.sampled
@pytest.mark.parametrize(("version", "identifier", "capability"), CASES)
def test_roofs(version: str, identifier: str, capability: tuple[int, int], tmp_path: Path) -> None:
    chart, model = both(version, identifier, capability, tmp_path)
    roofs = dict(zip(model.roofs["roof"], model.roofs["value"], strict=True))
    labels = {level.label: level.id for level in load_spec().levels}
    for roof in chart.roofs:
        level = labels.get(roof.label.partition(" bandwidth")[0], "l1")
        if level in roofs:  # of a chip with unknown figures per SM the model draws no roof
            assert roof.peak_traffic == pytest.approx(roofs[level], rel=1e-9), roof.label
    works = {roof.peak_work for roof in chart.roofs}
    for name, value in roofs.items():
        precision, _, _ = name.rpartition(".")
        if {name, precision} & set(CHARTS[identifier]):
            assert any(value == pytest.approx(work, rel=1e-9) for work in works), name
