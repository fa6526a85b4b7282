"""Every real report: all its bytes are kept, twice is once, and our own reader sees the same and ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline.chips import load_spec
from ncu_roofline.chips.spec import OVERVIEW_SECTION, TENSOR_SECTION
from ncu_roofline.formats.report import read_report
from ncu_roofline.formats.report.framing import open_raw
from ncu_roofline.formats.sectionfile.charts import evaluate_charts
from ncu_roofline.model import roofline
from ncu_roofline.plugin.annotate import stripped
from ncu_roofline.plugin.nvrules.runner import section_identifier
from tests.annotate.helpers import OWN, PREFIX, added, annotated, assert_kept

pytestmark = pytest.mark.reports


@pytest.mark.exhaustive
def test_all_real_reports(real_reports: dict[str, Path], tmp_path: Path) -> None:
    charts = 0
    for name, source in real_reports.items():
        once, twice = tmp_path / "once.ncu-rep", tmp_path / "twice.ncu-rep"
        account = annotated(source, once)
        charts += sum(account.charts.values())
        assert_kept(source, once)
        annotated(once, twice)
        assert once.read_bytes() == twice.read_bytes(), name
        assert b"".join(stripped(open_raw(once))) == source.read_bytes(), name
        check_reader(source, once)
    assert charts >= 36


@pytest.mark.sampled("gsrb", "bench.fp64.fma", "bench.*.triad", "bench.*.int8.*")
@pytest.mark.parametrize("names", ["gsrb", "bench.fp64.fma", "bench.*.triad", "bench.*.int8.*", "*"])
def test_reports_that_hold_our_sections(names: str, h100_reports: Path, tmp_path: Path) -> None:
    """Nothing is there twice, annotating again changes nothing, and the report as collected comes back."""
    sources = sorted(h100_reports.glob(f"{names}.ncu-rep"))
    assert sources
    for source in sources:
        check_replaced(source, tmp_path / "once.ncu-rep", tmp_path / "twice.ncu-rep")


def check_replaced(source: Path, once: Path, twice: Path) -> None:
    account = annotated(source, once)
    annotated(once, twice)
    assert once.read_bytes() == twice.read_bytes()
    assert b"".join(stripped(open_raw(once))) == source.read_bytes()
    drawn = {load_spec().sections.get(one, TENSOR_SECTION) for one in account.charts}
    with read_report(source) as old, read_report(once) as new:
        for before, after in zip(old.kernels, new.kernels, strict=True):
            had, has = ({section_identifier(data) for data in one.sections} for one in (before, after))
            assert had - has == had & {*drawn, OVERVIEW_SECTION}
            spoken = [rule.identifier.removeprefix(OWN).removeprefix("NcuRoofline") for rule in after.rule_results]
            assert len(spoken) == len(set(spoken))
            assert [rule.identifier for rule in added(after).rules][:1] == [f"{OWN}Verdict"]
            fine = [rule.identifier for rule in added(after).rules for said in rule.messages if said.type in ("ok", "none")]
            assert set(fine) <= {f"{OWN}Verdict"}


def check_reader(source: Path, target: Path) -> None:
    with read_report(source) as old, read_report(target) as new:
        assert old.session == new.session
        assert old.device == new.device
        for before, after in zip(old.kernels, new.kernels, strict=True):
            assert before.launch == after.launch
            metrics = {key: value for key, value in after.metrics.items() if not key.startswith(PREFIX)}
            assert str(metrics) == str(dict(before.metrics))  # as text: NaN is NaN
            assert after.sections[: len(before.sections)] == before.sections
            assert after.rule_results[: len(before.rule_results)] == before.rule_results
            assert all(one.identifier.startswith(OWN) for one in after.rule_results[len(before.rule_results) :])
            names = set(added(after).sections) | {one.identifier for one in map(_parsed, before.sections)}
            assert all(one.section in names for one in added(after).rules)


def _parsed(data: bytes) -> object:
    from ncu_roofline.formats.sectionfile.section import parse_section

    return parse_section(data)


def test_charts_are_the_models(real_reports: dict[str, Path], tmp_path: Path) -> None:
    checked = 0
    for source in real_reports.values():
        target = tmp_path / "out.ncu-rep"
        annotated(source, target, rules=[])
        rows = roofline(source).points
        with read_report(target) as opened:
            for index, one in enumerate(opened.kernels):
                capability = one.device.compute_capability if one.device else None
                for section in added(one).sections.values():
                    for chart in evaluate_charts(section, one.metrics, capability or (0, 0)):
                        assert not chart.dropped
                        mine = rows[
                            (rows.launch == index)
                            & (rows.precision.str.replace(".", "") == section.identifier.removeprefix(OWN).lower())
                        ]
                        assert len(mine) == len(chart.points) > 0
                        assert [p.work for p in chart.points] == pytest.approx(list(mine.performance), rel=1e-9)
                        assert [p.intensity for p in chart.points] == pytest.approx(list(mine.intensity), rel=1e-9)
                        checked += 1
    assert checked >= 36
