"""The stand-in for NvRules and the runner; what each rule says in each branch; findings of all launches together."""

from __future__ import annotations

import json
import math
import re
import sys
import textwrap
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from ncu_roofline import roofline
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.report import KernelData, RuleMessage, Value, read_report
from ncu_roofline.formats.report.metrics import Metrics as Counters
from ncu_roofline.model import measurements_of
from ncu_roofline.plugin.annotate import Adviser
from ncu_roofline.plugin.nvrules import findings as of_launches
from ncu_roofline.plugin.nvrules.findings import VERDICT, Finding, ReportAdvice, Silence, Told
from ncu_roofline.plugin.nvrules.interface import IAction
from ncu_roofline.plugin.nvrules.runner import KernelAdvice, RuleOutcome, advise, load_rules, plain_text
from tests.cli.command import Command
from tests.factory import A100, NO_WORK, Metrics, complete, kernel, report, traffic
from tests.golden import assert_golden
from tests.nvrules.made import FEW_LANES, FILES, launch, slow
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
    found, data = "", toml(CASES)
    assert {markup: plain_text(markup) for markup in data["markup"]} == data["markup"]
    for number, (name, case) in enumerate(data["cases"].items()):
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


def test_folders_with_rules(tmp_path: Path) -> None:
    """Several keep apart what has one name, but of two rules with one identifier the first counts."""
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        write_rule(folder, f"Rule{folder.name}", "import Shared\nfe.message(Shared.WORD)")
        write_rule(folder, "Same", f'fe.message("same of {folder.name}")')
        (folder / "Shared.py").write_text(f"WORD = {folder.name!r}")
    found = {outcome.identifier: outcome.messages[0].text for outcome in run(tmp_path, two, one)}
    assert found == {"Ruleone": "one", "Ruletwo": "two", "Same": "same of two"}


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


def test_nothing_that_a_metric_may_be_breaks_a_rule(tmp_path: Path) -> None:
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


# Findings of all launches together: their document, numbers and ids; what pages show.  What is printed: sessions.

DOCUMENT = json.loads(Path(__file__).with_name("advice.schema.json").read_text(encoding="utf-8"))


def made(folder: Path, name: str) -> Path:
    path = folder / f"{name}.ncu-rep"
    FILES[path.name](path)
    return path


def found(*paths: Path) -> tuple[Finding, ...]:
    advice: list[KernelAdvice] = []
    for path in paths:
        with read_report(path) as opened:
            advice += advise(opened, our_rules())
    return of_launches.findings(advice, measurements_of(list(paths)), share=0.0).found


def test_documents_follow_their_schema_whose_words_are_documented(run: Command, tmp_path: Path) -> None:
    """In the help of the command, each with every value that has a meaning of its own."""
    jsonschema = pytest.importorskip("jsonschema")
    for name, words in (("ranges", ()), ("tensor", ("--all-findings",)), ("timeless", ()), ("differ", ("--top", "1"))):
        document = json.loads(run("advise", made(tmp_path, name), "--json", *words).out)
        jsonschema.validate(document, DOCUMENT)
        assert document["findings"]
    words = {*DOCUMENT["properties"]["findings"]["items"]["properties"], "optimization", "warning", "ok", "error"}
    assert words <= set(re.findall(r"\w+", run("advise", "--help").out))


