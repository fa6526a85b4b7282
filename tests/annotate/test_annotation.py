"""Annotated reports: numbers, charts, advice, measured roofs; made by hand, exact."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips import load_spec
from ncu_roofline.formats.ceilings import Ceilings, read_ceilings
from ncu_roofline.formats.report import RuleMessage, RuleResult, read_report
from ncu_roofline.formats.report.framing import open_raw
from ncu_roofline.formats.report.reader import MESSAGE_TYPES, encode_rule
from ncu_roofline.formats.sectionfile.charts import Chart, evaluate_charts
from ncu_roofline.formats.sectionfile.section import RELEASES, FieldType, messages, parse_section, schema
from ncu_roofline.formats.wire import build_messages, split
from ncu_roofline.model import roofline
from ncu_roofline.plugin.annotate import OVERVIEW, identifier, stripped
from tests.annotate.helpers import OWN, added, annotated, assert_kept
from tests.factory import A100, H100, NO_WORK, complete, flops, kernel, report, timing, traffic
from tests.sectionfile.reading import tables, text
from tests.sectionfile.section_factory import section

RULE = """
import NvRules
def get_identifier():
    return "NcuRooflineSays"
def get_name():
    return "Says"
def get_section_identifier():
    return "HierarchicalDoubleRooflineChart"
def apply(handle):
    fe = NvRules.get_context(handle).frontend()
    fe.message(NvRules.IFrontend.MsgType_MSG_OPTIMIZATION, "See @section:HierarchicalDoubleRooflineChart:this@.", "Title")
    fe.message(NvRules.IFrontend.MsgType_MSG_NONE, "Collect this.", "Metrics missing")
