"""Sections embedded in real reports, against what ncu recorded while it profiled."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ncu_roofline.formats.report import Kernel, read_report
from ncu_roofline.formats.sectionfile.charts import evaluate_charts, parse_expression
from ncu_roofline.formats.sectionfile.classify import classify
from ncu_roofline.formats.sectionfile.section import Section, parse_section
from tests.sectionfile import reading

WORDS = {"Double": "fp64", "Single": "fp32", "Half": "fp16", "Tensor": "tensor", "DRAM": "dram", "L2": "l2", "L1": "l1"}


def as_recorded(kernel: Kernel, section: Section) -> int:
    """Derived metrics give what ncu recorded of them; how many there were."""
    compared = 0
    for name, text in reading.definitions(section).items():
        recorded, expression = kernel.metrics.get(name), parse_expression(text)
        # Values with instances are computed per instance and added up: the sum of truncated quotients is another number.
        if recorded is None or any(kernel.metrics.instances(name) for name in expression.names):
            continue
        got = expression.evaluate(kernel.metrics.get)
        assert isinstance(got, float | int)
        assert type(got) is type(recorded)
        assert got == recorded or (math.isnan(got) and math.isnan(float(recorded))), (text, got, recorded)
        compared += 1
    return compared


@pytest.mark.reports
@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_charts_of_real_reports(real_reports: dict[str, Path], step: int) -> None:
    """Derived metrics; the same charts without what ncu derived; lines are what their labels say."""
    derived = replaced = labelled = 0
    for path in [*real_reports.values()][::step]:
        with read_report(path) as report:
            sections = [(kernel, parse_section(data)) for kernel in report.kernels for data in kernel.sections]
            for kernel, section in sections:
                derived += as_recorded(kernel, section)
                defined, capability = set(reading.definitions(section)), report.device.compute_capability
                inputs = {name: value for name, value in kernel.metrics.items() if name not in defined}
                both = (evaluate_charts(section, metrics, capability) for metrics in (kernel.metrics, inputs))
                for chart, without in zip(*both, strict=True):
                    for one, other in zip((*chart.roofs, *chart.points), (*without.roofs, *without.points), strict=True):
                        assert (one.computed, set(other.computed)) == ((), defined & set(one.metrics))
                        assert replace(other, computed=()) == one
                        replaced += bool(other.computed)
                        said = {WORDS[word] for word in re.findall("|".join(WORDS), f"{chart.label} {one.label}")}
                        precision, level = classify(one.metrics)
                        assert said - {"dram"} == {precision, level} - {"dram"}
                        assert level == "dram" or "dram" not in said
                        labelled += 1
    assert not real_reports or min(derived, replaced, labelled) > 20
