"""What each rule says in each of its branches: cases in files, all that is said in a text beside each, promises by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline.formats.report import read_report
from tests.factory import A100, NO_WORK, Metrics, complete, kernel, report, traffic
from tests.golden import assert_golden
from tests.nvrules.running import as_text, ceilings_of, data_of, our_rules, read_cases, rules_with, run_case

FILES = sorted((Path(__file__).parent / "cases").glob("*.toml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
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
    tried = {rule for path in FILES for case in read_cases(path)[0].values() for rule in case["rule"]}
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
