"""The stand-in for NvRules and the runner, with everything that a rule may count on; what each rule says in each branch."""

from __future__ import annotations

import re
import sys
import textwrap
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.report import KernelData, RuleMessage, Value, read_report
from ncu_roofline.formats.report.metrics import Metrics as Counters
from ncu_roofline.model import measurements_of
from ncu_roofline.plugin.annotate import Adviser
from ncu_roofline.plugin.nvrules.interface import IAction
from ncu_roofline.plugin.nvrules.runner import RuleOutcome, collectable, load_rules, plain_text
from tests.factory import A100, NO_WORK, Metrics, complete, kernel, report, traffic
from tests.golden import assert_golden
from tests.nvrules.made import FILES
from tests.nvrules.running import Case, as_text, ceilings_of, data_of, our_rules, read_cases, rules_with, run_case, toml
from tests.sectionfile.section_factory import section

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
CASES = Path(__file__).with_name("runner.toml")


def write_rule(folder: Path, name: str, body: str, more: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(HEAD.format(name=name) + textwrap.indent(body.strip(), "    ") + f"\n{more}\n")
    return path


def run(tmp_path: Path, *folders: Path, case: Case | None = None) -> list[RuleOutcome]:
    """The rules of folders on a kernel, twice: what was done for one launch is forgotten at the next."""
    case = case or {}
    sections = tuple(section(Identifier=name.encode()) for name in case.get("collected", ()))
    data: KernelData = kernel({**complete(), **case.get("metrics", {})}, sections=sections, instances=case.get("instances", {}))
    rules = load_rules(folders)
    with read_report(report(tmp_path / "r.ncu-rep", data, data)) as opened:
        first, second = (list(rules.run(one, collected_only="collected" in case)) for one in opened.kernels)
    assert first == second
    return first


def test_what_rules_may_count_on(tmp_path: Path) -> None:
    found = ""
    for number, (name, case) in enumerate(toml(CASES)["cases"].items()):
        folder = tmp_path / str(number)
        for rule, body in case["rules"].items():
            write_rule(folder, rule, body, case.get("more", {}).get(rule, ""))
        for file, text in case.get("files", {}).items():
            (folder / file).write_text(text)
        instances = {metric: [tuple(pair) for pair in pairs] for metric, pairs in case.get("instances", {}).items()}
        found += f"=== {name}\n" + "".join(map(as_text, run(tmp_path, folder, case={**case, "instances": instances})))
        problems = load_rules([folder]).problems
        found += "".join(f"not loaded: {Path(one.path).name}: {one.reason.partition(' (')[0]}\n" for one in problems)
    assert_golden(CASES.with_suffix(".txt"), re.sub(r"(interface\.py):\d+", r"\1", found))


def test_folders_and_files_with_rules(tmp_path: Path) -> None:
    """Several keep apart what has one name, but of two rules with one identifier the first counts; a single file is enough."""
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        write_rule(folder, f"Rule{folder.name}", "import Shared\nfe.message(Shared.WORD)")
        write_rule(folder, "Same", f'fe.message("same of {folder.name}")')
        (folder / "Shared.py").write_text(f"WORD = {folder.name!r}")
    found = {outcome.identifier: outcome.messages[0].text for outcome in run(tmp_path, two, one)}
    assert found == {"Ruleone": "one", "Ruletwo": "two", "Same": "same of two"}
    (outcome,) = run(tmp_path, one / "Same.py")
    assert ([message.text for message in outcome.messages], outcome.as_result().section) == (["same of one"], "SectionSame")


def test_folders_without_rules_are_refused(tmp_path: Path) -> None:
    for name, text in (("absent", None), ("", None), ("Helper.py", "X = 1"), ("Broken.py", "1 +"), ("notes.txt", "rules")):
        if text is not None:
            (tmp_path / name).write_text(text)
        with pytest.raises(RooflineError, match=r"Cannot (read|use) rules"):
            load_rules([tmp_path if name != "absent" else tmp_path / name])


def test_nothing_is_left_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is a package of somebody else's, called like a helper of the rules, what they import, and it stays as it was."""
    others = {name: ModuleType(name) for name in ("Helper", "Helper.part")}
    for name, module in others.items():
        monkeypatch.setitem(sys.modules, name, module)
    rules = tmp_path / "rules"
    write_rule(rules, "Leaves", "import Helper\nimport HelperOfNothing\nprint('noise')\nfe.message(Helper.WORD)")
    (rules / "HelperOfNothing.py").write_text("import sys\nsys.path.append('/nowhere')")
    (rules / "Helper.py").write_text('WORD = "ours"')
    before = (list(sys.path), sys.dont_write_bytecode)
    (outcome,) = run(tmp_path, rules)
    assert [message.text for message in outcome.messages] == ["ours"]
    assert (sys.path, sys.dont_write_bytecode) == before
    assert not {"NvRules", "Leaves", "HelperOfNothing"} & set(sys.modules)
    assert {name: sys.modules[name] for name in others} == others
    assert sorted(path.name for path in rules.iterdir()) == ["Helper.py", "HelperOfNothing.py", "Leaves.py"]
    assert capsys.readouterr().out == ""


def test_markup() -> None:
    for markup, text in toml(CASES)["markup"].items():
        assert plain_text(markup) == text


def test_nothing_is_asked_for_that_the_release_can_not_collect() -> None:
    for case in toml(CASES)["collectable"]:
        outcome = RuleOutcome(case["rule"], "", "", "", messages=(RuleMessage("none", case["text"], "Title", 1),))
        for version, expected in (("2022.3.0.0", case.get("instead")), ("2019.5.1", case.get("earlier"))):
            (message,) = collectable(outcome, version).messages
            if expected or version > "2020":
                assert message == RuleMessage("none", expected or case["text"], "Title", 1)
        assert collectable(outcome, "2023.3.0.0") is outcome


def test_annotated_reports_ask_for_the_same(tmp_path: Path) -> None:
    FILES["busy-2022.3.0.0-A100.ncu-rep"](tmp_path / "r.ncu-rep")
    with read_report(tmp_path / "r.ncu-rep") as opened:
        adviser = Adviser(our_rules(), opened.ncu_version, measurements_of(opened))
        results = adviser.advice(opened.kernels[0], set(), set())[0]
    texts = [message.text for result in results for message in result.messages]
    assert any("counts per opcode" in text for text in texts)
    assert not any("HierarchicalTensor" in text for text in texts)


def test_what_many_rules_read_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All our rules look at the same counters of a kernel, each decoded for the first only; launches share their names."""
    decoded: Counter[str] = Counter()
    plain = Counters.__getitem__

    def counting(self: Counters, name: str) -> Value:
        decoded[name] += 1
        return plain(self, name)

    monkeypatch.setattr(Counters, "__getitem__", counting)
    with read_report(report(tmp_path / "r.ncu-rep", kernel(complete()), kernel(complete()))) as opened:
        our_rules().run(opened.kernels[0])
        assert decoded["gpu__time_duration.sum"] == max(decoded.values()) == 1
        first, second = (IAction(one) for one in opened.kernels)
        assert first.metric_names() is second.metric_names()
        assert list(first.metric_names()) == sorted(complete())
        first.add_double_metric("a_new_one", 1, 2.5)  # type: ignore[arg-type]
        assert list(first.metric_names()) == sorted([*complete(), "a_new_one"])


# What each rule says: cases in files, all that is said in a text beside each, promises by hand.

RULE_CASES = sorted((Path(__file__).parent / "cases").glob("*.toml"))


@pytest.mark.parametrize("path", RULE_CASES, ids=lambda path: path.stem)
def test_what_rules_say(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases, roofs = read_cases(path)
    measured = {name: rules_with(tmp_path / name, ceilings_of(name, given)) for name, given in roofs.items()}
    said = ""
    with read_report(report(tmp_path / "cases.ncu-rep", *map(data_of, cases.values()))) as opened:
        for (name, case), one in zip(cases.items(), opened.kernels, strict=True):
            outcomes, asked = run_case(case, one, measured[case["roofs"]] if "roofs" in case else our_rules(), monkeypatch)
            said += f"=== {name}{f' (instructions asked for: {asked})' if asked else ''}\n" + "".join(map(as_text, outcomes))
            promised = [message.speedup for outcome in outcomes for message in outcome.messages if message.speedup is not None]
            if "speedup" in case:
                assert promised[0] == pytest.approx(case["speedup"], rel=1e-4), name
    assert_golden(path.with_suffix(".txt"), said)


def test_every_rule_has_cases() -> None:
    tried = {rule for path in RULE_CASES for case in read_cases(path)[0].values() for rule in case["rule"]}
    assert {f"NcuRoofline{rule}" for rule in tried} == {rule.identifier for rule in our_rules().rules}


def test_nothing_that_a_metric_may_be_breaks_a_rule(tmp_path: Path) -> None:
    """Absent, NaN, infinite, zero, negative, huge, or a text."""
    loads = [f"l1tex__t_{what}_pipe_lsu_mem_global_op_ld.sum" for what in ("sectors", "requests")]
    beside = ["launch__waves_per_multiprocessor", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"]
    few: list[Metrics] = [{}, {"gpu__time_duration.sum": 5}, dict(A100), {"device__attribute_display_name": 5}]
    odd: list[Metrics] = []
    for value in (float("nan"), float("inf"), 0, 0.0, -1.0, 1e300, 2**63, "text"):
        everything: Metrics = dict.fromkeys([*complete(), *loads, *beside], value)
        odd += [everything, {**everything, **A100}]
        odd += [{**complete(), **dict.fromkeys(names, value)} for names in (NO_WORK, traffic())]
    with read_report(report(tmp_path / "odd.ncu-rep", *map(kernel, few + odd))) as opened:
        found = [our_rules().run(one) for one in opened.kernels]
    assert {outcome.status for outcomes in found for outcome in outcomes} == {"done"}
    said = {message.type for outcomes in found[: len(few)] for outcome in outcomes for message in outcome.messages}
    assert said <= {"none", "ok", "optimization"}
