"""What annotated reports gain: numbers, charts with the roofs of the model, and advice; every byte of theirs is kept."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.spec import OVERVIEW_SECTION, TENSOR_SECTION
from ncu_roofline.formats.ceilings import Ceilings, read_ceilings
from ncu_roofline.formats.report import Kernel, RuleMessage, RuleResult, read_report
from ncu_roofline.formats.report.framing import KINDS, message, open_raw
from ncu_roofline.formats.report.reader import MESSAGE_TYPES, encode_rule
from ncu_roofline.formats.sectionfile.charts import evaluate_charts
from ncu_roofline.formats.sectionfile.section import RELEASES, messages, parse_section
from ncu_roofline.formats.sectionfile.text import parse_document, section_text
from ncu_roofline.formats.wire import build_messages, bytes_field, number_field, read_schema, split, varint
from ncu_roofline.model import roofline
from ncu_roofline.plugin.annotate import OVERVIEW, Addition, appended, identifier, is_annotated, stripped
from ncu_roofline.plugin.nvrules.runner import plain_text, section_identifier
from tests.annotate.helpers import OWN, added, annotated, assert_kept
from tests.annotate.made import write_ceilings
from tests.cli.command import Command
from tests.factory import A100, H100, complete, kernel, report, timing
from tests.golden import assert_golden
from tests.nvrules.running import data_of, read_cases
from tests.report.factory import block, encoded, file_of, result, saxpy, write
from tests.report.frames import packed, zstd
from tests.sectionfile.reading import text
from tests.sectionfile.section_factory import section


def ceilings(folder: Path, clock: float = math.nan, **values: float) -> Ceilings:
    write_ceilings(folder / "ceilings.json", **values)
    known = read_ceilings(folder / "ceilings.json")
    return replace(known, by_id={name: replace(one, clock=clock) for name, one in known.by_id.items()})


def described(kernel: Kernel) -> list[str]:
    found, metrics, capability = added(kernel), kernel.metrics, (kernel.device and kernel.device.compute_capability) or (0, 0)
    lines = [f"{name} = {value if isinstance(value, str) else f'{value:.6g}'}" for name, value in sorted(found.metrics.items())]
    for one in found.sections.values():
        lines += [f"section {one.identifier}, order {one.message.Order}: {text(one, 'Description')}"]
        for chart in evaluate_charts(one, metrics, capability):
            for roof in chart.roofs:
                kind = "roof" if roof.metrics else "constant roof"
                lines += [f"  {kind} {roof.work:.6g} / {roof.traffic:.6g}: {roof.label}"]
            lines += [f"  dot {dot.work:.6g} / {dot.traffic:.6g}: {dot.label}" for dot in chart.points]
            assert not chart.dropped
    said = [(rule, message) for rule in found.rules for message in rule.messages]
    lines += [f"{rule.identifier} in {rule.section}: {message.type}: {message.title}" for rule, message in said]
    return [line for line in lines if "annotated_by" not in line]


def test_what_is_added(tmp_path: Path) -> None:
    """The text has all of the first launch (a GFLOP in a millisecond), of others what is more and less, if that is shorter."""
    found, first, path = "", list[str](), Path(__file__).with_name("added.toml")
    for name, case in read_cases(path)[0].items():
        source, target = report(tmp_path / "in.ncu-rep", data_of(case)), tmp_path / "out.ncu-rep"
        given = [ceilings(tmp_path, **case["measured"])] if "measured" in case else []
        annotated(source, target, given)
        assert_kept(source, target)
        with read_report(target) as opened:
            lines = described(opened.kernels[0])
            assert str(opened.kernels[0].metrics["rl__annotated_by"]).startswith("ncu-roofline ")
        first = first or lines
        less, more = ([line for line in one if line not in other] for one, other in ((first, lines), (lines, first)))
        differ = [*(f"- {line}" for line in less), *(f"+ {line}" for line in more)]
        found += f"=== {name}\n" + "".join(f"{line}\n" for line in min(differ or lines, lines, key=len))
        before, after = roofline(source), roofline(target)
        for frame in ("points", "roofs", "kernels"):  # nothing changes for our own model
            assert getattr(before, frame).drop(columns="report").equals(getattr(after, frame).drop(columns="report"))
    assert_golden(path.with_suffix(".txt"), found)


def test_odd_numbers_are_left_out(tmp_path: Path) -> None:
    names = [name for name, value in complete().items() if "attribute" not in name and not isinstance(value, str)]
    odd = [{**complete(), **dict.fromkeys(names, value)} for value in (math.nan, math.inf, -1.0, 1e308, 5e-324)]
    annotated(report(tmp_path / "in.ncu-rep", *map(kernel, odd)), tmp_path / "out.ncu-rep")
    with read_report(tmp_path / "out.ncu-rep") as opened:
        values = [value for one in opened.kernels for value in added(one).metrics.values() if not isinstance(value, str)]
    assert all(map(math.isfinite, values))


def test_once_is_as_often(tmp_path: Path) -> None:
    """Whatever was given before; in place, compressed, and back again."""
    launches = [kernel(complete()), kernel(complete(seconds=2e-3)), kernel(complete(H100)), kernel({**A100, "x.sum": 1})]
    source = report(tmp_path / "in.ncu-rep", *launches)
    once, later, measured = (tmp_path / f"{number}.ncu-rep" for number in range(3))
    given = [ceilings(tmp_path, fp64_fma=8e12)]
    for before, after, roofs in ((source, once, []), (once, later, given), (source, measured, given)):
        annotated(before, after, roofs)
    assert measured.read_bytes() == later.read_bytes() != once.read_bytes()
    with read_report(once) as opened:
        assert opened.kernels[0].sections == opened.kernels[1].sections  # which launches share
    annotated(later, later)
    assert later.read_bytes() == once.read_bytes()
    assert b"".join(stripped(open_raw(once))) == source.read_bytes()


def test_compressed_in_and_out_and_links(run: Command, tmp_path: Path) -> None:
    source, packed_source = report(tmp_path / "in.ncu-rep", kernel(complete())), tmp_path / "in.ncu-repz"
    packed_source.write_bytes(packed(source.read_bytes()))
    found = []
    for before, after in (("in.ncu-repz", "plain.ncu-rep"), ("in.ncu-repz", "out.NCU-REPZ"), ("out.NCU-REPZ", "back.ncu-rep")):
        assert run("annotate", tmp_path / before, "-o", tmp_path / after).code == 0
        found.append((tmp_path / after).read_bytes())
    assert found[0] == zstd().decompress(found[1]) == found[2]
    (tmp_path / "link.ncu-rep").symlink_to(source)
    unchanged = source.read_bytes()
    assert run("annotate", source, "-o", tmp_path / "link.ncu-rep", "--force").code == 1
    assert source.read_bytes() == unchanged


def test_only_fields_that_the_oldest_release_knows(tmp_path: Path) -> None:
    source, target = report(tmp_path / "in.ncu-rep", kernel(complete())), tmp_path / "out.ncu-rep"
    annotated(source, target, [ceilings(tmp_path, fp64_fma=8e12)])
    with read_report(target) as opened:
        texts = [section_text(messages()["Section"].FromString(data), cc_names=False) for data in opened.kernels[0].sections]
    assert len(texts) == 2
    assert [parse_document(text).unknown_to(RELEASES[0]) for text in texts] == [(), ()]
    names = {identifier(precision.id) for precision in load_spec().precisions}
    assert len([name for name in names if name.isidentifier()]) == len(load_spec().precisions)
    assert identifier("tensor.fp16.wgmma") == f"{OWN}TensorFP16Wgmma"


def test_a_type_that_old_releases_know_stands_before_one_that_they_refuse() -> None:
    """Up to 2022.3 "optimization" is unknown, and a message needs a type; who knows both takes the last."""
    reader = build_messages("reader", read_schema("Said: text=1 bytes, type=2 int32"))["Said"]
    item = encode_rule(RuleResult("A", "A", "", (RuleMessage("ok", "x"), RuleMessage("optimization", "y"))))
    bodies = [item[one.content : one.end] for one in split(item) if one.number == 3]
    items = [body[one.content : one.end] for body in bodies for one in split(body)]
    plain, said = (next(message[one.content : one.end] for one in split(message)) for message in items)
    types = [[one[field.content] for field in split(one) if field.number == 2] for one in (plain, said)]
    assert types == [[MESSAGE_TYPES.index("ok")], [MESSAGE_TYPES.index("warning"), MESSAGE_TYPES.index("optimization")]]
    assert reader.FromString(said).type == MESSAGE_TYPES.index("optimization")


# Rules, and reports that ncu collected with our sections and rules.

RULE = """
import NvRules
def get_identifier(): return "{}"
def get_name(): return "Says"
def get_section_identifier(): return "HierarchicalDoubleRooflineChart"
def apply(handle):
    fe = NvRules.get_context(handle).frontend()
    fe.message(NvRules.IFrontend.MsgType_MSG_OPTIMIZATION, "See @section:HierarchicalDoubleRooflineChart:this@.", "Title")
    fe.message(NvRules.IFrontend.MsgType_MSG_NONE, "Collect this.", "Metrics missing")