@pytest.mark.parametrize("width", [60, 200])
def test_text_is_as_wide_as_the_terminal(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for words in ((), ("--verbose",)):
        widths = [len(line) for line in run("advise", made(tmp_path, "waits"), *words).out.splitlines()]
        assert width - 20 < max(widths) <= width


def test_the_gain_of_a_kernel_is_that_of_the_model_and_counted_once(tmp_path: Path) -> None:
    """Each of two verdicts on launches of a kernel promises what these could gain; hints have no number of their own."""
    ranges = made(tmp_path, "ranges")
    (verdict,) = (one for one in found(ranges) if one.rule == VERDICT)
    row = roofline(ranges, by="kernel").kernels.iloc[0]
    assert (verdict.recoverable, verdict.speedup) == pytest.approx((row["recoverable"], row["headroom"]))
    path = made(tmp_path, "both")
    all_of = found(path)
    verdicts = {one.launches: one for one in all_of if one.rule == VERDICT}
    for one in roofline(path).kernels.to_dict("records"):
        verdict = verdicts[(one["report"], one["launch"]),]
        assert (verdict.seconds, verdict.recoverable) == pytest.approx((one["seconds"], one["recoverable"]))
        assert verdict.speedup == pytest.approx(verdict.seconds / (verdict.seconds - verdict.recoverable))
        assert verdict.speedup == pytest.approx(one["speedup"])
    assert all(math.isnan(one.recoverable) and math.isnan(one.speedup) for one in all_of if one.rule != VERDICT)


def test_ids_are_of_kernel_rule_and_title_alone(tmp_path: Path) -> None:
    """Other numbers, another order, another report, other neighbours: the same finding."""
    mine, other = launch("mine", slow(1e-3, 0.7)), launch("other", slow(2e-3, 0.8))
    again = launch("mine", slow(5e-3, 0.8))
    first = found(report(tmp_path / "first.ncu-rep", mine, other))
    second = found(report(tmp_path / "second.ncu-rep", other, again, again))
    ids, others = (
        {(one.kernel.name, one.rule, re.sub("[0-9.]+ %", "", one.title)): one.id for one in some} for some in (first, second)
    )
    assert ids == others
    assert len(set(ids.values())) == len(first)
    renamed = found(report(tmp_path / "third.ncu-rep", launch("renamed", slow(1e-3, 0.7))))
    assert not {one.id for one in renamed} & set(ids.values())


def test_a_rule_that_spoke_is_not_without_advice(tmp_path: Path) -> None:
    """What it could not tell besides is told in full once, whatever numbers are in it."""
    advice = []
    for number in (2, 3, 7):
        unknown = RuleMessage("none", f"Collect {number} metrics")
        speaking = RuleOutcome("A", "A", "S", (unknown, RuleMessage("ok", "Fine")))
        outcomes = (speaking, RuleOutcome("B", "B", "S", (unknown,)))
        advice.append(KernelAdvice("r", len(advice), 1.0, outcomes))
    launches = measurements_of(made(tmp_path, "three"))
    told = Told([ReportAdvice("r", "2024.1", launches, tuple(advice), ())], of_launches.findings([], launches), {})
    text = "Collect 2\N{EN DASH}7 metrics"
    assert told.silences == [Silence("A", text, 3, alone=False), Silence("B", text, 3)]
    assert of_launches.as_text(told, 100).endswith("\n\nWithout advice: B. --all-findings shows why.")
    assert f"A (3 of 3 launches): {text}" in of_launches.as_text(told, 100, whole=True)


def test_a_page_leaves_out_what_advise_leaves_out(run: Command, tmp_path: Path) -> None:
    """Below a hundredth of the time nothing is told, whether the rest of the time is of launches with advice or not."""
    long = launch("long", complete(seconds=1.0))
    little, rare = (launch(name, {**complete(seconds=s), **FEW_LANES}) for name, s in (("little", 0.005), ("rare", 0.011)))
    flat = [launch("flat", complete(seconds=0.01))] * 170
    for expected, launches in (
        (False, [long, little]),
        (True, [long, *[little] * 3]),
        (True, [*[long] * 16, *[little] * 60]),  # 4 of the 60 are among the 20 longest: 0.1 % of the time, all are 1.8 %
        (False, [rare, *flat]),  # 0.6 % of the time of all launches counts, not 5 % of that of the 20 longest
    ):
        path, target = report(tmp_path / "r.ncu-rep", *launches), tmp_path / "r.html"
        assert run("render", path, "-o", target, "--force").code == 0
        for said in (target.read_text(encoding="utf-8"), run("advise", path).out):
            assert ("Lanes without work" in said) is expected


def test_a_page_has_advice_on_every_kernel_that_matters(tmp_path: Path) -> None:
    """Also on those of which no launch is among the 20 longest; the launch looked at stands for all of its kernel."""
    few = launch("often", {**complete(seconds=1e-3), **FEW_LANES})
    path = report(tmp_path / "r.ncu-rep", *[launch("long", complete(seconds=2e-3))] * 30, *[few] * 40)
    with read_report(path) as opened:
        m = measurements_of(opened)
        advice = advise(opened, our_rules(), m.take(of_launches.most_telling(m, 20)))
    assert (of_launches.most_telling(m, 1).tolist(), [one.launch for one in advice]) == ([0], [*range(19), 30])
    all_of = of_launches.findings(advice, m).found
    (hint,) = (one for one in all_of if one.title == "Lanes without work")
    assert hint.share == pytest.approx(0.4)
    rows = of_launches.advice_rows(all_of)
    names = "id kernel device rule type title text launches share recoverable speedup"
    assert all(set(row) == set(names.split()) for row in rows)
    assert {row["kernel"] for row in rows} == set(roofline(path).kernels["kernel"])
    assert not [row for row in rows if row["type"] == "none" or "@section" in row["text"]]
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
