"""Charts and advice of annotated reports hold a launch against the roofs of the model; every byte of real reports is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ncu_roofline.chips import load_spec
from ncu_roofline.chips.spec import OVERVIEW_SECTION, TENSOR_SECTION
from ncu_roofline.formats.ceilings import Ceilings, read_ceilings
from ncu_roofline.formats.report import read_report
from ncu_roofline.formats.report.framing import open_raw
from ncu_roofline.formats.sectionfile.charts import evaluate_charts
from ncu_roofline.model import roofline
from ncu_roofline.plugin.annotate import stripped
from ncu_roofline.plugin.nvrules.runner import plain_text, section_identifier
from tests.annotate.helpers import OWN, added, annotated, assert_kept
from tests.cli.command import Command
from tests.factory import complete, kernel, report

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "ncu_roofline" / "data" / "demo"
MEASURED = ROOT / "tests" / "bench" / "measured_h100" / "ceilings.json"
GPP = DEMO / "gpp-v100-ceilings.json"


def check_charts(source: Path, folder: Path, given: Ceilings | None = None) -> int:
    """Points and share of every chart are the model's, and its verdict is told first; how many charts there are.

    Annotating again changes nothing, and the report as collected comes back.
    """
    target, again = folder / "out.ncu-rep", folder / "again.ncu-rep"
    for before, after in ((source, target), (target, again)):
        annotated(before, after, [given] if given else [])
    assert target.read_bytes() == again.read_bytes(), source.name
    assert b"".join(stripped(open_raw(target))) == source.read_bytes(), source.name
    result, checked = roofline(source, given), 0
    points = result.points
    reasons = dict(zip(result.kernels.launch, result.kernels.reason, strict=True))
    with read_report(target) as opened:
        for index, one in enumerate(opened.kernels):
            capability = (one.device.compute_capability if one.device else None) or (0, 0)
            verdict = added(one).rules[0]
            assert verdict.identifier == f"{OWN}Verdict"
            assert verdict.messages[0].text.lower().startswith(reasons[index].lower())
            for section in added(one).sections.values():
                for chart in evaluate_charts(section, one.metrics, capability):
                    short = points.precision.str.replace(".", "")
                    mine = points[(points.launch == index) & (short == section.identifier.removeprefix(OWN).lower())]
                    assert len(mine) == len(chart.points) > 0
                    assert [p.work for p in chart.points] == pytest.approx(list(mine.performance), rel=1e-9)
                    assert [p.intensity for p in chart.points] == pytest.approx(list(mine.intensity), rel=1e-9)
                    assert not chart.dropped
                    for row in mine[mine.binds != ""].itertuples():
                        share = one.metrics[f"rl__attained_{row.precision.replace('.', '_')}.pct"]
                        assert share == pytest.approx(100 * row.binding_fraction)
                    checked += 1
    return checked


def test_charts_of_made_up_and_demo_reports(tmp_path: Path) -> None:
    assert check_charts(report(tmp_path / "in.ncu-rep", kernel(complete())), tmp_path) == 1
    assert check_charts(DEMO / "gpp-v100.ncu-rep", tmp_path, read_ceilings(GPP)) == 6


@pytest.mark.reports
@pytest.mark.exhaustive
def test_real_reports(real_reports: dict[str, Path], tmp_path: Path) -> None:
    charts = 0
    for source in real_reports.values():
        charts += check_charts(source, tmp_path)
        assert_kept(source, tmp_path / "out.ncu-rep")
    assert charts >= 36


@pytest.mark.reports
@pytest.mark.parametrize("names", ["bench.fp64.fma", "gsrb", pytest.param("*", marks=pytest.mark.exhaustive)])
def test_reports_of_an_h100_that_hold_our_sections(names: str, h100_reports: Path, tmp_path: Path) -> None:
    """Nothing is there twice."""
    sources, target = sorted(h100_reports.glob(f"{names}.ncu-rep")), tmp_path / "out.ncu-rep"
    assert sum(check_charts(source, tmp_path, read_ceilings(MEASURED)) for source in sources) >= len(sources)
    for source in sources:
        check_charts(source, tmp_path)
        drawn = {load_spec().sections.get(one, TENSOR_SECTION) for one in annotated(source, target).charts}
        with read_report(source) as old, read_report(target) as new:
            for before, after in zip(old.kernels, new.kernels, strict=True):
                had, has = ({section_identifier(data) for data in one.sections} for one in (before, after))
                assert had - has == had & {*drawn, OVERVIEW_SECTION}
                spoken = [rule.identifier.removeprefix(OWN).removeprefix("NcuRoofline") for rule in after.rule_results]
                assert len(spoken) == len(set(spoken))
                ours = [(rule.identifier, said.type) for rule in added(after).rules for said in rule.messages]
                assert {name for name, kind in ours if kind in ("ok", "none")} <= {f"{OWN}Verdict"}


def test_advice_is_that_of_the_command(run: Command, tmp_path: Path) -> None:
    """`advise` and `annotate`, with the same ceilings."""
    words = (DEMO / "gpp-v100.ncu-rep", "--ceilings", GPP)
    advised = json.loads(run("advise", *words, "--all-findings", "--json").out)
    assert run("annotate", *words, "-o", tmp_path / "out.ncu-rep").code == 0
    with read_report(tmp_path / "out.ncu-rep") as opened:
        said = [message for one in opened.kernels for rule in added(one).rules for message in rule.messages]
    plain = {plain_text(message.text) for message in said}
    assert any("(measured)" in text for text in plain)
    assert plain <= {one["text"] for one in advised["findings"] + advised["without_advice"]}