"""
OURS = ("HierarchicalDoubleRooflineChart", "RooflineOverview", "InstructionRooflineChart", "HierarchicalHalfRooflineChart")
SECTIONS = tuple(section(Identifier=name.encode()) for name in ("Theirs", *OURS))


def rule(folder: Path, name: str = "NcuRooflineSays") -> Path:
    (folder / "rules").mkdir(exist_ok=True)
    (folder / "rules" / "says.py").write_text(RULE.format(name))
    return folder / "rules"


def names_of(path: Path) -> tuple[list[str], list[str]]:
    with read_report(path) as opened:
        one = opened.kernels[0]
        return [parse_section(data).identifier for data in one.sections], [said.identifier for said in one.rule_results]


def test_what_rules_say_is_added(tmp_path: Path) -> None:
    """Where the launch has the section, else in the overview; a rule of others that spoke already is not asked again."""
    source = report(tmp_path / "in.ncu-rep", kernel(complete()), kernel({**A100, **timing()}))
    account = annotated(source, tmp_path / "out.ncu-rep", rules=[rule(tmp_path)])
    with read_report(tmp_path / "out.ncu-rep") as opened:
        (first,), (second,) = (added(one).rules for one in opened.kernels)
    assert (first.identifier, first.name, first.section, second.section) == (f"{OWN}Says", "Says", f"{OWN}FP64", OVERVIEW)
    assert [(one.type, one.text) for one in first.messages] == [("optimization", f"See @section:{OWN}FP64:this@.")]
    assert account.messages == {"Says": 2}
    before = RuleResult("Theirs", "Says", "", (RuleMessage("ok", "I said so."),))
    source = report(tmp_path / "in.ncu-rep", kernel(complete(), rule_results=(before,)))
    annotated(source, tmp_path / "out.ncu-rep", rules=[rule(tmp_path, "Theirs")])
    with read_report(tmp_path / "out.ncu-rep") as opened:
        assert opened.kernels[0].rule_results == (before,)


@pytest.mark.parametrize("other", ["Theirs", "NcuRooflineOfASectionThatStays"])
def test_what_ncu_collected_with_our_sections_and_rules_is_replaced(tmp_path: Path, other: str) -> None:
    """Sections by the chart of the same work and the overview; rules say it anew, or move along; all comes back."""
    said = (RuleMessage("warning", "I said so: @section:RooflineOverview:there@."),)
    old = [RuleResult(f"NcuRoofline{name}", name, "HierarchicalDoubleRooflineChart", said) for name in ("Says", "Gone")]
    old.append(RuleResult(other, "Other", "InstructionRooflineChart", said))
    source = report(tmp_path / "in.ncu-rep", kernel(complete(), sections=SECTIONS, rule_results=tuple(old)))
    target, again = tmp_path / "out.ncu-rep", tmp_path / "again.ncu-rep"
    annotated(source, target, rules=[rule(tmp_path)])
    kept = ["Theirs", *OURS[2:], OVERVIEW, identifier("fp64")]
    assert names_of(target) == (kept, [other, f"{OWN}Says", f"{OWN}Gone"])
    annotated(target, again, rules=[rule(tmp_path)])
    assert target.read_bytes() == again.read_bytes()
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
    busy = {"launch__waves_per_multiprocessor": 1.2, "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 0}
    data = kernel({**complete(), **busy}, sections=SECTIONS, rule_results=(fine, verdict))
    annotated(report(tmp_path / "in.ncu-rep", data, kernel(complete(seconds=1e-3 / 5.6))), tmp_path / "out.ncu-rep")
    with read_report(tmp_path / "out.ncu-rep") as opened:
        results, little = (one.rule_results for one in opened.kernels)
    assert [one.identifier for one in results] == [f"{OWN}Verdict", f"{OWN}LaunchSize"]
    assert {said.type for one in results for said in one.messages} == {"optimization"}
    assert "Tail of the last wave" in [said.title for said in results[1].messages]
    (verdict, *_) = little  # little headroom: it is there as well
    assert (verdict.identifier, verdict.messages[0].type) == (f"{OWN}Verdict", "optimization")


# Charts of made-up and real reports.

ROOT = Path(__file__).resolve().parents[2]
DEMO, MEASURED = ROOT / "ncu_roofline" / "data" / "demo", ROOT / "tests" / "bench" / "measured_h100" / "ceilings.json"
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
    for number, source in enumerate(sources):
        if number % 3 == 0:
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
    words = (DEMO / "gpp-v100.ncu-rep", "--ceilings", GPP)
    advised = json.loads(run("advise", *words, "--all-findings", "--json").out)
    assert run("annotate", *words, "-o", tmp_path / "out.ncu-rep").code == 0
    with read_report(tmp_path / "out.ncu-rep") as opened:
        said = [message for one in opened.kernels for rule in added(one).rules for message in rule.messages]
    plain = {plain_text(message.text) for message in said}
    assert any("(measured)" in text for text in plain)
    assert plain <= {one["text"] for one in advised["findings"] + advised["without_advice"]}


# What is appended, where, and that it comes off again; messages taken apart into fields and put together again.

SECTION = section(Identifier=f"{OWN}Overview".encode())
SAID = RuleResult(f"{OWN}Rule", "Rule", f"{OWN}Overview", (RuleMessage("ok", "Said."),))
VALUES = {"rl__a": 1.5, "rl__b": 7, "rl__c": "text"}
ADDITION = Addition(list(VALUES.items()), [SECTION], [SAID])


def append(path: Path, *additions: Addition) -> Path:
    raw = open_raw(path)
    return write(path.parent, b"".join(appended(raw, list(VALUES), additions)), f"{path.stem}+.ncu-rep")


def strip(path: Path) -> bytes:
    return b"".join(stripped(open_raw(path)))


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_all_kinds_of_results(kind: str, tmp_path: Path) -> None:
    own = RuleResult("Stock", "Stock", "", (RuleMessage("ok", "Before."),))
    data = encoded([saxpy(kind=kind, sections=(section(Identifier=b"Stock"),), rule_results=(own,))])
    path = write(tmp_path, data)
    done = append(path, ADDITION)
    assert_kept(path, done)
    assert [is_annotated(open_raw(one)) for one in (path, done)] == [False, True]
    with read_report(done) as report, read_report(path) as before:
        (kernel,), (old,) = report.kernels, before.kernels
        assert dict(kernel.metrics) == {**old.metrics, **VALUES}
        assert kernel.sections == (*old.sections, SECTION)
        assert kernel.rule_results == ((*old.rule_results, SAID) if kind in ("kernel", "cmdlist") else ())
    assert strip(done) == data


_UNKNOWN = result([(0, 2.0)], function=b"k") + b"\xc0\x3e\x01\xca\x3e\x03new" + result([(1, 3)])
_BLOCKS = (
    block([result([(0, 1.0)])], ["first"], kernels=1),
    block([result([(0, 2.0), (1, 3.0)])], ["second"], kernels=1),
    block([result([(1, 4.0)])], kernels=1),
    block(),
)
_RECORDS = [result([(0, float(number))]) for number in range(3)]


@pytest.mark.parametrize(
    ("data", "additions", "expected"),
    [
        pytest.param(
            file_of(block(strings=["x", "y"]), block([b"source", _UNKNOWN], sources=1, kernels=1)),
            [ADDITION],
            [{"x": 2.0, "y": 3, **VALUES}],
            id="unknown fields, damage of order",
        ),
        pytest.param(  # no other name's number changes, also where later blocks bring names and the last ones bring none
            file_of(*_BLOCKS),
            [Addition([("rl__a", 10.0)]), Addition([("rl__b", 20.0)]), Addition([("rl__c", 30.0)])],
            [{"first": 1.0, "rl__a": 10.0}, {"first": 2.0, "second": 3.0, "rl__b": 20.0}, {"second": 4.0, "rl__c": 30.0}],
            id="names go behind the last ones",
        ),
        pytest.param(
            file_of(block(strings=["x"]), block(_RECORDS[:2], kernels=2), block([b"s", _RECORDS[2]], sources=1, kernels=1)),
            [Addition([("rl__a", -float(number))]) for number in range(3)],
            [{"x": 0.0, "rl__a": 0.0}, {"x": 1.0, "rl__a": -1.0}, {"x": 2.0, "rl__a": -2.0}],
            id="several blocks, and results in one",
        ),
    ],
)
def test_where_it_goes(tmp_path: Path, data: bytes, additions: list[Addition], expected: list[dict[str, Any]]) -> None:
    path = write(tmp_path, data)
    done = append(path, *additions)
    assert_kept(path, done)
    with read_report(done) as report:
        assert [dict(kernel.metrics) for kernel in report.kernels] == expected
    assert strip(done) == data


def test_names_that_another_program_left_are_used_again(tmp_path: Path) -> None:
    """A viewer that saves an annotated report may put its names elsewhere."""
    path = write(tmp_path, file_of(block([result([(1, 1.0), (0, 5.0)])], ["rl__b", "x"], kernels=1)))
    rest = write(tmp_path, strip(path), "rest.ncu-rep")
    with read_report(rest) as report:
        assert dict(report.kernels[0].metrics) == {"x": 1.0}
    done = append(rest, ADDITION)
    with read_report(done) as report:
        assert dict(report.kernels[0].metrics) == {"x": 1.0, **VALUES}
    assert strip(done) == rest.read_bytes()
    with pytest.raises(RooflineError, match="no table of metric names"):
        append(write(tmp_path, file_of(block([result([])], kernels=1)), "bare.ncu-rep"), ADDITION)


NUMBER, VALUE = st.integers(1, 2**29 - 1), st.integers(0, 2**64 - 1)
FIXED = [st.builds(lambda n, data, kind=kind: varint(n << 3 | kind) + data, NUMBER, st.binary(min_size=size, max_size=size))
         for kind, size in ((1, 8), (5, 4))]  # fmt: skip
FIELDS = st.one_of(st.builds(number_field, NUMBER, VALUE), st.builds(bytes_field, NUMBER, st.binary(max_size=300)), *FIXED)


@given(st.lists(FIELDS), VALUE)
def test_fields_are_found_where_they_are(fields: list[bytes], value: int) -> None:
    """Numbers are written as protobuf writes them."""
    data = b"".join(fields)
    assert [data[one.start : one.end] for one in split(data)] == fields
    assert message("Value")(uint64=value).SerializeToString() == number_field(5, value)


def test_no_message() -> None:
    """Numbers that are missing or without end, too few bytes, wire type 7, a group, field 0."""
    for data in (b"\x08", b"\x0a\x05abc", b"\x09abc", b"\x0f", b"\x0b\x08\x01\x0c", b"\x00\x01", b"\x08" + b"\xff" * 11):
        with pytest.raises(ValueError, match="byte"):
            list(split(data))
