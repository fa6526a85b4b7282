"""The stand-in for NvRules and the runner: everything that a rule may count on, and nothing left behind."""

from __future__ import annotations

import sys
import textwrap
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import pack_folder
from ncu_roofline.formats.report import (
    FocusMetric,
    KernelData,
    ReportData,
    RuleMessage,
    Session,
    Value,
    read_report,
    write_report,
)
from ncu_roofline.formats.report.metrics import Metrics
from ncu_roofline.plugin.nvrules.interface import IAction
from ncu_roofline.plugin.nvrules.runner import RuleOutcome, load_rules, plain_text
from tests.factory import complete, kernel, report

HEAD = """
import NvRules
def get_identifier(): return "{name}"
def get_name(): return "The {name}"
def get_section_identifier(): return "Section{name}"
def apply(handle):
    ctx = NvRules.get_context(handle)
    action = ctx.range_by_idx(0).action_by_idx(0)
    fe = ctx.frontend()
"""


def write_rule(folder: Path, name: str, body: str, more: str = "") -> Path:
    """A rule file whose apply() has this body."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(HEAD.format(name=name) + textwrap.indent(textwrap.dedent(body), "    ") + "\n" + textwrap.dedent(more))
    return path


def run(folder: Path, tmp_path: Path, **metrics: float | str) -> list[RuleOutcome]:
    """All rules of a folder on a kernel with these extra metrics (``__`` as in names, ``_DOT_`` for a dot)."""
    named = {name.replace("_DOT_", "."): value for name, value in metrics.items()}
    with read_report(report(tmp_path / "r.ncu-rep", kernel({**complete(), **named}))) as opened:
        return list(load_rules([folder]).run(opened.kernels[0]))


def said(outcome: RuleOutcome) -> list[str]:
    return [message.text for message in outcome.messages]


def test_a_message_with_everything(tmp_path: Path) -> None:
    write_rule(
        tmp_path / "rules",
        "Full",
        """
        m = fe.message(NvRules.IFrontend.MsgType_MSG_OPTIMIZATION, "text", "title")
        assert fe.speedup(m, NvRules.IFrontend.SpeedupType_GLOBAL, 12.5) is True
        assert fe.focus_metric(m, "a", 1, NvRules.IFrontend.Severity_SEVERITY_HIGH, "why") is True
        assert fe.focus_metric(99, "a", 1, NvRules.IFrontend.Severity_SEVERITY_LOW, "") is False
        fe.source_marker("here", 16, NvRules.IFrontend.MarkerKind_SASS, NvRules.IFrontend.MsgType_MSG_WARNING)
        fe.generate_table(m, ["a", "b"], [[1, "x"], [2, "y"]], {"title": "t"})
        ctx.controller().propose_rule("Other")
        """,
    )
    (outcome,) = run(tmp_path / "rules", tmp_path)
    focus = (FocusMetric("a", 1.0, "high", "why"),)
    assert outcome.messages == (RuleMessage("optimization", "text", "title", 1, 12.5, "global", focus),)
    assert (outcome.status, outcome.markers) == ("done", 1)
    assert outcome.as_result().section == "SectionFull"


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ('fe.message("x")', "none"),
        ('fe.message("x", "title")', "none"),
        ('fe.message(NvRules.IFrontend.MsgType_MSG_OK, "x")', "ok"),
        ('fe.message(NvRules.IFrontend.MsgType_MSG_WARNING, "x")', "warning"),
        ('fe.message(NvRules.MsgType.ERROR, "x", "title")', "error"),
        ('fe.message(NvRules.MsgType.OPTIMIZATION, "x")', "optimization"),
    ],
)
def test_kinds_of_messages_by_old_and_new_names(tmp_path: Path, call: str, kind: str) -> None:
    write_rule(tmp_path / "rules", "Kind", call)
    (outcome,) = run(tmp_path / "rules", tmp_path)
    assert [(message.type, message.text) for message in outcome.messages] == [(kind, "x")]


def test_metrics_are_those_of_the_report(tmp_path: Path) -> None:
    write_rule(
        tmp_path / "rules",
        "Metrics",
        """
        assert action.metric_by_name("none.sum") is None
        try:
            action["none.sum"]
        except KeyError:
            fe.message("no such metric")
        count, name = action["count.sum"], action["text"]
        fe.message(" ".join(map(str, [count.value(), count.as_double(), count.as_uint64(), repr(count.as_string())])))
        fe.message(" ".join(map(str, [name.value(), name.as_string(), name.as_double(), name.as_uint64()])))
        kinds = [count.kind() == NvRules.IMetric.ValueKind_UINT64, name.kind() == NvRules.IMetric.ValueKind_STRING]
        fe.message(str(kinds + [action["share.pct"].kind() == NvRules.IMetric.ValueKind_DOUBLE]))
        fe.message(str([len(ctx), len(ctx[0]), "count.sum" in action, "count.sum" in action.metric_names(), action.name()]))
        """,
    )
    (outcome,) = run(tmp_path / "rules", tmp_path, count_DOT_sum=7, text="word", share_DOT_pct=0.5)
    assert said(outcome) == [
        "no such metric",
        "7 7.0 7 ''",
        "word word 0.0 0",
        "[True, True, True]",
        "[1, 1, True, True, 'kernel']",
    ]


def test_instances_and_what_they_belong_to(tmp_path: Path) -> None:
    write_rule(
        tmp_path / "rules",
        "Instances",
        """
        m = action["per_line"]
        ids = m.correlation_ids()
        fe.message(str([m.num_instances(), NvRules.metric_instances(m), m.as_double(1), ids.as_uint64(1), m.value(0)]))
        """,
    )
    data = KernelData(name="k", metrics=complete(), instances={"per_line": [(16, 3), (32, 4)]})
    path = tmp_path / "r.ncu-rep"
    write_report(path, ReportData([data], Session()))
    with read_report(path) as opened:
        (outcome,) = load_rules([tmp_path / "rules"]).run(opened.kernels[0])
    assert said(outcome) == ["[2, [3, 4], 4.0, 32, 3]"]


def test_added_metrics_are_seen_by_later_rules(tmp_path: Path) -> None:
    write_rule(
        tmp_path / "rules",
        "A",
        """
        action.add_double_metric("mine", NvRules.IMetric.ValueKind_DOUBLE, 2.5)
        action.add_metric("later").set_uint64(NvRules.IMetric.ValueKind_UINT64, 5)
        """,
    )
    write_rule(
        tmp_path / "rules",
        "B",
        'fe.message(str([action["mine"].value(), action["later"].value()]))',
    )
    _, second = run(tmp_path / "rules", tmp_path)
    assert said(second) == ["[2.5, 5]"]


def test_an_added_metric_is_gone_with_the_next_kernel(tmp_path: Path) -> None:
    body = 'fe.message(str(action.metric_by_name("mine")))\naction.add_integer_metric("mine", 6, 1)'
    write_rule(tmp_path / "rules", "A", body)
    with read_report(report(tmp_path / "r.ncu-rep", kernel(complete()), kernel(complete()))) as opened:
        rules = load_rules([tmp_path / "rules"])
        assert [said(rules.run(one)[0]) for one in opened.kernels] == [["None"], ["None"]]


def test_a_rule_that_raises_is_an_error_and_the_others_go_on(tmp_path: Path) -> None:
    write_rule(tmp_path / "rules", "A", 'fe.message("first")\nraise ValueError("bad luck")')
    write_rule(tmp_path / "rules", "B", 'NvRules.raise_exception(handle, "given up")')
    write_rule(tmp_path / "rules", "C", "import sys; sys.exit(3)")
    write_rule(tmp_path / "rules", "D", 'fe.message("fine")')
    found = run(tmp_path / "rules", tmp_path)
    assert [outcome.status for outcome in found] == ["error", "error", "error", "done"]
    assert [message.type for message in found[0].messages] == ["none", "error"]
    assert said(found[0])[1].startswith("Rule The A returned an error: ValueError: bad luck (A.py:")
    assert said(found[1])[0].startswith("Rule The B returned an error: given up")


PARENT = 'fe.send_dict_to_children({"x": 1})\nfe.send_dict_to_children({"y": 2})'


def test_parents_come_first_and_talk_to_their_children_only(tmp_path: Path) -> None:
    parents = 'def get_parent_rules_identifiers(): return ["Parent", "Unknown"]'
    receive = 'fe.message(str(sorted(fe.receive_dict_from_parent("Parent").items())))'
    write_rule(tmp_path / "rules", "Child", receive, parents)
    write_rule(tmp_path / "rules", "Other", receive)
    write_rule(tmp_path / "rules", "Parent", PARENT)
    found = run(tmp_path / "rules", tmp_path)
    assert [outcome.identifier for outcome in found] == ["Parent", "Child", "Other"]
    assert [said(outcome) for outcome in found] == [[], ["[('x', 1.0), ('y', 2.0)]"], ["[]"]]


def test_rules_that_name_each_other_as_parents_still_run(tmp_path: Path) -> None:
    write_rule(tmp_path / "rules", "A", 'fe.message("a")', 'def get_parent_rules_identifiers(): return ["B"]')
    write_rule(tmp_path / "rules", "B", 'fe.message("b")', 'def get_parent_rules_identifiers(): return ["A"]')
    assert sorted(text for outcome in run(tmp_path / "rules", tmp_path) for text in said(outcome)) == ["a", "b"]


def test_of_two_rules_with_one_identifier_the_first_counts(tmp_path: Path) -> None:
    write_rule(tmp_path / "one", "Same", 'fe.message("one")')
    write_rule(tmp_path / "two", "Same", 'fe.message("two")')
    with read_report(report(tmp_path / "r.ncu-rep", kernel(complete()))) as opened:
        found = load_rules([tmp_path / "two", tmp_path / "one"]).run(opened.kernels[0])
    assert [said(outcome) for outcome in found] == [["two"]]


def test_what_a_rule_requires(tmp_path: Path) -> None:
    evaluate = 'def evaluate(handle): NvRules.require_metrics(handle, ["{}"]); NvRules.require_rules(handle, ["B"])'
    write_rule(tmp_path / "rules", "A", 'fe.message("a")', evaluate.format("none.sum"))
    write_rule(tmp_path / "rules", "B", 'fe.message("b")', evaluate.format("gpu__time_duration.sum"))
    first, second = run(tmp_path / "rules", tmp_path)
    assert (first.status, first.reason, first.messages) == ("skipped", "metric none.sum was not collected", ())
    assert (second.status, said(second)) == ("done", ["b"])


def test_only_rules_of_collected_sections(tmp_path: Path) -> None:
    write_rule(tmp_path / "rules", "A", 'fe.message("a")')
    with read_report(report(tmp_path / "r.ncu-rep", kernel(complete()))) as opened:
        (outcome,) = load_rules([tmp_path / "rules"]).run(opened.kernels[0], collected_only=True)
        assert (outcome.status, outcome.reason) == ("skipped", "section SectionA was not collected")
    data = kernel(complete(), sections=(b"\x0a\x08SectionA\x12\x01x",))
    with read_report(report(tmp_path / "s.ncu-rep", data)) as opened:
        (outcome,) = load_rules([tmp_path / "rules"]).run(opened.kernels[0], collected_only=True)
        assert said(outcome) == ["a"]


def test_helpers_beside_a_rule_and_charts(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    write_rule(rules, "A", 'import Helper\nfe.message(Helper.WORD)\nfe.load_chart_from_file("a.chart")')
    write_rule(rules, "B", 'from Helper import WORD\nfe.message(WORD)\nfe.load_chart_from_file("none.chart")')
    (rules / "Helper.py").write_text('import NvRules\nWORD = "helped"')
    (rules / "a.chart").write_text("")
    first, second = run(rules, tmp_path)
    assert said(first) == ["helped"]
    assert [(m.type, m.text) for m in second.messages] == [
        ("none", "helped"),
        ("error", "The chart file none.chart could not be loaded"),
    ]


def test_nothing_is_left_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "rules"
    write_rule(rules, "LeavesNothing", "import HelperOfNothing\nprint('noise')")
    (rules / "HelperOfNothing.py").write_text("import sys\nsys.path.append('/nowhere')")
    before = (list(sys.path), set(sys.modules), sys.dont_write_bytecode)
    run(rules, tmp_path)
    assert (list(sys.path), sys.dont_write_bytecode) == (before[0], before[2])
    assert not {"NvRules", "LeavesNothing", "HelperOfNothing"} & set(sys.modules)
    assert sorted(path.name for path in rules.iterdir()) == ["HelperOfNothing.py", "LeavesNothing.py"]
    assert capsys.readouterr().out == ""


def test_folders_keep_apart_what_has_one_name(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write_rule(tmp_path / folder, f"Rule{folder}", "import Shared\nfe.message(Shared.WORD)")
        (tmp_path / folder / "Shared.py").write_text(f"WORD = {folder!r}")
    with read_report(report(tmp_path / "r.ncu-rep", kernel(complete()))) as opened:
        found = load_rules([tmp_path / "one", tmp_path / "two"]).run(opened.kernels[0])
    assert [said(outcome) for outcome in found] == [["one"], ["two"]]


def test_broken_files_are_listed_and_named_like_pythons_own_do_no_harm(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    write_rule(rules, "Good", 'import json\nfe.message(json.dumps("x"))')
    write_rule(rules, "json", 'fe.message("a rule called json")')
    (rules / "Broken.py").write_text("def get_identifier(:")
    (rules / "Missing.py").write_text("import no_such_module_anywhere")
    (rules / "NvRules.py").write_text("raise SystemExit('the real one')")
    (rules / "Helper.py").write_text("")
    loaded = load_rules([rules])
    assert sorted(rule.identifier for rule in loaded.rules) == ["Good", "json"]
    assert [Path(problem.path).name for problem in loaded.problems] == ["Broken.py", "Missing.py"]
    assert "no_such_module_anywhere" in loaded.problems[1].reason
    with read_report(report(tmp_path / "r.ncu-rep", kernel(complete()))) as opened:
        assert sorted(text for outcome in loaded.run(opened.kernels[0]) for text in said(outcome)) == [
            '"x"',
            "a rule called json",
        ]


@pytest.mark.parametrize("content", [None, {}, {"Helper.py": "X = 1"}, {"Broken.py": "1 +"}, {"notes.txt": "rules"}])
def test_folders_without_rules_are_refused(tmp_path: Path, content: dict[str, str] | None) -> None:
    folder = tmp_path / "rules"
    if content is not None:
        folder.mkdir()
        for name, text in content.items():
            (folder / name).write_text(text)
    with pytest.raises(RooflineError, match=r"Cannot (read|use) rules"):
        load_rules([folder])


def test_a_single_file_is_enough(tmp_path: Path) -> None:
    path = write_rule(tmp_path / "rules", "A", 'fe.message("a")')
    write_rule(tmp_path / "rules", "B", 'fe.message("b")')
    with read_report(report(tmp_path / "r.ncu-rep", kernel(complete()))) as opened:
        assert [said(outcome) for outcome in load_rules([path]).run(opened.kernels[0])] == [["a"]]


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("See the @section:Occupancy:Occupancy@ section.", "See the Occupancy section."),
        (
            "the @url:Guide:https://docs.nvidia.com/a/index.html#b@ says",
            "the Guide (https://docs.nvidia.com/a/index.html#b) says",
        ),
        ("at @source:kernel.cu:17:line 17@ and @source:14c9:0x14c9@", "at line 17 and 0x14c9"),
        ("at @sass:0x10:here@", "at here"),
        ("a@b.org, 5 @ 3 and @nothing:x", "a@b.org, 5 @ 3 and @nothing:x"),
    ],
)
def test_markup(markup: str, text: str) -> None:
    assert plain_text(markup) == text


def test_what_many_rules_read_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All our rules look at the same counters of a kernel; each is decoded for the first of them only."""
    decoded: Counter[str] = Counter()
    plain = Metrics.__getitem__

    def counting(self: Metrics, name: str) -> Value:
        decoded[name] += 1
        return plain(self, name)

    monkeypatch.setattr(Metrics, "__getitem__", counting)
    rules = load_rules([pack_folder("rules")])
    with read_report(report(tmp_path / "r.ncu-rep", kernel(complete()))) as opened:
        rules.run(opened.kernels[0])
    assert decoded["gpu__time_duration.sum"] == 1
    assert max(decoded.values()) == 1