"""


@pytest.fixture
def rule(tmp_path: Path) -> Path:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "says.py").write_text(RULE)
    return folder


def ceilings(
    folder: Path, device: str = str(A100["device__attribute_display_name"]), cc: str = "8.0", **values: float
) -> Ceilings:
    units = {name: "FLOP/s" if name.startswith("fp") else "B/s" for name in values}
    entries = [{"id": name.replace("_", "."), "value": value, "unit": units[name]} for name, value in values.items()]
    document = {"schema": "ert-ceilings", "schema_version": 1, "device": {"name": device, "cc": cc}, "ceilings": entries}
    path = folder / "ceilings.json"
    path.write_text(json.dumps(document))
    return read_ceilings(path)


def chart_of(path: Path, precision: str, index: int = 0) -> Chart:
    """The chart of a precision with its numbers."""
    with read_report(path) as opened:
        one = opened.kernels[index]
        section = added(one).sections[identifier(precision)]
        device = one.device
        assert device
        assert device.compute_capability
        (chart,) = evaluate_charts(section, one.metrics, device.compute_capability)
    return chart


def test_numbers_and_chart(tmp_path: Path) -> None:
    source, target = report(tmp_path / "in.ncu-rep", kernel(complete())), tmp_path / "out.ncu-rep"
    account = annotated(source, target)
    assert_kept(source, target)
    with read_report(target) as opened:
        found = added(opened.kernels[0])
    expected = {
        "rl__clock": 1.41e9,
        "rl__work_fp64": 1e9,
        "rl__work_rate_fp64": 1e12,
        "rl__performance_fp64": 1000.0,
        "rl__work_fp32": 0.0,
        "rl__bytes_tex": 1e9,
        "rl__bytes_rate_tex": 1e12,
        "rl__bytes_l2": 5e8,
        "rl__bytes_dram": 2.5e8,
        "rl__peak_fp64_fma": 64 * 108,
        "rl__peak_fp64_nofma": 32 * 108,
        "rl__peak_tex": 128 * 108,
        "rl__intensity_fp64_tex": 1.0,
        "rl__intensity_fp64_l2": 2.0,
        "rl__intensity_fp64_dram": 4.0,
    }
    assert {name: found.metrics[name] for name in expected} == pytest.approx(expected, rel=1e-12)
    assert str(found.metrics["rl__annotated_by"]).startswith("ncu-roofline ")
    assert sorted(found.sections) == [f"{OWN}FP64", f"{OWN}Overview"]
    assert account.charts == account.worked == {"fp64": 1}
    assert not [name for name in found.metrics if "fp32" in name and not {"work", "performance", "from"} & set(name.split("_"))]


def test_the_chart_is_the_model(tmp_path: Path) -> None:
    source, target = report(tmp_path / "in.ncu-rep", kernel(complete())), tmp_path / "out.ncu-rep"
    annotated(source, target)
    model, chart = roofline(source), chart_of(target, "fp64")
    points = model.points.set_index("level")
    assert [point.label.partition(":")[0] for point in chart.points] == ["L1/TEX", "L2", "DRAM"]
    for point, level in zip(chart.points, ("l1", "l2", "dram"), strict=True):
        assert point.work == pytest.approx(points.performance[level], rel=1e-12)
        assert point.intensity == pytest.approx(points.intensity[level], rel=1e-12)
    roofs = dict(zip(model.roofs.roof, model.roofs.value, strict=True))
    nofma, *levels = chart.roofs
    assert (nofma.peak_work, nofma.peak_traffic) == pytest.approx((roofs["fp64.nofma"], roofs["dram"]), rel=1e-12)
    assert [one.peak_work for one in levels] == pytest.approx([roofs["fp64.fma"]] * 3, rel=1e-12)
    assert [one.peak_traffic for one in levels] == pytest.approx([roofs[name] for name in ("l1", "l2", "dram")], rel=1e-12)
    assert not chart.dropped
    with read_report(target) as opened:
        metrics = opened.kernels[0].metrics
        assert metrics["rl__bound_by_fp64"] == dict(zip(model.roofs.roof, model.roofs.label, strict=True))[points.binds["l1"]]
        assert metrics["rl__attained_fp64.pct"] == pytest.approx(100 * points.binding_fraction["l1"], rel=1e-12)


def test_nothing_changes_for_our_own_model(tmp_path: Path) -> None:
    launches = [
        kernel(complete()),
        kernel(complete(H100), "second()"),
        kernel({**A100, **timing(), **NO_WORK, **traffic(1, 1, 1)}),
    ]
    source, target = report(tmp_path / "in.ncu-rep", *launches), tmp_path / "out.ncu-rep"
    annotated(source, target)
    before, after = roofline(source), roofline(target)
    for name in ("points", "roofs", "kernels"):
        mine, theirs = getattr(before, name).drop(columns="report"), getattr(after, name).drop(columns="report")
        assert mine.equals(theirs)


def test_texts_name_metrics_weights_and_origin(tmp_path: Path) -> None:
    source, target = report(tmp_path / "in.ncu-rep", kernel(complete())), tmp_path / "out.ncu-rep"
    annotated(source, target)
    chart = chart_of(target, "fp64")
    work = (
        "smsp__sass_thread_inst_executed_op_d[add|mul]_pred_on.sum + "
        "2 x smsp__sass_thread_inst_executed_op_dfma_pred_on.sum (binding)"
    )
    assert chart.points[1].label == f"L2: bytes = 32 x lts__t_sectors_srcunit_tex.sum (binding); work = {work}"
    assert "at the profiled SM clock" in chart.roofs[1].label
    assert "128 per SM and cycle (architecture)" in chart.roofs[1].label
    with read_report(target) as opened:
        sections, metrics = added(opened.kernels[0]).sections, dict(opened.kernels[0].metrics)
    (table,) = tables(sections[OVERVIEW])
    shown = {one.Label.decode(): metrics[one.Name.decode()] for one in table.Metrics}
    assert shown["FP64 work"] == work
    assert shown["L2 traffic"] == "32 x lts__t_sectors_srcunit_tex.sum (binding)"
    assert not [one for one in sections.values() if "__" in text(one, "Description")], "a wall of metric names"
    assert all(12 <= one.message.Order < 20 for one in sections.values())


def test_forms_of_counters_are_told(tmp_path: Path) -> None:
    metrics = {**complete(), "dram__bytes.sum.per_second": 3e11}
    del metrics["dram__bytes.sum"]
    source, target = report(tmp_path / "in.ncu-rep", kernel(metrics)), tmp_path / "out.ncu-rep"
    annotated(source, target)
    assert "DRAM: bytes = dram__bytes.sum.per_second x run time (binding)" in chart_of(target, "fp64").points[2].label


def test_measured_roofs_are_constants_beside_the_theoretical_ones(tmp_path: Path) -> None:
    source, target = report(tmp_path / "in.ncu-rep", kernel(complete())), tmp_path / "out.ncu-rep"
    given = ceilings(tmp_path, fp64_fma=8e12, fp64_nofma=4e12, l2_read=4e12, dram_read=1.2e12)
    annotated(source, target, [given])
    chart = chart_of(target, "fp64")
    measured = [one for one in chart.roofs if one.label.startswith("measured: ")]
    assert [(one.peak_work, one.peak_traffic) for one in measured] == [(4e12, 1.2e12), (8e12, 4e12), (8e12, 1.2e12)]
    assert [one.metrics for one in measured] == [()] * 3
    assert len(chart.roofs) == 4 + 3
    assert "ceilings.json, NVIDIA A100-SXM4-40GB" in measured[0].label
    with read_report(target) as opened:
        section = added(opened.kernels[0]).sections[identifier("fp64")]
        roofs = section.charts[0][0].RooflineChart.Rooflines
        assert sum(one.PeakTraffic.HasField("Constant") for one in roofs) == 3
        assert "Lighter roofs are measured: ceilings.json, NVIDIA A100-SXM4-40GB." in text(section, "Description")
        share = opened.kernels[0].metrics["rl__attained_fp64.pct"]
    points = roofline(source, given).points
    assert share == pytest.approx(100 * points.binding_fraction[0])


def test_a_measured_roof_stands_at_the_clock_of_the_launch(tmp_path: Path) -> None:
    """In the chart as in the share that is written beside it."""
    source, target = report(tmp_path / "in.ncu-rep", kernel(complete())), tmp_path / "out.ncu-rep"
    clock = float(roofline(source).kernels.clock_profiled[0])
    known = ceilings(tmp_path, fp64_fma=8e12, dram_read=1.2e12)
    faster = {name: replace(one, clock=1.25 * clock) for name, one in known.by_id.items()}
    given = replace(known, by_id=faster)
    annotated(source, target, [given])
    measured = [one for one in chart_of(target, "fp64").roofs if one.label.startswith("measured: ")]
    assert max(one.peak_work for one in measured) == pytest.approx(8e12 / 1.25)
    assert any("scaled to this launch's clock" in one.label for one in measured)
    assert min(one.peak_traffic for one in measured) == 1.2e12  # device memory has a clock of its own
    with read_report(target) as opened:
        share = opened.kernels[0].metrics["rl__attained_fp64.pct"]
    assert share == pytest.approx(100 * roofline(source, given).points.binding_fraction[0])


def test_partly_measured(tmp_path: Path) -> None:
    """What was not measured is theoretical, so that every measured number is seen."""
    source, target = report(tmp_path / "in.ncu-rep", kernel(complete())), tmp_path / "out.ncu-rep"
    annotated(source, target, [ceilings(tmp_path, dram_read=1.2e12)])
    chart = chart_of(target, "fp64")
    theory = chart.roofs[1].peak_work
    measured = [(one.peak_work, one.peak_traffic) for one in chart.roofs if one.label.startswith("measured: ")]
    assert measured == [(theory / 2, 1.2e12), (theory, 1.2e12)]
    annotated(source, target, [ceilings(tmp_path, fp64_fma=8e12)])
    chart = chart_of(target, "fp64")
    measured = [(one.peak_work, one.peak_traffic) for one in chart.roofs if one.label.startswith("measured: ")]
    assert measured == [(8e12, one.peak_traffic) for one in chart.roofs[1:4]]


def test_ceilings_of_another_gpu(tmp_path: Path) -> None:
    source = report(tmp_path / "in.ncu-rep", kernel(complete()))
    with pytest.raises(RooflineError, match="Cannot use ceilings"):
        annotated(source, tmp_path / "out.ncu-rep", [ceilings(tmp_path, "NVIDIA H100", "9.0", fp64_fma=1e12)])
    assert not (tmp_path / "out.ncu-rep").exists()


def test_once_is_as_often(tmp_path: Path) -> None:
    launches = [kernel(complete()), kernel(complete(H100)), kernel({**A100, **timing(), "x.sum": 1})]
    source = report(tmp_path / "in.ncu-rep", *launches)
    names = [tmp_path / f"{number}.ncu-rep" for number in range(4)]
    given = ceilings(tmp_path, fp64_fma=8e12)
    annotated(source, names[0])
    annotated(names[0], names[1])
    annotated(names[0], names[2], [given])
    annotated(source, names[3], [given])
    once, twice, measured_after, measured = (name.read_bytes() for name in names)
    assert once == twice
    assert measured == measured_after != once
    annotated(names[2], names[2])  # in place, too
    assert names[2].read_bytes() == once


def test_launches_without_work_time_or_known_chip(tmp_path: Path) -> None:
    unknown = {**complete(), "device__attribute_compute_capability_major": 6}
    no_time = {name: value for name, value in complete().items() if name != "gpu__time_duration.sum"}
    idle = {**A100, **timing(), **NO_WORK, **traffic(32, 1, 32)}
    launches = [kernel(unknown), kernel(no_time), kernel(idle), kernel({**A100, "x.sum": 1})]
    source, target = report(tmp_path / "in.ncu-rep", *launches), tmp_path / "out.ncu-rep"
    account = annotated(source, target)
    assert_kept(source, target)
    assert not account.charts
    with read_report(target) as opened:
        found = [added(one) for one in opened.kernels]
    assert [sorted(one.sections) for one in found] == [[OVERVIEW]] * 4
    assert sorted(found[0].metrics) == sorted(found[3].metrics) == ["rl__annotated_by"]
    assert found[1].metrics["rl__work_fp64"] == 1e9
    assert "rl__work_rate_fp64" not in found[1].metrics
    assert (found[2].metrics["rl__work_fp64"], found[2].metrics["rl__bytes_tex"]) == (0.0, 32.0)


def test_work_without_traffic_has_no_chart(tmp_path: Path) -> None:
    metrics = {**A100, **timing(), **flops("d", fma=1000)}
    source, target = report(tmp_path / "in.ncu-rep", kernel(metrics)), tmp_path / "out.ncu-rep"
    account = annotated(source, target)
    assert (account.worked, account.charts) == ({"fp64": 1}, {})
    with read_report(target) as opened:
        section = added(opened.kernels[0]).sections[identifier("fp64")]
    assert not section.charts
    assert "No counter of the report gives the traffic of L1/TEX, L2, DRAM." in text(section, "Description")


@pytest.mark.sampled("nan", "-1.0")
@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, 1e308, 5e-324])
def test_odd_numbers_are_left_out(tmp_path: Path, value: float) -> None:
    counters = {name: value for name, old in complete().items() if "attribute" not in name and not isinstance(old, str)}
    source, target = report(tmp_path / "in.ncu-rep", kernel({**complete(), **counters})), tmp_path / "out.ncu-rep"
    annotated(source, target)
    with read_report(target) as opened:
        numbers = [one for one in added(opened.kernels[0]).metrics.values() if not isinstance(one, str)]
    assert all(map(math.isfinite, numbers))


def test_rules(tmp_path: Path, rule: Path) -> None:
    source = report(tmp_path / "in.ncu-rep", kernel(complete()), kernel({**A100, **timing()}))
    account = annotated(source, tmp_path / "out.ncu-rep", rules=[rule])
    with read_report(tmp_path / "out.ncu-rep") as opened:
        (first,), (second,) = (added(one).rules for one in opened.kernels)
    assert (first.identifier, first.name, first.section) == (f"{OWN}Says", "Says", f"{OWN}FP64")
    assert [(one.type, one.text) for one in first.messages] == [("optimization", f"See @section:{OWN}FP64:this@.")]
    assert second.section == OVERVIEW  # it has no FP64 section
    assert account.messages == {"Says": 2}


def test_a_type_that_old_releases_know_stands_before_one_that_they_refuse() -> None:
    """Up to 2022.3 "optimization" is unknown, and a message needs a type."""
    reader = build_messages("reader", "Said: text=1 bytes, type=2 int32")["Said"]
    item = encode_rule(RuleResult("A", "A", "", (RuleMessage("ok", "x"), RuleMessage("optimization", "y"))))
    bodies = [item[one.content : one.end] for one in split(item) if one.number == 3]
    items = [body[one.content : one.end] for body in bodies for one in split(body)]
    plain, said = (next(message[one.content : one.end] for one in split(message)) for message in items)
    types = [[one[field.content] for field in split(one) if field.number == 2] for one in (plain, said)]
    assert types == [[MESSAGE_TYPES.index("ok")], [MESSAGE_TYPES.index("warning"), MESSAGE_TYPES.index("optimization")]]
    assert reader.FromString(said).type == MESSAGE_TYPES.index("optimization")  # who knows both takes the last


OURS = ("HierarchicalDoubleRooflineChart", "RooflineOverview", "InstructionRooflineChart", "HierarchicalHalfRooflineChart")


def collected(path: Path, *rules: RuleResult) -> Path:
    """A report that ncu made with sections and rules of ours."""
    made = tuple(section(Identifier=name.encode()) for name in ("Theirs", *OURS))
    return report(path, kernel(complete(), sections=made, rule_results=rules))


def names_of(path: Path) -> tuple[list[str], list[str]]:
    """Identifiers of the sections and the rule results of the first launch."""
    with read_report(path) as opened:
        one = opened.kernels[0]
        return [parse_section(data).identifier for data in one.sections], [rule.identifier for rule in one.rule_results]


def test_what_ncu_collected_with_our_sections_is_replaced(tmp_path: Path) -> None:
    """Not doubled: by the chart of the same work and the overview; what has no successor stays, and all comes back."""
    source, names = collected(tmp_path / "in.ncu-rep"), [tmp_path / f"{number}.ncu-rep" for number in range(2)]
    annotated(source, names[0], rules=[])
    assert names_of(names[0])[0] == ["Theirs", *OURS[2:], OVERVIEW, identifier("fp64")]
    annotated(names[0], names[1], rules=[])
    assert names[0].read_bytes() == names[1].read_bytes()
    assert b"".join(stripped(open_raw(names[0]))) == source.read_bytes()


@pytest.mark.parametrize("other", ["Theirs", "NcuRooflineOfASectionThatStays"])
def test_rules_that_have_spoken_before(tmp_path: Path, rule: Path, other: str) -> None:
    """Ours say it anew, or move to where their section went; others keep what they said."""
    said = (RuleMessage("warning", "I said so: @section:RooflineOverview:there@."),)
    old = (
        RuleResult("NcuRooflineSays", "Says", "HierarchicalDoubleRooflineChart", said),
        RuleResult("NcuRooflineGone", "Gone", "HierarchicalDoubleRooflineChart", said),
        RuleResult(other, "Other", "InstructionRooflineChart", said),
    )
    source, target = collected(tmp_path / "in.ncu-rep", *old), tmp_path / "out.ncu-rep"
    annotated(source, target, rules=[rule])
    assert names_of(target)[1] == [other, f"{OWN}Says", f"{OWN}Gone"]
    with read_report(target) as opened:
        _, says, gone = opened.kernels[0].rule_results
    assert [message.title for message in says.messages] == ["Title"]
    assert (gone.section, gone.messages[0].text) == (identifier("fp64"), f"I said so: @section:{OVERVIEW}:there@.")
    assert b"".join(stripped(open_raw(target))) == source.read_bytes()
    annotated(source, target, rules=[])
    assert names_of(target)[1] == [other, f"{OWN}Gone", f"{OWN}Says"]


def test_the_verdict_is_first_and_of_other_rules_only_findings_are_told(tmp_path: Path) -> None:
    """Also where ncu collected more: what our rules say now takes its place, and what they call fine goes."""
    fine = RuleResult("NcuRooflineTensor", "Tensor", "RooflineOverview", (RuleMessage("ok", "Tensor cores were idle."),))
    verdict = RuleResult("NcuRooflineVerdict", "Verdict", "RooflineOverview", (RuleMessage("optimization", "I said so."),))
    source, target = collected(tmp_path / "in.ncu-rep", fine, verdict), tmp_path / "out.ncu-rep"
    with read_report(source) as opened:
        one = opened.kernels[0]
        busy = {
            **complete(),
            "launch__waves_per_multiprocessor": 1.2,
            "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 0,
        }
        data = kernel(busy, sections=one.sections, rule_results=one.rule_results)
    annotated(report(source, data), target)
    with read_report(target) as opened:
        results = opened.kernels[0].rule_results
    assert [one.identifier for one in results] == [f"{OWN}Verdict", f"{OWN}LaunchSize"]
    assert {said.type for one in results for said in one.messages} == {"optimization"}
    assert "Tail of the last wave" in [said.title for said in results[1].messages]
    annotated(report(source, kernel(complete(seconds=1e-3 / 5.6))), target)  # little headroom: the verdict is there as well
    with read_report(target) as opened:
        first = opened.kernels[0].rule_results[0]
    assert (first.identifier, first.messages[0].type) == (f"{OWN}Verdict", "optimization")


def test_a_rule_of_others_is_not_asked_again(tmp_path: Path, rule: Path) -> None:
    (rule / "says.py").write_text(RULE.replace("NcuRooflineSays", "Theirs"))
    before = RuleResult("Theirs", "Says", "", (RuleMessage("ok", "I said so."),))
    source = report(tmp_path / "in.ncu-rep", kernel(complete(), rule_results=(before,)))
    annotated(source, tmp_path / "out.ncu-rep", rules=[rule])
    with read_report(tmp_path / "out.ncu-rep") as opened:
        assert opened.kernels[0].rule_results == (before,)


def test_only_fields_that_the_oldest_release_knows(tmp_path: Path) -> None:
    source, target = report(tmp_path / "in.ncu-rep", kernel(complete())), tmp_path / "out.ncu-rep"
    annotated(source, target, [ceilings(tmp_path, fp64_fma=8e12)])

    def fields(message: Any) -> Iterator[FieldType]:
        for one, value in message.ListFields():
            field = schema().messages[message.DESCRIPTOR.name][one.name]
            yield field
            for inner in (value if field.repeated else [value]) if field.kind in schema().messages else ():
                yield from fields(inner)

    with read_report(target) as opened:
        for data in opened.kernels[0].sections:
            used = list(fields(messages()["Section"].FromString(data)))
            assert len(used) > 10
            assert [field.name for field in used if not field.history.known_to(RELEASES[0])] == []


def test_identifiers_are_distinct() -> None:
    found = [identifier(precision.id) for precision in load_spec().precisions]
    assert len(set(found)) == len(found)
    assert all(name.isidentifier() for name in found)
    assert identifier("tensor.fp16.wgmma") == f"{OWN}TensorFP16Wgmma"


def test_launches_share_their_sections(tmp_path: Path) -> None:
    launches = [kernel(complete(seconds=1e-3 * (1 + number))) for number in range(50)]
    source, target = report(tmp_path / "in.ncu-rep", *launches), tmp_path / "out.ncu-rep"
    annotated(source, target, rules=[])
    with read_report(target) as opened:
        assert len({one.sections for one in opened.kernels}) == 1
        assert len({one.metrics["rl__performance_fp64"] for one in opened.kernels}) == 50
