"""Sections embedded in real reports, against what ncu recorded while it profiled."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ncu_roofline.formats.report import Kernel, read_report
from ncu_roofline.formats.sectionfile.charts import evaluate_charts, parse_expression
from ncu_roofline.formats.sectionfile.classify import classify
from ncu_roofline.formats.sectionfile.section import Section, parse_section
from tests.sectionfile import reading
from tests.sectionfile.reading import needed_metrics

pytestmark = pytest.mark.reports


def _sections(reports: dict[str, Path]) -> Iterator[tuple[Kernel, tuple[int, int], Section]]:
    for path in reports.values():
        with read_report(path) as report:
            for kernel in report.kernels:
                for data in kernel.sections:
                    yield kernel, report.device.compute_capability, parse_section(data)


def test_definitions_give_what_was_recorded(real_reports: dict[str, Path]) -> None:
    compared = 0
    for kernel, _, section in _sections(real_reports):
        for name, one in reading.definitions(section).items():
            recorded = kernel.metrics.get(name)
            expression = parse_expression(one)
            # Values with instances are computed per instance and added up: the sum of truncated quotients is another number.
            if recorded is None or any(kernel.metrics.instances(name) for name in expression.names):
                continue
            got = expression.evaluate(kernel.metrics.get)
            assert isinstance(got, float | int)
            assert isinstance(recorded, float | int)
            assert type(got) is type(recorded)
            assert got == recorded or (math.isnan(got) and math.isnan(recorded)), (one, got, recorded)
            compared += 1
    assert compared > 100


def test_definitions_replace_recorded_values(real_reports: dict[str, Path]) -> None:
    compared = 0
    for kernel, capability, section in _sections(real_reports):
        defined = set(reading.definitions(section))
        inputs = {name: value for name, value in kernel.metrics.items() if name not in defined}
        for with_all, without in zip(
            evaluate_charts(section, kernel.metrics, capability), evaluate_charts(section, inputs, capability), strict=True
        ):
            pairs = zip((*with_all.roofs, *with_all.points), (*without.roofs, *without.points), strict=True)
            for one, other in pairs:
                assert one.computed == ()
                assert set(other.computed) == defined & set(one.metrics)
                assert replace(other, computed=()) == one
                compared += bool(other.computed)
    assert compared > 50


def test_only_needed_metrics_are_needed(real_reports: dict[str, Path]) -> None:
    charts = 0
    for kernel, capability, section in _sections(real_reports):
        every = evaluate_charts(section, kernel.metrics, capability)
        subset = {name: kernel.metrics[name] for name in needed_metrics(section, capability) if name in kernel.metrics}
        assert every == evaluate_charts(section, subset, capability)
        charts += len(every)
    assert charts > 50


def test_stock_charts_are_classified_as_their_labels_say(real_reports: dict[str, Path]) -> None:
    words = {"Double": "fp64", "Single": "fp32", "Half": "fp16", "Tensor": "tensor", "DRAM": "dram", "L2": "l2", "L1": "l1"}
    checked = 0
    for kernel, capability, section in _sections(real_reports):
        for chart in evaluate_charts(section, kernel.metrics, capability):
            for one in (*chart.roofs, *chart.points):
                said = {
                    words[word] for word in re.findall(r"Double|Single|Half|Tensor|DRAM|L1|L2", f"{chart.label} {one.label}")
                }
                precision, level = classify(one.metrics)
                assert said - {"dram"} == {precision, level} - {"dram"}
                assert level == "dram" or "dram" not in said
                checked += 1
    assert checked > 100