def test_what_rules_share_is_forgotten_when_a_metric_is_added(tmp_path: Path) -> None:
    keep = 'action.shared["kept"] = "of A"\nfe.message(str(sorted(action.shared)))'
    write_rule(tmp_path / "rules", "A", keep)
    write_rule(tmp_path / "rules", "B", 'fe.message(str(action.shared))\naction.add_integer_metric("new", 6, 1)')
    write_rule(tmp_path / "rules", "C", "fe.message(str(action.shared))")
    assert [said(one) for one in run(tmp_path / "rules", tmp_path)] == [["['kept']"], ["{'kept': 'of A'}"], ["{}"]]


def test_launches_of_one_layout_share_the_list_of_names(tmp_path: Path) -> None:
    with read_report(report(tmp_path / "r.ncu-rep", kernel(complete()), kernel(complete()))) as opened:
        first, second = (IAction(one) for one in opened.kernels)
        assert first.metric_names() is second.metric_names()
        assert list(first.metric_names()) == sorted(complete())
        first.add_double_metric("a_new_one", 1, 2.5)  # type: ignore[arg-type]
        assert list(first.metric_names()) == sorted([*complete(), "a_new_one"])


def test_modules_of_others_that_have_a_rules_name_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of somebody else's called like a helper of the rules is not what they import, and stays as it was."""
    folder = tmp_path / "rules"
    write_rule(folder, "A", "import Helper\nfe.message(Helper.WORD)")
    (folder / "Helper.py").write_text('WORD = "ours "')
    others = {name: ModuleType(name) for name in ("Helper", "Helper.part")}
    for name, module in others.items():
        monkeypatch.setitem(sys.modules, name, module)
    (outcome,) = run(folder, tmp_path)
    assert said(outcome) == ["ours "]
    assert {name: sys.modules[name] for name in others} == others
